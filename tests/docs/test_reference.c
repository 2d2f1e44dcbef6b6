/* test_reference.c: an example of each function of tg.h that gives a tensor, with what it gives. The reference shows
 * them (reference.h). */
#include "reference.h"

static void data_in(void **state) {
  (void)state;
  float a[] = {1, 2, 3, 4, 5, 6};
  is(tg_from(ctx, a, TG_F32, TG_SHAPE(2, 3)), "f32 (2, 3) [[1, 2, 3], [4, 5, 6]]");

  is(tg_from_text(ctx, "[[1, 2], [3, 4]]"), "i32 (2, 2) [[1, 2], [3, 4]]");
  is(tg_from_text(ctx, "[1, 2, 3]", .dtype = TG_F64), "f64 (3) [1, 2, 3]");

  unsigned char bytes[] = {1, 2, 255};
  is(tg_from_bytes(ctx, bytes, sizeof bytes, TG_DTYPE_DEFAULT), "u8 (3) [1, 2, 255]");

  double b[] = {1.5, -2.5, 300};
  is(tg_from_f64(ctx, b, TG_I16, TG_SHAPE(3)), "i16 (3) [1, -2, 300]");

  static float own[] = {1, 2, 3};
  is(tg_borrow(ctx, own, TG_F32, TG_SHAPE(3), NULL, NULL), "f32 (3) [1, 2, 3]");

  TgTensor *memory = tg_empty(ctx, TG_F32, TG_SHAPE(2));
  is(tg_assign(memory, T("[1.0, 2.0]")), "f32 (2) [1, 2]");

  is(tg_full(ctx, TG_SHAPE(2, 2), 1.5), "f32 (2, 2) [[1.5, 1.5], [1.5, 1.5]]");
  is(tg_full_i64(ctx, TG_SHAPE(2), INT64_C(1) << 40, TG_I64), "i64 (2) [1099511627776, 1099511627776]");
  is(tg_zeros(ctx, TG_SHAPE(2)), "f32 (2) [0, 0]");
  is(tg_ones(ctx, TG_SHAPE(2), .dtype = TG_I32), "i32 (2) [1, 1]");
  is(tg_full_like(T("[1, 2]"), 7), "i32 (2) [7, 7]");
  is(tg_zeros_like(T("[1.5, 2]")), "f32 (2) [0, 0]");
  is(tg_ones_like(T("[true, false]")), "bool (2) [1, 1]");
  is(tg_scalar_like(T("[1.5, 2]"), 3), "f32 () 3");
  is(tg_assign(tg_empty_like(T("[1, 2]"), .dtype = TG_F32), T("[3.0, 4]")), "f32 (2) [3, 4]");
  is(tg_arange(ctx, 0, 5), "i32 (5) [0, 1, 2, 3, 4]");
  is(tg_arange(ctx, 1, 2, .step = 0.25), "f32 (4) [1, 1.25, 1.5, 1.75]");
  is(tg_linspace(ctx, 0, 1, 5), "f32 (5) [0, 0.25, 0.5, 0.75, 1]");
  is(tg_eye(ctx, 2), "f32 (2, 2) [[1, 0], [0, 1]]");
  is(tg_eye(ctx, 2, .m = 3, .dtype = TG_I32), "i32 (2, 3) [[1, 0, 0], [0, 1, 0]]");
}

static void random_numbers(void **state) {
  (void)state;
  tg_manual_seed(ctx, 42);
  is(tg_rand(ctx, TG_SHAPE(3)), "f32 (3) [0.5334, 0.6702, 0.7631]");

  is(tg_randn(ctx, TG_SHAPE(3)), "f32 (3) [0.3964, 0.6546, 1.612]");
  is(tg_uniform(ctx, TG_SHAPE(3), -1, 1), "f32 (3) [-0.9804, 0.6793, 0.01327]");
  is(tg_normal(ctx, TG_SHAPE(3), 10, 2), "f32 (3) [9.957, 10.03, 9.68]");
  is(tg_randint(ctx, TG_SHAPE(4), 0, 10, TG_DTYPE_DEFAULT), "i32 (4) [1, 5, 0, 6]");
  is(tg_randperm(ctx, 5), "i32 (5) [3, 0, 4, 1, 2]");
  is(tg_rand_like(T("[1.0, 2.0]")), "f32 (2) [0.2147, 0.3016]");
  is(tg_randn_like(T("[1.0, 2.0]")), "f32 (2) [-0.7269, -0.02101]");
  is(tg_scaled_uniform(ctx, TG_SHAPE(2, 2)), "f32 (2, 2) [[-0.4387, -0.1766], [0.4375, -0.2069]]");
  is(tg_kaiming_uniform(ctx, TG_SHAPE(2, 3)),
     "f32 (2, 3) [[-0.6281, 0.626, -0.6329], [-1.354, -1.162, -0.3401]]");
  is(tg_kaiming_normal(ctx, TG_SHAPE(2, 3)),
     "f32 (2, 3) [[1.271, 1.116, -1.286], [-0.1333, -0.5884, -0.8886]]");
  is(tg_glorot_uniform(ctx, TG_SHAPE(2, 3)),
     "f32 (2, 3) [[-0.8265, 0.6472, 0.8967], [0.9729, 0.5021, -0.115]]");
  is(tg_multinomial(T("[0.1, 0.0, 0.9]"), 2), "i32 (2) [2, 0]");
  is(tg_random_bits(tg_cast(T("[1, 2]"), TG_U32), tg_cast(T("[0, 0]"), TG_U32), 2),
     "u32 (2) [3262115082, 2898608262]");

  TgRandomState before = tg_random_state(ctx);
  TgTensor *first = tg_rand(ctx, TG_SHAPE(2));
  tg_random_resume(ctx, before);
  is(tg_all(tg_eq(first, tg_rand(ctx, TG_SHAPE(2)))), "bool () 1");

  tg_set_training(ctx, true);
  is(tg_dropout(T("[1.0, 1, 1, 1]"), 0.5), "f32 (4) [0, 0, 0, 2]");
  assert_true(tg_training(ctx));
  tg_set_training(ctx, false);
}

