/* test_sides.c: gradients of movement, pads, pools, interpolation and indexing over all sides: negative,
 * zero, larger than the axis. In: programs by number (FIRST, N choose others). Each is one or two such
 * operations and a square, on small f64 tensors. Out: the gradient, and the gradient of the gradient, agree
 * with differences along a random direction; other devices agree with INTERP. What is refused is refused with
 * a reason that is the caller's. */
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

enum { MOST = 512 };

static uint64_t rng;

static uint32_t next(void) {
  rng = rng * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(rng >> 33);
}

static int below(int n) { return n > 0 ? (int)(next() % (uint32_t)n) : 0; }

static int between(int lo, int hi) { return lo + below(hi - lo + 1); }

static TgTensor *places(TgContext *c, int n, int size) { /* of an axis; some are outside, some twice */
  double v[16];
  for (int i = 0; i < n; i++)
    v[i] = between(-1, size);
  return tg_from_f64(c, v, TG_I64, TG_SHAPE(n));
}

static const char *const names[] = {"pad",        "pad_mode", "shrink_pad", "flip",     "permute",  "expand",
                                    "repeat",     "roll",     "unfold",     "max_pool", "avg_pool", "resize",
                                    "take",       "gather",   "getitem",    "cumsum",   "cumprod",  "cummax",
                                    "sort",       "scatter",  "diagonal",   "tril",     "cat",      "slice",
                                    "interleave", "softmax",  "max",        "var",      "conv",     "conv"};

enum { KINDS = sizeof names / sizeof *names };

/* x as pictures of one channel, each by two kernels of its own; strides longer than the kernel and padding
 * past its reach too. */
static TgTensor *convolved(TgContext *c, TgTensor *x) {
  int r = tg_ndim(x), axes = r > 2 ? 2 : 1, groups = r > 1 ? (int)tg_dim(x, 0) : 1;
  int64_t d[4] = {1, groups}, w[4] = {2 * groups, 1};
  TgSizes pad = {.n = axes}, stride = {.n = axes};
  int nw = 2 * groups;
  for (int i = 0; i < axes; i++) {
    d[2 + i] = tg_dim(x, r - axes + i), w[2 + i] = between(1, 3);
    pad.v[i] = between(0, 3), stride.v[i] = between(1, 3), nw *= (int)w[2 + i];
    if (w[2 + i] > d[2 + i] + 2 * pad.v[i]) return NULL;
  }
  double v[MOST];
  for (int i = 0; i < nw; i++)
    v[i] = sin(i + 0.2);
  if (!tg_numel(x)) return NULL;
  return tg_conv2d(tg_reshape(x, 2 + axes, d), tg_from_f64(c, v, tg_dtype(x), 2 + axes, w), .groups = groups,
                   .stride = stride, .padding = pad);
}

