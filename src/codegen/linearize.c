/* linearize.c: graph -> list. In: SINK of STOREs over loop ranges. Out: Linear: loops opened and closed,
 * accumulators explicit, index arithmetic as int64, or as int32 where bounds prove that it fits and the
 * target gains by it; its divisions by constants as decompose.c says.
 *
 * Loops form a tree: a STORE lists its loops outside in; a REDUCE's loops hang below the deepest loop it
 * depends on. A node belongs to the deepest loop below it, so what does not change in a loop stands before
 * it. Stores of a block come last in it: every load of the old contents is done. Reductions and local fills
 * over the same ranges share one loop; AFTER(local, fill..) orders its readers behind it. */
#include "codegen/codegen.h"
#include <stdio.h>
#include <string.h>

typedef struct Loop {
  UOp *range;
  int parent, depth;
  UOpVec body, stores;
  bool closed;
  UOpVec members;
} Loop; /* loop 0 is the kernel */

typedef struct Lin {
  Kernel *k;
  Vec(Loop) loops;
  UOp **repl;
  int *home, *loop_of,
      *late;      /* where a node stands; a RANGE's loop; the innermost loop that is around all users */
  uint8_t *state; /* 1 on the stack, 2 emitted */
  UOpMap *listed; /* nodes of the program: lowering may meet one again */
  bool
      *updates; /* by PARAM slot: a store in an ordered loop writes it, so what is read of it changes there */
  bool *output; /* STOREs of the SINK; the others fill local memory */
  int64_t nreg;
  DType ix;
  uint32_t nid;
  UOpVec splats, made; /* constants in every lane, parts of divisions: made here */
} Lin;

static int loop_add(Lin *l, UOp *range, int parent) {
  int have = l->loop_of[range->id];
  if (have >= 0) return l->loops.at[have].parent == parent ? have : -1;
  Loop lp = {.range = range, .parent = parent, .depth = l->loops.at[parent].depth + 1};
  if (!vec_push(l->k->mem, &l->loops, lp)) return -1;
  return l->loop_of[range->id] = (int)l->loops.len - 1;
}

static int nvalues(const UOp *r) { /* sources before the ranges of a REDUCE or STORE */
  int n = 0;
  while (n < r->nsrc && r->src[n]->op != OPS_RANGE)
    n++;
  return n;
}

/* A REDUCE, or a STORE that fills local memory, ends a loop nest of its own; those over the same ranges share
 * it. */
static bool ends_nest(const Lin *l, const UOp *u) {
  return (u->op == OPS_REDUCE || (u->op == OPS_STORE && !l->output[u->id])) && nvalues(u) < u->nsrc;
}

static Loop *nest_of(Lin *l, const UOp *u) { return &l->loops.at[l->loop_of[u->src[nvalues(u)]->id]]; }

static bool emit(Lin *l, int loop, UOp *u) { return u && vec_push(l->k->mem, &l->loops.at[loop].body, u); }

static bool splat_emit(Lin *l, UOp *u) { /* a constant in every lane: defined once, before all loops */
  if (!u) return false;
  if (u->id < l->nid) {
    if (l->state[u->id] == 2) return true;
    l->state[u->id] = 2, l->repl[u->id] = u;
    return emit(l, 0, u);
  }
  for (size_t i = 0; i < l->splats.len; i++)
    if (l->splats.at[i] == u) return true;
  return vec_push(l->k->mem, &l->splats, u) && emit(l, 0, u);
}

/* part of a division by a constant; the quotient of a division is that of its remainder too */
static bool made_emit(Lin *l, int loop, UOp *u) {
  UOpVec *body = &l->loops.at[loop].body;
  if (!u) return false;
  for (size_t i = 0; i < body->len; i++)
    if (body->at[i] == u) return true;
  return vec_push(l->k->mem, &l->made, u) && emit(l, loop, u);
}

static DType lowered(Lin *l, const UOp *u) { return u->dtype == DT_INDEX ? l->ix : (DType)u->dtype; }

static bool loop_splice(Lin *l, int loop) {
  for (size_t i = 1; i < l->loops.len; i++) /* what is open in it closes with it; a loop is closed once */
    if (l->loops.at[i].parent == loop && !l->loops.at[i].closed && !loop_splice(l, (int)i)) return false;
  if (l->loops.at[loop].closed || l->loops.at[l->loops.at[loop].parent].closed) return false;
  Loop *lp = &l->loops.at[loop], *up = &l->loops.at[lp->parent];
  TgMem *m = l->k->mem;
  UOp *range = l->repl[lp->range->id];
  bool ok = vec_push(m, &up->body, range);
  for (size_t i = 0; ok && i < lp->body.len; i++)
    ok = vec_push(m, &up->body, lp->body.at[i]);
  for (size_t i = 0; ok && i < lp->stores.len; i++)
    ok = vec_push(m, &up->body, lp->stores.at[i]);
  lp->closed = true;
  UOp *end = UNEW(l->k->st, OPS_END, DT_VOID, 1, ARG0, range);
  return ok && end && vec_push(m, &up->body, end);
}

