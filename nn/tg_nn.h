/* tg_nn.h: layers, optimisers and learning-rate schedules, built on tg.h alone. A layer is a plain struct
 * of kept parameters that require gradients. Make it with its _new (if that fails, its tensors are NULL
 * and the context has an error), run it, and end it with _free. One table for each kind of layer, a
 * TgModule, says what its tensors are called, which of them are trained and how the layer prints. A
 * network of layers has such a table too, and with it a state dictionary, a list of parameters, a count,
 * freezing and a text. */
#ifndef TG_NN_H
#define TG_NN_H
#include "tg.h"
#ifdef __cplusplus
extern "C" {
#endif
/* ---- modules: what a struct of tensors is made of. Errors: TG_ERR_NOMEM, and those that each function
 * names. */
typedef enum TgFieldRole {
  TG_FIELD_PARAMETER = 0, /* a tensor that is trained */
  TG_FIELD_BUFFER,        /* a tensor that is kept with the parameters, such as running statistics */
  TG_FIELD_MODULE         /* a struct that has a table of its own */
} TgFieldRole;

typedef const struct TgModule *(*TgModuleFn)(void);
/* Writes what is printed between the layer's brackets; as snprintf. */
typedef int (*TgDescribeFn)(const void *layer, char *text, size_t cap);

/* offset: of a TgTensor *, or of the inner struct. count: 0, or the number of consecutive elements there,
 * which are called name.0, name.1, .. A tensor that is NULL is one that this layer does not have. */
typedef struct TgField {
  const char *name;
  TgFieldRole role;
  size_t offset;
  TgModuleFn module;
  int count;
} TgField;

typedef struct TgModule {
  const char *name;
  size_t nbytes;
  const TgField *fields;
  int nfields;
  TgDescribeFn describe; /* may be NULL */
} TgModule;

/* A network's table, from its struct:
 *   typedef struct Net { TgConv2d conv; TgLinear out; } Net;
 *   static const TgField fields[] = {TG_LAYER(Net, conv, tg_conv2d_module),
 *                                    TG_LAYER(Net, out, tg_linear_module)};
 *   static const TgModule net = {"Net", sizeof(Net), fields, 2, NULL};
 *   static const TgModule *net_module(void) { return &net; }
 * TG_LAYERS: an array of layers. */
#define TG_PARAMETER(T, field)                                                                               \
  { #field, TG_FIELD_PARAMETER, offsetof(T, field), NULL, 0 }
#define TG_BUFFER(T, field)                                                                                  \
  { #field, TG_FIELD_BUFFER, offsetof(T, field), NULL, 0 }
#define TG_LAYER(T, field, fn)                                                                               \
  { #field, TG_FIELD_MODULE, offsetof(T, field), fn, 0 }
#define TG_LAYERS(T, field, fn)                                                                              \
  {                                                                                                          \
#field, TG_FIELD_MODULE, offsetof(T, field), fn,                                                         \
        (int)(sizeof(((T *)0)->field) / sizeof(((T *)0)->field[0]))                                          \
  }

/* Puts parameters and buffers, under torch's names, into a state dictionary of tg_io.h: prefix "l1" gives
 * l1.weight, l1.bias; NULL or "": no prefix. TG_ERR_LIMIT: a name of more than 500 characters, or modules
 * more than 16 deep. */
TG_API TgStatus tg_module_state(TgModuleFn module, const void *layer, TgState *s, const char *prefix);
/* The parameters that require a gradient, in order. Writes at most cap and returns how many there are. */
TG_API int tg_module_parameters(TgModuleFn module, const void *layer, TgTensor **out, int cap);
TG_API int64_t tg_module_count(TgModuleFn module, const void *layer); /* elements of its parameters */
/* on: the parameters no longer require a gradient, and tg_module_parameters leaves them out; off: they
 * require one again. */
TG_API TgStatus tg_module_freeze(TgModuleFn module, const void *layer, bool on);
/* Converts the float parameters to another dtype, in memory of their own, with their values rounded. Make
 * the optimiser afterwards (with .master if they become narrower). Buffers, which are running statistics,
 * keep their dtype. A tensor that is in two fields becomes two tensors. */
TG_API TgStatus tg_module_cast(TgModuleFn module, void *layer, TgDType dtype);
/* Says which tensors of a module are split, by name (as in tg_module_state). The first rule whose pattern
 * matches applies; * in a pattern matches any characters. axis: the axis to split, as for tg_shard, or
 * TG_WHOLE. */
#define TG_WHOLE (-100) /* the whole tensor on each device */

typedef struct TgShardRule {
  const char *pattern;
  int axis;
} TgShardRule;

/* Places the module's parameters and buffers on n devices, in memory of their own. A tensor that no rule
 * matches is whole on each device. Make the optimiser afterwards. No rules, with inputs split along the
 * batch, are data parallelism. {"*.weight", 0}, {"*.bias", 0} split a linear layer by its outputs,
 * {"*.weight", 1} by its inputs. A tensor that is in two fields becomes two tensors. Errors as tg_shard. */
TG_API TgStatus tg_module_shard(TgModuleFn module, void *layer, int n, const char *const *devices,
                                const TgShardRule *rules, int nrules);
/* Prints as torch does: "Linear(in_features=3, out_features=4, bias=True)", with one line for each inner
 * layer. As snprintf: writes at most cap bytes including the final 0, and returns the length of the whole
 * text. */
TG_API int tg_module_print(TgModuleFn module, const void *layer, char *text, size_t cap);
TG_API void tg_module_free(TgModuleFn module, void *layer); /* releases its tensors and makes them NULL */

/* ---- layers. Initial values are torch's: uniform within 1/sqrt(fan_in) for linear layers and
 * convolutions, within 1/sqrt(hidden) for LSTM cells, normal for embeddings; weights of norms 1, biases 0.
 * TG_ERR_SHAPE: a size that is not positive; TG_ERR_VALUE: another invalid number. Parameters are f32, and
 * the result of a layer has the dtype that x and the parameters join to. */
typedef struct TgLayerOptions {
  size_t size;
  const char *set;
  double eps, momentum;
  bool plain, untracked, counted;
  int end_;
} TgLayerOptions;

/* weight (out, in), bias (out) or NULL */
typedef struct TgLinear {
  TgTensor *weight, *bias;
} TgLinear;

/* weight (out, in/groups, k..), one to TG_MAX_SPATIAL axes k; bias (out) or NULL */
typedef struct TgConv2d {
  TgTensor *weight, *bias;
  TgConvOptions options;
} TgConv2d;

/* weight (in, out/groups, k..), bias (out) or NULL */
typedef struct TgConvTranspose2d {
  TgTensor *weight, *bias;
  TgConvOptions options;
} TgConvTranspose2d;

/* over the last `dims` axes, whose sizes are in shape; weight and bias of that shape, or NULL */
typedef struct TgLayerNorm {
  TgTensor *weight, *bias;
  double eps;
  int dims;
  int64_t shape[4];
} TgLayerNorm;

/* over the channels of (b, channels, ..); weight and bias (channels) or NULL */
typedef struct TgLayerNorm2d {
  TgTensor *weight, *bias;
  double eps;
  int64_t channels;
} TgLayerNorm2d;

/* Over each group of channels of (b, channels, ..); an instance norm has one group per channel. weight and
 * bias (channels) or NULL */
typedef struct TgGroupNorm {
  TgTensor *weight, *bias;
  double eps;
  int64_t groups, channels;
} TgGroupNorm;

/* weight (dim) or NULL */
typedef struct TgRMSNorm {
  TgTensor *weight;
  double eps;
  int64_t dim;
} TgRMSNorm;

/* weight and bias (channels) or NULL; running_mean and running_var (channels) or NULL if they are not
 * tracked; num_batches_tracked, i64 (), or NULL */
typedef struct TgBatchNorm {
  TgTensor *weight, *bias, *running_mean, *running_var, *num_batches_tracked;
  double eps, momentum;
  int64_t channels;
} TgBatchNorm;

/* weight (count, width) */
typedef struct TgEmbedding {
  TgTensor *weight;
} TgEmbedding;

/* weight_ih (4 hidden, in), weight_hh (4 hidden, hidden), biases (4 hidden) or NULL; gates i, f, g, o */
typedef struct TgLSTMCell {
  TgTensor *weight_ih, *weight_hh, *bias_ih, *bias_hh;
} TgLSTMCell;

/* ---- networks over time, and what runs layers. In a network over a sequence, each layer runs on the
 * outputs of the layer before, in one direction or both. A _run returns the shape that its comment states
 * (for norms x's own), in the dtype that x and the parameters join to; TG_ERR_SHAPE: x does not match the
 * layer's sizes. A _new reports TG_ERR_SHAPE, TG_ERR_VALUE as above. */
#define TG_RNN_LAYERS 8 /* the most layers of one network */

/* [options] of tg_lstm_new and tg_gru_new: .layers (1) .bidirectional .plain (no biases) .batch_first (x
 * and the outputs are (b, t, ..), not (t, b, ..)) .dropout (0): of the outputs of each layer but the last,
 * in training */
typedef struct TgRnnOptions {
  size_t size;
  const char *set;
  int layers;
  bool bidirectional, plain, batch_first;
  double dropout;
  int end_;
} TgRnnOptions;

/* weight_ih (gates hidden, in) and weight_hh (gates hidden, hidden), biases (gates hidden) or NULL. An
 * LSTM has 4 gates, i, f, g, o; a GRU has 3, r, z, n. For a layer after the first, `in` is the size of the
 * outputs of the layer before. */
typedef struct TgRnnLayer {
  TgTensor *weight_ih, *weight_hh, *bias_ih, *bias_hh;
} TgRnnLayer;

/* ways[k][0]: layer k forwards; ways[k][1]: backwards, or all NULL. Names in a state dictionary are
 * torch's: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, .. */
typedef struct TgLSTM {
  TgRnnLayer ways[TG_RNN_LAYERS][2];
  TgRnnOptions options;
  int64_t in, hidden;
} TgLSTM;

typedef struct TgGRU {
  TgRnnLayer ways[TG_RNN_LAYERS][2];
  TgRnnOptions options;
  int64_t in, hidden;
} TgGRU;

/* [options] .kdim .vdim (width): widths of keys and values .plain (no biases) .batch_first (b, t, width)
 * .dropout (0) of the attention weights, in training */
typedef struct TgMultiheadOptions {
  size_t size;
  const char *set;
  int64_t kdim, vdim;
  bool plain, batch_first;
  double dropout;
  int end_;
} TgMultiheadOptions;

/* As in torch: in_proj_weight (3 width, width) or, if keys or values have another width, q_proj_weight
 * (width, width), k_proj_weight (width, kdim), v_proj_weight (width, vdim); in_proj_bias (3 width) or
 * NULL; out_proj (width, width). Tensors that are not used are NULL. */
typedef struct TgMultiheadAttention {
  TgTensor *in_proj_weight, *q_proj_weight, *k_proj_weight, *v_proj_weight, *in_proj_bias;
  TgLinear out_proj;
  TgMultiheadOptions options;
  int64_t width, heads;
} TgMultiheadAttention;

/* Options of one run. mask, (.., t, s), is added to the scores or, if it is bool, says what may be
 * attended to (true: may; torch's layer has it the other way round). causal: no step attends to later
 * steps; not together with a mask. weights: receives the attention weights (b, t, s), averaged over the
 * heads; NULL: not wanted. */
typedef struct TgMultiheadRun {
  size_t size;
  const char *set;
  TgTensor *mask;
  bool causal;
  TgTensor **weights;
  int end_;
} TgMultiheadRun;

TG_API TgLinear tg_linear_new(TgContext *ctx, int64_t in, int64_t out, bool bias);
TG_API TgTensor *tg_linear_run(const TgLinear *l, TgTensor *x); /* (.., in) -> (.., out) */
/* [options] .stride (1) .padding (0) .dilation (1) .groups (1), as tg_conv2d's (.bias is ignored), of
 * tg_conv2d_new_with(ctx, 3, 8, 3, true, .stride = TG_SIZES(2)) and so on; tg_conv2d_new takes a pointer
 * or NULL. kernel: the size along every axis. conv2d has two axes, conv1d one, conv_new as many as it is
 * given. */
TG_API TgConv2d tg_conv2d_new(TgContext *ctx, int64_t in, int64_t out, int64_t kernel, bool bias,
                              const TgConvOptions *options);
TG_API TgConv2d tg_conv1d_new(TgContext *ctx, int64_t in, int64_t out, int64_t kernel, bool bias,
                              const TgConvOptions *options);
TG_API TgConv2d tg_conv_new(TgContext *ctx, int64_t in, int64_t out, int axes, const int64_t *kernel,
                            bool bias, const TgConvOptions *options);
/* Sets the padding that keeps the sizes, torch's "same": dilation (kernel - 1) in all, the larger half at
 * the end. TG_ERR_VALUE: a stride other than 1. Returns the layer's error or TG_OK. */
TG_API TgStatus tg_conv2d_same(TgConv2d *l);
TG_API TgTensor *tg_conv2d_run(const TgConv2d *l, TgTensor *x); /* (b, in, s..) -> (b, out, o..) */
/* [options] as tg_conv2d_new's, and .output_padding (0) */
TG_API TgConvTranspose2d tg_conv_transpose2d_new(TgContext *ctx, int64_t in, int64_t out, int64_t kernel,
                                                 bool bias, const TgConvOptions *options);
TG_API TgConvTranspose2d tg_conv_transpose1d_new(TgContext *ctx, int64_t in, int64_t out, int64_t kernel,
                                                 bool bias, const TgConvOptions *options);
/* (b, in, s..) -> (b, out, o..) */
TG_API TgTensor *tg_conv_transpose2d_run(const TgConvTranspose2d *l, TgTensor *x);
/* [options] .eps (1e-5) .plain (no weight and bias). One to four trailing axes. */
TG_API TgLayerNorm tg_layer_norm_new_opt(TgContext *ctx, int ndim, const int64_t *dims,
                                         const TgLayerOptions *o);
TG_API TgTensor *tg_layer_norm_run(const TgLayerNorm *l,
                                   TgTensor *x); /* TG_ERR_SHAPE: other trailing sizes */
/* [options] .eps (1e-5) .plain */
TG_API TgLayerNorm2d tg_layer_norm2d_new_opt(TgContext *ctx, int64_t channels, const TgLayerOptions *o);
TG_API TgTensor *tg_layer_norm2d_run(const TgLayerNorm2d *l, TgTensor *x); /* (b, channels, ..) */
/* [options] .eps (1e-5) .plain. TG_ERR_VALUE: channels is not a multiple of groups */
TG_API TgGroupNorm tg_group_norm_new_opt(TgContext *ctx, int64_t groups, int64_t channels,
                                         const TgLayerOptions *o);
TG_API TgGroupNorm tg_instance_norm_new_opt(TgContext *ctx, int64_t channels, const TgLayerOptions *o);
TG_API TgTensor *tg_group_norm_run(const TgGroupNorm *l, TgTensor *x); /* (b, channels, ..) */
/* [options] .eps (1e-6) .plain. Computed in f32, cast back, then scaled. */
TG_API TgRMSNorm tg_rms_norm_new_opt(TgContext *ctx, int64_t dim, const TgLayerOptions *o);
TG_API TgTensor *tg_rms_norm_run(const TgRMSNorm *l, TgTensor *x); /* over the last axis */
/* [options] .eps (1e-5) .momentum (0.1) .plain .untracked (no running statistics) .counted
 * (num_batches_tracked too, which costs a small kernel per step; for files that need it) */
TG_API TgBatchNorm tg_batch_norm_new_opt(TgContext *ctx, int64_t channels, const TgLayerOptions *o);
/* tg_training(ctx) selects batch or running statistics; without running ones always the batch's */
TG_API TgTensor *tg_batch_norm_run(const TgBatchNorm *l, TgTensor *x);
TG_API TgEmbedding tg_embedding_new(TgContext *ctx, int64_t count, int64_t width); /* weight (count, width) */
TG_API TgTensor *tg_embedding_run(const TgEmbedding *l, TgTensor *index); /* integers (..) -> (.., width) */
/* bias: both biases or none */
TG_API TgLSTMCell tg_lstm_cell_new(TgContext *ctx, int64_t in, int64_t hidden, bool bias);
/* x (b, in); h and c (b, hidden), both NULL: zeros. *new_c receives the new cell state; returns the new
 * hidden state. */
TG_API TgTensor *tg_lstm_cell_run(const TgLSTMCell *l, TgTensor *x, TgTensor *h, TgTensor *c,
                                  TgTensor **new_c);

/* Initial values: uniform within 1/sqrt(hidden). TG_ERR_LIMIT: more than TG_RNN_LAYERS layers. */
TG_API TgLSTM tg_lstm_new_opt(TgContext *ctx, int64_t in, int64_t hidden, const TgRnnOptions *o);
/* x (t, b, in); h and c (layers * ways, b, hidden), both NULL: zeros. Returns (t, b, ways * hidden), the
 * forward outputs before the backward ones. *new_h and *new_c (either may be NULL) receive the last
 * states, shaped as h. If x has no batch, (t, in), nothing else has one. The steps are part of the graph,
 * so another t is another graph, and t may not be symbolic (TG_ERR_SHAPE). */
TG_API TgTensor *tg_lstm_run(const TgLSTM *l, TgTensor *x, TgTensor *h, TgTensor *c, TgTensor **new_h,
                             TgTensor **new_c);
/* [options] as tg_lstm_new */
TG_API TgGRU tg_gru_new_opt(TgContext *ctx, int64_t in, int64_t hidden, const TgRnnOptions *o);
/* as tg_lstm_run, without c; the reset gate is applied after the product, as in torch and cuDNN */
TG_API TgTensor *tg_gru_run(const TgGRU *l, TgTensor *x, TgTensor *h, TgTensor **new_h);
/* Initial values are torch's: in_proj uniform within sqrt(6 / (its rows + columns)), out_proj within
 * 1/sqrt(width), biases 0. TG_ERR_VALUE: width is not a multiple of heads. */
TG_API TgMultiheadAttention tg_multihead_attention_new_opt(TgContext *ctx, int64_t width, int64_t heads,
                                                           const TgMultiheadOptions *o);
/* q (t, b, width), k (s, b, kdim), v (s, b, vdim), or all without b -> (t, b, width). [options] .mask
 * .causal .weights: see TgMultiheadRun */
TG_API TgTensor *tg_multihead_attention_run_opt(const TgMultiheadAttention *l, TgTensor *q, TgTensor *k,
                                                TgTensor *v, const TgMultiheadRun *o);

/* for each layer: tg_module_free, tg_module_state, and its table */
TG_API void tg_linear_free(TgLinear *l);
TG_API void tg_conv2d_free(TgConv2d *l);
TG_API void tg_conv_transpose2d_free(TgConvTranspose2d *l);
TG_API void tg_layer_norm_free(TgLayerNorm *l);
TG_API void tg_layer_norm2d_free(TgLayerNorm2d *l);
TG_API void tg_group_norm_free(TgGroupNorm *l);
TG_API void tg_rms_norm_free(TgRMSNorm *l);
TG_API void tg_batch_norm_free(TgBatchNorm *l);
TG_API void tg_embedding_free(TgEmbedding *l);
TG_API void tg_lstm_cell_free(TgLSTMCell *l);
TG_API void tg_lstm_free(TgLSTM *l);
TG_API void tg_gru_free(TgGRU *l);
TG_API void tg_multihead_attention_free(TgMultiheadAttention *l);
TG_API TgStatus tg_linear_state(const TgLinear *l, TgState *s, const char *prefix);
TG_API TgStatus tg_conv2d_state(const TgConv2d *l, TgState *s, const char *prefix);
TG_API TgStatus tg_conv_transpose2d_state(const TgConvTranspose2d *l, TgState *s, const char *prefix);
TG_API TgStatus tg_layer_norm_state(const TgLayerNorm *l, TgState *s, const char *prefix);
TG_API TgStatus tg_layer_norm2d_state(const TgLayerNorm2d *l, TgState *s, const char *prefix);
TG_API TgStatus tg_group_norm_state(const TgGroupNorm *l, TgState *s, const char *prefix);
TG_API TgStatus tg_rms_norm_state(const TgRMSNorm *l, TgState *s, const char *prefix);
TG_API TgStatus tg_batch_norm_state(const TgBatchNorm *l, TgState *s, const char *prefix);
TG_API TgStatus tg_embedding_state(const TgEmbedding *l, TgState *s, const char *prefix);
TG_API TgStatus tg_lstm_cell_state(const TgLSTMCell *l, TgState *s, const char *prefix);
TG_API TgStatus tg_lstm_state(const TgLSTM *l, TgState *s, const char *prefix);
TG_API TgStatus tg_gru_state(const TgGRU *l, TgState *s, const char *prefix);
TG_API TgStatus tg_multihead_attention_state(const TgMultiheadAttention *l, TgState *s, const char *prefix);
TG_API const TgModule *tg_linear_module(void);
TG_API const TgModule *tg_conv2d_module(void);
TG_API const TgModule *tg_conv_transpose2d_module(void);
TG_API const TgModule *tg_layer_norm_module(void);
TG_API const TgModule *tg_layer_norm2d_module(void);
TG_API const TgModule *tg_group_norm_module(void);
TG_API const TgModule *tg_rms_norm_module(void);
TG_API const TgModule *tg_batch_norm_module(void);
TG_API const TgModule *tg_embedding_module(void);
TG_API const TgModule *tg_lstm_cell_module(void);
TG_API const TgModule *tg_lstm_module(void);
TG_API const TgModule *tg_gru_module(void);
TG_API const TgModule *tg_multihead_attention_module(void);

/* ---- optimisers. They refer to the parameters (without owning them), make them require gradients, and
 * keep their state in place. A parameter given twice, such as tied weights, counts once and keeps its
 * first place. TG_ERR_VALUE: a parameter is NULL or of another context, or an option is invalid (a
 * negative lr, momentum, weight_decay). Each update is part of the kernel that computes the gradient if
 * the scheduler can join them. */
typedef struct TgOptim TgOptim;

/* An option that is not written has the default that the function states. clip_norm, clip_value: clip as
 * the functions below do, before each update. master: each parameter that is narrower than f32 has a copy
 * in f32. The copy is updated, and the parameter is the copy, rounded. */
typedef struct TgOptimOptions {
  size_t size;
  const char *set;
  double lr, momentum, weight_decay, beta1, beta2, eps;
  bool nesterov, centered, classic, late_decay, master;
  double alpha, trust, clip_norm, clip_value;
  int steps;
  bool split_state;
  int end_;
} TgOptimOptions;

/* [options] .lr (0.001) .momentum .nesterov .weight_decay (L2) .classic (the rate multiplies the gradient
 * before it enters the momentum) */
TG_API TgOptim *tg_sgd_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.001) .momentum (0.9) .weight_decay (1e-4) .trust (0.001) .nesterov .classic .late_decay
 * (of the parameter, not of the gradient). The step is scaled by trust |w| / (|g| + decay |w|), or by 1 if
 * a norm is 0 (You, Gitman, Ginsburg, arXiv 1708.03888). */
TG_API TgOptim *tg_lars_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.001) .momentum (0.95) .weight_decay (0.1) .steps (5). Nesterov momentum made nearly
 * orthogonal by tg_newton_schulz with 3.4445, -4.775, 2.0315, times sqrt(max(1, rows / columns)), as
 * torch's "original" (Jordan, kellerjordan.github.io/posts/muon). TG_ERR_SHAPE: a parameter of less than
 * two axes; axes past the second are merged into it. */
TG_API TgOptim *tg_muon_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.001) .beta1 (0.9) .beta2 (0.999) .eps (1e-8) .weight_decay (0): L2 decay */
TG_API TgOptim *tg_adam_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.001) .beta1 (0.9) .beta2 (0.999) .eps (1e-8) .weight_decay (0.01): decoupled
 * decay */
