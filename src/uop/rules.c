/* rules.c: the functions of the rule language that are longer than a line. */
#include "uop/rules.h"
#include <math.h>

bool rule_is(const UOp *u, int64_t v) {
  if (!is_const(u)) return false;
  return in_float(u) ? u->arg.v.f == (double)v && !(v == 0 && signbit(u->arg.v.f)) : u->arg.v.i == v;
}

UOp *rule_const(Rewrite *rw, const UOp *self, DType d, int64_t v) {
  return self->lanes == 1 ? uop_const_int(rw->st, d, v) : NULL;
}

UOp *rule_real(Rewrite *rw, const UOp *self, DType d, double v) {
  return self->lanes == 1 && dtype_is_float(d) ? uop_const(rw->st, d, (Scalar){.f = v}) : NULL;
}

UOp *rule_new(Rewrite *rw, Ops op, DType d, Arg arg, int n, const UOpList *lists) {
  UOp *room[16], **src = room;
  int nsrc = 0, at = 0, lanes;
  DType own;
  for (int i = 0; i < n; i++)
    nsrc += lists[i].n;
  if (nsrc > 16 && !(src = mem_alloc(rw->mem, (size_t)nsrc * sizeof *src))) return rw->failed = true, NULL;
  bool made = true; /* all sources could be made */
  for (int i = 0; i < n; i++)
    for (int k = 0; k < lists[i].n; k++)
      made &= (src[at++] = lists[i].at[k]) != NULL;
  UOp *u = NULL;
  if (made) {
    uop_type_default(op, nsrc, src, &own, &lanes);
    u = uop_new(rw->st, op, d == DT_COUNT ? own : d, lanes, nsrc, src, arg);
  }
  if (src != room) mem_free(rw->mem, src);
  return u;
}

UOp *rule_made(Rewrite *rw, Ops op, int n, UOp *a, UOp *b, UOp *c) {
  return rule_new(rw, op, DT_COUNT, ARG0, 1, &(UOpList){(UOp *[]){a, b, c}, n});
}

UOp *rule_new3(Rewrite *rw, Ops op, UOp *a, UOp *b, UOp *c) {
  return a ? UNEW(rw->st, op, (DType)a->dtype, a->lanes, ARG0, a, b, c) : NULL;
}

static bool index_leaves(Ops op, int64_t a, int64_t b) { /* the result is not an int64, or not defined */
  int64_t r;
  switch (op) {
  case OPS_NEG: return a == INT64_MIN;
  case OPS_ADD: return __builtin_add_overflow(a, b, &r);
  case OPS_SUB: return __builtin_sub_overflow(a, b, &r);
  case OPS_MUL: return __builtin_mul_overflow(a, b, &r);
  case OPS_CDIV:
  case OPS_CMOD:
  case OPS_FLOORDIV:
  case OPS_FLOORMOD: return b == 0 || (a == INT64_MIN && b == -1);
  default: return false;
  }
}

UOp *rule_fold(Rewrite *rw, Ops op, DType to, UOp *a, UOp *b, UOp *c) {
  UOp *src[3] = {a, b, c};
  Scalar v[3] = {{0}, {0}, {0}}, r;
  for (int i = 0; i < op_nsrc(op); i++) {
    if (!src[i] || !is_const(src[i])) return NULL;
    v[i] = src[i]->arg.v;
  }
  DType d = (DType)a->dtype;
  if (op == OPS_CAST) return uop_const(rw->st, to, scalar_cast(to, d, v[0]));
  if (d == DT_INDEX && index_leaves(op, v[0].i, v[1].i)) return NULL;
  if (!scalar_eval(op, d, v, &r)) return NULL;
  return uop_const(rw->st, op_flags(op) & OPF_CMP ? DT_BOOL : d, r);
}

bool is_power(const UOp *c) {
  uint64_t v = (uint64_t)c->arg.v.i;
  return v && !(v & (v - 1)) && (c->dtype == DT_U64 || c->arg.v.i > 0);
}

bool is_least(const UOp *c) { return c->arg.v.i == dtype_min((DType)c->dtype); }

bool is_plus(const UOp *n) { return dtype_is_unsigned((DType)n->dtype) || n->vmin >= 0; }

bool has_one_value(const UOp *u) {
  return in_int(u) && u->dtype != DT_U64 && u->lanes == 1 && u->vmin == u->vmax;
}

bool fits(const UOp *n, int dtype) {
  DType d = (DType)dtype;
  return !in_float(n) && !dtype_is_float(d) && d != DT_U64 && n->vmin != INT64_MIN && n->vmax != INT64_MAX &&
         n->vmin >= dtype_min(d) && n->vmax <= dtype_max(d);
}

bool same_as_index(const UOp *cast) {
  DType d = (DType)cast->dtype;
  return d == DT_I64 ||
         (d != DT_U64 && d != DT_BOOL && cast->vmin > dtype_min(d) && cast->vmax < dtype_max(d));
}

bool is_neutral(const UOp *reduce, const UOp *c) {
  Scalar none = op_identity((Ops)reduce->arg.reduce.op, (DType)c->dtype);
  if (!in_float(c)) return c->arg.v.i == none.i;
  return c->arg.v.f == none.f && signbit(c->arg.v.f) == signbit(none.f);
}

bool in_loops(const UOp *u, UOpList loops) {
  uint64_t own = 0;
  for (int i = 0; i < loops.n; i++)
    own |= loops.at[i]->ranges;
  return u->ranges & own;
}

UOp *uop_answer(UOpStore *st, TgMem *mem, Matcher m, void *ctx, UOp *root) {
  Rewrite rw = {.st = st, .mem = mem, .ctx = ctx, .required = true, .ops = MARKS};
  UOp *u = graph_rewrite(&rw, m, root);
  return u && (u->opmask & MARKS) ? NULL : u;
}

UOp *uop_simplify(UOpStore *st, TgMem *mem, UOp *u) {
  Rewrite rw = {.st = st, .mem = mem, .mark = MARK_SIMPLE};
  return graph_rewrite(&rw, pm_symbolic, u);
}
