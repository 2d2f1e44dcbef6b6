/* test_costs.c: what the estimate of opts says of lists that were timed. In: kernels as text, for the machine
 * that NULL:C plans for, with two cores. Out: of two kinds of lists, the least cost of each; the first was
 * the faster one. */
#define _GNU_SOURCE
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A tile along rows of a copy touches a line for each of them, one along their elements does not: a
 * transposed convolution, .25 ms and .44. */
static const char tile_in_copy[] =
    "p0 = PARAM[f32, 0, 215296](64, 29, 2, 29, 2)\n"
    "r0 = RANGE[0, GLOBAL](64)\n"
    "r1 = RANGE[1, GLOBAL](29)\n"
    "r2 = RANGE[2, GLOBAL](2)\n"
    "r4 = RANGE[4, GLOBAL](29)\n"
    "r3 = RANGE[3, GLOBAL](2)\n"
    "p1 = PARAM[f32, 1, 50176](64, 28, 28)\n"
    "r7 = RANGE[7, REDUCE](64)\n"
    "r6 = RANGE[6, REDUCE](2)\n"
    "y = ADD(MUL(r6, -1), r1)\n"
    "r5 = RANGE[5, REDUCE](2)\n"
    "x = ADD(r4, MUL(r5, -1))\n"
    "above = CMPNE(CMPLT(y, 0), 1:bool)\n"
    "rows = AND(above, CMPLT(y, 28))\n"
    "right = CMPNE(CMPLT(x, 0), 1:bool)\n"
    "inside = AND(AND(rows, right), CMPLT(x, 28))\n"
    "a = INDEX[gated](p1, r7, y, x, inside)\n"
    "p2 = PARAM[f32, 2, 65536](64, 64, 4, 4)\n"
    "b = INDEX(p2, r7, r0, ADD(r2, MUL(r6, 2)), ADD(MUL(r5, 2), r3))\n"
    "sum = REDUCE[ADD](MUL(a, b), r5, r6, r7)\n"
    "s = SINK(STORE(INDEX(p0, r0, r1, r2, r4, r3), sum, r0, r1, r2, r3, r4))\n";

/* Lanes 18,432 bytes apart are in two sets of L1, which push each other's lines out before the next of nine
 * elements is written; lanes 36 bytes apart are not: the gradient of a weight, 7.5 ms and 1.7. */
static const char stores_in_a_set[] =
    "p0 = PARAM[f32, 0, 2359296](512, 512, 3, 3)\n"
    "r0 = RANGE[0, GLOBAL](512)\n"
    "r1 = RANGE[1, GLOBAL](512)\n"
    "r2 = RANGE[2, GLOBAL](3)\n"
    "r3 = RANGE[3, GLOBAL](3)\n"
    "old = INDEX(p0, r0, r1, r2, r3)\n"
    "p1 = PARAM[f32, 1, 65536](32, 512, 2, 2)\n"
    "r4 = RANGE[4, REDUCE](32)\n"
    "r5 = RANGE[5, REDUCE](2)\n"
    "r6 = RANGE[6, REDUCE](2)\n"
    "x = ADD(r6, r3)\n"
    "right = CMPNE(CMPLT(x, 1), 1:bool)\n"
    "columns = AND(right, CMPLT(x, 3))\n"
    "y = ADD(r5, r2)\n"
    "below = CMPNE(CMPLT(y, 1), 1:bool)\n"
    "rows = AND(below, CMPLT(y, 3))\n"
    "p2 = PARAM[f32, 2, 65536](32, 512, 2, 2)\n"
    "a = WHERE(AND(columns, rows), INDEX(p2, r4, r1, ADD(y, -1), ADD(x, -1)), 0:f32)\n"
    "sum = REDUCE[ADD](MUL(INDEX(p1, r4, r0, r5, r6), a), r4, r5, r6)\n"
    "p3 = PARAM[f32, 3, 1]\n"
    "s = SINK(STORE(old, SUB(old, MUL(sum, INDEX(p3, 0))), r0, r1, r2, r3))\n";

