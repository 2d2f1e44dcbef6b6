/* hf.c: a folder of a language model as Hugging Face has it. In: config.json, safetensors (in shards if
 * model.safetensors.index.json lists them), tokenizer.json, tokenizer_config.json. Out: the tree that a
 * gguf file of the same model would give, so that code that reads such a tree also reads these folders.
 * Names and numbers are translated here, by the tables below. A setting that would change the model's
 * results and has no translation is refused by name. */
#include "hf_private.h"
#include <math.h>
#include <stdio.h>
#ifdef TG_HAVE_JANSSON

bool hf_bad(const HfFolder *f, const char *form, const char *a) {
  char what[300];
  snprintf(what, sizeof what, form, a);
  return llm_fail(f->ctx, TG_ERR_VALUE, "hf: %.400s: %s", f->path, what);
}

/* ---- the tree */
bool hf_kv_int(HfFolder *f, const char *key, int64_t v) { return !tg_value_put_int(f->kv, key, v); }

bool hf_kv_bool(HfFolder *f, const char *key, bool v) { return !tg_value_put_bool(f->kv, key, v); }

bool hf_kv_real(HfFolder *f, const char *key, double v) { return !tg_value_put_float(f->kv, key, v); }

bool hf_kv_text(HfFolder *f, const char *key, const char *v) {
  return !tg_value_put_string(f->kv, key, v, strlen(v));
}

bool hf_kv_tensor(HfFolder *f, const char *key, const void *data, TgDType d, int64_t n) {
  TgTensor *t = tg_from(f->ctx, data, d, TG_SHAPE(n));
  return t && !tg_value_put_tensor(f->kv, key, t);
}

bool hf_kv_list(HfFolder *f, const char *key, TgValue *list, bool ok) {
  ok = ok && list && !tg_value_put_tree(f->kv, key, list);
  if (!ok) tg_value_free(list);
  return ok;
}

bool hf_tensor_put(HfFolder *f, const char *name, TgTensor *t) {
  return t && !tg_value_put_tensor(f->tensors, name, t);
}

/* ---- files of the folder */
bool hf_path_of(const HfFolder *f, const char *name, char path[LLM_PATH]) {
  return snprintf(path, LLM_PATH, "%s/%s", f->path, name) < LLM_PATH || hf_bad(f, "the path is too long", "");
}

bool hf_is_there(const HfFolder *f, const char *name) {
  char path[LLM_PATH];
  FILE *file = hf_path_of(f, name, path) ? fopen(path, "rb") : NULL;
  if (file) fclose(file);
  return file != NULL;
}

/* If there is no such file, *to stays NULL, which is an error if must. flags: of jansson. */
bool hf_json_read(const HfFolder *f, const char *name, bool must, size_t flags, json_t **to) {
  char path[LLM_PATH];
  json_error_t e;
  if (!hf_path_of(f, name, path)) return false;
  if (!must && !hf_is_there(f, name)) return true;
  *to = json_load_file(path, flags, &e);
  if (json_is_object(*to)) return true;
  return llm_fail(f->ctx, *to || hf_is_there(f, name) ? TG_ERR_VALUE : TG_ERR_IO, "hf: %.400s: %s", path,
                  *to ? "no JSON object" : e.text);
}

