/* r_6_8, METAL, grid 2 1 1 of blocks 4 1 1, opts LOCAL r0 4 */
kernel void r_6_8(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = (-INFINITY);
  i32 v0 = (i32)lid.x;   /* < 4 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)gid.x;   /* < 2 */
  i32 v3 = v2 * 32;
  i32 v4 = v1 + v3;
  i32 v5 = v2 * 4;
  i32 v6 = v0 + v5;
  u8 v7 = v6 < 6;
  for (i32 r3 = 0; r3 < 8; r3++) {
    f32 v8 = acc0;
    i32 v9 = v4 + r3;
    f32 v10 = v7 ? p1[v9] : 0;
    f32 v11 = v8 > v10 || v8 != v8 ? v8 : v10;
    acc0 = v11;
  }
  f32 acc1 = 0.0f;
  f32 v12 = acc0;
  alignas(16) threadgroup f32 l0[32];
  for (i32 r2 = 0; r2 < 8; r2++) {
    f32 v13 = acc1;
    i32 v14 = v4 + r2;
    f32 v15 = v7 ? p1[v14] : 0;
    f32 v16 = v15 - v12;
    f32 v17 = exp_f32(v16);
    f32 v18 = v13 + v17;
    acc1 = v18;
    i32 v19 = r2 * 4;
    i32 v20 = v0 + v19;
    l0[v20] = v17;
  }
  f32 v21 = acc1;
  for (i32 r1 = 0; r1 < 8; r1++) {
    i32 v22 = v4 + r1;
    i32 v23 = r1 * 4;
    i32 v24 = v0 + v23;
    f32 v25 = l0[v24];
    f32 v26 = v25 / v21;
    if (v7) p0[v22] = v26;
  }
}
