/* test_symbolic.c: shapes with variables. Devices come from the command line. What an operation gives for n
 * bound to a number is compared with the same operation on tensors of that number, which other tests compare
 * with plain loops; gradients also with finite differences in f64, attention over a growing cache with loops
 * in double. Bound to another number, nothing may be scheduled or compiled. */
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
static TgVariable *N;

enum { MOST = 40, WIDE = 24, ELEMS = 200000 };

static TgTensor *X, *Y, *I; /* (MOST, WIDE), (WIDE, MOST), i32 (MOST) in memory */

static int setup(void **state) {
  (void)state;
  static float x[MOST * WIDE], y[MOST * WIDE];
  static int32_t at[MOST];
  uint32_t r = 1;
  for (int i = 0; i < MOST * WIDE; i++)
    r = r * 1664525u + 1013904223u, x[i] = (float)((int)(r >> 20) % 401 - 200) / 128,
    y[i] = (float)((int)(r >> 9) % 401 - 200) / 256;
  for (int i = 0; i < MOST; i++)
    at[i] = i * 7 % MOST;
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = 42});
  X = tg_from(C, x, TG_F32, TG_SHAPE(MOST, WIDE)), Y = tg_from(C, y, TG_F32, TG_SHAPE(WIDE, MOST)),
  I = tg_from(C, at, TG_I32, TG_SHAPE(MOST));
  N = tg_variable(C, "n", 1, MOST);
  return tg_error(C) != TG_OK;
}

static int teardown(void **state) {
  (void)state;
  assert_int_equal(tg_counters(C).fallbacks + tg_counters(C).cuts, 0); /* every kernel took its opts */
  tg_close(C);
  C = NULL;
  return 0;
}

static void fine_at(int line, const char *what) {
  if (tg_error(C))
    fail_msg("line %d on %s: %s: %s: %s", line, device, what, tg_status_name(tg_error(C)), tg_errmsg(C));
}

#define FINE(what) fine_at(__LINE__, (what))

static void error_is_at(int line, const void *t, TgStatus want, const char *word) {
  if (t || tg_error(C) != want || !strstr(tg_errmsg(C), word))
    fail_msg("line %d on %s: %s '%s', not %s '%s'", line, device, tg_status_name(tg_error(C)), tg_errmsg(C),
             tg_status_name(want), word);
  tg_clear_error(C);
}

#define ERROR_IS(t, status, word) error_is_at(__LINE__, (t), (status), (word))

static void bind_to(TgVariable *v, int64_t value) { assert_int_equal(tg_variable_bind(v, value), TG_OK); }

static double got[ELEMS], wanted[ELEMS];

static void same(const char *what, int64_t n, TgTensor *t, TgTensor *w, double tol) {
  FINE(what);
  int64_t count = tg_numel(w);
  if (!t || !w || tg_ndim(t) != tg_ndim(w) ||
      memcmp(tg_shape(t), tg_shape(w), (size_t)tg_ndim(w) * sizeof(int64_t)) || tg_dtype(t) != tg_dtype(w) ||
      count > ELEMS)
    fail_msg("%s on %s, n = %lld: another shape or dtype: %s, wanted %s", what, device, (long long)n,
             tg_describe(t), tg_describe(w));
  tg_read_f64(t, got, (size_t)count), tg_read_f64(w, wanted, (size_t)count);
  FINE(what);
  for (int64_t i = 0; i < count; i++)
    if (!(got[i] == wanted[i] || (isnan(got[i]) && isnan(wanted[i])) ||
          fabs(got[i] - wanted[i]) <= tol * fmax(1, fabs(wanted[i]))))
      fail_msg("%s on %s, n = %lld: element %lld is %.9g, not %.9g", what, device, (long long)n, (long long)i,
               got[i], wanted[i]);
}

/* ---- operations: x (n, WIDE), y (WIDE, n), i (n); n as a size, s is n or a number */
typedef TgTensor *Op(TgTensor *x, TgTensor *y, TgTensor *i, int64_t n);
#define OP(name, expr)                                                                                       \
  static TgTensor *name(TgTensor *x, TgTensor *y, TgTensor *i, int64_t n) {                                  \
    (void)x, (void)y, (void)i, (void)n;                                                                      \
    return expr;                                                                                             \
  }
#define D(...) ((const int64_t[]){__VA_ARGS__})
OP(itself, tg_contiguous(x))
OP(other_axis, tg_contiguous(y))
OP(arithmetic, tg_add(tg_mul(x, x), tg_mul_scalar(tg_exp(x), 0.5)))
OP(broadcast, tg_sub(tg_unsqueeze(tg_select(x, 1, 3), 1), tg_select(x, 1, 5)))
OP(compare, tg_where(tg_lt_scalar(x, 0), tg_transpose(y, 0, 1), x))
OP(permute, tg_contiguous(tg_transpose(x, 0, 1)))
OP(reshape, tg_contiguous(tg_reshape(x, TG_SHAPE(n, 4, 6))))
OP(reshape_infer, tg_contiguous(tg_reshape(x, TG_SHAPE(-1, 6))))
OP(merge_front, tg_contiguous(tg_flatten(x, 0, 1)))
OP(merge_back, tg_contiguous(tg_flatten(y, 0, 1)))
OP(merge_split, tg_contiguous(tg_reshape(tg_flatten(y, 0, 1), TG_SHAPE(n, 24))))
OP(grow, tg_contiguous(tg_expand(tg_reshape(i, TG_SHAPE(1, n)), TG_SHAPE(3, n))))
OP(expand_to, tg_contiguous(tg_expand(tg_slice(x, 0, 0, 1), TG_SHAPE(n, 24))))
OP(flip, tg_contiguous(tg_flip(x, 2, D(0, 1))))
OP(shrink, tg_contiguous(tg_slice(tg_cat((TgTensor *[]){x, x}, 2, 0), 0, 1, tg_size_add(C, n, 1))))
OP(last_row, tg_contiguous(tg_select(x, 0, -1)))
OP(row_by_n, tg_contiguous(tg_select(tg_cat((TgTensor *[]){y, y}, 2, 0), 0, n)))
OP(conv, tg_conv2d(tg_reshape(x, TG_SHAPE(n, 1, 4, 6)),
                   tg_slice(tg_reshape(X, TG_SHAPE(80, 1, 4, 3)), 0, 0, 5), .padding = TG_SIZES(1)))
