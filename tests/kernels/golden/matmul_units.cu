/* r_80_8, CUDA, grid 5 1 1 of blocks 32 1 1, opts TILE r0 16, TILE r1 8, STAGE p1, STAGE p2, TC r0 r1 */
extern "C" __global__ void __launch_bounds__(32) r_80_8(f32 *__restrict__ p0, const u16 *__restrict__ p1, const u16 *__restrict__ p2) {
  f32x4 v0 = f32x4{0.0f, 0.0f, 0.0f, 0.0f};
  __shared__ __attribute__((aligned(16))) u16 l0[384];
  i32 v1 = (i32)threadIdx.x;   /* < 32 */
  i32 v2 = v1 & 3;
  i32 v3 = v2 * 4;
  i32 v4 = (i32)(v1 >> 2);
  i32 v5 = v4 * 24;
  i32 v6 = (i32)blockIdx.x;   /* < 5 */
  i32 v7 = v6 * 256;
  i32 v8 = v1 * 4;
  i32 v9 = v7 + v8;
  for (i32 r17 = 0; r17 < 2; r17++) {
    i32 v10 = r17 * 192;
    i32 v11 = v10 + v3;
    i32 v12 = v11 + v5;
    i32 v13 = r17 * 128;
    i32 v14 = v9 + v13;
    tg_copy_async_8(l0 + v12, p1 + v14);
  }
  __shared__ __attribute__((aligned(16))) u16 l1[128];
  tg_copy_async_8(l1 + v8, p2 + v8);
  tg_copy_async_wait_all(); __syncthreads();
  i32 v15 = (i32)(v1 >> 4);
  i32 v16 = v15 * 8;
  i32 v17 = v1 & 15;
  i32 v18 = v17 * 24;
  i32 v19 = v16 + v18;
  u32 v20[4]; tg_ldmatrix_x4(v20, l0 + v19);
  i32 v21 = v17 * 8;
  u32 v22[2]; tg_ldmatrix_x2_trans(v22, l1 + v21);
  u32 a23[4] = {v20[0], v20[1], v20[2], v20[3]}, b23[2] = {v22[0], v22[1]}; f32x4 v23; tg_mma_m16n8k16_f16_f32(&v23, a23, b23, &v0);
  i32 v24 = v6 * 128;
  i32 v25 = v1 * 2;
  i32 v26 = v24 + v25;
  f32x4 v27 = f32x4{v23.x > v0.x || v23.x != v23.x ? v23.x : v0.x, v23.y > v0.y || v23.y != v23.y ? v23.y : v0.y, v23.z > v0.z || v23.z != v23.z ? v23.z : v0.z, v23.w > v0.w || v23.w != v23.w ? v23.w : v0.w};
  f32x2 v28 = f32x2{v27.x, v27.y};
  i32 v29 = v26 + 64;
  f32x2 v30 = f32x2{v27.z, v27.w};
  *(f32x2 *)(p0 + v26) = v28;
  *(f32x2 *)(p0 + v29) = v30;
}
