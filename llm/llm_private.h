/* llm_private.h: what all files of llm/ share: errors, growing buffers, access to the key-values of a gguf
 * file, and the inside of the tokenizer. */
#ifndef TG_LLM_PRIVATE_H
#define TG_LLM_PRIVATE_H
#include "tg_llm.h"
#include <string.h>

/* Records an error in the context, unless there is one already. Returns false. */
bool llm_fail(TgContext *ctx, TgStatus status, const char *format, ...) __attribute__((format(printf, 3, 4)));
double llm_seconds(void); /* seconds of a clock that is never set back */
/* Updates an estimate of how long something takes (0: unknown): a shorter time replaces it at once, a longer
 * time raises it a little. */
double llm_least_of_late(double was, double now);

/* Finds the file that a write to `path` replaces: symbolic links are followed, so they stay. Returns false
 * and sets errno if it is not a regular file or the path is too long. */
enum { LLM_PATH = 4096 };

bool llm_place(const char *path, char place[LLM_PATH]);
const char *llm_dims_text(char *to, size_t cap, int n, const int64_t *dims); /* writes "(3, 4)" */

/* Grows an array `at` of n elements of `size` bytes so that it has room for `more` further elements. Returns
 * NULL if out of memory; then `at` is unchanged. */
void *llm_grow(TgContext *ctx, void *at, size_t n, size_t more, size_t *cap, size_t size);

/* A growing byte buffer. bad: an allocation failed, and nothing more is added. */
typedef struct LlmText {
  TgContext *ctx;
  char *at;
  size_t n, cap;
  bool bad;
} LlmText;

void llm_put(LlmText *t, const void *p, size_t n);
size_t llm_utf8_of(uint32_t code, char b[4]); /* returns the number of bytes */
void llm_put_utf8(LlmText *t, uint32_t code);
/* Reads the code point at p (n > 0 bytes) and returns its length in bytes. A byte that does not begin a valid
 * character is taken alone, and its code is -1. */
size_t llm_utf8(const char *p, size_t n, int32_t *code);
/* The number of bytes at the end of p that may be the beginning of an incomplete character. */
size_t llm_utf8_tail(const char *p, size_t n);
uint64_t llm_hash(const void *p, size_t n);

TgContext *llm_context(const TgLlm *m); /* model.c */
/* model.c. Whether the model continues texts. An encoder does not: that is an error. */
bool llm_generates(const TgLlm *m, const char *what);

/* ---- key-values. A key whose value has the wrong kind is an error; `fallback` is used if the key is
 * missing. */
const TgValue *llm_kv(const TgValue *gguf, const char *key);
bool llm_kv_int(TgContext *ctx, const TgValue *gguf, const char *key, int64_t fallback, int64_t *out);
bool llm_kv_real(TgContext *ctx, const TgValue *gguf, const char *key, double fallback, double *out);
bool llm_kv_text(TgContext *ctx, const TgValue *gguf, const char *key, const char **out);

/* ---- the tokenizer */
enum { TOKEN_NORMAL = 1, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER, TOKEN_UNUSED, TOKEN_BYTE };

/* how a text becomes tokens: a row of the table in tokenizer.c */
typedef enum LlmTokenizerKind { LLM_BYTE_PAIRS, LLM_SENTENCE_PIECE, LLM_UNIGRAM, LLM_WORDS } LlmTokenizerKind;

/* Two tokens that are joined to a third, lower ranks first. left < 0: the slot is free. */
typedef struct LlmMerge {
  int32_t left, right, rank, id;
} LlmMerge;

typedef struct LlmMerges {
  LlmMerge *slot;
  size_t cap;
} LlmMerges;

/* A piece of text that is becoming a token. The pieces are a linked list, because neighbours are joined. n 0:
 * it was joined to the piece before it. */
typedef struct LlmSymbol {
  size_t at, n;
  int32_t id, prev, next;
} LlmSymbol;

/* Two neighbours that may be joined. n: their length when the pair was found; if it has changed, the pair is
 * stale. */
typedef struct LlmPair {
  double key;
  int32_t left, right, id;
  size_t n;
} LlmPair;

typedef struct LlmIds {
  int32_t *at;
  size_t n, cap;
} LlmIds;

/* Bytes at .. at + n - 1 of a text. */
typedef struct LlmSpan {
  size_t at, n;
} LlmSpan;

typedef struct LlmSpans {
  LlmSpan *at;
  size_t n, cap;
} LlmSpans;

typedef struct LlmSplitter LlmSplitter;

/* The tokens whose first n bytes are those of a text: first .. end - 1 in the order of their bytes. */
typedef struct LlmPrefix {
  int32_t first, end;
  size_t n;
} LlmPrefix;

/* The best way to cut a text up to a place: its last token (-1: unknown) and where this token begins. */
typedef struct LlmCut {
  double score;
  size_t from, next;
  int32_t id;
} LlmCut;