OP(conv_back,
   tg_conv_transpose2d(tg_reshape(x, TG_SHAPE(n, 2, 3, 4)),
                       tg_slice(tg_reshape(X, TG_SHAPE(80, 3, 2, 2)), 0, 0, 2), .stride = TG_SIZES(2)))
OP(largest_of_parts, tg_max_pool2d(tg_reshape(x, TG_SHAPE(n, 4, 6)), .kernel = TG_SIZES(2)))
OP(mean_of_parts,
   tg_avg_pool2d(tg_reshape(x, TG_SHAPE(n, 4, 6)), .kernel = TG_SIZES(3), .padding = TG_SIZES(1)))
OP(resized, tg_interpolate(x, 1, D(31)))
OP(sorted, tg_sort(x, NULL))
OP(sorted_rows, tg_sort(tg_reshape(x, TG_SHAPE(n, 4, 6)), NULL))
OP(sorted_first, tg_sort(y, NULL, .axis = TG_AXES(0), .descending = true))
OP(best, tg_topk(x, 3, NULL))
OP(rolled, tg_roll(x, 2, D(1, -5), D(0, 1)))
OP(reflected, tg_pad_mode(y, D(3, 0), D(2, 0), TG_PAD_REFLECT))
OP(repeated, tg_pad_mode(x, D(2, 0), D(3, 0), TG_PAD_REPLICATE))
OP(round_again, tg_pad_mode(x, D(1, 3), D(1, 2), TG_PAD_CIRCULAR))
OP(unfolded, tg_unfold(x, 1, 5, 3))
OP(on_diagonal, tg_diag(tg_select(x, 1, 2)))
OP(diagonals, tg_diagonal(tg_reshape(x, TG_SHAPE(n, 4, 6)), 1, 1, 2))
OP(formula, tg_einsum("ij,kj->ki", ((TgTensor *[]){x, tg_transpose(y, 0, 1)}), 2))
OP(rearranged, tg_rearrange(x, "a (b c) -> (b a) c", TG_NAMED({"c", 6})))
OP(normed_train, tg_batch_norm_train(tg_reshape(x, TG_SHAPE(n, 4, 6)), NULL, NULL))
OP(entropy, tg_sparse_cross_entropy(x, tg_mod_scalar(i, 24)))
OP(log_running_sum, tg_logcumsumexp(x, 0))
OP(scattered,
   tg_scatter(tg_contiguous(x), 1, tg_mod_scalar(tg_expand(tg_unsqueeze(i, 1), TG_SHAPE(n, 3)), 24),
              tg_slice(x, 1, 0, 3), .reduce = TG_SCATTER_ADD))
OP(indexed, tg_getitem(x, TG_IDX(TG_ALL, TG_TENSOR(tg_mod_scalar(i, 24)))))
OP(indexed_last, tg_getitem(x, TG_IDX(TG_TENSOR(tg_sub_scalar(tg_mul_scalar(i, 0), 1)))))
OP(indexed_apart, tg_getitem(tg_reshape(x, TG_SHAPE(n, 4, 6)),
                             TG_IDX(TG_TENSOR(tg_mul_scalar(i, 0)), TG_ALL, TG_TENSOR(tg_mod_scalar(i, 6)))))
OP(in_steps, tg_contiguous(tg_getitem(x, TG_IDX(TG_SLICE(TG_OPEN, TG_OPEN, -1), TG_SLICE(1, TG_OPEN, 3)))))
OP(one_of_each, tg_contiguous(tg_getitem(x, TG_IDX(TG_AT(-1), TG_NEW, TG_SLICE(2, -2)))))
OP(pad, tg_pad(x, D(2, 0), D(3, 1)))
OP(pad_by_n, tg_pad(tg_slice(x, 1, 0, 2), D(n, 1), D(0, 0)))
OP(pad_value, tg_pad_value(y, D(0, 1), D(0, 2), -1.5))
OP(cat_rows, tg_cat((TgTensor *[]){x, tg_full(C, TG_SHAPE(2, 24), 7), x}, 3, 0))
OP(cat_columns, tg_cat((TgTensor *[]){y, tg_mul_scalar(y, 2)}, 2, 1))
OP(stack, tg_stack((TgTensor *[]){x, tg_transpose(y, 0, 1)}, 2, 1))
OP(repeat, tg_repeat(y, 2, D(2, 3)))
OP(lower, tg_tril(tg_matmul(x, y), 0))
OP(full, tg_full(C, TG_SHAPE(n, 3), 2.5))
OP(sum_all, tg_sum(x))
OP(sum_rows, tg_sum(x, .axis = TG_AXES(0)))
OP(sum_columns, tg_sum(x, .axis = TG_AXES(1), .keepdim = true))
OP(sum_inner, tg_sum(y, .axis = TG_AXES(1)))
OP(largest, tg_max(y, .axis = TG_AXES(-1)))
OP(smallest, tg_min(x, .axis = TG_AXES(0)))
OP(product, tg_prod(tg_add_scalar(tg_mul_scalar(x, 0.01), 1), .axis = TG_AXES(0)))
OP(mean_all, tg_mean(x))
OP(mean_rows, tg_mean(x, .axis = TG_AXES(0)))
OP(variance, tg_var(y, .axis = TG_AXES(1), .biased = true))
OP(variance_unbiased, tg_var(tg_cat((TgTensor *[]){x, x}, 2, 0), .axis = TG_AXES(0)))
OP(softmax_rows, tg_softmax(x, .axis = TG_AXES(0)))
OP(softmax_columns, tg_softmax(y, .axis = TG_AXES(1)))
OP(log_softmax, tg_log_softmax(y))
OP(cumsum, tg_cumsum(x, 0))
OP(cumsum_inner, tg_cumsum(y, 1))
OP(cumsum_beside, tg_cumsum(x, 1))
OP(argmax, tg_argmax(x, .axis = TG_AXES(0)))
OP(argmin, tg_argmin(y, .axis = TG_AXES(1)))
OP(matmul_rows, tg_matmul(x, tg_full(C, TG_SHAPE(24, 5), 0.5)))
OP(matmul_inner, tg_matmul(y, x))
OP(matmul_outer, tg_matmul(x, y))
OP(matmul_vector, tg_matmul(tg_select(y, 0, 1), x))
OP(matmul_batch, tg_matmul(tg_unsqueeze(x, 1),
                           tg_expand(tg_unsqueeze(tg_full(C, TG_SHAPE(24, 2), 0.25), 0), TG_SHAPE(n, 24, 2))))
