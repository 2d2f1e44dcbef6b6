/* onnx_grid.c: GridSample and related operators: values of a tensor at places that another tensor gives.
 * In: an OnnxCall. Out: a weighted sum of the values at the corners around the place (nearest: one corner,
 * linear: two per axis, cubic: four per axis). */
#include "onnx_private.h"

enum { MOST_AXES = 3, MOST_TAPS = 4 };

typedef struct Grid {
  OnnxCall *c;
  TgDType d;
  int axes, taps;
  bool corners, zeros, reflects;
  int64_t places;
  /* for each axis and tap, (n, 1, places): the index, its weight (NULL: 1), whether it is inside (NULL:
   * always) */
  TgTensor *index[MOST_AXES][MOST_TAPS], *weight[MOST_AXES][MOST_TAPS], *inside[MOST_AXES][MOST_TAPS];
} Grid;

/* The kernel of cubic convolution with a = -0.75 at distance |x|; near: for one of the two nearest taps. */
static TgTensor *cubic(TgTensor *x, bool near) {
  const double a = -0.75;
  if (near) { /* ((a + 2) x - (a + 3)) x^2 + 1 */
    TgTensor *t = tg_sub_scalar(tg_mul_scalar(x, a + 2), a + 3);
    return tg_add_scalar(tg_mul(t, tg_mul(x, x)), 1);
  }
  /* ((a x - 5 a) x + 8 a) x - 4 a */
  TgTensor *t = tg_sub_scalar(tg_mul_scalar(x, a), 5 * a);
  return tg_sub_scalar(tg_mul(tg_add_scalar(tg_mul(t, x), 8 * a), x), 4 * a);
}

static TgTensor *tap_weight(const Grid *g, TgTensor *part, int tap) { /* part: the place minus its floor */
  if (g->taps == 1) return NULL;
  if (g->taps == 2) return tap ? part : tg_rsub_scalar(part, 1);
  TgTensor *away = tap < 2 ? tg_add_scalar(part, 1 - tap) : tg_rsub_scalar(part, tap - 1);
  return cubic(away, tap == 1 || tap == 2);
}

/* Reflects p at lo and hi, as often as needed. */
static TgTensor *reflected(TgTensor *p, double lo, double hi) {
  double range = hi - lo;
  if (range <= 0) return tg_zeros_like(p);
  TgTensor *off = tg_sub_scalar(p, lo), *turns = tg_floor(tg_div_scalar(off, 2 * range));
  TgTensor *within = tg_sub(off, tg_mul_scalar(turns, 2 * range)); /* 0 .. 2 range */
  return tg_add_scalar(tg_minimum(within, tg_rsub_scalar(within, 2 * range)), lo);
}

/* Computes the taps along one axis of size n; place: -1 .. 1 from edge to edge. */
static void axis_taps(Grid *g, int axis, TgTensor *place, int64_t n) {
  double last = (double)n - 1;
  TgTensor *p = g->corners
                    ? tg_mul_scalar(tg_add_scalar(place, 1), last / 2)
                    : tg_div_scalar(tg_sub_scalar(tg_mul_scalar(tg_add_scalar(place, 1), (double)n), 1), 2);
  TgTensor *first = g->taps == 1 ? tg_round(p) : tg_floor(p), *part = tg_sub(p, first);
  for (int t = 0; t < g->taps; t++) {
    TgTensor *at = g->taps == 4 ? tg_add_scalar(first, t - 1) : t ? tg_add_scalar(first, t) : first;
    if (g->reflects) at = tg_round(g->corners ? reflected(at, 0, last) : reflected(at, -0.5, last + 0.5));
    if (g->zeros) g->inside[axis][t] = tg_bitand(tg_ge_scalar(at, 0), tg_le_scalar(at, last));
    g->index[axis][t] = tg_cast(tg_clamp(at, 0, last), TG_I64);
    g->weight[axis][t] = tap_weight(g, part, t);
  }
}

/* The values at one corner, times their weight: x (n, c, all). */
static TgTensor *corner(const Grid *g, TgTensor *x, const int64_t *sizes, int which) {
  TgTensor *index = NULL, *weight = NULL, *inside = NULL;
  for (int a = 0; a < g->axes; a++, which /= g->taps) {
    int t = which % g->taps;
    TgTensor *i = g->index[a][t], *w = g->weight[a][t], *in = g->inside[a][t];
    index = index ? tg_add(tg_mul_scalar(index, (double)sizes[a]), i) : i;
    if (w) weight = weight ? tg_mul(weight, w) : w;
    if (in) inside = inside ? tg_bitand(inside, in) : in;
  }
  TgTensor *y = tg_gather(x, 2, tg_expand(index, TG_SHAPE(-1, tg_dim(x, 1), -1)));
  if (inside) y = tg_where(inside, y, tg_zeros_like(y));
  return weight ? tg_mul(y, weight) : y;
}

