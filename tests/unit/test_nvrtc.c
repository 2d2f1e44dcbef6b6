/* test_nvrtc.c: NVIDIA's own compiler takes every CUDA text of the suite, for two architectures, without an
 * error. No GPU is needed; where there is no libnvrtc the tests are skipped. */
#include "kernels/texts.h"
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct Program_ *Program;

typedef struct Nvrtc {
  void *lib;
  int (*version)(int *major, int *minor);
  int (*create)(Program *p, const char *source, const char *name, int nheader, const char *const *headers,
                const char *const *names);
  int (*compile)(Program p, int noption, const char *const *options);
  int (*log_size)(Program p, size_t *n);
  int (*log)(Program p, char *text);
  int (*ptx_size)(Program p, size_t *n);
  int (*ptx)(Program p, char *text);
  int (*destroy)(Program *p);
} Nvrtc;

static Nvrtc rtc;
static Texts texts;

static void *try_open(const char *folder, const char *below, const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s%s%s", folder, below, name);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static bool find_nvrtc(void) {
  static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
  static const char *const folders[] = {"/usr/local/cuda", "/usr/local/cuda-13.0", "/usr/local/cuda-12.9",
                                        "/usr/local/cuda-12"};
  const char *set = getenv("CUDA_PATH");
  for (size_t i = 0; i < sizeof names / sizeof *names && !rtc.lib; i++) {
    rtc.lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t k = 0; k <= sizeof folders / sizeof *folders && !rtc.lib; k++) {
      const char *f = k ? folders[k - 1] : set;
      if (f && *f && !(rtc.lib = try_open(f, "/lib64/", names[i]))) rtc.lib = try_open(f, "/lib/", names[i]);
    }
  }
  if (!rtc.lib) return false;

  const struct {
    void *to;
    const char *name;
  } table[] = {{&rtc.version, "nvrtcVersion"},
               {&rtc.create, "nvrtcCreateProgram"},
               {&rtc.compile, "nvrtcCompileProgram"},
               {&rtc.log_size, "nvrtcGetProgramLogSize"},
               {&rtc.log, "nvrtcGetProgramLog"},
               {&rtc.ptx_size, "nvrtcGetPTXSize"},
               {&rtc.ptx, "nvrtcGetPTX"},
               {&rtc.destroy, "nvrtcDestroyProgram"}};

  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    void *f = dlsym(rtc.lib, table[i].name);
    if (!f) return false;
    memcpy(table[i].to, &f, sizeof f);
  }
  return true;
}

/* The assembly of a unit, for the caller to free; NULL: it does not compile. The log is printed where there
 * is one. */
static char *compiled(const char *unit, const char *arch) {
  const char *options[] = {arch, "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"};
  Program p;
  size_t n = 0;
  char *ptx = NULL;
  assert_int_equal(rtc.create(&p, unit, "kernels.cu", 0, NULL, NULL), 0);
  bool ok = rtc.compile(p, 5, options) == 0;
  if (!rtc.log_size(p, &n) && n > 1) {
    char *log = malloc(n);
    assert_non_null(log);
    rtc.log(p, log);
    print_message("%s: %.3000s\n", arch, log);
    free(log);
  }
  if (ok && !rtc.ptx_size(p, &n) && (ptx = malloc(n + 1))) rtc.ptx(p, ptx), ptx[n] = 0;
  rtc.destroy(&p);
  return ptx;
}

static void every_text(const char *arch) {
  if (!rtc.lib) {
    print_message("no libnvrtc here (searched the loader's path, CUDA_PATH, /usr/local/cuda*)\n");
    skip();
  }

  enum { BATCH = 40 };

  assert_in_range(texts.len, 100, 100000);
  int failed = 0;
  for (size_t i = 0; i < texts.len; i += BATCH) {
    size_t n = texts.len - i < BATCH ? texts.len - i : BATCH, entries = 0;
    char *unit = texts_unit(&texts, i, n), *ptx = compiled(unit, arch);
    for (const char *p = ptx; p && (p = strstr(p, ".visible .entry ")); p++)
      entries++;
    if (ptx && entries != n) print_message("%d kernels in, %d out\n", (int)n, (int)entries), failed++;
    failed += !ptx;
    free(unit), free(ptx);
  }
  assert_int_equal(failed, 0);
}

static void test_compute_80(void **state) {
  (void)state;
  every_text("--gpu-architecture=compute_80");
}

static void test_compute_90(void **state) {
  (void)state;
  every_text("--gpu-architecture=compute_90");
}

/* What is refused is seen to be refused: the test above can fail. And nothing is fused behind our back. */
static void test_refuses(void **state) {
  (void)state;
  if (!rtc.lib) {
    print_message("skipped: no libnvrtc here\n");
    skip();
  }
  char unit[1 << 15];
  snprintf(unit, sizeof unit, "%sextern \"C\" __global__ void k(f32 *p) { p[0] = undeclared; }\n",
           texts.prelude);
  char *ptx = compiled(unit, "--gpu-architecture=compute_80");
  assert_null(ptx);
  snprintf(unit, sizeof unit,
           "%sextern \"C\" __global__ void k(f32 *p) { p[0] = p[1] * p[2] + p[3]; p[4] = p[5] / p[6]; p[7] = "
           "sqrt_f32(p[8]); }\n",
           texts.prelude);
  assert_non_null(ptx = compiled(unit, "--gpu-architecture=compute_80"));
  assert_null(strstr(ptx, "fma.rn.f32"));
  assert_null(strstr(ptx, ".ftz"));
  assert_non_null(strstr(ptx, "div.rn.f32"));
  assert_non_null(strstr(ptx, "sqrt.rn.f32"));
  free(ptx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_refuses), cmocka_unit_test(test_compute_80),
                                     cmocka_unit_test(test_compute_90)};
  if (find_nvrtc()) texts = texts_collect("CUDA");
  int rc = cmocka_run_group_tests(tests, NULL, NULL);
  texts_free(&texts);
  return rc;
}
