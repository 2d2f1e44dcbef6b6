/* math.c: mathematical functions beyond the compiler's own ops. Each is a composition that keeps relative
 * accuracy near its zeros and does not overflow before its result does: a polynomial where a formula would
 * cancel, a formula elsewhere. The polynomials are Chebyshev fits made for this file. The errors beside
 * them are the relative errors of the fits (f32, f64). Narrow floats are computed in f32 and rounded once. */
#include "tensor/front.h"

/* coefficients, highest power first */
typedef struct Poly {
  int n;
  const double *c;
} Poly;

#define POLY(...)                                                                                            \
  {                                                                                                          \
    (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)), (const double[]) { __VA_ARGS__ }          \
  }

typedef struct Fit {
  Poly f32, f64;
} Fit;

/* atan(t)/t in t^2, |t| <= tan(pi/8): 6e-10, 2e-21 */
static const Fit fit_atan = {POLY(-0.060263052276584593, 0.10569828806414448, -0.14239532669648974,
                                  0.19998183041083206, -0.33333306893048514, 0.99999999937122819),
                             POLY(-0.012911256782015863, 0.029533108747433718, -0.040511455656736091,
                                  0.047044349347049826, -0.052553408501062854, 0.058815973499589294,
                                  -0.06666614813536087, 0.07692305199589404, -0.090909090092738037,
                                  0.11111111109374344, -0.14285714285692105, 0.19999999999999851,
                                  -0.33333333333333331, 1)};
/* asin(t)/t in t^2, |t| <= 1/2: 5e-9, 7e-20 */
static const Fit fit_asin = {POLY(0.042417373759799842, 0.023993999653647589, 0.045520635631714566,
                                  0.074946966874239726, 0.16666782005775338, 0.99999999598373801),
                             POLY(0.0335771469474287, -0.026044488873720434, 0.0247548762838696,
                                  0.00070939259432524623, 0.010003606639881351, 0.0094846978690456222,
                                  0.01158567991890895, 0.013961891184389839, 0.017352945180225478,
                                  0.022372151536955744, 0.030381944649750525, 0.044642857139506768,
                                  0.075000000000028558, 0.16666666666666657, 1)};
/* sinh(t)/t in t^2, |t| <= 1: 5e-11, 2e-29 */
static const Fit fit_sinh = {POLY(2.8190187927929588e-06, 0.00019835713875553468, 0.0083333532055163712,
                                  0.16666666418097759, 1.0000000000497202),
                             POLY(1.9786802194816573e-20, 8.2201264522572568e-18, 2.8114579377795823e-15,
                                  7.6471637261217072e-13, 1.6059043836852126e-10, 2.5052108385441614e-08,
                                  2.7557319223985893e-06, 0.00019841269841269841, 0.0083333333333333332,
                                  0.16666666666666666, 1)};
/* asinh(t)/t in t^2, |t| <= 1/4: 4e-11, 3e-26 */
static const Fit fit_asinh = {POLY(0.027144126926162786, -0.044470142840274063, 0.074996187613171048,
                                   -0.16666663703259976, 0.99999999996299316),
                              POLY(0.004526064564293694, -0.0069900292475793225, 0.0083577210510070669,
                                   -0.0097594524842112597, 0.01155170393840519, -0.013964840746978853,
                                   0.017352764359274696, -0.022372159089999462, 0.03038194444443611,
                                   -0.044642857142857095, 0.074999999999999997, -0.16666666666666666, 1)};
/* atanh(t)/t in t^2, |t| <= 1/4: 2e-10, 3e-23 */
static const Fit fit_atanh = {POLY(0.12663173475536446, 0.14198460545975464, 0.20001971836619037,
                                   0.33333317842076299, 1.0000000001938465),
                              POLY(0.06189318718360743, 0.044398369096436872, 0.05294480521859566,
                                   0.05880445881765943, 0.06666742858644259, 0.076923056694001249,
                                   0.09090909126176086, 0.11111111110722037, 0.14285714285716813,
                                   0.19999999999999993, 0.33333333333333331, 1)};
/* erf(t)/t in t^2, |t| <= 1: 3e-11, 3e-23 */
static const Fit fit_erf = {
    POLY(-9.6670445714869965e-06, 0.00011265959025606609, -0.00084840804055351068, 0.0052210318078580228,
         -0.026865430727670243, 0.11283782495236845, -0.37612638468028708, 1.1283791670615435),
    POLY(2.8067128195611264e-13, -6.1967364287876997e-12, 9.3237235181530271e-11, -1.2277734486795524e-09,
         1.4806027146128752e-08, -1.6365768648832071e-07, 1.6462110782018636e-06, -1.4925650236967501e-05,
         0.00012055332978879483, -0.0008548327023403001, 0.0052239776254416736, -0.026866170645131218,
         0.11283791670955126, -0.37612638903183754, 1.1283791670955126)};
