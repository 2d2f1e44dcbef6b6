/* functional.c: losses, normalisation, attention. All are compositions of the functions in the other
 * files. */
#include "tensor/front.h"

/* ---- losses */
static bool reduction_known(TgContext *ctx, const char *op, const TgLossOptions *o) {
  TG_REQUIRE_OR(ctx, (unsigned)o->reduction <= TG_NONE, false, TG_ERR_VALUE,
                "%s: reduction %d is none of mean, sum and none", op, (int)o->reduction);
  TG_REQUIRE_OR(ctx, o->label_smoothing >= 0 && o->label_smoothing <= 1, false, TG_ERR_VALUE,
                "%s: label smoothing %g is not in 0 .. 1", op, o->label_smoothing);
  return true;
}

static TgTensor *reduced(const char *op, TgTensor *l, const TgLossOptions *o) {
  if (!l || !reduction_known(l->ctx, op, o)) return NULL;
  return o->reduction == TG_NONE ? l : o->reduction == TG_SUM ? tg_sum(l) : tg_mean(l);
}

/* Moves the axis of the classes of x last. */
static TgTensor *classes_last(const char *op, TgTensor *x, const TgLossOptions *o) {
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, rank(x) > 0, TG_ERR_SHAPE, "%s: scores without an axis of classes", op);
  TG_REQUIRE(x->ctx, o->axis.n <= 1, TG_ERR_VALUE, "%s: %d axes of classes", op, o->axis.n);
  int64_t order[TG_MAX_RANK];
  TgAxes axis = axes_or(&o->axis, -1);
  bool mask[TG_MAX_RANK];
  int a = axes_get(x->ctx, op, &axis, rank(x), mask) ? axis_get(x->ctx, op, axis.v[0], rank(x)) : -1, k = 0;
  if (a < 0) return NULL;
  for (int i = 0; i < rank(x); i++)
    if (i != a) order[k++] = i;
  order[k] = a;
  return tg_permute(x, rank(x), order);
}

static TgTensor *class_weights(const char *op, TgTensor *logp, const TgLossOptions *o) {
  TgContext *ctx = ctx_two(op, logp, o->weight);
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, rank(o->weight) == 1 && dims(o->weight)[0] == dim_at(logp, -1), TG_ERR_SHAPE,
             "%s: weights %s for %lld classes", op, SHAPE_OF(o->weight), (long long)tg_dim(logp, -1));
  return tensor_cast(o->weight, tg_dtype(logp));
}

TgTensor *tg_cross_entropy_opt(TgTensor *x, TgTensor *target, const TgLossOptions *opt) {
  TgContext *ctx = ctx_two("cross_entropy", x, target);
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "cross_entropy", TgLossOptions, o, opt);
  if (rank(target) == rank(x) - 1) return tg_sparse_cross_entropy_opt(x, target, opt);
  TG_REQUIRE(ctx, x->uop->shape == target->uop->shape && rank(x) > 0, TG_ERR_SHAPE,
             "cross_entropy: logits %s and target %s", SHAPE_OF(x), SHAPE_OF(target));
  if (!reduction_known(ctx, "cross_entropy", &o)) return NULL;
  x = classes_last("cross_entropy", as_float(x), &o);
  target = x ? tensor_cast(classes_last("cross_entropy", target, &o), tg_dtype(x)) : NULL;
  if (!target) return NULL;
  double s = o.label_smoothing;
  TG_REQUIRE(ctx, s == 0 || !dim_symbolic(dim_at(x, -1)), TG_ERR_SHAPE,
             "cross_entropy: label smoothing over the classes of %s, whose number is symbolic", SHAPE_OF(x));
  if (s != 0) target = tg_add_scalar(tg_mul_scalar(target, 1 - s), s / (double)TG_MAX(dim_at(x, -1), 1));
  TG_REQUIRE(ctx, !o.ignore, TG_ERR_VALUE,
             "cross_entropy: .ignore is of labels; the target %s is of probabilities", SHAPE_OF(target));
  TgTensor *logp = tg_log_softmax(x), *each = o.weight ? class_weights("cross_entropy", x, &o) : NULL;
  if (o.weight && !(logp = each ? tg_mul(logp, each) : NULL)) return NULL;
  return reduced("cross_entropy", tg_neg(tensor_sum(tg_mul(target, logp), 1, (int[]){-1})), &o);
}

