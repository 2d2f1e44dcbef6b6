/* tg_llm.h: language models of gguf files, built on tg.h, tg_nn.h and tg_io.h alone: tokenizers, models with
 * their cache, samplers, chat templates.
 *
 * What a file says is not trusted: every count, shape and id is checked, and an error (TG_ERR_VALUE) says
 * what is wrong. A tokenizer, a model, a sampler and a template end before the context is closed. Texts are
 * UTF-8; what is no UTF-8 is taken as bytes. */
#ifndef TG_LLM_H
#define TG_LLM_H
#include "tg_io.h"
#include "tg_nn.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizers: tokenizer.ggml.* of a gguf file. Models: gpt2 (byte-level byte pairs, the patterns of
 * tokenizer.ggml.pre by pcre2), llama (SentencePiece's byte pairs), t5 (its unigrams), bert (WordPiece). */
typedef struct TgTokenizer TgTokenizer;

/* gguf: what tg_gguf_load gave; it may end before the tokenizer. NULL: an error; TG_ERR_VALUE names the
 * model, the patterns or the array that is not as it should be. */
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
 * the text and EOS after it, where the file wants them. inside: the text goes on after another, so no blank
 * is put before it. */
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
 * that SentencePiece has before a text stays. bytes: each token gives its own bytes at once, be they a
 * part of a character. */
typedef struct TgDetokenizeOptions {
  size_t size;
  const char *set;
  bool special, inside, bytes;
  int end_;
} TgDetokenizeOptions;

/* ids as a text that grows. A piece never ends within a character, without .bytes. t must outlive it. */
typedef struct TgDetokenizer TgDetokenizer;
TG_API TgDetokenizer *tg_detokenizer_new_opt(const TgTokenizer *t, const TgDetokenizeOptions *o);
/* What there is to show after this token, perhaps nothing; ended by a 0 byte, valid until the next call.
 * NULL: TG_ERR_VALUE, no such id. */
TG_API const char *tg_detokenizer_put(TgDetokenizer *d, int64_t id, size_t *nbytes);
/* What is left: U+FFFD for a character that never ended, else "". */
TG_API const char *tg_detokenizer_end(TgDetokenizer *d, size_t *nbytes);
TG_API void tg_detokenizer_free(TgDetokenizer *d); /* NULL is fine */

/* ---- models: those that tg_llm_architecture names: llama (Llama 2 and 3, Mistral, SmolLM, and Mixtral by
 * its experts), qwen2, qwen3, gemma3, phi3, deepseek2, gpt-oss and others that go on with texts, and
 * encoders, which turn them into vectors: bert (XLM-RoBERTa too), nomic-bert, jina-bert-v2, gemma-
 * embedding. Weights are views of the file, or packed (.activations): quantised values are computed where
 * a product needs them. Keys and values of the tokens so far are kept in a cache. A step is a captured
 * program (tg_jit): the first two of each size are planned and compiled, later ones are replayed. */
typedef struct TgLlm TgLlm;

/* context: tokens that the cache has room for; 0: those of the training, at most 4096. block: tokens of a
 * prompt that are computed at once; 0: 128. sequences: texts that are worked on in turn, each with a cache
 * of its own; 0: 1. batch: of so many of them (there may be fewer) tg_llm_eval_many computes the next
 * token at once, and fewer in a smaller step; 0: there is no such step; -1: 16, and none of one sequence.
 * cache: TG_F32 (the default), TG_F16 or TG_BF16. cache_type: the same as a text, "f32", "f16", "bf16", or
 * "q8_0": 8 bits each, and a scale for 32 of them; NULL: what cache says. activations: 16 (the default,
 * 0): on a CPU quantised matrices are packed when the model is opened (tg_packed_new), and what they are
 * multiplied with is rounded to 16 bits below the largest of 32 numbers; 8: to 8 bits, which is what
 * llama.cpp does and half the work; on a GPU, with 8 and 16, a prompt's tokens are multiplied as f16 by
 * its matrix units; 32: f32, and weights stay views of the file. pooling: what tg_llm_embed makes of a text,
 * "mean", "cls" or "last"; NULL: what the file says, else the mean. Of an encoder texts are read at once, so
 * block, batch and caches mean nothing to it, and the context is at most that of the training. */
typedef struct TgLlmOptions {
  size_t size;
  const char *set;
  int64_t context, block;
  TgDType cache;
  int64_t sequences, batch;
  const char *cache_type;
  int64_t activations;
  const char *pooling;
  int end_;
} TgLlmOptions;

TG_API const char *tg_llm_architecture(int i); /* those that there are; NULL past the last */
/* [options] NULL: an error. TG_ERR_VALUE: an architecture, a scaling or a type that is not here, a key or a
 * tensor that is missing or superfluous, or one whose shape is not what the numbers of the file say: the text
 * names it, and both shapes. A file without a vocabulary is a model without a tokenizer. */
TG_API TgLlm *tg_llm_open_opt(TgContext *ctx, const char *path, const TgLlmOptions *o);
TG_API void tg_llm_free(TgLlm *m); /* NULL is fine */

/* name may be "", chat_template NULL; they live as long as the model. encoder: it has embeddings, or,
 * where it ranks, tg_llm_rank, and generates nothing. */
typedef struct TgLlmAbout {
  size_t size;
  const char *name, *architecture, *chat_template;
  int64_t parameters, context, trained_context, layers, width, vocabulary, cache_bytes, sequences, block,
      batch;
  bool encoder, ranks;
} TgLlmAbout;

TG_API TgLlmAbout tg_llm_about(const TgLlm *m);
TG_API TgTokenizer *tg_llm_tokenizer(const TgLlm *m); /* the model's; NULL: it has none */
TG_API const TgValue *tg_llm_gguf(const TgLlm *m);    /* what the file says; the model's */
/* What follows is about this sequence, 0 .. sequences - 1; the first, where nothing was said. What it
 * computes does not depend on the others. TG_ERR_VALUE: there are not so many. */
TG_API TgStatus tg_llm_use(TgLlm *m, int64_t sequence);
/* The cache begins with the first `length` tokens of another sequence: a prefix that both have is computed
 * once. TG_ERR_VALUE: that has not so many. */
TG_API TgStatus tg_llm_copy(TgLlm *m, int64_t from, int64_t length);
/* n tokens after those in the cache. TG_ERR_LIMIT: more than the context has room for; TG_ERR_VALUE: an id
 * that is none, nothing is computed then; TG_ERR_CANCELLED: what was computed stays in the cache. */
TG_API TgStatus tg_llm_eval(TgLlm *m, const int32_t *ids, int64_t n);
/* The next token ids[i] of sequence sequences[i], all different, n of them: `batch` at a time, as one
 * program whose rows do not meet: what a sequence computes depends neither on the others nor on its place,
 * to the bit. It may differ in the last bits from what tg_llm_eval computes, whose sums have another order:
 * who mixes both decides by the text alone which tokens are whose. Each has logits afterwards (tg_llm_use,
 * tg_llm_logits). Errors as tg_llm_eval, before anything is computed; TG_ERR_VALUE: a sequence that is
 * none, or twice. After TG_ERR_CANCELLED those of whole steps are done. */
TG_API TgStatus tg_llm_eval_many(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t n);
/* A text as a direction: `width` numbers, of its n tokens after the last norm what pooling says (the mean,
 * the first, the last), of length 1. The sequence has these tokens afterwards (an encoder's has none), and
 * no logits. TG_ERR_LIMIT, TG_ERR_VALUE: as tg_llm_eval; the file has no pooling; a reranker; it is not
 * finite. */
TG_API TgStatus tg_llm_embed(TgLlm *m, const int32_t *ids, int64_t n, float *out);
/* How well a document answers a query, as a reranker says it: a number that is larger for better ones.
 * tokens: of both, with what stands around them; may be NULL. TG_ERR_VALUE: the model is none, or has no
 * tokenizer; TG_ERR_LIMIT: both are more than the context. */
TG_API TgStatus tg_llm_rank(TgLlm *m, const char *query, size_t nquery, const char *document,
                            size_t ndocument, float *score, int64_t *tokens);
/* One for each token of the vocabulary, after the last token; until the next tg_llm_eval or tg_llm_rewind.
 * NULL: there are none. */
TG_API const float *tg_llm_logits(const TgLlm *m);
TG_API const int32_t *tg_llm_ids(const TgLlm *m,
                                 int64_t *n); /* the tokens in the cache, and how many (n may be NULL) */
/* Of the first tokens so many were computed as whole blocks, one after the other from the first on: what the
 * cache has of them is to the bit what any text gets that begins with them. What a text has after them
 * depends on where its prompt ended: who wants the same bits keeps these and reads the rest again. */
TG_API int64_t tg_llm_settled(const TgLlm *m);
/* Only the first `length` tokens stay in the cache. TG_ERR_VALUE: there are not so many. */
TG_API TgStatus tg_llm_rewind(TgLlm *m, int64_t length);

/* ---- learning */
/* The mean cross entropy of whole texts, f32 (), lazy: ids (texts, tokens), targets of the same shape: what
 * follows each token, -1 where it counts for nothing; integers. No cache is read or written. Gradients reach
 * what requires them: adapters. TG_ERR_SHAPE; TG_ERR_LIMIT: texts longer than the context. */
TG_API TgTensor *tg_llm_loss(TgLlm *m, TgTensor *ids, TgTensor *targets);

/* Low-rank adapters (LoRA). Beside weights W (out, in) that are chosen stand a (rank, in) and b (out, rank),
 * f32, and each product with W has alpha / rank x a^T b^T added; W stays what the file has. An adapter
 * belongs to its model, which may have several: their parts add up. Making, loading or freeing one begins all
 * sequences anew. Files are peft's: safetensors with its names, and adapter_config.json in the same folder
 * (both need jansson); rows of q and k are put into the order that each side has. */
typedef struct TgLora TgLora;

/* modules: of "q,k,v,o,gate,up,down" or "all" ("q,v"); where the model has several of them in one matrix it
 * is that. rank (8), alpha (16). dropout (0): of x, while tg_training is on. */
typedef struct TgLoraOptions {
  size_t size;
  const char *set;
  const char *modules;
  int64_t rank;
  double alpha, dropout;
  int end_;
} TgLoraOptions;

/* [options] A new one: a uniform within 1 / sqrt(in), b 0, so that nothing changes until it is trained. Its
 * parameters: tg_module_parameters(tg_lora_module, lora, ..). NULL: TG_ERR_VALUE, an option that cannot be, a
 * module that is not known or that the model has not; TG_ERR_LIMIT: more than 512 layers. */
TG_API TgLora *tg_lora_new_opt(TgLlm *m, const TgLoraOptions *o);
/* path: the safetensors file, or a folder with adapter_model.safetensors. scale: what it adds is multiplied
 * by this, 1 as it was trained. NULL: TG_ERR_IO; TG_ERR_VALUE: a tensor that is none of this model's, one of
 * a pair that is missing, a kind of adapter that is not here; TG_ERR_SHAPE: the text names the tensor and
 * both shapes. */
TG_API TgLora *tg_lora_load(TgLlm *m, const char *path, double scale);
/* base: what the original model is called, for peft; may be NULL. A folder is made where there is none. */
TG_API TgStatus tg_lora_save(const TgLora *l, const char *path, const char *base);
TG_API void tg_lora_free(TgLora *l);         /* NULL is fine; tg_llm_free ends those that are left */
TG_API const TgModule *tg_lora_module(void); /* a TgLora as a module: training state, parameters */

/* Steps of learning in little memory. Of a step only what goes into each layer is kept; a layer is computed
 * again when its gradients are, and what it decodes of its weights is given back before the next one. l: what
 * is learned, NULL: the weights, after tg_llm_unfreeze; optim: of its parameters. All outlive it. NULL:
 * TG_ERR_VALUE, another adapter of the model has dropout; TG_ERR_STATE: the weights are frozen. */
typedef struct TgLlmLearner TgLlmLearner;
TG_API TgLlmLearner *tg_llm_learner(TgLlm *m, TgLora *l, TgOptim *optim);
/* One step: gradients of tg_llm_loss of these texts (within rounding), and the optimiser's step with them.
 * ids and targets as there, each whole in memory; another shape than the last time's is planned anew.
 * loss: as it was before the step; may be NULL. Errors as tg_llm_loss. TG_ERR_CANCELLED: nothing was
 * learned. */
TG_API TgStatus tg_llm_learn(TgLlmLearner *s, TgTensor *ids, TgTensor *targets, double *loss);
TG_API void tg_llm_learner_free(TgLlmLearner *s); /* NULL is fine */

/* From now on the weights can be learned: each is f32, in memory of its own; tg_llm_merge writes them to a
 * file, each of the type that it had. TG_ERR_DTYPE: one is quantised; TG_ERR_LIMIT: more than 8192 of them;
 * nothing has changed. */
TG_API TgStatus tg_llm_unfreeze(TgLlm *m);
TG_API const TgModule *tg_llm_module(void); /* such a model as a module: training state, parameters */
/* The weights, at most cap of them (out may be NULL where cap is 0); returns how many there are. */
TG_API int tg_llm_parameters(const TgLlm *m, TgTensor **out, int cap);

/* weights: so many changed. error: the largest over them of |stored - exact| / |exact|, by the roots of sums
 * of squares; of f32 about 1e-8, of what is quantised as its type has it. */
typedef struct TgLlmMerged {
  int64_t weights;
  double error;
} TgLlmMerged;

/* The model's file with what its adapters add put into its weights, and with those that were learned, as a
 * new file (which appears whole); each tensor stays of its type. about may be NULL. TG_ERR_VALUE: no
 * adapter, a model of several files, a type that nothing is quantised to here (tg_ggml_encode), path is
 * the model's own. */
TG_API TgStatus tg_llm_merge(TgLlm *m, const char *path, TgLlmMerged *about);

/* items: of the dataset; tokens: that count, in all of them; cut: texts that were longer. */
typedef struct TgLlmTexts {
  int64_t items, tokens, cut;
} TgLlmTexts;

/* length: tokens of an item (the context, at most 256). fit: fewer where no text is as long, a multiple of
 * 32, so that short texts take no time for what is not there. about: what was read. */
typedef struct TgLlmDatasetOptions {
  size_t size;
  const char *set;
  int64_t length;
  TgLlmTexts *about;
  bool fit;
  int end_;
} TgLlmDatasetOptions;

/* [options] Texts to learn from; an item is ids and targets, i32 (length), as tg_llm_loss takes them. A file
 * with an object a line: {"text"}: all of it counts, and what is longer goes on in the next item; {"prompt",
 * "completion"}: the completion counts; {"messages"}, by the model's chat template: what "assistant" says
 * counts, with what ends it. Other files (no '{' first) are one text. What of the last two is longer is cut.
 * tg_dataset_end ends it; it may outlive the model. On an error .item is NULL: TG_ERR_IO; TG_ERR_VALUE, with
 * the line. */
TG_API TgDataset tg_llm_dataset_opt(TgLlm *m, const char *path, const TgLlmDatasetOptions *o);

/* ---- samplers: the next token from logits, in this order: bias, penalties, DRY, top-k, typical, top-p,
 * min-p, temperature, a draw. The same options, seed and logits give the same tokens on every machine. */
typedef struct TgSampler TgSampler;

/* temperature (0.8; 0: always the best). top_k (40; 0: all), top_p (0.95), min_p (0.05), typical_p (1: off).
 * Among the `last` (64) tokens: repeat_penalty (1) divides a logit above 0 and multiplies one below,
 * presence_penalty (0) and, times its count, frequency_penalty (0) are taken off. DRY: a token that would go
 * on with a repetition of m >= dry_allowed (2) tokens loses dry_multiplier (0: off) * dry_base (1.75) ^ (m -
 * dry_allowed), within dry_last (1024) tokens; no repetition reaches over one of the nbreakers tokens. bias:
 * added to the logits of nbias ids. Lists are copied. */
typedef struct TgSamplerOptions {
  size_t size;
  const char *set;
  double temperature, top_p, min_p, typical_p;
  int64_t top_k, last;
  double repeat_penalty, presence_penalty, frequency_penalty;
  double dry_multiplier, dry_base;
  int64_t dry_allowed, dry_last;
  uint64_t seed;
  const int32_t *bias_ids;
  const float *bias;
  int64_t nbias;
  const int32_t *breakers;
  int64_t nbreakers;
  int end_;
} TgSamplerOptions;

/* [options] TG_ERR_VALUE: an option that cannot be. */
TG_API TgSampler *tg_sampler_new_opt(TgContext *ctx, int64_t vocabulary, const TgSamplerOptions *o);
TG_API void tg_sampler_free(TgSampler *s);                 /* NULL is fine */
TG_API void tg_sampler_reset(TgSampler *s, uint64_t seed); /* as new, with this seed: no tokens so far */
TG_API void tg_sampler_accept(TgSampler *s, int64_t id);   /* a token of the text, for the penalties */
/* logits: one for each token. -1: TG_ERR_VALUE, none of them is a finite number. */
TG_API int64_t tg_sampler_pick(TgSampler *s, const float *logits);
/* What tg_sampler_pick would draw from: at most cap ids and their shares (each may be NULL), the likeliest
 * first; returns how many there are. */
TG_API int64_t tg_sampler_candidates(TgSampler *s, const float *logits, int32_t *ids, double *p, size_t cap);

/* ---- grammars: which tokens may come next. text, n bytes: GBNF (docs/llm.md), whose rule `root` is what a
 * text may be. A grammar ends before its tokenizer. */
typedef struct TgGrammar TgGrammar;
/* NULL: TG_ERR_VALUE with the line; TG_ERR_LIMIT: it is too large. */
TG_API TgGrammar *tg_grammar_new(TgContext *ctx, const TgTokenizer *t, const char *text, size_t n);
/* The same of a JSON schema, n bytes; NULL and 0: any JSON object. TG_ERR_VALUE names what is not taken here.
 * */
TG_API TgGrammar *tg_grammar_json(TgContext *ctx, const TgTokenizer *t, const char *schema, size_t n);
TG_API void tg_grammar_free(TgGrammar *g);       /* NULL is fine */
TG_API TgStatus tg_grammar_reset(TgGrammar *g);  /* no tokens so far */
TG_API bool tg_grammar_ends(const TgGrammar *g); /* the text may end here */
/* logits, one for each token: what cannot follow becomes -infinity; what ends a reply can where the text may
 * end. TG_ERR_VALUE: nothing can. */
TG_API TgStatus tg_grammar_mask(TgGrammar *g, float *logits);
/* A token of the text. TG_ERR_VALUE: it cannot follow; nothing has changed. */
TG_API TgStatus tg_grammar_accept(TgGrammar *g, int64_t id);

/* ---- chat templates: tokenizer.chat_template, the part of Jinja that these use (docs/llm.md lists it), with
 * trim_blocks and lstrip_blocks. */
typedef struct TgTemplate TgTemplate;
/* TG_ERR_VALUE: no template, with the line; a tag that is not known here. */
TG_API TgTemplate *tg_template_new(TgContext *ctx, const char *text, size_t nbytes);
TG_API void tg_template_free(TgTemplate *t); /* NULL is fine */

/* steps (2,000,000), bytes (16 MiB) of text: more is TG_ERR_LIMIT. now: seconds since 1970 that strftime_now
 * takes; 0: the clock's. */
typedef struct TgTemplateOptions {
  size_t size;
  const char *set;
  int64_t steps, bytes, now;
  int end_;
} TgTemplateOptions;

/* [options] json: an object whose members are the template's names: messages, add_generation_prompt,
 * bos_token, eos_token, tools and so on. The text, ended by a 0 byte, lives until the next call with t;
 * nbytes may be NULL. NULL: TG_ERR_VALUE, with the line; what raise_exception says follows "it refuses: ". */
TG_API const char *tg_template_render_opt(TgTemplate *t, const char *json, size_t *nbytes,
                                          const TgTemplateOptions *o);

typedef struct TgMessage {
  const char *role, *content; /* "system", "user", "assistant" */
} TgMessage;

/* [options] The same for n messages, with the names of the tokens that begin and end a text, up to where the
 * reply begins. tokenizer may be NULL. */
TG_API const char *tg_template_chat_opt(TgTemplate *t, const TgTokenizer *tokenizer, const TgMessage *m,
                                        size_t n, size_t *nbytes, const TgTemplateOptions *o);

#ifndef __cplusplus
#define tg_template_render(...) TG_OPT3_(tg_template_render_opt, TgTemplateOptions, __VA_ARGS__, .end_ = 0)
#define tg_template_chat(...)   TG_OPT5_(tg_template_chat_opt, TgTemplateOptions, __VA_ARGS__, .end_ = 0)
#define tg_sampler_new(...)     TG_OPT2_(tg_sampler_new_opt, TgSamplerOptions, __VA_ARGS__, .end_ = 0)
#define tg_llm_open(...)        TG_OPT2_(tg_llm_open_opt, TgLlmOptions, __VA_ARGS__, .end_ = 0)
#define tg_lora_new(...)        TG_OPT1_(tg_lora_new_opt, TgLoraOptions, __VA_ARGS__, .end_ = 0)
#define tg_llm_dataset(...)     TG_OPT2_(tg_llm_dataset_opt, TgLlmDatasetOptions, __VA_ARGS__, .end_ = 0)
#define tg_tokenize(...)        TG_OPT5_(tg_tokenize_opt, TgTokenizeOptions, __VA_ARGS__, .end_ = 0)
#define tg_detokenizer_new(...) TG_OPT1_(tg_detokenizer_new_opt, TgDetokenizeOptions, __VA_ARGS__, .end_ = 0)
#else
} /* extern "C" */

