/* scalar.c: writes an elementwise op on one lane as an expression of C, CUDA C++ or MSL; also the prelude of
 * helpers that such expressions call. The text never overflows a signed integer: an operation that may wrap
 * is computed in the unsigned type of the same width. */
#include "renderer/cstyle_private.h"

/* Whether the bounds prove that a plain signed operation cannot overflow. The compiler may then simplify
 * addresses. */
static bool no_wrap(const UOp *u) {
  DType d = (DType)u->dtype;
  if ((d != DT_I32 && d != DT_I64) || u->lanes != 1) return false;
  const UOp *a = u->src[0], *b = u->nsrc > 1 ? u->src[1] : a;
  int64_t lo = dtype_min(d), hi = dtype_max(d), r;
  for (int i = 0; i < 4; i++) {
    int64_t x = i & 1 ? a->vmax : a->vmin, y = i & 2 ? b->vmax : b->vmin;
    bool over = u->op == OPS_ADD   ? __builtin_add_overflow(x, y, &r)
                : u->op == OPS_SUB ? __builtin_sub_overflow(x, y, &r)
                                   : __builtin_mul_overflow(x, y, &r);
    if (over || r < lo || r > hi) return false;
  }
  return true;
}

bool cs_infix(Ops op) { return *op_c(op) && !(*op_c(op) >= 'a' && *op_c(op) <= 'z'); }

void cs_bool_alu(C *c, const UOp *u, const char *a, const char *b, const char *e, const char *no) {
  switch (u->op) {
  case OPS_NEG:
  case OPS_TRUNC: cs_put(c, "%s", a); break;
  case OPS_ADD:
  case OPS_OR:
  case OPS_MAX: cs_put(c, "%s | %s", a, b); break;
  case OPS_SUB:
  case OPS_XOR:
  case OPS_CMPNE: cs_put(c, "%s ^ %s", a, b); break;
  case OPS_CMPEQ: cs_put(c, "%s(%s ^ %s)", no, a, b); break;
  case OPS_MUL:
  case OPS_AND:
  case OPS_CDIV:
  case OPS_FLOORDIV: cs_put(c, "%s & %s", a, b); break;
  case OPS_CMPLT: cs_put(c, "%s%s & %s", no, a, b); break;
  case OPS_CMOD:
  case OPS_FLOORMOD:
  case OPS_SHL:
  case OPS_SHR: cs_put(c, "%s & %s%s", a, no, b); break;
  case OPS_MULACC: cs_put(c, "(%s & %s) | %s", a, b, e); break;
  default: cs_fail(c, u, "not an op on bool");
  }
}

/* Narrow floats are stored as integers and converted by way of f32. A value that would be rounded to f32
 * first is rounded to odd instead, so that the final result is rounded only once. */
void cs_cast(C *c, DType to, DType from, const char *a) {
  if (to == from) {
    cs_put(c, "%s", a);
    return;
  }
  if (dtype_is_narrow_float(from)) {
    a = cs_text(c, "f32_%s(%s)", dtype_name(from), a);
    from = DT_F32;
  }
  if (to == from) {
    cs_put(c, "%s", a);
    return;
  }
  if (dtype_is_narrow_float(to)) {
    if (from == DT_F32)
      cs_put(c, "%s_f32(%s)", dtype_name(to), a);
    else if (dtype_size(from) <= 2)
      cs_put(c, "%s_f32((f32)%s)", dtype_name(to), a);
    else
      cs_put(c, "%s_f32(odd_%s(%s))", dtype_name(to), dtype_name(from), a);
  } else if (to == DT_BOOL)
    cs_put(c, "%s != 0", a);
  else if (dtype_is_float(from) && !dtype_is_float(to))
    cs_put(c, "%s_%s(%s)", dtype_name(to), dtype_name(from), a);
  else
    cs_put(c, "(%s)%s", cs_stored(to), a);
}

static void not_an_op(C *c, const UOp *u) { cs_fail(c, u, "not an op of this target"); }

