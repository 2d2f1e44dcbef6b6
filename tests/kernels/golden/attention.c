/* r_2_4_8, C, 1 thread, opts VEC r2 8, VEC r3 8, GROUP r7 8, UNROLL r4 4 */
VECTOR(f32, 8)
#ifndef H_f32x8_splat
#define H_f32x8_splat
INL f32x8 f32x8_splat(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i8, 8)
#ifndef H_i8x8_splat
#define H_i8x8_splat
INL i8x8 i8x8_splat(i8 x) { return (i8x8){x, x, x, x, x, x, x, x}; }
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
  i8x8 v1 = i8x8_splat((i8)-0);
  _Alignas(64) f32 l2[8];
  for (i64 r0 = 0; r0 < 2l; r0++) {
    i64 v2 = r0 * 32l;
    f32x8 v3 = *(const f32x8u *)(p3 + v2);
    i64 v4 = v2 + 8l;
    f32x8 v5 = *(const f32x8u *)(p3 + v4);
    i64 v6 = v2 + 16l;
    f32x8 v7 = *(const f32x8u *)(p3 + v6);
    i64 v8 = v2 + 24l;
    f32x8 v9 = *(const f32x8u *)(p3 + v8);
    for (i64 r1 = 0; r1 < 4l; r1++) {
      i64 v10 = r1 + 1l;
      i64 v11 = r1 * 8l;
      i64 v12 = v2 + v11;
      f32x8 v13 = *(const f32x8u *)(p1 + v12);
      for (i64 r20 = 0; r20 < v10; r20++) {
        i64 v14 = r20 * 8l;
        i64 v15 = v2 + v14;
        f32x8 v16 = *(const f32x8u *)(p2 + v15);
        f32x8 v17 = v13 * v16;
        f32x4 v18 = __builtin_shufflevector(v17, v17, 0, 1, 2, 3);
        f32x4 v19 = __builtin_shufflevector(v17, v17, 4, 5, 6, 7);
        f32x4 v20 = v18 + v19;
        f32x2 v21 = __builtin_shufflevector(v20, v20, 0, 1);
        f32x2 v22 = __builtin_shufflevector(v20, v20, 2, 3);
        f32x2 v23 = v21 + v22;
        f32 v24 = v23[0] + v23[1];
        f32 v25 = 0.0f + v24;
        l0[r20] = v25;
      }
      f32 acc0 = (-__builtin_inff());
      for (i64 r19 = 0; r19 < v10; r19++) {
        f32 v26 = acc0;
        f32 v27 = l0[r19];
        f32 v28 = v27 * 0.35355338f;
        f32 v29 = v26 > v28 || v26 != v26 ? v26 : v28;
        acc0 = v29;
      }
      f32 acc1 = 0.0f;
      f32 v30 = acc0;
      u8 v31 = v30 == (-__builtin_inff());
      f32 v32 = v31 ? 0.0f : v30;
      for (i64 r17 = 0; r17 < v10; r17++) {
        f32 v33 = acc1;
        f32 v34 = l0[r17];
        f32 v35 = v34 * 0.35355338f;
        f32 v36 = v35 - v32;
        u8 v37 = v36 < (-104.0f);
        u8 v38 = 90.0f < v36;
        f32 v39 = v38 ? 90.0f : v36;
        f32 v40 = v37 ? 0.0f : v39;
        f32 v41 = fma_f32(v40, 1.442695f, 12583166.0f);
        f32 v42 = v41 - 12583166.0f;
        f32 v43 = fma_f32(v42, (-0.69314575f), v40);
        f32 v44 = fma_f32(v42, (-1.4286068e-06f), v43);
        f32 v45 = 1.0f + v44;
        f32 v46 = v44 * v44;
        f32 v47 = fma_f32(0.0013946001f, v44, 0.00836864f);
        f32 v48 = fma_f32(v47, v44, 0.041666266f);
        f32 v49 = fma_f32(v48, v44, 0.16666521f);
        f32 v50 = fma_f32(v49, v44, 0.5f);
        f32 v51 = 1.0f - v45;
        f32 v52 = v51 + v44;
        f32 v53 = fma_f32(v46, v50, v52);
        f32 v54 = v45 + v53;
        i32 v55 = (i32)u32_bits(v41);
        i32 v56 = (i32)(v55 >> 1);
        i32 v57 = (i32)((u32)v56 << 23);
        f32 v58 = f32_bits((u32)v57);
        f32 v59 = v54 * v58;
        i32 v60 = (i32)((u32)v55 - (u32)v56);
        i32 v61 = (i32)((u32)v60 << 23);
        f32 v62 = f32_bits((u32)v61);
        f32 v63 = v59 * v62;
        f32 v64 = v37 ? 0.0f : v63;
        f32 v65 = v33 + v64;
        acc1 = v65;
        l1[r17] = v64;
      }
      i64 v66 = r1 * (-1l);
      i64 v67 = v66 + 3l;
      for (i64 r18 = 0; r18 < v67; r18++) {
        f32 v68 = acc1;
        f32 v69 = v68 + 0.0f;
        acc1 = v69;
        i64 v70 = r18 + r1;
        i64 v71 = v70 + 1l;
        l1[v71] = 0.0f;
      }
      f32 v72 = l1[0l];
      f32x8 v73 = f32x8_splat(v72);
      f32x8 v74 = v73 * v3;
      f32x8 v75 = (f32x8)((i32x8_splat((i32)-0) & (i32x8)v0) | (~i32x8_splat((i32)-0) & (i32x8)v74));
      f32x8 v76 = v0 + v75;
      u8 v77 = r1 < 1l;
      i8x8 v78 = i8x8_splat((i8)-v77);
      f32 v79 = l1[1l];
      f32x8 v80 = f32x8_splat(v79);
      f32x8 v81 = v80 * v5;
      f32x8 v82 = (f32x8)((i32x8_splat((i32)-v77) & (i32x8)v0) | (~i32x8_splat((i32)-v77) & (i32x8)v81));
      f32x8 v83 = v76 + v82;
      u8 v84 = r1 < 2l;
      i8x8 v85 = i8x8_splat((i8)-v84);
      f32 v86 = l1[2l];
      f32x8 v87 = f32x8_splat(v86);
      f32x8 v88 = v87 * v7;
      f32x8 v89 = (f32x8)((i32x8_splat((i32)-v84) & (i32x8)v0) | (~i32x8_splat((i32)-v84) & (i32x8)v88));
      f32x8 v90 = v83 + v89;
      u8 v91 = r1 < 3l;
      i8x8 v92 = i8x8_splat((i8)-v91);
      f32 v93 = l1[3l];
      f32x8 v94 = f32x8_splat(v93);
      f32x8 v95 = v94 * v9;
      f32x8 v96 = (f32x8)((i32x8_splat((i32)-v91) & (i32x8)v0) | (~i32x8_splat((i32)-v91) & (i32x8)v95));
      f32x8 v97 = v90 + v96;
      *(f32x8u *)(l2 + 0l) = v97;
      f32x8 v98 = *(const f32x8u *)(l2 + 0l);
      f32 v99 = acc1;
      u8 v100 = v99 == 0.0f;
      f32 v101 = v100 ? 1.0f : v99;
      f32x8 v102 = f32x8_splat(v101);
      f32x8 v103 = v98 / v102;
      *(f32x8u *)(p0 + v12) = v103;
    }
  }
}
