/* e_6_5, C, 1 thread, opts VEC r1 5 */
VECTOR(i8, 4)
#ifndef H_i8x4_splat
#define H_i8x4_splat
INL i8x4 i8x4_splat(i8 x) { return (i8x4){x, x, x, x}; }
#endif
VECTOR(f32, 4)
VECTOR(i32, 4)
void e_6_5(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i64 v0 = r0 * 5l;
    u8 v1 = r0 < 2l;
    u8 v2 = v1 ? 1 : 0;
    i8x4 v3 = i8x4_splat((i8)-v2);
    f32x4 v4 = (f32x4){0};
    if (v1) v4 = *(const f32x4u *)(p1 + v0);
    i64 v5 = r0 * 3l;
    i64 v6 = v5 + (-6l);
    u8 v7 = v1 ^ 1;
    u8 v8 = r0 < 5l;
    u8 v9 = v7 & v8;
    f32 v10 = v9 ? p2[v6] : 0;
    i64 v11 = v5 + (-5l);
    f32 v12 = v9 ? p2[v11] : 0;
    i64 v13 = v5 + (-4l);
    f32 v14 = v9 ? p2[v13] : 0;
    f32x4 v15 = (f32x4){0.0f, v10, v12, v14};
    f32x4 v16 = (f32x4)((__builtin_convertvector(v3, i32x4) & (i32x4)v4) | (~__builtin_convertvector(v3, i32x4) & (i32x4)v15));
    i64 v17 = v0 + 4l;
    f32 v18 = v1 ? p1[v17] : 0;
    i64 v19 = v5 + (-3l);
    f32 v20 = 0 ? p2[v19] : 0;
    f32 v21 = v2 ? v18 : v20;
    *(f32x4u *)(p0 + v0) = v16;
    p0[v17] = v21;
  }
}
