/* dtype.c: data types, conversions between them, and the exact meaning of every elementwise op on scalars.
 * This is the only place that defines what an op computes: constant folding, bounds, INTERP and the rule
 * checker all call scalar_eval. */
#include "uop/uop.h"
#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  uint8_t size;
} dtypes[DT_COUNT] = {

#define DTYPE(name, text, bytes, storage) {text, bytes},
#include "uop/dtypes.def"
};

size_t dtype_size(DType d) { return dtypes[d].size; }

const char *dtype_name(DType d) { return d < DT_COUNT ? dtypes[d].name : "?"; }

int64_t dtype_min(DType d) {
  if (d == DT_BOOL || dtype_is_unsigned(d)) return 0;
  if (d == DT_I8 || d == DT_I16 || d == DT_I32) return -(INT64_C(1) << (8 * dtype_size(d) - 1));
  return INT64_MIN;
}

int64_t dtype_max(DType d) {
  if (d == DT_BOOL) return 1;
  if (d == DT_U8 || d == DT_U16 || d == DT_U32) return (INT64_C(1) << (8 * dtype_size(d))) - 1;
  if (d == DT_I8 || d == DT_I16 || d == DT_I32) return (INT64_C(1) << (8 * dtype_size(d) - 1)) - 1;
  return INT64_MAX;
}

/* ---- floats of 8 and 16 bits. fp8e5m2, f16 and bf16 are small IEEE formats. fp8e4m3 (OCP's, "fn") uses the
 * codes of infinity for numbers up to 448 and keeps one code for NaN. A value that would round past 448
 * becomes NaN, because there is no infinity, as in torch. */
typedef struct Narrow {
  uint8_t mant, exp;
  bool inf;
} Narrow;

static const Narrow narrows[] = {[DT_FP8E4M3 - DT_FP8E4M3] = {3, 4, false},
                                 [DT_FP8E5M2 - DT_FP8E4M3] = {2, 5, true},
                                 [DT_F16 - DT_FP8E4M3] = {10, 5, true},
                                 [DT_BF16 - DT_FP8E4M3] = {7, 8, true}};

/* A NaN with this fraction, whose first bits are placed first. The machine's conversion is not used, because
 * it would set the quiet bit. */
static double nan_value(bool minus, uint64_t fraction, int mant) {
  uint64_t u = (uint64_t)minus << 63 | UINT64_C(0x7ff) << 52 | fraction << (52 - mant);
  double x;
  memcpy(&x, &u, 8);
  return x;
}

static uint64_t nan_fraction(double x, int mant) {
  uint64_t u;
  memcpy(&u, &x, 8);
  u = (u & ((UINT64_C(1) << 52) - 1)) >> (52 - mant);
  return u ? u : UINT64_C(1) << (mant - 1);
}

uint16_t narrow_bits(DType d, double x) {
  const Narrow *f = &narrows[d - DT_FP8E4M3];
  int mant = f->mant, bias = (1 << (f->exp - 1)) - 1, emax = (1 << f->exp) - 1;
  uint16_t sign = (uint16_t)(signbit(x) ? 1 << (mant + f->exp) : 0);
  int64_t inf = (int64_t)emax << mant, nan = inf | ((1 << mant) - 1), bits;
  double a = fabs(x);
  if (isnan(x)) return (uint16_t)(sign | (f->inf ? inf | (int64_t)nan_fraction(x, mant) : nan));
  if (a == 0) return sign;
  if (isinf(a)) return (uint16_t)(sign | (f->inf ? inf : nan));
  int e;
  frexp(a, &e); /* a = m * 2^e, 0.5 <= m < 1 */
  /* below the normal numbers: the last place has the value that it has in the smallest normal ones */
  bool sub = e - 1 < 1 - bias;
  /* in whole units of the last place */
  int64_t m = (int64_t)nearbyint(ldexp(a, mant - (sub ? 1 - bias : e - 1)));
  /* a carry increases the exponent */
  bits = sub ? m : ((int64_t)(e - 1 + bias) << mant) + (m - (INT64_C(1) << mant));
  if (f->inf ? bits > inf : bits > nan) bits = f->inf ? inf : nan;
  return (uint16_t)(sign | bits);
}

