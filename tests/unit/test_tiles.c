/* test_tiles.c: sums of products on the tiles of a CPU. Which kernels get them; what comes of them, against
 * sums of whole numbers and of halves made here, which are exact in any order; and that threads change no
 * bit. Where this CPU has no tiles, or the system grants none, the interpreter computes them alone. */
#define _GNU_SOURCE
#include "tg.h"
#include "base/os.h"
#include "base/processor.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *open_on(const char *device, int threads, int cores) {
  TgContext *ctx = tg_open(
      &(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .threads = threads, .cores = cores});
  assert_non_null(ctx);
  assert_int_equal(tg_error(ctx), TG_OK);
  return ctx;
}

static bool has_tiles(void) {
  static int said;
  bool has = processor_tiles() && !tg_os_default.tiles_ask();
  if (!has && !said++) print_message("no tiles here: kernels with them run on INTERP:AMX alone\n");
  return has;
}

/* ---- which kernels */
static const char bf16_256[] = "p0 = PARAM[f32, 0, 65536](256, 256)\np1 = PARAM[bf16, 1, 65536](256, 256)\n"
                               "p2 = PARAM[bf16, 2, 65536](256, 256)\nr0 = RANGE[0, GLOBAL](256)\n"
                               "r1 = RANGE[1, GLOBAL](256)\nr2 = RANGE[2, REDUCE](256)\n"
                               "s = SINK(STORE(INDEX(p0, r0, r1), REDUCE[ADD](CAST[f32](INDEX(p1, r0, r2)) * "
                               "CAST[f32](INDEX(p2, r2, r1)), r2), r0, r1))\n";

static const char f32_256[] = "p0 = PARAM[f32, 0, 65536](256, 256)\np1 = PARAM[f32, 1, 65536](256, 256)\n"
                              "p2 = PARAM[f32, 2, 65536](256, 256)\nr0 = RANGE[0, GLOBAL](256)\n"
                              "r1 = RANGE[1, GLOBAL](256)\nr2 = RANGE[2, REDUCE](256)\n"
                              "s = SINK(STORE(INDEX(p0, r0, r1), REDUCE[ADD](INDEX(p1, r0, r2) * "
                              "INDEX(p2, r2, r1), r2), r0, r1))\n";

static const char bf16_row[] = "p0 = PARAM[f32, 0, 1024]\np1 = PARAM[bf16, 1, 1024]\n"
                               "p2 = PARAM[bf16, 2, 1048576](1024, 1024)\nr1 = RANGE[1, GLOBAL](1024)\n"
                               "r2 = RANGE[2, REDUCE](1024)\n"
                               "s = SINK(STORE(INDEX(p0, r1), REDUCE[ADD](CAST[f32](INDEX(p1, r2)) * "
                               "CAST[f32](INDEX(p2, r2, r1)), r2), r1))\n";

static bool takes_tiles(const char *device, const char *kernel) {
  TgContext *ctx = open_on(device, 0, 0);
  const char *text = tg_opt(ctx, kernel, .emit = "c");
  if (!text) fail_msg("%s: %s", device, tg_errmsg(ctx));
  bool takes = strstr(text, "tiles_m16n16k32_bf16_f32") && strstr(text, "tdpbf16ps");
  tg_close(ctx);
  return takes;
}

static void test_which(void **state) {
  (void)state;
  assert_true(takes_tiles("NULL:AMX", bf16_256));
  assert_false(takes_tiles("NULL:AMX", f32_256));
  assert_false(takes_tiles("NULL:AMX", bf16_row)); /* nothing is used again */
  assert_false(takes_tiles("NULL:C", bf16_256));
  if (!has_tiles()) return;
  assert_true(takes_tiles("CPU", bf16_256));
  setenv("TG_AMX", "0", 1);
  assert_false(takes_tiles("CPU", bf16_256));
  unsetenv("TG_AMX");
}

/* ---- values */
typedef struct Product {
  TgDType a, b;
  int m, k, n;
  bool turned_a, turned_b;
} Product;

static unsigned seed = 7;

static int draw(void) { return seed = seed * 1664525u + 1013904223u, (int)(seed >> 24); }

static double element(TgDType d) {
  return d == TG_I8 ? draw() - 128 : d == TG_U8 ? draw() : (draw() - 128) / 2.;
}

static double *matrix(TgDType d, int n) {
  double *p = malloc((size_t)n * sizeof *p);
  assert_non_null(p);
  for (int i = 0; i < n; i++)
    p[i] = element(d);
  return p;
}

