/* e_40, METAL, grid 40 1 1 of blocks 1 1 1, no opts */
kernel void e_40(device u8 *p0 [[buffer(0)]], device const u8 *p1 [[buffer(1)]], device const u8 *p2 [[buffer(2)]], device u8 *p3 [[buffer(3)]], device const u8 *p4 [[buffer(4)]], device const u8 *p5 [[buffer(5)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 40 */
  u8 v1 = p1[v0];
  f32 v2 = f32_fp8e5m2(v1);
  u8 v3 = p2[v0];
  f32 v4 = f32_fp8e5m2(v3);
  f32 v5 = v2 * v4;
  u8 v6 = fp8e5m2_f32(v5);
  f32 v7 = f32_fp8e5m2(v6);
  f32 v8 = v7 + v2;
  u8 v9 = fp8e5m2_f32(v8);
  f32 v10 = f32_fp8e5m2(v9);
  f32 v11 = v10 * v4;
  u8 v12 = fp8e5m2_f32(v11);
  u8 v13 = p4[v0];
  f32 v14 = f32_fp8e4m3(v13);
  u8 v15 = p5[v0];
  f32 v16 = f32_fp8e4m3(v15);
  f32 v17 = v14 * v16;
  u8 v18 = fp8e4m3_f32(v17);
  f32 v19 = f32_fp8e4m3(v18);
  f32 v20 = v19 + v14;
  u8 v21 = fp8e4m3_f32(v20);
  f32 v22 = f32_fp8e4m3(v21);
  f32 v23 = v22 * v16;
  u8 v24 = fp8e4m3_f32(v23);
  p0[v0] = v12;
  p3[v0] = v24;
}
