/* r_3_7, CUDA, grid 7 3 1 of blocks 1 1 1, no opts */
extern "C" __global__ void __launch_bounds__(1) r_3_7(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)blockIdx.y;   /* < 3 */
  i32 v1 = v0 * 13;
  i32 v2 = (i32)blockIdx.x;   /* < 7 */
  for (i32 r2 = 0; r2 < 13; r2++) {
    i32 v3 = v1 + r2;
    f32 v4 = p1[v3];
    i32 v5 = r2 * 7;
    i32 v6 = v2 + v5;
    f32 v7 = p2[v6];
    f32 v8 = acc0;
    f32 v9 = fma_f32(v4, v7, v8);
    acc0 = v9;
  }
  i32 v10 = v0 * 7;
  i32 v11 = v2 + v10;
  f32 v12 = acc0;
  p0[v11] = v12;
}
