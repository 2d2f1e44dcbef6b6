/* tg_origin.h: made by tools/origins from tg.h; do not edit. A macro per function that builds a tensor: it
 * calls the function of its name, and tells where (tg_origin). What is no call, a pointer to a function, is
 * the function. */
#ifndef TG_ORIGIN_H
#define TG_ORIGIN_H
/* clang-format off */
#define TG_LINE_(n)  #n
#define TG_LINE2_(n) TG_LINE_(n)
#define TG_PLACE_(op) op " (" __FILE__ ":" TG_LINE2_(__LINE__) ")"
#define TG_NO_HERE_(a, place) (a)
#define TG_CALL1_(op, f, here, x)      tg_origin((f)(here((x), TG_PLACE_(op))), TG_PLACE_(op))
#define TG_CALL2_(op, f, here, x, y) \
  tg_origin((f)(here((x), TG_PLACE_(op)), here((y), TG_PLACE_(op))), TG_PLACE_(op))
#define TG_CALLS_(op, f, ...)          tg_origin((f)(__VA_ARGS__), TG_PLACE_(op))
#define TG_CALL_(op, f, here, x, ...)  tg_origin((f)(here((x), TG_PLACE_(op)), __VA_ARGS__), TG_PLACE_(op))
#define TG_SET1_(op, f, here, T, a, ...) \
  tg_origin(f(here((a), TG_PLACE_(op)), &TG_WITH_(T, __VA_ARGS__)), TG_PLACE_(op))
#define TG_SET2_(op, f, here, T, a, b, ...) \
  tg_origin(f(here((a), TG_PLACE_(op)), (b), &TG_WITH_(T, __VA_ARGS__)), TG_PLACE_(op))
#define TG_SET3_(op, f, here, T, a, b, c, ...) \
  tg_origin(f(here((a), TG_PLACE_(op)), (b), (c), &TG_WITH_(T, __VA_ARGS__)), TG_PLACE_(op))
#define TG_SET4_(op, f, here, T, a, b, c, d, ...) \
  tg_origin(f(here((a), TG_PLACE_(op)), (b), (c), (d), &TG_WITH_(T, __VA_ARGS__)), TG_PLACE_(op))
#define TG_SET5_(op, f, here, T, a, b, c, d, e, ...) \
  tg_origin(f(here((a), TG_PLACE_(op)), (b), (c), (d), (e), &TG_WITH_(T, __VA_ARGS__)), TG_PLACE_(op))
#define tg_to(x, ...) TG_CALL_("to", tg_to, tg_origin_here, x, __VA_ARGS__)
#undef tg_shard
#define tg_shard(...) \
  TG_SET4_("shard", tg_shard_opt, tg_origin_here, TgShardOptions, __VA_ARGS__, .end_ = 0)
