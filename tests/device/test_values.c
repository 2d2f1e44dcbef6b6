/* test_values.c: what functions give at values where a formula goes wrong: huge arguments, signed zeros, the ends of a narrow dtype. Expected
 * values are libm's, or by hand. Every test runs on the CPU, by the interpreter, and as codegen lowers it for the other targets. */
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
typedef struct Values { int n; double v[MOST]; } Values;
#define V(...) ((Values){(int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), {__VA_ARGS__}})
#define ON_DEVICES for (int d_ = 0; d_ < DEVICES && device_open(d_); d_++, tg_close(ctx))
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
  if (tg_read_f64(y, got, (size_t)want.n)) fail_msg("line %d on %s: %s: %s", line, device, what, tg_errmsg(ctx));
  for (int i = 0; i < want.n; i++) {
    double w = want.v[i], g = got[i];
    bool same = isnan(w) ? isnan(g) : g == w && !signbit(g) == !signbit(w);
    if (!same && !(fabs(g - w) <= eps * fmax(fabs(w), least))) fail_msg("line %d on %s: %s: element %d is %.17g, not %.17g", line, device, what, i, g, w);
  }
}
#define ARE(y, want) are_at(__LINE__, #y, (y), (want), 0, 0)
#define ARE_NEAR(y, want, eps, least) are_at(__LINE__, #y, (y), (want), (eps), (least))
static Values of(Values x, double (*f)(double)) {
  for (int i = 0; i < x.n; i++) x.v[i] = f(x.v[i]);
  return x;
}

/* The quadrant is found in integers, whatever the size of x: nothing is left of pi/2 - x in f32 at 1e7, in f16 at 1. */
static void test_trigonometry(void **state) {
  (void)state;
  Values large = V(11, 1571.58f, 9999.5f, 100000.5f, 1e6f, 1e7f, 1e10f, 0x1.6ac5b2p120f, 0x1p127f, -3e30f, 1e-30f, 0x1p-149);
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_trigonometry), cmocka_unit_test(test_small_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
