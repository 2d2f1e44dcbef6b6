/* decompose.c: ops that a target lacks, written in the ops it has. In: one node. Out: a graph of native ops, or NULL.
 * Polynomials are Taylor series on a reduced argument, long enough that their error is far below the rounding of the dtype.
 * f32 logarithm, sine and power are computed in f64 and rounded once. */
#include "codegen/codegen.h"
#include <math.h>

typedef struct B { UOpStore *st; DType d; } B;
static UOp *c(B *b, double v) { return uop_const(b->st, b->d, (Scalar){.f = v}); }
static UOp *ci(B *b, DType d, int64_t v) { return uop_const_int(b->st, d, v); }
static UOp *op1(B *b, Ops o, UOp *x) { return uop_alu1(b->st, o, x); }
static UOp *op2(B *b, Ops o, UOp *x, UOp *y) { return uop_alu2(b->st, o, x, y); }
static UOp *fma3(B *b, UOp *x, UOp *y, UOp *z) { return UNEW(b->st, OPS_MULACC, b->d, 1, ARG0, x, y, z); }
static UOp *sel(B *b, UOp *cond, UOp *x, UOp *y) { return uop_where(b->st, cond, x, y); }
static UOp *bitcast(B *b, UOp *x, DType to) { return UNEW(b->st, OPS_BITCAST, to, 1, ARG0, x); }
static DType int_of(DType d) { return d == DT_F64 ? DT_I64 : DT_I32; }
static UOp *not_(B *b, UOp *x) { return op2(b, OPS_CMPNE, x, ci(b, DT_BOOL, 1)); }

