/* parse.c: turns text into nodes. In: text written by print.c or by a person. Out: the same graph, or an
 * error with the line, the column and what was expected. The parser is a recursive descent over one line. The
 * depth of nesting is bounded, so no input exhausts the stack. A node that could not be made safely (its
 * sources are missing, its axes do not exist) is an error here. Whether the graph makes sense is checked by
 * spec.c. */
#include "uop/dims.h"
#include "uop/spec.h"
#include "uop/matrix.h"
#include "uop/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NESTING 64
#define MAX_INTS    64

typedef struct Bound {
  const char *name;
  size_t len;
  UOp *u;
  struct Bound *next;
} Bound;

typedef struct Lit {
  bool whole, negative;
  int64_t i;
  double f;
} Lit;

/* A value: a node, or a literal whose dtype depends on the other operand. */
typedef struct Val {
  UOp *u;
  Lit lit;
} Val;

typedef struct Parser {
  UOpText *t;
  TgError *err;
  const char *text, *end, *at, *line_start;
  int line, nesting;
  bool failed;
} Parser;

/* ---- errors and characters */
static bool fail(Parser *p, const char *at, const char *fmt, ...) TG_PRINTF(3, 4);

static bool fail(Parser *p, const char *at, const char *fmt, ...) {
  char what[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  if (!p->failed)
    error_set(p->err, TG_ERR_VALUE, "line %d, column %d: %s", p->line, (int)(at - p->line_start) + 1, what);
  p->failed = true;
  return false;
}

static bool out_of_memory(Parser *p) {
  if (!p->failed) error_set(p->err, TG_ERR_NOMEM, "line %d: out of memory", p->line);
  p->failed = true;
  return false;
}

static bool is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

static int hex_digit(int c) {
  return is_digit(c)            ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

static void blanks(Parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r'))
    p->at++;
  if (p->at < p->end && *p->at == '#')
    while (p->at < p->end && *p->at != '\n')
      p->at++;
}

static int peek(Parser *p) {
  blanks(p);
  return p->at < p->end ? (unsigned char)*p->at : 0;
}

static bool looking_at(Parser *p, const char *s) {
  size_t n = strlen(s);
  blanks(p);
  return (size_t)(p->end - p->at) >= n && !memcmp(p->at, s, n);
}

static bool accept(Parser *p, const char *s) {
  if (!looking_at(p, s)) return false;
  p->at += strlen(s);
  return true;
}

/* Reports an error at the current position and quotes the text there. */
static bool expected(Parser *p, const char *what) {
  blanks(p);
  size_t n = 0;
  while (p->at + n < p->end && n < 16 && p->at[n] > ' ' && p->at[n] < 127)
    n++;
  if (p->at >= p->end || *p->at == '\n')
    return fail(p, p->at, "expected %s, found the end of the line", what);
  return fail(p, p->at, "expected %s, found '%.*s'", what, (int)TG_MAX(n, 1), n ? p->at : "?");
}

static bool expect(Parser *p, const char *s) {
  char quoted[24];
  if (accept(p, s)) return true;
  snprintf(quoted, sizeof quoted, "'%s'", s);
  return expected(p, quoted);
}

static size_t word(Parser *p) { /* the length of the word at the current position */
  blanks(p);
  size_t n = 0;
  if (p->at < p->end && is_letter(*p->at))
    while (p->at + n < p->end && (is_letter(p->at[n]) || is_digit(p->at[n])))
      n++;
  return n;
}

static bool accept_word(Parser *p, const char *s) {
  size_t n = word(p);
  if (n != strlen(s) || memcmp(p->at, s, n)) return false;
  p->at += n;
  return true;
}

/* ---- numbers */
static size_t hex_number(const char *s, size_t n, bool *whole, int64_t *i, double *f) { /* after 0x */
  uint64_t m = 0;
  int exp = 0, digits = 0;
  size_t k = 0;
  bool point = false;
  for (; k < n; k++) {
    if (s[k] == '.' && !point) {
      point = true;
      continue;
    }
    int d = hex_digit((unsigned char)s[k]);
    if (d < 0) break;
    if (m >> 60) return 0; /* it does not fit into 64 bits */
    m = m << 4 | (uint64_t)d;
    digits++;
    exp -= point ? 4 : 0;
  }
  if (!digits) return 0;
  *whole = !point;
  if (k < n && (s[k] == 'p' || s[k] == 'P')) {
    size_t q = k + 1;
    bool neg = q < n && s[q] == '-';
    if (q < n && (s[q] == '-' || s[q] == '+')) q++;
    if (q >= n || !is_digit(s[q])) return 0;
    int e = 0;
    for (; q < n && is_digit(s[q]); q++)
      e = TG_MIN(e * 10 + (s[q] - '0'), 100000);
    exp += neg ? -e : e;
    k = q;
    *whole = false;
  }
  if (!*whole && m >> 53) return 0; /* it would be rounded twice */
  *i = (int64_t)m;
  *f = ldexp((double)m, exp);
  return k;
}

/* Reads inf or nan, perhaps with the bits of the NaN, at s[k]. Returns where it ends; 0: neither is there. */
static size_t not_finite(const char *s, size_t n, size_t k, bool negative, double *f) {
  if (n - k >= 3 && !memcmp(s + k, "inf", 3)) {
    *f = negative ? -INFINITY : INFINITY;
    return k + 3;
  }
  if (n - k < 3 || memcmp(s + k, "nan", 3)) return 0;
  uint64_t bits = UINT64_C(0x7ff8000000000000);
  k += 3;
  if (n - k > 3 && !memcmp(s + k, "(0x", 3)) {
    int64_t i = 0;
    /* stays false if there are no digits; anything that is not a number fails where ) is expected */
    bool whole = false;
    size_t r = hex_number(s + k + 3, n - k - 3, &whole, &i, f);
    if (!whole || k + 3 + r >= n || s[k + 3 + r] != ')') return 0;
    bits = (uint64_t)i;
    k += 4 + r;
  }
  memcpy(f, &bits, sizeof bits);
  return *f == *f ? 0 : k;
}

/* Reads an exponent, an e and a number, at s[k] if there is one, and adds it to *exp. Returns where it ends;
 * 0: no number follows the e. */
static size_t exponent(const char *s, size_t n, size_t k, int *exp, bool *whole) {
  if (k >= n || (s[k] != 'e' && s[k] != 'E')) return k;
  k++;
  bool negative = k < n && s[k] == '-';
  if (k < n && (s[k] == '-' || s[k] == '+')) k++;
  if (k >= n || !is_digit(s[k])) return 0;
  int e = 0;
  for (; k < n && is_digit(s[k]); k++)
    e = TG_MIN(e * 10 + (s[k] - '0'), 100000);
  *exp += negative ? -e : e;
  *whole = false;
  return k;
}

/* Reads digits, a point and an exponent from s[k] on. The digits are passed to strtod without the point,
 * because strtod expects the locale's. */
static size_t decimal(const char *s, size_t n, size_t k, bool *whole, int64_t *i, double *f) {
  char b[80];
  size_t nb = 0;
  int exp = 0;
  bool point = false, over = false;
  uint64_t m = 0;
  for (; k < n && (is_digit(s[k]) || (s[k] == '.' && !point)); k++) {
    if (s[k] == '.') {
      point = true;
      continue;
    }
    uint64_t d = (uint64_t)(s[k] - '0');
    over |= __builtin_mul_overflow(m, 10, &m);
    over |= __builtin_add_overflow(m, d, &m);
    if (nb == 48) return 0; /* longer than any meaningful number */
    b[nb++] = s[k];
    exp -= point;
  }
  *whole = !point;
  if (!(k = exponent(s, n, k, &exp, whole))) return 0;
  if (over) *whole = false; /* still a number, but only as a float */
  snprintf(b + nb, sizeof b - nb, "e%d", exp);
  *f = strtod(b, NULL);
  *i = (int64_t)m;
  return k;
}

size_t text_number(const char *s, size_t n, bool *whole, int64_t *i, bool *negative, double *f) {
  *negative = n && *s == '-';
  size_t k = *negative, end;
  *whole = false;
  *i = 0;
  if ((end = not_finite(s, n, k, *negative, f))) return end;
  if (k >= n || !is_digit(s[k])) return 0;
  if (n - k > 2 && s[k] == '0' && (s[k + 1] == 'x' || s[k + 1] == 'X')) {
    size_t r = hex_number(s + k + 2, n - k - 2, whole, i, f);
    end = r ? k + 2 + r : 0;
  } else
    end = decimal(s, n, k, whole, i, f);
  if (end && *negative) *f = -*f;
  return end;
}

static bool literal(Parser *p, Lit *l) {
  blanks(p);
  size_t n = text_number(p->at, (size_t)(p->end - p->at), &l->whole, &l->i, &l->negative, &l->f);
  if (!n) return expected(p, "a number");
  p->at += n;
  return true;
}

/* The literal as a value of d: integers must fit exactly, floats are rounded. */
static UOp *literal_node(Parser *p, const char *at, const Lit *l, DType d, int lanes) {
  Scalar v = {.f = l->f};
  if (!dtype_is_float(d)) {
    uint64_t m = (uint64_t)l->i;
    bool fits = l->whole && (l->negative ? m <= UINT64_C(1) << 63 : d == DT_U64 || m <= INT64_MAX);
    v.i = l->negative ? (int64_t)(0 - m) : l->i;
    fits = fits && !(d == DT_U64 && l->negative && m) && scalar_round(d, v).i == v.i;
    if (!fits) {
      fail(p, at, "expected a value of %s", dtype_name(d));
      return NULL;
    }
  } else if (v.f == v.f)
    v = scalar_round(d, v); /* the bits of a NaN are kept */
  UOp *u = uop_new(p->t->st, OPS_CONST, d, lanes, 0, NULL, (Arg){.raw = {v.i, 0}});
  if (!u) out_of_memory(p);
  return u;
}

static bool whole_number(Parser *p, int64_t *out) {
  Lit l;
  blanks(p);
  const char *at = p->at;
  if (!literal(p, &l)) return false;
  if (!l.whole || (l.negative ? (uint64_t)l.i > UINT64_C(1) << 63 : l.i < 0))
    return fail(p, at, "expected a whole number of 64 bits");
  *out = l.negative ? (int64_t)(0 - (uint64_t)l.i) : l.i;
  return true;
}

/* Reads a number, or a product over variables by number: 3*v0*v1. */
static bool size_term(Parser *p, int64_t *out) {
  int64_t var;
  if (peek(p) != 'v') {
    const char *at = p->at;
    if (!whole_number(p, out)) return false;
    if (dim_symbolic(*out)) return fail(p, at, "no list has such a number");
    if (!accept(p, "*")) return true;
  } else
    *out = 1;
  do {
    const char *at = p->at;
    if (!accept(p, "v")) return expected(p, "a variable, such as v0");
    if (!whole_number(p, &var)) return false;
    int64_t unit = var < 0 || var > INT32_MAX ? DIM_BAD : dim_unit(p->t->st, (int)var);
    if (unit == DIM_BAD) return fail(p, at, "there is no variable %lld", (long long)var);
    *out = dim_mul(p->t->st, *out, unit);
  } while (accept(p, "*"));
  return true;
}

static bool size_sum(Parser *p, int64_t *out) {
  const char *at = p->at;
  int64_t term;
  if (!size_term(p, out)) return false;
  for (bool plus; (plus = accept(p, "+")) || accept(p, "-");) {
    if (!size_term(p, &term)) return false;
    *out = plus ? dim_add(p->t->st, *out, term) : dim_sub(p->t->st, *out, term);
  }
  return *out != DIM_BAD || fail(p, at, "too long or too large a sum");
}

static const Ints *int_list(Parser *p) { /* (1, 2, 3) */
  int64_t v[MAX_INTS];
  int n = 0;
  if (!expect(p, "(")) return NULL;
  while (peek(p) != ')') {
    if (n == MAX_INTS) {
      expected(p, "at most 64 numbers");
      return NULL;
    }
    if (!size_sum(p, &v[n++])) return NULL;
    if (!accept(p, ",")) break;
  }
  if (!expect(p, ")")) return NULL;
  const Ints *l = ints_get(p->t->st, n, v);
  if (!l) out_of_memory(p);
  return l;
}

/* ---- words */
static int find_op(const char *s, size_t n) {
  for (int i = 0; i < OPS_COUNT; i++)
    if (strlen(op_name((Ops)i)) == n && !memcmp(op_name((Ops)i), s, n)) return i;
  return -1;
}

/* Reads f32 or f32x4. Returns the length of the word; 0: there is no type here. */
static size_t type_here(Parser *p, DType *d, int *lanes) {
  size_t n = word(p);
  for (int i = 0; i < DT_COUNT; i++) {
    const char *name = dtype_name((DType)i);
    size_t k = strlen(name);
    if (n < k || memcmp(p->at, name, k)) continue;
    *d = (DType)i;
    *lanes = 1;
    if (n == k) return n;
    if (p->at[k] != 'x' || n == k + 1 || n > k + 4) continue;
    int v = 0;
    size_t q = k + 1;
    for (; q < n && is_digit(p->at[q]); q++)
      v = v * 10 + (p->at[q] - '0');
    if (q != n || v > 255) continue;
    *lanes = v;
    return n;
  }
  return 0;
}

static Bound *find_name(const UOpText *t, const char *s, size_t n) {
  uint64_t v;
  if (!map_get(&t->names, hash_bytes(5, s, n), &v)) return NULL;
  for (Bound *b = (Bound *)(uintptr_t)v; b; b = b->next)
    if (b->len == n && !memcmp(b->name, s, n)) return b;
  return NULL;
}

static bool bind(Parser *p, const char *s, size_t n, UOp *u) {
  uint64_t h = hash_bytes(5, s, n), v = 0;
  Bound *b = arena_alloc(&p->t->arena, sizeof *b);
  char *name = arena_alloc(&p->t->arena, n + 1);
  if (!b || !name) return out_of_memory(p);
  map_get(&p->t->names, h, &v);
  memcpy(name, s, n);
  *b = (Bound){name, n, u, (Bound *)(uintptr_t)v};
  return map_put_ptr(&p->t->names, (uintptr_t)h, b) || out_of_memory(p);
}

/* ---- operations */
static bool two(Parser *p, int64_t *a, int64_t *b) {
  return whole_number(p, a) && expect(p, ",") && whole_number(p, b);
}

static bool reduce_op(Parser *p, int64_t *op) {
  size_t n = word(p);
  int o = n ? find_op(p->at, n) : -1;
  if (o < 0) return expected(p, "the op of a reduction");
  p->at += n;
  *op = o;
  return true;
}

/* Reads the origin of a loop: `, of 3`: a part of loop 3; `, blocks of 3`; or a word. */
static bool range_origin(Parser *p, Arg *arg) {
  static const struct {
    const char *word;
    RangeOf of;
  } words[] = {{"none", OF_NONE},       {"grid", LOCAL_OF_GRID}, {"block", LOCAL_OF_BLOCK},
               {"copy", LANES_OF_COPY}, {"a", FRAGMENT_OF_A},    {"b", FRAGMENT_OF_B}};

  int64_t of = 0;
  if (!accept(p, ",")) return true;
  bool blocks = accept_word(p, "blocks");
  if (!accept_word(p, "of")) return expected(p, "'of'");
  for (size_t i = 0; !blocks && i < TG_COUNT(words); i++)
    if (accept_word(p, words[i].word)) return arg->range.of = words[i].of, true;
  if (!whole_number(p, &of) || of < 0 || of >= INT32_MAX - 4) return expected(p, "the number of a loop");
  arg->range.of = blocks ? BLOCKS_OF - (int32_t)of : (int32_t)of + 1;
  return true;
}

static bool matrix_row(Parser *p, int64_t *row) {
  size_t n = word(p);
  int64_t i = 0;
  while (i < MATRIX_COUNT && (strlen(matrix_shapes[i].name) != n || memcmp(matrix_shapes[i].name, p->at, n)))
    i++;
  if (i == MATRIX_COUNT) return expected(p, "a matrix unit, such as m16n8k16_f16_f32");
  p->at += n;
  *row = i;
  return true;
}

static bool axis_type(Parser *p, int32_t *type) {
  size_t n = word(p);
  int t = 0;
  while (t <= AXIS_GROUP && (strlen(axis_type_names[t]) != n || memcmp(axis_type_names[t], p->at, n)))
    t++;
  if (t > AXIS_GROUP) return expected(p, "the type of a loop, such as LOOP");
  p->at += n;
  *type = t;
  return true;
}

/* Reads ", old" and ", once", each at most once. */
static bool scatter_how(Parser *p, int64_t *how) {
  while (accept(p, ",")) {
    int64_t bit = accept_word(p, "old") ? SCATTER_OLD : accept_word(p, "once") ? SCATTER_ONCE : 0;
    if (!bit || (*how & bit)) return expected(p, "'old' or 'once'");
    *how |= bit;
  }
  return true;
}

/* Reads the arg of an op, as print.c writes it. first: no type was written before it. */
static bool arg_read(Parser *p, Ops op, bool first, Arg *arg, Lit *value) {
  ArgForm form = op_arg(op);
  if (form == ARG_NONE) return !first || expected(p, "a type");
  if (arg_optional(form) && !first && peek(p) == ']') return true;
  if (!first && !expect(p, ",")) return false;
  switch (form) {
  case ARG_VALUE: return literal(p, value);
  case ARG_MEMORY: return two(p, &arg->param.slot, &arg->param.nelem);
  case ARG_VAR: return two(p, &arg->var.lo, &arg->var.hi);
  case ARG_SPECIAL: return two(p, &arg->special.dim, &arg->special.local);
  case ARG_RANGE:
    return whole_number(p, &arg->range.id) && expect(p, ",") && axis_type(p, &arg->range.type) &&
           range_origin(p, arg);
  case ARG_REDUCE: return reduce_op(p, &arg->reduce.op);
  case ARG_AXES: return reduce_op(p, &arg->reduce.op) && expect(p, ",") && (arg->reduce.axes = int_list(p));
  case ARG_SCATTER: return reduce_op(p, &arg->scatter.op) && scatter_how(p, &arg->scatter.how);
  case ARG_INTS: return (arg->ints = int_list(p)) != NULL;
  case ARG_TIME:
  case ARG_NUMBER: return whole_number(p, &arg->i);
  case ARG_MATRIX: return matrix_row(p, &arg->i);
  case ARG_GATED: arg->i = 1; return accept_word(p, arg_word(form)) || expected(p, "'gated'");
  case ARG_BOUND: arg->i = 1; return accept_word(p, arg_word(form)) || expected(p, "'at_most_0'");
  case ARG_NONE: break;
  }
  return true;
}

/* Reads the brackets after an op: its type, if it is written, then its arg. */
static bool brackets(Parser *p, Ops op, DType *d, int *lanes, Arg *arg, Lit *value) {
  if (!accept(p, "[")) {
    ArgForm form = op_arg(op);
    bool needs = form != ARG_NONE && !arg_optional(form);
    return needs ? expect(p, "[") : true;
  }
  size_t n = type_here(p, d, lanes);
  p->at += n;
  return arg_read(p, op, !n, arg, value) && expect(p, "]");
}

static bool value_of(Parser *p, int level, Val *out);

static UOp *settle(Parser *p, const char *at, const Val *v) {
  return v->u ? v->u : literal_node(p, at, &v->lit, DT_INDEX, 1);
}

/* Puts a node into the program's list, once. Constants are not listed. */
static bool listed(Parser *p, UOp *u) {
  if (!p->t->program.n || is_const(u)) return true;
  if (map_get_ptr(&p->t->listed, u)) return true;
  return (map_put_ptr(&p->t->listed, (uintptr_t)u, u) && vec_push(p->t->mem, &p->t->list, u)) ||
         out_of_memory(p);
}

static UOp *make(Parser *p, const char *at, Ops op, DType d, int lanes, int n, UOp *const *src, Arg arg) {
  SpecError bad;
  if (!spec_new(p->t->st, p->t->mem, op, d, lanes, n, src, arg, &bad)) {
    if (*bad.why)
      fail(p, at, "%s: %s", op_name(op), bad.why);
    else
      out_of_memory(p);
    return NULL;
  }
  UOp *u = uop_new(p->t->st, op, d, lanes, n, src, arg);
  if (!u)
    out_of_memory(p);
  else if (!listed(p, u))
    u = NULL;
  return u;
}

/* Reads a call after the op's name. A dtype or lanes that are not written follow from the sources. */
static UOp *call(Parser *p, Ops op, const char *at) {
  DType d = DT_COUNT, dd;
  int lanes = 0, dl;
  Arg arg = ARG0;
  Lit value = {0};
  UOpVec src = {0};
  UOp *r = NULL;
  if (!brackets(p, op, &d, &lanes, &arg, &value)) return NULL;
  bool ok = true;
  if (op != OPS_CONST && accept(p, "(")) {
    while (ok && peek(p) != ')') {
      Val v;
      blanks(p);
      const char *here = p->at;
      UOp *u = value_of(p, 0, &v) ? settle(p, here, &v) : NULL;
      ok = u && (vec_push(p->t->mem, &src, u) || out_of_memory(p));
      if (ok && !accept(p, ",")) break;
    }
    ok = ok && expect(p, ")");
  }
  if (ok && d == DT_COUNT) {
    uop_type_default(op, (int)TG_MIN(src.len, 65535), src.at, &dd, &dl);
    d = dd;
    lanes = dl;
    if (d == DT_COUNT)
      ok = fail(p, at, "%s needs its dtype in brackets", op_name(op));
    else if (!lanes)
      ok = fail(p, at, "%s needs its dtype and lanes in brackets", op_name(op));
  }
  if (ok && src.len > UINT16_MAX) ok = fail(p, at, "more than 65535 sources");
  if (ok)
    r = op == OPS_CONST ? literal_node(p, at, &value, d, lanes)
                        : make(p, at, op, d, lanes, (int)src.len, src.at, arg);
  vec_free(p->t->mem, &src);
  return r;
}

static const struct {
  const char *tok;
  uint8_t op, level;
} infix[] = {

#define INFIX(sign, op, level) {sign, OPS_##op, level},
#include "uop/infix.def"
#undef INFIX
};

/* A number without a dtype is an index. A colon and a dtype after it make it a value of that dtype. */
static bool primary(Parser *p, Val *out) {
  int c = peek(p);
  const char *at = p->at;
  *out = (Val){0};
  if (accept(p, "(")) {
    if (++p->nesting > MAX_NESTING) return fail(p, at, "nested more than %d deep", MAX_NESTING);
    bool ok = value_of(p, 0, out) && expect(p, ")");
    p->nesting--;
    return ok;
  }
  size_t n = word(p);
  bool special = n == 3 && (!memcmp(p->at, "inf", 3) || !memcmp(p->at, "nan", 3));
  if (is_digit(c) || c == '-' || special) {
    if (!literal(p, &out->lit)) return false;
    DType d;
    int lanes;
    if (p->at >= p->end || *p->at != ':')
      return out->lit.whole || fail(p, at, "expected ':' and a dtype after a number that is no integer");
    p->at++;
    size_t k = type_here(p, &d, &lanes);
    if (!k || lanes != 1) return expected(p, "a dtype");
    p->at += k;
    return (out->u = literal_node(p, at, &out->lit, d, 1)) != NULL;
  }
  if (!n) return expected(p, "an expression");
  const char *name = p->at;
  int op = find_op(name, n);
  if (op >= 0) {
    p->at += n;
    if (++p->nesting > MAX_NESTING) return fail(p, at, "nested more than %d deep", MAX_NESTING);
    out->u = call(p, (Ops)op, at);
    p->nesting--;
    return out->u != NULL;
  }
  Bound *b = find_name(p->t, name, n);
  if (!b)
    return fail(p, name, "expected a name or an op, found '%.*s', which is neither", (int)TG_MIN(n, 40),
                name);
  p->at += n;
  out->u = b->u;
  return true;
}

static bool value_of(Parser *p, int level, Val *out) {
  if (level > 5) return primary(p, out);
  blanks(p);
  const char *left = p->at;
  if (!value_of(p, level + 1, out)) return false;
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < TG_COUNT(infix); i++) {
      if (infix[i].level != level || !looking_at(p, infix[i].tok)) continue;
      const char *at = p->at;
      if (infix[i].op == OPS_FDIV && looking_at(p, "//")) continue;
      p->at += strlen(infix[i].tok);
      Val r;
      blanks(p);
      const char *right = p->at;
      if (!value_of(p, level + 1, &r)) return false;
      const UOp *like = out->u ? out->u : r.u; /* a literal gets the dtype of the other side */
      DType d = like ? (DType)like->dtype : DT_INDEX;
      if (like && like->lanes > 1 && (!out->u || !r.u)) return fail(p, at, "expected a vector on both sides");
      UOp *src[2] = {out->u ? out->u : literal_node(p, left, &out->lit, d, 1),
                     r.u ? r.u : literal_node(p, right, &r.lit, d, 1)};
      if (!src[0] || !src[1]) return false;
      DType rd;
      int lanes;
      uop_type_default((Ops)infix[i].op, 2, src, &rd, &lanes);
      *out = (Val){.u = make(p, at, (Ops)infix[i].op, rd, lanes, 2, src, ARG0)};
      if (!out->u) return false;
      more = true;
      break;
    }
  }
  return true;
}

