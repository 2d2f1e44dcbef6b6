/* operands.c: the parts of expressions: names, constants, types. In: a UOp. Out: a short text. Types and
 * helper functions are written in front of the kernel when they are first needed, each under an #ifndef, so
 * that kernels can be concatenated freely. */
#include "renderer/cstyle_private.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cs_fail(C *c, const UOp *u, const char *why) {
  if (!c->failed)
    error_set(c->err, TG_ERR_INTERNAL, "render %s: kernel %s: %s %s x%d: %s", c->lang->name, c->lin->name,
              op_name((Ops)u->op), dtype_name((DType)u->dtype), u->lanes, why);
  c->failed = true;
  return false;
}

/* ---- text */
/* Copies text to `to`, character by character, because operands are short. NULL: it does not fit before
 * `end`. */
static char *put_text(char *to, const char *end, const char *text) {
  for (; *text; text++) {
    if (to == end) return NULL;
    *to++ = *text;
  }
  return to;
}

/* Writes f with %s and %d replaced, without a terminating 0. */
static char *put_format(char *to, const char *end, const char *f, va_list ap) {
  char number[INT_TEXT];
  for (; to && *f; f++) {
    if (*f == '%') {
      bool text = *++f == 's';
      to = put_text(to, end, text ? va_arg(ap, const char *) : int_text(number, va_arg(ap, int)));
    } else if (to < end)
      *to++ = *f;
    else
      to = NULL;
  }
  return to;
}

static void vfmt(Str *s, const char *f, va_list ap) {
  char *to = NULL;
  for (size_t room = 64; !to && str_reserve(s, room); room *= 2) {
    va_list again;
    va_copy(again, ap);
    to = put_format(s->at + s->len, s->at + s->cap - 1, f, again);
    va_end(again);
    if (to) s->len = (size_t)(to - s->at);
    s->at[s->len] = 0;
  }
}

void cs_fmt(Str *s, const char *f, ...) {
  va_list ap;
  va_start(ap, f);
  vfmt(s, f, ap);
  va_end(ap);
}

void cs_put(C *c, const char *f, ...) {
  va_list ap;
  va_start(ap, f);
  vfmt(&c->body, f, ap);
  va_end(ap);
}

static char *tmp(C *c) { return c->tmp[c->tmp_at++ % NTMP]; }

const char *cs_text(C *c, const char *f, ...) {
  char *t = tmp(c);
  va_list ap;
  va_start(ap, f);
  char *end = put_format(t, t + TMP_LEN - 1, f, ap);
  va_end(ap);
  if (!end) {
    c->failed = true;
    error_set(c->err, TG_ERR_INTERNAL, "render %s: kernel %s: operand text too long", c->lang->name,
              c->lin->name);
    end = t;
  }
  *end = 0;
  return t;
}

/* Makes a name. Most of a kernel's text is names, so this is fast: it writes the number, and the letters in
 * front of it. */
static const char *name_text(C *c, const char *letters, int number) {
  _Static_assert(TMP_LEN >= 2 * INT_TEXT, "a name fits");
  char *at = int_text(tmp(c) + INT_TEXT, number);
  for (size_t n = strlen(letters); n--;)
    *--at = letters[n];
  return at;
}

/* ---- types */
const char *const cs_scalar[DT_COUNT] = {
#define DTYPE(name, text, bytes, storage) storage,
#include "uop/dtypes.def"
};

static DType cs_storage(DType d) {
  return d == DT_BOOL ? DT_U8 : !dtype_is_narrow_float(d) ? d : dtype_size(d) == 1 ? DT_U8 : DT_U16;
}

const char *cs_stored(DType d) { return cs_scalar[cs_storage(d)]; }

static bool first_use(C *c, const char *name) {
  uint64_t k = hash_bytes(1, name, strlen(name)), v;
  if (map_get(&c->helpers, k, &v)) return false;
  if (!map_put(&c->helpers, k, 1)) c->failed = true;
  return true;
}

