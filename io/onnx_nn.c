/* onnx_nn.c: products, convolutions, pools, normalisation, quantisation. In: an OnnxCall. Out: lazy
 * tensors. ONNX lists spatial attributes axis by axis, first axis first, with the pads before all axes
 * ahead of the pads after them; tg.h takes a pair for each axis, the last axis first. */
#include "onnx_private.h"

/* bound of strides, pads and so on, so that sums and products of two do not overflow */
enum { SIZE_LIMIT = 1 << 28 };

static TgTensor *channels(TgTensor *v, int rank) { /* (c) -> (c, 1, ..): to be broadcast with (n, c, ..) */
  int64_t dims[TG_MAX_RANK];
  for (int a = 0; a < rank - 1; a++)
    dims[a] = a ? 1 : tg_numel(v);
  return tg_reshape(v, rank - 1, dims);
}

static TgTensor *op_matmul(TgTensor *a, TgTensor *b) { return tg_matmul(a, b); }

TgTensor *onnx_gemm(OnnxCall *c) {
  TgTensor *a = c->in[0], *b = c->in[1], *y;
  double alpha = attr_f(c, "alpha", 1), beta = attr_f(c, "beta", 1);
  if (tg_ndim(a) != 2 || tg_ndim(b) != 2)
    return call_fail(c, TG_ERR_SHAPE, "operands of %d and %d axes", tg_ndim(a), tg_ndim(b));
  y = tg_matmul(attr_i(c, "transA", 0) ? tg_transpose(a, 0, 1) : a,
                attr_i(c, "transB", 0) ? tg_transpose(b, 0, 1) : b);
  if (alpha != 1) y = as(tg_mul_scalar(y, alpha), tg_dtype(a));
  return c->in[2] && beta != 0
             ? tg_add(y, beta != 1 ? as(tg_mul_scalar(c->in[2], beta), tg_dtype(a)) : c->in[2])
             : y;
}

/* ---- spatial attributes */
static bool sizes(OnnxCall *c, const char *name, int n, TgSizes *out) {
  Ints v;
  if (!call_ints(c, -1, name, &v)) return false;
  for (int i = 0; i < n; i++)
    out->v[i] = v.given && i < v.n ? v.v[i] : 1;
  out->n = n;
  if (v.given && v.n != n)
    return call_fail(c, TG_ERR_SHAPE, "%s: %d numbers for %d axes", name, v.n, n), false;
  for (int i = 0; i < n; i++)
    if (out->v[i] < 1 || out->v[i] > SIZE_LIMIT)
      return call_fail(c, TG_ERR_VALUE, "%s: %lld", name, (long long)out->v[i]), false;
  return true;
}

/* Whether kernel_shape, if it is given, agrees with the weight. */
static bool kernel_agrees(OnnxCall *c, int n, const TgSizes *kernel) {
  Ints said;
  if (!call_ints(c, -1, "kernel_shape", &said)) return false;
  bool ok = !said.given || said.n == n;
  for (int i = 0; ok && said.given && i < n; i++)
    ok = said.v[i] == kernel->v[i];
  return ok || (call_fail(c, TG_ERR_SHAPE, "kernel_shape is not the weight's"), false);
}

bool onnx_spatial(OnnxCall *c, const TgTensor *x, const TgTensor *weight, Spatial *s) {
  Ints pads;
  const char *how = attr_s(c, "auto_pad", "NOTSET");
  int n = s->n = tg_ndim(x) - 2;
  if (n < 1 || n > TG_MAX_SPATIAL)
    return call_fail(c, TG_ERR_SHAPE, "an input of %d axes", tg_ndim(x)), false;
  if (!weight && !call_attr(c, "kernel_shape", ONNX_INTS))
    return call_fail(c, TG_ERR_VALUE, "no kernel_shape"), false;
  if (weight && tg_ndim(weight) != n + 2)
    return call_fail(c, TG_ERR_SHAPE, "a weight of %d axes for an input of %d", tg_ndim(weight), n + 2),
           false;
  if (!sizes(c, "strides", n, &s->stride) || !sizes(c, "dilations", n, &s->dilation) ||
      !call_ints(c, -1, "pads", &pads))
    return false;
  if (weight)
    for (int i = 0; i < n; i++)
      s->kernel.v[i] = tg_dim(weight, i + 2);
  else if (!sizes(c, "kernel_shape", n, &s->kernel))
    return false;
  if (weight && !kernel_agrees(c, n, &s->kernel)) return false;
  s->kernel.n = n;
  s->padding.n = 2 * n;
  bool same = !strncmp(how, "SAME", 4), lower = !strcmp(how, "SAME_LOWER");
  if (!same && strcmp(how, "NOTSET") && strcmp(how, "VALID") && *how)
    return call_fail(c, TG_ERR_VALUE, "auto_pad %.20s", how), false;
  if (pads.given && pads.n != 2 * n)
    return call_fail(c, TG_ERR_SHAPE, "%d pads for %d axes", pads.n, n), false;
  for (int i = 0; i < pads.n; i++)
    if (pads.v[i] < -SIZE_LIMIT || pads.v[i] > SIZE_LIMIT)
      return call_fail(c, TG_ERR_VALUE, "pads: %lld", (long long)pads.v[i]), false;
  for (int i = 0; i < n; i++) {
    int64_t before = pads.given && strcmp(how, "VALID") ? pads.v[i] : 0;
    int64_t after = pads.given && strcmp(how, "VALID") ? pads.v[i + n] : 0;
    if (same) {
      int64_t in = tg_dim(x, i + 2);
      int64_t out = (in + s->stride.v[i] - 1) / s->stride.v[i];
      int64_t need = (out - 1) * s->stride.v[i] + s->dilation.v[i] * (s->kernel.v[i] - 1) + 1 - in;
      need = need > 0 ? need : 0;
      before = lower ? need - need / 2 : need / 2;
      after = need - before;
    }
    s->padding.v[2 * (n - 1 - i)] = before;
    s->padding.v[2 * (n - 1 - i) + 1] = after;
  }
  return true;
}

