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
void r_6_8(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x8 v0 = f32x8_splat((-104.66522f));
  f32x8 v1 = f32x8_splat(0.0f);
  f32x8 v2 = f32x8_splat(1.0f);
  f32x8 v3 = f32x8_splat(89.415985f);
  f32x8 v4 = f32x8_splat(1.442695f);
  f32x8 v5 = f32x8_splat(12583166.0f);
  f32x8 v6 = f32x8_splat((-1.4286068e-06f));
  f32x8 v7 = f32x8_splat((-0.69314575f));
  f32x8 v8 = f32x8_splat(0.00836864f);
  f32x8 v9 = f32x8_splat(0.16666521f);
  f32x8 v10 = f32x8_splat(0.0013946001f);
  f32x8 v11 = f32x8_splat(0.041666266f);
  f32x8 v12 = f32x8_splat(0.5f);
  i32x8 v13 = i32x8_splat(1);
  i32x8 v14 = i32x8_splat(23);
  _Alignas(64) f32 l0[8];
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i64 v15 = r0 * 8l;
    f32x8 v16 = *(const f32x8u *)(p1 + v15);
    f32x4 v17 = __builtin_shufflevector(v16, v16, 0, 1, 2, 3);
    f32x4 v18 = __builtin_shufflevector(v16, v16, 4, 5, 6, 7);
    f32x4 v19 = max_f32x4(v17, v18);
    f32x2 v20 = __builtin_shufflevector(v19, v19, 0, 1);
    f32x2 v21 = __builtin_shufflevector(v19, v19, 2, 3);
    f32x2 v22 = max_f32x2(v20, v21);
    f32 v23 = v22[0] > v22[1] || v22[0] != v22[0] ? v22[0] : v22[1];
    f32 v24 = (-__builtin_inff()) > v23 || (-__builtin_inff()) != (-__builtin_inff()) ? (-__builtin_inff()) : v23;
    f32x8 v25 = f32x8_splat(v24);
    f32x8 v26 = v16 - v25;
    i32x8 v27 = (i32x8)(v26 < v0);
    i32x8 v28 = (i32x8)(v3 < v26);
    f32x8 v29 = (f32x8)((v28 & (i32x8)v3) | (~v28 & (i32x8)v26));
    f32x8 v30 = (f32x8)((v27 & (i32x8)v1) | (~v27 & (i32x8)v29));
    f32x8 v31 = fma_f32x8(v30, v4, v5);
    f32x8 v32 = v31 - v5;
    f32x8 v33 = fma_f32x8(v32, v7, v30);
    f32x8 v34 = fma_f32x8(v32, v6, v33);
    f32x8 v35 = v2 + v34;
    f32x8 v36 = v34 * v34;
    f32x8 v37 = fma_f32x8(v8, v36, v9);
    f32x8 v38 = fma_f32x8(v10, v36, v11);
    f32x8 v39 = fma_f32x8(v38, v36, v12);
    f32x8 v40 = fma_f32x8(v37, v34, v39);
    f32x8 v41 = v2 - v35;
    f32x8 v42 = v41 + v34;
    f32x8 v43 = fma_f32x8(v36, v40, v42);
    f32x8 v44 = v35 + v43;
    i32x8 v45 = (i32x8)v31;
    i32x8 v46 = v45 >> v13;
    i32x8 v47 = (i32x8)((u32x8)v46 << (u32x8)v14);
    f32x8 v48 = (f32x8)v47;
    f32x8 v49 = v44 * v48;
    i32x8 v50 = (i32x8)((u32x8)v45 - (u32x8)v46);
    i32x8 v51 = (i32x8)((u32x8)v50 << (u32x8)v14);
    f32x8 v52 = (f32x8)v51;
    f32x8 v53 = v49 * v52;
    f32x8 v54 = (f32x8)((v27 & (i32x8)v1) | (~v27 & (i32x8)v53));
    f32x4 v55 = __builtin_shufflevector(v54, v54, 0, 1, 2, 3);
    f32x4 v56 = __builtin_shufflevector(v54, v54, 4, 5, 6, 7);
    f32x4 v57 = v55 + v56;
    f32x2 v58 = __builtin_shufflevector(v57, v57, 0, 1);
    f32x2 v59 = __builtin_shufflevector(v57, v57, 2, 3);
    f32x2 v60 = v58 + v59;
    f32 v61 = v60[0] + v60[1];
    f32 v62 = 0.0f + v61;
    *(f32x8u *)(l0 + 0l) = v54;
    f32x8 v63 = *(const f32x8u *)(l0 + 0l);
    f32x8 v64 = f32x8_splat(v62);
    f32x8 v65 = v63 / v64;
    *(f32x8u *)(p0 + v15) = v65;
  }
}
