/* r_2_3, C, 1 thread, opts UPCAST r1 3, GROUP r2 8 */
VECTOR(f32, 8)
#ifndef H_f32x8_splat
#define H_f32x8_splat
INL f32x8 f32x8_splat(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(i64, 8)
VECTOR(i32, 8)
#ifndef H_i32x8_splat
#define H_i32x8_splat
INL i32x8 i32x8_splat(i32 x) { return (i32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(f32, 4)
VECTOR(f32, 2)
void r_2_3(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  i32 *p1 = (i32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  f32x8 v0 = f32x8_splat(0.0f);
  i64x8 v1 = (i64x8){0l, 1l, 2l, 3l, 4l, 5l, 6l, 7l};
  i32x8 v2 = __builtin_convertvector(v1, i32x8);
  for (i64 r0 = 0; r0 < 2l; r0++) {
    i64 v3 = r0 * 3l;
    i32 v4 = p1[v3];
    i32x8 v5 = i32x8_splat(v4);
    i32x8 v6 = (i32x8)(v5 == v2);
    i64 v7 = r0 * 9l;
    f32x8 v8 = *(const f32x8u *)(p2 + v7);
    f32x8 v9 = (f32x8)((v6 & (i32x8)v8) | (~v6 & (i32x8)v0));
    f32x8 v10 = v0 + v9;
    f32x4 v11 = __builtin_shufflevector(v10, v10, 0, 1, 2, 3);
    f32x4 v12 = __builtin_shufflevector(v10, v10, 4, 5, 6, 7);
    f32x4 v13 = v11 + v12;
    f32x2 v14 = __builtin_shufflevector(v13, v13, 0, 1);
    f32x2 v15 = __builtin_shufflevector(v13, v13, 2, 3);
    f32x2 v16 = v14 + v15;
    f32 v17 = v16[0] + v16[1];
    u8 v18 = v4 == 8;
    i64 v19 = v7 + 8l;
    f32 v20 = p2[v19];
    f32 v21 = v18 ? v20 : 0.0f;
    f32 v22 = v17 + v21;
    i64 v23 = v3 + 1l;
    i32 v24 = p1[v23];
    i32x8 v25 = i32x8_splat(v24);
    i32x8 v26 = (i32x8)(v25 == v2);
    f32x8 v27 = (f32x8)((v26 & (i32x8)v8) | (~v26 & (i32x8)v0));
    f32x8 v28 = v0 + v27;
    f32x4 v29 = __builtin_shufflevector(v28, v28, 0, 1, 2, 3);
    f32x4 v30 = __builtin_shufflevector(v28, v28, 4, 5, 6, 7);
    f32x4 v31 = v29 + v30;
    f32x2 v32 = __builtin_shufflevector(v31, v31, 0, 1);
    f32x2 v33 = __builtin_shufflevector(v31, v31, 2, 3);
    f32x2 v34 = v32 + v33;
    f32 v35 = v34[0] + v34[1];
    u8 v36 = v24 == 8;
    f32 v37 = v36 ? v20 : 0.0f;
    f32 v38 = v35 + v37;
    i64 v39 = v3 + 2l;
    i32 v40 = p1[v39];
    i32x8 v41 = i32x8_splat(v40);
    i32x8 v42 = (i32x8)(v41 == v2);
    f32x8 v43 = (f32x8)((v42 & (i32x8)v8) | (~v42 & (i32x8)v0));
    f32x8 v44 = v0 + v43;
    f32x4 v45 = __builtin_shufflevector(v44, v44, 0, 1, 2, 3);
    f32x4 v46 = __builtin_shufflevector(v44, v44, 4, 5, 6, 7);
    f32x4 v47 = v45 + v46;
    f32x2 v48 = __builtin_shufflevector(v47, v47, 0, 1);
    f32x2 v49 = __builtin_shufflevector(v47, v47, 2, 3);
    f32x2 v50 = v48 + v49;
    f32 v51 = v50[0] + v50[1];
    u8 v52 = v40 == 8;
    f32 v53 = v52 ? v20 : 0.0f;
    f32 v54 = v51 + v53;
    p0[v3] = v22;
    p0[v23] = v38;
    p0[v39] = v54;
  }
}
