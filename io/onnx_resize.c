/* onnx_resize.c: Resize and Upsample. In: an OnnxCall. Out: a lazy tensor. One axis after the other: where
 * each new element looks and with which weights is tabulated here, for as many taps as the mode has (1
 * nearest, 2 linear, 4 cubic); the result is the weighted sum of as many lookups. */
#include "onnx_private.h"
#include <math.h>

typedef struct Way {
  const char *transform, *nearest;
  int taps;
  double cubic_a, extrapolation;
  bool exclude;
} Way;

/* The size that is meant is in * scale, be it whole or not; out is what it was cut to. */
static double source_of(const Way *w, double i, double scale, int64_t in, int64_t out, double begin,
                        double end) {
  const char *t = w->transform;
  double exact = scale * (double)in;
  if (!strcmp(t, "asymmetric")) return i / scale;
  if (!strcmp(t, "align_corners")) return exact == 1 ? 0 : i * (double)(in - 1) / (exact - 1);
  if (!strcmp(t, "pytorch_half_pixel")) return out == 1 ? 0 : (i + 0.5) / scale - 0.5;
  if (!strcmp(t, "tf_crop_and_resize"))
    return out == 1 ? 0.5 * (begin + end) * (double)(in - 1)
                    : begin * (double)(in - 1) + i * (end - begin) * (double)(in - 1) / (double)(out - 1);
  if (!strcmp(t, "half_pixel_symmetric")) { /* keeps the centre where the size is rounded */
    double centre = (double)in / 2;
    return centre * (1 - (double)out / exact) + (i + 0.5) / scale - 0.5;
  }
  return (i + 0.5) / scale - 0.5;
}

static double nearest_of(const Way *w, double x) {
  if (!strcmp(w->nearest, "floor")) return floor(x);
  if (!strcmp(w->nearest, "ceil")) return ceil(x);
  if (!strcmp(w->nearest, "round_prefer_ceil")) return floor(x + 0.5);
  return ceil(x - 0.5);
}

