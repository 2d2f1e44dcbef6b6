/* test_picked.c: sums of which one turn counts, x(r) where r == n and zero elsewhere, are reads of x(n): the
 * values of the sum written out, whatever the dtype of n, past the end, with NaN and -0.0 beside; and no loop
 * over the turns is left. */
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 1009, WIDTH = 5, PICKS = 7 };

static const char *const devices[] = {"CPU", "INTERP", "INTERP:CUDA", "INTERP:METAL"};

typedef struct Seen {
  bool loops; /* over all rows */
} Seen;

static void look(const TgKernelText *k, void *user) {
  Seen *s = user;
  char bound[32];
  snprintf(bound, sizeof bound, "< %dl; r", ROWS);
  s->loops |= k->source && strstr(k->source, bound);
}

static void looked(const TgKernelText *k, void *user) {
  *(int *)user += k->source && strstr(k->source, "= lookup_") != NULL;
}

static TgContext *open_on(const char *device, int fuse, Seen *seen) {
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  assert_int_equal(tg_error(ctx), TG_OK);
  tg_setting(ctx, "FUSE", fuse);
  *seen = (Seen){0};
  tg_watch_kernels(ctx, look, seen);
  return ctx;
}

static void same_bits(const char *what, const char *device, const float *got, const float *want, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (memcmp(&got[i], &want[i], sizeof *got) && !(isnan(got[i]) && isnan(want[i])))
      fail_msg("%s on %s: element %zu is %g, not %g", what, device, i, (double)got[i], (double)want[i]);
}

static float table[ROWS * WIDTH];

static void table_fill(void) { /* with what must not reach its neighbours, and signs of zero */
  for (int i = 0; i < ROWS * WIDTH; i++)
    table[i] = (float)(i % 97) - 48.5f;
  table[3 * WIDTH] = NAN, table[4 * WIDTH + 1] = INFINITY, table[5 * WIDTH + 2] = -0.0f;
}

/* where(pick == r, t, 0) of shape (PICKS, ROWS, WIDTH) */
static TgTensor *chosen(TgTensor *pick, TgTensor *t) {
  TgContext *ctx = tg_context(pick);
  TgTensor *turn = tg_reshape(tg_arange(ctx, 0, ROWS, .dtype = TG_I32), TG_SHAPE(1, ROWS, 1));
  TgTensor *is = tg_eq(tg_reshape(pick, TG_SHAPE(PICKS, 1, 1)), turn);
  TgTensor *values = tg_expand(tg_reshape(t, TG_SHAPE(1, ROWS, WIDTH)), TG_SHAPE(PICKS, ROWS, WIDTH));
  return tg_where(is, values, tg_zeros_like(values));
}

/* rows of a table by number, past both ends too, for each dtype of a number */
static void test_rows(void **state) {
  (void)state;

  static const struct {
    TgDType type;
    bool negative, wide;
  } types[] = {{TG_I8, true, false},  {TG_I16, true, true},  {TG_I32, true, true},  {TG_I64, true, true},
               {TG_U8, false, false}, {TG_U16, false, true}, {TG_U32, false, true}, {TG_U64, false, true}};

  static const int64_t number[PICKS] = {0, 5, 3, ROWS - 1, -1, ROWS, 100};
  table_fill();
  for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
    for (size_t y = 0; y < sizeof types / sizeof *types; y++)
      for (int fuse = 0; fuse < 2; fuse++) {
        Seen seen;
        TgContext *ctx = open_on(devices[d], fuse, &seen);
        int64_t n[PICKS];
        float want[PICKS * WIDTH], got[PICKS * WIDTH];
        for (int i = 0; i < PICKS; i++) {
          bool fits = (number[i] >= 0 || types[y].negative) && (number[i] < 128 || types[y].wide);
          n[i] = fits ? number[i] : 7;
          for (int k = 0; k < WIDTH; k++)
            want[i * WIDTH + k] = n[i] < 0 || n[i] >= ROWS ? 0 : table[n[i] * WIDTH + k] + 0.0f;
        }
        TgTensor *pick = tg_contiguous(tg_cast(tg_from(ctx, n, TG_I64, TG_SHAPE(PICKS)), types[y].type));
        TgTensor *rows = tg_from(ctx, table, TG_F32, TG_SHAPE(ROWS, WIDTH));
        assert_int_equal(tg_read(tg_sum(chosen(pick, rows), .axis = TG_AXES(1)), got, sizeof got), TG_OK);
        same_bits(tg_dtype_name(types[y].type), devices[d], got, want, PICKS * WIDTH);
        bool compares = types[y].type != TG_U64; /* as f32 with i32, as PyTorch promotes it */
        if (fuse && compares && !strcmp(devices[d], "CPU") && seen.loops)
          fail_msg("%s: a loop over all rows", tg_dtype_name(types[y].type));
        tg_close(ctx);
      }
}

