/* test_packed.c: matrices of quantised weights in the order of products. In: random blocks. Expected: the values of
 * the same blocks in the order of a file; products with them as f64 has them, within what 16 bits of x leave. */
#include "io_private.h"
#include "tg_io.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct Type {
  int id, block, nbytes, half[2], halves;
} Type;

static const Type types[] = {
    {2, 32, 18, {0}, 1},        {3, 32, 20, {0, 2}, 2},   {8, 32, 34, {0}, 1},  {12, 256, 144, {0, 2}, 2},
    {13, 256, 176, {0, 2}, 2},  {14, 256, 210, {208}, 1}, {6, 32, 22, {0}, 1},  {7, 32, 24, {0, 2}, 2},
    {10, 256, 84, {80, 82}, 2}, {11, 256, 110, {108}, 1}, {20, 32, 18, {0}, 1}, {23, 256, 136, {0}, 1},
    {39, 32, 17, {0}, 0},
};

static TgContext *C;
static uint64_t seed = 1;

static uint8_t random_byte(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint8_t)(seed >> 40);
}

/* Blocks whose scales are between 1/16 and 1/2; MXFP4's are an exponent. */
static TgTensor *blocks_of(const Type *t, int64_t n) {
  uint8_t *b = malloc((size_t)(n * t->nbytes));
  for (int64_t i = 0; i < n * t->nbytes; i++)
    b[i] = random_byte();
  for (int64_t i = 0; i < n && !t->halves; i++)
    b[i * t->nbytes] = 124 + (random_byte() & 3);
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
  static const int64_t shapes[][3] = {{32, 256, 1}, {96, 512, 3},  {64, 768, 1}, {32, 256, 40},
                                      {1, 256, 1},  {101, 512, 2}, {33, 256, 20}};
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

/* A row has the same bits whatever rows are beside it: its kernels have other lists of opts, which must not change
 * the order in which it is summed. */
static void test_batches(void **state) {
  (void)state;

  enum { ROWS = 512, COLUMNS = 1024, MOST = 19 };

  static float all[MOST * ROWS], alone[ROWS];
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int bits = 8; bits <= 16; bits += 8)
      TG_SCOPE(C) {
        TgTensor *data = blocks_of(&types[t], ROWS * COLUMNS / types[t].block), *x = rows_of(MOST, COLUMNS);
        TgPacked *p = tg_packed_new(data, ROWS, COLUMNS, types[t].id);
        assert_int_equal(tg_read(tg_packed_linear(x, p, bits), all, sizeof all), TG_OK);
        TgTensor *first = tg_contiguous(tg_slice(x, 0, 0, 1));
        assert_int_equal(tg_read(tg_packed_linear(first, p, bits), alone, sizeof alone), TG_OK);
        if (memcmp(all, alone, sizeof alone))
          fail_msg("type %d, %d bits: a row alone is not as among %d", types[t].id, bits, MOST);
        tg_packed_free(p);
      }
}

/* The same of y (n, used, rows), x (n, 1, 1, columns), w (n, used, rows, columns) */
static double worst_of(TgTensor *y, TgTensor *x, TgTensor *w) {
  TgTensor *each = tg_mul(tg_cast(x, TG_F64), tg_cast(w, TG_F64));
  TgTensor *off = tg_abs(tg_sub(tg_cast(y, TG_F64), tg_sum(each, .axis = TG_AXES(-1))));
  TgTensor *most = tg_max(tg_div(off, tg_sum(tg_abs(each), .axis = TG_AXES(-1))));
  double e = NAN;
  assert_int_equal(tg_read(most, &e, sizeof e), TG_OK);
  return e;
}