static UOp *acc_step(Lin *l, Ops op, UOp *acc, UOp *v, UOp *const *repl) {
  UOpStore *st = l->k->st;
  if (op == OPS_ADD && v->op == OPS_MUL && dtype_is_float((DType)v->dtype) && v->dtype >= DT_F32)
    return UNEW(st, OPS_MULACC, (DType)v->dtype, v->lanes, ARG0, repl[v->src[0]->id], repl[v->src[1]->id],
                acc);
  return uop_alu2(st, op, acc, repl[v->id]);
}

/* A register with the identity of reduction u, in loop `home`. */
static UOp *acc_new(Lin *l, const UOp *u, int home) {
  UOpStore *st = l->k->st;
  DType d = lowered(l, u);
  UOp *reg = uop_new(st, OPS_DEFINE_REG, d, u->lanes, 0, NULL, (Arg){.param = {1, l->nreg++}});
  UOp *one = uop_const(st, d, op_identity((Ops)u->arg.reduce.op, d)),
      *id = one && u->lanes > 1 ? UNEW(st, OPS_VECTORIZE, d, u->lanes, ARG0, one) : one;
  if (!emit(l, home, reg) || !emit(l, 0, one) || (u->lanes > 1 && !splat_emit(l, id))) return NULL;
  return emit(l, home, UNEW(st, OPS_STORE, DT_VOID, 1, ARG0, reg, id)) ? reg : NULL;
}

/* A carried value: one more step of its register in every turn of the loop, which is the innermost of its
 * store. */
static bool scan_emit(Lin *l, UOp *u) {
  UOpStore *st = l->k->st;
  int loop = l->loop_of[u->src[1]->id];
  if (loop < 0 || l->home[u->id] != loop) return false;
  UOp *reg = acc_new(l, u, l->loops.at[loop].parent);
  UOp *acc = reg ? UNEW(st, OPS_LOAD, lowered(l, u), u->lanes, ARG0, reg, l->repl[u->src[1]->id]) : NULL;
  UOp *next = acc ? uop_alu2(st, (Ops)u->arg.reduce.op, acc, l->repl[u->src[0]->id]) : NULL;
  l->repl[u->id] = next, l->state[u->id] = 2;
  return emit(l, loop, acc) && emit(l, loop, next) &&
         emit(l, loop, UNEW(st, OPS_STORE, DT_VOID, 1, ARG0, reg, next));
}

static bool nest_emit(Lin *l, int outer) { /* all members of the loop nest that starts at `outer` */
  UOpStore *st = l->k->st;
  UOp *first = l->loops.at[outer].members.at[0];
  int inner = outer, home = l->loops.at[outer].parent;
  for (int i = nvalues(first); i < first->nsrc; i++)
    inner = l->loop_of[first->src[i]->id];
  UOp *inner_range = l->repl[l->loops.at[inner].range->id];
  for (size_t m = 0; m < l->loops.at[outer].members.len; m++) {
    UOp *u = l->loops.at[outer].members.at[m];
    if (u->op == OPS_STORE) {
      UOp *s = l->repl[u->id] =
          UNEW(st, OPS_STORE, DT_VOID, 1, ARG0, l->repl[u->src[0]->id], l->repl[u->src[1]->id]);
      if (!s || !vec_push(l->k->mem, &l->loops.at[inner].stores, s)) return false;
      continue;
    }
    DType d = lowered(l, u);
    UOp *reg = acc_new(l, u, home);
    if (!reg) return false;
    UOp *acc = UNEW(st, OPS_LOAD, d, u->lanes, ARG0, reg, inner_range);
    if (!emit(l, inner, acc)) return false;
    for (int i = 0, n = nvalues(u); i < n; i++) {
      acc = acc_step(l, (Ops)u->arg.reduce.op, acc, u->src[i], l->repl);
      if (!emit(l, inner, acc)) return false;
    }
    if (!emit(l, inner, UNEW(st, OPS_STORE, DT_VOID, 1, ARG0, reg, acc))) return false;
    l->repl[u->id] = UNEW(st, OPS_LOAD, d, u->lanes, ARG0, reg,
                          UNEW(st, OPS_END, DT_VOID, 1, ARG0, l->repl[l->loops.at[outer].range->id]));
    if (!l->repl[u->id]) return false;
  }
  for (int i = inner; i != home; i = l->loops.at[i].parent)
    if (!loop_splice(l, i)) return false;
  for (size_t m = 0; m < l->loops.at[outer].members.len; m++) {
    UOp *u = l->loops.at[outer].members.at[m];
    if (u->op == OPS_REDUCE && !emit(l, home, l->repl[u->id])) return false;
    l->state[u->id] = 2;
  }
  return true;
}

