/* test_cancel.c: waiting for a compiler. tg_cancel ends it and all that it started, at any moment, and
 * nothing stays behind: every block of the allocator comes back, and a second try works. A kernel that no
 * compiler takes fails alone, by its name. The progress of compiling is told. */
#define _GNU_SOURCE
#include "tg.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/tg_test_cancel_XXXXXX";

static int setup(void **state) {
  (void)state;
  unsetenv("TG_CC");
  setenv("TG_CACHE", "0", 1), setenv("TG_FUSE", "0", 1); /* a kernel for each sum */
  return mkdtemp(dir) == NULL;
}

static int teardown(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", dir);
  return system(command);
}

/* A compiler of our own from here on; `real` in the text is one that works. */
static void use_script(const char *name, const char *text) {
  static const char real[] =
      "real=$(command -v clang-19 || command -v clang || command -v gcc || command -v cc)";
  char path[128];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "#!/bin/sh\n%s\nhere=%s\n[ \"$1\" = --version ] && { $real --version; exit; }\n%s\n", real, dir,
          text);
  assert_int_equal(fclose(f), 0);
  assert_int_equal(chmod(path, 0700), 0);
  setenv("TG_CC", path, 1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- an allocator that counts */
static void *take(size_t n, void *user) {
  void *p = malloc(n);
  if (p) atomic_fetch_add((atomic_long *)user, 1);
  return p;
}

static void *resize(void *p, size_t n, void *user) {
  void *q = realloc(p, n);
  if (!p && q) atomic_fetch_add((atomic_long *)user, 1);
  return q;
}

static void give(void *p, void *user) {
  if (p) atomic_fetch_sub((atomic_long *)user, 1);
  free(p);
}

/* ---- tg_cancel after a while */
typedef struct Stop {
  TgContext *ctx;
  long after_us;
  const char *begun; /* a file that holds a number once there is something to cancel; NULL: the time alone */
  double at;
} Stop;

static int number_in(const char *name) {
  char path[128];
  int n = 0;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "r");
  if (f && fscanf(f, "%d", &n) != 1) n = 0;
  if (f) fclose(f);
  return n;
}

static void *stopper(void *user) {
  Stop *s = user;
  for (int i = 0; s->begun && !number_in(s->begun) && i < 6000; i++)
    usleep(10000);
  usleep((useconds_t)s->after_us);
  s->at = now();
  tg_cancel(s->ctx);
  return NULL;
}

/* Eight kernels, of which the last has its constant in its text. The sum of all their elements. */
enum { KERNELS = 8 };

static TgStatus compute(TgContext *c, int n, double *sum) {
  const float v[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  TgTensor *out[KERNELS];
  TgStatus s = TG_OK;
  *sum = 0;
  for (int i = 0; i < n; i++) {
    TgTensor *x = tg_from(c, v, TG_F32, TG_SHAPE(i + 2));
    out[i] = tg_add_scalar(tg_sum(tg_mul(x, x)), i == KERNELS - 1 ? 12345 : i);
  }
  s = tg_realize_many(out, (size_t)n);
  for (int i = 0; i < n && !s; i++)
    *sum += tg_item_f64(out[i]);
  return s ? s : tg_error(c);
}

static double expected(int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    for (int k = 1; k <= i + 2; k++)
      sum += k * k;
    sum += i == KERNELS - 1 ? 12345 : i;
  }
  return sum;
}

/* Cancelled at this moment or not, the work can be done again, and all memory comes back. */
static bool cancelled_at(long after_us) {
  atomic_long live = 0;
  TgAllocator memory = {take, resize, give, &live};
  TgContext *c = tg_open_with(.device = "CPU", .threads = 2, .allocator = &memory);
  assert_int_equal(tg_error(c), TG_OK);
  Stop stop = {.ctx = c, .after_us = after_us};
  pthread_t t;
  assert_int_equal(pthread_create(&t, NULL, stopper, &stop), 0);
  double sum;
  TgStatus s = compute(c, KERNELS, &sum);
  pthread_join(t, NULL);
  if (s != TG_OK && s != TG_ERR_CANCELLED) fail_msg("after %ld us: %s", after_us, tg_errmsg(c));
  if (s == TG_OK) assert_true(sum == expected(KERNELS));
  bool was = s == TG_ERR_CANCELLED;
  tg_clear_error(c);
  if (!was && compute(c, 1, &sum) == TG_ERR_CANCELLED)
    tg_clear_error(c); /* nothing was left to cancel: the next is */
  s = compute(c, KERNELS, &sum);
  if (s) fail_msg("again, after %ld us: %s", after_us, tg_errmsg(c));
  assert_true(sum == expected(KERNELS));
  tg_close(c);
  if (live) fail_msg("after %ld us: %ld blocks stay", after_us, (long)live);
  return was;
}