const char *cs_type(C *c, DType d, int lanes) {
  d = cs_storage(d);
  const char *s = cs_scalar[d];
  if (lanes == 1) return s;
  /* 16 bytes that are moved from one memory to another */
  if (!c->lang->gnu_vec && lanes == 8 && dtype_size(d) == 2) return "u32x4";
  bool known = lanes <= MOST_NAMED_LANES;
  char *kept = known ? c->vector[d][lanes] : NULL;
  if (kept && *kept) return kept;
  const char *name = cs_text(c, "%sx%d", s, lanes);
  /* C11 allows a typedef to be repeated */
  if (c->lang->gnu_vec && first_use(c, name)) cs_fmt(&c->head, "VECTOR(%s, %d)\n", s, lanes);
  return known && strlen(name) < TYPE_LEN ? strcpy(kept, name) : name;
}

void cs_helper(C *c, const char *name, const char *tpl, const char *const m[26], int lanes) {
  if (!first_use(c, name)) return;
  cs_fmt(&c->head, "#ifndef H_%s\n#define H_%s\n", name, name);
  for (const char *p; (p = strchr(tpl, '$')); tpl = p + 2) {
    str_putn(&c->head, tpl, (size_t)(p - tpl));
    if (p[1] == 'N')
      str_int(&c->head, lanes);
    else if (p[1] == 'F')
      str_put(&c->head, name);
    else if (p[1] >= 'A' && p[1] <= 'Z' && m[p[1] - 'A'])
      str_put(&c->head, m[p[1] - 'A']);
  }
  cs_fmt(&c->head, "%s\n#endif\n", tpl);
}

/* ---- operands */
/* The shortest decimal that reads back as x. The host's locale may have another decimal point. */
static void float_text(char *t, double x, bool f32) {
  char s[64];
  for (int digits = f32 ? 6 : 15; digits <= 17; digits++) {
    snprintf(s, sizeof s, "%.*g", digits, x);
    if (f32 ? strtof(s, NULL) == (float)x : strtod(s, NULL) == x) break;
  }
  bool neg = s[0] == '-', point = false, whole = true;
  if (neg) *t++ = '(';
  for (const char *p = s; *p; p++) {
    if (strchr("0123456789+-e", *p)) {
      *t++ = *p;
      whole = whole && *p != 'e';
    } else if (!point) {
      *t++ = '.';
      point = true;
    }
  }
  if (whole && !point) {
    *t++ = '.';
    *t++ = '0';
  }
  if (f32) *t++ = 'f';
  if (neg) *t++ = ')';
  *t = 0;
}

static const char *int_literal(C *c, int64_t v, const char *suffix) {
  char number[INT_TEXT];
  const char *digits = int_text(number, v);
  return cs_text(c, v < 0 ? "(%s%s)" : "%s%s", digits, suffix);
}

/* A literal that every compiler reads as exactly this value. Negative numbers are in parentheses, the least
 * integers are written as sums. */
const char *cs_const(C *c, DType d, Scalar v) {
  char *t = tmp(c);
  const char *l = c->lang->long_suffix;
  switch (d) {
  case DT_FP8E4M3:
  case DT_FP8E5M2:
  case DT_F16:
  case DT_BF16: snprintf(t, TMP_LEN, "(%s)%d", cs_scalar[d], narrow_bits(d, v.f)); break;
  case DT_F32:
  case DT_F64: {
    bool f = d == DT_F32;
    if (isnan(v.f)) return f ? c->lang->nan32 : c->lang->nan64;
    if (isinf(v.f)) return cs_text(c, "(%s%s)", v.f < 0 ? "-" : "", f ? c->lang->inf32 : c->lang->inf64);
    float_text(t, v.f, f);
    /* if a compiler evaluates in double, only a cast makes the literal a float */
    if (f && c->lang->strict && strtod(t + strspn(t, "("), NULL) != v.f) return cs_text(c, "(f32)%s", t);
    break;
  }
  case DT_BOOL: return v.i ? "1" : "0";
  case DT_I32:
    if (v.i == INT32_MIN) return "(-2147483647 - 1)";
    return int_literal(c, v.i, "");
  case DT_U32: snprintf(t, TMP_LEN, "%lluu", (unsigned long long)(uint32_t)v.i); break;
  case DT_I64:
    if (v.i == INT64_MIN) return cs_text(c, "(-9223372036854775807%s - 1)", l);
    return int_literal(c, v.i, l);
  case DT_U64: snprintf(t, TMP_LEN, "%lluu%s", (unsigned long long)v.i, l); break;
  default: snprintf(t, TMP_LEN, "(%s)%lld", cs_stored(d), (long long)v.i); /* narrow integers */
  }
  return t;
}

