/* hf_tokenizer.c: tokenizers as Hugging Face has them. In: tokenizer.json, tokenizer_config.json. Out: the
 * key-values tokenizer.ggml.* of a gguf file of the same model: kinds, vocabulary, merges or scores, patterns,
 * what begins and ends a text. */
#include "hf_private.h"
#include <stdio.h>
#include <stdlib.h>
#ifdef TG_HAVE_JANSSON

enum { LARGEST_VOCABULARY = 1 << 22 };

/* ---- the tokenizer */
enum { NORMAL = 1, UNKNOWN, CONTROL, USER, UNUSED, BYTE }; /* tokenizer.ggml.token_type */

typedef struct Vocabulary {
  const char **text;
  int32_t *type;
  float *score;
  size_t n;
} Vocabulary;

static bool has_kind(const json_t *v, const char *type) {
  const char *names[] = {"pretokenizers", "decoders", "normalizers"};
  if (!strcmp(hf_text_of(v, "type", ""), type)) return true;
  for (int i = 0; i < 3; i++) {
    size_t k;
    json_t *each;
    json_array_foreach(json_object_get(v, names[i]), k, each) {
      if (has_kind(each, type)) return true;
    }
  }
  return false;
}

/* The part of that kind, or NULL. */
static const json_t *part_of(const json_t *v, const char *type) {
  size_t k;
  json_t *each;
  if (!strcmp(hf_text_of(v, "type", ""), type)) return v;
  json_array_foreach(json_object_get(v, "pretokenizers"), k, each) {
    if (part_of(each, type)) return part_of(each, type);
  }
  return NULL;
}

static bool token_put(HfFolder *f, Vocabulary *v, const char *text, const json_t *id, int type) {
  json_int_t at = json_integer_value(id);
  if (!json_is_integer(id) || at < 0 || (size_t)at >= v->n)
    return hf_bad(f, "tokenizer.json: the token '%.100s' has no number", text);
  v->text[at] = text;
  v->type[at] = type;
  return true;
}

/* One above the largest number of a token; 0: an error */
static size_t tokens_count(const HfFolder *f) {
  const char *text;
  json_t *id, *added;
  size_t i;
  json_int_t most = -1;
  json_object_foreach(json_object_get(json_object_get(f->tokenizer, "model"), "vocab"), text, id) {
    if (json_integer_value(id) > most) most = json_integer_value(id);
  }
  json_array_foreach(json_object_get(f->tokenizer, "added_tokens"), i, added) {
    json_int_t at = json_integer_value(json_object_get(added, "id"));
    if (at > most) most = at;
  }
  return most < 0 || most >= LARGEST_VOCABULARY ? 0 : (size_t)most + 1;
}

static bool tokens_read(HfFolder *f, Vocabulary *v, bool byte_level) {
  const json_t *model = json_object_get(f->tokenizer, "model");
  const char *text, *unknown = hf_text_of(model, "unk_token", "");
  json_t *id, *added;
  size_t i;
  json_object_foreach(json_object_get(model, "vocab"), text, id) {
    bool byte = !byte_level && strlen(text) == 6 && !strncmp(text, "<0x", 3);
    int type = byte ? BYTE : !byte_level && !strcmp(text, unknown) ? UNKNOWN : NORMAL;
    if (!token_put(f, v, text, id, type)) return false;
  }
  json_array_foreach(json_object_get(f->tokenizer, "added_tokens"), i, added) {
    bool special = json_is_true(json_object_get(added, "special"));
    text = hf_text_of(added, "content", "");
    if (!byte_level && !strcmp(text, unknown)) continue;
    if (!token_put(f, v, text, json_object_get(added, "id"), special ? CONTROL : USER)) return false;
  }
  return true;
}

/* "a b", or ["a", "b"]: the two texts */
static bool merge_of(const json_t *m, const char **a, size_t *na, const char **b) {
  if (json_is_array(m)) {
    *a = json_string_value(json_array_get(m, 0));
    *b = json_string_value(json_array_get(m, 1));
    *na = *a ? strlen(*a) : 0;
    return *a && *b;
  }
  *a = json_string_value(m);
  const char *blank = *a && **a ? strchr(*a + 1, ' ') : NULL;
  if (!blank) return false;
  *na = (size_t)(blank - *a);
  *b = blank + 1;
  return true;
}