/* erfc(x) exp(x^2) in 1/x, with 1/4 .. 1 (f64: 1/6 .. 1) mapped to -1 .. 1, where the powers do not
 * cancel. Absolute errors: 5e-9, 2e-16. Beyond x = 4 (6), erf is 1 in f32 (f64). */
static const Fit fit_erfcx = {
    POLY(3.6710168983085523e-06, -2.7728106705509834e-06, -2.775028240125302e-05, 0.00012419661914497173,
         -0.0003483616161278017, 0.0004599445172602164, 0.002308089708172659, -0.024242836555229387,
         0.1433564093135487, 0.3059529887942309),
    POLY(1.5556735704659984e-09, -4.287386484589626e-09, 2.2486492143038342e-10, 1.0397665991608866e-08,
         -1.8649792031756494e-08, 4.106033452106679e-08, -9.481431088854679e-08, 1.3115171718798185e-07,
         1.4689536495763653e-09, -6.657921249770734e-07, 2.5830659599898264e-06, -6.497291537598882e-06,
         1.0882654670489532e-05, -4.046789993234076e-06, -5.52864958439701e-05, 0.0002656054895056027,
         -0.0007383867430399212, 0.0010344322249226908, 0.0028211318978840923, -0.030831050508395068,
         0.16536269001261455, 0.28972211632346406)};

static TgTensor *eval(TgTensor *z, const Fit *f) {
  if (!z) return NULL;
  const Poly *p = dt(z) == DT_F64 ? &f->f64 : &f->f32;
  TgTensor *r = tg_scalar_like(z, p->c[0]);
  for (int i = 1; i < p->n; i++)
    r = tg_add_scalar(tg_mul(r, z), p->c[i]);
  return r;
}

static TgTensor *odd(TgTensor *t, const Fit *f) { return tg_mul(t, eval(tg_mul(t, t), f)); }

static TgTensor *constant(TgTensor *x, double v) { return tg_scalar_like(x, v); }

/* |x| with slope 1 at 0, so that a function built on it has the right slope there. */
static TgTensor *magnitude(TgTensor *x) { return tg_where(tg_lt_scalar(x, 0), tg_neg(x), x); }

static TgTensor *signed_as(TgTensor *magnitude, TgTensor *x) {
  return tg_where(tg_lt_scalar(x, 0), tg_neg(magnitude), magnitude);
}

/* Replaces x by a harmless number where c is false, because the branch that is not taken must not produce
 * inf or NaN in its gradient. */
static TgTensor *only_where(TgTensor *c, TgTensor *x, double harmless) {
  return tg_where(c, x, constant(x, harmless));
}

/* ---- derivatives that are given explicitly, where the formula's own derivative would overflow too early
 * or lose what cancels, or where the second derivative of a polynomial is not accurate enough */
typedef TgTensor *(*Derivative)(TgTensor *x);

static TgStatus chain(TgTensor *g, TgTensor *x, Derivative d, TgTensor **out) {
  return (*out = tg_mul(g, d(x))) ? TG_OK : TG_ERR_NOMEM;
}

#define DERIVATIVE(name, d)                                                                                  \
  static TgStatus name(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out, void *user) {    \
    (void)y, (void)n, (void)user;                                                                            \
    return chain(g, x[0], d, out);                                                                           \
  }

static TgTensor *with_derivative(TgTensor *y, TgTensor *x, TgGradientFn fn) {
  return tg_custom_gradient(y, &x, 1, fn, NULL);
}

static TgTensor *derivative_of_asin(TgTensor *x) {
  return tg_rsqrt(tg_mul(tg_rsub_scalar(x, 1), tg_add_scalar(x, 1)));
}

static TgTensor *derivative_of_acos(TgTensor *x) { return tg_neg(derivative_of_asin(x)); }

static TgTensor *derivative_of_atan(TgTensor *x) { return tg_reciprocal(tg_add_scalar(tg_mul(x, x), 1)); }

static TgTensor *derivative_of_atanh(TgTensor *x) {
  return tg_reciprocal(tg_mul(tg_rsub_scalar(x, 1), tg_add_scalar(x, 1)));
}

static TgTensor *derivative_of_erf(TgTensor *x) {
  return tg_mul_scalar(tg_exp(tg_neg(tg_mul(x, x))), 1.12837916709551257390);
}
DERIVATIVE(gradient_of_sinh, tg_cosh)
DERIVATIVE(gradient_of_cosh, tg_sinh)
DERIVATIVE(gradient_of_asin, derivative_of_asin)
DERIVATIVE(gradient_of_acos, derivative_of_acos)
DERIVATIVE(gradient_of_atan, derivative_of_atan)
DERIVATIVE(gradient_of_atanh, derivative_of_atanh)
DERIVATIVE(gradient_of_erf, derivative_of_erf)

