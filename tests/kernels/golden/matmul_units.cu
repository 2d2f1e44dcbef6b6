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
    u16x4 v15 = *(const u16x4 *)(p1 + v14);
    *(u16x4 *)(l0 + v12) = v15;
  }
  __shared__ __attribute__((aligned(16))) u16 l1[192];
  i32 v16 = v1 & 1;
  i32 v17 = v16 * 96;
  i32 v18 = (i32)(v1 >> 1);
  i32 v19 = v17 + v18;
  u16x4 v20 = *(const u16x4 *)(p2 + v8);
  u16 v21 = v20.x;
  l1[v19] = v21;
  i32 v22 = v19 + 24;
  u16 v23 = v20.y;
  l1[v22] = v23;
  i32 v24 = v19 + 48;
  u16 v25 = v20.z;
  l1[v24] = v25;
  i32 v26 = v19 + 72;
  u16 v27 = v20.w;
  l1[v26] = v27;
  __syncthreads();
  i32 v28 = v2 * 2;
  i32 v29 = v28 + v5;
  u16x2 v30 = *(const u16x2 *)(l0 + v29);
  i32 v31 = v29 + 192;
  u16x2 v32 = *(const u16x2 *)(l0 + v31);
  i32 v33 = v29 + 8;
  u16x2 v34 = *(const u16x2 *)(l0 + v33);
  i32 v35 = v29 + 200;
  u16x2 v36 = *(const u16x2 *)(l0 + v35);
  u16x2 v37 = *(const u16x2 *)(l1 + v29);
  u16x2 v38 = *(const u16x2 *)(l1 + v33);
  u32 a39[4] = {word(v30), word(v32), word(v34), word(v36)}, b39[2] = {word(v37), word(v38)}; f32x4 v39; tg_mma_m16n8k16_f16_f32(&v39, a39, b39, &v0);
  i32 v40 = v6 * 128;
  i32 v41 = v1 * 2;
  i32 v42 = v40 + v41;
  f32x4 v43 = f32x4{v39.x > v0.x || v39.x != v39.x ? v39.x : v0.x, v39.y > v0.y || v39.y != v39.y ? v39.y : v0.y, v39.z > v0.z || v39.z != v39.z ? v39.z : v0.z, v39.w > v0.w || v39.w != v39.w ? v39.w : v0.w};
  f32x2 v44 = f32x2{v43.x, v43.y};
  i32 v45 = v42 + 64;
  f32x2 v46 = f32x2{v43.z, v43.w};
  *(f32x2 *)(p0 + v42) = v44;
  *(f32x2 *)(p0 + v45) = v46;
}
