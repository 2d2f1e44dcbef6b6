/* e_3_150, CUDA, grid 3 1 1 of blocks 128 1 1, opts GROUP r1 128 */
extern "C" __global__ void __launch_bounds__(128) e_3_150(f32 *__restrict__ p0, const f32 *__restrict__ p1) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)blockIdx.x;   /* < 3 */
  i32 v1 = v0 * 150;
  i32 v2 = (i32)threadIdx.x;   /* < 128 */
  i32 v3 = v1 + v2;
  i32 v4 = v2 & 1;
  u8 v5 = v4 != 0;
  i32 v6 = (i32)(v2 >> 1);
  i32 v7 = v6 & 1;
  u8 v8 = v7 != 0;
  i32 v9 = (i32)(v2 >> 2);
  i32 v10 = v9 & 1;
  u8 v11 = v10 != 0;
  i32 v12 = (i32)(v2 >> 3);
  i32 v13 = v12 & 1;
  u8 v14 = v13 != 0;
  i32 v15 = (i32)(v2 >> 4);
  i32 v16 = v15 & 1;
  u8 v17 = v16 != 0;
  __shared__ __attribute__((aligned(16))) f32 l0[4];
  i32 v18 = (i32)(v2 >> 5);
  i32 v19 = v2 & 31;
  u8 v20 = v19 < 1;
  u8 v21 = v18 < 1;
  u8 v22 = v18 < 2;
  u8 v23 = v18 < 3;
  for (i32 r2 = 0; r2 < 2; r2++) {
    __syncthreads();
    i32 v24 = r2 * 128;
    i32 v25 = v3 + v24;
    i32 v26 = v2 + v24;
    u8 v27 = v26 < 150;
    f32 v28 = v27 ? p1[v25] : 0;
    f32 v29 = __shfl_xor_sync(0xffffffffu, v28, 1);
    f32 v30 = v29 + v28;
    f32 v31 = v5 ? v30 : v28;
    f32 v32 = v28 + v29;
    f32 v33 = __shfl_xor_sync(0xffffffffu, v32, 2);
    f32 v34 = v33 + v31;
    f32 v35 = v8 ? v34 : v31;
    f32 v36 = v32 + v33;
    f32 v37 = __shfl_xor_sync(0xffffffffu, v36, 4);
    f32 v38 = v37 + v35;
    f32 v39 = v11 ? v38 : v35;
    f32 v40 = v36 + v37;
    f32 v41 = __shfl_xor_sync(0xffffffffu, v40, 8);
    f32 v42 = v41 + v39;
    f32 v43 = v14 ? v42 : v39;
    f32 v44 = v40 + v41;
    f32 v45 = __shfl_xor_sync(0xffffffffu, v44, 16);
    f32 v46 = v45 + v43;
    f32 v47 = v17 ? v46 : v43;
    f32 v48 = v44 + v45;
    f32 v49 = acc0;
    if (v20) l0[v18] = v48;
    __syncthreads();
    f32 v50 = l0[0];
    f32 v51 = v49 + v50;
    f32 v52 = v21 ? v49 : v51;
    acc0 = v51;
    f32 v53 = l0[1];
    f32 v54 = v52 + v53;
    f32 v55 = v22 ? v52 : v54;
    f32 v56 = v51 + v53;
    acc0 = v56;
    f32 v57 = l0[2];
    f32 v58 = v55 + v57;
    f32 v59 = v23 ? v55 : v58;
    f32 v60 = v56 + v57;
    acc0 = v60;
    f32 v61 = l0[3];
    f32 v62 = v60 + v61;
    acc0 = v62;
    f32 v63 = v59 + v47;
    if (v27) p0[v25] = v63;
  }
}
