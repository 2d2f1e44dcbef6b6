/* test_groups.c: sums of products on matrix units that four warps have together, of sm_90a: lists of opts with
 * TC4, for the interpreter and for the emulator, against sums of whole numbers, which are exact in any order.
 * The devices are told that they have such units. test_groups 4096 4096 4096 b "" cuda: the text of a product,
 * here of a turned b by the list that is chosen; costs instead of cuda: what lists cost. */
#define _GNU_SOURCE
#include "tg.h"
#include "engine/engine.h"
#include "runtime/device.h"
#include "tensor/context.h"
#include "uop/matrix.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { HOPPER = 90, HOPPER_SHARED = 227 << 10 };

static TgContext *opened(const char *device) {
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  assert_non_null(c);
  if (tg_error(c)) fail_msg("%s: %s", device, tg_errmsg(c));
  c->devices.at[0]->target.matrices = matrix_rows(MATRIX_CUDA, HOPPER);
  return c;
}

typedef struct Case {
  int m, k, n;
  TgDType dtype;
  bool turned_a, turned_b, relu;
  const char *opts;
} Case;

#define TILES(m, n) "TILE r0 " #m ", TILE r1 " #n ", TILE r2 64, STAGE p1, STAGE p2, TC4 r0 r1, "
#define PIPE(n)     "DOUBLE_BUFFER r2 " #n ", "

static const Case cases[] = {
    {64, 64, 64, TG_BF16, false, false, false, TILES(64, 64) "UPCAST r1 8"},
    {64, 64, 64, TG_F16, false, true, false, TILES(64, 64) "UPCAST r1 8"},
    {64, 128, 64, TG_F16, true, false, false, TILES(64, 64) "UPCAST r1 8"},
    {64, 128, 64, TG_BF16, true, true, true, TILES(64, 64) "UPCAST r1 8"},
    {128, 256, 128, TG_BF16, false, false, false, TILES(128, 128) PIPE(2) "UPCAST r1 16, LOCAL r0 2"},
    {128, 320, 128, TG_F16, false, true, true, TILES(128, 128) PIPE(3) "UPCAST r1 16, LOCAL r0 2"},
    {128, 576, 128, TG_BF16, false, false, true, TILES(128, 128) PIPE(4) "UPCAST r1 16, LOCAL r0 2"},
    {128, 640, 64, TG_BF16, true, false, false, TILES(128, 64) PIPE(4) "UPCAST r0 2, UPCAST r1 8"},
    {100, 320, 130, TG_BF16, false, true, false, TILES(128, 128) PIPE(3) "UPCAST r1 16, LOCAL r0 2"},
    {100, 320, 136, TG_F16, false, false, false, TILES(128, 128) PIPE(4) "UPCAST r1 16, LOCAL r0 2"},
    {64, 128, 256, TG_BF16, false, false, false, TILES(64, 256) PIPE(2) "UPCAST r1 32"},
    {64, 256, 64, TG_BF16, false, false, true, TILES(64, 64) PIPE(2) "UPCAST r1 8, UNROLL r2 4"},
    {64, 256, 128, TG_F16, false, false, false, TILES(64, 128) "UPCAST r1 16, UNROLL r2 2"},
    {64, 128, 64, TG_BF16, false, true, false, TILES(64, 64) PIPE(2) "UPCAST r1 4, LOCAL r1 2"},
    {70, 128, 60, TG_BF16, false, true, false, TILES(128, 64) PIPE(2) "UPCAST r1 4, LOCAL r0 2, LOCAL r1 2"},
    {130, 320, 66, TG_F16, true, true, true, TILES(64, 64) PIPE(3) "UPCAST r1 2, LOCAL r1 4"},
    {64, 128, 128, TG_F16, true, false, true, TILES(64, 128) PIPE(2) "UPCAST r1 8, LOCAL r1 2"},
    {128, 64, 128, TG_BF16, false, false, false, TILES(128, 128) "UPCAST r1 16, LOCAL r0 2"},
    {512, 64, 192, TG_BF16, false, false, true,
     TILES(64, 64) "UPCAST r1 8"}, /* eight rows of blocks together */
    {64, 512, 64, TG_BF16, false, false, false, TILES(64, 64) PIPE(8) "UPCAST r1 8"},
    {64, 704, 64, TG_BF16, false, false, false, TILES(64, 64) PIPE(5) "UPCAST r1 8"},
};

static int element(int i, int salt) { return (int)((unsigned)(i * 7919 + salt) % 1009u % 9u) - 4; }

static TgTensor *operand(TgContext *c, const Case *t, int rows, int columns, bool turned, int salt) {
  int n = rows * columns;
  double *p = malloc((size_t)n * sizeof *p);
  assert_non_null(p);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      p[turned ? j * rows + i : i * columns + j] = element(i * columns + j, salt);
  TgTensor *x = tg_from_f64(c, p, t->dtype, TG_SHAPE(turned ? columns : rows, turned ? rows : columns));
  free(p);
  return turned ? tg_transpose(x, 0, 1) : x;
}