static TgTensor *op_conv(OnnxCall *c) {
  Spatial s = {0};
  return !onnx_spatial(c, c->in[0], c->in[1], &s)
             ? NULL
             : tg_conv2d(c->in[0], c->in[1], .bias = c->nin > 2 ? c->in[2] : NULL,
                         .groups = attr_i(c, "group", 1), .stride = s.stride, .dilation = s.dilation,
                         .padding = s.padding);
}

/* com.microsoft: onnxruntime writes a convolution, an addition and an activation as one operator. */
TgTensor *onnx_activated(OnnxCall *c, TgTensor *y, double a, double b, int given) {
  const char *how = attr_s(c, "activation", "");
  if (!*how) return y;
  if (!strcmp(how, "Relu")) return tg_relu(y);
  if (!strcmp(how, "Tanh")) return tg_tanh(y);
  if (!strcmp(how, "Sigmoid")) return tg_sigmoid(y);
  if (!strcmp(how, "LeakyRelu")) return tg_leaky_relu(y, given ? a : 0.01);
  if (!strcmp(how, "Clip") && given > 1) return tg_clamp(y, a, b);
  if (!strcmp(how, "HardSigmoid") && given > 1) return tg_clamp(tg_add_scalar(tg_mul_scalar(y, a), b), 0, 1);
  return call_fail(c, TG_ERR_VALUE, "activation %.40s is not implemented", how);
}

static TgTensor *op_fused_conv(OnnxCall *c) {
  TgTensor *y = op_conv(c);
  const OnnxAttr *p = call_attr(c, "activation_params", ONNX_FLOATS);
  int n = p ? (int)p->nfloats : 0;
  if (c->in[3]) y = tg_add(y, c->in[3]);
  return onnx_activated(c, y, n > 0 ? p->floats[0] : 0, n > 1 ? p->floats[1] : 0, n);
}

static TgTensor *op_conv_transpose(OnnxCall *c) {
  Spatial s = {0};
  Ints want, extra;
  TgTensor *x = c->in[0], *w = c->in[1];
  const char *how = attr_s(c, "auto_pad", "NOTSET");
  if (!onnx_spatial(c, x, w, &s) || !call_ints(c, -1, "output_shape", &want) ||
      !call_ints(c, -1, "output_padding", &extra))
    return NULL;
  TgSizes out = {.n = s.n};
  int skip = want.given ? want.n - s.n : 0;
  if (skip < 0 || (extra.given && extra.n != s.n))
    return call_fail(c, TG_ERR_SHAPE, "output_shape or output_padding");
  for (int i = 0; i < s.n; i++) {
    int64_t k = s.dilation.v[i] * (s.kernel.v[i] - 1) + 1;
    int64_t full = (tg_dim(x, i + 2) - 1) * s.stride.v[i] + k;
    int64_t p = extra.given ? extra.v[i] : 0;
    out.v[i] = p;
    if (p < 0 || p > SIZE_LIMIT || (want.given && (want.v[skip + i] < 0 || want.v[skip + i] > SIZE_LIMIT)))
      return call_fail(c, TG_ERR_VALUE, "output_shape or output_padding of axis %d", i);
    bool same = !strncmp(how, "SAME", 4);
    /* the pads follow from the requested size; missing elements are added at the end */
    if (want.given || same) {
      int64_t total = full + p - (want.given ? want.v[skip + i] : tg_dim(x, i + 2) * s.stride.v[i]);
      int64_t less = total < 0 ? 0 : total;
      if (total < 0) out.v[i] = p - total;
      bool upper = !strcmp(how, "SAME_UPPER");
      int64_t before = upper ? less / 2 : less - less / 2;
      s.padding.v[2 * (s.n - 1 - i)] = before;
      s.padding.v[2 * (s.n - 1 - i) + 1] = less - before;
    }
  }
  return tg_conv_transpose2d(x, w, .bias = c->nin > 2 ? c->in[2] : NULL, .groups = attr_i(c, "group", 1),
                             .stride = s.stride, .dilation = s.dilation, .padding = s.padding,
                             .output_padding = out);
}

