/* layout.c: movement made of other movement: padding by mode, parts, diagonals, rolling, windows, grids.
 * Nothing here has a node of its own. */
#include "tensor/front.h"

/* Cuts begin .. end out of one axis. */
static UOp *one_axis(UOpStore *st, UOp *u, int axis, int64_t begin, int64_t end) {
  if (!u) return NULL;
  int64_t be[2 * TG_MAX_RANK];
  for (int i = 0; i < u->shape->n; i++) {
    be[2 * i] = i == axis ? begin : 0;
    be[2 * i + 1] = i == axis ? end : u->shape->v[i];
  }
  return u_shrink(st, u, be);
}

/* Splits one axis into n axes of these sizes; n = 0 drops it. */
static UOp *split_axis(UOpStore *st, UOp *u, int axis, int n, const int64_t *sizes) {
  if (!u) return NULL;
  int64_t d[2 * TG_MAX_RANK];
  int k = 0;
  for (int i = 0; i < u->shape->n; i++) {
    if (i != axis)
      d[k++] = u->shape->v[i];
    else
      for (int j = 0; j < n; j++)
        d[k++] = sizes[j];
  }
  return u_reshape(st, u, k, d);
}

/* Joins an axis and the next one. */
static UOp *merge_axes(UOpStore *st, UOp *u, int axis) {
  if (!u) return NULL;
  int64_t d[TG_MAX_RANK];
  for (int i = 0; i < u->shape->n - 1; i++)
    d[i] = i < axis    ? u->shape->v[i]
           : i == axis ? dim_mul(st, u->shape->v[i], u->shape->v[i + 1])
                       : u->shape->v[i + 1];
  return u_reshape(st, u, u->shape->n - 1, d);
}

/* ---- windows. axis (size i) -> (o, k): o = (i - dil (k - 1) - 1) / s + 1 windows of k elements, as a
 * view. If s >= k and there is no dilation, the axis is split into (o, s) and each part loses its tail.
 * Otherwise the axis is repeated and cut into periods of i f + dil elements, so that each period begins
 * dil elements further on: row r of the (k, period) split is the axis shifted by r dil. */
static UOp *u_windows(UOpStore *st, UOp *u, int axis, int64_t k, int64_t s, int64_t dil) {
  if (!u) return NULL;
  int64_t i = u->shape->v[axis];
  int64_t o = (i - dil * (k - 1) - 1) / s + 1;
  int64_t pad[2 * TG_MAX_RANK] = {0};
  int64_t order[TG_MAX_RANK];
  if (s >= k && dil == 1) {
    if (o * s > i) {
      pad[2 * axis + 1] = o * s - i;
      u = u_pad(st, u, pad);
    } else
      u = one_axis(st, u, axis, 0, o * s);
    return one_axis(st, split_axis(st, u, axis, 2, (int64_t[]){o, s}), axis + 1, 0, k);
  }
  int64_t f = 1 + (o * s > i - dil * (k - 1));
  int64_t period = i * f + dil;
  int64_t reps = (k * period + i - 1) / i;
  int64_t d[TG_MAX_RANK];
  u = split_axis(st, u, axis, 2, (int64_t[]){1, i});
  if (!u) return NULL;
  memcpy(d, u->shape->v, (size_t)u->shape->n * sizeof *d);
  d[axis] = reps;
  u = merge_axes(st, u_expand(st, u, d), axis);
  u = split_axis(st, one_axis(st, u, axis, 0, k * period), axis, 2, (int64_t[]){k, period});
  u = split_axis(st, one_axis(st, u, axis + 1, 0, o * s), axis + 1, 2, (int64_t[]){o, s});
  u = split_axis(st, one_axis(st, u, axis + 2, 0, 1), axis + 2, 0, NULL);
  if (!u) return NULL;
  for (int a = 0; a < u->shape->n; a++)
    order[a] = a == axis ? axis + 1 : a == axis + 1 ? axis : a;
  return u_permute(st, u, order);
}

static UOp *pad_axis(UOpStore *st, UOp *u, int axis, int64_t lo, int64_t hi) {
  if (!u) return NULL;
  int64_t pad[2 * TG_MAX_RANK] = {0};
  pad[2 * axis] = lo;
  pad[2 * axis + 1] = hi;
  return u_pad(st, u, pad);
}

