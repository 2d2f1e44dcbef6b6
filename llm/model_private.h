/* model_private.h: the inside of a model: its architecture (arch.c), its numbers and weights (file.c,
 * weights.c), the rotation of positions (rope.c) and the graph of a step (graph.c). */
#ifndef TG_LLM_MODEL_PRIVATE_H
#define TG_LLM_MODEL_PRIVATE_H
#include "llm_private.h"

/* ---- weights of a layer, "blk.N.NAME.weight" and ".bias"; the table llm_weights_of_layer in arch.c gives
 * their names and shapes */
typedef enum LlmWeight {
  W_ATTN_NORM,
  W_ATTN_NORM_2, /* before attention alone; in an encoder, a second norm after attention */
  W_Q,
  W_K,
  W_V,
  W_QKV,
  W_OUT,
  W_Q_NORM,
  W_K_NORM,
  W_ALL_Q_NORM, /* one norm over all heads; the file calls them attn_q_norm and attn_k_norm, too */
  W_ALL_K_NORM,
  W_HEADS_Q_NORM, /* the same names in the file: a row for each head */
  W_HEADS_K_NORM,
  W_Q_A, /* latent attention: queries are made by a narrow product, W_Q_B .. */
  W_Q_A_NORM,
  W_Q_B,
  W_KV_A, /* .. keys and values, too; W_KV_A's last rows rotate; then W_KV_B, or W_K_B and W_V_B */
  W_KV_A_NORM,
  W_KV_B,
  W_K_B,
  W_V_B,
  W_ATTN_POST_NORM,
  W_ATTN_OUT_NORM, /* after the sum of x and attention; W_LAYER_OUT_NORM: after the layer */
  W_FFN_NORM,
  W_NORM_BETWEEN, /* the same as W_FFN_NORM, named post_attention_norm in the file */
  W_SINKS,
  W_GATE,
  W_UP,
  W_GATE_UP, /* both in one matrix, the gate first; the file calls it ffn_up */
  W_DOWN,
  W_FFN_POST_NORM,
  W_LAYER_OUT_NORM,
  W_ROUTER,
  W_PICK_BIAS, /* added when experts are chosen, but not to their shares; a bias alone */
  W_EXPERT_GATE,
  W_EXPERT_UP,
  W_EXPERT_DOWN,
  W_SHARED_ROUTER,
  W_SHARED_GATE,
  W_SHARED_UP,
  W_SHARED_DOWN,
  W_COUNT
} LlmWeight;

/* the sizes that appear in shapes */
typedef enum LlmSize {
  SIZE_NONE,
  SIZE_WIDTH,
  SIZE_QUERIES,
  SIZE_KEYS,
  SIZE_VALUES,
  SIZE_QUERIES_KEYS_VALUES,
  SIZE_HEADS_VALUES,
  SIZE_HEAD,
  SIZE_HEADS,
  SIZE_FFN,
  SIZE_TWO_FFN,
  SIZE_EXPERTS,
  SIZE_EXPERT_FFN,
  SIZE_SHARED_FFN,
  SIZE_LABELS,
  SIZE_VOCABULARY,
  SIZE_TRAINED,
  SIZE_TYPES,
  SIZE_HALF_ROTARY,
  SIZE_KV_HEADS,
  SIZE_Q_RANK,
  SIZE_KV_RANK,
  SIZE_KV_RANK_ROTARY,
  SIZE_STILL,
  SIZE_VALUE,
  SIZE_STILL_VALUES,
  SIZE_DENSE
} LlmSize;

/* dims: row-major, as (out, in) */
typedef struct LlmWeightShape {
  const char *name;
  LlmSize dims[3];
  bool bias; /* the file has only the bias */
} LlmWeightShape;

extern const LlmWeightShape llm_weights_of_layer[W_COUNT];

#define BIT(w) ((uint64_t)1 << (w))

typedef enum LlmRope { ROPE_NONE, ROPE_PAIRS, ROPE_HALVES } LlmRope;

/* ACT_SWISH_CLAMPED acts on the gate and on the values that it multiplies: see graph.c. */
typedef enum LlmActivation {
  ACT_SILU,
  ACT_GELU,
  ACT_GELU_ERF,
  ACT_RELU_SQUARED,
  ACT_SWISH_CLAMPED
} LlmActivation;

/* `expert_gating_func` of the file */
typedef enum LlmGating { GATING_SOFTMAX = 1, GATING_SIGMOID, GATING_OF_CHOSEN } LlmGating;

/* How one result is made of a text's tokens: `pooling_type` of the file. RANK: a number, by the head of a
 * classifier or by what a decoder answers. */
