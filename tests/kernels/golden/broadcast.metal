/* e_4_3_16, METAL, grid 3 1 1 of blocks 16 4 1, opts LOCAL r2 16, LOCAL r0 4 */
kernel void e_4_3_16(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], device const f32 *p3 [[buffer(3)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 3 */
  i32 v1 = v0 * 16;
  i32 v2 = (i32)lid.y;   /* < 4 */
  i32 v3 = v2 * 48;
  i32 v4 = v1 + v3;
  i32 v5 = (i32)lid.x;   /* < 16 */
  i32 v6 = v4 + v5;
  i32 v7 = v2 * 16;
  i32 v8 = v7 + v5;
  f32 v9 = p1[v8];
  f32 v10 = p2[v0];
  f32 v11 = v9 + v10;
  f32 v12 = p3[v5];
  f32 v13 = v11 * v12;
  p0[v6] = v13;
}
