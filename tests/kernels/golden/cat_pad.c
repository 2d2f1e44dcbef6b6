/* e_6_5, C, 1 thread, opts VEC r1 5 */
VECTOR(i8, 4)
#ifndef H_i8x4_splat
#define H_i8x4_splat
INL i8x4 i8x4_splat(i8 x) { return (i8x4){x, x, x, x}; }
#endif
VECTOR(f32, 4)
#ifndef H_zeros_f32x4
#define H_zeros_f32x4
static const f32 zeros_f32x4[4] = {0};
#endif
VECTOR(i32, 4)
void e_6_5(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i64 v0 = r0 * 5l;
    u8 v1 = r0 < 2l;
    i8x4 v2 = i8x4_splat((i8)-v1);
    f32x4 v3 = *(const f32x4u *)(v1 ? p1 + v0 : zeros_f32x4);
    i64 v4 = r0 * 3l;
    i64 v5 = v4 + (-6l);
    u8 v6 = v1 ^ 1;
    u8 v7 = r0 < 5l;
    u8 v8 = v6 & v7;
    f32 v9 = v8 ? p2[v5] : 0;
    i64 v10 = v4 + (-5l);
    f32 v11 = v8 ? p2[v10] : 0;
    i64 v12 = v4 + (-4l);
    f32 v13 = v8 ? p2[v12] : 0;
    f32x4 v14 = (f32x4){0.0f, v9, v11, v13};
    f32x4 v15 = (f32x4)((__builtin_convertvector(v2, i32x4) & (i32x4)v3) | (~__builtin_convertvector(v2, i32x4) & (i32x4)v14));
    i64 v16 = v0 + 4l;
    f32 v17 = v1 ? p1[v16] : 0;
    i64 v18 = v4 + (-3l);
    f32 v19 = 0 ? p2[v18] : 0;
    f32 v20 = v1 ? v17 : v19;
    *(f32x4u *)(p0 + v0) = v15;
    p0[v16] = v20;
  }
}