#define tg_replicate(x, ...) TG_CALL_("replicate", tg_replicate, tg_origin_here, x, __VA_ARGS__)
#define tg_shard_like(x, y) TG_CALL2_("shard_like", tg_shard_like, tg_origin_here, x, y)
#define tg_gather_to(x, ...) TG_CALL_("gather_to", tg_gather_to, tg_origin_here, x, __VA_ARGS__)
#define tg_shard_part(x, ...) TG_CALL_("shard_part", tg_shard_part, tg_origin_here, x, __VA_ARGS__)
#define tg_alu(...) TG_CALLS_("alu", tg_alu, __VA_ARGS__)
#define tg_from(x, ...) TG_CALL_("from", tg_from, tg_origin_within, x, __VA_ARGS__)
#undef tg_from_text
#define tg_from_text(...) \
  TG_SET2_("from_text", tg_from_text_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_from_bytes(x, ...) TG_CALL_("from_bytes", tg_from_bytes, tg_origin_within, x, __VA_ARGS__)
#define tg_from_f64(x, ...) TG_CALL_("from_f64", tg_from_f64, tg_origin_within, x, __VA_ARGS__)
#define tg_borrow(x, ...) TG_CALL_("borrow", tg_borrow, tg_origin_within, x, __VA_ARGS__)
#undef tg_from_file
#define tg_from_file(...) \
  TG_SET5_("from_file", tg_from_file_opt, tg_origin_within, TgFileOptions, __VA_ARGS__, .end_ = 0)
#define tg_empty(x, ...) TG_CALL_("empty", tg_empty, tg_origin_within, x, __VA_ARGS__)
#undef tg_full
#define tg_full(...) \
  TG_SET4_("full", tg_full_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_full_i64(x, ...) TG_CALL_("full_i64", tg_full_i64, tg_origin_within, x, __VA_ARGS__)
#undef tg_zeros
#define tg_zeros(...) \
  TG_SET3_("zeros", tg_zeros_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_ones
#define tg_ones(...) \
  TG_SET3_("ones", tg_ones_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_full_like(x, ...) TG_CALL_("full_like", tg_full_like, tg_origin_here, x, __VA_ARGS__)
#define tg_zeros_like(x) TG_CALL1_("zeros_like", tg_zeros_like, tg_origin_here, x)
#define tg_ones_like(x) TG_CALL1_("ones_like", tg_ones_like, tg_origin_here, x)
#define tg_scalar_like(x, ...) TG_CALL_("scalar_like", tg_scalar_like, tg_origin_here, x, __VA_ARGS__)
#undef tg_arange
#define tg_arange(...) \
  TG_SET3_("arange", tg_arange_opt, tg_origin_within, TgArangeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_linspace
#define tg_linspace(...) \
  TG_SET4_("linspace", tg_linspace_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_eye
#define tg_eye(...) \
  TG_SET2_("eye", tg_eye_opt, tg_origin_within, TgEyeOptions, __VA_ARGS__, .end_ = 0)
#define tg_random_bits(x, ...) TG_CALL_("random_bits", tg_random_bits, tg_origin_here, x, __VA_ARGS__)
#undef tg_rand
#define tg_rand(...) \
  TG_SET3_("rand", tg_rand_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_randn
#define tg_randn(...) \
  TG_SET3_("randn", tg_randn_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_rand_like
#define tg_rand_like(...) \
  TG_SET1_("rand_like", tg_rand_like_opt, tg_origin_here, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_randn_like
#define tg_randn_like(...) \
  TG_SET1_("randn_like", tg_randn_like_opt, tg_origin_here, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_empty_like
#define tg_empty_like(...) \
  TG_SET1_("empty_like", tg_empty_like_opt, tg_origin_here, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_uniform
#define tg_uniform(...) \
  TG_SET5_("uniform", tg_uniform_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_normal
#define tg_normal(...) \
  TG_SET5_("normal", tg_normal_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_randint(x, ...) TG_CALL_("randint", tg_randint, tg_origin_within, x, __VA_ARGS__)
#undef tg_randperm
#define tg_randperm(...) \
  TG_SET2_("randperm", tg_randperm_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_scaled_uniform
#define tg_scaled_uniform(...) \
  TG_SET3_("scaled_uniform", tg_scaled_uniform_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_kaiming_uniform
#define tg_kaiming_uniform(...) \
  TG_SET3_("kaiming_uniform", tg_kaiming_uniform_opt, tg_origin_within, TgKaimingOptions, __VA_ARGS__, \
    .end_ = 0)
#undef tg_kaiming_normal
#define tg_kaiming_normal(...) \
  TG_SET3_("kaiming_normal", tg_kaiming_normal_opt, tg_origin_within, TgKaimingOptions, __VA_ARGS__, \
    .end_ = 0)
#undef tg_glorot_uniform
#define tg_glorot_uniform(...) \
  TG_SET3_("glorot_uniform", tg_glorot_uniform_opt, tg_origin_within, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_multinomial
#define tg_multinomial(...) \
  TG_SET2_("multinomial", tg_multinomial_opt, tg_origin_here, TgMultinomialOptions, __VA_ARGS__, .end_ = 0)
#define tg_size_tensor(x, ...) TG_CALL_("size_tensor", tg_size_tensor, tg_origin_within, x, __VA_ARGS__)
#define tg_variable_tensor(x) TG_CALL1_("variable_tensor", tg_variable_tensor, TG_NO_HERE_, x)
#define tg_reshape(x, ...) TG_CALL_("reshape", tg_reshape, tg_origin_here, x, __VA_ARGS__)
#define tg_permute(x, ...) TG_CALL_("permute", tg_permute, tg_origin_here, x, __VA_ARGS__)
#define tg_expand(x, ...) TG_CALL_("expand", tg_expand, tg_origin_here, x, __VA_ARGS__)
#define tg_broadcast_to(x, ...) TG_CALL_("broadcast_to", tg_broadcast_to, tg_origin_here, x, __VA_ARGS__)
#define tg_pad(x, ...) TG_CALL_("pad", tg_pad, tg_origin_here, x, __VA_ARGS__)
#define tg_pad_mode(x, ...) TG_CALL_("pad_mode", tg_pad_mode, tg_origin_here, x, __VA_ARGS__)
#define tg_pad_to(x, ...) TG_CALL_("pad_to", tg_pad_to, tg_origin_here, x, __VA_ARGS__)
#define tg_shrink_to(x, ...) TG_CALL_("shrink_to", tg_shrink_to, tg_origin_here, x, __VA_ARGS__)
#define tg_pad_value(x, ...) TG_CALL_("pad_value", tg_pad_value, tg_origin_here, x, __VA_ARGS__)
#define tg_shrink(x, ...) TG_CALL_("shrink", tg_shrink, tg_origin_here, x, __VA_ARGS__)
#define tg_flip(x, ...) TG_CALL_("flip", tg_flip, tg_origin_here, x, __VA_ARGS__)
#define tg_transpose(x, ...) TG_CALL_("transpose", tg_transpose, tg_origin_here, x, __VA_ARGS__)
#define tg_squeeze(x, ...) TG_CALL_("squeeze", tg_squeeze, tg_origin_here, x, __VA_ARGS__)
#define tg_squeeze_all(x) TG_CALL1_("squeeze_all", tg_squeeze_all, tg_origin_here, x)
#define tg_unflatten(x, ...) TG_CALL_("unflatten", tg_unflatten, tg_origin_here, x, __VA_ARGS__)
#define tg_unsqueeze(x, ...) TG_CALL_("unsqueeze", tg_unsqueeze, tg_origin_here, x, __VA_ARGS__)
#define tg_flatten(x, ...) TG_CALL_("flatten", tg_flatten, tg_origin_here, x, __VA_ARGS__)
#define tg_slice(x, ...) TG_CALL_("slice", tg_slice, tg_origin_here, x, __VA_ARGS__)
#define tg_select(x, ...) TG_CALL_("select", tg_select, tg_origin_here, x, __VA_ARGS__)
#define tg_getitem(x, ...) TG_CALL_("getitem", tg_getitem, tg_origin_here, x, __VA_ARGS__)
#define tg_cat(...) TG_CALLS_("cat", tg_cat, __VA_ARGS__)
#define tg_stack(...) TG_CALLS_("stack", tg_stack, __VA_ARGS__)
#define tg_diag(x) TG_CALL1_("diag", tg_diag, tg_origin_here, x)
#define tg_diagonal(x, ...) TG_CALL_("diagonal", tg_diagonal, tg_origin_here, x, __VA_ARGS__)
#define tg_roll(x, ...) TG_CALL_("roll", tg_roll, tg_origin_here, x, __VA_ARGS__)
#define tg_repeat_interleave(x, ...) \
  TG_CALL_("repeat_interleave", tg_repeat_interleave, tg_origin_here, x, __VA_ARGS__)
#define tg_unfold(x, ...) TG_CALL_("unfold", tg_unfold, tg_origin_here, x, __VA_ARGS__)
#define tg_repeat(x, ...) TG_CALL_("repeat", tg_repeat, tg_origin_here, x, __VA_ARGS__)
#define tg_rearrange(x, ...) TG_CALL_("rearrange", tg_rearrange, tg_origin_here, x, __VA_ARGS__)
#define tg_tril(x, ...) TG_CALL_("tril", tg_tril, tg_origin_here, x, __VA_ARGS__)
#define tg_triu(x, ...) TG_CALL_("triu", tg_triu, tg_origin_here, x, __VA_ARGS__)
#define tg_add(x, y) TG_CALL2_("add", tg_add, tg_origin_here, x, y)
#define tg_sub(x, y) TG_CALL2_("sub", tg_sub, tg_origin_here, x, y)
#define tg_mul(x, y) TG_CALL2_("mul", tg_mul, tg_origin_here, x, y)
#define tg_div(x, y) TG_CALL2_("div", tg_div, tg_origin_here, x, y)
#define tg_floordiv(x, y) TG_CALL2_("floordiv", tg_floordiv, tg_origin_here, x, y)
#define tg_mod(x, y) TG_CALL2_("mod", tg_mod, tg_origin_here, x, y)
#define tg_pow(x, y) TG_CALL2_("pow", tg_pow, tg_origin_here, x, y)
#define tg_maximum(x, y) TG_CALL2_("maximum", tg_maximum, tg_origin_here, x, y)
#define tg_minimum(x, y) TG_CALL2_("minimum", tg_minimum, tg_origin_here, x, y)
#define tg_lt(x, y) TG_CALL2_("lt", tg_lt, tg_origin_here, x, y)
#define tg_gt(x, y) TG_CALL2_("gt", tg_gt, tg_origin_here, x, y)
#define tg_le(x, y) TG_CALL2_("le", tg_le, tg_origin_here, x, y)
#define tg_ge(x, y) TG_CALL2_("ge", tg_ge, tg_origin_here, x, y)
#define tg_eq(x, y) TG_CALL2_("eq", tg_eq, tg_origin_here, x, y)
#define tg_ne(x, y) TG_CALL2_("ne", tg_ne, tg_origin_here, x, y)
#define tg_bitand(x, y) TG_CALL2_("bitand", tg_bitand, tg_origin_here, x, y)
#define tg_bitor(x, y) TG_CALL2_("bitor", tg_bitor, tg_origin_here, x, y)
#define tg_bitxor(x, y) TG_CALL2_("bitxor", tg_bitxor, tg_origin_here, x, y)
#define tg_shl(x, y) TG_CALL2_("shl", tg_shl, tg_origin_here, x, y)
#define tg_shr(x, y) TG_CALL2_("shr", tg_shr, tg_origin_here, x, y)
#define tg_truncdiv(x, y) TG_CALL2_("truncdiv", tg_truncdiv, tg_origin_here, x, y)
#define tg_fmod(x, y) TG_CALL2_("fmod", tg_fmod, tg_origin_here, x, y)
#define tg_logaddexp(x, y) TG_CALL2_("logaddexp", tg_logaddexp, tg_origin_here, x, y)
#define tg_copysign(x, y) TG_CALL2_("copysign", tg_copysign, tg_origin_here, x, y)
#define tg_atan2(x, y) TG_CALL2_("atan2", tg_atan2, tg_origin_here, x, y)
#define tg_lerp(x, ...) TG_CALL_("lerp", tg_lerp, tg_origin_here, x, __VA_ARGS__)
#undef tg_isclose
#define tg_isclose(...) \
  TG_SET2_("isclose", tg_isclose_opt, tg_origin_here, TgCloseOptions, __VA_ARGS__, .end_ = 0)
#undef tg_allclose
#define tg_allclose(...) \
  TG_SET2_("allclose", tg_allclose_opt, tg_origin_here, TgCloseOptions, __VA_ARGS__, .end_ = 0)
#define tg_threefry(x, y) TG_CALL2_("threefry", tg_threefry, tg_origin_here, x, y)
#define tg_dot4(x, y) TG_CALL2_("dot4", tg_dot4, tg_origin_here, x, y)
#define tg_usum(...) TG_CALLS_("usum", tg_usum, __VA_ARGS__)
#define tg_uprod(...) TG_CALLS_("uprod", tg_uprod, __VA_ARGS__)
#define tg_where(x, ...) TG_CALL_("where", tg_where, tg_origin_here, x, __VA_ARGS__)
#define tg_add_scalar(x, ...) TG_CALL_("add_scalar", tg_add_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_sub_scalar(x, ...) TG_CALL_("sub_scalar", tg_sub_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_rsub_scalar(x, ...) TG_CALL_("rsub_scalar", tg_rsub_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_mul_scalar(x, ...) TG_CALL_("mul_scalar", tg_mul_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_div_scalar(x, ...) TG_CALL_("div_scalar", tg_div_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_rdiv_scalar(x, ...) TG_CALL_("rdiv_scalar", tg_rdiv_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_pow_scalar(x, ...) TG_CALL_("pow_scalar", tg_pow_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_maximum_scalar(x, ...) \
  TG_CALL_("maximum_scalar", tg_maximum_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_minimum_scalar(x, ...) \
  TG_CALL_("minimum_scalar", tg_minimum_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_lt_scalar(x, ...) TG_CALL_("lt_scalar", tg_lt_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_gt_scalar(x, ...) TG_CALL_("gt_scalar", tg_gt_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_le_scalar(x, ...) TG_CALL_("le_scalar", tg_le_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_ge_scalar(x, ...) TG_CALL_("ge_scalar", tg_ge_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_eq_scalar(x, ...) TG_CALL_("eq_scalar", tg_eq_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_ne_scalar(x, ...) TG_CALL_("ne_scalar", tg_ne_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_floordiv_scalar(x, ...) \
  TG_CALL_("floordiv_scalar", tg_floordiv_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_mod_scalar(x, ...) TG_CALL_("mod_scalar", tg_mod_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_fmod_scalar(x, ...) TG_CALL_("fmod_scalar", tg_fmod_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_rpow_scalar(x, ...) TG_CALL_("rpow_scalar", tg_rpow_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_bitand_scalar(x, ...) TG_CALL_("bitand_scalar", tg_bitand_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_bitor_scalar(x, ...) TG_CALL_("bitor_scalar", tg_bitor_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_bitxor_scalar(x, ...) TG_CALL_("bitxor_scalar", tg_bitxor_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_shl_scalar(x, ...) TG_CALL_("shl_scalar", tg_shl_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_shr_scalar(x, ...) TG_CALL_("shr_scalar", tg_shr_scalar, tg_origin_here, x, __VA_ARGS__)
#define tg_masked_fill(x, ...) TG_CALL_("masked_fill", tg_masked_fill, tg_origin_here, x, __VA_ARGS__)
#define tg_clamp(x, ...) TG_CALL_("clamp", tg_clamp, tg_origin_here, x, __VA_ARGS__)
#define tg_clamp_tensor(x, ...) TG_CALL_("clamp_tensor", tg_clamp_tensor, tg_origin_here, x, __VA_ARGS__)
#define tg_cast(x, ...) TG_CALL_("cast", tg_cast, tg_origin_here, x, __VA_ARGS__)
#define tg_float(x) TG_CALL1_("float", tg_float, tg_origin_here, x)
#define tg_double(x) TG_CALL1_("double", tg_double, tg_origin_here, x)
#define tg_half(x) TG_CALL1_("half", tg_half, tg_origin_here, x)
#define tg_bfloat16(x) TG_CALL1_("bfloat16", tg_bfloat16, tg_origin_here, x)
#define tg_int(x) TG_CALL1_("int", tg_int, tg_origin_here, x)
#define tg_long(x) TG_CALL1_("long", tg_long, tg_origin_here, x)
#define tg_short(x) TG_CALL1_("short", tg_short, tg_origin_here, x)
#define tg_bool(x) TG_CALL1_("bool", tg_bool, tg_origin_here, x)
#define tg_bitcast(x, ...) TG_CALL_("bitcast", tg_bitcast, tg_origin_here, x, __VA_ARGS__)
#define tg_neg(x) TG_CALL1_("neg", tg_neg, tg_origin_here, x)
#define tg_logical_not(x) TG_CALL1_("logical_not", tg_logical_not, tg_origin_here, x)
#define tg_exp(x) TG_CALL1_("exp", tg_exp, tg_origin_here, x)
#define tg_exp2(x) TG_CALL1_("exp2", tg_exp2, tg_origin_here, x)
#define tg_log(x) TG_CALL1_("log", tg_log, tg_origin_here, x)
#define tg_log2(x) TG_CALL1_("log2", tg_log2, tg_origin_here, x)
#define tg_sin(x) TG_CALL1_("sin", tg_sin, tg_origin_here, x)
#define tg_cos(x) TG_CALL1_("cos", tg_cos, tg_origin_here, x)
#define tg_tan(x) TG_CALL1_("tan", tg_tan, tg_origin_here, x)
#define tg_log10(x) TG_CALL1_("log10", tg_log10, tg_origin_here, x)
#define tg_sinh(x) TG_CALL1_("sinh", tg_sinh, tg_origin_here, x)
#define tg_cosh(x) TG_CALL1_("cosh", tg_cosh, tg_origin_here, x)
#define tg_asin(x) TG_CALL1_("asin", tg_asin, tg_origin_here, x)
#define tg_acos(x) TG_CALL1_("acos", tg_acos, tg_origin_here, x)
#define tg_atan(x) TG_CALL1_("atan", tg_atan, tg_origin_here, x)
#define tg_asinh(x) TG_CALL1_("asinh", tg_asinh, tg_origin_here, x)
#define tg_acosh(x) TG_CALL1_("acosh", tg_acosh, tg_origin_here, x)
#define tg_atanh(x) TG_CALL1_("atanh", tg_atanh, tg_origin_here, x)
#define tg_erf(x) TG_CALL1_("erf", tg_erf, tg_origin_here, x)
#define tg_sqrt(x) TG_CALL1_("sqrt", tg_sqrt, tg_origin_here, x)
#define tg_rsqrt(x) TG_CALL1_("rsqrt", tg_rsqrt, tg_origin_here, x)
#define tg_reciprocal(x) TG_CALL1_("reciprocal", tg_reciprocal, tg_origin_here, x)
#define tg_square(x) TG_CALL1_("square", tg_square, tg_origin_here, x)
#define tg_abs(x) TG_CALL1_("abs", tg_abs, tg_origin_here, x)
#define tg_sign(x) TG_CALL1_("sign", tg_sign, tg_origin_here, x)
#define tg_trunc(x) TG_CALL1_("trunc", tg_trunc, tg_origin_here, x)
#define tg_floor(x) TG_CALL1_("floor", tg_floor, tg_origin_here, x)
#define tg_ceil(x) TG_CALL1_("ceil", tg_ceil, tg_origin_here, x)
#define tg_round(x) TG_CALL1_("round", tg_round, tg_origin_here, x)
#define tg_isnan(x) TG_CALL1_("isnan", tg_isnan, tg_origin_here, x)
#define tg_isinf(x) TG_CALL1_("isinf", tg_isinf, tg_origin_here, x)
#define tg_isposinf(x) TG_CALL1_("isposinf", tg_isposinf, tg_origin_here, x)
#define tg_isneginf(x) TG_CALL1_("isneginf", tg_isneginf, tg_origin_here, x)
#define tg_isfinite(x) TG_CALL1_("isfinite", tg_isfinite, tg_origin_here, x)
#define tg_signbit(x) TG_CALL1_("signbit", tg_signbit, tg_origin_here, x)
#define tg_bitnot(x) TG_CALL1_("bitnot", tg_bitnot, tg_origin_here, x)
#define tg_relu(x) TG_CALL1_("relu", tg_relu, tg_origin_here, x)
#define tg_leaky_relu(x, ...) TG_CALL_("leaky_relu", tg_leaky_relu, tg_origin_here, x, __VA_ARGS__)
#define tg_elu(x, ...) TG_CALL_("elu", tg_elu, tg_origin_here, x, __VA_ARGS__)
#define tg_sigmoid(x) TG_CALL1_("sigmoid", tg_sigmoid, tg_origin_here, x)
#define tg_tanh(x) TG_CALL1_("tanh", tg_tanh, tg_origin_here, x)
#define tg_gelu(x) TG_CALL1_("gelu", tg_gelu, tg_origin_here, x)
#define tg_silu(x) TG_CALL1_("silu", tg_silu, tg_origin_here, x)
#define tg_softplus(x) TG_CALL1_("softplus", tg_softplus, tg_origin_here, x)
#define tg_softplus_beta(x, ...) TG_CALL_("softplus_beta", tg_softplus_beta, tg_origin_here, x, __VA_ARGS__)
#define tg_gelu_erf(x) TG_CALL1_("gelu_erf", tg_gelu_erf, tg_origin_here, x)
#define tg_quick_gelu(x) TG_CALL1_("quick_gelu", tg_quick_gelu, tg_origin_here, x)
#define tg_relu6(x) TG_CALL1_("relu6", tg_relu6, tg_origin_here, x)
#define tg_celu(x, ...) TG_CALL_("celu", tg_celu, tg_origin_here, x, __VA_ARGS__)
#define tg_selu(x) TG_CALL1_("selu", tg_selu, tg_origin_here, x)
#define tg_logsigmoid(x) TG_CALL1_("logsigmoid", tg_logsigmoid, tg_origin_here, x)
#define tg_hardsigmoid(x) TG_CALL1_("hardsigmoid", tg_hardsigmoid, tg_origin_here, x)
#define tg_hardswish(x) TG_CALL1_("hardswish", tg_hardswish, tg_origin_here, x)
#define tg_hardtanh(x, ...) TG_CALL_("hardtanh", tg_hardtanh, tg_origin_here, x, __VA_ARGS__)
#define tg_softsign(x) TG_CALL1_("softsign", tg_softsign, tg_origin_here, x)
#define tg_mish(x) TG_CALL1_("mish", tg_mish, tg_origin_here, x)
#undef tg_sum
#define tg_sum(...) \
  TG_SET1_("sum", tg_sum_opt, tg_origin_here, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#undef tg_prod
#define tg_prod(...) \
  TG_SET1_("prod", tg_prod_opt, tg_origin_here, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#undef tg_max
#define tg_max(...) \
  TG_SET1_("max", tg_max_opt, tg_origin_here, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#undef tg_min
#define tg_min(...) \
  TG_SET1_("min", tg_min_opt, tg_origin_here, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#undef tg_mean
#define tg_mean(...) \
  TG_SET1_("mean", tg_mean_opt, tg_origin_here, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#undef tg_any
#define tg_any(...) \
  TG_SET1_("any", tg_any_opt, tg_origin_here, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#undef tg_all
#define tg_all(...) \
  TG_SET1_("all", tg_all_opt, tg_origin_here, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#undef tg_argmax
#define tg_argmax(...) \
  TG_SET1_("argmax", tg_argmax_opt, tg_origin_here, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#undef tg_argmin
#define tg_argmin(...) \
  TG_SET1_("argmin", tg_argmin_opt, tg_origin_here, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#undef tg_var
#define tg_var(...) \
  TG_SET1_("var", tg_var_opt, tg_origin_here, TgVarOptions, __VA_ARGS__, .end_ = 0)
#undef tg_std
#define tg_std(...) \
  TG_SET1_("std", tg_std_opt, tg_origin_here, TgVarOptions, __VA_ARGS__, .end_ = 0)
#undef tg_var_mean
#define tg_var_mean(...) \
  TG_SET2_("var_mean", tg_var_mean_opt, tg_origin_here, TgVarOptions, __VA_ARGS__, .end_ = 0)
#undef tg_std_mean
#define tg_std_mean(...) \
  TG_SET2_("std_mean", tg_std_mean_opt, tg_origin_here, TgVarOptions, __VA_ARGS__, .end_ = 0)
#undef tg_normalize
#define tg_normalize(...) \
  TG_SET1_("normalize", tg_normalize_opt, tg_origin_here, TgNormalizeOptions, __VA_ARGS__, .end_ = 0)
#undef tg_softmax
#define tg_softmax(...) \
  TG_SET1_("softmax", tg_softmax_opt, tg_origin_here, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#undef tg_softmin
#define tg_softmin(...) \
  TG_SET1_("softmin", tg_softmin_opt, tg_origin_here, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#undef tg_log_softmax
#define tg_log_softmax(...) \
  TG_SET1_("log_softmax", tg_log_softmax_opt, tg_origin_here, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#undef tg_logsumexp
#define tg_logsumexp(...) \
  TG_SET1_("logsumexp", tg_logsumexp_opt, tg_origin_here, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#define tg_cumsum(x, ...) TG_CALL_("cumsum", tg_cumsum, tg_origin_here, x, __VA_ARGS__)
#define tg_cumprod(x, ...) TG_CALL_("cumprod", tg_cumprod, tg_origin_here, x, __VA_ARGS__)
#define tg_cummax(x, ...) TG_CALL_("cummax", tg_cummax, tg_origin_here, x, __VA_ARGS__)
#define tg_cummin(x, ...) TG_CALL_("cummin", tg_cummin, tg_origin_here, x, __VA_ARGS__)
#define tg_logcumsumexp(x, ...) TG_CALL_("logcumsumexp", tg_logcumsumexp, tg_origin_here, x, __VA_ARGS__)
#undef tg_sort
#define tg_sort(...) \
  TG_SET2_("sort", tg_sort_opt, tg_origin_here, TgSortOptions, __VA_ARGS__, .end_ = 0)
#undef tg_argsort
#define tg_argsort(...) \
  TG_SET1_("argsort", tg_argsort_opt, tg_origin_here, TgSortOptions, __VA_ARGS__, .end_ = 0)
#undef tg_topk
#define tg_topk(...) \
  TG_SET3_("topk", tg_topk_opt, tg_origin_here, TgTopkOptions, __VA_ARGS__, .end_ = 0)
#undef tg_matmul
#define tg_matmul(...) \
  TG_SET2_("matmul", tg_matmul_opt, tg_origin_here, TgMatmulOptions, __VA_ARGS__, .end_ = 0)
#undef tg_dot
#define tg_dot(...) \
  TG_SET2_("dot", tg_dot_opt, tg_origin_here, TgMatmulOptions, __VA_ARGS__, .end_ = 0)
#undef tg_einsum
#define tg_einsum(...) \
  TG_SET3_("einsum", tg_einsum_opt, TG_NO_HERE_, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_linear(x, ...) TG_CALL_("linear", tg_linear, tg_origin_here, x, __VA_ARGS__)
#define tg_newton_schulz(x, ...) TG_CALL_("newton_schulz", tg_newton_schulz, tg_origin_here, x, __VA_ARGS__)
#undef tg_conv2d
#define tg_conv2d(...) \
  TG_SET2_("conv2d", tg_conv2d_opt, tg_origin_here, TgConvOptions, __VA_ARGS__, .end_ = 0)
#undef tg_conv_transpose2d
#define tg_conv_transpose2d(...) \
  TG_SET2_("conv_transpose2d", tg_conv_transpose2d_opt, tg_origin_here, TgConvOptions, __VA_ARGS__, .end_ = 0)
#undef tg_max_pool2d
#define tg_max_pool2d(...) \
  TG_SET1_("max_pool2d", tg_max_pool2d_opt, tg_origin_here, TgPoolOptions, __VA_ARGS__, .end_ = 0)
#undef tg_avg_pool2d
#define tg_avg_pool2d(...) \
  TG_SET1_("avg_pool2d", tg_avg_pool2d_opt, tg_origin_here, TgPoolOptions, __VA_ARGS__, .end_ = 0)
#undef tg_interpolate
#define tg_interpolate(...) \
  TG_SET3_("interpolate", tg_interpolate_opt, tg_origin_here, TgInterpolateOptions, __VA_ARGS__, .end_ = 0)
#undef tg_max_unpool2d
#define tg_max_unpool2d(...) \
  TG_SET2_("max_unpool2d", tg_max_unpool2d_opt, tg_origin_here, TgPoolOptions, __VA_ARGS__, .end_ = 0)
#define tg_keccak(x, ...) TG_CALL_("keccak", tg_keccak, tg_origin_here, x, __VA_ARGS__)
#define tg_hash(x) TG_CALL1_("hash", tg_hash, tg_origin_here, x)
#define tg_sequential(x, ...) TG_CALL_("sequential", tg_sequential, tg_origin_here, x, __VA_ARGS__)
#undef tg_cross_entropy
#define tg_cross_entropy(...) \
  TG_SET2_("cross_entropy", tg_cross_entropy_opt, tg_origin_here, TgLossOptions, __VA_ARGS__, .end_ = 0)
#undef tg_sparse_cross_entropy
#define tg_sparse_cross_entropy(...) \
  TG_SET2_("sparse_cross_entropy", tg_sparse_cross_entropy_opt, tg_origin_here, TgLossOptions, __VA_ARGS__, \
    .end_ = 0)
#undef tg_nll
#define tg_nll(...) \
  TG_SET2_("nll", tg_nll_opt, TG_NO_HERE_, TgLossOptions, __VA_ARGS__, .end_ = 0)
#undef tg_mse
#define tg_mse(...) \
  TG_SET2_("mse", tg_mse_opt, tg_origin_here, TgLossOptions, __VA_ARGS__, .end_ = 0)
#undef tg_binary_cross_entropy
#define tg_binary_cross_entropy(...) \
  TG_SET2_("binary_cross_entropy", tg_binary_cross_entropy_opt, tg_origin_here, TgLossOptions, __VA_ARGS__, \
    .end_ = 0)
#undef tg_binary_cross_entropy_logits
#define tg_binary_cross_entropy_logits(...) \
  TG_SET2_("binary_cross_entropy_logits", tg_binary_cross_entropy_logits_opt, tg_origin_here, \
    TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_one_hot(x, ...) TG_CALL_("one_hot", tg_one_hot, tg_origin_here, x, __VA_ARGS__)
#define tg_gather(x, ...) TG_CALL_("gather", tg_gather, tg_origin_here, x, __VA_ARGS__)
#define tg_take(x, y) TG_CALL2_("take", tg_take, tg_origin_here, x, y)
#define tg_embedding(x, y) TG_CALL2_("embedding", tg_embedding, tg_origin_here, x, y)
#undef tg_scatter
#define tg_scatter(...) \
  TG_SET4_("scatter", tg_scatter_opt, tg_origin_here, TgScatterOptions, __VA_ARGS__, .end_ = 0)
#undef tg_scatter_reduce
#define tg_scatter_reduce(...) \
  TG_SET5_("scatter_reduce", tg_scatter_reduce_opt, tg_origin_here, TgScatterOptions, __VA_ARGS__, .end_ = 0)
#undef tg_masked_select
#define tg_masked_select(...) \
  TG_SET2_("masked_select", tg_masked_select_opt, tg_origin_here, TgSelectOptions, __VA_ARGS__, .end_ = 0)
#undef tg_nonzero
#define tg_nonzero(...) \
  TG_SET1_("nonzero", tg_nonzero_opt, tg_origin_here, TgSelectOptions, __VA_ARGS__, .end_ = 0)
#undef tg_layer_norm
#define tg_layer_norm(...) \
  TG_SET1_("layer_norm", tg_layer_norm_opt, tg_origin_here, TgNormOptions, __VA_ARGS__, .end_ = 0)
#undef tg_rms_norm
#define tg_rms_norm(...) \
  TG_SET1_("rms_norm", tg_rms_norm_opt, tg_origin_here, TgNormOptions, __VA_ARGS__, .end_ = 0)
#undef tg_batch_norm
#define tg_batch_norm(...) \
  TG_SET3_("batch_norm", tg_batch_norm_opt, tg_origin_here, TgNormOptions, __VA_ARGS__, .end_ = 0)
#undef tg_batch_norm_train
#define tg_batch_norm_train(...) \
  TG_SET3_("batch_norm_train", tg_batch_norm_train_opt, tg_origin_here, TgNormOptions, __VA_ARGS__, .end_ = 0)
#define tg_dropout(x, ...) TG_CALL_("dropout", tg_dropout, tg_origin_here, x, __VA_ARGS__)
#undef tg_scaled_dot_product_attention
#define tg_scaled_dot_product_attention(...) \
  TG_SET3_("scaled_dot_product_attention", tg_scaled_dot_product_attention_opt, tg_origin_here, \
    TgAttentionOptions, __VA_ARGS__, .end_ = 0)
#define tg_detach(x) TG_CALL1_("detach", tg_detach, tg_origin_here, x)
#define tg_custom_gradient(x, ...) \
  TG_CALL_("custom_gradient", tg_custom_gradient, tg_origin_here, x, __VA_ARGS__)
#define tg_contiguous_backward(x) TG_CALL1_("contiguous_backward", tg_contiguous_backward, tg_origin_here, x)
#define tg_assign(x, y) TG_CALL2_("assign", tg_assign, tg_origin_here, x, y)
#define tg_add_(x, y) TG_CALL2_("add_", tg_add_, tg_origin_here, x, y)
#define tg_sub_(x, y) TG_CALL2_("sub_", tg_sub_, tg_origin_here, x, y)
#define tg_mul_(x, y) TG_CALL2_("mul_", tg_mul_, tg_origin_here, x, y)
#define tg_div_(x, y) TG_CALL2_("div_", tg_div_, tg_origin_here, x, y)
#define tg_floordiv_(x, y) TG_CALL2_("floordiv_", tg_floordiv_, tg_origin_here, x, y)
#define tg_pow_(x, y) TG_CALL2_("pow_", tg_pow_, tg_origin_here, x, y)
#define tg_bitand_(x, y) TG_CALL2_("bitand_", tg_bitand_, tg_origin_here, x, y)
#define tg_bitor_(x, y) TG_CALL2_("bitor_", tg_bitor_, tg_origin_here, x, y)
#define tg_bitxor_(x, y) TG_CALL2_("bitxor_", tg_bitxor_, tg_origin_here, x, y)
#define tg_shl_(x, y) TG_CALL2_("shl_", tg_shl_, tg_origin_here, x, y)
#define tg_shr_(x, y) TG_CALL2_("shr_", tg_shr_, tg_origin_here, x, y)
#define tg_matmul_(x, y) TG_CALL2_("matmul_", tg_matmul_, tg_origin_here, x, y)
#define tg_clone(x) TG_CALL1_("clone", tg_clone, tg_origin_here, x)
#define tg_setitem(x, ...) TG_CALL_("setitem", tg_setitem, tg_origin_here, x, __VA_ARGS__)
#define tg_setitem_scalar(x, ...) \
  TG_CALL_("setitem_scalar", tg_setitem_scalar, tg_origin_here, x, __VA_ARGS__)
#undef tg_index_put
#define tg_index_put(...) \
  TG_SET4_("index_put", tg_index_put_opt, tg_origin_here, TgIndexPutOptions, __VA_ARGS__, .end_ = 0)
#define tg_assign_slice(x, ...) TG_CALL_("assign_slice", tg_assign_slice, tg_origin_here, x, __VA_ARGS__)
#define tg_contiguous(x) TG_CALL1_("contiguous", tg_contiguous, tg_origin_here, x)
/* clang-format on */
#endif
