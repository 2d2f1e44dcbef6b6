/* e_48, C, 1 thread, opts VEC r0 32 */
VECTOR(i32, 16)
#ifndef H_i32x16_splat
#define H_i32x16_splat
INL i32x16 i32x16_splat(i32 x) { return (i32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(u32, 16)
VECTOR(u8, 16)
#ifndef H_u8x16_splat
#define H_u8x16_splat
INL u8x16 u8x16_splat(u8 x) { return (u8x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i8, 16)
#ifndef H_i8x16_splat
#define H_i8x16_splat
INL i8x16 i8x16_splat(i8 x) { return (i8x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
void e_48(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  u8 *p0 = (u8 *)bufs[0];
  i32 *p1 = (i32 *)bufs[1];
  i8 *p2 = (i8 *)bufs[2];
  i8 *p3 = (i8 *)bufs[3];
  i8 *p4 = (i8 *)bufs[4];
  i32x16 v0 = *(const i32x16u *)(p1 + 0l);
  i32x16 v1 = i32x16_splat(64);
  i32x16 v2 = (i32x16)((u32x16)v0 + (u32x16)v1);
  u8x16 v3 = __builtin_convertvector(v2, u8x16);
  u8x16 v4 = v3 * v3;
  u8x16 v5 = u8x16_splat((u8)1);
  u8x16 v6 = v3 + v5;
  u8x16 v7 = v4 - v6;
  i32x16 v8 = *(const i32x16u *)(p1 + 16l);
  i32x16 v9 = (i32x16)((u32x16)v8 + (u32x16)v1);
  u8x16 v10 = __builtin_convertvector(v9, u8x16);
  u8x16 v11 = v10 * v10;
  u8x16 v12 = v10 + v5;
  u8x16 v13 = v11 - v12;
  i8x16 v14 = *(const i8x16u *)(p3 + 0l);
  i8x16 v15 = *(const i8x16u *)(p4 + 0l);
  i8x16 v16 = (i8x16)((u8x16)v14 * (u8x16)v15);
  i8x16 v17 = i8x16_splat((i8)100);
  i8x16 v18 = (i8x16)((u8x16)v14 + (u8x16)v17);
  i8x16 v19 = (i8x16)((u8x16)v16 - (u8x16)v18);
  i8x16 v20 = *(const i8x16u *)(p3 + 16l);
  i8x16 v21 = *(const i8x16u *)(p4 + 16l);
  i8x16 v22 = (i8x16)((u8x16)v20 * (u8x16)v21);
  i8x16 v23 = (i8x16)((u8x16)v20 + (u8x16)v17);
  i8x16 v24 = (i8x16)((u8x16)v22 - (u8x16)v23);
  i32x16 v25 = *(const i32x16u *)(p1 + 32l);
  i32x16 v26 = (i32x16)((u32x16)v25 + (u32x16)v1);
  u8x16 v27 = __builtin_convertvector(v26, u8x16);
  u8x16 v28 = v27 * v27;
  u8x16 v29 = v27 + v5;
  u8x16 v30 = v28 - v29;
  i8x16 v31 = *(const i8x16u *)(p3 + 32l);
  i8x16 v32 = *(const i8x16u *)(p4 + 32l);
  i8x16 v33 = (i8x16)((u8x16)v31 * (u8x16)v32);
  i8x16 v34 = (i8x16)((u8x16)v31 + (u8x16)v17);
  i8x16 v35 = (i8x16)((u8x16)v33 - (u8x16)v34);
  *(u8x16u *)(p0 + 0l) = v7;
  *(u8x16u *)(p0 + 16l) = v13;
  *(i8x16u *)(p2 + 0l) = v19;
  *(i8x16u *)(p2 + 16l) = v24;
  *(u8x16u *)(p0 + 32l) = v30;
  *(i8x16u *)(p2 + 32l) = v35;
}
