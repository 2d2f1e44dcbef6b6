/* vector.c: writes an elementwise op on a vector of GNU C as an expression. If C has no operator for it, it
 * is a call of a helper function, made from a template for its element type and lanes. A comparison gives a
 * mask of 0 / -1 as wide as the compared values. A selection is bit logic on masks. */
#include "renderer/cstyle_private.h"

static const char per_lane1[] =
    "INL $T $F($S a) { $T r; PARTS for (int i = 0; i < $N; i++) r[i] = $G(a[i]); return r; }";
static const char per_lane2[] =
    "INL $T $F($T a, $T b) { $T r; PARTS for (int i = 0; i < $N; i++) r[i] = $G(a[i], b[i]); return r; }";
/* A shift by the width or more gives 0, or -1 for a negative number. $U: unsigned lanes. These use no loop
 * over the lanes, because compilers would not vectorise it. */
static const char shl_vec[] =
    "INL $T $F($T a, $T b) { return ($T)(($U)a << (($U)b & $M) & ($U)(($U)b <= $M)); }";
static const char shr_vec[] =
    "INL $T $F($T a, $T b) { return ($T)(($U)a >> (($U)b & $M) & ($U)(($U)b <= $M)); }";
static const char sar_vec[] = "INL $T $F($T a, $T b) {\n  $U in = ($U)(($U)b <= $M);\n  return a >> "
                              "($T)((($U)b & in) | (~in & $M));\n}";
/* $I: integers as wide as the float; $L: from this value on every float is whole */
static const char trunc_vec[] =
    "INL $T $F($T a) {\n#if 0\n$P$Q$R"
    "#else\n  $I b = ($I)a, s = b & $M, m = ($I)(($T)(b & ~$M) < $L), y = b & m;\n"
    "  $I t = ($I)__builtin_convertvector(__builtin_convertvector(($T)y, $I), $T);\n  return ($T)((t & m) | "
    "(b & ~m) | s);\n#endif\n}";
/* c plus the products: one instruction if the processor has it. $U: unsigned lanes, which wrap. */
static const char dot4_vec[] =
    "INL $T $F($T c, $T a, $T b) {\n#if $N == 16 && defined(__AVX512VNNI__)\n"
    "  __asm__(\"vpdpbusd %2, %1, %0\" : \"+v\"(c) : \"v\"(a), \"v\"(b));\n  return c;\n"
    "#elif $N % 8 == 0 && defined(__AVXVNNI__)\n"
    "  typedef i32 part __attribute__((vector_size(32)));\n  PARTS for (int k = 0; k < $N; k += 8) {\n    "
    "part x, y, z;\n"
    "    __builtin_memcpy(&x, (const char *)&a + 4 * k, 32);\n    __builtin_memcpy(&y, (const char *)&b + 4 "
    "* k, 32);\n"
    "    __builtin_memcpy(&z, (const char *)&c + 4 * k, 32);\n"
    "    __asm__(\"%{vex%} vpdpbusd %2, %1, %0\" : \"+x\"(z) : \"x\"(x), \"x\"(y));\n"
    "    __builtin_memcpy((char *)&c + 4 * k, &z, 32);\n  }\n  return c;\n"
    "#else\n  $U x = ($U)a, y = ($U)b;\n"
    "  return ($T)(($U)c + (x & 255) * ($U)(($T)(y << 24) >> 24) + (x >> 8 & 255) * ($U)(($T)(y << 16) >> "
    "24) +\n"
    "              (x >> 16 & 255) * ($U)(($T)(y << 8) >> 24) + (x >> 24) * ($U)(b >> 24));\n#endif\n}";
/* One instruction $I for a vector of this width, or for each half of it, on lanes of type $S. Otherwise
 * $E. */
static const char pairs_vec[] =
    "INL $T $F($T a, $T b) {\n#if $N == 16 && defined(__AVX512BW__)\n"
    "  __asm__(\"v$I %1, %0, %0\" : \"+v\"(a) : \"v\"(b));\n"
    "#elif $N % 8 == 0 && defined(__AVX2__)\n"
    "  typedef $S part __attribute__((vector_size(32)));\n  PARTS for (int k = 0; k < $N; k += 8) {\n    "
    "part x, y;\n"
    "    __builtin_memcpy(&x, (const char *)&a + 4 * k, 32);\n    __builtin_memcpy(&y, (const char *)&b + 4 "
    "* k, 32);\n"
    "    x = (part)__builtin_ia32_$I256(x, y);\n    __builtin_memcpy((char *)&a + 4 * k, &x, 32);\n  "
    "}\n"
    "#else\n$E#endif\n  return a;\n}";
/* $E for words: unsigned lanes and signed lanes. */
static const char of_words[] =
    "  %s x = (%s)a << 16, y = (%s)b << 16;\n"
    "  a = (%s)((%s)((%s)x >> 16) * (%s)((%s)y >> 16) + (%s)(a >> 16) * (%s)(b >> 16));\n";
