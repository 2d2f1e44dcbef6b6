/* hf_vision.c: models that read pictures as Hugging Face has them: one folder with a language model, a vision
 * tower and a projector. In: config.json with text_config and vision_config, preprocessor_config.json,
 * safetensors. Out: for who asks for the language model a config.json and names as of a folder that has it
 * alone; for who asks for the tower the tree that a mmproj gguf file of it would give. */
#include "hf_private.h"
#include <stdio.h>
#ifdef TG_HAVE_JANSSON

/* What a model_type of such a folder is. mean, std: of pictures, where no file says it. */
typedef struct SightType {
  const char *type, *projector;
  double mean[3], std[3];
} SightType;

#define HALVES                                                                                               \
  { 0.5, 0.5, 0.5 }

static const SightType types[] = {
    {"llava", "mlp", {0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},
    {"gemma3", "gemma3", HALVES, HALVES},
    {"idefics3", "idefics3", HALVES, HALVES},
    {"smolvlm", "idefics3", HALVES, HALVES}};

/* What transformers takes where a text_config, or a vision_config, leaves it out. */
typedef struct Usual {
  const char *type, *key; /* type: the folder's; NULL: of all of them that are not named */
  double value;
} Usual;

static const Usual usual_text[] = {{"gemma3", "hidden_size", 2304},
                                   {"gemma3", "intermediate_size", 9216},
                                   {"gemma3", "num_hidden_layers", 26},
                                   {"gemma3", "num_attention_heads", 8},
                                   {"gemma3", "num_key_value_heads", 4},
                                   {"gemma3", "head_dim", 256},
                                   {"gemma3", "max_position_embeddings", 131072},
                                   {"gemma3", "query_pre_attn_scalar", 256},
                                   {"gemma3", "sliding_window", 4096},
                                   {"gemma3", "rope_theta", 1e6},
                                   {NULL, "hidden_size", 4096},
                                   {NULL, "intermediate_size", 11008},
                                   {NULL, "num_hidden_layers", 32},
                                   {NULL, "num_attention_heads", 32},
                                   {NULL, "max_position_embeddings", 2048},
                                   {NULL, "rms_norm_eps", 1e-6}};

static const Usual usual_vision[] = {{"llava", "hidden_size", 768},
                                     {"llava", "intermediate_size", 3072},
                                     {"llava", "num_hidden_layers", 12},
                                     {"llava", "num_attention_heads", 12},
                                     {"llava", "image_size", 224},
                                     {"llava", "patch_size", 32},
                                     {"llava", "layer_norm_eps", 1e-5},
                                     {"gemma3", "hidden_size", 768},
                                     {"gemma3", "num_attention_heads", 12},
                                     {"gemma3", "patch_size", 16},
                                     {"smolvlm", "num_attention_heads", 16},
                                     {NULL, "hidden_size", 1152},
                                     {NULL, "intermediate_size", 3072},
                                     {NULL, "num_hidden_layers", 12},
                                     {NULL, "num_attention_heads", 16},
                                     {NULL, "image_size", 224},
                                     {NULL, "patch_size", 32},
                                     {NULL, "layer_norm_eps", 1e-6}};

static void usual_set(json_t *config, const char *type, const Usual *u, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if ((u[i].type && strcmp(u[i].type, type)) || json_object_get(config, u[i].key)) continue;
    bool whole = u[i].value >= 1;
    json_object_set_new(config, u[i].key,
                        whole ? json_integer((json_int_t)u[i].value) : json_real(u[i].value));
  }
}

static const SightType *type_of(const json_t *config) {
  const char *type = hf_text_of(config, "model_type", "");
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(types[i].type, type)) return &types[i];
  return NULL;
}

/* ---- the language model alone */
bool hf_text_split(HfFolder *f) {
  json_t *text = json_object_get(f->config, "text_config");
  json_t *tied = json_object_get(f->config, "tie_word_embeddings");
  const SightType *type = type_of(f->config);
  if (!type || !json_is_object(text)) return true;
  json_incref(text);
  usual_set(text, type->type, usual_text, sizeof usual_text / sizeof *usual_text);
  if (!json_object_get(text, "model_type"))
    json_object_set_new(text, "model_type", json_string(*type->type == 'g' ? "gemma3_text" : "llama"));
  if (tied && !json_object_get(text, "tie_word_embeddings"))
    json_object_set(text, "tie_word_embeddings", tied);
  json_decref(f->config);
  f->config = text;
  f->sees = true;
  return true;
}

