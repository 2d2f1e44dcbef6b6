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
      for (i64 r8 = 0; r8 < 4l; r8++) {
        f32 v17 = acc1;
        u8 v18 = r1 < r8;
        u8 v19 = v18 ? 0 : 1;
        f32 v20 = l0[r8];
        f32 v21 = v20 * 0.35355338f;
        f32 v22 = v19 ? v21 : (-__builtin_inff());
        f32 v23 = v17 > v22 || v17 != v17 ? v17 : v22;
        acc1 = v23;
      }
      f32 acc2 = 0.0f;
      f32 v24 = acc1;
      for (i64 r5 = 0; r5 < 4l; r5++) {
        u8 v25 = r1 < r5;
        u8 v26 = v25 ? 0 : 1;
        f32 v27 = l0[r5];
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
        f32 v63 = acc2;
        f32 v64 = fma_f32(v58, v62, v63);
        acc2 = v64;
        f32 v65 = v58 * v62;
        l1[r5] = v65;
      }
      f32x8 acc3 = v0;
      f32 v66 = acc2;
      for (i64 r4 = 0; r4 < 4l; r4++) {
        f32x8 v67 = acc3;
        u8 v68 = r1 < r4;
        u8 v69 = v68 ? 0 : 1;
        i8x8 v70 = i8x8_splat((i8)-v69);
        f32 v71 = l1[r4];
        f32 v72 = v71 / v66;
        f32x8 v73 = f32x8_splat(v72);
        i64 v74 = r4 * 8l;
        i64 v75 = v1 + v74;
        f32x8 v76 = *(const f32x8u *)(p3 + v75);
        f32x8 v77 = v73 * v76;
        f32x8 v78 = (f32x8)((__builtin_convertvector(v70, i32x8) & (i32x8)v77) | (~__builtin_convertvector(v70, i32x8) & (i32x8)v0));
        f32x8 v79 = v67 + v78;
        acc3 = v79;
      }
      f32x8 v80 = acc3;
      *(f32x8u *)(l2 + 0l) = v80;
      f32x8 v81 = *(const f32x8u *)(l2 + 0l);
      *(f32x8u *)(p0 + v3) = v81;
    }
  }
}
