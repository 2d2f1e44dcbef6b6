/* r_3_4_16, METAL, grid 4 3 1 of blocks 8 16 1, opts LOCAL r2 16, GROUP r3 8 */
kernel void r_3_4_16(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.y;   /* < 3 */
  i32 v1 = v0 * 32;
  i32 v2 = (i32)gid.x;   /* < 4 */
  i32 v3 = v2 * 8;
  i32 v4 = v1 + v3;
  i32 v5 = (i32)lid.x;   /* < 8 */
  i32 v6 = v4 + v5;
  f32 v7 = p1[v6];
  i32 v8 = v0 * 128;
  i32 v9 = v5 * 16;
  i32 v10 = v8 + v9;
  i32 v11 = (i32)lid.y;   /* < 16 */
  i32 v12 = v10 + v11;
  f32 v13 = p2[v12];
  f32 v14 = fma_f32(v7, v13, 0.0f);
  f32 v15 = simd_shuffle_xor(v14, 4);
  f32 v16 = v14 + v15;
  f32 v17 = simd_shuffle_xor(v16, 2);
  f32 v18 = v16 + v17;
  f32 v19 = simd_shuffle_xor(v18, 1);
  f32 v20 = v18 + v19;
  i32 v21 = v0 * 64;
  i32 v22 = v2 * 16;
  i32 v23 = v21 + v22;
  i32 v24 = v23 + v11;
  u8 v25 = v5 < 1;
  if (v25) p0[v24] = v20;
}
