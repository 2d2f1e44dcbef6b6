/* hf.c: language models as Hugging Face has them, a folder. In: config.json, safetensors (in shards, where
 * model.safetensors.index.json lists them), tokenizer.json, tokenizer_config.json. Out: the tree that a
 * gguf file of the same model would give, so that whoever reads that reads this: names and numbers are
 * translated here, by the tables below. What would change what the model says and has no translation is
 * refused by name. */
#include "hf_private.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef TG_HAVE_JANSSON

bool hf_bad(const HfFolder *f, const char *form, const char *a) {
  char what[300];
  snprintf(what, sizeof what, form, a);
  return ctx_fail(f->ctx, TG_ERR_VALUE, "hf: %.400s: %s", f->path, what);
}

/* ---- the tree */
TgValue *hf_pair_put(HfFolder *f, HfPairs *p, const char *key) {
  TgValue *at = io_grow(f->ctx, p->at, p->n, &p->cap, 2 * sizeof *at);
  if (!at) return NULL;
  p->at = at;
  at += 2 * p->n;
  memset(at, 0, 2 * sizeof *at);
  if (!doc_string(f->d, at, key, strlen(key))) return NULL;
  p->n++;
  return at + 1;
}

bool hf_kv_int(HfFolder *f, const char *key, int64_t v) {
  TgValue *to = hf_pair_put(f, &f->kv, key);
  if (to) *to = (TgValue){.kind = TG_KIND_INT, .u.i = v};
  return to != NULL;
}

bool hf_kv_bool(HfFolder *f, const char *key, bool v) {
  TgValue *to = hf_pair_put(f, &f->kv, key);
  if (to) *to = (TgValue){.kind = TG_KIND_BOOL, .u.i = v};
  return to != NULL;
}

bool hf_kv_real(HfFolder *f, const char *key, double v) {
  TgValue *to = hf_pair_put(f, &f->kv, key);
  if (to) *to = (TgValue){.kind = TG_KIND_FLOAT, .u.f = v};
  return to != NULL;
}

bool hf_kv_text(HfFolder *f, const char *key, const char *v) {
  TgValue *to = hf_pair_put(f, &f->kv, key);
  return to && doc_string(f->d, to, v, strlen(v));
}

bool hf_kv_tensor(HfFolder *f, const char *key, const void *data, TgDType d, int64_t n) {
  TgValue *to = hf_pair_put(f, &f->kv, key);
  return to && doc_tensor(f->d, to, tg_from(f->ctx, data, d, TG_SHAPE(n)));
}

static bool tensor_put(HfFolder *f, const char *name, TgTensor *t) {
  TgValue *to = hf_pair_put(f, &f->tensors, name);
  return to && doc_tensor(f->d, to, t);
}

static bool map_put(HfFolder *f, TgValue *to, const HfPairs *p) {
  if (!doc_items(f->d, to, TG_KIND_MAP, p->n)) return false;
  if (p->n) memcpy(to->u.at, p->at, 2 * p->n * sizeof *p->at);
  return true;
}

/* ---- files of the folder */
bool hf_path_of(const HfFolder *f, const char *name, char path[LONGEST_PATH]) {
  return snprintf(path, LONGEST_PATH, "%s/%s", f->path, name) < LONGEST_PATH ||
         hf_bad(f, "the path is too long", "");
}

bool hf_is_there(const HfFolder *f, const char *name) {
  char path[LONGEST_PATH];
  FILE *file = hf_path_of(f, name, path) ? fopen(path, "rb") : NULL;
  if (file) fclose(file);
  return file != NULL;
}

/* *to NULL: there is none, which is an error where it must be there. flags: of jansson. */
static bool json_read(const HfFolder *f, const char *name, bool must, size_t flags, json_t **to) {
  char path[LONGEST_PATH];
  json_error_t e;
  if (!hf_path_of(f, name, path)) return false;
  if (!must && !hf_is_there(f, name)) return true;
  *to = json_load_file(path, flags, &e);
  if (json_is_object(*to)) return true;
  return ctx_fail(f->ctx, *to || hf_is_there(f, name) ? TG_ERR_VALUE : TG_ERR_IO, "hf: %.400s: %s", path,
                  *to ? "no JSON object" : e.text);
}

/* ---- numbers */
/* What model_type says: the architecture's name in gguf files. */
static const struct {
  const char *type, *arch;
  bool ones; /* norms multiply by 1 + weight */
} types[] = {{"llama", "llama", false},      {"mistral", "llama", false}, {"qwen2", "qwen2", false},
             {"qwen3", "qwen3", false},      {"phi3", "phi3", false},     {"gemma2", "gemma2", true},
             {"gemma3_text", "gemma3", true}};

