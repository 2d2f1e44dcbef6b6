/* functional.c: losses, normalisation, attention. Compositions of the other files. */
#include "tensor/front.h"

static TgTensor *as_float(TgTensor *x) { return x && !dtype_is_float(dt(x)) ? tg_cast(x, TG_F32) : x; }

/* ---- losses */
static TgTensor *reduced(TgTensor *l, TgReduction how, int64_t batch) {
  if (!l || how == TG_NONE) return l;
  TgTensor *s = tg_sum(l);
  if (how == TG_SUM || !s) return s;
  if (!dim_symbolic(batch)) return tg_div_scalar(s, (double)batch);
  UOpStore *st = s->ctx->store;
  return tg_div(s, tensor_new(s->ctx, u_size(st, batch, dt(s), s->uop->shape)));
}
TgTensor *tg_cross_entropy_opt(TgTensor *x, TgTensor *target, const TgLossOptions *opt) {
  TgContext *ctx = ctx_two("cross_entropy", x, target);
  if (!ctx) return NULL;
  TG_OPTIONS(TgLossOptions, o, opt);
  if (o.axis.n == 0) o.axis = (TgAxes){1, {-1}};
  TG_REQUIRE(ctx, x->uop->shape == target->uop->shape && rank(x) > 0, TG_ERR_SHAPE, "cross_entropy: logits %s and target %s", SHAPE_OF(x), SHAPE_OF(target));
  int a = axis_get(ctx, "cross_entropy", o.axis.v[0], rank(x));
  if (a < 0) return NULL;
  TG_REQUIRE(ctx, o.axis.n == 1, TG_ERR_VALUE, "cross_entropy: more than one axis");
  double s = o.label_smoothing;
  int64_t size = dims(x)[a];
  TG_REQUIRE(ctx, s == 0 || !dim_symbolic(size), TG_ERR_SHAPE, "cross_entropy: label smoothing over axis %d of %s, whose size is symbolic", a, SHAPE_OF(x));
  double classes = (double)size;
  x = as_float(x), target = tg_cast(target, tg_dtype(x));
  if (s != 0) target = tg_add_scalar(tg_mul_scalar(target, 1 - s), s / classes);
  TgTensor *l = tg_neg(tensor_sum(tg_mul(target, tg_log_softmax(x, .axis = o.axis)), 1, &a, false));
  return reduced(l, o.reduction, nelem(l));
}
static TgTensor *label_loss(const char *op, TgTensor *logp, TgTensor *labels, const TgLossOptions *o) {
  TgContext *ctx = ctx_two(op, logp, labels);
  if (!ctx) return NULL;
  int r = rank(labels);
  bool ok = rank(logp) == r + 1;
  for (int i = 0; ok && i < r; i++) ok = dims(logp)[i] == dims(labels)[i];
  TG_REQUIRE(ctx, ok, TG_ERR_SHAPE, "%s: scores %s and labels %s", op, SHAPE_OF(logp), SHAPE_OF(labels));
  TG_REQUIRE(ctx, is_index_dtype(labels), TG_ERR_DTYPE, "%s: labels of %s", op, dtype_name(dt(labels)));
  TgTensor *at = tg_unsqueeze(labels, -1), *l = tg_neg(tg_squeeze(tensor_new(ctx, at ? u_pick(ctx->store, logp->uop, r, at->uop) : NULL), -1));
  double s = o->label_smoothing;
  if (s != 0) l = tg_add(tg_mul_scalar(l, 1 - s), tg_mul_scalar(tg_neg(tg_mean(logp, .axis = TG_AXES(-1))), s));
  return reduced(l, o->reduction, nelem(labels));
}
TgTensor *tg_sparse_cross_entropy_opt(TgTensor *x, TgTensor *labels, const TgLossOptions *opt) {
  TG_OPTIONS(TgLossOptions, o, opt);
  if (!ctx_two("sparse_cross_entropy", x, labels)) return NULL;
  return label_loss("sparse_cross_entropy", tg_log_softmax(x), labels, &o);
}
TgTensor *tg_nll_opt(TgTensor *logp, TgTensor *labels, const TgLossOptions *opt) {
  TG_OPTIONS(TgLossOptions, o, opt);
  return label_loss("nll", as_float(logp), labels, &o);
}
static bool same_shape(const char *op, TgTensor *a, TgTensor *b) {
  TgContext *ctx = ctx_two(op, a, b);
  if (!ctx) return false;
  TG_REQUIRE_OR(ctx, a->uop->shape == b->uop->shape, false, TG_ERR_SHAPE, "%s: %s and target %s", op, SHAPE_OF(a), SHAPE_OF(b));
  return true;
}
TgTensor *tg_mse_opt(TgTensor *x, TgTensor *target, const TgLossOptions *opt) {
  TG_OPTIONS(TgLossOptions, o, opt);
  if (!same_shape("mse", x, target)) return NULL;
  return reduced(tg_square(tg_sub(as_float(x), target)), o.reduction, nelem(x));
}
TgTensor *tg_binary_cross_entropy_opt(TgTensor *p, TgTensor *y, const TgLossOptions *opt) {
  TG_OPTIONS(TgLossOptions, o, opt);
  if (!same_shape("binary_cross_entropy", p, y)) return NULL;
  p = as_float(p), y = tg_cast(y, tg_dtype(p));
  TgTensor *l = tg_add(tg_mul(y, tg_log(p)), tg_mul(tg_rsub_scalar(y, 1), tg_log(tg_rsub_scalar(p, 1))));
  return reduced(tg_neg(l), o.reduction, nelem(p));
}
TgTensor *tg_binary_cross_entropy_logits_opt(TgTensor *x, TgTensor *y, const TgLossOptions *opt) {
  TG_OPTIONS(TgLossOptions, o, opt);
  if (!same_shape("binary_cross_entropy_logits", x, y)) return NULL;
  x = as_float(x), y = tg_cast(y, tg_dtype(x));
  return reduced(tg_sub(tg_softplus(x), tg_mul(x, y)), o.reduction, nelem(x));
}

