typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16; typedef int i32; typedef unsigned u32;
typedef long i64; typedef unsigned long u64; typedef float f32; typedef double f64;
#define VECTOR(T, N) typedef T T##x##N __attribute__((vector_size(N * sizeof(T)))); \
typedef T T##x##N##u __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)), may_alias));
#define PREFETCH(p, i) __builtin_prefetch((const void *)((u64)(p) + (u64)(i) * sizeof *(p)))
#define INL static inline __attribute__((always_inline))
#ifdef __clang__
#define PARTS _Pragma("unroll")
#define MAXI(I, a, b) __builtin_elementwise_max(a, b)
#if __has_builtin(__builtin_elementwise_sqrt)
#define SQRT_OF_ALL __builtin_elementwise_sqrt
#endif
#else
#define PARTS _Pragma("GCC unroll 8")
#define MAXI(I, a, b) ((((a) > (b)) & (I)(a)) | (~((a) > (b)) & (I)(b)))
#endif
#define PART(v) ((part *)&v)[i]
#define IN_PARTS(T, BYTES, N, VALUE) typedef T part __attribute__((vector_size(BYTES), may_alias)); \
PARTS for (int i = 0; i < N; i++) PART(a) = VALUE; return a;
#define FMA128(K, a, b, c) __builtin_ia32_vfmaddp##K(a, b, c)
#define FMA256(K, a, b, c) __builtin_ia32_vfmaddp##K##256(a, b, c)
#define FMA512(K, a, b, c) __builtin_ia32_vfmaddp##K##512_mask(a, b, c, -1, 4)
#define SQRT128(K, a) __builtin_ia32_sqrtp##K(a)
#define SQRT256(K, a) __builtin_ia32_sqrtp##K##256(a)
#define TRUNC128(K, a) __builtin_ia32_roundp##K(a, 11)
#define TRUNC256(K, a) __builtin_ia32_roundp##K##256(a, 11)
#define TRUNC512(K, a) __builtin_ia32_rndscalep##K##_mask(a, 11, a, -1, 4)
#ifdef __clang__
#define SQRT512(K, a) __builtin_ia32_sqrtp##K##512(a, 4)
#else
#define SQRT512(K, a) __builtin_ia32_sqrtp##K##512_mask(a, a, -1, 4)
#endif
INL u32 u32_bits(f32 x) { union { f32 f; u32 u; } b = {.f = x}; return b.u; }
INL f32 f32_bits(u32 x) { union { u32 u; f32 f; } b = {.u = x}; return b.f; }
INL u64 u64_bits(f64 x) { union { f64 f; u64 u; } b = {.f = x}; return b.u; }
INL f64 f64_bits(u64 x) { union { u64 u; f64 f; } b = {.u = x}; return b.f; }
INL f32 sqrt_f32(f32 x) { return __builtin_sqrtf(x); }
INL f64 sqrt_f64(f64 x) { return __builtin_sqrt(x); }
INL f32 fma_f32(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
INL f64 fma_f64(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
INL i32 dot4_i32(i32 a, i32 b) { u32 r = 0; for (int i = 0; i < 32; i += 8) r += ((u32)a >> i & 255) * (u32)(i8)(b >> i); return (i32)r; }
INL i32 dot2_i32(i32 a, i32 b) { return (i32)((u32)(i16)a * (u32)(i16)b + (u32)(a >> 16) * (u32)(b >> 16)); }
INL i32 add2_i32(i32 a, i32 b) { return (i32)((u16)(a + (u32)b) | (((u32)a >> 16) + ((u32)b >> 16)) << 16); }
INL i32 pair_of(i32 a, i32 b) { i32 r = (a & 255) * (i8)b + (a >> 8 & 255) * (i8)(b >> 8); return r < -32768 ? -32768 : r > 32767 ? 32767 : r; }
INL i32 dot2x2_i32(i32 a, i32 b) { return (i32)(((u32)pair_of(a, b) & 65535) | (u32)pair_of(a >> 16, b >> 16) << 16); }
INL i32 lookup4_i32(i32 a, const u8 *t) { u32 r = 0; for (int i = 0; i < 32; i += 8) r |= (u32)t[a >> i & 15] << i; return (i32)r; }
#define DIVS(T, U, B, SIGNED) \
INL T cdiv_##T(T a, T b) { return (T)(b == 0 ? (T)0 : b == (T)-1 && SIGNED ? (T)((U)0 - (U)a) : (T)(a / b)); } \
INL T cmod_##T(T a, T b) { return (T)(b == 0 ? a : b == (T)-1 && SIGNED ? (T)0 : (T)(a % b)); } \
INL T floordiv_##T(T a, T b) { T q = cdiv_##T(a, b), r = cmod_##T(a, b); return b != 0 && r != 0 && SIGNED && ((U)(r ^ b) >> (B - 1) & 1) ? (T)(q - 1) : q; } \
INL T floormod_##T(T a, T b) { T r = cmod_##T(a, b); return r != 0 && SIGNED && ((U)(r ^ b) >> (B - 1) & 1) ? (T)(r + b) : r; } \
INL T shl_##T(T a, T b) { return (T)((u64)b >= B ? (T)0 : (T)((U)a << b)); } \
INL T shr_##T(T a, T b) { return (T)((u64)b < B ? (T)(a >> b) : SIGNED ? (T)(a >> (B - 1)) : (T)0); }
DIVS(i8, u32, 8, 1)
DIVS(u8, u32, 8, 0)
DIVS(i16, u32, 16, 1)
DIVS(u16, u32, 16, 0)
DIVS(i32, u32, 32, 1)
DIVS(u32, u32, 32, 0)
DIVS(i64, u64, 64, 1)
DIVS(u64, u64, 64, 0)
#define SAT(T, F, LO, HI, MIN, MAX) INL T T##_##F(F x) { return x != x ? (T)0 : x <= LO ? (T)(MIN) : x >= HI ? (T)(MAX) : (T)x; }
#define SATS(F) SAT(i8, F, -128.0f, 128.0f, -128, 127) SAT(u8, F, 0.0f, 256.0f, 0, 255) SAT(i16, F, -32768.0f, 32768.0f, -32768, 32767) \
SAT(u16, F, 0.0f, 65536.0f, 0, 65535) SAT(i32, F, -2147483648.0f, 2147483648.0f, -2147483647 - 1, 2147483647) \
SAT(u32, F, 0.0f, 4294967296.0f, 0, 0xffffffffu) SAT(i64, F, -9223372036854775808.0f, 9223372036854775808.0f, -0x7fffffffffffffff - 1, 0x7fffffffffffffff) \
SAT(u64, F, 0.0f, 18446744073709551616.0f, 0, ~(u64)0)
SATS(f32)
INL f32 trunc_f32(f32 x) { u32 b = u32_bits(x), s = b & 0x80000000u; return f32_bits(b & 0x7fffffffu) < 8388608.0f ? f32_bits(u32_bits((f32)(i32)x) | s) : x; }
INL f32 f32_bf16(u16 h) { return f32_bits((u32)h << 16); }
INL u16 bf16_f32(f32 x) { u32 b = u32_bits(x); return (u16)(x != x ? b >> 16 | 64 : (b + 0x7fffu + (b >> 16 & 1)) >> 16); }
#ifndef NATIVE_F16
#ifdef __F16C__
INL f32 f32_f16(u16 h) { i16 v __attribute__((vector_size(16))) = {(i16)h}; return __builtin_ia32_vcvtph2ps(v)[0]; }
INL u16 f16_f32(f32 x) { f32 v __attribute__((vector_size(16))) = {x}; return (u16)__builtin_ia32_vcvtps2ph(v, 0)[0]; }
#else
INL f32 f32_f16(u16 h) {
  u32 s = (u32)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
  return e == 31 ? f32_bits(s | 0x7f800000u | m << 13) : e ? f32_bits(s | (e + 112) << 23 | m << 13) : f32_bits(s | u32_bits((f32)(i32)m * 5.9604644775390625e-8f));
}
INL u16 f16_f32(f32 x) {
  u32 b = u32_bits(x), s = b >> 16 & 0x8000, a = b & 0x7fffffffu, r;
  if (a > 0x7f800000u) r = 0x7e00;
  else if (a >= 0x477ff000u) r = 0x7c00;
  else if (a >= 0x38800000u) r = (a - (112u << 23) + 0xfff + (a >> 13 & 1)) >> 13;
  else r = (u32)(i32)((f32_bits(a) * 16777216.0f + 8388608.0f) - 8388608.0f);
  return (u16)(s | r);
}
#endif
#endif
INL f32 f32_fp8e4m3(u8 h) {
  u32 s = (u32)(h & 128) << 24, m = h & 127;
  return f32_bits(s | (m == 127 ? 0x7fc00000u : m < 8 ? u32_bits((f32)(i32)m * 0.001953125f) : (m << 20) + (120u << 23)));
}
INL u8 fp8e4m3_f32(f32 x) {
  u32 b = u32_bits(x), s = b >> 24 & 128, a = b & 0x7fffffffu, r;
  if (a > 0x43e80000u) r = 127;
  else if (a >= 0x3c800000u) r = (a - (120u << 23) + 0x7ffff + (a >> 20 & 1)) >> 20;
  else r = (u32)(i32)((f32_bits(a) * 512.0f + 8388608.0f) - 8388608.0f);
  return (u8)(s | r);
}
INL f32 f32_fp8e5m2(u8 h) { return f32_f16((u16)(h << 8)); }
INL u8 fp8e5m2_f32(f32 x) {
  u32 b = u32_bits(x), s = b >> 24 & 128, a = b & 0x7fffffffu, r;
  if (a > 0x7f800000u) r = 126;
  else if (a >= 0x47700000u) r = 124;
  else if (a >= 0x38800000u) r = (a - (112u << 23) + 0xfffff + (a >> 21 & 1)) >> 21;
  else r = (u32)(i32)((f32_bits(a) * 65536.0f + 8388608.0f) - 8388608.0f);
  return (u8)(s | r);
}
INL f32 odd_u64(u64 x) { f32 s = 1.0f; for (; x >> 24; s *= 4096.0f) x = x >> 12 | ((x & 4095) != 0); return (f32)(i32)x * s; }
INL f32 odd_i64(i64 x) { return x < 0 ? -odd_u64((u64)0 - (u64)x) : odd_u64((u64)x); }
INL f32 odd_u32(u32 x) { return odd_u64(x); }
INL f32 odd_i32(i32 x) { return odd_i64(x); }
#ifndef NO_F64
SATS(f64)
INL f64 trunc_f64(f64 x) { u64 b = u64_bits(x), s = b & (u64)1 << 63; return f64_bits(b & ~((u64)1 << 63)) < 4503599627370496.0 ? f64_bits(u64_bits((f64)(i64)x) | s) : x; }
INL f32 odd_f64(f64 x) { f32 r = (f32)x; u32 b = u32_bits(r); return (f64)r == x || x != x || (b & 1) ? r : f32_bits(((f64)r > x) == (x > 0) ? b - 1 : b + 1); }
#endif