/* Blocks of a reduction outside read what they add to lane by lane: a strided 1x1 convolution, .66 ms and .46
 * without. */
static const char blocks_of_sum[] = "p0 = PARAM[f32, 0, 401408](512, 28, 28)\n"
                                    "r0 = RANGE[0, GLOBAL](512)\n"
                                    "r1 = RANGE[1, GLOBAL](28)\n"
                                    "r2 = RANGE[2, GLOBAL](28)\n"
                                    "p1 = PARAM[f32, 1, 802816](256, 56, 56)\n"
                                    "r3 = RANGE[3, REDUCE](256)\n"
                                    "a = INDEX(p1, r3, MUL(r1, 2), MUL(r2, 2))\n"
                                    "p2 = PARAM[f32, 2, 131072](512, 256)\n"
                                    "sum = REDUCE[ADD](MUL(a, INDEX(p2, r0, r3)), r3)\n"
                                    "s = SINK(STORE(INDEX(p0, r0, r1, r2), sum, r0, r1, r2))\n";

/* Where lanes share an axis with the windows, a copy has no panels of them, and they lie apart: 65 ms and 5.
 */
static const char lanes_of_copy[] =
    "p0 = PARAM[f32, 0, 1605632](2, 64, 112, 112)\n"
    "r0 = RANGE[0, GLOBAL](2)\n"
    "r1 = RANGE[1, GLOBAL](64)\n"
    "r2 = RANGE[2, GLOBAL](112)\n"
    "r3 = RANGE[3, GLOBAL](112)\n"
    "r6 = RANGE[6, REDUCE](3)\n"
    "x = ADD(r3, r6)\n"
    "right = CMPNE(CMPLT(x, 1), 1:bool)\n"
    "columns = AND(right, CMPLT(x, 113))\n"
    "r5 = RANGE[5, REDUCE](3)\n"
    "y = ADD(r5, r2)\n"
    "below = CMPNE(CMPLT(y, 1), 1:bool)\n"
    "rows = AND(below, CMPLT(y, 113))\n"
    "r4 = RANGE[4, REDUCE](64)\n"
    "p1 = PARAM[f32, 1, 1605632](112, 64, 112, 2)\n"
    "a = WHERE(AND(columns, rows), INDEX(p1, ADD(x, -1), r4, ADD(y, -1), r0), 0:f32)\n"
    "p2 = PARAM[f32, 2, 36864](64, 64, 3, 3)\n"
    "sum = REDUCE[ADD](MUL(a, INDEX(p2, r1, r4, r5, r6)), r4, r5, r6)\n"
    "s = SINK(STORE(INDEX(p0, r0, r1, r2, r3), sum, r0, r1, r2, r3))\n";

/* Rows that are read 64 bytes at a time, 384 bytes apart, are no run, though their block is one: 100 us and
 * 174. */
static const char rows_in_parts[] = "p0 = PARAM[f32, 0, 6144](64, 96)\n"
                                    "r0 = RANGE[0, GLOBAL](64)\n"
                                    "r1 = RANGE[1, GLOBAL](96)\n"
                                    "p1 = PARAM[f32, 1, 786432](64, 128, 96)\n"
                                    "r2 = RANGE[2, REDUCE](128)\n"
                                    "sum = REDUCE[ADD](INDEX(p1, r0, r2, r1), r2)\n"
                                    "s = SINK(STORE(INDEX(p0, r0, r1), sum, r0, r1))\n";

