/* r, CUDA, grid 1 1 1 of blocks 4 1 1, opts LOCAL r3 4, LOCAL r1 4, GROUP r0 4, UNROLL r0 4 */
extern "C" __global__ void __launch_bounds__(4) r(f32 *__restrict__ p0, const i32 *__restrict__ p1, const f32 *__restrict__ p2) {
  i64 v0 = (i64)threadIdx.x;   /* < 4ll */
  i64 v1 = v0 * 8ll;
  __shared__ __attribute__((aligned(16))) f32 l0[6];
  for (i64 r7 = 0; r7 < 2ll; r7++) {
    f32 acc0 = (-f32_bits(0x7f800000u));
    i64 v2 = r7 * 32ll;
    i64 v3 = v1 + v2;
    i64 v4 = r7 * 4ll;
    i64 v5 = v0 + v4;
    u8 v6 = v5 < 6ll;
    for (i64 r2 = 0; r2 < 8ll; r2++) {
      f32 v7 = acc0;
      i64 v8 = v3 + r2;
      f32 v9 = v6 ? p2[v8] : 0;
      f32 v10 = v7 > v9 || v7 != v7 ? v7 : v9;
      acc0 = v10;
    }
    f32 v11 = acc0;
    if (v6) l0[v5] = v11;
  }
  __shared__ __attribute__((aligned(16))) f32 l1[6];
  for (i64 r5 = 0; r5 < 2ll; r5++) {
    f32 acc1 = 0.0f;
    i64 v12 = r5 * 32ll;
    i64 v13 = v12 + v1;
    i64 v14 = r5 * 4ll;
    i64 v15 = v14 + v0;
    u8 v16 = v15 < 6ll;
    f32 v17 = v16 ? l0[v15] : 0;
    for (i64 r4 = 0; r4 < 8ll; r4++) {
      f32 v18 = acc1;
      i64 v19 = v13 + r4;
      f32 v20 = v16 ? p2[v19] : 0;
      f32 v21 = v20 - v17;
      f32 v22 = exp_f32(v21);
      f32 v23 = v18 + v22;
      acc1 = v23;
    }
    f32 v24 = acc1;
    if (v16) l1[v15] = v24;
  }
  i32 v25 = p1[v0];
  i64 v26 = (i64)v25;
  u8 v27 = v26 < 0ll;
  u8 v28 = v27 ^ 1;
  u8 v29 = v26 < 8ll;
  u8 v30 = v28 & v29;
  i64 v31 = v1 + v26;
  f32 v32 = v30 ? p2[v31] : 0;
  f32 v33 = l0[v0];
  f32 v34 = v32 - v33;
  f32 v35 = l1[v0];
  f32 v36 = log_f32(v35);
  f32 v37 = v34 - v36;
  f32 v38 = v30 ? v37 : 0.0f;
  f32 v39 = -v38;
  f32 v40 = 0.0f + v39;
  u8 v41 = v0 < 2ll;
  i64 v42 = v0 + 4ll;
  i32 v43 = v41 ? p1[v42] : 0;
  i64 v44 = (i64)v43;
  u8 v45 = v44 < 0ll;
  u8 v46 = v45 ^ 1;
  u8 v47 = v44 < 8ll;
  u8 v48 = v46 & v47;
  i64 v49 = v44 + v1;
  i64 v50 = v49 + 32ll;
  u8 v51 = v48 & v41;
  f32 v52 = v51 ? p2[v50] : 0;
  f32 v53 = v41 ? l0[v42] : 0;
  f32 v54 = v52 - v53;
  f32 v55 = v41 ? l1[v42] : 0;
  f32 v56 = log_f32(v55);
  f32 v57 = v54 - v56;
  f32 v58 = v48 ? v57 : 0.0f;
  f32 v59 = -v58;
  f32 v60 = v41 ? v59 : 0.0f;
  f32 v61 = v40 + v60;
  __shared__ __attribute__((aligned(16))) f32 l2[4];
  l2[v0] = v61;
  __syncthreads();
  f32 v62 = v41 ? l2[v0] : 0;
  i64 v63 = v0 + 2ll;
  f32 v64 = v41 ? l2[v63] : 0;
  f32 v65 = v62 + v64;
  if (v41) l2[v0] = v65;
  __syncthreads();
  u8 v66 = v0 < 1ll;
  f32 v67 = v66 ? l2[v0] : 0;
  i64 v68 = v0 + 1ll;
  f32 v69 = v66 ? l2[v68] : 0;
  f32 v70 = v67 + v69;
  if (v66) l2[v0] = v70;
  __syncthreads();
  f32 v71 = l2[0ll];
  if (v66) p0[0ll] = v71;
}
