/* test_launch.c: what a GPU launches has limits: blocks along each axis of a grid, threads along each axis of
 * a block, shared memory. Kernels whose loops are longer run all the same; lists of opts that ask for more
 * are refused by a sentence that names the limit; what is planned past the memory that arrays may declare is
 * asked for at the launch. Emulated devices refuse what a GPU would. */
#include "emu/cuda_emu.h"
#include "tg.h"
#include "plan/target.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *open_with(const char *device, const char *noopt, const char *opts) {
  setenv("TG_EMU", "1", 1);
  setenv("TG_NOOPT", noopt, 1);
  if (opts) setenv("TG_OPTS", opts, 1);
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  unsetenv("TG_NOOPT"), unsetenv("TG_OPTS");
  if (tg_error(ctx)) fail_msg("%s", tg_errmsg(ctx));
  return ctx;
}

/* ---- grids */
typedef struct Seen {
  int kernels;
  bool many; /* of a grid, along another axis than x */
  double blocks;
} Seen;

static void seen(const TgKernelText *k, void *user) {
  Seen *s = user;
  char why[LAUNCH_WHY];
  const Target *t = !strcmp(k->language, "METAL") ? &target_metal : &target_cuda;
  if (!target_launches(t, k->grid, k->block, why)) fail_msg("%s: %s", k->name, why);
  s->kernels++, s->many |= k->grid[1] > 1 || k->grid[2] > 1;
  s->blocks = (double)k->grid[0] * k->grid[1] * k->grid[2];
}

/* Its axes turned and one added to: as many loops as it has axes. */
static TgTensor *turned(TgTensor *x) {
  int64_t order[8];
  int n = tg_ndim(x);
  for (int i = 0; i < n; i++)
    order[i] = n - 1 - i;
  return tg_contiguous(tg_add(tg_permute(x, n, order), tg_full(tg_context(x), 0, NULL, 1, .dtype = TG_I16)));
}

static void values_are_right(const char *device, int n, const int64_t *d) {
  TgContext *ctx = open_with(device, "1", NULL);
  Seen s = {0};
  int64_t count = 1;
  for (int i = 0; i < n; i++)
    count *= d[i];
  int16_t *in = malloc(sizeof *in * (size_t)count), *out = malloc(sizeof *out * (size_t)count);
  assert_true(in && out);
  for (int64_t i = 0; i < count; i++)
    in[i] = (int16_t)(i * 7919 % 30011);
  TgTensor *x = tg_from(ctx, in, TG_I16, n, d);
  if (tg_realize(x)) fail_msg("%s", tg_errmsg(ctx));
  tg_watch_kernels(ctx, seen, &s);
  if (tg_read(turned(x), out, sizeof *out * (size_t)count)) fail_msg("%s: %s", device, tg_errmsg(ctx));
  assert_int_equal(s.kernels, 1);
  for (int64_t i = 0; i < count; i++) {
    int64_t from = 0, rest = i, place[8];
    for (int k = 0; k < n; k++) /* of the turned: the first axis is the last one here */
      place[k] = rest % d[k], rest /= d[k];
    for (int k = 0; k < n; k++)
      from = from * d[k] + place[k];
    if (out[i] != (int16_t)(in[from] + 1)) fail_msg("%s: element %lld is wrong", device, (long long)i);
  }
  free(in), free(out);
  tg_close(ctx);
}

static void long_grids(void **state) {
  (void)state;
  static const char *const devices[] = {"INTERP:CUDA", "CUDA", "INTERP:METAL", "METAL"};
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    values_are_right(devices[i], 2, (int64_t[]){2, 70000});          /* y */
    values_are_right(devices[i], 3, (int64_t[]){2, 2, 66000});       /* z */
    values_are_right(devices[i], 5, (int64_t[]){2, 2, 2, 258, 257}); /* what shares z */
  }
}

