/* bench_ops.c: `tg bench ops`: times single operations, each captured once and replayed without waiting
 * between replays. The sizes fill a GPU or, with --small, are those that people run on a few cores. Out: a
 * line per case: us of a replay, and GB/s and Gflop/s, counted from the least that the case must read, write
 * and compute. tools/gpu-check and tools/bench run PyTorch on the same cases, matched by name. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "tg_nn.h"

enum { MOST_INPUTS = 3, MOST_DIMS = 4, GROUPS = 8 };

/* dims: the dimensions of each input, ended by a 0; an input without dimensions has those of the first input.
 * PRODUCT: each element of the result is a sum of n products, where n is the last dimension of the first
 * input. SMALL: a case for a few cores. PICTURES: inputs are (n, c, h, w); with --divide only the sides
 * shrink, and they stay even. */
typedef struct Case {
  const char *name;
  TgTensor *(*run)(TgTensor *const *in);
  TgDType dtype;
  int nin;
  int64_t dims[MOST_INPUTS][MOST_DIMS];
  unsigned is;
} Case;

enum { PRODUCT = 1, SMALL = 2, PICTURES = 4 };

static TgTensor *copy(TgTensor *const *in) { return tg_add_scalar(in[0], 1); }

static TgTensor *add(TgTensor *const *in) { return tg_add(in[0], in[1]); }

static TgTensor *gelu(TgTensor *const *in) { return tg_gelu(in[0]); }

static TgTensor *sum(TgTensor *const *in) { return tg_sum(in[0]); }

static TgTensor *rows(TgTensor *const *in) { return tg_sum(in[0], .axis = TG_AXES(-1)); }

static TgTensor *softmax(TgTensor *const *in) { return tg_softmax(in[0]); }

static TgTensor *layer_norm(TgTensor *const *in) { return tg_layer_norm(in[0]); }

static TgTensor *transpose(TgTensor *const *in) { return tg_contiguous(tg_transpose(in[0], 0, 1)); }

static TgTensor *cumsum(TgTensor *const *in) { return tg_cumsum(in[0], 1); }

static TgTensor *cumsum_flat(TgTensor *const *in) { return tg_cumsum(in[0], 0); }

static TgTensor *matmul(TgTensor *const *in) { return tg_matmul(in[0], in[1]); }

/* Products of a matrix with its own transpose. */
static TgTensor *gram_rows(TgTensor *const *in) { return tg_matmul(in[0], tg_transpose(in[0], 0, 1)); }

static TgTensor *gram_columns(TgTensor *const *in) { return tg_matmul(tg_transpose(in[0], 0, 1), in[0]); }

static TgTensor *attention(TgTensor *const *in) {
  return tg_scaled_dot_product_attention(in[0], in[1], in[2], .causal = true);
}

static TgTensor *plain_attention(TgTensor *const *in) {
  return tg_scaled_dot_product_attention(in[0], in[1], in[2]);
}

static TgTensor *multiply_add(TgTensor *const *in) { return tg_add(tg_mul(in[0], in[1]), in[2]); }

static TgTensor *columns(TgTensor *const *in) { return tg_sum(in[0], .axis = TG_AXES(0)); }

static TgTensor *wide_product(TgTensor *const *in) { return tg_matmul(in[0], in[1], .dtype = TG_I32); }

static TgTensor *linear(TgTensor *const *in) { return tg_linear(in[0], in[1], NULL); }

static TgTensor *sine(TgTensor *const *in) { return tg_sin(in[0]); }

/* Operations that compute an operand of a product, chosen from those that people write before a matmul or a
 * convolution. */
static TgTensor *relu_matmul(TgTensor *const *in) { return tg_matmul(tg_relu(in[0]), in[1]); }

static TgTensor *conv3(TgTensor *x, TgTensor *w) { return tg_conv2d(x, w, .padding = TG_SIZES(1)); }

