/* cstyle.c: linear UOps -> one kernel in C, CUDA C++ or MSL.
 * One statement per UOp, in order, named by its place in the list (v12, acc3, p0, r1), so text depends on the program alone. Vector types
 * and helpers are written in front of the kernel when first needed, each under an #ifndef: kernels are concatenated freely.
 * A vector of bools in C is a mask of 0 / -1 integers as wide as the values that were compared; `mask_bytes` remembers how wide. */
#include "renderer/cstyle.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NTMP = 64, TMP_LEN = 192 };
typedef struct C {
  const CLang *lang;
  const Linear *lin;
  TgError *err;
  Str head, body;
  Map pos, helpers;                    /* UOp -> place in the list; hash of a helper's name -> 1 */
  uint8_t *mask_bytes;                 /* per place: element size of a bool vector's mask */
  int depth, tmp_at, nvar;
  bool failed;
  char tmp[NTMP][TMP_LEN];             /* operand texts live in this ring while one statement is written */
} C;

static bool fail(C *c, const UOp *u, const char *why) {
  if (!c->failed) error_set(c->err, TG_ERR_INTERNAL, "render %s: kernel %s: %s %s x%d: %s", c->lang->name, c->lin->name,
      op_name((Ops)u->op),
                            dtype_name((DType)u->dtype), u->lanes, why);
  c->failed = true;
  return false;
}

/* ---- text. fmt knows %s and %d only: a tenth of the cost of printf */
static void vfmt(Str *s, const char *f, va_list ap) {
  for (const char *p; (p = strchr(f, '%')); f = p + 2) {
    str_putn(s, f, (size_t)(p - f));
    if (p[1] == 's') str_put(s, va_arg(ap, const char *));
    else str_int(s, va_arg(ap, int));
  }
  str_put(s, f);
}
static void fmt(Str *s, const char *f, ...) {
  va_list ap;
  va_start(ap, f);
  vfmt(s, f, ap);
  va_end(ap);
}
static void put(C *c, const char *f, ...) {
  va_list ap;
  va_start(ap, f);
  vfmt(&c->body, f, ap);
  va_end(ap);
}
static void line(C *c) { for (int i = 0; i < c->depth; i++) str_putn(&c->body, "  ", 2); }
static char *tmp(C *c) { return c->tmp[c->tmp_at++ % NTMP]; }
TG_PRINTF(2, 3) static const char *text(C *c, const char *f, ...) {
  char *t = tmp(c);
  va_list ap;
  va_start(ap, f);
  int n = vsnprintf(t, TMP_LEN, f, ap);
  va_end(ap);
  if (n >= TMP_LEN) c->failed = true, error_set(c->err, TG_ERR_INTERNAL, "render %s: kernel %s: operand text too long", c->lang->name,
      c->lin->name);
  return t;
}

/* ---- types */
static const char *const scalar_names[DT_COUNT] = {"void", "index", "u8", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "u16",
    "u16", "f32", "f64"};
static DType storage(DType d) { return d == DT_BOOL ? DT_U8 : d == DT_F16 || d == DT_BF16 ? DT_U16 : d; }
static DType int_of(int nbytes) { return nbytes == 1 ? DT_I8 : nbytes == 2 ? DT_I16 : nbytes == 4 ? DT_I32 : DT_I64; }
static DType unsigned_of(DType d) { size_t n = dtype_size(d); return n == 1 ? DT_U8 : n == 2 ? DT_U16 : n == 4 ? DT_U32 : DT_U64; }
static bool first_use(C *c, const char *name) {
  uint64_t k = hash_bytes(1, name, strlen(name)), v;
  if (map_get(&c->helpers, k, &v)) return false;
  if (!map_put(&c->helpers, k, 1)) c->failed = true;
  return true;
}
static const char *type_lanes(C *c, DType d, int lanes) {
  d = storage(d);
  const char *s = scalar_names[d];
  if (lanes == 1) return s;
  const char *name = text(c, "%sx%d", s, lanes);
  if (c->lang->gnu_vec && first_use(c, name)) {
    int n = (int)dtype_size(d) * lanes;
    fmt(&c->head, "#ifndef T_%s\n#define T_%s\ntypedef %s %s __attribute__((vector_size(%d)));\n", name, name, s, name, n);
    fmt(&c->head, "typedef %s %su __attribute__((vector_size(%d), aligned(%d), may_alias));\n#endif\n", s, name, n, (int)dtype_size(d));
  }
  return name;
}
/* A helper function for `lanes`: $T $U $I $J stand for the names in m, $N for the lanes, $F for its own name. */
static void helper(C *c, const char *name, const char *tpl, const char *const m[26], int lanes) {
  if (!first_use(c, name)) return;
  fmt(&c->head, "#ifndef H_%s\n#define H_%s\n", name, name);
  for (const char *p; (p = strchr(tpl, '$')); tpl = p + 2) {
    str_putn(&c->head, tpl, (size_t)(p - tpl));
    if (p[1] == 'N') str_int(&c->head, lanes);
    else if (p[1] == 'F') str_put(&c->head, name);
    else if (p[1] >= 'A' && p[1] <= 'Z' && m[p[1] - 'A']) str_put(&c->head, m[p[1] - 'A']);
  }
  fmt(&c->head, "%s\n#endif\n", tpl);
}
#define M(letter) [(letter) - 'A'] =

