/* test_batches.c: a batch whose size is a variable. In: layers, and a network that is trained. Out: whether
 * each gives what it gives on batches of numbers, in one capture for all of them. On INTERP, or $TG_DEV. */
#include "tg_nn.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 7, ELEMENTS = 24, STEPS = 9 };

static const char *device(void) {
  const char *dev = getenv("TG_DEV");
  return dev ? dev : "INTERP";
}

static TgTensor *numbers(TgContext *c, int64_t n, double by) {
  double x[MOST * ELEMENTS];
  for (int64_t i = 0; i < n; i++)
    x[i] = sin((double)i * by + by);
  return tg_from_f64(c, x, TG_F32, TG_SHAPE(n));
}

/* ---- layers: x (b, 4, 6), or (b, 4, 2, 3) */
typedef struct Layers {
  TgConv2d conv;
  TgConvTranspose2d back;
  TgGroupNorm group;
  TgBatchNorm batch;
  TgLayerNorm2d layer;
  TgMultiheadAttention attention;
  TgLSTM lstm;
  TgGRU gru;
  TgLSTMCell cell;
} Layers;

enum { KINDS = 10 };

static TgTensor *applied(const Layers *l, int kind, TgTensor *x) {
  int64_t b = tg_size_of(x, 0);
  TgTensor *image = tg_reshape(x, TG_SHAPE(b, 4, 2, 3)), *time = tg_transpose(x, 0, 1), *h = NULL, *c = NULL;
  switch (kind) {
  case 0: return tg_conv2d_run(&l->conv, image);
  case 1: return tg_conv_transpose2d_run(&l->back, image);
  case 2: return tg_group_norm_run(&l->group, image);
  case 3: return tg_batch_norm_run(&l->batch, image);
  case 4: return tg_layer_norm2d_run(&l->layer, image);
  case 5: return tg_multihead_attention_run(&l->attention, x, x, x, .causal = true, .weights = &h);
  case 6: return tg_multihead_attention_run(&l->attention, x, x, x, .causal = true, .weights = &h) ? h : NULL;
  case 7: return tg_lstm_run(&l->lstm, time, NULL, NULL, &h, &c) ? tg_add(h, c) : NULL;
  case 8: return tg_gru_run(&l->gru, time, NULL, NULL);
  default: return tg_lstm_cell_run(&l->cell, tg_select(x, 1, 0), NULL, NULL, &c);
  }
}

static void layers(void **state) {
  (void)state;
  TgContext *c = tg_open_with(.device = device(), .seed = 3);
  Layers l = {tg_conv2d_new(c, 4, 3, 2, true, NULL),
              tg_conv_transpose2d_new(c, 4, 3, 2, true, NULL),
              tg_group_norm_new(c, 2, 4),
              tg_batch_norm_new(c, 4),
              tg_layer_norm2d_new(c, 4),
              tg_multihead_attention_new(c, 6, 2, .batch_first = true),
              tg_lstm_new(c, 6, 3, .bidirectional = true),
              tg_gru_new(c, 6, 3, .layers = 2),
              tg_lstm_cell_new(c, 6, 3, true)};
  TgVariable *n = tg_variable(c, "n", 1, MOST);
  TgTensor *all = tg_reshape(numbers(c, MOST * ELEMENTS, .3), TG_SHAPE(MOST, 4, 6));
  for (int training = 0; training < 2; training++)
    for (int kind = 0; kind < KINDS; kind++)
      TG_SCOPE(c) {
        tg_set_training(c, training);
        TgTensor *y = applied(&l, kind, tg_slice(all, 0, 0, tg_size(n)));
        for (int b = MOST; b > 0; b -= 3)
          TG_SCOPE(c) {
            assert_int_equal(tg_variable_bind(n, b), TG_OK);
            TgTensor *want = applied(&l, kind, tg_slice(all, 0, 0, b));
            double got[4 * MOST * ELEMENTS], of[4 * MOST * ELEMENTS];
            size_t count = (size_t)tg_numel(want);
            assert_int_equal(tg_numel(y), count);
            if (tg_read_f64(y, got, count) || tg_read_f64(want, of, count))
              fail_msg("kind %d, %d rows: %s", kind, b, tg_errmsg(c));
            for (size_t i = 0; i < count; i++)
              if (!(fabs(got[i] - of[i]) <= 1e-4 * fmax(1, fabs(of[i]))))
                fail_msg("kind %d, %d rows: element %d is %.9g, not %.9g", kind, b, (int)i, got[i], of[i]);
          }
      }
  /* a sequence of variable length is another graph for each length */
  TG_SCOPE(c) {
    assert_null(tg_gru_run(&l.gru, tg_reshape(tg_slice(all, 0, 0, tg_size(n)), TG_SHAPE(tg_size(n), 4, 6)),
                           NULL, NULL));
    assert_non_null(strstr(tg_errmsg(c), "a number of steps is needed"));
    tg_clear_error(c);
  }
  tg_close(c);
}

