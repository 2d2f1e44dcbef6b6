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
  _Alignas(64) f32 l1[4];
  f32x8 v0 = f32x8_splat(0.0f);
  _Alignas(64) f32 l2[8];
  for (i64 r0 = 0; r0 < 2l; r0++) {
    i64 v1 = r0 * 32l;
    for (i64 r1 = 0; r1 < 4l; r1++) {
      i64 v2 = r1 * 8l;
      i64 v3 = v1 + v2;
      f32x8 v4 = *(const f32x8u *)(p1 + v3);
      for (i64 r6 = 0; r6 < 4l; r6++) {
        f32 acc0 = 0.0f;
        i64 v5 = r6 * 8l;
        i64 v6 = v5 + v1;
        f32x8 v7 = *(const f32x8u *)(p2 + v6);
        f32x8 v8 = v4 * v7;
        f32x4 v9 = __builtin_shufflevector(v8, v8, 0, 1, 2, 3);
        f32x4 v10 = __builtin_shufflevector(v8, v8, 4, 5, 6, 7);
        f32x4 v11 = v9 + v10;
        f32x2 v12 = __builtin_shufflevector(v11, v11, 0, 1);
        f32x2 v13 = __builtin_shufflevector(v11, v11, 2, 3);
        f32x2 v14 = v12 + v13;
        f32 v15 = v14[0] + v14[1];
        f32 v16 = 0.0f + v15;
        acc0 = v16;
        l0[r6] = v16;
      }
      f32 acc1 = (-__builtin_inff());
      i64 v17 = r1 + 1l;
      for (i64 r15 = 0; r15 < v17; r15++) {
        f32 v18 = acc1;
        f32 v19 = l0[r15];
        f32 v20 = v19 * 0.35355338f;
        f32 v21 = v18 > v20 || v18 != v18 ? v18 : v20;
        acc1 = v21;
      }
      f32 acc2 = 0.0f;
      f32 v22 = acc1;
      for (i64 r5 = 0; r5 < 4l; r5++) {
        i64 v23 = r5 * (-1l);
        i64 v24 = v23 + r1;
        u8 v25 = v24 < 0l;
        f32 v26 = l0[r5];
        f32 v27 = v26 * 0.35355338f;
        f32 v28 = v25 ? (-__builtin_inff()) : v27;
        f32 v29 = v28 - v22;
        u8 v30 = 90.0f < v29;
        f32 v31 = v30 ? 90.0f : v29;
        u8 v32 = v31 < (-105.0f);
        f32 v33 = v32 ? (-105.0f) : v31;
        f32 v34 = v33 * 1.442695f;
        f32 v35 = v34 + 12582912.0f;
        f32 v36 = v35 - 12582912.0f;
        f32 v37 = fma_f32(v36, (-0.69314575f), v33);
        f32 v38 = fma_f32(v36, (-1.4286068e-06f), v37);
        f32 v39 = 1.0f + v38;
        f32 v40 = 1.0f - v39;
        f32 v41 = v40 + v38;
        f32 v42 = v38 * v38;
        f32 v43 = fma_f32(0.0013946001f, v38, 0.00836864f);
        f32 v44 = fma_f32(v43, v38, 0.041666266f);
        f32 v45 = fma_f32(v44, v38, 0.16666521f);
        f32 v46 = fma_f32(v45, v38, 0.5f);
        f32 v47 = v42 * v46;
        f32 v48 = v41 + v47;
        f32 v49 = v39 + v48;
        u8 v50 = v29 != v29;
        f32 v51 = v50 ? 0.0f : v36;
        i32 v52 = i32_f32(v51);
        i32 v53 = (i32)(v52 >> 1);
        i32 v54 = v53 + 127;
        i32 v55 = (i32)((u32)v54 << 23);
        f32 v56 = f32_bits((u32)v55);
        f32 v57 = v49 * v56;
        i32 v58 = (i32)((u32)v52 - (u32)v53);
        i32 v59 = (i32)((u32)v58 + (u32)127);
        i32 v60 = (i32)((u32)v59 << 23);
        f32 v61 = f32_bits((u32)v60);
        f32 v62 = acc2;
        f32 v63 = fma_f32(v57, v61, v62);
        acc2 = v63;
        f32 v64 = v57 * v61;
        l1[r5] = v64;
      }
      f32x8 acc3 = v0;
      f32 v65 = acc2;
      for (i64 r16 = 0; r16 < v17; r16++) {
        f32 v66 = l1[r16];
        f32 v67 = v66 / v65;
        f32x8 v68 = f32x8_splat(v67);
        i64 v69 = r16 * 8l;
        i64 v70 = v1 + v69;
        f32x8 v71 = *(const f32x8u *)(p3 + v70);
        f32x8 v72 = acc3;
        f32x8 v73 = fma_f32x8(v68, v71, v72);
        acc3 = v73;
      }
      f32x8 v74 = acc3;
      *(f32x8u *)(l2 + 0l) = v74;
      f32x8 v75 = *(const f32x8u *)(l2 + 0l);
      *(f32x8u *)(p0 + v3) = v75;
    }
  }
}
