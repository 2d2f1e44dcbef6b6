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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_arg_bytes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
