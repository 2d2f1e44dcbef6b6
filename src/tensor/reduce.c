/* reduce.c: reductions over named axes. REDUCE_AXIS keeps reduced axes with size 1; here they are dropped
 * unless keepdim is set. */
#include "tensor/front.h"

static TgTensor *finish(TgContext *ctx, UOp *u, const bool *mask, bool keepdim) {
  return tensor_new(ctx, keepdim ? u : u_drop(ctx->store, u, mask));
}

static int64_t count_of(const TgTensor *x, const bool *mask) {
  int64_t n = 1;
  for (int i = 0; i < rank(x); i++)
    if (mask[i]) n = dim_mul(x->ctx->store, n, dims(x)[i]);
  return n;
}

static bool dtype_option(TgContext *ctx, const char *op, TgDType want, DType fallback, DType *out) {
  *out = dtype_of(want, fallback);
  TG_REQUIRE_OR(ctx, *out, false, TG_ERR_DTYPE, "%s: unknown dtype %d", op, (int)want);
  return true;
}

TgTensor *tensor_sum(TgTensor *x, int naxes, const int *axes) {
  TgReduceOptions o = {.size = sizeof o, .axis = {.n = naxes}};
  for (int i = 0; i < naxes; i++)
    o.axis.v[i] = axes[i];
  return tg_sum_opt(x, &o);
}

TgTensor *tg_sum_opt(TgTensor *x, const TgReduceOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), "sum", TgReduceOptions, o, opt);
  bool mask[TG_MAX_RANK];
  DType acc, out;
  UOpStore *st = x->ctx->store;
  if (!axes_get(x->ctx, "sum", &o.axis, rank(x), mask) ||
      !dtype_option(x->ctx, "sum", o.dtype, sum_dtype(dt(x)), &acc))
    return NULL;
  out = !o.dtype && dtype_is_float(dt(x)) ? dt(x) : acc;
  return finish(x->ctx, uop_cast(st, u_reduce(st, OPS_ADD, uop_cast(st, x->uop, acc), mask), out), mask,
                o.keepdim);
}

TgTensor *tg_prod_opt(TgTensor *x, const TgReduceOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), "prod", TgReduceOptions, o, opt);
  bool mask[TG_MAX_RANK];
  DType d;
  UOpStore *st = x->ctx->store;
  if (!axes_get(x->ctx, "prod", &o.axis, rank(x), mask) || !dtype_option(x->ctx, "prod", o.dtype, dt(x), &d))
    return NULL;
  DType acc = !o.dtype && dtype_is_narrow_float(d) ? DT_F32 : d;
  return finish(x->ctx, uop_cast(st, u_reduce(st, OPS_MUL, uop_cast(st, x->uop, acc), mask), d), mask,
                o.keepdim);
}

/* The minimum is the maximum in the reversed order, which is right for unsigned integers and for the
 * lowest value too. */
static UOp *extreme(UOpStore *st, UOp *u, const bool *mask, bool min) {
  if (!u) return NULL;
  DType d = (DType)u->dtype;
  u = uop_cast(st, u, d == DT_BOOL ? DT_I32 : d);
  u = u_reduce(st, OPS_MAX, min ? u_reversed(st, u) : u, mask);
  u = min ? u_reversed(st, u) : u;
  /* for an empty axis the result is the lowest or highest i32, not 0 or 1 */
  if (d == DT_BOOL) return u ? uop_alu2(st, OPS_CMPLT, u_num(st, 0, u), u) : NULL;
  return u;
}

static TgTensor *max_min(const char *op, TgTensor *x, const TgReduceOptions *opt, bool min) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), op, TgReduceOptions, o, opt);
  bool mask[TG_MAX_RANK];
  if (!axes_get(x->ctx, op, &o.axis, rank(x), mask)) return NULL;
  return finish(x->ctx, extreme(x->ctx->store, x->uop, mask, min), mask, o.keepdim);
}

TgTensor *tg_max_opt(TgTensor *x, const TgReduceOptions *o) { return max_min("max", x, o, false); }

TgTensor *tg_min_opt(TgTensor *x, const TgReduceOptions *o) { return max_min("min", x, o, true); }

