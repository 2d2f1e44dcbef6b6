/* test_cuda.c: the CUDA device on an emulated GPU: the driver's calls as they are made, with streams that do
 * their work as late as they may (TG_EMU=1) or in a seeded order, and calls that fail. Results are compared
 * with CPU's. What the emulator sees of kernels is in test_emulate.c. */
#define _GNU_SOURCE
#include "emu/cuda_emu.h"
#include "base/os.h"
#include "tg.h"
#include "tg_nn.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define DEVICE "CUDA"
#include "unit/gpu_suite.inc"

static void fail_nothing(void) { cuda_mock_fail(NULL, 0, 0); }

static uint64_t captured_launches(void) { return cuda_mock_counts().graph_launches; }

static int captured_living(void) { return cuda_mock_counts().execs; }

static int blocks_living(void) { return cuda_mock_counts().blocks; }

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

/* ---- the device */
static void opens(void **state) {
  (void)state;
  assert_string_equal(tg_default_device(C), "CUDA");
  const char *text = tg_device_describe(C);
  assert_non_null(strstr(text, "emulated GPU 0, sm_120a, 80 multiprocessors"));
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
  ctx = opened("CUDA:4");
  assert_non_null(strstr(tg_errmsg(ctx), "fewer GPUs"));
  tg_close(ctx);
  nothing_left();
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

static const char *const compile_options[] = {"--gpu-architecture=sm_120a", "--fmad=false", "--ftz=false",
                                              "--prec-div=true", "--prec-sqrt=true"};

static void module_made(Driver *v) {
  nvrtcProgram unit;
  size_t n;
  DO(unit_create(&unit, text, "twice.cu", 0, NULL, NULL));
  DO(unit_compile(unit, TG_COUNT(compile_options), compile_options));
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

static CUresult launched_as(Driver *v, const unsigned grid[3], const unsigned block[3], unsigned shared) {
  void *args[] = {&v->y, &v->x};
  return v->api.launch(v->twice, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, v->a, args,
                       NULL);
}

static CUresult too_many_rows(Driver *v) {
  return launched_as(v, (unsigned[]){1, 65536, 1}, (unsigned[]){1, 1, 1}, 0);
}

static CUresult too_many_layers(Driver *v) {
  return launched_as(v, (unsigned[]){1, 1, 65536}, (unsigned[]){1, 1, 1}, 0);
}

static CUresult block_too_deep(Driver *v) {
  return launched_as(v, (unsigned[]){1, 1, 1}, (unsigned[]){1, 1, 65}, 0);
}

static CUresult shared_not_asked_for(Driver *v) {
  return launched_as(v, (unsigned[]){1, 1, 1}, (unsigned[]){N, 1, 1}, 48 * 1024 + 16);
}

static CUresult shared_past_the_most(Driver *v) {
  return v->api.function_set(v->twice, CUDA_FUNCTION_DYNAMIC_SHARED, (int)target_cuda.local_most + 1);
}

/* The device that compiles says all that results depend on: nothing left out, added, or of another value. */
static CUresult compiled_with(Driver *v, int n, const char *const *options) {
  nvrtcProgram unit;
  DO(unit_create(&unit, text, "twice.cu", 0, NULL, NULL));
  nvrtcResult r = v->api.unit_compile(unit, n, options);
  DO(unit_destroy(&unit));
  return r;
}

static CUresult option_changed(Driver *v) {
  CUresult r = CUDA_INVALID_VALUE;
  for (size_t i = 0; i < TG_COUNT(compile_options) && r; i++) {
    static const char *const other[] = {"--gpu-architecture=sm_90", "--fmad=true", "--ftz=true",
                                        "--prec-div=false", "--prec-sqrt=false"};
    const char *options[TG_COUNT(compile_options)];
    memcpy(options, compile_options, sizeof options);
    options[i] = other[i];
    r = compiled_with(v, TG_COUNT(options), options);
  }
  return r;
}

static CUresult option_left_out(Driver *v) {
  return compiled_with(v, TG_COUNT(compile_options) - 1, compile_options);
}

static CUresult option_added(Driver *v) {
  const char *options[TG_COUNT(compile_options) + 1] = {[TG_COUNT(compile_options)] = "--use_fast_math"};
  memcpy(options, compile_options, sizeof compile_options);
  return compiled_with(v, TG_COUNT(options), options);
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
                {"time between events to come", time_not_reached, NULL},
                {"65536 blocks along y", too_many_rows, NULL},
                {"65536 blocks along z", too_many_layers, NULL},
                {"65 threads along z", block_too_deep, NULL},
                {"shared memory not asked for", shared_not_asked_for, NULL},
                {"more shared memory than there is", shared_past_the_most, NULL},
                {"a compile option changed", option_changed, NULL},
                {"a compile option left out", option_left_out, NULL},
                {"a compile option added", option_added, NULL}};

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

/* ---- the device by itself */
/* Of no bytes: nothing is asked of the driver, and no order is known that was not waited for. */
static void empty_copies(void **state) {
  (void)state;
  TgMem m = {0};
  TgError err = {0};
  TgEnv env;
  emulate(1);
  assert_int_equal(env_read(&env, &err), TG_OK);
  Device d = {
      .backend = &backend_cuda, .name = "CUDA", .mem = &m, .os = &tg_os_default, .env = &env, .err = &err};
  assert_int_equal(backend_cuda.open(&d), TG_OK);
  Cuda *p = d.priv;
  void *at;
  char byte = 7;
  assert_int_equal(backend_cuda.alloc(&d, 16, &at), TG_OK);
  assert_int_equal(backend_cuda.clear(&d, at, 16), TG_OK);
  uint64_t calls = cuda_mock_counts().calls, given = p->memory.blocks.given, done = p->memory.blocks.done;
  assert_true(given > done);
  assert_int_equal(backend_cuda.copy_out(&d, &byte, at, 0), TG_OK);
  assert_int_equal(backend_cuda.copy_in(&d, at, &byte, 0), TG_OK);
  assert_int_equal(backend_cuda.copy(&d, at, at, 0), TG_OK);
  assert_int_equal(backend_cuda.clear(&d, at, 0), TG_OK);
  assert_int_equal(cuda_mock_counts().calls, calls);
  assert_true(p->memory.blocks.given == given && p->memory.blocks.done == done);
  assert_int_equal(backend_cuda.copy_out(&d, &byte, at, 1), TG_OK);
  assert_int_equal(byte, 0);
  assert_int_equal(p->memory.blocks.done, p->memory.blocks.given);
  /* a wait is of all that was given: memory that kernels and copies still use goes back to the driver after
   * it */
  assert_int_equal(backend_cuda.clear(&d, at, 16), TG_OK);
  backend_cuda.free(&d, at, 16);
  if (backend_cuda.alloc(&d, 16, &at)) fail_msg("%s", err.msg);
  backend_cuda.free(&d, at, 16);
  backend_cuda.close(&d);
  nothing_left();
}

/* A copy to memory that the device still uses, or that was freed in use and given to another, comes after: in
 * every order of the streams. */
static void copies_come_after(void **state) {
  enum { LAST = 6, BYTES_OF = 64 };

  (void)state;
  for (int order = 1; order <= LAST; order++) {
    TgMem m = {0};
    TgError err = {0};
    TgEnv env;
    emulate(order);
    assert_int_equal(env_read(&env, &err), TG_OK);
    Device d = {
        .backend = &backend_cuda, .name = "CUDA", .mem = &m, .os = &tg_os_default, .env = &env, .err = &err};
    assert_int_equal(backend_cuda.open(&d), TG_OK);
    void *at;
    char in[BYTES_OF], out[BYTES_OF];
    memset(in, 7, sizeof in);
    for (int reused = 0; reused < 2; reused++) {
      assert_int_equal(backend_cuda.alloc(&d, sizeof in, &at), TG_OK);
      assert_int_equal(backend_cuda.clear(&d, at, sizeof in), TG_OK);
      if (reused) {
        backend_cuda.free(&d, at, sizeof in);
        assert_int_equal(backend_cuda.alloc(&d, sizeof in, &at), TG_OK);
      }
      assert_int_equal(backend_cuda.copy_in(&d, at, in, sizeof in), TG_OK);
      assert_int_equal(backend_cuda.copy_out(&d, out, at, sizeof out), TG_OK);
      if (memcmp(in, out, sizeof in)) fail_msg("order %d%s", order, reused ? ", reused" : "");
      backend_cuda.free(&d, at, sizeof in);
    }
    backend_cuda.close(&d);
    nothing_left();
  }
}

/* ---- which compiler: libraries that say which version they are, and do nothing */
static int driver_is = 0, opened_now = 0; /* what the driver's version is; libraries open */
static const char *there = "";            /* names of the libraries that there are */

static CUresult fake_driver(int *version) { return *version = driver_is, CUDA_OK; }

static nvrtcResult fake_13(int *major, int *minor) { return *major = 13, *minor = 1, 0; }

static nvrtcResult fake_12(int *major, int *minor) { return *major = 12, *minor = 8, 0; }

static nvrtcResult fake_11(int *major, int *minor) { return *major = 11, *minor = 2, 0; }

static void fake_call(void) {}

static void *fake_open(const char *name) {
  static const char *const known[] = {"libcuda.so.1", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
  for (size_t i = 0; i < TG_COUNT(known); i++)
    if (!strcmp(name, known[i]) && (!i || strstr(there, name)))
      return opened_now++, (void *)(uintptr_t)&known[i];
  return NULL;
}

static void *fake_symbol(void *library, const char *name) {
  const char *of = *(const char *const *)library;
  void *call;
  if (!strcmp(name, "cuDriverGetVersion"))
    memcpy(&call, &(CUresult(*[])(int *)){fake_driver}[0], sizeof call);
  else if (!strcmp(name, "nvrtcVersion"))
    memcpy(&call,
           &(nvrtcResult(*[])(int *, int *)){strstr(of, "13")   ? fake_13
                                             : strstr(of, "12") ? fake_12
                                                                : fake_11}[0],
           sizeof call);
  else
    memcpy(&call, &(void (*[])(void)){fake_call}[0], sizeof call);
  return call;
}

static int fake_close(void *library) { return (void)library, opened_now--, 0; }

static void compiler_is_one_that_the_driver_takes(void **state) {
  static const struct {
    int driver;
    const char *there;
    int major;        /* that is taken; 0: none */
    const char *says; /* .. and why */
  } cases[] = {
      {13000, "libnvrtc.so.13 libnvrtc.so.12", 13, NULL},
      {12040, "libnvrtc.so.13 libnvrtc.so.12", 12, NULL},
      {12080, "libnvrtc.so.13 libnvrtc.so.11.2", 11, NULL},
      {13010, "libnvrtc.so.12", 12, NULL},
      {12040, "libnvrtc.so.13", 0,
       "takes code of CUDA 12 and older, and of libnvrtc, the compiler of kernels, there is only 13.1"},
      {11040, "libnvrtc.so.13 libnvrtc.so.12", 0, "only 13.1, 12.8"},
      {12040, "", 0, "neither on the loader's path nor"}};

  (void)state;
  TgOs os = tg_os_default;
  os.library_open = fake_open, os.library_symbol = fake_symbol, os.library_close = fake_close;
  for (size_t i = 0; i < TG_COUNT(cases); i++) {
    TgError err = {0};
    TgEnv env = {0};
    CudaLibraries lib;
    CudaApi api;
    int major = 0, minor;
    driver_is = cases[i].driver, there = cases[i].there;
    TgStatus st = cuda_load(&os, &env, &err, &lib, &api);
    if (!st) api.compiler_version(&major, &minor);
    if (major != cases[i].major) fail_msg("case %d: %d, %s", (int)i, major, err.msg);
    if (cases[i].says && !strstr(err.msg, cases[i].says)) fail_msg("case %d: %s", (int)i, err.msg);
    cuda_unload(&os, &lib);
    assert_int_equal(opened_now, 0);
  }
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_device, close_it)

int main(void) {
  const struct CMUnitTest tests[] = {T(opens),
                                     cmocka_unit_test(says_what_is_missing),
                                     cmocka_unit_test(empty_copies),
                                     cmocka_unit_test(copies_come_after),
                                     cmocka_unit_test(compiler_is_one_that_the_driver_takes),
                                     T(same_as_cpu),
                                     T(long_products),
                                     T(copies_in_pieces),
                                     cmocka_unit_test(variables_are_given),
                                     cmocka_unit_test(streams_are_ordered),
                                     cmocka_unit_test(peers),
                                     T(bytes_of_a_file),
                                     T(training_from_disk),
                                     T(replays),
                                     T(trains_a_gpt),
                                     T(memory_is_given_back),
                                     T(says_what_failed),
                                     cmocka_unit_test(any_call_may_fail),
                                     cmocka_unit_test(misuse_is_seen)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