static TgTensor *every_second(TgTensor *x, int row, int column) {
  return tg_getitem(x, TG_IDX(TG_ALL, TG_ALL, TG_SLICE(row, TG_OPEN, 2), TG_SLICE(column, TG_OPEN, 2)));
}

static TgTensor *slices_conv(TgTensor *const *in) {
  TgTensor *quarter[] = {every_second(in[0], 0, 0), every_second(in[0], 1, 0), every_second(in[0], 0, 1),
                         every_second(in[0], 1, 1)};
  return conv3(tg_cat(quarter, 4, 1), in[1]);
}

static TgTensor *enlarge_conv(TgTensor *const *in) {
  const int64_t size[] = {2 * tg_dim(in[0], 2), 2 * tg_dim(in[0], 3)};
  return conv3(tg_interpolate(in[0], 2, size, .mode = TG_NEAREST), in[1]);
}

/* Reshapes (n, c, h, w) to (n, 8, c / 8, h, w). */
static TgTensor *in_groups(TgTensor *x) {
  return tg_reshape(x, TG_SHAPE(tg_dim(x, 0), GROUPS, -1, tg_dim(x, 2), tg_dim(x, 3)));
}

static TgTensor *group_norm_conv(TgTensor *const *in) {
  TgTensor *x = in[0], *group = tg_flatten(in_groups(x), 2, -1);
  TgTensor *norm = tg_reshape(tg_layer_norm(group), tg_ndim(x), tg_shape(x));
  return conv3(tg_silu(norm), in[1]);
}

static TgTensor *shuffle_conv(TgTensor *const *in) {
  TgTensor *turned = tg_transpose(in_groups(in[0]), 1, 2);
  return conv3(tg_reshape(turned, tg_ndim(in[0]), tg_shape(in[0])), in[1]);
}

static TgTensor *sort(TgTensor *const *in) { return tg_sort(in[0], NULL); }

/* Reads rows of a table at indices that are spread over it. */
static TgTensor *embedding(TgTensor *const *in) {
  const int64_t rows = tg_dim(in[0], 0), n = tg_dim(in[1], 0);
  TgTensor *index = tg_mod_scalar(tg_mul_scalar(tg_arange(tg_context(in[0]), 0, n), 7919), rows);
  return tg_embedding(in[0], index);
}

