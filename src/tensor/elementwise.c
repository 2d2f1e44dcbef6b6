/* elementwise.c: arithmetic, comparison, selection and activation, with broadcasting and promotion. */
#include "tensor/front.h"

Pair operands(const char *op, TgTensor *a, TgTensor *b, DType to) {
  Pair p = {0};
  TgContext *ctx = ctx_two(op, a, b);
  if (!ctx) return p;
  const Ints *s = shape_broadcast(ctx, op, a->uop->shape, b->uop->shape);
  if (!s) return p;
  DType d = to ? to : dtype_join(dt(a), dt(b));
  p = (Pair){ctx, ctx->store, u_broadcast(ctx->store, uop_cast(ctx->store, a->uop, d), s),
             u_broadcast(ctx->store, uop_cast(ctx->store, b->uop, d), s)};
  if (p.a && p.b) return p;
  error_set(&ctx->err, TG_ERR_NOMEM, "%s: out of memory", op);
  return (Pair){0};
}

static TgTensor *binary(const char *name, Ops op, TgTensor *a, TgTensor *b) {
  Pair p = operands(name, a, b, DT_VOID);
  return p.ctx ? tensor_new(p.ctx, uop_alu2(p.st, op, p.a, p.b)) : NULL;
}

static DType float_join(const TgTensor *a, const TgTensor *b) {
  return a && b ? dtype_as_float(dtype_join(dt(a), dt(b))) : DT_F32;
}

static bool both_bool(const TgTensor *a, const TgTensor *b) {
  return a && b && dt(a) == DT_BOOL && dt(b) == DT_BOOL;
}

TgTensor *tg_add(TgTensor *a, TgTensor *b) { return binary("add", both_bool(a, b) ? OPS_OR : OPS_ADD, a, b); }

TgTensor *tg_sub(TgTensor *a, TgTensor *b) {
  if (!ctx_two("sub", a, b)) return NULL;
  TG_REQUIRE(a->ctx, !both_bool(a, b), TG_ERR_DTYPE, "sub: two bools; use ne");
  return binary("sub", OPS_SUB, a, b);
}

TgTensor *tg_mul(TgTensor *a, TgTensor *b) {
  return binary("mul", both_bool(a, b) ? OPS_AND : OPS_MUL, a, b);
}

TgTensor *tg_div(TgTensor *a, TgTensor *b) {
  Pair p = operands("div", a, b, float_join(a, b));
  return p.ctx ? tensor_new(p.ctx, uop_alu2(p.st, OPS_FDIV, p.a, p.b)) : NULL;
}

/* TRUNC, minus one if truncation rounded up. */
static UOp *u_floor(UOpStore *st, UOp *x) {
  if (!x || !dtype_is_float((DType)x->dtype)) return x;
  UOp *t = uop_alu1(st, OPS_TRUNC, x);
  return uop_where(st, uop_alu2(st, OPS_CMPLT, x, t), uop_alu2(st, OPS_SUB, t, u_num(st, 1, x)), t);
}

TgTensor *tg_floordiv(TgTensor *a, TgTensor *b) {
  Pair p = operands("floordiv", a, b, both_bool(a, b) ? DT_I32 : DT_VOID);
  if (!p.ctx) return NULL;
  bool f = dtype_is_float((DType)p.a->dtype);
  return tensor_new(p.ctx, f ? u_floor(p.st, uop_alu2(p.st, OPS_FDIV, p.a, p.b))
                             : uop_alu2(p.st, OPS_FLOORDIV, p.a, p.b));
}

static TgStatus gradient_of_mod(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out,
                                void *user) {
  (void)y, (void)n, (void)user;
  out[0] = g;
  out[1] = tg_neg(tg_mul(g, tg_floordiv(x[0], x[1])));
  return out[1] ? TG_OK : TG_ERR_NOMEM;
}

