/* test_gradient.c: every op that a float can pass through has a rule in rules/gradient.rules, and the rule of
 * every elementwise op agrees with finite differences of libm's function, source by source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "tensor/front.h"
#include "tensor/gradient.h"

/* defined on integers and bools alone */
static bool is_of_integers(Ops op) {
  return op == OPS_CDIV || op == OPS_CMOD || op == OPS_FLOORDIV || op == OPS_FLOORMOD || op == OPS_AND ||
         op == OPS_OR || op == OPS_XOR || op == OPS_SHL || op == OPS_SHR || op == OPS_THREEFRY ||
         op == OPS_DOT4 || op == OPS_DOT2 || op == OPS_DOT2X2 || op == OPS_ADD2 || op == OPS_LOOKUP4;
}

/* part of the tensor graph, but not a function of floats: leaves, and DETACH, where the walk stops; MULTI, whose
 * parts the walk itself gives theirs */
static bool is_no_function(Ops op) {
  bool exchange = op == OPS_MSELECT || (op >= OPS_ALLREDUCE && op <= OPS_BROADCAST); /* made of the others */
  return exchange || op == OPS_MULTI || op == OPS_BUFFER || op == OPS_ARANGE || op == OPS_DETACH ||
         op == OPS_CUSTOM_GRADIENT;
}

static double value(Ops op, const double *x) {
  switch (op) {
  case OPS_NEG: return -x[0];
  case OPS_EXP2: return exp2(x[0]);
  case OPS_LOG2: return log2(x[0]);
  case OPS_EXP: return exp(x[0]);
  case OPS_LOG: return log(x[0]);
  case OPS_SIN: return sin(x[0]);
  case OPS_COS: return cos(x[0]);
  case OPS_TAN: return tan(x[0]);
  case OPS_TANH: return tanh(x[0]);
  case OPS_SQRT: return sqrt(x[0]);
  case OPS_RECIPROCAL: return 1 / x[0];
  case OPS_TRUNC: return trunc(x[0]);
  case OPS_CAST: return x[0];
  case OPS_BITCAST: return 0; /* nothing flows */
  case OPS_ADD: return x[0] + x[1];
  case OPS_SUB: return x[0] - x[1];
  case OPS_MUL: return x[0] * x[1];
  case OPS_FDIV: return x[0] / x[1];
  case OPS_MAX: return fmax(x[0], x[1]);
  case OPS_POW: return pow(x[0], x[1]);
  case OPS_WHERE: return x[0] != 0 ? x[1] : x[2];
  case OPS_MULACC: return x[0] * x[1] + x[2];
  default: fail_msg("%s is new: say here what it computes", op_name(op)); return 0;
  }
}

enum { POINTS = 5 };

static const double at[3][POINTS] = {
    {0.3, 1.7, 2.5, 0.9, 3.1}, {1.2, 0.4, 3.3, 2.2, 0.7}, {0.6, 1.9, 0.2, 4.1, 1.1}};

static void check_op(TgContext *ctx, Ops op) {
  int n = op_nsrc(op);
  TgTensor *x[3] = {NULL}, *grad[3] = {NULL};
  UOp *src[3];
  for (int i = 0; i < n; i++) {
    x[i] = tg_from_f64(ctx, at[i], TG_F64, TG_SHAPE(POINTS));
    src[i] = op == OPS_WHERE && i == 0 ? tg_lt(x[0], tg_full(ctx, 0, NULL, 1.5))->uop : x[i]->uop;
  }
  DType d = op == OPS_CAST ? DT_F32 : DT_F64;
  TgTensor *f = tensor_new(ctx, uop_new(ctx->store, op, d, 1, n, src, ARG0));
  assert_non_null(f);
  if (tg_gradient(tg_sum(f), x, n, grad)) fail_msg("%s: %s", op_name(op), tg_errmsg(ctx));
  for (int i = 0; i < n; i++) {
    double got[POINTS];
    if (tg_read_f64(grad[i], got, POINTS)) fail_msg("%s: %s", op_name(op), tg_errmsg(ctx));
    for (int k = 0; k < POINTS; k++) {
      double p[3] = {at[0][k], at[1][k], at[2][k]}, h = 1e-5;
      if (op == OPS_WHERE) p[0] = at[0][k] < 1.5;
      double mid = p[i];
      p[i] = mid + h;
      double up = value(op, p);
      p[i] = mid - h;
      double want = (up - value(op, p)) / (2 * h);
      if (!(fabs(got[k] - want) <= 1e-7 * fmax(1, fabs(want))))
        fail_msg("d %s by source %d at %g, %g, %g: %.12g, not %.12g", op_name(op), i, at[0][k], at[1][k],
                 at[2][k], got[k], want);
    }
  }
}

