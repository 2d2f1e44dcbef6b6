/* r_8_32, CUDA, grid 8 8 1 of blocks 16 4 1, opts LOCAL r1 4, GROUP r2 16 */
extern "C" __global__ void __launch_bounds__(64) r_8_32(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2) {
  i32 v0 = (i32)blockIdx.y;   /* < 8 */
  i32 v1 = v0 * 16;
  i32 v2 = (i32)threadIdx.x;   /* < 16 */
  i32 v3 = v1 + v2;
  f32 v4 = p1[v3];
  i32 v5 = (i32)threadIdx.y;   /* < 4 */
  i32 v6 = (i32)blockIdx.x;   /* < 8 */
  i32 v7 = v6 * 4;
  i32 v8 = v5 + v7;
  i32 v9 = v2 * 32;
  i32 v10 = v8 + v9;
  f32 v11 = p2[v10];
  f32 v12 = fma_f32(v4, v11, 0.0f);
  f32 v13 = __shfl_xor_sync(0xffffffffu, v12, 8);
  f32 v14 = v12 + v13;
  f32 v15 = __shfl_xor_sync(0xffffffffu, v14, 4);
  f32 v16 = v14 + v15;
  f32 v17 = __shfl_xor_sync(0xffffffffu, v16, 2);
  f32 v18 = v16 + v17;
  f32 v19 = __shfl_xor_sync(0xffffffffu, v18, 1);
  f32 v20 = v18 + v19;
  i32 v21 = v0 * 32;
  i32 v22 = v5 + v21;
  i32 v23 = v22 + v7;
  u8 v24 = v2 < 1;
  if (v24) p0[v23] = v20;
}
