/* test_values.c: what functions give at values where a formula goes wrong: huge arguments, signed zeros, the
 * ends of a narrow dtype. Expected values are libm's, or by hand. Every test runs on the CPU, by the
 * interpreter, and as codegen lowers it for the other targets. */
#include "tg.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const char *const devices[] = {"CPU", "INTERP", "INTERP:C", "INTERP:CUDA", "INTERP:METAL"};

enum { DEVICES = sizeof devices / sizeof *devices, MOST = 64 };

static TgContext *ctx;
static const char *device;

typedef struct Values {
  int n;
  double v[MOST];
} Values;

#define V(...)     ((Values){(int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), {__VA_ARGS__}})
#define ON_DEVICES for (int d_ = 0; d_ < DEVICES && device_open(d_); d_++, device_close())

static void device_close(void) {
  assert_int_equal(tg_counters(ctx).fallbacks + tg_counters(ctx).cuts, 0); /* every kernel took its opts */
  tg_close(ctx);
}

static bool device_open(int i) {
  device = devices[i];
  ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  if (tg_error(ctx)) fail_msg("%s: %s", device, tg_errmsg(ctx));
  return true;
}

static TgTensor *given(TgDType d, Values x) { return tg_from_f64(ctx, x.v, d, TG_SHAPE(x.n)); }

/* Within eps of the larger of |want| and least; NaN for NaN, and a zero has its sign. */
static void are_at(int line, const char *what, TgTensor *y, Values want, double eps, double least) {
  double got[MOST];
  if (tg_read_f64(y, got, (size_t)want.n))
    fail_msg("line %d on %s: %s: %s", line, device, what, tg_errmsg(ctx));
  for (int i = 0; i < want.n; i++) {
    double w = want.v[i], g = got[i];
    bool same = isnan(w) ? isnan(g) : g == w && !signbit(g) == !signbit(w);
    if (!same && !(fabs(g - w) <= eps * fmax(fabs(w), least)))
      fail_msg("line %d on %s: %s: element %d is %.17g, not %.17g", line, device, what, i, g, w);
  }
}

#define ARE(y, want)                  are_at(__LINE__, #y, (y), (want), 0, 0)
#define ARE_NEAR(y, want, eps, least) are_at(__LINE__, #y, (y), (want), (eps), (least))

static Values of(Values x, double (*f)(double)) {
  for (int i = 0; i < x.n; i++)
    x.v[i] = f(x.v[i]);
  return x;
}

/* The quadrant is found in integers, whatever the size of x: nothing is left of pi/2 - x in f32 at 1e7, in
 * f16 at 1. */
static void test_trigonometry(void **state) {
  (void)state;
  Values large = V(11, 1571.58f, 9999.5f, 100000.5f, 1e6f, 1e7f, 1e10f, 0x1.6ac5b2p120f, 0x1p127f, -3e30f,
                   1e-30f, 0x1p-149);
  Values half = V(1.5703125, 20, 1000, 10000, 65504, -333, 0x1p-24);
  ON_DEVICES {
    TgTensor *x = given(TG_F32, large), *h = given(TG_F16, half), *dx;
    ARE_NEAR(tg_cos(x), of(large, cos), 2 * FLT_EPSILON, 0);
    ARE_NEAR(tg_sin(x), of(large, sin), 2 * FLT_EPSILON, 0);
    ARE_NEAR(tg_tan(x), of(large, tan), 2 * FLT_EPSILON, 0);
    ARE_NEAR(tg_cos(h), of(half, cos), 0x1p-10, 0);
    ARE_NEAR(tg_tan(h), of(half, tan), 0x1p-10, 0);
    assert_int_equal(tg_gradient(tg_sum(tg_sin(x)), &x, 1, &dx), TG_OK);
    ARE_NEAR(dx, of(large, cos), 2 * FLT_EPSILON, 0);
    assert_int_equal(tg_gradient(tg_sum(tg_cos(x)), &x, 1, &dx), TG_OK);
    ARE_NEAR(tg_neg(dx), of(large, sin), 2 * FLT_EPSILON, 0);
    ARE(tg_cos(given(TG_F32, V(0, -0.0, INFINITY, -INFINITY, NAN))), V(1, 1, NAN, NAN, NAN));
    ARE(tg_tan(given(TG_F32, V(0, -0.0, INFINITY, -INFINITY, NAN))), V(0, -0.0, NAN, NAN, NAN));
  }
}

