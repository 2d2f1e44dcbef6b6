/* onnx_math.c: operators that work element by element, and reductions. In: an OnnxCall. Out: lazy tensors.
 * ONNX keeps the dtype in cases where tg.h widens it (integer sums, means, division), so results are cast
 * back. */
#include "onnx_private.h"
#include <math.h>

static bool is_int(const TgTensor *t) {
  return t && !tg_dtype_is_float(tg_dtype(t)) && tg_dtype(t) != TG_BOOL;
}

static TgTensor *keep_dtype(TgTensor *like, TgTensor *t) { return as(t, tg_dtype(like)); }

static TgTensor *op_div(TgTensor *a, TgTensor *b) { return is_int(a) ? tg_truncdiv(a, b) : tg_div(a, b); }

static TgTensor *op_pow(TgTensor *a, TgTensor *b) {
  if (is_int(a) && !is_int(b)) return keep_dtype(a, tg_pow(as(a, TG_F64), as(b, TG_F64)));
  return keep_dtype(a, is_int(b) && !is_int(a) ? tg_pow(a, keep_dtype(a, b)) : tg_pow(a, b));
}

static TgTensor *op_and(TgTensor *a, TgTensor *b) { return tg_bitand(as(a, TG_BOOL), as(b, TG_BOOL)); }

static TgTensor *op_or(TgTensor *a, TgTensor *b) { return tg_bitor(as(a, TG_BOOL), as(b, TG_BOOL)); }

static TgTensor *op_xor(TgTensor *a, TgTensor *b) { return tg_bitxor(as(a, TG_BOOL), as(b, TG_BOOL)); }

static TgTensor *op_identity(TgTensor *x) { return shaped_as(x, x); }

static TgTensor *op_mod(OnnxCall *c) {
  return attr_i(c, "fmod", 0) ? tg_fmod(c->in[0], c->in[1]) : tg_mod(c->in[0], c->in[1]);
}

static TgTensor *op_bitshift(OnnxCall *c) {
  const char *way = attr_s(c, "direction", "");
  return !strcmp(way, "LEFT")    ? tg_shl(c->in[0], c->in[1])
         : !strcmp(way, "RIGHT") ? tg_shr(c->in[0], c->in[1])
                                 : call_fail(c, TG_ERR_VALUE, "direction %.20s", way);
}

static TgTensor *fold(OnnxCall *c, TgTensor *(*f)(TgTensor *, TgTensor *)) {
  TgTensor *t = c->in[0];
  for (int i = 1; i < c->nin; i++)
    t = f(t, c->in[i]);
  return c->nin == 1 ? op_identity(t) : t;
}

TgTensor *onnx_fold(OnnxCall *c) { return fold(c, c->n->def->binary); }

static TgTensor *op_mean(OnnxCall *c) { return tg_div_scalar(fold(c, tg_add), c->nin); }

static TgTensor *op_where(OnnxCall *c) { return tg_where(as(c->in[0], TG_BOOL), c->in[1], c->in[2]); }

static TgTensor *cast_to(OnnxCall *c, TgTensor *x, TgDType d) {
  bool saturate = attr_i(c, "saturate", 1);
  double most = d == TG_FP8E4M3 ? 448 : 57344; /* of fp8: larger values become the largest one */
  if (tg_dtype(x) == d) return op_identity(x);
  return tg_cast((d == TG_FP8E4M3 || d == TG_FP8E5M2) && saturate ? tg_clamp(x, -most, most) : x, d);
}

/* Fractions are truncated, then the low bits are kept: 9 is -7 in four signed bits. */
static TgTensor *cast_narrow(OnnxCall *c, TgTensor *x, const OnnxNarrow *to) {
  double span = to->hi - to->lo + 1;
  TgTensor *whole = as(x, TG_I32), *low = tg_bitand(whole, tg_scalar_like(whole, span - 1));
  attr_unused(c, "saturate");
  c->narrow = to->type;
  return tg_cast(tg_where(tg_gt_scalar(low, to->hi), tg_add_scalar(low, -span), low), to->as);
}

static TgTensor *op_cast(OnnxCall *c) {
  const OnnxNarrow *narrow = onnx_narrow(attr_i(c, "to", 0));
  if (narrow) return cast_narrow(c, c->in[0], narrow);
  TgDType d = onnx_dtype(attr_i(c, "to", 0));
  return d ? cast_to(c, c->in[0], d)
           : call_fail(c, TG_ERR_DTYPE, "data type %lld is not implemented", (long long)attr_i(c, "to", 0));
}

