/* sort.c: sorting, and the largest elements of an axis. In: a tensor and an axis. Out: SCAN_AXIS, GATHER
 * and SCATTER nodes.
 *
 * Sorting is by radix, on integer keys that order as the values do. For each digit: count the digits of
 * each row (SCATTER by ADD); scan the counts; let each element read its position and increment it (SCATTER
 * by ADD with OLD, in order, so that the sort is stable); move each element to its position (SCATTER
 * ONCE). Rows are sorted in parallel, and on a GPU so are parts of a row. Each part has its own counts,
 * which are scanned digit by digit and, within a digit, part by part. The result does not depend on the
 * number of threads in use. */
#include "tensor/front.h"

/* ---- keys: unsigned integers that order as the values do. NaN is last, and -0 equals 0. */
static UOp *number(UOpStore *st, uint64_t v, const UOp *like) {
  return like ? u_full(st, (DType)like->dtype, (Scalar){.i = (int64_t)v}, like->shape) : NULL;
}

static UOp *key_of(UOpStore *st, UOp *x, bool descending, int *bits) {
  DType d = (DType)x->dtype;
  x = uop_alu1(st, OPS_DETACH, x);
  if (!x) return NULL;
  *bits = d == DT_BOOL ? 1 : (int)dtype_size(d) * 8;
  uint64_t top = 1ull << (*bits - 1), all = top | (top - 1);
  DType raw = *bits == 64 ? DT_U64 : *bits == 32 ? DT_U32 : *bits == 16 ? DT_U16 : DT_U8;
  DType wide = *bits == 64 ? DT_U64 : DT_U32;
  UOp *k;
  if (dtype_is_float(d)) {
    UOp *zero = u_num(st, 0, x), *nan = uop_alu2(st, OPS_CMPNE, x, x);
    k = uop_cast(st,
                 uop_new(st, OPS_BITCAST, raw, 1, 1,
                         (UOp *[]){uop_where(st, uop_alu2(st, OPS_CMPEQ, x, zero), zero, x)}, ARG0),
                 wide);
    UOp *negative =
        k ? uop_alu2(st, OPS_CMPNE, uop_alu2(st, OPS_AND, k, number(st, top, k)), number(st, 0, k)) : NULL;
    k = uop_where(st, nan, number(st, all, k),
                  uop_alu2(st, OPS_XOR, k, uop_where(st, negative, number(st, all, k), number(st, top, k))));
  } else {
    k = uop_cast(st, uop_cast(st, x, raw), wide);
    if (!dtype_is_unsigned(d) && d != DT_BOOL) k = uop_alu2(st, OPS_XOR, k, number(st, top, k));
  }
  return descending ? uop_alu2(st, OPS_XOR, k, number(st, all, k)) : k;
}

static UOp *shift_right(UOpStore *st, UOp *k, int n) {
  return n ? uop_alu2(st, OPS_SHR, k, number(st, (uint64_t)n, k)) : k;
}

static UOp *digit_of(UOpStore *st, UOp *k, int shift, int bits) {
  return uop_cast(st, uop_alu2(st, OPS_AND, shift_right(st, k, shift), number(st, (1ull << bits) - 1, k)),
                  DT_I32);
}

/* ---- sorting: keys (rows, n) -> the indices in order */
enum {
  SORT_SMALL = 128,
  MOST_PAIRS = 1 << 24, /* a GPU compares this many pairs faster than it sorts */
  LONGEST_SMALL = 4096,
  DIGIT_MOST = 11,
  PASS_COST = 512,
  LEAST_PART = 64,
  PASS_LAUNCHES = 16, /* the time of a pass, without the work on counts, in launches */
  PASS_SWEEPS = 8     /* how often a pass reads or writes the counts */
};

/* How rows are processed. */
typedef struct Digits {
  int width;          /* bits of a digit */
  int64_t parts, len; /* parts of a row; elements of a part */
} Digits;

static bool has_grid(const Target *t) { return t->warp > 1; }

static bool is_small(UOpStore *st, const Target *t, const UOp *k) {
  int64_t rows = dim_max(st, k->shape->v[0]), n = k->shape->v[1];
  return n <= SORT_SMALL || (has_grid(t) && n <= LONGEST_SMALL && rows <= MOST_PAIRS / (n * n));
}

