/* test_plan.c: the planner alone (src/plan/): kernels that exist nowhere, as loops and accesses. Expected:
 * footprints counted by hand; of each kernel the lanes and the tile that its strides ask for; no list below
 * the bound that lists are passed over by. */
#include "plan/cost.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A flat access: elements that it moves by with each loop. Stores come first. */
typedef struct Flat {
  int64_t by[4];
  bool gated;
} Flat;

static KernelShape shape_of(int n, const int64_t *size, uint32_t reduce, int nstore, int naccess,
                            const Flat *flat) {
  KernelShape c;
  memset(&c, 0, sizeof c);
  c.target = &target_planned;
  c.n = n;
  c.nests = c.nbody = 1;
  c.nsum = reduce ? 1 : 0;
  c.body[0] = (Body){.loops = (1u << n) - 1, .own = reduce, .nsum = c.nsum, .fused = reduce != 0};
  c.reduce = reduce;
  c.summed = ((1u << n) - 1) & ~reduce;
  memcpy(c.size, size, (size_t)n * sizeof *size);
  c.nstore = nstore;
  for (int i = 0; i < naccess; i++) {
    Access *a = &c.access[c.naccess++];
    *a = (Access){.slot = i, .bytes = 4, .copied = 4, .beside = -1, .naxis = 1, .even = true, .clips = true};
    a->in_sum = i >= nstore;
    a->gated = flat[i].gated;
    a->step[0] = a->extent[0] = 1;
    for (int r = 0; r < n; r++) {
      a->coef[0][r] = flat[i].by[r];
      a->extent[0] += (size[r] - 1) * flat[i].by[r];
      if (flat[i].by[r]) a->moves |= 1u << r;
      if (flat[i].gated && flat[i].by[r] == 1) a->gate_moves |= 1u << r;
    }
    access_settle(a, &c);
  }
  c.plain = c.whole = reduce && nstore == 1;
  return c;
}

static Taken chosen(const KernelShape *c, int ncores) {
  Taken best;
  Cost cost;
  TgMem mem = {0};
  assert_true(choose_list(c, ncores, &mem, NULL, &best, &cost));
  assert_true(cost.cycles < INFINITY);
  return best;
}

static int64_t size_of(const Taken *t, OptOp op, int r) { /* 0: it is not there */
  for (int i = 0; i < t->n; i++)
    if (t->opt[i].op == op && t->opt[i].r == r) return t->opt[i].n;
  return 0;
}

static void test_footprints(void **state) {
  (void)state;
  KernelShape c = shape_of(2, (int64_t[]){8, 64}, 0, 1, 2, (Flat[]){{{64, 1}, false}, {{1024, 1}, false}});
  Footprint f = access_footprint(&c.access[1], (double[]){8, 16});
  assert_true(f.bytes == 8 * 64 && f.run == 64 && f.rows == 8 && f.stride == 4096);
  f = access_footprint(&c.access[1], (double[]){8, 4}); /* a line is a line */
  assert_true(f.bytes == 8 * 64 && f.run == 16);
  f = access_footprint(&c.access[0], (double[]){8, 64}); /* rows without a gap are a run */
  assert_true(f.bytes == 2048 && f.run == 2048 && f.rows == 1);
  assert_int_equal(c.access[1].naxis, 2);
  assert_int_equal(access_step(&c.access[1], 0), 1024);
  assert_true(c.access[1].whole == 8 * 256);
}

static void test_lanes(void **state) {
  (void)state;
  KernelShape c =
      shape_of(1, (int64_t[]){100000}, 0, 1, 3, (Flat[]){{{1}, false}, {{1}, false}, {{1}, false}});
  Taken t = chosen(&c, 1);
  assert_int_equal(size_of(&t, OPT_VEC, 0), 32);
  assert_int_equal(t.n, 1);
  /* a transpose: lanes where it reads a run, a tile where it writes one */
  c = shape_of(2, (int64_t[]){768, 1024}, 0, 1, 2, (Flat[]){{{1024, 1}, false}, {{1, 768}, false}});
  t = chosen(&c, 1);
  assert_int_equal(size_of(&t, OPT_VEC, 0), 16);
  assert_true(size_of(&t, OPT_UPCAST, 1) >= 8);
  /* half of a row is let through by a gate that moves with the lanes: all of the row is written out */
  c = shape_of(2, (int64_t[]){300, 64}, 0, 1, 2, (Flat[]){{{64, 1}, false}, {{32, 1}, true}});
  c.decides = 2;
  t = chosen(&c, 1);
  assert_int_equal(size_of(&t, OPT_VEC, 1), 64);
}

