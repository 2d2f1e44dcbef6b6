/* test_state.c: tensors as memory and as text, handles, updates in place, settings, factorisations, and the
 * operators with a number: what test_api.c does not reach. Expected values are by hand or laws. Runs on CPU
 * and INTERP. */
#include "tensor/context.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *C;

static int open_on(const char *device) {
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = 3});
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

static void error_is_at(int line, const void *p, TgStatus s, const char *part) {
  if (p || tg_error(C) != s || !strstr(tg_errmsg(C), part))
    fail_msg("line %d: %s: %s, not %s about \"%s\"", line, tg_status_name(tg_error(C)), tg_errmsg(C),
             tg_status_name(s), part);
  tg_clear_error(C);
}

#define ERROR(p, s, part) error_is_at(__LINE__, (p), (s), (part))

static void test_text(void **state) {
  (void)state;
  TEXT(X("[[1, 2], [3, 4]]"), "[[1, 2], [3, 4]]");
  TEXT(X(" 7 "), "7");
  TEXT(X("[1, 2.5, -3e2]"), "[1.0, 2.5, -300.0]");
  TEXT(X("[true, False]"), "[true, false]");
  TEXT(X("[nan, -inf, inf, 1]"), "[nan, -inf, inf, 1.0]");
  TEXT(X("[[], []]"), "[[], []]");
  TEXT(X("[]"), "[]");
  TEXT(X("[[[]], [[]]]"), "[[[]], [[]]]");
  TEXT(X("[0.1, 1e-45, 3.4028235e38, 1e-5]"), "[0.1, 1e-45, 3.4028235e+38, 0.00001]");
  TEXT(X("[9223372036854775807, -1]"), "[9223372036854775807, -1]");
  TEXT(X("18446744073709551615"), "18446744073709551615");
  assert_int_equal(tg_dtype(X("[1]")), TG_I32);
  assert_int_equal(tg_dtype(X("[1, 4294967296]")), TG_I64);
  assert_int_equal(tg_dtype(X("[true, 2]")), TG_I32);
  assert_int_equal(tg_dtype(X("[]")), TG_F32);
  TEXT(tg_from_text(C, "[1.5, 2]", .dtype = TG_F16), "[1.5, 2.0]");
  TEXT(tg_from_text(C, "[300, -1]", .dtype = TG_U8), "[44, 255]");
  TEXT(tg_from_text(C, "0.1", .dtype = TG_F64), "0.1");
  ERROR(X("[[1, 2], [3]]"), TG_ERR_VALUE, "ragged");
  ERROR(X("[1, [2]]"), TG_ERR_VALUE, "a list where the others have a number");
  ERROR(X("[[1], 2]"), TG_ERR_VALUE, "ragged");
  ERROR(X("[[], [1]]"), TG_ERR_VALUE, "ragged");
  ERROR(X("[1, x]"), TG_ERR_VALUE, "column 5");
  ERROR(X("[1, 2"), TG_ERR_VALUE, "']'");
  ERROR(X("[1] 2"), TG_ERR_VALUE, "more text");
  ERROR(X(""), TG_ERR_VALUE, "no number");
  ERROR(tg_from_text(C, NULL), TG_ERR_VALUE, "no text");
  TEXT(tg_from_bytes(C, "\1\2\3\4\5", 5, TG_DTYPE_DEFAULT), "[1, 2, 3, 4, 5]");
  TEXT(tg_from_bytes(C, "\1\0\2\0\3", 5, TG_U16), "[1, 2]");
}

static void test_questions(void **state) {
  (void)state;
  TgTensor *x = tg_zeros(C, TG_SHAPE(2, 3), .dtype = TG_F16);
  assert_int_equal(tg_element_size(x), 2);
  assert_true(tg_is_floating_point(x));
  assert_false(tg_is_floating_point(X("1")));
  assert_int_equal(tg_len(x), 2);
  assert_int_equal(tg_len(X("1")), -1);
  assert_non_null(strstr(tg_describe(x), "f16 (2, 3)"));
  assert_null(strstr(tg_describe(x), "gradient"));
  TgTensor *p = tg_requires_grad(tg_from_text(C, "[1.0]"), true);
  assert_non_null(strstr(tg_describe(p), "requires a gradient"));
  assert_string_equal(tg_device_name(0), "CPU");
  assert_int_equal(tg_sync(C), TG_OK);
  TEXT(tg_full_i64(C, TG_SHAPE(1), INT64_MIN, TG_I64), "[-9223372036854775808]");
  TEXT(tg_scalar_like(X("[1]"), 3), "3");
  TEXT(tg_scalar_like(X("[1]"), 0.5), "0.5");
}

static void test_windows(void **state) {
  (void)state;
  TgTensor *y = X("[[1.0, 2.0], [3.0, 4.0]]");
  /* windows of nothing, and of an axis of nothing */
  TEXT(tg_unfold(X("[1, 2, 3]"), 0, 1, 2), "[[1], [3]]");
  TEXT(tg_unfold(X("[1, 2, 3, 4, 5]"), 0, 2, 3),
       "[[1, 2], [4, 5]]"); /* the last one ends where the axis does */
  TEXT(tg_unfold(X("[1, 2, 3, 4, 5]"), 0, 2, 4), "[[1, 2]]");
  TgTensor *windows = tg_unfold(y, 1, 0, 2);
  assert_true(tg_ndim(windows) == 3 && tg_dim(windows, 0) == 2 && tg_dim(windows, 1) == 2 &&
              !tg_dim(windows, 2));
  TEXT(tg_sum(windows), "0.0");
  windows = tg_unfold(tg_zeros(C, TG_SHAPE(2, 0)), 1, 0, 3);
  assert_true(tg_dim(windows, 1) == 1 && !tg_dim(windows, 2));
}