TG_API TgOptim *tg_adamw_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.001) .beta1 (0.9) .beta2 (0.999) .eps (1e-6) .weight_decay (0): Adam's step plus the
 * decay, scaled by |w| / |step|, or by 1 if a norm is 0 (You et al., arXiv 1904.00962) */
TG_API TgOptim *tg_lamb_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* The optimisers from here on are torch's.
 * [options] .lr (0.01) .alpha (0.99) .eps (1e-8) .weight_decay (0) .momentum (0) .centered */
TG_API TgOptim *tg_rmsprop_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.01) .eps (1e-10) .weight_decay (0) */
TG_API TgOptim *tg_adagrad_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (1) .alpha (0.9) .eps (1e-6) .weight_decay (0) */
TG_API TgOptim *tg_adadelta_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.002) .beta1 (0.9) .beta2 (0.999) .eps (1e-8) .weight_decay (0) */
TG_API TgOptim *tg_adamax_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.002) .beta1 (0.9) .beta2 (0.999) .eps (1e-8) .weight_decay (0) .alpha (0.004): the
 * momentum's decay */
TG_API TgOptim *tg_nadam_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* [options] .lr (0.001) .beta1 (0.9) .beta2 (0.999) .eps (1e-8) .weight_decay (0) */
TG_API TgOptim *tg_radam_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o);
/* Combines several optimisers into one, whose step is one schedule. They stay the caller's and must
 * outlive the group. */
