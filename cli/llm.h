/* llm.h: what the commands that run a language model share: an open model, and its replies. */
#ifndef TG_CLI_LLM_H
#define TG_CLI_LLM_H
#include "cli.h"
#include "picture.h"
#include "tg_llm.h"

/* The options of the commands that generate text; each lists them in its own table. */
typedef struct LlmChoices {
  /* guesses: tokens that the draft guesses at once */
  int64_t context, tokens, top_k, seed, threads, activations, guesses;
  int64_t tiles; /* of a picture, at most; 0: none; -1: as many as the model's own processor makes */
  double temperature, top_p, min_p, repeat;
  /* draft: "lookup", or the path of a model */
  const char *device, *cache, *grammar, *schema, *pooling, *mmproj, *draft;
  CliTexts stop, lora, picture;
  bool always; /* guess as many tokens as possible, even if guesses cost more time than they save */
} LlmChoices;

/* The defaults. */
#define LLM_USUAL                                                                                            \
  {                                                                                                          \
    .temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05, .repeat = 1, .seed = 1, .guesses = 7,     \
    .tiles = -1                                                                                              \
  }

/* Rows of the largest step if tokens are guessed: one token and the guesses. It is the default of tg serve,
 * so that both give the same texts. */
enum { LLM_ROWS = 16 };

/* The work and the times of the last reply. */
typedef struct LlmRates {
  int64_t kept, prompt, tokens; /* kept: tokens of the prompt that were in the cache already */
  double prompt_s, tokens_s;
  int64_t guessed, right; /* tokens that were computed as guesses; guesses that were right */
} LlmRates;

/* How a model reads pictures (sight.c). lists: the template takes contents that are lists of parts. mark:
 * represents a picture in a prompt. guard: replaces a mark in a user's text. */
typedef struct LlmSight {
  TgVision *vision; /* NULL: the model reads no pictures */
  bool lists;
  char mark[40], guard[40];
} LlmSight;

/* A picture of a prompt, and the place of its first token among the prompt's ids. The tokens of its other
 * views follow, with text between them. */
typedef struct LlmShown {
  const Picture *picture;
  int64_t at;
} LlmShown;

typedef struct LlmSession {
  const LlmChoices *o;
  TgContext *ctx;
  TgLlm *m;
  TgTokenizer *tokenizer;
  TgSampler *sampler;
  TgGrammar *grammar; /* NULL: replies are free text */
  LlmSight sight;
  TgLlm *small;   /* a smaller model that guesses tokens; NULL: there is none */
  TgDraft *draft; /* used by llm_reply; NULL: nothing is guessed */
  LlmRates rates;
  bool exact;   /* only whole blocks of the cache are reused, so that the same prompt gives the same bits */
  bool stopped; /* Ctrl-C ended the reply */
  uint64_t seed;
} LlmSession;

/* Receives a piece of the reply as soon as it is known. */
typedef void (*LlmPiece)(const char *text, size_t n, void *user);

/* Returns CLI_USAGE, with the reason printed, if options exclude each other or one that is needed is
 * missing. */
int llm_choices_refuse(const LlmChoices *o);
/* batch: as in TgLlmOptions. Returns false if it failed; the reason was printed. */
bool llm_session_open(LlmSession *s, const char *path, const LlmChoices *o, int64_t sequences, int64_t batch);
/* Sets *draft to what guesses the tokens of this sequence; NULL: nothing is guessed. Returns false on an
 * error. */
bool llm_session_draft(LlmSession *s, int64_t sequence, TgDraft **draft);
void llm_session_close(LlmSession *s);
/* Returns whether the model can continue texts. If not, prints this, and which command can use it. */
bool llm_session_generates(const LlmSession *s, const char *path);
/* Prints one line about the model, which was opened in this time. */
void llm_session_say(const LlmSession *s, const char *path, double seconds);

/* ---- reply.c: one reply, step by step */
/* LLM_FULL: there is no room for more tokens, or the reply has as many as were asked for. */
typedef enum LlmEnd { LLM_GOES_ON, LLM_ENDED, LLM_FULL, LLM_FAILED } LlmEnd;

/* What a reply continues: a text of n bytes (control tokens in it count if `special`), or ids, n tokens.
 * shown: the prompt's pictures, whose tokens are in ids, or whose marks are in the text. tokens: the most
 * that the reply may have; 0: as many as fit into the context. stop may be NULL. The sampler is reset with
 * the seed, and the grammar too; both, and stop, must outlive the reply. token may be NULL; it is called with
 * each token and the logits that it was drawn from, before the token's text is passed on. */
typedef struct LlmAsk {
  const char *prompt;
  const int32_t *ids;
  size_t n;
  bool special;
  LlmShown *shown;
  size_t nshown;
  int64_t sequence, tokens;
  const CliTexts *stop;
  TgSampler *sampler;
  TgGrammar *grammar; /* NULL: any text is allowed */
  TgDraft *draft;     /* NULL: no tokens are guessed */
  uint64_t seed;
  LlmPiece piece;
  void (*token)(int64_t id, const float *logits, void *user);
  void *user;
} LlmAsk;

typedef struct LlmReply LlmReply;
/* Returns whether a text has far more tokens than fit into the context; if so, an error is set. */
bool llm_is_too_long(LlmSession *s, const char *prompt, size_t n, bool special);
/* Returns the ids of a text, to be freed, with the tokens that begin and end it if the model expects them;
 * NULL: an error. */
