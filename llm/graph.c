/* graph.c: the graphs of a model. A step, or a part of it: in: ids (n), and the place of the token whose
 * logits are wanted; out: its logits. The keys and values of the n tokens are written to the cache at the
 * variable `position`, and every token sees the cache up to itself. Whole texts, for training: in: ids
 * (texts, tokens); out: a loss; there is no cache, and every token sees the tokens before it in its text. The
 * architecture's row selects the parts. */
#include "model_private.h"
#include <math.h>

enum { LEAST_ROWS_OF_UNITS = 16, QUERIES_AT_ONCE = 512 };

static int64_t count(LlmRows r) { return r.texts * r.each; }

/* Whether gradients are needed, which packed products do not have. */
static bool is_learned(LlmRows r) { return r.whole && !r.extent; }

static TgTensor *normed(const TgLlm *m, TgTensor *x, TgTensor *w, TgTensor *b) {
  if (!w) return x;
  w = tg_cast(w, TG_F32);
  if (!m->arch->layer_norm) return tg_rms_norm(x, .weight = w, .eps = m->k.eps);
  return tg_layer_norm(x, .weight = w, .bias = b ? tg_cast(b, TG_F32) : NULL, .eps = m->k.eps);
}

/* The norm at the beginning of a part or of the head, which may have no weights. */
static TgTensor *begun(const TgLlm *m, TgTensor *x, TgTensor *w, TgTensor *b) {
  return m->arch->bare ? tg_layer_norm(x, .eps = m->k.eps) : normed(m, x, w, b);
}

static TgTensor *part_normed(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmWeight w) {
  return normed(m, x, l->w[w], l->b[w]);
}

/* x (n, in) times w (out, in) by the matrix units of a GPU: products of f16, sums in f32. A row of x is
 * divided by its largest number first, so that no number is too large for f16. */
static TgTensor *by_units(TgTensor *x, TgTensor *w) {
  TgTensor *most = tg_max(tg_abs(x), .axis = TG_AXES(-1), .keepdim = true);
  most = tg_where(tg_gt_scalar(most, 0), most, tg_scalar_like(most, 1));
  x = tg_cast(tg_div(x, most), TG_F16);
  return tg_mul(tg_matmul(x, tg_transpose(tg_cast(w, TG_F16), 0, 1), .dtype = TG_F32), most);
}

/* x (n, in) times w (out, in) of bf16 by a processor's dot products of bf16: x is rounded, sums are f32. */
static TgTensor *by_bf16(TgTensor *x, TgTensor *w) {
  return tg_matmul(tg_cast(x, TG_BF16), tg_transpose(w, 0, 1), .dtype = TG_F32);
}

/* x times a matrix with values w. packed: the same matrix packed, or NULL. */
static TgTensor *times(const TgLlm *m, TgTensor *x, TgTensor *w, TgTensor *bias, const TgPacked *packed,
                       LlmRows r) {
  bool many = !is_learned(r) && r.each >= LEAST_ROWS_OF_UNITS, units = m->units && many;
  bool rounds = m->activations == 8 && many && tg_dtype(w) == TG_BF16;
  TgTensor *y = packed && !is_learned(r) ? tg_packed_linear(x, packed, m->activations)
                : units                  ? by_units(x, w)
                : rounds                 ? by_bf16(x, w)
                                         : tg_linear(x, w, NULL);
  return bias ? tg_add(y, tg_cast(bias, TG_F32)) : y;
}

/* x times a weight, plus the products of the adapters. */
static TgTensor *product(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmWeight w, LlmRows r) {
  TgTensor *y = times(m, x, l->w[w], l->b[w], l->packed[w], r);
  for (const TgLora *lora = m->loras; lora; lora = lora->next)
    y = llm_lora_added(lora, l - m->layer, w, x, y);
  return y;
}

/* cap tanh(x / cap), whose size stays below cap. */
static TgTensor *capped(TgTensor *x, double cap) {
  return cap > 0 ? tg_mul_scalar(tg_tanh(tg_div_scalar(x, cap)), cap) : x;
}

