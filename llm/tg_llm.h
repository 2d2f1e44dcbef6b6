/* tg_llm.h: language models of gguf files, built on tg.h, tg_nn.h and tg_io.h alone: tokenizers, models with
 * their cache, samplers, chat templates.
 *
 * What a file says is not trusted: every count, shape and id is checked, and an error (TG_ERR_VALUE) says what
 * is wrong. A tokenizer, a model, a sampler and a template end before the context is closed. Texts are UTF-8;
 * what is no UTF-8 is taken as bytes. */
#ifndef TG_LLM_H
#define TG_LLM_H
#include "tg_io.h"
#include "tg_nn.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizers: tokenizer.ggml.* of a gguf file. Models: gpt2 (byte-level byte pairs, the patterns of
 * tokenizer.ggml.pre by pcre2), llama (SentencePiece's byte pairs). */
typedef struct TgTokenizer TgTokenizer;

/* gguf: what tg_gguf_load gave; it may end before the tokenizer. NULL: an error; TG_ERR_VALUE names the model,
 * the patterns or the array that is not as it should be. */
TG_API TgTokenizer *tg_tokenizer_new(TgContext *ctx, const TgValue *gguf);
TG_API void tg_tokenizer_free(TgTokenizer *t);           /* NULL is fine */
TG_API int64_t tg_tokenizer_count(const TgTokenizer *t); /* ids are 0 .. count - 1 */
/* The bytes that id stands for, not ended by a 0 byte; nbytes may be NULL. NULL: no such id. */
TG_API const char *tg_token_text(const TgTokenizer *t, int64_t id, size_t *nbytes);
TG_API int64_t tg_token_id(const TgTokenizer *t, const char *text); /* control tokens too; -1: none */

typedef enum TgTokenRole {
  TG_TOKEN_BOS = 0, /* begins a text */
  TG_TOKEN_EOS,     /* ends it */
  TG_TOKEN_EOT,     /* ends a turn */
  TG_TOKEN_UNKNOWN,
  TG_TOKEN_PADDING
} TgTokenRole;

TG_API int64_t tg_token_special(const TgTokenizer *t, TgTokenRole role); /* -1: the file names none */
TG_API bool tg_token_ends(const TgTokenizer *t, int64_t id); /* a reply ends here: EOS, EOT, <|im_end|> .. */

/* special: control tokens are looked for in the text; without it "<s>" is three characters. ends: BOS before
 * the text and EOS after it, where the file wants them. inside: the text goes on after another, so no blank is
 * put before it. */
typedef struct TgTokenizeOptions {
  size_t size;
  const char *set;
  bool special, ends, inside;
  int end_;
} TgTokenizeOptions;

/* [options] Writes at most cap ids (out may be NULL where cap is 0) and returns how many there are; -1: an
 * error. */
TG_API int64_t tg_tokenize_opt(TgTokenizer *t, const char *text, size_t nbytes, int32_t *out, size_t cap,
                               const TgTokenizeOptions *o);

/* special: control tokens are shown as they are written. inside: the text goes on after another, so the blank
 * that SentencePiece has before a text stays. */
typedef struct TgDetokenizeOptions {
  size_t size;
  const char *set;
  bool special, inside;
  int end_;
} TgDetokenizeOptions;

/* ids as a text that grows. A piece never ends within a character. t must outlive it. */
typedef struct TgDetokenizer TgDetokenizer;
TG_API TgDetokenizer *tg_detokenizer_new_opt(const TgTokenizer *t, const TgDetokenizeOptions *o);
/* What there is to show after this token, perhaps nothing; ended by a 0 byte, valid until the next call. NULL:
 * TG_ERR_VALUE, no such id. */
TG_API const char *tg_detokenizer_put(TgDetokenizer *d, int64_t id, size_t *nbytes);
/* What is left: U+FFFD for a character that never ended, else "". */
TG_API const char *tg_detokenizer_end(TgDetokenizer *d, size_t *nbytes);
TG_API void tg_detokenizer_free(TgDetokenizer *d); /* NULL is fine */

#ifndef __cplusplus
#define tg_tokenize(...)        TG_OPT5_(tg_tokenize_opt, TgTokenizeOptions, __VA_ARGS__, .end_ = 0)
#define tg_detokenizer_new(...) TG_OPT1_(tg_detokenizer_new_opt, TgDetokenizeOptions, __VA_ARGS__, .end_ = 0)
#else
} /* extern "C" */

inline int64_t tg_tokenize(TgTokenizer *t, const char *text, size_t nbytes, int32_t *out, size_t cap,
                           TgTokenizeOptions o = TgTokenizeOptions()) {
  o.size = sizeof o;
  return tg_tokenize_opt(t, text, nbytes, out, cap, &o);
}

inline TgDetokenizer *tg_detokenizer_new(const TgTokenizer *t,
                                         TgDetokenizeOptions o = TgDetokenizeOptions()) {
  o.size = sizeof o;
  return tg_detokenizer_new_opt(t, &o);
}

#endif
#endif
