/* r_80_8, CUDA, grid 5 1 1 of blocks 32 1 1, opts TILE r0 16, TILE r1 8, TC r0 r1 */
extern "C" __global__ void __launch_bounds__(32) r_80_8(f32 *__restrict__ p0, const u16 *__restrict__ p1, const u16 *__restrict__ p2) {
  f32x4 v0 = f32x4{0.0f, 0.0f, 0.0f, 0.0f};
  i32 v1 = (i32)blockIdx.x;   /* < 5 */
  i32 v2 = v1 * 256;
  i32 v3 = (i32)threadIdx.x;   /* < 32 */
  i32 v4 = v3 & 3;
  i32 v5 = v4 * 2;
  i32 v6 = v2 + v5;
  i32 v7 = (i32)(v3 >> 2);
  i32 v8 = v7 * 16;
  i32 v9 = v6 + v8;
  u16x2 v10 = *(const u16x2 *)(p1 + v9);
  i32 v11 = v9 + 128;
  u16x2 v12 = *(const u16x2 *)(p1 + v11);
  i32 v13 = v9 + 8;
  u16x2 v14 = *(const u16x2 *)(p1 + v13);
  i32 v15 = v9 + 136;
  u16x2 v16 = *(const u16x2 *)(p1 + v15);
  i32 v17 = v4 * 16;
  i32 v18 = v17 + v7;
  u16 v19 = p2[v18];
  i32 v20 = v18 + 8;
  u16 v21 = p2[v20];
  u16x2 v22 = u16x2{v19, v21};
  i32 v23 = v18 + 64;
  u16 v24 = p2[v23];
  i32 v25 = v18 + 72;
  u16 v26 = p2[v25];
  u16x2 v27 = u16x2{v24, v26};
  u32 a28[4] = {word(v10), word(v12), word(v14), word(v16)}, b28[2] = {word(v22), word(v27)}; f32x4 v28; tg_mma_m16n8k16_f16_f32(&v28, a28, b28, &v0);
  i32 v29 = v1 * 128;
  i32 v30 = v3 * 2;
  i32 v31 = v29 + v30;
  f32x4 v32 = f32x4{v28.x > v0.x || v28.x != v28.x ? v28.x : v0.x, v28.y > v0.y || v28.y != v28.y ? v28.y : v0.y, v28.z > v0.z || v28.z != v28.z ? v28.z : v0.z, v28.w > v0.w || v28.w != v28.w ? v28.w : v0.w};
  f32x2 v33 = f32x2{v32.x, v32.y};
  i32 v34 = v31 + 64;
  f32x2 v35 = f32x2{v32.z, v32.w};
  *(f32x2 *)(p0 + v31) = v33;
  *(f32x2 *)(p0 + v34) = v35;
}