OP(layer_norm, tg_layer_norm(tg_transpose(y, 0, 1)))
OP(attention,
   tg_scaled_dot_product_attention(tg_reshape(x, TG_SHAPE(1, n, 24)), tg_reshape(x, TG_SHAPE(1, n, 24)),
                                   tg_reshape(x, TG_SHAPE(1, n, 24)), .causal = true))
OP(take, tg_take(X, i))
OP(gather, tg_gather(x, 0,
                     tg_minimum(tg_expand(tg_unsqueeze(i, 1), TG_SHAPE(n, 24)),
                                tg_sub_scalar(tg_size_tensor(C, n, TG_I32), 1))))
OP(one_hot, tg_one_hot(i, 40))
OP(size_value, tg_mul(tg_sum(x), tg_size_tensor(C, n, TG_F32)))
OP(loss, tg_mse(x, tg_transpose(y, 0, 1)))
OP(several, tg_matmul(tg_softmax(tg_mul_scalar(tg_matmul(x, y), 0.2)), x))
OP(flat_scatter,
   tg_flatten(tg_scatter(tg_contiguous(y), 0, tg_int(tg_mod_scalar(tg_abs(tg_mul_scalar(y, 64)), 24)), y,
                         .reduce = TG_SCATTER_ADD),
              0, 1))
OP(flat_scan, tg_flatten(tg_cumsum(y, 0), 0, 1))
#define ROW(f)                                                                                               \
  { #f, f }

static const struct {
  const char *name;
  Op *op;
} ops[] = {ROW(itself),
           ROW(other_axis),
           ROW(arithmetic),
           ROW(broadcast),
           ROW(compare),
           ROW(permute),
           ROW(reshape),
           ROW(reshape_infer),
           ROW(merge_front),
           ROW(merge_back),
           ROW(merge_split),
           ROW(grow),
           ROW(expand_to),
           ROW(flip),
           ROW(shrink),
           ROW(last_row),
           ROW(row_by_n),
           ROW(conv),
           ROW(conv_back),
           ROW(largest_of_parts),
           ROW(mean_of_parts),
           ROW(resized),
           ROW(sorted),
           ROW(sorted_rows),
           ROW(flat_scatter),
           ROW(flat_scan),
           ROW(sorted_first),
           ROW(best),
           ROW(rolled),
           ROW(reflected),
           ROW(repeated),
           ROW(round_again),
           ROW(unfolded),
           ROW(on_diagonal),
           ROW(diagonals),
           ROW(formula),
           ROW(rearranged),
           ROW(normed_train),
           ROW(entropy),
           ROW(log_running_sum),
           ROW(scattered),
           ROW(pad),
           ROW(pad_by_n),
           ROW(pad_value),
           ROW(cat_rows),
           ROW(cat_columns),
           ROW(stack),
           ROW(repeat),
           ROW(lower),
           ROW(full),
           ROW(sum_all),
           ROW(sum_rows),
           ROW(sum_columns),
           ROW(sum_inner),
           ROW(largest),
           ROW(smallest),
           ROW(product),
           ROW(mean_all),
           ROW(mean_rows),
           ROW(variance),
           ROW(variance_unbiased),
           ROW(softmax_rows),
           ROW(softmax_columns),
           ROW(log_softmax),
           ROW(cumsum),
           ROW(cumsum_inner),
           ROW(cumsum_beside),
           ROW(argmax),
           ROW(argmin),
           ROW(matmul_rows),
           ROW(matmul_inner),
           ROW(matmul_outer),
           ROW(matmul_vector),
           ROW(matmul_batch),
           ROW(layer_norm),
           ROW(attention),
           ROW(take),
           ROW(indexed),
           ROW(indexed_last),
           ROW(indexed_apart),
           ROW(in_steps),
           ROW(one_of_each),
           ROW(gather),
           ROW(one_hot),
           ROW(size_value),
           ROW(loss),
           ROW(several)};

static TgTensor *apply(Op *op, int64_t n) {
  return op(tg_slice(X, 0, 0, n), tg_slice(Y, 1, 0, n), tg_slice(I, 0, 0, n), n);
}

static void operations(void **state) {
  (void)state;
  const int64_t values[] = {17, 1, MOST, 2, 33};
  for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
      TG_SCOPE(C) {
        bind_to(N, values[k]);
        TgTensor *t = apply(ops[o].op, tg_size(N));
        FINE(ops[o].name);
        tg_counters_reset(C);
        tg_realize(t);
        FINE(ops[o].name);
        TgCounters c = tg_counters(C);
        if (k && (c.schedules || c.compiled))
          fail_msg("%s on %s, n = %lld: %llu schedules, %llu kernels compiled", ops[o].name, device,
                   (long long)values[k], (unsigned long long)c.schedules, (unsigned long long)c.compiled);
        same(ops[o].name, values[k], t, apply(ops[o].op, values[k]), 2e-5);
      }
}

/* ---- one graph, many values: handles that stay */
static void bound_again(void **state) {
  (void)state;
  bind_to(N, 3);
  TgTensor *x = tg_slice(X, 0, 0, tg_size(N)), *s = tg_sum(x, .axis = TG_AXES(1)), *all = tg_sum(s);
  assert_int_equal(tg_ndim(s), 1);
  assert_true(tg_is_symbolic(s, 0) && !tg_is_symbolic(x, 1));
  assert_true(tg_size_of(s, 0) == tg_size(N) && tg_size_of(x, 1) == WIDE);
  assert_int_equal(tg_max_shape(s)[0], MOST);
  assert_int_equal(tg_max_numel(x), MOST * WIDE);
  double sums[MOST], v[MOST], one;
  tg_read_f64(tg_sum(X, .axis = TG_AXES(1)), sums, MOST);
  for (int64_t n = 1; n <= MOST; n += 13) {
    bind_to(N, n);
    assert_int_equal(tg_shape(s)[0], n);
    assert_int_equal(tg_dim(s, -1), n);
    assert_int_equal(tg_numel(s), n);
    assert_int_equal(tg_nbytes(x), n * WIDE * 4);
    assert_int_equal(tg_len(s), n);
    if (n > 14) tg_counters_reset(C);
    assert_int_equal(tg_read_f64(s, v, (size_t)n), TG_OK);
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
      assert_true(fabs(v[i] - sums[i]) < 1e-4);
      total += sums[i];
    }
    one = tg_item_f64(all);
    FINE("sum");
    assert_true(fabs(one - total) < 1e-3);
    if (n > 14) assert_true(!tg_counters(C).schedules && !tg_counters(C).compiled);
    tg_counters_reset(C);
    tg_read_f64(s, v, (size_t)n); /* known, as long as n is what it is */
    assert_int_equal(tg_counters(C).launches, 0);
  }
  assert_true(strstr(tg_describe(x), "(n, 24)") != NULL);
}

