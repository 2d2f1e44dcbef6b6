/* test_division.c: integer division by a constant as decompose.c and linearize.c write it, evaluated by
 * scalar_eval node by node, against scalar_eval of the op itself: all of 8 bits, all 16-bit numerators, edges
 * and samples of 32 and 64 bits; for the compilers' targets, and for one that divides no integers. Index
 * arithmetic: the last numerators that the bounds allow. Counts say which forms hold no division. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "renderer/renderer.h"
#include "tg.h"

enum { MAX_STEPS = 64 };

static const Ops ops[] = {OPS_FLOORDIV, OPS_FLOORMOD, OPS_CDIV, OPS_CMOD};
static const DType ints[] = {DT_I8, DT_U8, DT_I16, DT_U16, DT_I32, DT_U32, DT_I64, DT_U64};

typedef struct Step {
  const UOp *u;
  int src[3];
  Scalar v;
} Step;

typedef struct Graph {
  Step at[MAX_STEPS];
  int n;
  bool divides;
} Graph;

static bool is_division(const UOp *u) {
  return u->op == OPS_FLOORDIV || u->op == OPS_FLOORMOD || u->op == OPS_CDIV || u->op == OPS_CMOD;
}

static void graph_of(Graph *g, UOpStore *st, TgMem *mem, UOp *root) {
  UOpVec topo = {0};
  assert_non_null(root);
  assert_true(uop_toposort(st, mem, &root, 1, &topo) && topo.len <= MAX_STEPS);
  memset(g, 0, sizeof *g);
  for (size_t i = 0; i < topo.len; i++) {
    Step *s = &g->at[g->n++];
    s->u = topo.at[i], g->divides |= is_division(s->u);
    if (is_const(s->u)) s->v = s->u->arg.v;
    for (int k = 0; k < s->u->nsrc; k++)
      for (size_t j = 0; j < i; j++)
        if (topo.at[j] == s->u->src[k]) s->src[k] = (int)j;
  }
  vec_free(mem, &topo);
}

static int64_t value(Graph *g, Scalar x) {
  for (int i = 0; i < g->n; i++) {
    Step *s = &g->at[i];
    const UOp *u = s->u;
    if (is_const(u)) continue;
    if (!u->nsrc) {
      s->v = x;
      continue;
    }
    Scalar in[3];
    for (int k = 0; k < u->nsrc; k++)
      in[k] = g->at[s->src[k]].v;
    DType d = (DType)u->src[u->op == OPS_WHERE]->dtype;
    if (u->op == OPS_CAST)
      s->v = scalar_cast((DType)u->dtype, d, in[0]);
    else
      assert_true(scalar_eval((Ops)u->op, d, in, &s->v));
  }
  return g->at[g->n - 1].v.i;
}

static void rewritten(Graph *g, UOpStore *st, TgMem *mem, const Renderer *ren, Ops op, UOp *x, int64_t c) {
  Kernel k = {.st = st, .mem = mem, .ren = ren};
  Rewrite rw = {.st = st, .mem = mem, .ctx = &k, .required = true};
  UOp *u = uop_alu2(st, op, x, uop_const_int(st, (DType)x->dtype, c));
  assert_non_null(u);
  graph_of(g, st, mem, graph_rewrite(&rw, pm_decompose, u));
}

static void same(Graph *g, Ops op, DType d, int64_t x, int64_t c) {
  Scalar in[2] = {scalar_round(d, (Scalar){.i = x}), scalar_round(d, (Scalar){.i = c})}, want;
  assert_true(scalar_eval(op, d, in, &want));
  int64_t got = value(g, in[0]);
  if (got != want.i)
    fail_msg("%s[%s](%lld, %lld): %lld, not %lld", op_name(op), dtype_name(d), (long long)in[0].i,
             (long long)in[1].i, (long long)got, (long long)want.i);
}

static Renderer target(int i) { /* the three compilers', then one that has no division of integers */
  Renderer r = i == 1 ? renderer_cuda : i == 2 ? renderer_metal : renderer_c;
  if (i == 3)
    r.native &=
        ~(OP_IN_SET(OPS_FLOORDIV) | OP_IN_SET(OPS_FLOORMOD) | OP_IN_SET(OPS_CDIV) | OP_IN_SET(OPS_CMOD));
  return r;
}

static uint64_t draw(uint64_t *seed) { /* xorshift, then fewer bits, so that small numbers come too */
  *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
  return *seed >> (*seed >> 3) % 64;
}

