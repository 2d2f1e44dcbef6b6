/* r_3, C, 1 thread, opts GROUP r1 64 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i8, 16)
VECTOR(i32, 16)
VECTOR(f32, 8)
VECTOR(f32, 4)
VECTOR(f32, 2)
void r_3(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat(0.0f);
  i8x16 v1 = (i8x16){-1, -1, -1, -1, -1, -1, -1, -1, -0, -0, -0, -0, -0, -0, -0, -0};
  for (i64 r0 = 0; r0 < 3l; r0++) {
    f32x16 acc0 = v0;
    f32x16 acc1 = v0;
    f32x16 acc2 = v0;
    f32x16 acc3 = v0;
    i64 v2 = r0 * 200l;
    for (i64 r2 = 0; r2 < 3l; r2++) {
      f32x16 v3 = acc0;
      i64 v4 = r2 * 64l;
      i64 v5 = v4 + v2;
      f32x16 v6 = *(const f32x16u *)(p1 + v5);
      f32x16 v7 = v3 + v6;
      acc0 = v7;
      f32x16 v8 = acc1;
      i64 v9 = v5 + 16l;
      f32x16 v10 = *(const f32x16u *)(p1 + v9);
      f32x16 v11 = v8 + v10;
      acc1 = v11;
      f32x16 v12 = acc2;
      i64 v13 = v5 + 32l;
      f32x16 v14 = *(const f32x16u *)(p1 + v13);
      f32x16 v15 = v12 + v14;
      acc2 = v15;
      f32x16 v16 = acc3;
      i64 v17 = v5 + 48l;
      f32x16 v18 = *(const f32x16u *)(p1 + v17);
      f32x16 v19 = v16 + v18;
      acc3 = v19;
    }
    f32x16 v20 = acc0;
    i64 v21 = v2 + 184l;
    f32x16 v22 = *(const f32x16u *)(p1 + v21);
    f32x16 v23 = __builtin_shufflevector(v22, v0, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 16, 16, 16, 16, 16, 16);
    f32x16 v24 = (f32x16)((__builtin_convertvector(v1, i32x16) & (i32x16)v23) | (~__builtin_convertvector(v1, i32x16) & (i32x16)v0));
    f32x16 v25 = v20 + v24;
    acc0 = v25;
    f32x16 v26 = acc2;
    f32x16 v27 = v25 + v26;
    f32x16 v28 = acc1;
    f32x16 v29 = acc3;
    f32x16 v30 = v28 + v29;
    f32x16 v31 = v27 + v30;
    f32x8 v32 = __builtin_shufflevector(v31, v31, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v33 = __builtin_shufflevector(v31, v31, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v34 = v32 + v33;
    f32x4 v35 = __builtin_shufflevector(v34, v34, 0, 1, 2, 3);
    f32x4 v36 = __builtin_shufflevector(v34, v34, 4, 5, 6, 7);
    f32x4 v37 = v35 + v36;
    f32x2 v38 = __builtin_shufflevector(v37, v37, 0, 1);
    f32x2 v39 = __builtin_shufflevector(v37, v37, 2, 3);
    f32x2 v40 = v38 + v39;
    f32 v41 = v40[0] + v40[1];
    f32 v42 = 0.0f + v41;
    p0[r0] = v42;
  }
}
