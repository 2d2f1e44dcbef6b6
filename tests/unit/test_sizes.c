/* test_sizes.c: programs of many loops, many outputs and long chains compile; their kernels keep their opts,
 * and are small texts. Text is what the C compiler's time goes by. Values: fused and shaped on the CPU
 * against the interpreter, a kernel per stage. */
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_SOURCE = 200 << 10, MAX_RESULTS = 64 };

/* plain: with loops, and no opts */
typedef struct Seen {
  int kernels, plain;
  size_t bytes;
} Seen;

static void seen(const TgKernelText *k, void *user) {
  Seen *s = user;
  s->kernels++, s->plain += !*k->opts && strstr(k->source, "for ("), s->bytes += strlen(k->source);
}

static TgTensor *input(TgContext *ctx, unsigned seed, int ndim, const int64_t *dims) {
  static float v[1 << 16];
  int64_t n = 1;
  for (int i = 0; i < ndim; i++)
    n *= dims[i];
  assert_in_range(n, 1, sizeof v / sizeof *v);
  for (int64_t i = 0; i < n; i++)
    seed = seed * 1664525u + 1013904223u, v[i] = (float)(seed >> 8) / 8388608.f - 1;
  return tg_from(ctx, v, TG_F32, ndim, dims);
}

/* ---- programs: they fill t and say how many */
typedef int (*Make)(TgContext *ctx, int n, TgTensor **t);

/* gradients, by their norm over all of them */
static int clipped(TgContext *ctx, int n, const int64_t *dims, int ndim, TgTensor **t) {
  TgTensor *sum = NULL;
  for (int i = 0; i < n; i++) {
    TgTensor *s = tg_sum(tg_square(t[i] = input(ctx, (unsigned)i, ndim, dims)));
    sum = sum ? tg_add(sum, s) : s;
  }
  TgTensor *scale = tg_minimum_scalar(tg_rdiv_scalar(tg_sqrt(sum), 1), 1);
  for (int i = 0; i < n; i++)
    t[i] = tg_mul(t[i], scale);
  return n;
}

static int clip_matrices(TgContext *ctx, int n, TgTensor **t) {
  return clipped(ctx, n, (int64_t[]){8, 8}, 2, t);
}

static int clip_filters(TgContext *ctx, int n, TgTensor **t) {
  return clipped(ctx, n, (int64_t[]){16, 16, 3, 3}, 4, t);
}

static int multiples(TgContext *ctx, int n, TgTensor **t) { /* many outputs that share a row */
  TgTensor *s = tg_softmax(input(ctx, 1, TG_SHAPE(16, 1001)));
  for (int i = 0; i < n; i++)
    t[i] = tg_mul_scalar(s, i + 2);
  return n;
}

static int transposes(TgContext *ctx, int n, TgTensor **t) {
  TgTensor *s = tg_softmax(input(ctx, 1, TG_SHAPE(16, 8, 30)), .axis = TG_AXES(1, 2));
  for (int i = 0; i < n; i++)
    t[i] = tg_contiguous(tg_mul_scalar(tg_transpose(s, 1, 2), i + 2));
  return n;
}

static int dense_layers(TgContext *ctx, int n, TgTensor **t) {
  TgTensor *x = input(ctx, 1, TG_SHAPE(4, 8));
  for (int i = 0; i < n; i++) {
    TgTensor *w = tg_mul_scalar(input(ctx, (unsigned)i, TG_SHAPE(tg_dim(x, 1), 4)), 0.1);
    x = tg_cat((TgTensor *[]){x, tg_relu(tg_matmul(x, w))}, 2, 1);
  }
  return t[0] = x, 1;
}

static int norms(TgContext *ctx, int n, TgTensor **t) {
  t[0] = input(ctx, 1, TG_SHAPE(16, 1001));
  for (int i = 0; i < n; i++)
    t[0] = tg_layer_norm(tg_softmax(t[0]));
  return 1;
}

/* of a transposed convolution: its gates say nothing of its readers */
static int largest_twice(TgContext *ctx, int n, TgTensor **t) {
  (void)n;
  TgTensor *y = tg_conv_transpose2d(input(ctx, 1, TG_SHAPE(1, 1, 3)), input(ctx, 2, TG_SHAPE(1, 1, 2)),
                                    .stride = TG_SIZES(2));
  TgTensor *m = tg_max(y);
  t[0] = m, t[1] = tg_stack((TgTensor *[]){m, m}, 2, 0);
  return 2;
}

static int log_sums(TgContext *ctx, int n, TgTensor **t) {
  return t[0] = tg_logcumsumexp(input(ctx, 1, TG_SHAPE(n)), 0), 1;
}

static int variance(TgContext *ctx, int n, TgTensor **t) {
  return t[0] = tg_var(input(ctx, 1, TG_SHAPE(15, 25, n))), 1;
}

static int jumps(TgContext *ctx, int n, TgTensor **t) { /* each step goes twice as far */
  int at[32];
  for (int i = 0; i < 32; i++)
    at[i] = (i * 7 + 3) % 32;
  TgTensor *p = tg_from(ctx, at, TG_I32, TG_SHAPE(32));
  for (int i = 0; i < n; i++)
    p = tg_take(p, p);
  return t[0] = tg_cast(p, TG_F32), 1;
}

