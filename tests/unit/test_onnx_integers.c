/* test_onnx_integers.c: quantised ONNX models with integers alone. Each operator and whole networks beside
 * the same model run with floats: 8-bit results are within one unit; no float is in the exported text; what
 * has no such form is refused by name. */
#define _GNU_SOURCE
#include "export/exported.h"
#include "export/qdq.h"
#include "fixture.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/tg-integers-XXXXXX";

static int setup(void **state) {
  (void)state;
  setenv("TG_CACHE", "0", 0);
  return mkdtemp(folder) == NULL;
}

static int teardown(void **state) {
  (void)state;
  return rmdir(folder);
}

static TgContext *opened(const char *device) { return opened_with_seed(device, 7); }

/* ---- one operator: x and z (quantised) go in, y comes out quantised */
typedef struct Operator {
  const char *op, *in, *attrs;
  double scale; /* of y */
  int zero;
  bool signed_;
  int opset;
} Operator;

enum { BATCH = 2, CHANNELS = 4, SIDE = 6, NUMBERS = BATCH * CHANNELS * SIDE * SIDE };

static const Operator operators[] = {
    {"Add", "x z", NULL, 0.05, 7, false, 18},
    {"Sub", "x z", NULL, 0.05, 120, false, 18},
    {"Mul", "x z", NULL, 0.09, 100, false, 18},
    {"Max", "x z", NULL, 0.03, -3, true, 18},
    {"Min", "x z", NULL, 0.03, -3, true, 18},
    {"Add", "x some", NULL, 0.03, 90, false, 18},
    {"Mul", "x some", NULL, 0.03, 90, false, 18},
    {"Mul", "x many", NULL, 0.05, 90, false, 18},
    {"Relu", "x", NULL, 0.0125, 0, false, 18},
    {"LeakyRelu", "x", "alpha=0.1", 0.015, 20, false, 18},
    {"Clip", "x low high", NULL, 0.01, 100, false, 18},
    {"Sigmoid", "x", NULL, 1.0 / 256, 0, false, 18},
    {"Tanh", "x", NULL, 1.0 / 128, 0, true, 18},
    {"HardSwish", "x", NULL, 0.02, 30, false, 18},
    {"Elu", "x", NULL, 0.02, 30, false, 18},
    {"Gelu", "x", NULL, 0.02, 30, false, 18},
    {"MaxPool", "x", "kernel_shape=3,3 pads=1,1,1,1", 0.02, 128, false, 18},
    {"AveragePool", "x", "kernel_shape=2,2 strides=2,2", 0.0107, 128, false, 18},
    {"AveragePool", "x", "kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1", 0.01, 128, false, 18},
    {"AveragePool", "x", "kernel_shape=3,3 pads=1,1,1,1", 0.011, 128, false, 18},
    {"AveragePool", "x", "kernel_shape=3,2 pads=0,1,2,0 strides=2,1", 0.013, 128, false, 18},
    {"GlobalAveragePool", "x", NULL, 0.004, 128, false, 18},
    {"ReduceMean", "x axes", "keepdims=0", 0.004, 128, false, 18},
    {"Concat", "x z", "axis=1", 0.03, 100, false, 18},
    {"Transpose", "x", "perm=0,2,3,1", 0.02, 128, false, 18},
    {"Pad", "x pads low", NULL, 0.02, 128, false, 18},
    {"Conv", "x filters bias", "pads=1,1,1,1", 0.25, 128, false, 18},
    {"Conv", "x filters", "strides=2,2", 0.25, 0, true, 18},
    {"Conv", "x alone", "group=4 pads=1,1,1,1", 0.15, 0, true, 18},
    {"MatMul", "x square", NULL, 0.2, 128, false, 18},
    {"MatMul", "x z", NULL, 0.2, 128, false, 18},
    {"Identity", "x", NULL, 0.0125, 100, false, 18},
    {"ConvTranspose", "x turned bias", "strides=2,2 pads=1,1,1,1", 0.2, 128, false, 18},
    {"ConvTranspose", "x paired", "group=2 strides=2,2", 0.1, 0, true, 18},
    {"ConvTranspose", "x pairs", "group=2 output_padding=1,0 strides=2,1", 0.1, 0, true, 18},
    {"Softmax", "x", NULL, 1.0 / 256, 0, false, 18},
    {"Softmax", "z", "axis=1", 1.0 / 256, -128, true, 18},
    {"LogSoftmax", "x", NULL, 0.03, 255, false, 18},
    {"LogSoftmax", "z", "axis=1", 0.03, 127, true, 18},
    {"Pow", "x two", NULL, 0.025, 0, false, 18},
    {"Div", "x high", NULL, 0.025, 128, false, 18},
    {"PRelu", "x high", NULL, 0.02, 128, false, 18},
    {"Resize", "x nothing grown", NULL, 0.02, 128, false, 18},
    {"Max", "x z some", NULL, 0.03, -3, true, 18},
    {"Sum", "x z many", NULL, 0.06, -3, true, 18},
    {"LayerNormalization", "x many", NULL, 0.03, 0, true, 18},
    {"LayerNormalization", "z many shift", NULL, 0.03, 20, true, 18},
    {"LayerNormalization", "x square", "epsilon=3.5", 0.02, 0, true, 18},
    {"LayerNormalization", "x layer layer", "axis=1", 0.05, 0, true, 18},
    {"LayerNormalization", "x gain shift", NULL, 0.03, 0, true, 18},
    {"RMSNormalization", "x many", NULL, 0.03, 0, true, 23},
    {"RMSNormalization", "z layer", "axis=-3", 0.05, 0, true, 23},
    {"SimplifiedLayerNormalization", "x many", NULL, 0.03, 0, true, 18},
    {"InstanceNormalization", "x four some4", NULL, 0.04, 0, true, 18},
    {"GroupNormalization", "x two2 four2", "num_groups=2", 0.04, 0, true, 18},
    {"GroupNormalization", "x four some4", "num_groups=2", 0.04, 0, true, 21},
};

