/* e_2_3_16, C, 1 thread, opts VEC r2 16 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i8, 16)
#ifndef H_i8x16_splat
#define H_i8x16_splat
INL i8x16 i8x16_splat(i8 x) { return (i8x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i32, 16)
void e_2_3_16(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  i32 *p1 = (i32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32x16 v0 = f32x16_splat(0.0f);
  for (i64 r0 = 0; r0 < 2l; r0++) {
    i64 v1 = r0 * 48l;
    i64 v2 = r0 * 3l;
    for (i64 r1 = 0; r1 < 3l; r1++) {
      i64 v3 = r1 * 16l;
      i64 v4 = v1 + v3;
      i64 v5 = v2 + r1;
      i32 v6 = p1[v5];
      i64 v7 = (i64)v6;
      u8 v8 = v7 < 0l;
      u8 v9 = v8 ^ 1;
      u8 v10 = v7 < 8l;
      u8 v11 = v9 & v10;
      i8x16 v12 = i8x16_splat((i8)-v11);
      i64 v13 = v7 * 16l;
      f32x16 v14 = (f32x16){0};
      if (v11) v14 = *(const f32x16u *)(p2 + v13);
      f32x16 v15 = (f32x16)((__builtin_convertvector(v12, i32x16) & (i32x16)v14) | (~__builtin_convertvector(v12, i32x16) & (i32x16)v0));
      *(f32x16u *)(p0 + v4) = v15;
    }
  }
}
