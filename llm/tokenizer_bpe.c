/* tokenizer_bpe.c: byte-level byte pairs (model `gpt2`). In: a text. Out: ids. The text is split by the
 * patterns of the vocabulary, each piece is read as bytes, and neighbours are joined in the order of the list
 * of merges. In the file each byte is written as a printable character; here tokens are stored as the bytes
 * that they mean. */
#include "llm_private.h"

/* ---- bytes as characters: printable bytes stand for themselves; the remaining bytes are U+0100 and on, in
 * order */
static bool shown(unsigned b) {
  return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
}

/* the byte that a character stands for; -1: none */
static int byte_of(int32_t code) {
  if (code < 0) return -1;
  if (code < 0x100) return shown((unsigned)code) ? code : -1;
  for (int b = 0, next = 0x100; b < 0x100 && code < 0x200; b++)
    if (!shown((unsigned)b) && next++ == code) return b;
  return -1;
}

void llm_byte_pairs_text(LlmText *to, const char *text, size_t n) {
  for (size_t at = 0, length; at < n; at += length) {
    int32_t code;
    length = llm_utf8(text + at, n - at, &code);
    int b = byte_of(code);
    if (b < 0)
      llm_put(to, text + at, length);
    else
      llm_put(to, &(char){(char)b}, 1);
  }
}

/* ---- merges */
static size_t merge_hash(int32_t left, int32_t right) {
  uint64_t h = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
  h = (h ^ h >> 31) * 0x9e3779b97f4a7c15u;
  return (size_t)(h ^ h >> 29);
}

static LlmMerge *merge_slot(const LlmMerges *m, int32_t left, int32_t right) {
  for (size_t i = merge_hash(left, right) & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
    LlmMerge *s = &m->slot[i];
    if (s->left < 0 || (s->left == left && s->right == right)) return s;
  }
}

/* Reads one line of the list, "LEFT RIGHT". LEFT may begin with a space, so the separating space is searched
 * from the second byte on. */
static bool merge_read(TgTokenizer *t, const char *line, size_t n, int32_t rank) {
  const char *blank = n > 2 ? memchr(line + 1, ' ', n - 2) : NULL;
  if (!blank) return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: merge %d is no pair", (int)rank);
  LlmText *both = &t->text;
  both->n = 0;
  llm_byte_pairs_text(both, line, (size_t)(blank - line));
  size_t left_n = both->n;
  llm_byte_pairs_text(both, blank + 1, n - (size_t)(blank - line) - 1);
  if (both->bad) return false;
  int32_t left = llm_token_find(t, both->at, left_n);
  int32_t right = llm_token_find(t, both->at + left_n, both->n - left_n);
  int32_t id = llm_token_find(t, both->at, both->n);
  if (left < 0 || right < 0 || id < 0)
    return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: merge %d, '%.*s', has a part that is no token",
                    (int)rank, (int)(n > 60 ? 60 : n), line);
  LlmMerge *s = merge_slot(&t->merges, left, right);
  if (s->left < 0) *s = (LlmMerge){left, right, rank, id};
  return true;
}

static bool merges_read(TgTokenizer *t, const TgValue *list) {
  size_t n = tg_value_count(list), cap = 16, length;
  if (tg_value_kind(list) != TG_KIND_LIST || n > INT32_MAX / 4)
    return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: tokenizer.ggml.merges is no list of texts");
  while (cap < 2 * n)
    cap *= 2;
  if (!(t->merges.slot = tg_alloc(t->ctx, cap * sizeof *t->merges.slot))) return false;
  t->merges.cap = cap;
  for (size_t i = 0; i < cap; i++)
    t->merges.slot[i].left = -1;
  for (size_t i = 0; i < n; i++) {
    const char *line = tg_value_string(tg_value_at(list, i), &length);
    if (!line) return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: merge %zu is no text", i);
    if (!merge_read(t, line, length, (int32_t)i)) return false;
  }
  return true;
}

bool llm_byte_pairs_read(TgTokenizer *t, const TgValue *gguf) {
  const char *pre;
  if (!llm_kv_text(t->ctx, gguf, "tokenizer.ggml.pre", &pre)) return false;
  if (!merges_read(t, llm_kv(gguf, "tokenizer.ggml.merges"))) return false;
  for (int b = 0; b < 256; b++)
    t->byte[b] = llm_token_find(t, &(char){(char)b}, 1);
  t->splitter = llm_splitter_new(t->ctx, pre ? pre : "default", &t->whole_words);
  int64_t whole = t->whole_words;
  if (!t->splitter || !llm_kv_int(t->ctx, gguf, "tokenizer.ggml.ignore_merges", whole, &whole)) return false;
  t->whole_words = whole != 0;
  return true;
}

void llm_byte_pairs_free(TgTokenizer *t) {
  tg_free(t->ctx, t->merges.slot);
  llm_splitter_free(t->ctx, t->splitter);
}

static bool join(const TgTokenizer *t, const char *text, const LlmSymbol *a, const LlmSymbol *b, double *key,
                 int32_t *id) {
  (void)text;
  if (a->id < 0 || b->id < 0) return false;
  const LlmMerge *m = merge_slot(&t->merges, a->id, b->id);
  *key = m->rank;
  *id = m->id;
  return m->left >= 0;
}

static bool piece(TgTokenizer *t, const char *text, size_t n) {
  int32_t whole = t->whole_words || n == 1 ? llm_token_find(t, text, n) : -1;
  if (whole >= 0) return llm_ids_put(t, whole);
  if (!llm_symbols_room(t, n)) return false;
  for (size_t i = 0; i < n; i++)
    t->symbol[i] = (LlmSymbol){.at = i, .n = 1, .id = t->byte[(unsigned char)text[i]]};
  if (!llm_merge(t, text, n, join)) return false;
  for (size_t i = 0; i < n; i++) {
    if (t->symbol[i].n && !llm_byte_put(t, t->symbol[i].id, text[i])) return false;
  }
  return true;
}

bool llm_byte_pairs(TgTokenizer *t, const char *text, size_t n) {
  if (!llm_split(t, text, n)) return false;
  for (size_t i = 0; i < t->spans.n; i++)
    if (!piece(t, text + t->spans.at[i].at, t->spans.at[i].n)) return false;
  return true;
}