/* More blocks than an axis has, and no axis alone has room: only planned. */
static void grids_of_many_blocks(void **state) {
  (void)state;

  static const struct {
    int64_t d[4];
    int n;
  } shapes[] = {
      {{70000, 3, 70000}, 3}, {{65536, 65536, 2}, 3}, {{3, 1 << 20, 1 << 12, 5}, 4}, {{7, 2147483647}, 2}};

  static const char *const devices[] = {"NULL:CUDA", "NULL:METAL"};
  for (size_t i = 0; i < 2; i++)
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
      TgContext *ctx = open_with(devices[i], "1", NULL);
      Seen s = {0};
      double blocks = 1;
      for (int a = 0; a < shapes[k].n; a++)
        blocks *= (double)shapes[k].d[a];
      tg_watch_kernels(ctx, seen, &s);
      TgTensor *x = tg_empty(ctx, TG_U8, shapes[k].n, shapes[k].d);
      int64_t order[4];
      for (int a = 0; a < shapes[k].n; a++)
        order[a] = shapes[k].n - 1 - a;
      if (tg_realize(tg_contiguous(tg_permute(x, shapes[k].n, order))))
        fail_msg("%s, %d: %s", devices[i], (int)k, tg_errmsg(ctx));
      assert_int_equal(s.kernels, 1);
      assert_true(s.blocks == blocks && s.many);
      assert_int_equal(tg_counters(ctx).fallbacks, 0);
      tg_close(ctx);
    }
}

/* No axes have a product that is this prime: said so, and not launched in part. */
static void no_such_grid(void **state) {
  (void)state;
  TgContext *ctx = open_with("NULL:CUDA", "1", NULL);
  TgTensor *x = tg_empty(ctx, TG_U8, TG_SHAPE(2147483659));
  assert_int_equal(tg_realize(tg_contiguous(tg_flip(x, 1, (int64_t[]){0}))), TG_ERR_LIMIT);
  assert_non_null(strstr(tg_errmsg(ctx), "at most 2147483647 along x, 65535 along y, 65535 along z"));
  tg_close(ctx);
  ctx = open_with("NULL:CUDA", "0", NULL); /* blocks of many threads are fewer */
  x = tg_empty(ctx, TG_U8, TG_SHAPE(2147483659));
  assert_int_equal(tg_realize(tg_contiguous(tg_flip(x, 1, (int64_t[]){0}))), TG_OK);
  tg_close(ctx);
}

/* ---- blocks */
static void refused_as(const char *device, const char *opts, const char *why) {
  TgContext *ctx = open_with(device, "0", opts);
  TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(256, 256, 256));
  TgStatus st = tg_realize(tg_contiguous(tg_permute(x, TG_SHAPE(2, 1, 0))));
  if (why && (!st || !strstr(tg_errmsg(ctx), why))) fail_msg("%s %s: %s", device, opts, tg_errmsg(ctx));
  if (!why && st) fail_msg("%s %s: %s", device, opts, tg_errmsg(ctx));
  tg_close(ctx);
}

static void blocks_have_limits(void **state) {
  (void)state;
  static const char *const deep = "LOCAL r0 128, LOCAL r1 2, LOCAL r2 2";
  refused_as("NULL:CUDA", deep, "opts: 128 threads of a block along z, 64 are the most");
  refused_as("INTERP:CUDA", deep, "opts: 128 threads of a block along z, 64 are the most");
  refused_as("NULL:CUDA", "LOCAL r0 64, LOCAL r1 2, LOCAL r2 2", NULL);
  refused_as("NULL:METAL", deep, NULL);
  refused_as("NULL:CUDA", "LOCAL r0 64, LOCAL r1 32", "a block has 1024 threads at most");
  refused_as("NULL:METAL", "LOCAL r0 64, LOCAL r1 32", "a block has 1024 threads at most");
}

/* ---- shared memory */
static void product(const char *device, const char *opts, float *out, int n) {
  TgContext *ctx = open_with(device, "0", opts);
  TgTensor *x[2];
  Seen s = {0};
  float *data = malloc(sizeof *data * (size_t)(n * n));
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < n * n; i++)
      data[i] = (float)((i * 31 + k) % 17 - 8);
    x[k] = tg_from(ctx, data, TG_F32, TG_SHAPE(n, n));
    if (tg_realize(x[k])) fail_msg("%s", tg_errmsg(ctx));
  }
  tg_watch_kernels(ctx, seen, &s);
  if (tg_read(tg_matmul(x[0], x[1]), out, sizeof *out * (size_t)(n * n))) fail_msg("%s", tg_errmsg(ctx));
  if (tg_counters(ctx).fallbacks) fail_msg("%s: %s", device, opts);
  free(data);
  tg_close(ctx);
}

