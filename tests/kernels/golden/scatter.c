/* e_9, C, 1 thread, opts VEC r0 9 */
VECTOR(f32, 8)
void e_9(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32x8 v0 = *(const f32x8u *)(p1 + 0l);
  f32 v1 = p1[8l];
  *(f32x8u *)(p0 + 0l) = v0;
  p0[8l] = v1;
}

/* e_2_9, C, 1 thread, opts VEC r2 16 */
VECTOR(f32, 16)
VECTOR(f32, 2)
void e_2_9(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32x16 v0 = *(const f32x16u *)(p1 + 0l);
  f32x16 v1 = -v0;
  f32x2 v2 = *(const f32x2u *)(p1 + 16l);
  f32x2 v3 = -v2;
  *(f32x16u *)(p0 + 0l) = v1;
  *(f32x2u *)(p0 + 16l) = v3;
}

/* e_6, C, 1 thread, no opts */
void e_6(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  i32 *p1 = (i32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  for (i64 r0 = 0; r0 < 6l; r0++) {
    i32 v0 = p1[r0];
    i64 v1 = (i64)v0;
    u8 v2 = v1 < 0l;
    u8 v3 = v2 ^ 1;
    u8 v4 = v1 < 9l;
    u8 v5 = v3 & v4;
    f32 v6 = p2[r0];
    if (v5) p0[v1] = v6;
  }
}

/* e_2_9, C, 1 thread, opts VEC r2 16 */
VECTOR(f32, 16)
VECTOR(f32, 2)
void e_2_9(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  f32x16 v0 = *(const f32x16u *)(p1 + 0l);
  f32x2 v1 = *(const f32x2u *)(p1 + 16l);
  *(f32x16u *)(p0 + 0l) = v0;
  *(f32x2u *)(p0 + 16l) = v1;
}

/* e_2_3, C, 1 thread, no opts */
void e_2_3(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  i32 *p1 = (i32 *)bufs[1];
  f32 *p2 = (f32 *)bufs[2];
  for (i64 r0 = 0; r0 < 2l; r0++) {
    i64 v0 = r0 * 9l;
    i64 v1 = r0 * 3l;
    for (i64 r1 = 0; r1 < 3l; r1++) {
      i64 v2 = v1 + r1;
      i32 v3 = p1[v2];
      i64 v4 = (i64)v3;
      i64 v5 = v0 + v4;
      u8 v6 = v4 < 0l;
      u8 v7 = v6 ^ 1;
      u8 v8 = v4 < 9l;
      u8 v9 = v7 & v8;
      f32 v10 = v9 ? p0[v5] : 0;
      f32 v11 = p2[v2];
      f32 v12 = v10 + v11;
      if (v9) p0[v5] = v12;
    }
  }
}
