/* graph.c: the graph of a step, or of a part of it. In: ids (n), and the place of the token whose logits are
 * wanted. Out: its logits. Keys and values of the n tokens are written to the cache at the variable
 * `position`, and every token sees what is in the cache up to itself. The architecture's row says which
 * parts there are. */
#include "model_private.h"
#include <math.h>

static TgTensor *normed(const TgLlm *m, TgTensor *x, TgTensor *w, TgTensor *b) {
  if (!w) return x;
  w = tg_cast(w, TG_F32);
  if (!m->arch->layer_norm) return tg_rms_norm(x, .weight = w, .eps = m->k.eps);
  return tg_layer_norm(x, .weight = w, .bias = b ? tg_cast(b, TG_F32) : NULL, .eps = m->k.eps);
}

static TgTensor *part_normed(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmWeight w) {
  return normed(m, x, l->w[w], l->b[w]);
}

static TgTensor *product(const LlmLayer *l, TgTensor *x, LlmWeight w) {
  return tg_linear(x, l->w[w], l->b[w] ? tg_cast(l->b[w], TG_F32) : NULL);
}

/* cap tanh(x / cap): what is far beyond cap stays below it */
static TgTensor *capped(TgTensor *x, double cap) {
  return cap > 0 ? tg_mul_scalar(tg_tanh(tg_div_scalar(x, cap)), cap) : x;
}

/* x (n, heads, size) at the positions of this step: partners are swapped by a flip, their signs stand in the
 * table of sines. */
static TgTensor *rotated(const TgLlm *m, const LlmLayer *l, TgTensor *x, int64_t n) {
  if (m->arch->rope == ROPE_NONE || !x) return x;
  const LlmRotation *t = l->windowed && m->local_rotation.cos ? &m->local_rotation : &m->rotation;
  int64_t heads = tg_dim(x, 1), size = tg_dim(x, 2), r = m->k.rotary, at = tg_size(m->position);
  int64_t end = tg_size_add(m->ctx, at, n);
  TgTensor *c = tg_unsqueeze(tg_slice(t->cos, 0, at, end), 1),
           *s = tg_unsqueeze(tg_slice(t->sin, 0, at, end), 1);
  TgTensor *y = r < size ? tg_slice(x, 2, 0, r) : x;
  bool pairs = m->arch->rope == ROPE_PAIRS;
  TgTensor *two =
      pairs ? tg_reshape(y, TG_SHAPE(n, heads, r / 2, 2)) : tg_reshape(y, TG_SHAPE(n, heads, 2, r / 2));
  TgTensor *swapped = tg_reshape(tg_flip(two, 1, &(int64_t){pairs ? 3 : 2}), TG_SHAPE(n, heads, r));
  y = tg_add(tg_mul(y, c), tg_mul(swapped, s));
  return r < size ? tg_cat(TG_TENSORS(y, tg_slice(x, 2, r, size)), 2) : y;
}

/* ---- attention */
typedef struct Heads {
  TgTensor *q, *k, *v; /* (n, heads, size) */
} Heads;

static Heads heads_of(const TgLlm *m, const LlmLayer *l, TgTensor *x, int64_t n) {
  const LlmNumbers *k = &m->k;
  int64_t nq = k->heads * k->head, nk = k->kv_heads * k->head, nv = k->kv_heads * k->value_head;
  TgTensor *all = l->w[W_QKV] ? product(l, x, W_QKV) : NULL;
  TgTensor *q = all ? tg_slice(all, 1, 0, nq) : product(l, x, W_Q);
  TgTensor *key = all ? tg_slice(all, 1, nq, nq + nk) : product(l, x, W_K);
  TgTensor *v = all ? tg_slice(all, 1, nq + nk, nq + nk + nv) : product(l, x, W_V);
  Heads h = {tg_reshape(q, TG_SHAPE(n, k->heads, k->head)),
             tg_reshape(key, TG_SHAPE(n, k->kv_heads, k->head)),
             tg_reshape(v, TG_SHAPE(n, k->kv_heads, k->value_head))};
  h.q = rotated(m, l, part_normed(m, l, h.q, W_Q_NORM), n);
  h.k = rotated(m, l, part_normed(m, l, h.k, W_K_NORM), n);
  return h;
}

/* Where sequence `which` (NULL: the only one) begins in the cache. */
static int64_t begins(const TgVariable *which) { return which ? tg_size(which) : 0; }

/* Its cache: (kv heads, room, size). */
static TgTensor *of_sequence(const TgLlm *m, TgTensor *cache, const TgVariable *which) {
  int64_t at = begins(which);
  return tg_squeeze(tg_slice(cache, 0, at, tg_size_add(m->ctx, at, 1)), 0);
}

