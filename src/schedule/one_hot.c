/* one_hot.c: sums of which only one iteration counts. In: a sum over loops. Out: the sum without a loop r
 * whose terms are zero except where r == n. It is replaced by its term at r = n, if r has that iteration, so
 * a sum over a one-hot vector becomes a read, and the vector is never computed. Zero is added to the term, as
 * in the sum: -0.0 gives 0.0. */
#include "schedule/stage.h"
#include "uop/rules.h"

/* The value that c compares loop r with, if it does not move with r; otherwise NULL. */
static UOp *compared(Sched *s, const UOp *c, UOp *r) {
  for (int i = 0; i < 2 && c->op == OPS_CMPEQ; i++) {
    UOp *n = c->src[i], *iter = c->src[!i];
    while (iter->op == OPS_CAST && fits(r, iter->dtype))
      iter = iter->src[0];
    if (iter == r && dtype_is_int((DType)n->dtype) && n->dtype != DT_U64 && !ranges_within(s, r, n)) return n;
  }
  return NULL;
}

static bool is_zero(const UOp *u) {
  return is_const(u) && (dtype_is_float((DType)u->dtype) ? u->arg.v.f == 0 : u->arg.v.i == 0);
}

/* A walk over the nodes that matter where condition c does not hold. */
typedef struct Reach {
  Sched *s;
  UOp *c;
  UOpMap *seen;
  UOpVec todo;
} Reach;

static bool reach(Reach *w, UOp *u) {
  if (uop_map_get(w->seen, u)) return true;
  return uop_map_put(w->s->st, w->seen, u, u) && vec_push(w->s->mem, &w->todo, u);
}

/* Visits the sources of u that matter where c does not hold. Returns false if out of memory. */
static bool reach_sources(Reach *w, UOp *u) {
  Sched *s = w->s;
  int first = 0;
  if (u->op == OPS_WHERE) {
    UOp *no = uop_const_int(s->st, DT_BOOL, 0);
    UOp *chosen = no ? uop_substitute(s->st, s->mem, u->src[0], 1, &w->c, &no) : NULL;
    if (!(chosen = uop_simplify(s->st, s->mem, chosen)) || !reach(w, u->src[0])) return false;
    first = is_const_int(chosen, 0) ? 2 : 1;
  }
  for (int i = first; i < u->nsrc; i++)
    if (!reach(w, u->src[i])) return false;
  return true;
}

/* *can: whether x can be evaluated at another place of loop r. What it reads along r must be memory, and be
 * read only where c holds, because no other place is sure to be in bounds. Returns false if out of memory. */
static bool can_move(Sched *s, UOp *x, UOp *r, UOp *c, bool *can) {
  Reach w = {.s = s, .c = c, .seen = uop_map_begin(s->st, s->st)};
  UOpVec order = {0};
  bool ok = w.seen && uop_toposort(s->st, s->mem, &x, 1, &order) && reach(&w, x);
  while (ok && w.todo.len)
    ok = reach_sources(&w, w.todo.at[--w.todo.len]);
  *can = true;
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    if (u->op != OPS_INDEX || !ranges_within(s, r, u)) continue;
    int q = read_stage(u);
    *can &= (q < 0 || stage_at(s, q)->in_memory) && !uop_map_get(w.seen, u);
  }
  uop_map_end(s->st, w.seen);
  vec_free(s->mem, &order), vec_free(s->mem, &w.todo);
  return ok;
}

/* Term x in the one iteration of loop r where c holds, gated by whether r has that iteration; *found is then
 * true. Returns x if c selects no single iteration, and NULL if out of memory. */
static UOp *one_hot_of(Sched *s, UOp *x, UOp *r, UOp *c, bool *found) {
  UOpStore *st = s->st;
  UOp *n = compared(s, c, r);
  if (!n) return x;
  UOp *no = uop_const_int(st, DT_BOOL, 0), *yes = uop_const_int(st, DT_BOOL, 1);
  UOp *rest = no ? uop_simplify(st, s->mem, uop_substitute(st, s->mem, x, 1, &c, &no)) : NULL;
  if (!rest || !is_zero(rest)) return rest ? x : NULL;
  if (!can_move(s, x, r, c, found)) return NULL;
  if (!*found) return x;
  UOp *at = uop_cast(st, n, DT_INDEX);
  UOp *after_first = uop_alu2(st, OPS_CMPNE, uop_alu2(st, OPS_CMPLT, at, uop_index_const(st, 0)), yes);
  UOp *gets_there = uop_alu2(st, OPS_AND, after_first, uop_alu2(st, OPS_CMPLT, at, r->src[0]));
  UOp *from[2] = {c, r}, *to[2] = {gets_there, at};
  return uop_simplify(st, s->mem, uop_substitute(st, s->mem, x, 2, from, to));
}

UOp *one_hot_dropped(Sched *s, UOp *u) {
  UOp *src[MAX_RANK + 1] = {u->src[0]}, *x = u->src[0];
  UOpVec order = {0};
  int n = 1;
  bool ok = true;
  if (NEVER(u->nsrc > (int)TG_COUNT(src))) return u;
  for (int i = 1; ok && i < u->nsrc; i++) {
    bool found = false;
    order.len = 0;
    ok = uop_toposort(s->st, s->mem, &x, 1, &order);
    for (size_t k = 0; ok && !found && k < order.len; k++) {
      UOp *v = one_hot_of(s, x, u->src[i], order.at[k], &found);
      ok = v != NULL;
      if (ok) x = v;
    }
    if (!found) src[n++] = u->src[i];
  }
  vec_free(s->mem, &order);
  if (!ok) return NULL;
  if (n == u->nsrc) return u;
  src[0] = x;
  if (n == 1) return uop_alu2(s->st, OPS_ADD, x, uop_const_int(s->st, (DType)x->dtype, 0));
  return uop_new(s->st, OPS_REDUCE, (DType)u->dtype, 1, n, src, u->arg);
}
