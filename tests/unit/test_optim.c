/* test_optim.c: the optimisers' lists of parameters and their state: a parameter given twice is stepped once;
 * what is saved and loaded goes on as if nothing had happened. Expected values are those of the undisturbed
 * run. */
#include "tg_io.h"
#include "tg_nn.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static TgContext *C;

static int open_context(void **state) {
  (void)state;
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP"});
  return tg_error(C);
}

static int close_context(void **state) {
  (void)state;
  tg_close(C);
  return 0;
}

enum { KINDS = 5 };

static TgOptim *optimiser(int kind, TgTensor *const *p, int n) {
  switch (kind) {
  case 0: return tg_sgd(C, p, n, .lr = 0.1);
  case 1: return tg_sgd(C, p, n, .lr = 0.1, .momentum = 0.9);
  case 2: return tg_sgd(C, p, n, .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01);
  case 3: return tg_adam(C, p, n, .lr = 0.1);
  default: return tg_adamw(C, p, n, .lr = 0.1);
  }
}

typedef struct Model {
  TgTensor *w, *b;
} Model;

static Model model_new(void) {
  float w[] = {1, -2, 3}, b[] = {0.5f};
  return (Model){tg_keep(tg_requires_grad(tg_from(C, w, TG_F32, TG_SHAPE(3)), true)),
                 tg_keep(tg_requires_grad(tg_from(C, b, TG_F32, TG_SHAPE(1)), true))};
}

static void model_free(Model *m) { tg_release(m->w), tg_release(m->b); }

static void steps(const Model *m, TgOptim *o, int n) {
  for (int i = 0; i < n; i++)
    TG_SCOPE(C) {
      TgTensor *y = tg_add(tg_mul(m->w, m->w), m->b);
      assert_int_equal(tg_backward(tg_sum(tg_square(y))), TG_OK);
      if (tg_optim_step(o)) fail_msg("%s", tg_errmsg(C));
    }
}

static void same(TgTensor *a, TgTensor *b) {
  float x[8], y[8];
  size_t n = tg_nbytes(a);
  assert_true(n <= sizeof x && tg_nbytes(b) == n);
  assert_int_equal(tg_read(a, x, n), TG_OK);
  assert_int_equal(tg_read(b, y, n), TG_OK);
  assert_memory_equal(x, y, n);
}

static void test_tied(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    Model once = model_new(), twice = model_new();
    TgOptim *a = optimiser(kind, (TgTensor *[]){once.w, once.b}, 2),
            *b = optimiser(kind, (TgTensor *[]){twice.w, twice.b, twice.w, twice.w}, 4);
    assert_non_null(a);
    assert_non_null(b);
    steps(&once, a, 3), steps(&twice, b, 3);
    same(once.w, twice.w), same(once.b, twice.b);
    tg_optim_free(a), tg_optim_free(b);
    model_free(&once), model_free(&twice);
  }
}

static void test_state(void **state) {
  (void)state;
  const size_t entries[KINDS] = {0, 2, 2, 6, 6};
  char path[] = "/tmp/tg-optim-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0 && !close(fd));
  for (int kind = 0; kind < KINDS; kind++) {
    Model first = model_new(), next = model_new();
    TgOptim *a = optimiser(kind, (TgTensor *[]){first.w, first.b}, 2),
            *b = optimiser(kind, (TgTensor *[]){next.w, next.b}, 2);
    steps(&first, a, 3);
    TgState *saved = tg_state_new(C), *loaded = tg_state_new(C);
    assert_int_equal(tg_optim_state(a, saved, "optim"), TG_OK);
    assert_int_equal(tg_state_count(saved), entries[kind]);
    assert_true((kind == 1 || kind == 2) == (tg_state_get(saved, "optim.state.0.momentum_buffer") != NULL));
    assert_true((kind > 2) == (tg_state_get(saved, "optim.state.1.exp_avg_sq") != NULL));
    if (kind > 2)
      assert_true(tg_item_f64(tg_state_get(saved, "optim.beta1_power")) == (double)(0.9f * 0.9f * 0.9f));
    tg_state_put(saved, "w", first.w), tg_state_put(saved, "b", first.b);
    if (tg_safe_save(saved, path)) fail_msg("%s", tg_errmsg(C));
    TgState *file = tg_safe_load_file(C, path);
    assert_int_equal(tg_optim_state(b, loaded, "optim"), TG_OK);
    tg_state_put(loaded, "w", next.w), tg_state_put(loaded, "b", next.b);
    if (tg_load_state(loaded, file)) fail_msg("%s", tg_errmsg(C));
    tg_state_free(file), tg_state_free(saved), tg_state_free(loaded);
    steps(&first, a, 2), steps(&next, b, 2);
    same(first.w, next.w), same(first.b, next.b);
    tg_optim_free(a), tg_optim_free(b);
    model_free(&first), model_free(&next);
  }
  unlink(path);
}

static void refused(TgOptim *o) {
  assert_null(o);
  assert_int_equal(tg_error(C), TG_ERR_VALUE);
  tg_clear_error(C);
}

