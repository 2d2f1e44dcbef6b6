/* test_jit.c: captured functions. What a replay gives is compared with the same function called plainly, bit
 * for bit; that it replays, by counters. On CPU and INTERP. */
#include "tg_io.h"
#include "tg_nn.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *C;

static int open_on(const char *device) {
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = 5});
  return tg_error(C) != TG_OK;
}

static int open_cpu(void **state) {
  (void)state;
  return open_on("CPU");
}

static int open_interp(void **state) {
  (void)state;
  return open_on("INTERP");
}

static int open_cuda(void **state) { /* on the emulated GPU */
  (void)state;
  setenv("TG_EMU", "1", 1);
  return open_on("CUDA");
}

static int open_metal(void **state) { /* on another one */
  (void)state;
  setenv("TG_EMU", "1", 1);
  return open_on("METAL");
}

static int close_it(void **state) {
  (void)state;
  tg_close(C);
  return 0;
}

static void text_is_at(int line, TgTensor *t, const char *want) {
  const char *got = tg_to_text(t);
  if (!got || strcmp(got, want))
    fail_msg("line %d: %s, not %s (%s)", line, got ? got : "nothing", want, tg_errmsg(C));
}

#define TEXT(t, want) text_is_at(__LINE__, (t), (want))
#define X(text)       tg_from_text(C, text)

static void run_at(int line, TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  if (tg_jit_run(j, in, nin, out, nout)) fail_msg("line %d: %s", line, tg_errmsg(C));
}

#define RUN(j, in, nin, out, nout) run_at(__LINE__, (j), (in), (nin), (out), (nout))

static void error_is_at(int line, TgStatus got, TgStatus want, const char *part) {
  if (got != want || tg_error(C) != want || !strstr(tg_errmsg(C), part))
    fail_msg("line %d: status %d, \"%s\", not %d about \"%s\"", line, (int)got, tg_errmsg(C), (int)want,
             part);
  tg_clear_error(C);
}

#define ERROR(s, want, part) error_is_at(__LINE__, (s), (want), (part))

typedef struct Model {
  TgTensor *w, *b, *count;
} Model;

static TgStatus layer(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout;
  Model *m = user;
  out[0] = tg_relu(tg_add(tg_matmul(in[0], m->w), m->b));
  out[1] = tg_sum(out[0]);
  return TG_OK;
}

static void test_replay(void **state) {
  (void)state;
  Model m = {tg_clone(X("[[1.0, 2.0], [3.0, 4.0]]")), tg_clone(X("[1.0, -1.0]")), NULL};
  TgTensor *x[] = {X("[[1.0, 0.0]]"), X("[[0.0, 1.0]]"), X("[[1.0, 1.0]]"), X("[[-2.0, 0.0]]")}, *y[4][2];
  TgJit *j = tg_jit(C, layer, &m);
  for (int i = 0; i < 3; i++)
    RUN(j, &x[i], 1, y[i], 2);
  TgCounters before = tg_counters(C);
  RUN(j, &x[3], 1, y[3], 2);
  TgCounters after = tg_counters(C);
  assert_true(after.launches > before.launches);
  assert_true(after.schedules == before.schedules && after.schedule_hits == before.schedule_hits &&
              after.compiled == before.compiled);
  TEXT(y[0][0], "[[2.0, 1.0]]"); /* none was overwritten by a later run */
  TEXT(y[1][0], "[[4.0, 3.0]]");
  TEXT(y[2][0], "[[5.0, 5.0]]");
  TEXT(y[3][0], "[[0.0, 0.0]]");
  TEXT(y[0][1], "3.0");
  TEXT(y[2][1], "10.0");
  tg_assign(m.b, X("[0.0, 0.0]")); /* state that changes is seen, though the update still waits */
  RUN(j, &x[3], 1, y[3], 2);
  RUN(j, &x[2], 1, y[3], 2);
  TEXT(y[3][0], "[[4.0, 6.0]]");
  /* inputs that are no whole memory */
  TgTensor *view = tg_slice(X("[[9.0, 1.0, 1.0]]"), 1, 1, 3), *made = tg_add_scalar(x[0], 1);
  RUN(j, &view, 1, y[3], 2);
  TEXT(y[3][0], "[[4.0, 6.0]]");
  RUN(j, &made, 1, y[3], 2);
  TEXT(y[3][0], "[[5.0, 8.0]]");
  tg_cache_clear(C); /* the plans are gone: captured anew */
  for (int i = 0; i < 2; i++) {
    RUN(j, &x[2], 1, y[3], 2);
    TEXT(y[3][0], "[[4.0, 6.0]]");
  }
  tg_jit_reset(j);
  for (int i = 0; i < 3; i++) {
    RUN(j, &x[i], 1, y[i], 2);
    TEXT(y[i][1], i == 0 ? "3.0" : i == 1 ? "7.0" : "10.0");
  }
  tg_jit_free(j);
  tg_jit_free(NULL);
}

/* ---- a training step: the same numbers as without */
typedef struct Net {
  TgTensor *w1, *w2;
  TgOptim *opt;
} Net;

static Net net_new(void) {
  tg_manual_seed(C, 1);
  Net n = {.w1 = tg_keep(tg_requires_grad(tg_clone(tg_randn(C, TG_SHAPE(3, 8))), true)),
           .w2 = tg_keep(tg_requires_grad(tg_clone(tg_randn(C, TG_SHAPE(8, 1))), true))};
  n.opt = tg_adam(C, ((TgTensor *[]){n.w1, n.w2}), 2, .lr = 0.01);
  return n;
}

static TgStatus train(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout;
  Net *n = user;
  TgTensor *h = tg_dropout(tg_tanh(tg_matmul(in[0], n->w1)), 0.25);
  TgTensor *loss = tg_mse(tg_matmul(h, n->w2), in[1]);
  tg_zero_grad(n->w1), tg_zero_grad(n->w2);
  tg_backward(loss);
  out[0] = loss;
  return tg_optim_step(n->opt);
}

