/* e_20_12, C, 1 thread, opts VEC r0 16 */
VECTOR(f32, 16)
VECTOR(f32, 4)
void e_20_12(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  for (i64 r1 = 0; r1 < 12l; r1++) {
    i64 v0 = r1 * 20l;
    f32x16 v1 = *(const f32x16u *)(p1 + v0);
    i64 v2 = r1 + 12l;
    i64 v3 = r1 + 24l;
    i64 v4 = r1 + 36l;
    i64 v5 = r1 + 48l;
    i64 v6 = r1 + 60l;
    i64 v7 = r1 + 72l;
    i64 v8 = r1 + 84l;
    i64 v9 = r1 + 96l;
    i64 v10 = r1 + 108l;
    i64 v11 = r1 + 120l;
    i64 v12 = r1 + 132l;
    i64 v13 = r1 + 144l;
    i64 v14 = r1 + 156l;
    i64 v15 = r1 + 168l;
    i64 v16 = r1 + 180l;
    p0[r1] = v1[0];
    p0[v2] = v1[1];
    p0[v3] = v1[2];
    p0[v4] = v1[3];
    p0[v5] = v1[4];
    p0[v6] = v1[5];
    p0[v7] = v1[6];
    p0[v8] = v1[7];
    p0[v9] = v1[8];
    p0[v10] = v1[9];
    p0[v11] = v1[10];
    p0[v12] = v1[11];
    p0[v13] = v1[12];
    p0[v14] = v1[13];
    p0[v15] = v1[14];
    p0[v16] = v1[15];
  }
  for (i64 r5 = 0; r5 < 12l; r5++) {
    i64 v17 = r5 + 192l;
    i64 v18 = r5 * 20l;
    i64 v19 = v18 + 16l;
    f32x4 v20 = *(const f32x4u *)(p1 + v19);
    i64 v21 = r5 + 204l;
    i64 v22 = r5 + 216l;
    i64 v23 = r5 + 228l;
    p0[v17] = v20[0];
    p0[v21] = v20[1];
    p0[v22] = v20[2];
    p0[v23] = v20[3];
  }
}