TgTensor *tg_mod(TgTensor *a, TgTensor *b) {
  Pair p = operands("mod", a, b, both_bool(a, b) ? DT_I32 : DT_VOID);
  if (!p.ctx) return NULL;
  if (!dtype_is_float((DType)p.a->dtype)) return tensor_new(p.ctx, uop_alu2(p.st, OPS_FLOORMOD, p.a, p.b));
  TgTensor *x = tensor_new(p.ctx, p.a);
  TgTensor *y = tensor_new(p.ctx, p.b);
  TgTensor *r = tg_detach(tg_fmod(x, y));
  TgTensor *at_zero = tg_eq_scalar(r, 0);
  TgTensor *moved = tg_bitand(tg_logical_not(at_zero), tg_ne(tg_signbit(r), tg_signbit(y)));
  TgTensor *still = tg_where(at_zero, tg_copysign(r, y), r);
  TgTensor *value = tg_where(moved, tg_add(r, y), still); /* has the sign of the divisor, even if it is 0 */
  return tg_custom_gradient(value, (TgTensor *[]){x, y}, 2, gradient_of_mod, NULL);
}

/* Whether a power is a short product, which is exact for integers and fast for floats. */
static bool is_product(double v) { return v == floor(v) && v > 0 && v <= 64; }

TgTensor *tg_pow(TgTensor *a, TgTensor *b) {
  if (!ctx_two("pow", a, b)) return NULL;
  DType d = dtype_join(dt(a), dt(b));
  Pair p = operands("pow", a, b, d == DT_BOOL ? DT_I32 : d);
  if (!p.ctx) return NULL;
  const UOp *u = p.b;
  while (u->op == OPS_RESHAPE || u->op == OPS_EXPAND || u->op == OPS_CAST)
    u = u->src[0];
  double v = u->op != OPS_CONST ? 0 : dtype_is_float((DType)u->dtype) ? u->arg.v.f : (double)u->arg.v.i;
  if (is_product(v)) return tg_pow_scalar(tensor_new(p.ctx, p.a), v);
  return tensor_new(p.ctx, uop_alu2(p.st, OPS_POW, p.a, p.b));
}

TgTensor *tg_maximum(TgTensor *a, TgTensor *b) {
  return binary("maximum", both_bool(a, b) ? OPS_OR : OPS_MAX, a, b);
}

TgTensor *tg_minimum(TgTensor *a, TgTensor *b) {
  Pair p = operands("minimum", a, b, DT_VOID);
  return p.ctx ? tensor_new(p.ctx, u_min(p.st, p.a, p.b)) : NULL;
}

/* ---- comparisons: IEEE. "le" is not "not gt", which would be true for NaN. */
static UOp *u_le(UOpStore *st, UOp *a, UOp *b) {
  if (!a || !b) return NULL;
  if (!dtype_is_float((DType)a->dtype)) return u_not(st, uop_alu2(st, OPS_CMPLT, b, a));
  return uop_alu2(st, OPS_OR, uop_alu2(st, OPS_CMPLT, a, b), uop_alu2(st, OPS_CMPEQ, a, b));
}

static TgTensor *less_equal(const char *name, TgTensor *a, TgTensor *b) {
  Pair p = operands(name, a, b, DT_VOID);
  return p.ctx ? tensor_new(p.ctx, u_le(p.st, p.a, p.b)) : NULL;
}

TgTensor *tg_lt(TgTensor *a, TgTensor *b) { return binary("lt", OPS_CMPLT, a, b); }

TgTensor *tg_gt(TgTensor *a, TgTensor *b) { return binary("gt", OPS_CMPLT, b, a); }

TgTensor *tg_le(TgTensor *a, TgTensor *b) { return less_equal("le", a, b); }

TgTensor *tg_ge(TgTensor *a, TgTensor *b) { return less_equal("ge", b, a); }

TgTensor *tg_eq(TgTensor *a, TgTensor *b) { return binary("eq", OPS_CMPEQ, a, b); }

TgTensor *tg_ne(TgTensor *a, TgTensor *b) { return binary("ne", OPS_CMPNE, a, b); }

static TgTensor *bits(const char *name, Ops op, TgTensor *a, TgTensor *b) {
  if (!ctx_two(name, a, b)) return NULL;
  DType d = dtype_join(dt(a), dt(b));
  TG_REQUIRE(a->ctx, !dtype_is_float(d) && (d != DT_BOOL || (op != OPS_SHL && op != OPS_SHR)), TG_ERR_DTYPE,
             "%s: %s and %s", name, dtype_name(dt(a)), dtype_name(dt(b)));
  return binary(name, op, a, b);
}

TgTensor *tg_bitand(TgTensor *a, TgTensor *b) { return bits("bitand", OPS_AND, a, b); }