static void steps(bool jit, double *losses, int count) {
  Net n = net_new();
  tg_set_training(C, true);
  TgJit *j = jit ? tg_jit(C, train, &n) : NULL;
  for (int i = 0; i < count; i++)
    TG_SCOPE(C) {
      double v[6] = {i % 3, 1, -i % 5, 0.5, i % 2, 2}, t[2] = {i % 4, -1};
      TgTensor *in[2] = {tg_from_f64(C, v, TG_F32, TG_SHAPE(2, 3)),
                         tg_from_f64(C, t, TG_F32, TG_SHAPE(2, 1))};
      TgTensor *out[1] = {NULL};
      if (jit)
        RUN(j, in, 2, out, 1);
      else
        train(C, in, 2, out, 1, &n);
      losses[i] = tg_item_f64(out[0]);
    }
  tg_jit_free(j), tg_optim_free(n.opt), tg_release(n.w1), tg_release(n.w2);
  if (tg_error(C)) fail_msg("%s", tg_errmsg(C));
}

static void test_training(void **state) {
  (void)state;
  double plain[12], replayed[12];
  steps(false, plain, 12), steps(true, replayed, 12);
  for (int i = 0; i < 12; i++)
    if (plain[i] != replayed[i]) fail_msg("step %d: %.9g, replayed %.9g", i, plain[i], replayed[i]);
  assert_true(plain[11] != plain[10]);
}

static TgStatus noise(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  TgTensor *a = tg_rand(c, TG_SHAPE(3)), *b = tg_randn(c, TG_SHAPE(3));
  out[0] = tg_add(in[0], tg_add(a, tg_mul_scalar(b, 10)));
  return TG_OK;
}

static void test_random(void **state) {
  (void)state;
  TgTensor *zero = X("[0.0, 0.0, 0.0]"), *out[1];
  double want[6][3], got[3];
  tg_manual_seed(C, 9);
  for (int i = 0; i < 6; i++)
    noise(C, &zero, 1, out, 1, NULL), tg_read_f64(out[0], want[i], 3);
  TgJit *j = tg_jit(C, noise, NULL);
  tg_manual_seed(C, 9);
  for (int i = 0; i < 6; i++) {
    RUN(j, &zero, 1, out, 1);
    tg_read_f64(out[0], got, 3);
    for (int k = 0; k < 3; k++)
      assert_true(got[k] == want[i][k]);
  }
  tg_jit_free(j);
}

/* ---- stores, values in between, and what must not be found done */
static TgStatus counts(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout;
  Model *m = user;
  TgTensor *twice = tg_mul_scalar(m->w, 2);
  if (tg_realize(twice)) return TG_ERR_STATE;
  tg_add_(m->count, tg_scalar_like(m->count, 1));
  out[0] = tg_add(tg_add(in[0], twice), m->count);
  return TG_OK;
}

static TgStatus bump(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout, (void)user;
  out[0] = tg_mul_scalar(in[0], 10);
  tg_realize(out[0]);
  return tg_add_(in[1], tg_sum(in[0])) ? tg_realize(in[1]) : TG_ERR_STATE;
}

static void test_state(void **state) {
  (void)state;
  Model m = {tg_clone(X("[1.0]")), NULL, tg_clone(X("[0.0]"))};
  TgTensor *x = X("[100.0]"), *y[1];
  TgJit *j = tg_jit(C, counts, &m);
  const char *want[] = {"[103.0]", "[104.0]", "[105.0]", "[106.0]"};
  for (int i = 0; i < 4; i++) {
    RUN(j, &x, 1, y, 1);
    TEXT(y[0], want[i]);
  }
  TEXT(m.count, "[4.0]");
  TgTensor *old = tg_neg(m.count);
  tg_realize(old);
  tg_assign(m.w, X("[2.0]"));
  RUN(j, &x, 1, y, 1);
  TEXT(y[0], "[109.0]");
  TEXT(m.count, "[5.0]");
  TEXT(tg_neg(m.count), "[-5.0]"); /* not what was computed before the replay */
  TEXT(old, "[-4.0]");
  tg_jit_free(j);
  j = tg_jit(C, bump, NULL); /* an input that is written */
  TgTensor *sum = tg_clone(X("[0.0]")), *in[2] = {X("[1.0, 2.0]"), sum};
  tg_realize(sum);
  RUN(j, in, 2, y, 1);
  TEXT(sum, "[3.0]");
  tg_jit_free(j);
}

/* Values that a scope inside the function ends are no state: what the scope frees, each replay makes again.
 */
static TgStatus scopes(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)out, (void)nout;
  Model *m = user;
  for (int i = 0; i < 3; i++) {
    TG_SCOPE(c) {
      TgTensor *half = tg_div_scalar(in[0], 2);
      tg_realize(half);
      TgTensor *both = tg_contiguous(tg_add(half, m->w));
      tg_realize(both);
      tg_add_(m->count, tg_sum(both));
      tg_realize(m->count);
    }
    if (tg_collect(c)) return TG_ERR_STATE;
  }
  return tg_error(c);
}

static void test_scopes(void **state) {
  (void)state;
  Model m = {tg_clone(X("[1.0, 2.0]")), NULL, tg_clone(X("[0.0]"))};
  TgTensor *x = X("[2.0, 6.0]");
  TgJit *j = tg_jit(C, scopes, &m);
  const char *want[] = {"[21.0]", "[42.0]", "[63.0]", "[84.0]", "[105.0]"};
  for (int i = 0; i < 5; i++) {
    TG_SCOPE(C) {
      RUN(j, &x, 1, NULL, 0);
      TgTensor *other = tg_add_scalar(m.w, i); /* takes memory that the function's scopes gave back */
      assert_int_equal(tg_realize(other), TG_OK);
    }
    TEXT(m.count, want[i]);
  }
  tg_jit_free(j);
}

