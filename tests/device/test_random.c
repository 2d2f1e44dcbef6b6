/* test_random.c: random numbers on every device against tests/goldens/random.txt, which
 * tests/goldens/make_random.py made from the description of tinygrad's stream; and what a stream promises: a
 * counter that moves on, a seed that starts again, keys that can be drawn again. */
#include "tensor/context.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const devices[] = {"CPU", "INTERP", "INTERP:C", "INTERP:CUDA", "INTERP:METAL"};

enum { DEVICES = sizeof devices / sizeof *devices, MOST = 64 };

static TgContext *C;

static void open_on(const char *device) {
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = 1});
  assert_int_equal(tg_error(C), TG_OK);
}

static TgDType dtype_named(const char *s) {
  for (int d = TG_BOOL; d <= TG_FP8E5M2; d++)
    if (!strcmp(tg_dtype_name((TgDType)d), s)) return (TgDType)d;
  return TG_DTYPE_DEFAULT;
}

static TgTensor *pair(double a, double b) { return tg_from_f64(C, (double[]){a, b}, TG_U32, TG_SHAPE(2)); }

/* The tensor that a line of the file asks for. *tol: 0 where every bit is told. */
static TgTensor *asked(const char *line, double *tol) {
  char op[32], dtype[16] = "";
  double a = 0, b = 0, c = 0, d = 0, n = 0;
  const int64_t block[] = {2, 3, 2};
  TgTensor *w = tg_from_f64(C, (double[]){1, 2, 3, 4}, TG_F32, TG_SHAPE(4));
  assert_int_equal(sscanf(line, "%31s", op), 1);
  *tol = 0;
  if (!strcmp(op, "bits")) {
    assert_int_equal(sscanf(line, "%*s %lf %lf %lf %lf %lf", &a, &b, &c, &d, &n), 5);
    return tg_random_bits(pair(a, b), pair(c, d), (int64_t)n);
  }
  if (!strcmp(op, "rand") || !strcmp(op, "randn")) {
    assert_int_equal(sscanf(line, "%*s %15s %lf", dtype, &n), 2);
    *tol = op[4] ? 2e-6 : 0;
    return op[4] ? tg_randn(C, TG_SHAPE((int64_t)n), .dtype = dtype_named(dtype))
                 : tg_rand(C, TG_SHAPE((int64_t)n), .dtype = dtype_named(dtype));
  }
  int k = sscanf(line, "%*s %lf %lf %lf", &a, &b, &c);
  if (!strcmp(op, "randint"))
    return assert_int_equal(k, 3),
           tg_randint(C, TG_SHAPE((int64_t)c), (int64_t)a, (int64_t)b, TG_DTYPE_DEFAULT);
  if (!strcmp(op, "uniform")) return tg_uniform(C, TG_SHAPE((int64_t)c), a, b);
  if (!strcmp(op, "multinomial")) return tg_multinomial(w, (int64_t)a, .replacement = true);
  if (!strcmp(op, "choose")) return tg_multinomial(w, (int64_t)a);
  *tol = 2e-6;
  if (!strcmp(op, "normal")) return tg_normal(C, TG_SHAPE((int64_t)c), a, b);
  if (!strcmp(op, "kaiming_uniform")) return tg_kaiming_uniform(C, 3, block, .a = a != 0 ? a : 0.01);
  if (!strcmp(op, "kaiming_normal")) return tg_kaiming_normal(C, 3, block, .a = a != 0 ? a : 0.01);
  if (!strcmp(op, "glorot_uniform")) return tg_glorot_uniform(C, 3, block);
  if (!strcmp(op, "scaled_uniform")) return tg_scaled_uniform(C, 3, block);
  if (!strcmp(op, "dropout")) {
    tg_set_training(C, true);
    TgTensor *t = tg_dropout(tg_ones(C, TG_SHAPE((int64_t)b)), a);
    tg_set_training(C, false);
    return t;
  }
  fail_msg("no such line: %s", line);
  return NULL;
}

static void goldens_on(const char *device) {
  static char line[4096];
  FILE *f = fopen(TG_TESTS "/goldens/random.txt", "r");
  assert_non_null(f);
  open_on(device);
  int lines = 0;
  while (fgets(line, sizeof line, f))
    TG_SCOPE(C) {
      unsigned long long seed;
      if (*line == '#') continue;
      if (sscanf(line, "seed %llu", &seed) == 1) {
        tg_manual_seed(C, seed);
        continue;
      }
      bool f64 = strstr(line, " f64 ") != NULL;
      double tol, got[MOST];
      TgTensor *t = asked(line, &tol);
      lines++;
      /* Metal has no f64; the draw has moved the counter on all the same */
      if (f64 && strstr(device, "METAL")) continue;
      if (!t || tg_numel(t) > MOST || tg_read_f64(t, got, (size_t)tg_numel(t)))
        fail_msg("%s: %s: %s", device, line, tg_errmsg(C));
      char *at = strchr(line, '=') + 1, *end;
      for (int64_t i = 0; i < tg_numel(t); i++, at = end) {
        double want = strtod(at, &end);
        if (end == at) fail_msg("too few numbers: %s", line);
        if (tol == 0 ? got[i] != want : !(fabs(got[i] - want) <= tol * fmax(1, fabs(want))))
          fail_msg("%s: element %d is %.9g, not %.9g: %s", device, (int)i, got[i], want, line);
      }
      strtod(at, &end);
      if (end != at) fail_msg("too many numbers: %s", line);
    }
  fclose(f);
  assert_in_range(lines, 100, 200);
  if (tg_error(C)) fail_msg("%s: %s", device, tg_errmsg(C));
  assert_int_equal(tg_counters(C).fallbacks + tg_counters(C).cuts, 0); /* every kernel took its opts */
  tg_close(C);
}

