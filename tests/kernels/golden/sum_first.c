/* r_20, C, 1 thread, opts VEC r0 16 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
void r_20(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat(0.0f);
  f32x16 acc0 = v0;
  for (i64 r1 = 0; r1 < 24l; r1++) {
    f32x16 v1 = acc0;
    i64 v2 = r1 * 20l;
    f32x16 v3 = *(const f32x16u *)(p1 + v2);
    f32x16 v4 = v1 + v3;
    acc0 = v4;
  }
  f32x16 v5 = acc0;
  f32x4 v6 = f32x4_splat(0.0f);
  f32x4 acc1 = v6;
  for (i64 r5 = 0; r5 < 24l; r5++) {
    f32x4 v7 = acc1;
    i64 v8 = r5 * 20l;
    i64 v9 = v8 + 16l;
    f32x4 v10 = *(const f32x4u *)(p1 + v9);
    f32x4 v11 = v7 + v10;
    acc1 = v11;
  }
  f32x4 v12 = acc1;
  *(f32x16u *)(p0 + 0l) = v5;
  *(f32x4u *)(p0 + 16l) = v12;
}