typedef struct Number {
  const char *hf, *gguf; /* "%s" of gguf: the architecture */
  bool real;
} Number;

static const Number numbers[] = {{"hidden_size", "embedding_length", false},
                                 {"num_hidden_layers", "block_count", false},
                                 {"max_position_embeddings", "context_length", false},
                                 {"num_attention_heads", "attention.head_count", false},
                                 {"num_key_value_heads", "attention.head_count_kv", false},
                                 {"head_dim", "attention.key_length", false},
                                 {"head_dim", "attention.value_length", false},
                                 {"intermediate_size", "feed_forward_length", false},
                                 {"rms_norm_eps", "attention.layer_norm_rms_epsilon", true},
                                 {"attn_logit_softcapping", "attn_logit_softcapping", true},
                                 {"final_logit_softcapping", "final_logit_softcapping", true}};

static const char *key_of(const HfFolder *f, const char *name, char key[128]) {
  snprintf(key, 128, "%s.%s", f->arch, name);
  return key;
}

const char *hf_text_of(const json_t *o, const char *key, const char *otherwise) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : otherwise;
}

static bool numbers_put(HfFolder *f) {
  char key[128];
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const json_t *v = json_object_get(f->config, numbers[i].hf);
    if (!v || json_is_null(v)) continue;
    if (!(numbers[i].real ? json_is_number(v) : json_is_integer(v)))
      return hf_bad(f, "config.json: %s is no number", numbers[i].hf);
    key_of(f, numbers[i].gguf, key);
    if (!(numbers[i].real ? hf_kv_real(f, key, json_number_value(v))
                          : hf_kv_int(f, key, json_integer_value(v))))
      return false;
  }
  return true;
}

/* The window, of which a file says whether it is used; queries scaled by another number than a head's size.
 */
static bool windows_put(HfFolder *f) {
  char key[128];
  const json_t *window = json_object_get(f->config, "sliding_window"),
               *use = json_object_get(f->config, "use_sliding_window");
  const json_t *scalar = json_object_get(f->config, "query_pre_attn_scalar");
  if (json_is_integer(window) && !json_is_false(use) &&
      !hf_kv_int(f, key_of(f, "attention.sliding_window", key), json_integer_value(window)))
    return false;
  return !json_is_number(scalar) ||
         hf_kv_real(f, key_of(f, "attention.scale", key), 1 / sqrt(json_number_value(scalar)));
}

static double real_in(const json_t *o, const char *key, double otherwise) {
  const json_t *v = json_object_get(o, key);
  return json_is_number(v) ? json_number_value(v) : otherwise;
}

/* Llama 3's scaling: what each frequency is divided by, between two lengths of waves a mixture. */
static bool llama3_put(HfFolder *f, const json_t *s, double base, int64_t rotary) {
  double factor = real_in(s, "factor", 8), low = real_in(s, "low_freq_factor", 1),
         high = real_in(s, "high_freq_factor", 4);
  double original = real_in(s, "original_max_position_embeddings", 8192);
  int64_t n = rotary / 2;
  float *by = n > 0 && n < 65536 ? tg_alloc(f->ctx, (size_t)n * sizeof *by) : NULL;
  if (!by) return hf_bad(f, "config.json: %s", "the size of a head");
  for (int64_t i = 0; i < n; i++) {
    double wave = 2 * M_PI * pow(base, 2 * (double)i / (double)rotary);
    double share = high > low ? (original / wave - low) / (high - low) : 0;
    by[i] = (float)(wave < original / high  ? 1
                    : wave > original / low ? factor
                                            : 1 / ((1 - share) / factor + share));
  }
  bool ok = tensor_put(f, "rope_freqs.weight", tg_from(f->ctx, by, TG_F32, TG_SHAPE(n)));
  tg_free(f->ctx, by);
  return ok;
}

