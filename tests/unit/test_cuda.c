/* test_cuda.c: the CUDA device on an emulated GPU: the driver's calls as they are made, with streams that do
 * their work as late as they may (TG_EMU=1) or in a seeded order, and calls that fail. Results are compared
 * with CPU's. What the emulator sees of kernels is in test_emulate.c. */
#include "runtime/cuda.h"
#include "tg.h"
#include "tg_nn.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static TgContext *C;

static void emulate(int order) {
  char text[16];
  snprintf(text, sizeof text, "%d", order);
  setenv("TG_EMU", text, 1);
}

static TgContext *opened(const char *device) {
  return tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = 3});
}

static int open_cuda(void **state) {
  (void)state;
  emulate(1);
  C = opened("CUDA");
  if (tg_error(C)) fprintf(stderr, "%s\n", tg_errmsg(C));
  return tg_error(C) != TG_OK;
}

/* Nothing of the driver's is left when a context has closed. */
static void nothing_left(void) {
  CudaMockCounts n = cuda_mock_counts();
  if (n.blocks || n.pinned || n.streams || n.events || n.modules || n.graphs || n.execs || n.units ||
      n.contexts)
    fail_msg(
        "left: %d blocks, %d pinned, %d streams, %d events, %d modules, %d graphs, %d execs, %d units, %d "
        "contexts",
        n.blocks, n.pinned, n.streams, n.events, n.modules, n.graphs, n.execs, n.units, n.contexts);
}

static int close_it(void **state) {
  (void)state;
  cuda_mock_fail(NULL, 0, 0);
  tg_close(C);
  C = NULL;
  nothing_left();
  return 0;
}

static void text_is_at(int line, TgTensor *t, const char *device, const char *want) {
  const char *got = tg_to_text(t);
  if (!got || strcmp(got, want))
    fail_msg("line %d: %s, not %s (%s)", line, got ? got : "nothing", want, tg_errmsg(C));
  if (strcmp(tg_device(t), device)) fail_msg("line %d: on %s, not on %s", line, tg_device(t), device);
}

#define TEXT(t, device, want) text_is_at(__LINE__, (t), (device), (want))
#define X(text)               tg_from_text(C, text)

static void fine_at(int line, TgStatus s) {
  if (s) fail_msg("line %d: %s", line, tg_errmsg(C));
}

#define OK(call) fine_at(__LINE__, (call))

/* ---- the device */
static void opens(void **state) {
  (void)state;
  assert_string_equal(tg_default_device(C), "CUDA");
  const char *text = tg_device_describe(C);
  assert_non_null(strstr(text, "emulated GPU 0, sm_90, 80 multiprocessors"));
  TEXT(tg_add(X("[1, 2, 3]"), X("[10, 20, 30]")), "CUDA", "[11, 22, 33]");
  assert_null(tg_map(tg_add(X("[1, 2]"), X("[3, 4]"))));
  assert_non_null(strstr(tg_errmsg(C), "memory of its own"));
  tg_clear_error(C);
}

/* Without TG_EMU the error says what is missing, and how to do without. */
static void says_what_is_missing(void **state) {
  (void)state;
  unsetenv("TG_EMU");
  TgContext *ctx = opened("CUDA:1");
  if (!tg_error(ctx)) {
    tg_close(ctx);
    print_message("skipped: two GPUs are here, so nothing is missing\n");
    skip();
  }
  assert_int_equal(tg_error(ctx), TG_ERR_DEVICE);
  const char *text = tg_errmsg(ctx);
  assert_true(strstr(text, "libcuda") || strstr(text, "GPU") || strstr(text, "libnvrtc"));
  tg_close(ctx);
  emulate(1);
  ctx = opened("CUDA:2");
  assert_non_null(strstr(tg_errmsg(ctx), "fewer GPUs"));
  tg_close(ctx);
  nothing_left();
}

static TgTensor *network(TgTensor *x, TgTensor *w) {
  return tg_softmax(tg_relu(tg_sub(tg_matmul(x, w), tg_mean(x))));
}

