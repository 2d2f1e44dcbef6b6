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

/* One product, and how many programs were compiled for it. */
static uint64_t product(const char *device, const char *beam, float *out) {
  setenv("TG_BEAM", beam, 1), setenv("TG_EMU", "1", 1);
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .threads = 1});
  unsetenv("TG_BEAM");
  float a[M * K], b[K * N];
  for (int i = 0; i < M * K; i++)
    a[i] = (float)(i % 13) - 6;
  for (int i = 0; i < K * N; i++)
    b[i] = (float)(i % 7) - 3;
  TgTensor *x = tg_from(ctx, a, TG_F32, TG_SHAPE(M, K)), *y = tg_from(ctx, b, TG_F32, TG_SHAPE(K, N));
  if (tg_read(tg_matmul(x, y), out, M * N * sizeof *out)) fail_msg("%s: %s", device, tg_errmsg(ctx));
  const char *name;
  uint64_t entries = 0;
  for (int i = 0; tg_info(ctx, i, &name); i++)
    if (!strcmp(name, "cache"))
      sscanf(strchr(tg_info(ctx, i, &name), ':') + 1, "%llu", (unsigned long long *)&entries);
  tg_close(ctx);
  return entries;
}

static void same_values(void **state) {
  static const char *const devices[] = {"CPU", "CUDA"};
  (void)state;
  for (int d = 0; d < 2; d++) {
    float plain[M * N], found[M * N], again[M * N];
    product(devices[d], "0", plain);
    uint64_t entries = product(devices[d], "1", found);
    assert_true(product(devices[d], "1", again) == entries); /* nothing new was compiled */
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
