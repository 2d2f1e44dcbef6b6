/* fuzz.c: random programs against an oracle. In: a seed and how long. Out: nothing, or the case that was
 * found, small.
 *
 *   expressions  random index and integer expressions: uop_simplify(e) == e at random points, by an evaluator
 *                of its own; bounds hold
 *   graphs       random tensor programs: the same numbers on CPU, on CPU with TG_NOOPT=1, on INTERP and on
 *                INTERP:CUDA
 *   shards       the same programs on four devices, what they begin with split or repeated at random: the same
 *                numbers as on one
 *   text         damaged graphs in text form: refused or taken, and what is taken prints and reads back as
 *                itself
 *   files        damaged model files and archives: refused with a reason, or read (tests/fuzz/files.c)
 *   export       captured functions as C, compiled, against the functions (tests/fuzz/programs.c)
 *   memory       programs of views, stores, realizes, captured functions and dropped handles, against plain
 *                arrays (tests/fuzz/memory.c)
 *
 * A tensor program that differs is cut down and printed as a C program of at most 20 lines. All numbers in it
 * are whole and small enough for f32 to be exact, so devices must agree bit for bit, but for the sign of
 * zeros.
 *
 *   fuzz [--seconds N | --cases N] [--seed N] [--only expressions|graphs|shards|text|files|memory|programs|export] [--broken]
 *
 * --broken: a seeded defect, to see that it is found. */
#define _GNU_SOURCE
#include "files.h"
#include "memory.h"
#include "programs.h"
#include "tg.h"
#include "uop/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t rng;
static bool broken;

static uint32_t draw(void) { /* splitmix64 */
  uint64_t z = rng += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u, z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ z >> 31) >> 32);
}

static int below(int n) { return (int)(draw() % (uint32_t)n); }

static int64_t pick(int64_t lo, int64_t hi) { return lo + (int64_t)(draw() % (uint64_t)(hi - lo + 1)); }

/* ---- expressions */
enum { NRANGE = 4, MOST_NODES = 4000 };

typedef struct Expr {
  UOpStore *st;
  TgMem mem;
  UOp *range[NRANGE];
  int64_t extent[NRANGE];
  DType dtype;
} Expr;

static UOp *leaf(Expr *x) {
  if (below(3) == 0) return uop_const_int(x->st, x->dtype, below(4) ? pick(-9, 9) : pick(-100, 100));
  UOp *r = x->range[below(NRANGE)];
  return x->dtype == DT_INDEX ? r : uop_cast(x->st, r, x->dtype);
}

static UOp *expr(Expr *x, int depth);

static UOp *condition(Expr *x, int depth) {
  UOp *c = uop_alu2(x->st,
                    below(3)   ? OPS_CMPLT
                    : below(2) ? OPS_CMPNE
                               : OPS_CMPEQ,
                    expr(x, depth - 1), expr(x, depth - 1));
  return depth > 1 && below(3) == 0 ? uop_alu2(x->st, below(2) ? OPS_AND : OPS_OR, c, condition(x, depth - 1))
                                    : c;
}

static UOp *expr(Expr *x, int depth) {
  static const Ops data[] = {OPS_ADD,  OPS_SUB,  OPS_MUL,  OPS_FLOORDIV, OPS_FLOORMOD,
                             OPS_CDIV, OPS_CMOD, OPS_MAX,  OPS_AND,      OPS_OR,
                             OPS_XOR,  OPS_DOT4, OPS_DOT2, OPS_DOT2X2,   OPS_ADD2};
  if (depth <= 0 || below(8) == 0) return leaf(x);
  int k = below(12);
  if (k == 0) return uop_where(x->st, condition(x, depth - 1), expr(x, depth - 1), expr(x, depth - 1));
  if (x->dtype != DT_INDEX) /* the last two are of i32 alone */
    return uop_alu2(x->st, data[below((int)TG_COUNT(data) - (x->dtype != DT_I32 ? 2 : 0))],
                    expr(x, depth - 1), expr(x, depth - 1));
  if (k < 5) return uop_alu2(x->st, below(3) ? OPS_ADD : OPS_SUB, expr(x, depth - 1), expr(x, depth - 1));
  if (k < 7)
    return uop_alu2(x->st, OPS_MUL, expr(x, depth - 1),
                    below(6) ? uop_const_int(x->st, DT_INDEX, pick(-12, 12)) : leaf(x));
  if (k < 8) return uop_alu2(x->st, OPS_MAX, expr(x, depth - 1), leaf(x));
  int64_t by = below(5) ? pick(1, 16) : pick(-8, -1);
  return uop_alu2(x->st, k < 10 ? OPS_FLOORDIV : OPS_FLOORMOD, expr(x, depth - 1),
                  uop_const_int(x->st, DT_INDEX, by));
}

static int64_t wrap(DType d, __int128 v) {
  switch (d) {
  case DT_BOOL: return v != 0;
  case DT_I8: return (int8_t)v;
  case DT_U8: return (uint8_t)v;
  case DT_I32: return (int32_t)v;
  case DT_U32: return (uint32_t)v;
  default: return (int64_t)v;
  }
}