typedef enum LlmPooling { POOL_NONE, POOL_MEAN, POOL_FIRST, POOL_LAST, POOL_RANK, POOL_KINDS } LlmPooling;

/* An architecture: a row of the table in arch.c. */
typedef struct LlmArch {
  const char *name;
  LlmRope rope;         /* which two elements rotate together: neighbours, or those half a head apart */
  LlmActivation act;    /* of the feed-forward part */
  bool encoder;         /* tokens also see the tokens after them; there is no head */
  bool layer_norm;      /* norms by mean and variance; otherwise by root mean square */
  bool positions;       /* learned positions, position_embd */
  bool scale_embedding; /* embeddings are multiplied by the root of the width */
  bool scaled;        /* numbers of the file multiply embeddings and what each part adds, and divide logits */
  bool usual;         /* the file may leave these numbers out: then MiniCPM's are used */
  bool scaled_logits; /* only logits are scaled, and they are multiplied */
  bool parallel;      /* attention and feed-forward part read the same x, after one norm or one each */
  bool bare;          /* norms have no weights */
  bool begin_norm;    /* there is a norm before the first layer */
  bool late_norms;    /* norms of queries and keys come after the rotation */
  bool still_global;  /* if some layers have a window, the other layers do not rotate */
  bool sigmoid;       /* the shares of experts are sigmoids, unless the file says otherwise */
  bool foreign;       /* the original's weights have other names than llama's, so there are no adapters */
  bool renormalized;  /* the shares of the chosen experts add up to 1, unless the file says otherwise */
  bool permuted;      /* in the file, the halves of each head are interleaved in the rows of q and k */
  bool global_first;  /* of each group of layers, not the last but the first has no window */
  bool one_between;   /* one special token is between two texts, whatever the tokenizer */
  bool gelu_head;     /* a reranker's head activates by GELU, otherwise by tanh */
  int still_every;    /* in each group of n layers the last does not rotate; 0: all rotate */
  int global_every;   /* in each group of n layers the last has no window; 0: all have the file's window */
  int deep;           /* a model of n layers scales queries by width / heads instead of the head's size */
  double local_base;  /* base of the rotation in layers with a window; 0: that of the other layers */
  double alibi;       /* as LlmNumbers.alibi, if the file does not say */
  uint64_t weights;   /* of every layer, as BITs; layers of experts drop the dense ones */
  uint64_t experts;   /* of a layer of experts, in place of the dense feed-forward part */
  uint64_t maybe;     /* that a layer may also have */
  uint64_t biases;    /* weights that must also have a bias */
} LlmArch;

const LlmArch *llm_arch(TgContext *ctx, const char *name); /* NULL: an error that lists all names */

/* ---- the model */
typedef struct LlmNumbers {
  int64_t width, layers, heads, kv_heads, head, value_head, ffn, vocabulary, trained;
  int64_t rotary; /* elements of a head that rotate */
  int64_t window; /* 0: none */
  int64_t experts, experts_used, expert_ffn, shared_ffn;
  int64_t q_rank, kv_rank; /* of latent attention; 0: none */
  int64_t key, value;      /* sizes of a head as the products make it, before it is latent */
  int64_t key_mla, value_mla, shared, dense, unread, groups, groups_used, gating; /* as in the file */
  int64_t renormalized; /* whether the shares of the chosen experts add up to 1 */
  int64_t judged;       /* LlmPooling of a reranker's head: POOL_FIRST or POOL_MEAN */
  int64_t labels;       /* rows of a reranker's head: 1: the score, 2: a softmax of yes and no */
  int64_t types;        /* number of token types (rows of their table); 0: no table */
  int64_t pooling;      /* LlmPooling */
  int64_t between;      /* elements between the two matrices after pooling */
  double eps, scale, attention_cap, final_cap;
  double clamp;        /* bound of queries, keys and values; 0: none */
  double expert_scale; /* factor on the experts' sum, without the shared expert */
  double alibi;        /* head i of n loses 2 ^ -(alibi (i + 1) / n) per token of distance; 0: none */
  double embedding_scale, residual_scale, logit_scale; /* 1: no scaling */
} LlmNumbers;

/* Keys or values of a layer: (sequences, kv heads, room, size), kept. For q8_0, x is i8 in whole blocks of 32
 * and scale is f16, one for each block; otherwise scale is NULL. */
typedef struct LlmCache {
  TgTensor *x, *scale;
  int64_t size;
} LlmCache;

