/* r_4, METAL, grid 4 1 1 of blocks 32 1 1, opts GROUP r1 32 */
kernel void r_4(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  i32 v0 = (i32)gid.x;   /* < 4 */
  i32 v1 = (i32)lid.x;   /* < 32 */
  u8 v2 = v1 < 1;
  threadgroup f32 l0[32];
  i32 v3 = v0 * 33;
  f32 acc0 = (-INFINITY);
  for (i32 r2 = 0; r2 < 2; r2++) {
    i32 v4 = r2 * 32;
    i32 v5 = v4 + v1;
    u8 v6 = v5 < 33;
    i32 v7 = v5 + v3;
    f32 v8 = v6 ? p1[v7] : 0;
    f32 v9 = v6 ? v8 : (-INFINITY);
    f32 v10 = acc0;
    f32 v11 = v10 > v9 || v10 != v10 ? v10 : v9;
    acc0 = v11;
  }
  f32 v12 = acc0;
  l0[v1] = v12;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  u8 v13 = v1 < 16;
  f32 v14 = v13 ? l0[v1] : 0;
  i32 v15 = v1 + 16;
  f32 v16 = v13 ? l0[v15] : 0;
  f32 v17 = v14 > v16 || v14 != v14 ? v14 : v16;
  if (v13) l0[v1] = v17;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  u8 v18 = v1 < 8;
  f32 v19 = v18 ? l0[v1] : 0;
  i32 v20 = v1 + 8;
  f32 v21 = v18 ? l0[v20] : 0;
  f32 v22 = v19 > v21 || v19 != v19 ? v19 : v21;
  if (v18) l0[v1] = v22;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  u8 v23 = v1 < 4;
  f32 v24 = v23 ? l0[v1] : 0;
  i32 v25 = v1 + 4;
  f32 v26 = v23 ? l0[v25] : 0;
  f32 v27 = v24 > v26 || v24 != v24 ? v24 : v26;
  if (v23) l0[v1] = v27;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  u8 v28 = v1 < 2;
  f32 v29 = v28 ? l0[v1] : 0;
  i32 v30 = v1 + 2;
  f32 v31 = v28 ? l0[v30] : 0;
  f32 v32 = v29 > v31 || v29 != v29 ? v29 : v31;
  if (v28) l0[v1] = v32;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  f32 v33 = v2 ? l0[v1] : 0;
  i32 v34 = v1 + 1;
  f32 v35 = v2 ? l0[v34] : 0;
  f32 v36 = v33 > v35 || v33 != v33 ? v33 : v35;
  if (v2) l0[v1] = v36;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  f32 v37 = l0[0];
  if (v2) p0[v0] = v37;
}
