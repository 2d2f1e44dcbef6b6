/* tokenizer_words.c: WordPiece (model `bert`). In: a text. Out: ids. The text is split into words, and each
 * word into the longest possible tokens from the left. A word that cannot be split completely is one unknown
 * token. A token that begins a word has U+2581 before it, as in gguf files. The classes of characters come
 * from the tables of tools/unicode.py. */
#include "llm_private.h"
#include "unicode_tables.h"

static const char begins[] = "\xe2\x96\x81";

/* ---- characters */
static bool is_within(const UnicodeRange *r, size_t n, int32_t c) {
  size_t first = 0;
  while (first < n) {
    size_t middle = first + (n - first) / 2;
    int32_t from = r[middle].first;
    if (from + r[middle].more < c)
      first = middle + 1;
    else if (from > c)
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

/* Each ideograph is a word. */
static bool is_ideograph(int32_t c) {
  return (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x4e00 && c <= 0x9fff) || (c >= 0xf900 && c <= 0xfaff) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) ||
         (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0x2f800 && c <= 0x2fa1f);
}

/* The last row that begins with c or less, in a table whose rows are sorted by their first character; -1:
 * none. */
#define LAST_ROW(name, table)                                                                                \
  static long name(int32_t c) {                                                                              \
    long first = 0, n = (long)(sizeof table / sizeof *table);                                                \
    while (first < n) {                                                                                      \
      long middle = first + (n - first) / 2;                                                                 \
      if ((int32_t)table[middle].from <= c)                                                                  \
        first = middle + 1;                                                                                  \
      else                                                                                                   \
        n = middle;                                                                                          \
    }                                                                                                        \
    return first - 1;                                                                                        \
  }

LAST_ROW(bases_row, bases)
LAST_ROW(several_row, several)

/* c without its marks, if one character is left; otherwise c. */
static int32_t base_of(int32_t c) {
  long at = bases_row(c);
  if (at < 0 || at + 1 == sizeof bases / sizeof *bases) return c;
  int32_t i = c - (int32_t)bases[at].from, place = bases[at].place;
  return i < bases[at + 1].place - place ? bases[at].high << 16 | base_low[place + i] : c;
}

/* Writes c without its marks, at most three characters, and returns their number. */
static int plain_of(int32_t c, int32_t to[3]) {
  long at = several_row(c);
  bool more = at >= 0 && several[at].from == c;
  if (c >= 0xac00 && c <= 0xd7a3) { /* Hangul: a syllable is two or three letters */
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
    int32_t i = c - (int32_t)r->first;
    if (i > r->more)
      first = middle + 1;
    else if (i < 0)
      n = middle;
    else
      return i % r->step ? c : c + r->add;
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

/* The longest token that begins at p; if there is none, *length is 0. */
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

/* Adds the word in t->text, which begins with U+2581; nothing if no characters follow it. */
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
