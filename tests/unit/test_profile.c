/* test_profile.c: profiles. The file is read as JSON; what it says of launches is held against what
 * tg_watch_launches and the counters say, and its spans against each other. */
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#ifdef TG_HAVE_JANSSON
#include <jansson.h>

enum { HOST = 1, DEVICE = 2 }; /* tracks */

static char folder[] = "/tmp/tg-profile-test-XXXXXX";

static const char *in_folder(const char *name) {
  static char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static TgStatus step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  out[0] = tg_sum(tg_mul(in[0], in[0]));
  return tg_error(ctx);
}

/* Eager, captured and replayed work; the number of launches. */
static uint64_t work(TgContext *ctx) {
  float x[64 * 64], y;
  for (int i = 0; i < 64 * 64; i++)
    x[i] = (float)(i % 7);
  uint64_t before = tg_counters(ctx).launches;
  TG_SCOPE(ctx) {
    TgTensor *a = tg_from(ctx, x, TG_F32, TG_SHAPE(64, 64)), *s = tg_sum(tg_softmax(tg_matmul(a, a)));
    assert_int_equal(tg_read(s, &y, sizeof y), TG_OK);
    assert_true(fabs((double)y - 64) < 1e-3);
    TgJit *j = tg_jit(ctx, step, NULL);
    for (int i = 0; i < 4; i++)
      assert_int_equal(tg_jit_run(j, &a, 1, &s, 1), TG_OK);
    assert_int_equal(tg_sync(ctx), TG_OK);
    tg_jit_free(j);
  }
  return tg_counters(ctx).launches - before;
}

static json_t *loaded(const char *path) {
  json_error_t e;
  json_t *v = json_load_file(path, 0, &e);
  if (!v) fail_msg("%s: line %d: %s", path, e.line, e.text);
  assert_true(json_is_array(v));
  return v;
}

static double number(const json_t *v, const char *key) { return json_number_value(json_object_get(v, key)); }

static const char *name_of(const json_t *v) { return json_string_value(json_object_get(v, "name")); }

static int count(const json_t *all, const char *name) {
  int n = 0;
  for (size_t i = 0; i < json_array_size(all); i++)
    n += !strcmp(name_of(json_array_get(all, i)), name);
  return n;
}

static bool is(const json_t *e, const char *kind) {
  const char *cat = json_string_value(json_object_get(e, "cat"));
  return cat && !strcmp(cat, kind);
}

/* The slices of a track follow one another. Of a device, idle or busy, they leave no gap of 2 us. */
static void one_after_another(const json_t *all, int track, bool whole) {
  double end = 0;
  for (size_t i = 0; i < json_array_size(all); i++) {
    const json_t *e = json_array_get(all, i);
    if (number(e, "tid") != track || strcmp(json_string_value(json_object_get(e, "ph")), "X")) continue;
    double a = number(e, "ts");
    if (a < end - 0.01) fail_msg("track %d: %s at %.3f, before %.3f", track, name_of(e), a, end);
    if (whole && a > end + 2) fail_msg("track %d: nothing from %.3f to %.3f", track, end, a);
    end = a + number(e, "dur");
  }
}

/* A launch lies in a span of the host; spans lie in one another or apart. */
static void nested(const json_t *all) {
  for (size_t i = 0; i < json_array_size(all); i++) {
    const json_t *e = json_array_get(all, i);
    bool inside = number(e, "tid") == HOST || !is(e, "kernel"); /* a device's are idle, or of its threads */
    double a = number(e, "ts"), b = a + number(e, "dur");
    if (strcmp(json_string_value(json_object_get(e, "ph")), "X")) continue;
    for (size_t k = 0; k < json_array_size(all); k++) {
      const json_t *o = json_array_get(all, k);
      double c = number(o, "ts"), d = c + number(o, "dur");
      if (k == i || number(o, "tid") != HOST || strcmp(json_string_value(json_object_get(o, "ph")), "X"))
        continue;
      inside |= c <= a + 0.01 && b <= d + 0.01;
      bool apart = b <= c + 0.01 || d <= a + 0.01,
           within = (c <= a + 0.01 && b <= d + 0.01) || (a <= c + 0.01 && d <= b + 0.01);
      if (number(e, "tid") == HOST && !apart && !within)
        fail_msg("%s and %s overlap", name_of(e), name_of(o));
    }
    if (!inside) fail_msg("%s is in no span of the host", name_of(e));
  }
}

