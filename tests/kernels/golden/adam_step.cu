/* r, CUDA, grid 1 1 1 of blocks 1 1 1, no opts */
extern "C" __global__ void __launch_bounds__(1) r(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2, f32 *__restrict__ p3, f32 *__restrict__ p4) {
  f32 acc0 = 0.0f;
  for (i32 r0 = 0; r0 < 16; r0++) {
    f32 v0 = p1[r0];
    f32 v1 = p2[r0];
    f32 v2 = acc0;
    f32 v3 = fma_f32(v0, v1, v2);
    acc0 = v3;
  }
  f32 v4 = acc0;
  f32 v5 = p3[0];
  f32 v6 = v5 * 0.9f;
  f32 v7 = p4[0];
  f32 v8 = v7 * 0.999f;
  p0[0] = v4;
  p3[0] = v6;
  p4[0] = v8;
}

/* e_16, CUDA, grid 1 1 1 of blocks 16 1 1, opts LOCAL r0 16 */
extern "C" __global__ void __launch_bounds__(16) e_16(f32 *__restrict__ p0, const f32 *__restrict__ p1, f32 *__restrict__ p2, f32 *__restrict__ p3, const f32 *__restrict__ p4, const f32 *__restrict__ p5, const f32 *__restrict__ p6) {
  i32 v0 = (i32)threadIdx.x;   /* < 16 */
  f32 v1 = p0[v0];
  f32 v2 = v1 * 0.9f;
  f32 v3 = p1[v0];
  f32 v4 = v3 * 0.1f;
  f32 v5 = v2 + v4;
  f32 v6 = p2[v0];
  f32 v7 = v6 * 0.999f;
  f32 v8 = v3 * v3;
  f32 v9 = v8 * 0.001f;
  f32 v10 = v7 + v9;
  f32 v11 = p3[v0];
  f32 v12 = p4[0];
  f32 v13 = 1.0f - v12;
  f32 v14 = v5 / v13;
  f32 v15 = p5[0];
  f32 v16 = 1.0f - v15;
  f32 v17 = v10 / v16;
  f32 v18 = sqrt_f32(v17);
  f32 v19 = v18 + 1e-08f;
  f32 v20 = v14 / v19;
  f32 v21 = p6[0];
  f32 v22 = v20 * v21;
  f32 v23 = v11 - v22;
  p0[v0] = v5;
  p2[v0] = v10;
  p3[v0] = v23;
}
