/* e_20_12, CUDA, grid 20 1 1 of blocks 1 1 1, no opts */
extern "C" __global__ void __launch_bounds__(1) e_20_12(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)blockIdx.x;   /* < 20 */
  for (i32 r1 = 0; r1 < 12; r1++) {
    f32 v1 = acc0;
    i32 v2 = r1 * 20;
    i32 v3 = v2 + v0;
    f32 v4 = p1[v3];
    f32 v5 = v1 + v4;
    acc0 = v5;
    p0[v3] = v5;
  }
}

/* e_5_12, CUDA, grid 5 1 1 of blocks 1 1 1, no opts */
extern "C" __global__ void __launch_bounds__(1) e_5_12(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)blockIdx.x;   /* < 5 */
  i32 v1 = v0 * 12;
  for (i32 r1 = 0; r1 < 12; r1++) {
    i32 v2 = v1 + r1;
    f32 v3 = p1[v2];
    f32 v4 = p2[r1];
    f32 v5 = acc0;
    f32 v6 = fma_f32(v3, v4, v5);
    acc0 = v6;
    p0[v2] = v6;
  }
}