static UOp *swap_axes(UOpStore *st, UOp *u, int a, int b) {
  if (!u) return NULL;
  int64_t order[TG_MAX_RANK];
  for (int i = 0; i < u->shape->n; i++)
    order[i] = i == a ? b : i == b ? a : i;
  return u_permute(st, u, order);
}

/* Sums over an axis and drops it. */
static UOp *sum_axis(UOpStore *st, UOp *u, int axis) {
  if (!u) return NULL;
  int64_t d[TG_MAX_RANK];
  int n = 0;
  for (int i = 0; i < u->shape->n; i++)
    if (i != axis) d[n++] = u->shape->v[i];
  bool mask[TG_MAX_RANK] = {false};
  DType dt = (DType)u->dtype;
  mask[axis] = true;
  u = u_reduce(st, OPS_ADD, uop_cast(st, u, sum_dtype(dt)), mask);
  return u_reshape(st, uop_cast(st, u, dt), n, d);
}

/* Axes (k, o) -> n: the sum over r of row r at x + off - r dil, for off <= dil (k - 1). Each row is put
 * into a longer row, and the rows are then read with a length that is dil shorter, so that each one begins
 * dil earlier than the one before. */
static UOp *sum_of_shifted(UOpStore *st, UOp *u, int axis, int64_t n, int64_t dil, int64_t off) {
  if (!u) return NULL;
  int64_t k = u->shape->v[axis], o = u->shape->v[axis + 1], lo = dil * (k - 1) - off,
          hi = TG_MAX(n + off - o, 0);
  int64_t row = lo + o + hi, begin = off + lo;
  u = pad_axis(st, u, axis + 1, lo, hi);
  if (k == 1) return sum_axis(st, one_axis(st, u, axis + 1, 0, n), axis);
  u = one_axis(st, merge_axes(st, u, axis), axis, begin, begin + k * (row - dil));
  u = one_axis(st, split_axis(st, u, axis, 2, (int64_t[]){k, row - dil}), axis + 1, 0, n);
  return sum_axis(st, u, axis);
}

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* What windows were taken of: n elements after `pad` zeros. Their gradient has `skip` extra elements in
 * front, and may have more at the end. */
typedef struct Windowed {
  int64_t n, pad, s, dil;
  bool may_skip;
  int64_t skip;
} Windowed;

/* The gradient of windows: (o, k) -> skip + n or more elements. NULL: the padding is too large. With a
 * stride s, elements s apart get what their windows give them: rows r, r + s, .. of the k rows belong to
 * the elements with one remainder, and each of these sums has no holes. Rows of zeros in front align the
 * remainders with those of the elements. If that takes one more row for each remainder, some elements to
 * skip are used instead. */
static UOp *dense_windows_back(UOpStore *st, UOp *g, int axis, Windowed *w) {
  int64_t o = g->shape->v[axis], k = g->shape->v[axis + 1], s = w->s;
  g = swap_axes(st, g, axis, axis + 1);
  if (s > 1 && w->dil > 1) { /* the rows have holes after all */
    g = pad_axis(st, split_axis(st, g, axis + 1, 2, (int64_t[]){o, 1}), axis + 2, 0, s - 1);
    g = one_axis(st, merge_axes(st, g, axis + 1), axis + 1, 0, (o - 1) * s + 1);
  }
  if (s == 1 || w->dil > 1)
    return w->pad > w->dil * (k - 1) ? NULL : sum_of_shifted(st, g, axis, w->n, w->dil, w->pad);
  int64_t front = (s - w->pad % s) % s, rows = (front + k + s - 1) / s, least = (k + s - 1) / s;
  if (w->may_skip && rows > least) {
    front = 0;
    w->skip = w->pad % s;
    rows = least;
  }
  int64_t each = (w->skip + w->n + s - 1) / s, off = (w->pad + front) / s;
  if (off > rows - 1) return NULL;
  g = pad_axis(st, g, axis, front, rows * s - k - front);
  g = swap_axes(st, split_axis(st, g, axis, 2, (int64_t[]){rows, s}), axis, axis + 1); /* (s, rows, o) */
  g = sum_of_shifted(st, g, axis + 1, each, 1, off);
  return merge_axes(st, swap_axes(st, g, axis, axis + 1), axis);
}

