/* test_origin.c: where operations come from. The macros of tg_origin.h name this file and the line of the call;
 * kernels, traces, launches and errors repeat it. Lines are taken by __LINE__ here, never from the library. */
#define _GNU_SOURCE
#undef TG_NO_ORIGIN
#include "tg.h"
#include "tg_nn.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const float numbers[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static TgTensor *square(TgContext *ctx) { return tg_from(ctx, numbers, TG_F32, TG_SHAPE(4, 4)); }

static const char *place(const char *op, int line) {
  static char text[8][80];
  static int at;
  char *to = text[at++ % 8];
  snprintf(to, sizeof text[0], "%s (test_origin.c:%d)", op, line);
  return to;
}

static TgContext *opened(void) {
  TgContext *ctx = tg_open_with(.device = "INTERP", .seed = 1);
  assert_int_equal(tg_error(ctx), TG_OK);
  return ctx;
}

static void test_calls(void **state) {
  (void)state;
  TgContext *ctx = opened();
  TgTensor *a = square(ctx);
  TgTensor *b = tg_relu(a);
  assert_string_equal(tg_origin_of(b), place("relu", __LINE__ - 1));
  TgTensor *c = tg_sum(tg_mul(b, tg_exp(a)), .axis = TG_AXES(0));
  assert_string_equal(tg_origin_of(c), place("sum", __LINE__ - 1));
  TgTensor *d = tg_cat(TG_TENSORS(a, tg_neg(b)), 0);
  assert_string_equal(tg_origin_of(d), place("cat", __LINE__ - 1));
  d = tg_cat((TgTensor *[]){a, b}, 2, 0); /* a comma that is no macro's */
  assert_string_equal(tg_origin_of(d), place("cat", __LINE__ - 1));
  TgTensor *e = tg_layer_norm(a, .weight = tg_reshape(tg_select(a, 0, 1), TG_SHAPE(4)));
  assert_string_equal(tg_origin_of(e), place("layer_norm", __LINE__ - 1));
  TgTensor *f = tg_bool(a); /* a name that is a macro, too */
  assert_string_equal(tg_origin_of(f), place("bool", __LINE__ - 1));
  assert_string_equal(tg_origin_of(NULL), "");
  assert_string_equal(tg_origin_of((tg_tanh)(a)), ""); /* the function itself */
  TgTensor *(*pointer)(TgTensor *) = tg_tanh;
  assert_non_null(pointer(a));
  assert_int_equal(tg_error(ctx), TG_OK);
  tg_close(ctx);
}

static void said(const char *text, void *user) { strncat(user, text, 3999 - strlen(user)); }

/* TG_DEBUG=1 tells once of which operations a kernel is made. */
static void test_made(void **state) {
  (void)state;
  char log[4000] = "", want[200];
  setenv("TG_DEBUG", "1", 1);
  TgContext *ctx = tg_open_with(.device = "INTERP", .log = said, .log_user = log);
  unsetenv("TG_DEBUG");
  for (int i = 0; i < 2; i++)
    assert_int_equal(tg_realize(tg_relu(tg_add_scalar(square(ctx), 1))), TG_OK);
  int line = __LINE__ - 1;
  snprintf(want, sizeof want, "INTERP e_4_4: %s", place("add_scalar", line));
  const char *first = strstr(log, want);
  if (!first) fail_msg("no '%s' in:\n%s", want, log);
  assert_null(strstr(first + 1, want));
  tg_close(ctx);
}

/* An error has the place of its own call, whichever argument is evaluated first, and none of a call before it. */
static void test_nested_errors(void **state) {
  (void)state;
  TgContext *ctx = opened();
  TgTensor *x = square(ctx);
  assert_null(tg_matmul(x, tg_exp(tg_neg(tg_full(ctx, TG_SHAPE(3, 3), 1)))));
  assert_non_null(strstr(tg_errmsg(ctx), place("in matmul", __LINE__ - 1)));
  tg_clear_error(ctx);
  assert_null(tg_add(x, tg_reshape(tg_exp(x), TG_SHAPE(5))));
  assert_non_null(strstr(tg_errmsg(ctx), place("in reshape", __LINE__ - 1)));
  tg_clear_error(ctx);
  assert_non_null(tg_add(tg_exp(x), tg_cat(TG_TENSORS(tg_neg(x)), 0)));
  assert_null((tg_reshape)(x, TG_SHAPE(5)));
  assert_null(strstr(tg_errmsg(ctx), "test_origin.c"));
  tg_close(ctx);
}