/* The positions of a text's tokens, i32: (each), or one position for each text. */
static TgTensor *positions_of(const TgLlm *m, LlmRows r) {
  if (r.at) return r.at;
  TgTensor *at = tg_arange(m->ctx, (double)r.from, (double)(r.from + r.each));
  return r.whole ? at : tg_add(at, tg_variable_tensor(llm_begins(m, r)));
}

/* Repeats x (each, size) for each text: (tokens, size). */
static TgTensor *for_texts(TgTensor *x, LlmRows r) {
  if (r.texts == 1 || r.at) return x;
  return tg_flatten(tg_expand(tg_unsqueeze(x, 0), TG_SHAPE(r.texts, -1, -1)), 0, 1);
}

/* The rows of a table (positions, size) for the tokens: (tokens, size). */
static TgTensor *turns(const TgLlm *m, TgTensor *table, LlmRows r) {
  if (r.at) return tg_take(table, r.at);
  int64_t at = r.whole ? 0 : tg_size(llm_begins(m, r));
  return for_texts(tg_slice(table, 0, at, tg_size_add(m->ctx, at, r.each)), r);
}

/* Rotates x (n, heads, size) by its positions. A flip swaps partners, and the table of sines has their
 * signs. */
static TgTensor *rotated(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmRows rows) {
  if (m->rope == ROPE_NONE || l->still || !x) return x;
  const LlmRotation *t = l->windowed && m->local_rotation.cos ? &m->local_rotation : &m->rotation;
  int64_t n = count(rows), heads = tg_dim(x, 1), size = tg_dim(x, 2), r = m->k.rotary;
  TgTensor *c = tg_unsqueeze(turns(m, t->cos, rows), 1);
  TgTensor *s = tg_unsqueeze(turns(m, t->sin, rows), 1);
  TgTensor *y = r < size ? tg_slice(x, 2, 0, r) : x;
  bool pairs = m->rope == ROPE_PAIRS;
  TgTensor *two =
      pairs ? tg_reshape(y, TG_SHAPE(n, heads, r / 2, 2)) : tg_reshape(y, TG_SHAPE(n, heads, 2, r / 2));
  TgTensor *swapped = tg_reshape(tg_flip(two, 1, &(int64_t){pairs ? 3 : 2}), TG_SHAPE(n, heads, r));
  y = tg_add(tg_mul(y, c), tg_mul(swapped, s));
  return r < size ? tg_cat(TG_TENSORS(y, tg_slice(x, 2, r, size)), 2) : y;
}

/* ---- attention */
typedef struct Heads {
  TgTensor *q, *k, *v; /* (tokens, heads, size) */
} Heads;

/* Applies the norms and the rotation to x (n, heads, size), which are queries or keys. */
static TgTensor *turned(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmWeight norm, LlmWeight of_heads,
                        LlmRows r) {
  if (l->w[of_heads]) x = tg_mul(tg_layer_norm(x, .eps = m->k.eps), tg_cast(l->w[of_heads], TG_F32));
  if (m->arch->late_norms) return part_normed(m, l, rotated(m, l, x, r), norm);
  return rotated(m, l, part_normed(m, l, x, norm), r);
}

static TgTensor *clamped(const TgLlm *m, TgTensor *x) {
  return m->k.clamp > 0 ? tg_clamp(x, -m->k.clamp, m->k.clamp) : x;
}

/* x (n, heads, a) times a matrix of each head, w (heads, a, b): (n, heads, b). */
static TgTensor *by_heads(TgTensor *x, TgTensor *w) {
  return tg_transpose(tg_matmul(tg_transpose(x, 0, 1), tg_cast(w, TG_F32)), 0, 1);
}

/* Latent attention. x is reduced to a narrow vector c that all heads share, and to a few elements that
 * rotate. Each head's key is a product of c, followed by these elements; its value is another product of c.
 * If the file has the two as separate matrices, the first is applied to the query instead and the second to
 * the result of attention, so that c itself is key and value of all heads. Otherwise both are applied to
 * c. */