/* An average over what is there alone, where one side of one axis has padding: of (2, 2) by hand. */
static void test_padded_averages(void **state) {
  (void)state;
  TgTensor *y = X("[[1.0, 2.0], [3.0, 4.0]]");
  y = tg_reshape(y, TG_SHAPE(1, 1, 2, 2));

  static const struct {
    int64_t kernel[2], padding[4]; /* left, right, top, bottom */
    const char *alone, *whole;
  } sides[] = {
      {{2, 1}, {0, 0, 1, 0}, "[[[[1.0, 2.0], [2.0, 3.0]]]]", "[[[[0.5, 1.0], [2.0, 3.0]]]]"},
      {{2, 1}, {0, 0, 0, 1}, "[[[[2.0, 3.0], [3.0, 4.0]]]]", "[[[[2.0, 3.0], [1.5, 2.0]]]]"},
      {{1, 2}, {1, 0, 0, 0}, "[[[[1.0, 1.5], [3.0, 3.5]]]]", "[[[[0.5, 1.5], [1.5, 3.5]]]]"},
      {{1, 2}, {0, 1, 0, 0}, "[[[[1.5, 2.0], [3.5, 4.0]]]]", "[[[[1.5, 1.0], [3.5, 2.0]]]]"},
      {{2, 2}, {0, 0, 0, 0}, "[[[[2.5]]]]", "[[[[2.5]]]]"},
  };

  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
    const int64_t *k = sides[i].kernel, *p = sides[i].padding;
    for (int alone = 0; alone < 2; alone++)
      TEXT(tg_avg_pool2d(y, .kernel = TG_SIZES(k[0], k[1]), .stride = TG_SIZES(1, 1),
                         .padding = TG_SIZES(p[0], p[1], p[2], p[3]), .exclude_pad = alone),
           alone ? sides[i].alone : sides[i].whole);
  }
}

/* One bool beside a number is a number; the order of integers is that of their signs. */
static void test_mixed(void **state) {
  (void)state;
  TgTensor *b = X("[true, true]"), *i = X("[2, 3]"), *f = X("[2.5, 3.5]");
  TEXT(tg_add(i, b), "[3, 4]");
  TEXT(tg_add(b, i), "[3, 4]");
  TEXT(tg_mul(f, b), "[2.5, 3.5]");
  TEXT(tg_mul(b, f), "[2.5, 3.5]");
  TEXT(tg_sub(i, b), "[1, 2]");
  TEXT(tg_sub(b, i), "[-1, -2]");
  TEXT(tg_maximum(i, b), "[2, 3]");
  TEXT(tg_maximum(b, i), "[2, 3]");
  TEXT(tg_add(b, b), "[true, true]");
  static const TgDType narrow[] = {TG_U8, TG_I16, TG_U16, TG_I32, TG_U32, TG_I64, TG_U64};
  for (size_t k = 0; k < sizeof narrow / sizeof *narrow; k++)
    TEXT(tg_sort(tg_cast(X("[200, 3, 130, 0, 255]"), narrow[k]), NULL), "[0, 3, 130, 200, 255]");
  TEXT(tg_sort(tg_cast(X("[100, -3, 0, -128, 127]"), TG_I8), NULL), "[-128, -3, 0, 100, 127]");
  TEXT(tg_sort(X("[true, false, true]"), NULL), "[false, true, true]");
}

/* A convolution along as many axes as there may be. */
static void test_most_axes(void **state) {
  (void)state;
  TgTensor *x = tg_requires_grad(tg_ones(C, TG_SHAPE(1, 1, 2, 2, 2, 2)), true), *g[1];
  TgTensor *w = tg_full(C, TG_SHAPE(1, 1, 1, 1, 1, 1), 2);
  TEXT(tg_sum(tg_conv2d(x, w)), "32.0");
  TEXT(tg_sum(tg_conv_transpose2d(x, w, .stride = TG_SIZES(2), .output_padding = TG_SIZES(1))), "32.0");
  assert_int_equal(tg_gradient(tg_sum(tg_square(tg_conv_transpose2d(x, w, .stride = TG_SIZES(2)))), &x, 1, g),
                   TG_OK);
  TEXT(tg_sum(g[0]), "128.0");
}

/* Of names of either case; and from X / (|X| + eps). */
static void test_names_and_norms(void **state) {
  (void)state;
  TgTensor *y = X("[[1.0, 2.0], [3.0, 4.0]]"), *x = X("[[3.0, 0.0], [0.0, 4.0]]");
  TEXT(tg_rearrange(y, "aZ Az -> (Az aZ)", NULL, 0), "[1.0, 3.0, 2.0, 4.0]");
  TEXT(tg_round(tg_mul_scalar(tg_newton_schulz(x, 0, (const double[]){3.4, -4.8, 2.0}, 5), 100)),
       "[[30.0, 0.0], [0.0, 40.0]]");
  TEXT(tg_round(tg_mul_scalar(tg_newton_schulz(x, 0, (const double[]){3.4, -4.8, 2.0}, 0), 100)),
       "[[60.0, 0.0], [0.0, 80.0]]");
}

static void test_memory(void **state) {
  (void)state;
  TgTensor *x = X("[[1.0, 2.0], [3.0, 4.0]]"), *y = tg_clone(x), *e = tg_empty_like(x);
  tg_assign(x, tg_mul_scalar(x, 10));
  TEXT(x, "[[10.0, 20.0], [30.0, 40.0]]");
  TEXT(y, "[[1.0, 2.0], [3.0, 4.0]]");
  TEXT(tg_assign(e, y), "[[1.0, 2.0], [3.0, 4.0]]");
  const float *m = tg_map(tg_transpose(y, 0, 1));
  assert_non_null(m);
  assert_true(m[0] == 1 && m[1] == 3 && m[2] == 2 && m[3] == 4);
  assert_non_null(tg_map(tg_zeros(C, TG_SHAPE(0, 3))));
  TgTensor *z = tg_clone(tg_zeros(C, TG_SHAPE(0)));
  TEXT(z, "[]");
  TEXT(tg_replace(x, tg_cast(y, TG_I32)), "[[1, 2], [3, 4]]");
  ERROR(tg_replace(x, X("[1]")), TG_ERR_SHAPE, "replace: (2, 2) by (1)");
  TgContext *other = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP"});
  TgTensor *t = tg_to_context(y, other);
  assert_ptr_equal(tg_context(t), other);
  TEXT(t, "[[1.0, 2.0], [3.0, 4.0]]");
  TgTensor *same = tg_to_context(y, C); /* a view, under a handle of its own */
  assert_true(same != y && tg_map(same) == tg_map(y));
  tg_close(other);
  TgTensor *p = tg_requires_grad(X("[2.0]"), true);
  tg_backward(tg_sum(tg_square(p)));
  TgTensor *c = tg_clone(p);
  TEXT(tg_grad(c), "[4.0]");
  TG_SCOPE(C)
  c = tg_keep(tg_clone(p)); /* its gradient ends with the scope that made it, and is no longer its */
  assert_null(tg_grad(c));
  TG_SCOPE(C) {
    TgTensor *kept = tg_keep(tg_grad(tg_clone(p)));
    TEXT(kept, "[4.0]");
    tg_release(kept);
  }
  tg_release(c);
  char path[] = "/tmp/tg_state_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  FILE *f = fdopen(fd, "wb");
  fwrite("\1\0\2\0\3\0\4\0\5", 1, 9, f), fclose(f);
  TEXT(tg_from_file(C, path, TG_U16, TG_SHAPE(-1)), "[1, 2, 3, 4]");
  TEXT(tg_from_file(C, path, TG_U8, TG_SHAPE(-1, 2), .offset = 3), "[[0, 3], [0, 4], [0, 5]]");
  remove(path);
  ERROR(tg_from_file(C, path, TG_U8, TG_SHAPE(-1)), TG_ERR_IO, "tg_state");
}