/* For few elements: each element counts the elements before it. */
static UOp *sort_small(UOpStore *st, UOp *k, DType d) {
  int64_t rows = k->shape->v[0], n = k->shape->v[1], e[3] = {rows, n, n};
  const Ints *s = ints_get(st, 3, e);
  UOp *mine = u_expand(st, u_reshape(st, k, 3, (int64_t[]){rows, n, 1}), e);
  UOp *other = u_expand(st, u_reshape(st, k, 3, (int64_t[]){rows, 1, n}), e);
  if (!s || !mine || !other) return NULL;
  UOp *earlier = uop_alu2(st, OPS_CMPLT, u_arange(st, s, 2, DT_I32), u_arange(st, s, 1, DT_I32));
  UOp *before = uop_alu2(st, OPS_OR, uop_alu2(st, OPS_CMPLT, other, mine),
                         uop_alu2(st, OPS_AND, uop_alu2(st, OPS_CMPEQ, other, mine), earlier));
  bool mask[TG_MAX_RANK] = {false, false, true};
  UOp *at[2];
  u_places(st, k->shape, 1,
           u_reshape(st, u_reduce(st, OPS_ADD, uop_cast(st, before, DT_I32), mask), 2, k->shape->v), at);
  return u_scatter(st, OPS_STORE, SCATTER_ONCE, u_full(st, d, (Scalar){.i = 0}, k->shape),
                   u_arange(st, k->shape, 1, d), at);
}

/* Cost of counting and scanning: in steps of a row on a CPU, in us on a GPU, where all rows run at the
 * same time. */
static double sort_cost(const Target *t, int64_t rows, int bits, const Digits *d) {
  double passes = (bits + d->width - 1) / d->width, cells = (double)(1 << d->width);
  if (!has_grid(t)) return passes * ((double)d->len + 2 * cells + PASS_COST);
  double counts = (double)rows * (double)d->parts * cells * (double)sizeof(int32_t);
  return passes * (PASS_LAUNCHES * t->launch_us + PASS_SWEEPS * target_read_us(t, counts) / t->streams);
}

/* Chooses parts and digits. There are as many parts as give each thread of a GPU one, but none is so short
 * that its counts do not pay. The width of digits has the least cost; it is the same on all CPUs. */
static Digits digits_of(UOpStore *st, const Target *t, const UOp *k, int bits) {
  int64_t rows = dim_max(st, k->shape->v[0]), n = k->shape->v[1], threads = (int64_t)t->cores * t->threads;
  Digits d = {.parts = 1, .len = n};
  if (has_grid(t)) {
    double each = (double)rows * (double)n / (double)threads;
    d.len = TG_MIN(TG_MAX((int64_t)TG_MIN(each, (double)n), LEAST_PART), n);
    d.parts = (n + d.len - 1) / d.len;
  }
  int best = 1;
  double least = INFINITY;
  for (d.width = 1; d.width <= DIGIT_MOST; d.width++) {
    double cost = sort_cost(t, rows, bits, &d);
    if (cost < least) {
      least = cost;
      best = d.width;
    }
  }
  int passes = (bits + best - 1) / best;
  d.width = (bits + passes - 1) / passes; /* passes of about equal width */
  return d;
}

/* Splits rows into parts, (rows, n) -> (rows, parts, len). The end is filled with -1. Numbers below 0 are
 * not digits. */
static UOp *in_parts(UOpStore *st, UOp *digit, const Digits *d) {
  if (!digit) return NULL;
  int64_t rows = digit->shape->v[0], rest = d->parts * d->len - digit->shape->v[1];
  if (rest) {
    UOp *above = uop_alu2(st, OPS_ADD, digit, u_num(st, 1, digit));
    above = u_pad(st, above, (int64_t[]){0, 0, 0, rest});
    digit = above ? uop_alu2(st, OPS_SUB, above, u_num(st, 1, above)) : NULL;
  }
  return u_reshape(st, digit, 3, (int64_t[]){rows, d->parts, d->len});
}

/* Counts digits: each element of (rows, parts, len) adds one to the cell of its digit in `to`, (rows,
 * cells, parts). */
