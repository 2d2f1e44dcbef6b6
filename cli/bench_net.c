/* bench_net.c: `tg bench net`: times single convolutions, whole networks and training steps with random
 * weights, each captured once (tg_jit) and replayed. Out: a line per case: ms of the first call, compiling
 * included; the least and the median ms of a replay; and the multiplications and additions per second in the
 * fastest replay. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "programs.h"
#include "tg_nn.h"
#include <stdlib.h>

/* ---- a network. Its layers are made when its function first runs; later runs find them in the same
 * order. */
typedef struct Net {
  TgContext *ctx;
  TgConv2d *conv;
  TgBatchNorm *norm;
  TgLinear head;
  int nconv, nnorm, at_conv, at_norm;
  bool made;
  double flops; /* counted in the run that makes the layers */
  const struct Case *c;
  TgOptim *opt;
  TgTensor *label;
} Net;

typedef struct Case {
  const char *name;
  TgTensor *(*run)(Net *n, TgTensor *x);
  int64_t batch, channels, size; /* sizes of the input */
  int64_t a[5];                  /* meaning depends on run */
  bool learns;
} Case;

enum { CLASSES = 1000, MOST_LAYERS = 256 };

static TgTensor *conv(Net *n, TgTensor *x, int64_t out, int kernel, int stride, int groups) {
  int64_t in = tg_dim(x, 1);
  if (!n->made && n->nconv < MOST_LAYERS) {
    TgConvOptions o = {.size = sizeof o, .groups = groups};
    o.stride = TG_SIZES(stride);
    o.padding = TG_SIZES(kernel / 2);
    n->conv[n->nconv++] = tg_conv2d_new(n->ctx, in, out, kernel, false, &o);
  }
  TgTensor *y = tg_conv2d_run(&n->conv[n->at_conv++], x);
  if (!n->made) n->flops += 2.0 * (double)tg_numel(y) * (double)(in / groups * kernel * kernel);
  return y;
}

static TgTensor *norm(Net *n, TgTensor *x) {
  if (!n->made && n->nnorm < MOST_LAYERS) n->norm[n->nnorm++] = tg_batch_norm_new(n->ctx, tg_dim(x, 1));
  return tg_batch_norm_run(&n->norm[n->at_norm++], x);
}

static TgTensor *conv_norm(Net *n, TgTensor *x, int64_t out, int kernel, int stride, int groups) {
  return norm(n, conv(n, x, out, kernel, stride, groups));
}

static TgTensor *head(Net *n, TgTensor *x) { /* the mean of each channel, then a linear layer */
  TgTensor *h = tg_mean(x, .axis = TG_AXES(2, 3));
  if (!n->made) n->head = tg_linear_new(n->ctx, tg_dim(x, 1), CLASSES, true);
  return tg_linear_run(&n->head, h);
}

static TgTensor *halved(TgTensor *x) {
  return tg_max_pool2d(x, .kernel = TG_SIZES(3), .stride = TG_SIZES(2), .padding = TG_SIZES(1));
}

/* ---- single layers; a: output channels, kernel, stride, groups */
static TgTensor *one_conv(Net *n, TgTensor *x) {
  const int64_t *a = n->c->a;
  return conv(n, x, a[0], (int)a[1], (int)a[2], (int)a[3]);
}

static TgTensor *one_dilated(Net *n, TgTensor *x) { /* a: output channels, kernel, dilation */
  const int64_t *a = n->c->a;
  if (!n->made) {
    TgConvOptions o = {.size = sizeof o, .dilation = TG_SIZES((int)a[2])};
    o.padding = TG_SIZES((int)(a[1] / 2 * a[2]));
    n->conv[n->nconv++] = tg_conv2d_new(n->ctx, tg_dim(x, 1), a[0], a[1], false, &o);
    n->flops = 2.0 * (double)tg_numel(x) * (double)(a[0] * a[1] * a[1]);
  }
  return tg_conv2d_run(&n->conv[n->at_conv++], x);
}