static bool begins_with(const char **name, const char *begin) {
  size_t n = strlen(begin);
  if (strncmp(*name, begin, n)) return false;
  *name += n;
  return true;
}

/* Whether a tensor is the tower's or the projector's; *name is without what stands before it then. */
static bool is_of_sight(const char **name) {
  const char *at = *name;
  begins_with(&at, "model.");
  const char *own = at;
  bool tower = begins_with(&at, "vision_tower.") || begins_with(&at, "vision_model.");
  if (tower) begins_with(&at, "vision_model.");
  if (!tower && strncmp(own, "multi_modal_projector.", 22) && strncmp(own, "connector.", 10)) return false;
  *name = at;
  return true;
}

bool hf_text_name(const char *name, char to[128]) {
  static const HfNamed begins[] = {{"model.language_model.", "model."},
                                   {"language_model.model.", "model."},
                                   {"language_model.", ""},
                                   {"model.text_model.", "model."},
                                   {NULL, NULL}};
  if (is_of_sight(&(const char *){name})) return false;
  for (const HfNamed *b = begins; b->hf; b++) {
    const char *rest = name;
    if (!begins_with(&rest, b->hf)) continue;
    snprintf(to, 128, "%s%.100s", b->gguf, rest);
    return true;
  }
  snprintf(to, 128, "%.120s", name);
  return true;
}

/* ---- the tower and its projector */
static const HfNamed of_tower[] = {
    {"embeddings.patch_embedding.weight", "v.patch_embd.weight"},
    {"embeddings.patch_embedding.bias", "v.patch_embd.bias"},
    {"embeddings.class_embedding", "v.class_embd"},
    {"embeddings.position_embedding.weight", "v.position_embd.weight"},
    {"pre_layrnorm.weight", "v.pre_ln.weight"},
    {"pre_layrnorm.bias", "v.pre_ln.bias"},
    {"post_layernorm.weight", "v.post_ln.weight"},
    {"post_layernorm.bias", "v.post_ln.bias"},
    {"multi_modal_projector.linear_1.weight", "mm.0.weight"},
    {"multi_modal_projector.linear_1.bias", "mm.0.bias"},
    {"multi_modal_projector.linear_2.weight", "mm.2.weight"},
    {"multi_modal_projector.linear_2.bias", "mm.2.bias"},
    {"multi_modal_projector.mm_input_projection_weight", "mm.input_projection.weight"},
    {"multi_modal_projector.mm_soft_emb_norm.weight", "mm.soft_emb_norm.weight"},
    {"connector.modality_projection.proj.weight", "mm.model.fc.weight"},
    {NULL, NULL}};

