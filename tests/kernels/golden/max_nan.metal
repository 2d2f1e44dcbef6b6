/* r_4, METAL, grid 4 1 1 of blocks 32 1 1, opts GROUP r1 32 */
kernel void r_4(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = (-INFINITY);
  i32 v0 = (i32)lid.x;   /* < 32 */
  i32 v1 = (i32)gid.x;   /* < 4 */
  i32 v2 = v1 * 33;
  i32 v3 = v0 + v2;
  for (i32 r2 = 0; r2 < 2; r2++) {
    f32 v4 = acc0;
    i32 v5 = r2 * 32;
    i32 v6 = v0 + v5;
    u8 v7 = v6 < 33;
    i32 v8 = v3 + v5;
    f32 v9 = v7 ? p1[v8] : 0;
    f32 v10 = v7 ? v9 : (-INFINITY);
    f32 v11 = v4 > v10 || v4 != v4 ? v4 : v10;
    acc0 = v11;
  }
  threadgroup f32 l0[32];
  f32 v12 = acc0;
  l0[v0] = v12;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  u8 v13 = v0 < 16;
  f32 v14 = v13 ? l0[v0] : 0;
  i32 v15 = v0 + 16;
  f32 v16 = v13 ? l0[v15] : 0;
  f32 v17 = v14 > v16 || v14 != v14 ? v14 : v16;
  if (v13) l0[v0] = v17;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  u8 v18 = v0 < 8;
  f32 v19 = v18 ? l0[v0] : 0;
  i32 v20 = v0 + 8;
  f32 v21 = v18 ? l0[v20] : 0;
  f32 v22 = v19 > v21 || v19 != v19 ? v19 : v21;
  if (v18) l0[v0] = v22;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  u8 v23 = v0 < 4;
  f32 v24 = v23 ? l0[v0] : 0;
  i32 v25 = v0 + 4;
  f32 v26 = v23 ? l0[v25] : 0;
  f32 v27 = v24 > v26 || v24 != v24 ? v24 : v26;
  if (v23) l0[v0] = v27;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  u8 v28 = v0 < 2;
  f32 v29 = v28 ? l0[v0] : 0;
  i32 v30 = v0 + 2;
  f32 v31 = v28 ? l0[v30] : 0;
  f32 v32 = v29 > v31 || v29 != v29 ? v29 : v31;
  if (v28) l0[v0] = v32;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  u8 v33 = v0 < 1;
  f32 v34 = v33 ? l0[v0] : 0;
  i32 v35 = v0 + 1;
  f32 v36 = v33 ? l0[v35] : 0;
  f32 v37 = v34 > v36 || v34 != v34 ? v34 : v36;
  if (v33) l0[v0] = v37;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  f32 v38 = l0[0];
  acc0 = v38;
  if (v33) p0[v1] = v38;
}
