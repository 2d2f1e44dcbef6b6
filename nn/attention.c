/* attention.c: attention with several heads and its projections, as torch's nn.MultiheadAttention. In:
 * queries, keys and values (t, b, width). Out: (t, b, width), and the weights if they are requested. */
#include "nn_private.h"
#include <math.h>
#include <stdio.h>

/* A parameter with uniform values within +- sqrt(6 / (rows + columns)). */
static TgTensor *glorot(TgContext *ctx, int64_t rows, int64_t columns) {
  return nn_uniform(ctx, TG_SHAPE(rows, columns), sqrt(6.0 / (double)(rows + columns)));
}

TgMultiheadAttention tg_multihead_attention_new_opt(TgContext *ctx, int64_t width, int64_t heads,
                                                    const TgMultiheadOptions *given) {
  static const char name[] = "multihead_attention";
  TgMultiheadAttention l = {.width = width, .heads = heads};
  if (NN_OPTIONS(ctx, "multihead_attention_new", TgMultiheadOptions, &l.options, given)) return l;
  TgMultiheadOptions *o = &l.options;
  o->kdim = TG_OPTION(*o, kdim, width);
  o->vdim = TG_OPTION(*o, vdim, width);
  o->set = NULL;
  if (!ctx || !nn_positive(ctx, name, width, heads) || !nn_positive(ctx, name, o->kdim, o->vdim)) return l;
  if (width % heads || width > INT32_MAX) {
    nn_refuse(ctx, TG_ERR_VALUE, "%s: a width of %lld for %lld heads", name, width, heads);
    return l;
  }
  if (!(o->dropout >= 0 && o->dropout <= 1)) {
    nn_refuse(ctx, TG_ERR_VALUE, "%s: the dropout must be within 0 and 1", name, 0, 0);
    return l;
  }
  if (o->kdim == width && o->vdim == width)
    l.in_proj_weight = glorot(ctx, 3 * width, width);
  else {
    l.q_proj_weight = glorot(ctx, width, width);
    l.k_proj_weight = glorot(ctx, width, o->kdim);
    l.v_proj_weight = glorot(ctx, width, o->vdim);
  }
  l.in_proj_bias = nn_zeros(ctx, !o->plain, TG_SHAPE(3 * width));
  l.out_proj.weight = nn_within(ctx, TG_SHAPE(width, width), width);
  l.out_proj.bias = nn_zeros(ctx, !o->plain, TG_SHAPE(width));
  return l;
}

/* Returns projection i of x (b, t, ..), divided into heads: (b, heads, t, width / heads). */
static TgTensor *projected(const TgMultiheadAttention *l, TgTensor *x, int i) {
  TgTensor *own[] = {l->q_proj_weight, l->k_proj_weight, l->v_proj_weight};
  int64_t from = i * l->width, to = from + l->width;
  TgTensor *w = l->in_proj_weight ? tg_slice(l->in_proj_weight, 0, from, to) : own[i];
  TgTensor *y = tg_linear(x, w, l->in_proj_bias ? tg_slice(l->in_proj_bias, 0, from, to) : NULL);
  if (!y) return NULL;
  return tg_transpose(
      tg_reshape(y, TG_SHAPE(tg_size_of(x, 0), tg_size_of(x, 1), l->heads, l->width / l->heads)), 1, 2);
}

/* Returns softmax(q k / sqrt(d) + mask), averaged over the heads: (b, t, s). */
static TgTensor *weights_of(const TgMultiheadRun *o, TgTensor *q, TgTensor *k) {
  TgTensor *score = tg_mul_scalar(tg_matmul(q, tg_transpose(k, -2, -1)), 1 / sqrt((double)tg_dim(q, -1)));
  TgTensor *mask = o->mask;
  if (!score) return NULL;
  if (o->causal)
    mask = tg_tril(tg_full(tg_context(q), TG_SHAPE(tg_size_of(q, -2), tg_size_of(k, -2)), 1, .dtype = TG_BOOL,
                           .device = tg_device(q)),
                   0);
  if (mask && tg_dtype(mask) == TG_BOOL)
    score = tg_where(mask, score, tg_scalar_like(score, -INFINITY));
  else if (mask)
    score = tg_add(score, mask);
  return tg_mean(tg_softmax(score), .axis = TG_AXES(1));
}

/* Returns x of shape (t, b, width), (b, t, width) or (t, width) as (b, t, width). */
static TgTensor *batch_first(const TgMultiheadAttention *l, TgTensor *x) {
  if (tg_ndim(x) == 2) return tg_unsqueeze(x, 0);
  return l->options.batch_first ? x : tg_transpose(x, 0, 1);
}

