/* test_in_place.c: list_in_place against what lists do, step by step. Random lists of loops, loads and stores: where it
 * says that two memories may be one, no element is read after it was stored to. Some lists are like those of kernels,
 * and of these it must see most. */
#include "uop/uop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_LIST = 120, LOOPS = 4, ELEMENTS = 4096, BASE = 2048 };

typedef struct List {
  UOpStore *st;
  UOp *at[MOST_LIST], *range[LOOPS], *memory[2], *value[2]; /* value: a number, a vector of four */
  int n;
  unsigned seed;
} List;

static unsigned draw(List *l, unsigned below) {
  l->seed = l->seed * 1664525u + 1013904223u;
  return (l->seed >> 10) % below;
}

static UOp *scaled(List *l, UOp *u, int64_t by) {
  return uop_alu2(l->st, OPS_MUL, u, uop_index_const(l->st, by));
}

static UOp *plus(List *l, UOp *a, UOp *b) { return uop_alu2(l->st, OPS_ADD, a, b); }

static void put(List *l, UOp *u) {
  assert_true(l->n < MOST_LIST && u);
  l->at[l->n++] = u;
}

static void access_put(List *l, bool store, UOp *place, int lanes) {
  UOp *x = UNEW(l->st, OPS_INDEX, DT_F32, lanes, ARG0, l->memory[!store], place);
  UOp *v = l->value[lanes > 1];
  /* a load has a number of its own: each is another node */
  put(l, store ? UNEW(l->st, OPS_STORE, DT_VOID, 1, ((Arg){.i = l->n}), x, v)
               : UNEW(l->st, OPS_LOAD, DT_F32, lanes, ((Arg){.i = l->n}), x));
}

/* ---- what a list does */
static int64_t value_at(const UOp *u, const int64_t *at) {
  if (u->op == OPS_CONST) return u->arg.v.i;
  if (u->op == OPS_RANGE) return at[u->arg.range.id];
  Scalar v[2] = {{.i = value_at(u->src[0], at)}, {.i = value_at(u->src[1], at)}}, r = {0};
  assert_true(scalar_eval((Ops)u->op, DT_INDEX, v, &r));
  return r.i;
}

/* Statements of a vector may be done lane by lane together with one before: then a store is too early. */
static bool steps_fit(const List *l, int from, int to, int64_t *at, bool *stored) {
  for (int i = from; i < to; i++) {
    const UOp *u = l->at[i];
    if (u->op == OPS_RANGE) {
      int end = i + 1, depth = 1;
      for (; depth; end++)
        depth += (l->at[end]->op == OPS_RANGE) - (l->at[end]->op == OPS_END);
      for (int64_t k = 0; k <= u->vmax; k++) {
        at[u->arg.range.id] = k;
        if (!steps_fit(l, i + 1, end - 1, at, stored)) return false;
      }
      i = end - 1;
      continue;
    }
    int lanes = u->op == OPS_LOAD ? u->lanes : u->src[1]->lanes;
    int64_t place = value_at(u->src[0]->src[1], at) + BASE;
    assert_true(place >= 0 && place + lanes <= ELEMENTS);
    for (int k = 0; k < lanes; k++) {
      if (u->op == OPS_LOAD && stored[place + k]) return false;
      if (u->op == OPS_STORE) stored[place + k] = true;
    }
  }
  return true;
}

static bool says(const List *l) {
  uint64_t of[LIST_SLOTS];
  Linear lin = {.at = (UOp **)l->at, .n = l->n, .nparam = 2, .nthread = 1};
  list_in_place(&lin, of);
  return of[1] & 1;
}

static bool is_so(const List *l) {
  static bool stored[ELEMENTS];
  int64_t at[LOOPS] = {0};
  memset(stored, 0, sizeof stored);
  return steps_fit(l, 0, l->n, at, stored);
}

/* ---- lists */
static void list_begin(List *l, unsigned seed) {
  static const int sizes[LOOPS] = {4, 3, 5, 2};
  *l = (List){.st = l->st, .seed = seed};
  for (int i = 0; i < LOOPS; i++)
    l->range[i] = uop_range(l->st, sizes[i], i, AXIS_LOOP);
  for (int i = 0; i < 2; i++)
    l->memory[i] = uop_new(l->st, OPS_PARAM, DT_F32, 1, 0, NULL, (Arg){.param = {ELEMENTS, i}});
  l->value[0] = uop_const_int(l->st, DT_F32, 1);
  l->value[1] = UNEW(l->st, OPS_VECTORIZE, DT_F32, 4, ARG0, l->value[0]);
}

static UOp *random_place(List *l, const bool *open) {
  static const int64_t by[] = {0, 1, 1, 4, 12, 12, 60, -1, 24};
  UOp *s = uop_index_const(l->st, (int64_t)draw(l, 3) * (draw(l, 2) ? 1 : 12));
  for (int i = 0; i < LOOPS; i++) {
    if (!open[i]) continue;
    UOp *t = draw(l, 8) ? l->range[i] : uop_alu2(l->st, OPS_FLOORDIV, l->range[i], uop_index_const(l->st, 2));
    s = plus(l, s, scaled(l, t, by[draw(l, sizeof by / sizeof *by)]));
  }
  return s;
}

