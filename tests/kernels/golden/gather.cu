/* e_2_3, CUDA, grid 2 1 1 of blocks 2 2 1, opts LOCAL r1 2, LOCAL r0 2 */
extern "C" __global__ void __launch_bounds__(4) e_2_3(f32 *__restrict__ p0, const i32 *__restrict__ p1, const f32 *__restrict__ p2) {
  i64 v0 = (i64)blockIdx.x;   /* < 2ll */
  i64 v1 = v0 * 2ll;
  i64 v2 = (i64)threadIdx.y;   /* < 2ll */
  i64 v3 = v2 * 3ll;
  i64 v4 = v1 + v3;
  i64 v5 = (i64)threadIdx.x;   /* < 2ll */
  i64 v6 = v4 + v5;
  i64 v7 = v1 + v5;
  u8 v8 = v7 < 3ll;
  i64 v9 = v2 * 9ll;
  i32 v10 = v8 ? p1[v6] : 0;
  i64 v11 = (i64)v10;
  i64 v12 = v9 + v11;
  u8 v13 = v11 < 0ll;
  u8 v14 = v13 ^ 1;
  u8 v15 = v11 < 9ll;
  u8 v16 = v14 & v15;
  f32 v17 = v16 ? p2[v12] : 0;
  if (v8) p0[v6] = v17;
}
