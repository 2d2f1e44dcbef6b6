/* test_memory.c: what aliases what, and which value a tensor has whatever is stored meanwhile. Each case is a
 * small program as a user writes it, its expected numbers counted by hand. On CPU and INTERP. Random programs
 * of this kind are in tests/fuzz/memory.c. */
#define _GNU_SOURCE
#include "tg_nn.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
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

static void ok_at(int line, TgStatus s) {
  if (s) fail_msg("line %d: %s", line, tg_errmsg(C));
}

#define OK(s)   ok_at(__LINE__, (s))
#define X(text) tg_from_text(C, text)

static TgTensor *full(double v, int n) { return tg_full(C, TG_SHAPE(n), v, .dtype = TG_I32); }

/* ---- a part that was read is still a part */
static void part_read_then_written(void **state) {
  (void)state;
  TgTensor *x = X("[[0, 1], [2, 3]]"), *row = tg_getitem(x, TG_IDX(TG_AT(0)));
  TEXT(row, "[0, 1]");
  assert_non_null(tg_setitem_scalar(x, TG_IDX(TG_AT(0)), 7));
  TEXT(x, "[[7, 7], [2, 3]]");
  TEXT(row, "[7, 7]");
  TG_SCOPE(C) OK(tg_realize(tg_slice(x, 0, 1, 2))); /* even when its handle is gone */
  tg_assign_slice(x, (int64_t[]){1, 0}, (int64_t[]){2, 2}, tg_full(C, TG_SHAPE(1, 2), 9, .dtype = TG_I32));
  TEXT(x, "[[7, 7], [9, 9]]");
  TgTensor *t = tg_permute(x, 2, (int64_t[]){1, 0});
  TEXT(t, "[[7, 9], [7, 9]]");
  assert_non_null(tg_assign(t, X("[[1, 2], [3, 4]]")));
  TEXT(x, "[[1, 3], [2, 4]]");
  TEXT(row, "[1, 3]");
}

static void ring_buffer(void **state) {
  (void)state;
  TgTensor *x = X("[0, 1, 2, 3]");
  int64_t sum = 0;
  for (int i = 0; i < 8; i++)
    TG_SCOPE(C) {
      sum += tg_item_i64(tg_select(x, 0, i % 4));
      assert_non_null(tg_setitem_scalar(x, TG_IDX(TG_AT(i % 4)), 10 + i));
    }
  assert_int_equal(sum, 0 + 1 + 2 + 3 + 10 + 11 + 12 + 13);
  TEXT(x, "[14, 15, 16, 17]");
}

/* However a tensor was made: what is realized is memory, and a part of that a view of it. */
static void alias(TgTensor *x) {
  OK(tg_realize(x));
  TgTensor *row = tg_select(x, 0, 1);
  TgTensor *t = tg_transpose(x, 0, 1);
  TgTensor *flat = tg_reshape(tg_detach(x), TG_SHAPE(4));
  assert_non_null(tg_assign(row, full(5, 2)));
  TEXT(x, "[[0, 0], [5, 5]]");
  assert_non_null(tg_setitem_scalar(tg_select(x, 0, 0), TG_IDX(TG_AT(0)), 7));
  TEXT(t, "[[7, 5], [0, 5]]");
  assert_non_null(tg_setitem_scalar(t, TG_IDX(TG_AT(1), TG_AT(0)), 9));
  assert_non_null(tg_setitem_scalar(flat, TG_IDX(TG_AT(3)), 8));
  TEXT(x, "[[7, 9], [5, 8]]");
  TEXT(row, "[5, 8]");
}

static void however_made(void **state) {
  (void)state;
  TgTensor *zeros = tg_zeros(C, TG_SHAPE(2, 2), .dtype = TG_I32);
  alias(X("[[0, 0], [0, 0]]"));
  alias(tg_sub_scalar(X("[[1, 1], [1, 1]]"), 1));
  alias(tg_contiguous(zeros));
  alias(tg_clone(zeros));
  alias(tg_zeros(C, TG_SHAPE(2, 2), .dtype = TG_I32));
  alias(tg_cast(tg_mul_scalar(tg_rand(C, TG_SHAPE(2, 2)), 0.5), TG_I32));
  TEXT(zeros, "[[0, 0], [0, 0]]");
}

static void of_itself(void **state) {
  (void)state;
  TgTensor *x = X("[0, 1, 2, 3, 4, 5]"), *p = tg_getitem(x, TG_IDX(TG_SLICE(0, 3)));
  tg_assign(p, tg_mul_scalar(p, 10));
  assert_non_null(tg_setitem(x, TG_IDX(TG_SLICE(0, 3)), p)); /* x[:3] *= 10, as Python does it */
  TEXT(x, "[0, 10, 20, 3, 4, 5]");
  tg_setitem(x, TG_IDX(TG_SLICE(1, 6)), tg_getitem(x, TG_IDX(TG_SLICE(0, 5)))); /* they overlap */
  TEXT(x, "[0, 0, 10, 20, 3, 4]");
  TgTensor *m = X("[[0, 1], [2, 3], [4, 5]]"), *r0 = tg_select(m, 0, 0), *r1 = tg_select(m, 0, 1);
  tg_setitem(m, TG_IDX(TG_AT(0)), r1);
  tg_setitem(m, TG_IDX(TG_AT(2)), r0); /* r0 is what row 0 is now */
  TEXT(m, "[[2, 3], [2, 3], [2, 3]]");
  TgTensor *y = X("[1, 2, 3]"), *old = tg_add_scalar(y, 0), *both;
  tg_assign(y, tg_mul_scalar(y, 2));
  both = tg_add(tg_mul_scalar(old, 100), y); /* a value on both sides of a store */
  TEXT(both, "[102, 204, 306]");
}

