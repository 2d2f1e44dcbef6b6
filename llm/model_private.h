/* model_private.h: a model as its files see it: what its architecture says (arch.c), its numbers and weights
 * (file.c, weights.c), the rotation of positions (rope.c), the graph of a step (graph.c). */
#ifndef TG_LLM_MODEL_PRIVATE_H
#define TG_LLM_MODEL_PRIVATE_H
#include "llm_private.h"

/* ---- weights of a layer, "blk.N.NAME.weight" and ".bias"; the table weights_of_layer in arch.c says their
 * names and shapes */
typedef enum LlmWeight {
  W_ATTN_NORM,
  W_ATTN_NORM_2, /* of what attention alone reads; an encoder's: a second norm after it */
  W_Q,
  W_K,
  W_V,
  W_QKV,
  W_OUT,
  W_Q_NORM,
  W_K_NORM,
  W_ALL_Q_NORM, /* of all heads at once; the file calls them attn_q_norm and attn_k_norm, too */
  W_ALL_K_NORM,
  W_HEADS_Q_NORM, /* the same names: a row for each head */
  W_HEADS_K_NORM,
  W_Q_A, /* latent attention: queries by a narrow product, W_Q_B, .. */
  W_Q_A_NORM,
  W_Q_B,
  W_KV_A, /* .. keys and values by one, whose last elements rotate; W_KV_B has both, or W_K_B, W_V_B each */
  W_KV_A_NORM,
  W_KV_B,
  W_K_B,
  W_V_B,
  W_ATTN_POST_NORM,
  W_ATTN_OUT_NORM, /* of the sum of x and what attention adds; W_LAYER_OUT_NORM: of the layer's whole sum */
  W_FFN_NORM,
  W_NORM_BETWEEN, /* the same, where the file calls it post_attention_norm */
  W_SINKS,
  W_GATE,
  W_UP,
  W_GATE_UP, /* both in one, the gate first; the file calls it ffn_up */
  W_DOWN,
  W_FFN_POST_NORM,
  W_LAYER_OUT_NORM,
  W_ROUTER,
  W_PICK_BIAS, /* added where experts are chosen, and not to their shares; a bias alone */
  W_EXPERT_GATE,
  W_EXPERT_UP,
  W_EXPERT_DOWN,
  W_SHARED_ROUTER,
  W_SHARED_GATE,
  W_SHARED_UP,
  W_SHARED_DOWN,
  W_COUNT
} LlmWeight;

/* sizes that shapes are made of */
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
  SIZE_ONE,
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
  bool bias; /* the file has the bias alone */
} LlmWeightShape;

extern const LlmWeightShape llm_weights_of_layer[W_COUNT];

#define BIT(w) ((uint64_t)1 << (w))

typedef enum LlmRope { ROPE_NONE, ROPE_PAIRS, ROPE_HALVES } LlmRope;

/* ACT_SWISH_CLAMPED: of the gate and what it multiplies together: see graph.c */
typedef enum LlmActivation {
  ACT_SILU,
  ACT_GELU,
  ACT_GELU_ERF,
  ACT_RELU_SQUARED,
  ACT_SWISH_CLAMPED
} LlmActivation;

/* `expert_gating_func` of the file */
typedef enum LlmGating { GATING_SOFTMAX = 1, GATING_SIGMOID, GATING_OF_CHOSEN } LlmGating;

/* What a text's tokens become: `pooling_type` of the file. RANK: a number, by the head of a classifier. */
typedef enum LlmPooling { POOL_NONE, POOL_MEAN, POOL_FIRST, POOL_LAST, POOL_RANK, POOL_KINDS } LlmPooling;