static void same_as_cpu(void **state) {
  (void)state;
  TgTensor *x = tg_randn(C, TG_SHAPE(17, 33)), *w = tg_randn(C, TG_SHAPE(33, 21));
  float got[17 * 21], want[17 * 21];
  OK(tg_read(network(x, w), got, sizeof got));
  OK(tg_read(network(tg_to(x, "CPU"), tg_to(w, "CPU")), want, sizeof want));
  for (size_t i = 0; i < sizeof got / sizeof *got; i++)
    assert_float_equal(got[i], want[i], 1e-6);
}

/* More than the ring of pinned pieces holds, there and back, with kernels between. */
static void copies_in_pieces(void **state) {
  (void)state;

  enum { N = (STAGES + 1) * STAGE_BYTES / 4 + 5 };

  int32_t *data = malloc(N * sizeof *data), *back = malloc(N * sizeof *back);
  assert_true(data && back);
  for (int i = 0; i < N; i++)
    data[i] = i * 7;
  TgTensor *x = tg_from(C, data, TG_I32, TG_SHAPE(N));
  memset(data, 0, N * sizeof *data); /* the call has returned: it is the caller's again */
  OK(tg_read(x, back, N * sizeof *back));
  for (int i = 0; i < N; i += 1001)
    assert_int_equal(back[i], i * 7);
  assert_int_equal(back[N - 1], (N - 1) * 7);
  free(data), free(back);
}

/* Copies overlap with kernels where nothing needs an order; memory that kernels still use goes to the next
 * that asks for it. */
static void streams_are_ordered(void **state) {
  (void)state;
  for (int order = 1; order <= 6; order++) {
    emulate(order);
    C = opened("CUDA");
    TgTensor *sum = tg_keep(tg_zeros(C, TG_SHAPE(64)));
    OK(tg_realize(sum));
    double want = 0;
    for (int step = 0; step < 12; step++) {
      tg_scope_begin(C);
      float data[64];
      for (int i = 0; i < 64; i++)
        data[i] = (float)(step + i);
      TgTensor *x = tg_from(C, data, TG_F32, TG_SHAPE(64));
      TgTensor *y = tg_add(tg_mul(x, x), tg_sum(x));
      OK(tg_realize(y));
      assert_non_null(tg_assign(sum, tg_add(sum, y)));
      OK(tg_realize(sum));
      tg_scope_end(C);
      want += (double)(step + 5) * (step + 5) + 64 * step + 64 * 63 / 2;
    }
    float got[64];
    OK(tg_read(sum, got, sizeof got));
    assert_float_equal(got[5], want, 0);
    tg_release(sum);
    tg_close(C);
    nothing_left();
  }
}

/* ---- several devices */
static void peers(void **state) {
  (void)state;
  for (int order = 1; order <= 4; order++) {
    emulate(order);
    C = opened("CUDA");
    TgTensor *x = X("[0, 1, 2, 3, 4, 5]"), *y = tg_to(tg_mul(x, x), "CUDA:1");
    TgTensor *z = tg_to(tg_add(y, tg_to(x, "CUDA:1")), "CPU");
    TEXT(z, "CPU", "[0, 2, 6, 12, 20, 30]");
    TEXT(tg_to(tg_add(z, z), "CUDA"), "CUDA", "[0, 4, 12, 24, 40, 60]");
    assert_true(tg_counters(C).copies >= 3);
    /* what was sent is the value of then, whatever is stored there afterwards */
    TgTensor *from = X("[1, 2, 3]"), *sent = tg_to(from, "CUDA:1");
    OK(tg_realize(sent));
    assert_non_null(tg_assign(from, X("[7, 8, 9]")));
    OK(tg_realize(from));
    TEXT(sent, "CUDA:1", "[1, 2, 3]");
    tg_close(C);
    nothing_left();
  }
}