TG_API TgOptim *tg_optim_group(TgContext *ctx, TgOptim *const *optims, int n);
TG_API TgOptim *tg_optim_at(const TgOptim *group, int i); /* NULL: not a group, or i is past its last */
/* Updates each parameter that has a gradient. Computes the update, the state and the losses of tg_backward
 * in one schedule. The gradients are used up: tg_grad is NULL afterwards. */
TG_API TgStatus tg_optim_step(TgOptim *opt);
/* Adds the gradients to memory of the optimiser's own, computes that sum, and drops the gradients; the
 * next step uses the sum. Use it for batches that do not fit at once. The caller divides for a mean, in
 * the loss. */
TG_API TgStatus tg_optim_accumulate(TgOptim *opt);
TG_API void tg_optim_zero_grad(TgOptim *opt); /* drops the gradients */
/* Puts what a step remembers into a state dictionary, to be read, saved (tg_safe_save) and loaded
 * (tg_load_state) like a model's; the optimiser continues from what was loaded. The i-th parameter has
 * torch's names: state.i.momentum_buffer, state.i.exp_avg, state.i.exp_avg_sq and so on, and
 * state.i.master. All parameters share beta1_power and beta2_power (beta^steps), step and mu_product. The
 * learning rate is not included; a schedule's state has it. Names of a group begin with 0.state.i. and so
 * on. s must not outlive opt. */
