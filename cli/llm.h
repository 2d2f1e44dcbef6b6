/* llm.h: what `tg chat`, `tg run FILE.gguf` and `tg bench llm` share: a model that is open, and replies. */
#ifndef TG_CLI_LLM_H
#define TG_CLI_LLM_H
#include "cli.h"
#include "tg_llm.h"

/* Of the commands that generate; each has them in its table of options. */
typedef struct LlmChoices {
  int64_t context, tokens, top_k, seed, threads, activations;
  double temperature, top_p, min_p, repeat;
  const char *device, *cache, *grammar, *schema, *pooling;
  CliTexts stop, lora;
} LlmChoices;

/* what they are where nothing is said */
#define LLM_USUAL                                                                                            \
  { .temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05, .repeat = 1, .seed = 1 }

/* What the last reply took. */
typedef struct LlmRates {
  int64_t kept, prompt, tokens; /* kept: of the prompt, was in the cache already */
  double prompt_s, tokens_s;
} LlmRates;

typedef struct LlmSession {
  const LlmChoices *o;
  TgContext *ctx;
  TgLlm *m;
  TgTokenizer *tokenizer;
  TgSampler *sampler;
  TgGrammar *grammar; /* NULL: none is asked for */
  LlmRates rates;
  bool exact;   /* of what the cache has only whole blocks are taken: the same prompt, the same bits */
  bool stopped; /* Ctrl-C ended the reply */
  uint64_t seed;
} LlmSession;

/* A piece of the reply, as soon as it is known. */
typedef void (*LlmPiece)(const char *text, size_t n, void *user);

/* CLI_USAGE, and it was said why, where one of them leaves no room for another. */
int llm_choices_refuse(const LlmChoices *o);
/* batch: of TgLlmOptions. false: it was said why */
bool llm_session_open(LlmSession *s, const char *path, const LlmChoices *o, int64_t sequences, int64_t batch);
void llm_session_close(LlmSession *s);
/* Whether the model goes on with texts; else it was said that it does not, and what does. */
bool llm_session_generates(const LlmSession *s, const char *path);
/* One line about the model, after it was opened in so many seconds. */
void llm_session_say(const LlmSession *s, const char *path, double seconds);

/* ---- reply.c: one reply, step by step */
typedef enum LlmEnd {
  LLM_GOES_ON,
  LLM_ENDED,
  LLM_FULL,
  LLM_FAILED
} LlmEnd; /* FULL: no room for more tokens */

/* prompt: n bytes, in which control tokens count where `special`; or ids: n tokens. tokens: at most so many;
 * 0: what the context has room for. stop may be NULL. The sampler begins anew with the seed, the grammar too;
 * they and stop outlive the reply. token, which may be NULL, is told each token with the logits that it was
 * drawn from, before its text. */
typedef struct LlmAsk {
  const char *prompt;
  const int32_t *ids;
  size_t n;
  bool special;
  int64_t sequence, tokens;
  const CliTexts *stop;
  TgSampler *sampler;
  TgGrammar *grammar; /* NULL: any text */
  uint64_t seed;
  LlmPiece piece;
  void (*token)(int64_t id, const float *logits, void *user);
  void *user;
} LlmAsk;

typedef struct LlmReply LlmReply;
/* Whether a text has far more tokens than the context has room for, which is an error. */
bool llm_is_too_long(LlmSession *s, const char *prompt, size_t n, bool special);
/* The ids of a text, with what begins and ends it where the model wants that, to be freed; NULL: an error. */
int32_t *llm_text_ids(LlmSession *s, const char *text, size_t n, int64_t *count);
/* The ids of a prompt, to be freed; NULL: an error. BOS is put before it unless the text has it. */
int32_t *llm_prompt_ids(LlmSession *s, const char *prompt, size_t n, bool special, int64_t *count);
LlmReply *llm_reply_begin(LlmSession *s, const LlmAsk *ask); /* NULL: an error in the context */
/* A block of the prompt, or a token; the last block makes the first token. */
LlmEnd llm_reply_step(LlmReply *r);
/* The token that is to be computed next, where it is one that the reply made; -1: the prompt goes on. Who
 * computes it in the reply's sequence (tg_llm_eval_many, in so many seconds) says so, and the next is made.
 */