/* What an architecture is: a row of the table in arch.c. */
typedef struct LlmArch {
  const char *name;
  LlmRope rope;         /* the two elements that rotate together: neighbours, or a half apart */
  LlmActivation act;    /* of the feed-forward part */
  bool encoder;         /* tokens see what follows them too; no head */
  bool layer_norm;      /* mean and variance; else root mean square */
  bool positions;       /* learned, position_embd */
  bool scale_embedding; /* by the root of the width */
  bool scaled; /* embeddings and what each part adds are multiplied by numbers of the file, logits divided */
  bool usual;  /* and the file may leave them out: MiniCPM's own */
  bool scaled_logits; /* logits alone, and they are multiplied */
  bool parallel;      /* attention and feed-forward part read the same x, after one norm or one each */
  bool bare;          /* norms have no weights */
  bool begin_norm;    /* one before the first layer */
  bool late_norms;    /* of queries and keys: behind the rotation */
  bool still_global;  /* where some layers have a window, the others do not rotate */
  bool sigmoid;       /* shares of experts by a sigmoid, where the file does not say */
  bool foreign;       /* the original calls its weights otherwise than llama's, so there are no adapters */
  bool renormalized;  /* the weights of the chosen experts add up to 1, where the file does not say */
  bool permuted; /* rows of the file's q and k are the original's with the halves of each head interleaved */
  int still_every;   /* of so many layers the last does not rotate; 0: all do */
  int global_every;  /* of so many layers the last has no window; 0: all have it, where the file says one */
  int deep;          /* of so many layers: queries are scaled by width / heads, not by the size of a head */
  double local_base; /* of the rotation in layers with a window; 0: the same as in others */
  double alibi;      /* as of LlmNumbers, where the file does not say it */
  uint64_t weights;  /* that every layer has (dense: instead of experts) */
  uint64_t experts;  /* that a layer has instead of the dense feed-forward part where there are experts */
  uint64_t maybe;    /* that a layer may have, too */
  uint64_t biases;   /* of these */
} LlmArch;

const LlmArch *llm_arch(TgContext *ctx,
                        const char *name); /* NULL: an error that lists those that there are */

/* ---- the model */
typedef struct LlmNumbers {
  int64_t width, layers, heads, kv_heads, head, value_head, ffn, vocabulary, trained;
  int64_t rotary; /* elements of a head that rotate */
  int64_t window; /* 0: none */
  int64_t experts, experts_used, expert_ffn, shared_ffn;
  int64_t q_rank, kv_rank; /* of latent attention; 0: none */
  int64_t key, value;      /* of a head as the products give it, before it is latent: head, value_head */
  int64_t key_mla, value_mla, shared, dense, unread, groups, groups_used, gating; /* as the file says */
  int64_t renormalized; /* the weights of the chosen experts add up to 1 */
  int64_t types;        /* of tokens: the rows of their table; 0: there is none */
  int64_t pooling;      /* LlmPooling */
  int64_t between;      /* elements between the two matrices behind pooling */
  double eps, scale, attention_cap, final_cap;
  double clamp;        /* of queries, keys and values; 0: none */
  double expert_scale; /* of what experts add, the shared one left out */
  double
      alibi; /* head i of n takes 2 ^ -(alibi (i + 1) / n) off for each token that a key is away; 0: none */
  double embedding_scale, residual_scale, logit_scale; /* 1: none */
} LlmNumbers;

/* Keys or values of a layer: (sequences, kv heads, room, size), kept. q8_0: x i8, of whole blocks of 32, and
 * scale f16, one for each block; else scale is NULL. */
typedef struct LlmCache {
  TgTensor *x, *scale;
  int64_t size;
} LlmCache;

typedef struct LlmLayer {
  TgTensor *w[W_COUNT], *b[W_COUNT]; /* NULL: it has none */
  TgPacked *packed[W_COUNT];         /* w are its values; NULL: w is a view of the file */
  LlmCache keys, values;
  bool windowed, still; /* still: positions do not rotate */
  bool parallel;        /* the feed-forward part reads what attention reads */
} LlmLayer;

/* Factors of a position: x rotated = x * cos + swapped x * sin; (room, rotary) each. */
typedef struct LlmRotation {
  TgTensor *cos, *sin;
} LlmRotation;

enum { MOST_STEPS = 24, MOST_BATCHES = 12 };

enum { LARGEST = 1 << 26 }; /* of a number of a model */

/* What a step of several sequences sees of the cache is a multiple of this: no sum has a tail, whose order
 * would depend on the longest of them. */
enum { REACH_STEP = 64 };

/* Layers first .. last - 1 of a step of n tokens as a program. The part with the first layer begins with the
 * ids, the one with the last layer ends with the logits; between parts go the tokens (n, width). */
typedef struct LlmPart {
  struct TgLlm *m;
  int64_t n, first, last;
  bool hidden; /* the last part ends with the tokens (n, width) instead of logits */
  bool many;   /* the tokens are of n sequences; the last part ends with the logits (n, vocabulary) */
  TgJit *jit;
} LlmPart;

/* A step of one token is one part. One of more has a part for each layer: what its products decode of the
 * weights is given back before the next layer, so a whole model is never decoded at once. */
