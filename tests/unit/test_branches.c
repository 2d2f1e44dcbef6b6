/* test_branches.c: work behind a branch (branches.c) gives what it gave before it. Every value is a 32-bit
 * integer that wraps, so that plain loops have the same bits; each list is verified as it is made. */
#include "tensor/context.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 1000, SHORT = 3, LONG = 40, ROWS = 5 };

static const char *const devices[] = {"INTERP",     "CPU",         "INTERP",       "INTERP:C",
                                      "INTERP:C99", "INTERP:CUDA", "INTERP:METAL", "INTERP:AMX"};

static TgTensor *steps(TgTensor *x, int n, int by) { /* ((by x + by) x + by + 1) x .. */
  TgTensor *h = tg_mul_scalar(x, by);
  for (int i = 0; i < n; i++)
    h = tg_mul(tg_add_scalar(h, by + i), x);
  return h;
}

static int32_t steps_of(int32_t x, int n, int by) {
  uint32_t h = (uint32_t)x * (uint32_t)by;
  for (int i = 0; i < n; i++)
    h = (h + (uint32_t)(by + i)) * (uint32_t)x;
  return (int32_t)h;
}

/* Programs of a tensor, and what they give for an element. */
static TgTensor *one(TgTensor *x) {
  return tg_where(tg_lt_scalar(x, 500), steps(x, SHORT, 3), steps(x, LONG, 5));
}

static int32_t one_of(int32_t x) { return x < 500 ? steps_of(x, SHORT, 3) : steps_of(x, LONG, 5); }

static TgTensor *other_side(TgTensor *x) {
  return tg_where(tg_lt_scalar(x, 30), steps(x, LONG, 3), steps(x, SHORT, 5));
}

static int32_t other_side_of(int32_t x) { return x < 30 ? steps_of(x, LONG, 3) : steps_of(x, SHORT, 5); }

/* Both sides are much. */
static TgTensor *both(TgTensor *x) {
  return tg_where(tg_lt_scalar(x, 400), steps(x, LONG, 3), steps(x, LONG, 5));
}

static int32_t both_of(int32_t x) { return steps_of(x, LONG, x < 400 ? 3 : 5); }

/* What is long is shared by two selections, and read by nobody else. */
static TgTensor *shared(TgTensor *x) {
  TgTensor *far = steps(x, LONG, 7), *is_near = tg_lt_scalar(x, 900);
  TgTensor *a = tg_where(is_near, steps(x, SHORT, 1), far);
  return tg_bitxor(a, tg_where(is_near, steps(x, SHORT, 2), tg_shr_scalar(far, 3)));
}

static int32_t shared_of(int32_t x) {
  int32_t far = steps_of(x, LONG, 7);
  return x < 900 ? steps_of(x, SHORT, 1) ^ steps_of(x, SHORT, 2) : far ^ far >> 3;
}

/* The second selection reads the first; what is long is read beside them, too. */
static TgTensor *chained(TgTensor *x) {
  TgTensor *is_near = tg_lt_scalar(x, 700);
  TgTensor *a = tg_where(is_near, steps(x, SHORT, 1), steps(x, LONG, 2));
  TgTensor *b = tg_where(is_near, steps(a, SHORT, 2), steps(a, LONG, 1)), *c = steps(x, LONG, 9);
  return tg_add(tg_add(b, c), tg_where(is_near, steps(b, SHORT, 4), c));
}

static int32_t chained_of(int32_t x) {
  int32_t a = x < 700 ? steps_of(x, SHORT, 1) : steps_of(x, LONG, 2);
  int32_t b = x < 700 ? steps_of(a, SHORT, 2) : steps_of(a, LONG, 1), c = steps_of(x, LONG, 9);
  return (int32_t)((uint32_t)b + (uint32_t)c + (uint32_t)(x < 700 ? steps_of(b, SHORT, 4) : c));
}

