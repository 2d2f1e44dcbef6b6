/* nodes.c: builders of tensor-graph nodes. In: sources and an operation. Out: a node. Callers have checked
 * the shapes. Trivial operations return their source, and NULL gives NULL. */
#include "uop/nodes.h"

Scalar scalar_number(DType d, double v) {
  return dtype_is_float(d) ? (Scalar){.f = v} : scalar_cast(d, DT_F64, (Scalar){.f = v});
}

static UOp *move(UOpStore *st, Ops op, UOp *u, const Ints *arg) {
  return arg ? uop_new(st, op, (DType)u->dtype, 1, 1, &u, (Arg){.ints = arg}) : NULL;
}

UOp *u_reshape(UOpStore *st, UOp *u, int n, const int64_t *d) {
  if (!u) return NULL;
  const Ints *s = ints_get(st, n, d);
  if (!s) return NULL;
  if (u->is_tensor && u->shape == s) return u;
  /* a RESHAPE of a RESHAPE is kept, because a gradient of its source may be requested */
  return move(st, OPS_RESHAPE, u, s);
}

UOp *u_permute(UOpStore *st, UOp *u, const int64_t *order) {
  if (!u) return NULL;
  bool same = true;
  for (int i = 0; i < u->shape->n; i++)
    same = same && order[i] == i;
  return same ? u : move(st, OPS_PERMUTE, u, ints_get(st, u->shape->n, order));
}

UOp *u_expand(UOpStore *st, UOp *u, const int64_t *d) {
  if (!u) return NULL;
  const Ints *s = ints_get(st, u->shape->n, d);
  if (s && s == u->shape) return u;
  return move(st, OPS_EXPAND, u, s);
}

UOp *u_pad(UOpStore *st, UOp *u, const int64_t *lohi) {
  if (!u) return NULL;
  bool none = true;
  for (int i = 0; i < 2 * u->shape->n; i++)
    none = none && lohi[i] == 0;
  return none ? u : move(st, OPS_PAD, u, ints_get(st, 2 * u->shape->n, lohi));
}

UOp *u_shrink(UOpStore *st, UOp *u, const int64_t *be) {
  if (!u) return NULL;
  bool whole = true;
  for (int i = 0; i < u->shape->n; i++)
    whole = whole && be[2 * i] == 0 && be[2 * i + 1] == u->shape->v[i];
  return whole ? u : move(st, OPS_SHRINK, u, ints_get(st, 2 * u->shape->n, be));
}

UOp *u_flip(UOpStore *st, UOp *u, const int64_t *flags) {
  if (!u) return NULL;
  int64_t f[MAX_RANK];
  bool none = true;
  for (int i = 0; i < u->shape->n; i++) {
    f[i] = flags[i] != 0 && u->shape->v[i] != 0 && u->shape->v[i] != 1;
    none = none && !f[i];
  }
  return none ? u : move(st, OPS_FLIP, u, ints_get(st, u->shape->n, f));
}

UOp *u_full(UOpStore *st, DType dtype, Scalar v, const Ints *shape) {
  UOp *c = uop_const(st, dtype, v);
  if (!c || !shape) return NULL;
  const Ints *none = ints_get(st, 0, NULL);
  UOp *u = none ? move(st, OPS_RESHAPE, c, none) : NULL;
  return u_broadcast(st, u, shape);
}

UOp *u_size(UOpStore *st, int64_t size, DType dtype, const Ints *shape) {
  if (!dim_symbolic(size))
    return u_full(st, dtype, dtype_is_float(dtype) ? (Scalar){.f = (double)size} : (Scalar){.i = size},
                  shape);
  const Ints *none = ints_get(st, 0, NULL);
  UOp *v = uop_cast(st, dim_uop(st, store_mem(st), size), dtype);
  UOp *u = v && none ? move(st, OPS_RESHAPE, v, none) : NULL;
  return u_broadcast(st, u, shape);
}

UOp *u_num(UOpStore *st, double v, const UOp *like) {
  return like ? u_full(st, (DType)like->dtype, scalar_number((DType)like->dtype, v), like->shape) : NULL;
}

UOp *u_broadcast(UOpStore *st, UOp *u, const Ints *shape) {
  if (!u || !shape) return NULL;
  int64_t d[MAX_RANK];
  int lead = shape->n - u->shape->n;
  for (int i = 0; i < shape->n; i++)
    d[i] = i < lead ? 1 : u->shape->v[i - lead];
  return u_expand(st, u_reshape(st, u, shape->n, d), shape->v);
}

UOp *u_reduce(UOpStore *st, Ops op, UOp *u, const bool *mask) {
  if (!u) return NULL;
  int64_t axes[MAX_RANK], d[MAX_RANK];
  int n = 0;
  bool empty = false;
  for (int i = 0; i < u->shape->n; i++) {
    d[i] = mask[i] ? 1 : u->shape->v[i];
    if (mask[i] && u->shape->v[i] != 1) {
      axes[n++] = i;
      empty = empty || u->shape->v[i] == 0;
    }
  }
  if (n == 0) return u;
  if (empty)
    return u_full(st, (DType)u->dtype, op_identity(op, (DType)u->dtype), ints_get(st, u->shape->n, d));
  const Ints *l = ints_get(st, n, axes);
  return l ? uop_new(st, OPS_REDUCE_AXIS, (DType)u->dtype, 1, 1, &u, (Arg){.reduce = {l, op}}) : NULL;
}

UOp *u_drop(UOpStore *st, UOp *u, const bool *mask) {
  if (!u) return NULL;
  int64_t d[MAX_RANK];
  int n = 0;
  for (int i = 0; i < u->shape->n; i++)
    if (!mask[i]) d[n++] = u->shape->v[i];
  return u_reshape(st, u, n, d);
}

UOp *u_not(UOpStore *st, UOp *u) {
  return u ? uop_alu2(st, OPS_CMPNE, u, u_full(st, DT_BOOL, (Scalar){.i = 1}, u->shape)) : NULL;
}

UOp *u_arange(UOpStore *st, const Ints *shape, int axis, DType dtype) {
  if (!shape) return NULL;
  int64_t n = shape->v[axis], d[MAX_RANK];
  const Ints *l = ints_get(st, 1, &n);
  UOp *u = l ? uop_new(st, OPS_ARANGE, dtype, 1, 0, NULL, (Arg){.ints = l}) : NULL;
  for (int i = 0; i < shape->n; i++)
    d[i] = i == axis ? n : 1;
  return u_expand(st, u_reshape(st, u, shape->n, d), shape->v);
}

UOp *u_scan_axis(UOpStore *st, Ops op, UOp *u, DType dtype, int axis) {
  int64_t a = axis;
  const Ints *axes = u ? ints_get(st, 1, &a) : NULL;
  return axes ? uop_new(st, OPS_SCAN_AXIS, dtype, 1, 1, &u, (Arg){.reduce = {axes, op}}) : NULL;
}