static void scalar_bitcast(C *c, DType to, DType from, const char *a) {
  if (dtype_is_float(from) == dtype_is_float(to) || dtype_size(from) <= 2)
    cs_put(c, "(%s)%s", cs_stored(to), a);
  else if (dtype_is_float(from))
    cs_put(c, "(%s)%s_bits(%s)", cs_scalar[to], from == DT_F64 ? "u64" : "u32", a);
  else
    cs_put(c, "%s_bits((%s)%s)", to == DT_F64 ? "f64" : "f32", to == DT_F64 ? "u64" : "u32", a);
}

static void scalar_float(C *c, const UOp *u, const char *a, const char *b, const char *e) {
  Ops op = (Ops)u->op;
  const char *type = cs_stored((DType)u->src[0]->dtype);
  switch (op) {
  case OPS_NEG: cs_put(c, "-%s", a); return;
  case OPS_RECIPROCAL: cs_put(c, "1 / %s", a); return;
  case OPS_MAX: /* if b is NaN the comparison is false and b is taken */
    cs_put(c, "%s > %s || %s != %s ? %s : %s", a, b, a, a, a, b);
    return;
  case OPS_MULACC: cs_put(c, "fma_%s(%s, %s, %s)", type, a, b, e); return;
  case OPS_SQRT:
  case OPS_TRUNC: cs_put(c, "%s_%s(%s)", op_c(op), type, a); return;
  default: break;
  }
  if (cs_infix(op))
    cs_put(c, "%s %s %s", a, op_c(op), b);
  else if (*op_c(op) && !c->lang->gnu_vec) /* the prelude of C has no such functions */
    cs_put(c, u->nsrc > 1 ? "%s_%s(%s, %s)" : "%s_%s(%s)", op_c(op), type, a, b);
  else
    not_an_op(c, u);
}

/* Uses C's operator if it is defined and rounds as the op does, otherwise the prelude's function. */
static void scalar_divide(C *c, const UOp *u, const char *type, const char *a, const char *b) {
  Ops op = (Ops)u->op;
  bool floors = op == OPS_FLOORDIV || op == OPS_FLOORMOD;
  if (u->src[1]->vmin > 0 && (!floors || u->src[0]->vmin >= 0))
    cs_put(c, "(%s)(%s %s %s)", type, a, op == OPS_CDIV || op == OPS_FLOORDIV ? "/" : "%", b);
  else
    cs_put(c, "%s_%s(%s, %s)", op_c(op), type, a, b);
}

static void scalar_shift(C *c, const UOp *u, const char *type, const char *bits, const char *a,
                         const char *b) {
  const UOp *by = u->src[1];
  bool defined = by->op == OPS_CONST && by->arg.v.i >= 0 &&
                 by->arg.v.i < (int64_t)dtype_size((DType)u->src[0]->dtype) * 8;
  if (defined && u->op == OPS_SHL)
    cs_put(c, "(%s)((%s)%s << %s)", type, bits, a, b);
  else if (defined)
    cs_put(c, "(%s)(%s >> %s)", type, a, b);
  else
    cs_put(c, "%s_%s(%s, %s)", op_c((Ops)u->op), type, a, b);
}

void cs_put_table(C *c, const UOp *u) {
  for (int i = 0; i < 16; i++)
    cs_put(c, i ? ", %d" : "{%d", (int)u->arg.ints->v[i]);
  cs_put(c, "}");
}