static void random_floats(float *v, int n, double lo, double hi) {
  unsigned r = 77;
  for (int i = 0; i < n; i++) {
    r = r * 1664525u + 1013904223u;
    v[i] = (float)(lo + (hi - lo) * (double)(r >> 8) / (1 << 24));
  }
}

static void put_constants(Net *n) {
  float low = -0.5f, high = 0.9f, two = 2, grown[] = {1, 1, 2, 1.5f},
        some[CHANNELS] = {0.4f, -1.1f, 0.02f, 1.6f};
  float many[SIDE] = {1, -2, 0.001f, 0.5f, 0.7f, -0.01f};
  float shift[SIDE] = {0.1f, 0, -0.4f, 1, -1.5f, 0.01f}, layer[CHANNELS * SIDE * SIDE];
  random_floats(layer, CHANNELS * SIDE * SIDE, -2, 2);
  net_constant(n, "shift", TG_F32, 1, (int64_t[]){SIDE}, shift);
  net_constant(n, "layer", TG_F32, 3, (int64_t[]){CHANNELS, SIDE, SIDE}, layer);
  net_constant(n, "four", TG_F32, 1, (int64_t[]){CHANNELS}, many);
  net_constant(n, "some4", TG_F32, 1, (int64_t[]){CHANNELS}, some);
  net_constant(n, "two2", TG_F32, 1, (int64_t[]){2}, many),
      net_constant(n, "four2", TG_F32, 1, (int64_t[]){2}, some);
  int64_t pads[] = {0, 0, 1, 2, 0, 1, 0, 3}, axes[] = {2, 3};
  net_constant(n, "low", TG_F32, 0, NULL, &low), net_constant(n, "high", TG_F32, 0, NULL, &high);
  net_constant(n, "two", TG_F32, 0, NULL, &two), net_constant(n, "grown", TG_F32, 1, (int64_t[]){4}, grown);
  net_constant(n, "nothing", TG_F32, 1, (int64_t[]){0}, grown);
  net_constant(n, "some", TG_F32, 3, (int64_t[]){CHANNELS, 1, 1}, some);
  net_constant(n, "many", TG_F32, 1, (int64_t[]){SIDE}, many);
  net_constant(n, "pads", TG_I64, 1, (int64_t[]){8}, pads),
      net_constant(n, "axes", TG_I64, 1, (int64_t[]){2}, axes);
}

