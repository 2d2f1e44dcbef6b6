/* test_float_bounds.c: what bounds_of says of an expression holds of its value, unless that is NaN, and the
 * bounds of a cast of it to an integer hold always. Random expressions, evaluated by scalar_eval at numbers of
 * every kind, infinities and NaN among them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdint.h>
#include "codegen/decompose.h"

enum { NODES = 12, GRAPHS = 4000, POINTS = 24 };

static uint64_t rnd(uint64_t *s) { /* splitmix64 */
  uint64_t z = *s += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9, z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static const double kinds[] = {0,   -0.0, 1,   -1,   0.5,  -3,       7,         88,  -88,
                               104, -104, 1e9, -1e9, 1e38, INFINITY, -INFINITY, NAN, 1e-40};

static double number(uint64_t *s) { return (float)kinds[rnd(s) % TG_COUNT(kinds)]; }

static UOp *constant_of(UOpStore *st, DType d, double v) { return uop_const(st, d, (Scalar){.f = v}); }

static UOp *constant(UOpStore *st, double v) { return constant_of(st, DT_F32, v); }

static UOp *grown(UOpStore *st, uint64_t *s, UOp **node, int n) {
  UOp *a = node[rnd(s) % (uint64_t)n], *b = node[rnd(s) % (uint64_t)n], *c = node[rnd(s) % (uint64_t)n];
  switch (rnd(s) % 8) {
  case 0: return uop_alu1(st, OPS_NEG, a);
  case 1: return uop_alu2(st, OPS_MAX, a, b);
  case 2: return uop_alu2(st, OPS_ADD, a, b);
  case 3: return uop_alu2(st, OPS_MUL, a, rnd(s) % 2 ? a : b);
  case 4: return uop_alu1(st, rnd(s) % 2 ? OPS_EXP : OPS_SQRT, a);
  case 5: return constant_of(st, (DType)a->dtype, number(s));
  default:
    return uop_where(st, uop_alu2(st, OPS_CMPLT, a, b), rnd(s) % 2 ? a : c,
                     rnd(s) % 2 ? uop_alu1(st, OPS_NEG, a) : b);
  }
}

static Scalar value(const UOp *u, const double *x) {
  Scalar s[3], out = {0};
  if (u->op == OPS_CONST) return u->arg.v;
  if (u->op == OPS_PARAM) return scalar_round((DType)u->dtype, (Scalar){.f = x[u->arg.param.slot]});
  for (int i = 0; i < u->nsrc; i++)
    s[i] = value(u->src[i], x);
  if (u->op == OPS_CAST) return scalar_cast((DType)u->dtype, (DType)u->src[0]->dtype, s[0]);
  DType d = u->op == OPS_CMPLT ? (DType)u->src[0]->dtype : (DType)u->dtype;
  assert_true(scalar_eval((Ops)u->op, d, s, &out));
  return out;
}

static void test_hold(void **state) {
  (void)state;
  static const DType floats[] = {DT_F32, DT_F16, DT_F64, DT_BF16},
                     integers[] = {DT_I8, DT_U8, DT_I16, DT_I32, DT_U32, DT_I64, DT_INDEX, DT_BOOL};

  uint64_t seed = 11;
  int bounded = 0, narrowed = 0;
  for (int g = 0; g < GRAPHS; g++) {
    TgMem mem = {0};
    UOpStore *st = store_new(&mem);
    UOp *node[NODES];
    DType d = floats[g % (int)TG_COUNT(floats)], to = integers[rnd(&seed) % TG_COUNT(integers)];
    for (int i = 0; i < 2; i++)
      node[i] = uop_new(st, OPS_PARAM, d, 1, 0, NULL, (Arg){.param = {1, i}});
    for (int n = 2; n < NODES; n++)
      assert_non_null(node[n] = grown(st, &seed, node, n));
    UOp *last = node[NODES - 1], *cast = uop_cast(st, last, to);
    Bounds is = bounds_of(last);
    narrowed += cast->vmin > dtype_min(to) || cast->vmax < dtype_max(to);
    bounded += is.lo > -INFINITY || is.hi < INFINITY;
    for (int p = 0; p < POINTS; p++) {
      double x[2] = {number(&seed), number(&seed)}, v = value(last, x).f;
      int64_t whole = value(cast, x).i;
      if (!isnan(v) && (v < is.lo || v > is.hi))
        fail_msg("graph %d: %g is not in %g .. %g", g, v, is.lo, is.hi);
      if (whole < cast->vmin || whole > cast->vmax)
        fail_msg("graph %d: %lld of %g is not in %lld .. %lld", g, (long long)whole, v, (long long)cast->vmin,
                 (long long)cast->vmax);
    }
    store_free(st);
  }
  assert_true(bounded > GRAPHS / 4 && narrowed > GRAPHS / 20);
}

/* What makes exp short: nothing above 0. */
static void test_known(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *x = uop_new(st, OPS_PARAM, DT_F32, 1, 0, NULL, (Arg){.param = {1, 0}}), *zero = constant(st, 0);
  UOp *minus = uop_alu1(st, OPS_NEG, x), *less = uop_alu2(st, OPS_CMPLT, x, zero);
  assert_true(bounds_of(x).hi == INFINITY);
  assert_true(bounds_of(uop_where(st, less, x, minus)).hi == 0);
  assert_true(bounds_of(uop_alu1(st, OPS_NEG, uop_alu2(st, OPS_MUL, x, x))).hi == 0);
  assert_true(bounds_of(uop_where(st, less, minus, x)).lo == 0);
  /* x < y is false where y is NaN, and says nothing of x */
  UOp *y = uop_new(st, OPS_PARAM, DT_F32, 1, 0, NULL, (Arg){.param = {1, 1}});
  UOp *square = uop_alu2(st, OPS_MUL, y, y);
  assert_true(bounds_of(uop_where(st, uop_alu2(st, OPS_CMPLT, x, square), zero, x)).lo == -INFINITY);
  store_free(st);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_hold), cmocka_unit_test(test_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