double narrow_value(DType d, uint16_t h) {
  const Narrow *f = &narrows[d - DT_FP8E4M3];
  int bias = (1 << (f->exp - 1)) - 1;
  int emax = (1 << f->exp) - 1;
  int e = h >> f->mant & emax;
  int m = h & ((1 << f->mant) - 1);
  bool minus = h >> (f->mant + f->exp) & 1;
  if (e == emax && (f->inf ? m != 0 : m == (1 << f->mant) - 1))
    return nan_value(minus, f->inf ? (uint64_t)m : UINT64_C(1) << (f->mant - 1), f->mant);
  double v = f->inf && e == emax ? (double)INFINITY
                                 : ldexp(e ? m + (1 << f->mant) : m, (e ? e : 1) - bias - f->mant);
  return minus ? -v : v;
}

Scalar scalar_round(DType d, Scalar v) {
  switch (d) {
  case DT_BOOL: return (Scalar){.i = v.i != 0};
  case DT_I8: return (Scalar){.i = (int8_t)v.i};
  case DT_U8: return (Scalar){.i = (uint8_t)v.i};
  case DT_I16: return (Scalar){.i = (int16_t)v.i};
  case DT_U16: return (Scalar){.i = (uint16_t)v.i};
  case DT_I32: return (Scalar){.i = (int32_t)v.i};
  case DT_U32: return (Scalar){.i = (uint32_t)v.i};
  case DT_FP8E4M3:
  case DT_FP8E5M2:
  case DT_F16:
  case DT_BF16: return (Scalar){.f = narrow_value(d, narrow_bits(d, v.f))};
  case DT_F32: return (Scalar){.f = (float)v.f};
  default: return v;
  }
}

/* A 64-bit integer as f64: exact, or, above 2^53, rounded to odd. Rounding the result to fewer bits then
 * gives the same as a single rounding. */
static double odd_f64(bool is_unsigned, int64_t v) {
  bool minus = !is_unsigned && v < 0;
  uint64_t u = minus ? 0 - (uint64_t)v : (uint64_t)v;
  double d = u >> 53 ? (double)(u >> 11 | ((u & 2047) != 0)) * 2048 : (double)u;
  return minus ? -d : d;
}

Scalar scalar_cast(DType to, DType from, Scalar v) {
  if (dtype_is_float(from)) {
    if (dtype_is_float(to)) return scalar_round(to, v);
    if (to == DT_BOOL) return (Scalar){.i = v.f != 0};
    if (isnan(v.f)) return (Scalar){.i = 0};
    if (to == DT_U64)
      return (Scalar){.i = v.f <= 0 ? 0 : v.f >= 18446744073709551616.0 ? -1 : (int64_t)(uint64_t)v.f};
    double lo = (double)dtype_min(to), hi = (double)dtype_max(to);
    return (Scalar){.i = v.f <= lo ? dtype_min(to) : v.f >= hi ? dtype_max(to) : (int64_t)v.f};
  }
  if (!dtype_is_float(to)) return scalar_round(to, v);
  /* these round only once */
  if (to == DT_F32) return (Scalar){.f = from == DT_U64 ? (float)(uint64_t)v.i : (float)v.i};
  if (dtype_is_narrow_float(to)) return scalar_round(to, (Scalar){.f = odd_f64(from == DT_U64, v.i)});
  return scalar_round(to, (Scalar){.f = from == DT_U64 ? (double)(uint64_t)v.i : (double)v.i});
}

/* NaNs are converted by hand, because the machine's conversion would set their quiet bit. */
Scalar scalar_load(DType d, const void *at) {
  Scalar v = {.i = 0};
  switch (d) {
  case DT_F64: memcpy(&v.f, at, 8); break;
  case DT_F32: {
    float f;
    uint32_t u;
    memcpy(&f, at, 4), memcpy(&u, at, 4);
    v.f = isnan(f) ? nan_value(u >> 31, u & 0x7fffff, 23) : (double)f;
    break;
  }
  case DT_F16:
  case DT_BF16: {
    uint16_t h;
    memcpy(&h, at, 2);
    v.f = narrow_value(d, h);
    break;
  }
  case DT_FP8E4M3:
  case DT_FP8E5M2: v.f = narrow_value(d, *(const uint8_t *)at); break;
  case DT_BOOL: v.i = *(const uint8_t *)at != 0; break;
  case DT_U8: v.i = *(const uint8_t *)at; break;
  case DT_I8: v.i = *(const int8_t *)at; break;
  case DT_I16:
  case DT_U16: {
    uint16_t i;
    memcpy(&i, at, 2);
    v.i = d == DT_I16 ? (int16_t)i : i;
    break;
  }
  case DT_I32:
  case DT_U32: {
    uint32_t i;
    memcpy(&i, at, 4);
    v.i = d == DT_I32 ? (int32_t)i : (int64_t)i;
    break;
  }
  default: memcpy(&v.i, at, 8);
  }
  return v;
}