/* ---- numbers */
/* What each model_type implies. */
static const HfType types[] = {
    {.type = "llama", .arch = "llama", .act = "silu", .halves = true},
    {.type = "mistral", .arch = "llama", .act = "silu", .halves = true},
    {.type = "mixtral", .arch = "llama", .act = "silu", .halves = true},
    {.type = "smollm3", .arch = "smollm3", .act = "silu", .halves = true},
    {.type = "qwen2", .arch = "qwen2", .act = "silu", .halves = true},
    {.type = "qwen3", .arch = "qwen3", .act = "silu", .halves = true},
    {.type = "qwen2_moe", .arch = "qwen2moe", .act = "silu", .halves = true},
    {.type = "qwen3_moe", .arch = "qwen3moe", .act = "silu", .halves = true},
    {.type = "gpt_oss", .arch = "gpt-oss", .act = "silu", .halves = true, .names = hf_names_of_oss},
    {.type = "phi3", .arch = "phi3", .act = "silu", .halves = true},
    {.type = "glm4", .arch = "glm4", .act = "silu", .names = hf_names_of_glm},
    {.type = "granite", .arch = "granite", .act = "silu", .halves = true},
    {.type = "olmo2", .arch = "olmo2", .act = "silu", .halves = true, .names = hf_names_of_gemma},
    {.type = "cohere", .arch = "command-r", .act = "silu"},
    {.type = "cohere2", .arch = "cohere2", .act = "silu"},
    {.type = "starcoder2",
     .arch = "starcoder2",
     .act = "gelu_pytorch_tanh",
     .halves = true,
     .names = hf_names_of_gpt2},
    {.type = "nemotron", .arch = "nemotron", .act = "relu2", .ones = true, .halves = true},
    {.type = "gpt2",
     .arch = "gpt2",
     .act = "gelu_new",
     .columns = true,
     .unrotated = true,
     .names = hf_names_of_gpt2},
    {.type = "stablelm", .arch = "stablelm", .act = "silu", .halves = true},
    {.type = "phi", .arch = "phi2", .act = "gelu_new", .halves = true, .names = hf_names_of_phi},
    {.type = "gpt_neox",
     .arch = "gptneox",
     .act = "gelu",
     .halves = true,
     .joined = true,
     .names = hf_names_of_joined},
    {.type = "falcon",
     .arch = "falcon",
     .act = "gelu",
     .halves = true,
     .joined = true,
     .names = hf_names_of_joined},
    {.type = "bloom",
     .arch = "bloom",
     .act = "gelu",
     .unrotated = true,
     .joined = true,
     .names = hf_names_of_joined},
    {.type = "olmo", .arch = "olmo", .act = "silu", .halves = true},
    {.type = "olmoe", .arch = "olmoe", .act = "silu", .halves = true},
    {.type = "deepseek_v2", .arch = "deepseek2", .act = "silu", .latent = true, .names = hf_names_of_latent},
    {.type = "deepseek_v3", .arch = "deepseek2", .act = "silu", .latent = true, .names = hf_names_of_latent},
    {.type = "glm4_moe", .arch = "glm4moe", .act = "silu", .halves = true, .names = hf_names_of_between},
    {.type = "ernie4_5", .arch = "ernie4_5", .act = "silu"},
    {.type = "hunyuan_v1_dense",
     .arch = "hunyuan-dense",
     .act = "silu",
     .halves = true,
     .names = hf_names_of_late},
    {.type = "exaone4", .arch = "exaone4", .act = "silu", .halves = true, .names = hf_names_of_gemma},
    {.type = "seed_oss", .arch = "seed_oss", .act = "silu", .halves = true, .names = hf_names_of_between},
    {.type = "bert",
     .arch = "bert",
     .act = "gelu",
     .encoder = true,
     .unrotated = true,
     .names = hf_names_of_bert},
    {.type = "xlm-roberta",
     .arch = "bert",
     .act = "gelu",
     .encoder = true,
     .padded = true,
     .unrotated = true,
     .names = hf_names_of_bert},
    {.type = "roberta",
     .arch = "bert",
     .act = "gelu",
     .encoder = true,
     .padded = true,
     .unrotated = true,
     .names = hf_names_of_bert},
    {.type = "modernbert",
     .arch = "modern-bert",
     .act = "gelu",
     .encoder = true,
     .halves = true,
     .names = hf_names_of_bert},
    {.type = "nomic_bert",
     .arch = "nomic-bert",
     .act = "silu|swiglu",
     .encoder = true,
     .halves = true,
     .names = hf_names_of_bert},
    {.type = "gemma", .arch = "gemma", .act = "gelu_pytorch_tanh", .ones = true, .halves = true},
    {.type = "gemma2",
     .arch = "gemma2",
     .act = "gelu_pytorch_tanh",
     .ones = true,
     .halves = true,
     .names = hf_names_of_gemma},
    {.type = "gemma3_text",
     .arch = "gemma3",
     .act = "gelu_pytorch_tanh",
     .ones = true,
     .halves = true,
     .names = hf_names_of_gemma}};