/* ---- operands */
static const char *const_text(C *c, DType d, Scalar v) {
  char *t = tmp(c);
  const char *l = c->lang->long_suffix;
  switch (d) {
  case DT_F16: snprintf(t, TMP_LEN, "(u16)%d", f16_from_f64(v.f)); break;
  case DT_BF16: snprintf(t, TMP_LEN, "(u16)%d", bf16_from_f64(v.f)); break;
  case DT_F32: case DT_F64: {
    bool f = d == DT_F32;
    if (isnan(v.f)) return f ? c->lang->nan32 : c->lang->nan64;
    if (isinf(v.f)) return text(c, "(%s%s)", v.f < 0 ? "-" : "", f ? c->lang->inf32 : c->lang->inf64);
    snprintf(t, TMP_LEN, signbit(v.f) ? "(%a%s)" : "%a%s", v.f, f ? "f" : "");
    break;
  }
  case DT_BOOL: return v.i ? "1" : "0";
  case DT_I32:
    if (v.i == INT32_MIN) return "(-2147483647 - 1)";
    snprintf(t, TMP_LEN, v.i < 0 ? "(%lld)" : "%lld", (long long)v.i);
    break;
  case DT_U32: snprintf(t, TMP_LEN, "%lluu", (unsigned long long)(uint32_t)v.i); break;
  case DT_I64:
    if (v.i == INT64_MIN) return text(c, "(-9223372036854775807%s - 1)", l);
    snprintf(t, TMP_LEN, v.i < 0 ? "(%lld%s)" : "%lld%s", (long long)v.i, l);
    break;
  case DT_U64: snprintf(t, TMP_LEN, "%lluu%s", (unsigned long long)v.i, l); break;
  default: snprintf(t, TMP_LEN, "(%s)%lld", scalar_names[storage(d)], (long long)v.i);   /* narrow integers */
  }
  return t;
}
static const UOp *base_of(const UOp *u) {
  while (u->op == OPS_AFTER) u = u->src[0];
  return u;
}
static int place_of(C *c, const UOp *u) {
  uint64_t v;
  if (map_get(&c->pos, (uint64_t)(uintptr_t)u, &v)) return (int)v;
  fail(c, u, "used before its definition");
  return 0;
}
static bool is_mask(C *c, const UOp *u) { return c->lang->gnu_vec && u->dtype == DT_BOOL && u->lanes > 1; }
static const char *splat(C *c, DType d, int lanes, const char *scalar) {
  const char *t = type_lanes(c, d, lanes), *name = text(c, "%s_splat", t);
  if (first_use(c, name)) {
    fmt(&c->head, "#ifndef H_%s\n#define H_%s\nINL %s %s(%s x) { return (%s){", name, name, t, name, scalar_names[storage(d)], t);
    for (int i = 0; i < lanes; i++) str_put(&c->head, i ? ", x" : "x");
    str_put(&c->head, "}; }\n#endif\n");
  }
  return text(c, "%s(%s)", name, scalar);
}
static const char *ref(C *c, const UOp *u) {
  u = base_of(u);
  if (u->op == OPS_CONST) {
    if (u->lanes == 1) return const_text(c, (DType)u->dtype, u->arg.v);
    if (is_mask(c, u)) return splat(c, DT_I8, u->lanes, u->arg.v.i ? "(i8)-1" : "(i8)0");
    if (c->lang->gnu_vec) return splat(c, (DType)u->dtype, u->lanes, const_text(c, (DType)u->dtype, u->arg.v));
    fail(c, u, "constant with lanes");
    return "?";
  }
  if (u->op == OPS_GEP && c->lang->gnu_vec && u->lanes == 1 && u->dtype != DT_BOOL && u->src[0]->op != OPS_CONST)
    return text(c, "%s[%d]", ref(c, u->src[0]), (int)u->arg.i);
  if (u->op == OPS_PARAM) return text(c, "p%d", (int)u->arg.param.slot);
  if (u->op == OPS_RANGE) return text(c, "r%d", (int)u->arg.range.id);
  int at = place_of(c, u);
  return text(c, "%s%d", u->op == OPS_DEFINE_REG ? "acc" : u->op == OPS_DEFINE_LOCAL ? "l" : "v", at);
}
static const char *lane_ref(C *c, const UOp *u, int lane) {        /* GPU languages: one lane of a short vector */
  u = base_of(u);
  if (u->op == OPS_CONST) return const_text(c, (DType)u->dtype, u->arg.v);
  return u->lanes == 1 ? ref(c, u) : text(c, "%s.%c", ref(c, u), "xyzw"[lane & 3]);
}
static int mask_size(C *c, const UOp *u) {
  u = base_of(u);
  return u->op == OPS_CONST ? 1 : c->mask_bytes[place_of(c, u)];
}
/* The mask of a bool vector with elements of `nbytes`. */
static const char *mask_ref(C *c, const UOp *u, int nbytes) {
  if (base_of(u)->op == OPS_CONST) return splat(c, int_of(nbytes), u->lanes, u->arg.v.i ? "-1" : "0");
  const char *r = ref(c, u);
  return mask_size(c, u) == nbytes ? r : text(c, "__builtin_convertvector(%s, %s)", r, type_lanes(c, int_of(nbytes), u->lanes));
}

/* ---- elementwise ops on scalars */
static bool known(const UOp *u) { return u->vmin != INT64_MIN && u->vmax != INT64_MAX; }
/* True when the bounds prove that a plain signed operation cannot overflow: the compiler may then fold addresses. */
static bool no_wrap(const UOp *u) {
  DType d = (DType)u->dtype;
  if ((d != DT_I32 && d != DT_I64) || u->lanes != 1) return false;
  const UOp *a = u->src[0], *b = u->nsrc > 1 ? u->src[1] : a;
  if (!known(a) || !known(b)) return false;
  int64_t lo = dtype_min(d), hi = dtype_max(d), r;
  for (int i = 0; i < 4; i++) {
    int64_t x = i & 1 ? a->vmax : a->vmin, y = i & 2 ? b->vmax : b->vmin;
    bool over = u->op == OPS_ADD ? __builtin_add_overflow(x, y, &r) : u->op == OPS_SUB ? __builtin_sub_overflow(x, y, &r)
                                                                                       : __builtin_mul_overflow(x, y, &r);
    if (over || r < lo || r > hi) return false;
  }
  return true;
}
static const char *math_name(Ops op) {
  switch (op) {
  case OPS_EXP2: return "exp2";
  case OPS_LOG2: return "log2";
  case OPS_EXP: return "exp";
  case OPS_LOG: return "log";
  case OPS_SIN: return "sin";
  case OPS_SQRT: return "sqrt";
  case OPS_MULACC: return "fma";
  default: return NULL;
  }
}
static const char *infix(Ops op) {
  switch (op) {
  case OPS_ADD: return "+";
  case OPS_SUB: return "-";
  case OPS_MUL: return "*";
  case OPS_FDIV: return "/";
  case OPS_AND: return "&";
  case OPS_OR: return "|";
  case OPS_XOR: return "^";
  case OPS_CMPLT: return "<";
  case OPS_CMPNE: return "!=";
  case OPS_CMPEQ: return "==";
  default: return NULL;
  }
}
static void bool_alu(C *c, const UOp *u, const char *a, const char *b, const char *e, const char *no) {   /* no: "!" or "~" */
  switch (u->op) {
  case OPS_NEG: case OPS_TRUNC: put(c, "%s", a); break;
  case OPS_ADD: case OPS_OR: case OPS_MAX: put(c, "%s | %s", a, b); break;
  case OPS_SUB: case OPS_XOR: case OPS_CMPNE: put(c, "%s ^ %s", a, b); break;
  case OPS_CMPEQ: put(c, "%s(%s ^ %s)", no, a, b); break;
  case OPS_MUL: case OPS_AND: case OPS_CDIV: case OPS_FLOORDIV: put(c, "%s & %s", a, b); break;
  case OPS_CMPLT: put(c, "%s%s & %s", no, a, b); break;
  case OPS_CMOD: case OPS_FLOORMOD: case OPS_SHL: case OPS_SHR: put(c, "%s & %s%s", a, no, b); break;
  case OPS_MULACC: put(c, "(%s & %s) | %s", a, b, e); break;
  default: fail(c, u, "not an op on bool");
  }
}
static void cast_text(C *c, DType to, DType from, const char *a) {
  bool half_in = from == DT_F16 || from == DT_BF16, half_out = to == DT_F16 || to == DT_BF16;
  if (to == from) { put(c, "%s", a); return; }
  if (half_in) a = text(c, "f32_%s(%s)", dtype_name(from), a), from = DT_F32;
  if (half_out) {                                                  /* one rounding: 64-bit integers go through f64 only if that is exact */
    if (from == DT_I64 || from == DT_U64) put(c, "%s_%s(%s)", dtype_name(to), dtype_name(from), a);
    else if (from == DT_F32 || dtype_size(from) <= 2) put(c, "%s_f32((f32)%s)", dtype_name(to), a);
    else put(c, c->lang->msl ? "%s_f32((f32)%s)" : "%s_f64((f64)%s)", dtype_name(to), a);
  } else if (to == DT_BOOL) put(c, "%s != 0", a);
  else if (dtype_is_float(from) && !dtype_is_float(to)) put(c, "%s_%s(%s)", dtype_name(to), dtype_name(from), a);
  else put(c, "(%s)%s", scalar_names[storage(to)], a);
}
static void scalar_alu(C *c, const UOp *u, const char *a, const char *b, const char *e) {
  Ops op = (Ops)u->op;
  DType d = (DType)u->src[op == OPS_WHERE]->dtype, to = (DType)u->dtype;
  const char *t = scalar_names[storage(d)], *ut = scalar_names[dtype_size(d) == 8 ? DT_U64 : DT_U32], *sym = infix(op);
  bool f = dtype_is_float(d), f64 = d == DT_F64;
  if (op == OPS_CAST) { cast_text(c, to, d, a); return; }
  if (op == OPS_WHERE) { put(c, "%s ? %s : %s", a, b, e); return; }
  if (op == OPS_BITCAST) {
    if (f == dtype_is_float(to) || dtype_size(d) == 2) put(c, "(%s)%s", scalar_names[storage(to)], a);
    else if (f) put(c, "(%s)%s_bits(%s)", scalar_names[to], f64 ? "u64" : "u32", a);
    else put(c, "%s_bits((%s)%s)", to == DT_F64 ? "f64" : "f32", to == DT_F64 ? "u64" : "u32", a);
    return;
  }
  if (d == DT_BOOL) { bool_alu(c, u, a, b, e, "!"); return; }
  if (d == DT_F16 || d == DT_BF16) { fail(c, u, "no arithmetic in this dtype"); return; }
  if (f) {
    const char *fn = math_name(op);
    if (fn) {
      if (c->lang->gnu_vec && op != OPS_SQRT && op != OPS_MULACC) { fail(c, u, "not an op of this target"); return; }
      if (op == OPS_MULACC) put(c, "fma_%s(%s, %s, %s)", t, a, b, e);
      else put(c, "%s_%s(%s)", fn, t, a);
      return;
    }
    switch (op) {
    case OPS_NEG: put(c, "-%s", a); return;
    case OPS_RECIPROCAL: put(c, "1 / %s", a); return;
    case OPS_TRUNC: put(c, "trunc_%s(%s)", t, a); return;
    case OPS_MAX: put(c, "%s > %s || %s != %s ? %s : %s", a, b, a, a, a, b); return;   /* NaN in b: the comparison fails, b is taken */
    default: break;
    }
  } else {
    const UOp *y = u->nsrc > 1 ? u->src[1] : u;
    bool sure = y->vmin > 0, pos = sure && u->src[0]->vmin >= 0;   /* divisor positive; both operands not negative */
    switch (op) {
    case OPS_NEG: put(c, "(%s)(0 - (%s)%s)", t, ut, a); return;
    case OPS_TRUNC: put(c, "%s", a); return;
    case OPS_ADD: case OPS_SUB: case OPS_MUL:
      if (no_wrap(u)) put(c, "%s %s %s", a, sym, b);
      else put(c, "(%s)((%s)%s %s (%s)%s)", t, ut, a, sym, ut, b);
      return;
    case OPS_MULACC: put(c, "(%s)((%s)%s * (%s)%s + (%s)%s)", t, ut, a, ut, b, ut, e); return;
    case OPS_CDIV: case OPS_CMOD:
      if (sure) put(c, "(%s)(%s %s %s)", t, a, op == OPS_CDIV ? "/" : "%", b);
      else put(c, "%s_%s(%s, %s)", op == OPS_CDIV ? "cdiv" : "cmod", t, a, b);
      return;
    case OPS_FLOORDIV: case OPS_FLOORMOD:
      if (pos) put(c, "(%s)(%s %s %s)", t, a, op == OPS_FLOORDIV ? "/" : "%", b);
      else put(c, "%s_%s(%s, %s)", op == OPS_FLOORDIV ? "floordiv" : "floormod", t, a, b);
      return;
    case OPS_MAX: put(c, "%s > %s ? %s : %s", a, b, a, b); return;
    case OPS_SHL: case OPS_SHR: {
      int bits = (int)dtype_size(d) * 8;
      bool in = y->op == OPS_CONST && y->arg.v.i >= 0 && y->arg.v.i < bits;
      if (in && op == OPS_SHL) put(c, "(%s)((%s)%s << %s)", t, ut, a, b);
      else if (in) put(c, "(%s)(%s >> %s)", t, a, b);
      else put(c, "%s_%s(%s, %s)", op == OPS_SHL ? "shl" : "shr", t, a, b);
      return;
    }
    default: break;
    }
  }
  if (!sym) { fail(c, u, "not an op of this target"); return; }
  if (op_flags(op) & OPF_CMP) put(c, "%s %s %s", a, sym, b);
  else if (f) put(c, "%s %s %s", a, sym, b);
  else put(c, "(%s)(%s %s %s)", t, a, sym, b);
}

