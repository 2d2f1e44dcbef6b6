/* r_3_4_16, C, 1 thread, opts SWAP r1 r2, UPCAST r1 4, VEC r2 16 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
#ifndef H_fma_f32x16
#define H_fma_f32x16
INL f32x16 fma_f32x16(f32x16 a, f32x16 b, f32x16 c) {
#if defined(__clang__)
  _Pragma("STDC FP_CONTRACT ON") return a * b + c;
#elif defined(__AVX512F__)
  return FMA512(s, a, b, c);
#else
  f32x16 r; for (int i = 0; i < 16; i++) r[i] = fma_f32(a[i], b[i], c[i]); return r;
#endif
}
#endif
void r_3_4_16(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32x16 v0 = f32x16_splat(0.0f);
  for (i64 r0 = 0; r0 < 3l; r0++) {
    i64 v1 = r0 * 64l;
    i64 v2 = r0 * 32l;
    i64 v3 = r0 * 128l;
    f32x16 acc0 = v0;
    f32x16 acc1 = v0;
    f32x16 acc2 = v0;
    f32x16 acc3 = v0;
    for (i64 r3 = 0; r3 < 8l; r3++) {
      i64 v4 = v2 + r3;
      i64 v5 = v4 + 24l;
      f32 v6 = p1[v5];
      f32x16 v7 = f32x16_splat(v6);
      i64 v8 = r3 * 16l;
      i64 v9 = v3 + v8;
      f32x16 v10 = *(const f32x16u *)(p2 + v9);
      i64 v11 = v4 + 16l;
      f32 v12 = p1[v11];
      f32x16 v13 = f32x16_splat(v12);
      i64 v14 = v4 + 8l;
      f32 v15 = p1[v14];
      f32x16 v16 = f32x16_splat(v15);
      f32 v17 = p1[v4];
      f32x16 v18 = f32x16_splat(v17);
      f32x16 v19 = acc0;
      f32x16 v20 = fma_f32x16(v7, v10, v19);
      acc0 = v20;
      f32x16 v21 = acc1;
      f32x16 v22 = fma_f32x16(v13, v10, v21);
      acc1 = v22;
      f32x16 v23 = acc2;
      f32x16 v24 = fma_f32x16(v16, v10, v23);
      acc2 = v24;
      f32x16 v25 = acc3;
      f32x16 v26 = fma_f32x16(v18, v10, v25);
      acc3 = v26;
    }
    f32x16 v27 = acc0;
    f32x16 v28 = acc1;
    f32x16 v29 = acc2;
    f32x16 v30 = acc3;
    i64 v31 = v1 + 16l;
    i64 v32 = v1 + 32l;
    i64 v33 = v1 + 48l;
    *(f32x16u *)(p0 + v1) = v30;
    *(f32x16u *)(p0 + v31) = v29;
    *(f32x16u *)(p0 + v32) = v28;
    *(f32x16u *)(p0 + v33) = v27;
  }
}