static void movement(void **state) {
  (void)state;
  is(tg_reshape(T("[1, 2, 3, 4]"), TG_SHAPE(2, -1)), "i32 (2, 2) [[1, 2], [3, 4]]");
  is(tg_permute(T("[[1, 2, 3], [4, 5, 6]]"), TG_SHAPE(1, 0)), "i32 (3, 2) [[1, 4], [2, 5], [3, 6]]");
  is(tg_expand(T("[[1], [2]]"), TG_SHAPE(2, 3)), "i32 (2, 3) [[1, 1, 1], [2, 2, 2]]");
  is(tg_broadcast_to(T("[1, 2]"), TG_SHAPE(2, 2)), "i32 (2, 2) [[1, 2], [1, 2]]");
  is(tg_pad(T("[1, 2]"), (int64_t[]){1}, (int64_t[]){2}), "i32 (5) [0, 1, 2, 0, 0]");
  is(tg_pad_mode(T("[1, 2, 3]"), (int64_t[]){2}, (int64_t[]){1}, TG_PAD_REFLECT),
     "i32 (6) [3, 2, 1, 2, 3, 2]");
  is(tg_pad_value(T("[1, 2]"), (int64_t[]){0}, (int64_t[]){2}, 9), "i32 (4) [1, 2, 9, 9]");
  is(tg_pad_to(T("[1, 2]"), TG_SHAPE(4), 0), "i32 (4) [1, 2, 0, 0]");
  is(tg_shrink_to(T("[[1, 2], [3, 4]]"), TG_SHAPE(-1, 1)), "i32 (2, 1) [[1], [3]]");
  is(tg_shrink(T("[0, 1, 2, 3]"), (int64_t[]){1}, (int64_t[]){3}), "i32 (2) [1, 2]");
  is(tg_flip(T("[[1, 2], [3, 4]]"), TG_SHAPE(1)), "i32 (2, 2) [[2, 1], [4, 3]]");
  is(tg_transpose(T("[[1, 2], [3, 4]]"), 0, 1), "i32 (2, 2) [[1, 3], [2, 4]]");
  is(tg_squeeze(T("[[1], [2]]"), 1), "i32 (2) [1, 2]");
  is(tg_squeeze_all(T("[[[1], [2]]]")), "i32 (2) [1, 2]");
  is(tg_unflatten(T("[1, 2, 3, 4]"), 0, TG_SHAPE(2, -1)), "i32 (2, 2) [[1, 2], [3, 4]]");
  is(tg_unsqueeze(T("[1, 2]"), 0), "i32 (1, 2) [[1, 2]]");
  is(tg_flatten(T("[[1, 2], [3, 4]]"), 0, -1), "i32 (4) [1, 2, 3, 4]");
  is(tg_slice(T("[0, 1, 2, 3, 4]"), 0, 1, -1), "i32 (3) [1, 2, 3]");
  is(tg_select(T("[[1, 2], [3, 4]]"), 0, -1), "i32 (2) [3, 4]");
  is(tg_getitem(T("[[1, 2, 3], [4, 5, 6]]"), TG_IDX(TG_AT(1), TG_SLICE(0, 2))), "i32 (2) [4, 5]");
  is(tg_cat(TG_TENSORS(T("[1, 2]"), T("[3]")), 0), "i32 (3) [1, 2, 3]");
  is(tg_stack(TG_TENSORS(T("[1, 2]"), T("[3, 4]")), 0), "i32 (2, 2) [[1, 2], [3, 4]]");
  is(tg_diag(T("[1, 2]")), "i32 (2, 2) [[1, 0], [0, 2]]");
  is(tg_diagonal(T("[[1, 2], [3, 4]]"), 0, 0, 1), "i32 (2) [1, 4]");
  is(tg_roll(T("[1, 2, 3]"), 1, (int64_t[]){1}, (int64_t[]){0}), "i32 (3) [3, 1, 2]");
  is(tg_repeat_interleave(T("[1, 2]"), 2, 0), "i32 (4) [1, 1, 2, 2]");
  is(tg_unfold(T("[1, 2, 3, 4]"), 0, 2, 1), "i32 (3, 2) [[1, 2], [2, 3], [3, 4]]");
  is(tg_repeat(T("[1, 2]"), TG_SHAPE(2, 2)), "i32 (2, 4) [[1, 2, 1, 2], [1, 2, 1, 2]]");
  is(tg_rearrange(T("[1, 2, 3, 4]"), "(h w) -> w h", TG_NAMED({"h", 2})), "i32 (2, 2) [[1, 3], [2, 4]]");
  is(tg_tril(T("[[1, 2], [3, 4]]"), 0), "i32 (2, 2) [[1, 0], [3, 4]]");
  is(tg_triu(T("[[1, 2], [3, 4]]"), 0), "i32 (2, 2) [[1, 2], [0, 4]]");

  TgTensor *part[2];
  assert_int_equal(tg_split(T("[1, 2, 3]"), 0, 2, part, 2), 2);
  is(part[1], "i32 (1) [3]");

  TgTensor *head_and_rest[2];
  assert_int_equal(tg_split_sizes(T("[1, 2, 3]"), 0, TG_SHAPE(1, 2), head_and_rest), 2);
  is(head_and_rest[1], "i32 (2) [2, 3]");

  TgTensor *half[2];
  assert_int_equal(tg_chunk(T("[1, 2, 3]"), 0, 2, half, 2), 2);
  is(half[0], "i32 (2) [1, 2]");

  TgTensor *grid[2];
  tg_meshgrid(TG_TENSORS(T("[1, 2]"), T("[5, 6, 7]")), false, grid);
  is(grid[0], "i32 (2, 3) [[1, 1, 1], [2, 2, 2]]");
  is(grid[1], "i32 (2, 3) [[5, 6, 7], [5, 6, 7]]");
}