static Heads latent_heads(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmRows r) {
  const LlmNumbers *k = &m->k;
  int64_t n = count(r), still = k->key - k->rotary;
  TgTensor *q = l->w[W_Q]
                    ? product(m, l, x, W_Q, r)
                    : product(m, l, part_normed(m, l, product(m, l, x, W_Q_A, r), W_Q_A_NORM), W_Q_B, r);
  q = tg_reshape(q, TG_SHAPE(n, k->heads, k->key));
  TgTensor *both = product(m, l, x, W_KV_A, r);
  TgTensor *c = part_normed(m, l, tg_slice(both, 1, 0, k->kv_rank), W_KV_A_NORM);
  TgTensor *key = tg_unsqueeze(tg_slice(both, 1, k->kv_rank, k->kv_rank + k->rotary), 1), *v;
  TgTensor *mine = tg_slice(q, 2, 0, still), *turns_of_q = rotated(m, l, tg_slice(q, 2, still, k->key), r);
  key = rotated(m, l, key, r);
  if (l->w[W_K_B]) {
    mine = by_heads(mine, tg_transpose(l->w[W_K_B], 1, 2));
    v = tg_unsqueeze(c, 1);
    key = tg_cat(TG_TENSORS(v, key), 2);
  } else {
    TgTensor *kv = tg_reshape(product(m, l, c, W_KV_B, r), TG_SHAPE(n, k->heads, still + k->value));
    key = tg_cat(TG_TENSORS(tg_slice(kv, 2, 0, still), tg_expand(key, TG_SHAPE(n, k->heads, k->rotary))), 2);
    v = tg_slice(kv, 2, still, still + k->value);
  }
  return (Heads){tg_cat(TG_TENSORS(mine, turns_of_q), 2), key, v};
}

/* The result of attention as values of heads: (tokens, heads * size). */
static TgTensor *values_of(const TgLlm *m, const LlmLayer *l, TgTensor *y, LlmRows r) {
  if (!l->w[W_V_B]) return y;
  y = tg_reshape(y, TG_SHAPE(count(r), m->k.heads, m->k.kv_rank));
  return tg_flatten(by_heads(y, tg_transpose(l->w[W_V_B], 1, 2)), 1, 2);
}

static Heads heads_of(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmRows r) {
  const LlmNumbers *k = &m->k;
  int64_t n = count(r);
  int64_t nq = k->heads * k->head, nk = k->kv_heads * k->head, nv = k->kv_heads * k->value_head;
  if (l->w[W_KV_A]) return latent_heads(m, l, x, r);
  TgTensor *all = l->w[W_QKV] ? product(m, l, x, W_QKV, r) : NULL;
  TgTensor *q = clamped(m, all ? tg_slice(all, 1, 0, nq) : product(m, l, x, W_Q, r));
  TgTensor *key = clamped(m, all ? tg_slice(all, 1, nq, nq + nk) : product(m, l, x, W_K, r));
  TgTensor *v = clamped(m, all ? tg_slice(all, 1, nq + nk, nq + nk + nv) : product(m, l, x, W_V, r));
  q = part_normed(m, l, q, W_ALL_Q_NORM), key = part_normed(m, l, key, W_ALL_K_NORM);
  Heads h = {tg_reshape(q, TG_SHAPE(n, k->heads, k->head)),
             tg_reshape(key, TG_SHAPE(n, k->kv_heads, k->head)),
             tg_reshape(v, TG_SHAPE(n, k->kv_heads, k->value_head))};
  h.q = turned(m, l, h.q, W_Q_NORM, W_HEADS_Q_NORM, r);
  h.k = turned(m, l, h.k, W_K_NORM, W_HEADS_K_NORM, r);
  return h;
}

/* The places of tokens, (1 or texts, 1, 1, each, 1), and of `seen` keys, (1, seen). */
static TgTensor *queries_at(const TgLlm *m, LlmRows r) {
  return tg_reshape(positions_of(m, r), TG_SHAPE(r.at ? r.texts : 1, 1, 1, r.each, 1));
}

static TgTensor *keys_at(const TgLlm *m, int64_t seen) {
  return tg_unsqueeze(tg_slice(tg_arange(m->ctx, 0, (double)m->room), 0, 0, seen), 0);
}