/* Merges of byte-level pairs as gguf files have them: texts with a blank between. */
static bool merges_put(HfFolder *f, const json_t *merges) {
  TgValue *to = hf_pair_put(f, &f->kv, "tokenizer.ggml.merges");
  size_t n = json_array_size(merges), i;
  json_t *m;
  if (!to || !doc_items(f->d, to, TG_KIND_LIST, n)) return false;
  json_array_foreach(merges, i, m) {
    const char *a, *b;
    size_t na;
    if (!merge_of(m, &a, &na, &b)) return hf_bad(f, "tokenizer.json: a merge of other than two texts%s", "");
    char *both = malloc(na + strlen(b) + 2);
    if (both) sprintf(both, "%.*s %s", (int)na, a, b);
    bool ok = both && doc_string(f->d, &to->u.at[i], both, strlen(both));
    free(both);
    if (!ok) return false;
  }
  return true;
}

/* SentencePiece's scores: what is joined first has the highest; what nothing is joined to has the lowest. */
static bool scores_of(HfFolder *f, const json_t *model, Vocabulary *v) {
  const json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
  size_t i;
  json_t *m;
  for (i = 0; i < v->n; i++)
    v->score[i] = -(float)json_array_size(merges) - 1;
  json_array_foreach(merges, i, m) {
    const char *a, *b;
    size_t na;
    if (!merge_of(m, &a, &na, &b)) return hf_bad(f, "tokenizer.json: a merge of other than two texts%s", "");
    char *both = malloc(na + strlen(b) + 1);
    if (both) sprintf(both, "%.*s%s", (int)na, a, b);
    const json_t *id = both ? json_object_get(vocab, both) : NULL;
    json_int_t at = json_integer_value(id);
    if (id && at >= 0 && (size_t)at < v->n && v->score[at] < -(float)i) v->score[at] = -(float)i;
    free(both);
  }
  return true;
}

/* How texts are cut before tokens are joined: a name, or the pattern itself. */
static bool patterns_put(HfFolder *f) {
  const json_t *pre = json_object_get(f->tokenizer, "pre_tokenizer"), *split = part_of(pre, "Split");
  const char *pattern = json_string_value(json_object_get(json_object_get(split, "pattern"), "Regex"));
  if (!pattern) pattern = has_kind(pre, "Digits") ? "smollm" : "gpt-2";
  bool whole = json_is_true(json_object_get(json_object_get(f->tokenizer, "model"), "ignore_merges"));
  return hf_kv_text(f, "tokenizer.ggml.pre", pattern) && hf_kv_bool(f, "tokenizer.ggml.ignore_merges", whole);
}

static bool vocabulary_put(HfFolder *f, const Vocabulary *v) {
  TgValue *to = hf_pair_put(f, &f->kv, "tokenizer.ggml.tokens");
  char unused[32];
  if (!to || !doc_items(f->d, to, TG_KIND_LIST, v->n)) return false;
  for (size_t i = 0; i < v->n; i++) {
    snprintf(unused, sizeof unused, "[UNUSED%zu]", i);
    const char *text = v->text[i] ? v->text[i] : unused;
    if (!v->text[i]) v->type[i] = UNUSED;
    if (!doc_string(f->d, &to->u.at[i], text, strlen(text))) return false;
  }
  return hf_kv_tensor(f, "tokenizer.ggml.token_type", v->type, TG_I32, (int64_t)v->n);
}

/* The number of a token that is called by its text, or by an object with it. */
static bool special_put(HfFolder *f, const Vocabulary *v, const char *name, const char *key) {
  const json_t *t = json_object_get(f->about, name);
  const char *text = json_is_object(t) ? hf_text_of(t, "content", NULL) : json_string_value(t);
  for (size_t i = 0; text && i < v->n; i++)
    if (v->text[i] && !strcmp(v->text[i], text)) return hf_kv_int(f, key, (int64_t)i);
  return hf_kv_int(f, key, -1);
}

/* Whether a text begins with BOS: tokenizer_config.json says so, or the template of the post-processor. */
static bool begins(const HfFolder *f) {
  const json_t *says = json_object_get(f->about, "add_bos_token"),
               *bos = json_object_get(f->about, "bos_token");
  const char *text = json_is_object(bos) ? hf_text_of(bos, "content", NULL) : json_string_value(bos);
  if (json_is_boolean(says)) return json_is_true(says);
  char *post = json_dumps(json_object_get(f->tokenizer, "post_processor"), JSON_COMPACT | JSON_ENCODE_ANY);
  char *quoted =
      text ? json_dumps(bos && json_is_object(bos) ? json_object_get(bos, "content") : bos, JSON_ENCODE_ANY)
           : NULL;
  bool is = post && quoted && strstr(post, quoted);
  free(post), free(quoted);
  return is;
}

