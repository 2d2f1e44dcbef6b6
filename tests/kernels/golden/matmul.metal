/* r_8_32, METAL, grid 32 1 1 of blocks 16 8 1, opts LOCAL r0 8, GROUP r2 16 */
kernel void r_8_32(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.y;   /* < 8 */
  i32 v1 = v0 * 16;
  i32 v2 = (i32)lid.x;   /* < 16 */
  i32 v3 = v1 + v2;
  f32 v4 = p1[v3];
  i32 v5 = (i32)gid.x;   /* < 32 */
  i32 v6 = v2 * 32;
  i32 v7 = v5 + v6;
  f32 v8 = p2[v7];
  f32 v9 = fma_f32(v4, v8, 0.0f);
  f32 v10 = simd_shuffle_xor(v9, 8);
  f32 v11 = v9 + v10;
  f32 v12 = simd_shuffle_xor(v11, 4);
  f32 v13 = v11 + v12;
  f32 v14 = simd_shuffle_xor(v13, 2);
  f32 v15 = v13 + v14;
  f32 v16 = simd_shuffle_xor(v15, 1);
  f32 v17 = v15 + v16;
  i32 v18 = v0 * 32;
  i32 v19 = v18 + v5;
  u8 v20 = v2 < 1;
  if (v20) p0[v19] = v17;
}