static __int128 floor_div(__int128 a, __int128 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* What ops.def says, in 128 bits. False: not an operation that an expression may contain. */
static bool evaluate_one(const UOp *u, const int64_t *val, const int64_t *at, int64_t *out) {
  __int128 a = u->nsrc > 0 ? val[u->src[0]->id] : 0, b = u->nsrc > 1 ? val[u->src[1]->id] : 0, r;
  switch (u->op) {
  case OPS_CONST: r = u->arg.v.i; break;
  case OPS_RANGE: r = at[u->arg.range.id]; break;
  case OPS_CAST: r = a; break;
  case OPS_NEG: r = -a; break;
  case OPS_ADD: r = u->dtype == DT_BOOL ? a || b : a + b; break;
  case OPS_SUB: r = a - b; break;
  case OPS_MUL: r = a * b; break;
  case OPS_FLOORDIV: r = b ? floor_div(a, b) : 0; break;
  case OPS_FLOORMOD: r = b ? a - floor_div(a, b) * b : a; break;
  case OPS_CDIV: r = b ? a / b : 0; break;
  case OPS_CMOD: r = b ? a % b : a; break;
  case OPS_MAX: r = a > b ? a : b; break;
  case OPS_AND: r = a & b; break;
  case OPS_OR: r = a | b; break;
  case OPS_XOR: r = a ^ b; break;
  case OPS_DOT4:
    r = 0;
    for (int i = 0; i < 32; i += 8)
      r += (uint8_t)((uint64_t)a >> i) * (int8_t)((uint64_t)b >> i);
    break;
  case OPS_DOT2:
    r = (__int128)(int16_t)a * (int16_t)b + (__int128)(int16_t)(a >> 16) * (int16_t)(b >> 16);
    break;
  case OPS_DOT2X2:
    r = 0;
    for (int i = 0; i < 32; i += 16) {
      int two = (uint8_t)((uint64_t)a >> i) * (int8_t)((uint64_t)b >> i) +
                (uint8_t)((uint64_t)a >> (i + 8)) * (int8_t)((uint64_t)b >> (i + 8));
      r |= (__int128)(uint16_t)(two < INT16_MIN ? INT16_MIN : two > INT16_MAX ? INT16_MAX : two) << i;
    }
    break;
  case OPS_ADD2: r = (uint16_t)(a + b) | (__int128)(uint16_t)((a >> 16) + (b >> 16)) << 16; break;
  case OPS_SHL: r = b >= 0 && b < 64 ? a * ((__int128)1 << b) : 0; break;
  case OPS_SHR: r = b >= 0 && b < 64 ? a >> b : a < 0 ? -1 : 0; break;
  case OPS_CMPLT: r = a < b; break;
  case OPS_CMPNE: r = a != b; break;
  case OPS_CMPEQ: r = a == b; break;
  case OPS_WHERE: r = a ? b : val[u->src[2]->id]; break;
  case OPS_MULACC: r = a * b + val[u->src[2]->id]; break;
  default: return false;
  }
  *out = wrap((DType)u->dtype, r);
  return true;
}

/* NULL: fine; else the node that is not */
static const UOp *evaluate(const UOpVec *order, int64_t *val, const int64_t *at, const char **why) {
  for (size_t i = 0; i < order->len; i++) {
    const UOp *u = order->at[i];
    if (!evaluate_one(u, val, at, &val[u->id])) return *why = "no expression may contain it", u;
    if (dtype_is_int((DType)u->dtype) && u->dtype != DT_U64 && (val[u->id] < u->vmin || val[u->id] > u->vmax))
      return *why = "its value is outside its bounds", u;
  }
  return NULL;
}

static bool small(const UOpVec *order) { /* index expressions are exact only while they fit */
  for (size_t i = 0; i < order->len; i++)
    if (order->at[i]->dtype == DT_INDEX &&
        (order->at[i]->vmin < -(1ll << 40) || order->at[i]->vmax > 1ll << 40))
      return false;
  return order->len < MOST_NODES;
}

static bool say_expr(const char *what, const UOp *e, const UOp *s, const UOp *node, const int64_t *at,
                     const int64_t *extent) {
  Str t;
  str_init(&t, NULL);
  str_printf(&t, "expressions: %s\n  from  ", what), uop_expr(&t, e, 200);
  if (s) str_put(&t, "\n  to    "), uop_expr(&t, s, 200);
  if (node) str_put(&t, "\n  node  "), uop_line(&t, node), str_put(&t, ": "), uop_expr(&t, node, 100);
  for (int i = 0; at && i < NRANGE; i++)
    str_printf(&t, "%sr%d = %lld of %lld", i ? ", " : "\n  at    ", i, (long long)at[i],
               (long long)extent[i]);
  printf("%s\n", str_text(&t));
  str_free(&t);
  return false;
}

static bool one_expression(void) {
  static const DType kinds[] = {DT_INDEX, DT_INDEX, DT_INDEX, DT_I32, DT_U8, DT_I8, DT_U32};
  static int64_t val[1 << 16];
  Expr x = {.dtype = kinds[below((int)TG_COUNT(kinds))]};
  x.st = store_new(&x.mem);
  for (int i = 0; i < NRANGE; i++)
    x.extent[i] = pick(1, below(3) ? 8 : 40), x.range[i] = uop_range(x.st, x.extent[i], i, AXIS_LOOP);
  UOp *e = below(5) ? expr(&x, 2 + below(4)) : condition(&x, 3);
  UOpVec before = {0}, after = {0};
  bool ok = true;
  if (uop_toposort(x.st, &x.mem, &e, 1, &before) && small(&before)) {
    UOp *s = uop_simplify(x.st, &x.mem, e);
    if (broken && s && s->op == OPS_FLOORMOD) s = s->src[0];
    if (!s || s->dtype != e->dtype)
      ok = say_expr(s ? "another dtype" : "not simplified", e, s, NULL, NULL, NULL);
    else if (uop_toposort(x.st, &x.mem, &s, 1, &after) && store_id_limit(x.st) < TG_COUNT(val))
      for (int k = 0; ok && k < 32; k++) {
        int64_t at[NRANGE], want;
        const char *why = "";
        for (int i = 0; i < NRANGE; i++)
          at[i] = k == 0 ? 0 : k == 1 ? x.extent[i] - 1 : pick(0, x.extent[i] - 1);
        const UOp *bad = evaluate(&before, val, at, &why);
        want = val[e->id];
        if (!bad) bad = evaluate(&after, val, at, &why);
        if (bad)
          ok = say_expr(why, e, s, bad, at, x.extent);
        else if (val[s->id] != want)
          ok = say_expr("another value", e, s, NULL, at, x.extent);
      }
  }
  vec_free(&x.mem, &before), vec_free(&x.mem, &after);
  store_free(x.st);
  return ok;
}

/* ---- text */
static bool print(UOpText *t, Str *s) {
  return t->program.at ? uop_print_list(s, &t->program, t->mem)
                       : uop_print(s, t->st, t->mem, t->roots.at, t->roots.len);
}

static bool one_text(void) {
  Expr x = {.dtype = below(2) ? DT_INDEX : DT_I32};
  x.st = store_new(&x.mem);
  for (int i = 0; i < NRANGE; i++)
    x.range[i] = uop_range(x.st, pick(1, 9), i, AXIS_LOOP);
  UOp *e = expr(&x, 4);
  Str a, b, c;
  str_init(&a, &x.mem), str_init(&b, &x.mem), str_init(&c, &x.mem);
  bool ok = uop_print(&a, x.st, &x.mem, &e, 1);
  static const char *const words[] = {
      "(",  ")",    "[",     "]",   ",",  "=",     "-1",    "9223372036854775808",
      "0x", "nan(", "CONST", "u1",  "r0", "RANGE", "PARAM", "roots",
      "\n", "#",    "\xff",  "f32", " x4"};
  for (int i = below(5); ok && i > 0 && a.len > 1; i--) {
    size_t at = draw() % a.len;
    int k = below(3);
    if (k == 0)
      a.at[at] = (char)draw();
    else if (k == 1)
      memmove(a.at + at, a.at + at + 1, a.len - at), a.len--;
    else {
      const char *w = words[below((int)TG_COUNT(words))];
      size_t n = strlen(w);
      str_put(&a, w);
      memmove(a.at + at + n, a.at + at, a.len - n - at), memcpy(a.at + at, w, n);
    }
  }
  char *exact = malloc(a.len + 1); /* of its own size, so that a sanitizer sees a read past the end */
  memcpy(exact, a.at, a.len + 1);
  UOpText t = {.mem = &x.mem}, u = {.mem = &x.mem};
  UOpStore *one = store_new(&x.mem), *two = store_new(&x.mem);
  TgError err = {0};
  if (uop_parse(&t, one, &x.mem, exact, a.len, &err)) {
    if (print(&t, &b) && (!uop_parse(&u, two, &x.mem, str_text(&b), b.len, &err) || !print(&u, &c) ||
                          strcmp(str_text(&b), str_text(&c))))
      ok = false,
      printf("text: what is read does not print and read back: %s\n%s\n---- as\n%s\n---- then\n%s\n", err.msg,
             exact, str_text(&b), str_text(&c));
  } else if (!err.status || !err.msg[0])
    ok = false, printf("text: refused without a reason:\n%s\n", exact);
  free(exact);
  uop_text_free(&t), uop_text_free(&u);
  store_free(one), store_free(two);
  str_free(&a), str_free(&b), str_free(&c);
  store_free(x.st);
  return ok;
}

/* ---- graphs. A step makes tensor t<i> from earlier ones; the same table builds it and writes it as C. */
enum { STEPS = 13, ELEMENTS = 600 };

typedef enum Kind {
  K_DATA,
  K_NEG,
  K_ABS,
  K_RELU,
  K_ADD,
  K_SUB,
  K_MUL,
  K_MAX,
  K_MIN,
  K_WHERE,
  K_SUM,
  K_MAXR,
  K_MINR,
  K_ARGMAX,
  K_FLIP,
  K_PERMUTE,
  K_FLAT,
  K_SPLIT,
  K_PAD,
  K_SHRINK,
  K_EXPAND,
  K_CAT,
  K_MATMUL,
  K_CUMSUM,
  K_CUMMAX,
  K_SORT,
  K_ARGSORT,
  K_TAKE,
  K_SCATTER,
  K_CAST,
  K_MOD,
  K_KINDS
} Kind;

typedef struct Step {
  Kind kind;
  int a, b, axis;
  int64_t p, q, shape[4];
  int rank;
  TgDType dtype;
} Step;

typedef struct Program {
  Step at[STEPS];
  int n;
} Prog;

enum { SHARDED = 4 }; /* of the devices: four INTERPs */

static const char *const device_names[] = {"INTERP", "INTERP:CUDA", "CPU", "CPU", "INTERP"};
static const char *const shard_names[] = {"INTERP", "INTERP:1", "INTERP:2", "INTERP:3"};

/* How the data of a step lie on several devices; axis -1: all on each. */
typedef struct Place {
  int axis;
  int64_t bound[5];
} Place;

static Place place_of(const Step *s) {
  uint64_t h = (uint64_t)(s->p * 7919 + s->q * 104729 + s->shape[0] * 31 + (int)s->dtype);
  Place at = {.axis = (int)(h % (uint64_t)(s->rank + 1)) - 1};
  int64_t n = at.axis < 0 ? 0 : s->shape[at.axis];
  for (int k = 0; k < 5; k++)
    at.bound[k] = h / 16 % 2 ? (n * k + 3) / 4 : n * k * k / 16; /* even or not, some of them empty */
  return at;
}

static TgTensor *placed(TgTensor *t, const Step *s) {
  Place at = place_of(s);
  return at.axis < 0 ? tg_replicate(t, 4, shard_names)
                     : tg_shard(t, 4, shard_names, at.axis, .bounds = at.bound);
}

/* Values stay whole and small: what may grow is clamped. */
static TgTensor *tame(TgTensor *t) { return tg_clamp(t, -64, 64); }

static TgTensor *build(TgContext *c, const Step *s, TgTensor **t, bool sharded) {
  TgTensor *a = t[s->a], *b = t[s->b];
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0}, order[TG_MAX_RANK];
  int n = tg_ndim(a);
  switch (s->kind) {
  case K_DATA: {
    int32_t v[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
      v[i] = (int32_t)((i * s->p + s->q) % 23 - 11);
    TgTensor *x = tg_cast(tg_from(c, v, TG_I32, s->rank, s->shape), s->dtype);
    return sharded ? placed(x, s) : x;
  }
  case K_NEG: return tg_neg(a);
  case K_ABS: return tg_abs(a);
  case K_RELU: return tg_relu(a);
  case K_ADD: return tame(tg_add(a, b));
  case K_SUB: return tame(tg_sub(a, b));
  case K_MUL: return tame(tg_mul(a, b));
  case K_MAX: return tg_maximum(a, b);
  case K_MIN: return tg_minimum(a, b);
  case K_WHERE: return tg_where(tg_lt(a, b), b, a);
  case K_SUM: return tame(tg_sum(a, .axis = TG_AXES(s->axis), .keepdim = s->p));
  case K_MAXR: return tg_max(a, .axis = TG_AXES(s->axis), .keepdim = s->p);
  case K_MINR: return tg_min(a, .axis = TG_AXES(s->axis), .keepdim = s->p);
  case K_ARGMAX: return tg_argmax(a, .axis = TG_AXES(s->axis), .keepdim = s->p);
  case K_FLIP: order[0] = s->axis; return tg_flip(a, 1, order);
  case K_PERMUTE: return tg_transpose(a, s->axis, (int)s->p);
  case K_FLAT: return tg_flatten(a, 0, -1);
  case K_SPLIT: return tg_reshape(a, TG_SHAPE(s->p, -1));
  case K_PAD: lo[s->axis] = s->p, hi[s->axis] = s->q; return tg_pad(a, lo, hi);
  case K_SHRINK: return tg_slice(a, s->axis, s->p, s->q);
  case K_EXPAND:
    for (int i = 0; i < n; i++)
      lo[i + 1] = tg_dim(a, i);
    lo[0] = s->p;
    return tg_expand(tg_unsqueeze(a, 0), n + 1, lo);
  case K_CAT: return tg_cat((TgTensor *[]){a, b}, 2, s->axis);
  case K_MATMUL: return tame(tg_matmul(a, tg_transpose(a, 0, 1)));
  case K_CUMSUM: return tame(tg_cumsum(a, s->axis));
  case K_CUMMAX: return tg_cummax(a, s->axis, NULL);
  case K_SORT: return tg_sort(a, NULL, .axis = TG_AXES(s->axis), .descending = s->p);
  case K_ARGSORT: return tg_argsort(a, .axis = TG_AXES(s->axis));
  case K_TAKE: return tg_take(a, tg_cast(b, TG_I32));
  case K_SCATTER:
    return tame(
        tg_scatter(a, s->axis, tg_cast(b, TG_I32), a, .reduce = s->p ? TG_SCATTER_ADD : TG_SCATTER_SET));
  case K_CAST: return tg_cast(a, s->dtype);
  case K_MOD: return tg_mod(a, tg_full_like(a, (double)s->p));
  default: return NULL;
  }
}

static const struct {
  TgDType id;
  const char *name;
} kinds[] = {{TG_F32, "TG_F32"},         {TG_F32, "TG_F32"}, {TG_I32, "TG_I32"},   {TG_I64, "TG_I64"},
             {TG_I16, "TG_I16"},         {TG_F16, "TG_F16"}, {TG_BF16, "TG_BF16"}, {TG_FP8E4M3, "TG_FP8E4M3"},
             {TG_FP8E5M2, "TG_FP8E5M2"}, {TG_U8, "TG_U8"}};

static TgDType kind_random(void) { return kinds[below((int)TG_COUNT(kinds))].id; }

static const char *type_name(TgDType d) {
  size_t i = 0;
  while (i + 1 < TG_COUNT(kinds) && kinds[i].id != d)
    i++;
  return kinds[i].name;
}

static void write_step(const Step *s, int i) {
  static const char *const plain[K_KINDS] = {[K_NEG] = "tg_neg(t%d)",
                                             [K_ABS] = "tg_abs(t%d)",
                                             [K_RELU] = "tg_relu(t%d)",
                                             [K_FLAT] = "tg_flatten(t%d, 0, -1)",
                                             [K_ADD] = "tg_clamp(tg_add(t%d, t%d), -64, 64)",
                                             [K_SUB] = "tg_clamp(tg_sub(t%d, t%d), -64, 64)",
                                             [K_MUL] = "tg_clamp(tg_mul(t%d, t%d), -64, 64)",
                                             [K_MAX] = "tg_maximum(t%d, t%d)",
                                             [K_MIN] = "tg_minimum(t%d, t%d)"};
  long long p = (long long)s->p, q = (long long)s->q;
  if (s->kind == K_DATA) {
    printf("  int32_t v%d[%d]; for (int i = 0; i < %d; i++) v%d[i] = (i * %lld + %lld) %% 23 - 11;\n", i,
           ELEMENTS, ELEMENTS, i, p, q);
    printf("  TgTensor *t%d = tg_cast(tg_from(c, v%d, TG_I32, ", i, i);
    if (!s->rank) printf("TG_SCALAR");
    for (int k = 0; k < s->rank; k++)
      printf("%s%lld", k ? ", " : "TG_SHAPE(", (long long)s->shape[k]);
    printf("%s), %s);\n", s->rank ? ")" : "", type_name(s->dtype));
    return;
  }
  printf("  TgTensor *t%d = ", i);
  if (plain[s->kind]) printf(plain[s->kind], s->a, s->b); /* the formats stand just above */
  const char *keep = s->p ? ", .keepdim = true" : "";
  switch (s->kind) {
  case K_WHERE: printf("tg_where(tg_lt(t%d, t%d), t%d, t%d)", s->a, s->b, s->b, s->a); break;
  case K_SUM: printf("tg_clamp(tg_sum(t%d, .axis = TG_AXES(%d)%s), -64, 64)", s->a, s->axis, keep); break;
  case K_MAXR: printf("tg_max(t%d, .axis = TG_AXES(%d)%s)", s->a, s->axis, keep); break;
  case K_MINR: printf("tg_min(t%d, .axis = TG_AXES(%d)%s)", s->a, s->axis, keep); break;
  case K_ARGMAX: printf("tg_argmax(t%d, .axis = TG_AXES(%d)%s)", s->a, s->axis, keep); break;
  case K_FLIP: printf("tg_flip(t%d, 1, (int64_t[]){%d})", s->a, s->axis); break;
  case K_PERMUTE: printf("tg_transpose(t%d, %d, %lld)", s->a, s->axis, p); break;
  case K_SPLIT: printf("tg_reshape(t%d, TG_SHAPE(%lld, -1))", s->a, p); break;
  case K_PAD:
    printf("tg_pad(t%d, (int64_t[16]){[%d] = %lld}, (int64_t[16]){[%d] = %lld})", s->a, s->axis, p, s->axis,
           q);
    break;
  case K_SHRINK: printf("tg_slice(t%d, %d, %lld, %lld)", s->a, s->axis, p, q); break;
  case K_EXPAND:
    printf("tg_expand(tg_unsqueeze(t%d, 0), %d, (int64_t[]){%lld", s->a, s->rank, p);
    for (int k = 1; k < s->rank; k++)
      printf(", -1");
    printf("})");
    break;
  case K_CAT: printf("tg_cat((TgTensor *[]){t%d, t%d}, 2, %d)", s->a, s->b, s->axis); break;
  case K_MATMUL: printf("tg_clamp(tg_matmul(t%d, tg_transpose(t%d, 0, 1)), -64, 64)", s->a, s->a); break;
  case K_CUMSUM: printf("tg_clamp(tg_cumsum(t%d, %d), -64, 64)", s->a, s->axis); break;
  case K_CUMMAX: printf("tg_cummax(t%d, %d, NULL)", s->a, s->axis); break;
  case K_SORT: printf("tg_sort(t%d, NULL, .axis = TG_AXES(%d), .descending = %lld)", s->a, s->axis, p); break;
  case K_ARGSORT: printf("tg_argsort(t%d, .axis = TG_AXES(%d))", s->a, s->axis); break;
  case K_TAKE: printf("tg_take(t%d, tg_cast(t%d, TG_I32))", s->a, s->b); break;
  case K_SCATTER:
    printf("tg_clamp(tg_scatter(t%d, %d, tg_cast(t%d, TG_I32), t%d, .reduce = %s), -64, 64)", s->a, s->axis,
           s->b, s->a, s->p ? "TG_SCATTER_ADD" : "TG_SCATTER_SET");
    break;
  case K_CAST: printf("tg_cast(t%d, %s)", s->a, type_name(s->dtype)); break;
  case K_MOD: printf("tg_mod(t%d, tg_full_like(t%d, %lld))", s->a, s->a, p); break;
  default: break;
  }
  printf(";\n");
}

static void write_place(const Step *s, int i) {
  Place at = place_of(s);
  printf("  const char *d%d[] = {\"INTERP\", \"INTERP:1\", \"INTERP:2\", \"INTERP:3\"};\n", i);
  if (at.axis < 0) {
    printf("  t%d = tg_replicate(t%d, 4, d%d);\n", i, i, i);
    return;
  }
  printf("  const int64_t b%d[] = {", i);
  for (int k = 0; k < 5; k++)
    printf("%s%lld", k ? ", " : "", (long long)at.bound[k]);
  printf("};\n  t%d = tg_shard(t%d, 4, d%d, %d, .bounds = b%d);\n", i, i, i, at.axis, i);
}

static bool same_shape(TgTensor *a, TgTensor *b) {
  return tg_ndim(a) == tg_ndim(b) && !memcmp(tg_shape(a), tg_shape(b), (size_t)tg_ndim(a) * sizeof(int64_t));
}

/* A step that fits the tensors so far; kinds that do not are drawn again. */
static Step step_random(TgTensor **t, int n) {
  for (;;) {
    Step s = {.kind = (Kind)below(K_KINDS), .a = n ? below(4) ? n - 1 : below(n) : 0, .b = n ? below(n) : 0};
    if (!n || (s.kind == K_DATA && below(3) == 0)) {
      s.kind = K_DATA, s.rank = 1 + below(3), s.p = pick(1, 22), s.q = pick(0, 22), s.dtype = kind_random();
      for (int i = 0; i < s.rank; i++)
        s.shape[i] = pick(1, below(4) ? 6 : 8);
      return s;
    }
    if (s.kind == K_DATA) continue;
    TgTensor *a = t[s.a], *b = t[s.b];
    int rank = tg_ndim(a);
    s.axis = rank ? below(rank) : 0;
    int64_t dim = rank ? tg_dim(a, s.axis) : 1;
    switch (s.kind) {
    case K_ADD:
    case K_SUB:
    case K_MUL:
    case K_MAX:
    case K_MIN:
    case K_WHERE:
      if (!same_shape(a, b) && (rank && tg_ndim(b))) { /* broadcast against a row, a column or a number */
        if (tg_ndim(b) > rank) continue;
        bool fits = true;
        for (int i = 1; i <= tg_ndim(b); i++)
          fits = fits && (tg_dim(b, -i) == tg_dim(a, -i) || tg_dim(b, -i) == 1);
        if (!fits) continue;
      }
      break;
    case K_SUM:
    case K_MAXR:
    case K_MINR:
    case K_ARGMAX:
      s.p = below(2);
      if (!rank) continue;
      break;
    case K_FLIP:
    case K_CUMSUM:
    case K_CUMMAX:
    case K_SORT:
    case K_ARGSORT:
      s.p = below(2);
      if (!rank) continue;
      break;
    case K_TAKE:
      if (!rank || rank + tg_ndim(b) > 5 || tg_numel(b) * tg_numel(a) / tg_dim(a, 0) > ELEMENTS) continue;
      break;
    case K_SCATTER:
      s.p = below(2);
      if (!rank || !same_shape(a, b)) continue;
      break;
    case K_PERMUTE:
      s.p = rank ? below(rank) : 0;
      if (rank < 2 || s.p == s.axis) continue;
      break;
    case K_FLAT:
      if (rank < 2) continue;
      break;
    case K_SPLIT:
      for (s.p = pick(2, 6); s.p > 1 && tg_numel(a) % s.p; s.p--) {}
      if (s.p < 2) continue;
      break;
    case K_PAD:
      s.p = pick(0, 2), s.q = pick(0, 2);
      if (!rank || (!s.p && !s.q)) continue;
      break;
    case K_SHRINK:
      s.p = pick(0, dim - 1), s.q = pick(s.p + 1, dim);
      if (!rank) continue;
      break;
    case K_EXPAND:
      s.p = pick(2, 4), s.rank = rank + 1;
      if (rank > 4 || tg_numel(a) * s.p > ELEMENTS) continue;
      break;
    case K_CAT:
      if (!rank || !same_shape(a, b) || tg_dtype(a) != tg_dtype(b)) continue;
      break;
    case K_MATMUL:
      if (rank != 2) continue;
      break;
    case K_CAST:
      s.dtype = kind_random();
      if (s.dtype == tg_dtype(a)) continue;
      break;
    case K_MOD: s.p = pick(2, 9); break;
    default: break;
    }
    return s;
  }
}

enum { MOST_SOURCE = 200 << 10 }; /* bytes: a kernel with more takes the C compiler too long */

typedef struct Result {
  TgStatus status;
  char msg[400];
  size_t n;
  uint8_t at[ELEMENTS * 8 * 2];
  double slope[ELEMENTS * 2]; /* of the sum, by the first step's elements; nslope 0: not asked, or none */
  size_t nslope;
} Result;

/* The gradient of the sum of what a sharded program gives. */
static void slope_of(TgTensor *t, TgTensor *first, Result *r) {
  size_t n = (size_t)tg_numel(first);
  TgTensor *g = NULL;
  if (!tg_dtype_is_float(tg_dtype(t)) || !tg_dtype_is_float(tg_dtype(first)) || n > TG_COUNT(r->slope))
    return;
  if (!tg_gradient(tg_sum(t), &first, 1, &g) && !tg_read_f64(g, r->slope, n)) r->nslope = n;
}

/* Sums are made in another order: within what that changes. */
static bool slopes_differ(const Result *a, const Result *b) {
  double most = 1;
  for (size_t i = 0; i < a->nslope; i++)
    most = a->slope[i] > most ? a->slope[i] : -a->slope[i] > most ? -a->slope[i] : most;
  for (size_t i = 0; i < a->nslope && a->nslope == b->nslope; i++) {
    double d = a->slope[i] - b->slope[i];
    if (d > 1e-4 * most || -d > 1e-4 * most) return true;
  }
  return a->nslope != b->nslope;
}

static bool run_on(const Prog *p, int upto, int device, bool slope,
                   Result *r) { /* computes step `upto` alone */
  memset(r, 0, sizeof *r);
  setenv("TG_NOOPT", device == 3 ? "1" : "0", 1);
  TgContext *c =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device_names[device], .threads = 2});
  TgTensor *t[STEPS] = {NULL};
  for (int i = 0; i <= upto && !tg_error(c); i++)
    t[i] = build(c, &p->at[i], t, device == SHARDED);
  for (int i = 0; slope && i < upto && !tg_error(c); i += 3) /* some lie in memory before */
    tg_realize(t[i]);
  if (tg_dtype_is_float(tg_dtype(t[upto]))) t[upto] = tg_cast(t[upto], TG_F32);
  r->n = tg_nbytes(t[upto]);
  if (!tg_error(c) && r->n <= sizeof r->at) tg_read(t[upto], r->at, r->n);
  if (slope && !tg_error(c)) slope_of(t[upto], t[0], r);
  uint64_t text = tg_counters(c).largest_source;
  if (text > MOST_SOURCE)
    printf("  a kernel of %llu bytes on %s\n", (unsigned long long)text, device_names[device]), r->n = 0;
  r->status = tg_error(c);
  snprintf(r->msg, sizeof r->msg, "%s", tg_errmsg(c));
  /* MAX of zeros of both signs may have either; a NaN is a NaN */
  for (size_t i = 0; tg_dtype(t[upto]) == TG_F32 && i + 4 <= r->n; i += 4) {
    float f;
    memcpy(&f, r->at + i, 4);
    if (f == 0) memset(r->at + i, 0, 4);
    if (f != f) memset(r->at + i, 0xff, 4);
  }
  if (broken && device && r->n && p->at[upto].kind == K_FLIP) r->at[0] ^= 1;
  tg_close(c);
  return !r->status;
}