/* ---- normalisation */
static bool trailing(const char *op, TgTensor *x, const TgNormOptions *o, TgAxes *axes) {
  int n = o->dims ? o->dims : o->weight ? rank(o->weight) : o->bias ? rank(o->bias) : 1;
  TG_REQUIRE_OR(x->ctx, n >= 1 && n <= rank(x), false, TG_ERR_SHAPE, "%s: the last %d axes of %s", op, n, SHAPE_OF(x));
  TgTensor *affine[] = {o->weight, o->bias};
  for (size_t i = 0; i < TG_COUNT(affine); i++) {
    TgTensor *t = affine[i];
    if (!t) continue;
    if (!ctx_two(op, x, t)) return false;
    TG_REQUIRE_OR(x->ctx, rank(t) == n && !memcmp(dims(t), dims(x) + rank(x) - n, (size_t)n * sizeof(int64_t)), false, TG_ERR_SHAPE,
                  "%s: %s for the last %d axes of %s", op, SHAPE_OF(t), n, SHAPE_OF(x));
  }
  axes->n = n;
  for (int i = 0; i < n; i++) axes->v[i] = i - n;
  return true;
}
static TgTensor *affine(TgTensor *x, TgTensor *w, TgTensor *b) {
  if (w) x = tg_mul(x, w);
  return b ? tg_add(x, b) : x;
}
TgTensor *tg_layer_norm_opt(TgTensor *x, const TgNormOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(TgNormOptions, o, opt);
  TgAxes axes = {0};
  x = as_float(x);
  if (!x || !trailing("layer_norm", x, &o, &axes)) return NULL;
  TgTensor *d = tg_sub(x, tg_mean(x, .axis = axes, .keepdim = true));
  TgTensor *var = tg_mean(tg_mul(d, d), .axis = axes, .keepdim = true);
  return affine(tg_mul(d, tg_rsqrt(tg_add_scalar(var, o.eps != 0 ? o.eps : 1e-5))), o.weight, o.bias);
}
TgTensor *tg_rms_norm_opt(TgTensor *x, const TgNormOptions *opt) {
  if (!x) return NULL;
  TG_OPTIONS(TgNormOptions, o, opt);
  TgAxes axes = {0};
  x = as_float(x);
  if (!x || !trailing("rms_norm", x, &o, &axes)) return NULL;
  TgTensor *ms = tg_mean(tg_mul(x, x), .axis = axes, .keepdim = true);
  return affine(tg_mul(x, tg_rsqrt(tg_add_scalar(ms, o.eps != 0 ? o.eps : 1e-5))), o.weight, o.bias);
}
/* t (c) seen as (c, 1, ..) so that it broadcasts along axis 1 of x */
static TgTensor *channel(const char *op, TgTensor *x, TgTensor *t) {
  TgContext *ctx = ctx_two(op, x, t);
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, rank(x) >= 2 && rank(t) == 1 && dims(t)[0] == dims(x)[1], TG_ERR_SHAPE, "%s: %s for the channels of %s", op, SHAPE_OF(t), SHAPE_OF(x));
  int64_t d[TG_MAX_RANK];
  for (int i = 1; i < rank(x); i++) d[i - 1] = i == 1 ? dims(x)[1] : 1;
  return tg_reshape(t, rank(x) - 1, d);
}
static TgTensor *batch_affine(const char *op, TgTensor *x, TgTensor *mean, TgTensor *var, const TgNormOptions *o) {
  TgTensor *y = tg_mul(tg_sub(x, mean), tg_rsqrt(tg_add_scalar(var, o->eps != 0 ? o->eps : 1e-5)));
  TgTensor *w = o->weight ? channel(op, x, o->weight) : NULL, *b = o->bias ? channel(op, x, o->bias) : NULL;
  if ((o->weight && !w) || (o->bias && !b)) return NULL;
  return affine(y, w, b);
}
TgTensor *tg_batch_norm_opt(TgTensor *x, TgTensor *mean, TgTensor *var, const TgNormOptions *opt) {
  TG_OPTIONS(TgNormOptions, o, opt);
  x = as_float(x);
  mean = channel("batch_norm", x, mean), var = mean ? channel("batch_norm", x, var) : NULL;
  return var ? batch_affine("batch_norm", x, mean, var, &o) : NULL;
}
TgTensor *tg_batch_norm_train_opt(TgTensor *x, TgTensor *rmean, TgTensor *rvar, const TgNormOptions *opt) {
  TG_OPTIONS(TgNormOptions, o, opt);
  TG_NUMBERS(x, "batch_norm");
  x = as_float(x);
  if (!channel("batch_norm", x, rmean) || !channel("batch_norm", x, rvar)) return NULL;
  TgAxes axes = {0};
  for (int i = 0; i < rank(x); i++) if (i != 1) axes.v[axes.n++] = i;
  double n = (double)(nelem(x) / TG_MAX(dims(x)[1], 1)), m = o.momentum != 0 ? o.momentum : 0.1;
  TG_REQUIRE(x->ctx, n > 1, TG_ERR_VALUE, "batch_norm: training needs more than one value per channel in %s", SHAPE_OF(x));
  TgTensor *mean = tg_mean(x, .axis = axes), *cm = channel("batch_norm", x, mean), *d = tg_sub(x, cm);
  TgTensor *var = tg_mean(tg_mul(d, d), .axis = axes), *cv = channel("batch_norm", x, var);
  TgTensor *old[] = {rmean, rvar}, *now[] = {tg_detach(mean), tg_mul_scalar(tg_detach(var), n / (n - 1))};
  for (int i = 0; i < 2; i++) {
    TgTensor *next = tg_add(tg_mul_scalar(tg_detach(old[i]), 1 - m), tg_mul_scalar(tg_cast(now[i], tg_dtype(old[i])), m));
    if (!tg_assign(old[i], next)) return NULL;
    pending_add(old[i]);
  }
  return batch_affine("batch_norm", x, cm, cv, &o);
}

