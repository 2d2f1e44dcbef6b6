/* r_3, CUDA, grid 3 1 1 of blocks 128 1 1, opts GROUP r1 128 */
extern "C" __global__ void __launch_bounds__(128) r_3(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)blockIdx.x;   /* < 3 */
  i32 v1 = v0 * 200;
  i32 v2 = (i32)threadIdx.x;   /* < 128 */
  i32 v3 = v1 + v2;
  for (i32 r2 = 0; r2 < 2; r2++) {
    f32 v4 = acc0;
    i32 v5 = r2 * 128;
    i32 v6 = v3 + v5;
    i32 v7 = v2 + v5;
    u8 v8 = v7 < 200;
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
  __shared__ __attribute__((aligned(16))) f32 l0[4];
  i32 v22 = (i32)(v2 >> 5);
  i32 v23 = v2 & 31;
  u8 v24 = v23 < 1;
  if (v24) l0[v22] = v21;
  __syncthreads();
  i32 v25 = v2 & 3;
  f32 v26 = l0[v25];
  acc0 = v26;
  f32 v27 = __shfl_xor_sync(0xffffffffu, v26, 2);
  f32 v28 = v26 + v27;
  acc0 = v28;
  f32 v29 = __shfl_xor_sync(0xffffffffu, v28, 1);
  f32 v30 = v28 + v29;
  acc0 = v30;
  u8 v31 = v2 < 1;
  if (v31) p0[v0] = v30;
}
