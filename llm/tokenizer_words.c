/* tokenizer_words.c: WordPiece (model `bert`). In: a text. Out: ids: it is cut into words, and a word into
 * the longest tokens from the left; a word that does not come out even is one unknown token. A token that
 * begins a word has U+2581 before it, as gguf files have them. Characters are taken by the tables of
 * tools/unicode.py. */
#include "llm_private.h"
#include "unicode_tables.h"

static const char begins[] = "\xe2\x96\x81";

/* ---- characters */
static bool is_within(const UnicodeRange *r, size_t n, int32_t c) {
  size_t first = 0;
  while (first < n) {
    size_t middle = first + (n - first) / 2;
    if (r[middle].last < c)
      first = middle + 1;
    else if (r[middle].first > c)
      n = middle;
    else
      return true;
  }
  return false;
}

#define IS(table, c) is_within(table, sizeof table / sizeof *table, c)

static bool is_blank(int32_t c) { return IS(blanks, c); }

static bool is_control(int32_t c) { return c == 0 || c == 0xfffd || (!is_blank(c) && IS(others, c)); }

static bool is_punctuation(int32_t c) {
  bool sign = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  return sign || IS(punctuation, c);
}

/* Ideographs are words each. */
static bool is_ideograph(int32_t c) {
  static const UnicodeRange those[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                       {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                       {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  return IS(those, c);
}

/* The last row of a table whose rows begin with a character, in order, that begins with c or less; -1: none. */
#define PLACE(table, c) place_of(table, sizeof table / sizeof *table, sizeof *table, c)

static long place_of(const void *table, size_t n, size_t size, int32_t c) {
  size_t first = 0;
  while (first < n) {
    size_t middle = first + (n - first) / 2;
    int32_t from;
    memcpy(&from, (const char *)table + middle * size, sizeof from);
    if (from <= c)
      first = middle + 1;
    else
      n = middle;
  }
  return (long)first - 1;
}

/* c without its marks, where one character is left; else c. */
static int32_t base_of(int32_t c) {
  long at = PLACE(bases, c);
  if (at < 0 || c - bases[at].from >= bases[at + 1].place - bases[at].place) return c;
  return (int32_t)bases[at].high << 16 | base_low[bases[at].place + c - bases[at].from];
}

/* c without its marks, at most three characters. */
static int plain_of(int32_t c, int32_t to[3]) {
  long at = PLACE(several, c);
  bool more = at >= 0 && several[at].from == c;
  if (c >= 0xac00 && c <= 0xd7a3) { /* Hangul: its two or three letters */
    int32_t i = c - 0xac00, last = i % 28;
    to[0] = 0x1100 + i / 588;
    to[1] = 0x1161 + i % 588 / 28;
    to[2] = 0x11a7 + last;
    return last ? 3 : 2;
  }
  to[0] = base_of(c);
  if (more) memcpy(to, several[at].to, sizeof several[at].to);
  return !more ? 1 : to[2] ? 3 : 2;
}

static int32_t lower_of(int32_t c) {
  size_t first = 0, n = sizeof lower / sizeof *lower;
  while (first < n) {
    size_t middle = first + (n - first) / 2;
    const UnicodeRun *r = &lower[middle];
    if (r->last < c)
      first = middle + 1;
    else if (r->first > c)
      n = middle;
    else
      return (c - r->first) % r->step ? c : c + r->add;
  }
  return c;
}

/* ---- words */
bool llm_words_read(TgTokenizer *t, const TgValue *gguf) {
  int64_t low, plain;
  if (!llm_kv_int(t->ctx, gguf, "tokenizer.ggml.lowercase", 1, &low) ||
      !llm_kv_int(t->ctx, gguf, "tokenizer.ggml.strip_accents", 1, &plain) ||
      !llm_kv_int(t->ctx, gguf, "tokenizer.ggml.longest_word", 100, &t->longest_word))
    return false;
  t->lowercase = low != 0;
  t->strip_accents = plain != 0;
  return llm_prefixes_make(t);
}

/* The longest token that begins at p; its length 0: none does. */
static int32_t longest_token(const TgTokenizer *t, const char *p, size_t n, size_t *length) {
  int32_t best = -1;
  LlmPrefix at = llm_prefix(t);
  *length = 0;
  for (size_t i = 0; i < n && llm_prefix_step(t, &at, p[i]); i++) {
    int32_t id = llm_prefix_token(t, &at);
    if (id < 0) continue;
    best = id;
    *length = i + 1;
  }
  return best;
}

/* The word in t->text, U+2581 first; none where nothing follows that. */
static bool word_put(TgTokenizer *t, int64_t characters) {
  size_t before = t->ids.n, n = t->text.n, length;
  if (t->text.bad) return false;
  if (!characters) return true;
  for (size_t at = 0; at < n; at += length) {
    int32_t id = characters > t->longest_word ? -1 : longest_token(t, t->text.at + at, n - at, &length);
    if (id < 0) {
      t->ids.n = before;
      return llm_byte_put(t, -1, t->text.at[3]);
    }
    if (!llm_ids_put(t, id)) return false;
  }
  return true;
}

typedef struct Word {
  TgTokenizer *t;
  int64_t characters;
  bool ok;
} Word;

static void word_end(Word *w) {
  w->ok = w->ok && word_put(w->t, w->characters);
  w->characters = 0;
  w->t->text.n = 0;
  llm_put(&w->t->text, begins, 3);
}

static void character_put(Word *w, int32_t c) {
  if (w->t->lowercase) c = lower_of(c);
  bool alone = is_punctuation(c) || is_ideograph(c);
  if (alone || is_blank(c)) word_end(w);
  if (is_blank(c)) return;
  llm_put_utf8(&w->t->text, (uint32_t)c);
  w->characters++;
  if (alone) word_end(w);
}

bool llm_words(TgTokenizer *t, const char *text, size_t n) {
  Word w = {t, 0, true};
  word_end(&w);
  for (size_t at = 0, length; at < n && w.ok; at += length) {
    int32_t c, plain[3];
    length = llm_utf8(text + at, n - at, &c);
    if (c < 0 || is_control(c)) continue;
    int parts = t->strip_accents ? plain_of(c, plain) : 1;
    if (!t->strip_accents) plain[0] = c;
    for (int i = 0; i < parts; i++)
      if (!t->strip_accents || !IS(marks, plain[i])) character_put(&w, plain[i]);
  }
  word_end(&w);
  return w.ok;
}
