/* r_16, C, 1 thread, opts VEC r0 16 */
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
#ifndef H_max_f32x16
#define H_max_f32x16
INL f32x16 max_f32x16(f32x16 a, f32x16 b) {
  i32x16 m = (i32x16)(a > b);
  f32x16 r = (f32x16)((m & (i32x16)a) | (~m & (i32x16)b));
#if defined(__AVX512F__)
  return __builtin_ia32_fixupimmps512_mask(r, a, (i32x16){0} + 0x11, 0, -1, 4);
#else
  m = (i32x16)(a != a);
  return (f32x16)((m & (i32x16)a) | (~m & (i32x16)r));
#endif
}
#endif
void r_16(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p3 = (f32 *)bufs[3];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat(0.0f);
  f32x16 acc0 = v0;
  for (i64 r1 = 0; r1 < 2l; r1++) {
    f32x16 acc1 = v0;
    f32x16 acc2 = v0;
    i64 v1 = r1 * 768l;
    i64 v2 = r1 * 48l;
    for (i64 r2 = 0; r2 < 48l; r2++) {
      i64 v3 = r2 * 16l;
      i64 v4 = v3 + v1;
      f32x16 v5 = *(const f32x16u *)(p1 + v4);
      i64 v6 = r2 + v2;
      f32 v7 = p3[v6];
      f32x16 v8 = f32x16_splat(v7);
      f32x16 v9 = acc1;
      f32x16 v10 = fma_f32x16(v5, v8, v9);
      acc1 = v10;
      f32 v11 = p2[v6];
      f32x16 v12 = f32x16_splat(v11);
      f32x16 v13 = acc2;
      f32x16 v14 = fma_f32x16(v5, v12, v13);
      acc2 = v14;
    }
    f32x16 v15 = acc0;
    f32x16 v16 = acc2;
    f32x16 v17 = acc1;
    f32x16 v18 = max_f32x16(v16, v17);
    f32x16 v19 = v15 + v18;
    acc0 = v19;
  }
  f32x16 v20 = acc0;
  *(f32x16u *)(p0 + 0l) = v20;
}