/* The same, but a common factor of stride and dilation is taken out first: elements between the common
 * steps get nothing. */
static UOp *steps_back(UOpStore *st, UOp *g, int axis, Windowed *w) {
  int64_t c = gcd(w->s, w->dil), first = (c - w->pad % c) % c;
  w->skip = 0;
  if (c == 1 || first >= w->n) return dense_windows_back(st, g, axis, w);
  int64_t hit = (w->n - first + c - 1) / c;
  Windowed part = {.n = hit, .pad = (w->pad + first) / c, .s = w->s / c, .dil = w->dil / c};
  g = one_axis(st, dense_windows_back(st, g, axis, &part), axis, 0, hit);
  g = pad_axis(st, split_axis(st, g, axis, 2, (int64_t[]){hit, 1}), axis + 1, first, c - 1 - first);
  return pad_axis(st, merge_axes(st, g, axis), axis, 0, TG_MAX(w->n - hit * c, 0));
}

/* The same for any padding. If the padding is too large, it gets its part of the gradient too, which is
 * then skipped. Elements that a negative padding has cut off get nothing. */
static UOp *windows_back(UOpStore *st, UOp *g, int axis, Windowed *w) {
  UOp *u = w->pad >= 0 ? steps_back(st, g, axis, w) : NULL;
  if (u) return u;
  Windowed all = {.n = w->n + w->pad, .s = w->s, .dil = w->dil};
  u = steps_back(st, g, axis, &all);
  w->skip = TG_MAX(w->pad, 0);
  return w->pad < 0 ? pad_axis(st, u, axis, -w->pad, 0) : u;
}

/* The last axes o1 .. om, k1 .. km -> n1 .. nm. A transposed convolution is the same function of products:
 * what each element adds through each tap is what a gradient would give to its window there. Axes are cut
 * only when all of them have their sums, which are one sum in memory then, because an axis that is read
 * with an offset to skip has no remainders. */
UOp *u_windows_back_nd(UOpStore *st, UOp *g, int m, const int64_t *n, const int64_t *pad, const int64_t *s,
                       const int64_t *dil) {
  if (!g) return NULL;
  int lead = g->shape->n - 2 * m;
  int64_t order[TG_MAX_RANK], skip[TG_MAX_RANK] = {0};
  bool cut = false;
  for (int i = 0; i < lead; i++)
    order[i] = i;
  for (int a = 0; a < m; a++) {
    order[lead + 2 * a] = lead + a;
    order[lead + 2 * a + 1] = lead + m + a;
  }
  g = u_permute(st, g, order);
  for (int a = 0; g && a < m; a++) {
    Windowed w = {.n = n[a], .pad = pad[a], .s = s[a], .dil = dil[a], .may_skip = true};
    g = windows_back(st, g, lead + a, &w);
    skip[a] = w.skip;
    cut = cut || w.skip;
  }
  if (g && cut) g = uop_alu1(st, OPS_CONTIGUOUS, g);
  for (int a = 0; g && a < m; a++)
    g = one_axis(st, g, lead + a, skip[a], skip[a] + n[a]);
  return g;
}

static bool pads_only(const UOp *u, int axis) {
  for (int i = 0; i < 2 * u->shape->n; i++)
    if (i / 2 != axis && u->arg.ints->v[i]) return false;
  return true;
}

/* Recognises windows. The windows that the chain of movements under a permutation could be are built, and
 * compared with u: equal windows are the same node. Padding with zeros along the axis belongs to the
 * windows. */
