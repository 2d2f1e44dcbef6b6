/* hf_tokenizer.c: tokenizers as Hugging Face has them. In: tokenizer.json, tokenizer_config.json. Out: the
 * key-values tokenizer.ggml.* of a gguf file of the same model: kind, vocabulary, merges or scores,
 * patterns, and the tokens that begin and end a text. */
#include "hf_private.h"
#include <stdio.h>
#include <stdlib.h>
#ifdef TG_HAVE_JANSSON

enum { LARGEST_VOCABULARY = 1 << 22 };

/* ---- the tokenizer */
/* The kinds of tokenizers that tokenizer.json describes; `kinds` has their names in gguf files. */
typedef enum Kind { BYTE_PAIRS, PIECE_PAIRS, UNIGRAMS, WORDS } Kind;

static const char *const kinds[] = {"gpt2", "llama", "t5", "bert"};

typedef struct Vocabulary {
  Kind kind;
  const char **text;
  int32_t *type; /* TOKEN_NORMAL .., as tokenizer.ggml.token_type has them */
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

/* The pre-tokenizer of that type within v, or NULL. */
static const json_t *part_of(const json_t *v, const char *type) {
  size_t k;
  json_t *each;
  if (!strcmp(hf_text_of(v, "type", ""), type)) return v;
  json_array_foreach(json_object_get(v, "pretokenizers"), k, each) {
    const json_t *found = part_of(each, type);
    if (found) return found;
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

/* One more than the largest token number; 0: an error */
static size_t tokens_count(const HfFolder *f) {
  const char *text;
  json_t *id, *added, *vocab = json_object_get(json_object_get(f->tokenizer, "model"), "vocab");
  size_t i;
  json_int_t most = (json_int_t)json_array_size(vocab) - 1;
  json_object_foreach(vocab, text, id) {
    if (json_integer_value(id) > most) most = json_integer_value(id);
  }
  json_array_foreach(json_object_get(f->tokenizer, "added_tokens"), i, added) {
    json_int_t at = json_integer_value(json_object_get(added, "id"));
    if (at > most) most = at;
  }
  return most < 0 || most >= LARGEST_VOCABULARY ? 0 : (size_t)most + 1;
}

/* Reads a list of [text, score]; the number of a token is its place in the list. */
static bool scored_read(HfFolder *f, Vocabulary *v, const json_t *model) {
  json_t *each;
  size_t i;
  json_array_foreach(json_object_get(model, "vocab"), i, each) {
    const char *text = json_string_value(json_array_get(each, 0));
    const json_t *score = json_array_get(each, 1);
    if (!text || !json_is_number(score))
      return hf_bad(f, "tokenizer.json: a token of other than a text and its score%s", "");
    v->text[i] = text;
    v->score[i] = (float)json_number_value(score);
    bool byte = strlen(text) == 6 && !strncmp(text, "<0x", 3);
    bool unknown = json_integer_value(json_object_get(model, "unk_id")) == (json_int_t)i;
    v->type[i] = byte ? TOKEN_BYTE : unknown ? TOKEN_UNKNOWN : TOKEN_NORMAL;
  }
  return true;
}

static bool tokens_read(HfFolder *f, Vocabulary *v) {
  const json_t *model = json_object_get(f->tokenizer, "model");
  bool pieces = v->kind == PIECE_PAIRS;
  const char *text, *unknown = hf_text_of(model, "unk_token", "");
  json_t *id, *added;
  size_t i;
  if (v->kind == UNIGRAMS && !scored_read(f, v, model)) return false;
  json_object_foreach(json_object_get(model, "vocab"), text, id) {
    bool byte = pieces && strlen(text) == 6 && !strncmp(text, "<0x", 3);
    int type = byte ? TOKEN_BYTE : pieces && !strcmp(text, unknown) ? TOKEN_UNKNOWN : TOKEN_NORMAL;
    if (!token_put(f, v, text, id, type)) return false;
  }
  json_array_foreach(json_object_get(f->tokenizer, "added_tokens"), i, added) {
    bool special = json_is_true(json_object_get(added, "special"));
    json_t *at = json_object_get(added, "id");
    text = hf_text_of(added, "content", "");
    if (pieces && !strcmp(text, unknown)) continue;
    if (v->kind == UNIGRAMS && json_equal(at, json_object_get(model, "unk_id"))) continue;
    if (!token_put(f, v, text, at, special ? TOKEN_CONTROL : TOKEN_USER)) return false;
  }
  return true;
}

/* Splits a merge, "a b" or ["a", "b"], into its two texts. Returns false if it is neither. */
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

/* Writes the texts of merge m to `both`, with `between` between them. */
static bool merge_write(HfFolder *f, const json_t *m, const char *between, LlmText *both) {
  const char *a, *b;
  size_t na;
  if (!merge_of(m, &a, &na, &b)) return hf_bad(f, "tokenizer.json: a merge of other than two texts%s", "");
  both->n = 0;
  llm_put(both, a, na);
  llm_put(both, between, strlen(between));
  llm_put(both, b, strlen(b));
  return !both->bad;
}

/* Writes the merges of byte-level pairs as gguf files have them: both texts with a blank between. */
static bool merges_put(HfFolder *f, const json_t *merges) {
  TgValue *list = tg_value_new(f->ctx, TG_KIND_LIST);
  LlmText both = {.ctx = f->ctx};
  bool ok = list != NULL;
  size_t i;
  json_t *m;
  json_array_foreach(merges, i, m) {
    ok = ok && merge_write(f, m, " ", &both) && !tg_value_put_string(list, NULL, both.at, both.n);
  }
  tg_free(f->ctx, both.at);
  return hf_kv_list(f, "tokenizer.ggml.merges", list, ok);
}

/* SentencePiece's scores: the earlier a merge, the higher the score of its result; a token that no merge
 * gives has the lowest score. */
static bool scores_of(HfFolder *f, const json_t *model, Vocabulary *v) {
  const json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
  LlmText both = {.ctx = f->ctx};
  bool ok = true;
  size_t i;
  json_t *m;
  for (i = 0; i < v->n; i++)
    v->score[i] = -(float)json_array_size(merges) - 1;
  json_array_foreach(merges, i, m) {
    ok = ok && merge_write(f, m, "", &both);
    const json_t *id = ok ? json_object_get(vocab, both.at) : NULL;
    json_int_t at = json_integer_value(id);
    if (id && at >= 0 && (size_t)at < v->n && v->score[at] < -(float)i) v->score[at] = -(float)i;
  }
  tg_free(f->ctx, both.at);
  return ok;
}

/* Lists of several patterns that have a name, recognised by the beginnings of the first three. */
static const struct {
  const char *begin[3], *name;
} several[] = {
    {{"\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", "[!\"#$%&'()*+,"}, "deepseek-v3"},
    {{"[\r\n]", "\\s?[A-Za-z\u00b5\u00c0-", "\\s?[!-/:-~"}, "deepseek-llm"}};

static const char *regex_of(const json_t *part) {
  const char *type = hf_text_of(part, "type", "");
  return strcmp(type, "Split") ? NULL : hf_text_of(json_object_get(part, "pattern"), "Regex", NULL);
}

/* The name of a list of patterns, or the pattern itself if there is only one. NULL: there is none, or the
 * list is unknown. */
static const char *patterns_of(const json_t *pre, size_t *n) {
  const json_t *list = json_object_get(pre, "pretokenizers");
  const char *regex[8] = {regex_of(pre)};
  *n = regex[0] != NULL;
  for (size_t i = 0; i < json_array_size(list) && *n < 8; i++)
    if (regex_of(json_array_get(list, i))) regex[(*n)++] = regex_of(json_array_get(list, i));
  if (*n < 2) return regex[0];
  for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
    size_t same = 0;
    while (same < 3 && same < *n &&
           !strncmp(regex[same], several[i].begin[same], strlen(several[i].begin[same])))
      same++;
    if (same == 3) return several[i].name;
  }
  return NULL;
}

/* Writes how a text is split before tokens are merged: a name, or the pattern itself. */
static bool patterns_put(HfFolder *f) {
  const json_t *pre = json_object_get(f->tokenizer, "pre_tokenizer");
  size_t n = 0;
  const char *pattern = patterns_of(pre, &n);
  if (n > 1 && !pattern) return hf_bad(f, "tokenizer.json: several patterns that are not known here%s", "");
  if (!pattern) pattern = has_kind(pre, "Digits") ? "smollm" : "gpt-2";
  bool whole = json_is_true(json_object_get(json_object_get(f->tokenizer, "model"), "ignore_merges"));
  return hf_kv_text(f, "tokenizer.ggml.pre", pattern) && hf_kv_bool(f, "tokenizer.ggml.ignore_merges", whole);
}

/* WordPiece. gguf files mark the beginning of a word, whereas tokenizer.json marks the continuation of
 * one, by "##". */
static bool word_put(HfFolder *f, TgValue *list, LlmText *marked, const char *text) {
  const json_t *model = json_object_get(f->tokenizer, "model");
  const char *on = hf_text_of(model, "continuing_subword_prefix", "##");
  size_t n = strlen(text), skip = strlen(on);
  if (skip && !strncmp(text, on, skip)) return !tg_value_put_string(list, NULL, text + skip, n - skip);
  marked->n = 0;
  llm_put(marked, "\xe2\x96\x81", 3);
  llm_put(marked, text, n);
  return !marked->bad && !tg_value_put_string(list, NULL, marked->at, marked->n);
}

static bool vocabulary_put(HfFolder *f, const Vocabulary *v) {
  TgValue *list = tg_value_new(f->ctx, TG_KIND_LIST);
  LlmText marked = {.ctx = f->ctx};
  char unused[32];
  bool ok = list != NULL;
  for (size_t i = 0; ok && i < v->n; i++) {
    snprintf(unused, sizeof unused, "[UNUSED%zu]", i);
    const char *text = v->text[i] ? v->text[i] : unused;
    if (!v->text[i]) v->type[i] = TOKEN_UNUSED;
    ok = v->kind == WORDS && v->type[i] == TOKEN_NORMAL
             ? word_put(f, list, &marked, text)
             : !tg_value_put_string(list, NULL, text, strlen(text));
  }
  tg_free(f->ctx, marked.at);
  return hf_kv_list(f, "tokenizer.ggml.tokens", list, ok) &&
         hf_kv_tensor(f, "tokenizer.ggml.token_type", v->type, TG_I32, (int64_t)v->n);
}

/* The text of the special token that tokenizer_config.json names, or NULL. */
static const char *text_named(const HfFolder *f, const char *name) {
  const json_t *t = json_object_get(f->about, name);
  return json_is_object(t) ? hf_text_of(t, "content", NULL) : json_string_value(t);
}

/* Writes the number of the token with this text; -1: there is none. */
static bool number_put(HfFolder *f, const Vocabulary *v, const char *text, const char *key) {
  for (size_t i = 0; text && i < v->n; i++)
    if (v->text[i] && !strcmp(v->text[i], text)) return hf_kv_int(f, key, (int64_t)i);
  return hf_kv_int(f, key, -1);
}

static bool special_put(HfFolder *f, const Vocabulary *v, const char *name, const char *key) {
  return number_put(f, v, text_named(f, name), key);
}

/* Writes the token for unknown text. Unigram tokenizers give its number themselves. */
static bool unknown_put(HfFolder *f, const Vocabulary *v) {
  const json_t *id = json_object_get(json_object_get(f->tokenizer, "model"), "unk_id");
  if (v->kind == UNIGRAMS && json_is_integer(id))
    return hf_kv_int(f, "tokenizer.ggml.unknown_token_id", json_integer_value(id));
  return special_put(f, v, "unk_token", "tokenizer.ggml.unknown_token_id");
}

/* The post-processor's template within p, or NULL. */
static const json_t *template_in(const json_t *p) {
  size_t i;
  json_t *each;
  if (!strcmp(hf_text_of(p, "type", ""), "TemplateProcessing")) return p;
  json_array_foreach(json_object_get(p, "processors"), i, each) {
    const json_t *found = template_in(each);
    if (found) return found;
  }
  return NULL;
}

/* The special token that the template of a single text has `inward` places from its beginning or end. NULL:
 * the text is there. */
static const char *text_put_at(const HfFolder *f, bool end, size_t inward) {
  const json_t *single =
      json_object_get(template_in(json_object_get(f->tokenizer, "post_processor")), "single");
  size_t n = json_array_size(single);
  const json_t *part = inward < n ? json_array_get(single, end ? n - 1 - inward : inward) : NULL;
  return hf_text_of(json_object_get(part, "SpecialToken"), "id", NULL);
}

/* The one special token that the template has before or behind a single text. NULL: none, or several. */
static const char *text_put_alone(const HfFolder *f, bool end) {
  return text_put_at(f, end, 1) ? NULL : text_put_at(f, end, 0);
}

/* Whether the post-processor adds a token to a text: the template says it, or another processor names it. */
static bool is_put(const HfFolder *f, const char *name, bool end) {
  const char *text = text_named(f, name);
  if (template_in(json_object_get(f->tokenizer, "post_processor"))) return text_put_at(f, end, 0) != NULL;
  char *post = json_dumps(json_object_get(f->tokenizer, "post_processor"), JSON_COMPACT | JSON_ENCODE_ANY);
  json_t *t = text ? json_string(text) : NULL;
  char *quoted = t ? json_dumps(t, JSON_ENCODE_ANY) : NULL;
  bool is = post && quoted && strstr(post, quoted);
  free(post), free(quoted);
  json_decref(t);
  return is;
}

/* Whether a text begins with BOS, or ends with EOS: tokenizer_config.json says it, otherwise the template
 * does. */
static bool is_added(const HfFolder *f, const char *key, const char *name, bool end) {
  const json_t *says = json_object_get(f->about, key);
  return json_is_boolean(says) ? json_is_true(says) : is_put(f, name, end);
}

/* Writes the chat template: a file of its own, a text, or the one of several that is named default. */
static bool template_put(HfFolder *f) {
  char path[LLM_PATH];
  json_t *t = json_object_get(f->about, "chat_template"), *each;
  size_t i;
  const char *text = json_string_value(t);
  json_array_foreach(t, i, each) {
    if (!strcmp(hf_text_of(each, "name", ""), "default")) text = hf_text_of(each, "template", NULL);
  }
  if (!hf_is_there(f, "chat_template.jinja")) return !text || hf_kv_text(f, "tokenizer.chat_template", text);
  if (!hf_path_of(f, "chat_template.jinja", path)) return false;
  TgTensor *file = tg_from_file(f->ctx, path, TG_U8, TG_SHAPE(-1));
  int64_t n = file ? tg_numel(file) : -1;
  char *all = n >= 0 && n < 1 << 24 ? tg_alloc(f->ctx, (size_t)n + 1) : NULL;
  bool ok = all && !tg_read(file, all, (size_t)n) && hf_kv_text(f, "tokenizer.chat_template", all);
  tg_free(f->ctx, all);
  return ok;
}

/* Writes the tokens that begin and end a text. BERT's files have other names for them. The template of a
 * text may end with another token than the one that ends a reply: Qwen's embedding models do so. */
static bool ends_put(HfFolder *f, const Vocabulary *v) {
  const json_t *normal = json_object_get(f->tokenizer, "normalizer");
  const json_t *pre = part_of(json_object_get(f->tokenizer, "pre_tokenizer"), "Metaspace"),
               *bytes = part_of(json_object_get(f->tokenizer, "pre_tokenizer"), "ByteLevel");
  bool blank =
      has_kind(normal, "Prepend") || (pre && strcmp(hf_text_of(pre, "prepend_scheme", "always"), "never"));
  if (v->kind == BYTE_PAIRS) blank = json_is_true(json_object_get(bytes, "add_prefix_space"));
  bool words = v->kind == WORDS;
  const char *bos = words || !text_named(f, "bos_token") ? "cls_token" : "bos_token";
  const char *eos = words || !text_named(f, "eos_token") ? "sep_token" : "eos_token";
  const char *ends = text_named(f, eos), *behind = text_put_alone(f, true);
  bool two = ends && behind && strcmp(ends, behind);
  const char *before = text_put_alone(f, false);
  return number_put(f, v, before ? before : text_named(f, bos), "tokenizer.ggml.bos_token_id") &&
         number_put(f, v, two ? behind : ends, "tokenizer.ggml.eos_token_id") &&
         (!two || number_put(f, v, ends, "tokenizer.ggml.eot_token_id")) &&
         special_put(f, v, "pad_token", "tokenizer.ggml.padding_token_id") && unknown_put(f, v) &&
         hf_kv_bool(f, "tokenizer.ggml.add_bos_token", is_added(f, "add_bos_token", bos, false)) &&
         hf_kv_bool(f, "tokenizer.ggml.add_eos_token", is_added(f, "add_eos_token", eos, true)) &&
         (words || hf_kv_bool(f, "tokenizer.ggml.add_space_prefix", blank)) && template_put(f);
}

/* ---- how a text is changed before it is split */
/* Decodes base64. Returns the number of bytes, -1 if it is not base64. */
static int64_t base64_read(const char *s, uint8_t *to) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint32_t bits = 0;
  int have = 0;
  int64_t n = 0;
  for (; *s && *s != '='; s++) {
    const char *at = strchr(digits, *s);
    if (!at) return -1;
    bits = bits << 6 | (uint32_t)(at - digits);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    to[n++] = (uint8_t)(bits >> have);
  }
  return n;
}

static bool charsmap_put(HfFolder *f, const json_t *part) {
  const char *text = hf_text_of(part, "precompiled_charsmap", "");
  uint8_t *bytes = tg_alloc(f->ctx, strlen(text) + 1);
  int64_t n = bytes ? base64_read(text, bytes) : -1;
  bool ok = n >= 0 || hf_bad(f, "tokenizer.json: precompiled_charsmap is no base64%s", "");
  if (ok && n > 0) ok = hf_kv_tensor(f, "tokenizer.ggml.precompiled_charsmap", bytes, TG_U8, n);
  tg_free(f->ctx, bytes);
  return ok;
}

/* A Replace is known if it replaces runs of blanks, or the blank that SentencePiece writes as another
 * character. */
static bool replace_read(HfFolder *f, const json_t *part, bool *one_blank) {
  const json_t *pattern = json_object_get(part, "pattern");
  const char *runs = hf_text_of(pattern, "Regex", ""), *plain = hf_text_of(pattern, "String", "");
  if (!strcmp(runs, " {2,}")) return *one_blank = true;
  return !strcmp(plain, " ") ||
         hf_bad(f, "tokenizer.json: a text written otherwise by '%.60s' is not known here", runs);
}

/* Reads one part of the changes that are made to a text before unigrams split it. one_blank: runs of
 * blanks become one blank. */
static bool part_read(HfFolder *f, const json_t *part, bool *one_blank) {
  static const char *const plain[] = {"Sequence", "Metaspace", "WhitespaceSplit", "Strip", "Prepend"};
  const char *type = hf_text_of(part, "type", "");
  size_t i;
  json_t *each;
  json_array_foreach(json_object_get(part, "normalizers"), i, each) {
    if (!part_read(f, each, one_blank)) return false;
  }
  json_array_foreach(json_object_get(part, "pretokenizers"), i, each) {
    if (!part_read(f, each, one_blank)) return false;
  }
  if (!strcmp(type, "WhitespaceSplit")) *one_blank = true;
  if (!strcmp(type, "Replace")) return replace_read(f, part, one_blank);
  if (!strcmp(type, "Precompiled")) return charsmap_put(f, part);
  for (i = 0; i < sizeof plain / sizeof *plain; i++)
    if (!strcmp(type, plain[i])) return true;
  return hf_bad(f, "tokenizer.json: a part of the kind %.40s is not known here before unigrams", type);
}

static bool unigrams_put(HfFolder *f) {
  const json_t *normal = json_object_get(f->tokenizer, "normalizer"),
               *pre = json_object_get(f->tokenizer, "pre_tokenizer");
  bool one_blank = false;
  return (!json_is_object(normal) || part_read(f, normal, &one_blank)) &&
         (!json_is_object(pre) || part_read(f, pre, &one_blank)) &&
         hf_kv_bool(f, "tokenizer.ggml.remove_extra_whitespaces", one_blank);
}

static bool words_put(HfFolder *f) {
  const json_t *normal = json_object_get(f->tokenizer, "normalizer"),
               *pre = json_object_get(f->tokenizer, "pre_tokenizer"),
               *model = json_object_get(f->tokenizer, "model");
  bool lower = json_is_true(json_object_get(normal, "lowercase"));
  const json_t *strip = json_object_get(normal, "strip_accents");
  const json_t *longest = json_object_get(model, "max_input_chars_per_word");
  if (strcmp(hf_text_of(normal, "type", ""), "BertNormalizer") ||
      strcmp(hf_text_of(pre, "type", ""), "BertPreTokenizer") ||
      !json_is_true(json_object_get(normal, "clean_text")) ||
      !json_is_true(json_object_get(normal, "handle_chinese_chars")))
    return hf_bad(f, "tokenizer.json: words that are cut otherwise than BERT's%s", "");
  return hf_kv_bool(f, "tokenizer.ggml.lowercase", lower) &&
         hf_kv_bool(f, "tokenizer.ggml.strip_accents",
                    json_is_boolean(strip) ? json_is_true(strip) : lower) &&
         hf_kv_int(f, "tokenizer.ggml.longest_word",
                   json_is_integer(longest) ? json_integer_value(longest) : 100);
}

/* ---- the whole */
/* Writes what each kind has in addition to its tokens. */
static bool kind_put(HfFolder *f, Vocabulary *v) {
  const json_t *model = json_object_get(f->tokenizer, "model");
  if (v->kind == WORDS) return words_put(f);
  if (v->kind == BYTE_PAIRS) return merges_put(f, json_object_get(model, "merges")) && patterns_put(f);
  return (v->kind == UNIGRAMS ? unigrams_put(f) : scores_of(f, model, v)) &&
         hf_kv_tensor(f, "tokenizer.ggml.scores", v->score, TG_F32, (int64_t)v->n);
}

static bool kind_of(HfFolder *f, Kind *kind) {
  const json_t *model = json_object_get(f->tokenizer, "model");
  const char *type = hf_text_of(model, "type", json_object_get(model, "merges") ? "BPE" : "none");
  bool bytes = part_of(json_object_get(f->tokenizer, "pre_tokenizer"), "ByteLevel") != NULL;
  *kind = bytes ? BYTE_PAIRS : PIECE_PAIRS;
  if (!strcmp(type, "Unigram")) return *kind = UNIGRAMS, true;
  if (!strcmp(type, "WordPiece")) return *kind = WORDS, true;
  if (strcmp(type, "BPE"))
    return hf_bad(f, "tokenizer.json: a tokenizer of the kind %.40s is not read here", type);
  if (bytes || json_is_true(json_object_get(model, "byte_fallback"))) return true;
  return hf_bad(f, "tokenizer.json: byte pairs that are neither of bytes nor fall back to them%s", "");
}

bool hf_tokenizer_put(HfFolder *f) {
  if (!f->tokenizer) return true;
  Vocabulary v = {.n = tokens_count(f)};
  if (!kind_of(f, &v.kind)) return false;
  if (!v.n) return hf_bad(f, "tokenizer.json: numbers of tokens%s", "");
  v.text = tg_alloc(f->ctx, v.n * sizeof *v.text);
  v.type = tg_alloc(f->ctx, v.n * sizeof *v.type);
  v.score = tg_alloc(f->ctx, v.n * sizeof *v.score);
  bool ok = v.text && v.type && v.score && hf_kv_text(f, "tokenizer.ggml.model", kinds[v.kind]) &&
            tokens_read(f, &v) && kind_put(f, &v) && vocabulary_put(f, &v) && ends_put(f, &v);
  tg_free(f->ctx, v.text), tg_free(f->ctx, v.type), tg_free(f->ctx, v.score);
  return ok;
}
#endif
