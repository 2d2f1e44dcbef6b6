/* layers.c: layers. Each has its initial values, the call that runs it, and the table of its tensors. In:
 * sizes. Out: structs of kept tensors. What all layers need (state, release, text) is derived by module.c
 * from the tables at the end of each part. */
#include "nn_private.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Reads the options of a layer that begins as l. If they are refused, the layer is returned as it is. */
#define OPTIONS(ctx, name, o, given, l)                                                                      \
  TgLayerOptions o;                                                                                          \
  if (NN_OPTIONS(ctx, name, TgLayerOptions, &o, given)) return l

TgTensor *nn_parameter(TgTensor *t) { return tg_keep(tg_requires_grad(t, true)); }

TgTensor *nn_uniform(TgContext *ctx, int n, const int64_t *dims, double bound) {
  TgTensor *t = NULL;
  TG_SCOPE(ctx) { t = nn_parameter(tg_uniform(ctx, n, dims, -bound, bound)); }
  return t;
}

TgTensor *nn_within(TgContext *ctx, int n, const int64_t *dims, int64_t fan_in) {
  return nn_uniform(ctx, n, dims, 1 / sqrt(fan_in > 0 ? (double)fan_in : 1));
}

static TgTensor *ones(TgContext *ctx, bool wanted, int n, const int64_t *dims) {
  return wanted ? nn_parameter(tg_ones(ctx, n, dims)) : NULL;
}

TgTensor *nn_zeros(TgContext *ctx, bool wanted, int n, const int64_t *dims) {
  return wanted ? nn_parameter(tg_zeros(ctx, n, dims)) : NULL;
}

bool nn_refuse(TgContext *ctx, TgStatus status, const char *form, const char *layer, int64_t a, int64_t b) {
  char text[200];
  snprintf(text, sizeof text, form, layer, (long long)a, (long long)b);
  tg_set_error(ctx, status, text);
  return false;
}

bool nn_positive(TgContext *ctx, const char *layer, int64_t a, int64_t b) {
  if (a > 0 && b > 0) return true;
  return nn_refuse(ctx, TG_ERR_SHAPE, "%s: sizes must be positive, not %lld and %lld", layer, a, b);
}

const char *nn_truth(bool b) { return b ? "True" : "False"; }

void nn_text(char *to, size_t cap, int *n, const char *form, ...) {
  size_t at = (size_t)*n < cap ? (size_t)*n : cap;
  va_list ap;
  va_start(ap, form);
  int k = vsnprintf(to ? to + at : NULL, to ? cap - at : 0, form, ap);
  va_end(ap);
  if (k > 0) *n += k;
}

/* ---- linear */
TgLinear tg_linear_new(TgContext *ctx, int64_t in, int64_t out, bool bias) {
  if (!ctx || !nn_positive(ctx, "linear", in, out)) return (TgLinear){0};
  TgTensor *weight = nn_within(ctx, TG_SHAPE(out, in), in);
  return (TgLinear){weight, bias ? nn_within(ctx, TG_SHAPE(out), in) : NULL};
}

static TgTensor *linear_run(const TgLinear *l, TgTensor *x) { return tg_linear(x, l->weight, l->bias); }

NAMED_RUN(TgLinear, linear, "Linear")

static int linear_describe(const void *layer, char *text, size_t cap) {
  const TgLinear *l = layer;
  return snprintf(text, cap, "in_features=%lld, out_features=%lld, bias=%s", (long long)tg_dim(l->weight, 1),
                  (long long)tg_dim(l->weight, 0), nn_truth(l->bias));
}

LAYER(TgLinear, linear, "Linear", TG_PARAMETER(TgLinear, weight), TG_PARAMETER(TgLinear, bias))