TgTensor *tg_any_opt(TgTensor *x, const TgReduceOptions *o) {
  return max_min("any", tensor_cast(x, TG_BOOL), o, false);
}

TgTensor *tg_all_opt(TgTensor *x, const TgReduceOptions *o) {
  return max_min("all", tensor_cast(x, TG_BOOL), o, true);
}

/* The sum divided by n - less, which is at least 0. */
static UOp *mean_node(UOpStore *st, UOp *u, const bool *mask, int64_t n, int64_t less, DType out) {
  UOp *s = u_reduce(st, OPS_ADD, uop_cast(st, u, sum_dtype(out)), mask), *count;
  if (!s) return NULL;
  if (!dim_symbolic(n))
    count = u_num(st, (double)TG_MAX(n - less, 0), s);
  else {
    count = u_size(st, n, (DType)s->dtype, s->shape);
    if (less)
      count =
          uop_alu2(st, OPS_MAX, uop_alu2(st, OPS_SUB, count, u_num(st, (double)less, s)), u_num(st, 0, s));
  }
  return uop_cast(st, uop_alu2(st, OPS_FDIV, s, count), out);
}

TgTensor *tg_mean_opt(TgTensor *x, const TgReduceOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), "mean", TgReduceOptions, o, opt);
  bool mask[TG_MAX_RANK];
  DType d;
  if (!axes_get(x->ctx, "mean", &o.axis, rank(x), mask) ||
      !dtype_option(x->ctx, "mean", o.dtype, dtype_as_float(dt(x)), &d))
    return NULL;
  TG_REQUIRE(x->ctx, dtype_is_float(d), TG_ERR_DTYPE, "mean: a result of %s", dtype_name(d));
  return finish(x->ctx, mean_node(x->ctx->store, x->uop, mask, count_of(x, mask), 0, d), mask, o.keepdim);
}

/* Computed in the dtype of its sums, because squares of f16 overflow although the root of their mean does
 * not. */
static TgTensor *variance(const char *op, TgTensor *x, const TgVarOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), op, TgVarOptions, o, opt);
  bool mask[TG_MAX_RANK];
  UOpStore *st = x->ctx->store;
  if (!axes_get(x->ctx, op, &o.axis, rank(x), mask)) return NULL;
  int64_t n = count_of(x, mask), c = o.biased ? 0 : TG_OPTION(o, correction, 1);
  DType wide = sum_dtype(dtype_as_float(dt(x)));
  UOp *u = uop_cast(st, x->uop, wide);
  UOp *diff =
      u ? uop_alu2(st, OPS_SUB, u, u_broadcast(st, mean_node(st, u, mask, n, 0, wide), u->shape)) : NULL;
  return finish(x->ctx, mean_node(st, uop_alu2(st, OPS_MUL, diff, diff), mask, n, c, wide), mask, o.keepdim);
}

TgTensor *tg_var_opt(TgTensor *x, const TgVarOptions *o) { return as_narrow(variance("var", x, o), x); }

/* v^p for a sum of powers v >= 0. No gradient passes where v is 0, because it would be infinite. */
static TgTensor *root_of_sum(TgTensor *v, double p) {
  if (p < 0) return tg_pow_scalar(v, p); /* already infinite at 0 */
  TgTensor *zero = tg_eq_scalar(v, 0), *some = tg_where(zero, tg_ones_like(v), v);
  TgTensor *r = p == 0.5 ? tg_sqrt(some) : tg_pow_scalar(some, p);
  return tg_where(zero, tg_zeros_like(v), r);
}

TgTensor *tg_std_opt(TgTensor *x, const TgVarOptions *o) {
  TgTensor *v = variance("std", x, o);
  return v ? as_narrow(root_of_sum(v, 0.5), x) : NULL;
}

static TgTensor *with_mean(TgTensor *v, TgTensor *x, TgTensor **mean, const TgVarOptions *opt) {
  if (!v || !mean) return v;
  TG_OPTIONS(v->ctx, "mean", TgVarOptions, o, opt);
  *mean = tg_mean(x, .axis = o.axis, .keepdim = o.keepdim);
  return *mean ? v : NULL;
}

