/* r_2_4_8, C, 1 thread, opts VEC r2 8, VEC r3 8, GROUP r7 8, UNROLL r4 4 */
VECTOR(f32, 8)
#ifndef H_f32x8_splat
#define H_f32x8_splat
INL f32x8 f32x8_splat(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f32, 4)
VECTOR(f32, 2)
VECTOR(i32, 8)
#ifndef H_i32x8_splat
#define H_i32x8_splat
INL i32x8 i32x8_splat(i32 x) { return (i32x8){x, x, x, x, x, x, x, x}; }
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
    f32x8 v2 = *(const f32x8u *)(p3 + v1);
    i64 v3 = v1 + 8l;
    f32x8 v4 = *(const f32x8u *)(p3 + v3);
    i64 v5 = v1 + 16l;
    f32x8 v6 = *(const f32x8u *)(p3 + v5);
    i64 v7 = v1 + 24l;
    f32x8 v8 = *(const f32x8u *)(p3 + v7);
    for (i64 r1 = 0; r1 < 4l; r1++) {
      i64 v9 = r1 + 1l;
      i64 v10 = r1 * 8l;
      i64 v11 = v1 + v10;
      f32x8 v12 = *(const f32x8u *)(p1 + v11);
      for (i64 r20 = 0; r20 < v9; r20++) {
        i64 v13 = r20 * 8l;
        i64 v14 = v1 + v13;
        f32x8 v15 = *(const f32x8u *)(p2 + v14);
        f32x8 v16 = v12 * v15;
        f32x4 v17 = __builtin_shufflevector(v16, v16, 0, 1, 2, 3);
        f32x4 v18 = __builtin_shufflevector(v16, v16, 4, 5, 6, 7);
        f32x4 v19 = v17 + v18;
        f32x2 v20 = __builtin_shufflevector(v19, v19, 0, 1);
        f32x2 v21 = __builtin_shufflevector(v19, v19, 2, 3);
        f32x2 v22 = v20 + v21;
        f32 v23 = v22[0] + v22[1];
        f32 v24 = 0.0f + v23;
        l0[r20] = v24;
      }
      f32 acc0 = (-__builtin_inff());
      for (i64 r19 = 0; r19 < v9; r19++) {
        f32 v25 = acc0;
        f32 v26 = l0[r19];
        f32 v27 = v26 * 0.35355338f;
        f32 v28 = v25 > v27 || v25 != v25 ? v25 : v27;
        acc0 = v28;
      }
      f32 acc1 = 0.0f;
      f32 v29 = acc0;
      u8 v30 = v29 == (-__builtin_inff());
      f32 v31 = v30 ? 0.0f : v29;
      for (i64 r17 = 0; r17 < v9; r17++) {
        f32 v32 = acc1;
        f32 v33 = l0[r17];
        f32 v34 = v33 * 0.35355338f;
        f32 v35 = v34 - v31;
        u8 v36 = v35 < (-104.66522f);
        u8 v37 = 89.415985f < v35;
        f32 v38 = v37 ? 89.415985f : v35;
        f32 v39 = v36 ? 0.0f : v38;
        f32 v40 = fma_f32(v39, 1.442695f, 12583166.0f);
        f32 v41 = v40 - 12583166.0f;
        f32 v42 = fma_f32(v41, (-0.69314575f), v39);
        f32 v43 = fma_f32(v41, (-1.4286068e-06f), v42);
        f32 v44 = 1.0f + v43;
        f32 v45 = v43 * v43;
        f32 v46 = fma_f32(0.00836864f, v45, 0.16666521f);
        f32 v47 = fma_f32(0.0013946001f, v45, 0.041666266f);
        f32 v48 = fma_f32(v47, v45, 0.5f);
        f32 v49 = fma_f32(v46, v43, v48);
        f32 v50 = 1.0f - v44;
        f32 v51 = v50 + v43;
        f32 v52 = fma_f32(v45, v49, v51);
        f32 v53 = v44 + v52;
        i32 v54 = (i32)u32_bits(v40);
        i32 v55 = (i32)(v54 >> 1);
        i32 v56 = (i32)((u32)v55 << 23);
        f32 v57 = f32_bits((u32)v56);
        f32 v58 = v53 * v57;
        i32 v59 = (i32)((u32)v54 - (u32)v55);
        i32 v60 = (i32)((u32)v59 << 23);
        f32 v61 = f32_bits((u32)v60);
        f32 v62 = v58 * v61;
        f32 v63 = v36 ? 0.0f : v62;
        f32 v64 = v32 + v63;
        acc1 = v64;
        l1[r17] = v63;
      }
      i64 v65 = r1 * (-1l);
      i64 v66 = v65 + 3l;
      for (i64 r18 = 0; r18 < v66; r18++) {
        f32 v67 = acc1;
        f32 v68 = v67 + 0.0f;
        acc1 = v68;
        i64 v69 = r18 + r1;
        i64 v70 = v69 + 1l;
        l1[v70] = 0.0f;
      }
      f32 v71 = l1[0l];
      f32x8 v72 = f32x8_splat(v71);
      f32x8 v73 = v72 * v2;
      f32x8 v74 = (f32x8)((i32x8_splat((i32)-0) & (i32x8)v0) | (~i32x8_splat((i32)-0) & (i32x8)v73));
      f32x8 v75 = v0 + v74;
      u8 v76 = r1 < 1l;
      f32 v77 = l1[1l];
      f32x8 v78 = f32x8_splat(v77);
      f32x8 v79 = v78 * v4;
      f32x8 v80 = (f32x8)((i32x8_splat((i32)-v76) & (i32x8)v0) | (~i32x8_splat((i32)-v76) & (i32x8)v79));
      f32x8 v81 = v75 + v80;
      u8 v82 = r1 < 2l;
      f32 v83 = l1[2l];
      f32x8 v84 = f32x8_splat(v83);
      f32x8 v85 = v84 * v6;
      f32x8 v86 = (f32x8)((i32x8_splat((i32)-v82) & (i32x8)v0) | (~i32x8_splat((i32)-v82) & (i32x8)v85));
      f32x8 v87 = v81 + v86;
      u8 v88 = r1 < 3l;
      f32 v89 = l1[3l];
      f32x8 v90 = f32x8_splat(v89);
      f32x8 v91 = v90 * v8;
      f32x8 v92 = (f32x8)((i32x8_splat((i32)-v88) & (i32x8)v0) | (~i32x8_splat((i32)-v88) & (i32x8)v91));
      f32x8 v93 = v87 + v92;
      *(f32x8u *)(l2 + 0l) = v93;
      f32x8 v94 = *(const f32x8u *)(l2 + 0l);
      f32 v95 = acc1;
      u8 v96 = v95 == 0.0f;
      f32 v97 = v96 ? 1.0f : v95;
      f32x8 v98 = f32x8_splat(v97);
      f32x8 v99 = v94 / v98;
      *(f32x8u *)(p0 + v11) = v99;
    }
  }
}