UOp *u_windows_gradient(UOpStore *st, UOp *u, UOp *g, UOp **of) {
  int axis = 0, n = u->shape->n;
  if (u->op != OPS_PERMUTE) return NULL;
  while (axis < n && u->arg.ints->v[axis] == axis)
    axis++;
  if (axis + 1 >= n || u->arg.ints->v[axis] != axis + 1 || u->arg.ints->v[axis + 1] != axis) return NULL;
  int64_t s = 0, period = 0, k = u->shape->v[axis + 1];
  UOp *e = u->src[0];
  for (; e->op == OPS_RESHAPE || e->op == OPS_SHRINK; e = e->src[0]) {
    if (!e->src[0]->is_tensor) return NULL;
    if (e->shape->n == n + 1) s = e->shape->v[axis + 2];
    if (e->op == OPS_RESHAPE && e->shape->n == n && e->src[0]->shape->n == n - 1)
      period = e->shape->v[axis + 1];
  }
  UOp *x = e->op == OPS_EXPAND && e->src[0]->op == OPS_RESHAPE ? e->src[0]->src[0] : NULL;
  if (!x || !x->is_tensor || x->shape->n != n - 1 || s <= 0 || k <= 0) return NULL;
  int64_t i = x->shape->v[axis];
  for (int f = 1; f <= 2 && i > 0; f++) {
    int64_t dil = period - i * f;
    if (dil <= 0 || dil * (k - 1) >= i || u_windows(st, x, axis, k, s, dil) != u) continue;
    bool padded = x->op == OPS_PAD && pads_only(x, axis);
    *of = padded ? x->src[0] : x;
    Windowed w = {
        .n = (*of)->shape->v[axis], .pad = padded ? x->arg.ints->v[2 * axis] : 0, .s = s, .dil = dil};
    g = windows_back(st, g, axis, &w);
    return one_axis(st, g, axis, w.skip, w.skip + w.n);
  }
  return NULL;
}

/* The last n axes -> (.., o1 .. on, k1 .. kn). Each axis is padded right before it is cut, so that the
 * gradient sees both. */
UOp *u_windows_nd(UOpStore *st, UOp *u, int n, const int64_t *k, const int64_t *s, const int64_t *dil,
                  const int64_t *lo, const int64_t *hi) {
  if (!u) return NULL;
  int lead = u->shape->n - n;
  int64_t order[TG_MAX_RANK];
  for (int a = 0; a < n; a++)
    u = u_windows(st, pad_axis(st, u, lead + 2 * a, lo[a], hi[a]), lead + 2 * a, k[a], s[a], dil[a]);
  for (int i = 0; i < lead; i++)
    order[i] = i;
  for (int a = 0; a < n; a++) {
    order[lead + a] = lead + 2 * a;
    order[lead + n + a] = lead + 2 * a + 1;
  }
  return u_permute(st, u, order);
}

TgTensor *tg_unfold(TgTensor *x, int axis, int64_t size, int64_t step) {
  if (!x) return NULL;
  int a = axis_number(x, "unfold", axis);
  if (a < 0) return NULL;
  TG_REQUIRE(x->ctx, step > 0 && size >= 0 && size <= dims(x)[a], TG_ERR_VALUE,
             "unfold: windows of %lld, step %lld, on axis %d of %s", (long long)size, (long long)step, axis,
             SHAPE_OF(x));
  /* overlapping windows have two more axes on the way */
  TG_REQUIRE(x->ctx, rank(x) <= TG_MAX_RANK - 2, TG_ERR_LIMIT, "unfold: %s has %d axes, at most %d",
             SHAPE_OF(x), rank(x), TG_MAX_RANK - 2);
  UOpStore *st = x->ctx->store;
  step = TG_MIN(step, dims(x)[a] - size + 1); /* one window, however far away the next one would be */
  UOp *u = u_windows(st, x->uop, a, size, step, 1);
  int64_t order[TG_MAX_RANK];
  for (int i = 0, k = 0; i <= rank(x); i++)
    if (i != a + 1) order[k++] = i;
  order[rank(x)] = a + 1;
  return tensor_view(x, u_permute(st, u, order));
}

/* ---- padding */
/* Returns the padding before or after an axis that is lengthened by n: a part of the axis, reversed or
 * repeated. */
