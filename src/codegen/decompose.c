/* decompose.c: the decompositions that are more than a rewrite rule of one line; rules/decompose.rules
 * calls them. In: the sources of one op. Out: a graph of native ops, or NULL. One form of each function
 * serves f32 and f64, in arithmetic of that dtype alone, so it also runs without f64. It needs MULACC
 * rounded once, or f64 for what a product of f32 loses, and a compiler that neither contracts nor
 * reassociates. tests/unit/test_accuracy.c measures every function and states its accuracy. */
#include "codegen/decompose.h"
#include <math.h>
#include <stdlib.h>

typedef struct B {
  UOpStore *st;
  DType d;
  bool fuses; /* a product and a sum are one operation, which rounds once */
} B;

static UOp *c(B *b, double v) { return uop_const(b->st, b->d, (Scalar){.f = v}); }

static UOp *ci(B *b, DType d, int64_t v) { return uop_const_int(b->st, d, v); }

static UOp *op1(B *b, Ops o, UOp *x) { return uop_alu1(b->st, o, x); }

static UOp *op2(B *b, Ops o, UOp *x, UOp *y) { return uop_alu2(b->st, o, x, y); }

static UOp *fma3(B *b, UOp *x, UOp *y, UOp *z) { return UNEW(b->st, OPS_MULACC, b->d, 1, ARG0, x, y, z); }

/* x y + z, rounded once or twice; used where it is a small part of the result. */
static UOp *mul_add(B *b, UOp *x, UOp *y, UOp *z) {
  return b->fuses ? fma3(b, x, y, z) : op2(b, OPS_ADD, op2(b, OPS_MUL, x, y), z);
}

/* x y + z where z cancels most of x y. An f32 product is exact in f64. */
static UOp *left_of(B *b, UOp *x, UOp *y, UOp *z) {
  if (b->fuses || b->d == DT_F64) return fma3(b, x, y, z);
  UOp *wide[3] = {uop_cast(b->st, x, DT_F64), uop_cast(b->st, y, DT_F64), uop_cast(b->st, z, DT_F64)};
  return uop_cast(b->st, op2(b, OPS_ADD, op2(b, OPS_MUL, wide[0], wide[1]), wide[2]), b->d);
}

static B b_of(Rewrite *rw, const Kernel *k, const UOp *x) {
  return (B){rw->st, (DType)x->dtype, has(k, OPS_MULACC)};
}

static UOp *sel(B *b, UOp *cond, UOp *x, UOp *y) { return uop_where(b->st, cond, x, y); }

static UOp *bitcast(B *b, UOp *x, DType to) { return UNEW(b->st, OPS_BITCAST, to, 1, ARG0, x); }

static DType int_of(DType d) { return d == DT_F64 ? DT_I64 : DT_I32; }

static UOp *not_(B *b, UOp *x) { return op2(b, OPS_CMPNE, x, ci(b, DT_BOOL, 1)); }

static int wide(const B *b) { return b->d == DT_F64; }

static int mantissa_bits(const B *b) { return wide(b) ? 52 : 23; }

static int exponent_bias(const B *b) { return wide(b) ? 1023 : 127; }

/* The nearest whole number n for |n| < 2^21 (f32) or 2^50 (f64), as a float and as an integer whose low
 * bits are n + `more`. Adding 1.5 * 2^mantissa leaves no room for a fraction. NaN gives NaN and arbitrary
 * bits. This is cheaper than a conversion, which has to saturate. */
typedef struct Whole {
  UOp *f, *bits;
} Whole;

static Whole whole_of(B *b, UOp *sum, UOp *big) {
  return (Whole){op2(b, OPS_SUB, sum, big), bitcast(b, sum, int_of(b->d))};
}

static UOp *rounds(B *b, int more) { return c(b, 1.5 * ldexp(1, mantissa_bits(b)) + more); }

static UOp *power_of_two(B *b, UOp *biased) { /* `biased` has the exponent plus its bias in the low bits */
  return bitcast(b, op2(b, OPS_SHL, biased, ci(b, int_of(b->d), mantissa_bits(b))), b->d);
}

static UOp *horner(B *b, UOp *x, const double *k, int n) { /* k[0] + k[1] x + .. */
  UOp *p = c(b, k[n - 1]);
  for (int i = n - 2; i >= 0; i--)
    p = mul_add(b, p, x, c(b, k[i]));
  return p;
}

/* Coefficients: minimax by Remez exchange in 60 digits, then rounded. The weight of the minimax is what
 * the term adds to the result. Each function has an f32 row, then an f64 row. The given error is that of
 * the whole function, relative, before any rounding. */
typedef struct Poly {
  int n;
  double k[10];
} Poly;

static const Poly poly_exp[2] = {/* (e^t - 1 - t) / t^2, |t| <= ln(2)/2: 2^-28, 2^-56 */
                                 {5, {0x1p-1, 0x1.555492p-3, 0x1.55547ep-5, 0x1.12393ep-7, 0x1.6d9608p-10}},
                                 {10,
                                  {0x1.000000000000ap-1, 0x1.555555555555cp-3, 0x1.5555555550833p-5,
                                   0x1.111111110ebafp-7, 0x1.6c16c1842f883p-10, 0x1.a01a01b2e6026p-13,
                                   0x1.a0199a138f0f6p-16, 0x1.71ddf34f6ff27p-19, 0x1.28ad5b50d277fp-22,
                                   0x1.af63ebc3fba7bp-26}}};
static const Poly poly_log[2] = {/* (2 atanh(s)/s - 2) / z, z = s^2, |s| <= tan(pi/8)^2: 2^-29, 2^-58 */
                                 {3, {0x1.555578p-1, 0x1.996086p-2, 0x1.31b994p-2}},
                                 {7,
                                  {0x1.555555555557ep-1, 0x1.999999998567bp-2, 0x1.2492493db9f5cp-2,
                                   0x1.c71c551671561p-3, 0x1.7465acd2a47d3p-3, 0x1.39af5eb65f1d7p-3,
                                   0x1.2e848dba21927p-3}}};
static const Poly poly_atanh[2] = {/* ((atanh(s)/s - 1) / z - 1/3) / z: 2^-36, 2^-65 */
                                   {3, {0x1.9999eep-3, 0x1.245882p-3, 0x1.dea582p-4}},
                                   {7,
                                    {0x1.99999999999c9p-3, 0x1.249249247f72dp-3, 0x1.c71c71f94aa78p-4,
                                     0x1.745cfab8e879cp-4, 0x1.3b1c0cf1c5223p-4, 0x1.0fbf7e0162f2ap-4,
                                     0x1.0c0fe58594f69p-4}}};
