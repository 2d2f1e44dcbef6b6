/* test_bisect.c: `tg bisect`. This program is also what is bisected: run with a word, it ends with 1 where a measure of
 * its kernels says so, which stands for a wrong result. What is to be found is known from the library's counters. */
#define _GNU_SOURCE
#undef TG_NO_ORIGIN
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static TgTensor *value(TgContext *ctx) {
  TgTensor *a = tg_from_f64(ctx, (double[]){1, 2, 3, 4, 5, 6}, TG_F32, TG_SHAPE(2, 3));
  return tg_sum(tg_mul(tg_softmax(tg_matmul(a, tg_transpose(a, 0, 1))), tg_exp(tg_sum(a))));
}

/* Wrong where the rule fires that makes r0 of (r0 + 0) % 8, which is not the first that fires. */
static bool folds(TgContext *ctx) {
  const char *text =
      tg_opt(ctx, "r0 = RANGE[0, LOOP](8)\nu1 = ADD(r0, 0)\nu2 = MUL(u1, 1)\nu3 = FLOORMOD(u2, 8)\n",
             .pass = "initial symbolic");
  return text && !strstr(text, "FLOORMOD");
}

/* Wrong where a kernel with a sum gets an opt that makes vectors or tiles of its columns. */
static void opts_seen(const TgKernelText *k, void *user) {
  bool *wrong = user;
  *wrong |= k->name[0] == 'r' && k->opts && strstr(k->opts, "VEC ");
}

/* Wrong where a kernel computes the product and the exponentials of the softmax. */
static void launch_seen(const TgLaunch *l, void *user) {
  bool *wrong = user;
  *wrong |= l->origin && strstr(l->origin, "matmul") && strstr(l->origin, "exp");
}

/* "opted", "joined" */
static bool kernels_wrong(TgContext *ctx, const char *what) {
  bool wrong = false;
  if (!strcmp(what, "opted")) tg_watch_kernels(ctx, opts_seen, &wrong);
  TgTensor *a = tg_rand(ctx, TG_SHAPE(64, 64)), *v = tg_exp(tg_relu(tg_matmul(a, tg_add_scalar(a, 1))));
  if (!strcmp(what, "joined"))
    tg_schedule(&v, 1, launch_seen, &wrong);
  else
    tg_realize(v);
  return wrong;
}

/* "fused": wrong in few kernels; "fired": wrong where that rule fired; "always", "never" */
static int program(const char *what) {
  TgContext *ctx = tg_open(NULL);
  if (!strcmp(what, "opted") || !strcmp(what, "joined")) {
    bool wrong = kernels_wrong(ctx, what), failed = tg_error(ctx) != TG_OK;
    tg_close(ctx);
    return failed ? 3 : wrong;
  }
  TgTensor *v = value(ctx);
  int kernels = tg_schedule(&v, 1, NULL, NULL);
  bool wrong = !strcmp(what, "always") || (!strcmp(what, "fused") && kernels < 5) ||
               (!strcmp(what, "fired") && folds(ctx));
  bool failed = tg_error(ctx) != TG_OK;
  tg_close(ctx);
  return failed ? 3 : wrong;
}

static char self[400];

static char *bisected_on(const char *device, const char *what) {
  static char text[20000];
  char command[1000];
  snprintf(command, sizeof command, "TG_DEV=%s %s bisect %s %s 2>/dev/null", device, TG_BINARY, self, what);
  FILE *f = popen(command, "r");
  assert_non_null(f);
  size_t n = fread(text, 1, sizeof text - 1, f);
  text[n] = 0;
  pclose(f);
  return text;
}

static char *bisected(const char *what) { return bisected_on("INTERP", what); }

static void test_fusion(void **state) {
  (void)state;
  const char *says = bisected("fused");
  if (!strstr(says, "fusion: it is right")) fail_msg("%s", says);
  assert_null(strstr(says, "opts:"));
}

/* The opt is named, with its kernel and what that computes. */
static void test_opt(void **state) {
  (void)state;
  const char *says = bisected_on("NULL:C", "opted"), *opt = strstr(says, "\nopt ");
  if (!strstr(says, "opts: it is right") || !strstr(says, "right with TG_OPT_LIMIT=") || !opt)
    fail_msg("%s", says);
  const char *kernel = strstr(opt, ": VEC r");
  if (!kernel || !strstr(kernel, " of kernel r_64_64 (") || !strstr(kernel, "matmul (test_bisect.c:"))
    fail_msg("%s", says);
  assert_null(strstr(says, "\nfusion "));
}

/* The fusion is named with both stages, their shapes and where they come from. */
static void test_join(void **state) {
  (void)state;
  const char *says = bisected_on("NULL:C", "joined"), *fusion = strstr(says, "\nfusion ");
  if (!strstr(says, "right with TG_FUSE_LIMIT=") || !fusion) fail_msg("%s", says);
  const char *stage = strstr(fusion, ": join s"), *with = stage ? strstr(stage, ") with s") : NULL;
  if (!with || !strstr(stage, "EXP of f32 64x64, exp (test_bisect.c:") ||
      !strstr(with, "REDUCE_AXIS of f32 64x64x1, matmul (test_bisect.c:"))
    fail_msg("%s", says);
}

/* The rule that is named is the one whose firing is too many. */
static void test_rule(void **state) {
  (void)state;
  const char *says = bisected("fired"), *rule = strstr(says, "\nrule: symbolic.rules:");
  if (!strstr(says, "right with TG_RULE_LIMIT=") || !rule) fail_msg("%s", says);
  if (!strstr(rule, "(r0 % 8) => r0\n")) fail_msg("%s", says);
}

static void test_neither(void **state) {
  (void)state;
  assert_non_null(strstr(bisected("always"), "wrong in each of these ways"));
  assert_string_equal(bisected("never"), "");
}

int main(int argc, char **argv) {
  if (argc > 1) return program(argv[1]);
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fusion), cmocka_unit_test(test_opt),
                                     cmocka_unit_test(test_join), cmocka_unit_test(test_rule),
                                     cmocka_unit_test(test_neither)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
