/* e_2_3_16, METAL, grid 3 1 1 of blocks 16 2 1, opts LOCAL r2 16, LOCAL r0 2 */
kernel void e_2_3_16(device f32 *p0 [[buffer(0)]], device const i32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i64 v0 = (i64)gid.x;   /* < 3l */
  i64 v1 = v0 * 16l;
  i64 v2 = (i64)lid.y;   /* < 2l */
  i64 v3 = v2 * 48l;
  i64 v4 = v1 + v3;
  i64 v5 = (i64)lid.x;   /* < 16l */
  i64 v6 = v4 + v5;
  i64 v7 = v2 * 3l;
  i64 v8 = v0 + v7;
  i32 v9 = p1[v8];
  i64 v10 = (i64)v9;
  i64 v11 = v10 * 16l;
  i64 v12 = v11 + v5;
  u8 v13 = v10 < 0l;
  u8 v14 = v13 ^ 1;
  u8 v15 = v10 < 8l;
  u8 v16 = v14 & v15;
  f32 v17 = v16 ? p2[v12] : 0;
  p0[v6] = v17;
}
