/* onnx_resize.c: Resize and Upsample. In: an OnnxCall. Out: a lazy tensor. Axes are resized one after the
 * other. For each new element, the places that it reads and their weights are tabulated here, for as many
 * taps as the mode has (1 nearest, 2 linear, 4 cubic); the result is the weighted sum of that many
 * lookups. */
#include "onnx_private.h"
#include <math.h>

typedef struct Way {
  const char *transform, *nearest;
  int taps;
  double cubic_a, extrapolation;
  bool exclude;
  /* integers: a value between two equal ones must be the same, which a sum of two products may miss */
  bool whole;
} Way;

/* The place in the input for element i of the output. The exact size is in * scale, which may be a
 * fraction; out is that size rounded. */
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
  if (!strcmp(t, "tf_half_pixel_for_nn")) return (i + 0.5) / scale; /* only in opsets 11 and 12 */
  if (!strcmp(t, "half_pixel_symmetric")) { /* keeps the centre even if the size was rounded */
    double centre = (double)in / 2;
    return centre * (1 - (double)out / exact) + (i + 0.5) / scale - 0.5;
  }
  return (i + 0.5) / scale - 0.5;
}

static double nearest_of(const Way *w, double x, double scale) {
  if (!*w->nearest) return scale < 1 ? ceil(x) : floor(x); /* before opset 11 */
  if (!strcmp(w->nearest, "floor")) return floor(x);
  if (!strcmp(w->nearest, "ceil")) return ceil(x);
  if (!strcmp(w->nearest, "round_prefer_ceil")) return floor(x + 0.5);
  return ceil(x - 0.5);
}