struct TgTokenizer {
  TgContext *ctx;
  LlmTokenizerKind kind;
  int32_t n;
  char *bytes; /* the texts of all tokens, as they appear in a text */
  size_t *begin;
  float *score;
  uint8_t *type;
  int32_t *slot; /* a hash table of normal tokens by their text; -1: free */
  size_t nslots, longest;
  int32_t *special; /* control and user tokens: by first byte, the longest first */
  int32_t nspecial, special_begin[257];
  int32_t byte[256]; /* -1: none */
  LlmMerges merges;
  LlmSplitter *splitter;
  int32_t *order; /* normal tokens, sorted by their bytes */
  int32_t norder;
  /* unigrams: the table that replaces characters of a text; the worst score; whether runs of spaces become
   * one */
  unsigned char *charsmap;
  size_t charsmap_n;
  uint32_t charsmap_units;
  double least;
  bool one_blank;
  /* WordPiece */
  bool lowercase, strip_accents;
  int64_t longest_word;
  int32_t bos, eos, eot, unknown, padding;
  bool add_bos, add_eos, add_space, whole_words;
  /* buffers of an encoding, kept for the next one */
  LlmIds ids;
  LlmText text;
  LlmSpans spans, cut;
  LlmSymbol *symbol;
  LlmPair *heap;
  LlmCut *best;
  size_t symbol_cap, heap_cap, nheap, best_cap;
};

static inline const char *llm_token(const TgTokenizer *t, int32_t id, size_t *n) {
  *n = t->begin[id + 1] - t->begin[id];
  return t->bytes + t->begin[id];
}

/* tokenizer.c. As tg_tokenize of a template that texts were filled into: control tokens are recognised,
 * but not where a given text is. */
int64_t llm_tokenize_filled(TgTokenizer *t, const char *text, size_t n, const LlmSpan *given, size_t ngiven,
                            int32_t *out, size_t cap);
int32_t llm_token_find(const TgTokenizer *t, const char *text, size_t n); /* a normal token; -1: none */
bool llm_ids_put(TgTokenizer *t, int32_t id);
/* Adds id, or the token for unknown text if id is negative. If there is no such token it is an error that
 * names the byte. */
bool llm_byte_put(TgTokenizer *t, int32_t id, char byte);

/* Sorts ids by `order`, which returns a number below 0 if a comes before b. */
typedef int32_t (*LlmOrder)(const TgTokenizer *t, int32_t a, int32_t b);
void llm_tokens_sort(const TgTokenizer *t, int32_t *ids, int32_t n, LlmOrder order);

/* tokenizer_bpe.c. Reads the tables of a byte-level vocabulary; turns text into ids. */
bool llm_byte_pairs_read(TgTokenizer *t, const TgValue *gguf);
bool llm_byte_pairs(TgTokenizer *t, const char *text, size_t n);
/* Appends the bytes that a token's text in the file means. */
void llm_byte_pairs_text(LlmText *to, const char *text, size_t n);
void llm_byte_pairs_free(TgTokenizer *t);

/* tokenizer_spm.c */
bool llm_sentence_piece_read(TgTokenizer *t, const TgValue *gguf);
bool llm_sentence_piece(TgTokenizer *t, const char *text, size_t n);
bool llm_scores_read(TgTokenizer *t, const TgValue *gguf); /* t->score; false: missing or wrong */

/* tokenizer_prefix.c */
bool llm_prefixes_make(TgTokenizer *t); /* t->order */
LlmPrefix llm_prefix(const TgTokenizer *t);
bool llm_prefix_step(const TgTokenizer *t, LlmPrefix *p, char byte); /* adds a byte; false: no token has it */
int32_t llm_prefix_token(const TgTokenizer *t, const LlmPrefix *p);  /* the token of exactly these bytes; -1:
                                                                      * none */

/* tokenizer_unigram.c, tokenizer_words.c */
bool llm_unigram_read(TgTokenizer *t, const TgValue *gguf);
bool llm_unigram(TgTokenizer *t, const char *text, size_t n);
bool llm_words_read(TgTokenizer *t, const TgValue *gguf);
bool llm_words(TgTokenizer *t, const char *text, size_t n);

/* tokenizer_merge.c. Joins neighbours among the n symbols in t->symbol until no two may be joined. join:
 * whether two may be joined, with a key (the lowest key first, the leftmost pair among equal keys) and the
 * token that they become. */
typedef bool (*LlmJoin)(const TgTokenizer *t, const char *text, const LlmSymbol *a, const LlmSymbol *b,
                        double *key, int32_t *id);
bool llm_symbols_room(TgTokenizer *t, size_t n);
bool llm_merge(TgTokenizer *t, const char *text, size_t n, LlmJoin join);

/* tokenizer_split.c. Cuts a text at places that no token may cross, by the patterns that `pre` names. */
LlmSplitter *llm_splitter_new(TgContext *ctx, const char *pre, bool *whole_words); /* NULL: an error */
void llm_splitter_free(TgContext *ctx, LlmSplitter *s);
bool llm_split(TgTokenizer *t, const char *text, size_t n); /* to t->spans */

#endif
