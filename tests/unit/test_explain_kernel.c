/* test_explain_kernel.c: what `tg explain --kernel` says of opts and loops, counted here by hand from the same texts. */
#define _GNU_SOURCE
#include "explain.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *said(void (*say)(FILE *to, const char *a, const char *b), const char *a, const char *b) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  assert_non_null(f);
  say(f, a, b);
  fclose(f);
  return text;
}

static void has(const char *text, const char *what) {
  if (!strstr(text, what)) fail_msg("no '%s' in:\n%s", what, text);
}

static const char costs[] = "      1000.0  compute 900.0, into L1 10.0 L2 5.0 L3 0.0, copies 0.0, stores 1.0 "
                            " UPCAST r0 4, VEC r1 16, THREAD r0 2\n"
                            "      1500.0  compute 1400.0, into L1 10.0 L2 5.0 L3 0.0, copies 0.0, stores "
                            "1.0  UPCAST r0 8, VEC r1 16\n"
                            "      4000.0  compute 3900.0, into L1 10.0 L2 5.0 L3 0.0, copies 0.0, stores "
                            "1.0  VEC r1 16, THREAD r0 2\n"
                            "      9000.0  compute 8900.0, into L1 10.0 L2 5.0 L3 0.0, copies 0.0, stores "
                            "1.0  UPCAST r0 4, THREAD r0 2\n";

static void own(FILE *to, const char *a, const char *b) { explain_opts(to, a, b, NULL, NULL); }

static const char *cost_of(const char *list, void *user) {
  (void)user;
  if (!strcmp(list, "TILE r1 8, VEC r1 8")) return "  2000.0  compute 1.0, stores 1.0  TILE r1 8, VEC r1 8\n";
  return strcmp(list, "VEC r1 8") ? NULL : "  3000.0  compute 1.0, stores 1.0  VEC r1 8\n";
}

static void given(FILE *to, const char *a, const char *b) { explain_opts(to, a, b, cost_of, NULL); }

static void test_opts(void **state) {
  (void)state;
  char *text = said(own, costs, "UPCAST r0 4, VEC r1 16, THREAD r0 2");
  has(text, "1000.0 thousand cycles (compute 900.0");
  has(text, "UPCAST r0 4          4.00x"), has(text, "VEC r1 16            9.00x"),
      has(text, "THREAD r0 2          1.50x");
  free(text);
  text = said(own, costs, "UPCAST r0 2"); /* a list of somebody else's */
  assert_string_equal(text, "");
  free(text);
  text = said(given, costs, "TILE r1 8, VEC r1 8");
  has(text, "which the planner did not choose"), has(text, "2000.0 thousand cycles (compute 1.0");
  has(text, "TILE r1 8            1.50x"), has(text, "VEC r1 8         the others cannot be without it");
  has(text, "the planner's own list: 1000.0 thousand cycles, 0.50 of this one's");
  free(text);
  text = said(given, costs, "LOCAL r1 8");
  has(text, "does not know such a list");
  free(text);
  text = said(given, "", "");
  assert_string_equal(text, "");
  free(text);
}

static const char program[] = "# codegen r_8_4, after pass 16: linearize\n"
                              "program r_8_4: 3 params, 1 threads, grid 1 1 1, block 1 1 1\n"
                              "p1 = PARAM[f32, 1, 32]\n"
                              "p2 = PARAM[f32, 2, 64]\n"
                              "p0 = PARAM[f32, 0, 128]\n"
                              "u3 = VECTORIZE[f32x16](0:f32)\n"
                              "r1 = RANGE[1, LOOP](8:i64)\n"
                              "u5 = DEFINE_REG[f32x16, 3, 1]\n"
                              "u6 = STORE[1](u5, u3)\n"
                              "r2 = RANGE[2, REDUCE](4:i64)\n"
                              "u8 = INDEX(p1, r2)\n"
                              "u9 = LOAD(u8)\n"
                              "u10 = VECTORIZE[f32x16](u9)\n"
                              "u11 = INDEX[f32x16](p2, r2)\n"
                              "u12 = LOAD(u11)\n"
                              "u13 = LOAD[5](u5)\n"
                              "u14 = MULACC(u10, u12, u13)\n"
                              "u15 = STORE[6](u5, u14)\n"
                              "u16 = END(r2)\n"
                              "u17 = INDEX[f32x16](p0, r1)\n"
                              "u18 = LOAD[7](u5)\n"
                              "u19 = MAX(u18, u3)\n"
                              "u20 = STORE(u17, u19)\n"
                              "u21 = END(r1)\n";

static void loops(FILE *to, const char *a, const char *b) {
  (void)b;
  explain_loops(to, a);
}

static void line_is(const char *text, const char *name, double times, double ops, double read, double written,
                    const char *bound, double roof) {
  char is[16];
  double v[5];
  const char *at = strstr(text, name);
  assert_non_null(at);
  assert_int_equal(
      sscanf(at + strlen(name), "%lf %lf %lf %lf %15s %lf", &v[0], &v[1], &v[2], &v[3], is, &v[4]), 6);
  assert_true(v[0] == times && v[1] == ops && v[2] == read && v[3] == written && v[4] == roof);
  assert_string_equal(is, bound);
}

/* A block of 8 threads: each loads 16 bytes into a row, waits, and adds 4 numbers of it; or, without the row, loads each
 * number itself. */
/* A GPU's costs are us; what no list that was considered is without is asked for. */
static const char *asked(const char *list, void *user) {
  (void)user;
  return strcmp(list, "STAGE p1") ? NULL : "  24.00  compute 1.00, waits 23.00, registers 20 x 8  STAGE p1\n";
}

static void grid(FILE *to, const char *a, const char *b) { explain_opts(to, a, b, asked, NULL); }

static void test_grid(void **state) {
  (void)state;
  char *text = said(grid,
                    "        6.00  compute 1.00, waits 5.00, registers 24 x 8  STAGE p1, LOCAL r0 8\n"
                    "        9.00  compute 1.00, waits 8.00, registers 20 x 8  LOCAL r0 8\n",
                    "STAGE p1, LOCAL r0 8");
  has(text, "6.0 us (compute 1.00, waits 5.00, registers 24 x 8)");
  has(text, "STAGE p1             1.50x  (9.0 us without it)");
  has(text, "LOCAL r0 8           4.00x  (24.0 us without it)");
  free(text);
}

static void test_loops(void **state) {
  (void)state;
  char *text = said(loops, program, NULL);
  line_is(text, "r1 LOOP", 8, 16, 0, 64, "stores", 50); /* max of 16 lanes, one store */
  line_is(text, "r2 REDUCE", 32, 32, 68, 0, "loads",
          50); /* 16 multiply-adds beside a vector and a number read */
  free(text);
  for (size_t n = 0; n < sizeof program; n++) { /* cut anywhere */
    char *cut = strndup(program, n);
    free(said(loops, cut, NULL));
    free(cut);
  }
  text = said(loops, "u0 = NEG(1:f32)\n", NULL); /* no program */
  assert_string_equal(text, "");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_opts), cmocka_unit_test(test_grid),
                                     cmocka_unit_test(test_loops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
