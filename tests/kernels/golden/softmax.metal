/* r_6_8, METAL, grid 2 1 1 of blocks 8 4 1, opts LOCAL r0 4, GROUP r2 8, GROUP r3 8, LOCAL r1 8 */
kernel void r_6_8(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.y;   /* < 4 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)gid.x;   /* < 2 */
  i32 v3 = v2 * 32;
  i32 v4 = v1 + v3;
  i32 v5 = (i32)lid.x;   /* < 8 */
  i32 v6 = v4 + v5;
  i32 v7 = v2 * 4;
  i32 v8 = v0 + v7;
  u8 v9 = v8 < 6;
  f32 v10 = v9 ? p1[v6] : 0;
  f32 v11 = (-INFINITY) > v10 || (-INFINITY) != (-INFINITY) ? (-INFINITY) : v10;
  f32 v12 = simd_shuffle_xor(v11, 4);
  f32 v13 = v11 > v12 || v11 != v11 ? v11 : v12;
  f32 v14 = simd_shuffle_xor(v13, 2);
  f32 v15 = v13 > v14 || v13 != v13 ? v13 : v14;
  f32 v16 = simd_shuffle_xor(v15, 1);
  f32 v17 = v15 > v16 || v15 != v15 ? v15 : v16;
  f32 v18 = v10 - v17;
  f32 v19 = exp_f32(v18);
  f32 v20 = 0.0f + v19;
  alignas(16) threadgroup f32 l0[32];
  i32 v21 = v5 * 4;
  i32 v22 = v0 + v21;
  l0[v22] = v19;
  f32 v23 = simd_shuffle_xor(v20, 4);
  f32 v24 = v20 + v23;
  f32 v25 = simd_shuffle_xor(v24, 2);
  f32 v26 = v24 + v25;
  f32 v27 = simd_shuffle_xor(v26, 1);
  f32 v28 = v26 + v27;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  f32 v29 = l0[v22];
  f32 v30 = v29 / v28;
  if (v9) p0[v6] = v30;
}
