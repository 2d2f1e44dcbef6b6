/* e_9, CUDA, grid 2 1 1 of blocks 8 1 1, opts LOCAL r0 8 */
extern "C" __global__ void __launch_bounds__(8) e_9(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  i32 v0 = (i32)blockIdx.x;   /* < 2 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)threadIdx.x;   /* < 8 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 9;
  f32 v5 = v4 ? p1[v3] : 0;
  if (v4) p0[v3] = v5;
}

/* e_2_9, CUDA, grid 2 1 1 of blocks 16 1 1, opts LOCAL r2 16 */
extern "C" __global__ void __launch_bounds__(16) e_2_9(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  i32 v0 = (i32)blockIdx.x;   /* < 2 */
  i32 v1 = v0 * 16;
  i32 v2 = (i32)threadIdx.x;   /* < 16 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 18;
  f32 v5 = v4 ? p1[v3] : 0;
  f32 v6 = -v5;
  if (v4) p0[v3] = v6;
}

/* e_6, CUDA, grid 1 1 1 of blocks 1 1 1, no opts */
extern "C" __global__ void __launch_bounds__(1) e_6(f32 *__restrict__ p0, const i32 *__restrict__ p1, const f32 *__restrict__ p2) {
  for (i32 r0 = 0; r0 < 6; r0++) {
    i32 v0 = p1[r0];
    u8 v1 = v0 < 0;
    u8 v2 = v1 ^ 1;
    u8 v3 = v0 < 9;
    u8 v4 = v2 & v3;
    f32 v5 = p2[r0];
    if (v4) p0[v0] = v5;
  }
}

/* e_2_9, CUDA, grid 2 1 1 of blocks 16 1 1, opts LOCAL r2 16 */
extern "C" __global__ void __launch_bounds__(16) e_2_9(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  i32 v0 = (i32)blockIdx.x;   /* < 2 */
  i32 v1 = v0 * 16;
  i32 v2 = (i32)threadIdx.x;   /* < 16 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 18;
  f32 v5 = v4 ? p1[v3] : 0;
  if (v4) p0[v3] = v5;
}

/* e_2_3, CUDA, grid 1 1 1 of blocks 2 1 1, opts LOCAL r0 2 */
extern "C" __global__ void __launch_bounds__(2) e_2_3(f32 *__restrict__ p0, const i32 *__restrict__ p1, const f32 *__restrict__ p2) {
  i64 v0 = (i64)threadIdx.x;   /* < 2ll */
  i64 v1 = v0 * 3ll;
  i64 v2 = v0 * 9ll;
  for (i64 r1 = 0; r1 < 3ll; r1++) {
    i64 v3 = r1 + v1;
    i32 v4 = p1[v3];
    i64 v5 = (i64)v4;
    i64 v6 = v5 + v2;
    u8 v7 = v5 < 0ll;
    u8 v8 = v7 ^ 1;
    u8 v9 = v5 < 9ll;
    u8 v10 = v8 & v9;
    f32 v11 = v10 ? p0[v6] : 0;
    f32 v12 = p2[v3];
    f32 v13 = v11 + v12;
    if (v10) p0[v6] = v13;
  }
}
