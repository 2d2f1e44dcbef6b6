/* llm_private.h: what the files of llm/ share: errors, bytes that grow, questions to the key-values of a
 * gguf file, and the tokenizer's inside. */
#ifndef TG_LLM_PRIVATE_H
#define TG_LLM_PRIVATE_H
#include "tg_llm.h"
#include <string.h>

/* Records an error of the context, unless there is one already; false. */
bool llm_fail(TgContext *ctx, TgStatus status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Where a file that is replaced lies: links lead there, and stay. False, with errno: it is no file, or too
 * long. */
enum { LLM_PATH = 4096 };

bool llm_place(const char *path, char place[LLM_PATH]);
const char *llm_dims_text(char *to, size_t cap, int n, const int64_t *dims); /* "(3, 4)", into to */

/* at, n elements of size bytes, grown so that `more` others fit; NULL: out of memory, and at is as it was. */
void *llm_grow(TgContext *ctx, void *at, size_t n, size_t more, size_t *cap, size_t size);

/* Bytes under construction. bad: an allocation failed, nothing more is put. */
typedef struct LlmText {
  TgContext *ctx;
  char *at;
  size_t n, cap;
  bool bad;
} LlmText;

void llm_put(LlmText *t, const void *p, size_t n);
size_t llm_utf8_of(uint32_t code, char b[4]); /* its bytes, and how many there are */
void llm_put_utf8(LlmText *t, uint32_t code);
/* The code point at p (n > 0 bytes) and its length; a byte that begins none counts as itself: -1. */
size_t llm_utf8(const char *p, size_t n, int32_t *code);
/* How many bytes at the end of p may be the beginning of a character. */
size_t llm_utf8_tail(const char *p, size_t n);
uint64_t llm_hash(const void *p, size_t n);

TgContext *llm_context(const TgLlm *m); /* model.c */
/* model.c. Whether it goes on with texts: an encoder does not, which is an error. */
bool llm_generates(const TgLlm *m, const char *what);

/* ---- key-values. A key that is there with the wrong kind is an error; `fallback` where it is not there. */
const TgValue *llm_kv(const TgValue *gguf, const char *key);
bool llm_kv_int(TgContext *ctx, const TgValue *gguf, const char *key, int64_t fallback, int64_t *out);
bool llm_kv_real(TgContext *ctx, const TgValue *gguf, const char *key, double fallback, double *out);
bool llm_kv_text(TgContext *ctx, const TgValue *gguf, const char *key, const char **out);

/* ---- the tokenizer */
enum { TOKEN_NORMAL = 1, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER, TOKEN_UNUSED, TOKEN_BYTE };

/* how a text becomes tokens; a row of the table in tokenizer.c */
typedef enum LlmTokenizerKind { LLM_BYTE_PAIRS, LLM_SENTENCE_PIECE, LLM_UNIGRAM, LLM_WORDS } LlmTokenizerKind;

/* Two tokens that become a third; lower ranks first. left < 0: the place is free. */
typedef struct LlmMerge {
  int32_t left, right, rank, id;
} LlmMerge;

typedef struct LlmMerges {
  LlmMerge *slot;
  size_t cap;
} LlmMerges;

/* A piece of text on its way to become a token: a list, since neighbours join. n 0: it was joined. */
typedef struct LlmSymbol {
  size_t at, n;
  int32_t id, prev, next;
} LlmSymbol;

/* Two neighbours that may join. n: their length when they were found, which tells whether they still are. */
typedef struct LlmPair {
  double key;
  int32_t left, right, id;
  size_t n;
} LlmPair;

typedef struct LlmIds {
  int32_t *at;
  size_t n, cap;
} LlmIds;

/* The places of a piece of text. */
typedef struct LlmSpan {
  size_t at, n;
} LlmSpan;

typedef struct LlmSpans {
  LlmSpan *at;
  size_t n, cap;
} LlmSpans;

typedef struct LlmSplitter LlmSplitter;

/* Of the tokens in the order of their bytes those whose first n bytes are a text's: first .. end - 1. */
typedef struct LlmPrefix {
  int32_t first, end;
  size_t n;
} LlmPrefix;

/* The best way to cut a text up to here: its last token (-1: unknown), and where that began. */
typedef struct LlmCut {
  double score;
  size_t from, next;
  int32_t id;
} LlmCut;

struct TgTokenizer {
  TgContext *ctx;
  LlmTokenizerKind kind;
  int32_t n;
  char *bytes; /* the texts of all tokens, as they stand in a text */
  size_t *begin;
  float *score;
  uint8_t *type;
  int32_t *slot; /* a table of hashes: normal tokens by their text; -1: free */
  size_t nslots, longest;
  int32_t *special; /* control and user tokens, by first byte, longest first */
  int32_t nspecial, special_begin[257];
  int32_t byte[256]; /* -1: none */
  LlmMerges merges;
  LlmSplitter *splitter;
  int32_t *order; /* normal tokens, by their bytes */
  int32_t norder;
  /* unigrams: the table that a text is written otherwise by; the worst score; runs of blanks are one */
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
  /* what an encoding needs, kept for the next */
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

int32_t llm_token_find(const TgTokenizer *t, const char *text, size_t n); /* a normal token; -1: none */
bool llm_ids_put(TgTokenizer *t, int32_t id);
/* id, or where that is negative the token for what is unknown; without one an error that names the byte. */
bool llm_byte_put(TgTokenizer *t, int32_t id, char byte);

/* ids in the order that `order` says, below 0: a before b. */
typedef int32_t (*LlmOrder)(const TgTokenizer *t, int32_t a, int32_t b);
void llm_tokens_sort(const TgTokenizer *t, int32_t *ids, int32_t n, LlmOrder order);

/* tokenizer_bpe.c. The tables of a byte-level vocabulary; text -> ids */
bool llm_byte_pairs_read(TgTokenizer *t, const TgValue *gguf);
bool llm_byte_pairs(TgTokenizer *t, const char *text, size_t n);
/* Token text as it stands in the file -> its bytes, appended. */
void llm_byte_pairs_text(LlmText *to, const char *text, size_t n);
void llm_byte_pairs_free(TgTokenizer *t);

/* tokenizer_spm.c */
bool llm_sentence_piece_read(TgTokenizer *t, const TgValue *gguf);
bool llm_sentence_piece(TgTokenizer *t, const char *text, size_t n);
bool llm_scores_read(TgTokenizer *t, const TgValue *gguf); /* t->score; false: there are none, or others */

/* tokenizer_prefix.c */
bool llm_prefixes_make(TgTokenizer *t); /* t->order */
LlmPrefix llm_prefix(const TgTokenizer *t);
bool llm_prefix_step(const TgTokenizer *t, LlmPrefix *p, char byte); /* one byte more; false: none has it */
int32_t llm_prefix_token(const TgTokenizer *t, const LlmPrefix *p);  /* the token of these bytes; -1: none */

/* tokenizer_unigram.c, tokenizer_words.c */
bool llm_unigram_read(TgTokenizer *t, const TgValue *gguf);
bool llm_unigram(TgTokenizer *t, const char *text, size_t n);
bool llm_words_read(TgTokenizer *t, const TgValue *gguf);
bool llm_words(TgTokenizer *t, const char *text, size_t n);

/* tokenizer_merge.c. Joins the n symbols in t->symbol until none of the neighbours may join. join: whether
 * two may, with a key (the lowest first, of equal ones the leftmost) and the token that they become. */
typedef bool (*LlmJoin)(const TgTokenizer *t, const char *text, const LlmSymbol *a, const LlmSymbol *b,
                        double *key, int32_t *id);
bool llm_symbols_room(TgTokenizer *t, size_t n);
bool llm_merge(TgTokenizer *t, const char *text, size_t n, LlmJoin join);

/* tokenizer_split.c. A text cut where no token may cross, by the patterns that `pre` names. */
LlmSplitter *llm_splitter_new(TgContext *ctx, const char *pre, bool *whole_words); /* NULL: an error */
void llm_splitter_free(TgContext *ctx, LlmSplitter *s);
bool llm_split(TgTokenizer *t, const char *text, size_t n); /* to t->spans */

#endif
