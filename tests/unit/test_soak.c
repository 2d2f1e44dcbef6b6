/* test_soak.c: a process that goes on for ever. New shapes, steps, captured functions and contexts, again and
 * again: what the library holds, counted by an allocator of the host's, is the same at the half and at the
 * end. LONG=1: as many as a day's work has (10,000 steps, 2,000 shapes, 500 captures, 300 contexts). TG_TEST:
 * one of the tests alone. */
#include "tg_nn.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct Held {
  _Atomic long blocks, bytes;
} Held;

static void *held_alloc(size_t n, void *user) {
  Held *h = user;
  size_t *p = n > SIZE_MAX - 16 ? NULL : malloc(n + 16);
  if (!p) return NULL;
  *p = n;
  h->blocks++;
  h->bytes += (long)n;
  return p + 2;
}

static void held_free(void *p, void *user) {
  Held *h = user;
  if (!p) return;
  h->blocks--;
  h->bytes -= (long)((size_t *)p)[-2];
  free((size_t *)p - 2);
}

static void *held_realloc(void *p, size_t n, void *user) {
  void *to = held_alloc(n, user);
  size_t had = p ? ((size_t *)p)[-2] : 0;
  if (!to) return NULL;
  if (p) memcpy(to, p, had < n ? had : n);
  held_free(p, user);
  return to;
}

static long many(long few, long lots) { return getenv("LONG") ? lots : few; }

static TgContext *open_on(const char *device, Held *h) {
  TgAllocator a = {held_alloc, held_realloc, held_free, h};
  TgContext *ctx = tg_open(&(TgOpenOptions){
      .size = sizeof(TgOpenOptions), .device = device, .allocator = &a, .threads = 1, .seed = 7});
  if (tg_error(ctx)) fail_msg("%s: %s", device, tg_errmsg(ctx));
  return ctx;
}

/* Bytes that are held once nothing is running: `most` more than at the half are too many. */
static void flat(const char *what, const char *device, long half, long end, long most) {
  if (getenv("LONG"))
    print_message("%s on %s: %ld bytes at the half, %ld at the end\n", what, device, half, end);
  if (end - half > most) fail_msg("%s on %s: %ld bytes at the half, %ld at the end", what, device, half, end);
}

/* Three programs with memory between their kernels, of a shape that no other turn has. All shapes are small: the
 * product has as many elements as the rows squared, and INTERP computes each of them. */
static void shapes(TgContext *ctx, long i) {
  enum { ROWS = 50 };

  TG_SCOPE(ctx) {
    TgTensor *x = tg_rand(ctx, TG_SHAPE(3 + i % ROWS, 8 + i / ROWS));
    TgTensor *y = tg_contiguous(tg_add_scalar(x, 1));
    tg_item_f64(tg_sum(tg_exp(y)));
    tg_item_f64(tg_mean(tg_matmul(tg_contiguous(tg_relu(y)), tg_transpose(x, 0, 1))));
    tg_item_f64(tg_sum(tg_cumsum(tg_softmax(y), 0)));
  }
}

static void new_shapes(const char *device, long n) {
  Held h = {0};
  TgContext *ctx = open_on(device, &h);
  long half = 0;
  for (long i = 0; i < n; i++) {
    shapes(ctx, i * 7919 % n); /* each once, in no order */
    if (i == n / 2) tg_collect(ctx), half = h.bytes;
  }
  if (tg_error(ctx)) fail_msg("%s: %s", device, tg_errmsg(ctx));
  tg_collect(ctx);
  long end = h.bytes;
  tg_close(ctx);
  assert_int_equal(h.blocks, 0);
  flat("new shapes", device, half, end,
       1 << 20); /* a plan's size goes with its shape's digits, not its size */
}

static void test_shapes(void **state) {
  (void)state;
  new_shapes("INTERP", many(600, 2000));
  new_shapes("NULL:CUDA", many(400, 2000));
}

/* Where each kernel of a shape is compiled: with LONG=1 that takes some ten minutes, nearly all in the compiler. */
static void test_shapes_compiled(void **state) {
  (void)state;
  new_shapes("CPU", many(8, 2000));
}

