/* r_3_7, C, 1 thread, opts UPCAST r0 3, VEC r1 7 */
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
VECTOR(f32, 2)
#ifndef H_f32x2_splat
#define H_f32x2_splat
INL f32x2 f32x2_splat(f32 x) { return (f32x2){x, x}; }
#endif
VECTOR(i32, 4)
#ifndef H_fma_f32x4
#define H_fma_f32x4
INL f32x4 fma_f32x4(f32x4 a, f32x4 b, f32x4 c) {
#if defined(__clang__)
  _Pragma("STDC FP_CONTRACT ON") return a * b + c;
#elif defined(__FMA__)
  IN_PARTS(f32, 16, 1, FMA128(s, PART(a), PART(b), PART(c)))
#else
  f32x4 r; for (int i = 0; i < 4; i++) r[i] = fma_f32(a[i], b[i], c[i]); return r;
#endif
}
#endif
VECTOR(i32, 2)
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
void r_3_7(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  f32x4 v0 = f32x4_splat(0.0f);
  f32x4 acc0 = v0;
  f32x2 v1 = f32x2_splat(0.0f);
  f32x2 acc1 = v1;
  f32 acc2 = 0.0f;
  f32x4 acc3 = v0;
  f32x2 acc4 = v1;
  f32 acc5 = 0.0f;
  f32x4 acc6 = v0;
  f32x2 acc7 = v1;
  f32 acc8 = 0.0f;
  for (i64 r2 = 0; r2 < 13l; r2++) {
    f32 v2 = p1[r2];
    f32x4 v3 = f32x4_splat(v2);
    i64 v4 = r2 * 7l;
    f32x4 v5 = *(const f32x4u *)(p2 + v4);
    f32x4 v6 = acc0;
    f32x4 v7 = fma_f32x4(v3, v5, v6);
    acc0 = v7;
    f32x2 v8 = f32x2_splat(v2);
    i64 v9 = v4 + 4l;
    f32x2 v10 = *(const f32x2u *)(p2 + v9);
    f32x2 v11 = acc1;
    f32x2 v12 = fma_f32x2(v8, v10, v11);
    acc1 = v12;
    i64 v13 = v4 + 6l;
    f32 v14 = p2[v13];
    f32 v15 = acc2;
    f32 v16 = fma_f32(v2, v14, v15);
    acc2 = v16;
    i64 v17 = r2 + 13l;
    f32 v18 = p1[v17];
    f32x4 v19 = f32x4_splat(v18);
    f32x4 v20 = acc3;
    f32x4 v21 = fma_f32x4(v19, v5, v20);
    acc3 = v21;
    f32x2 v22 = f32x2_splat(v18);
    f32x2 v23 = acc4;
    f32x2 v24 = fma_f32x2(v22, v10, v23);
    acc4 = v24;
    f32 v25 = acc5;
    f32 v26 = fma_f32(v18, v14, v25);
    acc5 = v26;
    i64 v27 = r2 + 26l;
    f32 v28 = p1[v27];
    f32x4 v29 = f32x4_splat(v28);
    f32x4 v30 = acc6;
    f32x4 v31 = fma_f32x4(v29, v5, v30);
    acc6 = v31;
    f32x2 v32 = f32x2_splat(v28);
    f32x2 v33 = acc7;
    f32x2 v34 = fma_f32x2(v32, v10, v33);
    acc7 = v34;
    f32 v35 = acc8;
    f32 v36 = fma_f32(v28, v14, v35);
    acc8 = v36;
  }
  f32x4 v37 = acc0;
  f32x2 v38 = acc1;
  f32 v39 = acc2;
  f32x4 v40 = acc3;
  f32x2 v41 = acc4;
  f32 v42 = acc5;
  f32x4 v43 = acc6;
  f32x2 v44 = acc7;
  f32 v45 = acc8;
  *(f32x4u *)(p0 + 0l) = v37;
  *(f32x2u *)(p0 + 4l) = v38;
  p0[6l] = v39;
  *(f32x4u *)(p0 + 7l) = v40;
  *(f32x2u *)(p0 + 11l) = v41;
  p0[13l] = v42;
  *(f32x4u *)(p0 + 14l) = v43;
  *(f32x2u *)(p0 + 18l) = v44;
  p0[20l] = v45;
}
