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
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat(0.0f);
  for (i64 r0 = 0; r0 < 10l; r0++) {
    i64 v1 = r0 * 48l;
    f32x16 v2 = *(const f32x16u *)(p1 + v1);
    f32x16 v3 = v0 + v2;
    i64 v4 = v1 + 16l;
    f32x16 v5 = *(const f32x16u *)(p1 + v4);
    f32x16 v6 = v0 + v5;
    i64 v7 = v1 + 32l;
    f32x16 v8 = *(const f32x16u *)(p1 + v7);
    f32x16 v9 = v3 + v8;
    f32x16 v10 = v9 + v6;
    f32x8 v11 = __builtin_shufflevector(v10, v10, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v12 = __builtin_shufflevector(v10, v10, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v13 = v11 + v12;
    f32x4 v14 = __builtin_shufflevector(v13, v13, 0, 1, 2, 3);
    f32x4 v15 = __builtin_shufflevector(v13, v13, 4, 5, 6, 7);
    f32x4 v16 = v14 + v15;
    f32x2 v17 = __builtin_shufflevector(v16, v16, 0, 1);
    f32x2 v18 = __builtin_shufflevector(v16, v16, 2, 3);
    f32x2 v19 = v17 + v18;
    f32 v20 = v19[0] + v19[1];
    f32 v21 = 0.0f + v20;
    p0[r0] = v21;
  }
}