/* One operation with random sides on x; NULL: it does not apply, or is refused. */
static TgTensor *operation(TgContext *c, int kind, TgTensor *x) {
  int r = tg_ndim(x), a = below(r), size = (int)tg_dim(x, a);
  int64_t lo[8] = {0}, hi[8] = {0}, order[8];
  int k = between(1, 3), step = between(1, 3), edge = below(k / 2 + 1); /* of a pool */
  for (int i = 0; i < r; i++) {
    order[i] = i;
    if (below(2)) lo[i] = between(-2, 3);
    if (below(2)) hi[i] = between(-2, 3);
  }
  switch (kind) {
  case 0: return tg_pad_value(x, lo, hi, 0.5);
  case 1: return tg_pad_mode(x, lo, hi, (TgPadMode)below(4));
  case 2: return tg_pad(tg_slice(x, a, below(size + 1), size), lo, hi);
  case 3: return tg_flip(x, 1, (int64_t[]){a});
  case 4: order[0] = a, order[a] = 0; return tg_permute(x, r, order);
  case 5: return tg_mul(tg_unsqueeze(x, a), tg_full(c, TG_SHAPE(between(0, 3), 1), 1.5, .dtype = TG_F64));
  case 6: lo[0] = between(0, 3); return tg_repeat(x, 1, lo);
  case 7: return tg_roll(x, 1, (int64_t[]){between(-9, 9)}, (int64_t[]){a});
  case 8: return tg_unfold(x, a, below(size + 2), between(1, 4));
  case 9:
    return tg_max_pool2d(x, .axes = 1, .kernel = TG_SIZES(k), .stride = TG_SIZES(step),
                         .padding = TG_SIZES(edge), .ceil_mode = below(2));
  case 10:
    return tg_avg_pool2d(x, .axes = 1, .kernel = TG_SIZES(k), .stride = TG_SIZES(step),
                         .padding = TG_SIZES(edge), .ceil_mode = below(2), .exclude_pad = below(2));
  case 11: return tg_interpolate(x, 1, (int64_t[]){between(1, 7)}, .mode = (TgInterpolation)below(3));
  case 12: return tg_take(x, places(c, between(0, 4), (int)tg_dim(x, 0)));
  case 13: return r == 1 ? tg_gather(x, 0, places(c, between(1, 5), size)) : NULL;
  case 14:
    return tg_getitem(x,
                      TG_IDX(TG_SLICE(below(2) ? TG_OPEN : between(-3, 3), TG_OPEN, between(0, 1) ? 2 : -1)));
  case 15: return tg_cumsum(x, a);
  case 16: return tg_cumprod(x, a);
  case 17: return tg_cummax(x, a, NULL);
  case 18: return tg_sort(x, NULL, .axis = TG_AXES(a), .descending = below(2));
  case 19: {
    TgTensor *at = r == 1 && size ? tg_clamp(places(c, size, size), 0, size - 1) : NULL;
    return at ? tg_scatter(x, 0, at, tg_mul_scalar(x, 2),
                           .reduce = below(2) ? TG_SCATTER_ADD : TG_SCATTER_SET)
              : NULL;
  }
  case 20: return r > 1 ? tg_diagonal(x, between(-3, 3), 0, 1) : NULL;
  case 21: return r > 1 ? tg_tril(x, between(-3, 3)) : NULL;
  case 22: return tg_cat((TgTensor *[]){x, tg_mul_scalar(x, 3), tg_slice(x, a, 0, below(size + 1))}, 3, a);
  case 23: return tg_slice(x, a, below(size + 1), size);
  case 24: return tg_repeat_interleave(x, between(0, 3), a);
  case 25: return tg_softmax(x, .axis = TG_AXES(a));
  case 26: return tg_max(x, .axis = TG_AXES(a), .keepdim = true);
  case 28:
  case 29: return convolved(c, x);
  default: return tg_var(x, .axis = TG_AXES(a), .biased = true, .keepdim = true);
  }
}

typedef struct Case {
  int kind[2], n, rank;
  int64_t d[4];
  uint64_t seed;
  double v[MOST], along[MOST];
} Case;

static Case drawn(uint64_t number) {
  Case k = {.n = 1};
  rng = number * 2654435761u + 12345, next(), next();
  k.kind[0] = below(KINDS), k.kind[1] = below(3) ? -1 : below(KINDS);
  k.rank = between(1, 3);
  for (int i = 0; i < k.rank; i++)
    k.d[i] = below(12) ? between(1, 5) : 0, k.n *= (int)k.d[i];
  for (int i = 0; i < k.n; i++)
    k.v[i] = 0.1 + 0.37 * i + 0.011 * below(20), k.along[i] = (below(200) - 100) / 100.;
  for (int i = k.n - 1; i > 0; i--) { /* distinct values in no order: no ties, whose gradients are a choice */
    int j = below(i + 1);
    double v = k.v[i];
    k.v[i] = k.v[j], k.v[j] = v;
  }
  for (int i = 0; i < k.n; i++)
    k.v[i] = (k.v[i] - 0.185 * k.n) / (1 + 0.1 * k.n);
  k.seed = rng;
  return k;
}

/* The loss at v + t along; NULL: refused. *x: what it is of. */
static TgTensor *loss_at(TgContext *c, const Case *k, double t, TgDType dtype, TgTensor **x) {
  double v[MOST];
  for (int i = 0; i < k->n; i++)
    v[i] = k->v[i] + t * k->along[i];
  *x = tg_requires_grad(tg_from_f64(c, v, dtype, k->rank, k->d), true);
  TgTensor *y = *x;
  rng = k->seed;
  for (int i = 0; i < 2 && y; i++)
    if (k->kind[i] >= 0) y = tg_ndim(y) ? operation(c, k->kind[i], y) : NULL;
  if (!y || tg_numel(y) > MOST || !tg_is_floating_point(y)) return NULL;
  TgTensor *weight = tg_sin(tg_add_scalar(
      tg_reshape(tg_arange(c, 0, (double)tg_numel(y), .dtype = dtype), tg_ndim(y), tg_shape(y)), 0.3));
  return tg_sum(tg_mul(weight, tg_add(y, tg_mul_scalar(tg_square(y), 0.5))));
}