/* bits: the unsigned type for operations that may wrap. */
static void scalar_int(C *c, const UOp *u, const char *a, const char *b, const char *e) {
  Ops op = (Ops)u->op;
  DType d = (DType)u->src[0]->dtype;
  const char *type = cs_stored(d), *bits = cs_scalar[dtype_size(d) == 8 ? DT_U64 : DT_U32];
  bool wraps = d == DT_U32 || d == DT_U64; /* C wraps these itself; narrower types are promoted to int */
  switch (op) {
  case OPS_NEG: cs_put(c, "(%s)(0 - (%s)%s)", type, bits, a); return;
  case OPS_TRUNC: cs_put(c, "%s", a); return;
  case OPS_ADD:
  case OPS_SUB:
  case OPS_MUL:
    if (no_wrap(u) || wraps)
      cs_put(c, "%s %s %s", a, op_c(op), b);
    else
      cs_put(c, "(%s)((%s)%s %s (%s)%s)", type, bits, a, op_c(op), bits, b);
    return;
  case OPS_MULACC: cs_put(c, "(%s)((%s)%s * (%s)%s + (%s)%s)", type, bits, a, bits, b, bits, e); return;
  case OPS_CDIV:
  case OPS_CMOD:
  case OPS_FLOORDIV:
  case OPS_FLOORMOD: scalar_divide(c, u, type, a, b); return;
  case OPS_MAX: cs_put(c, "%s > %s ? %s : %s", a, b, a, b); return;
  case OPS_SHL:
  case OPS_SHR: scalar_shift(c, u, type, bits, a, b); return;
  case OPS_DOT4:
  case OPS_DOT2:
  case OPS_DOT2X2:
  case OPS_ADD2: cs_put(c, "%s_i32(%s, %s)", op_c((Ops)u->op), a, b); return;
  case OPS_LOOKUP4:
    cs_put(c, "lookup4_i32(%s, (const u8[])", a);
    cs_put_table(c, u);
    cs_put(c, ")");
    return;
  default: break;
  }
  if (!cs_infix(op))
    not_an_op(c, u);
  else if ((op_flags(op) & OPF_CMP) || dtype_size(d) >= 4)
    cs_put(c, "%s %s %s", a, op_c(op), b);
  else
    cs_put(c, "(%s)(%s %s %s)", type, a, op_c(op), b);
}

/* Writes a comparison instead of the general form with a negated operand, which compilers report as a likely
 * mistake. */
static void strict_bool(C *c, const UOp *u, const char *a, const char *b, const char *e) {
  switch (u->op) {
  case OPS_CMPEQ: cs_put(c, "%s == %s", a, b); break;
  case OPS_CMPLT: cs_put(c, "%s < %s", a, b); break;
  case OPS_CMOD:
  case OPS_FLOORMOD:
  case OPS_SHL:
  case OPS_SHR: cs_put(c, "%s > %s", a, b); break;
  default: cs_bool_alu(c, u, a, b, e, "!");
  }
}

/* Whether u is the least number of an integer dtype. Compilers warn about comparing with it. */
static bool is_least(const UOp *u, DType d) {
  return u->op == OPS_CONST && !dtype_is_float(d) && d != DT_BOOL && u->arg.v.i == dtype_min(d);
}

/* The dtype is that of the operands; for a selection, that of the values, not of the condition. */
void cs_scalar_alu(C *c, const UOp *u, const char *a, const char *b, const char *e) {
  DType d = (DType)u->src[u->op == OPS_WHERE]->dtype;
  if (u->op == OPS_CAST)
    cs_cast(c, (DType)u->dtype, d, a);
  else if (u->op == OPS_WHERE)
    cs_put(c, "%s ? %s : %s", a, b, e);
  else if (u->op == OPS_BITCAST)
    scalar_bitcast(c, (DType)u->dtype, d, a);
  else if (c->lang->strict && (op_flags((Ops)u->op) & OPF_CMP) && u->src[0] == u->src[1] &&
           !dtype_is_float(d))
    cs_put(c, "((void)%s, %d)", a, u->op == OPS_CMPEQ); /* compilers would warn about such a comparison */
  else if (c->lang->strict && u->op == OPS_MAX && is_least(u->src[0], d))
    cs_put(c, "%s", b);
  else if (c->lang->strict && u->op == OPS_MAX && is_least(u->src[1], d))
    cs_put(c, "%s", a);
  else if (d == DT_BOOL && c->lang->strict)
    strict_bool(c, u, a, b, e);
  else if (d == DT_BOOL)
    cs_bool_alu(c, u, a, b, e, "!");
  else if (dtype_is_narrow_float(d))
    cs_fail(c, u, "no arithmetic in this dtype");
  else if (dtype_is_float(d))
    scalar_float(c, u, a, b, e);
  else
    scalar_int(c, u, a, b, e);
}

