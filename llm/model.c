/* model.c: a model opened from a gguf file and run. In: key-values and tensors; ids. Out: logits. Every
 * number and shape is checked against the architecture's row before a graph is built; weights stay views of
 * the file. A step is a captured program with the position as its variable, of 1 token or of a block of
 * them; what a block has too few tokens for is written behind the context and overwritten by the next step.
 */
#include "model_private.h"
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

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

enum { LARGEST = 1 << 26 };

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

static bool reals_read(TgLlm *m) {
  LlmNumbers *k = &m->k;
  bool deep = m->arch->deep && k->layers == m->arch->deep;
  double scale = 1 / sqrt(deep ? (double)k->width / (double)k->heads : (double)k->head);
  const char *eps = m->arch->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  if (!real_of(m, eps, 1e-5, &k->eps) || !real_of(m, "attention.scale", scale, &k->scale)) return false;
  if (k->scale == 0) k->scale = scale;
  return real_of(m, "attn_logit_softcapping", 0, &k->attention_cap) &&
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

static bool numbers_read(TgLlm *m) {
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

static bool weights_find(TgLlm *m) {
  Finder f = {m, 0, experts_fit(m)};
  const LlmNumbers *k = &m->k;
  const TgValue *embedding = tg_value_get(tg_value_get(m->gguf, "tensors"), "token_embd.weight");
  TgTensor *e = tg_value_tensor(embedding);
  m->k.vocabulary = e && tg_ndim(e) == 2 ? tg_dim(e, 0) : 1;
  int64_t table[] = {k->vocabulary, k->width}, rows[] = {k->trained, k->width}, half[] = {k->rotary / 2};
  m->embedding = find(&f, "token_embd.weight", true, 2, table);
  m->positions = find(&f, "position_embd.weight", m->arch->positions, 2, rows);
  m->norm = find(&f, "output_norm.weight", true, 1, &k->width);
  m->norm_bias = find(&f, "output_norm.bias", m->arch->layer_norm, 1, &k->width);
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

/* ---- opening */
enum { USUAL_CONTEXT = 4096, USUAL_BLOCK = 128, SMALL_BLOCK = 16, MOST_SEQUENCES = 1024 };

/* What a step of several sequences sees of the cache is a multiple of this: no sum has a tail, whose order
 * would depend on the longest of them. */
enum { REACH_STEP = 64 };

/* Rows of a step of several sequences that cost little more than one: as many as a product takes in which
 * quantised weights are decoded where they are used. */
static int64_t usual_batch(const TgLlm *m) {
  const TgValue *place = tg_value_get(tg_value_get(m->gguf, "places"), "blk.0.attn_output.weight");
  const char *type = tg_ggml_type_name((int)tg_value_int(tg_value_at(place, 0)));
  int64_t rows = type && strcmp(type, "F32") && strcmp(type, "F16") && strcmp(type, "BF16") ? 2 : 4;
  return m->sequences < 2 ? 0 : rows;
}

/* What keys and values are kept as. */
static bool cache_kind(TgLlm *m, const char *name) {
  static const struct {
    const char *name;
    TgDType dtype;
    bool packed;
  } kinds[] = {
      {"f32", TG_F32, false}, {"f16", TG_F16, false}, {"bf16", TG_BF16, false}, {"q8_0", TG_I8, true}};

  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(kinds[i].name, name)) continue;
    m->cache = kinds[i].dtype;
    m->packed = kinds[i].packed;
    return true;
  }
  return llm_fail(m->ctx, TG_ERR_DTYPE, "llm_open: a cache of %.30s: it is f32, f16, bf16 or q8_0", name);
}

static bool options_read(TgLlm *m, const TgLlmOptions *given) {
  TgLlmOptions o;
  if (tg_options_read(m->ctx, "llm_open", "TgLlmOptions", &o, sizeof o, given)) return false;
  int64_t usual = m->k.trained < USUAL_CONTEXT ? m->k.trained : USUAL_CONTEXT;
  m->context = o.context ? o.context : usual;
  m->block = o.block ? o.block : USUAL_BLOCK;
  m->cache = o.cache ? o.cache : TG_F32;
  m->activations = o.activations ? o.activations : 16;
  m->sequences = o.sequences ? o.sequences : 1;
  if (m->activations != 8 && m->activations != 16 && m->activations != 32)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm_open: activations of %lld bits: they have 8, 16 or 32",
                    (long long)o.activations);
  if (m->context < 1 || m->context > LARGEST || m->block < 1 || m->block > 65536)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm_open: a context of %lld, blocks of %lld",
                    (long long)m->context, (long long)m->block);
  if (m->sequences < 1 || m->sequences > MOST_SEQUENCES || o.batch > MOST_SEQUENCES)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm_open: %lld sequences, %lld in a step", (long long)m->sequences,
                    (long long)o.batch);
  m->batch = o.batch < 0 ? usual_batch(m) : o.batch;
  if (m->positions && m->context > m->k.trained) m->context = m->k.trained;
  if (m->block > m->context) m->block = m->context;
  m->room = m->context + m->block;
  if (m->batch && m->room % REACH_STEP) m->room += REACH_STEP - m->room % REACH_STEP;
  return cache_kind(m, o.cache_type ? o.cache_type : tg_dtype_name(m->cache));
}

