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
      i64 v2 = r1 + 1l;
      i64 v3 = r1 * 8l;
      i64 v4 = v1 + v3;
      f32x8 v5 = *(const f32x8u *)(p1 + v4);
      for (i64 r18 = 0; r18 < v2; r18++) {
        i64 v6 = r18 * 8l;
        i64 v7 = v1 + v6;
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
        l0[r18] = v17;
      }
      f32 acc0 = (-__builtin_inff());
      for (i64 r17 = 0; r17 < v2; r17++) {
        f32 v18 = acc0;
        f32 v19 = l0[r17];
        f32 v20 = v19 * 0.35355338f;
        f32 v21 = v18 > v20 || v18 != v18 ? v18 : v20;
        acc0 = v21;
      }
      f32 acc1 = 0.0f;
      f32 v22 = acc0;
      u8 v23 = v22 == (-__builtin_inff());
      f32 v24 = v23 ? 0.0f : v22;
      for (i64 r16 = 0; r16 < v2; r16++) {
        f32 v25 = acc1;
        f32 v26 = l0[r16];
        f32 v27 = v26 * 0.35355338f;
        f32 v28 = v27 - v24;
        u8 v29 = v28 < (-104.0f);
        u8 v30 = 90.0f < v28;
        f32 v31 = v30 ? 90.0f : v28;
        f32 v32 = v29 ? 0.0f : v31;
        f32 v33 = fma_f32(v32, 1.442695f, 12583166.0f);
        f32 v34 = v33 - 12583166.0f;
        f32 v35 = fma_f32(v34, (-0.69314575f), v32);
        f32 v36 = fma_f32(v34, (-1.4286068e-06f), v35);
        f32 v37 = 1.0f + v36;
        f32 v38 = v36 * v36;
        f32 v39 = fma_f32(0.0013946001f, v36, 0.00836864f);
        f32 v40 = fma_f32(v39, v36, 0.041666266f);
        f32 v41 = fma_f32(v40, v36, 0.16666521f);
        f32 v42 = fma_f32(v41, v36, 0.5f);
        f32 v43 = 1.0f - v37;
        f32 v44 = v43 + v36;
        f32 v45 = fma_f32(v38, v42, v44);
        f32 v46 = v37 + v45;
        i32 v47 = (i32)u32_bits(v33);
        i32 v48 = (i32)(v47 >> 1);
        i32 v49 = (i32)((u32)v48 << 23);
        f32 v50 = f32_bits((u32)v49);
        f32 v51 = v46 * v50;
        i32 v52 = (i32)((u32)v47 - (u32)v48);
        i32 v53 = (i32)((u32)v52 << 23);
        f32 v54 = f32_bits((u32)v53);
        f32 v55 = v51 * v54;
        f32 v56 = v29 ? 0.0f : v55;
        f32 v57 = v25 + v56;
        acc1 = v57;
        l1[r16] = v56;
      }
      f32x8 acc2 = v0;
      for (i64 r15 = 0; r15 < v2; r15++) {
        f32 v58 = l1[r15];
        f32x8 v59 = f32x8_splat(v58);
        i64 v60 = r15 * 8l;
        i64 v61 = v1 + v60;
        f32x8 v62 = *(const f32x8u *)(p3 + v61);
        f32x8 v63 = acc2;
        f32x8 v64 = fma_f32x8(v59, v62, v63);
        acc2 = v64;
      }
      f32x8 v65 = acc2;
      *(f32x8u *)(l2 + 0l) = v65;
      f32x8 v66 = *(const f32x8u *)(l2 + 0l);
      f32 v67 = acc1;
      u8 v68 = v67 == 0.0f;
      f32 v69 = v68 ? 1.0f : v67;
      f32x8 v70 = f32x8_splat(v69);
      f32x8 v71 = v66 / v70;
      *(f32x8u *)(p0 + v4) = v71;
    }
  }
}