/* Lanes of a table of 16 bytes, by an instruction that the processor has for this many indices, or for 16. */
#define FIRST_16 ", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15"
static const char lookup_vec[] =
    "INL $T $F($S t, $U i) {\n  $T r;\n#if $N == 64 && defined(__AVX512BW__)\n"
    "  r = __builtin_shufflevector(t, t" FIRST_16 FIRST_16 FIRST_16 FIRST_16 ");\n"
    "  __asm__(\"vpshufb %1, %0, %0\" : \"+v\"(r) : \"v\"(i));\n"
    "#elif $N % 16 == 0 && (defined(__SSSE3__) || defined(__aarch64__))\n"
    "  typedef char bytes __attribute__((vector_size(16)));\n  PARTS for (int k = 0; k < $N; k += 16) {\n    "
    "bytes "
    "j;\n"
    "    __builtin_memcpy(&j, (const char *)&i + k, 16);\n#ifdef __SSSE3__\n"
    "    j = (bytes)__builtin_ia32_pshufb128((bytes)t, j);\n#else\n"
    "    __asm__(\"tbl %0.16b, {%1.16b}, %0.16b\" : \"+w\"(j) : \"w\"(t));\n#endif\n"
    "    __builtin_memcpy((char *)&r + k, &j, 16);\n  }\n"
    "#else\n  for (int k = 0; k < $N; k++)\n    r[k] = t[i[k]];\n#endif\n  return r;\n}";
/* Divides in floats that represent every operand exactly: the quotient of two integers differs from the next
 * integer by more than rounding. Divisors 0 and -1 are treated separately. $S: float vector, $U: unsigned
 * lanes, $M: mask of lanes where b is -1, $Q: rounds down, $R: the result. */
static const char divide_vec[] = "INL $T $F($T a, $T b) {\n  $T zero = ($T)(b == 0), minus = $M, d = (b & "
                                 "~(zero | minus)) | ((zero | minus) & 1);\n"
                                 "  $T q = __builtin_convertvector(__builtin_convertvector(a, $S) / "
                                 "__builtin_convertvector(d, $S), $T) & ~zero;\n"
                                 "  q = (q & ~minus) | (minus & ($T)(0 - ($U)a));\n  $T r = ($T)(($U)a - "
                                 "($U)q * ($U)b);\n$Q  return $R;\n}";
/* $S: float vector, $I: mask of its width, $T: result, $J: mask of the result's width */
static const char f2i_vec[] =
    "INL $T $F($S x) {\n  $I lo = ($I)(x <= $A), hi = ($I)(x >= $B), ok = ~lo & ~hi & ($I)(x == x);\n"
    "  $T r = __builtin_convertvector(($S)(($I)x & ok), $T);\n  $J l = $C, h = $D;\n"
    "  return ($T)((($J)r & ~l & ~h) | (l & ($J)$Y) | (h & ($J)$Z));\n}";
/* f32 to 32 bits or fewer. The value is first limited to $A .. $B. $D: the greatest float that fits; $E: adds
 * what $D lacks. */
static const char f2i_near_vec[] =
    "INL $I $F($S x) {\n  $I in = ($I)(x > $A);\n"
    "  $S y = ($S)((in & ($I)x) | (~in & ($I)(($S){0} + $A)));\n  $I hi = ($I)(y >= $B);\n"
    "  y = ($S)((hi & ($I)(($S){0} + $D)) | (~hi & ($I)y));\n"
    "  return (__builtin_convertvector(y, $I)$E) & ($I)(x == x);\n}";
static const char bf2f_vec[] = "INL $T $F($S a) { return ($T)(__builtin_convertvector(a, $U) << 16); }";
static const char f2bf_vec[] = "INL $T $F($S x) {\n  $U b = ($U)x, q = (b >> 16) | 64, m = ($U)(x != x), r = "
                               "(b + 0x7fff + ((b >> 16) & 1)) >> 16;\n"
                               "  return __builtin_convertvector((q & m) | (r & ~m), $T);\n}";
/* f16 in both directions: by instructions if the processor has them for this many lanes, or for eight at a
 * time; otherwise by bits, as for fp8 below. A loop over the lanes would take a hundred times as long. The empty
 * asm hides from Clang what was converted: it turns a comparison of the result into one of f16, which it then
 * does lane by lane (a sigmoid took five times as long). */
#define BY_EIGHT                                                                                             \
  "#elif $N % 8 == 0 && defined(__F16C__)\n"                                                                 \
  "  typedef i16 half8 __attribute__((vector_size(16)));\n  typedef f32 float8 "                             \
  "__attribute__((vector_size(32)));\n"                                                                      \
  "  $T r;\n  PARTS for (int i = 0; i < $N; i += 8) {\n    half8 h;\n    float8 f;\n"
static const char h2f_vec[] =
    "INL $T $F($S a) {\n#if $N == 16 && defined(__AVX512F__)\n  $T r = "
    "($T)__builtin_ia32_vcvtph2ps512_mask(($I)a, ($T){0}, -1, 4);\n"
    "#ifdef __clang__\n  __asm__(\"\" : \"+v\"(r));\n#endif\n  return r;\n" BY_EIGHT
    "    __builtin_memcpy(&h, (const char *)&a + 2 * i, 16);\n    f = __builtin_ia32_vcvtph2ps256(h);\n"
    "#ifdef __clang__\n    __asm__(\"\" : \"+x\"(f));\n#endif\n"
    "    __builtin_memcpy((char *)&r + 4 * i, &f, 32);\n  }\n  return r;\n"
    "#else\n  $U b = __builtin_convertvector(a, $U), m = b & 0x7fff, low = ($U)(m < 0x400);\n"
    "  $U top = ($U)(m >= 0x7c00) & (112u << 23), n = (m << 13) + (112u << 23) + top;\n"
    "  $U d = ($U)(__builtin_convertvector(($J)m, $T) * 0x1p-24f);\n"
    "  return ($T)((b & 0x8000) << 16 | (d & low) | (n & ~low));\n#endif\n}";
