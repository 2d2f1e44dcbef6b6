/* test_behaviours.c: the behaviours every backend must show, numbered as in behaviours.md. Devices come from
 * the command line (test_behaviours CPU INTERP); each test runs in a fresh context. Expected values are by
 * hand, from plain loops, or, for gradients, from finite differences in f64. */
#include "device/left.h"
#include "tg_nn.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *device = "INTERP";
static TgContext *C;

static int setup(void **state) {
  (void)state;
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = 42});
  if (tg_error(C)) fprintf(stderr, "%s: %s\n", device, tg_errmsg(C));
  return tg_error(C) != TG_OK;
}

static int teardown(void **state) {
  (void)state;
  assert_int_equal(tg_counters(C).fallbacks + tg_counters(C).cuts, 0); /* every kernel took its opts */
  tg_close(C);
  C = NULL;
  return 0;
}

/* ---- helpers */
#define N(a)     ((int)(sizeof(a) / sizeof(*(a))))
#define F(...)   ((const double[]){__VA_ARGS__})
#define I64(...) ((const int64_t[]){__VA_ARGS__})

static TgTensor *mk(TgDType d, const double *v, int n, const int64_t *dims) {
  return tg_from_f64(C, v, d, n, dims);
}

#define T32(shape, ...)  mk(TG_F32, F(__VA_ARGS__), shape)
#define T64(shape, ...)  mk(TG_F64, F(__VA_ARGS__), shape)
#define TI32(shape, ...) mk(TG_I32, F(__VA_ARGS__), shape)
#define S(...)           TG_SHAPE(__VA_ARGS__)

static TgTensor *iota(TgDType d, int n, const int64_t *dims) { /* 1, 2, .. */
  int64_t count = 1;
  for (int i = 0; i < n; i++)
    count *= dims[i];
  double *v = malloc((size_t)(count + 1) * sizeof *v);
  for (int64_t i = 0; i < count; i++)
    v[i] = (double)(i + 1);
  TgTensor *t = mk(d, v, n, dims);
  free(v);
  return t;
}

static void fine_at(int line) {
  if (tg_error(C) == TG_ERR_DTYPE && strstr(tg_errmsg(C), "is f64, which")) {
    print_message("skipped: %s\n", tg_errmsg(C));
    skip();
  }
  if (tg_error(C)) fail_msg("line %d on %s: %s: %s", line, device, tg_status_name(tg_error(C)), tg_errmsg(C));
}

#define fine() fine_at(__LINE__)

static void near_at(int line, TgTensor *t, const double *want, size_t n, double tol) {
  fine_at(line);
  if (!t) fail_msg("line %d on %s: no tensor", line, device);
  if ((size_t)tg_numel(t) != n)
    fail_msg("line %d on %s: %lld elements, not %zu", line, device, (long long)tg_numel(t), n);
  double *got = malloc((n + 1) * sizeof *got);
  TgStatus status = tg_read_f64(t, got, n);
  if (status) {
    free(got); /* fine_at may not return: it may skip the test */
    fine_at(line);
    fail_msg("line %d on %s: %s", line, device, tg_status_name(status));
    return;
  }
  for (size_t i = 0; i < n; i++) {
    bool ok = isnan(want[i])               ? isnan(got[i])
              : isinf(want[i]) || tol == 0 ? got[i] == want[i]
                                           : fabs(got[i] - want[i]) <= tol * fmax(1, fabs(want[i]));
    if (!ok) fail_msg("line %d on %s: element %zu is %.9g, not %.9g", line, device, i, got[i], want[i]);
  }
  free(got);
}

#define NEAR(t, tol, ...)                                                                                    \
  near_at(__LINE__, (t), F(__VA_ARGS__), sizeof F(__VA_ARGS__) / sizeof(double), (tol))
#define IS(t, ...)    NEAR(t, 0, __VA_ARGS__)
#define CLOSE(t, ...) NEAR(t, 2e-6, __VA_ARGS__)

static void shape_is_at(int line, TgTensor *t, int n, const int64_t *dims) {
  fine_at(line);
  bool ok = t && tg_ndim(t) == n;
  for (int i = 0; ok && i < n; i++)
    ok = tg_shape(t)[i] == dims[i];
  if (!ok) fail_msg("line %d on %s: wrong shape", line, device);
}

#define SHAPE_IS(t, ...) shape_is_at(__LINE__, (t), TG_SHAPE(__VA_ARGS__))

static void error_is_at(int line, const void *t, TgStatus want, const char *word) {
  if (t) fail_msg("line %d on %s: a result where an error was due", line, device);
  if (tg_error(C) != want)
    fail_msg("line %d on %s: %s (%s) where %s was due", line, device, tg_status_name(tg_error(C)),
             tg_errmsg(C), tg_status_name(want));
  if (!strstr(tg_errmsg(C), word))
    fail_msg("line %d on %s: '%s' does not name %s", line, device, tg_errmsg(C), word);
  tg_clear_error(C);
}

#define ERROR_IS(t, status, word) error_is_at(__LINE__, (t), (status), (word))

static void ok_at(int line, TgStatus s) {
  if (s) {
    fine_at(line);
    fail_msg("line %d on %s: %s", line, device, tg_status_name(s));
  }
}

#define OK(s) ok_at(__LINE__, (s))

static uint64_t rng = 88172645463325252u;

static uint64_t next_random(void) {
  rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
  return rng;
}

static double uniform(double lo, double hi) {
  return lo + (hi - lo) * (double)(next_random() >> 11) / 9007199254740992.0;
}

/* Analytic gradients of f at x (f64) against central differences. f returns a tensor; its weighted sum is the
 * loss. */
typedef TgTensor *(*Fn)(TgTensor **x);

static TgTensor *weighted(TgTensor *y) {
  int64_t n = tg_numel(y);
  double *w = malloc((size_t)(n + 1) * sizeof *w);
  for (int64_t i = 0; i < n; i++)
    w[i] = 0.5 + (double)((i * 7) % 5) * 0.3;
  TgTensor *t = tg_from_f64(C, w, TG_F64, tg_ndim(y), tg_shape(y));
  free(w);
  return tg_sum(tg_mul(y, t));
}

typedef struct In {
  int n;
  const int64_t *dims;
  double lo, hi;
} In;

static void gradcheck_at(int line, Fn f, int nx, const In *in, double tol) {
  double v[4][128];
  size_t count[4];
  for (int k = 0; k < nx; k++) {
    count[k] = 1;
    for (int i = 0; i < in[k].n; i++)
      count[k] *= (size_t)in[k].dims[i];
    assert_true(count[k] <= 128);
    for (size_t i = 0; i < count[k]; i++)
      v[k][i] = uniform(in[k].lo, in[k].hi);
  }
  TgTensor *x[4] = {0}, *g[4] = {0};
  for (int k = 0; k < nx; k++)
    x[k] = mk(TG_F64, v[k], in[k].n, in[k].dims);
  if (tg_gradient(weighted(f(x)), x, nx, g)) fine_at(line);
  for (int k = 0; k < nx; k++) {
    double an[128];
    if (tg_read_f64(g[k], an, count[k])) fine_at(line);
    for (size_t i = 0; i < count[k]; i++) {
      double side[2], h = 1e-5, keep = v[k][i];
      for (int s = 0; s < 2; s++)
        TG_SCOPE(C) {
          v[k][i] = keep + (s ? -h : h);
          TgTensor *y[4];
          for (int j = 0; j < nx; j++)
            y[j] = mk(TG_F64, v[j], in[j].n, in[j].dims);
          side[s] = tg_item_f64(weighted(f(y)));
        }
      v[k][i] = keep;
      fine_at(line);
      double num = (side[0] - side[1]) / (2 * h);
      if (!(fabs(num - an[i]) <= tol * fmax(1, fabs(num))))
        fail_msg("line %d on %s: d/dx%d[%zu] is %.9g, not %.9g", line, device, k, i, an[i], num);
    }
  }
}

#define IN(lo, hi, ...)                                                                                      \
  { TG_SHAPE(__VA_ARGS__), (lo), (hi) }
#define GRADCHECK(f, tol, ...)                                                                               \
  gradcheck_at(__LINE__, (f), (int)(sizeof((In[]){__VA_ARGS__}) / sizeof(In)), (const In[]){__VA_ARGS__},    \
               (tol))

/* ---- pipeline */
static void b01_data_round_trip(void **s) {
  (void)s;
  float f[] = {1.5f, -2, 3e30f};
  int8_t i[] = {-128, 0, 127};
  float fo[3];
  int8_t io[3];
  OK(tg_read(tg_from(C, f, TG_F32, S(3)), fo, sizeof fo));
  OK(tg_read(tg_from(C, i, TG_I8, S(3)), io, sizeof io));
  assert_memory_equal(f, fo, sizeof f);
  assert_memory_equal(i, io, sizeof i);
  IS(tg_borrow(C, f, TG_F32, S(3), NULL, NULL), 1.5, -2, (double)3e30f);
  assert_int_equal(tg_read(tg_empty(C, TG_F32, S(2)), fo, 8), TG_ERR_STATE);
  ERROR_IS(NULL, TG_ERR_STATE, "value");
}

static void b02_programs_do_not_mix(void **s) {
  (void)s;
  TgTensor *x = T32(S(4), 1, 2, 3, 4), *y = T32(S(4), 5, 6, 7, 8);
  IS(tg_add_scalar(x, 1), 2, 3, 4, 5);
  IS(tg_mul_scalar(x, 3), 3, 6, 9, 12);
  IS(tg_add_scalar(x, 2), 3, 4, 5, 6);
  uint64_t before = tg_counters(C).compiled;
  IS(tg_add_scalar(y, 1), 6, 7, 8, 9);
  assert_int_equal(tg_counters(C).compiled, before);
}

static void b03_fills(void **s) {
  (void)s;
  IS(tg_full(C, S(2, 2), 2.5), 2.5, 2.5, 2.5, 2.5);
  IS(tg_zeros(C, S(3), .dtype = TG_I32), 0, 0, 0);
  IS(tg_ones(C, S(2), .dtype = TG_U8), 1, 1);
  IS(tg_full(C, TG_SCALAR, 7), 7);
  assert_true(tg_counters(C).launches > 0 || !strncmp(device, "NULL", 4));
}

static void b04_chained_compute(void **s) {
  (void)s;
  TgTensor *a = iota(TG_F32, S(4)), *b = tg_mul(a, a);
  OK(tg_realize(b));
  TgTensor *c = tg_add(b, a);
  OK(tg_realize(c));
  TgTensor *d = tg_sub(c, b), *e = tg_mul(c, b);
  OK(tg_realize_many((TgTensor *[]){d, e}, 2));
  IS(d, 1, 2, 3, 4);
  IS(e, 2, 24, 108, 320);
}

