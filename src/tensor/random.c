/* random.c: counter-based random numbers. The counter and the key travel in a buffer, so a step's graph is the same each time. */
#include "tensor/front.h"

/* n words threefry(counter + i, seed) as u64, shape (n). */
static UOp *words(TgContext *ctx, int64_t n) {
  UOpStore *st = ctx->store;
  uint64_t state[2] = {ctx->rng_counter, ctx->rng_seed};
  TgTensor *t = tg_from(ctx, state, TG_U64, TG_SHAPE(2));
  const Ints *shape = ints_get(st, 1, &n);
  if (!t || !shape) return NULL;
  ctx->rng_counter += (uint64_t)n;
  UOp *counter = u_expand(st, u_shrink(st, t->uop, (int64_t[]){0, 1}), &n), *key = u_expand(st, u_shrink(st, t->uop, (int64_t[]){1, 2}), &n);
  UOp *i = uop_cast(st, u_arange(st, shape, 0, n > INT32_MAX ? DT_I64 : DT_I32), DT_U64);
  return uop_alu2(st, OPS_THREEFRY, uop_alu2(st, OPS_ADD, i, counter), key);
}
static UOp *shifted(UOpStore *st, UOp *u, int n) { return u ? uop_alu2(st, OPS_SHR, u, u_full(st, (DType)u->dtype, (Scalar){.i = n}, u->shape)) : NULL; }
static UOp *times(UOpStore *st, UOp *u, double v) { return u ? uop_alu2(st, OPS_MUL, u, u_num(st, v, u)) : NULL; }
static UOp *plus(UOpStore *st, UOp *u, double v) { return u ? uop_alu2(st, OPS_ADD, u, u_num(st, v, u)) : NULL; }
/* The top bits of a 32-bit word, as many as the mantissa holds, in [0, 1): exact, never 1. */
static UOp *unit(UOpStore *st, UOp *word32, DType d) {
  int bits = d == DT_F16 ? 11 : d == DT_BF16 ? 8 : d == DT_F32 ? 24 : 32;
  UOp *u = bits == 32 ? word32 : uop_cast(st, shifted(st, word32, 32 - bits), DT_I32);
  return times(st, uop_cast(st, u, d), ldexp(1, -bits));
}
typedef enum Law { LAW_UNIT, LAW_NORMAL } Law;
static UOp *draw(TgContext *ctx, const char *op, Law law, DType d, int n, const int64_t *dm) {
  UOpStore *st = ctx->store;
  int64_t nelem;
  TG_REQUIRE(ctx, dtype_is_float(d), TG_ERR_DTYPE, "%s: %s is not a float", op, dtype_name(d));
  if (!shape_check(ctx, op, n, dm, &nelem)) return NULL;
  if (nelem == 0) return u_full(st, d, (Scalar){.f = 0}, ints_get(st, n, dm));
  UOp *w = words(ctx, nelem), *low = uop_cast(st, w, DT_U32), *u;
  if (law == LAW_UNIT)
    u = d == DT_F64 ? times(st, uop_cast(st, shifted(st, w, 11), DT_F64), ldexp(1, -53)) : unit(st, low, d);
  else {                                                     /* sqrt(-2 ln(1 - u1)) cos(2 pi u2); 1 - u1 is in (0, 1] */
    DType c = d == DT_F64 ? DT_F64 : DT_F32;
    UOp *u1 = unit(st, low, c), *u2 = unit(st, uop_cast(st, shifted(st, w, 32), DT_U32), c);
    UOp *radius = uop_alu1(st, OPS_SQRT, times(st, uop_alu1(st, OPS_LOG, plus(st, times(st, u1, -1), 1)), -2));
    UOp *angle = uop_alu1(st, OPS_SIN, plus(st, times(st, u2, -6.283185307179586), 1.5707963267948966));
    u = uop_cast(st, uop_alu2(st, OPS_MUL, radius, angle), d);
  }
  return u ? uop_alu1(st, OPS_CONTIGUOUS, u_reshape(st, u, n, dm)) : NULL;   /* drawn once, however many readers */
}
static TgTensor *draw_tensor(TgContext *ctx, const char *op, Law law, int n, const int64_t *dm, const TgDTypeOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(TgDTypeOptions, o, opt);
  UOp *u = draw(ctx, op, law, dtype_of(o.dtype, DT_F32), n, dm);
  return u || !ctx->err.status ? tensor_new(ctx, u) : NULL;
}
TgTensor *tg_rand_opt(TgContext *ctx, int n, const int64_t *d, const TgDTypeOptions *o) { return draw_tensor(ctx, "rand", LAW_UNIT, n, d, o); }
TgTensor *tg_randn_opt(TgContext *ctx, int n, const int64_t *d, const TgDTypeOptions *o) { return draw_tensor(ctx, "randn", LAW_NORMAL, n, d, o); }
TgTensor *tg_uniform_opt(TgContext *ctx, int n, const int64_t *d, double low, double high, const TgDTypeOptions *o) {
  return tg_add_scalar(tg_mul_scalar(draw_tensor(ctx, "uniform", LAW_UNIT, n, d, o), high - low), low);
}
TgTensor *tg_randint(TgContext *ctx, int n, const int64_t *dm, int64_t low, int64_t high, TgDType dtype) {
  if (!ctx) return NULL;
  DType d = dtype_of(dtype, DT_I32);
  int64_t nelem;
  UOpStore *st = ctx->store;
  TG_REQUIRE(ctx, dtype_is_int(d), TG_ERR_DTYPE, "randint: %s is not an integer", dtype_name(d));
  TG_REQUIRE(ctx, low < high && low >= INT32_MIN && high <= INT32_MAX, TG_ERR_VALUE, "randint: %lld .. %lld", (long long)low, (long long)high);
  if (!shape_check(ctx, "randint", n, dm, &nelem)) return NULL;
  if (nelem == 0) return tg_full_i64(ctx, n, dm, 0, dtype_public(d));
  UOp *w = shifted(st, words(ctx, nelem), 32);               /* 32 random bits times the span, over 2^32: all in 63 bits */
  UOp *span = w ? u_full(st, DT_U64, (Scalar){.i = high - low}, w->shape) : NULL;
  UOp *u = uop_cast(st, shifted(st, uop_alu2(st, OPS_MUL, w, span), 32), DT_I64);
  u = uop_cast(st, u ? uop_alu2(st, OPS_ADD, u, u_full(st, DT_I64, (Scalar){.i = low}, u->shape)) : NULL, d);
  return tensor_new(ctx, u ? uop_alu1(st, OPS_CONTIGUOUS, u_reshape(st, u, n, dm)) : NULL);
}
static void fans(int n, const int64_t *d, double *in, double *out) {
  *in = 1;
  for (int i = 1; i < n; i++) *in *= (double)d[i];
  *out = n > 0 ? *in / (n > 1 ? (double)d[1] : 1) * (double)d[0] : 1;
  if (*in < 1) *in = 1;
}
TgTensor *tg_kaiming_uniform_opt(TgContext *ctx, int n, const int64_t *d, const TgDTypeOptions *o) {
  double in, out;
  if (!ctx || !shape_check(ctx, "kaiming_uniform", n, d, NULL)) return NULL;
  fans(n, d, &in, &out);
  double bound = sqrt(6 / ((1 + 5) * in));
  return tg_uniform_opt(ctx, n, d, -bound, bound, o);
}
TgTensor *tg_glorot_uniform_opt(TgContext *ctx, int n, const int64_t *d, const TgDTypeOptions *o) {
  double in, out;
  if (!ctx || !shape_check(ctx, "glorot_uniform", n, d, NULL)) return NULL;
  fans(n, d, &in, &out);
  double bound = sqrt(6 / TG_MAX(in + out, 1));
  return tg_uniform_opt(ctx, n, d, -bound, bound, o);
}
TgTensor *tg_dropout(TgTensor *x, double p) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  UOpStore *st = ctx->store;
  TG_REQUIRE(ctx, p >= 0 && p <= 1, TG_ERR_VALUE, "dropout: p = %g is not in 0 .. 1", p);
  TG_REQUIRE(ctx, dtype_is_float(dt(x)), TG_ERR_DTYPE, "dropout: %s is not a float", dtype_name(dt(x)));
  if (!ctx->training || p == 0 || tg_numel(x) == 0) return x;
  if (p == 1) return tg_zeros_like(x);
  UOp *u = unit(st, uop_cast(st, words(ctx, tg_numel(x)), DT_U32), DT_F32);
  UOp *keep = u_not(st, u ? uop_alu2(st, OPS_CMPLT, u, u_num(st, p, u)) : NULL);
  TgTensor *mask = tensor_new(ctx, keep ? uop_alu1(st, OPS_CONTIGUOUS, u_reshape(st, keep, rank(x), dims(x))) : NULL);   /* a byte each */
  return tg_where(mask, tg_mul_scalar(x, 1 / (1 - p)), tg_scalar_like(x, 0));
}