static TgTensor *one_transposed(Net *n, TgTensor *x) {
  const int64_t *a = n->c->a;
  if (!n->made) n->conv[n->nconv++] = tg_conv2d_new(n->ctx, a[0], tg_dim(x, 1), a[1], false, NULL);
  TgTensor *y =
      tg_conv_transpose2d(x, n->conv[0].weight, .stride = TG_SIZES((int)a[2]), .padding = TG_SIZES(1));
  if (!n->made) n->flops = 2.0 * (double)tg_numel(x) * (double)(a[0] * a[1] * a[1]);
  return y;
}

/* ---- networks */
static TgTensor *residual(Net *n, TgTensor *x, int64_t out, int stride) {
  TgTensor *h = tg_relu(conv_norm(n, x, out, 3, stride, 1));
  h = conv_norm(n, h, out, 3, 1, 1);
  if (stride > 1 || tg_dim(x, 1) != out) x = conv_norm(n, x, out, 1, stride, 1);
  return tg_relu(tg_add(h, x));
}

static TgTensor *resnet18(Net *n, TgTensor *x) {
  TgTensor *h = halved(tg_relu(conv_norm(n, x, 64, 7, 2, 1)));
  for (int stage = 0; stage < 4; stage++)
    for (int block = 0; block < 2; block++)
      h = residual(n, h, 64 << stage, stage && !block ? 2 : 1);
  return head(n, h);
}

static TgTensor *mobilenet1(Net *n, TgTensor *x) {
  static const int wide[13] = {64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024};
  TgTensor *h = tg_relu(conv_norm(n, x, 32, 3, 2, 1));
  for (int i = 0; i < 13; i++) {
    bool shrinks = i == 1 || i == 3 || i == 5 || i == 11;
    h = tg_relu(conv_norm(n, h, tg_dim(h, 1), 3, shrinks ? 2 : 1, (int)tg_dim(h, 1)));
    h = tg_relu(conv_norm(n, h, wide[i], 1, 1, 1));
  }
  return head(n, h);
}

static TgTensor *relu6(TgTensor *x) { return tg_minimum(tg_relu(x), tg_full(tg_context(x), 0, NULL, 6)); }