static int dense_block(TgContext *ctx, int n, TgTensor **t) { /* of a DenseNet, and the pools behind it */
  TgTensor *x = input(ctx, 1, TG_SHAPE(1, 8, 28, 28));
  for (int i = 0; i < n; i++) {
    int64_t channels = tg_dim(x, 1);
    TgTensor *scale = input(ctx, 3, TG_SHAPE(1, channels, 1, 1));
    TgTensor *narrow = input(ctx, 4, TG_SHAPE(16, channels, 1, 1));
    TgTensor *wide = input(ctx, 5, TG_SHAPE(8, 16, 3, 3));
    TgTensor *h = tg_relu(tg_conv2d(tg_relu(tg_mul(x, scale)), tg_mul_scalar(narrow, 0.1)));
    x = tg_cat((TgTensor *[]){x, tg_conv2d(h, tg_mul_scalar(wide, 0.1), .padding = TG_SIZES(1))}, 2, 1);
    if (i % 4 == 3) x = tg_avg_pool2d(x, .kernel = TG_SIZES(2), .stride = TG_SIZES(2));
  }
  return t[0] = x, 1;
}

enum { ANY = 1000 };

static const struct {
  const char *name;
  Make make;
  int n;
  int plain;
  size_t most;
} programs[] = {
    /* plain: as many kernels may have no opts, their loops being short or in order; most: bytes of all texts */
    {"clip 8 matrices", clip_matrices, 8, 0, 0},   {"clip 33 matrices", clip_matrices, 33, 0, 0},
    {"clip 62 matrices", clip_matrices, 62, 0, 0}, {"clip 12 filters", clip_filters, 12, 0, 0},
    {"clip 20 filters", clip_filters, 20, 0, 0},   {"5 multiples", multiples, 5, 0, 0},
    {"20 multiples", multiples, 20, 0, 0},         {"60 multiples", multiples, 60, 0, 0},
    {"20 transposes", transposes, 20, 0, 0},       {"60 transposes", transposes, 60, 0, 0},
    {"33 dense layers", dense_layers, 33, ANY, 0}, {"6 norms", norms, 6, 0, 0},
    {"largest twice", largest_twice, 0, ANY, 0},   {"31 log sums", log_sums, 31, ANY, 90000},
    {"45 log sums", log_sums, 45, 1, 110000},      {"1000 log sums", log_sums, 1000, 1, 250000},
    {"variance", variance, 35, 0, 10000},          {"9 jumps", jumps, 9, ANY, 60000},
    {"dense block", dense_block, 8, ANY, 420000}};

static TgContext *open_on(const char *dev, int fuse) {
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = dev});
  assert_int_equal(tg_error(ctx), TG_OK);
  assert_int_not_equal(tg_setting(ctx, "FUSE", fuse), -1);
  return ctx;
}

static void test_texts(void **state) {
  (void)state;
  static const char *const devices[] = {"NULL:C", "NULL:CUDA"};
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
      TgContext *ctx = open_on(devices[d], 1);
      TgTensor *t[MAX_RESULTS];
      Seen s = {0};
      tg_watch_kernels(ctx, seen, &s);
      int n = programs[i].make(ctx, programs[i].n, t);
      if (tg_realize_many(t, (size_t)n))
        fail_msg("%s on %s: %s", programs[i].name, devices[d], tg_errmsg(ctx));
      if (s.plain > programs[i].plain)
        fail_msg("%s on %s: %d of %d kernels have no opts", programs[i].name, devices[d], s.plain, s.kernels);
      size_t largest = tg_counters(ctx).largest_source;
      size_t most = programs[i].most ? programs[i].most : MOST_SOURCE;
      if (largest > MOST_SOURCE)
        fail_msg("%s on %s: a kernel of %zu bytes", programs[i].name, devices[d], largest);
      if (s.bytes > most)
        fail_msg("%s on %s: %zu bytes, at most %zu", programs[i].name, devices[d], s.bytes, most);
      tg_close(ctx);
    }
}

static float *values(const char *dev, int fuse, size_t which, int64_t *nelem) {
  TgContext *ctx = open_on(dev, fuse);
  TgTensor *t[MAX_RESULTS];
  int n = programs[which].make(ctx, programs[which].n, t);
  if (tg_realize_many(t, (size_t)n)) fail_msg("%s on %s: %s", programs[which].name, dev, tg_errmsg(ctx));
  *nelem = 0;
  for (int i = 0; i < n; i++)
    *nelem += tg_numel(t[i]);
  float *v = malloc((size_t)*nelem * sizeof *v), *at = v;
  for (int i = 0; i < n; at += tg_numel(t[i++]))
    assert_int_equal(tg_read(t[i], at, (size_t)tg_numel(t[i]) * sizeof *v), TG_OK);
  tg_close(ctx);
  return v;
}

static void test_values(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    int64_t n, m;
    float *got = values("CPU", 1, i, &n), *want = values("INTERP", 0, i, &m);
    assert_int_equal(n, m);
    for (int64_t k = 0; k < n; k++)
      if (!(fabsf(got[k] - want[k]) <= 1e-5f * fmaxf(1, fabsf(want[k]))))
        fail_msg("%s: element %lld is %.9g, not %.9g", programs[i].name, (long long)k, got[k], want[k]);
    free(got), free(want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