static void test_goldens(void **state) {
  (void)state;
  for (int d = 0; d < DEVICES; d++)
    goldens_on(devices[d]);
}

/* What the draws of a program are, whatever is realized, in whatever order, fused with whatever. */
static void test_order(void **state) {
  (void)state;
  for (int d = 0; d < DEVICES; d++) {
    double a[5], b[5], again[5], sum[5];
    open_on(devices[d]);
    for (int round = 0; round < 2; round++) {
      tg_manual_seed(C, 9);
      TgTensor *x = tg_rand(C, TG_SHAPE(5)), *y = tg_rand(C, TG_SHAPE(5));
      assert_int_equal(tg_read_f64(round ? y : x, round ? b : a, 5), TG_OK);
      assert_int_equal(tg_read_f64(round ? x : y, round ? again : b, 5), TG_OK);
      assert_int_equal(tg_read_f64(tg_add(x, y), sum, 5), TG_OK);
      for (int i = 0; i < 5; i++)
        assert_true(sum[i] == (double)((float)a[i] + (float)b[i]) && a[i] != b[i]);
    }
    for (int i = 0; i < 5; i++)
      assert_true(a[i] == again[i]);
    tg_manual_seed(C, 9);
    TgTensor *long_one = tg_rand(C, TG_SHAPE(10)); /* not two short ones in a row: a draw has one key */
    assert_int_equal(tg_read_f64(tg_slice(long_one, 0, 0, 5), again, 5), TG_OK);
    assert_true(memcmp(again, a, sizeof a) != 0);
    assert_int_equal(tg_error(C), TG_OK);
    assert_int_equal(tg_counters(C).fallbacks + tg_counters(C).cuts, 0); /* every kernel took its opts */
    tg_close(C);
  }
}

/* What replays a graph draws its keys again, and gets what the next calls would have got. */
static void test_draw_again(void **state) {
  (void)state;
  for (int d = 0; d < DEVICES; d++) {
    double want[3][7], got[7];
    open_on(devices[d]);
    tg_manual_seed(C, 4);
    for (int i = 0; i < 3; i++)
      assert_int_equal(tg_read_f64(tg_rand(C, TG_SHAPE(7)), want[i], 7), TG_OK);
    tg_manual_seed(C, 4);
    size_t first = C->buffers.len;
    TgTensor *x = tg_rand(C, TG_SHAPE(7));
    Buffer *key = C->buffers.at[first];
    assert_int_equal(C->buffers.len, first + 1);
    assert_int_equal(key->draws, 7);
    TgTensor *root = x;
    UOp *drawn = x->uop;
    for (int i = 0; i < 3; i++) {
      if (i) assert_int_equal(draw_again(C, key), TG_OK);
      x = root, x->uop = drawn->src[0]; /* below another root each time, so that no value is remembered */
      x = tg_mul_scalar(x, 1 << i);
      assert_int_equal(tg_read_f64(x, got, 7), TG_OK);
      for (int k = 0; k < 7; k++)
        assert_true(got[k] == want[i][k] * (1 << i));
    }
    assert_int_equal(tg_counters(C).fallbacks + tg_counters(C).cuts, 0); /* every kernel took its opts */
    tg_close(C);
  }
}

static void refused(const char *word, TgTensor *t, TgStatus s) {
  assert_null(t);
  if (tg_error(C) != s || !strstr(tg_errmsg(C), word)) fail_msg("%s: %s", word, tg_errmsg(C));
  tg_clear_error(C);
}

