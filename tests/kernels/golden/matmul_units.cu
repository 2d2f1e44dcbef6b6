/* r_80_8, CUDA, grid 5 1 1 of blocks 8 16 1, opts LOCAL r1 8, LOCAL r0 16 */
extern "C" __global__ void __launch_bounds__(128) r_80_8(f32 *__restrict__ p0, const u16 *__restrict__ p1, const u16 *__restrict__ p2) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)blockIdx.x;   /* < 5 */
  i32 v1 = v0 * 256;
  i32 v2 = (i32)threadIdx.y;   /* < 16 */
  i32 v3 = v2 * 16;
  i32 v4 = v1 + v3;
  i32 v5 = (i32)threadIdx.x;   /* < 8 */
  for (i32 r2 = 0; r2 < 16; r2++) {
    i32 v6 = v4 + r2;
    u16 v7 = p1[v6];
    f32 v8 = f32_f16(v7);
    i32 v9 = r2 * 8;
    i32 v10 = v5 + v9;
    u16 v11 = p2[v10];
    f32 v12 = f32_f16(v11);
    f32 v13 = acc0;
    f32 v14 = fma_f32(v8, v12, v13);
    acc0 = v14;
  }
  i32 v15 = v0 * 128;
  i32 v16 = v15 + v5;
  i32 v17 = v2 * 8;
  i32 v18 = v16 + v17;
  f32 v19 = acc0;
  f32 v20 = v19 > 0.0f || v19 != v19 ? v19 : 0.0f;
  p0[v18] = v20;
}