static const char f2h_vec[] =
    "INL $T $F($S a) {\n#if $N == 16 && defined(__AVX512F__)\n  return "
    "($T)__builtin_ia32_vcvtps2ph512_mask(a, 0, ($I){0}, -1);\n" BY_EIGHT
    "    __builtin_memcpy(&f, (const char *)&a + 4 * i, 32);\n    h = __builtin_ia32_vcvtps2ph256(f, 0);\n"
    "    __builtin_memcpy((char *)&r + 2 * i, &h, 16);\n  }\n  return r;\n"
    "#else\n  $U b = ($U)a, m = b & 0x7fffffff, low = ($U)(m < 0x38800000), past = ($U)(m >= 0x477ff000);\n"
    "  $U n = (m - (112u << 23) + 0xfff + (m >> 13 & 1)) >> 13, nan = ($U)(m > 0x7f800000) & 0x200;\n"
    "  $U d = ($U)(($S)(m & low) * 0x1p24f + 0x1p23f) - 0x4b000000;\n"
    "  $U r = (d & low) | (n & ~low & ~past) | ((0x7c00 | nan) & past);\n"
    "  return __builtin_convertvector((b >> 16 & 0x8000) | r, $T);\n#endif\n}";
/* Clang for arm64 converts vectors of 64-bit integers to double first, and so rounds twice. It does not do so
 * lane by lane, if it cannot see that the lanes are neighbours. */
static const char wide_to_f32_vec[] =
    "INL $T $F($S a) {\n#if defined(__aarch64__) && defined(__clang__)\n  $T r;\n"
    "  for (int i = 0; i < $N; i++) { $G x = a[i]; __asm__(\"\" : \"+r\"(x)); r[i] = (f32)x; }\n  return r;\n"
    "#else\n  return __builtin_convertvector(a, $T);\n#endif\n}";
/* $J: i32 lanes. Numbers that are not normal are converted as integers, because * is slow on denormal
 * operands. */
static const char e4m3_to_f32_vec[] =
    "INL $T $F($S a) {\n  $U b = __builtin_convertvector(a, $U), m = b & 127, low = ($U)(m < 8), nan = "
    "($U)(m == 127) & 0x7fc00000;\n"
    "  $U d = ($U)(__builtin_convertvector(($J)m, $T) * 0x1p-9f), n = (m << 20) + (120u << 23);\n"
    "  return ($T)((b & 128) << 24 | nan | (d & low) | (n & ~low));\n}";
static const char e5m2_to_f32_vec[] =
    "INL $T $F($S a) {\n  $U b = __builtin_convertvector(a, $U), m = b & 127, low = ($U)(m < 4), top = "
    "($U)(m >= 124) & (112u << 23);\n"
    "  $U d = ($U)(__builtin_convertvector(($J)m, $T) * 0x1p-16f), n = (m << 21) + (112u << 23) + top;\n"
    "  return ($T)((b & 128) << 24 | (d & low) | (n & ~low));\n}";
/* $A: bits dropped, $B: half a unit of the last place minus 1, $C: bias, $D: 1 / least unit, $E: least
 * normal, $G: test for too large, $H: result then */
static const char f32_to_fp8_vec[] =
    "INL $T $F($S x) {\n  $U b = ($U)x, a = b & 0x7fffffff, low = ($U)(a < $E), past = ($U)(a $G);\n"
    "  $U n = (a - ($Cu << 23) + $B + (a >> $A & 1)) >> $A, d = ($U)(($S)(a & low) * $D + 0x1p23f) - "
    "0x4b000000;\n"
    "  $U r = (d & low) | (n & ~low & ~past) | ($H & past);\n  return __builtin_convertvector((b >> 24 & "
    "128) | r, $T);\n}";
/* clang fuses under the pragma, and from version 17 on has a square root of any width. For other compilers,
 * $P, $Q and $R compute parts of the widths that the machine has. */
static const char fma_vec[] =
    "INL $T $F($T a, $T b, $T c) {\n#if defined(__clang__)\n  _Pragma(\"STDC FP_CONTRACT ON\") return a * b "
    "+ c;\n"
    "$P$Q$R"
    "#else\n  $T r; for (int i = 0; i < $N; i++) r[i] = fma_$G(a[i], b[i], c[i]); return r;\n#endif\n}";
static const char sqrt_vec[] = "INL $T $F($T a) {\n#if defined(SQRT_OF_ALL)\n  return SQRT_OF_ALL(a);\n"
                               "$P$Q$R"
                               "#else\n  $T r; for (int i = 0; i < $N; i++) r[i] = "
                               "sqrt_$G(a[i]); return r;\n#endif\n}";

/* NaN if either operand is NaN. Compilers turn the first selection into one instruction. max_fixed replaces
 * the result by a where a is NaN, in one more instruction (0x11: takes a for both kinds of NaN), while
 * the second selection takes a comparison and a move. */
static const char max_vec[] =
    "INL $T $F($T a, $T b) {\n  $I m = ($I)(a > b);\n  $T r = ($T)((m & ($I)a) | (~m & ($I)b));\n"
    "$Q  m = ($I)(a != a);\n  return ($T)((m & ($I)a) | (~m & ($I)r));\n$E}";