/* Each label has a weight: that of its class, or 0 if it is to be ignored. The mean is over the weights. */
static TgTensor *label_loss(const char *op, TgTensor *logp, TgTensor *labels, const TgLossOptions *o) {
  TgContext *ctx = ctx_two(op, logp, labels);
  if (!ctx || !reduction_known(ctx, op, o)) return NULL;
  int r = rank(labels);
  bool ok = rank(logp) == r + 1;
  for (int i = 0; ok && i < r; i++)
    ok = dims(logp)[i] == dims(labels)[i];
  TG_REQUIRE(ctx, ok, TG_ERR_SHAPE, "%s: scores %s (classes last) and labels %s", op, SHAPE_OF(logp),
             SHAPE_OF(labels));
  TG_REQUIRE(ctx, is_index_dtype(labels), TG_ERR_DTYPE, "%s: labels of %s", op, dtype_name(dt(labels)));
  TgTensor *at = tg_unsqueeze(labels, -1), *weight = NULL, *zero = tg_scalar_like(logp, 0);
  TgTensor *l =
      tg_neg(tg_squeeze(tensor_new(ctx, at ? u_pick(ctx->store, logp->uop, r, at->uop) : NULL), -1));
  TgTensor *each = o->weight ? class_weights(op, logp, o) : NULL;
  if (o->weight && !each) return NULL;
  if (each) {
    weight = tg_take(each, labels);
    l = tg_mul(l, weight);
  }
  double s = o->label_smoothing;
  if (s != 0) { /* every class gets a share, with its own weight */
    TgTensor *even = tg_mean(each ? tg_mul(logp, each) : logp, .axis = TG_AXES(-1));
    l = tg_sub(tg_mul_scalar(l, 1 - s), tg_mul_scalar(even, s));
    TgTensor *classes = tg_size_tensor(ctx, dim_at(logp, -1), TG_DTYPE_DEFAULT);
    l = tg_where(tg_bitand(tg_ge_scalar(labels, 0), tg_lt(labels, classes)), l, zero);
  }
  if (o->ignore) {
    TgTensor *keep = tg_ne_scalar(labels, (double)o->ignore_index), *one = tg_scalar_like(logp, 1);
    weight = tg_where(keep, weight ? weight : one, zero);
    l = tg_where(keep, l, zero); /* whatever the scores are there */
  }
  if (!weight) return reduced(op, l, o);
  return o->reduction == TG_MEAN ? tg_div(tg_sum(l), tg_sum(weight)) : reduced(op, l, o);
}

TgTensor *tg_sparse_cross_entropy_opt(TgTensor *x, TgTensor *labels, const TgLossOptions *opt) {
  TG_OPTIONS(tg_context(x), "sparse_cross_entropy", TgLossOptions, o, opt);
  if (!ctx_two("sparse_cross_entropy", x, labels)) return NULL;
  x = classes_last("sparse_cross_entropy", x, &o);
  return x ? label_loss("sparse_cross_entropy", tg_log_softmax(x), labels, &o) : NULL;
}

TgTensor *tg_nll_opt(TgTensor *logp, TgTensor *labels, const TgLossOptions *opt) {
  TG_OPTIONS(tg_context(logp), "nll", TgLossOptions, o, opt);
  logp = classes_last("nll", as_float(logp), &o);
  return logp && labels ? label_loss("nll", logp, labels, &o) : NULL;
}

static bool same_shape(const char *op, TgTensor *a, TgTensor *b) {
  TgContext *ctx = ctx_two(op, a, b);
  if (!ctx) return false;
  TG_REQUIRE_OR(ctx, a->uop->shape == b->uop->shape, false, TG_ERR_SHAPE, "%s: %s and target %s", op,
                SHAPE_OF(a), SHAPE_OF(b));
  return true;
}