static const int64_t divisors[] = {0,
                                   1,
                                   2,
                                   3,
                                   5,
                                   7,
                                   10,
                                   12,
                                   16,
                                   100,
                                   255,
                                   256,
                                   641,
                                   1000,
                                   32767,
                                   65535,
                                   INT32_MAX,
                                   INT64_C(1) << 31,
                                   INT64_C(6700417),
                                   UINT32_MAX,
                                   INT64_C(1) << 40,
                                   INT64_C(1000000000039),
                                   INT64_MAX};

/* One divisor: every x of `from..to`, or edges and samples where to < from. */
static void divisor(const Renderer *ren, DType d, int64_t c, int64_t from, int64_t to, int nsample) {
  for (size_t o = 0; o < TG_COUNT(ops); o++) {
    TgMem mem = {0};
    UOpStore *st = store_new(&mem);
    Graph g;
    rewritten(&g, st, &mem, ren, ops[o], uop_new(st, OPS_PARAM, d, 1, 0, NULL, (Arg){.param = {1, 0}}), c);
    for (int64_t x = from; x <= to; x++)
      same(&g, ops[o], d, x, c);
    uint64_t seed = 0x9e3779b97f4a7c15ull + (uint64_t)c, step = c ? (uint64_t)c : 1;
    for (int i = 0; i < nsample; i++) {
      uint64_t at = draw(&seed), near = at - at % step;
      for (int k = -1; k <= 1; k++) {
        same(&g, ops[o], d, (int64_t)(near + (uint64_t)k), c),
            same(&g, ops[o], d, (int64_t)(0 - near + (uint64_t)k), c);
        same(&g, ops[o], d, (int64_t)((uint64_t)dtype_min(d) + (uint64_t)(k + 1)), c),
            same(&g, ops[o], d, (int64_t)((uint64_t)dtype_max(d) + (uint64_t)k), c);
      }
      same(&g, ops[o], d, (int64_t)at, c);
    }
    store_free(st);
    assert_int_equal(mem.live, 0);
  }
}

static void bits8(void **state) {
  (void)state;
  for (int t = 0; t < 4; t++) {
    Renderer ren = target(t);
    for (int d = 0; d < 2; d++)
      for (int64_t c = dtype_min(ints[d]); c <= dtype_max(ints[d]); c++)
        divisor(&ren, ints[d], c, dtype_min(ints[d]), dtype_max(ints[d]), 0);
  }
}

static void bits16(void **state) {
  (void)state;
  for (int t = 0; t < 4; t++) {
    Renderer ren = target(t);
    for (int d = 2; d < 4; d++)
      for (size_t i = 0; i < 16; i++)
        for (int s = 1; s >= -1; s -= 2) {
          int64_t c = scalar_round(ints[d], (Scalar){.i = s * divisors[i]}).i;
          divisor(&ren, ints[d], c, dtype_min(ints[d]), dtype_max(ints[d]), 0);
        }
  }
}

static void bits32_and_64(void **state) {
  (void)state;
  for (int t = 0; t < 4; t++) {
    Renderer ren = target(t);
    for (int d = 4; d < 8; d++)
      for (size_t i = 0; i < TG_COUNT(divisors); i++)
        for (int s = 1; s >= -1; s -= 2)
          divisor(&ren, ints[d], scalar_round(ints[d], (Scalar){.i = s * divisors[i]}).i, 0, -1, 200);
    for (int d = 4; d < 8; d++)
      divisor(&ren, ints[d], scalar_round(ints[d], (Scalar){.i = dtype_min(ints[d])}).i, 0, -1, 200);
  }
}

/* A numerator of known bounds, here what a narrower type holds: no division is left, and it is right to the
 * last. */
static void bounded(void **state) {
  (void)state;
  for (int t = 0; t < 4; t++) {
    Renderer ren = target(t);
    for (int to = 4; to < 7; to++) /* the bounds of u64 are not followed */
      for (size_t i = 1; i < 16; i++)
        for (size_t o = 0; o < TG_COUNT(ops); o++) {
          TgMem mem = {0};
          UOpStore *st = store_new(&mem);
          Graph g;
          UOp *x = uop_cast(st, uop_new(st, OPS_PARAM, DT_U8, 1, 0, NULL, (Arg){.param = {1, 0}}), ints[to]);
          rewritten(&g, st, &mem, &ren, ops[o], x, divisors[i]);
          assert_false(g.divides);
          for (int v = 0; v < 256; v++) {
            Scalar in[2] = {{.i = v}, {.i = divisors[i]}}, want;
            assert_true(scalar_eval(ops[o], ints[to], in, &want));
            assert_int_equal(value(&g, in[0]), want.i);
          }
          store_free(st);
          assert_int_equal(mem.live, 0);
        }
  }
}

