/* test_special.c: values and gradients of the elementwise functions at zeros, ties, ends of domains,
 * infinities, NaN and subnormal numbers against PyTorch's (tests/goldens/special.txt, made by
 * make_special.py), on the CPU and by the interpreter. Where we differ, `known` says where and why. */
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 256, SCALARS = 15 }; /* cases with a scalar */

typedef struct Row {
  int n;
  double v[MOST];
} Row;

typedef struct Case {
  char name[64];
  Row x, y, f, gx, gy;
} Case;

/* ---- the functions by name; a number after the name is the scalar */
typedef TgTensor *(*Unary)(TgTensor *x);
typedef TgTensor *(*Binary)(TgTensor *x, TgTensor *y);
typedef TgTensor *(*WithScalar)(TgTensor *x, double v);

static TgTensor *leaky_relu(TgTensor *x) { return tg_leaky_relu(x, 0.1); }

static TgTensor *elu(TgTensor *x) { return tg_elu(x, 1.5); }

static TgTensor *celu(TgTensor *x) { return tg_celu(x, 1.5); }

static TgTensor *hardtanh(TgTensor *x) { return tg_hardtanh(x, -1.5, 2.5); }

static TgTensor *clamp(TgTensor *x) { return tg_clamp(x, -1.5, 2.5); }

