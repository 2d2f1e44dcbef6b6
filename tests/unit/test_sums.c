/* test_sums.c: long sums of floats keep their bound: against the sum in double, on every device, shaped or
 * plain, of one axis or several, and the same bits for any number of threads; on request also for any number of
 * rows. */
#include "tg_nn.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *open_on(const char *device, int threads, int noopt) {
  TgContext *ctx = tg_open(
      &(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .threads = threads, .cores = 8});
  assert_int_equal(tg_error(ctx), TG_OK);
  tg_setting(ctx, "NOOPT", noopt);
  return ctx;
}

static float *numbers(size_t n, double low, double high) {
  float *v = malloc(n * sizeof *v);
  unsigned seed = 7;
  for (size_t i = 0; i < n; i++)
    seed = seed * 1664525u + 1013904223u, v[i] = (float)(low + (high - low) * (seed >> 8) / 16777216.0);
  return v;
}

static void near(const char *what, const char *device, double got, double want, double of) {
  if (!(fabs(got - want) <= 6e-6 * of)) fail_msg("%s on %s: %.9g, not %.9g", what, device, got, want);
}

static const struct {
  const char *device;
  int noopt;
  size_t n;
} runs[] = {{"CPU", 0, 3000001},   {"CPU", 1, 3000001},        {"CPU", 0, 1 << 21},
            {"INTERP", 0, 200001}, {"INTERP:CUDA", 0, 300001}, {"INTERP:METAL", 1, 100000}};

static void test_equal_values(void **state) { /* every rounding goes the same way: the worst there is */
  (void)state;
  for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
    TgContext *ctx = open_on(runs[r].device, 0, runs[r].noopt);
    float tenth = 0.1f;
    TgTensor *x = tg_contiguous(tg_full(ctx, TG_SHAPE((int64_t)runs[r].n), 0.1, .dtype = TG_F32));
    TgTensor *b = tg_contiguous(tg_full(ctx, TG_SHAPE((int64_t)runs[r].n), 255, .dtype = TG_U8));
    near("mean of 0.1", runs[r].device, tg_item_f64(tg_mean(x)), tenth, tenth);
    near("mean of bytes of 255", runs[r].device, tg_item_f64(tg_mean(b)), 255, 255);
    near("variance of 0.1", runs[r].device, tg_item_f64(tg_var(x)), 0, 0.1);
    assert_int_equal(tg_error(ctx), TG_OK);
    tg_close(ctx);
  }
}

/* one loop of several is cut; loops that a maximum and a sum share; a sum of products */
static void test_axes(void **state) {
  (void)state;

  enum { A = 7, B = 450, C = 333 };

  static const char *const devices[] = {"CPU", "INTERP", "INTERP:C", "INTERP:CUDA"};
  float *v = numbers(A * B * C, 0.5, 1.5);
  double total = 0, rows[A] = {0}, columns[C] = {0}, squares = 0, largest = 0;
  for (int i = 0; i < A * B * C; i++)
    total += v[i], rows[i / (B * C)] += v[i], columns[i % C] += v[i], squares += (double)v[i] * v[i],
        largest = fmax(largest, v[i]);
  for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
    for (int noopt = 0; noopt < 2; noopt++) {
      TgContext *ctx = open_on(devices[d], 0, noopt);
      TgTensor *x = tg_from(ctx, v, TG_F32, TG_SHAPE(A, B, C)), *flat = tg_reshape(x, TG_SHAPE(A * B * C));
      float row[A], column[C];
      near("sum", devices[d], tg_item_f64(tg_sum(x)), total, total);
      near("sum of a flip", devices[d],
           tg_item_f64(tg_sum(tg_flip(tg_permute(x, 3, (int64_t[]){2, 0, 1}), 1, (int64_t[]){1}))), total,
           total);
      near("sum of squares", devices[d], tg_item_f64(tg_sum(tg_square(x))), squares, squares);
      near("dot", devices[d], tg_item_f64(tg_matmul(flat, flat)), squares, squares);
      near("sum less maximum", devices[d], tg_item_f64(tg_sub(tg_sum(x), tg_max(x))), total - largest, total);
      assert_int_equal(tg_read(tg_sum(x, .axis = TG_AXES(1, 2)), row, sizeof row), TG_OK);
      for (int i = 0; i < A; i++)
        near("rows", devices[d], row[i], rows[i], rows[i]);
      assert_int_equal(tg_read(tg_sum(x, .axis = TG_AXES(0, 1)), column, sizeof column), TG_OK);
      for (int i = 0; i < C; i++)
        near("columns", devices[d], column[i], columns[i], columns[i]);
      assert_int_equal(tg_error(ctx), TG_OK);
      tg_close(ctx);
    }
  free(v);
}

