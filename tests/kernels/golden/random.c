/* e_4, C, 1 thread, opts VEC r0 4 */
VECTOR(i64, 4)
VECTOR(i32, 4)
#ifndef H_i32x4_splat
#define H_i32x4_splat
INL i32x4 i32x4_splat(i32 x) { return (i32x4){x, x, x, x}; }
#endif
VECTOR(u32, 4)
#ifndef H_u32x4_splat
#define H_u32x4_splat
INL u32x4 u32x4_splat(u32 x) { return (u32x4){x, x, x, x}; }
#endif
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
void e_4(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  u64 *p1 = (u64 *)bufs[1];
  i64x4 v0 = (i64x4){0l, 0l, 1l, 1l};
  i32x4 v1 = __builtin_convertvector(v0, i32x4);
  i32x4 v2 = i32x4_splat(0);
  i32x4 v3 = (i32x4)(v1 == v2);
  i64x4 v4 = (i64x4){0l, 1l, 0l, 1l};
  i32x4 v5 = __builtin_convertvector(v4, i32x4);
  u32x4 v6 = __builtin_convertvector(v5, u32x4);
  u64 v7 = p1[0l];
  u32 v8 = (u32)v7;
  u32x4 v9 = u32x4_splat(v8);
  u32x4 v10 = v6 + v9;
  u32x4 v11 = u32x4_splat(2u);
  u32x4 v12 = v6 + v11;
  u64 v13 = (u64)(v7 >> 32ul);
  u32 v14 = (u32)v13;
  u32x4 v15 = u32x4_splat(v14);
  u32x4 v16 = v12 + v15;
  u32x4 v17 = v10 + v16;
  u32x4 v18 = u32x4_splat(13u);
  u32x4 v19 = v16 << v18;
  u32x4 v20 = u32x4_splat(19u);
  u32x4 v21 = v16 >> v20;
  u32x4 v22 = v19 | v21;
  u32x4 v23 = v22 ^ v17;
  u32x4 v24 = v17 + v23;
  u32x4 v25 = u32x4_splat(15u);
  u32x4 v26 = v23 << v25;
  u32x4 v27 = u32x4_splat(17u);
  u32x4 v28 = v23 >> v27;
  u32x4 v29 = v26 | v28;
  u32x4 v30 = v29 ^ v24;
  u32x4 v31 = v24 + v30;
  u32x4 v32 = u32x4_splat(26u);
  u32x4 v33 = v30 << v32;
  u32x4 v34 = u32x4_splat(6u);
  u32x4 v35 = v30 >> v34;
  u32x4 v36 = v33 | v35;
  u32x4 v37 = v36 ^ v31;
  u32x4 v38 = v31 + v37;
  u32x4 v39 = v38 + v15;
  u32x4 v40 = v37 << v34;
  u32x4 v41 = v37 >> v32;
  u32x4 v42 = v40 | v41;
  u32x4 v43 = v42 ^ v38;
  u32 v44 = v8 ^ v14;
  u32 v45 = v44 ^ 466688986u;
  u32x4 v46 = u32x4_splat(v45);
  u32x4 v47 = v43 + v46;
  u32x4 v48 = u32x4_splat(1u);
  u32x4 v49 = v47 + v48;
  u32x4 v50 = v39 + v49;
  u32x4 v51 = v49 << v27;
  u32x4 v52 = v49 >> v25;
  u32x4 v53 = v51 | v52;
  u32x4 v54 = v53 ^ v50;
  u32x4 v55 = v50 + v54;
  u32x4 v56 = u32x4_splat(29u);
  u32x4 v57 = v54 << v56;
  u32x4 v58 = u32x4_splat(3u);
  u32x4 v59 = v54 >> v58;
  u32x4 v60 = v57 | v59;
  u32x4 v61 = v60 ^ v55;
  u32x4 v62 = v55 + v61;
  u32x4 v63 = u32x4_splat(16u);
  u32x4 v64 = v61 << v63;
  u32x4 v65 = v61 >> v63;
  u32x4 v66 = v64 | v65;
  u32x4 v67 = v66 ^ v62;
  u32x4 v68 = v62 + v67;
  u32x4 v69 = v68 + v46;
  u32x4 v70 = u32x4_splat(24u);
  u32x4 v71 = v67 << v70;
  u32x4 v72 = u32x4_splat(8u);
  u32x4 v73 = v67 >> v72;
  u32x4 v74 = v71 | v73;
  u32x4 v75 = v74 ^ v68;
  u32x4 v76 = v75 + v9;
  u32x4 v77 = v76 + v11;
  u32x4 v78 = v69 + v77;
  u32x4 v79 = v77 << v18;
  u32x4 v80 = v77 >> v20;
  u32x4 v81 = v79 | v80;
  u32x4 v82 = v81 ^ v78;
  u32x4 v83 = v78 + v82;
  u32x4 v84 = v82 << v25;
  u32x4 v85 = v82 >> v27;
  u32x4 v86 = v84 | v85;
  u32x4 v87 = v86 ^ v83;
  u32x4 v88 = v83 + v87;
  u32x4 v89 = v87 << v32;
  u32x4 v90 = v87 >> v34;
  u32x4 v91 = v89 | v90;
  u32x4 v92 = v91 ^ v88;
  u32x4 v93 = v88 + v92;
  u32x4 v94 = v93 + v9;
  u32x4 v95 = v92 << v34;
  u32x4 v96 = v92 >> v32;
  u32x4 v97 = v95 | v96;
  u32x4 v98 = v97 ^ v93;
  u32x4 v99 = v98 + v15;
  u32x4 v100 = v99 + v58;
  u32x4 v101 = v94 + v100;
  u32x4 v102 = v100 << v27;
  u32x4 v103 = v100 >> v25;
  u32x4 v104 = v102 | v103;
  u32x4 v105 = v104 ^ v101;
  u32x4 v106 = v101 + v105;
  u32x4 v107 = v105 << v56;
  u32x4 v108 = v105 >> v58;
  u32x4 v109 = v107 | v108;
  u32x4 v110 = v109 ^ v106;
  u32x4 v111 = v106 + v110;
  u32x4 v112 = v110 << v63;
  u32x4 v113 = v110 >> v63;
  u32x4 v114 = v112 | v113;
  u32x4 v115 = v114 ^ v111;
  u32x4 v116 = v111 + v115;
  u32x4 v117 = v116 + v15;
  u32x4 v118 = v115 << v70;
  u32x4 v119 = v115 >> v72;
  u32x4 v120 = v118 | v119;
  u32x4 v121 = v120 ^ v116;
  u32x4 v122 = v121 + v46;
  u32x4 v123 = u32x4_splat(4u);
  u32x4 v124 = v122 + v123;
  u32x4 v125 = v117 + v124;
  u32x4 v126 = v124 << v18;
  u32x4 v127 = v124 >> v20;
  u32x4 v128 = v126 | v127;
  u32x4 v129 = v128 ^ v125;
  u32x4 v130 = v125 + v129;
  u32x4 v131 = v129 << v25;
  u32x4 v132 = v129 >> v27;
  u32x4 v133 = v131 | v132;
  u32x4 v134 = v133 ^ v130;
  u32x4 v135 = v130 + v134;
  u32x4 v136 = v134 << v32;
  u32x4 v137 = v134 >> v34;
  u32x4 v138 = v136 | v137;
  u32x4 v139 = v138 ^ v135;
  u32x4 v140 = v135 + v139;
  u32x4 v141 = v140 + v46;
  u32x4 v142 = v139 << v34;
  u32x4 v143 = v139 >> v32;
  u32x4 v144 = v142 | v143;
  u32x4 v145 = v144 ^ v140;
  u32x4 v146 = v145 + v9;
  u32x4 v147 = u32x4_splat(5u);
  u32x4 v148 = v146 + v147;
  u32x4 v149 = (u32x4)((v3 & (i32x4)v141) | (~v3 & (i32x4)v148));
  u32x4 v150 = u32x4_splat(9u);
  u32x4 v151 = v149 >> v150;
  u32x4 v152 = u32x4_splat(1065353216u);
  u32x4 v153 = v151 | v152;
  f32x4 v154 = (f32x4)v153;
  f32x4 v155 = f32x4_splat(1.0f);
  f32x4 v156 = v154 - v155;
  *(f32x4u *)(p0 + 0l) = v156;
}