static const Poly poly_sin[2] = {/* (sin(r)/r - 1) / z, z = r^2, |r| <= pi/4: 2^-28, 2^-58 */
                                 {3, {-0x1.555546p-3, 0x1.1107acp-7, -0x1.996354p-13}},
                                 {6,
                                  {-0x1.555555555554cp-3, 0x1.111111110fc54p-7, -0x1.a01a019c78413p-13,
                                   0x1.71de35c5013b6p-19, -0x1.ae5e9c318d654p-26, 0x1.5da137fc7305bp-33}}};
static const Poly poly_cos[2] = {/* (cos(r) - 1 + z/2) / z^2: 2^-33, 2^-63 */
                                 {3, {0x1.55554cp-5, -0x1.6c0d8p-10, 0x1.9a3f88p-16}},
                                 {6,
                                  {0x1.5555555555554p-5, -0x1.6c16c16c16132p-10, 0x1.a01a019e1c2bep-16,
                                   -0x1.27e4f8fdd9777p-22, 0x1.1eea87807a601p-29, -0x1.8ffaae9c3ee55p-37}}};
static const double log2e_hi[2] = {0x1.715476p+0, 0x1.71547652b82fep+0},
                    log2e_lo[2] = {0x1.4ae0cp-26, 0x1.777d0ffda0d24p-56};
static const double ln2_hi[2] = {0x1.62e4p-1, 0x1.62e42fee00000p-1},
                    ln2_lo[2] = {0x1.7f7d1cp-20, 0x1.a39ef35793c76p-33}; /* n ln2_hi is exact */
static const double half_pi_hi[2] = {0x1.921fb6p+0, 0x1.921fb54442d18p+0},
                    half_pi_lo[2] = {-0x1.777a5cp-25, 0x1.1a62633145c07p-54},
                    half_pi_end[2] = {-0x1.ee59dap-50, -0x1.f1976b7ed8fbcp-110};
static const double third_lo[2] = {-0x1.555556p-27, 0x1.5555555555555p-56};

/* Computes the sums of odd and of even terms separately: a processor computes both at once, because
 * neither depends on the other, and a long chain of steps is what makes a function slow. */
static UOp *poly(B *b, UOp *x, const Poly *p) {
  const double *k = p[wide(b)].k;
  int n = p[wide(b)].n;
  if (n < 4) return horner(b, x, k, n);
  double part[2][5];
  for (int i = 0; i < n; i++)
    part[i % 2][i / 2] = k[i];
  UOp *square = op2(b, OPS_MUL, x, x);
  return mul_add(b, horner(b, square, part[1], n / 2), x, horner(b, square, part[0], n - n / 2));
}

static UOp *add(B *b, UOp *x, UOp *y) { return op2(b, OPS_ADD, x, y); }

static UOp *sub(B *b, UOp *x, UOp *y) { return op2(b, OPS_SUB, x, y); }

static UOp *mul(B *b, UOp *x, UOp *y) { return op2(b, OPS_MUL, x, y); }

static UOp *neg(B *b, UOp *x) { return op1(b, OPS_NEG, x); }

/* ---- a number as an unevaluated sum hi + lo, where |lo| is at most half an ulp of hi or so */
typedef struct Two {
  UOp *hi, *lo;
} Two;

static Two two_sum(B *b, UOp *x, UOp *y) {
  UOp *s = add(b, x, y);
  return (Two){s, add(b, sub(b, x, s), y)};
} /* requires |x| >= |y| or x = 0 */

static Two two_sum_any(B *b, UOp *x, UOp *y) {
  UOp *s = add(b, x, y), *of_y = sub(b, s, x);
  return (Two){s, add(b, sub(b, x, sub(b, s, of_y)), sub(b, y, of_y))};
}

static Two two_mul(B *b, UOp *x, UOp *y) {
  UOp *p = mul(b, x, y);
  return (Two){p, left_of(b, x, y, neg(b, p))};
}

static Two mul_two(B *b, Two x, Two y) {
  Two p = two_mul(b, x.hi, y.hi);
  return (Two){p.hi, mul_add(b, x.hi, y.lo, mul_add(b, x.lo, y.hi, p.lo))};
}

/* ---- exponentials */
/* e^(t + lo), |t| <= ln(2)/2: the two leading terms are exact, and so is their sum */
static UOp *exp_small(B *b, UOp *t, UOp *lo) {
  Two s = two_sum(b, c(b, 1), t);
  return add(b, s.hi, mul_add(b, mul(b, t, t), poly(b, t, poly_exp), lo ? add(b, s.lo, lo) : s.lo));
}

static UOp *exp2_small(B *b, UOp *r, UOp *lo) { /* 2^(r + lo), |r| <= 1/2 */
  Two t = two_mul(b, r, c(b, M_LN2));
  return exp_small(b, t.hi, lo ? mul_add(b, lo, c(b, M_LN2), t.lo) : t.lo);
}

static UOp *at_most(B *b, UOp *x, double hi) { return sel(b, op2(b, OPS_CMPLT, c(b, hi), x), c(b, hi), x); }

static UOp *at_least(B *b, UOp *x, double lo) { return sel(b, op2(b, OPS_CMPLT, x, c(b, lo)), c(b, lo), x); }

/* How p 2^n is computed, where y = n + a fraction. `rounds` rounds y to n and leaves n plus a bias in the
 * low bits. The bounds of y decide the rest. If n is always between the exponents of normal floats, 2^n is
 * one float. If y is bounded from above, as by 0, then 2^n is 2^(n + shift) times `rest` = 2^-shift. So a
 * subnormal result is rounded once, and a result below all subnormals is multiplied by an exact 0: a
 * product that underflows takes some processors a hundred times as long, and masked scores all underflow.
 * If y is bounded from below, as by 0, 2^n is 2^(n - 1) times 2, because 2^128 (f64: 2^1024) times a
 * number below 1 can be finite. Otherwise 2^n is a product of two halves, and 0 is chosen if `tiny`. */
typedef struct Power {
  UOp *y, *rounds, *rest, *tiny;
} Power;

