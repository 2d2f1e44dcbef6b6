/* lora.c: low-rank adapters. In: options, or peft's files. Out: pairs of small matrices beside the weights of
 * a model, and what they add to a product. peft uses the layout of the original model, whose q and k have the
 * halves of a head one after the other. Some gguf files have these halves interleaved; then b's rows are
 * reordered on reading and on writing. */
#include "model_private.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The names of a weight: in peft for most models, in peft for GPT-2 (NULL: it has none), and in the options.
 * A matrix that combines several weights has several names in the options. */
typedef struct Module {
  LlmWeight w;
  const char *name, *gpt2;
  const char *chosen[3];
} Module;

static const Module modules[] = {
    {W_Q, "self_attn.q_proj", NULL, {"q"}},
    {W_K, "self_attn.k_proj", NULL, {"k"}},
    {W_V, "self_attn.v_proj", NULL, {"v"}},
    {W_QKV, "self_attn.qkv_proj", "attn.c_attn", {"q", "k", "v"}},
    {W_OUT, "self_attn.o_proj", "attn.c_proj", {"o"}},
    {W_GATE, "mlp.gate_proj", NULL, {"gate"}},
    {W_UP, "mlp.up_proj", "mlp.c_fc", {"up"}},
    {W_GATE_UP, "mlp.gate_up_proj", NULL, {"gate", "up"}},
    {W_DOWN, "mlp.down_proj", "mlp.c_proj", {"down"}},
};

enum { MODULES = sizeof modules / sizeof *modules };

static bool is_gpt2(const TgLlm *m) { return !strcmp(m->arch->name, "gpt2"); }

static const char *module_name(const TgLlm *m, const Module *p) { return is_gpt2(m) ? p->gpt2 : p->name; }

static const char *names_begin(const TgLlm *m) {
  return is_gpt2(m) ? "base_model.model.transformer.h." : "base_model.model.model.layers.";
}

static void tensor_name(const TgLlm *m, const Module *p, int64_t layer, char which, char name[120]) {
  snprintf(name, 120, "%s%lld.%s.lora_%c.weight", names_begin(m), (long long)layer, module_name(m, p), which);
}

/* ---- as a module */
static const TgField layer_fields[] = {
    {"lora_A", TG_FIELD_PARAMETER, offsetof(LoraLayer, a), NULL, W_COUNT},
    {"lora_B", TG_FIELD_PARAMETER, offsetof(LoraLayer, b), NULL, W_COUNT},
};
static const TgModule layer_table = {"LoraLayer", sizeof(LoraLayer), layer_fields, 2, NULL};

static const TgModule *layer_module(void) { return &layer_table; }

static const TgField lora_fields[] = {TG_LAYERS(TgLora, layers, layer_module)};
static const TgModule lora_table = {"Lora", sizeof(TgLora), lora_fields, 1, NULL};

const TgModule *tg_lora_module(void) { return &lora_table; }

/* ---- what an adapter adds */
static double factor_of(const TgLora *l, TgTensor *a) {
  double rank = (double)tg_dim(a, 0);
  return l->scale * l->alpha / (l->rooted ? sqrt(rank) : rank);
}

TgTensor *llm_lora_added(const TgLora *l, int64_t layer, LlmWeight w, TgTensor *x, TgTensor *y) {
  TgTensor *a = layer < LORA_LAYERS ? l->layers[layer].a[w] : NULL;
  if (!a) return y;
  TgTensor *mask = l->mask ? l->mask[w] : NULL;
  TgTensor *kept =
      mask ? tg_mul_scalar(tg_mul(x, tg_float(mask)), 1 / (1 - l->dropout)) : tg_dropout(x, l->dropout);
  TgTensor *low = tg_linear(kept, a, NULL);
  return tg_add(y, tg_mul_scalar(tg_linear(low, l->layers[layer].b[w], NULL), factor_of(l, a)));
}

TgTensor *llm_lora_delta(const TgLora *l, int64_t layer, LlmWeight w) {
  TgTensor *a = layer < LORA_LAYERS ? l->layers[layer].a[w] : NULL;
  return a ? tg_mul_scalar(tg_matmul(l->layers[layer].b[w], a), factor_of(l, a)) : NULL;
}

