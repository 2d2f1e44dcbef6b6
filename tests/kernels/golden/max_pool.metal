/* r_3_4_4, METAL, grid 2 1 1 of blocks 4 8 1, opts LOCAL r2 4, LOCAL r5 8 */
kernel void r_3_4_4(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = (-INFINITY);
  i32 v0 = (i32)lid.y;   /* < 8 */
  i32 v1 = v0 * 16;
  i32 v2 = (i32)lid.x;   /* < 4 */
  i32 v3 = v2 * 2;
  i32 v4 = (i32)gid.x;   /* < 2 */
  i32 v5 = v4 * 128;
  i32 v6 = v4 * 8;
  i32 v7 = v0 + v6;
  u8 v8 = v7 < 12;
  for (i32 r3 = 0; r3 < 2; r3++) {
    i32 v9 = r3 * 8;
    i32 v10 = v1 + v9;
    i32 v11 = v10 + v3;
    i32 v12 = v11 + v5;
    for (i32 r4 = 0; r4 < 2; r4++) {
      f32 v13 = acc0;
      i32 v14 = v12 + r4;
      f32 v15 = v8 ? p1[v14] : 0;
      f32 v16 = v13 > v15 || v13 != v13 ? v13 : v15;
      acc0 = v16;
    }
  }
  i32 v17 = v0 * 4;
  i32 v18 = v17 + v2;
  i32 v19 = v4 * 32;
  i32 v20 = v18 + v19;
  f32 v21 = acc0;
  if (v8) p0[v20] = v21;
}
