/* e_2_8, CUDA, grid 1 1 1 of blocks 16 1 1, opts LOCAL r2 16 */
extern "C" __global__ void __launch_bounds__(16) e_2_8(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  i32 v0 = (i32)threadIdx.x;   /* < 16 */
  f32 v1 = p1[v0];
  f32 v2 = v1 * 2.0f;
  p0[v0] = v2;
}

/* e_2_8, CUDA, grid 1 1 1 of blocks 16 1 1, opts LOCAL r2 16 */
extern "C" __global__ void __launch_bounds__(16) e_2_8(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  i32 v0 = (i32)threadIdx.x;   /* < 16 */
  f32 v1 = p1[v0];
  p0[v0] = v1;
}