int32_t *llm_text_ids(LlmSession *s, const char *text, size_t n, int64_t *count);
/* Returns the ids of a prompt, to be freed; NULL: an error. BOS is put in front unless the text has it. */
int32_t *llm_prompt_ids(LlmSession *s, const char *prompt, size_t n, bool special, int64_t *count);
LlmReply *llm_reply_begin(LlmSession *s, const LlmAsk *ask); /* NULL: an error in the context */
/* Computes a block of the prompt, or a token, or a token and guesses. The last block also makes the first
 * token. */
LlmEnd llm_reply_step(LlmReply *r);
bool llm_reply_reads(const LlmReply *r); /* whether tokens of the prompt are still to be read */
/* For a reply whose prompt was read. Writes the tokens to compute next into ids: one that the reply has made,
 * and guesses of what follows it, `room` in all at most. beside: rows of other replies in the same step.
 * Returns how many ids there are; -1: the reply has failed. The caller computes them in the reply's sequence
 * by tg_llm_eval_many and then calls llm_reply_computed with the first of their rows and the seconds that
 * they took. That accepts the guesses that were right and makes the next token. */
int64_t llm_reply_rows(LlmReply *r, int64_t room, int64_t beside, int32_t *ids);
LlmEnd llm_reply_computed(LlmReply *r, int64_t row, double seconds);
/* Passes on the text that was held back, and frees the reply. Returns how it ended; LLM_GOES_ON: it was
 * abandoned. r NULL (a reply that failed to begin) gives LLM_FAILED. */
LlmEnd llm_reply_end(LlmReply *r);

/* ---- llm.c again */
/* Makes the text that follows `prompt`, in pieces. special: control tokens in the prompt count. shown: the
 * prompt's pictures. The part of the prompt in the cache is not read again. Returns false on an error. */
bool llm_reply(LlmSession *s, const char *prompt, size_t n, bool special, LlmShown *shown, size_t nshown,
               LlmPiece piece, void *user);
/* Writes a piece of a reply to stdout. If it cannot be written, the reply is cancelled as by Ctrl-C, and main
 * prints the reason. */
void llm_print(const LlmSession *s, const char *text, size_t n);
void llm_rates_say(const LlmSession *s, FILE *to, bool dim);
/* From now on this signal (SIGINT: Ctrl-C) ends only the reply that is being made. llm_interrupts counts
 * them. */
void llm_catch_interrupt(int number);
int llm_interrupts(void);
void llm_interrupts_reset(LlmSession *s);

bool llm_is_gguf(const char *path); /* decided by its first bytes; false with errno set: no such file */
/* Returns whether the path is a gguf file, or a folder with config.json; if not, the running command refuses
 * it. */
bool llm_is_model(const char *path);
/* `tg run FILE.gguf --prompt`: writes the completion to stdout. Returns the exit code. */
int llm_complete(const char *path, const char *prompt, const LlmChoices *o);

#define LLM_LORA_OF(T, field)                                                                                \
  CLI_TEXTS_OF(T, field.lora, "lora", "FILE[=SCALE]",                                                        \
               "an adapter, as tg train lora writes it; several add up")
#define LLM_PICTURE_OF(T, field)                                                                             \
  CLI_TEXTS_OF(T, field.picture, "picture", "FILE",                                                          \
               "PNG, JPEG or PPM that the model is shown; wants --mmproj")
#define LLM_MMPROJ_OF(T, field)                                                                              \
  CLI_TEXT_OF(T, field.mmproj, "mmproj", "FILE", "the gguf file of what reads pictures for the model")
#define LLM_CACHE_OF(T, field)                                                                               \
  CLI_TEXT_OF(T, field, "cache", "f32|f16|bf16|q8_0", "what a model keeps keys and values as (f32)")
#define LLM_ACTIVATIONS_OF(T, field)                                                                         \
  CLI_WHOLE_OF(T, field, "activations", 8, 32, "bits of what weights are multiplied with: 8, 16 or 32 (16)")
#define LLM_POOLING_OF(T, field)                                                                             \
  CLI_TEXT_OF(T, field, "pooling", "mean|cls|last|rank", "what a text becomes (as the file says)")
#define LLM_DRAFT_OF(T, field)                                                                               \
  CLI_TEXT_OF(T, field.draft, "draft", "FILE",                                                               \
              "guess tokens by this small model, or by the text so far (lookup)"),                           \
      CLI_WHOLE_OF(T, field.guesses, "draft-tokens", 0, LLM_ROWS - 1,                                        \
                   "that are guessed at once, at most (7)")
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
      CLI_WHOLE_OF(T, field.tiles, "tiles", 0, 256,                                                          \
                   "shown beside a picture, at most; 0: none (as the model's processor has it)"),            \
      LLM_DRAFT_OF(T, field), LLM_LORA_OF(T, field), LLM_CACHE_OF(T, field.cache),                           \
      LLM_ACTIVATIONS_OF(T, field.activations),                                                              \
      CLI_TEXT_OF(T, field.device, "device", "NAME", "instead of $TG_DEV"),                                  \
      CLI_WHOLE_OF(T, field.threads, "threads", 1, 4096, "threads of the CPU")
#endif
