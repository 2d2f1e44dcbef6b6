/* layers.c: parameters with torch's initial values, and the call that runs them. */
#include "tg_nn.h"
#include <math.h>
#include <string.h>

static TgTensor *param(TgTensor *t) { return tg_keep(tg_requires_grad(t, true)); }

static void drop(TgTensor **t) {
  tg_release(*t);
  *t = NULL;
}

static TgTensor *within(TgContext *ctx, int n, const int64_t *dims, int64_t fan_in) {
  double bound = 1 / sqrt(fan_in > 0 ? (double)fan_in : 1);
  return param(tg_uniform(ctx, n, dims, -bound, bound));
}

TgLinear tg_linear_new(TgContext *ctx, int64_t in, int64_t out, bool bias) {
  return (TgLinear){within(ctx, TG_SHAPE(out, in), in), bias ? within(ctx, TG_SHAPE(out), in) : NULL};
}

TgTensor *tg_linear_run(const TgLinear *l, TgTensor *x) { return tg_linear(x, l->weight, l->bias); }

void tg_linear_free(TgLinear *l) { drop(&l->weight), drop(&l->bias); }

TgConv2d tg_conv2d_new(TgContext *ctx, int64_t in, int64_t out, int64_t kernel, bool bias,
                       const TgConvOptions *options) {
  TgConv2d l = {0};
  if (options)
    memcpy(&l.options, options, options->size < sizeof l.options ? options->size : sizeof l.options);
  l.options.size = sizeof l.options;
  int64_t per = in / (l.options.groups > 0 ? l.options.groups : 1), fan = per * kernel * kernel;
  l.weight = within(ctx, TG_SHAPE(out, per, kernel, kernel), fan);
  l.options.bias = l.bias = bias ? within(ctx, TG_SHAPE(out), fan) : NULL;
  return l;
}

TgTensor *tg_conv2d_run(const TgConv2d *l, TgTensor *x) { return tg_conv2d_opt(x, l->weight, &l->options); }

void tg_conv2d_free(TgConv2d *l) { drop(&l->weight), drop(&l->bias), l->options.bias = NULL; }

TgLayerNorm tg_layer_norm_new(TgContext *ctx, int64_t n, double eps) {
  return (TgLayerNorm){param(tg_ones(ctx, TG_SHAPE(n))), param(tg_zeros(ctx, TG_SHAPE(n))), eps};
}

TgTensor *tg_layer_norm_run(const TgLayerNorm *l, TgTensor *x) {
  return tg_layer_norm(x, .weight = l->weight, .bias = l->bias, .eps = l->eps);
}

void tg_layer_norm_free(TgLayerNorm *l) { drop(&l->weight), drop(&l->bias); }

TgBatchNorm tg_batch_norm_new(TgContext *ctx, int64_t c) {
  TgBatchNorm l = {
      param(tg_ones(ctx, TG_SHAPE(c))), param(tg_zeros(ctx, TG_SHAPE(c))), NULL, NULL, 1e-5, 0.1};
  l.running_mean = tg_keep(tg_zeros(ctx, TG_SHAPE(c))), l.running_var = tg_keep(tg_ones(ctx, TG_SHAPE(c)));
  return l;
}

TgTensor *tg_batch_norm_run(const TgBatchNorm *l, TgTensor *x) {
  TgNormOptions o = {
      .size = sizeof o, .weight = l->weight, .bias = l->bias, .eps = l->eps, .momentum = l->momentum};
  return tg_training(tg_context(x)) ? tg_batch_norm_train_opt(x, l->running_mean, l->running_var, &o)
                                    : tg_batch_norm_opt(x, l->running_mean, l->running_var, &o);
}

void tg_batch_norm_free(TgBatchNorm *l) {
  drop(&l->weight), drop(&l->bias), drop(&l->running_mean), drop(&l->running_var);
}

TgEmbedding tg_embedding_new(TgContext *ctx, int64_t count, int64_t width) {
  return (TgEmbedding){param(tg_randn(ctx, TG_SHAPE(count, width)))};
}

TgTensor *tg_embedding_run(const TgEmbedding *l, TgTensor *index) { return tg_embedding(l->weight, index); }

void tg_embedding_free(TgEmbedding *l) { drop(&l->weight); }