static void test_moments(void **state) {
  (void)state;
  int cancelled = 0;
  unsetenv("TG_CC");
  for (int i = 0; i < 24; i++)
    cancelled += cancelled_at(i * 4000);
  use_script("slow", "sleep 0.1; exec $real \"$@\""); /* at work for a while, whatever the machine */
  for (int i = 0; i < 16; i++)
    cancelled += cancelled_at(i * 9000);
  unsetenv("TG_CC");
  assert_true(cancelled > 5);
}

/* A compiler that would take for ever, in a process that it started: both are gone at once. */
static void test_ends_the_group(void **state) {
  (void)state;
  use_script("stuck", "sleep 1000 & echo $! > $here/child; echo $$ > $here/parent; wait");
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
  Stop stop = {.ctx = c, .after_us = 100000, .begun = "parent"};
  pthread_t t;
  assert_int_equal(pthread_create(&t, NULL, stopper, &stop), 0);
  double sum;
  assert_int_equal(compute(c, 1, &sum), TG_ERR_CANCELLED);
  double took = now();
  pthread_join(t, NULL);
  took -= stop.at;
  print_message("ended %.0f ms after tg_cancel\n", 1000 * took);
  assert_true(took < 5);
  int parent = number_in("parent"), child = number_in("child");
  for (int i = 0; i < 100 && child && !kill(child, 0); i++) /* whoever inherits it reaps it */
    usleep(50000);
  assert_true(parent > 0 && child > 0);
  assert_true(kill(parent, 0) && errno == ESRCH);
  char path[64], state_of = 'Z';
  snprintf(path, sizeof path, "/proc/%d/stat", child);
  FILE *f = kill(child, 0) ? NULL : fopen(path, "r"); /* nobody reaps it in some containers */
  if (f && fscanf(f, "%*d %*s %c", &state_of) != 1) state_of = 0;
  if (f) fclose(f);
  assert_true(state_of == 'Z');
  tg_clear_error(c), unsetenv("TG_CC");
  tg_close(c);
}

/* One of eight kernels is refused: it is named, the others are compiled and kept. */
static void test_one_bad_kernel(void **state) {
  (void)state;
  use_script("picky", "cat > $here/$$.c; echo x >> $here/starts\n"
                      "grep -q 12345 $here/$$.c && { echo 'no such number' >&2; exit 1; }\n"
                      "exec $real \"$@\" < $here/$$.c");
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1, .cores = 2);
  double sum;
  assert_int_equal(compute(c, KERNELS, &sum), TG_ERR_COMPILE);
  if (strncmp(tg_errmsg(c), "kernel e", 8) || !strstr(tg_errmsg(c), "no such number"))
    fail_msg("%s", tg_errmsg(c));
  tg_clear_error(c);
  char path[128];
  snprintf(path, sizeof path, "%s/starts", dir);
  unlink(path);
  int status = compute(c, KERNELS - 1, &sum);
  if (status) fail_msg("%s", tg_errmsg(c));
  assert_true(sum == expected(KERNELS - 1));
  assert_int_equal(access(path, F_OK), -1); /* nothing was compiled for it */
  tg_close(c);
  unsetenv("TG_CC");
}

/* TG_CC_LIMIT is time of a processor. */
static void test_limit(void **state) {
  (void)state;
  setenv("TG_CC_LIMIT", "1", 1);
  use_script("busy", "while :; do :; done");
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
  double sum;
  assert_int_equal(compute(c, 1, &sum), TG_ERR_COMPILE);
  assert_non_null(strstr(tg_errmsg(c), "took more than 1 s"));
  assert_non_null(strstr(tg_errmsg(c), "kernel "));
  tg_close(c);
  setenv("TG_CC_LIMIT", "60", 1), unsetenv("TG_CC");
}

