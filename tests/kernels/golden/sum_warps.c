/* r_3, C, 1 thread, opts GROUP r1 64 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f32, 8)
VECTOR(f32, 4)
VECTOR(f32, 2)
void r_3(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat(0.0f);
  for (i64 r0 = 0; r0 < 3l; r0++) {
    f32x16 acc0 = v0;
    f32x16 acc1 = v0;
    f32x16 acc2 = v0;
    f32x16 acc3 = v0;
    i64 v1 = r0 * 200l;
    for (i64 r2 = 0; r2 < 3l; r2++) {
      f32x16 v2 = acc0;
      i64 v3 = r2 * 64l;
      i64 v4 = v3 + v1;
      f32x16 v5 = *(const f32x16u *)(p1 + v4);
      f32x16 v6 = v2 + v5;
      acc0 = v6;
      f32x16 v7 = acc1;
      i64 v8 = v4 + 16l;
      f32x16 v9 = *(const f32x16u *)(p1 + v8);
      f32x16 v10 = v7 + v9;
      acc1 = v10;
      f32x16 v11 = acc2;
      i64 v12 = v4 + 32l;
      f32x16 v13 = *(const f32x16u *)(p1 + v12);
      f32x16 v14 = v11 + v13;
      acc2 = v14;
      f32x16 v15 = acc3;
      i64 v16 = v4 + 48l;
      f32x16 v17 = *(const f32x16u *)(p1 + v16);
      f32x16 v18 = v15 + v17;
      acc3 = v18;
    }
    i64 v19 = v1 + 192l;
    f32x8 v20 = *(const f32x8u *)(p1 + v19);
    f32x4 v21 = __builtin_shufflevector(v20, v20, 0, 1, 2, 3);
    f32x4 v22 = __builtin_shufflevector(v20, v20, 4, 5, 6, 7);
    f32x4 v23 = v21 + v22;
    f32x2 v24 = __builtin_shufflevector(v23, v23, 0, 1);
    f32x2 v25 = __builtin_shufflevector(v23, v23, 2, 3);
    f32x2 v26 = v24 + v25;
    f32 v27 = v26[0] + v26[1];
    f32 v28 = 0.0f + v27;
    f32x16 v29 = acc0;
    f32x16 v30 = acc2;
    f32x16 v31 = v29 + v30;
    f32x16 v32 = acc1;
    f32x16 v33 = acc3;
    f32x16 v34 = v32 + v33;
    f32x16 v35 = v31 + v34;
    f32x8 v36 = __builtin_shufflevector(v35, v35, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v37 = __builtin_shufflevector(v35, v35, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v38 = v36 + v37;
    f32x4 v39 = __builtin_shufflevector(v38, v38, 0, 1, 2, 3);
    f32x4 v40 = __builtin_shufflevector(v38, v38, 4, 5, 6, 7);
    f32x4 v41 = v39 + v40;
    f32x2 v42 = __builtin_shufflevector(v41, v41, 0, 1);
    f32x2 v43 = __builtin_shufflevector(v41, v41, 2, 3);
    f32x2 v44 = v42 + v43;
    f32 v45 = v44[0] + v44[1];
    f32 v46 = v28 + v45;
    p0[r0] = v46;
  }
}
