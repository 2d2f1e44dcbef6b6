/* r_3_4_4, C, 1 thread, opts UPCAST r1 2, VEC r2 4 */
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
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
void r_3_4_4(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  f32 *p3 = (f32 *)bufs[3];
  f32x4 v0 = f32x4_splat(0.0f);
  for (i64 r0 = 0; r0 < 3l; r0++) {
    i64 v1 = r0 * 18l;
    i64 v2 = r0 * 16l;
    f32 v3 = p3[r0];
    f32x4 v4 = f32x4_splat(v3);
    for (i64 r6 = 0; r6 < 2l; r6++) {
      f32x4 acc0 = v0;
      f32x4 acc1 = v0;
      i64 v5 = r6 * 8l;
      i64 v6 = r6 * 2l;
      for (i64 r3 = 0; r3 < 2l; r3++) {
        i64 v7 = r3 * 16l;
        i64 v8 = r3 * 9l;
        for (i64 r4 = 0; r4 < 3l; r4++) {
          i64 v9 = r4 * 4l;
          i64 v10 = v6 + r4;
          u8 v11 = v10 < 1l;
          u8 v12 = v11 ^ 1;
          i64 v13 = r4 * 3l;
          u8 v14 = v10 < 4l;
          for (i64 r5 = 0; r5 < 3l; r5++) {
            i64 v15 = r5 + v5;
            i64 v16 = v15 + v9;
            i64 v17 = v16 + v7;
            i64 v18 = v17 + (-5l);
            u8 v19 = r5 < 1l;
            u8 v20 = v19 ^ 1;
            u8 v21 = v20 & v12;
            f32 v22 = v21 ? p1[v18] : 0;
            i64 v23 = v17 + (-4l);
            f32 v24 = v12 ? p1[v23] : 0;
            i64 v25 = v17 + (-3l);
            f32 v26 = v12 ? p1[v25] : 0;
            i64 v27 = v17 + (-2l);
            u8 v28 = r5 < 2l;
            u8 v29 = v28 & v12;
            f32 v30 = v29 ? p1[v27] : 0;
            f32x4 v31 = (f32x4){v22, v24, v26, v30};
            i64 v32 = r5 + v13;
            i64 v33 = v32 + v8;
            i64 v34 = v33 + v1;
            f32 v35 = p2[v34];
            f32x4 v36 = f32x4_splat(v35);
            f32x4 v37 = acc0;
            f32x4 v38 = fma_f32x4(v31, v36, v37);
            acc0 = v38;
            i64 v39 = v17 + (-1l);
            u8 v40 = v20 & v14;
            f32 v41 = v40 ? p1[v39] : 0;
            f32 v42 = v14 ? p1[v17] : 0;
            i64 v43 = v17 + 1l;
            f32 v44 = v14 ? p1[v43] : 0;
            i64 v45 = v17 + 2l;
            u8 v46 = v28 & v14;
            f32 v47 = v46 ? p1[v45] : 0;
            f32x4 v48 = (f32x4){v41, v42, v44, v47};
            f32x4 v49 = acc1;
            f32x4 v50 = fma_f32x4(v48, v36, v49);
            acc1 = v50;
          }
        }
      }
      i64 v51 = v5 + v2;
      f32x4 v52 = acc0;
      f32x4 v53 = v52 + v4;
      i64 v54 = v51 + 4l;
      f32x4 v55 = acc1;
      f32x4 v56 = v55 + v4;
      *(f32x4u *)(p0 + v51) = v53;
      *(f32x4u *)(p0 + v54) = v56;
    }
  }
}
