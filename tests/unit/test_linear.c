/* test_linear.c: uop_within against evaluation at every point of the ranges, on random offsets and gates. */
#include "uop/uop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static int64_t value_at(const UOp *u, const int64_t *at) {
  if (u->op == OPS_CONST) return u->arg.v.i;
  if (u->op == OPS_RANGE) return at[u->arg.range.id];
  if (u->op == OPS_VAR) return at[3];
  Scalar v[2] = {{.i = value_at(u->src[0], at)}, {.i = value_at(u->src[1], at)}}, r = {0};
  assert_true(scalar_eval((Ops)u->op, (DType)u->src[0]->dtype, v, &r));
  return r.i;
}

static unsigned draw(unsigned *seed) { return *seed = *seed * 1664525u + 1013904223u, *seed >> 16; }

static UOp *random_sum(UOpStore *st, UOp **r, unsigned *seed) {
  UOp *s = uop_index_const(st, (int64_t)(draw(seed) % 9) - 4);
  for (int i = 0; i < 3; i++) {
    UOp *t = draw(seed) % 4 ? r[i] : uop_alu2(st, OPS_FLOORDIV, r[i], uop_index_const(st, 2));
    s = uop_alu2(st, OPS_ADD, s,
                 uop_alu2(st, OPS_MUL, t, uop_index_const(st, (int64_t)(draw(seed) % 5) - 2)));
  }
  return s;
}

static void test_within(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *r[3] = {uop_range(st, 4, 0, AXIS_LOOP), uop_range(st, 5, 1, AXIS_LOOP),
               uop_range(st, 6, 2, AXIS_LOOP)};
  UOp *yes = uop_const_int(st, DT_BOOL, 1);
  unsigned seed = 99, told = 0, gated = 0;
  for (int n = 0; n < 40000; n++) {
    UOp *off = uop_simplify(st, &mem, random_sum(st, r, &seed)), *gate = yes;
    for (unsigned c = draw(&seed) % 4; c; c--) { /* often a clause about the offset itself, as a PAD makes */
      UOp *s = draw(&seed) % 2 ? off : random_sum(st, r, &seed);
      UOp *less = uop_alu2(st, OPS_CMPLT, s, uop_index_const(st, (int64_t)(draw(&seed) % 15) - 2));
      gate = uop_alu2(st, OPS_AND, gate, draw(&seed) % 2 ? less : uop_alu2(st, OPS_CMPNE, less, yes));
    }
    int64_t size = 1 + draw(&seed) % 20;
    bool inside = true;
    UOp *g = uop_simplify(st, &mem, gate);
    bool says = uop_within(off, g, size);
    for (int64_t p = 0; p < 120; p++) {
      int64_t at[4] = {p % 4, p / 4 % 5, p / 20, 0}, v = value_at(off, at);
      if (value_at(gate, at)) inside &= v >= 0 && v < size;
    }
    if (says && !inside) fail_msg("case %d", n);
    told += says, gated += says && !(off->vmin >= 0 && off->vmax < size);
  }
  assert_true(told > 2000 && gated > 1000); /* it does tell, also where only the gate says so */
  store_free(st);
  assert_int_equal(mem.live, 0);
}

/* i + j < 5 bounds i + j where i < 3 is known, too: the short sum is not taken first, whatever stands first. */
static void test_long_sums_first(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *i = uop_range(st, 10, 0, AXIS_LOOP), *j = uop_range(st, 10, 1, AXIS_LOOP);
  UOp *sum = uop_alu2(st, OPS_ADD, i, j);
  UOp *less[2] = {uop_alu2(st, OPS_CMPLT, i, uop_index_const(st, 3)),
                  uop_alu2(st, OPS_CMPLT, sum, uop_index_const(st, 5))};
  for (int first = 0; first < 2; first++) {
    UOp *gate = uop_alu2(st, OPS_AND, less[first], less[!first]);
    assert_true(uop_within(sum, gate, 5));
    assert_false(uop_within(sum, gate, 4));
  }
  store_free(st);
  assert_int_equal(mem.live, 0);
}

