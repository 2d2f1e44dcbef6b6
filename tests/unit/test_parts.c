/* test_parts.c: a reduction that needs the result of another one over the same long row, both made in parts
 * (src/schedule/online_parts.c): against plain loops in double, with values that leave whole parts without a
 * maximum, and the same bits for any number of threads. */
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 1 << 22, PART = 4096, MOST_ROWS = 8 };

static uint64_t seed = 88172645463325252;

/* Xorshift: parts are 2^16 numbers apart, where those of a linear congruence repeat each other's low bits. */
static double draw(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (double)(seed >> 40) / 16777216.0;
}

static float *row;

static void fill(double middle, double width) {
  for (int i = 0; i < N; i++)
    row[i] = (float)(middle + width * (draw() + draw() + draw() + draw() - 2));
}

static TgContext *open_on(const char *device, int threads) {
  TgContext *ctx = tg_open(
      &(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .threads = threads, .cores = 8});
  assert_int_equal(tg_error(ctx), TG_OK);
  return ctx;
}

typedef TgTensor *(*Make)(TgTensor *x);

static TgTensor *variance(TgTensor *x) { return tg_var(x, .axis = TG_AXES(-1)); }

static TgTensor *log_sum(TgTensor *x) { return tg_logsumexp(x, .axis = TG_AXES(-1)); }

static TgTensor *where_most(TgTensor *x) { return tg_argmax(x, .axis = TG_AXES(-1)); }

static TgTensor *where_least(TgTensor *x) { return tg_argmin(x, .axis = TG_AXES(-1)); }

static TgTensor *sum(TgTensor *x) { return tg_sum(x, .axis = TG_AXES(-1)); }

static TgTensor *columns(TgTensor *x) { return tg_sum(x, .axis = TG_AXES(0)); }

/* As the values of keys are added up for one query. */
static TgTensor *weighted_columns(TgTensor *x) { return columns(tg_mul(x, tg_slice(x, 1, 0, 1))); }

/* The results of `row` as a matrix of so many rows, which are the same for 1, 2 and 5 threads. */
static int compute(Make make, int rows, double *out) {
  static const int threads[] = {1, 2, 5};
  double first[MOST_ROWS], got[MOST_ROWS];
  int n = 0;
  for (int t = 0; t < 3; t++) {
    TgContext *ctx = open_on("CPU", threads[t]);
    TgTensor *y = make(tg_from(ctx, row, TG_F32, TG_SHAPE(rows, N / rows)));
    n = (int)tg_numel(y);
    assert_true(n <= MOST_ROWS);
    assert_int_equal(tg_read_f64(y, t ? got : first, (size_t)n), TG_OK);
    if (t) assert_memory_equal(got, first, (size_t)n * sizeof *got);
    tg_close(ctx);
  }
  memcpy(out, first, (size_t)n * sizeof *out);
  return n;
}

static double one(Make make) {
  double v[MOST_ROWS];
  assert_int_equal(compute(make, 1, v), 1);
  return v[0];
}

static double variance_of(const float *v, int n) {
  double mean = 0, all = 0;
  for (int i = 0; i < n; i++)
    mean += v[i] / (double)n;
  for (int i = 0; i < n; i++)
    all += (v[i] - mean) * (v[i] - mean);
  return all / (n - 1);
}

static void check_variance(const char *what, int rows, double most) {
  double got[MOST_ROWS];
  compute(variance, rows, got);
  for (int r = 0; r < rows; r++) {
    double want = variance_of(row + (size_t)r * (N / rows), N / rows);
    if (!(fabs(got[r] - want) <= most * want))
      fail_msg("%s: %.9g, not %.9g: wrong by %.2g of it", what, got[r], want, fabs(got[r] - want) / want);
  }
}