static void training_from_disk(void **state) {
  (void)state;
  char path[] = "/tmp/tg_cuda_XXXXXX";
  int fd = mkstemp(path);
  float data[32];
  for (int i = 0; i < 32; i++)
    data[i] = (float)((i * 37) % 11) / 11;
  assert_true(write(fd, data, sizeof data) == sizeof data);
  close(fd);
  double loss[2];
  for (int cpu = 0; cpu < 2; cpu++) {
    const char *device = cpu ? "CPU" : "CUDA";
    TgTensor *file = tg_from_file(C, path, TG_F32, TG_SHAPE(8, 4), .device = "DISK");
    TgTensor *x = tg_to(file, device), *w = tg_keep(tg_full(C, TG_SHAPE(4, 3), 0.25, .device = device));
    tg_requires_grad(w, true);
    for (int step = 0; step < 3; step++) {
      TgTensor *l =
          tg_mean(tg_square(tg_sub(tg_matmul(x, w), tg_full(C, TG_SHAPE(8, 3), 1, .device = device))));
      OK(tg_backward(l));
      TgTensor *g = tg_grad(w);
      assert_non_null(tg_assign(w, tg_detach(tg_sub(w, tg_mul_scalar(g, 0.1)))));
      OK(tg_realize(w));
      OK(tg_read_f64(l, &loss[cpu], 1));
      tg_zero_grad(w);
    }
    tg_release(w);
  }
  assert_float_equal(loss[0], loss[1], 1e-6);
  assert_true(loss[0] > 0);
  unlink(path);
}

/* ---- captured functions */
static TgStatus step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgTensor *w = user;
  (void)nin, (void)nout;
  TgTensor *y = tg_matmul(in[0], w);
  out[0] = tg_sum(tg_relu(y));
  tg_assign(w, tg_detach(tg_add(w, tg_mul_scalar(w, 0.5))));
  return tg_error(ctx);
}

/* Each replay is one launch of a graph, whose arguments alone are changed. */
static void replays(void **state) {
  (void)state;

  enum { N = 6 };

  double got[2][N];
  for (int cpu = 0; cpu < 2; cpu++) {
    const char *device = cpu ? "CPU" : "CUDA";
    TgTensor *w = tg_keep(tg_full(C, TG_SHAPE(3, 5), 0.125, .device = device));
    OK(tg_realize(w));
    TgJit *j = tg_jit(C, step, w);
    CudaMockCounts before = cuda_mock_counts();
    for (int i = 0; i < N; i++) {
      tg_scope_begin(C);
      TgTensor *x = tg_to(tg_mul_scalar(tg_add_scalar(tg_arange(C, 0, 12), i), 0.25), device), *out = NULL;
      x = tg_contiguous(tg_reshape(x, TG_SHAPE(4, 3)));
      OK(tg_jit_run(j, &x, 1, &out, 1));
      OK(tg_read_f64(out, &got[cpu][i], 1));
      tg_scope_end(C);
    }
    CudaMockCounts after = cuda_mock_counts();
    assert_int_equal(after.graph_launches - before.graph_launches, cpu ? 0 : N - 2);
    assert_int_equal(after.execs, cpu ? 0 : 1);
    tg_jit_free(j);
    tg_release(w);
  }
  assert_int_equal(tg_counters(C).graphs, 2 * (N - 2));
  for (int i = 0; i < N; i++)
    assert_float_equal(got[0][i], got[1][i], 1e-5);
}

/* ---- networks: one step of training, captured, as on INTERP */
enum { LEN = 8, WIDE = 16, HEADS = 2, VOCAB = 11, BATCH = 2, MOST_PARAMS = 24 };

typedef struct Gpt {
  TgEmbedding token, position;
  TgLayerNorm ln1, ln2, ln;
  TgLinear qkv, out, up, down, head;
  TgTensor *params[MOST_PARAMS];
  int nparam;
  TgOptim *optim;
} Gpt;

