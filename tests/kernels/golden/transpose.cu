/* e_20_12, CUDA, grid 2 2 1 of blocks 8 16 1, opts LOCAL r1 8, LOCAL r0 16 */
extern "C" __global__ void __launch_bounds__(128) e_20_12(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  i32 v0 = (i32)blockIdx.x;   /* < 2 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)threadIdx.x;   /* < 8 */
  i32 v3 = v1 + v2;
  i32 v4 = (i32)blockIdx.y;   /* < 2 */
  i32 v5 = v4 * 192;
  i32 v6 = v3 + v5;
  i32 v7 = (i32)threadIdx.y;   /* < 16 */
  i32 v8 = v7 * 12;
  i32 v9 = v6 + v8;
  u8 v10 = v3 < 12;
  i32 v11 = v4 * 16;
  i32 v12 = v11 + v7;
  u8 v13 = v12 < 20;
  u8 v14 = v10 & v13;
  i32 v15 = v0 * 160;
  i32 v16 = v2 * 20;
  i32 v17 = v15 + v16;
  i32 v18 = v17 + v11;
  i32 v19 = v18 + v7;
  f32 v20 = v14 ? p1[v19] : 0;
  if (v14) p0[v9] = v20;
}
