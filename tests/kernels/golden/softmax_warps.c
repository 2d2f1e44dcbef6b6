/* r_2_150, C, 1 thread, opts VEC r1 32, GROUP r3 64, GROUP r2 64 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i32, 16)
#ifndef H_i32x16_splat
#define H_i32x16_splat
INL i32x16 i32x16_splat(i32 x) { return (i32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
VECTOR(i32, 4)
#ifndef H_i32x4_splat
#define H_i32x4_splat
INL i32x4 i32x4_splat(i32 x) { return (i32x4){x, x, x, x}; }
#endif
VECTOR(f32, 2)
#ifndef H_f32x2_splat
#define H_f32x2_splat
INL f32x2 f32x2_splat(f32 x) { return (f32x2){x, x}; }
#endif
VECTOR(i32, 2)
#ifndef H_i32x2_splat
#define H_i32x2_splat
INL i32x2 i32x2_splat(i32 x) { return (i32x2){x, x}; }
#endif
VECTOR(f32, 8)
VECTOR(i32, 8)
#ifndef H_fma_f32x16
#define H_fma_f32x16
INL f32x16 fma_f32x16(f32x16 a, f32x16 b, f32x16 c) {
#if defined(__clang__)
  _Pragma("STDC FP_CONTRACT ON") return a * b + c;
#elif defined(__AVX512F__)
  return FMA512(s, a, b, c);
#else
  f32x16 r; for (int i = 0; i < 16; i++) r[i] = fma_f32(a[i], b[i], c[i]); return r;
#endif
}
#endif
VECTOR(u32, 16)
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
VECTOR(u32, 4)
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
VECTOR(u32, 2)
void r_2_150(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat((-__builtin_inff()));
  f32x16 v1 = f32x16_splat(0.0f);
  f32x16 v2 = f32x16_splat((-104.0f));
  f32x16 v3 = f32x16_splat(1.0f);
  f32x16 v4 = f32x16_splat(90.0f);
  f32x16 v5 = f32x16_splat(1.442695f);
  f32x16 v6 = f32x16_splat(12582912.0f);
  f32x16 v7 = f32x16_splat((-1.4286068e-06f));
  f32x16 v8 = f32x16_splat((-0.69314575f));
  f32x16 v9 = f32x16_splat(0.0013946001f);
  f32x16 v10 = f32x16_splat(0.00836864f);
  f32x16 v11 = f32x16_splat(0.041666266f);
  f32x16 v12 = f32x16_splat(0.16666521f);
  f32x16 v13 = f32x16_splat(0.5f);
  i32 v14 = (i32)u32_bits(12582912.0f);
  i32x16 v15 = i32x16_splat(v14);
  i32x16 v16 = i32x16_splat(1);
  i32x16 v17 = i32x16_splat(127);
  i32x16 v18 = i32x16_splat(23);
  _Alignas(64) f32 l0[150];
  f32x4 v19 = f32x4_splat((-104.0f));
  f32x4 v20 = f32x4_splat(0.0f);
  f32x4 v21 = f32x4_splat(1.0f);
  f32x4 v22 = f32x4_splat(90.0f);
  f32x4 v23 = f32x4_splat(1.442695f);
  f32x4 v24 = f32x4_splat(12582912.0f);
  f32x4 v25 = f32x4_splat((-1.4286068e-06f));
  f32x4 v26 = f32x4_splat((-0.69314575f));
  f32x4 v27 = f32x4_splat(0.0013946001f);
  f32x4 v28 = f32x4_splat(0.00836864f);
  f32x4 v29 = f32x4_splat(0.041666266f);
  f32x4 v30 = f32x4_splat(0.16666521f);
  f32x4 v31 = f32x4_splat(0.5f);
  i32x4 v32 = i32x4_splat(v14);
  i32x4 v33 = i32x4_splat(1);
  i32x4 v34 = i32x4_splat(127);
  i32x4 v35 = i32x4_splat(23);
  f32x2 v36 = f32x2_splat((-104.0f));
  f32x2 v37 = f32x2_splat(0.0f);
  f32x2 v38 = f32x2_splat(1.0f);
  f32x2 v39 = f32x2_splat(90.0f);
  f32x2 v40 = f32x2_splat(1.442695f);
  f32x2 v41 = f32x2_splat(12582912.0f);
  f32x2 v42 = f32x2_splat((-1.4286068e-06f));
  f32x2 v43 = f32x2_splat((-0.69314575f));
  f32x2 v44 = f32x2_splat(0.0013946001f);
  f32x2 v45 = f32x2_splat(0.00836864f);
  f32x2 v46 = f32x2_splat(0.041666266f);
  f32x2 v47 = f32x2_splat(0.16666521f);
  f32x2 v48 = f32x2_splat(0.5f);
  i32x2 v49 = i32x2_splat(v14);
  i32x2 v50 = i32x2_splat(1);
  i32x2 v51 = i32x2_splat(127);
  i32x2 v52 = i32x2_splat(23);
  for (i64 r0 = 0; r0 < 2l; r0++) {
    f32 acc0 = (-__builtin_inff());
    f32x16 acc1 = v0;
    f32x16 acc2 = v0;
    f32x16 acc3 = v0;
    f32x16 acc4 = v0;
    i64 v53 = r0 * 150l;
    for (i64 r9 = 0; r9 < 2l; r9++) {
      f32x16 v54 = acc1;
      i64 v55 = r9 * 64l;
      i64 v56 = v53 + v55;
      f32x16 v57 = *(const f32x16u *)(p1 + v56);
      i32x16 m58 = (i32x16)(v54 > v57) | (i32x16)(v54 != v54);
      f32x16 v58 = (f32x16)((m58 & (i32x16)v54) | (~m58 & (i32x16)v57));
      acc1 = v58;
      f32x16 v59 = acc2;
      i64 v60 = v56 + 16l;
      f32x16 v61 = *(const f32x16u *)(p1 + v60);
      i32x16 m62 = (i32x16)(v59 > v61) | (i32x16)(v59 != v59);
      f32x16 v62 = (f32x16)((m62 & (i32x16)v59) | (~m62 & (i32x16)v61));
      acc2 = v62;
      f32x16 v63 = acc3;
      i64 v64 = v56 + 32l;
      f32x16 v65 = *(const f32x16u *)(p1 + v64);
      i32x16 m66 = (i32x16)(v63 > v65) | (i32x16)(v63 != v63);
      f32x16 v66 = (f32x16)((m66 & (i32x16)v63) | (~m66 & (i32x16)v65));
      acc3 = v66;
      f32x16 v67 = acc4;
      i64 v68 = v56 + 48l;
      f32x16 v69 = *(const f32x16u *)(p1 + v68);
      i32x16 m70 = (i32x16)(v67 > v69) | (i32x16)(v67 != v67);
      f32x16 v70 = (f32x16)((m70 & (i32x16)v67) | (~m70 & (i32x16)v69));
      acc4 = v70;
    }
    i64 v71 = v53 + 128l;
    f32x16 v72 = *(const f32x16u *)(p1 + v71);
    f32x8 v73 = __builtin_shufflevector(v72, v72, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v74 = __builtin_shufflevector(v72, v72, 8, 9, 10, 11, 12, 13, 14, 15);
    i32x8 m75 = (i32x8)(v73 > v74) | (i32x8)(v73 != v73);
    f32x8 v75 = (f32x8)((m75 & (i32x8)v73) | (~m75 & (i32x8)v74));
    f32x4 v76 = __builtin_shufflevector(v75, v75, 0, 1, 2, 3);
    f32x4 v77 = __builtin_shufflevector(v75, v75, 4, 5, 6, 7);
    i32x4 m78 = (i32x4)(v76 > v77) | (i32x4)(v76 != v76);
    f32x4 v78 = (f32x4)((m78 & (i32x4)v76) | (~m78 & (i32x4)v77));
    f32x2 v79 = __builtin_shufflevector(v78, v78, 0, 1);
    f32x2 v80 = __builtin_shufflevector(v78, v78, 2, 3);
    i32x2 m81 = (i32x2)(v79 > v80) | (i32x2)(v79 != v79);
    f32x2 v81 = (f32x2)((m81 & (i32x2)v79) | (~m81 & (i32x2)v80));
    f32 v82 = v81[0] > v81[1] || v81[0] != v81[0] ? v81[0] : v81[1];
    i64 v83 = v53 + 144l;
    f32x4 v84 = *(const f32x4u *)(p1 + v83);
    f32x2 v85 = __builtin_shufflevector(v84, v84, 0, 1);
    f32x2 v86 = __builtin_shufflevector(v84, v84, 2, 3);
    i32x2 m87 = (i32x2)(v85 > v86) | (i32x2)(v85 != v85);
    f32x2 v87 = (f32x2)((m87 & (i32x2)v85) | (~m87 & (i32x2)v86));
    f32 v88 = v87[0] > v87[1] || v87[0] != v87[0] ? v87[0] : v87[1];
    f32 v89 = v82 > v88 || v82 != v82 ? v82 : v88;
    i64 v90 = v53 + 148l;
    f32x2 v91 = *(const f32x2u *)(p1 + v90);
    f32 v92 = v91[0] > v91[1] || v91[0] != v91[0] ? v91[0] : v91[1];
    f32 v93 = v89 > v92 || v89 != v89 ? v89 : v92;
    f32 v94 = (-__builtin_inff()) > v93 || (-__builtin_inff()) != (-__builtin_inff()) ? (-__builtin_inff()) : v93;
    acc0 = v94;
    f32x16 v95 = acc1;
    f32x16 v96 = acc3;
    i32x16 m97 = (i32x16)(v95 > v96) | (i32x16)(v95 != v95);
    f32x16 v97 = (f32x16)((m97 & (i32x16)v95) | (~m97 & (i32x16)v96));
    f32x16 v98 = acc2;
    f32x16 v99 = acc4;
    i32x16 m100 = (i32x16)(v98 > v99) | (i32x16)(v98 != v98);
    f32x16 v100 = (f32x16)((m100 & (i32x16)v98) | (~m100 & (i32x16)v99));
    i32x16 m101 = (i32x16)(v97 > v100) | (i32x16)(v97 != v97);
    f32x16 v101 = (f32x16)((m101 & (i32x16)v97) | (~m101 & (i32x16)v100));
    f32x8 v102 = __builtin_shufflevector(v101, v101, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v103 = __builtin_shufflevector(v101, v101, 8, 9, 10, 11, 12, 13, 14, 15);
    i32x8 m104 = (i32x8)(v102 > v103) | (i32x8)(v102 != v102);
    f32x8 v104 = (f32x8)((m104 & (i32x8)v102) | (~m104 & (i32x8)v103));
    f32x4 v105 = __builtin_shufflevector(v104, v104, 0, 1, 2, 3);
    f32x4 v106 = __builtin_shufflevector(v104, v104, 4, 5, 6, 7);
    i32x4 m107 = (i32x4)(v105 > v106) | (i32x4)(v105 != v105);
    f32x4 v107 = (f32x4)((m107 & (i32x4)v105) | (~m107 & (i32x4)v106));
    f32x2 v108 = __builtin_shufflevector(v107, v107, 0, 1);
    f32x2 v109 = __builtin_shufflevector(v107, v107, 2, 3);
    i32x2 m110 = (i32x2)(v108 > v109) | (i32x2)(v108 != v108);
    f32x2 v110 = (f32x2)((m110 & (i32x2)v108) | (~m110 & (i32x2)v109));
    f32 v111 = v110[0] > v110[1] || v110[0] != v110[0] ? v110[0] : v110[1];
    f32 v112 = v94 > v111 || v94 != v94 ? v94 : v111;
    acc0 = v112;
    f32 acc5 = 0.0f;
    f32x16 acc6 = v1;
    f32x16 acc7 = v1;
    f32x16 acc8 = v1;
    f32x16 acc9 = v1;
    f32 v113 = acc0;
    f32x16 v114 = f32x16_splat(v113);
    for (i64 r14 = 0; r14 < 2l; r14++) {
      f32x16 v115 = acc6;
      i64 v116 = r14 * 64l;
      i64 v117 = v53 + v116;
      f32x16 v118 = *(const f32x16u *)(p1 + v117);
      f32x16 v119 = v118 - v114;
      i32x16 v120 = (i32x16)(v119 < v2);
      i32x16 v121 = (i32x16)(v4 < v119);
      f32x16 v122 = (f32x16)((v121 & (i32x16)v4) | (~v121 & (i32x16)v119));
      f32x16 v123 = (f32x16)((v120 & (i32x16)v1) | (~v120 & (i32x16)v122));
      f32x16 v124 = v123 * v5;
      f32x16 v125 = v124 + v6;
      f32x16 v126 = v125 - v6;
      f32x16 v127 = fma_f32x16(v126, v8, v123);
      f32x16 v128 = fma_f32x16(v126, v7, v127);
      f32x16 v129 = v3 + v128;
      f32x16 v130 = v3 - v129;
      f32x16 v131 = v130 + v128;
      f32x16 v132 = v128 * v128;
      f32x16 v133 = fma_f32x16(v9, v128, v10);
      f32x16 v134 = fma_f32x16(v133, v128, v11);
      f32x16 v135 = fma_f32x16(v134, v128, v12);
      f32x16 v136 = fma_f32x16(v135, v128, v13);
      f32x16 v137 = v132 * v136;
      f32x16 v138 = v131 + v137;
      f32x16 v139 = v129 + v138;
      i32x16 v140 = (i32x16)v125;
      i32x16 v141 = (i32x16)((u32x16)v140 - (u32x16)v15);
      i32x16 v142 = v141 >> v16;
      i32x16 v143 = (i32x16)((u32x16)v142 + (u32x16)v17);
      i32x16 v144 = (i32x16)((u32x16)v143 << (u32x16)v18);
      f32x16 v145 = (f32x16)v144;
      f32x16 v146 = v139 * v145;
      i32x16 v147 = (i32x16)((u32x16)v141 - (u32x16)v142);
      i32x16 v148 = (i32x16)((u32x16)v147 + (u32x16)v17);
      i32x16 v149 = (i32x16)((u32x16)v148 << (u32x16)v18);
      f32x16 v150 = (f32x16)v149;
      f32x16 v151 = v146 * v150;
      f32x16 v152 = (f32x16)((v120 & (i32x16)v1) | (~v120 & (i32x16)v151));
      f32x16 v153 = v115 + v152;
      acc6 = v153;
      f32x16 v154 = acc7;
      i64 v155 = v117 + 16l;
      f32x16 v156 = *(const f32x16u *)(p1 + v155);
      f32x16 v157 = v156 - v114;
      i32x16 v158 = (i32x16)(v157 < v2);
      i32x16 v159 = (i32x16)(v4 < v157);
      f32x16 v160 = (f32x16)((v159 & (i32x16)v4) | (~v159 & (i32x16)v157));
      f32x16 v161 = (f32x16)((v158 & (i32x16)v1) | (~v158 & (i32x16)v160));
      f32x16 v162 = v161 * v5;
      f32x16 v163 = v162 + v6;
      f32x16 v164 = v163 - v6;
      f32x16 v165 = fma_f32x16(v164, v8, v161);
      f32x16 v166 = fma_f32x16(v164, v7, v165);
      f32x16 v167 = v3 + v166;
      f32x16 v168 = v3 - v167;
      f32x16 v169 = v168 + v166;
      f32x16 v170 = v166 * v166;
      f32x16 v171 = fma_f32x16(v9, v166, v10);
      f32x16 v172 = fma_f32x16(v171, v166, v11);
      f32x16 v173 = fma_f32x16(v172, v166, v12);
      f32x16 v174 = fma_f32x16(v173, v166, v13);
      f32x16 v175 = v170 * v174;
      f32x16 v176 = v169 + v175;
      f32x16 v177 = v167 + v176;
      i32x16 v178 = (i32x16)v163;
      i32x16 v179 = (i32x16)((u32x16)v178 - (u32x16)v15);
      i32x16 v180 = v179 >> v16;
      i32x16 v181 = (i32x16)((u32x16)v180 + (u32x16)v17);
      i32x16 v182 = (i32x16)((u32x16)v181 << (u32x16)v18);
      f32x16 v183 = (f32x16)v182;
      f32x16 v184 = v177 * v183;
      i32x16 v185 = (i32x16)((u32x16)v179 - (u32x16)v180);
      i32x16 v186 = (i32x16)((u32x16)v185 + (u32x16)v17);
      i32x16 v187 = (i32x16)((u32x16)v186 << (u32x16)v18);
      f32x16 v188 = (f32x16)v187;
      f32x16 v189 = v184 * v188;
      f32x16 v190 = (f32x16)((v158 & (i32x16)v1) | (~v158 & (i32x16)v189));
      f32x16 v191 = v154 + v190;
      acc7 = v191;
      f32x16 v192 = acc8;
      i64 v193 = v117 + 32l;
      f32x16 v194 = *(const f32x16u *)(p1 + v193);
      f32x16 v195 = v194 - v114;
      i32x16 v196 = (i32x16)(v195 < v2);
      i32x16 v197 = (i32x16)(v4 < v195);
      f32x16 v198 = (f32x16)((v197 & (i32x16)v4) | (~v197 & (i32x16)v195));
      f32x16 v199 = (f32x16)((v196 & (i32x16)v1) | (~v196 & (i32x16)v198));
      f32x16 v200 = v199 * v5;
      f32x16 v201 = v200 + v6;
      f32x16 v202 = v201 - v6;
      f32x16 v203 = fma_f32x16(v202, v8, v199);
      f32x16 v204 = fma_f32x16(v202, v7, v203);
      f32x16 v205 = v3 + v204;
      f32x16 v206 = v3 - v205;
      f32x16 v207 = v206 + v204;
      f32x16 v208 = v204 * v204;
      f32x16 v209 = fma_f32x16(v9, v204, v10);
      f32x16 v210 = fma_f32x16(v209, v204, v11);
      f32x16 v211 = fma_f32x16(v210, v204, v12);
      f32x16 v212 = fma_f32x16(v211, v204, v13);
      f32x16 v213 = v208 * v212;
      f32x16 v214 = v207 + v213;
      f32x16 v215 = v205 + v214;
      i32x16 v216 = (i32x16)v201;
      i32x16 v217 = (i32x16)((u32x16)v216 - (u32x16)v15);
      i32x16 v218 = v217 >> v16;
      i32x16 v219 = (i32x16)((u32x16)v218 + (u32x16)v17);
      i32x16 v220 = (i32x16)((u32x16)v219 << (u32x16)v18);
      f32x16 v221 = (f32x16)v220;
      f32x16 v222 = v215 * v221;
      i32x16 v223 = (i32x16)((u32x16)v217 - (u32x16)v218);
      i32x16 v224 = (i32x16)((u32x16)v223 + (u32x16)v17);
      i32x16 v225 = (i32x16)((u32x16)v224 << (u32x16)v18);
      f32x16 v226 = (f32x16)v225;
      f32x16 v227 = v222 * v226;
      f32x16 v228 = (f32x16)((v196 & (i32x16)v1) | (~v196 & (i32x16)v227));
      f32x16 v229 = v192 + v228;
      acc8 = v229;
      f32x16 v230 = acc9;
      i64 v231 = v117 + 48l;
      f32x16 v232 = *(const f32x16u *)(p1 + v231);
      f32x16 v233 = v232 - v114;
      i32x16 v234 = (i32x16)(v233 < v2);
      i32x16 v235 = (i32x16)(v4 < v233);
      f32x16 v236 = (f32x16)((v235 & (i32x16)v4) | (~v235 & (i32x16)v233));
      f32x16 v237 = (f32x16)((v234 & (i32x16)v1) | (~v234 & (i32x16)v236));
      f32x16 v238 = v237 * v5;
      f32x16 v239 = v238 + v6;
      f32x16 v240 = v239 - v6;
      f32x16 v241 = fma_f32x16(v240, v8, v237);
      f32x16 v242 = fma_f32x16(v240, v7, v241);
      f32x16 v243 = v3 + v242;
      f32x16 v244 = v3 - v243;
      f32x16 v245 = v244 + v242;
      f32x16 v246 = v242 * v242;
      f32x16 v247 = fma_f32x16(v9, v242, v10);
      f32x16 v248 = fma_f32x16(v247, v242, v11);
      f32x16 v249 = fma_f32x16(v248, v242, v12);
      f32x16 v250 = fma_f32x16(v249, v242, v13);
      f32x16 v251 = v246 * v250;
      f32x16 v252 = v245 + v251;
      f32x16 v253 = v243 + v252;
      i32x16 v254 = (i32x16)v239;
      i32x16 v255 = (i32x16)((u32x16)v254 - (u32x16)v15);
      i32x16 v256 = v255 >> v16;
      i32x16 v257 = (i32x16)((u32x16)v256 + (u32x16)v17);
      i32x16 v258 = (i32x16)((u32x16)v257 << (u32x16)v18);
      f32x16 v259 = (f32x16)v258;
      f32x16 v260 = v253 * v259;
      i32x16 v261 = (i32x16)((u32x16)v255 - (u32x16)v256);
      i32x16 v262 = (i32x16)((u32x16)v261 + (u32x16)v17);
      i32x16 v263 = (i32x16)((u32x16)v262 << (u32x16)v18);
      f32x16 v264 = (f32x16)v263;
      f32x16 v265 = v260 * v264;
      f32x16 v266 = (f32x16)((v234 & (i32x16)v1) | (~v234 & (i32x16)v265));
      f32x16 v267 = v230 + v266;
      acc9 = v267;
      *(f32x16u *)(l0 + v116) = v152;
      i64 v268 = v116 + 16l;
      *(f32x16u *)(l0 + v268) = v190;
      i64 v269 = v116 + 32l;
      *(f32x16u *)(l0 + v269) = v228;
      i64 v270 = v116 + 48l;
      *(f32x16u *)(l0 + v270) = v266;
    }
    f32x16 v271 = v72 - v114;
    i32x16 v272 = (i32x16)(v271 < v2);
    i32x16 v273 = (i32x16)(v4 < v271);
    f32x16 v274 = (f32x16)((v273 & (i32x16)v4) | (~v273 & (i32x16)v271));
    f32x16 v275 = (f32x16)((v272 & (i32x16)v1) | (~v272 & (i32x16)v274));
    f32x16 v276 = v275 * v5;
    f32x16 v277 = v276 + v6;
    f32x16 v278 = v277 - v6;
    f32x16 v279 = fma_f32x16(v278, v8, v275);
    f32x16 v280 = fma_f32x16(v278, v7, v279);
    f32x16 v281 = v3 + v280;
    f32x16 v282 = v3 - v281;
    f32x16 v283 = v282 + v280;
    f32x16 v284 = v280 * v280;
    f32x16 v285 = fma_f32x16(v9, v280, v10);
    f32x16 v286 = fma_f32x16(v285, v280, v11);
    f32x16 v287 = fma_f32x16(v286, v280, v12);
    f32x16 v288 = fma_f32x16(v287, v280, v13);
    f32x16 v289 = v284 * v288;
    f32x16 v290 = v283 + v289;
    f32x16 v291 = v281 + v290;
    i32x16 v292 = (i32x16)v277;
    i32x16 v293 = (i32x16)((u32x16)v292 - (u32x16)v15);
    i32x16 v294 = v293 >> v16;
    i32x16 v295 = (i32x16)((u32x16)v294 + (u32x16)v17);
    i32x16 v296 = (i32x16)((u32x16)v295 << (u32x16)v18);
    f32x16 v297 = (f32x16)v296;
    f32x16 v298 = v291 * v297;
    i32x16 v299 = (i32x16)((u32x16)v293 - (u32x16)v294);
    i32x16 v300 = (i32x16)((u32x16)v299 + (u32x16)v17);
    i32x16 v301 = (i32x16)((u32x16)v300 << (u32x16)v18);
    f32x16 v302 = (f32x16)v301;
    f32x16 v303 = v298 * v302;
    f32x16 v304 = (f32x16)((v272 & (i32x16)v1) | (~v272 & (i32x16)v303));
    f32x8 v305 = __builtin_shufflevector(v304, v304, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v306 = __builtin_shufflevector(v304, v304, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v307 = v305 + v306;
    f32x4 v308 = __builtin_shufflevector(v307, v307, 0, 1, 2, 3);
    f32x4 v309 = __builtin_shufflevector(v307, v307, 4, 5, 6, 7);
    f32x4 v310 = v308 + v309;
    f32x2 v311 = __builtin_shufflevector(v310, v310, 0, 1);
    f32x2 v312 = __builtin_shufflevector(v310, v310, 2, 3);
    f32x2 v313 = v311 + v312;
    f32 v314 = v313[0] + v313[1];
    f32x4 v315 = f32x4_splat(v113);
    f32x4 v316 = v84 - v315;
    i32x4 v317 = (i32x4)(v316 < v19);
    i32x4 v318 = (i32x4)(v22 < v316);
    f32x4 v319 = (f32x4)((v318 & (i32x4)v22) | (~v318 & (i32x4)v316));
    f32x4 v320 = (f32x4)((v317 & (i32x4)v20) | (~v317 & (i32x4)v319));
    f32x4 v321 = v320 * v23;
    f32x4 v322 = v321 + v24;
    f32x4 v323 = v322 - v24;
    f32x4 v324 = fma_f32x4(v323, v26, v320);
    f32x4 v325 = fma_f32x4(v323, v25, v324);
    f32x4 v326 = v21 + v325;
    f32x4 v327 = v21 - v326;
    f32x4 v328 = v327 + v325;
    f32x4 v329 = v325 * v325;
    f32x4 v330 = fma_f32x4(v27, v325, v28);
    f32x4 v331 = fma_f32x4(v330, v325, v29);
    f32x4 v332 = fma_f32x4(v331, v325, v30);
    f32x4 v333 = fma_f32x4(v332, v325, v31);
    f32x4 v334 = v329 * v333;
    f32x4 v335 = v328 + v334;
    f32x4 v336 = v326 + v335;
    i32x4 v337 = (i32x4)v322;
    i32x4 v338 = (i32x4)((u32x4)v337 - (u32x4)v32);
    i32x4 v339 = v338 >> v33;
    i32x4 v340 = (i32x4)((u32x4)v339 + (u32x4)v34);
    i32x4 v341 = (i32x4)((u32x4)v340 << (u32x4)v35);
    f32x4 v342 = (f32x4)v341;
    f32x4 v343 = v336 * v342;
    i32x4 v344 = (i32x4)((u32x4)v338 - (u32x4)v339);
    i32x4 v345 = (i32x4)((u32x4)v344 + (u32x4)v34);
    i32x4 v346 = (i32x4)((u32x4)v345 << (u32x4)v35);
    f32x4 v347 = (f32x4)v346;
    f32x4 v348 = v343 * v347;
    f32x4 v349 = (f32x4)((v317 & (i32x4)v20) | (~v317 & (i32x4)v348));
    f32x2 v350 = __builtin_shufflevector(v349, v349, 0, 1);
    f32x2 v351 = __builtin_shufflevector(v349, v349, 2, 3);
    f32x2 v352 = v350 + v351;
    f32 v353 = v352[0] + v352[1];
    f32 v354 = v314 + v353;
    f32x2 v355 = f32x2_splat(v113);
    f32x2 v356 = v91 - v355;
    i32x2 v357 = (i32x2)(v356 < v36);
    i32x2 v358 = (i32x2)(v39 < v356);
    f32x2 v359 = (f32x2)((v358 & (i32x2)v39) | (~v358 & (i32x2)v356));
    f32x2 v360 = (f32x2)((v357 & (i32x2)v37) | (~v357 & (i32x2)v359));
    f32x2 v361 = v360 * v40;
    f32x2 v362 = v361 + v41;
    f32x2 v363 = v362 - v41;
    f32x2 v364 = fma_f32x2(v363, v43, v360);
    f32x2 v365 = fma_f32x2(v363, v42, v364);
    f32x2 v366 = v38 + v365;
    f32x2 v367 = v38 - v366;
    f32x2 v368 = v367 + v365;
    f32x2 v369 = v365 * v365;
    f32x2 v370 = fma_f32x2(v44, v365, v45);
    f32x2 v371 = fma_f32x2(v370, v365, v46);
    f32x2 v372 = fma_f32x2(v371, v365, v47);
    f32x2 v373 = fma_f32x2(v372, v365, v48);
    f32x2 v374 = v369 * v373;
    f32x2 v375 = v368 + v374;
    f32x2 v376 = v366 + v375;
    i32x2 v377 = (i32x2)v362;
    i32x2 v378 = (i32x2)((u32x2)v377 - (u32x2)v49);
    i32x2 v379 = v378 >> v50;
    i32x2 v380 = (i32x2)((u32x2)v379 + (u32x2)v51);
    i32x2 v381 = (i32x2)((u32x2)v380 << (u32x2)v52);
    f32x2 v382 = (f32x2)v381;
    f32x2 v383 = v376 * v382;
    i32x2 v384 = (i32x2)((u32x2)v378 - (u32x2)v379);
    i32x2 v385 = (i32x2)((u32x2)v384 + (u32x2)v51);
    i32x2 v386 = (i32x2)((u32x2)v385 << (u32x2)v52);
    f32x2 v387 = (f32x2)v386;
    f32x2 v388 = v383 * v387;
    f32x2 v389 = (f32x2)((v357 & (i32x2)v37) | (~v357 & (i32x2)v388));
    f32 v390 = v389[0] + v389[1];
    f32 v391 = v354 + v390;
    f32 v392 = 0.0f + v391;
    acc5 = v392;
    *(f32x16u *)(l0 + 128l) = v304;
    *(f32x4u *)(l0 + 144l) = v349;
    *(f32x2u *)(l0 + 148l) = v389;
    f32x16 v393 = acc6;
    f32x16 v394 = acc8;
    f32x16 v395 = v393 + v394;
    f32x16 v396 = acc7;
    f32x16 v397 = acc9;
    f32x16 v398 = v396 + v397;
    f32x16 v399 = v395 + v398;
    f32x8 v400 = __builtin_shufflevector(v399, v399, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v401 = __builtin_shufflevector(v399, v399, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v402 = v400 + v401;
    f32x4 v403 = __builtin_shufflevector(v402, v402, 0, 1, 2, 3);
    f32x4 v404 = __builtin_shufflevector(v402, v402, 4, 5, 6, 7);
    f32x4 v405 = v403 + v404;
    f32x2 v406 = __builtin_shufflevector(v405, v405, 0, 1);
    f32x2 v407 = __builtin_shufflevector(v405, v405, 2, 3);
    f32x2 v408 = v406 + v407;
    f32 v409 = v408[0] + v408[1];
    f32 v410 = v392 + v409;
    acc5 = v410;
    f32 v411 = acc5;
    f32x16 v412 = f32x16_splat(v411);
    for (i64 r4 = 0; r4 < 4l; r4++) {
      i64 v413 = r4 * 32l;
      i64 v414 = v413 + v53;
      f32x16 v415 = *(const f32x16u *)(l0 + v413);
      f32x16 v416 = v415 / v412;
      i64 v417 = v414 + 16l;
      i64 v418 = v413 + 16l;
      f32x16 v419 = *(const f32x16u *)(l0 + v418);
      f32x16 v420 = v419 / v412;
      *(f32x16u *)(p0 + v414) = v416;
      *(f32x16u *)(p0 + v417) = v420;
    }
    f32x16 v421 = *(const f32x16u *)(l0 + 128l);
    f32x16 v422 = v421 / v412;
    f32x4 v423 = *(const f32x4u *)(l0 + 144l);
    f32x4 v424 = f32x4_splat(v411);
    f32x4 v425 = v423 / v424;
    f32x2 v426 = *(const f32x2u *)(l0 + 148l);
    f32x2 v427 = f32x2_splat(v411);
    f32x2 v428 = v426 / v427;
    *(f32x16u *)(p0 + v71) = v422;
    *(f32x4u *)(p0 + v83) = v425;
    *(f32x2u *)(p0 + v90) = v428;
  }
}
