/* bench_ops.c: `tg bench ops`: single operations at the sizes that fill a GPU, each captured once and
 * replayed without waiting between. Out: a line per case: us of a replay, GB/s and Gflop/s of what it reads,
 * writes and computes at least. tools/gpu-check sets the same cases beside PyTorch's by name. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "tg_nn.h"
#include <stdlib.h>
#include <string.h>

/* in, out: elements read and written; flops of all, in units of their product's sizes */
typedef struct Case {
  const char *name;
  TgTensor *(*run)(TgTensor *const *in);
  TgDType dtype;
  int nin, rank;
  int64_t dims[4]; /* of each input */
  double moved;    /* inputs' worth of bytes that must be read or written */
  bool product;    /* of square matrices */
} Case;

static TgTensor *copy(TgTensor *const *in) { return tg_add_scalar(in[0], 1); }

static TgTensor *add(TgTensor *const *in) { return tg_add(in[0], in[1]); }

static TgTensor *gelu(TgTensor *const *in) { return tg_gelu(in[0]); }

static TgTensor *sum(TgTensor *const *in) { return tg_sum(in[0]); }

static TgTensor *rows(TgTensor *const *in) { return tg_sum(in[0], .axis = TG_AXES(-1)); }

static TgTensor *softmax(TgTensor *const *in) { return tg_softmax(in[0]); }

static TgTensor *layer_norm(TgTensor *const *in) { return tg_layer_norm(in[0]); }

static TgTensor *transpose(TgTensor *const *in) { return tg_contiguous(tg_transpose(in[0], 0, 1)); }

static TgTensor *cumsum(TgTensor *const *in) { return tg_cumsum(in[0], 1); }

static TgTensor *matmul(TgTensor *const *in) { return tg_matmul(in[0], in[1]); }

static TgTensor *attention(TgTensor *const *in) {
  return tg_scaled_dot_product_attention(in[0], in[1], in[2], .causal = true);
}

static const Case cases[] = {{"copy", copy, TG_F32, 1, 1, {1 << 26}, 2, false},
                             {"add", add, TG_F32, 2, 1, {1 << 26}, 3, false},
                             {"gelu", gelu, TG_F32, 1, 1, {1 << 26}, 2, false},
                             {"sum", sum, TG_F32, 1, 1, {1 << 26}, 1, false},
                             {"sum-rows", rows, TG_F32, 1, 2, {8192, 8192}, 1, false},
                             {"softmax", softmax, TG_F32, 1, 2, {8192, 8192}, 2, false},
                             {"layer-norm", layer_norm, TG_F32, 1, 2, {8192, 8192}, 2, false},
                             {"transpose", transpose, TG_F32, 1, 2, {8192, 8192}, 2, false},
                             {"cumsum", cumsum, TG_F32, 1, 2, {8192, 8192}, 2, false},
                             {"matmul-f32-4096", matmul, TG_F32, 2, 2, {4096, 4096}, 3, true},
                             {"matmul-bf16-4096", matmul, TG_BF16, 2, 2, {4096, 4096}, 3, true},
                             {"matmul-bf16-8192", matmul, TG_BF16, 2, 2, {8192, 8192}, 3, true},
                             {"attention-f32", attention, TG_F32, 3, 4, {1, 16, 2048, 64}, 4, false}};

enum { NCASE = sizeof cases / sizeof *cases, SAMPLES = 5, MOST_INPUTS = 3 };

typedef struct Figures {
  double us, first_ms;
  uint64_t kernels;
} Figures;

static TgStatus call(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const Case *c = user;
  (void)nin, (void)nout;
  out[0] = c->run(in);
  return tg_error(ctx);
}

static bool replayed(TgContext *ctx, TgJit *j, TgTensor *const *in, int nin, int times) {
  bool ok = true;
  for (int i = 0; ok && i < times; i++) {
    TgTensor *out = NULL;
    ok = !tg_scope_begin(ctx) && !tg_jit_run(j, in, nin, &out, 1);
    ok = !tg_scope_end(ctx) && ok;
  }
  return ok && !tg_sync(ctx);
}

