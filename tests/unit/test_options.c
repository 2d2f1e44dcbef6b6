/* test_options.c: options as a caller writes them. A zero that was written is a zero, what was not written is
 * the default, and a struct without its size is refused: for every field of tg_abi.json whose default is not
 * zero, and for every function that takes options. */
#include "tests/json.h"
#include "tg_io.h"
#include "tg_nn.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static TgContext *C;

static int open_context(void **state) {
  (void)state;
  C = tg_open_with(.device = "INTERP", .seed = 7);
  return tg_error(C);
}

static int close_context(void **state) {
  (void)state;
  int bad = tg_error(C);
  tg_close(C);
  return bad;
}

/* ---- one run of each function: a number that its options decide; an error stays in the context */
static TgTensor *values(int n, const double *v) { return tg_from_f64(C, v, TG_F32, TG_SHAPE(n)); }

#define VALUES(...)                                                                                          \
  values((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (const double[]){__VA_ARGS__})

#define EXACT(...) tg_cast(VALUES(__VA_ARGS__), TG_F64)

/* a weighted sum: no two elements can be exchanged */
static double sum_of(TgTensor *t) {
  if (!t) return NAN;
  t = tg_reshape(t, TG_SHAPE(-1));
  return tg_item_f64(tg_sum(
      tg_mul(tg_cast(t, TG_F64), tg_add_scalar(tg_arange(C, 0, (double)tg_numel(t), .dtype = TG_F64), 1))));
}

static TgTensor *image(void) {
  return tg_reshape(tg_arange(C, 0, 32, .dtype = TG_F32), TG_SHAPE(1, 2, 4, 4));
}

static TgTensor *square(void) { return tg_reshape(VALUES(1, 2, 4, 9), TG_SHAPE(2, 2)); }

#define RUN(name) static double run_##name(const void *o)

RUN(arange) { return sum_of(tg_arange_opt(C, 0, 4, o)); }

RUN(eye) { return (double)tg_numel(tg_eye_opt(C, 3, o)); }

RUN(kaiming_uniform) {
  tg_manual_seed(C, 5);
  return sum_of(tg_kaiming_uniform_opt(C, TG_SHAPE(3, 4), o));
}

RUN(kaiming_normal) {
  tg_manual_seed(C, 5);
  return sum_of(tg_kaiming_normal_opt(C, TG_SHAPE(3, 4), o));
}

RUN(variable) { return tg_variable_opt(C, "v", 1, 8, o) ? 1 : NAN; }

RUN(isclose) { return sum_of(tg_isclose_opt(VALUES(1, 0), VALUES(1.000001, 5e-9), o)); }

RUN(allclose_rtol) { return sum_of(tg_allclose_opt(VALUES(1), VALUES(1.000001), o)); }

RUN(allclose_atol) { return sum_of(tg_allclose_opt(VALUES(0), VALUES(5e-9), o)); }

RUN(var) { return sum_of(tg_var_opt(VALUES(1, 2, 4), o)); }

RUN(std) { return sum_of(tg_std_opt(VALUES(1, 2, 4), o)); }

RUN(var_mean) {
  TgTensor *m;
  return sum_of(tg_var_mean_opt(VALUES(1, 2, 4), &m, o));
}

RUN(std_mean) {
  TgTensor *m;
  return sum_of(tg_std_mean_opt(VALUES(1, 2, 4), &m, o));
}

RUN(normalize) {
  return sum_of(tg_normalize_opt(tg_reshape(VALUES(1e-13, 2e-13, 4e-12, 9e-12), TG_SHAPE(2, 2)), o));
}

RUN(softmax) { return sum_of(tg_softmax_opt(square(), o)); }

RUN(softmin) { return sum_of(tg_softmin_opt(square(), o)); }

RUN(log_softmax) { return sum_of(tg_log_softmax_opt(square(), o)); }

RUN(logsumexp) { return sum_of(tg_logsumexp_opt(square(), o)); }

RUN(sort) { return sum_of(tg_sort_opt(square(), NULL, o)); }

RUN(argsort) { return sum_of(tg_argsort_opt(square(), o)); }

RUN(topk) { return sum_of(tg_topk_opt(square(), 1, NULL, o)); }

RUN(sum) { return sum_of(tg_sum_opt(square(), o)); }

RUN(prod) { return sum_of(tg_prod_opt(square(), o)); }

RUN(max) { return sum_of(tg_max_opt(square(), o)); }

RUN(min) { return sum_of(tg_min_opt(square(), o)); }

RUN(mean) { return sum_of(tg_mean_opt(square(), o)); }

RUN(any) { return sum_of(tg_any_opt(square(), o)); }

RUN(all) { return sum_of(tg_all_opt(square(), o)); }

RUN(argmax) { return sum_of(tg_argmax_opt(square(), o)); }

RUN(argmin) { return sum_of(tg_argmin_opt(square(), o)); }

RUN(conv2d) { return sum_of(tg_conv2d_opt(image(), tg_ones(C, TG_SHAPE(2, 2, 2, 2)), o)); }

RUN(conv_transpose2d) {
  return sum_of(tg_conv_transpose2d_opt(image(), tg_ones(C, TG_SHAPE(2, 2, 2, 2)), o));
}

RUN(max_pool2d) { return sum_of(tg_max_pool2d_opt(image(), o)); }

RUN(avg_pool2d) { return sum_of(tg_avg_pool2d_opt(image(), o)); }

RUN(cross_entropy) { return sum_of(tg_cross_entropy_opt(square(), square(), o)); }

RUN(sparse_cross_entropy) {
  return sum_of(tg_sparse_cross_entropy_opt(square(), tg_cast(VALUES(1, 0), TG_I32), o));
}

RUN(nll) { return sum_of(tg_nll_opt(square(), tg_cast(VALUES(1, 0), TG_I32), o)); }

RUN(layer_norm) { return sum_of(tg_layer_norm_opt(tg_mul_scalar(square(), 1e-3), o)); }

RUN(rms_norm) { return sum_of(tg_rms_norm_opt(tg_mul_scalar(square(), 1e-3), o)); }

RUN(batch_norm) { return sum_of(tg_batch_norm_opt(square(), VALUES(0, 0), VALUES(1e-4, 1e-5), o)); }

RUN(batch_norm_train) {
  TgTensor *mean = VALUES(3, 5), *var = VALUES(1, 1);
  TgTensor *y = tg_batch_norm_train_opt(tg_mul_scalar(square(), 1e-3), mean, var, o);
  return y ? sum_of(y) + 100 * sum_of(mean) : NAN;
}

RUN(attention) { return sum_of(tg_scaled_dot_product_attention_opt(square(), square(), square(), o)); }

#define LAYER_RUN(name, type, make, what)                                                                    \
  RUN(name) {                                                                                                \
    type l = make;                                                                                           \
    double got = what;                                                                                       \
    tg_##name##_free(&l);                                                                                    \
    return got;                                                                                              \
  }
LAYER_RUN(layer_norm2d, TgLayerNorm2d, tg_layer_norm2d_new_opt(C, 2, o), l.eps)
LAYER_RUN(group_norm, TgGroupNorm, tg_group_norm_new_opt(C, 1, 2, o), l.eps)

RUN(batch_norm_layer) {
  TgBatchNorm l = tg_batch_norm_new_opt(C, 2, o);
  double got = l.eps + 10 * l.momentum;
  tg_batch_norm_free(&l);
  return got;
}

RUN(layer_norm_new) {
  TgLayerNorm l = tg_layer_norm_new_opt(C, 1, (int64_t[]){2}, o);
  double got = l.weight ? sum_of(tg_layer_norm_run(&l, tg_mul_scalar(square(), 1e-3))) : NAN;
  tg_layer_norm_free(&l);
  return got;
}

RUN(rms_norm_new) {
  TgRMSNorm l = tg_rms_norm_new_opt(C, 2, o);
  double got = l.weight ? sum_of(tg_rms_norm_run(&l, tg_mul_scalar(square(), 1e-3))) : NAN;
  tg_rms_norm_free(&l);
  return got;
}

RUN(instance_norm) {
  TgGroupNorm l = tg_instance_norm_new_opt(C, 2, o);
  double got = l.weight ? sum_of(tg_group_norm_run(&l, tg_mul_scalar(image(), 1e-3))) : NAN;
  tg_group_norm_free(&l);
  return got;
}

RUN(conv2d_new) {
  TgConv2d l = tg_conv2d_new(C, 2, 2, 2, true, o);
  double got = l.weight ? (double)tg_numel(l.weight) : NAN;
  tg_conv2d_free(&l);
  return got;
}

RUN(conv1d_new) {
  TgConv2d l = tg_conv1d_new(C, 2, 2, 2, true, o);
  double got = l.weight ? (double)tg_numel(l.weight) : NAN;
  tg_conv2d_free(&l);
  return got;
}

RUN(conv_new) {
  TgConv2d l = tg_conv_new(C, 2, 2, 1, (int64_t[]){2}, true, o);
  double got = l.weight ? (double)tg_numel(l.weight) : NAN;
  tg_conv2d_free(&l);
  return got;
}

RUN(conv_transpose2d_new) {
  TgConvTranspose2d l = tg_conv_transpose2d_new(C, 2, 2, 2, true, o);
  double got = l.weight ? 1 : NAN;
  tg_conv_transpose2d_free(&l);
  return got;
}

RUN(conv_transpose1d_new) {
  TgConvTranspose2d l = tg_conv_transpose1d_new(C, 2, 2, 2, true, o);
  double got = l.weight ? 1 : NAN;
  tg_conv_transpose2d_free(&l);
  return got;
}

RUN(lstm_new) {
  TgLSTM l = tg_lstm_new_opt(C, 2, 2, o);
  double got = l.options.layers;
  tg_lstm_free(&l);
  return got;
}

RUN(gru_new) {
  TgGRU l = tg_gru_new_opt(C, 2, 2, o);
  double got = l.options.layers;
  tg_gru_free(&l);
  return got;
}

RUN(multihead_new) {
  TgMultiheadAttention l = tg_multihead_attention_new_opt(C, 4, 2, o);
  double got = l.in_proj_weight ? 1 : NAN;
  tg_multihead_attention_free(&l);
  return got;
}

/* Eight steps (RAdam begins with five without .beta2) from gradients that are as small as eps, or not, by the
 * optimiser's field. */
typedef TgOptim *(*OptimNew)(TgContext *, TgTensor *const *, int, const TgOptimOptions *);

static double steps_of(OptimNew f, const void *o, double scale) {
  TgTensor *p = tg_reshape(EXACT(1, 2, -3, 0.5), TG_SHAPE(2, 2));
  TgTensor *g[3] = {tg_reshape(EXACT(1, 5, 2, 3), TG_SHAPE(2, 2)),
                    tg_reshape(EXACT(2, -1, 4, 7), TG_SHAPE(2, 2)),
                    tg_reshape(EXACT(-3, 2, 1, 6), TG_SHAPE(2, 2))};
  tg_realize(p);
  TgOptim *opt = f(C, &p, 1, o);
  for (int i = 0; opt && i < 8; i++) {
    tg_backward(tg_sum(tg_mul(p, tg_mul_scalar(g[i % 3], scale))));
    if (tg_optim_step(opt)) break;
  }
  double got = opt ? sum_of(p) : NAN;
  tg_optim_free(opt);
  return got;
}

#define OPTIM_RUN(name)                                                                                      \
  RUN(name) { return steps_of(tg_##name##_opt, o, 0.1); }
#define OPTIM_RUNS(name)                                                                                     \
  RUN(name) { return steps_of(tg_##name##_opt, o, 0.1); }                                                    \
  RUN(name##_small) { return steps_of(tg_##name##_opt, o, 1e-9); }
OPTIM_RUN(sgd)
OPTIM_RUN(lars)
OPTIM_RUN(muon)
OPTIM_RUNS(adam)
OPTIM_RUNS(adamw)
OPTIM_RUNS(lamb)
OPTIM_RUNS(rmsprop)
OPTIM_RUNS(adagrad)
OPTIM_RUNS(adadelta)
OPTIM_RUNS(adamax)
OPTIM_RUNS(nadam)
OPTIM_RUNS(radam)

RUN(scaler) {
  TgScaler *s = tg_scaler_opt(C, o);
  double got = s ? tg_scaler_value(s) : NAN;
  tg_scaler_free(s);
  return got;
}

/* The rates of six epochs; the metric of a plateau goes 1, 1 - 5e-5 and no further. */
static double rates_of(int which, const void *o) {
  TgTensor *p = VALUES(1, 2);
  TgOptim *opt = tg_sgd(C, &p, 1, .lr = 1);
  const int64_t milestones[] = {2, 4};
  TgLR *s = which == 0   ? tg_lr_multi_step_opt(opt, milestones, 2, o)
            : which == 1 ? tg_lr_steps_opt(opt, 2, o)
            : which == 2 ? tg_lr_one_cycle_opt(opt, 1, 6, o)
                         : tg_lr_plateau_opt(opt, o);
  double sum = s ? 0 : NAN;
  for (int i = 0; s && i < 26; i++) {
    sum += (i + 1) * tg_optim_lr(opt);
    if (which == 3)
      tg_lr_metric(s, i == 1 ? 1 - 5e-5 : 1);
    else if (i < 5)
      tg_lr_step(s);
  }
  tg_lr_free(s), tg_optim_free(opt);
  return sum;
}

RUN(lr_multi_step) { return rates_of(0, o); }

RUN(lr_steps) { return rates_of(1, o); }

RUN(lr_one_cycle) { return rates_of(2, o); }

RUN(lr_plateau) { return rates_of(3, o); }

/* ---- the table */
typedef enum Zero {
  TINY,    /* 0 is as 1e-300 */
  DIFFERS, /* not as the default */
  REFUSED, /* TG_ERR_VALUE, SHAPE or LIMIT: there is no such thing */
} Zero;

typedef struct Row {
  const char *function, *field;
  size_t size, offset;
  char type; /* d double, i int, l int64_t, L a list: ".field = 0" is none */
  double otherwise;
  Zero zero;
  double (*run)(const void *options);
} Row;

#define ROW(f, T, field, type, otherwise, zero, run)                                                         \
  { "tg_" #f, #field, sizeof(T), offsetof(T, field), type, otherwise, zero, run_##run }
#define OPTIM(f, field, otherwise)       ROW(f##_opt, TgOptimOptions, field, 'd', otherwise, TINY, f)
#define OPTIM_SMALL(f, field, otherwise) ROW(f##_opt, TgOptimOptions, field, 'd', otherwise, TINY, f##_small)
#define BETAS(f)                         OPTIM(f, beta1, 0.9), OPTIM(f, beta2, 0.999)
#define LIST(f, T, field, run)           ROW(f, T, field, 'L', 0, REFUSED, run)

static const Row rows[] = {
    ROW(arange_opt, TgArangeOptions, step, 'd', 1, REFUSED, arange),
    ROW(eye_opt, TgEyeOptions, m, 'l', 3, DIFFERS, eye),
    ROW(kaiming_uniform_opt, TgKaimingOptions, a, 'd', 0.01, TINY, kaiming_uniform),
    ROW(kaiming_normal_opt, TgKaimingOptions, a, 'd', 0.01, TINY, kaiming_normal),
    ROW(variable_opt, TgVariableOptions, multiple_of, 'l', 1, REFUSED, variable),
    ROW(isclose_opt, TgCloseOptions, rtol, 'd', 1e-5, TINY, isclose),
    ROW(isclose_opt, TgCloseOptions, atol, 'd', 1e-8, TINY, isclose),
    ROW(allclose_opt, TgCloseOptions, rtol, 'd', 1e-5, TINY, allclose_rtol),
    ROW(allclose_opt, TgCloseOptions, atol, 'd', 1e-8, TINY, allclose_atol),
    ROW(var_opt, TgVarOptions, correction, 'i', 1, DIFFERS, var),
    ROW(std_opt, TgVarOptions, correction, 'i', 1, DIFFERS, std),
    ROW(var_mean_opt, TgVarOptions, correction, 'i', 1, DIFFERS, var_mean),
    ROW(std_mean_opt, TgVarOptions, correction, 'i', 1, DIFFERS, std_mean),
    ROW(normalize_opt, TgNormalizeOptions, axis, 'i', 1, DIFFERS, normalize),
    ROW(normalize_opt, TgNormalizeOptions, p, 'd', 2, DIFFERS, normalize),
    ROW(normalize_opt, TgNormalizeOptions, eps, 'd', 1e-12, TINY, normalize),
    LIST(softmax_opt, TgAxisOptions, axis, softmax),
    LIST(softmin_opt, TgAxisOptions, axis, softmin),
    LIST(log_softmax_opt, TgAxisOptions, axis, log_softmax),
    LIST(logsumexp_opt, TgAxisOptions, axis, logsumexp),
    LIST(sort_opt, TgSortOptions, axis, sort),
    LIST(argsort_opt, TgSortOptions, axis, argsort),
    LIST(topk_opt, TgTopkOptions, axis, topk),
    LIST(sum_opt, TgReduceOptions, axis, sum),
    LIST(prod_opt, TgReduceOptions, axis, prod),
    LIST(max_opt, TgReduceOptions, axis, max),
    LIST(min_opt, TgReduceOptions, axis, min),
    LIST(mean_opt, TgReduceOptions, axis, mean),
    LIST(any_opt, TgReduceOptions, axis, any),
    LIST(all_opt, TgReduceOptions, axis, all),
    LIST(argmax_opt, TgReduceOptions, axis, argmax),
    LIST(argmin_opt, TgReduceOptions, axis, argmin),
    LIST(var_opt, TgVarOptions, axis, var),
    ROW(conv2d_opt, TgConvOptions, groups, 'l', 1, REFUSED, conv2d),
    LIST(conv2d_opt, TgConvOptions, stride, conv2d),
    LIST(conv2d_opt, TgConvOptions, dilation, conv2d),
    ROW(conv_transpose2d_opt, TgConvOptions, groups, 'l', 1, REFUSED, conv_transpose2d),
    LIST(conv_transpose2d_opt, TgConvOptions, stride, conv_transpose2d),
    LIST(max_pool2d_opt, TgPoolOptions, kernel, max_pool2d),
    LIST(max_pool2d_opt, TgPoolOptions, stride, max_pool2d),
    LIST(max_pool2d_opt, TgPoolOptions, dilation, max_pool2d),
    ROW(max_pool2d_opt, TgPoolOptions, axes, 'i', 2, REFUSED, max_pool2d),
    LIST(avg_pool2d_opt, TgPoolOptions, kernel, avg_pool2d),
    LIST(avg_pool2d_opt, TgPoolOptions, dilation, avg_pool2d),
    LIST(cross_entropy_opt, TgLossOptions, axis, cross_entropy),
    LIST(sparse_cross_entropy_opt, TgLossOptions, axis, sparse_cross_entropy),
    LIST(nll_opt, TgLossOptions, axis, nll),
    ROW(layer_norm_opt, TgNormOptions, eps, 'd', 1e-5, TINY, layer_norm),
    ROW(layer_norm_opt, TgNormOptions, dims, 'i', 1, REFUSED, layer_norm),
    ROW(rms_norm_opt, TgNormOptions, eps, 'd', 1e-5, TINY, rms_norm),
    ROW(batch_norm_opt, TgNormOptions, eps, 'd', 1e-5, TINY, batch_norm),
    ROW(batch_norm_train_opt, TgNormOptions, eps, 'd', 1e-5, TINY, batch_norm_train),
    ROW(batch_norm_train_opt, TgNormOptions, momentum, 'd', 0.1, TINY, batch_norm_train),
    ROW(scaled_dot_product_attention_opt, TgAttentionOptions, scale, 'd', 0.70710678118654752, TINY,
        attention),
    ROW(layer_norm_new_opt, TgLayerOptions, eps, 'd', 1e-5, TINY, layer_norm_new),
    ROW(layer_norm2d_new_opt, TgLayerOptions, eps, 'd', 1e-5, DIFFERS, layer_norm2d),
    ROW(group_norm_new_opt, TgLayerOptions, eps, 'd', 1e-5, DIFFERS, group_norm),
    ROW(instance_norm_new_opt, TgLayerOptions, eps, 'd', 1e-5, TINY, instance_norm),
    ROW(rms_norm_new_opt, TgLayerOptions, eps, 'd', 1e-6, TINY, rms_norm_new),
    ROW(batch_norm_new_opt, TgLayerOptions, eps, 'd', 1e-5, DIFFERS, batch_norm_layer),
    ROW(batch_norm_new_opt, TgLayerOptions, momentum, 'd', 0.1, DIFFERS, batch_norm_layer),
    ROW(conv2d_new, TgConvOptions, groups, 'l', 1, REFUSED, conv2d_new),
    LIST(conv2d_new, TgConvOptions, stride, conv2d_new),
    LIST(conv2d_new, TgConvOptions, dilation, conv2d_new),
    ROW(conv1d_new, TgConvOptions, groups, 'l', 1, REFUSED, conv1d_new),
    LIST(conv1d_new, TgConvOptions, stride, conv1d_new),
    LIST(conv1d_new, TgConvOptions, dilation, conv1d_new),
    ROW(conv_new, TgConvOptions, groups, 'l', 1, REFUSED, conv_new),
    LIST(conv_new, TgConvOptions, stride, conv_new),
    LIST(conv_new, TgConvOptions, dilation, conv_new),
    ROW(conv_transpose2d_new, TgConvOptions, groups, 'l', 1, REFUSED, conv_transpose2d_new),
    ROW(conv_transpose1d_new, TgConvOptions, groups, 'l', 1, REFUSED, conv_transpose1d_new),
    ROW(lstm_new_opt, TgRnnOptions, layers, 'i', 1, REFUSED, lstm_new),
    ROW(gru_new_opt, TgRnnOptions, layers, 'i', 1, REFUSED, gru_new),
    ROW(multihead_attention_new_opt, TgMultiheadOptions, kdim, 'l', 4, REFUSED, multihead_new),
    ROW(multihead_attention_new_opt, TgMultiheadOptions, vdim, 'l', 4, REFUSED, multihead_new),
    OPTIM(sgd, lr, 1e-3),
    OPTIM(lars, lr, 1e-3),
    OPTIM(lars, momentum, 0.9),
    OPTIM(lars, weight_decay, 1e-4),
    OPTIM(lars, trust, 1e-3),
    OPTIM(muon, lr, 1e-3),
    OPTIM(muon, momentum, 0.95),
    OPTIM(muon, weight_decay, 0.1),
    ROW(muon_opt, TgOptimOptions, steps, 'i', 5, DIFFERS, muon),
    OPTIM(adam, lr, 1e-3),
    BETAS(adam),
    OPTIM_SMALL(adam, eps, 1e-8),
    OPTIM(adamw, lr, 1e-3),
    BETAS(adamw),
    OPTIM_SMALL(adamw, eps, 1e-8),
    OPTIM(adamw, weight_decay, 0.01),
    OPTIM(lamb, lr, 1e-3),
    BETAS(lamb),
    OPTIM_SMALL(lamb, eps, 1e-6),
    OPTIM(rmsprop, lr, 1e-2),
    OPTIM(rmsprop, alpha, 0.99),
    OPTIM_SMALL(rmsprop, eps, 1e-8),
    OPTIM(adagrad, lr, 1e-2),
    OPTIM_SMALL(adagrad, eps, 1e-10),
    OPTIM(adadelta, lr, 1),
    OPTIM(adadelta, alpha, 0.9),
    OPTIM_SMALL(adadelta, eps, 1e-6),
    OPTIM(adamax, lr, 2e-3),
    BETAS(adamax),
    OPTIM_SMALL(adamax, eps, 1e-8),
    OPTIM(nadam, lr, 2e-3),
    BETAS(nadam),
    OPTIM_SMALL(nadam, eps, 1e-8),
    OPTIM(nadam, alpha, 0.004),
    OPTIM(radam, lr, 1e-3),
    BETAS(radam),
    OPTIM_SMALL(radam, eps, 1e-8),
    ROW(scaler_opt, TgScalerOptions, scale, 'd', 65536, REFUSED, scaler),
    ROW(scaler_opt, TgScalerOptions, growth, 'd', 2, REFUSED, scaler),
    ROW(scaler_opt, TgScalerOptions, backoff, 'd', 0.5, REFUSED, scaler),
    ROW(scaler_opt, TgScalerOptions, interval, 'i', 2000, REFUSED, scaler),
    ROW(lr_multi_step_opt, TgLROptions, gamma, 'd', 0.1, TINY, lr_multi_step),
    ROW(lr_steps_opt, TgLROptions, gamma, 'd', 0.1, TINY, lr_steps),
    ROW(lr_one_cycle_opt, TgLROptions, div_factor, 'd', 25, REFUSED, lr_one_cycle),
    ROW(lr_one_cycle_opt, TgLROptions, final_div_factor, 'd', 1e4, REFUSED, lr_one_cycle),
    ROW(lr_one_cycle_opt, TgLROptions, pct_start, 'd', 0.3, REFUSED, lr_one_cycle),
    ROW(lr_plateau_opt, TgLROptions, factor, 'd', 0.1, TINY, lr_plateau),
    ROW(lr_plateau_opt, TgLROptions, threshold, 'd', 1e-4, TINY, lr_plateau),
    ROW(lr_plateau_opt, TgLROptions, patience, 'i', 10, DIFFERS, lr_plateau),
};

enum { NROWS = sizeof rows / sizeof *rows };

/* Runs a row with its field at v; set: which fields were written, or NULL. The error is *status. */
static double run(const Row *r, double v, const char *set, TgStatus *status) {
  union {
    size_t size;
    double align;
    unsigned char bytes[1024];
  } o = {.size = r->size};

  assert_true(r->size <= sizeof o);
  memcpy(o.bytes + sizeof(size_t), &set, sizeof set);
  if (r->type == 'd') memcpy(o.bytes + r->offset, &v, sizeof v);
  if (r->type == 'i') memcpy(o.bytes + r->offset, &(int){(int)v}, sizeof(int));
  if (r->type == 'l') memcpy(o.bytes + r->offset, &(int64_t){(int64_t)v}, sizeof(int64_t));
  double got = NAN;
  TG_SCOPE(C) got = r->run(o.bytes);
  *status = tg_error(C);
  tg_clear_error(C);
  return got;
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static void test_zero(void **state) {
  (void)state;
  for (int i = 0; i < NROWS; i++) {
    const Row *r = &rows[i];
    char set[80], other[80];
    TgStatus s;
    snprintf(set, sizeof set, ".device, .%s = 0, .end_ = 0", r->field);
    snprintf(other, sizeof other, ".x%s = 0, .y = f(.%s = 0), .z = \",.%s=0,\"", r->field, r->field,
             r->field);
    double unset = run(r, 0, NULL, &s);
    if (s) fail_msg("%s without .%s: %s", r->function, r->field, tg_status_name(s));
    if (!same(unset, run(r, 0, other, &s)) || s) fail_msg("%s: .%s was not written", r->function, r->field);
    if (r->type != 'L' && (!same(unset, run(r, r->otherwise, NULL, &s)) || s))
      fail_msg("%s: the default of .%s is not %g", r->function, r->field, r->otherwise);
    double zero = run(r, 0, set, &s);
    if (r->zero == REFUSED) {
      if (s != TG_ERR_VALUE && s != TG_ERR_SHAPE && s != TG_ERR_LIMIT)
        fail_msg("%s: .%s = 0 is not refused but %g, %s", r->function, r->field, zero, tg_status_name(s));
      continue;
    }
    if (s) fail_msg("%s: .%s = 0: %s", r->function, r->field, tg_status_name(s));
    if (same(zero, unset)) fail_msg("%s: .%s = 0 is the default, %.17g", r->function, r->field, zero);
    if (r->zero != TINY) continue;
    double tiny = run(r, 1e-300, set, &s);
    if (!same(zero, tiny) || s)
      fail_msg("%s: .%s = 0 gives %.17g, 1e-300 %.17g", r->function, r->field, zero, tiny);
  }
}

/* ---- tg_abi.json: no field with a default is forgotten above */
static char *json;

static bool in_table(const char *function, const char *field) {
  for (int i = 0; i < NROWS; i++)
    if (!strcmp(rows[i].function, function) && !strcmp(rows[i].field, field)) return true;
  return false;
}

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

static void test_all_defaults(void **state) {
  (void)state;
  int found = 0;
  for
    each_of(member(json, "functions"), f) {
      char name[128], field[128];
      text_of(member(f, "name"), name, sizeof name);
      const char *defaults = member(f, "defaults");
      for (const char *p = defaults ? blank(defaults + 1) : ""; *p == '"';) {
        const char *value = blank(skip_string(p));
        text_of(p, field, sizeof field);
        p = blank(skip_value(value));
        if (*value == '"' || starts(value, "false") || starts(value, "null") || strtod(value, NULL) == 0)
          continue;
        /* no labels: these two have no classes */
        if (!strcmp(name, "tg_mse_opt") || !strcmp(name, "tg_binary_cross_entropy_opt")) continue;
        if (!in_table(name, field)) fail_msg("%s: no row for .%s", name, field);
        found++;
      }
    }
  assert_true(found > 80);
}

/* ---- a struct without its size, given to every function that takes options */
static void test_without_size(void **state) {
  (void)state;
  for (int i = 0; i < NROWS; i++) {
    Row r = rows[i];
    r.size = 0;
    TgStatus s;
    double got = NAN;
    static const unsigned char nothing[1024];
    TG_SCOPE(C) got = r.run(nothing);
    s = tg_error(C);
    if (s != TG_ERR_VALUE || !strstr(tg_errmsg(C), "the size of the Tg") ||
        !strstr(tg_errmsg(C), ".size = sizeof(Tg"))
      fail_msg("%s: %g, %s, %s", r.function, got, tg_status_name(s), tg_errmsg(C));
    tg_clear_error(C);
  }
}

/* Those that no row has. */
static void test_without_size_others(void **state) {
  (void)state;
  const int64_t two[] = {2, 2};
  TgTensor *x = square(), *t[3];
  TgTensor *i32 = tg_cast(VALUES(0, 1), TG_I32);
  const TgDTypeOptions d = {0};
#define NO(call)                                                                                             \
  do {                                                                                                       \
    (void)(call);                                                                                            \
    if (tg_error(C) != TG_ERR_VALUE || !strstr(tg_errmsg(C), "the size of the Tg"))                          \
      fail_msg("%s: %s", #call, tg_errmsg(C));                                                               \
    tg_clear_error(C);                                                                                       \
  } while (0)
  NO(tg_from_text_opt(C, "[1]", &d));
  NO(tg_full_opt(C, 2, two, 1, &d));
  NO(tg_zeros_opt(C, 2, two, &d));
  NO(tg_ones_opt(C, 2, two, &d));
  NO(tg_linspace_opt(C, 0, 1, 3, &d));
  NO(tg_rand_opt(C, 2, two, &d));
  NO(tg_randn_opt(C, 2, two, &d));
  NO(tg_uniform_opt(C, 2, two, 0, 1, &d));
  NO(tg_normal_opt(C, 2, two, 0, 1, &d));
  NO(tg_rand_like_opt(x, &d));
  NO(tg_randn_like_opt(x, &d));
  NO(tg_empty_like_opt(x, &d));
  NO(tg_scaled_uniform_opt(C, 2, two, &d));
  NO(tg_glorot_uniform_opt(C, 2, two, &d));
  NO(tg_randperm_opt(C, 4, &d));
  NO(tg_einsum_opt("ij->ji", &x, 1, &d));
  NO(tg_from_file_opt(C, "/dev/null", TG_U8, 1, two, &(TgFileOptions){0}));
  NO(tg_multinomial_opt(VALUES(1, 2), 1, &(TgMultinomialOptions){0}));
  NO(tg_matmul_opt(x, x, &(TgMatmulOptions){0}));
  NO(tg_dot_opt(x, x, &(TgMatmulOptions){0}));
  NO(tg_mse_opt(x, x, &(TgLossOptions){0}));
  NO(tg_binary_cross_entropy_opt(x, x, &(TgLossOptions){0}));
  NO(tg_binary_cross_entropy_logits_opt(x, x, &(TgLossOptions){0}));
  NO(tg_index_put_opt(x, TG_IDX(TG_ALL), x, &(TgIndexPutOptions){0}));
  NO(tg_backward_opt(tg_sum(x), &(TgGradientOptions){0}));
  NO(tg_svd_opt(x, &t[0], &t[1], &t[2], &(TgSvdOptions){0}));
  NO(tg_interpolate_opt(image(), 2, two, &(TgInterpolateOptions){0}));
  NO(tg_scatter_opt(VALUES(1, 2), 0, i32, VALUES(3, 4), &(TgScatterOptions){0}));
  NO(tg_scatter_reduce_opt(VALUES(1, 2), 0, i32, VALUES(3, 4), TG_SCATTER_ADD, &(TgScatterOptions){0}));
  NO(tg_masked_select_opt(x, tg_gt_scalar(x, 1), &(TgSelectOptions){0}));
  NO(tg_nonzero_opt(x, &(TgSelectOptions){0}));
  NO(tg_max_unpool2d_opt(image(), tg_cast(image(), TG_I32), &(TgPoolOptions){0}));
  NO(tg_opt_opt(C, "", &(TgOptOptions){0}));
  TgState *s = tg_state_new(C);
  NO(tg_load_state_opt(s, s, &(TgLoadOptions){0}));
  NO(tg_safe_save_opt(s, "/nowhere/x", &(TgSafeOptions){0}));
  tg_state_free(s);
  TgMultiheadAttention l = tg_multihead_attention_new(C, 4, 2);
  TgTensor *q = tg_ones(C, TG_SHAPE(2, 1, 4));
  NO(tg_multihead_attention_run_opt(&l, q, q, q, &(TgMultiheadRun){0}));
  tg_multihead_attention_free(&l);
  TgOptim *opt = tg_sgd(C, &x, 1);
  NO(tg_lr_cosine_opt(opt, 3, &(TgLROptions){0}));
  NO(tg_lr_warmup_cosine_opt(opt, 1, 3, &(TgLROptions){0}));
  tg_optim_free(opt);
}

static void test_open(void **state) {
  (void)state;
  TgContext *c = tg_open(&(TgOpenOptions){.device = "INTERP"});
  assert_int_equal(tg_error(c), TG_ERR_VALUE);
  assert_non_null(strstr(tg_errmsg(c), "TgOpenOptions"));
  assert_string_equal(tg_default_device(c), "");
  tg_close(c);
  double first = 0;
  for (int i = 0; i < 2; i++) { /* a seed of 0 is a seed */
    c = tg_open_with(.device = "INTERP", .seed = 0);
    assert_string_equal(tg_default_device(c), "INTERP");
    double got = tg_item_f64(tg_rand(c, TG_SHAPE(1)));
    if (i) assert_true(got == first);
    first = got;
    tg_close(c);
  }
}

/* ---- the forms in which a zero is written */
#define NOTHING .correction = 0

static void test_forms(void **state) {
  (void)state;
  TgTensor *x = VALUES(1, 2, 6); /* variance 7, of the population 14/3 */
  int zero = 0;
  assert_true(fabs(tg_item_f64(tg_var(x)) - 7) < 1e-6);
  assert_true(fabs(tg_item_f64(tg_var(x, .keepdim = false)) - 7) < 1e-6);
  assert_true(fabs(tg_item_f64(tg_var(x, .correction = 0)) - 14.0 / 3) < 1e-6);
  assert_true(fabs(tg_item_f64(tg_var(x, .keepdim = false, .correction = zero)) - 14.0 / 3) < 1e-6);
  assert_true(fabs(tg_item_f64(tg_var(x, NOTHING)) - 14.0 / 3) < 1e-6);
  assert_true(fabs(tg_item_f64(tg_var_opt(x, &TG_WITH(TgVarOptions, .correction = 0))) - 14.0 / 3) < 1e-6);
  assert_true(fabs(tg_item_f64(tg_var_opt(x, &TG_WITH(TgVarOptions))) - 7) < 1e-6);
  assert_null(tg_sum_opt(x, &(TgReduceOptions){.size = sizeof(TgReduceOptions), .set = ".axis = 0"}));
  assert_non_null(strstr(tg_errmsg(C), "TG_AXES(0)"));
  tg_clear_error(C);
  TgAxes none = {0};
  assert_true(tg_item_f64(tg_sum(x, .axis = none)) == 9);
  TgConv2d l = tg_conv2d_new_with(C, 2, 4, 3, true, .stride = TG_SIZES(2), .groups = 2);
  assert_int_equal(l.options.groups, 2);
  assert_int_equal(l.options.stride.v[0], 2);
  assert_null(l.options.set);
  tg_conv2d_free(&l);
  l = tg_conv_new_with(C, 2, 4, 1, ((int64_t[]){3}), false, .padding = TG_SIZES(1));
  assert_int_equal(tg_dim(tg_conv2d_run(&l, tg_ones(C, TG_SHAPE(1, 2, 5))), -1), 5);
  tg_conv2d_free(&l);
  assert_true(tg_option_written(".a, .beta1 = 0", "beta1") && tg_option_written(".beta1", "beta1"));
  assert_true(tg_option_written(".v = {1, 2}, .axis.n = 0", "axis"));
  assert_false(tg_option_written(".beta10 = 0, f(.beta1)", "beta1") || tg_option_written("beta1", "beta1"));
  assert_false(tg_option_written(NULL, "a") || tg_option_written("", "a") ||
               tg_option_written(".s = \"\\\",.a\"", "a"));
  assert_false(tg_option_written(".s = \"", "a") || tg_option_written(".s = ')', (", "a"));
}

static int load(void **state) {
  FILE *f = fopen(TG_ABI, "rb");
  json = calloc(1, 1 << 20);
  if (!f || !json || !fread(json, 1, (1 << 20) - 1, f)) return 1;
  fclose(f);
  return open_context(state);
}

static int unload(void **state) {
  free(json);
  return close_context(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_zero),         cmocka_unit_test(test_all_defaults),
      cmocka_unit_test(test_without_size), cmocka_unit_test(test_without_size_others),
      cmocka_unit_test(test_open),         cmocka_unit_test(test_forms)};
  return cmocka_run_group_tests(tests, load, unload);
}
