/* model.c: opening a model. In: a gguf file, or a folder; options. Out: a model with its caches and the
 * programs of its steps: for whole blocks, small blocks and one token, and for the next tokens of several
 * sequences. file.c reads the file, and run.c runs the steps. */
#include "model_private.h"
#include <sys/stat.h>

enum { USUAL_CONTEXT = 4096, USUAL_BLOCK = 128, SMALL_BLOCK = 16, USUAL_BATCH = 16, MOST_SEQUENCES = 1024 };

/* Sets the type that keys and values are stored as. */
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

/* Sets the pooling of embeddings in place of the file's. */
static bool pooling_kind(TgLlm *m, const char *name) {
  static const char *const kinds[] = {
      [POOL_MEAN] = "mean", [POOL_FIRST] = "cls", [POOL_LAST] = "last", [POOL_RANK] = "rank"};
  bool ranks = m->k.pooling == POOL_RANK;
  if (!name || (ranks && !strcmp(name, "rank"))) return true;
  if (ranks)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm_open: pooling '%.30s': the model is a reranker", name);
  if (!strcmp(name, "rank") && m->arch->encoder)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm_open: pooling 'rank': the encoder has no head that ranks");
  for (int i = POOL_MEAN; i <= POOL_RANK; i++)
    if (!strcmp(kinds[i], name)) return (m->k.pooling = i), true;
  return llm_fail(m->ctx, TG_ERR_VALUE, "llm_open: pooling '%.30s': it is mean, cls, last or rank", name);
}

static bool options_read(TgLlm *m, const TgLlmOptions *given) {
  TgLlmOptions o;
  if (tg_options_read(m->ctx, "llm_open", "TgLlmOptions", &o, sizeof o, given)) return false;
  int64_t usual = m->k.trained < USUAL_CONTEXT ? m->k.trained : USUAL_CONTEXT;
  m->context = o.context ? o.context : usual;
  m->block = o.block ? o.block : USUAL_BLOCK;
  m->cache = o.cache ? o.cache : TG_F32;
  m->activations = o.activations ? o.activations : 16;
  if (!pooling_kind(m, o.pooling)) return false;
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
  m->batch = o.batch;
  const char *device = tg_device(m->embedding);
  m->units = m->activations < 32 && (strstr(device, "CUDA") || strstr(device, "METAL"));
  if ((m->positions || m->arch->encoder) && m->context > m->k.trained) m->context = m->k.trained;
  if (m->arch->encoder) m->block = m->context, m->batch = 0; /* a text is read at once */
  if (m->block > m->context) m->block = m->context;
  m->room = m->context + m->block;
  return cache_kind(m, o.cache_type ? o.cache_type : tg_dtype_name(m->cache));
}

/* Chooses the rows of a step of several sequences if the caller did not, and rounds the cache's room to whole
 * REACH_STEPs. */
static void batch_choose(TgLlm *m) {
  if (m->batch < 0) m->batch = m->sequences < 2 ? 0 : USUAL_BATCH;
  if (m->batch && m->room % REACH_STEP) m->room += REACH_STEP - m->room % REACH_STEP;
}

/* Weights are nearly all of the memory that a model takes, and blocks of several lengths read them, so no
 * kernel keeps a copy of its own. */
TgJit *llm_jit(TgContext *ctx, TgJitFn fn, void *user, bool invariant) {
  int had = tg_setting(ctx, "PREPACK", 0), order = tg_setting(ctx, "BATCH_INVARIANT", -1);
  if (invariant) tg_setting(ctx, "BATCH_INVARIANT", 1);
  TgJit *jit = tg_jit(ctx, fn, user);
  tg_setting(ctx, "PREPACK", had), tg_setting(ctx, "BATCH_INVARIANT", order);
  return jit;
}

static bool caches_make(TgLlm *m) {
  if (m->arch->encoder) return true;
  for (int64_t i = 0; i < m->k.layers; i++) {
    LlmLayer *l = &m->layer[i];
    if (!llm_cache_make(m, &l->keys, m->k.head) || !llm_cache_make(m, &l->values, m->k.value_head))
      return false;
  }
  return true;
}

