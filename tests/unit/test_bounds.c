/* test_bounds.c: vmin and vmax of every integer op hold for every pair of intervals within 5 bits: the least
 * and greatest values that scalar_eval gives over the intervals lie inside. Index, signed, unsigned and bool;
 * one result too tight is a wrong address somewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "uop/uop.h"

enum { V = 32 };

typedef struct Span {
  int64_t lo, hi;
} Span;

static Span span_join(Span a, Span b) { return (Span){TG_MIN(a.lo, b.lo), TG_MAX(a.hi, b.hi)}; }

static UOp *var(UOpStore *st, DType d, int64_t lo, int64_t hi) {
  return uop_new(st, OPS_VAR, d, 1, 0, NULL, (Arg){.var = {lo, hi}});
}

static Span holds(const UOp *u, Span s, const char *what, int64_t alo, int64_t ahi, int64_t blo,
                  int64_t bhi) {
  if (u->vmin > s.lo || u->vmax < s.hi)
    fail_msg("%s %s of [%lld, %lld] and [%lld, %lld]: bounds [%lld, %lld], values [%lld, %lld]",
             dtype_name((DType)u->src[0]->dtype), what, (long long)alo, (long long)ahi, (long long)blo,
             (long long)bhi, (long long)u->vmin, (long long)u->vmax, (long long)s.lo, (long long)s.hi);
  return s;
}

/* How many pairs of intervals have the tightest bounds. */
static int tight_pairs(TgMem *mem, Ops op, DType d, int64_t first, int n) {
  static Span row[V][V][V]; /* over b in [blo, bhi], for one a */
  int tight = 0;
  for (int a = 0; a < n; a++)
    for (int lo = 0; lo < n; lo++)
      for (int hi = lo; hi < n; hi++) {
        Scalar v[2] = {{.i = first + a}, {.i = first + hi}}, r = {0};
        if (!scalar_eval(op, d, v, &r)) fail_msg("%s on %s", op_name(op), dtype_name(d));
        row[a][lo][hi] = hi == lo ? (Span){r.i, r.i} : span_join(row[a][lo][hi - 1], (Span){r.i, r.i});
      }
  for (int alo = 0; alo < n; alo++) {
    UOpStore *st = store_new(mem);
    for (int blo = 0; blo < n; blo++)
      for (int bhi = blo; bhi < n; bhi++) {
        Span s = row[alo][blo][bhi];
        for (int ahi = alo; ahi < n; ahi++) {
          s = span_join(s, row[ahi][blo][bhi]);
          UOp *u =
              uop_alu2(st, op, var(st, d, first + alo, first + ahi), var(st, d, first + blo, first + bhi));
          holds(u, s, op_name(op), first + alo, first + ahi, first + blo, first + bhi);
          tight += u->vmin == s.lo && u->vmax == s.hi;
        }
      }
    store_free(st);
  }
  return tight;
}

static const struct {
  DType d;
  int64_t first;
  int n;
} domains[] = {{DT_INDEX, -16, 32}, {DT_I8, -16, 32}, {DT_U8, 0, 32},
               {DT_U8, 224, 32},    {DT_I8, 96, 32},  {DT_BOOL, 0, 2}};

/* So many of those of each domain, at least: looser bounds are right, too, but fewer gates and wraps go away.
 */
static const struct {
  Ops op;
  int least[6];
} tightest[] = {
    {OPS_ADD, {278784, 278784, 278784, 0, 0, 9}},
    {OPS_SUB, {278784, 278784, 232408, 232408, 278784, 8}},
    {OPS_MUL, {278784, 167984, 150640, 73982, 0, 9}},
    {OPS_CDIV, {63360, 63360, 261888, 278784, 278784, 5}},
    {OPS_CMOD, {35472, 35472, 194109, 180048, 180048, 6}},
    {OPS_FLOORDIV, {63360, 63360, 261888, 278784, 278784, 5}},
    {OPS_FLOORMOD, {52963, 52963, 235029, 226424, 226424, 6}},
    {OPS_MAX, {278784, 278784, 278784, 278784, 278784, 9}},
    {OPS_CMPLT, {278784, 278784, 278784, 278784, 278784, 9}},
    {OPS_CMPNE, {278784, 278784, 278784, 278784, 278784, 9}},
    {OPS_CMPEQ, {278784, 278784, 278784, 278784, 278784, 9}},
    {OPS_AND, {56367, 56367, 210560, 0, 0, 9}},
    {OPS_OR, {0, 0, 0, 0, 0, 9}},
    {OPS_XOR, {0, 0, 0, 0, 0, 5}},
    {OPS_SHL, {0, 0, 0, 0, 0, 3}},
    {OPS_SHR, {8448, 8448, 16896, 0, 0, 3}},
};

