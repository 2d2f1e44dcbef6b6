/* r_2_3_16, METAL, grid 1 1 1 of blocks 16 2 1, opts UPCAST r4 4, LOCAL r2 16, LOCAL r4 2 */
kernel void r_2_3_16(device f32 *p0 [[buffer(0)]], device const i32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.y;   /* < 2 */
  i32 v1 = v0 * 64;
  i32 v2 = (i32)lid.x;   /* < 16 */
  i32 v3 = v1 + v2;
  i32 v4 = v0 * 4;
  i32 v5 = v4 + 3;
  u8 v6 = v0 < 1;
  i32 v7 = v6 ? p1[v5] : 0;
  i32 v8 = v4 + 2;
  i32 v9 = v6 ? p1[v8] : 0;
  i32 v10 = v4 + 1;
  i32 v11 = p1[v10];
  i32 v12 = p1[v4];
  f32 acc0 = 0.0f;
  f32 acc1 = 0.0f;
  f32 acc2 = 0.0f;
  f32 acc3 = 0.0f;
  for (i32 r3 = 0; r3 < 8; r3++) {
    u8 v13 = v7 == r3;
    i32 v14 = r3 * 16;
    i32 v15 = v14 + v2;
    f32 v16 = p2[v15];
    f32 v17 = v13 ? v16 : 0.0f;
    u8 v18 = v9 == r3;
    f32 v19 = v18 ? v16 : 0.0f;
    u8 v20 = v11 == r3;
    f32 v21 = v20 ? v16 : 0.0f;
    u8 v22 = v12 == r3;
    f32 v23 = v22 ? v16 : 0.0f;
    f32 v24 = acc0;
    f32 v25 = v24 + v17;
    acc0 = v25;
    f32 v26 = acc1;
    f32 v27 = v26 + v19;
    acc1 = v27;
    f32 v28 = acc2;
    f32 v29 = v28 + v21;
    acc2 = v29;
    f32 v30 = acc3;
    f32 v31 = v30 + v23;
    acc3 = v31;
  }
  f32 v32 = acc0;
  f32 v33 = acc1;
  f32 v34 = acc2;
  f32 v35 = acc3;
  i32 v36 = v3 + 16;
  i32 v37 = v3 + 32;
  i32 v38 = v3 + 48;
  p0[v3] = v35;
  p0[v36] = v34;
  if (v6) p0[v37] = v33;
  if (v6) p0[v38] = v32;
}