static void test_products(void **state) {
  (void)state;
  Flat flat[] = {{{256, 1, 0}, false}, {{256, 0, 1}, false}, {{0, 1, 256}, false}};
  KernelShape c = shape_of(3, (int64_t[]){256, 256, 256}, 4, 1, 3, flat);
  Taken t = chosen(&c, 1);
  int64_t rows = size_of(&t, OPT_UPCAST, 0), lanes = size_of(&t, OPT_VEC, 1);
  assert_true(lanes >= 16 && rows >= 4);
  assert_true((double)(rows * lanes / 16 + lanes / 16) <= tile_room(c.target));
  Cost cost;
  assert_true(cost_of(&c, &t, 1, INFINITY, &cost));
  assert_true(cost.cycles >= 256.0 * 256 * 256 / c.target->fmas); /* a processor does no more */
  assert_true(cost_of(&c, &t, 2, INFINITY, &cost) && cost.thread >= 0);
}

/* Several sums in the same loops share the registers; and of matrices that are read row by row a copy with lanes
 * across them is worth it where it is made once: what is made of the sums then has lanes, too. */
static void test_sums(void **state) {
  (void)state;
  Flat flat[] = {{{256, 1, 0}, false}, {{256, 0, 1}, false}, {{0, 1, 256}, false}};
  KernelShape c = shape_of(3, (int64_t[]){256, 256, 256}, 4, 1, 3, flat);
  c.nsum = c.body[0].nsum = 2;
  c.access[2].more = 1;
  c.plain = false;
  Taken t = chosen(&c, 1);
  int64_t rows = size_of(&t, OPT_UPCAST, 0), lanes = size_of(&t, OPT_VEC, 1);
  assert_true(lanes >= 16 && rows >= 2);
  assert_true((double)(2 * rows * lanes / 16 + lanes / 16) <= tile_room(c.target));
  Cost one, two;
  assert_true(cost_of(&c, &t, 1, INFINITY, &two));
  c.nsum = c.body[0].nsum = 1, c.access[2].more = 0;
  assert_true(cost_of(&c, &t, 1, INFINITY, &one));
  assert_true(two.compute > 1.5 * one.compute);

  Flat gates[] = {{{1, 0}, false}, {{64, 1}, false}, {{0, 1}, false}};
  c = shape_of(2, (int64_t[]){64, 64}, 2, 1, 3, gates);
  c.nsum = c.body[0].nsum = 4;
  c.plain = false;
  c.after = 100; /* of the outputs, in lanes or one by one */
  Access *a = &c.access[1];
  *a = (Access){.slot = 1, .bytes = 4, .copied = 4, .beside = -1, .more = 3, .naxis = 2, .moves = 3};
  a->even = a->clips = a->in_sum = true;
  a->extent[0] = 256, a->extent[1] = a->step[0] = 64, a->step[1] = 1;
  a->coef[0][0] = a->coef[1][1] = 1;
  access_settle(a, &c);
  assert_true(a->whole == 4 * 64 * 64 * 4);
  t = chosen(&c, 1);
  assert_true(size_of(&t, OPT_GROUP, 1) >= 16);
  a->stays = true;
  t = chosen(&c, 1);
  assert_true(size_of(&t, OPT_VEC, 0) >= 16);
  assert_int_equal(size_of(&t, OPT_STAGE, 1), 1);
}

/* No list costs less than what its last opts cost at least, whatever blocks of lanes and of the sum, and
 * copies, stand before them; and none that may cost so much is refused. */