/* // and % by constants, alone, over one another and added to one another: what they become has the same
 * value at every point. A variable that is never 0 makes rests whose least value is a multiple of the divisor
 * away. */
static void test_divmod(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *var = uop_new(st, OPS_VAR, DT_INDEX, 1, 0, NULL, (Arg){.var = {.lo = 1, .hi = 4}});
  UOp *r[3] = {uop_range(st, 4, 0, AXIS_LOOP), uop_range(st, 5, 1, AXIS_LOOP),
               uop_range(st, 6, 2, AXIS_LOOP)};
  assert_non_null(var);
  unsigned seed = 5, changed = 0;
  for (int n = 0; n < 6000; n++) {
    int64_t c = 2 + draw(&seed) % 7, d = draw(&seed) % 2 ? c : 2 + draw(&seed) % 7;
    UOp *x = random_sum(st, r, &seed), *by = uop_index_const(st, c);
    x = uop_alu2(st, OPS_ADD, x,
                 uop_alu2(st, OPS_MUL, var, uop_index_const(st, (int64_t)(draw(&seed) % 5) - 2)));
    x = uop_alu2(st, OPS_ADD, x,
                 uop_alu2(st, OPS_MUL, r[draw(&seed) % 3], uop_index_const(st, c * (draw(&seed) % 3))));
    UOp *u = uop_alu2(st, draw(&seed) % 2 ? OPS_FLOORDIV : OPS_FLOORMOD, x, by);
    switch (draw(&seed) % 4) {
    case 0: u = uop_alu2(st, draw(&seed) % 2 ? OPS_FLOORDIV : OPS_FLOORMOD, u, uop_index_const(st, d)); break;
    case 1: /* (x // c) * d + x % d: x where c is d */
      u = uop_alu2(st, OPS_MUL, uop_alu2(st, OPS_FLOORDIV, x, by), uop_index_const(st, d));
      u = uop_alu2(st, OPS_ADD, u, uop_alu2(st, OPS_FLOORMOD, x, uop_index_const(st, d)));
      break;
    case 2: /* (x // c % 3) * d + x % d: x % 3c where c is d */
      u = uop_alu2(st, OPS_FLOORMOD, uop_alu2(st, OPS_FLOORDIV, x, by), uop_index_const(st, 3));
      u = uop_alu2(st, OPS_ADD, uop_alu2(st, OPS_MUL, u, uop_index_const(st, d)),
                   uop_alu2(st, OPS_FLOORMOD, x, uop_index_const(st, d)));
      break;
    default: break;
    }
    UOp *v = uop_simplify(st, &mem, u);
    assert_non_null(v);
    changed += v != u;
    for (int64_t p = 0; p < 480; p++) {
      int64_t at[4] = {p % 4, p / 4 % 5, p / 20 % 6, 1 + p / 120}, want = value_at(u, at);
      if (value_at(v, at) != want)
        fail_msg("case %d: %lld, not %lld", n, (long long)value_at(v, at), (long long)want);
      if (want < v->vmin || want > v->vmax) fail_msg("case %d: %lld is out of bounds", n, (long long)want);
    }
  }
  assert_true(changed > 2000);
  store_free(st);
  assert_int_equal(mem.live, 0);
}

/* i - 3 in 0 .. 7 where 3 <= i and i < 10; four times that and a part, as a flat address; not so with one
 * clause missing */