typedef struct LlmStep {
  int64_t n, nparts;
  bool many;
  LlmPart *part, hidden; /* hidden: what stands in for the last part where no logits are wanted */
  /* of several sequences: whether its bits were once others than the largest's, and for which reaches, in
   * REACH_STEPs, they are known to be the same */
  bool differs;
  bool *agrees;
} LlmStep;

/* A text: what of it is in its part of the cache. */
typedef struct LlmSequence {
  int32_t *ids;
  int64_t nids, settled; /* settled: tokens of whole blocks, from the first on */
  float *logits;
  bool has_logits;
} LlmSequence;

enum { LEARNED = 8192 }; /* weights that a model may have and learn */

/* ---- adapters (lora.c) */
enum { LORA_LAYERS = 512 };

/* Of a layer's weights: a (rank, in), b (out, rank), f32; NULL: none of this weight. */
typedef struct LoraLayer {
  TgTensor *a[W_COUNT], *b[W_COUNT];
} LoraLayer;

/* An adapter of a model. */
struct TgLora {
  LoraLayer layers[LORA_LAYERS];
  struct TgLlm *m;
  struct TgLora *next; /* of the model's */
  double alpha, scale, dropout;
  bool rooted;     /* alpha is divided by the rank's root */
  TgTensor **mask; /* while a layer is built: of each weight what dropout keeps of x; NULL: it draws */
};

/* y, the product of x with this weight, and what the adapter adds to it */
TgTensor *llm_lora_added(const struct TgLora *lora, int64_t layer, LlmWeight w, TgTensor *x, TgTensor *y);
/* What it adds to the weight: (out, in), f32; NULL: nothing. */
TgTensor *llm_lora_delta(const struct TgLora *lora, int64_t layer, LlmWeight w);

struct TgLlm {
  TgContext *ctx;
  struct TgLora *loras;
  TgValue *gguf;
  TgTokenizer *tokenizer; /* NULL: the file has none */
  const LlmArch *arch;
  LlmRope rope;                  /* the row's, unless the file is in the original's order */
  bool permuted, parallel, tied; /* tied: the head is the table of tokens */
  const char *name, *architecture, *template_;
  char *path;
  LlmNumbers k;
  LlmLayer *layer;
  TgTensor *embedding, *types, *positions, *embedding_norm, *embedding_norm_bias;
  TgTensor *norm, *norm_bias, *head, *head_bias, *rope_factors, *rope_long, *rope_short;
  TgTensor *cls, *cls_bias, *cls_out, *cls_out_bias; /* a reranker's head */
  TgTensor *dense_in, *dense_out; /* what an encoder does to what pooling gave; NULL: nothing */
  TgPacked *packed_head;          /* as of a layer */
  LlmRotation rotation, local_rotation;
  TgTensor *slopes; /* of each head: what a key loses for each token that it is away; NULL: none */
  TgDType cache;
  bool packed;                  /* the cache is q8_0 */
  int64_t activations;          /* bits of what packed matrices are multiplied with; 32: none are */
  bool units;                   /* a GPU's: products of many rows are of f16 */
  int64_t context, block, room; /* room: of the cache: a step that is not full writes behind the context */
  int64_t parameters;
  int64_t sequences;
  LlmSequence *sequence, *now; /* all; the one that is worked on */
  TgVariable *position, *which, *other,
      *length; /* which: the number of `now`; NULL: there is one. other: copied from, so many tokens */
  TgJit *copy;
  LlmStep step[MOST_STEPS];
  int nsteps;
  bool unfrozen;              /* the weights are kept f32 tensors of the model's own, not views of the file */
  TgTensor *learned[LEARNED]; /* then: these, in the order of llm_weights_each */
  int64_t batch;              /* rows of the largest step of several sequences; 0: there is none */
  LlmStep several[MOST_BATCHES]; /* the largest first */
  int nseveral;
  TgVariable *reach; /* of that step: what the longest of its texts has in the cache */
  float *batch_logits;
  int32_t *wanted; /* the tokens of a step */
};

/* The tokens of a graph: rows of each tensor, `each` of them of a text. A text's first token is at
 * `position`, or, where there is no cache, at 0. Or they are the next tokens of several sequences. */