/* Which of `seen` keys a token may see: (1 or texts, 1, 1, 1 or each, seen). NULL: all of them. */
static TgTensor *mask_of(const TgLlm *m, const LlmLayer *l, LlmRows r, int64_t seen) {
  bool windowed = l->windowed && m->k.window < m->room;
  if (r.extent) {
    TgTensor *end = tg_slice(r.extent, 0, 0, 1), *there = tg_lt(keys_at(m, seen), end);
    there = tg_reshape(there, TG_SHAPE(1, 1, 1, 1, seen));
    if (!windowed) return there;
    TgTensor *query =
        tg_minimum(queries_at(m, r), tg_sub_scalar(end, 1)); /* rows that fill up see a token, too */
    TgTensor *away = tg_abs(tg_sub(query, keys_at(m, seen)));
    return tg_mul(there, tg_le_scalar(away, (double)(m->k.window / 2))); /* half of the window on each side */
  }
  if (r.each == 1 && !windowed && !r.at) return NULL;
  TgTensor *key = keys_at(m, seen), *query = queries_at(m, r), *mask = tg_le(key, query);
  /* all rows from mutual_at on are tokens of the picture, which also see the tokens that follow */
  if (r.mutual) mask = tg_bitor(mask, tg_ge(key, tg_variable_tensor(m->mutual_at)));
  return windowed ? tg_mul(mask, tg_gt(tg_add_scalar(key, (double)m->k.window), query)) : mask;
}

/* ALiBi: each head subtracts its slope times the distance of the key. */
static TgTensor *sloped(const TgLlm *m, TgTensor *score, LlmRows r, int64_t seen) {
  if (!m->slopes) return score;
  int64_t kv = m->k.kv_heads;
  TgTensor *slope = tg_reshape(m->slopes, TG_SHAPE(1, kv, m->k.heads / kv, 1, 1));
  TgTensor *away = tg_abs(tg_sub(queries_at(m, r), keys_at(m, seen)));
  return tg_sub(score, tg_mul(slope, tg_float(away)));
}

/* The softmax of score (texts, kv heads, group, each, seen) times v. The sink of a head takes a share of the
 * sum, like a key whose value is 0. */
static TgTensor *weighed(const TgLlm *m, const LlmLayer *l, TgTensor *score, TgTensor *v) {
  if (!l->w[W_SINKS]) return tg_matmul(tg_softmax(score), v);
  int64_t kv = m->k.kv_heads;
  TgTensor *sink = tg_reshape(tg_cast(l->w[W_SINKS], TG_F32), TG_SHAPE(1, kv, m->k.heads / kv, 1, 1));
  TgTensor *most = tg_maximum(tg_max(score, .axis = TG_AXES(-1), .keepdim = true), sink);
  TgTensor *e = tg_exp(tg_sub(score, most));
  TgTensor *sum = tg_add(tg_sum(e, .axis = TG_AXES(-1), .keepdim = true), tg_exp(tg_sub(sink, most)));
  return tg_div(tg_matmul(e, v), sum);
}

/* q (tokens, heads, size), keys and values (texts, kv heads, seen, size) -> (tokens, heads * size). A group
 * of heads shares keys and values, so the queries of a group are rows of one product. */
static TgTensor *attended(const TgLlm *m, const LlmLayer *l, Heads h, LlmRows r, int64_t seen) {
  const LlmNumbers *k = &m->k;
  int64_t group = k->heads / k->kv_heads;
  TgTensor *q = tg_reshape(h.q, TG_SHAPE(r.texts, r.each, k->kv_heads, group, k->head));
  q = tg_permute(q, 5, (const int64_t[]){0, 2, 3, 1, 4});
  TgTensor *score = tg_matmul(tg_mul_scalar(q, k->scale), tg_unsqueeze(tg_transpose(h.k, 2, 3), 2));
  score = capped(score, k->attention_cap); /* (texts, kv heads, group, each, seen) */
  score = sloped(m, score, r, seen);
  TgTensor *mask = mask_of(m, l, r, seen), *v = tg_unsqueeze(h.v, 2);
  if (mask) score = tg_where(mask, score, tg_scalar_like(score, -INFINITY));
  if (r.at) v = tg_where(tg_transpose(mask, 3, 4), v, tg_scalar_like(v, 0)); /* masked values count as 0 */
  TgTensor *y = weighed(m, l, score, v);
  y = tg_permute(y, 5, (const int64_t[]){0, 3, 1, 2, 4});
  return tg_reshape(y, TG_SHAPE(count(r), k->heads * k->value_head));
}