/* The Power of 2^y, where y = x unit and x is within the bounds. NaN stays NaN. */
static Power power_of(B *b, UOp *x, Bounds is, double unit) {
  int bias = exponent_bias(b), down = mantissa_bits(b) + 2;
  double lo = is.lo * unit, hi = is.hi * unit, top = bias + 2, bottom = -bias - down;
  if (lo > 1 - bias && hi < bias) return (Power){x, rounds(b, bias), NULL, NULL};
  if (hi < bias - down) {
    UOp *y = lo >= bottom ? x : at_least(b, x, bottom / unit);
    return (Power){y, rounds(b, bias + down), c(b, ldexp(1, -down)), NULL};
  }
  UOp *y = at_most(b, x, top / unit);
  if (lo > 2 - bias) return (Power){y, rounds(b, bias - 1), c(b, 2), NULL};
  UOp *tiny = op2(b, OPS_CMPLT, x, c(b, (bottom + 1) / unit));
  return (Power){sel(b, tiny, c(b, 0), y), rounds(b, 2 * bias), NULL, tiny};
}

static UOp *scaled(B *b, UOp *p, UOp *biased, const Power *r) {
  if (!r->tiny) {
    UOp *v = mul(b, p, power_of_two(b, biased));
    return r->rest ? mul(b, v, r->rest) : v;
  }
  UOp *half = op2(b, OPS_SHR, biased, ci(b, int_of(b->d), 1)), *other = sub(b, biased, half);
  return sel(b, r->tiny, c(b, 0), mul(b, mul(b, p, power_of_two(b, half)), power_of_two(b, other)));
}

UOp *exp2_of(Rewrite *rw, const Kernel *k, UOp *x) {
  B at = b_of(rw, k, x), *b = &at;
  Power r = power_of(b, x, bounds_of(x), 1);
  Whole n = whole_of(b, add(b, r.y, r.rounds), r.rounds);
  return scaled(b, exp2_small(b, sub(b, r.y, n.f), NULL), n.bits, &r);
}

/* y - n ln 2 by Cody and Waite: ln 2 is split into two parts. */
static UOp *less_ln2(B *b, UOp *y, UOp *n) {
  return mul_add(b, n, c(b, -ln2_lo[wide(b)]), mul_add(b, n, c(b, -ln2_hi[wide(b)]), y));
}

UOp *exp_of(Rewrite *rw, const Kernel *k, UOp *exp) {
  UOp *x = exp->src[0];
  B at = b_of(rw, k, x), *b = &at;
  Bounds is = bounds_of(x);
  if (exp->arg.i) is.hi = fmin(is.hi, 0);
  Power r = power_of(b, x, is, M_LOG2E);
  Whole n = whole_of(b, mul_add(b, r.y, c(b, M_LOG2E), r.rounds), r.rounds);
  return scaled(b, exp_small(b, less_ln2(b, r.y, n.f), NULL), n.bits, &r);
}

/* u / (u + 2) with the sign of x, where u = e^2|x| - 1 = 2^n (e^r - 1) + (2^n - 1), in which nothing
 * cancels. Beyond 10 (f64: 20) tanh is 1. */
UOp *tanh_of(Rewrite *rw, const Kernel *k, UOp *x) {
  B at = b_of(rw, k, x), *b = &at;
  DType i = int_of(b->d);
  UOp *bits = bitcast(b, x, i), *minus = ci(b, i, wide(b) ? INT64_MIN : INT32_MIN);
  UOp *a = bitcast(b, op2(b, OPS_AND, bits, ci(b, i, wide(b) ? INT64_MAX : INT32_MAX)), b->d);
  UOp *y = at_most(b, mul(b, a, c(b, 2)), wide(b) ? 40 : 20), *big = rounds(b, exponent_bias(b));
  Whole n = whole_of(b, mul_add(b, y, c(b, M_LOG2E), big), big);
  UOp *t = less_ln2(b, y, n.f), *q = mul_add(b, mul(b, t, t), poly(b, t, poly_exp), t);
  UOp *two_n = power_of_two(b, n.bits), *u = mul_add(b, two_n, q, sub(b, two_n, c(b, 1)));
  UOp *v = op2(b, OPS_FDIV, u, add(b, u, c(b, 2)));
  return bitcast(b, op2(b, OPS_OR, bitcast(b, v, i), op2(b, OPS_AND, bits, minus)), b->d);
}

/* ---- logarithms: x = m 2^e with m in [sqrt(1/2), sqrt 2) */
static UOp *split(B *b, UOp *x, UOp **e) {
  bool f64 = wide(b);
  DType i = int_of(b->d);
  int mant = f64 ? 52 : 23, up = f64 ? 54 : 25;
  UOp *tiny = op2(b, OPS_CMPLT, x, c(b, f64 ? 0x1p-1022 : 0x1p-126)),
      *xs = sel(b, tiny, mul(b, x, c(b, f64 ? 0x1p54 : 0x1p25)), x);
  UOp *bits = bitcast(b, xs, i),
      *n = op2(b, OPS_SHR, sub(b, bits, ci(b, i, f64 ? 0x3fe6a09e667f3bcd : 0x3f3504f3)), ci(b, i, mant));
  *e = sub(b, uop_cast(b->st, n, b->d), sel(b, tiny, c(b, up), c(b, 0)));
  return bitcast(b, sub(b, bits, op2(b, OPS_SHL, n, ci(b, i, mant))), b->d);
}

static UOp *log_special(B *b, UOp *x, UOp *r) {
  r = sel(b, op2(b, OPS_CMPEQ, x, c(b, INFINITY)), x, r);
  r = sel(b, op2(b, OPS_CMPEQ, x, c(b, 0)), c(b, -INFINITY), r);
  return sel(b, op2(b, OPS_CMPLT, x, c(b, 0)), c(b, NAN), sel(b, op2(b, OPS_CMPNE, x, x), x, r));
}

/* With f = m - 1 (exact), s = f / (2 + f), h = f^2 / 2: ln m = 2 atanh s = f - (h - s (h + R(s^2))). So
 * the large part of the result has no error, and only the small bracket is rounded. */
