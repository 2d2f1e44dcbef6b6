/* movement.c: shapes. Nothing is copied: each call becomes RESHAPE PERMUTE EXPAND PAD SHRINK FLIP nodes. */
#include "tensor/front.h"

TgTensor *tg_reshape(TgTensor *x, int n, const int64_t *want) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  int64_t d[TG_MAX_RANK], known = 1;
  int infer = -1;
  TG_LIST(ctx, "reshape", want, n);
  TG_REQUIRE(ctx, n >= 0 && n <= TG_MAX_RANK, TG_ERR_SHAPE, "reshape: rank %d is not in 0 .. %d", n,
             TG_MAX_RANK);
  for (int i = 0; i < n; i++) {
    d[i] = want[i];
    if (d[i] == -1) {
      TG_REQUIRE(ctx, infer < 0, TG_ERR_SHAPE, "reshape: two sizes of %s are to be inferred",
                 dims_text(x->ctx->store, n, want).s);
      infer = i;
    } else
      TG_REQUIRE(ctx, !is_negative(d[i]) && (known = dim_mul(ctx->store, known, d[i])) != DIM_BAD,
                 TG_ERR_SHAPE, "reshape: %s to %s", SHAPE_OF(x), dims_text(x->ctx->store, n, want).s);
  }
  int64_t total = nelem(x), size;
  if (infer >= 0) {
    TG_REQUIRE(ctx, dim_div(ctx->store, total, known, &d[infer]), TG_ERR_SHAPE,
               "reshape: no size fits %s to %s", SHAPE_OF(x), dims_text(x->ctx->store, n, want).s);
  }
  if (!shape_check(ctx, "reshape", n, d, &size)) return NULL;
  TG_REQUIRE(ctx, size == total, TG_ERR_SHAPE, "reshape: %s to %s changes the number of elements",
             SHAPE_OF(x), dims_text(x->ctx->store, n, want).s);
  return tensor_view(x, u_reshape(ctx->store, x->uop, n, d));
}

TgTensor *tg_permute(TgTensor *x, int n, const int64_t *order) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  int64_t o[TG_MAX_RANK];
  bool seen[TG_MAX_RANK] = {false};
  TG_LIST(ctx, "permute", order, n);
  TG_REQUIRE(ctx, n == rank(x), TG_ERR_SHAPE, "permute: order of %d axes for %s", n, SHAPE_OF(x));
  for (int i = 0; i < n; i++) {
    o[i] = order[i] < 0 ? order[i] + n : order[i];
    TG_REQUIRE(ctx, o[i] >= 0 && o[i] < n && !seen[o[i]], TG_ERR_SHAPE,
               "permute: %s is not an order of the axes of %s", dims_text(x->ctx->store, n, order).s,
               SHAPE_OF(x));
    seen[o[i]] = true;
  }
  return tensor_view(x, u_permute(ctx->store, x->uop, o));
}

TgTensor *tg_expand(TgTensor *x, int n, const int64_t *want) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  int64_t d[TG_MAX_RANK];
  TG_LIST(ctx, "expand", want, n);
  TG_REQUIRE(ctx, n >= rank(x) && n <= TG_MAX_RANK, TG_ERR_SHAPE, "expand: %s to rank %d", SHAPE_OF(x), n);
  int lead = n - rank(x);
  for (int i = 0; i < n; i++) {
    int64_t have = i < lead ? 1 : dims(x)[i - lead];
    d[i] = want[i] == -1 && i >= lead ? have : want[i];
    TG_REQUIRE(ctx, have == d[i] || (have == 1 && dim_valid(ctx->store, d[i])), TG_ERR_SHAPE,
               "expand: %s to %s", SHAPE_OF(x), dims_text(x->ctx->store, n, want).s);
  }
  if (!shape_check(ctx, "expand", n, d, NULL)) return NULL;
  return tensor_view(x, u_broadcast(ctx->store, x->uop, ints_get(ctx->store, n, d)));
}

TgTensor *tg_broadcast_to(TgTensor *x, int n, const int64_t *d) { return tg_expand(x, n, d); }