/* ---- sizes that may be 0 */
static void nothing(void **state) {
  (void)state;
  TgVariable *z = tg_variable(C, "z", 0, MOST);
  static Op *const with[] = {itself,    other_axis,  arithmetic,   merge_front,  merge_back, merge_split,
                             pad,       pad_by_n,    cat_rows,     cat_columns,  sum_all,    sum_rows,
                             sum_inner, largest,     product,      mean_all,     mean_rows,  softmax_rows,
                             cumsum,    matmul_rows, matmul_inner, matmul_outer, take,       several};
  const int64_t values[] = {0, 3, 0, MOST};
  for (size_t o = 0; o < sizeof with / sizeof *with; o++)
    for (int k = 0; k < 4; k++)
      TG_SCOPE(C) {
        bind_to(z, values[k]);
        same("a size that may be 0", (int64_t)o * 100 + values[k], apply(with[o], tg_size(z)),
             apply(with[o], values[k]), 2e-5);
      }
}

/* ---- variables and sizes */
static void variables(void **state) {
  (void)state;
  int64_t v = 0;
  assert_int_equal(tg_variable_bind(N, 41), TG_ERR_VALUE);
  ERROR_IS(NULL, TG_ERR_VALUE, "'n': 41 is not from 1 to 40");
  assert_int_equal(tg_variable_unbind(N, &v), TG_ERR_STATE);
  ERROR_IS(NULL, TG_ERR_STATE, "'n' is not bound");
  assert_false(tg_variable_value(N, &v));
  TgTensor *s = tg_sum(tg_slice(X, 0, 0, tg_size(N)));
  assert_int_equal(tg_dim(tg_slice(X, 0, 0, tg_size(N)), 0), MOST); /* not bound: the most */
  assert_int_equal(tg_realize(s), TG_ERR_STATE);
  ERROR_IS(NULL, TG_ERR_STATE, "'n' is not bound");
  /* a view of memory needs no kernel, and is refused alike: in an axis, or in a place */
  float out[MOST];
  TgTensor *all = tg_arange(C, 0, MOST + 4);
  int64_t to = tg_size_add(C, tg_size(N), 4);
  assert_int_equal(tg_realize(all), TG_OK);
  TgTensor *some[] = {tg_slice(all, 0, 0, tg_size(N)), tg_unsqueeze(tg_slice(all, 0, 0, tg_size(N)), 0),
                      tg_slice(all, 0, tg_size(N), to)};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    assert_int_equal(tg_read(some[i], out, tg_nbytes(some[i])), TG_ERR_STATE);
    ERROR_IS(NULL, TG_ERR_STATE, "'n' ");
  }
  bind_to(N, 5);
  assert_true(tg_variable_value(N, &v) && v == 5);
  assert_int_equal(tg_variable_unbind(N, &v), TG_OK);
  assert_int_equal(v, 5);
  assert_string_equal(tg_variable_name(N), "n");
  ERROR_IS(tg_variable(C, "m", 5, 4), TG_ERR_VALUE, "'m'");
  ERROR_IS(tg_variable(C, "m", -1, 4), TG_ERR_VALUE, "'m'");
  ERROR_IS(tg_variable(C, "m", 9, 15, .multiple_of = 8), TG_ERR_VALUE, "multiple of 8");
  TgVariable *even = tg_variable(C, "e", 3, 21, .multiple_of = 4), *fixed = tg_variable(C, "f", 6, 6),
             *other = tg_variable(C, "n", 1, MOST);
  assert_int_equal(tg_variable_bind(even, 3), TG_ERR_VALUE);
  ERROR_IS(NULL, TG_ERR_VALUE, "'e': 3 is not from 4 to 20, a multiple of 4");
  bind_to(even, 12);
  assert_int_equal(tg_size(fixed), 6); /* only one value: a number */
  assert_true(tg_size(other) != tg_size(N));
  /* arithmetic: equal sums are equal sizes */
  int64_t n = tg_size(N), e = tg_size(even), two = tg_size_mul(C, 2, n);
  assert_true(tg_size_add(C, n, n) == two && tg_size_sub(C, two, n) == n && tg_size_sub(C, n, n) == 0);
  assert_true(tg_size_mul(C, tg_size_add(C, n, 1), tg_size_sub(C, n, 1)) ==
              tg_size_sub(C, tg_size_mul(C, n, n), 1));
  assert_true(tg_size_mul(C, e, n) == tg_size_mul(C, n, e));
  int64_t q = 0, least, most;
  assert_true(tg_size_div(C, tg_size_mul(C, 6, n), two, &q) && q == 3);
  assert_true(tg_size_div(C, tg_size_mul(C, n, e), n, &q) && q == e);
  assert_false(tg_size_div(C, tg_size_add(C, n, 1), 2, &q) || tg_size_div(C, n, e, &q) ||
               tg_size_div(C, 7, 2, &q) || tg_size_div(C, n, 0, &q) || tg_size_div(NULL, 6, 2, &q));
  assert_true(tg_size_bounds(C, tg_size_sub(C, two, e), &least, &most) && least == 2 - 20 &&
              most == 2 * MOST - 4);
  assert_true(tg_size_bounds(C, 5, &least, NULL) && least == 5 && !tg_size_bounds(C, n + 1, NULL, NULL));
  FINE("sizes");
  bind_to(N, 7);
  assert_int_equal(tg_item_i64(tg_size_tensor(C, tg_size_add(C, tg_size_mul(C, e, n), 5), TG_DTYPE_DEFAULT)),
                   12 * 7 + 5);
  assert_int_equal(tg_item_i64(tg_variable_tensor(even)), 12);
  /* (e) -> (e / 4, 4) */
  TgTensor *r = tg_slice(tg_select(Y, 0, 0), 0, 0, e), *grid = tg_contiguous(tg_reshape(r, TG_SHAPE(-1, 4)));
  for (int64_t k = 4; k <= 20; k += 8) {
    bind_to(even, k);
    assert_int_equal(tg_dim(grid, 0), k / 4);
    same("multiples", k, tg_reshape(grid, TG_SHAPE(e)), tg_slice(tg_select(Y, 0, 0), 0, 0, k), 0);
  }
  /* two variables in one tensor */
  TgTensor *both = tg_matmul(tg_slice(X, 0, 0, n), tg_slice(Y, 1, 0, e));
  for (int64_t k = 4; k <= 20; k += 4) {
    bind_to(even, k), bind_to(N, 2 * k - 1);
    same("two variables", k, both, tg_matmul(tg_slice(X, 0, 0, 2 * k - 1), tg_slice(Y, 1, 0, k)), 1e-5);
  }
  /* a variable as a place */
  TgTensor *row = tg_select(X, 0, tg_size_sub(C, n, 1));
  for (int64_t k = 1; k <= MOST; k += 13)
    bind_to(N, k), same("row", k, row, tg_select(X, 0, k - 1), 0);
}

