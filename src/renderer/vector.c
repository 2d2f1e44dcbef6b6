/* vector.c: an elementwise op on a vector of GNU C -> an expression. What C has no operator for is a helper
 * function, made from a template for its element and lanes. A comparison gives a mask of 0 / -1 as wide as
 * what was compared; a selection is bit logic on masks. */
#include "renderer/cstyle_private.h"

static const char per_lane1[] =
    "INL $T $F($S a) { $T r; for (int i = 0; i < $N; i++) r[i] = $G(a[i]); return r; }";
static const char per_lane2[] =
    "INL $T $F($T a, $T b) { $T r; for (int i = 0; i < $N; i++) r[i] = $G(a[i], b[i]); return r; }";
static const char trunc_vec[] = /* $I: as wide as the float; $L: from here on every value is whole */
    "INL $T $F($T x) {\n  $I b = ($I)x, s = b & $M, m = ($I)(($T)(b & ~$M) < $L), y = b & m;\n"
    "  $I t = ($I)__builtin_convertvector(__builtin_convertvector(($T)y, $I), $T);\n  return ($T)((t & m) | "
    "(b & ~m) | s);\n}";
/* $S float vector, $I mask of its width, $T result, $J mask of the result's width */
static const char f2i_vec[] =
    "INL $T $F($S x) {\n  $I lo = ($I)(x <= $A), hi = ($I)(x >= $B), ok = ~lo & ~hi & ($I)(x == x);\n"
    "  $T r = __builtin_convertvector(($S)(($I)x & ok), $T);\n  $J l = $C, h = $D;\n"
    "  return ($T)((($J)r & ~l & ~h) | (l & ($J)$Y) | (h & ($J)$Z));\n}";
static const char bf2f_vec[] = "INL $T $F($S a) { return ($T)(__builtin_convertvector(a, $U) << 16); }";
static const char f2bf_vec[] = "INL $T $F($S x) {\n  $U b = ($U)x, q = (b >> 16) | 64, m = ($U)(x != x), r = "
                               "(b + 0x7fff + ((b >> 16) & 1)) >> 16;\n"
                               "  return __builtin_convertvector((q & m) | (r & ~m), $T);\n}";
static const char h2f_vec[] =
    "INL $T $F($S a) {\n#if $N == 16 && defined(__AVX512F__)\n  return "
    "($T)__builtin_ia32_vcvtph2ps512_mask(($I)a, ($T){0}, -1, 4);\n"
    "#elif $N == 8 && defined(__F16C__)\n  return ($T)__builtin_ia32_vcvtph2ps256(($I)a);\n"
    "#else\n  $T r; for (int i = 0; i < $N; i++) r[i] = f32_f16(a[i]); return r;\n#endif\n}";
static const char f2h_vec[] =
    "INL $T $F($S a) {\n#if $N == 16 && defined(__AVX512F__)\n  return "
    "($T)__builtin_ia32_vcvtps2ph512_mask(a, 0, ($I){0}, -1);\n"
    "#elif $N == 8 && defined(__F16C__)\n  return ($T)__builtin_ia32_vcvtps2ph256(a, 0);\n"
    "#else\n  $T r; for (int i = 0; i < $N; i++) r[i] = f16_f32(a[i]); return r;\n#endif\n}";
/* $J: i32 lanes. What is no normal number is converted as an integer: a denormal operand of * is slow */
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
/* $A: bits dropped, $B: half a place less 1, $C: bias, $D: 1 / least place, $E: least normal, $G: past all,
 * $H: then */
static const char f32_to_fp8_vec[] =
    "INL $T $F($S x) {\n  $U b = ($U)x, a = b & 0x7fffffff, low = ($U)(a < $E), past = ($U)(a $G);\n"
    "  $U n = (a - ($Cu << 23) + $B + (a >> $A & 1)) >> $A, d = ($U)(($S)(a & low) * $D + 0x1p23f) - "
    "0x4b000000;\n"
    "  $U r = (d & low) | (n & ~low & ~past) | ($H & past);\n  return __builtin_convertvector((b >> 24 & "
    "128) | r, $T);\n}";
/* clang fuses what the pragma marks and knows a square root of any width; gcc has neither, so its builtins
 * where it has some: $Q. */