static void with_steps(void **state) {
  (void)state;
  TgTensor *y = X("[0, 1, 2, 3, 4]"), *even = tg_getitem(y, TG_IDX(TG_SLICE(TG_OPEN, TG_OPEN, 2)));
  tg_assign(even, full(0, 3)); /* the step does not divide the size */
  TEXT(y, "[0, 1, 0, 3, 0]");
  tg_setitem(y, TG_IDX(TG_SLICE(TG_OPEN, TG_OPEN, -3)), X("[7, 8]"));
  TEXT(y, "[0, 8, 0, 3, 7]");
  TEXT(even, "[0, 0, 7]");
  TgTensor *m = tg_reshape(tg_arange(C, 0, 20), TG_SHAPE(4, 5));
  OK(tg_realize(m));
  tg_assign(tg_getitem(m, TG_IDX(TG_SLICE(TG_OPEN, TG_OPEN, 3), TG_SLICE(1, TG_OPEN, 2))),
            tg_zeros(C, TG_SHAPE(2, 2), .dtype = TG_I32));
  TEXT(m, "[[0, 0, 2, 0, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [15, 0, 17, 0, 19]]");
  TgTensor *wide = tg_expand(X("[[1], [2]]"), TG_SHAPE(2, 3));
  assert_null(tg_assign(wide, full(0, 3)));
  assert_int_equal(tg_error(C), TG_ERR_STATE);
  tg_clear_error(C);
}

/* ---- values: those of the moment at which a tensor was built */
static void built_before(void **state) {
  (void)state;
  for (int other = 0; other < 2; other++) {
    TgTensor *x = X("[0, 1, 2, 3]"), *y = tg_add_scalar(x, 1);
    OK(tg_realize(y));
    TgTensor *z = tg_mul_scalar(y, 10);
    if (other) OK(tg_realize(tg_assign(x, full(100, 4))));
    TgTensor *w = tg_mul_scalar(y, 2);
    OK(tg_realize(tg_assign(y, full(7, 4))));
    TEXT(z, "[10, 20, 30, 40]");
    TEXT(w, "[2, 4, 6, 8]");
    TEXT(y, "[7, 7, 7, 7]");
  }
}

static void clone_released(void **state) {
  (void)state;
  TgTensor *x = X("[0, 1, 2, 3]"), *y = NULL;
  TG_SCOPE(C) y = tg_keep(tg_mul_scalar(tg_clone(x), 10));
  OK(tg_realize(tg_assign(x, full(100, 4))));
  OK(tg_collect(C));
  TEXT(y, "[0, 10, 20, 30]");
  tg_release(y);
}

static void equal_expressions(void **state) {
  (void)state;
  TgTensor *w = X("[0, 1, 2, 3]"), *a = tg_mul_scalar(w, 1), *b = tg_mul_scalar(w, 1), *ab[] = {a, b};
  OK(tg_realize_many(ab, 2));
  OK(tg_realize(tg_assign(w, tg_add_scalar(w, 1))));
  OK(tg_realize(tg_add_(a, full(10, 4))));
  TEXT(a, "[10, 11, 12, 13]");
  TEXT(b, "[0, 1, 2, 3]");
  TgTensor *c = tg_zeros(C, TG_SHAPE(2)), *d = tg_zeros(C, TG_SHAPE(2));
  OK(tg_realize(c));
  OK(tg_realize(d));
  tg_setitem_scalar(c, TG_IDX(TG_AT(0)), 1);
  TEXT(c, "[1.0, 0.0]");
  TEXT(d, "[0.0, 0.0]");
  TgTensor *one = X("[3]"), *sum = tg_sum(one); /* nothing to add up: a value all the same */
  tg_assign(one, full(4, 1));
  TEXT(sum, "3");
}

static void twins(void **state) {
  (void)state;
  TgTensor *x = X("[10, 11, 12, 13]");
  tg_assign(x, tg_add_scalar(x, 1));
  TgTensor *early = tg_neg(x);
  OK(tg_realize(x));
  TgTensor *late = tg_neg(x); /* the same value as early, of another graph */
  tg_assign(x, full(5, 4));
  TgTensor *all[] = {late, x, early};
  OK(tg_realize_many(all, 3));
  TEXT(early, "[-11, -12, -13, -14]");
  TEXT(late, "[-11, -12, -13, -14]");
  tg_setitem_scalar(late, TG_IDX(TG_AT(0)), 0);
  TEXT(early, "[-11, -12, -13, -14]");
}

/* The parameters and the old loss after an optimiser's step; what was not computed before has the old
 * weights' value. */
static void around_a_step(void **state) {
  (void)state;
  TgTensor *w = tg_requires_grad(X("[1.0, 2.0]"), true), *x = X("[3.0, 4.0]");
  TgOptim *sgd = tg_sgd(C, &w, 1, .lr = 0.5);
  TgTensor *y = tg_mul(w, x), *loss = tg_sum(y);
  OK(tg_backward(loss));
  OK(tg_optim_step(sgd));
  TEXT(w, "[-0.5, 0.0]");
  TEXT(y, "[3.0, 8.0]");
  TEXT(loss, "11.0");
  TEXT(tg_mul(w, x), "[-1.5, 0.0]");
  tg_optim_free(sgd);
}