static bool parts_make(TgLlm *m, LlmStep *s) {
  int64_t layers = s->n > 1 ? 1 : m->k.layers;
  bool invariant = s->many; /* packed products are invariant anyway, but norms and attention are not */
  s->nparts = m->k.layers / layers;
  if (!(s->part = tg_alloc(m->ctx, (size_t)s->nparts * sizeof *s->part))) return false;
  for (int64_t i = 0; i < s->nparts; i++) {
    LlmPart *p = &s->part[i];
    *p = (LlmPart){.m = m, .n = s->n, .first = i * layers, .last = (i + 1) * layers, .many = s->many};
    if (!(p->jit = llm_jit(m->ctx, llm_part, p, invariant))) return false;
  }
  if (s->many || m->arch->encoder) return true;
  s->hidden = s->part[s->nparts - 1];
  s->hidden.hidden = true;
  return (s->hidden.jit = llm_jit(m->ctx, llm_part, &s->hidden, false)) != NULL;
}

static bool sequences_make(TgLlm *m) {
  if (!(m->sequence = tg_alloc(m->ctx, (size_t)m->sequences * sizeof *m->sequence))) return false;
  m->now = m->sequence;
  for (int64_t i = 0; i < m->sequences; i++) {
    LlmSequence *s = &m->sequence[i];
    s->ids = tg_alloc(m->ctx, (size_t)m->room * sizeof *s->ids);
    if (!m->arch->encoder) s->logits = tg_alloc(m->ctx, (size_t)m->k.vocabulary * sizeof *s->logits);
    if (!s->ids || (!s->logits && !m->arch->encoder)) return false;
  }
  return true;
}

static void sequences_free(TgLlm *m) {
  for (int64_t i = 0; m->sequence && i < m->sequences; i++)
    tg_free(m->ctx, m->sequence[i].ids), tg_free(m->ctx, m->sequence[i].logits);
  tg_free(m->ctx, m->sequence);
}

static int64_t reaches(const TgLlm *m) { return m->room / REACH_STEP + 1; }

/* Makes the programs for the next tokens of several sequences: for 1, 2, 4 .. rows, and for `batch` rows. */
static bool several_make(TgLlm *m) {
  if (!m->batch) return true;
  m->reach = tg_variable(m->ctx, "reach", REACH_STEP, m->room, .multiple_of = REACH_STEP);
  if (!m->reach) return false;

  int64_t below = 1;
  while (2 * below < m->batch)
    below *= 2;
  for (int64_t n = m->batch; n; n = n == m->batch && n > 1 ? below : n / 2) {
    LlmStep *s = &m->several[m->nseveral++];
    *s = (LlmStep){.n = n, .many = true, .agrees = tg_alloc(m->ctx, (size_t)reaches(m))};
    if (!s->agrees || !parts_make(m, s)) return false;
  }
  return true;
}

/* Makes the programs of an encoder, for texts as long as the context and for powers of 2 below it. */
static bool whole_steps_make(TgLlm *m) {
  int64_t below = SMALL_BLOCK;
  while (2 * below < m->context)
    below *= 2;
  for (int64_t n = m->context; n == m->context || n >= SMALL_BLOCK; n = n == m->context ? below : n / 2) {
    LlmStep *s = &m->step[m->nsteps++];
    s->n = n;
    if (!parts_make(m, s)) return false;
    if (n <= SMALL_BLOCK) break;
  }
  return true;
}

