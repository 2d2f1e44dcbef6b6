/* e_6_5, C, 1 thread, opts VEC r1 5 */
VECTOR(i64, 4)
VECTOR(i32, 4)
#ifndef H_i32x4_splat
#define H_i32x4_splat
INL i32x4 i32x4_splat(i32 x) { return (i32x4){x, x, x, x}; }
#endif
void e_6_5(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  i32 *p0 = (i32 *)bufs[0];
  i32 *p1 = (i32 *)bufs[1];
  i64x4 v0 = (i64x4){0l, 1l, 2l, 3l};
  i32x4 v1 = __builtin_convertvector(v0, i32x4);
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i64 v2 = r0 * 5l;
    i32 v3 = p1[r0];
    i32x4 v4 = i32x4_splat(v3);
    i32x4 v5 = (i32x4)(v4 == v1);
    i32x4 v6 = (i32x4)(v5 & 1);
    i64 v7 = v2 + 4l;
    u8 v8 = v3 == 4;
    i32 v9 = (i32)v8;
    *(i32x4u *)(p0 + v2) = v6;
    p0[v7] = v9;
  }
}

/* e_12, C, 1 thread, no opts */
void e_12(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f64 acc0 = 0.0;
  for (i64 r0 = 0; r0 < 12l; r0++) {
    f64 v0 = acc0;
    f32 v1 = p1[r0];
    f64 v2 = (f64)v1;
    f64 v3 = v0 + v2;
    acc0 = v3;
    f32 v4 = (f32)v3;
    p0[r0] = v4;
  }
}

/* e_12, C, 1 thread, opts VEC r0 12 */
VECTOR(f32, 8)
VECTOR(i64, 8)
VECTOR(i32, 8)
#ifndef H_i32x8_splat
#define H_i32x8_splat
INL i32x8 i32x8_splat(i32 x) { return (i32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(u32, 8)
VECTOR(f32, 4)
VECTOR(i64, 4)
VECTOR(i32, 4)
#ifndef H_i32x4_splat
#define H_i32x4_splat
INL i32x4 i32x4_splat(i32 x) { return (i32x4){x, x, x, x}; }
#endif
VECTOR(u32, 4)
void e_12(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32x8 v0 = *(const f32x8u *)(p1 + 0l);
  i64x8 v1 = (i64x8){0l, 1l, 2l, 3l, 4l, 5l, 6l, 7l};
  i32x8 v2 = __builtin_convertvector(v1, i32x8);
  i32x8 v3 = i32x8_splat(5);
  i32x8 v4 = (i32x8)((u32x8)v2 + (u32x8)v3);
  f32x8 v5 = __builtin_convertvector(v4, f32x8);
  f32x8 v6 = v0 + v5;
  f32x4 v7 = *(const f32x4u *)(p1 + 8l);
  i64x4 v8 = (i64x4){8l, 9l, 10l, 11l};
  i32x4 v9 = __builtin_convertvector(v8, i32x4);
  i32x4 v10 = i32x4_splat(5);
  i32x4 v11 = (i32x4)((u32x4)v9 + (u32x4)v10);
  f32x4 v12 = __builtin_convertvector(v11, f32x4);
  f32x4 v13 = v7 + v12;
  *(f32x8u *)(p0 + 0l) = v6;
  *(f32x4u *)(p0 + 8l) = v13;
}