/* ---- what is refused */
static TgStatus reads(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout, (void)user;
  out[0] = tg_add_scalar(in[0], tg_item_f64(tg_sum(in[0])));
  return tg_error(c);
}

static TgStatus maps(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  const float *at = tg_map(in[0]);
  out[0] = tg_add_scalar(in[0], at ? at[0] : 0);
  return tg_error(c);
}

static TgStatus bakes(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  out[0] = tg_add(in[0], tg_from_f64(c, (double[]){1, 2}, TG_F32, TG_SHAPE(2)));
  return TG_OK;
}

static TgStatus nests(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c;
  return tg_jit_run(user, in, nin, out, nout);
}

static TgStatus fails(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout;
  out[0] = in[0];
  return *(int *)user ? TG_ERR_VALUE : TG_OK;
}

/* the context frees what lives */
static void test_refused(void **state) {
  (void)state;
  Model m = {tg_clone(X("[[1.0, 2.0], [3.0, 4.0]]")), tg_clone(X("[1.0, -1.0]")), NULL};
  TgTensor *x = X("[[1.0, 0.0]]");
  TgTensor *wide = X("[[1.0, 0.0], [0.0, 1.0]]");
  TgTensor *whole = X("[[1, 2]]");
  TgTensor *two = X("[1.0, 1.0]");
  TgTensor *y[2];
  TgJit *j = tg_jit(C, layer, &m);
  for (int i = 0; i < 3; i++)
    RUN(j, &x, 1, y, 2);
  ERROR(tg_jit_run(j, &wide, 1, y, 2), TG_ERR_SHAPE, "input 0 has shape (2, 2), captured as (1, 2)");
  ERROR(tg_jit_run(j, &whole, 1, y, 2), TG_ERR_DTYPE, "input 0 is i32, captured as f32");
  ERROR(tg_jit_run(j, &x, 1, y, 1), TG_ERR_VALUE, "1 inputs and 1 outputs, captured with 1 and 2");
  ERROR(tg_jit_run(j, (TgTensor *[]){NULL}, 1, y, 2), TG_ERR_VALUE, "input 0 is NULL");
  RUN(j, &x, 1, y, 2); /* nothing is lost */
  TEXT(y[0], "[[2.0, 1.0]]");
  TgJit *r = tg_jit(C, reads, NULL), *b = tg_jit(C, bakes, NULL), *n = tg_jit(C, nests, j),
        *d = tg_jit(C, bump, NULL);
  RUN(r, &two, 1, y, 1);
  TEXT(y[0], "[3.0, 3.0]");
  ERROR(tg_jit_run(r, &two, 1, y, 1), TG_ERR_STATE, "read: not inside a function that is captured");
  if (tg_map(two)) { /* where the host sees the memory */
    TgJit *mapping = tg_jit(C, maps, NULL);
    RUN(mapping, &two, 1, y, 1);
    ERROR(tg_jit_run(mapping, &two, 1, y, 1), TG_ERR_STATE, "map: not inside a function that is captured");
    tg_jit_free(mapping);
  } else
    tg_clear_error(C);
  RUN(b, &two, 1, y, 1);
  assert_int_equal(
      tg_collect(C),
      TG_OK); /* what is made in a capture is known, though it has the number of what was freed */
  ERROR(tg_jit_run(b, &two, 1, y, 1), TG_ERR_STATE, "a tensor of 2 f32 from data");
  RUN(n, &x, 1, y, 2);
  ERROR(tg_jit_run(n, &x, 1, y, 2), TG_ERR_STATE, "jit: not inside");
  TgTensor *s[2] = {X("[1.0]"), X("[1.0]")}, *same[2] = {s[0], s[0]};
  for (int i = 0; i < 2; i++)
    RUN(d, s, 2, y, 1);
  ERROR(tg_jit_run(d, same, 2, y, 1), TG_ERR_VALUE, "inputs 0 and 1 are one memory");
  int no = 0;
  TgJit *f = tg_jit(C, fails, &no);
  RUN(f, &x, 1, y, 1);
  no = 1;
  ERROR(tg_jit_run(f, &x, 1, y, 1), TG_ERR_VALUE, "the function failed");
  no = 0;
  for (int i = 0; i < 2; i++) {
    RUN(f, &x, 1, y, 1); /* an output that is an input is a copy of it */
    TEXT(y[0], "[[1.0, 0.0]]");
  }
  assert_null(tg_jit(C, NULL, NULL));
  tg_clear_error(C);
}

static TgStatus adds_even(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  out[0] = tg_add(in[0], tg_mul_scalar(tg_arange(c, 0, 3, 1), 2));
  return TG_OK;
}

/* What a function computes of constants is its own, though the same was computed outside and is memory that
 * may be assigned to. */
static void test_constants(void **state) {
  (void)state;
  TgTensor *even = tg_mul_scalar(tg_arange(C, 0, 3, 1), 2);
  TgTensor *x = tg_cast(X("[1, 1, 1]"), tg_dtype(even));
  TgTensor *y[1];
  TgJit *j = tg_jit(C, adds_even, NULL);
  assert_int_equal(tg_realize(even), TG_OK);
  for (int i = 0; i < 4; i++) {
    RUN(j, &x, 1, y, 1);
    TEXT(tg_cast(y[0], TG_I32), "[1, 3, 5]");
    if (i) tg_assign(even, tg_add_scalar(even, 100));
  }
}

static TgStatus adds_user(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout;
  out[0] = tg_add(in[0], *(TgTensor **)user);
  return TG_OK;
}

/* An expression that was made outside is state: what was drawn for it is not drawn again, and what is
 * assigned to it later counts. */