TgTensor *tg_bitor(TgTensor *a, TgTensor *b) { return bits("bitor", OPS_OR, a, b); }

TgTensor *tg_bitxor(TgTensor *a, TgTensor *b) { return bits("bitxor", OPS_XOR, a, b); }

TgTensor *tg_shl(TgTensor *a, TgTensor *b) { return bits("shl", OPS_SHL, a, b); }

TgTensor *tg_shr(TgTensor *a, TgTensor *b) { return bits("shr", OPS_SHR, a, b); }

TgTensor *tg_where(TgTensor *c, TgTensor *a, TgTensor *b) {
  if (!ctx_two("where", c, a) || !ctx_two("where", a, b)) return NULL;
  TgContext *ctx = c->ctx;
  UOpStore *st = ctx->store;
  TG_REQUIRE(ctx, dt(c) == DT_BOOL, TG_ERR_DTYPE, "where: the condition is %s, not bool", dtype_name(dt(c)));
  const Ints *s = shape_broadcast(ctx, "where", a->uop->shape, b->uop->shape);
  if (s) s = shape_broadcast(ctx, "where", c->uop->shape, s);
  if (!s) return NULL;
  DType d = dtype_join(dt(a), dt(b));
  return tensor_new(ctx,
                    uop_where(st, u_broadcast(st, c->uop, s), u_broadcast(st, uop_cast(st, a->uop, d), s),
                              u_broadcast(st, uop_cast(st, b->uop, d), s)));
}

/* ---- a tensor and a scalar */
BY_SCALAR(add)
BY_SCALAR(sub)

TgTensor *tg_rsub_scalar(TgTensor *x, double v) { return tg_sub(tg_scalar_like(x, v), x); }

BY_SCALAR(mul)
BY_SCALAR(div)

TgTensor *tg_rdiv_scalar(TgTensor *x, double v) { return tg_div(tg_scalar_like(x, v), x); }

BY_SCALAR(maximum)
BY_SCALAR(minimum)
BY_SCALAR(lt)
BY_SCALAR(gt)
BY_SCALAR(le)
BY_SCALAR(ge)
BY_SCALAR(eq)
BY_SCALAR(ne)

TgTensor *tg_pow_scalar(TgTensor *x, double v) {
  if (!x) return NULL;
  bool f = dtype_is_float(dt(x));
  TG_REQUIRE(x->ctx, f || !(v < 0 && v == floor(v)), TG_ERR_VALUE,
             "pow: %s to the power %g is no integer; cast to a float first", dtype_name(dt(x)), v);
  if (v == 0) return tg_full_like(dt(x) == DT_BOOL ? tensor_cast(x, TG_I32) : x, 1);
  if (v == 0.5) return tg_sqrt(x);
  if (v == -0.5) return tg_rsqrt(x);
  if (v == -1) return tg_reciprocal(x);
  if (is_product(v)) { /* repeated squaring */
    TgTensor *r = NULL, *p = dt(x) == DT_BOOL ? tensor_cast(x, TG_I32) : x;
    for (int e = (int)v; e && p; e >>= 1, p = e ? tg_mul(p, p) : p)
      if (e & 1) r = r ? tg_mul(r, p) : p;
    return p ? tensor_result(r, x) : NULL;
  }
  return tg_pow(x, tg_scalar_like(x, v));
}

/* Uses WHERE instead of MAX, so that NaN passes and a value that equals a bound passes the gradient. An
 * infinite bound is no bound. */
TgTensor *tg_clamp(TgTensor *x, double lo, double hi) {
  if (!x) return NULL;
  /* bounds outside the range of the dtype have no effect */
  bool any = dtype_is_float(dt(x));
  bool below = !any && lo <= dtype_lowest(dt(x));
  bool above = !any && hi >= dtype_highest(dt(x));
  TgTensor *l = tg_scalar_like(x, lo), *h = tg_scalar_like(x, hi), *r = x;
  if (lo != -INFINITY && !below) r = tg_where(tg_lt(r, l), l, r);
  if (hi != INFINITY && !above) r = tg_where(tg_lt(h, r), h, r);
  return tensor_result(r, x);
}