/* The template: a file of its own, a text, or the one of several that is called default. */
static bool template_put(HfFolder *f) {
  char path[LONGEST_PATH];
  json_t *t = json_object_get(f->about, "chat_template"), *each;
  size_t i;
  const char *text = json_string_value(t);
  json_array_foreach(t, i, each) {
    if (!strcmp(hf_text_of(each, "name", ""), "default")) text = hf_text_of(each, "template", NULL);
  }
  if (!hf_is_there(f, "chat_template.jinja")) return !text || hf_kv_text(f, "tokenizer.chat_template", text);
  if (!hf_path_of(f, "chat_template.jinja", path)) return false;
  TgTensor *file = file_tensor(f->ctx, path);
  int64_t n = file ? tg_numel(file) : -1;
  char *all = n >= 0 && n < 1 << 24 ? tg_alloc(f->ctx, (size_t)n + 1) : NULL;
  bool ok = all && !tg_read(file, all, (size_t)n) && hf_kv_text(f, "tokenizer.chat_template", all);
  tg_free(f->ctx, all);
  return ok;
}

static bool ends_put(HfFolder *f, const Vocabulary *v, bool byte_level) {
  const json_t *normal = json_object_get(f->tokenizer, "normalizer");
  const json_t *pre = part_of(json_object_get(f->tokenizer, "pre_tokenizer"), "Metaspace");
  bool blank =
      has_kind(normal, "Prepend") || (pre && strcmp(hf_text_of(pre, "prepend_scheme", "always"), "never"));
  return special_put(f, v, "bos_token", "tokenizer.ggml.bos_token_id") &&
         special_put(f, v, "eos_token", "tokenizer.ggml.eos_token_id") &&
         special_put(f, v, "pad_token", "tokenizer.ggml.padding_token_id") &&
         special_put(f, v, "unk_token", "tokenizer.ggml.unknown_token_id") &&
         hf_kv_bool(f, "tokenizer.ggml.add_bos_token", begins(f)) &&
         (byte_level || hf_kv_bool(f, "tokenizer.ggml.add_space_prefix", blank)) && template_put(f);
}

static bool tokenizer_build(HfFolder *f, Vocabulary *v, bool byte_level) {
  const json_t *model = json_object_get(f->tokenizer, "model");
  if (!hf_kv_text(f, "tokenizer.ggml.model", byte_level ? "gpt2" : "llama") || !tokens_read(f, v, byte_level))
    return false;
  bool ok = byte_level ? merges_put(f, json_object_get(model, "merges")) && patterns_put(f)
                       : scores_of(f, model, v) &&
                             hf_kv_tensor(f, "tokenizer.ggml.scores", v->score, TG_F32, (int64_t)v->n);
  return ok && vocabulary_put(f, v) && ends_put(f, v, byte_level);
}

bool hf_tokenizer_put(HfFolder *f) {
  if (!f->tokenizer) return true;
  const json_t *model = json_object_get(f->tokenizer, "model");
  const char *type = hf_text_of(model, "type", json_object_get(model, "merges") ? "BPE" : "none");
  if (strcmp(type, "BPE"))
    return hf_bad(f, "tokenizer.json: a tokenizer of the kind %.40s is not read here", type);
  bool byte_level = part_of(json_object_get(f->tokenizer, "pre_tokenizer"), "ByteLevel") != NULL;
  if (!byte_level && !json_is_true(json_object_get(model, "byte_fallback")))
    return hf_bad(f, "tokenizer.json: byte pairs that are neither of bytes nor fall back to them%s", "");
  Vocabulary v = {.n = tokens_count(f)};
  if (!v.n) return hf_bad(f, "tokenizer.json: numbers of tokens%s", "");
  v.text = tg_alloc(f->ctx, v.n * sizeof *v.text);
  v.type = tg_alloc(f->ctx, v.n * sizeof *v.type);
  v.score = tg_alloc(f->ctx, v.n * sizeof *v.score);
  bool ok = v.text && v.type && v.score && tokenizer_build(f, &v, byte_level);
  tg_free(f->ctx, v.text), tg_free(f->ctx, v.type), tg_free(f->ctx, v.score);
  return ok;
}
#endif