TgTensor *tg_var_mean_opt(TgTensor *x, TgTensor **mean, const TgVarOptions *o) {
  return with_mean(tg_var_opt(x, o), x, mean, o);
}

TgTensor *tg_std_mean_opt(TgTensor *x, TgTensor **mean, const TgVarOptions *o) {
  return with_mean(tg_std_opt(x, o), x, mean, o);
}

TgTensor *tg_normalize_opt(TgTensor *x, const TgNormalizeOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), "normalize", TgNormalizeOptions, o, opt);
  TgAxes axis = TG_AXES(TG_OPTION(o, axis, rank(x) > 1 ? 1 : 0));
  double p = TG_OPTION(o, p, o.zero ? 0 : 2), eps = TG_OPTION(o, eps, 1e-12);
  TG_REQUIRE(x->ctx, p == p, TG_ERR_VALUE, "normalize: p = %g", p);
  TgTensor *w = as_wide(x), *a = tg_abs(w), *n;
  if (p == 0)
    n = tg_sum(tensor_cast(tg_ne_scalar(w, 0), tg_dtype(w)), .axis = axis, .keepdim = true);
  else if (p == INFINITY)
    n = tg_max(a, .axis = axis, .keepdim = true);
  else if (p == -INFINITY)
    n = tg_min(a, .axis = axis, .keepdim = true);
  else if (p == 1)
    n = tg_sum(a, .axis = axis, .keepdim = true);
  else if (p == 2)
    n = root_of_sum(tg_sum(tg_mul(w, w), .axis = axis, .keepdim = true), 0.5);
  else
    n = root_of_sum(tg_sum(root_of_sum(a, p), .axis = axis, .keepdim = true), 1 / p);
  return as_narrow(tg_div(w, tg_clamp(n, eps, INFINITY)), x);
}

/* A place that holds the extreme has the value n - i, other places have 0, so the maximum is the first
 * such place. NaN equals nothing, so it is tested separately. */
static TgTensor *arg_extreme(const char *op, TgTensor *x, const TgReduceOptions *opt, bool min) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), op, TgReduceOptions, o, opt);
  TgContext *ctx = x->ctx;
  UOpStore *st = ctx->store;
  TG_REQUIRE(ctx, o.axis.n <= 1, TG_ERR_VALUE, "%s: %d axes named for %s, one is possible", op, o.axis.n,
             SHAPE_OF(x));
  if (o.axis.n == 0 && !o.axis.v[0]) { /* the place in the flattened tensor */
    int64_t ones[TG_MAX_RANK];
    for (int i = 0; i < rank(x); i++)
      ones[i] = 1;
    TgReduceOptions flat = {.size = sizeof flat, .axis = TG_AXES(0)};
    TgTensor *best = arg_extreme(op, tg_flatten(x, 0, -1), &flat, min);
    return o.keepdim ? tg_reshape(best, rank(x), ones) : best;
  }
  bool mask[TG_MAX_RANK];
  if (!x || !axes_get(ctx, op, &o.axis, rank(x), mask)) return NULL;
  int axis = 0;
  while (axis < rank(x) && !mask[axis])
    axis++;
  int64_t n = axis < rank(x) ? dims(x)[axis] : 1;
  TG_REQUIRE(ctx, dim_max(st, n) > 0 && dim_max(st, n) <= INT32_MAX, TG_ERR_SHAPE,
             "%s: axis of size %lld in %s", op, (long long)dim_max(st, n), SHAPE_OF(x));
  if (n == 1 || nelem(x) == 0)
    return finish(ctx, u_reduce(st, OPS_MAX, u_full(st, DT_I32, (Scalar){.i = 0}, x->uop->shape), mask), mask,
                  o.keepdim);
  UOp *u = x->uop, *hit = uop_alu2(st, OPS_CMPEQ, u, u_broadcast(st, extreme(st, u, mask, min), u->shape));
  if (dtype_is_float(dt(x))) hit = uop_alu2(st, OPS_OR, hit, uop_alu2(st, OPS_CMPNE, u, u));
  UOp *left = u_size(st, n, DT_I32, u->shape);
  left = uop_alu2(st, OPS_SUB, left, u_arange(st, u->shape, axis, DT_I32));
  UOp *best =
      u_reduce(st, OPS_MAX, uop_where(st, hit, left, u_full(st, DT_I32, (Scalar){.i = 0}, u->shape)), mask);
  return finish(ctx, best ? uop_alu2(st, OPS_SUB, u_size(st, n, DT_I32, best->shape), best) : NULL, mask,
                o.keepdim);
}