static void gradients_of_what_was_read(void **state) {
  (void)state;
  TgTensor *x = X("[1.0, -2.0, 3.0]"), *y = tg_square(x), *z, *g[2];
  TEXT(y, "[1.0, 4.0, 9.0]");
  z = tg_sum(tg_mul(y, y));
  TEXT(z, "98.0");
  OK(tg_gradient(z, ((TgTensor *[]){x, y}), 2, g));
  TEXT(g[0], "[4.0, -32.0, 108.0]");
  TEXT(g[1], "[2.0, 8.0, 18.0]");
}

/* Gradients for every value of a chain of five. Bit s (s - 1) / 2 + k - 1 of when: value k is computed right
 * after value s was built. */
static void gradients_computed_when(unsigned when, char text[5][64]) {
  TG_SCOPE(C) {
    TgTensor *v[5], *g[5];
    for (int s = 0; s < 5; s++) {
      v[s] = s == 0   ? X("[1.0, -2.0, 3.0]")
             : s == 1 ? tg_mul(v[0], v[0])
             : s == 2 ? tg_add(tg_mul(v[1], v[0]), v[1])
             : s == 3 ? tg_sub(tg_mul(v[2], v[2]), v[1])
                      : tg_sum(tg_add(tg_mul(v[3], v[0]), v[2]));
      for (int k = 1; k <= s; k++)
        if (when >> (s * (s - 1) / 2 + k - 1) & 1) OK(tg_realize(v[k]));
    }
    OK(tg_gradient(v[4], v, 5, g));
    for (int k = 0; k < 5; k++)
      snprintf(text[k], sizeof text[k], "%s", tg_to_text(g[k]));
  }
}

static void gradients_whenever_computed(void **state) {
  (void)state;
  char want[5][64], got[5][64];
  gradients_computed_when(0, want);
  assert_string_equal(want[2], "[5.0, 17.0, 217.0]");
  for (unsigned when = 1; when < 1u << (1 + 2 + 3 + 4); when++) {
    gradients_computed_when(when, got);
    for (int k = 0; k < 5; k++)
      if (strcmp(got[k], want[k]))
        fail_msg("%03x: gradient for value %d is %s, not %s", when, k, got[k], want[k]);
  }
}

/* Two handles of one expression never share memory: the second one is a copy, and a gradient goes through that. */
static void gradient_of_a_twin(void **state) {
  (void)state;
  for (int when = 0; when < 8; when++)
    TG_SCOPE(C) {
      TgTensor *x = tg_add_scalar(X("[1.0, 2.0]"), when),
               *sum = tg_sum(x, .axis = TG_AXES(0), .keepdim = true), *g;
      TgTensor *twin = tg_cast(sum, TG_F32);
      if (when & 1) OK(tg_realize(x));
      if (when & 2) OK(tg_realize(sum));
      if (when & 4) OK(tg_realize(twin));
      OK(tg_gradient(tg_sum(twin), &x, 1, &g));
      TEXT(g, "[1.0, 1.0]");
    }
}

/* x = f(x) keeps neither memory nor, for ever, the way that it was computed; a gradient through that is an
 * error, never 0. */
static void long_history(void **state) {
  (void)state;
  TgTensor *start = tg_keep(X("[1.0, 2.0]")), *x = tg_keep(tg_mul_scalar(start, 1)), *g;
  OK(tg_realize(x));
  for (int i = 0; i < 200; i++) {
    TgTensor *y = NULL;
    TG_SCOPE(C) OK(tg_realize(y = tg_keep(tg_add_scalar(x, 1))));
    tg_release(x), x = y;
    OK(tg_collect(C));
    if (i == 20) {
      OK(tg_gradient(tg_sum(x), &start, 1, &g));
      TEXT(g, "[1.0, 1.0]");
    }
  }
  TEXT(x, "[201.0, 202.0]");
  assert_int_equal(tg_gradient(tg_sum(x), &start, 1, &g), TG_ERR_STATE);
  assert_non_null(strstr(tg_errmsg(C), "target 0"));
  tg_clear_error(C);
  tg_release(start), tg_release(x);
}

/* Memories that are made after a sweep have the numbers of those that it freed. A value on the way to another is
 * freed and still remembered: its gradient goes through how it was computed, never through what has its number. */
static void numbers_again(void **state) {
  (void)state;
  TgTensor *x = tg_keep(tg_requires_grad(X("[1.0, 2.0]"), true)), *z = NULL, *noise[8], *g;
  TG_SCOPE(C) {
    TgTensor *y = tg_mul(x, x);
    OK(tg_realize(y));
    OK(tg_realize(z = tg_keep(tg_mul(y, tg_add_scalar(y, 1)))));
  }
  OK(tg_collect(C));
  for (int i = 0; i < 8; i++)
    noise[i] = X("[100.0, 100.0]");
  OK(tg_gradient(tg_sum(z), &x, 1, &g));
  TEXT(g, "[6.0, 36.0]"); /* of x^4 + x^2 */
  for (int i = 0; i < 8; i++)
    TEXT(noise[i], "[100.0, 100.0]");
  tg_release(x), tg_release(z);
}

/* The copy of an old version is freed, and its number goes to a smaller memory: the next copy is not made there. */
static void number_of_a_copy(void **state) {
  (void)state;
  TgTensor *x = tg_keep(tg_clone(full(1, 64)));
  OK(tg_realize(x));
  for (int i = 1; i <= 3; i++) {
    for (int k = 0; k < 32 * (i - 1); k++)
      TG_SCOPE(C) TEXT(X("[1, 2]"), "[1, 2]");
    TG_SCOPE(C) {
      TgTensor *old = tg_sum(x);
      tg_assign(x, full(i + 1, 64));
      OK(tg_realize(x));
      assert_int_equal(tg_item_i64(old), 64 * i);
      assert_int_equal(tg_item_i64(tg_sum(x)), 64 * (i + 1));
    }
    OK(tg_collect(C));
  }
  tg_release(x);
}