TgTensor *tg_log10(TgTensor *x) {
  return as_narrow(tg_mul_scalar(tg_log(as_wide(x)), 0.43429448190325182765), x);
}

/* For |x| > 1, uses e = exp(|x|/2), whose square overflows only if the result does. */
TgTensor *tg_sinh(TgTensor *x) {
  TgTensor *w = as_wide(x), *a = magnitude(w), *small = tg_lt_scalar(a, 1);
  TgTensor *e = tg_exp(tg_mul_scalar(a, 0.5));
  TgTensor *big = tg_sub(tg_mul(tg_mul_scalar(e, 0.5), e), tg_div(tg_rdiv_scalar(e, 0.5), e));
  TgTensor *y = tg_where(small, odd(only_where(small, w, 0), &fit_sinh), signed_as(big, w));
  return as_narrow(with_derivative(y, w, gradient_of_sinh), x);
}

TgTensor *tg_cosh(TgTensor *x) {
  TgTensor *w = as_wide(x), *e = tg_exp(tg_mul_scalar(magnitude(w), 0.5));
  TgTensor *y = tg_add(tg_mul(tg_mul_scalar(e, 0.5), e), tg_div(tg_rdiv_scalar(e, 0.5), e));
  return as_narrow(with_derivative(y, w, gradient_of_cosh), x);
}

/* For |x| > 1/2: asin x = pi/2 - 2 asin(sqrt((1 - |x|) / 2)). Outside [-1, 1] the root is NaN. */
static TgTensor *half_angle(TgTensor *a, TgTensor *inner) {
  return odd(tg_sqrt(tg_mul_scalar(tg_rsub_scalar(tg_where(inner, constant(a, 0), a), 1), 0.5)), &fit_asin);
}

TgTensor *tg_asin(TgTensor *x) {
  TgTensor *w = as_wide(x), *a = magnitude(w), *inner = tg_lt_scalar(a, 0.5);
  TgTensor *outer = tg_rsub_scalar(tg_mul_scalar(half_angle(a, inner), 2), 1.57079632679489661923);
  TgTensor *y = tg_where(inner, odd(only_where(inner, w, 0), &fit_asin), signed_as(outer, w));
  return as_narrow(with_derivative(y, w, gradient_of_asin), x);
}

TgTensor *tg_acos(TgTensor *x) {
  TgTensor *w = as_wide(x), *a = magnitude(w), *inner = tg_lt_scalar(a, 0.5);
  TgTensor *h = tg_mul_scalar(half_angle(a, inner), 2);
  TgTensor *outer = tg_where(tg_lt_scalar(w, 0), tg_rsub_scalar(h, 3.14159265358979323846), h);
  TgTensor *middle = tg_rsub_scalar(odd(only_where(inner, w, 0), &fit_asin), 1.57079632679489661923);
  return as_narrow(with_derivative(tg_where(inner, middle, outer), w, gradient_of_acos), x);
}

/* t = |x|, or -1/|x| beyond tan(3 pi/8), or (|x| - 1)/(|x| + 1) between, so |t| is at most tan(pi/8). The
 * angle that is added back is 0, pi/2 or pi/4. */
TgTensor *tg_atan(TgTensor *x) {
  TgTensor *w = as_wide(x);
  TgTensor *a = magnitude(w);
  TgTensor *low = tg_lt_scalar(a, 0.41421356237309503);
  TgTensor *high = tg_gt_scalar(a, 2.4142135623730949);
  TgTensor *mid = tg_logical_not(tg_bitor(low, high)), *m = tg_where(mid, a, constant(a, 1));
  TgTensor *t = tg_where(low, a,
                         tg_where(high, tg_rdiv_scalar(only_where(high, a, 1), -1),
                                  tg_div(tg_sub_scalar(m, 1), tg_add_scalar(m, 1))));
  TgTensor *base =
      tg_where(low, constant(a, 0),
               tg_where(high, constant(a, 1.57079632679489661923), constant(a, 0.78539816339744830962)));
  /* -0 stays -0 */
  TgTensor *r = signed_as(tg_add(base, odd(t, &fit_atan)), w);
  TgTensor *itself = tg_bitor(tg_isnan(w), tg_eq_scalar(w, 0));
  return as_narrow(with_derivative(tg_where(itself, w, r), w, gradient_of_atan), x);
}