static const char max_fixed[] =
    "#if defined(__AVX512F__)\n"
    "  return __builtin_ia32_fixupimmps512_mask(r, a, (i32x16){0} + 0x11, 0, -1, 4);\n#else\n";

/* Whether any lane of a mask is set. clang uses the processor's test for this. */
static const char any_vec[] =
    "INL int $F($T m) {\n#if defined(__clang__)\n  return __builtin_reduce_or(m) != 0;\n"
    "#else\n  $E r = 0; for (int i = 0; i < $N; i++) r |= m[i]; return r != 0;\n#endif\n}";

const char *cs_any(C *c, const UOp *cond) {
  if (cond->lanes == 1) return cs_ref(c, cond);
  int nbytes = cs_mask_size(c, cond);
  DType of = cs_int_of(nbytes);
  const char *type = cs_type(c, of, cond->lanes), *name = cs_text(c, "any_%s", type);
  const char *m[26] = {M('T') type, M('E') cs_scalar[of]};
  cs_helper(c, name, any_vec, m, cond->lanes);
  return cs_text(c, "%s(%s)", name, cs_mask(c, cond, nbytes));
}

/* m ? a : b, lane by lane. Masks are all ones or all zeros, so bits are selected. */
static void vec_select(C *c, const UOp *u, const char *m, const char *a, const char *b, int nbytes) {
  const char *i = cs_type(c, cs_int_of(nbytes), u->lanes);
  cs_put(c, "(%s)((%s & (%s)%s) | (~%s & (%s)%s))", cs_type(c, (DType)u->dtype, u->lanes), m, i, a, m, i, b);
}

/* f32 to i32 or narrower. Values for which C leaves the conversion undefined are brought into range first. */
static void vec_f32_to_int(C *c, DType to, int n, const char *a) {
  static const char *const low[] = {"-128.0f", "0.0f", "-32768.0f", "0.0f", "-2147483648.0f"};
  static const char *const high[] = {"127.0f", "255.0f", "32767.0f", "65535.0f", "2147483648.0f"};
  int i = to - DT_I8;
  const char *name = cs_text(c, "%sx%d_f32", dtype_name(to), n);
  const char *m[26] = {M('S') cs_type(c, DT_F32, n),
                       M('I') cs_type(c, DT_I32, n),
                       M('A') low[i],
                       M('B') high[i],
                       M('D') to == DT_I32 ? "2147483520.0f" : high[i],
                       M('E') to == DT_I32 ? " | (hi & 127)" : ""};
  cs_helper(c, name, f2i_near_vec, m, n);
  cs_put(c, to == DT_I32 ? "%s(%s)" : "__builtin_convertvector(%s(%s), %s)", name, a, cs_type(c, to, n));
}

/* Saturates; NaN gives 0. Values for which C leaves the conversion undefined are masked out before it and set
 * after it. */
static void vec_float_to_int(C *c, DType to, DType from, int n, const char *a) {
  if (from == DT_F32 && to <= DT_I32) {
    vec_f32_to_int(c, to, n, a);
    return;
  }
  static const char *const lo32[] = {
      "-128.0f", "0.0f", "-32768.0f", "0.0f", "-2147483648.0f", "0.0f", "-9223372036854775808.0f", "0.0f"};
  static const char *const hi32[] = {"128.0f",
                                     "256.0f",
                                     "32768.0f",
                                     "65536.0f",
                                     "2147483648.0f",
                                     "4294967296.0f",
                                     "9223372036854775808.0f",
                                     "18446744073709551616.0f"};
  DType wide = dtype_size(to) < 4 ? DT_I32 : to; /* narrow results are saturated in i32, then converted */
  const char *name = cs_text(c, "%sx%d_%s", dtype_name(to), n, dtype_name(from));
  const char *s = cs_type(c, from, n);
  const char *i = cs_type(c, cs_int_of((int)dtype_size(from)), n);
  const char *w = cs_type(c, wide, n);
  const char *j = cs_type(c, cs_int_of((int)dtype_size(wide)), n), *t = cs_type(c, to, n);
  bool same = dtype_size(wide) == dtype_size(from);
  const char *lo = same ? "lo" : cs_text(c, "__builtin_convertvector(lo, %s)", j);
  const char *hi = same ? "hi" : cs_text(c, "__builtin_convertvector(hi, %s)", j);
  Scalar min = {.i = dtype_min(to)}, max = {.i = to == DT_U64 ? -1 : dtype_max(to)};
  const char *m[26] = {M('T') w,
                       M('S') s,
                       M('I') i,
                       M('J') j,
                       M('A') lo32[to - DT_I8],
                       M('B') hi32[to - DT_I8],
                       M('C') lo,
                       M('D') hi,
                       M('Y') cs_splat(c, wide, n, cs_const(c, wide, min)),
                       M('Z') cs_splat(c, wide, n, cs_const(c, wide, max))};
  cs_helper(c, name, f2i_vec, m, n);
  if (wide == to)
    cs_put(c, "%s(%s)", name, a);
  else
    cs_put(c, "__builtin_convertvector(%s(%s), %s)", name, a, t);
}

/* Lanes of a narrow float as f32, and back. cs_type is called in separate statements, because the order of
 * the calls is the order of the types in the text. */
