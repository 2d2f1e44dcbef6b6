/* test_errors.c: what a wrong call says. Each message is given in full: it names the operation and the value
 * that is wrong, with its shape, axis or dtype. Nothing is lost by a wrong call: the context goes on, and the
 * tensors with it. TG_GOLDEN=write prints the table anew. */
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *C;
/* (2, 3) f32; (4, 5) f32; (3) i32; () f32; (2, 3) bool; (2, 2) f64; rank 16 */
static TgTensor *x, *y, *v, *s, *b, *f, *big;

static TgTensor *of_status(TgStatus st) { return st ? NULL : s; }

static TgTensor *out[8];
#define T(...) ((TgTensor *[]){__VA_ARGS__})
#define I(...) ((const int64_t[]){__VA_ARGS__})

typedef struct Case {
  int line;
  const char *text;
  TgTensor *got;
  TgStatus status;
  char said[400];
} Case;

static Case cases[200];
static int ncases;

static void note(int line, const char *text, TgTensor *got) {
  Case *c = &cases[ncases++];
  *c = (Case){line, text, got, tg_error(C), ""};
  snprintf(c->said, sizeof c->said, "%s", tg_errmsg(C));
  tg_clear_error(C);
}

#define ERR(call) note(__LINE__, #call, (call))

static void calls(void) {
  static const uint8_t table[16];
  /* shapes */
  ERR(tg_zeros(C, TG_SHAPE(2, -3)));
  ERR(tg_zeros(C, TG_SHAPE(INT64_MAX / 2, 3)));
  ERR(tg_zeros(C, 17, tg_shape(big)));
  ERR(tg_reshape(x, TG_SHAPE(4, 2)));
  ERR(tg_reshape(x, TG_SHAPE(-1, -1)));
  ERR(tg_reshape(x, TG_SHAPE(-1, 4)));
  ERR(tg_expand(x, TG_SHAPE(2, 4)));
  ERR(tg_expand(x, TG_SHAPE(3)));
  ERR(tg_add(x, y));
  ERR(tg_where(b, x, y));
  ERR(tg_matmul(x, x));
  ERR(tg_matmul(s, x));
  ERR(tg_linear(x, y, NULL));
  ERR(tg_cat(T(x, y), 2, 0));
  ERR(tg_stack(T(x, y), 2, 0));
  ERR(tg_pad(x, I(0, -4), I(0, 0)));
  ERR(tg_shrink(x, I(0, 0), I(2, 4)));
  ERR(tg_shrink_to(x, TG_SHAPE(3, 3)));
  ERR(tg_pad_to(x, TG_SHAPE(1, 3), 0));
  ERR(tg_unflatten(x, 1, TG_SHAPE(2, 2)));
  ERR(tg_diag(x));
  ERR(tg_tril(v, 0));
  ERR(tg_conv2d(x, y));
  ERR(tg_conv2d(tg_zeros(C, TG_SHAPE(1, 2, 4, 4)), tg_zeros(C, TG_SHAPE(3, 4, 3, 3)), .groups = 1));
  ERR(tg_conv2d(tg_zeros(C, TG_SHAPE(1, 2, 2, 2)), tg_zeros(C, TG_SHAPE(3, 2, 3, 3))));
  ERR(tg_max_pool2d(x, .kernel = TG_SIZES(4)));
  ERR(tg_avg_pool2d(x, .stride = TG_SIZES(1, 2, 3)));
  ERR(tg_cross_entropy(x, y));
  ERR(tg_mse(x, y));
  ERR(tg_scaled_dot_product_attention(x, y, y));
  ERR(tg_layer_norm(x, .weight = y));
  ERR(tg_batch_norm(x, s, s));
  ERR(tg_gather(x, 0, v));
  ERR(tg_assign(x, y));
  ERR(tg_replace(x, y));
  ERR(tg_interpolate(x, TG_SHAPE(2, 2, 2)));
  ERR(of_status(tg_svd(v, &out[0], &out[1], &out[2])));
  ERR(of_status(tg_backward(x)));
  ERR(tg_pad_mode(x, I(0, 3), I(0, 0), TG_PAD_REFLECT));
  /* axes and indices */
  ERR(tg_sum(x, .axis = TG_AXES(2)));
  ERR(tg_sum(x, .axis = TG_AXES(1, -1)));
  ERR(tg_softmax(x, .axis = TG_AXES(-3)));
  ERR(tg_softmax(x, .axis = {{-1}, 0})); /* what C makes of .axis = -1 */
  ERR(tg_sum(x, .axis = {{1}, 0}));
  ERR(tg_argmax(x, .axis = {{1}, 0}));
  ERR(tg_sort(x, NULL, .axis = {{1}, 0}));
  ERR(tg_cross_entropy(x, v, .axis = {{1}, 0}));
  ERR(tg_permute(x, TG_SHAPE(0, 0)));
  ERR(tg_permute(x, TG_SHAPE(1)));
  ERR(tg_flip(x, TG_SHAPE(2)));
  ERR(tg_transpose(x, 0, 5));
  ERR(tg_squeeze(x, 2));
  ERR(tg_unsqueeze(x, 4));
  ERR(tg_diagonal(x, 0, 1, 1));
  ERR(tg_select(x, 1, 3));
  ERR(tg_getitem(x, TG_IDX(TG_AT(2))));
  ERR(tg_getitem(x, TG_IDX(TG_AT(0), TG_AT(0), TG_AT(0))));
  ERR(tg_getitem(x, TG_IDX(TG_ELLIPSIS, TG_ELLIPSIS)));
  ERR(tg_getitem(x, TG_IDX(TG_SLICE(0, 2, 0))));
  ERR(tg_getitem(x, TG_IDX(TG_TENSOR(s))));
  ERR(tg_getitem(x, TG_IDX(TG_MASK(x))));
  ERR(tg_getitem(y, TG_IDX(TG_MASK(b))));
  ERR(tg_setitem(x, TG_IDX(TG_AT(0)), y));
  ERR(tg_setitem(x, TG_IDX(TG_AT(0)), v));
  ERR(tg_argmax(x, .axis = TG_AXES(0, 1)));
  ERR(tg_argmax(tg_zeros(C, TG_SHAPE(2, 0)), .axis = TG_AXES(1)));
  ERR(tg_topk(x, 4, &out[0]));
  /* dtypes */
  ERR(tg_bitand(x, x));
  ERR(tg_shl(x, v));
  ERR(tg_sub(b, b));
  ERR(tg_neg(b));
  ERR(tg_where(x, x, x));
  ERR(tg_cast(x, (TgDType)99));
  ERR(tg_bitcast(tg_from_text(C, "[1, 2, 3]", .dtype = TG_U8), TG_F32));
  ERR(tg_one_hot(x, 3));
  ERR(tg_take(x, x));
  ERR(tg_mean(x, .dtype = TG_I32));
  ERR(tg_requires_grad(v, true));
  ERR(of_status(tg_backward(tg_sum(v))));
  ERR(tg_randint(C, TG_SHAPE(2), 0, 9, TG_F32));
  ERR(tg_rand(C, TG_SHAPE(2), .dtype = TG_I32));
  ERR(tg_dropout(v, 0.5));
  ERR(tg_assign(x, f));
  ERR(tg_threefry(v, v));
  ERR(tg_dot4(v, x));
  ERR(tg_dot2(v, x));
  ERR(tg_lookup4(x, table));
  /* values */
  ERR(tg_arange(C, 0, 300, .dtype = TG_I8));
  ERR(tg_arange(C, 0, INFINITY));
  ERR(tg_linspace(C, 0, 1, -1));
  ERR(tg_eye(C, -2));
  ERR(tg_dropout(x, 1.5));
  ERR(tg_randint(C, TG_SHAPE(2), 5, 5, TG_I32));
  ERR(tg_one_hot(v, -1));
  ERR(tg_from_text(C, "[[1, 2], [3]]"));
  ERR(tg_from_text(C, "[1, two]"));
  ERR(tg_einsum("ij,jk->ik", T(x), 1));
  ERR(tg_einsum("ij,jk->ik", T(x, y), 2));
  ERR(tg_einsum("ij->ik", T(x), 1));
  ERR(tg_einsum("i1->i", T(x), 1));
  ERR(tg_einsum("ijk->i", T(x), 1));
  ERR(tg_rearrange(x, "a b -> a c", NULL, 0));
  ERR(tg_rearrange(x, "(a b) c -> a b c", TG_NAMED({"b", 3})));
  ERR(tg_rearrange(x, "a (b -> a b", NULL, 0));
  ERR(tg_split(x, 1, 0, out, 8) ? x : NULL);
  ERR(tg_split_sizes(x, 1, TG_SHAPE(1, 1), out) ? x : NULL);
  ERR(tg_chunk(x, 0, 0, out, 8) ? x : NULL);
  ERR(tg_unfold(x, 1, 4, 1));
  ERR(tg_isclose(x, x, .rtol = -1));
  ERR(tg_cross_entropy(x, x, .label_smoothing = 2));
  ERR(tg_mse(x, x, .reduction = (TgReduction)7));
  ERR(tg_multinomial(y, 9));
  ERR(of_status(tg_read(x, out, 3)));
  ERR(isnan(tg_item_f64(x)) ? NULL : x);
  ERR(of_status(tg_scope_end(C)));
  ERR(tg_from(C, NULL, TG_F32, TG_SHAPE(2)));
  ERR(tg_alu("SINH", T(x), 1));
  ERR(tg_from_file(C, "/nonexistent/weights", TG_F32, TG_SHAPE(2)));
  ERR(of_status(tg_read(tg_empty(C, TG_F32, TG_SHAPE(2)), out, 8)));
}