static TgTensor *product(TgContext *c, const Case *t) {
  TgTensor *y = tg_matmul(operand(c, t, t->m, t->k, t->turned_a, 1),
                          operand(c, t, t->k, t->n, t->turned_b, 2), .dtype = TG_F32);
  return t->relu ? tg_relu(tg_add(y, tg_from_text(c, "1"))) : y;
}

static void check(const char *device, const Case *t) {
  setenv("TG_OPTS", t->opts, 1);
  TgContext *c = opened(device);
  size_t n = (size_t)t->m * (size_t)t->n;
  float *got = malloc(n * sizeof *got);
  assert_non_null(got);
  if (tg_read(product(c, t), got, n * sizeof *got))
    fail_msg("%s: case %d, %d x %d x %d, %s: %s", device, (int)(t - cases), t->m, t->k, t->n, t->opts,
             tg_errmsg(c));
  assert_int_equal(tg_counters(c).fallbacks, 0);
  for (int i = 0; i < t->m; i++)
    for (int j = 0; j < t->n; j++) {
      int want = t->relu ? 1 : 0;
      for (int k = 0; k < t->k; k++)
        want += element(i * t->k + k, 1) * element(k * t->n + j, 2);
      if (t->relu && want < 0) want = 0;
      if (got[i * t->n + j] != (float)want)
        fail_msg("%s: %d x %d x %d, %s: [%d][%d] is %g, not %d", device, t->m, t->k, t->n, t->opts, i, j,
                 (double)got[i * t->n + j], want);
    }
  free(got);
  tg_close(c);
  unsetenv("TG_OPTS");
}

static void test_interpreted(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check("INTERP:CUDA", &cases[i]);
}

/* What such a unit cannot do is said. */
static void test_refused(void **state) {
  (void)state;

  static const struct {
    int k;
    const char *opts, *why;
  } lists[] = {{64, TILES(64, 64) "UPCAST r1 4, LOCAL r1 2", "64 columns"},
               {64, "TILE r0 64, TILE r1 64, TILE r2 64, TC4 r0 r1", "copies that lie"},
               {64, "TILE r0 64, TILE r1 64, TILE r2 32, STAGE p1, STAGE p2, TC4 r0 r1", "no lines of 64"},
               {96, TILES(64, 64) "UPCAST r1 8", "no lines of 64"},
               {128, TILES(64, 64) PIPE(3) "UPCAST r1 8", "so many blocks"},
               {128, TILES(64, 64) PIPE(9) "UPCAST r1 8", "to eight"}};

  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    Case t = {64, lists[i].k, 64, TG_BF16, false, false, false, lists[i].opts};
    float got[64 * 64];
    setenv("TG_OPTS", t.opts, 1);
    TgContext *c = opened("INTERP:CUDA");
    assert_int_not_equal(tg_read(product(c, &t), got, sizeof got), TG_OK);
    if (!strstr(tg_errmsg(c), lists[i].why)) fail_msg("%s: %s", t.opts, tg_errmsg(c));
    tg_close(c);
    unsetenv("TG_OPTS");
  }
}

/* In several orders of threads and of what is given. */
static void test_emulated(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char order[2] = {(char)('1' + i % 5), 0};
    setenv("TG_EMU", order, 1);
    check("CUDA", &cases[i]);
  }
  setenv("TG_EMU", "1", 1);
}

/* What is made of a product of m x k by k x n in bf16, by a list of opts or the one that is chosen: text, or
 * what lists cost. turned: a, b, ab or nothing. */
static const char *made(TgContext *c, int m, int k, int n, const char *turned, const char *opts,
                        const char *emit) {
  char kernel[1024];
  bool a = strchr(turned, 'a'), b = strchr(turned, 'b');
  snprintf(kernel, sizeof kernel,
           "p0 = PARAM[bf16, 0, %d](%d, %d)\np1 = PARAM[bf16, 1, %d](%d, %d)\n"
           "p2 = PARAM[bf16, 2, %d](%d, %d)\nr0 = RANGE[0, GLOBAL](%d)\nr1 = RANGE[1, GLOBAL](%d)\n"
           "r2 = RANGE[2, REDUCE](%d)\ns = SINK(STORE(INDEX(p0, r0, r1), CAST[bf16](REDUCE[ADD](CAST[f32]("
           "INDEX(p1, %s)) * CAST[f32](INDEX(p2, %s)), r2)), r0, r1))\n",
           m * n, m, n, m * k, a ? k : m, a ? m : k, k * n, b ? n : k, b ? k : n, m, n, k,
           a ? "r2, r0" : "r0, r2", b ? "r1, r2" : "r2, r1");
  return tg_opt(c, kernel, .emit = emit, .opts = *opts ? opts : NULL);
}