static void test_shapes_and_errors(void **state) {
  (void)state;
  open_on("INTERP");
  TgTensor *h = tg_zeros(C, TG_SHAPE(2, 3), .dtype = TG_F16), *i = tg_zeros(C, TG_SHAPE(4), .dtype = TG_I32);
  TgTensor *y = tg_rand_like(h), *z = tg_randn_like(h, .dtype = TG_F32), *e = tg_empty_like(i);
  assert_true(tg_dtype(y) == TG_F16 && tg_ndim(y) == 2 && tg_dim(y, 1) == 3);
  assert_true(tg_dtype(z) == TG_F32 && tg_dim(z, 0) == 2);
  assert_true(tg_dtype(e) == TG_I32 && tg_numel(e) == 4);
  assert_true(tg_numel(tg_rand(C, TG_SHAPE(3, 0))) == 0 && tg_ndim(tg_randn(C, TG_SCALAR)) == 0);
  assert_true(tg_dtype(tg_uniform(C, TG_SHAPE(3), 0, 9, .dtype = TG_I8)) == TG_I8);
  assert_true(tg_dtype(tg_randint(C, TG_SHAPE(3), 0, 200, TG_U8)) == TG_U8);
  TgTensor *m = tg_multinomial(tg_from_f64(C, (double[]){0, 1, 0, 0, 0, 3}, TG_F32, TG_SHAPE(2, 3)), 4,
                               .replacement = true);
  double v[8];
  assert_int_equal(tg_read_f64(m, v, 8), TG_OK);
  for (int k = 0; k < 8; k++)
    assert_true(v[k] == (k < 4 ? 1 : 2) && tg_dim(m, 0) == 2 && tg_dim(m, 1) == 4);
  assert_int_equal(
      tg_read_f64(tg_multinomial(tg_from_f64(C, (double[]){0, 5, 0}, TG_F32, TG_SHAPE(3)), 3), v, 3), TG_OK);
  assert_true(v[0] == 1 && v[1] == 0 && v[2] == 2); /* all are taken, those of weight 0 last */
  refused("rand: i32", tg_rand_like(i), TG_ERR_DTYPE);
  refused("rand", tg_rand(C, TG_SHAPE(-1)), TG_ERR_SHAPE);
  refused("uniform", tg_uniform(C, TG_SHAPE(2), 3, 3), TG_ERR_VALUE);
  refused("normal", tg_normal(C, TG_SHAPE(2), 0, -1), TG_ERR_VALUE);
  refused("randint", tg_randint(C, TG_SHAPE(2), 5, 5, TG_I32), TG_ERR_VALUE);
  refused("randint", tg_randint(C, TG_SHAPE(2), 0, 300, TG_U8), TG_ERR_VALUE);
  refused("randint", tg_randint(C, TG_SHAPE(2), 0, 3, TG_F32), TG_ERR_DTYPE);
  refused("multinomial", tg_multinomial(tg_ones(C, TG_SHAPE(3)), 4), TG_ERR_VALUE);
  refused("multinomial", tg_multinomial(tg_ones(C, TG_SHAPE(3, 1, 1)), 1), TG_ERR_SHAPE);
  refused("random_bits", tg_random_bits(i, i, 3), TG_ERR_SHAPE);
  assert_int_equal(tg_counters(C).fallbacks + tg_counters(C).cuts, 0); /* every kernel took its opts */
  tg_close(C);
}

/* With no context there is no tensor and nobody to tell, whatever the sizes are: those of another context's
 * variables cannot be named without it. */
static void test_no_context(void **state) {
  (void)state;
  open_on("INTERP");
  int64_t n = tg_size(tg_variable(C, "n", 1, 9));
  for (int symbolic = 0; symbolic < 2; symbolic++) {
    const int64_t d[] = {symbolic ? n : 3, 2};
    assert_null(tg_rand(NULL, 2, d));
    assert_null(tg_randn(NULL, 2, d));
    assert_null(tg_uniform(NULL, 2, d, 0, 1));
    assert_null(tg_randint(NULL, 2, d, 0, 9, TG_I32));
    assert_null(tg_normal(NULL, 2, d, 0, 1));
    assert_null(tg_scaled_uniform(NULL, 2, d));
    assert_null(tg_glorot_uniform(NULL, 2, d));
    assert_null(tg_kaiming_uniform(NULL, 2, d));
    assert_null(tg_kaiming_normal(NULL, 2, d));
  }
  assert_int_equal(tg_error(C), TG_OK);
  const int64_t d[] = {n, 2}; /* with one, what takes a fan from the sizes says which size it is */
  refused("scaled_uniform: axis 0 has the symbolic size n", tg_scaled_uniform(C, 2, d), TG_ERR_SHAPE);
  refused("glorot_uniform: axis 0 has the symbolic size n", tg_glorot_uniform(C, 2, d), TG_ERR_SHAPE);
  refused("kaiming_uniform: axis 0 has the symbolic size n", tg_kaiming_uniform(C, 2, d), TG_ERR_SHAPE);
  refused("kaiming_normal: axis 0 has the symbolic size n", tg_kaiming_normal(C, 2, d), TG_ERR_SHAPE);
  tg_close(C);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_goldens), cmocka_unit_test(test_order), cmocka_unit_test(test_draw_again),
      cmocka_unit_test(test_shapes_and_errors), cmocka_unit_test(test_no_context)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
