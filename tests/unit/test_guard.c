/* test_guard.c: kernels of the user's own that leave their tensors. On the CPU what lies outside is not
 * touched and reads as 0, under any opts; on the interpreter it is an error. What is proved to be inside has
 * no check. */
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *open_on(const char *device) {
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  assert_int_equal(tg_error(ctx), TG_OK);
  return ctx;
}

static const char far_store[] = /* x[i] = 2, i far past the end */
    "r0 = RANGE[0, LOOP](1048576)\np0 = PARAM[f32, 0, 4]\nu2 = INDEX(p0, r0)\nu3 = STORE(u2, 2:f32, r0)\nu4 "
    "= SINK(u3)\n";
static const char shifted[] = /* out[i] = a[i - 3] */
    "r0 = RANGE[0, GLOBAL](32)\np0 = PARAM[f32, 0, 32]\np1 = PARAM[f32, 1, 20]\nu1 = STORE(INDEX(p0, r0), "
    "INDEX(p1, ADD(r0, -3)), r0)\nu2 = SINK(u1)\n";
static const char axes[] = /* out[i][j] = a[i][j + 1]: inside the buffer, outside the axis */
    "r0 = RANGE[0, GLOBAL](3)\nr1 = RANGE[1, GLOBAL](4)\np0 = PARAM[f32, 0, 12](3, 4)\np1 = PARAM[f32, 1, "
    "12](3, 4)\n"
    "u1 = STORE(INDEX(p0, r0, r1), INDEX(p1, r0, ADD(r1, 1)), r0, r1)\nu2 = SINK(u1)\n";
static const char placed[] = /* out[at[i]] = i, at[i] anything */
    "r0 = RANGE[0, LOOP](6)\np0 = PARAM[f32, 0, 4]\np1 = PARAM[i32, 1, 6]\n"
    "u1 = STORE(INDEX(p0, CAST[index](INDEX(p1, r0))), CAST[f32](CAST[i32](r0)), r0)\nu2 = SINK(u1)\n";
static const char inside[] = /* out[i] = a[31 - i] */
    "r0 = RANGE[0, GLOBAL](32)\np0 = PARAM[f32, 0, 32]\np1 = PARAM[f32, 1, 32]\nu1 = STORE(INDEX(p0, r0), "
    "INDEX(p1, ADD(MUL(r0, -1), 31)), r0)\nu2 = SINK(u1)\n";

static TgTensor *counted(TgContext *ctx, int n) {
  return tg_keep(tg_clone(tg_cast(tg_arange(ctx, 1, n + 1), TG_F32)));
}

static void kernel(TgContext *ctx, const char *text, TgTensor **t, int n) {
  if (tg_kernel(ctx, text, t, n)) fail_msg("%s%s", text, tg_errmsg(ctx));
}

static void test_outside(void **state) {
  (void)state;
  for (int plain = 0; plain < 2; plain++) {
    TgContext *ctx = open_on("CPU");
    tg_setting(ctx, "NOOPT", plain);
    float got[32];
    TgTensor *x = counted(ctx, 4);
    kernel(ctx, far_store, &x, 1);
    assert_int_equal(tg_read(x, got, 16), TG_OK);
    for (int i = 0; i < 4; i++)
      assert_true(got[i] == 2);
    TgTensor *two[] = {counted(ctx, 32), counted(ctx, 20)};
    kernel(ctx, shifted, two, 2);
    assert_int_equal(tg_read(two[0], got, 128), TG_OK);
    for (int i = 0; i < 32; i++)
      assert_true(got[i] == (i >= 3 && i < 23 ? i - 2 : 0));
    TgTensor *grid[] = {counted(ctx, 12), counted(ctx, 12)};
    kernel(ctx, axes, grid, 2);
    assert_int_equal(tg_read(grid[0], got, 48), TG_OK);
    for (int i = 0; i < 12; i++)
      assert_true(got[i] == (i % 4 < 3 ? i + 2 : 0));
    const int32_t at[] = {3, -1, 0, INT32_MAX, INT32_MIN, 1};
    TgTensor *some[] = {counted(ctx, 4), tg_from(ctx, at, TG_I32, TG_SHAPE(6))};
    kernel(ctx, placed, some, 2);
    assert_int_equal(tg_read(some[0], got, 16), TG_OK);
    assert_true(got[0] == 2 && got[1] == 5 && got[2] == 3 && got[3] == 0);
    tg_close(ctx);
  }
}

static void test_reported(void **state) { /* a device that checks says so, as ever */
  (void)state;
  TgContext *ctx = open_on("INTERP");
  TgTensor *x = counted(ctx, 4);
  assert_int_not_equal(tg_kernel(ctx, far_store, &x, 1), TG_OK);
  assert_non_null(strstr(tg_errmsg(ctx), "4 elements"));
  tg_clear_error(ctx);
  tg_close(ctx);
}

static void keep_source(const TgKernelText *k, void *user) { snprintf(user, 8192, "%s", k->source); }

static void test_proved(void **state) {
  (void)state;
  char source[8192];
  TgContext *ctx = open_on("CPU");
  tg_setting(ctx, "NOOPT", 1);
  tg_watch_kernels(ctx, keep_source, source);
  TgTensor *t[] = {counted(ctx, 32), counted(ctx, 32)}, *u[] = {t[0], counted(ctx, 20)};
  kernel(ctx, inside, t, 2);
  assert_null(strstr(source, "?"));
  assert_null(strstr(source, "if ("));
  kernel(ctx, shifted, u, 2);
  assert_non_null(strstr(source, "?"));
  tg_close(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_outside), cmocka_unit_test(test_reported),
                                     cmocka_unit_test(test_proved)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