static void test_pad(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *i = uop_range(st, 20, 0, AXIS_LOOP);
  UOp *j = uop_range(st, 4, 1, AXIS_LOOP);
  UOp *yes = uop_const_int(st, DT_BOOL, 1);
  UOp *low = uop_alu2(st, OPS_CMPNE, uop_alu2(st, OPS_CMPLT, i, uop_index_const(st, 3)), yes);
  UOp *high = uop_alu2(st, OPS_CMPLT, i, uop_index_const(st, 10));
  UOp *at = uop_alu2(st, OPS_ADD, uop_alu2(st, OPS_ADD, uop_alu2(st, OPS_MUL, i, uop_index_const(st, 4)), j),
                     uop_index_const(st, -12));
  UOp *both = uop_alu2(st, OPS_AND, low, high);
  assert_true(uop_within(at, both, 28));
  assert_false(uop_within(at, both, 27));
  assert_false(uop_within(at, low, 28));
  assert_false(uop_within(at, high, 28));
  assert_false(uop_within(at, NULL, 28));
  /* i + j < 4 bounds the sum, and i < 3 only a part of it: whichever clause comes first */
  UOp *sum = uop_alu2(st, OPS_ADD, i, j), *whole = uop_alu2(st, OPS_CMPLT, sum, uop_index_const(st, 4));
  UOp *part = uop_alu2(st, OPS_CMPLT, i, uop_index_const(st, 3));
  assert_true(uop_within(sum, uop_alu2(st, OPS_AND, part, whole), 4));
  assert_true(uop_within(sum, uop_alu2(st, OPS_AND, whole, part), 4));
  assert_false(uop_within(sum, part, 4));
  store_free(st);
  assert_int_equal(mem.live, 0);
}

/* A sum taken apart along two of its three ranges, and the coefficient of each, against evaluation at every
 * point; what has a range inside a quotient is no such sum. */
static void test_coefficient(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *r[3] = {uop_range(st, 4, 0, AXIS_LOOP), uop_range(st, 5, 1, AXIS_LOOP),
               uop_range(st, 6, 2, AXIS_LOOP)};
  unsigned seed = 7, told = 0, apart = 0;
  for (int n = 0; n < 4000; n++) {
    UOp *e = random_sum(st, r, &seed);
    if (draw(&seed) % 2) e = uop_alu2(st, OPS_SUB, e, random_sum(st, r, &seed));
    if (draw(&seed) % 2) e = uop_simplify(st, &mem, e);
    int64_t k[3];
    bool known[3];
    for (int i = 0; i < 3; i++)
      known[i] = uop_coefficient(e, r[i], &k[i]), told += known[i];
    LinearIn sum;
    bool is = uop_linear_in(st, &mem, e, 2, r, &sum);
    apart += is;
    assert_true(!known[0] || !known[1] || is);
    assert_true(!is || !sum.rest || !(sum.rest->ranges & 3));
    for (int64_t p = 0; p < 120; p++) {
      int64_t at[4] = {p % 4, p / 4 % 5, p / 20, 0}, v = value_at(e, at);
      for (int i = 0; i < 3; i++) {
        int64_t next[4] = {at[0], at[1], at[2], 0};
        next[i]++;
        if (known[i] && value_at(e, next) - v != k[i]) fail_msg("case %d: coefficient of r%d", n, i);
      }
      int64_t rest = is && sum.rest ? value_at(sum.rest, at) : 0;
      if (is && rest + sum.c + sum.by[0] * at[0] + sum.by[1] * at[1] != v) fail_msg("case %d: the sum", n);
    }
  }
  assert_true(told > 6000 && told < 12000 && apart > 1000 && apart < 4000);
  UOp *most = uop_alu2(st, OPS_MUL, r[0], uop_index_const(st, INT64_MAX / 2));
  LinearIn sum;
  assert_false(uop_linear_in(st, &mem, most, 1, r, &sum)); /* 3 * (2^62 - 1) is no int64 */
  store_free(st);
  assert_int_equal(mem.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_within), cmocka_unit_test(test_long_sums_first),
                                     cmocka_unit_test(test_divmod), cmocka_unit_test(test_pad),
                                     cmocka_unit_test(test_coefficient)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
