/* test_limits.c: kernels of many loops, outputs and parameters take the opts that are chosen for them.
 * Compiled, not run. */
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const devices[] = {"NULL:C", "NULL:CUDA", "NULL:METAL"};

static TgContext *open_on(int device) {
  setenv("TG_SPEC", "1", 1);
  TgContext *ctx =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = devices[device], .cores = 2});
  unsetenv("TG_SPEC");
  assert_int_equal(tg_error(ctx), TG_OK);
  return ctx;
}

static void done(TgContext *ctx, TgStatus s, const char *what, int device) {
  if (s || tg_counters(ctx).fallbacks) fail_msg("%s on %s: %s", what, devices[device], tg_errmsg(ctx));
  tg_close(ctx);
}

/* n outputs, each over two loops of its own; every third is a row sum */
static char *kernel_of(int n) {
  char *text = malloc(400 * (size_t)n + 100);
  size_t at = 0;
  for (int i = 0; i < n; i++) {
    int rows = 3 + i % 7, columns = 16 + i % 5 * 9, a = 2 * i, b = 2 * i + 1;
    bool sum = i % 3 == 2;
    at +=
        (size_t)sprintf(text + at, "p%d = PARAM[f32, %d, %d](%d, %d)\n", a, a, rows * columns, rows, columns);
    at += (size_t)sprintf(text + at, "q%d = PARAM[f32, %d, %d]\n", b, b, sum ? rows : rows * columns);
    at += (size_t)sprintf(text + at, "r%d = RANGE[%d, GLOBAL](%d)\n", a, a, rows);
    at += (size_t)sprintf(text + at, "r%d = RANGE[%d, %s](%d)\n", b, b, sum ? "REDUCE" : "GLOBAL", columns);
    if (sum)
      at += (size_t)sprintf(text + at,
                            "s%d = STORE(INDEX(q%d, r%d), REDUCE[ADD](INDEX(p%d, r%d, r%d), r%d), r%d)\n", i,
                            b, a, a, a, b, b, a);
    else
      at += (size_t)sprintf(text + at,
                            "s%d = STORE(INDEX(q%d, r%d * %d + r%d), INDEX(p%d, r%d, r%d) + 1, r%d, r%d)\n",
                            i, b, a, columns, b, a, a, b, a, b);
  }
  at += (size_t)sprintf(text + at, "k = SINK(");
  for (int i = 0; i < n; i++)
    at += (size_t)sprintf(text + at, "%ss%d", i ? ", " : "", i);
  sprintf(text + at, ")\nroots k\n");
  return text;
}

static void test_loops(void **state) {
  (void)state;
  char *text = kernel_of(100);
  for (int d = 0; d < 3; d++) {
    TgContext *ctx = open_on(d);
    const char *r = tg_opt(ctx, text);
    done(ctx, r ? TG_OK : TG_ERR_STATE, "200 loops", d);
  }
  free(text);
}

static void test_clipped_gradients(void **state) {
  (void)state;

  enum { N = 500 };

  static TgTensor *p[N];
  for (int d = 0; d < 3; d++) {
    TgContext *ctx = open_on(d);
    TgTensor *norm = NULL;
    for (int i = 0; i < N; i++) {
      p[i] = tg_empty(ctx, TG_F32, TG_SHAPE(5 + i % 3, 7 + i % 4));
      TgTensor *s = tg_sum(tg_mul(p[i], p[i]));
      norm = norm ? tg_add(norm, s) : s;
    }
    TgTensor *scale = tg_reciprocal(tg_maximum(tg_sqrt(norm), tg_full(ctx, 0, NULL, 1)));
    for (int i = 0; i < N; i++)
      p[i] = tg_mul(p[i], scale);
    done(ctx, tg_realize_many(p, N), "500 parameters", d);
  }
}

static void test_outputs(void **state) {
  (void)state;

  enum { N = 100 };

  TgTensor *out[N];
  for (int d = 0; d < 3; d++) {
    TgContext *ctx = open_on(d);
    TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(12, 20));
    for (int i = 0; i < N; i++)
      out[i] = i % 4 ? tg_mul(x, tg_full(ctx, 0, NULL, i))
                     : tg_sum(tg_add(x, tg_full(ctx, 0, NULL, i)), .axis = TG_AXES(1));
    done(ctx, tg_realize_many(out, N), "100 outputs", d);
  }
}

static void test_softmaxes(void **state) {
  (void)state;

  enum { N = 30 };

  TgTensor *out[N];
  for (int d = 0; d < 3; d++) {
    TgContext *ctx = open_on(d);
    TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(16, 40));
    for (int i = 0; i < N; i++)
      out[i] = tg_softmax(tg_mul(x, tg_full(ctx, 0, NULL, i + 1)));
    done(ctx, tg_realize_many(out, N), "30 softmaxes", d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_loops), cmocka_unit_test(test_clipped_gradients),
                                     cmocka_unit_test(test_outputs), cmocka_unit_test(test_softmaxes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
