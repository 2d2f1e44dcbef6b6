/* tg_origin.h: made by tools/origins from tg.h; do not edit. A macro per function that builds a tensor: it
 * calls the function of its name, and tells where (tg_origin). What is no call, a pointer to a function, is
 * the function. In C++ a macro keeps its arguments whole, as a call has them, whatever overload they choose,
 * and ::tg_relu(x) is one. */
#ifndef TG_ORIGIN_H
#define TG_ORIGIN_H
/* clang-format off */
#define TG_LINE_(n)  #n
#define TG_LINE2_(n) TG_LINE_(n)
#define TG_PLACE_(op) op " (" __FILE__ ":" TG_LINE2_(__LINE__) ")"
#ifdef __cplusplus
/* What stands behind <<= is the first argument: no operator of it binds less. */
struct TgTensorAt_ {
  const char *place;
  TgTensor *operator<<=(TgTensor *x) const { return tg_origin_here(x, place); }
};

struct TgContextAt_ {
  const char *place;
  TgContext *operator<<=(TgContext *c) const { return tg_origin_within(c, place); }
};

#define TG_TENSOR_CALL_(op, f, ...)  tg_origin((f)(TgTensorAt_{TG_PLACE_(op)} <<= __VA_ARGS__), TG_PLACE_(op))
#define TG_CONTEXT_CALL_(op, f, ...) tg_origin((f)(TgContextAt_{TG_PLACE_(op)} <<= __VA_ARGS__), TG_PLACE_(op))
#define TG_PLAIN_CALL_(op, f, ...)   tg_origin((f)(__VA_ARGS__), TG_PLACE_(op))
#define tg_to(...) TG_TENSOR_CALL_("to", tg_to, __VA_ARGS__)
#define tg_shard(...) TG_TENSOR_CALL_("shard", tg_shard, __VA_ARGS__)
#define tg_replicate(...) TG_TENSOR_CALL_("replicate", tg_replicate, __VA_ARGS__)
#define tg_shard_like(...) TG_TENSOR_CALL_("shard_like", tg_shard_like, __VA_ARGS__)
#define tg_gather_to(...) TG_TENSOR_CALL_("gather_to", tg_gather_to, __VA_ARGS__)
#define tg_shard_part(...) TG_TENSOR_CALL_("shard_part", tg_shard_part, __VA_ARGS__)
#define tg_alu(...) TG_PLAIN_CALL_("alu", tg_alu, __VA_ARGS__)
#define tg_from(...) TG_CONTEXT_CALL_("from", tg_from, __VA_ARGS__)
#define tg_from_text(...) TG_CONTEXT_CALL_("from_text", tg_from_text, __VA_ARGS__)
#define tg_from_bytes(...) TG_CONTEXT_CALL_("from_bytes", tg_from_bytes, __VA_ARGS__)
#define tg_from_f64(...) TG_CONTEXT_CALL_("from_f64", tg_from_f64, __VA_ARGS__)
#define tg_borrow(...) TG_CONTEXT_CALL_("borrow", tg_borrow, __VA_ARGS__)
#define tg_from_file(...) TG_CONTEXT_CALL_("from_file", tg_from_file, __VA_ARGS__)
#define tg_empty(...) TG_CONTEXT_CALL_("empty", tg_empty, __VA_ARGS__)
#define tg_full(...) TG_CONTEXT_CALL_("full", tg_full, __VA_ARGS__)
#define tg_full_i64(...) TG_CONTEXT_CALL_("full_i64", tg_full_i64, __VA_ARGS__)
#define tg_zeros(...) TG_CONTEXT_CALL_("zeros", tg_zeros, __VA_ARGS__)
#define tg_ones(...) TG_CONTEXT_CALL_("ones", tg_ones, __VA_ARGS__)
#define tg_full_like(...) TG_TENSOR_CALL_("full_like", tg_full_like, __VA_ARGS__)
#define tg_zeros_like(...) TG_TENSOR_CALL_("zeros_like", tg_zeros_like, __VA_ARGS__)
#define tg_ones_like(...) TG_TENSOR_CALL_("ones_like", tg_ones_like, __VA_ARGS__)
#define tg_scalar_like(...) TG_TENSOR_CALL_("scalar_like", tg_scalar_like, __VA_ARGS__)
#define tg_arange(...) TG_CONTEXT_CALL_("arange", tg_arange, __VA_ARGS__)
#define tg_linspace(...) TG_CONTEXT_CALL_("linspace", tg_linspace, __VA_ARGS__)
#define tg_eye(...) TG_CONTEXT_CALL_("eye", tg_eye, __VA_ARGS__)
#define tg_random_bits(...) TG_TENSOR_CALL_("random_bits", tg_random_bits, __VA_ARGS__)
#define tg_rand(...) TG_CONTEXT_CALL_("rand", tg_rand, __VA_ARGS__)
#define tg_randn(...) TG_CONTEXT_CALL_("randn", tg_randn, __VA_ARGS__)
#define tg_rand_like(...) TG_TENSOR_CALL_("rand_like", tg_rand_like, __VA_ARGS__)
#define tg_randn_like(...) TG_TENSOR_CALL_("randn_like", tg_randn_like, __VA_ARGS__)
#define tg_empty_like(...) TG_TENSOR_CALL_("empty_like", tg_empty_like, __VA_ARGS__)
#define tg_uniform(...) TG_CONTEXT_CALL_("uniform", tg_uniform, __VA_ARGS__)
#define tg_normal(...) TG_CONTEXT_CALL_("normal", tg_normal, __VA_ARGS__)
#define tg_randint(...) TG_CONTEXT_CALL_("randint", tg_randint, __VA_ARGS__)
#define tg_randperm(...) TG_CONTEXT_CALL_("randperm", tg_randperm, __VA_ARGS__)
#define tg_scaled_uniform(...) TG_CONTEXT_CALL_("scaled_uniform", tg_scaled_uniform, __VA_ARGS__)
#define tg_kaiming_uniform(...) TG_CONTEXT_CALL_("kaiming_uniform", tg_kaiming_uniform, __VA_ARGS__)
#define tg_kaiming_normal(...) TG_CONTEXT_CALL_("kaiming_normal", tg_kaiming_normal, __VA_ARGS__)
#define tg_glorot_uniform(...) TG_CONTEXT_CALL_("glorot_uniform", tg_glorot_uniform, __VA_ARGS__)
#define tg_multinomial(...) TG_TENSOR_CALL_("multinomial", tg_multinomial, __VA_ARGS__)
#define tg_size_tensor(...) TG_CONTEXT_CALL_("size_tensor", tg_size_tensor, __VA_ARGS__)
#define tg_variable_tensor(...) TG_PLAIN_CALL_("variable_tensor", tg_variable_tensor, __VA_ARGS__)
#define tg_reshape(...) TG_TENSOR_CALL_("reshape", tg_reshape, __VA_ARGS__)
#define tg_permute(...) TG_TENSOR_CALL_("permute", tg_permute, __VA_ARGS__)
#define tg_expand(...) TG_TENSOR_CALL_("expand", tg_expand, __VA_ARGS__)
#define tg_broadcast_to(...) TG_TENSOR_CALL_("broadcast_to", tg_broadcast_to, __VA_ARGS__)
#define tg_pad(...) TG_TENSOR_CALL_("pad", tg_pad, __VA_ARGS__)
#define tg_pad_mode(...) TG_TENSOR_CALL_("pad_mode", tg_pad_mode, __VA_ARGS__)
#define tg_pad_to(...) TG_TENSOR_CALL_("pad_to", tg_pad_to, __VA_ARGS__)
#define tg_shrink_to(...) TG_TENSOR_CALL_("shrink_to", tg_shrink_to, __VA_ARGS__)
#define tg_pad_value(...) TG_TENSOR_CALL_("pad_value", tg_pad_value, __VA_ARGS__)
#define tg_shrink(...) TG_TENSOR_CALL_("shrink", tg_shrink, __VA_ARGS__)
#define tg_flip(...) TG_TENSOR_CALL_("flip", tg_flip, __VA_ARGS__)
#define tg_transpose(...) TG_TENSOR_CALL_("transpose", tg_transpose, __VA_ARGS__)
#define tg_squeeze(...) TG_TENSOR_CALL_("squeeze", tg_squeeze, __VA_ARGS__)
#define tg_squeeze_all(...) TG_TENSOR_CALL_("squeeze_all", tg_squeeze_all, __VA_ARGS__)
#define tg_unflatten(...) TG_TENSOR_CALL_("unflatten", tg_unflatten, __VA_ARGS__)
#define tg_unsqueeze(...) TG_TENSOR_CALL_("unsqueeze", tg_unsqueeze, __VA_ARGS__)
#define tg_flatten(...) TG_TENSOR_CALL_("flatten", tg_flatten, __VA_ARGS__)
#define tg_slice(...) TG_TENSOR_CALL_("slice", tg_slice, __VA_ARGS__)
#define tg_select(...) TG_TENSOR_CALL_("select", tg_select, __VA_ARGS__)
#define tg_getitem(...) TG_TENSOR_CALL_("getitem", tg_getitem, __VA_ARGS__)
#define tg_cat(...) TG_PLAIN_CALL_("cat", tg_cat, __VA_ARGS__)
#define tg_stack(...) TG_PLAIN_CALL_("stack", tg_stack, __VA_ARGS__)
#define tg_diag(...) TG_TENSOR_CALL_("diag", tg_diag, __VA_ARGS__)
#define tg_diagonal(...) TG_TENSOR_CALL_("diagonal", tg_diagonal, __VA_ARGS__)
#define tg_roll(...) TG_TENSOR_CALL_("roll", tg_roll, __VA_ARGS__)
#define tg_repeat_interleave(...) TG_TENSOR_CALL_("repeat_interleave", tg_repeat_interleave, __VA_ARGS__)
#define tg_unfold(...) TG_TENSOR_CALL_("unfold", tg_unfold, __VA_ARGS__)
#define tg_repeat(...) TG_TENSOR_CALL_("repeat", tg_repeat, __VA_ARGS__)
#define tg_rearrange(...) TG_TENSOR_CALL_("rearrange", tg_rearrange, __VA_ARGS__)
#define tg_tril(...) TG_TENSOR_CALL_("tril", tg_tril, __VA_ARGS__)
#define tg_triu(...) TG_TENSOR_CALL_("triu", tg_triu, __VA_ARGS__)
#define tg_add(...) TG_TENSOR_CALL_("add", tg_add, __VA_ARGS__)
#define tg_sub(...) TG_TENSOR_CALL_("sub", tg_sub, __VA_ARGS__)
#define tg_mul(...) TG_TENSOR_CALL_("mul", tg_mul, __VA_ARGS__)
#define tg_div(...) TG_TENSOR_CALL_("div", tg_div, __VA_ARGS__)
#define tg_floordiv(...) TG_TENSOR_CALL_("floordiv", tg_floordiv, __VA_ARGS__)
#define tg_mod(...) TG_TENSOR_CALL_("mod", tg_mod, __VA_ARGS__)
#define tg_pow(...) TG_TENSOR_CALL_("pow", tg_pow, __VA_ARGS__)
#define tg_maximum(...) TG_TENSOR_CALL_("maximum", tg_maximum, __VA_ARGS__)
#define tg_minimum(...) TG_TENSOR_CALL_("minimum", tg_minimum, __VA_ARGS__)
#define tg_lt(...) TG_TENSOR_CALL_("lt", tg_lt, __VA_ARGS__)
#define tg_gt(...) TG_TENSOR_CALL_("gt", tg_gt, __VA_ARGS__)
#define tg_le(...) TG_TENSOR_CALL_("le", tg_le, __VA_ARGS__)
#define tg_ge(...) TG_TENSOR_CALL_("ge", tg_ge, __VA_ARGS__)
#define tg_eq(...) TG_TENSOR_CALL_("eq", tg_eq, __VA_ARGS__)
#define tg_ne(...) TG_TENSOR_CALL_("ne", tg_ne, __VA_ARGS__)
#define tg_bitand(...) TG_TENSOR_CALL_("bitand", tg_bitand, __VA_ARGS__)
#define tg_bitor(...) TG_TENSOR_CALL_("bitor", tg_bitor, __VA_ARGS__)
#define tg_bitxor(...) TG_TENSOR_CALL_("bitxor", tg_bitxor, __VA_ARGS__)
#define tg_shl(...) TG_TENSOR_CALL_("shl", tg_shl, __VA_ARGS__)
#define tg_shr(...) TG_TENSOR_CALL_("shr", tg_shr, __VA_ARGS__)
#define tg_truncdiv(...) TG_TENSOR_CALL_("truncdiv", tg_truncdiv, __VA_ARGS__)
#define tg_fmod(...) TG_TENSOR_CALL_("fmod", tg_fmod, __VA_ARGS__)
#define tg_logaddexp(...) TG_TENSOR_CALL_("logaddexp", tg_logaddexp, __VA_ARGS__)
#define tg_copysign(...) TG_TENSOR_CALL_("copysign", tg_copysign, __VA_ARGS__)
#define tg_atan2(...) TG_TENSOR_CALL_("atan2", tg_atan2, __VA_ARGS__)
#define tg_lerp(...) TG_TENSOR_CALL_("lerp", tg_lerp, __VA_ARGS__)
#define tg_isclose(...) TG_TENSOR_CALL_("isclose", tg_isclose, __VA_ARGS__)
#define tg_allclose(...) TG_TENSOR_CALL_("allclose", tg_allclose, __VA_ARGS__)
#define tg_threefry(...) TG_TENSOR_CALL_("threefry", tg_threefry, __VA_ARGS__)
#define tg_dot4(...) TG_TENSOR_CALL_("dot4", tg_dot4, __VA_ARGS__)
#define tg_dot2(...) TG_TENSOR_CALL_("dot2", tg_dot2, __VA_ARGS__)
#define tg_lookup4(...) TG_TENSOR_CALL_("lookup4", tg_lookup4, __VA_ARGS__)
#define tg_usum(...) TG_PLAIN_CALL_("usum", tg_usum, __VA_ARGS__)
#define tg_uprod(...) TG_PLAIN_CALL_("uprod", tg_uprod, __VA_ARGS__)
#define tg_where(...) TG_TENSOR_CALL_("where", tg_where, __VA_ARGS__)
#define tg_add_scalar(...) TG_TENSOR_CALL_("add_scalar", tg_add_scalar, __VA_ARGS__)
#define tg_sub_scalar(...) TG_TENSOR_CALL_("sub_scalar", tg_sub_scalar, __VA_ARGS__)
#define tg_rsub_scalar(...) TG_TENSOR_CALL_("rsub_scalar", tg_rsub_scalar, __VA_ARGS__)
#define tg_mul_scalar(...) TG_TENSOR_CALL_("mul_scalar", tg_mul_scalar, __VA_ARGS__)
#define tg_div_scalar(...) TG_TENSOR_CALL_("div_scalar", tg_div_scalar, __VA_ARGS__)
#define tg_rdiv_scalar(...) TG_TENSOR_CALL_("rdiv_scalar", tg_rdiv_scalar, __VA_ARGS__)
#define tg_pow_scalar(...) TG_TENSOR_CALL_("pow_scalar", tg_pow_scalar, __VA_ARGS__)
#define tg_maximum_scalar(...) TG_TENSOR_CALL_("maximum_scalar", tg_maximum_scalar, __VA_ARGS__)
#define tg_minimum_scalar(...) TG_TENSOR_CALL_("minimum_scalar", tg_minimum_scalar, __VA_ARGS__)
#define tg_lt_scalar(...) TG_TENSOR_CALL_("lt_scalar", tg_lt_scalar, __VA_ARGS__)
#define tg_gt_scalar(...) TG_TENSOR_CALL_("gt_scalar", tg_gt_scalar, __VA_ARGS__)
#define tg_le_scalar(...) TG_TENSOR_CALL_("le_scalar", tg_le_scalar, __VA_ARGS__)
#define tg_ge_scalar(...) TG_TENSOR_CALL_("ge_scalar", tg_ge_scalar, __VA_ARGS__)
#define tg_eq_scalar(...) TG_TENSOR_CALL_("eq_scalar", tg_eq_scalar, __VA_ARGS__)
#define tg_ne_scalar(...) TG_TENSOR_CALL_("ne_scalar", tg_ne_scalar, __VA_ARGS__)
#define tg_floordiv_scalar(...) TG_TENSOR_CALL_("floordiv_scalar", tg_floordiv_scalar, __VA_ARGS__)
#define tg_mod_scalar(...) TG_TENSOR_CALL_("mod_scalar", tg_mod_scalar, __VA_ARGS__)
#define tg_fmod_scalar(...) TG_TENSOR_CALL_("fmod_scalar", tg_fmod_scalar, __VA_ARGS__)
#define tg_rpow_scalar(...) TG_TENSOR_CALL_("rpow_scalar", tg_rpow_scalar, __VA_ARGS__)
#define tg_bitand_scalar(...) TG_TENSOR_CALL_("bitand_scalar", tg_bitand_scalar, __VA_ARGS__)
#define tg_bitor_scalar(...) TG_TENSOR_CALL_("bitor_scalar", tg_bitor_scalar, __VA_ARGS__)
#define tg_bitxor_scalar(...) TG_TENSOR_CALL_("bitxor_scalar", tg_bitxor_scalar, __VA_ARGS__)
#define tg_shl_scalar(...) TG_TENSOR_CALL_("shl_scalar", tg_shl_scalar, __VA_ARGS__)
#define tg_shr_scalar(...) TG_TENSOR_CALL_("shr_scalar", tg_shr_scalar, __VA_ARGS__)
#define tg_masked_fill(...) TG_TENSOR_CALL_("masked_fill", tg_masked_fill, __VA_ARGS__)
#define tg_clamp(...) TG_TENSOR_CALL_("clamp", tg_clamp, __VA_ARGS__)
#define tg_clamp_tensor(...) TG_TENSOR_CALL_("clamp_tensor", tg_clamp_tensor, __VA_ARGS__)
#define tg_cast(...) TG_TENSOR_CALL_("cast", tg_cast, __VA_ARGS__)
#define tg_float(...) TG_TENSOR_CALL_("float", tg_float, __VA_ARGS__)
#define tg_double(...) TG_TENSOR_CALL_("double", tg_double, __VA_ARGS__)
#define tg_half(...) TG_TENSOR_CALL_("half", tg_half, __VA_ARGS__)
#define tg_bfloat16(...) TG_TENSOR_CALL_("bfloat16", tg_bfloat16, __VA_ARGS__)
#define tg_int(...) TG_TENSOR_CALL_("int", tg_int, __VA_ARGS__)
#define tg_long(...) TG_TENSOR_CALL_("long", tg_long, __VA_ARGS__)
#define tg_short(...) TG_TENSOR_CALL_("short", tg_short, __VA_ARGS__)
#define tg_bool(...) TG_TENSOR_CALL_("bool", tg_bool, __VA_ARGS__)
#define tg_bitcast(...) TG_TENSOR_CALL_("bitcast", tg_bitcast, __VA_ARGS__)
#define tg_neg(...) TG_TENSOR_CALL_("neg", tg_neg, __VA_ARGS__)
#define tg_logical_not(...) TG_TENSOR_CALL_("logical_not", tg_logical_not, __VA_ARGS__)
#define tg_exp(...) TG_TENSOR_CALL_("exp", tg_exp, __VA_ARGS__)
#define tg_exp2(...) TG_TENSOR_CALL_("exp2", tg_exp2, __VA_ARGS__)
#define tg_log(...) TG_TENSOR_CALL_("log", tg_log, __VA_ARGS__)
#define tg_log2(...) TG_TENSOR_CALL_("log2", tg_log2, __VA_ARGS__)
#define tg_sin(...) TG_TENSOR_CALL_("sin", tg_sin, __VA_ARGS__)
#define tg_cos(...) TG_TENSOR_CALL_("cos", tg_cos, __VA_ARGS__)
#define tg_tan(...) TG_TENSOR_CALL_("tan", tg_tan, __VA_ARGS__)
#define tg_log10(...) TG_TENSOR_CALL_("log10", tg_log10, __VA_ARGS__)
#define tg_sinh(...) TG_TENSOR_CALL_("sinh", tg_sinh, __VA_ARGS__)
#define tg_cosh(...) TG_TENSOR_CALL_("cosh", tg_cosh, __VA_ARGS__)
#define tg_asin(...) TG_TENSOR_CALL_("asin", tg_asin, __VA_ARGS__)
#define tg_acos(...) TG_TENSOR_CALL_("acos", tg_acos, __VA_ARGS__)
#define tg_atan(...) TG_TENSOR_CALL_("atan", tg_atan, __VA_ARGS__)
#define tg_asinh(...) TG_TENSOR_CALL_("asinh", tg_asinh, __VA_ARGS__)
#define tg_acosh(...) TG_TENSOR_CALL_("acosh", tg_acosh, __VA_ARGS__)
#define tg_atanh(...) TG_TENSOR_CALL_("atanh", tg_atanh, __VA_ARGS__)
#define tg_erf(...) TG_TENSOR_CALL_("erf", tg_erf, __VA_ARGS__)
#define tg_sqrt(...) TG_TENSOR_CALL_("sqrt", tg_sqrt, __VA_ARGS__)
#define tg_rsqrt(...) TG_TENSOR_CALL_("rsqrt", tg_rsqrt, __VA_ARGS__)
#define tg_reciprocal(...) TG_TENSOR_CALL_("reciprocal", tg_reciprocal, __VA_ARGS__)
#define tg_square(...) TG_TENSOR_CALL_("square", tg_square, __VA_ARGS__)
#define tg_abs(...) TG_TENSOR_CALL_("abs", tg_abs, __VA_ARGS__)
#define tg_sign(...) TG_TENSOR_CALL_("sign", tg_sign, __VA_ARGS__)
#define tg_trunc(...) TG_TENSOR_CALL_("trunc", tg_trunc, __VA_ARGS__)
#define tg_floor(...) TG_TENSOR_CALL_("floor", tg_floor, __VA_ARGS__)
#define tg_ceil(...) TG_TENSOR_CALL_("ceil", tg_ceil, __VA_ARGS__)
#define tg_round(...) TG_TENSOR_CALL_("round", tg_round, __VA_ARGS__)
#define tg_isnan(...) TG_TENSOR_CALL_("isnan", tg_isnan, __VA_ARGS__)
#define tg_isinf(...) TG_TENSOR_CALL_("isinf", tg_isinf, __VA_ARGS__)
#define tg_isposinf(...) TG_TENSOR_CALL_("isposinf", tg_isposinf, __VA_ARGS__)
#define tg_isneginf(...) TG_TENSOR_CALL_("isneginf", tg_isneginf, __VA_ARGS__)
#define tg_isfinite(...) TG_TENSOR_CALL_("isfinite", tg_isfinite, __VA_ARGS__)
#define tg_signbit(...) TG_TENSOR_CALL_("signbit", tg_signbit, __VA_ARGS__)
#define tg_bitnot(...) TG_TENSOR_CALL_("bitnot", tg_bitnot, __VA_ARGS__)
#define tg_relu(...) TG_TENSOR_CALL_("relu", tg_relu, __VA_ARGS__)
#define tg_leaky_relu(...) TG_TENSOR_CALL_("leaky_relu", tg_leaky_relu, __VA_ARGS__)
#define tg_elu(...) TG_TENSOR_CALL_("elu", tg_elu, __VA_ARGS__)
#define tg_sigmoid(...) TG_TENSOR_CALL_("sigmoid", tg_sigmoid, __VA_ARGS__)
#define tg_tanh(...) TG_TENSOR_CALL_("tanh", tg_tanh, __VA_ARGS__)
#define tg_gelu(...) TG_TENSOR_CALL_("gelu", tg_gelu, __VA_ARGS__)
#define tg_silu(...) TG_TENSOR_CALL_("silu", tg_silu, __VA_ARGS__)
#define tg_softplus(...) TG_TENSOR_CALL_("softplus", tg_softplus, __VA_ARGS__)
#define tg_softplus_beta(...) TG_TENSOR_CALL_("softplus_beta", tg_softplus_beta, __VA_ARGS__)
#define tg_gelu_erf(...) TG_TENSOR_CALL_("gelu_erf", tg_gelu_erf, __VA_ARGS__)
#define tg_quick_gelu(...) TG_TENSOR_CALL_("quick_gelu", tg_quick_gelu, __VA_ARGS__)
#define tg_relu6(...) TG_TENSOR_CALL_("relu6", tg_relu6, __VA_ARGS__)
#define tg_celu(...) TG_TENSOR_CALL_("celu", tg_celu, __VA_ARGS__)
#define tg_selu(...) TG_TENSOR_CALL_("selu", tg_selu, __VA_ARGS__)
#define tg_logsigmoid(...) TG_TENSOR_CALL_("logsigmoid", tg_logsigmoid, __VA_ARGS__)
#define tg_hardsigmoid(...) TG_TENSOR_CALL_("hardsigmoid", tg_hardsigmoid, __VA_ARGS__)
#define tg_hardswish(...) TG_TENSOR_CALL_("hardswish", tg_hardswish, __VA_ARGS__)
#define tg_hardtanh(...) TG_TENSOR_CALL_("hardtanh", tg_hardtanh, __VA_ARGS__)
#define tg_softsign(...) TG_TENSOR_CALL_("softsign", tg_softsign, __VA_ARGS__)
#define tg_mish(...) TG_TENSOR_CALL_("mish", tg_mish, __VA_ARGS__)
#define tg_sum(...) TG_TENSOR_CALL_("sum", tg_sum, __VA_ARGS__)
#define tg_prod(...) TG_TENSOR_CALL_("prod", tg_prod, __VA_ARGS__)
#define tg_max(...) TG_TENSOR_CALL_("max", tg_max, __VA_ARGS__)
#define tg_min(...) TG_TENSOR_CALL_("min", tg_min, __VA_ARGS__)
#define tg_mean(...) TG_TENSOR_CALL_("mean", tg_mean, __VA_ARGS__)
#define tg_any(...) TG_TENSOR_CALL_("any", tg_any, __VA_ARGS__)
#define tg_all(...) TG_TENSOR_CALL_("all", tg_all, __VA_ARGS__)
#define tg_argmax(...) TG_TENSOR_CALL_("argmax", tg_argmax, __VA_ARGS__)
#define tg_argmin(...) TG_TENSOR_CALL_("argmin", tg_argmin, __VA_ARGS__)
#define tg_var(...) TG_TENSOR_CALL_("var", tg_var, __VA_ARGS__)
#define tg_std(...) TG_TENSOR_CALL_("std", tg_std, __VA_ARGS__)
#define tg_var_mean(...) TG_TENSOR_CALL_("var_mean", tg_var_mean, __VA_ARGS__)
#define tg_std_mean(...) TG_TENSOR_CALL_("std_mean", tg_std_mean, __VA_ARGS__)
#define tg_normalize(...) TG_TENSOR_CALL_("normalize", tg_normalize, __VA_ARGS__)
#define tg_softmax(...) TG_TENSOR_CALL_("softmax", tg_softmax, __VA_ARGS__)
#define tg_softmin(...) TG_TENSOR_CALL_("softmin", tg_softmin, __VA_ARGS__)
#define tg_log_softmax(...) TG_TENSOR_CALL_("log_softmax", tg_log_softmax, __VA_ARGS__)
#define tg_logsumexp(...) TG_TENSOR_CALL_("logsumexp", tg_logsumexp, __VA_ARGS__)
#define tg_cumsum(...) TG_TENSOR_CALL_("cumsum", tg_cumsum, __VA_ARGS__)
#define tg_cumprod(...) TG_TENSOR_CALL_("cumprod", tg_cumprod, __VA_ARGS__)
#define tg_cummax(...) TG_TENSOR_CALL_("cummax", tg_cummax, __VA_ARGS__)
#define tg_cummin(...) TG_TENSOR_CALL_("cummin", tg_cummin, __VA_ARGS__)
#define tg_logcumsumexp(...) TG_TENSOR_CALL_("logcumsumexp", tg_logcumsumexp, __VA_ARGS__)
#define tg_sort(...) TG_TENSOR_CALL_("sort", tg_sort, __VA_ARGS__)
#define tg_argsort(...) TG_TENSOR_CALL_("argsort", tg_argsort, __VA_ARGS__)
#define tg_topk(...) TG_TENSOR_CALL_("topk", tg_topk, __VA_ARGS__)
#define tg_matmul(...) TG_TENSOR_CALL_("matmul", tg_matmul, __VA_ARGS__)
#define tg_dot(...) TG_TENSOR_CALL_("dot", tg_dot, __VA_ARGS__)
#define tg_einsum(...) TG_PLAIN_CALL_("einsum", tg_einsum, __VA_ARGS__)
#define tg_linear(...) TG_TENSOR_CALL_("linear", tg_linear, __VA_ARGS__)
#define tg_newton_schulz(...) TG_TENSOR_CALL_("newton_schulz", tg_newton_schulz, __VA_ARGS__)
#define tg_conv2d(...) TG_TENSOR_CALL_("conv2d", tg_conv2d, __VA_ARGS__)
#define tg_conv_transpose2d(...) TG_TENSOR_CALL_("conv_transpose2d", tg_conv_transpose2d, __VA_ARGS__)
#define tg_max_pool2d(...) TG_TENSOR_CALL_("max_pool2d", tg_max_pool2d, __VA_ARGS__)
#define tg_avg_pool2d(...) TG_TENSOR_CALL_("avg_pool2d", tg_avg_pool2d, __VA_ARGS__)
#define tg_interpolate(...) TG_TENSOR_CALL_("interpolate", tg_interpolate, __VA_ARGS__)
#define tg_max_unpool2d(...) TG_TENSOR_CALL_("max_unpool2d", tg_max_unpool2d, __VA_ARGS__)
#define tg_keccak(...) TG_TENSOR_CALL_("keccak", tg_keccak, __VA_ARGS__)
#define tg_hash(...) TG_TENSOR_CALL_("hash", tg_hash, __VA_ARGS__)
#define tg_sequential(...) TG_TENSOR_CALL_("sequential", tg_sequential, __VA_ARGS__)
#define tg_cross_entropy(...) TG_TENSOR_CALL_("cross_entropy", tg_cross_entropy, __VA_ARGS__)
#define tg_sparse_cross_entropy(...) \
  TG_TENSOR_CALL_("sparse_cross_entropy", tg_sparse_cross_entropy, __VA_ARGS__)
