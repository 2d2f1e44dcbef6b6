/* e_6_5, METAL, grid 2 2 1 of blocks 4 4 1, opts LOCAL r1 4, LOCAL r0 4 */
kernel void e_6_5(device i32 *p0 [[buffer(0)]], device const i32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.x;   /* < 4 */
  i32 v1 = (i32)lid.y;   /* < 4 */
  i32 v2 = v1 * 5;
  i32 v3 = v0 + v2;
  i32 v4 = (i32)gid.x;   /* < 2 */
  i32 v5 = v4 * 4;
  i32 v6 = v3 + v5;
  i32 v7 = (i32)gid.y;   /* < 2 */
  i32 v8 = v7 * 20;
  i32 v9 = v6 + v8;
  i32 v10 = v0 + v5;
  u8 v11 = v10 < 5;
  i32 v12 = v7 * 4;
  i32 v13 = v1 + v12;
  u8 v14 = v13 < 6;
  u8 v15 = v11 & v14;
  i32 v16 = v14 ? p1[v13] : 0;
  u8 v17 = v16 == v10;
  i32 v18 = (i32)v17;
  if (v15) p0[v9] = v18;
}

/* e_12, METAL, grid 1 1 1 of blocks 1 1 1, no opts */
kernel void e_12(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = 0.0f;
  for (i32 r0 = 0; r0 < 12; r0++) {
    f32 v0 = acc0;
    f32 v1 = p1[r0];
    f32 v2 = v0 + v1;
    acc0 = v2;
    p0[r0] = v2;
  }
}

/* e_12, METAL, grid 2 1 1 of blocks 8 1 1, opts LOCAL r0 8 */
kernel void e_12(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 2 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)lid.x;   /* < 8 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 12;
  f32 v5 = v4 ? p1[v3] : 0;
  i32 v6 = v3 + 5;
  f32 v7 = (f32)v6;
  f32 v8 = v5 + v7;
  if (v4) p0[v3] = v8;
}
