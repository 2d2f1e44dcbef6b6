/* loop_bounds.c: restricts loops to the iterations that are needed. In: a nest after opts. Out: a loop runs
 * from the first iteration that counts to the last. A loop whose steps add WHERE(condition, value, identity)
 * runs only where the condition may hold, and does not test the condition where it must hold. A loop that
 * fills rows of local memory runs only for the rows that are read afterwards. In causal attention, no key
 * behind its query is scored, and the condition is tested only for a few of the keys before it.
 *
 * A bound that depends on ranges inside the loop (a tile of queries) becomes two bounds: the condition stays
 * only in the iterations between the bound that holds for all values of those ranges and the bound that holds
 * for any of them. This is exact, because a step that is left out would have added the identity, and a store
 * that is left out would have written an element that is never read. */
#include "codegen/nest.h"
#include <string.h>

enum { MOST_GATES = 8 };

/* The iterations from .. to - 1. A NULL `from` is the first iteration, a NULL `to` is the last one. */
typedef struct Iters {
  UOp *from, *to;
} Iters;

/* A condition of sums. Steps count where it holds, or where it does not hold if `holds` is false. `any`: the
 * iterations in which it holds for something inside the loop; `all`: those in which it holds for everything
 * inside. `left`: the part of the condition that does not bound the loop, or NULL. A product counts where the
 * clauses hold that all its factors require; then `g` is NULL, `product` has the clauses, and the clauses
 * that bound the loop (`taken`) are removed from the gates of its factors. */
typedef struct Gate {
  UOp *g, *left;
  Clauses product, taken;
  bool holds;
  Iters any, all;
} Gate;

typedef struct LoopBounds {
  Kernel *k;
  PlaceVec at;
  size_t here, end; /* index in `at` of the loop, and of the first statement behind it */
  UOp *loop, *r;
  Gate gate[MOST_GATES];
  int ngate;
  Iters any, all;  /* iterations that count; iterations in which no sum needs a test */
  bool rows;       /* the loop fills rows */
  bool catches_up; /* the loop is over the blocks of an ONLINE */
  UOpVec *made;    /* ranges of the loops that the loop was divided into */
} LoopBounds;

static UOp *with_range(Kernel *k, UOp *e, UOp *r, UOp *value) {
  UOp *s = e && value ? kernel_with(k, e, 1, &r, &value) : NULL;
  return s ? uop_simplify(k->st, k->mem, s) : NULL;
}

/* The greater of a and b: one of them if bounds tell which, otherwise a MAX. */
static UOp *greatest_of(Kernel *k, UOp *a, UOp *b) {
  UOp *d = ix(k, OPS_SUB, a, b);
  if (d && d->vmin >= 0) return a;
  return d && d->vmax <= 0 ? b : ix(k, OPS_MAX, a, b);
}

/* ---- extremes over what is inside the loop */
/* Whether r is the range of a loop around this one, so that it has a value where this loop begins. */
static bool is_around(const LoopBounds *c, const UOp *r) {
  for (int up = c->at.at[c->here].up; up >= 0; up = c->at.at[up].up)
    if (c->at.at[up].u->src[0] == r) return true;
  return false;
}

/* A range of e that is not around the loop, and not the loop's own range unless `own`. NULL: there is
 * none. */
static UOp *inner_range(const LoopBounds *c, UOp *e, bool own) {
  UOpVec order = {0};
  UOp *r = NULL;
  bool ok = e->ranges && kernel_nodes(c->k, e, &order);
  for (size_t i = order.len; ok && i-- > 0 && !r;) {
    UOp *u = order.at[i];
    if (u->op == OPS_RANGE && (u != c->r || own) && !is_around(c, u)) r = u;
  }
  vec_free(c->k->mem, &order);
  return r;
}

/* The least or the greatest value of e over the ranges inside the loop, as an expression of the ranges around
 * the loop and of the loop's own range. If `own`, also over the loop's own range. NULL: not known. */
static UOp *extreme(const LoopBounds *c, UOp *e, bool greatest, bool own) {
  UOp *x;
  while (e && (x = inner_range(c, e, own))) {
    int64_t by;
    if (!moves_evenly(c->k, e, x, &by)) return NULL;
    UOp *last = ix(c->k, OPS_SUB, x->src[0], num(c->k, 1));
    e = with_range(c->k, e, x, (by > 0) == greatest ? last : num(c->k, 0));
  }
  return e;
}