/* ---- convolutions: the weight is (first, second, k..) */
static TgTensor *kernel_new(TgContext *ctx, const char *name, int64_t first, int64_t second, int axes,
                            const int64_t *kernel, int64_t fan_in) {
  int64_t dims[2 + TG_MAX_SPATIAL] = {first, second};
  if (axes < 1 || axes > TG_MAX_SPATIAL || !kernel) {
    nn_refuse(ctx, TG_ERR_SHAPE, "%s: %lld axes, not 1 to %lld", name, axes, TG_MAX_SPATIAL);
    return NULL;
  }
  for (int i = 0; i < axes; i++) {
    if (!nn_positive(ctx, name, kernel[i], kernel[i]) || kernel[i] > INT32_MAX) return NULL;
    dims[2 + i] = kernel[i];
    fan_in *= kernel[i];
  }
  return nn_within(ctx, 2 + axes, dims, fan_in);
}

static bool groups_fit(TgContext *ctx, const char *name, int64_t in, int64_t out, int64_t groups) {
  if (!nn_positive(ctx, name, in, out)) return false;
  if (groups > 0 && in % groups == 0 && out % groups == 0) return true;
  return nn_refuse(ctx, TG_ERR_SHAPE, "%s: %lld channels in groups of %lld", name,
                   groups > 0 && in % groups == 0 ? out : in, groups);
}

static TgTensor *bias_new(TgContext *ctx, TgTensor *weight, int64_t out, int64_t inputs) {
  int64_t fan_in = inputs;
  for (int i = 2; i < tg_ndim(weight); i++)
    fan_in *= tg_dim(weight, i);
  return weight ? nn_within(ctx, TG_SHAPE(out), fan_in) : NULL;
}

/* Reads the layer's own options. They hold the resolved values and no `set`, because that text belongs to the
 * caller. */
static bool conv_options(TgContext *ctx, const char *name, const TgConvOptions *given, TgConvOptions *o) {
  if (NN_OPTIONS(ctx, name, TgConvOptions, o, given)) return false;
  o->groups = TG_OPTION(*o, groups, 1);
  o->bias = NULL;
  o->set = NULL;
  return true;
}

TgConv2d tg_conv_new(TgContext *ctx, int64_t in, int64_t out, int axes, const int64_t *kernel, bool bias,
                     const TgConvOptions *options) {
  TgConv2d l = {0};
  if (!conv_options(ctx, "conv_new", options, &l.options) || !ctx ||
      !groups_fit(ctx, "conv", in, out, l.options.groups))
    return l;
  int64_t inputs = in / l.options.groups;
  l.weight = kernel_new(ctx, "conv", out, inputs, axes, kernel, inputs);
  if (bias) l.bias = bias_new(ctx, l.weight, out, inputs);
  return l;
}

TgConv2d tg_conv2d_new(TgContext *ctx, int64_t in, int64_t out, int64_t kernel, bool bias,
                       const TgConvOptions *options) {
  return tg_conv_new(ctx, in, out, 2, (const int64_t[]){kernel, kernel}, bias, options);
}

TgConv2d tg_conv1d_new(TgContext *ctx, int64_t in, int64_t out, int64_t kernel, bool bias,
                       const TgConvOptions *options) {
  return tg_conv_new(ctx, in, out, 1, &kernel, bias, options);
}

static int64_t size_at(const TgSizes *s, int axis, int64_t otherwise) {
  return s->n == 0 ? otherwise : s->v[s->n == 1 ? 0 : axis];
}

TgStatus tg_conv2d_same(TgConv2d *l) {
  int axes = l ? tg_ndim(l->weight) - 2 : 0;
  if (axes < 1) return TG_ERR_VALUE;
  TgSizes pads = {.n = 2 * axes};
  for (int a = 0; a < axes; a++) {
    int64_t stride = size_at(&l->options.stride, a, 1);
    int64_t all = size_at(&l->options.dilation, a, 1) * (tg_dim(l->weight, 2 + a) - 1);
    if (stride != 1) {
      nn_refuse(tg_context(l->weight), TG_ERR_VALUE,
                "%s: padding that keeps the size needs stride 1, not %lld", "conv", stride, 0);
      return TG_ERR_VALUE;
    }
    int at = 2 * (axes - 1 - a); /* the last axis comes first */
    pads.v[at] = all / 2;
    pads.v[at + 1] = all - all / 2;
  }
  l->options.padding = pads;
  return TG_OK;
}