/* All of a window written out needs no large tile: 16.5 us and 21. */
static const char window[] = "p0 = PARAM[f32, 0, 75264](96, 28, 28)\n"
                             "r0 = RANGE[0, GLOBAL](96)\n"
                             "r1 = RANGE[1, GLOBAL](28)\n"
                             "r2 = RANGE[2, GLOBAL](28)\n"
                             "p1 = PARAM[f32, 1, 75264](96, 28, 28)\n"
                             "r3 = RANGE[3, REDUCE](3)\n"
                             "r4 = RANGE[4, REDUCE](3)\n"
                             "y = ADD(r1, r3)\n"
                             "x = ADD(r2, r4)\n"
                             "ya = CMPNE(CMPLT(y, 1), 1:bool)\n"
                             "xa = CMPNE(CMPLT(x, 1), 1:bool)\n"
                             "g = AND(AND(ya, CMPLT(y, 29)), AND(xa, CMPLT(x, 29)))\n"
                             "a = WHERE(g, INDEX(p1, r0, ADD(y, -1), ADD(x, -1)), 0:f32)\n"
                             "p2 = PARAM[f32, 2, 864](96, 3, 3)\n"
                             "sum = REDUCE[ADD](MUL(a, INDEX(p2, r0, r3, r4)), r3, r4)\n"
                             "s = SINK(STORE(INDEX(p0, r0, r1, r2), sum, r0, r1, r2))\n";

/* A row of 49 as one step, of which the last lane is alone: 10.5 us and 14. */
static const char row_at_once[] = "p0 = PARAM[f32, 0, 4096](8, 512)\n"
                                  "r0 = RANGE[0, GLOBAL](8)\n"
                                  "r1 = RANGE[1, GLOBAL](512)\n"
                                  "p1 = PARAM[f32, 1, 200704](8, 512, 49)\n"
                                  "r2 = RANGE[2, REDUCE](49)\n"
                                  "sum = REDUCE[ADD](INDEX(p1, r0, r1, r2), r2)\n"
                                  "s = SINK(STORE(INDEX(p0, r0, r1), sum, r0, r1))\n";

/* Rows of words of eight nibbles, of which a kernel of nested sums takes low and high ones in turn. Two rows
 * in parts of their own 1.77 ms, with both nibbles of a word at once 1.65; half of each line of 128 bytes, and
 * then the other, 4.2. */
static const char packed_rows[] =
    "p0 = PARAM[f32, 0, 32768](1024, 32)\n"
    "r0 = RANGE[0, GLOBAL](1024)\n"
    "r1 = RANGE[1, GLOBAL](32)\n"
    "r2 = RANGE[2, REDUCE](32)\n"
    "r3 = RANGE[3, REDUCE](2)\n"
    "r4 = RANGE[4, REDUCE](8)\n"
    "p1 = PARAM[i32, 1, 8388608](1024, 32, 8, 32)\n"
    "w = AND(SHR(INDEX(p1, r0, r2, r4, r1), MUL(CAST[i32](r3), 4:i32)), 252645135:i32)\n"
    "p2 = PARAM[i32, 2, 512](32, 2, 8)\n"
    "in = DOT2(REDUCE[ADD2](DOT2X2(w, INDEX(p2, r2, r3, r4)), r4), 65537:i32)\n"
    "p3 = PARAM[f16, 3, 2097152](1024, 32, 2, 32)\n"
    "sum = REDUCE[ADD](MUL(CAST[f32](in), CAST[f32](INDEX(p3, r0, r2, r3, r1))), r2, r3)\n"
    "s = SINK(STORE(INDEX(p0, r0, r1), sum, r0, r1))\n";

typedef struct Timed {
  double times; /* that the second one takes at least */
  const char *kernel, *faster[2],
      *slower[2]; /* what a list has, and, after it, what it has or, with !, not */
} Timed;