static void two_tensors(void **state) {
  (void)state;
  is(tg_add(T("[[1], [2]]"), T("[10, 20]")), "i32 (2, 2) [[11, 21], [12, 22]]");
  is(tg_sub(T("[5, 7]"), T("[1, 2]")), "i32 (2) [4, 5]");
  is(tg_mul(T("[2, 3]"), T("[1.5, 2]")), "f32 (2) [3, 6]");
  is(tg_div(T("[1, 7]"), T("[2, 2]")), "f32 (2) [0.5, 3.5]");
  is(tg_floordiv(T("[7, -7]"), T("[2, 2]")), "i32 (2) [3, -4]");
  is(tg_mod(T("[7, -7]"), T("[3, 3]")), "i32 (2) [1, 2]");
  is(tg_truncdiv(T("[7, -7]"), T("[2, 2]")), "i32 (2) [3, -3]");
  is(tg_fmod(T("[7.5, -7.5]"), T("[2.0, 2.0]")), "f32 (2) [1.5, -1.5]");
  is(tg_pow(T("[2, 3]"), T("[10, 2]")), "i32 (2) [1024, 9]");
  is(tg_maximum(T("[1, 5]"), T("[3, 2]")), "i32 (2) [3, 5]");
  is(tg_minimum(T("[1, 5]"), T("[3, 2]")), "i32 (2) [1, 2]");
  is(tg_lt(T("[1, 2, 3]"), T("[2, 2, 2]")), "bool (3) [1, 0, 0]");
  is(tg_gt(T("[1, 2, 3]"), T("[2, 2, 2]")), "bool (3) [0, 0, 1]");
  is(tg_le(T("[1, 2, 3]"), T("[2, 2, 2]")), "bool (3) [1, 1, 0]");
  is(tg_ge(T("[1, 2, 3]"), T("[2, 2, 2]")), "bool (3) [0, 1, 1]");
  is(tg_eq(T("[1, 2, nan]"), T("[1, 3, nan]")), "bool (3) [1, 0, 0]");
  is(tg_ne(T("[1, 2, nan]"), T("[1, 3, nan]")), "bool (3) [0, 1, 1]");
  is(tg_bitand(T("[6, 5]"), T("[3, 4]")), "i32 (2) [2, 4]");
  is(tg_bitor(T("[6, 5]"), T("[3, 4]")), "i32 (2) [7, 5]");
  is(tg_bitxor(T("[6, 5]"), T("[3, 4]")), "i32 (2) [5, 1]");
  is(tg_shl(T("[1, 3]"), T("[4, 1]")), "i32 (2) [16, 6]");
  is(tg_shr(T("[16, 7]"), T("[2, 1]")), "i32 (2) [4, 3]");
  is(tg_logaddexp(T("[0.0, 1000]"), T("[0.0, 1000]")), "f32 (2) [0.6931, 1001]");
  is(tg_copysign(T("[1.0, -2]"), T("[-0.0, 5]")), "f32 (2) [-1, 2]");
  is(tg_atan2(T("[1.0, 0]"), T("[1.0, -1]")), "f32 (2) [0.7854, 3.142]");
  is(tg_lerp(T("[0.0, 10]"), T("[1.0, 20]"), T("[0.5, 0.1]")), "f32 (2) [0.5, 11]");
  is(tg_isclose(T("[1.0, 2]"), T("[1.000001, 2.1]")), "bool (2) [1, 0]");
  is(tg_allclose(T("[1.0, 2]"), T("[1.0, 2.1]"), .atol = 0.2), "bool () 1");
  is(tg_threefry(tg_cast(T("[0]"), TG_U64), tg_cast(T("[1]"), TG_U64)), "u64 (1) [1.087e+19]");
  is(tg_usum(TG_TENSORS(T("[1, 2]"), T("[3, 4]"), T("[5, 6]"))), "i32 (2) [9, 12]");
  is(tg_uprod(TG_TENSORS(T("[1, 2]"), T("[3, 4]"), T("[5, 6]"))), "i32 (2) [15, 48]");
  is(tg_where(T("[true, false]"), T("[1, 1]"), T("[2.5, 2.5]")), "f32 (2) [1, 2.5]");
  is(tg_alu("MAX", TG_TENSORS(T("[1.0, 5]"), T("[3.0, 2]"))), "f32 (2) [3, 5]");
}