static void test_rows(void **state) { /* a long row kept in local memory beside its sum */
  (void)state;

  enum { N = 70001 };

  float *v = numbers(N, -1, 1), *got = malloc(N * sizeof *got);
  double sum = 0;
  for (int i = 0; i < N; i++)
    sum += exp(v[i]);
  for (int noopt = 0; noopt < 2; noopt++) {
    TgContext *ctx = open_on("CPU", 0, noopt);
    assert_int_equal(tg_read(tg_softmax(tg_from(ctx, v, TG_F32, TG_SHAPE(N))), got, N * sizeof *got), TG_OK);
    for (int i = 0; i < N; i += 97)
      assert_true(fabs(got[i] - exp(v[i]) / sum) <= 3e-5 * got[i]);
    tg_close(ctx);
  }
  free(v), free(got);
}

static void test_threads(void **state) {
  (void)state;

  enum { ROWS = 16, N = 20011 };

  float *v = numbers(ROWS * N, -1, 1), first[ROWS], got[ROWS];
  static const int threads[] = {1, 2, 5};
  for (int t = 0; t < 3; t++) {
    TgContext *ctx = open_on("CPU", threads[t], 0);
    assert_int_equal(tg_read(tg_sum(tg_from(ctx, v, TG_F32, TG_SHAPE(ROWS, N)), .axis = TG_AXES(1)),
                             t ? got : first, sizeof got),
                     TG_OK);
    if (t) assert_memory_equal(got, first, sizeof got);
    tg_close(ctx);
  }
  free(v);
}

/* Rows of n elements, or columns: each result of a running sum or product is rounded once, however many stand
 * before it, whole or in parts, of one length or not. */
static void running(TgContext *ctx, const char *device, int64_t rows, int64_t n, bool columns, bool product) {
  size_t count = (size_t)(rows * n);
  float *v = product ? numbers(count, 0.9995, 1.0005) : numbers(count, -1, 3),
        *got = malloc(count * sizeof *got);
  int64_t d[2] = {columns ? n : rows, columns ? rows : n};
  TgTensor *x = tg_from(ctx, v, TG_F32, 2, d);
  assert_int_equal(
      tg_read(product ? tg_cumprod(x, !columns) : tg_cumsum(x, !columns), got, count * sizeof *got), TG_OK);
  for (int64_t r = 0; r < rows; r++) {
    double want = product;
    for (int64_t k = 0; k < n; k++) {
      int64_t at = columns ? k * rows + r : r * n + k;
      want = product ? want * v[at] : want + v[at];
      double ulp = nextafterf(fabsf((float)want), INFINITY) - fabsf((float)want);
      if (!(fabs(got[at] - want) <= 0.5001 * ulp))
        fail_msg("%s, %s %d of %d x %d %s: element %d is off by %.3f ulp", device,
                 product ? "product" : "sum", (int)r, (int)rows, (int)n, columns ? "columns" : "rows", (int)k,
                 fabs(got[at] - want) / ulp);
    }
  }
  free(v), free(got);
}

