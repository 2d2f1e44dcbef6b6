/* test_pipeline.c: the whole way from tensors to numbers. Kernel counts of known programs, fused against
 * TG_FUSE=0 and against plain loops, counts of work that stay linear, and index arithmetic against evaluation
 * at every point. */
#include "tg.h"
#include "uop/uop.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>
#include "tg_nn.h"

static TgContext *open_with(const char *dev, const char *fuse, const char *noopt) {
  setenv("TG_DEV", dev, 1), setenv("TG_FUSE", fuse, 1), setenv("TG_NOOPT", noopt, 1);
  TgContext *ctx = tg_open(NULL);
  assert_non_null(ctx);
  assert_int_equal(tg_error(ctx), TG_OK);
  return ctx;
}

static float *numbers(int n, unsigned seed) {
  float *p = malloc(sizeof *p * (size_t)n);
  for (int i = 0; i < n; i++)
    seed = seed * 1664525u + 1013904223u, p[i] = (float)(seed >> 8) / 8388608.f - 1;
  return p;
}

static TgTensor *input(TgContext *ctx, unsigned seed, int nd, const int64_t *d) {
  int n = 1;
  for (int i = 0; i < nd; i++)
    n *= (int)d[i];
  float *p = numbers(n, seed);
  TgTensor *t = tg_from(ctx, p, TG_F32, nd, d);
  free(p);
  return t;
}

static uint64_t kernels_of(TgContext *ctx, TgTensor *t) {
  uint64_t k = tg_counters(ctx).kernels;
  assert_int_equal(tg_realize(t), TG_OK);
  return tg_counters(ctx).kernels - k;
}

static void test_kernel_counts(void **state) {
  (void)state;
  TgContext *ctx = open_with("NULL:C", "1", "0");
  TgTensor *x = input(ctx, 1, TG_SHAPE(256, 256));
  TgTensor *q = input(ctx, 2, TG_SHAPE(2, 64, 32));
  TgTensor *w = input(ctx, 3, TG_SHAPE(256, 64));
  int64_t labels[256] = {0};
  TgTensor *y = tg_from(ctx, labels, TG_I64, TG_SHAPE(256));
  assert_int_equal(kernels_of(ctx, tg_softmax(x)), 1);
  assert_int_equal(kernels_of(ctx, tg_layer_norm(x)), 1);
  assert_int_equal(kernels_of(ctx, tg_var(x, .axis = TG_AXES(1))), 1);
  assert_int_equal(kernels_of(ctx, tg_relu(tg_matmul(x, w))), 1);
  assert_true(kernels_of(ctx, tg_sparse_cross_entropy(x, y)) <= 2);
  assert_true(kernels_of(ctx, tg_scaled_dot_product_attention(q, q, q, .causal = true)) <= 4);
  tg_close(ctx);
}

/* every program: fused with opts, fused without, unfused, on the reference interpreter */
static TgTensor *program(TgContext *ctx, int which) {
  TgTensor *a = input(ctx, 7, TG_SHAPE(5, 7, 9));
  TgTensor *b = input(ctx, 8, TG_SHAPE(9, 6));
  TgTensor *img = input(ctx, 9, TG_SHAPE(2, 3, 9, 10));
  TgTensor *k = input(ctx, 10, TG_SHAPE(4, 3, 3, 3));
  switch (which) {
  case 0: return tg_softmax(tg_matmul(a, b));
  case 1: return tg_layer_norm(tg_matmul(a, b));
  case 2: return tg_relu(tg_conv2d(img, k, .padding = TG_SIZES(1, 1)));
  case 3: return tg_max_pool2d(tg_conv2d(img, k, .stride = TG_SIZES(2, 1)), .kernel = TG_SIZES(2, 2));
  case 4: return tg_sum(tg_mul(tg_sum(a, .axis = TG_AXES(1), .keepdim = true), a), .axis = TG_AXES(0));
  case 5: return tg_var(tg_exp(a), .axis = TG_AXES(0, 2));
  case 6:
    return tg_add(tg_mul(tg_permute(a, 3, (int64_t[]){2, 0, 1}), tg_permute(a, 3, (int64_t[]){2, 0, 1})),
                  tg_sum(tg_flip(a, 1, (int64_t[]){1})));
  case 7: {
    TgTensor *p = tg_requires_grad(k, true);
    tg_backward(tg_sum(
        tg_mul(tg_conv2d(img, p, .padding = TG_SIZES(1, 1)), tg_conv2d(img, p, .padding = TG_SIZES(1, 1)))));
    return tg_grad(p);
  }
  case 8: { /* a batch of as many as there are threads */
    TgTensor *q = input(ctx, 11, TG_SHAPE(2, 64, 32));
    return tg_scaled_dot_product_attention(q, q, q, .causal = true);
  }
  case 9:
    return tg_sum(tg_expand(tg_reshape(tg_full(ctx, TG_SHAPE(1), 1.5), TG_SHAPE(1, 1)), TG_SHAPE(5, 100)),
                  .axis = TG_AXES(1));
  default: return NULL;
  }
}