/* ---- elementwise ops on GNU vectors */
static const char per_lane1[] = "INL $T $F($S a) { $T r; for (int i = 0; i < $N; i++) r[i] = $G(a[i]); return r; }";
static const char per_lane2[] = "INL $T $F($T a, $T b) { $T r; for (int i = 0; i < $N; i++) r[i] = $G(a[i], b[i]); return r; }";
static const char trunc_vec[] =   /* $I: as wide as the float; $L: from here on every value is whole */
  "INL $T $F($T x) {\n  $I b = ($I)x, s = b & $M, m = ($I)(($T)(b & ~$M) < $L), y = b & m;\n"
  "  $I t = ($I)__builtin_convertvector(__builtin_convertvector(($T)y, $I), $T);\n  return ($T)((t & m) | (b & ~m) | s);\n}";
static const char f2i_vec[] =     /* $S float vector, $I mask of its width, $T result, $J mask of the result's width */
  "INL $T $F($S x) {\n  $I lo = ($I)(x <= $A), hi = ($I)(x >= $B), ok = ~lo & ~hi & ($I)(x == x);\n"
  "  $T r = __builtin_convertvector(($S)(($I)x & ok), $T);\n  $J l = $C, h = $D;\n"
  "  return ($T)((($J)r & ~l & ~h) | (l & ($J)$Y) | (h & ($J)$Z));\n}";
static const char bf2f_vec[] = "INL $T $F($S a) { return ($T)(__builtin_convertvector(a, $U) << 16); }";
static const char f2bf_vec[] =
  "INL $T $F($S x) {\n  $U b = ($U)x, q = (b >> 16) | 64, m = ($U)(x != x), r = (b + 0x7fff + ((b >> 16) & 1)) >> 16;\n"
  "  return __builtin_convertvector((q & m) | (r & ~m), $T);\n}";
static const char h2f_vec[] =
  "INL $T $F($S a) {\n#if $N == 16 && defined(__AVX512F__)\n  return ($T)__builtin_ia32_vcvtph2ps512_mask(($I)a, ($T){0}, -1, 4);\n"
  "#elif $N == 8 && defined(__F16C__)\n  return ($T)__builtin_ia32_vcvtph2ps256(($I)a);\n"
  "#else\n  $T r; for (int i = 0; i < $N; i++) r[i] = f32_f16(a[i]); return r;\n#endif\n}";
static const char f2h_vec[] =
  "INL $T $F($S a) {\n#if $N == 16 && defined(__AVX512F__)\n  return ($T)__builtin_ia32_vcvtps2ph512_mask(a, 0, ($I){0}, -1);\n"
  "#elif $N == 8 && defined(__F16C__)\n  return ($T)__builtin_ia32_vcvtps2ph256(a, 0);\n"
  "#else\n  $T r; for (int i = 0; i < $N; i++) r[i] = f16_f32(a[i]); return r;\n#endif\n}";
static const char fma_vec[] =     /* clang fuses what the pragma marks; gcc has no such pragma, so its builtins by width */
  "INL $T $F($T a, $T b, $T c) {\n#if defined(__clang__)\n  _Pragma(\"STDC FP_CONTRACT ON\") return a * b + c;\n"
  "#elif $B == 64 && defined(__AVX512F__)\n  return __builtin_ia32_vfmaddp$K512_mask(a, b, c, -1, 4);\n"
  "#elif $B == 32 && defined(__FMA__)\n  return __builtin_ia32_vfmaddp$K256(a, b, c);\n"
  "#elif $B == 16 && defined(__FMA__)\n  return __builtin_ia32_vfmaddp$K(a, b, c);\n"
  "#else\n  $T r; for (int i = 0; i < $N; i++) r[i] = fma_$G(a[i], b[i], c[i]); return r;\n#endif\n}";
