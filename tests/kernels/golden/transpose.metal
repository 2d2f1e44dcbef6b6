/* e_20_12, METAL, grid 2 2 1 of blocks 8 16 1, opts LOCAL r1 8, LOCAL r0 16 */
kernel void e_20_12(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 2 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)lid.x;   /* < 8 */
  i32 v3 = v1 + v2;
  i32 v4 = (i32)gid.y;   /* < 2 */
  i32 v5 = v4 * 192;
  i32 v6 = v3 + v5;
  i32 v7 = (i32)lid.y;   /* < 16 */
  i32 v8 = v7 * 12;
  i32 v9 = v6 + v8;
  u8 v10 = v3 < 12;
  i32 v11 = v4 * 16;
  i32 v12 = v11 + v7;
  u8 v13 = v12 < 20;
  u8 v14 = v10 & v13;
  i32 v15 = v0 * 160;
  i32 v16 = v2 * 20;
  i32 v17 = v15 + v16;
  i32 v18 = v17 + v11;
  i32 v19 = v18 + v7;
  f32 v20 = v14 ? p1[v19] : 0;
  if (v14) p0[v9] = v20;
}