static const Timed timed[] = {
    {1, tile_in_copy, {"STAGE p2", "UPCAST r4 10, VEC r0 32"}, {"STAGE p2", "UPCAST r1 10, VEC r0 32"}},
    {1, stores_in_a_set, {"STAGE p2", "VEC r1"}, {"STAGE p2", "VEC r0"}},
    {1, blocks_of_sum, {"VEC r0 32", "!TILE r3"}, {"VEC r0 32", "TILE r3"}},
    {1.3, rows_in_parts, {"UPCASTTOP r0 2", "VEC r1 96"}, {"UPCASTTOP r0 16", "VEC r1 16"}},
    {1.3, window, {"UPCAST r1 4, VEC r2 32", "UNROLL r3 3, UNROLL r4 3"}, {"VEC r2 32", "!UNROLL r3"}},
    {1, row_at_once, {"GROUP r2 64", "UPCAST"}, {"GROUP r2 32", "UPCAST"}},
    {1,
     packed_rows,
     {"UPCASTTOP r0 2, VEC r1 32", "UNROLL r3 2"},
     {"UPCASTTOP r0 2, VEC r1 32", "!UNROLL r3"}},
    {1.5,
     packed_rows,
     {"UPCASTTOP r0 2, VEC r1 32", "!UNROLL r3"},
     {"UPCASTTOP r0 2, VEC r1 16", "!UNROLL r3"}},
    {1.5, lanes_of_copy, {"STAGE p1", "VEC r1"}, {"TILE r4 8, STAGE p1", "VEC r3"}},
};

static bool fits(const char *line, const char *const *has) {
  for (int i = 0; i < 2; i++) {
    bool without = has[i][0] == '!';
    if ((strstr(line, has[i] + without) != NULL) == without) return false;
  }
  return true;
}

/* Of the lists that have what is asked for. */
static double least(const char *costs, const char *const *has) {
  char *copy = strdup(costs);
  double best = INFINITY;
  assert_non_null(copy);
  for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n"))
    if (fits(line, has)) best = fmin(best, atof(line));
  free(copy);
  return best;
}

static void test_costs(void **state) {
  int wrong = 0;
  (void)state;
  for (size_t i = 0; i < sizeof timed / sizeof *timed; i++) {
    const Timed *t = &timed[i];
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C", .cores = 2});
    const char *costs = tg_opt(ctx, t->kernel, .emit = "costs");
    if (!costs) fail_msg("%s", tg_errmsg(ctx));
    double fast = least(costs, t->faster), slow = least(costs, t->slower);
    if (!(fast * t->times < slow) || isinf(slow)) {
      print_error("%s, %s: %.1f, but %s, %s: %.1f\n", t->faster[0], t->faster[1], fast, t->slower[0],
                  t->slower[1], slow);
      wrong++;
    }
    tg_close(ctx);
  }
  assert_int_equal(wrong, 0);
}

/* A matrix of 57 MB in rows of 1,152 bytes times a vector, one core of a Zen 2: six rows from as many parts of it
 * 2.3 ms, one row after another 3.9, six rows that follow each other 5.4. */
static const char short_rows[] = "p0 = PARAM[f32, 0, 49152](49152)\n"
                                 "r0 = RANGE[0, GLOBAL](49152)\n"
                                 "p1 = PARAM[f32, 1, 576](576)\n"
                                 "r1 = RANGE[1, REDUCE](576)\n"
                                 "p2 = PARAM[f16, 2, 28311552](49152, 576)\n"
                                 "product = MUL(INDEX(p1, r1), CAST[f32](INDEX(p2, r0, r1)))\n"
                                 "s = SINK(STORE(INDEX(p0, r0), REDUCE[ADD](product, r1), r0))\n";

/* Copies are read from end to end, which hides the way from L2 and L3: one core of a Zen 3 takes 9.2 ms for
 * this product with copies of both factors, and 10.1 for blocks of the sum of 64 without. */
static const char product[] = "p0 = PARAM[f32, 0, 589824](768, 768)\n"
                              "r0 = RANGE[0, GLOBAL](768)\n"
                              "r1 = RANGE[1, GLOBAL](768)\n"
                              "p1 = PARAM[f32, 1, 589824](768, 768)\n"
                              "p2 = PARAM[f32, 2, 589824](768, 768)\n"
                              "r2 = RANGE[2, REDUCE](768)\n"
                              "product = MUL(INDEX(p1, r0, r2), INDEX(p2, r2, r1))\n"
                              "s = SINK(STORE(INDEX(p0, r0, r1), REDUCE[ADD](product, r2), r0, r1))\n";