static TgTensor *op_max_pool(OnnxCall *c) {
  Spatial s = {0};
  TgTensor *x = c->in[0], *places = NULL, *y;
  if (!onnx_spatial(c, x, NULL, &s)) return NULL;
  bool two = c->nout > 1 && c->n->out[1];
  bool columns = attr_i(c, "storage_order", 0);
  if (two && columns) return call_fail(c, TG_ERR_VALUE, "storage_order 1 is not implemented");
  y = tg_max_pool2d(x, .axes = s.n, .kernel = s.kernel, .stride = s.stride, .dilation = s.dilation,
                    .padding = s.padding, .ceil_mode = attr_i(c, "ceil_mode", 0),
                    .indices = two ? &places : NULL);
  if (!two) return y;
  int64_t dims[TG_MAX_RANK], plane = 1, nc = tg_size_mul(c->ctx, tg_size_of(x, 0), tg_size_of(x, 1));
  for (int a = 0; a < s.n + 2; a++) {
    dims[a] = a < 2 ? tg_size_of(x, a) : 1;
    plane *= a < 2 ? 1 : tg_dim(x, a);
  }
  TgTensor *base = tg_reshape(tg_mul_scalar(onnx_iota(c->ctx, nc), (double)plane), s.n + 2, dims);
  c->out[1] = tg_add(tg_long(places), base); /* ONNX counts places from the start of the whole tensor */
  return y;
}

static TgTensor *op_average_pool(OnnxCall *c) {
  Spatial s = {0};
  return !onnx_spatial(c, c->in[0], NULL, &s)
             ? NULL
             : tg_avg_pool2d(c->in[0], .axes = s.n, .kernel = s.kernel, .stride = s.stride,
                             .dilation = s.dilation, .padding = s.padding,
                             .ceil_mode = attr_i(c, "ceil_mode", 0),
                             .exclude_pad = !attr_i(c, "count_include_pad", 0));
}

/* A last window that begins before the padding at the end counts too: its missing elements become padding. */
void onnx_ceil_padded(const TgTensor *x, Spatial *s) {
  for (int i = 0; i < s->n; i++) {
    int64_t *behind = &s->padding.v[2 * (s->n - 1 - i) + 1];
    int64_t end = tg_dim(x, i + 2) + s->padding.v[2 * (s->n - 1 - i)], step = s->stride.v[i];
    int64_t reach = s->dilation.v[i] * (s->kernel.v[i] - 1) + 1, room = end + *behind - reach;
    if (room < 0) continue; /* not even one window fits: refused as without ceil_mode */
    int64_t last = (room + step - 1) / step * step;
    if (last >= end && last) last -= step;
    *behind = last + reach > end ? last + reach - end : 0;
  }
}

/* (sum of |x|^p)^(1/p), computed from the average, in which the padding counts as zeros. */
static TgTensor *op_lp_pool(OnnxCall *c) {
  Spatial s = {0};
  double p = (double)attr_i(c, "p", 2), n = 1;
  if (!onnx_spatial(c, c->in[0], NULL, &s)) return NULL;
  if (p < 1) return call_fail(c, TG_ERR_VALUE, "p %g", p);
  if (attr_i(c, "ceil_mode", 0)) onnx_ceil_padded(c->in[0], &s);
  for (int i = 0; i < s.n; i++)
    n *= (double)s.kernel.v[i];
  TgTensor *powers = tg_pow_scalar(tg_abs(c->in[0]), p);
  TgTensor *mean = tg_avg_pool2d(powers, .axes = s.n, .kernel = s.kernel, .stride = s.stride,
                                 .dilation = s.dilation, .padding = s.padding);
  return as(tg_pow_scalar(tg_mul_scalar(mean, n), 1 / p), tg_dtype(c->in[0]));
}

/* Puts the largest value of each window back to its place, which is given by its number in the whole
 * tensor. */
static TgTensor *op_max_unpool(OnnxCall *c) {
  Spatial s = {0};
  Ints want;
  TgTensor *x = c->in[0];
  int64_t dims[TG_MAX_RANK], total = 1;
  if (!onnx_spatial(c, x, NULL, &s) || !call_ints(c, 2, NULL, &want)) return NULL;
  if (want.given && want.n != s.n + 2)
    return call_fail(c, TG_ERR_SHAPE, "output_shape has %d numbers", want.n);
  for (int a = 0; a < s.n + 2; a++) {
    int i = a - 2, pair = 2 * (s.n - 1 - i);
    dims[a] = want.given ? want.v[a] : tg_dim(x, a);
    if (!want.given && a >= 2)
      dims[a] =
          (tg_dim(x, a) - 1) * s.stride.v[i] + s.kernel.v[i] - s.padding.v[pair] - s.padding.v[pair + 1];
    if (dims[a] < 1 || dims[a] > SIZE_LIMIT || total > SIZE_LIMIT / dims[a])
      return call_fail(c, TG_ERR_SHAPE, "axis %d of the output would be %lld", a, (long long)dims[a]);
    total *= dims[a];
  }
  if (!call_indices(c, 1, total, 0, 1)) return NULL;
  TgTensor *empty = tg_zeros(c->ctx, TG_SHAPE(total), .dtype = tg_dtype(x));
  TgTensor *flat = tg_reshape(x, TG_SHAPE(-1)), *places = tg_reshape(c->in[1], TG_SHAPE(-1));
  return tg_reshape(tg_scatter(empty, 0, places, flat), s.n + 2, dims);
}

