/* cases.c: see cases.h. */
#include "export/cases.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

TgStatus run_case(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const Case *k = user;
  (void)nin, (void)nout;
  out[0] = k->of(c, in[0], in[1]);
  return out[0] ? TG_OK : tg_error(c);
}

TgTensor *numbers(TgContext *c, TgDType d, int turn) {
  static const double special[] = {0, -0.0, 1, -1, 0.5, 2, 1e-40, -1e-42, 3e38, 65504, 448, 1e5, -7, 100};
  double v[NUMBERS];
  unsigned r = 12345u + (unsigned)turn * 99991u;
  bool whole = d < TG_F16 && d != TG_F32 && d != TG_F64;
  for (int i = 0; i < NUMBERS; i++) {
    r = r * 1664525u + 1013904223u;
    v[i] = ((double)(r >> 8) / (1 << 23) - 1) * (i % 3 ? 8 : 90);
    if (!whole && (unsigned)(i + 5 * turn) % 9 == 0) v[i] = special[r % (sizeof special / sizeof *special)];
    if (!whole && i == 17 && turn) v[i] = INFINITY;
    if (!whole && i == 33 && turn) v[i] = NAN;
  }
  return tg_cast(tg_from_f64(c, v, TG_F64, TG_SHAPE(ROWS, COLUMNS)), d);
}

#define OF(name, ...)                                                                                        \
  static TgTensor *name(TgContext *c, TgTensor *x, TgTensor *y) {                                            \
    (void)c, (void)x, (void)y;                                                                               \
    return __VA_ARGS__;                                                                                      \
  }
OF(sums, tg_add(tg_sub(x, y), tg_mul(x, y)))
OF(quotients, tg_add(tg_floordiv(x, y), tg_mod(y, x)))
OF(orders, tg_where(tg_lt(x, y), tg_maximum(x, y), tg_minimum(tg_neg(x), y)))
OF(bits, tg_bitxor(tg_bitand(x, y), tg_bitor(y, tg_bitnot(x))))
OF(shifts, tg_add(tg_shl(x, tg_bitand(y, tg_full_i64(c, TG_SCALAR, 7, tg_dtype(x)))),
                  tg_shr(x, tg_bitand(y, tg_full_i64(c, TG_SCALAR, 3, tg_dtype(x))))))
OF(row_sums, tg_sum(tg_mul(x, y), .axis = TG_AXES(1)))
OF(column_most, tg_max(x, .axis = TG_AXES(0)))
OF(products, tg_matmul(x, tg_transpose(y, 0, 1)))
OF(softmaxes, tg_softmax(tg_clamp(x, -50, 50)))
OF(exps, tg_add(tg_exp(x), tg_exp2(y)))
OF(logs, tg_add(tg_log(tg_abs(x)), tg_log2(tg_abs(y))))
OF(waves, tg_add(tg_sin(x), tg_add(tg_cos(y), tg_tan(x))))
OF(roots, tg_add(tg_sqrt(x), tg_rsqrt(tg_abs(y))))
OF(powers, tg_pow(tg_abs(x), y))
OF(to_i8, tg_cast(x, TG_I8))
OF(to_u16, tg_cast(x, TG_U16))
OF(to_i32, tg_cast(x, TG_I32))
OF(to_u64, tg_cast(x, TG_U64))
OF(to_f16, tg_cast(x, TG_F16))
OF(to_bf16, tg_cast(x, TG_BF16))
OF(to_e4m3, tg_cast(x, TG_FP8E4M3))
OF(to_e5m2, tg_cast(x, TG_FP8E5M2))
OF(to_f32, tg_cast(x, TG_F32))
OF(to_f64, tg_cast(x, TG_F64))
OF(to_bool, tg_cast(x, TG_BOOL))
OF(ranks, tg_argmax(x, .axis = TG_AXES(1)))
OF(running, tg_cumsum(x, 1))
OF(gathered, tg_gather(x, 1, tg_cast(tg_mod_scalar(tg_abs(tg_cast(y, TG_I32)), COLUMNS), TG_I64)))
OF(padded, tg_pad(tg_mul(x, y), (int64_t[]){1, 2}, (int64_t[]){0, 3}))
OF(logic, tg_bitor(tg_bitand(tg_gt(x, y), tg_ne(x, y)), tg_logical_not(tg_eq(x, y))))
OF(truncated, tg_add(tg_trunc(x), tg_add(tg_floor(y), tg_round(x))))
OF(turned, tg_bitcast(tg_add(x, y), TG_I32))
OF(windows, tg_conv2d(tg_reshape(x, TG_SHAPE(1, 1, ROWS, COLUMNS)),
                      tg_reshape(tg_shrink(y, (int64_t[]){0, 0}, (int64_t[]){3, 3}), TG_SHAPE(1, 1, 3, 3)),
                      NULL, .padding = TG_SIZES(1, 1, 1, 1)))