static bool differs(const Prog *p, int upto, int device, Result *want, Result *got) {
  bool slope = device == SHARDED;
  bool a = run_on(p, upto, 0, slope, want), b = run_on(p, upto, device, slope, got);
  if (slope && a && b && slopes_differ(want, got)) return true;
  return a != b || !a || want->n != got->n || memcmp(want->at, got->at, want->n);
}

/* Only the steps that the last one needs, renumbered. */
static void prune(Prog *p) {
  bool used[STEPS] = {false};
  int to[STEPS], n = 0;
  used[p->n - 1] = true;
  for (int i = p->n - 1; i >= 0; i--) {
    if (!used[i] || p->at[i].kind == K_DATA) continue;
    used[p->at[i].a] = true;
    bool two = (p->at[i].kind >= K_ADD && p->at[i].kind <= K_WHERE) || p->at[i].kind == K_CAT ||
               p->at[i].kind == K_TAKE || p->at[i].kind == K_SCATTER;
    if (two)
      used[p->at[i].b] = true;
    else
      p->at[i].b = p->at[i].a;
  }
  for (int i = 0; i < p->n; i++)
    if (used[i])
      to[i] = n, p->at[n] = p->at[i], p->at[n].a = to[p->at[i].a], p->at[n].b = to[p->at[i].b], n++;
  p->n = n;
}