/* Negative padding is cut off first, so that PAD itself only adds. */
static UOp *pad_node(TgContext *ctx, UOp *x, const int64_t *lo, const int64_t *hi, bool mask) {
  int64_t pad[2 * TG_MAX_RANK], be[2 * TG_MAX_RANK];
  UOpStore *st = ctx->store;
  if (!x) return NULL;
  for (int i = 0; i < x->shape->n; i++) {
    be[2 * i] = is_negative(lo[i]) ? -lo[i] : 0;
    be[2 * i + 1] = dim_add(st, x->shape->v[i], is_negative(hi[i]) ? hi[i] : 0);
    pad[2 * i] = is_negative(lo[i]) ? 0 : lo[i];
    pad[2 * i + 1] = is_negative(hi[i]) ? 0 : hi[i];
  }
  UOp *inner = u_shrink(st, x, be);
  if (inner && mask) inner = u_full(st, DT_BOOL, (Scalar){.i = 1}, inner->shape);
  return u_pad(st, inner, pad);
}

static bool pad_check(TgTensor *x, const int64_t *lo, const int64_t *hi) {
  int64_t d[TG_MAX_RANK];
  TG_LIST_OR(x->ctx, "pad", lo, rank(x), false);
  TG_LIST_OR(x->ctx, "pad", hi, rank(x), false);
  for (int i = 0; i < rank(x); i++) {
    UOpStore *st = x->ctx->store;
    int64_t crop_lo = is_negative(lo[i]) ? lo[i] : 0;
    int64_t crop_hi = is_negative(hi[i]) ? hi[i] : 0;
    int64_t left = dim_add(st, dim_add(st, dims(x)[i], crop_lo), crop_hi);
    d[i] = dim_add(st, dim_add(st, dims(x)[i], lo[i]), hi[i]);
    bool bad = left == DIM_BAD || d[i] == DIM_BAD || !dim_le(st, 0, left) || is_negative(d[i]);
    TG_REQUIRE_OR(x->ctx, !bad, false, TG_ERR_SHAPE, "pad: %s by %s before and %s after", SHAPE_OF(x),
                  dims_text(x->ctx->store, rank(x), lo).s, dims_text(x->ctx->store, rank(x), hi).s);
  }
  return shape_check(x->ctx, "pad", rank(x), d, NULL);
}

TgTensor *tg_pad(TgTensor *x, const int64_t *lo, const int64_t *hi) {
  if (!x || !pad_check(x, lo, hi)) return NULL;
  return tensor_new(x->ctx, pad_node(x->ctx, x->uop, lo, hi, false));
}

TgTensor *tg_pad_value(TgTensor *x, const int64_t *lo, const int64_t *hi, double v) {
  if (!x || !pad_check(x, lo, hi)) return NULL;
  if (v == 0) return tg_pad(x, lo, hi);
  UOpStore *st = x->ctx->store;
  UOp *u = pad_node(x->ctx, x->uop, lo, hi, false);
  if (!u) return tensor_new(x->ctx, NULL);
  DType d = dt(x);
  Scalar s = dtype_is_float(d) ? (Scalar){.f = v}
                               : scalar_cast(d, DT_F64, (Scalar){.f = v}); /* -inf for integers: the lowest
                                                                            * value */
  return tensor_new(x->ctx,
                    uop_where(st, pad_node(x->ctx, x->uop, lo, hi, true), u, u_full(st, d, s, u->shape)));
}

void part_refused(TgTensor *x, const char *op, int axis, int64_t begin, int64_t end) {
  char b[96], e[96];
  dim_print(x->ctx->store, begin, b, sizeof b), dim_print(x->ctx->store, end, e, sizeof e);
  error_set(&x->ctx->err, TG_ERR_SHAPE, "%s: %s .. %s of axis %d of %s", op, b, e, axis, SHAPE_OF(x));
}

TgTensor *tg_shrink(TgTensor *x, const int64_t *begin, const int64_t *end) {
  if (!x) return NULL;
  int64_t be[2 * TG_MAX_RANK];
  TG_LIST(x->ctx, "shrink", begin, rank(x));
  TG_LIST(x->ctx, "shrink", end, rank(x));
  for (int i = 0; i < rank(x); i++) {
    UOpStore *st = x->ctx->store;
    if (!dim_le(st, 0, begin[i]) || !dim_le(st, begin[i], end[i]) || !dim_le(st, end[i], dims(x)[i]))
      return part_refused(x, "shrink", i, begin[i], end[i]), NULL;
    be[2 * i] = begin[i];
    be[2 * i + 1] = end[i];
  }
  return tensor_view(x, u_shrink(x->ctx->store, x->uop, be));
}

