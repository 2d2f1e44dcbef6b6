/* test_beam.c: opts by trial (TG_BEAM). What is found computes what the heuristic's opts compute, on the CPU
 * and on the emulated GPU, and is found on disk the next time. */
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { M = 12, K = 40, N = 24 };

/* One product of this type, and how many programs were compiled for it. */
static uint64_t product(const char *device, TgDType dtype, const char *beam, float *out) {
  setenv("TG_BEAM", beam, 1), setenv("TG_EMU", "1", 1);
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .threads = 1});
  unsetenv("TG_BEAM");
  float a[M * K], b[K * N];
  for (int i = 0; i < M * K; i++)
    a[i] = (float)(i % 13) - 6;
  for (int i = 0; i < K * N; i++)
    b[i] = (float)(i % 7) - 3;
  TgTensor *x = tg_from(ctx, a, TG_F32, TG_SHAPE(M, K)), *y = tg_from(ctx, b, TG_F32, TG_SHAPE(K, N));
  x = tg_contiguous(tg_cast(x, dtype)), y = tg_contiguous(tg_cast(y, dtype));
  TgTensor *xy = tg_matmul(x, y, .dtype = TG_F32);
  if (tg_realize(x) || tg_realize(y) || tg_read(xy, out, M * N * sizeof *out))
    fail_msg("%s: %s", device, tg_errmsg(ctx));
  const char *name;
  uint64_t entries = 0;
  for (int i = 0; tg_info(ctx, i, &name); i++)
    if (!strcmp(name, "cache"))
      sscanf(strchr(tg_info(ctx, i, &name), ':') + 1, "%llu", (unsigned long long *)&entries);
  tg_close(ctx);
  return entries;
}

static void same_values(void **state) {
  static const struct {
    const char *device;
    TgDType dtype; /* f16: matrix units are tried */
  } cases[] = {{"CPU", TG_F32}, {"CUDA", TG_F32}, {"CUDA", TG_F16}};

  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    float plain[M * N], found[M * N], again[M * N];
    product(cases[c].device, cases[c].dtype, "0", plain);
    uint64_t entries = product(cases[c].device, cases[c].dtype, "1", found);
    assert_true(product(cases[c].device, cases[c].dtype, "1", again) ==
                entries); /* nothing new was compiled */
    for (int i = 0; i < M * N; i++)
      assert_true(plain[i] == found[i] && found[i] == again[i]); /* whole numbers: exact in any order */
  }
}

int main(void) {
  char folder[] = "/tmp/tg_beam_XXXXXX", command[100];
  if (!mkdtemp(folder)) return 1;
  setenv("XDG_CACHE_HOME", folder, 1), setenv("TG_CACHE", "1", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_values)};
  int rc = cmocka_run_group_tests(tests, NULL, NULL);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) ? 1 : rc;
}