/* What options say is not spoilt by calls within them. */
static void test_options(void **state) {
  (void)state;
  TgContext *ctx = opened();
  TgTensor *x = square(ctx);
  float got[4], want[4];
  TgTensor *one = tg_var(tg_mul(x, x), .axis = TG_AXES(1), .correction = 0);
  TgTensor *two = tg_var_opt((tg_mul)(x, x), &TG_WITH(TgVarOptions, .axis = TG_AXES(1), .correction = 0));
  assert_int_equal(tg_read(one, got, sizeof got), TG_OK);
  assert_int_equal(tg_read(two, want, sizeof want), TG_OK);
  assert_memory_equal(got, want, sizeof got);
  tg_close(ctx);
}

typedef struct Seen {
  char text[8][400];
  int n;
} Seen;

static void launch_seen(const TgLaunch *l, void *user) {
  Seen *s = user;
  if (s->n < 8) snprintf(s->text[s->n++], sizeof s->text[0], "%s", l->origin);
}

static void test_kernels(void **state) {
  (void)state;
  TgContext *ctx = opened();
  Seen seen = {.n = 0};
  TgTensor *a = square(ctx);
  TgTensor *p = tg_matmul(a, a);
  int line = __LINE__ - 1;
  TgTensor *r = tg_relu(p);
  assert_int_equal(tg_schedule(&r, 1, launch_seen, &seen), 1);
  char want[200];
  snprintf(want, sizeof want, "%s, %s", place("matmul", line), place("relu", line + 2));
  assert_string_equal(seen.text[0], want);
  tg_watch_launches(ctx, launch_seen, &seen); /* what runs says the same, a plan from the cache too */
  assert_int_equal(tg_realize(r), TG_OK);
  assert_int_equal(seen.n, 2);
  assert_string_equal(seen.text[1], want);
  tg_close(ctx);
}

/* A long scan is several kernels that the scheduler makes of it, and what reads it is rebuilt: all are still
 * what was asked for, and no f64 in them is anybody's mistake. */
static void test_scan_in_parts(void **state) {
  (void)state;
  TgContext *ctx = opened();
  Seen seen = {.n = 0};
  TgTensor *x = tg_contiguous(tg_full(ctx, TG_SHAPE(30000), 1, .dtype = TG_F32));
  assert_int_equal(tg_realize(x), TG_OK);
  TgTensor *sum = tg_cumsum(x, 0), *y = tg_exp(sum);
  int line = __LINE__ - 1;
  assert_true(tg_schedule(&y, 1, launch_seen, &seen) >= 3);
  for (int i = 0; i < seen.n; i++)
    assert_string_equal(seen.text[i], i < seen.n - 1 ? place("cumsum", line) : place("exp", line));
  assert_null(strstr(tg_explain(&y, 1), "f64"));
  TgTensor *wide = tg_cast(x, TG_F64), *z = tg_cumsum(wide, 0);
  assert_non_null(strstr(tg_explain(&z, 1), "f64"));
  tg_close(ctx);
}

/* Equal operations of two places are one node, which keeps its identity and the first place. */
static void test_one_node(void **state) {
  (void)state;
  TgContext *ctx = opened();
  Seen seen = {.n = 0};
  tg_setting(ctx, "ORIGIN", 1);
  TgTensor *a = square(ctx), *x = tg_exp(a);
  int line = __LINE__ - 1;
  TgTensor *y = tg_exp(a);
  TgTensor *both[] = {x, y};
  assert_string_equal(tg_origin_of(x), place("exp", line));
  assert_string_equal(tg_origin_of(y), place("exp", line));
  assert_true(tg_schedule(both, 2, launch_seen, &seen) >= 1);
  assert_string_equal(seen.text[0], place("exp", line));
  tg_close(ctx);
}

/* Handles that ended are remembered where somebody asks; gradients say what they are of. */
static void test_asked(void **state) {
  (void)state;
  TgContext *ctx = opened();
  assert_int_equal(tg_setting(ctx, "ORIGIN", 1), 0);
  assert_int_equal(tg_setting(ctx, "ORIGIN", -1), 1);
  TgTensor *a = tg_requires_grad(square(ctx), true), *s = NULL;
  int line = 0;
  TG_SCOPE(ctx) {
    TgTensor *h = tg_tanh(a);
    line = __LINE__ - 1;
    s = tg_keep(tg_sum(h));
  }
  Seen seen = {.n = 0};
  assert_int_equal(tg_schedule(&s, 1, launch_seen, &seen), 1);
  assert_non_null(strstr(seen.text[0], place("tanh", line)));
  assert_int_equal(tg_backward(s), TG_OK);
  TgTensor *g = tg_grad(a);
  seen.n = 0;
  assert_true(tg_schedule(&g, 1, launch_seen, &seen) >= 1);
  char want[100];
  snprintf(want, sizeof want, "gradient of %s", place("tanh", line));
  if (!strstr(seen.text[0], want)) fail_msg("%s is not in %s", want, seen.text[0]);
  assert_int_equal(tg_collect(ctx), TG_OK); /* nodes end, and what is known of them */
  tg_release(s);
  assert_int_equal(tg_collect(ctx), TG_OK);
  tg_close(ctx);
}