/* ---- training: a convolution, a norm by the batch, a pool and a classifier, on batches of changing size. No
 * bias before the norm: its gradient is rounding noise, which Adam makes steps of. */
typedef struct Net {
  TgContext *ctx;
  TgConv2d conv;
  TgBatchNorm norm;
  TgLinear out;
  TgOptim *optim;
  TgTensor *x, *labels;
  TgVariable *n;
  int64_t now; /* 0: n */
} Net;

static TgStatus step(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)in, (void)nin, (void)nout;
  const Net *t = user;
  int64_t b = t->now ? t->now : tg_size(t->n);
  TgTensor *x = tg_slice(t->x, 0, 0, b), *label = tg_slice(t->labels, 0, 0, b);
  TgTensor *h = tg_relu(tg_batch_norm_run(&t->norm, tg_conv2d_run(&t->conv, x)));
  h = tg_flatten(tg_max_pool2d(h, .kernel = TG_SIZES(2)), 1, -1);
  out[0] = tg_sparse_cross_entropy(tg_linear_run(&t->out, h), label);
  if (tg_backward(out[0]) || tg_optim_step(t->optim)) return tg_error(c);
  return tg_error(c);
}

/* The losses, and at last what inference gives for all rows. */
static void trained(bool symbolic, double *loss) {
  Net t = {.ctx = tg_open_with(.device = device(), .seed = 3)};
  TgContext *c = t.ctx;
  static const int sizes[STEPS] = {7, 4, 7, 2, 5, 7, 2, 3, 7};
  double label[MOST];
  for (int i = 0; i < MOST; i++)
    label[i] = i * 5 % 3;
  t.conv = tg_conv2d_new(c, 1, 4, 3, false, NULL), t.norm = tg_batch_norm_new(c, 4);
  t.out = tg_linear_new(c, 8, 3, true);
  TgTensor *p[] = {t.conv.weight, t.norm.weight, t.norm.bias, t.out.weight, t.out.bias};
  t.optim = tg_adam(c, p, 5, .lr = .02);
  t.x = tg_reshape(numbers(c, MOST * ELEMENTS, .7), TG_SHAPE(MOST, 1, 4, 6));
  t.labels = tg_from_f64(c, label, TG_I32, TG_SHAPE(MOST));
  t.n = tg_variable(c, "n", 2, MOST);
  tg_set_training(c, true);
  TgJit *j = tg_jit(c, step, &t);
  for (int i = 0; i < STEPS; i++)
    TG_SCOPE(c) {
      TgTensor *out = NULL;
      if (i == 3) tg_counters_reset(c);
      t.now = symbolic ? 0 : sizes[i];
      tg_variable_bind(t.n, sizes[i]);
      if (symbolic ? tg_jit_run(j, NULL, 0, &out, 1) : step(c, NULL, 0, &out, 1, &t)) break;
      loss[i] = tg_item_f64(out);
    }
  if (symbolic) assert_int_equal(tg_counters(c).schedules + tg_counters(c).compiled, 0);
  tg_set_training(c, false);
  t.now = MOST;
  loss[STEPS] = tg_item_f64(tg_sum(tg_square(tg_batch_norm_run(&t.norm, tg_conv2d_run(&t.conv, t.x)))));
  if (tg_error(c)) fail_msg("%s: %s", symbolic ? "a variable" : "numbers", tg_errmsg(c));
  tg_jit_free(j);
  tg_optim_free(t.optim);
  tg_close(c);
}

