/* test_uop.c: one content is one node. */
#include "uop/uop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* An arg is as much of the union as its op has: `(Arg){.i = n}` says nothing of the bytes behind n. */
static void test_arg_bytes(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *one = uop_const(st, DT_I32, (Scalar){.i = 1}),
      *two[2] = {one, uop_const(st, DT_I32, (Scalar){.i = 2})};
  UOp *pair = uop_new(st, OPS_VECTORIZE, DT_I32, 2, 2, two, ARG0);

  const struct {
    Ops op;
    int nsrc;
    UOp **src;
    int64_t first;
  } made[] = {
      {OPS_GEP, 1, &pair, 1}, {OPS_VECTORIZE, 2, two, 0}, {OPS_ADD, 2, two, 0}, {OPS_CONST, 0, NULL, 7}};

  for (size_t i = 0; i < TG_COUNT(made); i++) {
    UOp *u = NULL;
    for (int64_t behind = 0; behind < 3; behind++) {
      Arg arg = {.raw = {made[i].first, behind << 40}};
      UOp *v = uop_new(st, made[i].op, DT_I32, made[i].op == OPS_VECTORIZE ? 2 : 1, made[i].nsrc, made[i].src,
                       arg);
      assert_non_null(v);
      if (u) assert_ptr_equal(u, v);
      u = v;
    }
  }
  UOp *a = uop_new(st, OPS_RANGE, DT_INDEX, 1, 1, &one, (Arg){.range = {1, AXIS_LOOP, 0}});
  UOp *b = uop_new(st, OPS_RANGE, DT_INDEX, 1, 1, &one, (Arg){.range = {1, AXIS_REDUCE, 0}});
  assert_true(a && b && a != b); /* both words of a range count */
  store_free(st);
  assert_int_equal(mem.live, 0);
}

/* An integer to a narrow float is rounded once, with the sign that its dtype gives it. */
static void test_integers_to_narrow(void **state) {
  (void)state;

  static const struct {
    DType from, to;
    int64_t v;
    double want;
  } cases[] = {
      {DT_I64, DT_BF16, -3, -3},
      {DT_I8, DT_F16, -128, -128},
      {DT_I64, DT_BF16, -1, -1},
      {DT_U64, DT_BF16, -1, 18446744073709551616.0},
      {DT_U64, DT_BF16, INT64_MIN, 9223372036854775808.0},
      {DT_U64, DT_F16, 2049, 2048},
      {DT_U64, DT_F16, 2051, 2052},
      {DT_I64, DT_F16, -2051, -2052},
      {DT_I32, DT_FP8E4M3, -17, -16},
      {DT_I64, DT_BF16, -((INT64_C(257) << 50) + 1), -1.0 * (INT64_C(258) << 50)},
      {DT_U64, DT_BF16, (INT64_C(257) << 54) + 1, 1.0 * (INT64_C(258) << 54)},
  };

  for (size_t i = 0; i < TG_COUNT(cases); i++) {
    double got = scalar_cast(cases[i].to, cases[i].from, (Scalar){.i = cases[i].v}).f;
    if (got != cases[i].want)
      fail_msg("%s %lld to %s is %.17g, not %.17g", dtype_name(cases[i].from), (long long)cases[i].v,
               dtype_name(cases[i].to), got, cases[i].want);
  }
}

/* A graph is copied into another store while any allocation fails, and each one from there on: it is NULL, or
 * what it is otherwise; nothing is left. It has nodes of many sources, whose lists are allocated. */
static void test_copy_without_memory(void **state) {
  (void)state;

  enum { SOURCES = 40, NODES = 60 };

  for (int after = 0; after < 2; after++)
    for (uint64_t n = 1, failed = 1; failed; n++) {
      TgMem mem = {0};
      UOpStore *from = store_new(&mem), *to = store_new(&mem);
      UOp *src[SOURCES], *u = uop_const(from, DT_F32, (Scalar){.f = 1});
      for (int i = 0; i < NODES; i++) { /* each of many places of the one before, with a number of its own */
        for (int k = 0; k < SOURCES; k++)
          src[k] = k == i % SOURCES ? u : uop_const(from, DT_F32, (Scalar){.f = i + 2});
        u = uop_new(from, OPS_SINK, DT_VOID, 1, SOURCES, src, ARG0);
      }
      assert_non_null(u);
      UOpMap *map = uop_map_begin(from, to);
      uint64_t before = mem.failed;
      mem.fail_at = mem.calls + n, mem.fail_always_after = after;
      UOp *v = map ? uop_copy(to, from, map, &mem, u) : NULL;
      mem.fail_at = 0, mem.fail_always_after = false;
      failed = mem.failed - before;
      assert_true(v || failed);
      for (int i = NODES - 1; v && i >= 0; i--) {
        assert_int_equal(v->nsrc, SOURCES);
        assert_true(v->src[(i + 1) % SOURCES]->arg.v.f == i + 2);
        v = v->src[i % SOURCES];
      }
      uop_map_end(from, map);
      store_free(to), store_free(from);
      assert_int_equal(mem.live, 0);
    }
}

/* A chain of n nodes, some with many sources, some with a list; returns its end. */
static UOp *chain(UOpStore *st, int n) {
  UOp *src[12], *u = uop_index_const(st, 3);
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < 12; k++)
      src[k] = k ? uop_index_const(st, i + k) : u;
    u = i % 7 ? uop_alu2(st, OPS_ADD, u, src[1]) : uop_new(st, OPS_SINK, DT_INDEX, 1, 12, src, ARG0);
    if (i % 5 == 0)
      u = uop_new(st, OPS_RESHAPE, DT_INDEX, 1, 1, &u, (Arg){.ints = ints_get(st, 1, &(int64_t){i})});
  }
  return u;
}

/* A cleared store numbers and hashes nodes as a new one does, small graphs behind large ones too; the second
 * time it asks for no more memory. */
static void test_cleared(void **state) {
  (void)state;
  static const int sizes[] = {0, 5000, 1, 300, 20000, 40, 20000};
  TgMem mem = {0};
  UOpStore *kept = store_new(&mem);
  size_t live = 0;
  for (size_t i = 0; i < TG_COUNT(sizes); i++) {
    UOpStore *fresh = store_new(&mem);
    const UOp *a = chain(kept, sizes[i]), *b = chain(fresh, sizes[i]);
    assert_true(a && b && a->id == b->id && a->hash == b->hash && a->opmask == b->opmask);
    assert_int_equal(store_count(kept), store_count(fresh));
    assert_int_equal(store_created(kept), store_created(fresh));
    assert_ptr_equal(chain(kept, sizes[i]), a); /* each node is found again */
    assert_int_equal(store_count(kept), store_count(fresh));
    store_free(fresh);
    store_clear(kept);
    assert_int_equal(store_count(kept), 0);
    if (i == 4) live = mem.live;
  }
  assert_true(mem.live <= live);
  store_free(kept);
  assert_int_equal(mem.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_arg_bytes), cmocka_unit_test(test_integers_to_narrow),
      cmocka_unit_test(test_copy_without_memory), cmocka_unit_test(test_cleared)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