/* What a remembered value was computed from stays, though its own handle is gone; where a gradient is
 * required nothing is ever cut. */
static void remembered(void **state) {
  (void)state;
  TgTensor *t = tg_keep(X("[1.0, 2.0]")), *w = tg_keep(tg_requires_grad(X("[2.0]"), true)), *y = NULL, *g;
  TG_SCOPE(C) OK(tg_realize(y = tg_keep(tg_mul(tg_add_scalar(X("[3.0, 4.0]"), 1), t))));
  OK(tg_collect(C));
  TgTensor *noise = X("[100.0, 100.0]"); /* would lie where something was freed */
  OK(tg_gradient(tg_sum(y), &t, 1, &g));
  TEXT(g, "[4.0, 5.0]");
  TEXT(noise, "[100.0, 100.0]");
  TgTensor *x = tg_keep(tg_mul_scalar(w, 0));
  for (int i = 0; i < 100; i++) {
    TgTensor *next = NULL;
    TG_SCOPE(C) OK(tg_realize(next = tg_keep(tg_add(x, w))));
    tg_release(x), x = next;
  }
  OK(tg_collect(C));
  OK(tg_backward(tg_sum(x)));
  TEXT(tg_grad(w), "[100.0]");
  tg_release(t), tg_release(w), tg_release(y), tg_release(x);
}

/* Gradients where a store waits on memory that was computed from a parameter: of what it stores, and of the
 * rest of what was there. */
static void gradients_of_stores(void **state) {
  (void)state;
  TgTensor *w = tg_requires_grad(tg_cast(X("[1, 2, 3]"), TG_F32), true), *e = tg_mul_scalar(w, 2);
  OK(tg_realize(e));
  tg_assign(e, tg_mul_scalar(w, 3));
  TgTensor *loss = tg_sum(tg_mul(e, e));
  OK(tg_backward(loss));
  TEXT(tg_grad(w), "[18.0, 36.0, 54.0]");
  TEXT(loss, "126.0");
  tg_zero_grad(w);
  e = tg_mul_scalar(w, 2);
  OK(tg_realize(e));
  tg_assign_slice(tg_flip(e, 1, (const int64_t[]){0}), (const int64_t[]){0}, (const int64_t[]){1},
                  tg_full(C, TG_SHAPE(1), 5));
  loss = tg_sum(tg_mul(e, e));
  OK(tg_backward(loss));
  TEXT(tg_grad(w), "[8.0, 16.0, 0.0]");
  TEXT(loss, "45.0");
  TEXT(e, "[2.0, 4.0, 5.0]");
  /* none goes on through tg_detach, whatever is stored */
  tg_zero_grad(w);
  TgTensor *d = tg_mul_scalar(tg_detach(w), 2);
  OK(tg_realize(d));
  tg_assign_slice(d, (const int64_t[]){0}, (const int64_t[]){1}, tg_full(C, TG_SHAPE(1), 5));
  OK(tg_backward(tg_sum(tg_mul(d, w))));
  TEXT(tg_grad(w), "[5.0, 4.0, 6.0]");
}

static void of_variables(void **state) { /* realized, they are still expressions */
  (void)state;
  TgVariable *n = tg_variable(C, "n", 1, 6);
  TgTensor *x = X("[1, 2, 3, 4, 5, 6]"), *y = tg_mul_scalar(tg_slice(x, 0, 0, tg_size(n)), 2);
  OK(tg_variable_bind(n, 2));
  OK(tg_realize(y));
  TEXT(y, "[2, 4]");
  OK(tg_variable_bind(n, 4));
  TEXT(y, "[2, 4, 6, 8]");
  tg_assign(x, full(9, 6));
  TEXT(x, "[9, 9, 9, 9, 9, 9]");
  OK(tg_variable_bind(n, 3));
  TEXT(y, "[2, 4, 6]");
  tg_assign(x, full(8, 6)); /* computed with the store, it needs what was there before for its other values */
  TgTensor *z = tg_mul(x, tg_cast(tg_variable_tensor(n), TG_I32));
  tg_assign(x, full(7, 6));
  OK(tg_realize_many((TgTensor *[]){z, x}, 2));
  TEXT(z, "[24, 24, 24, 24, 24, 24]");
  OK(tg_variable_bind(n, 2));
  TEXT(z, "[16, 16, 16, 16, 16, 16]");
  TEXT(x, "[7, 7, 7, 7, 7, 7]");
}

/* A store waits for the variable that it names, whatever others are bound to meanwhile. */
static void stores_of_variables(void **state) {
  (void)state;
  TgVariable *n = tg_variable(C, "rows", 1, 6), *m = tg_variable(C, "others", 1, 6);
  TgTensor *x = X("[1, 2, 3, 4, 5, 6]");
  tg_assign(x, tg_add(x, tg_cast(tg_variable_tensor(n), TG_I32)));
  OK(tg_variable_bind(m, 2));
  OK(tg_variable_bind(m, 3));
  OK(tg_variable_unbind(m, NULL));
  OK(tg_variable_bind(n, 2));
  OK(tg_variable_bind(m, 4));
  OK(tg_variable_bind(n, 5)); /* the store was written for 2 */
  TEXT(x, "[3, 4, 5, 6, 7, 8]");
}

