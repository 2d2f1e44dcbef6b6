/* r, CUDA, grid 1 1 1 of blocks 1 1 1, no opts */
extern "C" __global__ void __launch_bounds__(1) r(f32 *__restrict__ p0, const i32 *__restrict__ p1, const f32 *__restrict__ p2) {
  __shared__ __attribute__((aligned(16))) f32 l0[6];
  for (i32 r2 = 0; r2 < 6; r2++) {
    i32 v0 = r2 * 8;
    f32 acc0 = (-f32_bits(0x7f800000u));
    for (i32 r3 = 0; r3 < 8; r3++) {
      i32 v1 = v0 + r3;
      f32 v2 = p2[v1];
      f32 v3 = acc0;
      f32 v4 = v3 > v2 || v3 != v3 ? v3 : v2;
      acc0 = v4;
    }
    f32 v5 = acc0;
    l0[r2] = v5;
  }
  __syncthreads();
  __shared__ __attribute__((aligned(16))) f32 l1[6];
  for (i32 r4 = 0; r4 < 6; r4++) {
    i32 v6 = r4 * 8;
    f32 v7 = l0[r4];
    f32 acc1 = 0.0f;
    for (i32 r5 = 0; r5 < 8; r5++) {
      i32 v8 = r5 + v6;
      f32 v9 = p2[v8];
      f32 v10 = v9 - v7;
      f32 v11 = exp_f32(v10);
      f32 v12 = acc1;
      f32 v13 = v12 + v11;
      acc1 = v13;
    }
    f32 v14 = acc1;
    l1[r4] = v14;
  }
  __syncthreads();
  f32 acc2 = 0.0f;
  for (i32 r0 = 0; r0 < 6; r0++) {
    i32 v15 = p1[r0];
    i32 v16 = r0 * 8;
    f32 v17 = l0[r0];
    f32 v18 = l1[r0];
    f32 v19 = log_f32(v18);
    f32 acc3 = 0.0f;
    for (i32 r1 = 0; r1 < 8; r1++) {
      u8 v20 = v15 == r1;
      i32 v21 = r1 + v16;
      f32 v22 = p2[v21];
      f32 v23 = v22 - v17;
      f32 v24 = v23 - v19;
      f32 v25 = v20 ? v24 : 0.0f;
      f32 v26 = acc3;
      f32 v27 = v26 + v25;
      acc3 = v27;
    }
    f32 v28 = acc3;
    f32 v29 = -v28;
    f32 v30 = acc2;
    f32 v31 = v30 + v29;
    acc2 = v31;
  }
  f32 v32 = acc2;
  p0[0] = v32;
}
