/* r_3_7, CUDA, grid 2 3 1 of blocks 8 4 1, opts LOCAL r1 4, GROUP r2 8, UNROLL r2 4 */
extern "C" __global__ void __launch_bounds__(32) r_3_7(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2) {
  i32 v0 = (i32)blockIdx.y;   /* < 3 */
  i32 v1 = v0 * 13;
  i32 v2 = (i32)threadIdx.x;   /* < 8 */
  i32 v3 = v1 + v2;
  f32 v4 = p1[v3];
  i32 v5 = (i32)threadIdx.y;   /* < 4 */
  i32 v6 = (i32)blockIdx.x;   /* < 2 */
  i32 v7 = v6 * 4;
  i32 v8 = v5 + v7;
  i32 v9 = v2 * 7;
  i32 v10 = v8 + v9;
  u8 v11 = v8 < 7;
  f32 v12 = v11 ? p2[v10] : 0;
  f32 v13 = fma_f32(v4, v12, 0.0f);
  u8 v14 = v2 < 5;
  i32 v15 = v3 + 8;
  f32 v16 = v14 ? p1[v15] : 0;
  i32 v17 = v10 + 56;
  u8 v18 = v11 & v14;
  f32 v19 = v18 ? p2[v17] : 0;
  f32 v20 = v16 * v19;
  f32 v21 = v14 ? v20 : 0.0f;
  f32 v22 = v13 + v21;
  f32 v23 = __shfl_xor_sync(0xffffffffu, v22, 4);
  f32 v24 = v22 + v23;
  f32 v25 = __shfl_xor_sync(0xffffffffu, v24, 2);
  f32 v26 = v24 + v25;
  f32 v27 = __shfl_xor_sync(0xffffffffu, v26, 1);
  f32 v28 = v26 + v27;
  i32 v29 = v0 * 7;
  i32 v30 = v29 + v5;
  i32 v31 = v30 + v7;
  u8 v32 = v2 < 1;
  u8 v33 = v11 & v32;
  if (v33) p0[v31] = v28;
}
