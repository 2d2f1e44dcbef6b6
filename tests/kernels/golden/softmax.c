/* r_6_8, C, 1 thread, opts VEC r1 8, GROUP r3 8, GROUP r2 8 */
VECTOR(f32, 8)
#ifndef H_f32x8_splat
#define H_f32x8_splat
INL f32x8 f32x8_splat(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i32, 8)
#ifndef H_i32x8_splat
#define H_i32x8_splat
INL i32x8 i32x8_splat(i32 x) { return (i32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f32, 4)
VECTOR(i32, 4)
VECTOR(f32, 2)
VECTOR(i32, 2)
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
void r_6_8(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x8 v0 = f32x8_splat((-104.0f));
  f32x8 v1 = f32x8_splat(0.0f);
  f32x8 v2 = f32x8_splat(1.0f);
  f32x8 v3 = f32x8_splat(90.0f);
  f32x8 v4 = f32x8_splat(1.442695f);
  f32x8 v5 = f32x8_splat(12582912.0f);
  f32x8 v6 = f32x8_splat((-1.4286068e-06f));
  f32x8 v7 = f32x8_splat((-0.69314575f));
  f32x8 v8 = f32x8_splat(0.0013946001f);
  f32x8 v9 = f32x8_splat(0.00836864f);
  f32x8 v10 = f32x8_splat(0.041666266f);
  f32x8 v11 = f32x8_splat(0.16666521f);
  f32x8 v12 = f32x8_splat(0.5f);
  i32 v13 = (i32)u32_bits(12582912.0f);
  i32x8 v14 = i32x8_splat(v13);
  i32x8 v15 = i32x8_splat(1);
  i32x8 v16 = i32x8_splat(127);
  i32x8 v17 = i32x8_splat(23);
  _Alignas(64) f32 l0[8];
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i64 v18 = r0 * 8l;
    f32x8 v19 = *(const f32x8u *)(p1 + v18);
    f32x4 v20 = __builtin_shufflevector(v19, v19, 0, 1, 2, 3);
    f32x4 v21 = __builtin_shufflevector(v19, v19, 4, 5, 6, 7);
    i32x4 m22 = (i32x4)(v20 > v21) | (i32x4)(v20 != v20);
    f32x4 v22 = (f32x4)((m22 & (i32x4)v20) | (~m22 & (i32x4)v21));
    f32x2 v23 = __builtin_shufflevector(v22, v22, 0, 1);
    f32x2 v24 = __builtin_shufflevector(v22, v22, 2, 3);
    i32x2 m25 = (i32x2)(v23 > v24) | (i32x2)(v23 != v23);
    f32x2 v25 = (f32x2)((m25 & (i32x2)v23) | (~m25 & (i32x2)v24));
    f32 v26 = v25[0] > v25[1] || v25[0] != v25[0] ? v25[0] : v25[1];
    f32 v27 = (-__builtin_inff()) > v26 || (-__builtin_inff()) != (-__builtin_inff()) ? (-__builtin_inff()) : v26;
    f32x8 v28 = f32x8_splat(v27);
    f32x8 v29 = v19 - v28;
    i32x8 v30 = (i32x8)(v29 < v0);
    i32x8 v31 = (i32x8)(v3 < v29);
    f32x8 v32 = (f32x8)((v31 & (i32x8)v3) | (~v31 & (i32x8)v29));
    f32x8 v33 = (f32x8)((v30 & (i32x8)v1) | (~v30 & (i32x8)v32));
    f32x8 v34 = v33 * v4;
    f32x8 v35 = v34 + v5;
    f32x8 v36 = v35 - v5;
    f32x8 v37 = fma_f32x8(v36, v7, v33);
    f32x8 v38 = fma_f32x8(v36, v6, v37);
    f32x8 v39 = v2 + v38;
    f32x8 v40 = v2 - v39;
    f32x8 v41 = v40 + v38;
    f32x8 v42 = v38 * v38;
    f32x8 v43 = fma_f32x8(v8, v38, v9);
    f32x8 v44 = fma_f32x8(v43, v38, v10);
    f32x8 v45 = fma_f32x8(v44, v38, v11);
    f32x8 v46 = fma_f32x8(v45, v38, v12);
    f32x8 v47 = v42 * v46;
    f32x8 v48 = v41 + v47;
    f32x8 v49 = v39 + v48;
    i32x8 v50 = (i32x8)v35;
    i32x8 v51 = (i32x8)((u32x8)v50 - (u32x8)v14);
    i32x8 v52 = v51 >> v15;
    i32x8 v53 = (i32x8)((u32x8)v52 + (u32x8)v16);
    i32x8 v54 = (i32x8)((u32x8)v53 << (u32x8)v17);
    f32x8 v55 = (f32x8)v54;
    f32x8 v56 = v49 * v55;
    i32x8 v57 = (i32x8)((u32x8)v51 - (u32x8)v52);
    i32x8 v58 = (i32x8)((u32x8)v57 + (u32x8)v16);
    i32x8 v59 = (i32x8)((u32x8)v58 << (u32x8)v17);
    f32x8 v60 = (f32x8)v59;
    f32x8 v61 = v56 * v60;
    f32x8 v62 = (f32x8)((v30 & (i32x8)v1) | (~v30 & (i32x8)v61));
    f32x4 v63 = __builtin_shufflevector(v62, v62, 0, 1, 2, 3);
    f32x4 v64 = __builtin_shufflevector(v62, v62, 4, 5, 6, 7);
    f32x4 v65 = v63 + v64;
    f32x2 v66 = __builtin_shufflevector(v65, v65, 0, 1);
    f32x2 v67 = __builtin_shufflevector(v65, v65, 2, 3);
    f32x2 v68 = v66 + v67;
    f32 v69 = v68[0] + v68[1];
    f32 v70 = 0.0f + v69;
    *(f32x8u *)(l0 + 0l) = v62;
    f32x8 v71 = *(const f32x8u *)(l0 + 0l);
    f32x8 v72 = f32x8_splat(v70);
    f32x8 v73 = v71 / v72;
    *(f32x8u *)(p0 + v18) = v73;
  }
}
