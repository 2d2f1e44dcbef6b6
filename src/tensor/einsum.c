/* einsum.c: axes named by text. In: a formula and tensors. Out: movement, one broadcast product and one
 * sum (einsum), or movement alone (rearrange). */
#include "tensor/front.h"

/* ---- einsum. An operand's axes are letters. "..." stands for axes that broadcast, which are kept before
 * the letters of the result. */
typedef struct Term {
  int n, dots; /* dots: number of letters before "...", or -1 */
  char axis[TG_MAX_RANK];
} Term;

static bool term_read(TgContext *ctx, const char *formula, const char *s, size_t len, Term *t) {
  *t = (Term){.dots = -1};
  for (size_t i = 0; i < len; i++) {
    if (s[i] == ' ') continue;
    if (len - i >= 3 && !memcmp(s + i, "...", 3) && t->dots < 0) {
      t->dots = t->n;
      i += 2;
      continue;
    }
    bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z');
    TG_REQUIRE_OR(ctx, letter, false, TG_ERR_VALUE, "einsum: '%c' in \"%.200s\" is no axis", s[i], formula);
    TG_REQUIRE_OR(ctx, t->n < TG_MAX_RANK, false, TG_ERR_LIMIT, "einsum: more than %d axes in \"%.200s\"",
                  TG_MAX_RANK, formula);
    t->axis[t->n++] = s[i];
  }
  return true;
}

typedef struct Einsum {
  TgContext *ctx;
  const char *formula;
  /* axes of the longest "..."; how often each letter occurs in the operands */
  int n, nletter, ndots, count[128];
  char letter[TG_MAX_RANK]; /* in the order in which they are met */
  int64_t size[TG_MAX_RANK];
  Term *term, out;
  TgTensor **x; /* the operands, with repeated letters reduced to diagonals and the axes of "..." first */
} Einsum;

static int letter_at(const Einsum *e, char c) {
  for (int i = 0; i < e->nletter; i++)
    if (e->letter[i] == c) return i;
  return -1;
}

static bool has_letter(const Term *t, char c) { return memchr(t->axis, c, (size_t)t->n) != NULL; }

static bool one_size(Einsum *e, char letter, int64_t a, int64_t b) {
  TG_REQUIRE_OR(e->ctx, a == b, false, TG_ERR_SHAPE, "einsum: '%c' of \"%.200s\" has sizes %s", letter,
                e->formula, dims_text(e->ctx->store, 2, (int64_t[]){a, b}).s);
  return true;
}

static TgTensor *diagonals(Einsum *e, TgTensor *x, Term *t, int dots) {
  int64_t order[TG_MAX_RANK];
  int r = rank(x), k = 0, before = t->dots < 0 ? t->n : t->dots;
  for (int i = 0; i < dots; i++)
    order[k++] = before + i;
  for (int i = 0; i < t->n; i++)
    order[k++] = i < before ? i : i + dots;
  x = tg_permute(x, r, order);
  for (int i = 0; x && i < t->n; i++)
    for (int j = i + 1; x && j < t->n; j++) {
      if (t->axis[i] != t->axis[j]) continue;
      if (!one_size(e, t->axis[i], dims(x)[dots + i], dims(x)[dots + j])) return NULL;
      /* tg_diagonal puts the diagonal last, so its letter becomes last too */
      x = tg_diagonal(x, 0, dots + i, dots + j);
      char c = t->axis[i];
      int m = 0;
      for (int q = 0; q < t->n; q++)
        if (q != i && q != j) t->axis[m++] = t->axis[q];
      t->axis[m] = c;
      t->n--;
      i = -1;
      break;
    }
  return x;
}

static bool letters_sized(Einsum *e, const TgTensor *x, const Term *t, int dots) {
  for (int k = 0; k < t->n; k++) {
    int64_t size = dims(x)[dots + k];
    int l = letter_at(e, t->axis[k]);
    TG_REQUIRE_OR(e->ctx, l >= 0 || e->nletter < TG_MAX_RANK, false, TG_ERR_LIMIT,
                  "einsum: more than %d axes in \"%.200s\"", TG_MAX_RANK, e->formula);
    if (l >= 0 && size != 1 && e->size[l] != 1 && !one_size(e, t->axis[k], e->size[l], size)) return false;
    if (l < 0) {
      e->letter[e->nletter] = t->axis[k];
      e->size[e->nletter++] = size;
    } else if (e->size[l] == 1)
      e->size[l] = size;
  }
  return true;
}