static void test_older(void **state) {
  (void)state;
  TgTensor *x = tg_zeros(C, TG_SHAPE(3)), *from = X("[1.0, 2.0, 3.0]"), *y[1];
  TgTensor *w[] = {tg_randn(C, TG_SHAPE(3)), tg_mul_scalar(from, 3), tg_full(C, TG_SHAPE(3), 2),
                   tg_cat((TgTensor *[]){tg_zeros(C, TG_SHAPE(1)), tg_slice(from, 0, 0, 2)}, 2, 0)};
  assert_int_equal(tg_realize(x), TG_OK);
  for (size_t k = 0; k < sizeof w / sizeof *w; k++) {
    TgJit *j = tg_jit(C, adds_user, &w[k]);
    char first[100] = "", want[100];
    for (int i = 0; i < 9; i++) {
      if (i >= 4 && i % 2) tg_assign(w[k], tg_full(C, TG_SHAPE(3), i));
      if (i >= 4 && i % 2 == 0) tg_setitem_scalar(w[k], (TgIndex[]){TG_ALL}, 1, i);
      RUN(j, &x, 1, y, 1);
      const char *got = tg_to_text(y[0]);
      if (!i) snprintf(first, sizeof first, "%s", got);
      snprintf(want, sizeof want, "[%d.0, %d.0, %d.0]", i, i, i);
      assert_string_equal(got, i < 4 ? first : want);
    }
    tg_jit_free(j);
  }
}

static TgStatus adds_and_counts(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                                void *user) {
  (void)nin, (void)nout;
  out[0] = tg_add(in[0], *(TgTensor **)user);
  tg_assign(in[0], tg_add_scalar(in[0], 1));
  return tg_error(c);
}

/* An expression stays what it was when the memory that it is made of is assigned to: outside, by another
 * function, or by the function itself, which is given that memory at its sixth run. */
static void test_older_of_memory(void **state) {
  (void)state;
  for (int k = 0; k < 3; k++) {
    TgTensor *m = X("[1.0, 2.0, 3.0]"), *other = X("[10.0, 20.0, 30.0]"), *w = tg_mul_scalar(m, 3), *y[1];
    TgTensor *nothing = tg_zeros(C, TG_SHAPE(3));
    assert_int_equal(tg_realize(other), TG_OK);
    assert_int_equal(tg_realize(nothing), TG_OK);
    TgJit *j = tg_jit(C, adds_and_counts, &w), *writes = tg_jit(C, adds_and_counts, &nothing);
    double n = 0, m0 = 1;
    for (int i = 0; i < 12; i++) {
      if (k == 0 && i >= 4 && i % 3 == 0) tg_assign(m, tg_full(C, TG_SHAPE(3), i));
      if (k == 1 && i >= 4) {
        RUN(writes, &m, 1, y, 1);
      }
      bool own = k == 2 && i >= 5;
      RUN(j, own ? &m : &other, 1, y, 1);
      double got[3];
      assert_int_equal(tg_read_f64(y[0], got, 3), TG_OK);
      double want = 3 + (own ? m0++ : 10 + n++);
      if (got[0] != want) fail_msg("case %d, run %d: %g, not %g", k, i, got[0], want);
    }
    tg_jit_free(j), tg_jit_free(writes);
  }
}

/* A handle that is other memory, or another expression, from now on: the function reads that. */
static void test_replaced(void **state) {
  (void)state;
  TgTensor *x = tg_zeros(C, TG_SHAPE(3)), *w = X("[1.0, 2.0, 3.0]"), *view = tg_slice(w, 0, 1, 2), *y[1];
  TgTensor *next[] = {X("[4.0, 5.0, 6.0]"), tg_mul_scalar(w, 10), tg_full(C, TG_SHAPE(3), 7)};
  static const char *const want[] = {"[1.0, 2.0, 3.0]", "[4.0, 5.0, 6.0]", "[10.0, 20.0, 30.0]",
                                     "[7.0, 7.0, 7.0]"};
  assert_int_equal(tg_realize(x), TG_OK), assert_int_equal(tg_realize(w), TG_OK);
  TgJit *j = tg_jit(C, adds_user, &w);
  for (int k = 0; k < 4; k++) {
    if (k) assert_ptr_equal(tg_replace(w, next[k - 1]), w);
    for (int i = 0; i < 4; i++) {
      RUN(j, &x, 1, y, 1);
      TEXT(y[0], want[k]);
    }
  }
  TEXT(view, "[2.0]");
  /* the same from a file of weights */
  w = X("[1.0, 2.0, 3.0]");
  TgState *model = tg_state_new(C), *file = tg_state_new(C);
  assert_int_equal(tg_state_put(model, "w", w), TG_OK),
      assert_int_equal(tg_state_put(file, "w", X("[4.0, 5.0, 6.0]")), TG_OK);
  TgJit *reads_w = tg_jit(C, adds_user, &w);
  for (int i = 0; i < 8; i++) {
    if (i == 4) assert_int_equal(tg_load_state(model, file), TG_OK);
    RUN(reads_w, &x, 1, y, 1);
    TEXT(y[0], want[i / 4]);
  }
  tg_state_free(model), tg_state_free(file);
}

/* An expression of a variable is computed again for each of its values, also where it was computed before. */
static void test_older_of_variable(void **state) {
  (void)state;
  TgVariable *n = tg_variable(C, "n", 1, 9);
  TgTensor *x = tg_zeros(C, TG_SHAPE(3)), *y[1];
  for (int k = 0; k < 3; k++) {
    TgTensor *w = tg_mul(X("[1.0, 2.0, 3.0]"), tg_variable_tensor(n));
    TgJit *j = tg_jit(C, adds_user, &w);
    for (int i = 0; i < 6; i++) {
      int bound = k == 2 ? 2 + i / 2 : i + 1;
      char want[100];
      assert_int_equal(tg_variable_bind(n, bound), TG_OK);
      if (k && i < 2) assert_int_equal(tg_realize(w), TG_OK);
      RUN(j, &x, 1, y, 1);
      snprintf(want, sizeof want, "[%d.0, %d.0, %d.0]", bound, 2 * bound, 3 * bound);
      TEXT(y[0], want);
    }
    tg_jit_free(j);
  }
  TgTensor *drawn = tg_randn(C, TG_SHAPE(3)), *times = tg_variable_tensor(n);
  TgTensor *w = tg_div(tg_mul(drawn, times), times);
  TgJit *j = tg_jit(C, adds_user, &w);
  char first[100];
  for (int i = 0; i < 4; i++) {
    assert_int_equal(tg_variable_bind(n, 1 << i), TG_OK);
    RUN(j, &x, 1, y, 1);
    if (!i) snprintf(first, sizeof first, "%s", tg_to_text(y[0]));
    TEXT(y[0], first);
  }
  tg_jit_free(j);
}

