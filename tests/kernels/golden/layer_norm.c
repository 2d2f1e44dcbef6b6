/* r_4_32, C, 1 thread, opts VEC r1 32, GROUP r2 32, GROUP r3 32 */
VECTOR(f32, 16)
#ifndef H_f32x16_splat
#define H_f32x16_splat
INL f32x16 f32x16_splat(f32 x) { return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f32, 8)
VECTOR(f32, 4)
VECTOR(f32, 2)
void r_4_32(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32 *p3 = (f32 *)bufs[3];
  f32x16 v0 = f32x16_splat(0.0f);
  f32x16 v1 = *(const f32x16u *)(p2 + 0l);
  f32x16 v2 = *(const f32x16u *)(p3 + 0l);
  f32x16 v3 = *(const f32x16u *)(p2 + 16l);
  f32x16 v4 = *(const f32x16u *)(p3 + 16l);
  for (i64 r0 = 0; r0 < 4l; r0++) {
    i64 v5 = r0 * 32l;
    f32x16 v6 = *(const f32x16u *)(p1 + v5);
    f32x16 v7 = v0 + v6;
    i64 v8 = v5 + 16l;
    f32x16 v9 = *(const f32x16u *)(p1 + v8);
    f32x16 v10 = v0 + v9;
    f32x16 v11 = v7 + v10;
    f32x8 v12 = __builtin_shufflevector(v11, v11, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v13 = __builtin_shufflevector(v11, v11, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v14 = v12 + v13;
    f32x4 v15 = __builtin_shufflevector(v14, v14, 0, 1, 2, 3);
    f32x4 v16 = __builtin_shufflevector(v14, v14, 4, 5, 6, 7);
    f32x4 v17 = v15 + v16;
    f32x2 v18 = __builtin_shufflevector(v17, v17, 0, 1);
    f32x2 v19 = __builtin_shufflevector(v17, v17, 2, 3);
    f32x2 v20 = v18 + v19;
    f32 v21 = v20[0] + v20[1];
    f32 v22 = v21 / 32.0f;
    f32x16 v23 = f32x16_splat(v22);
    f32x16 v24 = v6 - v23;
    f32x16 v25 = v24 * v24;
    f32x16 v26 = v0 + v25;
    f32x16 v27 = v9 - v23;
    f32x16 v28 = v27 * v27;
    f32x16 v29 = v0 + v28;
    f32x16 v30 = v26 + v29;
    f32x8 v31 = __builtin_shufflevector(v30, v30, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v32 = __builtin_shufflevector(v30, v30, 8, 9, 10, 11, 12, 13, 14, 15);
    f32x8 v33 = v31 + v32;
    f32x4 v34 = __builtin_shufflevector(v33, v33, 0, 1, 2, 3);
    f32x4 v35 = __builtin_shufflevector(v33, v33, 4, 5, 6, 7);
    f32x4 v36 = v34 + v35;
    f32x2 v37 = __builtin_shufflevector(v36, v36, 0, 1);
    f32x2 v38 = __builtin_shufflevector(v36, v36, 2, 3);
    f32x2 v39 = v37 + v38;
    f32 v40 = v39[0] + v39[1];
    f32 v41 = v40 / 32.0f;
    f32 v42 = v41 + 1e-05f;
    f32 v43 = sqrt_f32(v42);
    f32 v44 = 1 / v43;
    f32x16 v45 = f32x16_splat(v44);
    f32x16 v46 = v24 * v45;
    f32x16 v47 = v46 * v1;
    f32x16 v48 = v47 + v2;
    f32x16 v49 = v27 * v45;
    f32x16 v50 = v49 * v3;
    f32x16 v51 = v50 + v4;
    *(f32x16u *)(p0 + v5) = v48;
    *(f32x16u *)(p0 + v8) = v51;
  }
}