static UOp *counted(UOpStore *st, UOp *to, UOp *digit, int how) {
  if (!to || !digit) return NULL;
  UOp *row[3], *at[3];
  u_places(st, digit->shape, 2, digit, row);
  at[0] = row[0];
  at[1] = digit;
  at[2] = row[1];
  return u_scatter(st, OPS_ADD, how, to, u_full(st, (DType)to->dtype, (Scalar){.i = 1}, digit->shape), at);
}

static UOp *counts_of(UOpStore *st, UOp *digit, int64_t cells, DType d) {
  if (!digit) return NULL;
  const Ints *s = ints_get(st, 3, (int64_t[]){digit->shape->v[0], cells, digit->shape->v[1]});
  return counted(st, u_full(st, d, (Scalar){.i = 0}, s), digit, 0);
}

/* Returns the sum of the numbers before each one along the last axis. */
static UOp *before_each(UOpStore *st, UOp *count) {
  return count ? uop_alu2(st, OPS_SUB, u_scan(st, OPS_ADD, count, count->shape->n - 1), count) : NULL;
}

/* Gives each element the number that its digit has reached in its part: (rows, n). */
static UOp *numbered(UOpStore *st, UOp *start, UOp *digit, int64_t n) {
  UOp *u = counted(st, start, digit, SCATTER_OLD);
  if (!u) return NULL;
  int64_t rows = u->shape->v[0];
  u = u_reshape(st, u, 2, (int64_t[]){rows, u->shape->v[1] * u->shape->v[2]});
  return u_shrink(st, u, (int64_t[]){0, rows, 0, n});
}

static UOp *sort_keys(UOpStore *st, const Target *t, UOp *k, int bits) {
  int64_t rows = k->shape->v[0], n = k->shape->v[1];
  DType type = n > INT32_MAX ? DT_I64 : DT_I32;
  if (n <= 1) return u_full(st, type, (Scalar){.i = 0}, k->shape);
  if (is_small(st, t, k)) return sort_small(st, k, type);
  /* An ordered loop cannot be vectorised, so the keys are computed before it. */
  if (k->op != OPS_SCATTER && k->op != OPS_CONTIGUOUS) k = uop_alu1(st, OPS_CONTIGUOUS, k);
  UOp *idx = u_arange(st, k ? k->shape : NULL, 1, type), *at[2];
  Digits d = k ? digits_of(st, t, k, bits) : (Digits){.width = 1};
  for (int shift = 0; shift < bits && idx && k; shift += d.width) {
    int w = TG_MIN(d.width, bits - shift);
    int64_t cells = INT64_C(1) << w;
    UOp *digit = in_parts(st, digit_of(st, k, shift, w), &d);
    UOp *start = before_each(
        st, u_reshape(st, counts_of(st, digit, cells, type), 2, (int64_t[]){rows, cells * d.parts}));
    start = u_reshape(st, start, 3, (int64_t[]){rows, cells, d.parts});
    u_places(st, k->shape, 1, numbered(st, start, digit, n), at);
    idx = u_scatter(st, OPS_STORE, SCATTER_ONCE, u_full(st, type, (Scalar){.i = 0}, k->shape), idx, at);
    if (shift + d.width < bits) k = u_scatter(st, OPS_STORE, SCATTER_ONCE, number(st, 0, k), k, at);
  }
  return idx;
}

/* rows_of returns x with `axis` last and all other axes joined: (rows, n). to_axis is its inverse. */
static UOp *rows_of(UOpStore *st, UOp *x, int axis) {
  int64_t order[TG_MAX_RANK], n = x->shape->v[axis], rows = 1;
  int r = x->shape->n;
  for (int i = 0, o = 0; i < r; i++)
    if (i != axis) {
      order[o++] = i;
      rows = dim_mul(st, rows, x->shape->v[i]);
    }
  order[r - 1] = axis;
  return u_reshape(st, u_permute(st, x, order), 2, (int64_t[]){rows, n});
}

static UOp *to_axis(UOpStore *st, UOp *u, const Ints *shape, int axis) {
  int64_t d[TG_MAX_RANK], order[TG_MAX_RANK];
  int r = shape->n;
  for (int i = 0, o = 0; i < r; i++) {
    order[i] = i == axis ? r - 1 : o;
    o += i != axis;
  }
  for (int i = 0; i < r; i++)
    d[order[i]] = i == axis && u ? u->shape->v[1] : shape->v[i];
  return u_permute(st, u_reshape(st, u, r, d), order);
}