/* ---- one tensor */
static TgTensor *unary(Ops op, TgTensor *x, bool to_float) {
  if (!x) return NULL;
  UOpStore *st = x->ctx->store;
  return tensor_new(x->ctx,
                    uop_alu1(st, op, to_float ? uop_cast(st, x->uop, dtype_as_float(dt(x))) : x->uop));
}

TgTensor *tensor_cast(TgTensor *x, TgDType to) {
  if (!x) return NULL;
  DType d = dtype_of(to, DT_VOID);
  TG_REQUIRE(x->ctx, d, TG_ERR_DTYPE, "cast: unknown dtype %d", (int)to);
  return d == dt(x) ? x : tensor_new(x->ctx, uop_cast(x->ctx->store, x->uop, d));
}

TgTensor *as_wide(TgTensor *x) { return x && dt(x) != DT_F64 ? tensor_cast(x, TG_F32) : x; }

TgTensor *as_narrow(TgTensor *r, const TgTensor *x) {
  return r && x ? tensor_cast(r, dtype_public(dtype_as_float(dt(x)))) : NULL;
}

TgTensor *tg_cast(TgTensor *x, TgDType to) { return tensor_result(tensor_cast(x, to), x); }

#define CAST(name, to)                                                                                       \
  TgTensor *tg_##name(TgTensor *x) { return tg_cast(x, to); }
CAST(float, TG_F32)
CAST(double, TG_F64)
CAST(half, TG_F16)
CAST(bfloat16, TG_BF16)
CAST(int, TG_I32)
CAST(long, TG_I64)
CAST(short, TG_I16)
CAST(bool, TG_BOOL)

TgTensor *tg_neg(TgTensor *x) {
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, dt(x) != DT_BOOL, TG_ERR_DTYPE, "neg: bool; use logical_not");
  return unary(OPS_NEG, x, false);
}

TgTensor *tg_logical_not(TgTensor *x) {
  if (!x) return NULL;
  UOpStore *st = x->ctx->store;
  return tensor_new(x->ctx, dt(x) == DT_BOOL ? u_not(st, x->uop)
                                             : uop_alu2(st, OPS_CMPEQ, x->uop, u_num(st, 0, x->uop)));
}

#define UNARY(name, op)                                                                                      \
  TgTensor *tg_##name(TgTensor *x) { return unary(op, x, true); }
UNARY(exp, OPS_EXP)
UNARY(exp2, OPS_EXP2)
UNARY(log, OPS_LOG)
UNARY(log2, OPS_LOG2)
UNARY(sin, OPS_SIN)
UNARY(cos, OPS_COS)
UNARY(tan, OPS_TAN)
UNARY(tanh, OPS_TANH)
UNARY(sqrt, OPS_SQRT)
UNARY(reciprocal, OPS_RECIPROCAL)

TgTensor *tg_rsqrt(TgTensor *x) { return tg_reciprocal(tg_sqrt(x)); }

TgTensor *tg_square(TgTensor *x) { return tg_mul(x, x); }

TgTensor *tg_abs(TgTensor *x) {
  if (!x || dt(x) == DT_BOOL || dtype_is_unsigned(dt(x))) return tensor_result(x, x);
  if (!dtype_is_float(dt(x))) return tg_maximum(x, tg_neg(x));
  TgTensor *zero = tg_scalar_like(x, 0); /* both zeros give this zero, which has no slope */
  return tg_where(tg_eq(x, zero), zero, tg_where(tg_lt(x, zero), tg_neg(x), x));
}

TgTensor *tg_sign(TgTensor *x) {
  if (!x || dt(x) == DT_BOOL) return tensor_result(x, x);
  TgTensor *zero = tg_scalar_like(x, 0);
  TgTensor *one = tg_scalar_like(x, 1);
  TgTensor *rest = dtype_is_float(dt(x)) ? tg_where(tg_isnan(x), tg_detach(x), zero) : zero;
  TgTensor *r = tg_where(tg_lt(zero, x), one, rest);
  return dtype_is_unsigned(dt(x)) ? r : tg_where(tg_lt(x, zero), tg_neg(one), r);
}

TgTensor *tg_trunc(TgTensor *x) {
  return x && dtype_is_float(dt(x)) ? unary(OPS_TRUNC, x, false) : tensor_result(x, x);
}

