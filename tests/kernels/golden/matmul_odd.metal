/* r_3_7, METAL, grid 7 3 1 of blocks 1 1 1, no opts */
kernel void r_3_7(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)gid.y;   /* < 3 */
  i32 v1 = v0 * 13;
  i32 v2 = (i32)gid.x;   /* < 7 */
  for (i32 r2 = 0; r2 < 13; r2++) {
    i32 v3 = v1 + r2;
    f32 v4 = p1[v3];
    i32 v5 = r2 * 7;
    i32 v6 = v2 + v5;
    f32 v7 = p2[v6];
    f32 v8 = acc0;
    f32 v9 = fma_f32(v4, v7, v8);
    acc0 = v9;
  }
  i32 v10 = v0 * 7;
  i32 v11 = v2 + v10;
  f32 v12 = acc0;
  p0[v11] = v12;
}
