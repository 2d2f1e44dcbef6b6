/* texts.c: texts to learn from. In: a file with a JSON object in each line, or of plain text. Out: a dataset
 * of tokens and of the tokens that follow them, where these count. The whole file is tokenized when it is
 * opened; an item is a window of it. */
#include "llm_private.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Tokens at .. at + n - 1. The first token is only an input, never a target. */
typedef struct Item {
  size_t at, n;
} Item;

typedef struct Texts {
  TgContext *ctx;
  TgTokenizer *tokenizer;
  TgTemplate *template_; /* NULL: the model has none */
  int64_t length;
  int32_t *ids;
  bool *counts; /* whether a token is a target */
  size_t n, ids_cap, counts_cap;
  Item *item;
  size_t nitems, items_cap;
  TgLlmTexts about;
  const char *path;
  int64_t line; /* 0: plain text, which is not read by lines */
} Texts;

static bool bad(const Texts *t, const char *what) {
  return llm_fail(t->ctx, TG_ERR_VALUE, "llm_dataset: %.300s: line %lld: %s", t->path, (long long)t->line,
                  what);
}

/* ---- tokens */
static bool room(Texts *t, size_t n) {
  int32_t *ids = llm_grow(t->ctx, t->ids, t->n, n, &t->ids_cap, sizeof *ids);
  if (ids) t->ids = ids;
  bool *counts = ids ? llm_grow(t->ctx, t->counts, t->n, n, &t->counts_cap, sizeof *counts) : NULL;
  if (counts) t->counts = counts;
  return counts != NULL;
}

static bool put_id(Texts *t, int64_t id, bool counts) {
  if (!room(t, 1)) return false;
  t->ids[t->n] = (int32_t)id;
  t->counts[t->n++] = counts;
  return true;
}

/* Adds a piece of a text. special: control tokens in it are recognised. */
static bool put_piece(Texts *t, const char *s, size_t n, bool first, bool special, bool counts) {
  size_t length = 0;
  const char *bos = tg_token_text(t->tokenizer, t->tokenizer->bos, &length);
  bool has = special && bos && length && n >= length && !memcmp(s, bos, length);
  if (first && !has && t->tokenizer->add_bos && bos && !put_id(t, t->tokenizer->bos, false)) return false;
  int64_t k = tg_tokenize(t->tokenizer, s, n, NULL, 0, .special = special, .inside = !first);
  if (k < 0 || !room(t, (size_t)k)) return false;
  tg_tokenize(t->tokenizer, s, n, t->ids + t->n, (size_t)k, .special = special, .inside = !first);
  for (int64_t i = 0; i < k; i++)
    t->counts[t->n++] = counts;
  return true;
}

static bool put_end(Texts *t) {
  int64_t end = tg_token_special(t->tokenizer, TG_TOKEN_EOS);
  return end < 0 || put_id(t, end, true);
}

/* Adds tokens begin .. n - 1 as one item or several. goes_on: the tokens that do not fit in one item become
 * the next item; otherwise they are cut. */
static bool items_add(Texts *t, size_t begin, bool goes_on) {
  size_t most = (size_t)t->length + 1;
  for (size_t at = begin; at + 1 < t->n; at += most - 1) {
    size_t n = t->n - at < most ? t->n - at : most;
    int64_t counted = 0;
    for (size_t i = 1; i < n; i++)
      counted += t->counts[at + i];
    Item *item = llm_grow(t->ctx, t->item, t->nitems, 1, &t->items_cap, sizeof *item);
    if (!item) return false;
    t->item = item;
    if (counted) item[t->nitems++] = (Item){at, n};
    t->about.tokens += counted;
    if (goes_on || n == t->n - at) continue;
    t->about.cut++;
    break;
  }
  return true;
}

/* ---- lines of JSON */
#ifdef TG_HAVE_JANSSON
#include <jansson.h>

static bool text_of(Texts *t, const json_t *o, const char *key, const char **s, size_t *n) {
  const json_t *v = json_object_get(o, key);
  if (!json_is_string(v)) return bad(t, "no text where one is wanted: text, prompt or completion");
  *s = json_string_value(v);
  *n = json_string_length(v);
  return true;
}

static json_t *token_text(const Texts *t, TgTokenRole role) {
  size_t n = 0;
  const char *s = tg_token_text(t->tokenizer, tg_token_special(t->tokenizer, role), &n);
  json_t *v = json_stringn(s ? s : "", n);
  return v ? v : json_string("");
}