static bool grid_read(Grid *g) {
  OnnxCall *c = g->c;
  const char *mode = attr_s(c, "mode", "linear"), *pad = attr_s(c, "padding_mode", "zeros");
  bool linear = !strcmp(mode, "linear") || !strcmp(mode, "bilinear"),
       is_cubic = !strcmp(mode, "cubic") || !strcmp(mode, "bicubic");
  g->taps = linear ? 2 : is_cubic ? 4 : 1;
  g->corners = attr_i(c, "align_corners", 0);
  g->zeros = !strcmp(pad, "zeros");
  g->reflects = !strcmp(pad, "reflection");
  if (!linear && !is_cubic && strcmp(mode, "nearest"))
    return call_fail(c, TG_ERR_VALUE, "mode %.40s", mode), false;
  if (!g->zeros && !g->reflects && strcmp(pad, "border"))
    return call_fail(c, TG_ERR_VALUE, "padding_mode %.40s", pad), false;
  TgTensor *x = c->in[0], *at = c->in[1];
  g->axes = tg_ndim(x) - 2;
  if (g->axes < 1 || g->axes > MOST_AXES || tg_ndim(at) != tg_ndim(x) || tg_dim(at, -1) != g->axes ||
      tg_dim(at, 0) != tg_dim(x, 0))
    return call_fail(c, TG_ERR_SHAPE, "a grid that does not fit its input"), false;
  for (int a = 0; a < g->axes; a++)
    if (tg_dim(x, a + 2) < 1) return call_fail(c, TG_ERR_SHAPE, "an empty axis"), false;
  return true;
}

static TgTensor *op_grid_sample(OnnxCall *c) {
  Grid g = {.c = c};
  if (!grid_read(&g)) return NULL;
  TgTensor *x = c->in[0], *at = c->in[1], *sum = NULL;
  int64_t n = tg_dim(x, 0), dims[TG_MAX_RANK] = {n, tg_dim(x, 1)};
  int corners = 1;
  for (int a = 0; a < g.axes; a++) {
    dims[a + 2] = tg_dim(at, a + 1);
    corners *= g.taps;
    /* the last number of a place is for the first axis */
    axis_taps(&g, a, tg_reshape(tg_select(at, -1, g.axes - 1 - a), TG_SHAPE(n, 1, -1)), tg_dim(x, a + 2));
  }
  TgTensor *flat = tg_reshape(x, TG_SHAPE(n, tg_dim(x, 1), -1));
  for (int k = 0; k < corners; k++) {
    TgTensor *one = corner(&g, flat, tg_shape(x) + 2, k);
    sum = sum ? tg_add(sum, one) : one;
  }
  return tg_cast(tg_reshape(sum, g.axes + 2, dims), tg_dtype(x));
}

/* The places of an axis of n elements, -1 .. 1 from edge to edge, or from the middle of the first to the
 * middle of the last element if corners, along `axis` of `rank` axes. */
static TgTensor *places_of(OnnxCall *c, int64_t n, bool corners, int axis, int rank, TgDType d) {
  int64_t dims[TG_MAX_RANK];
  for (int a = 0; a < rank; a++)
    dims[a] = a == axis ? n : 1;
  double span = corners ? (double)(n - 1) : (double)n, first = corners ? -1 : 1 / span - 1;
  TgTensor *i = tg_reshape(tg_arange(c->ctx, 0, (double)n, .dtype = TG_F32), rank, dims);
  return tg_cast(tg_add_scalar(tg_mul_scalar(i, 2 / (span > 0 ? span : 1)), first), d);
}

/* Applies theta (n, k, k + 1) to every place of a grid with the sizes that follow (n, c): (n, sizes.., k) */
static TgTensor *op_affine_grid(OnnxCall *c) {
  TgTensor *theta = c->in[0], *rows[MOST_AXES];
  Ints size;
  bool corners = attr_i(c, "align_corners", 0);
  if (!call_ints(c, 1, NULL, &size)) return NULL;
  int axes = size.n - 2, rank = axes + 1;
  if (axes < 1 || axes > MOST_AXES || tg_ndim(theta) != 3 || tg_dim(theta, 1) != axes ||
      tg_dim(theta, 2) != axes + 1)
    return call_fail(c, TG_ERR_SHAPE, "theta does not fit %d sizes", size.n);
  for (int r = 0; r < axes; r++) {
    TgTensor *row = tg_select(theta, 1, r), *sum = NULL;
    int64_t ones[TG_MAX_RANK] = {tg_dim(theta, 0)};
    for (int a = 1; a < rank; a++)
      ones[a] = 1;
    sum = tg_reshape(tg_select(row, 1, axes), rank, ones);
    for (int k = 0; k < axes; k++) { /* the first column is for the last axis */
      TgTensor *at = places_of(c, size.v[size.n - 1 - k], corners, rank - 1 - k, rank, tg_dtype(theta));
      sum = tg_add(sum, tg_mul(tg_reshape(tg_select(row, 1, k), rank, ones), at));
    }
    rows[r] = sum;
  }
  return tg_stack(rows, axes, rank);
}

/* ---- axes that are cropped or padded to a shape, with the middle kept */
static TgTensor *op_center_crop_pad(OnnxCall *c) {
  TgTensor *x = c->in[0];
  Ints shape, axes;
  if (!call_ints(c, 1, NULL, &shape) || !call_ints(c, -1, "axes", &axes)) return NULL;
  if ((axes.given ? axes.n : tg_ndim(x)) != shape.n) return call_fail(c, TG_ERR_SHAPE, "%d sizes", shape.n);
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0};
  for (int i = 0; i < shape.n; i++) {
    int axis;
    if (!call_axis(c, axes.given ? axes.v[i] : i, tg_ndim(x), &axis)) return NULL;
    int64_t more = shape.v[i] - tg_dim(x, axis);
    /* an odd element is cropped, or added, at the end */
    lo[axis] = more >= 0 ? more / 2 : -(-more / 2);
    hi[axis] = more - lo[axis];
  }
  return tg_pad(x, lo, hi);
}

const OnnxOp onnx_ops_grid[] = {ONNX_BOTH("GridSample", 16, 2, 2, op_grid_sample),
                                ONNX_OP("AffineGrid", 20, 2, 2, op_affine_grid),
                                ONNX_OP("CenterCropPad", 18, 2, 2, op_center_crop_pad),
                                {0}};