typedef struct Sorted {
  TgContext *ctx;
  UOpStore *st;
  TgTensor *x;
  int axis;
  bool scalar;
  const Target *target; /* where it is sorted */
} Sorted;

static bool sort_begin(const char *op, TgTensor *x, const TgAxes *axes, Sorted *s) {
  if (!x) return false;
  TgAxes a = axes_or(axes, -1);
  bool mask[TG_MAX_RANK];
  if (!axes_get(x->ctx, op, &a, rank(x), mask)) return false;
  TG_REQUIRE_OR(x->ctx, a.n == 1, false, TG_ERR_VALUE, "%s: %d axes", op, a.n);
  *s = (Sorted){.ctx = x->ctx,
                .st = x->ctx->store,
                .x = x,
                .scalar = rank(x) == 0 && (a.v[0] == 0 || a.v[0] == -1),
                .target = x->ctx->calls->facts(x->ctx, tensor_device(x)).target};
  return s->scalar || (s->axis = axis_number(x, op, a.v[0])) >= 0;
}

static TgTensor *pair(Sorted *s, UOp *idx, TgTensor **indices) {
  TgTensor *i = tensor_new(s->ctx, idx);
  if (indices) *indices = i;
  if (!i) return NULL;
  return tensor_new(s->ctx, s->scalar ? s->x->uop : u_pick(s->st, s->x->uop, s->axis, i->uop));
}

TgTensor *tg_sort_opt(TgTensor *x, TgTensor **indices, const TgSortOptions *opt) {
  TG_OPTIONS(tg_context(x), "sort", TgSortOptions, o, opt);
  Sorted s;
  int bits;
  if (indices) *indices = NULL;
  if (!sort_begin("sort", x, &o.axis, &s)) return NULL;
  if (s.scalar) return pair(&s, u_full(s.st, DT_I32, (Scalar){.i = 0}, x->uop->shape), indices);
  /* x itself stands for the indices, because it is on its devices and constants would not be */
  s.scalar = nelem(x) == 0;
  if (s.scalar) return pair(&s, uop_cast(s.st, x->uop, DT_I32), indices);
  UOp *rows = rows_of(s.st, x->uop, s.axis), *k = rows ? key_of(s.st, rows, o.descending, &bits) : NULL;
  return pair(&s, k ? to_axis(s.st, sort_keys(s.st, s.target, k, bits), x->uop->shape, s.axis) : NULL,
              indices);
}

TgTensor *tg_argsort_opt(TgTensor *x, const TgSortOptions *o) {
  TgTensor *i = NULL;
  return tg_sort_opt(x, &i, o) ? i : NULL;
}

/* Expands (rows, 1) to shape. */
static UOp *spread(UOpStore *st, UOp *col, const Ints *shape) {
  return shape ? u_expand(st, col, shape->v) : NULL;
}

/* The search for the want-th best key of each row, (rows, 1). */
typedef struct Search {
  UOp *prefix; /* the digits of that key that are known; 0 below them */
  UOp *left;   /* how many of the keys that begin with these digits are wanted */
} Search;

/* Finds one more digit, of w bits below bit `top`: the keys that agree so far are counted by this digit.
 * Threads share a row, and each pass over it is a launch. */
static bool search_digit(UOpStore *st, UOp *k, const Digits *d, int bits, int top, int w, Search *s) {
  int64_t rows = k->shape->v[0];
  DType type = (DType)s->left->dtype;
  const Ints *cells = ints_get(st, 2, (int64_t[]){rows, INT64_C(1) << w});
  bool mask[TG_MAX_RANK] = {false, true}, part[TG_MAX_RANK] = {false, false, true};
  int shift = top - w;
  UOp *digit = digit_of(st, k, shift, w), *none = u_full(st, type, (Scalar){.i = 0}, cells);
  if (top < bits) {
    UOp *agrees = uop_alu2(st, OPS_CMPEQ, shift_right(st, k, top),
                           spread(st, shift_right(st, s->prefix, top), k->shape));
    digit = uop_where(st, agrees, digit, u_num(st, -1, digit));
  }
  UOp *count = counts_of(st, in_parts(st, digit, d), INT64_C(1) << w, type);
  count = u_drop(st, u_reduce(st, OPS_ADD, count, part), part);
  UOp *upto = u_scan(st, OPS_ADD, count, 1);
  if (!count || !upto) return false;
  /* The keys with these digits are all taken, and more are wanted. */
  UOp *below = uop_alu2(st, OPS_CMPLT, upto, spread(st, s->left, cells));
  UOp *here = u_reduce(st, OPS_ADD, uop_cast(st, below, type), mask);
  UOp *taken = u_reduce(st, OPS_MAX, uop_where(st, below, upto, none), mask);
  s->left = uop_alu2(st, OPS_SUB, s->left, taken);
  UOp *up =
      uop_alu2(st, OPS_SHL, uop_cast(st, here, (DType)k->dtype), number(st, (uint64_t)shift, s->prefix));
  s->prefix = uop_alu2(st, OPS_OR, s->prefix, up);
  return s->left && s->prefix;
}