TgTensor *tg_scaled_dot_product_attention_opt(TgTensor *q, TgTensor *k, TgTensor *v, const TgAttentionOptions *opt) {
  TgContext *ctx = ctx_two("attention", q, k);
  if (!ctx || !ctx_two("attention", q, v)) return NULL;
  TG_OPTIONS(TgAttentionOptions, o, opt);
  TG_REQUIRE(ctx, rank(q) >= 2 && rank(k) >= 2 && rank(v) >= 2 && dim_at(q, -1) == dim_at(k, -1) && dim_at(k, -2) == dim_at(v, -2) && !dim_symbolic(dim_at(q, -1)), TG_ERR_SHAPE,
             "attention: q %s, k %s, v %s", SHAPE_OF(q), SHAPE_OF(k), SHAPE_OF(v));
  double scale = o.scale != 0 ? o.scale : 1 / sqrt((double)TG_MAX(dim_at(q, -1), 1));
  TgTensor *s = tg_mul_scalar(tg_matmul(q, tg_transpose(k, -1, -2)), scale), *low = tg_scalar_like(s, -INFINITY);
  if (!s) return NULL;
  if (o.causal) {
    TgTensor *see = tg_tril(tg_full(ctx, TG_SHAPE(dim_at(q, -2), dim_at(k, -2)), 1, .dtype = TG_BOOL), 0);
    s = tg_where(see, s, low);
  }
  if (o.mask) s = tg_dtype(o.mask) == TG_BOOL ? tg_where(o.mask, s, low) : tg_add(s, o.mask);
  TgTensor *p = tg_softmax(s);
  return tg_matmul(o.dropout != 0 ? tg_dropout(p, o.dropout) : p, v);
}
