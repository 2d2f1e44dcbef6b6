/* test_counts.c: the compiler's own work, as counts: kernels of known programs; nodes made, visits and
 * firings for a program and for twice of it. The programs are those of `tg bench lower` (cli/programs.c),
 * lowered for the device that runs nothing. No time is measured. */
#include "programs.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

static TgCounters lower(const char *name, int n) {
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C", .seed = 1});
  assert_non_null(ctx);
  ProgramState *p = program_begin(ctx, program_find(name), n);
  if (!p) fail_msg("%s: %s", name, tg_errmsg(ctx));
  if (program_step(p)) fail_msg("%s: %s", name, tg_errmsg(ctx));
  /* the second step: the state of the optimiser is there, results are not */
  assert_int_equal(tg_collect(ctx), TG_OK);
  tg_cache_clear(ctx);
  tg_counters_reset(ctx);
  if (program_step(p)) fail_msg("%s: %s", name, tg_errmsg(ctx));
  TgCounters c = tg_counters(ctx);
  /* rows of one memory are one plan */
  assert_int_equal(c.schedule_hits, strcmp(name, "slice-assign") ? 0 : n - 1);
  program_end(p);
  tg_close(ctx);
  return c;
}

static void test_kernels(void **state) {
  (void)state;

  static const struct {
    const char *name;
    uint64_t most;
  } known[] = {{"softmax", 1},   {"layer_norm", 1}, {"variance", 1},  {"log_softmax-nll", 2},
               {"attention", 4}, {"mlp-step", 20},  {"cnn-step", 50}, {"chain-1000", 1},
               {"wide-sum", 1},  {"cat", 1},        {"slices", 1},    {"views", 1}};

  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    uint64_t k = lower(known[i].name, 0).kernels;
    if (k < 1 || k > known[i].most)
      fail_msg("%s: %d kernels, at most %d", known[i].name, (int)k, (int)known[i].most);
  }
}

static void test_linear(void **state) {
  (void)state;

  static const struct {
    const char *name;
    int n;
  } grown[] = {{"chain-1000", 500},   {"chain-1000", 4000}, {"mlp-step", 4}, {"gpt-step", 2},
               {"outputs", 100},      {"wide-sum", 150},    {"cat", 50},     {"cat", 400},
               {"slice-assign", 100}, {"slices", 100},      {"views", 20},   {"views", 80}};

  for (size_t i = 0; i < sizeof grown / sizeof *grown; i++) {
    TgCounters a = lower(grown[i].name, grown[i].n), b = lower(grown[i].name, 2 * grown[i].n);

    const struct {
      const char *what;
      uint64_t once, twice;
    } counts[] = {{"graph nodes", a.graph_nodes, b.graph_nodes},
                  {"nodes made", a.nodes, b.nodes},
                  {"visits", a.visits, b.visits},
                  {"firings", a.firings, b.firings},
                  {"nodes walked in rules", a.nested, b.nested}};

    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
      if ((k < 4 && !counts[k].once) || counts[k].twice * 10 > counts[k].once * 22)
        fail_msg("%s of %d: %s %d, twice the size %d", grown[i].name, grown[i].n, counts[k].what,
                 (int)counts[k].once, (int)counts[k].twice);
    }
  }
}

/* What is forgotten is made anew, and only that: the same graph again is a hit, after tg_cache_clear it is
 * not. */
static void test_cache_clear(void **state) {
  (void)state;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU"});
  assert_int_equal(tg_error(ctx), TG_OK);
  float v[3] = {1, 2, 3}, got[3];
  TgTensor *x = tg_from(ctx, v, TG_F32, TG_SHAPE(3));
  for (int i = 0; i < 4; i++) {
    uint64_t s = tg_counters(ctx).schedules;
    if (i == 2) tg_cache_clear(ctx);
    TG_SCOPE(ctx) { /* another buffer each time, the same graph */
      assert_int_equal(tg_read(tg_mul(tg_from(ctx, v, TG_F32, TG_SHAPE(3)), x), got, sizeof got), TG_OK);
    }
    for (int k = 0; k < 3; k++)
      assert_true(got[k] == v[k] * v[k]);
    assert_int_equal(tg_counters(ctx).schedules - s, i == 0 || i == 2);
  }
  assert_int_equal(tg_counters(ctx).schedule_hits, 2);
  tg_close(ctx);
  tg_cache_clear(NULL);
}

/* The device that runs nothing touches no memory of a program's size either. */
static void test_plans_large(void **state) {
  (void)state;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C"});
  TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(1 << 16, 1 << 16));
  assert_int_equal(tg_realize(tg_contiguous(tg_softmax(tg_matmul(x, x)))), TG_OK); /* 16 GiB each */
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  assert_true(u.ru_maxrss < 2 << 20); /* KiB */
  tg_close(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_linear),
                                     cmocka_unit_test(test_cache_clear), cmocka_unit_test(test_plans_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