/* Settings that must have this value if the file has them, because no other value is supported: a number,
 * a bool, or the length of a list. */
typedef struct Fixed {
  const char *key;
  double value;
} Fixed;

static const Fixed fixed[] = {{"decoder_sparse_step", 1},
                              {"mlp_only_layers", 0},
                              {"no_rope_layer_interval", 4},
                              {"add_cross_attention", 0},
                              {"scale_attn_by_inverse_layer_idx", 0},
                              {"scale_attn_weights", 1},
                              {"use_bidirectional_attention", 0},
                              {"apply_residual_connection_post_layernorm", 0},
                              {"parallel_attn", 1},
                              {"alibi", 0},
                              {"rope_interleave", 1},
                              {"swiglu_limit", 7},
                              {"swiglu_alpha", 1.702}};

static const Fixed fixed_of_cohere[] = {{"use_qk_norm", 0}};

static const Fixed fixed_of_encoders[] = {{"is_decoder", 0},
                                          {"causal", 0},
                                          {"prenorm", 0},
                                          {"use_rms_norm", 0},
                                          {"parallel_block", 0},
                                          {"moe_every_n_layers", 0},
                                          {"rotary_emb_fraction", 1},
                                          {"rotary_emb_interleaved", 0},
                                          {"rotary_emb_scale_base", 0}};

typedef struct Number {
  const char *hf, *gguf; /* gguf: the key after the architecture's name */
  bool real;
} Number;

