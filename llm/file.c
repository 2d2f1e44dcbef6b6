/* file.c: what a gguf file says, held against its architecture's row. In: key-values and tensors. Out: the
 * numbers of a model, and its weights, which stay views of the file. Every number and every shape is looked
 * at before a graph is built; what contradicts is an error that names both sides. */
#include "model_private.h"
#include <math.h>
#include <stdio.h>

/* ---- numbers */
typedef struct Field {
  const char *key;
  size_t offset;
  int64_t fallback; /* -1: it must be there */
} Field;

#define FIELD(key, field, fallback)                                                                          \
  { key, offsetof(LlmNumbers, field), fallback }

static const Field fields[] = {FIELD("embedding_length", width, -1),
                               FIELD("block_count", layers, -1),
                               FIELD("context_length", trained, -1),
                               FIELD("attention.head_count", heads, -1),
                               FIELD("attention.head_count_kv", kv_heads, 0),
                               FIELD("attention.key_length", head, 0),
                               FIELD("attention.value_length", value_head, 0),
                               FIELD("feed_forward_length", ffn, 0),
                               FIELD("rope.dimension_count", rotary, 0),
                               FIELD("attention.sliding_window", window, 0),
                               FIELD("expert_count", experts, 0),
                               FIELD("expert_used_count", experts_used, 0),
                               FIELD("expert_feed_forward_length", expert_ffn, 0),
                               FIELD("expert_shared_feed_forward_length", shared_ffn, 0)};

static bool whole_of(TgLlm *m, const Field *f) {
  char name[128];
  int64_t *to = (int64_t *)((char *)&m->k + f->offset);
  snprintf(name, sizeof name, "%.60s.%s", m->architecture, f->key);
  if (f->fallback < 0 && !llm_kv(m->gguf, name))
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: the file has no %s", name);
  if (!llm_kv_int(m->ctx, m->gguf, name, f->fallback, to)) return false;
  if (*to >= (f->fallback < 0) && *to <= LARGEST) return true;
  return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s is %lld", name, (long long)*to);
}

static bool real_of(TgLlm *m, const char *key, double fallback, double *out) {
  char name[128];
  snprintf(name, sizeof name, "%.60s.%s", m->architecture, key);
  if (!llm_kv_real(m->ctx, m->gguf, name, fallback, out)) return false;
  return (isfinite(*out) && *out >= 0) || llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s is %g", name, *out);
}

/* Numbers that embeddings, what each part adds, and logits are multiplied by. */
static bool scales_read(TgLlm *m) {
  LlmNumbers *k = &m->k;
  const LlmArch *a = m->arch;
  char name[128];
  k->embedding_scale = a->scale_embedding ? sqrt((double)k->width) : 1;
  k->residual_scale = k->logit_scale = 1;
  if (a->scaled && !(real_of(m, "embedding_scale", 1, &k->embedding_scale) &&
                     real_of(m, "residual_scale", 1, &k->residual_scale)))
    return false;
  if (!a->scaled && !a->scaled_logits) return true;
  snprintf(name, sizeof name, "%.60s.logit_scale", m->architecture);
  if (!llm_kv(m->gguf, name)) return llm_fail(m->ctx, TG_ERR_VALUE, "llm: the file has no %s", name);
  if (!real_of(m, "logit_scale", 1, &k->logit_scale)) return false;
  if (k->logit_scale == 0) return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s is 0", name);
  if (a->scaled) k->logit_scale = 1 / k->logit_scale; /* where all are scaled, logits are divided */
  return true;
}

static bool reals_read(TgLlm *m) {
  LlmNumbers *k = &m->k;
  bool deep = m->arch->deep && k->layers == m->arch->deep;
  double scale = 1 / sqrt(deep ? (double)k->width / (double)k->heads : (double)k->head);
  const char *eps = m->arch->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  if (!real_of(m, eps, 1e-5, &k->eps) || !real_of(m, "attention.scale", scale, &k->scale)) return false;
  if (k->scale == 0) k->scale = scale;
  return scales_read(m) && real_of(m, "attn_logit_softcapping", 0, &k->attention_cap) &&
         real_of(m, "final_logit_softcapping", 0, &k->final_cap);
}

static bool together(TgLlm *m, bool ok, const char *what, int64_t a, int64_t b) {
  if (ok) return true;
  return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s: %s: %lld and %lld", m->architecture, what, (long long)a,
                  (long long)b);
}

/* The two elements of a head that rotate together, in this file. */
static bool rope_order(TgLlm *m) {
  char name[128];
  int64_t halves;
  snprintf(name, sizeof name, "%.60s.rope.halves", m->architecture);
  if (!llm_kv_int(m->ctx, m->gguf, name, 0, &halves)) return false;
  m->rope = halves && m->arch->rope == ROPE_PAIRS ? ROPE_HALVES : m->arch->rope;
  m->permuted = m->arch->permuted && !halves;
  return true;
}

/* Whether the weights of the chosen experts add up to 1: the file's word, or the row's. */
static bool shares_read(TgLlm *m) {
  char name[128];
  snprintf(name, sizeof name, "%.60s.expert_weights_norm", m->architecture);
  return llm_kv_int(m->ctx, m->gguf, name, m->arch->renormalized, &m->k.renormalized);
}

