/* e_4_3_16, C, 1 thread, opts VEC r2 16 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
void e_4_3_16(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p3 = (f32 *)bufs[3];
  f32x16 v0 = *(const f32x16u *)(p3 + 0l);
  for (i64 r0 = 0; r0 < 4l; r0++) {
    i64 v1 = r0 * 48l;
    i64 v2 = r0 * 16l;
    f32x16 v3 = *(const f32x16u *)(p1 + v2);
    for (i64 r1 = 0; r1 < 3l; r1++) {
      i64 v4 = r1 * 16l;
      i64 v5 = v1 + v4;
      f32 v6 = p2[r1];
      f32x16 v7 = f32x16_splat(v6);
      f32x16 v8 = v3 + v7;
      f32x16 v9 = v8 * v0;
      *(f32x16u *)(p0 + v5) = v9;
    }
  }
}