void scalar_store(DType d, Scalar v, void *at) {
  uint64_t bits = (uint64_t)v.i;
  float f;
  if (d == DT_BOOL)
    bits = v.i != 0;
  else if (d == DT_F32) {
    uint32_t u;
    f = (float)v.f;
    memcpy(&u, &f, 4);
    bits = isnan(v.f) ? (signbit(v.f) ? 0x80000000u : 0) | 0x7f800000u | nan_fraction(v.f, 23) : u;
  } else if (dtype_is_narrow_float(d))
    bits = narrow_bits(d, v.f);
  switch (dtype_size(d)) {
  case 1: *(uint8_t *)at = (uint8_t)bits; break;
  case 2: {
    uint16_t i = (uint16_t)bits;
    memcpy(at, &i, 2);
    break;
  }
  case 4: {
    uint32_t i = (uint32_t)bits;
    memcpy(at, &i, 4);
    break;
  }
  default: memcpy(at, &bits, 8);
  }
}

/* Salmon et al. 2011: 20 rounds; the low word comes first */
static uint64_t threefry2x32(uint64_t ctr, uint64_t key) {
  static const int rot[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t ks[3] = {(uint32_t)key, (uint32_t)(key >> 32), 0}, x0 = (uint32_t)ctr, x1 = (uint32_t)(ctr >> 32);
  ks[2] = ks[0] ^ ks[1] ^ 0x1BD11BDAu;
  x0 += ks[0];
  x1 += ks[1];
  for (int i = 0; i < 5; i++) {
    for (int j = 0; j < 4; j++) {
      int r = rot[i & 1][j];
      x0 += x1;
      x1 = (x1 << r | x1 >> (32 - r)) ^ x0;
    }
    x0 += ks[(i + 1) % 3];
    x1 += ks[(i + 2) % 3] + (uint32_t)i + 1;
  }
  return (uint64_t)x1 << 32 | x0;
}

/* Wraps. A negative exponent gives 0, except for a base of 1 or -1. */
static int64_t int_pow(int64_t a, int64_t b, bool u64) {
  if (b < 0 && !u64) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
  uint64_t r = 1, x = (uint64_t)a;
  for (uint64_t n = (uint64_t)b; n; n >>= 1, x *= x)
    if (n & 1) r *= x;
  return (int64_t)r;
}

/* x * y + z rounded once. An f64 sum of the exact f32 product would be rounded twice, so fmaf is used. */
static double mulacc(DType d, double x, double y, double z) {
  return d == DT_F64 ? fma(x, y, z) : (double)fmaf((float)x, (float)y, (float)z);
}

static bool float_eval(Ops op, DType d, const Scalar *s, Scalar *out) {
  double a = s[0].f, b = op_nsrc(op) > 1 ? s[1].f : 0, r;
  switch (op) {
  case OPS_CMPLT: out->i = a < b; return true;
  case OPS_CMPNE: out->i = a != b; return true;
  case OPS_CMPEQ: out->i = a == b; return true;
  case OPS_NEG: r = -a; break;
  case OPS_EXP2: r = exp2(a); break;
  case OPS_LOG2: r = log2(a); break;
  case OPS_EXP: r = exp(a); break;
  case OPS_LOG: r = log(a); break;
  case OPS_SIN: r = sin(a); break;
  case OPS_COS: r = cos(a); break;
  case OPS_TAN: r = tan(a); break;
  case OPS_TANH: r = tanh(a); break;
  case OPS_SQRT: r = sqrt(a); break;
  case OPS_RECIPROCAL: r = 1 / a; break;
  case OPS_TRUNC: r = trunc(a); break;
  case OPS_ADD: r = a + b; break;
  case OPS_SUB: r = a - b; break;
  case OPS_MUL: r = a * b; break;
  case OPS_FDIV: r = a / b; break;
  case OPS_MAX:
    r = a > b || isnan(a) ? a : b;
    break; /* of two equal zeros the second, as renderers write it */
  case OPS_POW: r = pow(a, b); break;
  case OPS_MULACC: r = mulacc(d, a, b, s[2].f); break;
  default: return false;
  }
  /* f32 is computed in f64: +, -, *, / and sqrt are still rounded only once in effect, because 53 >= 2*24 +
   * 2. Narrow floats are computed in f32 in the same way (24 >= 2*11 + 2). */
  *out = scalar_round(d, (Scalar){.f = dtype_is_narrow_float(d) ? (double)(float)r : r});
  return true;
}

/* Computes in 64 bits, then rounds to d. Division by 0, and shifts by the width or more, have the values that
 * ops.def gives. */
bool scalar_eval(Ops op, DType d, const Scalar *s, Scalar *out) {
  if (op == OPS_WHERE) {
    *out = s[0].i ? s[1] : s[2];
    return true;
  }
  if (dtype_is_float(d)) return float_eval(op, d, s, out);
  int64_t a = s[0].i, b = op_nsrc(op) > 1 ? s[1].i : 0, r;
  uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
  bool u64 = d == DT_U64;
  int bits = d == DT_BOOL ? 1 : d == DT_INDEX ? 64 : (int)dtype_size(d) * 8;
  switch (op) {
  case OPS_NEG: r = (int64_t)(0 - ua); break;
  case OPS_TRUNC: r = a; break;
  case OPS_ADD: r = d == DT_BOOL ? (a | b) : (int64_t)(ua + ub); break;
  case OPS_SUB: r = (int64_t)(ua - ub); break;
  case OPS_MUL: r = (int64_t)(ua * ub); break;
  case OPS_CDIV: r = !b ? 0 : u64 ? (int64_t)(ua / ub) : b == -1 ? (int64_t)(0 - ua) : a / b; break;
  case OPS_CMOD: r = !b ? a : u64 ? (int64_t)(ua % ub) : b == -1 ? 0 : a % b; break;
  case OPS_FLOORDIV:
    r = !b        ? 0
        : u64     ? (int64_t)(ua / ub)
        : b == -1 ? (int64_t)(0 - ua)
                  : a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
    break;
  case OPS_FLOORMOD:
    r = !b ? a : u64 ? (int64_t)(ua % ub) : b == -1 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    break;
  case OPS_MAX: r = u64 ? (ua > ub ? a : b) : (a > b ? a : b); break;
  case OPS_POW: r = int_pow(a, b, u64); break;
  case OPS_CMPLT:
    r = u64 ? ua < ub : a < b;
    out->i = r;
    return true;
  case OPS_CMPNE: out->i = a != b; return true;
  case OPS_CMPEQ: out->i = a == b; return true;
  case OPS_AND: r = a & b; break;
  case OPS_OR: r = a | b; break;
  case OPS_XOR: r = a ^ b; break;
  case OPS_SHL: r = ub >= (uint64_t)bits ? 0 : (int64_t)(ua << ub); break;
  case OPS_SHR:
    if (dtype_is_unsigned(d) || d == DT_BOOL)
      r = ub >= (uint64_t)bits ? 0 : (int64_t)(ua >> ub);
    else
      r = a >> (ub >= (uint64_t)bits ? bits - 1 : (int)b);
    break;
  case OPS_DOT4:
    r = 0;
    for (int i = 0; i < 32; i += 8)
      r += (int64_t)(ua >> i & 255) * (int8_t)(ub >> i);
    break;
  case OPS_DOT2:
    r = (int64_t)(int16_t)a * (int16_t)b + (int64_t)(int16_t)(a >> 16) * (int16_t)(b >> 16);
    break;
  case OPS_DOT2X2:
    r = 0;
    for (int i = 0; i < 32; i += 16) {
      int64_t two = (int64_t)(ua >> i & 255) * (int8_t)(ub >> i) +
                    (int64_t)(ua >> (i + 8) & 255) * (int8_t)(ub >> (i + 8));
      r |= (int64_t)(uint16_t)TG_MIN(TG_MAX(two, INT16_MIN), INT16_MAX) << i;
    }
    break;
  case OPS_ADD2: r = (int64_t)(((ua + ub) & 0xffff) | ((ua >> 16) + (ub >> 16)) << 16); break;
  case OPS_THREEFRY: r = (int64_t)threefry2x32(ua, ub); break;
  case OPS_MULACC: r = (int64_t)(ua * ub + (uint64_t)s[2].i); break;
  default: return false;
  }
  *out = scalar_round(d, (Scalar){.i = r});
  return true;
}

Scalar dtype_least(DType d) {
  if (!dtype_is_float(d)) return (Scalar){.i = dtype_min(d)};
  if (d != DT_FP8E4M3) return (Scalar){.f = -INFINITY};
  const Narrow *f = &narrows[d - DT_FP8E4M3];
  int nan = (1 << (f->mant + f->exp)) - 1;
  return (Scalar){.f = -narrow_value(d, (uint16_t)(nan - 1))};
}
