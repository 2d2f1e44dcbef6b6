/* clip.c: loops whose turns are not all needed. In: a nest after opts. Out: a loop runs from the first turn
 * that counts to the last: one whose steps add WHERE(condition, value, identity) runs where the condition may
 * hold, and without asking where it must; one that fills rows of local memory runs where a row is read
 * afterwards. Together: causal attention scores no key behind its query, and asks of few of those before it.
 *
 * A bound that moves with what is inside the loop (a tile of queries) is two: between what holds for all of
 * it and what holds for any the condition stays. What a step left out would have added is the identity, and
 * what a store left out would have written is never read. */
#include "codegen/nest.h"

/* Turns from .. to - 1. NULL: from the first, to the last. */
typedef struct Turns {
  UOp *from, *to;
} Turns;

typedef struct Clip {
  Kernel *k;
  PlaceVec at;
  size_t here, end; /* places of the loop and of what follows its last statement */
  UOp *loop, *r;
  UOp *gate, *left;   /* the one condition of its sums, and what of it does not bound the loop */
  bool holds, bounds; /* sums count where the gate holds (else: where it does not); it bounds the loop */
  Turns any, all;   /* turns that count, for something in the loop; and where the gate holds for all of it */
  bool whole, rows; /* something needs every turn; it fills rows */
} Clip;

static UOp *num(Kernel *k, int64_t v) { return uop_index_const(k->st, v); }

static UOp *ix(Kernel *k, Ops op, UOp *a, UOp *b) {
  return a && b ? uop_simplify(k->st, k->mem, uop_alu2(k->st, op, a, b)) : NULL;
}

static UOp *with_range(Kernel *k, UOp *e, UOp *r, UOp *value) {
  UOp *s = e && value ? uop_substitute(k->st, k->mem, e, 1, &r, &value) : NULL;
  return s ? uop_simplify(k->st, k->mem, s) : NULL;
}

/* The lesser or the greater of two, by what is known of them where it can be. */
static UOp *least_of(Kernel *k, UOp *a, UOp *b) {
  UOp *minus = num(k, -1);
  return ix(k, OPS_MUL, ix(k, OPS_MAX, ix(k, OPS_MUL, a, minus), ix(k, OPS_MUL, b, minus)), minus);
}

static UOp *greatest_of(Kernel *k, UOp *a, UOp *b) {
  UOp *d = ix(k, OPS_SUB, a, b);
  if (d && d->vmin >= 0) return a;
  return d && d->vmax <= 0 ? b : ix(k, OPS_MAX, a, b);
}

/* ---- extremes over what is inside the loop */
static bool is_around(const Clip *c, const UOp *r) { /* a range that has a value where the loop begins */
  for (int up = c->at.at[c->here].up; up >= 0; up = c->at.at[up].up)
    if (c->at.at[up].u->src[0] == r) return true;
  return false;
}

/* A range of e that is neither around the loop nor its own; NULL: there is none. */
static UOp *inner_range(const Clip *c, UOp *e, bool own) {
  UOpVec order = {0};
  UOp *r = NULL;
  bool ok = e->ranges && uop_toposort(c->k->st, c->k->mem, &e, 1, &order);
  for (size_t i = order.len; ok && i-- > 0 && !r;) {
    UOp *u = order.at[i];
    if (u->op == OPS_RANGE && (u != c->r || own) && !is_around(c, u)) r = u;
  }
  vec_free(c->k->mem, &order);
  return r;
}

/* The least or the greatest that e is, in terms of the ranges around the loop, and of its own unless `own`:
 * then over that too. */
static UOp *extreme(const Clip *c, UOp *e, bool greatest, bool own) {
  UOp *x;
  while (e && (x = inner_range(c, e, own))) {
    int64_t by;
    if (!moves_evenly(c->k, e, x, &by)) return NULL;
    UOp *last = ix(c->k, OPS_SUB, x->src[0], num(c->k, 1));
    e = with_range(c->k, e, x, (by > 0) == greatest ? last : num(c->k, 0));
  }
  return e;
}

/* Where d < 0 for a d that moves evenly with the loop, d = step * r + rest: what it bounds, and on which
 * side. */
