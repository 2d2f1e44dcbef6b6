/* r_2_4_8, C, 1 thread, opts VEC r2 8, VEC r3 8, GROUP r7 8 */
VECTOR(f32, 8)
#ifndef H_f32x8_splat
#define H_f32x8_splat
INL f32x8 f32x8_splat(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f32, 4)
VECTOR(f32, 2)
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
void r_2_4_8(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p3 = (f32 *)bufs[3];
  f32 *p0 = (f32 *)bufs[0];
  _Alignas(64) f32 l0[4];
  i32 v0 = (i32)u32_bits(12582912.0f);
  _Alignas(64) f32 l1[4];
  f32x8 v1 = f32x8_splat(0.0f);
  _Alignas(64) f32 l2[8];
  for (i64 r0 = 0; r0 < 2l; r0++) {
    i64 v2 = r0 * 32l;
    for (i64 r1 = 0; r1 < 4l; r1++) {
      i64 v3 = r1 * 8l;
      i64 v4 = v2 + v3;
      f32x8 v5 = *(const f32x8u *)(p1 + v4);
      for (i64 r6 = 0; r6 < 4l; r6++) {
        f32 acc0 = 0.0f;
        i64 v6 = r6 * 8l;
        i64 v7 = v6 + v2;
        f32x8 v8 = *(const f32x8u *)(p2 + v7);
        f32x8 v9 = v5 * v8;
        f32x4 v10 = __builtin_shufflevector(v9, v9, 0, 1, 2, 3);
        f32x4 v11 = __builtin_shufflevector(v9, v9, 4, 5, 6, 7);
        f32x4 v12 = v10 + v11;
        f32x2 v13 = __builtin_shufflevector(v12, v12, 0, 1);
        f32x2 v14 = __builtin_shufflevector(v12, v12, 2, 3);
        f32x2 v15 = v13 + v14;
        f32 v16 = v15[0] + v15[1];
        f32 v17 = 0.0f + v16;
        acc0 = v17;
        l0[r6] = v17;
      }
      f32 acc1 = (-__builtin_inff());
      i64 v18 = r1 + 1l;
      for (i64 r15 = 0; r15 < v18; r15++) {
        f32 v19 = acc1;
        f32 v20 = l0[r15];
        f32 v21 = v20 * 0.35355338f;
        f32 v22 = v19 > v21 || v19 != v19 ? v19 : v21;
        acc1 = v22;
      }
      f32 acc2 = 0.0f;
      f32 v23 = acc1;
      u8 v24 = v23 == (-__builtin_inff());
      f32 v25 = v24 ? 0.0f : v23;
      for (i64 r5 = 0; r5 < 4l; r5++) {
        i64 v26 = r5 * (-1l);
        i64 v27 = v26 + r1;
        u8 v28 = v27 < 0l;
        f32 v29 = l0[r5];
        f32 v30 = v29 * 0.35355338f;
        f32 v31 = v28 ? (-__builtin_inff()) : v30;
        f32 v32 = v31 - v25;
        u8 v33 = 90.0f < v32;
        f32 v34 = v33 ? 90.0f : v32;
        u8 v35 = v34 < (-105.0f);
        f32 v36 = v35 ? (-105.0f) : v34;
        f32 v37 = v36 * 1.442695f;
        f32 v38 = v37 + 12582912.0f;
        f32 v39 = v38 - 12582912.0f;
        f32 v40 = fma_f32(v39, (-0.69314575f), v36);
        f32 v41 = fma_f32(v39, (-1.4286068e-06f), v40);
        f32 v42 = 1.0f + v41;
        f32 v43 = 1.0f - v42;
        f32 v44 = v43 + v41;
        f32 v45 = v41 * v41;
        f32 v46 = fma_f32(0.0013946001f, v41, 0.00836864f);
        f32 v47 = fma_f32(v46, v41, 0.041666266f);
        f32 v48 = fma_f32(v47, v41, 0.16666521f);
        f32 v49 = fma_f32(v48, v41, 0.5f);
        f32 v50 = v45 * v49;
        f32 v51 = v44 + v50;
        f32 v52 = v42 + v51;
        i32 v53 = (i32)u32_bits(v38);
        i32 v54 = (i32)((u32)v53 - (u32)v0);
        i32 v55 = (i32)(v54 >> 1);
        i32 v56 = v55 + 127;
        i32 v57 = (i32)((u32)v56 << 23);
        f32 v58 = f32_bits((u32)v57);
        f32 v59 = v52 * v58;
        i32 v60 = (i32)((u32)v54 - (u32)v55);
        i32 v61 = (i32)((u32)v60 + (u32)127);
        i32 v62 = (i32)((u32)v61 << 23);
        f32 v63 = f32_bits((u32)v62);
        f32 v64 = acc2;
        f32 v65 = fma_f32(v59, v63, v64);
        acc2 = v65;
        f32 v66 = v59 * v63;
        l1[r5] = v66;
      }
      f32x8 acc3 = v1;
      for (i64 r16 = 0; r16 < v18; r16++) {
        f32 v67 = l1[r16];
        f32x8 v68 = f32x8_splat(v67);
        i64 v69 = r16 * 8l;
        i64 v70 = v2 + v69;
        f32x8 v71 = *(const f32x8u *)(p3 + v70);
        f32x8 v72 = acc3;
        f32x8 v73 = fma_f32x8(v68, v71, v72);
        acc3 = v73;
      }
      f32x8 v74 = acc3;
      *(f32x8u *)(l2 + 0l) = v74;
      f32x8 v75 = *(const f32x8u *)(l2 + 0l);
      f32 v76 = acc2;
      u8 v77 = v76 == 0.0f;
      f32 v78 = v77 ? 1.0f : v76;
      f32x8 v79 = f32x8_splat(v78);
      f32x8 v80 = v75 / v79;
      *(f32x8u *)(p0 + v4) = v80;
    }
  }
}