/* Writes d as step * r + rest. False if d does not move evenly with the loop, or if rest reads memory: this
 * very loop might fill what the bound reads. */
static bool solve(LoopBounds *c, UOp *d, int64_t *step, UOp **rest) {
  *rest = with_range(c->k, d, c->r, num(c->k, 0));
  return *rest && !uop_has(*rest, INDEX) && moves_evenly(c->k, d, c->r, step) && *step &&
         !depends(c->k, *rest, c->r);
}

/* The bound b such that d < 0 where r < b (step > 0) or where r >= b (step < 0). It is ceil(-rest / step), or
 * the first r > rest / -step. */
static UOp *bound(LoopBounds *c, UOp *rest, int64_t step) {
  Kernel *k = c->k;
  if (step > 0) return ix(k, OPS_FLOORDIV, ix(k, OPS_SUB, num(k, step - 1), rest), num(k, step));
  return ix(k, OPS_ADD, ix(k, OPS_FLOORDIV, rest, num(k, -step)), num(k, 1));
}

/* ---- sums behind a condition */

/* The bound that leaves fewer iterations. had: the bound so far, or NULL. */
static UOp *nearer(Kernel *k, UOp *had, UOp *bound, bool upper) {
  return !had ? bound : upper ? ix_min(k, had, bound) : greatest_of(k, had, bound);
}

/* Bounds the loop by `less`, which is a < b. holds: whether it must be true or must be false. Returns false
 * if it gives no bound. */
static bool bound_by(LoopBounds *c, Gate *g, const UOp *less, bool holds) {
  UOp *d = less->src[0]->dtype == DT_INDEX ? ix(c->k, OPS_SUB, less->src[0], less->src[1]) : NULL, *rest;
  int64_t step;
  if (!d || !solve(c, d, &step, &rest)) return false;
  bool upper = (step > 0) == holds;
  UOp *least = bound(c, extreme(c, rest, step > 0, false), step);
  UOp *most = bound(c, extreme(c, rest, step < 0, false), step);
  UOp **all = upper ? &g->all.to : &g->all.from, **any = upper ? &g->any.to : &g->any.from;
  if (!least || !most) return false;
  *all = nearer(c->k, *all, upper ? least : most, upper);
  *any = nearer(c->k, *any, upper ? most : least, upper);
  return *all && *any;
}

/* Takes the clauses that bound the loop out of condition e, which must hold or must not hold. The other
 * clauses go to g->left. */
static bool take_bounds(LoopBounds *c, Gate *g, UOp *e, bool holds) {
  bool clauses = e->dtype == DT_BOOL && e->op == (holds ? OPS_AND : OPS_OR);
  if (clauses) return take_bounds(c, g, e->src[0], holds) && take_bounds(c, g, e->src[1], holds);
  if (e->op == OPS_CMPNE && is_const_int(e->src[1], 1)) return take_bounds(c, g, e->src[0], !holds);
  if (depends(c->k, e, c->r) && e->op == OPS_CMPLT && bound_by(c, g, e, holds)) return true;
  if (!holds) e = uop_alu2(c->k->st, OPS_CMPNE, e, uop_const_int(c->k->st, DT_BOOL, 1));
  g->left = g->left && e ? uop_alu2(c->k->st, OPS_AND, g->left, e) : e;
  return g->left != NULL;
}

/* Bounds the loop by the clauses that all factors of a product require. */
static void take_clauses(LoopBounds *c, Gate *g) {
  for (int i = 0; i < g->product.n; i++) {
    bool holds;
    UOp *clause = g->product.at[i];
    const UOp *less = clause_of(clause, &holds);
    if (less->op == OPS_CMPLT && depends(c->k, clause, c->r) && bound_by(c, g, less, holds))
      g->taken.at[g->taken.n++] = clause;
  }
}

static bool is_identity(const UOp *acc, const UOp *v) {
  if (!is_const(v)) return false;
  Scalar none = op_identity((Ops)acc->arg.reduce.op, (DType)v->dtype);
  return dtype_is_float((DType)v->dtype) ? v->arg.v.f == none.f : v->arg.v.i == none.i;
}