static TgTensor *op_castlike(OnnxCall *c) {
  const OnnxNarrow *narrow = onnx_narrow(c->raw[1]->narrow);
  return narrow ? cast_narrow(c, c->in[0], narrow) : cast_to(c, c->in[0], tg_dtype(c->in[1]));
}

static TgTensor *op_bitcast(OnnxCall *c) {
  TgDType d = onnx_dtype(attr_i(c, "to", 0));
  return !d ? call_fail(c, TG_ERR_DTYPE, "data type %lld is not implemented", (long long)attr_i(c, "to", 0))
         : !tg_ndim(c->in[0]) ? tg_reshape(tg_bitcast(tg_unsqueeze(c->in[0], 0), d), TG_SCALAR)
                              : tg_bitcast(c->in[0], d);
}

static TgTensor *op_clip(OnnxCall *c) {
  if (c->opset < 11) return tg_clamp(c->in[0], attr_f(c, "min", -INFINITY), attr_f(c, "max", INFINITY));
  return c->in[1] || c->in[2] ? keep_dtype(c->in[0], tg_clamp_tensor(c->in[0], c->in[1], c->in[2]))
                              : op_identity(c->in[0]);
}

static TgTensor *op_leaky(OnnxCall *c) { return tg_leaky_relu(c->in[0], attr_f(c, "alpha", 0.01f)); }

static TgTensor *op_elu(OnnxCall *c) { return tg_elu(c->in[0], attr_f(c, "alpha", 1)); }

static TgTensor *op_celu(OnnxCall *c) { return tg_celu(c->in[0], attr_f(c, "alpha", 1)); }

static TgTensor *op_selu(OnnxCall *c) {
  TgTensor *x = c->in[0];
  double alpha = attr_f(c, "alpha", 1.67326319217681884765625);
  double gamma = attr_f(c, "gamma", 1.05070102214813232421875);
  return tg_mul_scalar(tg_elu(x, alpha), gamma);
}

static TgTensor *op_hardsigmoid(OnnxCall *c) {
  return tg_clamp(tg_add_scalar(tg_mul_scalar(c->in[0], attr_f(c, "alpha", 0.2f)), attr_f(c, "beta", 0.5)), 0,
                  1);
}

static TgTensor *op_gelu(OnnxCall *c) {
  const char *how = attr_s(c, "approximate", "none");
  return !strcmp(how, "tanh") ? tg_gelu(c->in[0]) : tg_gelu_erf(c->in[0]);
}

static TgTensor *op_prelu(OnnxCall *c) {
  return tg_where(tg_lt_scalar(c->in[0], 0), tg_mul(c->in[0], c->in[1]), c->in[0]);
}

static TgTensor *op_thresholded(OnnxCall *c) {
  return tg_where(tg_gt_scalar(c->in[0], attr_f(c, "alpha", 1)), c->in[0], tg_zeros_like(c->in[0]));
}

static TgTensor *op_shrink(OnnxCall *c) {
  double bias = attr_f(c, "bias", 0), l = attr_f(c, "lambd", 0.5);
  TgTensor *x = c->in[0];
  return keep_dtype(x, tg_where(tg_lt_scalar(x, -l), tg_add_scalar(x, bias),
                                tg_where(tg_gt_scalar(x, l), tg_sub_scalar(x, bias), tg_zeros_like(x))));
}

static TgTensor *op_swish(OnnxCall *c) {
  return tg_mul(c->in[0], tg_sigmoid(tg_mul_scalar(c->in[0], attr_f(c, "alpha", 1))));
}

static TgTensor *op_isinf(OnnxCall *c) {
  int64_t minus = attr_i(c, "detect_negative", 1), plus = attr_i(c, "detect_positive", 1);
  return minus && plus ? tg_isinf(c->in[0])
         : minus       ? tg_isneginf(c->in[0])
         : plus        ? tg_isposinf(c->in[0])
                       : tg_logical_not(tg_eq(tg_zeros_like(c->in[0]), tg_zeros_like(c->in[0])));
}

/* ---- softmax functions; before opset 13 they are over all axes from `axis` on */
static TgTensor *along(OnnxCall *c, TgTensor *(*f)(TgTensor *x, int axis)) {
  TgTensor *x = c->in[0];
  int axis, rank = tg_ndim(x);
  if (!call_axis(c, attr_i(c, "axis", c->opset < 13 ? 1 : -1), rank, &axis)) return NULL;
  if (c->opset >= 13) return f(x, axis);
  return shaped_as(f(onnx_matrix(x, axis), 1), x);
}

