/* r_6_8, CUDA, grid 2 1 1 of blocks 8 4 1, opts LOCAL r0 4, GROUP r2 8, GROUP r3 8, LOCAL r1 8 */
extern "C" __global__ void __launch_bounds__(32) r_6_8(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  i32 v0 = (i32)threadIdx.y;   /* < 4 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)blockIdx.x;   /* < 2 */
  i32 v3 = v2 * 32;
  i32 v4 = v1 + v3;
  i32 v5 = (i32)threadIdx.x;   /* < 8 */
  i32 v6 = v4 + v5;
  i32 v7 = v2 * 4;
  i32 v8 = v0 + v7;
  u8 v9 = v8 < 6;
  f32 v10 = v9 ? p1[v6] : 0;
  f32 v11 = (-f32_bits(0x7f800000u)) > v10 || (-f32_bits(0x7f800000u)) != (-f32_bits(0x7f800000u)) ? (-f32_bits(0x7f800000u)) : v10;
  f32 v12 = __shfl_xor_sync(0xffffffffu, v11, 4);
  f32 v13 = v11 > v12 || v11 != v11 ? v11 : v12;
  f32 v14 = __shfl_xor_sync(0xffffffffu, v13, 2);
  f32 v15 = v13 > v14 || v13 != v13 ? v13 : v14;
  f32 v16 = __shfl_xor_sync(0xffffffffu, v15, 1);
  f32 v17 = v15 > v16 || v15 != v15 ? v15 : v16;
  f32 v18 = v10 - v17;
  f32 v19 = exp_f32(v18);
  f32 v20 = 0.0f + v19;
  __shared__ __attribute__((aligned(16))) f32 l0[32];
  i32 v21 = v5 * 4;
  i32 v22 = v0 + v21;
  l0[v22] = v19;
  f32 v23 = __shfl_xor_sync(0xffffffffu, v20, 4);
  f32 v24 = v20 + v23;
  f32 v25 = __shfl_xor_sync(0xffffffffu, v24, 2);
  f32 v26 = v24 + v25;
  f32 v27 = __shfl_xor_sync(0xffffffffu, v26, 1);
  f32 v28 = v26 + v27;
  __syncthreads();
  f32 v29 = l0[v22];
  f32 v30 = v29 / v28;
  if (v9) p0[v6] = v30;
}
