/* test_export_nets.c: ten kinds of networks (tests/export/nets.h) as C: what gcc makes of the text has the library's
 * results but for rounding, and clang, for 64 bits and for 32, has the bits that gcc has. */
#define _GNU_SOURCE
#include "export/nets.h"
#include "export/checked.h"
#include "export/exported.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { NUMBERS = 3 * PICTURE * PICTURE, MOST_CLASSES = 16, TURNS = 2 };

static char folder[] = "/tmp/tg-export-nets-XXXXXX";

static TgStatus run_net(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const char *name = "x";
  (void)c;
  return tg_onnx_run(user, &name, in, nin, out, nout);
}

static void near(const char *what, const float *got, const float *want, size_t n) {
  float most = 0;
  for (size_t i = 0; i < n; i++)
    most = fmaxf(most, fabsf(want[i]));
  for (size_t i = 0; i < n; i++)
    if (!(fabsf(got[i] - want[i]) <= 1e-5f * most))
      fail_msg("%s [%zu]: %g, not %g", what, i, (double)got[i], (double)want[i]);
  if (!(most > 1e-3f)) fail_msg("%s: the test says nothing", what);
}

/* The text's results, for pictures that differ, stay in `k` for other compilers. */
static void net_checked(const Architecture *a, Checked *k) {
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU", .seed = 7});
  Net *n = net_new();
  net_input(n, "x", TG_F32, 4, (int64_t[]){1, 3, PICTURE, PICTURE});
  a->of(n);
  TgOnnx *m = net_open(n, c);
  if (!m) fail_msg("%s: %s", a->name, tg_errmsg(c));
  TgJit *jit = tg_jit(c, run_net, m);
  TgTensor *in = tg_clone(tg_randn(c, TG_SHAPE(1, 3, PICTURE, PICTURE))), *out;
  for (int i = 0; i < 2; i++)
    if (tg_jit_run(jit, &in, 1, &out, 1)) fail_msg("%s: %s", a->name, tg_errmsg(c));
  Exported e;
  TgCOptions o = {.own_math = true};
  if (!exported_new(&e, jit, folder, "gcc -O1", o)) fail_msg("%s", a->name);
  checked_model(k, jit, o);
  for (int turn = 0; turn < TURNS; turn++) {
    static float x[NUMBERS], got[MOST_CLASSES], want[MOST_CLASSES];
    size_t classes = (size_t)tg_numel(out);
    in = tg_clone(tg_randn(c, TG_SHAPE(1, 3, PICTURE, PICTURE)));
    assert_true(classes <= MOST_CLASSES && !tg_read(in, x, sizeof x));
    assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 0);
    TgTensor *text_out = tg_from(c, got, TG_F32, TG_SHAPE((int64_t)classes));
    checked_turn(k, &in, 1, &text_out, 1);
    if (tg_jit_run(jit, &in, 1, &out, 1) || tg_read(out, want, classes * sizeof(float)))
      fail_msg("%s: %s", a->name, tg_errmsg(c));
    near(a->name, got, want, classes);
  }
  checked_model_end(k);
  exported_free(&e);
  tg_jit_free(jit), tg_onnx_free(m), net_free(n), tg_close(c);
}

static void start_put(void) {
  static const char text[] =
      "#include <stddef.h>\nint check_all(void);\n"
      "void *memcpy(void *to, const void *from, size_t n);\nvoid *memset(void *to, int v, size_t n);\n"
      "void *memcpy(void *to, const void *from, size_t n) {\n"
      "  while (n--) ((char *)to)[n] = ((const char *)from)[n];\n  return to;\n}\n"
      "void *memset(void *to, int v, size_t n) {\n  while (n--) ((char *)to)[n] = (char)v;\n  return to;\n}\n"
      "__attribute__((force_align_arg_pointer)) void _start(void);\n"
      "void _start(void) { __asm__ volatile(\"int $0x80\" : : \"a\"(1), \"b\"(check_all() != 0)); }\n";
  char path[100];
  snprintf(path, sizeof path, "%s/start.c", folder);
  FILE *f = fopen(path, "wb");
  assert_true(f && fputs(text, f) >= 0 && !fclose(f));
}

static void test_nets(void **state) {
  (void)state;
  Checked k;
  setenv("TG_CACHE", "0", 0);
  assert_non_null(mkdtemp(folder));
  assert_true(checked_begin(&k, folder));
  for (int i = 0; i < ARCHITECTURES; i++)
    net_checked(&architectures[i], &k);
  assert_true(checked_end(&k));
  static const char flags[] = "-std=c99 -pedantic -Wall -Wextra -Wconversion -Werror";
  char line[1000];
  snprintf(line, sizeof line,
           "for f in n*.c; do clang-19 -O1 %s -c $f || exit 1; done && clang-19 -w *.o check_*.c main.c -o "
           "c64 && ./c64",
           flags);
  assert_true(checked_run(folder, "clang", line));
#ifdef __x86_64__
  /* by itself: the text needs nothing, and this machine may have no library of 32 bits */
  start_put();
  snprintf(line, sizeof line,
           "rm -f *.o && clang-19 -m32 -msse2 -mfpmath=sse -O1 -std=gnu99 -ffp-contract=off -ffreestanding "
           "-fno-builtin -fno-pic -nostdlib -static -w -DNO_MAIN "
           "n*.c check_*.c main.c start.c -o c32 && ./c32");
  assert_true(checked_run(folder, "clang -m32", line));
#endif
  snprintf(line, sizeof line, "rm -rf %s", folder);
  assert_int_equal(system(line), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