static void test_fused_is_unfused(void **state) {
  (void)state;
  static const char *const how[][3] = {
      {"INTERP", "0", "1"}, {"INTERP", "1", "1"}, {"CPU", "0", "0"}, {"CPU", "1", "1"}, {"CPU", "1", "0"}};
  for (int which = 0; which < 10; which++) {
    double *want = NULL;
    int64_t n = 0;
    for (size_t h = 0; h < 5; h++) {
      TgContext *ctx = open_with(how[h][0], how[h][1], how[h][2]);
      TgTensor *t = program(ctx, which);
      if (!t) fail_msg("program %d: %s", which, tg_errmsg(ctx));
      n = tg_numel(t);
      double *got = malloc(sizeof *got * (size_t)n);
      if (tg_read_f64(t, got, (size_t)n)) fail_msg("program %d on %s: %s", which, how[h][0], tg_errmsg(ctx));
      for (int64_t i = 0; want && i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 2e-5 * (1 + fabs(want[i]))))
          fail_msg("program %d, %s fuse=%s noopt=%s, element %d: %g, not %g", which, how[h][0], how[h][1],
                   how[h][2], (int)i, got[i], want[i]);
      if (!want)
        want = got;
      else
        free(got);
      tg_close(ctx);
    }
    free(want);
  }
}

static uint64_t nodes_of_chain(int n) {
  TgContext *ctx = open_with("NULL:C", "1", "0");
  TgTensor *x = input(ctx, 3, TG_SHAPE(100)), *z = x;
  for (int i = 0; i < n; i++)
    z = tg_add(z, x);
  assert_int_equal(tg_realize(z), TG_OK);
  uint64_t nodes = tg_counters(ctx).nodes;
  tg_close(ctx);
  return nodes;
}

static void test_work_is_linear(void **state) {
  (void)state;
  uint64_t a = nodes_of_chain(500), b = nodes_of_chain(1000);
  assert_true(b <= a * 22 / 10);
}

static void test_second_step_compiles_nothing(void **state) {
  (void)state;
  TgContext *ctx = open_with("CPU", "1", "0");
  TgTensor *w = tg_keep(tg_requires_grad(input(ctx, 4, TG_SHAPE(6, 3)), true)), *p[] = {w};
  TgOptim *opt = tg_adam(ctx, p, 1, .lr = 0.01);
  TgCounters c[4];
  for (int step = 0; step < 4; step++) {
    TG_SCOPE(ctx) {
      tg_backward(tg_sum(
          tg_mul(tg_matmul(input(ctx, 5, TG_SHAPE(4, 6)), w), tg_matmul(input(ctx, 6, TG_SHAPE(4, 6)), w))));
      assert_int_equal(tg_optim_step(opt), TG_OK);
    }
    c[step] = tg_counters(ctx);
  }
  assert_int_equal(c[3].compiled, c[1].compiled);
  assert_int_equal(c[3].schedules, c[1].schedules);
  tg_optim_free(opt);
  tg_close(ctx);
}

/* A random index expression and its simplified form agree at every point of its ranges. */
static UOp *random_index(UOpStore *st, UOp **r, unsigned *seed, int depth) {
  *seed = *seed * 1664525u + 1013904223u;
  unsigned k = *seed >> 24;
  if (!depth || k < 40) return k & 1 ? r[k % 3] : uop_index_const(st, (int64_t)(k % 9) - 2);
  UOp *a = random_index(st, r, seed, depth - 1);
  UOp *c = uop_index_const(st, 1 + (int64_t)(k % 7));
  switch (k % 5) {
  case 0: return uop_alu2(st, OPS_ADD, a, random_index(st, r, seed, depth - 1));
  case 1: return uop_alu2(st, OPS_MUL, a, c);
  case 2: return uop_alu2(st, OPS_FLOORDIV, a, c);
  case 3: return uop_alu2(st, OPS_FLOORMOD, a, c);
  default: return uop_alu2(st, OPS_SUB, a, random_index(st, r, seed, depth - 1));
  }
}

static int64_t value_at(const UOp *u, const int64_t *at) {
  if (u->op == OPS_CONST) return u->arg.v.i;
  if (u->op == OPS_RANGE) return at[u->arg.range.id];
  Scalar v[2] = {{.i = value_at(u->src[0], at)}, {.i = value_at(u->src[1], at)}}, r = {0};
  assert_true(scalar_eval((Ops)u->op, DT_INDEX, v, &r));
  return r.i;
}

static void test_index_simplification(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *r[3] = {uop_range(st, 3, 0, AXIS_LOOP), uop_range(st, 4, 1, AXIS_LOOP),
               uop_range(st, 6, 2, AXIS_LOOP)};
  unsigned seed = 12345;
  for (int n = 0; n < 20000; n++) {
    UOp *e = random_index(st, r, &seed, 4), *s = uop_simplify(st, &mem, e);
    assert_non_null(s);
    for (int64_t p = 0; p < 72; p++) {
      int64_t at[3] = {p % 3, p / 3 % 4, p / 12}, want = value_at(e, at);
      if (value_at(s, at) != want || want < s->vmin || want > s->vmax) {
        Str t;
        str_init(&t, &mem);
        uop_expr(&t, e, 60), str_put(&t, "  =>  "), uop_expr(&t, s, 60);
        fail_msg("%s at %d %d %d", str_text(&t), (int)at[0], (int)at[1], (int)at[2]);
      }
    }
    assert_ptr_equal(uop_simplify(st, &mem, s), s); /* a fixed point */
  }
  store_free(st);
  assert_int_equal(mem.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kernel_counts), cmocka_unit_test(test_fused_is_unfused),
      cmocka_unit_test(test_work_is_linear), cmocka_unit_test(test_second_step_compiles_nothing),
      cmocka_unit_test(test_index_simplification)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