static TgTensor *padding(TgTensor *x, int axis, int64_t n, bool before, TgPadMode mode) {
  UOpStore *st = x->ctx->store;
  int64_t d[TG_MAX_RANK], skip = mode == TG_PAD_REFLECT, some = mode == TG_PAD_REPLICATE ? 1 : n;
  int64_t begin = skip, end = skip + some;
  if (before == (mode == TG_PAD_CIRCULAR)) { /* at the other end of the axis */
    end = dim_sub(st, dims(x)[axis], skip);
    begin = dim_sub(st, end, some);
  }
  TgTensor *part = tg_slice(x, axis, begin, end);
  if (mode == TG_PAD_CIRCULAR) return part;
  if (mode == TG_PAD_REFLECT) return tg_flip(part, 1, (int64_t[]){axis});
  for (int i = 0; i < rank(x); i++)
    d[i] = i == axis ? n : -1;
  return tg_expand(part, rank(x), d);
}

TgTensor *tg_pad_mode(TgTensor *x, const int64_t *lo, const int64_t *hi, TgPadMode mode) {
  static const char *const names[] = {"constant", "reflect", "replicate", "circular"};
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, (unsigned)mode < TG_COUNT(names), TG_ERR_VALUE, "pad: unknown mode %d", (int)mode);
  if (mode == TG_PAD_CONSTANT) return tg_pad(x, lo, hi);
  int64_t crop_lo[TG_MAX_RANK], crop_hi[TG_MAX_RANK];
  TG_LIST(x->ctx, "pad", lo, rank(x));
  TG_LIST(x->ctx, "pad", hi, rank(x));
  for (int i = 0; i < rank(x); i++) {
    crop_lo[i] = TG_MIN(lo[i], 0);
    crop_hi[i] = TG_MIN(hi[i], 0);
  }
  /* circular padding wraps around what is left; the other modes look at the whole axis */
  if (mode == TG_PAD_CIRCULAR) x = tg_pad(x, crop_lo, crop_hi);
  for (int a = 0; x && a < rank(x); a++) {
    int64_t before = TG_MAX(lo[a], 0), behind = TG_MAX(hi[a], 0), n = dim_min(x->ctx->store, dims(x)[a]);
    int64_t most = n ? INT64_MAX : 0;
    if (mode == TG_PAD_REFLECT) most = n - 1;
    if (mode == TG_PAD_CIRCULAR) most = n;
    if (!before && !behind) continue;
    TG_REQUIRE(x->ctx, before <= most && behind <= most, TG_ERR_SHAPE,
               "pad: axis %d of %s has too few elements to %s %lld before and %lld after", a, SHAPE_OF(x),
               names[mode], (long long)before, (long long)behind);
    TgTensor *part[3];
    int k = 0;
    if (before) part[k++] = padding(x, a, before, true, mode);
    part[k++] = x;
    if (behind) part[k++] = padding(x, a, behind, false, mode);
    x = tg_cat(part, k, a);
  }
  return mode == TG_PAD_CIRCULAR ? x : tg_pad(x, crop_lo, crop_hi);
}

TgTensor *tg_pad_to(TgTensor *x, int n, const int64_t *want, double value) {
  if (!x) return NULL;
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0};
  bool ok = n == rank(x);
  TG_LIST(x->ctx, "pad_to", want, n);
  for (int i = 0; ok && i < n; i++) {
    hi[i] = want[i] == -1 ? 0 : dim_sub(x->ctx->store, want[i], dims(x)[i]);
    ok = dim_le(x->ctx->store, 0, hi[i]);
  }
  TG_REQUIRE(x->ctx, ok, TG_ERR_SHAPE, "pad_to: %s to %s", SHAPE_OF(x),
             dims_text(x->ctx->store, TG_MIN(n, TG_MAX_RANK), want).s);
  return tg_pad_value(x, lo, hi, value);
}

TgTensor *tg_shrink_to(TgTensor *x, int n, const int64_t *want) {
  if (!x) return NULL;
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK];
  bool ok = n == rank(x);
  TG_LIST(x->ctx, "shrink_to", want, n);
  for (int i = 0; ok && i < n; i++) {
    hi[i] = want[i] == -1 ? dims(x)[i] : want[i];
    ok = dim_le(x->ctx->store, 0, hi[i]) && dim_le(x->ctx->store, hi[i], dims(x)[i]);
  }
  TG_REQUIRE(x->ctx, ok, TG_ERR_SHAPE, "shrink_to: %s to %s", SHAPE_OF(x),
             dims_text(x->ctx->store, TG_MIN(n, TG_MAX_RANK), want).s);
  return tg_shrink(x, lo, hi);
}