/* ---- lines */
static bool line_end(Parser *p) {
  if (peek(p) && *p->at != '\n') return expected(p, "the end of the line");
  if (p->at < p->end && *p->at != '\n') return expected(p, "the end of the line"); /* a NUL byte */
  return true;
}

static bool small_number(Parser *p, int *out) {
  int64_t v;
  blanks(p);
  const char *at = p->at;
  if (!whole_number(p, &v)) return false;
  if (v < 0 || v > INT32_MAX) return fail(p, at, "expected a number of 0 to 2147483647");
  *out = (int)v;
  return true;
}

static bool keyword(Parser *p, const char *s) {
  if (accept_word(p, s)) return true;
  char quoted[24];
  snprintf(quoted, sizeof quoted, "'%s'", s);
  return expected(p, quoted);
}

static bool program_line(Parser *p) { /* program r_4_4: 3 params, 2 threads, grid 1 1 1, block 1 1 1 */
  Linear *l = &p->t->program;
  size_t n = word(p);
  if (!n) return expected(p, "the name of a program");
  if (n >= sizeof l->name)
    return fail(p, p->at, "the name is longer than %zu characters", sizeof l->name - 1);
  memcpy(l->name, p->at, n);
  l->name[n] = 0;
  p->at += n;
  l->n = 1; /* it is a program, though its list is still empty */
  bool ok = expect(p, ":") && small_number(p, &l->nparam) && keyword(p, "params") && expect(p, ",") &&
            small_number(p, &l->nthread) && keyword(p, "threads") && expect(p, ",") && keyword(p, "grid");
  for (int i = 0; ok && i < 3; i++)
    ok = small_number(p, &l->global[i]);
  ok = ok && expect(p, ",") && keyword(p, "block");
  for (int i = 0; ok && i < 3; i++)
    ok = small_number(p, &l->local[i]);
  return ok && line_end(p);
}