/* What is given may be an expression of a variable: outputs are memory all the same, of each run. */
static void test_output_of_variable(void **state) {
  (void)state;
  TgVariable *n = tg_variable(C, "n", 1, 9);
  TgTensor *w = tg_full(C, TG_SHAPE(3), 1), *from = X("[1.0, 2.0, 3.0]"), *y[4];
  TgJit *j = tg_jit(C, adds_user, &w);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(tg_variable_bind(n, i + 1), TG_OK);
    TgTensor *x = tg_mul(from, tg_variable_tensor(n));
    RUN(j, &x, 1, &y[i], 1);
  }
  TEXT(y[0], "[2.0, 3.0, 4.0]");
  TEXT(y[1], "[3.0, 5.0, 7.0]");
  TEXT(y[2], "[4.0, 7.0, 10.0]");
  TEXT(y[3], "[5.0, 9.0, 13.0]");
}

typedef struct Memories {
  TgTensor *expression, *a, *b;
} Memories;

static TgStatus stores_two(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Memories *m = user;
  tg_add_(m->a, m->expression);
  tg_add_(m->b, m->a), tg_add_(m->b, in[0]);
  out[0] = tg_add_scalar(m->b, 0.5);
  return tg_error(c);
}

/* An expression that only a store reads, which goes with another store, is read as well: it stays what it was
 * when the memory that it is made of is assigned to. */
static void test_older_stored(void **state) {
  (void)state;
  TgTensor *from = X("[1.0, 2.0, 3.0]"), *x = tg_zeros(C, TG_SHAPE(3)), *y[1];
  Memories m = {tg_mul_scalar(from, 10), X("[0.0, 0.0, 0.0]"), X("[0.0, 0.0, 0.0]")};
  TgJit *j = tg_jit(C, stores_two, &m);
  assert_int_equal(tg_realize(x), TG_OK);
  static const char *const want[] = {"[10.5, 20.5, 30.5]", "[30.5, 60.5, 90.5]", "[60.5, 120.5, 180.5]",
                                     "[100.5, 200.5, 300.5]", "[150.5, 300.5, 450.5]"};
  for (int i = 0; i < 5; i++) {
    if (i == 3) tg_assign(from, tg_full(C, TG_SHAPE(3), 7));
    RUN(j, &x, 1, y, 1);
    TEXT(y[0], want[i]);
  }
}

/* user: what is added to, and what is doubled for that */
static TgStatus adds_doubled(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                             void *user) {
  (void)in, (void)nin, (void)out, (void)nout;
  TgTensor **of = user;
  tg_assign(of[0], tg_add(of[0], tg_mul_scalar(of[1], 2)));
  return tg_error(c);
}

/* What is made of a memory was computed by somebody else, while the memory was another handle's; captures of other
 * functions came between. The function computes it anew, because that somebody's is assigned to. */
static void others_value(bool its_own, bool called) {
  TgTensor *a = X("[1.0, 2.0, 3.0]"), *x = tg_zeros(C, TG_SHAPE(3)), *y;
  TgTensor *other = tg_full(C, TG_SHAPE(3), 5), *of[2] = {X("[0.0, 0.0, 0.0]"), tg_add_scalar(a, 1)};
  TgTensor *first = tg_add_scalar(a, 1);
  assert_int_equal(tg_realize_many((TgTensor *[]){a, x, other, first}, 4), TG_OK);
  TgTensor *twice = tg_mul_scalar(first, 2);
  assert_int_equal(tg_realize(twice), TG_OK);
  tg_release(first); /* of[1] is an expression of the same value */
  TgJit *j = tg_jit(C, adds_doubled, of);
  if (called) RUN(j, NULL, 0, NULL, 0);
  for (int k = 0; k < 2; k++) {
    TgJit *beside = tg_jit(C, adds_user, &other);
    for (int i = 0; i < 3; i++)
      RUN(beside, &x, 1, &y, 1);
  }
  assert_int_equal(tg_realize(of[1]), TG_OK);
  for (int i = called; i < 5; i++) {
    RUN(j, NULL, 0, NULL, 0);
    if (i == 2) tg_assign(its_own ? of[1] : twice, tg_ones(C, TG_SHAPE(3)));
  }
  TEXT(of[0], its_own ? "[16.0, 22.0, 28.0]" : "[20.0, 30.0, 40.0]");
}

static void test_others_value(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++)
    others_value(i & 1, i & 2);
}

/* The same of an expression that was there before the function: somebody computed what it makes of that. */
static TgStatus doubled_added(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                              void *user) {
  (void)nin, (void)nout;
  out[0] = tg_add(in[0], tg_mul_scalar(((TgTensor **)user)[1], 2));
  return tg_error(c);
}

static void test_others_value_of_older(void **state) {
  (void)state;
  TgJitFn fn[] = {adds_doubled, doubled_added};
  for (int early = 0; early < 2; early++)
    for (int k = 0; k < 2; k++) {
      TgTensor *a = X("[1.0, 2.0, 3.0]"), *x = X("[0.0, 0.0, 0.0]"), *y;
      assert_int_equal(tg_realize_many((TgTensor *[]){a, x}, 2), TG_OK);
      TgTensor *of[2] = {X("[0.0, 0.0, 0.0]"), tg_add_scalar(a, 1)}, *twice = tg_mul_scalar(of[1], 2);
      if (early) assert_int_equal(tg_realize(twice), TG_OK);
      TgJit *j = tg_jit(C, fn[k], of);
      for (int i = 0; i < 6; i++) {
        RUN(j, &x, k, &y, k);
        if (k) TEXT(y, "[4.0, 6.0, 8.0]");
        if (i == 2) assert_int_equal(tg_realize(twice), TG_OK);
        if (i == 3) tg_assign(twice, tg_zeros(C, TG_SHAPE(3)));
      }
      TEXT(of[0], k ? "[0.0, 0.0, 0.0]" : "[24.0, 36.0, 48.0]");
      tg_jit_free(j);
    }
}

