/* r_2_3, CUDA, grid 2 1 1 of blocks 2 2 1, opts LOCAL r1 2, LOCAL r0 2 */
extern "C" __global__ void __launch_bounds__(4) r_2_3(f32 *__restrict__ p0, const i32 *__restrict__ p1, const f32 *__restrict__ p2) {
  i32 v0 = (i32)blockIdx.x;   /* < 2 */
  i32 v1 = v0 * 2;
  i32 v2 = (i32)threadIdx.y;   /* < 2 */
  i32 v3 = v2 * 3;
  i32 v4 = v1 + v3;
  i32 v5 = (i32)threadIdx.x;   /* < 2 */
  i32 v6 = v4 + v5;
  i32 v7 = v1 + v5;
  u8 v8 = v7 < 3;
  i32 v9 = v8 ? p1[v6] : 0;
  i32 v10 = v2 * 9;
  f32 acc0 = 0.0f;
  for (i32 r2 = 0; r2 < 9; r2++) {
    u8 v11 = v9 == r2;
    i32 v12 = r2 + v10;
    f32 v13 = p2[v12];
    f32 v14 = v11 ? v13 : 0.0f;
    f32 v15 = acc0;
    f32 v16 = v15 + v14;
    acc0 = v16;
  }
  f32 v17 = acc0;
  if (v8) p0[v6] = v17;
}