/* More memory than the largest plan needs twice is not kept, and tg_collect gives all of it back. */
static void test_pool(void **state) {
  (void)state;
  Held h = {0};
  TgContext *ctx = open_on("INTERP", &h);

  enum { N = 40, MOST = 64 << 10 };

  for (int i = 1; i <= N; i++)
    TG_SCOPE(ctx)
  tg_item_f64(tg_sum(tg_exp(tg_contiguous(tg_rand(ctx, TG_SHAPE(MOST / 4 / N * i))))));
  tg_collect(ctx);
  tg_counters_reset(ctx);
  assert_true(tg_counters(ctx).peak_bytes < 16 << 10); /* the state of the generator, no slab */
  uint64_t most = 0;
  for (int i = N; i > 0; i--) {
    TG_SCOPE(ctx)
    tg_item_f64(tg_sum(tg_exp(tg_contiguous(tg_rand(ctx, TG_SHAPE(MOST / 4 / N * i))))));
    if (i == N / 2) most = tg_counters(ctx).peak_bytes;
  }
  assert_true(most < 8 * MOST);
  assert_int_equal(tg_pool_limit(ctx, NULL, 1), TG_OK); /* nothing is kept */
  assert_int_equal(tg_pool_limit(ctx, "nowhere", 1), TG_ERR_VALUE);
  tg_clear_error(ctx);
  TG_SCOPE(ctx) tg_item_f64(tg_sum(tg_exp(tg_contiguous(tg_rand(ctx, TG_SHAPE(MOST / 4))))));
  tg_close(ctx);
  assert_int_equal(h.blocks, 0);
}

typedef struct Model {
  TgTensor *w;
  TgOptim *o;
} Model;

static TgStatus step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Model *m = user;
  (void)ctx, (void)nin, (void)nout;
  TgTensor *loss = tg_mse(tg_contiguous(tg_matmul(in[0], m->w)), tg_softmax(in[0]));
  tg_backward(loss);
  out[0] = tg_detach(loss);
  return tg_optim_step(m->o);
}

static void steps(const char *device, bool captured, long n) {
  Held h = {0};
  TgContext *ctx = open_on(device, &h);
  TgTensor *w = tg_keep(tg_requires_grad(tg_rand(ctx, TG_SHAPE(8, 8)), true));
  TgOptim *o = tg_adam(ctx, &w, 1, .lr = 1e-3);
  Model m = {w, o};
  TgJit *j = captured ? tg_jit(ctx, step, &m) : NULL;
  long half = 0;
  for (long i = 0; i < n; i++) {
    TG_SCOPE(ctx) {
      TgTensor *x = tg_from_f64(ctx, (double[64]){(double)i, 1}, TG_F32, TG_SHAPE(8, 8)), *loss = NULL;
      TgStatus s = captured ? tg_jit_run(j, &x, 1, &loss, 1) : step(ctx, &x, 1, &loss, 1, &m);
      if (s || tg_item_f64(loss) != tg_item_f64(loss))
        fail_msg("%s: step %ld: %s", device, i, tg_errmsg(ctx));
    }
    if (i == n / 2) tg_collect(ctx), half = h.bytes;
  }
  tg_collect(ctx);
  long end = h.bytes;
  tg_jit_free(j), tg_optim_free(o), tg_release(w);
  tg_close(ctx);
  assert_int_equal(h.blocks, 0);
  flat(captured ? "captured steps" : "steps", device, half, end, 1 << 10);
}

static void test_steps(void **state) {
  (void)state;
  static const char *const devices[] = {"CPU", "INTERP"};
  for (int d = 0; d < 2; d++)
    for (int captured = 0; captured < 2; captured++)
      steps(devices[d], captured, many(300, 10000));
}

static void test_captures(void **state) {
  (void)state;
  Held h = {0};
  TgContext *ctx = open_on("INTERP", &h);
  TgTensor *w = tg_keep(tg_requires_grad(tg_rand(ctx, TG_SHAPE(8, 8)), true));
  TgOptim *o = tg_adam(ctx, &w, 1, .lr = 1e-3);
  long n = many(60, 500), half = 0;
  for (long i = 0; i < n; i++) {
    Model m = {w, o};
    TgJit *j = tg_jit(ctx, step, &m);
    for (int k = 0; k < 3; k++)
      TG_SCOPE(ctx) {
        TgTensor *x = tg_ones(ctx, TG_SHAPE(8, 8)), *loss;
        x = tg_clone(x);
        assert_int_equal(tg_jit_run(j, &x, 1, &loss, 1), TG_OK);
      }
    tg_jit_free(j);
    if (i == n / 2) tg_collect(ctx), half = h.bytes;
  }
  tg_collect(ctx);
  long end = h.bytes;
  tg_optim_free(o), tg_release(w);
  tg_close(ctx);
  assert_int_equal(h.blocks, 0);
  flat("captures", "INTERP", half, end, 1 << 10);
}

static void test_contexts(void **state) {
  (void)state;
  static const char *const devices[] = {"CPU", "INTERP", "NULL:METAL"};
  Held h = {0};
  for (long i = 0; i < many(30, 300); i++) {
    TgContext *ctx = open_on(devices[i % 3], &h);
    shapes(ctx, i % 5);
    tg_close(ctx);
    assert_int_equal(h.blocks, 0);
  }
}

int main(void) {
  if (getenv("TG_TEST")) cmocka_set_test_filter(getenv("TG_TEST")); /* a name, with * */
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),          cmocka_unit_test(test_pool),
                                     cmocka_unit_test(test_shapes_compiled), cmocka_unit_test(test_steps),
                                     cmocka_unit_test(test_captures),        cmocka_unit_test(test_contexts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
