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

/* e_5_12, METAL, grid 5 1 1 of blocks 1 1 1, no opts */
kernel void e_5_12(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)gid.x;   /* < 5 */
  i32 v1 = v0 * 12;
  for (i32 r1 = 0; r1 < 12; r1++) {
    i32 v2 = v1 + r1;
    f32 v3 = p1[v2];
    f32 v4 = p2[r1];
    f32 v5 = acc0;
    f32 v6 = fma_f32(v3, v4, v5);
    acc0 = v6;
    p0[v2] = v6;
  }
}
