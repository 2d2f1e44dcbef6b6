/* r_3_4_4, METAL, grid 3 1 1 of blocks 2 4 4, opts LOCAL r2 4, GROUP r3 2, LOCAL r1 4 */
kernel void r_3_4_4(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], device const f32 *p3 [[buffer(3)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)lid.y;   /* < 4 */
  i32 v1 = (i32)lid.z;   /* < 4 */
  i32 v2 = v1 * 4;
  i32 v3 = (i32)lid.x;   /* < 2 */
  i32 v4 = v3 * 16;
  i32 v5 = (i32)gid.x;   /* < 3 */
  i32 v6 = v5 * 18;
  i32 v7 = v3 * 9;
  for (i32 r4 = 0; r4 < 3; r4++) {
    i32 v8 = r4 * 4;
    i32 v9 = r4 + v1;
    u8 v10 = v9 < 1;
    u8 v11 = v10 ^ 1;
    u8 v12 = v9 < 5;
    u8 v13 = v11 & v12;
    i32 v14 = r4 * 3;
    for (i32 r5 = 0; r5 < 3; r5++) {
      i32 v15 = r5 + v8;
      i32 v16 = v15 + v0;
      i32 v17 = v16 + v2;
      i32 v18 = v17 + v4;
      i32 v19 = v18 + (-5);
      i32 v20 = r5 + v0;
      u8 v21 = v20 < 1;
      u8 v22 = v21 ^ 1;
      u8 v23 = v20 < 5;
      u8 v24 = v22 & v23;
      u8 v25 = v24 & v13;
      f32 v26 = v25 ? p1[v19] : 0;
      i32 v27 = r5 + v6;
      i32 v28 = v27 + v14;
      i32 v29 = v28 + v7;
      f32 v30 = p2[v29];
      f32 v31 = acc0;
      f32 v32 = fma_f32(v26, v30, v31);
      acc0 = v32;
    }
  }
  f32 v33 = acc0;
  f32 v34 = simd_shuffle_xor(v33, 1);
  f32 v35 = v33 + v34;
  acc0 = v35;
  i32 v36 = v5 * 16;
  i32 v37 = v36 + v0;
  i32 v38 = v37 + v2;
  u8 v39 = v3 < 1;
  f32 v40 = p3[v5];
  f32 v41 = v35 + v40;
  if (v39) p0[v38] = v41;
}