typedef struct LlmRows {
  int64_t texts, each;
  bool whole;           /* no cache: the tokens see each other */
  TgTensor *at, *which; /* i32 (texts): the position and the sequence of each; NULL: of `position`, `which` */
  /* of an encoder, i32 (2): how many of the rows are there, the rest is seen by nobody, and where the
   * second of two texts begins; NULL: all are there */
  TgTensor *extent;
  int64_t from; /* the first row is so far into its text */
} LlmRows;

/* file.c. The numbers of the file; its weights; false: an error. */
bool llm_numbers_read(TgLlm *m);
bool llm_weights_find(TgLlm *m);
/* file.c. The shape of weight w of a layer, into dims; returns how many axes. */
int llm_weight_shape(const TgLlm *m, LlmWeight w, int64_t dims[3]);

/* file.c. A weight of the model as a whole, beside its layers'. */
typedef enum LlmOwner {
  OWN_ALL,
  OWN_POSITIONS, /* of rows with positions */
  OWN_BEGIN,
  OWN_ENCODERS,
  OWN_NORM,
  OWN_HEAD,
  OWN_ROPE, /* from here on: not learned */
  OWN_SHORT
} LlmOwner;

typedef struct LlmOwnWeight {
  const char *name;
  LlmOwner who;
  size_t weight, bias; /* places in TgLlm; bias 0: it has none */
  LlmSize dims[2];
} LlmOwnWeight;

const LlmOwnWeight *llm_own_weight(int i); /* NULL past the last */
/* The place of weight or bias i; NULL: there is none. */
TgTensor **llm_own_place(TgLlm *m, const LlmOwnWeight *w, bool bias);
/* weights.c. Calls each weight's place, with its name in the file, until fn says false. Heads that are the
 * table of tokens stand for one. */
typedef bool (*LlmWeightFn)(TgLlm *m, TgTensor **at, const char *name, void *user);
bool llm_weights_each(TgLlm *m, LlmWeightFn fn, void *user);
void llm_weights_free(TgLlm *m); /* those of the model's own */
/* model.c. The graphs are others from now on: what was captured and what the caches have is forgotten. */
void llm_graphs_change(TgLlm *m);
/* pack.c. Whether the matrices of layers are packed. */
bool llm_is_packed(const TgLlm *m);
/* model.c. A captured function that keeps no copies of weights. invariant: with setting BATCH_INVARIANT. */
TgJit *llm_jit(TgContext *ctx, TgJitFn fn, void *user, bool invariant);
/* pack.c. Matrices that can be packed are, where the device is a CPU; false: an error. */
bool llm_pack(TgLlm *m);
void llm_pack_free(TgLlm *m);
/* rope.c. m->rotation and m->local_rotation; false: an error */
bool llm_rotations_make(TgLlm *m);
bool llm_slopes_make(TgLlm *m); /* m->slopes, the same of ALiBi */
/* cache.c. TgJitFn: the cache of sequence `which` becomes that of `other`. */
TgStatus llm_copy(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user);
/* cache.c. A cache of (.., size) for the model; false: an error. */
bool llm_cache_make(const TgLlm *m, LlmCache *c, int64_t size);
void llm_cache_free(LlmCache *c);
size_t llm_cache_nbytes(const LlmCache *c);
/* Rows (tokens, kv heads, size) to the places of these tokens. */
bool llm_cache_put(const TgLlm *m, const LlmCache *c, TgTensor *rows, LlmRows r);
/* What these tokens see of it, f32: (texts, kv heads, seen, size). */
TgTensor *llm_cache_get(const TgLlm *m, const LlmCache *c, LlmRows r, int64_t seen);

/* graph.c. Parts of a graph: ids (n) -> tokens (n, width); layers first .. last - 1; tokens -> logits. */
TgTensor *llm_embedded(const TgLlm *m, TgTensor *ids, LlmRows r);
TgTensor *llm_layers(const TgLlm *m, TgTensor *x, LlmRows r, int64_t first, int64_t last);
TgTensor *llm_logits_of(const TgLlm *m, TgTensor *x, LlmRows r);
bool llm_whole_fits(const TgLlm *m, TgTensor *ids, TgTensor *targets); /* as tg_llm_loss takes them */
/* graph.c. TgJitFn of a part; in: ids (n) or tokens (n, width), and for the last part the number of the
 * token whose logits are wanted (1), or, of several sequences, positions and sequences (n), or, of an
 * encoder, the extent of LlmRows; out: tokens, or logits, or what a reranker says (1) */
TgStatus llm_part(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user);
#endif