const Case export_cases[] = {
    {"sums of i8", sums, TG_I8},
    {"sums of u16", sums, TG_U16},
    {"sums of i32", sums, TG_I32},
    {"sums of u64", sums, TG_U64},
    {"sums of f32", sums, TG_F32},
    {"sums of f64", sums, TG_F64},
    {"sums of f16", sums, TG_F16},
    {"sums of bf16", sums, TG_BF16},
    {"quotients of i8", quotients, TG_I8},
    {"quotients of i32", quotients, TG_I32},
    {"quotients of i64", quotients, TG_I64},
    {"quotients of u8", quotients, TG_U8},
    {"orders of i16", orders, TG_I16},
    {"orders of f32", orders, TG_F32},
    {"orders of f64", orders, TG_F64},
    {"bits of i32", bits, TG_I32},
    {"bits of u8", bits, TG_U8},
    {"shifts of u32", shifts, TG_U32},
    {"shifts of i32", shifts, TG_I32},
    {"row sums", row_sums, TG_F32},
    {"row sums of f16", row_sums, TG_F16},
    {"row sums of i64", row_sums, TG_I64},
    {"column most", column_most, TG_F32},
    {"products", products, TG_F32},
    {"products of f64", products, TG_F64},
    {"softmax", softmaxes, TG_F32},
    {"exponentials", exps, TG_F32},
    {"logarithms", logs, TG_F32},
    {"waves", waves, TG_F32},
    {"roots", roots, TG_F32},
    {"roots of f64", roots, TG_F64},
    {"powers", powers, TG_F32},
    {"f32 to i8", to_i8, TG_F32},
    {"f32 to u16", to_u16, TG_F32},
    {"f64 to i32", to_i32, TG_F64},
    {"f32 to u64", to_u64, TG_F32},
    {"f32 to f16", to_f16, TG_F32},
    {"f32 to bf16", to_bf16, TG_F32},
    {"f32 to fp8e4m3", to_e4m3, TG_F32},
    {"f32 to fp8e5m2", to_e5m2, TG_F32},
    {"f64 to f16", to_f16, TG_F64},
    {"i64 to f16", to_f16, TG_I64},
    {"f16 to f32", to_f32, TG_F16},
    {"fp8e4m3 to f32", to_f32, TG_FP8E4M3},
    {"bf16 to f64", to_f64, TG_BF16},
    {"f32 to bool", to_bool, TG_F32},
    {"ranks", ranks, TG_F32},
    {"running sums", running, TG_F32},
    {"gathered", gathered, TG_F32},
    {"padded", padded, TG_F32},
    {"logic of f32", logic, TG_F32},
    {"logic of bool", logic, TG_BOOL},
    {"truncated", truncated, TG_F32},
    {"truncated f64", truncated, TG_F64},
    {"turned", turned, TG_F32},
    {"windows", windows, TG_F32},
};

const int export_case_count = (int)(sizeof export_cases / sizeof *export_cases);

const Case *case_named(const char *name) {
  for (int i = 0; i < export_case_count; i++)
    if (!strcmp(export_cases[i].name, name)) return &export_cases[i];
  return NULL;
}

TgStatus learn(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Learner *l = user;
  (void)c, (void)nin, (void)nout;
  TgTensor *h = tg_tanh(tg_linear_run(&l->first, in[0]));
  if (l->dropped > 0) h = tg_dropout(h, l->dropped);
  out[0] = tg_sparse_cross_entropy(tg_linear_run(&l->second, h), in[1]);
  TgStatus s = tg_backward(out[0]);
  return s ? s : tg_optim_step(l->optim);
}

void batch_of(int i, float *x, int32_t *y) {
  unsigned r = 99u + (unsigned)i * 7919u;
  for (int k = 0; k < BATCH * IN; k++) {
    r = r * 1664525u + 1013904223u;
    x[k] = (float)(r >> 8) / (1 << 23) - 1;
  }
  for (int k = 0; k < BATCH; k++)
    y[k] = (i + 3 * k) % CLASSES;
}

Learner *learner(TgContext *c, double dropped) {
  Learner *l = calloc(1, sizeof *l);
  l->first = tg_linear_new(c, IN, WIDE, true);
  l->second = tg_linear_new(c, WIDE, CLASSES, true);
  TgTensor *params[] = {l->first.weight, l->first.bias, l->second.weight, l->second.bias};
  tg_realize_many(params, 4);
  l->optim = tg_adam(c, params, 4, .lr = 1e-2);
  l->dropped = dropped;
  tg_set_training(c, true);
  return l;
}
