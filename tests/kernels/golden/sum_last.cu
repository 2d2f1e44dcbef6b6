/* r_10, CUDA, grid 10 1 1 of blocks 32 1 1, opts GROUP r1 32 */
extern "C" __global__ void __launch_bounds__(32) r_10(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  i32 v0 = (i32)blockIdx.x;   /* < 10 */
  i32 v1 = (i32)threadIdx.x;   /* < 32 */
  u8 v2 = v1 < 1;
  __shared__ __attribute__((aligned(16))) f32 l0[32];
  i32 v3 = v0 * 48;
  f32 acc0 = 0.0f;
  for (i32 r2 = 0; r2 < 2; r2++) {
    i32 v4 = r2 * 32;
    i32 v5 = v4 + v1;
    u8 v6 = v5 < 48;
    i32 v7 = v4 + v3;
    i32 v8 = v7 + v1;
    f32 v9 = v6 ? p1[v8] : 0;
    f32 v10 = v6 ? v9 : 0.0f;
    f32 v11 = acc0;
    f32 v12 = v11 + v10;
    acc0 = v12;
  }
  f32 v13 = acc0;
  l0[v1] = v13;
  __syncthreads();
  u8 v14 = v1 < 16;
  f32 v15 = v14 ? l0[v1] : 0;
  i32 v16 = v1 + 16;
  f32 v17 = v14 ? l0[v16] : 0;
  f32 v18 = v15 + v17;
  if (v14) l0[v1] = v18;
  __syncthreads();
  u8 v19 = v1 < 8;
  f32 v20 = v19 ? l0[v1] : 0;
  i32 v21 = v1 + 8;
  f32 v22 = v19 ? l0[v21] : 0;
  f32 v23 = v20 + v22;
  if (v19) l0[v1] = v23;
  __syncthreads();
  u8 v24 = v1 < 4;
  f32 v25 = v24 ? l0[v1] : 0;
  i32 v26 = v1 + 4;
  f32 v27 = v24 ? l0[v26] : 0;
  f32 v28 = v25 + v27;
  if (v24) l0[v1] = v28;
  __syncthreads();
  u8 v29 = v1 < 2;
  f32 v30 = v29 ? l0[v1] : 0;
  i32 v31 = v1 + 2;
  f32 v32 = v29 ? l0[v31] : 0;
  f32 v33 = v30 + v32;
  if (v29) l0[v1] = v33;
  __syncthreads();
  f32 v34 = v2 ? l0[v1] : 0;
  i32 v35 = v1 + 1;
  f32 v36 = v2 ? l0[v35] : 0;
  f32 v37 = v34 + v36;
  if (v2) l0[v1] = v37;
  __syncthreads();
  f32 v38 = l0[0];
  if (v2) p0[v0] = v38;
}