static const char sqrt_vec[] =
  "INL $T $F($T a) {\n#if defined(__clang__) && $B == 64 && defined(__AVX512F__)\n  return __builtin_ia32_sqrtp$K512(a, 4);\n"
  "#elif $B == 64 && defined(__AVX512F__)\n  return __builtin_ia32_sqrtp$K512_mask(a, a, -1, 4);\n"
  "#elif $B == 32 && defined(__AVX__)\n  return __builtin_ia32_sqrtp$K256(a);\n"
  "#elif $B == 16 && defined(__SSE2__)\n  return __builtin_ia32_sqrtp$K(a);\n"
  "#else\n  $T r; for (int i = 0; i < $N; i++) r[i] = sqrt_$G(a[i]); return r;\n#endif\n}";

static void vec_select(C *c, const UOp *u, const char *m, const char *a, const char *b, int nbytes) {
  const char *i = type_lanes(c, int_of(nbytes), u->lanes);
  put(c, "(%s)((%s & (%s)%s) | (~%s & (%s)%s))", type_lanes(c, (DType)u->dtype, u->lanes), m, i, a, m, i, b);
}
static void vec_float_to_int(C *c, DType to, DType from, int n, const char *a) {
  static const char *const lo32[] = {"-128.0f", "0.0f", "-32768.0f", "0.0f", "-2147483648.0f", "0.0f", "-9223372036854775808.0f", "0.0f"};
  static const char *const hi32[] = {"128.0f", "256.0f", "32768.0f", "65536.0f", "2147483648.0f", "4294967296.0f", "9223372036854775808.0f",
                                     "18446744073709551616.0f"};
  DType wide = dtype_size(to) < 4 ? DT_I32 : to;                   /* narrow results: saturate in i32, then drop bits */
  const char *name = text(c, "%sx%d_%s", dtype_name(to), n, dtype_name(from));
  const char *s = type_lanes(c, from, n), *i = type_lanes(c, int_of((int)dtype_size(from)), n), *w = type_lanes(c, wide, n);
  const char *j = type_lanes(c, int_of((int)dtype_size(wide)), n), *t = type_lanes(c, to, n);
  bool same = dtype_size(wide) == dtype_size(from);
  const char *lo = same ? "lo" : text(c, "__builtin_convertvector(lo, %s)", j), *hi = same ? "hi" : text(c,
      "__builtin_convertvector(hi, %s)", j);
  Scalar min = {.i = dtype_min(to)}, max = {.i = to == DT_U64 ? -1 : dtype_max(to)};
  const char *m[26] = {M('T') w, M('S') s, M('I') i, M('J') j, M('A') lo32[to - DT_I8], M('B') hi32[to - DT_I8], M('C') lo, M('D') hi,
                       M('Y') splat(c, wide, n, const_text(c, wide, min)), M('Z') splat(c, wide, n, const_text(c, wide, max))};
  helper(c, name, f2i_vec, m, n);
  if (wide == to) put(c, "%s(%s)", name, a);
  else put(c, "__builtin_convertvector(%s(%s), %s)", name, a, t);
}
static void vec_cast(C *c, const UOp *u) {
  const UOp *x = u->src[0];
  DType to = (DType)u->dtype, from = (DType)x->dtype;
  int n = u->lanes;
  const char *t = type_lanes(c, to, n), *a = ref(c, x);
  if (to == from) {
    if (to == DT_BOOL) c->mask_bytes[place_of(c, u)] = (uint8_t)mask_size(c, x);
    put(c, "%s", a);
    return;
  }
  if (from == DT_BOOL) {                                           /* 0 / -1 -> 0 / 1 in the integer as wide as the result */
    if (to == DT_F16 || to == DT_BF16) {
      put(c, "(%s)(%s & %d)", t, mask_ref(c, x, 2), to == DT_F16 ? 0x3c00 : 0x3f80);
      return;
    }
    const char *m = mask_ref(c, x, (int)dtype_size(to));
    if (dtype_is_float(to)) put(c, "__builtin_convertvector(%s & 1, %s)", m, t);
    else put(c, "(%s)(%s & 1)", t, m);
    return;
  }
  const char *m[26] = {M('T') t, M('S') type_lanes(c, from, n)};
  if (to == DT_BOOL) {
    int w = (int)dtype_size(from);
    c->mask_bytes[place_of(c, u)] = (uint8_t)w;
    if (from == DT_F16 || from == DT_BF16) put(c, "(%s)((%s & 0x7fff) != 0)", type_lanes(c, DT_I16, n), a);
    else put(c, "(%s)(%s != 0)", type_lanes(c, int_of(w), n), a);
    return;
  }
  bool half_in = from == DT_F16 || from == DT_BF16, half_out = to == DT_F16 || to == DT_BF16;
  if (half_in && to == DT_F32) {
    m['U' - 'A'] = type_lanes(c, DT_U32, n), m['I' - 'A'] = type_lanes(c, DT_I16, n);
    const char *name = text(c, "f32x%d_%s", n, dtype_name(from));
    helper(c, name, from == DT_F16 ? h2f_vec : bf2f_vec, m, n);
    put(c, "%s(%s)", name, a);
  } else if (half_out && from == DT_F32) {
    m['U' - 'A'] = type_lanes(c, DT_U32, n), m['I' - 'A'] = type_lanes(c, DT_I16, n);
    const char *name = text(c, "%sx%d_f32", dtype_name(to), n);
    helper(c, name, to == DT_F16 ? f2h_vec : f2bf_vec, m, n);
    put(c, "%s(%s)", name, a);
  } else if (half_in || half_out) {                                /* rare pairs: lane by lane through the scalar conversion */
    put(c, "(%s){", t);
    int keep = c->tmp_at;                                          /* 64 lanes would go around the ring and overwrite `a` */
    for (int i = 0; i < n; i++, c->tmp_at = keep) {
      if (i) str_put(&c->body, ", ");
      cast_text(c, to, from, text(c, "%s[%d]", a, i));
    }
    str_put(&c->body, "}");
  } else if (dtype_is_float(from) && !dtype_is_float(to)) vec_float_to_int(c, to, from, n, a);
  else put(c, "__builtin_convertvector(%s, %s)", a, t);
}
static void vec_per_lane(C *c, const UOp *u, const char *fn, const char *t, const char *a, const char *b) {
  const char *name = text(c, "%s_%s", fn, t), *g = text(c, "%s_%s", fn, scalar_names[storage((DType)u->src[0]->dtype)]);
  const char *m[26] = {M('T') t, M('S') t, M('G') g};
  helper(c, name, b ? per_lane2 : per_lane1, m, u->lanes);
  if (b) put(c, "%s(%s, %s)", name, a, b);
  else put(c, "%s(%s)", name, a);
}
static void vec_alu(C *c, const UOp *u) {
  Ops op = (Ops)u->op;
  int n = u->lanes;
  DType d = (DType)u->src[op == OPS_WHERE]->dtype, to = (DType)u->dtype;
  int size = (int)dtype_size(d);
  for (int i = 0; i < u->nsrc; i++) if (u->src[i]->lanes != n) { fail(c, u, "operands with other lanes"); return; }
  if (op == OPS_CAST) { vec_cast(c, u); return; }
  if (to == DT_BOOL) c->mask_bytes[place_of(c, u)] = (uint8_t)size;
  if (op == OPS_BITCAST) {
    if (to == d) put(c, "%s", ref(c, u->src[0]));
    else if (d == DT_BOOL) put(c, "(%s)(%s & 1)", type_lanes(c, to, n), mask_ref(c, u->src[0], 1));
    else if (to == DT_BOOL) put(c, "(%s)(%s != 0)", type_lanes(c, DT_I8, n), ref(c, u->src[0]));
    else put(c, "(%s)%s", type_lanes(c, to, n), ref(c, u->src[0]));
    if (to == DT_BOOL && d == DT_BOOL) c->mask_bytes[place_of(c, u)] = (uint8_t)mask_size(c, u->src[0]);
    return;
  }
  if (d == DT_BOOL) {                                              /* masks take the width of the first operand */
    int w = mask_size(c, u->src[op == OPS_WHERE]);
    const char *s[3] = {0};
    for (int i = 0; i < u->nsrc; i++) s[i] = mask_ref(c, u->src[i], w);
    c->mask_bytes[place_of(c, u)] = (uint8_t)w;
    if (op == OPS_WHERE) put(c, "(%s & %s) | (~%s & %s)", s[0], s[1], s[0], s[2]);
    else bool_alu(c, u, s[0], s[1], s[2], "~");
    return;
  }
  const char *t = type_lanes(c, d, n), *a = ref(c, u->src[op == OPS_WHERE]), *sym = infix(op);
  const char *b = u->nsrc > 1 ? ref(c, u->src[op == OPS_WHERE ? 2 : 1]) : NULL;
  if (op == OPS_WHERE) { vec_select(c, u, mask_ref(c, u->src[0], size), a, b, size); return; }
  if (op_flags(op) & OPF_CMP) { put(c, "(%s)(%s %s %s)", type_lanes(c, int_of(size), n), a, sym, b); return; }
  if (d == DT_F16 || d == DT_BF16) { fail(c, u, "no arithmetic in this dtype"); return; }
  bool f = dtype_is_float(d);
  const char *ut = type_lanes(c, f ? d : unsigned_of(d), n), *it = type_lanes(c, int_of(size), n);
  const char *nbytes = text(c, "%d", size * n), *k = d == DT_F64 ? "d" : "s";
  const UOp *y = u->nsrc > 1 ? u->src[1] : u;
  bool sure = y->vmin > 0, pos = sure && u->src[0]->vmin >= 0;
  if (f && (op == OPS_MULACC || op == OPS_SQRT)) {
    const char *name = text(c, "%s_%s", math_name(op), t);
    const char *m[26] = {M('T') t, M('B') nbytes, M('K') k, M('G') scalar_names[d]};
    helper(c, name, op == OPS_SQRT ? sqrt_vec : fma_vec, m, n);
    if (op == OPS_SQRT) put(c, "%s(%s)", name, a);
    else put(c, "%s(%s, %s, %s)", name, a, b, ref(c, u->src[2]));
    return;
  }
  switch (op) {
  case OPS_NEG:
    if (f) put(c, "-%s", a);
    else put(c, "(%s)-(%s)%s", t, ut, a);
    return;
  case OPS_RECIPROCAL: if (f) { put(c, d == DT_F64 ? "1.0 / %s" : "1.0f / %s", a); return; } break;
  case OPS_TRUNC: {
    if (!f) { put(c, "%s", a); return; }
    const char *name = text(c, "trunc_%s", t);
    const char *m[26] = {M('T') t, M('I') it, M('M') d == DT_F64 ? "(-9223372036854775807l - 1)" : "(-2147483647 - 1)",
                         M('L') d == DT_F64 ? "0x1p52" : "0x1p23f"};
    helper(c, name, trunc_vec, m, n);
    put(c, "%s(%s)", name, a);
    return;
  }
  case OPS_MAX: {
    const char *m = text(c, "m%d", place_of(c, u));                /* the mask was written as a statement before this one */
    vec_select(c, u, m, a, b, size);
    return;
  }
  case OPS_MULACC: put(c, "(%s)((%s)%s * (%s)%s + (%s)%s)", t, ut, a, ut, b, ut, ref(c, u->src[2])); return;
  case OPS_CDIV: case OPS_CMOD:
    if (sure) put(c, "%s %s %s", a, op == OPS_CDIV ? "/" : "%", b);
    else vec_per_lane(c, u, op == OPS_CDIV ? "cdiv" : "cmod", t, a, b);
    return;
  case OPS_FLOORDIV: case OPS_FLOORMOD:
    if (pos) put(c, "%s %s %s", a, op == OPS_FLOORDIV ? "/" : "%", b);
    else vec_per_lane(c, u, op == OPS_FLOORDIV ? "floordiv" : "floormod", t, a, b);
    return;
  case OPS_SHL: case OPS_SHR: {
    const UOp *s = y->op == OPS_VECTORIZE && y->nsrc == 1 ? y->src[0] : y;
    bool in = s->op == OPS_CONST && s->arg.v.i >= 0 && s->arg.v.i < size * 8;
    if (!in) vec_per_lane(c, u, op == OPS_SHL ? "shl" : "shr", t, a, b);
    else if (op == OPS_SHL) put(c, "(%s)((%s)%s << (%s)%s)", t, ut, a, ut, b);
    else put(c, "%s >> %s", a, b);
    return;
  }
  default: break;
  }
  if (!sym) { fail(c, u, "not an op of this target"); return; }
  if (f) put(c, "%s %s %s", a, sym, b);
  else put(c, "(%s)((%s)%s %s (%s)%s)", t, ut, a, sym, ut, b);
}

