/* e_2_8, C, 1 thread, opts VEC r2 16 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
void e_2_8(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32x16 v0 = *(const f32x16u *)(p1 + 0l);
  f32x16 v1 = f32x16_splat(2.0f);
  f32x16 v2 = v0 * v1;
  *(f32x16u *)(p0 + 0l) = v2;
}

/* e_2_8, C, 1 thread, opts VEC r2 16 */
VECTOR(f32, 16)
void e_2_8(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32x16 v0 = *(const f32x16u *)(p1 + 0l);
  *(f32x16u *)(p0 + 0l) = v0;
}
