/* arch.c: the architectures, a row each, and the weights that layers are made of. A new architecture that has
 * the parts of others is a row; graph.c has the parts. */
#include "model_private.h"
#include <stdio.h>

const LlmWeightShape llm_weights_of_layer[W_COUNT] = {
    [W_ATTN_NORM] = {"attn_norm", {SIZE_WIDTH}},
    [W_ATTN_NORM_2] = {"attn_norm_2", {SIZE_WIDTH}},
    [W_Q] = {"attn_q", {SIZE_QUERIES, SIZE_WIDTH}},
    [W_K] = {"attn_k", {SIZE_KEYS, SIZE_WIDTH}},
    [W_V] = {"attn_v", {SIZE_VALUES, SIZE_WIDTH}},
    [W_QKV] = {"attn_qkv", {SIZE_QUERIES_KEYS_VALUES, SIZE_WIDTH}},
    [W_OUT] = {"attn_output", {SIZE_WIDTH, SIZE_HEADS_VALUES}},
    [W_Q_NORM] = {"attn_q_norm", {SIZE_HEAD}},
    [W_K_NORM] = {"attn_k_norm", {SIZE_HEAD}},
    [W_ALL_Q_NORM] = {"attn_q_norm", {SIZE_QUERIES}},
    [W_ALL_K_NORM] = {"attn_k_norm", {SIZE_KEYS}},
    [W_ATTN_POST_NORM] = {"post_attention_norm", {SIZE_WIDTH}},
    [W_ATTN_OUT_NORM] = {"attn_output_norm", {SIZE_WIDTH}},
    [W_FFN_NORM] = {"ffn_norm", {SIZE_WIDTH}},
    [W_NORM_BETWEEN] = {"post_attention_norm", {SIZE_WIDTH}},
    [W_SINKS] = {"attn_sinks", {SIZE_HEADS}},
    [W_GATE] = {"ffn_gate", {SIZE_FFN, SIZE_WIDTH}},
    [W_UP] = {"ffn_up", {SIZE_FFN, SIZE_WIDTH}},
    [W_GATE_UP] = {"ffn_up", {SIZE_TWO_FFN, SIZE_WIDTH}},
    [W_DOWN] = {"ffn_down", {SIZE_WIDTH, SIZE_FFN}},
    [W_FFN_POST_NORM] = {"post_ffw_norm", {SIZE_WIDTH}},
    [W_LAYER_OUT_NORM] = {"layer_output_norm", {SIZE_WIDTH}},
    [W_ROUTER] = {"ffn_gate_inp", {SIZE_EXPERTS, SIZE_WIDTH}},
    [W_EXPERT_GATE] = {"ffn_gate_exps", {SIZE_EXPERTS, SIZE_EXPERT_FFN, SIZE_WIDTH}},
    [W_EXPERT_UP] = {"ffn_up_exps", {SIZE_EXPERTS, SIZE_EXPERT_FFN, SIZE_WIDTH}},
    [W_EXPERT_DOWN] = {"ffn_down_exps", {SIZE_EXPERTS, SIZE_WIDTH, SIZE_EXPERT_FFN}},
    [W_SHARED_ROUTER] = {"ffn_gate_inp_shexp", {SIZE_WIDTH}},
    [W_SHARED_GATE] = {"ffn_gate_shexp", {SIZE_SHARED_FFN, SIZE_WIDTH}},
    [W_SHARED_UP] = {"ffn_up_shexp", {SIZE_SHARED_FFN, SIZE_WIDTH}},
    [W_SHARED_DOWN] = {"ffn_down_shexp", {SIZE_WIDTH, SIZE_SHARED_FFN}}};

