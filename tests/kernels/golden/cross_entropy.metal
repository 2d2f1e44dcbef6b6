/* r, METAL, grid 1 1 1 of blocks 2 1 1, opts LOCAL r1 2, UPCAST r1 4, LOCAL r3 2 */
kernel void r(device f32 *p0 [[buffer(0)]], device const i32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = (-INFINITY);
  f32 acc1 = (-INFINITY);
  f32 acc2 = (-INFINITY);
  i64 v0 = (i64)lid.x;   /* < 2l */
  i64 v1 = v0 * 8l;
  for (i64 r2 = 0; r2 < 8l; r2++) {
    f32 v2 = acc0;
    i64 v3 = r2 + v1;
    f32 v4 = p2[v3];
    f32 v5 = v2 > v4 || v2 != v2 ? v2 : v4;
    acc0 = v5;
    f32 v6 = acc1;
    i64 v7 = v3 + 16l;
    f32 v8 = p2[v7];
    f32 v9 = v6 > v8 || v6 != v6 ? v6 : v8;
    acc1 = v9;
    f32 v10 = acc2;
    i64 v11 = v3 + 32l;
    f32 v12 = p2[v11];
    f32 v13 = v10 > v12 || v10 != v10 ? v10 : v12;
    acc2 = v13;
  }
  alignas(16) threadgroup f32 l0[6];
  f32 v14 = acc0;
  l0[v0] = v14;
  i64 v15 = v0 + 2l;
  f32 v16 = acc1;
  l0[v15] = v16;
  i64 v17 = v0 + 4l;
  f32 v18 = acc2;
  l0[v17] = v18;
  alignas(16) threadgroup f32 l1[6];
  for (i64 r9 = 0; r9 < 3l; r9++) {
    f32 acc3 = 0.0f;
    i64 v19 = r9 * 16l;
    i64 v20 = r9 * 2l;
    i64 v21 = v20 + v0;
    f32 v22 = l0[v21];
    for (i64 r4 = 0; r4 < 8l; r4++) {
      f32 v23 = acc3;
      i64 v24 = v19 + r4;
      i64 v25 = v24 + v1;
      f32 v26 = p2[v25];
      f32 v27 = v26 - v22;
      f32 v28 = exp_f32(v27);
      f32 v29 = v23 + v28;
      acc3 = v29;
    }
    f32 v30 = acc3;
    l1[v21] = v30;
  }
  f32 acc4 = 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (i64 r0 = 0; r0 < 6l; r0++) {
    f32 v31 = acc4;
    i32 v32 = p1[r0];
    i64 v33 = (i64)v32;
    u8 v34 = v33 < 0l;
    u8 v35 = v34 ^ 1;
    u8 v36 = v33 < 8l;
    u8 v37 = v35 & v36;
    i64 v38 = r0 * 8l;
    i64 v39 = v38 + v33;
    f32 v40 = v37 ? p2[v39] : 0;
    f32 v41 = l0[r0];
    f32 v42 = v40 - v41;
    f32 v43 = l1[r0];
    f32 v44 = log_f32(v43);
    f32 v45 = v42 - v44;
    f32 v46 = v37 ? v45 : 0.0f;
    f32 v47 = -v46;
    f32 v48 = v31 + v47;
    acc4 = v48;
  }
  u8 v49 = v0 < 1l;
  f32 v50 = acc4;
  if (v49) p0[0l] = v50;
}
