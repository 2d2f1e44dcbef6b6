/* r_8_32, C, 1 thread, opts UPCAST r0 8, VEC r1 32 */
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
void r_8_32(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat(0.0f);
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
  for (i64 r2 = 0; r2 < 16l; r2++) {
    f32 v1 = p1[r2];
    f32x16 v2 = f32x16_splat(v1);
    i64 v3 = r2 * 32l;
    f32x16 v4 = *(const f32x16u *)(p2 + v3);
    f32x16 v5 = acc0;
    f32x16 v6 = fma_f32x16(v2, v4, v5);
    acc0 = v6;
    i64 v7 = v3 + 16l;
    f32x16 v8 = *(const f32x16u *)(p2 + v7);
    f32x16 v9 = acc1;
    f32x16 v10 = fma_f32x16(v2, v8, v9);
    acc1 = v10;
    i64 v11 = r2 + 16l;
    f32 v12 = p1[v11];
    f32x16 v13 = f32x16_splat(v12);
    f32x16 v14 = acc2;
    f32x16 v15 = fma_f32x16(v13, v4, v14);
    acc2 = v15;
    f32x16 v16 = acc3;
    f32x16 v17 = fma_f32x16(v13, v8, v16);
    acc3 = v17;
    i64 v18 = r2 + 32l;
    f32 v19 = p1[v18];
    f32x16 v20 = f32x16_splat(v19);
    f32x16 v21 = acc4;
    f32x16 v22 = fma_f32x16(v20, v4, v21);
    acc4 = v22;
    f32x16 v23 = acc5;
    f32x16 v24 = fma_f32x16(v20, v8, v23);
    acc5 = v24;
    i64 v25 = r2 + 48l;
    f32 v26 = p1[v25];
    f32x16 v27 = f32x16_splat(v26);
    f32x16 v28 = acc6;
    f32x16 v29 = fma_f32x16(v27, v4, v28);
    acc6 = v29;
    f32x16 v30 = acc7;
    f32x16 v31 = fma_f32x16(v27, v8, v30);
    acc7 = v31;
    i64 v32 = r2 + 64l;
    f32 v33 = p1[v32];
    f32x16 v34 = f32x16_splat(v33);
    f32x16 v35 = acc8;
    f32x16 v36 = fma_f32x16(v34, v4, v35);
    acc8 = v36;
    f32x16 v37 = acc9;
    f32x16 v38 = fma_f32x16(v34, v8, v37);
    acc9 = v38;
    i64 v39 = r2 + 80l;
    f32 v40 = p1[v39];
    f32x16 v41 = f32x16_splat(v40);
    f32x16 v42 = acc10;
    f32x16 v43 = fma_f32x16(v41, v4, v42);
    acc10 = v43;
    f32x16 v44 = acc11;
    f32x16 v45 = fma_f32x16(v41, v8, v44);
    acc11 = v45;
    i64 v46 = r2 + 96l;
    f32 v47 = p1[v46];
    f32x16 v48 = f32x16_splat(v47);
    f32x16 v49 = acc12;
    f32x16 v50 = fma_f32x16(v48, v4, v49);
    acc12 = v50;
    f32x16 v51 = acc13;
    f32x16 v52 = fma_f32x16(v48, v8, v51);
    acc13 = v52;
    i64 v53 = r2 + 112l;
    f32 v54 = p1[v53];
    f32x16 v55 = f32x16_splat(v54);
    f32x16 v56 = acc14;
    f32x16 v57 = fma_f32x16(v55, v4, v56);
    acc14 = v57;
    f32x16 v58 = acc15;
    f32x16 v59 = fma_f32x16(v55, v8, v58);
    acc15 = v59;
  }
  f32x16 v60 = acc0;
  f32x16 v61 = acc1;
  f32x16 v62 = acc2;
  f32x16 v63 = acc3;
  f32x16 v64 = acc4;
  f32x16 v65 = acc5;
  f32x16 v66 = acc6;
  f32x16 v67 = acc7;
  f32x16 v68 = acc8;
  f32x16 v69 = acc9;
  f32x16 v70 = acc10;
  f32x16 v71 = acc11;
  f32x16 v72 = acc12;
  f32x16 v73 = acc13;
  f32x16 v74 = acc14;
  f32x16 v75 = acc15;
  *(f32x16u *)(p0 + 0l) = v60;
  *(f32x16u *)(p0 + 16l) = v61;
  *(f32x16u *)(p0 + 32l) = v62;
  *(f32x16u *)(p0 + 48l) = v63;
  *(f32x16u *)(p0 + 64l) = v64;
  *(f32x16u *)(p0 + 80l) = v65;
  *(f32x16u *)(p0 + 96l) = v66;
  *(f32x16u *)(p0 + 112l) = v67;
  *(f32x16u *)(p0 + 128l) = v68;
  *(f32x16u *)(p0 + 144l) = v69;
  *(f32x16u *)(p0 + 160l) = v70;
  *(f32x16u *)(p0 + 176l) = v71;
  *(f32x16u *)(p0 + 192l) = v72;
  *(f32x16u *)(p0 + 208l) = v73;
  *(f32x16u *)(p0 + 224l) = v74;
  *(f32x16u *)(p0 + 240l) = v75;
}