static uint64_t kernels_for(TgTensor *t) {
  uint64_t before = tg_counters(C).launches;
  OK(tg_realize(t));
  return tg_counters(C).launches - before;
}

static void b05_chains_fuse(void **s) {
  (void)s;
  TgTensor *a = iota(TG_F32, S(64)), *b = iota(TG_F32, S(64));
  assert_int_equal(kernels_for(tg_mul(a, tg_reciprocal(b))), 1);
  assert_int_equal(kernels_for(tg_sum(tg_sqrt(tg_mul(tg_add(a, b), a)))), 1);
  assert_in_range(kernels_for(tg_mean(tg_add_scalar(a, 4))), 1, 2);
}

static void b06_many_inputs(void **s) {
  (void)s;
  TgTensor *sum = NULL;
  double want[4] = {0};
  for (int i = 0; i < 24; i++) {
    double v[4];
    for (int k = 0; k < 4; k++)
      v[k] = i * 4 + k, want[k] += v[k];
    TgTensor *t = mk(TG_F32, v, S(4));
    sum = sum ? tg_add(sum, t) : t;
  }
  near_at(__LINE__, sum, want, 4, 0);
}

static void b07_steps_compile_once(void **s) {
  (void)s;
  tg_set_training(C, true);
  TgLinear l1 = tg_linear_new(C, 4, 8, true), l2 = tg_linear_new(C, 8, 2, true);
  TgOptim *o = tg_adam(C, ((TgTensor *[]){l1.weight, l1.bias, l2.weight, l2.bias}), 4, .lr = 1e-2);
  assert_non_null(o);
  uint64_t compiled = 0, schedules = 0;
  for (int step = 0; step < 6; step++) {
    TG_SCOPE(C) {
      TgTensor *x = tg_rand(C, S(5, 4)), *y = tg_from(C, (int32_t[]){0, 1, 0, 1, 1}, TG_I32, S(5));
      TgTensor *h = tg_dropout(tg_relu(tg_linear_run(&l1, x)), 0.2);
      TgTensor *loss = tg_sparse_cross_entropy(tg_linear_run(&l2, h), y);
      OK(tg_backward(loss));
      OK(tg_optim_step(o));
      assert_true(isfinite(tg_item_f64(loss)));
    }
    if (step == 1) compiled = tg_counters(C).compiled, schedules = tg_counters(C).schedules;
  }
  assert_int_equal(tg_counters(C).compiled, compiled);
  assert_int_equal(tg_counters(C).schedules, schedules);
  assert_true(tg_counters(C).schedule_hits > 0);
  tg_optim_free(o);
}

/* ---- reductions */
typedef struct Fold {
  TgTensor *(*run)(TgTensor *, const TgReduceOptions *);
  double start;
  double (*step)(double, double);
} Fold;

static double f_add(double a, double b) { return a + b; }

static double f_mul(double a, double b) { return a * b; }

static void b08_reductions(void **s) {
  (void)s;
  const Fold folds[] = {{tg_sum_opt, 0, f_add},
                        {tg_max_opt, -INFINITY, fmax},
                        {tg_min_opt, INFINITY, fmin},
                        {tg_prod_opt, 1, f_mul},
                        {tg_mean_opt, 0, f_add}};
  const TgAxes axes[] = {{{0}, 0},      TG_AXES(0),    TG_AXES(1),     TG_AXES(2),      TG_AXES(-1),
                         TG_AXES(0, 2), TG_AXES(1, 2), TG_AXES(-3, 1), TG_AXES(2, 0, 1)};
  double v[24];
  for (int i = 0; i < 24; i++)
    v[i] = ((i * 7) % 11 - 5) * 0.25 + 0.1;
  TgTensor *x = mk(TG_F64, v, S(2, 3, 4));
  for (int f = 0; f < N(folds); f++)
    for (int a = 0; a < N(axes); a++)
      for (int keep = 0; keep < 2; keep++) {
        bool mask[3] = {false};
        for (int i = 0; i < axes[a].n; i++)
          mask[(axes[a].v[i] + 3) % 3] = true;
        if (axes[a].n == 0) mask[0] = mask[1] = mask[2] = true;
        int64_t d[3] = {2, 3, 4}, stride[3], o = 1, out_shape[3];
        int nd = 0;
        for (int i = 2; i >= 0; i--)
          stride[i] = mask[i] ? 0 : o, o *= mask[i] ? 1 : d[i];
        for (int i = 0; i < 3; i++)
          if (!mask[i] || keep) out_shape[nd++] = mask[i] ? 1 : d[i];
        double want[24];
        for (int i = 0; i < o; i++)
          want[i] = folds[f].start;
        for (int i = 0; i < 24; i++) {
          double *w = &want[(i / 12) * stride[0] + (i / 4 % 3) * stride[1] + (i % 4) * stride[2]];
          *w = folds[f].step(*w, v[i]);
        }
        if (folds[f].run == tg_mean_opt)
          for (int i = 0; i < o; i++)
            want[i] /= 24.0 / (double)o;
        TgTensor *r = folds[f].run(
            x, &(TgReduceOptions){.size = sizeof(TgReduceOptions), .axis = axes[a], .keepdim = keep});
        shape_is_at(__LINE__, r, nd, out_shape);
        near_at(__LINE__, r, want, (size_t)o, 1e-12);
      }
  IS(tg_sum(tg_from(C, (uint8_t[]){200, 200, 200}, TG_U8, S(3))), 600);
  IS(tg_min(tg_from(C, (uint32_t[]){4294967295u, 7, 9}, TG_U32, S(3))), 7);
  IS(tg_max(T32(S(3), 1, NAN, 3)), NAN);
  ERROR_IS(tg_sum(x, .axis = TG_AXES(3)), TG_ERR_SHAPE, "sum");
  ERROR_IS(tg_sum(x, .axis = TG_AXES(1, -2)), TG_ERR_SHAPE, "sum");
  IS(tg_any(T32(S(2, 2), 0, 0, 0, 2), .axis = TG_AXES(1)), 0, 1);
  IS(tg_all(T32(S(2, 2), 0, 1, 3, 2), .axis = TG_AXES(1)), 0, 1);
  IS(tg_sum(tg_zeros(C, S(0, 2)), .axis = TG_AXES(0)), 0, 0);
}

static void b09_sum_of_two_axes(void **s) {
  (void)s;
  IS(tg_sum(iota(TG_F32, S(2, 3, 4)), .axis = TG_AXES(0, 2)), 68, 100, 132);
}

static void b10_chained_reductions(void **s) {
  (void)s;
  IS(tg_sum(tg_sum(iota(TG_F32, S(2, 3, 4)), .axis = TG_AXES(2)), .axis = TG_AXES(0)), 68, 100, 132);
}

static void b11_square_of_sums(void **s) {
  (void)s;
  TgTensor *x = iota(TG_F32, S(2, 3)), *loss = tg_sum(tg_square(tg_sum(x, .axis = TG_AXES(1)))), *g;
  OK(tg_gradient(loss, &x, 1, &g));
  IS(loss, 36 + 225);
  IS(g, 12, 12, 12, 30, 30, 30);
}

static void b12_reduced_then_broadcast(void **s) {
  (void)s;
  TgTensor *x = iota(TG_F32, S(2, 3));
  TgTensor *rows = tg_sum(x, .axis = TG_AXES(1), .keepdim = true);
  TgTensor *cols = tg_sum(x, .axis = TG_AXES(0), .keepdim = true);
  IS(tg_sub(rows, x), 5, 4, 3, 11, 10, 9);
  IS(tg_sub(cols, x), 4, 5, 6, 1, 2, 3);
  IS(tg_add(rows, cols), 11, 13, 15, 20, 22, 24);
  OK(tg_realize_many((TgTensor *[]){rows, cols}, 2));
  IS(tg_add(rows, cols), 11, 13, 15, 20, 22, 24);
}

/* ---- movement, beside plain loops on a host array */
typedef struct Host {
  int n;
  int64_t d[6];
  double v[4096];
} Host;

enum { RESHAPE, EXPAND, PERMUTE, PAD, SHRINK, FLIP, NMOVE };

static int64_t host_count(const Host *h) {
  int64_t c = 1;
  for (int i = 0; i < h->n; i++)
    c *= h->d[i];
  return c;
}

static void unflat(const Host *h, int64_t i, int64_t *at) {
  for (int k = h->n - 1; k >= 0; k--)
    at[k] = i % h->d[k], i /= h->d[k];
}

static int64_t flat(const Host *h, const int64_t *at) {
  int64_t i = 0;
  for (int k = 0; k < h->n; k++)
    i = i * h->d[k] + at[k];
  return i;
}

/* One random movement of kind `op` on both; some shapes do not allow it, then nothing happens. */
static TgTensor *random_move(int op, Host *h, TgTensor *t) {
  static Host o;
  int64_t a[6] = {0}, b[6] = {0}, at[6], from[6], c = host_count(h);
  o.n = h->n;
  memcpy(o.d, h->d, sizeof o.d);
  switch (op) {
  case RESHAPE: { /* factors dealt to random axes */
    o.n = 1 + (int)(next_random() % 5);
    for (int i = 0; i < o.n; i++)
      o.d[i] = 1;
    for (int64_t left = c, p = 2; left > 1;)
      if (left % p == 0)
        o.d[next_random() % (uint64_t)o.n] *= p, left /= p;
      else
        p++;
    memcpy(o.v, h->v, (size_t)c * sizeof *o.v);
    t = tg_reshape(t, o.n, o.d);
    *h = o;
    return t;
  }
  case EXPAND:
    for (int i = 0; i < h->n; i++)
      if (h->d[i] == 1 && c * 3 <= 1500) o.d[i] = 1 + (int64_t)(next_random() % 3), c *= o.d[i];
    t = tg_expand(t, o.n, o.d);
    break;
  case PERMUTE:
    for (int i = 0; i < h->n; i++)
      a[i] = i;
    for (int i = h->n - 1; i > 0; i--) {
      int j = (int)(next_random() % (uint64_t)(i + 1));
      int64_t x = a[i];
      a[i] = a[j], a[j] = x;
    }
    for (int i = 0; i < h->n; i++)
      o.d[i] = h->d[a[i]];
    t = tg_permute(t, h->n, a);
    break;
  case PAD:
    for (int i = 0; i < h->n; i++) {
      a[i] = (int64_t)(next_random() % 3), b[i] = (int64_t)(next_random() % 2);
      if (c / h->d[i] * (h->d[i] + a[i] + b[i]) > 1500) a[i] = b[i] = 0;
      c = c / h->d[i] * (o.d[i] = h->d[i] + a[i] + b[i]);
    }
    t = tg_pad(t, a, b);
    break;
  case SHRINK:
    for (int i = 0; i < h->n; i++) {
      a[i] = (int64_t)(next_random() % (uint64_t)((h->d[i] + 1) / 2)),
      b[i] = h->d[i] - (int64_t)(next_random() % (uint64_t)(h->d[i] - a[i] > 1 ? 2 : 1));
      o.d[i] = b[i] - a[i];
    }
    t = tg_shrink(t, a, b);
    break;
  default: {
    int64_t axes[6];
    int n = 0;
    for (int i = 0; i < h->n; i++)
      if ((a[i] = (int64_t)(next_random() & 1))) axes[n++] = i;
    t = tg_flip(t, n, axes);
  }
  }
  for (int64_t i = 0; i < host_count(&o); i++) {
    unflat(&o, i, at);
    bool in = true;
    for (int k = 0; k < h->n; k++) {
      int64_t x = at[k];
      if (op == PERMUTE) {
        from[a[k]] = x;
        continue;
      }
      if (op == EXPAND) x = h->d[k] == 1 ? 0 : x;
      if (op == PAD) x -= a[k];
      if (op == SHRINK) x += a[k];
      if (op == FLIP && a[k]) x = h->d[k] - 1 - x;
      in = in && x >= 0 && x < h->d[k];
      from[k] = x;
    }
    o.v[i] = in ? h->v[flat(h, from)] : 0;
  }
  *h = o;
  return t;
}