static const Number numbers[] = {
    {"hidden_size", "embedding_length", false},
    {"num_hidden_layers", "block_count", false},
    {"max_position_embeddings", "context_length", false},
    {"num_attention_heads", "attention.head_count", false},
    {"num_key_value_heads", "attention.head_count_kv", false},
    {"head_dim", "attention.key_length", false},
    {"v_head_dim", "attention.value_length", false},
    {"head_dim", "attention.value_length", false},
    {"intermediate_size", "feed_forward_length", false},
    {"num_experts", "expert_count", false},
    {"num_local_experts", "expert_count", false},
    {"num_experts_per_tok", "expert_used_count", false},
    {"moe_intermediate_size", "expert_feed_forward_length", false},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", false},
    {"n_routed_experts", "expert_count", false},
    {"n_shared_experts", "expert_shared_count", false},
    {"first_k_dense_replace", "leading_dense_block_count", false},
    {"n_group", "expert_group_count", false},
    {"topk_group", "expert_group_used_count", false},
    {"kv_lora_rank", "attention.kv_lora_rank", false},
    {"q_lora_rank", "attention.q_lora_rank", false},
    {"routed_scaling_factor", "expert_weights_scale", true},
    {"clip_qkv", "attention.clamp_kqv", true},
    {"local_attention", "attention.sliding_window", false},
    {"global_attn_every_n_layers", "attention.sliding_window_pattern", false},
    {"n_embd", "embedding_length", false},
    {"n_layer", "block_count", false},
    {"n_positions", "context_length", false},
    {"n_head", "attention.head_count", false},
    {"n_inner", "feed_forward_length", false},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", true},
    {"layer_norm_eps", "attention.layer_norm_epsilon", true},
    {"norm_epsilon", "attention.layer_norm_epsilon", true},
    {"norm_eps", "attention.layer_norm_epsilon", true},
    {"embedding_multiplier", "embedding_scale", true},
    {"residual_multiplier", "residual_scale", true},
    {"attention_multiplier", "attention.scale", true},
    {"logits_scaling", "logit_scale", true},
    {"logit_scale", "logit_scale", true},
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

int64_t hf_int_of(const HfFolder *f, const char *key, int64_t otherwise) {
  const json_t *v = json_object_get(f->config, key);
  return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

static double as_number(const json_t *v) {
  if (json_is_array(v)) return (double)json_array_size(v);
  return json_is_boolean(v) ? json_is_true(v) : json_number_value(v);
}

static bool all_hold(const HfFolder *f, const Fixed *all, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const json_t *v = json_object_get(f->config, all[i].key);
    if (v && !json_is_null(v) && as_number(v) != all[i].value)
      return hf_bad(f, "config.json: %s is otherwise than what is known here", all[i].key);
  }
  return true;
}

static bool fixed_hold(const HfFolder *f) {
  size_t i;
  json_t *rotates;
  const char *positions = hf_text_of(f->config, "position_embedding_type", "absolute");
  if (!all_hold(f, fixed, sizeof fixed / sizeof *fixed)) return false;
  if (!strncmp(f->type->type, "cohere", 6) && !all_hold(f, fixed_of_cohere, 1)) return false;
  if (f->type->encoder &&
      !all_hold(f, fixed_of_encoders, sizeof fixed_of_encoders / sizeof *fixed_of_encoders))
    return false;
  if (strcmp(positions, "absolute"))
    return hf_bad(f, "config.json: position_embedding_type '%.60s' is not known here", positions);
  json_array_foreach(json_object_get(f->config, "no_rope_layers"), i, rotates) {
    if ((as_number(rotates) != 0) != (i % 4 != 3))
      return hf_bad(f, "config.json: %s is otherwise than what is known here", "no_rope_layers");
  }
  return true;
}

/* Values that some files leave out: GPT-2's inner size, and whether the shares of experts add up to 1. */
static bool defaults_put(HfFolder *f) {
  char key[128];
  const json_t *width = json_object_get(f->config, "n_embd"), *inner = json_object_get(f->config, "n_inner"),
               *norm = json_object_get(f->config, "norm_topk_prob");
  if (json_is_integer(width) && !json_is_integer(inner) && json_integer_value(width) < 1 << 26 &&
      !hf_kv_int(f, key_of(f, "feed_forward_length", key), 4 * json_integer_value(width)))
    return false;
  const json_t *parallel = json_object_get(f->config, "use_parallel_residual");
  if (json_is_boolean(parallel) &&
      !hf_kv_bool(f, key_of(f, "use_parallel_residual", key), json_is_true(parallel)))
    return false;
  const char *score =
      hf_text_of(f->config, "scoring_func", strcmp(f->type->type, "deepseek_v3") ? NULL : "sigmoid");
  if (score && strcmp(score, "sigmoid") && strcmp(score, "softmax"))
    return hf_bad(f, "config.json: scoring_func '%.40s' is not known here", score);
  if (score && !hf_kv_int(f, key_of(f, "expert_gating_func", key),
                          strcmp(score, "sigmoid") ? GATING_SOFTMAX : GATING_SIGMOID))
    return false;
  return !json_is_boolean(norm) || hf_kv_bool(f, key_of(f, "expert_weights_norm", key), json_is_true(norm));
}

/* Writes which layers have a window. */
static bool layers_put(HfFolder *f, const json_t *kinds) {
  char key[128];
  size_t n = json_array_size(kinds), i;
  json_t *kind;
  bool *windowed = n ? tg_alloc(f->ctx, n) : NULL, ok = windowed != NULL;
  if (!n) return true;
  json_array_foreach(kinds, i, kind) {
    const char *s = json_string_value(kind);
    if (ok) windowed[i] = s && !strcmp(s, "sliding_attention");
    if (ok && !windowed[i] && (!s || strcmp(s, "full_attention")))
      ok = hf_bad(f, "config.json: a layer of the kind '%.60s' is not known here", s ? s : "");
  }
  key_of(f, "attention.sliding_window_pattern", key);
  ok = ok && hf_kv_tensor(f, key, windowed, TG_BOOL, (int64_t)n);
  tg_free(f->ctx, windowed);
  return ok;
}

/* Writes the window, if the file says that it is used, and the scale of queries if it does not follow from
 * the size of a head. */
static bool windows_put(HfFolder *f) {
  char key[128];
  const json_t *window = json_object_get(f->config, "sliding_window"),
               *use = json_object_get(f->config, "use_sliding_window");
  const json_t *scalar = json_object_get(f->config, "query_pre_attn_scalar");
  bool local = json_is_integer(json_object_get(f->config, "local_attention"));
  bool every = json_is_integer(json_object_get(f->config, "global_attn_every_n_layers"));
  if (!local && json_is_integer(window) && !json_is_false(use)) {
    if (!hf_kv_int(f, key_of(f, "attention.sliding_window", key), json_integer_value(window))) return false;
    local = true;
  }
  if (local && !every && !layers_put(f, json_object_get(f->config, "layer_types"))) return false;
  return !json_is_number(scalar) ||
         hf_kv_real(f, key_of(f, "attention.scale", key), 1 / sqrt(json_number_value(scalar)));
}

static double real_in(const json_t *o, const char *key, double otherwise) {
  const json_t *v = json_object_get(o, key);
  return json_is_number(v) ? json_number_value(v) : otherwise;
}

/* Llama 3's scaling: the number that each frequency is divided by; between two wavelengths it is a
 * mixture. */
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
  bool ok = hf_tensor_put(f, "rope_freqs.weight", tg_from(f->ctx, by, TG_F32, TG_SHAPE(n)));
  tg_free(f->ctx, by);
  return ok;
}

