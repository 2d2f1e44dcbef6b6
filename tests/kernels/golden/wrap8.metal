/* e_48, METAL, grid 2 1 1 of blocks 32 1 1, opts LOCAL r0 32 */
kernel void e_48(device u8 *p0 [[buffer(0)]], device const i32 *p1 [[buffer(1)]], device i8 *p2 [[buffer(2)]], device const i8 *p3 [[buffer(3)]], device const i8 *p4 [[buffer(4)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 2 */
  i32 v1 = v0 * 32;
  i32 v2 = (i32)lid.x;   /* < 32 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 48;
  i32 v5 = v4 ? p1[v3] : 0;
  i32 v6 = (i32)((u32)v5 + (u32)64);
  u8 v7 = (u8)v6;
  u8 v8 = (u8)((u32)v7 * (u32)v7);
  u8 v9 = (u8)((u32)v7 + (u32)(u8)1);
  u8 v10 = (u8)((u32)v8 - (u32)v9);
  i8 v11 = v4 ? p3[v3] : 0;
  i8 v12 = v4 ? p4[v3] : 0;
  i8 v13 = (i8)((u32)v11 * (u32)v12);
  i8 v14 = (i8)((u32)v11 + (u32)(i8)100);
  i8 v15 = (i8)((u32)v13 - (u32)v14);
  if (v4) p0[v3] = v10;
  if (v4) p2[v3] = v15;
}
