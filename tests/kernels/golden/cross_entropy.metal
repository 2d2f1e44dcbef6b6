/* r, METAL, grid 1 1 1 of blocks 1 1 1, no opts */
kernel void r(device f32 *p0 [[buffer(0)]], device const i32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  threadgroup f32 l0[6];
  for (i64 r1 = 0; r1 < 6l; r1++) {
    i64 v0 = r1 * 8l;
    f32 acc0 = (-INFINITY);
    for (i64 r2 = 0; r2 < 8l; r2++) {
      i64 v1 = v0 + r2;
      f32 v2 = p2[v1];
      f32 v3 = acc0;
      f32 v4 = v3 > v2 || v3 != v3 ? v3 : v2;
      acc0 = v4;
    }
    f32 v5 = acc0;
    l0[r1] = v5;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup f32 l1[6];
  for (i64 r3 = 0; r3 < 6l; r3++) {
    i64 v6 = r3 * 8l;
    f32 v7 = l0[r3];
    f32 acc1 = 0.0f;
    for (i64 r4 = 0; r4 < 8l; r4++) {
      i64 v8 = v6 + r4;
      f32 v9 = p2[v8];
      f32 v10 = v9 - v7;
      f32 v11 = exp_f32(v10);
      f32 v12 = acc1;
      f32 v13 = v12 + v11;
      acc1 = v13;
    }
    f32 v14 = acc1;
    l1[r3] = v14;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  f32 acc2 = 0.0f;
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i32 v15 = p1[r0];
    i64 v16 = (i64)v15;
    u8 v17 = v16 < 0l;
    u8 v18 = v17 ^ 1;
    u8 v19 = v16 < 8l;
    u8 v20 = v18 & v19;
    i64 v21 = r0 * 8l;
    i64 v22 = v21 + v16;
    f32 v23 = v20 ? p2[v22] : 0;
    f32 v24 = l0[r0];
    f32 v25 = v23 - v24;
    f32 v26 = l1[r0];
    f32 v27 = log_f32(v26);
    f32 v28 = v25 - v27;
    f32 v29 = v20 ? v28 : 0.0f;
    f32 v30 = -v29;
    f32 v31 = acc2;
    f32 v32 = v31 + v30;
    acc2 = v32;
  }
  f32 v33 = acc2;
  p0[0l] = v33;
}
