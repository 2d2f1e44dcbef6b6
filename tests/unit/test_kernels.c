/* test_kernels.c: the golden kernels. Each program of tests/kernels/golden.c is rendered in C, CUDA C++ and
 * MSL and compared byte for byte with tests/kernels/NAME.{c,cu,metal}; `make golden` rewrites those files for
 * review. Each is then run on every device that runs anything, and on the CPU with traps on undefined
 * behaviour, and compared with plain loops. */
#include "kernels/golden.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct Text {
  char *at;
  size_t len;
} Text;

static void append(Text *t, const char *s) {
  size_t n = strlen(s);
  t->at = realloc(t->at, t->len + n + 1);
  assert_non_null(t->at);
  memcpy(t->at + t->len, s, n + 1);
  t->len += n;
}

static void take(const TgKernelText *k, void *user) {
  Text *t = user;
  if (t->len) append(t, "\n");
  append(t, k->source);
}

static TgContext *opened(const char *device) {
  TgContext *ctx =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = GOLDEN_SEED});
  if (!ctx || tg_error(ctx)) fail_msg("%s: %s", device, tg_errmsg(ctx));
  return ctx;
}

static Text rendered(const char *device, const Golden *g) {
  golden_env(g, device);
  TgContext *ctx = opened(device);
  golden_env(NULL, NULL);
  Text t = {0};
  TgTensor *out[GOLDEN_OUTPUTS];
  tg_watch_kernels(ctx, take, &t);
  int n = g->build(ctx, out);
  if (!n || tg_realize_many(out, (size_t)n)) fail_msg("%s on %s: %s", g->name, device, tg_errmsg(ctx));
  tg_close(ctx);
  return t;
}

static Text file_text(const char *path) {
  Text t = {0};
  FILE *f = fopen(path, "rb");
  char buf[4096];
  append(&t, "");
  while (f && fgets(buf, sizeof buf, f))
    append(&t, buf);
  if (f) fclose(f);
  return t;
}

static void same_as_file(const char *path, const Text *now) {
  const char *mode = getenv("TG_GOLDEN");
  if (mode && !strcmp(mode, "write")) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(now->at, 1, now->len, f) != now->len || fclose(f))
      fail_msg("%s cannot be written", path);
    return;
  }
  Text old = file_text(path);
  int line = 1;
  const char *a = old.at, *b = now->at;
  for (; *a && *a == *b; a++, b++)
    line += *a == '\n';
  if (*a || *b) {
    while (a > old.at && a[-1] != '\n')
      a--, b--;
    fail_msg("%s:%d\n  is    %.*s\n  was   %.*s\n`make golden` rewrites the files; look at their diff", path,
             line, (int)strcspn(b, "\n"), b, (int)strcspn(a, "\n"), a);
  }
  free(old.at);
}

static const struct {
  const char *device, *suffix;
} languages[] = {{"NULL:C", "c"}, {"NULL:CUDA", "cu"}, {"NULL:METAL", "metal"}};

enum { LANGUAGES = 3, MOST_LINES = 200 };

static void test_text(void **state) {
  (void)state;
  int long_ones = 0;
  for (int l = 0; l < LANGUAGES; l++) {
    char path[512];
    for (int i = 0; i < golden_count; i++) {
      Text t = rendered(languages[l].device, &golden_programs[i]);
      int lines = 0;
      for (size_t k = 0; k < t.len; k++)
        lines += t.at[k] == '\n';
      if (lines < 3 || lines > MOST_LINES)
        print_message("%s on %s: %d lines\n", golden_programs[i].name, languages[l].device, lines),
            long_ones++;
      snprintf(path, sizeof path, TG_SOURCE_DIR "/tests/kernels/golden/%s.%s", golden_programs[i].name,
               languages[l].suffix);
      same_as_file(path, &t);
      free(t.at);
    }
    TgContext *ctx = opened(languages[l].device);
    Text t = {0};
    append(&t, tg_source_prelude(ctx));
    snprintf(path, sizeof path, TG_SOURCE_DIR "/tests/kernels/golden/prelude.%s", languages[l].suffix);
    same_as_file(path, &t);
    free(t.at);
    tg_close(ctx);
  }
  assert_int_equal(long_ones, 0);
}