#define F(name)                                                                                              \
  { #name, tg_##name }

static const struct {
  const char *name;
  Unary fn;
} unary[] = {F(neg),
             F(exp),
             F(exp2),
             F(log),
             F(log2),
             F(log10),
             F(sin),
             F(cos),
             F(tan),
             F(sinh),
             F(cosh),
             F(tanh),
             F(asin),
             F(acos),
             F(atan),
             F(asinh),
             F(acosh),
             F(atanh),
             F(erf),
             F(sqrt),
             F(rsqrt),
             F(reciprocal),
             F(square),
             F(abs),
             F(sign),
             F(trunc),
             F(floor),
             F(ceil),
             F(round),
             F(relu),
             F(sigmoid),
             F(gelu),
             F(silu),
             F(softplus),
             F(gelu_erf),
             F(relu6),
             F(selu),
             F(logsigmoid),
             F(hardsigmoid),
             F(hardswish),
             F(softsign),
             F(mish),
             {"leaky_relu", leaky_relu},
             {"elu", elu},
             {"celu", celu},
             {"hardtanh", hardtanh},
             {"clamp", clamp}};

static const struct {
  const char *name;
  Binary fn;
} binary[] = {F(add),  F(sub), F(mul),     F(div),     F(floordiv),  F(truncdiv), F(mod),
              F(fmod), F(pow), F(maximum), F(minimum), F(logaddexp), F(copysign), F(atan2)};

static const struct {
  const char *name;
  WithScalar fn;
} scalar[] = {F(maximum_scalar), F(minimum_scalar), F(pow_scalar), F(rpow_scalar)};

static TgTensor *call(const Case *c, TgTensor *x, TgTensor *y) {
  char name[64];
  double v = 0;
  (void)sscanf(c->name, "%63s %lf", name, &v);
  for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
    if (!strcmp(unary[i].name, name)) return unary[i].fn(x);
  for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
    if (!strcmp(binary[i].name, name)) return binary[i].fn(x, y);
  for (size_t i = 0; i < sizeof scalar / sizeof *scalar; i++)
    if (!strcmp(scalar[i].name, name)) return scalar[i].fn(x, v);
  fail_msg("special.txt: %s is not known here", name);
  return NULL;
}

/* ---- where we differ */
typedef enum Part { VALUE = 1, BY_X = 2, BY_Y = 4 } Part;

static bool zero(double x, double y) { return (void)y, x == 0; }

static bool negative_zero(double x, double y) { return (void)y, x == 0 && signbit(x); }

static bool not_a_number(double x, double y) { return (void)y, isnan(x); }

static bool finite_x(double x, double y) { return (void)y, isfinite(x); }

static bool infinite_x(double x, double y) { return (void)y, isinf(x); }

static bool below_one(double x, double y) { return (void)y, x < 1; }

static bool huge(double x, double y) { return (void)y, fabs(x) >= 3e38; }

static bool three_and_more(double x, double y) { return (void)y, fabs(x) >= 3; }

static bool negative(double x, double y) { return (void)y, x < 0; }

static bool at_bounds(double x, double y) { return (void)y, x == -1.5 || x == 2.5 || isnan(x); }

static bool large(double x, double y) { return (void)y, x >= 100000; }

static bool both_infinite(double x, double y) { return isinf(x) && x == y; }

static bool no_slope(double x, double y) { return (void)y, isinf(x) || isnan(x); }

static bool subnormal_y(double x, double y) { return x == 0 && y != 0 && fabs(y) < 0x1p-126; }

static bool small_or_infinite(double x, double y) {
  return isinf(x) || isinf(y) || fmin(fabs(x), fabs(y)) < 0x1p-126;
}

static bool by_infinity(double x, double y) { return isinf(y) || isinf(x); }

static bool whole_quotient(double x, double y) { return x == 0 || isinf(y) || isinf(x) || fmod(x, y) == 0; }

static const struct Known {
  const char *name;
  int part;
  bool (*where)(double x, double y);
  const char *why;
} known[] = {
    {"abs", BY_X, not_a_number, "1: not below 0"},
    {"acosh", BY_X, below_one, "NaN, as the value is; PyTorch has 1 / sqrt(x^2 - 1) there too"},
    {"acosh", BY_X, huge, "3e-39 is a number; PyTorch's square overflows"},
    {"asinh", BY_X, huge, "3e-39 is a number; PyTorch's square overflows"},
    {"log10", BY_X, huge, "1e-39 is a number; PyTorch's x ln 10 overflows"},
    {"atan2", BY_X | BY_Y, small_or_infinite,
     "computed from y / x: x^2 + y^2 would under- or overflow; NaN where 1 / x overflows and y is 0"},
    {"clamp", BY_X, at_bounds, "the bounds pass the gradient, as does NaN"},
    {"copysign", BY_X, no_slope, "+-1 also at infinity and NaN; PyTorch divides y by x"},
    {"div", BY_Y, subnormal_y, "both gradients share g / y, which overflows below 2^-128"},
    {"elu", BY_X, zero, "0 belongs to the upper branch, as in tinygrad"},
    {"selu", BY_X, zero, "0 belongs to the upper branch, as in tinygrad"},
    {"leaky_relu", BY_X, zero, "0 belongs to the upper branch, as in tinygrad"},
    {"leaky_relu", BY_X, not_a_number, "1: not below 0"},
    {"floordiv", VALUE, by_infinity,
     "the floor of the quotient, as in tinygrad; Python's goes by the remainder"},
    {"mod", VALUE, whole_quotient, "a remainder of 0 has the divisor's sign, as in Python and NumPy"},
    {"mod", BY_Y, by_infinity, "minus the floor of the quotient, as floordiv"},
    {"gelu", VALUE | BY_X, negative, "x sigmoid(2u) keeps the small values that 1 + tanh u loses"},
    {"gelu_erf", VALUE | BY_X, three_and_more, "PyTorch's approximation is coarser, and NaN at infinity"},
    {"hardsigmoid", BY_X, not_a_number, "1/6: on neither bound"},
    {"hardswish", BY_X, not_a_number, "NaN, as the value is"},
    {"logaddexp", BY_X | BY_Y, both_infinite, "1 and 0: the larger, if not less, takes all"},
    {"logsigmoid", VALUE, large, "-0: from below"},
    {"mish", BY_X, negative, "PyTorch leaves out the term of x"},
    {"pow_scalar -0.5", BY_X, infinite_x, "NaN at -inf, as the value is"},
    {"relu", VALUE, negative_zero, "+0"},
    {"relu", BY_X, not_a_number, "0: not above 0"},
    {"relu6", VALUE, negative_zero, "+0"},
    {"sigmoid", VALUE | BY_X, finite_x,
     "e^-89 is a number, and the gradient e / (1 + e)^2 loses nothing where s (1 - s) does"},
    {"silu", VALUE | BY_X, negative, "e^-89 is a number"},
    {"sign", VALUE, not_a_number, "NaN stays"},
    {"tanh", BY_X, finite_x, "4 e / (1 + e)^2 loses nothing where 1 - t^2 does"},
};

static bool is_known(const Case *c, Part part, double x, double y, bool *used) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].name, c->name) && (known[i].part & part) && known[i].where(x, y))
      return used[i] = true;
  return false;
}