/* The same nodes under other roots are another plan. */
static void order_of_roots(void **state) {
  (void)state;
  for (int turn = 0; turn < 2; turn++) {
    TgTensor *x = X("[1, 2]"), *a = tg_add_scalar(x, 1), *b = tg_mul_scalar(a, 10);
    TgTensor *forth[] = {a, b}, *back[] = {b, a};
    OK(tg_realize_many(turn ? back : forth, 2));
    TEXT(a, "[2, 3]");
    TEXT(b, "[20, 30]");
  }
}

static void file_at_close(void **state) { /* a store that waits on a file when all ends is written */
  (void)state;
  char path[] = "/tmp/tg_memory_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "\1\2\3\4", 4), 4);
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = tg_default_device(C)});
  TG_SCOPE(c)
  tg_assign(tg_from_file(c, path, TG_U8, TG_SHAPE(4), .writable = true),
            tg_full(c, TG_SHAPE(4), 9, .dtype = TG_U8));
  OK(tg_collect(c));
  tg_close(c);
  char got[4] = {0};
  assert_int_equal(pread(fd, got, 4, 0), 4);
  assert_memory_equal(got, "\11\11\11\11", 4);
  close(fd);
  remove(path);
}

static void memory_is_given_back(void **state) {
  (void)state;
  TgTensor *x = tg_keep(tg_contiguous(tg_full(C, TG_SHAPE(1 << 16), 1)));
  OK(tg_realize(x));
  tg_counters_reset(C);
  for (int i = 0; i < 300; i++) { /* 256 KiB each */
    TgTensor *y = NULL;
    TG_SCOPE(C) OK(tg_realize(y = tg_keep(tg_mul_scalar(x, 1.0001))));
    tg_release(x), x = y;
    OK(tg_collect(C));
  }
  assert_true(tg_counters(C).peak_bytes < 8 << 20);
  tg_release(x);
}

/* What a turn of a loop leaves is written over by the next, not kept beside it: no call of tg_collect. */
static void scopes_give_back(void **state) {
  (void)state;
  TgTensor *x = tg_keep(tg_contiguous(tg_full(C, TG_SHAPE(1 << 20), 1)));
  OK(tg_realize(x));
  OK(tg_collect(C));
  tg_counters_reset(C);
  for (int i = 0; i < 20; i++) /* 4 MiB each */
    TG_SCOPE(C) OK(tg_realize(tg_mul_scalar(x, 1.0001)));
  assert_true(tg_counters(C).peak_bytes <= 12 << 20);
  tg_release(x);
}

/* A loop over the batches of a data set is planned once: where a batch begins is no part of the plan. */
static void batches(void **state) {
  (void)state;
  float v[64 * 3];
  for (int i = 0; i < 64 * 3; i++)
    v[i] = (float)(i % 7);
  TgTensor *data = tg_mul_scalar(tg_from(C, v, TG_F32, TG_SHAPE(64, 3)), 1);
  TgTensor *w = tg_clone(X("[[0.5], [1.0], [2.0]]"));
  /* data was computed, as one that is scaled is */
  TgTensor *rows = tg_zeros(C, TG_SHAPE(64, 1)), *all[] = {data, w, rows};
  OK(tg_realize_many(all, 3));
  TgCounters before = {0};
  for (int i = 0; i < 16; i++)
    TG_SCOPE(C) {
      if (i == 1) before = tg_counters(C);
      TgTensor *part = tg_matmul(tg_slice(data, 0, 4 * i, 4 * i + 4), w);
      tg_setitem(rows, TG_IDX(TG_SLICE(4 * i, 4 * i + 4)), part);
      OK(tg_realize(rows));
      TgTensor *grad;
      OK(tg_gradient(tg_sum(tg_square(part)), &w, 1, &grad));
      OK(tg_realize(grad));
      float got[4];
      OK(tg_read(part, got, sizeof got));
      for (int r = 0; r < 4; r++)
        assert_true(got[r] == v[12 * i + 3 * r] * 0.5f + v[12 * i + 3 * r + 1] + v[12 * i + 3 * r + 2] * 2);
    }
  TgCounters after = tg_counters(C);
  assert_int_equal(after.schedules, before.schedules);
  assert_int_equal(after.compiled, before.compiled);
  TgTensor *again = tg_matmul(data, w);
  assert_true(tg_item_f64(tg_sum(tg_abs(tg_sub(again, rows)))) == 0);
}

/* Values on both sides of stores, in every order of computing them. */
static void diamonds(void **state) {
  (void)state;
  for (int order = 0; order < 2; order++) {
    TgTensor *x = X("[0]"), *y[3];
    for (int i = 0; i < 3; i++) {
      y[i] = tg_add_scalar(x, 0);
      tg_assign(x, tg_add_scalar(x, 1));
    }
    TgTensor *forth[] = {y[0], y[1], y[2], x}, *back[] = {x, y[2], y[1], y[0]};
    OK(tg_realize_many(order ? back : forth, 4));
    TEXT(y[0], "[0]");
    TEXT(y[1], "[1]");
    TEXT(y[2], "[2]");
    TEXT(x, "[3]");
    TgTensor *a = X("[1, 1]"), *before = tg_mul_scalar(a, 3);
    tg_assign(a, full(2, 2));
    TgTensor *sum = tg_add(a, tg_sub_scalar(before, 1)), *both[] = {sum, a}, *turned[] = {a, sum};
    OK(tg_realize_many(order ? turned : both, 2));
    TEXT(sum, "[4, 4]");
    TEXT(a, "[2, 2]");
    TgTensor *c = X("[2, 2]"), *d = X("[3, 3]"), *old = tg_add_scalar(c, 9);
    tg_add_(c, d);
    tg_add_(d, old); /* what c was */
    TgTensor *cd[] = {c, d}, *dc[] = {d, c};
    OK(tg_realize_many(order ? dc : cd, 2));
    TEXT(c, "[5, 5]");
    TEXT(d, "[14, 14]");
    TgTensor *e = X("[2, 2]"), *f = X("[3, 3]"), *e4 = tg_mul_scalar(e, 4), *f3 = tg_add_scalar(f, 3);
    tg_add_(f, e4);
    tg_add_(e, f3);
    TgTensor *ef[] = {e, f}, *fe[] = {f, e};
    OK(tg_realize_many(order ? fe : ef, 2));
    TEXT(e, "[8, 8]");
    TEXT(f, "[11, 11]");
  }
}