bool llm_numbers_read(TgLlm *m) {
  LlmNumbers *k = &m->k;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (!whole_of(m, &fields[i])) return false;
  if (!k->kv_heads) k->kv_heads = k->heads;
  if (!k->head) {
    if (!together(m, k->width % k->heads == 0, "width and heads", k->width, k->heads)) return false;
    k->head = k->width / k->heads;
  }
  if (!k->value_head) k->value_head = k->head;
  if (!k->rotary) k->rotary = k->head;
  if (!k->expert_ffn) k->expert_ffn = k->ffn;
  return together(m, k->layers <= 10000 && k->heads <= 4096, "layers and heads", k->layers, k->heads) &&
         together(m, k->heads % k->kv_heads == 0, "heads and heads of keys", k->heads, k->kv_heads) &&
         together(m, k->rotary <= k->head && k->rotary % 2 == 0, "elements that rotate, and of a head",
                  k->rotary, k->head) &&
         together(m, k->experts_used <= k->experts && !k->experts == !k->experts_used,
                  "experts, and used ones", k->experts, k->experts_used) &&
         reals_read(m) && rope_order(m) && shares_read(m);
}

/* ---- weights */
static int64_t size_of(const LlmNumbers *k, LlmSize s) {
  int64_t nq = k->heads * k->head, nk = k->kv_heads * k->head, nv = k->kv_heads * k->value_head;
  const int64_t sizes[] = {[SIZE_WIDTH] = k->width,
                           [SIZE_QUERIES] = nq,
                           [SIZE_KEYS] = nk,
                           [SIZE_VALUES] = nv,
                           [SIZE_QUERIES_KEYS_VALUES] = nq + nk + nv,
                           [SIZE_HEADS_VALUES] = k->heads * k->value_head,
                           [SIZE_HEAD] = k->head,
                           [SIZE_HEADS] = k->heads,
                           [SIZE_FFN] = k->ffn,
                           [SIZE_TWO_FFN] = 2 * k->ffn,
                           [SIZE_EXPERTS] = k->experts,
                           [SIZE_EXPERT_FFN] = k->expert_ffn,
                           [SIZE_SHARED_FFN] = k->shared_ffn,
                           [SIZE_ONE] = 1};
  return sizes[s];
}

/* The tensor of that name, whose shape must be as dims say (n 0: any). A one-row matrix is a row. NULL: it is
 * not there (an error where it must be), or is otherwise (an error). *used counts those that are taken. */
typedef struct Finder {
  TgLlm *m;
  size_t used;
  bool ok;
} Finder;

static TgTensor *find(Finder *f, const char *name, bool must, int n, const int64_t *dims) {
  const TgValue *v = tg_value_get(tg_value_get(f->m->gguf, "tensors"), name);
  TgTensor *t = tg_value_tensor(v);
  char is[120], should[120];
  if (!f->ok) return NULL;
  if (!t) {
    if (v)
      f->ok = llm_fail(f->m->ctx, TG_ERR_VALUE,
                       "llm: tensor '%s' is of a type whose values are not known here", name);
    if (must && !v) f->ok = llm_fail(f->m->ctx, TG_ERR_VALUE, "llm: the file has no tensor '%s'", name);
    return NULL;
  }
  bool same = tg_ndim(t) == n;
  for (int i = 0; same && i < n; i++)
    same = tg_dim(t, i) == dims[i];
  if (!same) {
    llm_dims_text(is, sizeof is, tg_ndim(t), tg_shape(t));
    llm_dims_text(should, sizeof should, n, dims);
    f->ok =
        llm_fail(f->m->ctx, TG_ERR_VALUE, "llm: tensor '%s' is %s, where the model has %s", name, is, should);
    return NULL;
  }
  f->used++;
  f->m->parameters += tg_numel(t);
  return t;
}

int llm_weight_shape(const TgLlm *m, LlmWeight w, int64_t dims[3]) {
  const LlmWeightShape *s = &llm_weights_of_layer[w];
  int n = 0;
  while (n < 3 && s->dims[n] != SIZE_NONE) {
    dims[n] = size_of(&m->k, s->dims[n]);
    n++;
  }
  return n;
}

/* Weight w of a layer, and its bias. A bias that is not required is taken where there is one. */
static void weight_find(Finder *f, int64_t layer, LlmLayer *to, LlmWeight w, bool bias) {
  const LlmWeightShape *s = &llm_weights_of_layer[w];
  char name[80];
  int64_t dims[3];
  int n = llm_weight_shape(f->m, w, dims);
  snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, s->name);
  to->w[w] = find(f, name, true, n, dims);
  snprintf(name, sizeof name, "blk.%lld.%s.bias", (long long)layer, s->name);
  int of_bias = n > 1 ? n - 1 : 1; /* one for each row */
  to->b[w] = find(f, name, bias, of_bias, dims);
}

static bool is_last_of(int64_t i, int64_t every) { return every > 0 && i % every == every - 1; }