static void test_running(void **state) {
  (void)state;
  static const int64_t sizes[][2] = {{1, 1000},    {1, 8192},  {1, 8209},  {1, 200000},
                                     {1, 1000003}, {3, 20011}, {20, 9000}, {40, 8200}};
  for (int t = 0; t < 2; t++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      TgContext *ctx = open_on(t ? "INTERP" : "CPU", 0, 0);
      for (int how = 0; how < 4 && (!t || sizes[i][0] * sizes[i][1] < 100000); how++)
        TG_SCOPE(ctx) running(ctx, t ? "INTERP" : "CPU", sizes[i][0], sizes[i][1], how & 1, how & 2);
      tg_close(ctx);
    }
}

/* ---- BATCH_INVARIANT */
typedef struct Weights {
  TgTensor *w, *a, *b, *c; /* c: (in, out) */
} Weights;

/* What a layer of a language model sums: a norm, a product, an adapter's two small ones, a softmax. */
static TgStatus layer(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const Weights *k = user;
  (void)nin, (void)nout;
  TgTensor *x = tg_rms_norm(in[0]);
  TgTensor *y = tg_linear(x, k->w, NULL);
  y = tg_add(y, tg_linear(tg_linear(x, k->a, NULL), k->b, NULL));
  y = tg_add(y, tg_matmul(tg_layer_norm(in[0]), k->c));
  out[0] = tg_add(tg_silu(y), tg_softmax(y));
  return out[0] ? TG_OK : tg_error(ctx);
}

/* The first row's result of so many rows, the others of which are anything. */
static void row_of(TgContext *ctx, Weights *k, const float *x, int64_t rows, int64_t n, float *got) {
  int64_t m = tg_dim(k->w, 0);
  float *all = malloc((size_t)(rows * m) * sizeof *all);
  assert_int_equal(tg_setting(ctx, "BATCH_INVARIANT", 1), 0);
  TgJit *j = tg_jit(ctx, layer, k);
  assert_int_equal(tg_setting(ctx, "BATCH_INVARIANT", 0), 1); /* the function keeps what it was made with */
  for (int run = 0; run < 3; run++)
    TG_SCOPE(ctx) {
      TgTensor *in = tg_from(ctx, x, TG_F32, TG_SHAPE(rows, n)), *y = NULL;
      if (tg_jit_run(j, &in, 1, &y, 1) || tg_read(y, all, (size_t)(rows * m) * sizeof *all))
        fail_msg("%s", tg_errmsg(ctx));
      if (run && memcmp(got, all, (size_t)m * sizeof *got)) fail_msg("run %d differs", run);
      memcpy(got, all, (size_t)m * sizeof *got);
    }
  tg_jit_free(j);
  free(all);
}

/* Rows times a matrix of blocks: the products of a block are summed as integers, and their sums, each with the
 * block's scale, as floats. Returns the number of launches. */
static uint64_t rows_by_blocks(bool invariant, int64_t rows, const int64_t shape[3], float *got) {
  const int64_t BLOCKS = shape[0], EACH = shape[1], COLUMNS = shape[2];
  TgContext *ctx = open_on("CPU", 1, 0);
  tg_setting(ctx, "BATCH_INVARIANT", invariant);
  TgTensor *i = tg_arange(ctx, 0, (double)(BLOCKS * EACH * COLUMNS));
  TgTensor *w = tg_cast(tg_sub_scalar(tg_fmod_scalar(tg_mul_scalar(i, 37), 251), 125), TG_I8);
  w = tg_reshape(w, TG_SHAPE(1, COLUMNS, BLOCKS, EACH));
  TgTensor *scale = tg_add_scalar(tg_sin(tg_float(tg_arange(ctx, 0, COLUMNS * BLOCKS))), 2);
  scale = tg_reshape(scale, TG_SHAPE(1, COLUMNS, BLOCKS));
  TgTensor *j = tg_arange(ctx, 0, (double)(rows * BLOCKS * EACH));
  TgTensor *x = tg_cast(tg_sub_scalar(tg_fmod_scalar(tg_mul_scalar(j, 53), 241), 120), TG_I8);
  x = tg_reshape(x, TG_SHAPE(rows, 1, BLOCKS, EACH));
  if (tg_realize(w) || tg_realize(scale) || tg_realize(x)) fail_msg("%s", tg_errmsg(ctx));
  tg_counters_reset(ctx);
  TgTensor *xw = tg_mul(tg_cast(x, TG_I32), tg_cast(w, TG_I32));
  TgTensor *whole = tg_sum(xw, .axis = TG_AXES(-1), .dtype = TG_I32);
  TgTensor *y = tg_sum(tg_mul(tg_float(whole), scale), .axis = TG_AXES(-1));
  if (tg_realize(y) || tg_read(tg_slice(y, 0, 0, 1), got, (size_t)COLUMNS * sizeof *got))
    fail_msg("%s", tg_errmsg(ctx));
  uint64_t launches = tg_counters(ctx).launches;
  tg_close(ctx);
  return launches;
}

