/* r_2_3_16, C, 1 thread, opts SWAP r4 r2, UPCAST r4 6, VEC r2 16 */
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
void r_2_3_16(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  i32 *p1 = (i32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  i32 v0 = p1[5l];
  f32x16 v1 = f32x16_splat(0.0f);
  i32 v2 = p1[4l];
  i32 v3 = p1[3l];
  i32 v4 = p1[2l];
  i32 v5 = p1[1l];
  i32 v6 = p1[0l];
  f32x16 acc0 = v1;
  f32x16 acc1 = v1;
  f32x16 acc2 = v1;
  f32x16 acc3 = v1;
  f32x16 acc4 = v1;
  f32x16 acc5 = v1;
  for (i64 r3 = 0; r3 < 8l; r3++) {
    i32 v7 = (i32)r3;
    u8 v8 = v0 == v7;
    i8x16 v9 = i8x16_splat((i8)-v8);
    i64 v10 = r3 * 16l;
    f32x16 v11 = *(const f32x16u *)(p2 + v10);
    f32x16 v12 = (f32x16)((__builtin_convertvector(v9, i32x16) & (i32x16)v11) | (~__builtin_convertvector(v9, i32x16) & (i32x16)v1));
    u8 v13 = v2 == v7;
    i8x16 v14 = i8x16_splat((i8)-v13);
    f32x16 v15 = (f32x16)((__builtin_convertvector(v14, i32x16) & (i32x16)v11) | (~__builtin_convertvector(v14, i32x16) & (i32x16)v1));
    u8 v16 = v3 == v7;
    i8x16 v17 = i8x16_splat((i8)-v16);
    f32x16 v18 = (f32x16)((__builtin_convertvector(v17, i32x16) & (i32x16)v11) | (~__builtin_convertvector(v17, i32x16) & (i32x16)v1));
    u8 v19 = v4 == v7;
    i8x16 v20 = i8x16_splat((i8)-v19);
    f32x16 v21 = (f32x16)((__builtin_convertvector(v20, i32x16) & (i32x16)v11) | (~__builtin_convertvector(v20, i32x16) & (i32x16)v1));
    u8 v22 = v5 == v7;
    i8x16 v23 = i8x16_splat((i8)-v22);
    f32x16 v24 = (f32x16)((__builtin_convertvector(v23, i32x16) & (i32x16)v11) | (~__builtin_convertvector(v23, i32x16) & (i32x16)v1));
    u8 v25 = v6 == v7;
    i8x16 v26 = i8x16_splat((i8)-v25);
    f32x16 v27 = (f32x16)((__builtin_convertvector(v26, i32x16) & (i32x16)v11) | (~__builtin_convertvector(v26, i32x16) & (i32x16)v1));
    f32x16 v28 = acc0;
    f32x16 v29 = v28 + v12;
    acc0 = v29;
    f32x16 v30 = acc1;
    f32x16 v31 = v30 + v15;
    acc1 = v31;
    f32x16 v32 = acc2;
    f32x16 v33 = v32 + v18;
    acc2 = v33;
    f32x16 v34 = acc3;
    f32x16 v35 = v34 + v21;
    acc3 = v35;
    f32x16 v36 = acc4;
    f32x16 v37 = v36 + v24;
    acc4 = v37;
    f32x16 v38 = acc5;
    f32x16 v39 = v38 + v27;
    acc5 = v39;
  }
  f32x16 v40 = acc0;
  f32x16 v41 = acc1;
  f32x16 v42 = acc2;
  f32x16 v43 = acc3;
  f32x16 v44 = acc4;
  f32x16 v45 = acc5;
  *(f32x16u *)(p0 + 0l) = v45;
  *(f32x16u *)(p0 + 16l) = v44;
  *(f32x16u *)(p0 + 32l) = v43;
  *(f32x16u *)(p0 + 48l) = v42;
  *(f32x16u *)(p0 + 64l) = v41;
  *(f32x16u *)(p0 + 80l) = v40;
}