/* Statements, loops around some; the same loop may begin again later. */
static void random_list(List *l, bool *open, int depth) {
  for (unsigned n = 1 + draw(l, 3); n; n--) {
    int i = (int)draw(l, LOOPS);
    if (depth < 3 && !open[i] && draw(l, 2)) {
      put(l, l->range[i]);
      open[i] = true;
      random_list(l, open, depth + 1);
      open[i] = false;
      put(l, UNEW(l->st, OPS_END, DT_VOID, 1, ARG0, l->range[i]));
    } else
      access_put(l, draw(l, 2), random_place(l, open), draw(l, 4) ? 1 : 4);
  }
}

/* Row r0 (of 60) by column r2 (of 12) and number r1: copied whole or by the row, then stored in the order of other
 * loops; or read and stored in one turn. */
static void kernel_like(List *l, int kind, int shift) {
  UOp **r = l->range, *end[LOOPS];
  for (int i = 0; i < LOOPS; i++)
    end[i] = UNEW(l->st, OPS_END, DT_VOID, 1, ARG0, r[i]);
  UOp *row = scaled(l, r[0], 60), *place = plus(l, plus(l, row, scaled(l, r[2], 12)), scaled(l, r[1], 4));
  UOp *moved = plus(l, place, uop_index_const(l->st, shift));
  if (kind) put(l, r[0]);
  UOp *first[] = {kind ? NULL : r[0], r[2], r[1]}, *second[] = {kind ? NULL : r[0], r[1], r[2]};
  for (int i = 0; i < 3; i++)
    if (first[i]) put(l, first[i]);
  access_put(l, false, place, 4);
  if (kind == 2)
    access_put(l, true, moved, 1), access_put(l, true, plus(l, moved, uop_index_const(l->st, 1)), 1);
  for (int i = 2; i >= 0; i--)
    if (first[i]) put(l, end[first[i]->arg.range.id]);
  for (int i = 0; i < 3 && kind < 2; i++)
    if (second[i]) put(l, second[i]);
  if (kind < 2) access_put(l, true, moved, 4);
  for (int i = 2; i >= 0 && kind < 2; i--)
    if (second[i]) put(l, end[second[i]->arg.range.id]);
  if (kind) put(l, end[0]);
}

static void test_random(void **state) {
  (void)state;
  TgMem mem = {0};
  List l = {.st = store_new(&mem)};
  unsigned told = 0, so = 0;
  for (unsigned n = 0; n < 20000; n++) {
    bool open[LOOPS] = {false};
    list_begin(&l, n);
    random_list(&l, open, 0);
    bool is = is_so(&l), told_so = says(&l);
    if (told_so && !is) fail_msg("list %u", n);
    /* a memory that is not read, or not stored to, is in no place */
    bool both = false, kinds[2] = {false};
    for (int i = 0; i < l.n; i++) {
      kinds[0] |= l.at[i]->op == OPS_LOAD;
      kinds[1] |= l.at[i]->op == OPS_STORE;
      both = kinds[0] && kinds[1];
    }
    told += told_so, so += is && both;
  }
  if (told * 2 < so) fail_msg("%u of %u lists are seen", told, so);
  store_free(l.st);
  assert_int_equal(mem.live, 0);
}

static void test_kernels(void **state) {
  (void)state;
  TgMem mem = {0};
  List l = {.st = store_new(&mem)};
  for (int kind = 0; kind < 3; kind++)
    for (int shift = -70; shift <= 70; shift++) {
      list_begin(&l, 1);
      kernel_like(&l, kind, shift);
      bool is = is_so(&l), told = says(&l);
      if (told && !is) fail_msg("kind %d moved by %d", kind, shift);
      if (!shift && !told) fail_msg("kind %d is not seen", kind);
      if (!kind && !told) fail_msg("a copy of all, moved by %d, is not seen", shift);
    }
  store_free(l.st);
  assert_int_equal(mem.live, 0);
}

/* Threads, gates and what is more than a load leave memories apart. */
static void test_apart(void **state) {
  (void)state;
  TgMem mem = {0};
  List l = {.st = store_new(&mem)};
  uint64_t of[LIST_SLOTS];
  list_begin(&l, 1);
  kernel_like(&l, 0, 0);
  assert_true(says(&l));
  Linear shares = {.at = l.at, .n = l.n, .nparam = 2, .nthread = 2};
  list_in_place(&shares, of);
  assert_int_equal(of[1], 0);
  UOp *x = UNEW(l.st, OPS_INDEX, DT_F32, 1, ARG0, l.memory[1], uop_index_const(l.st, 0));
  put(&l, UNEW(l.st, OPS_NEG, DT_F32, 1, ARG0, x)); /* an INDEX that something else takes */
  assert_false(says(&l));
  store_free(l.st);
  assert_int_equal(mem.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_kernels),
                                     cmocka_unit_test(test_apart)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
