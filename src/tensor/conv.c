/* conv.c: matrix products, convolutions and pools. All are made of a view of windows, a multiplication and
 * a sum; they have no op of their own. */
#include "tensor/front.h"

static TgTensor *sum_in(TgTensor *x, DType acc, int n, const int *axes) {
  TgReduceOptions o = {.size = sizeof o, .axis = {.n = n}, .dtype = dtype_public(acc)};
  for (int i = 0; i < n; i++)
    o.axis.v[i] = axes[i];
  return tg_sum_opt(x, &o);
}

/* Multiplies a (.., m, 1, k) by b (.., 1, n, k) and sums over k. */
TgTensor *tg_matmul_opt(TgTensor *a, TgTensor *b, const TgMatmulOptions *opt) {
  TgContext *ctx = ctx_two("matmul", a, b);
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "matmul", TgMatmulOptions, o, opt);
  int ra = rank(a), rb = rank(b);
  TG_REQUIRE(ctx, ra > 0 && rb > 0 && ra < TG_MAX_RANK && rb < TG_MAX_RANK, TG_ERR_SHAPE, "matmul: %s by %s",
             SHAPE_OF(a), SHAPE_OF(b));
  TG_REQUIRE(ctx, dim_at(a, -1) == dim_at(b, rb == 1 ? -1 : -2), TG_ERR_SHAPE,
             "matmul: %s by %s: inner sizes differ", SHAPE_OF(a), SHAPE_OF(b));
  DType d = dtype_of(o.dtype, dtype_join(dt(a), dt(b))), acc = o.dtype ? d : sum_dtype(d);
  TG_REQUIRE(ctx, d, TG_ERR_DTYPE, "matmul: unknown dtype %d", (int)o.dtype);
  a = tensor_cast(a, dtype_public(acc));
  b = tensor_cast(b, dtype_public(acc));
  if (ra == 1) a = tg_unsqueeze(a, 0);
  if (rb == 1) b = tg_unsqueeze(b, 1);
  TgTensor *p = tg_mul(tg_unsqueeze(a, -2), tg_unsqueeze(tg_transpose(b, -1, -2), -3));
  TgTensor *r = sum_in(p, acc, 1, (int[]){-1});
  if (rb == 1) r = tg_squeeze(r, -1);
  if (ra == 1) r = tg_squeeze(r, rb == 1 ? -1 : -2);
  return tensor_cast(r, dtype_public(d));
}

TgTensor *tg_dot_opt(TgTensor *a, TgTensor *b, const TgMatmulOptions *o) { return tg_matmul_opt(a, b, o); }

TgTensor *tg_linear(TgTensor *x, TgTensor *weight, TgTensor *bias) {
  TgContext *ctx = ctx_two("linear", x, weight);
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, rank(weight) == 2 && dim_at(x, -1) == dims(weight)[1], TG_ERR_SHAPE,
             "linear: %s by weight %s", SHAPE_OF(x), SHAPE_OF(weight));
  TG_REQUIRE(ctx, !bias || (rank(bias) == 1 && dims(bias)[0] == dims(weight)[0]), TG_ERR_SHAPE,
             "linear: bias %s for weight %s", SHAPE_OF(bias), SHAPE_OF(weight));
  TgTensor *r = tg_matmul(x, tg_transpose(weight, 0, 1));
  return bias ? tg_add(r, bias) : r;
}

/* ---- geometry of sliding windows over the last n axes, for each axis: kernel k, stride s, dilation d,
 * padding lo and hi, and o windows */
typedef struct Windows {
  int n;
  int64_t k[TG_MAX_SPATIAL], s[TG_MAX_SPATIAL], d[TG_MAX_SPATIAL], lo[TG_MAX_SPATIAL], hi[TG_MAX_SPATIAL],
      o[TG_MAX_SPATIAL];
} Windows;