static bool rope_put(HfFolder *f) {
  char key[128];
  const json_t *c = f->config, *s = json_object_get(c, "rope_scaling"),
               *p = json_object_get(c, "rope_parameters");
  if (json_object_get(p, "full_attention"))
    p = json_object_get(p, "full_attention"); /* the others' is the row's */
  if (json_is_object(p)) s = p;
  double base = real_in(p, "rope_theta", real_in(c, "rope_theta", 10000));
  double heads = real_in(c, "num_attention_heads", 1),
         head = real_in(c, "head_dim", real_in(c, "hidden_size", 0) / heads);
  double part = real_in(p, "partial_rotary_factor", real_in(c, "partial_rotary_factor", 1));
  int64_t rotary = (int64_t)(head * part);
  const char *type = hf_text_of(s, "rope_type", hf_text_of(s, "type", "default"));
  if (!hf_kv_real(f, key_of(f, "rope.freq_base", key), base) ||
      !hf_kv_int(f, key_of(f, "rope.dimension_count", key), rotary) ||
      !hf_kv_bool(f, key_of(f, "rope.halves", key), true))
    return false;
  if (!strcmp(type, "default")) return true;
  if (!strcmp(type, "llama3")) return llama3_put(f, s, base, rotary);
  if (strcmp(type, "linear") && strcmp(type, "yarn"))
    return hf_bad(f, "config.json: rope_scaling of the kind %.40s is not known here", type);
  double original = real_in(s, "original_max_position_embeddings", real_in(c, "max_position_embeddings", 0));
  return hf_kv_text(f, key_of(f, "rope.scaling.type", key), type) &&
         hf_kv_real(f, key_of(f, "rope.scaling.factor", key), real_in(s, "factor", 1)) &&
         hf_kv_real(f, key_of(f, "rope.scaling.original_context_length", key), original);
}

static bool config_put(HfFolder *f) {
  const char *type = hf_text_of(f->config, "model_type", "");
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(types[i].type, type)) {
      f->arch = types[i].arch;
      f->ones = types[i].ones;
    }
  if (!f->arch) return hf_bad(f, "config.json: model_type '%.60s' is not read here", type);
  const char *act =
      hf_text_of(f->config, "hidden_act",
                 hf_text_of(f->config, "hidden_activation", f->ones ? "gelu_pytorch_tanh" : "silu"));
  if (strcmp(act, f->ones ? "gelu_pytorch_tanh" : "silu") && !(f->ones && !strncmp(act, "gelu", 4)))
    return hf_bad(f, "config.json: hidden_act '%.40s' is not known here", act);
  const char *slash = strrchr(f->path, '/');
  return hf_kv_text(f, "general.architecture", f->arch) &&
         hf_kv_text(f, "general.name", slash && slash[1] ? slash + 1 : f->path) && numbers_put(f) &&
         windows_put(f) && rope_put(f);
}

/* ---- tensors */
typedef struct Named {
  const char *hf, *gguf;
} Named;

static const Named of_model[] = {{"model.embed_tokens.weight", "token_embd.weight"},
                                 {"model.norm.weight", "output_norm.weight"},
                                 {"lm_head.weight", "output.weight"}};

static const Named of_layer[] = {{"input_layernorm", "attn_norm"},
                                 {"self_attn.q_proj", "attn_q"},
                                 {"self_attn.k_proj", "attn_k"},
                                 {"self_attn.v_proj", "attn_v"},
                                 {"self_attn.qkv_proj", "attn_qkv"},
                                 {"self_attn.o_proj", "attn_output"},
                                 {"self_attn.q_norm", "attn_q_norm"},
                                 {"self_attn.k_norm", "attn_k_norm"},
                                 {"post_attention_layernorm", "ffn_norm"},
                                 {"mlp.gate_proj", "ffn_gate"},
                                 {"mlp.up_proj", "ffn_up"},
                                 {"mlp.gate_up_proj", "ffn_up"},
                                 {"mlp.down_proj", "ffn_down"}};

/* Of models with norms before and after each part. */
static const Named of_gemma[] = {{"post_attention_layernorm", "post_attention_norm"},
                                 {"pre_feedforward_layernorm", "ffn_norm"},
                                 {"post_feedforward_layernorm", "post_ffw_norm"}};

static const char *named(const Named *table, size_t n, const char *name, size_t length) {
  for (size_t i = 0; i < n; i++)
    if (strlen(table[i].hf) == length && !memcmp(table[i].hf, name, length)) return table[i].gguf;
  return NULL;
}

#define NAMED(table, name, length) named(table, sizeof table / sizeof *table, name, length)