/* A name that stands for a weight becomes the one that was made. */
static void put_operator(Net *n, const Operator *o) {
  char in[300] = "", names[200];
  const char *x = net_quantised(n, "x", 0.02, 128, false), *z = net_quantised(n, "z", 0.031, -7, true);
  snprintf(names, sizeof names, "%s", o->in);
  for (char *next, *s = strtok_r(names, " ", &next); s; s = strtok_r(NULL, " ", &next)) {
    const char *is = !strcmp(s, "x")         ? x
                     : !strcmp(s, "z")       ? z
                     : !strcmp(s, "filters") ? net_weight(n, 4, (int64_t[]){5, CHANNELS, 3, 3}, 0.01, 0)
                     : !strcmp(s, "alone")   ? net_weight(n, 4, (int64_t[]){CHANNELS, 1, 3, 3}, 0.01, 0)
                     : !strcmp(s, "bias")    ? net_bias(n, 5, 0.02, 0.01, true)
                     : !strcmp(s, "square")  ? net_weight(n, 2, (int64_t[]){SIDE, SIDE}, 0.01, -1)
                     : !strcmp(s, "gain")    ? net_weight(n, 1, (int64_t[]){SIDE}, 0.01, 0)
                     : !strcmp(s, "turned")  ? net_weight(n, 4, (int64_t[]){CHANNELS, 5, 3, 3}, 0.01, 1)
                     : !strcmp(s, "paired")  ? net_weight(n, 4, (int64_t[]){CHANNELS, 2, 2, 3}, 0.01, 1)
                     : !strcmp(s, "pairs")   ? net_weight(n, 4, (int64_t[]){CHANNELS, 2, 2, 3}, 0.01, -1)
                                             : s;
    snprintf(in + strlen(in), sizeof in - strlen(in), "%s ", is);
  }
  net_node(n, o->op, in, "result", o->attrs);
  net_output(n, net_quantised(n, "result", o->scale, o->zero, o->signed_), TG_F32);
  if (!strstr(o->in, "z")) net_output(n, z, TG_F32);
}

