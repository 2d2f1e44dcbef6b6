/* e_6_5, C, 1 thread, opts VEC r1 5 */
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
VECTOR(i8, 4)
#ifndef H_i8x4_splat
#define H_i8x4_splat
INL i8x4 i8x4_splat(i8 x) { return (i8x4){x, x, x, x}; }
#endif
VECTOR(i32, 4)
void e_6_5(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32x4 v0 = f32x4_splat(0.0f);
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i64 v1 = r0 * 5l;
    u8 v2 = r0 < 2l;
    u8 v3 = v2 ? 1 : 0;
    i8x4 v4 = i8x4_splat((i8)-v3);
    i8x4 v5 = i8x4_splat((i8)-v2);
    f32x4 v6 = (f32x4){0};
    if (v2) v6 = *(const f32x4u *)(p1 + v1);
    f32x4 v7 = (f32x4)((__builtin_convertvector(v5, i32x4) & (i32x4)v6) | (~__builtin_convertvector(v5, i32x4) & (i32x4)v0));
    u8 v8 = v2 ^ 1;
    u8 v9 = r0 < 5l;
    u8 v10 = v8 & v9;
    i8x4 v11 = (i8x4){-0, -v10, -v10, -v10};
    i64 v12 = r0 * 3l;
    i64 v13 = v12 + (-6l);
    f32 v14 = v10 ? p2[v13] : 0;
    i64 v15 = v12 + (-5l);
    f32 v16 = v10 ? p2[v15] : 0;
    i64 v17 = v12 + (-4l);
    f32 v18 = v10 ? p2[v17] : 0;
    f32x4 v19 = (f32x4){0.0f, v14, v16, v18};
    f32x4 v20 = (f32x4)((__builtin_convertvector(v11, i32x4) & (i32x4)v19) | (~__builtin_convertvector(v11, i32x4) & (i32x4)v0));
    f32x4 v21 = (f32x4)((__builtin_convertvector(v4, i32x4) & (i32x4)v7) | (~__builtin_convertvector(v4, i32x4) & (i32x4)v20));
    i64 v22 = v1 + 4l;
    f32 v23 = v2 ? p1[v22] : 0;
    f32 v24 = v2 ? v23 : 0.0f;
    f32 v25 = v3 ? v24 : 0.0f;
    *(f32x4u *)(p0 + v1) = v21;
    p0[v22] = v25;
  }
}