TgTensor *tg_flip(TgTensor *x, int n, const int64_t *axes) {
  if (!x) return NULL;
  int64_t f[TG_MAX_RANK] = {0};
  TG_LIST(x->ctx, "flip", axes, n);
  TG_REQUIRE(x->ctx, n >= 0 && n <= rank(x), TG_ERR_SHAPE, "flip: %d axes of %s", n, SHAPE_OF(x));
  for (int i = 0; i < n; i++) {
    int a = axes[i] >= -TG_MAX_RANK && axes[i] < TG_MAX_RANK ? axis_get(x->ctx, "flip", (int)axes[i], rank(x))
                                                             : -1;
    TG_REQUIRE(x->ctx, a >= 0 && !f[a], TG_ERR_SHAPE, "flip: axes %s of %s",
               dims_text(x->ctx->store, n, axes).s, SHAPE_OF(x));
    f[a] = 1;
  }
  return tensor_view(x, u_flip(x->ctx->store, x->uop, f));
}

TgTensor *tg_transpose(TgTensor *x, int a, int b) {
  if (!x) return NULL;
  int64_t o[TG_MAX_RANK];
  a = axis_get(x->ctx, "transpose", a, rank(x));
  if (a >= 0) b = axis_get(x->ctx, "transpose", b, rank(x));
  if (a < 0 || b < 0) return NULL;
  for (int i = 0; i < rank(x); i++)
    o[i] = i == a ? b : i == b ? a : i;
  return tensor_view(x, u_permute(x->ctx->store, x->uop, o));
}

TgTensor *tg_squeeze(TgTensor *x, int axis) {
  if (!x) return NULL;
  if (rank(x) == 0 && (axis == 0 || axis == -1))
    return tensor_view(x, x->uop); /* a 0-d tensor has these two axes by convention */
  int a = axis_get(x->ctx, "squeeze", axis, rank(x));
  if (a < 0 || dims(x)[a] != 1) return a < 0 ? NULL : tensor_view(x, x->uop);
  bool mask[TG_MAX_RANK] = {false};
  mask[a] = true;
  return tensor_view(x, u_drop(x->ctx->store, x->uop, mask));
}

TgTensor *tg_unsqueeze(TgTensor *x, int axis) {
  if (!x) return NULL;
  int64_t d[TG_MAX_RANK + 1];
  int a = axis_get(x->ctx, "unsqueeze", axis, rank(x) + 1);
  if (a < 0) return NULL;
  for (int i = 0; i <= rank(x); i++)
    d[i] = i == a ? 1 : dims(x)[i - (i > a)];
  return tg_reshape(x, rank(x) + 1, d);
}

TgTensor *tg_flatten(TgTensor *x, int first, int last) {
  if (!x) return NULL;
  if (rank(x) == 0) return tg_reshape(x, 1, (int64_t[]){1});
  int a = axis_get(x->ctx, "flatten", first, rank(x));
  int b = a < 0 ? -1 : axis_get(x->ctx, "flatten", last, rank(x));
  if (b < 0) return NULL;
  TG_REQUIRE(x->ctx, a <= b, TG_ERR_SHAPE, "flatten: axes %d to %d of %s", first, last, SHAPE_OF(x));
  int64_t d[TG_MAX_RANK];
  int n = 0;
  for (int i = 0; i < rank(x); i++) {
    if (i > a && i <= b)
      d[n - 1] = dim_mul(x->ctx->store, d[n - 1], dims(x)[i]);
    else
      d[n++] = dims(x)[i];
  }
  return tg_reshape(x, n, d);
}

bool slice_bounds(const char *op, TgTensor *x, int axis, int64_t *begin, int64_t *end) {
  UOpStore *st = x->ctx->store;
  int64_t size = dims(x)[axis], b = *begin, e = *end;
  if (is_negative(b)) b = dim_add(st, size, b);
  if (is_negative(e)) e = dim_add(st, size, e);
  if (dim_le(st, size, e)) e = size;
  if (dim_le(st, e, b)) e = b;
  if (!dim_le(st, 0, b) || !dim_le(st, b, e) || !dim_le(st, e, size))
    return part_refused(x, op, axis, *begin, *end), false;
  *begin = b;
  *end = e;
  return true;
}

