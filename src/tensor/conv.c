/* conv.c: matrix products, convolutions and pools. All are a view of windows, a multiply and a sum: no op of their own. */
#include "tensor/front.h"

static TgTensor *sum_in(TgTensor *x, DType acc, int n, const int *axes) {
  TgReduceOptions o = {.size = sizeof o, .axis = {.n = n}, .dtype = dtype_public(acc)};
  for (int i = 0; i < n; i++) o.axis.v[i] = axes[i];
  return tg_sum_opt(x, &o);
}
/* a (.., m, 1, k) times b (.., 1, n, k), summed over k. */
TgTensor *tg_matmul_opt(TgTensor *a, TgTensor *b, const TgMatmulOptions *opt) {
  TgContext *ctx = ctx_two("matmul", a, b);
  if (!ctx) return NULL;
  TG_OPTIONS(TgMatmulOptions, o, opt);
  int ra = rank(a), rb = rank(b);
  TG_REQUIRE(ctx, ra > 0 && rb > 0 && ra < TG_MAX_RANK && rb < TG_MAX_RANK, TG_ERR_SHAPE, "matmul: %s by %s", SHAPE_OF(a), SHAPE_OF(b));
  TG_REQUIRE(ctx, tg_dim(a, -1) == tg_dim(b, rb == 1 ? -1 : -2), TG_ERR_SHAPE, "matmul: %s by %s: inner sizes differ", SHAPE_OF(a), SHAPE_OF(b));
  DType d = dtype_of(o.dtype, dtype_join(dt(a), dt(b))), acc = o.dtype ? d : sum_dtype(d);
  TG_REQUIRE(ctx, d, TG_ERR_DTYPE, "matmul: unknown dtype %d", (int)o.dtype);
  a = tg_cast(a, dtype_public(acc)), b = tg_cast(b, dtype_public(acc));
  if (ra == 1) a = tg_unsqueeze(a, 0);
  if (rb == 1) b = tg_unsqueeze(b, 1);
  TgTensor *p = tg_mul(tg_unsqueeze(a, -2), tg_unsqueeze(tg_transpose(b, -1, -2), -3));
  TgTensor *r = sum_in(p, acc, 1, (int[]){-1});
  if (rb == 1) r = tg_squeeze(r, -1);
  if (ra == 1) r = tg_squeeze(r, rb == 1 ? -1 : -2);
  return tg_cast(r, dtype_public(d));
}
TgTensor *tg_dot_opt(TgTensor *a, TgTensor *b, const TgMatmulOptions *o) { return tg_matmul_opt(a, b, o); }
TgTensor *tg_linear(TgTensor *x, TgTensor *weight, TgTensor *bias) {
  TgContext *ctx = ctx_two("linear", x, weight);
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, rank(weight) == 2 && tg_dim(x, -1) == dims(weight)[1], TG_ERR_SHAPE, "linear: %s by weight %s", SHAPE_OF(x), SHAPE_OF(weight));
  TG_REQUIRE(ctx, !bias || (rank(bias) == 1 && dims(bias)[0] == dims(weight)[0]), TG_ERR_SHAPE, "linear: bias %s for weight %s", SHAPE_OF(bias),
             SHAPE_OF(weight));
  TgTensor *r = tg_matmul(x, tg_transpose(weight, 0, 1));
  return bias ? tg_add(r, bias) : r;
}

/* Windows over the last two axes: x (.., h, w) -> (.., oh, ow, kh, kw), a view made of expand, reshape, shrink and permute.
 * With stride >= kernel and no dilation an axis splits in (o, s) and loses its tail. Otherwise the axis i is repeated so that each
 * period of i*f + d elements starts d further on: row k of the (k, i*f + d) split is the axis shifted by k*d. */