static void test_elementwise(void **state) {
  (void)state;
  setenv("TG_DEV", "INTERP", 1);
  TgContext *ctx = tg_open(NULL);
  for (int op = 0; op < OPS_COUNT; op++) {
    if (!op_is_alu((Ops)op) || (op_flags((Ops)op) & OPF_CMP) || is_of_integers((Ops)op)) continue;
    check_op(ctx, (Ops)op);
  }
  tg_close(ctx);
}

static void test_every_op(void **state) { /* of the tensor graph */
  (void)state;
  TgContext *ctx = tg_open(NULL);
  TgTensor *x = tg_from_f64(ctx, (double[6]){1, 2, 3, 4, 5, 6}, TG_F32, TG_SHAPE(2, 3));
  TgTensor *y = tg_from_f64(ctx, (double[3]){0}, TG_F32, TG_SHAPE(1, 3));
  TgTensor *i = tg_from_f64(ctx, (double[2]){2, 0}, TG_I32, TG_SHAPE(2, 1));
  TgTensor *made[] = {tg_reshape(x, TG_SHAPE(3, 2)),
                      tg_permute(x, TG_SHAPE(1, 0)),
                      tg_expand(y, TG_SHAPE(4, 3)),
                      tg_flip(x, TG_SHAPE(0)),
                      tg_pad(x, (int64_t[]){1, 0}, (int64_t[]){0, 1}),
                      tg_shrink(x, (int64_t[]){0, 1}, (int64_t[]){2, 3}),
                      tg_sum(x, .axis = TG_AXES(0), .keepdim = true),
                      tg_cumsum(x, 0),
                      tg_gather(x, 1, i),
                      tg_scatter(x, 1, i, x),
                      tg_replicate(x, 2, (const char *[]){"INTERP", "INTERP:1"})};
  for (int op = 0; op < OPS_COUNT; op++) {
    unsigned flags = op_flags((Ops)op);
    if (!(flags & (OPF_MOV | OPF_TENSOR)) || is_no_function((Ops)op)) continue;
    UOp *u = NULL, *out[4] = {NULL};
    for (size_t i = 0; i < TG_COUNT(made); i++)
      if (made[i]->uop->op == op) u = made[i]->uop;
    if (op == OPS_COPY || op == OPS_CONTIGUOUS) u = uop_new(ctx->store, (Ops)op, DT_F32, 1, 1, &x->uop, ARG0);
    if (!u) fail_msg("%s is new: make one here", op_name((Ops)op));
    Rewrite rw = {.st = ctx->store, .mem = &ctx->mem, .ctx = ctx};
    if (gradient_rule(&rw, u, u_num(ctx->store, 1, u), out) != 1)
      fail_msg("%s has no gradient rule", op_name((Ops)op));
    assert_non_null(out[0]);
    assert_int_equal(out[0]->shape->n, u->src[0]->shape->n);
    assert_memory_equal(out[0]->shape->v, u->src[0]->shape->v, (size_t)out[0]->shape->n * sizeof(int64_t));
  }
  tg_close(ctx);
}

/* ---- gradients, and gradients of gradients, of functions that are polynomials in pieces: in f32 as near to
 * f64 as its rounding lets them */
static TgTensor *itself(TgTensor *x) { return x; }

static TgTensor *to_unit(TgTensor *x) { return tg_mul_scalar(x, 0.5); }

static TgTensor *above_one(TgTensor *x) { return tg_add_scalar(tg_square(x), 1.3); }

