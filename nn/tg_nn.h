/* tg_nn.h: layers and optimisers, built on tg.h alone. A layer is a plain struct of kept parameters that
 * require gradients; make it with its _new (parameters NULL and an error in the context when it fails), run
 * it, collect its parameters, end it with _free. */
#ifndef TG_NN_H
#define TG_NN_H
#include "tg.h"
#ifdef __cplusplus
extern "C" {
#endif

/* weight (out, in), bias (out) or NULL */
typedef struct TgLinear {
  TgTensor *weight, *bias;
} TgLinear;

/* weight (out, in/groups, k, k) */
typedef struct TgConv2d {
  TgTensor *weight, *bias;
  TgConvOptions options;
} TgConv2d;

/* over the last axis (n) */
typedef struct TgLayerNorm {
  TgTensor *weight, *bias;
  double eps;
} TgLayerNorm;

typedef struct TgBatchNorm {
  TgTensor *weight, *bias, *running_mean, *running_var;
  double eps, momentum;
} TgBatchNorm;

/* weight (count, width) */
typedef struct TgEmbedding {
  TgTensor *weight;
} TgEmbedding;

/* Initial values are torch's: uniform within 1/sqrt(fan_in) for linear and convolution, normal for
 * embeddings. */
TG_API TgLinear tg_linear_new(TgContext *ctx, int64_t in, int64_t out, bool bias);
TG_API TgTensor *tg_linear_run(const TgLinear *l, TgTensor *x); /* (.., in) -> (.., out) */
TG_API void tg_linear_free(TgLinear *l);
/* options: NULL or stride, padding, dilation, groups (its bias is ignored). */
TG_API TgConv2d tg_conv2d_new(TgContext *ctx, int64_t in, int64_t out, int64_t kernel, bool bias,
                              const TgConvOptions *options);
TG_API TgTensor *tg_conv2d_run(const TgConv2d *l, TgTensor *x); /* (b, in, h, w) -> (b, out, oh, ow) */
TG_API void tg_conv2d_free(TgConv2d *l);
TG_API TgLayerNorm tg_layer_norm_new(TgContext *ctx, int64_t n, double eps); /* eps 0: 1e-5 */
TG_API TgTensor *tg_layer_norm_run(const TgLayerNorm *l, TgTensor *x);
TG_API void tg_layer_norm_free(TgLayerNorm *l);
TG_API TgBatchNorm tg_batch_norm_new(TgContext *ctx, int64_t channels);
/* by tg_training(ctx): batch or running statistics */
TG_API TgTensor *tg_batch_norm_run(const TgBatchNorm *l, TgTensor *x);
TG_API void tg_batch_norm_free(TgBatchNorm *l);
TG_API TgEmbedding tg_embedding_new(TgContext *ctx, int64_t count, int64_t width);
TG_API TgTensor *tg_embedding_run(const TgEmbedding *l, TgTensor *index); /* integers (..) -> (.., width) */
TG_API void tg_embedding_free(TgEmbedding *l);

/* ---- parameters and statistics by torch's names, into a state dictionary of tg_io.h: prefix "l1" gives
 * l1.weight, l1.bias. prefix may be "". */
typedef struct TgState TgState;
TG_API TgStatus tg_linear_state(const TgLinear *l, TgState *s, const char *prefix);
TG_API TgStatus tg_conv2d_state(const TgConv2d *l, TgState *s, const char *prefix);
TG_API TgStatus tg_layer_norm_state(const TgLayerNorm *l, TgState *s, const char *prefix);
/* running_mean and running_var too */
TG_API TgStatus tg_batch_norm_state(const TgBatchNorm *l, TgState *s, const char *prefix);
TG_API TgStatus tg_embedding_state(const TgEmbedding *l, TgState *s, const char *prefix);

/* ---- optimisers. They hold the parameters (not owned), make them require gradients, and keep their state in
 * place. A parameter given twice, as tied weights are, is one: it keeps its first place. TG_ERR_VALUE: one is
 * NULL or of another context. */
typedef struct TgOptim TgOptim;

typedef struct TgOptimOptions {
  size_t size;
  double lr, momentum, weight_decay, beta1, beta2, eps;
  bool nesterov;
  int end_;
} TgOptimOptions;

/* [options] .lr (0.001) .momentum .nesterov .weight_decay */
TG_API TgOptim *tg_sgd_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.001) .beta1 (0.9) .beta2 (0.999) .eps (1e-8) .weight_decay (0): L2 decay */
TG_API TgOptim *tg_adam_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.001) .beta1 (0.9) .beta2 (0.999) .eps (1e-8) .weight_decay (0.01; negative: none):
 * decoupled decay */
TG_API TgOptim *tg_adamw_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* Updates each parameter that has a gradient, and computes that, the state and the losses of tg_backward in
 * one schedule. The gradients are used up: tg_grad is NULL afterwards. */
TG_API TgStatus tg_optim_step(TgOptim *opt);
TG_API void tg_optim_zero_grad(TgOptim *opt);
/* What a step remembers, into a state dictionary, to be read, saved (tg_safe_save) and loaded (tg_load_state)
 * like a model's; the optimiser goes on from what was loaded. Of the i-th parameter, by torch's names:
 * state.i.momentum_buffer (SGD with momentum), state.i.exp_avg and state.i.exp_avg_sq (Adam, AdamW, which
 * have beta1_power and beta2_power too: beta^steps). The learning rate is not among them. s must not outlive
 * opt. */
TG_API TgStatus tg_optim_state(TgOptim *opt, TgState *s, const char *prefix);
TG_API TgStatus tg_optim_set_lr(TgOptim *opt, double lr); /* no kernel changes */
TG_API double tg_optim_lr(const TgOptim *opt);
TG_API void tg_optim_free(TgOptim *opt); /* before tg_close; NULL is fine */
#ifndef __cplusplus
#define tg_sgd(...)   TG_OPT3_(tg_sgd_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_adam(...)  TG_OPT3_(tg_adam_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_adamw(...) TG_OPT3_(tg_adamw_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#else
}
#endif
#endif
