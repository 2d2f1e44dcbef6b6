/* onnx_math.c: the operators that work element by element, and reductions. In: an OnnxCall. Out: lazy
 * tensors. ONNX keeps the dtype where tg.h widens one (integer sums, means, division), so results are cast
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

static TgTensor *op_identity(TgTensor *x) { return tg_reshape(x, tg_ndim(x), tg_shape(x)); }

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

static TgTensor *op_max(OnnxCall *c) { return fold(c, tg_maximum); }

static TgTensor *op_min(OnnxCall *c) { return fold(c, tg_minimum); }

static TgTensor *op_sum(OnnxCall *c) { return fold(c, tg_add); }

static TgTensor *op_mean(OnnxCall *c) { return tg_div_scalar(fold(c, tg_add), c->nin); }

static TgTensor *op_where(OnnxCall *c) { return tg_where(as(c->in[0], TG_BOOL), c->in[1], c->in[2]); }

static TgTensor *cast_to(OnnxCall *c, TgTensor *x, TgDType d) {
  bool saturate = attr_i(c, "saturate", 1);
  double most = d == TG_FP8E4M3 ? 448 : 57344; /* of fp8: past the largest value, that one */
  if (tg_dtype(x) == d) return op_identity(x);
  return tg_cast((d == TG_FP8E4M3 || d == TG_FP8E5M2) && saturate ? tg_clamp(x, -most, most) : x, d);
}

/* Fractions are cut off, then the low bits are left: 9 is -7 in four bits with a sign. */
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

/* ---- softmax kinds: before opset 13 over all axes from `axis` on */
static TgTensor *along(OnnxCall *c, TgTensor *(*f)(TgTensor *x, int axis)) {
  TgTensor *x = c->in[0];
  int axis, rank = tg_ndim(x);
  if (!call_axis(c, attr_i(c, "axis", c->opset < 13 ? 1 : -1), rank, &axis)) return NULL;
  if (c->opset >= 13) return f(x, axis);
  int64_t lead = 1;
  for (int a = 0; a < axis; a++)
    lead *= tg_dim(x, a);
  int64_t rest = lead ? tg_numel(x) / lead : 0;
  return tg_reshape(f(tg_reshape(x, TG_SHAPE(lead, rest)), 1), rank, tg_shape(x));
}

static TgTensor *f_softmax(TgTensor *x, int axis) { return tg_softmax(x, .axis = TG_AXES(axis)); }

static TgTensor *f_log_softmax(TgTensor *x, int axis) { return tg_log_softmax(x, .axis = TG_AXES(axis)); }

static TgTensor *f_hardmax(TgTensor *x, int axis) {
  /* (.., n): back to its place */
  TgTensor *best = tg_one_hot(tg_argmax(x, .axis = TG_AXES(axis)), tg_dim(x, axis));
  int64_t order[TG_MAX_RANK];
  int rank = tg_ndim(x);
  for (int a = 0; a < rank; a++)
    order[a] = a < axis ? a : a == axis ? rank - 1 : a - 1;
  return keep_dtype(x, tg_permute(best, rank, order));
}

TgTensor *onnx_softmax(OnnxCall *c) { return along(c, f_softmax); }

static TgTensor *op_log_softmax(OnnxCall *c) { return along(c, f_log_softmax); }

static TgTensor *op_hardmax(OnnxCall *c) { return along(c, f_hardmax); }

/* ---- reductions: axes are an attribute, from opset 18 an input (of ReduceSum from 13) */
typedef TgTensor *(*Reduce)(TgTensor *x, TgAxes a, bool keep);

