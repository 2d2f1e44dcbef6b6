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
#ifndef H_zeros_f32x4
#define H_zeros_f32x4
static const f32 zeros_f32x4[4] = {0};
#endif
VECTOR(f32, 2)
#ifndef H_zeros_f32x2
#define H_zeros_f32x2
static const f32 zeros_f32x2[2] = {0};
#endif
VECTOR(i32, 4)
#ifndef H_i32x4_splat
#define H_i32x4_splat
INL i32x4 i32x4_splat(i32 x) { return (i32x4){x, x, x, x}; }
#endif
void e_6_5(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32x4 v0 = f32x4_splat(0.0f);
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i64 v1 = r0 * 5l;
    u8 v2 = r0 < 2l;
    i8x4 v3 = i8x4_splat((i8)-v2);
    f32x4 v4 = *(const f32x4u *)(v2 ? p1 + v1 : zeros_f32x4);
    i64 v5 = r0 * 3l;
    i64 v6 = v5 + (-6l);
    u8 v7 = v2 ^ 1;
    u8 v8 = r0 < 5l;
    u8 v9 = v7 & v8;
    f32x2 v10 = *(const f32x2u *)(v9 ? p2 + v6 : zeros_f32x2);
    i64 v11 = v5 + (-5l);
    f32x2 v12 = *(const f32x2u *)(v9 ? p2 + v11 : zeros_f32x2);
    f32x4 v13 = __builtin_shufflevector(v10, v12, 0, 0, 1, 3);
    f32x4 v14 = __builtin_shufflevector(v13, v0, 4, 1, 2, 3);
    f32x4 v15 = (f32x4)((i32x4_splat((i32)-v2) & (i32x4)v4) | (~i32x4_splat((i32)-v2) & (i32x4)v14));
    i64 v16 = v1 + 4l;
    f32 v17 = v2 ? p1[v16] : 0;
    i64 v18 = v5 + (-3l);
    f32 v19 = 0 ? p2[v18] : 0;
    f32 v20 = v2 ? v17 : v19;
    *(f32x4u *)(p0 + v1) = v15;
    p0[v16] = v20;
  }
}