/* values (kv heads, n, size) to places at .. at + n - 1 of this sequence's cache */
static bool cache_put(const TgLlm *m, TgTensor *cache, int64_t at, int64_t n, TgTensor *values) {
  int64_t row = begins(m->which);
  const int64_t begin[] = {row, 0, at, 0}, end[] = {tg_size_add(m->ctx, row, 1), tg_dim(cache, 1),
                                                    tg_size_add(m->ctx, at, n), tg_dim(cache, 3)};
  return tg_assign_slice(cache, begin, end, tg_unsqueeze(values, 0)) != NULL;
}

/* rows (n, kv heads, size) to the cache, at this step's positions */
static bool remember(const TgLlm *m, TgTensor *cache, TgTensor *rows, int64_t n) {
  return cache_put(m, cache, tg_size(m->position), n, tg_cast(tg_transpose(rows, 0, 1), m->cache));
}

TgStatus llm_copy(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const TgLlm *m = user;
  (void)in, (void)nin, (void)out, (void)nout;
  for (int64_t i = 0; i < m->k.layers; i++) {
    TgTensor *cache[] = {m->layer[i].keys, m->layer[i].values};
    for (int c = 0; c < 2; c++)
      if (!cache_put(m, cache[c], 0, m->room, of_sequence(m, cache[c], m->other))) return tg_error(ctx);
  }
  return TG_OK;
}

/* Which of the keys 0 .. position + n - 1 a token may see: (n, seen). NULL: all of them. */
static TgTensor *mask_of(const TgLlm *m, const LlmLayer *l, int64_t n, int64_t seen) {
  bool windowed = l->windowed && m->k.window < m->room;
  if (n == 1 && !windowed) return NULL;
  TgTensor *key = tg_slice(tg_arange(m->ctx, 0, (double)m->room), 0, 0, seen);
  TgTensor *query = tg_add(tg_arange(m->ctx, 0, (double)n), tg_variable_tensor(m->position));
  key = tg_unsqueeze(key, 0);
  query = tg_unsqueeze(query, 1);
  TgTensor *mask = tg_le(key, query);
  if (windowed) mask = tg_mul(mask, tg_gt(tg_add_scalar(key, (double)m->k.window), query));
  return mask;
}

/* Heads share keys and values in groups: a group's queries are rows of one product. */
static TgTensor *attended(const TgLlm *m, const LlmLayer *l, TgTensor *q, int64_t n) {
  const LlmNumbers *k = &m->k;
  int64_t seen = tg_size_add(m->ctx, tg_size(m->position), n), group = k->heads / k->kv_heads;
  TgTensor *keys = tg_cast(tg_slice(of_sequence(m, l->keys, m->which), 1, 0, seen), TG_F32);
  TgTensor *values = tg_cast(tg_slice(of_sequence(m, l->values, m->which), 1, 0, seen), TG_F32);
  q = tg_permute(tg_reshape(q, TG_SHAPE(n, k->kv_heads, group, k->head)), 4, (const int64_t[]){1, 2, 0, 3});
  TgTensor *score = tg_matmul(tg_mul_scalar(q, k->scale), tg_unsqueeze(tg_transpose(keys, 1, 2), 1));
  score = capped(score, k->attention_cap); /* (kv heads, group, n, seen) */
  TgTensor *mask = mask_of(m, l, n, seen);
  if (mask) score = tg_where(mask, score, tg_scalar_like(score, -INFINITY));
  TgTensor *y = tg_matmul(tg_softmax(score), tg_unsqueeze(values, 1));
  return tg_reshape(tg_permute(y, 4, (const int64_t[]){2, 0, 1, 3}), TG_SHAPE(n, k->heads * k->value_head));
}

static TgTensor *attention(const TgLlm *m, const LlmLayer *l, TgTensor *x, int64_t n) {
  Heads h = heads_of(m, l, part_normed(m, l, x, W_ATTN_NORM), n);
  if (!remember(m, l->keys, h.k, n) || !remember(m, l->values, h.v, n)) return NULL;
  TgTensor *y = product(l, attended(m, l, h.q, n), W_OUT);
  return part_normed(m, l, y, W_ATTN_POST_NORM);
}

/* ---- feed forward */
static TgTensor *activated(const TgLlm *m, TgTensor *x) {
  return m->arch->act == ACT_GELU ? tg_gelu(x) : tg_silu(x);
}

static TgTensor *gated(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmWeight gate, LlmWeight up,
                       LlmWeight down) {
  TgTensor *y = tg_mul(activated(m, product(l, x, gate)), product(l, x, up));
  return product(l, y, down);
}