/* Puts columns back into the picture that they were cut from, and adds overlaps. This is a transposed
 * convolution whose weight puts row k of a column at place k of the window. (n, c * places, columns) ->
 * (n, c, ..image) */
static TgTensor *op_col2im(OnnxCall *c) {
  Ints image, block, pads;
  TgTensor *x = c->in[0];
  TgSizes stride, dilation, padding = {0};
  if (!call_ints(c, 1, NULL, &image) || !call_ints(c, 2, NULL, &block) || !call_ints(c, -1, "pads", &pads))
    return NULL;
  int n = image.n;
  if (n < 1 || n > TG_MAX_SPATIAL || block.n != n || (pads.given && pads.n != 2 * n) || tg_ndim(x) != 3)
    return call_fail(c, TG_ERR_SHAPE, "a picture of %d axes, a block of %d, columns of %d", n, block.n,
                     tg_ndim(x));
  if (!sizes(c, "strides", n, &stride) || !sizes(c, "dilations", n, &dilation)) return NULL;
  int64_t places = 1, columns = 1, cut[TG_MAX_RANK] = {0, 0}, window[TG_MAX_RANK], out[TG_MAX_RANK];
  TgSizes extra = {.n = n};
  padding.n = 2 * n;
  for (int i = 0; i < n; i++) {
    int64_t before = pads.given ? pads.v[i] : 0, after = pads.given ? pads.v[i + n] : 0;
    if (block.v[i] < 1 || block.v[i] > SIZE_LIMIT || image.v[i] < 1 || image.v[i] > SIZE_LIMIT ||
        before < 0 || after < 0 || before > SIZE_LIMIT || after > SIZE_LIMIT)
      return call_fail(c, TG_ERR_SHAPE, "axis %d of the picture: size %lld, block %lld, pads %lld and %lld",
                       i, (long long)image.v[i], (long long)block.v[i], (long long)before, (long long)after);
    int64_t reach = dilation.v[i] * (block.v[i] - 1) + 1, room = image.v[i] + before + after - reach;
    if (room < 0) return call_fail(c, TG_ERR_SHAPE, "a block of %lld in axis %d", (long long)block.v[i], i);
    cut[i + 2] = room / stride.v[i] + 1;
    extra.v[i] = room % stride.v[i];
    window[i + 2] = block.v[i];
    out[i + 2] = image.v[i];
    places *= block.v[i];
    columns *= cut[i + 2];
    padding.v[2 * (n - 1 - i)] = before;
    padding.v[2 * (n - 1 - i) + 1] = after;
    if (places > SIZE_LIMIT || columns > SIZE_LIMIT)
      return call_fail(c, TG_ERR_LIMIT, "a block of %lld elements, %lld columns: at most %d",
                       (long long)places, (long long)columns, SIZE_LIMIT);
  }
  if (tg_dim(x, 1) % places || tg_dim(x, 2) != columns)
    return call_fail(c, TG_ERR_SHAPE, "%lld rows and %lld columns, not a multiple of %lld and %lld",
                     (long long)tg_dim(x, 1), (long long)tg_dim(x, 2), (long long)places, (long long)columns);
  cut[0] = tg_dim(x, 0) * (tg_dim(x, 1) / places);
  cut[1] = places;
  window[0] = places;
  window[1] = 1;
  out[0] = tg_dim(x, 0);
  out[1] = tg_dim(x, 1) / places;
  TgTensor *weight = tg_reshape(tg_eye(c->ctx, places, .dtype = tg_dtype(x)), n + 2, window);
  TgTensor *y = tg_conv_transpose2d(tg_reshape(x, n + 2, cut), weight, .stride = stride, .dilation = dilation,
                                    .padding = padding, .output_padding = extra);
  return tg_reshape(y, n + 2, out);
}

static TgAxes from_axis(int rank, int axis) {
  TgAxes a = {0};
  for (; axis < rank; axis++)
    a.v[a.n++] = axis;
  return a;
}

static TgTensor *op_global_average(OnnxCall *c) {
  return tg_ndim(c->in[0]) < 3 ? call_fail(c, TG_ERR_SHAPE, "no spatial axes")
                               : tg_mean(c->in[0], .axis = from_axis(tg_ndim(c->in[0]), 2), .keepdim = true);
}

static TgTensor *op_global_max(OnnxCall *c) {
  return tg_ndim(c->in[0]) < 3 ? call_fail(c, TG_ERR_SHAPE, "no spatial axes")
                               : tg_max(c->in[0], .axis = from_axis(tg_ndim(c->in[0]), 2), .keepdim = true);
}