static bool solve(Clip *c, UOp *d, bool *upper, UOp **bound) {
  Kernel *k = c->k;
  int64_t step;
  UOp *rest = with_range(k, d, c->r, num(k, 0));
  if (!rest || !moves_evenly(k, d, c->r, &step) || !step || depends(k, rest, c->r)) return false;
  *upper = step > 0;
  if (*upper) /* r < ceil(-rest / step) */
    *bound = ix(k, OPS_FLOORDIV, ix(k, OPS_SUB, num(k, step - 1), rest), num(k, step));
  else /* r > rest / -step */
    *bound = ix(k, OPS_ADD, ix(k, OPS_FLOORDIV, rest, num(k, -step)), num(k, 1));
  return *bound != NULL;
}

/* ---- sums behind a condition */

/* `less` is a < b; holds: whether it must be so. */
static bool bound_by(Clip *c, const UOp *less, bool holds) {
  UOp *d = less->src[0]->dtype == DT_INDEX ? ix(c->k, OPS_SUB, less->src[0], less->src[1]) : NULL, *e;
  bool upper;
  if (!d || !solve(c, d, &upper, &e)) return false;
  upper = upper == holds;
  UOp *least = extreme(c, e, false, false), *most = extreme(c, e, true, false);
  UOp **all = upper ? &c->all.to : &c->all.from, **any = upper ? &c->any.to : &c->any.from;
  if (*all || !least || !most) return false; /* one bound of each side is enough */
  *all = upper ? least : most, *any = upper ? most : least;
  return c->bounds = true;
}

/* The clauses that bound the loop, of a condition that must hold, or must not, are taken out; what is left of
 * it, or NULL: nothing. */
static bool take_bounds(Clip *c, UOp *g, bool holds) {
  bool clauses = g->dtype == DT_BOOL && g->op == (holds ? OPS_AND : OPS_OR);
  if (clauses) return take_bounds(c, g->src[0], holds) && take_bounds(c, g->src[1], holds);
  if (g->op == OPS_CMPNE && is_const_int(g->src[1], 1)) return take_bounds(c, g->src[0], !holds);
  if (depends(c->k, g, c->r) && g->op == OPS_CMPLT && bound_by(c, g, holds)) return true;
  if (!holds) g = uop_alu2(c->k->st, OPS_CMPNE, g, uop_const_int(c->k->st, DT_BOOL, 1));
  c->left = c->left && g ? uop_alu2(c->k->st, OPS_AND, c->left, g) : g;
  return c->left != NULL;
}

static bool is_identity(const UOp *acc, const UOp *v) {
  if (!is_const(v)) return false;
  Scalar none = op_identity((Ops)acc->arg.reduce.op, (DType)v->dtype);
  return dtype_is_float((DType)v->dtype) ? v->arg.v.f == none.f : v->arg.v.i == none.i;
}

/* A step that adds a value where a condition holds (or does not), else the identity; all steps of the loop
 * have one condition. */
static bool step_gated(Clip *c, const UOp *acc) {
  UOp *v = acc->src[1];
  bool yes = v->op == OPS_WHERE && is_identity(acc, v->src[2]);
  if (v->op != OPS_WHERE || (!yes && !is_identity(acc, v->src[1]))) return false;
  if (c->gate && (c->gate != v->src[0] || c->holds != yes)) return false;
  c->gate = v->src[0], c->holds = yes;
  return true;
}

/* ---- rows that are read afterwards */

/* What one statement reads of memory m: the least and the greatest offset. False: not known. */
static bool reads_of(Clip *c, size_t place, const UOp *m, UOp **low, UOp **high) {
  UOp *u = c->at.at[place].u;
  bool inside = place > c->here && place < c->end;
  UOpVec order = {0};
  bool ok = uop_toposort(c->k->st, c->k->mem, u->src, u->op == OPS_LOOP ? 1 : 2, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *x = order.at[i];
    bool stored = u->op == OPS_STORE && x == u->src[0];
    if (x->op != OPS_INDEX || x->src[0] != m || stored) continue;
    if (place < c->here) ok = false; /* what the turn before has left */
    UOp *first = ok ? extreme(c, x->src[1], false, inside) : NULL;
    UOp *last = ok ? extreme(c, x->src[1], true, inside) : NULL;
    ok = first && last;
    if (ok) *low = *low ? least_of(c->k, *low, first) : first;
    if (ok) *high = *high ? greatest_of(c->k, *high, last) : last;
  }
  vec_free(c->k->mem, &order);
  return ok;
}