/* The derivative of the loss along the direction, from its gradient, and that of this one too. */
static bool slopes(TgContext *c, const Case *k, double t, TgDType dtype, double *first, double *second) {
  TgTensor *x, *loss = loss_at(c, k, t, dtype, &x), *g = NULL, *h = NULL;
  TgTensor *along = tg_from_f64(c, k->along, dtype, k->rank, k->d);
  if (!loss || tg_gradient(loss, &x, 1, &g) || !g) return false;
  TgTensor *slope = tg_sum(tg_mul(g, along));
  *first = tg_item_f64(slope), *second = 0;
  if (tg_error(c)) return false;
  if (tg_gradient(slope, &x, 1, &h) || !h) return false;
  *second = tg_item_f64(tg_sum(tg_mul(h, along)));
  return !tg_error(c);
}

static double value_at(TgContext *c, const Case *k, double t) {
  TgTensor *x;
  return tg_item_f64(loss_at(c, k, t, TG_F64, &x));
}

static TgContext *open_on(const char *device) {
  setenv("TG_SPEC", "1", 1);
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .threads = 1});
  unsetenv("TG_SPEC");
  assert_int_equal(tg_error(c), TG_OK);
  return c;
}

static bool ours(TgContext *c) { /* no program may end so */
  return tg_error(c) == TG_ERR_INTERNAL || tg_error(c) == TG_ERR_NOMEM;
}

static const char *named(const Case *k) {
  static char text[128];
  snprintf(text, sizeof text, "%s %s, rank %d, (%d, %d, %d)", names[k->kind[0]],
           k->kind[1] < 0 ? "" : names[k->kind[1]], k->rank, (int)k->d[0], (int)k->d[1], (int)k->d[2]);
  return text;
}

static bool near(double a, double b, double tol) {
  return fabs(a - b) <= tol * fmax(1, fmax(fabs(a), fabs(b))) || (isnan(a) && isnan(b));
}

static void test_gradients(void **state) {
  (void)state;
  static const char *const devices[] = {"INTERP", "INTERP:C", "INTERP:CUDA"};

  enum { DEVICES = 3 };

  TgContext *c[DEVICES];
  uint64_t first = getenv("FIRST") ? strtoull(getenv("FIRST"), NULL, 10) : 0, taken = 0, refused = 0;
  uint64_t n = getenv("N") ? strtoull(getenv("N"), NULL, 10) : 400;
  for (int d = 0; d < DEVICES; d++)
    c[d] = open_on(devices[d]);
  for (uint64_t i = first; i < first + n; i++) {
    Case k = drawn(i);
    double s = 0, ss = 0, at[2];
    bool fits = true;
    TG_SCOPE(c[0]) {
      fits = slopes(c[0], &k, 0, TG_F64, &s, &ss);
      if (ours(c[0])) fail_msg("program %d (%s): %s", (int)i, named(&k), tg_errmsg(c[0]));
      if (!fits) tg_clear_error(c[0]), refused++;
      if (fits) {
        const double h = 1e-5;
        double up = value_at(c[0], &k, h), down = value_at(c[0], &k, -h), none;
        if (tg_error(c[0])) fail_msg("program %d (%s): %s", (int)i, named(&k), tg_errmsg(c[0]));
        bool finite = isfinite(up) && isfinite(down); /* the largest of nothing is -infinity */
        if (finite && !near((up - down) / (2 * h), s, 2e-5))
          fail_msg("program %d (%s): the gradient is %.9g, differences %.9g", (int)i, named(&k), s,
                   (up - down) / (2 * h));
        slopes(c[0], &k, h, TG_F64, &at[0], &none), slopes(c[0], &k, -h, TG_F64, &at[1], &none);
        if (finite && !near((at[0] - at[1]) / (2 * h), ss, 2e-4))
          fail_msg("program %d (%s): the second gradient is %.9g, differences %.9g", (int)i, named(&k), ss,
                   (at[0] - at[1]) / (2 * h));
        taken++;
      }
    }
    for (int d = 1; d < DEVICES && fits; d++)
      TG_SCOPE(c[d]) {
        double t = 0, tt = 0;
        if (!slopes(c[d], &k, 0, TG_F64, &t, &tt))
          fail_msg("program %d (%s) on %s: %s", (int)i, named(&k), devices[d], tg_errmsg(c[d]));
        if (!near(s, t, 1e-9) || !near(ss, tt, 1e-9))
          fail_msg("program %d (%s) on %s: %.12g and %.12g, not %.12g and %.12g", (int)i, named(&k),
                   devices[d], t, tt, s, ss);
      }
  }
  print_message("%d programs, %d refused\n", (int)taken, (int)refused);
  for (int d = 0; d < DEVICES; d++) {
    assert_int_equal(tg_counters(c[d]).cuts + tg_counters(c[d]).fallbacks, 0);
    tg_close(c[d]);
  }
  assert_true(taken > n / 2);
}