static void gpt_new(Gpt *g, const char *device) {
  g->token = tg_embedding_new(C, VOCAB, WIDE), g->position = tg_embedding_new(C, LEN, WIDE);
  g->ln1 = tg_layer_norm_new(C, TG_SHAPE(WIDE)), g->ln2 = tg_layer_norm_new(C, TG_SHAPE(WIDE));
  g->ln = tg_layer_norm_new(C, TG_SHAPE(WIDE));
  g->qkv = tg_linear_new(C, WIDE, 3 * WIDE, true), g->out = tg_linear_new(C, WIDE, WIDE, true);
  g->up = tg_linear_new(C, WIDE, 4 * WIDE, true), g->down = tg_linear_new(C, 4 * WIDE, WIDE, true);
  g->head = tg_linear_new(C, WIDE, VOCAB, true);
  TgTensor **all[] = {&g->token.weight, &g->position.weight, &g->ln1.weight, &g->ln1.bias,   &g->ln2.weight,
                      &g->ln2.bias,     &g->ln.weight,       &g->ln.bias,    &g->qkv.weight, &g->qkv.bias,
                      &g->out.weight,   &g->out.bias,        &g->up.weight,  &g->up.bias,    &g->down.weight,
                      &g->down.bias,    &g->head.weight,     &g->head.bias};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) { /* the same numbers on each device */
    int64_t n = tg_numel(*all[i]);
    float *v = malloc((size_t)n * sizeof *v);
    for (int64_t k = 0; k < n; k++)
      v[k] = (float)((k * 7919 + (int64_t)i * 104729) % 1009) / 1009 - 0.5f;
    TgTensor *p = tg_to(tg_from(C, v, TG_F32, tg_ndim(*all[i]), tg_shape(*all[i])), device);
    free(v);
    g->params[g->nparam++] = *all[i] = tg_keep(tg_requires_grad(p, true));
    OK(tg_realize(p));
  }
  g->optim = tg_adam(C, g->params, g->nparam, .lr = 0.01);
}

static TgTensor *head_of(TgTensor *qkv, int part) {
  TgTensor *h = tg_slice(qkv, -1, part * WIDE, (part + 1) * WIDE);
  return tg_transpose(tg_reshape(h, TG_SHAPE(BATCH, LEN, HEADS, WIDE / HEADS)), 1, 2);
}

static TgStatus gpt_step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Gpt *g = user;
  (void)nin, (void)nout;
  TgTensor *at = tg_to(tg_arange(ctx, 0, LEN), tg_device(in[0]));
  TgTensor *h = tg_add(tg_embedding_run(&g->token, in[0]), tg_embedding_run(&g->position, at));
  TgTensor *qkv = tg_linear_run(&g->qkv, tg_layer_norm_run(&g->ln1, h));
  TgTensor *a =
      tg_scaled_dot_product_attention(head_of(qkv, 0), head_of(qkv, 1), head_of(qkv, 2), .causal = true);
  a = tg_reshape(tg_transpose(a, 1, 2), TG_SHAPE(BATCH, LEN, WIDE));
  h = tg_add(h, tg_linear_run(&g->out, a));
  h = tg_add(h, tg_linear_run(&g->down, tg_gelu(tg_linear_run(&g->up, tg_layer_norm_run(&g->ln2, h)))));
  TgTensor *loss = tg_sparse_cross_entropy(tg_linear_run(&g->head, tg_layer_norm_run(&g->ln, h)), in[1]);
  TgStatus s = tg_backward(loss);
  if (!s) s = tg_optim_step(g->optim);
  tg_optim_zero_grad(g->optim);
  out[0] = loss;
  return s;
}

static void trains_a_gpt(void **state) {
  (void)state;

  enum { STEPS = 5 };

  double loss[2][STEPS];
  for (int interp = 0; interp < 2; interp++) {
    const char *device = interp ? "INTERP" : "CUDA";
    Gpt g = {0};
    gpt_new(&g, device);
    TgJit *j = tg_jit(C, gpt_step, &g);
    CudaMockCounts before = cuda_mock_counts();
    for (int i = 0; i < STEPS; i++) {
      tg_scope_begin(C);
      int32_t x[BATCH * LEN], y[BATCH * LEN];
      for (int k = 0; k < BATCH * LEN; k++)
        x[k] = (k * k + i) % VOCAB, y[k] = ((k + 1) * (k + 1) + i) % VOCAB;
      TgTensor *in[2] = {tg_to(tg_from(C, x, TG_I32, TG_SHAPE(BATCH, LEN)), device),
                         tg_to(tg_from(C, y, TG_I32, TG_SHAPE(BATCH, LEN)), device)},
               *out = NULL;
      OK(tg_jit_run(j, in, 2, &out, 1));
      OK(tg_read_f64(out, &loss[interp][i], 1));
      tg_scope_end(C);
    }
    CudaMockCounts after = cuda_mock_counts();
    assert_int_equal(after.graph_launches - before.graph_launches, interp ? 0 : STEPS - 2);
    tg_jit_free(j);
    tg_optim_free(g.optim);
    for (int i = 0; i < g.nparam; i++)
      tg_release(g.params[i]);
  }
  for (int i = 0; i < STEPS; i++)
    assert_float_equal(loss[0][i], loss[1][i], 1e-5);
  assert_true(loss[0][STEPS - 1] < loss[0][0]);
}