/* ---- memory */
static bool divisible(const UOp *u, int n, int depth) {            /* a wide GPU access needs an aligned offset */
  if (u->op == OPS_CONST) return u->arg.v.i % n == 0;
  if (depth > 16) return false;
  if (u->op == OPS_ADD || u->op == OPS_SUB) return divisible(u->src[0], n, depth + 1) && divisible(u->src[1], n, depth + 1);
  if (u->op == OPS_MUL) return divisible(u->src[0], n, depth + 1) || divisible(u->src[1], n, depth + 1);
  if (u->op == OPS_SHL && u->src[1]->op == OPS_CONST) return u->src[1]->arg.v.i < 8 && (1 << u->src[1]->arg.v.i) % n == 0;
  if (u->op == OPS_CAST && !dtype_is_float((DType)u->src[0]->dtype)) return divisible(u->src[0], n, depth + 1);
  return false;
}
static const char *space_of(C *c, const UOp *base) { return !c->lang->msl ? "" : base->op == OPS_PARAM ? "device " : "threadgroup "; }
static void load_text(C *c, const UOp *ix, const UOp *u) {
  DType d = (DType)u->dtype;
  int n = u->lanes;
  const UOp *base = base_of(ix->src[0]);
  const char *p = ref(c, base), *o = ref(c, ix->src[1]);
  if (n == 1) put(c, "%s[%s]", p, o);
  else if (is_mask(c, u)) put(c, "(%s)(*(const %su *)(%s + %s) != 0)", type_lanes(c, DT_I8, n), type_lanes(c, DT_U8, n), p, o);
  else if (c->lang->gnu_vec) put(c, "*(const %su *)(%s + %s)", type_lanes(c, d, n), p, o);
  else if (divisible(ix->src[1], n, 0)) put(c, "*(%sconst %s *)(%s + %s)", space_of(c, base), type_lanes(c, d, n), p, o);
  else {
    put(c, "%s%s", type_lanes(c, d, n), c->lang->vec_open);
    for (int i = 0; i < n; i++) put(c, "%s%s[%s + %d]", i ? ", " : "", p, o, i);
    put(c, "%s", c->lang->vec_close);
  }
}
static const char *zero_text(C *c, const UOp *u) {
  if (u->lanes == 1) return "0";
  return c->lang->gnu_vec ? text(c, "(%s){0}", type_lanes(c, is_mask(c, u) ? DT_I8 : (DType)u->dtype, u->lanes))
                          : text(c, "%s%s0, 0%s%s", type_lanes(c, (DType)u->dtype, u->lanes), c->lang->vec_open, u->lanes > 2 ? ", 0, 0"
                              : "", c->lang->vec_close);
}
static void render_load(C *c, const UOp *u, int at) {
  const UOp *x = base_of(u->src[0]);
  const char *t = type_lanes(c, is_mask(c, u) ? DT_I8 : (DType)u->dtype, u->lanes);
  if (is_mask(c, u)) c->mask_bytes[at] = 1;
  if (x->op == OPS_DEFINE_REG) { put(c, "%s v%d = %s;\n", t, at, ref(c, x)); return; }
  if (x->op != OPS_INDEX || x->nsrc < 2) { fail(c, u, "source is neither INDEX nor register"); return; }
  if (!x->arg.i) {
    put(c, "%s v%d = ", t, at);
    load_text(c, x, u);
    str_put(&c->body, ";\n");
    return;
  }
  const char *g = ref(c, x->src[x->nsrc - 1]);
  const char *alt = u->nsrc < 2 ? zero_text(c, u) : is_mask(c, u) ? mask_ref(c, u->src[1], 1) : ref(c, u->src[1]);
  if (u->lanes == 1) {
    put(c, "%s v%d = %s ? ", t, at, g);
    load_text(c, x, u);
    put(c, " : %s;\n", alt);
  } else {
    put(c, "%s v%d = %s;\n", t, at, alt);
    line(c);
    put(c, "if (%s) v%d = ", g, at);
    load_text(c, x, u);
    str_put(&c->body, ";\n");
  }
}
static void render_store(C *c, const UOp *u) {
  const UOp *x = base_of(u->src[0]), *v = u->src[1];
  const char *val = is_mask(c, v) ? mask_ref(c, v, 1) : ref(c, v);
  int n = v->lanes;
  if (x->op == OPS_DEFINE_REG) { put(c, "%s = %s;\n", ref(c, x), val); return; }
  if (x->op != OPS_INDEX || x->nsrc < 2) { fail(c, u, "target is neither INDEX nor register"); return; }
  const UOp *base = base_of(x->src[0]);
  const char *p = ref(c, base), *o = ref(c, x->src[1]);
  if (x->arg.i) put(c, "if (%s) ", ref(c, x->src[x->nsrc - 1]));
  if (n == 1) put(c, "%s[%s] = %s;\n", p, o, val);
  else if (is_mask(c, v)) put(c, "*(%su *)(%s + %s) = (%s)(%s & 1);\n", type_lanes(c, DT_U8, n), p, o, type_lanes(c, DT_U8, n), val);
  else if (c->lang->gnu_vec) put(c, "*(%su *)(%s + %s) = %s;\n", type_lanes(c, (DType)v->dtype, n), p, o, val);
  else if (divisible(x->src[1], n, 0)) put(c, "*(%s%s *)(%s + %s) = %s;\n", space_of(c, base), type_lanes(c, (DType)v->dtype, n), p, o,
      val);
  else {
    str_put(&c->body, "{ ");
    for (int i = 0; i < n; i++) put(c, "%s[%s + %d] = %s; ", p, o, i, lane_ref(c, v, i));
    str_put(&c->body, "}\n");
  }
}