static UOp *do_log(B *b, UOp *x, bool base2) {
  UOp *e, *m = split(b, x, &e), *f = sub(b, m, c(b, 1)), *h = mul(b, f, mul(b, f, c(b, 0.5)));
  UOp *s = op2(b, OPS_FDIV, f, add(b, f, c(b, 2))), *z = mul(b, s, s);
  UOp *low = mul_add(b, s, mul_add(b, z, poly(b, z, poly_log), h), neg(b, h));
  Two t;
  if (base2) {
    Two p = two_mul(b, f, c(b, log2e_hi[wide(b)]));
    low = mul_add(b, low, c(b, log2e_hi[wide(b)]), mul_add(b, f, c(b, log2e_lo[wide(b)]), p.lo));
    t = two_sum(b, e, p.hi);
  } else {
    low = mul_add(b, e, c(b, ln2_lo[wide(b)]), low);
    t = two_sum(b, mul(b, e, c(b, ln2_hi[wide(b)])), f);
  }
  return log_special(b, x, add(b, t.hi, add(b, t.lo, low)));
}

UOp *log_of(Rewrite *rw, const Kernel *k, UOp *x) {
  B b = b_of(rw, k, x);
  return do_log(&b, x, false);
}

UOp *log2_of_float(Rewrite *rw, const Kernel *k, UOp *x) {
  B b = b_of(rw, k, x);
  return do_log(&b, x, true);
}

/* ---- powers: log2 x is hi + lo, so that y log2 x keeps enough bits after the point for every exponent */
static Two log2_two(B *b, UOp *x) {
  int w = wide(b);
  UOp *e, *m = split(b, x, &e), *f = sub(b, m, c(b, 1)), *sum = add(b, m, c(b, 1)),
          *sum_lo = sub(b, m, sub(b, sum, c(b, 1)));
  UOp *q = op2(b, OPS_FDIV, f, sum), *rest = mul_add(b, neg(b, q), sum_lo, left_of(b, neg(b, q), sum, f));
  Two s = {q, op2(b, OPS_FDIV, rest, sum)}, z = mul_two(b, s, s); /* s = (m - 1) / (m + 1) */
  Two third = two_sum(b, c(b, 1.0 / 3), mul(b, z.hi, poly(b, z.hi, poly_atanh)));
  third.lo = add(b, third.lo, c(b, third_lo[w]));
  Two v = mul_two(b, s, mul_two(b, z, third)), a = two_sum(b, s.hi, v.hi); /* atanh s = s + s z (1/3 + ..) */
  a.lo = add(b, a.lo, add(b, s.lo, v.lo));
  a = mul_two(b, a, (Two){c(b, 2 * log2e_hi[w]), c(b, 2 * log2e_lo[w])});
  Two l = two_sum(b, e, a.hi);
  return two_sum(b, l.hi, add(b, l.lo, a.lo));
}

UOp *pow_of(Rewrite *rw, const Kernel *k, UOp *x, UOp *y) {
  B at = b_of(rw, k, x), *b = &at;
  UOp *x_neg = op2(b, OPS_CMPLT, x, c(b, 0)), *y_neg = op2(b, OPS_CMPLT, y, c(b, 0)), *inf = c(b, INFINITY);
  UOp *ax = sel(b, x_neg, neg(b, x), x), *ay = sel(b, y_neg, neg(b, y), y);
  Two l = log2_two(b, ax);
  UOp *plain = op2(b, OPS_AND, op2(b, OPS_CMPLT, c(b, 0), ax), op2(b, OPS_CMPLT, ax, inf));
  l.hi = sel(b, plain, l.hi, log_special(b, ax, ax));
  l.lo = sel(b, plain, l.lo, c(b, 0));
  UOp *p = mul(b, y, l.hi);
  Power power = power_of(b, p, bounds_of(p), 1);
  UOp *near = power.y;
  Whole n = whole_of(b, add(b, near, power.rounds), power.rounds);
  UOp *lo = mul_add(b, y, l.lo, left_of(b, y, l.hi, neg(b, p)));
  lo = sel(b, op2(b, OPS_CMPEQ, near, p), lo, c(b, 0));
  Two r2 = two_sum(b, sub(b, near, n.f), lo);
  UOp *mag = scaled(b, exp2_small(b, r2.hi, r2.lo), n.bits, &power);
  UOp *half = mul(b, y, c(b, 0.5)), *whole = op2(b, OPS_CMPEQ, op1(b, OPS_TRUNC, y), y);
  UOp *odd = op2(b, OPS_AND, op2(b, OPS_AND, whole, op2(b, OPS_CMPNE, op1(b, OPS_TRUNC, half), half)),
                 op2(b, OPS_CMPLT, ay, inf));
  DType i = int_of(b->d); /* -0 to an odd power keeps its sign, so the sign is read from the bits */
  UOp *minus = op2(b, OPS_CMPLT, bitcast(b, x, i), ci(b, i, 0)), *finite = op2(b, OPS_CMPLT, ax, inf);
  UOp *r = sel(b, op2(b, OPS_AND, minus, odd), neg(b, mag), mag);
  r = sel(b, op2(b, OPS_AND, op2(b, OPS_AND, x_neg, finite), not_(b, whole)), c(b, NAN), r);
  r = sel(b, op2(b, OPS_CMPNE, x, x), x, sel(b, op2(b, OPS_CMPNE, y, y), y, r));
  r = sel(b, op2(b, OPS_AND, op2(b, OPS_CMPEQ, ax, c(b, 1)), op2(b, OPS_CMPEQ, ay, inf)), c(b, 1), r);
  return sel(b, op2(b, OPS_OR, op2(b, OPS_CMPEQ, y, c(b, 0)), op2(b, OPS_CMPEQ, x, c(b, 1))), c(b, 1), r);
}

/* ---- sine, cosine, tangent, by Payne and Hanek: |x| = m 2^k with a whole m. The bits of 2/pi whose
 * product with m 2^k is a multiple of 4 are left out, and the next 96 (f64: 192) bits are multiplied by m
 * exactly. The product is a fixed-point number of 2 + 62 (2 + 126) bits: the quadrant, and the remainder
 * for any finite x of some size. No f32 is closer to a multiple of pi/2 than about 2^-31 of a quadrant,
 * and no f64 than about 2^-63. */
static const uint64_t two_over_pi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

static uint64_t word_of(int i, int bits) { /* word i of 2/pi after one word of zeros */
  if (i < 1 || i > (int)TG_COUNT(two_over_pi) * 64 / bits) return 0;
  return bits == 64 ? two_over_pi[i - 1] : two_over_pi[(i - 1) / 2] >> ((i & 1) * 32) & 0xffffffff;
}