static void test_trace(void **state) {
  (void)state;
  TgContext *ctx = tg_open_with(.seed = 1);
  assert_int_equal(tg_error(ctx), TG_OK);
  const char *path = in_folder("trace.json");
  for (int turn = 0; turn < 2; turn++) { /* an older file is replaced */
    assert_int_equal(tg_profile_start(ctx, path), TG_OK);
    uint64_t launches = work(ctx), kernels = 0;
    assert_int_equal(tg_profile_stop(ctx), TG_OK);
    json_t *all = loaded(path);
    for (size_t i = 0; i < json_array_size(all); i++) {
      const json_t *e = json_array_get(all, i), *args = json_object_get(e, "args");
      const char *cat = json_string_value(json_object_get(e, "cat"));
      if (!cat || strcmp(cat, "kernel")) continue;
      kernels++;
      assert_true(number(e, "dur") >= 0 && number(args, "estimated_us") >= 0);
      assert_true(number(args, "bytes") > 0 && number(args, "roof_percent") >= 0);
      assert_true(json_is_false(json_object_get(args, "queue")));
    }
    one_after_another(all, DEVICE, true);
    assert_int_equal(kernels, launches);
    assert_true(count(all, "thread_name") >= 2); /* and of threads that shared a launch */
    assert_int_equal(count(all, "first run"), 1);
    assert_int_equal(count(all, "capture"), 1);
    assert_int_equal(count(all, "replay"), 2);
    assert_true(count(all, "realize") >= 1 && count(all, "read") == 1);
    assert_int_equal(!count(all, "schedule"), turn); /* plans are in the cache the second time */
    if (!turn) assert_true(count(all, "lower") >= 1);
    nested(all);
    json_decref(all);
    uint64_t more = work(ctx); /* after its end nothing is told */
    assert_true(more > 0);
  }
  tg_close(ctx);
}

/* A large product on a CPU of two cores: the threads that shared it have tracks. */
static void test_threads(void **state) {
  (void)state;
  setenv("TG_THREADS", "2", 1);
  TgContext *ctx = tg_open_with(.device = "CPU", .seed = 1, .cores = 2);
  unsetenv("TG_THREADS");
  if (tg_error(ctx)) { /* no compiler here */
    tg_close(ctx);
    return;
  }
  const char *path = in_folder("threads.json");
  assert_int_equal(tg_profile_start(ctx, path), TG_OK);
  /* many, because on a busy machine one thread may have done the whole of a launch when the other wakes */
  for (int i = 0; i < 60; i++)
    assert_int_equal(
        tg_realize(tg_matmul(tg_rand(ctx, TG_SHAPE(512, 512)), tg_rand(ctx, TG_SHAPE(512, 512)))), TG_OK);
  assert_int_equal(tg_profile_stop(ctx), TG_OK);
  json_t *all = loaded(path);
  int parts[2] = {0, 0}, named = 0;
  for (size_t i = 0; i < json_array_size(all); i++) {
    const json_t *e = json_array_get(all, i);
    int thread = (int)number(e, "tid") - 1000;
    named += thread >= 0 && !strcmp(name_of(e), "thread_name");
    if (is(e, "thread")) assert_in_range(thread, 0, 1), parts[thread]++;
  }
  assert_true(parts[0] >= 2 && parts[1] >= 2);
  assert_int_equal(named, 2);
  one_after_another(all, 1000, false), one_after_another(all, 1001, false);
  json_decref(all);
  tg_close(ctx);
}

