/* test_bundle.c: a machine without a compiler. Kernels come from the cache or from a bundle that another
 * process saved; what is in neither is an error that says what to do; a damaged bundle is refused, wherever
 * it is damaged. */
#define _GNU_SOURCE
#include "base/base.h"
#include "runtime/bundle.h"
#include "tg_io.h"
#include "tg_nn.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/tg_test_bundle_XXXXXX", path_was[4096], file[64];

static int setup(void **state) {
  (void)state;
  snprintf(path_was, sizeof path_was, "%s", getenv("PATH"));
  unsetenv("TG_CC"), unsetenv("TG_DEV"), unsetenv("TG_LOADER");
  setenv("TG_CACHE", "0", 1);
  if (!mkdtemp(dir)) return 1;
  snprintf(file, sizeof file, "%s/kernels", dir);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  char command[128];
  setenv("PATH", path_was, 1);
  snprintf(command, sizeof command, "rm -rf %s", dir);
  return system(command);
}

static void with_compiler(bool on) { setenv("PATH", on ? path_was : "/nowhere", 1); }

/* A few kernels: a product, a softmax, a sum. */
static TgStatus compute(TgContext *c, double *out) {
  const double v[] = {1, 2, 3, 4, 5, 6};
  TgTensor *x = tg_from_f64(c, v, TG_F32, TG_SHAPE(2, 3)), *w = tg_from_f64(c, v, TG_F32, TG_SHAPE(3, 2));
  *out = tg_item_f64(tg_sum(tg_mul(tg_softmax(tg_matmul(x, w)), tg_matmul(x, w))));
  return tg_error(c);
}