/* x in lo..hi, as int32 and int64. The rewritten numerator has no bounds: all that counts is what the op's
 * own numerator had. */
static void index_arithmetic(void **state) {
  (void)state;
  static const int64_t his[] = {0,
                                1,
                                6,
                                7,
                                99,
                                1000,
                                4095,
                                46340,
                                65535,
                                1 << 20,
                                (1 << 24) + 3,
                                INT32_MAX - 1,
                                INT64_C(1) << 33,
                                INT64_C(1) << 52,
                                INT64_MAX};
  uint64_t seed = 77;
  int shorter = 0;
  for (int w = 0; w < 2; w++)
    for (size_t h = 0; h < TG_COUNT(his); h++)
      for (int low = 0; low < 2; low++)
        for (size_t i = 1; i < TG_COUNT(divisors); i++)
          for (size_t o = 0; o < TG_COUNT(ops); o++) {
            DType d = w ? DT_I64 : DT_I32;
            int64_t hi = his[h], lo = low ? -TG_MIN(hi, 5000) : 0, c = divisors[i];
            if (!w && hi > INT32_MAX) continue;
            TgMem mem = {0};
            UOpStore *st = store_new(&mem);
            UOp *x = uop_new(st, OPS_VAR, DT_INDEX, 1, 0, NULL, (Arg){.var = {lo, hi}}), *part[DIVIDE_NODES];
            UOp *u = uop_alu2(st, ops[o], x, uop_index_const(st, c));
            UOp *at = uop_new(st, OPS_PARAM, d, 1, 0, NULL, (Arg){.param = {1, 0}});
            int n = divide_index(st, u, at, part);
            if (n) {
              Graph g;
              graph_of(&g, st, &mem, part[n - 1]);
              for (int k = 0; k < g.n; k++) { /* all that it is made of was listed, sources first */
                bool listed = g.at[k].u == at;
                for (int j = 0; j < n; j++)
                  listed |= part[j] == g.at[k].u;
                assert_true(listed);
              }
              shorter += !g.divides;
              for (int s = 0; s < 300; s++) {
                int64_t v = s < 100   ? hi - s
                            : s < 200 ? lo + s - 100
                                      : (int64_t)(draw(&seed) & INT64_MAX) % (hi == INT64_MAX ? hi : hi + 1);
                if (s >= 200) v -= v % c - (s & 1 ? c - 1 : 0);
                if (v < lo || v > hi) continue;
                Scalar in[2] = {{.i = v}, {.i = c}}, want;
                assert_true(scalar_eval(ops[o], DT_INDEX, in, &want));
                int64_t got = value(&g, in[0]);
                if (got != want.i)
                  fail_msg("%s(%lld, %lld) up to %lld", op_name(ops[o]), (long long)v, (long long)c,
                           (long long)hi);
                for (int k = 0; k < g.n; k++) { /* no product left its type: the same in i64 */
                  const UOp *p = g.at[k].u;
                  int64_t full;
                  if (p->op != OPS_MUL) continue;
                  assert_false(
                      __builtin_mul_overflow(g.at[g.at[k].src[0]].v.i, g.at[g.at[k].src[1]].v.i, &full));
                  assert_int_equal(full, g.at[k].v.i);
                }
              }
            }
            store_free(st);
            assert_int_equal(mem.live, 0);
          }
  assert_true(shorter > 800);
}

/* Which forms are written for compilers: floor forms of signed numbers by shift and mask; a CDIV by 7 stays
 * theirs. */