/* The text depends on the program alone: not on what ran before in the context, not on TG_THREADS. */
static void test_text_alone(void **state) {
  (void)state;
  for (int l = 0; l < LANGUAGES; l++) {
    setenv("TG_THREADS", "3", 1);
    TgContext *ctx = opened(languages[l].device);
    unsetenv("TG_THREADS");
    for (int i = golden_count; i-- > 0;) {
      const Golden *g = &golden_programs[i];
      /* the place in the sequence is a part of the program; opts are of a context */
      if (!strcmp(g->name, "random") || g->grid_opts) continue;
      Text t = {0}, alone = rendered(languages[l].device, g);
      TgTensor *out[GOLDEN_OUTPUTS];
      tg_cache_clear(ctx);
      tg_watch_kernels(ctx, take, &t);
      int n = g->build(ctx, out);
      if (!n || tg_realize_many(out, (size_t)n)) fail_msg("%s: %s", g->name, tg_errmsg(ctx));
      assert_string_equal(t.at, alone.at);
      free(t.at), free(alone.at);
    }
    tg_close(ctx);
  }
}

/* What a watcher is told: language, launch, opts; each kernel once; nothing any more after NULL. */
typedef struct Seen {
  int n, threads, blocks, in_block, texts;
  char language[16], opts[128];
} Seen;

static void see(const TgKernelText *k, void *user) {
  Seen *s = user;
  s->n++, s->threads = k->threads, s->blocks = k->grid[0] * k->grid[1] * k->grid[2],
          s->in_block = k->block[0] * k->block[1] * k->block[2];
  s->texts += *k->source && strstr(k->source, k->name) && strstr(k->source, k->opts);
  assert_int_equal(k->size, sizeof *k);
  snprintf(s->language, sizeof s->language, "%s", k->language),
      snprintf(s->opts, sizeof s->opts, "%s", k->opts);
}

static Seen seen_on(const char *device, int cores, int times) {
  Seen s = {0};
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .cores = cores});
  assert_int_equal(tg_error(ctx), TG_OK);
  tg_watch_kernels(ctx, see, &s);
  for (int i = 0; i < times; i++) {
    TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(512, 1024));
    assert_int_equal(tg_realize(tg_mul(x, x)), TG_OK);
  }
  tg_watch_kernels(ctx, NULL, NULL);
  tg_cache_clear(ctx);
  TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(512, 1024));
  assert_int_equal(tg_realize(tg_mul(x, x)), TG_OK);
  tg_close(ctx);
  return s;
}

static void test_watch(void **state) {
  (void)state;
  Seen c = seen_on("NULL:C", 0, 3), one = seen_on("NULL:C", 1, 1), gpu = seen_on("NULL:CUDA", 0, 1),
       interp = seen_on("INTERP", 0, 1);
  assert_true(c.n == 1 && c.texts == 1 && c.threads == 8 && !strcmp(c.language, "C") &&
              strstr(c.opts, "THREAD"));
  assert_true(one.threads == 1 && !strstr(one.opts, "THREAD"));
  assert_true(gpu.texts == 1 && gpu.blocks > 1 && gpu.in_block > 1 &&
              gpu.blocks * gpu.in_block <= 512 * 1024 && !strcmp(gpu.language, "CUDA"));
  assert_true(interp.n == 1 && interp.texts == 0 && !*interp.language);
  TgContext *ctx = opened("INTERP");
  assert_string_equal(tg_source_prelude(ctx), "");
  assert_string_equal(tg_source_prelude(NULL), "");
  tg_watch_kernels(NULL, see, NULL);
  tg_close(ctx);
  ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C", .cores = -1});
  assert_int_equal(tg_error(ctx), TG_ERR_VALUE);
  tg_close(ctx);
}

/* ---- launches: what each computes, and how long it takes */
typedef struct Launches {
  int n;
  bool of[4][16]; /* of[part][launch]: the launch computes it */
  bool timed;
} Launches;

