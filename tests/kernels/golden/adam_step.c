/* r, C, 1 thread, opts GROUP r0 16 */
VECTOR(f32, 16)
VECTOR(f32, 8)
VECTOR(f32, 4)
VECTOR(f32, 2)
void r(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  f32 *p3 = (f32 *)bufs[3];
  f32 *p4 = (f32 *)bufs[4];
  f32x16 v0 = *(const f32x16u *)(p1 + 0l);
  f32x16 v1 = *(const f32x16u *)(p2 + 0l);
  f32x16 v2 = v0 * v1;
  f32x8 v3 = __builtin_shufflevector(v2, v2, 0, 1, 2, 3, 4, 5, 6, 7);
  f32x8 v4 = __builtin_shufflevector(v2, v2, 8, 9, 10, 11, 12, 13, 14, 15);
  f32x8 v5 = v3 + v4;
  f32x4 v6 = __builtin_shufflevector(v5, v5, 0, 1, 2, 3);
  f32x4 v7 = __builtin_shufflevector(v5, v5, 4, 5, 6, 7);
  f32x4 v8 = v6 + v7;
  f32x2 v9 = __builtin_shufflevector(v8, v8, 0, 1);
  f32x2 v10 = __builtin_shufflevector(v8, v8, 2, 3);
  f32x2 v11 = v9 + v10;
  f32 v12 = v11[0] + v11[1];
  f32 v13 = 0.0f + v12;
  f32 v14 = p3[0l];
  f32 v15 = v14 * 0.9f;
  f32 v16 = p4[0l];
  f32 v17 = v16 * 0.999f;
  p0[0l] = v13;
  p3[0l] = v15;
  p4[0l] = v17;
}

/* e_16, C, 1 thread, opts VEC r0 16 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
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
void e_16(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p3 = (f32 *)bufs[3];
  f32 *p4 = (f32 *)bufs[4];
  f32 *p5 = (f32 *)bufs[5];
  f32 *p6 = (f32 *)bufs[6];
  f32x16 v0 = *(const f32x16u *)(p0 + 0l);
  f32x16 v1 = f32x16_splat(0.9f);
  f32x16 v2 = v0 * v1;
  f32x16 v3 = *(const f32x16u *)(p1 + 0l);
  f32x16 v4 = f32x16_splat(0.1f);
  f32x16 v5 = v3 * v4;
  f32x16 v6 = v2 + v5;
  f32x16 v7 = *(const f32x16u *)(p2 + 0l);
  f32x16 v8 = f32x16_splat(0.999f);
  f32x16 v9 = v7 * v8;
  f32x16 v10 = v3 * v3;
  f32x16 v11 = f32x16_splat(0.001f);
  f32x16 v12 = v10 * v11;
  f32x16 v13 = v9 + v12;
  f32x16 v14 = *(const f32x16u *)(p3 + 0l);
  f32 v15 = p4[0l];
  f32 v16 = 1.0f - v15;
  f32x16 v17 = f32x16_splat(v16);
  f32x16 v18 = v6 / v17;
  f32 v19 = p5[0l];
  f32 v20 = 1.0f - v19;
  f32x16 v21 = f32x16_splat(v20);
  f32x16 v22 = v13 / v21;
  f32x16 v23 = sqrt_f32x16(v22);
  f32x16 v24 = f32x16_splat(1e-08f);
  f32x16 v25 = v23 + v24;
  f32x16 v26 = v18 / v25;
  f32 v27 = p6[0l];
  f32x16 v28 = f32x16_splat(v27);
  f32x16 v29 = v26 * v28;
  f32x16 v30 = v14 - v29;
  *(f32x16u *)(p0 + 0l) = v6;
  *(f32x16u *)(p2 + 0l) = v13;
  *(f32x16u *)(p3 + 0l) = v30;
}