static double cubic(double a, double x) {
  x = fabs(x);
  return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static TgTensor *axis_resize(OnnxCall *c, TgTensor *x, int axis, const Way *w, double scale, int64_t out,
                             double begin, double end) {
  int64_t in = tg_dim(x, axis), dims[TG_MAX_RANK];
  TgTensor *sum = NULL, *outside = NULL;
  int rank = tg_ndim(x);
  bool crop = !strcmp(w->transform, "tf_crop_and_resize"), any = false;
  if (!in || !out) return out ? call_fail(c, TG_ERR_SHAPE, "an empty axis") : tg_slice(x, axis, 0, 0);
  int64_t *at = tg_alloc(c->ctx, (size_t)out * 4 * sizeof *at);
  double *weight = tg_alloc(c->ctx, (size_t)out * 4 * sizeof *weight);
  uint8_t *off = tg_alloc(c->ctx, (size_t)out);
  for (int64_t i = 0; at && weight && off && i < out; i++) {
    double s = source_of(w, (double)i, scale, in, out, begin, end), total = 0;
    if (crop && (s < 0 || s > (double)(in - 1))) off[i] = 1, any = true;
    double first = w->taps == 1 ? nearest_of(w, s) : floor(s) - (w->taps == 4), f = s - floor(s);
    for (int t = 0; t < w->taps; t++) {
      double p = first + t, v = w->taps == 1 ? 1 : w->taps == 2 ? (t ? f : 1 - f) : cubic(w->cubic_a, s - p);
      if (w->exclude && (p < 0 || p > (double)(in - 1))) v = 0;
      at[t * out + i] = !(p > 0) ? 0 : p > (double)(in - 1) ? in - 1 : (int64_t)p;
      weight[t * out + i] = v, total += v;
    }
    for (int t = 0; w->exclude && t < w->taps && total != 0; t++)
      weight[t * out + i] /= total;
  }
  for (int a = 0; a < rank; a++)
    dims[a] = a == axis ? out : 1;
  TgDType d = tg_dtype(x) == TG_F64 ? TG_F64 : TG_F32;
  for (int t = 0; t < w->taps && at && weight && off; t++) {
    TgIndex index[TG_MAX_RANK] = {0};
    index[axis] =
        (TgIndex){.kind = TG_INDEX_TENSOR, .tensor = tg_from(c->ctx, at + t * out, TG_I64, TG_SHAPE(out))};
    TgTensor *part = tg_getitem(x, index, axis + 1);
    if (w->taps > 1) part = tg_mul(tg_cast(part, d), tg_from_f64(c->ctx, weight + t * out, d, rank, dims));
    sum = t ? tg_add(sum, part) : part;
  }
  if (any && sum) outside = tg_from(c->ctx, off, TG_BOOL, rank, dims);
  tg_free(c->ctx, at), tg_free(c->ctx, weight), tg_free(c->ctx, off);
  return any ? tg_masked_fill(sum, outside, w->extrapolation) : sum;
}

TgTensor *onnx_resize(OnnxCall *c) {
  TgTensor *x = c->in[0];
  TgDType d = tg_dtype(x);
  int rank = tg_ndim(x), nroi, nscales, axis;
  double roi[2 * TG_MAX_RANK], scales[TG_MAX_RANK];
  Ints axes, want;
  bool old = c->opset < 11; /* Resize 10 and Upsample: x, scales; asymmetric */
  const OnnxAttr *given = call_attr(c, "scales", ONNX_FLOATS);
  const char *mode = attr_s(c, "mode", "nearest"), *policy = attr_s(c, "keep_aspect_ratio_policy", "stretch");
  Way w = {attr_s(c, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
           attr_s(c, "nearest_mode", old ? "floor" : "round_prefer_floor"),
           1,
           attr_f(c, "cubic_coeff_a", -0.75),
           attr_f(c, "extrapolation_value", 0),
           attr_i(c, "exclude_outside", 0)};
  w.taps = !strcmp(mode, "nearest")                                                             ? 1
           : !strcmp(mode, "linear") || !strcmp(mode, "bilinear") || !strcmp(mode, "trilinear") ? 2
           : !strcmp(mode, "cubic")                                                             ? 4
                                                                                                : 0;
  if (!w.taps) return call_fail(c, TG_ERR_VALUE, "mode %.20s", mode);
  if (attr_i(c, "antialias", 0)) return call_fail(c, TG_ERR_VALUE, "antialias is not implemented");
  if (!call_ints(c, -1, "axes", &axes) || !call_ints(c, old ? -1 : 3, NULL, &want) ||
      !call_doubles(c, old ? c->nin : 1, roi, 2 * TG_MAX_RANK, &nroi) ||
      !call_doubles(c, old ? 1 : 2, scales, TG_MAX_RANK, &nscales))
    return NULL;
  if (old && given && given->nfloats <= TG_MAX_RANK)
    for (nscales = 0; nscales < (int)given->nfloats; nscales++)
      scales[nscales] = given->floats[nscales];
  int n = axes.given ? axes.n : rank;
  bool by_size = want.given && want.n;
  if ((by_size ? want.n : nscales) != n || n > rank ||
      (!strcmp(w.transform, "tf_crop_and_resize") && nroi != 2 * n))
    return call_fail(c, TG_ERR_SHAPE, "%d sizes for %d axes", by_size ? want.n : nscales, n);
  double one = 0;
  bool larger = !strcmp(policy, "not_smaller");
  if (by_size && strcmp(policy, "stretch"))
    for (int i = 0; i < n; i++) {
      if (!call_axis(c, axes.given ? axes.v[i] : i, rank, &axis)) return NULL;
      double s = (double)want.v[i] / (double)tg_dim(x, axis);
      one = !i || (larger ? s > one : s < one) ? s : one;
    }
  for (int i = 0; i < n; i++) {
    if (!call_axis(c, axes.given ? axes.v[i] : i, rank, &axis)) return NULL;
    double in = (double)tg_dim(x, axis), begin = nroi == 2 * n ? roi[i] : 0,
           end = nroi == 2 * n ? roi[i + n] : 1,
           scale = by_size ? one > 0 ? one : (double)want.v[i] / in : scales[i];
    bool crop = !strcmp(w.transform, "tf_crop_and_resize");
    double size = by_size ? one > 0 ? floor(in * one + 0.5) : (double)want.v[i]
                          : floor(in * scale * (crop ? end - begin : 1));
    if (!(scale > 0) || !(size >= 0) || size > 1 << 28)
      return call_fail(c, TG_ERR_VALUE, "scale %g of axis %d", scale, axis);
    if ((int64_t)size == tg_dim(x, axis) && scale == 1 && !crop) continue;
    x = axis_resize(c, x, axis, &w, scale, (int64_t)size, begin, end);
  }
  return !x ? NULL : tg_dtype(x) != d ? tg_cast(x, d) : tg_reshape(x, tg_ndim(x), tg_shape(x));
}
