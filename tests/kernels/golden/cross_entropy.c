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
  f32x8 v12 = f32x8_splat(1.0f);
  f32x8 v13 = f32x8_splat(90.0f);
  f32x8 v14 = f32x8_splat((-105.0f));
  f32x8 v15 = f32x8_splat(1.442695f);
  f32x8 v16 = f32x8_splat(12582912.0f);
  f32x8 v17 = f32x8_splat((-1.4286068e-06f));
  f32x8 v18 = f32x8_splat((-0.69314575f));
  f32x8 v19 = f32x8_splat(0.0013946001f);
  f32x8 v20 = f32x8_splat(0.00836864f);
  f32x8 v21 = f32x8_splat(0.041666266f);
  f32x8 v22 = f32x8_splat(0.16666521f);
  f32x8 v23 = f32x8_splat(0.5f);
  i32x8 v24 = i32x8_splat(1);
  i32x8 v25 = i32x8_splat(127);
  i32x8 v26 = i32x8_splat(23);
  for (i64 r4 = 0; r4 < 6l; r4++) {
    i64 v27 = r4 * 8l;
    f32x8 v28 = *(const f32x8u *)(p2 + v27);
    f32 v29 = l0[r4];
    f32x8 v30 = f32x8_splat(v29);
    f32x8 v31 = v28 - v30;
    i32x8 v32 = (i32x8)(v13 < v31);
    f32x8 v33 = (f32x8)((v32 & (i32x8)v13) | (~v32 & (i32x8)v31));
    i32x8 v34 = (i32x8)(v33 < v14);
    f32x8 v35 = (f32x8)((v34 & (i32x8)v14) | (~v34 & (i32x8)v33));
    f32x8 v36 = v35 * v15;
    f32x8 v37 = v36 + v16;
    f32x8 v38 = v37 - v16;
    f32x8 v39 = fma_f32x8(v38, v18, v35);
    f32x8 v40 = fma_f32x8(v38, v17, v39);
    f32x8 v41 = v12 + v40;
    f32x8 v42 = v12 - v41;
    f32x8 v43 = v42 + v40;
    f32x8 v44 = v40 * v40;
    f32x8 v45 = fma_f32x8(v19, v40, v20);
    f32x8 v46 = fma_f32x8(v45, v40, v21);
    f32x8 v47 = fma_f32x8(v46, v40, v22);
    f32x8 v48 = fma_f32x8(v47, v40, v23);
    f32x8 v49 = v44 * v48;
    f32x8 v50 = v43 + v49;
    f32x8 v51 = v41 + v50;
    i32x8 v52 = (i32x8)(v31 != v31);
    f32x8 v53 = (f32x8)((v52 & (i32x8)v0) | (~v52 & (i32x8)v38));
    i32x8 v54 = i32x8_f32(v53);
    i32x8 v55 = v54 >> v24;
    i32x8 v56 = (i32x8)((u32x8)v55 + (u32x8)v25);
    i32x8 v57 = (i32x8)((u32x8)v56 << (u32x8)v26);
    f32x8 v58 = (f32x8)v57;
    f32x8 v59 = v51 * v58;
    i32x8 v60 = (i32x8)((u32x8)v54 - (u32x8)v55);
    i32x8 v61 = (i32x8)((u32x8)v60 + (u32x8)v25);
    i32x8 v62 = (i32x8)((u32x8)v61 << (u32x8)v26);
    f32x8 v63 = (f32x8)v62;
    f32x8 v64 = v59 * v63;
    f32x8 v65 = v0 + v64;
    f32x4 v66 = __builtin_shufflevector(v65, v65, 0, 1, 2, 3);
    f32x4 v67 = __builtin_shufflevector(v65, v65, 4, 5, 6, 7);
    f32x4 v68 = v66 + v67;
    f32x2 v69 = __builtin_shufflevector(v68, v68, 0, 1);
    f32x2 v70 = __builtin_shufflevector(v68, v68, 2, 3);
    f32x2 v71 = v69 + v70;
    f32 v72 = v71[0] + v71[1];
    l1[r4] = v72;
  }
  f32 acc0 = 0.0f;
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i32 v73 = p1[r0];
    i32x8 v74 = i32x8_splat(v73);
    i32x8 v75 = (i32x8)(v74 == v2);
    i64 v76 = r0 * 8l;
    f32x8 v77 = *(const f32x8u *)(p2 + v76);
    f32 v78 = l0[r0];
    f32x8 v79 = f32x8_splat(v78);
    f32x8 v80 = v77 - v79;
    f32 v81 = l1[r0];
    u8 v82 = v81 < 0.0f;
    u8 v83 = v81 != v81;
    u8 v84 = v81 == 0.0f;
    u8 v85 = v81 == (__builtin_inff());
    u8 v86 = v81 < 1.1754944e-38f;
    f32 v87 = v81 * 33554432.0f;
    f32 v88 = v86 ? v87 : v81;
    i32 v89 = (i32)u32_bits(v88);
    i32 v90 = (i32)((u32)v89 - (u32)1060439283);
    i32 v91 = (i32)(v90 >> 23);
    f32 v92 = (f32)v91;
    f32 v93 = v86 ? 25.0f : 0.0f;
    f32 v94 = v92 - v93;
    f32 v95 = v94 * 0.69314575f;
    i32 v96 = (i32)((u32)v91 << 23);
    i32 v97 = (i32)((u32)v89 - (u32)v96);
    f32 v98 = f32_bits((u32)v97);
    f32 v99 = v98 - 1.0f;
    f32 v100 = v95 + v99;
    f32 v101 = v95 - v100;
    f32 v102 = v101 + v99;
    f32 v103 = v99 + 2.0f;
    f32 v104 = v99 / v103;
    f32 v105 = v104 * v104;
    f32 v106 = fma_f32(0.2985595f, v105, 0.39978227f);
    f32 v107 = fma_f32(v106, v105, 0.6666677f);
    f32 v108 = v99 * 0.5f;
    f32 v109 = v99 * v108;
    f32 v110 = fma_f32(v105, v107, v109);
    f32 v111 = -v109;
    f32 v112 = fma_f32(v104, v110, v111);
    f32 v113 = fma_f32(v94, 1.4286068e-06f, v112);
    f32 v114 = v102 + v113;
    f32 v115 = v100 + v114;
    f32 v116 = v85 ? v81 : v115;
    f32 v117 = v84 ? (-__builtin_inff()) : v116;
    f32 v118 = v83 ? v81 : v117;
    f32 v119 = v82 ? __builtin_nanf("") : v118;
    f32x8 v120 = f32x8_splat(v119);
    f32x8 v121 = v80 - v120;
    f32x8 v122 = (f32x8)((v75 & (i32x8)v121) | (~v75 & (i32x8)v0));
    f32x8 v123 = v0 + v122;
    f32x4 v124 = __builtin_shufflevector(v123, v123, 0, 1, 2, 3);
    f32x4 v125 = __builtin_shufflevector(v123, v123, 4, 5, 6, 7);
    f32x4 v126 = v124 + v125;
    f32x2 v127 = __builtin_shufflevector(v126, v126, 0, 1);
    f32x2 v128 = __builtin_shufflevector(v126, v126, 2, 3);
    f32x2 v129 = v127 + v128;
    f32 v130 = v129[0] + v129[1];
    f32 v131 = -v130;
    f32 v132 = acc0;
    f32 v133 = v132 + v131;
    acc0 = v133;
  }
  f32 v134 = acc0;
  p0[0l] = v134;
}