/* Makes the programs of whole blocks, small blocks and single tokens, the largest first. */
static bool steps_make(TgLlm *m) {
  if (m->arch->encoder) return whole_steps_make(m);
  const int64_t sizes[] = {m->block, SMALL_BLOCK, 1};
  m->position = tg_variable(m->ctx, "position", 0, m->context - 1);
  if (m->sequences > 1) {
    m->which = tg_variable(m->ctx, "sequence", 0, m->sequences - 1);
    m->other = tg_variable(m->ctx, "copied", 0, m->sequences - 1);
    m->length = tg_variable(m->ctx, "length", 1, m->room);
    m->copy = llm_jit(m->ctx, llm_copy, m, false);
    if (!m->which || !m->other || !m->length || !m->copy) return false;
  }
  for (int i = 0; i < 3; i++) {
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
  if (!(m->arch = llm_arch(ctx, m->architecture)) || !llm_numbers_read(m)) return false;
  if (llm_kv(m->gguf, "tokenizer.ggml.model") && !(m->tokenizer = tg_tokenizer_new(ctx, m->gguf)))
    return false;
  if (!(m->layer = tg_alloc(ctx, (size_t)m->k.layers * sizeof *m->layer))) return false;
  if (!llm_weights_find(m) || !options_read(m, o) || !llm_rank_read(m) || !llm_pack(m)) return false;
  batch_choose(m);
  if (!llm_rotations_make(m) || !llm_slopes_make(m) || !caches_make(m) || !steps_make(m)) return false;
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

static void step_reset(const TgLlm *m, LlmStep *s) {
  for (int64_t k = 0; k < s->nparts; k++)
    tg_jit_reset(s->part[k].jit);
  if (s->hidden.jit) tg_jit_reset(s->hidden.jit);
  if (s->given.jit) tg_jit_reset(s->given.jit);
  s->differs = false;
  s->runs = 0;
  s->seconds = 0;
  if (s->agrees) memset(s->agrees, 0, (size_t)reaches(m));
}

static void step_free(TgContext *ctx, LlmStep *s) {
  for (int64_t k = 0; s->part && k < s->nparts; k++)
    tg_jit_free(s->part[k].jit);
  tg_jit_free(s->hidden.jit);
  tg_free(ctx, s->part), tg_free(ctx, s->agrees);
}

void llm_graphs_change(TgLlm *m) {
  for (int i = 0; i < m->nsteps; i++)
    step_reset(m, &m->step[i]);
  for (int i = 0; i < m->nseveral; i++)
    step_reset(m, &m->several[i]);
  step_reset(m, &m->mutual);
  m->nrows = 0;
  for (int64_t i = 0; i < m->sequences; i++) {
    m->sequence[i].nids = m->sequence[i].settled = 0;
    m->sequence[i].has_logits = false;
  }
}

void tg_llm_free(TgLlm *m) {
  if (!m) return;
  TgContext *ctx = m->ctx;
  while (m->loras)
    tg_lora_free(m->loras);
  tg_vision_free(m->vision);
  for (int i = 0; i < m->nsteps; i++)
    step_free(ctx, &m->step[i]);
  for (int i = 0; i < m->nseveral; i++)
    step_free(ctx, &m->several[i]);
  tg_free(ctx, m->batch_logits);
  tg_jit_free(m->copy);
  for (int64_t i = 0; m->layer && i < m->k.layers; i++)
    llm_cache_free(&m->layer[i].keys), llm_cache_free(&m->layer[i].values);
  tg_release(m->rotation.cos), tg_release(m->rotation.sin);
  tg_release(m->local_rotation.cos), tg_release(m->local_rotation.sin), tg_release(m->slopes);
  tg_tokenizer_free(m->tokenizer);
  llm_pack_free(m);
  tg_value_free(m->gguf);
  sequences_free(m);
  llm_weights_free(m);
  tg_free(ctx, m->layer), tg_free(ctx, m->wanted), tg_free(ctx, m->path);
  tg_free(ctx, m);
}

const float *tg_llm_logits(const TgLlm *m) { return m && m->now->has_logits ? m->now->logits : NULL; }

const int32_t *tg_llm_ids(const TgLlm *m, int64_t *n) {
  if (n) *n = m ? m->now->nids : 0;
  return m ? m->now->ids : NULL;
}

bool llm_generates(const TgLlm *m, const char *what) {
  if (!m->arch->encoder) return true;
  return llm_fail(m->ctx, TG_ERR_VALUE, "%s: %s is an encoder: it %s, and goes on with no text", what,
                  m->architecture,
                  m->k.pooling == POOL_RANK ? "ranks texts (llm_rank)" : "has embeddings (llm_embed)");
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
  a.encoder = m->arch->encoder;
  a.ranks = m->k.pooling == POOL_RANK;
  a.width = m->k.width;
  a.vocabulary = m->k.vocabulary;
  a.cache_bytes = 0;
  for (int64_t i = 0; i < m->k.layers; i++)
    a.cache_bytes += (int64_t)(llm_cache_nbytes(&m->layer[i].keys) + llm_cache_nbytes(&m->layer[i].values));
  return a;
}