static UOp *windows(TgContext *ctx, UOp *x, const int64_t *k, const int64_t *s, const int64_t *dil) {
  UOpStore *st = ctx->store;
  int lead = x->shape->n - 2, n = lead;
  int64_t o[2], d[TG_MAX_RANK], e[2 * TG_MAX_RANK], order[TG_MAX_RANK];
  for (int a = 0; a < 2; a++) o[a] = (x->shape->v[lead + a] - dil[a] * (k[a] - 1) - 1) / s[a] + 1;
  bool simple = s[0] >= k[0] && s[1] >= k[1] && dil[0] == 1 && dil[1] == 1;
  for (int i = 0; i < lead; i++) d[i] = x->shape->v[i], e[2 * i] = 0, e[2 * i + 1] = d[i];
  if (simple) {
    for (int a = 0; a < 2; a++) {                            /* exactly o*s long: cut the tail, or pad what no window reads */
      int64_t i = x->shape->v[lead + a], pad[2 * TG_MAX_RANK] = {0}, be[2 * TG_MAX_RANK];
      for (int j = 0; j < lead + 2; j++) be[2 * j] = 0, be[2 * j + 1] = x->shape->v[j];
      if (o[a] * s[a] > i) pad[2 * (lead + a) + 1] = o[a] * s[a] - i, x = u_pad(st, x, pad);
      else be[2 * (lead + a) + 1] = o[a] * s[a], x = u_shrink(st, x, be);
      if (!x) return NULL;
      d[n++] = o[a], d[n++] = s[a];
    }
    x = u_reshape(st, x, n, d);
    for (int a = 0; a < 2; a++) {
      e[2 * (lead + 2 * a)] = e[2 * (lead + 2 * a) + 2] = 0;
      e[2 * (lead + 2 * a) + 1] = o[a], e[2 * (lead + 2 * a) + 3] = k[a];
    }
    x = u_shrink(st, x, e);
    for (int i = 0; i < lead; i++) order[i] = i;
    order[lead] = lead, order[lead + 1] = lead + 2, order[lead + 2] = lead + 1, order[lead + 3] = lead + 3;
    return u_permute(st, x, order);
  }
  int64_t period[2], reps[2];
  for (int a = 0; a < 2; a++) {
    int64_t i = x->shape->v[lead + a], f = 1 + (o[a] * s[a] > i - dil[a] * (k[a] - 1));
    period[a] = i * f + dil[a], reps[a] = (k[a] * period[a] + i - 1) / i;
  }
  n = lead;
  for (int a = 0; a < 2; a++) d[n++] = 1, d[n++] = x->shape->v[lead + a];
  int64_t i0 = x->shape->v[lead], i1 = x->shape->v[lead + 1];
  x = u_reshape(st, x, n, d);
  d[lead] = reps[0], d[lead + 2] = reps[1];
  x = u_expand(st, x, d);
  d[lead] = reps[0] * i0, d[lead + 1] = reps[1] * i1;
  x = u_reshape(st, x, lead + 2, d);
  for (int a = 0; a < 2; a++) e[2 * (lead + a)] = 0, e[2 * (lead + a) + 1] = k[a] * period[a];
  x = u_shrink(st, x, e);
  for (int a = 0; a < 2; a++) d[lead + 2 * a] = k[a], d[lead + 2 * a + 1] = period[a];
  x = u_reshape(st, x, lead + 4, d);
  for (int a = 0; a < 2; a++) {                              /* stride: keep o*s of each period, split (o, s), keep the first */
    e[2 * (lead + 2 * a)] = e[2 * (lead + 2 * a) + 2] = 0;
    e[2 * (lead + 2 * a) + 1] = k[a], e[2 * (lead + 2 * a) + 3] = o[a] * s[a];
  }
  x = u_shrink(st, x, e);
  n = lead;
  for (int a = 0; a < 2; a++) d[n++] = k[a], d[n++] = o[a], d[n++] = s[a];
  x = u_reshape(st, x, n, d);
  for (int j = lead; j < n; j++) e[2 * j] = 0, e[2 * j + 1] = (j - lead) % 3 == 2 ? 1 : d[j];
  x = u_shrink(st, x, e);
  n = lead;
  for (int a = 0; a < 2; a++) d[n++] = k[a], d[n++] = o[a];
  x = u_reshape(st, x, n, d);
  for (int i = 0; i < lead; i++) order[i] = i;
  order[lead] = lead + 1, order[lead + 1] = lead + 3, order[lead + 2] = lead, order[lead + 3] = lead + 2;
  return u_permute(st, x, order);
}
static void two(int64_t v[2], int64_t def0, int64_t def1) {
  if (v[0] == 0) v[0] = def0, v[1] = v[1] ? v[1] : def1;
  else if (v[1] == 0) v[1] = v[0];
}
static bool geometry(TgContext *ctx, const char *op, const TgTensor *x, const int64_t *k, const int64_t *s, const int64_t *d, const int64_t *p) {
  for (int a = 0; a < 2; a++) {
    int64_t size = tg_dim(x, a - 2);
    bool ok = s[a] > 0 && d[a] > 0 && k[a] > 0 && p[a] >= 0 && s[a] < INT32_MAX && d[a] < INT32_MAX && k[a] < INT32_MAX && p[a] < INT32_MAX;
    ok = ok && size > 0 && size + 2 * p[a] - d[a] * (k[a] - 1) > 0;
    TG_REQUIRE_OR(ctx, ok, false, TG_ERR_SHAPE, "%s: %s with kernel %s, stride %s, dilation %s, padding %s", op, SHAPE_OF(x), dims_text(2, k).s,
                  dims_text(2, s).s, dims_text(2, d).s, dims_text(2, p).s);
  }
  return true;
}
static TgTensor *pad_both(TgTensor *x, const int64_t *p, double value) {
  int64_t lo[TG_MAX_RANK] = {0};
  if (!x || (p[0] == 0 && p[1] == 0)) return x;
  lo[rank(x) - 2] = p[0], lo[rank(x) - 1] = p[1];
  return tg_pad_value(x, lo, lo, value);
}
TgTensor *tg_conv2d_opt(TgTensor *x, TgTensor *w, const TgConvOptions *opt) {
  TgContext *ctx = ctx_two("conv2d", x, w);
  if (!ctx) return NULL;
  TG_OPTIONS(TgConvOptions, o, opt);
  int64_t g = o.groups ? o.groups : 1;
  two(o.stride, 1, 1), two(o.dilation, 1, 1), two(o.padding, 0, 0);
  TG_REQUIRE(ctx, rank(x) == 4 && rank(w) == 4 && g > 0 && dims(x)[1] == dims(w)[1] * g && dims(w)[0] % g == 0, TG_ERR_SHAPE,
             "conv2d: %s by weight %s in %lld groups", SHAPE_OF(x), SHAPE_OF(w), (long long)g);
  TG_REQUIRE(ctx, !o.bias || (rank(o.bias) == 1 && dims(o.bias)[0] == dims(w)[0]), TG_ERR_SHAPE, "conv2d: bias %s for weight %s", SHAPE_OF(o.bias),
             SHAPE_OF(w));
  const int64_t *k = dims(w) + 2;
  if (!geometry(ctx, "conv2d", x, k, o.stride, o.dilation, o.padding)) return NULL;
  int64_t b = dims(x)[0], cout = dims(w)[0], cin = dims(w)[1], r = cout / g;
  DType d = dtype_of(o.dtype, dtype_join(dt(x), dt(w))), acc = o.dtype ? d : sum_dtype(d);
  TG_REQUIRE(ctx, d, TG_ERR_DTYPE, "conv2d: unknown dtype %d", (int)o.dtype);
  x = pad_both(tg_cast(x, dtype_public(acc)), o.padding, 0);
  w = tg_cast(w, dtype_public(acc));
  if (!x || !w) return NULL;
  TgTensor *v = tensor_new(ctx, windows(ctx, x->uop, k, o.stride, o.dilation));                     /* b, g*cin, oh, ow, kh, kw */
  if (!v) return NULL;
  int64_t oh = dims(v)[2], ow = dims(v)[3];
  v = tg_permute(tg_reshape(v, TG_SHAPE(b, g, 1, cin, oh, ow, k[0], k[1])), 8, (const int64_t[]){0, 1, 2, 4, 5, 3, 6, 7});
  TgTensor *y = sum_in(tg_mul(v, tg_reshape(w, TG_SHAPE(1, g, r, 1, 1, cin, k[0], k[1]))), acc, 3, (int[]){5, 6, 7});
  y = tg_cast(tg_reshape(y, TG_SHAPE(b, cout, oh, ow)), dtype_public(dtype_is_float(d) ? d : acc));
  return o.bias ? tg_add(y, tg_reshape(o.bias, TG_SHAPE(cout, 1, 1))) : y;
}
static TgTensor *pool(const char *op, TgTensor *x, TgPoolOptions *o, double pad_value) {
  two(o->kernel, 2, 2), two(o->stride, o->kernel[0], o->kernel[1]), two(o->dilation, 1, 1), two(o->padding, 0, 0);
  TG_REQUIRE(x->ctx, rank(x) >= 2 && rank(x) <= TG_MAX_RANK - 4, TG_ERR_SHAPE, "%s: rank of %s", op, SHAPE_OF(x));
  if (!geometry(x->ctx, op, x, o->kernel, o->stride, o->dilation, o->padding)) return NULL;
  x = pad_both(x, o->padding, pad_value);
  return x ? tensor_new(x->ctx, windows(x->ctx, x->uop, o->kernel, o->stride, o->dilation)) : NULL;
}
TgTensor *tg_max_pool2d_opt(TgTensor *x, const TgPoolOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(TgPoolOptions, o, opt);
  return tg_max(pool("max_pool2d", x, &o, -INFINITY), .axis = TG_AXES(-2, -1));
}
TgTensor *tg_avg_pool2d_opt(TgTensor *x, const TgPoolOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(TgPoolOptions, o, opt);
  if (!dtype_is_float(dt(x))) x = tg_cast(x, TG_F32);
  TgPoolOptions ones = o;
  TgTensor *v = x ? pool("avg_pool2d", x, &o, 0) : NULL;
  if (!v || !o.exclude_pad) return tg_mean(v, .axis = TG_AXES(-2, -1));
  return tg_div(tg_sum(v, .axis = TG_AXES(-2, -1)), tg_sum(pool("avg_pool2d", tg_ones_like(x), &ones, 0), .axis = TG_AXES(-2, -1)));
}
