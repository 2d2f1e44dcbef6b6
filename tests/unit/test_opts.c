/* test_opts.c: any list of opts gives the same numbers. Random lists, on the reference interpreter as each
 * target lowers them, against plain loops. What an opt may not do is refused with a reason; it never changes
 * a result. */
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

static unsigned seed = 12345;

static int draw(int n) { return seed = seed * 1664525u + 1013904223u, (int)((seed >> 8) % (unsigned)n); }

static TgTensor *input(TgContext *ctx, unsigned s, int nd, const int64_t *d) {
  int64_t n = 1;
  for (int i = 0; i < nd; i++)
    n *= d[i];
  float *p = malloc(sizeof *p * (size_t)n);
  for (int64_t i = 0; i < n; i++)
    s = s * 1664525u + 1013904223u, p[i] = (float)(s >> 8) / 8388608.f - 1;
  TgTensor *t = tg_from(ctx, p, TG_F32, nd, d);
  free(p);
  return t;
}

enum { NPROGRAM = 9 };

static TgTensor *program(TgContext *ctx, int which) {
  switch (which) {
  case 0: return tg_matmul(input(ctx, 1, TG_SHAPE(7, 13)), input(ctx, 2, TG_SHAPE(13, 21)));
  case 1: return tg_matmul(input(ctx, 1, TG_SHAPE(2, 8, 16)), input(ctx, 2, TG_SHAPE(16, 32)));
  case 2: return tg_softmax(input(ctx, 3, TG_SHAPE(5, 37)));
  case 3: return tg_layer_norm(input(ctx, 4, TG_SHAPE(3, 4, 40)));
  case 4:
    return tg_conv2d(input(ctx, 5, TG_SHAPE(2, 3, 8, 9)), input(ctx, 6, TG_SHAPE(4, 3, 3, 3)),
                     .padding = TG_SIZES(1, 1));
  case 5: return tg_sum(input(ctx, 7, TG_SHAPE(6, 35)), .axis = TG_AXES(0));
  case 6: return tg_max(input(ctx, 8, TG_SHAPE(6, 35)), .axis = TG_AXES(1));
  case 7: return tg_contiguous(tg_permute(input(ctx, 9, TG_SHAPE(9, 20)), TG_SHAPE(1, 0)));
  default: return tg_pad(tg_exp(input(ctx, 10, TG_SHAPE(5, 19))), (int64_t[]){1, 3}, (int64_t[]){2, 0});
  }
}

static void random_list(char *s, size_t size, bool gpu) {
  const char *const ops[] = {
      "TILE", "UPCAST", "VEC", "UNROLL", "GROUP", gpu ? "LOCAL" : "THREAD", gpu ? "LOCAL" : "UPCAST", "SWAP"};
  static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 32, 50};
  *s = 0;
  for (int n = 1 + draw(3); n > 0; n--) {
    int op = draw(8), at = (int)strlen(s);
    snprintf(s + at, size - (size_t)at, "%s%s r%d %s%d", at ? ", " : "", ops[op], draw(5), op == 7 ? "r" : "",
             op == 7 ? draw(5) : sizes[draw(10)]);
  }
}

static int64_t numbers(const char *dev, const char *opts, int which, float *out, bool *refused) {
  setenv("TG_DEV", dev, 1);
  if (opts)
    setenv("TG_OPTS", opts, 1);
  else
    unsetenv("TG_OPTS"), setenv("TG_NOOPT", "1", 1);
  TgContext *ctx = tg_open(NULL);
  unsetenv("TG_NOOPT"), unsetenv("TG_OPTS");
  assert_non_null(ctx);
  TgTensor *t = program(ctx, which);
  int64_t n = t ? tg_numel(t) : 0;
  TgStatus s = t ? tg_read(t, out, (size_t)n * sizeof *out) : TG_ERR_STATE;
  *refused = s == TG_ERR_VALUE && opts && !strncmp(tg_errmsg(ctx), "opts: ", 6);
  if (s && !*refused)
    fail_msg("program %d on %s, opts \"%s\": %s", which, dev, opts ? opts : "", tg_errmsg(ctx));
  tg_close(ctx);
  return n;
}

static void lists_on(const char *dev, int rounds) {
  float want[4096], got[4096];
  bool refused;
  int taken = 0, all = 0;
  for (int which = 0; which < NPROGRAM; which++) {
    int64_t n = numbers("INTERP", NULL, which, want, &refused);
    assert_in_range(n, 1, 4096);
    for (int i = 0; i < rounds; i++, all++) {
      char list[256];
      random_list(list, sizeof list, !strcmp(dev, "INTERP:CUDA"));
      numbers(dev, list, which, got, &refused);
      if (refused) continue;
      taken++;
      for (int64_t k = 0; k < n; k++)
        if (!(fabsf(got[k] - want[k]) <= 1e-5f * fmaxf(1, fabsf(want[k]))))
          fail_msg("program %d on %s, opts \"%s\": element %d is %.9g, not %.9g", which, dev, list, (int)k,
                   got[k], want[k]);
    }
  }
  if (taken * 10 < all) fail_msg("%s: only %d of %d lists were taken", dev, taken, all);
}

static void test_lists_for_c(void **state) {
  (void)state;
  lists_on("INTERP:C", 100);
}

static void test_lists_for_cuda(void **state) {
  (void)state;
  lists_on("INTERP:CUDA", 100);
}

static void test_lists_refused(void **state) {
  (void)state;

  static const struct {
    const char *list, *says;
  } wrong[] = {{"WIDEN r0 4", "none of"},
               {"VEC 0 4", "needs a range"},
               {"VEC r0", "needs a range"},
               {"VEC r0 0", "needs a range"},
               {"SWAP r0 1", "needs two ranges"},
               {"VEC r40 4", "no such loop"},
               {"UNROLL r0 4", "not a loop of a reduction"},
               {"LOCAL r0 4", "no blocks of threads"}};

  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    setenv("TG_DEV", "INTERP:C", 1), setenv("TG_OPTS", wrong[i].list, 1);
    TgContext *ctx = tg_open(NULL);
    unsetenv("TG_OPTS");
    float got[4096];
    TgTensor *t = program(ctx, 0);
    assert_int_equal(tg_read(t, got, (size_t)tg_numel(t) * 4), TG_ERR_VALUE);
    if (!strstr(tg_errmsg(ctx), wrong[i].says)) fail_msg("\"%s\": %s", wrong[i].list, tg_errmsg(ctx));
    tg_close(ctx);
  }
}

int main(void) {
  if (getenv("SEED")) seed = (unsigned)atoi(getenv("SEED"));
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists_for_c),
                                     cmocka_unit_test(test_lists_for_cuda),
                                     cmocka_unit_test(test_lists_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