/* ---- memory and time */
static void memory_is_given_back(void **state) {
  (void)state;
  tg_scope_begin(C);
  TgTensor *x = tg_full(C, TG_SHAPE(1000, 1000), 3), *y = tg_sum(tg_contiguous(x));
  TEXT(y, "CUDA", "3000000.0");
  tg_scope_end(C);
  OK(tg_collect(C));
  tg_cache_clear(C);
  assert_in_range(cuda_mock_counts().blocks, 0, 2); /* freed, not hoarded: the emulator tells late uses */
  TgCounters c = tg_counters(C);
  assert_true(c.peak_bytes >= 4000000);
  OK(tg_sync(C));
  assert_true(tg_counters(C).ms > 0);
  OK(tg_memory_limit(C, "CUDA", 4096));
  assert_true(tg_realize(tg_contiguous(tg_full(C, TG_SHAPE(100, 100), 1))) == TG_ERR_NOMEM);
  assert_non_null(strstr(tg_errmsg(C), "CUDA"));
  tg_clear_error(C);
  OK(tg_memory_limit(C, "CUDA", 0));
  TEXT(tg_add(X("[1]"), X("[2]")), "CUDA", "[3]");
}

/* ---- calls that fail */
static void says_what_failed(void **state) {
  (void)state;
  TgTensor *x = tg_contiguous(tg_add(X("[1.0, 2.0]"), X("[3.0, 4.0]")));
  OK(tg_realize(x));
  float got[2];
  assert_true(cuda_mock_fail("copy_out", 1, CUDA_ILLEGAL_ADDRESS));
  assert_int_equal(tg_read(x, got, sizeof got), TG_ERR_DEVICE);
  assert_non_null(strstr(tg_errmsg(C), "CUDA: a copy from the device: CUDA_ERROR_ILLEGAL_ADDRESS"));
  assert_non_null(strstr(tg_errmsg(C), "kernel "));
  tg_clear_error(C);
  OK(tg_read(x, got, sizeof got));
  assert_float_equal(got[1], 6, 0);
  assert_true(cuda_mock_fail("memory_alloc", 1, CUDA_OUT_OF_MEMORY));
  TgTensor *y = tg_contiguous(tg_add(x, x));
  TgStatus s = tg_realize(y);
  assert_true(s == TG_OK || s == TG_ERR_NOMEM);
  tg_clear_error(C);
  TEXT(y, "CUDA", "[8.0, 12.0]");
}

typedef struct Outcome {
  TgStatus status;
  double value;
} Outcome;

/* What a program does: open, compute, capture and replay, copy between devices, close. */
static Outcome program(void) {
  Outcome o = {TG_OK, 0};
  TgContext *ctx = opened("CUDA");
  if (ctx && !tg_error(ctx)) {
    TgTensor *w = tg_keep(tg_full(ctx, TG_SHAPE(3, 5), 0.125));
    TgJit *j = w && !tg_realize(w) ? tg_jit(ctx, step, w) : NULL;
    for (int i = 0; i < 4 && j && !tg_error(ctx); i++) {
      TgTensor *x = tg_contiguous(tg_reshape(tg_mul_scalar(tg_arange(ctx, i, 12 + i), 0.25), TG_SHAPE(4, 3)));
      TgTensor *out = NULL;
      double v = 0;
      if (!x || tg_jit_run(j, &x, 1, &out, 1)) break;
      TgTensor *there = tg_to(tg_to(out, "CUDA:1"), "CPU");
      if (there && !tg_read_f64(there, &v, 1)) o.value += v;
    }
    tg_jit_free(j);
    tg_release(w);
  }
  o.status = ctx ? tg_error(ctx) : TG_ERR_NOMEM;
  tg_close(ctx);
  return o;
}