static void training(void **state) {
  (void)state;
  double got[STEPS + 1], want[STEPS + 1];
  trained(true, got), trained(false, want);
  for (int i = 0; i <= STEPS; i++)
    if (!(fabs(got[i] - want[i]) <= 1e-3 * (1 + fabs(want[i]))))
      fail_msg("step %d: %.9g, not %.9g", i, got[i], want[i]);
  assert_true(want[0] > 1.2 * want[STEPS - 1]); /* it learns */
}

/* ---- captured functions that are given a batch and give one */
typedef struct Two {
  TgTensor *w, *bias;
  TgVariable *n;
} Two;

/* rows (n, 6) -> relu (n, 4); the columns' sums (4); rows again, turned: (6, n) */
static TgStatus classified(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  const Two *t = user;
  out[0] = tg_relu(tg_add(tg_matmul(in[0], t->w), t->bias));
  out[1] = tg_sum(out[0], .axis = TG_AXES(0));
  out[2] = tg_mul_scalar(tg_transpose(in[0], 0, 1), 2);
  return tg_error(c);
}

/* (n, 4) -> (n): the largest of each row */
static TgStatus largest(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  out[0] = tg_max(in[0], .axis = TG_AXES(1));
  return tg_error(c);
}

static void rows_alike(TgContext *c, TgTensor *got, TgTensor *want, int run) {
  double a[MOST * ELEMENTS], b[MOST * ELEMENTS];
  size_t n = (size_t)tg_numel(want);
  if (tg_numel(got) != (int64_t)n || tg_ndim(got) != tg_ndim(want))
    fail_msg("run %d: %d elements, not %d", run, (int)tg_numel(got), (int)n);
  if (n && (tg_read_f64(got, a, n) || tg_read_f64(want, b, n))) fail_msg("run %d: %s", run, tg_errmsg(c));
  for (size_t i = 0; i < n; i++)
    if (!(fabs(a[i] - b[i]) <= 1e-5 * fmax(1, fabs(b[i]))))
      fail_msg("run %d: element %d is %.9g, not %.9g", run, (int)i, a[i], b[i]);
}

/* kind 0: a part of a buffer of the very size, 1: of a larger one, 2: an expression. */
static TgTensor *given_rows(const Two *t, TgTensor *all, TgTensor *larger, int kind) {
  TgTensor *x = tg_slice(kind == 1 ? larger : all, 0, 0, tg_size(t->n));
  return kind == 2 ? tg_mul_scalar(x, .5) : x;
}

/* The text with `from` once as `to`. */
static char *changed(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  if (!at) fail_msg("no %s in\n%s", from, text);
  char *s = malloc(strlen(text) + strlen(to) + 1);
  sprintf(s, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  return s;
}

static TgJit *read_again(TgContext *c, TgJit *j, const char *text) {
  const char *names[8];
  TgTensor *memory[8];
  int n = 0;
  while (n < 8 && (memory[n] = tg_jit_memory(j, (size_t)n, &names[n])))
    n++;
  return tg_jit_from_text(c, text, names, memory, n);
}

/* The same program, read again from its text, has a variable of its own. */
static void as_text(TgContext *c, TgJit *j, const Two *t, TgTensor *all) {
  static const struct {
    const char *from, *to, *error;
  } damaged[] = {{"(v0, 6)", "(v1, 6)", "v1, but there are 1 variables"},
                 {"(v0, 6)", "(v0 - 1, 6)", "a size that is negative"},
                 {"(v0, 6)", "(-2*v0, 6)", "a size that is negative"},
                 {"(v0, 6)", "(v0*v0*v0*v0*v0*v0*v0, 6)", "too long a sum"},
                 {"(v0, 6)", "(v0 +, 6)", "expected a number"},
                 {"(6, v0)", "(6, 2*v0)", "root 2 has 42 f32"}};

  TgJitValue v;
  const char *said = tg_jit_to_text(j, NULL, NULL, 0);
  if (!said) fail_msg("%s", tg_errmsg(c));
  char *text = strdup(said);
  assert_non_null(strstr(text, "variable \"n\" 0 7 1\nm0 = input f32 (v0, 6) \"input0\""));
  assert_non_null(strstr(text, "output f32 (6, v0) \"output2\""));
  TgJit *again = read_again(c, j, text);
  if (!again) fail_msg("%s\n%s", tg_errmsg(c), text);
  TgVariable *n = tg_jit_variable(again, 0);
  assert_true(tg_jit_input(again, 0, &v) && v.ndim == 2 && v.dims[0] == tg_size(n) && v.dims[1] == 6);
  for (int rows = 0; rows <= MOST; rows++)
    TG_SCOPE(c) {
      assert_int_equal(tg_variable_bind(n, rows), TG_OK);
      TgTensor *x = tg_slice(all, 0, 0, tg_size(n)), *part = tg_slice(all, 0, 0, rows), *out[3], *want[3];
      if (tg_jit_run(again, &x, 1, out, 3)) fail_msg("%d rows from text: %s", rows, tg_errmsg(c));
      assert_int_equal(classified(c, &part, 1, want, 3, (void *)t), TG_OK);
      for (int o = 0; o < 3; o++)
        rows_alike(c, out[o], want[o], rows);
    }
  assert_string_equal(tg_jit_to_text(again, NULL, NULL, 0), text);
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    char *bad = changed(text, damaged[i].from, damaged[i].to);
    assert_null(read_again(c, j, bad));
    if (!strstr(tg_errmsg(c), damaged[i].error)) fail_msg("%s: %s", damaged[i].to, tg_errmsg(c));
    tg_clear_error(c);
    free(bad);
  }
  tg_jit_free(again);
  free(text);
}

