/* r, C, 1 thread, opts GROUP r2 8, GROUP r4 8 */
VECTOR(f32, 8)
VECTOR(f32, 4)
VECTOR(i32, 4)
#ifndef H_max_f32x4
#define H_max_f32x4
INL f32x4 max_f32x4(f32x4 a, f32x4 b) {
  i32x4 m = (i32x4)(a > b);
  f32x4 r = (f32x4)((m & (i32x4)a) | (~m & (i32x4)b));
  m = (i32x4)(a != a);
  return (f32x4)((m & (i32x4)a) | (~m & (i32x4)r));
}
#endif
VECTOR(f32, 2)
VECTOR(i32, 2)
#ifndef H_max_f32x2
#define H_max_f32x2
INL f32x2 max_f32x2(f32x2 a, f32x2 b) {
  i32x2 m = (i32x2)(a > b);
  f32x2 r = (f32x2)((m & (i32x2)a) | (~m & (i32x2)b));
  m = (i32x2)(a != a);
  return (f32x2)((m & (i32x2)a) | (~m & (i32x2)r));
}
#endif
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
  IN_PARTS(f32, 32, 1, FMA256(s, PART(a), PART(b), PART(c)))
#elif defined(__FMA__)
  IN_PARTS(f32, 16, 2, FMA128(s, PART(a), PART(b), PART(c)))
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
    f32x4 v4 = max_f32x4(v2, v3);
    f32x2 v5 = __builtin_shufflevector(v4, v4, 0, 1);
    f32x2 v6 = __builtin_shufflevector(v4, v4, 2, 3);
    f32x2 v7 = max_f32x2(v5, v6);
    f32 v8 = v7[0] > v7[1] || v7[0] != v7[0] ? v7[0] : v7[1];
    f32 v9 = (-__builtin_inff()) > v8 || (-__builtin_inff()) != (-__builtin_inff()) ? (-__builtin_inff()) : v8;
    l0[r1] = v9;
  }
  f32x8 v10 = f32x8_splat((-104.66522f));
  f32x8 v11 = f32x8_splat(0.0f);
  f32x8 v12 = f32x8_splat(1.0f);
  f32x8 v13 = f32x8_splat(89.415985f);
  f32x8 v14 = f32x8_splat(1.442695f);
  f32x8 v15 = f32x8_splat(12583166.0f);
  f32x8 v16 = f32x8_splat((-1.4286068e-06f));
  f32x8 v17 = f32x8_splat((-0.69314575f));
  f32x8 v18 = f32x8_splat(0.00836864f);
  f32x8 v19 = f32x8_splat(0.16666521f);
  f32x8 v20 = f32x8_splat(0.0013946001f);
  f32x8 v21 = f32x8_splat(0.041666266f);
  f32x8 v22 = f32x8_splat(0.5f);
  i32x8 v23 = i32x8_splat(1);
  i32x8 v24 = i32x8_splat(23);
  _Alignas(64) f32 l1[6];
  for (i64 r3 = 0; r3 < 6l; r3++) {
    i64 v25 = r3 * 8l;
    f32x8 v26 = *(const f32x8u *)(p2 + v25);
    f32 v27 = l0[r3];
    f32x8 v28 = f32x8_splat(v27);
    f32x8 v29 = v26 - v28;
    i32x8 v30 = (i32x8)(v29 < v10);
    i32x8 v31 = (i32x8)(v13 < v29);
    f32x8 v32 = (f32x8)((v31 & (i32x8)v13) | (~v31 & (i32x8)v29));
    f32x8 v33 = (f32x8)((v30 & (i32x8)v11) | (~v30 & (i32x8)v32));
    f32x8 v34 = fma_f32x8(v33, v14, v15);
    f32x8 v35 = v34 - v15;
    f32x8 v36 = fma_f32x8(v35, v17, v33);
    f32x8 v37 = fma_f32x8(v35, v16, v36);
    f32x8 v38 = v12 + v37;
    f32x8 v39 = v37 * v37;
    f32x8 v40 = fma_f32x8(v18, v39, v19);
    f32x8 v41 = fma_f32x8(v20, v39, v21);
    f32x8 v42 = fma_f32x8(v41, v39, v22);
    f32x8 v43 = fma_f32x8(v40, v37, v42);
    f32x8 v44 = v12 - v38;
    f32x8 v45 = v44 + v37;
    f32x8 v46 = fma_f32x8(v39, v43, v45);
    f32x8 v47 = v38 + v46;
    i32x8 v48 = (i32x8)v34;
    i32x8 v49 = v48 >> v23;
    i32x8 v50 = (i32x8)((u32x8)v49 << (u32x8)v24);
    f32x8 v51 = (f32x8)v50;
    f32x8 v52 = v47 * v51;
    i32x8 v53 = (i32x8)((u32x8)v48 - (u32x8)v49);
    i32x8 v54 = (i32x8)((u32x8)v53 << (u32x8)v24);
    f32x8 v55 = (f32x8)v54;
    f32x8 v56 = v52 * v55;
    f32x8 v57 = (f32x8)((v30 & (i32x8)v11) | (~v30 & (i32x8)v56));
    f32x4 v58 = __builtin_shufflevector(v57, v57, 0, 1, 2, 3);
    f32x4 v59 = __builtin_shufflevector(v57, v57, 4, 5, 6, 7);
    f32x4 v60 = v58 + v59;
    f32x2 v61 = __builtin_shufflevector(v60, v60, 0, 1);
    f32x2 v62 = __builtin_shufflevector(v60, v60, 2, 3);
    f32x2 v63 = v61 + v62;
    f32 v64 = v63[0] + v63[1];
    f32 v65 = 0.0f + v64;
    l1[r3] = v65;
  }
  f32 acc0 = 0.0f;
  for (i64 r0 = 0; r0 < 6l; r0++) {
    f32 v66 = acc0;
    i32 v67 = p1[r0];
    i64 v68 = (i64)v67;
    u8 v69 = v68 < 0l;
    u8 v70 = v69 ^ 1;
    u8 v71 = v68 < 8l;
    u8 v72 = v70 & v71;
    i64 v73 = r0 * 8l;
    i64 v74 = v73 + v68;
    f32 v75 = v72 ? p2[v74] : 0;
    f32 v76 = l0[r0];
    f32 v77 = v75 - v76;
    f32 v78 = l1[r0];
    u8 v79 = v78 < 0.0f;
    u8 v80 = v78 != v78;
    u8 v81 = v78 == 0.0f;
    u8 v82 = v78 == (__builtin_inff());
    u8 v83 = v78 < 1.1754944e-38f;
    f32 v84 = v78 * 33554432.0f;
    f32 v85 = v83 ? v84 : v78;
    i32 v86 = (i32)u32_bits(v85);
    i32 v87 = (i32)((u32)v86 - (u32)1060439283);
    i32 v88 = (i32)(v87 >> 23);
    f32 v89 = (f32)v88;
    f32 v90 = v83 ? 25.0f : 0.0f;
    f32 v91 = v89 - v90;
    f32 v92 = v91 * 0.69314575f;
    i32 v93 = (i32)((u32)v88 << 23);
    i32 v94 = (i32)((u32)v86 - (u32)v93);
    f32 v95 = f32_bits((u32)v94);
    f32 v96 = v95 - 1.0f;
    f32 v97 = v92 + v96;
    f32 v98 = v92 - v97;
    f32 v99 = v98 + v96;
    f32 v100 = v96 + 2.0f;
    f32 v101 = v96 / v100;
    f32 v102 = v101 * v101;
    f32 v103 = fma_f32(0.2985595f, v102, 0.39978227f);
    f32 v104 = fma_f32(v103, v102, 0.6666677f);
    f32 v105 = v96 * 0.5f;
    f32 v106 = v96 * v105;
    f32 v107 = fma_f32(v102, v104, v106);
    f32 v108 = -v106;
    f32 v109 = fma_f32(v101, v107, v108);
    f32 v110 = fma_f32(v91, 1.4286068e-06f, v109);
    f32 v111 = v99 + v110;
    f32 v112 = v97 + v111;
    f32 v113 = v82 ? v78 : v112;
    f32 v114 = v81 ? (-__builtin_inff()) : v113;
    f32 v115 = v80 ? v78 : v114;
    f32 v116 = v79 ? __builtin_nanf("") : v115;
    f32 v117 = v77 - v116;
    f32 v118 = v72 ? v117 : 0.0f;
    f32 v119 = -v118;
    f32 v120 = v66 + v119;
    acc0 = v120;
  }
  f32 v121 = acc0;
  p0[0l] = v121;
}