static TgTensor *host_start(Host *h, int n, const int64_t *d) {
  h->n = n;
  memcpy(h->d, d, (size_t)n * sizeof *d);
  for (int64_t i = 0; i < host_count(h); i++)
    h->v[i] = (double)(i + 1);
  return mk(TG_F32, h->v, n, d);
}

static Host H;

static void b13_movement_pairs(void **s) {
  (void)s;
  const int64_t one[] = {6}, three[] = {2, 1, 3};
  for (int rank = 0; rank < 2; rank++)
    for (int a = 0; a < NMOVE; a++)
      for (int b = -1; b < NMOVE; b++)
        TG_SCOPE(C) {
          TgTensor *t = rank ? host_start(&H, 3, three) : host_start(&H, 1, one);
          t = random_move(a, &H, t);
          if (b >= 0) t = random_move(b, &H, t);
          shape_is_at(__LINE__, t, H.n, H.d);
          near_at(__LINE__, t, H.v, (size_t)host_count(&H), 0);
        }
}

static void b14_permute(void **s) {
  (void)s;
  IS(tg_permute(iota(TG_F32, S(2, 3)), 2, I64(1, 0)), 1, 4, 2, 5, 3, 6);
}

static void b15_movement_chains(void **s) {
  (void)s;
  for (int c = 0; c < 24; c++)
    TG_SCOPE(C) {
      int64_t d[5];
      int n = 1 + c % 5, steps = 3 + c % 6;
      for (int i = 0; i < n; i++)
        d[i] = 1 + (int64_t)(next_random() % 4);
      TgTensor *t = host_start(&H, n, d);
      for (int k = 0; k < steps; k++)
        t = random_move((int)(next_random() % NMOVE), &H, t);
      shape_is_at(__LINE__, t, H.n, H.d);
      near_at(__LINE__, t, H.v, (size_t)host_count(&H), 0);
    }
}

static void b16_movement_over_reduction(void **s) {
  (void)s;
  TgTensor *r = tg_sum(iota(TG_F32, S(2, 3)), .axis = TG_AXES(1), .keepdim = true);
  IS(tg_flip(tg_permute(r, 2, I64(1, 0)), 1, I64(1)), 15, 6);
}

static void b17_one_buffer_two_views(void **s) {
  (void)s;
  TgTensor *x = T32(S(2), 2, 3), *y = T32(S(2), 5, 7), *p = tg_mul(x, y), *g[2];
  TgTensor *a = tg_expand(tg_reshape(x, S(2, 1)), S(2, 2)), *b = tg_expand(tg_reshape(x, S(1, 2)), S(2, 2));
  IS(tg_sub(a, b), 0, -1, 1, 0);
  TgTensor *c =
      tg_mul(tg_expand(tg_reshape(p, S(2, 1)), S(2, 2)), tg_expand(tg_reshape(p, S(1, 2)), S(2, 2)));
  IS(c, 100, 210, 210, 441);
  OK(tg_gradient(tg_sum(c), (TgTensor *[]){x, y}, 2, g)); /* (p0+p1)^2, p = 10, 21: d/dp = 62 */
  IS(g[0], 62 * 5, 62 * 7);
  IS(g[1], 62 * 2, 62 * 3);
}

static void b18_permute_and_broadcast(void **s) {
  (void)s;
  TgTensor *x = iota(TG_F32, S(2, 3)), *y = T32(S(3, 1), 10, 20, 30);
  IS(tg_add(tg_permute(x, 2, I64(1, 0)), y), 11, 14, 22, 25, 33, 36);
}

static void b19_shape_errors(void **s) {
  (void)s;
  TgTensor *x = iota(TG_F32, S(2, 3));
  ERROR_IS(tg_reshape(x, S(4, 2)), TG_ERR_SHAPE, "reshape");
  ERROR_IS(tg_reshape(x, S(-1, 4)), TG_ERR_SHAPE, "(2, 3)");
  ERROR_IS(tg_reshape(x, S(-1, -1)), TG_ERR_SHAPE, "reshape");
  ERROR_IS(tg_expand(x, S(4, 3)), TG_ERR_SHAPE, "expand");
  ERROR_IS(tg_permute(x, 2, I64(0, 0)), TG_ERR_SHAPE, "permute");
  ERROR_IS(tg_shrink(x, I64(0, 0), I64(2, 4)), TG_ERR_SHAPE, "shrink");
  ERROR_IS(tg_pad(x, I64(-3, 0), I64(0, 0)), TG_ERR_SHAPE, "pad");
  ERROR_IS(tg_flip(x, 1, I64(2)), TG_ERR_SHAPE, "flip");
  ERROR_IS(tg_add(x, iota(TG_F32, S(2))), TG_ERR_SHAPE, "(2, 3)");
  ERROR_IS(tg_matmul(x, x), TG_ERR_SHAPE, "matmul");
  ERROR_IS(tg_zeros(C, S(INT64_MAX / 2, 4)), TG_ERR_SHAPE, "zeros");
  ERROR_IS(tg_add(tg_reshape(x, S(7)), x), TG_ERR_SHAPE, "reshape");
  SHAPE_IS(tg_reshape(x, S(3, -1)), 3, 2);
}

/* ---- selection, comparison, cast */
static void b20_where(void **s) {
  (void)s;
  TgTensor *a = T32(S(4), 1, 5, -3, 2), *b = T32(S(4), 2, 4, -1, 2);
  IS(tg_where(tg_lt(a, b), b, a), 2, 5, -1, 2);
  TgTensor *c = tg_from(C, (uint8_t[]){1, 0, 1}, TG_BOOL, S(3));
  IS(tg_where(c, T32(S(3), 1, NAN, 3), T32(S(3), INFINITY, 2, NAN)), 1, 2, 3);
  ERROR_IS(tg_where(a, a, b), TG_ERR_DTYPE, "where");
}

static void b21_where_gradient(void **s) {
  (void)s;
  TgTensor *c = tg_from(C, (uint8_t[]){1, 0, 1, 0}, TG_BOOL, S(4));
  TgTensor *a = iota(TG_F32, S(4));
  TgTensor *b = iota(TG_F32, S(4));
  TgTensor *up = T32(S(4), 2, 3, 5, 7);
  TgTensor *g[2];
  OK(tg_gradient(tg_sum(tg_mul(tg_where(c, a, b), up)), (TgTensor *[]){a, b}, 2, g));
  IS(g[0], 2, 0, 5, 0);
  IS(g[1], 0, 3, 0, 7);
}

static void b22_comparisons(void **s) {
  (void)s;
  TgTensor *a = T32(S(5), 1, 2, 3, NAN, NAN), *b = T32(S(5), 2, 2, 2, 1, NAN);
  assert_int_equal(tg_dtype(tg_lt(a, b)), TG_BOOL);
  IS(tg_lt(a, b), 1, 0, 0, 0, 0);
  IS(tg_gt(a, b), 0, 0, 1, 0, 0);
  IS(tg_le(a, b), 1, 1, 0, 0, 0);
  IS(tg_ge(a, b), 0, 1, 1, 0, 0);
  IS(tg_eq(a, b), 0, 1, 0, 0, 0);
  IS(tg_ne(a, b), 1, 0, 1, 1, 1);
  /* the sum wraps to 0 */
  IS(tg_lt_scalar(tg_add_scalar(tg_from(C, (uint32_t[]){4294967295u}, TG_U32, S(1)), 1), 5), 1);
}

static void b23_casts(void **s) {
  (void)s;
  IS(tg_cast(T32(S(6), 1.9, -1.9, 1e20, -1e20, NAN, 0.5), TG_I32), 1, -1, 2147483647, -2147483648.0, 0, 0);
  IS(tg_cast(T32(S(4), 300, -5, 7.99, NAN), TG_U8), 255, 0, 7, 0);
  IS(tg_cast(T32(S(4), 0, 0.25, NAN, -1), TG_BOOL), 0, 1, 1, 1);
  IS(tg_cast(tg_from(C, (uint8_t[]){1, 0}, TG_BOOL, S(2)), TG_F32), 1, 0);
  IS(tg_cast(tg_from(C, (int32_t[]){300, -1}, TG_I32, S(2)), TG_I8), 44, -1);
  TgTensor *x = T32(S(2), 1.5, 2.5), *g;
  OK(tg_gradient(tg_sum(tg_mul_scalar(tg_cast(x, TG_F64), 3)), &x, 1, &g));
  IS(g, 3, 3);
  assert_int_equal(tg_dtype(g), TG_F32);
  OK(tg_gradient(tg_sum(tg_add(x, tg_cast(tg_cast(x, TG_I32), TG_F32))), &x, 1, &g));
  IS(g, 1, 1);
}

/* ---- gradients */
static TgTensor *f_square(TgTensor **x) { return tg_mul(x[0], x[0]); }

static TgTensor *f_product(TgTensor **x) { return tg_mul(x[0], x[1]); }

static TgTensor *f_quotient(TgTensor **x) { return tg_div(x[0], x[1]); }

static TgTensor *f_pow(TgTensor **x) { return tg_pow(x[0], x[1]); }

static TgTensor *f_prod(TgTensor **x) { return tg_prod(x[0], .axis = TG_AXES(1)); }

static TgTensor *f_max(TgTensor **x) { return tg_max(x[0], .axis = TG_AXES(0)); }

static TgTensor *f_min(TgTensor **x) { return tg_minimum(x[0], x[1]); }

static TgTensor *f_var(TgTensor **x) { return tg_std(x[0], .axis = TG_AXES(1)); }

static TgTensor *f_lse(TgTensor **x) { return tg_logsumexp(x[0]); }

