/* e_4, C, 1 thread, opts VEC r0 4 */
VECTOR(i64, 4)
VECTOR(i32, 4)
VECTOR(u64, 4)
#ifndef H_u64x4_splat
#define H_u64x4_splat
INL u64x4 u64x4_splat(u64 x) { return (u64x4){x, x, x, x}; }
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
  i64x4 v0 = (i64x4){0l, 1l, 2l, 3l};
  i32x4 v1 = __builtin_convertvector(v0, i32x4);
  u64x4 v2 = __builtin_convertvector(v1, u64x4);
  u64 v3 = p1[0l];
  u64x4 v4 = u64x4_splat(v3);
  u64x4 v5 = v2 + v4;
  u64x4 v6 = u64x4_splat(32ul);
  u64x4 v7 = v5 >> v6;
  u32x4 v8 = __builtin_convertvector(v7, u32x4);
  u64 v9 = p1[1l];
  u64 v10 = (u64)(v9 >> 32ul);
  u32 v11 = (u32)v10;
  u32x4 v12 = u32x4_splat(v11);
  u32x4 v13 = v8 + v12;
  u32x4 v14 = u32x4_splat(13u);
  u32x4 v15 = v13 << v14;
  u32x4 v16 = u32x4_splat(19u);
  u32x4 v17 = v13 >> v16;
  u32x4 v18 = v15 | v17;
  u32x4 v19 = __builtin_convertvector(v5, u32x4);
  u32 v20 = (u32)v9;
  u32x4 v21 = u32x4_splat(v20);
  u32x4 v22 = v19 + v21;
  u32x4 v23 = v22 + v13;
  u32x4 v24 = v18 ^ v23;
  u32x4 v25 = u32x4_splat(15u);
  u32x4 v26 = v24 << v25;
  u32x4 v27 = u32x4_splat(17u);
  u32x4 v28 = v24 >> v27;
  u32x4 v29 = v26 | v28;
  u32x4 v30 = v23 + v24;
  u32x4 v31 = v29 ^ v30;
  u32x4 v32 = u32x4_splat(26u);
  u32x4 v33 = v31 << v32;
  u32x4 v34 = u32x4_splat(6u);
  u32x4 v35 = v31 >> v34;
  u32x4 v36 = v33 | v35;
  u32x4 v37 = v30 + v31;
  u32x4 v38 = v36 ^ v37;
  u32x4 v39 = v38 << v34;
  u32x4 v40 = v38 >> v32;
  u32x4 v41 = v39 | v40;
  u32x4 v42 = v37 + v38;
  u32x4 v43 = v41 ^ v42;
  u32 v44 = v20 ^ v11;
  u32 v45 = v44 ^ 466688986u;
  u32x4 v46 = u32x4_splat(v45);
  u32x4 v47 = v43 + v46;
  u32x4 v48 = u32x4_splat(1u);
  u32x4 v49 = v47 + v48;
  u32x4 v50 = v49 << v27;
  u32x4 v51 = v49 >> v25;
  u32x4 v52 = v50 | v51;
  u32x4 v53 = v42 + v12;
  u32x4 v54 = v53 + v49;
  u32x4 v55 = v52 ^ v54;
  u32x4 v56 = u32x4_splat(29u);
  u32x4 v57 = v55 << v56;
  u32x4 v58 = u32x4_splat(3u);
  u32x4 v59 = v55 >> v58;
  u32x4 v60 = v57 | v59;
  u32x4 v61 = v54 + v55;
  u32x4 v62 = v60 ^ v61;
  u32x4 v63 = u32x4_splat(16u);
  u32x4 v64 = v62 << v63;
  u32x4 v65 = v62 >> v63;
  u32x4 v66 = v64 | v65;
  u32x4 v67 = v61 + v62;
  u32x4 v68 = v66 ^ v67;
  u32x4 v69 = u32x4_splat(24u);
  u32x4 v70 = v68 << v69;
  u32x4 v71 = u32x4_splat(8u);
  u32x4 v72 = v68 >> v71;
  u32x4 v73 = v70 | v72;
  u32x4 v74 = v67 + v68;
  u32x4 v75 = v73 ^ v74;
  u32x4 v76 = v75 + v21;
  u32x4 v77 = u32x4_splat(2u);
  u32x4 v78 = v76 + v77;
  u32x4 v79 = v78 << v14;
  u32x4 v80 = v78 >> v16;
  u32x4 v81 = v79 | v80;
  u32x4 v82 = v74 + v46;
  u32x4 v83 = v82 + v78;
  u32x4 v84 = v81 ^ v83;
  u32x4 v85 = v84 << v25;
  u32x4 v86 = v84 >> v27;
  u32x4 v87 = v85 | v86;
  u32x4 v88 = v83 + v84;
  u32x4 v89 = v87 ^ v88;
  u32x4 v90 = v89 << v32;
  u32x4 v91 = v89 >> v34;
  u32x4 v92 = v90 | v91;
  u32x4 v93 = v88 + v89;
  u32x4 v94 = v92 ^ v93;
  u32x4 v95 = v94 << v34;
  u32x4 v96 = v94 >> v32;
  u32x4 v97 = v95 | v96;
  u32x4 v98 = v93 + v94;
  u32x4 v99 = v97 ^ v98;
  u32x4 v100 = v99 + v12;
  u32x4 v101 = v100 + v58;
  u32x4 v102 = v101 << v27;
  u32x4 v103 = v101 >> v25;
  u32x4 v104 = v102 | v103;
  u32x4 v105 = v98 + v21;
  u32x4 v106 = v105 + v101;
  u32x4 v107 = v104 ^ v106;
  u32x4 v108 = v107 << v56;
  u32x4 v109 = v107 >> v58;
  u32x4 v110 = v108 | v109;
  u32x4 v111 = v106 + v107;
  u32x4 v112 = v110 ^ v111;
  u32x4 v113 = v112 << v63;
  u32x4 v114 = v112 >> v63;
  u32x4 v115 = v113 | v114;
  u32x4 v116 = v111 + v112;
  u32x4 v117 = v115 ^ v116;
  u32x4 v118 = v117 << v69;
  u32x4 v119 = v117 >> v71;
  u32x4 v120 = v118 | v119;
  u32x4 v121 = v116 + v117;
  u32x4 v122 = v120 ^ v121;
  u32x4 v123 = v122 + v46;
  u32x4 v124 = u32x4_splat(4u);
  u32x4 v125 = v123 + v124;
  u32x4 v126 = v125 << v14;
  u32x4 v127 = v125 >> v16;
  u32x4 v128 = v126 | v127;
  u32x4 v129 = v121 + v12;
  u32x4 v130 = v129 + v125;
  u32x4 v131 = v128 ^ v130;
  u32x4 v132 = v131 << v25;
  u32x4 v133 = v131 >> v27;
  u32x4 v134 = v132 | v133;
  u32x4 v135 = v130 + v131;
  u32x4 v136 = v134 ^ v135;
  u32x4 v137 = v136 << v32;
  u32x4 v138 = v136 >> v34;
  u32x4 v139 = v137 | v138;
  u32x4 v140 = v135 + v136;
  u32x4 v141 = v139 ^ v140;
  u32x4 v142 = v141 << v34;
  u32x4 v143 = v141 >> v32;
  u32x4 v144 = v142 | v143;
  u32x4 v145 = v140 + v141;
  u32x4 v146 = v144 ^ v145;
  u32x4 v147 = v146 + v21;
  u32x4 v148 = u32x4_splat(5u);
  u32x4 v149 = v147 + v148;
  u64x4 v150 = __builtin_convertvector(v149, u64x4);
  u64x4 v151 = v150 << v6;
  u32x4 v152 = v145 + v46;
  u64x4 v153 = __builtin_convertvector(v152, u64x4);
  u64x4 v154 = v151 | v153;
  u32x4 v155 = __builtin_convertvector(v154, u32x4);
  u32x4 v156 = v155 >> v71;
  i32x4 v157 = __builtin_convertvector(v156, i32x4);
  f32x4 v158 = __builtin_convertvector(v157, f32x4);
  f32x4 v159 = f32x4_splat(5.9604645e-08f);
  f32x4 v160 = v158 * v159;
  *(f32x4u *)(p0 + 0l) = v160;
}
