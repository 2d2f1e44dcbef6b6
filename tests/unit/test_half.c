/* test_half.c: f16 in vectors of every width that kernels have: all 65,536 values to f32, and what lies on and
 * beside the middle of two neighbours back to f16. Expected values are computed bit by bit. */
#define _POSIX_C_SOURCE 200809L
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ALL = 1 << 16 };

static uint16_t half[ALL];
static float single[ALL];

/* the value of an f16 that is no NaN */
static double value_of(uint16_t h) {
  int e = h >> 10 & 31, m = h & 1023;
  double v = e == 31 ? INFINITY : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
  return h >> 15 ? -v : v;
}

static bool is_nan(uint16_t h) { return (h & 0x7c00) == 0x7c00 && (h & 1023); }

static TgContext *opened(const char *opts) {
  if (opts)
    setenv("TG_OPTS", opts, 1);
  else
    unsetenv("TG_OPTS");
  TgContext *c = tg_open_with(.device = "CPU");
  unsetenv("TG_OPTS");
  assert_int_equal(tg_error(c), TG_OK);
  return c;
}

static const char *const widths[] = {NULL, "", "VEC r0 4", "VEC r0 8", "VEC r0 16", "VEC r0 32", "VEC r0 64"};

enum { WIDTHS = sizeof widths / sizeof *widths };

static void test_to_single(void **state) {
  (void)state;
  for (int i = 0; i < ALL; i++)
    half[i] = (uint16_t)i;
  for (int w = 0; w < WIDTHS; w++) {
    TgContext *c = opened(widths[w]);
    TgTensor *x = tg_from(c, half, TG_F16, TG_SHAPE(ALL));
    if (tg_read(tg_cast(x, TG_F32), single, sizeof single)) fail_msg("%s: %s", widths[w], tg_errmsg(c));
    for (int i = 0; i < ALL; i++) {
      bool same = is_nan(half[i]) ? isnan(single[i]) : (double)single[i] == value_of(half[i]);
      if (!same || (!single[i] && !!signbit(single[i]) != half[i] >> 15))
        fail_msg("%s: 0x%04x is %g", widths[w] ? widths[w] : "as planned", (unsigned)i, (double)single[i]);
    }
    tg_close(c);
  }
}

/* i -> a neighbour of the middle between two f16: below it, on it, above it; ties go to the even one */
static float between(int i, uint16_t *want) {
  uint16_t h = (uint16_t)(i / 3 % 0x7bff);
  double middle = (value_of(h) + value_of((uint16_t)(h + 1))) / 2;
  float f = (float)middle;
  *want = (uint16_t)(i % 3 == 0 ? h : i % 3 == 2 ? h + 1 : h + (h & 1));
  return i % 3 == 0 ? nextafterf(f, 0) : i % 3 == 2 ? nextafterf(f, INFINITY) : f;
}

static void test_from_single(void **state) {
  (void)state;
  static uint16_t want[ALL];
  for (int w = 0; w < WIDTHS; w++) {
    TgContext *c = opened(widths[w]);
    for (int i = 0; i < ALL; i++)
      single[i] = between(i, &want[i]);
    TgTensor *x = tg_from(c, single, TG_F32, TG_SHAPE(ALL));
    if (tg_read(tg_cast(x, TG_F16), half, sizeof half)) fail_msg("%s: %s", widths[w], tg_errmsg(c));
    for (int i = 0; i < ALL; i++)
      if (half[i] != want[i])
        fail_msg("%s: %.9g is 0x%04x, not 0x%04x", widths[w] ? widths[w] : "as planned", (double)single[i],
                 (unsigned)half[i], (unsigned)want[i]);
    tg_close(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_to_single), cmocka_unit_test(test_from_single)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
