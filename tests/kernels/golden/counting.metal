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

/* r_12, METAL, grid 2 1 1 of blocks 8 1 1, opts LOCAL r0 8 */
kernel void r_12(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 2 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)lid.x;   /* < 8 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 12;
  i64 v5 = (i64)v3;
  f32 acc0 = 0.0f;
  for (i32 r1 = 0; r1 < 12; r1++) {
    i64 v6 = (i64)r1;
    u8 v7 = v5 < v6;
    f32 v8 = p1[r1];
    f32 v9 = v7 ? 0.0f : v8;
    f32 v10 = acc0;
    f32 v11 = v10 + v9;
    acc0 = v11;
  }
  f32 v12 = acc0;
  i32 v13 = v3 + 5;
  f32 v14 = (f32)v13;
  f32 v15 = v12 + v14;
  if (v4) p0[v3] = v15;
}