static void captured(void **state) {
  (void)state;
  static const int sizes[] = {3, 0, 7, 5, 1, 0, 6, 7, 2};
  for (size_t first = 0; first < 3; first++) { /* captured with rows, without, with all */
    TgContext *c = tg_open_with(.device = device());
    Two t = {tg_reshape(numbers(c, 24, .2), TG_SHAPE(6, 4)), numbers(c, 4, .9), tg_variable(c, "n", 0, MOST)};
    TgTensor *all = tg_reshape(numbers(c, MOST * 6, .4), TG_SHAPE(MOST, 6)), *kept = NULL;
    TgTensor *larger = tg_reshape(numbers(c, 2 * MOST * 6, .3), TG_SHAPE(2 * MOST, 6));
    int of = 0; /* the kind of what was given then */
    tg_realize(all), tg_realize(larger);
    TgJit *j = tg_jit(c, classified, &t), *k = tg_jit(c, largest, NULL);
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
      TG_SCOPE(c) {
        int n = sizes[(i + (int)first) % (int)(sizeof sizes / sizeof *sizes)];
        assert_int_equal(tg_variable_bind(t.n, n), TG_OK);
        if (i == 5) tg_counters_reset(c);
        TgTensor *x = given_rows(&t, all, larger, i % 3), *out[3], *most;
        if (tg_jit_run(j, &x, 1, out, 3) || tg_jit_run(k, out, 1, &most, 1))
          fail_msg("run %d of %d rows: %s", i, n, tg_errmsg(c));
        assert_true(tg_is_symbolic(out[0], 0) && !tg_is_symbolic(out[1], 0) && tg_is_symbolic(out[2], 1));
        TgTensor *rows = tg_slice(i % 3 == 1 ? larger : all, 0, 0, n);
        if (i % 3 == 2) rows = tg_mul_scalar(rows, .5);
        TgTensor *want[3];
        assert_int_equal(classified(c, &rows, 1, want, 3, &t), TG_OK);
        for (int o = 0; o < 3; o++)
          rows_alike(c, out[o], want[o], i);
        if (n) rows_alike(c, most, tg_max(want[0], .axis = TG_AXES(1)), i);
        if (kept) { /* what it held, of as many rows as there are now */
          rows = given_rows(&t, all, larger, of);
          classified(c, &rows, 1, want, 3, &t);
          rows_alike(c, kept, want[0], i);
        }
        if (n != MOST) continue;
        tg_release(kept);
        kept = tg_keep(out[0]);
        of = i % 3;
      }
    tg_release(kept);
    as_text(c, j, &t, all);
    tg_jit_free(j), tg_jit_free(k);
    tg_close(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers), cmocka_unit_test(training),
                                     cmocka_unit_test(captured)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