/* +0 for -0, where the slope is -1 as it is below 0. */
static TgTensor *unsigned_of(TgTensor *x) { return tg_where(tg_signbit(x), tg_neg(x), x); }

TgTensor *tg_atan2(TgTensor *y, TgTensor *x) {
  if (!ctx_two("atan2", y, x)) return NULL;
  TgDType d = dtype_public(dtype_as_float(dtype_join(dt(y), dt(x))));
  TgTensor *a = as_wide(tensor_cast(y, d));
  TgTensor *b = as_wide(tensor_cast(x, d));
  TgTensor *pa = unsigned_of(a);
  TgTensor *pb = unsigned_of(b);
  TgTensor *inf = tg_bitand(tg_isinf(a), tg_isinf(b));
  TgTensor *zero = tg_bitand(tg_eq_scalar(a, 0), tg_eq_scalar(b, 0));
  TgTensor *plain = tg_logical_not(tg_bitor(inf, zero));
  TgTensor *steep = tg_lt(pb, pa);
  TgTensor *q = tg_atan(
      tg_div(only_where(plain, tg_where(steep, pb, pa), 0), only_where(plain, tg_where(steep, pa, pb), 1)));
  TgTensor *r = tg_where(steep, tg_rsub_scalar(q, 1.57079632679489661923), q);
  r = tg_where(inf, constant(r, 0.78539816339744830962), r);
  r = tg_where(tg_signbit(b), tg_rsub_scalar(r, 3.14159265358979323846), r);
  r = tg_where(tg_signbit(a), tg_neg(r), r);
  return tensor_cast(tg_where(tg_bitor(tg_isnan(a), tg_isnan(b)), tg_add(a, b), r), d);
}

/* log(|x| + sqrt(x^2 + 1)), or log |x| + log 2 if the square would overflow. */
TgTensor *tg_asinh(TgTensor *x) {
  TgTensor *w = as_wide(x), *a = magnitude(w), *small = tg_lt_scalar(a, 0.25), *huge = tg_gt_scalar(a, 1e9);
  TgTensor *m = tg_where(tg_bitor(small, huge), constant(a, 1), a);
  TgTensor *mid = tg_log(tg_add(m, tg_sqrt(tg_add_scalar(tg_mul(m, m), 1))));
  TgTensor *far = tg_add_scalar(tg_log(only_where(huge, a, 1)), 0.69314718055994530942);
  return as_narrow(
      tg_where(small, odd(only_where(small, w, 0), &fit_asinh), signed_as(tg_where(huge, far, mid), w)), x);
}

/* 2 asinh(sqrt((x - 1) / 2)), which is accurate near 1 and NaN below it. */
TgTensor *tg_acosh(TgTensor *x) {
  return as_narrow(tg_mul_scalar(tg_asinh(tg_sqrt(tg_mul_scalar(tg_sub_scalar(as_wide(x), 1), 0.5))), 2), x);
}

TgTensor *tg_atanh(TgTensor *x) {
  TgTensor *w = as_wide(x);
  TgTensor *small = tg_lt_scalar(magnitude(w), 0.25);
  TgTensor *m = only_where(tg_logical_not(small), w, 0.5);
  TgTensor *far = tg_mul_scalar(tg_log(tg_div(tg_add_scalar(m, 1), tg_rsub_scalar(m, 1))), 0.5);
  TgTensor *y = tg_where(small, odd(only_where(small, w, 0), &fit_atanh), far);
  return as_narrow(with_derivative(y, w, gradient_of_atanh), x);
}

/* For |x| > 1: 1 - exp(-x^2) q(1/x). */
TgTensor *tg_erf(TgTensor *x) {
  TgTensor *w = as_wide(x), *a = magnitude(w);
  if (!a) return NULL;
  double end = dt(w) == DT_F64 ? 6 : 4;
  TgTensor *small = tg_lt_scalar(a, 1);
  TgTensor *m = tg_where(small, constant(a, 1), tg_where(tg_gt_scalar(a, end), constant(a, end), a));
  double scale = 2 * end / (end - 1), shift = (end + 1) / (end - 1);
  TgTensor *drawn = tg_sub_scalar(tg_mul_scalar(tg_reciprocal(m), scale), shift);
  TgTensor *tail = tg_mul(tg_exp(tg_neg(tg_mul(m, m))), eval(drawn, &fit_erfcx));
  TgTensor *far = tg_where(tg_gt_scalar(a, end), constant(a, 1), tg_rsub_scalar(tail, 1));
  TgTensor *y =
      tg_where(tg_isnan(w), w, tg_where(small, odd(only_where(small, w, 0), &fit_erf), signed_as(far, w)));
  return as_narrow(with_derivative(y, w, gradient_of_erf), x);
}

