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
    l0[r1] = v9;
  }
  f32x8 v10 = f32x8_splat((-104.0f));
  f32x8 v11 = f32x8_splat(0.0f);
  f32x8 v12 = f32x8_splat(1.0f);
  f32x8 v13 = f32x8_splat(90.0f);
  f32x8 v14 = f32x8_splat(1.442695f);
  f32x8 v15 = f32x8_splat(12582912.0f);
  f32x8 v16 = f32x8_splat((-1.4286068e-06f));
  f32x8 v17 = f32x8_splat((-0.69314575f));
  f32x8 v18 = f32x8_splat(0.0013946001f);
  f32x8 v19 = f32x8_splat(0.00836864f);
  f32x8 v20 = f32x8_splat(0.041666266f);
  f32x8 v21 = f32x8_splat(0.16666521f);
  f32x8 v22 = f32x8_splat(0.5f);
  i32 v23 = (i32)u32_bits(12582912.0f);
  i32x8 v24 = i32x8_splat(v23);
  i32x8 v25 = i32x8_splat(1);
  i32x8 v26 = i32x8_splat(127);
  i32x8 v27 = i32x8_splat(23);
  _Alignas(64) f32 l1[6];
  for (i64 r3 = 0; r3 < 6l; r3++) {
    i64 v28 = r3 * 8l;
    f32x8 v29 = *(const f32x8u *)(p2 + v28);
    f32 v30 = l0[r3];
    f32x8 v31 = f32x8_splat(v30);
    f32x8 v32 = v29 - v31;
    i32x8 v33 = (i32x8)(v32 < v10);
    i32x8 v34 = (i32x8)(v13 < v32);
    f32x8 v35 = (f32x8)((v34 & (i32x8)v13) | (~v34 & (i32x8)v32));
    f32x8 v36 = (f32x8)((v33 & (i32x8)v11) | (~v33 & (i32x8)v35));
    f32x8 v37 = v36 * v14;
    f32x8 v38 = v37 + v15;
    f32x8 v39 = v38 - v15;
    f32x8 v40 = fma_f32x8(v39, v17, v36);
    f32x8 v41 = fma_f32x8(v39, v16, v40);
    f32x8 v42 = v12 + v41;
    f32x8 v43 = v12 - v42;
    f32x8 v44 = v43 + v41;
    f32x8 v45 = v41 * v41;
    f32x8 v46 = fma_f32x8(v18, v41, v19);
    f32x8 v47 = fma_f32x8(v46, v41, v20);
    f32x8 v48 = fma_f32x8(v47, v41, v21);
    f32x8 v49 = fma_f32x8(v48, v41, v22);
    f32x8 v50 = v45 * v49;
    f32x8 v51 = v44 + v50;
    f32x8 v52 = v42 + v51;
    i32x8 v53 = (i32x8)v38;
    i32x8 v54 = (i32x8)((u32x8)v53 - (u32x8)v24);
    i32x8 v55 = v54 >> v25;
    i32x8 v56 = (i32x8)((u32x8)v55 + (u32x8)v26);
    i32x8 v57 = (i32x8)((u32x8)v56 << (u32x8)v27);
    f32x8 v58 = (f32x8)v57;
    f32x8 v59 = v52 * v58;
    i32x8 v60 = (i32x8)((u32x8)v54 - (u32x8)v55);
    i32x8 v61 = (i32x8)((u32x8)v60 + (u32x8)v26);
    i32x8 v62 = (i32x8)((u32x8)v61 << (u32x8)v27);
    f32x8 v63 = (f32x8)v62;
    f32x8 v64 = v59 * v63;
    f32x8 v65 = (f32x8)((v33 & (i32x8)v11) | (~v33 & (i32x8)v64));
    f32x4 v66 = __builtin_shufflevector(v65, v65, 0, 1, 2, 3);
    f32x4 v67 = __builtin_shufflevector(v65, v65, 4, 5, 6, 7);
    f32x4 v68 = v66 + v67;
    f32x2 v69 = __builtin_shufflevector(v68, v68, 0, 1);
    f32x2 v70 = __builtin_shufflevector(v68, v68, 2, 3);
    f32x2 v71 = v69 + v70;
    f32 v72 = v71[0] + v71[1];
    f32 v73 = 0.0f + v72;
    l1[r3] = v73;
  }
  f32 acc0 = 0.0f;
  for (i64 r0 = 0; r0 < 6l; r0++) {
    f32 v74 = acc0;
    i32 v75 = p1[r0];
    i64 v76 = (i64)v75;
    u8 v77 = v76 < 0l;
    u8 v78 = v77 ^ 1;
    u8 v79 = v76 < 8l;
    u8 v80 = v78 & v79;
    i64 v81 = r0 * 8l;
    i64 v82 = v81 + v76;
    f32 v83 = v80 ? p2[v82] : 0;
    f32 v84 = l0[r0];
    f32 v85 = v83 - v84;
    f32 v86 = l1[r0];
    u8 v87 = v86 < 0.0f;
    u8 v88 = v86 != v86;
    u8 v89 = v86 == 0.0f;
    u8 v90 = v86 == (__builtin_inff());
    u8 v91 = v86 < 1.1754944e-38f;
    f32 v92 = v86 * 33554432.0f;
    f32 v93 = v91 ? v92 : v86;
    i32 v94 = (i32)u32_bits(v93);
    i32 v95 = (i32)((u32)v94 - (u32)1060439283);
    i32 v96 = (i32)(v95 >> 23);
    f32 v97 = (f32)v96;
    f32 v98 = v91 ? 25.0f : 0.0f;
    f32 v99 = v97 - v98;
    f32 v100 = v99 * 0.69314575f;
    i32 v101 = (i32)((u32)v96 << 23);
    i32 v102 = (i32)((u32)v94 - (u32)v101);
    f32 v103 = f32_bits((u32)v102);
    f32 v104 = v103 - 1.0f;
    f32 v105 = v100 + v104;
    f32 v106 = v100 - v105;
    f32 v107 = v106 + v104;
    f32 v108 = v104 + 2.0f;
    f32 v109 = v104 / v108;
    f32 v110 = v109 * v109;
    f32 v111 = fma_f32(0.2985595f, v110, 0.39978227f);
    f32 v112 = fma_f32(v111, v110, 0.6666677f);
    f32 v113 = v104 * 0.5f;
    f32 v114 = v104 * v113;
    f32 v115 = fma_f32(v110, v112, v114);
    f32 v116 = -v114;
    f32 v117 = fma_f32(v109, v115, v116);
    f32 v118 = fma_f32(v99, 1.4286068e-06f, v117);
    f32 v119 = v107 + v118;
    f32 v120 = v105 + v119;
    f32 v121 = v90 ? v86 : v120;
    f32 v122 = v89 ? (-__builtin_inff()) : v121;
    f32 v123 = v88 ? v86 : v122;
    f32 v124 = v87 ? __builtin_nanf("") : v123;
    f32 v125 = v85 - v124;
    f32 v126 = v80 ? v125 : 0.0f;
    f32 v127 = -v126;
    f32 v128 = v74 + v127;
    acc0 = v128;
  }
  f32 v129 = acc0;
  p0[0l] = v129;
}
