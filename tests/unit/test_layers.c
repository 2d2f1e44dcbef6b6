/* test_layers.c: the layers of nn/ on the reference interpreter: values against plain C, and the gradient of
 * every parameter and of the input against finite differences. */
#include "tg_nn.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MOST = 256 };

static TgContext *C;

static int open_context(void **state) {
  (void)state;
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP", .seed = 7});
  return tg_error(C);
}

static int close_context(void **state) {
  (void)state;
  int bad = tg_error(C);
  tg_close(C);
  return bad;
}

/* kept, f64: differences of 1e-6 stay exact enough */
static TgTensor *wave(double phase, int nd, const int64_t *d) {
  double v[MOST];
  int n = 1;
  for (int i = 0; i < nd; i++)
    n *= (int)d[i];
  for (int i = 0; i < n; i++)
    v[i] = sin(1.7 * i + phase) + 0.1 * i;
  return tg_keep(tg_from_f64(C, v, TG_F64, nd, d));
}

static void to_f64(TgTensor **t, double phase) { /* a parameter of its own values, in f64 */
  TgTensor *w = tg_requires_grad(wave(phase, tg_ndim(*t), tg_shape(*t)), true);
  tg_release(*t);
  *t = w;
}

typedef TgTensor *(*Forward)(const void *layer, TgTensor *x);

/* weighted, so that no gradient vanishes by symmetry */
static TgTensor *loss_of(Forward f, const void *layer, TgTensor *x) {
  TgTensor *y = f(layer, x);
  TgTensor *k = tg_add_scalar(
      tg_sin(tg_reshape(tg_arange(C, 0, (double)tg_numel(y), .dtype = TG_F64), tg_ndim(y), tg_shape(y))),
      0.3);
  return tg_sum(tg_mul(tg_mul(y, y), k));
}

static void check_gradients(const char *name, Forward f, const void *layer, TgTensor *x,
                            TgTensor *const *params, int n) {
  double got[8][MOST];
  TG_SCOPE(C) {
    TgTensor *g[8];
    assert_int_equal(tg_gradient(loss_of(f, layer, x), params, n, g), TG_OK);
    for (int p = 0; p < n; p++)
      assert_int_equal(tg_read_f64(g[p], got[p], (size_t)tg_numel(params[p])), TG_OK);
  }
  for (int p = 0; p < n; p++)
    for (int64_t i = 0; i < tg_numel(params[p]); i++) {
      double was[MOST], at[2], h = 1e-5;
      assert_int_equal(tg_read_f64(params[p], was, (size_t)tg_numel(params[p])), TG_OK);
      for (int side = 0; side < 2; side++)
        TG_SCOPE(C) {
          double v[MOST];
          for (int64_t k = 0; k < tg_numel(params[p]); k++)
            v[k] = was[k] + (k == i ? side ? -h : h : 0);
          assert_non_null(
              tg_assign(params[p], tg_from_f64(C, v, TG_F64, tg_ndim(params[p]), tg_shape(params[p]))));
          assert_int_equal(tg_realize(params[p]), TG_OK);
          at[side] = tg_item_f64(loss_of(f, layer, x));
        }
      assert_non_null(
          tg_assign(params[p], tg_from_f64(C, was, TG_F64, tg_ndim(params[p]), tg_shape(params[p]))));
      assert_int_equal(tg_realize(params[p]), TG_OK);
      double want = (at[0] - at[1]) / (2 * h);
      if (!(fabs(got[p][i] - want) <= 1e-4 * (1 + fabs(want))))
        fail_msg("%s: parameter %d, element %d: %g, not %g", name, p, (int)i, got[p][i], want);
    }
}

static TgTensor *run_linear(const void *l, TgTensor *x) { return tg_linear_run(l, x); }

static TgTensor *run_conv(const void *l, TgTensor *x) { return tg_conv2d_run(l, x); }

static TgTensor *run_layer_norm(const void *l, TgTensor *x) { return tg_layer_norm_run(l, x); }

static TgTensor *run_batch_norm(const void *l, TgTensor *x) { return tg_batch_norm_run(l, x); }

static TgTensor *run_embedding(const void *l, TgTensor *x) { return tg_embedding_run(l, x); }

static void test_linear(void **state) {
  (void)state;
  TgLinear l = tg_linear_new(C, 3, 4, true);
  TgTensor *x = wave(0.2, TG_SHAPE(2, 3));
  to_f64(&l.weight, 1), to_f64(&l.bias, 2);
  double w[12], b[4], v[6], y[8];
  assert_int_equal(tg_read_f64(l.weight, w, 12) || tg_read_f64(l.bias, b, 4) || tg_read_f64(x, v, 6) ||
                       tg_read_f64(tg_linear_run(&l, x), y, 8),
                   TG_OK);
  for (int r = 0; r < 2; r++)
    for (int o = 0; o < 4; o++) {
      double s = b[o];
      for (int i = 0; i < 3; i++)
        s += v[3 * r + i] * w[3 * o + i];
      assert_true(fabs(y[4 * r + o] - s) < 1e-12);
    }
  check_gradients("linear", run_linear, &l, x, (TgTensor *[]){l.weight, l.bias, x}, 3);
  tg_linear_free(&l);
}