/* A device with a queue has a clock of its own: the host waits for it, and says so. */
static void test_queue(void **state) {
  (void)state;
  setenv("TG_EMU", "1", 1);
  TgContext *ctx = tg_open_with(.device = "CUDA", .seed = 1);
  unsetenv("TG_EMU");
  assert_int_equal(tg_error(ctx), TG_OK);
  const char *path = in_folder("queue.json");
  assert_int_equal(tg_profile_start(ctx, path), TG_OK);
  uint64_t launches = work(ctx);
  assert_int_equal(tg_profile_stop(ctx), TG_OK);
  json_t *all = loaded(path);
  uint64_t kernels = 0, waits = 0;
  for (size_t i = 0; i < json_array_size(all); i++) {
    const json_t *e = json_array_get(all, i);
    waits += number(e, "tid") == HOST && is(e, "wait") && !strcmp(name_of(e), "wait");
    if (!is(e, "kernel")) continue;
    kernels++;
    assert_true(json_is_true(json_object_get(json_object_get(e, "args"), "queue")));
  }
  assert_int_equal(kernels, launches);
  assert_int_equal(waits, launches);
  one_after_another(all, DEVICE, false);
  json_decref(all);
  tg_close(ctx);
}

static void test_limits(void **state) {
  (void)state;
  TgContext *ctx = tg_open_with(.device = "INTERP");
  assert_int_equal(tg_profile_stop(ctx), TG_OK);
  assert_int_equal(tg_profile_start(ctx, NULL), TG_ERR_VALUE), tg_clear_error(ctx);
  assert_int_equal(tg_profile_start(ctx, ""), TG_ERR_VALUE), tg_clear_error(ctx);
  assert_int_equal(tg_profile_start(ctx, in_folder("no/such/place")), TG_ERR_IO);
  assert_non_null(strstr(tg_errmsg(ctx), "no/such/place")), tg_clear_error(ctx);
  assert_int_equal(tg_profile_start(ctx, in_folder("a.json")), TG_OK);
  assert_int_equal(tg_profile_start(ctx, in_folder("b.json")), TG_ERR_STATE), tg_clear_error(ctx);
  tg_close(ctx); /* ends it */
  json_decref(loaded(in_folder("a.json")));
  assert_int_equal(tg_profile_start(NULL, "x"), TG_ERR_VALUE);
  assert_int_equal(tg_profile_stop(NULL), TG_OK);
  if (access("/dev/full", W_OK)) return;
  ctx = tg_open_with(.device = "INTERP");
  assert_int_equal(tg_profile_start(ctx, "/dev/full"), TG_OK);
  work(ctx); /* what cannot be written does no harm */
  assert_int_equal(tg_error(ctx), TG_OK);
  assert_int_equal(tg_profile_stop(ctx), TG_ERR_IO);
  tg_close(ctx);
}

/* Contexts that TG_PROFILE asks of: a file each, and none is lost. */
static void test_environment(void **state) {
  (void)state;
  char second[320];
  setenv("TG_PROFILE", in_folder("env.json"), 1);
  TgContext *a = tg_open_with(.device = "INTERP"), *b = tg_open_with(.device = "INTERP");
  unsetenv("TG_PROFILE");
  uint64_t n = work(a), m = work(b) + work(b);
  tg_close(b), tg_close(a);
  snprintf(second, sizeof second, "%s.2", in_folder("env.json"));
  for (int i = 0; i < 2; i++) {
    json_t *all = loaded(i ? second : in_folder("env.json"));
    uint64_t kernels = 0;
    for (size_t k = 0; k < json_array_size(all); k++)
      kernels += json_object_get(json_object_get(json_array_get(all, k), "args"), "estimated_us") != NULL;
    assert_int_equal(kernels, i ? m : n);
    json_decref(all);
  }
  setenv("TG_PROFILE", in_folder("no/such/place"), 1);
  a = tg_open_with(.device = "INTERP");
  unsetenv("TG_PROFILE");
  assert_int_equal(tg_error(a), TG_ERR_IO);
  tg_close(a);
}

static int folder_new(void **state) {
  (void)state;
  return mkdtemp(folder) == NULL;
}

static int folder_end(void **state) {
  char line[100];
  (void)state;
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_trace), cmocka_unit_test(test_threads),
                                     cmocka_unit_test(test_queue), cmocka_unit_test(test_limits),
                                     cmocka_unit_test(test_environment)};
  return cmocka_run_group_tests(tests, folder_new, folder_end);
}
#else
int main(void) { return 0; }
#endif
