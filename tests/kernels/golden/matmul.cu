/* r_8_32, CUDA, grid 1 1 1 of blocks 32 2 1, opts UPCAST r0 4, LOCAL r1 32, LOCAL r0 2 */
extern "C" __global__ void __launch_bounds__(64) r_8_32(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2) {
  f32 acc0 = 0.0f;
  f32 acc1 = 0.0f;
  f32 acc2 = 0.0f;
  f32 acc3 = 0.0f;
  i32 v0 = (i32)threadIdx.y;   /* < 2 */
  i32 v1 = v0 * 64;
  i32 v2 = (i32)threadIdx.x;   /* < 32 */
  for (i32 r2 = 0; r2 < 16; r2++) {
    i32 v3 = v1 + r2;
    f32 v4 = p1[v3];
    i32 v5 = r2 * 32;
    i32 v6 = v2 + v5;
    f32 v7 = p2[v6];
    f32 v8 = acc0;
    f32 v9 = fma_f32(v4, v7, v8);
    acc0 = v9;
    i32 v10 = v3 + 16;
    f32 v11 = p1[v10];
    f32 v12 = acc1;
    f32 v13 = fma_f32(v11, v7, v12);
    acc1 = v13;
    i32 v14 = v3 + 32;
    f32 v15 = p1[v14];
    f32 v16 = acc2;
    f32 v17 = fma_f32(v15, v7, v16);
    acc2 = v17;
    i32 v18 = v3 + 48;
    f32 v19 = p1[v18];
    f32 v20 = acc3;
    f32 v21 = fma_f32(v19, v7, v20);
    acc3 = v21;
  }
  i32 v22 = v0 * 128;
  i32 v23 = v2 + v22;
  f32 v24 = acc0;
  i32 v25 = v23 + 32;
  f32 v26 = acc1;
  i32 v27 = v23 + 64;
  f32 v28 = acc2;
  i32 v29 = v23 + 96;
  f32 v30 = acc3;
  p0[v23] = v24;
  p0[v25] = v26;
  p0[v27] = v28;
  p0[v29] = v30;
}
