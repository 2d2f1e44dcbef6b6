/* test_nvrtc.c: NVIDIA's own compiler takes every CUDA text of the suite, down to machine code, without a
 * word. No GPU is needed; where there is no libnvrtc the tests are skipped. Of the golden programs it is
 * known how many registers and how much shared memory their kernels take (tests/kernels/registers.txt;
 * TG_GOLDEN=write writes it), and that none spills. Architectures on the command line are compiled for
 * instead of 80 and 90: test_nvrtc 75 86 120. TG_CUBINS=folder: the machine code is written there, for
 * tests/kernels/sass.py. */
#define _GNU_SOURCE
#include "runtime/cuda.h"
#include "uop/matrix.h"
#include "base/os.h"
#include "kernels/texts.h"
#include "kernels/golden.h"
#include "runtime/device.h"
#include "tensor/context.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void *library;
static CudaApi rtc;
static Texts texts;
static const char *const usual[] = {"80", "90"}, *const *archs = usual;
static int narch = 2;

static void needs_nvrtc(void) {
  if (library) return;
  print_message("skipped: no libnvrtc here (searched the loader's path, CUDA_PATH, /usr/local/cuda)\n");
  skip();
}

/* The machine code of a unit, where it is asked for. */
static void code_kept(nvrtcProgram p, const char *arch) {
  static int written;
  const char *folder = getenv("TG_CUBINS");
  size_t n = 0;
  char path[600], *code = NULL;
  if (!folder || rtc.unit_cubin_size(p, &n) || !n || !(code = calloc(n, 1))) return;
  snprintf(path, sizeof path, "%s/sm_%s-%d.cubin", folder, arch, written++);
  FILE *f = rtc.unit_cubin(p, code) ? NULL : fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(code, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
  free(code);
}

/* What the compiler and ptxas say of a unit, for the caller to free. *ok: it compiles. */
static char *log_of(const char *unit, const char *arch, bool *ok, char **ptx) {
  char option[64];
  snprintf(option, sizeof option, "--gpu-architecture=sm_%s", arch);
  const char *options[] = {
      option, "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--ptxas-options=-v"};
  nvrtcProgram p;
  size_t n = 0;
  assert_int_equal(rtc.unit_create(&p, unit, "kernels.cu", 0, NULL, NULL), 0);
  *ok = rtc.unit_compile(p, TG_COUNT(options), options) == 0;
  assert_int_equal(rtc.unit_log_size(p, &n), 0);
  char *log = calloc(n + 1, 1);
  assert_non_null(log);
  assert_int_equal(rtc.unit_log(p, log), 0);
  if (*ok) code_kept(p, arch);
  if (ptx && *ok && !rtc.unit_ptx_size(p, &n) && (*ptx = calloc(n + 1, 1))) rtc.unit_ptx(p, *ptx);
  rtc.unit_destroy(&p);
  return log;
}

/* What ptxas says of the kernels of a unit: how many, the most registers and shared bytes, all spilled bytes.
 */
typedef struct Usage {
  int kernels, registers;
  long shared, spilled;
} Usage;

static Usage usage_of(const char *log) {
  Usage u = {0};
  for (const char *at = log; (at = strstr(at, "Used ")); at++) {
    const char *end = strchr(at, '\n'), *shared = strstr(at, " bytes smem");
    int registers = atoi(at + 5);
    u.kernels++, u.registers = TG_MAX(u.registers, registers);
    if (!shared || (end && shared > end)) continue;
    while (shared[-1] >= '0' && shared[-1] <= '9')
      shared--;
    u.shared = TG_MAX(u.shared, atol(shared));
  }
  for (const char *at = log; (at = strstr(at, " bytes spill ")); at++) {
    const char *from = at;
    while (from[-1] >= '0' && from[-1] <= '9')
      from--;
    u.spilled += atol(from);
  }
  return u;
}

/* The first line that is more than what was asked to be told; NULL: none. */
static const char *complaint(const char *log) {
  const char *warning = strstr(log, "warning"), *error = strstr(log, "error");
  const char *at = warning ? warning : error;
  while (at && at > log && at[-1] != '\n')
    at--;
  return at;
}

/* Whether a text has steps of matrix units that GPUs of this architecture do not have: they never get it. */
static bool too_new(const char *text, const char *arch) {
  char call[64];
  for (int i = 0; i < MATRIX_COUNT; i++) {
    const MatrixShape *s = &matrix_shapes[i];
    snprintf(call, sizeof call, matrix_in_shared(s) ? "tg_mma_%s(tg_" : "tg_mma_%s(&", s->name);
    bool none = s->since > atoi(arch) || (s->until && (s->until < atoi(arch) || !strchr(arch, 'a')));
    if (none && strstr(text, call)) return true;
  }
  return false;
}

/* The texts that are for this architecture: a list of the same texts. */
static Texts texts_for(const char *arch) {
  Texts t = {.prelude = texts.prelude, .at = calloc(texts.len, sizeof *t.at)};
  assert_non_null(t.at);
  for (size_t i = 0; i < texts.len; i++)
    if (!too_new(texts.at[i].source, arch)) t.at[t.len++] = texts.at[i];
  return t;
}

static void test_every_text(void **state) {
  (void)state;
  needs_nvrtc();

  enum { BATCH = 40 };

  assert_in_range(texts.len, 100, 100000);
  int failed = 0;
  for (int a = 0; a < narch; a++) {
    long spilled = 0;
    Texts known = texts_for(archs[a]);
    assert_in_range(known.len, 100, texts.len);
    for (size_t i = 0; i < known.len; i += BATCH) {
      size_t n = known.len - i < BATCH ? known.len - i : BATCH;
      bool ok;
      char *unit = texts_unit(&known, i, n), *log = log_of(unit, archs[a], &ok, NULL);
      Usage u = usage_of(log);
      const char *said = complaint(log);
      if (!ok || said) print_message("sm_%s: %.300s\n", archs[a], said ? said : log), failed++;
      if (u.kernels != (int)n)
        print_message("sm_%s: %d kernels in, %d out\n", archs[a], (int)n, u.kernels), failed++;
      spilled += u.spilled;
      free(unit), free(log);
    }
    print_message("sm_%s: %d kernels, %ld bytes spilled\n", archs[a], (int)known.len, spilled);
    free(known.at);
  }
  assert_int_equal(failed, 0);
}

/* ---- registers */
static char *file_text(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *text = calloc(1 << 20, 1);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
  fclose(f);
  return text;
}

/* The golden text of a program, with each kernel under a name of its own. */
static char *golden_unit(const char *name) {
  char path[600];
  snprintf(path, sizeof path, "%s/tests/kernels/golden/%s.cu", TG_SOURCE_DIR, name);
  char *golden = file_text(path);
  if (!golden) return NULL;
  char *unit = calloc(1 << 21, 1), *to = unit;
  assert_non_null(unit);
  to += sprintf(to, "%s", texts.prelude);
  int kernels = 0;
  for (const char *at = golden; *at;) {
    const char *head = strstr(at, "__global__"), *open = head ? strchr(strchr(head, ')'), '(') : NULL;
    if (!open) {
      to += sprintf(to, "%s", at);
      break;
    }
    to += sprintf(to, "%.*s__%d", (int)(open - at), at, kernels++);
    at = open;
    const char *next = strstr(at, "extern \"C\" __global__");
    size_t n = next ? (size_t)(next - at) : strlen(at);
    to += sprintf(to, "%.*s", (int)n, at);
    at += n;
  }
  free(golden);
  return unit;
}

/* Compilers differ a little: a fifth more registers than are listed are no news. */
static void test_registers(void **state) {
  (void)state;
  needs_nvrtc();
  char path[600], name[64];
  const char *mode = getenv("TG_GOLDEN");
  bool writes = mode && !strcmp(mode, "write");
  int listed = 0, registers, bad = 0;
  long shared;
  snprintf(path, sizeof path, "%s/tests/kernels/registers.txt", TG_SOURCE_DIR);
  FILE *f = fopen(path, writes ? "w" : "r");
  assert_non_null(f);
  if (writes) {
    fprintf(f, "program registers shared   (the most of its kernels, sm_90)\n");
    for (int i = 0; i < golden_count; i++) {
      bool ok;
      char *unit = golden_unit(golden_programs[i].name), *log = unit ? log_of(unit, "90", &ok, NULL) : NULL;
      Usage u = usage_of(log ? log : "");
      if (u.kernels) fprintf(f, "%s %d %ld\n", golden_programs[i].name, u.registers, u.shared);
      free(unit), free(log);
    }
    fclose(f);
    return;
  }
  assert_non_null(fgets((char[200]){0}, 200, f));
  for (; fscanf(f, "%63s %d %ld", name, &registers, &shared) == 3; listed++) {
    bool ok;
    char *unit = golden_unit(name);
    assert_non_null(unit);
    char *log = log_of(unit, "90", &ok, NULL);
    Usage u = usage_of(log);
    bool fine = ok && !u.spilled && u.registers <= registers + registers / 5 + 4 && u.shared <= shared + 1024;
    if (!fine)
      print_message("%s: %d registers (%d), %ld shared (%ld), %ld spilled %s\n", name, u.registers, registers,
                    u.shared, shared, u.spilled, ok ? "" : log);
    bad += !fine;
    free(unit), free(log);
  }
  fclose(f);
  assert_int_equal(bad, 0);
  assert_in_range(listed, 30, 1000);
}

/* What is refused is seen to be refused: the tests above can fail. And nothing is fused behind our back. */
static void test_refuses(void **state) {
  (void)state;
  needs_nvrtc();
  char unit[1 << 15], *ptx = NULL;
  bool ok;
  snprintf(unit, sizeof unit, "%sextern \"C\" __global__ void k(f32 *p) { p[0] = undeclared; }\n",
           texts.prelude);
  char *log = log_of(unit, "80", &ok, NULL);
  assert_false(ok);
  assert_non_null(complaint(log));
  free(log);
  snprintf(unit, sizeof unit,
           "%sextern \"C\" __global__ void k(f32 *p) { p[0] = p[1] * p[2] + p[3]; p[4] = p[5] / p[6]; p[7] = "
           "sqrt_f32(p[8]); }\n",
           texts.prelude);
  free(log_of(unit, "80", &ok, &ptx));
  assert_non_null(ptx);
  assert_null(strstr(ptx, "fma.rn.f32"));
  assert_null(strstr(ptx, ".ftz"));
  assert_non_null(strstr(ptx, "div.rn.f32"));
  assert_non_null(strstr(ptx, "sqrt.rn.f32"));
  free(ptx);
}

/* Products that are given to units of four warps: ptxas has the steps follow each other as they stand, and holds
 * all sums in registers. */
static void test_groups(void **state) {
  (void)state;
  needs_nvrtc();

  static const struct {
    const char *a, *b;
  } products[] = {{"r0, r2", "r2, r1"}, {"r0, r2", "r1, r2"}, {"r2, r0", "r2, r1"}, {"r2, r0", "r1, r2"}};

  for (size_t i = 0; i < TG_COUNT(products); i++) {
    char kernel[600];
    bool ok;
    TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:CUDA"});
    Target *t = &c->devices.at[0]->target;
    t->matrices = matrix_rows(MATRIX_CUDA, 90);
    t->local_most = 227 << 10;
    snprintf(kernel, sizeof kernel,
             "p0 = PARAM[bf16, 0, 16777216](4096, 4096)\np1 = PARAM[bf16, 1, 16777216](4096, 4096)\n"
             "p2 = PARAM[bf16, 2, 16777216](4096, 4096)\nr0 = RANGE[0, GLOBAL](4096)\n"
             "r1 = RANGE[1, GLOBAL](4096)\nr2 = RANGE[2, REDUCE](4096)\n"
             "s = SINK(STORE(INDEX(p0, r0, r1), CAST[bf16](REDUCE[ADD](CAST[f32](INDEX(p1, %s)) * "
             "CAST[f32](INDEX(p2, %s)), r2)), r0, r1))\n",
             products[i].a, products[i].b);
    const char *text = tg_opt(c, kernel, .emit = "cuda");
    if (!text) fail_msg("%s", tg_errmsg(c));
    assert_non_null(strstr(text, "tg_group_commit();"));
    char *log = log_of(text, "90a", &ok, NULL);
    Usage u = usage_of(log);
    if (!ok || u.spilled || u.kernels != 1 || complaint(log) || strstr(log, "(C7")) fail_msg("%s", log);
    free(log);
    tg_close(c);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_refuses), cmocka_unit_test(test_groups),
                                     cmocka_unit_test(test_registers), cmocka_unit_test(test_every_text)};
  TgError err = {0};
  if (argc > 1) archs = (const char *const *)argv + 1, narch = argc - 1;
  if (!nvrtc_load(&tg_os_default, &err, NVRTC_ANY, &library, &rtc)) texts = texts_collect("CUDA");
  int rc = cmocka_run_group_tests(tests, NULL, NULL);
  texts_free(&texts);
  if (library) tg_os_default.library_close(library);
  return rc;
}