/* Arranges rows (tokens, kv heads, size) of whole texts as (texts, kv heads, each, size). */
static TgTensor *of_texts(LlmRows r, TgTensor *rows) {
  return tg_transpose(tg_unflatten(rows, 0, 2, (const int64_t[]){r.texts, r.each}), 1, 2);
}

/* The same as attended(), some queries at a time, because the scores of a long text would need too much
 * memory. */
static TgTensor *attended_in_turn(const TgLlm *m, const LlmLayer *l, Heads h, LlmRows r, int64_t seen) {
  TgTensor *y = NULL, *q = h.q;
  for (; r.from < seen; r.from += r.each) {
    r.each = seen - r.from < QUERIES_AT_ONCE ? seen - r.from : QUERIES_AT_ONCE;
    h.q = tg_slice(q, 0, r.from, r.from + r.each);
    TgTensor *part = tg_contiguous(attended(m, l, h, r, seen));
    y = y ? tg_cat(TG_TENSORS(y, part), 0) : part;
  }
  return y;
}

static TgTensor *attention(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmRows r) {
  LlmWeight norm = l->w[W_ATTN_NORM_2] && !m->arch->encoder ? W_ATTN_NORM_2 : W_ATTN_NORM;
  Heads h = heads_of(m, l, begun(m, x, l->w[norm], l->b[norm]), r);
  int64_t seen = r.each;
  if (r.whole) {
    h.k = of_texts(r, h.k);
    h.v = of_texts(r, h.v);
  } else {
    if (!llm_cache_put(m, &l->keys, h.k, r) || !llm_cache_put(m, &l->values, h.v, r)) return NULL;
    seen = r.at ? tg_size(m->reach) : tg_size_add(m->ctx, tg_size(llm_begins(m, r)), r.each);
    h.k = llm_cache_get(m, &l->keys, r, seen);
    h.v = llm_cache_get(m, &l->values, r, seen);
  }
  bool in_turn = r.extent && r.each > QUERIES_AT_ONCE;
  TgTensor *y = in_turn ? attended_in_turn(m, l, h, r, seen) : attended(m, l, h, r, seen);
  return part_normed(m, l, product(m, l, values_of(m, l, y, r), W_OUT, r), W_ATTN_POST_NORM);
}

/* ---- feed forward */
static TgTensor *activated(const TgLlm *m, TgTensor *x) {
  if (m->arch->act == ACT_RELU_SQUARED) return tg_square(tg_relu(x));
  if (m->arch->act == ACT_GELU_ERF) return tg_gelu_erf(x);
  return m->arch->act == ACT_GELU ? tg_gelu(x) : tg_silu(x);
}

enum { CLAMPED = 7 }; /* the bound of a clamped gate and of the values that it multiplies */

/* The values `up`, multiplied by the activated gate. */
static TgTensor *let_through(const TgLlm *m, TgTensor *gate, TgTensor *up) {
  if (m->arch->act != ACT_SWISH_CLAMPED) return tg_mul(activated(m, gate), up);
  gate = tg_minimum_scalar(gate, CLAMPED);
  up = tg_clamp(up, -CLAMPED, CLAMPED);
  return tg_mul(tg_mul(gate, tg_sigmoid(tg_mul_scalar(gate, 1.702))), tg_add_scalar(up, 1));
}

static TgTensor *gated(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmWeight gate, LlmWeight up,
                       LlmWeight down, LlmRows r) {
  TgTensor *y = let_through(m, product(m, l, x, gate, r), product(m, l, x, up, r));
  return product(m, l, y, down, r);
}

static TgTensor *dense(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmRows r) {
  if (l->w[W_GATE]) return gated(m, l, x, W_GATE, W_UP, W_DOWN, r);
  if (!l->w[W_GATE_UP]) return product(m, l, activated(m, product(m, l, x, W_UP, r)), W_DOWN, r);
  TgTensor *both = product(m, l, x, W_GATE_UP, r);
  TgTensor *gate = tg_slice(both, 1, 0, m->k.ffn), *up = tg_slice(both, 1, m->k.ffn, 2 * m->k.ffn);
  return product(m, l, let_through(m, gate, up), W_DOWN, r);
}

