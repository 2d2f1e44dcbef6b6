typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16; typedef int i32; typedef unsigned u32;
typedef long long i64; typedef unsigned long long u64; typedef float f32; typedef double f64;
typedef char2 i8x2; typedef char4 i8x4;
typedef uchar2 u8x2; typedef uchar4 u8x4;
typedef short2 i16x2; typedef short4 i16x4;
typedef ushort2 u16x2; typedef ushort4 u16x4;
typedef int2 i32x2; typedef int4 i32x4;
typedef uint2 u32x2; typedef uint4 u32x4;
typedef float2 f32x2; typedef float4 f32x4;
#define VEC(T) struct __align__(16) T##x2 { T x, y; }; struct __align__(16) T##x4 { T x, y, z, w; };
VEC(i64) VEC(u64) VEC(f64)
#pragma nv_diag_suppress 177, 39
#define INL static __device__ __forceinline__
INL u32 u32_bits(f32 x) { return __float_as_uint(x); }
INL f32 f32_bits(u32 x) { return __uint_as_float(x); }
INL u64 u64_bits(f64 x) { return (u64)__double_as_longlong(x); }
INL f64 f64_bits(u64 x) { return __longlong_as_double((i64)x); }
INL f32 sqrt_f32(f32 x) { return sqrtf(x); }
INL f64 sqrt_f64(f64 x) { return sqrt(x); }
INL f32 fma_f32(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
INL f64 fma_f64(f64 a, f64 b, f64 c) { return fma(a, b, c); }
#define MATH(F) INL f32 F##_f32(f32 x) { return F##f(x); } INL f64 F##_f64(f64 x) { return F(x); }
MATH(exp2) MATH(log2) MATH(exp) MATH(log) MATH(sin) MATH(cos) MATH(tanh)
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
#ifndef TG_EMULATED
#if __CUDA_ARCH__ >= 800
#define COPY(N, HOW) INL void tg_copy_async_##N(void *to, const void *from) { asm volatile("cp.async." #HOW ".shared.global [%0], [%1], " #N ";" :: "r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory"); }
COPY(4, ca) COPY(8, ca) COPY(16, cg)
#define tg_copy_async_wait_some(n) asm volatile("cp.async.commit_group; cp.async.wait_group %0;" :: "n"(n) : "memory")
INL void tg_copy_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
#define COPY(N, T) INL void tg_copy_async_##N(void *to, const void *from) { *(T *)to = *(const T *)from; }
COPY(4, u32) COPY(8, u32x2) COPY(16, u32x4)
#define tg_copy_async_wait_some(n)
INL void tg_copy_async_wait_all() {}
#endif
#endif
INL u32 word(u16x2 x) { return x.x | (u32)x.y << 16; }
INL u32 word(u8x4 x) { return x.x | (u32)x.y << 8 | (u32)x.z << 16 | (u32)x.w << 24; }
INL u32 word(i8x4 x) { return word(u8x4{u8(x.x), u8(x.y), u8(x.z), u8(x.w)}); }
INL u32 word(f32 x) { u32 u = u32_bits(x); return (u & 0x7f800000u) == 0x7f800000u ? u : u + 0x1000u; }
#ifndef TG_EMULATED
#if __CUDA_ARCH__ >= 800
INL void tg_mma_m16n8k16_f16_f32(void *to, const void *with, const void *by, const void *from) {
  f32 *d = (f32 *)to; const f32 *c = (const f32 *)from; const u32 *a = (const u32 *)with, *b = (const u32 *)by;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
#endif
#if __CUDA_ARCH__ >= 800
INL void tg_mma_m16n8k16_bf16_f32(void *to, const void *with, const void *by, const void *from) {
  f32 *d = (f32 *)to; const f32 *c = (const f32 *)from; const u32 *a = (const u32 *)with, *b = (const u32 *)by;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
#endif
#if __CUDA_ARCH__ >= 800
INL void tg_mma_m16n8k8_tf32_f32(void *to, const void *with, const void *by, const void *from) {
  f32 *d = (f32 *)to; const f32 *c = (const f32 *)from; const u32 *a = (const u32 *)with, *b = (const u32 *)by;
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
#endif
#if __CUDA_ARCH__ >= 800
INL void tg_mma_m16n8k32_s8_s32(void *to, const void *with, const void *by, const void *from) {
  i32 *d = (i32 *)to; const i32 *c = (const i32 *)from; const u32 *a = (const u32 *)with, *b = (const u32 *)by;
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
#endif
#if __CUDA_ARCH__ >= 800
INL void tg_mma_m16n8k32_u8_s32(void *to, const void *with, const void *by, const void *from) {
  i32 *d = (i32 *)to; const i32 *c = (const i32 *)from; const u32 *a = (const u32 *)with, *b = (const u32 *)by;
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
#endif
#if __CUDA_ARCH__ >= 890
INL void tg_mma_m16n8k32_e4m3_f32(void *to, const void *with, const void *by, const void *from) {
  f32 *d = (f32 *)to; const f32 *c = (const f32 *)from; const u32 *a = (const u32 *)with, *b = (const u32 *)by;
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
#endif
#if __CUDA_ARCH__ >= 890
INL void tg_mma_m16n8k32_e5m2_f32(void *to, const void *with, const void *by, const void *from) {
  f32 *d = (f32 *)to; const f32 *c = (const f32 *)from; const u32 *a = (const u32 *)with, *b = (const u32 *)by;
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
#endif
#if __CUDA_ARCH__ >= 750
INL void tg_mma_m16n8k8_f16_f32(void *to, const void *with, const void *by, const void *from) {
  f32 *d = (f32 *)to; const f32 *c = (const f32 *)from; const u32 *a = (const u32 *)with, *b = (const u32 *)by;
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
#endif
INL void tg_ldmatrix_x1(u32 *to, const void *row) { asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(to[0]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory"); }
INL void tg_ldmatrix_x1_trans(u32 *to, const void *row) { asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(to[0]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory"); }
INL void tg_ldmatrix_x2(u32 *to, const void *row) { asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory"); }
INL void tg_ldmatrix_x2_trans(u32 *to, const void *row) { asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory"); }
INL void tg_ldmatrix_x4(u32 *to, const void *row) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory"); }
INL void tg_ldmatrix_x4_trans(u32 *to, const void *row) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory"); }
#endif
#ifndef TG_EMULATED
INL u64 tg_lines_by(const void *p, u64 apart) { return ((u64)__cvta_generic_to_shared(p) & 0x3ffffu) >> 4 | apart << 16 | 64ull << 32 | 1ull << 62; }
#define tg_lines(p) tg_lines_by(p, 1)
#define tg_turned(p) tg_lines_by(p, 512)
#define tg_group_begin() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define tg_group_fence() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define tg_group_commit() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define tg_group_wait(n) asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(n) : "memory")
#endif