static bool caches_make(TgLlm *m) {
  for (int64_t i = 0; i < m->k.layers; i++) {
    LlmLayer *l = &m->layer[i];
    if (!llm_cache_make(m, &l->keys, m->k.head) || !llm_cache_make(m, &l->values, m->k.value_head))
      return false;
  }
  return true;
}

static bool parts_make(TgLlm *m, LlmStep *s) {
  int64_t layers = s->n > 1 ? 1 : m->k.layers;
  s->nparts = m->k.layers / layers;
  if (!(s->part = tg_alloc(m->ctx, (size_t)s->nparts * sizeof *s->part))) return false;
  for (int64_t i = 0; i < s->nparts; i++) {
    LlmPart *p = &s->part[i];
    *p = (LlmPart){.m = m, .n = s->n, .first = i * layers, .last = (i + 1) * layers, .many = s->many};
    if (!(p->jit = tg_jit(m->ctx, llm_part, p))) return false;
  }
  if (s->many) return true;
  s->hidden = s->part[s->nparts - 1];
  s->hidden.hidden = true;
  return (s->hidden.jit = tg_jit(m->ctx, llm_part, &s->hidden)) != NULL;
}

static bool sequences_make(TgLlm *m) {
  if (!(m->sequence = tg_alloc(m->ctx, (size_t)m->sequences * sizeof *m->sequence))) return false;
  m->now = m->sequence;
  for (int64_t i = 0; i < m->sequences; i++) {
    LlmSequence *s = &m->sequence[i];
    s->ids = tg_alloc(m->ctx, (size_t)m->room * sizeof *s->ids);
    s->logits = tg_alloc(m->ctx, (size_t)m->k.vocabulary * sizeof *s->logits);
    if (!s->ids || !s->logits) return false;
  }
  return true;
}

static void sequences_free(TgLlm *m) {
  for (int64_t i = 0; m->sequence && i < m->sequences; i++)
    tg_free(m->ctx, m->sequence[i].ids), tg_free(m->ctx, m->sequence[i].logits);
  tg_free(m->ctx, m->sequence);
}

/* The program of several sequences' next tokens. */
static bool several_make(TgLlm *m) {
  if (!m->batch) return true;
  m->several = (LlmStep){.n = m->batch, .many = true};
  m->reach = tg_variable(m->ctx, "reach", REACH_STEP, m->room, .multiple_of = REACH_STEP);
  m->batch_logits = tg_alloc(m->ctx, (size_t)(m->batch * m->k.vocabulary) * sizeof *m->batch_logits);
  return m->reach && m->batch_logits && parts_make(m, &m->several);
}

/* Programs of whole blocks, small blocks and single tokens, the largest first. */
static bool steps_make(TgLlm *m) {
  const int64_t sizes[MOST_STEPS] = {m->block, SMALL_BLOCK, 1};
  m->position = tg_variable(m->ctx, "position", 0, m->context - 1);
  if (m->sequences > 1) {
    m->which = tg_variable(m->ctx, "sequence", 0, m->sequences - 1);
    m->other = tg_variable(m->ctx, "copied", 0, m->sequences - 1);
    m->copy = tg_jit(m->ctx, llm_copy, m);
    if (!m->which || !m->other || !m->copy) return false;
  }
  for (int i = 0; i < MOST_STEPS; i++) {
    if (m->nsteps && sizes[i] >= m->step[m->nsteps - 1].n) continue;
    LlmStep *s = &m->step[m->nsteps++];
    s->n = sizes[i];
    if (!parts_make(m, s)) return false;
  }
  return m->position && several_make(m);
}