static bool operands_read(Einsum *e, TgTensor *const *x, const char *end, DType *join) {
  const char *at = e->formula;
  for (int i = 0; i < e->n; i++) {
    const char *stop = memchr(at, ',', (size_t)(end - at));
    Term *t = &e->term[i];
    if (!stop) stop = end;
    if (!x[i] || (i && !ctx_two("einsum", x[0], x[i])) ||
        !term_read(e->ctx, e->formula, at, (size_t)(stop - at), t))
      return false;
    at = stop + (stop < end);
    int dots = rank(x[i]) - t->n;
    TG_REQUIRE_OR(e->ctx, dots == 0 || (dots > 0 && t->dots >= 0), false, TG_ERR_SHAPE,
                  "einsum: operand %d of \"%.200s\" has %d axes, shape %s", i, e->formula, t->n,
                  SHAPE_OF(x[i]));
    e->ndots = TG_MAX(e->ndots, dots);
    *join = i ? dtype_join(*join, dt(x[i])) : dt(x[i]);
    for (int k = 0; k < t->n; k++)
      e->count[(int)t->axis[k]]++;
    if (!(e->x[i] = diagonals(e, x[i], t, dots)) || !letters_sized(e, e->x[i], t, dots)) return false;
  }
  return true;
}

/* Reads the result. Without "->" it is "..." and the letters that occur once, sorted. dots -2: the result
 * has no "...", so those axes are summed too. */
static bool result_read(Einsum *e, const char *arrow) {
  Term *o = &e->out;
  if (arrow) {
    if (!term_read(e->ctx, e->formula, arrow + 2, strlen(arrow + 2), o)) return false;
  } else {
    o->dots = e->ndots ? 0 : -1;
    for (int c = 'A'; c <= 'z'; c++)
      if (e->count[c] == 1) o->axis[o->n++] = (char)c;
  }
  if (e->ndots && o->dots < 0) o->dots = -2;
  for (int k = 0; k < o->n; k++) {
    bool twice = memchr(o->axis, o->axis[k], (size_t)k) != NULL;
    TG_REQUIRE_OR(e->ctx, letter_at(e, o->axis[k]) >= 0 && !twice, false, TG_ERR_VALUE,
                  "einsum: '%c' of the result of \"%.200s\" %s", o->axis[k], e->formula,
                  twice ? "stands twice" : "is in no operand");
  }
  TG_REQUIRE_OR(e->ctx, e->ndots + e->nletter <= TG_MAX_RANK, false, TG_ERR_LIMIT,
                "einsum: more than %d axes in \"%.200s\"", TG_MAX_RANK, e->formula);
  return true;
}

/* Returns operand i as (dots.., letters..), with size 1 for each axis that it lacks. */
static TgTensor *aligned(Einsum *e, int i, TgDType dtype) {
  const Term *t = &e->term[i];
  int dots = rank(e->x[i]) - t->n, k = 0;
  int64_t order[TG_MAX_RANK], d[TG_MAX_RANK];
  for (int a = 0; a < dots; a++)
    order[k++] = a;
  for (int l = 0; l < e->nletter; l++)
    for (int a = 0; a < t->n; a++)
      if (t->axis[a] == e->letter[l]) order[k++] = dots + a;
  TgTensor *p = tg_permute(tensor_cast(e->x[i], dtype), k, order);
  if (!p) return NULL;
  k = 0;
  for (int a = 0; a < e->ndots; a++)
    d[k++] = a < e->ndots - dots ? 1 : dims(p)[a - (e->ndots - dots)];
  for (int l = 0, from = dots; l < e->nletter; l++)
    d[k++] = has_letter(t, e->letter[l]) ? dims(p)[from++] : 1;
  return tg_reshape(p, k, d);
}

