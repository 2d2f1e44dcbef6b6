/* e_18, METAL, grid 2 1 1 of blocks 16 1 1, opts LOCAL r0 16 */
kernel void e_18(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device i32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 2 */
  i32 v1 = v0 * 16;
  i32 v2 = (i32)lid.x;   /* < 16 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 18;
  f32 v5 = v4 ? p1[v3] : 0;
  u8 v6 = u8_f32(v5);
  f32 v7 = (f32)v6;
  i32 v8 = i32_f32(v5);
  f32 v9 = (f32)v8;
  f32 v10 = v7 + v9;
  i8 v11 = i8_f32(v5);
  i32 v12 = (i32)v11;
  if (v4) p0[v3] = v10;
  if (v4) p2[v3] = v12;
}
