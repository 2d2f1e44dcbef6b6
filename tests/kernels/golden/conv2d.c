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
  for (i64 r1 = 0; r1 < 3l; r1++) {
    i64 v1 = r1 * 16l;
    i64 v2 = r1 * 18l;
    f32 v3 = p3[r1];
    f32x4 v4 = f32x4_splat(v3);
    for (i64 r6 = 0; r6 < 2l; r6++) {
      i64 v5 = r6 * 8l;
      i64 v6 = v1 + v5;
      i64 v7 = r6 * 2l;
      f32x4 acc0 = v0;
      f32x4 acc1 = v0;
      for (i64 r5 = 0; r5 < 2l; r5++) {
        i64 v8 = r5 * 16l;
        i64 v9 = r5 * 9l;
        for (i64 r3 = 0; r3 < 3l; r3++) {
          i64 v10 = r3 * 7l;
          i64 v11 = v10 + v7;
          i64 v12 = v11 + 1l;
          i64 v13 = (i64)(v12 % 6l);
          u8 v14 = v13 < 1l;
          u8 v15 = v14 ^ 1;
          u8 v16 = v13 < 5l;
          u8 v17 = v15 & v16;
          i64 v18 = v13 * 4l;
          i64 v19 = v8 + v18;
          i64 v20 = r3 * 3l;
          i64 v21 = v20 + v9;
          i64 v22 = (i64)(v11 % 6l);
          u8 v23 = v22 < 1l;
          u8 v24 = v23 ^ 1;
          u8 v25 = v22 < 5l;
          u8 v26 = v24 & v25;
          i64 v27 = v22 * 4l;
          i64 v28 = v27 + v8;
          for (i64 r4 = 0; r4 < 3l; r4++) {
            i64 v29 = r4 * 7l;
            i64 v30 = (i64)(v29 % 6l);
            u8 v31 = v30 < 1l;
            u8 v32 = v31 ^ 1;
            u8 v33 = v17 & v32;
            u8 v34 = v30 < 5l;
            u8 v35 = v33 & v34;
            i64 v36 = v29 + 1l;
            i64 v37 = (i64)(v36 % 6l);
            u8 v38 = v37 < 1l;
            u8 v39 = v38 ^ 1;
            u8 v40 = v17 & v39;
            u8 v41 = v37 < 5l;
            u8 v42 = v40 & v41;
            i64 v43 = v29 + 2l;
            i64 v44 = (i64)(v43 % 6l);
            u8 v45 = v44 < 1l;
            u8 v46 = v45 ^ 1;
            u8 v47 = v17 & v46;
            u8 v48 = v44 < 5l;
            u8 v49 = v47 & v48;
            i64 v50 = v29 + 3l;
            i64 v51 = (i64)(v50 % 6l);
            u8 v52 = v51 < 1l;
            u8 v53 = v52 ^ 1;
            u8 v54 = v17 & v53;
            u8 v55 = v51 < 5l;
            u8 v56 = v54 & v55;
            i8x4 v57 = (i8x4){-v35, -v42, -v49, -v56};
            i64 v58 = v19 + v30;
            i64 v59 = v58 + (-5l);
            f32 v60 = v35 ? p1[v59] : 0;
            i64 v61 = v8 + v37;
            i64 v62 = v61 + v18;
            i64 v63 = v62 + (-5l);
            f32 v64 = v42 ? p1[v63] : 0;
            i64 v65 = v19 + v44;
            i64 v66 = v65 + (-5l);
            f32 v67 = v49 ? p1[v66] : 0;
            i64 v68 = v51 + v8;
            i64 v69 = v68 + v18;
            i64 v70 = v69 + (-5l);
            f32 v71 = v56 ? p1[v70] : 0;
            f32x4 v72 = (f32x4){v60, v64, v67, v71};
            f32x4 v73 = (f32x4)((__builtin_convertvector(v57, i32x4) & (i32x4)v72) | (~__builtin_convertvector(v57, i32x4) & (i32x4)v0));
            i64 v74 = v21 + r4;
            i64 v75 = v74 + v2;
            f32 v76 = p2[v75];
            f32x4 v77 = f32x4_splat(v76);
            u8 v78 = v26 & v32;
            u8 v79 = v78 & v34;
            u8 v80 = v26 & v39;
            u8 v81 = v80 & v41;
            u8 v82 = v26 & v46;
            u8 v83 = v82 & v48;
            u8 v84 = v26 & v53;
            u8 v85 = v84 & v55;
            i8x4 v86 = (i8x4){-v79, -v81, -v83, -v85};
            i64 v87 = v28 + v30;
            i64 v88 = v87 + (-5l);
            f32 v89 = v79 ? p1[v88] : 0;
            i64 v90 = v28 + v37;
            i64 v91 = v90 + (-5l);
            f32 v92 = v81 ? p1[v91] : 0;
            i64 v93 = v28 + v44;
            i64 v94 = v93 + (-5l);
            f32 v95 = v83 ? p1[v94] : 0;
            i64 v96 = v27 + v51;
            i64 v97 = v96 + v8;
            i64 v98 = v97 + (-5l);
            f32 v99 = v85 ? p1[v98] : 0;
            f32x4 v100 = (f32x4){v89, v92, v95, v99};
            f32x4 v101 = (f32x4)((__builtin_convertvector(v86, i32x4) & (i32x4)v100) | (~__builtin_convertvector(v86, i32x4) & (i32x4)v0));
            f32x4 v102 = acc0;
            f32x4 v103 = fma_f32x4(v73, v77, v102);
            acc0 = v103;
            f32x4 v104 = acc1;
            f32x4 v105 = fma_f32x4(v101, v77, v104);
            acc1 = v105;
          }
        }
      }
      f32x4 v106 = acc0;
      f32x4 v107 = acc1;
      f32x4 v108 = v107 + v4;
      i64 v109 = v6 + 4l;
      f32x4 v110 = v106 + v4;
      *(f32x4u *)(p0 + v6) = v108;
      *(f32x4u *)(p0 + v109) = v110;
    }
  }
}