static const char fma_vec[] =
    "INL $T $F($T a, $T b, $T c) {\n#if defined(__clang__)\n  _Pragma(\"STDC FP_CONTRACT ON\") return a * b "
    "+ c;\n"
    "$Q"
    "#else\n  $T r; for (int i = 0; i < $N; i++) r[i] = fma_$G(a[i], b[i], c[i]); return r;\n#endif\n}";
static const char sqrt_vec[] = "INL $T $F($T a) {\n$Q#else\n  $T r; for (int i = 0; i < $N; i++) r[i] = "
                               "sqrt_$G(a[i]); return r;\n#endif\n}";

/* m ? a : b, lane by lane: masks are all ones or all zeros, so the bits are chosen. */
static void vec_select(C *c, const UOp *u, const char *m, const char *a, const char *b, int nbytes) {
  const char *i = cs_type(c, cs_int_of(nbytes), u->lanes);
  cs_put(c, "(%s)((%s & (%s)%s) | (~%s & (%s)%s))", cs_type(c, (DType)u->dtype, u->lanes), m, i, a, m, i, b);
}

/* Saturates, NaN to 0: what C leaves undefined is taken out before the conversion and put in again after it.
 */
static void vec_float_to_int(C *c, DType to, DType from, int n, const char *a) {
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
  DType wide = dtype_size(to) < 4 ? DT_I32 : to; /* narrow results: saturate in i32, then drop bits */
  const char *name = cs_text(c, "%sx%d_%s", dtype_name(to), n, dtype_name(from));
  const char *s = cs_type(c, from, n), *i = cs_type(c, cs_int_of((int)dtype_size(from)), n),
             *w = cs_type(c, wide, n);
  const char *j = cs_type(c, cs_int_of((int)dtype_size(wide)), n), *t = cs_type(c, to, n);
  bool same = dtype_size(wide) == dtype_size(from);
  const char *lo = same ? "lo" : cs_text(c, "__builtin_convertvector(lo, %s)", j),
             *hi = same ? "hi" : cs_text(c, "__builtin_convertvector(hi, %s)", j);
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

/* A narrow float's lanes as f32, and back. Types are asked for one by one: their order in the text is that of
 * the calls. */
static const char *vec_widen(C *c, DType from, int n, const char *a) {
  static const char *const tpl[] = {e4m3_to_f32_vec, e5m2_to_f32_vec, h2f_vec, bf2f_vec};
  const char *m[26] = {NULL};
  m['T' - 'A'] = cs_type(c, DT_F32, n), m['S' - 'A'] = cs_type(c, from, n),
          m['U' - 'A'] = cs_type(c, DT_U32, n);
  if (dtype_size(from) == 1)
    m['J' - 'A'] = cs_type(c, DT_I32, n);
  else
    m['I' - 'A'] = cs_type(c, DT_I16, n);
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
  m['T' - 'A'] = cs_type(c, to, n), m['S' - 'A'] = cs_type(c, DT_F32, n),
          m['U' - 'A'] = cs_type(c, DT_U32, n);
  if (dtype_size(to) == 2) m['I' - 'A'] = cs_type(c, DT_I16, n);
  /* infinity, or NaN */
  m['H' - 'A'] = e4 ? "127" : cs_text(c, "(124 | ((%s)(a > 0x7f800000) & 2))", m['U' - 'A']);
  const char *name = cs_text(c, "%sx%d_f32", dtype_name(to), n);
  cs_helper(c, name, tpl[to - DT_FP8E4M3], m, n);
  cs_put(c, "%s(%s)", name, a);
}

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
  if (from == DT_BOOL) { /* 0 / -1 -> 0 / 1 in the integer as wide as the result */
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
    a = vec_widen(c, from, n, a), from = DT_F32;
    if (to == from) {
      cs_put(c, "%s", a);
      return;
    }
  }
  if (dtype_is_narrow_float(to) && (from == DT_F32 || dtype_size(from) <= 2))
    vec_narrow(c, to, n,
               from == DT_F32 ? a : cs_text(c, "__builtin_convertvector(%s, %s)", a, cs_type(c, DT_F32, n)));
  else if (dtype_is_narrow_float(to)) { /* rare pairs: lane by lane through the scalar conversion */
    cs_put(c, "(%s){", t);
    int keep = c->tmp_at; /* 64 lanes would go around the ring and overwrite `a` */
    for (int i = 0; i < n; i++, c->tmp_at = keep) {
      if (i) str_put(&c->body, ", ");
      cs_cast(c, to, from, cs_text(c, "%s[%d]", a, i));
    }
    str_put(&c->body, "}");
  } else if (dtype_is_float(from) && !dtype_is_float(to))
    vec_float_to_int(c, to, from, n, a);
  else
    cs_put(c, "__builtin_convertvector(%s, %s)", a, t);
}

