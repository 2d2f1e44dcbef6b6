/* r_3_4_4, C, 1 thread, opts UPCAST r0 2, VEC r2 4 */
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
VECTOR(i8, 4)
VECTOR(i32, 4)
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
void r_3_4_4(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p3 = (f32 *)bufs[3];
  f32x4 v0 = f32x4_splat(0.0f);
  f32 v1 = p3[0l];
  f32x4 v2 = f32x4_splat(v1);
  f32 v3 = p3[1l];
  f32x4 v4 = f32x4_splat(v3);
  f32 v5 = p3[2l];
  f32x4 v6 = f32x4_splat(v5);
  for (i64 r1 = 0; r1 < 4l; r1++) {
    i64 v7 = r1 * 4l;
    f32x4 acc0 = v0;
    f32x4 acc1 = v0;
    for (i64 r5 = 0; r5 < 2l; r5++) {
      i64 v8 = r5 * 16l;
      i64 v9 = r5 * 9l;
      for (i64 r3 = 0; r3 < 3l; r3++) {
        i64 v10 = r3 + r1;
        u8 v11 = v10 < 1l;
        u8 v12 = v11 ^ 1;
        u8 v13 = v10 < 5l;
        u8 v14 = v12 & v13;
        i64 v15 = r3 * 4l;
        i64 v16 = v15 + v8;
        i64 v17 = r3 * 3l;
        i64 v18 = v17 + v9;
        for (i64 r4 = 0; r4 < 3l; r4++) {
          u8 v19 = r4 < 1l;
          u8 v20 = v19 ^ 1;
          u8 v21 = v14 & v20;
          u8 v22 = r4 < 2l;
          u8 v23 = v14 & v22;
          i8x4 v24 = (i8x4){-v21, -v14, -v14, -v23};
          i64 v25 = v16 + r4;
          i64 v26 = v25 + v7;
          i64 v27 = v26 + (-5l);
          f32 v28 = v21 ? p1[v27] : 0;
          i64 v29 = v26 + (-4l);
          f32 v30 = v14 ? p1[v29] : 0;
          i64 v31 = v26 + (-3l);
          f32 v32 = v14 ? p1[v31] : 0;
          i64 v33 = v26 + (-2l);
          f32 v34 = v23 ? p1[v33] : 0;
          f32x4 v35 = (f32x4){v28, v30, v32, v34};
          f32x4 v36 = (f32x4)((__builtin_convertvector(v24, i32x4) & (i32x4)v35) | (~__builtin_convertvector(v24, i32x4) & (i32x4)v0));
          i64 v37 = v18 + r4;
          i64 v38 = v37 + 18l;
          f32 v39 = p2[v38];
          f32x4 v40 = f32x4_splat(v39);
          f32 v41 = p2[v37];
          f32x4 v42 = f32x4_splat(v41);
          f32x4 v43 = acc0;
          f32x4 v44 = fma_f32x4(v36, v40, v43);
          acc0 = v44;
          f32x4 v45 = acc1;
          f32x4 v46 = fma_f32x4(v36, v42, v45);
          acc1 = v46;
        }
      }
    }
    f32x4 v47 = acc0;
    f32x4 v48 = acc1;
    f32x4 v49 = v48 + v2;
    i64 v50 = v7 + 16l;
    f32x4 v51 = v47 + v4;
    *(f32x4u *)(p0 + v7) = v49;
    *(f32x4u *)(p0 + v50) = v51;
  }
  for (i64 r7 = 0; r7 < 4l; r7++) {
    i64 v52 = r7 * 4l;
    i64 v53 = v52 + 32l;
    f32x4 acc2 = v0;
    for (i64 r9 = 0; r9 < 2l; r9++) {
      i64 v54 = r9 * 16l;
      i64 v55 = r9 * 9l;
      for (i64 r10 = 0; r10 < 3l; r10++) {
        i64 v56 = r7 + r10;
        u8 v57 = v56 < 1l;
        u8 v58 = v57 ^ 1;
        u8 v59 = v56 < 5l;
        u8 v60 = v58 & v59;
        i64 v61 = r10 * 4l;
        i64 v62 = r10 * 3l;
        for (i64 r11 = 0; r11 < 3l; r11++) {
          u8 v63 = r11 < 1l;
          u8 v64 = v63 ^ 1;
          u8 v65 = v60 & v64;
          u8 v66 = r11 < 2l;
          u8 v67 = v60 & v66;
          i8x4 v68 = (i8x4){-v65, -v60, -v60, -v67};
          i64 v69 = v52 + r11;
          i64 v70 = v69 + v61;
          i64 v71 = v70 + v54;
          i64 v72 = v71 + (-5l);
          f32 v73 = v65 ? p1[v72] : 0;
          i64 v74 = v71 + (-4l);
          f32 v75 = v60 ? p1[v74] : 0;
          i64 v76 = v71 + (-3l);
          f32 v77 = v60 ? p1[v76] : 0;
          i64 v78 = v71 + (-2l);
          f32 v79 = v67 ? p1[v78] : 0;
          f32x4 v80 = (f32x4){v73, v75, v77, v79};
          f32x4 v81 = (f32x4)((__builtin_convertvector(v68, i32x4) & (i32x4)v80) | (~__builtin_convertvector(v68, i32x4) & (i32x4)v0));
          i64 v82 = r11 + v62;
          i64 v83 = v82 + v55;
          i64 v84 = v83 + 36l;
          f32 v85 = p2[v84];
          f32x4 v86 = f32x4_splat(v85);
          f32x4 v87 = acc2;
          f32x4 v88 = fma_f32x4(v81, v86, v87);
          acc2 = v88;
        }
      }
    }
    f32x4 v89 = acc2;
    f32x4 v90 = v89 + v6;
    *(f32x4u *)(p0 + v53) = v90;
  }
}