/* x (n, in) or (n, used, in) times the matrices (out, in) of the chosen experts, (n, used): (n, used,
 * out). */
static TgTensor *by_experts(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmWeight w, TgTensor *chosen,
                            LlmRows r) {
  int64_t used = tg_dim(chosen, 1), out = tg_dim(l->w[w], 1);
  bool own = tg_ndim(x) == 3; /* each of a token's experts has an x of its own */
  TgTensor *y;
  if (l->packed[w] && !is_learned(r)) {
    TgTensor *of = own ? tg_reshape(chosen, TG_SHAPE(-1, 1)) : chosen;
    y = tg_packed_experts(own ? tg_flatten(x, 0, 1) : x, l->packed[w], of, out, m->activations);
    y = tg_reshape(y, TG_SHAPE(-1, used, out));
  } else {
    TgTensor *each = tg_cast(tg_take(l->w[w], chosen), TG_F32);
    if (!own) x = tg_expand(tg_unsqueeze(x, 1), TG_SHAPE(-1, used, -1));
    y = tg_squeeze(tg_matmul(each, tg_unsqueeze(x, -1)), -1);
  }
  return l->b[w] ? tg_add(y, tg_cast(tg_take(l->b[w], chosen), TG_F32)) : y;
}

/* If experts are in groups, only the experts of the best groups can be chosen; a group is judged by the sum
 * of its best two scores. */
static TgTensor *of_best_groups(const TgLlm *m, TgTensor *score) {
  const LlmNumbers *k = &m->k;
  if (k->groups < 2) return score;
  TgTensor *grouped = tg_unflatten(score, 1, 2, (const int64_t[]){k->groups, k->experts / k->groups}), *best;
  TgTensor *two = tg_sum(tg_topk(grouped, 2, NULL), .axis = TG_AXES(-1));
  tg_topk(two, k->groups_used, &best);
  TgTensor *all = tg_cast(tg_arange(m->ctx, 0, (double)k->groups), tg_dtype(best));
  TgTensor *is = tg_eq(tg_unsqueeze(best, 2), tg_reshape(all, TG_SHAPE(1, 1, k->groups)));
  is = tg_unsqueeze(tg_any(is, .axis = TG_AXES(1)), 2);
  return tg_flatten(tg_where(is, grouped, tg_scalar_like(grouped, -INFINITY)), 1, 2);
}

/* Returns the shares of the chosen experts (n, used), and in *chosen which experts they are. The bias affects
 * only the choice. */
static TgTensor *shares_of(const TgLlm *m, const LlmLayer *l, TgTensor *x, TgTensor **chosen, LlmRows r) {
  const LlmNumbers *k = &m->k;
  TgTensor *score = product(m, l, x, W_ROUTER, r), *bias = l->b[W_PICK_BIAS];
  TgTensor *share = k->gating == GATING_SIGMOID ? tg_sigmoid(score) : tg_softmax(score);
  TgTensor *best = of_best_groups(m, bias ? tg_add(share, tg_cast(bias, TG_F32)) : share);
  TgTensor *top = tg_topk(best, k->experts_used, chosen);
  share = best == share ? top : tg_gather(share, 1, *chosen);
  if (k->renormalized) share = tg_div(share, tg_sum(share, .axis = TG_AXES(-1), .keepdim = true));
  return k->expert_scale == 1 ? share : tg_mul_scalar(share, k->expert_scale);
}

static TgTensor *routed(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmRows r) {
  TgTensor *chosen = NULL, *share = shares_of(m, l, x, &chosen, r);
  TgTensor *gate = by_experts(m, l, x, W_EXPERT_GATE, chosen, r);
  TgTensor *y = let_through(m, gate, by_experts(m, l, x, W_EXPERT_UP, chosen, r));
  y = by_experts(m, l, y, W_EXPERT_DOWN, chosen, r);
  y = tg_sum(tg_mul(y, tg_unsqueeze(share, -1)), .axis = TG_AXES(1));
  if (!l->w[W_SHARED_UP]) return y;
  TgTensor *shared = gated(m, l, x, W_SHARED_GATE, W_SHARED_UP, W_SHARED_DOWN, r);
  if (!l->w[W_SHARED_ROUTER]) return tg_add(y, shared);
  TgTensor *open =
      tg_sum(tg_mul(x, tg_cast(l->w[W_SHARED_ROUTER], TG_F32)), .axis = TG_AXES(-1), .keepdim = true);
  return tg_add(y, tg_mul(shared, tg_sigmoid(open)));
}

