/* e_2_3_16, CUDA, grid 3 1 1 of blocks 16 2 1, opts LOCAL r2 16, LOCAL r0 2 */
extern "C" __global__ void __launch_bounds__(32) e_2_3_16(f32 *__restrict__ p0, const i32 *__restrict__ p1, const f32 *__restrict__ p2) {
  i64 v0 = (i64)blockIdx.x;   /* < 3ll */
  i64 v1 = v0 * 16ll;
  i64 v2 = (i64)threadIdx.y;   /* < 2ll */
  i64 v3 = v2 * 48ll;
  i64 v4 = v1 + v3;
  i64 v5 = (i64)threadIdx.x;   /* < 16ll */
  i64 v6 = v4 + v5;
  i64 v7 = v2 * 3ll;
  i64 v8 = v0 + v7;
  i32 v9 = p1[v8];
  i64 v10 = (i64)v9;
  i64 v11 = v10 * 16ll;
  i64 v12 = v11 + v5;
  u8 v13 = v10 < 0ll;
  u8 v14 = v13 ^ 1;
  u8 v15 = v10 < 8ll;
  u8 v16 = v14 & v15;
  f32 v17 = v16 ? p2[v12] : 0;
  p0[v6] = v17;
}