static void shared_memory_is_asked_for(void **state) {
  enum { N = 128 };

  (void)state;
  /* 64 x 128 and 128 x 64 floats: 64 KB */
  static const char *const opts =
      "TILE r0 64, TILE r1 64, TILE r2 128, STAGE p1, STAGE p2, LOCAL r0 16, LOCAL r1 16";
  static const char *const devices[] = {"INTERP", "INTERP:CUDA", "CUDA"};
  float want[N * N], got[N * N];
  product(devices[0], NULL, want, N);
  for (size_t i = 1; i < 3; i++) {
    memset(got, 0, sizeof got);
    product(devices[i], opts, got, N);
    assert_memory_equal(got, want, sizeof got);
  }
  /* more than any GPU of the target has, and more than Metal has */
  TgContext *ctx = open_with("NULL:CUDA", "0", "TILE r0 128, TILE r1 128, TILE r2 256, STAGE p1, STAGE p2");
  TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(512, 512)), *y = tg_empty(ctx, TG_F32, TG_SHAPE(512, 512));
  assert_int_equal(tg_realize(tg_matmul(x, y)), TG_ERR_VALUE);
  if (!strstr(tg_errmsg(ctx), "local memory")) fail_msg("%s", tg_errmsg(ctx));
  tg_close(ctx);
  ctx = open_with("NULL:METAL", "0", opts);
  x = tg_empty(ctx, TG_F32, TG_SHAPE(N, N)), y = tg_empty(ctx, TG_F32, TG_SHAPE(N, N));
  assert_int_equal(tg_realize(tg_matmul(x, y)), TG_ERR_VALUE);
  if (!strstr(tg_errmsg(ctx), "local memory")) fail_msg("%s", tg_errmsg(ctx));
  tg_close(ctx);
}

/* A captured function asks for it too, at each replay. */
static TgStatus products(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)ctx, (void)nin, (void)nout, (void)user;
  TgTensor *once = tg_matmul(in[0], in[1]);
  out[0] = tg_matmul(tg_contiguous(once), in[1]);
  return TG_OK;
}

static void captured_kernels_ask_too(void **state) {
  enum { N = 128, RUNS = 4 };

  (void)state;
  static float data[N * N], twice[N * N], got[N * N];
  TgContext *ctx = open_with(
      "CUDA", "0", "TILE r0 64, TILE r1 64, TILE r2 128, STAGE p1, STAGE p2, LOCAL r0 16, LOCAL r1 16");
  for (int i = 0; i < N * N; i++)
    data[i] = (float)(i % 5 - 2);
  TgTensor *in[2] = {tg_from(ctx, data, TG_F32, TG_SHAPE(N, N)), NULL}, *out = NULL;
  for (int i = 0; i < N; i++)
    twice[i * N + i] = 2;
  in[1] = tg_from(ctx, twice, TG_F32, TG_SHAPE(N, N));
  TgJit *jit = tg_jit(ctx, products, NULL);
  for (int run = 0; run < RUNS; run++) {
    if (tg_jit_run(jit, in, 2, &out, 1) || tg_read(out, got, sizeof got)) fail_msg("%s", tg_errmsg(ctx));
    for (int i = 0; i < N * N; i++)
      if (got[i] != 4 * data[i]) fail_msg("run %d, element %d", run, i);
  }
  assert_true(cuda_mock_counts().graph_launches > 0);
  tg_jit_free(jit);
  tg_close(ctx);
}

/* ---- the last line: a kernel that was made for another machine */
static void sentences(void **state) {
  (void)state;
  char why[LAUNCH_WHY];

  static const struct {
    int grid[3], block[3];
    const char *why;
  } bad[] = {{{1, 65536, 1}, {32, 1, 1}, "65536 blocks along y, 65535 are the most"},
             {{1, 1, 70000}, {32, 1, 1}, "70000 blocks along z, 65535 are the most"},
             {{1, 1, 1}, {1, 1, 65}, "65 threads of a block along z, 64 are the most"},
             {{1, 1, 1}, {2048, 1, 1}, "2048 threads of a block along x, 1024 are the most"},
             {{1, 1, 1}, {64, 4, 8}, "2048 threads in a block, 1024 are the most"}};

  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_false(target_launches(&target_cuda, bad[i].grid, bad[i].block, why));
    assert_string_equal(why, bad[i].why);
  }
  assert_true(target_launches(&target_cuda, (int[]){INT32_MAX, 65535, 65535}, (int[]){16, 1, 64}, why));
  assert_true(target_launches(&target_metal, (int[]){1, 70000, 70000}, (int[]){1, 1, 1024}, why));
}