TgTensor *tg_argmax_opt(TgTensor *x, const TgReduceOptions *o) { return arg_extreme("argmax", x, o, false); }

TgTensor *tg_argmin_opt(TgTensor *x, const TgReduceOptions *o) { return arg_extreme("argmin", x, o, true); }

/* ---- softmax and related functions: the detached maximum is subtracted first */
/* Computed in f32 or f64. The result is rounded to its dtype once. */
typedef struct Shifted {
  TgTensor *x, *max;
  TgAxes axis;
  TgDType dtype;
} Shifted;

static bool shift(const char *op, TgTensor *x, const TgAxisOptions *o, Shifted *s) {
  if (!x) return false;
  TgAxes axis = axes_or(&o->axis, -1);
  bool mask[TG_MAX_RANK];
  DType d;
  if (!axes_get(x->ctx, op, &axis, rank(x), mask) ||
      !dtype_option(x->ctx, op, o->dtype, dtype_as_float(dt(x)), &d))
    return false;
  TG_REQUIRE_OR(x->ctx, dtype_is_float(d), false, TG_ERR_DTYPE, "%s: a result of %s", op, dtype_name(d));
  x = as_wide(x);
  s->axis = axis;
  s->dtype = dtype_public(d);
  s->max = tg_detach(tg_max(x, .axis = axis, .keepdim = true));
  s->x = tg_sub(x, s->max);
  if (d == DT_F64) s->x = tensor_cast(s->x, TG_F64);
  return s->x != NULL;
}

TgTensor *tg_softmax_opt(TgTensor *x, const TgAxisOptions *opt) {
  TG_OPTIONS(tg_context(x), "softmax", TgAxisOptions, o, opt);
  Shifted s;
  if (!shift("softmax", x, &o, &s)) return NULL;
  TgTensor *e = tg_exp(s.x);
  return tensor_cast(tg_div(e, tg_sum(e, .axis = s.axis, .keepdim = true)), s.dtype);
}

TgTensor *tg_softmin_opt(TgTensor *x, const TgAxisOptions *o) {
  return x ? tg_softmax_opt(tg_neg(dtype_is_float(dt(x)) ? x : tensor_cast(x, TG_F32)), o) : NULL;
}

TgTensor *tg_log_softmax_opt(TgTensor *x, const TgAxisOptions *opt) {
  TG_OPTIONS(tg_context(x), "log_softmax", TgAxisOptions, o, opt);
  Shifted s;
  if (!shift("log_softmax", x, &o, &s)) return NULL;
  return tensor_cast(tg_sub(s.x, tg_log(tg_sum(tg_exp(s.x), .axis = s.axis, .keepdim = true))), s.dtype);
}

/* An infinite maximum is treated as 0, so that a row of -inf gives -inf, and one with +inf gives +inf. */
TgTensor *tg_logsumexp_opt(TgTensor *x, const TgAxisOptions *opt) {
  TG_OPTIONS(tg_context(x), "logsumexp", TgAxisOptions, o, opt);
  if (!x) return NULL;
  bool mask[TG_MAX_RANK];
  if (!axes_get(x->ctx, "logsumexp", &o.axis, rank(x), mask)) return NULL;
  TgTensor *w = as_wide(x), *m = tg_detach(tg_max(w, .axis = o.axis, .keepdim = true));
  m = tg_where(tg_isinf(m), tg_zeros_like(m), m);
  TgTensor *r =
      as_narrow(tg_add(tg_log(tg_sum(tg_exp(tg_sub(w, m)), .axis = o.axis, .keepdim = true)), m), x);
  return r ? finish(r->ctx, r->uop, mask, o.keepdim) : NULL;
}