/* Every single call fails once: the program is told so, or is right all the same, and nothing is left. */
static void any_call_may_fail(void **state) {
  (void)state;
  emulate(1);
  cuda_mock_fail(NULL, 0, 0);
  Outcome right = program();
  assert_int_equal(right.status, TG_OK);
  nothing_left();
  uint64_t calls = cuda_mock_counts().calls, told = 0;
  assert_in_range(calls, 100, 5000);
  static const CUresult with[] = {CUDA_LAUNCH_FAILED, CUDA_OUT_OF_MEMORY};
  for (uint64_t n = 1; n <= calls; n++) {
    cuda_mock_fail(NULL, n, with[n % 2]);
    Outcome o = program();
    told += o.status != TG_OK;
    if (!o.status && (o.value < right.value - 1e-4 || o.value > right.value + 1e-4))
      fail_msg("call %d fails: %g, not %g, and no error", (int)n, o.value, right.value);
  }
  cuda_mock_fail(NULL, 0, 0);
  assert_true(told > calls / 2);
  right = program();
  assert_int_equal(right.status, TG_OK);
}

/* ---- misuse of the driver: what a wrong device of ours would do */
typedef struct Driver {
  CudaApi api;
  CUcontext context;
  CUstream a, b;
  CUevent e;
  CUdeviceptr x, y;
  float *host;
  CUmodule module;
  CUfunction twice; /* y = 2 x for 64 numbers */
} Driver;

#define DO(call) assert_int_equal(v->api.call, CUDA_OK)

static const char text[] =
    "extern \"C\" __global__ void __launch_bounds__(64) twice(float *y, const float *x) {\n"
    "  y[threadIdx.x] = 2 * x[threadIdx.x];\n}\n";

enum { N = 64, BYTES = N * sizeof(float) };

static void module_made(Driver *v) {
  nvrtcProgram unit;
  size_t n;
  const char *arch = "--gpu-architecture=sm_90";
  DO(unit_create(&unit, text, "twice.cu", 0, NULL, NULL));
  DO(unit_compile(unit, 1, &arch));
  DO(unit_cubin_size(unit, &n));
  char *image = malloc(n);
  assert_non_null(image);
  DO(unit_cubin(unit, image));
  DO(module_load(&v->module, image));
  DO(module_function(&v->twice, v->module, "twice"));
  DO(unit_destroy(&unit));
  free(image);
}

static void driver_open(Driver *v) {
  TgError err = {0};
  TgEnv env;
  emulate(1);
  *v = (Driver){0};
  assert_int_equal(env_read(&env, &err), TG_OK);
  if (cuda_mock_open(&env, &err, &v->api)) fail_msg("%s", err.msg);
  DO(context_retain(&v->context, 0));
  DO(context_set(v->context));
  DO(stream_create(&v->a, CUDA_STREAM_NON_BLOCKING));
  DO(stream_create(&v->b, CUDA_STREAM_NON_BLOCKING));
  DO(event_create(&v->e, 0));
  DO(memory_alloc(&v->x, BYTES));
  DO(memory_alloc(&v->y, BYTES));
  DO(host_alloc((void **)&v->host, 2 * BYTES, 0));
  for (int i = 0; i < N; i++)
    v->host[i] = (float)i;
  module_made(v);
}

static CUresult launch(Driver *v, CUstream s, unsigned grid, unsigned block) {
  void *args[] = {&v->y, &v->x};
  return v->api.launch(v->twice, grid, 1, 1, block, 1, 1, 0, s, args, NULL);
}