static TgTensor *dense(const TgLlm *m, const LlmLayer *l, TgTensor *x) {
  if (l->w[W_GATE]) return gated(m, l, x, W_GATE, W_UP, W_DOWN);
  if (!l->w[W_GATE_UP]) return product(l, activated(m, product(l, x, W_UP)), W_DOWN);
  TgTensor *both = product(l, x, W_GATE_UP);
  TgTensor *gate = tg_slice(both, 1, 0, m->k.ffn), *up = tg_slice(both, 1, m->k.ffn, 2 * m->k.ffn);
  return product(l, tg_mul(activated(m, gate), up), W_DOWN);
}

/* x (n, used, 1, in) by the matrices (n, used, out, in) of the chosen experts: (n, used, out) */
static TgTensor *by_experts(const LlmLayer *l, TgTensor *x, LlmWeight w, TgTensor *chosen) {
  TgTensor *each = tg_cast(tg_take(l->w[w], chosen), TG_F32);
  return tg_squeeze(tg_matmul(each, tg_unsqueeze(x, -1)), -1);
}

static TgTensor *routed(const TgLlm *m, const LlmLayer *l, TgTensor *x, int64_t n) {
  const LlmNumbers *k = &m->k;
  TgTensor *chosen = NULL, *share = tg_softmax(product(l, x, W_ROUTER));
  share = tg_topk(share, k->experts_used, &chosen);
  if (m->arch->renormalized) share = tg_div(share, tg_sum(share, .axis = TG_AXES(-1), .keepdim = true));
  TgTensor *each = tg_expand(tg_unsqueeze(x, 1), TG_SHAPE(n, k->experts_used, k->width));
  TgTensor *y = tg_mul(activated(m, by_experts(l, each, W_EXPERT_GATE, chosen)),
                       by_experts(l, each, W_EXPERT_UP, chosen));
  y = by_experts(l, y, W_EXPERT_DOWN, chosen);
  y = tg_sum(tg_mul(y, tg_unsqueeze(share, -1)), .axis = TG_AXES(1));
  if (!l->w[W_SHARED_UP]) return y;
  TgTensor *open =
      tg_sum(tg_mul(x, tg_cast(l->w[W_SHARED_ROUTER], TG_F32)), .axis = TG_AXES(-1), .keepdim = true);
  return tg_add(y, tg_mul(gated(m, l, x, W_SHARED_GATE, W_SHARED_UP, W_SHARED_DOWN), tg_sigmoid(open)));
}

static TgTensor *feed_forward(const TgLlm *m, const LlmLayer *l, TgTensor *x, int64_t n) {
  x = part_normed(m, l, x, W_FFN_NORM);
  TgTensor *y = l->w[W_ROUTER] ? routed(m, l, x, n) : dense(m, l, x);
  return part_normed(m, l, y, W_FFN_POST_NORM);
}

/* ---- the whole */
static TgTensor *embedded(const TgLlm *m, TgTensor *ids, int64_t n) {
  TgTensor *x = tg_cast(tg_take(m->embedding, ids), TG_F32);
  if (m->arch->scale_embedding) x = tg_mul_scalar(x, sqrt((double)m->k.width));
  if (m->positions) {
    TgTensor *at = tg_add(tg_arange(m->ctx, 0, (double)n), tg_variable_tensor(m->position));
    x = tg_add(x, tg_cast(tg_take(m->positions, at), TG_F32));
  }
  return tg_contiguous(x);
}

/* the logits of token in[1] of x (n, width) */
static TgTensor *logits_of(const TgLlm *m, TgTensor *x, TgTensor *wanted) {
  x = wanted ? tg_take(x, wanted) : x; /* (1, width) */
  x = normed(m, x, m->norm, m->norm_bias);
  return tg_reshape(capped(tg_linear(x, m->head, NULL), m->k.final_cap), TG_SHAPE(m->k.vocabulary));
}

TgStatus llm_part(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const LlmPart *part = user;
  const TgLlm *m = part->m;
  (void)nout;
  TgTensor *x = part->first ? in[0] : embedded(m, in[0], part->n);
  for (int64_t i = part->first; x && i < part->last; i++) {
    const LlmLayer *l = &m->layer[i];
    x = tg_contiguous(tg_add(x, attention(m, l, x, part->n)));
    x = tg_contiguous(tg_add(x, feed_forward(m, l, x, part->n)));
  }
  if (part->hidden)
    x = normed(m, x, m->norm, m->norm_bias);
  else if (part->last == m->k.layers)
    x = logits_of(m, x, nin > 1 ? in[1] : NULL);
  out[0] = x;
  return out[0] ? TG_OK : tg_error(ctx) ? tg_error(ctx) : TG_ERR_INTERNAL;
}
