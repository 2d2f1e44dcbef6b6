/* test_packed.c: matrices of quantised weights in the order of products. In: random blocks. Expected: the values of
 * the same blocks in the order of a file; products with them as f64 has them, within what 16 bits of x leave. */
#include "tg_io.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct Type {
  int id, block, nbytes, half[2], halves;
} Type;

static const Type types[] = {
    {2, 32, 18, {0}, 1},        {3, 32, 20, {0, 2}, 2},   {8, 32, 34, {0}, 1}, {12, 256, 144, {0, 2}, 2},
    {13, 256, 176, {0, 2}, 2},  {14, 256, 210, {208}, 1}, {6, 32, 22, {0}, 1}, {7, 32, 24, {0, 2}, 2},
    {10, 256, 84, {80, 82}, 2}, {11, 256, 110, {108}, 1},
};

static TgContext *C;
static uint64_t seed = 1;

static uint8_t random_byte(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint8_t)(seed >> 40);
}

/* Blocks whose scales are between 1/16 and 1/2. */
static TgTensor *blocks_of(const Type *t, int64_t n) {
  uint8_t *b = malloc((size_t)(n * t->nbytes));
  for (int64_t i = 0; i < n * t->nbytes; i++)
    b[i] = random_byte();
  for (int64_t i = 0; i < n; i++)
    for (int h = 0; h < t->halves; h++)
      b[i * t->nbytes + t->half[h] + 1] = 0x2c + (random_byte() & 7);
  TgTensor *data = tg_from(C, b, TG_U8, TG_SHAPE(n * t->nbytes));
  free(b);
  return data;
}

static TgTensor *rows_of(int64_t n, int64_t columns) {
  float *x = malloc((size_t)(n * columns) * sizeof *x);
  for (int64_t i = 0; i < n * columns; i++)
    x[i] = (float)(random_byte() - 128) * (i % 7 ? 0.01f : 1e-4f);
  TgTensor *t = tg_from(C, x, TG_F32, TG_SHAPE(n, columns));
  free(x);
  return t;
}

static bool all_equal(TgTensor *a, TgTensor *b) {
  bool same = false;
  assert_int_equal(tg_read(tg_all(tg_eq(a, b)), &same, sizeof same), TG_OK);
  return same;
}

/* The largest of |y - x w'| beside the sum of |x w'|, for each element. */
static double worst(TgTensor *y, TgTensor *x, TgTensor *w) {
  TgTensor *x64 = tg_cast(x, TG_F64), *w64 = tg_transpose(tg_cast(w, TG_F64), 0, 1);
  TgTensor *off = tg_abs(tg_sub(tg_cast(y, TG_F64), tg_matmul(x64, w64)));
  TgTensor *most = tg_max(tg_div(off, tg_matmul(tg_abs(x64), tg_abs(w64))));
  double e = NAN;
  assert_int_equal(tg_read(most, &e, sizeof e), TG_OK);
  return e;
}

static void test_types(void **state) {
  (void)state;
  static const int64_t shapes[][3] = {{32, 256, 1}, {96, 512, 3}, {64, 768, 1}, {32, 256, 40}};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      TG_SCOPE(C) {
        int64_t rows = shapes[s][0], columns = shapes[s][1];
        TgTensor *data = blocks_of(&types[t], rows * columns / types[t].block),
                 *x = rows_of(shapes[s][2], columns);
        TgTensor *w =
            tg_reshape(tg_ggml_data_to_tensor(data, rows * columns, types[t].id), TG_SHAPE(rows, columns));
        TgPacked *p = tg_packed_new(data, rows, columns, types[t].id);
        assert_non_null(p);
        assert_true(all_equal(w, tg_packed_values(p)));
        for (int bits = 8; bits <= 16; bits += 8) {
          double e = worst(tg_packed_linear(x, p, bits), x, w);
          if (!(e < (bits == 8 ? 3e-3 : 1e-5)))
            fail_msg("type %d, %d bits, %d x %d: %g", types[t].id, bits, (int)rows, (int)columns, e);
        }
        tg_packed_free(p);
      }
}

