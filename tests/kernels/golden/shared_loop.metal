/* r_16, METAL, grid 16 1 1 of blocks 32 1 1, opts GROUP r2 32, UNROLL r2 4 */
kernel void r_16(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], device const f32 *p3 [[buffer(3)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)gid.x;   /* < 16 */
  i32 v1 = (i32)lid.x;   /* < 32 */
  i32 v2 = v1 * 16;
  i32 v3 = v0 + v2;
  u8 v4 = v1 < 16;
  for (i32 r1 = 0; r1 < 2; r1++) {
    i32 v5 = r1 * 768;
    i32 v6 = v3 + v5;
    f32 v7 = p1[v6];
    i32 v8 = r1 * 48;
    i32 v9 = v1 + v8;
    f32 v10 = p3[v9];
    f32 v11 = fma_f32(v7, v10, 0.0f);
    i32 v12 = v6 + 512;
    f32 v13 = v4 ? p1[v12] : 0;
    i32 v14 = v9 + 32;
    f32 v15 = v4 ? p3[v14] : 0;
    f32 v16 = v13 * v15;
    f32 v17 = v4 ? v16 : 0.0f;
    f32 v18 = v11 + v17;
    f32 v19 = p2[v9];
    f32 v20 = fma_f32(v7, v19, 0.0f);
    f32 v21 = v4 ? p2[v14] : 0;
    f32 v22 = v13 * v21;
    f32 v23 = v4 ? v22 : 0.0f;
    f32 v24 = v20 + v23;
    f32 v25 = simd_shuffle_xor(v18, 16);
    f32 v26 = v18 + v25;
    f32 v27 = simd_shuffle_xor(v26, 8);
    f32 v28 = v26 + v27;
    f32 v29 = simd_shuffle_xor(v28, 4);
    f32 v30 = v28 + v29;
    f32 v31 = simd_shuffle_xor(v30, 2);
    f32 v32 = v30 + v31;
    f32 v33 = simd_shuffle_xor(v32, 1);
    f32 v34 = v32 + v33;
    f32 v35 = simd_shuffle_xor(v24, 16);
    f32 v36 = v24 + v35;
    f32 v37 = simd_shuffle_xor(v36, 8);
    f32 v38 = v36 + v37;
    f32 v39 = simd_shuffle_xor(v38, 4);
    f32 v40 = v38 + v39;
    f32 v41 = simd_shuffle_xor(v40, 2);
    f32 v42 = v40 + v41;
    f32 v43 = simd_shuffle_xor(v42, 1);
    f32 v44 = v42 + v43;
    f32 v45 = acc0;
    f32 v46 = v44 > v34 || v44 != v44 ? v44 : v34;
    f32 v47 = v45 + v46;
    acc0 = v47;
  }
  u8 v48 = v1 < 1;
  f32 v49 = acc0;
  if (v48) p0[v0] = v49;
}