static TgTensor *mobilenet2(Net *n, TgTensor *x) {
  static const int block[7][4] = {
      {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}; /* expansion, channels out, repetitions, stride */
  TgTensor *h = relu6(conv_norm(n, x, 32, 3, 2, 1));
  for (int b = 0; b < 7; b++)
    for (int i = 0; i < block[b][2]; i++) {
      int stride = i ? 1 : block[b][3], mid = (int)tg_dim(h, 1) * block[b][0];
      TgTensor *r = block[b][0] > 1 ? relu6(conv_norm(n, h, mid, 1, 1, 1)) : h;
      r = conv_norm(n, relu6(conv_norm(n, r, mid, 3, stride, mid)), block[b][1], 1, 1, 1);
      h = stride == 1 && tg_dim(h, 1) == block[b][1] ? tg_add(h, r) : r;
    }
  return head(n, relu6(conv_norm(n, h, 1280, 1, 1, 1)));
}

static TgTensor *densenet121(Net *n, TgTensor *x) {
  static const int layers[4] = {6, 12, 24, 16};
  TgTensor *h = halved(tg_relu(conv_norm(n, x, 64, 7, 2, 1)));
  for (int b = 0; b < 4; b++) {
    for (int i = 0; i < layers[b]; i++) {
      TgTensor *r = conv(n, tg_relu(norm(n, h)), 128, 1, 1, 1);
      r = conv(n, tg_relu(norm(n, r)), 32, 3, 1, 1);
      h = tg_cat((TgTensor *[]){h, r}, 2, 1);
    }
    if (b == 3) break;
    h = conv(n, tg_relu(norm(n, h)), tg_dim(h, 1) / 2, 1, 1, 1);
    h = tg_avg_pool2d(h, .kernel = TG_SIZES(2), .stride = TG_SIZES(2));
  }
  return head(n, tg_relu(norm(n, h)));
}

/* Four convolutions, two of them followed by a batch norm and a pooling that halves the sides, and a linear
 * layer: a small network for 28x28 digits. */
static TgTensor *digits(Net *n, TgTensor *x) {
  static const int io[4][2] = {{32, 5}, {32, 5}, {64, 3}, {64, 3}};
  for (int i = 0; i < 4; i++) {
    int64_t in = tg_dim(x, 1);
    if (!n->made) n->conv[n->nconv++] = tg_conv2d_new(n->ctx, in, io[i][0], io[i][1], true, NULL);
    x = tg_relu(tg_conv2d_run(&n->conv[n->at_conv++], x));
    if (!n->made) n->flops += 2.0 * (double)tg_numel(x) * (double)(in * io[i][1] * io[i][1]);
    if (i % 2) x = tg_max_pool2d(norm(n, x));
  }
  TgTensor *h = tg_flatten(x, 1, -1);
  if (!n->made) n->head = tg_linear_new(n->ctx, tg_dim(h, 1), 10, true);
  return tg_linear_run(&n->head, h);
}

static const Case cases[] = {
    {"conv-64-56", one_conv, 1, 64, 56, {64, 3, 1, 1}, false},
    {"conv-128-28", one_conv, 1, 128, 28, {128, 3, 1, 1}, false},
    {"conv-256-14", one_conv, 1, 256, 14, {256, 3, 1, 1}, false},
    {"conv-512-7", one_conv, 1, 512, 7, {512, 3, 1, 1}, false},
    {"conv-8x64-56", one_conv, 8, 64, 56, {64, 3, 1, 1}, false},
    {"conv-8x128-28", one_conv, 8, 128, 28, {128, 3, 1, 1}, false},
    {"conv-8x256-14", one_conv, 8, 256, 14, {256, 3, 1, 1}, false},
    {"conv-8x512-7", one_conv, 8, 512, 7, {512, 3, 1, 1}, false},
    {"conv-stem", one_conv, 1, 3, 224, {64, 7, 2, 1}, false},
    {"conv-half", one_conv, 1, 64, 56, {128, 3, 2, 1}, false},
    {"conv-1x1-wide", one_conv, 1, 64, 56, {256, 1, 1, 1}, false},
    {"conv-1x1-narrow", one_conv, 1, 256, 56, {64, 1, 1, 1}, false},
    {"conv-1x1-14", one_conv, 1, 1024, 14, {256, 1, 1, 1}, false},
    {"conv-1x1-7", one_conv, 1, 512, 7, {2048, 1, 1, 1}, false},
    {"conv-1x1-half", one_conv, 1, 256, 56, {512, 1, 2, 1}, false},
    {"conv-dilated", one_dilated, 1, 128, 28, {128, 3, 2}, false},
    {"depthwise-56", one_conv, 1, 128, 56, {128, 3, 1, 128}, false},
    {"depthwise-14", one_conv, 1, 512, 14, {512, 3, 1, 512}, false},
    {"depthwise-half", one_conv, 1, 128, 56, {128, 3, 2, 128}, false},
    {"transposed", one_transposed, 1, 64, 28, {64, 4, 2}, false},
    {"resnet18", resnet18, 1, 3, 224, {0}, false},
    {"resnet18-b8", resnet18, 8, 3, 224, {0}, false},
    {"mobilenet1", mobilenet1, 1, 3, 224, {0}, false},
    {"mobilenet1-b8", mobilenet1, 8, 3, 224, {0}, false},
    {"mobilenet2", mobilenet2, 1, 3, 224, {0}, false},
    {"densenet121", densenet121, 1, 3, 224, {0}, false},
    {"digits-step", digits, 128, 1, 28, {0}, true},
    {"resnet18-step", resnet18, 32, 3, 64, {0}, true},
};

/* The programs of programs.c that people would run. */
static const char *const programs[] = {"mlp-step", "cnn-step", "gpt-step", "gpt2-64"};

enum { NCASE = sizeof cases / sizeof *cases, NPROGRAM = sizeof programs / sizeof *programs, MAX_RUNS = 1001 };

static TgTensor *net_run(Net *n, TgTensor *x) {
  n->at_conv = n->at_norm = 0;
  return n->c->run(n, x);
}

static TgStatus call(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Net *n = user;
  TgTensor *y = net_run(n, in[0]);
  (void)nin, (void)nout;
  out[0] = n->c->learns ? tg_sparse_cross_entropy(y, n->label) : y;
  if (n->c->learns && !tg_backward(out[0])) return tg_optim_step(n->opt);
  return tg_error(ctx);
}

static TgTensor *pixels(TgContext *ctx, const Case *c) {
  int64_t count = c->batch * c->channels * c->size * c->size;
  float *v = malloc((size_t)count * sizeof *v);
  unsigned seed = 1;
  for (int64_t i = 0; v && i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    v[i] = (float)(seed >> 8) / 8388608.f - 1;
  }
  TgTensor *t =
      v ? tg_keep(tg_from(ctx, v, TG_F32, TG_SHAPE(c->batch, c->channels, c->size, c->size))) : NULL;
  free(v);
  return t;
}

/* Makes the layers and computes their initial values; if the case trains, also makes labels and an optimiser.
 * The graph of this run is dropped unrealized. */
static bool net_make(Net *n, TgTensor *x) {
  TgTensor *param[4 * MOST_LAYERS + 2];
  int nparam = 0, nlearned;
  n->conv = calloc(MOST_LAYERS, sizeof *n->conv);
  n->norm = calloc(MOST_LAYERS, sizeof *n->norm);
  if (!n->conv || !n->norm || tg_scope_begin(n->ctx)) return false;
  bool ok = net_run(n, x) != NULL;
  for (int i = 0; i < n->nconv; i++) {
    param[nparam++] = n->conv[i].weight;
    if (n->conv[i].bias) param[nparam++] = n->conv[i].bias;
  }
  for (int i = 0; i < n->nnorm; i++) {
    param[nparam++] = n->norm[i].weight;
    param[nparam++] = n->norm[i].bias;
  }
  if (n->head.weight) {
    param[nparam++] = n->head.weight;
    param[nparam++] = n->head.bias;
  }
  nlearned = nparam;
  for (int i = 0; i < n->nnorm; i++) {
    param[nparam++] = n->norm[i].running_mean;
    param[nparam++] = n->norm[i].running_var;
  }
  ok = ok && !tg_realize_many(param, (size_t)nparam);
  if (ok && n->c->learns) {
    int32_t label[256];
    for (int i = 0; i < n->c->batch; i++)
      label[i] = i * 7 % 10;
    n->label = tg_keep(tg_from(n->ctx, label, TG_I32, TG_SHAPE(n->c->batch)));
    n->opt = tg_sgd(n->ctx, param, nlearned, .lr = 1e-3);
    tg_set_training(n->ctx, true);
    ok = n->label && n->opt;
  }
  n->made = true;
  return !tg_scope_end(n->ctx) && ok;
}

static void net_free(Net *n) {
  tg_optim_free(n->opt), tg_release(n->label);
  for (int i = 0; i < n->nconv; i++)
    tg_conv2d_free(&n->conv[i]);
  for (int i = 0; i < n->nnorm; i++)
    tg_batch_norm_free(&n->norm[i]);
  tg_linear_free(&n->head);
  free(n->conv), free(n->norm);
}

typedef struct Figures {
  double first, least, median, flops;
  uint64_t launches, fallbacks;
} Figures;

/* Times the first call, then skips the call that captures and one more, then times replays for about two
 * seconds. Frees jit. */
static bool replays(TgContext *ctx, TgJit *jit, TgTensor *const *in, int nin, int nout, int runs,
                    Figures *f) {
  static double ms[MAX_RUNS];
  double total = 0;
  bool ok = jit != NULL;
  int k = 0;
  for (int i = 0; ok && k < runs && (k < 5 || total < 2000); i++) {
    TgTensor *out;
    tg_counters_reset(ctx);
    double start = cli_now();
    ok = !tg_scope_begin(ctx) && !tg_jit_run(jit, in, nin, &out, nout) && !tg_sync(ctx);
    double took = (cli_now() - start) * 1e3;
    ok = ok && !tg_scope_end(ctx);
    if (i == 0) {
      f->first = took;
      f->fallbacks = tg_counters(ctx).fallbacks;
    }
    if (i >= 3) total += ms[k++] = took;
  }
  f->launches = tg_counters(ctx).launches;
  tg_jit_free(jit);
  if (!ok) return false;
  cli_sort(ms, k);
  f->least = ms[0];
  f->median = ms[k / 2];
  return true;
}

static bool measure_net(TgContext *ctx, const Case *c, int runs, Figures *f) {
  Net n = {.ctx = ctx, .c = c};
  TgTensor *x = pixels(ctx, c);
  bool ok = x && net_make(&n, x);
  f->flops = n.flops * (c->learns ? 3 : 1);
  ok = ok && replays(ctx, tg_jit(ctx, call, &n), &x, 1, 1, runs, f);
  net_free(&n), tg_release(x);
  return ok;
}

static TgStatus program_call(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                             void *user) {
  (void)ctx, (void)in, (void)nin, (void)out, (void)nout;
  return program_step(user);
}

static bool measure_program(TgContext *ctx, const char *name, int runs, Figures *f) {
  ProgramState *p = program_begin(ctx, program_find(name), 0);
  bool ok = p && replays(ctx, tg_jit(ctx, program_call, p), NULL, 0, 0, runs, f);
  program_end(p);
  return ok;
}

typedef struct Options {
  bool json;
  int64_t runs;
} Options;

static const char *case_name(int i) {
  if (i < NCASE) return cases[i].name;
  return i - NCASE < NPROGRAM ? programs[i - NCASE] : NULL;
}

static int run_net(const void *options, char **argument, int n) {
  const bool json = ((const Options *)options)->json;
  const int runs = (int)((const Options *)options)->runs;
  int rc = CLI_OK;
  if (!json)
    printf("%-16s %10s %10s %10s %9s %8s %6s\n", "case", "first ms", "least ms", "median ms", "Gflop/s",
           "kernels", "fell");
  for (int i = 0; case_name(i) && rc == CLI_OK; i++) {
    if (!cli_named(case_name(i), argument, n)) continue;
    CliWait *wait = cli_wait_begin(case_name(i));
    TgContext *ctx = tg_open_with(.log = cli_log);
    Figures f = {0};
    bool ok = ctx && !tg_error(ctx);
    ok = ok &&
         (i < NCASE ? measure_net(ctx, &cases[i], runs, &f) : measure_program(ctx, case_name(i), runs, &f));
    cli_wait_end(wait);
    if (!ok)
      rc = cli_fail(ctx, "bench");
    else
      printf(json ? "{\"case\":\"%s\",\"first_ms\":%.3f,\"least_ms\":%.4f,\"median_ms\":%.4f,\"gflops\":%.1f,"
                    "\"kernels\":%llu,\"fallbacks\":%llu}\n"
                  : "%-16s %10.1f %10.3f %10.3f %9.1f %8llu %6llu\n",
             case_name(i), f.first, f.least, f.median, f.flops / f.least / 1e6,
             (unsigned long long)f.launches, (unsigned long long)f.fallbacks);
    fflush(stdout);
    tg_close(ctx);
  }
  return rc;
}

static const Options defaults = {.runs = MAX_RUNS};

static const CliOption options[] = {
    CLI_WHOLE_OF(Options, runs, "runs", 1, MAX_RUNS, "replays of each case at most"),
    CLI_FLAG_OF(Options, json, "json", "an object per case, one a line")};

const CliCommand command_bench_net = {
    .name = "bench net",
    .summary = "time convolutions, networks and training steps with random weights",
    .arguments = "[CASE..]",
    .most = -1,
    CLI_TAKES(Options, options),
    .defaults = &defaults,
    .run = run_net,
    .listed = case_name,
    .more = "ms of the first call, with compiling (TG_CACHE=0: without the cache on disk), least and median "
            "ms of a "
            "replay, Gflop/s of the least, kernels of a replay."};
