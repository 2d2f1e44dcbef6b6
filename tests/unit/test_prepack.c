/* test_prepack.c: replays of a captured function keep the copies that its kernels make of weights. What the numbers
 * are is for test_opts (any list) and here (lists that the planner chooses); here is when they are made, made again,
 * or not kept. */
#include "engine/engine.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* It plans for one machine, wherever the test runs. */
#define PLANNED "INTERP:C"

/* A product that copies its weights, which are read by many rows. NX: numbers of the result. */
enum { ROWS = 24, DEPTH = 300, COLUMNS = 130, NX = ROWS * COLUMNS, NW = DEPTH * COLUMNS };

static TgContext *open_on(const char *device) {
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  assert_int_equal(tg_error(ctx), TG_OK);
  assert_int_equal(tg_setting(ctx, "PREPACK", 2), 1);
  return ctx;
}

static TgTensor *numbers(TgContext *ctx, int ndim, const int64_t *dims, int step, TgDType dtype) {
  int64_t n = 1;
  for (int i = 0; i < ndim; i++)
    n *= dims[i];
  double *p = malloc((size_t)n * sizeof *p);
  for (int64_t i = 0; i < n; i++)
    p[i] = (double)(i * step % 17) - 8;
  TgTensor *t = tg_from_f64(ctx, p, dtype, ndim, dims);
  free(p);
  assert_int_equal(tg_realize(t), TG_OK);
  return t;
}

typedef struct Net {
  TgTensor *w;
  bool trains;
} Net;

static TgStatus net(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Net *n = user;
  (void)ctx, (void)nin, (void)nout;
  out[0] = tg_matmul(in[0], n->w);
  if (n->trains) tg_assign(n->w, tg_add_scalar(n->w, 1));
  return TG_OK;
}

static TgTensor *rows(TgContext *ctx) { return numbers(ctx, TG_SHAPE(ROWS, DEPTH), 5, TG_F32); }

static TgTensor *weights(TgContext *ctx, int step) {
  return numbers(ctx, TG_SHAPE(DEPTH, COLUMNS), step, TG_F32);
}

static void run(TgJit *j, TgTensor *x, float *out) {
  TgTensor *y = NULL;
  if (tg_jit_run(j, &x, 1, &y, 1)) fail_msg("%s", tg_errmsg(tg_jit_context(j)));
  assert_int_equal(tg_read(y, out, NX * sizeof *out), TG_OK);
}

static void expect(TgTensor *x, TgTensor *w, const float *got) {
  static float want[NX];
  assert_int_equal(tg_read(tg_matmul(x, w), want, sizeof want), TG_OK);
  assert_memory_equal(want, got, sizeof want); /* whole numbers */
}

static int packed(const TgContext *ctx) { return (int)tg_counters(ctx).packed; }

/* Assigned to, they are made again; before the next replay, and no more often. */
static void test_versions(void **state) {
  (void)state;
  static float got[NX];
  TgContext *ctx = open_on(PLANNED);
  Net n = {.w = weights(ctx, 3)};
  TgTensor *x = rows(ctx), *other = weights(ctx, 7);
  TgJit *j = tg_jit(ctx, net, &n);
  for (int i = 0; i < 5; i++)
    run(j, x, got), expect(x, n.w, got), assert_int_equal(packed(ctx), i > 1);
  assert_int_equal(tg_realize(tg_assign(n.w, other)), TG_OK);
  for (int i = 0; i < 2; i++)
    run(j, x, got), expect(x, other, got), assert_int_equal(packed(ctx), 2);
  tg_assign(n.w, tg_add_scalar(other, 1)); /* waits: the replay runs it first */
  run(j, x, got), expect(x, tg_add_scalar(other, 1), got);
  assert_int_equal(packed(ctx), 3);
  tg_close(ctx);
}