static void launch_seen(const TgLaunch *l, void *user) {
  Launches *s = user;
  assert_int_equal(l->size, sizeof *l);
  assert_in_range(s->n, 0, 15);
  for (int i = 0; i < l->nparts; i++) {
    assert_in_range(l->part[i], 0, 3);
    assert_true(i == 0 || l->part[i] > l->part[i - 1]);
    s->of[l->part[i]][s->n] = true;
  }
  s->timed = s->timed && l->microseconds > 0 && *l->name;
  s->n++;
}

enum { SIDE = 96 };

/* Two layers with a softmax between them, and what nothing reads. */
static TgStatus layers_built(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **part, int nparts,
                             void *user) {
  (void)ctx, (void)nin, (void)user;
  part[0] = tg_matmul(in[0], in[1]);
  if (nparts == 1) { /* for the capture: the last layer alone */
    part[0] = tg_matmul(tg_softmax(part[0]), in[2]);
    return TG_OK;
  }
  part[1] = tg_softmax(part[0]);
  part[2] = tg_matmul(part[1], in[2]);
  part[3] = tg_exp(part[0]);
  return TG_OK;
}

static bool computed_by_any(const Launches *s, int part) {
  bool any = false;
  for (int i = 0; i < s->n; i++)
    any |= s->of[part][i];
  return any;
}

static void test_launches(void **state) {
  (void)state;
  TgContext *ctx = opened("CPU");
  TgTensor *in[3], *part[4], *again[4], *y;
  for (int i = 0; i < 3; i++)
    assert_int_equal(tg_realize(in[i] = tg_contiguous(tg_rand(ctx, TG_SHAPE(SIDE, SIDE)))), TG_OK);
  Launches planned = {.timed = true}, cached = {.timed = true}, none = {.timed = true},
           apart = {.timed = true};
  layers_built(ctx, in, 3, part, 4, NULL);
  int n = tg_schedule_parts(&part[2], 1, part, 4, launch_seen, &planned);
  assert_int_equal(n, planned.n);
  assert_true(n >= 2);
  for (int i = 0; i < 3; i++)
    assert_true(computed_by_any(&planned, i));
  assert_false(computed_by_any(&planned, 3)); /* nothing reads it */
  assert_true(planned.of[0][0] && !planned.of[2][0] && planned.of[2][n - 1] && !planned.of[0][n - 1]);
  /* the same from the cache, on other memory */
  assert_int_equal(tg_realize(again[0] = tg_contiguous(tg_rand(ctx, TG_SHAPE(SIDE, SIDE)))), TG_OK);
  layers_built(ctx, (TgTensor *[]){again[0], in[1], in[2]}, 3, again, 4, NULL);
  uint64_t scheduled = tg_counters(ctx).schedules;
  assert_int_equal(tg_schedule_parts(&again[2], 1, again, 4, launch_seen, &cached), n);
  assert_int_equal(tg_counters(ctx).schedules, scheduled);
  assert_memory_equal(planned.of, cached.of, sizeof planned.of);
  /* without fusion no kernel is of two parts */
  int fuse = tg_setting(ctx, "FUSE", 0);
  n = tg_schedule_parts(&part[2], 1, part, 3, launch_seen, &apart);
  for (int k = 0; k < n; k++)
    assert_in_range(apart.of[0][k] + apart.of[1][k] + apart.of[2][k], 0, 1);
  assert_true(computed_by_any(&apart, 0) && computed_by_any(&apart, 1) && computed_by_any(&apart, 2));
  tg_setting(ctx, "FUSE", fuse);
  assert_int_equal(tg_schedule_parts(&part[2], 1, NULL, 0, launch_seen, &none), planned.n);
  assert_int_equal(tg_schedule_parts(&part[2], 1, NULL, 1, launch_seen, &none), -1);
  assert_int_equal(tg_error(ctx), TG_ERR_VALUE), tg_clear_error(ctx);
  /* what is made of numbers alone is no part's, though all parts have it */
  Launches numbers = {.timed = true};
  TgTensor *two[2] = {tg_add(tg_arange(ctx, 0, SIDE, .dtype = TG_F32), tg_full(ctx, TG_SHAPE(SIDE), 2))};
  two[1] = tg_softmax(tg_add(in[0], two[0]));
  assert_true(tg_schedule_parts(&two[1], 1, two, 2, launch_seen, &numbers) >= 1);
  assert_true(computed_by_any(&numbers, 1) && !computed_by_any(&numbers, 0));
  /* measured: plainly, captured, replayed; then no more */
  TgJit *jit = tg_jit(ctx, layers_built, NULL);
  for (int turn = 0; turn < 5; turn++) {
    Launches l = {.timed = true};
    uint64_t before = tg_counters(ctx).launches;
    tg_watch_launches(ctx, turn < 4 ? launch_seen : NULL, &l);
    assert_int_equal(tg_jit_run(jit, in, 3, &y, 1), TG_OK);
    assert_int_equal(l.n, turn < 4 ? (int)(tg_counters(ctx).launches - before) : 0);
    assert_true(l.timed);
  }
  tg_jit_free(jit);
  tg_close(ctx);
}

