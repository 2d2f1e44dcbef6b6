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
VECTOR(u32, 8)
void r(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p2 = (f32 *)bufs[2];
  i32 *p1 = (i32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  _Alignas(64) f32 l0[6];
  for (i64 r1 = 0; r1 < 6l; r1++) {
    f32 acc0 = (-__builtin_inff());
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
    f32 v9 = (-__builtin_inff()) > v8 || (-__builtin_inff()) != (-__builtin_inff()) ? (-__builtin_inff()) : v8;
    acc0 = v9;
    l0[r1] = v9;
  }
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
  i32 v22 = (i32)u32_bits(12582912.0f);
  i32x8 v23 = i32x8_splat(v22);
  i32x8 v24 = i32x8_splat(1);
  i32x8 v25 = i32x8_splat(127);
  i32x8 v26 = i32x8_splat(23);
  _Alignas(64) f32 l1[6];
  for (i64 r3 = 0; r3 < 6l; r3++) {
    f32 acc1 = 0.0f;
    i64 v27 = r3 * 8l;
    f32x8 v28 = *(const f32x8u *)(p2 + v27);
    f32 v29 = l0[r3];
    f32x8 v30 = f32x8_splat(v29);
    f32x8 v31 = v28 - v30;
    i32x8 v32 = (i32x8)(v11 < v31);
    f32x8 v33 = (f32x8)((v32 & (i32x8)v11) | (~v32 & (i32x8)v31));
    i32x8 v34 = (i32x8)(v33 < v12);
    f32x8 v35 = (f32x8)((v34 & (i32x8)v12) | (~v34 & (i32x8)v33));
    f32x8 v36 = v35 * v13;
    f32x8 v37 = v36 + v14;
    f32x8 v38 = v37 - v14;
    f32x8 v39 = fma_f32x8(v38, v16, v35);
    f32x8 v40 = fma_f32x8(v38, v15, v39);
    f32x8 v41 = v10 + v40;
    f32x8 v42 = v10 - v41;
    f32x8 v43 = v42 + v40;
    f32x8 v44 = v40 * v40;
    f32x8 v45 = fma_f32x8(v17, v40, v18);
    f32x8 v46 = fma_f32x8(v45, v40, v19);
    f32x8 v47 = fma_f32x8(v46, v40, v20);
    f32x8 v48 = fma_f32x8(v47, v40, v21);
    f32x8 v49 = v44 * v48;
    f32x8 v50 = v43 + v49;
    f32x8 v51 = v41 + v50;
    i32x8 v52 = (i32x8)v37;
    i32x8 v53 = (i32x8)((u32x8)v52 - (u32x8)v23);
    i32x8 v54 = v53 >> v24;
    i32x8 v55 = (i32x8)((u32x8)v54 + (u32x8)v25);
    i32x8 v56 = (i32x8)((u32x8)v55 << (u32x8)v26);
    f32x8 v57 = (f32x8)v56;
    f32x8 v58 = v51 * v57;
    i32x8 v59 = (i32x8)((u32x8)v53 - (u32x8)v54);
    i32x8 v60 = (i32x8)((u32x8)v59 + (u32x8)v25);
    i32x8 v61 = (i32x8)((u32x8)v60 << (u32x8)v26);
    f32x8 v62 = (f32x8)v61;
    f32x8 v63 = v58 * v62;
    f32x4 v64 = __builtin_shufflevector(v63, v63, 0, 1, 2, 3);
    f32x4 v65 = __builtin_shufflevector(v63, v63, 4, 5, 6, 7);
    f32x4 v66 = v64 + v65;
    f32x2 v67 = __builtin_shufflevector(v66, v66, 0, 1);
    f32x2 v68 = __builtin_shufflevector(v66, v66, 2, 3);
    f32x2 v69 = v67 + v68;
    f32 v70 = v69[0] + v69[1];
    f32 v71 = 0.0f + v70;
    acc1 = v71;
    l1[r3] = v71;
  }
  f32 acc2 = 0.0f;
  for (i64 r0 = 0; r0 < 6l; r0++) {
    f32 v72 = acc2;
    i32 v73 = p1[r0];
    i64 v74 = (i64)v73;
    u8 v75 = v74 < 0l;
    u8 v76 = v75 ^ 1;
    u8 v77 = v74 < 8l;
    u8 v78 = v76 & v77;
    i64 v79 = r0 * 8l;
    i64 v80 = v79 + v74;
    f32 v81 = v78 ? p2[v80] : 0;
    f32 v82 = l0[r0];
    f32 v83 = v81 - v82;
    f32 v84 = l1[r0];
    u8 v85 = v84 < 0.0f;
    u8 v86 = v84 != v84;
    u8 v87 = v84 == 0.0f;
    u8 v88 = v84 == (__builtin_inff());
    u8 v89 = v84 < 1.1754944e-38f;
    f32 v90 = v84 * 33554432.0f;
    f32 v91 = v89 ? v90 : v84;
    i32 v92 = (i32)u32_bits(v91);
    i32 v93 = (i32)((u32)v92 - (u32)1060439283);
    i32 v94 = (i32)(v93 >> 23);
    f32 v95 = (f32)v94;
    f32 v96 = v89 ? 25.0f : 0.0f;
    f32 v97 = v95 - v96;
    f32 v98 = v97 * 0.69314575f;
    i32 v99 = (i32)((u32)v94 << 23);
    i32 v100 = (i32)((u32)v92 - (u32)v99);
    f32 v101 = f32_bits((u32)v100);
    f32 v102 = v101 - 1.0f;
    f32 v103 = v98 + v102;
    f32 v104 = v98 - v103;
    f32 v105 = v104 + v102;
    f32 v106 = v102 + 2.0f;
    f32 v107 = v102 / v106;
    f32 v108 = v107 * v107;
    f32 v109 = fma_f32(0.2985595f, v108, 0.39978227f);
    f32 v110 = fma_f32(v109, v108, 0.6666677f);
    f32 v111 = v102 * 0.5f;
    f32 v112 = v102 * v111;
    f32 v113 = fma_f32(v108, v110, v112);
    f32 v114 = -v112;
    f32 v115 = fma_f32(v107, v113, v114);
    f32 v116 = fma_f32(v97, 1.4286068e-06f, v115);
    f32 v117 = v105 + v116;
    f32 v118 = v103 + v117;
    f32 v119 = v88 ? v84 : v118;
    f32 v120 = v87 ? (-__builtin_inff()) : v119;
    f32 v121 = v86 ? v84 : v120;
    f32 v122 = v85 ? __builtin_nanf("") : v121;
    f32 v123 = v83 - v122;
    f32 v124 = v78 ? v123 : 0.0f;
    f32 v125 = -v124;
    f32 v126 = v72 + v125;
    acc2 = v126;
  }
  f32 v127 = acc2;
  p0[0l] = v127;
}