/* Rows 0 .. n-1, and zeros up to the most that n can be: what is behind them was never computed. */
static TgTensor *filled_up(TgTensor *t, int64_t n) { return tg_pad(t, D(0), D(tg_size_sub(C, MOST, n))); }

static TgTensor *sums_of(int which, TgTensor *x) {
  if (which == 0) return tg_sum(tg_matmul(x, tg_transpose(x, 0, 1)), .axis = TG_AXES(1));
  if (which == 1) return tg_max(tg_matmul(x, tg_transpose(x, 0, 1)), .axis = TG_AXES(0));
  return tg_softmax(tg_sum(x, .axis = TG_AXES(1)), .axis = TG_AXES(0));
}

static void filled_up_to_the_most(void **state) {
  (void)state;
  int64_t n = tg_size(N);
  for (int which = 0; which < 3; which++)
    for (int64_t k = 1; k <= MOST; k += 13) {
      bind_to(N, k);
      TgTensor *p = filled_up(sums_of(which, tg_slice(X, 0, 0, n)), n);
      TgTensor *w = filled_up(sums_of(which, tg_slice(X, 0, 0, k)), k);
      same("sum of rows filled up", k, tg_sum(p), tg_sum(w), 1e-5);
      same("running sum of rows filled up", k, tg_cumsum(p, 0), tg_cumsum(w, 0), 1e-5);
    }
}

