/* r_4, C, 1 thread, opts GROUP r1 32 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i32, 16)
#ifndef H_max_f32x16
#define H_max_f32x16
INL f32x16 max_f32x16(f32x16 a, f32x16 b) {
  i32x16 m = (i32x16)(a > b);
  f32x16 r = (f32x16)((m & (i32x16)a) | (~m & (i32x16)b));
#if defined(__AVX512F__)
  return __builtin_ia32_fixupimmps512_mask(r, a, (i32x16){0} + 0x11, 0, -1, 4);
#else
  m = (i32x16)(a != a);
  return (f32x16)((m & (i32x16)a) | (~m & (i32x16)r));
#endif
}
#endif
VECTOR(f32, 8)
VECTOR(i32, 8)
#ifndef H_max_f32x8
#define H_max_f32x8
INL f32x8 max_f32x8(f32x8 a, f32x8 b) {
  i32x8 m = (i32x8)(a > b);
  f32x8 r = (f32x8)((m & (i32x8)a) | (~m & (i32x8)b));
  m = (i32x8)(a != a);
  return (f32x8)((m & (i32x8)a) | (~m & (i32x8)r));
}
#endif
VECTOR(f32, 4)
VECTOR(i32, 4)
#ifndef H_max_f32x4
#define H_max_f32x4
INL f32x4 max_f32x4(f32x4 a, f32x4 b) {
  i32x4 m = (i32x4)(a > b);
  f32x4 r = (f32x4)((m & (i32x4)a) | (~m & (i32x4)b));
  m = (i32x4)(a != a);
  return (f32x4)((m & (i32x4)a) | (~m & (i32x4)r));
}
#endif
VECTOR(f32, 2)
VECTOR(i32, 2)
#ifndef H_max_f32x2
#define H_max_f32x2
INL f32x2 max_f32x2(f32x2 a, f32x2 b) {
  i32x2 m = (i32x2)(a > b);
  f32x2 r = (f32x2)((m & (i32x2)a) | (~m & (i32x2)b));
  m = (i32x2)(a != a);
  return (f32x2)((m & (i32x2)a) | (~m & (i32x2)r));
}
#endif
void r_4(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x16 v0 = f32x16_splat((-__builtin_inff()));
  for (i64 r0 = 0; r0 < 4l; r0++) {
    i64 v1 = r0 * 33l;
    f32x16 v2 = *(const f32x16u *)(p1 + v1);
    f32x16 v3 = max_f32x16(v0, v2);
    i64 v4 = v1 + 16l;
    f32x16 v5 = *(const f32x16u *)(p1 + v4);
    f32x16 v6 = max_f32x16(v0, v5);
    i64 v7 = v1 + 32l;
    f32 v8 = p1[v7];
    f32 v9 = (-__builtin_inff()) > v8 || (-__builtin_inff()) != (-__builtin_inff()) ? (-__builtin_inff()) : v8;
    f32x16 v10 = max_f32x16(v3, v6);
    f32x8 v11 = __builtin_shufflevector(v10, v10, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v12 = __builtin_shufflevector(v10, v10, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v13 = max_f32x8(v11, v12);
    f32x4 v14 = __builtin_shufflevector(v13, v13, 0, 1, 2, 3);
    f32x4 v15 = __builtin_shufflevector(v13, v13, 4, 5, 6, 7);
    f32x4 v16 = max_f32x4(v14, v15);
    f32x2 v17 = __builtin_shufflevector(v16, v16, 0, 1);
    f32x2 v18 = __builtin_shufflevector(v16, v16, 2, 3);
    f32x2 v19 = max_f32x2(v17, v18);
    f32 v20 = v19[0] > v19[1] || v19[0] != v19[0] ? v19[0] : v19[1];
    f32 v21 = v9 > v20 || v9 != v9 ? v9 : v20;
    p0[r0] = v21;
  }
}