static void test_updates(void **state) {
  (void)state;
  TgTensor *x = X("[6.0, 7.0]"), *two = X("[2.0, 2.0]"), *i = X("[6, 7]"), *one = X("[1, 1]");
  TEXT(tg_add_(x, two), "[8.0, 9.0]");
  TEXT(tg_sub_(x, two), "[6.0, 7.0]");
  TEXT(tg_mul_(x, two), "[12.0, 14.0]");
  TEXT(tg_div_(x, two), "[6.0, 7.0]");
  TEXT(tg_floordiv_(x, two), "[3.0, 3.0]");
  TEXT(tg_pow_(x, two), "[9.0, 9.0]");
  TEXT(tg_bitand_(i, X("[3, 3]")), "[2, 3]");
  TEXT(tg_bitor_(i, X("[4, 4]")), "[6, 7]");
  TEXT(tg_bitxor_(i, one), "[7, 6]");
  TEXT(tg_shl_(i, one), "[14, 12]");
  TEXT(tg_shr_(i, one), "[7, 6]");
  TgTensor *m = X("[[1.0, 2.0], [3.0, 4.0]]");
  TEXT(tg_matmul_(m, X("[[0.0, 1.0], [1.0, 0.0]]")), "[[2.0, 1.0], [4.0, 3.0]]");
  TEXT(tg_add_(tg_slice(m, 0, 1, 2), X("[[1.0, 1.0]]")), "[[5.0, 4.0]]");
  TEXT(m, "[[2.0, 1.0], [5.0, 4.0]]");
  /* what is stored to a place is read at another one */
  TgTensor *turn = X("[1, 2, 0]"), *v = X("[1.0, 2.0, 3.0]");
  TEXT(tg_setitem(v, TG_IDX(TG_TENSOR(turn)), tg_mul_scalar(v, 10)), "[30.0, 10.0, 20.0]");
  TEXT(tg_setitem(v, TG_IDX(TG_TENSOR(turn)), tg_flip(v, TG_SHAPE(0))), "[30.0, 20.0, 10.0]");
  TgTensor *was = tg_add(m, m); /* an expression whose value was computed, and then overwritten there */
  TEXT(was, "[[4.0, 2.0], [10.0, 8.0]]");
  TEXT(tg_assign(was, tg_zeros_like(was)), "[[0.0, 0.0], [0.0, 0.0]]");
  TEXT(tg_neg(tg_add(m, m)), "[[-4.0, -2.0], [-10.0, -8.0]]");
  TEXT(tg_assign(was, tg_add(m, m)), "[[4.0, 2.0], [10.0, 8.0]]");
  ERROR(tg_div_(i, one), TG_ERR_DTYPE, "div_: the result is f32, the tensor i32");
  ERROR(tg_add_(X("[1.0]"), X("[[1.0, 2.0]]")), TG_ERR_SHAPE, "assign");
}

/* What is to be computed of a memory has the values of the time it was built in, however many stores run
 * before. */
static void test_versions(void **state) {
  (void)state;
  TgTensor *a = tg_clone(X("[1.0]")), *b = tg_clone(X("[2.0]"));
  TgTensor *of_a = tg_neg(a);
  TgTensor *of_b = tg_keep(tg_neg(b));
  TgTensor *both[] = {tg_assign(a, X("[10.0]")), tg_assign(b, X("[20.0]"))};
  assert_int_equal(tg_realize_many(both, 2), TG_OK);
  TgTensor *later = tg_neg(a);
  assert_int_equal(tg_realize(tg_assign(a, X("[100.0]"))), TG_OK);
  TEXT(later, "[-10.0]");
  TEXT(of_a, "[-1.0]");
  TEXT(of_b, "[-2.0]");
  tg_release(of_b);
  TgTensor *c = tg_clone(X("[1.0]")), *was = tg_keep(tg_neg(c));
  assert_int_equal(tg_realize(tg_assign(c, X("[10.0]"))), TG_OK);
  TgTensor *now = tg_neg(c);
  tg_assign(c, tg_add(was, c)); /* the last that needs the first version */
  tg_release(was);
  assert_int_equal(tg_realize(c), TG_OK);
  TEXT(c, "[9.0]");
  TEXT(now, "[-10.0]");
}

/* A store whose n-th block of memory is refused: it says so, or the old version and the new one are as ever. */
static void versions_without_memory(void **state) {
  (void)state;
  bool reached = true;
  for (uint64_t n = 1; reached; n++)
    TG_SCOPE(C) {
      TgTensor *a = tg_clone(X("[1.0, 2.0]"));
      assert_int_equal(tg_realize(a), TG_OK);
      TgTensor *old = tg_neg(a);
      tg_assign(a, X("[10.0, 20.0]"));
      uint64_t failed = C->mem.failed;
      C->mem.fail_at = C->mem.calls + n;
      TgStatus s = tg_realize(a);
      C->mem.fail_at = 0;
      reached = C->mem.failed > failed;
      if (s && (!reached || s != TG_ERR_NOMEM)) fail_msg("block %d: %s", (int)n, tg_status_name(s));
      tg_clear_error(C);
      if (!s) TEXT(a, "[10.0, 20.0]");
      if (!s) TEXT(old, "[-1.0, -2.0]");
    }
}