static TgTensor *f_softmax(TgTensor **x) { return tg_softmax(x[0], .axis = TG_AXES(0)); }

static TgTensor *f_elu(TgTensor **x) { return tg_elu(x[0], 1.3); }

static TgTensor *f_unaries(TgTensor **x) {
  TgTensor *y = tg_add(tg_exp(x[0]), tg_exp2(x[0]));
  TgTensor *const more[] = {tg_log(x[0]),  tg_log2(x[0]),  tg_sin(x[0]),        tg_cos(x[0]), tg_tan(x[0]),
                            tg_sqrt(x[0]), tg_rsqrt(x[0]), tg_reciprocal(x[0]), tg_abs(x[0])};
  for (int i = 0; i < N(more); i++)
    y = tg_add(y, tg_mul_scalar(more[i], 0.5 + i));
  return y;
}

static TgTensor *f_activations(TgTensor **x) {
  TgTensor *y = tg_relu(x[0]);
  TgTensor *const more[] = {tg_sigmoid(x[0]),       tg_tanh(x[0]),     tg_gelu(x[0]),
                            tg_silu(x[0]),          tg_softplus(x[0]), tg_leaky_relu(x[0], 0.1),
                            tg_clamp(x[0], -1, 1.2)};
  for (int i = 0; i < N(more); i++)
    y = tg_add(y, tg_mul_scalar(more[i], 0.5 + i));
  return y;
}

static void b24_elementwise_gradients(void **s) {
  (void)s;
  TgTensor *x = T64(S(3), 1, 2, 4), *g;
  OK(tg_gradient(tg_sum(tg_mul(x, x)), &x, 1, &g));
  IS(g, 2, 4, 8);
  OK(tg_gradient(tg_sum(tg_log2(x)), &x, 1, &g));
  NEAR(g, 1e-12, 1 / log(2), 0.5 / log(2), 0.25 / log(2));
  x = T32(S(3), 0, M_PI / 4, M_PI / 2);
  OK(tg_gradient(tg_sum(tg_sin(x)), &x, 1, &g));
  NEAR(g, 1e-6, 1, sqrt(0.5), 0);
  x = T32(S(3), -1, 0, 2);
  OK(tg_gradient(tg_sum(tg_relu(x)), &x, 1, &g));
  IS(g, 0, 0, 1);
  x = T32(S(4), -200, 0, 200, -89);
  OK(tg_gradient(tg_sum(tg_sigmoid(x)), &x, 1, &g));
  NEAR(g, 1e-6, 0, 0.25, 0, 0);
  GRADCHECK(f_square, 1e-6, IN(-2, 2, 2, 3));
  GRADCHECK(f_product, 1e-6, IN(-2, 2, 2, 3), IN(-2, 2, 3));
  GRADCHECK(f_quotient, 1e-6, IN(-2, 2, 2, 3), IN(0.5, 2, 2, 1));
  GRADCHECK(f_pow, 1e-6, IN(0.5, 2, 4), IN(-2, 2, 4));
  GRADCHECK(f_unaries, 1e-5, IN(0.4, 1.3, 6));
  GRADCHECK(f_activations, 1e-5, IN(-3, 3, 12));
  GRADCHECK(f_elu, 1e-6, IN(-3, 3, 7));
  GRADCHECK(f_prod, 1e-6, IN(-2, 2, 3, 4));
  GRADCHECK(f_max, 1e-6, IN(-2, 2, 3, 4));
  GRADCHECK(f_min, 1e-6, IN(-2, 2, 3, 4), IN(-2, 2, 4));
  GRADCHECK(f_var, 1e-6, IN(-2, 2, 3, 4));
  GRADCHECK(f_lse, 1e-6, IN(-2, 2, 3, 4));
  GRADCHECK(f_softmax, 1e-6, IN(-2, 2, 3, 4));
  x = T64(S(4), 2, 0, 3, 4);
  OK(tg_gradient(tg_prod(x), &x, 1, &g));
  IS(g, 0, 24, 0, 0);
}

static void b25_max_ties(void **s) {
  (void)s;
  TgTensor *x = T32(S(4), 3, 7, 7, 2), *g, *y = T32(S(4), 3, 5, 7, 9), *gg[2];
  OK(tg_gradient(tg_max(x), &x, 1, &g));
  IS(g, 0, 0.5, 0.5, 0);
  OK(tg_gradient(tg_sum(tg_maximum(x, y)), (TgTensor *[]){x, y}, 2, gg));
  IS(gg[0], 0.5, 1, 0.5, 0);
  IS(gg[1], 0.5, 0, 0.5, 1);
  x = T32(S(2, 3), 1, 4, 4, 5, 5, 5);
  OK(tg_gradient(tg_sum(tg_max(x, .axis = TG_AXES(1))), &x, 1, &g));
  NEAR(g, 1e-6, 0, 0.5, 0.5, 1 / 3.0, 1 / 3.0, 1 / 3.0);
}

static void b26_movement_gradients(void **s) {
  (void)s;
  TgTensor *x = iota(TG_F32, S(1, 3)), *g, *w = T32(S(2, 3), 10, 20, 30, 40, 50, 60);
  OK(tg_gradient(tg_sum(tg_expand(x, S(2, 3))), &x, 1, &g));
  IS(g, 2, 2, 2);
  x = iota(TG_F32, S(2, 3));
  OK(tg_gradient(tg_sum(tg_mul(tg_flip(x, 1, I64(1)), w)), &x, 1, &g));
  IS(g, 30, 20, 10, 60, 50, 40);
  OK(tg_gradient(tg_sum(tg_mul(tg_permute(x, 2, I64(1, 0)), tg_reshape(w, S(3, 2)))), &x, 1, &g));
  IS(g, 10, 30, 50, 20, 40, 60);
  TgTensor *y = iota(TG_F32, S(1, 2));
  OK(tg_gradient(tg_sum(tg_mul(tg_pad(y, I64(1, 0), I64(0, 1)), w)), &y, 1, &g));
  IS(g, 40, 50);
  OK(tg_gradient(tg_sum(tg_mul(tg_shrink(x, I64(0, 1), I64(2, 2)), T32(S(2, 1), 3, 4))), &x, 1, &g));
  IS(g, 0, 3, 0, 0, 4, 0);
  OK(tg_gradient(tg_sum(tg_mul(tg_reshape(x, S(6)), tg_reshape(w, S(6)))), &x, 1, &g));
  IS(g, 10, 20, 30, 40, 50, 60);
}

static TgTensor *f_matmul(TgTensor **x) { return tg_matmul(x[0], x[1]); }

static TgTensor *f_linear(TgTensor **x) { return tg_linear(x[0], x[1], x[2]); }

static TgTensor *f_conv(TgTensor **x) {
  return tg_conv2d(x[0], x[1], .bias = x[2], .stride = TG_SIZES(2, 1), .padding = TG_SIZES(1, 1));
}

static TgTensor *f_conv_groups(TgTensor **x) {
  return tg_conv2d(x[0], x[1], .groups = 2, .dilation = TG_SIZES(1, 2));
}

static TgTensor *f_pools(TgTensor **x) { return tg_add(tg_max_pool2d(x[0]), tg_avg_pool2d(x[0])); }

static TgTensor *f_pool_overlap(TgTensor **x) {
  return tg_max_pool2d(x[0], .kernel = TG_SIZES(3, 3), .stride = TG_SIZES(2, 2), .padding = TG_SIZES(1, 1));
}

static void b27_products(void **s) {
  (void)s;
  TgTensor *x = T32(S(2, 2), 1, 2, 3, 4), *w = T32(S(2, 2), 5, 6, 7, 8), *g[2];
  IS(tg_matmul(x, w), 19, 22, 43, 50);
  OK(tg_gradient(tg_sum(tg_matmul(x, w)), (TgTensor *[]){x, w}, 2, g));
  IS(g[0], 11, 15, 11, 15);
  IS(g[1], 4, 4, 6, 6);
  IS(tg_matmul(T32(S(2), 1, 2), w), 19, 22);
  IS(tg_matmul(w, T32(S(2), 1, 2)), 17, 23);
  IS(tg_matmul(T32(S(2), 1, 2), T32(S(2), 3, 4)), 11);
  SHAPE_IS(tg_matmul(tg_ones(C, S(5, 1, 2, 3)), tg_ones(C, S(4, 3, 6))), 5, 4, 2, 6);
  GRADCHECK(f_matmul, 1e-6, IN(-1, 1, 2, 1, 2, 3), IN(-1, 1, 2, 3, 2));
  GRADCHECK(f_linear, 1e-6, IN(-1, 1, 2, 3), IN(-1, 1, 4, 3), IN(-1, 1, 4));
  /* a 1-channel convolution by hand: 3x3 ramp with kernel [[1,2],[3,4]] */
  IS(tg_conv2d(iota(TG_F32, S(1, 1, 3, 3)), T32(S(1, 1, 2, 2), 1, 2, 3, 4)), 1 + 4 + 12 + 20, 2 + 6 + 15 + 24,
     4 + 10 + 21 + 32, 5 + 12 + 24 + 36);

  /* stride, padding, dilation, groups beside a plain loop */
  enum { B = 2, G = 2, CI = 2, CO = 4, HH = 6, WW = 5, K = 3 };

  static float xi[B * G * CI * HH * WW], wi[CO * CI * K * K];
  for (int i = 0; i < N(xi); i++)
    xi[i] = (float)((i * 13) % 17 - 8);
  for (int i = 0; i < N(wi); i++)
    wi[i] = (float)((i * 5) % 7 - 3);
  const int64_t cases[][6] = {{1, 1, 0, 0, 1, 1}, {2, 1, 1, 2, 1, 1}, {1, 2, 2, 1, 2, 1},
                              {3, 3, 1, 1, 1, 1}, {4, 3, 0, 0, 1, 1}, {2, 2, 2, 2, 2, 2}};
  for (int c = 0; c < N(cases); c++) {
    const int64_t *q = cases[c];
    int64_t oh = (HH + 2 * q[2] - q[4] * (K - 1) - 1) / q[0] + 1;
    int64_t ow = (WW + 2 * q[3] - q[5] * (K - 1) - 1) / q[1] + 1;
    int64_t n = 0;
    double want[2000];
    for (int b = 0; b < B; b++)
      for (int o = 0; o < CO; o++)
        for (int64_t y = 0; y < oh; y++)
          for (int64_t z = 0; z < ow; z++) {
            double sum = 0;
            for (int i = 0; i < CI; i++)
              for (int u = 0; u < K; u++)
                for (int v = 0; v < K; v++) {
                  int64_t r = y * q[0] + u * q[4] - q[2], k = z * q[1] + v * q[5] - q[3];
                  if (r >= 0 && r < HH && k >= 0 && k < WW)
                    sum += (double)xi[((b * G * CI + o / (CO / G) * CI + i) * HH + r) * WW + k] *
                           (double)wi[((o * CI + i) * K + u) * K + v];
                }
            want[n++] = sum;
          }
    TgTensor *y = tg_conv2d(
        tg_from(C, xi, TG_F32, S(B, G * CI, HH, WW)), tg_from(C, wi, TG_F32, S(CO, CI, K, K)), .groups = G,
        .stride = TG_SIZES(q[0], q[1]), .padding = TG_SIZES(q[2], q[3]), .dilation = TG_SIZES(q[4], q[5]));
    if (q[2] || !q[3]) {
      SHAPE_IS(y, B, CO, oh, ow);
      near_at(__LINE__, y, want, (size_t)n, 1e-6);
    }
  }
  IS(tg_max_pool2d(iota(TG_F32, S(1, 1, 4, 4))), 6, 8, 14, 16);
  IS(tg_avg_pool2d(iota(TG_F32, S(1, 1, 4, 4))), 3.5, 5.5, 11.5, 13.5);
  IS(tg_max_pool2d(tg_neg(iota(TG_F32, S(1, 1, 3, 3))), .kernel = TG_SIZES(3, 3), .stride = TG_SIZES(2, 2),
                   .padding = TG_SIZES(1, 1)),
     -1, -2, -4, -5);
  NEAR(tg_avg_pool2d(tg_ones(C, S(1, 1, 2, 2)), .padding = TG_SIZES(1, 1), .exclude_pad = true), 1e-6, 1, 1,
       1, 1);
  GRADCHECK(f_conv, 1e-6, IN(-1, 1, 1, 2, 4, 4), IN(-1, 1, 2, 2, 3, 2), IN(-1, 1, 2));
  GRADCHECK(f_conv_groups, 1e-6, IN(-1, 1, 1, 2, 4, 5), IN(-1, 1, 2, 1, 2, 2));
  GRADCHECK(f_pools, 1e-6, IN(-1, 1, 1, 1, 4, 6));
  GRADCHECK(f_pool_overlap, 1e-6, IN(-1, 1, 1, 1, 5, 5));
}