/* Positions that are all scaled alike, or by YaRN, whose ramp a file may specify. */
static bool scaling_put(HfFolder *f, const json_t *s, const char *type) {
  char key[128];
  double factor = real_in(s, "factor", 1);
  double trained = real_in(f->config, "max_position_embeddings", 0);
  double original = real_in(s, "original_max_position_embeddings", trained);
  double usual = factor > 1 ? 1 + 0.1 * log(factor) : 1; /* YaRN's factor if the file does not specify one */
  bool yarn = !strcmp(type, "yarn");
  double all = real_in(s, "mscale_all_dim", 0), mscale = real_in(s, "mscale", f->type->latent ? all : 0);
  if (yarn && (f->type->latent ? mscale != all || all == 0 : mscale != 0 || all != 0))
    return hf_bad(f, "config.json: rope_scaling with %s is not known here", "such an mscale");
  if (yarn && f->type->latent &&
      !hf_kv_real(f, key_of(f, "rope.scaling.yarn_log_multiplier", key), 0.1 * all))
    return false;
  return hf_kv_text(f, key_of(f, "rope.scaling.type", key), type) &&
         hf_kv_real(f, key_of(f, "rope.scaling.factor", key), factor) &&
         hf_kv_real(f, key_of(f, "rope.scaling.original_context_length", key), original) &&
         hf_kv_real(f, key_of(f, "rope.scaling.yarn_beta_fast", key), real_in(s, "beta_fast", 32)) &&
         hf_kv_real(f, key_of(f, "rope.scaling.yarn_beta_slow", key), real_in(s, "beta_slow", 1)) &&
         hf_kv_real(f, key_of(f, "rope.scaling.yarn_truncate", key),
                    !json_is_false(json_object_get(s, "truncate"))) &&
         hf_kv_real(f, key_of(f, "rope.scaling.attn_factor", key),
                    yarn ? real_in(s, "attention_factor", usual) / usual : 1);
}