static bool open_all(TgLlm *m, const TgLlmOptions *o) {
  TgContext *ctx = m->ctx;
  if (!llm_kv_text(ctx, m->gguf, "general.architecture", &m->architecture) ||
      !llm_kv_text(ctx, m->gguf, "general.name", &m->name) ||
      !llm_kv_text(ctx, m->gguf, "tokenizer.chat_template", &m->template_))
    return false;
  if (!m->architecture) return llm_fail(ctx, TG_ERR_VALUE, "llm: the file has no general.architecture");
  if (!(m->arch = llm_arch(ctx, m->architecture)) || !numbers_read(m)) return false;
  if (llm_kv(m->gguf, "tokenizer.ggml.model") && !(m->tokenizer = tg_tokenizer_new(ctx, m->gguf)))
    return false;
  if (!(m->layer = tg_alloc(ctx, (size_t)m->k.layers * sizeof *m->layer))) return false;
  if (!weights_find(m) || !options_read(m, o) || !llm_pack(m) || !llm_rotations_make(m) || !caches_make(m) ||
      !steps_make(m))
    return false;
  m->wanted = tg_alloc(ctx, (size_t)m->block * sizeof *m->wanted);
  return m->wanted && sequences_make(m);
}

TgLlm *tg_llm_open_opt(TgContext *ctx, const char *path, const TgLlmOptions *o) {
  TgLlm *m = ctx && path ? tg_alloc(ctx, sizeof *m) : NULL;
  if (!m) return NULL;
  m->ctx = ctx;
  if ((m->path = tg_alloc(ctx, strlen(path) + 1))) memcpy(m->path, path, strlen(path) + 1);
  struct stat about;
  bool folder = !stat(path, &about) && S_ISDIR(about.st_mode);
  m->gguf = !m->path ? NULL : folder ? tg_hf_load(ctx, path) : tg_gguf_load_file(ctx, path);
  bool ok = false;
  if (m->gguf) TG_SCOPE(ctx) {
      ok = open_all(m, o);
    }
  if (ok) return m;
  tg_llm_free(m);
  return NULL;
}

static void step_reset(LlmStep *s) {
  for (int64_t k = 0; k < s->nparts; k++)
    tg_jit_reset(s->part[k].jit);
  if (s->hidden.jit) tg_jit_reset(s->hidden.jit);
}

static void step_free(TgContext *ctx, LlmStep *s) {
  for (int64_t k = 0; s->part && k < s->nparts; k++)
    tg_jit_free(s->part[k].jit);
  tg_jit_free(s->hidden.jit);
  tg_free(ctx, s->part);
}

void llm_graphs_change(TgLlm *m) {
  for (int i = 0; i < m->nsteps; i++)
    step_reset(&m->step[i]);
  step_reset(&m->several);
  for (int64_t i = 0; i < m->sequences; i++) {
    m->sequence[i].nids = m->sequence[i].settled = 0;
    m->sequence[i].has_logits = false;
  }
}

bool llm_weights_each(TgLlm *m, LlmWeightFn fn, void *user) {
  char name[80];
  bool ok = fn(m, &m->embedding, "token_embd.weight", user) &&
            (!m->positions || fn(m, &m->positions, "position_embd.weight", user)) &&
            fn(m, &m->norm, "output_norm.weight", user) &&
            (!m->norm_bias || fn(m, &m->norm_bias, "output_norm.bias", user)) &&
            (m->tied || fn(m, &m->head, "output.weight", user));
  for (int64_t i = 0; ok && i < m->k.layers; i++)
    for (int w = 0; ok && w < W_COUNT; w++)
      for (int bias = 0; ok && bias < 2; bias++) {
        TgTensor **at = bias ? &m->layer[i].b[w] : &m->layer[i].w[w];
        snprintf(name, sizeof name, "blk.%lld.%s.%s", (long long)i, llm_weights_of_layer[w].name,
                 bias ? "bias" : "weight");
        ok = !*at || fn(m, at, name, user);
      }
  return ok;
}