/* The turns in which this store writes what is read later. */
static bool turns_read(Clip *c, const UOp *store, Turns *t) {
  Kernel *k = c->k;
  const UOp *m = stored_in(store);
  UOp *low = NULL, *high = NULL, *bound;
  bool upper, ok = index_naxes(store->src[0]) == 1;
  for (size_t i = 0; ok && i < c->at.len; i++)
    ok = reads_of(c, i, m, &low, &high);
  UOp *first = ok && low ? extreme(c, store->src[0]->src[1], false, false) : NULL;
  UOp *last = first ? extreme(c, store->src[0]->src[1], true, false) : NULL;
  if (!last) return false;
  UOp *past =
      ix(k, OPS_SUB, ix(k, OPS_SUB, first, high), num(k, 1)); /* < 0: it writes below what is read last */
  UOp *before = ix(k, OPS_SUB, ix(k, OPS_SUB, low, last), num(k, 1));
  if (!past || !before || !solve(c, past, &upper, &bound) || !upper) return false;
  t->to = bound;
  if (!solve(c, before, &upper, &bound) || upper) return false;
  t->from = bound;
  return true;
}

/* ---- what a loop does */
static bool mentioned_outside(Clip *c, UOp *m) {
  UOpVec order = {0};
  bool found = false, ok = true;
  for (size_t i = 0; ok && !found && i < c->at.len; i++) {
    UOp *u = c->at.at[i].u;
    if ((i >= c->here && i < c->end) || !u->nsrc) continue;
    order.len = 0;
    ok = uop_toposort(c->k->st, c->k->mem, u->src, u->op == OPS_LOOP ? 1 : 2, &order);
    for (size_t j = 0; j < order.len; j++)
      found |= order.at[j] == m;
  }
  vec_free(c->k->mem, &order);
  return found || !ok;
}

/* Turns that a statement needs. */
static void note(Clip *c, const UOp *u) {
  if (u->op == OPS_LOOP) return;
  UOp *m = u->op == OPS_STORE || u->op == OPS_ACC ? stored_in(u) : NULL;
  if (m && m->op == OPS_DEFINE_REG && !mentioned_outside(c, m)) return;
  if (m && u->op == OPS_ACC && step_gated(c, u)) return;
  Turns t;
  if (!m || m->op != OPS_DEFINE_LOCAL || u->op != OPS_STORE || !turns_read(c, u, &t)) {
    c->whole = true;
    return;
  }
  c->any.from = c->rows ? least_of(c->k, c->any.from, t.from) : t.from;
  c->any.to = c->rows ? greatest_of(c->k, c->any.to, t.to) : t.to;
  c->rows = true;
}

/* The gate's turns, and those of the rows: what counts for either. */
static bool join_gate(Clip *c) {
  Turns rows = c->any;
  c->any = (Turns){0};
  if (!take_bounds(c, c->gate, c->holds) || !c->bounds) return false;
  if (!c->rows) return true;
  if (c->any.from) c->any.from = least_of(c->k, c->any.from, rows.from);
  if (c->any.to) c->any.to = greatest_of(c->k, c->any.to, rows.to);
  return true;
}

/* All threads of a block turn a loop alike where they meet in it. */
static bool moves_with_threads(const Clip *c, const UOp *e) {
  for (int up = c->at.at[c->here].up; e && up >= 0; up = c->at.at[up].up) {
    const UOp *r = c->at.at[up].u->src[0];
    if (r->arg.range.type == AXIS_LOCAL && depends(c->k, (UOp *)e, r)) return true;
  }
  return false;
}

static bool find(Clip *c) {
  for (size_t i = c->here + 1; i < c->end && !c->whole; i++)
    note(c, c->at.at[i].u);
  if (c->whole || (!c->gate && !c->rows) || (c->gate && !join_gate(c))) return false;
  return !c->rows || (!moves_with_threads(c, c->any.from) && !moves_with_threads(c, c->any.to) &&
                      !moves_with_threads(c, c->all.from) && !moves_with_threads(c, c->all.to));
}

