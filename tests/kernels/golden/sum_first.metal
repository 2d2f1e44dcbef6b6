/* r_20, METAL, grid 1 1 1 of blocks 8 8 1, opts VEC r0 4, LOCAL r0 8, GROUP r1 8 */
kernel void r_20(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32x4 v0 = f32x4(0.0f, 0.0f, 0.0f, 0.0f);
  f32x4 acc0 = v0;
  i32 v1 = (i32)lid.y;   /* < 8 */
  i32 v2 = v1 * 4;
  i32 v3 = (i32)lid.x;   /* < 8 */
  i32 v4 = v3 * 20;
  i32 v5 = v2 + v4;
  u8 v6 = v1 < 5;
  for (i32 r6 = 0; r6 < 3; r6++) {
    f32x4 v7 = acc0;
    i32 v8 = r6 * 160;
    i32 v9 = v5 + v8;
    f32x4 v10 = f32x4(0, 0, 0, 0);
    if (v6) v10 = *(device const f32x4 *)(p1 + v9);
    f32x4 v11 = f32x4(v7.x + v10.x, v7.y + v10.y, v7.z + v10.z, v7.w + v10.w);
    acc0 = v11;
  }
  f32x4 v12 = acc0;
  f32x4 v13 = f32x4(simd_shuffle_xor(v12.x, 4), simd_shuffle_xor(v12.y, 4), simd_shuffle_xor(v12.z, 4), simd_shuffle_xor(v12.w, 4));
  f32x4 v14 = f32x4(v12.x + v13.x, v12.y + v13.y, v12.z + v13.z, v12.w + v13.w);
  acc0 = v14;
  f32x4 v15 = f32x4(simd_shuffle_xor(v14.x, 2), simd_shuffle_xor(v14.y, 2), simd_shuffle_xor(v14.z, 2), simd_shuffle_xor(v14.w, 2));
  f32x4 v16 = f32x4(v14.x + v15.x, v14.y + v15.y, v14.z + v15.z, v14.w + v15.w);
  acc0 = v16;
  f32x4 v17 = f32x4(simd_shuffle_xor(v16.x, 1), simd_shuffle_xor(v16.y, 1), simd_shuffle_xor(v16.z, 1), simd_shuffle_xor(v16.w, 1));
  f32x4 v18 = f32x4(v16.x + v17.x, v16.y + v17.y, v16.z + v17.z, v16.w + v17.w);
  acc0 = v18;
  u8 v19 = v3 < 1;
  u8 v20 = v6 & v19;
  if (v20) *(device f32x4 *)(p0 + v2) = v18;
}