/* of what is computed first; negated and scaled; over two axes; its mean */
static void test_forms(void **state) {
  (void)state;
  static const int32_t number[PICKS] = {0, 5, 9, ROWS - 1, -1, ROWS, 100};
  table_fill();
  for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
    for (int fuse = 0; fuse < 2; fuse++) {
      Seen seen;
      TgContext *ctx = open_on(devices[d], fuse, &seen);
      float got[PICKS * WIDTH], want[PICKS * WIDTH], all = 0, sum;
      TgTensor *pick = tg_from(ctx, number, TG_I32, TG_SHAPE(PICKS));
      TgTensor *rows = tg_relu(tg_from(ctx, table, TG_F32, TG_SHAPE(ROWS, WIDTH)));
      TgTensor *t = tg_mul(tg_neg(chosen(pick, rows)), tg_full(ctx, TG_SHAPE(1), 2, .dtype = TG_F32));
      for (int i = 0; i < PICKS * WIDTH; i++) {
        int64_t n = number[i / WIDTH];
        float v = n < 0 || n >= ROWS ? 0 : fmaxf(table[n * WIDTH + i % WIDTH], 0);
        want[i] = -v * 2 + 0.0f, all += want[i];
      }
      assert_int_equal(tg_read(tg_sum(t, .axis = TG_AXES(1)), got, sizeof got), TG_OK);
      same_bits("negated, scaled", devices[d], got, want, PICKS * WIDTH);
      sum = (float)tg_item_f64(tg_sum(t));
      if (fabsf(sum - all) > 1e-3f) fail_msg("all on %s: %g, not %g", devices[d], (double)sum, (double)all);
      for (int i = 0; i < PICKS * WIDTH; i++)
        want[i] /= ROWS;
      assert_int_equal(tg_read(tg_mean(t, .axis = TG_AXES(1)), got, sizeof got), TG_OK);
      for (int i = 0; i < PICKS * WIDTH; i++)
        if (fabsf(got[i] - want[i]) > 1e-7f * fabsf(want[i])) fail_msg("mean on %s", devices[d]);
      assert_int_equal(tg_error(ctx), TG_OK);
      tg_close(ctx);
    }
}

/* Two loops, each with its number; integers; and what is no such sum stays one. */
static void test_others(void **state) {
  (void)state;

  enum { A = 6, B = 11 };

  for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
    for (int fuse = 0; fuse < 2; fuse++) {
      Seen seen;
      TgContext *ctx = open_on(devices[d], fuse, &seen);
      int32_t v[A * B], at[2] = {4, 7};
      for (int i = 0; i < A * B; i++)
        v[i] = i * i - 50;
      TgTensor *x = tg_from(ctx, v, TG_I32, TG_SHAPE(A, B)), *two = tg_from(ctx, at, TG_I32, TG_SHAPE(2));
      TgTensor *a = tg_eq(tg_reshape(tg_arange(ctx, 0, A, .dtype = TG_I32), TG_SHAPE(A, 1)),
                          tg_shrink(two, (int64_t[]){0}, (int64_t[]){1}));
      TgTensor *b =
          tg_eq(tg_arange(ctx, 0, B, .dtype = TG_I32), tg_shrink(two, (int64_t[]){1}, (int64_t[]){2}));
      TgTensor *zero = tg_zeros_like(x), *both = tg_bitand(a, b), *either = tg_bitor(a, b);
      int64_t sum = 0;
      for (int i = 0; i < A * B; i++)
        sum += i / B == 4 || i % B == 7 ? v[i] : 0;
      assert_true(tg_item_f64(tg_sum(tg_where(both, x, zero))) == v[4 * B + 7]);
      assert_true(tg_item_f64(tg_sum(tg_where(either, x, zero))) == (double)sum);
      assert_true(tg_item_f64(tg_max(tg_where(both, x, zero))) == v[4 * B + 7]);
      TgTensor *mask = tg_cast(a, TG_F32), *nan = tg_full(ctx, TG_SHAPE(A, 1), NAN, .dtype = TG_F32);
      assert_true(isnan(tg_item_f64(tg_sum(tg_mul(mask, nan))))); /* 0 * NaN is NaN */
      assert_int_equal(tg_error(ctx), TG_OK);
      tg_close(ctx);
    }
}