/* As step_gated, for a product that is added: its condition is what all its factors require. */
static bool product_gated(LoopBounds *c, const UOp *acc) {
  Clauses all;
  int i = 0;
  product_clauses(acc->src[1], &all);
  if (!all.n || acc->arg.reduce.op != OPS_ADD) return false;
  while (i < c->ngate && (c->gate[i].g || c->gate[i].product.n != all.n ||
                          memcmp(c->gate[i].product.at, all.at, (size_t)all.n * sizeof *all.at) != 0))
    i++;
  if (i == MOST_GATES) return false;
  if (i == c->ngate) c->gate[c->ngate++] = (Gate){.product = all};
  return true;
}

/* Whether a step adds a value where a condition holds (or does not hold), and the identity otherwise. The
 * condition is added to c->gate. */
static bool step_gated(LoopBounds *c, const UOp *acc) {
  UOp *v = acc->src[1];
  if (v->op == OPS_MUL) return product_gated(c, acc);
  bool yes = v->op == OPS_WHERE && is_identity(acc, v->src[2]);
  int i = 0;
  if (v->op != OPS_WHERE || (!yes && !is_identity(acc, v->src[1]))) return false;
  while (i < c->ngate && !(c->gate[i].g == v->src[0] && c->gate[i].holds == yes))
    i++;
  if (i == MOST_GATES) return false;
  if (i == c->ngate) c->gate[c->ngate++] = (Gate){.g = v->src[0], .holds = yes};
  return true;
}

/* ---- rows that are read afterwards */

/* Extends *low .. *high, the offsets that are read of memory m, by what one statement reads. Returns false if
 * that is not known. */
static bool reads_of(LoopBounds *c, size_t place, const UOp *m, UOp **low, UOp **high) {
  UOp *u = c->at.at[place].u;
  bool inside = place > c->here && place < c->end;
  UOpVec order = {0};
  bool ok = uop_toposort(c->k->st, c->k->mem, u->src, u->op == OPS_LOOP ? 1 : 2, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *x = order.at[i];
    bool stored = u->op == OPS_STORE && x == u->src[0];
    if (x->op != OPS_INDEX || x->src[0] != m || stored) continue;
    if (place < c->here) ok = false; /* it reads what the previous iteration left */
    UOp *first = ok ? extreme(c, x->src[1], false, inside) : NULL;
    UOp *last = ok ? extreme(c, x->src[1], true, inside) : NULL;
    ok = first && last;
    if (ok) *low = *low ? ix_min(c->k, *low, first) : first;
    if (ok) *high = *high ? greatest_of(c->k, *high, last) : last;
  }
  vec_free(c->k->mem, &order);
  return ok;
}

/* Finds the iterations in which this store writes elements that are read later. Returns false if they are not
 * known. */
static bool iters_read(LoopBounds *c, const UOp *store, Iters *t) {
  Kernel *k = c->k;
  const UOp *m = stored_in(store);
  UOp *low = NULL, *high = NULL, *rest;
  int64_t step;
  bool ok = index_naxes(store->src[0]) == 1;
  for (size_t i = 0; ok && i < c->at.len; i++)
    ok = reads_of(c, i, m, &low, &high);
  UOp *first = ok && low ? extreme(c, store->src[0]->src[1], false, false) : NULL;
  UOp *last = first ? extreme(c, store->src[0]->src[1], true, false) : NULL;
  if (!last) return false;
  /* past < 0: the store begins at or before the last element that is read; before < 0: it ends at or after
   * the first one */
  UOp *past = ix(k, OPS_SUB, ix(k, OPS_SUB, first, high), num(k, 1));
  UOp *before = ix(k, OPS_SUB, ix(k, OPS_SUB, low, last), num(k, 1));
  if (!past || !before || !solve(c, past, &step, &rest) || step < 0) return false;
  t->to = bound(c, rest, step);
  if (!solve(c, before, &step, &rest) || step > 0) return false;
  t->from = bound(c, rest, step);
  return t->to && t->from;
}

/* ---- what a loop does */
static bool mentioned_outside(LoopBounds *c, UOp *m) {
  bool found = false;
  for (size_t i = 0; !found && i < c->at.len; i++) {
    UOp *u = c->at.at[i].u;
    if ((i >= c->here && i < c->end) || !u->nsrc) continue;
    found = uop_contains(c->k->st, c->k->mem, u->src, u->op == OPS_LOOP ? 1 : 2, m);
  }
  return found;
}