/* ---- loops of symbolic length: memory is written as far as n says, and nothing past it is read */
static void seen_rows(const char *device, const char *noopt, int64_t n) {
  enum { MOST = 300, WIDE = 70 };

  TgContext *ctx = open_with(device, noopt, NULL);
  TgVariable *v = tg_variable(ctx, "n", 1, MOST);
  float in[MOST * WIDE], sums[MOST], weights[MOST], want = 0;
  for (int i = 0; i < MOST * WIDE; i++)
    in[i] = (float)(i % 7) - 3;
  assert_int_equal(tg_variable_bind(v, n), TG_OK);
  TgTensor *x = tg_keep(tg_empty(ctx, TG_F32, TG_SHAPE(MOST, WIDE)));
  TgTensor *given = tg_from(ctx, in, TG_F32, TG_SHAPE(n, WIDE));
  assert_non_null(tg_assign_slice(x, (int64_t[]){0, 0}, (int64_t[]){n, WIDE}, given));
  TgTensor *rows = tg_slice(x, 0, 0, tg_size(v)), *sum = tg_sum(rows, .axis = TG_AXES(1));
  TgTensor *weight = tg_softmax(sum);
  if (tg_read(sum, sums, sizeof *sums * (size_t)n) || tg_read(weight, weights, sizeof *weights * (size_t)n))
    fail_msg("%s, noopt %s, %lld rows: %s", device, noopt, (long long)n, tg_errmsg(ctx));
  for (int64_t i = 0; i < n; i++) {
    float row = 0;
    for (int j = 0; j < WIDE; j++)
      row += in[i * WIDE + j];
    assert_true(sums[i] == row);
    want += weights[i];
  }
  assert_true(want > 0.999f && want < 1.001f);
  tg_release(x);
  tg_close(ctx);
}

static void blocks_follow_variables(void **state) {
  (void)state;
  static const int64_t n[] = {1, 2, 31, 32, 33, 256, 257, 300};
  for (size_t i = 0; i < sizeof n / sizeof *n; i++)
    for (int noopt = 0; noopt < 2; noopt++) {
      seen_rows("CUDA", noopt ? "1" : "0", n[i]);
      seen_rows("METAL", noopt ? "1" : "0", n[i]);
      seen_rows("INTERP:CUDA", noopt ? "1" : "0", n[i]);
    }
}

/* (add + by n) / each, at least one and at most all */
static void blocks_are_needed(void **state) {
  (void)state;
  const GridBlocks all = {0}, each = {.each = 32, .add = 31, .by = {1}}, two = {.each = 1, .by = {0, 3}};
  assert_int_equal(blocks_needed(&all, 7, NULL), 7);
  static const int64_t n[] = {0, 1, 32, 33, 300, INT32_MAX}, want[] = {1, 1, 1, 2, 10, 10};
  for (int i = 0; i < 6; i++)
    assert_int_equal(blocks_needed(&each, 10, &n[i]), want[i]);
  assert_int_equal(blocks_needed(&two, 10, (int64_t[]){9, 2}), 6);
  assert_int_equal(blocks_needed(&two, 10, (int64_t[]){9, -2}), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(long_grids),
                                     cmocka_unit_test(grids_of_many_blocks),
                                     cmocka_unit_test(no_such_grid),
                                     cmocka_unit_test(blocks_have_limits),
                                     cmocka_unit_test(shared_memory_is_asked_for),
                                     cmocka_unit_test(captured_kernels_ask_too),
                                     cmocka_unit_test(sentences),
                                     cmocka_unit_test(blocks_follow_variables),
                                     cmocka_unit_test(blocks_are_needed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