/* Sums over the axes that are not in the result, and puts the rest in the result's order. */
static TgTensor *summed(Einsum *e, TgTensor *r, TgDType acc) {
  const Term *o = &e->out;
  int axes[TG_MAX_RANK], m = 0, dots = o->dots == -2 ? 0 : e->ndots, k = 0, put = o->dots < 0 ? 0 : o->dots;
  int64_t order[TG_MAX_RANK];
  if (o->dots == -2)
    for (int a = 0; a < e->ndots; a++)
      axes[m++] = a;
  for (int l = 0; l < e->nletter; l++)
    if (!has_letter(o, e->letter[l])) axes[m++] = e->ndots + l;
  if (m) r = tensor_cast(tensor_sum(r, m, axes), acc);
  for (int q = 0; q <= o->n; q++) {
    if (q == put)
      for (int a = 0; a < dots; a++)
        order[k++] = a;
    if (q == o->n) break;
    int place = dots;
    for (int l = 0; e->letter[l] != o->axis[q]; l++)
      place += has_letter(o, e->letter[l]);
    order[k++] = place;
  }
  return tg_permute(r, k, order);
}

TgTensor *tg_einsum_opt(const char *formula, TgTensor *const *x, int n, const TgDTypeOptions *opt) {
  if (!x || n < 1 || !x[0]) return NULL;
  TG_OPTIONS(x[0]->ctx, "einsum", TgDTypeOptions, o, opt);
  TgContext *ctx = x[0]->ctx;
  Einsum e = {.ctx = ctx, .formula = formula, .n = n, .out = {.dots = -1}};
  TG_REQUIRE(ctx, formula, TG_ERR_VALUE, "einsum: no formula");
  const char *arrow = strstr(formula, "->"), *end = arrow ? arrow : formula + strlen(formula);
  int terms = 1;
  for (const char *c = formula; c < end; c++)
    terms += *c == ',';
  TG_REQUIRE(ctx, terms == n, TG_ERR_VALUE, "einsum: \"%.200s\" names %d operands, %d are given", formula,
             terms, n);
  e.term = mem_alloc(&ctx->mem, (size_t)n * sizeof *e.term);
  e.x = mem_alloc(&ctx->mem, (size_t)n * sizeof *e.x);
  DType join = DT_F32;
  TgTensor *r = NULL;
  if (!e.term || !e.x)
    error_no_memory(&ctx->err, "einsum");
  else if (operands_read(&e, x, end, &join) && result_read(&e, arrow)) {
    TgDType acc = o.dtype ? o.dtype : dtype_public(sum_dtype(join));
    r = aligned(&e, 0, acc);
    for (int i = 1; i < n && r; i++)
      r = tg_mul(r, aligned(&e, i, acc));
    r = tensor_cast(r ? summed(&e, r, acc) : NULL, o.dtype ? o.dtype : dtype_public(join));
  }
  mem_free(&ctx->mem, e.term), mem_free(&ctx->mem, e.x);
  return r;
}

/* ---- rearrange: "b (h p) c -> b h (p c)". An axis is a name, 1, or "...". Parentheses group the names
 * that one axis is made of. */
enum { MAX_NAMES = TG_MAX_RANK, NAME_LEN = 32 };

/* Axis a has the names first[a] .. first[a + 1] - 1. dots: the axis of "...", or -1. */
typedef struct Side {
  int naxes, nnames, first[MAX_NAMES + 1], dots;
  char name[MAX_NAMES][NAME_LEN];
} Side;