/* Rows of three of which an index reads a fourth, behind a gate, are one run of memory: what a transposed
 * convolution adds up takes 35 us, and 229 with a copy of each row. */
static const char rows_overlap[] =
    "p0 = PARAM[f32, 0, 100352](32, 28, 2, 28, 2)\n"
    "r0 = RANGE[0, GLOBAL](32)\n"
    "r1 = RANGE[1, GLOBAL](28)\n"
    "r2 = RANGE[2, GLOBAL](2)\n"
    "r4 = RANGE[4, GLOBAL](28)\n"
    "r3 = RANGE[3, GLOBAL](2)\n"
    "r5 = RANGE[5, REDUCE](2)\n"
    "column = ADD(MUL(r5, -1), r4)\n"
    "tap = ADD(MUL(r5, 2), r3)\n"
    "inside = AND(CMPLT(column, 27), CMPNE(CMPLT(tap, 1), 1:bool))\n"
    "p1 = PARAM[f32, 1, 150528](32, 2, 28, 28, 3)\n"
    "a = WHERE(inside, INDEX(p1, r0, r2, r1, ADD(column, 1), ADD(tap, -1)), 0:f32)\n"
    "s = SINK(STORE(INDEX(p0, r0, r1, r2, r4, r3), REDUCE[ADD](a, r5), r0, r1, r2, r3, r4))\n";

/* Columns at places that are computed: lanes along the rows have one place and lie at even distances, lanes
 * along the columns have a place each. An image is made wider in .33 ms, and in .82. */
static const char places_computed[] =
    "p0 = PARAM[f32, 0, 750000](1500, 500)\n"
    "r0 = RANGE[0, GLOBAL](1500)\n"
    "r1 = RANGE[1, GLOBAL](500)\n"
    "p1 = PARAM[f32, 1, 336000](1500, 224)\n"
    "x = MUL(CAST[i32](r1), 112:i32)\n"
    "left = FLOORDIV(ADD(x, -70:i32), 250:i32)\n"
    "a = INDEX(p1, r0, CAST[index](WHERE(CMPLT(left, 0:i32), 0:i32, left)))\n"
    "right = FLOORDIV(ADD(x, 180:i32), 250:i32)\n"
    "b = INDEX(p1, r0, CAST[index](WHERE(CMPLT(223:i32, right), 223:i32, right)))\n"
    "p2 = PARAM[f32, 2, 500](500)\n"
    "p3 = PARAM[f32, 3, 500](500)\n"
    "sum = ADD(MUL(a, INDEX(p2, r1)), MUL(b, INDEX(p3, r1)))\n"
    "s = SINK(STORE(INDEX(p0, r0, r1), sum, r0, r1))\n";

/* Weights of 8 bits, two in each half word, for four rows of outputs: a list that reads every other line takes
 * 1.43 ms where they come from memory, and 1.3 of one that reads all. */
