/* e_32, C, 1 thread, opts VEC r0 32 */
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
  f32x16 v0 = *(const f32x16u *)(p1 + 0l);
  f32x16 v1 = f32x16_splat(3.5f);
  i32x16 v2 = (i32x16)(v0 < v1);
  i32x16 v3 = v2 ^ i32x16_splat((i32)-1);
  f32x16 v4 = v0 * v0;
  f32x16 v5 = f32x16_splat(1.0f);
  f32x16 v6 = v0 + v5;
  f32x16 v7 = v4 * v6;
  f32x16 v8 = f32x16_splat(2.0f);
  f32x16 v9 = v7 + v8;
  f32x16 v10 = f32x16_splat(0.5f);
  f32x16 v11 = f32x16_splat(0.0f);
  f32x16 v12 = f32x16_splat(3.0f);
  f32x16 v13 = f32x16_splat(4.0f);
  f32x16 acc0 = v9;
  if (any_i32x16(v3)) {
    f32x16 v14 = v0 * v10;
    f32x16 v15 = v14 + v11;
    f32x16 v16 = v15 * v10;
    f32x16 v17 = v16 + v5;
    f32x16 v18 = v17 * v10;
    f32x16 v19 = v18 + v8;
    f32x16 v20 = v19 * v10;
    f32x16 v21 = v20 + v12;
    f32x16 v22 = v21 * v10;
    f32x16 v23 = v22 + v13;
    f32x16 v24 = v23 * v10;
    f32x16 v25 = v24 + v11;
    f32x16 v26 = v25 * v10;
    f32x16 v27 = v26 + v5;
    f32x16 v28 = v27 * v10;
    f32x16 v29 = v28 + v8;
    f32x16 v30 = v29 * v10;
    f32x16 v31 = v30 + v12;
    f32x16 v32 = v31 * v10;
    f32x16 v33 = v32 + v13;
    f32x16 v34 = v33 * v10;
    f32x16 v35 = v34 + v11;
    f32x16 v36 = v35 * v10;
    f32x16 v37 = v36 + v5;
    f32x16 v38 = v37 * v10;
    f32x16 v39 = v38 + v8;
    f32x16 v40 = v39 * v10;
    f32x16 v41 = v40 + v12;
    f32x16 v42 = v41 * v10;
    f32x16 v43 = v42 + v13;
    f32x16 v44 = v43 * v10;
    f32x16 v45 = v44 + v11;
    f32x16 v46 = v45 * v10;
    f32x16 v47 = v46 + v5;
    f32x16 v48 = v47 * v10;
    f32x16 v49 = v48 + v8;
    f32x16 v50 = v49 * v10;
    f32x16 v51 = v50 + v12;
    f32x16 v52 = v51 * v10;
    f32x16 v53 = v52 + v13;
    f32x16 v54 = v53 * v10;
    f32x16 v55 = v54 + v11;
    f32x16 v56 = v55 * v10;
    f32x16 v57 = v56 + v5;
    f32x16 v58 = v57 * v10;
    f32x16 v59 = v58 + v8;
    f32x16 v60 = v59 * v10;
    f32x16 v61 = v60 + v12;
    f32x16 v62 = (f32x16)((v2 & (i32x16)v9) | (~v2 & (i32x16)v61));
    acc0 = v62;
  }
  f32x16 v63 = acc0;
  f32x16 v64 = *(const f32x16u *)(p1 + 16l);
  i32x16 v65 = (i32x16)(v64 < v1);
  i32x16 v66 = v65 ^ i32x16_splat((i32)-1);
  f32x16 v67 = v64 * v64;
  f32x16 v68 = v64 + v5;
  f32x16 v69 = v67 * v68;
  f32x16 v70 = v69 + v8;
  f32x16 acc1 = v70;
  if (any_i32x16(v66)) {
    f32x16 v71 = v64 * v10;
    f32x16 v72 = v71 + v11;
    f32x16 v73 = v72 * v10;
    f32x16 v74 = v73 + v5;
    f32x16 v75 = v74 * v10;
    f32x16 v76 = v75 + v8;
    f32x16 v77 = v76 * v10;
    f32x16 v78 = v77 + v12;
    f32x16 v79 = v78 * v10;
    f32x16 v80 = v79 + v13;
    f32x16 v81 = v80 * v10;
    f32x16 v82 = v81 + v11;
    f32x16 v83 = v82 * v10;
    f32x16 v84 = v83 + v5;
    f32x16 v85 = v84 * v10;
    f32x16 v86 = v85 + v8;
    f32x16 v87 = v86 * v10;
    f32x16 v88 = v87 + v12;
    f32x16 v89 = v88 * v10;
    f32x16 v90 = v89 + v13;
    f32x16 v91 = v90 * v10;
    f32x16 v92 = v91 + v11;
    f32x16 v93 = v92 * v10;
    f32x16 v94 = v93 + v5;
    f32x16 v95 = v94 * v10;
    f32x16 v96 = v95 + v8;
    f32x16 v97 = v96 * v10;
    f32x16 v98 = v97 + v12;
    f32x16 v99 = v98 * v10;
    f32x16 v100 = v99 + v13;
    f32x16 v101 = v100 * v10;
    f32x16 v102 = v101 + v11;
    f32x16 v103 = v102 * v10;
    f32x16 v104 = v103 + v5;
    f32x16 v105 = v104 * v10;
    f32x16 v106 = v105 + v8;
    f32x16 v107 = v106 * v10;
    f32x16 v108 = v107 + v12;
    f32x16 v109 = v108 * v10;
    f32x16 v110 = v109 + v13;
    f32x16 v111 = v110 * v10;
    f32x16 v112 = v111 + v11;
    f32x16 v113 = v112 * v10;
    f32x16 v114 = v113 + v5;
    f32x16 v115 = v114 * v10;
    f32x16 v116 = v115 + v8;
    f32x16 v117 = v116 * v10;
    f32x16 v118 = v117 + v12;
    f32x16 v119 = (f32x16)((v65 & (i32x16)v70) | (~v65 & (i32x16)v118));
    acc1 = v119;
  }
  f32x16 v120 = acc1;
  *(f32x16u *)(p0 + 0l) = v63;
  *(f32x16u *)(p0 + 16l) = v120;
}
