/* file.c: checks the contents of a gguf file against its architecture's row. In: key-values and tensors. Out:
 * the numbers of a model and its weights, which stay views of the file. Every number and every shape is
 * checked before a graph is built; a contradiction is an error that names both sides. */
#include "model_private.h"
#include <math.h>
#include <stdio.h>

/* ---- numbers */
typedef struct Field {
  const char *key;
  size_t offset;
  int64_t fallback; /* -1: the key is required */
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
                               FIELD("expert_shared_feed_forward_length", shared_ffn, 0),
                               FIELD("expert_shared_count", shared, 0),
                               FIELD("expert_group_count", groups, 0),
                               FIELD("expert_group_used_count", groups_used, 0),
                               FIELD("expert_gating_func", gating, 0),
                               FIELD("leading_dense_block_count", dense, 0),
                               FIELD("nextn_predict_layers", unread, 0),
                               FIELD("attention.q_lora_rank", q_rank, 0),
                               FIELD("attention.kv_lora_rank", kv_rank, 0),
                               FIELD("attention.key_length_mla", key_mla, 0),
                               FIELD("attention.value_length_mla", value_mla, 0)};

/* Keys that would change a model's results and are supported only with this value. */
static const struct {
  const char *key;
  double as;
} unknown[] = {
    {"rope.dimension_sections", 0},  {"rope.scaling.alpha", 0},         {"attention.temperature_scale", 0},
    {"attention.output_scale", 1},   {"attention.value_scale", 1},      {"attention.rope_pattern", 0},
    {"attention.key_length_swa", 0}, {"attention.value_length_swa", 0}, {"router_logit_softcapping", 0},
    {"swiglu_clamp_exp", 0},         {"swiglu_clamp_shexp", 0},         {"interleave_moe_layer_step", 1},
    {"moe_every_n_layers", 0},       {"expert_group_scale", 1},         {"experts_per_group", 0}};

static bool none_unknown(TgLlm *m) {
  char name[128];
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    snprintf(name, sizeof name, "%.60s.%s", m->architecture, unknown[i].key);
    const TgValue *v = llm_kv(m->gguf, name);
    bool number = v && (tg_value_kind(v) == TG_KIND_INT || tg_value_kind(v) == TG_KIND_FLOAT);
    if (v && !(number && tg_value_float(v) == unknown[i].as))
      return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s: a model with it is not known here", name);
  }
  return true;
}

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

/* The factors of the embeddings, of what each part adds, and of the logits. */
static bool scales_read(TgLlm *m) {
  LlmNumbers *k = &m->k;
  const LlmArch *a = m->arch;
  char name[128];
  k->embedding_scale = a->scale_embedding ? sqrt((double)k->width) : 1;
  k->residual_scale = k->logit_scale = 1;
  if (a->usual) {
    k->embedding_scale = 12;
    k->residual_scale = 1.4 / sqrt((double)k->layers);
    k->logit_scale = (double)k->width / 256;
  }
  if (!(real_of(m, "embedding_scale", k->embedding_scale, &k->embedding_scale) &&
        real_of(m, "residual_scale", k->residual_scale, &k->residual_scale)))
    return false;
  snprintf(name, sizeof name, "%.60s.logit_scale", m->architecture);
  if ((a->scaled || a->scaled_logits) && !a->usual && !llm_kv(m->gguf, name))
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: the file has no %s", name);
  if (!real_of(m, "logit_scale", k->logit_scale, &k->logit_scale)) return false;
  if (k->logit_scale == 0) return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s is 0", name);
  if (a->scaled) k->logit_scale = 1 / k->logit_scale; /* if all are scaled, logits are divided */
  if (a->scaled || a->scaled_logits || k->logit_scale == 1) return true;
  return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s: %s with it is not known here", name, a->name);
}

static bool reals_read(TgLlm *m) {
  LlmNumbers *k = &m->k;
  bool deep = m->arch->deep && k->layers == m->arch->deep;
  double scale = 1 / sqrt(deep ? (double)k->width / (double)k->heads : (double)k->key);
  const char *eps = m->arch->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  if (!real_of(m, eps, 1e-5, &k->eps) || !real_of(m, "attention.scale", scale, &k->scale)) return false;
  if (k->scale == 0) k->scale = scale;
  return scales_read(m) && real_of(m, "attention.max_alibi_bias", m->arch->alibi, &k->alibi) &&
         real_of(m, "attention.clamp_kqv", 0, &k->clamp) &&
         real_of(m, "expert_weights_scale", 1, &k->expert_scale) &&
         real_of(m, "attn_logit_softcapping", 0, &k->attention_cap) &&
         real_of(m, "final_logit_softcapping", 0, &k->final_cap);
}