static bool rope_put(HfFolder *f) {
  char key[128];
  const json_t *c = f->config, *s = json_object_get(c, "rope_scaling"),
               *p = json_object_get(c, "rope_parameters");
  /* layers with a window may have a base of their own; if it is not here, it is in the architecture's row */
  double local =
      real_in(json_object_get(p, "sliding_attention"), "rope_theta", real_in(c, "local_rope_theta", 0));
  if (json_object_get(p, "full_attention")) p = json_object_get(p, "full_attention");
  if (json_is_object(p)) s = p;
  double base = real_in(c, "global_rope_theta", real_in(c, "rotary_emb_base", 10000));
  base = real_in(p, "rope_theta", real_in(c, "rope_theta", base));
  double heads = real_in(c, "num_attention_heads", real_in(c, "n_head", 1));
  double head = real_in(c, f->type->latent ? "qk_rope_head_dim" : "head_dim",
                        real_in(c, "hidden_size", real_in(c, "n_embd", 0)) / heads);
  double part =
      real_in(p, "partial_rotary_factor", real_in(c, "partial_rotary_factor", real_in(c, "rotary_pct", 1)));
  int64_t rotary = (int64_t)(head * part);
  const char *type = hf_text_of(s, "rope_type", hf_text_of(s, "type", "default"));
  if (!strcmp(type, "dynamic") && real_in(s, "alpha", 0) > 0 && rotary > 2)
    base *= pow(real_in(s, "alpha", 0), (double)rotary / (double)(rotary - 2));
  if (!hf_kv_real(f, key_of(f, "rope.freq_base", key), base) ||
      (local > 0 && !hf_kv_real(f, key_of(f, "rope.freq_base_swa", key), local)) ||
      !hf_kv_int(f, key_of(f, "rope.dimension_count", key), rotary) ||
      !hf_kv_bool(f, key_of(f, "rope.halves", key), f->type->halves))
    return false;
  if (!strcmp(type, "default")) return true;
  if (!strcmp(type, "llama3")) return llama3_put(f, s, base, rotary);
  double alpha = real_in(s, "alpha", 0);
  if (!strcmp(type, "dynamic") && alpha > 0) return true; /* base includes it already */
  if (strcmp(type, "linear") && strcmp(type, "yarn"))
    return hf_bad(f, "config.json: rope_scaling of the kind %.40s is not known here", type);
  return scaling_put(f, s, type);
}

/* ---- numbers that some kinds leave out, or define in another way */
static void int_set(const HfFolder *f, const char *key, int64_t v) {
  json_object_set_new(f->config, key, json_integer(v));
}

/* For Falcon and Bloom: how many heads share a key, and sizes that follow from other sizes. */
static void joined_complete(const HfFolder *f) {
  int64_t heads = hf_int_of(f, "num_attention_heads", hf_int_of(f, "n_head", 0));
  int64_t inner =
      hf_int_of(f, "ffn_hidden_size", 4 * hf_int_of(f, "hidden_size", hf_int_of(f, "n_embed", 0)));
  bool one = json_is_true(json_object_get(f->config, "multi_query"));
  bool many = json_is_true(json_object_get(f->config, "new_decoder_architecture"));
  if (!json_object_get(f->config, "intermediate_size")) int_set(f, "intermediate_size", inner);
  if (!json_object_get(f->config, "max_position_embeddings"))
    int_set(f, "max_position_embeddings", hf_int_of(f, "seq_length", 2048));
  int_set(f, "num_key_value_heads", many ? hf_int_of(f, "num_kv_heads", heads) : one ? 1 : heads);
}

static void latent_complete(const HfFolder *f) {
  int64_t rotary = hf_int_of(f, "qk_rope_head_dim", 0), still = hf_int_of(f, "qk_nope_head_dim", 0);
  int_set(f, "num_key_value_heads", hf_int_of(f, "num_attention_heads", 0));
  int_set(f, "head_dim", rotary + still);
}

static void config_complete(const HfFolder *f) {
  if (f->type->joined) joined_complete(f);
  if (f->type->latent) latent_complete(f);
}

/* ---- encoders */
int64_t hf_padding(const HfFolder *f) {
  int64_t id = hf_int_of(f, "pad_token_id", 1), most = 1 << 30;
  return id < 0 ? -1 : id < most ? id : most;
}

/* The number of positions that are left if they are counted from behind the padding, or the number that
 * was trained. */
static bool positions_fit(HfFolder *f) {
  json_t *c = f->config, *trained = json_object_get(c, "max_trained_positions");
  json_int_t most = json_integer_value(json_object_get(c, "max_position_embeddings"));
  if (f->type->padded && most > 0)
    json_object_set_new(c, "max_position_embeddings", json_integer(most - hf_padding(f) - 1));
  if (f->type->encoder && json_is_integer(trained)) json_object_set(c, "n_positions", trained);
  return true;
}

/* How sentence-transformers combines the tokens of a text into one vector, as files beside the model say:
 * a bool for each kind, or the name of one. */
