/* r_3_4_4, C, 1 thread, opts VEC r2 4, UNROLL r3 2, UNROLL r4 2 */
VECTOR(f32, 4)
#ifndef H_f32x4_splat
#define H_f32x4_splat
INL f32x4 f32x4_splat(f32 x) { return (f32x4){x, x, x, x}; }
#endif
VECTOR(i32, 4)
void r_3_4_4(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  f32 *p1 = (f32 *)bufs[1];
  f32 *p0 = (f32 *)bufs[0];
  f32x4 v0 = f32x4_splat((-__builtin_inff()));
  for (i64 r5 = 0; r5 < 12l; r5++) {
    i64 v1 = r5 * 16l;
    f32 v2 = p1[v1];
    i64 v3 = v1 + 2l;
    f32 v4 = p1[v3];
    i64 v5 = v1 + 4l;
    f32 v6 = p1[v5];
    i64 v7 = v1 + 6l;
    f32 v8 = p1[v7];
    f32x4 v9 = (f32x4){v2, v4, v6, v8};
    i32x4 m10 = (i32x4)(v0 > v9) | (i32x4)(v0 != v0);
    f32x4 v10 = (f32x4)((m10 & (i32x4)v0) | (~m10 & (i32x4)v9));
    i64 v11 = v1 + 1l;
    f32 v12 = p1[v11];
    i64 v13 = v1 + 3l;
    f32 v14 = p1[v13];
    i64 v15 = v1 + 5l;
    f32 v16 = p1[v15];
    i64 v17 = v1 + 7l;
    f32 v18 = p1[v17];
    f32x4 v19 = (f32x4){v12, v14, v16, v18};
    i32x4 m20 = (i32x4)(v10 > v19) | (i32x4)(v10 != v10);
    f32x4 v20 = (f32x4)((m20 & (i32x4)v10) | (~m20 & (i32x4)v19));
    i64 v21 = v1 + 8l;
    f32 v22 = p1[v21];
    i64 v23 = v1 + 10l;
    f32 v24 = p1[v23];
    i64 v25 = v1 + 12l;
    f32 v26 = p1[v25];
    i64 v27 = v1 + 14l;
    f32 v28 = p1[v27];
    f32x4 v29 = (f32x4){v22, v24, v26, v28};
    i32x4 m30 = (i32x4)(v20 > v29) | (i32x4)(v20 != v20);
    f32x4 v30 = (f32x4)((m30 & (i32x4)v20) | (~m30 & (i32x4)v29));
    i64 v31 = v1 + 9l;
    f32 v32 = p1[v31];
    i64 v33 = v1 + 11l;
    f32 v34 = p1[v33];
    i64 v35 = v1 + 13l;
    f32 v36 = p1[v35];
    i64 v37 = v1 + 15l;
    f32 v38 = p1[v37];
    f32x4 v39 = (f32x4){v32, v34, v36, v38};
    i32x4 m40 = (i32x4)(v30 > v39) | (i32x4)(v30 != v30);
    f32x4 v40 = (f32x4)((m40 & (i32x4)v30) | (~m40 & (i32x4)v39));
    i64 v41 = r5 * 4l;
    *(f32x4u *)(p0 + v41) = v40;
  }
}