static TgTensor *f_layer_norm(TgTensor **x) { return tg_layer_norm(x[0], .weight = x[1], .bias = x[2]); }

static TgTensor *f_rms_norm(TgTensor **x) { return tg_rms_norm(x[0], .weight = x[1]); }

static void b28_layer_norm_gradient(void **s) {
  (void)s;
  GRADCHECK(f_layer_norm, 1e-3, IN(-2, 2, 3, 5), IN(0.5, 1.5, 5), IN(-1, 1, 5));
  GRADCHECK(f_rms_norm, 1e-3, IN(-2, 2, 3, 5), IN(0.5, 1.5, 5));
}

static void b29_backward_states(void **s) {
  (void)s;
  TgTensor *x = tg_requires_grad(T32(S(3), 1, 2, 3), true), *y = tg_mul(x, x), *loss = tg_sum(tg_mul(y, x));
  OK(tg_realize(y));
  OK(tg_realize(loss));
  OK(tg_backward(loss));
  IS(tg_grad(x), 3, 12, 27);
  OK(tg_backward(loss)); /* gradients add up until they are dropped */
  IS(tg_grad(x), 6, 24, 54);
  tg_zero_grad(x);
  assert_null(tg_grad(x));
  OK(tg_backward(tg_sum(tg_mul(tg_detach(y), x))));
  IS(tg_grad(x), 1, 4, 9);
  assert_int_equal(tg_backward(y), TG_ERR_SHAPE);
  ERROR_IS(NULL, TG_ERR_SHAPE, "backward");
  assert_int_equal(tg_backward(tg_sum(tg_detach(y))), TG_ERR_STATE);
  ERROR_IS(NULL, TG_ERR_STATE, "backward");
  /* equal, not the same */
  TgTensor *p = tg_requires_grad(tg_zeros(C, S(2)), true), *q = tg_requires_grad(tg_zeros(C, S(2)), true);
  OK(tg_backward(tg_sum(tg_add(tg_mul_scalar(p, 2), tg_mul_scalar(q, 5)))));
  IS(tg_grad(p), 2, 2);
  IS(tg_grad(q), 5, 5);
  tg_zero_grad(x);
  TG_SCOPE(C) {
    OK(tg_backward(tg_sum(x)));
    assert_non_null(tg_grad(x));
  }
  assert_null(tg_grad(x));
}

static TgTensor *f_cross_entropy0(TgTensor **x) {
  return tg_cross_entropy(x[0], tg_softmax(x[1], .axis = TG_AXES(0)), .axis = TG_AXES(0));
}

static void b30_softmax_and_cross_entropy(void **s) {
  (void)s;
  double e0 = exp(-2), e1 = exp(-1), z = e0 + e1 + 1;
  TgTensor *x = T32(S(3), 1000, 1001, 1002), *g;
  CLOSE(tg_softmax(x), e0 / z, e1 / z, 1 / z);
  CLOSE(tg_log_softmax(x), -2 - log(z), -1 - log(z), -log(z));
  TgTensor *l = T64(S(2, 3), 1, 2, 3, 1, 1, 1);
  TgTensor *t = T64(S(2, 3), 0, 0, 1, 0.2, 0.3, 0.5);
  TgTensor *loss = tg_cross_entropy(l, t);
  NEAR(loss, 1e-9, (log(z) + log(3)) / 2);
  OK(tg_gradient(loss, &l, 1, &g));
  NEAR(g, 1e-9, e0 / z / 2, e1 / z / 2, (1 / z - 1) / 2, (1 / 3.0 - 0.2) / 2, (1 / 3.0 - 0.3) / 2,
       (1 / 3.0 - 0.5) / 2);
  NEAR(tg_add_scalar(tg_sum(g), 0), 1e-9, 0);
  TgTensor *labels = tg_from(C, (int64_t[]){2, 0}, TG_I64, S(2)), *sl = tg_sparse_cross_entropy(l, labels);
  NEAR(sl, 1e-9, (log(z) + log(3)) / 2);
  OK(tg_gradient(sl, &l, 1, &g));
  NEAR(g, 1e-9, e0 / z / 2, e1 / z / 2, (1 / z - 1) / 2, -1 / 3.0, 1 / 6.0, 1 / 6.0);
  NEAR(tg_nll(tg_log_softmax(l), labels, .reduction = TG_NONE), 1e-9, log(z), log(3));
  GRADCHECK(f_cross_entropy0, 1e-6, IN(-2, 2, 3, 4), IN(-1, 1, 3, 4));
  ERROR_IS(tg_cross_entropy(l, T64(S(3), 0, 0, 1)), TG_ERR_SHAPE, "cross_entropy");
  ERROR_IS(tg_sparse_cross_entropy(l, tg_from(C, (int32_t[]){0}, TG_I32, S(1))), TG_ERR_SHAPE,
           "sparse_cross_entropy");
  NEAR(tg_mse(l, t), 1e-9, (1 + 4 + 4 + 0.64 + 0.49 + 0.25) / 6);
  NEAR(tg_binary_cross_entropy(T64(S(2), 0.25, 0.5), T64(S(2), 1, 0)), 1e-9, (log(4) + log(2)) / 2);
  NEAR(tg_binary_cross_entropy_logits(T64(S(3), 0, 800, -800), T64(S(3), 1, 1, 0)), 1e-9, log(2) / 3);
}

/* ---- training */
static void b31_gradient_descent(void **s) {
  (void)s;
  TgTensor *x = tg_zeros(C, S(2)), *target = T32(S(2), 3, 5);
  TgOptim *o = tg_sgd(C, &x, 1, .lr = 0.1);
  double last = INFINITY;
  for (int i = 0; i < 30; i++)
    TG_SCOPE(C) {
      TgTensor *loss = tg_sum(tg_square(tg_sub(x, target)));
      OK(tg_backward(loss));
      OK(tg_optim_step(o));
      double v = tg_item_f64(loss); /* the loss before the step, though read after it */
      if (i == 0) assert_true(fabs(v - 34) < 1e-4);
      assert_true(v < last);
      last = v;
    }
  NEAR(x, 0.05 / 5, 3, 5);
  tg_optim_free(o);
}

static void fit_line(double *w) {
  TgTensor *x = T32(S(3, 2), 1, 0, 0, 1, 1, 1), *t = T32(S(3, 1), 2, 3, 5), *p = tg_zeros(C, S(2, 1));
  TgOptim *o = tg_sgd(C, &p, 1, .lr = 0.3);
  for (int i = 0; i < 100; i++)
    TG_SCOPE(C) {
      OK(tg_backward(tg_mse(tg_matmul(x, p), t)));
      OK(tg_optim_step(o));
    }
  OK(tg_read_f64(p, w, 2));
  tg_optim_free(o);
}

static void b32_linear_regression(void **s) {
  (void)s;
  double w[2];
  fit_line(w);
  assert_true(fabs(w[0] - 2) < 1e-2 && fabs(w[1] - 3) < 1e-2);
}

static void b33_xor(void **s) {
  (void)s;
  /* a column of ones is the bias */
  TgTensor *x = T32(S(4, 3), 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1), *t = T32(S(4, 1), 0, 1, 1, 0);
  TgTensor *w1 =
      tg_from_f64(C, F(0.8, -0.7, 0.6, 0.5, 0.9, -0.8, 0.7, -0.6, -0.1, 0.2, -0.3, 0.1), TG_F32, S(3, 4));
  TgTensor *w2 = T32(S(4, 1), 0.5, 0.6, -0.7, 0.4);
  TgOptim *o = tg_adam(C, ((TgTensor *[]){w1, w2}), 2, .lr = 0.03);
  double loss = 1;
  for (int i = 0; i < 400; i++)
    TG_SCOPE(C) {
      TgTensor *l = tg_mse(tg_matmul(tg_relu(tg_matmul(x, w1)), w2), t);
      OK(tg_backward(l));
      OK(tg_optim_step(o));
      loss = tg_item_f64(l);
    }
  assert_true(loss < 1e-4);
  NEAR(tg_matmul(tg_relu(tg_matmul(x, w1)), w2), 0.02, 0, 1, 1, 0);
  tg_optim_free(o);
}

static void b34_classifier(void **s) {
  (void)s;
  TgTensor *x = T32(S(4, 2), 2, 1, 1, 2, -2, -1, -1, -2);
  TgTensor *y = TI32(S(4), 0, 0, 1, 1);
  TgTensor *w = tg_zeros(C, S(2, 2));
  TgTensor *b = tg_zeros(C, S(2));
  TgOptim *o = tg_sgd(C, ((TgTensor *[]){w, b}), 2, .lr = 0.5, .momentum = 0.9);
  for (int i = 0; i < 50; i++)
    TG_SCOPE(C) {
      OK(tg_backward(tg_sparse_cross_entropy(tg_linear(x, w, b), y)));
      OK(tg_optim_step(o));
    }
  double p[8];
  OK(tg_read_f64(tg_softmax(tg_linear(x, w, b)), p, 8));
  assert_true(p[0] > 0.9 && p[2] > 0.9 && p[5] > 0.9 && p[7] > 0.9);
  tg_optim_free(o);
}

