/* e_18, C, 1 thread, opts VEC r0 16 */
VECTOR(f32, 16)
VECTOR(u8, 16)
VECTOR(i32, 16)
#ifndef H_u8x16_f32
#define H_u8x16_f32
INL i32x16 u8x16_f32(f32x16 x) {
  i32x16 in = (i32x16)(x > 0.0f);
  f32x16 y = (f32x16)((in & (i32x16)x) | (~in & (i32x16)((f32x16){0} + 0.0f)));
  i32x16 hi = (i32x16)(y >= 255.0f);
  y = (f32x16)((hi & (i32x16)((f32x16){0} + 255.0f)) | (~hi & (i32x16)y));
  return (__builtin_convertvector(y, i32x16)) & (i32x16)(x == x);
}
#endif
#ifndef H_i32x16_f32
#define H_i32x16_f32
INL i32x16 i32x16_f32(f32x16 x) {
  i32x16 in = (i32x16)(x > -2147483648.0f);
  f32x16 y = (f32x16)((in & (i32x16)x) | (~in & (i32x16)((f32x16){0} + -2147483648.0f)));
  i32x16 hi = (i32x16)(y >= 2147483648.0f);
  y = (f32x16)((hi & (i32x16)((f32x16){0} + 2147483520.0f)) | (~hi & (i32x16)y));
  return (__builtin_convertvector(y, i32x16) | (hi & 127)) & (i32x16)(x == x);
}
#endif
VECTOR(i8, 16)
#ifndef H_i8x16_f32
#define H_i8x16_f32
INL i32x16 i8x16_f32(f32x16 x) {
  i32x16 in = (i32x16)(x > -128.0f);
  f32x16 y = (f32x16)((in & (i32x16)x) | (~in & (i32x16)((f32x16){0} + -128.0f)));
  i32x16 hi = (i32x16)(y >= 127.0f);
  y = (f32x16)((hi & (i32x16)((f32x16){0} + 127.0f)) | (~hi & (i32x16)y));
  return (__builtin_convertvector(y, i32x16)) & (i32x16)(x == x);
}
#endif
VECTOR(f32, 2)
VECTOR(u8, 2)
VECTOR(i32, 2)
#ifndef H_u8x2_f32
#define H_u8x2_f32
INL i32x2 u8x2_f32(f32x2 x) {
  i32x2 in = (i32x2)(x > 0.0f);
  f32x2 y = (f32x2)((in & (i32x2)x) | (~in & (i32x2)((f32x2){0} + 0.0f)));
  i32x2 hi = (i32x2)(y >= 255.0f);
  y = (f32x2)((hi & (i32x2)((f32x2){0} + 255.0f)) | (~hi & (i32x2)y));
  return (__builtin_convertvector(y, i32x2)) & (i32x2)(x == x);
}
#endif
#ifndef H_i32x2_f32
#define H_i32x2_f32
INL i32x2 i32x2_f32(f32x2 x) {
  i32x2 in = (i32x2)(x > -2147483648.0f);
  f32x2 y = (f32x2)((in & (i32x2)x) | (~in & (i32x2)((f32x2){0} + -2147483648.0f)));
  i32x2 hi = (i32x2)(y >= 2147483648.0f);
  y = (f32x2)((hi & (i32x2)((f32x2){0} + 2147483520.0f)) | (~hi & (i32x2)y));
  return (__builtin_convertvector(y, i32x2) | (hi & 127)) & (i32x2)(x == x);
}
#endif
VECTOR(i8, 2)
#ifndef H_i8x2_f32
#define H_i8x2_f32
INL i32x2 i8x2_f32(f32x2 x) {
  i32x2 in = (i32x2)(x > -128.0f);
  f32x2 y = (f32x2)((in & (i32x2)x) | (~in & (i32x2)((f32x2){0} + -128.0f)));
  i32x2 hi = (i32x2)(y >= 127.0f);
  y = (f32x2)((hi & (i32x2)((f32x2){0} + 127.0f)) | (~hi & (i32x2)y));
  return (__builtin_convertvector(y, i32x2)) & (i32x2)(x == x);
}
#endif
void e_18(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  i32 *p2 = (i32 *)bufs[2];
  f32x16 v0 = *(const f32x16u *)(p1 + 0l);
  u8x16 v1 = __builtin_convertvector(u8x16_f32(v0), u8x16);
  f32x16 v2 = __builtin_convertvector(v1, f32x16);
  i32x16 v3 = i32x16_f32(v0);
  f32x16 v4 = __builtin_convertvector(v3, f32x16);
  f32x16 v5 = v2 + v4;
  i8x16 v6 = __builtin_convertvector(i8x16_f32(v0), i8x16);
  i32x16 v7 = __builtin_convertvector(v6, i32x16);
  f32x2 v8 = *(const f32x2u *)(p1 + 16l);
  u8x2 v9 = __builtin_convertvector(u8x2_f32(v8), u8x2);
  f32x2 v10 = __builtin_convertvector(v9, f32x2);
  i32x2 v11 = i32x2_f32(v8);
  f32x2 v12 = __builtin_convertvector(v11, f32x2);
  f32x2 v13 = v10 + v12;
  i8x2 v14 = __builtin_convertvector(i8x2_f32(v8), i8x2);
  i32x2 v15 = __builtin_convertvector(v14, i32x2);
  *(f32x16u *)(p0 + 0l) = v5;
  *(i32x16u *)(p2 + 0l) = v7;
  *(f32x2u *)(p0 + 16l) = v13;
  *(i32x2u *)(p2 + 16l) = v15;
}