#include "errors.inc"

static void test_messages(void **state) {
  (void)state;
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP"});
  x = tg_ones(C, TG_SHAPE(2, 3)), y = tg_ones(C, TG_SHAPE(4, 5)), v = tg_arange(C, 0, 3),
  s = tg_full(C, TG_SCALAR, 1), b = tg_lt_scalar(x, 0), f = tg_ones(C, TG_SHAPE(2, 2), .dtype = TG_F64);
  big = tg_ones(C, TG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  calls();
  if (getenv("TG_GOLDEN")) {
    printf("/* What the calls of test_errors.c say, in their order. Written by TG_GOLDEN=write "
           "build/test_errors; read it before you keep it. */\n");
    printf("static const struct { TgStatus status; const char *message; } messages[] = {\n");
    for (int i = 0; i < ncases; i++) {
      printf("  {%d, \"", (int)cases[i].status);
      for (const char *p = cases[i].said; *p; p++)
        printf(*p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
      printf("\"},   /* %s */\n", cases[i].text);
    }
    printf("};\n");
    return;
  }
  assert_int_equal(ncases, sizeof messages / sizeof *messages);
  assert_true(ncases >= 60);
  for (int i = 0; i < ncases; i++) {
    Case *c = &cases[i];
    if (c->got || c->status != messages[i].status || strcmp(c->said, messages[i].message))
      fail_msg("line %d: %s gives %s \"%s\" (status %d), not \"%s\" (status %d)", c->line, c->text,
               c->got ? "a result," : "", c->said, (int)c->status, messages[i].message,
               (int)messages[i].status);
  }
  assert_true(tg_item_f64(tg_sum(x)) == 6); /* nothing is lost */
  tg_close(C);
}

/* NULL where a list is needed is told, and not read. */
static void null_list(int line, const void *p) {
  if (p || tg_error(C) != TG_ERR_VALUE || !strstr(tg_errmsg(C), "NULL where a list"))
    fail_msg("line %d: '%s'", line, tg_errmsg(C));
  tg_clear_error(C);
}

static TgStatus no_gradient(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out, void *user) {
  (void)g, (void)y, (void)x, (void)n, (void)out, (void)user;
  return TG_OK;
}

#define NULL_LIST(p) null_list(__LINE__, (p))

static void test_null_lists(void **state) {
  (void)state;
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP"});
  TgTensor *x = tg_ones(C, TG_SHAPE(2, 3)), *out[4];
  const int64_t two[] = {0, 0};
  NULL_LIST(tg_zeros(C, 2, NULL));
  NULL_LIST(tg_full(C, 2, NULL, 1));
  NULL_LIST(tg_rand(C, 1, NULL));
  NULL_LIST(tg_empty(C, TG_F32, 1, NULL));
  NULL_LIST(tg_reshape(x, 2, NULL));
  NULL_LIST(tg_permute(x, 2, NULL));
  NULL_LIST(tg_expand(x, 2, NULL));
  NULL_LIST(tg_broadcast_to(x, 2, NULL));
  NULL_LIST(tg_pad(x, NULL, two));
  NULL_LIST(tg_pad(x, two, NULL));
  NULL_LIST(tg_pad_value(x, NULL, NULL, 1));
  for (int mode = TG_PAD_CONSTANT; mode <= TG_PAD_CIRCULAR; mode++)
    NULL_LIST(tg_pad_mode(x, two, NULL, (TgPadMode)mode));
  NULL_LIST(tg_pad_to(x, 2, NULL, 0));
  NULL_LIST(tg_shrink(x, NULL, two));
  NULL_LIST(tg_shrink(x, two, NULL));
  NULL_LIST(tg_shrink_to(x, 2, NULL));
  NULL_LIST(tg_flip(x, 1, NULL));
  NULL_LIST(tg_unflatten(x, 0, 2, NULL));
  NULL_LIST(tg_roll(x, 2, NULL, two));
  NULL_LIST(tg_roll(x, 1, NULL, NULL));
  NULL_LIST(tg_repeat(x, 2, NULL));
  NULL_LIST(tg_interpolate(x, 1, NULL));
  NULL_LIST(tg_rearrange(x, "(a b) c -> a b c", NULL, 1));
  NULL_LIST(tg_assign_slice(x, NULL, two, x));
  NULL_LIST(tg_custom_gradient(x, NULL, 1, no_gradient, NULL));
  NULL_LIST(tg_split(x, 0, 1, NULL, 2) ? x : NULL);
  NULL_LIST(tg_chunk(x, 0, 2, NULL, 2) ? x : NULL);
  NULL_LIST(tg_split_sizes(x, 0, 2, NULL, out) ? x : NULL);
  NULL_LIST(tg_split_sizes(x, 0, TG_SHAPE(1, 1), NULL) ? x : NULL);
  NULL_LIST(tg_meshgrid(T(tg_arange(C, 0, 2)), 1, false, NULL) ? NULL : x);
  NULL_LIST(tg_read_f64(x, NULL, 6) ? NULL : x);
  assert_int_equal(tg_split(x, 0, 1, NULL, 0), 2); /* only asked how many */
  assert_non_null(tg_reshape(tg_sum(x), 0, NULL));
  assert_non_null(tg_flip(x, 0, NULL));
  tg_close(C);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_messages), cmocka_unit_test(test_null_lists)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