static bool no_sizes(const TgSizes *z) { return z->n == 0 && z->v[0] == 0; }

static bool sizes_get(TgContext *ctx, const char *op, const char *what, const TgSizes *z, int n,
                      int64_t fallback, int64_t *out) {
  TG_REQUIRE_OR(ctx, z->n == 0 || z->n == 1 || z->n == n, false, TG_ERR_VALUE,
                "%s: %d values of %s for %d axes", op, z->n, what, n);
  for (int i = 0; i < n; i++)
    out[i] = no_sizes(z) ? fallback : z->v[z->n <= 1 ? 0 : i];
  return true;
}

/* Reads one value, n values, or 2n values: (lo, hi) of the last axis first. */
static bool padding_get(TgContext *ctx, const char *op, const TgSizes *p, Windows *w) {
  int n = w->n;
  if (p->n != 2 * n)
    return sizes_get(ctx, op, "padding", p, n, 0, w->lo) && sizes_get(ctx, op, "padding", p, n, 0, w->hi);
  for (int i = 0; i < n; i++) {
    w->lo[i] = p->v[2 * (n - 1 - i)];
    w->hi[i] = p->v[2 * (n - 1 - i) + 1];
  }
  return true;
}

/* Whether v is small enough that sums and products of two such values do not overflow. */
static bool reasonable(int64_t v) { return v > -INT32_MAX && v < INT32_MAX; }

static bool windows_fit(TgContext *ctx, const char *op, const TgTensor *x, Windows *w, bool ceil_mode) {
  for (int i = 0; i < w->n; i++) {
    int64_t size = dims(x)[rank(x) - w->n + i], k = w->k[i], s = w->s[i], d = w->d[i], left = -1;
    bool ok = s > 0 && d > 0 && k > 0 && reasonable(s) && reasonable(d) && reasonable(k) &&
              reasonable(w->lo[i]) && reasonable(w->hi[i]);
    if (ok) left = size + w->lo[i] + w->hi[i] - (d * (k - 1) + 1);
    ok = ok && size >= 0 && -TG_MIN(w->lo[i], 0) - TG_MIN(w->hi[i], 0) <= size && left >= 0;
    TG_REQUIRE_OR(ctx, ok, false, TG_ERR_SHAPE,
                  "%s: %s with kernel %s, stride %s, dilation %s, padding %s and %s", op, SHAPE_OF(x),
                  dims_text(ctx->store, w->n, w->k).s, dims_text(ctx->store, w->n, w->s).s,
                  dims_text(ctx->store, w->n, w->d).s, dims_text(ctx->store, w->n, w->lo).s,
                  dims_text(ctx->store, w->n, w->hi).s);
    w->o[i] = (ceil_mode ? left + s - 1 : left) / s + 1;
    if ((w->o[i] - 1) * s >= size + w->lo[i] && w->o[i] > 1 && ceil_mode)
      w->o[i]--; /* it would begin in the padding at the end */
  }
  return true;
}

static bool is_inside(const Windows *w) {
  for (int i = 0; i < w->n; i++)
    if (w->lo[i] < 0 || w->hi[i] < 0) return false;
  return true;
}

/* Returns the windows of x, (.., s1 .. sn) -> (.., o1 .. on, k1 .. kn). x is padded by lo and hi, and
 * further if the last window needs it (ceil mode). Zeros are added axis by axis as windows are taken. */
static TgTensor *windows(TgTensor *x, const Windows *w, double value) {
  if (!x) return NULL;
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0}, none[TG_MAX_SPATIAL] = {0};
  int first = rank(x) - w->n;
  for (int i = 0; i < w->n; i++) {
    int64_t need = (w->o[i] - 1) * w->s[i] + w->d[i] * (w->k[i] - 1) + 1 - dims(x)[first + i] - w->lo[i];
    lo[first + i] = w->lo[i];
    hi[first + i] = TG_MAX(w->hi[i], need);
  }
  TgTensor *padded = tg_pad_value(x, lo, hi, value);
  if (!padded) return NULL;
  bool by_axis = value == 0 && is_inside(w);
  UOp *u = (by_axis ? x : padded)->uop;
  return tensor_new(x->ctx, u_windows_nd(x->ctx->store, u, w->n, w->k, w->s, w->d,
                                         by_axis ? lo + first : none, by_axis ? hi + first : none));
}