static void a_scalar(void **state) {
  (void)state;
  is(tg_add_scalar(T("[1, 2]"), 0.5), "f32 (2) [1.5, 2.5]");
  is(tg_sub_scalar(T("[1, 2]"), 1), "i32 (2) [0, 1]");
  is(tg_rsub_scalar(T("[1, 2]"), 10), "i32 (2) [9, 8]");
  is(tg_mul_scalar(T("[1, 2]"), 3), "i32 (2) [3, 6]");
  is(tg_div_scalar(T("[1, 2]"), 2), "f32 (2) [0.5, 1]");
  is(tg_rdiv_scalar(T("[1.0, 2]"), 1), "f32 (2) [1, 0.5]");
  is(tg_pow_scalar(T("[1, 2, 3]"), 2), "i32 (3) [1, 4, 9]");
  is(tg_rpow_scalar(T("[1, 2, 3]"), 2), "i32 (3) [2, 4, 8]");
  is(tg_maximum_scalar(T("[1, 5]"), 3), "i32 (2) [3, 5]");
  is(tg_minimum_scalar(T("[1, 5]"), 3), "i32 (2) [1, 3]");
  is(tg_lt_scalar(T("[1, 2, 3]"), 2), "bool (3) [1, 0, 0]");
  is(tg_gt_scalar(T("[1, 2, 3]"), 2), "bool (3) [0, 0, 1]");
  is(tg_le_scalar(T("[1, 2, 3]"), 2), "bool (3) [1, 1, 0]");
  is(tg_ge_scalar(T("[1, 2, 3]"), 2), "bool (3) [0, 1, 1]");
  is(tg_eq_scalar(T("[1, 2, 3]"), 2), "bool (3) [0, 1, 0]");
  is(tg_ne_scalar(T("[1, 2, 3]"), 2), "bool (3) [1, 0, 1]");
  is(tg_floordiv_scalar(T("[7, -7]"), 2), "i32 (2) [3, -4]");
  is(tg_mod_scalar(T("[7, -7]"), 3), "i32 (2) [1, 2]");
  is(tg_fmod_scalar(T("[7.5, -7.5]"), 2), "f32 (2) [1.5, -1.5]");
  is(tg_bitand_scalar(T("[6, 5]"), 3), "i32 (2) [2, 1]");
  is(tg_bitor_scalar(T("[6, 5]"), 3), "i32 (2) [7, 7]");
  is(tg_bitxor_scalar(T("[6, 5]"), 3), "i32 (2) [5, 6]");
  is(tg_shl_scalar(T("[1, 3]"), 4), "i32 (2) [16, 48]");
  is(tg_shr_scalar(T("[16, 7]"), 2), "i32 (2) [4, 1]");
  is(tg_masked_fill(T("[1, 2, 3]"), T("[true, false, true]"), 0), "i32 (3) [0, 2, 0]");
  is(tg_clamp(T("[-5, 0.5, 5]"), 0, 1), "f32 (3) [0, 0.5, 1]");
  is(tg_clamp_tensor(T("[-5, 0.5, 5]"), T("[0.0, 0, 0]"), NULL), "f32 (3) [0, 0.5, 5]");
}

