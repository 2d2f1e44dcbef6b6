/* r_80_8, C, 1 thread, opts UPCAST r0 10, VEC r1 8 */
VECTOR(f32, 8)
#ifndef H_f32x8_splat
#define H_f32x8_splat
INL f32x8 f32x8_splat(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
VECTOR(u16, 8)
VECTOR(u32, 8)
VECTOR(i32, 8)
VECTOR(i16, 8)
#ifndef H_f32x8_f16
#define H_f32x8_f16
INL f32x8 f32x8_f16(u16x8 a) {
#if 8 == 16 && defined(__AVX512F__)
  f32x8 r = (f32x8)__builtin_ia32_vcvtph2ps512_mask((i16x8)a, (f32x8){0}, -1, 4);
#ifdef __clang__
  __asm__("" : "+v"(r));
#endif
  return r;
#elif 8 % 8 == 0 && defined(__F16C__)
  typedef i16 half8 __attribute__((vector_size(16)));
  typedef f32 float8 __attribute__((vector_size(32)));
  f32x8 r;
  PARTS for (int i = 0; i < 8; i += 8) {
    half8 h;
    float8 f;
    __builtin_memcpy(&h, (const char *)&a + 2 * i, 16);
    f = __builtin_ia32_vcvtph2ps256(h);
#ifdef __clang__
    __asm__("" : "+x"(f));
#endif
    __builtin_memcpy((char *)&r + 4 * i, &f, 32);
  }
  return r;
#else
  u32x8 b = __builtin_convertvector(a, u32x8), m = b & 0x7fff, low = (u32x8)(m < 0x400);
  u32x8 top = (u32x8)(m >= 0x7c00) & (112u << 23), n = (m << 13) + (112u << 23) + top;
  u32x8 d = (u32x8)(__builtin_convertvector((i32x8)m, f32x8) * 0x1p-24f);
  return (f32x8)((b & 0x8000) << 16 | (d & low) | (n & ~low));
#endif
}
#endif
#ifndef H_fma_f32x8
#define H_fma_f32x8
INL f32x8 fma_f32x8(f32x8 a, f32x8 b, f32x8 c) {
#if defined(__clang__)
  _Pragma("STDC FP_CONTRACT ON") return a * b + c;
#elif defined(__FMA__)
  IN_PARTS(f32, 32, 1, FMA256(s, PART(a), PART(b), PART(c)))
#elif defined(__FMA__)
  IN_PARTS(f32, 16, 2, FMA128(s, PART(a), PART(b), PART(c)))
#else
  f32x8 r; for (int i = 0; i < 8; i++) r[i] = fma_f32(a[i], b[i], c[i]); return r;
#endif
}
#endif
#ifndef H_max_f32x8
#define H_max_f32x8
INL f32x8 max_f32x8(f32x8 a, f32x8 b) {
  i32x8 m = (i32x8)(a > b);
  f32x8 r = (f32x8)((m & (i32x8)a) | (~m & (i32x8)b));
  m = (i32x8)(a != a);
  return (f32x8)((m & (i32x8)a) | (~m & (i32x8)r));
}
#endif
void r_80_8(void *const *bufs, const i64 *vars, int tid, void *scratch) {
  u16 *p1 = (u16 *)bufs[1];
  u16 *p2 = (u16 *)bufs[2];
  f32 *p0 = (f32 *)bufs[0];
  f32x8 v0 = f32x8_splat(0.0f);
  for (i64 r3 = 0; r3 < 8l; r3++) {
    f32x8 acc0 = v0;
    f32x8 acc1 = v0;
    f32x8 acc2 = v0;
    f32x8 acc3 = v0;
    f32x8 acc4 = v0;
    f32x8 acc5 = v0;
    f32x8 acc6 = v0;
    f32x8 acc7 = v0;
    f32x8 acc8 = v0;
    f32x8 acc9 = v0;
    i64 v1 = r3 * 160l;
    for (i64 r2 = 0; r2 < 16l; r2++) {
      i64 v2 = v1 + r2;
      u16 v3 = p1[v2];
      f32 v4 = f32_f16(v3);
      f32x8 v5 = f32x8_splat(v4);
      i64 v6 = r2 * 8l;
      u16x8 v7 = *(const u16x8u *)(p2 + v6);
      f32x8 v8 = f32x8_f16(v7);
      f32x8 v9 = acc0;
      f32x8 v10 = fma_f32x8(v5, v8, v9);
      acc0 = v10;
      i64 v11 = v2 + 16l;
      u16 v12 = p1[v11];
      f32 v13 = f32_f16(v12);
      f32x8 v14 = f32x8_splat(v13);
      f32x8 v15 = acc1;
      f32x8 v16 = fma_f32x8(v14, v8, v15);
      acc1 = v16;
      i64 v17 = v2 + 32l;
      u16 v18 = p1[v17];
      f32 v19 = f32_f16(v18);
      f32x8 v20 = f32x8_splat(v19);
      f32x8 v21 = acc2;
      f32x8 v22 = fma_f32x8(v20, v8, v21);
      acc2 = v22;
      i64 v23 = v2 + 48l;
      u16 v24 = p1[v23];
      f32 v25 = f32_f16(v24);
      f32x8 v26 = f32x8_splat(v25);
      f32x8 v27 = acc3;
      f32x8 v28 = fma_f32x8(v26, v8, v27);
      acc3 = v28;
      i64 v29 = v2 + 64l;
      u16 v30 = p1[v29];
      f32 v31 = f32_f16(v30);
      f32x8 v32 = f32x8_splat(v31);
      f32x8 v33 = acc4;
      f32x8 v34 = fma_f32x8(v32, v8, v33);
      acc4 = v34;
      i64 v35 = v2 + 80l;
      u16 v36 = p1[v35];
      f32 v37 = f32_f16(v36);
      f32x8 v38 = f32x8_splat(v37);
      f32x8 v39 = acc5;
      f32x8 v40 = fma_f32x8(v38, v8, v39);
      acc5 = v40;
      i64 v41 = v2 + 96l;
      u16 v42 = p1[v41];
      f32 v43 = f32_f16(v42);
      f32x8 v44 = f32x8_splat(v43);
      f32x8 v45 = acc6;
      f32x8 v46 = fma_f32x8(v44, v8, v45);
      acc6 = v46;
      i64 v47 = v2 + 112l;
      u16 v48 = p1[v47];
      f32 v49 = f32_f16(v48);
      f32x8 v50 = f32x8_splat(v49);
      f32x8 v51 = acc7;
      f32x8 v52 = fma_f32x8(v50, v8, v51);
      acc7 = v52;
      i64 v53 = v2 + 128l;
      u16 v54 = p1[v53];
      f32 v55 = f32_f16(v54);
      f32x8 v56 = f32x8_splat(v55);
      f32x8 v57 = acc8;
      f32x8 v58 = fma_f32x8(v56, v8, v57);
      acc8 = v58;
      i64 v59 = v2 + 144l;
      u16 v60 = p1[v59];
      f32 v61 = f32_f16(v60);
      f32x8 v62 = f32x8_splat(v61);
      f32x8 v63 = acc9;
      f32x8 v64 = fma_f32x8(v62, v8, v63);
      acc9 = v64;
    }
    i64 v65 = r3 * 80l;
    f32x8 v66 = acc0;
    f32x8 v67 = max_f32x8(v66, v0);
    i64 v68 = v65 + 8l;
    f32x8 v69 = acc1;
    f32x8 v70 = max_f32x8(v69, v0);
    i64 v71 = v65 + 16l;
    f32x8 v72 = acc2;
    f32x8 v73 = max_f32x8(v72, v0);
    i64 v74 = v65 + 24l;
    f32x8 v75 = acc3;
    f32x8 v76 = max_f32x8(v75, v0);
    i64 v77 = v65 + 32l;
    f32x8 v78 = acc4;
    f32x8 v79 = max_f32x8(v78, v0);
    i64 v80 = v65 + 40l;
    f32x8 v81 = acc5;
    f32x8 v82 = max_f32x8(v81, v0);
    i64 v83 = v65 + 48l;
    f32x8 v84 = acc6;
    f32x8 v85 = max_f32x8(v84, v0);
    i64 v86 = v65 + 56l;
    f32x8 v87 = acc7;
    f32x8 v88 = max_f32x8(v87, v0);
    i64 v89 = v65 + 64l;
    f32x8 v90 = acc8;
    f32x8 v91 = max_f32x8(v90, v0);
    i64 v92 = v65 + 72l;
    f32x8 v93 = acc9;
    f32x8 v94 = max_f32x8(v93, v0);
    *(f32x8u *)(p0 + v65) = v67;
    *(f32x8u *)(p0 + v68) = v70;
    *(f32x8u *)(p0 + v71) = v73;
    *(f32x8u *)(p0 + v74) = v76;
    *(f32x8u *)(p0 + v77) = v79;
    *(f32x8u *)(p0 + v80) = v82;
    *(f32x8u *)(p0 + v83) = v85;
    *(f32x8u *)(p0 + v86) = v88;
    *(f32x8u *)(p0 + v89) = v91;
    *(f32x8u *)(p0 + v92) = v94;
  }
}