static TgTensor *f_softmax(TgTensor *x, int axis) { return tg_softmax(x, .axis = TG_AXES(axis)); }

static TgTensor *f_log_softmax(TgTensor *x, int axis) { return tg_log_softmax(x, .axis = TG_AXES(axis)); }

static TgTensor *f_hardmax(TgTensor *x, int axis) {
  if (!tg_size_of(x, axis)) return op_identity(x); /* an empty axis has no largest element */
  /* from (.., n): the new axis moves back to its place */
  TgTensor *best = tg_one_hot(tg_argmax(x, .axis = TG_AXES(axis)), tg_size_of(x, axis));
  int64_t order[TG_MAX_RANK];
  int rank = tg_ndim(x);
  for (int a = 0; a < rank; a++)
    order[a] = a < axis ? a : a == axis ? rank - 1 : a - 1;
  return keep_dtype(x, tg_permute(best, rank, order));
}

TgTensor *onnx_softmax(OnnxCall *c) { return along(c, f_softmax); }

static TgTensor *op_log_softmax(OnnxCall *c) { return along(c, f_log_softmax); }

static TgTensor *op_hardmax(OnnxCall *c) { return along(c, f_hardmax); }

/* ---- reductions: the axes are an attribute, and from opset 18 an input (for ReduceSum from 13) */
TgTensor *onnx_reduce(OnnxCall *c) {
  Ints axes;
  TgTensor *x = c->in[0];
  bool input = c->opset >= (!strcmp(c->n->op, "ReduceSum") ? 13 : 18);
  if (!call_ints(c, input ? 1 : -1, input ? NULL : "axes", &axes)) return NULL;
  TgAxes a = {0};
  bool keep = attr_i(c, "keepdims", 1), noop = attr_i(c, "noop_with_empty_axes", 0), none = !axes.n && noop;
  if (axes.n > TG_MAX_RANK) return call_fail(c, TG_ERR_SHAPE, "%d axes", axes.n);
  for (int i = 0; i < axes.n; i++)
    if (!call_axis(c, axes.v[i], tg_ndim(x), &a.v[a.n++])) return NULL;
  if (none || (!tg_ndim(x) && !a.n)) { /* no axis is reduced, but the function is applied to each element */
    TgTensor *y = tg_unsqueeze(x, tg_ndim(x));
    return keep_dtype(x, c->n->def->reduce(y, TG_AXES(tg_ndim(x)), false));
  }
  return keep_dtype(x, c->n->def->reduce(x, a, keep));
}

static TgTensor *r_sum(TgTensor *x, TgAxes a, bool k) { return tg_sum(x, .axis = a, .keepdim = k); }

static TgTensor *r_mean(TgTensor *x, TgAxes a, bool k) { return tg_mean(x, .axis = a, .keepdim = k); }

static TgTensor *r_max(TgTensor *x, TgAxes a, bool k) { return tg_max(x, .axis = a, .keepdim = k); }

static TgTensor *r_min(TgTensor *x, TgAxes a, bool k) { return tg_min(x, .axis = a, .keepdim = k); }

static TgTensor *r_prod(TgTensor *x, TgAxes a, bool k) { return tg_prod(x, .axis = a, .keepdim = k); }

static TgTensor *r_l1(TgTensor *x, TgAxes a, bool k) { return r_sum(tg_abs(x), a, k); }

static TgTensor *r_square(TgTensor *x, TgAxes a, bool k) { return r_sum(tg_square(x), a, k); }

static TgTensor *r_l2(TgTensor *x, TgAxes a, bool k) { return tg_sqrt(r_square(x, a, k)); }

static TgTensor *r_log(TgTensor *x, TgAxes a, bool k) { return tg_log(r_sum(x, a, k)); }

static TgTensor *r_logexp(TgTensor *x, TgAxes a, bool k) {
  if (!tg_max_numel(x)) return tg_log(r_sum(tg_exp(x), a, k));
  TgTensor *m = r_max(is_int(x) ? tg_float(x) : x, a, true);
  m = tg_where(tg_isfinite(m), m, tg_zeros_like(m));
  TgTensor *s = tg_add(tg_log(r_sum(tg_exp(tg_sub(x, m)), a, true)), m);
  return k ? s : r_sum(s, a, false); /* the axes have size 1 here */
}