/* What has no vector form: a loop over the lanes around the scalar helper. */
static void vec_per_lane(C *c, const UOp *u, const char *fn, const char *t, const char *a, const char *b) {
  const char *name = cs_text(c, "%s_%s", fn, t),
             *g = cs_text(c, "%s_%s", fn, cs_scalar[cs_storage((DType)u->src[0]->dtype)]);
  const char *m[26] = {M('T') t, M('S') t, M('G') g};
  cs_helper(c, name, b ? per_lane2 : per_lane1, m, u->lanes);
  if (b)
    cs_put(c, "%s(%s, %s)", name, a, b);
  else
    cs_put(c, "%s(%s)", name, a);
}

void cs_vector_alu(C *c, const UOp *u) {
  Ops op = (Ops)u->op;
  int n = u->lanes;
  DType d = (DType)u->src[op == OPS_WHERE]->dtype, to = (DType)u->dtype;
  int size = (int)dtype_size(d);
  for (int i = 0; i < u->nsrc; i++)
    if (u->src[i]->lanes != n) {
      cs_fail(c, u, "operands with other lanes");
      return;
    }
  if (op == OPS_CAST) {
    vec_cast(c, u);
    return;
  }
  if (to == DT_BOOL) c->mask_bytes[cs_place(c, u)] = (uint8_t)size;
  if (op == OPS_BITCAST) {
    if (to == d)
      cs_put(c, "%s", cs_ref(c, u->src[0]));
    else if (d == DT_BOOL)
      cs_put(c, "(%s)(%s & 1)", cs_type(c, to, n), cs_mask(c, u->src[0], 1));
    else if (to == DT_BOOL)
      cs_put(c, "(%s)(%s != 0)", cs_type(c, DT_I8, n), cs_ref(c, u->src[0]));
    else
      cs_put(c, "(%s)%s", cs_type(c, to, n), cs_ref(c, u->src[0]));
    if (to == DT_BOOL && d == DT_BOOL) c->mask_bytes[cs_place(c, u)] = (uint8_t)cs_mask_size(c, u->src[0]);
    return;
  }
  if (d == DT_BOOL) { /* masks take the width of the first operand */
    int w = cs_mask_size(c, u->src[op == OPS_WHERE]);
    const char *s[3] = {0};
    for (int i = 0; i < u->nsrc; i++)
      s[i] = cs_mask(c, u->src[i], w);
    c->mask_bytes[cs_place(c, u)] = (uint8_t)w;
    if (op == OPS_WHERE)
      cs_put(c, "(%s & %s) | (~%s & %s)", s[0], s[1], s[0], s[2]);
    else
      cs_bool_alu(c, u, s[0], s[1], s[2], "~");
    return;
  }
  const char *t = cs_type(c, d, n), *a = cs_ref(c, u->src[op == OPS_WHERE]), *sym = cs_infix(op);
  const char *b = u->nsrc > 1 ? cs_ref(c, u->src[op == OPS_WHERE ? 2 : 1]) : NULL;
  if (op == OPS_WHERE) {
    vec_select(c, u, cs_mask(c, u->src[0], size), a, b, size);
    return;
  }
  if (op_flags(op) & OPF_CMP) {
    cs_put(c, "(%s)(%s %s %s)", cs_type(c, cs_int_of(size), n), a, sym, b);
    return;
  }
  if (dtype_is_narrow_float(d)) {
    cs_fail(c, u, "no arithmetic in this dtype");
    return;
  }
  bool f = dtype_is_float(d);
  bool plain = !f && cs_unsigned_of(d) == d; /* wraps as it stands */
  const char *ut = f || plain ? t : cs_type(c, cs_unsigned_of(d), n);
  const UOp *y = u->nsrc > 1 ? u->src[1] : u;
  bool sure = y->vmin > 0, pos = sure && u->src[0]->vmin >= 0;
  if (f && (op == OPS_MULACC || op == OPS_SQRT)) {
    const char *name = cs_text(c, "%s_%s", cs_math_name(op), t);
    int bits = size * n * 8;
    const char *k = d == DT_F64 ? "d" : "s", *has = bits == 512        ? "__AVX512F__"
                                                    : op == OPS_MULACC ? "__FMA__"
                                                    : bits == 256      ? "__AVX__"
                                                                       : "__SSE2__";
    bool builtin = bits == 512 || bits == 256 || bits == 128;
    if (op == OPS_SQRT && !builtin) {
      vec_per_lane(c, u, "sqrt", t, a, NULL);
      return;
    }
    const char *call = op == OPS_SQRT ? cs_text(c, "#if defined(%s)\n  return SQRT%d(%s, a);\n", has, bits, k)
                       : builtin
                           ? cs_text(c, "#elif defined(%s)\n  return FMA%d(%s, a, b, c);\n", has, bits, k)
                           : "";
    const char *m[26] = {M('T') t, M('G') cs_scalar[d], M('Q') call};
    cs_helper(c, name, op == OPS_SQRT ? sqrt_vec : fma_vec, m, n);
    if (op == OPS_SQRT)
      cs_put(c, "%s(%s)", name, a);
    else
      cs_put(c, "%s(%s, %s, %s)", name, a, b, cs_ref(c, u->src[2]));
    return;
  }
  switch (op) {
  case OPS_NEG:
    if (f)
      cs_put(c, "-%s", a);
    else
      cs_put(c, "(%s)-(%s)%s", t, ut, a);
    return;
  case OPS_RECIPROCAL:
    if (f) {
      cs_put(c, d == DT_F64 ? "1.0 / %s" : "1.0f / %s", a);
      return;
    }
    break;
  case OPS_TRUNC: {
    if (!f) {
      cs_put(c, "%s", a);
      return;
    }
    const char *name = cs_text(c, "trunc_%s", t);
    const char *m[26] = {M('T') t, M('I') cs_type(c, cs_int_of(size), n),
                         M('M') d == DT_F64 ? "(-9223372036854775807l - 1)" : "(-2147483647 - 1)",
                         M('L') d == DT_F64 ? "0x1p52" : "0x1p23f"};
    cs_helper(c, name, trunc_vec, m, n);
    cs_put(c, "%s(%s)", name, a);
    return;
  }
  case OPS_MAX: {
    /* the mask was written as a statement before this one */
    const char *m = cs_text(c, "m%d", c->number[cs_place(c, u)]);
    vec_select(c, u, m, a, b, size);
    return;
  }
  case OPS_MULACC:
    cs_put(c, "(%s)((%s)%s * (%s)%s + (%s)%s)", t, ut, a, ut, b, ut, cs_ref(c, u->src[2]));
    return;
  case OPS_CDIV:
  case OPS_CMOD:
    if (sure)
      cs_put(c, "%s %s %s", a, op == OPS_CDIV ? "/" : "%", b);
    else
      vec_per_lane(c, u, op == OPS_CDIV ? "cdiv" : "cmod", t, a, b);
    return;
  case OPS_FLOORDIV:
  case OPS_FLOORMOD:
    if (pos)
      cs_put(c, "%s %s %s", a, op == OPS_FLOORDIV ? "/" : "%", b);
    else
      vec_per_lane(c, u, op == OPS_FLOORDIV ? "floordiv" : "floormod", t, a, b);
    return;
  case OPS_SHL:
  case OPS_SHR: {
    const UOp *s = y->op == OPS_VECTORIZE && y->nsrc == 1 ? y->src[0] : y;
    bool in = s->op == OPS_CONST && s->arg.v.i >= 0 && s->arg.v.i < size * 8;
    if (!in)
      vec_per_lane(c, u, op == OPS_SHL ? "shl" : "shr", t, a, b);
    else if (op == OPS_SHL && plain)
      cs_put(c, "%s << %s", a, b);
    else if (op == OPS_SHL)
      cs_put(c, "(%s)((%s)%s << (%s)%s)", t, ut, a, ut, b);
    else
      cs_put(c, "%s >> %s", a, b);
    return;
  }
  default: break;
  }
  if (!sym) {
    cs_fail(c, u, "not an op of this target");
    return;
  }
  if (f || plain || op == OPS_AND || op == OPS_OR || op == OPS_XOR)
    cs_put(c, "%s %s %s", a, sym, b);
  else
    cs_put(c, "(%s)((%s)%s %s (%s)%s)", t, ut, a, sym, ut, b);
}