static TgTensor *reduce(OnnxCall *c, Reduce f) {
  Ints axes;
  TgTensor *x = c->in[0];
  bool input = c->opset >= (!strcmp(c->n->op, "ReduceSum") ? 13 : 18);
  if (!call_ints(c, input ? 1 : -1, input ? NULL : "axes", &axes)) return NULL;
  TgAxes a = {0};
  bool keep = attr_i(c, "keepdims", 1), noop = attr_i(c, "noop_with_empty_axes", 0), none = !axes.n && noop;
  if (axes.n > TG_MAX_RANK) return call_fail(c, TG_ERR_SHAPE, "%d axes", axes.n);
  for (int i = 0; i < axes.n; i++)
    if (!call_axis(c, axes.v[i], tg_ndim(x), &a.v[a.n++])) return NULL;
  if (none || (!tg_ndim(x) && !a.n)) { /* no axis, but what f does to each element */
    TgTensor *y = tg_unsqueeze(x, tg_ndim(x));
    return keep_dtype(x, f(y, TG_AXES(tg_ndim(x)), false));
  }
  return keep_dtype(x, f(x, a, keep));
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
  if (!tg_numel(x)) return tg_log(r_sum(tg_exp(x), a, k));
  TgTensor *m = r_max(is_int(x) ? tg_float(x) : x, a, true);
  m = tg_where(tg_isfinite(m), m, tg_zeros_like(m));
  TgTensor *s = tg_add(tg_log(r_sum(tg_exp(tg_sub(x, m)), a, true)), m);
  return k ? s : r_sum(s, a, false); /* over axes of size 1 */
}

static TgTensor *op_rsum(OnnxCall *c) { return reduce(c, r_sum); }

static TgTensor *op_rmean(OnnxCall *c) { return reduce(c, r_mean); }

static TgTensor *op_rmax(OnnxCall *c) { return reduce(c, r_max); }

static TgTensor *op_rmin(OnnxCall *c) { return reduce(c, r_min); }

static TgTensor *op_rprod(OnnxCall *c) { return reduce(c, r_prod); }

static TgTensor *op_rl1(OnnxCall *c) { return reduce(c, r_l1); }

static TgTensor *op_rl2(OnnxCall *c) { return reduce(c, r_l2); }

static TgTensor *op_rsquare(OnnxCall *c) { return reduce(c, r_square); }

static TgTensor *op_rlog(OnnxCall *c) { return reduce(c, r_log); }

static TgTensor *op_rlogexp(OnnxCall *c) { return reduce(c, r_logexp); }

static TgTensor *arg_of(OnnxCall *c, bool max) {
  TgTensor *x = c->in[0], *r;
  int axis, rank = tg_ndim(x);
  if (!call_axis(c, attr_i(c, "axis", 0), rank, &axis)) return NULL;
  bool last = attr_i(c, "select_last_index", 0), keep = attr_i(c, "keepdims", 1);
  TgTensor *y = last ? tg_flip(x, 1, &(int64_t){axis}) : x;
  r = max ? tg_argmax(y, .axis = TG_AXES(axis), .keepdim = keep)
          : tg_argmin(y, .axis = TG_AXES(axis), .keepdim = keep);
  return tg_long(last ? tg_rsub_scalar(r, (double)(tg_dim(x, axis) - 1)) : r);
}

static TgTensor *op_argmax(OnnxCall *c) { return arg_of(c, true); }

static TgTensor *op_argmin(OnnxCall *c) { return arg_of(c, false); }