#define tg_nll(...) TG_PLAIN_CALL_("nll", tg_nll, __VA_ARGS__)
#define tg_mse(...) TG_TENSOR_CALL_("mse", tg_mse, __VA_ARGS__)
#define tg_binary_cross_entropy(...) \
  TG_TENSOR_CALL_("binary_cross_entropy", tg_binary_cross_entropy, __VA_ARGS__)
#define tg_binary_cross_entropy_logits(...) \
  TG_TENSOR_CALL_("binary_cross_entropy_logits", tg_binary_cross_entropy_logits, __VA_ARGS__)
#define tg_one_hot(...) TG_TENSOR_CALL_("one_hot", tg_one_hot, __VA_ARGS__)
#define tg_gather(...) TG_TENSOR_CALL_("gather", tg_gather, __VA_ARGS__)
#define tg_take(...) TG_TENSOR_CALL_("take", tg_take, __VA_ARGS__)
#define tg_embedding(...) TG_TENSOR_CALL_("embedding", tg_embedding, __VA_ARGS__)
#define tg_scatter(...) TG_TENSOR_CALL_("scatter", tg_scatter, __VA_ARGS__)
#define tg_scatter_reduce(...) TG_TENSOR_CALL_("scatter_reduce", tg_scatter_reduce, __VA_ARGS__)
#define tg_masked_select(...) TG_TENSOR_CALL_("masked_select", tg_masked_select, __VA_ARGS__)
#define tg_nonzero(...) TG_TENSOR_CALL_("nonzero", tg_nonzero, __VA_ARGS__)
#define tg_layer_norm(...) TG_TENSOR_CALL_("layer_norm", tg_layer_norm, __VA_ARGS__)
#define tg_rms_norm(...) TG_TENSOR_CALL_("rms_norm", tg_rms_norm, __VA_ARGS__)
#define tg_batch_norm(...) TG_TENSOR_CALL_("batch_norm", tg_batch_norm, __VA_ARGS__)
#define tg_batch_norm_train(...) TG_TENSOR_CALL_("batch_norm_train", tg_batch_norm_train, __VA_ARGS__)
#define tg_dropout(...) TG_TENSOR_CALL_("dropout", tg_dropout, __VA_ARGS__)
#define tg_scaled_dot_product_attention(...) \
  TG_TENSOR_CALL_("scaled_dot_product_attention", tg_scaled_dot_product_attention, __VA_ARGS__)
