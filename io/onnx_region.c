/* onnx_region.c: DeformConv and RoiAlign: a picture read between its pixels, at places that other inputs
 * give. In: an OnnxCall. Out: products of a weight with the values read, or means and maxima of regions. */
#include "onnx_private.h"
#include <math.h>

/* Reads x (rows, channels, all) at `index` (rows, 1, places): (rows, channels, places). */
static TgTensor *read_at(TgTensor *x, TgTensor *index) {
  return tg_gather(x, 2, tg_expand(index, TG_SHAPE(-1, tg_dim(x, 1), -1)));
}

/* first + step * (0, 1 .. n-1) along `axis` of `rank` axes; all other sizes are 1. */
static TgTensor *ramp(TgContext *ctx, TgDType d, int64_t n, int rank, int axis, double step, double first) {
  int64_t dims[TG_MAX_RANK];
  for (int a = 0; a < rank; a++)
    dims[a] = a == axis ? n : 1;
  TgTensor *i = tg_reshape(tg_arange(ctx, 0, (double)n, .dtype = TG_F32), rank, dims);
  return tg_cast(tg_add_scalar(tg_mul_scalar(i, step), first), d);
}

/* ---- DeformConv: each tap of the kernel reads at a place moved by its offset; the outside is zero */
typedef struct Taps { /* of one axis, (rows, 1, places): the two pixels next to a place */
  TgTensor *index[2], *weight[2];
} Taps;

static Taps taps_of(TgTensor *place, int64_t n) {
  TgTensor *low = tg_floor(place), *part = tg_sub(place, low);
  Taps t;
  for (int k = 0; k < 2; k++) {
    TgTensor *at = k ? tg_add_scalar(low, 1) : low, *w = k ? part : tg_rsub_scalar(part, 1);
    TgTensor *inside = tg_bitand(tg_ge_scalar(at, 0), tg_le_scalar(at, (double)n - 1));
    t.index[k] = tg_cast(tg_clamp(at, 0, (double)n - 1), TG_I64);
    t.weight[k] = tg_where(inside, w, tg_zeros_like(w));
  }
  return t;
}

typedef struct Deform {
  Spatial s;
  int64_t n, channels, high, wide, out[2], taps, groups, offset_groups;
} Deform;

static bool deform_read(OnnxCall *c, Deform *d) {
  TgTensor *x = c->in[0], *w = c->in[1], *off = c->in[2], *mask = c->nin > 4 ? c->in[4] : NULL;
  if (!onnx_spatial(c, x, w, &d->s)) return false;
  d->groups = attr_i(c, "group", 1);
  d->offset_groups = attr_i(c, "offset_group", 1);
  if (d->s.n != 2) return call_fail(c, TG_ERR_SHAPE, "%d spatial axes; 2 are read here", d->s.n), false;
  d->n = tg_dim(x, 0);
  d->channels = tg_dim(x, 1);
  d->high = tg_dim(x, 2);
  d->wide = tg_dim(x, 3);
  d->taps = d->s.kernel.v[0] * d->s.kernel.v[1];
  if (d->groups < 1 || d->offset_groups < 1 || d->channels % d->groups || d->channels % d->offset_groups ||
      tg_dim(w, 0) % d->groups || tg_dim(w, 1) != d->channels / d->groups)
    return call_fail(c, TG_ERR_SHAPE, "groups that do not divide the channels"), false;
  for (int a = 0; a < 2; a++) {
    int64_t pads = d->s.padding.v[2 * (1 - a)] + d->s.padding.v[2 * (1 - a) + 1];
    int64_t room = tg_dim(x, a + 2) + pads - d->s.dilation.v[a] * (d->s.kernel.v[a] - 1) - 1;
    if (room < 0 || tg_dim(x, a + 2) < 1)
      return call_fail(c, TG_ERR_SHAPE, "the kernel is larger than the input"), false;
    d->out[a] = room / d->s.stride.v[a] + 1;
  }
  const int64_t *o = tg_shape(off), *m = mask ? tg_shape(mask) : NULL;
  bool fits = tg_ndim(off) == 4 && o[0] == d->n && o[1] == 2 * d->offset_groups * d->taps &&
              o[2] == d->out[0] && o[3] == d->out[1];
  fits = fits && (!m || (tg_ndim(mask) == 4 && m[0] == d->n && m[1] == d->offset_groups * d->taps &&
                         m[2] == d->out[0] && m[3] == d->out[1]));
  return fits || (call_fail(c, TG_ERR_SHAPE, "offset or mask does not fit"), false);
}

