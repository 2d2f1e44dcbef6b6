/* e_2_3, C, 1 thread, no opts */
void e_2_3(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p2 = (f32 *)bufs[2];
  i32 *p1 = (i32 *)bufs[1];
  for (i64 r0 = 0; r0 < 2l; r0++) {
    i64 v0 = r0 * 3l;
    i64 v1 = r0 * 9l;
    for (i64 r1 = 0; r1 < 3l; r1++) {
      i64 v2 = v0 + r1;
      i32 v3 = p1[v2];
      i64 v4 = (i64)v3;
      i64 v5 = v1 + v4;
      u8 v6 = v4 < 0l;
      u8 v7 = v6 ^ 1;
      u8 v8 = v4 < 9l;
      u8 v9 = v7 & v8;
      f32 v10 = v9 ? p2[v5] : 0;
      p0[v2] = v10;
    }
  }
}