TgTensor *tg_mse_opt(TgTensor *x, TgTensor *target, const TgLossOptions *opt) {
  TG_OPTIONS(tg_context(x), "mse", TgLossOptions, o, opt);
  TgContext *ctx = ctx_two("mse", x, target);
  if (!ctx || !shape_broadcast(ctx, "mse", x->uop->shape, target->uop->shape)) return NULL;
  return reduced("mse", tg_square(tg_sub(as_float(x), target)), &o);
}

/* At least -100, like PyTorch's, so that the loss is finite for a probability of exactly 0 or 1. */
static TgTensor *log_of(TgTensor *p) { return tg_clamp(tg_log(p), -100, INFINITY); }

/* The gradient by p is (p - y) / (p (1 - p)), with a denominator of at least 1e-12; the gradient by the
 * target is log(1 - p) - log(p). If p was rounded to 1, it is only known that 1 - p is less than half a
 * step. So 1 - p is taken to be at least that: with a smaller value, the slope of the sigmoid that p was
 * computed by, which is not 0, would make the product far too large. */
static TgStatus gradient_of_entropy(TgTensor *g, TgTensor *l, TgTensor *const *x, int n, TgTensor **out,
                                    void *user) {
  (void)l, (void)n, (void)user;
  TgTensor *p = as_wide(x[0]), *y = as_wide(x[1]), *rest = tg_rsub_scalar(p, 1);
  TgTensor *left = tg_clamp(rest, p && dt(p) == DT_F64 ? 0x1p-53 : 0x1p-24, INFINITY);
  TgTensor *slope = tg_div(tg_sub(p, y), tg_clamp(tg_mul(p, left), 1e-12, INFINITY));
  out[0] = as_narrow(tg_mul(g, slope), x[0]);
  out[1] = as_narrow(tg_mul(g, tg_sub(tg_log(rest), tg_log(p))), x[1]);
  return out[0] && out[1] ? TG_OK : tg_error(tg_context(g));
}

TgTensor *tg_binary_cross_entropy_opt(TgTensor *p, TgTensor *y, const TgLossOptions *opt) {
  TG_OPTIONS(tg_context(p), "binary_cross_entropy", TgLossOptions, o, opt);
  if (!same_shape("binary_cross_entropy", p, y)) return NULL;
  p = as_float(p);
  y = tensor_cast(y, tg_dtype(p));
  TgTensor *l = tg_add(tg_mul(y, log_of(p)), tg_mul(tg_rsub_scalar(y, 1), log_of(tg_rsub_scalar(p, 1))));
  l = tg_custom_gradient(tg_neg(l), (TgTensor *[]){p, y}, 2, gradient_of_entropy, NULL);
  return reduced("binary_cross_entropy", l, &o);
}

TgTensor *tg_binary_cross_entropy_logits_opt(TgTensor *x, TgTensor *y, const TgLossOptions *opt) {
  TG_OPTIONS(tg_context(x), "binary_cross_entropy_logits", TgLossOptions, o, opt);
  if (!same_shape("binary_cross_entropy_logits", x, y)) return NULL;
  TgDType d = tg_dtype(as_float(x));
  x = as_wide(x);
  y = tensor_cast(y, tg_dtype(x));
  if (!o.weight)
    return reduced("binary_cross_entropy_logits", tensor_cast(tg_sub(tg_softplus(x), tg_mul(x, y)), d), &o);
  /* the weight is for the positive term: w y softplus(-x) + (1 - y) softplus(x) */
  TgTensor *w = tensor_cast(o.weight, tg_dtype(x));
  TgTensor *l =
      tg_add(tg_mul(tg_mul(w, y), tg_softplus(tg_neg(x))), tg_mul(tg_rsub_scalar(y, 1), tg_softplus(x)));
  TG_REQUIRE(x->ctx, !l || l->uop->shape == x->uop->shape, TG_ERR_SHAPE,
             "binary_cross_entropy_logits: weights %s for %s", SHAPE_OF(o.weight), SHAPE_OF(x));
  return reduced("binary_cross_entropy_logits", tensor_cast(l, d), &o);
}