/* ---- axes */
TgTensor *tg_squeeze_all(TgTensor *x) {
  if (!x) return NULL;
  bool mask[TG_MAX_RANK];
  for (int i = 0; i < rank(x); i++)
    mask[i] = dims(x)[i] == 1;
  return tensor_view(x, u_drop(x->ctx->store, x->uop, mask));
}

TgTensor *tg_unflatten(TgTensor *x, int axis, int n, const int64_t *sizes) {
  if (!x) return NULL;
  int a = axis_get(x->ctx, "unflatten", axis, rank(x)), k = 0;
  if (a < 0) return NULL;
  TG_LIST(x->ctx, "unflatten", sizes, n);
  TG_REQUIRE(x->ctx, n >= 1 && n <= TG_MAX_RANK + 1 - rank(x), TG_ERR_SHAPE,
             "unflatten: axis %d of %s into %d axes", axis, SHAPE_OF(x), n);
  int64_t d[TG_MAX_RANK], known = 1, infer = -1;
  bool ok = true;
  for (int i = 0; i < n; i++) {
    if (sizes[i] == -1) {
      ok = ok && infer < 0;
      infer = i;
    } else
      ok = ok && !is_negative(sizes[i]) && (known = dim_mul(x->ctx->store, known, sizes[i])) != DIM_BAD;
  }
  int64_t rest = 0;
  ok = ok && (infer < 0 ? known == dims(x)[a] : dim_div(x->ctx->store, dims(x)[a], known, &rest));
  TG_REQUIRE(x->ctx, ok, TG_ERR_SHAPE, "unflatten: axis %d of %s into %s", axis, SHAPE_OF(x),
             dims_text(x->ctx->store, n, sizes).s);
  for (int i = 0; i < rank(x); i++) {
    if (i != a)
      d[k++] = dims(x)[i];
    else
      for (int j = 0; j < n; j++)
        d[k++] = sizes[j] == -1 ? rest : sizes[j];
  }
  return tg_reshape(x, k, d);
}

int tg_split_sizes(TgTensor *x, int axis, int n, const int64_t *sizes, TgTensor **out) {
  if (!x) return 0;
  int a = axis_get(x->ctx, "split", axis, rank(x));
  if (a < 0) return 0;
  int64_t at = 0;
  TG_LIST_OR(x->ctx, "split", sizes, n, 0);
  TG_LIST_OR(x->ctx, "split", out, n, 0);
  bool ok = n > 0;
  for (int i = 0; ok && i < n; i++)
    ok = !is_negative(sizes[i]) && (at = dim_add(x->ctx->store, at, sizes[i])) != DIM_BAD;
  TG_REQUIRE_OR(x->ctx, ok && at == dims(x)[a], 0, TG_ERR_SHAPE, "split: parts %s of axis %d of %s",
                dims_text(x->ctx->store, TG_MIN(n, TG_MAX_RANK), sizes).s, axis, SHAPE_OF(x));
  at = 0;
  for (int i = 0; i < n; i++) {
    int64_t end = dim_add(x->ctx->store, at, sizes[i]);
    if (!(out[i] = tg_slice(x, a, at, end))) return 0;
    at = end;
  }
  return n;
}

int tg_chunk(TgTensor *x, int axis, int chunks, TgTensor **out, int cap) {
  if (!x) return 0;
  int a = axis_number(x, "chunk", axis);
  if (a < 0) return 0;
  TG_REQUIRE_OR(x->ctx, chunks > 0, 0, TG_ERR_VALUE, "chunk: %d parts of axis %d of %s", chunks, axis,
                SHAPE_OF(x));
  if (dims(x)[a]) return tg_split(x, axis, (dims(x)[a] + chunks - 1) / chunks, out, cap);
  TG_LIST_OR(x->ctx, "chunk", out, TG_MIN(chunks, cap), 0);
  for (int i = 0; i < chunks && i < cap; i++)
    if (!(out[i] = x)) return 0;
  return chunks;
}