static TgTensor *arg_of(OnnxCall *c, bool max) {
  TgTensor *x = c->in[0], *r;
  int axis, rank = tg_ndim(x);
  if (!call_axis(c, attr_i(c, "axis", 0), rank, &axis)) return NULL;
  bool last = attr_i(c, "select_last_index", 0), keep = attr_i(c, "keepdims", 1);
  TgTensor *y = last ? tg_flip(x, 1, &(int64_t){axis}) : x;
  r = max ? tg_argmax(y, .axis = TG_AXES(axis), .keepdim = keep)
          : tg_argmin(y, .axis = TG_AXES(axis), .keepdim = keep);
  TgTensor *n = last ? tg_size_tensor(c->ctx, tg_size_of(x, axis), TG_I64) : NULL;
  return last ? tg_add_scalar(tg_sub(n, tg_long(r)), -1) : tg_long(r);
}

static TgTensor *op_argmax(OnnxCall *c) { return arg_of(c, true); }

static TgTensor *op_argmin(OnnxCall *c) { return arg_of(c, false); }

/* A running sum or product along an axis; exclusive: of the elements before, and `empty` for the first. */
static TgTensor *running(OnnxCall *c, TgTensor *(*f)(TgTensor *x, int axis), double empty) {
  TgTensor *x = c->in[0], *s;
  Ints at;
  int axis;
  if (!call_ints(c, 1, NULL, &at) || !call_axis(c, at.n ? at.v[0] : 0, tg_ndim(x), &axis)) return NULL;
  bool reverse = attr_i(c, "reverse", 0);
  int64_t dims = axis;
  TgTensor *y = reverse ? tg_flip(x, 1, &dims) : x;
  s = keep_dtype(x, f(y, axis));
  if (attr_i(c, "exclusive", 0) && tg_size_of(x, axis)) {
    int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0};
    lo[axis] = 1;
    hi[axis] = -1;
    s = tg_pad_value(s, lo, hi, empty);
  }
  return reverse ? tg_flip(s, 1, &dims) : s;
}

static TgTensor *op_cumsum(OnnxCall *c) { return running(c, tg_cumsum, 0); }

static TgTensor *op_cumprod(OnnxCall *c) { return running(c, tg_cumprod, 1); }

static TgTensor *op_lpnorm(OnnxCall *c) {
  int axis;
  TgTensor *x = c->in[0];
  if (!call_axis(c, attr_i(c, "axis", -1), tg_ndim(x), &axis)) return NULL;
  TgTensor *n = attr_i(c, "p", 2) == 1 ? r_l1(x, TG_AXES(axis), true) : r_l2(x, TG_AXES(axis), true);
  return tg_where(tg_eq_scalar(n, 0), tg_zeros_like(x), tg_div(x, n));
}