/* ---- normalisation */
static bool trailing(const char *op, TgTensor *x, const TgNormOptions *o, TgAxes *axes) {
  int n = TG_OPTION(*o, dims, o->weight ? rank(o->weight) : o->bias ? rank(o->bias) : 1);
  TG_REQUIRE_OR(x->ctx, n >= 1 && n <= rank(x), false, TG_ERR_SHAPE, "%s: the last %d axes of %s", op, n,
                SHAPE_OF(x));
  TgTensor *affine[] = {o->weight, o->bias};
  for (size_t i = 0; i < TG_COUNT(affine); i++) {
    TgTensor *t = affine[i];
    if (!t) continue;
    if (!ctx_two(op, x, t)) return false;
    TG_REQUIRE_OR(x->ctx,
                  rank(t) == n && !memcmp(dims(t), dims(x) + rank(x) - n, (size_t)n * sizeof(int64_t)), false,
                  TG_ERR_SHAPE, "%s: %s for the last %d axes of %s", op, SHAPE_OF(t), n, SHAPE_OF(x));
  }
  axes->n = n;
  for (int i = 0; i < n; i++)
    axes->v[i] = i - n;
  return true;
}

/* Applies weight and bias to the normalised value, which is f32 or wider, because squares of f16 overflow
 * at 256. The result is rounded once, to the dtype of x joined with those of weight and bias. */
static TgTensor *affine(TgTensor *wide, TgTensor *x, TgTensor *w, TgTensor *b) {
  if (!wide) return NULL;
  DType d = dtype_as_float(dt(x));
  if (w) {
    d = dtype_join(d, dt(w));
    wide = tg_mul(wide, w);
  }
  if (b) {
    d = dtype_join(d, dt(b));
    wide = tg_add(wide, b);
  }
  return tensor_cast(wide, dtype_public(d));
}

TgTensor *tg_layer_norm_opt(TgTensor *x, const TgNormOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), "layer_norm", TgNormOptions, o, opt);
  TgAxes axes = {0};
  if (!trailing("layer_norm", x, &o, &axes)) return NULL;
  TgTensor *w = as_wide(x), *d = tg_sub(w, tg_mean(w, .axis = axes, .keepdim = true));
  TgTensor *var = tg_mean(tg_mul(d, d), .axis = axes, .keepdim = true);
  return affine(tg_mul(d, tg_rsqrt(tg_add_scalar(var, TG_OPTION(o, eps, 1e-5)))), x, o.weight, o.bias);
}

TgTensor *tg_rms_norm_opt(TgTensor *x, const TgNormOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), "rms_norm", TgNormOptions, o, opt);
  TgAxes axes = {0};
  if (!trailing("rms_norm", x, &o, &axes)) return NULL;
  TgTensor *w = as_wide(x), *ms = tg_mean(tg_mul(w, w), .axis = axes, .keepdim = true);
  return affine(tg_mul(w, tg_rsqrt(tg_add_scalar(ms, TG_OPTION(o, eps, 1e-5)))), x, o.weight, o.bias);
}

/* Reshapes t (c) to (c, 1, ..) so that it broadcasts along axis 1 of x. */
static TgTensor *channel(const char *op, TgTensor *x, TgTensor *t) {
  TgContext *ctx = ctx_two(op, x, t);
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, rank(x) >= 2 && rank(t) == 1 && dims(t)[0] == dims(x)[1], TG_ERR_SHAPE,
             "%s: %s for the channels of %s", op, SHAPE_OF(t), SHAPE_OF(x));
  int64_t d[TG_MAX_RANK];
  for (int i = 1; i < rank(x); i++)
    d[i - 1] = i == 1 ? dims(x)[1] : 1;
  return tg_reshape(t, rank(x) - 1, d);
}

static TgTensor *batch_affine(const char *op, TgTensor *x, TgTensor *mean, TgTensor *var,
                              const TgNormOptions *o) {
  TgTensor *y =
      tg_mul(tg_sub(as_wide(x), mean), tg_rsqrt(tg_add_scalar(as_wide(var), TG_OPTION(*o, eps, 1e-5))));
  TgTensor *w = o->weight ? channel(op, x, o->weight) : NULL, *b = o->bias ? channel(op, x, o->bias) : NULL;
  if ((o->weight && !w) || (o->bias && !b)) return NULL;
  return affine(y, x, w, b);
}