/* The dtype to compute in, and that of the result: narrow floats are rounded back, narrow integers stay
 * wide. */
static bool out_dtype(TgContext *ctx, const char *op, TgDType want, DType join, DType *acc, DType *out) {
  *acc = dtype_of(want, sum_dtype(join));
  *out = want || !dtype_is_float(join) ? *acc : join;
  TG_REQUIRE_OR(ctx, *out && *out != DT_BOOL, false, TG_ERR_DTYPE, "%s: dtype %s", op, dtype_name(*out));
  return true;
}

/* ---- convolutions */
TgTensor *tg_conv2d_opt(TgTensor *x, TgTensor *weight, const TgConvOptions *opt) {
  TG_NUMBERS(weight, "conv2d");
  TgContext *ctx = ctx_two("conv2d", x, weight);
  if (!ctx || !last_numbers(x, "conv2d", 1)) return NULL;
  TG_OPTIONS(ctx, "conv2d", TgConvOptions, o, opt);
  int n = rank(x) - 2, r = 0;
  int64_t g = TG_OPTION(o, groups, 1), d[TG_MAX_RANK], order[TG_MAX_RANK], wd[TG_MAX_RANK];
  TG_REQUIRE(ctx,
             n >= 1 && n <= TG_MAX_SPATIAL && rank(weight) == rank(x) && g > 0 &&
                 g <= TG_MAX(dims(x)[1], 1) && dims(x)[1] == dims(weight)[1] * g && dims(weight)[0] % g == 0,
             TG_ERR_SHAPE, "conv2d: %s by weight %s in %lld groups", SHAPE_OF(x), SHAPE_OF(weight),
             (long long)g);
  TG_REQUIRE(ctx, !o.bias || (o.bias->ctx == ctx && rank(o.bias) == 1 && dims(o.bias)[0] == dims(weight)[0]),
             TG_ERR_SHAPE, "conv2d: bias %s for weight %s", SHAPE_OF(o.bias), SHAPE_OF(weight));
  Windows w = {.n = n};
  for (int i = 0; i < n; i++)
    w.k[i] = dims(weight)[2 + i];
  DType acc, out;
  if (!sizes_get(ctx, "conv2d", "stride", &o.stride, n, 1, w.s) ||
      !sizes_get(ctx, "conv2d", "dilation", &o.dilation, n, 1, w.d) ||
      !padding_get(ctx, "conv2d", &o.padding, &w) || !windows_fit(ctx, "conv2d", x, &w, false) ||
      !out_dtype(ctx, "conv2d", o.dtype, dtype_join(dt(x), dt(weight)), &acc, &out))
    return NULL;
  int64_t b = dims(x)[0], cout = dims(weight)[0], cin = dims(weight)[1];
  TgTensor *v = windows(tensor_cast(x, dtype_public(acc)), &w,
                        0); /* (b, g cin, o.., k..) -> (b, g, 1, o.., cin, k..) */
  if (!v) return NULL;
  d[0] = b;
  d[1] = g;
  d[2] = 1;
  d[3] = cin;
  wd[0] = 1;
  wd[1] = g;
  wd[2] = cout / g;
  wd[3 + n] = cin;
  order[0] = 0;
  order[1] = 1;
  order[2] = 2;
  order[3 + n] = 3;
  for (int i = 0; i < n; i++) {
    d[4 + i] = w.o[i];
    d[4 + n + i] = w.k[i];
    order[3 + i] = 4 + i;
    order[4 + n + i] = 4 + n + i;
    wd[3 + i] = 1;
    wd[4 + n + i] = w.k[i];
  }
  v = tg_permute(tg_reshape(v, 4 + 2 * n, d), 4 + 2 * n, order);
  int axes[TG_MAX_RANK];
  for (int i = 0; i <= n; i++)
    axes[r++] = 3 + n + i;
  TgTensor *y =
      sum_in(tg_mul(v, tg_reshape(tensor_cast(weight, dtype_public(acc)), 4 + 2 * n, wd)), acc, r, axes);
  d[0] = b;
  d[1] = cout;
  for (int i = 0; i < n; i++) {
    d[2 + i] = w.o[i];
    wd[1 + i] = 1;
  }
  y = tensor_cast(tg_reshape(y, 2 + n, d), dtype_public(out));
  wd[0] = cout;
  return o.bias ? tg_add(y, tg_reshape(o.bias, 1 + n, wd)) : y;
}