/* Returns how many keys of each row are below a limit: (rows, 1). */
static UOp *count_below(UOpStore *st, UOp *k, UOp *limit, DType type) {
  bool mask[TG_MAX_RANK] = {false, true};
  UOp *below = limit ? uop_alu2(st, OPS_CMPLT, k, spread(st, limit, k->shape)) : NULL;
  return u_reduce(st, OPS_ADD, uop_cast(st, below, type), mask);
}

/* Finds all bits, if one core processes a row by itself: a bit is set if fewer keys are below it than are
 * wanted. Comparing vectors of keys 32 times takes a fourth of the time of counting four digits key by
 * key. */
static bool search_bits(UOpStore *st, UOp *k, int bits, int64_t want, Search *s) {
  DType type = (DType)s->left->dtype;
  for (int bit = bits - 1; bit >= 0 && s->prefix; bit--) {
    UOp *limit = uop_alu2(st, OPS_OR, s->prefix, number(st, UINT64_C(1) << bit, s->prefix));
    UOp *count = count_below(st, k, limit, type);
    UOp *fewer = count ? uop_alu2(st, OPS_CMPLT, count, u_num(st, want, count)) : NULL;
    s->prefix = uop_where(st, fewer, limit, s->prefix);
  }
  UOp *below = s->prefix ? count_below(st, k, s->prefix, type) : NULL;
  return (s->left = below ? uop_alu2(st, OPS_SUB, s->left, below) : NULL) != NULL;
}

static bool search_digits(UOpStore *st, UOp *k, const Digits *d, int bits, Search *s) {
  for (int top = bits, w; top > 0; top -= w) {
    w = TG_MIN(d->width, top);
    if (!search_digit(st, k, d, bits, top, w, s)) return false;
  }
  return true;
}

/* Returns the indices, (rows, want), of the keys that are better than the key that was found, and of the
 * first keys that equal it. The better keys are numbered from 0 in order, then the equal ones. Keys with a
 * number below want are taken. */
static UOp *found_indices(UOpStore *st, UOp *k, const Digits *d, int64_t want, const Search *s) {
  int64_t rows = k->shape->v[0], n = k->shape->v[1];
  DType type = (DType)s->left->dtype;
  const Ints *col = ints_get(st, 2, (int64_t[]){rows, 1}), *out = ints_get(st, 2, (int64_t[]){rows, want});
  const Ints *two = ints_get(st, 3, (int64_t[]){rows, 2, d->parts});
  if (!col || !out || !two) return NULL;
  UOp *last = spread(st, s->prefix, k->shape), *no = u_full(st, DT_I32, (Scalar){.i = -1}, k->shape), *at[2];
  UOp *zero = u_full(st, DT_I32, (Scalar){.i = 0}, k->shape);
  UOp *kind = uop_where(st, uop_alu2(st, OPS_CMPLT, k, last), zero,
                        uop_where(st, uop_alu2(st, OPS_CMPEQ, k, last), u_num(st, 1, zero), no));
  UOp *cell = u_arange(st, two, 1, type), *digit = in_parts(st, kind, d);
  UOp *equals = uop_alu2(st, OPS_SUB, u_full(st, type, (Scalar){.i = want}, col), s->left);
  equals = u_expand(st, u_reshape(st, equals, 3, (int64_t[]){rows, 1, 1}), two->v);
  UOp *start = NULL;
  if (cell)
    start = uop_where(st, uop_alu2(st, OPS_CMPEQ, cell, u_num(st, 0, cell)), u_num(st, 0, cell), equals);
  if (d->parts > 1) start = uop_alu2(st, OPS_ADD, start, before_each(st, counts_of(st, digit, 2, type)));
  UOp *slot = numbered(st, start, digit, n);
  slot = slot ? uop_where(st, uop_alu2(st, OPS_CMPLT, kind, zero), u_num(st, -1, slot), slot) : NULL;
  u_places(st, k->shape, 1, slot, at);
  return u_scatter(st, OPS_STORE, 0, u_full(st, type, (Scalar){.i = 0}, out), u_arange(st, k->shape, 1, type),
                   at);
}