/* The name that gguf files have for it; false: none. */
static bool translated(const HfFolder *f, const char *name, char to[64]) {
  static const char begin[] = "model.layers.";
  const char *plain = NAMED(of_model, name, strlen(name)), *dot = strrchr(name, '.');
  if (plain) return snprintf(to, 64, "%s", plain) < 64;
  if (strncmp(name, begin, strlen(begin)) || (strcmp(dot, ".weight") && strcmp(dot, ".bias"))) return false;
  const char *number = name + strlen(begin);
  size_t digits = strspn(number, "0123456789");
  const char *rest = number + digits + 1;
  if (!digits || digits > 6 || number[digits] != '.' || rest >= dot) return false;
  const char *part = f->ones ? NAMED(of_gemma, rest, (size_t)(dot - rest)) : NULL;
  if (!part) part = NAMED(of_layer, rest, (size_t)(dot - rest));
  return part && snprintf(to, 64, "blk.%.*s.%s%s", (int)digits, number, part, dot) < 64;
}

static bool tensor_take(HfFolder *f, const char *name, TgTensor *t) {
  char to[64];
  bool tied = json_is_true(json_object_get(f->config, "tie_word_embeddings"));
  if ((tied && !strcmp(name, "lm_head.weight")) || strstr(name, "rotary_emb.inv_freq")) return true;
  if (!translated(f, name, to)) return hf_bad(f, "tensor '%.120s' is none that is known here", name);
  if (f->ones && strstr(to, "norm")) t = tg_add_scalar(tg_cast(t, TG_F32), 1);
  return tensor_put(f, to, t);
}

static bool shard_read(HfFolder *f, const char *name) {
  char path[LONGEST_PATH];
  if (strchr(name, '/')) return hf_bad(f, "a shard in another folder: '%.100s'", name);
  if (!hf_path_of(f, name, path)) return false;
  TgState *s = tg_safe_load_file(f->ctx, path);
  bool ok = s != NULL;
  for (size_t i = 0; ok && i < tg_state_count(s); i++) {
    const char *tensor = NULL;
    TgTensor *t = tg_state_at(s, i, &tensor);
    TG_SCOPE(f->ctx) { ok = tensor_take(f, tensor, tg_reshape(t, tg_ndim(t), tg_shape(t))); }
  }
  tg_state_free(s);
  return ok;
}

/* Each shard that the index names, once. */
static bool shards_read(HfFolder *f) {
  json_t *index = NULL, *seen = json_object();
  const char *name;
  json_t *file;
  bool ok = seen && json_read(f, "model.safetensors.index.json", false, 0, &index);
  if (ok && !index) ok = shard_read(f, "model.safetensors");
  json_object_foreach(json_object_get(index, "weight_map"), name, file) {
    const char *shard = json_string_value(file);
    if (ok && !shard) ok = hf_bad(f, "model.safetensors.index.json: '%.100s' has no file", name);
    if (!ok || json_object_get(seen, shard)) continue;
    json_object_set_new(seen, shard, json_true());
    ok = shard_read(f, shard);
  }
  json_decref(index), json_decref(seen);
  return ok;
}

/* ---- the whole */
static bool folder_read(HfFolder *f) {
  TgValue *root = &f->d->root;
  return json_read(f, "config.json", true, 0, &f->config) &&
         json_read(f, "tokenizer.json", false, 0, &f->tokenizer) &&
         json_read(f, "tokenizer_config.json", false, JSON_DECODE_INT_AS_REAL,
                   &f->about) /* lengths of 1e30 */
         && config_put(f) && shards_read(f) && hf_tokenizer_put(f) && doc_items(f->d, root, TG_KIND_MAP, 2) &&
         doc_string(f->d, &root->u.at[0], "kv", 2) && map_put(f, &root->u.at[1], &f->kv) &&
         doc_string(f->d, &root->u.at[2], "tensors", 7) && map_put(f, &root->u.at[3], &f->tensors);
}

TgValue *tg_hf_load(TgContext *ctx, const char *path) {
  if (!ctx || !path) return NULL;
  HfFolder f = {.ctx = ctx, .path = path, .d = doc_new(ctx)};
  bool ok = false;
  if (f.d) TG_SCOPE(ctx) {
      ok = folder_read(&f);
    }
  json_decref(f.config), json_decref(f.tokenizer), json_decref(f.about);
  tg_free(ctx, f.kv.at), tg_free(ctx, f.tensors.at);
  if (ok) return &f.d->root;
  doc_free(f.d);
  return NULL;
}
#else
TgValue *tg_hf_load(TgContext *ctx, const char *path) {
  if (ctx && path) ctx_fail(ctx, TG_ERR_VALUE, "hf: %.400s: this build reads no JSON (jansson)", path);
  return NULL;
}
#endif