static bool same(double got, double want, bool zeros) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
  if (want == 0 && got == 0) return !zeros || !signbit(got) == !signbit(want);
  return got == want || fabs(got - want) <= 2e-6 * fabs(want) + 0x1p-147;
}

static int differing(const Case *c, Part part, const Row *want, TgTensor *t, bool *used) {
  double got[MOST];
  int bad = 0;
  if (tg_read_f64(t, got, (size_t)want->n)) fail_msg("%s: %s", c->name, tg_errmsg(tg_context(t)));
  for (int i = 0; i < want->n; i++) {
    double x = c->x.v[i], y = c->y.n ? c->y.v[i] : 0;
    if (same(got[i], want->v[i], part == VALUE) || is_known(c, part, x, y, used)) continue;
    print_message("%s%s at %g",
                  part == VALUE  ? ""
                  : part == BY_X ? "gradient by x of "
                                 : "gradient by y of ",
                  c->name, x);
    if (c->y.n) print_message(", %g", y);
    print_message(": %.9g, PyTorch has %.9g\n", got[i], want->v[i]);
    bad++;
  }
  return bad;
}

static bool read_row(FILE *f, const char *name, Row *r) {
  char word[64];
  long at = ftell(f);
  r->n = 0;
  if (fscanf(f, "%63s", word) != 1 || strcmp(word, name)) return fseek(f, at, SEEK_SET), false;
  for (int c; (c = fgetc(f)) == ' ';) {
    assert_true(r->n < MOST && fscanf(f, "%63s", word) == 1);
    r->v[r->n++] = strtod(word, NULL);
  }
  return true;
}

static bool read_case(FILE *f, Case *c) {
  if (fscanf(f, " case %63[^\n]\n", c->name) != 1) return false;
  bool ok = read_row(f, "x", &c->x);
  bool two = read_row(f, "y", &c->y);
  ok = ok && read_row(f, "f", &c->f) && read_row(f, "gx", &c->gx) && (!two || read_row(f, "gy", &c->gy));
  if (!ok) fail_msg("special.txt: %s", c->name);
  return true;
}

static void compare(const char *device) {
  static Case c;
  bool used[sizeof known / sizeof *known] = {false};
  int bad = 0, cases = 0;
  FILE *f = fopen(TG_TESTS "/goldens/special.txt", "r");
  assert_non_null(f);
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  for (; read_case(f, &c); cases++)
    TG_SCOPE(ctx) {
      TgTensor *x = tg_from_f64(ctx, c.x.v, TG_F32, TG_SHAPE(c.x.n));
      TgTensor *y = tg_from_f64(ctx, c.y.v, TG_F32, TG_SHAPE(c.y.n));
      TgTensor *in[] = {x, y}, *grad[2], *out = call(&c, x, y);
      if (tg_gradient(tg_sum(out), in, c.y.n ? 2 : 1, grad)) fail_msg("%s: %s", c.name, tg_errmsg(ctx));
      bad += differing(&c, VALUE, &c.f, out, used) + differing(&c, BY_X, &c.gx, grad[0], used);
      if (c.y.n) bad += differing(&c, BY_Y, &c.gy, grad[1], used);
    }
  fclose(f);
  tg_close(ctx);
  assert_int_equal(cases, sizeof unary / sizeof *unary + sizeof binary / sizeof *binary + SCALARS);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (*known[i].name && !used[i]) print_message("%s: no longer differs\n", known[i].name), bad++;
  if (bad) fail_msg("%s: %d differences", device, bad);
}

static void test_cpu(void **state) { (void)state, compare("CPU"); }

static void test_interp(void **state) { (void)state, compare("INTERP"); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cpu), cmocka_unit_test(test_interp)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