/* Experts: their matrices one after the other, each token's chosen ones; twice the same, and all of them. */
static void test_experts(void **state) {
  (void)state;

  enum { EXPERTS = 5, ROWS = 64, COLUMNS = 512, USED = 3 };

  static const int64_t tokens[] = {1, 7};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int s = 0; s < 2; s++)
      TG_SCOPE(C) {
        int32_t ids[7 * USED];
        int64_t n = tokens[s];
        for (int i = 0; i < n * USED; i++)
          ids[i] = random_byte() % EXPERTS;
        TgTensor *data = blocks_of(&types[t], EXPERTS * ROWS * COLUMNS / types[t].block);
        TgTensor *x = rows_of(n, COLUMNS), *chosen = tg_from(C, ids, TG_I32, TG_SHAPE(n, USED));
        TgPacked *p = tg_packed_new(data, EXPERTS * ROWS, COLUMNS, types[t].id);
        TgTensor *w = tg_reshape(tg_packed_values(p), TG_SHAPE(EXPERTS, ROWS, COLUMNS));
        for (int bits = 8; bits <= 16; bits += 8) {
          TgTensor *y = tg_packed_experts(x, p, chosen, ROWS, bits);
          assert_true(tg_ndim(y) == 3 && tg_dim(y, 0) == n && tg_dim(y, 1) == USED && tg_dim(y, 2) == ROWS);
          double e = worst_of(y, tg_unsqueeze(tg_unsqueeze(x, 1), 1), tg_take(w, chosen));
          if (!(e < (bits == 8 ? 3e-3 : 1e-5)))
            fail_msg("type %d, %d bits, %d tokens: %g", types[t].id, bits, (int)n, e);
        }
        tg_packed_free(p);
      }
}

/* MXFP4: every exponent a block may have, the smallest of which are denormal numbers. */
static void test_exponents(void **state) {
  (void)state;
  uint8_t b[256 * 17];
  for (int i = 0; i < 256 * 17; i++)
    b[i] = i % 17 ? random_byte() : (uint8_t)(i / 17);
  TgTensor *data = tg_from(C, b, TG_U8, TG_SHAPE(sizeof b));
  TgTensor *w = tg_reshape(tg_ggml_data_to_tensor(data, 256 * 32, 39), TG_SHAPE(256, 32));
  TgPacked *p = tg_packed_new(data, 256, 32, 39);
  assert_true(all_equal(w, tg_packed_values(p)));
  tg_packed_free(p);
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
  assert_true(tg_packed_fits(32, 128, 8) && tg_packed_fits(1, 128, 8) && !tg_packed_fits(32, 120, 8));
  assert_false(tg_packed_fits(32, 128, 0) || tg_packed_fits(0, 128, 8) || tg_packed_fits(32, -32, 8));
  assert_false(tg_packed_fits(INT64_MAX, 128, 8));
  assert_false(tg_packed_fits((int64_t)1 << 40, (int64_t)1 << 40, 8));
  assert_null(tg_packed_new(data, 8, 250, 8));
  assert_non_null(strstr(tg_errmsg(C), "8 x 250 of Q8_0"));
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
  TgTensor *x = tg_ones(C, TG_SHAPE(2, 128)), *chosen = tg_zeros(C, TG_SHAPE(2, 1), .dtype = TG_I32);
  assert_null(tg_packed_experts(x, p, chosen, 16, 16));
  assert_non_null(strstr(tg_errmsg(C), "of 16 rows of 32 and 128 columns"));
  tg_clear_error(C);
  assert_null(tg_packed_experts(x, p, tg_zeros(C, TG_SHAPE(3, 1), .dtype = TG_I32), 32, 16));
  assert_non_null(strstr(tg_errmsg(C), "packed_experts: "));
  tg_clear_error(C);
  assert_null(tg_packed_experts(x, p, chosen, 32, 4));
  tg_clear_error(C);
  assert_null(tg_packed_experts(x, p, NULL, 32, 16));
  assert_null(tg_packed_values(NULL));
  tg_packed_free(p);
  tg_packed_free(NULL);
}

/* x with 8 bits and one exact scale for `block` of them: what a product with such numbers is off, whatever else it
 * rounds. ggml has blocks of 32, and of 256 with its types of so many. */