const OnnxOp onnx_ops_math[] = {ONNX_UNARY("Abs", tg_abs),
                                ONNX_UNARY("Neg", tg_neg),
                                ONNX_UNARY("Exp", tg_exp),
                                ONNX_UNARY("Log", tg_log),
                                ONNX_UNARY("Sqrt", tg_sqrt),
                                ONNX_UNARY("Reciprocal", tg_reciprocal),
                                ONNX_UNARY("Erf", tg_erf),
                                ONNX_UNARY("Sign", tg_sign),
                                ONNX_UNARY("Floor", tg_floor),
                                ONNX_UNARY("Ceil", tg_ceil),
                                ONNX_UNARY("Round", tg_round),
                                ONNX_UNARY("Sin", tg_sin),
                                ONNX_UNARY("Cos", tg_cos),
                                ONNX_UNARY("Tan", tg_tan),
                                ONNX_UNARY("Asin", tg_asin),
                                ONNX_UNARY("Acos", tg_acos),
                                ONNX_UNARY("Atan", tg_atan),
                                ONNX_UNARY("Sinh", tg_sinh),
                                ONNX_UNARY("Cosh", tg_cosh),
                                ONNX_UNARY("Asinh", tg_asinh),
                                ONNX_UNARY("Acosh", tg_acosh),
                                ONNX_UNARY("Atanh", tg_atanh),
                                ONNX_UNARY("Tanh", tg_tanh),
                                ONNX_UNARY("Relu", tg_relu),
                                ONNX_UNARY("Sigmoid", tg_sigmoid),
                                ONNX_UNARY("Softplus", tg_softplus),
                                ONNX_UNARY("Softsign", tg_softsign),
                                ONNX_UNARY("Mish", tg_mish),
                                ONNX_UNARY("HardSwish", tg_hardswish),
                                ONNX_UNARY("IsNaN", tg_isnan),
                                ONNX_UNARY("Not", tg_logical_not),
                                ONNX_UNARY("BitwiseNot", tg_bitnot),
                                ONNX_BINARY("Add", tg_add),
                                ONNX_BINARY("Sub", tg_sub),
                                ONNX_BINARY("Mul", tg_mul),
                                ONNX_BINARY("Div", op_div),
                                ONNX_BINARY("Pow", op_pow),
                                ONNX_BINARY("And", op_and),
                                ONNX_BINARY("Or", op_or),
                                ONNX_BINARY("Xor", op_xor),
                                ONNX_BINARY("Equal", tg_eq),
                                ONNX_BINARY("Less", tg_lt),
                                ONNX_BINARY("LessOrEqual", tg_le),
                                ONNX_BINARY("Greater", tg_gt),
                                ONNX_BINARY("GreaterOrEqual", tg_ge),
                                ONNX_BINARY("BitwiseAnd", tg_bitand),
                                ONNX_BINARY("BitwiseOr", tg_bitor),
                                ONNX_BINARY("BitwiseXor", tg_bitxor),
                                ONNX_SIZED("Mod", 10, 2, 2, op_mod),
                                ONNX_SIZED("BitShift", 11, 2, 2, op_bitshift),
                                ONNX_FOLD("Max", tg_maximum),
                                ONNX_FOLD("Min", tg_minimum),
                                ONNX_FOLD("Sum", tg_add),
                                ONNX_SIZED("Mean", 1, 1, -1, op_mean),
                                ONNX_SIZED("Where", 9, 3, 3, op_where),
                                ONNX_SIZED("Cast", 1, 1, 1, op_cast),
                                ONNX_SIZED("CastLike", 15, 2, 2, op_castlike),
                                ONNX_OP("BitCast", 26, 1, 1, op_bitcast),
                                ONNX_SIZED("Clip", 1, 1, 3, op_clip),
                                ONNX_SIZED("LeakyRelu", 1, 1, 1, op_leaky),
                                ONNX_SIZED("Elu", 1, 1, 1, op_elu),
                                ONNX_SIZED("Celu", 12, 1, 1, op_celu),
                                ONNX_SIZED("Selu", 1, 1, 1, op_selu),
                                ONNX_SIZED("HardSigmoid", 1, 1, 1, op_hardsigmoid),
                                ONNX_SIZED_BOTH("Gelu", 1, 1, 1, op_gelu),
                                ONNX_SIZED("PRelu", 1, 2, 2, op_prelu),
                                ONNX_SIZED("ThresholdedRelu", 10, 1, 1, op_thresholded),
                                ONNX_SIZED("Shrink", 9, 1, 1, op_shrink),
                                ONNX_SIZED("Swish", 24, 1, 1, op_swish),
                                ONNX_SIZED("IsInf", 10, 1, 1, op_isinf),
                                ONNX_SIZED("Softmax", 1, 1, 1, onnx_softmax),
                                ONNX_SIZED("LogSoftmax", 1, 1, 1, op_log_softmax),
                                ONNX_SIZED("Hardmax", 1, 1, 1, op_hardmax),
                                ONNX_REDUCE("ReduceSum", r_sum),
                                ONNX_REDUCE("ReduceMean", r_mean),
                                ONNX_REDUCE("ReduceMax", r_max),
                                ONNX_REDUCE("ReduceMin", r_min),
                                ONNX_REDUCE("ReduceProd", r_prod),
                                ONNX_REDUCE("ReduceL1", r_l1),
                                ONNX_REDUCE("ReduceL2", r_l2),
                                ONNX_REDUCE("ReduceSumSquare", r_square),
                                ONNX_REDUCE("ReduceLogSum", r_log),
                                ONNX_REDUCE("ReduceLogSumExp", r_logexp),
                                ONNX_SIZED("ArgMax", 1, 1, 1, op_argmax),
                                ONNX_SIZED("ArgMin", 1, 1, 1, op_argmin),
                                ONNX_SIZED("CumSum", 11, 2, 2, op_cumsum),
                                ONNX_SIZED("CumProd", 26, 2, 2, op_cumprod),
                                ONNX_SIZED("LpNormalization", 1, 1, 1, op_lpnorm),
                                {0}};