static void refusals(void **state) {
  (void)state;
  int64_t n = tg_size(N);
  TgTensor *x = tg_slice(X, 0, 0, n), *y = tg_slice(Y, 1, 0, n), *out[4];
  ERROR_IS(tg_sort(x, NULL, .axis = TG_AXES(0)), TG_ERR_SHAPE, "sort: axis 0 has the symbolic size n");
  ERROR_IS(tg_topk(y, 1, NULL), TG_ERR_SHAPE, "topk: axis 1 has the symbolic size n");
  ERROR_IS(tg_conv2d(tg_reshape(y, TG_SHAPE(1, 4, 6, n)), tg_ones(C, TG_SHAPE(1, 4, 2, 2))), TG_ERR_SHAPE,
           "conv2d: axis 3");
  ERROR_IS(tg_roll(x, 1, D(2), D(0)), TG_ERR_SHAPE, "roll: axis 0"); /* n may be 1 */
  ERROR_IS(tg_pad_mode(x, D(1, 0), D(0, 0), TG_PAD_REFLECT), TG_ERR_SHAPE, "too few elements to reflect 1");
  ERROR_IS(tg_scaled_dot_product_attention(y, y, y), TG_ERR_SHAPE, "attention: axis 1");
  ERROR_IS(tg_max_pool2d(tg_reshape(y, TG_SHAPE(4, 6, n)), .kernel = TG_SIZES(2)), TG_ERR_SHAPE,
           "max_pool2d: axis 2");
  TgTensor *u, *s, *v;
  assert_int_equal(tg_svd(x, &u, &s, &v), TG_ERR_SHAPE);
  ERROR_IS(NULL, TG_ERR_SHAPE, "svd: axis 0");
  assert_int_equal(tg_split(x, 0, 4, out, 4), 0);
  ERROR_IS(NULL, TG_ERR_SHAPE, "split: axis 0");
  assert_int_equal(tg_chunk(x, 0, 4, out, 4), 0);
  ERROR_IS(NULL, TG_ERR_SHAPE, "chunk: axis 0");
  ERROR_IS(tg_einsum("ij,ij->ji", ((TgTensor *[]){x, tg_ones(C, TG_SHAPE(2, 24))}), 2), TG_ERR_SHAPE,
           "einsum: 'i' of \"ij,ij->ji\" has sizes (n, 2)");
  ERROR_IS(tg_kaiming_uniform(C, TG_SHAPE(n, 2)), TG_ERR_SHAPE, "kaiming_uniform: axis 0");
  ERROR_IS(tg_from(C, &x, TG_F32, TG_SHAPE(n)), TG_ERR_SHAPE, "from: axis 0");
  ERROR_IS(tg_reshape(x, TG_SHAPE(n, 25)), TG_ERR_SHAPE, "(n, 24)");
  ERROR_IS(tg_reshape(x, TG_SHAPE(17, 24)), TG_ERR_SHAPE, "(n, 24)");
  int64_t many[TG_MAX_RANK]; /* more than a message has room for: what fits */
  char name[64];
  for (int i = 0; i < TG_MAX_RANK; i++) {
    snprintf(name, sizeof name, "the_number_of_elements_along_the_axis_%02d", i);
    many[i] = i < 6 ? tg_size(tg_variable(C, name, 1, 2)) : 1;
  }
  TgTensor *sixteen = tg_ones(C, TG_MAX_RANK, many);
  ERROR_IS(tg_reshape(sixteen, TG_SHAPE(5)), TG_ERR_SHAPE, "along_the_axis_00, the_number");
  ERROR_IS(tg_reshape(x, TG_SHAPE(-1, 7)), TG_ERR_SHAPE, "no size fits");
  ERROR_IS(tg_add(x, tg_ones(C, TG_SHAPE(2, 24))), TG_ERR_SHAPE, "do not broadcast");
  ERROR_IS(tg_slice(X, 0, 0, tg_size_add(C, n, 1)), TG_ERR_SHAPE, "0 .. n + 1 of axis 0 of (40, 24)");
  ERROR_IS(tg_slice(x, 0, 0, 2), TG_ERR_SHAPE, "0 .. 2 of axis 0 of (n, 24)"); /* n may be 1 */
  ERROR_IS(tg_select(X, 0, n), TG_ERR_SHAPE, "index n on axis 0");
  ERROR_IS(tg_getitem(x, TG_IDX(TG_AT(1))), TG_ERR_SHAPE, "getitem: index 1 on axis 0 of (n, 24)");
  ERROR_IS(tg_getitem(x, TG_IDX(TG_SLICE(0, TG_OPEN, 2))), TG_ERR_SHAPE, "step 2 of axis 0 of (n, 24)");
  ERROR_IS(tg_getitem(x, TG_IDX(TG_SLICE(0, 2))), TG_ERR_SHAPE, "getitem: 0 .. 2 of axis 0");
  ERROR_IS(tg_getitem(x, TG_IDX(TG_MASK(tg_gt_scalar(x, 0)))), TG_ERR_SHAPE, "nonzero: axis 0");
  ERROR_IS(tg_setitem(tg_contiguous(X), TG_IDX(TG_SLICE(0, n)), x), TG_ERR_SHAPE, "setitem: axis 0");
  ERROR_IS(tg_zeros(C, TG_SHAPE(n + 1)), TG_ERR_SHAPE, "zeros"); /* not a size */
  ERROR_IS(tg_zeros(C, TG_SHAPE(tg_size_sub(C, n, 2))), TG_ERR_SHAPE, "below 0");
}