TgTensor *tg_floor(TgTensor *x) {
  return x && dtype_is_float(dt(x)) ? tensor_new(x->ctx, u_floor(x->ctx->store, x->uop))
                                    : tensor_result(x, x);
}

TgTensor *tg_ceil(TgTensor *x) {
  return x && dtype_is_float(dt(x)) ? tg_neg(tg_floor(tg_neg(x))) : tensor_result(x, x);
}

/* Rounds to the nearest whole number, or to the even one of two. The last bit of |x| + 2^23 stands for 1
 * (2^52 in double precision), so adding and subtracting it rounds. Larger numbers are whole already. -0.3
 * gives -0. */
TgTensor *tg_round(TgTensor *x) {
  if (!x || !dtype_is_float(dt(x))) return tensor_result(x, x);
  TgTensor *w = tg_detach(as_wide(x)), *minus = tg_signbit(w), *a = tg_where(minus, tg_neg(w), w);
  double whole = dt(x) == DT_F64 ? 0x1p52 : 0x1p23;
  TgTensor *near = tg_sub_scalar(tg_add_scalar(a, whole), whole);
  TgTensor *r = tg_where(tg_lt_scalar(a, whole), near, a);
  return as_narrow(tg_where(minus, tg_neg(r), r), x);
}

TgTensor *tg_isnan(TgTensor *x) { return tg_ne(x, x); }

TgTensor *tg_isinf(TgTensor *x) {
  if (!x) return NULL;
  if (!dtype_is_float(dt(x))) return tensor_cast(tg_zeros_like(x), TG_BOOL);
  return tg_bitor(tg_eq_scalar(x, INFINITY), tg_eq_scalar(x, -INFINITY));
}

/* ---- activations */
/* gradient.rules recognises relu by its detached 0, so no gradient passes at 0. */
TgTensor *tg_relu(TgTensor *x) {
  if (!x || dt(x) == DT_BOOL || dtype_is_unsigned(dt(x))) return tensor_result(x, x);
  return tg_maximum(x, tg_detach(tg_scalar_like(x, 0)));
}

TgTensor *tg_leaky_relu(TgTensor *x, double slope) {
  x = as_float(x);
  return tg_where(tg_lt_scalar(x, 0), tg_mul_scalar(x, slope), x);
}

/* e = exp(-|x|) is at most 1, so neither the value nor its gradient overflows. |x| is made by WHERE so
 * that its slope is 1 at 0. */
static TgTensor *wide_sigmoid(TgTensor *x) {
  TgTensor *neg = tg_lt_scalar(x, 0), *e = tg_exp(tg_where(neg, x, tg_neg(x)));
  return tg_div(tg_where(neg, e, tg_scalar_like(x, 1)), tg_add_scalar(e, 1));
}

TgTensor *tg_sigmoid(TgTensor *x) { return as_narrow(wide_sigmoid(as_wide(x)), x); }

TgTensor *tg_gelu(TgTensor *x) { /* x/2 (1 + tanh u) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3) */
  TgTensor *w = as_wide(x), *inner = tg_mul(w, tg_add_scalar(tg_mul_scalar(tg_mul(w, w), 0.044715), 1));
  return as_narrow(tg_mul(w, wide_sigmoid(tg_mul_scalar(inner, 1.59576912160573071176))), x);
}

TgTensor *tg_silu(TgTensor *x) {
  TgTensor *w = as_wide(x);
  return as_narrow(tg_mul(w, wide_sigmoid(w)), x);
}

/* log(1 + e) for e = exp(-|x|), which is in 0 .. 1. u = 1 + e loses the low bits of e. Their share, (e -
 * (u - 1)) / u, is added back. It is detached because the derivative of log u is already that of the
 * whole. */
TgTensor *tg_softplus(TgTensor *x) {
  TgTensor *w = as_wide(x);
  TgTensor *zero = tg_scalar_like(w, 0);
  TgTensor *pos = tg_lt(zero, w);
  TgTensor *e = tg_exp(tg_where(pos, tg_neg(w), w));
  TgTensor *u = tg_add_scalar(e, 1);
  TgTensor *share = tg_detach(tg_div(tg_sub(e, tg_sub_scalar(u, 1)), u));
  return as_narrow(tg_add(tg_where(pos, w, zero), tg_add(tg_log(u), share)), x);
}
