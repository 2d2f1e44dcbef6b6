/* r_2_4_8, METAL, grid 4 2 1 of blocks 1 1 1, no opts */
kernel void r_2_4_8(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], device const f32 *p3 [[buffer(3)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 4 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)gid.y;   /* < 2 */
  i32 v3 = v2 * 32;
  threadgroup f32 l0[4];
  for (i32 r6 = 0; r6 < 4; r6++) {
    f32 acc0 = 0.0f;
    i32 v4 = r6 * 8;
    for (i32 r7 = 0; r7 < 8; r7++) {
      i32 v5 = v1 + r7;
      i32 v6 = v5 + v3;
      f32 v7 = p1[v6];
      i32 v8 = v4 + r7;
      i32 v9 = v8 + v3;
      f32 v10 = p2[v9];
      f32 v11 = acc0;
      f32 v12 = fma_f32(v7, v10, v11);
      acc0 = v12;
    }
    f32 v13 = acc0;
    l0[r6] = v13;
  }
  f32 acc1 = (-INFINITY);
  i64 v14 = (i64)v0;
  for (i32 r8 = 0; r8 < 4; r8++) {
    f32 v15 = acc1;
    i64 v16 = (i64)r8;
    u8 v17 = v14 < v16;
    u8 v18 = v17 ? 0 : 1;
    f32 v19 = l0[r8];
    f32 v20 = v19 * 0.35355338f;
    f32 v21 = v18 ? v20 : (-INFINITY);
    f32 v22 = v15 > v21 || v15 != v15 ? v15 : v21;
    acc1 = v22;
  }
  f32 acc2 = 0.0f;
  f32 v23 = acc1;
  threadgroup f32 l1[4];
  for (i32 r5 = 0; r5 < 4; r5++) {
    f32 v24 = acc2;
    i64 v25 = (i64)r5;
    u8 v26 = v14 < v25;
    u8 v27 = v26 ? 0 : 1;
    f32 v28 = l0[r5];
    f32 v29 = v28 * 0.35355338f;
    f32 v30 = v27 ? v29 : (-INFINITY);
    f32 v31 = v30 - v23;
    f32 v32 = exp_f32(v31);
    f32 v33 = v24 + v32;
    acc2 = v33;
    l1[r5] = v32;
  }
  f32 v34 = acc2;
  threadgroup f32 l2[8];
  for (i32 r3 = 0; r3 < 8; r3++) {
    f32 acc3 = 0.0f;
    for (i32 r4 = 0; r4 < 4; r4++) {
      f32 v35 = acc3;
      i64 v36 = (i64)r4;
      u8 v37 = v14 < v36;
      u8 v38 = v37 ? 0 : 1;
      f32 v39 = l1[r4];
      f32 v40 = v39 / v34;
      i32 v41 = r4 * 8;
      i32 v42 = v41 + r3;
      i32 v43 = v42 + v3;
      f32 v44 = p3[v43];
      f32 v45 = v40 * v44;
      f32 v46 = v38 ? v45 : 0.0f;
      f32 v47 = v35 + v46;
      acc3 = v47;
    }
    f32 v48 = acc3;
    l2[r3] = v48;
  }
  for (i32 r2 = 0; r2 < 8; r2++) {
    i32 v49 = r2 + v1;
    i32 v50 = v49 + v3;
    f32 v51 = l2[r2];
    p0[v50] = v51;
  }
}
