/* r_4, C, 1 thread, opts GROUP r1 32 */
VECTOR(f32, 16)
VECTOR(i32, 16)
VECTOR(f32, 8)
VECTOR(i32, 8)
VECTOR(f32, 4)
VECTOR(i32, 4)
VECTOR(f32, 2)
VECTOR(i32, 2)
void r_4(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  for (i64 r0 = 0; r0 < 4l; r0++) {
    i64 v0 = r0 * 33l;
    f32x16 v1 = *(const f32x16u *)(p1 + v0);
    i64 v2 = v0 + 16l;
    f32x16 v3 = *(const f32x16u *)(p1 + v2);
    i32x16 m4 = (i32x16)(v1 > v3), n4 = (i32x16)(v1 != v1);
    f32x16 v4 = (f32x16)((n4 & (i32x16)v1) | (~n4 & ((m4 & (i32x16)v1) | (~m4 & (i32x16)v3))));
    f32x8 v5 = __builtin_shufflevector(v4, v4, 0, 1, 2, 3, 4, 5, 6, 7);
    f32x8 v6 = __builtin_shufflevector(v4, v4, 8, 9, 10, 11, 12, 13, 14, 15);
    i32x8 m7 = (i32x8)(v5 > v6), n7 = (i32x8)(v5 != v5);
    f32x8 v7 = (f32x8)((n7 & (i32x8)v5) | (~n7 & ((m7 & (i32x8)v5) | (~m7 & (i32x8)v6))));
    f32x4 v8 = __builtin_shufflevector(v7, v7, 0, 1, 2, 3);
    f32x4 v9 = __builtin_shufflevector(v7, v7, 4, 5, 6, 7);
    i32x4 m10 = (i32x4)(v8 > v9), n10 = (i32x4)(v8 != v8);
    f32x4 v10 = (f32x4)((n10 & (i32x4)v8) | (~n10 & ((m10 & (i32x4)v8) | (~m10 & (i32x4)v9))));
    f32x2 v11 = __builtin_shufflevector(v10, v10, 0, 1);
    f32x2 v12 = __builtin_shufflevector(v10, v10, 2, 3);
    i32x2 m13 = (i32x2)(v11 > v12), n13 = (i32x2)(v11 != v11);
    f32x2 v13 = (f32x2)((n13 & (i32x2)v11) | (~n13 & ((m13 & (i32x2)v11) | (~m13 & (i32x2)v12))));
    f32 v14 = v13[0] > v13[1] || v13[0] != v13[0] ? v13[0] : v13[1];
    f32 v15 = (-__builtin_inff()) > v14 || (-__builtin_inff()) != (-__builtin_inff()) ? (-__builtin_inff()) : v14;
    i64 v16 = v0 + 32l;
    f32 v17 = p1[v16];
    f32 v18 = v15 > v17 || v15 != v15 ? v15 : v17;
    p0[r0] = v18;
  }
}