TG_API TgStatus tg_optim_state(TgOptim *opt, TgState *s, const char *prefix);
/* Sets the learning rate; for a group, of all its optimisers. No kernel changes, and captured functions
 * use the new rate. */
TG_API TgStatus tg_optim_set_lr(TgOptim *opt, double lr);
TG_API double tg_optim_lr(const TgOptim *opt); /* the present rate */
TG_API void tg_optim_free(TgOptim *opt);       /* call it before tg_close; opt may be NULL */

/* ---- gradients between tg_backward and the step. Both functions replace tg_grad of the parameters that have
 * one.
 * tg_clip_grad_norm multiplies all gradients by max / (norm + 1e-6) if their joint norm is larger than
 * max. It returns that norm, f32 (), lazily. TG_ERR_VALUE: max is not positive. */
TG_API TgTensor *tg_clip_grad_norm(TgContext *ctx, TgTensor *const *params, int n, double max);
TG_API TgStatus tg_clip_grad_value(TgContext *ctx, TgTensor *const *params, int n, double max);

/* ---- loss scaling, for gradients in f16 and bf16 that would otherwise underflow to 0. tg_scaler_step
 * divides the gradients by the scale. If a gradient is not finite, nothing is updated and the scale is
 * multiplied by backoff; after `interval` finite steps the scale is multiplied by growth. No value is read
 * back. */