/* ---- lanes */
static void render_vectorize(C *c, const UOp *u, int at) {
  int n = u->lanes;
  bool mask = is_mask(c, u);
  DType d = mask ? DT_I8 : (DType)u->dtype;
  const char *t = type_lanes(c, d, n);
  if (mask) c->mask_bytes[at] = 1;
  if (u->nsrc != 1 && u->nsrc != n) { fail(c, u, "sources do not match the lanes"); return; }
  if (c->lang->gnu_vec && u->nsrc == 1) {
    const char *s = ref(c, u->src[0]);
    put(c, "%s v%d = %s;\n", t, at, splat(c, d, n, mask ? text(c, "(i8)-%s", s) : s));
    return;
  }
  put(c, c->lang->gnu_vec ? "%s v%d = (%s){" : "%s v%d = %s", t, at, t);
  if (!c->lang->gnu_vec) str_put(&c->body, c->lang->vec_open);
  for (int i = 0; i < n; i++) put(c, "%s%s%s", i ? ", " : "", mask ? "-" : "", ref(c, u->src[u->nsrc == 1 ? 0 : i]));
  put(c, "%s;\n", c->lang->gnu_vec ? "}" : c->lang->vec_close);
}
static void render_gep(C *c, const UOp *u, int at) {
  const UOp *x = u->src[0];
  int n = u->lanes, first = (int)u->arg.i;
  if (first < 0 || first + n > x->lanes) { fail(c, u, "lanes out of range"); return; }
  bool mask = is_mask(c, x);
  if (!c->lang->gnu_vec) {
    put(c, "%s v%d = ", type_lanes(c, (DType)u->dtype, n), at);
    if (n == 1) put(c, "%s;\n", lane_ref(c, x, first));
    else {
      put(c, "%s%s", type_lanes(c, (DType)u->dtype, n), c->lang->vec_open);
      for (int i = 0; i < n; i++) put(c, "%s%s", i ? ", " : "", lane_ref(c, x, first + i));
      put(c, "%s;\n", c->lang->vec_close);
    }
    return;
  }
  int w = mask ? mask_size(c, x) : 0;
  DType d = mask ? int_of(w) : (DType)u->dtype;
  const char *r = ref(c, x);
  if (n == 1 && mask) put(c, "u8 v%d = %s[%d] != 0;\n", at, r, first);
  else if (n == 1) put(c, "%s v%d = %s[%d];\n", type_lanes(c, d, 1), at, r, first);
  else {
    if (mask) c->mask_bytes[at] = (uint8_t)w;
    put(c, "%s v%d = ", type_lanes(c, d, n), at);
    if (n == x->lanes) { put(c, "%s;\n", r); return; }
    put(c, "__builtin_shufflevector(%s, %s", r, r);
    for (int i = 0; i < n; i++) put(c, ", %d", first + i);
    str_put(&c->body, ");\n");
  }
}

static void render_alu(C *c, const UOp *u, int at) {
  int n = u->lanes;
  if (n == 1) {
    const char *s[3] = {"", "", ""};
    for (int i = 0; i < u->nsrc && i < 3; i++) s[i] = ref(c, u->src[i]);
    put(c, "%s v%d = ", scalar_names[storage((DType)u->dtype)], at);
    scalar_alu(c, u, s[0], s[1], s[2]);
  } else if (c->lang->gnu_vec) {
    DType d = (DType)u->src[0]->dtype;
    if (u->op == OPS_MAX && d != DT_BOOL && d != DT_F16 && d != DT_BF16) {
      const char *a = ref(c, u->src[0]), *b = ref(c, u->src[1]), *i = type_lanes(c, int_of((int)dtype_size(d)), n);
      if (dtype_is_float(d)) put(c, "%s m%d = (%s)(%s > %s) | (%s)(%s != %s);\n", i, at, i, a, b, i, a, a);
      else put(c, "%s m%d = (%s)(%s > %s);\n", i, at, i, a, b);
      line(c);
    }
    /* the width of a mask is known once its text is, so the text is written first and its type put in front */
    size_t start = c->body.len;
    vec_alu(c, u);
    const char *t = type_lanes(c, is_mask(c, u) ? int_of(c->mask_bytes[at]) : (DType)u->dtype, n);
    char front[64];
    int len = snprintf(front, sizeof front, "%s v%d = ", t, at);
    size_t size = c->body.len - start;
    str_putn(&c->body, front, (size_t)len);
    if (c->body.oom) return;
    memmove(c->body.at + start + len, c->body.at + start, size);
    memcpy(c->body.at + start, front, (size_t)len);
  } else {
    put(c, "%s v%d = %s%s", type_lanes(c, (DType)u->dtype, n), at, type_lanes(c, (DType)u->dtype, n), c->lang->vec_open);
    for (int i = 0; i < n; i++) {
      const char *s[3] = {"", "", ""};
      for (int j = 0; j < u->nsrc && j < 3; j++) s[j] = lane_ref(c, u->src[j], i);
      put(c, i ? ", %s(" : "%s(", scalar_names[storage((DType)u->dtype)]);       /* a functional cast: no narrowing inside braces */
      scalar_alu(c, u, s[0], s[1], s[2]);
      str_put(&c->body, ")");
    }
    str_put(&c->body, c->lang->vec_close);
  }
  str_put(&c->body, ";\n");
}

