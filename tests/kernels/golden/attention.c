/* r_2_4_8, C, 1 thread, opts VEC r2 8, VEC r3 8, GROUP r7 8 */
VECTOR(f32, 8)
#ifndef H_f32x8_splat
#define H_f32x8_splat
INL f32x8 f32x8_splat(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f32, 4)
VECTOR(f32, 2)
VECTOR(i8, 8)
#ifndef H_i8x8_splat
#define H_i8x8_splat
INL i8x8 i8x8_splat(i8 x) { return (i8x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i32, 8)
void r_2_4_8(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p3 = (f32 *)bufs[3];
  _Alignas(64) f32 l0[8];
  _Alignas(64) f32 l1[4];
  _Alignas(64) f32 l2[4];
  f32x8 v0 = f32x8_splat(0.0f);
  for (i64 r0 = 0; r0 < 2l; r0++) {
    i64 v1 = r0 * 32l;
    for (i64 r1 = 0; r1 < 4l; r1++) {
      i64 v2 = r1 * 8l;
      i64 v3 = v1 + v2;
      f32x8 v4 = *(const f32x8u *)(p1 + v3);
      for (i64 r6 = 0; r6 < 4l; r6++) {
        i64 v5 = r6 * 8l;
        i64 v6 = v5 + v1;
        f32x8 v7 = *(const f32x8u *)(p2 + v6);
        f32x8 v8 = v4 * v7;
        f32x8 v9 = v0 + v8;
        f32x4 v10 = __builtin_shufflevector(v9, v9, 0, 1, 2, 3);
        f32x4 v11 = __builtin_shufflevector(v9, v9, 4, 5, 6, 7);
        f32x4 v12 = v10 + v11;
        f32x2 v13 = __builtin_shufflevector(v12, v12, 0, 1);
        f32x2 v14 = __builtin_shufflevector(v12, v12, 2, 3);
        f32x2 v15 = v13 + v14;
        f32 v16 = v15[0] + v15[1];
        l2[r6] = v16;
      }
      f32 acc0 = (-__builtin_inff());
      for (i64 r8 = 0; r8 < 4l; r8++) {
        u8 v17 = r1 < r8;
        u8 v18 = v17 ? 0 : 1;
        f32 v19 = l2[r8];
        f32 v20 = v19 * 0.35355338f;
        f32 v21 = v18 ? v20 : (-__builtin_inff());
        f32 v22 = acc0;
        f32 v23 = v22 > v21 || v22 != v22 ? v22 : v21;
        acc0 = v23;
      }
      f32 v24 = acc0;
      f32 acc1 = 0.0f;
      for (i64 r5 = 0; r5 < 4l; r5++) {
        u8 v25 = r1 < r5;
        u8 v26 = v25 ? 0 : 1;
        f32 v27 = l2[r5];
        f32 v28 = v27 * 0.35355338f;
        f32 v29 = v26 ? v28 : (-__builtin_inff());
        f32 v30 = v29 - v24;
        u8 v31 = 90.0f < v30;
        f32 v32 = v31 ? 90.0f : v30;
        u8 v33 = v32 < (-105.0f);
        f32 v34 = v33 ? (-105.0f) : v32;
        f32 v35 = v34 * 1.442695f;
        f32 v36 = v35 + 12582912.0f;
        f32 v37 = v36 - 12582912.0f;
        f32 v38 = fma_f32(v37, (-0.69314575f), v34);
        f32 v39 = fma_f32(v37, (-1.4286068e-06f), v38);
        f32 v40 = 1.0f + v39;
        f32 v41 = 1.0f - v40;
        f32 v42 = v41 + v39;
        f32 v43 = v39 * v39;
        f32 v44 = fma_f32(0.0013946001f, v39, 0.00836864f);
        f32 v45 = fma_f32(v44, v39, 0.041666266f);
        f32 v46 = fma_f32(v45, v39, 0.16666521f);
        f32 v47 = fma_f32(v46, v39, 0.5f);
        f32 v48 = v43 * v47;
        f32 v49 = v42 + v48;
        f32 v50 = v40 + v49;
        u8 v51 = v30 != v30;
        f32 v52 = v51 ? 0.0f : v37;
        i32 v53 = i32_f32(v52);
        i32 v54 = (i32)(v53 >> 1);
        i32 v55 = v54 + 127;
        i32 v56 = (i32)((u32)v55 << 23);
        f32 v57 = f32_bits((u32)v56);
        f32 v58 = v50 * v57;
        i32 v59 = (i32)((u32)v53 - (u32)v54);
        i32 v60 = (i32)((u32)v59 + (u32)127);
        i32 v61 = (i32)((u32)v60 << 23);
        f32 v62 = f32_bits((u32)v61);
        f32 v63 = v58 * v62;
        f32 v64 = acc1;
        f32 v65 = fma_f32(v58, v62, v64);
        acc1 = v65;
        l1[r5] = v63;
      }
      f32 v66 = acc1;
      f32x8 acc2 = v0;
      for (i64 r4 = 0; r4 < 4l; r4++) {
        u8 v67 = r1 < r4;
        u8 v68 = v67 ? 0 : 1;
        i8x8 v69 = i8x8_splat((i8)-v68);
        f32 v70 = l1[r4];
        f32 v71 = v70 / v66;
        f32x8 v72 = f32x8_splat(v71);
        i64 v73 = r4 * 8l;
        i64 v74 = v1 + v73;
        f32x8 v75 = *(const f32x8u *)(p3 + v74);
        f32x8 v76 = v72 * v75;
        f32x8 v77 = (f32x8)((__builtin_convertvector(v69, i32x8) & (i32x8)v76) | (~__builtin_convertvector(v69, i32x8) & (i32x8)v0));
        f32x8 v78 = acc2;
        f32x8 v79 = v78 + v77;
        acc2 = v79;
      }
      f32x8 v80 = acc2;
      *(f32x8u *)(l0 + 0l) = v80;
      f32x8 v81 = *(const f32x8u *)(l0 + 0l);
      *(f32x8u *)(p0 + v3) = v81;
    }
  }
}