static const char *vec_widen(C *c, DType from, int n, const char *a) {
  static const char *const tpl[] = {e4m3_to_f32_vec, e5m2_to_f32_vec, h2f_vec, bf2f_vec};
  const char *m[26] = {NULL};
  m['T' - 'A'] = cs_type(c, DT_F32, n);
  m['S' - 'A'] = cs_type(c, from, n);
  m['U' - 'A'] = cs_type(c, DT_U32, n);
  m['J' - 'A'] = cs_type(c, DT_I32, n);
  if (dtype_size(from) == 2) m['I' - 'A'] = cs_type(c, DT_I16, n);
  const char *name = cs_text(c, "f32x%d_%s", n, dtype_name(from));
  cs_helper(c, name, tpl[from - DT_FP8E4M3], m, n);
  return cs_text(c, "%s(%s)", name, a);
}

static void vec_narrow(C *c, DType to, int n, const char *a) {
  static const char *const tpl[] = {f32_to_fp8_vec, f32_to_fp8_vec, f2h_vec, f2bf_vec};
  bool e4 = to == DT_FP8E4M3;
  const char *m[26] = {M('A') e4 ? "20" : "21",
                       M('B') e4 ? "0x7ffff" : "0xfffff",
                       M('C') e4 ? "120" : "112",
                       M('D') e4 ? "0x1p9f" : "0x1p16f",
                       M('E') e4 ? "0x3c800000" : "0x38800000",
                       M('G') e4 ? "> 0x43e80000" : ">= 0x47700000"};
  m['T' - 'A'] = cs_type(c, to, n);
  m['S' - 'A'] = cs_type(c, DT_F32, n);
  m['U' - 'A'] = cs_type(c, DT_U32, n);
  if (dtype_size(to) == 2) m['I' - 'A'] = cs_type(c, DT_I16, n);
  /* infinity, or NaN for a NaN */
  m['H' - 'A'] = e4 ? "127" : cs_text(c, "(124 | ((%s)(a > 0x7f800000) & 2))", m['U' - 'A']);
  const char *name = cs_text(c, "%sx%d_f32", dtype_name(to), n);
  cs_helper(c, name, tpl[to - DT_FP8E4M3], m, n);
  cs_put(c, "%s(%s)", name, a);
}

/* Narrow floats are converted by way of f32. A bool is a mask here, as wide as its source or its result. */
static void vec_cast(C *c, const UOp *u) {
  const UOp *x = u->src[0];
  DType to = (DType)u->dtype, from = (DType)x->dtype;
  int n = u->lanes;
  const char *t = cs_type(c, to, n), *a = cs_ref(c, x);
  if (to == from) {
    if (to == DT_BOOL) c->mask_bytes[cs_place(c, u)] = (uint8_t)cs_mask_size(c, x);
    cs_put(c, "%s", a);
    return;
  }
  if (from == DT_BOOL) { /* 0 / -1 becomes 0 / 1 in the integer as wide as the result */
    if (dtype_is_narrow_float(to)) {
      cs_put(c, "(%s)(%s & %d)", t, cs_mask(c, x, (int)dtype_size(to)), narrow_bits(to, 1));
      return;
    }
    const char *m = cs_mask(c, x, (int)dtype_size(to));
    if (dtype_is_float(to))
      cs_put(c, "__builtin_convertvector(%s & 1, %s)", m, t);
    else
      cs_put(c, "(%s)(%s & 1)", t, m);
    return;
  }
  if (to == DT_BOOL) {
    int w = (int)dtype_size(from);
    c->mask_bytes[cs_place(c, u)] = (uint8_t)w;
    if (dtype_is_narrow_float(from))
      cs_put(c, "(%s)((%s & %d) != 0)", cs_type(c, cs_int_of(w), n), a, w == 1 ? 0x7f : 0x7fff);
    else
      cs_put(c, "(%s)(%s != 0)", cs_type(c, cs_int_of(w), n), a);
    return;
  }
  if (dtype_is_narrow_float(from)) {
    a = vec_widen(c, from, n, a);
    from = DT_F32;
    if (to == from) {
      cs_put(c, "%s", a);
      return;
    }
  }
  if (dtype_is_narrow_float(to) && (from == DT_F32 || dtype_size(from) <= 2))
    vec_narrow(c, to, n,
               from == DT_F32 ? a : cs_text(c, "__builtin_convertvector(%s, %s)", a, cs_type(c, DT_F32, n)));
  else if (dtype_is_narrow_float(to)) { /* rare pairs are converted lane by lane with the scalar conversion */
    cs_put(c, "(%s){", t);
    int keep = c->tmp_at; /* otherwise 64 lanes would wrap around the ring of texts and overwrite `a` */
    for (int i = 0; i < n; i++, c->tmp_at = keep) {
      if (i) str_put(&c->body, ", ");
      cs_cast(c, to, from, cs_text(c, "%s[%d]", a, i));
    }
    str_put(&c->body, "}");
  } else if (dtype_is_float(from) && !dtype_is_float(to))
    vec_float_to_int(c, to, from, n, a);
  else if (to == DT_F32 && !dtype_is_float(from) && dtype_size(from) == 8) {
    const char *name = cs_text(c, "%s_%s", t, cs_scalar[from]);
    const char *m[26] = {M('T') t, M('S') cs_type(c, from, n), M('G') cs_scalar[from]};
    cs_helper(c, name, wide_to_f32_vec, m, n);
    cs_put(c, "%s(%s)", name, a);
  } else
    cs_put(c, "__builtin_convertvector(%s, %s)", a, t);
}