static bool together(TgLlm *m, bool ok, const char *what, int64_t a, int64_t b) {
  if (ok) return true;
  return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s: %s: %lld and %lld", m->architecture, what, (long long)a,
                  (long long)b);
}

/* How the shares of experts are computed, by the file or by the architecture's row. A softmax of the chosen
 * experts alone equals a softmax of all experts whose chosen shares are scaled to add up to 1. */
static bool shares_read(TgLlm *m) {
  char name[128];
  LlmNumbers *k = &m->k;
  if (!k->gating) k->gating = m->arch->sigmoid ? GATING_SIGMOID : GATING_SOFTMAX;
  if (k->gating > GATING_OF_CHOSEN)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s.expert_gating_func is %lld, which is not known here",
                    m->architecture, (long long)k->gating);
  bool all = m->arch->renormalized || k->gating == GATING_OF_CHOSEN;
  if (k->expert_scale == 0) k->expert_scale = 1;
  if (!k->shared_ffn) k->shared_ffn = k->expert_ffn * k->shared;
  if (k->groups > 1 && (k->gating != GATING_SIGMOID || k->experts % k->groups || k->experts / k->groups < 2 ||
                        k->groups_used < 1 || k->groups_used > k->groups ||
                        k->groups_used * (k->experts / k->groups) < k->experts_used))
    return llm_fail(
        m->ctx, TG_ERR_VALUE,
        "llm: %s.expert_group_count is %lld, %lld of them used: %lld experts in groups are known here "
        "with a sigmoid alone",
        m->architecture, (long long)k->groups, (long long)k->groups_used, (long long)k->experts);
  snprintf(name, sizeof name, "%.60s.expert_weights_norm", m->architecture);
  return llm_kv_int(m->ctx, m->gguf, name, all, &k->renormalized);
}

/* Latent attention keeps a narrow vector in place of keys and values. If the file has the two products of
 * this vector as separate matrices, heads attend to the vector itself; otherwise each head has keys and
 * values of its own. */
static bool latent_fits(TgLlm *m) {
  const LlmNumbers *k = &m->k;
  bool latent = m->arch->weights & BIT(W_KV_A), folded = k->key_mla > 0;
  if (!together(m, latent == (k->kv_rank > 0), "latent attention, and its rank", latent, k->kv_rank))
    return false;
  if (!latent)
    return together(m, !folded && !k->value_mla && !k->q_rank, "no latent attention, and its sizes",
                    k->key_mla, k->q_rank);
  int64_t heads = folded ? 1 : k->heads, head = folded ? k->kv_rank + k->rotary : k->key;
  return together(m, k->rotary < k->key, "elements that rotate, and of a head", k->rotary, k->key) &&
         together(m, k->kv_heads == heads, "heads of keys, and those of latent attention", k->kv_heads,
                  heads) &&
         together(m, k->head == head, "elements of a key, and of a latent one", k->head, head) &&
         together(m, k->value_head == (folded ? k->kv_rank : k->value),
                  "elements of a value, and of a latent one", k->value_head, folded ? k->kv_rank : k->value);
}

/* Reads how a text's tokens become one result, and whether tokens see the tokens after them. */
static bool pooling_read(TgLlm *m) {
  char name[128];
  int64_t causal;
  snprintf(name, sizeof name, "%.60s.attention.causal", m->architecture);
  if (!llm_kv_int(m->ctx, m->gguf, name, !m->arch->encoder, &causal)) return false;
  if (causal && m->arch->encoder)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s is true, which %s is not here", name, m->arch->name);
  if (!causal && !m->arch->encoder) {
    m->both_ways = *m->arch;
    m->both_ways.encoder = true;
    m->arch = &m->both_ways;
  }
  snprintf(name, sizeof name, "%.60s.classifier.pooling_type", m->architecture);
  if (!llm_kv_int(m->ctx, m->gguf, name, POOL_FIRST, &m->k.judged)) return false;
  if (m->k.judged != POOL_FIRST && m->k.judged != POOL_MEAN)
    return llm_fail(m->ctx, TG_ERR_VALUE,
                    "llm: %s is %lld: the mean (1) and the first token (2) are known here", name,
                    (long long)m->k.judged);
  snprintf(name, sizeof name, "%.60s.pooling_type", m->architecture);
  if (!llm_kv_int(m->ctx, m->gguf, name, POOL_MEAN, &m->k.pooling)) return false;
  if (m->k.pooling < 0 || m->k.pooling >= POOL_KINDS)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s is %lld", name, (long long)m->k.pooling);
  return true;
}

