/* test_linear.c: what is known of index expressions (uop_within, uop_given, gate_share, quotients and rests)
 * against evaluation at every point of the ranges, on random offsets and gates. */
#include "plan/gate.h"
#include "uop/uop.h"
#include <math.h>
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

static UOp *random_gate(UOpStore *st, UOp **r, unsigned *seed) {
  UOp *yes = uop_const_int(st, DT_BOOL, 1), *gate = yes;
  for (unsigned c = 1 + draw(seed) % 3; c; c--) {
    UOp *less =
        uop_alu2(st, OPS_CMPLT, random_sum(st, r, seed), uop_index_const(st, (int64_t)(draw(seed) % 15) - 6));
    gate = uop_alu2(st, OPS_AND, gate, draw(seed) % 2 ? less : uop_alu2(st, OPS_CMPNE, less, yes));
  }
  return gate;
}

/* Where the gate holds, an expression has the value that it has been simplified to. */
static void test_given(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *r[3] = {uop_range(st, 4, 0, AXIS_LOOP), uop_range(st, 5, 1, AXIS_LOOP),
               uop_range(st, 6, 2, AXIS_LOOP)};
  unsigned seed = 17, changed = 0;
  for (int n = 0; n < 6000; n++) {
    UOp *x = uop_simplify(st, &mem, random_sum(st, r, &seed)),
        *gate = uop_simplify(st, &mem, random_gate(st, r, &seed));
    UOp *less = uop_alu2(st, OPS_CMPLT, x, uop_index_const(st, 1 + draw(&seed) % 6));
    if (draw(&seed) % 2) gate = uop_simplify(st, &mem, uop_alu2(st, OPS_AND, gate, less));
    UOp *e = uop_alu2(st, draw(&seed) % 2 ? OPS_FLOORDIV : OPS_FLOORMOD,
                      uop_alu2(st, OPS_ADD, x, uop_index_const(st, draw(&seed) % 4)),
                      uop_index_const(st, 2 + draw(&seed) % 6));
    e = uop_simplify(st, &mem, e);
    UOp *v = uop_given(st, &mem, e, gate);
    assert_non_null(v);
    assert_false(uop_has(v, VAR));
    changed += v != e;
    for (int64_t p = 0; p < 120; p++) {
      int64_t at[4] = {p % 4, p / 4 % 5, p / 20, 0};
      if (value_at(gate, at) && value_at(v, at) != value_at(e, at)) fail_msg("case %d", n);
    }
  }
  if (changed < 100) fail_msg("%u are simpler", changed);
  store_free(st);
  assert_int_equal(mem.live, 0);
}