/* Reads variable v0[1, 64], or v1[0, 96, 8] for multiples of 8: it must be the next variable of the store. */
static bool variable_line(Parser *p) {
  const char *at = p->at;
  int64_t lo = 0, hi = 0, multiple = 1;
  int i = 0;
  DimTable *t = store_dims(p->t->st);
  bool ok = expect(p, "v") && small_number(p, &i) && expect(p, "[") && two(p, &lo, &hi) &&
            (!accept(p, ",") || whole_number(p, &multiple)) && expect(p, "]") && line_end(p);
  if (!ok) return false;
  if (!t || (i && !dims_var_at(t, i - 1)) || dims_var_at(t, i))
    return fail(p, at, "v%d is not the next variable", i);
  if (lo < 0 || hi < lo || hi > INT64_C(1) << 48 || multiple < 1 || lo % multiple || hi % multiple)
    return fail(p, at, "a variable has bounds 0 <= lo <= hi, of which both are multiples");
  char name[16];
  snprintf(name, sizeof name, "v%d", i);
  return dims_var(t, name, lo, hi, multiple) == i || out_of_memory(p);
}

static bool roots_line(Parser *p) {
  UOpVec *r = &p->t->roots;
  r->len = 0;
  while (peek(p) && *p->at != '\n') {
    Val v;
    const char *at = p->at;
    UOp *u = value_of(p, 0, &v) ? settle(p, at, &v) : NULL;
    if (!u) return false;
    if (!vec_push(p->t->mem, r, u)) return out_of_memory(p);
    if (!accept(p, ",")) break;
  }
  return line_end(p);
}