static void window(B *b, DType u, UOp *at, UOp **out) { /* three words of the padded 2/pi from bit `at` on */
  int bits = (int)dtype_size(u) * 8, top = bits == 64 ? 16 : 4, lg = bits == 64 ? 6 : 5;
  UOp *w[2 * 16 + 4], *shift = op2(b, OPS_AND, at, ci(b, u, bits - 1));
  for (int i = 0; i < 2 * top + 3; i++)
    w[i] = ci(b, u, (int64_t)word_of(i, bits));
  /* selects the word: the candidates are halved once per bit of its number */
  for (int step = top, n = top + 3; step; step /= 2, n -= step) {
    UOp *on = op2(b, OPS_CMPNE, op2(b, OPS_AND, at, ci(b, u, (int64_t)step << lg)), ci(b, u, 0));
    for (int i = 0; i < n; i++)
      w[i] = sel(b, on, w[i + step], w[i]);
  }
  UOp *back = sub(b, ci(b, u, bits - 1), shift);
  for (int i = 0; i < 3; i++)
    out[i] = op2(b, OPS_OR, op2(b, OPS_SHL, w[i], shift),
                 op2(b, OPS_SHR, op2(b, OPS_SHR, w[i + 1], ci(b, u, 1)), back));
}

static UOp *mul_high(B *b, UOp *x, UOp *y) { /* the upper word of a u64 product */
  UOp *half = ci(b, DT_U64, 32), *low = ci(b, DT_U64, 0xffffffff);
  UOp *xl = op2(b, OPS_AND, x, low), *xh = op2(b, OPS_SHR, x, half), *yl = op2(b, OPS_AND, y, low),
      *yh = op2(b, OPS_SHR, y, half);
  UOp *t = add(b, mul(b, xh, yl), op2(b, OPS_SHR, mul(b, xl, yl), half));
  UOp *s = add(b, mul(b, xl, yh), op2(b, OPS_AND, t, low));
  return add(b, add(b, mul(b, xh, yh), op2(b, OPS_SHR, t, half)), op2(b, OPS_SHR, s, half));
}

static DType word(const B *b) { return wide(b) ? DT_U64 : DT_U32; } /* as wide as the float */

/* m times the words w, a fixed-point number of 2 + 62 bits. Returns what is left, in quadrants, of the
 * nearest whole number, which is *n, modulo 4. The two products that need 64 bits have u32 factors. The
 * rest is 32-bit words, which every vector has: pieces of 24, 24 and 16 bits are exact in f32, so nothing
 * is lost before they are added. */
static Two quadrant_f32(B *b, UOp *m, UOp *const *w, UOp **n) {
  DType u = DT_U32, q = DT_U64, i = DT_I32;
  UOp *wide_m = uop_cast(b->st, m, q), *half = ci(b, q, 32);
  UOp *sum = add(b, mul(b, wide_m, uop_cast(b->st, w[1], q)),
                 op2(b, OPS_SHR, mul(b, wide_m, uop_cast(b->st, w[2], q)), half));
  UOp *low = uop_cast(b->st, sum, u),
      *high = add(b, uop_cast(b->st, op2(b, OPS_SHR, sum, half), u), mul(b, m, w[0]));
  *n = op2(b, OPS_SHR, add(b, high, ci(b, u, 1 << 29)), ci(b, u, 30));
  UOp *frac = bitcast(b, sub(b, high, op2(b, OPS_SHL, *n, ci(b, u, 30))), i);
  UOp *mid = op2(b, OPS_OR, op2(b, OPS_SHL, op2(b, OPS_AND, frac, ci(b, i, 255)), ci(b, i, 16)),
                 bitcast(b, op2(b, OPS_SHR, low, ci(b, u, 16)), i));
  UOp *end = bitcast(b, op2(b, OPS_AND, low, ci(b, u, 0xffff)), i);
  UOp *first = uop_cast(b->st, op2(b, OPS_AND, frac, ci(b, i, -256)), b->d);
  Two part = two_sum(b, mul(b, first, c(b, 0x1p-30)), mul(b, uop_cast(b->st, mid, b->d), c(b, 0x1p-46)));
  part.lo = mul_add(b, uop_cast(b->st, end, b->d), c(b, 0x1p-62), part.lo);
  return part;
}

/* The same in f64: 2 + 126 bits. */
static Two quadrant_f64(B *b, UOp *m, UOp *const *w, UOp **n) {
  DType q = DT_U64;
  UOp *mid = mul(b, m, w[1]), *lo = add(b, mid, mul_high(b, m, w[2]));
  UOp *carry = sel(b, op2(b, OPS_CMPLT, lo, mid), ci(b, q, 1), ci(b, q, 0));
  UOp *hi = add(b, add(b, mul(b, m, w[0]), mul_high(b, m, w[1])), carry);
  *n = op2(b, OPS_SHR, add(b, hi, ci(b, q, (int64_t)1 << 61)), ci(b, q, 62));
  UOp *frac = uop_cast(b->st, sub(b, hi, op2(b, OPS_SHL, *n, ci(b, q, 62))), DT_I64);
  UOp *a = uop_cast(b->st, frac, b->d),
      *rest = uop_cast(b->st, sub(b, frac, uop_cast(b->st, a, DT_I64)), b->d);
  rest = mul_add(b, uop_cast(b->st, lo, b->d), c(b, 0x1p-64), rest);
  Two part = two_sum(b, a, rest);
  return (Two){mul(b, part.hi, c(b, 0x1p-62)), mul(b, part.lo, c(b, 0x1p-62))};
}

/* Returns the distance of x, which is not negative and of any size, from the nearest multiple of pi/2.
 * *quadrant: which multiple, modulo 4. */
static Two reduce_any(B *b, UOp *x, UOp **quadrant) {
  bool f64 = wide(b);
  DType u = word(b);
  int mant = mantissa_bits(b), bias = exponent_bias(b);
  UOp *bits = bitcast(b, x, u), *w[3];
  UOp *e = op2(b, OPS_MAX, op2(b, OPS_SHR, bits, ci(b, u, mant)), ci(b, u, bias - 1));
  UOp *m =
      op2(b, OPS_OR, op2(b, OPS_AND, bits, ci(b, u, ((int64_t)1 << mant) - 1)), ci(b, u, (int64_t)1 << mant));
  window(b, u, sub(b, e, ci(b, u, f64 ? bias - 10 : bias - 7)), w);
  Two part = f64 ? quadrant_f64(b, m, w, quadrant) : quadrant_f32(b, m, w, quadrant);
  return mul_two(b, part, (Two){c(b, half_pi_hi[f64]), c(b, half_pi_lo[f64])});
}