static void test_least(void **state) {
  (void)state;
  Flat flat[] = {{{300, 1, 0}, false}, {{130, 0, 1}, false}, {{0, 130, 1}, false}};
  KernelShape c = shape_of(3, (int64_t[]){200, 300, 130}, 4, 1, 3, flat);
  unsigned seed = 7;
  for (int i = 0; i < 2000; i++) {
    Taken t = {0}, last = {0};
    seed = seed * 1664525u + 1013904223u;
    int lane = seed >> 31, tile = !lane;
    int64_t lanes = 16 * (1 + (seed >> 25 & 3));
    if (seed >> 8 & 1) t.opt[t.n++] = (Opt){OPT_TILE, lane, lanes};
    if (seed >> 9 & 1) t.opt[t.n++] = (Opt){OPT_TILE, 2, 8 << (seed >> 12 & 3)};
    if (seed >> 16 & 1) t.opt[t.n++] = (Opt){OPT_STAGE, 1 + (int)(seed >> 17 & 1), 1};
    last.opt[last.n++] = (Opt){OPT_UPCAST, tile, 1 + (seed >> 20 & 15)};
    last.opt[last.n++] = (Opt){OPT_VEC, lane, lanes};
    for (int k = 0; k < last.n; k++)
      t.opt[t.n++] = last.opt[k];
    Cost cost, again;
    if (!cost_of(&c, &t, 1, INFINITY, &cost)) continue;
    assert_true(cost.cycles >= 0.999 * cost_least(&c, &last, 1)); /* but for a line of text */
    assert_true(cost_of(&c, &t, 1, cost.cycles, &again) && again.cycles == cost.cycles);
    assert_false(cost_of(&c, &t, 1, cost.cycles * 0.9, &again));
  }
}

/* Sums in sums: what the outer loop alone computes is paid for in its steps, not in those of the inner one; a
 * sum of each level needs a register. */
static void test_nested(void **state) {
  (void)state;
  Flat flat[] = {
      {{64, 1, 0, 0}, false}, {{256, 0, 8, 1}, false}, {{0, 1, 512, 64}, false}, {{0, 1, 64, 0}, false}};
  KernelShape c = shape_of(4, (int64_t[]){64, 64, 32, 8}, 12, 1, 4, flat);
  c.plain = c.whole = false;
  c.nbody = c.nsum = 2;
  c.body[0] = (Body){.loops = 7, .own = 4, .nsum = 1, .fused = true};
  c.body[1] = (Body){.loops = 15, .own = 8, .nsum = 1, .fused = true};
  for (int a = 0; a < c.naccess; a++)
    c.access[a].body = body_around(&c, c.access[a].moves);
  assert_int_equal(c.access[2].body, 1);
  assert_int_equal(c.access[3].body, 0);
  assert_int_equal(most_sums(&c), 1);
  Taken t = {.n = 2, .opt = {{OPT_UPCAST, 0, 2}, {OPT_VEC, 1, 32}}};
  Cost none, outer, inner, rows;
  KernelShape with_outer = c, with_inner = c;
  work_add(&with_outer, (Work){.on = 7, .weight = 16});
  work_add(&with_inner, (Work){.on = 15, .weight = 16});
  assert_true(cost_of(&c, &t, 1, INFINITY, &none));
  assert_true(cost_of(&with_outer, &t, 1, INFINITY, &outer));
  assert_true(cost_of(&with_inner, &t, 1, INFINITY, &inner));
  double paid = (inner.compute - none.compute) / (outer.compute - none.compute);
  assert_true(paid > 4 && paid < 12);
  Taken best = chosen(&c, 1);
  assert_true(size_of(&best, OPT_VEC, 1) >= 16 && size_of(&best, OPT_TILE, 2) == 0);
  /* A loop of the outer sum that decides a shift is written out where it is the last: else floats are added in
   * another order. */
  c.nbody = 1;
  for (int last = 0; last < 2; last++) {
    KernelShape two = c;
    two.nbody = 2;
    two.size[2] = last ? 32 : 2, two.size[3] = last ? 2 : 32;
    two.body[0] = (Body){.loops = 15, .own = 12, .nsum = 1};
    two.body[1] = (Body){.loops = 3, .nsum = 1, .integers = true};
    two.decides = last ? 8 : 4;
    work_add(&two, (Work){.on = 15, .decided = two.decides, .weight = 100});
    best = chosen(&two, 1);
    assert_int_equal(size_of(&best, OPT_UNROLL, 2 + last), last ? 2 : 0);
  }
  c.nbody = 2;
  t.opt[0].n = 8;
  assert_true(cost_of(&c, &t, 1, INFINITY, &none));
  t.opt[0].n = 32; /* more sums than there are registers */
  assert_true(cost_of(&c, &t, 1, INFINITY, &rows) && rows.compute > none.compute);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_footprints), cmocka_unit_test(test_lanes),
                                     cmocka_unit_test(test_products),   cmocka_unit_test(test_sums),
                                     cmocka_unit_test(test_nested),     cmocka_unit_test(test_least)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