/* Outputs with floats, and with integers alone. */
static void both_run(const char *what, Net *n, const float *v, int count, int nin, int ndim,
                     const int64_t *dims, double off) {
  TgContext *c = opened("INTERP");
  TG_SCOPE(c) {
    TgOnnx *plain = net_open(n, c), *whole = net_open(n, c);
    if (!plain || !whole || tg_onnx_integers(whole)) fail_msg("%s: %s", what, tg_errmsg(c));
    TgTensor *in[2], *q[2], *want = NULL, *got = NULL;
    const char *names[2];
    TgOnnxValue is, out;
    double scale;
    int64_t zero;
    for (int i = 0; i < nin; i++) {
      assert_true(tg_onnx_input(whole, (size_t)i, &is));
      names[i] = is.name;
      in[i] = tg_from(c, v + i * count, TG_F32, ndim, dims);
      if (!tg_onnx_scale(whole, is.name, &scale, &zero)) { /* the model takes integers anyway */
        in[i] = q[i] = tg_cast(in[i], is.dtype);
        continue;
      }
      double lo = is.dtype == TG_U8 ? 0 : -128;
      q[i] =
          tg_cast(tg_clamp(tg_add_scalar(tg_round(tg_div_scalar(in[i], scale)), (double)zero), lo, lo + 255),
                  is.dtype);
    }
    if (tg_onnx_run(plain, names, in, nin, &want, 1) || tg_onnx_run(whole, names, q, nin, &got, 1))
      fail_msg("%s: %s", what, tg_errmsg(c));
    assert_true(tg_onnx_output(whole, 0, &out));
    TgDType made = tg_dtype(got);
    double lo = made == TG_U8 ? 0 : made == TG_I8 ? -128 : -32768, hi = made == TG_I16 ? 32767 : lo + 255;
    assert_true(made == TG_U8 || made == TG_I8 || made == TG_I16);
    size_t m = (size_t)tg_numel(want), wrong = 0, lowest = 0;
    double *a = malloc((m + 1) * sizeof *a), *b = malloc((m + 1) * sizeof *b);
    if (tg_read_f64(want, a, m) || tg_read_f64(got, b, m)) fail_msg("%s: %s", what, tg_errmsg(c));
    if (!tg_onnx_scale(whole, out.name, &scale, &zero)) scale = 1, zero = 0;
    for (size_t i = 0; i < m; i++) {
      double w = nearbyint(a[i] / scale) + (double)zero;
      wrong += w != b[i];
      lowest += b[i] == lo || b[i] == hi || b[i] == (double)zero;
      if (fabs(w - b[i]) > off) fail_msg("%s [%zu]: %g, with floats %g", what, i, b[i], w);
    }
    if (wrong * 20 > m + 20) fail_msg("%s: %zu of %zu numbers are off by one", what, wrong, m);
    if (lowest * 10 > m * 9 + 10) fail_msg("%s: the test says nothing", what);
    free(a), free(b);
    tg_onnx_free(plain), tg_onnx_free(whole);
  }
  tg_close(c);
}

static void test_operators(void **state) {
  (void)state;
  float v[2 * NUMBERS];
  random_floats(v, 2 * NUMBERS, -2.5, 2.5);
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    Net *n = net_new();
    int64_t dims[] = {BATCH, CHANNELS, SIDE, SIDE};
    char what[100];
    net_input(n, "x", TG_F32, 4, dims), net_input(n, "z", TG_F32, 4, dims);
    net_opset(n, operators[i].opset);
    put_constants(n), put_operator(n, &operators[i]);
    snprintf(what, sizeof what, "%s of %s", operators[i].op, operators[i].in);
    both_run(what, n, v, NUMBERS, 2, 4, dims, 1);
    net_free(n);
  }
}

/* Places are numbers as they are. A long row has sums of exponentials that need all their bits. */
static void test_places_and_rows(void **state) {
  (void)state;

  enum { ROW = 3000 };

  static float v[2 * ROW];
  int64_t dims[] = {2, ROW};
  random_floats(v, 2 * ROW, -2.5, 2.5);
  Net *n = net_new();
  net_input(n, "x", TG_F32, 2, dims);
  net_node(n, "LogSoftmax", net_quantised(n, "x", 0.02, 128, false), "result", NULL);
  net_output(n, net_quantised(n, "result", 0.05, 255, false), TG_F32);
  both_run("a row of 3000", n, v, 2 * ROW, 1, 2, dims, 1);
  net_free(n);
  n = net_new();
  net_input(n, "x", TG_F32, 2, dims);
  net_node(n, "ArgMax", net_quantised(n, "x", 0.02, 128, false), "y", "axis=1 keepdims=0");
  net_output(n, "y", TG_I64);
  TgContext *c = opened("INTERP");
  TgOnnx *whole = net_open(n, c);
  assert_true(whole && !tg_onnx_integers(whole));
  TgTensor *q = tg_cast(
      tg_clamp(tg_round(tg_add_scalar(tg_div_scalar(tg_from(c, v, TG_F32, 2, dims), 0.02), 128)), 0, 255),
      TG_U8);
  const char *name = "x";
  TgTensor *got, *want = tg_argmax(q, .axis = TG_AXES(1));
  double a[2], b[2];
  if (tg_onnx_run(whole, &name, &q, 1, &got, 1)) fail_msg("%s", tg_errmsg(c));
  assert_true(!tg_read_f64(got, a, 2) && !tg_read_f64(want, b, 2));
  assert_true(a[0] == b[0] && a[1] == b[1]);
  tg_onnx_free(whole), tg_close(c);
  net_free(n);
}