#define QKV        (BIT(W_Q) | BIT(W_K) | BIT(W_V))
#define ATTENTION  (BIT(W_ATTN_NORM) | QKV | BIT(W_OUT))
#define GATED      (BIT(W_FFN_NORM) | BIT(W_GATE) | BIT(W_UP) | BIT(W_DOWN))
#define EXPERTS    (BIT(W_FFN_NORM) | BIT(W_ROUTER) | EXPERT)
#define EXPERT     (BIT(W_EXPERT_GATE) | BIT(W_EXPERT_UP) | BIT(W_EXPERT_DOWN))
#define SHARED     (BIT(W_SHARED_ROUTER) | BIT(W_SHARED_GATE) | BIT(W_SHARED_UP) | BIT(W_SHARED_DOWN))
#define QK_NORMS   (BIT(W_Q_NORM) | BIT(W_K_NORM))
#define PLAIN      (BIT(W_FFN_NORM) | BIT(W_UP) | BIT(W_DOWN))
#define POST_NORMS (BIT(W_ATTN_POST_NORM) | BIT(W_FFN_POST_NORM))
#define SUM_NORMS  (BIT(W_ATTN_OUT_NORM) | BIT(W_LAYER_OUT_NORM))
#define ENCODED    (QKV | BIT(W_OUT) | SUM_NORMS | BIT(W_UP) | BIT(W_DOWN))