/* Computes the number of elements that a transposed convolution makes along each axis. */
static bool transposed_sizes(TgContext *ctx, const TgTensor *x, const TgTensor *weight, const Windows *w,
                             const int64_t *extra, int64_t *size) {
  for (int i = 0; i < w->n; i++) {
    int64_t in = dims(x)[2 + i], k = w->k[i], s = w->s[i], d = w->d[i], most = INT64_MAX / 8;
    bool ok = s > 0 && d > 0 && k > 0 && in > 0 && extra[i] >= 0 && (extra[i] < s || extra[i] < d) &&
              s < INT32_MAX && d < INT32_MAX && k < INT32_MAX && in < most / s && k < most / d &&
              reasonable(w->lo[i]) && reasonable(w->hi[i]);
    size[i] = ok ? (in - 1) * s + d * (k - 1) + 1 + extra[i] : 0;
    TG_REQUIRE_OR(ctx, ok, false, TG_ERR_VALUE,
                  "conv_transpose2d: %s by weight %s, stride %s, dilation %s, output padding %s", SHAPE_OF(x),
                  SHAPE_OF(weight), dims_text(ctx->store, w->n, w->s).s, dims_text(ctx->store, w->n, w->d).s,
                  dims_text(ctx->store, w->n, extra).s);
    ok = w->lo[i] < size[i] && w->hi[i] < size[i] && w->lo[i] + w->hi[i] < size[i];
    TG_REQUIRE_OR(ctx, ok, false, TG_ERR_SHAPE, "conv_transpose2d: padding %s and %s of %lld elements",
                  dims_text(ctx->store, w->n, w->lo).s, dims_text(ctx->store, w->n, w->hi).s,
                  (long long)size[i]);
    size[i] -= w->lo[i] + w->hi[i];
  }
  return true;
}

/* The gradient of u_windows_back_nd, which returns windows to their elements, is the windows of its
 * gradient. */
static TgStatus gradient_of_back(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out,
                                 void *user) {
  (void)y, (void)x, (void)n;
  return (out[0] = windows(g, user, 0)) ? TG_OK : tg_error(g->ctx);
}

/* The gradient of a convolution by its input: the products of each element and each tap, summed over the
 * channels, are added to the elements that a window there would cover. */