/* ---- creating and freeing */
static TgLora *lora_new(TgLlm *m) {
  TgLora *l = tg_alloc(m->ctx, sizeof *l);
  if (l) l->m = m;
  return l;
}

/* Appends the adapter to those of its model. */
static void lora_join(TgLora *l) {
  TgLora **last = &l->m->loras;
  while (*last)
    last = &(*last)->next;
  *last = l;
  llm_graphs_change(l->m);
}

void tg_lora_free(TgLora *l) {
  if (!l) return;
  for (TgLora **at = &l->m->loras; *at; at = &(*at)->next)
    if (*at == l) {
      *at = l->next;
      llm_graphs_change(l->m);
      break;
    }
  tg_module_free(tg_lora_module, l);
  tg_free(l->m->ctx, l);
}

static bool pair_new(TgLora *l, int64_t layer, LlmWeight w, int64_t rank) {
  TgContext *ctx = l->m->ctx;
  LoraLayer *to = &l->layers[layer];
  int64_t dims[3];
  llm_weight_shape(l->m, w, dims);
  double bound = 1 / sqrt((double)dims[1]);
  to->a[w] = tg_keep(tg_uniform(ctx, TG_SHAPE(rank, dims[1]), -bound, bound));
  to->b[w] = tg_keep(tg_contiguous(tg_zeros(ctx, TG_SHAPE(dims[0], rank))));
  return tg_requires_grad(to->a[w], true) && tg_requires_grad(to->b[w], true) && !tg_realize(to->a[w]) &&
         !tg_realize(to->b[w]);
}

static bool is_chosen(const Module *p, const char *name, size_t n) {
  if (n == 3 && !memcmp(name, "all", 3)) return true;
  for (int i = 0; i < 3 && p->chosen[i]; i++)
    if (strlen(p->chosen[i]) == n && !memcmp(p->chosen[i], name, n)) return true;
  return false;
}

/* The weights that a list of names selects, as bits; 0: an error. */
static uint64_t weights_chosen(const TgLlm *m, const char *list) {
  uint64_t all = 0;
  for (const char *at = list; *at;) {
    size_t n = strcspn(at, ",");
    uint64_t these = 0;
    bool known = false;
    for (int i = 0; i < MODULES; i++)
      if (is_chosen(&modules[i], at, n)) {
        known = true;
        if (m->layer[0].w[modules[i].w]) these |= BIT(modules[i].w);
      }
    if (!these) {
      llm_fail(m->ctx, TG_ERR_VALUE,
               known ? "lora: '%.*s': %s has no such matrix"
                     : "lora: '%.*s' is none of q, k, v, o, gate, up, down, all",
               (int)(n < 40 ? n : 40), at, m->architecture);
      return 0;
    }
    all |= these;
    at += n + (at[n] == ',');
  }
  if (!all) llm_fail(m->ctx, TG_ERR_VALUE, "lora: no modules");
  return all;
}

static bool can_adapt(const TgLlm *m) {
  return (!m->arch->encoder && !m->arch->foreign) ||
         llm_fail(m->ctx, TG_ERR_VALUE, "lora: %s: %s have no adapters here", m->arch->name,
                  m->arch->encoder ? "encoders" : "models of its kind");
}

static bool options_fit(const TgLlm *m, const TgLoraOptions *o) {
  if (!can_adapt(m)) return false;
  if (m->k.layers > LORA_LAYERS)
    return llm_fail(m->ctx, TG_ERR_LIMIT, "lora: a model of %lld layers: at most %d have adapters",
                    (long long)m->k.layers, LORA_LAYERS);
  if (o->rank < 1 || o->rank > 65536)
    return llm_fail(m->ctx, TG_ERR_VALUE, "lora_new: rank %lld", (long long)o->rank);
  if (!isfinite(o->alpha) || !(o->dropout >= 0 && o->dropout < 1))
    return llm_fail(m->ctx, TG_ERR_VALUE, "lora_new: alpha %g, dropout %g", o->alpha, o->dropout);
  return true;
}

