/* vision_private.h: what the files of llm/ that read pictures share: kinds of projectors as data, the numbers
 * and weights of a mmproj file, and the steps from pixels to vectors. */
#ifndef TG_LLM_VISION_PRIVATE_H
#define TG_LLM_VISION_PRIVATE_H
#include "model_private.h"

/* weights of a layer of the tower, "v.blk.N.NAME.weight" and ".bias" */
typedef enum VisionWeight { V_LN_1, V_Q, V_K, V_V, V_OUT, V_LN_2, V_UP, V_DOWN, V_COUNT } VisionWeight;

/* weights of the tower as a whole, and of the projector */
typedef enum VisionOwn {
  V_PATCH,
  V_CLASS,
  V_POSITIONS,
  V_PRE_NORM,
  V_POST_NORM,
  V_MLP_IN, /* LLaVA: two products with a GELU between them */
  V_MLP_OUT,
  V_SOFT_NORM, /* Gemma 3: a norm, and a product whose matrix is (in, out) */
  V_INPUT,
  V_FC, /* Idefics 3: one product */
  V_OWN
} VisionOwn;

typedef enum VisionSize { VS_NONE, VS_WIDTH, VS_FFN, VS_PLACES, VS_FEATURES, VS_MERGED, VS_TEXT } VisionSize;

/* What the projector makes of the tower's tokens: two products of each token; normed means of squares of
 * tokens; or the tokens of a square, side by side. */
typedef enum VisionProjection { PROJECT_MLP, PROJECT_MEANS, PROJECT_SHUFFLED } VisionProjection;

typedef enum PictureFilter { FILTER_BILINEAR, FILTER_BICUBIC, FILTER_LANCZOS } PictureFilter;

enum { VISION_MARKS = 3, VISION_FEATURES = 8, VISION_LAYERS = 256 };

/* A projector_type: a row of the table in vision_file.c. */
typedef struct VisionKind {
  const char *name, *models;
  VisionProjection projection;
  int64_t merge; /* tokens on the side of a square that becomes one token, if the file does not say */
  PictureFilter filter;
  bool padded;                    /* padded to a square with the mean colour; otherwise stretched to one */
  bool post_norm;                 /* the tower's last norm is applied */
  bool mutual;                    /* the picture's tokens see each other in both directions */
  uint64_t own;                   /* a set of bits: which VisionOwn the projector has */
  const char *begin, *end;        /* the text around a picture's tokens */
  const char *mark[VISION_MARKS]; /* what templates write in place of a picture */
} VisionKind;

typedef struct VisionNumbers {
  int64_t image, patch, width, ffn, layers, heads, merge;
  int64_t side, patches, places;                /* patches on a side; all patches; patches and class token */
  int64_t tokens;                               /* tokens that the language model receives */
  int64_t features[VISION_FEATURES], nfeatures; /* the layers whose outputs are read; none: the last layer */
  double eps;
  float mean[3], std[3];
} VisionNumbers;

typedef enum VisionActivation { V_QUICK_GELU, V_GELU, V_SILU } VisionActivation;

typedef struct VisionLayer {
  TgTensor *w[V_COUNT], *b[V_COUNT];
} VisionLayer;

/* The programs of the tower: from pixels to its tokens, a layer, or the projector. */
typedef enum VisionStage { STAGE_PATCHES, STAGE_LAYER, STAGE_PROJECTOR } VisionStage;

typedef struct VisionPart {
  struct TgVision *v;
  VisionStage stage;
  int64_t layer;
  TgJit *jit;
} VisionPart;

/* The cache of the last pictures: their pixels and their vectors. */
enum { VISION_KEPT = 4 };

typedef struct VisionKept {
  uint8_t *pixels; /* NULL: the entry is free */
  float *vectors;
  int64_t used; /* the time of the last use; the oldest entry is replaced first */
} VisionKept;

struct TgVision {
  TgContext *ctx;
  TgLlm *m;
  TgValue *gguf;
  const VisionKind *kind;
  VisionNumbers k;
  VisionActivation act;
  bool swapped; /* the file calls the first matrix of a feed-forward part ffn_down */
  TgTensor *w[V_OWN], *b[V_OWN];
  VisionLayer *layer;
  VisionPart *part; /* one for the patches, one for each layer, one for the projector */
  int64_t nparts;
  VisionKept kept[VISION_KEPT];
  int64_t uses;
};

/* vision_file.c. Reads the numbers and weights of the file into v; false: an error. */
bool vision_read(TgVision *v);

/* picture.c. Resizes rgb (height, width, 3) to the bytes that the tower reads, (image, image, 3). */
bool picture_fit(const TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, uint8_t *out);
/* Turns these bytes into f32 (3, image, image), normalised. */
void picture_normalise(const TgVision *v, const uint8_t *fit, float *out);
/* picture.c. Writes the ids that stand for a picture's n tokens: below 0, computed from all of its bytes. */
void picture_ids(const uint8_t *rgb, int64_t height, int64_t width, int32_t *ids, int64_t n);

/* given.c: steps of a language model whose tokens are vectors. */
/* Makes the programs that a model needs for vectors. mutual: the number of tokens of a step in which all
 * tokens see each other; 0: there is no such step. Returns false on an error. */
bool llm_given_make(TgLlm *m, int64_t mutual);
void llm_given_free(TgLlm *m);
/* Computes n vectors (n, width) after the tokens of the sequence, which records them by these ids. */
bool llm_given_eval(TgLlm *m, const float *rows, const int32_t *ids, int64_t n, bool mutual);
#endif