static void rounded_to_8_bits(const float *x, double *to, int64_t n, int block) {
  for (int64_t b = 0; b < n; b += block) {
    double most = 0;
    for (int i = 0; i < block; i++)
      most = fmax(most, fabs((double)x[b + i]));
    for (int i = 0; i < block; i++)
      to[b + i] = most > 0 ? rint((double)x[b + i] * 127 / most) * most / 127 : 0;
  }
}

/* Sums of squares of what products with 16 bits, with 8, and with numbers as above are off: 16 bits are always nearer, 8
 * as near. */
static void test_nearer(void **state) {
  (void)state;

  enum { ROWS = 64, COLUMNS = 1024, N = 4 };

  /* One sample, whatever is tested before it: with 8 bits it is chance by how much ours is nearer. */
  seed = 1;

  static float w[ROWS * COLUMNS], x[N * COLUMNS], y[2][N * ROWS];
  static double theirs[N * COLUMNS];
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    TG_SCOPE(C) {
      TgTensor *data = blocks_of(&types[t], ROWS * COLUMNS / types[t].block), *in;
      for (int i = 0; i < N * COLUMNS; i++) /* of no grid, and some are larger */
        x[i] = (float)(random_byte() - 127.5 + random_byte() / 256.0) * (float)(random_byte() + 1) * 1e-4f;
      in = tg_from(C, x, TG_F32, TG_SHAPE(N, COLUMNS));
      TgPacked *p = tg_packed_new(data, ROWS, COLUMNS, types[t].id);
      double off[3] = {0}, most[3] = {0};
      assert_non_null(p);
      assert_int_equal(tg_read(tg_ggml_data_to_tensor(data, ROWS * COLUMNS, types[t].id), w, sizeof w),
                       TG_OK);
      for (int k = 0; k < 2; k++)
        assert_int_equal(tg_read(tg_packed_linear(in, p, k ? 8 : 16), y[k], sizeof y[k]), TG_OK);
      rounded_to_8_bits(x, theirs, N * COLUMNS, types[t].block);
      for (int i = 0; i < N * ROWS; i++) {
        double exact = 0, rounded = 0;
        for (int k = 0; k < COLUMNS; k++) {
          exact += (double)w[i % ROWS * COLUMNS + k] * (double)x[i / ROWS * COLUMNS + k];
          rounded += (double)w[i % ROWS * COLUMNS + k] * theirs[i / ROWS * COLUMNS + k];
        }
        double by[3] = {(double)y[0][i] - exact, (double)y[1][i] - exact, rounded - exact};
        for (int k = 0; k < 3; k++)
          off[k] += by[k] * by[k], most[k] = fmax(most[k], fabs(by[k]));
      }
      if (off[0] > 1e-3 * off[2] || most[0] > 0.05 * most[2] ||
          off[1] > off[2] * (types[t].block == 32 ? 1.05 : 1))
        fail_msg("type %d: off by %g and %g, at most %g and %g; with blocks of %d: %g, %g", types[t].id,
                 sqrt(off[0]), sqrt(off[1]), most[0], most[1], types[t].block, sqrt(off[2]), most[2]);
      tg_packed_free(p);
    }
}

/* Words of bytes that only one of two kinds of hardware can multiply: against sums by hand, alone and added. As many
 * as fill vectors, and as do not. */
