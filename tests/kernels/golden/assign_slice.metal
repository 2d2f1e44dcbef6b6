/* e_2_8, METAL, grid 1 1 1 of blocks 16 1 1, opts LOCAL r2 16 */
kernel void e_2_8(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.x;   /* < 16 */
  f32 v1 = p1[v0];
  f32 v2 = v1 * 2.0f;
  p0[v0] = v2;
}

/* e_2_8, METAL, grid 1 1 1 of blocks 16 1 1, opts LOCAL r2 16 */
kernel void e_2_8(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.x;   /* < 16 */
  f32 v1 = p1[v0];
  p0[v0] = v1;
}