/* A machine with as much of everything as an H100. */
static TgContext *hopper(void) {
  TgContext *c = opened("NULL:CUDA");
  Target *t = &c->devices.at[0]->target;
  t->cores = t->streams = 132;
  t->local_most = HOPPER_SHARED;
  t->mhz = 1755;
  t->cache[LEVEL_L3] = 50 << 20;
  return c;
}

static int printed(char **arg) {
  TgContext *c = hopper();
  const char *text = made(c, atoi(arg[0]), atoi(arg[1]), atoi(arg[2]), arg[3], arg[4], arg[5]);
  printf("%s\n", text ? text : tg_errmsg(c));
  tg_close(c);
  return !text;
}

/* A batch, and a matrix by itself, turned: two copies of one buffer. */
static void test_batch_and_gram(void **state) {
  (void)state;

  enum { BATCH = 2, N = 64, DEPTH = 192, ROWS = 512 };

  static const char *const opts[] = {
      "TILE r0 1, TILE r1 64, TILE r2 64, TILE r3 64, STAGE p1, STAGE p2, TC4 r1 r2, " PIPE(3) "UPCAST r2 8",
      "TILE r0 64, TILE r1 64, TILE r2 64, STAGE p1 r0, STAGE p1 r1, TC4 r0 r1, " PIPE(2) "UPCAST r1 8"};
  static const char *const devices[] = {"INTERP:CUDA", "CUDA"};
  setenv("TG_EMU", "1", 1);
  for (int i = 0; i < 4; i++) {
    bool gram = i & 1;
    int rows = gram ? 128 : ROWS, batch = gram ? 1 : BATCH;
    char list[300];
    snprintf(list, sizeof list, "%s", opts[gram]);
    if (!gram) memcpy(strstr(list, "BUFFER r2"), "BUFFER r3", 9);
    setenv("TG_OPTS", list, 1);
    TgContext *c = opened(devices[i / 2]);
    double *x = malloc(sizeof *x * (size_t)(batch * rows * DEPTH)),
           *y = malloc(sizeof *y * BATCH * DEPTH * N);
    float *got = malloc(sizeof *got * (size_t)(batch * rows * rows));
    assert_true(x && y && got);
    for (int e = 0; e < batch * rows * DEPTH; e++)
      x[e] = element(e, 1);
    for (int e = 0; e < BATCH * DEPTH * N; e++)
      y[e] = element(e, 2);
    TgTensor *a = gram ? tg_from_f64(c, x, TG_BF16, TG_SHAPE(rows, DEPTH))
                       : tg_from_f64(c, x, TG_BF16, TG_SHAPE(BATCH, rows, DEPTH));
    TgTensor *b = gram ? tg_transpose(a, 0, 1) : tg_from_f64(c, y, TG_BF16, TG_SHAPE(BATCH, DEPTH, N));
    int columns = gram ? rows : N;
    if (tg_read(tg_matmul(a, b, .dtype = TG_F32), got, sizeof *got * (size_t)(batch * rows * columns)))
      fail_msg("%s: %s: %s", devices[i / 2], list, tg_errmsg(c));
    for (int e = 0; e < batch * rows * columns; e++) {
      int at = e / (rows * columns), row = e / columns % rows, column = e % columns;
      double want = 0;
      for (int k = 0; k < DEPTH; k++)
        want += x[(at * rows + row) * DEPTH + k] *
                (gram ? x[column * DEPTH + k] : y[(at * DEPTH + k) * N + column]);
      if (got[e] != (float)want)
        fail_msg("%s: %s: [%d] is %g, not %g", devices[i / 2], list, e, (double)got[e], want);
    }
    free(x), free(y), free(got);
    tg_close(c);
    unsetenv("TG_OPTS");
  }
}

/* Large products are given to such units, small ones are not, and none is for a GPU that has none. */
static void test_chosen(void **state) {
  (void)state;

  static const struct {
    int size;
    const char *turned, *has;
  } products[] = {{4096, "", "tg_mma_m64n8k16_bf16_f32_b("},
                  {4096, "b", "tg_mma_m64n8k16_bf16_f32("},
                  {4096, "a", "tg_mma_m64n8k16_bf16_f32_ab("},
                  {4096, "ab", "tg_mma_m64n8k16_bf16_f32_a("},
                  {256, "", "tg_mma_m16n8k16_bf16_f32(&"}};

  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    int n = products[i].size;
    TgContext *c = hopper(),
              *plain = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:CUDA"});
    const char *text = made(c, n, n, n, products[i].turned, "", "cuda");
    if (!text || !strstr(text, products[i].has))
      fail_msg("%d %s: %s", n, products[i].turned, text ? text : tg_errmsg(c));
    text = made(plain, n, n, n, products[i].turned, "", "cuda");
    assert_true(text && !strstr(text, "tg_mma_m64n8k16_bf16_f32"));
    tg_close(c), tg_close(plain);
  }
}

int main(int argc, char **argv) {
  if (argc == 7) return printed(argv + 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_interpreted), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_chosen), cmocka_unit_test(test_batch_and_gram),
                                     cmocka_unit_test(test_emulated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
