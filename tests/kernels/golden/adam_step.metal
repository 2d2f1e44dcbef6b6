/* r, METAL, grid 1 1 1 of blocks 1 1 1, no opts */
kernel void r(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], device f32 *p3 [[buffer(3)]], device f32 *p4 [[buffer(4)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = 0.0f;
  for (i32 r0 = 0; r0 < 16; r0++) {
    f32 v0 = p1[r0];
    f32 v1 = p2[r0];
    f32 v2 = acc0;
    f32 v3 = fma_f32(v0, v1, v2);
    acc0 = v3;
  }
  f32 v4 = acc0;
  f32 v5 = p3[0];
  f32 v6 = v5 * 0.9f;
  f32 v7 = p4[0];
  f32 v8 = v7 * 0.999f;
  p0[0] = v4;
  p3[0] = v6;
  p4[0] = v8;
}

/* e_16, METAL, grid 1 1 1 of blocks 16 1 1, opts LOCAL r0 16 */
kernel void e_16(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device f32 *p2 [[buffer(2)]], device f32 *p3 [[buffer(3)]], device const f32 *p4 [[buffer(4)]], device const f32 *p5 [[buffer(5)]], device const f32 *p6 [[buffer(6)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.x;   /* < 16 */
  f32 v1 = p0[v0];
  f32 v2 = v1 * 0.9f;
  f32 v3 = p1[v0];
  f32 v4 = v3 * 0.1f;
  f32 v5 = v2 + v4;
  f32 v6 = p2[v0];
  f32 v7 = v6 * 0.999f;
  f32 v8 = v3 * v3;
  f32 v9 = v8 * 0.001f;
  f32 v10 = v7 + v9;
  f32 v11 = p3[v0];
  f32 v12 = p4[0];
  f32 v13 = 1.0f - v12;
  f32 v14 = v5 / v13;
  f32 v15 = p5[0];
  f32 v16 = 1.0f - v15;
  f32 v17 = v10 / v16;
  f32 v18 = sqrt_f32(v17);
  f32 v19 = v18 + 1e-08f;
  f32 v20 = v14 / v19;
  f32 v21 = p6[0];
  f32 v22 = v20 * v21;
  f32 v23 = v11 - v22;
  p0[v0] = v5;
  p2[v0] = v10;
  p3[v0] = v23;
}