static void b35_same_weights_everywhere(void **s) {
  (void)s;
  double here[2], plain[2] = {0, 0};
  const double x[3][2] = {{1, 0}, {0, 1}, {1, 1}}, t[3] = {2, 3, 5};
  for (int i = 0; i < 100; i++) { /* the same descent in plain C */
    double g[2] = {0, 0};
    for (int r = 0; r < 3; r++)
      for (int k = 0; k < 2; k++)
        g[k] += 2.0 / 3 * (x[r][0] * plain[0] + x[r][1] * plain[1] - t[r]) * x[r][k];
    for (int k = 0; k < 2; k++)
      plain[k] -= 0.3 * g[k];
  }
  fit_line(here);
  for (int k = 0; k < 2; k++)
    assert_true(fabs(here[k] - plain[k]) < 1e-4);
}

/* ---- neural-network functions */
static void b36_functions(void **s) {
  (void)s;
  double v[] = {-3, -0.5, -0.01, 0, 0.2, 1, 2.5};

  enum { M = N(v) };

  TgTensor *x = mk(TG_F32, v, S(M)), *pos = T32(S(3), 0.5, 1, 30);
  double w[10][M];
  for (int i = 0; i < M; i++) {
    double a = v[i];
    w[0][i] = exp(a), w[1][i] = 1 / (1 + exp(-a)), w[2][i] = tanh(a), w[3][i] = fabs(a),
    w[4][i] = (a > 0) - (a < 0), w[5][i] = fmin(fmax(a, -1), 1);
    w[6][i] = fmax(a, 0), w[7][i] = 0.5 * a * (1 + tanh(sqrt(2 / M_PI) * (a + 0.044715 * a * a * a))),
    w[8][i] = a / (1 + exp(-a)), w[9][i] = log1p(exp(a));
  }
  TgTensor *y[] = {tg_exp(x),          tg_sigmoid(x), tg_tanh(x), tg_abs(x),  tg_sign(x),
                   tg_clamp(x, -1, 1), tg_relu(x),    tg_gelu(x), tg_silu(x), tg_softplus(x)};
  for (int i = 0; i < N(y); i++)
    near_at(__LINE__, y[i], w[i], M, 2e-6);
  NEAR(tg_log(tg_exp(pos)), 1e-6, 0.5, 1, 30);
  IS(tg_relu(T32(S(2), NAN, -INFINITY)), NAN, 0);
  IS(tg_abs(TI32(S(2), -5, 4)), 5, 4);
  IS(tg_round(T32(S(6), 0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997)), 0, 2, 2, 0, -2, 0);
  IS(tg_floor(T32(S(3), 1.5, -1.5, 2)), 1, -2, 2);
  IS(tg_ceil(T32(S(3), 1.5, -1.5, 2)), 2, -1, 2);
  IS(tg_isnan(T32(S(3), NAN, INFINITY, 0)), 1, 0, 0);
  IS(tg_isinf(T32(S(3), NAN, -INFINITY, 0)), 0, 1, 0);
  IS(tg_floordiv(TI32(S(4), 7, -7, 7, -7), TI32(S(4), 2, 2, -2, -2)), 3, -4, -4, 3);
  IS(tg_mod(TI32(S(4), 7, -7, 7, -7), TI32(S(4), 2, 2, -2, -2)), 1, 1, -1, -1);
  CLOSE(tg_div(TI32(S(2), 1, 7), TI32(S(2), 3, 2)), 1 / 3.0, 3.5);
  IS(tg_pow_scalar(TI32(S(3), 2, -3, 5), 3), 8, -27, 125);
  assert_int_equal(tg_dtype(tg_add_scalar(tg_cast(x, TG_I8), 3)), TG_I8);
  assert_int_equal(tg_dtype(tg_add_scalar(tg_cast(x, TG_I32), 0.5)), TG_F32);
  assert_int_equal(tg_dtype_join(TG_I8, TG_U8), TG_I16);
  assert_int_equal(tg_dtype_join(TG_I64, TG_U64), TG_F32);
  assert_int_equal(tg_dtype_join(TG_F16, TG_BF16), TG_F32);
  assert_int_equal(tg_dtype_join(TG_I64, TG_F16), TG_F16);
  NEAR(tg_var(T32(S(4), 1, 2, 3, 6)), 1e-6, 14 / 3.0);
  NEAR(tg_std(T32(S(4), 1, 2, 3, 6), .biased = true), 1e-6, sqrt(3.5));
  IS(tg_var(T32(S(1), 3)), NAN);
  IS(tg_argmax(T32(S(2, 3), 1, 9, 9, 4, 3, 2), .axis = TG_AXES(1)), 1, 0);
  IS(tg_argmin(T32(S(2, 3), 1, 9, 9, 4, 3, 2)), 0);
  /* a maximum that does not change in the loop of the outer one */
  IS(tg_argmax(tg_expand(tg_max(T32(S(2), 1, 2), .keepdim = true), 1, I64(4))), 0);
  TgTensor *a = iota(TG_F32, S(1, 2)), *b = tg_neg(iota(TG_F32, S(2, 2)));
  IS(tg_cat(((TgTensor *[]){a, b}), 2, 0), 1, 2, -1, -2, -3, -4);
  IS(tg_cat(((TgTensor *[]){b, b, b}), 3, -1), -1, -2, -1, -2, -1, -2, -3, -4, -3, -4, -3, -4);
  ERROR_IS(tg_cat(((TgTensor *[]){a, b}), 2, 1), TG_ERR_SHAPE, "cat");
  ERROR_IS(tg_cat(((TgTensor *[]){a, b}), 2, 2), TG_ERR_SHAPE, "cat");
  assert_int_equal(tg_dtype(tg_cat(((TgTensor *[]){a, tg_cast(b, TG_I32)}), 2, 0)), TG_F32);
  IS(tg_stack(((TgTensor *[]){a, a}), 2, -1), 1, 1, 2, 2);
  IS(tg_repeat(a, 2, I64(2, 2)), 1, 2, 1, 2, 1, 2, 1, 2);
  IS(tg_transpose(iota(TG_F32, S(2, 3)), 0, -1), 1, 4, 2, 5, 3, 6);
  SHAPE_IS(tg_squeeze(tg_unsqueeze(iota(TG_F32, S(2, 3)), 1), 1), 2, 3);
  SHAPE_IS(tg_unsqueeze(iota(TG_F32, S(2, 3)), -1), 2, 3, 1);
  SHAPE_IS(tg_flatten(tg_ones(C, S(2, 3, 4)), 1, -1), 2, 12);
  IS(tg_full_like(a, 3), 3, 3);
  IS(tg_zeros_like(a), 0, 0);
  IS(tg_ones_like(a), 1, 1);
  IS(tg_arange(C, 0, 5), 0, 1, 2, 3, 4);
  IS(tg_arange(C, 10, 0, .step = -3), 10, 7, 4, 1);
  CLOSE(tg_arange(C, 0, 1, .step = 0.25), 0, 0.25, 0.5, 0.75);
  IS(tg_eye(C, 2), 1, 0, 0, 1);
  IS(tg_tril(iota(TG_F32, S(3, 3)), 0), 1, 0, 0, 4, 5, 0, 7, 8, 9);
  IS(tg_triu(iota(TG_F32, S(3, 3)), 1), 0, 2, 3, 0, 0, 6, 0, 0, 0);
  IS(tg_cumsum(iota(TG_F32, S(2, 3)), 1), 1, 3, 6, 4, 9, 15);
  IS(tg_cumsum(iota(TG_F32, S(2, 3)), 0), 1, 2, 3, 5, 7, 9);
  TgTensor *col = iota(TG_I32, S(3, 1)), *outer = tg_clamp(tg_matmul(col, tg_transpose(col, 0, 1)), 0, 7);
  /* a load gated by lanes of data */
  IS(tg_cat((TgTensor *[]){outer, tg_cumsum(outer, 1)}, 2, 0), 1, 2, 3, 2, 4, 6, 3, 6, 7, 1, 3, 6, 2, 6, 12,
     3, 9, 16);
  IS(tg_one_hot(TI32(S(3), 2, 0, 7), 3), 0, 0, 1, 1, 0, 0, 0, 0, 0);
  IS(tg_gather(iota(TG_F32, S(2, 3)), 1, TI32(S(2, 2), 2, 0, 1, 1)), 3, 1, 5, 5);
  IS(tg_embedding(iota(TG_F32, S(3, 2)), TI32(S(2), 2, 0)), 5, 6, 1, 2);
  IS(tg_select(iota(TG_F32, S(2, 3)), 1, -1), 3, 6);
  assert_true(tg_item_f64(tg_sum(a)) == 3);
  assert_true(isnan(tg_item_f64(a)));
  ERROR_IS(NULL, TG_ERR_SHAPE, "item");
  /* in-place: whole, a slice, and values read before stay as they were */
  TgTensor *p = iota(TG_F32, S(2, 3)), *twice = tg_mul_scalar(p, 2);
  OK(tg_realize(twice));
  assert_non_null(tg_assign(p, tg_full(C, S(1, 3), 7)));
  IS(p, 7, 7, 7, 7, 7, 7);
  IS(twice, 2, 4, 6, 8, 10, 12);
  IS(tg_mul_scalar(p, 2), 14, 14, 14, 14, 14, 14);
  assert_non_null(tg_assign_slice(p, I64(0, 1), I64(2, 2), T32(S(2, 1), 1, 2)));
  IS(p, 7, 1, 7, 7, 2, 7);
  assert_non_null(tg_assign(p, tg_add_scalar(p, 1)));
  IS(p, 8, 2, 8, 8, 3, 8);
  TgTensor *z1 = tg_zeros(C, S(2)), *z2 = tg_zeros(C, S(2));
  assert_non_null(tg_assign_slice(z1, I64(0), I64(1), tg_ones(C, S(1))));
  IS(z1, 1, 0);
  IS(z2, 0, 0);
  ERROR_IS(tg_assign(p, TI32(S(2, 3), 1, 2, 3, 4, 5, 6)), TG_ERR_DTYPE, "assign");
  /* attention: one head, by hand: equal scores give the mean; causal rows see what came before */
  TgTensor *q = tg_zeros(C, S(2, 2)), *val = T32(S(2, 1), 2, 4);
  CLOSE(tg_scaled_dot_product_attention(q, q, val), 3, 3);
  CLOSE(tg_scaled_dot_product_attention(q, q, val, .causal = true), 2, 3);
  CLOSE(tg_scaled_dot_product_attention(q, q, val, .mask = tg_from(C, (uint8_t[]){0, 1}, TG_BOOL, S(1, 2))),
        4, 4);
}

