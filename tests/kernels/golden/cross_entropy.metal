/* r, METAL, grid 1 1 1 of blocks 4 1 1, opts LOCAL r1 4, UPCAST r1 4, LOCAL r3 4, UPCAST r3 4 */
kernel void r(device f32 *p0 [[buffer(0)]], device const i32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = (-INFINITY);
  f32 acc1 = (-INFINITY);
  i64 v0 = (i64)lid.x;   /* < 4l */
  i64 v1 = v0 * 8l;
  u8 v2 = v0 < 2l;
  for (i64 r2 = 0; r2 < 8l; r2++) {
    f32 v3 = acc0;
    i64 v4 = v1 + r2;
    f32 v5 = p2[v4];
    f32 v6 = v3 > v5 || v3 != v3 ? v3 : v5;
    acc0 = v6;
    f32 v7 = acc1;
    i64 v8 = v4 + 32l;
    f32 v9 = v2 ? p2[v8] : 0;
    f32 v10 = v7 > v9 || v7 != v7 ? v7 : v9;
    acc1 = v10;
  }
  alignas(16) threadgroup f32 l0[6];
  f32 v11 = acc0;
  l0[v0] = v11;
  i64 v12 = v0 + 4l;
  f32 v13 = acc1;
  if (v2) l0[v12] = v13;
  f32 acc2 = 0.0f;
  f32 acc3 = 0.0f;
  f32 v14 = l0[v0];
  f32 v15 = v2 ? l0[v12] : 0;
  for (i64 r4 = 0; r4 < 8l; r4++) {
    f32 v16 = acc2;
    i64 v17 = v1 + r4;
    f32 v18 = p2[v17];
    f32 v19 = v18 - v14;
    f32 v20 = exp_f32(v19);
    f32 v21 = v16 + v20;
    acc2 = v21;
    f32 v22 = acc3;
    i64 v23 = v17 + 32l;
    f32 v24 = v2 ? p2[v23] : 0;
    f32 v25 = v24 - v15;
    f32 v26 = exp_f32(v25);
    f32 v27 = v22 + v26;
    acc3 = v27;
  }
  alignas(16) threadgroup f32 l1[6];
  f32 v28 = acc2;
  l1[v0] = v28;
  f32 v29 = acc3;
  if (v2) l1[v12] = v29;
  f32 acc4 = 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (i64 r0 = 0; r0 < 6l; r0++) {
    f32 v30 = acc4;
    i32 v31 = p1[r0];
    i64 v32 = (i64)v31;
    u8 v33 = v32 < 0l;
    u8 v34 = v33 ^ 1;
    u8 v35 = v32 < 8l;
    u8 v36 = v34 & v35;
    i64 v37 = r0 * 8l;
    i64 v38 = v37 + v32;
    f32 v39 = v36 ? p2[v38] : 0;
    f32 v40 = l0[r0];
    f32 v41 = v39 - v40;
    f32 v42 = l1[r0];
    f32 v43 = log_f32(v42);
    f32 v44 = v41 - v43;
    f32 v45 = v36 ? v44 : 0.0f;
    f32 v46 = -v45;
    f32 v47 = v30 + v46;
    acc4 = v47;
  }
  u8 v48 = v0 < 1l;
  f32 v49 = acc4;
  if (v48) p0[0l] = v49;
}
