/* test_grid_cost.c: what the estimate of GPU kernels (plan/grid_cost.h) says of kernels whose parts are
 * known, and that the lists that are chosen by it are near the best that random changes find. */
#include "kernels/choices.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct Said { /* us */
  double all, compute, shared, l2, memory, waits;
  int registers, blocks;
  bool known;
} Said;

/* One program on one machine, while it is looked at. */
typedef struct Bench {
  TgContext *c;
  Schedule s;
} Bench;

static const Machine *machine_called(const char *name) {
  for (int i = 0; i < machine_count; i++)
    if (!strcmp(machines[i].name, name)) return &machines[i];
  fail_msg("no machine %s", name);
  return NULL;
}

static Bench bench_open(const char *program, const char *machine) {
  for (int i = 0; i < choice_count; i++) {
    if (!choices[i].name || strcmp(choices[i].name, program)) continue;
    Bench b = {.c = machine_open(machine_called(machine), (TgMem){0})};
    TgTensor *t[CHOICE_OUTPUTS];
    int n = choices[i].build(b.c, t);
    if (choice_schedule(b.c, t, n, NULL, &b.s)) fail_msg("%s: %s", program, tg_errmsg(b.c));
    return b;
  }
  fail_msg("no program %s", program);
  return (Bench){0};
}

static void bench_close(Bench *b) {
  schedule_free(&b->s, &b->c->mem);
  tg_close(b->c);
}

/* What a list costs; NULL: the chosen one, which is written to `chosen`. */
static Said said_of(Bench *b, int kernel, const char *list, char *chosen, size_t room) {
  Said s = {0};
  Str costs;
  Lowered l;
  str_init(&costs, NULL);
  bool ok = !choice_lower(b->c, &b->s, kernel, list, list ? &costs : NULL, NULL, &l);
  if (ok && chosen) snprintf(chosen, room, "%s", str_text(&l.opts));
  if (ok && list)
    s.known = sscanf(str_text(&costs),
                     "%lf compute %lf, shared %lf, L2 %lf, memory %lf, waits %lf, registers %d x %d", &s.all,
                     &s.compute, &s.shared, &s.l2, &s.memory, &s.waits, &s.registers, &s.blocks) == 8;
  tg_clear_error(b->c);
  lowered_free(&l), str_free(&costs);
  return s;
}

static Said of(const char *program, const char *list) {
  Bench b = bench_open(program, "cuda");
  Said s = said_of(&b, 0, list, NULL, 0);
  if (!s.known) fail_msg("%s with %s", program, list);
  bench_close(&b);
  return s;
}

/* ---- parts that are known: the machine has 80 cores of 1.5 GHz, which read 19 GB/s each, of which nine
 * tenths are reached */
static const double MEMORY_US = 0.9 * 19e3 * 80;

static void test_memory(void **state) {
  (void)state;
  double mb = 4.0 * 1024 * 1024;
  Said add = of("add_1m", "LOCAL r2 256"), turned = of("turned", "LOCAL r1 256"),
       sums = of("sum_rows", "GROUP r1 64");
  assert_true(fabs(add.memory - 3 * mb / MEMORY_US) < 0.02);
  assert_true(fabs(turned.memory - 2 * 4.0 * 1024 * 768 / MEMORY_US) < 0.02);
  assert_true(fabs(sums.memory - (4.0 * 512 * 1024 + 4 * 512) / MEMORY_US) < 0.02);
  /* what is read a column at a time comes in whole sectors of eight numbers */
  assert_true(turned.l2 > 4 * turned.memory * MEMORY_US / (80 * 60e3));
}

static void test_banks(void **state) {
  (void)state;
  /* a transposed copy: what a warp reads as a column of shared memory is 33 words apart, so no bank is asked
   * twice */
  Said copied = of("turned", "TILE r0 32, TILE r1 32, STAGE p1, UPCAST r0 4, LOCAL r0 8, LOCAL r1 32"),
       none = of("turned", "LOCAL r1 256");
  assert_true(copied.l2 < none.l2 / 4);
  assert_true(copied.shared < none.shared / 4);
  assert_true(copied.all < none.all);
}