/* nearest whole number for |x| < 2^22 (f32) or 2^51 (f64): adding 1.5 * 2^mantissa leaves no room for a fraction */
static UOp *round_near(B *b, UOp *x) {
  double big = b->d == DT_F64 ? 6755399441055744.0 : 12582912.0;
  return op2(b, OPS_SUB, op2(b, OPS_ADD, x, c(b, big)), c(b, big));
}
static UOp *pow2_of_int(B *b, UOp *n) {                      /* 2^n for a normal result; n an integer of int_of(d) */
  DType i = int_of(b->d);
  int mant = b->d == DT_F64 ? 52 : 23, bias = b->d == DT_F64 ? 1023 : 127;
  return bitcast(b, op2(b, OPS_SHL, op2(b, OPS_ADD, n, ci(b, i, bias)), ci(b, i, mant)), b->d);
}
/* p(r) * 2^n in two steps, so that subnormal and overflowing results are right */
static UOp *scale(B *b, UOp *p, UOp *n) {
  DType i = int_of(b->d);
  UOp *e = uop_cast(b->st, n, i), *h = op2(b, OPS_SHR, e, ci(b, i, 1));
  return op2(b, OPS_MUL, op2(b, OPS_MUL, p, pow2_of_int(b, h)), pow2_of_int(b, op2(b, OPS_SUB, e, h)));
}
static UOp *horner(B *b, UOp *x, const double *k, int n) {   /* k[0] + k[1] x + .. */
  UOp *p = c(b, k[n - 1]);
  for (int i = n - 2; i >= 0; i--) p = fma3(b, p, x, c(b, k[i]));
  return p;
}
static UOp *clamp(B *b, UOp *x, double lo, double hi) {      /* NaN stays NaN */
  x = sel(b, op2(b, OPS_CMPLT, c(b, hi), x), c(b, hi), x);
  return sel(b, op2(b, OPS_CMPLT, x, c(b, lo)), c(b, lo), x);
}
static UOp *nan_safe_int(B *b, UOp *x, UOp *n) {             /* a NaN must not reach the conversion to an integer */
  return sel(b, op2(b, OPS_CMPNE, x, x), c(b, 0), n);
}
static UOp *exp_series(B *b, UOp *r, double base_ln) {       /* base^r, |r| <= 1/2 in units where base^r = e^(r ln base) */
  double k[16], t = 1;
  int n = b->d == DT_F64 ? 14 : 8;
  for (int i = 0; i < n; i++) k[i] = t, t *= base_ln / (i + 1);
  return horner(b, r, k, n);
}
static UOp *do_exp2(B *b, UOp *x) {
  bool f64 = b->d == DT_F64;
  UOp *y = clamp(b, x, f64 ? -1080 : -151, f64 ? 1025 : 129), *n = round_near(b, y);
  UOp *p = exp_series(b, op2(b, OPS_SUB, y, n), M_LN2);
  return scale(b, p, nan_safe_int(b, x, n));
}
static UOp *do_exp(B *b, UOp *x) {                           /* Cody and Waite: ln 2 in two parts, the first with trailing zeros */
  bool f64 = b->d == DT_F64;
  UOp *y = clamp(b, x, f64 ? -748 : -105, f64 ? 711 : 90), *n = round_near(b, op2(b, OPS_MUL, y, c(b, M_LOG2E)));
  double hi = f64 ? 0x1.62e42fee00000p-1 : 0x1.62e4p-1, lo = f64 ? 1.90821492927058770002e-10 : 1.42860677e-6;
  UOp *r = fma3(b, n, c(b, -lo), fma3(b, n, c(b, -hi), y));
  return scale(b, exp_series(b, r, 1), nan_safe_int(b, x, n));
}
static UOp *log_f64(B *b, UOp *x, bool base2) {              /* d is f64: m 2^e, log m = 2 atanh((m-1)/(m+1)), m in [sqrt(1/2), sqrt 2) */
  UOp *tiny = op2(b, OPS_CMPLT, x, c(b, 0x1p-1022)), *xs = sel(b, tiny, op2(b, OPS_MUL, x, c(b, 0x1p54)), x);
  UOp *bits = bitcast(b, xs, DT_I64);
  UOp *e = op2(b, OPS_SHR, op2(b, OPS_SUB, bits, ci(b, DT_I64, 0x3fe6a09e667f3bcd)), ci(b, DT_I64, 52));
  UOp *m = bitcast(b, op2(b, OPS_SUB, bits, op2(b, OPS_SHL, e, ci(b, DT_I64, 52))), DT_F64);
  UOp *ef = op2(b, OPS_SUB, uop_cast(b->st, e, DT_F64), sel(b, tiny, c(b, 54), c(b, 0)));
  UOp *s = op2(b, OPS_FDIV, op2(b, OPS_SUB, m, c(b, 1)), op2(b, OPS_ADD, m, c(b, 1)));
  double k[13];
  for (int i = 0; i < 13; i++) k[i] = 2.0 / (2 * i + 1) * (base2 ? M_LOG2E : 1);
  UOp *l = op2(b, OPS_MUL, s, horner(b, op2(b, OPS_MUL, s, s), k, 13));
  UOp *r = base2 ? op2(b, OPS_ADD, ef, l) : fma3(b, ef, c(b, M_LN2), l);
  r = sel(b, op2(b, OPS_CMPEQ, x, c(b, INFINITY)), x, r);
  r = sel(b, op2(b, OPS_CMPEQ, x, c(b, 0)), c(b, -INFINITY), r);
  return sel(b, op2(b, OPS_CMPLT, x, c(b, 0)), c(b, NAN), sel(b, op2(b, OPS_CMPNE, x, x), x, r));
}
static UOp *sin_f64(B *b, UOp *x) {                          /* quadrant and remainder with pi/2 in three parts: good to |x| of about 1e9 */
  UOp *n = round_near(b, op2(b, OPS_MUL, clamp(b, x, -1e15, 1e15), c(b, M_2_PI)));
  UOp *r = fma3(b, n, c(b, -1.57079632679489661923), x);
  r = fma3(b, n, c(b, -6.123233995736766036e-17), r);
  double s[9], k[9], f = 1;
  for (int i = 0; i < 18; i++) { if (i) f *= i; if (i & 1) s[i / 2] = (i & 2 ? -1 : 1) / f; else k[i / 2] = (i & 2 ? -1 : 1) / f; }
  UOp *r2 = op2(b, OPS_MUL, r, r);
  UOp *sn = op2(b, OPS_MUL, r, horner(b, r2, s, 9)), *cs = horner(b, r2, k, 9);
  UOp *q = op2(b, OPS_AND, uop_cast(b->st, nan_safe_int(b, op2(b, OPS_SUB, n, n), n), DT_I64), ci(b, DT_I64, 3));
  UOp *v = sel(b, op2(b, OPS_CMPNE, op2(b, OPS_AND, q, ci(b, DT_I64, 1)), ci(b, DT_I64, 0)), cs, sn);
  v = sel(b, op2(b, OPS_CMPNE, op2(b, OPS_AND, q, ci(b, DT_I64, 2)), ci(b, DT_I64, 0)), op1(b, OPS_NEG, v), v);
  UOp *bad = op2(b, OPS_CMPNE, op2(b, OPS_SUB, x, x), c(b, 0));              /* inf and NaN give NaN */
  v = sel(b, bad, c(b, NAN), v);
  return sel(b, op2(b, OPS_CMPEQ, x, c(b, 0)), x, v);                        /* keeps -0 */
}
static UOp *pow_f64(B *b, UOp *x, UOp *y) {
  UOp *ax = sel(b, op2(b, OPS_CMPLT, x, c(b, 0)), op1(b, OPS_NEG, x), x);
  UOp *mag = do_exp2(b, op2(b, OPS_MUL, y, log_f64(b, ax, true)));
  UOp *ty = op1(b, OPS_TRUNC, y), *half = op2(b, OPS_MUL, y, c(b, 0.5));
  UOp *whole = op2(b, OPS_CMPEQ, ty, y), *odd = op2(b, OPS_AND, whole, op2(b, OPS_CMPNE, op1(b, OPS_TRUNC, half), half));
  UOp *neg = op2(b, OPS_CMPLT, x, c(b, 0)), *finite = op2(b, OPS_CMPLT, ax, c(b, INFINITY));
  UOp *r = sel(b, op2(b, OPS_AND, neg, odd), op1(b, OPS_NEG, mag), mag);
  r = sel(b, op2(b, OPS_AND, op2(b, OPS_AND, neg, finite), not_(b, whole)), c(b, NAN), r);
  r = sel(b, op2(b, OPS_AND, op2(b, OPS_CMPEQ, ax, c(b, 1)), op2(b, OPS_CMPEQ, sel(b, op2(b, OPS_CMPLT, y, c(b, 0)), op1(b, OPS_NEG, y), y), c(b, INFINITY))), c(b, 1), r);
  return sel(b, op2(b, OPS_OR, op2(b, OPS_CMPEQ, y, c(b, 0)), op2(b, OPS_CMPEQ, x, c(b, 1))), c(b, 1), r);
}
static UOp *threefry(B *b, UOp *ctr, UOp *key) {             /* the same rounds as dtype.c, on 32-bit words */
  static const int rot[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  UOp *sh = ci(b, DT_U64, 32);
  UOp *x0 = uop_cast(b->st, ctr, DT_U32), *x1 = uop_cast(b->st, op2(b, OPS_SHR, ctr, sh), DT_U32);
  UOp *ks[3] = {uop_cast(b->st, key, DT_U32), uop_cast(b->st, op2(b, OPS_SHR, key, sh), DT_U32), NULL};
  ks[2] = op2(b, OPS_XOR, op2(b, OPS_XOR, ks[0], ks[1]), ci(b, DT_U32, 0x1BD11BDA));
  x0 = op2(b, OPS_ADD, x0, ks[0]), x1 = op2(b, OPS_ADD, x1, ks[1]);
  for (int i = 0; i < 5; i++) {
    for (int j = 0; j < 4; j++) {
      int r = rot[i & 1][j];
      x0 = op2(b, OPS_ADD, x0, x1);
      x1 = op2(b, OPS_XOR, op2(b, OPS_OR, op2(b, OPS_SHL, x1, ci(b, DT_U32, r)), op2(b, OPS_SHR, x1, ci(b, DT_U32, 32 - r))), x0);
    }
    x0 = op2(b, OPS_ADD, x0, ks[(i + 1) % 3]);
    x1 = op2(b, OPS_ADD, op2(b, OPS_ADD, x1, ks[(i + 2) % 3]), ci(b, DT_U32, i + 1));
  }
  return op2(b, OPS_OR, op2(b, OPS_SHL, uop_cast(b->st, x1, DT_U64), sh), uop_cast(b->st, x0, DT_U64));
}
static UOp *int_pow(B *b, DType d, UOp *x, UOp *y) {         /* square and multiply over the bits an exponent can have */
  UOp *r = ci(b, d, 1), *p = x, *zero = ci(b, d, 0), *one = ci(b, d, 1);
  int bits = (int)dtype_size(d) * 8;
  for (int i = 0; i < TG_MIN(bits, 32); i++) {
    UOp *bit = op2(b, OPS_CMPNE, op2(b, OPS_AND, op2(b, OPS_SHR, y, ci(b, d, i)), one), zero);
    r = sel(b, bit, op2(b, OPS_MUL, r, p), r);
    p = op2(b, OPS_MUL, p, p);
  }
  if (dtype_is_unsigned(d)) return r;
  UOp *m1 = ci(b, d, -1), *odd = op2(b, OPS_CMPNE, op2(b, OPS_AND, y, one), zero);
  UOp *neg = sel(b, op2(b, OPS_CMPEQ, x, one), one, sel(b, op2(b, OPS_CMPEQ, x, m1), sel(b, odd, m1, one), zero));
  return sel(b, op2(b, OPS_CMPLT, y, zero), neg, r);
}
static UOp *decompose(UOpStore *st, const Renderer *ren, UOp *u) {
  DType d = (DType)u->dtype, sd = u->nsrc ? (DType)u->src[u->op == OPS_WHERE ? 1 : 0]->dtype : DT_VOID;
  bool half = (sd == DT_F16 && !ren->has_f16) || (sd == DT_BF16 && !ren->has_bf16);
  if (half && u->op != OPS_CAST && u->op != OPS_BITCAST && u->op != OPS_WHERE && op_is_alu((Ops)u->op)) {       /* compute in f32, round once */
    UOp *src[3];
    for (int i = 0; i < u->nsrc; i++) src[i] = uop_cast(st, u->src[i], DT_F32);
    UOp *r = uop_new(st, (Ops)u->op, d == sd ? DT_F32 : d, 1, u->nsrc, src, u->arg);
    return uop_cast(st, r, d);
  }
  if (ren->native & op_bit((Ops)u->op)) return NULL;
  B b = {st, d}, b64 = {st, DT_F64};
  bool wide = d == DT_F32 && ren->has_f64;                   /* through f64 */
  switch (u->op) {
  case OPS_EXP2: return do_exp2(&b, u->src[0]);
  case OPS_EXP: return do_exp(&b, u->src[0]);
  case OPS_LOG2: case OPS_LOG:
    return wide || d == DT_F64 ? uop_cast(st, log_f64(&b64, uop_cast(st, u->src[0], DT_F64), u->op == OPS_LOG2), d) : NULL;
  case OPS_SIN: return wide || d == DT_F64 ? uop_cast(st, sin_f64(&b64, uop_cast(st, u->src[0], DT_F64)), d) : NULL;
  case OPS_POW:
    if (!dtype_is_float(d)) return int_pow(&b, d, u->src[0], u->src[1]);
    return wide || d == DT_F64 ? uop_cast(st, pow_f64(&b64, uop_cast(st, u->src[0], DT_F64), uop_cast(st, u->src[1], DT_F64)), d) : NULL;
  case OPS_THREEFRY: return threefry(&b, u->src[0], u->src[1]);
  default: return NULL;
  }
}
UOp *pm_decompose(Rewrite *rw, UOp *self) {
  Kernel *k = rw->ctx;
  if (!k->ren || !op_is_alu((Ops)self->op)) return NULL;     /* INTERP computes every op itself */
  return rule_fired(rw, "decompose", "decompose.c", self, decompose(rw->st, k->ren, self));
}
