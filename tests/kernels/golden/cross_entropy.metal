/* r, METAL, grid 1 1 1 of blocks 1 1 1, no opts */
kernel void r(device f32 *p0 [[buffer(0)]], device const i32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  alignas(16) threadgroup f32 l0[6];
  for (i64 r1 = 0; r1 < 6l; r1++) {
    f32 acc0 = (-INFINITY);
    i64 v0 = r1 * 8l;
    for (i64 r2 = 0; r2 < 8l; r2++) {
      f32 v1 = acc0;
      i64 v2 = v0 + r2;
      f32 v3 = p2[v2];
      f32 v4 = v1 > v3 || v1 != v1 ? v1 : v3;
      acc0 = v4;
    }
    f32 v5 = acc0;
    l0[r1] = v5;
  }
  alignas(16) threadgroup f32 l1[6];
  for (i64 r3 = 0; r3 < 6l; r3++) {
    f32 acc1 = 0.0f;
    i64 v6 = r3 * 8l;
    f32 v7 = l0[r3];
    for (i64 r4 = 0; r4 < 8l; r4++) {
      f32 v8 = acc1;
      i64 v9 = v6 + r4;
      f32 v10 = p2[v9];
      f32 v11 = v10 - v7;
      f32 v12 = exp_f32(v11);
      f32 v13 = v8 + v12;
      acc1 = v13;
    }
    f32 v14 = acc1;
    l1[r3] = v14;
  }
  f32 acc2 = 0.0f;
  for (i64 r0 = 0; r0 < 6l; r0++) {
    f32 v15 = acc2;
    i32 v16 = p1[r0];
    i64 v17 = (i64)v16;
    u8 v18 = v17 < 0l;
    u8 v19 = v18 ^ 1;
    u8 v20 = v17 < 8l;
    u8 v21 = v19 & v20;
    i64 v22 = r0 * 8l;
    i64 v23 = v22 + v17;
    f32 v24 = v21 ? p2[v23] : 0;
    f32 v25 = l0[r0];
    f32 v26 = v24 - v25;
    f32 v27 = l1[r0];
    f32 v28 = log_f32(v27);
    f32 v29 = v26 - v28;
    f32 v30 = v21 ? v29 : 0.0f;
    f32 v31 = -v30;
    f32 v32 = v15 + v31;
    acc2 = v32;
  }
  f32 v33 = acc2;
  p0[0l] = v33;
}
