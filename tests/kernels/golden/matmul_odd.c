/* r_3_7, C, 1 thread, opts SWAP r0 r1, UPCAST r0 3, VEC r1 7 */
VECTOR(f32, 2)
#ifndef H_f32x2_splat
#define H_f32x2_splat
INL f32x2 f32x2_splat(f32 x) { return (f32x2){x, x}; }
#endif
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
#ifndef H_fma_f32x2
#define H_fma_f32x2
INL f32x2 fma_f32x2(f32x2 a, f32x2 b, f32x2 c) {
#if defined(__clang__)
  _Pragma("STDC FP_CONTRACT ON") return a * b + c;
#else
  f32x2 r; for (int i = 0; i < 2; i++) r[i] = fma_f32(a[i], b[i], c[i]); return r;
#endif
}
#endif
#ifndef H_fma_f32x4
#define H_fma_f32x4
INL f32x4 fma_f32x4(f32x4 a, f32x4 b, f32x4 c) {
#if defined(__clang__)
  _Pragma("STDC FP_CONTRACT ON") return a * b + c;
#elif defined(__FMA__)
  return FMA128(s, a, b, c);
#else
  f32x4 r; for (int i = 0; i < 4; i++) r[i] = fma_f32(a[i], b[i], c[i]); return r;
#endif
}
#endif
void r_3_7(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 acc0 = 0.0f;
  f32x2 acc1;
  f32x2 v0 = f32x2_splat(0.0f);
  acc1 = v0;
  f32x4 acc2;
  f32x4 v1 = f32x4_splat(0.0f);
  acc2 = v1;
  f32 acc3 = 0.0f;
  f32x2 acc4 = v0;
  f32x4 acc5 = v1;
  f32 acc6 = 0.0f;
  f32x2 acc7 = v0;
  f32x4 acc8 = v1;
  for (i64 r2 = 0; r2 < 13l; r2++) {
    i64 v2 = r2 + 26l;
    f32 v3 = p1[v2];
    i64 v4 = r2 * 7l;
    i64 v5 = v4 + 6l;
    f32 v6 = p2[v5];
    f32x2 v7 = f32x2_splat(v3);
    i64 v8 = v4 + 4l;
    f32x2 v9 = *(const f32x2u *)(p2 + v8);
    f32x4 v10 = f32x4_splat(v3);
    f32x4 v11 = *(const f32x4u *)(p2 + v4);
    i64 v12 = r2 + 13l;
    f32 v13 = p1[v12];
    f32x2 v14 = f32x2_splat(v13);
    f32x4 v15 = f32x4_splat(v13);
    f32 v16 = p1[r2];
    f32x2 v17 = f32x2_splat(v16);
    f32x4 v18 = f32x4_splat(v16);
    f32 v19 = acc0;
    f32 v20 = fma_f32(v3, v6, v19);
    acc0 = v20;
    f32x2 v21 = acc1;
    f32x2 v22 = fma_f32x2(v7, v9, v21);
    acc1 = v22;
    f32x4 v23 = acc2;
    f32x4 v24 = fma_f32x4(v10, v11, v23);
    acc2 = v24;
    f32 v25 = acc3;
    f32 v26 = fma_f32(v13, v6, v25);
    acc3 = v26;
    f32x2 v27 = acc4;
    f32x2 v28 = fma_f32x2(v14, v9, v27);
    acc4 = v28;
    f32x4 v29 = acc5;
    f32x4 v30 = fma_f32x4(v15, v11, v29);
    acc5 = v30;
    f32 v31 = acc6;
    f32 v32 = fma_f32(v16, v6, v31);
    acc6 = v32;
    f32x2 v33 = acc7;
    f32x2 v34 = fma_f32x2(v17, v9, v33);
    acc7 = v34;
    f32x4 v35 = acc8;
    f32x4 v36 = fma_f32x4(v18, v11, v35);
    acc8 = v36;
  }
  f32 v37 = acc0;
  f32x2 v38 = acc1;
  f32x4 v39 = acc2;
  f32 v40 = acc3;
  f32x2 v41 = acc4;
  f32x4 v42 = acc5;
  f32 v43 = acc6;
  f32x2 v44 = acc7;
  f32x4 v45 = acc8;
  *(f32x4u *)(p0 + 0l) = v45;
  *(f32x2u *)(p0 + 4l) = v44;
  p0[6l] = v43;
  *(f32x4u *)(p0 + 7l) = v42;
  *(f32x2u *)(p0 + 11l) = v41;
  p0[13l] = v40;
  *(f32x4u *)(p0 + 14l) = v39;
  *(f32x2u *)(p0 + 18l) = v38;
  p0[20l] = v37;
}