/* ---- weights that are learned */
static bool is_plain(TgLlm *m, TgTensor **at, const char *name, void *user) {
  const TgValue *places = tg_value_get(m->gguf, "places");
  const char *type = tg_ggml_type_name((int)tg_value_int(tg_value_at(tg_value_get(places, name), 0)));
  (void)at, (void)user;
  if (!places || !type || !strcmp(type, "F32") || !strcmp(type, "F16") || !strcmp(type, "BF16")) return true;
  llm_fail(m->ctx, TG_ERR_DTYPE, "llm_unfreeze: tensor '%s' is %s: what is quantised has an adapter", name,
           type);
  return false;
}

/* A list of the weights that take the place of the file's. */
typedef struct Own {
  TgTensor **t;
  int n, cap;
} Own;

static bool own_make(TgLlm *m, TgTensor **at, const char *name, void *user) {
  Own *own = user;
  bool ok = false;
  (void)name;
  TG_SCOPE(m->ctx) {
    TgTensor *t = tg_keep(tg_clone(tg_cast(*at, TG_F32)));
    ok = t && tg_requires_grad(t, true) && !tg_realize(t);
    if (t) own->t[own->n++] = t;
  }
  return ok;
}

static bool own_take(TgLlm *m, TgTensor **at, const char *name, void *user) {
  Own *own = user;
  (void)m, (void)name;
  *at = own->t[own->n++];
  return true;
}

static bool parameter_put(TgLlm *m, TgTensor **at, const char *name, void *user) {
  Own *own = user;
  (void)m, (void)name;
  if (own->n < own->cap) own->t[own->n] = *at;
  own->n++;
  return true;
}

int tg_llm_parameters(const TgLlm *m, TgTensor **out, int cap) {
  Own all = {out, 0, out ? cap : 0};
  if (m) llm_weights_each((TgLlm *)m, parameter_put, &all);
  return all.n;
}

TgStatus tg_llm_unfreeze(TgLlm *m) {
  if (!m) return TG_ERR_NOMEM;
  if (m->unfrozen) return TG_OK;
  Own own = {tg_alloc(m->ctx, (size_t)tg_llm_parameters(m, NULL, 0) * sizeof *own.t), 0, 0};
  bool ok = own.t && llm_weights_each(m, is_plain, NULL) && llm_weights_each(m, own_make, &own);
  for (int i = 0; !ok && own.t && i < own.n; i++)
    tg_release(own.t[i]);
  if (ok) {
    own.n = 0;
    llm_weights_each(m, own_take, &own);
    if (m->tied) m->head = m->embedding;
    m->unfrozen = true;
    llm_graphs_change(m);
  }
  tg_free(m->ctx, own.t);
  return ok ? TG_OK : tg_error(m->ctx);
}

static bool own_release(TgLlm *m, TgTensor **at, const char *name, void *user) {
  (void)m, (void)name, (void)user;
  tg_release(*at);
  *at = NULL;
  return true;
}

void tg_llm_free(TgLlm *m) {
  if (!m) return;
  TgContext *ctx = m->ctx;
  while (m->loras)
    tg_lora_free(m->loras);
  for (int i = 0; i < m->nsteps; i++)
    step_free(ctx, &m->step[i]);
  step_free(ctx, &m->several);
  tg_free(ctx, m->batch_logits);
  tg_jit_free(m->copy);
  for (int64_t i = 0; m->layer && i < m->k.layers; i++)
    llm_cache_free(&m->layer[i].keys), llm_cache_free(&m->layer[i].values);
  tg_release(m->rotation.cos), tg_release(m->rotation.sin);
  tg_release(m->local_rotation.cos), tg_release(m->local_rotation.sin);
  tg_tokenizer_free(m->tokenizer);
  llm_pack_free(m);
  tg_value_free(m->gguf);
  sequences_free(m);
  if (m->unfrozen) llm_weights_each(m, own_release, NULL);
  tg_free(ctx, m->layer), tg_free(ctx, m->wanted), tg_free(ctx, m->path);
  tg_free(ctx, m);
}

/* ---- running */
/* The parts of a step, one after the other; hidden: NULL, or where the tokens (n, width) go in place of
 * logits. */
