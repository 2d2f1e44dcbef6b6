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

/* r_12, C, 1 thread, opts VEC r0 12 */
VECTOR(i64, 4)
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
VECTOR(i64, 8)
VECTOR(f32, 8)
#ifndef H_f32x8_splat
#define H_f32x8_splat
INL f32x8 f32x8_splat(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
#ifndef H_i64x4_splat
#define H_i64x4_splat
INL i64x4 i64x4_splat(i64 x) { return (i64x4){x, x, x, x}; }
#endif
VECTOR(i32, 4)
#ifndef H_i64x8_splat
#define H_i64x8_splat
INL i64x8 i64x8_splat(i64 x) { return (i64x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i32, 8)
#ifndef H_i32x8_splat
#define H_i32x8_splat
INL i32x8 i32x8_splat(i32 x) { return (i32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(u32, 8)
#ifndef H_i32x4_splat
#define H_i32x4_splat
INL i32x4 i32x4_splat(i32 x) { return (i32x4){x, x, x, x}; }
#endif
VECTOR(u32, 4)
void r_12(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  i64x4 v0 = (i64x4){8l, 9l, 10l, 11l};
  f32x4 v1 = f32x4_splat(0.0f);
  i64x8 v2 = (i64x8){0l, 1l, 2l, 3l, 4l, 5l, 6l, 7l};
  f32x8 v3 = f32x8_splat(0.0f);
  f32x4 acc0 = v1;
  f32x8 acc1 = v3;
  for (i64 r1 = 0; r1 < 12l; r1++) {
    i64x4 v4 = i64x4_splat(r1);
    i64x4 v5 = (i64x4)(v0 < v4);
    f32 v6 = p1[r1];
    f32x4 v7 = f32x4_splat(v6);
    f32x4 v8 = (f32x4)((__builtin_convertvector(v5, i32x4) & (i32x4)v1) | (~__builtin_convertvector(v5, i32x4) & (i32x4)v7));
    i64x8 v9 = i64x8_splat(r1);
    i64x8 v10 = (i64x8)(v2 < v9);
    f32x8 v11 = f32x8_splat(v6);
    f32x8 v12 = (f32x8)((__builtin_convertvector(v10, i32x8) & (i32x8)v3) | (~__builtin_convertvector(v10, i32x8) & (i32x8)v11));
    f32x4 v13 = acc0;
    f32x4 v14 = v13 + v8;
    acc0 = v14;
    f32x8 v15 = acc1;
    f32x8 v16 = v15 + v12;
    acc1 = v16;
  }
  f32x4 v17 = acc0;
  f32x8 v18 = acc1;
  i32x8 v19 = __builtin_convertvector(v2, i32x8);
  i32x8 v20 = i32x8_splat(5);
  i32x8 v21 = (i32x8)((u32x8)v19 + (u32x8)v20);
  f32x8 v22 = __builtin_convertvector(v21, f32x8);
  f32x8 v23 = v18 + v22;
  i32x4 v24 = __builtin_convertvector(v0, i32x4);
  i32x4 v25 = i32x4_splat(5);
  i32x4 v26 = (i32x4)((u32x4)v24 + (u32x4)v25);
  f32x4 v27 = __builtin_convertvector(v26, f32x4);
  f32x4 v28 = v17 + v27;
  *(f32x8u *)(p0 + 0l) = v23;
  *(f32x4u *)(p0 + 8l) = v28;
}