static TgTensor *feed_forward(const TgLlm *m, const LlmLayer *l, TgTensor *x, LlmRows r) {
  x = part_normed(m, l, begun(m, x, l->w[W_FFN_NORM], l->b[W_FFN_NORM]), W_NORM_BETWEEN);
  TgTensor *y = l->w[W_ROUTER] ? routed(m, l, x, r) : dense(m, l, x, r);
  return part_normed(m, l, y, W_FFN_POST_NORM);
}

/* ---- the whole */
static TgTensor *scaled(TgTensor *x, double by) { return by == 1 ? x : tg_mul_scalar(x, by); }

/* The type vectors of tokens, by whether they are in the first or the second of two texts: (1 or each,
 * width). */
static TgTensor *types_of(const TgLlm *m, LlmRows r) {
  TgTensor *types = tg_cast(m->types, TG_F32), *first = tg_slice(types, 0, 0, 1);
  if (m->k.types < 2) return first;
  TgTensor *in_first = tg_lt(positions_of(m, r), tg_slice(r.extent, 0, 1, 2));
  return tg_where(tg_unsqueeze(in_first, 1), first, tg_slice(types, 0, 1, 2));
}

TgTensor *llm_embedded(const TgLlm *m, TgTensor *ids, LlmRows r) {
  TgTensor *x = tg_cast(tg_take(m->embedding, ids), TG_F32);
  x = scaled(x, m->k.embedding_scale);
  if (m->types) x = tg_add(x, types_of(m, r));
  if (m->positions) x = tg_add(x, for_texts(tg_cast(tg_take(m->positions, positions_of(m, r)), TG_F32), r));
  return tg_contiguous(normed(m, x, m->embedding_norm, m->embedding_norm_bias));
}

TgTensor *llm_given(const TgLlm *m, TgTensor *x, LlmRows r) {
  if (m->positions) x = tg_add(x, tg_cast(tg_take(m->positions, positions_of(m, r)), TG_F32));
  return tg_contiguous(x);
}

TgTensor *llm_layers(const TgLlm *m, TgTensor *x, LlmRows r, int64_t first, int64_t last) {
  for (int64_t i = first; x && i < last; i++) {
    const LlmLayer *l = &m->layer[i];
    double by = m->k.residual_scale;
    TgTensor *y = part_normed(m, l, tg_add(x, scaled(attention(m, l, x, r), by)), W_ATTN_OUT_NORM);
    if (m->arch->encoder && l->w[W_ATTN_NORM_2]) y = part_normed(m, l, tg_add(x, y), W_ATTN_NORM_2);
    y = tg_contiguous(y);
    TgTensor *in = !l->parallel ? y : l->w[W_FFN_NORM] ? x : part_normed(m, l, x, W_ATTN_NORM);
    x = tg_add(y, scaled(feed_forward(m, l, in, r), by));
    x = tg_contiguous(part_normed(m, l, x, W_LAYER_OUT_NORM));
  }
  return x;
}

/* x (n, width) -> (n, vocabulary) */
TgTensor *llm_logits_of(const TgLlm *m, TgTensor *x, LlmRows r) {
  x = begun(m, x, m->norm, m->norm_bias);
  x = times(m, x, m->head, m->head_bias, m->packed_head, r);
  return capped(scaled(x, m->k.logit_scale), m->k.final_cap);
}

/* The scores of a reranker's labels for a pair of texts, computed from the first or the mean of its tokens
 * (n, width): (labels). */