static double cubic(double a, double x) {
  x = fabs(x);
  return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* The places that each new element of an axis reads, and their weights, tap by tap: [tap * out + i]. */
typedef struct Taps {
  int64_t *at;
  double *weight;
  uint8_t *outside; /* tf_crop_and_resize: the place is outside the axis */
  bool any_outside;
} Taps;

static bool taps_make(OnnxCall *c, Taps *t, const Way *w, int64_t in, double scale, int64_t out, double begin,
                      double end) {
  bool crop = !strcmp(w->transform, "tf_crop_and_resize");
  t->at = tg_alloc(c->ctx, (size_t)out * 4 * sizeof *t->at);
  t->weight = tg_alloc(c->ctx, (size_t)out * 4 * sizeof *t->weight);
  t->outside = tg_alloc(c->ctx, (size_t)out);
  if (!t->at || !t->weight || !t->outside) return false;
  double last = (double)(in - 1);
  for (int64_t i = 0; i < out; i++) {
    double s = source_of(w, (double)i, scale, in, out, begin, end), total = 0;
    if (crop && (s < 0 || s > last)) {
      t->outside[i] = 1;
      t->any_outside = true;
    }
    double first = w->taps == 1 ? nearest_of(w, s, scale) : floor(s) - (w->taps == 4), f = s - floor(s);
    for (int k = 0; k < w->taps; k++) {
      double p = first + k, v = w->taps == 1 ? 1 : w->taps == 2 ? (k ? f : 1 - f) : cubic(w->cubic_a, s - p);
      if (w->exclude && (p < 0 || p > last)) v = 0;
      t->at[k * out + i] = !(p > 0) ? 0 : p > last ? in - 1 : (int64_t)p;
      t->weight[k * out + i] = v;
      total += v;
    }
    for (int k = 0; w->exclude && k < w->taps && total != 0; k++)
      t->weight[k * out + i] /= total;
  }
  return true;
}

static TgTensor *weights_of(OnnxCall *c, const double *v, TgDType d, int rank, const int64_t *dims,
                            int64_t n) {
  if (d == TG_F64) return call_constant(c, v, d, rank, dims);
  float *narrow = tg_alloc(c->ctx, ((size_t)n + 1) * sizeof *narrow);
  for (int64_t i = 0; narrow && i < n; i++)
    narrow[i] = (float)v[i];
  TgTensor *t = narrow ? call_constant(c, narrow, d, rank, dims) : NULL;
  tg_free(c->ctx, narrow);
  return t;
}

static int64_t common_factor(int64_t a, int64_t b) { return b ? common_factor(b, a % b) : a; }

/* The places to read in an axis of `in` elements, one for each of `out` new elements. If some b satisfies
 * at[i] = floor((a i + b) / d) for all i, except at the ends, where a / d = in / out, they are computed by
 * arithmetic; otherwise they are read from the table. */
static TgTensor *places_of(OnnxCall *c, const int64_t *at, int64_t in, int64_t out) {
  int64_t factor = common_factor(in, out), a = 2 * in / factor, d = 2 * out / factor, least = -d,
          most = 2 * d;
  for (int64_t i = 0; i < out; i++) {
    int64_t b = at[i] * d - a * i;
    if (at[i] > 0 && b > least) least = b;
    if (at[i] < in - 1 && b + d - 1 < most) most = b + d - 1;
  }
  int64_t b = least <= 0 && most >= 0 ? 0 : least, end = a * (out - 1) + b;
  TgTensor *t;
  if (least <= most)
    t = tg_floordiv_scalar(
        tg_add_scalar(tg_mul_scalar(tg_arange(c->ctx, 0, (double)out,
                                              .dtype = end > INT32_MAX || a > INT32_MAX ? TG_I64 : TG_I32),
                                    (double)a),
                      (double)b),
        (double)d);
  else
    t = call_constant(c, at, TG_I64, TG_SHAPE(out));
  bool inside = least <= most && b >= 0 && end / d < in;
  /* after the clamp no read needs a test whether it is inside */
  return inside ? t : tg_clamp(t, 0, (double)(in - 1));
}

static TgTensor *axis_resize(OnnxCall *c, TgTensor *x, int axis, const Way *w, double scale, int64_t out,
                             double begin, double end) {
  int64_t in = tg_dim(x, axis), dims[TG_MAX_RANK];
  TgTensor *sum = NULL, *outside = NULL;
  int rank = tg_ndim(x);
  if (!in || !out) return out ? call_fail(c, TG_ERR_SHAPE, "an empty axis") : tg_slice(x, axis, 0, 0);
  for (int a = 0; a < rank; a++)
    dims[a] = a == axis ? out : 1;
  TgDType d = tg_dtype(x) == TG_F64 ? TG_F64 : TG_F32;
  Taps taps = {0};
  bool made = taps_make(c, &taps, w, in, scale, out, begin, end);
  for (int t = 0; made && t < w->taps; t++) {
    TgIndex index[TG_MAX_RANK] = {0};
    TgTensor *at = places_of(c, taps.at + t * out, in, out);
    index[axis] = (TgIndex){.kind = TG_INDEX_TENSOR, .tensor = at};
    TgTensor *part = tg_getitem(x, index, axis + 1);
    bool between = w->taps == 2 && w->whole && !w->exclude;
    TgTensor *weight = w->taps > 1 ? weights_of(c, taps.weight + t * out, d, rank, dims, out) : NULL;
    if (weight) part = tg_cast(part, d);
    if (between && t) part = tg_sub(part, sum);
    if (weight && (!between || t)) part = tg_mul(part, weight);
    sum = t ? tg_add(sum, part) : part;
  }
  if (taps.any_outside && sum) outside = call_constant(c, taps.outside, TG_BOOL, rank, dims);
  tg_free(c->ctx, taps.at), tg_free(c->ctx, taps.weight), tg_free(c->ctx, taps.outside);
  return taps.any_outside ? tg_masked_fill(sum, outside, w->extrapolation) : sum;
}

static bool is_known(const char *word, const char *const *words) {
  while (*words && strcmp(*words, word))
    words++;
  return *words != NULL;
}

static bool way_read(OnnxCall *c, bool old, Way *w) {
  static const char *const transforms[] = {
      "half_pixel",         "asymmetric",           "align_corners",        "pytorch_half_pixel",
      "tf_crop_and_resize", "half_pixel_symmetric", "tf_half_pixel_for_nn", NULL};
  static const char *const roundings[] = {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil",
                                          "",      NULL};
  const char *mode = attr_s(c, "mode", "nearest");
  *w = (Way){.transform = attr_s(c, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
             .nearest = attr_s(c, "nearest_mode", old ? "" : "round_prefer_floor"),
             .cubic_a = attr_f(c, "cubic_coeff_a", -0.75),
             .extrapolation = attr_f(c, "extrapolation_value", 0),
             .exclude = attr_i(c, "exclude_outside", 0)};
  if (!strcmp(mode, "nearest")) w->taps = 1;
  if (!strcmp(mode, "linear") || !strcmp(mode, "bilinear") || !strcmp(mode, "trilinear")) w->taps = 2;
  if (!strcmp(mode, "cubic")) w->taps = 4;
  if (!w->taps) return call_fail(c, TG_ERR_VALUE, "mode %.20s", mode), false;
  if (!is_known(w->transform, transforms))
    return call_fail(c, TG_ERR_VALUE, "coordinate_transformation_mode %.40s", w->transform), false;
  if (!is_known(w->nearest, roundings))
    return call_fail(c, TG_ERR_VALUE, "nearest_mode %.40s", w->nearest), false;
  if (attr_i(c, "antialias", 0)) return call_fail(c, TG_ERR_VALUE, "antialias is not implemented"), false;
  return true;
}

/* What the call says about its axes: a size or a scale for each, and for tf_crop_and_resize a part of it. */
typedef struct Sizes {
  Ints axes, want;
  int n; /* number of axes */
  bool by_size;
  double roi[2 * TG_MAX_RANK], scales[TG_MAX_RANK];
  int nroi;
  double one; /* the scale of all axes if the aspect ratio is kept; otherwise 0 */
} Sizes;

static bool sizes_read(OnnxCall *c, bool old, const Way *w, int rank, Sizes *s) {
  const OnnxAttr *given = call_attr(c, "scales", ONNX_FLOATS);
  int nscales;
  if (!call_ints(c, -1, "axes", &s->axes) || !call_sizes(c, old ? -1 : 3, NULL, &s->want) ||
      !call_doubles(c, old ? c->nin : 1, s->roi, 2 * TG_MAX_RANK, &s->nroi) ||
      !call_doubles(c, old ? 1 : 2, s->scales, TG_MAX_RANK, &nscales))
    return false;
  if (old && given && given->nfloats <= TG_MAX_RANK)
    for (nscales = 0; nscales < (int)given->nfloats; nscales++)
      s->scales[nscales] = given->floats[nscales];
  s->n = s->axes.given ? s->axes.n : rank;
  s->by_size = s->want.given && s->want.n;
  int told = s->by_size ? s->want.n : nscales;
  if (told != s->n || s->n > rank || (!strcmp(w->transform, "tf_crop_and_resize") && s->nroi != 2 * s->n))
    return call_fail(c, TG_ERR_SHAPE, "%d sizes for %d axes", told, s->n), false;
  return true;
}

static bool size_axis(OnnxCall *c, const Sizes *s, int i, int rank, int *axis) {
  return call_axis(c, s->axes.given ? s->axes.v[i] : i, rank, axis);
}

/* The largest scale at which no axis is larger than requested, or the smallest at which none is smaller. */
static bool one_scale(OnnxCall *c, TgTensor *x, Sizes *s) {
  const char *policy = attr_s(c, "keep_aspect_ratio_policy", "stretch");
  bool larger = !strcmp(policy, "not_smaller");
  if (!s->by_size || !strcmp(policy, "stretch")) return true;
  for (int i = 0, axis; i < s->n; i++) {
    if (!size_axis(c, s, i, tg_ndim(x), &axis)) return false;
    if (tg_is_symbolic(x, axis))
      return call_fail(c, TG_ERR_SHAPE, "axis %d, of symbolic size, and a policy", axis);
    double scale = (double)s->want.v[i] / (double)tg_dim(x, axis);
    s->one = !i || (larger ? scale > s->one : scale < s->one) ? scale : s->one;
  }
  return true;
}

TgTensor *onnx_resize(OnnxCall *c) {
  TgTensor *x = c->in[0];
  TgDType d = tg_dtype(x);
  bool old = c->opset < 11; /* Resize 10 and Upsample: inputs x, scales; asymmetric */
  Way w;
  Sizes s = {0};
  if (!way_read(c, old, &w) || !sizes_read(c, old, &w, tg_ndim(x), &s) || !one_scale(c, x, &s)) return NULL;
  w.whole = !tg_dtype_is_float(d);
  bool crop = !strcmp(w.transform, "tf_crop_and_resize"), part = s.nroi == 2 * s.n;
  for (int i = 0, axis; i < s.n; i++) {
    if (!size_axis(c, &s, i, tg_ndim(x), &axis)) return NULL;
    bool kept = s.by_size ? s.want.v[i] == tg_size_of(x, axis) : s.scales[i] == 1;
    if (tg_is_symbolic(x, axis) && kept && !crop && !s.one) continue;
    if (tg_is_symbolic(x, axis))
      return call_fail(c, TG_ERR_SHAPE, "axis %d, of symbolic size, is resized", axis);
    double in = (double)tg_dim(x, axis), begin = part ? s.roi[i] : 0, end = part ? s.roi[i + s.n] : 1;
    double scale = !s.by_size ? s.scales[i] : s.one > 0 ? s.one : (double)s.want.v[i] / in;
    double size = !s.by_size  ? floor(in * scale * (crop ? end - begin : 1))
                  : s.one > 0 ? floor(in * s.one + 0.5)
                              : (double)s.want.v[i];
    if (!(scale > 0) || !(size >= 0) || size > 1 << 28)
      return call_fail(c, TG_ERR_VALUE, "scale %g of axis %d", scale, axis);
    if ((int64_t)size == tg_dim(x, axis) && scale == 1 && !crop) continue;
    x = axis_resize(c, x, axis, &w, scale, (int64_t)size, begin, end);
  }
  return !x ? NULL : tg_dtype(x) != d ? tg_cast(x, d) : shaped_as(x, x);
}
