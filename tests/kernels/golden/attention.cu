/* r_2_4_8, CUDA, grid 4 2 1 of blocks 1 1 1, no opts */
extern "C" __global__ void __launch_bounds__(1) r_2_4_8(f32 *__restrict__ p0, const f32 *__restrict__ p1, const f32 *__restrict__ p2, const f32 *__restrict__ p3) {
  i32 v0 = (i32)blockIdx.x;   /* < 4 */
  i32 v1 = v0 * 8;
  i32 v2 = (i32)blockIdx.y;   /* < 2 */
  i32 v3 = v2 * 32;
  __shared__ __attribute__((aligned(16))) f32 l0[8];
  i64 v4 = (i64)v0;
  __shared__ __attribute__((aligned(16))) f32 l1[4];
  __shared__ __attribute__((aligned(16))) f32 l2[4];
  for (i32 r6 = 0; r6 < 4; r6++) {
    i32 v5 = r6 * 8;
    f32 acc0 = 0.0f;
    for (i32 r7 = 0; r7 < 8; r7++) {
      i32 v6 = v1 + r7;
      i32 v7 = v6 + v3;
      f32 v8 = p1[v7];
      i32 v9 = v5 + r7;
      i32 v10 = v9 + v3;
      f32 v11 = p2[v10];
      f32 v12 = acc0;
      f32 v13 = fma_f32(v8, v11, v12);
      acc0 = v13;
    }
    f32 v14 = acc0;
    l2[r6] = v14;
  }
  __syncthreads();
  f32 acc1 = (-f32_bits(0x7f800000u));
  for (i32 r8 = 0; r8 < 4; r8++) {
    i64 v15 = (i64)r8;
    u8 v16 = v4 < v15;
    u8 v17 = v16 ? 0 : 1;
    f32 v18 = l2[r8];
    f32 v19 = v18 * 0.35355338f;
    f32 v20 = v17 ? v19 : (-f32_bits(0x7f800000u));
    f32 v21 = acc1;
    f32 v22 = v21 > v20 || v21 != v21 ? v21 : v20;
    acc1 = v22;
  }
  f32 v23 = acc1;
  f32 acc2 = 0.0f;
  for (i32 r5 = 0; r5 < 4; r5++) {
    i64 v24 = (i64)r5;
    u8 v25 = v4 < v24;
    u8 v26 = v25 ? 0 : 1;
    f32 v27 = l2[r5];
    f32 v28 = v27 * 0.35355338f;
    f32 v29 = v26 ? v28 : (-f32_bits(0x7f800000u));
    f32 v30 = v29 - v23;
    f32 v31 = exp_f32(v30);
    f32 v32 = acc2;
    f32 v33 = v32 + v31;
    acc2 = v33;
    l1[r5] = v31;
  }
  f32 v34 = acc2;
  __syncthreads();
  for (i32 r3 = 0; r3 < 8; r3++) {
    f32 acc3 = 0.0f;
    for (i32 r4 = 0; r4 < 4; r4++) {
      i64 v35 = (i64)r4;
      u8 v36 = v4 < v35;
      u8 v37 = v36 ? 0 : 1;
      f32 v38 = l1[r4];
      f32 v39 = v38 / v34;
      i32 v40 = r4 * 8;
      i32 v41 = v40 + r3;
      i32 v42 = v41 + v3;
      f32 v43 = p3[v42];
      f32 v44 = v39 * v43;
      f32 v45 = v37 ? v44 : 0.0f;
      f32 v46 = acc3;
      f32 v47 = v46 + v45;
      acc3 = v47;
    }
    f32 v48 = acc3;
    l0[r3] = v48;
  }
  __syncthreads();
  for (i32 r2 = 0; r2 < 8; r2++) {
    i32 v49 = r2 + v1;
    i32 v50 = v49 + v3;
    f32 v51 = l0[r2];
    p0[v50] = v51;
  }
}