/* The same for x < 2^16 (f64: 2^30), by Cody and Waite. n halves of pi are subtracted in three parts. x
 * minus the first part is exact, because it is a multiple of that part's last bit and less than 1. For the
 * second part, product and difference are each exact as two numbers. After the third part, the error in
 * pi/2 is 2^-76 (2^-163). */
static Two reduce_near(B *b, UOp *x, UOp **quadrant) {
  bool f64 = wide(b);
  Whole n = whole_of(b, mul_add(b, x, c(b, 2 / M_PI), rounds(b, 0)), rounds(b, 0));
  *quadrant = bitcast(b, n.bits, word(b));
  UOp *minus = neg(b, n.f), *first = left_of(b, minus, c(b, half_pi_hi[f64]), x);
  Two second = two_mul(b, minus, c(b, half_pi_lo[f64])), r = two_sum_any(b, first, second.hi);
  UOp *rest = mul_add(b, minus, c(b, half_pi_end[f64]), add(b, r.lo, second.lo));
  return two_sum(b, r.hi, rest);
}

/* reduce_near takes a third of the time of reduce_any, and large numbers are rare: branches.c skips the
 * work of reduce_any if no lane needs it. */
static Two reduce_half_pi(B *b, UOp *x, UOp **quadrant) {
  UOp *is_near = op2(b, OPS_CMPLT, x, c(b, wide(b) ? 0x1p30 : 0x1p16)), *near_n, *any_n;
  Two near = reduce_near(b, x, &near_n), any = reduce_any(b, x, &any_n);
  *quadrant = sel(b, is_near, near_n, any_n);
  return (Two){sel(b, is_near, near.hi, any.hi), sel(b, is_near, near.lo, any.lo)};
}

/* sin r and cos r for |r| <= pi/4: the large part of each is exact, and what is added to it is small. */
static void sin_cos(B *b, Two r, Two *sine, Two *cosine) {
  Two square = two_mul(b, r.hi, r.hi);
  UOp *z = square.hi, *half = mul(b, z, c(b, 0.5));
  UOp *top = sub(b, c(b, 1), half),
      *lost = sub(b, sub(b, c(b, 1), top), half); /* 1 - z/2, and its rounding error */
  lost = mul_add(b, square.lo, c(b, -0.5), lost);
  *sine = (Two){r.hi, mul_add(b, mul(b, z, r.hi), poly(b, z, poly_sin), mul(b, r.lo, top))}; /* lo cos r */
  *cosine = (Two){top, mul_add(b, mul(b, z, z), poly(b, z, poly_cos), mul_add(b, neg(b, r.hi), r.lo, lost))};
}

static UOp *bit_of(B *b, UOp *n, int64_t bit) {
  DType u = word(b);
  return op2(b, OPS_CMPNE, op2(b, OPS_AND, n, ci(b, u, bit)), ci(b, u, 0));
}

static UOp *not_finite_nan(B *b, UOp *x, UOp *v) {
  return sel(b, op2(b, OPS_CMPNE, sub(b, x, x), c(b, 0)), c(b, NAN), v);
}

static UOp *keep_zero(B *b, UOp *x, UOp *v) { return sel(b, op2(b, OPS_CMPEQ, x, c(b, 0)), x, v); }

UOp *sin_of(Rewrite *rw, const Kernel *k, UOp *x) {
  B at = b_of(rw, k, x), *b = &at;
  UOp *x_neg = op2(b, OPS_CMPLT, x, c(b, 0)), *q;
  Two r = reduce_half_pi(b, sel(b, x_neg, neg(b, x), x), &q), sn, cs;
  sin_cos(b, r, &sn, &cs);
  UOp *v = sel(b, bit_of(b, q, 1), add(b, cs.hi, cs.lo), add(b, sn.hi, sn.lo));
  v = sel(b, op2(b, OPS_CMPNE, bit_of(b, q, 2), x_neg), neg(b, v), v);
  return keep_zero(b, x, not_finite_nan(b, x, v));
}

UOp *cos_of(Rewrite *rw, const Kernel *k, UOp *x) {
  B at = b_of(rw, k, x), *b = &at; /* cos |x| is the sine one quadrant further on */
  UOp *x_neg = op2(b, OPS_CMPLT, x, c(b, 0)), *q;
  Two r = reduce_half_pi(b, sel(b, x_neg, neg(b, x), x), &q), sn, cs;
  sin_cos(b, r, &sn, &cs);
  UOp *v = sel(b, bit_of(b, q, 1), add(b, sn.hi, sn.lo), add(b, cs.hi, cs.lo));
  q = add(b, q, ci(b, word(b), 1));
  return not_finite_nan(b, x, sel(b, bit_of(b, q, 2), neg(b, v), v));
}

/* sin r / cos r, or -cos r / sin r in odd quadrants: the quotient of the leading parts, plus the remainder
 * divided once more. */
UOp *tan_of(Rewrite *rw, const Kernel *k, UOp *x) {
  B at = b_of(rw, k, x), *b = &at;
  UOp *x_neg = op2(b, OPS_CMPLT, x, c(b, 0)), *q;
  Two r = reduce_half_pi(b, sel(b, x_neg, neg(b, x), x), &q), sn, cs;
  sin_cos(b, r, &sn, &cs);
  sn = two_sum(b, sn.hi, sn.lo);
  cs = two_sum(b, cs.hi, cs.lo);
  UOp *odd = bit_of(b, q, 1);
  Two above = {sel(b, odd, cs.hi, sn.hi), sel(b, odd, cs.lo, sn.lo)},
      below = {sel(b, odd, sn.hi, cs.hi), sel(b, odd, sn.lo, cs.lo)};
  UOp *t = op2(b, OPS_FDIV, above.hi, below.hi), *minus_t = neg(b, t);
  UOp *rest = mul_add(b, minus_t, below.lo, add(b, left_of(b, minus_t, below.hi, above.hi), above.lo));
  t = add(b, t, op2(b, OPS_FDIV, rest, below.hi));
  t = sel(b, op2(b, OPS_CMPNE, odd, x_neg), neg(b, t), t);
  return keep_zero(b, x, not_finite_nan(b, x, t));
}

static UOp *half_of(B *b, UOp *x, bool high) {
  return uop_cast(b->st, high ? op2(b, OPS_SHR, x, ci(b, DT_U64, 32)) : x, DT_U32);
}

