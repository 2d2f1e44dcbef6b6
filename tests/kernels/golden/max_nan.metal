/* r_4, METAL, grid 4 1 1 of blocks 32 1 1, opts GROUP r1 32 */
kernel void r_4(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = (-INFINITY);
  i32 v0 = (i32)lid.x;   /* < 32 */
  i32 v1 = (i32)gid.x;   /* < 4 */
  i32 v2 = v1 * 33;
  i32 v3 = v0 + v2;
  for (i32 r2 = 0; r2 < 2; r2++) {
    f32 v4 = acc0;
    i32 v5 = r2 * 32;
    i32 v6 = v0 + v5;
    u8 v7 = v6 < 33;
    i32 v8 = v3 + v5;
    f32 v9 = v7 ? p1[v8] : 0;
    f32 v10 = v7 ? v9 : (-INFINITY);
    f32 v11 = v4 > v10 || v4 != v4 ? v4 : v10;
    acc0 = v11;
  }
  f32 v12 = acc0;
  f32 v13 = simd_shuffle_xor(v12, 16);
  f32 v14 = v12 > v13 || v12 != v12 ? v12 : v13;
  acc0 = v14;
  f32 v15 = simd_shuffle_xor(v14, 8);
  f32 v16 = v14 > v15 || v14 != v14 ? v14 : v15;
  acc0 = v16;
  f32 v17 = simd_shuffle_xor(v16, 4);
  f32 v18 = v16 > v17 || v16 != v16 ? v16 : v17;
  acc0 = v18;
  f32 v19 = simd_shuffle_xor(v18, 2);
  f32 v20 = v18 > v19 || v18 != v18 ? v18 : v19;
  acc0 = v20;
  f32 v21 = simd_shuffle_xor(v20, 1);
  f32 v22 = v20 > v21 || v20 != v20 ? v20 : v21;
  acc0 = v22;
  u8 v23 = v0 < 1;
  if (v23) p0[v1] = v22;
}