/* The places where the taps read along axis a: (n * offset_groups, 1, taps * out). */
static TgTensor *deform_places(OnnxCall *c, const Deform *d, int a) {
  TgTensor *off = tg_reshape(c->in[2], TG_SHAPE(d->n * d->offset_groups, d->s.kernel.v[0], d->s.kernel.v[1],
                                                2, d->out[0], d->out[1]));
  TgDType t = tg_dtype(off);
  double first = -(double)d->s.padding.v[2 * (1 - a)];
  TgTensor *of_tap = ramp(c->ctx, t, d->s.kernel.v[a], 5, 1 + a, (double)d->s.dilation.v[a], first);
  TgTensor *of_out = ramp(c->ctx, t, d->out[a], 5, 3 + a, (double)d->s.stride.v[a], 0);
  TgTensor *at = tg_add(tg_add(tg_select(off, 3, a), of_tap), of_out);
  return tg_reshape(at, TG_SHAPE(d->n * d->offset_groups, 1, -1));
}

static TgTensor *op_deform_conv(OnnxCall *c) {
  Deform d = {0};
  if (!deform_read(c, &d)) return NULL;
  TgTensor *w = c->in[1], *sum = NULL;
  Taps y = taps_of(deform_places(c, &d, 0), d.high), x = taps_of(deform_places(c, &d, 1), d.wide);
  TgTensor *flat =
      tg_reshape(c->in[0], TG_SHAPE(d.n * d.offset_groups, d.channels / d.offset_groups, d.high * d.wide));
  for (int k = 0; k < 4; k++) {
    TgTensor *index = tg_add(tg_mul_scalar(y.index[k / 2], (double)d.wide), x.index[k % 2]);
    TgTensor *one = tg_mul(read_at(flat, index), tg_mul(y.weight[k / 2], x.weight[k % 2]));
    sum = sum ? tg_add(sum, one) : one;
  }
  if (c->in[4])
    sum = tg_mul(sum, tg_reshape(c->in[4], TG_SHAPE(d.n * d.offset_groups, 1, d.taps * d.out[0] * d.out[1])));
  /* as columns: (n, groups, channels of a group x taps, out) */
  int64_t each = d.channels / d.groups * d.taps, maps = tg_dim(w, 0);
  TgTensor *columns = tg_reshape(sum, TG_SHAPE(d.n, d.groups, each, d.out[0] * d.out[1]));
  TgTensor *r = tg_matmul(tg_reshape(w, TG_SHAPE(1, d.groups, maps / d.groups, each)), columns);
  r = tg_reshape(r, TG_SHAPE(d.n, maps, d.out[0], d.out[1]));
  if (c->in[3]) r = tg_add(r, tg_reshape(c->in[3], TG_SHAPE(1, maps, 1, 1)));
  return tg_cast(r, tg_dtype(c->in[0]));
}

/* ---- RoiAlign: a region is a grid of bins, and each bin is read at several places; more than a pixel
 * outside, values are zero */
typedef struct Roi {
  bool largest, half;
  int64_t count, out[2], ratio, samples[2]; /* samples: places in each bin, the most of any region */
  double scale;
  TgTensor *start[2], *size[2]; /* (count, 1, 1) by axis, y first, in pixels */
} Roi;

enum { MOST_SAMPLES = 1 << 12 };

/* The number of places in a bin along axis a, for each region: (count, 1, 1). */
static TgTensor *samples_of(const Roi *r, int a) {
  TgTensor *per_bin = tg_div_scalar(r->size[a], (double)r->out[a]);
  return r->ratio > 0 ? tg_add_scalar(tg_zeros_like(per_bin), (double)r->ratio) : tg_ceil(per_bin);
}