/* ---- signs and special values */
/* Tests the top bit itself, so that -0.0 and NaN have a sign too. */
TgTensor *tg_signbit(TgTensor *x) {
  if (!x) return NULL;
  if (!dtype_is_float(dt(x)))
    return dt(x) == DT_BOOL || dtype_is_unsigned(dt(x)) ? tensor_cast(tg_zeros_like(x), TG_BOOL)
                                                        : tg_lt_scalar(x, 0);
  static const TgDType same_size[] = {[1] = TG_I8, [2] = TG_I16, [4] = TG_I32, [8] = TG_I64};
  return tg_lt_scalar(tg_bitcast(x, same_size[dtype_size(dt(x))]), 0);
}

TgTensor *tg_copysign(TgTensor *x, TgTensor *sign) {
  if (!ctx_two("copysign", x, sign)) return NULL;
  TgDType d = dtype_public(dtype_as_float(dtype_join(dt(x), dt(sign))));
  TgTensor *a = tensor_cast(x, d);
  TgTensor *flip = tg_ne(tg_signbit(a), tg_signbit(tensor_cast(sign, d)));
  TgTensor *y = tg_where(flip, tg_neg(a), a);
  return tg_where(tg_eq_scalar(a, 0), tg_detach(y), y); /* at 0 of either sign there is no slope */
}

TgTensor *tg_isfinite(TgTensor *x) { return x ? tg_logical_not(tg_bitor(tg_isnan(x), tg_isinf(x))) : NULL; }

TgTensor *tg_isposinf(TgTensor *x) { return tg_bitand(tg_isinf(x), tg_gt_scalar(x, 0)); }

TgTensor *tg_isneginf(TgTensor *x) { return tg_bitand(tg_isinf(x), tg_lt_scalar(x, 0)); }

TgTensor *tg_isclose_opt(TgTensor *a, TgTensor *b, const TgCloseOptions *opt) {
  if (!ctx_two("isclose", a, b)) return NULL;
  TG_OPTIONS(tg_context(a), "isclose", TgCloseOptions, o, opt);
  double rtol = TG_OPTION(o, rtol, o.exact ? 0 : 1e-5);
  double atol = TG_OPTION(o, atol, o.exact ? 0 : 1e-8);
  TG_REQUIRE(a->ctx, rtol >= 0 && atol >= 0, TG_ERR_VALUE,
             "isclose: rtol %g and atol %g must not be negative", rtol, atol);
  TgDType d = dtype_public(dtype_as_float(dtype_join(dt(a), dt(b))));
  TgTensor *same = tg_eq(a, b);
  TgTensor *x = tensor_cast(a, d);
  TgTensor *y = tensor_cast(b, d);
  TgTensor *finite = tg_bitand(tg_isfinite(x), tg_isfinite(y));
  TgTensor *room = tg_add_scalar(tg_mul_scalar(tg_abs(y), rtol), atol);
  TgTensor *r = tg_bitor(same, tg_bitand(finite, tg_le(tg_abs(tg_sub(x, y)), room)));
  return o.equal_nan ? tg_bitor(r, tg_bitand(tg_isnan(x), tg_isnan(y))) : r;
}

TgTensor *tg_allclose_opt(TgTensor *a, TgTensor *b, const TgCloseOptions *o) {
  return tg_all(tg_isclose_opt(a, b, o));
}

/* ---- more arithmetic */
TgTensor *tg_truncdiv(TgTensor *a, TgTensor *b) {
  Pair p = operands("truncdiv", a, b, DT_VOID);
  if (!p.ctx) return NULL;
  if (dtype_is_float((DType)p.a->dtype))
    return tensor_new(p.ctx, uop_alu1(p.st, OPS_TRUNC, uop_alu2(p.st, OPS_FDIV, p.a, p.b)));
  DType d = p.a->dtype == DT_BOOL ? DT_I32 : (DType)p.a->dtype;
  return tensor_new(p.ctx, uop_alu2(p.st, OPS_CDIV, uop_cast(p.st, p.a, d), uop_cast(p.st, p.b, d)));
}

/* For floats, r - q b with q = trunc(r / b), rounded once, is exact: q is wrong by at most half its last
 * place, so each round reduces r / b by 2^23. There are three rounds, and one more step if the sign or the
 * size of r shows that the quotient was rounded past a whole number. */
static TgStatus gradient_of_fmod(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out,
                                 void *user) {
  (void)y, (void)n, (void)user;
  out[0] = g;
  out[1] = tg_neg(tg_mul(g, tg_truncdiv(x[0], x[1])));
  return out[1] ? TG_OK : TG_ERR_NOMEM;
}