static bool side_read(TgContext *ctx, const char *formula, const char *s, const char *end, Side *d) {
  bool open = false;
  *d = (Side){.dots = -1};
  while (s < end) {
    if (*s == ' ') {
      s++;
      continue;
    }
    if (*s == '(' || *s == ')') {
      TG_REQUIRE_OR(ctx, open == (*s == ')'), false, TG_ERR_VALUE,
                    "rearrange: the parentheses of \"%.200s\" do not match", formula);
      if (*s == ')') d->first[++d->naxes] = d->nnames;
      open = !open;
      s++;
      TG_REQUIRE_OR(ctx, d->naxes < MAX_NAMES, false, TG_ERR_LIMIT,
                    "rearrange: more than %d axes in \"%.200s\"", MAX_NAMES, formula);
      continue;
    }
    size_t len = 0;
    while (s + len < end && (s[len] == '_' || (s[len] >= '0' && s[len] <= '9') ||
                             (s[len] >= 'a' && s[len] <= 'z') || (s[len] >= 'A' && s[len] <= 'Z')))
      len++;
    bool dots = end - s >= 3 && !memcmp(s, "...", 3), one = len == 1 && *s == '1';
    if (dots) len = 3;
    TG_REQUIRE_OR(ctx, len > 0 && len < NAME_LEN && (one || dots || *s > '9'), false, TG_ERR_VALUE,
                  "rearrange: \"%.16s\" in \"%.200s\" is no axis", s, formula);
    TG_REQUIRE_OR(ctx, !dots || (d->dots < 0 && !open), false, TG_ERR_VALUE,
                  "rearrange: \"...\" stands twice or within parentheses in \"%.200s\"", formula);
    TG_REQUIRE_OR(ctx, d->nnames < MAX_NAMES && d->naxes < MAX_NAMES, false, TG_ERR_LIMIT,
                  "rearrange: more than %d axes in \"%.200s\"", MAX_NAMES, formula);
    if (!one) {
      for (int i = 0; i < d->nnames; i++)
        TG_REQUIRE_OR(ctx, strncmp(d->name[i], s, len) || d->name[i][len], false, TG_ERR_VALUE,
                      "rearrange: \"%.*s\" stands twice on one side of \"%.200s\"", (int)len, s, formula);
      memcpy(d->name[d->nnames], s, len);
      d->name[d->nnames++][len] = 0;
      if (dots) d->dots = d->naxes;
    }
    if (!open) d->first[++d->naxes] = d->nnames;
    s += len;
  }
  TG_REQUIRE_OR(ctx, !open, false, TG_ERR_VALUE, "rearrange: the parentheses of \"%.200s\" do not match",
                formula);
  return true;
}

static int name_at(const Side *d, const char *name) {
  for (int i = 0; i < d->nnames; i++)
    if (!strcmp(d->name[i], name)) return i;
  return -1;
}

/* Both sides, and what is known of their names: sizes (-1: not known yet), and the axes of the split
 * source that each name stands for: one, or several for "...". */
typedef struct Rearrange {
  TgContext *ctx;
  const char *formula;
  Side in, out;
  int dots; /* number of axes that "..." stands for */
  int64_t size[MAX_NAMES];
  int start[MAX_NAMES], count[MAX_NAMES];
  int n;
  int64_t split[TG_MAX_RANK];
} Rearrange;

static bool names_agree(const Rearrange *r) {
  const Side *side[] = {&r->in, &r->out};
  for (int i = 0; i < TG_MAX(r->in.nnames, r->out.nnames); i++)
    for (int k = 0; k < 2; k++)
      TG_REQUIRE_OR(r->ctx, i >= side[k]->nnames || name_at(side[!k], side[k]->name[i]) >= 0, false,
                    TG_ERR_VALUE, "rearrange: \"%s\" stands on one side only of \"%.200s\"", side[k]->name[i],
                    r->formula);
  return true;
}

static bool sizes_given(Rearrange *r, const TgNamedSize *sizes, int n) {
  for (int i = 0; i < r->in.nnames; i++)
    r->size[i] = -1;
  for (int i = 0; i < n; i++) {
    int at = sizes[i].name ? name_at(&r->in, sizes[i].name) : -1;
    TG_REQUIRE_OR(r->ctx, at >= 0, false, TG_ERR_VALUE, "rearrange: no axis \"%.32s\" in \"%.200s\"",
                  sizes[i].name ? sizes[i].name : "", r->formula);
    TG_REQUIRE_OR(r->ctx, !is_negative(sizes[i].size), false, TG_ERR_VALUE, "rearrange: size %lld of \"%s\"",
                  (long long)sizes[i].size, sizes[i].name);
    r->size[at] = sizes[i].size;
  }
  return true;
}

/* Splits axis a of the source, which is axis `from` of x, into its names. The one name whose size is not
 * given gets what is left. */