/* The same expressions, others of them asked for. */
static void test_roots(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    TgTensor *x = tg_clone(X("[1.0, 4.0]"));
    TgTensor *one = tg_add(x, x);
    TgTensor *two = tg_neg(one);
    TgTensor *three = tg_mul(two, two);
    TgTensor *some[] = {i ? two : one, three};
    assert_int_equal(tg_realize(x), TG_OK);
    assert_int_equal(tg_realize_many(some, 2), TG_OK);
    TEXT(some[0], i ? "[-2.0, -8.0]" : "[2.0, 8.0]");
    TEXT(three, "[4.0, 64.0]");
  }
}

/* A value and its diagonal: the reader's one axis is both of the other's. */
static void test_diagonal(void **state) {
  (void)state;
  double v[16];
  for (int i = 0; i < 16; i++)
    v[i] = i;
  TgTensor *x = tg_from_f64(C, v, TG_F32, TG_SHAPE(4, 4)), *s = tg_sqrt(tg_mul(x, x));
  int64_t none[] = {0}, four[] = {4}, begin[] = {0, 0}, end[] = {4, 1};
  TgTensor *d =
      tg_shrink(tg_reshape(tg_pad(tg_reshape(s, TG_SHAPE(16)), none, four), TG_SHAPE(4, 5)), begin, end);
  TgTensor *both[] = {s, tg_add_scalar(tg_reshape(d, TG_SHAPE(4)), 1)};
  assert_int_equal(tg_realize_many(both, 2), TG_OK);
  TEXT(both[1], "[1.0, 6.0, 11.0, 16.0]");
}

static void test_scalars(void **state) {
  (void)state;
  TgTensor *x = X("[1.0, -2.0, 4.0]"), *i = X("[5, -7, 12]");
  TEXT(tg_sub_scalar(x, 1), "[0.0, -3.0, 3.0]");
  TEXT(tg_rsub_scalar(x, 1), "[0.0, 3.0, -3.0]");
  TEXT(tg_div_scalar(x, 2), "[0.5, -1.0, 2.0]");
  TEXT(tg_mod_scalar(i, 4), "[1, 1, 0]");
  TEXT(tg_fmod_scalar(i, 4), "[1, -3, 0]");
  TEXT(tg_floordiv_scalar(i, 4), "[1, -2, 3]");
  TEXT(tg_rpow_scalar(x, 2), "[2.0, 0.25, 16.0]");
  TEXT(tg_maximum_scalar(x, 1), "[1.0, 1.0, 4.0]");
  TEXT(tg_minimum_scalar(i, 6), "[5, -7, 6]");
  TEXT(tg_bitand_scalar(i, 4), "[4, 0, 4]");
  TEXT(tg_bitor_scalar(i, 1), "[5, -7, 13]");
  TEXT(tg_bitxor_scalar(i, -1), "[-6, 6, -13]");
  TEXT(tg_shl_scalar(i, 2), "[20, -28, 48]");
  TEXT(tg_shr_scalar(i, 1), "[2, -4, 6]");
  TEXT(tg_eq_scalar(x, 4), "[false, false, true]");
  TEXT(tg_ne_scalar(x, 4), "[true, true, false]");
  TEXT(tg_gt_scalar(x, 1), "[false, false, true]");
  TEXT(tg_le_scalar(x, 1), "[true, true, false]");
  TEXT(tg_ge_scalar(x, 1), "[true, false, true]");
  TEXT(tg_clamp(i, -INFINITY, 6), "[5, -7, 6]");
  TEXT(tg_mod(X("[1e10, -1e10, 1e30]"), X("[3.0, 3.0, 1e-3]")), "[1.0, 2.0, nan]");
  TEXT(tg_usum((TgTensor *[]){x, x, x}, 3), "[3.0, -6.0, 12.0]");
  TEXT(tg_uprod((TgTensor *[]){i, i}, 2), "[25, 49, 144]");
  TEXT(tg_broadcast_to(X("[1]"), TG_SHAPE(2, 2)), "[[1, 1], [1, 1]]");
  TEXT(tg_allclose(x, tg_add_scalar(x, 1e-7)), "true");
  TEXT(tg_allclose(x, tg_add_scalar(x, 1e-3)), "false");
  TEXT(tg_isclose(X("[nan, inf, 1]"), X("[nan, inf, 2]"), .equal_nan = true), "[true, true, false]");
  TEXT(tg_isclose(X("[1.0, 1.1]"), X("[1.0, 1.0]"), .exact = true), "[true, false]");
  ERROR(tg_isclose(x, x, .rtol = -1), TG_ERR_VALUE, "rtol");
  ERROR(tg_bitand_scalar(x, 1), TG_ERR_DTYPE, "bitand");
  ERROR(tg_clamp_tensor(x, NULL, NULL), TG_ERR_VALUE, "neither");
  /* Salmon et al., the vectors published with Random123: threefry2x32, 20 rounds */
  TgTensor *k = tg_threefry(tg_from(C, (uint64_t[]){0, ~0ull, 0x85a308d3243f6a88}, TG_U64, TG_SHAPE(3)),
                            tg_from(C, (uint64_t[]){0, ~0ull, 0x0370734413198a2e}, TG_U64, TG_SHAPE(3)));
  uint64_t v[3];
  assert_int_equal(tg_read(k, v, sizeof v), TG_OK);
  assert_true(v[0] == 0x99ba4efe6b200159 && v[1] == 0xbb002be71cb996fc && v[2] == 0x483df7a0c4923a9c);
  ERROR(tg_threefry(x, x), TG_ERR_DTYPE, "u64");
}

/* A bool beside a number counts as 0 or 1; two bools are joined as truth values. */
static void test_bools(void **state) {
  (void)state;
  TgTensor *b = tg_cast(X("[0, 1, 1, 0]"), TG_BOOL), *c = tg_cast(X("[0, 0, 1, 1]"), TG_BOOL);
  const TgDType dtypes[] = {TG_F32, TG_F16, TG_I32, TG_U8, TG_I64};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    TgTensor *x = tg_cast(X("[5, 6, 7, 8]"), dtypes[i]);
    for (int side = 0; side < 2; side++) {
      TgTensor *p = side ? b : x, *q = side ? x : b;
      TEXT(tg_cast(tg_add(p, q), TG_I32), "[5, 7, 8, 8]");
      TEXT(tg_cast(tg_mul(p, q), TG_I32), "[0, 6, 7, 0]");
      TEXT(tg_cast(tg_maximum(p, q), TG_I32), "[5, 6, 7, 8]");
      TEXT(tg_cast(tg_minimum(p, q), TG_I32), "[0, 1, 1, 0]");
      assert_int_equal(tg_dtype(tg_add(p, q)), dtypes[i]);
    }
    TEXT(tg_cast(tg_sub(x, b), TG_I32), "[5, 5, 6, 8]");
  }
  TEXT(tg_add(b, c), "[false, true, true, true]");
  TEXT(tg_mul(b, c), "[false, false, true, false]");
}

