/* e_40, C, 1 thread, opts VEC r0 32 */
VECTOR(u16, 16)
VECTOR(f32, 16)
VECTOR(u32, 16)
VECTOR(i32, 16)
VECTOR(i16, 16)
#ifndef H_f32x16_bf16
#define H_f32x16_bf16
INL f32x16 f32x16_bf16(u16x16 a) { return (f32x16)(__builtin_convertvector(a, u32x16) << 16); }
#endif
#ifndef H_bf16x16_f32
#define H_bf16x16_f32
INL u16x16 bf16x16_f32(f32x16 x) {
  u32x16 b = (u32x16)x, q = (b >> 16) | 64, m = (u32x16)(x != x), r = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
  return __builtin_convertvector((q & m) | (r & ~m), u16x16);
}
#endif
VECTOR(u16, 8)
VECTOR(f32, 8)
VECTOR(u32, 8)
VECTOR(i32, 8)
VECTOR(i16, 8)
#ifndef H_f32x8_bf16
#define H_f32x8_bf16
INL f32x8 f32x8_bf16(u16x8 a) { return (f32x8)(__builtin_convertvector(a, u32x8) << 16); }
#endif
#ifndef H_bf16x8_f32
#define H_bf16x8_f32
INL u16x8 bf16x8_f32(f32x8 x) {
  u32x8 b = (u32x8)x, q = (b >> 16) | 64, m = (u32x8)(x != x), r = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
  return __builtin_convertvector((q & m) | (r & ~m), u16x8);
}
#endif
void e_40(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  u16 *p0 = (u16 *)bufs[0];
  u16 *p1 = (u16 *)bufs[1];
  u16 *p2 = (u16 *)bufs[2];
  u16x16 v0 = *(const u16x16u *)(p1 + 0l);
  f32x16 v1 = f32x16_bf16(v0);
  u16x16 v2 = *(const u16x16u *)(p2 + 0l);
  f32x16 v3 = f32x16_bf16(v2);
  f32x16 v4 = v1 * v3;
  u16x16 v5 = bf16x16_f32(v4);
  f32x16 v6 = f32x16_bf16(v5);
  f32x16 v7 = v6 + v1;
  u16x16 v8 = bf16x16_f32(v7);
  f32x16 v9 = f32x16_bf16(v8);
  f32x16 v10 = v9 * v3;
  u16x16 v11 = bf16x16_f32(v10);
  u16x16 v12 = *(const u16x16u *)(p1 + 16l);
  f32x16 v13 = f32x16_bf16(v12);
  u16x16 v14 = *(const u16x16u *)(p2 + 16l);
  f32x16 v15 = f32x16_bf16(v14);
  f32x16 v16 = v13 * v15;
  u16x16 v17 = bf16x16_f32(v16);
  f32x16 v18 = f32x16_bf16(v17);
  f32x16 v19 = v18 + v13;
  u16x16 v20 = bf16x16_f32(v19);
  f32x16 v21 = f32x16_bf16(v20);
  f32x16 v22 = v21 * v15;
  u16x16 v23 = bf16x16_f32(v22);
  u16x8 v24 = *(const u16x8u *)(p1 + 32l);
  f32x8 v25 = f32x8_bf16(v24);
  u16x8 v26 = *(const u16x8u *)(p2 + 32l);
  f32x8 v27 = f32x8_bf16(v26);
  f32x8 v28 = v25 * v27;
  u16x8 v29 = bf16x8_f32(v28);
  f32x8 v30 = f32x8_bf16(v29);
  f32x8 v31 = v30 + v25;
  u16x8 v32 = bf16x8_f32(v31);
  f32x8 v33 = f32x8_bf16(v32);
  f32x8 v34 = v33 * v27;
  u16x8 v35 = bf16x8_f32(v34);
  *(u16x16u *)(p0 + 0l) = v11;
  *(u16x16u *)(p0 + 16l) = v23;
  *(u16x8u *)(p0 + 32l) = v35;
}