static void one_tensor(void **state) {
  (void)state;
  is(tg_cast(T("[1.7, -1.7, nan]"), TG_I32), "i32 (3) [1, -1, 0]");
  is(tg_float(T("[1, 2]")), "f32 (2) [1, 2]");
  is(tg_double(T("[1, 2]")), "f64 (2) [1, 2]");
  is(tg_half(T("[65504.0, 1e6]")), "f16 (2) [65504, inf]");
  is(tg_bfloat16(T("[1.01]")), "bf16 (1) [1.008]");
  is(tg_int(T("[1.7, -1.7]")), "i32 (2) [1, -1]");
  is(tg_long(T("[1.7, 3e9]")), "i64 (2) [1, 3000000000]");
  is(tg_short(T("[1.7, 70000]")), "i16 (2) [1, 32767]");
  is(tg_bool(T("[0.0, 0.5, nan]")), "bool (3) [0, 1, 1]");
  is(tg_bitcast(T("[1.0, -0.0]"), TG_U32), "u32 (2) [1065353216, 2147483648]");
  is(tg_neg(T("[1, -2]")), "i32 (2) [-1, 2]");
  is(tg_logical_not(T("[0, 3]")), "bool (2) [1, 0]");
  is(tg_exp(T("[0, 1]")), "f32 (2) [1, 2.718]");
  is(tg_exp2(T("[0, 3]")), "f32 (2) [1, 8]");
  is(tg_log(T("[1, 10]")), "f32 (2) [0, 2.303]");
  is(tg_log2(T("[1, 8]")), "f32 (2) [0, 3]");
  is(tg_log10(T("[1, 100]")), "f32 (2) [0, 2]");
  is(tg_sin(T("[0.0, 1]")), "f32 (2) [0, 0.8415]");
  is(tg_cos(T("[0.0, 1]")), "f32 (2) [1, 0.5403]");
  is(tg_tan(T("[0.0, 1]")), "f32 (2) [0, 1.557]");
  is(tg_sinh(T("[0.0, 1]")), "f32 (2) [0, 1.175]");
  is(tg_cosh(T("[0.0, 1]")), "f32 (2) [1, 1.543]");
  is(tg_asin(T("[0.0, 1, 2]")), "f32 (3) [0, 1.571, nan]");
  is(tg_acos(T("[0.0, 1, 2]")), "f32 (3) [1.571, 0, nan]");
  is(tg_atan(T("[0.0, 1, inf]")), "f32 (3) [0, 0.7854, 1.571]");
  is(tg_asinh(T("[0.0, 1]")), "f32 (2) [0, 0.8814]");
  is(tg_acosh(T("[1.0, 2, 0]")), "f32 (3) [0, 1.317, nan]");
  is(tg_atanh(T("[0.0, 0.5, 1]")), "f32 (3) [0, 0.5493, inf]");
  is(tg_erf(T("[0.0, 1]")), "f32 (2) [0, 0.8427]");
  is(tg_sqrt(T("[4, 2, -1]")), "f32 (3) [2, 1.414, nan]");
  is(tg_rsqrt(T("[4, 2]")), "f32 (2) [0.5, 0.7071]");
  is(tg_reciprocal(T("[4, 0]")), "f32 (2) [0.25, inf]");
  is(tg_square(T("[3, -2]")), "i32 (2) [9, 4]");
  is(tg_abs(T("[3, -2]")), "i32 (2) [3, 2]");
  is(tg_sign(T("[3.5, -2, 0, nan]")), "f32 (4) [1, -1, 0, nan]");
  is(tg_trunc(T("[1.7, -1.7]")), "f32 (2) [1, -1]");
  is(tg_floor(T("[1.7, -1.7]")), "f32 (2) [1, -2]");
  is(tg_ceil(T("[1.7, -1.7]")), "f32 (2) [2, -1]");
  is(tg_round(T("[0.5, 1.5, 2.5]")), "f32 (3) [0, 2, 2]");
  is(tg_isnan(T("[1.0, nan, inf]")), "bool (3) [0, 1, 0]");
  is(tg_isinf(T("[1.0, nan, -inf]")), "bool (3) [0, 0, 1]");
  is(tg_isposinf(T("[inf, -inf]")), "bool (2) [1, 0]");
  is(tg_isneginf(T("[inf, -inf]")), "bool (2) [0, 1]");
  is(tg_isfinite(T("[1.0, nan, inf]")), "bool (3) [1, 0, 0]");
  is(tg_signbit(T("[1.0, -0.0]")), "bool (2) [0, 1]");
  is(tg_bitnot(T("[0, 5]")), "i32 (2) [-1, -6]");
  is(tg_relu(T("[-1.0, 2]")), "f32 (2) [0, 2]");
  is(tg_leaky_relu(T("[-1.0, 2]"), 0.1), "f32 (2) [-0.1, 2]");
  is(tg_elu(T("[-1.0, 2]"), 1), "f32 (2) [-0.6321, 2]");
  is(tg_sigmoid(T("[0.0, 2]")), "f32 (2) [0.5, 0.8808]");
  is(tg_tanh(T("[0.0, 2]")), "f32 (2) [0, 0.964]");
  is(tg_gelu(T("[-1.0, 2]")), "f32 (2) [-0.1588, 1.955]");
  is(tg_gelu_erf(T("[-1.0, 2]")), "f32 (2) [-0.1587, 1.954]");
  is(tg_quick_gelu(T("[-1.0, 2]")), "f32 (2) [-0.1542, 1.936]");
  is(tg_silu(T("[-1.0, 2]")), "f32 (2) [-0.2689, 1.762]");
  is(tg_softplus(T("[0.0, 100]")), "f32 (2) [0.6931, 100]");
  is(tg_softplus_beta(T("[0.0, 1]"), 2), "f32 (2) [0.3466, 1.063]");
  is(tg_relu6(T("[-1.0, 3, 9]")), "f32 (3) [0, 3, 6]");
  is(tg_celu(T("[-1.0, 2]"), 2), "f32 (2) [-0.7869, 2]");
  is(tg_selu(T("[-1.0, 2]")), "f32 (2) [-1.111, 2.101]");
  is(tg_logsigmoid(T("[0.0, 2]")), "f32 (2) [-0.6931, -0.1269]");
  is(tg_hardsigmoid(T("[-4.0, 0, 4]")), "f32 (3) [0, 0.5, 1]");
  is(tg_hardswish(T("[-4.0, 1, 4]")), "f32 (3) [0, 0.6667, 4]");
  is(tg_hardtanh(T("[-4.0, 0.5, 4]"), -1, 1), "f32 (3) [-1, 0.5, 1]");
  is(tg_softsign(T("[-1.0, 3]")), "f32 (2) [-0.5, 0.75]");
  is(tg_mish(T("[-1.0, 2]")), "f32 (2) [-0.3034, 1.944]");
}