inline const char *tg_template_render(TgTemplate *t, const char *json, size_t *nbytes,
                                      TgTemplateOptions o = TgTemplateOptions()) {
  o.size = sizeof o;
  return tg_template_render_opt(t, json, nbytes, &o);
}

inline const char *tg_template_chat(TgTemplate *t, const TgTokenizer *k, const TgMessage *m, size_t n,
                                    size_t *nbytes, TgTemplateOptions o = TgTemplateOptions()) {
  o.size = sizeof o;
  return tg_template_chat_opt(t, k, m, n, nbytes, &o);
}

inline TgSampler *tg_sampler_new(TgContext *ctx, int64_t vocabulary,
                                 TgSamplerOptions o = TgSamplerOptions()) {
  o.size = sizeof o;
  return tg_sampler_new_opt(ctx, vocabulary, &o);
}

inline TgLlm *tg_llm_open(TgContext *ctx, const char *path, TgLlmOptions o = TgLlmOptions()) {
  o.size = sizeof o;
  return tg_llm_open_opt(ctx, path, &o);
}

inline TgLora *tg_lora_new(TgLlm *m, TgLoraOptions o = TgLoraOptions()) {
  o.size = sizeof o;
  return tg_lora_new_opt(m, &o);
}

inline TgDataset tg_llm_dataset(TgLlm *m, const char *path, TgLlmDatasetOptions o = TgLlmDatasetOptions()) {
  o.size = sizeof o;
  return tg_llm_dataset_opt(m, path, &o);
}

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