TgTensor *tg_conv_transpose2d_opt(TgTensor *x, TgTensor *weight, const TgConvOptions *opt) {
  TG_NUMBERS(weight, "conv_transpose2d");
  TgContext *ctx = ctx_two("conv_transpose2d", x, weight);
  if (!ctx || !last_numbers(x, "conv_transpose2d", 1)) return NULL;
  TG_OPTIONS(ctx, "conv_transpose2d", TgConvOptions, o, opt);
  int n = rank(x) - 2;
  int64_t g = TG_OPTION(o, groups, 1), extra[TG_MAX_SPATIAL], size[TG_MAX_SPATIAL];
  TG_REQUIRE(ctx,
             n >= 1 && n <= TG_MAX_SPATIAL && rank(weight) == rank(x) && g > 0 &&
                 dims(x)[1] == dims(weight)[0] && dims(weight)[0] % g == 0,
             TG_ERR_SHAPE, "conv_transpose2d: %s by weight %s in %lld groups", SHAPE_OF(x), SHAPE_OF(weight),
             (long long)g);
  int64_t cin = dims(x)[1] / g, cout = dims(weight)[1];
  TG_REQUIRE(ctx, !o.bias || (o.bias->ctx == ctx && rank(o.bias) == 1 && dims(o.bias)[0] == g * cout),
             TG_ERR_SHAPE, "conv_transpose2d: bias %s for weight %s in %lld groups", SHAPE_OF(o.bias),
             SHAPE_OF(weight), (long long)g);
  Windows w;
  memset(&w, 0, sizeof w);
  w.n = n; /* cleared above, because w is kept and compared byte by byte */
  for (int i = 0; i < n; i++)
    w.k[i] = dims(weight)[2 + i];
  DType acc, out;
  if (!sizes_get(ctx, "conv_transpose2d", "stride", &o.stride, n, 1, w.s) ||
      !sizes_get(ctx, "conv_transpose2d", "dilation", &o.dilation, n, 1, w.d) ||
      !padding_get(ctx, "conv_transpose2d", &o.padding, &w) ||
      !sizes_get(ctx, "conv_transpose2d", "output_padding", &o.output_padding, n, 0, extra) ||
      !transposed_sizes(ctx, x, weight, &w, extra, size) ||
      !out_dtype(ctx, "conv_transpose2d", o.dtype, dtype_join(dt(x), dt(weight)), &acc, &out))
    return NULL;

  int64_t xd[TG_MAX_RANK] = {dims(x)[0], g, cin, 1}, wd[TG_MAX_RANK] = {1, g, cin, cout};
  int64_t d[TG_MAX_RANK] = {dims(x)[0], g * cout}, each[TG_MAX_RANK] = {g * cout};
  for (int i = 0; i < n; i++) {
    xd[4 + i] = dims(x)[2 + i];
    xd[4 + n + i] = 1;
    wd[4 + i] = 1;
    wd[4 + n + i] = w.k[i];
    d[2 + i] = size[i];
    each[1 + i] = 1;
  }
  TgTensor *product = tg_mul(tg_reshape(tensor_cast(x, dtype_public(acc)), 4 + 2 * n, xd),
                             tg_reshape(tensor_cast(weight, dtype_public(acc)), 4 + 2 * n, wd));
  TgTensor *sum = sum_in(product, acc, 1, (int[]){2}); /* (b, g, cout, i.., k..) */
  if (!sum) return NULL;
  TgTensor *y = tensor_new(ctx, u_windows_back_nd(ctx->store, sum->uop, n, size, w.lo, w.s, w.d));
  for (int i = 0; i < n; i++) /* as many windows as elements, whatever the output padding is */
  {
    w.o[i] = dims(x)[2 + i];
    w.hi[i] -= extra[i];
  }
  if (dtype_is_float(acc)) y = with_gradient(y, &sum, 1, gradient_of_back, &w, sizeof w);
  y = tensor_cast(tg_reshape(y, 2 + n, d), dtype_public(out));
  return o.bias ? tg_add(y, tg_reshape(o.bias, 1 + n, each)) : y;
}

