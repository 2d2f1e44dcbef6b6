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
  f32x8 v0 = f32x8_splat(1.0f);
  f32x8 v1 = f32x8_splat((-105.35837f));
  f32x8 v2 = f32x8_splat(1.442695f);
  f32x8 v3 = f32x8_splat(12583064.0f);
  f32x8 v4 = f32x8_splat((-1.4286068e-06f));
  f32x8 v5 = f32x8_splat((-0.69314575f));
  f32x8 v6 = f32x8_splat(0.00836864f);
  f32x8 v7 = f32x8_splat(0.16666521f);
  f32x8 v8 = f32x8_splat(0.0013946001f);
  f32x8 v9 = f32x8_splat(0.041666266f);
  f32x8 v10 = f32x8_splat(0.5f);
  i32x8 v11 = i32x8_splat(23);
  f32x8 v12 = f32x8_splat(2.9802322e-08f);
  _Alignas(64) f32 l0[8];
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i64 v13 = r0 * 8l;
    f32x8 v14 = *(const f32x8u *)(p1 + v13);
    f32x4 v15 = __builtin_shufflevector(v14, v14, 0, 1, 2, 3);
    f32x4 v16 = __builtin_shufflevector(v14, v14, 4, 5, 6, 7);
    f32x4 v17 = max_f32x4(v15, v16);
    f32x2 v18 = __builtin_shufflevector(v17, v17, 0, 1);
    f32x2 v19 = __builtin_shufflevector(v17, v17, 2, 3);
    f32x2 v20 = max_f32x2(v18, v19);
    f32 v21 = v20[0] > v20[1] || v20[0] != v20[0] ? v20[0] : v20[1];
    f32 v22 = (-__builtin_inff()) > v21 || (-__builtin_inff()) != (-__builtin_inff()) ? (-__builtin_inff()) : v21;
    f32x8 v23 = f32x8_splat(v22);
    f32x8 v24 = v14 - v23;
    i32x8 v25 = (i32x8)(v24 < v1);
    f32x8 v26 = (f32x8)((v25 & (i32x8)v1) | (~v25 & (i32x8)v24));
    f32x8 v27 = fma_f32x8(v26, v2, v3);
    f32x8 v28 = v27 - v3;
    f32x8 v29 = fma_f32x8(v28, v5, v26);
    f32x8 v30 = fma_f32x8(v28, v4, v29);
    f32x8 v31 = v0 + v30;
    f32x8 v32 = v30 * v30;
    f32x8 v33 = fma_f32x8(v6, v32, v7);
    f32x8 v34 = fma_f32x8(v8, v32, v9);
    f32x8 v35 = fma_f32x8(v34, v32, v10);
    f32x8 v36 = fma_f32x8(v33, v30, v35);
    f32x8 v37 = v0 - v31;
    f32x8 v38 = v37 + v30;
    f32x8 v39 = fma_f32x8(v32, v36, v38);
    f32x8 v40 = v31 + v39;
    i32x8 v41 = (i32x8)v27;
    i32x8 v42 = (i32x8)((u32x8)v41 << (u32x8)v11);
    f32x8 v43 = (f32x8)v42;
    f32x8 v44 = v40 * v43;
    f32x8 v45 = v44 * v12;
    f32x4 v46 = __builtin_shufflevector(v45, v45, 0, 1, 2, 3);
    f32x4 v47 = __builtin_shufflevector(v45, v45, 4, 5, 6, 7);
    f32x4 v48 = v46 + v47;
    f32x2 v49 = __builtin_shufflevector(v48, v48, 0, 1);
    f32x2 v50 = __builtin_shufflevector(v48, v48, 2, 3);
    f32x2 v51 = v49 + v50;
    f32 v52 = v51[0] + v51[1];
    f32 v53 = 0.0f + v52;
    *(f32x8u *)(l0 + 0l) = v45;
    f32x8 v54 = *(const f32x8u *)(l0 + 0l);
    f32x8 v55 = f32x8_splat(v53);
    f32x8 v56 = v54 / v55;
    *(f32x8u *)(p0 + v13) = v56;
  }
}