/* A padded axis of 16 that memory takes apart, in any order of splits: where it is inside, its parts are it again. */
static void test_split_axis(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *i = uop_range(st, 16, 0, AXIS_LOOP), *k = uop_range(st, 3, 1, AXIS_REDUCE),
      *yes = uop_const_int(st, DT_BOOL, 1);
  UOp *sum = uop_alu2(st, OPS_ADD, i, k),
      *axis = uop_simplify(st, &mem, uop_alu2(st, OPS_SUB, sum, uop_index_const(st, 1)));
  UOp *gate = uop_alu2(st, OPS_AND,
                       uop_alu2(st, OPS_CMPNE, uop_alu2(st, OPS_CMPLT, sum, uop_index_const(st, 1)), yes),
                       uop_alu2(st, OPS_CMPLT, sum, uop_index_const(st, 17)));
  gate = uop_simplify(st, &mem, gate);
  static const int order[][3] = {{8, 4, 2}, {8, 2, 0}, {4, 2, 0}, {2, 0, 0}, {4, 0, 0},
                                 {2, 4, 8}, {2, 8, 4}, {4, 8, 2}, {4, 2, 8}};
  for (size_t o = 0; o < TG_COUNT(order); o++)
    for (int wrapped = 0; wrapped < 2; wrapped++) {
      UOp *part[4] = {axis}; /* the outermost first, each of so many elements of the axis */
      int64_t of[4] = {16}, size[4] = {1};
      int n = 1;
      for (int s = 0; s < 3 && order[o][s]; s++) {
        int64_t c = order[o][s];
        int at = n - 1; /* the part that is cut where an element of the axis is a multiple of c */
        while (size[at] > c || size[at] * of[at] <= c)
          at--;
        int64_t inner = c / size[at];
        for (int m = n++; m > at; m--)
          part[m] = part[m - 1], of[m] = of[m - 1], size[m] = size[m - 1];
        UOp *by = uop_index_const(st, inner);
        part[at + 1] = uop_simplify(st, &mem, uop_alu2(st, OPS_FLOORMOD, part[at], by));
        part[at] = uop_simplify(st, &mem, uop_alu2(st, OPS_FLOORDIV, part[at], by));
        of[at] /= inner, of[at + 1] = inner, size[at + 1] = size[at], size[at] = c;
      }
      if (wrapped)
        part[0] = uop_simplify(st, &mem, uop_alu2(st, OPS_FLOORMOD, part[0], uop_index_const(st, of[0])));
      UOp *flat = uop_index_const(st, 0);
      for (int m = 0; m < n; m++)
        flat =
            uop_alu2(st, OPS_ADD, flat,
                     uop_alu2(st, OPS_MUL, uop_given(st, &mem, part[m], gate), uop_index_const(st, size[m])));
      if (uop_simplify(st, &mem, flat) != axis) fail_msg("order %d, wrapped %d", (int)o, wrapped);
    }
  store_free(st);
  assert_int_equal(mem.live, 0);
}

/* How often a gate holds: of two long loops and one clause within 1 %, of windows of one sum too. */
static void test_share(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *q = uop_range(st, 100, 0, AXIS_LOOP), *k = uop_range(st, 80, 1, AXIS_REDUCE),
      *yes = uop_const_int(st, DT_BOOL, 1);
  unsigned seed = 3;
  for (int n = 0; n < 300; n++) {
    int64_t by = draw(&seed) % 3 ? 1 : 2, c = (int64_t)(draw(&seed) % 240) - 120, width = draw(&seed) % 60;
    bool away = draw(&seed) % 2, window = draw(&seed) % 2, holds = draw(&seed) % 2;
    UOp *d = uop_alu2(st, away ? OPS_SUB : OPS_ADD, uop_alu2(st, OPS_MUL, k, uop_index_const(st, by)), q);
    UOp *g = uop_alu2(st, OPS_CMPLT, d, uop_index_const(st, c));
    UOp *least = uop_alu2(st, OPS_CMPNE, uop_alu2(st, OPS_CMPLT, d, uop_index_const(st, c - width)), yes);
    if (window) g = uop_alu2(st, OPS_AND, draw(&seed) % 2 ? g : least, draw(&seed) % 2 ? least : g);
    g = uop_simplify(st, &mem, g);
    int64_t count = 0;
    if (is_const(g)) continue;
    for (int64_t p = 0; p < 8000; p++)
      count += value_at(g, (int64_t[]){p % 100, p / 100, 0, 0}) == holds;
    double share = gate_share(g, holds), want = (double)count / 8000;
    if (fabs(share - want) > 0.01) fail_msg("case %d: %g, not %g", n, share, want);
  }
  UOp *data =
      uop_alu2(st, OPS_CMPLT, uop_alu2(st, OPS_FLOORDIV, q, uop_index_const(st, 7)), uop_index_const(st, 3));
  assert_true(gate_share(uop_alu2(st, OPS_AND, data, yes), true) == 1); /* not known */
  store_free(st);
  assert_int_equal(mem.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_within),      cmocka_unit_test(test_long_sums_first),
      cmocka_unit_test(test_divmod),      cmocka_unit_test(test_pad),
      cmocka_unit_test(test_coefficient), cmocka_unit_test(test_given),
      cmocka_unit_test(test_split_axis),  cmocka_unit_test(test_share)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