/* Whether a value that the loop leaves behind depends on register m. */
static bool is_left_behind(LoopBounds *c, const UOp *m) {
  bool found = false;
  for (size_t i = c->here + 1; !found && i < c->end; i++) {
    UOp *u = c->at.at[i].u;
    if (u->op != OPS_STORE || !mentioned_outside(c, stored_in(u))) continue;
    found = uop_contains(c->k->st, c->k->mem, &u->src[1], 1, m);
  }
  return found;
}

/* Whether a statement has no effect in iterations that do not count. Records which iterations count. */
static bool only_counts(LoopBounds *c, const UOp *u) {
  UOp *m = stored_in(u);
  bool outside = mentioned_outside(c, m);
  if (m->op == OPS_DEFINE_REG && u->op == OPS_ACC)
    return (!outside && !(c->catches_up && is_left_behind(c, m))) || step_gated(c, u);
  if (m->op == OPS_DEFINE_REG) return !outside || c->catches_up;
  if (m->op != OPS_DEFINE_LOCAL || c->catches_up) return m->op == OPS_DEFINE_LOCAL;
  Iters t;
  if (u->op != OPS_STORE || !iters_read(c, u, &t)) return false;
  c->any.from = c->rows ? ix_min(c->k, c->any.from, t.from) : t.from;
  c->any.to = c->rows ? greatest_of(c->k, c->any.to, t.to) : t.to;
  return c->rows = true;
}

/* Joins the conditions of all sums: c->any becomes the iterations in which some sum changes, c->all those in
 * which no sum needs a test. The iterations that fill rows are added to c->any. */
static bool join_gates(LoopBounds *c) {
  Iters rows = c->any;
  for (int i = 0; i < c->ngate; i++) {
    Gate *g = &c->gate[i];
    if (!g->g) take_clauses(c, g);
    if ((g->g && !take_bounds(c, g, g->g, g->holds)) || (!g->all.from && !g->all.to)) return false;
    Iters any = i ? c->any : g->any;
    c->any.from = any.from && g->any.from ? ix_min(c->k, any.from, g->any.from) : NULL;
    c->any.to = any.to && g->any.to ? greatest_of(c->k, any.to, g->any.to) : NULL;
    if (g->all.from) c->all.from = c->all.from ? greatest_of(c->k, c->all.from, g->all.from) : g->all.from;
    if (g->all.to) c->all.to = c->all.to ? ix_min(c->k, c->all.to, g->all.to) : g->all.to;
  }
  if (!c->rows) return true;
  if (c->any.from) c->any.from = ix_min(c->k, c->any.from, rows.from);
  if (c->any.to) c->any.to = greatest_of(c->k, c->any.to, rows.to);
  return true;
}

/* Whether e depends on a thread index. If the threads of a block meet inside the loop, its bounds must be the
 * same for all threads. */
static bool moves_with_threads(const LoopBounds *c, const UOp *e) {
  for (int up = c->at.at[c->here].up; e && up >= 0; up = c->at.at[up].up) {
    const UOp *r = c->at.at[up].u->src[0];
    if (r->arg.range.type == AXIS_LOCAL && depends(c->k, (UOp *)e, r)) return true;
  }
  return false;
}

static bool find(LoopBounds *c) {
  bool nested = false;
  for (size_t i = c->here + 1; i < c->end; i++) {
    const UOp *u = c->at.at[i].u;
    nested |= u->op == OPS_LOOP;
    if (u->op != OPS_LOOP && (u->op == OPS_BARRIER || !only_counts(c, u))) return false;
  }
  if ((!c->ngate && !c->rows) || (c->ngate && !join_gates(c))) return false;
  bool alone = c->rows || c->catches_up, one = c->any.from == c->all.from && c->any.to == c->all.to;
  /* a nested loop would be divided into parts of parts, which is more text than the tests are worth */
  if (nested && !alone && !one) return false;
  return !alone || (!moves_with_threads(c, c->any.from) && !moves_with_threads(c, c->any.to) &&
                    !moves_with_threads(c, c->all.from) && !moves_with_threads(c, c->all.to));
}

/* ---- the loop in parts */
/* The value of e, limited to 0 .. the loop's extent. */
static UOp *inside(LoopBounds *c, UOp *e) {
  Kernel *k = c->k;
  UOp *low = e ? ix(k, OPS_MAX, e, num(k, 0)) : NULL;
  return low ? ix_min(k, low, c->r->src[0]) : NULL;
}

