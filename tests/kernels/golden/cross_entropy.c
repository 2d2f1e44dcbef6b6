/* r, C, 1 thread, opts GROUP r3 8, GROUP r5 8, GROUP r1 8 */
VECTOR(f32, 8)
#ifndef H_f32x8_splat
#define H_f32x8_splat
INL f32x8 f32x8_splat(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i64, 8)
VECTOR(i32, 8)
VECTOR(f32, 4)
VECTOR(i32, 4)
VECTOR(f32, 2)
VECTOR(i32, 2)
#ifndef H_i32x8_splat
#define H_i32x8_splat
INL i32x8 i32x8_splat(i32 x) { return (i32x8){x, x, x, x, x, x, x, x}; }
#endif
#ifndef H_fma_f32x8
#define H_fma_f32x8
INL f32x8 fma_f32x8(f32x8 a, f32x8 b, f32x8 c) {
#if defined(__clang__)
  _Pragma("STDC FP_CONTRACT ON") return a * b + c;
#elif defined(__FMA__)
  return FMA256(s, a, b, c);
#else
  f32x8 r; for (int i = 0; i < 8; i++) r[i] = fma_f32(a[i], b[i], c[i]); return r;
#endif
}
#endif
#ifndef H_i32x8_f32
#define H_i32x8_f32
INL i32x8 i32x8_f32(f32x8 x) {
  i32x8 lo = (i32x8)(x <= -2147483648.0f), hi = (i32x8)(x >= 2147483648.0f), ok = ~lo & ~hi & (i32x8)(x == x);
  i32x8 r = __builtin_convertvector((f32x8)((i32x8)x & ok), i32x8);
  i32x8 l = lo, h = hi;
  return (i32x8)(((i32x8)r & ~l & ~h) | (l & (i32x8)i32x8_splat((-2147483647 - 1))) | (h & (i32x8)i32x8_splat(2147483647)));
}
#endif
VECTOR(u32, 8)
void r(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  i32 *p1 = (i32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32x8 v0 = f32x8_splat(0.0f);
  i64x8 v1 = (i64x8){0l, 1l, 2l, 3l, 4l, 5l, 6l, 7l};
  i32x8 v2 = __builtin_convertvector(v1, i32x8);
  _Alignas(64) f32 l0[6];
  for (i64 r2 = 0; r2 < 6l; r2++) {
    i64 v3 = r2 * 8l;
    f32x8 v4 = *(const f32x8u *)(p2 + v3);
    f32x4 v5 = __builtin_shufflevector(v4, v4, 0, 1, 2, 3);
    f32x4 v6 = __builtin_shufflevector(v4, v4, 4, 5, 6, 7);
    i32x4 m7 = (i32x4)(v5 > v6) | (i32x4)(v5 != v5);
    f32x4 v7 = (f32x4)((m7 & (i32x4)v5) | (~m7 & (i32x4)v6));
    f32x2 v8 = __builtin_shufflevector(v7, v7, 0, 1);
    f32x2 v9 = __builtin_shufflevector(v7, v7, 2, 3);
    i32x2 m10 = (i32x2)(v8 > v9) | (i32x2)(v8 != v8);
    f32x2 v10 = (f32x2)((m10 & (i32x2)v8) | (~m10 & (i32x2)v9));
    f32 v11 = v10[0] > v10[1] || v10[0] != v10[0] ? v10[0] : v10[1];
    l0[r2] = v11;
  }
  _Alignas(64) f32 l1[6];
  f32x8 v12 = f32x8_splat(0.0001984127f);
  f32x8 v13 = f32x8_splat(90.0f);
  f32x8 v14 = f32x8_splat((-105.0f));
  f32x8 v15 = f32x8_splat(1.442695f);
  f32x8 v16 = f32x8_splat(12582912.0f);
  f32x8 v17 = f32x8_splat((-1.4286068e-06f));
  f32x8 v18 = f32x8_splat((-0.69314575f));
  f32x8 v19 = f32x8_splat(0.0013888889f);
  f32x8 v20 = f32x8_splat(0.008333334f);
  f32x8 v21 = f32x8_splat(0.041666668f);
  f32x8 v22 = f32x8_splat(0.16666667f);
  f32x8 v23 = f32x8_splat(0.5f);
  f32x8 v24 = f32x8_splat(1.0f);
  i32x8 v25 = i32x8_splat(1);
  i32x8 v26 = i32x8_splat(127);
  i32x8 v27 = i32x8_splat(23);
  for (i64 r4 = 0; r4 < 6l; r4++) {
    i64 v28 = r4 * 8l;
    f32x8 v29 = *(const f32x8u *)(p2 + v28);
    f32 v30 = l0[r4];
    f32x8 v31 = f32x8_splat(v30);
    f32x8 v32 = v29 - v31;
    i32x8 v33 = (i32x8)(v13 < v32);
    f32x8 v34 = (f32x8)((v33 & (i32x8)v13) | (~v33 & (i32x8)v32));
    i32x8 v35 = (i32x8)(v34 < v14);
    f32x8 v36 = (f32x8)((v35 & (i32x8)v14) | (~v35 & (i32x8)v34));
    f32x8 v37 = v36 * v15;
    f32x8 v38 = v37 + v16;
    f32x8 v39 = v38 - v16;
    f32x8 v40 = fma_f32x8(v39, v18, v36);
    f32x8 v41 = fma_f32x8(v39, v17, v40);
    f32x8 v42 = fma_f32x8(v12, v41, v19);
    f32x8 v43 = fma_f32x8(v42, v41, v20);
    f32x8 v44 = fma_f32x8(v43, v41, v21);
    f32x8 v45 = fma_f32x8(v44, v41, v22);
    f32x8 v46 = fma_f32x8(v45, v41, v23);
    f32x8 v47 = fma_f32x8(v46, v41, v24);
    f32x8 v48 = fma_f32x8(v47, v41, v24);
    i32x8 v49 = (i32x8)(v32 != v32);
    f32x8 v50 = (f32x8)((v49 & (i32x8)v0) | (~v49 & (i32x8)v39));
    i32x8 v51 = i32x8_f32(v50);
    i32x8 v52 = v51 >> v25;
    i32x8 v53 = (i32x8)((u32x8)v52 + (u32x8)v26);
    i32x8 v54 = (i32x8)((u32x8)v53 << (u32x8)v27);
    f32x8 v55 = (f32x8)v54;
    f32x8 v56 = v48 * v55;
    i32x8 v57 = (i32x8)((u32x8)v51 - (u32x8)v52);
    i32x8 v58 = (i32x8)((u32x8)v57 + (u32x8)v26);
    i32x8 v59 = (i32x8)((u32x8)v58 << (u32x8)v27);
    f32x8 v60 = (f32x8)v59;
    f32x8 v61 = v56 * v60;
    f32x8 v62 = v0 + v61;
    f32x4 v63 = __builtin_shufflevector(v62, v62, 0, 1, 2, 3);
    f32x4 v64 = __builtin_shufflevector(v62, v62, 4, 5, 6, 7);
    f32x4 v65 = v63 + v64;
    f32x2 v66 = __builtin_shufflevector(v65, v65, 0, 1);
    f32x2 v67 = __builtin_shufflevector(v65, v65, 2, 3);
    f32x2 v68 = v66 + v67;
    f32 v69 = v68[0] + v68[1];
    l1[r4] = v69;
  }
  f32 acc0 = 0.0f;
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i32 v70 = p1[r0];
    i32x8 v71 = i32x8_splat(v70);
    i32x8 v72 = (i32x8)(v71 == v2);
    i64 v73 = r0 * 8l;
    f32x8 v74 = *(const f32x8u *)(p2 + v73);
    f32 v75 = l0[r0];
    f32x8 v76 = f32x8_splat(v75);
    f32x8 v77 = v74 - v76;
    f32 v78 = l1[r0];
    f64 v79 = (f64)v78;
    u8 v80 = v79 < 0.0;
    u8 v81 = v79 != v79;
    u8 v82 = v79 == 0.0;
    u8 v83 = v79 == (__builtin_inf());
    u8 v84 = v79 < 2.2250738585072014e-308;
    f64 v85 = v79 * 18014398509481984.0;
    f64 v86 = v84 ? v85 : v79;
    i64 v87 = (i64)u64_bits(v86);
    i64 v88 = (i64)((u64)v87 - (u64)4604544271217802189l);
    i64 v89 = (i64)(v88 >> 52l);
    f64 v90 = (f64)v89;
    f64 v91 = v84 ? 54.0 : 0.0;
    f64 v92 = v90 - v91;
    i64 v93 = (i64)((u64)v89 << 52l);
    i64 v94 = (i64)((u64)v87 - (u64)v93);
    f64 v95 = f64_bits((u64)v94);
    f64 v96 = v95 - 1.0;
    f64 v97 = v95 + 1.0;
    f64 v98 = v96 / v97;
    f64 v99 = v98 * v98;
    f64 v100 = fma_f64(0.08, v99, 0.08695652173913043);
    f64 v101 = fma_f64(v100, v99, 0.09523809523809523);
    f64 v102 = fma_f64(v101, v99, 0.10526315789473684);
    f64 v103 = fma_f64(v102, v99, 0.11764705882352941);
    f64 v104 = fma_f64(v103, v99, 0.13333333333333333);
    f64 v105 = fma_f64(v104, v99, 0.15384615384615385);
    f64 v106 = fma_f64(v105, v99, 0.18181818181818182);
    f64 v107 = fma_f64(v106, v99, 0.2222222222222222);
    f64 v108 = fma_f64(v107, v99, 0.2857142857142857);
    f64 v109 = fma_f64(v108, v99, 0.4);
    f64 v110 = fma_f64(v109, v99, 0.6666666666666666);
    f64 v111 = fma_f64(v110, v99, 2.0);
    f64 v112 = v98 * v111;
    f64 v113 = fma_f64(v92, 0.6931471805599453, v112);
    f64 v114 = v83 ? v79 : v113;
    f64 v115 = v82 ? (-__builtin_inf()) : v114;
    f64 v116 = v81 ? v79 : v115;
    f64 v117 = v80 ? __builtin_nan("") : v116;
    f32 v118 = (f32)v117;
    f32x8 v119 = f32x8_splat(v118);
    f32x8 v120 = v77 - v119;
    f32x8 v121 = (f32x8)((v72 & (i32x8)v120) | (~v72 & (i32x8)v0));
    f32x8 v122 = v0 + v121;
    f32x4 v123 = __builtin_shufflevector(v122, v122, 0, 1, 2, 3);
    f32x4 v124 = __builtin_shufflevector(v122, v122, 4, 5, 6, 7);
    f32x4 v125 = v123 + v124;
    f32x2 v126 = __builtin_shufflevector(v125, v125, 0, 1);
    f32x2 v127 = __builtin_shufflevector(v125, v125, 2, 3);
    f32x2 v128 = v126 + v127;
    f32 v129 = v128[0] + v128[1];
    f32 v130 = -v129;
    f32 v131 = acc0;
    f32 v132 = v131 + v130;
    acc0 = v132;
  }
  f32 v133 = acc0;
  p0[0l] = v133;
}