/* ---- pools */
static bool pool_geometry(const char *op, TgTensor *x, const TgPoolOptions *o, Windows *w) {
  TgContext *ctx = x->ctx;
  int n = TG_OPTION(*o, axes, o->kernel.n > 1 ? o->kernel.n : 2);
  TG_REQUIRE_OR(ctx, n >= 1 && n <= TG_MAX_SPATIAL && rank(x) >= n && rank(x) + n < TG_MAX_RANK, false,
                TG_ERR_SHAPE, "%s: %d axes of %s", op, n, SHAPE_OF(x));
  w->n = n;
  if (!last_numbers(x, op, rank(x) - n) || !sizes_get(ctx, op, "kernel", &o->kernel, n, 2, w->k) ||
      !sizes_get(ctx, op, "dilation", &o->dilation, n, 1, w->d) ||
      !sizes_get(ctx, op, "stride", &o->stride, n, 0, w->s) || !padding_get(ctx, op, &o->padding, w))
    return false;
  for (int i = 0; i < n; i++) {
    if (no_sizes(&o->stride)) w->s[i] = w->k[i];
    TG_REQUIRE_OR(ctx, w->lo[i] >= 0 && w->hi[i] >= 0, false, TG_ERR_VALUE, "%s: negative padding", op);
  }
  return windows_fit(ctx, op, x, w, o->ceil_mode);
}

static TgAxes last_axes(int n) {
  TgAxes a = {.n = n};
  for (int i = 0; i < n; i++)
    a.v[i] = i - n;
  return a;
}

/* Returns the place of the first maximum in each window, counted in the unpadded input. */
static TgTensor *pool_places(TgTensor *x, TgTensor *win, TgTensor *best, const Windows *w) {
  int64_t d[TG_MAX_SPATIAL], total = 1;
  for (int i = 0; i < w->n; i++)
    total *= d[i] = dims(x)[rank(x) - w->n + i];
  TgContext *ctx = x->ctx;
  TG_REQUIRE(ctx, total < INT32_MAX, TG_ERR_LIMIT, "max_pool2d: indices into %lld elements",
             (long long)total);
  TgTensor *place = windows(tg_reshape(tg_arange(ctx, 0, (double)total), w->n, d), w, INT32_MAX);
  TgTensor *hit = tg_bitor(tg_eq(win, best), tg_isnan(win));
  return tg_min(tg_where(hit, place, tg_full(ctx, TG_SCALAR, INT32_MAX, .dtype = TG_I32)),
                .axis = last_axes(w->n));
}

TgTensor *tg_max_pool2d_opt(TgTensor *x, const TgPoolOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), "max_pool2d", TgPoolOptions, o, opt);
  Windows w;
  if (!pool_geometry("max_pool2d", x, &o, &w)) return NULL;
  double least = scalar_cast(DT_F64, dt(x), op_identity(OPS_MAX, dt(x))).f;
  TgTensor *v = windows(x, &w, least), *best = tg_max(v, .axis = last_axes(w.n));
  if (!best || !o.indices) return best;
  int64_t d[TG_MAX_RANK];
  for (int i = 0; i < rank(v); i++)
    d[i] = i < rank(best) ? dims(best)[i] : 1;
  *o.indices = pool_places(x, v, tg_reshape(best, rank(v), d), &w);
  return *o.indices ? best : NULL;
}

/* Averages over the whole window, or over the part of it that is x and its padding (what ceil mode adds
 * never counts), or over x alone. */