/* Reads which two elements of a head rotate together in this file, and whether attention and the feed-forward
 * part read the same x. */
static bool rope_order(TgLlm *m) {
  char name[128];
  int64_t halves;
  snprintf(name, sizeof name, "%.60s.rope.halves", m->architecture);
  if (!llm_kv_int(m->ctx, m->gguf, name, 0, &halves)) return false;
  m->rope = halves && m->arch->rope == ROPE_PAIRS ? ROPE_HALVES : m->arch->rope;
  m->permuted = m->arch->permuted && !halves;
  snprintf(name, sizeof name, "%.60s.use_parallel_residual", m->architecture);
  int64_t parallel = m->arch->parallel;
  if (!(m->arch->maybe & BIT(W_FFN_NORM)) && !llm_kv_int(m->ctx, m->gguf, name, parallel, &parallel))
    return false;
  m->parallel = parallel != 0;
  return true;
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
  k->key = k->key_mla ? k->key_mla : k->head;
  k->value = k->value_mla ? k->value_mla : k->value_head;
  if (!together(m, k->unread < k->layers, "layers, and those that predict further tokens", k->layers,
                k->unread))
    return false;
  k->layers -= k->unread;
  return together(m, k->layers <= 10000 && k->heads <= 4096, "layers and heads", k->layers, k->heads) &&
         together(m, k->heads % k->kv_heads == 0, "heads and heads of keys", k->heads, k->kv_heads) &&
         together(m, m->arch->rope == ROPE_NONE || (k->rotary <= k->head && k->rotary % 2 == 0),
                  "elements that rotate, and of a head", k->rotary, k->head) &&
         together(m, k->experts_used <= k->experts && !k->experts == !k->experts_used,
                  "experts, and used ones", k->experts, k->experts_used) &&
         together(m, k->dense <= k->layers, "layers, and those without experts", k->layers, k->dense) &&
         none_unknown(m) && latent_fits(m) && reals_read(m) && rope_order(m) && shares_read(m) &&
         pooling_read(m);
}

/* ---- weights */
static int64_t size_of(const LlmNumbers *k, LlmSize s) {
  int64_t nq = k->heads * k->key, still = k->key - k->rotary, nk = k->kv_heads * k->head,
          nv = k->kv_heads * k->value_head;
  const int64_t sizes[] = {[SIZE_WIDTH] = k->width,
                           [SIZE_QUERIES] = nq,
                           [SIZE_KEYS] = nk,
                           [SIZE_VALUES] = nv,
                           [SIZE_QUERIES_KEYS_VALUES] = nq + nk + nv,
                           [SIZE_HEADS_VALUES] = k->heads * k->value,
                           [SIZE_HEAD] = k->head,
                           [SIZE_HEADS] = k->heads,
                           [SIZE_FFN] = k->ffn,
                           [SIZE_TWO_FFN] = 2 * k->ffn,
                           [SIZE_EXPERTS] = k->experts,
                           [SIZE_EXPERT_FFN] = k->expert_ffn,
                           [SIZE_SHARED_FFN] = k->shared_ffn,
                           [SIZE_LABELS] = k->labels,
                           [SIZE_VOCABULARY] = k->vocabulary,
                           [SIZE_TRAINED] = k->trained,
                           [SIZE_TYPES] = k->types,
                           [SIZE_HALF_ROTARY] = k->rotary / 2,
                           [SIZE_KV_HEADS] = k->kv_heads,
                           [SIZE_Q_RANK] = k->q_rank,
                           [SIZE_KV_RANK] = k->kv_rank,
                           [SIZE_KV_RANK_ROTARY] = k->kv_rank + k->rotary,
                           [SIZE_STILL] = still,
                           [SIZE_VALUE] = k->value,
                           [SIZE_STILL_VALUES] = k->heads * (still + k->value),
                           [SIZE_DENSE] = k->between};
  return sizes[s];
}

