/* r_80_8, METAL, grid 10 1 1 of blocks 32 1 1, opts TILE r0 8, TILE r1 8, TC r0 r1 */
kernel void r_80_8(device f32 *p0 [[buffer(0)]], device const u16 *p1 [[buffer(1)]], device const u16 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32x2 v0 = f32x2(0.0f, 0.0f);
  f32x2 acc0 = v0;
  i32 v1 = (i32)lid.x;   /* < 32 */
  i32 v2 = v1 & 1;
  i32 v3 = v2 * 2;
  i32 v4 = (i32)gid.x;   /* < 10 */
  i32 v5 = v4 * 128;
  i32 v6 = v3 + v5;
  i32 v7 = (i32)(v1 >> 1);
  i32 v8 = v7 & 3;
  i32 v9 = v8 * 16;
  i32 v10 = v6 + v9;
  i32 v11 = (i32)(v1 >> 4);
  i32 v12 = v11 * 64;
  i32 v13 = v10 + v12;
  i32 v14 = (i32)(v1 >> 3);
  i32 v15 = v14 & 1;
  i32 v16 = v15 * 4;
  i32 v17 = v13 + v16;
  i32 v18 = v8 * 8;
  i32 v19 = v3 + v18;
  i32 v20 = v11 * 32;
  i32 v21 = v19 + v20;
  i32 v22 = v21 + v16;
  for (i32 r11 = 0; r11 < 2; r11++) {
    i32 v23 = r11 * 8;
    i32 v24 = v17 + v23;
    u16x2 v25 = *(device const u16x2 *)(p1 + v24);
    i32 v26 = r11 * 64;
    i32 v27 = v22 + v26;
    u16x2 v28 = *(device const u16x2 *)(p2 + v27);
    f32x2 v29 = acc0;
    simdgroup_half8x8 a30; a30.thread_elements()[0] = as_type<half>(v25.x); a30.thread_elements()[1] = as_type<half>(v25.y); simdgroup_half8x8 b30; b30.thread_elements()[0] = as_type<half>(v28.x); b30.thread_elements()[1] = as_type<half>(v28.y); simdgroup_float8x8 c30; c30.thread_elements()[0] = float(v29.x); c30.thread_elements()[1] = float(v29.y); simdgroup_multiply_accumulate(c30, a30, b30, c30); f32x2 v30 = f32x2(c30.thread_elements()[0], c30.thread_elements()[1]);
    acc0 = v30;
  }
  i32 v31 = v4 * 64;
  i32 v32 = v3 + v31;
  i32 v33 = v32 + v18;
  i32 v34 = v33 + v20;
  i32 v35 = v34 + v16;
  f32x2 v36 = acc0;
  f32x2 v37 = f32x2(v36.x > v0.x || v36.x != v36.x ? v36.x : v0.x, v36.y > v0.y || v36.y != v36.y ? v36.y : v0.y);
  *(device f32x2 *)(p0 + v35) = v37;
}