static void test_items(void **state) {
  (void)state;
  TgTensor *m = X("[[1, 2, 3], [4, 5, 6]]");
  TEXT(tg_setitem_scalar(m, TG_IDX(TG_ALL, TG_SLICE(TG_OPEN, TG_OPEN, 2)), 0), "[[0, 2, 0], [0, 5, 0]]");
  TgTensor *row = tg_getitem(m, TG_IDX(TG_AT(1))); /* a view: what is written to it is written to m */
  TEXT(tg_setitem_scalar(row, TG_IDX(TG_AT(-1)), 7), "[0, 5, 7]");
  TEXT(m, "[[0, 2, 0], [0, 5, 7]]");
  TEXT(tg_add_(tg_getitem(m, TG_IDX(TG_ALL, TG_AT(1))), X("[10, 20]")), "[12, 25]");
  TEXT(m, "[[0, 12, 0], [0, 25, 7]]");
  TgTensor *at = X("[0, 1, 1]");
  /* the last one stays */
  TEXT(tg_setitem(m, TG_IDX(TG_TENSOR(at), TG_TENSOR(X("[0, 2, 2]"))), X("[1, 2, 3]")),
       "[[1, 12, 0], [0, 25, 3]]");
  TEXT(tg_index_put(m, TG_IDX(TG_TENSOR(at)), X("1"), .accumulate = true), "[[2, 13, 1], [2, 27, 5]]");
  TEXT(tg_getitem(m, TG_IDX(TG_TENSOR(X("[0, 5, -9]")), TG_AT(1))), "[12, 0, 0]"); /* outside: 0 */
  TEXT(tg_getitem(X("7"), TG_IDX(TG_NEW)), "[7]");
  TgTensor *big = tg_clone(tg_zeros(C, TG_SHAPE(100, 8)));
  tg_realize(big);
  uint64_t before = tg_counters(C).flops;
  tg_realize(tg_setitem_scalar(big, TG_IDX(TG_AT(3)), 1));
  assert_true(tg_counters(C).flops - before <= 100); /* the row, not the tensor */
  assert_true(tg_item_f64(tg_sum(big)) == 8);
  /* a place that is read, used in the gate of another read, padded: no read leaves its buffer, and fused is
   * as in parts */
  int32_t v[28];
  for (int i = 0; i < 28; i++)
    v[i] = (i * 21 + 11) % 23 - 11;
  TgTensor *t = tg_from(C, v, TG_I32, TG_SHAPE(4, 7)), *parts = tg_take(t, t), *whole = parts;
  tg_realize(parts = tg_clone(parts));
  parts = tg_argmax(tg_pad(parts, (int64_t[]){0, 0, 2}, (int64_t[]){0, 0, 2}), .axis = TG_AXES(2));
  whole = tg_argmax(tg_pad(whole, (int64_t[]){0, 0, 2}, (int64_t[]){0, 0, 2}), .axis = TG_AXES(2));
  tg_realize(parts = tg_clone(parts));
  TEXT(tg_all(tg_eq(tg_pad(parts, (int64_t[]){2, 0}, (int64_t[]){0, 0}),
                    tg_pad(whole, (int64_t[]){2, 0}, (int64_t[]){0, 0}))),
       "true");
  /* the same where the place is a sum that the kernel makes, and where two paddings gate it one after the
   * other */
  TgTensor *far = tg_clamp(tg_matmul(t, tg_transpose(t, 0, 1)), -64, 64);
  TgTensor *rows[2] = {tg_take(t, far), tg_take(t, tg_clone(far))};
  TgTensor *cols[2] = {tg_take(tg_transpose(tg_pad(t, (int64_t[]){0, 0}, (int64_t[]){2, 0}), 0, 1), t), NULL};
  tg_realize(rows[1] = tg_clone(rows[1])), tg_realize(cols[1] = tg_clone(cols[0]));
  for (int i = 0; i < 2; i++) {
    rows[i] = tg_pad(tg_pad(rows[i], (int64_t[]){0, 0, 1}, (int64_t[]){0, 0, 0}), (int64_t[]){0, 0, 0},
                     (int64_t[]){2, 0, 0});
    cols[i] = tg_pad(cols[i], (int64_t[]){0, 2, 0}, (int64_t[]){0, 0, 0});
  }
  TEXT(tg_all(tg_eq(rows[0], rows[1])), "true");
  TEXT(tg_all(tg_eq(cols[0], cols[1])), "true");
  TgTensor *p = tg_randperm(C, 1000), *q = tg_argsort(p);
  assert_true(tg_item_i64(tg_sum(tg_ne(tg_take(p, q), tg_arange(C, 0, 1000)))) == 0);
  assert_true(tg_item_i64(tg_sum(tg_eq(p, tg_arange(C, 0, 1000)))) < 20);
  TEXT(tg_randperm(C, 0), "[]");
  assert_int_equal(tg_dtype(tg_randperm(C, 5, .dtype = TG_I64)), TG_I64);
}