static void reductions(void **state) {
  (void)state;
  is(tg_sum(T("[[1, 2], [3, 4]]")), "i32 () 10");
  is(tg_sum(T("[[1, 2], [3, 4]]"), .axis = TG_AXES(1), .keepdim = true), "i32 (2, 1) [[3], [7]]");
  is(tg_prod(T("[1, 2, 3, 4]")), "i32 () 24");
  is(tg_max(T("[[1, 5], [3, 2]]"), .axis = TG_AXES(0)), "i32 (2) [3, 5]");
  is(tg_min(T("[[1, 5], [3, 2]]"), .axis = TG_AXES(0)), "i32 (2) [1, 2]");
  is(tg_mean(T("[1, 2, 4]")), "f32 () 2.333");
  is(tg_any(T("[false, true]")), "bool () 1");
  is(tg_all(T("[false, true]")), "bool () 0");
  is(tg_argmax(T("[[1, 5], [3, 2]]"), .axis = TG_AXES(1)), "i32 (2) [1, 0]");
  is(tg_argmin(T("[[1, 5], [3, 2]]")), "i32 () 0");
  is(tg_var(T("[1.0, 2, 3, 4]")), "f32 () 1.667");
  is(tg_std(T("[1.0, 2, 3, 4]"), .correction = 0), "f32 () 1.118");
  is(tg_normalize(T("[[3.0, 4]]")), "f32 (1, 2) [[0.6, 0.8]]");
  is(tg_softmax(T("[0.0, 1, 2]")), "f32 (3) [0.09003, 0.2447, 0.6652]");
  is(tg_softmin(T("[0.0, 1, 2]")), "f32 (3) [0.6652, 0.2447, 0.09003]");
  is(tg_log_softmax(T("[0.0, 1, 2]")), "f32 (3) [-2.408, -1.408, -0.4076]");
  is(tg_logsumexp(T("[0.0, 1, 2]")), "f32 () 2.408");
  is(tg_cumsum(T("[1, 2, 3]"), 0), "i32 (3) [1, 3, 6]");
  is(tg_cumprod(T("[1, 2, 3]"), 0), "i32 (3) [1, 2, 6]");
  is(tg_logcumsumexp(T("[0.0, 0, 0]"), 0), "f32 (3) [0, 0.6931, 1.099]");
  is(tg_argsort(T("[3, 1, 2]")), "i32 (3) [1, 2, 0]");

  TgTensor *mean;
  is(tg_var_mean(T("[1.0, 2, 3]"), &mean), "f32 () 1");
  is(mean, "f32 () 2");

  TgTensor *middle;
  is(tg_std_mean(T("[1.0, 2, 3]"), &middle), "f32 () 1");
  is(middle, "f32 () 2");

  TgTensor *where;
  is(tg_cummax(T("[1, 3, 2]"), 0, &where), "i32 (3) [1, 3, 3]");
  is(where, "i32 (3) [0, 1, 1]");

  TgTensor *least_at;
  is(tg_cummin(T("[2, 1, 3]"), 0, &least_at), "i32 (3) [2, 1, 1]");
  is(least_at, "i32 (3) [0, 1, 1]");

  TgTensor *from;
  is(tg_sort(T("[3, 1, 2]"), &from, .descending = true), "i32 (3) [3, 2, 1]");
  is(from, "i32 (3) [0, 2, 1]");

  TgTensor *places;
  is(tg_topk(T("[3, 1, 9, 2]"), 2, &places), "i32 (2) [9, 3]");
  is(places, "i32 (2) [2, 0]");
}