/* As it should be: copy in by one stream, kernel in the other after an event, copy out. */
static CUresult right(Driver *v) {
  CUresult r = v->api.copy_in(v->x, v->host, BYTES, v->a);
  if (!r) r = v->api.event_record(v->e, v->a);
  if (!r) r = v->api.stream_wait(v->b, v->e, 0);
  if (!r) r = launch(v, v->b, 1, N);
  if (!r) r = v->api.copy_out(v->host, v->y, BYTES, v->b);
  return r ? r : v->api.stream_sync(v->b);
}

static CUresult no_wait(Driver *v) { /* the copy is not waited for: unset memory is read */
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  launch(v, v->b, 1, N);
  return v->api.stream_sync(v->b);
}

static CUresult wait_before_record(Driver *v) { /* an event that nobody has recorded holds nobody up */
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  v->api.stream_wait(v->b, v->e, 0);
  v->api.event_record(v->e, v->a);
  launch(v, v->b, 1, N);
  return v->api.stream_sync(v->b);
}

static CUresult wrong_stream(Driver *v) { /* the event is recorded in the stream that waits */
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  v->api.event_record(v->e, v->b);
  v->api.stream_wait(v->b, v->e, 0);
  launch(v, v->b, 1, N);
  return v->api.stream_sync(v->b);
}

static CUresult freed_in_flight(Driver *v) {
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  launch(v, v->a, 1, N);
  return v->api.memory_free(v->y);
}

static CUresult freed_before_the_copy(Driver *v) {
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  return v->api.memory_free(v->x);
}

static CUresult pinned_freed_in_flight(Driver *v) {
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  return v->api.host_free(v->host);
}

static CUresult freed_twice(Driver *v) {
  v->api.memory_free(v->x);
  return v->api.memory_free(v->x);
}

static CUresult used_after_free(Driver *v) {
  v->api.memory_free(v->y);
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  launch(v, v->a, 1, N);
  return v->api.stream_sync(v->a);
}

static CUresult module_gone(Driver *v) {
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  launch(v, v->a, 1, N);
  return v->api.module_unload(v->module);
}

static CUresult copy_too_long(Driver *v) {
  v->api.copy_in(v->x, v->host, BYTES + 4, v->a);
  return v->api.stream_sync(v->a);
}

static CUresult copy_from_unset(Driver *v) {
  v->api.copy(v->y, v->x, BYTES, v->a);
  launch(v, v->a, 1, N); /* y from x, which is as unset as before */
  return v->api.stream_sync(v->a);
}

static CUresult grid_too_large(Driver *v) { /* two blocks write the same */
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  launch(v, v->a, 2, N);
  return v->api.stream_sync(v->a);
}

static CUresult block_too_large(Driver *v) {
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  CUresult r = launch(v, v->a, 1, N + 1);
  return r ? r : v->api.stream_sync(v->a);
}

static CUresult argument_past_the_end(Driver *v) {
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  v->y += 4;
  launch(v, v->a, 1, N);
  v->y -= 4;
  return v->api.stream_sync(v->a);
}

static CUresult other_gpus_memory(Driver *v) {
  CUcontext other;
  CUdeviceptr there = 0;
  v->api.context_retain(&other, 1);
  v->api.context_set(other);
  v->api.memory_alloc(&there, BYTES);
  v->api.context_set(v->context);
  CUdeviceptr own = v->y;
  v->y = there;
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  launch(v, v->a, 1, N);
  v->y = own;
  CUresult r = v->api.stream_sync(v->a);
  v->api.context_release(1);
  return r;
}

static CUresult graph_of_freed(Driver *v) {
  CUgraph g;
  CUgraphNode n;
  CUgraphExec e;
  void *args[] = {&v->y, &v->x};
  CudaKernelNode k = {v->twice, {1, 1, 1}, {N, 1, 1}, 0, args, NULL};
  v->api.graph_create(&g, 0);
  v->api.graph_add(&n, g, NULL, 0, &k);
  v->api.graph_instantiate(&e, g, 0);
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  v->api.stream_sync(v->a);
  v->api.memory_free(v->y);
  v->api.graph_launch(e, v->a);
  CUresult r = v->api.stream_sync(v->a);
  v->api.graph_exec_destroy(e);
  v->api.graph_destroy(g);
  return r;
}