/* The text that the template makes of the first n messages, to be freed. NULL: an error. */
static char *rendered(Texts *t, const json_t *o, size_t n, bool asks) {
  json_t *all = json_pack("{s:[], s:b, s:o, s:o}", "messages", "add_generation_prompt", asks, "bos_token",
                          token_text(t, TG_TOKEN_BOS), "eos_token", token_text(t, TG_TOKEN_EOS));
  const json_t *messages = json_object_get(o, "messages"), *tools = json_object_get(o, "tools");
  for (size_t i = 0; all && i < n; i++)
    json_array_append(json_object_get(all, "messages"), json_array_get(messages, i));
  if (all && tools) json_object_set(all, "tools", (json_t *)tools);
  char *text = all ? json_dumps(all, JSON_COMPACT) : NULL, *copy = NULL;
  const char *r = text ? tg_template_render(t->template_, text, NULL) : NULL;
  if (r && !(copy = strdup(r))) llm_fail(t->ctx, TG_ERR_NOMEM, "llm_dataset: out of memory");
  free(text);
  json_decref(all);
  return copy;
}

/* Adds the text by which message i extends *done, the text so far: first the part that asks for a reply,
 * which does not count, then the message, which counts. */
static bool put_reply(Texts *t, const json_t *o, size_t i, char **done) {
  char *before = rendered(t, o, i, true), *after = before ? rendered(t, o, i + 1, false) : NULL;
  size_t same = 0, there = *done ? strlen(*done) : 0;
  while (after && before[same] && before[same] == after[same])
    same++;
  bool ok = after != NULL;
  if (ok && (same < there || (there && memcmp(after, *done, there))))
    ok = bad(t, "the template writes what is before a reply otherwise than after it");
  ok = ok && put_piece(t, after + there, same - there, !there, true, false) &&
       put_piece(t, after + same, strlen(after + same), false, true, true);
  free(before), free(*done);
  *done = after;
  return ok;
}

static bool put_messages(Texts *t, const json_t *o) {
  const json_t *messages = json_object_get(o, "messages");
  char *done = NULL;
  bool ok = true;
  if (!t->template_) return bad(t, "messages, and the model's file has no chat template");
  if (!json_is_array(messages)) return bad(t, "messages is no list");
  for (size_t i = 0; ok && i < json_array_size(messages); i++) {
    const char *role = json_string_value(json_object_get(json_array_get(messages, i), "role"));
    if (!role) ok = bad(t, "a message without a role");
    if (role && !strcmp(role, "assistant")) ok = put_reply(t, o, i, &done);
  }
  free(done);
  return ok;
}

static bool put_object(Texts *t, const json_t *o) {
  const char *a = NULL, *b = NULL;
  size_t na = 0, nb = 0, begin = t->n;
  if (json_object_get(o, "messages")) return put_messages(t, o) && items_add(t, begin, false);
  if (json_object_get(o, "text"))
    return text_of(t, o, "text", &a, &na) && put_piece(t, a, na, true, false, true) && put_end(t) &&
           items_add(t, begin, true);
  return text_of(t, o, "prompt", &a, &na) && text_of(t, o, "completion", &b, &nb) &&
         put_piece(t, a, na, true, false, false) && put_piece(t, b, nb, false, false, true) && put_end(t) &&
         items_add(t, begin, false);
}

static bool put_line(Texts *t, const char *s, size_t n) {
  json_error_t e;
  json_t *o = json_loadb(s, n, JSON_REJECT_DUPLICATES, &e);
  bool ok = o ? json_is_object(o) || bad(t, "no JSON object") : bad(t, e.text);
  ok = ok && put_object(t, o);
  json_decref(o);
  return ok;
}
#else
static bool put_line(Texts *t, const char *s, size_t n) {
  (void)s, (void)n;
  return bad(t, "this build reads no JSON (jansson)");
}
#endif

/* ---- files */
static char *file_read(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  size_t cap = 0, k = 1;
  for (*n = 0; f && k; *n += k) {
    char *more = *n < cap ? text : realloc(text, cap = 2 * cap + 65536);
    if (!more) break;
    text = more;
    k = fread(text + *n, 1, cap - *n, f);
  }
  bool ok = f && !ferror(f) && !k;
  int e = errno;
  if (f) fclose(f);
  if (ok) return text;
  free(text);
  errno = e;
  return NULL;
}

