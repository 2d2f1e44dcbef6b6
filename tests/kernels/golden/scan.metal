/* e_20_12, METAL, grid 20 1 1 of blocks 1 1 1, no opts */
kernel void e_20_12(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)gid.x;   /* < 20 */
  for (i32 r1 = 0; r1 < 12; r1++) {
    f32 v1 = acc0;
    i32 v2 = r1 * 20;
    i32 v3 = v2 + v0;
    f32 v4 = p1[v3];
    f32 v5 = v1 + v4;
    acc0 = v5;
    p0[v3] = v5;
  }
}

/* e_5_12, METAL, grid 2 1 1 of blocks 4 1 1, opts LOCAL r0 4 */
kernel void e_5_12(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)lid.x;   /* < 4 */
  i32 v1 = v0 * 12;
  i32 v2 = (i32)gid.x;   /* < 2 */
  i32 v3 = v2 * 48;
  i32 v4 = v2 * 4;
  i32 v5 = v0 + v4;
  u8 v6 = v5 < 5;
  for (i32 r1 = 0; r1 < 12; r1++) {
    i32 v7 = r1 + v1;
    i32 v8 = v7 + v3;
    f32 v9 = v6 ? p1[v8] : 0;
    f32 v10 = p2[r1];
    f32 v11 = acc0;
    f32 v12 = fma_f32(v9, v10, v11);
    acc0 = v12;
    if (v6) p0[v8] = v12;
  }
}