TgTensor *tg_batch_norm_opt(TgTensor *x, TgTensor *mean, TgTensor *var, const TgNormOptions *opt) {
  TG_OPTIONS(tg_context(x), "batch_norm", TgNormOptions, o, opt);
  mean = channel("batch_norm", x, mean);
  var = mean ? channel("batch_norm", x, var) : NULL;
  if (!var) return NULL;
  DType d = dtype_join(dtype_as_float(dt(x)), dtype_join(dt(mean), dt(var)));
  return batch_affine("batch_norm", tensor_cast(x, dtype_public(d)), mean, var, &o);
}

TgTensor *tg_batch_norm_train_opt(TgTensor *x, TgTensor *rmean, TgTensor *rvar, const TgNormOptions *opt) {
  TG_OPTIONS(tg_context(x), "batch_norm_train", TgNormOptions, o, opt);
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, rank(x) >= 2, TG_ERR_SHAPE, "batch_norm: %s has no axis of channels", SHAPE_OF(x));
  if ((rmean && !channel("batch_norm", x, rmean)) || (rvar && !channel("batch_norm", x, rvar))) return NULL;
  TgAxes axes = {0};
  for (int i = 0; i < rank(x); i++)
    if (i != 1) axes.v[axes.n++] = i;
  UOpStore *st = x->ctx->store;
  int64_t n = 1;
  for (int i = 0; i < axes.n; i++)
    n = dim_mul(st, n, dims(x)[axes.v[i]]);
  double m = TG_OPTION(o, momentum, 0.1);
  TG_REQUIRE(x->ctx, dim_min(st, n) > 1, TG_ERR_VALUE,
             "batch_norm: training needs more than one value per channel in %s", SHAPE_OF(x));
  TgTensor *w = as_wide(x);
  TgTensor *mean = tg_mean(w, .axis = axes);
  TgTensor *cm = channel("batch_norm", w, mean);
  TgTensor *d = tg_sub(w, cm);
  TgTensor *var = tg_mean(tg_mul(d, d), .axis = axes), *cv = channel("batch_norm", x, var);
  TgTensor *count = tg_size_tensor(x->ctx, n, tg_dtype(w)),
           *unbiased = tg_div(count, tg_sub_scalar(count, 1));
  TgTensor *old[] = {rmean, rvar}, *now[] = {tg_detach(mean), tg_mul(tg_detach(var), unbiased)};
  for (int i = 0; i < 2; i++) {
    if (!old[i]) continue;
    TgTensor *next = tg_add(tg_mul_scalar(tg_detach(old[i]), 1 - m),
                            tg_mul_scalar(tensor_cast(now[i], tg_dtype(old[i])), m));
    if (!tg_assign(old[i], next)) return NULL;
    pending_add(old[i]);
  }
  return batch_affine("batch_norm", x, cm, cv, &o);
}

/* The mask is a condition c, or a float that is added to the scores. Where c is false, neither the score
 * nor the value has any effect: a NaN there is not passed on, a row without any true place is 0, and a
 * compiler may skip those places. */
