/* test_ordered.c: what reads and writes at places that are data, and what runs in order: gather, scatter,
 * running reductions, sorting. Devices come from the command line. Expected values are from plain loops in
 * double, gradients from finite differences in f64. */
#include "device/left.h"
#include "tg.h"
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
  return tg_error(C) != TG_OK;
}

static int teardown(void **state) {
  (void)state;
  assert_int_equal(tg_counters(C).fallbacks + tg_counters(C).cuts, 0); /* every kernel took its opts */
  tg_close(C);
  C = NULL;
  return 0;
}

#define S(...) TG_SHAPE(__VA_ARGS__)
#define F(...) ((const double[]){__VA_ARGS__})

enum { MOST = 40000 };

static bool no_f64(void) { return strstr(device, "METAL") != NULL; }

static void fine_at(int line) {
  if (tg_error(C)) fail_msg("line %d on %s: %s: %s", line, device, tg_status_name(tg_error(C)), tg_errmsg(C));
}

static double got[MOST];

static void near_at(int line, const char *what, TgTensor *t, const double *want, int64_t n, double tol) {
  fine_at(line);
  if (!t || tg_numel(t) != n || n > MOST)
    fail_msg("line %d on %s: %s: %lld elements, not %lld", line, device, what,
             t ? (long long)tg_numel(t) : -1, (long long)n);
  if (tg_read_f64(t, got, (size_t)n)) fine_at(line);
  for (int64_t i = 0; i < n; i++) {
    bool ok = isnan(want[i])               ? isnan(got[i])
              : isinf(want[i]) || tol == 0 ? got[i] == want[i]
                                           : fabs(got[i] - want[i]) <= tol * fmax(1, fabs(want[i]));
    if (!ok)
      fail_msg("line %d on %s: %s: element %lld is %.9g, not %.9g", line, device, what, (long long)i, got[i],
               want[i]);
  }
}