static TgTensor *rolled(TgTensor *x, int axis, int64_t by) {
  UOpStore *st = x->ctx->store;
  int64_t size = dims(x)[axis], least = dim_min(st, size);
  if (!dim_symbolic(size) || by > least || by < -least) { /* otherwise it wraps around at most once */
    if (axis_number(x, "roll", axis) < 0) return NULL;
    by = size ? by % size : 0;
  }
  if (by < 0) by = dim_add(st, size, by);
  int64_t cut = dim_sub(st, size, by);
  return by ? tg_cat((TgTensor *[]){tg_slice(x, axis, cut, size), tg_slice(x, axis, 0, cut)}, 2, axis) : x;
}

TgTensor *tg_roll(TgTensor *x, int n, const int64_t *shifts, const int64_t *axes) {
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, n >= 0 && n <= TG_MAX_RANK && (axes || n == 1), TG_ERR_VALUE,
             "roll: %d shifts of %s without axes", n, SHAPE_OF(x));
  TG_LIST(x->ctx, "roll", shifts, n);
  TgTensor *r = axes ? x : tg_flatten(x, 0, -1);
  for (int i = 0; r && i < n; i++) {
    int64_t axis = axes ? axes[i] : 0;
    int a = axis >= -TG_MAX_RANK && axis < TG_MAX_RANK ? axis_get(x->ctx, "roll", (int)axis, rank(r)) : -1;
    TG_REQUIRE(x->ctx, a >= 0, TG_ERR_SHAPE, "roll: no axis %lld in %s", (long long)axis, SHAPE_OF(x));
    r = rolled(r, a, shifts[i]);
  }
  return axes ? tensor_result(r, x) : tg_reshape(r, rank(x), dims(x));
}

TgTensor *tg_repeat_interleave(TgTensor *x, int64_t times, int axis) {
  if (!x) return NULL;
  int a = axis_get(x->ctx, "repeat_interleave", axis, rank(x));
  if (a < 0) return NULL;
  int64_t d[TG_MAX_RANK + 1], total;
  TG_REQUIRE(
      x->ctx,
      times >= 0 && !__builtin_mul_overflow(times, TG_MAX(dim_max(x->ctx->store, dims(x)[a]), 1), &total),
      TG_ERR_VALUE, "repeat_interleave: axis %d of %s %lld times", axis, SHAPE_OF(x), (long long)times);
  TG_REQUIRE(x->ctx, rank(x) < TG_MAX_RANK, TG_ERR_LIMIT, "repeat_interleave: rank of %s", SHAPE_OF(x));
  TgTensor *t = tg_unsqueeze(x, a + 1);
  for (int i = 0; i <= rank(x); i++)
    d[i] = i == a + 1 ? times : -1;
  return tg_flatten(tg_expand(t, rank(x) + 1, d), a, a + 1);
}

/* ---- diagonals */
/* Puts each element and n zeros in a row, and reads the rows with one element less. */
TgTensor *tg_diag(TgTensor *x) {
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, rank(x) == 1, TG_ERR_SHAPE, "diag: %s is not 1-D", SHAPE_OF(x));
  UOpStore *st = x->ctx->store;
  int64_t n = dims(x)[0];
  TG_REQUIRE(x->ctx, dim_max(st, n) <= INT32_MAX, TG_ERR_SHAPE, "diag: %s", SHAPE_OF(x));
  if (n == 0) return tg_reshape(x, TG_SHAPE(0, 0));
  TgTensor *t = tg_pad(tg_reshape(x, TG_SHAPE(n, 1)), (int64_t[]){0, 0}, (int64_t[]){0, n});
  return tg_reshape(tg_slice(tg_flatten(t, 0, -1), 0, 0, dim_mul(st, n, n)), TG_SHAPE(n, n));
}

