/* r_3_4_4, C, 1 thread, opts VEC r2 4 */
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
VECTOR(i32, 4)
void r_3_4_4(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x4 v0 = f32x4_splat((-__builtin_inff()));
  for (i64 r5 = 0; r5 < 12l; r5++) {
    f32x4 acc0 = v0;
    i64 v1 = r5 * 16l;
    for (i64 r3 = 0; r3 < 2l; r3++) {
      i64 v2 = r3 * 8l;
      for (i64 r4 = 0; r4 < 2l; r4++) {
        f32x4 v3 = acc0;
        i64 v4 = v2 + r4;
        i64 v5 = v4 + v1;
        f32 v6 = p1[v5];
        i64 v7 = v5 + 2l;
        f32 v8 = p1[v7];
        i64 v9 = v5 + 4l;
        f32 v10 = p1[v9];
        i64 v11 = v5 + 6l;
        f32 v12 = p1[v11];
        f32x4 v13 = (f32x4){v6, v8, v10, v12};
        i32x4 m14 = (i32x4)(v3 > v13) | (i32x4)(v3 != v3);
        f32x4 v14 = (f32x4)((m14 & (i32x4)v3) | (~m14 & (i32x4)v13));
        acc0 = v14;
      }
    }
    i64 v15 = r5 * 4l;
    f32x4 v16 = acc0;
    *(f32x4u *)(p0 + v15) = v16;
  }
}
