/* r_3_4_16, C, 1 thread, opts UPCAST r1 4, VEC r2 16 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i32, 16)
#ifndef H_fma_f32x16
#define H_fma_f32x16
INL f32x16 fma_f32x16(f32x16 a, f32x16 b, f32x16 c) {
#if defined(__clang__)
  _Pragma("STDC FP_CONTRACT ON") return a * b + c;
#elif defined(__AVX512F__)
  IN_PARTS(f32, 64, 1, FMA512(s, PART(a), PART(b), PART(c)))
#elif defined(__FMA__)
  IN_PARTS(f32, 32, 2, FMA256(s, PART(a), PART(b), PART(c)))
#elif defined(__FMA__)
  IN_PARTS(f32, 16, 4, FMA128(s, PART(a), PART(b), PART(c)))
#else
  f32x16 r; for (int i = 0; i < 16; i++) r[i] = fma_f32(a[i], b[i], c[i]); return r;
#endif
}
#endif
void r_3_4_16(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat(0.0f);
  for (i64 r0 = 0; r0 < 3l; r0++) {
    f32x16 acc0 = v0;
    f32x16 acc1 = v0;
    f32x16 acc2 = v0;
    f32x16 acc3 = v0;
    i64 v1 = r0 * 32l;
    i64 v2 = r0 * 128l;
    for (i64 r3 = 0; r3 < 8l; r3++) {
      i64 v3 = v1 + r3;
      f32 v4 = p1[v3];
      f32x16 v5 = f32x16_splat(v4);
      i64 v6 = r3 * 16l;
      i64 v7 = v2 + v6;
      f32x16 v8 = *(const f32x16u *)(p2 + v7);
      f32x16 v9 = acc0;
      f32x16 v10 = fma_f32x16(v5, v8, v9);
      acc0 = v10;
      i64 v11 = v3 + 8l;
      f32 v12 = p1[v11];
      f32x16 v13 = f32x16_splat(v12);
      f32x16 v14 = acc1;
      f32x16 v15 = fma_f32x16(v13, v8, v14);
      acc1 = v15;
      i64 v16 = v3 + 16l;
      f32 v17 = p1[v16];
      f32x16 v18 = f32x16_splat(v17);
      f32x16 v19 = acc2;
      f32x16 v20 = fma_f32x16(v18, v8, v19);
      acc2 = v20;
      i64 v21 = v3 + 24l;
      f32 v22 = p1[v21];
      f32x16 v23 = f32x16_splat(v22);
      f32x16 v24 = acc3;
      f32x16 v25 = fma_f32x16(v23, v8, v24);
      acc3 = v25;
    }
    i64 v26 = r0 * 64l;
    f32x16 v27 = acc0;
    i64 v28 = v26 + 16l;
    f32x16 v29 = acc1;
    i64 v30 = v26 + 32l;
    f32x16 v31 = acc2;
    i64 v32 = v26 + 48l;
    f32x16 v33 = acc3;
    *(f32x16u *)(p0 + v26) = v27;
    *(f32x16u *)(p0 + v28) = v29;
    *(f32x16u *)(p0 + v30) = v31;
    *(f32x16u *)(p0 + v32) = v33;
  }
}