static void derivatives(TgContext *ctx, TgTensor *(*f)(TgTensor *), TgTensor *(*of)(TgTensor *), TgDType d,
                        double out[2][201]) {
  double v[201];
  for (int i = 0; i < 201; i++)
    v[i] = (float)(-1.6 + 0.016 * i + 0.0007);
  TgTensor *x = tg_from_f64(ctx, v, d, TG_SHAPE(201)), *g = NULL, *h = NULL;
  assert_int_equal(tg_gradient(tg_sum(f(of(x))), &x, 1, &g), TG_OK);
  assert_int_equal(tg_gradient(tg_sum(g), &x, 1, &h), TG_OK);
  assert_int_equal(tg_read_f64(g, out[0], 201), TG_OK);
  assert_int_equal(tg_read_f64(h, out[1], 201), TG_OK);
}

static void test_second_derivatives(void **state) {
  (void)state;

  static const struct {
    const char *name;
    TgTensor *(*f)(TgTensor *), *(*of)(TgTensor *);
  } all[] = {{"asin", tg_asin, to_unit},        {"acos", tg_acos, to_unit},
             {"atan", tg_atan, itself},         {"atanh", tg_atanh, to_unit},
             {"asinh", tg_asinh, itself},       {"acosh", tg_acosh, above_one},
             {"sinh", tg_sinh, itself},         {"cosh", tg_cosh, itself},
             {"tanh", tg_tanh, itself},         {"erf", tg_erf, itself},
             {"tan", tg_tan, to_unit},          {"sigmoid", tg_sigmoid, itself},
             {"gelu", tg_gelu, itself},         {"gelu_erf", tg_gelu_erf, itself},
             {"mish", tg_mish, itself},         {"silu", tg_silu, itself},
             {"softplus", tg_softplus, itself}, {"logsigmoid", tg_logsigmoid, itself},
             {"softsign", tg_softsign, itself}};

  TgContext *ctx = tg_open_with(.device = "INTERP");
  for (size_t k = 0; k < TG_COUNT(all); k++) {
    double got[2][201], want[2][201];
    derivatives(ctx, all[k].f, all[k].of, TG_F32, got), derivatives(ctx, all[k].f, all[k].of, TG_F64, want);
    for (int o = 0; o < 2; o++)
      for (int i = 0; i < 201; i++)
        if (!(fabs(got[o][i] - want[o][i]) <= 1e-6 * fmax(1, fabs(want[o][i]))))
          fail_msg("derivative %d of %s at %g: %.9g, not %.9g", o + 1, all[k].name, -1.6 + 0.016 * i,
                   got[o][i], want[o][i]);
  }
  tg_close(ctx);
}

/* The gradient of the entropy of a sigmoid is p - y, whatever p was rounded to: nowhere may it be larger than
 * 1. */
static void test_entropy_of_sigmoid(void **state) {
  (void)state;
  TgContext *ctx = tg_open_with(.device = "INTERP");
  TgTensor *x = tg_arange(ctx, -40, 41, 1, .dtype = TG_F32), *g, *y = tg_full(ctx, TG_SHAPE(81), 0.6225);
  double got[81];
  assert_int_equal(
      tg_gradient(tg_sum(tg_binary_cross_entropy(tg_sigmoid(x), y, .reduction = TG_SUM)), &x, 1, &g), TG_OK);
  assert_int_equal(tg_read_f64(g, got, 81), TG_OK);
  for (int i = 0; i < 81; i++) {
    double p = 1 / (1 + exp(40 - i)), want = p - 0.6225;
    bool rounds = i > 48 || i < 14; /* 1 - p has few bits, or none; p (1 - p) is below 1e-12 */
    if (!(rounds ? fabs(got[i]) < 1 : fabs(got[i] - want) < 1e-3))
      fail_msg("at %d: %g, not %g", i - 40, got[i], want);
  }
  tg_close(ctx);
}

/* ---- the input gradient of convolutions, against the sum that it is */
typedef struct Conv {
  int size, kernel, stride, dilation, lo, hi, groups;
} Conv;

enum { CONV_IN = 4, CONV_OUT = 6, CONV_MOST = 2 * CONV_OUT * 24 * 24 };

static float number(unsigned i) { return (float)((i * 2654435761u >> 8) % 33) / 16 - 1; }