#define NEAR(what, t, want, n, tol) near_at(__LINE__, (what), (t), (want), (n), (tol))
#define IS(t, ...)                                                                                           \
  near_at(__LINE__, #t, (t), F(__VA_ARGS__), (int64_t)(sizeof F(__VA_ARGS__) / sizeof(double)), 0)

static void error_is_at(int line, const void *t, TgStatus want, const char *word) {
  if (t || tg_error(C) != want || !strstr(tg_errmsg(C), word))
    fail_msg("line %d on %s: %s '%s', not %s '%s'", line, device, tg_status_name(tg_error(C)), tg_errmsg(C),
             tg_status_name(want), word);
  tg_clear_error(C);
}

#define ERROR_IS(t, status, word) error_is_at(__LINE__, (t), (status), (word))

static uint64_t rng = 88172645463325252u;

static uint64_t next_random(void) {
  rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
  return rng;
}

static int pick(int n) { return (int)(next_random() >> 33) % n; }

static double uniform(double lo, double hi) {
  return lo + (hi - lo) * (double)(next_random() >> 11) / 9007199254740992.0;
}

/* An array of doubles with a shape: the oracle's tensor. */
typedef struct Arr {
  int n;
  int64_t d[4], count;
  double *v;
} Arr;

static Arr arr(int n, const int64_t *d) {
  Arr a = {.n = n, .count = 1};
  for (int i = 0; i < n; i++)
    a.d[i] = d[i], a.count *= d[i];
  a.v = calloc((size_t)a.count + 1, sizeof *a.v);
  return a;
}

static TgTensor *of(const Arr *a, TgDType t) { return tg_from_f64(C, a->v, t, a->n, a->d); }

static int64_t stride(const Arr *a, int axis) {
  int64_t s = 1;
  for (int i = axis + 1; i < a->n; i++)
    s *= a->d[i];
  return s;
}

static int64_t coord(const Arr *a, int64_t i, int axis) { return i / stride(a, axis) % a->d[axis]; }

/* The same data seen through movements: made transposed or reversed, moved back. */
static TgTensor *view_of(const Arr *a, TgDType t, int how) {
  if (how == 1 && a->n >= 2) {
    int64_t d[4];
    int r = a->n;
    Arr b = arr(a->n, (memcpy(d, a->d, sizeof d), d[0] = a->d[r - 1], d[r - 1] = a->d[0], d));
    for (int64_t i = 0; i < b.count; i++) {
      int64_t at = 0;
      for (int k = 0; k < r; k++)
        at += coord(&b, i, k) * stride(a, k == 0 ? r - 1 : k == r - 1 ? 0 : k);
      b.v[i] = a->v[at];
    }
    TgTensor *x = tg_transpose(of(&b, t), 0, -1);
    free(b.v);
    return x;
  }
  if (how == 2 && a->n >= 1) {
    Arr b = arr(a->n, a->d);
    for (int64_t i = 0; i < a->count; i++)
      b.v[i + (a->d[a->n - 1] - 1 - 2 * coord(a, i, a->n - 1))] = a->v[i];
    TgTensor *x = tg_flip(of(&b, t), 1, (int64_t[]){a->n - 1});
    free(b.v);
    return x;
  }
  return of(a, t);
}

static const struct {
  int n;
  int64_t d[4];
} shapes[] = {{1, {1}},    {1, {7}},     {1, {0}},       {2, {3, 5}},    {2, {4, 1}},    {2, {1, 6}},
              {2, {0, 3}}, {2, {17, 9}}, {3, {2, 3, 4}}, {3, {5, 1, 3}}, {3, {3, 16, 2}}};

enum { NSHAPE = sizeof shapes / sizeof *shapes };

/* ---- gather */
static void gathers(void **state) {
  (void)state;
  static const TgDType kinds[] = {TG_I32, TG_I64, TG_I8, TG_U8, TG_I16, TG_U32, TG_U64};
  static const TgDType data[] = {TG_F32, TG_I32, TG_F16, TG_BOOL, TG_U8, TG_I64};
  for (int t = 0; t < 3 * NSHAPE; t++) {
    Arr x = arr(shapes[t % NSHAPE].n, shapes[t % NSHAPE].d);
    int axis = pick(x.n);
    int64_t d[4];
    memcpy(d, x.d, sizeof d);
    for (int i = 0; i < x.n; i++)
      d[i] = i == axis ? 1 + pick(9) : d[i] ? 1 + pick((int)d[i]) : 0;
    Arr e = arr(x.n, d), want = arr(x.n, d);
    TgDType k = kinds[pick(7)], dt = data[pick(6)];
    for (int64_t i = 0; i < x.count; i++)
      x.v[i] = dt == TG_BOOL ? pick(2) : pick(100);
    for (int64_t i = 0; i < e.count; i++) {
      e.v[i] = pick((int)x.d[axis] + 3) - (k == TG_U8 || k == TG_U32 || k == TG_U64 ? 0 : 1);
      int64_t at = 0;
      for (int a = 0; a < x.n; a++)
        at += (a == axis ? (int64_t)e.v[i] : coord(&e, i, a)) * stride(&x, a);
      want.v[i] = e.v[i] >= 0 && e.v[i] < (double)x.d[axis] && x.count ? x.v[at] : 0;
    }
    TG_SCOPE(C) {
      NEAR("gather", tg_gather(view_of(&x, dt, pick(3)), axis, view_of(&e, k, pick(3))), want.v, want.count,
           0);
      TgTensor *lazy = tg_add_scalar(tg_mul_scalar(of(&x, TG_I32), 2), 1); /* what is gathered is computed */
      for (int64_t i = 0; i < e.count; i++) {
        int64_t at = 0;
        for (int a = 0; a < x.n; a++)
          at += (a == axis ? (int64_t)e.v[i] : coord(&e, i, a)) * stride(&x, a);
        want.v[i] = e.v[i] >= 0 && e.v[i] < (double)x.d[axis] && x.count ? 2 * x.v[at] + 1 : 0;
      }
      NEAR("lazy gather", tg_gather(lazy, axis - x.n, of(&e, k)), want.v, want.count, 0);
    }
    free(x.v), free(e.v), free(want.v);
  }
  TgTensor *w = tg_from_f64(C, F(1, 2, 3, 4, 5, 6), TG_F32, S(3, 2));
  TgTensor *i = tg_from_f64(C, F(2, 0, 7, -1), TG_I32, S(2, 2));
  IS(tg_take(w, i), 5, 6, 1, 2, 0, 0, 0, 0);
  IS(tg_take(w, tg_from_f64(C, F(1), TG_I64, 0, NULL)), 3, 4);
  IS(tg_take(tg_sum(w, .axis = TG_AXES(1)), i), 11, 3, 0, 0); /* of a reduction */
  IS(tg_take(tg_arange(C, 5, 9), i), 7, 5, 0, 0);
  IS(tg_take(tg_take(w, i), tg_from_f64(C, F(1, 0), TG_I32, S(2))), 0, 0, 0, 0, 5, 6, 1, 2);
  /* an index that is read of the very tensor, behind a pad, a reduction, a cat */
  TgTensor *x = tg_from_f64(C, F(3, 1, -1, 2, 0), TG_F32, S(5));
  TgTensor *p = tg_pad(x, (int64_t[]){2}, (int64_t[]){0});
  TgTensor *q = tg_from_f64(C, F(1, 3, 2, 0), TG_F32, S(2, 2));
  IS(tg_take(p, tg_cast(p, TG_I32)), 0, 0, 1, 0, 0, 3, 0);
  p = tg_pad(tg_clamp(tg_sub(x, tg_min(x)), -64, 64), (int64_t[]){2}, (int64_t[]){0});
  IS(tg_take(p, tg_cast(p, TG_I32)), 0, 0, 0, 4, 0, 2, 0);
  p = tg_slice(tg_cast(x, TG_I16), 0, 1, 2);
  IS(tg_take(p, tg_cast(p, TG_I32)), 0);
  IS(tg_cummax(tg_cat((TgTensor *[]){q, q}, 2, 0), 1, NULL), 1, 3, 2, 2, 1, 3, 2, 2);
  ERROR_IS(tg_gather(w, 0, w), TG_ERR_DTYPE, "gather");
  ERROR_IS(tg_gather(w, 2, i), TG_ERR_SHAPE, "axis 2");
  ERROR_IS(tg_gather(w, 0, tg_from_f64(C, F(1), TG_I32, S(1))), TG_ERR_SHAPE, "gather");
  ERROR_IS(tg_take(w, w), TG_ERR_DTYPE, "take");
}

/* ---- scatter */
static double joined(TgScatterReduce how, double a, double b) {
  switch (how) {
  case TG_SCATTER_SET: return b;
  case TG_SCATTER_MULTIPLY: return a * b;
  case TG_SCATTER_AMAX: return isnan(a) || isnan(b) ? NAN : fmax(a, b);
  case TG_SCATTER_AMIN: return isnan(a) || isnan(b) ? NAN : fmin(a, b);
  default: return a + b;
  }
}

static void scatter_case(int t, TgScatterReduce how, bool reduce, bool exclude, TgDType dt) {
  Arr x = arr(shapes[t].n, shapes[t].d);
  int axis = pick(x.n);
  int64_t d[4], bigger[4];
  for (int i = 0; i < x.n; i++)
    d[i] = i == axis ? pick(9) : x.d[i] ? 1 + pick((int)x.d[i]) : 0, bigger[i] = d[i] + pick(2);
  Arr e = arr(x.n, d), v = arr(x.n, bigger), want = arr(x.n, x.d), n = arr(x.n, x.d);
  bool floats = dt == TG_F32 || dt == TG_F64;
  for (int64_t i = 0; i < x.count; i++)
    want.v[i] = x.v[i] = pick(7) - (dt == TG_U8 ? 0 : 3), n.v[i] = exclude ? 0 : 1;
  for (int64_t i = 0; i < v.count; i++)
    v.v[i] = floats && pick(30) == 0 ? NAN : pick(5) - (dt == TG_U8 ? 0 : 2);
  for (int64_t i = 0; i < e.count; i++) {
    e.v[i] = pick((int)x.d[axis] + 3) - 1;
    int64_t at = 0, from = 0;
    for (int a = 0; a < x.n; a++)
      at += (a == axis ? (int64_t)e.v[i] : coord(&e, i, a)) * stride(&x, a),
          from += coord(&e, i, a) * stride(&v, a);
    if (e.v[i] < 0 || e.v[i] >= (double)x.d[axis] || !x.count) continue;
    want.v[at] = n.v[at] == 0 ? v.v[from] : joined(how, want.v[at], v.v[from]), n.v[at]++;
    if (dt == TG_U8 && how == TG_SCATTER_MULTIPLY) want.v[at] = fmod(want.v[at], 256);
  }
  for (int64_t i = 0; i < x.count; i++)
    if (how == TG_SCATTER_MEAN && n.v[i] > 0) want.v[i] /= n.v[i];
  if (how == TG_SCATTER_MEAN && exclude)
    for (int64_t i = 0; i < x.count; i++)
      if (n.v[i] == 0) want.v[i] = x.v[i];
  TG_SCOPE(C) {
    TgTensor *tx = view_of(&x, dt, pick(3));
    TgTensor *te = view_of(&e, TG_I32, pick(3));
    TgTensor *tv = view_of(&v, dt, pick(3));
    TgTensor *r = reduce ? tg_scatter_reduce(tx, axis, te, tv, how, .exclude_self = exclude)
                         : tg_scatter(tx, axis, te, tv, .reduce = how);
    NEAR("scatter", r, want.v, want.count, how == TG_SCATTER_MEAN ? 1e-6 : 0);
  }
  free(x.v), free(e.v), free(v.v), free(want.v), free(n.v);
}

static void scatters(void **state) {
  (void)state;
  static const TgDType kinds[] = {TG_F32, TG_I32, TG_U8, TG_I64};
  for (int t = 0; t < NSHAPE; t++)
    for (int how = TG_SCATTER_SET; how <= TG_SCATTER_AMIN; how++) {
      if (how <= TG_SCATTER_MULTIPLY) scatter_case(t, (TgScatterReduce)how, false, false, kinds[pick(4)]);
      if (how >= TG_SCATTER_ADD) scatter_case(t, (TgScatterReduce)how, true, pick(2), kinds[pick(4)]);
    }
  TgTensor *x = tg_from_f64(C, F(1, 2, 3), TG_F32, S(3)), *i = tg_from_f64(C, F(2, 2, 0), TG_I32, S(3)), *y;
  IS(tg_scatter(x, 0, i, x), 3, 2, 2); /* the last one wins */
  IS(tg_add(tg_scatter(x, 0, i, x), tg_scatter(x, 0, i, tg_neg(x))), 0, 4, 0);
  IS(tg_scatter(tg_from_f64(C, F(5), TG_F32, 0, NULL), 0, tg_from_f64(C, F(0), TG_I32, 0, NULL),
                tg_from_f64(C, F(7), TG_F32, 0, NULL)),
     7);
  /* onto a value that is computed; read twice */
  y = tg_scatter(tg_exp(tg_mul_scalar(x, 0)), -1, i, x, .reduce = TG_SCATTER_ADD);
  IS(tg_add(tg_mul(y, x), tg_sum(y)), 13, 11, 21);
  IS(tg_scatter(y, 0, i, y), 4, 1, 1);
  IS(tg_scatter_reduce(tg_from_f64(C, F(1, 0), TG_BOOL, S(2)), 0, tg_from_f64(C, F(1), TG_I32, S(1)),
                       tg_from_f64(C, F(1), TG_BOOL, S(1)), TG_SCATTER_AMAX),
     1, 1);
  ERROR_IS(tg_scatter(x, 0, i, i), TG_ERR_DTYPE, "scatter");
  ERROR_IS(tg_scatter(x, 0, x, x), TG_ERR_DTYPE, "index");
  ERROR_IS(tg_scatter(x, 0, i, tg_from_f64(C, F(1, 2), TG_F32, S(2))), TG_ERR_SHAPE, "values (2)");
  ERROR_IS(tg_scatter(x, 0, i, x, .reduce = TG_SCATTER_AMAX), TG_ERR_VALUE, "reduce");
  ERROR_IS(tg_scatter_reduce(x, 0, i, x, TG_SCATTER_SET), TG_ERR_VALUE, "reduce");
}

/* A scatter of a tensor assigned to that tensor changes its memory where it stands: one kernel, and no copy.
 */
static void in_place(void **state) {
  (void)state;
  TgTensor *x = tg_from_f64(C, F(1, 2, 3, 4, 5, 6), TG_F32, S(3, 2));
  TgTensor *i = tg_from_f64(C, F(2, 0, 2), TG_I32, S(3, 1));
  TgTensor *v = tg_from_f64(C, F(10, 20, 30), TG_F32, S(3, 1));
  TgTensor *before = tg_mul_scalar(x, 1);
  assert_int_equal(tg_realize(x) || tg_realize(before) || tg_realize(i) || tg_realize(v), TG_OK);
  tg_counters_reset(C);
  assert_non_null(tg_assign(x, tg_scatter(x, 0, i, v, .reduce = TG_SCATTER_ADD)));
  assert_int_equal(tg_realize(x), TG_OK);
  assert_int_equal(tg_counters(C).kernels, 1);
  assert_true(tg_counters(C).flops < 20);
  IS(x, 21, 2, 3, 4, 45, 6);
  IS(before, 1, 2, 3, 4, 5, 6);
  /* read in the same schedule, after it */
  TgTensor *twice = tg_mul_scalar(tg_assign(x, tg_scatter(x, 0, i, v)), 2);
  IS(twice, 40, 4, 6, 8, 60, 12);
  IS(x, 20, 2, 3, 4, 30, 6);
  TgTensor *old = tg_mul_scalar(x, 1); /* reads what was there before, in the same schedule */
  assert_non_null(tg_assign(x, tg_scatter(x, 0, i, v, .reduce = TG_SCATTER_ADD)));
  assert_int_equal(tg_realize_many((TgTensor *[]){x, old}, 2), TG_OK);
  IS(old, 20, 2, 3, 4, 30, 6);
  IS(x, 40, 2, 3, 4, 70, 6);
  assert_non_null(tg_assign(x, tg_scatter(x, 0, i, v)));
  TgTensor *from = tg_gather(x, 0, i); /* what is written is read from there before */
  assert_non_null(tg_assign(x, tg_scatter(x, 0, i, from, .reduce = TG_SCATTER_ADD)));
  IS(x, 40, 2, 3, 4, 90, 6);
}

/* ---- running reductions */
static void scan_case(const Arr *x, int axis, TgDType dt, double tol) {
  Arr sum = arr(x->n, x->d), prod = arr(x->n, x->d), hi = arr(x->n, x->d), at = arr(x->n, x->d),
      lo = arr(x->n, x->d), lat = arr(x->n, x->d), lse = arr(x->n, x->d);
  int64_t st = stride(x, axis);
  for (int64_t i = 0; i < x->count; i++) {
    int64_t c = coord(x, i, axis), p = i - st;
    double v = x->v[i];
    sum.v[i] = c ? sum.v[p] + v : v, prod.v[i] = c ? prod.v[p] * v : v;
    bool up = !c || (!isnan(hi.v[p]) && (isnan(v) || v > hi.v[p]));
    bool down = !c || (!isnan(lo.v[p]) && (isnan(v) || v < lo.v[p]));
    hi.v[i] = up ? v : hi.v[p], at.v[i] = up ? (double)c : at.v[p], lo.v[i] = down ? v : lo.v[p],
    lat.v[i] = down ? (double)c : lat.v[p];
    double m = -INFINITY, s = 0;
    for (int64_t j = 0; j <= c; j++)
      m = x->v[i - j * st] > m ? x->v[i - j * st] : m;
    for (int64_t j = 0; j <= c; j++)
      s += exp(x->v[i - j * st] - (isinf(m) ? 0 : m));
    lse.v[i] = log(s) + (isinf(m) ? 0 : m);
  }
  TG_SCOPE(C) {
    TgTensor *t = view_of(x, dt, pick(3)), *i;
    bool floats = dt == TG_F32 || dt == TG_F64;
    NEAR("cumsum", tg_cumsum(t, axis), sum.v, x->count, tol);
    if (floats) NEAR("cumprod", tg_cumprod(t, axis - x->n), prod.v, x->count, tol);
    NEAR("cummax", tg_cummax(t, axis, &i), hi.v, x->count, 0);
    NEAR("cummax indices", i, at.v, x->count, 0);
    NEAR("cummin", tg_cummin(t, axis, &i), lo.v, x->count, 0);
    NEAR("cummin indices", i, lat.v, x->count, 0);
    if (floats) NEAR("logcumsumexp", tg_logcumsumexp(t, axis), lse.v, x->count, tol ? tol : 2e-6);
  }
  free(sum.v), free(prod.v), free(hi.v), free(at.v), free(lo.v), free(lat.v), free(lse.v);
}

static void scans(void **state) {
  (void)state;
  static const TgDType kinds[] = {TG_F32, TG_I32, TG_U8, TG_BOOL, TG_I8, TG_F16, TG_I64};
  for (int t = 0; t < NSHAPE; t++)
    for (int axis = 0; axis < shapes[t].n; axis++) {
      Arr x = arr(shapes[t].n, shapes[t].d);
      TgDType dt = kinds[(t + axis) % 7];
      for (int64_t i = 0; i < x.count; i++)
        x.v[i] = dt == TG_BOOL ? pick(2) : dt == TG_U8 ? pick(5) : pick(9) - 4;
      scan_case(&x, axis, dt, 1e-5);
      for (int64_t i = 0; i < x.count; i++)
        if (pick(9) == 0) x.v[i] = pick(3) == 0 ? NAN : pick(2) ? INFINITY : -INFINITY;
      scan_case(&x, axis, TG_F32, 1e-5);
      free(x.v);
    }
  TgTensor *s = tg_from_f64(C, F(3), TG_F32, 0, NULL), *i;
  IS(tg_cumsum(s, 0), 3), IS(tg_cumprod(s, -1), 3), IS(tg_logcumsumexp(s, 0), 3), IS(tg_cummax(s, 0, &i), 3),
      IS(i, 0);
  assert_int_equal(tg_ndim(tg_cummin(s, 0, NULL)), 0);
  assert_int_equal(tg_dtype(tg_cumsum(tg_ones(C, S(2), .dtype = TG_I8), 0)), TG_I32);
  assert_int_equal(tg_dtype(tg_cumsum(tg_ones(C, S(2), .dtype = TG_F16), 0)), TG_F16);
  assert_int_equal(tg_dtype(tg_cumprod(tg_ones(C, S(2), .dtype = TG_I8), 0)), TG_I8);
  ERROR_IS(tg_cumsum(tg_ones(C, S(2)), 1), TG_ERR_SHAPE, "axis 1");

  enum { LONG = 8192 + 1003 }; /* in parts, the last one not full */

  static double v[2 * LONG], sum[2 * LONG], most[2 * LONG];
  for (int k = 0; k < 2 * LONG; k++) {
    v[k] = pick(2001) - 1000;
    sum[k] = k % LONG ? sum[k - 1] + v[k] : v[k],
    most[k] = k % LONG && most[k - 1] > v[k] ? most[k - 1] : v[k];
  }
  TgTensor *x = tg_from_f64(C, v, TG_I32, S(2, LONG));
  NEAR("long cumsum", tg_cumsum(x, 1), sum, 2 * LONG, 0);
  NEAR("long cummax", tg_cummax(x, 1, NULL), most, 2 * LONG, 0);
}

/* ---- order */
static const double *by;
static bool by_down;

static int before(const void *a, const void *b) { /* NaN is the largest; equal ones keep their order */
  int i = *(const int *)a, j = *(const int *)b;
  double x = by[i], y = by[j];
  int c = isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
  if (by_down) c = -c;
  return c ? c : i - j;
}

static void order_case(const Arr *x, int axis, TgDType dt, bool down, int64_t k, bool whole) {
  int64_t n = x->d[axis], st = stride(x, axis), d[4];
  memcpy(d, x->d, sizeof d), d[axis] = k;
  Arr want = arr(x->n, d), at = arr(x->n, d);
  double *row = malloc((size_t)(n + 1) * sizeof *row);
  int *id = malloc((size_t)(n + 1) * sizeof *id);
  for (int64_t i = 0; i < x->count; i++) {
    if (coord(x, i, axis)) continue;
    for (int64_t j = 0; j < n; j++)
      row[j] = x->v[i + j * st], id[j] = (int)j;
    by = row, by_down = down;
    qsort(id, (size_t)n, sizeof *id, before);
    int64_t o = i / (st * n) * (st * k) + i % st;
    for (int64_t j = 0; j < k; j++)
      want.v[o + j * st] = row[id[j]], at.v[o + j * st] = id[j];
  }
  TG_SCOPE(C) {
    TgTensor *t = view_of(x, dt, pick(3)), *i = NULL;
    NEAR("values",
         whole ? tg_sort(t, &i, .axis = TG_AXES(axis - x->n), .descending = down)
               : tg_topk(t, k, &i, .axis = TG_AXES(axis), .smallest = !down),
         want.v, want.count, 0);
    NEAR("indices", i, at.v, want.count, 0);
  }
  free(want.v), free(at.v), free(row), free(id);
}

static void sorts(void **state) {
  (void)state;
  static const TgDType kinds[] = {TG_F32, TG_I32,  TG_U8,  TG_BOOL, TG_I8,  TG_F16, TG_I64,
                                  TG_U64, TG_BF16, TG_I16, TG_U32,  TG_U16, TG_F64};

  static const struct {
    int n;
    int64_t d[4];
  } more[] = {{1, {128}}, {1, {129}}, {2, {3, 150}}, {2, {140, 3}}, {3, {2, 131, 2}}};

  for (int t = 0; t < NSHAPE + 5; t++)
    for (int rep = 0; rep < (t < NSHAPE ? 2 : 5); rep++) {
      Arr x = t < NSHAPE ? arr(shapes[t].n, shapes[t].d) : arr(more[t - NSHAPE].n, more[t - NSHAPE].d);
      TgDType dt = kinds[(t * 5 + rep) % 13];
      if (dt == TG_F64 && no_f64()) dt = TG_F32;
      bool floats = dt == TG_F32 || dt == TG_F16 || dt == TG_BF16 || dt == TG_F64;
      bool positive = dt == TG_U8 || dt == TG_U64 || dt == TG_U32 || dt == TG_U16;
      for (int64_t i = 0; i < x.count; i++) {
        x.v[i] = dt == TG_BOOL ? pick(2) : positive ? pick(120) : pick(100) - 50;
        if (floats && pick(6) == 0) x.v[i] = F(NAN, INFINITY, -INFINITY, 0.0, -0.0)[pick(5)];
      }
      int axis = pick(x.n);
      order_case(&x, axis, dt, pick(2), x.d[axis], true);
      order_case(&x, axis, dt, pick(2), pick((int)x.d[axis] + 1), false);
      if (x.d[axis] > 128) order_case(&x, axis, dt, pick(2), 1 + pick(5), false); /* selected, not sorted */
      free(x.v);
    }
  Arr big = arr(2, (int64_t[]){2, 3000});
  for (int64_t i = 0; i < big.count; i++)
    big.v[i] = (double)(float)(pick(4) ? uniform(-1e6, 1e6) : pick(100));
  order_case(&big, 1, TG_F32, false, 3000, true);
  order_case(&big, 1, TG_F32, true, 50, false);
  /* all equal: the first k */
  for (int64_t i = 0; i < big.count; i++)
    big.v[i] = 7;
  order_case(&big, 1, TG_I32, true, 9, false);
  free(big.v);
  TgTensor *i, *s = tg_from_f64(C, F(4), TG_F32, 0, NULL), *x = tg_from_f64(C, F(3, 1, 2), TG_F32, S(3));
  IS(tg_sort(s, &i), 4), IS(i, 0);
  IS(tg_argsort(x), 1, 2, 0), IS(tg_argsort(x, .descending = true), 0, 2, 1);
  assert_int_equal(tg_dtype(tg_argsort(x)), TG_I32);
  assert_int_equal(tg_numel(tg_topk(x, 0, &i)), 0);
  assert_int_equal(tg_numel(i), 0);
  ERROR_IS(tg_topk(x, 4, &i), TG_ERR_VALUE, "topk: 4 of the 3 elements");
  ERROR_IS(tg_topk(x, -1, NULL), TG_ERR_VALUE, "topk");
  ERROR_IS(tg_sort(x, &i, .axis = TG_AXES(1)), TG_ERR_SHAPE, "axis 1");
  double some[2000]; /* unsorted: the same elements in any order */
  for (int k = 0; k < 2000; k++)
    some[k] = (k * 7919) % 2000;
  NEAR("unsorted", tg_sum(tg_topk(tg_from_f64(C, some, TG_F32, S(2000)), 10, NULL, .unsorted = true)),
       F(19945), 1, 0);
}

/* Rows long enough for parts on a GPU, the last one not full: as many elements as make no whole one, or one
 * more; few distinct keys, so that equal ones stand in all parts; NaN, infinities and both zeros. */
static void sorts_in_parts(void **state) {
  (void)state;

  static const struct {
    TgDType dtype;
    int64_t rows, n;
    bool down;
    int64_t most; /* of the row, or all */
  } cases[] = {{TG_F32, 1, 4097, false, 0},
               {TG_I8, 1, 4160, false, 0},
               {TG_BOOL, 1, 4161, true, 0},
               {TG_I64, 2, 2900, false, 0},
               {TG_BF16, 2, 4099, true, 33}};

  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    TgDType dt = cases[c].dtype;
    bool floats = dt == TG_F32 || dt == TG_BF16;
    Arr x = arr(2, (int64_t[]){cases[c].rows, cases[c].n});
    for (int64_t i = 0; i < x.count; i++) {
      x.v[i] = dt == TG_BOOL ? pick(2) : pick(100) - 50;
      if (floats && pick(20) == 0) x.v[i] = F(NAN, INFINITY, -INFINITY, 0.0, -0.0)[pick(5)];
    }
    order_case(&x, 1, dt, cases[c].down, cases[c].most ? cases[c].most : cases[c].n, !cases[c].most);
    free(x.v);
  }
}