static void test_variance(void **state) {
  (void)state;
  fill(0, 1), check_variance("around 0", 1, 1e-6);
  check_variance("4 rows", 4, 1e-6);
  fill(1e4, 1), check_variance("around 1e4", 1, 1e-5);
  fill(1e6, 1), check_variance("around 1e6", 1, 1e-2); /* the mean is rounded to 1/16 */
  fill(1, 1);
  for (int i = 0; i < PART; i++)
    row[i] = 1e6f;
  check_variance("the first part is far away", 1, 2e-6);
  fill(1, 1), row[0] = 1e6f;
  check_variance("the first value is far away", 1, 2e-6);
  fill(3, 0);
  assert_true(one(variance) == 0);
  fill(0, 1), row[N / 2] = INFINITY;
  assert_true(isnan(one(variance)));
}

static double log_sum_of(void) {
  double most = -INFINITY, sum = 0;
  for (int i = 0; i < N; i++)
    most = fmax(most, row[i]);
  for (int i = 0; i < N; i++)
    sum += exp(row[i] - most);
  return most + log(sum);
}

static void test_log_sum(void **state) {
  (void)state;
  fill(0, 3);
  assert_true(fabs(one(log_sum) - log_sum_of()) <= 1e-5);
  for (int i = 0; i < N / 2; i++)
    row[i] = -INFINITY;
  assert_true(fabs(one(log_sum) - log_sum_of()) <= 1e-5);
  for (int i = 0; i < N; i++)
    row[i] = (float)(i / PART * 0.5 - 300); /* each part has a larger maximum than all before it */
  assert_true(fabs(one(log_sum) - log_sum_of()) <= 1e-4);
  row[5] = INFINITY;
  assert_true(one(log_sum) == INFINITY);
  row[N - 9] = NAN;
  assert_true(isnan(one(log_sum)));
  for (int i = 0; i < N; i++)
    row[i] = -INFINITY;
  assert_true(one(log_sum) == -INFINITY);
}

static void test_softmax(void **state) {
  (void)state;
  float *got = malloc(N * sizeof *got);
  double sum = 0;
  fill(0, 3);
  for (int i = 0; i < N / 4; i++)
    row[i] = -INFINITY;
  double all = log_sum_of();
  TgContext *ctx = open_on("CPU", 0);
  assert_int_equal(tg_read(tg_softmax(tg_from(ctx, row, TG_F32, TG_SHAPE(N))), got, N * sizeof *got), TG_OK);
  for (int i = 0; i < N; i++) {
    assert_true(fabs(got[i] - exp(row[i] - all)) <= 1e-5 * exp(row[i] - all));
    sum += got[i];
  }
  assert_true(fabs(sum - 1) <= 1e-5);
  for (int i = 0; i < N; i++)
    row[i] = -INFINITY;
  assert_int_equal(tg_read(tg_softmax(tg_from(ctx, row, TG_F32, TG_SHAPE(N))), got, N * sizeof *got), TG_OK);
  assert_true(isnan(got[0]) && isnan(got[N - 1]));
  tg_close(ctx), free(got);
}

static void test_places(void **state) { /* the first of equal ones; the first NaN before all */
  (void)state;
  fill(0, 1);
  row[N / 2 + 77] = row[N / 3] = row[N - 1] = 9;
  row[N / 2 + 78] = row[N / 4] = -9;
  assert_true(one(where_most) == N / 3 && one(where_least) == N / 4);
  row[N - 5] = row[N - 4] = NAN;
  assert_true(one(where_most) == N - 5);
  double got[MOST_ROWS];
  compute(where_most, 4, got);
  assert_true(got[1] == N / 3 - N / 4 && got[2] == 77 && got[3] == N / 4 - 5);
  for (int i = 0; i < N; i++)
    row[i] = -INFINITY;
  assert_true(one(where_most) == 0);
}