static int conv_out(const Conv *c) {
  return (c->size + c->lo + c->hi - c->dilation * (c->kernel - 1) - 1) / c->stride + 1;
}

/* dx[n, i, y, x]: what every output gave it that it had a part in. Axes differ: the first is twice as long.
 */
static void conv_want(const Conv *c, const float *dy, const float *w, double *dx) {
  int o = conv_out(c), h = 2 * c->size,
      oh = conv_out(&(Conv){h, c->kernel, c->stride, c->dilation, c->lo, c->hi, 1}), in = CONV_IN / c->groups,
      out = CONV_OUT / c->groups;
  memset(dx, 0, sizeof *dx * (size_t)(2 * CONV_IN * h * c->size));
  for (int n = 0; n < 2; n++)
    for (int a = 0; a < CONV_OUT; a++)
      for (int i = 0; i < in; i++)
        for (int y = 0; y < oh; y++)
          for (int x = 0; x < o; x++)
            for (int r = 0; r < c->kernel; r++)
              for (int q = 0; q < c->kernel; q++) {
                int yy = y * c->stride + r * c->dilation - c->lo,
                    xx = x * c->stride + q * c->dilation - c->lo;
                if (yy < 0 || xx < 0 || yy >= h || xx >= c->size) continue;
                dx[((n * CONV_IN + a / out * in + i) * h + yy) * c->size + xx] +=
                    (double)dy[((n * CONV_OUT + a) * oh + y) * o + x] *
                    w[((a * in + i) * c->kernel + r) * c->kernel + q];
              }
}

static void check_conv(const Conv *c) {
  static double want[CONV_MOST];
  static float got[CONV_MOST], dy[CONV_MOST], w[CONV_MOST];
  int h = 2 * c->size, o = conv_out(c),
      oh = conv_out(&(Conv){h, c->kernel, c->stride, c->dilation, c->lo, c->hi, 1});
  for (unsigned i = 0; i < CONV_MOST; i++)
    dy[i] = number(i), w[i] = number(i + 77);
  conv_want(c, dy, w, want);
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP:C"});
  TgTensor *x = tg_ones(ctx, TG_SHAPE(2, CONV_IN, h, c->size), .dtype = TG_F32), *dx;
  TgTensor *tw = tg_from(ctx, w, TG_F32, TG_SHAPE(CONV_OUT, CONV_IN / c->groups, c->kernel, c->kernel));
  TgTensor *tdy = tg_from(ctx, dy, TG_F32, TG_SHAPE(2, CONV_OUT, oh, o));
  x = tg_contiguous(x);
  TgTensor *y = tg_conv2d(x, tw, .stride = TG_SIZES(c->stride), .dilation = TG_SIZES(c->dilation),
                          .groups = c->groups, .padding = TG_SIZES(c->lo, c->hi, c->lo, c->hi));
  assert_int_equal(tg_vjp(y, tdy, &x, 1, &dx), TG_OK);
  int n = 2 * CONV_IN * h * c->size;
  assert_int_equal(tg_read(dx, got, sizeof *got * (size_t)n), TG_OK);
  for (int i = 0; i < n; i++)
    if (fabs(got[i] - want[i]) > 1e-4)
      fail_msg("size %d kernel %d stride %d dilation %d padding %d, %d groups %d: element %d is %g, not %g",
               c->size, c->kernel, c->stride, c->dilation, c->lo, c->hi, c->groups, i, got[i], want[i]);
  tg_close(ctx);
}

static void test_convolutions(void **state) {
  (void)state;
  for (int k = 1; k <= 5; k++)
    for (int s = 1; s <= 3; s++)
      for (int d = 1; d <= 2; d++)
        for (int pad = 0; pad <= 4; pad += 1 + (k > 3)) { /* also more than the kernel reaches */
          Conv c = {11 + pad % 2, k, s, d, pad, (pad + s) % 3, (k + s) % 2 + 1};
          if (c.size + c.lo + c.hi > d * (k - 1)) check_conv(&c);
        }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_elementwise), cmocka_unit_test(test_every_op),
                                     cmocka_unit_test(test_second_derivatives),
                                     cmocka_unit_test(test_entropy_of_sigmoid),
                                     cmocka_unit_test(test_convolutions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
