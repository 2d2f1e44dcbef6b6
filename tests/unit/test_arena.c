/* test_arena.c: where values lie that live for a while. No two that live at once overlap, the least is what
 * a count of each moment says, and a hundred thousand items are no more work than their neighbours make. */
#include "engine/export.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static unsigned r = 1;

static int below(int n) {
  r = r * 1664525u + 1013904223u;
  return (int)((r >> 8) % (unsigned)n);
}

static void random_items(ArenaItem *item, int n, int moments, int life) {
  for (int i = 0; i < n; i++) {
    int first = below(moments);
    item[i] = (ArenaItem){.nbytes = below(5) ? below(3000) : 0, .first = first, .last = first + below(life)};
    if (!below(500)) item[i].last = INT32_MAX;
  }
}

static void checked(ArenaItem *item, int n, int moments, int64_t align) {
  TgMem mem = {0};
  int64_t bytes = -1, bound = -1, most = 0;
  assert_true(arena_placed(&mem, item, (size_t)n, align, &bytes, &bound));
  for (int t = 0; t < moments; t++) {
    int64_t now = 0;
    for (int i = 0; i < n; i++)
      if (item[i].first <= t && t <= item[i].last) now += item[i].nbytes;
    most = now > most ? now : most;
  }
  assert_int_equal(bound, most);
  assert_true(bytes >= bound);
  for (int i = 0; i < n; i++) {
    const ArenaItem *a = &item[i];
    assert_true(a->offset >= 0 && a->offset % align == 0 && a->offset + a->nbytes <= bytes);
    for (int k = 0; k < i; k++) {
      const ArenaItem *b = &item[k];
      bool meet = a->first <= b->last && b->first <= a->last && a->nbytes && b->nbytes;
      if (meet) assert_true(a->offset + a->nbytes <= b->offset || b->offset + b->nbytes <= a->offset);
    }
  }
}

static void test_places(void **state) {
  (void)state;
  static ArenaItem item[600];
  for (int turn = 0; turn < 60; turn++) {
    int n = turn < 8 ? turn : 1 + below(600), moments = 1 + below(turn % 2 ? 20 : 900);
    random_items(item, n, moments, 1 + below(40));
    checked(item, n, moments, turn % 3 ? 8 : 64);
  }
}

static void test_many(void **state) {
  (void)state;

  enum { N = 100000 };

  TgMem mem = {0};
  ArenaItem *item = malloc(N * sizeof *item);
  int64_t bytes, bound;
  for (int i = 0; i < N; i++)
    item[i] = (ArenaItem){.nbytes = 8 + below(4000), .first = i, .last = i + below(12)};
  assert_true(arena_placed(&mem, item, N, 8, &bytes, &bound));
  assert_true(bytes >= bound && bytes < 2 * bound);
  free(item);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_many)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