/* The gradient of an input is left in the caller's tensor. */
static TgStatus squares(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  out[0] = tg_sum(tg_mul(in[0], in[0]));
  return tg_backward(out[0]) ? tg_error(c) : TG_OK;
}

static void test_gradient_of_input(void **state) {
  (void)state;
  TgTensor *x = tg_requires_grad(X("[1.0, 2.0, 3.0]"), true), *y;
  TgJit *j = tg_jit(C, squares, NULL);
  RUN(j, &x, 1, &y, 1);
  TEXT(tg_grad(x), "[2.0, 4.0, 6.0]");
  RUN(j, &x, 1, &y, 1); /* the captured run adds its own */
  TEXT(tg_grad(x), "[4.0, 8.0, 12.0]");
  RUN(j, &x, 1, &y, 1);
  TEXT(y, "14.0");
  tg_jit_free(j);
}

/* What is captured is right for one of both, training or not. */
static TgStatus drops_half(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  ++*(int *)user;
  out[0] = tg_dropout(in[0], .5);
  return tg_error(c);
}

static void test_modes(void **state) {
  (void)state;
  int calls = 0;
  TgTensor *x = tg_ones(C, TG_SHAPE(1000)), *y;
  TgJit *j = tg_jit(C, drops_half, &calls);
  for (int i = 0; i < 16; i++) {
    tg_set_training(C, i / 4 % 2);
    RUN(j, &x, 1, &y, 1);
    int64_t stays = tg_item_i64(tg_sum(tg_cast(tg_eq(y, x), TG_I32)));
    int64_t dropped = tg_item_i64(tg_sum(tg_cast(tg_eq_scalar(y, 0), TG_I32)));
    assert_int_equal(stays, i / 4 % 2 ? 0 : 1000);
    assert_true(i / 4 % 2 ? dropped > 400 && dropped < 600 : dropped == 0);
  }
  assert_int_equal(calls, 8);
  tg_jit_free(j);
}

/* user: a weight and a bias, which are moved against their gradients. */
static TgStatus trains_both(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                            void *user) {
  (void)nin, (void)nout;
  TgTensor *const *w = user;
  out[0] = tg_sum(tg_square(tg_add(tg_mul(in[0], w[0]), w[1])));
  if (tg_backward(out[0])) return tg_error(c);
  for (int i = 0; i < 2; i++) {
    if (tg_grad(w[i])) tg_sub_(w[i], tg_mul_scalar(tg_grad(w[i]), .01));
    tg_zero_grad(w[i]);
  }
  return tg_error(c);
}

/* A weight that is frozen, and trained again, while a step is captured. */
static void test_frozen(void **state) {
  (void)state;
  double loss[2][12];
  for (int captured = 0; captured < 2; captured++) {
    TgTensor *w[2] = {X("[1.0, 2.0, 3.0]"), X("[0.5, 0.5, 0.5]")}, *x = X("[1.0, -1.0, 2.0]"), *y;
    for (int i = 0; i < 2; i++)
      w[i] = tg_requires_grad(w[i], true);
    TgJit *j = tg_jit(C, trains_both, w);
    assert_int_equal(tg_realize(x), TG_OK);
    for (int i = 0; i < 12; i++) {
      if (i == 4 || i == 8) tg_requires_grad(w[0], i == 8);
      if (!captured)
        assert_int_equal(trains_both(C, &x, 1, &y, 1, w), TG_OK);
      else
        RUN(j, &x, 1, &y, 1);
      loss[captured][i] = tg_item_f64(y);
    }
    tg_jit_free(j);
  }
  if (fabs(loss[0][11] - 10.38482) > 1e-4) fail_msg("%g", loss[0][11]); /* of plain arithmetic */
  for (int i = 0; i < 12; i++)
    if (fabs(loss[0][i] - loss[1][i]) > 1e-5 * fabs(loss[0][i]))
      fail_msg("step %d: %g, not %g", i, loss[1][i], loss[0][i]);
}

/* user: a parameter, and what was made of it before. */
static TgStatus grows(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  TgTensor *const *w = user;
  out[0] = tg_add(tg_sum(tg_mul(w[1], in[0])), tg_sum(w[0]));
  if (tg_backward(out[0])) return tg_error(c);
  out[1] = tg_contiguous(tg_grad(w[0]));
  tg_zero_grad(w[0]);
  return tg_error(c);
}

/* A gradient goes on through what was made of a parameter before the function: while it is that. */
static void test_gradient_through_older(void **state) {
  (void)state;
  for (int computed = 0; computed < 2; computed++) {
    TgTensor *w[2] = {tg_requires_grad(X("[1.0, 2.0, 3.0]"), true)}, *y[2];
    w[1] = tg_mul_scalar(w[0], 2);
    if (computed) assert_int_equal(tg_realize(w[1]), TG_OK);
    TgJit *j = tg_jit(C, grows, w);
    static const char *const want[] = {"[3.0, 3.0, 3.0]", "[5.0, 5.0, 5.0]", "[7.0, 7.0, 7.0]",
                                       "[9.0, 9.0, 9.0]", "[1.0, 1.0, 1.0]", "[1.0, 1.0, 1.0]"};
    for (int i = 0; i < 6; i++) {
      if (i == 4) tg_assign(w[1], tg_ones(C, TG_SHAPE(3)));
      TgTensor *x = tg_full(C, TG_SHAPE(3), i + 1);
      RUN(j, &x, 1, y, 2);
      TEXT(y[1], want[i]);
    }
    tg_jit_free(j);
  }
}