/* Replays enough for some ms are timed together, and the best of some such samples counts. */
static bool measure(TgContext *ctx, const Case *c, int64_t divide, Figures *f) {
  TgTensor *in[MOST_INPUTS] = {NULL};
  int64_t dims[4];
  for (int i = 0; i < c->rank; i++)
    dims[i] = c->dims[i] / divide > 0 ? c->dims[i] / divide : 1;
  bool ok = true;
  for (int i = 0; ok && i < c->nin; i++) {
    in[i] = tg_keep(tg_contiguous(tg_cast(tg_randn(ctx, c->rank, dims), c->dtype)));
    ok = in[i] && !tg_realize(in[i]);
  }
  TgJit *j = ok ? tg_jit(ctx, call, (void *)c) : NULL;
  double start = cli_now();
  ok = j && replayed(ctx, j, in, c->nin, 1);
  f->first_ms = (cli_now() - start) * 1e3;
  ok = ok && replayed(ctx, j, in, c->nin, 2);
  tg_counters_reset(ctx);
  start = cli_now();
  ok = ok && replayed(ctx, j, in, c->nin, 1);
  f->kernels = tg_counters(ctx).launches;
  double once = cli_now() - start;
  int times = once > 0.02 ? 1 : (int)(0.02 / (once > 1e-6 ? once : 1e-6)) + 1;
  for (int s = 0; ok && s < SAMPLES; s++) {
    start = cli_now();
    ok = replayed(ctx, j, in, c->nin, times);
    double us = (cli_now() - start) * 1e6 / times;
    f->us = s && f->us < us ? f->us : us;
  }
  tg_jit_free(j);
  for (int i = 0; i < c->nin; i++)
    tg_release(in[i]);
  return ok;
}

static void report(const Case *c, int64_t divide, const Figures *f, bool json) {
  double elements = 1, size = c->dtype == TG_BF16 ? 2 : 4;
  for (int i = 0; i < c->rank; i++)
    elements *= (double)(c->dims[i] / divide > 0 ? c->dims[i] / divide : 1);
  double n = (double)(c->dims[0] / divide), flops = c->product ? 2 * n * n * n : 0;
  printf(json ? "{\"case\":\"%s\",\"us\":%.2f,\"gbytes_s\":%.1f,\"gflops\":%.1f,\"first_ms\":%.1f,"
                "\"kernels\":%llu}\n"
              : "%-18s %10.2f us %9.1f GB/s %10.1f Gflop/s   first %8.1f ms %4llu kernels\n",
         c->name, f->us, c->moved * elements * size / f->us / 1e3, flops / f->us / 1e3, f->first_ms,
         (unsigned long long)f->kernels);
  fflush(stdout);
}

typedef struct Options {
  bool json;
  int64_t divide;
} Options;

static int run_ops(const void *options, char **argument, int n) {
  const bool json = ((const Options *)options)->json;
  const int64_t divide = ((const Options *)options)->divide;
  int rc = CLI_OK;
  for (int i = 0; i < NCASE && rc == CLI_OK; i++) {
    if (!cli_named(cases[i].name, argument, n)) continue;
    CliWait *wait = cli_wait_begin(cases[i].name);
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .seed = 1});
    Figures f = {0};
    bool ok = ctx && !tg_error(ctx) && measure(ctx, &cases[i], divide, &f);
    cli_wait_end(wait);
    if (!ok)
      rc = cli_fail(ctx, "bench");
    else
      report(&cases[i], divide, &f, json);
    tg_close(ctx);
  }
  return rc;
}

static const char *case_name(int i) { return i < NCASE ? cases[i].name : NULL; }

static const Options defaults = {.divide = 1};

static const CliOption options[] = {
    CLI_WHOLE_OF(Options, divide, "divide", 1, 4096, "every size divided by N, for a slow device"),
    CLI_FLAG_OF(Options, json, "json", "an object per case, one a line")};

const CliCommand command_bench_ops = {
    .name = "bench ops",
    .summary = "time single operations at sizes that fill a GPU",
    .arguments = "[CASE..]",
    .most = -1,
    .options = options,
    .noptions = CLI_COUNT(options),
    .nbytes = sizeof(Options),
    .defaults = &defaults,
    .run = run_ops,
    .listed = case_name,
    .more =
        "Replayed without waiting between, on the default device: us of the best sample, GB/s and Gflop/s."};