static void norm_runs(const float *v, int rank, const int64_t *dims, int rms, const char *attrs) {
  int n = (int)dims[rank - 1];
  Net *net = net_new();
  net_opset(net, 23);
  net_input(net, "x", TG_F32, rank, dims);
  float *ones = malloc((size_t)n * sizeof *ones);
  for (int i = 0; i < n; i++)
    ones[i] = 1;
  net_constant(net, "ones", TG_F32, 1, &dims[rank - 1], ones), free(ones);
  char in[100];
  snprintf(in, sizeof in, "%s ones", net_quantised(net, "x", 1.0 / 64, 0, true));
  net_node(net, rms ? "RMSNormalization" : "LayerNormalization", in, "result", attrs);
  net_output(net, net_quantised_as(net, "result", (n > 64 ? sqrt(n) : 8) / 32000, 0, TG_I16), TG_F32);
  snprintf(in, sizeof in, "%s of %d, %d axes", rms ? "root mean square" : "layers", n, rank);
  both_run(in, net, v, 0, 1, rank, dims, 1);
  net_free(net);
}

/* Norms in 16 bits, which shows what they compute: a row of random numbers, of one that stands out, of equal ones, of
 * two neighbours, of what epsilon outweighs. */
static void test_norms_fine(void **state) {
  (void)state;

  enum { ROWS = 5, MOST = 3000 };

  static float v[ROWS * MOST];
  static const int lengths[] = {1, 2, 7, 64, 768, MOST};
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
    for (int rms = 0; rms < 2; rms++) {
      int n = lengths[k];
      int64_t dims[] = {ROWS, n};
      random_floats(v, n, -2, 1.98);
      for (int i = 0; i < n; i++) {
        v[n + i] = i == n / 2 ? 1.96875f : -0.015625f;
        v[2 * n + i] = 0.7f;
        v[3 * n + i] = i % 3 ? 1.96875f : 1.953125f;
        v[4 * n + i] = i % 2 ? 0.015625f : -0.015625f;
      }
      for (int rank = 1; rank <= 2; rank++) /* the first row alone, then all */
        norm_runs(v, rank, dims + 2 - rank, rms, k % 2 ? "epsilon=0.003" : NULL);
    }
}

/* Operators that are quantised within, beside their results with floats. */
static void test_qlinear(void **state) {
  (void)state;

  static const struct {
    const char *op, *attrs;
    int parts;  /* inputs with a scale and a zero point each */
    bool ahead; /* those of the result come first */
    double scale;
    int zero;
  } of[] = {{"QLinearAdd", NULL, 2, false, 0.05, 100},
            {"QLinearMul", NULL, 2, false, 0.09, 100},
            {"QLinearSigmoid", NULL, 1, false, 1.0 / 256, 0},
            {"QLinearSoftmax", "axis=1 opset=13", 1, false, 1.0 / 256, 0},
            {"QLinearSoftmax", "axis=2 opset=12", 1, false, 1.0 / 1024, 0},
            {"QLinearLeakyRelu", "alpha=0.2", 1, false, 0.02, 40},
            {"QLinearAveragePool", "kernel_shape=2,3 pads=1,0,0,2 strides=1,2", 1, false, 0.012, 128},
            {"QLinearAveragePool", "kernel_shape=2,2 channels_last=1", 1, false, 0.011, 128},
            {"QLinearGlobalAveragePool", NULL, 1, false, 0.004, 128},
            {"QLinearConcat", "axis=1", 2, true, 0.03, 110}};

  float v[2 * NUMBERS];
  random_floats(v, 2 * NUMBERS, 0, 120);
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    Net *n = net_new();
    int64_t dims[] = {BATCH, CHANNELS, SIDE, SIDE};
    char in[400] = "", to[100];
    net_input(n, "x", TG_U8, 4, dims), net_input(n, "z", TG_I8, 4, dims);
    snprintf(to, sizeof to, "%s %s ", net_scale(n, of[i].scale), net_zero(n, of[i].zero, TG_U8));
    if (of[i].ahead) strcat(in, to);
    for (int k = 0; k < of[i].parts; k++)
      snprintf(in + strlen(in), sizeof in - strlen(in), "%s %s %s ", k ? "z" : "x",
               net_scale(n, k ? 0.031 : 0.02), net_zero(n, k ? -7 : 60, k ? TG_I8 : TG_U8));
    if (!of[i].ahead) strcat(in, to);
    net_node(n, of[i].op, in, "y", of[i].attrs);
    net_output(n, "y", TG_U8);
    both_run(of[i].op, n, v, NUMBERS, 2, 4, dims, 1);
    net_free(n);
  }
}