/* ---- the loop in parts */
static UOp *inside(Clip *c, UOp *e) { /* e, but no less than 0 and no more than the loop's length */
  Kernel *k = c->k;
  UOp *low = e ? ix(k, OPS_MAX, e, num(k, 0)) : NULL;
  return low ? least_of(k, low, c->r->src[0]) : NULL;
}

/* The loop where its condition is what is left of it. */
static UOp *without(Clip *c) {
  Kernel *k = c->k;
  UOp *yes = c->left ? c->left : uop_const_int(k->st, DT_BOOL, 1);
  UOp *now = c->holds ? yes : uop_alu2(k->st, OPS_CMPNE, yes, uop_const_int(k->st, DT_BOOL, 1));
  UOp *loop = now ? uop_substitute(k->st, k->mem, c->loop, 1, &c->gate, &now) : NULL;
  return loop ? uop_simplify(k->st, k->mem, loop) : NULL;
}

static bool part_add(Clip *c, UOp *of, UOp *from, UOp *to, UOpVec *out) { /* turns from .. to - 1 */
  Kernel *k = c->k;
  UOp *n = from && to ? ix(k, OPS_MAX, ix(k, OPS_SUB, to, from), num(k, 0)) : NULL;
  if (!of || !n) return false;
  if (is_const_int(n, 0)) return true;
  UOp *copy = out->len ? nest_copy(k, of, 1, &c->r, &c->r) : of;
  UOp *r = kernel_range(k, n, (AxisType)c->r->arg.range.type, c->r), *at = ix(k, OPS_ADD, from, r);
  UOp *body = copy && at ? uop_new(k->st, OPS_SINK, DT_VOID, 1, copy->nsrc - 1, copy->src + 1, ARG0) : NULL;
  body = body ? uop_substitute(k->st, k->mem, body, 1, &c->r, &at) : NULL;
  UOp *loop = body ? loop_new(k, r, body->nsrc, body->src) : NULL;
  return loop && vec_push(k->mem, out, loop);
}

static bool in_parts(Clip *c) {
  Kernel *k = c->k;
  UOp *first = c->any.from ? inside(c, c->any.from) : num(k, 0);
  UOp *last = inside(c, c->any.to ? c->any.to : c->r->src[0]);
  UOpVec all = {0};
  bool ok;
  if (!c->gate)
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

/* Whether a loop may have turns that do not count: a first look. */
static bool may_clip(Clip *c) {
  for (size_t i = c->here + 1; i < c->end; i++) {
    const UOp *u = c->at.at[i].u;
    if (u->op == OPS_ACC && u->src[1]->op == OPS_WHERE && depends(c->k, u->src[1]->src[0], c->r)) return true;
    if (u->op == OPS_STORE && stored_in(u)->op == OPS_DEFINE_LOCAL && depends(c->k, u->src[0], c->r))
      return true;
  }
  return false;
}

/* The loop over range r in the nest as it now is. */
static bool clip_loop(Kernel *k, UOp *r) {
  Clip c = {.k = k, .r = r};
  bool ok = nest_places(k, k->sink, &c.at);
  while (ok && c.here < c.at.len && !(c.at.at[c.here].u->op == OPS_LOOP && c.at.at[c.here].u->src[0] == r))
    c.here++;
  if (ok && c.here < c.at.len) {
    c.loop = c.at.at[c.here].u, c.end = c.here + 1;
    while (c.end < c.at.len && c.at.at[c.end].depth > c.at.at[c.here].depth)
      c.end++;
    if (may_clip(&c) && find(&c)) ok = in_parts(&c);
  }
  vec_free(k->mem, &c.at);
  return ok;
}

bool clip_loops(Kernel *k) {
  PlaceVec at = {0};
  bool ok = nest_places(k, k->sink, &at);
  for (size_t i = at.len; ok && i-- > 0;) /* what reads a row comes before what fills it */
    if (is_plain(at.at[i].u)) ok = clip_loop(k, at.at[i].u->src[0]);
  vec_free(k->mem, &at);
  return ok;
}
