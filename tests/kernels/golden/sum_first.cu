/* r_20, CUDA, grid 20 1 1 of blocks 1 1 1, opts UNROLL r1 4 */
extern "C" __global__ void __launch_bounds__(1) r_20(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)blockIdx.x;   /* < 20 */
  for (i32 r2 = 0; r2 < 6; r2++) {
    f32 v1 = acc0;
    i32 v2 = r2 * 80;
    i32 v3 = v2 + v0;
    f32 v4 = p1[v3];
    f32 v5 = v1 + v4;
    acc0 = v5;
    i32 v6 = v3 + 20;
    f32 v7 = p1[v6];
    f32 v8 = v5 + v7;
    acc0 = v8;
    i32 v9 = v3 + 40;
    f32 v10 = p1[v9];
    f32 v11 = v8 + v10;
    acc0 = v11;
    i32 v12 = v3 + 60;
    f32 v13 = p1[v12];
    f32 v14 = v11 + v13;
    acc0 = v14;
  }
  f32 v15 = acc0;
  p0[v0] = v15;
}