typedef struct LlmLayer {
  TgTensor *w[W_COUNT], *b[W_COUNT]; /* NULL: the layer has none */
  TgPacked *packed[W_COUNT];         /* w are its values; NULL: w is a view of the file */
  LlmCache keys, values;
  bool windowed, still; /* windowed: attention has a window. still: positions do not rotate */
  bool parallel;        /* the feed-forward part reads what attention reads */
} LlmLayer;

/* Factors for each position: rotated x = x * cos + swapped x * sin; (room, rotary) each. */
typedef struct LlmRotation {
  TgTensor *cos, *sin;
} LlmRotation;

enum { MOST_STEPS = 24, MOST_BATCHES = 12 };

enum { LARGEST = 1 << 26 }; /* bound on every number of a model */

/* In a step of several sequences, the part of the cache that is read is a multiple of this length. So no sum
 * has a tail, whose order would depend on the longest sequence. */
enum { REACH_STEP = 64 };

/* Layers first .. last - 1 of a step of n tokens, as a program. The part with the first layer begins with the
 * ids, and the part with the last layer ends with the logits; the tokens (n, width) are passed from part to
 * part. */
typedef struct LlmPart {
  struct TgLlm *m;
  int64_t n, first, last;
  bool hidden; /* the last part ends with the tokens (n, width) instead of logits */
  bool many;   /* the tokens belong to n sequences; the last part ends with logits (n, vocabulary) */
  bool given;  /* the part begins with vectors (n, width) instead of ids */
  bool mutual; /* the n tokens see each other in both directions */
  TgJit *jit;
} LlmPart;

/* A step of one token is one part. A step of more tokens has a part for each layer: the memory of the weights
 * that a layer decodes is released before the next layer, so a whole model is never decoded at once. */
typedef struct LlmStep {
  int64_t n, nparts;
  bool many;
  LlmPart *part, hidden; /* hidden: replaces the last part if no logits are wanted */
  LlmPart given;         /* replaces the first part if tokens are vectors; jit NULL: none */
  /* for steps of several sequences. differs: its bits once differed from those of the largest step; agrees:
   * for each reach, in units of REACH_STEP, whether its bits are known to be the same */
  bool differs;
  bool *agrees;
  int64_t runs;   /* runs so far */
  double seconds; /* that a run takes; 0: not known yet */
} LlmStep;

/* A text: the tokens that are in its part of the cache. */
typedef struct LlmSequence {
  int32_t *ids;
  int64_t nids, settled; /* settled: tokens of whole blocks, from the beginning */
  float *logits;
  bool has_logits;
  int64_t ahead; /* within tg_llm_eval_many: its rows so far, after nids */
} LlmSequence;

enum { LEARNED = 8192 }; /* the most weights that a model may train */

/* ---- adapters (lora.c) */
enum { LORA_LAYERS = 512 };

/* The adapters of a layer's weights: a (rank, in), b (out, rank), f32; NULL: none for this weight. */
typedef struct LoraLayer {
  TgTensor *a[W_COUNT], *b[W_COUNT];
} LoraLayer;

/* An adapter of a model. */
struct TgLora {
  LoraLayer layers[LORA_LAYERS];
  struct TgLlm *m;
  struct TgLora *next; /* the next adapter of the same model */
  double alpha, scale, dropout;
  bool rooted;     /* alpha is divided by the root of the rank */
  TgTensor **mask; /* while a layer is built: for each weight, what dropout keeps of x; NULL: it is drawn */
};

/* Returns y, the product of x with this weight, plus the adapter's product. */
TgTensor *llm_lora_added(const struct TgLora *lora, int64_t layer, LlmWeight w, TgTensor *x, TgTensor *y);
/* What the adapter adds to the weight: (out, in), f32; NULL: nothing. */
TgTensor *llm_lora_delta(const struct TgLora *lora, int64_t layer, LlmWeight w);