/* ---- stores that wait */
/* A value is needed from before a store and from after it: neither is lost. */
static void test_around_a_store(void **state) {
  (void)state;
  for (int limit = 0; limit < 2; limit++) {
    TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
    int32_t v[] = {1, 2, 3, 4, 5, 6}, y[6] = {0};
    TgTensor *x = tg_from(c, v, TG_I32, TG_SHAPE(6)), *old = tg_mul_scalar(x, 10);
    tg_assign(x, tg_add_scalar(x, 1));
    TgTensor *both = tg_add(old, x);
    if (limit)
      tg_memory_limit(c, NULL, 1);
    else
      tg_cancel(c);
    assert_int_equal(tg_read(both, y, sizeof y), limit ? TG_ERR_NOMEM : TG_ERR_CANCELLED);
    tg_clear_error(c), tg_memory_limit(c, NULL, 0);
    assert_int_equal(tg_read(both, y, sizeof y), TG_OK);
    for (int k = 0; k < 6; k++)
      assert_int_equal(y[k], 10 * v[k] + v[k] + 1);
    tg_close(c);
  }
}

/* There is no memory for the last kernel of a plan whose first one stores: the store is not done twice. */
static void test_no_half_plan(void **state) {
  (void)state;

  enum { LARGE = 1 << 16 };

  TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
  float y[4] = {0};
  TgTensor *x = tg_clone(tg_full(c, TG_SHAPE(4), 1)), *b = tg_clone(tg_zeros(c, TG_SHAPE(LARGE)));
  assert_int_equal(tg_realize_many((TgTensor *[]){x, b}, 2), TG_OK);
  tg_add_(x, tg_sum(x));
  TgTensor *k = tg_empty(c, TG_F32, TG_SHAPE(LARGE));
  tg_assign(k, tg_add(tg_sum(x), b));
  tg_memory_limit(c, NULL, LARGE * sizeof(float) + 20000);
  assert_int_equal(tg_realize_many((TgTensor *[]){x, k}, 2), TG_ERR_NOMEM);
  tg_clear_error(c), tg_memory_limit(c, NULL, 0);
  assert_int_equal(tg_read(x, y, sizeof y), TG_OK);
  for (int i = 0; i < 4; i++)
    assert_true(y[i] == 5);
  assert_true(tg_item_f64(tg_max(k)) == 20);
  tg_close(c);
}

/* ---- progress */
typedef struct Seen {
  int calls, lowered, compiled, all;
  bool bad;
} Seen;

static void seen(const TgProgress *p, void *user) {
  Seen *s = user;
  int *last = strcmp(p->phase, "lower") ? &s->compiled : &s->lowered;
  s->bad |= p->size != sizeof *p || p->done < *last || p->done > p->all;
  s->bad |= strcmp(p->phase, "lower") && strcmp(p->phase, "compile");
  *last = p->done, s->all = p->all, s->calls++;
}

static void test_progress(void **state) {
  (void)state;
  use_script("slow", "sleep 0.5; exec $real \"$@\"");
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1, .cores = 2);
  Seen s = {0};
  tg_watch_progress(c, seen, &s);
  double sum;
  assert_int_equal(compute(c, KERNELS, &sum), TG_OK);
  assert_false(s.bad);
  print_message("%d calls, %d lowered, %d of %d compiled\n", s.calls, s.lowered, s.compiled, s.all);
  assert_true(s.calls >= 4 && s.lowered >= KERNELS && s.compiled == s.all && s.all >= KERNELS);
  tg_watch_progress(c, NULL, NULL);
  tg_close(c);
  unsetenv("TG_CC");
}

/* What is told may be answered by tg_cancel. */
static void stop_at_once(const TgProgress *p, void *ctx) {
  if (!strcmp(p->phase, "compile")) tg_cancel(ctx);
}

static void test_cancel_from_progress(void **state) {
  (void)state;
  TgContext *c = tg_open_with(.device = "CPU", .threads = 1);
  tg_watch_progress(c, stop_at_once, c);
  double sum;
  assert_int_equal(compute(c, KERNELS, &sum), TG_ERR_CANCELLED);
  tg_watch_progress(c, NULL, NULL), tg_clear_error(c);
  assert_int_equal(compute(c, KERNELS, &sum), TG_OK);
  tg_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_moments),        cmocka_unit_test(test_ends_the_group),
      cmocka_unit_test(test_one_bad_kernel), cmocka_unit_test(test_limit),
      cmocka_unit_test(test_around_a_store), cmocka_unit_test(test_no_half_plan),
      cmocka_unit_test(test_around_a_store), cmocka_unit_test(test_no_half_plan),
      cmocka_unit_test(test_progress),       cmocka_unit_test(test_cancel_from_progress)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
