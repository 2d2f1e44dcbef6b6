/* r_3_7, METAL, grid 2 2 1 of blocks 4 2 1, opts LOCAL r1 4, LOCAL r0 2 */
kernel void r_3_7(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.x;   /* < 4 */
  i32 v1 = (i32)gid.x;   /* < 2 */
  i32 v2 = v1 * 4;
  i32 v3 = v0 + v2;
  i32 v4 = (i32)lid.y;   /* < 2 */
  i32 v5 = v4 * 7;
  i32 v6 = v3 + v5;
  i32 v7 = (i32)gid.y;   /* < 2 */
  i32 v8 = v7 * 14;
  i32 v9 = v6 + v8;
  u8 v10 = v3 < 7;
  i32 v11 = v7 * 2;
  i32 v12 = v4 + v11;
  u8 v13 = v12 < 3;
  u8 v14 = v10 & v13;
  i32 v15 = v4 * 13;
  i32 v16 = v7 * 26;
  f32 acc0 = 0.0f;
  for (i32 r2 = 0; r2 < 13; r2++) {
    i32 v17 = v15 + r2;
    i32 v18 = v17 + v16;
    f32 v19 = v13 ? p1[v18] : 0;
    i32 v20 = r2 * 7;
    i32 v21 = v3 + v20;
    f32 v22 = v10 ? p2[v21] : 0;
    f32 v23 = acc0;
    f32 v24 = fma_f32(v19, v22, v23);
    acc0 = v24;
  }
  f32 v25 = acc0;
  if (v14) p0[v9] = v25;
}