/* A unit of one layer may move a result of the last by another one. */
static void test_networks(void **state) {
  (void)state;
  static float v[28 * 28];
  random_floats(v, 28 * 28, 0, 1);
  Net *n = net_digit(false);
  both_run("digit", n, v, 0, 1, 4, (int64_t[]){1, 1, 28, 28}, 1);
  net_free(n);
  n = net_keyword();
  random_floats(v, 490, -3, 3);
  both_run("keyword", n, v, 0, 1, 4, (int64_t[]){1, 1, 49, 10}, 2);
  net_free(n);
  n = net_digit(true);
  random_floats(v, 28 * 28, 0, 255);
  both_run("digit by QLinear", n, v, 0, 1, 4, (int64_t[]){1, 1, 28, 28}, 1);
  net_free(n);
}

/* ---- the text */
static TgStatus run_net(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgOnnxValue v;
  (void)c;
  tg_onnx_input(user, 0, &v);
  return tg_onnx_run(user, &v.name, in, nin, out, nout);
}

static void text_of(const char *what, Net *n, int64_t *dims, TgDType d) {
  TgContext *c = opened("INTERP:C99");
  TgOnnx *m = net_open(n, c);
  if (!m || tg_onnx_integers(m)) fail_msg("%s: %s", what, tg_errmsg(c));
  TgJit *jit = tg_jit(c, run_net, m);
  TgTensor *x = tg_clone(tg_randint(c, 4, dims, 0, 100, d)), *out;
  static char pixels[1000], want[100], got[sizeof want];
  TgCText t;
  Exported e;
  for (int i = 0; i < 2; i++)
    if (tg_jit_run(jit, &x, 1, &out, 1)) fail_msg("%s: %s", what, tg_errmsg(c));
  if (tg_jit_to_c(jit, &t)) fail_msg("%s: %s", what, tg_errmsg(c));
  static const char *const floats[] = {"float", "double", "f32", "f64", "math.h"};
  for (int i = 0; i < 5; i++) {
    const char *at = strstr(t.source, floats[i]);
    if (!at) at = strstr(t.header, floats[i]);
    if (at) fail_msg("%s: there are floats in the text: %.60s", what, at);
  }
  assert_true(exported_new(&e, jit, folder, "gcc -O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error",
                           (TgCOptions){0}));
  size_t count = tg_nbytes(out);
  assert_true(count <= sizeof want && tg_nbytes(x) <= sizeof pixels);
  tg_read(x, pixels, tg_nbytes(x)), tg_read(out, want, count);
  assert_int_equal(exported_run(&e, e.m, (void *[]){pixels, got}), 0);
  assert_memory_equal(got, want, count);
  exported_free(&e);
  char path[300];
  snprintf(path, sizeof path, "rm -f %s/*", folder);
  assert_int_equal(system(path), 0);
  tg_jit_free(jit), tg_onnx_free(m);
  tg_close(c);
}