/* ---- the largest k: find the k-th key from its top bits on, take the better keys and the first of the
 * equal ones, and sort these k. The keys are (rows, n); smaller is better */
static UOp *select_keys(UOpStore *st, const Target *t, UOp *k, int bits, int64_t want, bool sorted) {
  int64_t rows = k->shape->v[0], n = k->shape->v[1];
  const Ints *col = ints_get(st, 2, (int64_t[]){rows, 1});
  Search s = {.left = u_full(st, n > INT32_MAX ? DT_I64 : DT_I32, (Scalar){.i = want}, col),
              .prefix = u_full(st, (DType)k->dtype, (Scalar){.i = 0}, col)};
  k = uop_alu1(st, OPS_CONTIGUOUS, k);
  if (!k || !s.left || !s.prefix) return NULL;
  Digits d = digits_of(st, t, k, bits);
  bool found = has_grid(t) ? search_digits(st, k, &d, bits, &s) : search_bits(st, k, bits, want, &s);
  UOp *idx = found ? found_indices(st, k, &d, want, &s) : NULL;
  if (!sorted || !idx) return idx;
  UOp *keys = u_pick(st, k, 1, idx);
  return keys ? u_pick(st, idx, 1, sort_keys(st, t, keys, bits)) : NULL;
}

TgTensor *tg_topk_opt(TgTensor *x, int64_t want, TgTensor **indices, const TgTopkOptions *opt) {
  TG_OPTIONS(tg_context(x), "topk", TgTopkOptions, o, opt);
  Sorted s;
  int bits;
  if (indices) *indices = NULL;
  if (!sort_begin("topk", x, &o.axis, &s)) return NULL;
  int64_t n = s.scalar ? 1 : dims(x)[s.axis];
  TG_REQUIRE(s.ctx, want >= 0 && want <= n, TG_ERR_VALUE, "topk: %lld of the %lld elements of axis %d of %s",
             (long long)want, (long long)n, o.axis.n ? o.axis.v[0] : -1, SHAPE_OF(x));
  int64_t d[TG_MAX_RANK];
  for (int i = 0; i < rank(x); i++)
    d[i] = i == s.axis ? want : dims(x)[i];
  const Ints *shape = ints_get(s.st, rank(x), d);
  if (s.scalar && want == 0) { /* nothing of a scalar is an empty list, not a scalar */
    int64_t none = 0;
    shape = ints_get(s.st, 1, &none);
    s.scalar = false;
    TgTensor *i = tensor_new(s.ctx, u_full(s.st, DT_I32, (Scalar){.i = 0}, shape));
    if (indices) *indices = i;
    return tensor_new(s.ctx, u_full(s.st, dt(x), (Scalar){.i = 0}, shape));
  }
  if (s.scalar || !shape || dim_product(s.st, shape) == 0)
    return pair(&s, u_full(s.st, DT_I32, (Scalar){.i = 0}, shape), indices);
  UOp *rows = rows_of(s.st, x->uop, s.axis), *k = rows ? key_of(s.st, rows, !o.smallest, &bits) : NULL, *idx;
  if (!k) return pair(&s, NULL, indices);
  if (is_small(s.st, s.target, k) || want > n / 4) {
    idx = sort_keys(s.st, s.target, k, bits);
    idx = idx ? u_shrink(s.st, idx, (int64_t[]){0, idx->shape->v[0], 0, want}) : NULL;
  } else
    idx = select_keys(s.st, s.target, k, bits, want, !o.unsorted);
  return pair(&s, idx ? to_axis(s.st, idx, x->uop->shape, s.axis) : NULL, indices);
}