static uint32_t rotl(uint32_t x, int n) { return x << n | x >> (32 - n); }

static uint64_t threefry_plain(uint64_t x, uint64_t key) { /* Salmon et al. 2011, 2x32, 20 rounds */
  static const int r[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t a = (uint32_t)x, b = (uint32_t)(x >> 32), k[3] = {(uint32_t)key, (uint32_t)(key >> 32), 0};
  k[2] = k[0] ^ k[1] ^ 0x1bd11bda;
  a += k[0], b += k[1];
  for (int i = 0; i < 20; i++) {
    a += b, b = rotl(b, r[i % 8]) ^ a;
    if (i % 4 == 3) a += k[(i / 4 + 1) % 3], b += k[(i / 4 + 2) % 3] + (uint32_t)(i / 4 + 1);
  }
  return (uint64_t)b << 32 | a;
}

static void b37_random(void **s) {
  (void)s;

  enum { M = 2000 };

  static double v[M], again[M];
  tg_manual_seed(C, 7);
  OK(tg_read_f64(tg_rand(C, S(M)), v, M));
  double mean = 0, var = 0;
  uint64_t key = threefry_plain(0, (uint64_t)7 << 32 | 0x14b81119);
  for (int i = 0; i < M; i++) {
    uint64_t half = i % (M / 2), w = threefry_plain(half | (half + M / 2) << 32, key);
    /* the same numbers on every device */
    double want = (double)((uint32_t)(i < M / 2 ? w : w >> 32) >> 9) / 8388608;
    if (v[i] != want) fail_msg("rand[%d] on %s is %.9g, not %.9g", i, device, v[i], want);
    assert_true(v[i] >= 0 && v[i] < 1);
    mean += v[i] / M;
  }
  assert_true(fabs(mean - 0.5) < 0.03);
  OK(tg_read_f64(tg_rand(C, S(M)), again, M));
  assert_true(memcmp(v, again, sizeof v) != 0);
  tg_manual_seed(C, 7);
  OK(tg_read_f64(tg_rand(C, S(M)), again, M));
  assert_memory_equal(v, again, sizeof v);
  OK(tg_read_f64(tg_randn(C, S(M)), v, M));
  mean = 0;
  for (int i = 0; i < M; i++)
    mean += v[i] / M, var += v[i] * v[i] / M;
  assert_true(fabs(mean) < 0.08 && fabs(var - 1) < 0.12);
  OK(tg_read_f64(tg_kaiming_uniform(C, S(20, 100), .a = sqrt(5)), v, M));
  for (int i = 0; i < M; i++)
    assert_true(fabs(v[i]) <= 0.1 + 1e-6);
  OK(tg_read_f64(tg_randint(C, S(M), -2, 3, TG_I32), v, M));
  for (int i = 0; i < M; i++)
    assert_true(v[i] >= -2 && v[i] <= 2 && v[i] == floor(v[i]));
  TgTensor *x = tg_ones(C, S(M));
  OK(tg_read_f64(tg_dropout(x, 0.5), v, M));
  /* not training */
  for (int i = 0; i < M; i++)
    assert_true(v[i] == 1);
  tg_set_training(C, true);
  OK(tg_read_f64(tg_dropout(x, 0.25), v, M));
  int zeros = 0;
  for (int i = 0; i < M; i++) {
    assert_true(v[i] == 0 || fabs(v[i] - 4 / 3.0) < 1e-6);
    zeros += v[i] == 0;
  }
  assert_in_range(zeros, M / 5, M * 3 / 10);
  IS(tg_dropout(T32(S(2), 3, 4), 0), 3, 4);
  IS(tg_dropout(T32(S(2), 3, 4), 1), 0, 0);
  ERROR_IS(tg_dropout(x, 1.5), TG_ERR_VALUE, "dropout");
}

static void b38_norms(void **s) {
  (void)s;
  double v[12], want[12];
  for (int i = 0; i < 12; i++)
    v[i] = (i * 5) % 7;
  TgTensor *x = mk(TG_F32, v, S(2, 2, 3));
  for (int dims = 1; dims <= 2; dims++) {
    int n = dims == 1 ? 3 : 6;
    for (int r = 0; r < 12 / n; r++) {
      double m = 0, q = 0;
      for (int i = 0; i < n; i++)
        m += v[r * n + i] / n;
      for (int i = 0; i < n; i++)
        q += (v[r * n + i] - m) * (v[r * n + i] - m) / n;
      for (int i = 0; i < n; i++)
        want[r * n + i] = (v[r * n + i] - m) / sqrt(q + 1e-5);
    }
    near_at(__LINE__, tg_layer_norm(x, .dims = dims), want, 12, 1e-5);
    if (dims == 1) {
      for (int i = 0; i < 12; i++)
        want[i] = want[i] * (i % 3 + 1) - 1;
      near_at(__LINE__, tg_layer_norm(x, .weight = iota(TG_F32, S(3)), .bias = tg_full(C, S(3), -1)), want,
              12, 1e-5);
    }
  }
  /* batch_norm: statistics per channel of (2, 2, 3), running ones moved by 0.1 at each step */
  TgBatchNorm bn = tg_batch_norm_new(C, 2);
  TgOptim *o = tg_sgd(C, ((TgTensor *[]){bn.weight, bn.bias}), 2, .lr = 1e-9);
  double rm[2] = {0, 0}, rv[2] = {1, 1}, mean[2], var[2];
  for (int c = 0; c < 2; c++) {
    mean[c] = var[c] = 0;
    for (int b = 0; b < 2; b++)
      for (int i = 0; i < 3; i++)
        mean[c] += v[b * 6 + c * 3 + i] / 6;
    for (int b = 0; b < 2; b++)
      for (int i = 0; i < 3; i++)
        var[c] += pow(v[b * 6 + c * 3 + i] - mean[c], 2) / 6;
    for (int b = 0; b < 2; b++)
      for (int i = 0; i < 3; i++)
        want[b * 6 + c * 3 + i] = (v[b * 6 + c * 3 + i] - mean[c]) / sqrt(var[c] + 1e-5);
  }
  tg_set_training(C, true);
  for (int step = 0; step < 3; step++)
    TG_SCOPE(C) {
      TgTensor *y = tg_batch_norm_run(&bn, x);
      if (step == 0) near_at(__LINE__, y, want, 12, 1e-5);
      OK(tg_backward(tg_sum(tg_square(y))));
      OK(tg_optim_step(o));
      for (int c = 0; c < 2; c++)
        rm[c] = 0.9 * rm[c] + 0.1 * mean[c], rv[c] = 0.9 * rv[c] + 0.1 * var[c] * 6 / 5;
    }
  near_at(__LINE__, bn.running_mean, rm, 2, 1e-5);
  near_at(__LINE__, bn.running_var, rv, 2, 1e-5);
  tg_set_training(C, false);
  for (int i = 0; i < 12; i++)
    want[i] = (v[i] - rm[i / 3 % 2]) / sqrt(rv[i / 3 % 2] + 1e-5);
  near_at(__LINE__, tg_batch_norm_run(&bn, x), want, 12, 1e-5);
  tg_optim_free(o);
}

/* Where a formula taken as it stands is 0 / 0 or 0 * infinity: PyTorch's values (2.15). */
static void b39_edges(void **state) {
  (void)state;
  TgTensor *l = T32(S(3, 3), 1, 2, 3, .5, -1, 2, 2, 0, 1), *y = TI32(S(3), 0, 2, 1), *w = T32(S(3), .2, 1, 3);
  TgTensor *x[2] = {l}, *g[2];
  CLOSE(tg_sparse_cross_entropy(l, y, .weight = w, .label_smoothing = .1, .reduction = TG_NONE), 0.53710055,
        0.79532421, 2.39057708);
  TgTensor *loss = tg_sparse_cross_entropy(l, y, .weight = w, .label_smoothing = .1);
  CLOSE(loss, 0.88642895);
  assert_int_equal(tg_gradient(loss, x, 1, g), TG_OK);
  CLOSE(g[0], -0.03758497, 0.01070947, 0.02687551, 0.11694239, 0.01851104, -0.13545345, 0.16313902,
        -0.19992894, 0.0367899);
  CLOSE(tg_sparse_cross_entropy(l, y, .weight = w, .label_smoothing = .1, .ignore = true, .ignore_index = 2),
        2.43973112);
  TgTensor *p = T32(S(3, 3), .2, .3, .5, 1, 0, 0, .1, .9, 0);
  CLOSE(tg_cross_entropy(l, p, .weight = w, .label_smoothing = .1), 1.25305855);
  ERROR_IS(tg_cross_entropy(l, p, .ignore = true), TG_ERR_VALUE, "probabilities");

  x[0] = T32(S(5), 0, 1, 0, 1, .25), x[1] = T32(S(5), 0, 1, 1, 0, .5);
  loss = tg_binary_cross_entropy(x[0], x[1], .reduction = TG_NONE);
  CLOSE(loss, 0, 0, 100, 100, 0.83698821);
  assert_int_equal(tg_gradient(tg_sum(loss), x, 2, g), TG_OK);
  /* at a p of 1 the distance to 1 counts as half a step of f32, not as 0: PyTorch's 1e12 there would be 40,000
   * times the slope of the sigmoid that p comes from */
  NEAR(g[0], 1e-5, 0, 0, -999999995904.0, 0x1p24, -1.33333337);
  NEAR(g[1], 1e-5, INFINITY, -INFINITY, INFINITY, -INFINITY, 1.09861231);

  x[0] = T32(S(2, 3), 1, 1, 1, 1, 2, 4);
  loss = tg_std(x[0], .axis = TG_AXES(1));
  CLOSE(loss, 0, 1.52752519);
  assert_int_equal(tg_gradient(tg_sum(loss), x, 1, g), TG_OK);
  CLOSE(g[0], 0, 0, 0, -0.43643576, -0.10910892, 0.54554474);

  static const double powers[] = {1, 2, 3, .5, INFINITY};
  static const double slope[][3] = {{-0.16326533, 0.2857143, 0.12244895},
                                    {-0.16000001, 0.40000001, 0.12},
                                    {-0.10749725, 0.44464785, 0.08062297},
                                    {-0.09480821, 0.14359353, 0.07110617},
                                    {0.25, 0.5, -0.1875}};
  for (int i = 0; i < 5; i++) {
    x[0] = T32(S(2, 3), 0, 0, 0, 3, 0, 4);
    loss = tg_mul(tg_normalize(x[0], .p = powers[i], .axis = 1), T32(S(3), 1, 2, 3));
    assert_int_equal(tg_gradient(tg_sum(loss), x, 1, g), TG_OK);
    NEAR(g[0], 2e-5, 999999995904.0, 1999999991808.0, 3000000053248.0, slope[i][0], slope[i][1], slope[i][2]);
  }
}

/* A row of a float mask that is -inf everywhere gives 0, as a row of a bool mask without a true place does.
 */
static void b40_masked_rows(void **state) {
  (void)state;
  TgTensor *x[] = {T32(S(1, 3, 2), 0, .25, .5, .75, 1, 1.25), T32(S(1, 2, 2), 0, 1. / 3, 2. / 3, 1),
                   T32(S(1, 2, 2), -1, 0, 1, 2)},
           *g[3];
  TgTensor *added = T32(S(3, 2), 0, 0, -INFINITY, -INFINITY, 0, -INFINITY),
           *masks[] = {added, tg_eq_scalar(added, 0)};
  for (int i = 0; i < 2; i++) {
    TgTensor *y = tg_scaled_dot_product_attention(x[0], x[1], x[2], .mask = masks[i]);
    NEAR(y, 1e-5, 0.05885744, 1.05885744, 0, 0, -1, 0);
    assert_int_equal(tg_gradient(tg_sum(y), x, 3, g), TG_OK);
    NEAR(g[0], 1e-5, 0.46977147, 0.46977147, 0, 0, 0, 0);
    NEAR(g[1], 1e-5, 0, -0.17616428, 0, 0.1761643);
    NEAR(g[2], 1e-5, 1.47057128, 1.47057128, 0.52942872, 0.52942872);
  }
}

/* Every element of a running sum has the roundings before it, so these are kept in f64 where a device has it.
 */
static void b41_long_scans(void **state) {
  (void)state;

  enum { LONG = 1 << 20 };

  float *v = malloc(LONG * sizeof *v), grid = !strcmp(device, "CUDA") || !strcmp(device, "METAL");
  int n = strchr(device, ':') || grid ? 20000 : LONG; /* what checks each access takes its time */
  double sum = 0, product = 1, worst = 0, worst_product = 0;
  assert_int_equal(tg_read(tg_cumsum(tg_clone(tg_full(C, S(n), .1)), 0), v, (size_t)n * sizeof *v), TG_OK);
  for (int i = 0; i < n; i++)
    sum += (double).1f, worst = fmax(worst, fabs(v[i] - sum) / sum);
  assert_int_equal(tg_read(tg_cumprod(tg_clone(tg_full(C, S(n), 1.00001)), 0), v, (size_t)n * sizeof *v),
                   TG_OK);
  for (int i = 0; i < n; i++)
    product *= (double)1.00001f, worst_product = fmax(worst_product, fabs(v[i] - product) / product);
  free(v);
  bool wide = !strcmp(device, "CPU") || !strcmp(device, "INTERP");
  assert_true(worst < (wide ? 1.5e-7 : 3e-5));
  assert_true(worst_product < (wide ? 4e-6 : 5e-4)); /* 64 parts, each rounded once */
}

static TgTensor *r_lerp(TgTensor *x) { return tg_lerp(x, tg_neg(x), tg_sigmoid(x)); }

static TgTensor *r_logaddexp(TgTensor *x) { return tg_logaddexp(x, tg_flip(x, 1, (int64_t[]){0})); }

static TgTensor *r_softmax(TgTensor *x) { return tg_softmax(x); }

static TgTensor *r_log_softmax(TgTensor *x) { return tg_log_softmax(x); }

static TgTensor *r_logsumexp(TgTensor *x) { return tg_logsumexp(x); }

static TgTensor *r_logits(TgTensor *x) {
  return tg_binary_cross_entropy_logits(x, tg_round(tg_sigmoid(x)), .reduction = TG_NONE);
}

/* Functions that are made of several operations compute in f32: a narrow dtype is that, rounded once. */
static void b42_rounded_once(void **s) {
  (void)s;
  static TgTensor *(*const f[])(TgTensor *) = {
      tg_gelu, tg_gelu_erf, tg_quick_gelu, tg_silu,   tg_softplus,   tg_hardsigmoid, tg_hardswish,
      tg_erf,  tg_sigmoid,  r_logaddexp,   r_softmax, r_log_softmax, r_logsumexp,    r_logits};
  TgTensor *wide = tg_mul_scalar(tg_arange(C, -40, 41, 1, .dtype = TG_F32), 0.173);
  for (int k = 0; k < 2; k++) {
    TgDType d = k ? TG_F16 : TG_BF16;
    TgTensor *x = tg_cast(wide, d);
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
      double once[81], got[81];
      TgTensor *y = f[i](x), *want = tg_cast(f[i](tg_cast(x, TG_F32)), d);
      fine();
      size_t n = (size_t)tg_numel(y);
      assert_int_equal(tg_dtype(y), d);
      assert_true(!tg_read_f64(y, got, n) && !tg_read_f64(want, once, n));
      for (size_t e = 0; e < n; e++) /* a result on the edge may fall to either side: kernels differ */
        if (fabs(got[e] - once[e]) > ldexp(fabs(once[e]) + 1e-30, k ? -10 : -7))
          fail_msg("function %zu on %s, %s: element %zu is %g, not %g", i, device, k ? "f16" : "bf16", e,
                   got[e], once[e]);
    }
  }
  TgTensor *x = tg_cast(T32(S(2), -3, -4), TG_BF16);
  NEAR(tg_gelu_erf(x), 4e-3, -0.00404969, -0.000126685);
  NEAR(r_lerp(T32(S(2), 1, -1)), 1e-6, 1 - 2 * 0.7310585786, -1 + 2 * 0.2689414214);
  double tail[1];
  assert_int_equal(tg_read_f64(tg_logaddexp(T32(S(1), 0), T32(S(1), -20)), tail, 1), TG_OK);
  assert_true(fabs(tail[0] - 2.0611536e-9) < 1e-14);
}

