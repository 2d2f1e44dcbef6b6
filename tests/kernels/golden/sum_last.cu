/* r_10, CUDA, grid 10 1 1 of blocks 32 1 1, opts GROUP r1 32 */
extern "C" __global__ void __launch_bounds__(32) r_10(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)blockIdx.x;   /* < 10 */
  i32 v1 = v0 * 48;
  i32 v2 = (i32)threadIdx.x;   /* < 32 */
  i32 v3 = v1 + v2;
  for (i32 r2 = 0; r2 < 2; r2++) {
    f32 v4 = acc0;
    i32 v5 = r2 * 32;
    i32 v6 = v3 + v5;
    i32 v7 = v2 + v5;
    u8 v8 = v7 < 48;
    f32 v9 = v8 ? p1[v6] : 0;
    f32 v10 = v4 + v9;
    acc0 = v10;
  }
  f32 v11 = acc0;
  f32 v12 = __shfl_xor_sync(0xffffffffu, v11, 16);
  f32 v13 = v11 + v12;
  acc0 = v13;
  f32 v14 = __shfl_xor_sync(0xffffffffu, v13, 8);
  f32 v15 = v13 + v14;
  acc0 = v15;
  f32 v16 = __shfl_xor_sync(0xffffffffu, v15, 4);
  f32 v17 = v15 + v16;
  acc0 = v17;
  f32 v18 = __shfl_xor_sync(0xffffffffu, v17, 2);
  f32 v19 = v17 + v18;
  acc0 = v19;
  f32 v20 = __shfl_xor_sync(0xffffffffu, v19, 1);
  f32 v21 = v19 + v20;
  acc0 = v21;
  u8 v22 = v2 < 1;
  if (v22) p0[v0] = v21;
}