struct TgLlm {
  TgContext *ctx;
  struct TgLora *loras;
  TgValue *gguf;
  TgTokenizer *tokenizer; /* NULL: the file has none */
  const LlmArch *arch;
  LlmArch both_ways;             /* arch, if the file says that a decoder's tokens see the later ones, too */
  LlmRope rope;                  /* the architecture's, unless the file has the original's order */
  bool permuted, parallel, tied; /* tied: the head is the table of tokens */
  const char *name, *architecture, *template_;
  char *path;
  LlmNumbers k;
  LlmLayer *layer;
  TgTensor *embedding, *types, *positions, *embedding_norm, *embedding_norm_bias;
  TgTensor *norm, *norm_bias, *head, *head_bias, *rope_factors, *rope_long, *rope_short;
  TgTensor *cls, *cls_bias, *cls_norm, *cls_norm_bias, *cls_out, *cls_out_bias; /* a reranker's head */
  const char *pair; /* a reranker's template for two texts; NULL: they are joined by special tokens */
  int32_t yes, no;  /* the rows of cls_out that say it, or these tokens if there is no such head */
  TgTensor *dense_in, *dense_out; /* products that an encoder makes after pooling; NULL: none */
  TgPacked *packed_head;          /* as in a layer */
  LlmRotation rotation, local_rotation;
  TgTensor *slopes; /* for each head, what a key loses for each token of distance; NULL: none */
  TgDType cache;
  bool packed;                  /* the cache is q8_0 */
  int64_t activations;          /* bits of what packed matrices are multiplied with; 32: none are packed */
  bool units;                   /* on a GPU: products of many rows are f16 */
  int64_t context, block, room; /* room: of the cache: a step that is not full writes past the context */
  int64_t parameters;
  int64_t sequences;
  LlmSequence *sequence, *now; /* all sequences; the current one */
  /* which: the number of `now`; NULL: there is one sequence. other, length: a copy's source and number of
   * tokens */
  TgVariable *position, *which, *other, *length;
  TgJit *copy;
  LlmStep step[MOST_STEPS];
  int nsteps;
  bool unfrozen;                 /* the weights are f32 tensors that the model owns, not views of the file */
  TgTensor *learned[LEARNED];    /* then: these weights, in the order of llm_weights_each */
  int64_t batch;                 /* rows of the largest step of several sequences; 0: there is no such step */
  LlmStep several[MOST_BATCHES]; /* the largest first */
  int nseveral;
  TgVariable *reach; /* in these steps: the part of the cache that the longest text needs */
  float *batch_logits;
  int64_t rows_room, nrows; /* rows for which batch_logits has room; rows that it has */
  int32_t *wanted;          /* the tokens of a step */
  struct TgVision *vision;  /* what reads pictures for the model; NULL: nothing */
  LlmStep mutual;           /* a step for a picture whose tokens see each other; n 0: there is none */
  TgVariable *mutual_at;    /* the position where that step begins */
};

/* The tokens of a graph: the rows of each tensor, `each` of them for every text. A text's first token is at
 * `position`, or at 0 if there is no cache. Or the rows are the next tokens of several sequences. */
typedef struct LlmRows {
  int64_t texts, each;
  bool whole;           /* no cache: the keys and values are those of the rows themselves */
  TgTensor *at, *which; /* i32 (texts): position and sequence of each; NULL: `position`, `which` */
  /* for an encoder, i32 (2): the number of rows that are tokens (no row sees the rest), and where the second
   * of two texts begins; NULL: all rows are tokens */
  TgTensor *extent;
  int64_t from; /* the position of the first row in its text */
  bool mutual;  /* the rows see each other and all tokens before them; they begin at mutual_at */
} LlmRows;

/* file.c. Reads the numbers of the file; finds its weights; false: an error. */
bool llm_numbers_read(TgLlm *m);
bool llm_weights_find(TgLlm *m);
/* file.c. Writes the shape of weight w of a layer to dims; returns the number of axes. */
int llm_weight_shape(const TgLlm *m, LlmWeight w, int64_t dims[3]);

/* file.c. The kinds of weights of the whole model, beside those of its layers. */
typedef enum LlmOwner {
  OWN_ALL,
  OWN_POSITIONS, /* of architectures with positions */
  OWN_BEGIN,
  OWN_ENCODERS,
  OWN_RANKERS, /* encoders, and decoders that rank texts */
  OWN_NORM,
  OWN_HEAD,
  OWN_ROPE, /* from here on: not trained */
  OWN_SHORT
} LlmOwner;

typedef struct LlmOwnWeight {
  const char *name;
  LlmOwner who;
  size_t weight, bias; /* offsets in TgLlm; bias 0: it has none */
  LlmSize dims[2];
} LlmOwnWeight;

const LlmOwnWeight *llm_own_weight(int i); /* NULL past the last */
/* Where the model stores this weight or its bias; the tensor there is NULL if the file has none. */
TgTensor **llm_own_place(TgLlm *m, const LlmOwnWeight *w, bool bias);
/* weights.c. Calls fn for the place of each weight, with its name in the file, until fn returns false. A head
 * that is the table of tokens is visited once. */
typedef bool (*LlmWeightFn)(TgLlm *m, TgTensor **at, const char *name, void *user);
bool llm_weights_each(TgLlm *m, LlmWeightFn fn, void *user);
void llm_weights_free(TgLlm *m); /* frees the weights that the model owns */
/* model.c. Must be called when the graphs change: captured programs and the contents of the caches are
 * dropped. */