/* Gradients of convolutions by picture and by weights, sides of each axis their own. INTERP looks at every
 * access: a factor may not be read where only the gate beside it says that there is nothing. */
static void test_reads_inside(void **state) {
  (void)state;

  enum { CONVOLUTIONS = 400 };

  double v[MOST];
  TgContext *c = open_on("INTERP");
  rng = 5;
  for (int i = 0; i < MOST; i++)
    v[i] = i % 7 - 3;
  for (int i = 0; i < CONVOLUTIONS; i++)
    TG_SCOPE(c) {
      int axes = between(1, 3), groups = between(1, 3);
      int64_t d[5] = {1, groups}, w[5] = {groups * between(1, 2), 1};
      TgSizes stride = {.n = axes}, pad = {.n = axes};
      for (int k = 0; k < axes; k++) {
        d[2 + k] = between(2, 5), w[2 + k] = between(1, 3), stride.v[k] = between(1, 3),
              pad.v[k] = between(0, 2);
        if (w[2 + k] > d[2 + k] + 2 * pad.v[k]) w[2 + k] = 1;
      }
      TgTensor *x[] = {tg_from_f64(c, v, TG_F32, 2 + axes, d), tg_from_f64(c, v, TG_F32, 2 + axes, w)}, *g[2];
      TgTensor *y = tg_conv2d(x[0], x[1], .groups = groups, .stride = stride, .padding = pad);
      assert_int_equal(tg_gradient(tg_sum(tg_square(y)), x, 2, g), TG_OK);
      if (tg_realize_many(g, 2)) fail_msg("convolution %d: %s", i, tg_errmsg(c));
    }
  tg_close(c);
}

static void test_windows(void **state) { /* of every size and step, far past the end too */
  (void)state;
  TgContext *c = open_on("INTERP");
  double v[8], got[64];
  for (int i = 0; i < 8; i++)
    v[i] = i;
  for (int n = 0; n <= 6; n++)
    for (int size = 0; size <= n; size++)
      for (int step = 1; step <= 9; step++)
        TG_SCOPE(c) {
          TgTensor *y = tg_unfold(tg_from_f64(c, v, TG_F32, TG_SHAPE(n)), 0, size, step);
          int many = (n - size) / step + 1;
          assert_int_equal(tg_dim(y, 0), many), assert_int_equal(tg_dim(y, 1), size);
          assert_int_equal(tg_read_f64(y, got, (size_t)(many * size)), TG_OK);
          for (int k = 0; k < many * size; k++)
            if (got[k] != k / size * step + k % size)
              fail_msg("unfold of %d by %d, step %d: element %d is %g", n, size, step, k, got[k]);
        }
  tg_close(c);
}

/* An element that is in no window has a sum of none: its loop has no iteration, and nothing that the loop
 * reads may be read before it. */
static void test_gradients_of_windows(void **state) {
  (void)state;
  TgContext *c = open_on("INTERP");
  double v[24], got[24];
  for (int i = 0; i < 24; i++)
    v[i] = i * .125;
  for (int n = 1; n <= 8; n++)
    for (int size = 1; size <= n; size++)
      for (int step = 1; step <= size + 1; step++)
        TG_SCOPE(c) {
          TgTensor *x = tg_from_f64(c, v, TG_F64, TG_SHAPE(n, 3)), *w = tg_unfold(x, 0, size, step), *g;
          TgTensor *y = tg_sum(tg_mul(tg_contiguous(tg_exp(w)), w));
          assert_int_equal(tg_gradient(y, &x, 1, &g), TG_OK);
          if (tg_read_f64(g, got, (size_t)n * 3))
            fail_msg("windows of %d in %d, step %d: %s", size, n, step, tg_errmsg(c));
          for (int k = 0; k < n * 3; k++) {
            int windows = 0;
            for (int at = 0; at + size <= n; at += step)
              windows += k / 3 >= at && k / 3 < at + size;
            if (!near(got[k], windows * (v[k] + 1) * exp(v[k]), 1e-12))
              fail_msg("windows of %d in %d, step %d: slope %d is %g", size, n, step, k, got[k]);
          }
        }
  tg_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients), cmocka_unit_test(test_reads_inside),
                                     cmocka_unit_test(test_windows),
                                     cmocka_unit_test(test_gradients_of_windows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
