/* e_6_5, C, 1 thread, opts VEC r1 5 */
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
#ifndef H_zeros_f32x4
#define H_zeros_f32x4
static const f32 zeros_f32x4[4] = {[0 ... 4 - 1] = 0};
#endif
VECTOR(f32, 2)
#ifndef H_zeros_f32x2
#define H_zeros_f32x2
static const f32 zeros_f32x2[2] = {[0 ... 2 - 1] = 0};
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
    f32x4 v3 = *(const f32x4u *)(v2 ? p1 + v1 : zeros_f32x4);
    i64 v4 = r0 * 3l;
    i64 v5 = v4 + (-6l);
    u8 v6 = v2 ^ 1;
    u8 v7 = r0 < 5l;
    u8 v8 = v6 & v7;
    f32x2 v9 = *(const f32x2u *)(v8 ? p2 + v5 : zeros_f32x2);
    i64 v10 = v4 + (-5l);
    f32x2 v11 = *(const f32x2u *)(v8 ? p2 + v10 : zeros_f32x2);
    f32x4 v12 = __builtin_shufflevector(v9, v11, 0, 0, 1, 3);
    f32x4 v13 = __builtin_shufflevector(v12, v0, 4, 1, 2, 3);
    f32x4 v14 = (f32x4)((i32x4_splat((i32)-v2) & (i32x4)v3) | (~i32x4_splat((i32)-v2) & (i32x4)v13));
    i64 v15 = v1 + 4l;
    f32 v16 = v2 ? p1[v15] : 0;
    i64 v17 = v4 + (-3l);
    f32 v18 = 0 ? p2[v17] : 0;
    f32 v19 = v2 ? v16 : v18;
    *(f32x4u *)(p0 + v1) = v14;
    p0[v15] = v19;
  }
}