/* What the function stores to itself, or a caller may write to, is copied at each launch. */
static void test_not_kept(void **state) {
  (void)state;
  static float got[NX], lent[NW];
  TgContext *ctx = open_on(PLANNED);
  TgTensor *x = rows(ctx);
  Net trained = {.w = weights(ctx, 3), .trains = true};
  TgJit *j = tg_jit(ctx, net, &trained);
  for (int i = 0; i < 5; i++) {
    TgTensor *before = tg_clone(trained.w);
    assert_int_equal(tg_realize(before), TG_OK);
    run(j, x, got), expect(x, before, got);
  }
  Net borrowed = {.w = tg_borrow(ctx, lent, TG_F32, TG_SHAPE(DEPTH, COLUMNS), NULL, NULL)};
  TgJit *k = tg_jit(ctx, net, &borrowed);
  for (int i = 0; i < 5; i++) {
    for (int e = 0; e < NW; e++)
      lent[e] = (float)((e + i) % 5);
    run(k, x, got);
    expect(x, tg_from(ctx, lent, TG_F32, TG_SHAPE(DEPTH, COLUMNS)), got);
  }
  int had = tg_setting(ctx, "PREPACK", 0);
  assert_int_equal(had, 2);
  Net plain = {.w = weights(ctx, 3)};
  TgJit *l = tg_jit(ctx, net, &plain);
  for (int i = 0; i < 4; i++)
    run(l, x, got), expect(x, plain.w, got);
  assert_int_equal(packed(ctx), 0);
  tg_close(ctx);
}

/* Kernels that are equal, of which each has another factor that stays. */
static TgStatus both_sides(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                           void *user) {
  (void)ctx, (void)nin, (void)nout;
  TgTensor **stays = user;
  out[0] = tg_matmul(in[0], stays[1]);
  out[1] = tg_matmul(stays[0], in[1]);
  return TG_OK;
}

static void test_sides(void **state) {
  (void)state;
  static float got[NX];
  TgContext *ctx = open_on(PLANNED);
  TgTensor *stays[2] = {rows(ctx), weights(ctx, 3)}, *y[2];
  TgJit *j = tg_jit(ctx, both_sides, stays);
  for (int i = 0; i < 5; i++) {
    TgTensor *in[2] = {numbers(ctx, TG_SHAPE(ROWS, DEPTH), 6 + i, TG_F32), weights(ctx, 4 + i)};
    assert_int_equal(tg_jit_run(j, in, 2, y, 2), TG_OK);
    for (int k = 0; k < 2; k++) {
      assert_int_equal(tg_read(y[k], got, sizeof got), TG_OK);
      expect(k ? stays[0] : in[0], k ? in[1] : stays[1], got);
    }
  }
  assert_true(packed(ctx) > 0);
  tg_close(ctx);
}

/* Two functions have a copy each, which goes with them. */
static void test_memory(void **state) {
  (void)state;
  static float got[NX];
  TgContext *ctx = open_on(PLANNED);
  Net n = {.w = weights(ctx, 3)};
  TgTensor *x = rows(ctx);
  TgJit *j[2] = {tg_jit(ctx, net, &n), tg_jit(ctx, net, &n)};
  uint64_t used[3];
  TG_SCOPE(ctx) for (int f = 0; f < 2; f++) {
    for (int i = 0; i < 2; i++)
      run(j[f], x, got);
    used[f] = devices_bytes(ctx);
    run(j[f], x, got), expect(x, n.w, got);
    uint64_t more = devices_bytes(ctx) - used[f];
    assert_in_range(more, NW * sizeof(float), 2 * NW * sizeof(float));
  }
  assert_int_equal(packed(ctx), 2);
  used[2] = devices_bytes(ctx);
  tg_jit_reset(j[0]);
  assert_true(devices_bytes(ctx) <= used[2] - NW * sizeof(float));
  for (int i = 0; i < 3; i++)
    run(j[0], x, got), expect(x, n.w, got);
  assert_int_equal(packed(ctx), 3);
  tg_close(ctx);
}

/* ---- what planners choose, on machines with and without threads and matrix units */
typedef struct Product {
  TgTensor *w;
  int kind;
} Product;

enum { KINDS = 7 };