static bool fits(const TgMultiheadAttention *l, TgTensor *q, TgTensor *k, TgTensor *v) {
  int n = tg_ndim(q), batch = l->options.batch_first ? 0 : 1, time = 1 - batch;
  bool ok = (n == 2 || n == 3) && tg_ndim(k) == n && tg_ndim(v) == n && tg_dim(q, -1) == l->width &&
            tg_dim(k, -1) == l->options.kdim && tg_dim(v, -1) == l->options.vdim;
  if (ok && n == 3)
    ok = tg_size_of(k, batch) == tg_size_of(q, batch) && tg_size_of(v, batch) == tg_size_of(q, batch) &&
         tg_size_of(k, time) == tg_size_of(v, time);
  if (ok && n == 2) ok = tg_size_of(k, 0) == tg_size_of(v, 0);
  if (ok) return true;
  char text[300], shape[3][80];
  TgTensor *t[] = {q, k, v};
  for (int i = 0; i < 3; i++)
    snprintf(shape[i], sizeof shape[i], "%s", tg_describe(t[i]));
  snprintf(text, sizeof text, "multihead_attention: q is %s, k %s, v %s", shape[0], shape[1], shape[2]);
  tg_set_error(tg_context(q), TG_ERR_SHAPE, text);
  return false;
}

static TgTensor *attention_run(const TgMultiheadAttention *l, TgTensor *q, TgTensor *k, TgTensor *v,
                               const TgMultiheadRun *given) {
  TgMultiheadRun o;
  if (NN_OPTIONS(tg_context(q), "multihead_attention_run", TgMultiheadRun, &o, given)) return NULL;
  if (o.weights) *o.weights = NULL;
  if (!q || !k || !v || !l->out_proj.weight || !fits(l, q, k, v)) return NULL;
  bool batched = tg_ndim(q) == 3;
  if (o.causal && o.mask) {
    nn_refuse(tg_context(q), TG_ERR_VALUE, "%s: causal, and a mask", "multihead_attention", 0, 0);
    return NULL;
  }
  TgTensor *heads[] = {projected(l, batch_first(l, q), 0), projected(l, batch_first(l, k), 1),
                       projected(l, batch_first(l, v), 2)};
  double dropout = tg_training(tg_context(q)) ? l->options.dropout : 0;
  TgTensor *y = tg_scaled_dot_product_attention(heads[0], heads[1], heads[2], .mask = o.mask,
                                                .causal = o.causal, .dropout = dropout);
  if (!y) return NULL;
  y = tg_reshape(tg_transpose(y, 1, 2), TG_SHAPE(tg_size_of(y, 0), tg_size_of(y, 2), l->width));
  y = tg_linear(y, l->out_proj.weight, l->out_proj.bias);
  if (o.weights) {
    TgTensor *w = weights_of(&o, heads[0], heads[1]);
    if (!(*o.weights = batched ? w : tg_squeeze(w, 0))) return NULL;
  }
  return !batched ? tg_squeeze(y, 0) : l->options.batch_first ? y : tg_transpose(y, 0, 1);
}

TgTensor *tg_multihead_attention_run_opt(const TgMultiheadAttention *l, TgTensor *q, TgTensor *k, TgTensor *v,
                                         const TgMultiheadRun *given) {
  if (!l) return tg_set_error(tg_context(q), TG_ERR_VALUE, "MultiheadAttention: the layer is NULL"), NULL;
  bool named = nn_name_begin(q, "MultiheadAttention");
  TgTensor *y = attention_run(l, q, k, v, given);
  return nn_name_end(q, named, y);
}

static int multihead_attention_describe(const void *layer, char *text, size_t cap) {
  const TgMultiheadAttention *l = layer;
  int n = 0;
  nn_text(text, cap, &n, "%lld, %lld", (long long)l->width, (long long)l->heads);
  if (l->options.kdim != l->width) nn_text(text, cap, &n, ", kdim=%lld", (long long)l->options.kdim);
  if (l->options.vdim != l->width) nn_text(text, cap, &n, ", vdim=%lld", (long long)l->options.vdim);
  nn_text(text, cap, &n, ", bias=%s", nn_truth(l->in_proj_bias));
  if (l->options.batch_first) nn_text(text, cap, &n, ", batch_first=True");
  if (l->options.dropout > 0) nn_text(text, cap, &n, ", dropout=%g", l->options.dropout);
  return n;
}

LAYER(TgMultiheadAttention, multihead_attention, "MultiheadAttention",
      TG_PARAMETER(TgMultiheadAttention, in_proj_weight), TG_PARAMETER(TgMultiheadAttention, q_proj_weight),
      TG_PARAMETER(TgMultiheadAttention, k_proj_weight), TG_PARAMETER(TgMultiheadAttention, v_proj_weight),
      TG_PARAMETER(TgMultiheadAttention, in_proj_bias),
      TG_LAYER(TgMultiheadAttention, out_proj, tg_linear_module))