/* ---- kernel */
static void signature(C *c) {
  const Linear *lin = c->lin;
  Str *s = &c->body;
  if (c->lang->gnu_vec) {
    fmt(s, "void %s(void *const *bufs, const i64 *vars, int tid, void *scratch) {\n", lin->name);
    for (int i = 0; i < lin->n; i++)
      if (lin->at[i]->op == OPS_PARAM) fmt(s, "  %s *p%d = (%s *)bufs[%d];\n", scalar_names[storage((DType)lin->at[i]->dtype)],
          (int)lin->at[i]->arg.param.slot,
                                           scalar_names[storage((DType)lin->at[i]->dtype)], (int)lin->at[i]->arg.param.slot);
    return;
  }
  if (c->lang->msl) fmt(s, "kernel void %s(", lin->name);
  else fmt(s, "extern \"C\" __global__ void __launch_bounds__(%d) %s(", TG_MAX(lin->local[0], 1) * TG_MAX(lin->local[1],
      1) * TG_MAX(lin->local[2], 1), lin->name);
  int n = 0, k = 0;
  for (int slot = 0; slot < lin->nparam; slot++) {                  /* parameters in slot order; an unused slot keeps its place */
    DType d = DT_U8;
    for (int i = 0; i < lin->n; i++)
      if (lin->at[i]->op == OPS_PARAM && lin->at[i]->arg.param.slot == slot) d = (DType)lin->at[i]->dtype;
    fmt(s, "%s%s%s *p%d", n++ ? ", " : "", c->lang->msl ? "device " : "", scalar_names[storage(d)], slot);
    if (c->lang->msl) fmt(s, " [[buffer(%d)]]", slot);
  }
  for (int i = 0; i < lin->n; i++)
    if (lin->at[i]->op == OPS_VAR) {
      fmt(s, c->lang->msl ? "%sconstant i64 &var%d" : "%si64 var%d", n++ ? ", " : "", k);
      if (c->lang->msl) fmt(s, " [[buffer(%d)]]", lin->nparam + k);
      k++;
    }
  if (c->lang->msl) fmt(s, "%suint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]", n ? ", " : "");
  str_put(s, ") {\n");
}
static void render_local(C *c, const UOp *u, int at, size_t *stack, size_t *scratch) {
  const char *t = scalar_names[storage((DType)u->dtype)];
  size_t size = ((size_t)u->arg.param.nelem * dtype_size((DType)u->dtype) + 63) & ~(size_t)63;
  if (!c->lang->gnu_vec) { put(c, "%s %s l%d[%d];\n", c->lang->msl ? "threadgroup" : "__shared__ __attribute__((aligned(16)))", t, at,
      (int)u->arg.param.nelem); return; }
  if (*stack + size <= LOCAL_STACK_BYTES) {
    put(c, "_Alignas(64) %s l%d[%d];\n", t, at, (int)u->arg.param.nelem);
    *stack += size;
  } else {
    put(c, "%s *l%d = (%s *)((char *)scratch + ", t, at, t);
    str_int(&c->body, (int64_t)*scratch);
    str_put(&c->body, ");\n");
    *scratch += size;
  }
}
static void render_one(C *c, const UOp *u, int at, size_t *stack, size_t *scratch) {
  const char *t = scalar_names[storage((DType)u->dtype)];
  if (u->lanes > 1) {                                              /* 1, 2, 4 .. 64 lanes; 2 or 4 on a GPU */
    if ((u->lanes & (u->lanes - 1)) || u->lanes > (c->lang->gnu_vec ? 64 : 4)) { fail(c, u,
        "this number of lanes does not exist"); return; }
  }
  switch (u->op) {
  case OPS_CONST: case OPS_PARAM: case OPS_INDEX: case OPS_AFTER: case OPS_SINK: return;
  case OPS_GEP:
    if (c->lang->gnu_vec && u->lanes == 1 && u->dtype != DT_BOOL && u->src[0]->op != OPS_CONST) {      /* written where it is used */
      if (u->arg.i < 0 || u->arg.i >= u->src[0]->lanes) fail(c, u, "lanes out of range");
      return;
    }
    break;
  case OPS_END: case OPS_ENDIF:
    if (u->op == OPS_END && u->src[0]->op == OPS_RANGE && u->src[0]->arg.range.type == AXIS_THREAD) return;
    if (c->depth <= 1) { fail(c, u, "closes nothing"); return; }
    c->depth--;
    break;
  default: break;
  }
  line(c);
  switch (u->op) {
  case OPS_VAR:
    if (c->lang->gnu_vec) put(c, "%s v%d = (%s)vars[%d];\n", t, at, t, c->nvar++);
    else put(c, "%s v%d = (%s)var%d;\n", t, at, t, c->nvar++);
    break;
  case OPS_DEFINE_REG: {
    DType d = u->dtype == DT_BOOL && u->lanes > 1 && c->lang->gnu_vec ? DT_I8 : (DType)u->dtype;
    if (is_mask(c, u)) c->mask_bytes[at] = 1;
    put(c, "%s acc%d;\n", type_lanes(c, d, u->lanes), at);
    break;
  }
  case OPS_DEFINE_LOCAL: render_local(c, u, at, stack, scratch); break;
  case OPS_RANGE: {
    const char *r = ref(c, u);
    if (u->arg.range.type == AXIS_THREAD) { put(c, "%s %s = (%s)tid;\n", t, r, t); break; }
    put(c, "for (%s %s = 0; %s < %s; %s++) {\n", t, r, r, ref(c, u->src[0]), r);
    c->depth++;
    break;
  }
  case OPS_IF: put(c, "if (%s) {\n", ref(c, u->src[0])); c->depth++; break;
  case OPS_END: case OPS_ENDIF: put(c, "}\n"); break;
  case OPS_LOAD: render_load(c, u, at); break;
  case OPS_STORE: render_store(c, u); break;
  case OPS_VECTORIZE: render_vectorize(c, u, at); break;
  case OPS_GEP: render_gep(c, u, at); break;
  case OPS_BARRIER:
    if (c->lang->barrier) put(c, "%s;\n", c->lang->barrier);
    else fail(c, u, "no barriers here");
    break;
  case OPS_SPECIAL: {
    if (c->lang->gnu_vec || u->arg.special.dim < 0 || u->arg.special.dim > 2) { fail(c, u, "no grid here"); break; }
    const char *from = c->lang->msl ? (u->arg.special.local ? "lid" : "gid") : u->arg.special.local ? "threadIdx" : "blockIdx";
    put(c, "%s v%d = (%s)%s.%s; /* %s */\n", t, at, t, from, u->arg.special.dim == 0 ? "x" : u->arg.special.dim == 1 ? "y" : "z", ref(c,
        u->src[0]));
    break;
  }
  default:
    if (op_is_alu((Ops)u->op)) render_alu(c, u, at);
    else fail(c, u, "no linear program may contain it");
  }
}
bool cstyle_render(Str *out, const Linear *lin, TgError *err, const CLang *lang) {
  TgMem *mem = out->mem;
  C *c = mem_alloc(mem, sizeof *c);
  if (!c) return error_set(err, TG_ERR_NOMEM, "render %s: out of memory", lang->name), false;
  c->lang = lang, c->lin = lin, c->err = err, c->depth = 1;
  str_init(&c->head, mem), str_init(&c->body, mem), map_init(&c->pos, mem), map_init(&c->helpers, mem);
  c->mask_bytes = mem_alloc(mem, (size_t)lin->n + 1);
  bool oom = !c->mask_bytes;
  signature(c);
  size_t stack = 0, scratch = 0;
  for (int i = 0; i < lin->n && !oom && !c->failed; i++) {
    oom = !map_put_ptr(&c->pos, lin->at[i], i);
    if (!oom) render_one(c, lin->at[i], i, &stack, &scratch);
  }
  if (!oom && !c->failed && c->depth != 1) error_set(err, TG_ERR_INTERNAL, "render %s: kernel %s: a loop is not closed", lang->name,
      lin->name), c->failed = true;
  str_put(&c->body, "}\n");
  str_putn(out, str_text(&c->head), c->head.len);
  str_putn(out, str_text(&c->body), c->body.len);
  oom = oom || out->oom || c->head.oom || c->body.oom;
  bool ok = !oom && !c->failed;
  if (!ok) error_set(err, TG_ERR_NOMEM, "render %s: kernel %s: out of memory", lang->name, lin->name);   /* keeps an earlier error */
  str_free(&c->head), str_free(&c->body), map_free(&c->pos), map_free(&c->helpers);
  mem_free(mem, c->mask_bytes), mem_free(mem, c);
  return ok;
}