typedef struct TgScaler TgScaler;

typedef struct TgScalerOptions {
  size_t size;
  const char *set;
  double scale, growth, backoff;
  int interval;
  int end_;
} TgScalerOptions;

/* [options] .scale (65536) .growth (2) .backoff (0.5) .interval (2000) */
TG_API TgScaler *tg_scaler_opt(TgContext *ctx, const TgScalerOptions *o);
/* The loss times the scale, with the loss's shape, in f32 or wider. TG_ERR_NOMEM is its only error. */
TG_API TgTensor *tg_scaler_scale(TgScaler *s, TgTensor *loss);
TG_API TgStatus tg_scaler_step(TgScaler *s, TgOptim *opt); /* updates if all gradients are finite */
TG_API double tg_scaler_value(TgScaler *s);                /* reads the scale; NaN on error */
TG_API TgStatus tg_scaler_state(TgScaler *s, TgState *state, const char *prefix); /* scale, growth_tracker */
TG_API void tg_scaler_free(TgScaler *s);

/* ---- schedules of the learning rate, as torch's. A new schedule sets the rate of epoch 0, and tg_lr_step
 * sets that of the next epoch. The base is the rate that the optimiser had before. opt must outlive the
 * schedule. */
typedef struct TgLR TgLR;

typedef struct TgLROptions {
  size_t size;
  const char *set;
  double gamma, minimum, start, div_factor, final_div_factor, pct_start, factor, threshold;
  int patience;
  bool highest, absolute, cosine;
  int end_;
} TgLROptions;

