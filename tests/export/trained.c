/* trained.c: see trained.h. Two convolutions and a layer, one time through the training pictures. Weights have a
 * scale for each channel, a layer's results one for all, by what they are for some training pictures. */
#include "export/trained.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tg_nn.h>

enum { BATCH = 100, STEPS = 400, LAYERS = 3, LOOKED_AT = 1000, FIRST = 8, SECOND = 16, FLAT = SECOND * 49 };

/* layer: weights and biases by turns */
typedef struct Layers {
  TgTensor *layer[2 * LAYERS];
  TgOptim *optim;
} Layers;

static const int64_t shapes[LAYERS][4] = {{FIRST, 1, 5, 5}, {SECOND, FIRST, 5, 5}, {DIGITS, FLAT}};

/* What each layer gives, pooled where it is; y: those of all layers. x: u8 */
static TgTensor *forward(const Layers *d, TgTensor *x, TgTensor **y) {
  x = tg_div_scalar(tg_float(x), 255);
  for (int i = 0; i < 2; i++) {
    x = tg_conv2d(x, d->layer[2 * i], .bias = d->layer[2 * i + 1], .padding = TG_SIZES(2, 2));
    y[i] = x = tg_max_pool2d(tg_relu(x), .kernel = TG_SIZES(2, 2));
  }
  return y[2] = tg_add(tg_matmul(tg_flatten(x, 1, -1), tg_transpose(d->layer[4], 0, 1)), d->layer[5]);
}

static TgStatus step(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Layers *d = user;
  TgTensor *y[LAYERS];
  (void)c, (void)nin, (void)nout;
  out[0] = tg_sparse_cross_entropy(forward(d, in[0], y), in[1]);
  TgStatus s = tg_backward(out[0]);
  return s ? s : tg_optim_step(d->optim);
}

static TgTensor *part(TgTensor *t, int64_t from, int64_t n) {
  return tg_contiguous(tg_slice(t, 0, from, from + n));
}

static void learned(TgContext *c, Layers *d, TgTensor *const data[4]) {
  TgTensor *all[2 * LAYERS];
  for (int i = 0; i < LAYERS; i++) {
    int rank = i < 2 ? 4 : 2;
    double fan = 1;
    for (int k = 1; k < rank; k++)
      fan *= (double)shapes[i][k];
    all[2 * i] = d->layer[2 * i] = tg_clone(tg_mul_scalar(tg_randn(c, rank, shapes[i]), sqrt(2 / fan)));
    all[2 * i + 1] = d->layer[2 * i + 1] = tg_clone(tg_zeros(c, TG_SHAPE(shapes[i][0])));
  }
  d->optim = tg_adam(c, all, 2 * LAYERS, .lr = 2e-3);
  TgJit *jit = tg_jit(c, step, d);
  for (int i = 0; i < STEPS && !tg_error(c); i++)
    TG_SCOPE(c) {
      TgTensor *in[] = {part(data[0], i * BATCH, BATCH), part(data[1], i * BATCH, BATCH)}, *loss;
      if (!tg_realize_many(in, 2)) tg_jit_run(jit, in, 2, &loss, 1);
    }
  tg_jit_free(jit), tg_optim_free(d->optim);
}

/* most: of each layer's results, for some pictures */
static bool looked_at(TgContext *c, const Layers *d, TgTensor *const data[4], double *most, double *correct) {
  TgTensor *y[LAYERS];
  double right = 0;
  TG_SCOPE(c) {
    forward(d, part(data[0], 0, LOOKED_AT), y);
    for (int i = 0; i < LAYERS; i++)
      most[i] = tg_item_f64(tg_max(tg_abs(y[i])));
    for (int i = 0; i < TESTED; i += LOOKED_AT) {
      TgTensor *says = tg_argmax(forward(d, part(data[2], i, LOOKED_AT), y), .axis = TG_AXES(1));
      right +=
          tg_item_f64(tg_sum(tg_cast(tg_eq(says, tg_cast(part(data[3], i, LOOKED_AT), TG_I32)), TG_F32)));
    }
  }
  *correct = right / TESTED;
  return !tg_error(c);
}

