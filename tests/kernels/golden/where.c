/* e_40, C, 1 thread, opts VEC r0 32 */
VECTOR(f32, 16)
VECTOR(i32, 16)
#ifndef H_sqrt_f32x16
#define H_sqrt_f32x16
INL f32x16 sqrt_f32x16(f32x16 a) {
#if defined(SQRT_OF_ALL)
  return SQRT_OF_ALL(a);
#elif defined(__AVX512F__)
  IN_PARTS(f32, 64, 1, SQRT512(s, PART(a)))
#elif defined(__AVX__)
  IN_PARTS(f32, 32, 2, SQRT256(s, PART(a)))
#elif defined(__SSE2__)
  IN_PARTS(f32, 16, 4, SQRT128(s, PART(a)))
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
#if defined(SQRT_OF_ALL)
  return SQRT_OF_ALL(a);
#elif defined(__AVX__)
  IN_PARTS(f32, 32, 1, SQRT256(s, PART(a)))
#elif defined(__SSE2__)
  IN_PARTS(f32, 16, 2, SQRT128(s, PART(a)))
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
  f32 *p3 = (f32 *)bufs[3];
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
  i32x16 v16 = (i32x16)(v1 < v0);
  f32x16 v17 = v0 - v1;
  f32x16 v18 = v1 - v0;
  f32x16 v19 = sqrt_f32x16(v18);
  f32x16 v20 = (f32x16)((v16 & (i32x16)v17) | (~v16 & (i32x16)v19));
  i32x16 v21 = (i32x16)(v9 < v8);
  f32x16 v22 = v8 - v9;
  f32x16 v23 = v9 - v8;
  f32x16 v24 = sqrt_f32x16(v23);
  f32x16 v25 = (f32x16)((v21 & (i32x16)v22) | (~v21 & (i32x16)v24));
  f32x8 v26 = *(const f32x8u *)(p1 + 32l);
  f32x8 v27 = *(const f32x8u *)(p2 + 32l);
  i32x8 v28 = (i32x8)(v26 < v27);
  i32x8 v29 = (i32x8)(v26 == v27);
  i32x8 v30 = v28 | v29;
  f32x8 v31 = sqrt_f32x8(v26);
  i32x8 v32 = (i32x8)(v31 != v31);
  i32x8 v33 = v30 | v32;
  i32x8 v34 = (i32x8)(v27 < v26);
  f32x8 v35 = v26 - v27;
  f32x8 v36 = v27 - v26;
  f32x8 v37 = sqrt_f32x8(v36);
  f32x8 v38 = (f32x8)((v34 & (i32x8)v35) | (~v34 & (i32x8)v37));
  *(u8x16u *)(p0 + 0l) = (u8x16)(__builtin_convertvector(v7, i8x16) & 1);
  *(u8x16u *)(p0 + 16l) = (u8x16)(__builtin_convertvector(v15, i8x16) & 1);
  *(f32x16u *)(p3 + 0l) = v20;
  *(f32x16u *)(p3 + 16l) = v25;
  *(u8x8u *)(p0 + 32l) = (u8x8)(__builtin_convertvector(v33, i8x8) & 1);
  *(f32x8u *)(p3 + 32l) = v38;
}