/* ---- normalisation */
static TgTensor *op_batch_norm(OnnxCall *c) {
  attr_unused(c, "momentum"); /* only for training */
  if (!attr_i(c, "spatial", 1)) return call_fail(c, TG_ERR_VALUE, "spatial 0 is not implemented");
  if (attr_i(c, "training_mode", 0) || c->nout > 1)
    return call_fail(c, TG_ERR_VALUE, "training is not implemented");
  return as(tg_batch_norm(c->in[0], c->in[3], c->in[4], .weight = c->in[1], .bias = c->in[2],
                          .eps = attr_f(c, "epsilon", 1e-5f)),
            tg_dtype(c->in[0]));
}

TgTensor *onnx_standard(TgTensor *x, TgAxes axes, double eps, TgTensor **mean, TgTensor **inv) {
  x = tg_dtype(x) == TG_F64 ? x : as(x, TG_F32);
  TgTensor *m = tg_mean(x, .axis = axes, .keepdim = true);
  TgTensor *d = tg_sub(x, m);
  TgTensor *i = tg_rsqrt(tg_add_scalar(tg_mean(tg_square(d), .axis = axes, .keepdim = true), eps));
  if (mean) *mean = m;
  if (inv) *inv = i;
  return tg_mul(d, i);
}

static TgTensor *op_instance_norm(OnnxCall *c) {
  int rank = tg_ndim(c->in[0]);
  if (rank < 3) return call_fail(c, TG_ERR_SHAPE, "no spatial axes");
  TgTensor *y = onnx_standard(c->in[0], from_axis(rank, 2), attr_f(c, "epsilon", 1e-5f), NULL, NULL);
  return as(tg_add(tg_mul(y, channels(c->in[1], rank)), channels(c->in[2], rank)), tg_dtype(c->in[0]));
}

static TgTensor *op_layer_norm(OnnxCall *c) {
  if (attr_i(c, "stash_type", 1) != 1) return call_fail(c, TG_ERR_VALUE, "stash_type is not f32");
  int axis;
  TgTensor *x = c->in[0], *mean, *inv;
  if (!call_axis(c, attr_i(c, "axis", -1), tg_ndim(x), &axis)) return NULL;
  TgTensor *y = as(onnx_standard(x, from_axis(tg_ndim(x), axis), attr_f(c, "epsilon", 1e-5f), &mean, &inv),
                   tg_dtype(x));
  if (c->nout > 1) c->out[1] = as(mean, TG_F32);
  if (c->nout > 2) c->out[2] = as(inv, TG_F32);
  y = tg_mul(y, c->in[1]);
  return c->in[2] ? tg_add(y, c->in[2]) : y;
}

TgTensor *onnx_rms(TgTensor *x, TgAxes axes, double eps, TgTensor **inv) {
  TgTensor *wide = tg_dtype(x) == TG_F64 ? x : as(x, TG_F32);
  TgTensor *i = tg_rsqrt(tg_add_scalar(tg_mean(tg_square(wide), .axis = axes, .keepdim = true), eps));
  if (inv) *inv = i;
  return as(tg_mul(wide, i), tg_dtype(x));
}

/* RMSNormalization, and SimplifiedLayerNormalization, onnxruntime's earlier name for it. */
static TgTensor *op_rms_norm(OnnxCall *c) {
  if (attr_i(c, "stash_type", 1) != 1) return call_fail(c, TG_ERR_VALUE, "stash_type is not f32");
  int axis, rank = tg_ndim(c->in[0]);
  TgTensor *inv;
  if (!call_axis(c, attr_i(c, "axis", -1), rank, &axis)) return NULL;
  TgTensor *y = onnx_rms(c->in[0], from_axis(rank, axis), attr_f(c, "epsilon", 1e-5f), &inv);
  if (c->nout > 1) c->out[1] = inv;
  return tg_mul(y, c->in[1]);
}

static TgTensor *op_group_norm(OnnxCall *c) {
  if (attr_i(c, "stash_type", 1) != 1) return call_fail(c, TG_ERR_VALUE, "stash_type is not f32");
  TgTensor *x = c->in[0], *w = c->in[1], *b = c->in[2];
  int rank = tg_ndim(x);
  int64_t groups = attr_i(c, "num_groups", 0), n = tg_size_of(x, 0), ch = tg_dim(x, 1);
  if (rank < 2 || groups < 1 || ch % groups)
    return call_fail(c, TG_ERR_SHAPE, "%lld channels in %lld groups", (long long)ch, (long long)groups);
  if (c->opset < 21) {
    w = tg_repeat_interleave(w, ch / groups, 0);
    b = tg_repeat_interleave(b, ch / groups, 0);
  } /* there is one weight for each group */
  TgTensor *y = onnx_standard(tg_reshape(x, TG_SHAPE(n, groups, -1)), TG_AXES(2), attr_f(c, "epsilon", 1e-5f),
                              NULL, NULL);
  return as(tg_add(tg_mul(shaped_as(y, x), channels(w, rank)), channels(b, rank)), tg_dtype(x));
}