static bool pooling_put(HfFolder *f) {
  static const char *const kinds[][2] = {[POOL_MEAN] = {"pooling_mode_mean_tokens", "mean"},
                                         [POOL_FIRST] = {"pooling_mode_cls_token", "cls"},
                                         [POOL_LAST] = {"pooling_mode_lasttoken", "lasttoken"}};
  char key[128];
  json_t *c = NULL, *v;
  const char *name;
  int64_t kind = f->ranks ? POOL_RANK : POOL_NONE;
  bool ok = hf_json_read(f, "1_Pooling/config.json", false, 0, &c);
  if (ok && hf_is_there(f, "2_Dense/config.json"))
    ok = hf_bad(f, "2_Dense%s: a layer after pooling is not known here", "");
  json_object_foreach(c, name, v) {
    int k = POOL_LAST;
    bool one = !strcmp(name, "pooling_mode");
    const char *is = one ? json_string_value(v) : name;
    if (!ok || !is || (!one && (strncmp(name, "pooling_mode_", 13) || !json_is_true(v)))) continue;
    while (k && strcmp(kinds[k][one], is))
      k--;
    if (!k || kind) ok = hf_bad(f, "1_Pooling/config.json: %.60s is not known here, or not alone", is);
    kind = k;
  }
  ok = ok && (!kind || hf_kv_int(f, key_of(f, "pooling_type", key), kind));
  json_decref(c);
  return ok;
}

static bool says_reranker(const char *s) {
  const char *word = "reranker";
  for (; *s; s++) {
    size_t n = 0;
    while (word[n] && (s[n] | 32) == word[n])
      n++;
    if (!word[n]) return true;
  }
  return false;
}

/* A language model that answers whether a document answers a query is stored as any language model. Its
 * name says what it is for: that of the folder, or the first heading of its README. */
static bool named_reranker(const HfFolder *f) {
  char path[LLM_PATH], line[500];
  size_t n = strlen(f->path);
  while (n && f->path[n - 1] == '/')
    n--;
  size_t begin = n;
  while (begin && f->path[begin - 1] != '/')
    begin--;
  snprintf(line, sizeof line, "%.*s", (int)(n - begin), f->path + begin);
  if (says_reranker(line)) return true;
  FILE *file = hf_path_of(f, "README.md", path) ? fopen(path, "rb") : NULL;
  bool heading = false;
  while (file && !heading && fgets(line, sizeof line, file))
    heading = !strncmp(line, "# ", 2);
  if (file) fclose(file);
  return heading && says_reranker(line);
}

/* Writes the names of a classifier's two labels, in the order of its rows. */
static bool labels_put(HfFolder *f) {
  char key[128];
  const json_t *labels = json_object_get(f->config, "id2label");
  if (!f->ranks || json_object_size(labels) != 2) return true;
  TgValue *list = tg_value_new(f->ctx, TG_KIND_LIST);
  const char *no = hf_text_of(labels, "0", ""), *yes = hf_text_of(labels, "1", "");
  bool ok =
      !tg_value_put_string(list, NULL, no, strlen(no)) && !tg_value_put_string(list, NULL, yes, strlen(yes));
  return hf_kv_list(f, key_of(f, "classifier.output_labels", key), list, ok);
}

/* Whether a decoder's tokens see the later ones, too. */
static bool causal_put(HfFolder *f) {
  char key[128];
  const json_t *causal = json_object_get(f->config, "is_causal");
  return f->type->encoder || !json_is_false(causal) ||
         hf_kv_bool(f, key_of(f, "attention.causal", key), false);
}

/* Which tokens a classifier reads, if it is not the first. */
static bool judged_put(HfFolder *f) {
  char key[128];
  const char *of = hf_text_of(f->config, "classifier_pooling", "cls");
  const char *act = hf_text_of(f->config, "classifier_activation", "gelu");
  if (!f->ranks || strcmp(f->arch, "modern-bert")) return true;
  if (strcmp(act, "gelu"))
    return hf_bad(f, "config.json: classifier_activation '%.40s' is not known here", act);
  if (strcmp(of, "cls") && strcmp(of, "mean"))
    return hf_bad(f, "config.json: classifier_pooling '%.40s' is not known here", of);
  return hf_kv_int(f, key_of(f, "classifier.pooling_type", key), strcmp(of, "mean") ? POOL_FIRST : POOL_MEAN);
}

