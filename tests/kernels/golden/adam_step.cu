/* r, CUDA, grid 1 1 1 of blocks 16 1 1, opts GROUP r0 16 */
extern "C" __global__ void __launch_bounds__(16) r(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2, f32 *__restrict__ p3, f32 *__restrict__ p4) {
  i32 v0 = (i32)threadIdx.x;   /* < 16 */
  f32 v1 = p1[v0];
  f32 v2 = p2[v0];
  f32 v3 = fma_f32(v1, v2, 0.0f);
  __shared__ __attribute__((aligned(16))) f32 l0[16];
  l0[v0] = v3;
  __syncthreads();
  u8 v4 = v0 < 8;
  f32 v5 = v4 ? l0[v0] : 0;
  i32 v6 = v0 + 8;
  f32 v7 = v4 ? l0[v6] : 0;
  f32 v8 = v5 + v7;
  if (v4) l0[v0] = v8;
  __syncthreads();
  u8 v9 = v0 < 4;
  f32 v10 = v9 ? l0[v0] : 0;
  i32 v11 = v0 + 4;
  f32 v12 = v9 ? l0[v11] : 0;
  f32 v13 = v10 + v12;
  if (v9) l0[v0] = v13;
  __syncthreads();
  u8 v14 = v0 < 2;
  f32 v15 = v14 ? l0[v0] : 0;
  i32 v16 = v0 + 2;
  f32 v17 = v14 ? l0[v16] : 0;
  f32 v18 = v15 + v17;
  if (v14) l0[v0] = v18;
  __syncthreads();
  u8 v19 = v0 < 1;
  f32 v20 = v19 ? l0[v0] : 0;
  i32 v21 = v0 + 1;
  f32 v22 = v19 ? l0[v21] : 0;
  f32 v23 = v20 + v22;
  if (v19) l0[v0] = v23;
  __syncthreads();
  f32 v24 = l0[0];
  f32 v25 = v19 ? p3[0] : 0;
  f32 v26 = v25 * 0.9f;
  f32 v27 = v19 ? p4[0] : 0;
  f32 v28 = v27 * 0.999f;
  if (v19) p0[0] = v24;
  if (v19) p3[0] = v26;
  if (v19) p4[0] = v28;
}

/* e_16, CUDA, grid 16 1 1 of blocks 1 1 1, no opts */
extern "C" __global__ void __launch_bounds__(1) e_16(f32 *__restrict__ p0, const f32 *__restrict__ p1, f32 *__restrict__ p2, f32 *__restrict__ p3, const f32 *__restrict__ p4, const f32 *__restrict__ p5, const f32 *__restrict__ p6) {
  i32 v0 = (i32)blockIdx.x;   /* < 16 */
  f32 v1 = p0[v0];
  f32 v2 = v1 * 0.9f;
  f32 v3 = p1[v0];
  f32 v4 = v3 * 0.1f;
  f32 v5 = v2 + v4;
  f32 v6 = p2[v0];
  f32 v7 = v6 * 0.999f;
  f32 v8 = v3 * v3;
  f32 v9 = v8 * 0.001f;
  f32 v10 = v7 + v9;
  f32 v11 = p3[v0];
  f32 v12 = p4[0];
  f32 v13 = 1.0f - v12;
  f32 v14 = v5 / v13;
  f32 v15 = p5[0];
  f32 v16 = 1.0f - v15;
  f32 v17 = v10 / v16;
  f32 v18 = sqrt_f32(v17);
  f32 v19 = v18 + 1e-08f;
  f32 v20 = v14 / v19;
  f32 v21 = p6[0];
  f32 v22 = v20 * v21;
  f32 v23 = v11 - v22;
  p0[v0] = v5;
  p2[v0] = v10;
  p3[v0] = v23;
}
