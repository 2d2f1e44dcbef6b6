/* r_10, C, 1 thread, opts GROUP r1 32 */
VECTOR(f32, 16)
VECTOR(f32, 8)
VECTOR(f32, 4)
VECTOR(f32, 2)
void r_10(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  for (i64 r0 = 0; r0 < 10l; r0++) {
    i64 v0 = r0 * 48l;
    f32x16 v1 = *(const f32x16u *)(p1 + v0);
    i64 v2 = v0 + 16l;
    f32x16 v3 = *(const f32x16u *)(p1 + v2);
    f32x16 v4 = v1 + v3;
    f32x8 v5 = __builtin_shufflevector(v4, v4, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v6 = __builtin_shufflevector(v4, v4, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v7 = v5 + v6;
    f32x4 v8 = __builtin_shufflevector(v7, v7, 0, 1, 2, 3);
    f32x4 v9 = __builtin_shufflevector(v7, v7, 4, 5, 6, 7);
    f32x4 v10 = v8 + v9;
    f32x2 v11 = __builtin_shufflevector(v10, v10, 0, 1);
    f32x2 v12 = __builtin_shufflevector(v10, v10, 2, 3);
    f32x2 v13 = v11 + v12;
    f32 v14 = v13[0] + v13[1];
    f32 v15 = 0.0f + v14;
    i64 v16 = v0 + 32l;
    f32x16 v17 = *(const f32x16u *)(p1 + v16);
    f32x8 v18 = __builtin_shufflevector(v17, v17, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v19 = __builtin_shufflevector(v17, v17, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v20 = v18 + v19;
    f32x4 v21 = __builtin_shufflevector(v20, v20, 0, 1, 2, 3);
    f32x4 v22 = __builtin_shufflevector(v20, v20, 4, 5, 6, 7);
    f32x4 v23 = v21 + v22;
    f32x2 v24 = __builtin_shufflevector(v23, v23, 0, 1);
    f32x2 v25 = __builtin_shufflevector(v23, v23, 2, 3);
    f32x2 v26 = v24 + v25;
    f32 v27 = v26[0] + v26[1];
    f32 v28 = v15 + v27;
    p0[r0] = v28;
  }
}
