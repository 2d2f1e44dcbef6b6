/* hf_tensors.c: weights as Hugging Face has them. In: safetensors, in shards if
 * model.safetensors.index.json lists them. Out: tensors under the names of a gguf file of the same model.
 * They are views of the files, except experts that are a tensor each and packed experts in another order,
 * which are put together once, in memory. */
#include "hf_private.h"
#include <stdio.h>
#include <stdlib.h>
#ifdef TG_HAVE_JANSSON

/* ---- names */
static const HfNamed of_model[] = {{"model.embed_tokens.weight", "token_embd.weight"},
                                   {"model.norm.weight", "output_norm.weight"},
                                   {"model.norm.bias", "output_norm.bias"},
                                   {"lm_head.weight", "output.weight"},
                                   {"transformer.wte.weight", "token_embd.weight"},
                                   {"transformer.wpe.weight", "position_embd.weight"},
                                   {"transformer.ln_f.weight", "output_norm.weight"},
                                   {"transformer.ln_f.bias", "output_norm.bias"},
                                   {"embed_tokens.weight", "token_embd.weight"},
                                   {"norm.weight", "output_norm.weight"},
                                   {"norm.bias", "output_norm.bias"},
                                   {"score.weight", "cls.output.weight"},
                                   {"wte.weight", "token_embd.weight"},
                                   {"wpe.weight", "position_embd.weight"},
                                   {"ln_f.weight", "output_norm.weight"},
                                   {"ln_f.bias", "output_norm.bias"},
                                   {"lm_head.bias", "output.bias"},
                                   {"model.final_layernorm.weight", "output_norm.weight"},
                                   {"model.final_layernorm.bias", "output_norm.bias"},
                                   {"gpt_neox.embed_in.weight", "token_embd.weight"},
                                   {"gpt_neox.final_layer_norm.weight", "output_norm.weight"},
                                   {"gpt_neox.final_layer_norm.bias", "output_norm.bias"},
                                   {"embed_out.weight", "output.weight"},
                                   {"transformer.word_embeddings.weight", "token_embd.weight"},
                                   {"transformer.word_embeddings_layernorm.weight", "token_embd_norm.weight"},
                                   {"transformer.word_embeddings_layernorm.bias", "token_embd_norm.bias"},
                                   {"embeddings.word_embeddings.weight", "token_embd.weight"},
                                   {"embeddings.position_embeddings.weight", "position_embd.weight"},
                                   {"embeddings.token_type_embeddings.weight", "token_types.weight"},
                                   {"embeddings.LayerNorm.weight", "token_embd_norm.weight"},
                                   {"embeddings.LayerNorm.bias", "token_embd_norm.bias"},
                                   {"embeddings.tok_embeddings.weight", "token_embd.weight"},
                                   {"embeddings.norm.weight", "token_embd_norm.weight"},
                                   {"embeddings.norm.bias", "token_embd_norm.bias"},
                                   {"final_norm.weight", "output_norm.weight"},
                                   {"final_norm.bias", "output_norm.bias"},
                                   {"head.dense.weight", "cls.weight"},
                                   {"head.dense.bias", "cls.bias"},
                                   {"head.norm.weight", "cls.norm.weight"},
                                   {"head.norm.bias", "cls.norm.bias"},
                                   {"emb_ln.weight", "token_embd_norm.weight"},
                                   {"emb_ln.bias", "token_embd_norm.bias"},
                                   {"pooler.dense.weight", "cls.weight"},
                                   {"pooler.dense.bias", "cls.bias"},
                                   {"classifier.weight", "cls.output.weight"},
                                   {"classifier.bias", "cls.output.bias"},
                                   {"classifier.dense.weight", "cls.weight"},
                                   {"classifier.dense.bias", "cls.bias"},
                                   {"classifier.out_proj.weight", "cls.output.weight"},
                                   {"classifier.out_proj.bias", "cls.output.bias"},
                                   {NULL, NULL}};