static bool fma_value(const UOp *red, const UOp *v) {
  return red->op == OPS_REDUCE && red->arg.reduce.op == OPS_ADD && v->op == OPS_MUL &&
         dtype_is_float((DType)v->dtype) && v->dtype >= DT_F32;
}

static bool around(const Lin *l, int outer, int inner) { /* outer is inner, or a loop around it */
  while (l->loops.at[inner].depth > l->loops.at[outer].depth)
    inner = l->loops.at[inner].parent;
  return inner == outer;
}

/* k-th thing that must be there before u can be emitted, or NULL */
static UOp *dependency(Lin *l, UOp *u, int k) {
  if (!ends_nest(l, u)) return k < u->nsrc ? u->src[k] : NULL;
  Loop *lp = nest_of(l, u);
  for (size_t m = 0; m < lp->members.len; m++) {
    UOp *r = lp->members.at[m];
    for (int i = 0; i < r->nsrc; i++) {
      bool f = fma_value(r, r->src[i]);
      int n = f ? 2 : 1;
      if (k < n) return f ? r->src[i]->src[k] : r->src[i];
      k -= n;
    }
  }
  int outer =
      l->loop_of[u->src[nvalues(u)]->id]; /* it closes behind them: stores that stand in it come first */
  for (int i = 0; i < l->k->sink->nsrc; i++) {
    UOp *o = l->k->sink->src[i];
    if (o->nsrc > 2 && around(l, outer, l->loop_of[o->src[o->nsrc - 1]->id]) && k-- == 0) return o;
  }
  return NULL;
}

static bool node_emit(Lin *l, UOp *u) {
  UOpStore *st = l->k->st;
  UOp *buf[70], *r;
  if (ends_nest(l, u)) return nest_emit(l, l->loop_of[u->src[nvalues(u)]->id]);
  if (u->op == OPS_SCAN) return scan_emit(l, u);
  UOp **src = u->nsrc <= 70 ? buf : mem_alloc(l->k->mem, u->nsrc * sizeof *src);
  if (!src) return false;
  for (int i = 0; i < u->nsrc; i++)
    src[i] = l->repl[u->src[i]->id];
  DType d = lowered(l, u);
  l->state[u->id] = 2;
  if (u->op == OPS_STORE && l->output[u->id]) {
    int loop = u->nsrc > 2 ? l->loop_of[u->src[u->nsrc - 1]->id] : 0;
    if (l->loops.at[loop].closed) return false; /* a store is never lost */
    r = uop_new(st, OPS_STORE, DT_VOID, 1, 2, src, ARG0);
    return r && vec_push(l->k->mem, &l->loops.at[loop].stores, r);
  }
  if (u->op == OPS_CAST && src[0]->dtype == d) {
    l->repl[u->id] = src[0];
    return true;
  }
  if (u->dtype == DT_INDEX && u->nsrc == 2 && l->k->ren) {
    UOp *part[DIVIDE_NODES];
    int n = divide_index(st, u, src[0], part);
    for (int i = 0; i < n; i++)
      if (!made_emit(l, part[i]->op == OPS_CONST ? 0 : l->home[u->id], part[i])) return false;
    if (n) {
      if (src != buf) mem_free(l->k->mem, src);
      l->repl[u->id] = part[n - 1];
      return true;
    }
  }
  r = u->op == OPS_CONST ? uop_const(st, d, u->arg.v)
                         : uop_new(st, (Ops)u->op, d, u->lanes, u->nsrc, src, u->arg);
  if (src != buf) mem_free(l->k->mem, src);
  if (!r) return false;
  bool again = r != u && r->id < l->nid && l->state[r->id] == 2 && u->op != OPS_CONST &&
               l->repl[r->id] == r; /* lowering met an equal node */
  again |= u->op != OPS_CONST && uop_map_get(l->listed, r) != NULL;
  for (size_t i = 0; i < l->made.len; i++)
    again |= l->made.at[i] == r && r->op != OPS_CONST;
  l->repl[u->id] = r;
  if (u->op == OPS_RANGE || again) return true;
  if (!uop_map_put(st, l->listed, r, r)) return false;
  return emit(l, u->op == OPS_PARAM || u->op == OPS_CONST || u->op == OPS_DEFINE_LOCAL ? 0 : l->home[u->id],
              r);
}