static bool parts_run(TgLlm *m, LlmStep *s, int32_t last, float *hidden) {
  TgTensor *wanted = s->n > 1 && !hidden ? tg_from(m->ctx, &last, TG_I32, TG_SHAPE(1)) : NULL;
  TgTensor *x = tg_from(m->ctx, m->wanted, TG_I32, TG_SHAPE(s->n));
  for (int64_t i = 0; i < s->nparts; i++) {
    TgTensor *in[] = {x, wanted};
    bool ends = i == s->nparts - 1;
    TgJit *jit = ends && hidden ? s->hidden.jit : s->part[i].jit;
    if (tg_cancelled(m->ctx) || tg_jit_run(jit, in, wanted && ends ? 2 : 1, &x, 1)) return false;
  }
  if (hidden) return !tg_read(x, hidden, (size_t)(s->n * m->k.width) * sizeof *hidden);
  return !tg_read(x, m->now->logits, (size_t)m->k.vocabulary * sizeof *m->now->logits);
}

/* One step on `count` tokens (the rest of its block is filled up with the last). */
static bool step_run(TgLlm *m, LlmStep *s, const int32_t *ids, int64_t count, float *hidden) {
  bool ok = false;
  for (int64_t i = 0; i < s->n; i++)
    m->wanted[i] = ids[i < count ? i : count - 1];
  if (tg_variable_bind(m->position, m->now->nids)) return false;
  if (m->which && tg_variable_bind(m->which, m->now - m->sequence)) return false;
  TG_SCOPE(m->ctx) { ok = parts_run(m, s, (int32_t)count - 1, hidden); }
  if (!ok) return false;
  LlmSequence *now = m->now;
  memcpy(now->ids + now->nids, ids, (size_t)count * sizeof *ids);
  if (now->settled == now->nids && count == m->block) now->settled += count;
  now->nids += count;
  return true;
}

/* The largest program that these tokens fill, or the smallest that they fit into where they fill half of it.
 */
static LlmStep *step_for(TgLlm *m, int64_t count) {
  for (int i = 0; i < m->nsteps; i++)
    if (count >= m->step[i].n || (count > m->step[i].n / 2 && m->step[i].n > 1)) return &m->step[i];
  return &m->step[m->nsteps - 1];
}

/* Whether these tokens can follow in a sequence; else an error. */
static bool follows(TgLlm *m, const LlmSequence *s, const char *what, const int32_t *ids, int64_t n) {
  if (n < 1 || !ids) return llm_fail(m->ctx, TG_ERR_VALUE, "%s: no tokens", what);
  if (n > m->context - s->nids)
    return llm_fail(m->ctx, TG_ERR_LIMIT, "%s: %lld tokens after %lld are more than the context of %lld",
                    what, (long long)n, (long long)s->nids, (long long)m->context);
  for (int64_t i = 0; i < n; i++)
    if (ids[i] < 0 || ids[i] >= m->k.vocabulary)
      return llm_fail(m->ctx, TG_ERR_VALUE, "%s: token %d of %lld", what, (int)ids[i],
                      (long long)m->k.vocabulary);
  return true;
}

TgStatus tg_llm_eval(TgLlm *m, const int32_t *ids, int64_t n) {
  if (!m) return TG_ERR_NOMEM;
  if (!follows(m, m->now, "llm_eval", ids, n)) return tg_error(m->ctx);
  for (int64_t at = 0; at < n;) {
    LlmStep *s = step_for(m, n - at);
    int64_t count = n - at < s->n ? n - at : s->n;
    if (!step_run(m, s, ids + at, count, NULL)) return tg_error(m->ctx);
    at += count;
  }
  m->now->has_logits = true;
  return TG_OK;
}

/* ---- the next tokens of several sequences */
typedef struct Batch {
  int32_t *ids, *at, *which; /* rows of the step */
} Batch;