static TgTensor *conv2d_run(const TgConv2d *l, TgTensor *x) {
  TgConvOptions o = l->options;
  o.size = sizeof o;
  o.set = NULL;
  o.bias = l->bias; /* also for a layer that was made by hand */
  return tg_conv2d_opt(x, l->weight, &o);
}

NAMED_RUN(TgConv2d, conv2d, "Conv2d")

static void sizes_put(char *text, size_t cap, int *n, const char *name, const int64_t *v, int count) {
  nn_text(text, cap, n, "%s(", name);
  for (int i = 0; i < count; i++)
    nn_text(text, cap, n, i ? ", %lld" : "%lld", (long long)v[i]);
  nn_text(text, cap, n, count == 1 ? ",)" : ")");
}

/* Writes torch's text. The channels in and out are axes of the weight; one of the two is the number per
 * group. */
static int conv_text(const TgTensor *weight, const TgTensor *bias, const TgConvOptions *o, bool transposed,
                     char *text, size_t cap) {
  int axes = tg_ndim(weight) - 2, n = 0;
  int64_t in = tg_dim(weight, !transposed), out = tg_dim(weight, transposed);
  int64_t stride[TG_MAX_SPATIAL];
  if (axes < 1) return 0;
  *(transposed ? &out : &in) *= o->groups;
  for (int i = 0; i < axes; i++)
    stride[i] = size_at(&o->stride, i, 1);
  nn_text(text, cap, &n, "%lld, %lld", (long long)in, (long long)out);
  sizes_put(text, cap, &n, ", kernel_size=", tg_shape(weight) + 2, axes);
  sizes_put(text, cap, &n, ", stride=", stride, axes);
  if (o->padding.n) sizes_put(text, cap, &n, ", padding=", o->padding.v, o->padding.n);
  if (o->dilation.n) sizes_put(text, cap, &n, ", dilation=", o->dilation.v, o->dilation.n);
  if (o->groups != 1) nn_text(text, cap, &n, ", groups=%lld", (long long)o->groups);
  if (!bias) nn_text(text, cap, &n, ", bias=False");
  return n;
}

static int conv2d_describe(const void *layer, char *text, size_t cap) {
  const TgConv2d *l = layer;
  return conv_text(l->weight, l->bias, &l->options, false, text, cap);
}

LAYER(TgConv2d, conv2d, "Conv", TG_PARAMETER(TgConv2d, weight), TG_PARAMETER(TgConv2d, bias))

static TgConvTranspose2d transposed_new(TgContext *ctx, int64_t in, int64_t out, int axes, int64_t kernel,
                                        bool bias, const TgConvOptions *options) {
  TgConvTranspose2d l = {0};
  if (!conv_options(ctx, "conv_transpose_new", options, &l.options) || !ctx ||
      !groups_fit(ctx, "conv_transpose", in, out, l.options.groups))
    return l;
  int64_t sizes[TG_MAX_SPATIAL] = {kernel, kernel, kernel, kernel}, outputs = out / l.options.groups;
  l.weight = kernel_new(ctx, "conv_transpose", in, outputs, axes, sizes, outputs);
  if (bias) l.bias = bias_new(ctx, l.weight, out, outputs);
  return l;
}

TgConvTranspose2d tg_conv_transpose2d_new(TgContext *ctx, int64_t in, int64_t out, int64_t kernel, bool bias,
                                          const TgConvOptions *options) {
  return transposed_new(ctx, in, out, 2, kernel, bias, options);
}

TgConvTranspose2d tg_conv_transpose1d_new(TgContext *ctx, int64_t in, int64_t out, int64_t kernel, bool bias,
                                          const TgConvOptions *options) {
  return transposed_new(ctx, in, out, 1, kernel, bias, options);
}

static TgTensor *conv_transpose2d_run(const TgConvTranspose2d *l, TgTensor *x) {
  TgConvOptions o = l->options;
  o.size = sizeof o;
  o.set = NULL;
  o.bias = l->bias; /* also for a layer that was made by hand */
  return tg_conv_transpose2d_opt(x, l->weight, &o);
}

NAMED_RUN(TgConvTranspose2d, conv_transpose2d, "ConvTranspose2d")