static void write_program(const Prog *p, int device, const Result *want, const Result *got) {
  printf("graphs: %s and %s%s differ: %s%s%s\n", device_names[0], device_names[device],
         device == SHARDED ? " of four devices"
         : device == 3     ? " with TG_NOOPT=1"
                           : "",
         want->status ? want->msg : "", got->status ? got->msg : "",
         want->status || got->status ? "" : "other numbers");
  printf("#include <stdio.h>\n#include <tg.h>\nint main(void) {\n  TgContext *c = tg_open(NULL);   /* "
         "TG_DEV=%s and TG_DEV=%s%s */\n",
         device_names[0], device_names[device], device == 3 ? " TG_NOOPT=1" : "");
  for (int i = 0; i < p->n; i++) {
    write_step(&p->at[i], i);
    if (device == SHARDED && p->at[i].kind == K_DATA) write_place(&p->at[i], i);
  }
  printf("  double out[%d]; tg_read_f64(t%d, out, (size_t)tg_numel(t%d));\n", ELEMENTS * 2, p->n - 1,
         p->n - 1);
  printf("  for (int i = 0; i < tg_numel(t%d); i++) printf(\"%%g%%c\", out[i], i + 1 < tg_numel(t%d) ? ' ' : "
         "'\\n');\n",
         p->n - 1, p->n - 1);
  printf("  puts(tg_errmsg(c)); tg_close(c);\n}\n");
}