/* Zeros give zeros; what is no number is none in the result of its row, and no other. */
static void test_numbers(void **state) {
  (void)state;
  float x[2][256] = {{0}}, y[2][32];
  TgPacked *p = tg_packed_new(blocks_of(&types[0], 32 * 8), 32, 256, types[0].id);
  assert_int_equal(tg_read(tg_packed_linear(tg_from(C, x, TG_F32, TG_SHAPE(2, 256)), p, 16), y, sizeof y),
                   TG_OK);
  for (int i = 0; i < 32; i++)
    assert_true(y[0][i] == 0 && y[1][i] == 0);
  for (int k = 0; k < 256; k++)
    x[0][k] = 1, x[1][k] = 2;
  x[1][77] = NAN;
  assert_int_equal(tg_read(tg_packed_linear(tg_from(C, x, TG_F32, TG_SHAPE(2, 256)), p, 16), y, sizeof y),
                   TG_OK);
  for (int i = 0; i < 32; i++)
    assert_true(isfinite(y[0][i]) && isnan(y[1][i]));
  x[1][77] = INFINITY;
  assert_int_equal(tg_read(tg_packed_linear(tg_from(C, x, TG_F32, TG_SHAPE(2, 256)), p, 16), y, sizeof y),
                   TG_OK);
  for (int i = 0; i < 32; i++)
    assert_true(isfinite(y[0][i]) && !isfinite(y[1][i]));
  tg_packed_free(p);
}

static void test_refused(void **state) {
  (void)state;
  TgTensor *data = blocks_of(&types[2], 128);
  assert_true(tg_packed_fits(32, 128, 8) && !tg_packed_fits(48, 128, 8) && !tg_packed_fits(32, 120, 8));
  assert_false(tg_packed_fits(32, 128, 0) || tg_packed_fits(0, 128, 8) || tg_packed_fits(32, -32, 8));
  assert_false(tg_packed_fits((int64_t)1 << 40, (int64_t)1 << 40, 8));
  assert_null(tg_packed_new(data, 8, 256, 8));
  assert_non_null(strstr(tg_errmsg(C), "8 x 256 of Q8_0"));
  tg_clear_error(C);
  assert_null(tg_packed_new(data, 64, 128, 8));
  assert_non_null(strstr(tg_errmsg(C), "64 x 128 of Q8_0 in"));
  tg_clear_error(C);
  assert_null(tg_packed_new(NULL, 32, 128, 8));
  TgPacked *p = tg_packed_new(data, 32, 128, 8);
  assert_null(tg_packed_linear(tg_ones(C, TG_SHAPE(2, 64)), p, 16));
  assert_non_null(strstr(tg_errmsg(C), "32 rows and 128 columns"));
  tg_clear_error(C);
  assert_null(tg_packed_linear(tg_ones(C, TG_SHAPE(2, 128)), p, 12));
  assert_non_null(strstr(tg_errmsg(C), "12 bits: it has 8 or 16"));
  tg_clear_error(C);
  assert_null(tg_packed_linear(NULL, p, 16));
  assert_null(tg_packed_values(NULL));
  tg_packed_free(p);
  tg_packed_free(NULL);
}

/* Words of bytes that only one of two kinds of hardware can multiply: against sums by hand. */
static void test_dot4(void **state) {
  (void)state;
  int32_t a[300], b[300], y[300];
  for (int i = 0; i < 300; i++)
    for (int k = 0; k < 4; k++)
      ((uint8_t *)&a[i])[k] = random_byte(), ((uint8_t *)&b[i])[k] = random_byte();
  a[0] = -1, b[0] = (int32_t)0x80808080;
  TgTensor *ta = tg_from(C, a, TG_I32, TG_SHAPE(300)), *tb = tg_from(C, b, TG_I32, TG_SHAPE(300));
  assert_int_equal(tg_read(tg_dot4(ta, tb), y, sizeof y), TG_OK);
  for (int i = 0; i < 300; i++) {
    int32_t sum = 0;
    for (int k = 0; k < 32; k += 8)
      sum += (uint8_t)((uint32_t)a[i] >> k) * (int8_t)((uint32_t)b[i] >> k);
    assert_int_equal(y[i], sum);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(test_numbers),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_dot4)};
  C = tg_open(NULL);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tg_close(C);
  return failed;
}