static TgTensor *op_mvn(OnnxCall *c) {
  Ints a;
  TgAxes axes = {0};
  TgTensor *x = c->in[0];
  if (!call_ints(c, -1, "axes", &a)) return NULL;
  if (!a.given) a = (Ints){true, 3, {0, 2, 3}};
  if (a.n > TG_MAX_RANK) return call_fail(c, TG_ERR_SHAPE, "%d axes", a.n);
  for (int i = 0; i < a.n; i++)
    if (!call_axis(c, a.v[i], tg_ndim(x), &axes.v[axes.n++])) return NULL;
  TgTensor *d = tg_sub(x, tg_mean(x, .axis = axes, .keepdim = true));
  return tg_div(d, tg_add_scalar(tg_sqrt(tg_mean(tg_square(d), .axis = axes, .keepdim = true)), 1e-9));
}

static TgTensor *op_lrn(OnnxCall *c) {
  TgTensor *x = c->in[0];
  int64_t size = attr_i(c, "size", 0), lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0};
  if (tg_ndim(x) < 2 || size < 1 || size > SIZE_LIMIT)
    return call_fail(c, TG_ERR_SHAPE, "size %lld", (long long)size);
  lo[1] = (size - 1) / 2;
  hi[1] = size - 1 - lo[1];
  TgTensor *s = tg_sum(tg_unfold(tg_pad(tg_square(x), lo, hi), 1, size, 1), .axis = TG_AXES(-1));
  return tg_div(x, tg_pow_scalar(tg_add_scalar(tg_mul_scalar(s, attr_f(c, "alpha", 1e-4f) / (double)size),
                                               attr_f(c, "bias", 1)),
                                 attr_f(c, "beta", 0.75)));
}

static TgTensor *op_dropout(OnnxCall *c) {
  Ints on;
  attr_unused(c, "ratio"), attr_unused(c, "seed"); /* only for training */
  if (!call_ints(c, c->opset >= 12 ? 2 : -1, NULL, &on)) return NULL;
  if (on.n && on.v[0]) return call_fail(c, TG_ERR_VALUE, "training is not implemented");
  int64_t room[TG_MAX_RANK];
  if (c->nout > 1)
    c->out[1] = tg_ones(c->ctx, tg_ndim(c->in[0]), sizes_in(c->in[0], room),
                        .dtype = c->opset >= 10 ? TG_BOOL : tg_dtype(c->in[0]));
  return shaped_as(c->in[0], c->in[0]);
}

static TgTensor *op_einsum(OnnxCall *c) { return tg_einsum(attr_s(c, "equation", ""), c->in, c->nin); }

/* ---- quantisation */
/* A scale or zero point reshaped for x: one number, one for each element of axis or, with block_size, one
 * for each block of it. */
static TgTensor *beside(OnnxCall *c, TgTensor *x, TgTensor *v) {
  int axis, rank = tg_ndim(x);
  int64_t dims[TG_MAX_RANK], block = attr_i(c, "block_size", 0), along = attr_i(c, "axis", 1);
  if (!v || (tg_numel(v) == 1 && tg_ndim(v) < 2)) return v ? tg_reshape(v, TG_SCALAR) : NULL;
  if (block < 0) return call_fail(c, TG_ERR_VALUE, "block_size %lld", (long long)block);
  if (!call_axis(c, along, rank, &axis)) return NULL;
  if (tg_ndim(v) != (block ? rank : 1))
    return call_fail(c, TG_ERR_SHAPE, "a scale of %d axes for %d, block_size %lld", tg_ndim(v), rank,
                     (long long)block);
  if (!block) {
    for (int a = 0; a < rank; a++)
      dims[a] = a == axis ? tg_dim(v, 0) : 1;
    return tg_reshape(v, rank, dims);
  }
  int64_t n = tg_size_of(x, axis);
  for (int a = 0; a < rank; a++) {
    int64_t want = a != axis ? tg_size_of(x, a) : n / block + (n % block != 0);
    if (tg_size_of(v, a) != want)
      return call_fail(c, TG_ERR_SHAPE, "a scale of size %lld in axis %d, not %lld", (long long)tg_dim(v, a),
                       a, (long long)want);
  }
  return tg_slice(tg_repeat_interleave(v, block < n ? block : n, axis), axis, 0, n);
}

static bool range_of(TgDType d, double *lo, double *hi) {
  switch (d) {
  case TG_U8: return *lo = 0, *hi = 255, true;
  case TG_I8: return *lo = -128, *hi = 127, true;
  case TG_U16: return *lo = 0, *hi = 65535, true;
  case TG_I16: return *lo = -32768, *hi = 32767, true;
  case TG_FP8E4M3: return *lo = -448, *hi = 448, true;
  case TG_FP8E5M2: return *lo = -57344, *hi = 57344, true;
  default: return false;
  }
}

