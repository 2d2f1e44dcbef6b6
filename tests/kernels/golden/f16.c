/* e_40, C, 1 thread, opts VEC r0 32 */
VECTOR(u16, 16)
VECTOR(f32, 16)
VECTOR(u32, 16)
VECTOR(i32, 16)
VECTOR(i16, 16)
#ifndef H_f32x16_f16
#define H_f32x16_f16
INL f32x16 f32x16_f16(u16x16 a) {
#if 16 == 16 && defined(__AVX512F__)
  f32x16 r = (f32x16)__builtin_ia32_vcvtph2ps512_mask((i16x16)a, (f32x16){0}, -1, 4);
#ifdef __clang__
  __asm__("" : "+v"(r));
#endif
  return r;
#elif 16 % 8 == 0 && defined(__F16C__)
  typedef i16 half8 __attribute__((vector_size(16)));
  typedef f32 float8 __attribute__((vector_size(32)));
  f32x16 r;
  PARTS for (int i = 0; i < 16; i += 8) {
    half8 h;
    float8 f;
    __builtin_memcpy(&h, (const char *)&a + 2 * i, 16);
    f = __builtin_ia32_vcvtph2ps256(h);
#ifdef __clang__
    __asm__("" : "+x"(f));
#endif
    __builtin_memcpy((char *)&r + 4 * i, &f, 32);
  }
  return r;
#else
  u32x16 b = __builtin_convertvector(a, u32x16), m = b & 0x7fff, low = (u32x16)(m < 0x400);
  u32x16 top = (u32x16)(m >= 0x7c00) & (112u << 23), n = (m << 13) + (112u << 23) + top;
  u32x16 d = (u32x16)(__builtin_convertvector((i32x16)m, f32x16) * 0x1p-24f);
  return (f32x16)((b & 0x8000) << 16 | (d & low) | (n & ~low));
#endif
}
#endif
#ifndef H_f16x16_f32
#define H_f16x16_f32
INL u16x16 f16x16_f32(f32x16 a) {
#if 16 == 16 && defined(__AVX512F__)
  return (u16x16)__builtin_ia32_vcvtps2ph512_mask(a, 0, (i16x16){0}, -1);
#elif 16 % 8 == 0 && defined(__F16C__)
  typedef i16 half8 __attribute__((vector_size(16)));
  typedef f32 float8 __attribute__((vector_size(32)));
  u16x16 r;
  PARTS for (int i = 0; i < 16; i += 8) {
    half8 h;
    float8 f;
    __builtin_memcpy(&f, (const char *)&a + 4 * i, 32);
    h = __builtin_ia32_vcvtps2ph256(f, 0);
    __builtin_memcpy((char *)&r + 2 * i, &h, 16);
  }
  return r;
#else
  u32x16 b = (u32x16)a, m = b & 0x7fffffff, low = (u32x16)(m < 0x38800000), past = (u32x16)(m >= 0x477ff000);
  u32x16 n = (m - (112u << 23) + 0xfff + (m >> 13 & 1)) >> 13, nan = (u32x16)(m > 0x7f800000) & 0x200;
  u32x16 d = (u32x16)((f32x16)(m & low) * 0x1p24f + 0x1p23f) - 0x4b000000;
  u32x16 r = (d & low) | (n & ~low & ~past) | ((0x7c00 | nan) & past);
  return __builtin_convertvector((b >> 16 & 0x8000) | r, u16x16);
#endif
}
#endif
VECTOR(u16, 8)
VECTOR(f32, 8)
VECTOR(u32, 8)
VECTOR(i32, 8)
VECTOR(i16, 8)
#ifndef H_f32x8_f16
#define H_f32x8_f16
INL f32x8 f32x8_f16(u16x8 a) {
#if 8 == 16 && defined(__AVX512F__)
  f32x8 r = (f32x8)__builtin_ia32_vcvtph2ps512_mask((i16x8)a, (f32x8){0}, -1, 4);
#ifdef __clang__
  __asm__("" : "+v"(r));
#endif
  return r;
#elif 8 % 8 == 0 && defined(__F16C__)
  typedef i16 half8 __attribute__((vector_size(16)));
  typedef f32 float8 __attribute__((vector_size(32)));
  f32x8 r;
  PARTS for (int i = 0; i < 8; i += 8) {
    half8 h;
    float8 f;
    __builtin_memcpy(&h, (const char *)&a + 2 * i, 16);
    f = __builtin_ia32_vcvtph2ps256(h);
#ifdef __clang__
    __asm__("" : "+x"(f));
#endif
    __builtin_memcpy((char *)&r + 4 * i, &f, 32);
  }
  return r;
#else
  u32x8 b = __builtin_convertvector(a, u32x8), m = b & 0x7fff, low = (u32x8)(m < 0x400);
  u32x8 top = (u32x8)(m >= 0x7c00) & (112u << 23), n = (m << 13) + (112u << 23) + top;
  u32x8 d = (u32x8)(__builtin_convertvector((i32x8)m, f32x8) * 0x1p-24f);
  return (f32x8)((b & 0x8000) << 16 | (d & low) | (n & ~low));
#endif
}
#endif
#ifndef H_f16x8_f32
#define H_f16x8_f32
INL u16x8 f16x8_f32(f32x8 a) {
#if 8 == 16 && defined(__AVX512F__)
  return (u16x8)__builtin_ia32_vcvtps2ph512_mask(a, 0, (i16x8){0}, -1);
#elif 8 % 8 == 0 && defined(__F16C__)
  typedef i16 half8 __attribute__((vector_size(16)));
  typedef f32 float8 __attribute__((vector_size(32)));
  u16x8 r;
  PARTS for (int i = 0; i < 8; i += 8) {
    half8 h;
    float8 f;
    __builtin_memcpy(&f, (const char *)&a + 4 * i, 32);
    h = __builtin_ia32_vcvtps2ph256(f, 0);
    __builtin_memcpy((char *)&r + 2 * i, &h, 16);
  }
  return r;
#else
  u32x8 b = (u32x8)a, m = b & 0x7fffffff, low = (u32x8)(m < 0x38800000), past = (u32x8)(m >= 0x477ff000);
  u32x8 n = (m - (112u << 23) + 0xfff + (m >> 13 & 1)) >> 13, nan = (u32x8)(m > 0x7f800000) & 0x200;
  u32x8 d = (u32x8)((f32x8)(m & low) * 0x1p24f + 0x1p23f) - 0x4b000000;
  u32x8 r = (d & low) | (n & ~low & ~past) | ((0x7c00 | nan) & past);
  return __builtin_convertvector((b >> 16 & 0x8000) | r, u16x8);
#endif
}
#endif
void e_40(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  u16 *p0 = (u16 *)bufs[0];
  u16 *p1 = (u16 *)bufs[1];
  u16 *p2 = (u16 *)bufs[2];
  u16x16 v0 = *(const u16x16u *)(p1 + 0l);
  f32x16 v1 = f32x16_f16(v0);
  u16x16 v2 = *(const u16x16u *)(p2 + 0l);
  f32x16 v3 = f32x16_f16(v2);
  f32x16 v4 = v1 * v3;
  u16x16 v5 = f16x16_f32(v4);
  f32x16 v6 = f32x16_f16(v5);
  f32x16 v7 = v6 + v1;
  u16x16 v8 = f16x16_f32(v7);
  f32x16 v9 = f32x16_f16(v8);
  f32x16 v10 = v9 * v3;
  u16x16 v11 = f16x16_f32(v10);
  u16x16 v12 = *(const u16x16u *)(p1 + 16l);
  f32x16 v13 = f32x16_f16(v12);
  u16x16 v14 = *(const u16x16u *)(p2 + 16l);
  f32x16 v15 = f32x16_f16(v14);
  f32x16 v16 = v13 * v15;
  u16x16 v17 = f16x16_f32(v16);
  f32x16 v18 = f32x16_f16(v17);
  f32x16 v19 = v18 + v13;
  u16x16 v20 = f16x16_f32(v19);
  f32x16 v21 = f32x16_f16(v20);
  f32x16 v22 = v21 * v15;
  u16x16 v23 = f16x16_f32(v22);
  u16x8 v24 = *(const u16x8u *)(p1 + 32l);
  f32x8 v25 = f32x8_f16(v24);
  u16x8 v26 = *(const u16x8u *)(p2 + 32l);
  f32x8 v27 = f32x8_f16(v26);
  f32x8 v28 = v25 * v27;
  u16x8 v29 = f16x8_f32(v28);
  f32x8 v30 = f32x8_f16(v29);
  f32x8 v31 = v30 + v25;
  u16x8 v32 = f16x8_f32(v31);
  f32x8 v33 = f32x8_f16(v32);
  f32x8 v34 = v33 * v27;
  u16x8 v35 = f16x8_f32(v34);
  *(u16x16u *)(p0 + 0l) = v11;
  *(u16x16u *)(p0 + 16l) = v23;
  *(u16x8u *)(p0 + 32l) = v35;
}