/* One step on `count` sequences; rows that are left write behind the context, and nobody reads them. */
static bool several_rows(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t count, Batch b) {
  int64_t reach = REACH_STEP;
  for (int64_t i = 0; i < m->batch; i++) {
    bool there = i < count;
    b.which[i] = there ? sequences[i] : 0;
    b.ids[i] = there ? ids[i] : 0;
    b.at[i] = (int32_t)(there ? m->sequence[sequences[i]].nids : m->context);
    while (there && b.at[i] >= reach)
      reach += REACH_STEP;
  }
  if (tg_variable_bind(m->reach, reach)) return false;
  TgTensor *x = tg_from(m->ctx, b.ids, TG_I32, TG_SHAPE(m->batch));
  TgTensor *at = tg_from(m->ctx, b.at, TG_I32, TG_SHAPE(m->batch));
  TgTensor *which = tg_from(m->ctx, b.which, TG_I32, TG_SHAPE(m->batch));
  for (int64_t i = 0; i < m->several.nparts; i++) {
    TgTensor *in[] = {x, at, which};
    if (tg_cancelled(m->ctx) || tg_jit_run(m->several.part[i].jit, in, 3, &x, 1)) return false;
  }
  return !tg_read(x, m->batch_logits, (size_t)(m->batch * m->k.vocabulary) * sizeof *m->batch_logits);
}

static void several_done(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t count) {
  size_t v = (size_t)m->k.vocabulary;
  for (int64_t i = 0; i < count; i++) {
    LlmSequence *s = &m->sequence[sequences[i]];
    s->ids[s->nids++] = ids[i];
    memcpy(s->logits, m->batch_logits + (size_t)i * v, v * sizeof *s->logits);
    s->has_logits = true;
  }
}

static bool several_fit(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t n) {
  if (!m->batch) return llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: the model was opened without a batch");
  if (n < 1 || !sequences || !ids) return llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: no tokens");
  for (int64_t i = 0; i < n; i++) {
    if (sequences[i] < 0 || sequences[i] >= m->sequences)
      return llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: sequence %d of %lld", (int)sequences[i],
                      (long long)m->sequences);
    for (int64_t k = 0; k < i; k++)
      if (sequences[k] == sequences[i])
        return llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: sequence %d twice", (int)sequences[i]);
    if (!follows(m, &m->sequence[sequences[i]], "llm_eval_many", ids + i, 1)) return false;
  }
  return true;
}

TgStatus tg_llm_eval_many(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t n) {
  if (!m) return TG_ERR_NOMEM;
  if (!several_fit(m, sequences, ids, n)) return tg_error(m->ctx);
  int32_t *rows = tg_alloc(m->ctx, 3 * (size_t)m->batch * sizeof *rows);
  bool ok = rows != NULL;
  for (int64_t at = 0; ok && at < n; at += m->batch) {
    int64_t count = n - at < m->batch ? n - at : m->batch;
    Batch b = {rows, rows + m->batch, rows + 2 * m->batch};
    TG_SCOPE(m->ctx) { ok = several_rows(m, sequences + at, ids + at, count, b); }
    if (ok) several_done(m, sequences + at, ids + at, count);
  }
  tg_free(m->ctx, rows);
  return ok ? TG_OK : tg_error(m->ctx);
}

/* ---- embeddings: the mean of the tokens, of length 1 */
static bool means_add(TgLlm *m, const int32_t *ids, int64_t n, float *hidden, double *sum) {
  int64_t width = m->k.width;
  for (int64_t at = 0; at < n;) {
    LlmStep *s = step_for(m, n - at);
    int64_t count = n - at < s->n ? n - at : s->n;
    if (!step_run(m, s, ids + at, count, hidden)) return false;
    for (int64_t i = 0; i < count * width; i++)
      sum[i % width] += (double)hidden[i];
    at += count;
  }
  return true;
}

TgStatus tg_llm_embed(TgLlm *m, const int32_t *ids, int64_t n, float *out) {
  if (!m) return TG_ERR_NOMEM;
  if (!out) return tg_set_error(m->ctx, TG_ERR_VALUE, "llm_embed: nowhere to write to");
  if (tg_llm_rewind(m, 0) || !follows(m, m->now, "llm_embed", ids, n)) return tg_error(m->ctx);
  double *sum = tg_alloc(m->ctx, (size_t)m->k.width * sizeof *sum), length = 0;
  float *hidden = tg_alloc(m->ctx, (size_t)(m->block * m->k.width) * sizeof *hidden);
  bool ok = sum && hidden && means_add(m, ids, n, hidden, sum);
  for (int64_t i = 0; ok && i < m->k.width; i++)
    length += sum[i] * sum[i];
  for (int64_t i = 0; ok && i < m->k.width; i++)
    out[i] = (float)(length > 0 ? sum[i] / sqrt(length) : 0);
  tg_free(m->ctx, sum), tg_free(m->ctx, hidden);
  m->now->has_logits = false;
  return ok ? TG_OK : tg_error(m->ctx);
}

