/* r_128_32, C, 8 threads, opts UPCAST r0 8, VEC r1 32, THREAD r0 8 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i32, 16)
#ifndef H_fma_f32x16
#define H_fma_f32x16
INL f32x16 fma_f32x16(f32x16 a, f32x16 b, f32x16 c) {
#if defined(__clang__)
  _Pragma("STDC FP_CONTRACT ON") return a * b + c;
#elif defined(__AVX512F__)
  IN_PARTS(f32, 64, 1, FMA512(s, PART(a), PART(b), PART(c)))
#elif defined(__FMA__)
  IN_PARTS(f32, 32, 2, FMA256(s, PART(a), PART(b), PART(c)))
#elif defined(__FMA__)
  IN_PARTS(f32, 16, 4, FMA128(s, PART(a), PART(b), PART(c)))
#else
  f32x16 r; for (int i = 0; i < 16; i++) r[i] = fma_f32(a[i], b[i], c[i]); return r;
#endif
}
#endif
void r_128_32(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat(0.0f);
  i64 r7 = (i64)tid;
  i64 v1 = r7 * 640l;
  i64 v2 = r7 * 512l;
  for (i64 r8 = 0; r8 < 2l; r8++) {
    f32x16 acc0 = v0;
    f32x16 acc1 = v0;
    f32x16 acc2 = v0;
    f32x16 acc3 = v0;
    f32x16 acc4 = v0;
    f32x16 acc5 = v0;
    f32x16 acc6 = v0;
    f32x16 acc7 = v0;
    f32x16 acc8 = v0;
    f32x16 acc9 = v0;
    f32x16 acc10 = v0;
    f32x16 acc11 = v0;
    f32x16 acc12 = v0;
    f32x16 acc13 = v0;
    f32x16 acc14 = v0;
    f32x16 acc15 = v0;
    i64 v3 = r8 * 320l;
    for (i64 r2 = 0; r2 < 40l; r2++) {
      i64 v4 = r2 + v1;
      i64 v5 = v4 + v3;
      f32 v6 = p1[v5];
      f32x16 v7 = f32x16_splat(v6);
      i64 v8 = r2 * 32l;
      f32x16 v9 = *(const f32x16u *)(p2 + v8);
      f32x16 v10 = acc0;
      f32x16 v11 = fma_f32x16(v7, v9, v10);
      acc0 = v11;
      i64 v12 = v8 + 16l;
      f32x16 v13 = *(const f32x16u *)(p2 + v12);
      f32x16 v14 = acc1;
      f32x16 v15 = fma_f32x16(v7, v13, v14);
      acc1 = v15;
      i64 v16 = v5 + 40l;
      f32 v17 = p1[v16];
      f32x16 v18 = f32x16_splat(v17);
      f32x16 v19 = acc2;
      f32x16 v20 = fma_f32x16(v18, v9, v19);
      acc2 = v20;
      f32x16 v21 = acc3;
      f32x16 v22 = fma_f32x16(v18, v13, v21);
      acc3 = v22;
      i64 v23 = v5 + 80l;
      f32 v24 = p1[v23];
      f32x16 v25 = f32x16_splat(v24);
      f32x16 v26 = acc4;
      f32x16 v27 = fma_f32x16(v25, v9, v26);
      acc4 = v27;
      f32x16 v28 = acc5;
      f32x16 v29 = fma_f32x16(v25, v13, v28);
      acc5 = v29;
      i64 v30 = v5 + 120l;
      f32 v31 = p1[v30];
      f32x16 v32 = f32x16_splat(v31);
      f32x16 v33 = acc6;
      f32x16 v34 = fma_f32x16(v32, v9, v33);
      acc6 = v34;
      f32x16 v35 = acc7;
      f32x16 v36 = fma_f32x16(v32, v13, v35);
      acc7 = v36;
      i64 v37 = v5 + 160l;
      f32 v38 = p1[v37];
      f32x16 v39 = f32x16_splat(v38);
      f32x16 v40 = acc8;
      f32x16 v41 = fma_f32x16(v39, v9, v40);
      acc8 = v41;
      f32x16 v42 = acc9;
      f32x16 v43 = fma_f32x16(v39, v13, v42);
      acc9 = v43;
      i64 v44 = v5 + 200l;
      f32 v45 = p1[v44];
      f32x16 v46 = f32x16_splat(v45);
      f32x16 v47 = acc10;
      f32x16 v48 = fma_f32x16(v46, v9, v47);
      acc10 = v48;
      f32x16 v49 = acc11;
      f32x16 v50 = fma_f32x16(v46, v13, v49);
      acc11 = v50;
      i64 v51 = v5 + 240l;
      f32 v52 = p1[v51];
      f32x16 v53 = f32x16_splat(v52);
      f32x16 v54 = acc12;
      f32x16 v55 = fma_f32x16(v53, v9, v54);
      acc12 = v55;
      f32x16 v56 = acc13;
      f32x16 v57 = fma_f32x16(v53, v13, v56);
      acc13 = v57;
      i64 v58 = v5 + 280l;
      f32 v59 = p1[v58];
      f32x16 v60 = f32x16_splat(v59);
      f32x16 v61 = acc14;
      f32x16 v62 = fma_f32x16(v60, v9, v61);
      acc14 = v62;
      f32x16 v63 = acc15;
      f32x16 v64 = fma_f32x16(v60, v13, v63);
      acc15 = v64;
    }
    i64 v65 = r8 * 256l;
    i64 v66 = v2 + v65;
    f32x16 v67 = acc0;
    i64 v68 = v66 + 16l;
    f32x16 v69 = acc1;
    i64 v70 = v66 + 32l;
    f32x16 v71 = acc2;
    i64 v72 = v66 + 48l;
    f32x16 v73 = acc3;
    i64 v74 = v66 + 64l;
    f32x16 v75 = acc4;
    i64 v76 = v66 + 80l;
    f32x16 v77 = acc5;
    i64 v78 = v66 + 96l;
    f32x16 v79 = acc6;
    i64 v80 = v66 + 112l;
    f32x16 v81 = acc7;
    i64 v82 = v66 + 128l;
    f32x16 v83 = acc8;
    i64 v84 = v66 + 144l;
    f32x16 v85 = acc9;
    i64 v86 = v66 + 160l;
    f32x16 v87 = acc10;
    i64 v88 = v66 + 176l;
    f32x16 v89 = acc11;
    i64 v90 = v66 + 192l;
    f32x16 v91 = acc12;
    i64 v92 = v66 + 208l;
    f32x16 v93 = acc13;
    i64 v94 = v66 + 224l;
    f32x16 v95 = acc14;
    i64 v96 = v66 + 240l;
    f32x16 v97 = acc15;
    *(f32x16u *)(p0 + v66) = v67;
    *(f32x16u *)(p0 + v68) = v69;
    *(f32x16u *)(p0 + v70) = v71;
    *(f32x16u *)(p0 + v72) = v73;
    *(f32x16u *)(p0 + v74) = v75;
    *(f32x16u *)(p0 + v76) = v77;
    *(f32x16u *)(p0 + v78) = v79;
    *(f32x16u *)(p0 + v80) = v81;
    *(f32x16u *)(p0 + v82) = v83;
    *(f32x16u *)(p0 + v84) = v85;
    *(f32x16u *)(p0 + v86) = v87;
    *(f32x16u *)(p0 + v88) = v89;
    *(f32x16u *)(p0 + v90) = v91;
    *(f32x16u *)(p0 + v92) = v93;
    *(f32x16u *)(p0 + v94) = v95;
    *(f32x16u *)(p0 + v96) = v97;
  }
}