/* ---- random numbers: the first of as many as there are at most */
static void draws(void **state) {
  (void)state;
  int64_t n = tg_size(N);
  TgTensor *ones = tg_ones(C, TG_SHAPE(n, 24)), *of[4];
  static double first[4][MOST * WIDE];
  tg_set_training(C, true);
  bind_to(N, 2);
  of[0] = tg_rand(C, TG_SHAPE(n, 24)), of[1] = tg_randn(C, TG_SHAPE(n, 24), .dtype = TG_F16);
  of[2] = tg_dropout(ones, .5), of[3] = tg_float(tg_randint(C, TG_SHAPE(n, 24), 0, 7, TG_I32));
  for (int b = MOST; b > 0; b -= 13) {
    bind_to(N, b);
    for (int i = 0; i < 4; i++) {
      double *to = b == MOST ? first[i] : got, sum = 0;
      tg_read_f64(of[i], to, (size_t)b * 24);
      FINE("draws");
      for (int k = 0; k < b * 24; k++)
        sum += to[k] / b / 24;
      static const double mean[] = {.5, 0, 1, 3};
      if (b == MOST && !(fabs(sum - mean[i]) < .15)) fail_msg("draw %d has the mean %g", i, sum);
      assert_memory_equal(to, first[i], (size_t)b * 24 * sizeof *to);
    }
  }
  tg_set_training(C, false);
}

/* ---- memory of symbolic size, stores */
static void memory(void **state) {
  (void)state;
  int64_t n = tg_size(N);
  TgTensor *m = tg_empty(C, TG_F32, TG_SHAPE(2, n));
  assert_int_equal(tg_max_numel(m), 2 * MOST);
  bind_to(N, 4);
  assert_non_null(tg_assign(m, tg_expand(tg_cast(tg_slice(I, 0, 0, n), TG_F32), TG_SHAPE(2, n))));
  assert_int_equal(tg_realize(m), TG_OK);
  same("stored", 4, m, tg_expand(tg_cast(tg_slice(I, 0, 0, 4), TG_F32), TG_SHAPE(2, 4)), 0);
  bind_to(N, 3); /* a store stays: fewer of the same */
  same("stored", 3, m, tg_expand(tg_cast(tg_slice(I, 0, 0, 3), TG_F32), TG_SHAPE(2, 3)), 0);
  TgTensor *c = tg_clone(tg_mul_scalar(m, 2));
  same("clone", 3, c, tg_expand(tg_mul_scalar(tg_cast(tg_slice(I, 0, 0, 3), TG_F32), 2), TG_SHAPE(2, 3)), 0);
  /* a store that waits runs with the value that it was written for */
  TgTensor *t = tg_zeros(C, TG_SHAPE(6));
  assert_int_equal(tg_realize(t), TG_OK);
  TgTensor *p = tg_clone(t);
  TgVariable *k = tg_variable(C, "k", 1, 6);
  int64_t at = tg_size(k);
  bind_to(k, 2);
  assert_non_null(tg_assign_slice(p, D(tg_size_sub(C, at, 1)), D(at), tg_full(C, TG_SHAPE(1), 5)));
  bind_to(k, 6);
  double v[6];
  assert_int_equal(tg_read_f64(p, v, 6), TG_OK);
  for (int i = 0; i < 6; i++)
    assert_true(v[i] == (i == 1 ? 5 : 0));
  /* a value of symbolic shape is computed anew from what the memory held when it was built, though that has
   * changed since */
  TgTensor *w = tg_clone(t);
  assert_int_equal(tg_realize(w), TG_OK);
  TgTensor *part = tg_add_scalar(tg_slice(w, 0, 0, at), 1);
  bind_to(k, 3);
  assert_int_equal(tg_realize(part), TG_OK);
  assert_non_null(tg_assign(w, tg_full(C, TG_SHAPE(6), 9)));
  assert_int_equal(tg_realize(w), TG_OK);
  same("kept value", 3, part, tg_ones(C, TG_SHAPE(3)), 0);
  bind_to(k, 4);
  same("kept value", 4, part, tg_ones(C, TG_SHAPE(4)), 0);
}

/* ---- attention over a growing cache: one plan for all steps */
static void cache(void **state) {
  (void)state;

  enum { STEPS = 12, HEAD = 8 };

  TgVariable *pos = tg_variable(C, "pos", 0, 63);
  int64_t p = tg_size(pos), next = tg_size_add(C, p, 1);
  TgTensor *ck = tg_keep(tg_empty(C, TG_F32, TG_SHAPE(64, HEAD)));
  TgTensor *cv = tg_keep(tg_empty(C, TG_F32, TG_SHAPE(64, HEAD)));
  static double k[64][HEAD], v[64][HEAD];
  for (int step = 0; step < STEPS; step++)
    TG_SCOPE(C) {
      double q[HEAD], want[HEAD] = {0}, out[HEAD], s[64], sum = 0, most = -INFINITY;
      for (int i = 0; i < HEAD; i++)
        q[i] = sin(step * 3 + i), k[step][i] = cos(step * 5 + 2 * i), v[step][i] = sin(step + i * i);
      for (int j = 0; j <= step; j++) {
        s[j] = 0;
        for (int i = 0; i < HEAD; i++)
          s[j] += q[i] * k[j][i];
        most = fmax(most, s[j]);
      }
      for (int j = 0; j <= step; j++)
        sum += s[j] = exp(s[j] - most);
      for (int j = 0; j <= step; j++)
        for (int i = 0; i < HEAD; i++)
          want[i] += s[j] / sum * v[j][i];
      bind_to(pos, step);
      TgTensor *tq = tg_from_f64(C, q, TG_F32, TG_SHAPE(1, HEAD));
      TgTensor *tk = tg_from_f64(C, k[step], TG_F32, TG_SHAPE(1, HEAD));
      TgTensor *tv = tg_from_f64(C, v[step], TG_F32, TG_SHAPE(1, HEAD));
      tg_counters_reset(C);
      assert_non_null(tg_assign_slice(ck, D(p, 0), D(next, HEAD), tk));
      assert_non_null(tg_assign_slice(cv, D(p, 0), D(next, HEAD), tv));
      TgTensor *score = tg_matmul(tq, tg_transpose(tg_slice(ck, 0, 0, next), 0, 1));
      TgTensor *o = tg_matmul(tg_softmax(score), tg_slice(cv, 0, 0, next));
      assert_int_equal(tg_read_f64(o, out, HEAD), TG_OK);
      FINE("cache");
      if (step > 1 && (tg_counters(C).schedules || tg_counters(C).compiled))
        fail_msg("step %d: %d schedules, %d kernels", step, (int)tg_counters(C).schedules,
                 (int)tg_counters(C).compiled);
      for (int i = 0; i < HEAD; i++)
        if (!(fabs(out[i] - want[i]) < 1e-5))
          fail_msg("step %d on %s: %d is %g, not %g", step, device, i, out[i], want[i]);
    }
  tg_release(ck), tg_release(cv);
}