/* The small end of log(1 + e^x) is e^x, its slope the sigmoid. */
static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

static double slope(double x) { return x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }

static void test_small_ends(void **state) {
  (void)state;
  Values x = V(-87, -40, -20, -17, -16.5, -10, -1, 0, 1, 10, 17, 40);
  ON_DEVICES {
    TgTensor *t = given(TG_F32, x), *dt;
    ARE_NEAR(tg_softplus(t), of(x, softplus), 8 * FLT_EPSILON, 0);
    assert_int_equal(tg_gradient(tg_sum(tg_softplus(t)), &t, 1, &dt), TG_OK);
    ARE_NEAR(dt, of(x, slope), 8 * FLT_EPSILON, 0);
    ARE_NEAR(tg_tanh(given(TG_F16, V(0.25, -3, 9, -0.0))), V(tanh(0.25), tanh(-3), 1, -0.0), 0x1p-11, 0);
  }
}

/* IEEE's signs of zero, which 1/x tells apart. */
static void test_signed_zeros(void **state) {
  (void)state;
  Values x = V(0, -0.0, 1, -1, INFINITY, -INFINITY, NAN);
  ON_DEVICES {
    for (int f16 = 0; f16 < 2; f16++) {
      TgTensor *t = given(f16 ? TG_F16 : TG_F32, x), *dt;
      ARE(tg_abs(t), of(x, fabs));
      ARE(tg_reciprocal(tg_abs(t)), V(INFINITY, INFINITY, 1, 1, 0, 0, NAN));
      ARE_NEAR(tg_atan(t), of(x, atan), 0x1p-10, 0);
      ARE(tg_round(given(f16 ? TG_F16 : TG_F32, V(-0.5, 0.5, -0.25, -0.0, 1.5, 2.5, -2.5, -INFINITY))),
          V(-0.0, 0, -0.0, -0.0, 2, 2, -2, -INFINITY));
      assert_int_equal(tg_gradient(tg_sum(tg_abs(t)), &t, 1, &dt), TG_OK);
      ARE(dt, V(0, 0, 1, -1, 1, -1, 1));
    }
  }
}

/* Squares and their sums leave f16 at 256; the norms themselves do not. */
static void test_half_norms(void **state) {
  (void)state;
  Values x = V(300, -300, 200, -500, 1, 2, 3, 4);
  double sum = 0, square = 0, spread = 0;
  for (int i = 0; i < x.n; i++)
    sum += x.v[i], square += x.v[i] * x.v[i];
  double mean = sum / x.n;
  for (int i = 0; i < x.n; i++)
    spread += (x.v[i] - mean) * (x.v[i] - mean);
  Values rms = x, layer = x, unit = x, step = x;
  for (int i = 0; i < x.n; i++) {
    rms.v[i] = x.v[i] / sqrt(square / x.n), unit.v[i] = x.v[i] / sqrt(square);
    layer.v[i] = (x.v[i] - mean) / sqrt(spread / x.n), step.v[i] = 2 * layer.v[i] + 1;
  }
  ON_DEVICES {
    TgTensor *h = tg_reshape(given(TG_F16, x), TG_SHAPE(1, 8));
    TgTensor *two = tg_full(ctx, TG_SHAPE(8), 2, .dtype = TG_F16);
    TgTensor *one = tg_full(ctx, TG_SHAPE(8), 1, .dtype = TG_F16);
    ARE_NEAR(tg_rms_norm(h), rms, 0x1p-10, 0.01);
    ARE_NEAR(tg_layer_norm(h), layer, 0x1p-10, 0.01);
    ARE_NEAR(tg_layer_norm(h, .weight = two, .bias = one), step, 0x1p-10, 0.01);
    assert_int_equal(tg_dtype(tg_layer_norm(h, .weight = two, .bias = one)), TG_F16);
    assert_int_equal(tg_dtype(tg_layer_norm(h, .weight = tg_float(two))), TG_F32);
    ARE_NEAR(tg_normalize(h), unit, 0x1p-10, 0.01);
    ARE_NEAR(tg_std(h), V(sqrt(spread / 7)), 0x1p-10, 0);
    TgTensor *m = tg_zeros(ctx, TG_SHAPE(1)), *v = tg_ones(ctx, TG_SHAPE(1));
    ARE_NEAR(tg_reshape(tg_batch_norm_train(tg_reshape(h, TG_SHAPE(8, 1)), m, v), TG_SHAPE(8)), layer,
             0x1p-10, 0.01);
    ARE_NEAR(v, V(0.9 + 0.1 * spread / 7), 1e-6, 0);
  }
}

