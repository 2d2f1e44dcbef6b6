/* order.c: running reductions. In: a tensor and an axis. Out: SCAN_AXIS and GATHER nodes. */
#include "tensor/front.h"
#include <float.h>

/* ---- running reductions */
typedef struct Along {
  TgContext *ctx;
  UOpStore *st;
  int axis;
  bool scalar;
} Along;

static bool along(const char *op, TgTensor *x, int axis, Along *a) {
  if (!x) return false;
  *a = (Along){.ctx = x->ctx, .st = x->ctx->store, .scalar = rank(x) == 0 && (axis == 0 || axis == -1)};
  return a->scalar || (a->axis = axis_get(x->ctx, op, axis, rank(x))) >= 0;
}

TgTensor *tg_cumsum(TgTensor *x, int axis) {
  Along a;
  if (!along("cumsum", x, axis, &a)) return NULL;
  DType acc = sum_dtype(dt(x));
  UOp *u = uop_cast(a.st, x->uop, acc);
  return tensor_new(a.ctx, uop_cast(a.st, a.scalar ? u : u_scan(a.st, OPS_ADD, u, a.axis),
                                    dtype_is_float(dt(x)) ? dt(x) : acc));
}

TgTensor *tg_cumprod(TgTensor *x, int axis) {
  Along a;
  if (!along("cumprod", x, axis, &a)) return NULL;
  if (a.scalar) return tensor_new(a.ctx, x->uop);
  DType acc = dtype_is_float(dt(x)) ? sum_dtype(dt(x)) : dt(x);
  return tensor_new(a.ctx, uop_cast(a.st, u_scan(a.st, OPS_MUL, uop_cast(a.st, x->uop, acc), a.axis), dt(x)));
}

static TgTensor *running(const char *op, TgTensor *x, int axis, TgTensor **indices, bool min) {
  Along a;
  if (indices) *indices = NULL;
  if (!along(op, x, axis, &a)) return NULL;
  UOp *at;
  if (a.scalar)
    at = u_full(a.st, DT_I32, (Scalar){.i = 0}, x->uop->shape);
  else {
    UOp *u = uop_alu1(a.st, OPS_DETACH, x->uop);
    if (dt(x) == DT_BOOL) u = uop_cast(a.st, u, DT_U8);
    if (min) u = u_reversed(a.st, u);
    at = u_first_of_max(a.st, u, u_scan(a.st, OPS_MAX, u, a.axis), a.axis);
  }
  TgTensor *i = tensor_new(a.ctx, at);
  if (indices) *indices = i;
  return a.scalar || !i ? (i ? tensor_new(a.ctx, x->uop) : NULL)
                        : tensor_new(a.ctx, u_pick(a.st, x->uop, a.axis, i->uop));
}

TgTensor *tg_cummax(TgTensor *x, int axis, TgTensor **indices) {
  return running("cummax", x, axis, indices, false);
}

TgTensor *tg_cummin(TgTensor *x, int axis, TgTensor **indices) {
  return running("cummin", x, axis, indices, true);
}

/* Clamps x to the finite numbers. A NaN stays. */
static UOp *finite_of(UOpStore *st, UOp *x) {
  double end = x && x->dtype == DT_F64 ? DBL_MAX : FLT_MAX;
  UOp *most = u_num(st, end, x), *least = u_num(st, -end, x);
  x = uop_where(st, uop_alu2(st, OPS_CMPLT, most, x), most, x);
  return uop_where(st, uop_alu2(st, OPS_CMPLT, x, least), least, x);
}

/* log(sum of e^x) is log(sum of e^(x - m)) + m. With m the running maximum of x, no sum overflows. The
 * running sum is made by doubling: step 1, 2, 4, .. adds the sum that ended that many places before. That
 * sum was made with a smaller m, so it is rescaled. */
TgTensor *tg_logcumsumexp(TgTensor *x, int axis) {
  Along a;
  if (!along("logcumsumexp", x, axis, &a)) return NULL;
  UOpStore *st = a.st;
  DType d = dtype_as_float(dt(x)), acc = sum_dtype(d);
  UOp *u = uop_cast(st, x->uop, acc);
  if (a.scalar || nelem(x) == 0) return tensor_new(a.ctx, uop_cast(st, u, d));
  int64_t n = dim_max(st, dims(x)[a.axis]);
  UOp *m = finite_of(st, u_scan(st, OPS_MAX, uop_alu1(st, OPS_DETACH, u), a.axis));
  UOp *s = uop_alu1(st, OPS_EXP, uop_alu2(st, OPS_SUB, u, m)), *none = u_num(st, 0, u);
  UOp *at = u_arange(st, x->uop->shape, a.axis, n > INT32_MAX ? DT_I64 : DT_I32);
  for (int64_t step = 1; s && at && step < n; step *= 2) {
    UOp *by = uop_alu1(st, OPS_EXP, uop_alu2(st, OPS_SUB, u_later(st, m, a.axis, step), m));
    UOp *before = uop_alu2(st, OPS_MUL, u_later(st, s, a.axis, step), by);
    UOp *first = uop_alu2(st, OPS_CMPLT, at, u_num(st, (double)step, at));
    s = uop_alu2(st, OPS_ADD, s, uop_where(st, first, none, before));
  }
  return tensor_new(a.ctx, uop_cast(st, uop_alu2(st, OPS_ADD, uop_alu1(st, OPS_LOG, s), m), d));
}
