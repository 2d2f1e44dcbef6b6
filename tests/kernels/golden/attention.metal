/* r_2_4_8, METAL, grid 2 1 1 of blocks 4 1 1, opts LOCAL r1 4 */
kernel void r_2_4_8(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], device const f32 *p3 [[buffer(3)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.x;   /* < 4 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)gid.x;   /* < 2 */
  i32 v3 = v2 * 32;
  i32 v4 = v1 + v3;
  threadgroup f32 l0[16];
  for (i32 r6 = 0; r6 < 4; r6++) {
    f32 acc0 = 0.0f;
    i32 v5 = r6 * 8;
    i32 v6 = v5 + v3;
    for (i32 r7 = 0; r7 < 8; r7++) {
      i32 v7 = v4 + r7;
      f32 v8 = p1[v7];
      i32 v9 = v6 + r7;
      f32 v10 = p2[v9];
      f32 v11 = acc0;
      f32 v12 = fma_f32(v8, v10, v11);
      acc0 = v12;
    }
    i32 v13 = r6 * 4;
    i32 v14 = v13 + v0;
    f32 v15 = acc0;
    l0[v14] = v15;
  }
  f32 acc1 = (-INFINITY);
  i64 v16 = (i64)v0;
  for (i32 r8 = 0; r8 < 4; r8++) {
    f32 v17 = acc1;
    i64 v18 = (i64)r8;
    u8 v19 = v16 < v18;
    u8 v20 = v19 ? 0 : 1;
    i32 v21 = r8 * 4;
    i32 v22 = v0 + v21;
    f32 v23 = l0[v22];
    f32 v24 = v23 * 0.35355338f;
    f32 v25 = v20 ? v24 : (-INFINITY);
    f32 v26 = v17 > v25 || v17 != v17 ? v17 : v25;
    acc1 = v26;
  }
  f32 acc2 = 0.0f;
  f32 v27 = acc1;
  threadgroup f32 l1[16];
  for (i32 r5 = 0; r5 < 4; r5++) {
    f32 v28 = acc2;
    i64 v29 = (i64)r5;
    u8 v30 = v16 < v29;
    u8 v31 = v30 ? 0 : 1;
    i32 v32 = r5 * 4;
    i32 v33 = v0 + v32;
    f32 v34 = l0[v33];
    f32 v35 = v34 * 0.35355338f;
    f32 v36 = v31 ? v35 : (-INFINITY);
    f32 v37 = v36 - v27;
    f32 v38 = exp_f32(v37);
    f32 v39 = v28 + v38;
    acc2 = v39;
    l1[v33] = v38;
  }
  f32 v40 = acc2;
  threadgroup f32 l2[32];
  for (i32 r3 = 0; r3 < 8; r3++) {
    f32 acc3 = 0.0f;
    for (i32 r4 = 0; r4 < 4; r4++) {
      f32 v41 = acc3;
      i64 v42 = (i64)r4;
      u8 v43 = v16 < v42;
      u8 v44 = v43 ? 0 : 1;
      i32 v45 = r4 * 4;
      i32 v46 = v0 + v45;
      f32 v47 = l1[v46];
      f32 v48 = v47 / v40;
      i32 v49 = r4 * 8;
      i32 v50 = v49 + v3;
      i32 v51 = v50 + r3;
      f32 v52 = p3[v51];
      f32 v53 = v48 * v52;
      f32 v54 = v44 ? v53 : 0.0f;
      f32 v55 = v41 + v54;
      acc3 = v55;
    }
    i32 v56 = r3 * 4;
    i32 v57 = v0 + v56;
    f32 v58 = acc3;
    l2[v57] = v58;
  }
  for (i32 r2 = 0; r2 < 8; r2++) {
    i32 v59 = r2 + v1;
    i32 v60 = v59 + v3;
    i32 v61 = r2 * 4;
    i32 v62 = v61 + v0;
    f32 v63 = l2[v62];
    p0[v60] = v63;
  }
}