static void forms(void **state) {
  (void)state;

  static const struct {
    Ops op;
    DType d;
    int64_t c;
    int t;
    bool divides;
    int most;
  } want[] = {{OPS_FLOORDIV, DT_I32, 8, 0, false, 3},  {OPS_FLOORMOD, DT_I64, 8, 0, false, 3},
              {OPS_FLOORDIV, DT_I32, 7, 0, true, 7},   {OPS_CDIV, DT_I32, 7, 0, true, 3},
              {OPS_CDIV, DT_U8, 7, 0, true, 3},        {OPS_CDIV, DT_U8, 7, 1, false, 7},
              {OPS_FLOORDIV, DT_I16, 7, 1, false, 12}, {OPS_CDIV, DT_I32, 8, 0, true, 3},
              {OPS_CDIV, DT_I32, 8, 3, false, 9},      {OPS_CDIV, DT_I32, 7, 3, false, 16},
              {OPS_FLOORDIV, DT_U64, 7, 0, true, 3},   {OPS_FLOORDIV, DT_I32, 0, 0, true, 3}};

  for (size_t i = 0; i < TG_COUNT(want); i++) {
    TgMem mem = {0};
    UOpStore *st = store_new(&mem);
    Renderer ren = target(want[i].t);
    Graph g;
    rewritten(&g, st, &mem, &ren, want[i].op,
              uop_new(st, OPS_PARAM, want[i].d, 1, 0, NULL, (Arg){.param = {1, 0}}), want[i].c);
    if (g.divides != want[i].divides || g.n > want[i].most)
      fail_msg("%s[%s] by %lld: %d nodes, %s", op_name(want[i].op), dtype_name(want[i].d),
               (long long)want[i].c, g.n, g.divides ? "divides" : "no division");
    store_free(st);
    assert_int_equal(mem.live, 0);
  }
}

/* The same through compilers and interpreter: data of 32 bits and of 8, vectors and their rests; and axes
 * merged and split again at other places, whose index arithmetic no rule takes away. */
static const char *const devices[] = {"CPU", "INTERP:CUDA", "INTERP:METAL", "INTERP:C"};

static int floor_div(int a, int b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static void on_devices(void **state) {
  (void)state;

  enum { N = 259 };

  static const int by[] = {1, 2, 7, 8, 10, 100, -1, -3, -8};
  for (size_t v = 0; v < TG_COUNT(devices); v++) {
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = devices[v]});
    assert_non_null(ctx);
    assert_int_equal(tg_error(ctx), TG_OK);
    for (int narrow = 0; narrow < 2; narrow++)
      for (size_t i = 0; i < TG_COUNT(by); i++) {
        int32_t in[N], q[N], r[N];
        int8_t in8[N];
        for (int k = 0; k < N; k++)
          in[k] = narrow ? (int8_t)(k - 128) : (k - 130) * 1000003, in8[k] = (int8_t)in[k];
        TgDType d = narrow ? TG_I8 : TG_I32;
        TgTensor *x = tg_from(ctx, narrow ? (void *)in8 : in, d, TG_SHAPE(N));
        TgTensor *c = tg_full(ctx, TG_SHAPE(N), by[i], .dtype = d);
        assert_int_equal(tg_read(tg_cast(tg_floordiv(x, c), TG_I32), q, sizeof q), TG_OK);
        assert_int_equal(tg_read(tg_cast(tg_mod(x, c), TG_I32), r, sizeof r), TG_OK);
        for (int k = 0; k < N; k++) {
          int want = floor_div(in[k], by[i]);
          assert_int_equal(q[k], narrow ? (int8_t)want : want);
          assert_int_equal(r[k], in[k] - want * by[i]);
        }
      }
    int32_t in[420], out[420];
    for (int k = 0; k < 420; k++)
      in[k] = k * k;
    TgTensor *x = tg_from(ctx, in, TG_I32, TG_SHAPE(12, 35));
    TgTensor *y = tg_permute(tg_reshape(tg_permute(x, TG_SHAPE(1, 0)), TG_SHAPE(21, 20)), TG_SHAPE(1, 0));
    y = tg_add(tg_permute(tg_reshape(y, TG_SHAPE(28, 15)), TG_SHAPE(1, 0)),
               tg_full(ctx, TG_SHAPE(15, 28), 1, .dtype = TG_I32));
    assert_int_equal(tg_read(y, out, sizeof out), TG_OK);
    for (int k = 0; k < 420; k++) {
      /* (28, 15) <- (20, 21) <- (21, 20) <- (35, 12) */
      int flat = k % 28 * 15 + k / 28, turned = flat % 21 * 20 + flat / 21;
      assert_int_equal(out[k], in[turned % 12 * 35 + turned / 12] + 1);
    }
    tg_close(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bits8),     cmocka_unit_test(bits16),           cmocka_unit_test(bits32_and_64),
      cmocka_unit_test(bounded),   cmocka_unit_test(index_arithmetic), cmocka_unit_test(forms),
      cmocka_unit_test(on_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