static TgTensor *op_quantize(OnnxCall *c) {
  TgTensor *x = c->in[0];
  TgTensor *scale = beside(c, x, c->in[1]);
  TgTensor *zero = c->in[2] ? beside(c, x, c->in[2]) : NULL;
  int64_t to = attr_i(c, "output_dtype", 0);
  if (!attr_i(c, "saturate", 1)) return call_fail(c, TG_ERR_VALUE, "saturate 0 is not implemented");
  const OnnxNarrow *narrow = onnx_narrow(zero ? c->raw[2]->narrow : to);
  TgDType d = narrow ? narrow->as : zero ? tg_dtype(zero) : to ? onnx_dtype(to) : TG_U8;
  double lo, hi;
  bool known = range_of(d, &lo, &hi);
  if (narrow) {
    lo = narrow->lo;
    hi = narrow->hi;
    c->narrow = narrow->type;
  }
  if (!scale || !known) return call_fail(c, TG_ERR_DTYPE, "this data type is not implemented");
  TgTensor *y = tg_div(as(x, TG_F32), as(scale, TG_F32));
  if (d != TG_FP8E4M3 && d != TG_FP8E5M2) y = tg_round(y);
  if (zero) y = tg_add(y, as(zero, TG_F32));
  return tg_cast(tg_clamp(y, lo, hi), d);
}

static TgTensor *op_dequantize(OnnxCall *c) {
  TgTensor *x = c->in[0];
  TgTensor *scale = beside(c, x, c->in[1]);
  TgTensor *zero = c->in[2] ? beside(c, x, c->in[2]) : NULL;
  if (!scale) return NULL;
  TgDType small = tg_dtype(x) == TG_FP8E4M3 || tg_dtype(x) == TG_FP8E5M2 ? TG_F32 : TG_I32;
  TgTensor *y = as(x, small);
  if (zero) y = tg_sub(y, as(zero, small));
  int64_t to = attr_i(c, "output_dtype", 0);
  return as(tg_mul(as(y, TG_F32), as(scale, TG_F32)),
            to && onnx_dtype(to) ? onnx_dtype(to) : tg_dtype(scale));
}

TgTensor *onnx_dynamically_quantised(TgTensor *x, TgTensor **scale, TgTensor **zero) {
  TgTensor *hi = tg_maximum_scalar(tg_max(x), 0);
  TgTensor *lo = tg_minimum_scalar(tg_min(x), 0);
  *scale = tg_div_scalar(tg_sub(hi, lo), 255);
  TgTensor *z = tg_clamp(tg_round(tg_neg(tg_div(lo, *scale))), 0, 255);
  *zero = tg_cast(z, TG_U8);
  return tg_cast(tg_clamp(tg_add(tg_round(tg_div(x, *scale)), z), 0, 255), TG_U8);
}

static TgTensor *op_dynamic_quantize(OnnxCall *c) {
  TgTensor *scale, *zero, *y = onnx_dynamically_quantised(c->in[0], &scale, &zero);
  if (c->nout > 1) c->out[1] = scale;
  if (c->nout > 2) c->out[2] = zero;
  return y;
}

/* Subtracts the zero point from input i: a single one, or one for each row, column or filter. */
typedef enum ZeroOf { OF_ROWS, OF_COLUMNS, OF_FILTERS } ZeroOf;

static TgTensor *less_zero(OnnxCall *c, int i, int zero, ZeroOf of) {
  TgTensor *x = as(c->in[i], TG_I32), *z = c->nin > zero ? as(c->in[zero], TG_I32) : NULL;
  bool many = z && tg_ndim(z) == 1 && tg_dim(z, 0) > 1;
  if (many && of == OF_ROWS) z = tg_unsqueeze(z, 1);
  if (many && of == OF_FILTERS && tg_dim(z, 0) != tg_dim(x, 0))
    return call_fail(c, TG_ERR_SHAPE, "%lld zero points for %lld filters", (long long)tg_dim(z, 0),
                     (long long)tg_dim(x, 0));
  if (many && of == OF_FILTERS) {
    int64_t dims[TG_MAX_RANK];
    for (int a = 0; a < tg_ndim(x); a++)
      dims[a] = a ? 1 : tg_dim(z, 0);
    z = tg_reshape(z, tg_ndim(x), dims);
  }
  return z ? tg_sub(x, z) : x;
}

static TgTensor *op_matmul_integer(OnnxCall *c) {
  return tg_matmul(less_zero(c, 0, 2, OF_ROWS), less_zero(c, 1, 3, OF_COLUMNS));
}

static TgTensor *op_conv_integer(OnnxCall *c) {
  Spatial s = {0};
  if (c->in[2] && tg_numel(c->in[2]) != 1)
    return call_fail(c, TG_ERR_SHAPE, "%lld zero points of the input", (long long)tg_numel(c->in[2]));
  return !onnx_spatial(c, c->in[0], c->in[1], &s)
             ? NULL
             : tg_conv2d(less_zero(c, 0, 2, OF_ROWS), less_zero(c, 1, 3, OF_FILTERS),
                         .groups = attr_i(c, "group", 1), .stride = s.stride, .dilation = s.dilation,
                         .padding = s.padding);
}