/* A running sum or product along an axis; exclusive: of those before, `empty` for the first. */
static TgTensor *running(OnnxCall *c, TgTensor *(*f)(TgTensor *x, int axis), double empty) {
  TgTensor *x = c->in[0], *s;
  Ints at;
  int axis;
  if (!call_ints(c, 1, NULL, &at) || !call_axis(c, at.n ? at.v[0] : 0, tg_ndim(x), &axis)) return NULL;
  bool reverse = attr_i(c, "reverse", 0);
  int64_t dims = axis;
  TgTensor *y = reverse ? tg_flip(x, 1, &dims) : x;
  s = keep_dtype(x, f(y, axis));
  if (attr_i(c, "exclusive", 0) && tg_dim(x, axis)) {
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

#define U(name, f)                                                                                           \
  { name, 1, 1, 1, NULL, f, NULL, NULL, DOMAIN_ONNX }
#define B(name, f)                                                                                           \
  { name, 1, 2, 2, NULL, NULL, f, NULL, DOMAIN_ONNX }
#define F(name, since, lo, hi, f)                                                                            \
  { name, since, lo, hi, f, NULL, NULL, NULL, DOMAIN_ONNX }
const OnnxOp onnx_ops_math[] = {U("Abs", tg_abs),
                                U("Neg", tg_neg),
                                U("Exp", tg_exp),
                                U("Log", tg_log),
                                U("Sqrt", tg_sqrt),
                                U("Reciprocal", tg_reciprocal),
                                U("Erf", tg_erf),
                                U("Sign", tg_sign),
                                U("Floor", tg_floor),
                                U("Ceil", tg_ceil),
                                U("Round", tg_round),
                                U("Sin", tg_sin),
                                U("Cos", tg_cos),
                                U("Tan", tg_tan),
                                U("Asin", tg_asin),
                                U("Acos", tg_acos),
                                U("Atan", tg_atan),
                                U("Sinh", tg_sinh),
                                U("Cosh", tg_cosh),
                                U("Asinh", tg_asinh),
                                U("Acosh", tg_acosh),
                                U("Atanh", tg_atanh),
                                U("Tanh", tg_tanh),
                                U("Relu", tg_relu),
                                U("Sigmoid", tg_sigmoid),
                                U("Softplus", tg_softplus),
                                U("Softsign", tg_softsign),
                                U("Mish", tg_mish),
                                U("HardSwish", tg_hardswish),
                                U("IsNaN", tg_isnan),
                                U("Not", tg_logical_not),
                                U("BitwiseNot", tg_bitnot),
                                B("Add", tg_add),
                                B("Sub", tg_sub),
                                B("Mul", tg_mul),
                                B("Div", op_div),
                                B("Pow", op_pow),
                                B("And", op_and),
                                B("Or", op_or),
                                B("Xor", op_xor),
                                B("Equal", tg_eq),
                                B("Less", tg_lt),
                                B("LessOrEqual", tg_le),
                                B("Greater", tg_gt),
                                B("GreaterOrEqual", tg_ge),
                                B("BitwiseAnd", tg_bitand),
                                B("BitwiseOr", tg_bitor),
                                B("BitwiseXor", tg_bitxor),
                                F("Mod", 10, 2, 2, op_mod),
                                F("BitShift", 11, 2, 2, op_bitshift),
                                F("Max", 1, 1, -1, op_max),
                                F("Min", 1, 1, -1, op_min),
                                F("Sum", 1, 1, -1, op_sum),
                                F("Mean", 1, 1, -1, op_mean),
                                F("Where", 9, 3, 3, op_where),
                                F("Cast", 1, 1, 1, op_cast),
                                F("CastLike", 15, 2, 2, op_castlike),
                                F("BitCast", 26, 1, 1, op_bitcast),
                                F("Clip", 1, 1, 3, op_clip),
                                F("LeakyRelu", 1, 1, 1, op_leaky),
                                F("Elu", 1, 1, 1, op_elu),
                                F("Celu", 12, 1, 1, op_celu),
                                F("Selu", 1, 1, 1, op_selu),
                                F("HardSigmoid", 1, 1, 1, op_hardsigmoid),
                                ONNX_BOTH("Gelu", 1, 1, 1, op_gelu),
                                F("PRelu", 1, 2, 2, op_prelu),
                                F("ThresholdedRelu", 10, 1, 1, op_thresholded),
                                F("Shrink", 9, 1, 1, op_shrink),
                                F("Swish", 24, 1, 1, op_swish),
                                F("IsInf", 10, 1, 1, op_isinf),
                                F("Softmax", 1, 1, 1, onnx_softmax),
                                F("LogSoftmax", 1, 1, 1, op_log_softmax),
                                F("Hardmax", 1, 1, 1, op_hardmax),
                                F("ReduceSum", 1, 1, 2, op_rsum),
                                F("ReduceMean", 1, 1, 2, op_rmean),
                                F("ReduceMax", 1, 1, 2, op_rmax),
                                F("ReduceMin", 1, 1, 2, op_rmin),
                                F("ReduceProd", 1, 1, 2, op_rprod),
                                F("ReduceL1", 1, 1, 2, op_rl1),
                                F("ReduceL2", 1, 1, 2, op_rl2),
                                F("ReduceSumSquare", 1, 1, 2, op_rsquare),
                                F("ReduceLogSum", 1, 1, 2, op_rlog),
                                F("ReduceLogSumExp", 1, 1, 2, op_rlogexp),
                                F("ArgMax", 1, 1, 1, op_argmax),
                                F("ArgMin", 1, 1, 1, op_argmin),
                                F("CumSum", 11, 2, 2, op_cumsum),
                                F("CumProd", 26, 2, 2, op_cumprod),
                                F("LpNormalization", 1, 1, 1, op_lpnorm),
                                {0}};