/* Whether act is one of the names that `usual` lists. */
static bool is_one_of(const char *act, const char *usual) {
  size_t n = strlen(act);
  for (const char *at = usual; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
    if (strcspn(at, "|") == n && !memcmp(at, act, n)) return true;
  return false;
}

static bool config_put(HfFolder *f) {
  const char *type = hf_text_of(f->config, "model_type", "");
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(types[i].type, type)) f->type = &types[i];
  if (!f->type) return hf_bad(f, "config.json: model_type '%.60s' is not read here", type);
  f->arch = f->type->arch;
  const char *usual = f->type->act;
  const char *act = hf_text_of(f->config, "hidden_activation", hf_text_of(f->config, "hidden_act", usual));
  act = hf_text_of(f->config, "activation_function", act);
  if (act != usual && !is_one_of(act, usual) && !(f->type->ones && !strncmp(act, "gelu", 4)))
    return hf_bad(f, "config.json: hidden_act '%.40s' is not known here", act);
  const char *slash = strrchr(f->path, '/');
  const char *kind = json_string_value(json_array_get(json_object_get(f->config, "architectures"), 0));
  f->ranks =
      (kind && strstr(kind, "ForSequenceClassification")) || (!strcmp(f->arch, "qwen3") && named_reranker(f));
  config_complete(f);
  return positions_fit(f) && fixed_hold(f) && hf_kv_text(f, "general.architecture", f->arch) &&
         hf_kv_text(f, "general.name", slash && slash[1] ? slash + 1 : f->path) && numbers_put(f) &&
         defaults_put(f) && windows_put(f) && pooling_put(f) && labels_put(f) && judged_put(f) &&
         causal_put(f) && (f->type->unrotated || rope_put(f));
}

/* ---- the whole */
static bool text_read(HfFolder *f) {
  f->take = hf_text_take;
  return hf_json_read(f, "config.json", true, 0, &f->config) &&
         hf_json_read(f, "tokenizer.json", false, 0, &f->tokenizer) &&
         hf_json_read(f, "tokenizer_config.json", false, JSON_DECODE_INT_AS_REAL,
                      &f->about) /* the file may contain lengths of 1e30 */
         && hf_text_split(f) && config_put(f) && hf_tensors_put(f) && hf_tokenizer_put(f);
}

/* Puts a map into the root, which has it from now on. */
static bool map_put(TgValue *root, const char *key, TgValue **map) {
  if (tg_value_put_tree(root, key, *map)) return false;
  *map = NULL;
  return true;
}

TgValue *hf_tree(TgContext *ctx, const char *path, bool (*read)(HfFolder *f)) {
  if (!ctx || !path) return NULL;
  HfFolder f = {.ctx = ctx, .path = path};
  TgValue *root = tg_value_new(ctx, TG_KIND_MAP);
  f.kv = tg_value_new(ctx, TG_KIND_MAP);
  f.tensors = tg_value_new(ctx, TG_KIND_MAP);
  bool ok = false;
  if (root && f.kv && f.tensors) TG_SCOPE(ctx) {
      ok = read(&f) && map_put(root, "kv", &f.kv) && map_put(root, "tensors", &f.tensors);
    }
  json_decref(f.config), json_decref(f.tokenizer), json_decref(f.about);
  hf_parts_free(&f);
  tg_value_free(f.kv), tg_value_free(f.tensors);
  if (ok) return root;
  tg_value_free(root);
  return NULL;
}

TgValue *tg_hf_load(TgContext *ctx, const char *path) { return hf_tree(ctx, path, text_read); }
#else
TgValue *tg_hf_load(TgContext *ctx, const char *path) {
  if (ctx && path) llm_fail(ctx, TG_ERR_VALUE, "hf: %.400s: this build reads no JSON (jansson)", path);
  return NULL;
}
#endif
