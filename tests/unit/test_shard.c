/* test_shard.c: tensors on several devices. Expected values are by hand, or those of the same program on one
 * device. The devices are CPU to CPU:3, or those of TG_SHARD_DEVICES ("CUDA", emulated: CUDA to CUDA:3). */
#include "tg.h"
#include "tg_nn.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *C;
static char names[4][16];
static const char *D[4];

static int open_it(void **state) {
  (void)state;
  const char *base = getenv("TG_SHARD_DEVICES");
  base = base && *base ? base : "CPU";
  for (int i = 0; i < 4; i++) {
    snprintf(names[i], sizeof names[i], i ? "%.10s:%d" : "%.10s", base, i);
    D[i] = names[i];
  }
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = base, .seed = 7});
  return tg_error(C) != TG_OK;
}

static int close_it(void **state) {
  (void)state;
  tg_close(C);
  return 0;
}

static void text_at(int line, TgTensor *t, const char *want) {
  const char *got = tg_to_text(t);
  if (!got || strcmp(got, want))
    fail_msg("line %d: %s, not %s (%s)", line, got ? got : "nothing", want, tg_errmsg(C));
}

static void same_at(int line, TgTensor *t, TgTensor *want, double within) {
  if (!t || !want) fail_msg("line %d: %s", line, tg_errmsg(C));
  size_t n = (size_t)tg_numel(want);
  if ((size_t)tg_numel(t) != n || tg_dtype(t) != tg_dtype(want)) fail_msg("line %d: of another size or dtype", line);
  double *a = calloc(n + 1, sizeof *a), *b = calloc(n + 1, sizeof *b);
  if (tg_read_f64(t, a, n) || tg_read_f64(want, b, n)) fail_msg("line %d: %s", line, tg_errmsg(C));
  for (size_t i = 0; i < n; i++)
    if (!(fabs(a[i] - b[i]) <= within * (1 + fabs(b[i]))) && !(a[i] != a[i] && b[i] != b[i]))
      fail_msg("line %d: element %zu is %.9g, not %.9g", line, i, a[i], b[i]);
  free(a), free(b);
}

static void error_at(int line, const void *p, TgStatus s, const char *part) {
  if (p || tg_error(C) != s || !strstr(tg_errmsg(C), part))
    fail_msg("line %d: %s: %s, not %s about \"%s\"", line, tg_status_name(tg_error(C)), tg_errmsg(C),
             tg_status_name(s), part);
  tg_clear_error(C);
}

static void bounds_at(int line, TgTensor *t, int axis, const int64_t *want) {
  int64_t b[17];
  if (tg_shard_axis(t) != axis) fail_msg("line %d: axis %d, not %d: %s", line, tg_shard_axis(t), axis, tg_errmsg(C));
  if (axis >= 0 && tg_shard_bounds(t, b)) fail_msg("line %d: %s", line, tg_errmsg(C));
  for (int i = 0; axis >= 0 && i <= tg_shard_count(t); i++)
    if (b[i] != want[i]) fail_msg("line %d: bound %d is %lld", line, i, (long long)b[i]);
}

#define TEXT(t, want)         text_at(__LINE__, (t), (want))
#define SAME(t, want, within) same_at(__LINE__, (t), (want), (within))
#define EQUAL(t, want)        same_at(__LINE__, (t), (want), 0)
#define ERROR(p, s, part)     error_at(__LINE__, (p), (s), (part))
#define BOUNDS(t, axis, ...)  bounds_at(__LINE__, (t), (axis), (const int64_t[]){__VA_ARGS__})
#define OK(call)              assert_int_equal((call), TG_OK)
#define X(text)               tg_from_text(C, text)

static TgTensor *counted(int n, const int64_t *d) { /* 0, 1, .. in memory, f32 */
  int64_t all = 1;
  for (int i = 0; i < n; i++)
    all *= d[i];
  float *v = calloc((size_t)all + 1, sizeof *v);
  for (int64_t i = 0; i < all; i++)
    v[i] = (float)((i * 7919) % 1009) / 64 - 4;
  TgTensor *t = tg_from(C, v, TG_F32, n, d);
  free(v);
  return t;
}

/* ---- where parts are */
static void split(void **state) {
  (void)state;
  TgTensor *x = X("[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]"), *s = tg_shard(x, 4, D, 0);
  BOUNDS(s, 0, 0, 2, 4, 6, 7);
  TEXT(s, "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]");
  TEXT(tg_add(s, s), "[2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]");
  TEXT(tg_sum(s), "28.0");
  TEXT(tg_gather_to(s, D[2]), "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]");
  for (int i = 0; i < 4; i++)
    assert_string_equal(tg_device(tg_shard_part(s, i)), D[i]);
  TEXT(tg_shard_part(s, 3), "[7.0]");
  assert_int_equal(tg_shard_count(s), 4);
  assert_int_equal(tg_shard_count(x), 1);
  TgTensor *r = tg_replicate(x, 4, D);
  BOUNDS(r, -1, 0);
  TEXT(tg_mul(r, s), "[1.0, 4.0, 9.0, 16.0, 25.0, 36.0, 49.0]");
  BOUNDS(tg_mul(r, s), 0, 0, 2, 4, 6, 7);
  TEXT(tg_sub(tg_shard(x, 4, D, 0, .bounds = (const int64_t[]){0, 0, 5, 7, 7}), s), "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]");
}