static void test_kernel(void **state) {
  (void)state;
  static const char *const scaled = /* out[i] = a[i] * 2 + sum of b's row i */
      "p0 = PARAM[f32, 0, 3](3)\n"
      "r0 = RANGE[0, GLOBAL](3)\n"
      "p1 = PARAM[f32, 1, 3](3)\n"
      "p2 = PARAM[f32, 2, 12](3, 4)\n"
      "r1 = RANGE[1, REDUCE](4)\n"
      "u1 = REDUCE[ADD](INDEX(p2, r0, r1), r1)\n"
      "u2 = ADD(MUL(INDEX(p1, r0), 2.0:f32), u1)\n"
      "u3 = STORE(INDEX(p0, r0), u2, r0)\n"
      "u4 = SINK(u3)\n";
  TgTensor *o = tg_clone(X("[0.0, 0.0, 0.0]"));
  TgTensor *a = X("[1.0, 2.0, 3.0]");
  TgTensor *b = tg_reshape(tg_cast(tg_arange(C, 0, 12), TG_F32), TG_SHAPE(3, 4));
  TgTensor *before = tg_neg(o);
  tg_realize(before);
  if (tg_kernel(C, scaled, (TgTensor *[]){o, a, b}, 3)) fail_msg("%s", tg_errmsg(C));
  TEXT(o, "[8.0, 26.0, 44.0]");
  TEXT(before, "[-0.0, -0.0, -0.0]"); /* computed from what was there */
  TEXT(tg_neg(o), "[-8.0, -26.0, -44.0]");
  assert_int_equal(tg_kernel(C, scaled, (TgTensor *[]){a, o, b}, 3), TG_OK);
  TEXT(a, "[22.0, 74.0, 126.0]");
  assert_int_equal(tg_kernel(NULL, scaled, (TgTensor *[]){o, a, b}, 3), TG_ERR_VALUE);
  assert_int_equal(tg_kernel(C, scaled, (TgTensor *[]){o, a}, 2), TG_ERR_VALUE);
  ERROR(NULL, TG_ERR_VALUE, "PARAM 2, but 2 tensors");
  assert_int_equal(tg_kernel(C, scaled, (TgTensor *[]){o, b, a}, 3), TG_ERR_SHAPE);
  ERROR(NULL, TG_ERR_SHAPE, "PARAM 1 has 3 elements, the tensor 12");
  assert_int_equal(tg_kernel(C, scaled, (TgTensor *[]){o, X("[1, 2, 3]"), b}, 3), TG_ERR_DTYPE);
  ERROR(NULL, TG_ERR_DTYPE, "f32, the tensor i32");
  assert_int_equal(tg_kernel(C, scaled, (TgTensor *[]){o, o, b}, 3), TG_ERR_VALUE);
  ERROR(NULL, TG_ERR_VALUE, "tensors 0 and 1 are one memory");
  TgTensor *six = X("[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]");
  assert_int_equal(tg_kernel(C, scaled, (TgTensor *[]){tg_slice(six, 0, 1, 4), a, b}, 3), TG_ERR_STATE);
  ERROR(NULL, TG_ERR_STATE, "part of another");
  assert_int_equal(tg_kernel(C, "u1 = NOPE(1)\n", (TgTensor *[]){o}, 1), TG_ERR_VALUE);
  ERROR(NULL, TG_ERR_VALUE, "line 1");
  assert_int_equal(tg_kernel(C, "r0 = RANGE[0, LOOP](8)\nu1 = FLOORMOD(r0, 8)\n", (TgTensor *[]){o}, 1),
                   TG_ERR_VALUE);
  ERROR(NULL, TG_ERR_VALUE, "no kernel graph");
}

static TgTensor *twice(TgTensor *x) { return tg_mul_scalar(x, 2); }

static void test_graphs(void **state) {
  (void)state;
  TgTensor *x = X("[1.0, 4.0]"), *i = X("[7, -7]");
  TEXT(tg_alu("SQRT", &x, 1), "[1.0, 2.0]");
  TEXT(tg_alu("CDIV", (TgTensor *[]){i, X("2")}, 2), "[3, -3]");
  TEXT(tg_alu("WHERE", (TgTensor *[]){X("[true, false]"), x, tg_neg(x)}, 3), "[1.0, -4.0]");
  TEXT(tg_alu("CMPLT", (TgTensor *[]){i, X("[0, 0]")}, 2), "[false, true]");
  ERROR(tg_alu("NOPE", &x, 1), TG_ERR_VALUE, "NOPE");
  ERROR(tg_alu("ADD", &x, 1), TG_ERR_VALUE, "ADD takes 2 operands, 1");
  ERROR(tg_alu("ADD", (TgTensor *[]){x, i}, 2), TG_ERR_DTYPE, "i32 as operand 1");
  ERROR(tg_alu("SQRT", &i, 1), TG_ERR_DTYPE, "SQRT with i32");
  static const char *const of_ints[] = {"CDIV", "CMOD", "FLOORDIV", "FLOORMOD", "SHL", "SHR"};
  static const char *const of_bits[] = {"AND", "OR", "XOR"};
  static const char *const of_floats[] = {"EXP2", "LOG2", "EXP",  "LOG",  "SIN",
                                          "COS",  "TAN",  "TANH", "SQRT", "RECIPROCAL"};
  TgTensor *truth = X("[true, false]");
  for (size_t k = 0; k < sizeof of_ints / sizeof *of_ints; k++) {
    ERROR(tg_alu(of_ints[k], (TgTensor *[]){x, x}, 2), TG_ERR_DTYPE, of_ints[k]);
    ERROR(tg_alu(of_ints[k], (TgTensor *[]){truth, truth}, 2), TG_ERR_DTYPE, of_ints[k]);
  }
  for (size_t k = 0; k < sizeof of_bits / sizeof *of_bits; k++) {
    ERROR(tg_alu(of_bits[k], (TgTensor *[]){x, x}, 2), TG_ERR_DTYPE, of_bits[k]);
    assert_non_null(tg_alu(of_bits[k], (TgTensor *[]){truth, truth}, 2));
  }
  for (size_t k = 0; k < sizeof of_floats / sizeof *of_floats; k++)
    ERROR(tg_alu(of_floats[k], &i, 1), TG_ERR_DTYPE, of_floats[k]);
  TEXT(tg_alu("POW", (TgTensor *[]){i, X("3")}, 2), "[343, -343]");
  TEXT(tg_alu("POW", (TgTensor *[]){X("[true, true, false, false]"), X("[true, false, true, false]")}, 2),
       "[true, true, false, true]");
  ERROR(tg_alu("FDIV", (TgTensor *[]){i, i}, 2), TG_ERR_DTYPE, "FDIV");
  ERROR(tg_alu("THREEFRY", (TgTensor *[]){i, i}, 2), TG_ERR_DTYPE, "THREEFRY");
  ERROR(tg_alu("WHERE", (TgTensor *[]){i, i, i}, 3), TG_ERR_DTYPE, "operand 0");
  ERROR(tg_alu("REDUCE", &i, 1), TG_ERR_VALUE, "REDUCE");
  TEXT(tg_sequential(x, (TgTensor * (*const[])(TgTensor *)){twice, tg_neg, twice}, 3), "[-4.0, -16.0]");
  int n = tg_schedule((TgTensor *[]){tg_sum(x), tg_exp(x)}, 2, NULL, NULL);
  assert_true(n >= 1 && n <= 2);
  uint64_t before = tg_counters(C).launches;
  assert_int_equal(tg_schedule(&x, 1, NULL, NULL), 0); /* in memory already */
  assert_int_equal(tg_counters(C).launches, before);
  int old = tg_setting(C, "NOOPT", 1);
  assert_int_equal(tg_setting(C, "noopt", -1), 1);
  TEXT(tg_add(x, x), "[2.0, 8.0]");
  tg_setting(C, "NOOPT", old);
  assert_int_equal(tg_setting(C, "TRAINING", 1), 0);
  assert_true(tg_training(C));
  assert_int_equal(tg_setting(C, "nothing", 1), -1);
  ERROR(NULL, TG_ERR_VALUE, "nothing");
  assert_int_equal(tg_setting(C, "FUSE", 5), -1);
  ERROR(NULL, TG_ERR_VALUE, "FUSE = 5");
}