static void layer_find(Finder *f, int64_t i) {
  const TgLlm *m = f->m;
  const LlmArch *a = m->arch;
  unsigned dense = BIT(W_FFN_NORM) | BIT(W_GATE) | BIT(W_UP) | BIT(W_GATE_UP) | BIT(W_DOWN);
  unsigned wanted = m->k.experts ? (a->weights & ~dense) | a->experts : a->weights;
  LlmLayer *l = &m->layer[i];
  for (int w = 0; w < W_COUNT && f->ok; w++)
    if (wanted & BIT(w)) weight_find(f, i, l, (LlmWeight)w, a->biases & BIT(w));
  l->windowed = m->k.window && !is_last_of(i, a->global_every);
  l->still = is_last_of(i, a->still_every);
}

/* Which layers have a window, where the file says it: of so many the last has none, or a bool for each. */
static bool windows_read(TgLlm *m) {
  char name[128];
  snprintf(name, sizeof name, "%.60s.attention.sliding_window_pattern", m->architecture);
  const TgValue *v = llm_kv(m->gguf, name);
  TgTensor *each = tg_value_tensor(v);
  bool *windowed = each ? tg_alloc(m->ctx, (size_t)m->k.layers) : NULL;
  bool ok = !each || (tg_dtype(each) == TG_BOOL && tg_numel(each) == m->k.layers);
  if (!v) return true;
  if (!ok || (!each && tg_value_kind(v) != TG_KIND_INT))
    ok = llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s is neither a number nor a bool for each of %lld layers",
                  name, (long long)m->k.layers);
  if (ok && each) ok = windowed && !tg_read(each, windowed, (size_t)m->k.layers);
  int64_t every = tg_value_int(v);
  for (int64_t i = 0; ok && i < m->k.layers; i++)
    m->layer[i].windowed = m->k.window && (each ? windowed[i] : !is_last_of(i, every));
  tg_free(m->ctx, windowed);
  return ok;
}

/* A tensor that nothing here uses would have changed what the model says. */
static bool all_used(Finder *f) {
  size_t n = tg_value_count(tg_value_get(f->m->gguf, "tensors"));
  if (!f->ok || n == f->used) return f->ok;
  const TgValue *all = tg_value_get(f->m->gguf, "tensors");
  for (size_t i = 0; i < n; i++) {
    TgTensor *t = tg_value_tensor(tg_value_at(all, i));
    TgLlm *m = f->m;
    bool used = t == m->embedding || t == m->positions || t == m->norm || t == m->norm_bias || t == m->head ||
                t == m->rope_factors || t == m->rope_long || t == m->rope_short;
    for (int64_t l = 0; !used && l < m->k.layers; l++)
      for (int w = 0; !used && w < W_COUNT; w++)
        used = t == m->layer[l].w[w] || t == m->layer[l].b[w];
    if (!used)
      return llm_fail(m->ctx, TG_ERR_VALUE, "llm: tensor '%.63s' is none that %s has here",
                      tg_value_string(tg_value_key(all, i), NULL), m->arch->name);
  }
  return true;
}

static bool experts_fit(TgLlm *m) {
  if (m->k.experts && !m->arch->experts)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s with experts is not known here", m->arch->name);
  if (!m->k.experts && m->arch->experts && !(m->arch->weights & BIT(W_DOWN)))
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s without experts", m->arch->name);
  return true;
}

bool llm_weights_find(TgLlm *m) {
  Finder f = {m, 0, experts_fit(m)};
  const LlmNumbers *k = &m->k;
  const TgValue *embedding = tg_value_get(tg_value_get(m->gguf, "tensors"), "token_embd.weight");
  TgTensor *e = tg_value_tensor(embedding);
  m->k.vocabulary = e && tg_ndim(e) == 2 ? tg_dim(e, 0) : 1;
  int64_t table[] = {k->vocabulary, k->width}, rows[] = {k->trained, k->width}, half[] = {k->rotary / 2};
  m->embedding = find(&f, "token_embd.weight", true, 2, table);
  m->positions = find(&f, "position_embd.weight", m->arch->positions, 2, rows);
  m->norm = find(&f, "output_norm.weight", true, 1, &k->width);
  m->norm_bias = find(&f, "output_norm.bias", m->arch->biases & BIT(W_ATTN_NORM), 1, &k->width);
  m->head = find(&f, "output.weight", false, 2, table);
  m->rope_factors = find(&f, "rope_freqs.weight", false, 1, half);
  m->rope_long = find(&f, "rope_factors_long.weight", false, 1, half);
  m->rope_short = find(&f, "rope_factors_short.weight", m->rope_long != NULL, 1, half);
  for (int64_t i = 0; i < k->layers && f.ok; i++)
    layer_find(&f, i);
  if (!all_used(&f) || !windows_read(m)) return false;
  m->tied = !m->head;
  if (m->tied) m->head = m->embedding;
  if (m->tokenizer && tg_tokenizer_count(m->tokenizer) > k->vocabulary)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %lld tokens, and tensor 'token_embd.weight' has %lld rows",
                    (long long)tg_tokenizer_count(m->tokenizer), (long long)k->vocabulary);
  return true;
}