/* A scalar that the dtype does not hold stands for itself, in a dtype that does. */
static void scalar_is(int line, TgTensor *y, TgDType d, Values want) {
  if (!y) fail_msg("line %d on %s: %s", line, device, tg_errmsg(ctx));
  if (tg_dtype(y) != d)
    fail_msg("line %d on %s: %s, not %s", line, device, tg_dtype_name(tg_dtype(y)), tg_dtype_name(d));
  are_at(line, "scalar", y, want, 0, 0);
}

#define SCALAR_IS(y, d, ...) scalar_is(__LINE__, (y), (d), V(__VA_ARGS__))

static void test_scalars(void **state) {
  (void)state;
  ON_DEVICES {
    TgTensor *x = given(TG_U8, V(0, 10, 200, 255));
    TgTensor *s = given(TG_I8, V(-128, 0, 127));
    TgTensor *w = given(TG_U64, V(0, 0x1p63, 1));
    SCALAR_IS(tg_lt_scalar(x, 300), TG_BOOL, 1, 1, 1, 1);
    SCALAR_IS(tg_le_scalar(x, 255), TG_BOOL, 1, 1, 1, 1);
    SCALAR_IS(tg_gt_scalar(x, -1), TG_BOOL, 1, 1, 1, 1);
    SCALAR_IS(tg_ge_scalar(x, 256), TG_BOOL, 0, 0, 0, 0);
    SCALAR_IS(tg_eq_scalar(x, 256), TG_BOOL, 0, 0, 0, 0);
    SCALAR_IS(tg_ne_scalar(x, -246), TG_BOOL, 1, 1, 1, 1);
    SCALAR_IS(tg_lt_scalar(s, 128), TG_BOOL, 1, 1, 1);
    SCALAR_IS(tg_lt_scalar(s, 1e30), TG_BOOL, 1, 1, 1);
    SCALAR_IS(tg_gt_scalar(s, -INFINITY), TG_BOOL, 1, 1, 1);
    SCALAR_IS(tg_ge_scalar(w, 0x1p63), TG_BOOL, 0, 1, 0);
    SCALAR_IS(tg_gt_scalar(w, -1), TG_BOOL, 1, 1, 1);
    SCALAR_IS(tg_clamp(x, 0, 256), TG_U8, 0, 10, 200, 255);
    SCALAR_IS(tg_clamp(x, -1, 300), TG_U8, 0, 10, 200, 255);
    SCALAR_IS(tg_clamp(x, -1, 20), TG_U8, 0, 10, 20, 20);
    SCALAR_IS(tg_clamp(x, 300, 400), TG_I16, 300, 300, 300, 300);
    SCALAR_IS(tg_clamp(x, -20, -10), TG_I16, -10, -10, -10, -10);
    SCALAR_IS(tg_add_scalar(x, 300), TG_I16, 300, 310, 500, 555);
    SCALAR_IS(tg_add_scalar(x, 255), TG_U8, 255, 9, 199, 254);
    SCALAR_IS(tg_sub_scalar(x, -1), TG_I16, 1, 11, 201, 256);
    SCALAR_IS(tg_rsub_scalar(x, 256), TG_I16, 256, 246, 56, 1);
    SCALAR_IS(tg_mul_scalar(x, -1), TG_I16, 0, -10, -200, -255);
    SCALAR_IS(tg_maximum_scalar(x, 256), TG_I16, 256, 256, 256, 256);
    SCALAR_IS(tg_minimum_scalar(x, 256), TG_I16, 0, 10, 200, 255);
    SCALAR_IS(tg_floordiv_scalar(x, -3), TG_I16, 0, -4, -67, -85);
    SCALAR_IS(tg_mod_scalar(x, 300), TG_I16, 0, 10, 200, 255);
    SCALAR_IS(tg_fmod_scalar(s, 200), TG_I16, -128, 0, 127);
    SCALAR_IS(tg_bitor_scalar(x, 256), TG_I16, 256, 266, 456, 511);
    SCALAR_IS(tg_bitand_scalar(x, -2), TG_I16, 0, 10, 200, 254);
    SCALAR_IS(tg_masked_fill(x, tg_gt_scalar(x, 100), 1000), TG_I16, 0, 10, 1000, 1000);
    SCALAR_IS(tg_shl_scalar(x, 300), TG_U8, 0, 0, 0, 0);
    SCALAR_IS(tg_shr_scalar(s, 300), TG_I8, -1, 0, 0);
    assert_null(tg_shl_scalar(x, -1));
    assert_int_equal(tg_error(ctx), TG_ERR_VALUE);
    tg_clear_error(ctx);
    TgTensor *i = given(TG_I32, V(1, 2));
    SCALAR_IS(tg_full_like(i, 3e9), TG_I32, INT32_MAX, INT32_MAX);
    SCALAR_IS(tg_full_like(i, -1e300), TG_I32, INT32_MIN, INT32_MIN);
    SCALAR_IS(tg_full_like(i, NAN), TG_I32, 0, 0);
    SCALAR_IS(tg_full_like(x, -5), TG_U8, 0, 0, 0, 0);
    SCALAR_IS(tg_pad_value(i, (int64_t[]){1}, (int64_t[]){0}, 3e9), TG_I32, INT32_MAX, 1, 2);
  }
}