/* An op without a vector form: a loop over the lanes around the scalar helper. */
static void vec_per_lane(C *c, const UOp *u, const char *fn, const char *t, const char *a, const char *b) {
  const char *name = cs_text(c, "%s_%s", fn, t);
  const char *g = cs_text(c, "%s_%s", fn, cs_stored((DType)u->src[0]->dtype));
  const char *m[26] = {M('T') t, M('S') t, M('G') g};
  cs_helper(c, name, b ? per_lane2 : per_lane1, m, u->lanes);
  if (b)
    cs_put(c, "%s(%s, %s)", name, a, b);
  else
    cs_put(c, "%s(%s)", name, a);
}

/* The op on numbers that is being written, and the texts for its forms. */
typedef struct VecOp {
  const UOp *u;
  DType dtype; /* of the operands */
  int nbytes;  /* of an element of an operand */
  bool is_float;
  bool wraps; /* unsigned, so C wraps it itself */
  /* of the operands; bits: for wrapping integers, the unsigned type of the same width */
  const char *type, *bits;
  const char *a, *b; /* b NULL: there is only one operand */
} VecOp;

/* A vector of bools is a mask of 0 / -1 here, unlike the bits of any other dtype. */
static void vec_bitcast(C *c, const UOp *u) {
  const UOp *x = u->src[0];
  DType from = (DType)x->dtype, to = (DType)u->dtype;
  if (to == from)
    cs_put(c, "%s", cs_ref(c, x));
  else if (from == DT_BOOL)
    cs_put(c, "(%s)(%s & 1)", cs_type(c, to, u->lanes), cs_mask(c, x, 1));
  else if (to == DT_BOOL)
    cs_put(c, "(%s)(%s != 0)", cs_type(c, DT_I8, u->lanes), cs_ref(c, x));
  else
    cs_put(c, "(%s)%s", cs_type(c, to, u->lanes), cs_ref(c, x));
  if (to == DT_BOOL && from == DT_BOOL) c->mask_bytes[cs_place(c, u)] = (uint8_t)cs_mask_size(c, x);
}

/* An op on bools: masks have the width of the first operand. */
static void vec_of_masks(C *c, const UOp *u) {
  int width = cs_mask_size(c, u->src[u->op == OPS_WHERE]);
  const char *s[3] = {0};
  for (int i = 0; i < u->nsrc; i++)
    s[i] = cs_mask(c, u->src[i], width);
  c->mask_bytes[cs_place(c, u)] = (uint8_t)width;
  if (u->op == OPS_WHERE)
    cs_put(c, "(%s & %s) | (~%s & %s)", s[0], s[1], s[0], s[2]);
  else
    cs_bool_alu(c, u, s[0], s[1], s[2], "~");
}

/* The form that computes all lanes in parts of `bits` bits, if the machine has an instruction for them. "":
 * the lanes are no multiple of such parts. */
static const char *in_parts(C *c, const VecOp *v, int bits) {
  static const char *const names[] = {"FMA", "SQRT", "TRUNC"}, *const more[] = {", PART(b), PART(c)", "", ""};
  int all = v->nbytes * v->u->lanes * 8, i = v->u->op == OPS_SQRT ? 1 : v->u->op == OPS_TRUNC ? 2 : 0;
  const char *has = bits == 512   ? "__AVX512F__"
                    : i == 0      ? "__FMA__"
                    : bits == 256 ? "__AVX__"
                    : i == 1      ? "__SSE2__"
                                  : "__SSE4_1__";
  if (all % bits) return "";
  return cs_text(c, "#elif defined(%s)\n  IN_PARTS(%s, %d, %d, %s%d(%s, PART(a)%s))\n", has,
                 cs_scalar[v->dtype], bits / 8, all / bits, names[i], bits, v->dtype == DT_F64 ? "d" : "s",
                 more[i]);
}

/* MULACC, SQRT and TRUNC of floats, each with one rounding. */
static void vec_by_parts(C *c, const VecOp *v) {
  static const char *const sign[] = {"(-2147483647 - 1)", "(-9223372036854775807l - 1)"};
  Ops op = (Ops)v->u->op;
  bool f64 = v->dtype == DT_F64;
  const char *name = cs_text(c, "%s_%s", op_c(op), v->type);
  const char *m[26] = {M('T') v->type,
                       M('G') cs_scalar[v->dtype],
                       M('I') cs_type(c, cs_int_of(v->nbytes), v->u->lanes),
                       M('M') sign[f64],
                       M('L') f64 ? "0x1p52" : "0x1p23f",
                       M('P') in_parts(c, v, 512),
                       M('Q') in_parts(c, v, 256),
                       M('R') in_parts(c, v, 128)};
  cs_helper(c, name, op == OPS_SQRT ? sqrt_vec : op == OPS_TRUNC ? trunc_vec : fma_vec, m, v->u->lanes);
  if (op == OPS_MULACC)
    cs_put(c, "%s(%s, %s, %s)", name, v->a, v->b, cs_ref(c, v->u->src[2]));
  else
    cs_put(c, "%s(%s)", name, v->a);
}

static void vec_max(C *c, const VecOp *v) {
  const char *name = cs_text(c, "max_%s", v->type);
  bool wide = v->dtype == DT_F32 && v->u->lanes == 16;
  const char *m[26] = {M('T') v->type, M('I') cs_type(c, cs_int_of(v->nbytes), v->u->lanes),
                       M('Q') wide ? max_fixed : "", M('E') wide ? "#endif\n" : ""};
  cs_helper(c, name, max_vec, m, v->u->lanes);
  cs_put(c, "%s(%s, %s)", name, v->a, v->b);
}