static bool samples_counted(OnnxCall *c, Roi *r, int a) {
  r->samples[a] = r->ratio;
  if (r->ratio > 0 || !r->count) return true;
  double most = tg_item_f64(tg_max(samples_of(r, a))); /* the sizes depend on the regions' values */
  if (tg_error(c->ctx)) return false;
  if (!(most < MOST_SAMPLES)) return call_fail(c, TG_ERR_LIMIT, "%g places in a bin", most), false;
  r->samples[a] = most > 1 ? (int64_t)most : 1;
  return true;
}

static bool roi_read(OnnxCall *c, Roi *r) {
  TgTensor *x = c->in[0], *rois = c->in[1], *batch = c->in[2];
  const char *mode = attr_s(c, "mode", "avg");
  const char *how =
      attr_s(c, "coordinate_transformation_mode", c->opset >= 16 ? "half_pixel" : "output_half_pixel");
  r->largest = !strcmp(mode, "max");
  r->half = !strcmp(how, "half_pixel");
  r->out[0] = attr_i(c, "output_height", 1);
  r->out[1] = attr_i(c, "output_width", 1);
  r->ratio = attr_i(c, "sampling_ratio", 0);
  r->scale = attr_f(c, "spatial_scale", 1);
  if (!r->largest && strcmp(mode, "avg")) return call_fail(c, TG_ERR_VALUE, "mode %.40s", mode), false;
  if (!r->half && strcmp(how, "output_half_pixel"))
    return call_fail(c, TG_ERR_VALUE, "coordinate_transformation_mode %.40s", how), false;
  if (tg_ndim(x) != 4 || tg_ndim(rois) != 2 || tg_dim(rois, 1) != 4 || tg_ndim(batch) != 1 ||
      tg_dim(batch, 0) != tg_dim(rois, 0) || !tg_dim(x, 0) || !tg_dim(x, 2) || !tg_dim(x, 3))
    return call_fail(c, TG_ERR_SHAPE, "regions that do not fit the input"), false;
  for (int a = 0; a < 2; a++)
    if (r->out[a] < 1 || r->out[a] > MOST_SAMPLES || r->ratio < 0 || r->ratio > MOST_SAMPLES)
      return call_fail(c, TG_ERR_VALUE, "output size %lld, sampling_ratio %lld", (long long)r->out[a],
                       (long long)r->ratio),
             false;
  r->count = tg_dim(rois, 0);
  TgTensor *corner = tg_add_scalar(tg_mul_scalar(rois, r->scale), r->half ? -0.5 : 0);
  for (int a = 0; a < 2; a++) { /* x1 y1 x2 y2 */
    TgTensor *from = tg_select(corner, 1, 1 - a), *to = tg_select(corner, 1, 3 - a);
    r->start[a] = tg_reshape(from, TG_SHAPE(r->count, 1, 1));
    r->size[a] = tg_reshape(tg_sub(to, from), TG_SHAPE(r->count, 1, 1));
    if (!r->half) r->size[a] = tg_maximum(r->size[a], tg_add_scalar(tg_zeros_like(r->size[a]), 1));
    if (!samples_counted(c, r, a)) return false;
  }
  return true;
}

/* For axis a, (count, out, samples): the pixels next to each place and their weights, which are 0 outside;
 * `there`: 1 if a bin has that many places. */
typedef struct Beside {
  TgTensor *index[2], *weight[2], *there;
} Beside;

