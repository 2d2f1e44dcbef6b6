/* r_8_32, METAL, grid 1 1 1 of blocks 32 2 1, opts UPCAST r0 4, LOCAL r1 32, LOCAL r0 2 */
kernel void r_8_32(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.x;   /* < 32 */
  i32 v1 = (i32)lid.y;   /* < 2 */
  i32 v2 = v1 * 128;
  i32 v3 = v0 + v2;
  i32 v4 = v1 * 64;
  f32 acc0 = 0.0f;
  f32 acc1 = 0.0f;
  f32 acc2 = 0.0f;
  f32 acc3 = 0.0f;
  for (i32 r2 = 0; r2 < 16; r2++) {
    i32 v5 = v4 + r2;
    i32 v6 = v5 + 48;
    f32 v7 = p1[v6];
    i32 v8 = r2 * 32;
    i32 v9 = v0 + v8;
    f32 v10 = p2[v9];
    i32 v11 = v5 + 32;
    f32 v12 = p1[v11];
    i32 v13 = v5 + 16;
    f32 v14 = p1[v13];
    f32 v15 = p1[v5];
    f32 v16 = acc0;
    f32 v17 = fma_f32(v7, v10, v16);
    acc0 = v17;
    f32 v18 = acc1;
    f32 v19 = fma_f32(v12, v10, v18);
    acc1 = v19;
    f32 v20 = acc2;
    f32 v21 = fma_f32(v14, v10, v20);
    acc2 = v21;
    f32 v22 = acc3;
    f32 v23 = fma_f32(v15, v10, v22);
    acc3 = v23;
  }
  f32 v24 = acc0;
  f32 v25 = acc1;
  f32 v26 = acc2;
  f32 v27 = acc3;
  i32 v28 = v3 + 32;
  i32 v29 = v3 + 64;
  i32 v30 = v3 + 96;
  p0[v3] = v27;
  p0[v28] = v26;
  p0[v29] = v25;
  p0[v30] = v24;
}