TgTensor *tg_slice(TgTensor *x, int axis, int64_t begin, int64_t end) {
  if (!x) return NULL;
  int a = axis_get(x->ctx, "slice", axis, rank(x));
  if (a < 0) return NULL;
  int64_t b[TG_MAX_RANK], e[TG_MAX_RANK], size = dims(x)[a];
  for (int i = 0; i < rank(x); i++) {
    b[i] = 0;
    e[i] = dims(x)[i];
  }
  if (dim_symbolic(size) || dim_symbolic(begin) || dim_symbolic(end)) {
    b[a] = begin;
    e[a] = end;
    return slice_bounds("slice", x, a, &b[a], &e[a]) ? tg_shrink(x, b, e) : NULL;
  }
  b[a] = TG_MIN(TG_MAX(begin < 0 ? begin + size : begin, 0), size);
  e[a] = TG_MIN(TG_MAX(end < 0 ? end + size : end, 0), size);
  if (e[a] < b[a]) e[a] = b[a];
  return tg_shrink(x, b, e);
}

TgTensor *tg_select(TgTensor *x, int axis, int64_t index) {
  if (!x) return NULL;
  int a = axis_get(x->ctx, "select", axis, rank(x));
  if (a < 0) return NULL;
  UOpStore *st = x->ctx->store;
  int64_t i = is_negative(index) ? dim_add(st, dims(x)[a], index) : index, next = dim_add(st, i, 1);
  char at[96];
  dim_print(st, index, at, sizeof at);
  TG_REQUIRE(x->ctx, dim_le(st, 0, i) && dim_le(st, next, dims(x)[a]), TG_ERR_SHAPE,
             "select: index %s on axis %d of %s", at, axis, SHAPE_OF(x));
  return tg_squeeze(tg_slice(x, a, i, next), a);
}

int tg_split(TgTensor *x, int axis, int64_t size, TgTensor **out, int cap) {
  if (!x) return 0;
  int a = axis_get(x->ctx, "split", axis, rank(x));
  TG_REQUIRE_OR(x->ctx, a >= 0 && size > 0, 0, TG_ERR_VALUE, "split: parts of %lld of axis %d of %s",
                (long long)size, axis, SHAPE_OF(x));
  int64_t one = dims(x)[a];
  if (!dims_numbers(x->ctx, "split", 1, &one)) return 0;
  int64_t n = dims(x)[a] / size + (dims(x)[a] % size != 0);
  TG_LIST_OR(x->ctx, "split", out, TG_MIN(n, cap), 0);
  TG_REQUIRE_OR(x->ctx, n <= INT32_MAX, 0, TG_ERR_LIMIT, "split: %lld parts", (long long)n);
  for (int i = 0; i < n && i < cap; i++) {
    out[i] = tg_slice(x, a, i * size, i == n - 1 ? dims(x)[a] : (i + 1) * size);
    if (!out[i]) return 0;
  }
  return (int)n;
}

/* The parts are padded to the whole size and selected by place. This is exact for -0.0, NaN and every
 * dtype. */
TgTensor *tg_cat(TgTensor *const *x, int n, int axis) {
  if (n < 1 || !x || !x[0]) return NULL;
  TgContext *ctx = x[0]->ctx;
  TgTensor *t = x[0];
  int a = axis_get(ctx, "cat", axis, rank(t));
  if (a < 0) return NULL;
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0}, d[TG_MAX_RANK], total = 0;
  for (int i = 0; i < n; i++) {
    if (!ctx_two("cat", t, x[i])) return NULL;
    TG_REQUIRE(ctx, rank(x[i]) == rank(t), TG_ERR_SHAPE, "cat: %s with %s along axis %d", SHAPE_OF(t),
               SHAPE_OF(x[i]), axis);
    for (int k = 0; k < rank(t); k++)
      TG_REQUIRE(ctx, k == a || dims(x[i])[k] == dims(t)[k], TG_ERR_SHAPE, "cat: %s with %s along axis %d",
                 SHAPE_OF(t), SHAPE_OF(x[i]), axis);
    TG_REQUIRE(ctx, (total = dim_add(ctx->store, total, dims(x[i])[a])) != DIM_BAD, TG_ERR_SHAPE,
               "cat: too many elements");
  }
  for (int k = 0; k < rank(t); k++)
    d[k] = k == a ? total : dims(t)[k];
  if (!shape_check(ctx, "cat", rank(t), d, NULL)) return NULL;
  DType join = dt(t);
  for (int i = 1; i < n; i++)
    join = dtype_join(join, dt(x[i]));
  UOp *acc = NULL;
  int64_t begin = total;
  for (int i = n - 1; i >= 0; i--) {
    int64_t size = dims(x[i])[a];
    if (size == 0) continue;
    begin = dim_sub(ctx->store, begin, size);
    lo[a] = begin;
    hi[a] = dim_sub(ctx->store, dim_sub(ctx->store, total, begin), size);
    UOp *p = pad_node(ctx, uop_cast(ctx->store, x[i]->uop, join), lo, hi, false);
    acc = acc ? uop_where(ctx->store, pad_node(ctx, x[i]->uop, lo, hi, true), p, acc) : p;
    if (!acc) break;
  }
  return total == 0 ? tg_cast(t, dtype_public(join)) : tensor_new(ctx, acc);
}

