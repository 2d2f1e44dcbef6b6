/* e_40, METAL, grid 2 1 1 of blocks 32 1 1, opts LOCAL r0 32 */
kernel void e_40(device u8 *p0 [[buffer(0)]], device const u8 *p1 [[buffer(1)]], device const u8 *p2 [[buffer(2)]], device u8 *p3 [[buffer(3)]], device const u8 *p4 [[buffer(4)]], device const u8 *p5 [[buffer(5)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 2 */
  i32 v1 = v0 * 32;
  i32 v2 = (i32)lid.x;   /* < 32 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 40;
  u8 v5 = v4 ? p1[v3] : 0;
  f32 v6 = f32_fp8e5m2(v5);
  u8 v7 = v4 ? p2[v3] : 0;
  f32 v8 = f32_fp8e5m2(v7);
  f32 v9 = v6 * v8;
  u8 v10 = fp8e5m2_f32(v9);
  f32 v11 = f32_fp8e5m2(v10);
  f32 v12 = v11 + v6;
  u8 v13 = fp8e5m2_f32(v12);
  f32 v14 = f32_fp8e5m2(v13);
  f32 v15 = v14 * v8;
  u8 v16 = fp8e5m2_f32(v15);
  u8 v17 = v4 ? p4[v3] : 0;
  f32 v18 = f32_fp8e4m3(v17);
  u8 v19 = v4 ? p5[v3] : 0;
  f32 v20 = f32_fp8e4m3(v19);
  f32 v21 = v18 * v20;
  u8 v22 = fp8e4m3_f32(v21);
  f32 v23 = f32_fp8e4m3(v22);
  f32 v24 = v23 + v18;
  u8 v25 = fp8e4m3_f32(v24);
  f32 v26 = f32_fp8e4m3(v25);
  f32 v27 = v26 * v20;
  u8 v28 = fp8e4m3_f32(v27);
  if (v4) p0[v3] = v16;
  if (v4) p3[v3] = v28;
}
