/* e_40, C, 1 thread, opts VEC r0 32 */
VECTOR(u8, 16)
VECTOR(f32, 16)
VECTOR(u32, 16)
VECTOR(i32, 16)
#ifndef H_f32x16_fp8e5m2
#define H_f32x16_fp8e5m2
INL f32x16 f32x16_fp8e5m2(u8x16 a) {
  u32x16 b = __builtin_convertvector(a, u32x16), m = b & 127, low = (u32x16)(m < 4), top = (u32x16)(m >= 124) & (112u << 23);
  u32x16 d = (u32x16)(__builtin_convertvector((i32x16)m, f32x16) * 0x1p-16f), n = (m << 21) + (112u << 23) + top;
  return (f32x16)((b & 128) << 24 | (d & low) | (n & ~low));
}
#endif
#ifndef H_fp8e5m2x16_f32
#define H_fp8e5m2x16_f32
INL u8x16 fp8e5m2x16_f32(f32x16 x) {
  u32x16 b = (u32x16)x, a = b & 0x7fffffff, low = (u32x16)(a < 0x38800000), past = (u32x16)(a >= 0x47700000);
  u32x16 n = (a - (112u << 23) + 0xfffff + (a >> 21 & 1)) >> 21, d = (u32x16)((f32x16)(a & low) * 0x1p16f + 0x1p23f) - 0x4b000000;
  u32x16 r = (d & low) | (n & ~low & ~past) | ((124 | ((u32x16)(a > 0x7f800000) & 2)) & past);
  return __builtin_convertvector((b >> 24 & 128) | r, u8x16);
}
#endif
#ifndef H_f32x16_fp8e4m3
#define H_f32x16_fp8e4m3
INL f32x16 f32x16_fp8e4m3(u8x16 a) {
  u32x16 b = __builtin_convertvector(a, u32x16), m = b & 127, low = (u32x16)(m < 8), nan = (u32x16)(m == 127) & 0x7fc00000;
  u32x16 d = (u32x16)(__builtin_convertvector((i32x16)m, f32x16) * 0x1p-9f), n = (m << 20) + (120u << 23);
  return (f32x16)((b & 128) << 24 | nan | (d & low) | (n & ~low));
}
#endif
#ifndef H_fp8e4m3x16_f32
#define H_fp8e4m3x16_f32
INL u8x16 fp8e4m3x16_f32(f32x16 x) {
  u32x16 b = (u32x16)x, a = b & 0x7fffffff, low = (u32x16)(a < 0x3c800000), past = (u32x16)(a > 0x43e80000);
  u32x16 n = (a - (120u << 23) + 0x7ffff + (a >> 20 & 1)) >> 20, d = (u32x16)((f32x16)(a & low) * 0x1p9f + 0x1p23f) - 0x4b000000;
  u32x16 r = (d & low) | (n & ~low & ~past) | (127 & past);
  return __builtin_convertvector((b >> 24 & 128) | r, u8x16);
}
#endif
VECTOR(u8, 8)
VECTOR(f32, 8)
VECTOR(u32, 8)
VECTOR(i32, 8)
#ifndef H_f32x8_fp8e5m2
#define H_f32x8_fp8e5m2
INL f32x8 f32x8_fp8e5m2(u8x8 a) {
  u32x8 b = __builtin_convertvector(a, u32x8), m = b & 127, low = (u32x8)(m < 4), top = (u32x8)(m >= 124) & (112u << 23);
  u32x8 d = (u32x8)(__builtin_convertvector((i32x8)m, f32x8) * 0x1p-16f), n = (m << 21) + (112u << 23) + top;
  return (f32x8)((b & 128) << 24 | (d & low) | (n & ~low));
}
#endif
#ifndef H_fp8e5m2x8_f32
#define H_fp8e5m2x8_f32
INL u8x8 fp8e5m2x8_f32(f32x8 x) {
  u32x8 b = (u32x8)x, a = b & 0x7fffffff, low = (u32x8)(a < 0x38800000), past = (u32x8)(a >= 0x47700000);
  u32x8 n = (a - (112u << 23) + 0xfffff + (a >> 21 & 1)) >> 21, d = (u32x8)((f32x8)(a & low) * 0x1p16f + 0x1p23f) - 0x4b000000;
  u32x8 r = (d & low) | (n & ~low & ~past) | ((124 | ((u32x8)(a > 0x7f800000) & 2)) & past);
  return __builtin_convertvector((b >> 24 & 128) | r, u8x8);
}
#endif
#ifndef H_f32x8_fp8e4m3
#define H_f32x8_fp8e4m3
INL f32x8 f32x8_fp8e4m3(u8x8 a) {
  u32x8 b = __builtin_convertvector(a, u32x8), m = b & 127, low = (u32x8)(m < 8), nan = (u32x8)(m == 127) & 0x7fc00000;
  u32x8 d = (u32x8)(__builtin_convertvector((i32x8)m, f32x8) * 0x1p-9f), n = (m << 20) + (120u << 23);
  return (f32x8)((b & 128) << 24 | nan | (d & low) | (n & ~low));
}
#endif
#ifndef H_fp8e4m3x8_f32
#define H_fp8e4m3x8_f32
INL u8x8 fp8e4m3x8_f32(f32x8 x) {
  u32x8 b = (u32x8)x, a = b & 0x7fffffff, low = (u32x8)(a < 0x3c800000), past = (u32x8)(a > 0x43e80000);
  u32x8 n = (a - (120u << 23) + 0x7ffff + (a >> 20 & 1)) >> 20, d = (u32x8)((f32x8)(a & low) * 0x1p9f + 0x1p23f) - 0x4b000000;
  u32x8 r = (d & low) | (n & ~low & ~past) | (127 & past);
  return __builtin_convertvector((b >> 24 & 128) | r, u8x8);
}
#endif
void e_40(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  u8 *p0 = (u8 *)bufs[0];
  u8 *p1 = (u8 *)bufs[1];
  u8 *p2 = (u8 *)bufs[2];
  u8 *p3 = (u8 *)bufs[3];
  u8 *p4 = (u8 *)bufs[4];
  u8 *p5 = (u8 *)bufs[5];
  u8x16 v0 = *(const u8x16u *)(p1 + 0l);
  f32x16 v1 = f32x16_fp8e5m2(v0);
  u8x16 v2 = *(const u8x16u *)(p2 + 0l);
  f32x16 v3 = f32x16_fp8e5m2(v2);
  f32x16 v4 = v1 * v3;
  u8x16 v5 = fp8e5m2x16_f32(v4);
  f32x16 v6 = f32x16_fp8e5m2(v5);
  f32x16 v7 = v6 + v1;
  u8x16 v8 = fp8e5m2x16_f32(v7);
  f32x16 v9 = f32x16_fp8e5m2(v8);
  f32x16 v10 = v9 * v3;
  u8x16 v11 = fp8e5m2x16_f32(v10);
  u8x16 v12 = *(const u8x16u *)(p1 + 16l);
  f32x16 v13 = f32x16_fp8e5m2(v12);
  u8x16 v14 = *(const u8x16u *)(p2 + 16l);
  f32x16 v15 = f32x16_fp8e5m2(v14);
  f32x16 v16 = v13 * v15;
  u8x16 v17 = fp8e5m2x16_f32(v16);
  f32x16 v18 = f32x16_fp8e5m2(v17);
  f32x16 v19 = v18 + v13;
  u8x16 v20 = fp8e5m2x16_f32(v19);
  f32x16 v21 = f32x16_fp8e5m2(v20);
  f32x16 v22 = v21 * v15;
  u8x16 v23 = fp8e5m2x16_f32(v22);
  u8x16 v24 = *(const u8x16u *)(p4 + 0l);
  f32x16 v25 = f32x16_fp8e4m3(v24);
  u8x16 v26 = *(const u8x16u *)(p5 + 0l);
  f32x16 v27 = f32x16_fp8e4m3(v26);
  f32x16 v28 = v25 * v27;
  u8x16 v29 = fp8e4m3x16_f32(v28);
  f32x16 v30 = f32x16_fp8e4m3(v29);
  f32x16 v31 = v30 + v25;
  u8x16 v32 = fp8e4m3x16_f32(v31);
  f32x16 v33 = f32x16_fp8e4m3(v32);
  f32x16 v34 = v33 * v27;
  u8x16 v35 = fp8e4m3x16_f32(v34);
  u8x16 v36 = *(const u8x16u *)(p4 + 16l);
  f32x16 v37 = f32x16_fp8e4m3(v36);
  u8x16 v38 = *(const u8x16u *)(p5 + 16l);
  f32x16 v39 = f32x16_fp8e4m3(v38);
  f32x16 v40 = v37 * v39;
  u8x16 v41 = fp8e4m3x16_f32(v40);
  f32x16 v42 = f32x16_fp8e4m3(v41);
  f32x16 v43 = v42 + v37;
  u8x16 v44 = fp8e4m3x16_f32(v43);
  f32x16 v45 = f32x16_fp8e4m3(v44);
  f32x16 v46 = v45 * v39;
  u8x16 v47 = fp8e4m3x16_f32(v46);
  u8x8 v48 = *(const u8x8u *)(p1 + 32l);
  f32x8 v49 = f32x8_fp8e5m2(v48);
  u8x8 v50 = *(const u8x8u *)(p2 + 32l);
  f32x8 v51 = f32x8_fp8e5m2(v50);
  f32x8 v52 = v49 * v51;
  u8x8 v53 = fp8e5m2x8_f32(v52);
  f32x8 v54 = f32x8_fp8e5m2(v53);
  f32x8 v55 = v54 + v49;
  u8x8 v56 = fp8e5m2x8_f32(v55);
  f32x8 v57 = f32x8_fp8e5m2(v56);
  f32x8 v58 = v57 * v51;
  u8x8 v59 = fp8e5m2x8_f32(v58);
  u8x8 v60 = *(const u8x8u *)(p4 + 32l);
  f32x8 v61 = f32x8_fp8e4m3(v60);
  u8x8 v62 = *(const u8x8u *)(p5 + 32l);
  f32x8 v63 = f32x8_fp8e4m3(v62);
  f32x8 v64 = v61 * v63;
  u8x8 v65 = fp8e4m3x8_f32(v64);
  f32x8 v66 = f32x8_fp8e4m3(v65);
  f32x8 v67 = v66 + v61;
  u8x8 v68 = fp8e4m3x8_f32(v67);
  f32x8 v69 = f32x8_fp8e4m3(v68);
  f32x8 v70 = v69 * v63;
  u8x8 v71 = fp8e4m3x8_f32(v70);
  *(u8x16u *)(p0 + 0l) = v11;
  *(u8x16u *)(p0 + 16l) = v23;
  *(u8x16u *)(p3 + 0l) = v35;
  *(u8x16u *)(p3 + 16l) = v47;
  *(u8x8u *)(p0 + 32l) = v59;
  *(u8x8u *)(p3 + 32l) = v71;
}