static void test_text(void **state) {
  (void)state;
  Net *n = net_digit(false);
  text_of("digit", n, (int64_t[]){1, 1, 28, 28}, TG_U8), net_free(n);
  n = net_digit(true);
  text_of("digit by QLinear", n, (int64_t[]){1, 1, 28, 28}, TG_U8), net_free(n);
  n = net_keyword();
  text_of("keyword", n, (int64_t[]){1, 1, 49, 10}, TG_I8), net_free(n);
  static const char *const norms[][2] = {
      {"LayerNormalization", "axis=2"}, {"RMSNormalization", NULL}, {"GroupNormalization", "num_groups=1"}};
  for (size_t i = 0; i < 3; i++) {
    int64_t dims[] = {1, 3, 4, SIDE}, each[] = {i ? i > 1 ? 3 : SIDE : 4, SIDE};
    n = net_new(), net_opset(n, 23);
    net_input(n, "x", TG_F32, 4, dims);
    char in[200];
    const char *w = net_floats(n, i ? 1 : 2, each, -1, 2);
    snprintf(in, sizeof in, "%s %s %s", net_quantised(n, "x", 0.02, 128, false), w, i == 1 ? "" : w);
    net_node(n, norms[i][0], in, "y", norms[i][1]);
    net_output(n, net_quantised(n, "y", 0.03, 3, true), TG_F32);
    text_of(norms[i][0], n, dims, TG_U8), net_free(n);
  }
}

/* ---- what has no such form */
static void refused(Net *n, const char *says) {
  TgContext *c = opened("INTERP");
  TG_SCOPE(c) {
    TgOnnx *m = net_open(n, c);
    TgTensor *x = tg_zeros(c, TG_SHAPE(1, 4), .dtype = TG_U8), *out;
    if (!m) fail_msg("%s", tg_errmsg(c));
    if (!tg_onnx_integers(m) && !tg_onnx_run(m, (const char *[]){"x"}, &x, 1, &out, 1))
      fail_msg("not refused: %s", says);
    if (!strstr(tg_errmsg(c), says)) fail_msg("%s, not: %s", tg_errmsg(c), says);
    tg_clear_error(c);
    tg_onnx_free(m);
  }
  tg_close(c);
  net_free(n);
}

static Net *of_four(void) {
  Net *n = net_new();
  net_input(n, "x", TG_F32, 2, (int64_t[]){1, 4});
  return n;
}

static void test_refused(void **state) {
  (void)state;
  Net *n = of_four();
  net_node(n, "Relu", "x", "y", NULL), net_output(n, "y", TG_F32);
  refused(n, "input x is of floats");
  n = of_four();
  net_node(n, "LpNormalization", net_quantised(n, "x", .1, 0, false), "y", NULL), net_output(n, "y", TG_F32);
  refused(n, "y (LpNormalization): integers alone: the operator has no form without floats");
  n = of_four();
  char both[100];
  const char *x = net_quantised(n, "x", .1, 0, false);
  snprintf(both, sizeof both, "%s %s", x, x);
  net_node(n, "Div", both, "y", NULL), net_output(n, "y", TG_F32);
  refused(n, "y (Div): integers alone: input 1 must be a constant number");
  n = of_four();
  net_node(n, "Relu", net_quantised(n, "x", .1, 0, false), "y", NULL), net_output(n, "y", TG_F32);
  refused(n, "output y is of floats");
  n = of_four();
  net_node(n, "ReduceMean", net_quantised(n, "x", .1, 0, false), "s", "keepdims=0");
  char in[100];
  snprintf(in, sizeof in, "%s s", net_quantised(n, "x", .1, 0, false));
  net_node(n, "QuantizeLinear", in, "y", NULL), net_output(n, "y", TG_U8);
  refused(n, "input x is of floats, and not taken by one QuantizeLinear");
  assert_int_equal(tg_onnx_integers(NULL), TG_ERR_NOMEM);
  assert_false(tg_onnx_scale(NULL, "x", NULL, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_operators),  cmocka_unit_test(test_places_and_rows),
      cmocka_unit_test(test_norms_fine), cmocka_unit_test(test_qlinear),
      cmocka_unit_test(test_networks),   cmocka_unit_test(test_text),
      cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