static void b43_edges_of_pools_and_masks(void **s) {
  (void)s;
  TgTensor *none = tg_zeros(C, S(1, 1, 4), .dtype = TG_BOOL);
  IS(tg_max_pool2d(none, .kernel = TG_SIZES(3), .stride = TG_SIZES(1), .padding = TG_SIZES(1)), 0, 0, 0, 0);
  TgTensor *low = tg_full(C, S(1, 1, 3), -5, .dtype = TG_I8);
  IS(tg_max_pool2d(low, .kernel = TG_SIZES(3), .stride = TG_SIZES(1), .padding = TG_SIZES(1)), -5, -5, -5);
  /* the only window has its taps on both sides of x: what it takes is not anywhere */
  TgTensor *at,
      *beside = tg_max_pool2d(T32(S(1, 1, 1), 3), .axes = 1, .kernel = TG_SIZES(2), .stride = TG_SIZES(1),
                              .dilation = TG_SIZES(2), .padding = TG_SIZES(1), .indices = &at);
  IS(beside, -INFINITY);
  IS(at, 2147483647);
  IS(tg_max_unpool2d(beside, at, .axes = 1, .kernel = TG_SIZES(2), .output_size = TG_SIZES(1)), 0);
  TgTensor *deep =
      tg_reshape(tg_arange(C, 0, 4, 1), 15, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4});
  ERROR_IS(tg_unfold(deep, -1, 3, 1), TG_ERR_LIMIT, "15 axes, at most 14");
  /* a bound that is NaN bounds to NaN, as in PyTorch */
  IS(tg_clamp_tensor(T32(S(3), 1, 2, 3), T32(S(3), NAN, 0, 4), NULL), NAN, 2, 4);
  /* the mean of squares over what both broadcast to */
  CLOSE(tg_mse(T32(S(2, 2), 1, 2, 3, 4), T32(S(2), 1, 1)), (0 + 1 + 4 + 9) / 4.0);
  /* a label outside the classes adds 0, smoothed or not */
  TgTensor *l = T32(S(2, 3), 1, 2, 3, .5, -1, 2), *y = TI32(S(2), 0, 7);
  TgTensor *each = tg_sparse_cross_entropy(l, y, .label_smoothing = .1, .reduction = TG_NONE);
  CLOSE(tg_shrink(each, (int64_t[]){1}, (int64_t[]){2}), 0);
  /* no keys: zeros; a mask of integers is neither a condition nor an addend */
  TgTensor *q = tg_ones(C, S(1, 2, 3)), *k = tg_zeros(C, S(1, 0, 3));
  IS(tg_scaled_dot_product_attention(q, k, k), 0, 0, 0, 0, 0, 0);
  ERROR_IS(tg_scaled_dot_product_attention(q, q, q, .mask = TI32(S(2, 2), 1, 0, 0, 1)), TG_ERR_DTYPE, "i32");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {TEST(b01_data_round_trip),
                                     TEST(b02_programs_do_not_mix),
                                     TEST(b03_fills),
                                     TEST(b04_chained_compute),
                                     TEST(b05_chains_fuse),
                                     TEST(b06_many_inputs),
                                     TEST(b07_steps_compile_once),
                                     TEST(b08_reductions),
                                     TEST(b09_sum_of_two_axes),
                                     TEST(b10_chained_reductions),
                                     TEST(b11_square_of_sums),
                                     TEST(b12_reduced_then_broadcast),
                                     TEST(b13_movement_pairs),
                                     TEST(b14_permute),
                                     TEST(b15_movement_chains),
                                     TEST(b16_movement_over_reduction),
                                     TEST(b17_one_buffer_two_views),
                                     TEST(b18_permute_and_broadcast),
                                     TEST(b19_shape_errors),
                                     TEST(b20_where),
                                     TEST(b21_where_gradient),
                                     TEST(b22_comparisons),
                                     TEST(b23_casts),
                                     TEST(b24_elementwise_gradients),
                                     TEST(b25_max_ties),
                                     TEST(b26_movement_gradients),
                                     TEST(b27_products),
                                     TEST(b28_layer_norm_gradient),
                                     TEST(b29_backward_states),
                                     TEST(b30_softmax_and_cross_entropy),
                                     TEST(b31_gradient_descent),
                                     TEST(b32_linear_regression),
                                     TEST(b33_xor),
                                     TEST(b34_classifier),
                                     TEST(b35_same_weights_everywhere),
                                     TEST(b36_functions),
                                     TEST(b37_random),
                                     TEST(b38_norms),
                                     TEST(b39_edges),
                                     TEST(b40_masked_rows),
                                     TEST(b41_long_scans),
                                     TEST(b42_rounded_once),
                                     TEST(b43_edges_of_pools_and_masks)};
  int failed = 0;
  const char *env = getenv("TG_DEV");
  if (getenv("TG_TEST")) cmocka_set_test_filter(getenv("TG_TEST")); /* a name, with * */
  if (argc < 2 && env && *env) device = env;
  for (int i = argc > 1 ? 1 : 0; i < argc; i++) {
    if (i) device = argv[i];
    failed += cmocka_run_group_tests_name(device, tests, NULL, NULL);
  }
  return failed + left_behind() != 0;
}