static void test_dot4(void **state) {
  (void)state;
  static const int sizes[] = {1, 3, 4, 8, 15, 16, 64, 300};
  int32_t a[300], b[300], y[300];
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    int n = sizes[s];
    for (int i = 0; i < n; i++)
      for (int k = 0; k < 4; k++)
        ((uint8_t *)&a[i])[k] = random_byte(), ((uint8_t *)&b[i])[k] = random_byte();
    a[0] = -1, b[0] = (int32_t)0x80808080;
    TgTensor *ta = tg_from(C, a, TG_I32, TG_SHAPE(n)), *tb = tg_from(C, b, TG_I32, TG_SHAPE(n));
    for (int more = 0; more < 2; more++) {
      TgTensor *dot = tg_dot4(ta, tb);
      assert_int_equal(tg_read(more ? tg_add(dot, tb) : dot, y, (size_t)n * sizeof *y), TG_OK);
      for (int i = 0; i < n; i++) {
        int32_t sum = 0;
        for (int k = 0; k < 32; k += 8)
          sum += (uint8_t)((uint32_t)a[i] >> k) * (int8_t)((uint32_t)b[i] >> k);
        assert_int_equal(y[i], more ? (int32_t)((uint32_t)sum + (uint32_t)b[i]) : sum);
      }
    }
  }
}

enum { SUMS = 5, LONGEST = 64, NSIZE = 5, NMOST = 5, NKIND = 3 };

/* Bytes of w that are no more than `most`, as a graph of a kind: 0: what AND leaves; 1: two parts of bits; 2: places
 * in a table. */
static TgTensor *small_bytes(TgTensor *w, int kind, int most) {
  if (kind == 0) return tg_bitand_scalar(w, most * 0x01010101);
  if (kind == 1) {
    TgTensor *low = tg_bitand_scalar(w, (most >> 1) * 0x01010101);
    int top = 31 - __builtin_clz((unsigned)most);
    TgTensor *high = tg_shl_scalar(tg_bitand_scalar(tg_shr_scalar(w, 7), 0x01010101), top);
    return tg_contiguous(tg_bitor(low, high)); /* the bound goes through memory */
  }
  uint8_t table[16];
  for (int i = 0; i < 16; i++)
    table[i] = (uint8_t)(most * i / 15);
  return tg_lookup4(w, table);
}

static int small_byte(uint32_t w, int kind, int most, int i) {
  int byte = w >> 8 * i & 255;
  if (kind == 0) return byte & most;
  if (kind == 1) return (byte & most >> 1) | (byte >> 7) << (31 - __builtin_clz((unsigned)most));
  return most * (byte & 15) / 15;
}

/* Sums of products of bytes, of which some are small: where all are the largest, 16 bits are soon too few. */
static void test_sums_of_dot4(void **state) {
  (void)state;
  static const int sizes[NSIZE] = {1, 6, 8, 11, LONGEST}, all[NMOST] = {1, 15, 31, 63, 255};
  int32_t a[SUMS][LONGEST], b[SUMS][LONGEST], y[SUMS], sum;
  for (int c = 0; c < NSIZE * NMOST * NKIND; c++) {
    int n = sizes[c % NSIZE], most = all[c / NSIZE % NMOST], want[SUMS] = {0}, whole = 0;
    int kind = c / NSIZE / NMOST;
    for (int i = 0; i < SUMS * n; i++) {
      uint32_t w = 0, x = 0;
      for (int k = 0; k < 32; k += 8)
        w |= (uint32_t)random_byte() << k, x |= (uint32_t)random_byte() << k;
      if (i / n < 2) w = UINT32_MAX, x = i / n ? 0x7f7f7f7f : 0x80808080;
      a[0][i] = (int32_t)w, b[0][i] = (int32_t)x;
      for (int k = 0; k < 4; k++)
        want[i / n] += small_byte(w, kind, most, k) * (int8_t)(x >> 8 * k);
    }
    for (int i = 0; i < SUMS; i++)
      whole += want[i];
    TgTensor *w = small_bytes(tg_from(C, a, TG_I32, TG_SHAPE(SUMS, n)), kind, most);
    TgTensor *dots = tg_dot4(w, tg_from(C, b, TG_I32, TG_SHAPE(SUMS, n)));
    assert_int_equal(tg_read(tg_sum(dots, .axis = TG_AXES(1)), y, sizeof y), TG_OK);
    for (int i = 0; i < SUMS; i++)
      if (y[i] != want[i])
        fail_msg("kind %d, bytes to %d, sum %d of %d words: %d, not %d", kind, most, i, n, y[i], want[i]);
    assert_int_equal(tg_read(tg_sum(dots), &sum, sizeof sum), TG_OK);
    assert_int_equal(sum, whole);
  }
}