static void test_conv(void **state) {
  (void)state;
  TgConv2d l = tg_conv2d_new(
      C, 2, 2, 3, true,
      &(TgConvOptions){.size = sizeof(TgConvOptions), .stride = TG_SIZES(2, 1), .padding = TG_SIZES(1, 1)});
  TgTensor *x = wave(0.4, TG_SHAPE(1, 2, 5, 4));
  to_f64(&l.weight, 1), to_f64(&l.bias, 2), l.options.bias = l.bias;
  double w[36], b[2], v[40], y[24];
  assert_int_equal(tg_read_f64(l.weight, w, 36) || tg_read_f64(l.bias, b, 2) || tg_read_f64(x, v, 40) ||
                       tg_read_f64(tg_conv2d_run(&l, x), y, 24),
                   TG_OK);
  for (int o = 0; o < 2; o++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 4; j++) {
        double s = b[o];
        for (int c = 0; c < 2; c++)
          for (int a = 0; a < 3; a++)
            for (int e = 0; e < 3; e++) {
              int r = 2 * i + a - 1, k = j + e - 1;
              if (r >= 0 && r < 5 && k >= 0 && k < 4)
                s += v[20 * c + 4 * r + k] * w[18 * o + 9 * c + 3 * a + e];
            }
        assert_true(fabs(y[12 * o + 4 * i + j] - s) < 1e-12);
      }
  check_gradients("conv2d", run_conv, &l, x, (TgTensor *[]){l.weight, l.bias, x}, 3);
  tg_conv2d_free(&l);
}

static void test_layer_norm(void **state) {
  (void)state;
  TgLayerNorm l = tg_layer_norm_new(C, TG_SHAPE(4), .eps = 1e-3);
  TgTensor *x = wave(0.6, TG_SHAPE(2, 4));
  to_f64(&l.weight, 1), to_f64(&l.bias, 2);
  double w[4], b[4], v[8], y[8];
  assert_int_equal(tg_read_f64(l.weight, w, 4) || tg_read_f64(l.bias, b, 4) || tg_read_f64(x, v, 8) ||
                       tg_read_f64(tg_layer_norm_run(&l, x), y, 8),
                   TG_OK);
  for (int r = 0; r < 2; r++) {
    double m = 0, q = 0;
    for (int i = 0; i < 4; i++)
      m += v[4 * r + i] / 4;
    for (int i = 0; i < 4; i++)
      q += (v[4 * r + i] - m) * (v[4 * r + i] - m) / 4;
    for (int i = 0; i < 4; i++)
      assert_true(fabs(y[4 * r + i] - ((v[4 * r + i] - m) / sqrt(q + 1e-3) * w[i] + b[i])) < 1e-12);
  }
  check_gradients("layer_norm", run_layer_norm, &l, x, (TgTensor *[]){l.weight, l.bias, x}, 3);
  tg_layer_norm_free(&l);
}

/* Over up to four axes; what comes out has the dtype of what goes in, times the weight's. */
static void test_norms(void **state) {
  (void)state;
  TgLayerNorm four = tg_layer_norm_new(C, TG_SHAPE(1, 2, 2, 1), .eps = 1e-3);
  assert_int_equal(tg_error(C), TG_OK);
  TgTensor *x = wave(0.2, TG_SHAPE(3, 1, 2, 2, 1));
  double v[12], y[12];
  assert_int_equal(tg_read_f64(x, v, 12) || tg_read_f64(tg_layer_norm_run(&four, x), y, 12), TG_OK);
  for (int r = 0; r < 3; r++) {
    double m = 0, q = 0;
    for (int i = 0; i < 4; i++)
      m += v[4 * r + i] / 4;
    for (int i = 0; i < 4; i++)
      q += (v[4 * r + i] - m) * (v[4 * r + i] - m) / 4;
    for (int i = 0; i < 4; i++)
      assert_true(fabs(y[4 * r + i] - (v[4 * r + i] - m) / sqrt(q + 1e-3)) < 1e-6);
  }
  tg_layer_norm_free(&four);
  (void)tg_layer_norm_new(C, TG_SHAPE(1, 1, 1, 1, 1));
  assert_int_equal(tg_error(C), TG_ERR_SHAPE);
  tg_clear_error(C);
  TgLayerNorm2d plane = tg_layer_norm2d_new(C, 2), bare = tg_layer_norm2d_new(C, 2, .plain = true);
  assert_true(plane.weight && plane.bias && !bare.weight && !bare.bias);
  tg_layer_norm2d_free(&plane), tg_layer_norm2d_free(&bare);

  static const TgDType dtypes[] = {TG_F16, TG_BF16, TG_FP8E4M3, TG_FP8E5M2, TG_F32, TG_F64};
  TgRMSNorm l = tg_rms_norm_new(C, 4, .eps = 1e-3, .plain = true);
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    TgTensor *in = tg_cast(wave(0.6, TG_SHAPE(2, 4)), dtypes[i]), *out = tg_rms_norm_run(&l, in);
    TgTensor *want = tg_cast(tg_rms_norm_run(&l, tg_cast(in, TG_F32)), dtypes[i]); /* computed in f32 */
    assert_int_equal(tg_dtype(out), dtypes[i]);
    if (dtypes[i] == TG_F64) want = tg_rms_norm_run(&l, in);
    assert_int_equal(tg_read_f64(out, v, 8) || tg_read_f64(want, y, 8), TG_OK);
    for (int k = 0; k < 8; k++)
      assert_true(v[k] == y[k]);
  }
  tg_rms_norm_free(&l);
}