/* ---- gradients by hand */
static TgStatus clip(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out, void *user) {
  (void)y, (void)x, (void)n;
  return (out[0] = tg_clamp(g, -*(double *)user, *(double *)user)) ? TG_OK : tg_error(tg_context(g));
}

static TgStatus broken(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out, void *user) {
  (void)y, (void)x, (void)n, (void)user;
  return (out[0] = tg_sum(g)) ? TG_OK : TG_ERR_VALUE;
}

static TgStatus square_gradient(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out,
                                void *user) {
  (void)y, (void)n, (void)user;
  return (out[0] = tg_mul_scalar(tg_mul(g, x[0]), 2)) ? TG_OK : TG_ERR_VALUE;
}

static void test_custom_gradient(void **state) {
  (void)state;
  double limit = 1;
  TgTensor *x = X("[1.0, -3.0, 0.25]"), *g[1], *h[1];
  TgTensor *y = tg_custom_gradient(x, &x, 1, clip, &limit);
  TEXT(y, "[1.0, -3.0, 0.25]");
  assert_int_equal(tg_gradient(tg_sum(tg_square(y)), &x, 1, g), TG_OK);
  TEXT(g[0], "[1.0, -1.0, 0.5]");
  /* and again through it */
  TgTensor *s = tg_custom_gradient(tg_detach(tg_square(x)), &x, 1, square_gradient, NULL);
  assert_int_equal(tg_gradient(tg_sum(tg_mul(s, x)), &x, 1, g), TG_OK);
  TEXT(g[0], "[3.0, 27.0, 0.1875]");
  assert_int_equal(tg_gradient(tg_sum(g[0]), &x, 1, h), TG_OK);
  TEXT(h[0], "[6.0, -18.0, 1.5]");
  assert_int_equal(tg_gradient(tg_sum(tg_custom_gradient(x, &x, 1, broken, NULL)), &x, 1, g), TG_ERR_SHAPE);
  ERROR(NULL, TG_ERR_SHAPE, "custom gradient of shape ()");
  ERROR(tg_custom_gradient(x, &x, 1, NULL, NULL), TG_ERR_VALUE, "no function");
  assert_int_equal(tg_gradient(tg_sum(tg_square(tg_contiguous_backward(x))), &x, 1, g), TG_OK);
  TEXT(g[0], "[2.0, -6.0, 0.5]");
  /* given the gradient of y */
  assert_int_equal(tg_vjp(tg_square(x), X("[1.0, 10.0, 4.0]"), &x, 1, g), TG_OK);
  TEXT(g[0], "[2.0, -60.0, 2.0]");
  assert_int_equal(tg_vjp(tg_square(x), X("[1.0]"), &x, 1, g), TG_ERR_SHAPE);
  ERROR(NULL, TG_ERR_SHAPE, "(1)");
  assert_int_equal(tg_gradient(tg_square(x), &x, 1, g), TG_ERR_SHAPE);
  ERROR(NULL, TG_ERR_SHAPE, "one element");
  TgTensor *p = tg_requires_grad(X("[1.0, 2.0]"), true);
  assert_int_equal(tg_backward(tg_square(p), .gradient = X("[1.0, 0.5]")), TG_OK);
  TEXT(tg_grad(p), "[2.0, 2.0]");
  TgTensor *whole = X("[1]");
  assert_int_equal(tg_gradient(tg_sum(x), &whole, 1, g), TG_ERR_DTYPE);
  ERROR(NULL, TG_ERR_DTYPE, "target 0 is i32");
}

/* ---- factorisations by their laws */
static double worst(TgTensor *a, TgTensor *b) { return tg_item_f64(tg_max(tg_abs(tg_sub(a, b)))); }

static TgTensor *T(TgTensor *x) { return tg_transpose(x, -1, -2); }

static TgTensor *noise(TgDType d, int n, const int64_t *dims, unsigned seed) {
  int64_t count = 1;
  for (int i = 0; i < n; i++)
    count *= dims[i];
  double *v = malloc((size_t)(count + 1) * sizeof *v);
  for (int64_t i = 0; i < count; i++)
    seed = seed * 1664525u + 1013904223u, v[i] = (double)(seed >> 8) * 0x1p-23 - 1;
  TgTensor *t = tg_from_f64(C, v, d, n, dims);
  free(v);
  return t;
}

static void check_qr(TgTensor *a, double tol) {
  TgTensor *q, *r;
  assert_int_equal(tg_qr(a, &q, &r), TG_OK);
  int64_t m = tg_dim(a, -2);
  assert_int_equal(tg_dim(q, -1), m);
  if (!(worst(tg_matmul(q, r), a) < tol))
    fail_msg("QR is %g from A (%s)", worst(tg_matmul(q, r), a), tg_errmsg(C));
  assert_true(worst(tg_matmul(T(q), q),
                    tg_expand(tg_eye(C, m, .dtype = tg_dtype(a)), tg_ndim(q), tg_shape(q))) < tol);
  assert_true(worst(r, tg_triu(r, 0)) == 0);
}

