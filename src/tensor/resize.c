/* resize.c: interpolation along the last axes, one axis at a time. Each output element reads one source
 * element, or two with a weight, at places that are computed from its index. */
#include "tensor/front.h"

/* Picks x along an axis at `index`, which is 1-D. */
static TgTensor *pick(TgTensor *x, int axis, TgTensor *index) {
  return tg_transpose(tg_take(tg_transpose(x, axis, 0), index), axis, 0);
}

static int64_t common_factor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Returns floor((i + shift) from / to) for each new place i, where shift is 1/2 if `middle` is set and
 * otherwise 0. It is computed in whole numbers, so it is exact, and it is less than `from`. The fraction
 * is reduced to its lowest terms first. */
static TgTensor *nearest(TgTensor *i, int64_t from, int64_t to, bool middle) {
  int64_t factor = common_factor(from, to), a = from / factor, b = to / factor;
  if (middle)
    return tg_floordiv_scalar(tg_add_scalar(tg_mul_scalar(i, (double)(2 * a)), (double)a), (double)(2 * b));
  return tg_floordiv_scalar(tg_mul_scalar(i, (double)a), (double)b);
}

/* Resizes an axis. The place that each new element reads is computed from its index. */
static TgTensor *resize(TgTensor *x, int axis, int64_t to, const TgInterpolateOptions *o) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  int64_t from = dims(x)[axis];
  if (to == 0) return tg_slice(x, axis, 0, 0);
  TgTensor *i = tg_arange(ctx, 0, (double)to);
  if (o->mode != TG_LINEAR)
    return pick(x, axis,
                tensor_cast(nearest(tensor_cast(i, TG_I64), from, to, o->mode == TG_NEAREST_EXACT), TG_I32));
  TgDType f = tg_dtype(x);
  double scale =
      o->align_corners ? to > 1 ? (double)(from - 1) / (double)(to - 1) : 0 : (double)from / (double)to;
  TgTensor *at = tensor_cast(i, f);
  at = o->align_corners ? tg_mul_scalar(at, scale)
                        : tg_clamp(tg_sub_scalar(tg_mul_scalar(tg_add_scalar(at, 0.5), scale), 0.5), 0,
                                   (double)(from - 1));
  /* Clamped again as integers, because then their bounds are known and no read needs a check. */
  TgTensor *low = tg_clamp(tensor_cast(at, TG_I32), 0, (double)TG_MAX(from - 2, 0));
  TgTensor *high = tg_minimum_scalar(tg_add_scalar(low, 1), (double)(from - 1));
  TgTensor *w = tg_sub(at, tensor_cast(low, f));
  int64_t d[TG_MAX_RANK];
  for (int k = 0; k < rank(x); k++)
    d[k] = k == axis ? to : 1;
  w = tg_reshape(w, rank(x), d);
  TgTensor *a = pick(x, axis, low), *b = pick(x, axis, high);
  return tg_add(a, tg_mul(tg_sub(b, a), w));
}

TgTensor *tg_interpolate_opt(TgTensor *x, int n, const int64_t *size, const TgInterpolateOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), "interpolate", TgInterpolateOptions, o, opt);
  TgContext *ctx = x->ctx;
  TG_REQUIRE(ctx, (unsigned)o.mode <= TG_NEAREST_EXACT && (!o.align_corners || o.mode == TG_LINEAR),
             TG_ERR_VALUE, "interpolate: mode %d%s", (int)o.mode,
             o.align_corners ? " with align_corners" : "");
  TG_LIST(ctx, "interpolate", size, n);
  bool ok = n >= 1 && n <= rank(x);
  if (ok && !last_numbers(x, "interpolate", rank(x) - n)) return NULL;
  for (int i = 0; ok && i < n; i++)
    ok = size[i] >= 0 && size[i] <= INT32_MAX / 2 && dims(x)[rank(x) - n + i] > 0 &&
         dims(x)[rank(x) - n + i] <= INT32_MAX / 2;
  TG_REQUIRE(ctx, ok, TG_ERR_SHAPE, "interpolate: %s to %s", SHAPE_OF(x),
             dims_text(x->ctx->store, TG_MAX(TG_MIN(n, TG_MAX_RANK), 0), size).s);
  TgDType d = tg_dtype(x);
  TgTensor *r = o.mode == TG_LINEAR && dt(x) != DT_F64 ? tensor_cast(x, TG_F32) : x;
  for (int i = 0; r && i < n; i++)
    if (dims(r)[rank(r) - n + i] != size[i]) r = resize(r, rank(r) - n + i, size[i], &o);
  if (r && o.mode == TG_LINEAR && !tg_dtype_is_float(d)) r = tg_round(r);
  return tensor_result(tensor_cast(r, d), x);
}

TgTensor *tg_sequential(TgTensor *x, TgTensor *(*const *layers)(TgTensor *), int n) {
  if (x) TG_LIST(x->ctx, "sequential", layers, n);
  TgTensor *r = x;
  for (int i = 0; i < n && r; i++)
    r = layers[i](r);
  return tensor_result(r, x);
}