static const Case cases[] = {
    {"copy", copy, TG_F32, 1, {{1 << 26}}, 0},
    {"add", add, TG_F32, 2, {{1 << 26}}, 0},
    {"gelu", gelu, TG_F32, 1, {{1 << 26}}, 0},
    {"sum", sum, TG_F32, 1, {{1 << 26}}, 0},
    {"sum-rows", rows, TG_F32, 1, {{8192, 8192}}, 0},
    {"softmax", softmax, TG_F32, 1, {{8192, 8192}}, 0},
    {"layer-norm", layer_norm, TG_F32, 1, {{8192, 8192}}, 0},
    {"transpose", transpose, TG_F32, 1, {{8192, 8192}}, 0},
    {"cumsum", cumsum, TG_F32, 1, {{8192, 8192}}, 0},
    {"matmul-f32-4096", matmul, TG_F32, 2, {{4096, 4096}}, PRODUCT},
    {"matmul-bf16-4096", matmul, TG_BF16, 2, {{4096, 4096}}, PRODUCT},
    {"matmul-bf16-8192", matmul, TG_BF16, 2, {{8192, 8192}}, PRODUCT},
    {"attention-f32", attention, TG_F32, 3, {{1, 16, 2048, 64}}, 0},
    {"add-16m", add, TG_F32, 2, {{1 << 24}}, SMALL},
    {"multiply-add-16m", multiply_add, TG_F32, 3, {{1 << 24}}, SMALL},
    {"gelu-4m", gelu, TG_F32, 1, {{1 << 22}}, SMALL},
    {"sum-16m", sum, TG_F32, 1, {{1 << 24}}, SMALL},
    {"sum-rows-4096", rows, TG_F32, 1, {{4096, 4096}}, SMALL},
    {"sum-columns-4096", columns, TG_F32, 1, {{4096, 4096}}, SMALL},
    {"sum-columns-64", columns, TG_F32, 1, {{1 << 18, 64}}, SMALL},
    {"softmax-1024", softmax, TG_F32, 1, {{1024, 1024}}, SMALL},
    {"layer-norm-4096", layer_norm, TG_F32, 1, {{4096, 1024}}, SMALL},
    {"transpose-4096", transpose, TG_F32, 1, {{4096, 4096}}, SMALL},
    {"embedding-8192", embedding, TG_F32, 2, {{50257, 768}, {8192}}, SMALL},
    {"cumsum-10m", cumsum_flat, TG_F32, 1, {{10000000}}, SMALL},
    {"sort-1m", sort, TG_F32, 1, {{1000000}}, SMALL},
    {"matmul-256", matmul, TG_F32, 2, {{256, 256}}, PRODUCT | SMALL},
    {"matmul-512", matmul, TG_F32, 2, {{512, 512}}, PRODUCT | SMALL},
    {"matmul-1024", matmul, TG_F32, 2, {{1024, 1024}}, PRODUCT | SMALL},
    {"matmul-2048", matmul, TG_F32, 2, {{2048, 2048}}, PRODUCT | SMALL},
    {"matmul-bf16-1024", matmul, TG_BF16, 2, {{1024, 1024}}, PRODUCT | SMALL},
    {"matmul-bf16-2048", matmul, TG_BF16, 2, {{2048, 2048}}, PRODUCT | SMALL},
    {"linear-bf16-3072", linear, TG_BF16, 2, {{128, 768}, {3072, 768}}, PRODUCT | SMALL},
    {"matmul-i8-1024", wide_product, TG_I8, 2, {{1024, 1024}}, PRODUCT | SMALL},
    {"linear-50257", linear, TG_F32, 2, {{64, 768}, {50257, 768}}, PRODUCT | SMALL},
    {"gemv-16384", linear, TG_F32, 2, {{1, 8192}, {16384, 8192}}, PRODUCT | SMALL},
    {"attention-1024", attention, TG_F32, 3, {{12, 1024, 64}}, SMALL},
    {"attention-1-query", plain_attention, TG_F32, 3, {{1, 1, 64}, {1, 65536, 64}, {1, 65536, 64}}, SMALL},
    {"sine-1m", sine, TG_F32, 1, {{1 << 20}}, SMALL},
    {"relu-matmul-1024", relu_matmul, TG_F32, 2, {{1024, 1024}}, PRODUCT | SMALL},
    {"gram-rows-1024", gram_rows, TG_F32, 1, {{1024, 1024}}, PRODUCT | SMALL},
    {"gram-columns-1024", gram_columns, TG_F32, 1, {{1024, 1024}}, PRODUCT | SMALL},
    {"slices-conv", slices_conv, TG_F32, 2, {{1, 3, 416, 416}, {16, 12, 3, 3}}, SMALL | PICTURES},
    {"enlarge-conv", enlarge_conv, TG_F32, 2, {{2, 64, 56, 56}, {64, 64, 3, 3}}, SMALL | PICTURES},
    {"group-norm-conv", group_norm_conv, TG_F32, 2, {{16, 64, 56, 56}, {64, 64, 3, 3}}, SMALL | PICTURES},
    {"shuffle-conv", shuffle_conv, TG_F32, 2, {{16, 64, 56, 56}, {64, 64, 3, 3}}, SMALL | PICTURES},
};

enum { NCASE = sizeof cases / sizeof *cases, SAMPLES = 5 };

