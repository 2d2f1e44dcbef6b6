/* test_tiles.c: sums of products on the matrix units of a CPU: tiles, and dot products of vectors. Which
 * kernels get them; what comes of them, against sums of whole numbers and of halves made here, which are
 * exact in any order; and that threads change no bit. What this CPU lacks, or the system does not grant, the
 * interpreter computes alone. */
#define _GNU_SOURCE
#include "tg.h"
#include "base/os.h"
#include "base/processor.h"
#include <math.h>
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

static bool has_tiles(void) { return processor_tiles() && !tg_os_default.tiles_ask(); }

static bool has_dots(void) { return processor_dots() == DOTS_BF16; }

/* With TG_AMX=0 a CPU's tiles stand back. */
typedef struct Unit {
  const char *name, *interp, *null, *row, *instruction;
  bool (*here)(void);
  const char *amx;
} Unit;

static const Unit units[] = {
    {"tiles", "INTERP:AMX", "NULL:AMX", "tiles_m16n16k32_bf16_f32", "tdpbf16ps", has_tiles, "1"},
    {"dot products", "INTERP:DOT", "NULL:DOT", "dots_m1n16k2_bf16_f32", "vdpbf16ps", has_dots, "0"}};

enum { NUNITS = sizeof units / sizeof *units };

