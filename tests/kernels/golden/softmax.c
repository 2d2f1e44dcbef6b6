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
  f32x8 v0 = f32x8_splat(1.0f);
  f32x8 v1 = f32x8_splat(90.0f);
  f32x8 v2 = f32x8_splat((-105.0f));
  f32x8 v3 = f32x8_splat(1.442695f);
  f32x8 v4 = f32x8_splat(12582912.0f);
  f32x8 v5 = f32x8_splat((-1.4286068e-06f));
  f32x8 v6 = f32x8_splat((-0.69314575f));
  f32x8 v7 = f32x8_splat(0.0013946001f);
  f32x8 v8 = f32x8_splat(0.00836864f);
  f32x8 v9 = f32x8_splat(0.041666266f);
  f32x8 v10 = f32x8_splat(0.16666521f);
  f32x8 v11 = f32x8_splat(0.5f);
  i32 v12 = (i32)u32_bits(12582912.0f);
  i32x8 v13 = i32x8_splat(v12);
  i32x8 v14 = i32x8_splat(1);
  i32x8 v15 = i32x8_splat(127);
  i32x8 v16 = i32x8_splat(23);
  _Alignas(64) f32 l0[8];
  for (i64 r0 = 0; r0 < 6l; r0++) {
    f32 acc0 = (-__builtin_inff());
    i64 v17 = r0 * 8l;
    f32x8 v18 = *(const f32x8u *)(p1 + v17);
    f32x4 v19 = __builtin_shufflevector(v18, v18, 0, 1, 2, 3);
    f32x4 v20 = __builtin_shufflevector(v18, v18, 4, 5, 6, 7);
    i32x4 m21 = (i32x4)(v19 > v20) | (i32x4)(v19 != v19);
    f32x4 v21 = (f32x4)((m21 & (i32x4)v19) | (~m21 & (i32x4)v20));
    f32x2 v22 = __builtin_shufflevector(v21, v21, 0, 1);
    f32x2 v23 = __builtin_shufflevector(v21, v21, 2, 3);
    i32x2 m24 = (i32x2)(v22 > v23) | (i32x2)(v22 != v22);
    f32x2 v24 = (f32x2)((m24 & (i32x2)v22) | (~m24 & (i32x2)v23));
    f32 v25 = v24[0] > v24[1] || v24[0] != v24[0] ? v24[0] : v24[1];
    f32 v26 = (-__builtin_inff()) > v25 || (-__builtin_inff()) != (-__builtin_inff()) ? (-__builtin_inff()) : v25;
    acc0 = v26;
    f32 acc1 = 0.0f;
    f32x8 v27 = f32x8_splat(v26);
    f32x8 v28 = v18 - v27;
    i32x8 v29 = (i32x8)(v1 < v28);
    f32x8 v30 = (f32x8)((v29 & (i32x8)v1) | (~v29 & (i32x8)v28));
    i32x8 v31 = (i32x8)(v30 < v2);
    f32x8 v32 = (f32x8)((v31 & (i32x8)v2) | (~v31 & (i32x8)v30));
    f32x8 v33 = v32 * v3;
    f32x8 v34 = v33 + v4;
    f32x8 v35 = v34 - v4;
    f32x8 v36 = fma_f32x8(v35, v6, v32);
    f32x8 v37 = fma_f32x8(v35, v5, v36);
    f32x8 v38 = v0 + v37;
    f32x8 v39 = v0 - v38;
    f32x8 v40 = v39 + v37;
    f32x8 v41 = v37 * v37;
    f32x8 v42 = fma_f32x8(v7, v37, v8);
    f32x8 v43 = fma_f32x8(v42, v37, v9);
    f32x8 v44 = fma_f32x8(v43, v37, v10);
    f32x8 v45 = fma_f32x8(v44, v37, v11);
    f32x8 v46 = v41 * v45;
    f32x8 v47 = v40 + v46;
    f32x8 v48 = v38 + v47;
    i32x8 v49 = (i32x8)v34;
    i32x8 v50 = (i32x8)((u32x8)v49 - (u32x8)v13);
    i32x8 v51 = v50 >> v14;
    i32x8 v52 = (i32x8)((u32x8)v51 + (u32x8)v15);
    i32x8 v53 = (i32x8)((u32x8)v52 << (u32x8)v16);
    f32x8 v54 = (f32x8)v53;
    f32x8 v55 = v48 * v54;
    i32x8 v56 = (i32x8)((u32x8)v50 - (u32x8)v51);
    i32x8 v57 = (i32x8)((u32x8)v56 + (u32x8)v15);
    i32x8 v58 = (i32x8)((u32x8)v57 << (u32x8)v16);
    f32x8 v59 = (f32x8)v58;
    f32x8 v60 = v55 * v59;
    f32x4 v61 = __builtin_shufflevector(v60, v60, 0, 1, 2, 3);
    f32x4 v62 = __builtin_shufflevector(v60, v60, 4, 5, 6, 7);
    f32x4 v63 = v61 + v62;
    f32x2 v64 = __builtin_shufflevector(v63, v63, 0, 1);
    f32x2 v65 = __builtin_shufflevector(v63, v63, 2, 3);
    f32x2 v66 = v64 + v65;
    f32 v67 = v66[0] + v66[1];
    f32 v68 = 0.0f + v67;
    acc1 = v68;
    *(f32x8u *)(l0 + 0l) = v60;
    f32x8 v69 = *(const f32x8u *)(l0 + 0l);
    f32x8 v70 = f32x8_splat(v68);
    f32x8 v71 = v69 / v70;
    *(f32x8u *)(p0 + v17) = v71;
  }
}
