/* order.c: running reductions. In: a tensor and an axis. Out: SCAN_AXIS and GATHER nodes. */
#include "tensor/front.h"

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

/* log(e^a + e^b) where b's largest is taken off first; infinities and NaN stay what they are. */
static UOp *log_add(UOpStore *st, UOp *a, UOp *b) {
  UOp *m = uop_alu1(st, OPS_DETACH, uop_alu2(st, OPS_MAX, a, b));
  if (!m) return NULL;
  UOp *infinite = uop_alu2(st, OPS_OR, uop_alu2(st, OPS_CMPEQ, m, u_num(st, INFINITY, m)),
                           uop_alu2(st, OPS_CMPEQ, m, u_num(st, -INFINITY, m)));
  m = uop_where(st, infinite, u_num(st, 0, m), m);
  UOp *s = uop_alu2(st, OPS_ADD, uop_alu1(st, OPS_EXP, uop_alu2(st, OPS_SUB, a, m)),
                    uop_alu1(st, OPS_EXP, uop_alu2(st, OPS_SUB, b, m)));
  return uop_alu2(st, OPS_ADD, uop_alu1(st, OPS_LOG, s), m);
}

TgTensor *tg_logcumsumexp(TgTensor *x, int axis) { /* each step joins what stands 1, 2, 4, .. places before */
  TG_NUMBERS(x, "logcumsumexp");
  Along a;
  if (!along("logcumsumexp", x, axis, &a)) return NULL;
  DType d = dtype_as_float(dt(x)), acc = sum_dtype(d);
  UOp *u = uop_cast(a.st, x->uop, acc);
  if (a.scalar || nelem(x) == 0) return tensor_new(a.ctx, uop_cast(a.st, u, d));
  int64_t n = dims(x)[a.axis], lohi[2 * TG_MAX_RANK] = {0}, be[2 * TG_MAX_RANK];
  for (int64_t step = 1; u && step < n; step *= 2) {
    for (int i = 0; i < rank(x); i++) {
      be[2 * i] = 0;
      be[2 * i + 1] = dims(x)[i] - (i == a.axis ? step : 0);
    }
    lohi[2 * a.axis] = step;
    UOp *at = u_arange(a.st, x->uop->shape, a.axis, n > INT32_MAX ? DT_I64 : DT_I32);
    UOp *before = u_pad(a.st, u_shrink(a.st, u, be), lohi);
    if (!at || !before) return tensor_new(a.ctx, NULL); /* which says why */
    u = uop_where(a.st, uop_alu2(a.st, OPS_CMPLT, at, u_num(a.st, (double)step, at)), u,
                  log_add(a.st, u, before));
  }
  return tensor_new(a.ctx, uop_cast(a.st, u, d));
}