static void test_parallel(void **state) {
  (void)state;
  Said one = of("sum_rows_few", "GROUP r1 32"), more = of("sum_rows_few", "GROUP r1 256"),
       most = of("sum_rows_few", "GROUP r1 1024");
  assert_true(one.waits > 6 * more.waits &&
              more.waits > 3 * most.waits); /* three rows: each waits for its own */
  Said narrow = of("matmul_2048", "LOCAL r1 32"),
       tiles =
           of("matmul_2048",
              "TILE r0 64, TILE r1 64, TILE r2 16, STAGE p1, STAGE p2, UPCAST r0 4, VEC r1 4, LOCAL r0 16, "
              "LOCAL r1 16");
  assert_true(tiles.all < narrow.all / 4);
  assert_true(tiles.registers > narrow.registers + 12);
  assert_true(tiles.compute * 1.01 > 2048.0 * 2048 * 2048 / 128 / 1500 / 80 * 80 / 80);
}

/* ---- near the best that is found */
enum { LISTS = 300 };

static const char *const may[] = {"LOCAL", "UPCAST", "VEC", "UNROLL", "GROUP", "TILE"};

static bool near_the_best(const char *program, const char *machine) {
  Bench b = bench_open(program, machine);
  char own[LONGEST_LIST], from[LONGEST_LIST], best[LONGEST_LIST], tried[LONGEST_LIST];
  const ListChanges changes = {may, TG_COUNT(may), 4, 2};
  unsigned seed = 1;
  said_of(&b, 0, NULL, own, sizeof own);
  Said chosen = said_of(&b, 0, own, NULL, 0), found = chosen;
  if (!chosen.known) fail_msg("%s on %s: %s", program, machine, own);
  snprintf(from, sizeof from, "%s", own), snprintf(best, sizeof best, "%s", own);
  for (int i = 0; i < LISTS; i++) {
    snprintf(tried, sizeof tried, "%s", i % 3 == 0 ? own : i % 3 == 1 ? best : i % 30 == 2 ? "" : from);
    for (unsigned c = 1 + list_draw(&seed) % 3; c; c--)
      list_changed(tried, &changes, &seed);
    Said s = said_of(&b, 0, tried, NULL, 0);
    if (s.known) snprintf(from, sizeof from, "%s", tried);
    if (s.known && s.all < found.all) found = s, snprintf(best, sizeof best, "%s", tried);
  }
  double launch = b.c->devices.at[0]->target.launch_us / 3;
  bool near = chosen.all <= 1.2 * fmax(found.all, launch);
  if (!near)
    print_message("%s on %s: %.2f us by %s\n    %.2f us by %s\n", program, machine, chosen.all, own,
                  found.all, best);
  bench_close(&b);
  return near;
}

static void test_near_the_best(void **state) {
  (void)state;
  static const char *const programs[] = {
      "add_1m",      "gelu",          "turned",         "channels_last",   "sum_all",       "sum_rows",
      "sum_columns", "softmax",       "layer_norm",     "softmax_columns", "matmul_64",     "matmul_512",
      "matmul_2048", "row_by_matrix", "matmul_f16",     "matmul_tall",     "matmul_deep",   "matmul_bf16",
      "conv_3x3",    "conv_f16",      "attention_long", "max_pool",        "blocks_by_four"};
  static const char *const on[] = {"cuda", "plain", "metal"};
  int far = 0;
  for (size_t i = 0; i < TG_COUNT(programs); i++)
    for (size_t m = 0; m < TG_COUNT(on); m++)
      far += !near_the_best(programs[i], on[m]);
  assert_int_equal(far, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory), cmocka_unit_test(test_banks),
                                     cmocka_unit_test(test_parallel), cmocka_unit_test(test_near_the_best)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