/* In a process of its own, which knows nothing of this one: 0, or what went wrong. */
static int apart(int (*does)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (!child) _exit(does());
  int status = -1;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* The same as a captured program, from a file. */
static TgStatus step(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout, (void)user;
  out[0] = tg_softmax(tg_matmul(in[0], in[0]));
  return out[0] ? TG_OK : TG_ERR_VALUE;
}

static TgStatus run_step(TgContext *c, TgJit *jit, double *sum) {
  const double v[] = {1, 2, 3, 4};
  TgTensor *in = tg_from_f64(c, v, TG_F32, TG_SHAPE(2, 2)), *out = NULL;
  if (tg_jit_run(jit, &in, 1, &out, 1)) return tg_error(c);
  double got[4];
  TgStatus s = tg_read_f64(out, got, 4);
  *sum = got[0] + 2 * got[1] + 3 * got[2] + 4 * got[3];
  return s;
}

static double expected;

static int runs_from_bundle(void) {
  double got = 0;
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
  if (tg_error(c)) return 1;
  if (compute(c, &got) != TG_ERR_DEVICE) return 2; /* nobody can make it */
  if (!strstr(tg_errmsg(c), "CPU: kernel ") || !strstr(tg_errmsg(c), "tg_bundle_load")) return 3;
  tg_clear_error(c);
  if (tg_bundle_load(c, file)) return 4;
  if (compute(c, &got)) return 5;
  if (got != expected) return 6;
  size_t n = 0;
  if (!tg_bundle(c, &n) || !n) return 7; /* what it was given goes along */
  tg_close(c);
  return 0;
}

static void test_bundle(void **state) {
  (void)state;
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
  assert_int_equal(compute(c, &expected), TG_OK);
  assert_int_equal(tg_bundle_save(c, file), TG_OK);
  assert_int_equal(tg_error(c), TG_OK);
  assert_int_equal(tg_bundle_save(c, "/nowhere/at/all"), TG_ERR_IO);
  assert_non_null(strstr(tg_errmsg(c), "bundle_save: /nowhere/at/all: "));
  tg_clear_error(c);
  tg_close(c);
  with_compiler(false);
  assert_int_equal(apart(runs_from_bundle), 0);
  with_compiler(true);
  c = tg_open_with(.device = "CPU", .threads = 1); /* with a compiler it is not asked */
  assert_int_equal(tg_bundle_load(c, file), TG_OK);
  setenv("TG_CC_LIMIT", "60", 1);
  double got;
  assert_int_equal(compute(c, &got), TG_OK);
  assert_true(got == expected);
  tg_close(c);
}

static int runs_from_cache(void) {
  double got = 0;
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
  if (tg_error(c)) return 1;
  if (compute(c, &got)) return 2;
  tg_close(c);
  return got == expected ? 0 : 3;
}

static char program[64];

static int program_runs(void) {
  double got = 0;
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
  if (tg_error(c) || tg_bundle_load(c, file)) return 1;
  TgJit *jit = tg_jit_load_file(c, program);
  if (!jit) return 2;
  if (run_step(c, jit, &got) || got != expected) return 3;
  tg_jit_free(jit);
  tg_close(c);
  return 0;
}

static void test_program(void **state) {
  (void)state;
  snprintf(program, sizeof program, "%s/program", dir);
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
  TgJit *jit = tg_jit(c, step, NULL);
  for (int i = 0; i < 3; i++)
    assert_int_equal(run_step(c, jit, &expected), TG_OK);
  TgStatus s = tg_jit_save(jit, program);
  tg_jit_free(jit);
  if (s == TG_ERR_STATE) { /* built without jansson */
    tg_clear_error(c), tg_close(c);
    skip();
  }
  assert_int_equal(s, TG_OK);
  assert_int_equal(tg_bundle_save(c, file), TG_OK);
  tg_close(c);
  with_compiler(false);
  assert_int_equal(apart(program_runs), 0);
  with_compiler(true);
}

static void test_cache(void **state) {
  (void)state;
#ifndef TG_HAVE_SQLITE
  skip();
#endif
  char folder[80];
  snprintf(folder, sizeof folder, "%s/cache", dir);
  setenv("TG_CACHE", "1", 1), setenv("XDG_CACHE_HOME", folder, 1);
  assert_int_equal(apart(runs_from_cache), 0);
  with_compiler(false);
  assert_int_equal(apart(runs_from_cache), 0);
  with_compiler(true);
  setenv("TG_CACHE", "0", 1), unsetenv("XDG_CACHE_HOME");
}

/* ---- what is opened where there is no compiler */
static char said[2000];

static void note(const char *text, void *user) {
  (void)user;
  strncat(said, text, sizeof said - strlen(said) - 1);
}

static void test_no_compiler(void **state) {
  (void)state;
  with_compiler(false);
  *said = 0;
  TgContext *c = tg_open_with(.log = note);
  assert_string_equal(tg_default_device(c), "INTERP");
  assert_non_null(strstr(said, "compiler"));
  assert_non_null(strstr(said, "INTERP"));
  tg_close(c);
  with_compiler(true);
  setenv("TG_CC", "/none", 1); /* one that was named is meant */
  c = tg_open(NULL);
  assert_int_equal(tg_error(c), TG_ERR_DEVICE);
  assert_non_null(strstr(tg_errmsg(c), "TG_CC=/none"));
  tg_close(c);
  c = tg_open_with(.device = "CPU");
  assert_int_equal(tg_error(c), TG_ERR_DEVICE);
  tg_close(c);
  unsetenv("TG_CC");
}

/* ---- damage */
static TgStatus used(TgContext *c, const void *bytes, size_t n) {
  void *own = malloc(n ? n : 1); /* a copy of that size, so that a sanitizer sees a byte too far */
  if (n) memcpy(own, bytes, n);
  TgStatus s = tg_bundle_use(c, own, n);
  free(own);
  tg_clear_error(c);
  return s;
}

static TgMem memory;

/* One object of a few bytes for this processor, with two kernels. */
static Str small_bundle(const char *features) {
  Str s;
  str_init(&s, &memory);
  Bundle *b = bundle_new(&memory);
  assert_true(b && bundle_object(b, features, "avx", "object", 6));
  assert_true(bundle_kernel(b, (const uint8_t *)"0123456789abcdef0123456789abcdef", "r_2_3"));
  assert_true(bundle_kernel(b, (const uint8_t *)"123456789abcdef0123456789abcdef0", "e_4"));
  assert_true(bundle_write(b, &s));
  bundle_free(b);
  return s;
}

static void test_damage(void **state) {
  (void)state;
  TgContext *c = tg_open_with(.device = "INTERP");
  Str s = small_bundle("0.0.0.0 0.0.0.0 0.0.0.0 0.0.0.0 0");
  assert_int_equal(used(c, s.at, s.len), TG_OK);
  assert_int_equal(used(c, s.at, s.len), TG_OK); /* twice is once */
  for (size_t n = 0; n < s.len; n++)
    assert_int_equal(used(c, s.at, n), TG_ERR_VALUE);
  for (size_t i = 0; i < s.len; i++)
    for (int bit = 0; bit < 8; bit++) {
      s.at[i] = (char)(s.at[i] ^ 1 << bit);
      assert_int_equal(used(c, s.at, s.len), TG_ERR_VALUE);
      s.at[i] = (char)(s.at[i] ^ 1 << bit);
    }
  assert_int_equal(tg_bundle_use(c, NULL, 3), TG_ERR_VALUE), tg_clear_error(c);
  assert_int_equal(tg_bundle_load(c, "/nowhere/kernels"), TG_ERR_IO), tg_clear_error(c);
  str_free(&s);
  tg_close(c);
}

/* The digest of a liar is right: whatever the rest says, it is read within its bounds. */
static void test_lies(void **state) {
  (void)state;

  enum { HEAD = 16 + 8 + 32 };

  TgContext *c = tg_open_with(.device = "INTERP");
  Str s = small_bundle("x");
  unsigned seed = 7;
  int refused = 0;
  for (int i = 0; i < 20000; i++) {
    char *own = malloc(s.len);
    size_t n = s.len;
    memcpy(own, s.at, n);
    for (int k = 0; k < 3; k++) {
      seed = seed * 1664525 + 1013904223;
      own[HEAD + (seed >> 8) % (n - HEAD)] = (char)(seed >> 24 & 1 ? seed >> 16 : seed >> 31 ? 255 : 0);
    }
    sha256(own + HEAD, n - HEAD, (uint8_t *)own + 24);
    refused += used(c, own, n) != TG_OK;
    free(own);
  }
  assert_true(refused > 100);
  str_free(&s);
  tg_close(c);
}

/* The object is for a processor that has what this one lacks: it is not loaded, and the error says so. */
static void test_other_processor(void **state) {
  (void)state;
  size_t n = 0;
  double got;
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
  assert_int_equal(compute(c, &got), TG_OK);
  const char *bytes = tg_bundle(c, &n);
  char *other = malloc(n);
  memcpy(other, bytes, n);
  /* the features are the first text: any other */
  size_t length = (unsigned char)other[60];
  memset(other + 64, 'f', length);
  sha256(other + 56, n - 56, (uint8_t *)other + 24);
  tg_close(c);
  with_compiler(false);
  c = tg_open_with(.device = "CPU", .threads = 1);
  assert_int_equal(tg_bundle_use(c, other, n), TG_OK);
  assert_int_equal(compute(c, &got), TG_ERR_DEVICE);
  assert_non_null(strstr(tg_errmsg(c), "for a processor with"));
  tg_close(c);
  free(other);
  with_compiler(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bundle),         cmocka_unit_test(test_cache),  cmocka_unit_test(test_program),
      cmocka_unit_test(test_no_compiler),    cmocka_unit_test(test_damage), cmocka_unit_test(test_lies),
      cmocka_unit_test(test_other_processor)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
