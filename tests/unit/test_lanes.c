/* test_lanes.c: lanes that do not follow each other in memory, and rows that begin or end in padding, are read
 * as vectors whose lanes are then picked (expand_loads.c). Small whole numbers, so that plain loops have the same
 * bits on every device; INTERP checks that nothing outside a memory is read. */
#include "tensor/context.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const devices[] = {"CPU",        "INTERP",      "INTERP:C",
                                      "INTERP:C99", "INTERP:CUDA", "INTERP:METAL"};

static TgContext *open_on(const char *device) {
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .threads = 1});
  assert_int_equal(tg_error(ctx), TG_OK);
  return ctx;
}

/* ---- every so many elements, forwards and backwards, to the very ends of the memory */
enum { MOST = 300 };

static const TgDType dtypes[] = {TG_F32, TG_F64, TG_F16, TG_BF16, TG_I8, TG_U8, TG_I16, TG_I64, TG_BOOL};

static int32_t number(int i, TgDType d) { return d == TG_BOOL ? i % 3 == 0 : i % 101; }

static void every(TgContext *ctx, TgDType d, int n, int step) {
  int32_t x[MOST], got[MOST], is = (n + abs(step) - 1) / abs(step), last = (is - 1) * abs(step);
  for (int i = 0; i < n; i++)
    x[i] = number(i, d);
  TgTensor *t = tg_cast(tg_from(ctx, x, TG_I32, TG_SHAPE(n)), d);
  if (tg_realize(t)) fail_msg("%s", tg_errmsg(ctx));
  TgTensor *part = step > 0 ? tg_getitem(t, TG_IDX(TG_SLICE(TG_OPEN, TG_OPEN, step)))
                            : tg_getitem(t, TG_IDX(TG_SLICE(last, TG_OPEN, step)));
  TgTensor *y = tg_add_scalar(tg_cast(part, TG_I32), 1);
  assert_int_equal(tg_dim(y, 0), is);
  if (tg_read(y, got, (size_t)is * sizeof *got)) fail_msg("%s", tg_errmsg(ctx));
  for (int i = 0; i < is; i++) {
    int at = step > 0 ? i * step : last + i * step;
    if (got[i] != number(at, d) + 1)
      fail_msg("%s of %d by %d, element %d: %d, not %d", tg_dtype_name(d), n, step, i, got[i],
               number(at, d) + 1);
  }
}

static void test_every(void **state) {
  (void)state;
  static const int sizes[] = {5, 31, 32, 33, 64, 100, 253, MOST};
  setenv("TG_SPEC", "1", 1);
  for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
    TgContext *ctx = open_on(devices[k]);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int step = -5; step <= 5; step++)
          if (step && (k || sizes[i] == 100) && (dtypes[d] != TG_F64 || !strstr(devices[k], "METAL")))
            TG_SCOPE(ctx) every(ctx, dtypes[d], sizes[i], step);
    tg_close(ctx);
  }
  unsetenv("TG_SPEC");
}

/* ---- windows, padded */
enum { CHANNELS = 8, SIDE = 40 };

typedef enum How { MOST_OF, MEAN_OF, PRODUCT_WITH } How;

typedef struct Windows {
  int rows, columns, kernel, stride, padding;
} Windows;

static int32_t pixel(int c, int y, int x) { return (c * 31 + y * 17 + x * 7) % 61 - 30; }

static int32_t weight(int c, int i) { return (c * 5 + i) % 7 - 3; }

static int32_t window_of(How how, const Windows *w, int c, int oy, int ox) {
  int32_t most = INT32_MIN, sum = 0;
  for (int i = 0; i < w->kernel; i++)
    for (int j = 0; j < w->kernel; j++) {
      int y = oy * w->stride + i - w->padding, x = ox * w->stride + j - w->padding;
      if (y < 0 || x < 0 || y >= w->rows || x >= w->columns) continue;
      int32_t v = pixel(c, y, x);
      most = v > most ? v : most;
      sum += v * (how == PRODUCT_WITH ? weight(c, i * w->kernel + j) : 1);
    }
  return how == MOST_OF ? most : sum;
}