static void test_binary(void **state) {
  (void)state;
  TgMem mem = {0};
  for (int op = 0; op < OPS_COUNT; op++) {
    if (!(op_flags((Ops)op) & OPF_B) || op == OPS_FDIV || op == OPS_THREEFRY || op == OPS_DOT4 ||
        op == OPS_DOT2 || op == OPS_DOT2X2 || op == OPS_ADD2 || op == OPS_POW)
      continue;
    size_t k = 0;
    while (k < TG_COUNT(tightest) && tightest[k].op != (Ops)op)
      k++;
    assert_true(k < TG_COUNT(tightest));
    for (size_t i = 0; i < TG_COUNT(domains); i++) {
      int tight = tight_pairs(&mem, (Ops)op, domains[i].d, domains[i].first, domains[i].n);
      if (tight < tightest[k].least[i])
        fail_msg("%s of domain %d: %d pairs of intervals have the tightest bounds, not %d", op_name((Ops)op),
                 (int)i, tight, tightest[k].least[i]);
    }
  }
  assert_int_equal(mem.live, 0);
}

/* Of u64 only a constant below 2^63 is known: bounds are signed. */
static void test_u64(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *few = uop_const_int(st, DT_U64, 5), *many = uop_const_int(st, DT_U64, INT64_MIN + 5),
      *v = uop_cast(st, var(st, DT_U8, 1, 7), DT_U64);
  assert_true(few->vmin == 5 && few->vmax == 5);
  UOp *pairs[][2] = {{few, many}, {many, few}, {few, v}, {v, v}, {v, many}};
  assert_true(many->vmin == INT64_MIN && many->vmax == INT64_MAX);
  for (int op = 0; op < OPS_COUNT; op++)
    for (size_t i = 0; i < TG_COUNT(pairs); i++) {
      if (!(op_flags((Ops)op) & OPF_B) || op_flags((Ops)op) & OPF_CMP || op == OPS_FDIV || op == OPS_POW)
        continue;
      UOp *u = uop_alu2(st, (Ops)op, pairs[i][0], pairs[i][1]);
      if (u->op != OPS_CONST && (u->vmin != INT64_MIN || u->vmax != INT64_MAX))
        fail_msg("%s of u64: [%lld, %lld]", op_name((Ops)op), (long long)u->vmin, (long long)u->vmax);
    }
  store_free(st);
  assert_int_equal(mem.live, 0);
}

static void test_others(void **state) { /* NEG, CAST to every integer dtype, WHERE */
  (void)state;
  TgMem mem = {0};
  for (size_t i = 0; i < TG_COUNT(domains); i++) {
    DType d = domains[i].d;
    int64_t first = domains[i].first, end = first + domains[i].n;
    UOpStore *st = store_new(&mem);
    UOp *p = uop_new(st, OPS_PARAM, DT_BOOL, 1, 0, NULL, (Arg){.param = {1, 0}});
    for (int64_t lo = first; lo < end; lo++)
      for (int64_t hi = lo; hi < end; hi++) {
        UOp *a = var(st, d, lo, hi);
        for (int to = DT_INDEX; to <= DT_U64; to++) {
          Span s = {INT64_MAX, INT64_MIN};
          for (int64_t v = lo; v <= hi; v++) {
            Scalar r = scalar_cast((DType)to, d, (Scalar){.i = v});
            s = span_join(s, (Span){r.i, r.i});
          }
          if (to != (int)d && to != DT_U64) holds(uop_cast(st, a, (DType)to), s, "CAST", lo, hi, 0, 0);
        }
        Span s = {INT64_MAX, INT64_MIN};
        for (int64_t v = lo; v <= hi; v++) {
          Scalar r = {0}, x = {.i = v};
          assert_true(scalar_eval(OPS_NEG, d, &x, &r));
          s = span_join(s, (Span){r.i, r.i});
        }
        holds(uop_alu1(st, OPS_NEG, a), s, "NEG", lo, hi, 0, 0);
        for (int64_t k = first; k < end; k += 5)
          holds(uop_where(st, p, a, var(st, d, k, end - 1)), span_join((Span){lo, hi}, (Span){k, end - 1}),
                "WHERE", lo, hi, k, end - 1);
      }
    store_free(st);
  }
  assert_int_equal(mem.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_binary), cmocka_unit_test(test_u64),
                                     cmocka_unit_test(test_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