static bool statement(Parser *p) { /* NAME = expression, or an expression alone */
  size_t n = word(p);
  const char *name = p->at;
  p->at += n;
  bool named = n && peek(p) == '=' && !(p->at + 1 < p->end && p->at[1] == '=');
  if (named) {
    p->at++;
    if (find_op(name, n) >= 0) return fail(p, name, "expected a name, found the op %.*s", (int)n, name);
    if ((n == 3 && (!memcmp(name, "inf", 3) || !memcmp(name, "nan", 3))) || find_name(p->t, name, n))
      return fail(p, name, "the name %.*s is taken", (int)TG_MIN(n, 40), name);
  } else
    p->at = name;
  blanks(p);
  const char *at = p->at;
  Val v;
  UOp *u = value_of(p, 0, &v) ? settle(p, at, &v) : NULL;
  if (!u || !line_end(p)) return false;
  if (named && !bind(p, name, n, u)) return false;
  p->t->roots.len = 0; /* the root is the last line, unless a line `roots` follows */
  return vec_push(p->t->mem, &p->t->roots, u) || out_of_memory(p);
}

bool uop_parse(UOpText *t, UOpStore *st, TgMem *mem, const char *text, size_t n, TgError *err) {
  *t = (UOpText){.st = st, .mem = mem, .program = {.nthread = 1}};
  arena_init(&t->arena, mem), map_init(&t->names, mem), map_init(&t->listed, mem);
  Parser p = {.t = t, .err = err, .text = text, .end = text + n, .at = text, .line_start = text, .line = 1};
  bool ok = true, said_roots = false;
  for (; ok && p.at < p.end; p.line++) {
    p.line_start = p.at;
    if (peek(&p) != '\n' && p.at < p.end) {
      if (said_roots)
        ok = expected(&p, "nothing after roots");
      else if (accept_word(&p, "program"))
        ok = t->program.n || t->roots.len ? fail(&p, p.line_start, "expected 'program' on the first line")
                                          : program_line(&p);
      else if (accept_word(&p, "variable"))
        ok = variable_line(&p);
      else if (accept_word(&p, "roots")) {
        said_roots = true;
        ok = roots_line(&p);
      } else
        ok = statement(&p);
    }
    if (ok && p.at < p.end) p.at++; /* the end of the line */
  }
  if (ok && !t->program.n && !t->roots.len && !said_roots)
    ok = fail(&p, p.at, "expected a graph, found nothing");
  if (t->program.n) {
    t->program.n = (int)t->list.len;
    t->program.at = t->list.at;
    t->roots.len = 0;
  }
  return ok;
}

UOp *uop_parse_expr(UOpText *t, const char *text, size_t n, int line, TgError *err) {
  Parser p = {
      .t = t, .err = err, .text = text, .end = text + n, .at = text, .line_start = text, .line = line};
  Val v;
  UOp *u = value_of(&p, 0, &v) ? settle(&p, text, &v) : NULL;
  return u && line_end(&p) ? u : NULL;
}

void uop_text_free(UOpText *t) {
  map_free(&t->names), map_free(&t->listed), arena_free(&t->arena);
  vec_free(t->mem, &t->roots), vec_free(t->mem, &t->list);
}