TgTensor *tg_fmod(TgTensor *a, TgTensor *b) {
  Pair p = operands("fmod", a, b, DT_VOID);
  if (!p.ctx) return NULL;
  DType d = p.a->dtype == DT_BOOL ? DT_I32 : (DType)p.a->dtype;
  if (!dtype_is_float(d))
    return tensor_new(p.ctx, uop_alu2(p.st, OPS_CMOD, uop_cast(p.st, p.a, d), uop_cast(p.st, p.b, d)));
  TgTensor *x = as_wide(tensor_new(p.ctx, p.a));
  TgTensor *y = as_wide(tensor_new(p.ctx, p.b));
  TgTensor *keep = tg_bitand(tg_isinf(y), tg_isfinite(x));
  TgTensor *z = tg_where(keep, tg_full_like(y, 1), y), *r = x;
  for (int i = 0; i < 3; i++) {
    TgTensor *q = tg_neg(tg_truncdiv(r, z));
    if (!q) return NULL;
    r = tensor_new(p.ctx, UNEW(p.st, OPS_MULACC, dt(q), 1, ARG0, q->uop, z->uop, r->uop));
  }
  TgTensor *size = tg_abs(z), *step = tg_where(tg_signbit(x), tg_neg(size), size);
  r = tg_where(tg_bitand(tg_ne_scalar(r, 0), tg_ne(tg_signbit(r), tg_signbit(x))), tg_add(r, step), r);
  r = tg_where(tg_le(size, tg_abs(r)), tg_sub(r, step), r);
  r = tg_where(tg_lt(tg_abs(r), size), r, tg_scalar_like(r, (double)NAN));
  r = tg_where(tg_eq_scalar(r, 0), tg_copysign(r, x), r);
  r = tg_custom_gradient(tg_where(keep, x, r), (TgTensor *[]){x, y}, 2, gradient_of_fmod, NULL);
  return tensor_cast(r, dtype_public(d));
}

TgTensor *tg_bitnot(TgTensor *x) {
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, !dtype_is_float(dt(x)), TG_ERR_DTYPE, "bitnot: %s", dtype_name(dt(x)));
  UOpStore *st = x->ctx->store;
  return tensor_new(x->ctx, dt(x) == DT_BOOL ? u_not(st, x->uop)
                                             : uop_alu2(st, OPS_XOR, x->uop,
                                                        u_full(st, dt(x), (Scalar){.i = -1}, x->uop->shape)));
}

TgTensor *tg_clamp_tensor(TgTensor *x, TgTensor *lo, TgTensor *hi) {
  if (!x || (lo && !ctx_two("clamp", x, lo)) || (hi && !ctx_two("clamp", x, hi))) return NULL;
  TG_REQUIRE(x->ctx, lo || hi, TG_ERR_VALUE, "clamp: neither a lower nor an upper bound");
  if (lo) x = tg_where(tg_bitor(tg_lt(x, lo), tg_isnan(lo)), lo, x);
  return hi ? tg_where(tg_bitor(tg_lt(hi, x), tg_isnan(hi)), hi, x) : x;
}

BY_SCALAR(floordiv)
BY_SCALAR(mod)
BY_SCALAR(fmod)

TgTensor *tg_rpow_scalar(TgTensor *x, double v) { return tg_pow(tg_scalar_like(x, v), x); }

BY_SCALAR(bitand)
BY_SCALAR(bitor)
BY_SCALAR(bitxor)

/* The distance in x's own dtype, whatever its value. */
static TgTensor *shift_by(TgTensor *x, int v) {
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, v >= 0, TG_ERR_VALUE, "shift: by %d places", v);
  return tg_full_like(x, v);
}

TgTensor *tg_shl_scalar(TgTensor *x, int v) { return tg_shl(x, shift_by(x, v)); }

TgTensor *tg_shr_scalar(TgTensor *x, int v) { return tg_shr(x, shift_by(x, v)); }

TgTensor *tg_usum(TgTensor *const *x, int n) {
  TgTensor *r = n > 0 && x ? x[0] : NULL;
  for (int i = 1; r && i < n; i++)
    r = tg_add(r, x[i]);
  return n == 1 ? tensor_result(r, r) : r;
}

TgTensor *tg_uprod(TgTensor *const *x, int n) {
  TgTensor *r = n > 0 && x ? x[0] : NULL;
  for (int i = 1; r && i < n; i++)
    r = tg_mul(r, x[i]);
  return n == 1 ? tensor_result(r, r) : r;
}

