/* r_3_4_4, C, 1 thread, opts VEC r2 4 */
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
VECTOR(i8, 4)
VECTOR(i32, 4)
#ifndef H_fma_f32x4
#define H_fma_f32x4
INL f32x4 fma_f32x4(f32x4 a, f32x4 b, f32x4 c) {
#if defined(__clang__)
  _Pragma("STDC FP_CONTRACT ON") return a * b + c;
#elif defined(__FMA__)
  return FMA128(s, a, b, c);
#else
  f32x4 r; for (int i = 0; i < 4; i++) r[i] = fma_f32(a[i], b[i], c[i]); return r;
#endif
}
#endif
void r_3_4_4(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  f32 *p3 = (f32 *)bufs[3];
  f32x4 v0 = f32x4_splat(0.0f);
  for (i64 r0 = 0; r0 < 3l; r0++) {
    i64 v1 = r0 * 18l;
    i64 v2 = r0 * 16l;
    f32 v3 = p3[r0];
    f32x4 v4 = f32x4_splat(v3);
    for (i64 r1 = 0; r1 < 4l; r1++) {
      f32x4 acc0 = v0;
      i64 v5 = r1 * 4l;
      for (i64 r5 = 0; r5 < 2l; r5++) {
        i64 v6 = r5 * 16l;
        i64 v7 = r5 * 9l;
        for (i64 r3 = 0; r3 < 3l; r3++) {
          i64 v8 = r3 + r1;
          u8 v9 = v8 < 1l;
          u8 v10 = v9 ^ 1;
          u8 v11 = v8 < 5l;
          u8 v12 = v10 & v11;
          i64 v13 = r3 * 4l;
          i64 v14 = v13 + v6;
          i64 v15 = r3 * 3l;
          i64 v16 = v15 + v7;
          for (i64 r4 = 0; r4 < 3l; r4++) {
            u8 v17 = r4 < 1l;
            u8 v18 = v17 ^ 1;
            u8 v19 = v12 & v18;
            u8 v20 = r4 < 2l;
            u8 v21 = v12 & v20;
            i8x4 v22 = (i8x4){-v19, -v12, -v12, -v21};
            i64 v23 = v14 + r4;
            i64 v24 = v23 + v5;
            i64 v25 = v24 + (-5l);
            f32 v26 = v19 ? p1[v25] : 0;
            i64 v27 = v24 + (-4l);
            f32 v28 = v12 ? p1[v27] : 0;
            i64 v29 = v24 + (-3l);
            f32 v30 = v12 ? p1[v29] : 0;
            i64 v31 = v24 + (-2l);
            f32 v32 = v21 ? p1[v31] : 0;
            f32x4 v33 = (f32x4){v26, v28, v30, v32};
            f32x4 v34 = (f32x4)((__builtin_convertvector(v22, i32x4) & (i32x4)v33) | (~__builtin_convertvector(v22, i32x4) & (i32x4)v0));
            i64 v35 = v16 + r4;
            i64 v36 = v35 + v1;
            f32 v37 = p2[v36];
            f32x4 v38 = f32x4_splat(v37);
            f32x4 v39 = acc0;
            f32x4 v40 = fma_f32x4(v34, v38, v39);
            acc0 = v40;
          }
        }
      }
      i64 v41 = v5 + v2;
      f32x4 v42 = acc0;
      f32x4 v43 = v42 + v4;
      *(f32x4u *)(p0 + v41) = v43;
    }
  }
}
