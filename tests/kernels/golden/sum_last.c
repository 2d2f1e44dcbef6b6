/* r_10, C, 1 thread, opts GROUP r1 32 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f32, 8)
VECTOR(f32, 4)
VECTOR(f32, 2)
void r_10(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32x16 v0 = f32x16_splat(0.0f);
  for (i64 r0 = 0; r0 < 10l; r0++) {
    i64 v1 = r0 * 48l;
    f32x16 v2 = *(const f32x16u *)(p1 + v1);
    f32x16 v3 = v0 + v2;
    i64 v4 = v1 + 16l;
    f32x16 v5 = *(const f32x16u *)(p1 + v4);
    f32x16 v6 = v0 + v5;
    f32x16 v7 = v3 + v6;
    f32x8 v8 = __builtin_shufflevector(v7, v7, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v9 = __builtin_shufflevector(v7, v7, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v10 = v8 + v9;
    f32x4 v11 = __builtin_shufflevector(v10, v10, 0, 1, 2, 3);
    f32x4 v12 = __builtin_shufflevector(v10, v10, 4, 5, 6, 7);
    f32x4 v13 = v11 + v12;
    f32x2 v14 = __builtin_shufflevector(v13, v13, 0, 1);
    f32x2 v15 = __builtin_shufflevector(v13, v13, 2, 3);
    f32x2 v16 = v14 + v15;
    f32 v17 = v16[0] + v16[1];
    i64 v18 = v1 + 32l;
    f32x16 v19 = *(const f32x16u *)(p1 + v18);
    f32x16 v20 = v0 + v19;
    f32x8 v21 = __builtin_shufflevector(v20, v20, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v22 = __builtin_shufflevector(v20, v20, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v23 = v21 + v22;
    f32x4 v24 = __builtin_shufflevector(v23, v23, 0, 1, 2, 3);
    f32x4 v25 = __builtin_shufflevector(v23, v23, 4, 5, 6, 7);
    f32x4 v26 = v24 + v25;
    f32x2 v27 = __builtin_shufflevector(v26, v26, 0, 1);
    f32x2 v28 = __builtin_shufflevector(v26, v26, 2, 3);
    f32x2 v29 = v27 + v28;
    f32 v30 = v29[0] + v29[1];
    f32 v31 = v17 + v30;
    p0[r0] = v31;
  }
}