/* by the batch when training, by the running statistics when not */
static void test_batch_norm(void **state) {
  (void)state;
  TgBatchNorm l = tg_batch_norm_new(C, 2, .counted = true);
  TgTensor *x = wave(0.8, TG_SHAPE(3, 2, 2));
  to_f64(&l.weight, 1), to_f64(&l.bias, 2);
  double w[2], b[2], v[12], y[12];
  assert_int_equal(tg_read_f64(l.weight, w, 2) || tg_read_f64(l.bias, b, 2) || tg_read_f64(x, v, 12) ||
                       tg_read_f64(tg_batch_norm_run(&l, x), y, 12),
                   TG_OK);
  /* mean 0, variance 1 */
  for (int i = 0; i < 12; i++)
    assert_true(fabs(y[i] - (v[i] / sqrt(1 + 1e-5) * w[i / 2 % 2] + b[i / 2 % 2])) < 1e-6);
  double mean[2];
  assert_int_equal(tg_item_i64(l.num_batches_tracked), 0); /* it was only asked */
  assert_int_equal(tg_read_f64(l.running_mean, mean, 2), TG_OK);
  assert_true(mean[0] == 0 && mean[1] == 0);
  tg_set_training(C, true);
  assert_int_equal(tg_read_f64(tg_batch_norm_run(&l, x), y, 12), TG_OK);
  assert_int_equal(tg_item_i64(l.num_batches_tracked), 1);
  assert_int_equal(tg_read_f64(l.running_mean, mean, 2), TG_OK);
  assert_true(mean[0] != 0 && mean[1] != 0);
  for (int c = 0; c < 2; c++) {
    double m = 0, q = 0;
    for (int i = 0; i < 12; i++)
      if (i / 2 % 2 == c) m += v[i] / 6;
    for (int i = 0; i < 12; i++)
      if (i / 2 % 2 == c) q += (v[i] - m) * (v[i] - m) / 6;
    for (int i = 0; i < 12; i++)
      if (i / 2 % 2 == c) assert_true(fabs(y[i] - ((v[i] - m) / sqrt(q + 1e-5) * w[c] + b[c])) < 1e-6);
  }
  check_gradients("batch_norm", run_batch_norm, &l, x, (TgTensor *[]){l.weight, l.bias, x}, 3);
  tg_set_training(C, false);
  tg_batch_norm_free(&l);
}

static void test_embedding(void **state) {
  (void)state;
  TgEmbedding l = tg_embedding_new(C, 5, 3);
  int32_t at[4] = {4, 0, 4, 2};
  TgTensor *x = tg_from(C, at, TG_I32, TG_SHAPE(2, 2));
  to_f64(&l.weight, 1);
  double w[15], y[12];
  assert_int_equal(tg_read_f64(l.weight, w, 15) || tg_read_f64(tg_embedding_run(&l, x), y, 12), TG_OK);
  for (int i = 0; i < 12; i++)
    assert_true(y[i] == w[3 * at[i / 3] + i % 3]);
  check_gradients("embedding", run_embedding, &l, x, &l.weight, 1);
  tg_embedding_free(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear),     cmocka_unit_test(test_conv),
                                     cmocka_unit_test(test_layer_norm), cmocka_unit_test(test_norms),
                                     cmocka_unit_test(test_batch_norm), cmocka_unit_test(test_embedding)};
  return cmocka_run_group_tests(tests, open_context, close_context);
}
