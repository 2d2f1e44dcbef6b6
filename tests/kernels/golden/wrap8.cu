/* e_48, CUDA, grid 2 1 1 of blocks 32 1 1, opts LOCAL r0 32 */
extern "C" __global__ void __launch_bounds__(32) e_48(u8 *__restrict__ p0, const i32 *__restrict__ p1, i8 *__restrict__ p2, const i8 *__restrict__ p3, const i8 *__restrict__ p4) {
  i32 v0 = (i32)blockIdx.x;   /* < 2 */
  i32 v1 = v0 * 32;
  i32 v2 = (i32)threadIdx.x;   /* < 32 */
  i32 v3 = v1 + v2;
  u8 v4 = v3 < 48;
  i32 v5 = v4 ? p1[v3] : 0;
  i32 v6 = (i32)((u32)v5 + (u32)64);
  u8 v7 = (u8)v6;
  u8 v8 = (u8)((u32)v7 * (u32)v7);
  u8 v9 = (u8)((u32)v7 + (u32)(u8)1);
  u8 v10 = (u8)((u32)v8 - (u32)v9);
  i8 v11 = v4 ? p3[v3] : 0;
  i8 v12 = v4 ? p4[v3] : 0;
  i8 v13 = (i8)((u32)v11 * (u32)v12);
  i8 v14 = (i8)((u32)v11 + (u32)(i8)100);
  i8 v15 = (i8)((u32)v13 - (u32)v14);
  if (v4) p0[v3] = v10;
  if (v4) p2[v3] = v15;
}