static int conv_transpose2d_describe(const void *layer, char *text, size_t cap) {
  const TgConvTranspose2d *l = layer;
  return conv_text(l->weight, l->bias, &l->options, true, text, cap);
}

LAYER(TgConvTranspose2d, conv_transpose2d, "ConvTranspose", TG_PARAMETER(TgConvTranspose2d, weight),
      TG_PARAMETER(TgConvTranspose2d, bias))

/* ---- norms */
/* Reshapes (c) to (1, c, 1, ..), so that it fits the channels of x (b, c, ..). */
static TgTensor *by_channel(TgTensor *v, TgTensor *x) {
  int64_t dims[TG_MAX_RANK] = {1, tg_numel(v)};
  for (int i = 2; i < tg_ndim(x); i++)
    dims[i] = 1;
  return tg_reshape(v, tg_ndim(x), dims);
}

static TgTensor *channel_affine(TgTensor *y, TgTensor *weight, TgTensor *bias) {
  if (weight) y = tg_mul(y, by_channel(weight, y));
  return bias ? tg_add(y, by_channel(bias, y)) : y;
}

static bool has_channels(const char *name, TgTensor *x, int64_t channels) {
  if (!x) return false;
  if (tg_ndim(x) >= 2 && tg_dim(x, 1) == channels) return true;
  return nn_refuse(tg_context(x), TG_ERR_SHAPE, "%s: %lld channels, not %lld", name, tg_dim(x, 1), channels);
}

TgLayerNorm tg_layer_norm_new_opt(TgContext *ctx, int ndim, const int64_t *dims,
                                  const TgLayerOptions *given) {
  TgLayerNorm l = {0};
  OPTIONS(ctx, "layer_norm_new", o, given, l);
  l = (TgLayerNorm){.eps = TG_OPTION(o, eps, 1e-5)};
  if (!ctx) return l;
  if (ndim < 1 || ndim > (int)(sizeof l.shape / sizeof *l.shape) || !dims) {
    nn_refuse(ctx, TG_ERR_SHAPE, "%s: %lld axes, not 1 to %lld", "layer_norm", ndim, 4);
    return l;
  }
  for (int i = 0; i < ndim; i++)
    if (!nn_positive(ctx, "layer_norm", dims[i], dims[i])) return l;
  memcpy(l.shape, dims, (size_t)ndim * sizeof *dims);
  l.dims = ndim;
  l.weight = ones(ctx, !o.plain, ndim, dims);
  l.bias = nn_zeros(ctx, !o.plain, ndim, dims);
  return l;
}

static TgTensor *layer_norm_run(const TgLayerNorm *l, TgTensor *x) {
  for (int i = 0; x && i < l->dims; i++)
    if (tg_dim(x, i - l->dims) != l->shape[i]) {
      nn_refuse(tg_context(x), TG_ERR_SHAPE, "%s: a trailing size of %lld, not %lld", "layer_norm",
                tg_dim(x, i - l->dims), l->shape[i]);
      return NULL;
    }
  return tg_layer_norm(x, .weight = l->weight, .bias = l->bias, .eps = l->eps, .dims = l->dims);
}

NAMED_RUN(TgLayerNorm, layer_norm, "LayerNorm")

static int layer_norm_describe(const void *layer, char *text, size_t cap) {
  const TgLayerNorm *l = layer;
  int n = 0;
  sizes_put(text, cap, &n, "", l->shape, l->dims);
  nn_text(text, cap, &n, ", eps=%g, elementwise_affine=%s", l->eps, nn_truth(l->weight));
  return n;
}

LAYER(TgLayerNorm, layer_norm, "LayerNorm", TG_PARAMETER(TgLayerNorm, weight),
      TG_PARAMETER(TgLayerNorm, bias))

TgLayerNorm2d tg_layer_norm2d_new_opt(TgContext *ctx, int64_t channels, const TgLayerOptions *given) {
  TgLayerNorm2d l = {0};
  OPTIONS(ctx, "layer_norm2d_new", o, given, l);
  l = (TgLayerNorm2d){.eps = TG_OPTION(o, eps, 1e-5), .channels = channels};
  if (!ctx || !nn_positive(ctx, "layer_norm2d", channels, channels)) return l;
  l.weight = ones(ctx, !o.plain, TG_SHAPE(channels));
  l.bias = nn_zeros(ctx, !o.plain, TG_SHAPE(channels));
  return l;
}

