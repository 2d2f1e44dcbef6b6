/* e_40, METAL, grid 2 1 1 of blocks 32 1 1, opts LOCAL r0 32 */
kernel void e_40(device u8 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], device f32 *p3 [[buffer(3)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 2 */
  i32 v1 = v0 * 32;
  i32 v2 = (i32)lid.x;   /* < 32 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 40;
  f32 v5 = v4 ? p1[v3] : 0;
  f32 v6 = v4 ? p2[v3] : 0;
  u8 v7 = v5 < v6;
  u8 v8 = v5 == v6;
  u8 v9 = v7 | v8;
  f32 v10 = sqrt_f32(v5);
  u8 v11 = v10 != v10;
  u8 v12 = v9 | v11;
  u8 v13 = v6 < v5;
  f32 v14 = v5 - v6;
  f32 v15 = v6 - v5;
  f32 v16 = sqrt_f32(v15);
  f32 v17 = v13 ? v14 : v16;
  if (v4) p0[v3] = v12;
  if (v4) p3[v3] = v17;
}
