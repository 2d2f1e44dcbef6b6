/* tokenizer_unigram.c: SentencePiece's unigrams (model `t5`). In: a text. Out: the ids with the largest sum
 * of scores, among all ways to split the text into tokens. A character that is not a token scores 10 less
 * than the worst token. A run of such characters becomes one unknown token, or byte tokens if the vocabulary
 * has them. Before that, the text is rewritten by the table of the file (precompiled_charsmap), a
 * double-array trie. */
#include "llm_private.h"
#include <math.h>

static const char blank[] = "\xe2\x96\x81";

/* ---- the table that rewrites a text: the longest key that matches is replaced by the key's text */
/* Its layout: the size of the trie in bytes (u32), the trie, texts that end with a 0 byte. */
static bool charsmap_read(TgTokenizer *t, const TgValue *gguf) {
  TgTensor *map = tg_value_tensor(llm_kv(gguf, "tokenizer.ggml.precompiled_charsmap"));
  size_t n = map ? tg_nbytes(map) : 0;
  if (!n) return true;
  unsigned char *at = t->charsmap = tg_alloc(t->ctx, n + 1); /* and a 0 byte that ends the last text */
  if (!at || tg_read(map, at, n)) return false;
  uint32_t size = n >= 4
                      ? (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24
                      : UINT32_MAX;
  if (size % 4 || size > n - 4)
    return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: a precompiled_charsmap of %zu bytes has a trie of %u",
                    n, size);
  t->charsmap_units = size / 4;
  t->charsmap_n = n;
  return true;
}

static uint32_t unit(const TgTokenizer *t, uint32_t i) {
  const unsigned char *p = t->charsmap + 4 + 4 * (size_t)i;
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The offset of a unit's children; it is combined with a place by XOR. */
static uint32_t offset_of(uint32_t u) { return (u >> 10) << ((u & 1u << 9) >> 6); }

/* Returns the length of the longest key that p begins with, 0: none. *to: the text that replaces it. */
static size_t written_otherwise(const TgTokenizer *t, const char *p, size_t n, const char **to) {
  size_t longest = 0, texts = 4 + 4 * (size_t)t->charsmap_units;
  uint32_t at = t->charsmap_units ? offset_of(unit(t, 0)) : 0;
  for (size_t i = 0; i < n && p[i]; i++) {
    at ^= (unsigned char)p[i];
    if (at >= t->charsmap_units) break;
    uint32_t u = unit(t, at);
    if ((u & 0x800000ffu) != (unsigned char)p[i]) break;
    at ^= offset_of(u);
    if (!(u >> 8 & 1) || at >= t->charsmap_units) continue;
    uint32_t value = unit(t, at) & 0x7fffffffu;
    if (value >= t->charsmap_n - texts) continue;
    longest = i + 1;
    *to = (const char *)t->charsmap + texts + value;
  }
  return longest;
}

/* Adds a piece of the text; runs of spaces become one space if the file asks for that. */
static void piece_put(const TgTokenizer *t, LlmText *to, const char *p, size_t n) {
  for (size_t i = 0; i < n; i++) {
    bool follows = to->n >= 3 && !memcmp(to->at + to->n - 3, blank, 3);
    if (p[i] != ' ')
      llm_put(to, p + i, 1);
    else if (!t->one_blank || !follows)
      llm_put(to, blank, 3);
  }
}

static bool normalized(TgTokenizer *t, const char *text, size_t n) {
  LlmText *to = &t->text;
  to->n = 0;
  for (size_t at = 0, length; at < n; at += length) {
    const char *other = NULL;
    int32_t code;
    length = t->charsmap ? written_otherwise(t, text + at, n - at, &other) : 0;
    if (length)
      piece_put(t, to, other, strlen(other));
    else {
      length = llm_utf8(text + at, n - at, &code);
      piece_put(t, to, code < 0 ? "\xef\xbf\xbd" : text + at, code < 0 ? 3 : length);
    }
  }
  while (t->one_blank && to->n >= 3 && !to->bad && !memcmp(to->at + to->n - 3, blank, 3))
    to->n -= 3;
  return !to->bad;
}

/* ---- the best way to split a text */
bool llm_unigram_read(TgTokenizer *t, const TgValue *gguf) {
  int64_t one_blank;
  if (!llm_scores_read(t, gguf) || !charsmap_read(t, gguf)) return false;
  if (!llm_kv_int(t->ctx, gguf, "tokenizer.ggml.remove_extra_whitespaces", 1, &one_blank)) return false;
  t->one_blank = one_blank != 0;
  t->least = 0;
  for (int32_t i = 0; i < t->n; i++)
    if (t->type[i] == TOKEN_NORMAL && (double)t->score[i] < t->least) t->least = (double)t->score[i];
  return llm_prefixes_make(t);
}

enum { UNKNOWN_COSTS = 10 };

/* Records a way to split the text up to `to` if it is better than the known way. */
static void offer(LlmCut *best, size_t from, size_t to, int32_t id, double score) {
  if (!(score > best[to].score)) return;
  best[to] = (LlmCut){.score = score, .from = from, .id = id};
}

/* Offers all tokens that begin at `at`. If the one character there is not a token, it is offered as
 * unknown. */
static void tokens_offer(const TgTokenizer *t, LlmCut *best, const char *text, size_t n, size_t at) {
  int32_t code;
  size_t length = llm_utf8(text + at, n - at, &code);
  LlmPrefix p = llm_prefix(t);
  bool whole = false;
  for (size_t i = at; i < n && llm_prefix_step(t, &p, text[i]); i++) {
    int32_t id = llm_prefix_token(t, &p);
    if (id < 0) continue;
    offer(best, at, i + 1, id, best[at].score + (t->type[id] == TOKEN_USER ? 0 : (double)t->score[id]));
    whole = whole || i + 1 == at + length;
  }
  if (!whole) offer(best, at, at + length, -1, best[at].score + t->least - UNKNOWN_COSTS);
}

/* Adds n bytes that are not a token: as byte tokens, or as one unknown token for the whole run (follows: the
 * run has begun). */
static bool unknown_put(TgTokenizer *t, const char *p, size_t n, bool follows) {
  bool bytes = true;
  for (size_t i = 0; i < n; i++)
    bytes = bytes && t->byte[(unsigned char)p[i]] >= 0;
  if (!bytes) return follows || llm_byte_put(t, -1, *p);
  for (size_t i = 0; i < n; i++)
    if (!llm_ids_put(t, t->byte[(unsigned char)p[i]])) return false;
  return true;
}

bool llm_unigram(TgTokenizer *t, const char *text, size_t length) {
  if (!normalized(t, text, length)) return false;
  const char *p = t->text.at;
  size_t n = t->text.n, step;
  int32_t code;
  if (!n) return true;
  LlmCut *best = llm_grow(t->ctx, t->best, 0, n + 1, &t->best_cap, sizeof *best);
  if (!best) return false;
  t->best = best;
  best[0] = (LlmCut){.score = 0};
  for (size_t i = 1; i <= n; i++)
    best[i] = (LlmCut){.score = -INFINITY};
  for (size_t at = 0; at < n; at += step) {
    step = llm_utf8(p + at, n - at, &code);
    tokens_offer(t, best, p, n, at);
  }
  for (size_t to = n; to; to = best[to].from)
    best[best[to].from].next = to;
  bool unknown = false;
  for (size_t at = 0, to; at < n; at = to) {
    to = best[at].next;
    int32_t id = best[to].id;
    if (!(id >= 0 ? llm_ids_put(t, id) : unknown_put(t, p + at, to - at, unknown))) return false;
    unknown = id < 0;
  }
  return true;
}
