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
void e_48(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  u8 *p0 = (u8 *)bufs[0];
  i32 *p1 = (i32 *)bufs[1];
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
  i32x16 v14 = *(const i32x16u *)(p1 + 32l);
  i32x16 v15 = (i32x16)((u32x16)v14 + (u32x16)v1);
  u8x16 v16 = __builtin_convertvector(v15, u8x16);
  u8x16 v17 = v16 * v16;
  u8x16 v18 = v16 + v5;
  u8x16 v19 = v17 - v18;
  *(u8x16u *)(p0 + 0l) = v7;
  *(u8x16u *)(p0 + 16l) = v13;
  *(u8x16u *)(p0 + 32l) = v19;
}

/* e_48, C, 1 thread, opts VEC r0 32 */
VECTOR(i8, 16)
VECTOR(u8, 16)
#ifndef H_i8x16_splat
#define H_i8x16_splat
INL i8x16 i8x16_splat(i8 x) { return (i8x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
void e_48(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  i8 *p0 = (i8 *)bufs[0];
  i8 *p1 = (i8 *)bufs[1];
  i8 *p2 = (i8 *)bufs[2];
  i8x16 v0 = *(const i8x16u *)(p1 + 0l);
  i8x16 v1 = *(const i8x16u *)(p2 + 0l);
  i8x16 v2 = (i8x16)((u8x16)v0 * (u8x16)v1);
  i8x16 v3 = i8x16_splat((i8)100);
  i8x16 v4 = (i8x16)((u8x16)v0 + (u8x16)v3);
  i8x16 v5 = (i8x16)((u8x16)v2 - (u8x16)v4);
  i8x16 v6 = *(const i8x16u *)(p1 + 16l);
  i8x16 v7 = *(const i8x16u *)(p2 + 16l);
  i8x16 v8 = (i8x16)((u8x16)v6 * (u8x16)v7);
  i8x16 v9 = (i8x16)((u8x16)v6 + (u8x16)v3);
  i8x16 v10 = (i8x16)((u8x16)v8 - (u8x16)v9);
  i8x16 v11 = *(const i8x16u *)(p1 + 32l);
  i8x16 v12 = *(const i8x16u *)(p2 + 32l);
  i8x16 v13 = (i8x16)((u8x16)v11 * (u8x16)v12);
  i8x16 v14 = (i8x16)((u8x16)v11 + (u8x16)v3);
  i8x16 v15 = (i8x16)((u8x16)v13 - (u8x16)v14);
  *(i8x16u *)(p0 + 0l) = v5;
  *(i8x16u *)(p0 + 16l) = v10;
  *(i8x16u *)(p0 + 32l) = v15;
}
