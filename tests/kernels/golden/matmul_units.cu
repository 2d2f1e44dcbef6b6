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
  __shared__ __attribute__((aligned(16))) u16 l1[192];
  i32 v15 = v1 & 1;
  i32 v16 = v15 * 96;
  i32 v17 = (i32)(v1 >> 1);
  i32 v18 = v16 + v17;
  u16x4 v19 = *(const u16x4 *)(p2 + v8);
  u16 v20 = v19.x;
  l1[v18] = v20;
  i32 v21 = v18 + 24;
  u16 v22 = v19.y;
  l1[v21] = v22;
  i32 v23 = v18 + 48;
  u16 v24 = v19.z;
  l1[v23] = v24;
  i32 v25 = v18 + 72;
  u16 v26 = v19.w;
  l1[v25] = v26;
  tg_copy_async_wait_all(); __syncthreads();
  i32 v27 = v2 * 2;
  i32 v28 = v27 + v5;
  u16x2 v29 = *(const u16x2 *)(l0 + v28);
  i32 v30 = v28 + 192;
  u16x2 v31 = *(const u16x2 *)(l0 + v30);
  i32 v32 = v28 + 8;
  u16x2 v33 = *(const u16x2 *)(l0 + v32);
  i32 v34 = v28 + 200;
  u16x2 v35 = *(const u16x2 *)(l0 + v34);
  u16x2 v36 = *(const u16x2 *)(l1 + v28);
  u16x2 v37 = *(const u16x2 *)(l1 + v32);
  u32 a38[4] = {word(v29), word(v31), word(v33), word(v35)}, b38[2] = {word(v36), word(v37)}; f32x4 v38; tg_mma_m16n8k16_f16_f32(&v38, a38, b38, &v0);
  i32 v39 = v6 * 128;
  i32 v40 = v1 * 2;
  i32 v41 = v39 + v40;
  f32x4 v42 = f32x4{v38.x > v0.x || v38.x != v38.x ? v38.x : v0.x, v38.y > v0.y || v38.y != v38.y ? v38.y : v0.y, v38.z > v0.z || v38.z != v38.z ? v38.z : v0.z, v38.w > v0.w || v38.w != v38.w ? v38.w : v0.w};
  f32x2 v43 = f32x2{v42.x, v42.y};
  i32 v44 = v41 + 64;
  f32x2 v45 = f32x2{v42.z, v42.w};
  *(f32x2 *)(p0 + v41) = v43;
  *(f32x2 *)(p0 + v44) = v45;
}