static TgTensor *product_weights(TgContext *ctx, int kind) {
  switch (kind) {
  case 0: return numbers(ctx, TG_SHAPE(300, 130), 3, TG_F32);
  case 1: return numbers(ctx, TG_SHAPE(130, 300), 3, TG_F32); /* turned */
  case 2: return numbers(ctx, TG_SHAPE(300, 130), 3, TG_BF16);
  case 3: return numbers(ctx, TG_SHAPE(3, 300, 130), 3, TG_F32);
  case 4: return numbers(ctx, TG_SHAPE(130, 300), 3, TG_I8);
  case 5: return numbers(ctx, TG_SHAPE(70, 33, 3, 3), 3, TG_F32);
  default: return numbers(ctx, TG_SHAPE(40, 16, 3, 2), 3, TG_F32);
  }
}

static TgTensor *product_input(TgContext *ctx, int kind) {
  switch (kind) {
  case 2: return numbers(ctx, TG_SHAPE(24, 300), 5, TG_BF16);
  case 3: return numbers(ctx, TG_SHAPE(3, 24, 300), 5, TG_F32);
  case 4: return numbers(ctx, TG_SHAPE(24, 300), 5, TG_I8);
  case 5: return numbers(ctx, TG_SHAPE(1, 33, 7, 6), 5, TG_F32);
  case 6: return numbers(ctx, TG_SHAPE(2, 32, 9, 9), 5, TG_F32);
  default: return numbers(ctx, TG_SHAPE(24, 300), 5, TG_F32);
  }
}

static TgStatus product(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Product *p = user;
  (void)ctx, (void)nin, (void)nout;
  TgTensor *x = in[0], *w = p->w;
  bool turned = p->kind == 1 || p->kind == 4;
  TgDType to = p->kind == 4 ? TG_I32 : TG_F32;
  if (p->kind == 5)
    out[0] = tg_conv2d(x, w, .padding = TG_SIZES(1), .stride = TG_SIZES(2, 1));
  else if (p->kind == 6)
    out[0] = tg_conv2d(x, w, .groups = 2, .padding = TG_SIZES(1), .dilation = TG_SIZES(2));
  else
    out[0] = tg_matmul(x, turned ? tg_permute(w, TG_SHAPE(1, 0)) : w, .dtype = to);
  out[0] = tg_cast(out[0], TG_F32);
  return TG_OK;
}

static void test_chosen(void **state) {
  (void)state;
  static const char *const devices[] = {"CPU", "INTERP:C", "INTERP:AMX", "INTERP:DOT", "INTERP:C99"};

  enum { MOST = 16384 };

  static float want[MOST], got[MOST];
  int kept[KINDS] = {0};
  for (int kind = 0; kind < KINDS; kind++)
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
      TgContext *ctx = open_on(devices[d]);
      Product p = {.w = product_weights(ctx, kind), .kind = kind};
      TgTensor *x = product_input(ctx, kind), *y = NULL;
      TgJit *j = tg_jit(ctx, product, &p);
      assert_int_equal(product(ctx, &x, 1, &y, 1, &p), TG_OK);
      size_t n = (size_t)tg_numel(y) * sizeof *want;
      assert_in_range(n, 1, sizeof want);
      assert_int_equal(tg_read(y, want, n), TG_OK);
      for (int i = 0; i < 4; i++) {
        if (tg_jit_run(j, &x, 1, &y, 1)) fail_msg("%s, kind %d: %s", devices[d], kind, tg_errmsg(ctx));
        assert_int_equal(tg_read(y, got, n), TG_OK);
        if (memcmp(want, got, n)) fail_msg("%s, kind %d: other numbers in run %d", devices[d], kind, i);
      }
      kept[kind] += d > 0 && packed(ctx); /* on machines that are the same everywhere */
      tg_close(ctx);
    }
  assert_true(kept[1] > 0 && kept[2] > 0 && kept[4] > 0 && kept[5] > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_versions), cmocka_unit_test(test_not_kept),
                                     cmocka_unit_test(test_memory), cmocka_unit_test(test_chosen),
                                     cmocka_unit_test(test_sides)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