static void windows(TgContext *ctx, How how, const Windows *w) {
  static float x[CHANNELS * SIDE * SIDE], weights[CHANNELS * 25], got[CHANNELS * SIDE * SIDE];
  int rows = (w->rows + 2 * w->padding - w->kernel) / w->stride + 1, area = w->kernel * w->kernel;
  int columns = (w->columns + 2 * w->padding - w->kernel) / w->stride + 1, at = 0;
  for (int c = 0; c < CHANNELS; c++)
    for (int y = 0; y < w->rows; y++)
      for (int k = 0; k < w->columns; k++)
        x[at++] = (float)pixel(c, y, k);
  for (int i = 0; i < CHANNELS * area; i++)
    weights[i] = (float)weight(i / area, i % area);
  TgTensor *t = tg_from(ctx, x, TG_F32, TG_SHAPE(1, CHANNELS, w->rows, w->columns)), *y;
  TgSizes kernel = TG_SIZES(w->kernel), stride = TG_SIZES(w->stride), padding = TG_SIZES(w->padding);
  if (how == PRODUCT_WITH)
    y = tg_conv2d(t, tg_from(ctx, weights, TG_F32, TG_SHAPE(CHANNELS, 1, w->kernel, w->kernel)),
                  .stride = stride, .padding = padding, .groups = CHANNELS);
  else if (how == MOST_OF)
    y = tg_max_pool2d(t, .kernel = kernel, .stride = stride, .padding = padding);
  else
    y = tg_mul_scalar(tg_avg_pool2d(t, .kernel = kernel, .stride = stride, .padding = padding), area);
  size_t n = (size_t)(CHANNELS * rows * columns);
  if (tg_read(y, got, n * sizeof *got)) fail_msg("%s", tg_errmsg(ctx));
  for (size_t i = 0; i < n; i++) {
    int c = (int)i / (rows * columns), oy = (int)i / columns % rows, ox = (int)i % columns;
    float want = (float)window_of(how, w, c, oy, ox), apart = got[i] - want;
    if (apart > 1e-3f || apart < -1e-3f)
      fail_msg("%d: %d x %d by %d stride %d padding %d, at %zu: %g, not %g", how, w->rows, w->columns,
               w->kernel, w->stride, w->padding, i, (double)got[i], (double)want);
  }
}

static void test_windows(void **state) {
  (void)state;
  static const int sides[][2] = {{5, 9}, {18, 33}, {9, 40}, {40, 31}};
  static const int forms[][3] = {{2, 2, 0}, {3, 1, 1}, {3, 2, 1}, {3, 2, 0}, {5, 1, 2}, {3, 3, 1}, {5, 4, 2}};
  setenv("TG_SPEC", "1", 1);
  for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
    TgContext *ctx = open_on(devices[k]);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
      for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (How how = MOST_OF; how <= PRODUCT_WITH; how++) {
          Windows w = {sides[i][0], sides[i][1], forms[f][0], forms[f][1], forms[f][2]};
          TG_SCOPE(ctx) windows(ctx, how, &w);
        }
    tg_close(ctx);
  }
  unsetenv("TG_SPEC");
}

/* ---- rows of which each part is made otherwise: lanes are cut where one part ends */
typedef enum Made { JOINED, EDGES, MIRRORED, AROUND, REPEATED, ROLLED, LARGER, LARGER_BY_HALF, MADE } Made;

enum { PARTS_ROWS = 3 };