/* find() returns the tensor of that name, whose shape must be as dims say (a matrix of one row may be stored
 * as a vector). It returns NULL if the tensor is missing, which is an error if it is required, or if it is
 * wrong, which is an error. ok: false from the first error on. used: the number of tensors that were
 * found. */
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
  bool one_row = n == 2 && dims[0] == 1 && tg_ndim(t) == 1;
  bool same = tg_ndim(t) == n || one_row;
  for (int i = one_row; same && i < n; i++)
    same = tg_dim(t, i - one_row) == dims[i];
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

/* Finds weight w of a layer and its bias. A bias that is not required is used if there is one. */
static void weight_find(Finder *f, int64_t layer, LlmLayer *to, LlmWeight w, bool must, bool bias) {
  const LlmWeightShape *s = &llm_weights_of_layer[w];
  char name[80];
  int64_t dims[3];
  int n = llm_weight_shape(f->m, w, dims);
  snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, s->name);
  if (!s->bias) to->w[w] = find(f, name, must, n, dims);
  snprintf(name, sizeof name, "blk.%lld.%s.bias", (long long)layer, s->name);
  int of_bias = n > 1 ? n - 1 : 1; /* one number for each row */
  if (to->w[w] || s->bias) to->b[w] = find(f, name, bias, of_bias, dims);
}

/* The number of rows of weight w of a layer in the file; 0: there is none. */
static int64_t rows_filed(const Finder *f, int64_t layer, LlmWeight w) {
  char name[80];
  snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, llm_weights_of_layer[w].name);
  TgTensor *t = tg_value_tensor(tg_value_get(tg_value_get(f->m->gguf, "tensors"), name));
  return t && tg_ndim(t) ? tg_dim(t, 0) : 0;
}

/* Adapts the set of wanted weights to the file, which may have q, k and v, or gate and up, as separate
 * matrices or as one. */
static uint64_t as_filed(const Finder *f, int64_t layer, uint64_t wanted) {
  const uint64_t apart = BIT(W_Q) | BIT(W_K) | BIT(W_V), gated = BIT(W_GATE) | BIT(W_UP);
  if ((wanted & apart) == apart && rows_filed(f, layer, W_QKV)) wanted ^= apart | BIT(W_QKV);
  if ((wanted & BIT(W_QKV)) && rows_filed(f, layer, W_Q)) wanted ^= apart | BIT(W_QKV);
  if ((wanted & gated) == gated && !rows_filed(f, layer, W_GATE) &&
      rows_filed(f, layer, W_UP) == 2 * f->m->k.ffn)
    wanted ^= gated | BIT(W_GATE_UP);
  if (wanted & BIT(W_KV_A)) {
    wanted |= f->m->k.q_rank ? BIT(W_Q_A) | BIT(W_Q_A_NORM) | BIT(W_Q_B) : BIT(W_Q);
    wanted |= f->m->k.key_mla ? BIT(W_K_B) | BIT(W_V_B) : BIT(W_KV_B);
  }
  return wanted;
}

static bool is_last_of(int64_t i, int64_t every) { return every > 0 && i % every == every - 1; }

/* Whether layer i has no window, where one layer of each `every` has none. */
static bool is_global(const LlmArch *a, int64_t i, int64_t every) {
  return a->global_first ? every > 0 && i % every == 0 : is_last_of(i, every);
}

static void layer_find(Finder *f, int64_t i) {
  const TgLlm *m = f->m;
  const LlmArch *a = m->arch;
  const uint64_t dense = BIT(W_FFN_NORM) | BIT(W_GATE) | BIT(W_UP) | BIT(W_GATE_UP) | BIT(W_DOWN);
  const uint64_t shared = BIT(W_SHARED_GATE) | BIT(W_SHARED_UP) | BIT(W_SHARED_DOWN);
  bool experts = m->k.experts && i >= m->k.dense;
  uint64_t wanted = experts ? (a->weights & ~dense) | a->experts : a->weights, maybe = a->maybe;
  if (!experts) maybe &= ~BIT(W_PICK_BIAS);
  if (!m->k.shared_ffn && !(wanted & BIT(W_SHARED_ROUTER))) wanted &= ~shared;
  uint64_t biases = a->biases;
  LlmLayer *l = &m->layer[i];
  wanted = as_filed(f, i, wanted);
  if (biases & (BIT(W_Q) | BIT(W_QKV))) biases |= BIT(W_Q) | BIT(W_K) | BIT(W_V) | BIT(W_QKV);
  for (int w = 0; w < W_COUNT && f->ok; w++)
    if ((wanted | maybe) & BIT(w)) weight_find(f, i, l, (LlmWeight)w, wanted & BIT(w), biases & BIT(w));
  l->windowed = m->k.window && !is_global(a, i, a->global_every);
  l->still = is_last_of(i, a->still_every);
  l->parallel = m->parallel || (a->maybe & BIT(W_FFN_NORM) && !l->w[W_FFN_NORM]);
}

