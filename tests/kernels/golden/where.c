/* e_40, C, 1 thread, opts VEC r0 32 */
VECTOR(f32, 16)
VECTOR(i32, 16)
#ifndef H_sqrt_f32x16
#define H_sqrt_f32x16
INL f32x16 sqrt_f32x16(f32x16 a) {
#if defined(__AVX512F__)
  return SQRT512(s, a);
#else
  f32x16 r; for (int i = 0; i < 16; i++) r[i] = sqrt_f32(a[i]); return r;
#endif
}
#endif
VECTOR(f32, 8)
VECTOR(i32, 8)
#ifndef H_sqrt_f32x8
#define H_sqrt_f32x8
INL f32x8 sqrt_f32x8(f32x8 a) {
#if defined(__AVX__)
  return SQRT256(s, a);
#else
  f32x8 r; for (int i = 0; i < 8; i++) r[i] = sqrt_f32(a[i]); return r;
#endif
}
#endif
VECTOR(i8, 16)
VECTOR(u8, 16)
VECTOR(i8, 8)
VECTOR(u8, 8)
void e_40(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  u8 *p0 = (u8 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32x16 v0 = *(const f32x16u *)(p1 + 0l);
  f32x16 v1 = *(const f32x16u *)(p2 + 0l);
  i32x16 v2 = (i32x16)(v0 < v1);
  i32x16 v3 = (i32x16)(v0 == v1);
  i32x16 v4 = v2 | v3;
  f32x16 v5 = sqrt_f32x16(v0);
  i32x16 v6 = (i32x16)(v5 != v5);
  i32x16 v7 = v4 | v6;
  f32x16 v8 = *(const f32x16u *)(p1 + 16l);
  f32x16 v9 = *(const f32x16u *)(p2 + 16l);
  i32x16 v10 = (i32x16)(v8 < v9);
  i32x16 v11 = (i32x16)(v8 == v9);
  i32x16 v12 = v10 | v11;
  f32x16 v13 = sqrt_f32x16(v8);
  i32x16 v14 = (i32x16)(v13 != v13);
  i32x16 v15 = v12 | v14;
  f32x8 v16 = *(const f32x8u *)(p1 + 32l);
  f32x8 v17 = *(const f32x8u *)(p2 + 32l);
  i32x8 v18 = (i32x8)(v16 < v17);
  i32x8 v19 = (i32x8)(v16 == v17);
  i32x8 v20 = v18 | v19;
  f32x8 v21 = sqrt_f32x8(v16);
  i32x8 v22 = (i32x8)(v21 != v21);
  i32x8 v23 = v20 | v22;
  *(u8x16u *)(p0 + 0l) = (u8x16)(__builtin_convertvector(v7, i8x16) & 1);
  *(u8x16u *)(p0 + 16l) = (u8x16)(__builtin_convertvector(v15, i8x16) & 1);
  *(u8x8u *)(p0 + 32l) = (u8x8)(__builtin_convertvector(v23, i8x8) & 1);
}

/* e_40, C, 1 thread, opts VEC r0 32 */
VECTOR(f32, 16)
VECTOR(i32, 16)
#ifndef H_sqrt_f32x16
#define H_sqrt_f32x16
INL f32x16 sqrt_f32x16(f32x16 a) {
#if defined(__AVX512F__)
  return SQRT512(s, a);
#else
  f32x16 r; for (int i = 0; i < 16; i++) r[i] = sqrt_f32(a[i]); return r;
#endif
}
#endif
VECTOR(f32, 8)
VECTOR(i32, 8)
#ifndef H_sqrt_f32x8
#define H_sqrt_f32x8
INL f32x8 sqrt_f32x8(f32x8 a) {
#if defined(__AVX__)
  return SQRT256(s, a);
#else
  f32x8 r; for (int i = 0; i < 8; i++) r[i] = sqrt_f32(a[i]); return r;
#endif
}
#endif
void e_40(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32x16 v0 = *(const f32x16u *)(p1 + 0l);
  f32x16 v1 = *(const f32x16u *)(p2 + 0l);
  i32x16 v2 = (i32x16)(v0 < v1);
  f32x16 v3 = v1 - v0;
  f32x16 v4 = v0 - v1;
  f32x16 v5 = sqrt_f32x16(v4);
  f32x16 v6 = (f32x16)((v2 & (i32x16)v3) | (~v2 & (i32x16)v5));
  f32x16 v7 = *(const f32x16u *)(p1 + 16l);
  f32x16 v8 = *(const f32x16u *)(p2 + 16l);
  i32x16 v9 = (i32x16)(v7 < v8);
  f32x16 v10 = v8 - v7;
  f32x16 v11 = v7 - v8;
  f32x16 v12 = sqrt_f32x16(v11);
  f32x16 v13 = (f32x16)((v9 & (i32x16)v10) | (~v9 & (i32x16)v12));
  f32x8 v14 = *(const f32x8u *)(p1 + 32l);
  f32x8 v15 = *(const f32x8u *)(p2 + 32l);
  i32x8 v16 = (i32x8)(v14 < v15);
  f32x8 v17 = v15 - v14;
  f32x8 v18 = v14 - v15;
  f32x8 v19 = sqrt_f32x8(v18);
  f32x8 v20 = (f32x8)((v16 & (i32x8)v17) | (~v16 & (i32x8)v19));
  *(f32x16u *)(p0 + 0l) = v6;
  *(f32x16u *)(p0 + 16l) = v13;
  *(f32x8u *)(p0 + 32l) = v20;
}
