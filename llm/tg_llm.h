/* tg_llm.h: language models in gguf files and in Hugging Face's folders: tokenizers, models with their
 * caches, samplers, grammars and chat templates. It is built on tg.h, tg_nn.h and tg_io.h alone.
 *
 * A file is not trusted: every count, shape and id is checked, and an error (TG_ERR_VALUE) describes what is
 * wrong. Free a tokenizer, a model, a sampler or a template before its context is closed. Texts are UTF-8;
 * bytes that are not valid UTF-8 are treated as single bytes. */
#ifndef TG_LLM_H
#define TG_LLM_H
#include "tg_io.h"
#include "tg_nn.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizers: read from the keys tokenizer.ggml.* of a gguf file. The models are gpt2 (byte-level byte
 * pairs; pcre2 splits the text by the patterns of tokenizer.ggml.pre), llama (SentencePiece's byte pairs), t5
 * (SentencePiece's unigrams) and bert (WordPiece). */
typedef struct TgTokenizer TgTokenizer;

/* gguf: the result of tg_gguf_load, which may be freed before the tokenizer. Returns NULL on an error; the
 * text of TG_ERR_VALUE names the model, the patterns or the array that is wrong or unknown. */
TG_API TgTokenizer *tg_tokenizer_new(TgContext *ctx, const TgValue *gguf);
TG_API void tg_tokenizer_free(TgTokenizer *t);           /* NULL is fine */
TG_API int64_t tg_tokenizer_count(const TgTokenizer *t); /* ids are 0 .. count - 1 */
/* The bytes that id stands for. No 0 byte follows them, so read *nbytes for their number; nbytes may be NULL.
 * Returns NULL if there is no token with this id. */
TG_API const char *tg_token_text(const TgTokenizer *t, int64_t id, size_t *nbytes);
TG_API int64_t tg_token_id(const TgTokenizer *t, const char *text); /* finds control tokens, too; -1: none */

typedef enum TgTokenRole {
  TG_TOKEN_BOS = 0, /* at the beginning of a text */
  TG_TOKEN_EOS,     /* at the end of a text */
  TG_TOKEN_EOT,     /* at the end of a turn of a chat */
  TG_TOKEN_UNKNOWN,
  TG_TOKEN_PADDING
} TgTokenRole;

TG_API int64_t tg_token_special(const TgTokenizer *t, TgTokenRole role); /* -1: the file names none */
TG_API bool tg_token_ends(const TgTokenizer *t, int64_t id); /* it ends a reply: EOS, EOT, <|im_end|> .. */

/* special: control tokens are recognised in the text; otherwise "<s>" is read as three characters. ends: BOS
 * is put before the text and EOS after it if the file asks for them. inside: the text continues another text,
 * so no space is put before it. */
typedef struct TgTokenizeOptions {
  size_t size;
  const char *set;
  bool special, ends, inside;
  int end_;
} TgTokenizeOptions;

/* [options] Writes at most cap ids (out may be NULL if cap is 0) and returns the number of tokens of the
 * whole text, which may be more than cap. Returns -1 on an error. */
TG_API int64_t tg_tokenize_opt(TgTokenizer *t, const char *text, size_t nbytes, int32_t *out, size_t cap,
                               const TgTokenizeOptions *o);

/* special: control tokens are shown as they are written. inside: the text continues another text, so the
 * space that SentencePiece puts before a text is kept. bytes: each token gives its bytes at once, even if
 * they are only part of a character. */
typedef struct TgDetokenizeOptions {
  size_t size;
  const char *set;
  bool special, inside, bytes;
  int end_;
} TgDetokenizeOptions;

/* Turns ids into a growing text, token by token. Unless .bytes is set, a piece never ends inside a character.
 * t must outlive the detokenizer. */
typedef struct TgDetokenizer TgDetokenizer;
TG_API TgDetokenizer *tg_detokenizer_new_opt(const TgTokenizer *t, const TgDetokenizeOptions *o);
/* The text that can be shown after this token, which may be empty. It ends with a 0 byte and is valid until
 * the next call. NULL: TG_ERR_VALUE, there is no such id. */
TG_API const char *tg_detokenizer_put(TgDetokenizer *d, int64_t id, size_t *nbytes);
/* The rest of the text: U+FFFD if the last character was never completed, otherwise "". */
TG_API const char *tg_detokenizer_end(TgDetokenizer *d, size_t *nbytes);
TG_API void tg_detokenizer_free(TgDetokenizer *d); /* NULL is fine */

/* ---- model folders as Hugging Face has them: config.json, model.safetensors or its shards, and
 * tokenizer.json and tokenizer_config.json if they exist. tg_hf_load returns the map that a gguf file of the
 * model would give (tg_gguf_load), without places; "rope.halves" says that q and k have the halves of a head
 * one after the other. docs/llm.md lists the values of model_type; the tokenizers are byte pairs, unigrams
 * and WordPiece. Weights are views of the files, except experts that are a tensor each, and gpt_oss' packed
 * experts: these are put together in memory. Of a folder whose model reads pictures, too (model_type llava,
 * gemma3, idefics3, smolvlm), it returns the language model; tg_hf_load_vision returns what reads them: the
 * map that a mmproj gguf file would give. tg_value_free frees a map. NULL: TG_ERR_IO; TG_ERR_VALUE: what is
 * not supported, by name, or a build without jansson. */
TG_API TgValue *tg_hf_load(TgContext *ctx, const char *path);
TG_API TgValue *tg_hf_load_vision(TgContext *ctx, const char *path);

/* ---- models: tg_llm_architecture lists the architectures. Decoders continue texts: llama (Llama 2 and 3,
 * Mistral, SmolLM; Mixtral by its experts), qwen2, qwen3, gemma3, phi3, deepseek2, gpt-oss and more.
 * Encoders turn texts into vectors: bert (RoBERTa, XLM-RoBERTa too), nomic-bert, modern-bert, jina-bert-v2
 * and more. Weights are views of the file, or packed (.activations); quantised values are decoded where a
 * product needs them. The keys and values of the tokens so far are kept in a cache. A step is a captured
 * program (tg_jit): the first two runs of each size are planned and compiled, later runs replay the
 * program. */
typedef struct TgLlm TgLlm;

/* context: the number of tokens that the cache has room for; 0: the context of the training, but at most
 * 4096. block: tokens of a prompt that are computed at once; 0: 128. sequences: the number of texts that
 * are worked on in turn, each with a cache of its own; 0: 1. batch: the number of rows for which
 * tg_llm_eval_many computes the next tokens in one step, which may be larger than sequences; fewer rows
 * take a smaller step; 0: there is no such step; -1: 16, or none if there is one sequence. cache: TG_F32
 * (the default), TG_F16 or TG_BF16. cache_type: the same as a text, "f32", "f16", "bf16", or "q8_0": 8
 * bits for each element and one scale for 32 elements; NULL: as cache says. activations: the bits of the
 * numbers that quantised matrices are multiplied with; 16 (the default, 0): on a CPU these matrices are
 * packed when the model is opened (tg_packed_new), and activations are rounded to 16 bits below the
 * largest of 32 numbers; 8: they are rounded to 8 bits, as llama.cpp does, which is half the work, and a
 * prompt's to bf16 if the weights are bf16; on a GPU, with 8 and 16, a prompt's tokens are multiplied as
 * f16 by its matrix units; 32: products are f32, and weights stay views of the file. pooling: how
 * tg_llm_embed makes one vector of a text, "mean", "cls" or "last"; "rank": a decoder ranks texts by its
 * answer, "yes" or "no" (tg_llm_rank); NULL: as the file says, or the mean if it says nothing. An encoder
 * reads a text at once, so block, batch and the caches are ignored for it, and its context is at most the
 * context of the training. */
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

TG_API const char *tg_llm_architecture(int i); /* the names of all; NULL past the last */
/* [options] Returns NULL on an error. TG_ERR_VALUE: an architecture, a scaling or a type is not supported; a
 * key or a tensor is missing or superfluous; or the shape of a tensor contradicts the numbers of the file:
 * then the text names the tensor and both shapes. A file without a vocabulary gives a model without a
 * tokenizer. */
TG_API TgLlm *tg_llm_open_opt(TgContext *ctx, const char *path, const TgLlmOptions *o);
TG_API void tg_llm_free(TgLlm *m); /* NULL is fine */

/* name may be "", chat_template NULL; the texts live as long as the model. encoder: the model gives
 * embeddings (or, if ranks is set, the scores of tg_llm_rank) and generates no text. */
typedef struct TgLlmAbout {
  size_t size;
  const char *name, *architecture, *chat_template;
  int64_t parameters, context, trained_context, layers, width, vocabulary, cache_bytes, sequences, block,
      batch;
  bool encoder, ranks;
} TgLlmAbout;

TG_API TgLlmAbout tg_llm_about(const TgLlm *m);
TG_API TgTokenizer *tg_llm_tokenizer(const TgLlm *m); /* owned by the model; NULL: it has none */
TG_API const TgValue *tg_llm_gguf(const TgLlm *m);    /* the file's contents; owned by the model */
/* Selects the sequence, 0 .. sequences - 1, that the functions below work on. Before the first call it is the
 * first one. The results of a sequence do not depend on the other sequences. TG_ERR_VALUE: there is no such
 * sequence. */
TG_API TgStatus tg_llm_use(TgLlm *m, int64_t sequence);
/* Copies the first `length` tokens of another sequence to the beginning of this sequence's cache and drops
 * what it had, so that a common prefix is computed only once. TG_ERR_VALUE: the other sequence has fewer
 * tokens. */
TG_API TgStatus tg_llm_copy(TgLlm *m, int64_t from, int64_t length);
/* Computes n tokens after those in the cache. TG_ERR_LIMIT: the context has no room for them; TG_ERR_VALUE:
 * an id is out of range, and nothing is computed; TG_ERR_CANCELLED: the steps that were completed stay in the
 * cache. */
TG_API TgStatus tg_llm_eval(TgLlm *m, const int32_t *ids, int64_t n);
/* Computes n rows. Row i is the next token, ids[i], of sequence sequences[i]; rows of the same sequence
 * follow one another in its text. `batch` rows at a time are one program, in which the texts do not see each
 * other. To the bit, the result of a row depends neither on the other rows (except the earlier rows of its
 * own text), nor on its place, nor on whether its text has one row or many. It may differ in the last bits
 * from the result of tg_llm_eval, whose sums have another order. A caller that mixes both functions must
 * therefore choose between them by the text alone. Afterwards each sequence has the logits of its last row
 * (tg_llm_use, tg_llm_logits). Errors are those of tg_llm_eval and are found before anything is computed;
 * TG_ERR_VALUE: there is no such sequence. After TG_ERR_CANCELLED the rows of the steps that were completed
 * are in the caches. */
TG_API TgStatus tg_llm_eval_many(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t n);
/* The logits after row i of the last tg_llm_eval_many, one for each token of the vocabulary; valid until the
 * next call of it. NULL: it had no such row. */
TG_API const float *tg_llm_row_logits(const TgLlm *m, int64_t i);
/* Turns a text of n tokens into a vector of `width` numbers and length 1: after the last norm, the mean, the
 * first or the last of its tokens, as pooling says. Afterwards the sequence has these tokens (an encoder's
 * has none) and no logits. TG_ERR_LIMIT, TG_ERR_VALUE: as tg_llm_eval; TG_ERR_VALUE also if the file has no
 * pooling, the model is a reranker or the vector is not finite. */
TG_API TgStatus tg_llm_embed(TgLlm *m, const int32_t *ids, int64_t n, float *out);
/* Writes how well a document answers a query, as a reranker judges it: the larger the score, the better.
 * It is what the model's head gives; where the model says "yes" or "no" instead, it is the probability of
 * "yes", within 0 .. 1. A decoder's sequence then has the tokens of both texts, and no logits. tokens: the
 * number of tokens of both texts with the special tokens around them; may be NULL. TG_ERR_VALUE: the model
 * is not a reranker, or has no tokenizer; TG_ERR_LIMIT: the two texts are longer than the context. */
TG_API TgStatus tg_llm_rank(TgLlm *m, const char *query, size_t nquery, const char *document,
                            size_t ndocument, float *score, int64_t *tokens);
/* The logits after the last token, one for each token of the vocabulary; valid until the next tg_llm_eval or
 * tg_llm_rewind. NULL: there are none. */
TG_API const float *tg_llm_logits(const TgLlm *m);
TG_API const int32_t *tg_llm_ids(const TgLlm *m,
                                 int64_t *n); /* the tokens in the cache, and how many (n may be NULL) */
/* The number of tokens from the beginning that were computed as whole blocks, one after the other. Their part
 * of the cache has, to the bit, the values that any text with this beginning gets. The values of later tokens
 * depend on where the prompt ended, so a caller that needs the same bits keeps only the settled tokens and
 * computes the rest again. */
TG_API int64_t tg_llm_settled(const TgLlm *m);
/* Keeps only the first `length` tokens in the cache. TG_ERR_VALUE: there are fewer tokens. */
TG_API TgStatus tg_llm_rewind(TgLlm *m, int64_t length);

/* ---- pictures: read by the vision tower of a mmproj gguf file (general.architecture clip) beside a model's
 * own file. Its projector has the type "mlp" (LLaVA 1.5), "gemma3" (Gemma 3) or "idefics3" (SmolVLM, Idefics
 * 3). A picture is RGB bytes (height, width, 3), at most 32768 on a side. It is shown as one or more views.
 * A view is a square of the size that the tower reads: the whole picture, resized by the filter that the
 * model was trained with, or a tile of it. It becomes tg_vision_tokens vectors, which take the place of
 * tokens in the text. tg_vision_text has the text around them:
 *
 *     int64_t n = tg_vision_views(v, height, width);
 *     for (int64_t i = 0; i <= n; i++) {
 *       .. the ids of tg_vision_text(v, height, width, i), by tg_tokenize with .special, to tg_llm_eval
 *       if (i < n) tg_llm_eval_picture(m, v, rgb, height, width, i);
 *     } */
typedef struct TgVision TgVision;

/* tiles: how many tiles are shown beside the whole picture, at most 256. 0: as the model's own processor does
 * (with idefics3, as many as fill the picture once its longest edge has the length that the file names in
 * clip.vision.preproc_image_size; with gemma3, none); -1: none. More than 0: with idefics3 the longest edge
 * is shortened until there are so few; with gemma3, pan and scan: a picture at least 1.2 times as long as
 * wide is cut into crops of at least 256 pixels a side. */
typedef struct TgVisionOptions {
  size_t size;
  const char *set;
  int64_t tiles;
  int end_;
} TgVisionOptions;

/* [options] path: a mmproj gguf file, or a folder in Hugging Face's form, which has both models. A model has
 * at most one vision at a time; it is freed before the model, or with it. Returns NULL on an error.
 * TG_ERR_IO; TG_ERR_VALUE: an architecture or a projector is not supported (the text lists those that are); a
 * key or a tensor is missing or superfluous; the shape of a tensor contradicts the numbers of the file or the
 * width of m (the text names the tensor and both shapes); m is an encoder; or the projector has no tiles;
 * TG_ERR_LIMIT: a picture takes more tokens than the context; TG_ERR_STATE: m already has a vision. */
TG_API TgVision *tg_vision_open_opt(TgLlm *m, const char *path, const TgVisionOptions *o);
TG_API void tg_vision_free(TgVision *v);            /* NULL is fine */
TG_API int64_t tg_vision_tokens(const TgVision *v); /* tokens that a view takes */
/* The number of views of a picture of this size. 0: TG_ERR_VALUE, there is no such picture. */
TG_API int64_t tg_vision_views(const TgVision *v, int64_t height, int64_t width);
/* The text with control tokens before this view, or, if view is the number of views, after the last one. It
 * may be "", and is valid until the next call. NULL: TG_ERR_VALUE, there is no such picture or view. */
TG_API const char *tg_vision_text(TgVision *v, int64_t height, int64_t width, int64_t view);

/* image: the side of the square that the tower reads, in pixels; width: the numbers of a vector. begin, end:
 * text with control tokens around a picture without tiles, may be "". mark: what chat templates write
 * in place of a picture; NULL: there are no more marks. mutual: the tokens of a picture see each other in
 * both directions, as in Gemma 3. tokens: of a view. tiles: of a picture, at most; 0: there are none. */
typedef struct TgVisionAbout {
  size_t size;
  const char *projector, *begin, *end, *mark[3];
  int64_t tokens, image, width;
  bool mutual;
  int64_t tiles;
} TgVisionAbout;

TG_API TgVisionAbout tg_vision_about(const TgVision *v);
/* Of one view, tg_vision_pixels writes what the tower reads, (3, image, image); tg_vision_vectors writes the
 * projector's vectors, (tokens, width). TG_ERR_VALUE: there is no picture, it is too large, or there is no
 * such view. */
TG_API TgStatus tg_vision_pixels(TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, int64_t view,
                                 float *out);
TG_API TgStatus tg_vision_vectors(TgVision *v, const uint8_t *rgb, int64_t height, int64_t width,
                                  int64_t view, float *out);
/* Writes the ids that stand for the tokens of all views in tg_llm_ids, (views, tokens): n of them. They are
 * below 0 and come from a hash of all bytes of the picture, so two texts have a beginning in common only if
 * their pictures are the same. TG_ERR_VALUE: as tg_vision_pixels, or n is another number. */
TG_API TgStatus tg_vision_ids(TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, int32_t *ids,
                              int64_t n);
/* Computes a view of a picture after the tokens in the cache, without the text around it (tg_vision_text).
 * The logits are those after its last token. The same view after the same tokens gives the same bits. Do not
 * rewind to the middle of a view, because the tokens that are left may have seen those that are gone: rewind
 * to its beginning. Errors: as tg_vision_pixels and tg_llm_eval. */
TG_API TgStatus tg_llm_eval_picture(TgLlm *m, TgVision *v, const uint8_t *rgb, int64_t height, int64_t width,
                                    int64_t view);
/* ---- guesses: if memory limits the speed, a step of several rows takes little longer than a step of one
 * row. So some tokens are guessed and computed after the next token in the same step (tg_llm_eval_many). The
 * token that is drawn after each row (tg_llm_row_logits) tells whether the guess after it was right. From the
 * first wrong guess on, the guesses are removed again (tg_llm_rewind). The text is the same as without
 * guesses; only the time changes. */
typedef struct TgDraft TgDraft;

/* most (7): guesses at once. always: makes as many guesses as are allowed, not only as many as are worth
 * their time. sequence: the sequence of the small model that holds this text's tokens. */
typedef struct TgDraftOptions {
  size_t size;
  const char *set;
  int64_t most, sequence;
  bool always;
  int end_;
} TgDraftOptions;

/* [options] Guesses for one text of m, which must outlive the result: the tokens that followed the last 3
 * tokens (or 2, or 1) at their latest earlier occurrence in the text. NULL: TG_ERR_VALUE, m was opened
 * without a batch, or an option is out of range. */
TG_API TgDraft *tg_draft_lookup_opt(TgLlm *m, const TgDraftOptions *o);
/* [options] The same with the guesses of another model of the same context, which must outlive the result:
 * the tokens that it finds most likely. TG_ERR_VALUE: the tokens of the two models are not the same texts
 * (one model may have up to 128 more at the end), and the text names the first that differs; or both are the
 * same model. */
TG_API TgDraft *tg_draft_model_opt(TgLlm *m, TgLlm *small, const TgDraftOptions *o);
TG_API void tg_draft_free(TgDraft *d); /* NULL is fine */
/* Writes at most `most` guesses of what follows the n tokens `ids` to out and returns their number. That is
 * as many as pay off, judged by how many were right recently and by how long steps of m and guesses take on
 * this machine. beside: rows of other texts in the same step. A small model reads at most one block of the
 * text per call and guesses only when it has read all of it. Returns -1 on an error, as tg_llm_eval. */
TG_API int64_t tg_draft_guess(TgDraft *d, const int32_t *ids, int64_t n, int64_t beside, int32_t *out,
                              int64_t most);
/* Reports how many of the last guesses were tried, and how many of these were right. */
TG_API void tg_draft_told(TgDraft *d, int64_t tried, int64_t right);

/* ---- learning */
/* The mean cross entropy of whole texts, f32 (), lazy. ids (texts, tokens) are integers; targets, of the same
 * shape, are the tokens that follow, or -1 where a token does not count. No cache is read or written.
 * Gradients are computed for the tensors that require them, such as adapters. TG_ERR_SHAPE; TG_ERR_LIMIT: the
 * texts are longer than the context. */
TG_API TgTensor *tg_llm_loss(TgLlm *m, TgTensor *ids, TgTensor *targets);

/* Low-rank adapters (LoRA). Each chosen weight W (out, in) gets two matrices a (rank, in) and b (out, rank),
 * f32, and alpha / rank x a^T b^T is added to each product x with W; W keeps the values of the file. An
 * adapter belongs to its model. A model may have several: their results are added. Creating, loading or
 * freeing an adapter clears all sequences. Files have peft's form: safetensors with its names, and
 * adapter_config.json in the same folder (both need jansson). The rows of q and k are converted between
 * peft's order and the order of the model's file. */
typedef struct TgLora TgLora;

/* modules: a list from "q,k,v,o,gate,up,down", or "all" ("q,v"); if the model keeps several of them in one
 * matrix, that matrix is adapted. rank (8), alpha (16). dropout (0): applied to x while tg_training is on. */
typedef struct TgLoraOptions {
  size_t size;
  const char *set;
  const char *modules;
  int64_t rank;
  double alpha, dropout;
  int end_;
} TgLoraOptions;

/* [options] A new adapter: a is uniform within 1 / sqrt(in) and b is 0, so it changes nothing until it is
 * trained. Its parameters: tg_module_parameters(tg_lora_module, lora, ..). NULL: TG_ERR_VALUE, an option is
 * out of range, or a module is unknown or missing in the model; TG_ERR_LIMIT: more than 512 layers. */
TG_API TgLora *tg_lora_new_opt(TgLlm *m, const TgLoraOptions *o);
/* path: the safetensors file, or a folder with adapter_model.safetensors. scale: a factor on what the adapter
 * adds, 1 for the strength of the training. NULL: TG_ERR_IO; TG_ERR_VALUE: a tensor does not belong to this
 * model, one of a pair is missing, or the kind of adapter is not supported; TG_ERR_SHAPE: the text names the
 * tensor and both shapes. */
TG_API TgLora *tg_lora_load(TgLlm *m, const char *path, double scale);
/* base: the name of the original model, for peft; may be NULL. The folder is created if it does not exist. */
TG_API TgStatus tg_lora_save(const TgLora *l, const char *path, const char *base);
TG_API void tg_lora_free(TgLora *l);         /* NULL is fine; tg_llm_free frees the rest */
TG_API const TgModule *tg_lora_module(void); /* describes a TgLora: training state, parameters */

/* Training steps in little memory. A step keeps only the input of each layer. A layer is computed again when
 * its gradients are needed, and the memory of its decoded weights is released before the next layer. l: the
 * adapter that is trained; NULL: the weights are trained, after tg_llm_unfreeze. optim: an optimiser of the
 * same parameters. All three must outlive the learner. NULL: TG_ERR_VALUE, another adapter of the model has
 * dropout; TG_ERR_STATE: the weights are frozen. */
typedef struct TgLlmLearner TgLlmLearner;
TG_API TgLlmLearner *tg_llm_learner(TgLlm *m, TgLora *l, TgOptim *optim);
/* One step: computes the gradients of tg_llm_loss of these texts (within rounding) and runs the optimiser's
 * step. ids and targets are as in tg_llm_loss and lie whole in memory; a shape that differs from the last
 * call's is planned again. loss: the loss before the step; may be NULL. Errors: as tg_llm_loss.
 * TG_ERR_CANCELLED: nothing was learned. */
TG_API TgStatus tg_llm_learn(TgLlmLearner *s, TgTensor *ids, TgTensor *targets, double *loss);
TG_API void tg_llm_learner_free(TgLlmLearner *s); /* NULL is fine */

/* Makes the weights trainable: each becomes f32, in memory of its own; tg_llm_merge writes them to a file,
 * each in its original type. On an error nothing has changed. TG_ERR_DTYPE: a weight is quantised;
 * TG_ERR_LIMIT: there are more than 8192 weights. */
TG_API TgStatus tg_llm_unfreeze(TgLlm *m);
TG_API const TgModule *tg_llm_module(void); /* describes such a model: training state, parameters */
/* Writes at most cap of the weights (out may be NULL if cap is 0) and returns how many there are. */
TG_API int tg_llm_parameters(const TgLlm *m, TgTensor **out, int cap);

/* weights: the number of weights that changed. error: the largest of their |stored - exact| / |exact|, where
 * | | is the root of the sum of squares; about 1e-8 for f32, and the type's own error for a quantised
 * type. */
typedef struct TgLlmMerged {
  int64_t weights;
  double error;
} TgLlmMerged;

/* Writes a new file (which appears whole): the model's file with the adapters' sums, or the trained values,
 * put into its weights. Each tensor keeps its type. about may be NULL. TG_ERR_VALUE: there is no adapter, the
 * model has several files, a type cannot be quantised to (tg_ggml_encode), or path is the model's own. */
TG_API TgStatus tg_llm_merge(TgLlm *m, const char *path, TgLlmMerged *about);

/* items: the number of items of the dataset; tokens: the number of tokens that count, in all items; cut: the
 * number of texts that were too long and cut. */
typedef struct TgLlmTexts {
  int64_t items, tokens, cut;
} TgLlmTexts;

/* length: tokens of an item (the context, at most 256). fit: makes items shorter, a multiple of 32, if no
 * text is that long, so that short texts take no time for padding. about: receives what was read. */
typedef struct TgLlmDatasetOptions {
  size_t size;
  const char *set;
  int64_t length;
  TgLlmTexts *about;
  bool fit;
  int end_;
} TgLlmDatasetOptions;

/* [options] Texts to learn from. An item is ids and targets, i32 (length), as tg_llm_loss takes them. A file
 * may have one object in each line. {"text"}: all tokens count, and a long text continues in the next item.
 * {"prompt", "completion"}: the completion counts. {"messages"}: formatted by the model's chat template; the
 * messages of "assistant" count, with the text that ends each. An object of the last two forms is cut if it
 * is too long. Any other file (its first character is not '{') is one text, of which all tokens count. Free
 * it with tg_dataset_end; it may outlive the model. On an error .item is NULL: TG_ERR_IO; TG_ERR_VALUE, with
 * the line. */
TG_API TgDataset tg_llm_dataset_opt(TgLlm *m, const char *path, const TgLlmDatasetOptions *o);

/* ---- samplers: choose the next token from logits, in this order: bias, penalties, DRY, top-k, typical,
 * top-p, min-p, temperature, a draw. The same options, seed and logits give the same tokens on every
 * machine. */
typedef struct TgSampler TgSampler;

/* temperature (0.8; 0: always the best). top_k (40; 0: all), top_p (0.95), min_p (0.05), typical_p (1: off).
 * For tokens among the `last` (64) tokens: repeat_penalty (1) divides a logit above 0 and multiplies one
 * below; presence_penalty (0) is subtracted once, and frequency_penalty (0) is subtracted for each
 * occurrence. DRY: a token that would continue a repetition of m >= dry_allowed (2) tokens loses
 * dry_multiplier (0: off) * dry_base (1.75) ^ (m - dry_allowed), within dry_last (1024) tokens; a repetition
 * does not extend across one of the nbreakers tokens. bias: added to the logits of nbias ids. Lists are
 * copied. */
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

/* [options] TG_ERR_VALUE: an option is out of range. */
TG_API TgSampler *tg_sampler_new_opt(TgContext *ctx, int64_t vocabulary, const TgSamplerOptions *o);
TG_API void tg_sampler_free(TgSampler *s);                 /* NULL is fine */
TG_API void tg_sampler_reset(TgSampler *s, uint64_t seed); /* as new, with this seed and no tokens so far */
TG_API void tg_sampler_accept(TgSampler *s, int64_t id);   /* adds a token of the text, for the penalties */
/* Draws a token. logits: one for each token. Returns -1 with TG_ERR_VALUE if none of them is a finite
 * number. */
TG_API int64_t tg_sampler_pick(TgSampler *s, const float *logits);
/* Writes the tokens that tg_sampler_pick would draw from, the likeliest first: at most cap ids and their
 * probabilities (either may be NULL). Returns how many there are. */
TG_API int64_t tg_sampler_candidates(TgSampler *s, const float *logits, int32_t *ids, double *p, size_t cap);

/* ---- grammars: which tokens may come next. text, n bytes, is GBNF (docs/llm.md); its rule `root` describes
 * the whole text. Free a grammar before its tokenizer. */
typedef struct TgGrammar TgGrammar;
/* NULL: TG_ERR_VALUE with the line; TG_ERR_LIMIT: the grammar is too large. */
TG_API TgGrammar *tg_grammar_new(TgContext *ctx, const TgTokenizer *t, const char *text, size_t n);
/* The same from a JSON schema of n bytes; NULL and 0: any JSON object. The text of TG_ERR_VALUE names what is
 * not supported. */
TG_API TgGrammar *tg_grammar_json(TgContext *ctx, const TgTokenizer *t, const char *schema, size_t n);
TG_API void tg_grammar_free(TgGrammar *g);       /* NULL is fine */
TG_API TgStatus tg_grammar_reset(TgGrammar *g);  /* forgets the tokens so far */
TG_API bool tg_grammar_ends(const TgGrammar *g); /* whether the text may end here */
/* Sets the logits of tokens that cannot follow to -infinity; there is one logit for each token. Tokens that
 * end a reply can follow where the text may end. TG_ERR_VALUE: no token can follow. */
TG_API TgStatus tg_grammar_mask(TgGrammar *g, float *logits);
/* Adds a token to the text. TG_ERR_VALUE: it cannot follow, and nothing has changed. */
TG_API TgStatus tg_grammar_accept(TgGrammar *g, int64_t id);

/* ---- chat templates: tokenizer.chat_template, written in the part of Jinja that such templates use
 * (docs/llm.md lists it), with trim_blocks and lstrip_blocks. */
typedef struct TgTemplate TgTemplate;
/* TG_ERR_VALUE: the text is not a template or has a tag that is not supported; the error names the line. */
TG_API TgTemplate *tg_template_new(TgContext *ctx, const char *text, size_t nbytes);
TG_API void tg_template_free(TgTemplate *t); /* NULL is fine */

/* steps (2,000,000), bytes (16 MiB) of text: the limits of one rendering; exceeding them is TG_ERR_LIMIT.
 * now: the seconds since 1970 that strftime_now uses; 0: the clock's. */
typedef struct TgTemplateOptions {
  size_t size;
  const char *set;
  int64_t steps, bytes, now;
  int end_;
} TgTemplateOptions;

/* [options] json: an object whose members are the template's variables: messages, add_generation_prompt,
 * bos_token, eos_token, tools and so on. Returns the text, ended by a 0 byte, which lives until the next call
 * with t; nbytes may be NULL. NULL: TG_ERR_VALUE, with the line; the message of raise_exception follows "it
 * refuses: ". */
TG_API const char *tg_template_render_opt(TgTemplate *t, const char *json, size_t *nbytes,
                                          const TgTemplateOptions *o);

typedef struct TgMessage {
  const char *role, *content; /* "system", "user", "assistant" */
} TgMessage;

/* [options] The same for n messages, with bos_token and eos_token taken from the tokenizer, up to the place
 * where the reply begins. tokenizer may be NULL. */
TG_API const char *tg_template_chat_opt(TgTemplate *t, const TgTokenizer *tokenizer, const TgMessage *m,
                                        size_t n, size_t *nbytes, const TgTemplateOptions *o);

#ifndef __cplusplus
#define tg_template_render(...) TG_OPT3_(tg_template_render_opt, TgTemplateOptions, __VA_ARGS__, .end_ = 0)
#define tg_template_chat(...)   TG_OPT5_(tg_template_chat_opt, TgTemplateOptions, __VA_ARGS__, .end_ = 0)
#define tg_sampler_new(...)     TG_OPT2_(tg_sampler_new_opt, TgSamplerOptions, __VA_ARGS__, .end_ = 0)
#define tg_llm_open(...)        TG_OPT2_(tg_llm_open_opt, TgLlmOptions, __VA_ARGS__, .end_ = 0)
#define tg_vision_open(...)     TG_OPT2_(tg_vision_open_opt, TgVisionOptions, __VA_ARGS__, .end_ = 0)
#define tg_lora_new(...)        TG_OPT1_(tg_lora_new_opt, TgLoraOptions, __VA_ARGS__, .end_ = 0)
#define tg_draft_lookup(...)    TG_OPT1_(tg_draft_lookup_opt, TgDraftOptions, __VA_ARGS__, .end_ = 0)
#define tg_draft_model(...)     TG_OPT2_(tg_draft_model_opt, TgDraftOptions, __VA_ARGS__, .end_ = 0)
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

inline TgVision *tg_vision_open(TgLlm *m, const char *path, TgVisionOptions o = TgVisionOptions()) {
  o.size = sizeof o;
  return tg_vision_open_opt(m, path, &o);
}

inline TgLora *tg_lora_new(TgLlm *m, TgLoraOptions o = TgLoraOptions()) {
  o.size = sizeof o;
  return tg_lora_new_opt(m, &o);
}

inline TgDraft *tg_draft_lookup(TgLlm *m, TgDraftOptions o = TgDraftOptions()) {
  o.size = sizeof o;
  return tg_draft_lookup_opt(m, &o);
}

inline TgDraft *tg_draft_model(TgLlm *m, TgLlm *small, TgDraftOptions o = TgDraftOptions()) {
  o.size = sizeof o;
  return tg_draft_model_opt(m, small, &o);
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