/* The list of outputs may be that of inputs. */
static void test_in_place_list(void **state) {
  (void)state;
  TgTensor *w = tg_full(C, TG_SHAPE(3), 1), *x = X("[1.0, 2.0, 3.0]");
  TgJit *j = tg_jit(C, adds_user, &w);
  for (int i = 0; i < 5; i++) {
    RUN(j, &x, 1, &x, 1);
  }
  TEXT(x, "[6.0, 7.0, 8.0]");
}

typedef struct Layer {
  TgTensor *weight, *times;
  int calls;
} Layer;

static TgStatus layer_runs(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout;
  Layer *l = user;
  l->calls++;
  out[0] = tg_add(in[0], tg_mul(l->weight, l->times));
  return TG_OK;
}

/* Of a row of functions, each reads what the one before computed, and not what that was computed from: a
 * network of many layers would be looked through once for each of them, and a weight of one that is replaced
 * would be no weight of the others. */
static void test_row(void **state) {
  (void)state;

  enum { LAYERS = 6, REPLACED = 2 };

  static const char *const want[] = {"[9.0, 18.0, 27.0]", "[18.0, 36.0, 54.0]", "[27.0, 54.0, 81.0]",
                                     "[9.0, 18.0, 27.0]", "[38.0, 56.0, 74.0]", "[57.0, 84.0, 111.0]"};
  TgVariable *n = tg_variable(C, "n", 1, 9);
  TgTensor *from = X("[1.0, 2.0, 3.0]"), *y[1];
  Layer layer[LAYERS] = {{0}};
  TgJit *j[LAYERS];
  for (int k = 0; k < LAYERS; k++) {
    layer[k].weight = k % 2 ? tg_mul_scalar(from, k) : tg_floor(tg_rand(C, TG_SHAPE(3)));
    layer[k].times = tg_variable_tensor(n);
    j[k] = tg_jit(C, layer_runs, &layer[k]);
  }
  for (int i = 0; i < 6; i++) {
    if (i == 4) tg_replace(layer[REPLACED].weight, tg_full(C, TG_SHAPE(3), 10));
    TgTensor *x = tg_zeros(C, TG_SHAPE(3));
    assert_int_equal(tg_variable_bind(n, 1 + i % 3), TG_OK);
    for (int k = 0; k < LAYERS; k++) {
      RUN(j[k], &x, 1, y, 1);
      x = y[0];
    }
    TEXT(x, want[i]);
  }
  for (int k = 0; k < LAYERS; k++)
    assert_int_equal(layer[k].calls, k == REPLACED ? 4 : 2);
}

/* An input and a weight may be one node. To compute either is no reason to capture anew. */
static void test_computed(void **state) {
  (void)state;
  TgTensor *x = tg_contiguous(tg_full(C, TG_SHAPE(3), 1)), *w = tg_contiguous(tg_full(C, TG_SHAPE(3), 1)),
           *y[1];
  TgJit *j = tg_jit(C, adds_user, &w);
  for (int i = 0; i < 2; i++)
    RUN(j, &x, 1, y, 1);
  assert_int_equal(tg_realize(w), TG_OK);
  assert_non_null(tg_jit_to_text(j, NULL, NULL, 0));
  for (int i = 0; i < 4; i++) {
    RUN(j, &x, 1, y, 1);
    TEXT(y[0], i < 3 ? "[2.0, 2.0, 2.0]" : "[6.0, 6.0, 6.0]");
    if (i == 2) tg_assign(w, tg_full(C, TG_SHAPE(3), 5));
  }
}

static TgStatus doubles_user(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                             void *user) {
  TgTensor *y[1];
  return nout == 1 && !tg_jit_run(user, in, nin, y, 1) ? out[0] = tg_mul_scalar(y[0], 2), TG_OK : tg_error(c);
}

/* The first run may run another captured function; a capture cannot, and says so. */
static void test_nested(void **state) {
  (void)state;
  TgTensor *x = tg_ones(C, TG_SHAPE(3)), *w = tg_mul_scalar(X("[1.0, 2.0, 3.0]"), 3), *y[1];
  assert_int_equal(tg_realize(x), TG_OK);
  TgJit *in = tg_jit(C, adds_user, &w), *out = tg_jit(C, doubles_user, in);
  RUN(out, &x, 1, y, 1);
  TEXT(y[0], "[8.0, 14.0, 20.0]");
  assert_int_equal(tg_jit_run(out, &x, 1, y, 1), TG_ERR_STATE);
  tg_clear_error(C);
}

/* Outputs without elements are no reason to have nothing to replay. */
static void test_empty(void **state) {
  (void)state;
  TgTensor *none = tg_zeros(C, TG_SHAPE(0)), *y[1];
  TgJit *j = tg_jit(C, adds_user, &none);
  for (int i = 0; i < 4; i++) {
    RUN(j, &none, 1, y, 1);
    TEXT(y[0], "[]");
  }
}

#define ALL(name)                                                                                            \
  cmocka_unit_test_setup_teardown(name, open_interp, close_it),                                              \
      cmocka_unit_test_setup_teardown(name, open_cpu, close_it),                                             \
      cmocka_unit_test_setup_teardown(name, open_cuda, close_it),                                            \
      cmocka_unit_test_setup_teardown(name, open_metal, close_it)

/* ---- one loop nest that writes memory and fills a row: rows that no vector length divides */
enum { BESIDE_ROWS = 5, BESIDE_COLUMNS = 17, BESIDE_PLANE = BESIDE_ROWS * BESIDE_COLUMNS };

static double beside_at(const double *plane, int row, int column) { /* zeros around */
  bool in = row >= 0 && row < BESIDE_ROWS && column >= 0 && column < BESIDE_COLUMNS;
  return in ? plane[row * BESIDE_COLUMNS + column] : 0;
}

