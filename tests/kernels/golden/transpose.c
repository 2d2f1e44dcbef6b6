/* e_20_12, C, 1 thread, opts VEC r1 12 */
VECTOR(f32, 8)
VECTOR(f32, 4)
void e_20_12(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p0 = (f32 *)bufs[0];
  f32 *p1 = (f32 *)bufs[1];
  for (i64 r0 = 0; r0 < 20l; r0++) {
    i64 v0 = r0 * 12l;
    f32 v1 = p1[r0];
    i64 v2 = r0 + 20l;
    f32 v3 = p1[v2];
    i64 v4 = r0 + 40l;
    f32 v5 = p1[v4];
    i64 v6 = r0 + 60l;
    f32 v7 = p1[v6];
    i64 v8 = r0 + 80l;
    f32 v9 = p1[v8];
    i64 v10 = r0 + 100l;
    f32 v11 = p1[v10];
    i64 v12 = r0 + 120l;
    f32 v13 = p1[v12];
    i64 v14 = r0 + 140l;
    f32 v15 = p1[v14];
    f32x8 v16 = (f32x8){v1, v3, v5, v7, v9, v11, v13, v15};
    i64 v17 = v0 + 8l;
    i64 v18 = r0 + 160l;
    f32 v19 = p1[v18];
    i64 v20 = r0 + 180l;
    f32 v21 = p1[v20];
    i64 v22 = r0 + 200l;
    f32 v23 = p1[v22];
    i64 v24 = r0 + 220l;
    f32 v25 = p1[v24];
    f32x4 v26 = (f32x4){v19, v21, v23, v25};
    *(f32x8u *)(p0 + v0) = v16;
    *(f32x4u *)(p0 + v17) = v26;
  }
}