static bool put_file(Texts *t, const char *s, size_t n) {
  size_t blank = 0;
  while (blank < n && strchr(" \t\r\n", s[blank]))
    blank++;
  if (blank == n || s[blank] != '{') return put_piece(t, s, n, true, false, true) && items_add(t, 0, true);
  for (size_t at = 0; at < n;) {
    const char *end = memchr(s + at, '\n', n - at);
    size_t length = end ? (size_t)(end - s) - at : n - at, k = 0;
    t->line++;
    while (k < length && strchr(" \t\r", s[at + k]))
      k++;
    if (k < length && !put_line(t, s + at, length)) return false;
    at += length + 1;
  }
  return true;
}

/* ---- the dataset */
static TgStatus item_write(void *user, int64_t item, uint64_t random, void *const *out) {
  const Texts *t = user;
  int32_t *ids = out[0], *targets = out[1];
  Item at = t->item[item];
  (void)random;
  for (int64_t i = 0; i < t->length; i++) {
    bool there = (size_t)i < at.n, next = (size_t)i + 1 < at.n;
    ids[i] = there ? t->ids[at.at + (size_t)i] : 0;
    targets[i] = next && t->counts[at.at + (size_t)i + 1] ? t->ids[at.at + (size_t)i + 1] : -1;
  }
  return TG_OK;
}

static void texts_end(void *user) {
  Texts *t = user;
  TgContext *ctx = t->ctx;
  tg_free(ctx, t->ids), tg_free(ctx, t->counts), tg_free(ctx, t->item);
  tg_free(ctx, t);
}

static bool template_open(Texts *t, const TgLlm *m) {
  const char *text = tg_llm_about(m).chat_template;
  return !text || (t->template_ = tg_template_new(t->ctx, text, strlen(text))) != NULL;
}

static bool texts_read(Texts *t, const TgLlm *m) {
  size_t n = 0;
  if (!t->tokenizer) return llm_fail(t->ctx, TG_ERR_VALUE, "llm_dataset: the model has no vocabulary");
  if (!template_open(t, m)) return false;
  errno = 0;
  char *text = file_read(t->path, &n);
  if (!text)
    return llm_fail(t->ctx, TG_ERR_IO, "llm_dataset: %.300s: %s", t->path,
                    errno ? strerror(errno) : "out of memory");
  bool ok = put_file(t, text, n);
  free(text);
  if (ok && !t->nitems) ok = llm_fail(t->ctx, TG_ERR_VALUE, "llm_dataset: %.300s: nothing to learn", t->path);
  return ok;
}

/* The number of positions of the longest item. The last token of an item is only a target, never an input. */
static int64_t longest_item(const Texts *t) {
  size_t most = 0;
  for (size_t i = 0; i < t->nitems; i++)
    most = t->item[i].n > most ? t->item[i].n : most;
  return (int64_t)most - 1;
}

TgDataset tg_llm_dataset_opt(TgLlm *m, const char *path, const TgLlmDatasetOptions *given) {
  TgDataset none = {.size = sizeof none};
  TgLlmDatasetOptions o;
  TgLlmAbout a = tg_llm_about(m);
  TgContext *ctx = m ? llm_context(m) : NULL;
  if (!m || tg_options_read(ctx, "llm_dataset", "TgLlmDatasetOptions", &o, sizeof o, given)) return none;
  if (!llm_generates(m, "llm_dataset")) return none;
  if (!o.length) o.length = a.context < 256 ? a.context : 256;
  if (!path || o.length < 1 || o.length > a.context) {
    llm_fail(ctx, TG_ERR_VALUE, "llm_dataset: items of %lld tokens, where the context is of %lld",
             (long long)o.length, (long long)a.context);
    return none;
  }
  Texts *t = tg_alloc(ctx, sizeof *t);
  if (!t) return none;
  *t = (Texts){.ctx = ctx, .tokenizer = tg_llm_tokenizer(m), .length = o.length, .path = path};
  bool ok = texts_read(t, m);
  tg_template_free(t->template_);
  t->about.items = (int64_t)t->nitems;
  if (o.about) *o.about = t->about;
  int64_t fits = ok && o.fit ? (longest_item(t) + 31) / 32 * 32 : o.length;
  if (fits < t->length) t->length = fits;
  if (ok)
    return (TgDataset){.size = sizeof none,
                       .count = (int64_t)t->nitems,
                       .ntensor = 2,
                       .tensor = {{TG_I32, 1, {t->length}}, {TG_I32, 1, {t->length}}},
                       .item = item_write,
                       .end = texts_end,
                       .user = t};
  texts_end(t);
  return none;
}