static void test_names(void **state) {
  (void)state;
  TgContext *ctx = opened();
  TgTensor *a = square(ctx);
  TgLinear l = tg_linear_new(ctx, 4, 3, true);
  assert_int_equal(tg_name_begin(ctx, "encoder"), TG_OK);
  TgTensor *y = tg_linear_run(&l, a);
  char want[100];
  snprintf(want, sizeof want, "encoder/Linear/%s", place("linear", __LINE__ - 2));
  assert_string_equal(tg_origin_of(y), want);
  assert_int_equal(tg_name_end(ctx), TG_OK);
  TgTensor *z = (tg_neg)(a);
  assert_string_equal(tg_origin_of(z), "");
  assert_int_equal(tg_name_end(ctx), TG_ERR_STATE);
  tg_linear_free(&l);
  tg_close(ctx);
}

static void test_errors(void **state) {
  (void)state;
  TgContext *ctx = opened();
  TgTensor *a = square(ctx), *b = tg_from(ctx, numbers, TG_F32, TG_SHAPE(3, 5));
  char want[100];
  assert_null(tg_matmul(a, b));
  snprintf(want, sizeof want, "; in %s", place("matmul", __LINE__ - 1));
  if (!strstr(tg_errmsg(ctx), want)) fail_msg("%s: no %s", tg_errmsg(ctx), want);
  tg_clear_error(ctx);
  assert_null(tg_cross_entropy(a, b)); /* the call of the program, not what it calls */
  snprintf(want, sizeof want, "; in %s", place("cross_entropy", __LINE__ - 1));
  if (!strstr(tg_errmsg(ctx), want)) fail_msg("%s: no %s", tg_errmsg(ctx), want);
  tg_clear_error(ctx);
  assert_non_null(tg_add(a, a));
  assert_null((tg_add)(a, b)); /* a plain call says nothing of another one's line */
  assert_null(strstr(tg_errmsg(ctx), "; in "));
  tg_close(ctx);
}

/* A trace has the origins of its kernels. */
static void test_trace(void **state) {
  (void)state;
  char path[] = "/tmp/tg-origin-test-XXXXXX", text[20000] = "", want[100];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  TgContext *ctx = opened();
  assert_int_equal(tg_profile_start(ctx, path), TG_OK);
  assert_int_equal(tg_realize(tg_exp(square(ctx))), TG_OK);
  snprintf(want, sizeof want, "\"origin\":\"%s\"", place("exp", __LINE__ - 1));
  assert_int_equal(tg_profile_stop(ctx), TG_OK);
  tg_close(ctx);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  assert_true(fread(text, 1, sizeof text - 1, f) > 0);
  fclose(f), unlink(path);
  if (!strstr(text, want)) fail_msg("no %s in %s", want, text);
}

/* A text of the user's own, hostile or long. */
static void test_own(void **state) {
  (void)state;
  TgContext *ctx = opened();
  TgTensor *t = (tg_neg)(square(ctx));
  assert_ptr_equal(tg_origin(t, "loss (/a/b/model.py:7)"), t);
  assert_string_equal(tg_origin_of(t), "loss (model.py:7)");
  tg_origin(t, "other (x.py:1)"); /* it has one */
  assert_string_equal(tg_origin_of(t), "loss (model.py:7)");
  assert_null(tg_origin(NULL, "x"));
  char name[5000];
  memset(name, '<', sizeof name - 1);
  name[sizeof name - 1] = 0;
  for (int i = 0; i < 3; i++)
    assert_int_equal(tg_name_begin(ctx, i == 1 ? NULL : name), TG_OK);
  assert_true(strlen(tg_origin_of((tg_exp)(t))) < 1000);
  tg_close(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls),   cmocka_unit_test(test_nested_errors),
                                     cmocka_unit_test(test_made),    cmocka_unit_test(test_options),
                                     cmocka_unit_test(test_kernels), cmocka_unit_test(test_one_node),
                                     cmocka_unit_test(test_asked),   cmocka_unit_test(test_names),
                                     cmocka_unit_test(test_errors),  cmocka_unit_test(test_own),
                                     cmocka_unit_test(test_trace),   cmocka_unit_test(test_scan_in_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