/* ---- each operation, against one device */
static void operations(void **state) {
  (void)state;
  const int64_t shape[] = {6, 5, 7};
  for (int axis = -1; axis < 3; axis++)
    for (int uneven = 0; uneven < 2; uneven++) {
      OK(tg_scope_begin(C));
      TgTensor *x = counted(3, shape);
      const int64_t odd[3][5] = {{0, 0, 4, 4, 6}, {0, 1, 1, 4, 5}, {0, 5, 5, 6, 7}};
      TgTensor *s = axis < 0 ? tg_replicate(x, 4, D)
                    : uneven ? tg_shard(x, 4, D, axis, .bounds = odd[axis])
                             : tg_shard(x, 4, D, axis);
      EQUAL(s, x);
      EQUAL(tg_exp(s), tg_exp(x));
      EQUAL(tg_where(tg_gt_scalar(s, 1), s, tg_neg(s)), tg_where(tg_gt_scalar(x, 1), x, tg_neg(x)));
      EQUAL(tg_cast(s, TG_I32), tg_cast(x, TG_I32));
      EQUAL(tg_bitcast(s, TG_I32), tg_bitcast(x, TG_I32));
      for (int a = 0; a < 3; a++) {
        SAME(tg_sum(s, .axis = TG_AXES(a)), tg_sum(x, .axis = TG_AXES(a)), 1e-6);
        EQUAL(tg_max(s, .axis = TG_AXES(a), .keepdim = true), tg_max(x, .axis = TG_AXES(a), .keepdim = true));
        SAME(tg_softmax(s, .axis = TG_AXES(a)), tg_softmax(x, .axis = TG_AXES(a)), 1e-6);
        EQUAL(tg_argmax(s, .axis = TG_AXES(a)), tg_argmax(x, .axis = TG_AXES(a)));
        EQUAL(tg_cumsum(s, a), tg_cumsum(x, a));
        EQUAL(tg_flip(s, TG_SHAPE(a)), tg_flip(x, TG_SHAPE(a)));
        EQUAL(tg_slice(s, a, 1, 4), tg_slice(x, a, 1, 4));
        EQUAL(tg_cat((TgTensor *[]){s, tg_exp(s)}, 2, a), tg_cat((TgTensor *[]){x, tg_exp(x)}, 2, a));
        EQUAL(tg_stack((TgTensor *[]){s, s}, 2, a), tg_stack((TgTensor *[]){x, x}, 2, a));
        EQUAL(tg_sort(s, NULL, .axis = TG_AXES(a)), tg_sort(x, NULL, .axis = TG_AXES(a)));
      }
      EQUAL(tg_add(s, tg_flip(s, TG_SHAPE(0, 1, 2))), tg_add(x, tg_flip(x, TG_SHAPE(0, 1, 2))));
      EQUAL(tg_permute(s, TG_SHAPE(2, 0, 1)), tg_permute(x, TG_SHAPE(2, 0, 1)));
      EQUAL(tg_reshape(s, TG_SHAPE(6, 35)), tg_reshape(x, TG_SHAPE(6, 35)));
      EQUAL(tg_reshape(s, TG_SHAPE(30, 7)), tg_reshape(x, TG_SHAPE(30, 7)));
      EQUAL(tg_reshape(s, TG_SHAPE(7, 30)), tg_reshape(x, TG_SHAPE(7, 30)));
      EQUAL(tg_reshape(s, TG_SHAPE(2, 3, 5, 1, 7)), tg_reshape(x, TG_SHAPE(2, 3, 5, 1, 7)));
      EQUAL(tg_reshape(s, TG_SHAPE(-1)), tg_reshape(x, TG_SHAPE(-1)));
      SAME(tg_mean(s), tg_mean(x), 1e-6);
      SAME(tg_var(s), tg_var(x), 1e-5);
      TgTensor *w = counted(2, (const int64_t[]){7, 4});
      for (int b = -1; b < 2; b++) {
        TgTensor *sw = b < 0 ? tg_replicate(w, 4, D) : tg_shard(w, 4, D, b);
        SAME(tg_matmul(s, sw), tg_matmul(x, w), 1e-5);
      }
      TgTensor *index = X("[[4, 0, 1], [2, 2, 3]]");
      EQUAL(tg_getitem(s, TG_IDX(TG_TENSOR(tg_replicate(index, 4, D)))), tg_getitem(x, TG_IDX(TG_TENSOR(index))));
      EQUAL(tg_getitem(s, TG_IDX(TG_TENSOR(tg_shard(index, 4, D, 1)))), tg_getitem(x, TG_IDX(TG_TENSOR(index))));
      EQUAL(tg_getitem(s, TG_IDX(TG_AT(3), TG_SLICE(0, 5, 2))), tg_getitem(x, TG_IDX(TG_AT(3), TG_SLICE(0, 5, 2))));
      EQUAL(tg_getitem(s, TG_IDX(TG_ALL, TG_ALL, TG_AT(-1))), tg_getitem(x, TG_IDX(TG_ALL, TG_ALL, TG_AT(-1))));
      EQUAL(tg_pad(s, (const int64_t[]){1, 0, 3}, (const int64_t[]){0, 9, 2}), tg_pad(x, (const int64_t[]){1, 0, 3}, (const int64_t[]){0, 9, 2}));
      if (tg_error(C)) fail_msg("axis %d: %s", axis, tg_errmsg(C));
      OK(tg_scope_end(C));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(split, open_it, close_it),
      cmocka_unit_test_setup_teardown(operations, open_it, close_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