/* What is read at other places than it is written, and what is read late of what is overwritten early. */
static void elsewhere_and_late(void **state) {
  (void)state;

  enum { ROWS = 6, LONG = 300 };

  TgTensor *x = tg_reshape(tg_arange(C, 0, ROWS * LONG), TG_SHAPE(ROWS, LONG));
  OK(tg_realize(x));
  tg_assign(x, tg_mul_scalar(x, 2));
  TgTensor *turned = tg_add_scalar(tg_flip(x, 1, (int64_t[]){1}), 1), *both[] = {x, turned};
  OK(tg_realize_many(both, 2));
  static int32_t v[ROWS * LONG], w[ROWS * LONG];
  OK(tg_read(turned, v, sizeof v));
  for (int i = 0; i < ROWS * LONG; i++)
    assert_int_equal(v[i], 2 * (i / LONG * LONG + LONG - 1 - i % LONG) + 1);
  TgTensor *y = tg_reshape(tg_arange(C, 0, ROWS * LONG), TG_SHAPE(LONG, ROWS));
  TgTensor *sum = tg_sum(tg_square(y));
  TgTensor *twice = tg_sum(tg_mul(y, sum));
  TgTensor *late = tg_add(tg_transpose(x, 0, 1), twice); /* after two sums; the store needs none */
  tg_assign(x, tg_zeros_like(x));
  TgTensor *roots[] = {x, late};
  OK(tg_realize_many(roots, 2));
  OK(tg_read(late, v, sizeof v));
  OK(tg_read(x, w, sizeof w));
  uint32_t total = 0, squares = 0;
  for (uint32_t i = 0; i < ROWS * LONG; i++)
    squares += i * i;
  for (uint32_t i = 0; i < ROWS * LONG; i++)
    total += i * squares;
  for (int i = 0; i < ROWS * LONG; i++) {
    assert_int_equal(v[i], (int32_t)((uint32_t)(2 * (i % ROWS * LONG + i / ROWS)) + total));
    assert_int_equal(w[i], 0);
  }
}

/* A weight that was assigned to, used while that waited and again when it had run: one version, two nodes. */
static void gradient_of_one_version(void **state) {
  (void)state;
  TgTensor *w = tg_requires_grad(X("[1.0, 2.0]"), true);
  tg_assign(w, X("[3.0, 4.0]"));
  TgTensor *a = tg_mul(w, X("[10.0, 20.0]"));
  OK(tg_realize(w));
  OK(tg_backward(tg_sum(tg_add(a, tg_mul(w, X("[1.0, 2.0]"))))));
  TEXT(tg_grad(w), "[11.0, 22.0]");
}

static void of_itself_moved(void **state) {
  (void)state;
  TgTensor *x = X("[1, 2, 3, 4]"), *back = tg_flip(x, 1, (int64_t[]){0});
  tg_assign(back, tg_add(back, x));
  TEXT(x, "[5, 5, 5, 5]");
  TgTensor *m = X("[[1, 2], [3, 4]]");
  tg_assign(m, tg_add(tg_transpose(m, 0, 1), m));
  TEXT(m, "[[2, 5], [5, 8]]");
  TgTensor *s = X("[1, 2, 3, 4]");
  tg_assign(tg_slice(s, 0, 1, 3), tg_add_scalar(tg_slice(s, 0, 2, 4), 1));
  TEXT(s, "[1, 4, 5, 4]");
  TgTensor *n = X("[0, 0]");
  for (int i = 0; i < 100; i++)
    tg_add_(tg_slice(n, 0, 0, 1), full(1, 1));
  TEXT(n, "[100, 0]");
}

static void contiguous_is_memory(void **state) { /* cheap as it is, it is not written into its reader */
  (void)state;
  TgTensor *x = X("[[1.0, 2.0], [3.0, 4.0]]");
  TgTensor *p = tg_contiguous(tg_pad(x, (int64_t[]){1, 1}, (int64_t[]){1, 1}));
  tg_counters_reset(C);
  TEXT(tg_sum(tg_square(p), .axis = TG_AXES(0)), "[0.0, 10.0, 20.0, 0.0]");
  assert_int_equal(tg_counters(C).launches, 2);
}

static void mapped_views(void **state) {
  (void)state;
  TgTensor *x = X("[[0, 1, 2], [3, 4, 5]]"), *t = tg_transpose(x, 0, 1), *row = tg_select(x, 0, 1);
  const int32_t *m = tg_map(row);
  if (strcmp(tg_device(x), "CPU") && strcmp(tg_device(x), "INTERP")) { /* its memory is its own */
    assert_null(m);
    tg_clear_error(C);
    return;
  }
  assert_true(m && m[0] == 3 && m[2] == 5 && m == (const int32_t *)tg_map(x) + 3);
  m = tg_map(t);
  assert_true(m && m[0] == 0 && m[1] == 3 && m[5] == 5);
  tg_assign(x, tg_add_scalar(x, 10));
  m = tg_map(t);
  assert_true(m && m[0] == 10 && m[1] == 13);
}