static TgTensor *ranked(const TgLlm *m, TgTensor *x, LlmRows r) {
  LlmRows one = {.texts = 1, .each = 1};
  if (m->k.judged == POOL_MEAN) {
    TgTensor *n = tg_slice(r.extent, 0, 0, 1), *there = tg_unsqueeze(tg_lt(positions_of(m, r), n), 1);
    x = tg_sum(tg_where(there, x, tg_scalar_like(x, 0)), .axis = TG_AXES(0), .keepdim = true);
    x = tg_div(x, tg_float(n));
  } else
    x = tg_slice(x, 0, 0, 1);
  if (m->cls) {
    x = times(m, x, m->cls, m->cls_bias, NULL, one);
    x = normed(m, m->arch->gelu_head ? tg_gelu_erf(x) : tg_tanh(x), m->cls_norm, m->cls_norm_bias);
  }
  TgTensor *out = tg_reshape(m->cls_out, TG_SHAPE(m->k.labels, m->k.width));
  return tg_flatten(times(m, x, out, m->cls_out_bias, NULL, one), 0, 1);
}

TgStatus llm_part(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const LlmPart *part = user;
  const TgLlm *m = part->m;
  LlmRows r = {.texts = 1, .each = part->n, .mutual = part->mutual};
  (void)nout;
  if (part->many) r = (LlmRows){.texts = part->n, .each = 1, .at = in[1], .which = in[2]};
  if (m->arch->encoder) r = (LlmRows){.texts = 1, .each = part->n, .whole = true, .extent = in[1]};
  TgTensor *x = part->first ? in[0] : part->given ? llm_given(m, in[0], r) : llm_embedded(m, in[0], r);
  x = llm_layers(m, x, r, part->first, part->last);
  if (m->arch->encoder) {
    if (part->last == m->k.layers && m->norm) x = normed(m, x, m->norm, m->norm_bias);
    if (part->last == m->k.layers && m->k.pooling == POOL_RANK) x = ranked(m, x, r);
  } else if (part->hidden)
    x = begun(m, x, m->norm, m->norm_bias);
  else if (part->last == m->k.layers && part->many)
    x = llm_logits_of(m, x, r);
  else if (part->last == m->k.layers) {
    x = llm_logits_of(m, nin > 1 ? tg_take(x, in[1]) : x, r); /* of one token */
    x = tg_reshape(x, TG_SHAPE(m->k.vocabulary));
  }
  out[0] = x;
  return out[0] ? TG_OK : tg_error(ctx) ? tg_error(ctx) : TG_ERR_INTERNAL;
}

/* ---- whole texts */
bool llm_whole_fits(const TgLlm *m, TgTensor *ids, TgTensor *targets) {
  bool ok = tg_ndim(ids) == 2 && tg_ndim(targets) == 2 && tg_dim(ids, 0) == tg_dim(targets, 0) &&
            tg_dim(ids, 1) == tg_dim(targets, 1) && tg_numel(ids) > 0;
  char a[120], b[120];
  if (!llm_generates(m, "llm_loss")) return false;
  if (!ok)
    return llm_fail(m->ctx, TG_ERR_SHAPE, "llm_loss: ids %s and targets %s: both are (texts, tokens)",
                    llm_dims_text(a, sizeof a, tg_ndim(ids), tg_shape(ids)),
                    llm_dims_text(b, sizeof b, tg_ndim(targets), tg_shape(targets)));
  if (tg_dim(ids, 1) <= m->context) return true;
  return llm_fail(m->ctx, TG_ERR_LIMIT, "llm_loss: texts of %lld tokens are more than the context of %lld",
                  (long long)tg_dim(ids, 1), (long long)m->context);
}

TgTensor *tg_llm_loss(TgLlm *m, TgTensor *ids, TgTensor *targets) {
  if (!m || !ids || !targets || !llm_whole_fits(m, ids, targets)) return NULL;
  LlmRows r = {.texts = tg_dim(ids, 0), .each = tg_dim(ids, 1), .whole = true};
  TgTensor *x = llm_layers(m, llm_embedded(m, tg_flatten(ids, 0, -1), r), r, 0, m->k.layers);
  TgTensor *wanted = tg_flatten(targets, 0, -1);
  TgTensor *sum = tg_sparse_cross_entropy(llm_logits_of(m, x, r), wanted, .reduction = TG_SUM, .ignore = true,
                                          .ignore_index = -1);
  TgTensor *counted = tg_sum(tg_float(tg_ge_scalar(wanted, 0)));
  return tg_div(sum, tg_maximum(counted, tg_ones_like(counted)));
}