static void products(void **state) {
  (void)state;
  is(tg_matmul(T("[[1.0, 2], [3, 4]]"), T("[[1.0, 0], [0, 2]]")), "f32 (2, 2) [[1, 4], [3, 8]]");
  is(tg_dot(T("[1.0, 2]"), T("[3.0, 4]")), "f32 () 11");
  is(tg_einsum("ij,jk->ik", TG_TENSORS(T("[[1, 2]]"), T("[[3], [4]]"))), "i32 (1, 1) [[11]]");
  is(tg_linear(T("[[1.0, 2]]"), T("[[1.0, 1], [0, 1], [2, 0]]"), T("[0.5, 0, 0]")),
     "f32 (1, 3) [[3.5, 2, 2]]");
  is(tg_conv2d(tg_ones(ctx, TG_SHAPE(1, 1, 3, 3)), tg_ones(ctx, TG_SHAPE(1, 1, 2, 2))),
     "f32 (1, 1, 2, 2) [[[[4, 4], [4, 4]]]]");
  is(tg_conv2d(tg_ones(ctx, TG_SHAPE(1, 1, 4)), tg_ones(ctx, TG_SHAPE(1, 1, 3)), .padding = TG_SIZES(1)),
     "f32 (1, 1, 4) [[[2, 3, 3, 2]]]");
  is(tg_conv_transpose2d(tg_ones(ctx, TG_SHAPE(1, 1, 2)), tg_ones(ctx, TG_SHAPE(1, 1, 2)),
                         .stride = TG_SIZES(2)),
     "f32 (1, 1, 4) [[[1, 1, 1, 1]]]");
  is(tg_max_pool2d(T("[[[1, 2, 3, 4], [5, 6, 7, 8]]]")), "i32 (1, 1, 2) [[[6, 8]]]");
  is(tg_avg_pool2d(T("[[[1.0, 2, 3, 4], [5, 6, 7, 8]]]")), "f32 (1, 1, 2) [[[3.5, 5.5]]]");
  is(tg_interpolate(T("[[0.0, 1]]"), TG_SHAPE(4)), "f32 (1, 4) [[0, 0.25, 0.75, 1]]");
  is(tg_slice(tg_keccak(tg_from_bytes(ctx, "abc", 3, TG_U8), "sha3_256"), 0, 0, 4),
     "u8 (4) [58, 152, 93, 167]");
  is(tg_hash(tg_zeros(ctx, TG_SHAPE(4), .dtype = TG_U8)),
     "u8 (16) [218, 186, 226, 108, 145, 44, 155, 240, 101, 203, 210, 175, 122, 89, 84, 29]");

  TgTensor *a = T("[[2.0, 0], [0, 3]]"), *q, *r;
  tg_qr(a, &q, &r);
  is(tg_allclose(tg_matmul(q, r), a, .atol = 1e-5), "bool () 1");

  TgTensor *u, *s, *vt;
  tg_svd(T("[[2.0, 0], [0, 3]]"), &u, &s, &vt);
  is(s, "f32 (2) [3, 2]");

  const double quintic[] = {3.4445, -4.775, 2.0315};
  TgTensor *near = tg_newton_schulz(T("[[2.0, 0], [0, 3]]"), 5, quintic, 0);
  is(tg_lt_scalar(tg_max(tg_abs(tg_sub(near, tg_eye(ctx, 2)))), 0.4), "bool () 1");

  TgTensor *at;
  TgTensor *pooled = tg_max_pool2d(T("[[1.0, 2], [4, 3]]"), .indices = &at);
  is(tg_max_unpool2d(pooled, at), "f32 (2, 2) [[0, 0], [4, 0]]");

  TgTensor *(*layers[])(TgTensor *) = {tg_relu, tg_square};
  is(tg_sequential(T("[-2.0, 3]"), layers, 2), "f32 (2) [0, 9]");
}

static void losses(void **state) {
  (void)state;
  is(tg_cross_entropy(T("[[2.0, 0, 0]]"), T("[[1.0, 0, 0]]")), "f32 () 0.2395");
  is(tg_sparse_cross_entropy(T("[[2.0, 0, 0]]"), T("[0]")), "f32 () 0.2395");
  is(tg_nll(tg_log_softmax(T("[[2.0, 0, 0]]")), T("[0]")), "f32 () 0.2395");
  is(tg_mse(T("[1.0, 2]"), T("[0.0, 0]"), .reduction = TG_SUM), "f32 () 5");
  is(tg_binary_cross_entropy(T("[0.9, 0.2]"), T("[1.0, 0]")), "f32 () 0.1643");
  is(tg_binary_cross_entropy_logits(T("[2.0, -1]"), T("[1.0, 0]")), "f32 () 0.2201");
}

static void network_functions(void **state) {
  (void)state;
  is(tg_one_hot(T("[1, 0]"), 3), "i32 (2, 3) [[0, 1, 0], [1, 0, 0]]");
  is(tg_gather(T("[[1, 2], [3, 4]]"), 1, T("[[1], [0]]")), "i32 (2, 1) [[2], [3]]");
  is(tg_take(T("[[1, 2], [3, 4]]"), T("[1, 1]")), "i32 (2, 2) [[3, 4], [3, 4]]");
  is(tg_embedding(T("[[0.1, 0.2], [0.3, 0.4]]"), T("[1, 0]")), "f32 (2, 2) [[0.3, 0.4], [0.1, 0.2]]");
  is(tg_scatter(T("[0, 0, 0]"), 0, T("[2, 0]"), T("[7, 8]")), "i32 (3) [8, 0, 7]");
  is(tg_scatter_reduce(T("[1, 1, 1]"), 0, T("[2, 2]"), T("[7, 8]"), TG_SCATTER_ADD), "i32 (3) [1, 1, 16]");
  is(tg_masked_select(T("[1, 2, 3]"), T("[true, false, true]")), "i32 (2) [1, 3]");
  is(tg_nonzero(T("[[0, 5], [6, 0]]")), "i32 (2, 2) [[0, 1], [1, 0]]");
  is(tg_layer_norm(T("[[1.0, 2, 3]]")), "f32 (1, 3) [[-1.225, 0, 1.225]]");
  is(tg_rms_norm(T("[[3.0, 4]]")), "f32 (1, 2) [[0.8485, 1.131]]");
  is(tg_batch_norm(T("[[1.0, 2]]"), T("[1.0, 1]"), T("[1.0, 4]"), .eps = 0), "f32 (1, 2) [[0, 0.5]]");
  is(tg_scaled_dot_product_attention(T("[[1.0, 0]]"), T("[[1.0, 0], [0, 1]]"), T("[[1.0], [2]]")),
     "f32 (1, 1) [[1.33]]");

  TgTensor *mean = tg_clone(tg_zeros(ctx, TG_SHAPE(2)));
  TgTensor *var = tg_clone(tg_ones(ctx, TG_SHAPE(2)));
  is(tg_batch_norm_train(T("[[1.0, 2], [3, 6]]"), mean, var), "f32 (2, 2) [[-1, -1], [1, 1]]");
  is(mean, "f32 (2) [0.2, 0.4]");
}

