/* text.c: tensors from and to text: nested lists, as a reader writes them. In: "[[1, 2], [3, 4]]". Out: a
 * tensor whose shape is the nesting. */
#include "tensor/front.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* State of one walk over the text: depth, sizes and elements. The first list that is closed at depth d
 * sets size[d]; the following ones must agree. */
typedef enum Kind { KIND_BOOL, KIND_INT, KIND_FLOAT } Kind;

typedef struct Item {
  double f;
  int64_t i;
} Item;

typedef struct Reader {
  TgContext *ctx;
  const char *text, *at;
  int ndim;
  int64_t size[TG_MAX_RANK];
  bool leaf_seen, known[TG_MAX_RANK];
  Kind kind;
  Vec(Item) items;
} Reader;

static bool refuse(Reader *r, const char *why) {
  error_set(&r->ctx->err, TG_ERR_VALUE, "from_text: %s at column %d of \"%.200s\"", why,
            (int)(r->at - r->text) + 1, r->text);
  return false;
}

static bool word(Reader *r, const char *w) {
  size_t n = strlen(w);
  for (size_t i = 0; i < n; i++)
    if (tolower((unsigned char)r->at[i]) != w[i]) return false;
  if (isalnum((unsigned char)r->at[n])) return false;
  r->at += n;
  return true;
}

static bool element(Reader *r) {
  Item v = {0};
  Kind k = KIND_BOOL;
  const char *start = r->at;
  if (word(r, "true")) {
    v.i = 1;
    v.f = 1;
  } else if (!word(r, "false")) {
    bool minus = *r->at == '-';
    if (*r->at == '-' || *r->at == '+') r->at++;
    if (word(r, "nan")) {
      v.f = (double)NAN;
      k = KIND_FLOAT;
    } else if (word(r, "inf") || word(r, "infinity")) {
      v.f = minus ? -INFINITY : INFINITY;
      k = KIND_FLOAT;
    } else if (isdigit((unsigned char)*r->at) || *r->at == '.') {
      char *end, *iend;
      v.f = strtod(start, &end);
      v.i = (int64_t)strtoull(r->at, &iend, 0);
      if (minus) v.i = (int64_t)(0 - (uint64_t)v.i);
      k = iend == end ? KIND_INT : KIND_FLOAT;
      r->at = end > iend ? end : iend;
      if (end == start) return refuse(r, "no number");
    } else
      return refuse(r, "no number");
  }
  r->kind = TG_MAX(r->kind, k);
  return vec_push(&r->ctx->mem, &r->items, v) || (error_no_memory(&r->ctx->err, "from_text"), false);
}

static void blanks(Reader *r) {
  while (isspace((unsigned char)*r->at))
    r->at++;
}

/* The first number decides the rank, and the first list of each depth decides its length. All others must
 * agree. */
static bool read_list(Reader *r) {
  int64_t count[TG_MAX_RANK] = {0};
  int depth = 0;
  for (;;) {
    blanks(r);
    if (*r->at == '[') {
      if (depth == TG_MAX_RANK) return refuse(r, "more than 16 axes");
      if (r->leaf_seen && depth >= r->ndim) return refuse(r, "a list where the others have a number: ragged");
      count[depth++] = 0;
      r->at++;
      if (!r->leaf_seen) r->ndim = TG_MAX(r->ndim, depth);
      blanks(r);
      if (*r->at != ']') continue;
    } else {
      if (r->leaf_seen && depth != r->ndim) return refuse(r, "a number where the others have a list: ragged");
      if (!r->leaf_seen) {
        r->leaf_seen = true;
        r->ndim = depth;
      }
      if (!element(r)) return false;
      if (depth == 0) return true;
      count[depth - 1]++;
    }
    for (;;) { /* after an element or a list: more elements, or the end of lists */
      blanks(r);
      if (*r->at == ',') {
        r->at++, blanks(r);
        if (*r->at != ']') break;
      }
      if (*r->at != ']') return refuse(r, "neither ',' nor ']'");
      depth--;
      if (r->known[depth] && r->size[depth] != count[depth])
        return refuse(r, "a list of another length than those beside it: ragged");
      r->known[depth] = true;
      r->size[depth] = count[depth];
      r->at++;
      if (depth == 0) return true;
      count[depth - 1]++;
    }
  }
}

TgTensor *tg_from_text_opt(TgContext *ctx, const char *text, const TgDTypeOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "from_text", TgDTypeOptions, o, opt);
  TG_REQUIRE(ctx, text, TG_ERR_VALUE, "from_text: no text");
  Reader r = {.ctx = ctx, .text = text, .at = text};
  bool ok = read_list(&r);
  if (ok) {
    blanks(&r);
    ok = !*r.at || refuse(&r, "more text after the list");
  }
  int64_t n = (int64_t)r.items.len, total = 1;
  for (int i = 0; i < r.ndim; i++)
    total *= r.size[i];
  if (ok && total != n) ok = refuse(&r, "lists of different depth: ragged");
  if (n == 0) r.kind = KIND_FLOAT;
  TgTensor *t = NULL;
  if (ok) {
    bool wide = false, wider = false;
    for (int64_t i = 0; i < n && r.kind != KIND_FLOAT; i++) {
      wide = wide || r.items.at[i].i != (int32_t)r.items.at[i].i;
      wider = wider || (r.items.at[i].f > 0 && r.items.at[i].i < 0);
    }
    TgDType d = o.dtype                ? o.dtype
                : r.kind == KIND_FLOAT ? TG_F32
                : r.kind == KIND_BOOL  ? TG_BOOL
                : wider                ? TG_U64
                : wide                 ? TG_I64
                                       : TG_I32;
    DType to = dtype_of(d, DT_VOID), from = r.kind == KIND_FLOAT ? DT_F64 : wider ? DT_U64 : DT_I64;
    int on = ctx->calls->find(ctx, "from_text", o.device);
    char *v = to ? mem_alloc(&ctx->mem, (size_t)(n + 1) * 8) : NULL;
    for (int64_t i = 0; v && i < n; i++) {
      Item *e = &r.items.at[i];
      scalar_store(to, scalar_cast(to, from, from == DT_F64 ? (Scalar){.f = e->f} : (Scalar){.i = e->i}),
                   v + (size_t)i * dtype_size(to));
    }
    if (!to)
      error_set(&ctx->err, TG_ERR_DTYPE, "from_text: unknown dtype %d", (int)d);
    else if (!v)
      error_no_memory(&ctx->err, "from_text");
    else
      t = on < 0 ? NULL : tensor_from(ctx, on, v, d, r.ndim, r.size);
    mem_free(&ctx->mem, v);
  }
  vec_free(&ctx->mem, &r.items);
  return t;
}

