/* r, C, 1 thread, opts GROUP r2 8, GROUP r4 8 */
VECTOR(f32, 8)
VECTOR(f32, 4)
VECTOR(i32, 4)
VECTOR(f32, 2)
VECTOR(i32, 2)
#ifndef H_f32x8_splat
#define H_f32x8_splat
INL f32x8 f32x8_splat(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i32, 8)
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
  _Alignas(64) f32 l0[6];
  for (i64 r1 = 0; r1 < 6l; r1++) {
    i64 v0 = r1 * 8l;
    f32x8 v1 = *(const f32x8u *)(p2 + v0);
    f32x4 v2 = __builtin_shufflevector(v1, v1, 0, 1, 2, 3);
    f32x4 v3 = __builtin_shufflevector(v1, v1, 4, 5, 6, 7);
    i32x4 m4 = (i32x4)(v2 > v3) | (i32x4)(v2 != v2);
    f32x4 v4 = (f32x4)((m4 & (i32x4)v2) | (~m4 & (i32x4)v3));
    f32x2 v5 = __builtin_shufflevector(v4, v4, 0, 1);
    f32x2 v6 = __builtin_shufflevector(v4, v4, 2, 3);
    i32x2 m7 = (i32x2)(v5 > v6) | (i32x2)(v5 != v5);
    f32x2 v7 = (f32x2)((m7 & (i32x2)v5) | (~m7 & (i32x2)v6));
    f32 v8 = v7[0] > v7[1] || v7[0] != v7[0] ? v7[0] : v7[1];
    l0[r1] = v8;
  }
  _Alignas(64) f32 l1[6];
  f32x8 v9 = f32x8_splat(0.0f);
  f32x8 v10 = f32x8_splat(1.0f);
  f32x8 v11 = f32x8_splat(90.0f);
  f32x8 v12 = f32x8_splat((-105.0f));
  f32x8 v13 = f32x8_splat(1.442695f);
  f32x8 v14 = f32x8_splat(12582912.0f);
  f32x8 v15 = f32x8_splat((-1.4286068e-06f));
  f32x8 v16 = f32x8_splat((-0.69314575f));
  f32x8 v17 = f32x8_splat(0.0013946001f);
  f32x8 v18 = f32x8_splat(0.00836864f);
  f32x8 v19 = f32x8_splat(0.041666266f);
  f32x8 v20 = f32x8_splat(0.16666521f);
  f32x8 v21 = f32x8_splat(0.5f);
  i32x8 v22 = i32x8_splat(1);
  i32x8 v23 = i32x8_splat(127);
  i32x8 v24 = i32x8_splat(23);
  for (i64 r3 = 0; r3 < 6l; r3++) {
    i64 v25 = r3 * 8l;
    f32x8 v26 = *(const f32x8u *)(p2 + v25);
    f32 v27 = l0[r3];
    f32x8 v28 = f32x8_splat(v27);
    f32x8 v29 = v26 - v28;
    i32x8 v30 = (i32x8)(v11 < v29);
    f32x8 v31 = (f32x8)((v30 & (i32x8)v11) | (~v30 & (i32x8)v29));
    i32x8 v32 = (i32x8)(v31 < v12);
    f32x8 v33 = (f32x8)((v32 & (i32x8)v12) | (~v32 & (i32x8)v31));
    f32x8 v34 = v33 * v13;
    f32x8 v35 = v34 + v14;
    f32x8 v36 = v35 - v14;
    f32x8 v37 = fma_f32x8(v36, v16, v33);
    f32x8 v38 = fma_f32x8(v36, v15, v37);
    f32x8 v39 = v10 + v38;
    f32x8 v40 = v10 - v39;
    f32x8 v41 = v40 + v38;
    f32x8 v42 = v38 * v38;
    f32x8 v43 = fma_f32x8(v17, v38, v18);
    f32x8 v44 = fma_f32x8(v43, v38, v19);
    f32x8 v45 = fma_f32x8(v44, v38, v20);
    f32x8 v46 = fma_f32x8(v45, v38, v21);
    f32x8 v47 = v42 * v46;
    f32x8 v48 = v41 + v47;
    f32x8 v49 = v39 + v48;
    i32x8 v50 = (i32x8)(v29 != v29);
    f32x8 v51 = (f32x8)((v50 & (i32x8)v9) | (~v50 & (i32x8)v36));
    i32x8 v52 = i32x8_f32(v51);
    i32x8 v53 = v52 >> v22;
    i32x8 v54 = (i32x8)((u32x8)v53 + (u32x8)v23);
    i32x8 v55 = (i32x8)((u32x8)v54 << (u32x8)v24);
    f32x8 v56 = (f32x8)v55;
    f32x8 v57 = v49 * v56;
    i32x8 v58 = (i32x8)((u32x8)v52 - (u32x8)v53);
    i32x8 v59 = (i32x8)((u32x8)v58 + (u32x8)v23);
    i32x8 v60 = (i32x8)((u32x8)v59 << (u32x8)v24);
    f32x8 v61 = (f32x8)v60;
    f32x8 v62 = v57 * v61;
    f32x8 v63 = v9 + v62;
    f32x4 v64 = __builtin_shufflevector(v63, v63, 0, 1, 2, 3);
    f32x4 v65 = __builtin_shufflevector(v63, v63, 4, 5, 6, 7);
    f32x4 v66 = v64 + v65;
    f32x2 v67 = __builtin_shufflevector(v66, v66, 0, 1);
    f32x2 v68 = __builtin_shufflevector(v66, v66, 2, 3);
    f32x2 v69 = v67 + v68;
    f32 v70 = v69[0] + v69[1];
    l1[r3] = v70;
  }
  f32 acc0 = 0.0f;
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i32 v71 = p1[r0];
    i64 v72 = (i64)v71;
    u8 v73 = v72 < 0l;
    u8 v74 = v73 ^ 1;
    u8 v75 = v72 < 8l;
    u8 v76 = v74 & v75;
    i64 v77 = r0 * 8l;
    i64 v78 = v77 + v72;
    f32 v79 = v76 ? p2[v78] : 0;
    f32 v80 = l0[r0];
    f32 v81 = v79 - v80;
    f32 v82 = l1[r0];
    u8 v83 = v82 < 0.0f;
    u8 v84 = v82 != v82;
    u8 v85 = v82 == 0.0f;
    u8 v86 = v82 == (__builtin_inff());
    u8 v87 = v82 < 1.1754944e-38f;
    f32 v88 = v82 * 33554432.0f;
    f32 v89 = v87 ? v88 : v82;
    i32 v90 = (i32)u32_bits(v89);
    i32 v91 = (i32)((u32)v90 - (u32)1060439283);
    i32 v92 = (i32)(v91 >> 23);
    f32 v93 = (f32)v92;
    f32 v94 = v87 ? 25.0f : 0.0f;
    f32 v95 = v93 - v94;
    f32 v96 = v95 * 0.69314575f;
    i32 v97 = (i32)((u32)v92 << 23);
    i32 v98 = (i32)((u32)v90 - (u32)v97);
    f32 v99 = f32_bits((u32)v98);
    f32 v100 = v99 - 1.0f;
    f32 v101 = v96 + v100;
    f32 v102 = v96 - v101;
    f32 v103 = v102 + v100;
    f32 v104 = v100 + 2.0f;
    f32 v105 = v100 / v104;
    f32 v106 = v105 * v105;
    f32 v107 = fma_f32(0.2985595f, v106, 0.39978227f);
    f32 v108 = fma_f32(v107, v106, 0.6666677f);
    f32 v109 = v100 * 0.5f;
    f32 v110 = v100 * v109;
    f32 v111 = fma_f32(v106, v108, v110);
    f32 v112 = -v110;
    f32 v113 = fma_f32(v105, v111, v112);
    f32 v114 = fma_f32(v95, 1.4286068e-06f, v113);
    f32 v115 = v103 + v114;
    f32 v116 = v101 + v115;
    f32 v117 = v86 ? v82 : v116;
    f32 v118 = v85 ? (-__builtin_inff()) : v117;
    f32 v119 = v84 ? v82 : v118;
    f32 v120 = v83 ? __builtin_nanf("") : v119;
    f32 v121 = v81 - v120;
    f32 v122 = v76 ? v121 : 0.0f;
    f32 v123 = -v122;
    f32 v124 = acc0;
    f32 v125 = v124 + v123;
    acc0 = v125;
  }
  f32 v126 = acc0;
  p0[0l] = v126;
}
