/* r_16, CUDA, grid 16 1 1 of blocks 32 1 1, opts GROUP r2 32, UNROLL r2 4 */
extern "C" __global__ void __launch_bounds__(32) r_16(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2, const f32 *__restrict__ p3) {
  f32 acc0 = 0.0f;
  i32 v0 = (i32)blockIdx.x;   /* < 16 */
  i32 v1 = (i32)threadIdx.x;   /* < 32 */
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
    f32 v25 = __shfl_xor_sync(0xffffffffu, v18, 16);
    f32 v26 = v18 + v25;
    f32 v27 = __shfl_xor_sync(0xffffffffu, v26, 8);
    f32 v28 = v26 + v27;
    f32 v29 = __shfl_xor_sync(0xffffffffu, v28, 4);
    f32 v30 = v28 + v29;
    f32 v31 = __shfl_xor_sync(0xffffffffu, v30, 2);
    f32 v32 = v30 + v31;
    f32 v33 = __shfl_xor_sync(0xffffffffu, v32, 1);
    f32 v34 = v32 + v33;
    f32 v35 = __shfl_xor_sync(0xffffffffu, v24, 16);
    f32 v36 = v24 + v35;
    f32 v37 = __shfl_xor_sync(0xffffffffu, v36, 8);
    f32 v38 = v36 + v37;
    f32 v39 = __shfl_xor_sync(0xffffffffu, v38, 4);
    f32 v40 = v38 + v39;
    f32 v41 = __shfl_xor_sync(0xffffffffu, v40, 2);
    f32 v42 = v40 + v41;
    f32 v43 = __shfl_xor_sync(0xffffffffu, v42, 1);
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
