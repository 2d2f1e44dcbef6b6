/* r_6_8, METAL, grid 6 1 1 of blocks 1 1 1, no opts */
kernel void r_6_8(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = (-INFINITY);
  i32 v0 = (i32)gid.x;   /* < 6 */
  i32 v1 = v0 * 8;
  for (i32 r3 = 0; r3 < 8; r3++) {
    f32 v2 = acc0;
    i32 v3 = v1 + r3;
    f32 v4 = p1[v3];
    f32 v5 = v2 > v4 || v2 != v2 ? v2 : v4;
    acc0 = v5;
  }
  f32 acc1 = 0.0f;
  f32 v6 = acc0;
  alignas(16) threadgroup f32 l0[8];
  for (i32 r2 = 0; r2 < 8; r2++) {
    f32 v7 = acc1;
    i32 v8 = v1 + r2;
    f32 v9 = p1[v8];
    f32 v10 = v9 - v6;
    f32 v11 = exp_f32(v10);
    f32 v12 = v7 + v11;
    acc1 = v12;
    l0[r2] = v11;
  }
  f32 v13 = acc1;
  for (i32 r1 = 0; r1 < 8; r1++) {
    i32 v14 = v1 + r1;
    f32 v15 = l0[r1];
    f32 v16 = v15 / v13;
    p0[v14] = v16;
  }
}