static TgTensor *layer_norm2d_run(const TgLayerNorm2d *l, TgTensor *x) {
  if (!has_channels("layer_norm2d", x, l->channels)) return NULL;
  int64_t there[TG_MAX_RANK] = {0}, back[TG_MAX_RANK] = {0, tg_ndim(x) - 1};
  for (int i = 1; i < tg_ndim(x); i++)
    there[i] = i + 1;
  there[tg_ndim(x) - 1] = 1; /* (b, .., channels) */
  for (int i = 2; i < tg_ndim(x); i++)
    back[i] = i - 1;
  TgTensor *y = tg_layer_norm(tg_permute(x, tg_ndim(x), there), .weight = l->weight, .bias = l->bias,
                              .eps = l->eps, .dims = 1);
  return tg_permute(y, tg_ndim(x), back);
}

NAMED_RUN(TgLayerNorm2d, layer_norm2d, "LayerNorm2d")

static int layer_norm2d_describe(const void *layer, char *text, size_t cap) {
  const TgLayerNorm2d *l = layer;
  return snprintf(text, cap, "%lld, eps=%g, affine=%s", (long long)l->channels, l->eps, nn_truth(l->weight));
}

LAYER(TgLayerNorm2d, layer_norm2d, "LayerNorm2d", TG_PARAMETER(TgLayerNorm2d, weight),
      TG_PARAMETER(TgLayerNorm2d, bias))

TgGroupNorm tg_group_norm_new_opt(TgContext *ctx, int64_t groups, int64_t channels,
                                  const TgLayerOptions *given) {
  TgGroupNorm l = {0};
  OPTIONS(ctx, "group_norm_new", o, given, l);
  l = (TgGroupNorm){.eps = TG_OPTION(o, eps, 1e-5), .groups = groups, .channels = channels};
  if (!ctx || !nn_positive(ctx, "group_norm", groups, channels)) return l;
  if (channels % groups) {
    nn_refuse(ctx, TG_ERR_VALUE, "%s: %lld channels in %lld groups", "group_norm", channels, groups);
    return l;
  }
  l.weight = ones(ctx, !o.plain, TG_SHAPE(channels));
  l.bias = nn_zeros(ctx, !o.plain, TG_SHAPE(channels));
  return l;
}

TgGroupNorm tg_instance_norm_new_opt(TgContext *ctx, int64_t channels, const TgLayerOptions *o) {
  return tg_group_norm_new_opt(ctx, channels, channels, o);
}

static TgTensor *group_norm_run(const TgGroupNorm *l, TgTensor *x) {
  if (!has_channels("group_norm", x, l->channels)) return NULL;
  int64_t d[TG_MAX_RANK];
  for (int i = 0; i < tg_ndim(x); i++)
    d[i] = tg_size_of(x, i);
  TgTensor *y = tg_layer_norm(tg_reshape(x, TG_SHAPE(d[0], l->groups, -1)), .eps = l->eps, .dims = 1);
  return channel_affine(tg_reshape(y, tg_ndim(x), d), l->weight, l->bias);
}

NAMED_RUN(TgGroupNorm, group_norm, "GroupNorm")

static int group_norm_describe(const void *layer, char *text, size_t cap) {
  const TgGroupNorm *l = layer;
  return snprintf(text, cap, "%lld, %lld, eps=%g, affine=%s", (long long)l->groups, (long long)l->channels,
                  l->eps, nn_truth(l->weight));
}

LAYER(TgGroupNorm, group_norm, "GroupNorm", TG_PARAMETER(TgGroupNorm, weight),
      TG_PARAMETER(TgGroupNorm, bias))

TgRMSNorm tg_rms_norm_new_opt(TgContext *ctx, int64_t dim, const TgLayerOptions *given) {
  TgRMSNorm l = {0};
  OPTIONS(ctx, "rms_norm_new", o, given, l);
  l = (TgRMSNorm){.eps = TG_OPTION(o, eps, 1e-6), .dim = dim};
  if (ctx && nn_positive(ctx, "rms_norm", dim, dim)) l.weight = ones(ctx, !o.plain, TG_SHAPE(dim));
  return l;
}