static void check_svd(TgTensor *a, bool full, double tol) {
  TgTensor *u, *s, *vt;
  assert_int_equal(tg_svd(a, &u, &s, &vt, .full_matrices = full), TG_OK);
  int64_t m = tg_dim(a, -2), n = tg_dim(a, -1), k = m < n ? m : n;
  assert_int_equal(tg_dim(u, -1), full ? m : k);
  assert_int_equal(tg_dim(vt, -2), full ? n : k);
  TgTensor *uk = tg_slice(u, -1, 0, k), *vk = tg_slice(vt, -2, 0, k);
  double off = worst(tg_matmul(tg_mul(uk, tg_unsqueeze(s, -2)), vk), a);
  if (!(off < tol)) fail_msg("U S V is %g from A (%s)", off, tg_errmsg(C));
  assert_true(worst(tg_matmul(T(u), u), tg_expand(tg_eye(C, tg_dim(u, -1), .dtype = tg_dtype(a)), tg_ndim(u),
                                                  tg_shape(tg_matmul(T(u), u)))) < tol);
  assert_true(worst(tg_matmul(vt, T(vt)), tg_expand(tg_eye(C, tg_dim(vt, -2), .dtype = tg_dtype(a)),
                                                    tg_ndim(vt), tg_shape(tg_matmul(vt, T(vt))))) < tol);
  if (k > 1) assert_true(tg_item_f64(tg_min(tg_sub(tg_slice(s, -1, 0, k - 1), tg_slice(s, -1, 1, k)))) >= 0);
  assert_true(tg_item_f64(tg_min(s)) >= 0);
}

static void test_factorisations(void **state) {
  (void)state;
  check_qr(noise(TG_F64, TG_SHAPE(4, 4), 1), 1e-13);
  check_qr(noise(TG_F64, TG_SHAPE(5, 3), 2), 1e-13);
  check_qr(noise(TG_F64, TG_SHAPE(3, 5), 3), 1e-13);
  check_qr(noise(TG_F32, TG_SHAPE(2, 3, 3), 4), 1e-5);
  check_qr(tg_zeros(C, TG_SHAPE(3, 3), .dtype = TG_F64), 1e-15);
  check_qr(noise(TG_F64, TG_SHAPE(1, 1), 5), 1e-15);
  check_svd(noise(TG_F64, TG_SHAPE(4, 4), 6), false, 1e-12);
  check_svd(noise(TG_F64, TG_SHAPE(5, 3), 7), true, 1e-12);
  check_svd(noise(TG_F64, TG_SHAPE(3, 5), 8), false, 1e-12);
  check_svd(noise(TG_F32, TG_SHAPE(2, 4, 3), 9), false, 1e-5);
  check_svd(noise(TG_F64, TG_SHAPE(3, 1), 10), true, 1e-12);
  for (int64_t n = 5; n <= 9; n++) /* in each round of a sweep every column meets another one */
    check_svd(noise(TG_F64, TG_SHAPE(n, n), 20 + (int)n), false, 1e-11);
  /* rank 1 */
  check_svd(tg_matmul(noise(TG_F64, TG_SHAPE(4, 1), 11), noise(TG_F64, TG_SHAPE(1, 4), 12)), false, 1e-12);
  TgTensor *u, *s, *vt;
  assert_int_equal(tg_svd(X("[[3.0, 0.0], [0.0, -4.0]]"), &u, &s, &vt), TG_OK);
  TEXT(tg_round(tg_mul_scalar(s, 1000)), "[4000.0, 3000.0]");
  assert_int_equal(tg_svd(X("[1.0]"), &u, &s, &vt), TG_ERR_SHAPE);
  ERROR(NULL, TG_ERR_SHAPE, "svd: (1) is no matrix");
  TgTensor *x = noise(TG_F64, TG_SHAPE(3, 3), 13), *q, *r, *g[1];
  assert_int_equal(tg_qr(x, &q, &r), TG_OK);
  assert_int_equal(tg_gradient(tg_sum(tg_square(r)), &x, 1, g), TG_OK); /* |R|^2 = |A|^2 */
  assert_true(worst(g[0], tg_mul_scalar(x, 2)) < 1e-12);
}

static void test_batch_norm(void **state) {
  (void)state;
  TgTensor *x = X("[[1.0, 10.0], [3.0, 30.0]]");
  TgTensor *m = tg_clone(X("[0.0, 0.0]"));
  TgTensor *v = tg_clone(X("[1.0, 1.0]"));
  TgTensor *y = tg_batch_norm_train(x, m, v, .eps = 1e-12, .momentum = 0.5);
  TEXT(tg_round(y), "[[-1.0, -1.0], [1.0, 1.0]]");
  TEXT(m, "[1.0, 10.0]");  /* half way to 2, 20 */
  TEXT(v, "[1.5, 100.5]"); /* to the unbiased 2, 200 */
}

#define BOTH(name)                                                                                           \
  cmocka_unit_test_setup_teardown(name, open_interp, close_it),                                              \
      cmocka_unit_test_setup_teardown(name, open_cpu, close_it)

/* As many axes as there may be come out of a take. */
static void take_of_all_axes(void **state) {
  (void)state;
  int64_t d[TG_MAX_RANK - 1] = {3};
  for (int i = 1; i < TG_MAX_RANK - 1; i++)
    d[i] = 1;
  TgTensor *x = tg_reshape(X("[10, 11, 12]"), TG_MAX_RANK - 1, d), *y = tg_take(x, X("[[2, 0]]"));
  assert_int_equal(tg_ndim(y), TG_MAX_RANK);
  TEXT(tg_reshape(y, TG_SHAPE(2)), "[12, 10]");
  assert_null(tg_take(x, X("[[[2, 0]]]")));
  assert_int_equal(tg_error(C), TG_ERR_SHAPE);
  tg_clear_error(C);
}

int main(void) {
  const struct CMUnitTest tests[] = {BOTH(test_text),
                                     BOTH(test_questions),
                                     BOTH(test_memory),
                                     BOTH(test_windows),
                                     BOTH(test_padded_averages),
                                     BOTH(test_mixed),
                                     BOTH(test_most_axes),
                                     BOTH(test_names_and_norms),
                                     BOTH(test_updates),
                                     BOTH(test_versions),
                                     BOTH(test_roots),
                                     BOTH(test_diagonal),
                                     BOTH(test_scalars),
                                     BOTH(test_bools),
                                     BOTH(test_items),
                                     BOTH(test_kernel),
                                     BOTH(test_graphs),
                                     BOTH(test_custom_gradient),
                                     BOTH(test_factorisations),
                                     BOTH(take_of_all_axes),
                                     BOTH(test_batch_norm),
                                     BOTH(versions_without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