const char cstyle_prelude[] =
  "#define DIVS(T, U, B) \\\n"
  "INL T cdiv_##T(T a, T b) { return (T)(b == 0 ? (T)0 : b == (T)-1 && (T)-1 < (T)0 ? (T)((U)0 - (U)a) : (T)(a / b)); } \\\n"
  "INL T cmod_##T(T a, T b) { return (T)(b == 0 ? a : b == (T)-1 && (T)-1 < (T)0 ? (T)0 : (T)(a % b)); } \\\n"
  "INL T floordiv_##T(T a, T b) { T q = cdiv_##T(a, b), r = cmod_##T(a, b); return b != 0 && r != 0 && (r < 0) != (b < 0) ? (T)(q - 1) : "
  "q; } \\\n"
  "INL T floormod_##T(T a, T b) { T r = cmod_##T(a, b); return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r; } \\\n"
  "INL T shl_##T(T a, T b) { return (u64)b >= B ? (T)0 : (T)((U)a << b); } \\\n"
  "INL T shr_##T(T a, T b) { return (u64)b < B ? (T)(a >> b) : (T)-1 < (T)0 ? (T)(a >> (B - 1)) : (T)0; }\n"
  "DIVS(i8, u32, 8)\nDIVS(u8, u32, 8)\nDIVS(i16, u32, 16)\nDIVS(u16, u32, 16)\nDIVS(i32, u32, 32)\nDIVS(u32, u32, 32)\nDIVS(i64, u64, "
  "64)\nDIVS(u64, u64, 64)\n"
  "#define SAT(T, F, LO, HI, MIN, MAX) INL T T##_##F(F x) { return x != x ? (T)0 : x <= LO ? (T)(MIN) : x >= HI ? (T)(MAX) : (T)x; }\n"
  "#define SATS(F) SAT(i8, F, -128.0f, 128.0f, -128, 127) SAT(u8, F, 0.0f, 256.0f, 0, 255) SAT(i16, F, -32768.0f, 32768.0f, -32768, "
  "32767) \\\n"
  "SAT(u16, F, 0.0f, 65536.0f, 0, 65535) SAT(i32, F, -2147483648.0f, 2147483648.0f, -2147483647 - 1, 2147483647) \\\n"
  "SAT(u32, F, 0.0f, 4294967296.0f, 0, 0xffffffffu) SAT(i64, F, -9223372036854775808.0f, 9223372036854775808.0f, (i64)1 << 63, ~((i64)1 "
  "<< 63)) \\\n"
  "SAT(u64, F, 0.0f, 18446744073709551616.0f, 0, ~(u64)0)\nSATS(f32)\n"
  "INL f32 trunc_f32(f32 x) { u32 b = u32_bits(x), s = b & 0x80000000u; return f32_bits(b & 0x7fffffffu) < 0x1p23f ? "
  "f32_bits(u32_bits((f32)(i32)x) | s) : x; }\n"
  "INL f32 f32_bf16(u16 h) { return f32_bits((u32)h << 16); }\n"
  "INL u16 bf16_f32(f32 x) { u32 b = u32_bits(x); return (u16)(x != x ? b >> 16 | 64 : (b + 0x7fffu + (b >> 16 & 1)) >> 16); }\n"
  "INL f32 f32_f16(u16 h) {\n  u32 s = (u32)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;\n"
  "  return e == 31 ? f32_bits(s | 0x7f800000u | m << 13) : e ? f32_bits(s | (e + 112) << 23 | m << 13) : f32_bits(s | "
  "u32_bits((f32)(i32)m * 0x1p-24f));\n}\n"
  "INL u16 f16_f32(f32 x) {\n  u32 b = u32_bits(x), s = b >> 16 & 0x8000, a = b & 0x7fffffffu, r;\n"
  "  if (a > 0x7f800000u) r = 0x7e00;\n  else if (a >= 0x477ff000u) r = 0x7c00;\n"
  "  else if (a >= 0x38800000u) r = (a - (112u << 23) + 0xfff + (a >> 13 & 1)) >> 13;\n"
  "  else r = (u32)(i32)((f32_bits(a) * 0x1p24f + 0x1p23f) - 0x1p23f);\n  return (u16)(s | r);\n}\n"
  "#ifndef NO_F64\nSATS(f64)\n"
  "INL f64 trunc_f64(f64 x) { u64 b = u64_bits(x), s = b & (u64)1 << 63; return f64_bits(b & ~((u64)1 << 63)) < 0x1p52 ? "
  "f64_bits(u64_bits((f64)(i64)x) | s) : x; }\n"
  /* to 16 bits with one rounding: to f32 rounded to odd first, which keeps what the second rounding needs to know */
  "INL f32 f32_odd(f64 x) { f32 r = (f32)x; u32 b = u32_bits(r); return (f64)r == x || x != x || (b & 1) ? r : f32_bits(((f64)r > x) == "
  "(x > 0) ? b - 1 : b + 1); }\n"
  "INL u16 f16_f64(f64 x) { return f16_f32(f32_odd(x)); }\nINL u16 bf16_f64(f64 x) { return bf16_f32(f32_odd(x)); }\n"
  "#endif\n"
  "#ifdef NO_F64\n#define VIA f32\n#else\n#define VIA f64\n#endif\n#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\n"
  "INL u16 f16_u64(u64 x) { return CAT(f16_, VIA)((VIA)x); }\nINL u16 f16_i64(i64 x) { return CAT(f16_, VIA)((VIA)x); }\n"
  "INL u16 bf16_u64(u64 x) { return CAT(bf16_, VIA)((VIA)x); }\nINL u16 bf16_i64(i64 x) { return CAT(bf16_, VIA)((VIA)x); }\n";
