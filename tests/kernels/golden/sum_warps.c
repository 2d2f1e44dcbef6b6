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
    f32x16 v19 = acc0;
    i64 v20 = v1 + 184l;
    f32x16 v21 = *(const f32x16u *)(p1 + v20);
    f32x16 v22 = __builtin_shufflevector(v21, v0, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 16, 16, 16, 16, 16, 16);
    f32x16 v23 = v19 + v22;
    acc0 = v23;
    f32x16 v24 = acc2;
    f32x16 v25 = v23 + v24;
    f32x16 v26 = acc1;
    f32x16 v27 = acc3;
    f32x16 v28 = v26 + v27;
    f32x16 v29 = v25 + v28;
    f32x8 v30 = __builtin_shufflevector(v29, v29, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v31 = __builtin_shufflevector(v29, v29, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v32 = v30 + v31;
    f32x4 v33 = __builtin_shufflevector(v32, v32, 0, 1, 2, 3);
    f32x4 v34 = __builtin_shufflevector(v32, v32, 4, 5, 6, 7);
    f32x4 v35 = v33 + v34;
    f32x2 v36 = __builtin_shufflevector(v35, v35, 0, 1);
    f32x2 v37 = __builtin_shufflevector(v35, v35, 2, 3);
    f32x2 v38 = v36 + v37;
    f32 v39 = v38[0] + v38[1];
    f32 v40 = 0.0f + v39;
    p0[r0] = v40;
  }
}
