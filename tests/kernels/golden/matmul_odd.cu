/* r_3_7, CUDA, grid 2 2 1 of blocks 4 2 1, opts LOCAL r1 4, LOCAL r0 2 */
extern "C" __global__ void __launch_bounds__(8) r_3_7(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)threadIdx.y;   /* < 2 */
  i32 v1 = v0 * 13;
  i32 v2 = (i32)blockIdx.y;   /* < 2 */
  i32 v3 = v2 * 26;
  i32 v4 = v2 * 2;
  i32 v5 = v0 + v4;
  u8 v6 = v5 < 3;
  i32 v7 = (i32)threadIdx.x;   /* < 4 */
  i32 v8 = (i32)blockIdx.x;   /* < 2 */
  i32 v9 = v8 * 4;
  i32 v10 = v7 + v9;
  u8 v11 = v10 < 7;
  for (i32 r2 = 0; r2 < 13; r2++) {
    i32 v12 = v1 + r2;
    i32 v13 = v12 + v3;
    f32 v14 = v6 ? p1[v13] : 0;
    i32 v15 = r2 * 7;
    i32 v16 = v10 + v15;
    f32 v17 = v11 ? p2[v16] : 0;
    f32 v18 = acc0;
    f32 v19 = fma_f32(v14, v17, v18);
    acc0 = v19;
  }
  i32 v20 = v0 * 7;
  i32 v21 = v10 + v20;
  i32 v22 = v2 * 14;
  i32 v23 = v21 + v22;
  u8 v24 = v11 & v6;
  f32 v25 = acc0;
  if (v24) p0[v23] = v25;
}
