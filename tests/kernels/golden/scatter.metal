/* e_9, METAL, grid 2 1 1 of blocks 8 1 1, opts LOCAL r0 8 */
kernel void e_9(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 2 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)lid.x;   /* < 8 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 9;
  f32 v5 = v4 ? p1[v3] : 0;
  if (v4) p0[v3] = v5;
}

/* e_2_9, METAL, grid 2 1 1 of blocks 16 1 1, opts LOCAL r2 16 */
kernel void e_2_9(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 2 */
  i32 v1 = v0 * 16;
  i32 v2 = (i32)lid.x;   /* < 16 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 18;
  f32 v5 = v4 ? p1[v3] : 0;
  f32 v6 = -v5;
  if (v4) p0[v3] = v6;
}

/* e_6, METAL, grid 1 1 1 of blocks 1 1 1, no opts */
kernel void e_6(device f32 *p0 [[buffer(0)]], device const i32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  for (i32 r0 = 0; r0 < 6; r0++) {
    i32 v0 = p1[r0];
    u8 v1 = v0 < 0;
    u8 v2 = v1 ^ 1;
    u8 v3 = v0 < 9;
    u8 v4 = v2 & v3;
    f32 v5 = p2[r0];
    if (v4) p0[v0] = v5;
  }
}

/* e_2_9, METAL, grid 2 1 1 of blocks 16 1 1, opts LOCAL r2 16 */
kernel void e_2_9(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 2 */
  i32 v1 = v0 * 16;
  i32 v2 = (i32)lid.x;   /* < 16 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 18;
  f32 v5 = v4 ? p1[v3] : 0;
  if (v4) p0[v3] = v5;
}

/* e_2_3, METAL, grid 1 1 1 of blocks 2 1 1, opts LOCAL r0 2 */
kernel void e_2_3(device f32 *p0 [[buffer(0)]], device const i32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i64 v0 = (i64)lid.x;   /* < 2l */
  i64 v1 = v0 * 3l;
  i64 v2 = v0 * 9l;
  for (i64 r1 = 0; r1 < 3l; r1++) {
    i64 v3 = r1 + v1;
    i32 v4 = p1[v3];
    i64 v5 = (i64)v4;
    i64 v6 = v5 + v2;
    u8 v7 = v5 < 0l;
    u8 v8 = v7 ^ 1;
    u8 v9 = v5 < 9l;
    u8 v10 = v8 & v9;
    f32 v11 = v10 ? p0[v6] : 0;
    f32 v12 = p2[v3];
    f32 v13 = v11 + v12;
    if (v10) p0[v6] = v13;
  }
}