static TgTensor *rms_norm_run(const TgRMSNorm *l, TgTensor *x) {
  TgTensor *y = tg_rms_norm(x, .eps = l->eps);
  return l->weight ? tg_mul(y, l->weight) : y;
}

NAMED_RUN(TgRMSNorm, rms_norm, "RMSNorm")

static int rms_norm_describe(const void *layer, char *text, size_t cap) {
  const TgRMSNorm *l = layer;
  return snprintf(text, cap, "(%lld,), eps=%g, elementwise_affine=%s", (long long)l->dim, l->eps,
                  nn_truth(l->weight));
}

LAYER(TgRMSNorm, rms_norm, "RMSNorm", TG_PARAMETER(TgRMSNorm, weight))

TgBatchNorm tg_batch_norm_new_opt(TgContext *ctx, int64_t channels, const TgLayerOptions *given) {
  TgBatchNorm l = {0};
  OPTIONS(ctx, "batch_norm_new", o, given, l);
  l = (TgBatchNorm){.eps = TG_OPTION(o, eps, 1e-5), .momentum = TG_OPTION(o, momentum, 0.1)};
  l.channels = channels;
  if (!ctx || !nn_positive(ctx, "batch_norm", channels, channels)) return l;
  l.weight = ones(ctx, !o.plain, TG_SHAPE(channels));
  l.bias = nn_zeros(ctx, !o.plain, TG_SHAPE(channels));
  if (o.untracked) return l;
  int64_t none = 0;
  l.running_mean = tg_keep(tg_zeros(ctx, TG_SHAPE(channels)));
  l.running_var = tg_keep(tg_ones(ctx, TG_SHAPE(channels)));
  if (o.counted) l.num_batches_tracked = tg_keep(tg_from(ctx, &none, TG_I64, TG_SCALAR));
  return l;
}

/* If no running statistics are kept, the statistics of the batch are used outside of training too. */
static TgTensor *batch_norm_run(const TgBatchNorm *l, TgTensor *x) {
  TgNormOptions o = {.size = sizeof o,
                     .set = ".eps,.momentum",
                     .weight = l->weight,
                     .bias = l->bias,
                     .eps = l->eps,
                     .momentum = l->momentum};
  if (!has_channels("batch_norm", x, l->channels)) return NULL;
  TgDType d = tg_dtype(x);
  bool training = !l->running_mean || tg_training(tg_context(x));
  TgTensor *y = training ? tg_batch_norm_train_opt(x, l->running_mean, l->running_var, &o)
                         : tg_batch_norm_opt(x, l->running_mean, l->running_var, &o);
  /* The statistics are wider than the values, so the result may be too. */
  if (y && tg_dtype(y) != d) y = tg_cast(y, d);
  if (!training) return y;
  TgTensor *count = l->num_batches_tracked;
  if (y && count && !tg_assign(count, tg_add_scalar(count, 1))) return NULL;
  return y;
}

NAMED_RUN(TgBatchNorm, batch_norm, "BatchNorm")

static int batch_norm_describe(const void *layer, char *text, size_t cap) {
  const TgBatchNorm *l = layer;
  return snprintf(text, cap, "%lld, eps=%g, momentum=%g, affine=%s, track_running_stats=%s",
                  (long long)l->channels, l->eps, l->momentum, nn_truth(l->weight),
                  nn_truth(l->running_mean));
}

LAYER(TgBatchNorm, batch_norm, "BatchNorm", TG_PARAMETER(TgBatchNorm, weight),
      TG_PARAMETER(TgBatchNorm, bias), TG_BUFFER(TgBatchNorm, running_mean),
      TG_BUFFER(TgBatchNorm, running_var), TG_BUFFER(TgBatchNorm, num_batches_tracked))