int32_t llm_reply_next(const LlmReply *r);
LlmEnd llm_reply_computed(LlmReply *r, double seconds);
/* What is held back goes out. How it ended; LLM_GOES_ON: it was left. NULL, which failed, is fine. */
LlmEnd llm_reply_end(LlmReply *r);

/* ---- llm.c again */
/* The text that follows `prompt`, in pieces. special: control tokens in the prompt count. What the cache has
 * of the prompt is not read again. false: an error in the context. */
bool llm_reply(LlmSession *s, const char *prompt, size_t n, bool special, LlmPiece piece, void *user);
/* A piece of a reply to stdout; what cannot be written ends the reply as Ctrl-C does, and main says why. */
void llm_print(const LlmSession *s, const char *text, size_t n);
void llm_rates_say(const LlmSession *s, FILE *to, bool dim);
/* From now on this signal (SIGINT: Ctrl-C) ends the reply that is being made, and nothing else;
 * llm_interrupts counts those since. */
void llm_catch_interrupt(int number);
int llm_interrupts(void);
void llm_interrupts_reset(LlmSession *s);

bool llm_is_gguf(const char *path); /* by its first bytes; false, errno: no file */
/* A gguf file, or a folder with config.json. False: the running command has refused it. */
bool llm_is_model(const char *path);
/* `tg run FILE.gguf --prompt`: the completion to stdout. The exit code. */
int llm_complete(const char *path, const char *prompt, const LlmChoices *o);

#define LLM_LORA_OF(T, field)                                                                                \
  CLI_TEXTS_OF(T, field.lora, "lora", "FILE[=SCALE]",                                                        \
               "an adapter, as tg train lora writes it; several add up")
#define LLM_CACHE_OF(T, field)                                                                               \
  CLI_TEXT_OF(T, field, "cache", "f32|f16|bf16|q8_0", "what a model keeps keys and values as (f32)")
#define LLM_ACTIVATIONS_OF(T, field)                                                                         \
  CLI_WHOLE_OF(T, field, "activations", 8, 32, "bits of what weights are multiplied with: 8, 16 or 32 (16)")
#define LLM_POOLING_OF(T, field)                                                                             \
  CLI_TEXT_OF(T, field, "pooling", "mean|cls|last", "what embeddings are made of (as the file says)")
#define LLM_OPTIONS_OF(T, field)                                                                             \
  CLI_WHOLE_OF(T, field.context, "context", 1, 1 << 24, "tokens of context (the model's, at most 4096)"),    \
      CLI_WHOLE_OF(T, field.tokens, "tokens", 1, INT32_MAX,                                                  \
                   "tokens of a reply, at most (all of the context)"),                                       \
      CLI_REAL_OF(T, field.temperature, "temperature", 0, 100, "0: always the likeliest token (0.8)"),       \
      CLI_WHOLE_OF(T, field.top_k, "top-k", 0, INT32_MAX, "of so many likeliest tokens; 0: of all (40)"),    \
      CLI_REAL_OF(T, field.top_p, "top-p", 0, 1, "of the likeliest with this share (0.95)"),                 \
      CLI_REAL_OF(T, field.min_p, "min-p", 0, 1, "of those at least so likely beside the first (0.05)"),     \
      CLI_REAL_OF(T, field.repeat, "repeat-penalty", 0.1, 10, "of tokens that are there already (1)"),       \
      CLI_WHOLE_OF(T, field.seed, "seed", 0, INT32_MAX, "the same seed gives the same random numbers (1)"),  \
      CLI_TEXTS_OF(T, field.stop, "stop", "TEXT", "ends a reply, and is not shown; may be given often"),     \
      CLI_TEXT_OF(T, field.grammar, "grammar", "FILE", "replies are what this grammar (GBNF) has"),          \
      CLI_TEXT_OF(T, field.schema, "schema", "FILE", "replies are JSON of this schema"),                     \
      LLM_LORA_OF(T, field), LLM_CACHE_OF(T, field.cache), LLM_ACTIVATIONS_OF(T, field.activations),         \
      CLI_TEXT_OF(T, field.device, "device", "NAME", "instead of $TG_DEV"),                                  \
      CLI_WHOLE_OF(T, field.threads, "threads", 1, 4096, "threads of the CPU")
#endif