static bool one_graph(int from, int devices) {
  Prog p = {.n = 0};
  TgTensor *t[STEPS] = {NULL};
  setenv("TG_NOOPT", "0", 1);
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C"});
  int data = 0, want_steps = 3 + below(STEPS - 5);
  for (; p.n < want_steps; p.n++) {
    Step s;
    int tries = 0;
    do
      s = step_random(t, p.n);
    while ((s.kind == K_DATA && data == 2) && ++tries < 100); /* data takes two lines */
    data += s.kind == K_DATA;
    p.at[p.n] = s;
    t[p.n] = build(c, &s, t, false);
    if (!t[p.n]) { /* the generator made what the front end refuses */
      printf("graphs: refused: %s\n", tg_errmsg(c));
      write_step(&s, p.n);
      tg_close(c);
      return false;
    }
    if (tg_numel(t[p.n]) > ELEMENTS) {
      want_steps = p.n;
      break;
    }
  }
  tg_close(c);
  if (!p.n) return true;
  Result want, got;
  for (int device = from; device < devices; device++) {
    if (!differs(&p, p.n - 1, device, &want, &got)) continue;
    prune(&p);
    for (int k = 0; k < p.n; k++) /* the first step that differs by itself is enough */
      if (differs(&p, k, device, &want, &got)) {
        p.n = k + 1;
        break;
      }
    prune(&p);
    differs(&p, p.n - 1, device, &want, &got);
    write_program(&p, device, &want, &got);
    return false;
  }
  return true;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
  double seconds = 0;
  int64_t cases = 0, done[8] = {0};
  uint64_t seed = (uint64_t)time(NULL);
  const char *only = NULL;
  static const char *const names[] = {"expressions", "text",     "graphs", "files",
                                      "memory",      "programs", "export", "shards"};
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--broken"))
      broken = true;
    else if (i + 1 == argc)
      return fprintf(stderr, "fuzz: %s?\n", argv[i]), 2;
    else if (!strcmp(argv[i], "--seconds"))
      seconds = atof(argv[++i]);
    else if (!strcmp(argv[i], "--cases"))
      cases = atoll(argv[++i]);
    else if (!strcmp(argv[i], "--seed"))
      seed = strtoull(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--only"))
      only = argv[++i];
    else
      return fprintf(stderr, "fuzz: %s?\n", argv[i]), 2;
  }
  if (!cases && seconds == 0) seconds = 30;
  int found = 0;
  setenv("TG_CACHE", "0", 0); /* thousands of kernels that nobody asks for again */
  char folder[] = "/tmp/tg-fuzz-XXXXXX", line[64];
  if (!mkdtemp(folder)) return fprintf(stderr, "fuzz: no folder\n"), 2;
  double start = now();
  for (int64_t i = 0; !found && (cases ? i < cases : now() - start < seconds); i++) {
    /* --seed names the first case that is run: a case can be had alone */
    rng = seed + (uint64_t)i * 0x632be59bd9b4e019u;
    uint64_t mine = rng;
    bool ok = true;
    for (int kind = 0; ok && kind < 8; kind++) {
      if (only && strcmp(only, names[kind])) continue;
      rng = mine + (uint64_t)kind; /* no kind's numbers depend on the others */
      for (int k = 0; ok && kind == 0 && k < 40; k++)
        ok = one_expression(), done[0]++;
      for (int k = 0; ok && kind == 1 && k < 10; k++)
        ok = one_text(), done[1]++;
      for (int k = 0; ok && kind == 3 && k < 10; k++)
        ok = fuzz_file(mine + (uint64_t)(16 * k + 3), broken), done[3]++;
      for (int k = 0; ok && kind == 4 && k < 20; k++)
        ok = fuzz_memory(mine + (uint64_t)k, i % 16 ? "INTERP" : "CPU", false, broken), done[4]++;
      if (kind == 4) fuzz_memory_end();
      for (int k = 0; ok && kind == 5 && k < 2; k++)
        ok = fuzz_program(mine + (uint64_t)(16 * k + 5), broken), done[5]++;
      if (kind == 6 && (only || i % 16 == 0)) ok = fuzz_export(mine + 7, folder, broken), done[6]++;
      for (int k = 0; ok && kind == 7 && k < 4; k++)
        ok = one_graph(SHARDED, SHARDED + 1), done[7]++;
      for (int k = 0; ok && kind == 7 && k < 4; k++)
        ok = fuzz_memory(mine + (uint64_t)k, "INTERP", true, broken), done[7]++;
      if (kind == 7) fuzz_memory_end();
      if (kind == 2)
        ok = one_graph(1, i % 8 ? 2 : SHARDED), done[2]++; /* the compiler costs most of the time */
    }
    if (!ok) found = 1, printf("found by: fuzz --cases 1 --seed %llu\n", (unsigned long long)mine);
  }
  snprintf(line, sizeof line, "rm -rf %s", folder);
  if (system(line)) found = 1;
  fprintf(stderr,
          "fuzz: seed %llu: %lld expressions, %lld texts, %lld graphs, %lld files, %lld memories, %lld "
          "programs, %lld exports, %lld sharded graphs: %s\n",
          (unsigned long long)seed, (long long)done[0], (long long)done[1], (long long)done[2],
          (long long)done[3], (long long)done[4], (long long)done[5], (long long)done[6], (long long)done[7],
          found ? "found one" : "nothing found");
  return found;
}