/* [options] .gamma (0.1): multiplies the rate by gamma at each milestone (ascending epochs) */
TG_API TgLR *tg_lr_multi_step_opt(TgOptim *opt, const int64_t *milestones, int n, const TgLROptions *o);
/* [options] .gamma (0.1): multiplies the rate by gamma every `every` epochs */
TG_API TgLR *tg_lr_steps_opt(TgOptim *opt, int64_t every, const TgLROptions *o);
TG_API TgLR *tg_lr_exponential(TgOptim *opt, double gamma); /* multiplies by gamma each epoch */
/* [options] .minimum (0): half a cosine from the base down to the minimum over `epochs` */
TG_API TgLR *tg_lr_cosine_opt(TgOptim *opt, int64_t epochs, const TgLROptions *o);
/* [options] .minimum (0) .start (0): linear from start times the base up to the base over `warmup` epochs,
 * then half a cosine down to the minimum at `epochs` */
TG_API TgLR *tg_lr_warmup_cosine_opt(TgOptim *opt, int64_t warmup, int64_t epochs, const TgLROptions *o);
/* [options] .div_factor (25) .final_div_factor (10000) .pct_start (0.3) .cosine: from max / div_factor up
 * to max over pct_start of the epochs, then down to the first rate / final_div_factor; linearly, or along
 * half cosines */
TG_API TgLR *tg_lr_one_cycle_opt(TgOptim *opt, double max, int64_t epochs, const TgLROptions *o);
/* [options] .factor (0.1) .patience (10) .threshold (1e-4) .minimum (0) .highest (a larger metric is
 * better) .absolute (the threshold is a difference, not a fraction of the best metric). Multiplies the
 * rate by factor after more than `patience` epochs without a better metric; stepped by tg_lr_metric. */
TG_API TgLR *tg_lr_plateau_opt(TgOptim *opt, const TgLROptions *o);
TG_API TgLR *tg_lr_group(TgContext *ctx, TgLR *const *schedules, int n); /* several as one, not owned */
TG_API TgStatus tg_lr_step(TgLR *s);                                     /* moves to the next epoch */
/* moves to the next epoch; a metric of NaN is never better */
TG_API TgStatus tg_lr_metric(TgLR *s, double metric);
TG_API int64_t tg_lr_epoch(const TgLR *s); /* the present epoch */
/* Puts last_epoch, best, bad_epochs and lr, f64 (), with their present values. After a tg_load_state into
 * them, call tg_lr_resume, which reads them. s must not outlive the schedule. Not for a group. */
TG_API TgStatus tg_lr_state(TgLR *s, TgState *state, const char *prefix);
TG_API TgStatus tg_lr_resume(TgLR *s);
TG_API void tg_lr_free(TgLR *s); /* the optimiser stays */

/* ---- a training as one file, from which it continues as if it had not stopped: parameters and what a
 * model's layers keep, what the optimiser remembers, schedule, scale, the state of random numbers, the
 * step. rate, scaler: NULL if there is none. step: counted by the caller, the number of steps done. .size
 * is sizeof(TgTraining). */
typedef struct TgTraining {
  size_t size;
  TgModuleFn module;
  void *model;
  TgOptim *optim;
  TgLR *rate;
  TgScaler *scaler;
  int64_t step;
} TgTraining;

/* Writes a safetensors file whose names begin with model. optim. lr. scaler. and whose metadata contain
 * step, random and your own (keys and values alternate, NULL ends them; may be NULL). It replaces path at
 * once: see tg_safe_save. */
TG_API TgStatus tg_train_save(TgContext *ctx, const TgTraining *t, const char *path,
                              const char *const *metadata);
/* Loads into a model, optimiser, schedule and scaler that were made in the same way as the saved ones;
 * sets t->step. TG_ERR_VALUE: no such file, names that are missing or too many; TG_ERR_SHAPE: shapes
 * differ. On an error nothing has changed. */
