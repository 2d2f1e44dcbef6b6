/* r_128_32, CUDA, grid 2 1 1 of blocks 8 32 1, opts TILE r0 64, TILE r1 32, TILE r2 32, STAGE p1, STAGE p2, UPCAST r0 2, VEC r1 4, LOCAL r0 32, LOCAL r1 8 */
extern "C" __global__ void __launch_bounds__(256) r_128_32(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2) {
  f32x4 v0 = f32x4{0.0f, 0.0f, 0.0f, 0.0f};
  f32x4 acc0 = v0;
  f32x4 acc1 = v0;
  __shared__ __attribute__((aligned(16))) f32 l0[2080];
  i32 v1 = (i32)threadIdx.y;   /* < 32 */
  i32 v2 = (i32)threadIdx.x;   /* < 8 */
  i32 v3 = v2 * 260;
  i32 v4 = v1 + v3;
  i32 v5 = (i32)blockIdx.x;   /* < 2 */
  i32 v6 = v5 * 2560;
  i32 v7 = v1 * 40;
  i32 v8 = v6 + v7;
  i32 v9 = v2 * 4;
  i32 v10 = v8 + v9;
  for (i32 r28 = 0; r28 < 2; r28++) {
    i32 v11 = r28 * 32;
    i32 v12 = v4 + v11;
    i32 v13 = r28 * 1280;
    i32 v14 = v10 + v13;
    f32x4 v15 = *(const f32x4 *)(p1 + v14);
    f32 v16 = v15.x;
    l0[v12] = v16;
    i32 v17 = v12 + 65;
    f32 v18 = v15.y;
    l0[v17] = v18;
    i32 v19 = v12 + 130;
    f32 v20 = v15.z;
    l0[v19] = v20;
    i32 v21 = v12 + 195;
    f32 v22 = v15.w;
    l0[v21] = v22;
  }
  __shared__ __attribute__((aligned(16))) f32 l1[1024];
  i32 v23 = v1 * 32;
  i32 v24 = v23 + v9;
  tg_copy_async_16(l1 + v24, p2 + v24);
  tg_copy_async_wait_all(); __syncthreads();
  i32 v25 = v1 * 2;
  for (i32 r8 = 0; r8 < 32; r8++) {
    i32 v26 = r8 * 65;
    i32 v27 = v26 + v25;
    f32 v28 = l0[v27];
    f32x4 v29 = f32x4{v28, v28, v28, v28};
    i32 v30 = r8 * 32;
    i32 v31 = v30 + v9;
    f32x4 v32 = *(const f32x4 *)(l1 + v31);
    f32x4 v33 = acc0;
    f32x4 v34 = f32x4{fma_f32(v29.x, v32.x, v33.x), fma_f32(v29.y, v32.y, v33.y), fma_f32(v29.z, v32.z, v33.z), fma_f32(v29.w, v32.w, v33.w)};
    acc0 = v34;
    i32 v35 = v27 + 1;
    f32 v36 = l0[v35];
    f32x4 v37 = f32x4{v36, v36, v36, v36};
    f32x4 v38 = acc1;
    f32x4 v39 = f32x4{fma_f32(v37.x, v32.x, v38.x), fma_f32(v37.y, v32.y, v38.y), fma_f32(v37.z, v32.z, v38.z), fma_f32(v37.w, v32.w, v38.w)};
    acc1 = v39;
  }
  tg_copy_async_wait_all(); __syncthreads();
  i32 v40 = v1 * 4;
  i32 v41 = (i32)(v2 >> 1);
  i32 v42 = v40 + v41;
  i32 v43 = v2 & 1;
  i32 v44 = v43 * 260;
  i32 v45 = v42 + v44;
  u8 v46 = v1 < 16;
  i32 v47 = v1 * 160;
  i32 v48 = v6 + v47;
  i32 v49 = v41 * 40;
  i32 v50 = v48 + v49;
  i32 v51 = v43 * 4;
  i32 v52 = v50 + v51;
  i32 v53 = v52 + 32;
  f32x4 v54 = f32x4{0, 0, 0, 0};
  if (v46) v54 = *(const f32x4 *)(p1 + v53);
  f32 v55 = v54.x;
  if (v46) l0[v45] = v55;
  i32 v56 = v45 + 65;
  f32 v57 = v54.y;
  if (v46) l0[v56] = v57;
  i32 v58 = v45 + 130;
  f32 v59 = v54.z;
  if (v46) l0[v58] = v59;
  i32 v60 = v45 + 195;
  f32 v61 = v54.w;
  if (v46) l0[v60] = v61;
  u8 v62 = v1 < 8;
  i32 v63 = v24 + 1024;
  if (v62) tg_copy_async_16(l1 + v24, p2 + v63);
  tg_copy_async_wait_all(); __syncthreads();
  for (i32 r11 = 0; r11 < 8; r11++) {
    i32 v64 = r11 * 65;
    i32 v65 = v25 + v64;
    f32 v66 = l0[v65];
    f32x4 v67 = f32x4{v66, v66, v66, v66};
    i32 v68 = r11 * 32;
    i32 v69 = v68 + v9;
    f32x4 v70 = *(const f32x4 *)(l1 + v69);
    f32x4 v71 = acc0;
    f32x4 v72 = f32x4{fma_f32(v67.x, v70.x, v71.x), fma_f32(v67.y, v70.y, v71.y), fma_f32(v67.z, v70.z, v71.z), fma_f32(v67.w, v70.w, v71.w)};
    acc0 = v72;
    i32 v73 = v65 + 1;
    f32 v74 = l0[v73];
    f32x4 v75 = f32x4{v74, v74, v74, v74};
    f32x4 v76 = acc1;
    f32x4 v77 = f32x4{fma_f32(v75.x, v70.x, v76.x), fma_f32(v75.y, v70.y, v76.y), fma_f32(v75.z, v70.z, v76.z), fma_f32(v75.w, v70.w, v76.w)};
    acc1 = v77;
  }
  i32 v78 = v5 * 2048;
  i32 v79 = v1 * 64;
  i32 v80 = v78 + v79;
  i32 v81 = v80 + v9;
  f32x4 v82 = acc0;
  i32 v83 = v81 + 32;
  f32x4 v84 = acc1;
  *(f32x4 *)(p0 + v81) = v82;
  *(f32x4 *)(p0 + v83) = v84;
}