/* Uses C's operator if it rounds as the op does and the divisor is a constant, which a compiler multiplies
 * by, or has 64 bits, which no float represents exactly. Other divisions of 64 bits are done lane by lane,
 * the remaining ones in floats. */
static void vec_divide(C *c, const VecOp *v) {
  Ops op = (Ops)v->u->op;
  const UOp *by = v->u->src[1];
  bool floors = op == OPS_FLOORDIV || op == OPS_FLOORMOD, quotient = op == OPS_CDIV || op == OPS_FLOORDIV;
  bool as_c = by->vmin > 0 && (!floors || v->u->src[0]->vmin >= 0);
  if (as_c && (by->vmin == by->vmax || v->nbytes == 8))
    cs_put(c, "%s %s %s", v->a, quotient ? "/" : "%", v->b);
  else if (v->nbytes == 8)
    vec_per_lane(c, v->u, op_c(op), v->type, v->a, v->b);
  else {
    const char *name = cs_text(c, "%s_%s", op_c(op), v->type);
    const char *down = quotient ? "  q += f;\n" : "  r += b & f;\n";
    const char *m[26] = {
        M('T') v->type,
        M('U') v->bits,
        M('S') cs_type(c, v->nbytes == 4 ? DT_F64 : DT_F32, v->u->lanes),
        M('M') v->wraps ? cs_text(c, "(%s){0}", v->type) : cs_text(c, "(%s)(b == -1)", v->type),
        M('Q') floors && !v->wraps ? cs_text(c, "  %s f = (%s)(r != 0) & (%s)((r ^ b) < 0) & ~zero;\n%s",
                                             v->type, v->type, v->type, down)
                                   : "",
        M('R') quotient ? "q" : "r"};
    cs_helper(c, name, divide_vec, m, v->u->lanes);
    cs_put(c, "%s(%s, %s)", name, v->a, v->b);
  }
}

/* Uses C's operator if every lane shifts by less than the width. */
static void vec_shift(C *c, const VecOp *v) {
  bool left = v->u->op == OPS_SHL;
  const UOp *by = v->u->src[1];
  if (by->op == OPS_VECTORIZE && by->nsrc == 1) by = by->src[0];
  bool is_signed = !v->wraps, defined = by->vmin >= 0 && by->vmax < v->nbytes * 8;
  if (!defined) {
    const char *name = cs_text(c, "%s_%s", op_c((Ops)v->u->op), v->type);
    const char *m[26] = {M('T') v->type, M('U') v->bits, M('M') cs_text(c, "%d", v->nbytes * 8 - 1)};
    cs_helper(c, name, left ? shl_vec : is_signed ? sar_vec : shr_vec, m, v->u->lanes);
    cs_put(c, "%s(%s, %s)", name, v->a, v->b);
  } else if (left && is_signed)
    cs_put(c, "(%s)((%s)%s << (%s)%s)", v->type, v->bits, v->a, v->bits, v->b);
  else
    cs_put(c, left ? "%s << %s" : "%s >> %s", v->a, v->b);
}

/* Writes a DOT4 that is added to `to`. The DOT4 also has a statement of its own, even if nothing uses it. */
static void vec_dot4(C *c, const VecOp *v, const UOp *dot, const char *to) {
  const char *name = cs_text(c, "dot4_%s", v->type), *m[26] = {M('T') v->type, M('U') v->bits};
  cs_helper(c, name, dot4_vec, m, v->u->lanes);
  cs_put(c, "%s(%s, %s, %s)", name, to, cs_ref(c, dot->src[0]), cs_ref(c, dot->src[1]));
}

static void vec_pairs(C *c, const VecOp *v) {
  const char *op = op_c((Ops)v->u->op), *name = cs_text(c, "%s_%s", op, v->type), *t = v->type, *u = v->bits;
  bool words = v->u->op == OPS_DOT2;
  const char *m[26] = {M('T') t, M('S') words ? "i16" : "char", M('I') words ? "pmaddwd" : "pmaddubsw"};
  m['E' - 'A'] = words ? cs_text(c, of_words, u, u, u, t, u, t, u, t, u, u)
                       : "  for (u64 i = 0; i < sizeof a / 4; i++)\n    a[i] = dot2x2_i32(a[i], b[i]);\n";
  cs_helper(c, name, pairs_vec, m, v->u->lanes);
  cs_put(c, "%s(%s, %s)", name, v->a, v->b);
}

const char *cs_lookup(C *c, DType d, int lanes) {
  const char *type = cs_type(c, d, lanes), *name = cs_text(c, "lookup_%s", type);
  const char *m[26] = {M('T') type, M('S') cs_type(c, d, 16), M('U') cs_type(c, DT_U8, lanes)};
  cs_helper(c, name, lookup_vec, m, lanes);
  return name;
}

/* Adds as lanes of half the width, which wrap. */
static void vec_add2(C *c, const VecOp *v) {
  const char *type = cs_type(c, DT_U16, 2 * v->u->lanes);
  cs_put(c, "(%s)((%s)%s + (%s)%s)", v->type, type, v->a, type, v->b);
}

