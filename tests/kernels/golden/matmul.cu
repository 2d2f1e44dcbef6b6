/* r_8_32, CUDA, grid 32 1 1 of blocks 16 8 1, opts LOCAL r0 8, GROUP r2 16 */
extern "C" __global__ void __launch_bounds__(128) r_8_32(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2) {
  i32 v0 = (i32)threadIdx.y;   /* < 8 */
  i32 v1 = v0 * 16;
  i32 v2 = (i32)threadIdx.x;   /* < 16 */
  i32 v3 = v1 + v2;
  f32 v4 = p1[v3];
  i32 v5 = (i32)blockIdx.x;   /* < 32 */
  i32 v6 = v2 * 32;
  i32 v7 = v5 + v6;
  f32 v8 = p2[v7];
  f32 v9 = fma_f32(v4, v8, 0.0f);
  f32 v10 = __shfl_xor_sync(0xffffffffu, v9, 8);
  f32 v11 = v9 + v10;
  f32 v12 = __shfl_xor_sync(0xffffffffu, v11, 4);
  f32 v13 = v11 + v12;
  f32 v14 = __shfl_xor_sync(0xffffffffu, v13, 2);
  f32 v15 = v13 + v14;
  f32 v16 = __shfl_xor_sync(0xffffffffu, v15, 1);
  f32 v17 = v15 + v16;
  i32 v18 = v0 * 32;
  i32 v19 = v18 + v5;
  u8 v20 = v2 < 1;
  if (v20) p0[v19] = v17;
}
