/* test_compiler.c: the C compiler misbehaves, or there is none. A named error, the fallback, or the right
 * numbers; never a crash, never a wait without end. Compilers are shell scripts written to a folder of our
 * own. */
#define _GNU_SOURCE
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/tg_test_compiler_XXXXXX", path_was[4096];
static const char *const names[] = {"exits", "silent", "hangs",   "floods",       "half",        "nothing",
                                    "died",  "slow",   "crashes", "clang-nosuch", "clang-spare", "half.o"};

/* an executable; its path, valid until the next call */
static const char *script(const char *name, const char *text) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "#!/bin/sh\n%s\n", text);
  fclose(f);
  assert_int_equal(chmod(path, 0700), 0);
  return path;
}

static int setup(void **state) {
  (void)state;
  snprintf(path_was, sizeof path_was, "%s", getenv("PATH"));
  unsetenv("TG_CC");
  setenv("TG_CACHE", "0", 1);
  return mkdtemp(dir) == NULL;
}

static int teardown(void **state) {
  (void)state;
  char path[128];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    snprintf(path, sizeof path, "%s/%s", dir, names[i]), unlink(path);
  return rmdir(dir);
}

static TgContext *open_on(const char *device) {
  return tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .threads = 1});
}

/* sum of 3 (x + x + ..), n terms: one kernel of about n statements. */
static TgStatus compute(TgContext *c, int n, float *out) {
  const float v[3] = {1, 2, 3};
  TgTensor *x = tg_from(c, v, TG_F32, TG_SHAPE(3)), *z = x;
  for (int i = 1; i < n; i++)
    z = tg_add(z, x);
  *out = 0;
  return tg_read(tg_sum(z), out, sizeof *out);
}

static void expect_error(const char *cc, TgStatus s, const char *text) {
  float out;
  setenv("TG_CC", cc, 1);
  setenv("TG_CC_LIMIT", "1", 1);
  TgContext *c = open_on("CPU");
  TgStatus got = tg_error(c) ? tg_error(c) : compute(c, 2, &out);
  if (got != s || !strstr(tg_errmsg(c), text)) fail_msg("%s: %s: %s", cc, tg_status_name(got), tg_errmsg(c));
  setenv("TG_CC", "", 1), setenv("TG_CC_LIMIT", "60", 1);
  tg_clear_error(c);
  tg_close(c);
}

static void test_no_compiler(void **state) {
  (void)state;
  setenv("PATH", "/nowhere", 1);
  TgContext *c = open_on("CPU");
  float out = 0;
  assert_int_equal(tg_error(c), TG_OK); /* its kernels may come from elsewhere: test_bundle.c */
  assert_int_equal(compute(c, 4, &out), TG_ERR_DEVICE);
  assert_non_null(strstr(tg_errmsg(c), "no C compiler"));
  tg_close(c);
  char dev[64];
  snprintf(dev, sizeof dev, "%s", getenv("TG_DEV") ? getenv("TG_DEV") : "");
  unsetenv("TG_DEV");
  c = tg_open(NULL); /* what is left works */
  assert_string_equal(tg_default_device(c), "INTERP");
  assert_int_equal(compute(c, 4, &out), TG_OK);
  assert_true(out == 24);
  tg_close(c);
  if (*dev) setenv("TG_DEV", dev, 1);
  setenv("PATH", path_was, 1);
}

static void test_bad_compilers(void **state) {
  (void)state;
  expect_error("/nowhere/cc", TG_ERR_DEVICE, "no such program");
  expect_error("no-such-compiler", TG_ERR_DEVICE, "no such program");
  expect_error(dir, TG_ERR_DEVICE, "no such program"); /* a folder */
  expect_error(script("exits", "echo sorry >&2; exit 1"), TG_ERR_DEVICE, "--version fails");
  expect_error(script("exits", "[ \"$1\" = --version ] && exit 0; echo sorry >&2; exit 1"), TG_ERR_COMPILE,
               "sorry");
  expect_error(script("silent", "exit 0"), TG_ERR_COMPILE, "no object");
  expect_error(script("hangs", "exec sleep 1000"), TG_ERR_DEVICE, "--version fails");
  expect_error(script("hangs", "[ \"$1\" = --version ] && exit 0; sleep 1000; exit 0"), TG_ERR_COMPILE,
               "took more than 1 s");
  expect_error(script("floods", "head -c 10000000 /dev/zero; head -c 10000000 /dev/zero >&2; exit 0"),
               TG_ERR_COMPILE, "not ELF64");
  expect_error(
      script("floods",
             "[ \"$1\" = --version ] && exit 0; head -c 10000000 /dev/zero | tr '\\0' x >&2; exit 1"),
      TG_ERR_COMPILE, "xxxx");
  expect_error(script("died", "[ \"$1\" = --version ] && exit 0; kill -9 $$"), TG_ERR_COMPILE, "failed");
  expect_error(script("clang-nosuch", "[ \"$1\" = --version ] && exit 0; exec /nowhere/clang \"$@\""),
               TG_ERR_COMPILE, "/nowhere/clang");
}

