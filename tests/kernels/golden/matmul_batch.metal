/* r_3_4_16, METAL, grid 4 3 1 of blocks 8 4 1, opts VEC r2 4, LOCAL r2 4, GROUP r3 8 */
kernel void r_3_4_16(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32x4 v0 = f32x4(0.0f, 0.0f, 0.0f, 0.0f);
  i32 v1 = (i32)gid.y;   /* < 3 */
  i32 v2 = v1 * 32;
  i32 v3 = (i32)gid.x;   /* < 4 */
  i32 v4 = v3 * 8;
  i32 v5 = v2 + v4;
  i32 v6 = (i32)lid.x;   /* < 8 */
  i32 v7 = v5 + v6;
  f32 v8 = p1[v7];
  f32x4 v9 = f32x4(v8, v8, v8, v8);
  i32 v10 = v1 * 128;
  i32 v11 = (i32)lid.y;   /* < 4 */
  i32 v12 = v11 * 4;
  i32 v13 = v10 + v12;
  i32 v14 = v6 * 16;
  i32 v15 = v13 + v14;
  f32x4 v16 = *(device const f32x4 *)(p2 + v15);
  f32x4 v17 = f32x4(fma_f32(v9.x, v16.x, v0.x), fma_f32(v9.y, v16.y, v0.y), fma_f32(v9.z, v16.z, v0.z), fma_f32(v9.w, v16.w, v0.w));
  f32x4 v18 = f32x4(simd_shuffle_xor(v17.x, 4), simd_shuffle_xor(v17.y, 4), simd_shuffle_xor(v17.z, 4), simd_shuffle_xor(v17.w, 4));
  f32x4 v19 = f32x4(v17.x + v18.x, v17.y + v18.y, v17.z + v18.z, v17.w + v18.w);
  f32x4 v20 = f32x4(simd_shuffle_xor(v19.x, 2), simd_shuffle_xor(v19.y, 2), simd_shuffle_xor(v19.z, 2), simd_shuffle_xor(v19.w, 2));
  f32x4 v21 = f32x4(v19.x + v20.x, v19.y + v20.y, v19.z + v20.z, v19.w + v20.w);
  f32x4 v22 = f32x4(simd_shuffle_xor(v21.x, 1), simd_shuffle_xor(v21.y, 1), simd_shuffle_xor(v21.z, 1), simd_shuffle_xor(v21.w, 1));
  f32x4 v23 = f32x4(v21.x + v22.x, v21.y + v22.y, v21.z + v22.z, v21.w + v22.w);
  i32 v24 = v1 * 64;
  i32 v25 = v24 + v12;
  i32 v26 = v3 * 16;
  i32 v27 = v25 + v26;
  u8 v28 = v6 < 1;
  if (v28) *(device f32x4 *)(p0 + v27) = v23;
}