/* m + log(1 + exp(-|a - b|)), where m is the larger. Equal infinities stay as they are. */
TgTensor *tg_logaddexp(TgTensor *a, TgTensor *b) {
  if (!ctx_two("logaddexp", a, b)) return NULL;
  TgDType d = dtype_public(dtype_as_float(dtype_join(dt(a), dt(b))));
  TgTensor *x = as_wide(tensor_cast(a, d)), *y = as_wide(tensor_cast(b, d));
  TgTensor *less = tg_lt(x, y);
  TgTensor *m = tg_where(less, y, x);
  TgTensor *l = tg_where(less, x, y);
  TgTensor *same = tg_bitand(tg_eq(x, y), tg_isinf(x));
  TgTensor *diff = tg_where(same, tg_zeros_like(m), tg_sub(l, m));
  return tensor_cast(tg_add(m, tg_softplus(diff)), d);
}

TgTensor *tg_lerp(TgTensor *x, TgTensor *end, TgTensor *weight) {
  if (!ctx_two("lerp", x, end) || !ctx_two("lerp", x, weight)) return NULL;
  /* 7 bits of weight, rounded to nearest; the result stays u8 */
  if (dt(x) == DT_U8 && dt(end) == DT_U8 && dtype_is_float(dt(weight))) {
    TgTensor *w = tensor_cast(tg_round(tg_mul_scalar(weight, 128)), TG_I32);
    TgTensor *a = tensor_cast(x, TG_I32);
    TgTensor *b = tensor_cast(end, TG_I32);
    TgTensor *s = tg_add(tg_mul_scalar(a, 128), tg_mul(tg_sub(b, a), w));
    return tensor_cast(tg_shr_scalar(tg_add_scalar(s, 64), 7), TG_U8);
  }
  if (!dtype_is_float(dt(x)) || !dtype_is_float(dt(end)) || !dtype_is_float(dt(weight)))
    return tg_add(x, tg_mul(tg_sub(end, x), weight));
  TgDType d = dtype_public(dtype_join(dtype_join(dt(x), dt(end)), dt(weight)));
  TgTensor *from = as_wide(x);
  return tensor_cast(tg_add(from, tg_mul(tg_sub(as_wide(end), from), as_wide(weight))), d);
}

TgTensor *tg_masked_fill(TgTensor *x, TgTensor *mask, double value) {
  if (!ctx_two("masked_fill", x, mask)) return NULL;
  return tg_where(mask, tg_scalar_like(x, value), x);
}

/* op of two tensors, both of dtype d. */
static TgTensor *of_words(const char *name, Ops op, DType d, TgTensor *x, TgTensor *y) {
  TgContext *ctx = ctx_two(name, x, y);
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, dt(x) == d && dt(y) == d, TG_ERR_DTYPE, "%s: %s and %s: both are %s", name,
             dtype_name(dt(x)), dtype_name(dt(y)), dtype_name(d));
  const Ints *s = shape_broadcast(ctx, name, x->uop->shape, y->uop->shape);
  return s ? tensor_new(ctx, uop_alu2(ctx->store, op, u_broadcast(ctx->store, x->uop, s),
                                      u_broadcast(ctx->store, y->uop, s)))
           : NULL;
}

TgTensor *tg_threefry(TgTensor *counter, TgTensor *key) {
  return of_words("threefry", OPS_THREEFRY, DT_U64, counter, key);
}

TgTensor *tg_dot4(TgTensor *x, TgTensor *y) { return of_words("dot4", OPS_DOT4, DT_I32, x, y); }

TgTensor *tg_dot2(TgTensor *x, TgTensor *y) { return of_words("dot2", OPS_DOT2, DT_I32, x, y); }

TgTensor *tensor_mulacc(TgTensor *x, TgTensor *y, TgTensor *z) {
  TgContext *ctx = ctx_two("mulacc", x, y);
  if (!ctx || !z) return NULL;
  const Ints *s = shape_broadcast(ctx, "mulacc", x->uop->shape, y->uop->shape);
  s = s ? shape_broadcast(ctx, "mulacc", s, z->uop->shape) : NULL;
  UOpStore *st = ctx->store;
  return s ? tensor_new(ctx, UNEW(st, OPS_MULACC, dt(x), 1, ARG0, u_broadcast(st, x->uop, s),
                                  u_broadcast(st, y->uop, s), u_broadcast(st, z->uop, s)))
           : NULL;
}

bool tensor_has_dot4(const TgTensor *t, int most) {
  Dots has = t->ctx->dev_open ? t->ctx->calls->facts(t->ctx, tensor_device(t)).target->dots : DOTS_BYTES;
  return has >= DOTS_FOURS || (has == DOTS_PAIRS && target_pairs(most) > 1);
}

