/* e_3_150, C, 1 thread, no opts */
void e_3_150(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  for (i64 r0 = 0; r0 < 3l; r0++) {
    f64 acc0 = 0.0;
    i64 v0 = r0 * 150l;
    for (i64 r1 = 0; r1 < 150l; r1++) {
      f64 v1 = acc0;
      i64 v2 = v0 + r1;
      f32 v3 = p1[v2];
      f64 v4 = (f64)v3;
      f64 v5 = v1 + v4;
      acc0 = v5;
      f32 v6 = (f32)v5;
      p0[v2] = v6;
    }
  }
}
