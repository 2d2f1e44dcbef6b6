/* e_32, C, 1 thread, opts VEC r0 32 */
VECTOR(i8, 16)
#ifndef H_i8x16_splat
#define H_i8x16_splat
INL i8x16 i8x16_splat(i8 x) { return (i8x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
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
#ifndef H_any_i32x16
#define H_any_i32x16
INL int any_i32x16(i32x16 m) {
#if defined(__clang__)
  return __builtin_reduce_or(m) != 0;
#else
  i32 r = 0; for (int i = 0; i < 16; i++) r |= m[i]; return r != 0;
#endif
}
#endif
void e_32(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  i8x16 v0 = i8x16_splat((i8)-1);
  f32x16 v1 = *(const f32x16u *)(p1 + 0l);
  f32x16 v2 = f32x16_splat(3.5f);
  i32x16 v3 = (i32x16)(v1 < v2);
  i32x16 v4 = v3 ^ i32x16_splat((i32)-1);
  f32x16 v5 = v1 * v1;
  f32x16 v6 = f32x16_splat(1.0f);
  f32x16 v7 = v1 + v6;
  f32x16 v8 = v5 * v7;
  f32x16 v9 = f32x16_splat(2.0f);
  f32x16 v10 = v8 + v9;
  f32x16 v11 = f32x16_splat(0.5f);
  f32x16 v12 = f32x16_splat(0.0f);
  f32x16 v13 = f32x16_splat(3.0f);
  f32x16 v14 = f32x16_splat(4.0f);
  f32x16 acc0 = v10;
  if (any_i32x16(v4)) {
    f32x16 v15 = v1 * v11;
    f32x16 v16 = v15 + v12;
    f32x16 v17 = v16 * v11;
    f32x16 v18 = v17 + v6;
    f32x16 v19 = v18 * v11;
    f32x16 v20 = v19 + v9;
    f32x16 v21 = v20 * v11;
    f32x16 v22 = v21 + v13;
    f32x16 v23 = v22 * v11;
    f32x16 v24 = v23 + v14;
    f32x16 v25 = v24 * v11;
    f32x16 v26 = v25 + v12;
    f32x16 v27 = v26 * v11;
    f32x16 v28 = v27 + v6;
    f32x16 v29 = v28 * v11;
    f32x16 v30 = v29 + v9;
    f32x16 v31 = v30 * v11;
    f32x16 v32 = v31 + v13;
    f32x16 v33 = v32 * v11;
    f32x16 v34 = v33 + v14;
    f32x16 v35 = v34 * v11;
    f32x16 v36 = v35 + v12;
    f32x16 v37 = v36 * v11;
    f32x16 v38 = v37 + v6;
    f32x16 v39 = v38 * v11;
    f32x16 v40 = v39 + v9;
    f32x16 v41 = v40 * v11;
    f32x16 v42 = v41 + v13;
    f32x16 v43 = v42 * v11;
    f32x16 v44 = v43 + v14;
    f32x16 v45 = v44 * v11;
    f32x16 v46 = v45 + v12;
    f32x16 v47 = v46 * v11;
    f32x16 v48 = v47 + v6;
    f32x16 v49 = v48 * v11;
    f32x16 v50 = v49 + v9;
    f32x16 v51 = v50 * v11;
    f32x16 v52 = v51 + v13;
    f32x16 v53 = v52 * v11;
    f32x16 v54 = v53 + v14;
    f32x16 v55 = v54 * v11;
    f32x16 v56 = v55 + v12;
    f32x16 v57 = v56 * v11;
    f32x16 v58 = v57 + v6;
    f32x16 v59 = v58 * v11;
    f32x16 v60 = v59 + v9;
    f32x16 v61 = v60 * v11;
    f32x16 v62 = v61 + v13;
    f32x16 v63 = (f32x16)((v3 & (i32x16)v10) | (~v3 & (i32x16)v62));
    acc0 = v63;
  }
  f32x16 v64 = acc0;
  f32x16 v65 = *(const f32x16u *)(p1 + 16l);
  i32x16 v66 = (i32x16)(v65 < v2);
  i32x16 v67 = v66 ^ i32x16_splat((i32)-1);
  f32x16 v68 = v65 * v65;
  f32x16 v69 = v65 + v6;
  f32x16 v70 = v68 * v69;
  f32x16 v71 = v70 + v9;
  f32x16 acc1 = v71;
  if (any_i32x16(v67)) {
    f32x16 v72 = v65 * v11;
    f32x16 v73 = v72 + v12;
    f32x16 v74 = v73 * v11;
    f32x16 v75 = v74 + v6;
    f32x16 v76 = v75 * v11;
    f32x16 v77 = v76 + v9;
    f32x16 v78 = v77 * v11;
    f32x16 v79 = v78 + v13;
    f32x16 v80 = v79 * v11;
    f32x16 v81 = v80 + v14;
    f32x16 v82 = v81 * v11;
    f32x16 v83 = v82 + v12;
    f32x16 v84 = v83 * v11;
    f32x16 v85 = v84 + v6;
    f32x16 v86 = v85 * v11;
    f32x16 v87 = v86 + v9;
    f32x16 v88 = v87 * v11;
    f32x16 v89 = v88 + v13;
    f32x16 v90 = v89 * v11;
    f32x16 v91 = v90 + v14;
    f32x16 v92 = v91 * v11;
    f32x16 v93 = v92 + v12;
    f32x16 v94 = v93 * v11;
    f32x16 v95 = v94 + v6;
    f32x16 v96 = v95 * v11;
    f32x16 v97 = v96 + v9;
    f32x16 v98 = v97 * v11;
    f32x16 v99 = v98 + v13;
    f32x16 v100 = v99 * v11;
    f32x16 v101 = v100 + v14;
    f32x16 v102 = v101 * v11;
    f32x16 v103 = v102 + v12;
    f32x16 v104 = v103 * v11;
    f32x16 v105 = v104 + v6;
    f32x16 v106 = v105 * v11;
    f32x16 v107 = v106 + v9;
    f32x16 v108 = v107 * v11;
    f32x16 v109 = v108 + v13;
    f32x16 v110 = v109 * v11;
    f32x16 v111 = v110 + v14;
    f32x16 v112 = v111 * v11;
    f32x16 v113 = v112 + v12;
    f32x16 v114 = v113 * v11;
    f32x16 v115 = v114 + v6;
    f32x16 v116 = v115 * v11;
    f32x16 v117 = v116 + v9;
    f32x16 v118 = v117 * v11;
    f32x16 v119 = v118 + v13;
    f32x16 v120 = (f32x16)((v66 & (i32x16)v71) | (~v66 & (i32x16)v119));
    acc1 = v120;
  }
  f32x16 v121 = acc1;
  *(f32x16u *)(p0 + 0l) = v64;
  *(f32x16u *)(p0 + 16l) = v121;
}