static void selections(void **state) {
  (void)state;
  TgTensor *x = tg_from_f64(C, F(5, 0, -1, 0, 2, 7), TG_F32, S(2, 3)), *m = tg_gt_scalar(x, 1);
  IS(tg_masked_select(x, m), 5, 2, 7);
  IS(tg_masked_select(x, m, .fixed = true, .size_given = 2), 5, 2);
  IS(tg_masked_select(x, m, .fixed = true, .size_given = 5, .fill_value = 9), 5, 2, 7, 9, 9);
  IS(tg_masked_select(x, tg_from_f64(C, F(1, 0, 1), TG_BOOL, S(3))), 5, -1, 0, 7);
  assert_int_equal(tg_numel(tg_masked_select(x, tg_gt_scalar(x, 100))), 0);
  IS(tg_nonzero(x), 0, 0, 0, 2, 1, 1, 1, 2);
  IS(tg_nonzero(x, .fixed = true, .size_given = 5, .fill_value = -1), 0, 0, 0, 2, 1, 1, 1, 2, -1, -1);
  IS(tg_nonzero(tg_from_f64(C, F(0, 1, 1), TG_BOOL, S(3))), 1, 2);
  TgTensor *s = tg_nonzero(tg_from_f64(C, F(3), TG_F32, 0, NULL));
  assert_int_equal(tg_ndim(s), 2), assert_int_equal(tg_dim(s, 0), 1), assert_int_equal(tg_dim(s, 1), 0);
  assert_int_equal(tg_numel(tg_nonzero(tg_zeros(C, S(0, 3)))), 0);
  IS(tg_one_hot(tg_from_f64(C, F(2, 0, 7, -1), TG_I8, S(4)), 3), 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
  ERROR_IS(tg_masked_select(x, x), TG_ERR_DTYPE, "mask");
  ERROR_IS(tg_one_hot(x, 3), TG_ERR_DTYPE, "one_hot");
  ERROR_IS(tg_one_hot(tg_nonzero(x), -1), TG_ERR_VALUE, "one_hot");
}

/* ---- gradients, and gradients of gradients */
typedef TgTensor *(*Fn)(TgTensor **x);
static Fn inner;

static TgTensor *weighted(TgTensor *y) {
  double w[256];
  int64_t n = tg_numel(y);
  for (int64_t i = 0; i < n && i < 256; i++)
    w[i] = 0.5 + (double)((i * 7) % 5) * 0.3;
  return tg_sum(tg_mul(y, tg_from_f64(C, w, TG_F64, tg_ndim(y), tg_shape(y))));
}

static TgTensor *gradient_of(TgTensor *y, TgTensor **x) {
  TgTensor *g = NULL;
  return tg_gradient(weighted(y), x, 1, &g) ? NULL : g;
}

static TgTensor *slope(TgTensor **x) { /* the gradient of a cubic of inner(x) by x[0] */
  TgTensor *y = inner(x);
  return gradient_of(tg_mul(y, tg_mul(y, y)), x);
}

static TgTensor *first(TgTensor **x) { return gradient_of(inner(x), x); }

static TgTensor *second(TgTensor **x) { return gradient_of(first(x), x); }

static void gradcheck_at(int line, Fn f, int nx, const int64_t (*d)[3], const double *x0, double tol) {
  double v[2][64];
  int64_t count[2];
  TgTensor *x[2], *g[2] = {0};
  for (int k = 0, o = 0; k < nx; k++) {
    count[k] = d[k][0] * d[k][1];
    for (int64_t i = 0; i < count[k]; i++)
      v[k][i] = x0 ? x0[o++] : uniform(-2, 2);
    x[k] = tg_from_f64(C, v[k], TG_F64, 2, d[k]);
  }
  if (tg_gradient(weighted(f(x)), x, nx, g)) fine_at(line);
  for (int k = 0; k < nx; k++) {
    double an[64];
    if (tg_read_f64(g[k], an, (size_t)count[k])) fine_at(line);
    for (int64_t i = 0; i < count[k]; i++) {
      double side[2], h = 1e-5, keep = v[k][i];
      for (int s = 0; s < 2; s++)
        TG_SCOPE(C) {
          v[k][i] = keep + (s ? -h : h);
          TgTensor *y[2];
          for (int j = 0; j < nx; j++)
            y[j] = tg_from_f64(C, v[j], TG_F64, 2, d[j]);
          side[s] = tg_item_f64(weighted(f(y)));
        }
      v[k][i] = keep;
      fine_at(line);
      double num = (side[0] - side[1]) / (2 * h);
      if (!(fabs(num - an[i]) <= tol * fmax(1, fabs(num))))
        fail_msg("line %d on %s: d/dx%d[%lld] is %.9g, not %.9g", line, device, k, (long long)i, an[i], num);
    }
  }
}

/* into 3: some meet, one is outside */
static TgTensor *places(void) { return tg_from_f64(C, F(2, 0, 1, 2, 2, 0, 3, 1), TG_I32, S(2, 4)); }

static TgTensor *f_gather(TgTensor **x) { return tg_gather(x[0], 0, places()); }

static TgTensor *f_gather1(TgTensor **x) {
  return tg_gather(x[0], 1, tg_from_f64(C, F(3, 0, 2), TG_I32, S(3, 1)));
}

static TgTensor *f_take(TgTensor **x) { return tg_take(x[0], places()); }

static TgTensor *f_set(TgTensor **x) { return tg_scatter(x[0], 0, places(), x[1]); }

static TgTensor *f_add(TgTensor **x) { return tg_scatter(x[0], 0, places(), x[1], .reduce = TG_SCATTER_ADD); }

static TgTensor *f_mul(TgTensor **x) {
  return tg_scatter(x[0], 0, places(), x[1], .reduce = TG_SCATTER_MULTIPLY);
}

static TgTensor *f_amax(TgTensor **x) { return tg_scatter_reduce(x[0], 0, places(), x[1], TG_SCATTER_AMAX); }

static TgTensor *f_amin(TgTensor **x) {
  return tg_scatter_reduce(x[0], 0, places(), x[1], TG_SCATTER_AMIN, .exclude_self = true);
}

static TgTensor *f_mean(TgTensor **x) {
  return tg_scatter_reduce(x[0], 0, places(), x[1], TG_SCATTER_MEAN, .exclude_self = true);
}

static TgTensor *f_cumsum(TgTensor **x) { return tg_cumsum(x[0], 1); }

static TgTensor *f_cumprod(TgTensor **x) { return tg_cumprod(x[0], 1); }

static TgTensor *f_prod(TgTensor **x) { return tg_prod(x[0], .axis = TG_AXES(1)); }

static TgTensor *f_prod_all(TgTensor **x) {
  return tg_prod(tg_reshape(x[0], S(2, 2, 3)), .axis = TG_AXES(0, 2));
}

static TgTensor *f_cummax(TgTensor **x) { return tg_cummax(x[0], 1, NULL); }

static TgTensor *f_cummin(TgTensor **x) { return tg_cummin(x[0], 0, NULL); }

static TgTensor *f_lcse(TgTensor **x) { return tg_logcumsumexp(x[0], 1); }

static TgTensor *f_sort(TgTensor **x) { return tg_sort(x[0], NULL, .axis = TG_AXES(1)); }

static TgTensor *f_topk(TgTensor **x) { return tg_topk(x[0], 2, NULL); }

static TgTensor *f_select(TgTensor **x) {
  return tg_masked_select(x[0], tg_from_f64(C, F(1, 0, 1, 1), TG_BOOL, S(4)));
}

static void gradients(void **state) {
  (void)state;
  if (no_f64()) {
    print_message("skipped: Metal has no f64, which finite differences need\n");
    skip();
  }
  const int64_t d[2][3] = {{3, 4}, {2, 4}};
  static const Fn one[] = {f_gather, f_gather1, f_take, f_cumsum, f_cumprod, f_cummax,
                           f_cummin, f_lcse,    f_sort, f_topk,   f_select},
                  two[] = {f_set, f_add, f_mul, f_amax, f_amin, f_mean};
  for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
    gradcheck_at((int)i, one[i], 1, d, NULL, 1e-6);
    inner = one[i];
    gradcheck_at(100 + (int)i, slope, 1, d, NULL, 2e-5);
  }
  for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
    gradcheck_at(200 + (int)i, two[i], 2, d, NULL, 1e-6);
    inner = two[i];
    gradcheck_at(300 + (int)i, slope, 2, d, NULL, 2e-5);
  }
  /* products with one zero, and with several; a gradient of the third order tells three zeros from more */
  static const double zeros[][20] = {{1, 0, 2, 3, 2, 0, 0, 5, 0, 1.5, -2, 3, 0, 2, 0.5, 0, 1, 0, 3, 2},
                                     {0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 3, 0, 2},
                                     {3, 2, 0, 1, 4, 0, 0.5, 0, 2, 1, 3, 0, 0, 0, 1, 2, 0, 0, 1, 0}};
  static const Fn products[] = {f_prod, f_prod_all, f_cumprod, f_mul};
  for (size_t z = 0; z < TG_COUNT(zeros); z++)
    for (size_t i = 0; i < TG_COUNT(products); i++) {
      bool scattered = products[i] == f_mul;
      int line = 400 + 10 * (int)z + (int)i;
      inner = products[i];
      gradcheck_at(line, inner, 1 + scattered, d, zeros[z], 1e-6);
      gradcheck_at(100 + line, first, 1 + scattered, d, zeros[z], 1e-6);
      if (!scattered && z == 2) gradcheck_at(200 + line, second, 1, d, zeros[z], 1e-6);
    }
}