static const LlmArch table[] = {
    {.name = "llama",
     .rope = ROPE_PAIRS,
     .permuted = true,
     .renormalized = true,
     .weights = ATTENTION | GATED,
     .experts = EXPERTS},
    {.name = "qwen2", .rope = ROPE_HALVES, .weights = ATTENTION | GATED, .biases = QKV},
    {.name = "qwen3", .rope = ROPE_HALVES, .weights = ATTENTION | QK_NORMS | GATED},
    {.name = "qwen2moe",
     .rope = ROPE_HALVES,
     .weights = ATTENTION,
     .experts = EXPERTS | SHARED,
     .biases = QKV},
    {.name = "qwen3moe",
     .rope = ROPE_HALVES,
     .renormalized = true,
     .weights = ATTENTION | QK_NORMS,
     .experts = EXPERTS},
    {.name = "gpt-oss",
     .rope = ROPE_HALVES,
     .act = ACT_SWISH_CLAMPED,
     .renormalized = true,
     .global_every = 2,
     .weights = ATTENTION | BIT(W_SINKS) | BIT(W_NORM_BETWEEN),
     .experts = BIT(W_ROUTER) | EXPERT,
     .biases = QKV | BIT(W_OUT) | BIT(W_ROUTER) | EXPERT},
    {.name = "smollm3", .rope = ROPE_PAIRS, .permuted = true, .still_every = 4, .weights = ATTENTION | GATED},
    {.name = "gemma",
     .rope = ROPE_HALVES,
     .act = ACT_GELU,
     .scale_embedding = true,
     .weights = ATTENTION | GATED},
    {.name = "gemma2",
     .rope = ROPE_HALVES,
     .act = ACT_GELU,
     .scale_embedding = true,
     .global_every = 2,
     .deep = 46,
     .weights = ATTENTION | GATED | POST_NORMS},
    {.name = "gemma3",
     .rope = ROPE_HALVES,
     .act = ACT_GELU,
     .scale_embedding = true,
     .global_every = 6,
     .deep = 62,
     .local_base = 10000,
     .weights = ATTENTION | QK_NORMS | GATED | POST_NORMS},
    {.name = "phi3",
     .rope = ROPE_HALVES,
     .weights = BIT(W_ATTN_NORM) | BIT(W_QKV) | BIT(W_OUT) | BIT(W_FFN_NORM) | BIT(W_GATE_UP) | BIT(W_DOWN)},
    {.name = "glm4",
     .rope = ROPE_PAIRS,
     .weights = ATTENTION | POST_NORMS | BIT(W_FFN_NORM) | BIT(W_GATE_UP) | BIT(W_DOWN)},
    {.name = "granite", .rope = ROPE_PAIRS, .permuted = true, .scaled = true, .weights = ATTENTION | GATED},
    {.name = "granitemoe",
     .rope = ROPE_PAIRS,
     .permuted = true,
     .scaled = true,
     .renormalized = true,
     .weights = ATTENTION,
     .experts = EXPERTS},
    {.name = "olmo2",
     .rope = ROPE_HALVES,
     .weights = QKV | BIT(W_OUT) | BIT(W_ALL_Q_NORM) | BIT(W_ALL_K_NORM) | POST_NORMS | BIT(W_GATE) |
                BIT(W_UP) | BIT(W_DOWN)},
    {.name = "command-r",
     .rope = ROPE_PAIRS,
     .layer_norm = true,
     .scaled_logits = true,
     .parallel = true,
     .weights = ATTENTION | BIT(W_GATE) | BIT(W_UP) | BIT(W_DOWN)},
    {.name = "cohere2",
     .rope = ROPE_PAIRS,
     .layer_norm = true,
     .scaled_logits = true,
     .parallel = true,
     .global_every = 4,
     .still_every = 4,
     .weights = ATTENTION | BIT(W_GATE) | BIT(W_UP) | BIT(W_DOWN)},
    {.name = "exaone", .rope = ROPE_HALVES, .weights = ATTENTION | GATED},
    {.name = "internlm2", .rope = ROPE_PAIRS, .permuted = true, .weights = ATTENTION | GATED},
    {.name = "starcoder2",
     .rope = ROPE_HALVES,
     .act = ACT_GELU,
     .layer_norm = true,
     .weights = ATTENTION | PLAIN,
     .biases = ATTENTION | PLAIN},
    {.name = "nemotron",
     .rope = ROPE_HALVES,
     .act = ACT_RELU_SQUARED,
     .layer_norm = true,
     .weights = ATTENTION | PLAIN,
     .biases = BIT(W_ATTN_NORM) | BIT(W_FFN_NORM)},
    {.name = "gpt2",
     .rope = ROPE_NONE,
     .act = ACT_GELU,
     .layer_norm = true,
     .positions = true,
     .weights = BIT(W_ATTN_NORM) | BIT(W_QKV) | BIT(W_OUT) | PLAIN,
     .biases = BIT(W_ATTN_NORM) | BIT(W_QKV) | BIT(W_OUT) | PLAIN},
    {.name = "bert",
     .rope = ROPE_NONE,
     .act = ACT_GELU_ERF,
     .encoder = true,
     .layer_norm = true,
     .positions = true,
     .weights = ENCODED,
     .biases = ENCODED},
    {.name = "nomic-bert",
     .rope = ROPE_HALVES,
     .encoder = true,
     .layer_norm = true,
     .weights = ENCODED | BIT(W_GATE),
     .biases = SUM_NORMS},
    {.name = "jina-bert-v2",
     .rope = ROPE_NONE,
     .act = ACT_GELU_ERF,
     .encoder = true,
     .layer_norm = true,
     .alibi = 8,
     .weights = ENCODED | BIT(W_GATE),
     .maybe = BIT(W_ALL_Q_NORM) | BIT(W_ALL_K_NORM) | BIT(W_ATTN_NORM_2),
     .biases = QKV | BIT(W_OUT) | SUM_NORMS | BIT(W_DOWN)}};

enum { ARCHS = sizeof table / sizeof *table };

const char *tg_llm_architecture(int i) { return i >= 0 && i < ARCHS ? table[i].name : NULL; }

const LlmArch *llm_arch(TgContext *ctx, const char *name) {
  char list[600] = "";
  for (int i = 0; i < ARCHS; i++) {
    if (!strcmp(table[i].name, name)) return &table[i];
    size_t n = strlen(list);
    snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", table[i].name);
  }
  llm_fail(ctx, TG_ERR_VALUE, "llm: architecture '%.60s' is not here; there are %s", name, list);
  return NULL;
}