static TgTensor *row_made(TgTensor *x, Made how, int n, int by) {
  TgTensor *both[2] = {x, tg_slice(tg_add_scalar(x, 1000), 1, 0, by)};
  int64_t lo[2] = {0, by}, hi[2] = {0, by - 1}, shift = by, axis = 1;
  switch (how) {
  case JOINED: return tg_cat(both, 2, 1);
  case EDGES: return tg_pad_mode(x, lo, hi, TG_PAD_REPLICATE);
  case MIRRORED: return tg_pad_mode(x, lo, hi, TG_PAD_REFLECT);
  case AROUND: return tg_pad_mode(x, lo, hi, TG_PAD_CIRCULAR);
  case REPEATED: return tg_repeat(x, TG_SHAPE(1, by));
  case ROLLED: return tg_roll(x, 1, &shift, &axis);
  case LARGER: return tg_interpolate(x, TG_SHAPE(n * by), .mode = TG_NEAREST);
  default: return tg_interpolate(x, TG_SHAPE(n + n / 2), .mode = TG_NEAREST);
  }
}

/* Where element i of a new row of `is` is from. */
static int32_t element_made(const int32_t *row, Made how, int n, int by, int is, int i) {
  int at = i - by;
  switch (how) {
  case JOINED: return i < n ? row[i] : row[i - n] + 1000;
  case EDGES: return row[at < 0 ? 0 : at < n ? at : n - 1];
  case MIRRORED: return row[at < 0 ? -at : at < n ? at : 2 * n - 2 - at];
  case AROUND: return row[(at + n) % n];
  case REPEATED: return row[i % n];
  case ROLLED: return row[(at % n + n) % n];
  default: return row[(int64_t)i * n / is];
  }
}

static void made_of_parts(TgContext *ctx, TgDType d, Made how, int n, int by) {
  static int32_t x[PARTS_ROWS * 200], got[PARTS_ROWS * 3000];
  for (int i = 0; i < PARTS_ROWS * n; i++)
    x[i] = i % 101;
  TgTensor *t = tg_cast(tg_from(ctx, x, TG_I32, TG_SHAPE(PARTS_ROWS, n)), d);
  if (tg_realize(t)) fail_msg("%s", tg_errmsg(ctx));
  TgTensor *y = tg_cast(row_made(t, how, n, by), TG_I32);
  if (tg_read(y, got, (size_t)tg_numel(y) * sizeof *got)) fail_msg("%s", tg_errmsg(ctx));
  int is = (int)tg_dim(y, 1);
  for (int i = 0; i < PARTS_ROWS * is; i++) {
    int32_t want = element_made(x + i / is * n, how, n, by, is, i % is);
    if (got[i] != want)
      fail_msg("%d of %d by %d, %s, at %d: %d, not %d", (int)how, n, by, tg_dtype_name(d), i, got[i], want);
  }
}

static void test_parts(void **state) {
  (void)state;
  static const int sizes[] = {17, 33, 50, 64, 130, 200}, by[] = {1, 2, 3, 7, 12};
  static const TgDType of[] = {TG_F32, TG_I16};
  setenv("TG_SPEC", "1", 1);
  for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
    TgContext *ctx = open_on(devices[k]);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      for (size_t b = 0; b < sizeof by / sizeof *by; b++)
        for (Made how = JOINED; how < MADE; how++)
          for (size_t d = 0; d < (k ? 1 : sizeof of / sizeof *of); d++)
            TG_SCOPE(ctx) made_of_parts(ctx, of[d], how, sizes[s], by[b]);
    tg_close(ctx);
  }
  unsetenv("TG_SPEC");
}

/* ---- lanes along a sum of any length: what is left is added to the first of them */
static void summed(TgContext *ctx, int n) {
  enum { ROWS = 7 };

  static float x[ROWS * 300], got[4 * ROWS];
  for (int i = 0; i < ROWS * n; i++)
    x[i] = (float)(i % 37 - 40); /* below 0: lanes that are none must not be a maximum */
  TgTensor *t = tg_from(ctx, x, TG_F32, TG_SHAPE(ROWS, n)), *squares = tg_mul(t, t);
  TgTensor *all[] = {tg_sum(t, .axis = TG_AXES(1)), tg_max(t, .axis = TG_AXES(1)),
                     tg_sum(squares, .axis = TG_AXES(1)), tg_min(t, .axis = TG_AXES(1))};
  if (tg_read(tg_stack(all, 4, 0), got, sizeof got)) fail_msg("%s", tg_errmsg(ctx));
  for (int r = 0; r < ROWS; r++) {
    float want[4] = {0, -1000, 0, 1000};
    for (const float *v = x + r * n; v < x + (r + 1) * n; v++) {
      want[0] += *v;
      want[1] = *v > want[1] ? *v : want[1];
      want[2] += *v * *v;
      want[3] = *v < want[3] ? *v : want[3];
    }
    for (int i = 0; i < 4; i++)
      if (got[i * ROWS + r] != want[i])
        fail_msg("row %d of %d, %d: %g, not %g", r, n, i, (double)got[i * ROWS + r], (double)want[i]);
  }
}

