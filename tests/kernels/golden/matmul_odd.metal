/* r_3_7, METAL, grid 2 2 1 of blocks 4 2 1, opts LOCAL r1 4, LOCAL r0 2 */
kernel void r_3_7(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)lid.y;   /* < 2 */
  i32 v1 = v0 * 13;
  i32 v2 = (i32)gid.y;   /* < 2 */
  i32 v3 = v2 * 26;
  i32 v4 = v2 * 2;
  i32 v5 = v0 + v4;
  u8 v6 = v5 < 3;
  i32 v7 = (i32)lid.x;   /* < 4 */
  i32 v8 = (i32)gid.x;   /* < 2 */
  i32 v9 = v8 * 4;
  i32 v10 = v7 + v9;
  u8 v11 = v10 < 7;
  for (i32 r2 = 0; r2 < 13; r2++) {
    i32 v12 = v1 + r2;
    i32 v13 = v12 + v3;
    f32 v14 = v6 ? p1[v13] : 0;
    i32 v15 = r2 * 7;
    i32 v16 = v10 + v15;
    f32 v17 = v11 ? p2[v16] : 0;
    f32 v18 = acc0;
    f32 v19 = fma_f32(v14, v17, v18);
    acc0 = v19;
  }
  i32 v20 = v0 * 7;
  i32 v21 = v10 + v20;
  i32 v22 = v2 * 14;
  i32 v23 = v21 + v22;
  u8 v24 = v11 & v6;
  f32 v25 = acc0;
  if (v24) p0[v23] = v25;
}