TgLora *tg_lora_new_opt(TgLlm *m, const TgLoraOptions *given) {
  TgLoraOptions o;
  if (!m || tg_options_read(m->ctx, "lora_new", "TgLoraOptions", &o, sizeof o, given)) return NULL;
  o.rank = TG_OPTION(o, rank, 8);
  o.alpha = TG_OPTION(o, alpha, 16);
  uint64_t chosen = options_fit(m, &o) ? weights_chosen(m, o.modules ? o.modules : "q,v") : 0;
  TgLora *l = chosen ? lora_new(m) : NULL;
  if (!l) return NULL;
  l->alpha = o.alpha;
  l->dropout = o.dropout;
  l->scale = 1;
  bool ok = true;
  for (int64_t i = 0; ok && i < m->k.layers; i++)
    for (int w = 0; ok && w < W_COUNT; w++)
      if ((chosen & BIT(w)) && m->layer[i].w[w]) TG_SCOPE(m->ctx) {
          ok = pair_new(l, i, (LlmWeight)w, o.rank);
        }
  if (ok) return lora_join(l), l;
  tg_lora_free(l);
  return NULL;
}

/* ---- the order of rows */
/* Reorders b (heads * size, rank): the two axes that a head's rows consist of are exchanged. */
static TgTensor *reordered(const TgLlm *m, TgTensor *b, LlmWeight w, bool to_file) {
  if (!m->permuted || (w != W_Q && w != W_K) || !b) return b;
  int64_t heads = w == W_Q ? m->k.heads : m->k.kv_heads, half = m->k.head / 2, rank = tg_dim(b, 1);
  TgTensor *two =
      to_file ? tg_reshape(b, TG_SHAPE(heads, half, 2, rank)) : tg_reshape(b, TG_SHAPE(heads, 2, half, rank));
  return tg_reshape(tg_transpose(two, 1, 2), TG_SHAPE(heads * m->k.head, rank));
}

/* ---- paths */
typedef struct Paths {
  char folder[4000], tensors[4096], config[4096];
  bool made; /* the path is a folder, which is created */
} Paths;