/* Whether an address changes with the iterations of the loop or of a loop inside it. */
static bool moves_within(const LoopBounds *c, const UOp *x) {
  bool moves = false;
  for (size_t i = c->here; !moves && i < c->end; i++) {
    const UOp *u = c->at.at[i].u;
    for (int d = 1; u->op == OPS_LOOP && !moves && d <= index_naxes(x); d++)
      moves = depends(c->k, x->src[d], u->src[0]);
  }
  return moves;
}

/* Adds the gated loads that must keep their gates: a load that does not move is hoisted before the loop and
 * made even if the loop has no iteration. */
static bool loads_kept(LoopBounds *c, UOpVec *from, UOpVec *to) {
  Kernel *k = c->k;
  UOpVec order = {0};
  bool ok = kernel_nodes(k, c->loop, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *x = order.at[i];
    if (x->op == OPS_INDEX && x->arg.i && !moves_within(c, x))
      ok = vec_push(k->mem, from, x) && vec_push(k->mem, to, x);
  }
  vec_free(k->mem, &order);
  return ok;
}

/* The loop with each condition replaced by the part of it that does not bound the loop. */
static UOp *without(LoopBounds *c) {
  Kernel *k = c->k;
  UOpVec from = {0}, to = {0};
  UOp *yes = uop_const_int(k->st, DT_BOOL, 1);
  bool ok = yes && loads_kept(c, &from, &to);
  for (int i = 0; ok && i < c->ngate; i++) {
    const Gate *g = &c->gate[i];
    UOp *left = g->left ? g->left : yes;
    for (int t = 0; ok && t < g->taken.n; t++)
      ok = vec_push(k->mem, &from, g->taken.at[t]) && vec_push(k->mem, &to, yes);
    if (!g->g || !ok) continue;
    if (!g->holds) left = uop_alu2(k->st, OPS_CMPNE, left, yes);
    ok = left && vec_push(k->mem, &from, g->g) && vec_push(k->mem, &to, left);
  }
  UOp *loop = ok ? kernel_with(k, c->loop, (int)from.len, from.at, to.at) : NULL;
  vec_free(k->mem, &from), vec_free(k->mem, &to);
  return loop ? uop_simplify(k->st, k->mem, loop) : NULL;
}

static bool local_memories(Kernel *k, UOp *u, UOpVec *out) {
  UOpVec order = {0};
  bool ok = kernel_nodes(k, u, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    if (order.at[i]->op == OPS_DEFINE_LOCAL) ok = vec_push(k->mem, out, order.at[i]);
  vec_free(k->mem, &order);
  return ok;
}

/* A copy of a part, to follow another part. Its loops and registers are new, but it uses the same local
 * memory, because the part before it has ended and a block has little local memory. */
static UOp *part_copy(LoopBounds *c, UOp *of) {
  Kernel *k = c->k;
  UOpVec stays = {0};
  bool ok = vec_push(k->mem, &stays, c->r) && local_memories(k, of, &stays);
  UOp *copy = ok ? nest_copy(k, of, (int)stays.len, stays.at, stays.at) : NULL;
  vec_free(k->mem, &stays);
  return copy;
}

/* Adds a loop over the iterations from .. to - 1, unless there are none. */
static bool part_add(LoopBounds *c, UOp *of, UOp *from, UOp *to, UOpVec *out) {
  Kernel *k = c->k;
  UOp *n = from && to ? ix(k, OPS_MAX, ix(k, OPS_SUB, to, from), num(k, 0)) : NULL;
  if (!of || !n) return false;
  if (is_const_int(n, 0)) return true;
  UOp *copy = out->len ? part_copy(c, of) : of;
  Arg arg = c->r->arg;
  arg.range.id = k->next_range++;
  UOp *r = uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1, &n, arg), *at = ix(k, OPS_ADD, from, r);
  if (!r || !vec_push(k->mem, c->made, r)) return false;
  UOp *body = copy && at ? uop_new(k->st, OPS_SINK, DT_VOID, 1, copy->nsrc - 1, copy->src + 1, ARG0) : NULL;
  body = body ? kernel_with(k, body, 1, &c->r, &at) : NULL;
  UOp *loop = body ? loop_new(k, r, body->nsrc, body->src) : NULL;
  return loop && vec_push(k->mem, out, loop);
}