/* ---- captured functions */
typedef struct State {
  TgTensor *w, *n;
  int mode;
} State;

static TgStatus count_runs(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  State *s = user;
  tg_assign(s->n, tg_add_scalar(s->n, 1)); /* no output depends on it */
  out[0] = tg_mul_scalar(in[0], 2);
  return tg_error(c);
}

static void assigned_without_output(void **state) {
  (void)state;
  State s = {.n = X("[0]")};
  TgJit *j = tg_jit(C, count_runs, &s);
  for (int i = 0; i < 6; i++) {
    TgTensor *x = X("[1]"), *o;
    char want[16];
    OK(tg_jit_run(j, &x, 1, &o, 1));
    snprintf(want, sizeof want, "[%d]", i + 1);
    TEXT(s.n, want);
  }
  tg_jit_free(j);
}

static TgStatus assigns_input(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                              void *user) {
  (void)nin, (void)nout, (void)user;
  tg_assign(in[0], tg_add_scalar(in[0], 1));
  out[0] = tg_mul_scalar(in[0], 10);
  return tg_error(c);
}

static void assigned_input(void **state) {
  (void)state;
  TgTensor *x = X("[0]"), *o;
  TgJit *j = tg_jit(C, assigns_input, NULL);
  for (int i = 0; i < 5; i++) {
    char want[16];
    OK(tg_jit_run(j, &x, 1, &o, 1));
    snprintf(want, sizeof want, "[%d]", i + 1);
    TEXT(x, want);
    snprintf(want, sizeof want, "[%d]", 10 * (i + 1));
    TEXT(o, want);
  }
  TgTensor *all = X("[1, 2]"), *part = tg_slice(all, 0, 1, 2); /* the update would go to a copy */
  assert_int_equal(tg_jit_run(j, &part, 1, &o, 1), TG_ERR_VALUE);
  tg_clear_error(C);
  tg_jit_free(j);
}

static TgStatus adds_weight(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                            void *user) {
  (void)nin;
  State *s = user;
  for (int i = 0; i < nout; i++)
    out[i] = tg_add(s->w, in[0]);
  return tg_error(c);
}

static void waiting_and_twice(void **state) {
  (void)state;
  State s = {.w = X("[0, 0]")};
  TgJit *j = tg_jit(C, adds_weight, &s);
  for (int i = 0; i < 5; i++) {
    TgTensor *x = X("[0, 0]"), *o[2];
    char want[24];
    OK(tg_jit_run(j, &x, 1, o, 2));
    snprintf(want, sizeof want, "[%d, %d]", i, i);
    TEXT(o[0], want);
    TEXT(o[1], want); /* the same value again, in memory of its own */
    tg_setitem_scalar(o[0], TG_IDX(TG_AT(0)), 99);
    TEXT(o[1], want);
    /* waits when the function is called next, and is none of its business */
    tg_assign(s.w, tg_add_scalar(s.w, 1));
  }
  tg_jit_free(j);
}

static TgStatus clears(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  TgTensor *y = tg_mul_scalar(in[0], 2);
  tg_realize(y);
  int old = tg_setting(c, "NOOPT", 1);
  out[0] = tg_add_scalar(y, 1);
  tg_setting(c, "NOOPT", old);
  tg_cache_clear(c);
  return tg_error(c);
}

static void cleared_inside(void **state) {
  (void)state;
  TgJit *j = tg_jit(C, clears, NULL);
  for (int i = 0; i < 5; i++) {
    int32_t v[2] = {i, i + 1};
    char want[24];
    TgTensor *x = tg_from(C, v, TG_I32, TG_SHAPE(2)), *o;
    OK(tg_jit_run(j, &x, 1, &o, 1));
    snprintf(want, sizeof want, "[%d, %d]", 2 * i + 1, 2 * i + 3);
    TEXT(o, want);
    if (i == 3) tg_cache_clear(C);
  }
  tg_jit_free(j);
}

static TgStatus adds_state(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  State *s = user;
  out[0] = tg_add(s->w, in[0]);
  return tg_error(c);
}

/* Two captures of one state: it stays while either lives, though nobody else has it. */
static void state_of_two(void **state) {
  (void)state;
  State s = {0};
  TgJit *j[2] = {tg_jit(C, adds_state, &s), tg_jit(C, adds_state, &s)};
  TgTensor *x = tg_keep(X("[0, 0, 0, 0]")), *o;
  TG_SCOPE(C) {
    s.w = X("[1, 2, 3, 4]");
    for (int i = 0; i < 4; i++)
      OK(tg_jit_run(j[i % 2], &x, 1, &o, 1));
  }
  tg_jit_free(j[0]);
  OK(tg_collect(C));
  /* would lie where it was freed */
  for (int i = 0; i < 32; i++)
    assert_non_null(tg_keep(X("[7, 7, 7, 7]")));
  OK(tg_jit_run(j[1], &x, 1, &o, 1));
  TEXT(o, "[1, 2, 3, 4]");
  tg_jit_free(j[1]);
}

/* A capture reads the copy of an old version: the next old version that must be kept goes elsewhere, though
 * no handle needs that copy any more. */
