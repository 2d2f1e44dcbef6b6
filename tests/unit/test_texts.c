/* test_texts.c: every C and Metal text of the suite compiles without a warning. C: gcc and clang, with the
 * vectors of a plain x86-64 and with AVX-512. Metal: clang's "C++ for OpenCL" mode with
 * tests/kernels/msl/metal_stdlib, which knows address spaces. A compiler that is not here is skipped. */
#define _POSIX_C_SOURCE 200809L
#include "kernels/texts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/tg-texts-XXXXXX";

static bool present(const char *program) {
  char command[128];
  snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", program);
  if (!system(command)) return true;
  print_message("no %s here\n", program);
  return false;
}

/* Runs `command FILE`; what it says is printed. */
static bool accepts(const char *command, const char *unit, const char *suffix) {
  char path[128], line[2048];
  snprintf(path, sizeof path, "%s/unit.%s", folder, suffix);
  FILE *f = fopen(path, "w");
  bool ok = f && fputs(unit, f) >= 0;
  ok = f && !fclose(f) && ok;
  assert_true(ok);
  snprintf(line, sizeof line, "%s %s 2>&1", command, path);
  FILE *p = popen(line, "r");
  assert_non_null(p);
  for (int n = 0; fgets(line, sizeof line, p); n++)
    if (n < 30) print_message("%s", line);
  ok = pclose(p) == 0;
  unlink(path);
  return ok;
}

static void every_text(const char *language, const char *command, const char *suffix) {
  enum { BATCH = 64 };

  static Texts t; /* of the language asked for last */
  static const char *of;
  if (of != language) texts_free(&t), t = texts_collect(language), of = language;
  assert_in_range(t.len, 100, 100000);
  int failed = 0;
  for (size_t i = 0; i < t.len; i += BATCH) {
    char *unit = texts_unit(&t, i, t.len - i < BATCH ? t.len - i : BATCH);
    if (!accepts(command, unit, suffix)) failed++;
    free(unit);
  }
  char *unit = texts_unit(&t, 0, 0); /* a text that is wrong is seen to be refused */
  unit = realloc(unit, strlen(unit) + 64);
  assert_non_null(unit);
  strcat(unit, "static int wrong(void) { f32 x = 1; return undeclared; }\n");
  assert_false(accepts(command, unit, suffix));
  free(unit);
  assert_int_equal(failed, 0);
}

static const char c[] = "C", metal[] = "METAL";
#define STRICT  " -Wall -Wextra -Werror -Wno-unused -Wno-unused-parameter -fsyntax-only"
#define C_FLAGS " -std=gnu11 -ffreestanding -ffp-contract=off" STRICT

static void c_texts(const char *compiler, const char *flags) {
  char command[256];
  if (!present(compiler)) skip();
  snprintf(command, sizeof command, "%s %s" C_FLAGS, compiler, flags);
  every_text(c, command, "c");
}

static const char *clang(void) { return present("clang-19") ? "clang-19" : "clang"; }

static void test_gcc(void **state) {
  (void)state;
  c_texts("gcc", "-Wno-psabi");
}

static void test_gcc_wide(void **state) {
  (void)state;
  c_texts("gcc", "-march=x86-64-v4");
}

static void test_clang(void **state) {
  (void)state;
  c_texts(clang(), "");
}

static void test_clang_wide(void **state) {
  (void)state;
  c_texts(clang(), "-march=x86-64-v4");
}

static void test_metal(void **state) {
  (void)state;
  char command[512];
  if (!present(clang())) skip();
  snprintf(command, sizeof command,
           "%s -x cl -cl-std=clc++2021 -cl-no-stdinc -I " TG_SOURCE_DIR
           "/tests/kernels/msl -Wno-unknown-attributes" STRICT " -Wno-unknown-pragmas",
           clang());
  every_text(metal, command, "metal");
}

/* A pointer of one address space where another is meant: Metal's compiler refuses it, and so must what stands
 * in for it here. Each exchange is made in a golden text that has its words. */
static void test_spaces(void **state) {
  static const struct {
    const char *golden, *had, *wrong;
  } seeds[] = {{"matmul_tiles", "(threadgroup f32x4 *)", "(device f32x4 *)"},
               {"matmul_tiles", "(device f32x4 *)", "(threadgroup f32x4 *)"},
               {"attention", "threadgroup f32 l0[", "device f32 l0["},
               {"matmul_tiles", "device const f32 *p1", "threadgroup const f32 *p1"},
               {"adam_step", "device f32 *p0", "f32 *p0"}};

  (void)state;
  char command[512], path[600];
  if (!present(clang())) skip();
  snprintf(
      command, sizeof command,
      "%s -x cl -cl-std=clc++2021 -cl-no-stdinc -I " TG_SOURCE_DIR
      "/tests/kernels/msl -Wno-unknown-attributes -Wno-unused -Wno-unknown-pragmas -fsyntax-only 2>/dev/null",
      clang());
  Texts none = texts_collect(metal);
  int made = 0;
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    char *unit = calloc(1 << 18, 1), *golden = calloc(1 << 17, 1);
    assert_true(unit && golden);
    snprintf(path, sizeof path, TG_SOURCE_DIR "/tests/kernels/golden/%s.metal", seeds[i].golden);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(golden, 1, (1 << 17) - 1, f) > 0);
    fclose(f);
    char *at = strstr(golden, seeds[i].had);
    if (at) {
      snprintf(unit, 1 << 18, "%s%s", none.prelude, golden);
      if (!accepts(command, unit, "metal")) fail_msg("%s as it is", seeds[i].golden);
      snprintf(unit, 1 << 18, "%s%.*s%s%s", none.prelude, (int)(at - golden), golden, seeds[i].wrong,
               at + strlen(seeds[i].had));
      if (accepts(command, unit, "metal")) fail_msg("%s: %s is not seen", seeds[i].golden, seeds[i].wrong);
      made++;
    } else
      print_message("%s.metal has no %s\n", seeds[i].golden, seeds[i].had);
    free(unit), free(golden);
  }
  assert_int_equal(made, sizeof seeds / sizeof *seeds);
  assert_non_null(strstr(none.prelude, "#pragma METAL fp contract(off)"));
  assert_non_null(strstr(none.prelude, "#pragma clang fp contract(off)")); /* compilers without math modes */
  texts_free(&none);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_gcc),   cmocka_unit_test(test_gcc_wide),
                                     cmocka_unit_test(test_clang), cmocka_unit_test(test_clang_wide),
                                     cmocka_unit_test(test_metal), cmocka_unit_test(test_spaces)};
  if (!mkdtemp(folder)) return 2;
  int rc = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(folder);
  return rc;
}