static TgContext *open_here(const Unit *u, int threads) {
  setenv("TG_AMX", u->amx, 1);
  TgContext *ctx = open_on("CPU", threads, 0);
  unsetenv("TG_AMX");
  return ctx;
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

static bool takes(TgContext *ctx, const Unit *u, const char *kernel) {
  const char *text = tg_opt(ctx, kernel, .emit = "c");
  if (!text) fail_msg("%s: %s", u->name, tg_errmsg(ctx));
  bool is = strstr(text, u->row) && strstr(text, u->instruction);
  tg_close(ctx);
  return is;
}

static void test_which(void **state) {
  (void)state;
  for (const Unit *u = units; u < units + NUNITS; u++) {
    assert_true(takes(open_on(u->null, 0, 0), u, bf16_256));
    assert_false(takes(open_on(u->null, 0, 0), u, f32_256));
    assert_false(takes(open_on(u->null, 0, 0), u, bf16_row)); /* nothing is used again */
    assert_false(takes(open_on("NULL:C", 0, 0), u, bf16_256));
    if (!u->here()) {
      print_message("no %s here: kernels with them run on %s alone\n", u->name, u->interp);
      continue;
    }
    assert_true(takes(open_here(u, 0), u, bf16_256));
    setenv("TG_DOT", "0", 1);
    assert_int_equal(takes(open_here(u, 0), u, bf16_256), u->here == has_tiles);
    unsetenv("TG_DOT");
  }
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
static void results(TgContext *ctx, const Product *p, const double *a, const double *b, double *out) {
  bool floats = p->a == TG_BF16;
  TgTensor *y = tg_matmul(tensor(ctx, a, p->a, p->m, p->k, p->turned_a),
                          tensor(ctx, b, p->b, p->k, p->n, p->turned_b), .dtype = floats ? TG_F32 : TG_I32);
  TgTensor *two[2] = {y, tg_relu(y)};
  size_t n = (size_t)p->m * (size_t)p->n;
  bool ok = !tg_realize_many(two, 2) && !tg_read_f64(two[0], out, n) && !tg_read_f64(two[1], out + n, n);
  if (!ok) fail_msg("%d x %d x %d: %s", p->m, p->k, p->n, tg_errmsg(ctx));
  tg_close(ctx);
}

static void check(const Product *p) {
  double *a = matrix(p->a, p->m * p->k), *b = matrix(p->b, p->k * p->n);
  size_t n = (size_t)p->m * (size_t)p->n;
  double *want = malloc(4 * n * sizeof *want), *got = want + 2 * n;
  assert_non_null(want);
  for (int i = 0; i < p->m; i++)
    for (int j = 0; j < p->n; j++) {
      double sum = 0;
      for (int k = 0; k < p->k; k++)
        sum += a[p->turned_a ? k * p->m + i : i * p->k + k] * b[p->turned_b ? j * p->k + k : k * p->n + j];
      size_t at = (size_t)i * (size_t)p->n + (size_t)j;
      want[at] = sum, want[n + at] = sum > 0 ? sum : 0;
    }
  for (int which = 0; which < 3 * NUNITS; which++) {
    const Unit *u = &units[which / 3];
    bool here = which % 3;
    if (here && !u->here()) continue;
    results(here ? open_here(u, which % 3 == 1 ? 1 : 3) : open_on(u->interp, 0, 0), p, a, b, got);
    for (size_t i = 0; i < 2 * n; i++)
      if (got[i] != want[i])
        fail_msg("%s%s: %d x %d x %d: element %zu, %zu is %g, not %g", u->name, here ? " here" : "", p->m,
                 p->k, p->n, i / (size_t)p->n, i % (size_t)p->n, got[i], want[i]);
  }
  free(a), free(b), free(want);
}

static void test_values(void **state) {
  (void)state;

  static const Product products[] = {
      {TG_BF16, TG_BF16, 64, 64, 64, false, false}, {TG_BF16, TG_BF16, 97, 131, 75, false, true},
      {TG_BF16, TG_BF16, 130, 70, 33, true, false}, {TG_BF16, TG_BF16, 16, 512, 80, false, true},
      {TG_BF16, TG_BF16, 90, 200, 9, true, true},   {TG_BF16, TG_BF16, 40, 1100, 48, false, false},
      {TG_BF16, TG_BF16, 7, 65, 65, false, true},   {TG_BF16, TG_BF16, 5, 33, 129, true, false},
      {TG_BF16, TG_BF16, 257, 1, 34, false, false}, {TG_BF16, TG_BF16, 33, 7, 16, true, true},
      {TG_I8, TG_I8, 65, 100, 67, false, false},    {TG_I8, TG_I8, 33, 7, 65, true, true},
      {TG_I8, TG_I8, 7, 65, 129, false, true},      {TG_I8, TG_I8, 300, 1, 16, true, false},
      {TG_U8, TG_I8, 70, 257, 50, false, true},     {TG_U8, TG_I8, 3, 33, 70, true, false},
      {TG_I8, TG_U8, 50, 130, 95, true, false},     {TG_I8, TG_U8, 129, 65, 8, false, true},
      {TG_U8, TG_U8, 33, 300, 64, true, true},      {TG_U8, TG_U8, 6, 65, 96, false, false},
  };

  for (size_t i = 0; i < sizeof products / sizeof *products; i++)
    check(&products[i]);
}

/* Sums of 8 bits: every pair of the least and the greatest, as long as wraps 32 bits, as those of INTERP do.
 */
static void extremes(TgContext *ctx, TgDType first, TgDType second, uint8_t x, uint8_t y) {
  enum { ROWS = 17, DEPTH = 140000 };

  static uint8_t a[ROWS * DEPTH], b[DEPTH * ROWS];
  static int32_t got[ROWS * ROWS];
  memset(a, x, sizeof a), memset(b, y, sizeof b);
  TgTensor *t = tg_matmul(tg_from(ctx, a, first, TG_SHAPE(ROWS, DEPTH)),
                          tg_from(ctx, b, second, TG_SHAPE(DEPTH, ROWS)), .dtype = TG_I32);
  if (tg_read(t, got, sizeof got)) fail_msg("%s", tg_errmsg(ctx));
  int64_t p = first == TG_I8 ? (int8_t)x : x, q = second == TG_I8 ? (int8_t)y : y;
  for (int i = 0; i < ROWS * ROWS; i++)
    if (got[i] != (int32_t)(uint32_t)(p * q * DEPTH))
      fail_msg("%lld times %lld: element %d is %d", (long long)p, (long long)q, i, got[i]);
  tg_close(ctx);
}

static void test_extremes(void **state) {
  (void)state;

  static const uint8_t ends[2][2] = {{0x80, 0x7f}, {0, 255}}; /* of I8, of U8 */

  for (int dtypes = 0; dtypes < 4; dtypes++)
    for (int which = 0; which < 4 * NUNITS; which++) {
      const Unit *u = &units[which / 4];
      uint8_t x = ends[dtypes & 1][which & 1], y = ends[dtypes >> 1][which >> 1 & 1];
      bool interp = !u->here();
      if (interp && which % 4 && which % 4 != dtypes) continue; /* it takes a second */
      extremes(interp ? open_on(u->interp, 0, 0) : open_here(u, 0), dtypes & 1 ? TG_U8 : TG_I8,
               dtypes >> 1 ? TG_U8 : TG_I8, x, y);
    }
}

/* ---- of bf16 that is no whole number: each sum is rounded as often as it has terms, in any order */
enum { REAL_ROWS = 37, REAL_DEPTH = 530, REAL_COLUMNS = 45 };

static double bf16(double x) {
  float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  bits &= UINT32_C(0xffff0000);
  memcpy(&f, &bits, sizeof f);
  return f;
}

static void real_values(double *p, int n) {
  for (int i = 0; i < n; i++)
    p[i] = bf16(ldexp(1 + draw() / 256., draw() % 12 - 6) * (draw() % 2 ? 1 : -1));
}

static TgContext *open_unit(const Unit *u, bool here) {
  if (here && !u->here()) return NULL;
  return here ? open_here(u, 0) : open_on(u->interp, 0, 0);
}

static void test_accuracy(void **state) {
  (void)state;

  enum { M = REAL_ROWS, K = REAL_DEPTH, N = REAL_COLUMNS };

  static double a[M * K], b[K * N], got[M * N];
  real_values(a, M * K), real_values(b, K * N);
  for (int which = 0; which < 2 * NUNITS; which++) {
    TgContext *ctx = open_unit(&units[which / 2], which % 2);
    if (!ctx) continue;
    TgTensor *y = tg_matmul(tensor(ctx, a, TG_BF16, M, K, false), tensor(ctx, b, TG_BF16, K, N, false),
                            .dtype = TG_F32);
    if (tg_read_f64(y, got, M * N)) fail_msg("%s", tg_errmsg(ctx));
    for (int at = 0; at < M * N; at++) {
      double sum = 0, sizes = 0;
      for (int k = 0; k < K; k++) {
        double term = a[at / N * K + k] * b[k * N + at % N];
        sum += term, sizes += fabs(term);
      }
      if (!(fabs(got[at] - sum) <= sizes * K * ldexp(1, -24)))
        fail_msg("%s: element %d is %.9g, not %.9g", units[which / 2].name, at, got[at], sum);
    }
    tg_close(ctx);
  }
}

/* Row i of a is 1, but for one value; b is 1, but for column 1, which is 0, and 2, which is tiny. */
static void test_not_finite(void **state) {
  (void)state;

  enum { ROWS = 20, DEPTH = 64, COLUMNS = 32 };

  static double a[ROWS * DEPTH], b[DEPTH * COLUMNS], got[ROWS * COLUMNS];
  const double tiny = ldexp(1, -130); /* of bf16, and denormal: a unit may take it for 0 */
  for (int i = 0; i < ROWS * DEPTH; i++)
    a[i] = 1;
  for (int i = 0; i < DEPTH * COLUMNS; i++)
    b[i] = i % COLUMNS == 1 ? 0 : i % COLUMNS == 2 ? tiny : 1;
  a[0 * DEPTH + 5] = INFINITY, a[1 * DEPTH + 63] = -INFINITY, a[2 * DEPTH + 0] = NAN;
  a[3 * DEPTH + 6] = INFINITY, a[3 * DEPTH + 7] = -INFINITY; /* of one word */
  a[4 * DEPTH + 8] = bf16(3e38), a[4 * DEPTH + 9] = bf16(3e38);
  for (int which = 0; which < 2 * NUNITS; which++) {
    TgContext *ctx = open_unit(&units[which / 2], which % 2);
    if (!ctx) continue;
    TgTensor *y = tg_matmul(tensor(ctx, a, TG_BF16, ROWS, DEPTH, false),
                            tensor(ctx, b, TG_BF16, DEPTH, COLUMNS, false), .dtype = TG_F32);
    if (tg_read_f64(y, got, ROWS * COLUMNS)) fail_msg("%s", tg_errmsg(ctx));
    assert_true(got[0 * COLUMNS] == INFINITY && got[1 * COLUMNS] == -INFINITY);
    assert_true(got[2 * COLUMNS] != got[2 * COLUMNS] && got[3 * COLUMNS] != got[3 * COLUMNS]);
    assert_true(got[4 * COLUMNS] == INFINITY && got[5 * COLUMNS] == DEPTH);
    for (int i = 0; i < 4; i++) /* inf times 0 */
      assert_true(got[i * COLUMNS + 1] != got[i * COLUMNS + 1]);
    assert_true(got[5 * COLUMNS + 1] == 0 && fabs(got[5 * COLUMNS + 2]) <= DEPTH * tiny);
    tg_close(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_which),    cmocka_unit_test(test_values),     cmocka_unit_test(test_extremes),
      cmocka_unit_test(test_accuracy), cmocka_unit_test(test_not_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