static void test_columns(void **state) { /* results that are lanes of one core */
  (void)state;
  double got[MOST_ROWS], first[2][MOST_ROWS], want[2][MOST_ROWS] = {{0}};
  fill(0.5, 1);
  for (int i = 0; i < N; i++) {
    want[0][i % MOST_ROWS] += row[i];
    want[1][i % MOST_ROWS] += (double)row[i] * row[i / MOST_ROWS * MOST_ROWS];
  }
  static const int threads[] = {1, 2, 5};
  for (int t = 0; t < 3; t++) {
    TgContext *ctx = open_on("CPU", threads[t]);
    TgTensor *x = tg_from(ctx, row, TG_F32, TG_SHAPE(N / MOST_ROWS, MOST_ROWS));
    for (int weighted = 0; weighted < 2; weighted++) {
      assert_int_equal(tg_read_f64(weighted ? weighted_columns(x) : columns(x), got, MOST_ROWS), TG_OK);
      if (!t) memcpy(first[weighted], got, sizeof got);
      assert_memory_equal(got, first[weighted], sizeof got);
    }
    tg_close(ctx);
  }
  for (int i = 0; i < 2 * MOST_ROWS; i++) {
    double sum = want[i / MOST_ROWS][i % MOST_ROWS], got_sum = first[i / MOST_ROWS][i % MOST_ROWS];
    if (fabs(got_sum - sum) > 1e-6 * sum) fail_msg("sum %d: %.9g, not %.9g", i, got_sum, sum);
  }
}

/* On the machine that NULL:C plans for: the parts, and what is made of them. */
static void test_kernels(void **state) {
  (void)state;

  static const struct {
    Make make;
    int rows;
    uint64_t kernels;
  } c[] = {{variance, 1, 2},    {variance, 4, 2},    {log_sum, 1, 2},   {where_most, 1, 2},
           {where_least, 1, 2}, {variance, 4096, 1}, {log_sum, 256, 1}, {weighted_columns, N / 16, 2}};

  TgContext *ctx = open_on("NULL:C", 0);
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    TgTensor *x = tg_contiguous(tg_full(ctx, TG_SHAPE(c[i].rows, 4 * N / c[i].rows), 1));
    assert_int_equal(tg_realize(x), TG_OK);
    tg_counters_reset(ctx);
    assert_int_equal(tg_realize(c[i].make(x)), TG_OK);
    assert_int_equal(tg_counters(ctx).kernels, c[i].kernels);
  }
  tg_close(ctx);
}

/* Few results on a GPU: parts for all of it, and a kernel that joins them; not where there are rows enough.
 */
static void test_gpu(void **state) {
  (void)state;

  static const struct {
    Make make;
    int64_t rows, wide;
    uint64_t kernels;
  } c[] = {{sum, 1, 1 << 24, 2},        {sum, 64, 1 << 18, 2},
           {where_most, 1, 1 << 24, 4}, {sum, 4096, 4096, 1},
           {columns, 1 << 20, 16, 2},   {columns, 1 << 14, 1024, 2},
           {columns, 128, 65536, 1},    {weighted_columns, 1 << 20, 64, 2},
           {variance, 16384, 1024, 1},  {sum, 320, 1024, 1}};

  TgContext *ctx = open_on("NULL:CUDA", 0);
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    TgTensor *x = tg_contiguous(tg_full(ctx, TG_SHAPE(c[i].rows, c[i].wide), 1));
    assert_int_equal(tg_realize(x), TG_OK);
    tg_counters_reset(ctx);
    assert_int_equal(tg_realize(c[i].make(x)), TG_OK);
    if (tg_counters(ctx).kernels != c[i].kernels)
      fail_msg("case %zu: %d kernels", i, (int)tg_counters(ctx).kernels);
    tg_release(x);
  }
  tg_close(ctx);
}

int main(void) {
  row = malloc(N * sizeof *row);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_variance), cmocka_unit_test(test_log_sum),
                                     cmocka_unit_test(test_softmax),  cmocka_unit_test(test_places),
                                     cmocka_unit_test(test_columns),  cmocka_unit_test(test_gpu),
                                     cmocka_unit_test(test_kernels)};
  int failed = row ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
  free(row);
  return failed;
}
