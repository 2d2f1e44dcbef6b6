/* r_8_32, C, 1 thread, opts SWAP r0 r1, UPCAST r0 8, VEC r1 32 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
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
void r_8_32(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32x16 acc0;
  f32x16 v0 = f32x16_splat(0.0f);
  acc0 = v0;
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
    i64 v1 = r2 + 112l;
    f32 v2 = p1[v1];
    f32x16 v3 = f32x16_splat(v2);
    i64 v4 = r2 * 32l;
    i64 v5 = v4 + 16l;
    f32x16 v6 = *(const f32x16u *)(p2 + v5);
    i64 v7 = r2 + 96l;
    f32 v8 = p1[v7];
    f32x16 v9 = f32x16_splat(v8);
    i64 v10 = r2 + 80l;
    f32 v11 = p1[v10];
    f32x16 v12 = f32x16_splat(v11);
    i64 v13 = r2 + 64l;
    f32 v14 = p1[v13];
    f32x16 v15 = f32x16_splat(v14);
    i64 v16 = r2 + 48l;
    f32 v17 = p1[v16];
    f32x16 v18 = f32x16_splat(v17);
    i64 v19 = r2 + 32l;
    f32 v20 = p1[v19];
    f32x16 v21 = f32x16_splat(v20);
    i64 v22 = r2 + 16l;
    f32 v23 = p1[v22];
    f32x16 v24 = f32x16_splat(v23);
    f32 v25 = p1[r2];
    f32x16 v26 = f32x16_splat(v25);
    f32x16 v27 = *(const f32x16u *)(p2 + v4);
    f32x16 v28 = acc0;
    f32x16 v29 = fma_f32x16(v3, v6, v28);
    acc0 = v29;
    f32x16 v30 = acc1;
    f32x16 v31 = fma_f32x16(v9, v6, v30);
    acc1 = v31;
    f32x16 v32 = acc2;
    f32x16 v33 = fma_f32x16(v12, v6, v32);
    acc2 = v33;
    f32x16 v34 = acc3;
    f32x16 v35 = fma_f32x16(v15, v6, v34);
    acc3 = v35;
    f32x16 v36 = acc4;
    f32x16 v37 = fma_f32x16(v18, v6, v36);
    acc4 = v37;
    f32x16 v38 = acc5;
    f32x16 v39 = fma_f32x16(v21, v6, v38);
    acc5 = v39;
    f32x16 v40 = acc6;
    f32x16 v41 = fma_f32x16(v24, v6, v40);
    acc6 = v41;
    f32x16 v42 = acc7;
    f32x16 v43 = fma_f32x16(v26, v6, v42);
    acc7 = v43;
    f32x16 v44 = acc8;
    f32x16 v45 = fma_f32x16(v3, v27, v44);
    acc8 = v45;
    f32x16 v46 = acc9;
    f32x16 v47 = fma_f32x16(v9, v27, v46);
    acc9 = v47;
    f32x16 v48 = acc10;
    f32x16 v49 = fma_f32x16(v12, v27, v48);
    acc10 = v49;
    f32x16 v50 = acc11;
    f32x16 v51 = fma_f32x16(v15, v27, v50);
    acc11 = v51;
    f32x16 v52 = acc12;
    f32x16 v53 = fma_f32x16(v18, v27, v52);
    acc12 = v53;
    f32x16 v54 = acc13;
    f32x16 v55 = fma_f32x16(v21, v27, v54);
    acc13 = v55;
    f32x16 v56 = acc14;
    f32x16 v57 = fma_f32x16(v24, v27, v56);
    acc14 = v57;
    f32x16 v58 = acc15;
    f32x16 v59 = fma_f32x16(v26, v27, v58);
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
  *(f32x16u *)(p0 + 0l) = v75;
  *(f32x16u *)(p0 + 32l) = v74;
  *(f32x16u *)(p0 + 64l) = v73;
  *(f32x16u *)(p0 + 96l) = v72;
  *(f32x16u *)(p0 + 128l) = v71;
  *(f32x16u *)(p0 + 160l) = v70;
  *(f32x16u *)(p0 + 192l) = v69;
  *(f32x16u *)(p0 + 224l) = v68;
  *(f32x16u *)(p0 + 16l) = v67;
  *(f32x16u *)(p0 + 48l) = v66;
  *(f32x16u *)(p0 + 80l) = v65;
  *(f32x16u *)(p0 + 112l) = v64;
  *(f32x16u *)(p0 + 144l) = v63;
  *(f32x16u *)(p0 + 176l) = v62;
  *(f32x16u *)(p0 + 208l) = v61;
  *(f32x16u *)(p0 + 240l) = v60;
}
