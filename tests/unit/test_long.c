/* test_long.c: a chain of additions far deeper than the stack, which is 256 KiB: built, scheduled, lowered
 * and run, forward and backward. Memory stays below 2 KiB per addition. The full size, a million additions
 * within 2 GiB, about 20 s; under `prlimit --as=2147483648` the system holds the limit as well:
 *
 *   TG_LONG=1000000 build/test_long */
#include "tg.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
enum { SANITIZER = 1 };
#else
enum { SANITIZER = 0 };
#endif
enum { STACK = 256 << 10, BASE = 64 << 20 };

static int length(void) {
  const char *t = getenv("TG_LONG");
  int n = t ? atoi(t) : 0;
  return n > 0 ? n : SANITIZER ? 20000 : 50000;
}

/* In a thread of its own: asserts are made by the test that waits for it. */
typedef struct Run {
  const char *device;
  int n;
  bool backward;
  float got[3];
  TgCounters counters;
  char error[512];
} Run;

static void *run(void *arg) {
  Run *r = arg;
  const float v[3] = {1, 2, 3};
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = r->device});
  TgTensor *x = tg_requires_grad(tg_from(ctx, v, TG_F32, TG_SHAPE(3)), true), *z = x;
  for (int i = 0; i < r->n; i++)
    z = tg_add(z, x);
  if (r->backward) z = tg_backward(tg_sum(z)) ? NULL : tg_grad(x);
  TgStatus s = z ? tg_read(z, r->got, sizeof r->got) : tg_error(ctx);
  r->counters = tg_counters(ctx);
  if (s) snprintf(r->error, sizeof r->error, "%s: %s", tg_status_name(s), tg_errmsg(ctx));
  tg_close(ctx);
  return NULL;
}

static size_t peak_bytes(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (size_t)u.ru_maxrss * 1024;
}

static void in_small_thread(Run *r) {
  pthread_attr_t attr;
  pthread_t t;
  assert_int_equal(pthread_attr_init(&attr), 0);
  assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
  assert_int_equal(pthread_create(&t, &attr, run, r), 0);
  assert_int_equal(pthread_join(t, NULL), 0);
  pthread_attr_destroy(&attr);
  if (*r->error) fail_msg("%d additions on %s: %s", r->n, r->device, r->error);
  if (!SANITIZER && peak_bytes() > BASE + 2048 * (size_t)r->n)
    fail_msg("%d additions on %s: %zu bytes", r->n, r->device, peak_bytes());
}

static void test_runs(void **state) {
  (void)state;
  Run r = {.device = "INTERP", .n = length()};
  in_small_thread(&r);
  /* exact below 2^24 */
  for (int i = 0; i < 3; i++)
    assert_true(r.got[i] == (float)(i + 1) * (float)(r.n + 1));
  assert_int_equal(r.counters.kernels, 1);
}

static void test_renders(void **state) {
  (void)state;
  Run r = {.device = "NULL:C", .n = length()};
  in_small_thread(&r);
  assert_int_equal(r.counters.kernels, 1);
}

static void test_gradient(void **state) {
  (void)state;
  Run r = {.device = "INTERP", .n = length(), .backward = true};
  in_small_thread(&r);
  for (int i = 0; i < 3; i++)
    assert_true(r.got[i] == (float)(r.n + 1));
}

/* Compiled without optimisation where it is long, interpreted where it is longer still. */
static void test_compiled(void **state) {
  (void)state;
  Run r = {.device = "CPU", .n = getenv("TG_LONG") ? length() : 25000};
  in_small_thread(&r);
  for (int i = 0; i < 3; i++)
    assert_true(r.got[i] == (float)(i + 1) * (float)(r.n + 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_runs), cmocka_unit_test(test_renders),
                                     cmocka_unit_test(test_gradient), cmocka_unit_test(test_compiled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