static double beside_window(const double *plane, int at, const double *weight) { /* 3x3 around element `at` */
  double sum = 0;
  for (int k = 0; k < 9; k++)
    sum += weight[k] * beside_at(plane, at / BESIDE_COLUMNS + k / 3 - 1, at % BESIDE_COLUMNS + k % 3 - 1);
  return sum;
}

/* in: a plane, a plane, the weights of two 3x3 convolutions. out: the first plane with the convolutions of
 * the second beside it, and the means of that over 3x3. */
static TgStatus beside(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  TgTensor *part[2] = {in[0], tg_conv2d(in[1], in[2], .padding = TG_SIZES(1, 1))};
  out[0] = tg_cat(part, 2, 1);
  out[1] = tg_avg_pool2d(out[0], TG_SIZES(3, 3), .stride = TG_SIZES(1, 1), .padding = TG_SIZES(1, 1));
  return tg_error(c);
}

static void beside_is_at(int line, int run, TgTensor *const *out, const double *const *want) {
  static const char *const name[] = {"beside", "mean"};
  double got[3 * BESIDE_PLANE];
  for (int k = 0; k < 2; k++) {
    if (tg_read_f64(out[k], got, 3 * BESIDE_PLANE)) fail_msg("line %d: %s", line, tg_errmsg(C));
    for (int i = 0; i < 3 * BESIDE_PLANE; i++)
      if (!(fabs(got[i] - want[k][i]) <= 1e-5))
        fail_msg("line %d, run %d: %s, plane %d, row %d, column %d is %g, not %g", line, run, name[k],
                 i / BESIDE_PLANE, i % BESIDE_PLANE / BESIDE_COLUMNS, i % BESIDE_COLUMNS, got[i], want[k][i]);
  }
}

/* Both outputs against plain loops, called plainly and captured: the last column as well. */
static void test_beside(void **state) {
  (void)state;
  TgJit *j = tg_jit(C, beside, NULL);
  for (int run = 0; run < 4; run++) {
    double a[BESIDE_PLANE], b[BESIDE_PLANE], w[18], both[3 * BESIDE_PLANE], mean[3 * BESIDE_PLANE], ninth[9];
    for (int i = 0; i < BESIDE_PLANE; i++)
      a[i] = i % 7 + run + 1, b[i] = i * 5 % 11 + run + 1;
    for (int i = 0; i < 18; i++)
      w[i] = i * 3 % 5 + 1, ninth[i % 9] = 1.0 / 9;
    for (int i = 0; i < 3 * BESIDE_PLANE; i++)
      both[i] = i < BESIDE_PLANE ? a[i] : beside_window(b, i % BESIDE_PLANE, w + 9 * (i / BESIDE_PLANE - 1));
    for (int i = 0; i < 3 * BESIDE_PLANE; i++)
      mean[i] = beside_window(both + i / BESIDE_PLANE * BESIDE_PLANE, i % BESIDE_PLANE, ninth);
    TgTensor *in[3] = {tg_from_f64(C, a, TG_F32, TG_SHAPE(1, 1, BESIDE_ROWS, BESIDE_COLUMNS)),
                       tg_from_f64(C, b, TG_F32, TG_SHAPE(1, 1, BESIDE_ROWS, BESIDE_COLUMNS)),
                       tg_from_f64(C, w, TG_F32, TG_SHAPE(2, 1, 3, 3))},
             *out[2];
    assert_int_equal(beside(C, in, 3, out, 2, NULL), TG_OK);
    assert_int_equal(tg_realize_many(out, 2), TG_OK);
    beside_is_at(__LINE__, run, out, (const double *const[]){both, mean});
    RUN(j, in, 3, out, 2);
    beside_is_at(__LINE__, run, out, (const double *const[]){both, mean});
  }
  tg_jit_free(j);
}

static TgStatus thrice(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout, (void)user;
  out[0] = tg_mul_scalar(in[0], 3);
  return TG_OK;
}

/* The code of kernels that no program runs any more is given back; what a captured function runs stays, and a
 * kernel that is asked for again is there again. */
static void test_code_given_back(void **state) {
  (void)state;

  enum { KERNELS = 70 };

  TgTensor *x = X("[1, 2]"), *y;
  TgJit *j = tg_jit(C, thrice, NULL);
  for (int i = 0; i < 3; i++)
    RUN(j, &x, 1, &y, 1);
  for (int twice = 0; twice < 2; twice++)
    for (int i = 0; i < KERNELS; i++) {
      int want[] = {1000 + i, 2000 + 2 * i}, got[2];
      TG_SCOPE(C)
      assert_int_equal(tg_read(tg_mul_scalar(X("[1, 2]"), want[0]), got, sizeof got), TG_OK);
      assert_memory_equal(got, want, sizeof want);
      tg_cache_clear(C);
      if (i % 30) continue;
      RUN(j, &x, 1, &y, 1);
      TEXT(y, "[3, 6]");
    }
  tg_jit_free(j);
}

int main(void) {
  const struct CMUnitTest tests[] = {ALL(test_replay),
                                     ALL(test_training),
                                     ALL(test_random),
                                     ALL(test_beside),
                                     ALL(test_state),
                                     ALL(test_scopes),
                                     ALL(test_refused),
                                     ALL(test_code_given_back),
                                     ALL(test_older),
                                     ALL(test_older_of_memory),
                                     ALL(test_nested),
                                     ALL(test_replaced),
                                     ALL(test_computed),
                                     ALL(test_row),
                                     ALL(test_in_place_list),
                                     ALL(test_output_of_variable),
                                     ALL(test_older_stored),
                                     ALL(test_others_value),
                                     ALL(test_others_value_of_older),
                                     ALL(test_gradient_of_input),
                                     ALL(test_modes),
                                     ALL(test_frozen),
                                     ALL(test_gradient_through_older),
                                     ALL(test_older_of_variable),
                                     ALL(test_empty),
                                     ALL(test_constants)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