TgTensor *tg_stack(TgTensor *const *x, int n, int axis) {
  if (n < 1 || !x || !x[0]) return NULL;
  TgContext *ctx = x[0]->ctx;
  TgTensor **y = mem_alloc(&ctx->mem, (size_t)n * sizeof *y), *r = NULL;
  TG_REQUIRE(ctx, y, TG_ERR_NOMEM, "stack: out of memory");
  bool ok = true;
  for (int i = 0; i < n && ok; i++) {
    if (x[i] && x[i]->uop->shape != x[0]->uop->shape) {
      error_set(&ctx->err, TG_ERR_SHAPE, "stack: %s with %s", SHAPE_OF(x[0]), SHAPE_OF(x[i]));
      ok = false;
    } else
      ok = (y[i] = tg_unsqueeze(x[i], axis)) != NULL;
  }
  if (ok) r = tg_cat(y, n, axis < 0 ? axis + rank(x[0]) + 1 : axis);
  mem_free(&ctx->mem, y);
  return r;
}

TgTensor *tg_repeat(TgTensor *x, int n, const int64_t *times) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  TG_LIST(ctx, "repeat", times, n);
  TG_REQUIRE(ctx, n >= 0 && n <= TG_MAX_RANK / 2 && rank(x) <= TG_MAX_RANK / 2, TG_ERR_LIMIT,
             "repeat: rank of %s with %d counts", SHAPE_OF(x), n);
  int r = TG_MAX(n, rank(x));
  int64_t a[TG_MAX_RANK], b[TG_MAX_RANK], c[TG_MAX_RANK];
  for (int i = 0; i < r; i++) {
    int64_t size = i < r - rank(x) ? 1 : dims(x)[i - (r - rank(x))], k = i < r - n ? 1 : times[i - (r - n)];
    TG_REQUIRE(ctx, !is_negative(k) && (c[i] = dim_mul(ctx->store, size, k)) != DIM_BAD, TG_ERR_SHAPE,
               "repeat: %s by %s", SHAPE_OF(x), dims_text(x->ctx->store, n, times).s);
    a[2 * i] = 1;
    b[2 * i] = k;
    a[2 * i + 1] = b[2 * i + 1] = size;
  }
  return tg_reshape(tg_expand(tg_reshape(x, 2 * r, a), 2 * r, b), r, c);
}

static TgTensor *triangle(TgTensor *x, const char *op, int64_t diagonal, bool lower) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  UOpStore *st = ctx->store;
  int n = rank(x);
  TG_REQUIRE(ctx, n >= 2, TG_ERR_SHAPE, "%s: %s has fewer than two axes", op, SHAPE_OF(x));
  if (nelem(x) == 0) return tensor_result(x, x);
  UOp *row = u_arange(st, x->uop->shape, n - 2, DT_I64), *col = u_arange(st, x->uop->shape, n - 1, DT_I64);
  if (row && diagonal)
    row = uop_alu2(st, OPS_ADD, row, u_full(st, DT_I64, (Scalar){.i = diagonal}, row->shape));
  UOp *drop = lower ? uop_alu2(st, OPS_CMPLT, row, col) : uop_alu2(st, OPS_CMPLT, col, row);
  return tensor_new(ctx, uop_where(st, drop, u_num(st, 0, x->uop), x->uop));
}

TgTensor *tg_tril(TgTensor *x, int64_t diagonal) { return triangle(x, "tril", diagonal, true); }

TgTensor *tg_triu(TgTensor *x, int64_t diagonal) { return triangle(x, "triu", diagonal, false); }