static void values_on(const char *device) {
  static double want[GOLDEN_OUTPUTS][GOLDEN_ELEMENTS], got[GOLDEN_ELEMENTS];
  for (int i = 0; i < golden_count; i++) {
    const Golden *g = &golden_programs[i];
    golden_env(g, device);
    TgContext *ctx = opened(device);
    golden_env(NULL, NULL);
    TgTensor *out[GOLDEN_OUTPUTS];
    int n = g->build(ctx, out);
    if (!n) fail_msg("%s on %s: %s", g->name, device, tg_errmsg(ctx));
    g->want(want);
    for (int o = 0; o < n; o++) {
      int64_t count = tg_numel(out[o]);
      assert_in_range(count, 1, GOLDEN_ELEMENTS);
      if (tg_read_f64(out[o], got, (size_t)count)) fail_msg("%s on %s: %s", g->name, device, tg_errmsg(ctx));
      for (int k = 0; k < count; k++) {
        double w = want[o][k], x = got[k];
        bool ok = isnan(w) ? isnan(x) : x == w || fabs(x - w) <= g->tol * fmax(1, fabs(w));
        if (!ok) fail_msg("%s on %s: element %d of output %d is %.9g, not %.9g", g->name, device, k, o, x, w);
      }
    }
    tg_close(ctx);
  }
}

static void test_interp(void **state) {
  (void)state;
  values_on("INTERP");
}

static void test_interp_c(void **state) {
  (void)state;
  values_on("INTERP:C");
}

static void test_interp_cuda(void **state) {
  (void)state;
  values_on("INTERP:CUDA");
}

static void test_interp_metal(void **state) {
  (void)state;
  values_on("INTERP:METAL");
}

static void test_cpu(void **state) {
  (void)state;
  values_on("CPU");
}

/* a kernel that does what C leaves undefined ends the process here */
static void test_cpu_traps(void **state) {
  (void)state;
  if (system("{ command -v clang-19 || command -v clang; } >/dev/null")) {
    print_message("skipped: no clang here, whose traps the kernels are built with\n");
    skip();
  }
  setenv("TG_CC", TG_SOURCE_DIR "/tests/kernels/clang-trap", 1);
  values_on("CPU");
  unsetenv("TG_CC");
}

int main(void) {
  static const char *const settings[] = {"TG_NOOPT", "TG_FUSE", "TG_OPTS", "TG_THREADS", "TG_CC"};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
    unsetenv(settings[i]);
  const char *mode = getenv("TG_GOLDEN");
  const struct CMUnitTest write[] = {cmocka_unit_test(test_text)};
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),        cmocka_unit_test(test_text_alone),
                                     cmocka_unit_test(test_watch),       cmocka_unit_test(test_launches),
                                     cmocka_unit_test(test_interp),      cmocka_unit_test(test_interp_c),
                                     cmocka_unit_test(test_interp_cuda), cmocka_unit_test(test_interp_metal),
                                     cmocka_unit_test(test_cpu),         cmocka_unit_test(test_cpu_traps)};
  if (mode && !strcmp(mode, "write")) return cmocka_run_group_tests(write, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
