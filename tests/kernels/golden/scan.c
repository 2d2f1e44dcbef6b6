/* e_20_12, C, 1 thread, opts VEC r0 20 */
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
void e_20_12(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat(0.0f);
  f32x16 acc0 = v0;
  f32x4 v1 = f32x4_splat(0.0f);
  f32x4 acc1 = v1;
  for (i64 r1 = 0; r1 < 12l; r1++) {
    f32x16 v2 = acc0;
    i64 v3 = r1 * 20l;
    f32x16 v4 = *(const f32x16u *)(p1 + v3);
    f32x16 v5 = v2 + v4;
    acc0 = v5;
    f32x4 v6 = acc1;
    i64 v7 = v3 + 16l;
    f32x4 v8 = *(const f32x4u *)(p1 + v7);
    f32x4 v9 = v6 + v8;
    acc1 = v9;
    *(f32x16u *)(p0 + v3) = v5;
    *(f32x4u *)(p0 + v7) = v9;
  }
}

/* e_5_12, C, 1 thread, no opts */
void e_5_12(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  for (i64 r0 = 0; r0 < 5l; r0++) {
    f32 acc0 = 0.0f;
    i64 v0 = r0 * 12l;
    for (i64 r1 = 0; r1 < 12l; r1++) {
      i64 v1 = r1 + v0;
      f32 v2 = p1[v1];
      f32 v3 = p2[r1];
      f32 v4 = acc0;
      f32 v5 = fma_f32(v2, v3, v4);
      acc0 = v5;
      p0[v1] = v5;
    }
  }
}