/* Replaces the loop by up to three loops: with the test, without it, and with it again. */
static bool in_parts(LoopBounds *c) {
  Kernel *k = c->k;
  UOp *first = c->any.from ? inside(c, c->any.from) : num(k, 0);
  UOp *last = inside(c, c->any.to ? c->any.to : c->r->src[0]);
  UOpVec all = {0};
  bool ok;
  if (!first || !last) return false;
  if (!c->ngate && is_const_int(first, 0) && last == c->r->src[0]) return true;
  if (!c->ngate)
    ok = part_add(c, c->loop, first, last, &all);
  else {
    UOp *begin = inside(c, c->all.from ? c->all.from : num(k, 0));
    UOp *end = inside(c, c->all.to ? c->all.to : c->r->src[0]), *stop = ix(k, OPS_MAX, begin, end);
    ok = part_add(c, c->loop, first, begin, &all) && part_add(c, without(c), begin, stop, &all) &&
         part_add(c, c->loop, stop, last, &all);
  }
  UOp *sink = ok ? nest_replace(k, k->sink, c->loop, (int)all.len, all.at) : NULL;
  vec_free(k->mem, &all);
  return sink && (k->sink = nest_simplify(k, sink)) != NULL;
}

static bool is_plain(const UOp *u) {
  return u->op == OPS_LOOP &&
         (u->src[0]->arg.range.type == AXIS_REDUCE || u->src[0]->arg.range.type == AXIS_LOOP);
}

/* Whether value v counts only where a condition that depends on r holds. */
static bool is_asked(Kernel *k, UOp *v, const UOp *r) {
  Clauses c;
  bool asked = v->op == OPS_WHERE && depends(k, v->src[0], r);
  product_clauses(v, &c);
  for (int i = 0; !asked && i < c.n; i++)
    asked = depends(k, c.at[i], r);
  return asked;
}

/* Whether a loop over r may have iterations that do not count. This is a quick first check. */
static bool may_bound(Kernel *k, const UOp *loop, const UOp *r) {
  bool may = false;
  for (int i = 1; !may && i < loop->nsrc; i++) {
    const UOp *u = loop->src[i];
    if (u->op == OPS_LOOP) may = may_bound(k, u, r);
    if (u->op == OPS_ACC) may = is_asked(k, u->src[1], r);
    if (u->op == OPS_STORE) may = stored_in(u)->op == OPS_DEFINE_LOCAL && depends(k, u->src[0], r);
  }
  return may;
}

static bool bound_loop(Kernel *k, UOp *loop, UOpVec *made) {
  UOp *r = loop->src[0];
  LoopBounds c = {.k = k, .loop = loop, .r = r, .made = made};
  c.catches_up = is_block(r) && r->arg.range.type == AXIS_REDUCE;
  if (!may_bound(k, loop, r)) return true;
  bool ok = nest_places(k, k->sink, &c.at);
  while (ok && c.here < c.at.len && c.at.at[c.here].u != loop)
    c.here++;
  c.end = c.here + 1;
  while (ok && c.end < c.at.len && c.at.at[c.end].depth > c.at.at[c.here].depth)
    c.end++;
  if (ok && c.here < c.at.len && find(&c)) ok = in_parts(&c);
  vec_free(k->mem, &c.at);
  return ok;
}

/* Lists the plain loops. Outer loops come first, because a condition that bounds an outer loop need not be
 * tested inside it. Later loops come before earlier ones, so that a loop that reads rows is bounded before
 * the loop that fills them. */
static bool loops_in_order(Kernel *k, UOp *u, UOpVec *out) {
  bool ok = !is_plain(u) || vec_push(k->mem, out, u);
  for (int i = u->nsrc; ok && i-- > 0;)
    if (is_loop(u->src[i])) ok = loops_in_order(k, u->src[i], out);
  return ok;
}

bool bound_loops(Kernel *k) {
  UOpVec loops = {0}, seen = {0}; /* seen: ranges of loops that are already bounded */
  bool ok = true;
  for (UOp *before = NULL; ok && k->sink != before;) {
    before = k->sink;
    loops.len = 0;
    ok = loops_in_order(k, k->sink, &loops);
    for (size_t i = 0; ok && k->sink == before && i < loops.len; i++) {
      UOp *r = loops.at[i]->src[0];
      if (seen.len && vec_has(&seen, r)) continue;
      ok = bound_loop(k, loops.at[i], &seen);
      if (ok && k->sink != before) ok = vec_push(k->mem, &seen, r);
    }
  }
  vec_free(k->mem, &loops), vec_free(k->mem, &seen);
  return ok;
}