static void old_version_of_capture(void **state) {
  (void)state;
  State s = {0};
  TgJit *j = tg_jit(C, adds_state, &s);
  TgTensor *m = tg_clone(X("[1, 2, 3, 4]")), *x = X("[0, 0, 0, 0]"), *o, *later;
  OK(tg_realize(m));
  TG_SCOPE(C) {
    s.w = tg_mul_scalar(m, 10); /* of the first version */
    tg_assign(m, X("[5, 6, 7, 8]"));
    OK(tg_realize(m));
    for (int i = 0; i < 3; i++)
      OK(tg_jit_run(j, &x, 1, &o, 1));
    TEXT(o, "[10, 20, 30, 40]");
  }
  later = tg_add_scalar(m, 1); /* of the second */
  tg_assign(m, X("[0, 0, 0, 0]"));
  OK(tg_realize(m));
  OK(tg_jit_run(j, &x, 1, &o, 1));
  TEXT(o, "[10, 20, 30, 40]");
  TEXT(later, "[6, 7, 8, 9]");
  tg_jit_free(j);
}

static TgStatus steps_row(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  State *s = user;
  TgTensor *row = tg_add(tg_slice(s->w, 0, 0, 1), in[0]);
  if (s->mode)
    tg_setitem(s->w, TG_IDX(TG_SLICE(0, 1)), row);
  else
    tg_assign_slice(s->w, (int64_t[]){0, 0}, (int64_t[]){1, 4}, row);
  out[0] = tg_sum(s->w);
  return tg_error(c);
}

static void state_however_made(void **state) {
  (void)state;
  for (int mode = 0; mode < 6; mode++) {
    float zeros[32] = {0}, one[4] = {1, 0, 0, 0};
    State s = {.mode = mode & 1};
    s.w = mode < 2   ? tg_zeros(C, TG_SHAPE(8, 4))
          : mode < 4 ? tg_mul_scalar(tg_rand(C, TG_SHAPE(8, 4)), 0)
                     : tg_from(C, zeros, TG_F32, TG_SHAPE(8, 4));
    OK(tg_realize(s.w));
    TgTensor *x = tg_from(C, one, TG_F32, TG_SHAPE(1, 4)), *o;
    TgJit *j = tg_jit(C, steps_row, &s);
    for (int i = 0; i < 6; i++) {
      OK(tg_jit_run(j, &x, 1, &o, 1));
      assert_true(tg_item_f64(o) == i + 1);
    }
    tg_jit_free(j);
  }
}

/* A computed view has elements of its own to store to, where what it shows has no handle any more: that was
 * released, or its memory holds another value by now. */
static void repeated_elements_computed(void **state) {
  (void)state;
  for (int how = 0; how < 4; how++) {
    TgTensor *x = tg_keep(tg_mul_scalar(tg_arange(C, 0, 3, 1, .dtype = TG_I32), 10));
    if (how == 3) OK(tg_realize(x));
    TgTensor *twice = tg_expand(tg_reshape(x, TG_SHAPE(3, 1)), TG_SHAPE(3, 2)), *sum = tg_sum(twice);
    OK(tg_realize(x));
    if (how == 1) tg_release(x);
    if (how == 3) twice = tg_cast(twice, TG_I32); /* its value of now */
    if (how >= 2) {
      tg_assign(x, tg_full(C, TG_SCALAR, 5, .dtype = TG_I32));
      OK(tg_realize(x));
    }
    OK(tg_realize(twice));
    assert_non_null(tg_setitem_scalar(twice, TG_IDX(TG_AT(1), TG_AT(0)), 7));
    TEXT(twice, "[[0, 0], [7, 10], [20, 20]]");
    TEXT(sum, "60");
    if (how != 1) {
      TEXT(x, how ? "[5, 5, 5]" : "[0, 10, 20]");
      tg_release(x);
    }
  }
}

int main(void) {
#define ALL(t)                                                                                               \
  cmocka_unit_test_setup_teardown(t, open_interp, close_it),                                                 \
      cmocka_unit_test_setup_teardown(t, open_cpu, close_it),                                                \
      cmocka_unit_test_setup_teardown(t, open_cuda, close_it),                                               \
      cmocka_unit_test_setup_teardown(t, open_metal, close_it)
  const struct CMUnitTest tests[] = {ALL(part_read_then_written),
                                     ALL(ring_buffer),
                                     ALL(however_made),
                                     ALL(of_itself),
                                     ALL(with_steps),
                                     ALL(built_before),
                                     ALL(clone_released),
                                     ALL(equal_expressions),
                                     ALL(twins),
                                     ALL(around_a_step),
                                     ALL(gradients_of_what_was_read),
                                     ALL(gradients_whenever_computed),
                                     ALL(gradient_of_a_twin),
                                     ALL(long_history),
                                     ALL(numbers_again),
                                     ALL(number_of_a_copy),
                                     ALL(remembered),
                                     ALL(gradients_of_stores),
                                     ALL(of_variables),
                                     ALL(stores_of_variables),
                                     ALL(order_of_roots),
                                     ALL(file_at_close),
                                     ALL(memory_is_given_back),
                                     ALL(scopes_give_back),
                                     ALL(batches),
                                     ALL(contiguous_is_memory),
                                     ALL(diamonds),
                                     ALL(elsewhere_and_late),
                                     ALL(gradient_of_one_version),
                                     ALL(of_itself_moved),
                                     ALL(mapped_views),
                                     ALL(assigned_without_output),
                                     ALL(assigned_input),
                                     ALL(waiting_and_twice),
                                     ALL(cleared_inside),
                                     ALL(state_of_two),
                                     ALL(old_version_of_capture),
                                     ALL(state_however_made),
                                     ALL(repeated_elements_computed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