static int common(const Lin *l, int a, int b) { /* the deepest loop around both */
  while (a != b) {
    if (l->loops.at[a].depth >= l->loops.at[b].depth)
      a = l->loops.at[a].parent;
    else
      b = l->loops.at[b].parent;
  }
  return a;
}

static int
earliest(const Lin *l,
         const UOp *u) { /* the outermost loop in which a nest can stand: the deepest that it depends on */
  int at = 0;
  uint64_t open = u->ranges;
  if (u->op == OPS_STORE)
    for (int k = nvalues(u); k < u->nsrc; k++)
      open &= ~(1ull << (u->src[k]->arg.range.id & 63));
  for (size_t j = 1; j < l->loops.len; j++)
    if ((open >> (l->loops.at[j].range->arg.range.id & 63) & 1) &&
        l->loops.at[j].depth > l->loops.at[at].depth)
      at = (int)j;
  return at;
}

static bool loops_build(Lin *l, UOpVec *order) {
  UOp *sink = l->k->sink;
  for (int i = 0; i < sink->nsrc; i++) {
    UOp *s = sink->src[i];
    int at = 0;
    for (int k = 2; k < s->nsrc; k++)
      if ((at = loop_add(l, s->src[k], at)) < 0) return false;
    l->late[s->id] = at;
    for (int k = 2; k < s->nsrc; k++)
      if (s->src[k]->arg.range.type == AXIS_ORDERED && s->src[0]->src[0]->op == OPS_PARAM)
        l->updates[s->src[0]->src[0]->arg.param.slot] = true;
  }
  for (size_t i = order->len; i-- > 0;) { /* users first: the loops around a nest are known before its own */
    UOp *u = order->at[i];
    if (u->op == OPS_SINK) continue;
    int at = l->late[u->id];
    if (ends_nest(l, u)) {
      int nv = nvalues(u), most = at, have = l->loop_of[u->src[nv]->id], want;
      at = want = earliest(l, u);
      if (have >= 0)
        want = l->loops.at[have].parent; /* others share its loops: it stands with them, if those who use it
                                            are in there too */
      else
        for (size_t j = 0; j < i; j++) {
          const UOp *o = order->at[j];
          if (!ends_nest(l, o) || o->src[nvalues(o)] != u->src[nv]) continue;
          int e = earliest(l, o);
          if (l->loops.at[e].depth > l->loops.at[want].depth) want = e;
        }
      if (around(l, at, want) && around(l, want, most)) at = want;
      for (int k = nv; k < u->nsrc; k++)
        if ((at = loop_add(l, u->src[k], at)) < 0) return false;
      Loop *lp = nest_of(l, u);
      if (lp->members.len && lp->members.at[0]->nsrc - nvalues(lp->members.at[0]) != u->nsrc - nv)
        return false;
      if (!vec_push(l->k->mem, &lp->members, u)) return false;
    }
    for (int k = 0; k < u->nsrc; k++) {
      int *late = &l->late[u->src[k]->id];
      *late = *late < 0 ? at : common(l, *late, at);
    }
  }
  for (size_t i = 0; i < order->len; i++) { /* home: the deepest loop below */
    UOp *u = order->at[i];
    int at = 0;
    if (u->op == OPS_RANGE)
      at = l->loop_of[u->id];
    else if (ends_nest(l, u))
      at = nest_of(l, u)->parent;
    else
      for (int k = 0; k < u->nsrc; k++)
        if (l->loops.at[l->home[u->src[k]->id]].depth > l->loops.at[at].depth) at = l->home[u->src[k]->id];
    const UOp *place = u->op == OPS_LOAD && u->src[0]->op == OPS_INDEX ? u->src[0]->src[0] : NULL;
    if (place && place->op == OPS_PARAM && l->updates[place->arg.param.slot])
      at = l->late[u->id]; /* in the turn that uses it */
    if (at < 0) return false;
    l->home[u->id] = at;
  }
  return true;
}

