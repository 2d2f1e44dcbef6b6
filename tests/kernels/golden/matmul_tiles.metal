/* r_128_32, METAL, grid 2 1 1 of blocks 8 32 1, opts TILE r0 64, TILE r1 32, TILE r2 32, STAGE p1, STAGE p2, UPCAST r0 2, VEC r1 4, LOCAL r0 32, LOCAL r1 8 */
kernel void r_128_32(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], device const f32 *p2 [[buffer(2)]], uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  f32x4 v0 = f32x4(0.0f, 0.0f, 0.0f, 0.0f);
  f32x4 acc0 = v0;
  f32x4 acc1 = v0;
  alignas(16) threadgroup f32 l0[2080];
  i32 v1 = (i32)lid.x;   /* < 8 */
  i32 v2 = v1 * 65;
  i32 v3 = (i32)lid.y;   /* < 32 */
  i32 v4 = v3 & 3;
  i32 v5 = v4 * 520;
  i32 v6 = (i32)(v3 >> 2);
  i32 v7 = (i32)gid.x;   /* < 2 */
  i32 v8 = v7 * 2560;
  i32 v9 = v4 * 8;
  i32 v10 = v6 * 40;
  for (i32 r24 = 0; r24 < 8; r24++) {
    i32 v11 = r24 * 8;
    i32 v12 = v11 + v2;
    i32 v13 = v12 + v5;
    i32 v14 = v13 + v6;
    i32 v15 = r24 * 320;
    i32 v16 = v8 + v15;
    i32 v17 = v16 + v1;
    i32 v18 = v17 + v9;
    i32 v19 = v18 + v10;
    f32 v20 = p1[v19];
    l0[v14] = v20;
  }
  alignas(16) threadgroup f32 l1[1024];
  i32 v21 = v3 * 8;
  for (i32 r25 = 0; r25 < 4; r25++) {
    i32 v22 = r25 * 256;
    i32 v23 = v22 + v21;
    i32 v24 = v23 + v1;
    f32 v25 = p2[v24];
    l1[v24] = v25;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  i32 v26 = v3 * 2;
  i32 v27 = v1 * 4;
  for (i32 r8 = 0; r8 < 32; r8++) {
    i32 v28 = r8 * 65;
    i32 v29 = v28 + v26;
    f32 v30 = l0[v29];
    f32x4 v31 = f32x4(v30, v30, v30, v30);
    i32 v32 = r8 * 32;
    i32 v33 = v32 + v27;
    f32x4 v34 = *(threadgroup const f32x4 *)(l1 + v33);
    f32x4 v35 = acc0;
    f32x4 v36 = f32x4(fma_f32(v31.x, v34.x, v35.x), fma_f32(v31.y, v34.y, v35.y), fma_f32(v31.z, v34.z, v35.z), fma_f32(v31.w, v34.w, v35.w));
    acc0 = v36;
    i32 v37 = v29 + 1;
    f32 v38 = l0[v37];
    f32x4 v39 = f32x4(v38, v38, v38, v38);
    f32x4 v40 = acc1;
    f32x4 v41 = f32x4(fma_f32(v39.x, v34.x, v40.x), fma_f32(v39.y, v34.y, v40.y), fma_f32(v39.z, v34.z, v40.z), fma_f32(v39.w, v34.w, v40.w));
    acc1 = v41;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  i32 v42 = v3 + v2;
  i32 v43 = v3 * 40;
  i32 v44 = v8 + v43;
  i32 v45 = v44 + v1;
  for (i32 r26 = 0; r26 < 2; r26++) {
    i32 v46 = r26 * 32;
    i32 v47 = v42 + v46;
    i32 v48 = r26 * 1280;
    i32 v49 = v45 + v48;
    i32 v50 = v49 + 32;
    f32 v51 = p1[v50];
    l0[v47] = v51;
  }
  i32 v52 = v21 + v1;
  i32 v53 = v52 + 1024;
  f32 v54 = p2[v53];
  l1[v52] = v54;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (i32 r11 = 0; r11 < 8; r11++) {
    i32 v55 = r11 * 65;
    i32 v56 = v26 + v55;
    f32 v57 = l0[v56];
    f32x4 v58 = f32x4(v57, v57, v57, v57);
    i32 v59 = r11 * 32;
    i32 v60 = v59 + v27;
    f32x4 v61 = *(threadgroup const f32x4 *)(l1 + v60);
    f32x4 v62 = acc0;
    f32x4 v63 = f32x4(fma_f32(v58.x, v61.x, v62.x), fma_f32(v58.y, v61.y, v62.y), fma_f32(v58.z, v61.z, v62.z), fma_f32(v58.w, v61.w, v62.w));
    acc0 = v63;
    i32 v64 = v56 + 1;
    f32 v65 = l0[v64];
    f32x4 v66 = f32x4(v65, v65, v65, v65);
    f32x4 v67 = acc1;
    f32x4 v68 = f32x4(fma_f32(v66.x, v61.x, v67.x), fma_f32(v66.y, v61.y, v67.y), fma_f32(v66.z, v61.z, v67.z), fma_f32(v66.w, v61.w, v67.w));
    acc1 = v68;
  }
  i32 v69 = v7 * 2048;
  i32 v70 = v3 * 64;
  i32 v71 = v69 + v70;
  i32 v72 = v71 + v27;
  f32x4 v73 = acc0;
  i32 v74 = v72 + 32;
  f32x4 v75 = acc1;
  *(device f32x4 *)(p0 + v72) = v73;
  *(device f32x4 *)(p0 + v74) = v75;
}