TgTensor *tg_lookup4(TgTensor *x, const uint8_t *table) {
  if (!x) return NULL;
  int64_t each[16];
  TG_REQUIRE(x->ctx, table && dt(x) == DT_I32, TG_ERR_DTYPE, "lookup4: %s: words are i32, with a table",
             dtype_name(dt(x)));
  for (int i = 0; i < 16; i++)
    each[i] = table[i];
  UOpStore *st = x->ctx->store;
  return tensor_new(x->ctx,
                    uop_new(st, OPS_LOOKUP4, DT_I32, 1, 1, &x->uop, (Arg){.ints = ints_get(st, 16, each)}));
}

/* ---- activations. Where its value is not used, exp gets no positive argument, so that no gradient is inf
 * * 0. */
/* e^(scale min(x, 0)) - 1. Near 0 it is 2 sinh(t) e^t, where t is half the exponent, so that nothing
 * cancels. */
static TgTensor *expm1_below(TgTensor *x, double scale) {
  TgTensor *t = tg_mul_scalar(tg_where(tg_lt_scalar(x, 0), x, constant(x, 0)), scale / 2);
  TgTensor *e = tg_exp(t);
  TgTensor *small = tg_lt_scalar(magnitude(t), 1);
  TgTensor *near = tg_mul(tg_mul_scalar(odd(only_where(small, t, 0), &fit_sinh), 2), e);
  return tg_where(small, near, tg_sub_scalar(tg_mul(e, e), 1));
}

TgTensor *tg_elu(TgTensor *x, double alpha) {
  TgTensor *w = as_wide(x);
  return as_narrow(tg_where(tg_lt_scalar(w, 0), tg_mul_scalar(expm1_below(w, 1), alpha), w), x);
}

TgTensor *tg_relu6(TgTensor *x) { return tg_hardtanh(x, 0, 6); }

TgTensor *tg_celu(TgTensor *x, double alpha) {
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, alpha != 0, TG_ERR_VALUE, "celu: alpha is 0");
  TgTensor *w = as_wide(x);
  return as_narrow(tg_where(tg_lt_scalar(w, 0), tg_mul_scalar(expm1_below(w, 1 / alpha), alpha), w), x);
}

TgTensor *tg_selu(TgTensor *x) {
  const double alpha = 1.6732632423543772848, gamma = 1.0507009873554804934;
  TgTensor *w = as_wide(x);
  return as_narrow(
      tg_mul_scalar(tg_where(tg_lt_scalar(w, 0), tg_mul_scalar(expm1_below(w, 1), alpha), w), gamma), x);
}

TgTensor *tg_logsigmoid(TgTensor *x) { return tg_neg(tg_softplus(tg_neg(as_float(x)))); }

TgTensor *tg_hardsigmoid(TgTensor *x) {
  return as_narrow(tg_hardtanh(tg_add_scalar(tg_div_scalar(as_wide(x), 6), 0.5), 0, 1), x);
}

TgTensor *tg_hardswish(TgTensor *x) {
  TgTensor *w = as_wide(x);
  return as_narrow(tg_mul(w, tg_hardsigmoid(w)), x);
}

/* Unlike clamp, it passes no gradient at the bounds themselves, as in PyTorch. */
TgTensor *tg_hardtanh(TgTensor *x, double lo, double hi) {
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, lo <= hi, TG_ERR_VALUE, "hardtanh: bounds %g and %g", lo, hi);
  TgTensor *l = tg_scalar_like(x, lo), *h = tg_scalar_like(x, hi);
  x = tg_where(tg_le(x, l), l, x);
  return tg_where(tg_le(h, x), h, x);
}

TgTensor *tg_softsign(TgTensor *x) {
  x = as_float(x);
  return tg_div(x, tg_add_scalar(tg_abs(x), 1));
}

TgTensor *tg_mish(TgTensor *x) {
  x = as_float(x);
  return tg_mul(x, tg_tanh(tg_softplus(x)));
}

TgTensor *tg_quick_gelu(TgTensor *x) {
  TgTensor *w = as_wide(x);
  return as_narrow(tg_mul(w, tg_sigmoid(tg_mul_scalar(w, 1.702))), x);
}

TgTensor *tg_gelu_erf(TgTensor *x) { /* x/2 (1 + erf(x / sqrt 2)) */
  TgTensor *w = as_wide(x), *erf = tg_erf(tg_mul_scalar(w, 0.70710678118654752440));
  return as_narrow(tg_mul(tg_mul_scalar(w, 0.5), tg_add_scalar(erf, 1)), x);
}

TgTensor *tg_softplus_beta(TgTensor *x, double beta) {
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, beta != 0, TG_ERR_VALUE, "softplus: beta is 0");
  return tg_div_scalar(tg_softplus(tg_mul_scalar(as_float(x), beta)), beta);
}