TG_API TgStatus tg_train_load(TgContext *ctx, TgTraining *t, const char *path);
#ifndef __cplusplus
#define tg_conv2d_new_with(...) TG_OPT5_(tg_conv2d_new, TgConvOptions, __VA_ARGS__, .end_ = 0)
#define tg_conv1d_new_with(...) TG_OPT5_(tg_conv1d_new, TgConvOptions, __VA_ARGS__, .end_ = 0)
#define tg_conv_new_with(...)   TG_OPT6_(tg_conv_new, TgConvOptions, __VA_ARGS__, .end_ = 0)
#define tg_conv_transpose2d_new_with(...)                                                                    \
  TG_OPT5_(tg_conv_transpose2d_new, TgConvOptions, __VA_ARGS__, .end_ = 0)
#define tg_conv_transpose1d_new_with(...)                                                                    \
  TG_OPT5_(tg_conv_transpose1d_new, TgConvOptions, __VA_ARGS__, .end_ = 0)
#define tg_sgd(...)               TG_OPT3_(tg_sgd_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_lars(...)              TG_OPT3_(tg_lars_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_muon(...)              TG_OPT3_(tg_muon_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_adam(...)              TG_OPT3_(tg_adam_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_adamw(...)             TG_OPT3_(tg_adamw_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_lamb(...)              TG_OPT3_(tg_lamb_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_rmsprop(...)           TG_OPT3_(tg_rmsprop_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_adagrad(...)           TG_OPT3_(tg_adagrad_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_adadelta(...)          TG_OPT3_(tg_adadelta_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_adamax(...)            TG_OPT3_(tg_adamax_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_nadam(...)             TG_OPT3_(tg_nadam_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_radam(...)             TG_OPT3_(tg_radam_opt, TgOptimOptions, __VA_ARGS__, .end_ = 0)
#define tg_layer_norm_new(...)    TG_OPT3_(tg_layer_norm_new_opt, TgLayerOptions, __VA_ARGS__, .end_ = 0)
#define tg_layer_norm2d_new(...)  TG_OPT2_(tg_layer_norm2d_new_opt, TgLayerOptions, __VA_ARGS__, .end_ = 0)
#define tg_group_norm_new(...)    TG_OPT3_(tg_group_norm_new_opt, TgLayerOptions, __VA_ARGS__, .end_ = 0)
#define tg_instance_norm_new(...) TG_OPT2_(tg_instance_norm_new_opt, TgLayerOptions, __VA_ARGS__, .end_ = 0)
#define tg_rms_norm_new(...)      TG_OPT2_(tg_rms_norm_new_opt, TgLayerOptions, __VA_ARGS__, .end_ = 0)
#define tg_batch_norm_new(...)    TG_OPT2_(tg_batch_norm_new_opt, TgLayerOptions, __VA_ARGS__, .end_ = 0)
#define tg_lstm_new(...)          TG_OPT3_(tg_lstm_new_opt, TgRnnOptions, __VA_ARGS__, .end_ = 0)
#define tg_gru_new(...)           TG_OPT3_(tg_gru_new_opt, TgRnnOptions, __VA_ARGS__, .end_ = 0)
#define tg_multihead_attention_new(...)                                                                      \
  TG_OPT3_(tg_multihead_attention_new_opt, TgMultiheadOptions, __VA_ARGS__, .end_ = 0)
#define tg_multihead_attention_run(...)                                                                      \
  TG_OPT4_(tg_multihead_attention_run_opt, TgMultiheadRun, __VA_ARGS__, .end_ = 0)
#define tg_scaler(...)           TG_OPT1_(tg_scaler_opt, TgScalerOptions, __VA_ARGS__, .end_ = 0)
#define tg_lr_multi_step(...)    TG_OPT3_(tg_lr_multi_step_opt, TgLROptions, __VA_ARGS__, .end_ = 0)
#define tg_lr_steps(...)         TG_OPT2_(tg_lr_steps_opt, TgLROptions, __VA_ARGS__, .end_ = 0)
#define tg_lr_cosine(...)        TG_OPT2_(tg_lr_cosine_opt, TgLROptions, __VA_ARGS__, .end_ = 0)
#define tg_lr_warmup_cosine(...) TG_OPT3_(tg_lr_warmup_cosine_opt, TgLROptions, __VA_ARGS__, .end_ = 0)
#define tg_lr_one_cycle(...)     TG_OPT3_(tg_lr_one_cycle_opt, TgLROptions, __VA_ARGS__, .end_ = 0)
#define tg_lr_plateau(...)       TG_OPT1_(tg_lr_plateau_opt, TgLROptions, __VA_ARGS__, .end_ = 0)
#else
} /* extern "C" */

#define TG_CXX_CONV_(type, f)                                                                                \
  inline type f##_with(TgContext *c, int64_t in, int64_t out, int64_t kernel, bool bias,                     \
                       TgConvOptions o = TgConvOptions()) {                                                  \
    o.size = sizeof o;                                                                                       \
    return f(c, in, out, kernel, bias, &o);                                                                  \
  }
#define TG_CXX_OPTIM_(f)                                                                                     \
  inline TgOptim *f(TgContext *c, TgTensor *const *p, int n, TgOptimOptions o = TgOptimOptions()) {          \
    o.size = sizeof o;                                                                                       \
    return f##_opt(c, p, n, &o);                                                                             \
  }
#define TG_CXX_LAYER_(type, f, a, b)                                                                         \
  inline type f(TgContext *c, a x, b y, TgLayerOptions o = TgLayerOptions()) {                               \
    o.size = sizeof o;                                                                                       \
    return f##_opt(c, x, y, &o);                                                                             \
  }
#define TG_CXX_CHANNELS_(type, f)                                                                            \
  inline type f(TgContext *c, int64_t n, TgLayerOptions o = TgLayerOptions()) {                              \
    o.size = sizeof o;                                                                                       \
    return f##_opt(c, n, &o);                                                                                \
  }
