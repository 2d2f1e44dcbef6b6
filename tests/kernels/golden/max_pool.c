/* r_3_4_4, C, 1 thread, opts VEC r2 4, UNROLL r3 2, UNROLL r4 2 */
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
VECTOR(i32, 4)
#ifndef H_max_f32x4
#define H_max_f32x4
INL f32x4 max_f32x4(f32x4 a, f32x4 b) {
  i32x4 m = (i32x4)(a > b);
  f32x4 r = (f32x4)((m & (i32x4)a) | (~m & (i32x4)b));
  m = (i32x4)(a != a);
  return (f32x4)((m & (i32x4)a) | (~m & (i32x4)r));
}
#endif
void r_3_4_4(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x4 v0 = f32x4_splat((-__builtin_inff()));
  for (i64 r5 = 0; r5 < 12l; r5++) {
    i64 v1 = r5 * 16l;
    f32x4 v2 = *(const f32x4u *)(p1 + v1);
    i64 v3 = v1 + 3l;
    f32x4 v4 = *(const f32x4u *)(p1 + v3);
    f32x4 v5 = __builtin_shufflevector(v2, v4, 0, 2, 5, 7);
    f32x4 v6 = max_f32x4(v0, v5);
    i64 v7 = v1 + 1l;
    f32x4 v8 = *(const f32x4u *)(p1 + v7);
    i64 v9 = v1 + 4l;
    f32x4 v10 = *(const f32x4u *)(p1 + v9);
    f32x4 v11 = __builtin_shufflevector(v8, v10, 0, 2, 5, 7);
    f32x4 v12 = max_f32x4(v6, v11);
    i64 v13 = v1 + 8l;
    f32x4 v14 = *(const f32x4u *)(p1 + v13);
    i64 v15 = v1 + 11l;
    f32x4 v16 = *(const f32x4u *)(p1 + v15);
    f32x4 v17 = __builtin_shufflevector(v14, v16, 0, 2, 5, 7);
    f32x4 v18 = max_f32x4(v12, v17);
    i64 v19 = v1 + 9l;
    f32x4 v20 = *(const f32x4u *)(p1 + v19);
    i64 v21 = v1 + 12l;
    f32x4 v22 = *(const f32x4u *)(p1 + v21);
    f32x4 v23 = __builtin_shufflevector(v20, v22, 0, 2, 5, 7);
    f32x4 v24 = max_f32x4(v18, v23);
    i64 v25 = r5 * 4l;
    *(f32x4u *)(p0 + v25) = v24;
  }
}
