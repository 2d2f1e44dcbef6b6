/* r_2_4_8, METAL, grid 2 1 1 of blocks 4 1 1, opts LOCAL r1 4 */
kernel void r_2_4_8(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], device const f32 *p3 [[buffer(3)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)lid.x;   /* < 4 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)gid.x;   /* < 2 */
  i32 v3 = v2 * 32;
  i32 v4 = v1 + v3;
  alignas(16) threadgroup f32 l0[16];
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
  i32 v16 = v0 + 1;
  for (i32 r12 = 0; r12 < v16; r12++) {
    f32 v17 = acc1;
    i32 v18 = r12 * 4;
    i32 v19 = v18 + v0;
    f32 v20 = l0[v19];
    f32 v21 = v20 * 0.35355338f;
    f32 v22 = v17 > v21 || v17 != v17 ? v17 : v21;
    acc1 = v22;
  }
  f32 acc2 = 0.0f;
  f32 v23 = acc1;
  u8 v24 = v23 == (-INFINITY);
  f32 v25 = v24 ? 0.0f : v23;
  alignas(16) threadgroup f32 l1[16];
  for (i32 r5 = 0; r5 < 4; r5++) {
    f32 v26 = acc2;
    i32 v27 = r5 * (-1);
    i32 v28 = v0 + v27;
    u8 v29 = v28 < 0;
    i32 v30 = r5 * 4;
    i32 v31 = v0 + v30;
    f32 v32 = l0[v31];
    f32 v33 = v32 * 0.35355338f;
    f32 v34 = v29 ? (-INFINITY) : v33;
    f32 v35 = v34 - v25;
    f32 v36 = exp_f32(v35);
    f32 v37 = v29 ? 0.0f : v36;
    f32 v38 = v26 + v37;
    acc2 = v38;
    l1[v31] = v37;
  }
  alignas(16) threadgroup f32 l2[32];
  for (i32 r3 = 0; r3 < 8; r3++) {
    f32 acc3 = 0.0f;
    i32 v39 = v3 + r3;
    for (i32 r11 = 0; r11 < v16; r11++) {
      i32 v40 = r11 * 4;
      i32 v41 = v0 + v40;
      f32 v42 = l1[v41];
      i32 v43 = r11 * 8;
      i32 v44 = v39 + v43;
      f32 v45 = p3[v44];
      f32 v46 = acc3;
      f32 v47 = fma_f32(v42, v45, v46);
      acc3 = v47;
    }
    i32 v48 = r3 * 4;
    i32 v49 = v0 + v48;
    f32 v50 = acc3;
    l2[v49] = v50;
  }
  f32 v51 = acc2;
  u8 v52 = v51 == 0.0f;
  f32 v53 = v52 ? 1.0f : v51;
  for (i32 r2 = 0; r2 < 8; r2++) {
    i32 v54 = r2 + v1;
    i32 v55 = v54 + v3;
    i32 v56 = r2 * 4;
    i32 v57 = v56 + v0;
    f32 v58 = l2[v57];
    f32 v59 = v58 / v53;
    p0[v55] = v59;
  }
}