TgTensor *tg_scaled_dot_product_attention_opt(TgTensor *q, TgTensor *k, TgTensor *v,
                                              const TgAttentionOptions *opt) {
  TgContext *ctx = ctx_two("attention", q, k);
  if (!ctx || !ctx_two("attention", q, v)) return NULL;
  TG_OPTIONS(ctx, "scaled_dot_product_attention", TgAttentionOptions, o, opt);
  if (o.mask && !ctx_two("attention", q, o.mask)) return NULL;
  TG_REQUIRE(ctx,
             rank(q) >= 2 && rank(k) >= 2 && rank(v) >= 2 && dim_at(q, -1) == dim_at(k, -1) &&
                 dim_at(k, -2) == dim_at(v, -2),
             TG_ERR_SHAPE, "attention: q %s, k %s, v %s", SHAPE_OF(q), SHAPE_OF(k), SHAPE_OF(v));
  if (!last_numbers(q, "attention", rank(q) - 1)) return NULL;
  if (o.grouped) { /* h query heads share h / g key and value heads */
    bool ok = rank(q) >= 3 && rank(k) >= 3 && rank(v) >= 3 && dim_at(q, -3) >= 0 && dim_at(k, -3) > 0 &&
              dim_at(q, -3) % dim_at(k, -3) == 0 && dim_at(k, -3) == dim_at(v, -3);
    TG_REQUIRE(ctx, ok, TG_ERR_SHAPE, "attention: heads of q %s in groups for k %s, v %s", SHAPE_OF(q),
               SHAPE_OF(k), SHAPE_OF(v));
    int64_t times = dim_at(q, -3) / dim_at(k, -3);
    k = tg_repeat_interleave(k, times, -3);
    v = tg_repeat_interleave(v, times, -3);
    if (!k || !v) return NULL;
  }
  TgDType wide = dtype_public(sum_dtype(dtype_as_float(dtype_join(dt(q), dt(k)))));
  TgDType out = dtype_public(dtype_as_float(dtype_join(dtype_join(dt(q), dt(k)), dt(v))));
  double scale = TG_OPTION(o, scale, 1 / sqrt((double)TG_MAX(dim_at(q, -1), 1)));
  TgTensor *s =
      tg_mul_scalar(tg_matmul(tensor_cast(q, wide), tg_transpose(tensor_cast(k, wide), -1, -2)), scale);
  TgTensor *c = NULL;
  if (!s) return NULL;
  TG_REQUIRE(ctx, !o.mask || dt(o.mask) == DT_BOOL || dtype_is_float(dt(o.mask)), TG_ERR_DTYPE,
             "attention: a mask of %s, which says neither where (bool) nor what is added (a float)",
             dtype_name(dt(o.mask)));
  if (o.causal) c = tg_tril(tg_full(ctx, TG_SHAPE(dim_at(q, -2), dim_at(k, -2)), 1, .dtype = TG_BOOL), 0);
  if (o.mask && tg_dtype(o.mask) == TG_BOOL)
    c = c ? tg_bitand(c, o.mask) : o.mask;
  else if (o.mask)
    s = tg_add(s, tensor_cast(o.mask, wide));
  if (c) s = tg_where(c, s, tg_scalar_like(s, -INFINITY));
  /* A row may have no true place: all its scores are -inf, or there are no keys. */
  bool empty = c || o.mask || dim_at(k, -2) == 0;
  /* softmax(s) v, divided last, so that each result is divided once instead of each weight that it is
   * summed from. */
  TgTensor *most = s ? tg_detach(tg_max(s, .axis = TG_AXES(-1), .keepdim = true)) : NULL;
  if (empty && most)
    most = tg_where(tg_eq(most, tg_scalar_like(most, -INFINITY)), tg_scalar_like(most, 0), most);
  TgTensor *e = tg_exp(tg_sub(s, most)), *y;
  if (c && e)
    e = tg_where(c, e, tg_scalar_like(e, 0)); /* masked again, so that the compiler can skip the other keys
                                               * in the sums */
  TgTensor *sum = tg_sum(e, .axis = TG_AXES(-1), .keepdim = true);
  if (o.dropout != 0) e = tg_dropout(e, o.dropout);
  if (!e || !sum) return NULL;
  if (c) { /* e v, summed where c holds: (.., l, 1, s) by (.., 1, e, s) */
    TgTensor *w = tg_mul(tg_unsqueeze(e, -2), tg_unsqueeze(tg_transpose(tensor_cast(v, wide), -1, -2), -3));
    y = tensor_sum(tg_where(tg_unsqueeze(c, -2), w, tg_scalar_like(w, 0)), 1, (int[]){-1});
  } else
    y = tg_matmul(e, tensor_cast(v, wide));
  if (empty) sum = tg_where(tg_eq(sum, tg_scalar_like(sum, 0)), tg_scalar_like(sum, 1), sum);
  return tensor_cast(tg_div(y, sum), out);
}