/* A sum of integers has the same bits in any order. So it goes into the sum of floats that reads it, whatever
 * that costs: otherwise the sum of floats would have another order for one row than for many. */
static void test_integers_nest(void **state) {
  (void)state;
  static const int64_t shapes[][3] = {{24, 32, 48}, {16, 32, 33}, {7, 32, 5},
                                      {64, 16, 17}, {40, 64, 1},  {3, 256, 64}};
  float alone[64], got[64];
  assert_int_equal(rows_by_blocks(false, 1, shapes[0], got), 1);
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
    size_t nbytes = (size_t)shapes[k][2] * sizeof *got;
    assert_int_equal(rows_by_blocks(true, 1, shapes[k], alone), 1);
    for (int64_t rows = 2; rows <= 17; rows += 5) {
      assert_int_equal(rows_by_blocks(true, rows, shapes[k], got), 1);
      assert_memory_equal(got, alone, nbytes);
    }
  }
}

static void test_batches(void **state) {
  (void)state;

  enum { MOST_ROWS = 33, MOST = 1536 };

  static const int64_t sizes[][2] = {{576, 192}, {576, 1536}, {1536, 576}, {96, 40}, {72, 1000}};
  static const TgDType dtypes[] = {TG_F16, TG_BF16, TG_F32};
  static const int64_t rows[] = {1, 2, 3, 4, 5, 8, 16, MOST_ROWS};
  float *x = numbers((size_t)MOST_ROWS * MOST, -1, 1), *w = numbers((size_t)576 * MOST, -1, 1), one[MOST],
        got[MOST];
  for (int threads = 1; threads < 3; threads++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        if (threads == 2 && (s > 1 || d)) continue;
        TgContext *ctx = open_on("CPU", threads, 0);
        int64_t n = sizes[s][0], m = sizes[s][1];
        Weights k = {tg_keep(tg_cast(tg_from(ctx, w, TG_F32, TG_SHAPE(m, n)), dtypes[d])),
                     tg_keep(tg_from(ctx, w, TG_F32, TG_SHAPE(8, n))),
                     tg_keep(tg_from(ctx, w, TG_F32, TG_SHAPE(m, 8))),
                     tg_keep(tg_from(ctx, w, TG_F32, TG_SHAPE(n, m)))};
        assert_int_equal(tg_realize(k.w), TG_OK);
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
          row_of(ctx, &k, x, rows[r], n, r ? got : one);
          if (r && memcmp(one, got, (size_t)m * sizeof *got))
            fail_msg("%d x %d of %s, %d threads: a row of %d differs from itself alone", (int)m, (int)n,
                     tg_dtype_name(dtypes[d]), threads, (int)rows[r]);
        }
        tg_release(k.w), tg_release(k.a), tg_release(k.b), tg_release(k.c);
        tg_close(ctx);
      }
  free(x), free(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal_values), cmocka_unit_test(test_axes),
                                     cmocka_unit_test(test_rows),         cmocka_unit_test(test_threads),
                                     cmocka_unit_test(test_running),      cmocka_unit_test(test_batches),
                                     cmocka_unit_test(test_integers_nest)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