/* Numbers that are computed: by a reduction, a running sum, a read; a diagonal, whose number is a loop. */
static void test_computed(void **state) {
  (void)state;

  enum { N = 40 };

  for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
    for (int fuse = 0; fuse < 2; fuse++) {
      Seen seen;
      TgContext *ctx = open_on(devices[d], fuse, &seen);
      float v[N * N], got[N], want[4][N] = {{0}};
      int32_t step[N];
      for (int i = 0; i < N * N; i++)
        v[i] = (float)((i * 7919) % 1601) / 8;
      for (int i = 0; i < N; i++)
        step[i] = i % 3 - (i > 30);
      TgTensor *x = tg_from(ctx, v, TG_F32, TG_SHAPE(N, N)), *zero = tg_zeros_like(x);
      TgTensor *steps = tg_from(ctx, step, TG_I32, TG_SHAPE(N)),
               *turn = tg_arange(ctx, 0, N, .dtype = TG_I32);
      TgTensor *running = tg_cumsum(steps, 0), *most = tg_argmax(x, .axis = TG_AXES(1));
      TgTensor *numbers[] = {most, running, tg_gather(running, 0, tg_maximum(steps, tg_zeros_like(steps))),
                             turn};
      int64_t at = 0, ran[N], sum = 0;
      for (int i = 0; i < N; i++)
        sum += step[i], ran[i] = sum;
      for (int i = 0; i < N; i++) {
        at = 0;
        for (int j = 1; j < N; j++)
          if (v[i * N + j] > v[i * N + at]) at = j;
        int64_t n[] = {at, ran[i], ran[step[i] < 0 ? 0 : step[i]], i};
        for (int k = 0; k < 4; k++)
          want[k][i] = n[k] < 0 || n[k] >= N ? 0 : v[i * N + n[k]];
      }
      for (int k = 0; k < 4; k++) {
        TgTensor *is = tg_eq(tg_reshape(numbers[k], TG_SHAPE(N, 1)), turn);
        assert_int_equal(tg_read(tg_sum(tg_where(is, x, zero), .axis = TG_AXES(1)), got, sizeof got), TG_OK);
        same_bits("computed", devices[d], got, want[k], N);
      }
      assert_int_equal(tg_error(ctx), TG_OK);
      tg_close(ctx);
    }
}

/* Bytes of a table of 16 by data: on a CPU a vector of them at once, of any number of lanes, with what is left
 * over behind them; a table of another size, or data that may be 16 and more, element by element. */
static void looked_up(const char *device, TgDType dtype, int entries, int mask, int64_t n, bool summed) {
  uint8_t bytes[32], *code = malloc((size_t)n);
  double *got = malloc((size_t)n * sizeof *got), sum = 0;
  assert_true(code && got);
  for (int i = 0; i < 32; i++)
    bytes[i] = (uint8_t)(i * 37 + 11);
  for (int64_t i = 0; i < n; i++)
    code[i] = (uint8_t)(i * 7 + i / 5);
  TgContext *ctx = tg_open_with(.device = device);
  int found = 0;
  tg_watch_kernels(ctx, looked, &found);
  TgTensor *t = tg_from(ctx, bytes, dtype, TG_SHAPE(entries));
  TgTensor *at = tg_bitand_scalar(tg_shr_scalar(tg_from(ctx, code, TG_U8, TG_SHAPE(n)), 1), mask);
  TgTensor *v = tg_cast(tg_take(t, tg_cast(at, TG_I32)), TG_F32);
  if (summed) v = tg_sum(v);
  assert_int_equal(tg_read_f64(v, got, summed ? 1 : (size_t)n), TG_OK);
  for (int64_t i = 0; i < n; i++) {
    uint8_t b = bytes[code[i] >> 1 & mask];
    double want = dtype == TG_I8 ? (int8_t)b : b;
    sum += want;
    if (!summed && got[i] != want) fail_msg("%s: element %d is %g, not %g", device, (int)i, got[i], want);
  }
  if (summed && got[0] != sum) fail_msg("%s: the sum of %d is %g, not %g", device, (int)n, got[0], sum);
  bool may = (!strcmp(device, "CPU") || !strcmp(device, "INTERP:C")) && entries == 16 && n >= 16,
       must = may && n >= 64 && !summed;
  if ((found && !may) || (!found && must)) fail_msg("%s: %d lookups of %d", device, found, (int)n);
  tg_close(ctx);
  free(code), free(got);
}

static void test_tables(void **state) {
  static const char *const all[] = {"CPU", "INTERP", "INTERP:C", "INTERP:CUDA", "INTERP:METAL"};
  static const int64_t sizes[] = {1, 7, 16, 33, 64, 1000};

  (void)state;
  for (size_t d = 0; d < sizeof all / sizeof *all; d++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      looked_up(all[d], TG_I8, 16, 15, sizes[i], i % 2);
      looked_up(all[d], TG_U8, 16, 15, sizes[i], !(i % 2));
      looked_up(all[d], TG_I8, 32, 31, sizes[i], false);
      looked_up(all[d], TG_I8, 16, 7, sizes[i], true);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),     cmocka_unit_test(test_forms),  cmocka_unit_test(test_others),
      cmocka_unit_test(test_computed), cmocka_unit_test(test_tables),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