static TgTensor *tensor(TgContext *ctx, const double *p, TgDType d, int rows, int columns, bool turned) {
  TgTensor *t = tg_from_f64(ctx, p, d, TG_SHAPE(turned ? columns : rows, turned ? rows : columns));
  return turned ? tg_transpose(t, 0, 1) : t;
}

/* The product and, from the same kernel, its relu: 2 m n values. */
static void results(const char *device, int threads, const Product *p, const double *a, const double *b,
                    double *out) {
  TgContext *ctx = open_on(device, threads, 0);
  bool floats = p->a == TG_BF16;
  TgTensor *y = tg_matmul(tensor(ctx, a, p->a, p->m, p->k, p->turned_a),
                          tensor(ctx, b, p->b, p->k, p->n, p->turned_b), .dtype = floats ? TG_F32 : TG_I32);
  TgTensor *two[2] = {y, tg_relu(y)};
  size_t n = (size_t)p->m * (size_t)p->n;
  bool ok = !tg_realize_many(two, 2) && !tg_read_f64(two[0], out, n) && !tg_read_f64(two[1], out + n, n);
  if (!ok) fail_msg("%s: %d x %d x %d: %s", device, p->m, p->k, p->n, tg_errmsg(ctx));
  tg_close(ctx);
}

static void check(const Product *p) {
  double *a = matrix(p->a, p->m * p->k), *b = matrix(p->b, p->k * p->n);
  size_t n = (size_t)p->m * (size_t)p->n;
  double *got = malloc(4 * n * sizeof *got), *again = got + 2 * n;
  assert_non_null(got);
  results(has_tiles() ? "CPU" : "INTERP:AMX", 1, p, a, b, got);
  for (int i = 0; i < p->m; i++)
    for (int j = 0; j < p->n; j++) {
      double want = 0, is = got[(size_t)i * (size_t)p->n + (size_t)j];
      for (int k = 0; k < p->k; k++)
        want += a[p->turned_a ? k * p->m + i : i * p->k + k] * b[p->turned_b ? j * p->k + k : k * p->n + j];
      if (is != want || got[n + (size_t)i * (size_t)p->n + (size_t)j] != (want > 0 ? want : 0))
        fail_msg("%d x %d x %d: element %d, %d is %g, not %g", p->m, p->k, p->n, i, j, is, want);
    }
  if (has_tiles()) {
    results("CPU", 3, p, a, b, again);
    assert_memory_equal(got, again, 2 * n * sizeof *got);
  }
  free(a), free(b), free(got);
}

static void test_values(void **state) {
  (void)state;

  static const Product products[] = {
      {TG_BF16, TG_BF16, 64, 64, 64, false, false}, {TG_BF16, TG_BF16, 97, 131, 75, false, true},
      {TG_BF16, TG_BF16, 130, 70, 33, true, false}, {TG_BF16, TG_BF16, 16, 512, 80, false, true},
      {TG_BF16, TG_BF16, 90, 200, 9, true, true},   {TG_BF16, TG_BF16, 40, 1100, 48, false, false},
      {TG_I8, TG_I8, 65, 100, 67, false, false},    {TG_U8, TG_I8, 70, 257, 50, false, true},
      {TG_I8, TG_U8, 50, 130, 95, true, false},     {TG_U8, TG_U8, 33, 300, 64, true, true},
  };

  for (size_t i = 0; i < sizeof products / sizeof *products; i++)
    check(&products[i]);
}

/* Sums wrap as those of INTERP do. */
static void test_wraps(void **state) {
  (void)state;

  enum { ROWS = 16, DEPTH = 40000 };

  static uint8_t a[ROWS * DEPTH], b[DEPTH * ROWS];
  static int32_t got[ROWS * ROWS];
  memset(a, 255, sizeof a), memset(b, 255, sizeof b);
  TgContext *ctx = open_on(has_tiles() ? "CPU" : "INTERP:AMX", 0, 0);
  TgTensor *y = tg_matmul(tg_from(ctx, a, TG_U8, TG_SHAPE(ROWS, DEPTH)),
                          tg_from(ctx, b, TG_U8, TG_SHAPE(DEPTH, ROWS)), .dtype = TG_I32);
  if (tg_read(y, got, sizeof got)) fail_msg("%s", tg_errmsg(ctx));
  for (int i = 0; i < ROWS * ROWS; i++)
    assert_int_equal(got[i], (int32_t)(uint32_t)(255ull * 255 * DEPTH));
  tg_close(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_which),
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_wraps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