static void vec_lookup4(C *c, const VecOp *v) {
  int n = 4 * v->u->lanes;
  const char *name = cs_lookup(c, DT_U8, n);
  cs_put(c, "(%s)%s((u8x16)", v->type, name);
  cs_put_table(c, v->u);
  cs_put(c, ", (u8x%d)(%s & 0x0f0f0f0f))", n, v->a);
}

/* An op for which C has an operator. Signed integers wrap because they are computed in the unsigned type of
 * their width. */
static void vec_infix(C *c, const VecOp *v) {
  Ops op = (Ops)v->u->op;
  const char *sign = op_c(op);
  if (!cs_infix(op)) {
    cs_fail(c, v->u, "not an op of this target");
    return;
  }
  if (v->is_float || v->wraps || op == OPS_AND || op == OPS_OR || op == OPS_XOR)
    cs_put(c, "%s %s %s", v->a, sign, v->b);
  else
    cs_put(c, "(%s)((%s)%s %s (%s)%s)", v->type, v->bits, v->a, sign, v->bits, v->b);
}

static void vec_number(C *c, const VecOp *v) {
  const UOp *u = v->u;
  if (v->is_float && (u->op == OPS_MULACC || u->op == OPS_SQRT || u->op == OPS_TRUNC)) {
    vec_by_parts(c, v);
    return;
  }
  switch (u->op) {
  case OPS_NEG:
    if (v->is_float)
      cs_put(c, "-%s", v->a);
    else
      cs_put(c, "(%s)-(%s)%s", v->type, v->bits, v->a);
    return;
  case OPS_RECIPROCAL:
    if (v->is_float)
      cs_put(c, v->dtype == DT_F64 ? "1.0 / %s" : "1.0f / %s", v->a);
    else
      cs_fail(c, u, "not an op of this target");
    return;
  case OPS_TRUNC: cs_put(c, "%s", v->a); return;
  case OPS_MAX:
    if (v->is_float)
      vec_max(c, v);
    else
      cs_put(c, "(%s)MAXI(%s, %s, %s)", v->type, cs_type(c, cs_int_of(v->nbytes), u->lanes), v->a, v->b);
    return;
  case OPS_MULACC:
    cs_put(c, "(%s)((%s)%s * (%s)%s + (%s)%s)", v->type, v->bits, v->a, v->bits, v->b, v->bits,
           cs_ref(c, u->src[2]));
    return;
  case OPS_CDIV:
  case OPS_CMOD:
  case OPS_FLOORDIV:
  case OPS_FLOORMOD: vec_divide(c, v); return;
  case OPS_SHL:
  case OPS_SHR: vec_shift(c, v); return;
  case OPS_LOOKUP4: vec_lookup4(c, v); return;
  case OPS_DOT2:
  case OPS_DOT2X2: vec_pairs(c, v); return;
  case OPS_ADD2: vec_add2(c, v); return;
  case OPS_DOT4: vec_dot4(c, v, u, cs_text(c, "(%s){0}", v->type)); return;
  case OPS_ADD:
    if (u->src[0]->op == OPS_DOT4 || u->src[1]->op == OPS_DOT4) {
      bool first = u->src[0]->op == OPS_DOT4;
      vec_dot4(c, v, u->src[!first], first ? v->b : v->a);
    } else
      vec_infix(c, v);
    return;
  default: vec_infix(c, v);
  }
}

/* The dtype of a selection is that of its values, not of its condition. A type is defined in the text where
 * it is first requested, so the calls of cs_type are in the order of the text. */
void cs_vector_alu(C *c, const UOp *u) {
  Ops op = (Ops)u->op;
  bool where = op == OPS_WHERE;
  VecOp v = {.u = u, .dtype = (DType)u->src[where]->dtype};
  v.nbytes = (int)dtype_size(v.dtype);
  for (int i = 0; i < u->nsrc; i++)
    if (u->src[i]->lanes != u->lanes) {
      cs_fail(c, u, "operands with other lanes");
      return;
    }
  if (op == OPS_CAST) {
    vec_cast(c, u);
    return;
  }
  if (u->dtype == DT_BOOL) c->mask_bytes[cs_place(c, u)] = (uint8_t)v.nbytes;
  if (op == OPS_BITCAST) {
    vec_bitcast(c, u);
    return;
  }
  if (v.dtype == DT_BOOL) {
    vec_of_masks(c, u);
    return;
  }

  v.type = cs_type(c, v.dtype, u->lanes);
  v.a = cs_ref(c, u->src[where]);
  v.b = u->nsrc > 1 ? cs_ref(c, u->src[where ? 2 : 1]) : NULL;
  if (where) {
    vec_select(c, u, cs_mask(c, u->src[0], v.nbytes), v.a, v.b, v.nbytes);
    return;
  }
  if (op_flags(op) & OPF_CMP) {
    cs_put(c, "(%s)(%s %s %s)", cs_type(c, cs_int_of(v.nbytes), u->lanes), v.a, op_c(op), v.b);
    return;
  }
  if (dtype_is_narrow_float(v.dtype)) {
    cs_fail(c, u, "no arithmetic in this dtype");
    return;
  }
  v.is_float = dtype_is_float(v.dtype);
  v.wraps = !v.is_float && cs_unsigned_of(v.dtype) == v.dtype;
  v.bits = v.is_float || v.wraps ? v.type : cs_type(c, cs_unsigned_of(v.dtype), u->lanes);
  vec_number(c, &v);
}
