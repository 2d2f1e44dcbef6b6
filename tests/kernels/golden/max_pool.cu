/* r_3_4_4, CUDA, grid 3 1 1 of blocks 2 4 4, opts UNROLL r4 4, LOCAL r2 4, LOCAL r5 4, GROUP r3 2 */
extern "C" __global__ void __launch_bounds__(32) r_3_4_4(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  i32 v0 = (i32)blockIdx.x;   /* < 3 */
  i32 v1 = v0 * 64;
  i32 v2 = (i32)threadIdx.y;   /* < 4 */
  i32 v3 = v2 * 2;
  i32 v4 = v1 + v3;
  i32 v5 = (i32)threadIdx.z;   /* < 4 */
  i32 v6 = v5 * 16;
  i32 v7 = v4 + v6;
  i32 v8 = (i32)threadIdx.x;   /* < 2 */
  i32 v9 = v8 * 8;
  i32 v10 = v7 + v9;
  f32 v11 = p1[v10];
  f32 v12 = (-f32_bits(0x7f800000u)) > v11 || (-f32_bits(0x7f800000u)) != (-f32_bits(0x7f800000u)) ? (-f32_bits(0x7f800000u)) : v11;
  i32 v13 = v10 + 1;
  f32 v14 = p1[v13];
  f32 v15 = v12 > v14 || v12 != v12 ? v12 : v14;
  f32 v16 = __shfl_xor_sync(0xffffffffu, v15, 1);
  f32 v17 = v15 > v16 || v15 != v15 ? v15 : v16;
  i32 v18 = v0 * 16;
  i32 v19 = v18 + v2;
  i32 v20 = v5 * 4;
  i32 v21 = v19 + v20;
  u8 v22 = v8 < 1;
  if (v22) p0[v21] = v17;
}