static const HfNamed of_layer[] = {{"input_layernorm", "attn_norm"},
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
                                   {"mlp.down_proj", "ffn_down"},
                                   {"mlp.gate", "ffn_gate_inp"},
                                   {"mlp.router", "ffn_gate_inp"},
                                   {"block_sparse_moe.gate", "ffn_gate_inp"},
                                   {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
                                   {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                                   {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                                   {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
                                   {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                                   {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                                   {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
                                   {NULL, NULL}};

/* For models with norms before and after each part. */
const HfNamed hf_names_of_gemma[] = {{"post_attention_layernorm", "post_attention_norm"},
                                     {"pre_feedforward_layernorm", "ffn_norm"},
                                     {"post_feedforward_layernorm", "post_ffw_norm"},
                                     {NULL, NULL}};
const HfNamed hf_names_of_glm[] = {{"post_self_attn_layernorm", "post_attention_norm"},
                                   {"post_mlp_layernorm", "post_ffw_norm"},
                                   {NULL, NULL}};
const HfNamed hf_names_of_oss[] = {{"post_attention_layernorm", "post_attention_norm"}, {NULL, NULL}};
const HfNamed hf_names_of_between[] = {{"post_attention_layernorm", "post_attention_norm"}, {NULL, NULL}};
const HfNamed hf_names_of_phi[] = {
    {"self_attn.dense", "attn_output"}, {"mlp.fc1", "ffn_up"}, {"mlp.fc2", "ffn_down"}, {NULL, NULL}};
const HfNamed hf_names_of_late[] = {
    {"self_attn.query_layernorm", "attn_q_norm"}, {"self_attn.key_layernorm", "attn_k_norm"}, {NULL, NULL}};
/* For GPT-NeoX, Falcon and Bloom. */
const HfNamed hf_names_of_joined[] = {{"attention.query_key_value", "attn_qkv"},
                                      {"attention.dense", "attn_output"},
                                      {"self_attention.query_key_value", "attn_qkv"},
                                      {"self_attention.dense", "attn_output"},
                                      {"mlp.dense_h_to_4h", "ffn_up"},
                                      {"mlp.dense_4h_to_h", "ffn_down"},
                                      {"ln_attn", "attn_norm_2"},
                                      {"ln_mlp", "attn_norm"},
                                      {NULL, NULL}};
const HfNamed hf_names_of_latent[] = {{"self_attn.q_a_proj", "attn_q_a"},
                                      {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                                      {"self_attn.q_b_proj", "attn_q_b"},
                                      {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                                      {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                                      {"self_attn.kv_b_proj", "attn_kv_b"},
                                      {NULL, NULL}};
const HfNamed hf_names_of_gpt2[] = {
    {"ln_1", "attn_norm"}, {"attn.c_attn", "attn_qkv"}, {"attn.c_proj", "attn_output"},
    {"ln_2", "ffn_norm"},  {"mlp.c_fc", "ffn_up"},      {"mlp.c_proj", "ffn_down"},
    {NULL, NULL}};

/* For encoders: the names of BERT, both sets of names of nomic, and ModernBERT's. */
const HfNamed hf_names_of_bert[] = {{"attention.self.query", "attn_q"},
                                    {"attention.self.key", "attn_k"},
                                    {"attention.self.value", "attn_v"},
                                    {"attention.output.dense", "attn_output"},
                                    {"attention.output.LayerNorm", "attn_output_norm"},
                                    {"intermediate.dense", "ffn_up"},
                                    {"output.dense", "ffn_down"},
                                    {"output.LayerNorm", "layer_output_norm"},
                                    {"attn.Wqkv", "attn_qkv"},
                                    {"attn.out_proj", "attn_output"},
                                    {"attn.Wo", "attn_output"},
                                    {"attn_norm", "attn_norm"},
                                    {"mlp_norm", "ffn_norm"},
                                    {"mlp.Wi", "ffn_up"},
                                    {"mlp.Wo", "ffn_down"},
                                    {"norm1", "attn_output_norm"},
                                    {"norm2", "layer_output_norm"},
                                    {"mlp.fc11", "ffn_up"},
                                    {"mlp.fc12", "ffn_gate"},
                                    {"mlp.fc2", "ffn_down"},
                                    {"post_attention_layernorm", "attn_output_norm"},
                                    {"post_mlp_layernorm", "layer_output_norm"},
                                    {NULL, NULL}};

/* The matrices of an expert, if each is a tensor of its own. */
static const HfNamed of_expert[] = {{"gate_proj.weight", "ffn_gate_exps.weight"},
                                    {"up_proj.weight", "ffn_up_exps.weight"},
                                    {"down_proj.weight", "ffn_down_exps.weight"},
                                    {"w1.weight", "ffn_gate_exps.weight"},
                                    {"w3.weight", "ffn_up_exps.weight"},
                                    {"w2.weight", "ffn_down_exps.weight"},
                                    {NULL, NULL}};

static const char *named(const HfNamed *table, const char *name, size_t length) {
  for (; table && table->hf; table++)
    if (strlen(table->hf) == length && !memcmp(table->hf, name, length)) return table->gguf;
  return NULL;
}

/* The name of a layer's tensor: the digits of its layer, and what follows them. */
typedef struct Place {
  const char *layer, *rest;
  int digits;
} Place;

static bool place_of(const char *name, Place *p) {
  static const char *const begins[] = {"model.layers.",   "transformer.h.",  "h.",
                                       "encoder.layer.",  "encoder.layers.", "layers.",
                                       "gpt_neox.layers."};
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
    size_t n = strlen(begins[i]);
    if (strncmp(name, begins[i], n)) continue;
    p->layer = name + n;
    size_t digits = strspn(p->layer, "0123456789");
    p->digits = (int)digits;
    p->rest = p->layer + digits + 1;
    return digits && digits <= 6 && p->layer[digits] == '.';
  }
  return false;
}

static bool name_put(char to[64], const Place *p, const char *part, const char *end) {
  return snprintf(to, 64, "blk.%.*s.%s%s", p->digits, p->layer, part, end) < 64;
}

/* Writes the name that gguf files have for the tensor to `to`. Returns false if there is none. */
static bool translated(const HfFolder *f, const char *name, char to[64]) {
  Place p;
  const char *plain = named(of_model, name, strlen(name));
  if (plain) return snprintf(to, 64, "%s", plain) < 64;
  if (!place_of(name, &p)) return false;
  if (!strcmp(p.rest, "mlp.gate.e_score_correction_bias")) return name_put(to, &p, "exp_probs_b", ".bias");
  if (!strcmp(p.rest, "self_attn.sinks")) return name_put(to, &p, "attn_sinks", ".weight");
  const char *dot = strrchr(p.rest, '.');
  if (!dot || (strcmp(dot, ".weight") && strcmp(dot, ".bias"))) return false;
  const char *part = named(f->type->names, p.rest, (size_t)(dot - p.rest));
  if (!part) part = named(of_layer, p.rest, (size_t)(dot - p.rest));
  return part && name_put(to, &p, part, dot);
}

/* ---- tensors that are put together after all shards are read */
static bool part_put(HfFolder *f, const char *name, int64_t index, TgTensor *t) {
  HfPart *at = llm_grow(f->ctx, f->part, f->nparts, 1, &f->parts_cap, sizeof *at);
  if (!at) return false;
  f->part = at;
  at += f->nparts++;
  *at = (HfPart){.index = index, .t = tg_keep(t)};
  snprintf(at->name, sizeof at->name, "%s", name);
  return at->t != NULL;
}

void hf_parts_free(HfFolder *f) {
  for (size_t i = 0; i < f->nparts; i++)
    tg_release(f->part[i].t);
  tg_free(f->ctx, f->part);
}

/* Takes a part such as "mlp.experts.3.up_proj.weight". *is: whether the name is one. */
static bool expert_take(HfFolder *f, const char *name, TgTensor *t, bool *is) {
  Place p;
  char to[64];
  const char *at = place_of(name, &p) ? strstr(p.rest, ".experts.") : NULL;
  size_t digits = at ? strspn(at + 9, "0123456789") : 0;
  const char *part = digits && digits <= 6 && at[9 + digits] == '.'
                         ? named(of_expert, at + 10 + digits, strlen(at + 10 + digits))
                         : NULL;
  *is = part != NULL;
  return !part || (name_put(to, &p, part, "") && part_put(f, to, strtol(at + 9, NULL, 10), t));
}

/* Takes the norm of a single head, "self_attn.q_layernorm.norms.3.weight", which is also a part. */
static bool head_norm_take(HfFolder *f, const char *name, TgTensor *t, bool *is) {
  static const char *const begins[] = {"self_attn.q_layernorm.norms.", "self_attn.k_layernorm.norms."};
  Place p;
  char to[64];
  for (int i = 0; i < 2 && place_of(name, &p); i++) {
    size_t n = strlen(begins[i]);
    if (strncmp(p.rest, begins[i], n)) continue;
    *is = true;
    return name_put(to, &p, i ? "attn_k_norm" : "attn_q_norm", ".weight") &&
           part_put(f, to, strtol(p.rest + n, NULL, 10), t);
  }
  return true;
}

/* The rows of t are in groups: in each, the queries of some heads, then a key and a value. Returns all
 * queries, then all keys, then all values. */
static TgTensor *joined_parted(const HfFolder *f, TgTensor *t) {
  int64_t heads = hf_int_of(f, "num_attention_heads", hf_int_of(f, "n_head", 0));
  int64_t groups = hf_int_of(f, "num_key_value_heads", heads), each = groups > 0 ? heads / groups + 2 : 0;
  if (each < 3 || tg_dim(t, 0) % (groups * each)) return t; /* a check of its shape reports the error */
  TgTensor *all = tg_unflatten(t, 0, 3, (const int64_t[]){groups, each, tg_dim(t, 0) / (groups * each)}),
           *part[3];
  for (int64_t i = 0; i < 3; i++)
    part[i] = tg_flatten(tg_slice(all, 1, i ? each - 3 + i : 0, i ? each - 2 + i : each - 2), 0, 2);
  return tg_cat(part, 3, 0);
}

/* ---- gpt-oss: even rows are gates, odd rows are what the gates multiply */
enum { GATES, UPS, PACKED = -2 /* index of the parts of a packed matrix: blocks, then scales */ };

/* Every second element of an axis, beginning with the element `first`. */
static TgTensor *every_second(TgTensor *x, int axis, int first) {
  TgTensor *two = tg_unflatten(x, axis, 2, (const int64_t[]){tg_dim(x, axis) / 2, 2});
  return tg_squeeze(tg_slice(two, axis + 1, first, first + 1), axis + 1);
}

static bool two_put(HfFolder *f, const Place *p, const char *end, TgTensor *gate, TgTensor *up) {
  char to[64];
  return gate && up && name_put(to, p, "ffn_gate_exps", end) && hf_tensor_put(f, to, gate) &&
         name_put(to, p, "ffn_up_exps", end) && hf_tensor_put(f, to, up);
}

/* What a tensor of all experts holds: values, biases, or packed values as blocks or scales. */
typedef enum OssEnd { OSS_VALUES, OSS_BIAS, OSS_BLOCKS, OSS_SCALES, OSS_NONE } OssEnd;

static OssEnd oss_end(const Place *p, bool *both) {
  static const char *const ends[] = {"", "_bias", "_blocks", "_scales"};
  static const char *const begins[] = {"mlp.experts.down_proj", "mlp.experts.gate_up_proj"};
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < OSS_NONE; k++) {
      size_t n = strlen(begins[i]);
      if (strncmp(p->rest, begins[i], n) || strcmp(p->rest + n, ends[k])) continue;
      *both = i;
      return (OssEnd)k;
    }
  return OSS_NONE;
}

/* Takes a tensor of all experts: values (experts, in, out), biases (experts, out), or packed values. *is:
 * whether it is such a tensor. */
static bool oss_take(HfFolder *f, const char *name, TgTensor *t, bool *is) {
  Place p;
  char to[64];
  bool both = false;
  bool oss = f->type->names == hf_names_of_oss;
  OssEnd end = oss && place_of(name, &p) ? oss_end(&p, &both) : OSS_NONE;
  *is = end != OSS_NONE;
  if (!*is) return true;
  if (end == OSS_BLOCKS || end == OSS_SCALES)
    return name_put(to, &p, both ? "ffn_gate_up_exps" : "ffn_down_exps", ".weight") &&
           part_put(f, to, PACKED + (end == OSS_SCALES), t);
  if (tg_ndim(t) != (end == OSS_BIAS ? 2 : 3))
    return hf_bad(f, "tensor '%.120s' has other axes than are known here", name);
  if (end == OSS_VALUES) t = tg_transpose(t, 1, 2);
  const char *kind = end == OSS_BIAS ? ".bias" : ".weight";
  if (!both) return name_put(to, &p, "ffn_down_exps", kind) && hf_tensor_put(f, to, t);
  if (tg_dim(t, 1) % 2) return hf_bad(f, "tensor '%.120s' has an odd number of rows", name);
  return two_put(f, &p, kind, every_second(t, 1, GATES), every_second(t, 1, UPS));
}

/* Makes MXFP4 as gguf files have it, (.., 17) bytes, from blocks (.., 16) and their exponents (..). In the
 * blocks byte i has elements 2i and 2i + 1; in the result it has elements i and i + 16. */
static TgTensor *blocks_of(TgTensor *blocks, TgTensor *scales) {
  int64_t dims[8];
  int n = tg_ndim(blocks);
  TgTensor *high = tg_shr_scalar(blocks, 4), *low = tg_sub(blocks, tg_shl_scalar(high, 4));
  memcpy(dims, tg_shape(blocks), (size_t)n * sizeof *dims);
  dims[n - 1] = 2, dims[n] = 16;
  TgTensor *each = tg_reshape(tg_stack((TgTensor *[]){low, high}, 2, -1), n + 1, dims);
  TgTensor *first = tg_squeeze(tg_slice(each, n - 1, 0, 1), n - 1);
  TgTensor *second = tg_squeeze(tg_slice(each, n - 1, 1, 2), n - 1);
  TgTensor *bytes = tg_add(first, tg_shl_scalar(second, 4));
  return tg_cat((TgTensor *[]){tg_unsqueeze(scales, -1), bytes}, 2, -1);
}

/* Adds a copy in memory, which is kept with the tree. */
static bool copy_put(HfFolder *f, const char *name, TgTensor *t) {
  t = tg_contiguous(t);
  return t && !tg_realize(t) && hf_tensor_put(f, name, t);
}

static bool values_put(HfFolder *f, const char *name, TgTensor *bytes) {
  int n = tg_ndim(bytes) - 1;
  int64_t dims[8];
  const int mxfp4 = 39;
  memcpy(dims, tg_shape(bytes), (size_t)n * sizeof *dims);
  dims[n - 1] *= 32;
  int64_t nelem = tg_numel(bytes) / 17 * 32;
  bytes = tg_contiguous(tg_flatten(bytes, 0, -1));
  return bytes && !tg_realize(bytes) &&
         hf_tensor_put(f, name, tg_reshape(tg_ggml_data_to_tensor(bytes, nelem, mxfp4), n, dims));
}

/* Adds the packed values of one matrix, or of two matrices with alternating rows. */
static bool packed_put(HfFolder *f, const char *name, TgTensor *blocks, TgTensor *scales) {
  bool fits = tg_ndim(blocks) == 4 && tg_ndim(scales) == 3 && tg_dim(blocks, 3) == 16 &&
              tg_dtype(blocks) == TG_U8 && tg_dtype(scales) == TG_U8;
  for (int i = 0; fits && i < 3; i++)
    fits = tg_dim(blocks, i) == tg_dim(scales, i);
  const char *both = strstr(name, "gate_up");
  if (!fits || (both && tg_dim(blocks, 1) % 2))
    return hf_bad(f, "blocks and scales of '%.60s' do not fit together", name);
  if (!both) return values_put(f, name, blocks_of(blocks, scales));
  static const char *const names[] = {"ffn_gate_exps.weight", "ffn_up_exps.weight"};
  char to[128];
  for (int i = GATES; i <= UPS; i++) {
    snprintf(to, sizeof to, "%.*s%s", (int)(strstr(name, "ffn_") - name), name, names[i]);
    if (!values_put(f, to, blocks_of(every_second(blocks, 1, i), every_second(scales, 1, i)))) return false;
  }
  return true;
}

static int by_name(const void *a, const void *b) {
  const HfPart *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Joins n parts of one name: an expert each, or blocks and scales. */
static bool parts_join(HfFolder *f, const HfPart *p, size_t n) {
  TgTensor **each = tg_alloc(f->ctx, n * sizeof *each);
  int64_t first = p->index < 0 ? PACKED : 0;
  bool ok = each != NULL, packed = p->index < 0;
  for (size_t i = 0; ok && i < n; i++) {
    each[i] = p[i].t;
    if (p[i].index != first + (int64_t)i)
      ok = hf_bad(f, "an expert of '%.60s' is missing, or there twice", p->name);
  }
  if (ok && packed && n != 2) ok = hf_bad(f, "'%.60s' has blocks without scales", p->name);
  if (ok) TG_SCOPE(f->ctx) {
      ok =
          packed ? packed_put(f, p->name, each[0], each[1]) : copy_put(f, p->name, tg_stack(each, (int)n, 0));
    }
  tg_free(f->ctx, each);
  return ok;
}

static bool parts_put(HfFolder *f) {
  bool ok = true;
  if (f->nparts) qsort(f->part, f->nparts, sizeof *f->part, by_name);
  for (size_t i = 0, n; ok && i < f->nparts; i += n) {
    for (n = 1; i + n < f->nparts && !strcmp(f->part[i].name, f->part[i + n].name);)
      n++;
    ok = parts_join(f, f->part + i, n);
  }
  return ok;
}

/* ---- a single tensor of a file */
/* Tensors of an encoder that are not used: heads that complete texts and, unless the model ranks texts,
 * the layer that is applied to the first token for that. */
static bool is_unread(const HfFolder *f, const char *name) {
  static const char *const begins[] = {"embeddings.position_ids",
                                       "cls.",
                                       "lm_head.",
                                       "decoder.",
                                       "pooler.",
                                       "head."}; /* the last two: unless it ranks */
  size_t n = sizeof begins / sizeof *begins - (f->ranks ? 2 : 0);
  if (!f->type->encoder) return false;
  for (size_t i = 0; i < n; i++)
    if (!strncmp(name, begins[i], strlen(begins[i]))) return true;
  return false;
}

/* Tensors that a file has in addition: heads that are the same as the token table, and constants. */
static bool is_passed_over(const HfFolder *f, const char *name) {
  Place p;
  if (is_unread(f, name)) return true;
  if (hf_int_of(f, "num_nextn_predict_layers", 0) > 0 && place_of(name, &p) &&
      strtol(p.layer, NULL, 10) >= hf_int_of(f, "num_hidden_layers", 0))
    return true; /* it predicts tokens beyond the next one */
  bool tied = json_is_true(json_object_get(f->config, "tie_word_embeddings"));
  bool constant = (f->type->columns || f->type->joined) && place_of(name, &p) &&
                  (!strcmp(p.rest, "attn.bias") || !strcmp(p.rest, "attn.masked_bias") ||
                   !strcmp(p.rest, "attention.bias") || !strcmp(p.rest, "attention.masked_bias"));
  return (tied && !strcmp(name, "lm_head.weight")) || constant || strstr(name, "rotary_emb.inv_freq");
}

bool hf_text_take(HfFolder *f, const char *name, TgTensor *t) {
  char to[64], own[128];
  bool is = false;
  if (f->sees && !hf_text_name(name, own)) return true;
  if (f->sees) name = own;
  if (f->type->encoder && !strncmp(name, "bert.", 5)) name += 5;
  if (f->type->encoder && !strncmp(name, "roberta.", 8)) name += 8;
  if (f->type->encoder && !strncmp(name, "model.", 6)) name += 6;
  if (is_passed_over(f, name)) return true;
  if (!expert_take(f, name, t, &is)) return false;
  if (!is && !oss_take(f, name, t, &is)) return false;
  if (!is && !head_norm_take(f, name, t, &is)) return false;
  if (is) return true;
  if (!translated(f, name, to)) return hf_bad(f, "tensor '%.120s' is none that is known here", name);
  if (f->type->ones && strstr(to, "norm.weight")) t = tg_add_scalar(tg_cast(t, TG_F32), 1);
  if (f->type->joined && strstr(to, "attn_qkv")) return copy_put(f, to, joined_parted(f, t));
  if (f->type->columns && tg_ndim(t) == 2 && !strncmp(to, "blk.", 4)) t = tg_transpose(t, 0, 1);
  int64_t padding = hf_padding(f);
  if (f->type->padded && !strncmp(to, "position_embd", 13) && tg_ndim(t) == 2 && padding >= 0 &&
      padding + 1 < tg_dim(t, 0))
    t = tg_slice(t, 0, padding + 1, tg_dim(t, 0));
  if (strstr(to, "inp_shexp") && tg_ndim(t) == 2) t = tg_flatten(t, 0, 1);
  return hf_tensor_put(f, to, t);
}

static bool shard_read(HfFolder *f, const char *name) {
  char path[LLM_PATH];
  if (strchr(name, '/')) return hf_bad(f, "a shard in another folder: '%.100s'", name);
  if (!hf_path_of(f, name, path)) return false;
  TgState *s = tg_safe_load_file(f->ctx, path);
  bool ok = s != NULL;
  for (size_t i = 0; ok && i < tg_state_count(s); i++) {
    const char *tensor = NULL;
    TgTensor *t = tg_state_at(s, i, &tensor);
    TG_SCOPE(f->ctx) { ok = f->take(f, tensor, tg_reshape(t, tg_ndim(t), tg_shape(t))); }
  }
  tg_state_free(s);
  return ok;
}

/* Reads each shard that the index names, once. */
static bool shards_read(HfFolder *f) {
  json_t *index = NULL, *seen = json_object();
  const char *name;
  json_t *file;
  bool ok = seen && hf_json_read(f, "model.safetensors.index.json", false, 0, &index);
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

bool hf_tensors_put(HfFolder *f) { return shards_read(f) && parts_put(f); }
#endif