/* Words of two numbers: as many as fill vectors, and as do not; what wraps. */
static void test_dot2(void **state) {
  (void)state;
  static const int sizes[] = {1, 3, 4, 8, 15, 16, 64, 300};
  int32_t a[300], b[300], y[300];
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    int n = sizes[s];
    for (int i = 0; i < n; i++)
      for (int k = 0; k < 4; k++)
        ((uint8_t *)&a[i])[k] = random_byte(), ((uint8_t *)&b[i])[k] = random_byte();
    a[0] = b[0] = (int32_t)0x80008000;
    TgTensor *ta = tg_from(C, a, TG_I32, TG_SHAPE(n)), *tb = tg_from(C, b, TG_I32, TG_SHAPE(n));
    assert_int_equal(tg_read(tg_dot2(ta, tb), y, (size_t)n * sizeof *y), TG_OK);
    assert_int_equal(y[0], INT32_MIN);
    for (int i = 1; i < n; i++)
      assert_int_equal(y[i], (int16_t)a[i] * (int16_t)b[i] + (a[i] >> 16) * (b[i] >> 16));
  }
}

/* Bytes of words that a table has: all that there are, in numbers of words that fill vectors and that do not. */
static void test_lookup4(void **state) {
  (void)state;
  static const int sizes[] = {1, 2, 3, 4, 8, 15, 16, 64, 300};
  int32_t a[300], y[300];
  uint8_t table[16];
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    int n = sizes[s];
    for (int i = 0; i < 16; i++)
      table[i] = i ? random_byte() : 255;
    for (int i = 0; i < n; i++)
      for (int k = 0; k < 4; k++)
        ((uint8_t *)&a[i])[k] = random_byte();
    TgTensor *t = tg_from(C, a, TG_I32, TG_SHAPE(n));
    assert_int_equal(tg_read(tg_lookup4(t, table), y, (size_t)n * sizeof *y), TG_OK);
    for (int i = 0; i < 4 * n; i++)
      assert_int_equal(((uint8_t *)y)[i], table[((uint8_t *)a)[i] & 15]);
    int32_t of_const = 0;
    assert_int_equal(tg_read(tg_lookup4(tg_full_i64(C, TG_SCALAR, 0x0f0e0d01, TG_I32), table), &of_const, 4),
                     TG_OK);
    assert_int_equal((uint32_t)of_const,
                     (uint32_t)table[15] << 24 | table[14] << 16 | table[13] << 8 | table[1]);
  }
  assert_null(tg_lookup4(tg_from(C, a, TG_I32, TG_SHAPE(1)), NULL));
  tg_clear_error(C);
  assert_null(tg_lookup4(NULL, table));
}

/* Products of bytes, whichever processor this is; those of words; what this one takes. */
int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types),   cmocka_unit_test(test_batches),     cmocka_unit_test(test_exponents),
      cmocka_unit_test(test_experts), cmocka_unit_test(test_numbers),     cmocka_unit_test(test_refused),
      cmocka_unit_test(test_dot4),    cmocka_unit_test(test_lookup4),     cmocka_unit_test(test_nearer),
      cmocka_unit_test(test_dot2),    cmocka_unit_test(test_sums_of_dot4)};
  static const char *const devices[] = {"INTERP", "CPU", NULL};
  int failed = 0;
  for (int i = 0; i < 3; i++) {
    setenv("TG_DOT", i == 1 ? "0" : "1", 1);
    seed = 1;
    C = tg_open_with(.device = devices[i]);
    if (i < 2 && tensor_has_dot4(tg_ones(C, TG_SHAPE(1)), UINT8_MAX) != (i == 0))
      failed++, printf("%s: has_dot4\n", devices[i]);
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    tg_close(C);
  }
  return failed;
}