TgStatus tg_llm_use(TgLlm *m, int64_t sequence) {
  if (!m) return TG_ERR_NOMEM;
  if (sequence < 0 || sequence >= m->sequences) {
    llm_fail(m->ctx, TG_ERR_VALUE, "llm_use: sequence %lld of %lld", (long long)sequence,
             (long long)m->sequences);
    return TG_ERR_VALUE;
  }
  m->now = &m->sequence[sequence];
  return TG_OK;
}

/* Of the first `length` tokens those that are settled. */
static int64_t blocks_within(const TgLlm *m, const LlmSequence *s, int64_t length) {
  int64_t most = s->settled < length ? s->settled : length;
  return most - most % m->block;
}

TgStatus tg_llm_copy(TgLlm *m, int64_t from, int64_t length) {
  if (!m) return TG_ERR_NOMEM;
  if (from < 0 || from >= m->sequences || length < 0 || length > m->sequence[from].nids) {
    llm_fail(m->ctx, TG_ERR_VALUE, "llm_copy: %lld tokens of sequence %lld of %lld", (long long)length,
             (long long)from, (long long)m->sequences);
    return TG_ERR_VALUE;
  }
  const LlmSequence *source = &m->sequence[from];
  if (source == m->now) return tg_llm_rewind(m, length);
  if (tg_variable_bind(m->which, m->now - m->sequence) || tg_variable_bind(m->other, from))
    return tg_error(m->ctx);
  m->now->nids = m->now->settled = 0; /* what fails has written some of it */
  m->now->has_logits = false;
  if (tg_jit_run(m->copy, NULL, 0, NULL, 0)) return tg_error(m->ctx);
  memcpy(m->now->ids, source->ids, (size_t)length * sizeof *source->ids);
  m->now->nids = length;
  m->now->settled = blocks_within(m, source, length);
  return TG_OK;
}

TgStatus tg_llm_rewind(TgLlm *m, int64_t length) {
  if (!m) return TG_ERR_NOMEM;
  if (length < 0 || length > m->now->nids) {
    llm_fail(m->ctx, TG_ERR_VALUE, "llm_rewind: to %lld of %lld", (long long)length, (long long)m->now->nids);
    return TG_ERR_VALUE;
  }
  if (length < m->now->nids) m->now->has_logits = false;
  m->now->settled = blocks_within(m, m->now, length);
  m->now->nids = length;
  return TG_OK;
}

const float *tg_llm_logits(const TgLlm *m) { return m && m->now->has_logits ? m->now->logits : NULL; }

const int32_t *tg_llm_ids(const TgLlm *m, int64_t *n) {
  if (n) *n = m ? m->now->nids : 0;
  return m ? m->now->ids : NULL;
}

TgContext *llm_context(const TgLlm *m) { return m->ctx; }

int64_t tg_llm_settled(const TgLlm *m) { return m ? m->now->settled : 0; }

TgTokenizer *tg_llm_tokenizer(const TgLlm *m) { return m ? m->tokenizer : NULL; }

const TgValue *tg_llm_gguf(const TgLlm *m) { return m ? m->gguf : NULL; }

TgLlmAbout tg_llm_about(const TgLlm *m) {
  TgLlmAbout a = {.size = sizeof a};
  if (!m) return a;
  a.name = m->name ? m->name : "";
  a.architecture = m->architecture;
  a.chat_template = m->template_;
  a.parameters = m->parameters;
  a.context = m->context;
  a.trained_context = m->k.trained;
  a.layers = m->k.layers;
  a.sequences = m->sequences;
  a.block = m->block;
  a.batch = m->batch;
  a.width = m->k.width;
  a.vocabulary = m->k.vocabulary;
  a.cache_bytes = 0;
  for (int64_t i = 0; i < m->k.layers; i++)
    a.cache_bytes += (int64_t)(llm_cache_nbytes(&m->layer[i].keys) + llm_cache_nbytes(&m->layer[i].values));
  return a;
}