static void put_value(Str *s, DType d, double f, int64_t i) {
  char b[40];
  if (d == DT_BOOL) {
    str_put(s, i ? "true" : "false");
    return;
  }
  if (!dtype_is_float(d)) {
    snprintf(b, sizeof b, d == DT_U64 ? "%llu" : "%lld", (long long)i);
  } else if (isnan(f))
    snprintf(b, sizeof b, "nan");
  else if (isinf(f))
    snprintf(b, sizeof b, f < 0 ? "-inf" : "inf");
  else { /* the fewest digits that read back as the same value */
    int most = d == DT_F64 ? 17 : d == DT_F32 ? 9 : 5;
    for (int p = 1; p <= most; p++) {
      snprintf(b, sizeof b, "%.*e", p - 1, f);
      double back = strtod(b, NULL);
      if (d == DT_F64   ? back != f
          : d == DT_F32 ? (float)back != (float)f
                        : scalar_round(d, (Scalar){.f = back}).f != f)
        continue;
      int e = atoi(strchr(b, 'e') + 1); /* as a plain number if that is short */
      if (e >= -5 && e < 16) snprintf(b, sizeof b, "%.*f", TG_MAX(p - 1 - e, 1), f);
      break;
    }
  }
  str_put(s, b);
}

/* Prints n elements nested by these axes. Brackets are found by counting: an index that wraps to 0 closes
 * a list, and an index of 0 means that its list was just opened. */
static void put_nested(Str *o, const int64_t *sizes, int axes, int64_t n,
                       void (*leaf)(Str *o, const void *leaves, int64_t i), const void *leaves) {
  int64_t at[TG_MAX_RANK] = {0};
  for (int64_t i = 0; i < n; i++) {
    int open = axes;
    while (open > 0 && at[open - 1] == 0)
      open--;
    if (i) str_put(o, ", ");
    for (int k = open; k < axes; k++)
      str_put(o, "[");
    leaf(o, leaves, i);
    for (int k = axes - 1; k >= 0; k--) {
      if (++at[k] < sizes[k]) break;
      at[k] = 0;
      str_put(o, "]");
    }
  }
}

/* Elements as they were read: double for a float dtype, otherwise int64_t. */
typedef struct Elements {
  DType dtype;
  const void *at;
} Elements;

static void put_element(Str *o, const void *leaves, int64_t i) {
  const Elements *e = leaves;
  bool is_float = dtype_is_float(e->dtype);
  put_value(o, e->dtype, is_float ? ((const double *)e->at)[i] : 0,
            is_float ? 0 : ((const int64_t *)e->at)[i]);
}

static void put_empty(Str *o, const void *leaves, int64_t i) { (void)leaves, (void)i, str_put(o, "[]"); }

const char *tg_to_text(TgTensor *t) {
  if (!t) return NULL;
  TgContext *ctx = t->ctx;
  DType d = dt(t);
  int64_t n = tg_numel(t);
  const int64_t *sizes = tg_shape(t);
  if (!sizes) return NULL;
  void *v = mem_alloc(&ctx->mem, (size_t)(n + 1) * 8);
  TG_REQUIRE(ctx, v, TG_ERR_NOMEM, "to_text: out of memory");
  TgStatus s = dtype_is_float(d) ? tg_read_f64(t, v, (size_t)n)
                                 : tg_read(tensor_cast(t, d == DT_U64 ? TG_U64 : TG_I64), v, (size_t)n * 8);
  Str *o = &ctx->text;
  str_free(o), str_init(o, &ctx->mem);
  if (!s) put_nested(o, sizes, rank(t), n, put_element, &(Elements){d, v});
  if (!s && n == 0) { /* the nesting down to the empty axis */
    int axes = 0;
    int64_t lists = 1;
    while (sizes[axes])
      lists *= sizes[axes++];
    put_nested(o, sizes, axes, TG_MIN(lists, 1 << 20), put_empty, NULL);
  }
  mem_free(&ctx->mem, v);
  if (s) return NULL;
  TG_REQUIRE(ctx, !o->oom, TG_ERR_NOMEM, "to_text: out of memory");
  return str_text(o);
}

const char *tg_describe(const TgTensor *t) {
  if (!t) return NULL;
  TgContext *ctx = t->ctx;
  Str *o = &ctx->describe;
  str_free(o), str_init(o, &ctx->mem);
  str_put(o, "tensor ");
  str_put(o, dtype_name(dt(t)));
  str_put(o, " ");
  str_put(o, SHAPE_OF(t));
  str_put(o, " on ");
  str_put(o, tg_device(t));
  if (t->requires_grad) str_put(o, t->grad ? ", with a gradient" : ", requires a gradient");
  return str_text(o);
}