/* ---- the quantised model */
/* The weights and the bias of a layer as constants; their names, through DequantizeLinear. */
static bool layer_put(Net *n, const Layers *d, int i, double x_scale, char *w_name, char *b_name) {
  int64_t channels = shapes[i][0], count = tg_numel(d->layer[2 * i]), each = count / channels;
  float *w = malloc((size_t)count * sizeof *w), b[SECOND], ws[SECOND], bs[SECOND];
  int8_t *q = malloc((size_t)count);
  int32_t bq[SECOND];
  char s[4][20], in[60];
  bool ok = w && q && !tg_read(d->layer[2 * i], w, (size_t)count * sizeof *w) &&
            !tg_read(d->layer[2 * i + 1], b, (size_t)channels * sizeof *b);
  for (int64_t k = 0; ok && k < channels; k++) {
    float most = 1e-6f;
    for (int64_t j = 0; j < each; j++)
      most = fmaxf(most, fabsf(w[k * each + j]));
    ws[k] = most / 127;
    bs[k] = (float)(ws[k] * x_scale);
    for (int64_t j = 0; j < each; j++)
      q[k * each + j] = (int8_t)lrintf(w[k * each + j] / ws[k]);
    bq[k] = (int32_t)lrintf(b[k] / bs[k]);
  }
  for (int k = 0; k < 4; k++)
    snprintf(s[k], sizeof s[k], "%c%d", "wvbc"[k], i);
  snprintf(w_name, 20, "weight%d", i), snprintf(b_name, 20, "bias%d", i);
  if (ok) {
    net_constant(n, s[0], TG_I8, i < 2 ? 4 : 2, shapes[i], q),
        net_constant(n, s[1], TG_F32, 1, &channels, ws);
    net_constant(n, s[2], TG_I32, 1, &channels, bq), net_constant(n, s[3], TG_F32, 1, &channels, bs);
    snprintf(in, sizeof in, "%s %s", s[0], s[1]), net_node(n, "DequantizeLinear", in, w_name, "axis=0");
    snprintf(in, sizeof in, "%s %s", s[2], s[3]), net_node(n, "DequantizeLinear", in, b_name, "axis=0");
  }
  free(w), free(q);
  return ok;
}

static bool quantised(Net *n, const Layers *d, const double *most) {
  char w[20], b[20], in[100], y[20], p[20];
  double scale = 1.0 / 255;
  net_input(n, "x", TG_U8, 4, (int64_t[]){1, 1, 28, 28});
  snprintf(in, sizeof in, "x %s %s", net_scale(n, scale), net_zero(n, 0, TG_U8));
  net_node(n, "DequantizeLinear", in, "real", NULL);
  const char *x = "real";
  for (int i = 0; i < LAYERS; i++) {
    if (!layer_put(n, d, i, scale, w, b)) return false;
    scale = most[i] / (i < 2 ? 255 : 127);
    snprintf(in, sizeof in, "%s %s %s", x, w, b);
    snprintf(y, sizeof y, "y%d", i), snprintf(p, sizeof p, "p%d", i);
    net_node(n, i < 2 ? "Conv" : "Gemm", in, y, i < 2 ? "pads=2,2,2,2" : "transB=1");
    if (i == 2) break;
    net_node(n, "Relu", y, p, NULL);
    x = net_quantised(n, p, scale, 0, false);
    snprintf(p, sizeof p, "m%d", i);
    net_node(n, "MaxPool", x, p, "kernel_shape=2,2 strides=2,2");
    x = i ? "flat" : "m0";
    if (i) net_node(n, "Flatten", p, "flat", NULL);
  }
  snprintf(in, sizeof in, "%s %s %s", y, net_scale(n, scale), net_zero(n, 0, TG_I8));
  net_node(n, "QuantizeLinear", in, "says", NULL);
  net_output(n, "says", TG_I8);
  return true;
}

bool trained_new(Trained *t, TgContext *c, const char *folder) {
  TgTensor *data[4];
  Layers d;
  double most[LAYERS];
  *t = (Trained){.net = net_new(), .pictures = malloc(PIXELS * TESTED), .labels = malloc(TESTED)};
  bool ok = t->net && t->pictures && t->labels && !tg_mnist(c, folder, data);
  if (ok) learned(c, &d, data);
  ok = ok && looked_at(c, &d, data, most, &t->correct) && quantised(t->net, &d, most) &&
       !tg_read(tg_contiguous(data[2]), t->pictures, PIXELS * TESTED) &&
       !tg_read(tg_contiguous(data[3]), t->labels, TESTED);
  if (ok) return true;
  printf("trained: %s\n", tg_errmsg(c));
  trained_free(t);
  return false;
}

void trained_free(Trained *t) {
  if (t->net) net_free(t->net);
  free(t->pictures), free(t->labels);
  *t = (Trained){0};
}