/* ---- gradients */
static TgTensor *loss_of(TgTensor *x, TgTensor *w, int which) {
  TgTensor *h = tg_matmul(x, w);
  if (which == 0) return tg_sum(tg_mul(h, tg_sum(tg_mul(h, h), .axis = TG_AXES(0))));
  if (which == 1) return tg_sum(tg_mul(tg_softmax(h, .axis = TG_AXES(0)), h));
  if (which == 2) return tg_mean(tg_square(tg_matmul(tg_softmax(tg_matmul(h, tg_transpose(h, 0, 1))), x)));
  return tg_add(tg_sum(tg_max(h, .axis = TG_AXES(0))),
                tg_sum(tg_var(tg_pad(tg_flip(h, 1, D(0)), D(1, 0), D(1, 0)), .axis = TG_AXES(0))));
}

static void gradients(void **state) {
  (void)state;

  enum { IN = 5, OUT = 3, ROWS = 9 };

  TgDType d = strstr(device, "METAL") ? TG_F32 : TG_F64;
  double x[ROWS * IN], w[IN * OUT], gx[ROWS * IN], gw[IN * OUT];
  for (int i = 0; i < ROWS * IN; i++)
    x[i] = sin(i * 1.7) * 0.9;
  for (int i = 0; i < IN * OUT; i++)
    w[i] = cos(i * 2.3) * 0.7;
  TgVariable *r = tg_variable(C, "rows", 1, ROWS);
  for (int which = 0; which < 4; which++)
    for (int64_t n = 2; n <= ROWS; n += 7)
      TG_SCOPE(C) {
        bind_to(r, n);
        TgTensor *tx = tg_from_f64(C, x, d, TG_SHAPE(ROWS, IN));
        TgTensor *tw = tg_from_f64(C, w, d, TG_SHAPE(IN, OUT));
        TgTensor *g[2], *h[2];
        assert_int_equal(
            tg_gradient(loss_of(tg_slice(tx, 0, 0, tg_size(r)), tw, which), ((TgTensor *[]){tx, tw}), 2, g),
            TG_OK);
        assert_int_equal(
            tg_gradient(loss_of(tg_slice(tx, 0, 0, n), tw, which), ((TgTensor *[]){tx, tw}), 2, h), TG_OK);
        tg_counters_reset(C);
        tg_realize_many(g, 2);
        FINE("gradient");
        if (n > 2 && (tg_counters(C).schedules || tg_counters(C).compiled))
          fail_msg("loss %d: %d schedules, %d kernels compiled", which, (int)tg_counters(C).schedules,
                   (int)tg_counters(C).compiled);
        for (int i = 0; i < 2; i++)
          same("gradient", n, g[i], h[i], d == TG_F64 ? 1e-9 : 1e-4);
        if (strcmp(device, "INTERP")) continue;
        tg_read_f64(g[0], gx, ROWS * IN), tg_read_f64(g[1], gw, IN * OUT);
        for (int i = 0; i < ROWS * IN + IN * OUT; i += 4) {
          double *at = i < ROWS * IN ? &x[i] : &w[i - ROWS * IN];
          double old = *at;
          double step = 1e-5;
          double have = i < ROWS * IN ? gx[i] : gw[i - ROWS * IN];
          double f[2];
          for (int s = 0; s < 2; s++) {
            *at = old + (s ? step : -step);
            f[s] = tg_item_f64(loss_of(tg_slice(tg_from_f64(C, x, d, TG_SHAPE(ROWS, IN)), 0, 0, tg_size(r)),
                                       tg_from_f64(C, w, d, TG_SHAPE(IN, OUT)), which));
          }
          *at = old;
          double want = (f[1] - f[0]) / (2 * step);
          if (!(fabs(have - want) < 1e-5 * fmax(1, fabs(want))))
            fail_msg("loss %d, n = %lld, input %d: %.9g, not %.9g", which, (long long)n, i, have, want);
        }
      }
}

/* The loops end where the variable says: the text of the kernels asks for it, and no loop runs to the most.
 */
static void note_source(const TgKernelText *k, void *user) {
  if (*k->source)
    *(int *)user |=
        strstr(k->source, "vars[0]") || strstr(k->source, "i64 var0") || strstr(k->source, "&var0") ? 1 : 2;
}

static void cost(void **state) {
  (void)state;
  int seen = 0;
  bind_to(N, 9);
  tg_watch_kernels(C, note_source, &seen);
  assert_int_equal(tg_realize(tg_sum(tg_exp(tg_slice(X, 0, 0, tg_size(N))), .axis = TG_AXES(0))), TG_OK);
  tg_watch_kernels(C, NULL, NULL);
  assert_true(seen == (strcmp(device, "INTERP") ? 1 : 0));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {TEST(operations), TEST(bound_again), TEST(nothing),
                                     TEST(variables),  TEST(refusals),    TEST(filled_up_to_the_most),
                                     TEST(draws),      TEST(memory),      TEST(cache),
                                     TEST(gradients),  TEST(cost)};
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
