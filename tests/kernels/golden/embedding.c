/* e_2_3_16, C, 1 thread, opts VEC r2 16 */
VECTOR(f32, 16)
#ifndef H_zeros_f32x16
#define H_zeros_f32x16
static const f32 zeros_f32x16[16] = {[0 ... 16 - 1] = 0};
#endif
void e_2_3_16(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p2 = (f32 *)bufs[2];
  i32 *p1 = (i32 *)bufs[1];
  for (i64 r0 = 0; r0 < 2l; r0++) {
    i64 v0 = r0 * 48l;
    i64 v1 = r0 * 3l;
    for (i64 r1 = 0; r1 < 3l; r1++) {
      i64 v2 = r1 * 16l;
      i64 v3 = v0 + v2;
      i64 v4 = v1 + r1;
      i32 v5 = p1[v4];
      i64 v6 = (i64)v5;
      i64 v7 = v6 * 16l;
      u8 v8 = v6 < 0l;
      u8 v9 = v8 ^ 1;
      u8 v10 = v6 < 8l;
      u8 v11 = v9 & v10;
      f32x16 v12 = *(const f32x16u *)(v11 ? p2 + v7 : zeros_f32x16);
      *(f32x16u *)(p0 + v3) = v12;
    }
  }
}