bool linearize(Kernel *k, Arena *arena, Linear *out) {
  Lin l = {.k = k, .ix = DT_I64};
  UOpVec order = {0};
  Vec(UOp *) stack = {0};
  Vec(int) next = {0};
  uint32_t n = store_id_limit(k->st) + 1;
  TgMem *m = k->mem;
  l.nid = n;
  bool ok = uop_toposort(k->st, m, &k->sink, 1, &order);
  int64_t nslot = 1;
  for (size_t i = 0; i < order.len; i++)
    if (order.at[i]->op == OPS_PARAM) nslot = TG_MAX(nslot, order.at[i]->arg.param.slot + 1);
  l.repl = mem_alloc(m, n * sizeof *l.repl), l.home = mem_alloc(m, n * sizeof *l.home),
  l.loop_of = mem_alloc(m, n * sizeof *l.loop_of), l.late = mem_alloc(m, n * sizeof *l.late);
  l.state = mem_alloc(m, n), l.output = mem_alloc(m, n), l.updates = mem_alloc(m, (size_t)nslot),
  l.listed = uop_map_begin(k->st, k->st);
  ok = ok && l.updates && l.listed && l.repl && l.home && l.loop_of && l.late && l.state && l.output &&
       vec_push(m, &l.loops, ((Loop){.parent = -1}));
  for (uint32_t i = 0; ok && i < n; i++)
    l.loop_of[i] = l.late[i] = -1;
  for (int i = 0; ok && i < k->sink->nsrc; i++)
    l.output[k->sink->src[i]->id] = true;
  if (ok && k->ren &&
      k->ren->has_local) { /* a GPU multiplies 32-bit integers faster; a CPU addresses with 64 */
    l.ix = DT_I32;
    for (size_t i = 0; i < order.len; i++)
      if (order.at[i]->dtype == DT_INDEX && (order.at[i]->vmin < INT32_MIN || order.at[i]->vmax > INT32_MAX))
        l.ix = DT_I64;
  }
  ok = ok && loops_build(&l, &order);
  for (size_t i = 0; ok && i < order.len; i++) /* pointers first, in slot order by first use */
    if (order.at[i]->op == OPS_PARAM)
      out->nparam = TG_MAX(out->nparam, (int)order.at[i]->arg.param.slot + 1),
      ok = node_emit(&l, order.at[i]);
  for (int s = 0; ok && s < k->sink->nsrc; s++) {
    ok = vec_push(m, &stack, k->sink->src[s]) && vec_push(m, &next, 0);
    while (ok && stack.len) {
      UOp *u = stack.at[stack.len - 1], *d;
      if (l.state[u->id] == 2) {
        stack.len--, next.len--;
        continue;
      }
      l.state[u->id] = 1;
      if ((d = dependency(&l, u, next.at[next.len - 1]++))) {
        if (l.state[d->id] == 1)
          ok = false; /* two members of one nest that wait for each other */
        else if (l.state[d->id] != 2)
          ok = vec_push(m, &stack, d) && vec_push(m, &next, 0);
        continue;
      }
      ok = node_emit(&l, u);
      stack.len--, next.len--;
    }
  }
  /* what is still open are the loops of stores: close them, deepest first, in the order they were made */
  int deepest = 0;
  for (size_t i = 0; i < l.loops.len; i++)
    deepest = TG_MAX(deepest, l.loops.at[i].depth);
  for (int d = deepest; ok && d > 0; d--)
    for (size_t i = 1; ok && i < l.loops.len; i++)
      if (l.loops.at[i].depth == d && !l.loops.at[i].closed) ok = loop_splice(&l, (int)i);
  if (ok) {
    UOpVec *b = &l.loops.at[0].body, *s = &l.loops.at[0].stores;
    out->n = (int)(b->len + s->len);
    out->at = arena_array(arena, UOp *, out->n + 1);
    ok = out->at != NULL;
    if (ok && b->len) memcpy(out->at, b->at, b->len * sizeof *b->at);
    if (ok && s->len) memcpy(out->at + b->len, s->at, s->len * sizeof *s->at);
  }
  for (size_t i = 0; i < l.loops.len; i++)
    vec_free(m, &l.loops.at[i].body), vec_free(m, &l.loops.at[i].stores), vec_free(m, &l.loops.at[i].members);
  vec_free(m, &l.loops), vec_free(m, &l.splats), vec_free(m, &l.made), vec_free(m, &order),
      vec_free(m, &stack), vec_free(m, &next);
  uop_map_end(k->st, l.listed);
  mem_free(m, l.repl), mem_free(m, l.home), mem_free(m, l.loop_of), mem_free(m, l.late), mem_free(m, l.state),
      mem_free(m, l.output), mem_free(m, l.updates);
  return ok;
}