static const HfNamed of_layer[] = {
    {"layer_norm1", "ln1"},         {"layer_norm2", "ln2"},         {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"}, {"self_attn.v_proj", "attn_v"}, {"self_attn.out_proj", "attn_out"},
    {"mlp.fc1", "ffn_up"},          {"mlp.fc2", "ffn_down"},        {NULL, NULL}};

/* "encoder.layers.3.mlp.fc1.bias" */
static bool layer_name(const char *name, char to[64]) {
  if (!begins_with(&name, "encoder.layers.")) return false;
  size_t digits = strspn(name, "0123456789");
  const char *rest = name + digits + 1, *end = strrchr(name, '.');
  if (!digits || digits > 6 || name[digits] != '.' || end < rest) return false;
  for (const HfNamed *n = of_layer; n->hf; n++)
    if (strlen(n->hf) == (size_t)(end - rest) && !strncmp(n->hf, rest, (size_t)(end - rest)))
      return snprintf(to, 64, "v.blk.%.*s.%s%.20s", (int)digits, name, n->gguf, end) < 64;
  return false;
}

/* What a tower has besides: the numbers of its places, and a head that nothing here asks. */
static bool is_left(const char *name) {
  return !strcmp(name, "embeddings.position_ids") || !strncmp(name, "head.", 5);
}

static bool tensor_take(HfFolder *f, const char *name, TgTensor *t) {
  char to[64];
  const char *full = name;
  if (!is_of_sight(&name) || is_left(name)) return true;
  bool known = layer_name(name, to);
  for (const HfNamed *n = of_tower; n->hf && !known; n++)
    if (!strcmp(n->hf, name)) known = snprintf(to, sizeof to, "%s", n->gguf) > 0;
  if (!known) return hf_bad(f, "tensor '%.120s' is none that is known here", full);
  if (!strcmp(to, "mm.soft_emb_norm.weight")) t = tg_add_scalar(tg_cast(t, TG_F32), 1);
  return hf_tensor_put(f, to, t);
}

static const struct {
  const char *hf, *gguf;
} numbers[] = {{"image_size", "clip.vision.image_size"},
               {"patch_size", "clip.vision.patch_size"},
               {"hidden_size", "clip.vision.embedding_length"},
               {"intermediate_size", "clip.vision.feed_forward_length"},
               {"num_hidden_layers", "clip.vision.block_count"},
               {"num_attention_heads", "clip.vision.attention.head_count"}};

static bool numbers_put(HfFolder *f, const json_t *c) {
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const json_t *v = json_object_get(c, numbers[i].hf);
    if (!json_is_integer(v))
      return hf_bad(f, "config.json: vision_config.%.60s is no whole number", numbers[i].hf);
    if (!hf_kv_int(f, numbers[i].gguf, json_integer_value(v))) return false;
  }
  return hf_kv_real(f, "clip.vision.attention.layer_norm_epsilon",
                    json_number_value(json_object_get(c, "layer_norm_eps")));
}

/* Gemma 3: patches of a side by tokens of a side. Else scale_factor. */
static int64_t merge_of(const HfFolder *f, const json_t *c) {
  int64_t image = json_integer_value(json_object_get(c, "image_size"));
  int64_t patch = json_integer_value(json_object_get(c, "patch_size"));
  int64_t tokens = hf_int_of(f, "mm_tokens_per_image", 256), side = 1;
  if (strcmp(hf_text_of(f->config, "model_type", ""), "gemma3")) return hf_int_of(f, "scale_factor", 2);
  while (side < 4096 && (side + 1) * (side + 1) <= tokens)
    side++;
  return patch > 0 && image / patch / side > 0 ? image / patch / side : 1;
}

/* Layers whose outputs LLaVA reads, counted from the end where they are below 0; and all tokens but the
 * first. */
static bool features_put(HfFolder *f, const json_t *c) {
  int64_t layers = json_integer_value(json_object_get(c, "num_hidden_layers"));
  json_t *of = json_object_get(f->config, "vision_feature_layer"), *each;
  int32_t all[64];
  size_t n = json_is_array(of) ? json_array_size(of) : 1;
  const char *kept = hf_text_of(f->config, "vision_feature_select_strategy", "default");
  const char *act = hf_text_of(f->config, "projector_hidden_act", "gelu");
  if (strcmp(kept, "default"))
    return hf_bad(f, "config.json: vision_feature_select_strategy '%.40s' is not known here", kept);
  if (strcmp(act, "gelu"))
    return hf_bad(f, "config.json: projector_hidden_act '%.40s' is not known here", act);
  if (n < 1 || n > 64)
    return hf_bad(f, "config.json: vision_feature_layer%s has too many layers, or none", "");
  for (size_t i = 0; i < n; i++) {
    each = json_is_array(of) ? json_array_get(of, i) : of;
    int64_t v = json_is_integer(each) ? json_integer_value(each) : -2;
    if (v < 0) v += layers + 1;
    all[i] = v < 0 || v > INT32_MAX ? -1 : (int32_t)v;
  }
  return hf_kv_tensor(f, "clip.vision.feature_layer", all, TG_I32, (int64_t)n);
}