void llm_graphs_change(TgLlm *m);
/* run.c. The largest program that this many tokens fill, or the smallest that they fit into if they fill more than
 * half of it. */
LlmStep *llm_step_for(TgLlm *m, int64_t count);
/* run.c. Runs a step, and appends its `count` ids to the current sequence. rows: the vectors (n, width) that it
 * begins with; NULL: it begins with the ids m->wanted. hidden: receives the tokens (n, width) in place of logits;
 * NULL: logits. Returns false on an error. */
bool llm_step_run(TgLlm *m, LlmStep *s, const float *rows, const int32_t *ids, int64_t count, float *hidden);
/* run.c. Runs an encoder on a whole text, by the smallest program that the text fits into. second: where
 * the second of two texts begins. out: what the last part ends with. */
bool llm_whole_run(TgLlm *m, const int32_t *ids, int64_t n, int64_t second, float *out);
/* run.c. Runs a decoder on a text, and writes its last token after the last norm (width). Whole blocks
 * that are in the cache already are not computed again. */
bool llm_last_token(TgLlm *m, const int32_t *ids, int64_t n, float *out);
/* run.c. How long a step of tg_llm_eval_many with this many rows takes, in seconds, as far as it is known. If
 * its program has not been timed, the time of the next smaller program that was timed is multiplied by
 * UNKNOWN_GROWTH for each step between them. 0: nothing is known. */
#define UNKNOWN_GROWTH 1.2
double llm_rows_seconds(const TgLlm *m, int64_t count);
/* rank.c. Reads how a reranker is asked and how its answer is judged; false: an error. */
bool llm_rank_read(TgLlm *m);
/* pack.c. Whether the matrices of layers are packed. */
bool llm_is_packed(const TgLlm *m);
/* model.c. A captured function that keeps no copies of weights. invariant: it is planned with the setting
 * BATCH_INVARIANT. */
TgJit *llm_jit(TgContext *ctx, TgJitFn fn, void *user, bool invariant);
/* pack.c. Packs all matrices that can be packed, if the device is a CPU; false: an error. */
bool llm_pack(TgLlm *m);
void llm_pack_free(TgLlm *m);
/* rope.c. Makes m->rotation and m->local_rotation; false: an error. */
bool llm_rotations_make(TgLlm *m);
bool llm_slopes_make(TgLlm *m); /* makes m->slopes for ALiBi */

/* Where the rows of a step begin in the cache. */
static inline const TgVariable *llm_begins(const TgLlm *m, LlmRows r) {
  return r.mutual ? m->mutual_at : m->position;
}

/* cache.c. TgJitFn: copies the cache of sequence `other` to sequence `which`. */
TgStatus llm_copy(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user);
/* cache.c. Makes a cache of (.., size) for the model; false: an error. */
bool llm_cache_make(const TgLlm *m, LlmCache *c, int64_t size);
void llm_cache_free(LlmCache *c);
size_t llm_cache_nbytes(const LlmCache *c);
/* Writes rows (tokens, kv heads, size) to the places of these tokens. */
bool llm_cache_put(const TgLlm *m, const LlmCache *c, TgTensor *rows, LlmRows r);
/* The part of the cache that these tokens see, f32: (texts, kv heads, seen, size). */
TgTensor *llm_cache_get(const TgLlm *m, const LlmCache *c, LlmRows r, int64_t seen);

/* graph.c. Parts of a graph: ids (n) -> tokens (n, width); layers first .. last - 1; tokens -> logits. */
TgTensor *llm_embedded(const TgLlm *m, TgTensor *ids, LlmRows r);
TgTensor *llm_given(const TgLlm *m, TgTensor *x, LlmRows r); /* embeds vectors (n, width) */
TgTensor *llm_layers(const TgLlm *m, TgTensor *x, LlmRows r, int64_t first, int64_t last);
TgTensor *llm_logits_of(const TgLlm *m, TgTensor *x, LlmRows r);
bool llm_whole_fits(const TgLlm *m, TgTensor *ids, TgTensor *targets); /* the checks of tg_llm_loss */
/* graph.c. TgJitFn of a part. in: ids (n) or tokens (n, width), and for the last part the number of the token
 * whose logits are wanted (1). With several sequences, positions and sequences (n) follow; with an encoder,
 * the extent of LlmRows. out: tokens, or logits, or the scores of a reranker's labels. */
TgStatus llm_part(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user);
#endif