/* ---- embedding */
TgEmbedding tg_embedding_new(TgContext *ctx, int64_t count, int64_t width) {
  if (!ctx || !nn_positive(ctx, "embedding", count, width)) return (TgEmbedding){0};
  TgEmbedding l = {NULL};
  TG_SCOPE(ctx) { l.weight = nn_parameter(tg_randn(ctx, TG_SHAPE(count, width))); }
  return l;
}

static TgTensor *embedding_run(const TgEmbedding *l, TgTensor *index) {
  return tg_embedding(l->weight, index);
}

NAMED_RUN(TgEmbedding, embedding, "Embedding")

static int embedding_describe(const void *layer, char *text, size_t cap) {
  const TgEmbedding *l = layer;
  return snprintf(text, cap, "%lld, %lld", (long long)tg_dim(l->weight, 0), (long long)tg_dim(l->weight, 1));
}

LAYER(TgEmbedding, embedding, "Embedding", TG_PARAMETER(TgEmbedding, weight))

/* ---- LSTM cell */
TgLSTMCell tg_lstm_cell_new(TgContext *ctx, int64_t in, int64_t hidden, bool bias) {
  TgLSTMCell l = {0};
  if (!ctx || !nn_positive(ctx, "lstm_cell", in, hidden)) return l;
  if (hidden > INT64_MAX / 8) {
    nn_refuse(ctx, TG_ERR_SHAPE, "%s: %lld hidden units", "lstm_cell", hidden, 0);
    return l;
  }
  l.weight_ih = nn_within(ctx, TG_SHAPE(4 * hidden, in), hidden);
  l.weight_hh = nn_within(ctx, TG_SHAPE(4 * hidden, hidden), hidden);
  if (bias) l.bias_ih = nn_within(ctx, TG_SHAPE(4 * hidden), hidden);
  if (bias) l.bias_hh = nn_within(ctx, TG_SHAPE(4 * hidden), hidden);
  return l;
}

static TgTensor *lstm_cell_run(const TgLSTMCell *l, TgTensor *x, TgTensor *h, TgTensor *c, TgTensor **new_c) {
  if (new_c) *new_c = NULL;
  if (!x || !l->weight_hh || !new_c) return NULL;
  if (!h != !c) {
    tg_set_error(tg_context(x), TG_ERR_VALUE, "lstm_cell: one of h and c is NULL");
    return NULL;
  }
  TgTensor *all = tg_linear(x, l->weight_ih, l->bias_ih), *gate[4];
  if (h)
    all = tg_add(all, tg_linear(h, l->weight_hh, l->bias_hh));
  else if (l->bias_hh)
    all = tg_add(all, l->bias_hh);
  if (!all || tg_chunk(all, -1, 4, gate, 4) != 4) return NULL;
  TgTensor *fresh = tg_mul(tg_sigmoid(gate[0]), tg_tanh(gate[2]));
  *new_c = c ? tg_add(tg_mul(tg_sigmoid(gate[1]), c), fresh) : fresh;
  return tg_mul(tg_sigmoid(gate[3]), tg_tanh(*new_c));
}

TgTensor *tg_lstm_cell_run(const TgLSTMCell *l, TgTensor *x, TgTensor *h, TgTensor *c, TgTensor **new_c) {
  if (!l) return tg_set_error(tg_context(x), TG_ERR_VALUE, "LSTMCell: the layer is NULL"), NULL;
  bool named = nn_name_begin(x, "LSTMCell");
  TgTensor *y = lstm_cell_run(l, x, h, c, new_c);
  return nn_name_end(x, named, y);
}

static int lstm_cell_describe(const void *layer, char *text, size_t cap) {
  const TgLSTMCell *l = layer;
  return snprintf(text, cap, "%lld, %lld, bias=%s", (long long)tg_dim(l->weight_ih, 1),
                  (long long)tg_dim(l->weight_hh, 1), nn_truth(l->bias_ih));
}

LAYER(TgLSTMCell, lstm_cell, "LSTMCell", TG_PARAMETER(TgLSTMCell, weight_ih),
      TG_PARAMETER(TgLSTMCell, weight_hh), TG_PARAMETER(TgLSTMCell, bias_ih),
      TG_PARAMETER(TgLSTMCell, bias_hh))