static void test_lengths(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
    TgContext *ctx = open_on(devices[k]);
    for (int n = 1; n < 300; n += n < 140 ? 1 : 23)
      if (k == 0 || n % 5 == 1) TG_SCOPE(ctx) summed(ctx, n);
    tg_close(ctx);
  }
}

/* ---- bytes less their zero points, multiplied: exact, whatever the processor multiplies by */
static void bytes(TgContext *ctx, int m, int depth, int n, bool edge) {
  static uint8_t a[40 * 300];
  static int8_t b[300 * 70];
  static int32_t got[40 * 70];
  for (int i = 0; i < m * depth; i++)
    a[i] = edge ? (i % 3 ? 255 : 0) : (uint8_t)(i * 37 % 256);
  for (int i = 0; i < depth * n; i++)
    b[i] = edge ? (i % 2 ? -128 : 127) : (int8_t)(i * 29 % 256 - 128);
  TgTensor *x = tg_cast(tg_from(ctx, a, TG_U8, TG_SHAPE(m, depth)), TG_I32);
  TgTensor *w = tg_cast(tg_from(ctx, b, TG_I8, TG_SHAPE(depth, n)), TG_I32);
  TgTensor *zero = tg_cast(tg_from(ctx, (uint8_t[]){edge ? 0 : 131}, TG_U8, TG_SHAPE(1)), TG_I32);
  TgTensor *y = tg_matmul(tg_sub(x, zero), w);
  if (tg_read(y, got, (size_t)(m * n) * sizeof *got)) fail_msg("%s", tg_errmsg(ctx));
  for (int i = 0; i < m * n; i++) {
    int32_t want = 0;
    for (int k = 0; k < depth; k++)
      want += (a[i / n * depth + k] - (edge ? 0 : 131)) * b[k * n + i % n];
    if (got[i] != want) fail_msg("%d x %d x %d, at %d: %d, not %d", m, depth, n, i, got[i], want);
  }
}

static void test_bytes(void **state) {
  (void)state;
  static const int forms[][3] = {{1, 64, 64},  {3, 1, 17},    {7, 33, 16},
                                 {16, 64, 32}, {33, 300, 40}, {40, 129, 70}};
  for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
    TgContext *ctx = open_on(devices[k]);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
      for (int edge = 0; edge < 2; edge++)
        TG_SCOPE(ctx) bytes(ctx, forms[i][0], forms[i][1], forms[i][2], edge);
    tg_close(ctx);
  }
}

/* ---- the text: vectors alone */
static void count_alone(const TgKernelText *k, void *user) {
  for (const char *p = strstr(k->source, "void "); p && (p = strstr(p, "p1[")); p++)
    ++*(int *)user;
}

