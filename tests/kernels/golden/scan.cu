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

/* e_5_12, CUDA, grid 2 1 1 of blocks 4 1 1, opts LOCAL r0 4 */
extern "C" __global__ void __launch_bounds__(4) e_5_12(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)threadIdx.x;   /* < 4 */
  i32 v1 = v0 * 12;
  i32 v2 = (i32)blockIdx.x;   /* < 2 */
  i32 v3 = v2 * 48;
  i32 v4 = v2 * 4;
  i32 v5 = v0 + v4;
  u8 v6 = v5 < 5;
  for (i32 r1 = 0; r1 < 12; r1++) {
    i32 v7 = r1 + v1;
    i32 v8 = v7 + v3;
    f32 v9 = v6 ? p1[v8] : 0;
    f32 v10 = p2[r1];
    f32 v11 = acc0;
    f32 v12 = fma_f32(v9, v10, v11);
    acc0 = v12;
    if (v6) p0[v8] = v12;
  }
}