/* Reads which layers have a window, if the file says so: a number n, by which one of each n layers has
 * none, or a bool for each layer. */
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
    m->layer[i].windowed = m->k.window && (each ? windowed[i] : !is_global(m->arch, i, every));
  tg_free(m->ctx, windowed);
  return ok;
}

/* Whether the tensor belongs to a layer that predicts tokens after the next one. These layers are not
 * read. */
static bool is_unread(const TgLlm *m, const char *name) {
  char begin[40];
  for (int64_t i = m->k.layers; i < m->k.layers + m->k.unread; i++) {
    int n = snprintf(begin, sizeof begin, "blk.%lld.", (long long)i);
    if (!strncmp(name, begin, (size_t)n)) return true;
  }
  return false;
}

/* An unused tensor is an error, because it would have changed the model's results. */
static bool all_used(Finder *f) {
  size_t n = tg_value_count(tg_value_get(f->m->gguf, "tensors"));
  if (!f->ok || n == f->used) return f->ok;
  const TgValue *all = tg_value_get(f->m->gguf, "tensors");
  for (size_t i = 0; i < n; i++) {
    TgTensor *t = tg_value_tensor(tg_value_at(all, i));
    TgLlm *m = f->m;
    const LlmOwnWeight *own;
    bool used = is_unread(m, tg_value_string(tg_value_key(all, i), NULL));
    for (int k = 0; !used && (own = llm_own_weight(k)); k++)
      used = t == *llm_own_place(m, own, false) || (own->bias && t == *llm_own_place(m, own, true));
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
  if (m->k.dense && m->k.experts && !(m->arch->weights & BIT(W_DOWN)))
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s with %lld layers without experts is not known here",
                    m->arch->name, (long long)m->k.dense);
  return true;
}

/* ---- weights of the whole */
#define AT(field) offsetof(TgLlm, field)

static const LlmOwnWeight own_weights[] = {
    {"token_embd", OWN_ALL, AT(embedding), 0, {SIZE_VOCABULARY, SIZE_WIDTH}},
    {"token_types", OWN_ENCODERS, AT(types), 0, {SIZE_TYPES, SIZE_WIDTH}},
    {"position_embd", OWN_POSITIONS, AT(positions), 0, {SIZE_TRAINED, SIZE_WIDTH}},
    {"token_embd_norm", OWN_BEGIN, AT(embedding_norm), AT(embedding_norm_bias), {SIZE_WIDTH}},
    {"output_norm", OWN_NORM, AT(norm), AT(norm_bias), {SIZE_WIDTH}},
    {"output", OWN_HEAD, AT(head), AT(head_bias), {SIZE_VOCABULARY, SIZE_WIDTH}},
    {"cls", OWN_ENCODERS, AT(cls), AT(cls_bias), {SIZE_WIDTH, SIZE_WIDTH}},
    {"cls.norm", OWN_ENCODERS, AT(cls_norm), AT(cls_norm_bias), {SIZE_WIDTH}},
    {"cls.output", OWN_RANKERS, AT(cls_out), AT(cls_out_bias), {SIZE_LABELS, SIZE_WIDTH}},
    {"dense_2", OWN_ENCODERS, AT(dense_in), 0, {SIZE_DENSE, SIZE_WIDTH}},
    {"dense_3", OWN_ENCODERS, AT(dense_out), 0, {SIZE_WIDTH, SIZE_DENSE}},
    {"rope_freqs", OWN_ROPE, AT(rope_factors), 0, {SIZE_HALF_ROTARY}},
    {"rope_factors_long", OWN_ROPE, AT(rope_long), 0, {SIZE_HALF_ROTARY}},
    {"rope_factors_short", OWN_SHORT, AT(rope_short), 0, {SIZE_HALF_ROTARY}}};

enum { OWN_WEIGHTS = sizeof own_weights / sizeof *own_weights };

const LlmOwnWeight *llm_own_weight(int i) { return i < OWN_WEIGHTS ? &own_weights[i] : NULL; }