#define tg_detach(...) TG_TENSOR_CALL_("detach", tg_detach, __VA_ARGS__)
#define tg_custom_gradient(...) TG_TENSOR_CALL_("custom_gradient", tg_custom_gradient, __VA_ARGS__)
#define tg_contiguous_backward(...) \
  TG_TENSOR_CALL_("contiguous_backward", tg_contiguous_backward, __VA_ARGS__)
#define tg_assign(...) TG_TENSOR_CALL_("assign", tg_assign, __VA_ARGS__)
#define tg_add_(...) TG_TENSOR_CALL_("add_", tg_add_, __VA_ARGS__)
#define tg_sub_(...) TG_TENSOR_CALL_("sub_", tg_sub_, __VA_ARGS__)
#define tg_mul_(...) TG_TENSOR_CALL_("mul_", tg_mul_, __VA_ARGS__)
#define tg_div_(...) TG_TENSOR_CALL_("div_", tg_div_, __VA_ARGS__)
#define tg_floordiv_(...) TG_TENSOR_CALL_("floordiv_", tg_floordiv_, __VA_ARGS__)
#define tg_pow_(...) TG_TENSOR_CALL_("pow_", tg_pow_, __VA_ARGS__)
#define tg_bitand_(...) TG_TENSOR_CALL_("bitand_", tg_bitand_, __VA_ARGS__)
#define tg_bitor_(...) TG_TENSOR_CALL_("bitor_", tg_bitor_, __VA_ARGS__)
#define tg_bitxor_(...) TG_TENSOR_CALL_("bitxor_", tg_bitxor_, __VA_ARGS__)
#define tg_shl_(...) TG_TENSOR_CALL_("shl_", tg_shl_, __VA_ARGS__)
#define tg_shr_(...) TG_TENSOR_CALL_("shr_", tg_shr_, __VA_ARGS__)
#define tg_matmul_(...) TG_TENSOR_CALL_("matmul_", tg_matmul_, __VA_ARGS__)
#define tg_clone(...) TG_TENSOR_CALL_("clone", tg_clone, __VA_ARGS__)
#define tg_setitem(...) TG_TENSOR_CALL_("setitem", tg_setitem, __VA_ARGS__)
#define tg_setitem_scalar(...) TG_TENSOR_CALL_("setitem_scalar", tg_setitem_scalar, __VA_ARGS__)
#define tg_index_put(...) TG_TENSOR_CALL_("index_put", tg_index_put, __VA_ARGS__)
#define tg_assign_slice(...) TG_TENSOR_CALL_("assign_slice", tg_assign_slice, __VA_ARGS__)
#define tg_contiguous(...) TG_TENSOR_CALL_("contiguous", tg_contiguous, __VA_ARGS__)
#else
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
#define tg_dot2(x, y) TG_CALL2_("dot2", tg_dot2, tg_origin_here, x, y)
#define tg_lookup4(x, ...) TG_CALL_("lookup4", tg_lookup4, tg_origin_here, x, __VA_ARGS__)
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
#endif
/* clang-format on */
#endif