/* A selection of conditions, which has no bits of its own in a vector. */
static TgTensor *conditions(TgTensor *x) {
  TgTensor *odd = tg_ne_scalar(tg_bitand_scalar(steps(x, LONG, 3), 4), 0);
  TgTensor *big = tg_lt_scalar(steps(x, SHORT, 3), 1000);
  return tg_cast(tg_where(tg_lt_scalar(x, 600), big, odd), TG_I32);
}

static int32_t conditions_of(int32_t x) {
  return x < 600 ? steps_of(x, SHORT, 3) < 1000 : (steps_of(x, LONG, 3) & 4) != 0;
}

/* A branch in a branch. */
static TgTensor *nested(TgTensor *x) {
  TgTensor *in = tg_where(tg_lt_scalar(x, 950), steps(x, SHORT, 8), steps(x, LONG, 8));
  return tg_where(tg_lt_scalar(x, 800), steps(x, SHORT, 6), steps(tg_add(in, x), LONG, 6));
}

static int32_t nested_of(int32_t x) {
  int32_t in = x < 950 ? steps_of(x, SHORT, 8) : steps_of(x, LONG, 8);
  return x < 800 ? steps_of(x, SHORT, 6) : steps_of((int32_t)((uint32_t)in + (uint32_t)x), LONG, 6);
}

static const struct {
  TgTensor *(*made)(TgTensor *x);
  int32_t (*is)(int32_t x);
} programs[] = {{one, one_of},         {other_side, other_side_of}, {both, both_of},    {shared, shared_of},
                {chained, chained_of}, {conditions, conditions_of}, {nested, nested_of}};

/* Elements of vectors that all take one side, the other, and both. */
static int32_t element(int i) { return i < 320 ? i : i < 640 ? i * 7 % 1000 : 1000 - i / 4; }

static void values(TgContext *ctx, int n) {
  int32_t x[MOST], got[MOST];
  for (int i = 0; i < n; i++)
    x[i] = element(i);
  for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
    TgTensor *y = programs[p].made(tg_from(ctx, x, TG_I32, TG_SHAPE(n)));
    if (tg_read(y, got, (size_t)n * sizeof *got)) fail_msg("program %zu: %s", p, tg_errmsg(ctx));
    for (int i = 0; i < n; i++)
      if (got[i] != programs[p].is(x[i]))
        fail_msg("program %zu of %d, element %d: %d, not %d", p, n, i, got[i], programs[p].is(x[i]));
  }
}

/* In the loop of a sum. */
static void sums(TgContext *ctx, int n) {
  int32_t x[MOST], got[ROWS];
  for (int i = 0; i < n * ROWS; i++)
    x[i] = element(i);
  for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
    TgTensor *y = programs[p].made(tg_from(ctx, x, TG_I32, TG_SHAPE(ROWS, n)));
    if (tg_read(tg_sum(y, .axis = TG_AXES(1)), got, sizeof got)) fail_msg("sum %zu: %s", p, tg_errmsg(ctx));
    for (int r = 0; r < ROWS; r++) {
      uint32_t want = 0;
      for (int i = 0; i < n; i++)
        want += (uint32_t)programs[p].is(x[r * n + i]);
      if (got[r] != (int32_t)want) fail_msg("sum %zu of %d, row %d", p, n, r);
    }
  }
}

static void test_values(void **state) {
  (void)state;
  setenv("TG_SPEC", "1", 1);
  for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
    for (int noopt = 0; noopt < 2; noopt++) {
      setenv("TG_NOOPT", noopt ? "1" : "0", 1);
      TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = devices[d]});
      assert_int_equal(tg_error(ctx), TG_OK);
      static const int sizes[] = {1, 7, 100, MOST};
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        TG_SCOPE(ctx) values(ctx, sizes[i]);
      TG_SCOPE(ctx) sums(ctx, MOST / ROWS);
      tg_close(ctx);
    }
  unsetenv("TG_NOOPT"), unsetenv("TG_SPEC");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