UOp *threefry(Rewrite *rw, UOp *ctr, UOp *key) { /* the same rounds as dtype.c, on 32-bit words */
  B at = {.st = rw->st, .d = DT_U64}, *b = &at;
  static const int rot[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  UOp *sh = ci(b, DT_U64, 32), *x0 = half_of(b, ctr, false), *x1 = half_of(b, ctr, true),
      *ks[3] = {half_of(b, key, false), half_of(b, key, true), NULL};
  ks[2] = op2(b, OPS_XOR, op2(b, OPS_XOR, ks[0], ks[1]), ci(b, DT_U32, 0x1BD11BDA));
  x0 = op2(b, OPS_ADD, x0, ks[0]);
  x1 = op2(b, OPS_ADD, x1, ks[1]);
  for (int i = 0; i < 5; i++) {
    for (int j = 0; j < 4; j++) {
      int r = rot[i & 1][j];
      x0 = op2(b, OPS_ADD, x0, x1);
      x1 = op2(
          b, OPS_XOR,
          op2(b, OPS_OR, op2(b, OPS_SHL, x1, ci(b, DT_U32, r)), op2(b, OPS_SHR, x1, ci(b, DT_U32, 32 - r))),
          x0);
    }
    x0 = op2(b, OPS_ADD, x0, ks[(i + 1) % 3]);
    x1 = op2(b, OPS_ADD, op2(b, OPS_ADD, x1, ks[(i + 2) % 3]), ci(b, DT_U32, i + 1));
  }
  return op2(b, OPS_OR, op2(b, OPS_SHL, uop_cast(b->st, x1, DT_U64), sh), uop_cast(b->st, x0, DT_U64));
}

/* Multiplies part by part. All parts are signed except the bytes of src0. */
UOp *dot_of_words(Rewrite *rw, UOp *u) {
  B at = {.st = rw->st, .d = DT_I32}, *b = &at;
  int bits = u->op == OPS_DOT4 ? 8 : 16;
  UOp *sum = NULL;
  for (int s = 0; s < 32; s += bits) {
    UOp *part[2];
    for (int i = 0; i < 2; i++)
      part[i] = bits == 8 && !i
                    ? op2(b, OPS_AND, op2(b, OPS_SHR, u->src[0], ci(b, DT_I32, s)), ci(b, DT_I32, 255))
                    : op2(b, OPS_SHR, op2(b, OPS_SHL, u->src[i], ci(b, DT_I32, 32 - bits - s)),
                          ci(b, DT_I32, 32 - bits));
    UOp *each = op2(b, OPS_MUL, part[0], part[1]);
    sum = sum ? op2(b, OPS_ADD, sum, each) : each;
  }
  return sum;
}

/* Each bit, the lowest first, chooses between two halves of what is left of the table, in all bytes of a
 * word at once. */
UOp *lookup_of_words(Rewrite *rw, UOp *u) {
  B at = {.st = rw->st, .d = DT_I32}, *b = &at;
  UOp *of[16], *ones = ci(b, DT_I32, 0x01010101);
  for (int i = 0; i < 16; i++)
    of[i] = ci(b, DT_I32, (int32_t)(0x01010101u * (uint32_t)u->arg.ints->v[i]));
  for (int bit = 0, n = 8; n; bit++, n /= 2) {
    UOp *one = op2(b, OPS_AND, op2(b, OPS_SHR, u->src[0], ci(b, DT_I32, bit)), ones);
    UOp *all = op2(b, OPS_SUB, op2(b, OPS_SHL, one, ci(b, DT_I32, 8)), one); /* 255 where the bit is 1 */
    for (int i = 0; i < n; i++)
      of[i] = op2(b, OPS_XOR, of[2 * i], op2(b, OPS_AND, op2(b, OPS_XOR, of[2 * i], of[2 * i + 1]), all));
  }
  return of[0];
}

/* Squares and multiplies for each bit that the exponent can have. */
UOp *pow_of_bits(Rewrite *rw, UOp *x, UOp *y) {
  DType d = (DType)x->dtype;
  B at = {.st = rw->st, .d = d}, *b = &at;
  if (d == DT_BOOL) return op2(b, OPS_OR, x, not_(b, y)); /* a bool has no bits to shift */
  UOp *r = ci(b, d, 1), *p = x, *zero = ci(b, d, 0), *one = ci(b, d, 1);
  int bits = (int)dtype_size(d) * 8;
  for (int i = 0; i < bits - !dtype_is_unsigned(d); i++) { /* the sign bit is left out */
    UOp *bit = op2(b, OPS_CMPNE, op2(b, OPS_AND, op2(b, OPS_SHR, y, ci(b, d, i)), one), zero);
    r = sel(b, bit, op2(b, OPS_MUL, r, p), r);
    p = op2(b, OPS_MUL, p, p);
  }
  if (dtype_is_unsigned(d)) return r;
  UOp *m1 = ci(b, d, -1), *odd = op2(b, OPS_CMPNE, op2(b, OPS_AND, y, one), zero);
  UOp *neg =
      sel(b, op2(b, OPS_CMPEQ, x, one), one, sel(b, op2(b, OPS_CMPEQ, x, m1), sel(b, odd, m1, one), zero));
  return sel(b, op2(b, OPS_CMPLT, y, zero), neg, r);
}

/* ---- integer division by a constant. Measured with clang 19, in instructions. For a loop over vectors of
 * 64 bytes, -O1 and AVX-512: `v / splat` by 7 is multiplied out in every width (i32 32, i16 21, i8 40, 64
 * bits 70 to 107, because there is no high half of a 64-bit product); by 8 it is a shift with the bias of
 * the sign (22). A floor form has no operator: it takes 32 to 50 in a loop of its own for every lane,
 * against 14 with one shift of the vector. An i64 index on x86: / 12 takes 7, as a product of 64 bits 2; %
 * 8 takes 6, as a mask 2. PTX: for an int of unknown sign, / 8 takes 4 and % 8 takes 5, as shift and mask
 * 1; / 12 takes 5, with known sign 2, as a short product 2; u8 / 7 takes 7 in 16 bits, 2 in 32; i8 // 7
 * takes 13, here 6. So CDIV and CMOD of data are left to the compiler, and only what it cannot know is
 * done here: floor forms, numerators bounded far below their dtype, and narrow numerators on GPUs. A
 * target without native CDIV gets every form that is right. */
typedef struct Magic {
  uint64_t m;
  int s;
} Magic;

/* A Magic means x * m >> s == x / c for all 0 <= x <= hi, with no product above `most`. With e = m c - 2^s
 * and r = x mod c, the quotient is right exactly if x e < (c - r) 2^s. It is enough to test two x: the
 * last one below the last multiple of c, and the last one of all. */
static bool exact(uint64_t x, uint64_t c, uint64_t e, int s) {
  uint64_t left, room = c - x % c;
  return !__builtin_mul_overflow(x, e, &left) && (room > UINT64_MAX >> s || left < room << s);
}

static bool magic_find(uint64_t c, uint64_t hi, uint64_t most, Magic *out) {
  if (c > INT64_MAX) return false;
  for (int s = 0; s < 63; s++) {
    uint64_t m = (((uint64_t)1 << s) + c - 1) / c, e = m * c - ((uint64_t)1 << s), top;
    if (__builtin_mul_overflow(m, hi, &top) || top > most) return false;
    if (exact(hi, c, e, s) && (hi < c || exact(hi - hi % c - 1, c, e, s))) {
      *out = (Magic){m, s};
      return true;
    }
  }
  return false;
}

static UOp *shr(B *b, UOp *x, int s) { return s ? op2(b, OPS_SHR, x, ci(b, (DType)x->dtype, s)) : x; }

/* x / c where 0 <= x <= hi, as numbers of the unsigned type, or NULL */
static UOp *product(B *b, const Renderer *ren, UOp *x, uint64_t c, uint64_t hi) {
  DType d = (DType)x->dtype, wide[3] = {d, DT_U32, DT_U64};
  bool native = op_in_set(ren->native, OPS_CDIV);
  int size = (int)dtype_size(d), n = !native ? 3 : size < 4 && ren->narrow_div ? 2 : 1;
  for (int i = 0; i < n; i++) {
    Magic g;
    if ((i && (int)dtype_size(wide[i]) <= size) ||
        !magic_find(c, hi, wide[i] == DT_U64 ? UINT64_MAX : (uint64_t)dtype_max(wide[i]), &g))
      continue;
    UOp *p = op2(b, OPS_MUL, uop_cast(b->st, x, wide[i]), ci(b, wide[i], (int64_t)g.m));
    return uop_cast(b->st, shr(b, p, g.s), d);
  }
  return NULL;
}

UOp *by_product(Rewrite *rw, const Kernel *k, UOp *x, const UOp *c) {
  if (!x) return NULL; /* the rule that made x ran out of memory */
  DType d = (DType)x->dtype;
  B b = {.st = rw->st, .d = d};
  int64_t most = x->vmin >= 0 ? x->vmax : dtype_max(d);
  if (c->arg.v.i <= 0 || x->lanes != 1) return NULL;
  return product(&b, k->ren, x, (uint64_t)c->arg.v.i, d == DT_U64 ? UINT64_MAX : (uint64_t)most);
}

bool inverts(const UOp *c) {
  enum { MOST_POWER = 14 }; /* 2^-14 is the least normal number of f16 */

  int power;
  if (!is_const(c) || fabs(frexp(c->arg.v.f, &power)) != 0.5) return false;
  double inverse = 1 / c->arg.v.f;
  return abs(power - 1) <= MOST_POWER && scalar_round((DType)c->dtype, (Scalar){.f = inverse}).f == inverse;
}

UOp *sign_of(Rewrite *rw, UOp *s) {
  B b = {.st = rw->st, .d = (DType)s->dtype};
  return shr(&b, s, (int)dtype_size(b.d) * 8 - 1);
}

/* Divides |s|, which as an unsigned number is right for the least s, too. */
UOp *of_magnitude(Rewrite *rw, const Kernel *k, UOp *s, const UOp *c) {
  DType d = (DType)s->dtype, un = d == DT_I8 ? DT_U8 : d == DT_I16 ? DT_U16 : d == DT_I32 ? DT_U32 : DT_U64;
  B b = {.st = rw->st, .d = d};
  UOp *sign = sign_of(rw, s), *size = uop_cast(b.st, sub(&b, op2(&b, OPS_XOR, s, sign), sign), un);
  UOp *q = size ? product(&b, k->ren, size, (uint64_t)c->arg.v.i, (uint64_t)dtype_max(d) + 1) : NULL;
  return q ? sub(&b, op2(&b, OPS_XOR, uop_cast(b.st, q, d), sign), sign) : NULL;
}

int divide_index(UOpStore *st, const UOp *u, UOp *x, UOp *out[DIVIDE_NODES]) {
  DType d = (DType)x->dtype;
  B b = {.st = st, .d = d};
  int n = 0;
  bool mod = u->op == OPS_FLOORMOD || u->op == OPS_CMOD,
       floor = u->op == OPS_FLOORDIV || u->op == OPS_FLOORMOD;
  if ((!mod && u->op != OPS_FLOORDIV && u->op != OPS_CDIV) || u->lanes != 1 || !is_const(u->src[1]) ||
      u->src[1]->arg.v.i <= 0)
    return 0;
  int64_t c = u->src[1]->arg.v.i, hi = u->src[0]->vmax;
  int k = is_power(u->src[1]) ? log2_of(u->src[1]) : -1;
  bool plus = u->src[0]->vmin >= 0;
  if (c > dtype_max(d) || (!plus && (!floor || k < 0))) return 0;
  if (k >= 0) {
    out[n] = ci(&b, d, mod ? c - 1 : k);
    n++;
    out[n] = op2(&b, mod ? OPS_AND : OPS_SHR, x, out[0]);
    n++;
    return n;
  }
  Magic g;
  if (hi != INT64_MAX && magic_find((uint64_t)c, (uint64_t)hi, (uint64_t)dtype_max(d), &g)) {
    out[n] = ci(&b, d, (int64_t)g.m);
    n++;
    out[n] = op2(&b, OPS_MUL, x, out[0]);
    n++;
    out[n] = ci(&b, d, g.s);
    n++;
    out[n] = op2(&b, OPS_SHR, out[1], out[2]);
    n++;
    if (!mod) return n;
    out[n] = ci(&b, d, c);
    n++;
    out[n] = op2(&b, OPS_MUL, out[3], out[4]);
    n++;
    out[n] = op2(&b, OPS_SUB, x, out[5]);
    n++;
    return n;
  }
  out[n] = ci(&b, d, c);
  n++; /* CDIV and CMOD are right whatever the bounds of x are now */
  out[n] = op2(&b, mod ? OPS_CMOD : OPS_CDIV, x, out[0]);
  n++;
  return n;
}
