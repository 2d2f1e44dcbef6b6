/* test_bisect.c: `tg bisect`. This program is also what is bisected: run with a word, it ends with 1 where a measure of
 * its kernels says so, which stands for a wrong result. What is to be found is known from the library's counters. */
#define _GNU_SOURCE
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

/* "fused": wrong in few kernels; "fired": wrong where that rule fired; "always", "never" */
static int program(const char *what) {
  TgContext *ctx = tg_open(NULL);
  TgTensor *v = value(ctx);
  int kernels = tg_schedule(&v, 1, NULL, NULL);
  bool wrong = !strcmp(what, "always") || (!strcmp(what, "fused") && kernels < 5) ||
               (!strcmp(what, "fired") && folds(ctx));
  bool failed = tg_error(ctx) != TG_OK;
  tg_close(ctx);
  return failed ? 3 : wrong;
}

static char self[400];

static char *bisected(const char *what) {
  static char text[20000];
  char command[1000];
  snprintf(command, sizeof command, "TG_DEV=INTERP %s bisect %s %s 2>/dev/null", TG_BINARY, self, what);
  FILE *f = popen(command, "r");
  assert_non_null(f);
  size_t n = fread(text, 1, sizeof text - 1, f);
  text[n] = 0;
  pclose(f);
  return text;
}

static void test_fusion(void **state) {
  (void)state;
  const char *says = bisected("fused");
  if (!strstr(says, "fusion: it is right")) fail_msg("%s", says);
  assert_null(strstr(says, "opts:"));
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fusion), cmocka_unit_test(test_rule),
                                     cmocka_unit_test(test_neither)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