static void test_half_objects(void **state) { /* cut at several places: refused by the loader */
  (void)state;
  static const int cut[] = {1, 63, 64, 500, 900};
  for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
    char text[200];
    snprintf(text, sizeof text,
             "[ \"$1\" = --version ] && exit 0; cc -c -O1 -fPIC -x c -o $0.o - && head -c %d $0.o", cut[i]);
    expect_error(script("half", text), TG_ERR_COMPILE, "object loader");
  }
}

/* A compiler started in advance that ends at once, that fails when the source comes, that works: the numbers
 * are right each time. */
static void test_spare(void **state) {
  (void)state;
  static const char *const with_socket[] = {"exit 1", "{ cat > /dev/null; exit 1; }", "exec $clang \"$@\""};
  if (system("{ command -v clang-19 || command -v clang; } > /dev/null")) {
    print_message("skipped: no clang here, which alone is started in advance\n");
    skip();
  }
  for (size_t i = 0; i < sizeof with_socket / sizeof *with_socket; i++) {
    char text[300];
    snprintf(
        text, sizeof text,
        "clang=$(command -v clang-19 || command -v clang); [ -S /proc/self/fd/0 ] && %s; exec $clang \"$@\"",
        with_socket[i]);
    setenv("TG_CC", script("clang-spare", text), 1);
    TgContext *c = open_on("CPU");
    for (int n = 2; n < 8; n++) {
      float out = 0;
      assert_int_equal(compute(c, n * n, &out), TG_OK);
      assert_true(out == (float)(6 * n * n));
    }
    setenv("TG_CC", "", 1);
    tg_close(c);
  }
}

/* a compiler that copes with small kernels alone: a huge one is interpreted */
static void test_huge(void **state) {
  (void)state;
  float out = 0;
  setenv("TG_CC", script("slow", "case \" $* \" in *' -O0 '*) exec sleep 1000;; esac; exec cc \"$@\""), 1);
  setenv("TG_CC_LIMIT", "1", 1);
  TgContext *c = open_on("CPU");
  assert_int_equal(compute(c, 21000, &out), TG_OK);
  assert_true(out == 6 * 21000);
  setenv("TG_CC", "", 1), setenv("TG_CC_LIMIT", "60", 1);
  tg_close(c);
}

/* A compiler that dies of what it optimises: the unit is compiled without. One that dies of everything is an
 * error, and not tried for ever. */
static void test_dies_optimising(void **state) {
  (void)state;
  static const char *const ends[] = {"kill -SEGV $$", "exit 139", "exit 4"};
  float out = 0;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    char text[300];
    snprintf(text, sizeof text,
             "[ \"$1\" = --version ] && exit 0; case \" $* \" in *' -O0 '*) exec cc \"$@\";; esac; %s",
             ends[i]);
    setenv("TG_CC", script("crashes", text), 1);
    TgContext *c = open_on("CPU");
    assert_int_equal(compute(c, 4, &out), TG_OK);
    assert_true(out == 24);
    assert_int_equal(tg_counters(c).retried, 1);
    tg_close(c);
    snprintf(text, sizeof text, "[ \"$1\" = --version ] && exit 0; %s", ends[i]);
    expect_error(script("crashes", text), TG_ERR_COMPILE, "failed");
  }
  setenv("TG_CC", "", 1);
}

/* A gather of bools behind a padding: masks of bytes, four and two lanes wide. clang 14 with AVX-512 dies of
 * them, or makes wrong code, by chance. */
static void test_byte_masks(void **state) {
  (void)state;
  static const char *const compilers[] = {"clang-14", "clang-19", "clang", "gcc"};
  for (int k = 0; k < 24; k++) {
    char here[64];
    snprintf(here, sizeof here, "command -v %s > /dev/null", compilers[k % 4]);
    if (system(here)) continue;
    setenv("TG_CC", compilers[k % 4], 1);
    TgContext *c = open_on("CPU");
    const float v = 1.5f;
    const int8_t at[] = {3, 0, 3, 1, 2};
    bool got[6] = {false}, want[6] = {true, false, false, true, true, true};
    TgTensor *finite = tg_isfinite(tg_from(c, &v, TG_F32, TG_SHAPE(1)));
    TgTensor *some = tg_slice(tg_gather(finite, 0, tg_from(c, at, TG_I8, TG_SHAPE(5))), 0, 1, 4);
    assert_int_equal(tg_read(tg_pad_value(some, (int64_t[]){0}, (int64_t[]){3}, 1), got, sizeof got), TG_OK);
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(tg_counters(c).retried, 0);
    tg_close(c);
  }
  setenv("TG_CC", "", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_compiler),  cmocka_unit_test(test_bad_compilers),
      cmocka_unit_test(test_half_objects), cmocka_unit_test(test_spare),
      cmocka_unit_test(test_huge),         cmocka_unit_test(test_dies_optimising),
      cmocka_unit_test(test_byte_masks)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
