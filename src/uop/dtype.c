/* dtype.c: data types, conversions between them, and the exact meaning of every elementwise op on scalars.
 * The one place that says what an op computes: constant folding, bounds, INTERP and the rule checker all call scalar_eval. */
#include "uop/uop.h"
#include <math.h>
#include <string.h>

static const struct { const char *name; uint8_t size; } dtypes[DT_COUNT] = {
  {"void", 0}, {"index", 0}, {"bool", 1}, {"i8", 1}, {"u8", 1}, {"i16", 2}, {"u16", 2}, {"i32", 4}, {"u32", 4}, {"i64", 8}, {"u64", 8},
  {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};
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

/* ---- 16-bit floats. One rounding straight from f64, to nearest, ties to even. */
static uint16_t float16_pack(double x, int mant_bits, int exp_bits) {
  int bias = (1 << (exp_bits - 1)) - 1, emax = (1 << exp_bits) - 1;
  uint16_t sign = (uint16_t)(signbit(x) ? 0x8000 : 0);
  if (isnan(x)) return (uint16_t)(sign | emax << mant_bits | 1 << (mant_bits - 1));
  double a = fabs(x);
  if (a == 0) return sign;
  if (isinf(a)) return (uint16_t)(sign | emax << mant_bits);
  int e;
  frexp(a, &e);                                       /* a = m * 2^e, 0.5 <= m < 1 */
  int q = e - 1 < 1 - bias ? 1 - bias - mant_bits : e - 1 - mant_bits;    /* exponent of the last mantissa bit */
  double r = nearbyint(ldexp(a, -q));                 /* whole number of units in the last place */
  int64_t m = (int64_t)r;
  int be = e - 1 < 1 - bias ? 0 : e - 1 + bias;
  int64_t bits = be == 0 ? m : ((int64_t)be << mant_bits) + (m - (INT64_C(1) << mant_bits));   /* a carry moves into the exponent */
  if (bits >= (int64_t)emax << mant_bits) bits = (int64_t)emax << mant_bits;
  return (uint16_t)(sign | bits);
}
uint16_t f16_from_f64(double x) { return float16_pack(x, 10, 5); }
uint16_t bf16_from_f64(double x) { return float16_pack(x, 7, 8); }
float f16_to_f32(uint16_t h) {
  int e = h >> 10 & 31, m = h & 1023;
  float v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexpf((float)(m + 1024), e - 25) : ldexpf((float)m, -24);
  return h & 0x8000 ? -v : v;
}
float bf16_to_f32(uint16_t h) {
  uint32_t u = (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
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
  case DT_F16: return (Scalar){.f = f16_to_f32(f16_from_f64(v.f))};
  case DT_BF16: return (Scalar){.f = bf16_to_f32(bf16_from_f64(v.f))};
  case DT_F32: return (Scalar){.f = (float)v.f};
  default: return v;
  }
}
Scalar scalar_cast(DType to, DType from, Scalar v) {
  if (dtype_is_float(from)) {
    if (dtype_is_float(to)) return scalar_round(to, v);
    if (to == DT_BOOL) return (Scalar){.i = v.f != 0};
    if (isnan(v.f)) return (Scalar){.i = 0};
    if (to == DT_U64) return (Scalar){.i = v.f <= 0 ? 0 : v.f >= 18446744073709551616.0 ? -1 : (int64_t)(uint64_t)v.f};
    double lo = (double)dtype_min(to), hi = (double)dtype_max(to);
    return (Scalar){.i = v.f <= lo ? dtype_min(to) : v.f >= hi ? dtype_max(to) : (int64_t)v.f};
  }
  if (!dtype_is_float(to)) return scalar_round(to, v);
  if (to == DT_F32) return (Scalar){.f = from == DT_U64 ? (float)(uint64_t)v.i : (float)v.i};       /* one rounding */
  return scalar_round(to, (Scalar){.f = from == DT_U64 ? (double)(uint64_t)v.i : (double)v.i});
}

static uint64_t threefry2x32(uint64_t ctr, uint64_t key) {      /* Salmon et al. 2011: 20 rounds, the low word of each first */
  static const int rot[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t ks[3] = {(uint32_t)key, (uint32_t)(key >> 32), 0}, x0 = (uint32_t)ctr, x1 = (uint32_t)(ctr >> 32);
  ks[2] = ks[0] ^ ks[1] ^ 0x1BD11BDAu;
  x0 += ks[0], x1 += ks[1];
  for (int i = 0; i < 5; i++) {
    for (int j = 0; j < 4; j++) {
      int r = rot[i & 1][j];
      x0 += x1;
      x1 = (x1 << r | x1 >> (32 - r)) ^ x0;
    }
    x0 += ks[(i + 1) % 3], x1 += ks[(i + 2) % 3] + (uint32_t)i + 1;
  }
  return (uint64_t)x1 << 32 | x0;
}
static int64_t int_pow(int64_t a, int64_t b) {                  /* wraps; a negative exponent gives 0, but 1 and -1 stay */
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
  uint64_t r = 1, x = (uint64_t)a;
  for (; b; b >>= 1, x *= x) if (b & 1) r *= x;
  return (int64_t)r;
}
/* x * y + z rounded once; an f64 sum of the exact f32 product would round twice, hence fmaf. */
static double mulacc(DType d, double x, double y, double z) { return d == DT_F64 ? fma(x, y, z) : d == DT_F32 ? fmaf((float)x, (float)y, (float)z) : x * y + z; }

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
  case OPS_SQRT: r = sqrt(a); break;
  case OPS_RECIPROCAL: r = 1 / a; break;
  case OPS_TRUNC: r = trunc(a); break;
  case OPS_ADD: r = a + b; break;
  case OPS_SUB: r = a - b; break;
  case OPS_MUL: r = a * b; break;
  case OPS_FDIV: r = a / b; break;
  case OPS_MAX: r = isnan(a) ? a : isnan(b) ? b : a > b ? a : b > a ? b : signbit(a) ? b : a; break;
  case OPS_POW: r = pow(a, b); break;
  case OPS_MULACC: r = mulacc(d, a, b, s[2].f); break;
  default: return false;
  }
  *out = scalar_round(d, (Scalar){.f = r});           /* f32 through f64: +, -, *, / and sqrt round once (53 >= 2*24 + 2) */
  return true;
}
bool scalar_eval(Ops op, DType d, const Scalar *s, Scalar *out) {
  if (op == OPS_WHERE) { *out = s[0].i ? s[1] : s[2]; return true; }
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
  case OPS_FLOORDIV: r = !b ? 0 : u64 ? (int64_t)(ua / ub) : b == -1 ? (int64_t)(0 - ua) : a / b - ((a % b != 0) && ((a < 0) != (b < 0))); break;
  case OPS_FLOORMOD: r = !b ? a : u64 ? (int64_t)(ua % ub) : b == -1 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0); break;
  case OPS_MAX: r = u64 ? (ua > ub ? a : b) : (a > b ? a : b); break;
  case OPS_POW: r = int_pow(a, u64 ? (int64_t)(ub & INT64_MAX) : b); break;
  case OPS_CMPLT: r = u64 ? ua < ub : a < b; out->i = r; return true;
  case OPS_CMPNE: out->i = a != b; return true;
  case OPS_CMPEQ: out->i = a == b; return true;
  case OPS_AND: r = a & b; break;
  case OPS_OR: r = a | b; break;
  case OPS_XOR: r = a ^ b; break;
  case OPS_SHL: r = ub >= (uint64_t)bits ? 0 : (int64_t)(ua << ub); break;
  case OPS_SHR:
    if (dtype_is_unsigned(d) || d == DT_BOOL) r = ub >= (uint64_t)bits ? 0 : (int64_t)(ua >> ub);
    else r = a >> (ub >= (uint64_t)bits ? bits - 1 : (int)b);
    break;
  case OPS_THREEFRY: r = (int64_t)threefry2x32(ua, ub); break;
  case OPS_MULACC: r = (int64_t)(ua * ub + (uint64_t)s[2].i); break;
  default: return false;
  }
  *out = scalar_round(d, (Scalar){.i = r});
  return true;
}
Scalar op_identity(Ops op, DType d) {
  bool f = dtype_is_float(d);
  switch (op) {
  case OPS_MUL: return f ? (Scalar){.f = 1} : (Scalar){.i = 1};
  case OPS_MAX: return f ? (Scalar){.f = -INFINITY} : (Scalar){.i = dtype_min(d)};
  case OPS_AND: return scalar_round(d, (Scalar){.i = -1});
  default: return f ? (Scalar){.f = 0} : (Scalar){.i = 0};
  }
}