static void refused(int line, TgTensor *y, const char *word) {
  if (y || tg_error(ctx) != TG_ERR_VALUE || !strstr(tg_errmsg(ctx), word))
    fail_msg("line %d on %s: '%s' where a refusal of %s was due", line, device, tg_errmsg(ctx), word);
  tg_clear_error(ctx);
}

#define REFUSED(y, word) refused(__LINE__, (y), (word))

static void test_powers_of_integers(void **state) {
  (void)state;
  ON_DEVICES {
    TgTensor *x = given(TG_I32, V(-2, 0, 2, 1, -1, 3));
    TgTensor *y = given(TG_I32, V(-2, -1, -1, -5, -3, 40));
    TgTensor *u = given(TG_U8, V(3, 2));
    TgTensor *l = given(TG_I64, V(3, -3));
    REFUSED(tg_pow_scalar(x, -2), "pow");
    REFUSED(tg_pow_scalar(x, -1), "pow");
    REFUSED(tg_pow_scalar(u, -1), "u8");
    REFUSED(tg_pow_scalar(tg_bool(x), -3), "bool");
    ARE_NEAR(tg_pow_scalar(tg_float(x), -2), V(0.25, INFINITY, 0.25, 1, 1, 1.0 / 9), 1e-6, 0);
    ARE(tg_pow(x, y), V(0, 0, 0, 1, -1, 689956897)); /* 3^40 modulo 2^32 */
    int64_t exact[2];                                /* 3^39 is no f64 */
    assert_int_equal(tg_read(tg_pow(l, given(TG_I64, V(39, 39))), exact, sizeof exact), TG_OK);
    assert_true(exact[0] == 4052555153018976267 && exact[1] == -4052555153018976267);
    ARE(tg_pow(u, u), V(27, 4));
    ARE(tg_rpow_scalar(given(TG_I32, V(0, 5, 30)), 2), V(1, 32, 1 << 30));
  }
}