typedef struct Figures {
  double us, first_ms, bytes, flops;
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

static int64_t divided(int64_t dim, int64_t divide) { return dim / divide > 0 ? dim / divide : 1; }

static double bytes_of(const TgTensor *t) { return (double)tg_numel(t) * (double)tg_dtype_size(tg_dtype(t)); }

/* Makes the inputs, and counts what the case moves and computes at least. */
static bool inputs(TgContext *ctx, const Case *c, int64_t divide, TgTensor **in, Figures *f) {
  for (int i = 0; i < c->nin; i++) {
    const int64_t *dims = c->dims[i][0] ? c->dims[i] : c->dims[0];
    int64_t d[MOST_DIMS];
    int rank = 0;
    for (; rank < MOST_DIMS && dims[rank]; rank++)
      d[rank] = !(c->is & PICTURES) ? divided(dims[rank], divide)
                : rank < 2 || i     ? dims[rank]
                                    : 2 * divided(dims[rank] / 2, divide);
    in[i] = tg_keep(tg_contiguous(tg_cast(tg_randn(ctx, rank, d), c->dtype)));
    if (!in[i] || tg_realize(in[i])) return false;
    f->bytes += bytes_of(in[i]);
  }
  TgTensor *out = c->run(in);
  if (!out) return false;
  f->bytes += bytes_of(out);
  if (c->is & PRODUCT) f->flops = 2.0 * (double)tg_numel(out) * (double)tg_dim(in[0], -1);
  return true;
}

/* Times several samples of about 20 ms, each of enough replays to fill that time. The fastest sample
 * counts. */
static bool measure(TgContext *ctx, const Case *c, int64_t divide, Figures *f) {
  TgTensor *in[MOST_INPUTS] = {NULL};
  bool ok = !tg_scope_begin(ctx) && inputs(ctx, c, divide, in, f);
  ok = !tg_scope_end(ctx) && ok;
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

static void report(const Case *c, const Figures *f, bool json) {
  printf(json ? "{\"case\":\"%s\",\"us\":%.2f,\"gbytes_s\":%.1f,\"gflops\":%.1f,\"first_ms\":%.1f,"
                "\"kernels\":%llu}\n"
              : "%-18s %10.2f us %9.1f GB/s %10.1f Gflop/s   first %8.1f ms %4llu kernels\n",
         c->name, f->us, f->bytes / f->us / 1e3, f->flops / f->us / 1e3, f->first_ms,
         (unsigned long long)f->kernels);
  fflush(stdout);
}

typedef struct Options {
  bool json, small;
  int64_t divide;
} Options;

static int run_ops(const void *options, char **argument, int n) {
  const Options *o = options;
  int rc = CLI_OK;
  for (int i = 0; i < NCASE && rc == CLI_OK; i++) {
    if (n ? !cli_named(cases[i].name, argument, n) : !(cases[i].is & SMALL) == o->small) continue;
    CliWait *wait = cli_wait_begin(cases[i].name);
    TgContext *ctx = tg_open_with(.seed = 1, .log = cli_log);
    Figures f = {0};
    bool ok = ctx && !tg_error(ctx) && measure(ctx, &cases[i], o->divide, &f);
    cli_wait_end(wait);
    if (!ok)
      rc = cli_fail(ctx, "bench");
    else
      report(&cases[i], &f, o->json);
    tg_close(ctx);
  }
  return rc;
}

static const char *case_name(int i) { return i < NCASE ? cases[i].name : NULL; }

static const Options defaults = {.divide = 1};

static const CliOption options[] = {
    CLI_WHOLE_OF(Options, divide, "divide", 1, 4096, "every size divided by N, for a slow device"),
    CLI_FLAG_OF(Options, small, "small", "the cases for a few cores (a case that is named runs anyway)"),
    CLI_FLAG_OF(Options, json, "json", "an object per case, one a line")};

const CliCommand command_bench_ops = {
    .name = "bench ops",
    .summary = "time single operations",
    .arguments = "[CASE..]",
    .most = -1,
    CLI_TAKES(Options, options),
    .defaults = &defaults,
    .run = run_ops,
    .listed = case_name,
    .more = "At sizes that fill a GPU, or at --small ones. Replayed without waiting between, on the default "
            "device: us of the best sample, GB/s and Gflop/s."};