static void test_vectors(void **state) {
  (void)state;
  static float x[4 * 64 * 64];
  for (int how = 0; how < 4; how++) {
    /* rows written out, in a loop whose first row is not a number that is known */
    if (how == 3) setenv("TG_OPTS", "UPCAST r1 2, VEC r2 64, UNROLL r4 5", 1);
    TgContext *ctx = open_on("CPU");
    unsetenv("TG_OPTS");
    int alone = 0;
    tg_watch_kernels(ctx, count_alone, &alone);
    TgTensor *t = tg_from(ctx, x, TG_F32, TG_SHAPE(1, 4, 64, 64)), *y = NULL;
    if (how == 0) y = tg_flip(t, 1, (int64_t[]){3});
    if (how == 1) y = tg_max_pool2d(t, .kernel = TG_SIZES(3), .stride = TG_SIZES(2), .padding = TG_SIZES(1));
    if (how == 2) y = tg_getitem(t, TG_IDX(TG_ALL, TG_ALL, TG_ALL, TG_SLICE(TG_OPEN, TG_OPEN, 4)));
    if (how == 3) y = tg_max_pool2d(t, .kernel = TG_SIZES(5), .stride = TG_SIZES(1), .padding = TG_SIZES(2));
    assert_int_equal(tg_realize(tg_add_scalar(y, 1)), TG_OK);
    if (alone) fail_msg("program %d: %d lanes are read alone", how, alone);
    tg_close(ctx);
  }
}

/* ---- the greater of two: NaN where either is, of all pairs */
static void test_greater(void **state) {
  (void)state;
  static const float some[] = {0, 1, -1, 3, INFINITY, -INFINITY, NAN, -NAN, 1e-42f, -2};
  float a[100], b[100], got[100];
  for (int i = 0; i < 100; i++)
    a[i] = some[i / 10], b[i] = some[i % 10];
  for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
    TgContext *ctx = open_on(devices[k]);
    TgTensor *x = tg_from(ctx, a, TG_F32, TG_SHAPE(100)), *y = tg_from(ctx, b, TG_F32, TG_SHAPE(100));
    assert_int_equal(tg_read(tg_maximum(x, y), got, sizeof got), TG_OK);
    for (int i = 0; i < 100; i++) {
      bool none = isnan(a[i]) || isnan(b[i]);
      if (none ? !isnan(got[i]) : got[i] != (a[i] > b[i] ? a[i] : b[i]))
        fail_msg("%s: of %g and %g: %g", devices[k], (double)a[i], (double)b[i], (double)got[i]);
    }
    tg_close(ctx);
  }
}

/* ---- a loop's number as data of each integer dtype, and the larger of two such */
static int64_t wrapped(int64_t v, TgDType d) {
  switch (d) {
  case TG_I8: return (int8_t)v;
  case TG_U8: return (uint8_t)v;
  case TG_I16: return (int16_t)v;
  case TG_U16: return (uint16_t)v;
  case TG_I32: return (int32_t)v;
  case TG_U32: return (uint32_t)v;
  default: return v;
  }
}

static void test_numbers(void **state) {
  (void)state;

  enum { N = 777, BY = 991 }; /* from -300 on */

  static const TgDType each[] = {TG_I8, TG_U8, TG_I16, TG_U16, TG_I32, TG_U32, TG_I64};
  static int64_t got[N];
  for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
    TgContext *ctx = open_on(devices[k]);
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
      TgTensor *n = tg_arange(ctx, 0, N, .dtype = TG_I64);
      TgTensor *up = tg_cast(tg_add_scalar(tg_mul_scalar(n, BY), -300), each[i]);
      TgTensor *most =
          tg_maximum(up, tg_cast(tg_sub(tg_full(ctx, TG_SHAPE(N), 5000, .dtype = TG_I64), n), each[i]));
      if (tg_read(tg_cast(most, TG_I64), got, sizeof got)) fail_msg("%s: %s", devices[k], tg_errmsg(ctx));
      for (int64_t j = 0; j < N; j++) {
        int64_t a = wrapped(j * BY - 300, each[i]), b = wrapped(5000 - j, each[i]);
        if (got[j] != (a > b ? a : b))
          fail_msg("%s, dtype %d, number %d: %lld of %lld and %lld", devices[k], (int)each[i], (int)j,
                   (long long)got[j], (long long)a, (long long)b);
      }
    }
    tg_close(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every),   cmocka_unit_test(test_windows),
                                     cmocka_unit_test(test_parts),   cmocka_unit_test(test_lengths),
                                     cmocka_unit_test(test_bytes),   cmocka_unit_test(test_vectors),
                                     cmocka_unit_test(test_greater), cmocka_unit_test(test_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