int cs_place(C *c, const UOp *u) {
  if (u->id < c->npos && c->pos[u->id]) return c->pos[u->id] - 1;
  cs_fail(c, u, "used before its definition");
  return 0;
}

bool cs_is_mask(C *c, const UOp *u) { return c->lang->gnu_vec && u->dtype == DT_BOOL && u->lanes > 1; }

const char *cs_splat(C *c, DType d, int lanes, const char *scalar) {
  const char *t = cs_type(c, d, lanes), *name = cs_text(c, "%s_splat", t);
  if (first_use(c, name)) {
    cs_fmt(&c->head, "#ifndef H_%s\n#define H_%s\nINL %s %s(%s x) { return (%s){", name, name, t, name,
           cs_stored(d), t);
    for (int i = 0; i < lanes; i++)
      str_put(&c->head, i ? ", x" : "x");
    str_put(&c->head, "}; }\n#endif\n");
  }
  return cs_text(c, "%s(%s)", name, scalar);
}

/* A condition that all lanes share has no variable: its mask is made in the width that each use needs. */
bool cs_is_splat_mask(C *c, const UOp *u) {
  return c->lang->gnu_vec && u->op == OPS_VECTORIZE && u->nsrc == 1 && cs_is_mask(c, u);
}

static const char *splat_mask(C *c, const UOp *u, int nbytes) {
  DType bits = cs_int_of(nbytes);
  return cs_splat(c, bits, u->lanes, cs_text(c, "(%s)-%s", cs_scalar[bits], cs_ref(c, u->src[0])));
}

const char *cs_ref(C *c, const UOp *u) {
  u = uop_base(u);
  if (cs_is_splat_mask(c, u)) return splat_mask(c, u, 1);
  if (cs_has_lanes(c, u)) return cs_lane(c, u, "l");
  if (u->op == OPS_CONST) {
    if (u->lanes == 1) return cs_const(c, (DType)u->dtype, u->arg.v);
    if (cs_is_mask(c, u)) return cs_splat(c, DT_I8, u->lanes, u->arg.v.i ? "(i8)-1" : "(i8)0");
    if (c->lang->gnu_vec)
      return cs_splat(c, (DType)u->dtype, u->lanes, cs_const(c, (DType)u->dtype, u->arg.v));
    cs_fail(c, u, "constant with lanes");
    return "?";
  }
  if (u->op == OPS_GEP && c->lang->lane_loops)
    return cs_lane(c, uop_base(u->src[0]), cs_text(c, "%d", (int)u->arg.i));
  if (u->op == OPS_GEP && c->lang->gnu_vec && u->lanes == 1 && u->dtype != DT_BOOL &&
      u->src[0]->op != OPS_CONST)
    return cs_text(c, "%s[%d]", cs_ref(c, u->src[0]), (int)u->arg.i);
  if (u->op == OPS_PARAM) return name_text(c, "p", (int)u->arg.param.slot);
  if (u->op == OPS_RANGE) return name_text(c, "r", (int)u->arg.range.id);
  if (cs_is_group(u)) u = cs_sum_of(c, u);
  int number = c->number[cs_place(c, u)];
  return name_text(c, u->op == OPS_DEFINE_REG ? "acc" : u->op == OPS_DEFINE_LOCAL ? "l" : "v", number);
}

int cs_mask_size(C *c, const UOp *u) {
  u = uop_base(u);
  return u->op == OPS_CONST || cs_is_splat_mask(c, u) ? 1 : c->mask_bytes[cs_place(c, u)];
}

const char *cs_mask(C *c, const UOp *u, int nbytes) {
  if (uop_base(u)->op == OPS_CONST) return cs_splat(c, cs_int_of(nbytes), u->lanes, u->arg.v.i ? "-1" : "0");
  if (cs_is_splat_mask(c, uop_base(u))) return splat_mask(c, uop_base(u), nbytes);
  const char *r = cs_ref(c, u);
  return cs_mask_size(c, u) == nbytes
             ? r
             : cs_text(c, "__builtin_convertvector(%s, %s)", r, cs_type(c, cs_int_of(nbytes), u->lanes));
}
