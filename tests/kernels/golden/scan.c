/* e_20_12, C, 1 thread, opts VEC r0 20 */
VECTOR(f64, 16)
#ifndef H_f64x16_splat
#define H_f64x16_splat
INL f64x16 f64x16_splat(f64 x) { return (f64x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f64, 4)
#ifndef H_f64x4_splat
#define H_f64x4_splat
INL f64x4 f64x4_splat(f64 x) { return (f64x4){x, x, x, x}; }
#endif
VECTOR(f32, 16)
VECTOR(f32, 4)
void e_20_12(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f64x16 v0 = f64x16_splat(0.0);
  f64x16 acc0 = v0;
  f64x4 v1 = f64x4_splat(0.0);
  f64x4 acc1 = v1;
  for (i64 r1 = 0; r1 < 12l; r1++) {
    f64x16 v2 = acc0;
    i64 v3 = r1 * 20l;
    f32x16 v4 = *(const f32x16u *)(p1 + v3);
    f64x16 v5 = __builtin_convertvector(v4, f64x16);
    f64x16 v6 = v2 + v5;
    acc0 = v6;
    f64x4 v7 = acc1;
    i64 v8 = v3 + 16l;
    f32x4 v9 = *(const f32x4u *)(p1 + v8);
    f64x4 v10 = __builtin_convertvector(v9, f64x4);
    f64x4 v11 = v7 + v10;
    acc1 = v11;
    f32x16 v12 = __builtin_convertvector(v6, f32x16);
    f32x4 v13 = __builtin_convertvector(v11, f32x4);
    *(f32x16u *)(p0 + v3) = v12;
    *(f32x4u *)(p0 + v8) = v13;
  }
}

/* e_5_12, C, 1 thread, no opts */
void e_5_12(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  for (i64 r0 = 0; r0 < 5l; r0++) {
    f64 acc0 = 0.0;
    i64 v0 = r0 * 12l;
    for (i64 r1 = 0; r1 < 12l; r1++) {
      f64 v1 = acc0;
      i64 v2 = r1 + v0;
      f32 v3 = p1[v2];
      f32 v4 = p2[r1];
      f32 v5 = v3 * v4;
      f64 v6 = (f64)v5;
      f64 v7 = v1 + v6;
      acc0 = v7;
      f32 v8 = (f32)v7;
      p0[v2] = v8;
    }
  }
}