static bool paths_of(TgContext *ctx, const char *path, Paths *p) {
  size_t n = strlen(path);
  const char *slash = strrchr(path, '/');
  p->made = n < 12 || strcmp(path + n - 12, ".safetensors") != 0;
  if (n >= sizeof p->folder) return llm_fail(ctx, TG_ERR_VALUE, "lora: the path is too long");
  if (p->made)
    snprintf(p->folder, sizeof p->folder, "%s", path);
  else
    snprintf(p->folder, sizeof p->folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
  snprintf(p->tensors, sizeof p->tensors, "%s%s", path, p->made ? "/adapter_model.safetensors" : "");
  snprintf(p->config, sizeof p->config, "%s/adapter_config.json", p->folder);
  return true;
}

/* ---- loading */
/* Finds the model's weight that a tensor's name refers to; false: an error. */
static bool place_of(const TgLlm *m, const char *name, int64_t *layer, LlmWeight *w, bool *is_b) {
  const char *begin = names_begin(m), *at = name + strlen(begin);
  size_t digits = strncmp(name, begin, strlen(begin)) ? 0 : strspn(at, "0123456789");
  char rest[100];
  *layer = 0;
  for (size_t i = 0; i < digits && *layer < LORA_LAYERS; i++)
    *layer = *layer * 10 + (at[i] - '0');
  for (int i = 0; digits && i < MODULES; i++)
    for (int b = 0; b < 2 && module_name(m, &modules[i]); b++) {
      snprintf(rest, sizeof rest, ".%s.lora_%c.weight", module_name(m, &modules[i]), b ? 'B' : 'A');
      if (strcmp(at + digits, rest)) continue;
      *w = modules[i].w;
      *is_b = b;
      if (*layer < m->k.layers && *layer < LORA_LAYERS && m->layer[*layer].w[*w]) return true;
      return llm_fail(m->ctx, TG_ERR_VALUE, "lora: '%.120s': the model has no such weight in its %lld layers",
                      name, (long long)m->k.layers);
    }
  return llm_fail(m->ctx, TG_ERR_VALUE, "lora: tensor '%.120s' is none that an adapter of %s has here", name,
                  m->architecture);
}

static bool shape_is(const TgLlm *m, const char *name, TgTensor *t, int64_t rows, int64_t columns) {
  if (tg_ndim(t) == 2 && (rows < 0 || tg_dim(t, 0) == rows) && (columns < 0 || tg_dim(t, 1) == columns) &&
      tg_numel(t) > 0 && tg_dtype_is_float(tg_dtype(t)))
    return true;
  char want[60], is[120];
  snprintf(want, sizeof want, rows < 0 ? "(rank, %lld)" : "(%lld, rank)",
           (long long)(rows < 0 ? columns : rows));
  return llm_fail(m->ctx, TG_ERR_SHAPE, "lora: tensor '%.120s' is %s %s, where the model wants %s", name,
                  tg_dtype_name(tg_dtype(t)), llm_dims_text(is, sizeof is, tg_ndim(t), tg_shape(t)), want);
}

static bool tensor_take(TgLora *l, const char *name, TgTensor *t) {
  const TgLlm *m = l->m;
  int64_t layer, dims[3];
  LlmWeight w = W_Q;
  bool is_b = false, ok = false;
  if (!place_of(m, name, &layer, &w, &is_b)) return false;
  llm_weight_shape(m, w, dims);
  if (!(is_b ? shape_is(m, name, t, dims[0], -1) : shape_is(m, name, t, -1, dims[1]))) return false;
  TgTensor **to = is_b ? &l->layers[layer].b[w] : &l->layers[layer].a[w];
  TG_SCOPE(m->ctx) {
    TgTensor *value = is_b ? reordered(m, tg_cast(t, TG_F32), w, false) : tg_cast(t, TG_F32);
    *to = tg_keep(tg_clone(value));
    ok = tg_requires_grad(*to, true) && !tg_realize(*to);
  }
  return ok;
}

/* Checks that a and b come in pairs of the same rank. */
static bool pairs_whole(const TgLora *l) {
  const TgLlm *m = l->m;
  char name[120];
  int64_t pairs = 0;
  for (int64_t i = 0; i < m->k.layers && i < LORA_LAYERS; i++)
    for (int k = 0; k < MODULES; k++) {
      TgTensor *a = l->layers[i].a[modules[k].w], *b = l->layers[i].b[modules[k].w];
      if (!a && !b) continue;
      tensor_name(m, &modules[k], i, a ? 'B' : 'A', name);
      if (!a || !b) return llm_fail(m->ctx, TG_ERR_VALUE, "lora: there is no tensor '%s'", name);
      if (tg_dim(a, 0) != tg_dim(b, 1))
        return llm_fail(m->ctx, TG_ERR_SHAPE, "lora: '%s' is of rank %lld, and lora_A beside it of rank %lld",
                        name, (long long)tg_dim(b, 1), (long long)tg_dim(a, 0));
      pairs++;
    }
  return pairs || llm_fail(m->ctx, TG_ERR_VALUE, "lora: the file has no adapter");
}

/* Takes the adapter's scale from the file itself if it is there, because the config beside it may be that of
 * a newer adapter. */
static void scale_take(TgLora *l, const TgValue *about) {
  const char *alpha = tg_value_string(tg_value_get(about, "lora_alpha"), NULL), *end = NULL;
  const char *rooted = tg_value_string(tg_value_get(about, "use_rslora"), NULL);
  double value = alpha ? strtod(alpha, (char **)&end) : NAN;
  if (!alpha || end == alpha || *end || !isfinite(value)) return;
  l->alpha = value;
  l->rooted = rooted && !strcmp(rooted, "true");
}

static bool tensors_load(TgLora *l, const char *path) {
  bool ok = false;
  TG_SCOPE(l->m->ctx) {
    TgTensor *bytes = tg_from_file(l->m->ctx, path, TG_U8, TG_SHAPE(-1));
    TgState *file = tg_safe_load(bytes);
    TgValue *header = file ? tg_safe_load_metadata(bytes, NULL) : NULL;
    ok = header != NULL;
    if (ok) scale_take(l, tg_value_get(header, "__metadata__"));
    for (size_t i = 0; ok && i < tg_state_count(file); i++) {
      const char *name = NULL;
      TgTensor *t = tg_state_at(file, i, &name);
      ok = tensor_take(l, name, t);
    }
    tg_state_free(file), tg_value_free(header);
  }
  return ok && pairs_whole(l);
}

#ifdef TG_HAVE_JANSSON
#include <errno.h>
#include <jansson.h>
#include <sys/stat.h>

static bool is_set(const json_t *v) {
  return v && !json_is_null(v) && !json_is_false(v) && !(json_is_object(v) && !json_object_size(v)) &&
         !(json_is_array(v) && !json_array_size(v));
}

/* Refuses settings that would make it another kind of adapter. */
static bool config_is_plain(const TgLlm *m, const char *path, const json_t *c) {
  static const char *const other[] = {"use_dora",          "alpha_pattern",           "modules_to_save",
                                      "layer_replication", "trainable_token_indices", "use_qalora",
                                      "lora_bias"};
  const char *type = json_string_value(json_object_get(c, "peft_type"));
  const char *bias = json_string_value(json_object_get(c, "bias"));
  if (type && strcmp(type, "LORA"))
    return llm_fail(m->ctx, TG_ERR_VALUE, "lora: %.300s: an adapter of the kind %.40s", path, type);
  if (bias && strcmp(bias, "none"))
    return llm_fail(m->ctx, TG_ERR_VALUE, "lora: %.300s: biases are not adapted here", path);
  for (size_t i = 0; i < sizeof other / sizeof *other; i++)
    if (is_set(json_object_get(c, other[i])))
      return llm_fail(m->ctx, TG_ERR_VALUE, "lora: %.300s: %s is not known here", path, other[i]);
  return true;
}

static bool config_read(TgLora *l, const char *path) {
  const TgLlm *m = l->m;
  json_error_t e;
  json_t *c = json_load_file(path, 0, &e);
  const json_t *alpha = json_object_get(c, "lora_alpha");
  bool ok = c != NULL;
  if (!ok)
    llm_fail(m->ctx, errno == ENOENT ? TG_ERR_IO : TG_ERR_VALUE, "lora: %.300s: %.150s", path, e.text);
  else if (!json_is_object(c) || !json_is_number(alpha))
    ok = llm_fail(m->ctx, TG_ERR_VALUE, "lora: %.300s has no number lora_alpha", path);
  ok = ok && config_is_plain(m, path, c);
  if (ok) l->alpha = json_number_value(alpha);
  if (ok) l->rooted = is_set(json_object_get(c, "use_rslora"));
  json_decref(c);
  return ok;
}

/* ---- saving */
/* Collects the rank and the names of the modules in peft; false: ranks differ. */
static bool config_about(const TgLora *l, int64_t *rank, json_t *targets) {
  const TgLlm *m = l->m;
  for (int k = 0; k < MODULES; k++) {
    bool any = false;
    for (int64_t i = 0; i < m->k.layers; i++) {
      TgTensor *a = l->layers[i].a[modules[k].w];
      if (!a) continue;
      if (*rank && tg_dim(a, 0) != *rank)
        return llm_fail(m->ctx, TG_ERR_VALUE, "lora_save: ranks %lld and %lld", (long long)*rank,
                        (long long)tg_dim(a, 0));
      *rank = tg_dim(a, 0);
      any = true;
    }
    const char *name = any ? strrchr(module_name(m, &modules[k]), '.') + 1 : NULL;
    if (any) json_array_append_new(targets, json_string(name));
  }
  return true;
}

static bool config_write(const TgLora *l, const char *path, const char *base) {
  const TgLlm *m = l->m;
  char place[LLM_PATH], beside[LLM_PATH + 8];
  int64_t rank = 0;
  json_t *targets = json_array();
  bool ok = targets && config_about(l, &rank, targets);
  json_t *c =
      ok ? json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:O, s:s, s:b, s:b, s:b, s:b}", "peft_type", "LORA",
                     "task_type", "CAUSAL_LM", "base_model_name_or_path", base ? base : m->architecture, "r",
                     (json_int_t)rank, "lora_alpha", l->alpha, "lora_dropout", l->dropout, "target_modules",
                     targets, "bias", "none", "fan_in_fan_out", is_gpt2(m), "use_rslora", l->rooted,
                     "use_dora", 0, "inference_mode", 1)
         : NULL;
  ok = c && llm_place(path, place);
  if (ok) snprintf(beside, sizeof beside, "%s.tmp", place);
  ok = ok && !json_dump_file(c, beside, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) && !rename(beside, place);
  if (!ok)
    llm_fail(m->ctx, TG_ERR_IO, "lora: %.300s: %s", path, errno ? strerror(errno) : "cannot be written");
  json_decref(c), json_decref(targets);
  return ok;
}

