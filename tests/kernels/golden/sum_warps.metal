/* r_3, METAL, grid 3 1 1 of blocks 128 1 1, opts GROUP r1 128 */
kernel void r_3(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)lid.x;   /* < 128 */
  i32 v1 = (i32)gid.x;   /* < 3 */
  i32 v2 = v1 * 200;
  i32 v3 = v2 + v0;
  for (i32 r2 = 0; r2 < 2; r2++) {
    f32 v4 = acc0;
    i32 v5 = r2 * 128;
    i32 v6 = v0 + v5;
    u8 v7 = v6 < 200;
    i32 v8 = v3 + v5;
    f32 v9 = v7 ? p1[v8] : 0;
    f32 v10 = v7 ? v9 : 0.0f;
    f32 v11 = v4 + v10;
    acc0 = v11;
  }
  f32 v12 = acc0;
  f32 v13 = simd_shuffle_xor(v12, 16);
  f32 v14 = v12 + v13;
  acc0 = v14;
  f32 v15 = simd_shuffle_xor(v14, 8);
  f32 v16 = v14 + v15;
  acc0 = v16;
  f32 v17 = simd_shuffle_xor(v16, 4);
  f32 v18 = v16 + v17;
  acc0 = v18;
  f32 v19 = simd_shuffle_xor(v18, 2);
  f32 v20 = v18 + v19;
  acc0 = v20;
  f32 v21 = simd_shuffle_xor(v20, 1);
  f32 v22 = v20 + v21;
  acc0 = v22;
  alignas(16) threadgroup f32 l0[4];
  i32 v23 = (i32)(v0 >> 5);
  i32 v24 = v0 & 31;
  u8 v25 = v24 < 1;
  if (v25) l0[v23] = v22;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  i32 v26 = v0 & 3;
  f32 v27 = l0[v26];
  acc0 = v27;
  f32 v28 = simd_shuffle_xor(v27, 2);
  f32 v29 = v27 + v28;
  acc0 = v29;
  f32 v30 = simd_shuffle_xor(v29, 1);
  f32 v31 = v29 + v30;
  acc0 = v31;
  u8 v32 = v0 < 1;
  if (v32) p0[v1] = v31;
}
