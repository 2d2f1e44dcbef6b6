/* r_4_32, C, 1 thread, opts VEC r1 32, GROUP r2 32, GROUP r3 32 */
VECTOR(f32, 16)
VECTOR(f32, 8)
VECTOR(f32, 4)
VECTOR(f32, 2)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
void r_4_32(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p3 = (f32 *)bufs[3];
  f32x16 v0 = *(const f32x16u *)(p2 + 0l);
  f32x16 v1 = *(const f32x16u *)(p3 + 0l);
  f32x16 v2 = *(const f32x16u *)(p2 + 16l);
  f32x16 v3 = *(const f32x16u *)(p3 + 16l);
  for (i64 r0 = 0; r0 < 4l; r0++) {
    i64 v4 = r0 * 32l;
    f32x16 v5 = *(const f32x16u *)(p1 + v4);
    i64 v6 = v4 + 16l;
    f32x16 v7 = *(const f32x16u *)(p1 + v6);
    f32x16 v8 = v5 + v7;
    f32x8 v9 = __builtin_shufflevector(v8, v8, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v10 = __builtin_shufflevector(v8, v8, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v11 = v9 + v10;
    f32x4 v12 = __builtin_shufflevector(v11, v11, 0, 1, 2, 3);
    f32x4 v13 = __builtin_shufflevector(v11, v11, 4, 5, 6, 7);
    f32x4 v14 = v12 + v13;
    f32x2 v15 = __builtin_shufflevector(v14, v14, 0, 1);
    f32x2 v16 = __builtin_shufflevector(v14, v14, 2, 3);
    f32x2 v17 = v15 + v16;
    f32 v18 = v17[0] + v17[1];
    f32 v19 = 0.0f + v18;
    f32 v20 = v19 * 0.03125f;
    f32x16 v21 = f32x16_splat(v20);
    f32x16 v22 = v5 - v21;
    f32x16 v23 = v22 * v22;
    f32x16 v24 = v7 - v21;
    f32x16 v25 = v24 * v24;
    f32x16 v26 = v23 + v25;
    f32x8 v27 = __builtin_shufflevector(v26, v26, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v28 = __builtin_shufflevector(v26, v26, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v29 = v27 + v28;
    f32x4 v30 = __builtin_shufflevector(v29, v29, 0, 1, 2, 3);
    f32x4 v31 = __builtin_shufflevector(v29, v29, 4, 5, 6, 7);
    f32x4 v32 = v30 + v31;
    f32x2 v33 = __builtin_shufflevector(v32, v32, 0, 1);
    f32x2 v34 = __builtin_shufflevector(v32, v32, 2, 3);
    f32x2 v35 = v33 + v34;
    f32 v36 = v35[0] + v35[1];
    f32 v37 = 0.0f + v36;
    f32 v38 = v37 * 0.03125f;
    f32 v39 = v38 + 1e-05f;
    f32 v40 = sqrt_f32(v39);
    f32 v41 = 1 / v40;
    f32x16 v42 = f32x16_splat(v41);
    f32x16 v43 = v22 * v42;
    f32x16 v44 = v43 * v0;
    f32x16 v45 = v44 + v1;
    f32x16 v46 = v24 * v42;
    f32x16 v47 = v46 * v2;
    f32x16 v48 = v47 + v3;
    *(f32x16u *)(p0 + v4) = v45;
    *(f32x16u *)(p0 + v6) = v48;
  }
}