/* What PyTorch computes is not refused. */
static void test_nothing_refused(void **state) {
  (void)state;
  ON_DEVICES {
    TgTensor *up = tg_arange(ctx, -128, 128, .dtype = TG_I8);
    TgTensor *down = tg_arange(ctx, 127, -129, .step = -1, .dtype = TG_I8);
    assert_int_equal(tg_numel(up), 256);
    ARE(tg_slice(up, 0, 0, 2), V(-128, -127));
    ARE(tg_slice(up, 0, 255, 256), V(127));
    ARE(tg_slice(down, 0, 0, 2), V(127, 126));
    ARE(tg_slice(down, 0, 254, 256), V(-127, -128));
    ARE(tg_arange(ctx, -100, 101, .step = 200, .dtype = TG_I8), V(-100, 100));
    REFUSED(tg_arange(ctx, -129, 0, .dtype = TG_I8), "i8");
    REFUSED(tg_arange(ctx, 0, 129, .dtype = TG_I8), "i8");
    TgTensor *point = tg_full(ctx, TG_SCALAR, 3);
    ARE(tg_squeeze(point, 0), V(3));
    ARE(tg_squeeze(point, -1), V(3));
    TgTensor *x = given(TG_F32, V(1, 2, 4, 5));
    /* 1 / (1 + 1/2 + 1/4 + 1/5) = 20/39 */
    ARE_NEAR(tg_normalize(x, .p = -1), V(1.95, 3.9, 7.8, 9.75), 1e-6, 0);
    ARE(tg_normalize(x, .p = -INFINITY), V(1, 2, 4, 5));
    REFUSED(tg_normalize(x, .p = NAN), "normalize");
    ARE(tg_pad_mode(x, (int64_t[]){-3}, (int64_t[]){3}, TG_PAD_REFLECT), V(5, 4, 2, 1));
    ARE(tg_pad_mode(x, (int64_t[]){2}, (int64_t[]){-2}, TG_PAD_REFLECT), V(4, 2, 1, 2));
    ARE(tg_pad_mode(x, (int64_t[]){-4}, (int64_t[]){2}, TG_PAD_REPLICATE), V(5, 5));
    ARE(tg_pad_mode(x, (int64_t[]){-1}, (int64_t[]){-1}, TG_PAD_REPLICATE), V(2, 4));
    ARE(tg_pad_mode(x, (int64_t[]){-1}, (int64_t[]){2}, TG_PAD_CIRCULAR), V(2, 4, 5, 2, 4));
  }
}

/* A factor of products is memory or made in place, as it costs less: the same numbers either way, to a bit,
 * for the sums are of small integers. */
static void test_factors(void **state) {
  (void)state;
  ON_DEVICES {
    TgTensor *x = tg_contiguous(tg_reshape(tg_fmod(tg_arange(ctx, 0, 192), tg_full(ctx, TG_SCALAR, 7)), 4,
                                           ((int64_t[]){1, 3, 8, 8}))),
             *w = tg_contiguous(tg_reshape(tg_fmod(tg_arange(ctx, 0, 108), tg_full(ctx, TG_SCALAR, 5)), 4,
                                           ((int64_t[]){4, 3, 3, 3}))),
             *rows = tg_randint(ctx, TG_SHAPE(40), 0, 8, TG_I32);
    TgTensor *plane = tg_reshape(tg_shrink_to(x, 4, ((int64_t[]){1, 1, 8, 8})), 2, ((int64_t[]){8, 8}));
    TgTensor *factor[] = {tg_relu(tg_sub_scalar(x, 3)),
                          tg_interpolate(x, 2, ((int64_t[]){16, 16}), .mode = TG_NEAREST),
                          tg_reshape(tg_expand(tg_reshape(x, 6, ((int64_t[]){1, 3, 8, 1, 8, 1})), 6,
                                               ((int64_t[]){1, 3, 8, 3, 8, 3})),
                                     4, ((int64_t[]){1, 3, 24, 24})),
                          tg_flip(x, 1, ((int64_t[]){2})),
                          tg_pad_mode(x, (int64_t[]){0, 0, 2, 2}, (int64_t[]){0, 0, 2, 2}, TG_PAD_REFLECT)};
    for (size_t i = 0; i < sizeof factor / sizeof *factor; i++) {
      TgTensor *apart = tg_conv2d(tg_contiguous(factor[i]), w, .padding = TG_SIZES(1));
      TgTensor *one = tg_conv2d(factor[i], w, .padding = TG_SIZES(1));
      ARE(tg_cast(tg_sum(tg_ne(one, apart)), TG_F32), V(0));
    }
    TgTensor *taken = tg_take(plane, rows), *memory = tg_contiguous(taken);
    ARE(tg_cast(tg_sum(tg_ne(tg_matmul(taken, plane), tg_matmul(memory, plane))), TG_F32), V(0));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_trigonometry),    cmocka_unit_test(test_small_ends),
      cmocka_unit_test(test_signed_zeros),    cmocka_unit_test(test_half_norms),
      cmocka_unit_test(test_scalars),         cmocka_unit_test(test_powers_of_integers),
      cmocka_unit_test(test_nothing_refused), cmocka_unit_test(test_factors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