static TgStatus straight_through(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out,
                                 void *user) {
  (void)y, (void)x, (void)n, (void)user;
  out[0] = g;
  return TG_OK;
}

static void gradients(void **state) {
  (void)state;
  TgTensor *w = tg_requires_grad(T("[1.0, 2, 3]"), true);
  tg_backward(tg_sum(tg_mul(w, w)));
  is(tg_grad(w), "f32 (3) [2, 4, 6]");
  tg_zero_grad(w);
  assert_true(tg_is_parameter(w) && !tg_grad(w));

  TgTensor *x = T("[1.0, 2, 3]"), *dx;
  tg_gradient(tg_sum(tg_exp(x)), &x, 1, &dx);
  is(dx, "f32 (3) [2.718, 7.389, 20.09]");

  TgTensor *v = T("[1.0, 2]"), *dv;
  tg_vjp(tg_square(v), T("[1.0, 10]"), &v, 1, &dv);
  is(dv, "f32 (2) [2, 40]");

  TgTensor *z = T("[1.2, 2.7]"), *dz;
  TgTensor *rounded = tg_custom_gradient(tg_round(z), &z, 1, straight_through, NULL);
  tg_gradient(tg_sum(rounded), &z, 1, &dz);
  is(dz, "f32 (2) [1, 1]");

  TgTensor *p = T("[3.0]"), *dp;
  tg_gradient(tg_sum(tg_mul(p, tg_detach(p))), &p, 1, &dp);
  is(dp, "f32 (1) [3]");

  is(tg_contiguous_backward(T("[1.0, 2]")), "f32 (2) [1, 2]");
}

static void in_place(void **state) {
  (void)state;
  TgTensor *t = tg_clone(T("[1.0, 2, 3]"));
  is(tg_assign(t, T("[4.0]")), "f32 (3) [4, 4, 4]");

  is(tg_add_(tg_clone(T("[1, 2]")), T("[10, 20]")), "i32 (2) [11, 22]");
  is(tg_sub_(tg_clone(T("[1, 2]")), T("[10, 20]")), "i32 (2) [-9, -18]");
  is(tg_mul_(tg_clone(T("[1, 2]")), T("[10, 20]")), "i32 (2) [10, 40]");
  is(tg_div_(tg_clone(T("[1.0, 2]")), T("[10.0, 20]")), "f32 (2) [0.1, 0.1]");
  is(tg_floordiv_(tg_clone(T("[7, 9]")), T("[2, 2]")), "i32 (2) [3, 4]");
  is(tg_pow_(tg_clone(T("[2, 3]")), T("[3, 2]")), "i32 (2) [8, 9]");
  is(tg_bitand_(tg_clone(T("[6, 5]")), T("[3, 4]")), "i32 (2) [2, 4]");
  is(tg_bitor_(tg_clone(T("[6, 5]")), T("[3, 4]")), "i32 (2) [7, 5]");
  is(tg_bitxor_(tg_clone(T("[6, 5]")), T("[3, 4]")), "i32 (2) [5, 1]");
  is(tg_shl_(tg_clone(T("[1, 3]")), T("[4, 1]")), "i32 (2) [16, 6]");
  is(tg_shr_(tg_clone(T("[16, 7]")), T("[2, 1]")), "i32 (2) [4, 3]");
  is(tg_matmul_(tg_clone(T("[[1.0, 2], [3, 4]]")), T("[[0.0, 1], [1, 0]]")), "f32 (2, 2) [[2, 1], [4, 3]]");
  is(tg_contiguous(tg_transpose(T("[[1, 2], [3, 4]]"), 0, 1)), "i32 (2, 2) [[1, 3], [2, 4]]");
  is(tg_index_put(T("[1, 2, 3]"), TG_IDX(TG_AT(0)), T("9")), "i32 (3) [9, 2, 3]");

  TgTensor *rows = tg_clone(T("[[1, 2], [3, 4]]"));
  tg_setitem(rows, TG_IDX(TG_AT(0)), T("[7, 8]"));
  tg_setitem_scalar(rows, TG_IDX(TG_AT(1), TG_AT(0)), 0);
  is(rows, "i32 (2, 2) [[7, 8], [0, 4]]");

  TgTensor *cache = tg_clone(tg_zeros(ctx, TG_SHAPE(3)));
  tg_assign_slice(cache, (int64_t[]){1}, (int64_t[]){2}, T("[5.0]"));
  is(cache, "f32 (3) [0, 5, 0]");

  TgTensor *other = tg_clone(T("[1, 2]"));
  is(tg_replace(other, T("[3.5, 4]")), "f32 (2) [3.5, 4]");

  TgContext *second = tg_open_with(.device = "INTERP");
  TgTensor *there = tg_to_context(T("[1, 2]"), second);
  assert_ptr_equal(tg_context(there), second);
  tg_close(second);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define EXAMPLE(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)
      EXAMPLE(data_in),  EXAMPLE(random_numbers),    EXAMPLE(movement),   EXAMPLE(two_tensors),
      EXAMPLE(a_scalar), EXAMPLE(one_tensor),        EXAMPLE(reductions), EXAMPLE(products),
      EXAMPLE(losses),   EXAMPLE(network_functions), EXAMPLE(gradients),  EXAMPLE(in_place)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