static Beside roi_places(OnnxCall *c, const Roi *r, int a, int64_t n) {
  TgDType d = tg_dtype(r->size[a]);
  TgTensor *bin = tg_div_scalar(r->size[a], (double)r->out[a]), *samples = samples_of(r, a);
  TgTensor *i = ramp(c->ctx, d, r->samples[a], 3, 2, 1, 0);
  TgTensor *at = tg_mul(bin, ramp(c->ctx, d, r->out[a], 3, 1, 1, 0));
  at = tg_add(tg_add(r->start[a], at), tg_div(tg_mul(tg_add_scalar(i, 0.5), bin), samples));
  Beside b = {.there = tg_cast(tg_lt(tg_expand(i, tg_ndim(at), tg_shape(at)), samples), d)};
  TgTensor *inside = tg_bitand(tg_ge_scalar(at, -1), tg_le_scalar(at, (double)n));
  TgTensor *p = tg_clamp(at, 0, (double)n - 1), *low = tg_floor(p), *part = tg_sub(p, low);
  for (int k = 0; k < 2; k++) {
    TgTensor *w = k ? part : tg_rsub_scalar(part, 1);
    b.index[k] = tg_cast(tg_clamp(k ? tg_add_scalar(low, 1) : low, 0, (double)n - 1), TG_I64);
    b.weight[k] = tg_where(inside, w, tg_zeros_like(w));
  }
  return b;
}

/* Reshapes (count, out, samples) along y or x to (count, out y, samples y, out x, samples x), with size 1
 * for the other axis. */
static TgTensor *spread(const Roi *r, TgTensor *t, int a) {
  return a ? tg_reshape(t, TG_SHAPE(r->count, 1, 1, r->out[1], r->samples[1]))
           : tg_reshape(t, TG_SHAPE(r->count, r->out[0], r->samples[0], 1, 1));
}

static TgTensor *op_roi_align(OnnxCall *c) {
  Roi r = {0};
  if (!roi_read(c, &r)) return NULL;
  TgTensor *x = c->in[0], *all = NULL;
  int64_t channels = tg_dim(x, 1), high = tg_dim(x, 2), wide = tg_dim(x, 3);
  if (!r.count || !channels)
    return tg_zeros(c->ctx, TG_SHAPE(r.count, channels, r.out[0], r.out[1]), .dtype = tg_dtype(x));
  Beside y = roi_places(c, &r, 0, high), z = roi_places(c, &r, 1, wide);
  TgTensor *batch = tg_reshape(tg_cast(c->in[2], TG_I64), TG_SHAPE(r.count, 1, 1, 1, 1));
  TgTensor *flat = tg_reshape(tg_permute(x, 4, (const int64_t[]){1, 0, 2, 3}), TG_SHAPE(1, channels, -1));
  TgTensor *first = tg_mul_scalar(batch, (double)(high * wide));
  for (int k = 0; k < 4; k++) {
    TgTensor *index =
        tg_add(tg_mul_scalar(spread(&r, y.index[k / 2], 0), (double)wide), spread(&r, z.index[k % 2], 1));
    TgTensor *w = tg_mul(spread(&r, y.weight[k / 2], 0), spread(&r, z.weight[k % 2], 1));
    TgTensor *v = read_at(flat, tg_reshape(tg_add(index, first), TG_SHAPE(1, 1, -1)));
    v = tg_reshape(v, TG_SHAPE(channels, r.count, r.out[0], r.samples[0], r.out[1], r.samples[1]));
    v = tg_mul(v, tg_cast(w, tg_dtype(x)));
    all = !all ? v : r.largest ? tg_maximum(all, v) : tg_add(all, v);
  }
  TgTensor *there = tg_mul(spread(&r, y.there, 0), spread(&r, z.there, 1));
  if (r.largest)
    all =
        tg_max(tg_where(tg_gt_scalar(there, 0), all, tg_scalar_like(all, -INFINITY)), .axis = TG_AXES(3, 5));
  else {
    TgTensor *count = tg_sum(there, .axis = TG_AXES(2, 4)); /* (count, out y, out x) */
    all = tg_div(tg_sum(tg_mul(all, there), .axis = TG_AXES(3, 5)),
                 tg_maximum(count, tg_scalar_like(count, 1)));
  }
  return tg_cast(tg_permute(all, 4, (const int64_t[]){1, 0, 2, 3}), tg_dtype(x));
}

const OnnxOp onnx_ops_region[] = {
    ONNX_OP("DeformConv", 19, 3, 5, op_deform_conv), ONNX_OP("RoiAlign", 10, 3, 3, op_roi_align), {0}};
