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
      i64 v3 = r1 + 1l;
      i64 v4 = r1 * 8l;
      i64 v5 = v2 + v4;
      f32x8 v6 = *(const f32x8u *)(p1 + v5);
      for (i64 r18 = 0; r18 < v3; r18++) {
        i64 v7 = r18 * 8l;
        i64 v8 = v2 + v7;
        f32x8 v9 = *(const f32x8u *)(p2 + v8);
        f32x8 v10 = v6 * v9;
        f32x4 v11 = __builtin_shufflevector(v10, v10, 0, 1, 2, 3);
        f32x4 v12 = __builtin_shufflevector(v10, v10, 4, 5, 6, 7);
        f32x4 v13 = v11 + v12;
        f32x2 v14 = __builtin_shufflevector(v13, v13, 0, 1);
        f32x2 v15 = __builtin_shufflevector(v13, v13, 2, 3);
        f32x2 v16 = v14 + v15;
        f32 v17 = v16[0] + v16[1];
        f32 v18 = 0.0f + v17;
        l0[r18] = v18;
      }
      f32 acc0 = (-__builtin_inff());
      for (i64 r17 = 0; r17 < v3; r17++) {
        f32 v19 = acc0;
        f32 v20 = l0[r17];
        f32 v21 = v20 * 0.35355338f;
        f32 v22 = v19 > v21 || v19 != v19 ? v19 : v21;
        acc0 = v22;
      }
      f32 acc1 = 0.0f;
      f32 v23 = acc0;
      u8 v24 = v23 == (-__builtin_inff());
      f32 v25 = v24 ? 0.0f : v23;
      for (i64 r16 = 0; r16 < v3; r16++) {
        f32 v26 = acc1;
        f32 v27 = l0[r16];
        f32 v28 = v27 * 0.35355338f;
        f32 v29 = v28 - v25;
        u8 v30 = v29 < (-104.0f);
        u8 v31 = 90.0f < v29;
        f32 v32 = v31 ? 90.0f : v29;
        f32 v33 = v30 ? 0.0f : v32;
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
        i32 v50 = (i32)u32_bits(v35);
        i32 v51 = (i32)((u32)v50 - (u32)v0);
        i32 v52 = (i32)(v51 >> 1);
        i32 v53 = v52 + 127;
        i32 v54 = (i32)((u32)v53 << 23);
        f32 v55 = f32_bits((u32)v54);
        f32 v56 = v49 * v55;
        i32 v57 = (i32)((u32)v51 - (u32)v52);
        i32 v58 = (i32)((u32)v57 + (u32)127);
        i32 v59 = (i32)((u32)v58 << 23);
        f32 v60 = f32_bits((u32)v59);
        f32 v61 = v56 * v60;
        f32 v62 = v30 ? 0.0f : v61;
        f32 v63 = v26 + v62;
        acc1 = v63;
        l1[r16] = v62;
      }
      f32x8 acc2 = v1;
      for (i64 r15 = 0; r15 < v3; r15++) {
        f32 v64 = l1[r15];
        f32x8 v65 = f32x8_splat(v64);
        i64 v66 = r15 * 8l;
        i64 v67 = v2 + v66;
        f32x8 v68 = *(const f32x8u *)(p3 + v67);
        f32x8 v69 = acc2;
        f32x8 v70 = fma_f32x8(v65, v68, v69);
        acc2 = v70;
      }
      f32x8 v71 = acc2;
      *(f32x8u *)(l2 + 0l) = v71;
      f32x8 v72 = *(const f32x8u *)(l2 + 0l);
      f32 v73 = acc1;
      u8 v74 = v73 == 0.0f;
      f32 v75 = v74 ? 1.0f : v73;
      f32x8 v76 = f32x8_splat(v75);
      f32x8 v77 = v72 / v76;
      *(f32x8u *)(p0 + v5) = v77;
    }
  }
}