/* Pinned memory that is written over while its copy is to come: the copy takes what is there then. */
static CUresult staging_used_early(Driver *v) {
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  v->host[3] = 99;
  launch(v, v->a, 1, N);
  v->api.copy_out(v->host, v->y, BYTES, v->a);
  v->api.stream_sync(v->a);
  return v->host[3] == 6 ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* What was to come back is looked at before it is there. */
static CUresult read_before_done(Driver *v) {
  v->api.copy_in(v->x, v->host, BYTES, v->a);
  launch(v, v->a, 1, N);
  v->api.copy_out(v->host, v->y, BYTES, v->a);
  CUresult seen = v->host[5] == 10 ? CUDA_OK : CUDA_INVALID_VALUE;
  v->api.stream_sync(v->a);
  return seen;
}

static CUresult time_not_reached(Driver *v) {
  CUevent later;
  float ms;
  v->api.event_create(&later, 0);
  v->api.event_record(v->e, v->a);
  v->api.event_record(later, v->a);
  CUresult r = v->api.event_ms(&ms, v->e, later);
  v->api.event_destroy(later);
  return r;
}

static void misuse_is_seen(void **state) {
  static const struct {
    const char *name;
    CUresult (*does)(Driver *v);
    const char *says; /* NULL: the result alone tells */
  } faults[] = {{"no wait for the copy", no_wait, "nobody wrote"},
                {"wait before the record", wait_before_record, "nobody wrote"},
                {"event in the wrong stream", wrong_stream, "nobody wrote"},
                {"freed in flight", freed_in_flight, "freed while"},
                {"freed before its copy", freed_before_the_copy, "freed while"},
                {"pinned memory freed in flight", pinned_freed_in_flight, "freed while a copy"},
                {"freed twice", freed_twice, "freed before"},
                {"used after free", used_after_free, ""},
                {"module unloaded in flight", module_gone, "unloaded while"},
                {"copy past the end", copy_too_long, ""},
                {"read of unset memory", copy_from_unset, "nobody wrote"},
                {"two blocks write the same", grid_too_large, "race"},
                {"block beyond the launch bounds", block_too_large, ""},
                {"argument past the end", argument_past_the_end, ""},
                {"memory of another GPU", other_gpus_memory, ""},
                {"graph of freed memory", graph_of_freed, ""},
                {"staging written over early", staging_used_early, NULL},
                {"read before it is done", read_before_done, NULL},
                {"time between events to come", time_not_reached, NULL}};

  (void)state;
  Driver *v = &(Driver){0};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    driver_open(v);
    CUresult r = faults[i].does(v);
    const char *why = "";
    if (r) v->api.error_text(r, &why);
    if (!r) fail_msg("not seen: %s", faults[i].name);
    if (faults[i].says && !strstr(why, faults[i].says)) fail_msg("%s: says \"%s\"", faults[i].name, why);
    if (faults[i].says) assert_true(strlen(why) > 0);
    v->api.context_release(0);
    cuda_mock_close();
  }
  driver_open(v);
  DO(copy_in(v->y, v->host, BYTES, v->a));
  DO(stream_sync(v->a));
  assert_int_equal(right(v), CUDA_OK);
  for (int i = 0; i < N; i++)
    assert_float_equal(v->host[i], 2 * i, 0);
  v->api.context_release(0);
  cuda_mock_close();
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_cuda, close_it)

int main(void) {
  const struct CMUnitTest tests[] = {T(opens),
                                     cmocka_unit_test(says_what_is_missing),
                                     T(same_as_cpu),
                                     T(copies_in_pieces),
                                     cmocka_unit_test(streams_are_ordered),
                                     cmocka_unit_test(peers),
                                     T(training_from_disk),
                                     T(replays),
                                     T(trains_a_gpt),
                                     T(memory_is_given_back),
                                     T(says_what_failed),
                                     cmocka_unit_test(any_call_may_fail),
                                     cmocka_unit_test(misuse_is_seen)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
