/* r, CUDA, grid 1 1 1 of blocks 1 1 1, no opts */
extern "C" __global__ void __launch_bounds__(1) r(f32 *__restrict__ p0, const i32 *__restrict__ p1, const f32 *__restrict__ p2) {
  __shared__ __attribute__((aligned(16))) f32 l0[6];
  for (i64 r1 = 0; r1 < 6ll; r1++) {
    f32 acc0 = (-f32_bits(0x7f800000u));
    i64 v0 = r1 * 8ll;
    for (i64 r2 = 0; r2 < 8ll; r2++) {
      f32 v1 = acc0;
      i64 v2 = v0 + r2;
      f32 v3 = p2[v2];
      f32 v4 = v1 > v3 || v1 != v1 ? v1 : v3;
      acc0 = v4;
    }
    f32 v5 = acc0;
    l0[r1] = v5;
  }
  __shared__ __attribute__((aligned(16))) f32 l1[6];
  for (i64 r3 = 0; r3 < 6ll; r3++) {
    f32 acc1 = 0.0f;
    i64 v6 = r3 * 8ll;
    f32 v7 = l0[r3];
    for (i64 r4 = 0; r4 < 8ll; r4++) {
      f32 v8 = acc1;
      i64 v9 = v6 + r4;
      f32 v10 = p2[v9];
      f32 v11 = v10 - v7;
      f32 v12 = exp_f32(v11);
      f32 v13 = v8 + v12;
      acc1 = v13;
    }
    f32 v14 = acc1;
    l1[r3] = v14;
  }
  f32 acc2 = 0.0f;
  for (i64 r0 = 0; r0 < 6ll; r0++) {
    f32 v15 = acc2;
    i32 v16 = p1[r0];
    i64 v17 = (i64)v16;
    u8 v18 = v17 < 0ll;
    u8 v19 = v18 ^ 1;
    u8 v20 = v17 < 8ll;
    u8 v21 = v19 & v20;
    i64 v22 = r0 * 8ll;
    i64 v23 = v22 + v17;
    f32 v24 = v21 ? p2[v23] : 0;
    f32 v25 = l0[r0];
    f32 v26 = v24 - v25;
    f32 v27 = l1[r0];
    f32 v28 = log_f32(v27);
    f32 v29 = v26 - v28;
    f32 v30 = v21 ? v29 : 0.0f;
    f32 v31 = -v30;
    f32 v32 = v15 + v31;
    acc2 = v32;
  }
  f32 v33 = acc2;
  p0[0ll] = v33;
}
