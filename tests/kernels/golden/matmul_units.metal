/* r_80_8, METAL, grid 10 1 1 of blocks 32 1 1, opts TILE r0 8, TILE r1 8, STAGE p1, STAGE p2, TC r0 r1 */
kernel void r_80_8(device f32 *p0 [[buffer(0)]], device const u16 *p1 [[buffer(1)]], device const u16 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32x2 v0 = f32x2(0.0f, 0.0f);
  f32x2 acc0 = v0;
  alignas(8) threadgroup u16 l0[192];
  i32 v1 = (i32)lid.x;   /* < 32 */
  i32 v2 = v1 & 3;
  i32 v3 = v2 * 4;
  i32 v4 = (i32)(v1 >> 2);
  i32 v5 = v4 * 24;
  i32 v6 = v3 + v5;
  i32 v7 = (i32)gid.x;   /* < 10 */
  i32 v8 = v7 * 128;
  i32 v9 = v1 * 4;
  i32 v10 = v8 + v9;
  u16x4 v11 = *(device const u16x4 *)(p1 + v10);
  *(threadgroup u16x4 *)(l0 + v6) = v11;
  alignas(8) threadgroup u16 l1[256];
  i32 v12 = v1 & 1;
  i32 v13 = v12 * 4;
  i32 v14 = (i32)(v1 >> 1);
  i32 v15 = v14 * 16;
  i32 v16 = v13 + v15;
  u16x4 v17 = *(device const u16x4 *)(p2 + v9);
  *(threadgroup u16x4 *)(l1 + v16) = v17;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  i32 v18 = v12 * 2;
  i32 v19 = v14 & 3;
  i32 v20 = v19 * 24;
  i32 v21 = (i32)(v1 >> 4);
  i32 v22 = v21 * 96;
  i32 v23 = (i32)(v1 >> 3);
  i32 v24 = v23 & 1;
  i32 v25 = v24 * 4;
  i32 v26 = v19 * 16;
  i32 v27 = v21 * 64;
  for (i32 r15 = 0; r15 < 2; r15++) {
    i32 v28 = r15 * 8;
    i32 v29 = v28 + v18;
    i32 v30 = v29 + v20;
    i32 v31 = v30 + v22;
    i32 v32 = v31 + v25;
    u16x2 v33 = *(threadgroup const u16x2 *)(l0 + v32);
    i32 v34 = r15 * 128;
    i32 v35 = v34 + v18;
    i32 v36 = v35 + v26;
    i32 v37 = v36 + v27;
    i32 v38 = v37 + v25;
    u16x2 v39 = *(threadgroup const u16x2 *)(l1 + v38);
    f32x2 v40 = acc0;
    simdgroup_half8x8 a41; a41.thread_elements()[0] = as_type<half>(v33.x); a41.thread_elements()[1] = as_type<half>(v33.y); simdgroup_half8x8 b41; b41.thread_elements()[0] = as_type<half>(v39.x); b41.thread_elements()[1] = as_type<half>(v39.y); simdgroup_float8x8 c41; c41.thread_elements()[0] = float(v40.x); c41.thread_elements()[1] = float(v40.y); simdgroup_multiply_accumulate(c41, a41, b41, c41); f32x2 v41 = f32x2(c41.thread_elements()[0], c41.thread_elements()[1]);
    acc0 = v41;
  }
  i32 v42 = v7 * 64;
  i32 v43 = v18 + v42;
  i32 v44 = v19 * 8;
  i32 v45 = v43 + v44;
  i32 v46 = v21 * 32;
  i32 v47 = v45 + v46;
  i32 v48 = v47 + v25;
  f32x2 v49 = acc0;
  f32x2 v50 = f32x2(v49.x > v0.x || v49.x != v49.x ? v49.x : v0.x, v49.y > v0.y || v49.y != v49.y ? v49.y : v0.y);
  *(device f32x2 *)(p0 + v48) = v50;
}
