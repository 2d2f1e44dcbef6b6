/* test_cuts.c: a kernel that cannot be lowered ends no program. Reductions that share a range, though one
 * stands in a loop where the other cannot be, get loops of their own; and should a kernel be refused all the
 * same, its graph is scheduled again with fewer stages in a kernel, which is counted. */
#include "tensor/context.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

static const char *const devices[] = {"CPU", "INTERP", "INTERP:C", "INTERP:CUDA", "INTERP:METAL"};

static TgContext *open_on(const char *device, const char *noopt) {
  setenv("TG_NOOPT", noopt, 1);
  unsetenv("TG_SPEC"); /* where graphs are verified a refusal is an error, as it is a defect of ours */
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .threads = 1});
  unsetenv("TG_NOOPT");
  assert_int_equal(tg_error(ctx), TG_OK);
  return ctx;
}

/* Softmax of rows, and the mean of what it gives: three reductions and more, which join. */
static TgTensor *rows(TgContext *ctx) {
  TgTensor *x = tg_sin(tg_reshape(tg_arange(ctx, 0, 24 * 40, .dtype = TG_F32), TG_SHAPE(24, 40)));
  return tg_mean(tg_square(tg_softmax(x)), .axis = TG_AXES(1));
}

static void test_refused(void **state) {
  (void)state;
  float want[24], got[24];
  for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
    TgContext *ctx = open_on(devices[d], "0");
    TG_SCOPE(ctx) assert_int_equal(tg_read(rows(ctx), want, sizeof want), TG_OK);
    assert_int_equal(tg_counters(ctx).cuts, 0);
    tg_collect(ctx), tg_cache_clear(ctx); /* nothing is found computed, or planned */
    ctx->passes.refuse_over = 1;
    assert_int_equal(tg_read(rows(ctx), got, sizeof got), TG_OK);
    if (d) assert_true(tg_counters(ctx).cuts > 0); /* of the CPU that is here no plan is known */
    for (int i = 0; i < 24; i++)
      assert_true(fabsf(want[i] - got[i]) < 1e-6f);
    tg_close(ctx);
  }
}

/* What no cut can help is an error, and the context goes on. */
static void test_hopeless(void **state) {
  (void)state;
  float v[6] = {1, 2, 3, 4, 5, 6}, sum[2];
  TgContext *ctx = open_on("INTERP", "0");
  ctx->passes.refuse_over = -1;
  TgTensor *x = tg_keep(tg_sum(tg_from(ctx, v, TG_F32, TG_SHAPE(2, 3)), .axis = TG_AXES(1)));
  assert_int_equal(tg_read(x, sum, sizeof sum), TG_ERR_INTERNAL);
  assert_non_null(strstr(tg_errmsg(ctx), "could not be lowered"));
  assert_int_equal(tg_counters(ctx).cuts, 2);
  tg_clear_error(ctx);
  ctx->passes.refuse_over = 0;
  assert_int_equal(tg_read(x, sum, sizeof sum), TG_OK);
  assert_true(sum[0] == 6 && sum[1] == 15);
  tg_close(ctx);
}

/* The gradient of a padded edge counts how often an element was repeated: sums over one range, of which one
 * stands in the loop over a column and the other in a sum of its own. */
static void test_shared_range(void **state) {
  (void)state;
  for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
    for (int noopt = 0; noopt < 2; noopt++) {
      TgContext *ctx = open_on(devices[d], noopt ? "1" : "0");
      TgTensor *x = tg_requires_grad(tg_ones(ctx, TG_SHAPE(3, 3, 3, 3)), true);
      int64_t lo[4] = {0, 0, 2, -1}, hi[4] = {0, 0, -1, 2};
      double g[81], all = 0;
      tg_backward(tg_sum(tg_pad_mode(x, lo, hi, TG_PAD_REPLICATE)));
      assert_int_equal(tg_read_f64(tg_grad(x), g, 81), TG_OK);
      for (int i = 0; i < 81; i++) {
        static const double row[] = {3, 1, 0}, column[] = {0, 1, 3};
        assert_true(g[i] == row[i / 3 % 3] * column[i % 3]);
        all += g[i];
      }
      assert_true(all == 9 * 4 * 4); /* each element that is left */
      assert_int_equal(tg_counters(ctx).cuts + tg_counters(ctx).fallbacks, 0);
      tg_close(ctx);
    }
}

/* A list that the planner chooses is one that a kernel can have: its sums have room in local memory, of 8
 * bytes too. Else the kernel gets plain loops, which take a hundred times as long. */
static void test_lists_applied(void **state) {
  static const TgDType dtypes[] = {TG_F32, TG_F64, TG_I64};
  (void)state;
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
    for (int64_t n = 64; n <= 512; n += 64)
      for (int turned = 0; turned < 2; turned++) {
        TgContext *ctx = open_on("NULL:C", "0");
        TgTensor *x = tg_rand(ctx, TG_SHAPE(n, n)), *y = tg_cast(tg_rand(ctx, TG_SHAPE(n, n)), dtypes[d]);
        assert_int_equal(tg_realize(x) | tg_realize(y), TG_OK);
        TgTensor *z = tg_relu(tg_matmul(tg_cast(x, dtypes[d]), y));
        assert_int_equal(tg_realize(tg_contiguous(turned ? tg_transpose(z, 0, 1) : z)), TG_OK);
        if (tg_counters(ctx).fallbacks)
          fail_msg("%s, %lld, %d: %s", tg_dtype_name(dtypes[d]), (long long)n, turned, ctx->passes.fallback);
        tg_close(ctx);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_hopeless),
                                     cmocka_unit_test(test_shared_range),
                                     cmocka_unit_test(test_lists_applied)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
