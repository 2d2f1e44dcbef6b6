/* e_6_5, CUDA, grid 2 2 1 of blocks 4 4 1, opts LOCAL r1 4, LOCAL r0 4 */
extern "C" __global__ void __launch_bounds__(16) e_6_5(i32 *__restrict__ p0, const i32 *__restrict__ p1) {
  i32 v0 = (i32)threadIdx.x;   /* < 4 */
  i32 v1 = (i32)threadIdx.y;   /* < 4 */
  i32 v2 = v1 * 5;
  i32 v3 = v0 + v2;
  i32 v4 = (i32)blockIdx.x;   /* < 2 */
  i32 v5 = v4 * 4;
  i32 v6 = v3 + v5;
  i32 v7 = (i32)blockIdx.y;   /* < 2 */
  i32 v8 = v7 * 20;
  i32 v9 = v6 + v8;
  i32 v10 = v0 + v5;
  u8 v11 = v10 < 5;
  i32 v12 = v7 * 4;
  i32 v13 = v1 + v12;
  u8 v14 = v13 < 6;
  u8 v15 = v11 & v14;
  i32 v16 = v14 ? p1[v13] : 0;
  u8 v17 = v16 == v10;
  i32 v18 = (i32)v17;
  if (v15) p0[v9] = v18;
}

/* e_12, CUDA, grid 1 1 1 of blocks 1 1 1, no opts */
extern "C" __global__ void __launch_bounds__(1) e_12(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  f32 acc0 = 0.0f;
  for (i32 r0 = 0; r0 < 12; r0++) {
    f32 v0 = acc0;
    f32 v1 = p1[r0];
    f32 v2 = v0 + v1;
    acc0 = v2;
    p0[r0] = v2;
  }
}

/* e_12, CUDA, grid 2 1 1 of blocks 8 1 1, opts LOCAL r0 8 */
extern "C" __global__ void __launch_bounds__(8) e_12(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  i32 v0 = (i32)blockIdx.x;   /* < 2 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)threadIdx.x;   /* < 8 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 12;
  f32 v5 = v4 ? p1[v3] : 0;
  i32 v6 = v3 + 5;
  f32 v7 = (f32)v6;
  f32 v8 = v5 + v7;
  if (v4) p0[v3] = v8;
}