static void test_refused(void **state) {
  (void)state;
  Model m = model_new();
  refused(tg_sgd(C, NULL, 1));
  refused(tg_adam(C, ((TgTensor *[]){m.w, NULL}), 2));
  for (int i = 0; i < 4; i++)
    refused(tg_adam(C, &m.w, 1, .beta1 = (double[]){1, -.5, NAN, .9}[i],
                    .beta2 = (double[]){.999, .999, .999, 1.5}[i]));
  TgOptim *none = tg_adamw(C, NULL, 0);
  assert_non_null(none);
  assert_int_equal(tg_optim_step(none), TG_OK);
  assert_int_equal(tg_optim_state(none, NULL, ""), TG_ERR_VALUE);
  tg_optim_free(none);
  model_free(&m);
}

/* ---- a training in one file */
static const TgModule *model_module(void) {
  static const TgField fields[] = {TG_PARAMETER(Model, w), TG_PARAMETER(Model, b)};
  static const TgModule m = {"Model", sizeof(Model), fields, 2, NULL};
  return &m;
}

typedef struct Whole {
  Model m;
  TgTraining t;
} Whole;

static void whole_new(Whole *w) {
  w->m = model_new();
  w->t = (TgTraining){.size = sizeof w->t, .module = model_module, .model = &w->m};
  w->t.optim = optimiser(4, &w->m.w, 2);
  w->t.rate = tg_lr_exponential(w->t.optim, 0.5);
  w->t.scaler = tg_scaler(C, .interval = 2);
}

static void whole_free(Whole *w) {
  tg_lr_free(w->t.rate), tg_scaler_free(w->t.scaler), tg_optim_free(w->t.optim), model_free(&w->m);
}

/* Of a loss with noise, so that the state of random numbers counts. */
static void whole_steps(Whole *w, int n) {
  for (int i = 0; i < n; i++, w->t.step++)
    TG_SCOPE(C) {
      TgTensor *y = tg_mul(tg_add(tg_mul(w->m.w, w->m.w), w->m.b), tg_rand(C, TG_SHAPE(3)));
      assert_int_equal(tg_backward(tg_scaler_scale(w->t.scaler, tg_sum(tg_square(y)))), TG_OK);
      if (tg_scaler_step(w->t.scaler, w->t.optim) || tg_lr_step(w->t.rate)) fail_msg("%s", tg_errmsg(C));
    }
}

static void test_training(void **state) {
  (void)state;
  char path[] = "/tmp/tg-training-XXXXXX";
  close(mkstemp(path));
  float want[3], got[3];
  Whole a, b;
  tg_manual_seed(C, 7);
  whole_new(&a);
  whole_steps(&a, 3);
  assert_int_equal(tg_train_save(C, &a.t, path, (const char *[]){"who", "a test", NULL}), TG_OK);
  whole_steps(&a, 3);
  assert_int_equal(tg_read(a.m.w, want, sizeof want), TG_OK);
  tg_manual_seed(C, 99); /* another run, somewhere else */
  whole_new(&b);
  whole_steps(&b, 1);
  if (tg_train_load(C, &b.t, path)) fail_msg("%s", tg_errmsg(C));
  assert_int_equal(b.t.step, 3), assert_int_equal(tg_lr_epoch(b.t.rate), 3);
  whole_steps(&b, 3);
  assert_int_equal(tg_read(b.m.w, got, sizeof got), TG_OK);
  assert_memory_equal(got, want, sizeof got);
  assert_true(tg_scaler_value(a.t.scaler) == tg_scaler_value(b.t.scaler));
  /* what does not fit changes nothing */
  TgTraining bare = b.t;
  bare.scaler = NULL;
  assert_int_equal(tg_train_load(C, &bare, path), TG_ERR_VALUE), tg_clear_error(C);
  assert_int_equal(bare.step, 6);
  bare.size = 0;
  assert_int_equal(tg_train_save(C, &bare, path, NULL), TG_ERR_VALUE);
  assert_non_null(strstr(tg_errmsg(C), ".size = sizeof")), tg_clear_error(C);
  assert_int_equal(tg_train_load(C, &b.t, "/nonexistent/training"), TG_ERR_IO), tg_clear_error(C);
  assert_int_equal(tg_random_resume(C, (TgRandomState){0}), TG_ERR_VALUE), tg_clear_error(C);
  /* a context has 16 devices at most, so none draws 17th */
  assert_int_equal(tg_random_resume(C, (TgRandomState){.order = 17}), TG_ERR_VALUE), tg_clear_error(C);
  TgState *weights = tg_state_new(C); /* a file of another making */
  assert_int_equal(tg_module_state(model_module, &b.m, weights, "model"), TG_OK);
  assert_int_equal(tg_safe_save(weights, path), TG_OK);
  assert_int_equal(tg_train_load(C, &b.t, path), TG_ERR_VALUE);
  assert_non_null(strstr(tg_errmsg(C), "no step")), tg_clear_error(C);
  tg_state_free(weights);
  whole_free(&a), whole_free(&b), unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_training), cmocka_unit_test(test_tied),
                                     cmocka_unit_test(test_state), cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, open_context, close_context);
}