/* ---- costs: nothing of the size of the vocabulary times the tokens is made */
static void costs(void **state) {
  (void)state;

  enum { VOCAB = 512, WIDE = 8, TOKENS = 16 };

  TgTensor *w = tg_ones(C, S(VOCAB, WIDE));
  TgTensor *i = tg_from_f64(C, F(5, 511, 5, 0, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9), TG_I32, S(TOKENS));
  TgTensor *g;
  w = tg_keep(tg_contiguous(w));
  assert_int_equal(tg_realize(w) || tg_realize(i), TG_OK);
  tg_counters_reset(C);
  TgTensor *e = tg_embedding(w, i);
  assert_int_equal(tg_realize(e), TG_OK);
  assert_int_equal(tg_counters(C).kernels, 1);
  assert_true(tg_counters(C).flops <= 8 * TOKENS * WIDE);
  assert_int_equal(tg_gradient(tg_sum(tg_mul_scalar(tg_embedding(w, i), 3)), &w, 1, &g), TG_OK);
  tg_counters_reset(C);
  assert_int_equal(tg_realize(g), TG_OK);
  assert_int_equal(tg_counters(C).kernels, 2); /* zeros, and the rows */
  assert_true(tg_counters(C).flops <= 2 * VOCAB * WIDE + 8 * TOKENS * WIDE);
  double want[VOCAB * WIDE] = {0};
  const int rows[] = {5, 511, 5, 0, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (int t = 0; t < TOKENS; t++)
    for (int k = 0; k < WIDE; k++)
      want[rows[t] * WIDE + k] += 3;
  NEAR("embedding gradient", g, want, VOCAB * WIDE, 0);
  /* one label of each row: its gradient stays a comparison, and fuses */
  TgTensor *l = tg_from_f64(C, F(3, 1, 0, 2), TG_I32, S(4)), *x = tg_rand(C, S(4, 6));
  assert_int_equal(tg_realize(x) || tg_realize(l) || tg_gradient(tg_sparse_cross_entropy(x, l), &x, 1, &g),
                   TG_OK);
  tg_counters_reset(C);
  assert_int_equal(tg_realize(g), TG_OK);
  assert_true(tg_counters(C).kernels <= 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {TEST(gathers),    TEST(scatters),  TEST(in_place),
                                     TEST(scans),      TEST(sorts),     TEST(sorts_in_parts),
                                     TEST(selections), TEST(gradients), TEST(costs)};
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