static const char weights_of_rows[] = "p0 = PARAM[f32, 0, 32768](4, 256, 32)\n"
                                      "r3 = RANGE[3, LOOP](4)\n"
                                      "r0 = RANGE[0, GLOBAL](256)\n"
                                      "r1 = RANGE[1, GLOBAL](32)\n"
                                      "p1 = PARAM[i32, 1, 4194304](256, 64, 8, 32)\n"
                                      "r4 = RANGE[4, REDUCE](64)\n"
                                      "r5 = RANGE[5, REDUCE](8)\n"
                                      "w = INDEX(p1, r0, r4, r5, r1)\n"
                                      "p2 = PARAM[i32, 2, 2048](4, 64, 8)\n"
                                      "p3 = PARAM[i32, 3, 2048](4, 64, 8)\n"
                                      "even = DOT2(AND(w, 16711935:i32), INDEX(p2, r3, r4, r5))\n"
                                      "odd = DOT2(AND(SHR(w, 8:i32), 16711935:i32), INDEX(p3, r3, r4, r5))\n"
                                      "block = CAST[f32](REDUCE[ADD](ADD(even, odd), r5))\n"
                                      "p5 = PARAM[f16, 4, 524288](256, 64, 32)\n"
                                      "sum = REDUCE[ADD](MUL(block, CAST[f32](INDEX(p5, r0, r4, r1))), r4)\n"
                                      "s = SINK(STORE(INDEX(p0, r3, r0, r1), sum, r0, r1, r3))\n";

/* Rows that lie a multiple of 4096 bytes apart begin in the same set of L1. If a step reads more rows than the
 * set has lines, each line is evicted before the next step reads on in it: one core of a Zen 4 takes 19.0 ms
 * with 8 rows a step, and 23.7 with 14, which load less for each product. */
static const char rows_in_one_set[] =
    "p0 = PARAM[f32, 0, 1048576](1024, 1024)\n"
    "r0 = RANGE[0, GLOBAL](1024)\n"
    "r1 = RANGE[1, GLOBAL](1024)\n"
    "p1 = PARAM[f32, 1, 1048576](1024, 1024)\n"
    "p2 = PARAM[f32, 2, 1048576](1024, 1024)\n"
    "r2 = RANGE[2, REDUCE](1024)\n"
    "product = MUL(INDEX(p1, r0, r2), INDEX(p2, r2, r1))\n"
    "s = SINK(STORE(INDEX(p0, r0, r1), REDUCE[ADD](product, r2), r0, r1))\n";

enum { MOST_LISTS = 3 };

static const struct {
  double times; /* that the estimate of a list is more than that of the one before it */
  const char *kernel, *lists[MOST_LISTS];
} orders[] = {
    {1.3, short_rows, {"UPCASTTOP r0 6, GROUP r1 16", "GROUP r1 32", "UPCAST r0 6, GROUP r1 16"}},
    {1.02,
     product,
     {"STAGE p2, TILE r0 126, STAGE p1, UPCAST r0 6, VEC r1 16", "TILE r2 64, UPCAST r0 6, VEC r1 16"}},
    {1.1,
     rows_overlap,
     {"VEC r4 32, UNROLL r5 2", "TILE r0 1, TILE r1 1, TILE r2 1, TILE r3 1, STAGE p1, VEC r4 32"}},
    {1.3, places_computed, {"UPCAST r1 4, VEC r0 16", "VEC r1 16"}},
    {1.1,
     rows_in_one_set,
     {"TILE r1 48, STAGE p2, UPCAST r0 8, VEC r1 48", "TILE r1 32, STAGE p2, UPCAST r0 14, VEC r1 32"}},
    {1.02, weights_of_rows, {"UPCAST r3 4, VEC r1 32", "UPCAST r3 4, VEC r1 16"}},
};

static void test_orders(void **state) {
  int wrong = 0;
  (void)state;
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    double before = 0;
    for (int l = 0; l < MOST_LISTS && orders[i].lists[l]; l++) {
      const char *list = orders[i].lists[l];
      TgContext *ctx =
          tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C", .cores = 1});
      const char *costs = tg_opt(ctx, orders[i].kernel, .opts = list, .emit = "costs");
      if (!costs) fail_msg("%s: %s", list, tg_errmsg(ctx));
      double cycles = atof(costs);
      if (!(cycles > orders[i].times * before)) {
        print_error("%s: %.1f, but %s: %.1f\n", orders[i].lists[l - 1], before, list, cycles);
        wrong++;
      }
      before = cycles;
      tg_close(ctx);
    }
  }
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_costs), cmocka_unit_test(test_orders)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