TgTensor *tg_diagonal(TgTensor *x, int64_t offset, int axis1, int axis2) {
  if (!x) return NULL;
  int a = axis_number(x, "diagonal", axis1);
  int b = a < 0 ? -1 : axis_number(x, "diagonal", axis2);
  if (b < 0) return NULL;
  TG_REQUIRE(x->ctx, a != b, TG_ERR_SHAPE, "diagonal: axes %d and %d of %s are one", axis1, axis2,
             SHAPE_OF(x));
  int64_t order[TG_MAX_RANK], h = dims(x)[a], w = dims(x)[b];
  int r = rank(x), k = 0;
  for (int i = 0; i < r; i++)
    if (i != a && i != b) order[k++] = i;
  order[r - 2] = a;
  order[r - 1] = b;
  x = tg_permute(x, r, order);
  if (offset >= 0) {
    x = tg_slice(x, -1, TG_MIN(offset, w), w);
    w = TG_MAX(w - offset, 0);
  } else {
    x = tg_slice(x, -2, offset < -h ? h : -offset, h);
    h = offset < -h ? 0 : h + offset;
  }
  int64_t n = TG_MIN(h, w), lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0};
  /* (.., n n): element i is at i (n + 1) */
  x = tg_flatten(tg_slice(tg_slice(x, -1, 0, n), -2, 0, n), -2, -1);
  if (!x) return NULL;
  if (n == 0) return x;
  hi[r - 2] = n;
  return tg_select(tg_unflatten(tg_pad(x, lo, hi), -1, 2, (int64_t[]){n, n + 1}), -1, 0);
}

/* ---- grids */
TgTensor *tg_linspace_opt(TgContext *ctx, double start, double stop, int64_t steps,
                          const TgDTypeOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "linspace", TgDTypeOptions, o, opt);
  DType d = dtype_of(o.dtype, DT_F32);
  TG_REQUIRE(ctx, d && d != DT_BOOL, TG_ERR_DTYPE, "linspace: dtype %s", dtype_name(d));
  TG_REQUIRE(ctx, steps >= 0, TG_ERR_VALUE, "linspace: %lld steps", (long long)steps);
  if (steps < 2) return tg_full(ctx, TG_SHAPE(steps), start, .dtype = dtype_public(d), .device = o.device);
  /* computed from each end to the middle, so that both ends are exact */
  TgDType c = d == DT_F64 ? TG_F64 : TG_F32;
  TgTensor *i = tg_arange(ctx, 0, (double)steps);
  TgTensor *up = tensor_cast(i, c);
  TgTensor *down = tensor_cast(tg_rsub_scalar(i, (double)(steps - 1)), c);
  double step = (stop - start) / (double)(steps - 1);
  TgTensor *low = tg_add_scalar(tg_mul_scalar(up, step), start);
  TgTensor *high = tg_rsub_scalar(tg_mul_scalar(down, step), stop);
  TgTensor *t = tensor_cast(tg_where(tg_lt_scalar(i, (double)(steps / 2)), low, high), dtype_public(d));
  return tensor_placed(t, "linspace", o.device);
}

TgStatus tg_meshgrid(TgTensor *const *x, int n, bool xy, TgTensor **out) {
  if (n < 1 || !x || !x[0]) return TG_ERR_VALUE;
  TgContext *ctx = x[0]->ctx;
  int64_t d[TG_MAX_RANK];
  TG_REQUIRE_OR(ctx, n <= TG_MAX_RANK, TG_ERR_LIMIT, TG_ERR_LIMIT, "meshgrid: %d tensors", n);
  TG_LIST_OR(ctx, "meshgrid", out, n, TG_ERR_VALUE);
  for (int i = 0; i < n; i++) {
    if (!ctx_two("meshgrid", x[0], x[i])) return x[i] ? ctx->err.status : TG_ERR_VALUE;
    TG_REQUIRE_OR(ctx, rank(x[i]) <= 1, TG_ERR_SHAPE, TG_ERR_SHAPE,
                  "meshgrid: tensor %d has shape %s, more than one axis", i, SHAPE_OF(x[i]));
    d[i] = nelem(x[i]);
  }
  bool swap = xy && n > 1;
  if (swap) {
    int64_t t = d[0];
    d[0] = d[1];
    d[1] = t;
  }
  for (int i = 0; i < n; i++) {
    int at = swap && i < 2 ? 1 - i : i;
    int64_t one[TG_MAX_RANK];
    for (int k = 0; k < n; k++)
      one[k] = k == at ? d[k] : 1;
    if (!(out[i] = tg_expand(tg_reshape(x[i], n, one), n, d))) return ctx->err.status;
  }
  return TG_OK;
}