TgTensor *tg_avg_pool2d_opt(TgTensor *x, const TgPoolOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), "avg_pool2d", TgPoolOptions, o, opt);
  if (!dtype_is_float(dt(x))) x = tensor_cast(x, TG_F32);
  Windows w;
  if (!x || !pool_geometry("avg_pool2d", x, &o, &w)) return NULL;
  TgAxes axes = last_axes(w.n);
  bool whole = !o.exclude_pad, padded = false;
  int64_t d[TG_MAX_SPATIAL], lo[TG_MAX_SPATIAL], hi[TG_MAX_SPATIAL];
  for (int i = 0; i < w.n; i++) {
    d[i] = dims(x)[rank(x) - w.n + i];
    lo[i] = w.lo[i];
    hi[i] = w.hi[i];
    whole = whole && (w.o[i] - 1) * w.s[i] + w.d[i] * (w.k[i] - 1) + 1 <= d[i] + w.lo[i] + w.hi[i];
    padded = padded || w.lo[i] || w.hi[i];
  }
  TgTensor *v = windows(x, &w, 0);
  if (whole || (o.exclude_pad && !padded && !o.ceil_mode)) return tg_mean(v, .axis = axes);
  TgTensor *one = tg_ones(x->ctx, w.n, d, .dtype = dt(x) == DT_F64 ? TG_F64 : TG_F32);
  Windows counted = w;
  if (!o.exclude_pad) {
    one = tg_pad_value(one, lo, hi, 1);
    memset(counted.lo, 0, sizeof lo), memset(counted.hi, 0, sizeof hi);
  }
  TgTensor *sum = tg_sum(v, .axis = axes), *count = tg_sum(windows(one, &counted, 0), .axis = axes);
  return sum ? tensor_cast(tg_div(sum, count), tg_dtype(x)) : NULL;
}

TgTensor *tg_max_unpool2d_opt(TgTensor *x, TgTensor *indices, const TgPoolOptions *opt) {
  TgContext *ctx = ctx_two("max_unpool2d", x, indices);
  if (!ctx) return NULL;
  TG_NUMBERS(x, "max_unpool2d");
  TG_OPTIONS(ctx, "max_unpool2d", TgPoolOptions, o, opt);
  int n = TG_OPTION(o, axes, o.kernel.n > 1 ? o.kernel.n : 2);
  int64_t k[TG_MAX_SPATIAL], s[TG_MAX_SPATIAL], d[TG_MAX_RANK], rows = 1, cells = 1, each = 1;
  Windows w = {.n = n};
  TG_REQUIRE(ctx, n >= 1 && n <= TG_MAX_SPATIAL && rank(x) >= n && x->uop->shape == indices->uop->shape,
             TG_ERR_SHAPE, "max_unpool2d: %s with indices %s", SHAPE_OF(x), SHAPE_OF(indices));
  TG_REQUIRE(ctx, dtype_is_int(dt(indices)), TG_ERR_DTYPE, "max_unpool2d: indices of %s",
             dtype_name(dt(indices)));
  if (!sizes_get(ctx, "max_unpool2d", "kernel", &o.kernel, n, 2, k) ||
      !sizes_get(ctx, "max_unpool2d", "stride", &o.stride, n, 0, s) ||
      !padding_get(ctx, "max_unpool2d", &o.padding, &w))
    return NULL;
  int64_t whole[TG_MAX_SPATIAL];
  if (!sizes_get(ctx, "max_unpool2d", "output size", &o.output_size, n, 0, whole)) return NULL;
  for (int i = 0; i < rank(x); i++) {
    int a = i - (rank(x) - n);
    d[i] = dims(x)[i];
    if (a < 0) {
      rows *= d[i];
      continue;
    }
    cells *= d[i];
    d[i] = whole[a] ? whole[a] : (d[i] - 1) * (no_sizes(&o.stride) ? k[a] : s[a]) - w.lo[a] - w.hi[a] + k[a];
    TG_REQUIRE(ctx, d[i] > 0, TG_ERR_SHAPE, "max_unpool2d: %s unpooled to %s", SHAPE_OF(x),
               dims_text(ctx->store, i + 1, d).s);
    each *= d[i];
  }
  if (!shape_check(ctx, "max_unpool2d", rank(x), d, NULL)) return NULL;
  TgTensor *grid = tg_zeros(ctx, TG_SHAPE(rows, each), .dtype = tg_dtype(x));
  grid = tg_scatter(grid, 1, tg_reshape(indices, TG_SHAPE(rows, cells)), tg_reshape(x, TG_SHAPE(rows, cells)),
                    .reduce = TG_SCATTER_ADD);
  return tg_reshape(grid, rank(x), d);
}