static bool axis_split(Rearrange *r, TgTensor *x, int a, int from) {
  UOpStore *st = r->ctx->store;
  int64_t known = 1, have = dims(x)[from], rest = 0;
  int infer = -1, begin = r->in.first[a], end = r->in.first[a + 1];
  bool ok = true;
  for (int i = begin; i < end; i++) {
    if (r->size[i] != -1)
      known = dim_mul(st, known, r->size[i]);
    else {
      ok = ok && infer < 0;
      infer = i;
    }
  }
  ok = ok && (infer < 0 ? known == have : dim_div(st, have, known, &rest));
  TG_REQUIRE_OR(r->ctx, ok, false, TG_ERR_SHAPE, "rearrange: axis %d of %s does not split as \"%.200s\" says",
                from, SHAPE_OF(x), r->formula);
  if (infer >= 0) r->size[infer] = rest;
  TG_REQUIRE_OR(r->ctx, r->n + end - begin <= TG_MAX_RANK, false, TG_ERR_LIMIT,
                "rearrange: more than %d axes in \"%.200s\"", TG_MAX_RANK, r->formula);
  for (int i = begin; i < end; i++) {
    r->start[i] = r->n;
    r->count[i] = 1;
    r->split[r->n++] = r->size[i];
  }
  return true;
}

static bool source_split(Rearrange *r, TgTensor *x) {
  for (int a = 0, from = 0; a < r->in.naxes; a++) {
    if (a != r->in.dots) {
      if (!axis_split(r, x, a, from++)) return false;
      continue;
    }
    int at = r->in.first[a];
    r->start[at] = r->n;
    r->count[at] = r->dots;
    for (int i = 0; i < r->dots; i++)
      r->split[r->n++] = dims(x)[from++];
  }
  return true;
}

/* Puts the split axes in the result's order and joins those of a group into one axis. The axes of "..."
 * stay separate. */
static TgTensor *joined(const Rearrange *r, TgTensor *x) {
  int64_t order[TG_MAX_RANK], d[TG_MAX_RANK];
  int m = 0, n = 0;
  for (int a = 0; a < r->out.naxes; a++) {
    int64_t whole = 1;
    for (int i = r->out.first[a]; i < r->out.first[a + 1]; i++) {
      int at = name_at(&r->in, r->out.name[i]);
      for (int j = r->start[at]; j < r->start[at] + r->count[at]; j++) {
        order[m++] = j;
        if (a == r->out.dots)
          d[n++] = r->split[j];
        else
          whole = dim_mul(r->ctx->store, whole, r->split[j]);
      }
    }
    if (a == r->out.dots) continue;
    TG_REQUIRE(r->ctx, n < TG_MAX_RANK, TG_ERR_LIMIT, "rearrange: more than %d axes in \"%.200s\"",
               TG_MAX_RANK, r->formula);
    d[n++] = whole;
  }
  return tg_reshape(tg_permute(x, m, order), n, d);
}

TgTensor *tg_rearrange(TgTensor *x, const char *formula, const TgNamedSize *sizes, int n) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  const char *arrow = formula ? strstr(formula, "->") : NULL;
  TG_LIST(ctx, "rearrange", sizes, n);
  TG_REQUIRE(ctx, arrow && !strstr(arrow + 2, "->"), TG_ERR_VALUE, "rearrange: \"%.200s\" has not one \"->\"",
             formula ? formula : "");
  Rearrange r = {.ctx = ctx, .formula = formula};
  if (!side_read(ctx, formula, formula, arrow, &r.in) ||
      !side_read(ctx, formula, arrow + 2, arrow + 2 + strlen(arrow + 2), &r.out))
    return NULL;
  r.dots = r.in.dots < 0 ? 0 : rank(x) - (r.in.naxes - 1);
  TG_REQUIRE(ctx, r.dots >= 0 && rank(x) == r.in.naxes - (r.in.dots >= 0) + r.dots, TG_ERR_SHAPE,
             "rearrange: \"%.200s\" for %s", formula, SHAPE_OF(x));
  if (!names_agree(&r) || !sizes_given(&r, sizes, n) || !source_split(&r, x)) return NULL;
  return joined(&r, tg_reshape(x, r.n, r.split));
}