/* ---- products of quantised tensors: x, its scale and zero point; w, its scale and zero point; those of y */
TgTensor *onnx_quantised(OnnxCall *c, TgTensor *y, TgTensor *scale, TgTensor *zero) {
  double lo, hi;
  TgDType d = zero ? tg_dtype(zero) : TG_U8;
  if (!range_of(d, &lo, &hi)) return call_fail(c, TG_ERR_DTYPE, "the zero point of the result");
  y = tg_round(tg_div(y, as(scale, TG_F32)));
  if (zero) y = tg_add(y, as(zero, TG_F32));
  return tg_cast(tg_clamp(y, lo, hi), d);
}

static TgTensor *requantised(OnnxCall *c, TgTensor *sum, TgTensor *x_scale, TgTensor *w_scale) {
  TgTensor *y = tg_mul(as(sum, TG_F32), tg_mul(as(x_scale, TG_F32), as(w_scale, TG_F32)));
  return onnx_quantised(c, y, c->in[6], c->in[7]);
}

static TgTensor *op_qlinear_matmul(OnnxCall *c) {
  TgTensor *rows = c->in[1];
  if (tg_ndim(rows) == 1 && tg_dim(rows, 0) > 1) rows = tg_unsqueeze(rows, 1);
  return requantised(c, tg_matmul(less_zero(c, 0, 2, OF_ROWS), less_zero(c, 3, 5, OF_COLUMNS)), rows,
                     c->in[4]);
}

static TgTensor *op_qlinear_conv(OnnxCall *c) {
  Spatial s = {0};
  TgTensor *w = c->in[3], *bias = c->nin > 8 ? c->in[8] : NULL, *scale = c->in[4];
  if (tg_numel(c->in[2]) != 1) return call_fail(c, TG_ERR_SHAPE, "several zero points of the input");
  if (!onnx_spatial(c, c->in[0], w, &s)) return NULL;
  TgTensor *sum = tg_conv2d(less_zero(c, 0, 2, OF_ROWS), less_zero(c, 3, 5, OF_FILTERS),
                            .bias = as(bias, TG_I32), .groups = attr_i(c, "group", 1), .stride = s.stride,
                            .dilation = s.dilation, .padding = s.padding);
  if (tg_numel(scale) > 1) scale = channels(scale, tg_ndim(c->in[0]));
  return requantised(c, sum, c->in[1], scale);
}

const OnnxOp onnx_ops_nn[] = {ONNX_BINARY("MatMul", op_matmul),
                              ONNX_SIZED("Gemm", 1, 2, 3, onnx_gemm),
                              ONNX_SIZED("Einsum", 12, 1, -1, op_einsum),
                              ONNX_SIZED("Conv", 1, 2, 3, op_conv),
                              ONNX_SIZED("ConvTranspose", 1, 2, 3, op_conv_transpose),
                              ONNX_SIZED("MaxPool", 1, 1, 1, op_max_pool),
                              ONNX_SIZED("AveragePool", 1, 1, 1, op_average_pool),
                              ONNX_SIZED("LpPool", 2, 1, 1, op_lp_pool),
                              ONNX_OP("MaxUnpool", 9, 2, 3, op_max_unpool),
                              ONNX_OP("Col2Im", 18, 3, 3, op_col2im),
                              ONNX_SIZED_MICROSOFT("FusedConv", 2, 4, op_fused_conv),
                              ONNX_SIZED("GlobalAveragePool", 1, 1, 1, op_global_average),
                              ONNX_SIZED("GlobalMaxPool", 1, 1, 1, op_global_max),
                              ONNX_SIZED("BatchNormalization", 1, 5, 5, op_batch_norm),
                              ONNX_SIZED("InstanceNormalization", 1, 3, 3, op_instance_norm),
                              ONNX_SIZED("LayerNormalization", 1, 2, 3, op_layer_norm),
                              ONNX_SIZED("RMSNormalization", 23, 2, 2, op_rms_norm),
                              ONNX_SIZED_BOTH("SimplifiedLayerNormalization", 1, 2, 2, op_rms_norm),
                              ONNX_SIZED("GroupNormalization", 18, 3, 3, op_group_norm),
                              ONNX_SIZED("MeanVarianceNormalization", 9, 1, 1, op_mvn),
                              ONNX_SIZED("LRN", 1, 1, 1, op_lrn),
                              ONNX_SIZED("Dropout", 1, 1, 3, op_dropout),
                              ONNX_SIZED("Resize", 10, 1, 4, onnx_resize),
                              ONNX_SIZED("Upsample", 7, 1, 2, onnx_resize),
                              ONNX_SIZED_BOTH("QuantizeLinear", 10, 2, 3, op_quantize),
                              ONNX_SIZED_BOTH("DequantizeLinear", 10, 2, 3, op_dequantize),
                              ONNX_SIZED("DynamicQuantizeLinear", 11, 1, 1, op_dynamic_quantize),
                              ONNX_SIZED("MatMulInteger", 10, 2, 4, op_matmul_integer),
                              ONNX_SIZED("ConvInteger", 10, 2, 4, op_conv_integer),
                              ONNX_SIZED("QLinearMatMul", 10, 8, 8, op_qlinear_matmul),
                              ONNX_SIZED("QLinearConv", 10, 8, 9, op_qlinear_conv),
                              {0}};