TgTensor **llm_own_place(TgLlm *m, const LlmOwnWeight *w, bool bias) {
  return (TgTensor **)((char *)m + (bias ? w->bias : w->weight));
}

typedef enum Need { NOT, MAY, MUST } Need;

static Need need_of(const TgLlm *m, const LlmOwnWeight *w, bool bias) {
  const LlmArch *a = m->arch;
  switch (w->who) {
  case OWN_ALL: return MUST;
  case OWN_POSITIONS: return a->positions ? MUST : a->rope == ROPE_NONE && !a->encoder ? MAY : NOT;
  case OWN_BEGIN: return !a->begin_norm ? NOT : bias ? MAY : MUST;
  case OWN_ENCODERS: return a->encoder ? MAY : NOT;
  case OWN_RANKERS: return MAY;
  case OWN_NORM:
    return !((a->weights | a->maybe) & (BIT(W_ATTN_NORM) | BIT(W_ATTN_POST_NORM))) ? NOT
           : !bias || (a->biases & BIT(W_ATTN_NORM))                               ? MUST
                                                                                   : MAY;
  case OWN_HEAD: return a->encoder && a != &m->both_ways ? NOT : MAY;
  case OWN_SHORT: return m->rope_long ? MUST : MAY;
  default: return MAY;
  }
}

static int64_t rows_of(const TgLlm *m, const char *name) {
  TgTensor *t = tg_value_tensor(tg_value_get(tg_value_get(m->gguf, "tensors"), name));
  return t && tg_ndim(t) == 2 ? tg_dim(t, 0) : 1;
}

static void own_find(Finder *f, const LlmOwnWeight *w, bool bias) {
  TgLlm *m = f->m;
  char name[80];
  int64_t dims[2] = {size_of(&m->k, w->dims[0]), 0};
  Need need = need_of(m, w, bias);
  if (need == NOT) return;
  if (w->dims[1]) dims[1] = size_of(&m->k, w->dims[1]);
  snprintf(name, sizeof name, "%s.%s", w->name, bias ? "bias" : "weight");
  *llm_own_place(m, w, bias) = find(f, name, need == MUST, w->dims[1] && !bias ? 2 : 1, dims);
}

/* A model has the head of a reranker if and only if its pooling is POOL_RANK. A decoder may rank texts
 * without it, by the logits of two tokens. */
static bool rank_fits(TgLlm *m) {
  bool is = m->k.pooling == POOL_RANK;
  if (is && !m->arch->encoder) return true;
  if (is == (m->cls_out != NULL) && (is || !m->cls)) return true;
  return llm_fail(m->ctx, TG_ERR_VALUE,
                  "llm: %s.pooling_type is %lld, and the file has %s tensor 'cls%s.weight'", m->architecture,
                  (long long)m->k.pooling, is ? "no" : "a", is || !m->cls ? ".output" : "");
}

bool llm_weights_find(TgLlm *m) {
  Finder f = {m, 0, experts_fit(m)};
  LlmNumbers *k = &m->k;
  k->vocabulary = rows_of(m, "token_embd.weight");
  k->types = rows_of(m, "token_types.weight");
  k->between = rows_of(m, "dense_2.weight");
  k->labels = rows_of(m, "cls.output.weight") == 2 ? 2 : 1;
  for (int i = 0; i < OWN_WEIGHTS; i++)
    for (int bias = 0; bias <= (own_weights[i].bias != 0); bias++)
      own_find(&f, &own_weights[i], bias);
  for (int64_t i = 0; i < k->layers && f.ok; i++)
    layer_find(&f, i);
  if (!all_used(&f) || !windows_read(m) || !rank_fits(m)) return false;
  if (!m->dense_in != !m->dense_out)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: the file has no tensor 'dense_%d.weight'",
                    m->dense_in ? 3 : 2);
  bool any = false;
  for (int64_t i = 0; i < k->layers; i++)
    any |= m->layer[i].windowed;
  for (int64_t i = 0; i < k->layers && m->arch->still_global; i++)
    m->layer[i].still = any && !m->layer[i].windowed;
  m->tied = !m->head && !m->arch->encoder;
  if (m->tied) m->head = m->embedding;
  if (m->tokenizer && tg_tokenizer_count(m->tokenizer) > k->vocabulary)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %lld tokens, and tensor 'token_embd.weight' has %lld rows",
                    (long long)tg_tokenizer_count(m->tokenizer), (long long)k->vocabulary);
  return true;
}