const char cstyle_prelude[] =
    "#define DIVS(T, U, B, SIGNED) \\\n"
    "INL T cdiv_##T(T a, T b) { return (T)(b == 0 ? (T)0 : b == (T)-1 && SIGNED ? (T)((U)0 - (U)a) : (T)(a / "
    "b)); } \\\n"
    "INL T cmod_##T(T a, T b) { return (T)(b == 0 ? a : b == (T)-1 && SIGNED ? (T)0 : (T)(a % b)); } \\\n"
    "INL T floordiv_##T(T a, T b) { T q = cdiv_##T(a, b), r = cmod_##T(a, b); return b != 0 && r != 0 && "
    "SIGNED && ((U)(r ^ b) >> (B - 1) & 1) ? (T)(q - 1) : "
    "q; } \\\n"
    "INL T floormod_##T(T a, T b) { T r = cmod_##T(a, b); return r != 0 && SIGNED && ((U)(r ^ b) >> (B - 1) "
    "& 1) ? (T)(r + b) : r; } \\\n"
    "INL T shl_##T(T a, T b) { return (T)((u64)b >= B ? (T)0 : (T)((U)a << b)); } \\\n"
    "INL T shr_##T(T a, T b) { return (T)((u64)b < B ? (T)(a >> b) : SIGNED ? (T)(a >> (B - 1)) : (T)0); }\n"
    "DIVS(i8, u32, 8, 1)\nDIVS(u8, u32, 8, 0)\nDIVS(i16, u32, 16, 1)\nDIVS(u16, u32, 16, 0)\nDIVS(i32, u32, "
    "32, 1)\nDIVS(u32, u32, 32, 0)\n"
    "DIVS(i64, u64, 64, 1)\nDIVS(u64, u64, 64, 0)\n"
    "#define SAT(T, F, LO, HI, MIN, MAX) INL T T##_##F(F x) { return x != x ? (T)0 : x <= LO ? (T)(MIN) : x "
    ">= HI ? (T)(MAX) : (T)x; }\n"
    "#define SATS(F) SAT(i8, F, -128.0f, 128.0f, -128, 127) SAT(u8, F, 0.0f, 256.0f, 0, 255) SAT(i16, F, "
    "-32768.0f, 32768.0f, -32768, "
    "32767) \\\n"
    "SAT(u16, F, 0.0f, 65536.0f, 0, 65535) SAT(i32, F, -2147483648.0f, 2147483648.0f, -2147483647 - 1, "
    "2147483647) \\\n"
    "SAT(u32, F, 0.0f, 4294967296.0f, 0, 0xffffffffu) SAT(i64, F, -9223372036854775808.0f, "
    "9223372036854775808.0f, -0x7fffffffffffffff - 1, 0x7fffffffffffffff) \\\n"
    "SAT(u64, F, 0.0f, 18446744073709551616.0f, 0, ~(u64)0)\nSATS(f32)\n"
    "INL f32 trunc_f32(f32 x) { u32 b = u32_bits(x), s = b & 0x80000000u; return f32_bits(b & 0x7fffffffu) < "
    "8388608.0f ? "
    "f32_bits(u32_bits((f32)(i32)x) | s) : x; }\n"
    "INL f32 f32_bf16(u16 h) { return f32_bits((u32)h << 16); }\n"
    "INL u16 bf16_f32(f32 x) { u32 b = u32_bits(x); return (u16)(x != x ? b >> 16 | 64 : (b + 0x7fffu + (b "
    ">> 16 & 1)) >> 16); }\n"
    "#ifndef NATIVE_F16\n#ifdef __F16C__\n"
    "INL f32 f32_f16(u16 h) { i16 v __attribute__((vector_size(16))) = {(i16)h}; return "
    "__builtin_ia32_vcvtph2ps(v)[0]; }\n"
    "INL u16 f16_f32(f32 x) { f32 v __attribute__((vector_size(16))) = {x}; return "
    "(u16)__builtin_ia32_vcvtps2ph(v, 0)[0]; }\n#else\n"
    "INL f32 f32_f16(u16 h) {\n  u32 s = (u32)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;\n"
    "  return e == 31 ? f32_bits(s | 0x7f800000u | m << 13) : e ? f32_bits(s | (e + 112) << 23 | m << 13) : "
    "f32_bits(s | "
    "u32_bits((f32)(i32)m * 5.9604644775390625e-8f));\n}\n"
    "INL u16 f16_f32(f32 x) {\n  u32 b = u32_bits(x), s = b >> 16 & 0x8000, a = b & 0x7fffffffu, r;\n"
    "  if (a > 0x7f800000u) r = 0x7e00;\n  else if (a >= 0x477ff000u) r = 0x7c00;\n"
    "  else if (a >= 0x38800000u) r = (a - (112u << 23) + 0xfff + (a >> 13 & 1)) >> 13;\n"
    "  else r = (u32)(i32)((f32_bits(a) * 16777216.0f + 8388608.0f) - 8388608.0f);\n  return (u16)(s | "
    "r);\n}\n"
    "#endif\n#endif\n"
    "INL f32 f32_fp8e4m3(u8 h) {\n  u32 s = (u32)(h & 128) << 24, m = h & 127;\n"
    "  return f32_bits(s | (m == 127 ? 0x7fc00000u : m < 8 ? u32_bits((f32)(i32)m * 0.001953125f) : (m << "
    "20) + "
    "(120u << 23)));\n}\n"
    "INL u8 fp8e4m3_f32(f32 x) {\n  u32 b = u32_bits(x), s = b >> 24 & 128, a = b & 0x7fffffffu, r;\n"
    "  if (a > 0x43e80000u) r = 127;\n"
    "  else if (a >= 0x3c800000u) r = (a - (120u << 23) + 0x7ffff + (a >> 20 & 1)) >> 20;\n"
    "  else r = (u32)(i32)((f32_bits(a) * 512.0f + 8388608.0f) - 8388608.0f);\n  return (u8)(s | r);\n}\n"
    "INL f32 f32_fp8e5m2(u8 h) { return f32_f16((u16)(h << 8)); }\n"
    "INL u8 fp8e5m2_f32(f32 x) {\n  u32 b = u32_bits(x), s = b >> 24 & 128, a = b & 0x7fffffffu, r;\n"
    "  if (a > 0x7f800000u) r = 126;\n  else if (a >= 0x47700000u) r = 124;\n"
    "  else if (a >= 0x38800000u) r = (a - (112u << 23) + 0xfffff + (a >> 21 & 1)) >> 21;\n"
    "  else r = (u32)(i32)((f32_bits(a) * 65536.0f + 8388608.0f) - 8388608.0f);\n  return (u8)(s | r);\n}\n"
    /* Rounds to f32, to odd. A result that is then rounded to at most 11 bits is rounded only once in effect.
     * For integers, 13 leading bits and one for all lower bits suffice. */
    "INL f32 odd_u64(u64 x) { f32 s = 1.0f; for (; x >> 24; s *= 4096.0f) x = x >> 12 | ((x & 4095) != 0); "
    "return (f32)(i32)x * s; }\n"
    "INL f32 odd_i64(i64 x) { return x < 0 ? -odd_u64((u64)0 - (u64)x) : odd_u64((u64)x); }\n"
    "INL f32 odd_u32(u32 x) { return odd_u64(x); }\nINL f32 odd_i32(i32 x) { return odd_i64(x); }\n"
    "#ifndef NO_F64\nSATS(f64)\n"
    "INL f64 trunc_f64(f64 x) { u64 b = u64_bits(x), s = b & (u64)1 << 63; return f64_bits(b & ~((u64)1 << "
    "63)) < 4503599627370496.0 ? "
    "f64_bits(u64_bits((f64)(i64)x) | s) : x; }\n"
    "INL f32 odd_f64(f64 x) { f32 r = (f32)x; u32 b = u32_bits(r); return (f64)r == x || x != x || (b & 1) ? "
    "r : f32_bits(((f64)r > x) == "
    "(x > 0) ? b - 1 : b + 1); }\n"
    "#endif\n";