static bool tensors_save(const TgLora *l, const char *path) {
  const TgLlm *m = l->m;
  char name[120];
  char alpha[32];
  const char *const about[] = {
      "format", "pt", "lora_alpha", alpha, "use_rslora", l->rooted ? "true" : "false", NULL};
  snprintf(alpha, sizeof alpha, "%.17g", l->alpha);
  TgState *s = tg_state_new(m->ctx);
  bool ok = s != NULL;
  for (int64_t i = 0; ok && i < m->k.layers; i++)
    for (int k = 0; ok && k < MODULES; k++) {
      LlmWeight w = modules[k].w;
      if (!l->layers[i].a[w]) continue;
      tensor_name(m, &modules[k], i, 'A', name);
      ok = !tg_state_put(s, name, l->layers[i].a[w]);
      tensor_name(m, &modules[k], i, 'B', name);
      ok = ok && !tg_state_put(s, name, reordered(m, l->layers[i].b[w], w, true));
    }
  ok = ok && !tg_safe_save(s, path, .metadata = about);
  tg_state_free(s);
  return ok;
}

TgStatus tg_lora_save(const TgLora *l, const char *path, const char *base) {
  Paths p;
  bool ok = false;
  if (!l) return TG_ERR_NOMEM;
  TgContext *ctx = l->m->ctx;
  if (!path || !paths_of(ctx, path, &p)) return tg_set_error(ctx, TG_ERR_VALUE, "lora_save: no path");
  if (p.made && mkdir(p.folder, 0777) && errno != EEXIST)
    llm_fail(ctx, TG_ERR_IO, "lora: %.300s: %s", p.folder, strerror(errno));
  else
    TG_SCOPE(ctx) { ok = tensors_save(l, p.tensors) && config_write(l, p.config, base); }
  return ok ? TG_OK : tg_error(ctx);
}
#else
static bool config_read(TgLora *l, const char *path) {
  return llm_fail(l->m->ctx, TG_ERR_VALUE, "lora: %.300s: this build reads no JSON (jansson)", path);
}

TgStatus tg_lora_save(const TgLora *l, const char *path, const char *base) {
  (void)path, (void)base;
  if (l) llm_fail(l->m->ctx, TG_ERR_VALUE, "lora: this build writes no JSON (jansson)");
  return l ? TG_ERR_VALUE : TG_ERR_NOMEM;
}
#endif

TgLora *tg_lora_load(TgLlm *m, const char *path, double scale) {
  Paths p;
  if (!m) return NULL;
  if (!path || !isfinite(scale))
    return tg_set_error(m->ctx, TG_ERR_VALUE, "lora_load: no path, or scale"), NULL;
  TgLora *l = can_adapt(m) && paths_of(m->ctx, path, &p) ? lora_new(m) : NULL;
  if (!l) return NULL;
  l->scale = scale;
  if (config_read(l, p.config) && tensors_load(l, p.tensors)) return lora_join(l), l;
  tg_lora_free(l);
  return NULL;
}