#define TG_CXX_TWO_(type, f, T)                                                                              \
  inline type f(TgContext *c, int64_t a, int64_t b, T o = T()) {                                             \
    o.size = sizeof o;                                                                                       \
    return f##_opt(c, a, b, &o);                                                                             \
  }
#define TG_CXX_EPOCHS_(f)                                                                                    \
  inline TgLR *f(TgOptim *p, int64_t n, TgLROptions o = TgLROptions()) {                                     \
    o.size = sizeof o;                                                                                       \
    return f##_opt(p, n, &o);                                                                                \
  }

inline TgConv2d tg_conv_new_with(TgContext *c, int64_t in, int64_t out, int axes, const int64_t *kernel,
                                 bool bias, TgConvOptions o = TgConvOptions()) {
  o.size = sizeof o;
  return tg_conv_new(c, in, out, axes, kernel, bias, &o);
}

inline TgTensor *tg_multihead_attention_run(const TgMultiheadAttention *l, TgTensor *q, TgTensor *k,
                                            TgTensor *v, TgMultiheadRun o = TgMultiheadRun()) {
  o.size = sizeof o;
  return tg_multihead_attention_run_opt(l, q, k, v, &o);
}

inline TgScaler *tg_scaler(TgContext *c, TgScalerOptions o = TgScalerOptions()) {
  o.size = sizeof o;
  return tg_scaler_opt(c, &o);
}

inline TgLR *tg_lr_multi_step(TgOptim *p, const int64_t *m, int n, TgLROptions o = TgLROptions()) {
  o.size = sizeof o;
  return tg_lr_multi_step_opt(p, m, n, &o);
}

inline TgLR *tg_lr_warmup_cosine(TgOptim *p, int64_t warmup, int64_t n, TgLROptions o = TgLROptions()) {
  o.size = sizeof o;
  return tg_lr_warmup_cosine_opt(p, warmup, n, &o);
}

inline TgLR *tg_lr_one_cycle(TgOptim *p, double max, int64_t n, TgLROptions o = TgLROptions()) {
  o.size = sizeof o;
  return tg_lr_one_cycle_opt(p, max, n, &o);
}

inline TgLR *tg_lr_plateau(TgOptim *p, TgLROptions o = TgLROptions()) {
  o.size = sizeof o;
  return tg_lr_plateau_opt(p, &o);
}

/* clang-format off */
TG_CXX_CONV_(TgConv2d, tg_conv2d_new)
TG_CXX_CONV_(TgConv2d, tg_conv1d_new)
TG_CXX_CONV_(TgConvTranspose2d, tg_conv_transpose2d_new)
TG_CXX_CONV_(TgConvTranspose2d, tg_conv_transpose1d_new)
TG_CXX_OPTIM_(tg_sgd)
TG_CXX_OPTIM_(tg_lars)
TG_CXX_OPTIM_(tg_muon)
TG_CXX_OPTIM_(tg_adam)
TG_CXX_OPTIM_(tg_adamw)
TG_CXX_OPTIM_(tg_lamb)
TG_CXX_OPTIM_(tg_rmsprop)
TG_CXX_OPTIM_(tg_adagrad)
TG_CXX_OPTIM_(tg_adadelta)
TG_CXX_OPTIM_(tg_adamax)
TG_CXX_OPTIM_(tg_nadam)
TG_CXX_OPTIM_(tg_radam)
TG_CXX_LAYER_(TgLayerNorm, tg_layer_norm_new, int, const int64_t *)
TG_CXX_LAYER_(TgGroupNorm, tg_group_norm_new, int64_t, int64_t)
TG_CXX_CHANNELS_(TgLayerNorm2d, tg_layer_norm2d_new)
TG_CXX_CHANNELS_(TgGroupNorm, tg_instance_norm_new)
TG_CXX_CHANNELS_(TgRMSNorm, tg_rms_norm_new)
TG_CXX_CHANNELS_(TgBatchNorm, tg_batch_norm_new)
TG_CXX_TWO_(TgLSTM, tg_lstm_new, TgRnnOptions)
TG_CXX_TWO_(TgGRU, tg_gru_new, TgRnnOptions)
TG_CXX_TWO_(TgMultiheadAttention, tg_multihead_attention_new, TgMultiheadOptions)
TG_CXX_EPOCHS_(tg_lr_steps)
TG_CXX_EPOCHS_(tg_lr_cosine)
/* clang-format on */
#endif
#if !defined(TG_NO_ORIGIN) && !defined(__cplusplus) /* as tg_origin.h has for tg.h */
/* clang-format off */
#define tg_linear_run(l, x) TG_LAYER_("linear", tg_linear_run, l, x)
#define tg_conv2d_run(l, x) TG_LAYER_("conv2d", tg_conv2d_run, l, x)
#define tg_conv_transpose2d_run(l, x) TG_LAYER_("conv_transpose2d", tg_conv_transpose2d_run, l, x)
#define tg_layer_norm_run(l, x) TG_LAYER_("layer_norm", tg_layer_norm_run, l, x)
#define tg_layer_norm2d_run(l, x) TG_LAYER_("layer_norm2d", tg_layer_norm2d_run, l, x)
#define tg_group_norm_run(l, x) TG_LAYER_("group_norm", tg_group_norm_run, l, x)
#define tg_rms_norm_run(l, x) TG_LAYER_("rms_norm", tg_rms_norm_run, l, x)
#define tg_batch_norm_run(l, x) TG_LAYER_("batch_norm", tg_batch_norm_run, l, x)
#define tg_embedding_run(l, x) TG_LAYER_("embedding", tg_embedding_run, l, x)
#define TG_LAYER_(op, f, l, x) tg_origin((f)((l), tg_origin_here((x), TG_PLACE_(op))), TG_PLACE_(op))
/* clang-format on */
#endif
#endif