static bool activation_put(HfFolder *f, const char *act) {
  if (!strcmp(act, "quick_gelu")) return true;
  if (!strcmp(act, "gelu_pytorch_tanh")) return hf_kv_bool(f, "clip.use_gelu", true);
  if (!strcmp(act, "silu")) return hf_kv_bool(f, "clip.use_silu", true);
  return hf_bad(f, "config.json: vision_config.hidden_act '%.40s' is not known here", act);
}

/* The colours of preprocessor_config.json, or what the model's kind has. */
static bool colours_put(HfFolder *f, const SightType *type, const json_t *c) {
  static const char *const names[] = {"image_mean", "image_std"};
  bool ok = true;
  for (int i = 0; ok && i < 2; i++) {
    json_t *list = json_object_get(c, names[i]);
    float v[3];
    char key[40];
    for (size_t k = 0; k < 3; k++)
      v[k] = (float)(list ? json_number_value(json_array_get(list, k)) : (i ? type->std : type->mean)[k]);
    if (list && json_array_size(list) != 3)
      ok = hf_bad(f, "preprocessor_config.json: %s is no list of three numbers", names[i]);
    snprintf(key, sizeof key, "clip.vision.%s", names[i]);
    ok = ok && hf_kv_tensor(f, key, v, TG_F32, 3);
  }
  return ok;
}

/* Idefics 3: tiles are squares of max_image_size, which is the size that the tower reads, and size is the
 * longest edge of the picture that is cut into them. */
static bool tiles_put(HfFolder *f, const json_t *c, int64_t image) {
  const json_t *edge = json_object_get(json_object_get(c, "size"), "longest_edge");
  const json_t *tile = json_object_get(json_object_get(c, "max_image_size"), "longest_edge");
  if (!edge || json_is_false(json_object_get(c, "do_image_splitting"))) return true;
  if (!json_is_integer(edge))
    return hf_bad(f, "preprocessor_config.json: size.longest_edge is no whole number%s", "");
  char both[80];
  snprintf(both, sizeof both, "%lld, where the tower reads %lld", (long long)json_integer_value(tile),
           (long long)image);
  if (tile && json_integer_value(tile) != image)
    return hf_bad(f, "preprocessor_config.json: max_image_size.longest_edge is %s", both);
  return hf_kv_int(f, "clip.vision.preproc_image_size", json_integer_value(edge));
}

/* What preprocessor_config.json says; there may be none. */
static bool processor_put(HfFolder *f, const SightType *type, const json_t *vision) {
  json_t *c = NULL;
  bool grid = !strcmp(type->projector, "idefics3");
  bool ok = hf_json_read(f, "preprocessor_config.json", false, 0, &c) && colours_put(f, type, c) &&
            (!grid || tiles_put(f, c, json_integer_value(json_object_get(vision, "image_size"))));
  json_decref(c);
  return ok;
}

static bool tower_read(HfFolder *f) {
  if (!hf_json_read(f, "config.json", true, 0, &f->config)) return false;
  const SightType *type = type_of(f->config);
  json_t *c = json_object_get(f->config, "vision_config");
  if (!type || !json_is_object(c))
    return hf_bad(f, "config.json: model_type '%.60s' has no vision_config that is read here",
                  hf_text_of(f->config, "model_type", ""));
  usual_set(c, type->type, usual_vision, sizeof usual_vision / sizeof *usual_vision);
  bool mlp = !strcmp(type->projector, "mlp");
  f->take = tensor_take;
  return hf_kv_text(f, "general.architecture", "clip") &&
         hf_kv_text(f, "clip.projector_type", type->projector) && numbers_put(f, c) &&
         (mlp ? features_put(f, c) : hf_kv_int(f, "clip.vision.projector.scale_factor", merge_of(f, c))) &&
         activation_put(f, hf_text_of(c, "hidden_act", mlp ? "quick_gelu" : "gelu_pytorch_tanh")) &&
         processor_put(f, type, c) && hf_tensors_put(f);
}

TgValue *tg_hf_load_vision(TgContext *ctx, const char *path) { return hf_tree(ctx, path, tower_read); }
#else
TgValue *tg_hf_load_vision(TgContext *ctx, const char *path) {
  if (ctx && path) llm_fail(ctx, TG_ERR_VALUE, "hf: %.400s: this build reads no JSON (jansson)", path);
  return NULL;
}
#endif
