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

/* How a large picture is cut into tiles, which are shown beside the whole picture. TILES_GRID: the picture is
 * resized so that its longest edge has a given length and squares of the tower's size fill it. TILES_CROPS: a
 * long picture is cut across, into pieces that are about square. */
typedef enum VisionTiling { TILES_NONE, TILES_GRID, TILES_CROPS } VisionTiling;

enum { VISION_TILES = 256, VISION_EDGE = 4096, VISION_TEXT = 128 };

/* The text before each view of a picture that has tiles. "{row}" and "{col}" stand for the place of the tile,
 * counted from 1. The text after the last view is the kind's `end`. */
typedef struct VisionTexts {
  bool whole_last;   /* the whole picture is the last view; otherwise it is the first one */
  const char *whole; /* before the whole picture */
  const char *first; /* before the first tile; NULL: as before any tile */
  const char *tile;  /* before a tile */
  const char *row;   /* after the last tile of a row */
} VisionTexts;

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
  VisionTiling tiling;
  VisionTexts texts;
} VisionKind;

typedef struct VisionNumbers {
  int64_t image, patch, width, ffn, layers, heads, merge;
  int64_t side, patches, places;                /* patches on a side; all patches; patches and class token */
  int64_t tokens;                               /* tokens that the language model receives */
  int64_t features[VISION_FEATURES], nfeatures; /* the layers whose outputs are read; none: the last layer */
  double eps;
  int64_t edge;  /* the longest edge of a picture that is cut into a grid of tiles; 0: there are no tiles */
  int64_t tiles; /* tiles of a picture, at most; 0: there are none */
  float mean[3], std[3];
} VisionNumbers;

/* The views of a picture of some size: rows x cols tiles (0 x 0: none) and the whole picture. */
typedef struct VisionGrid {
  int64_t rows, cols;
  int64_t height, width;      /* of the picture that the grid is laid on: 0, the picture as it is */
  int64_t before_h, before_w; /* the size to which the picture is resized before that */
} VisionGrid;

/* A hash of 256 bits of all bytes of a picture, its size and its grid. */
typedef struct PictureHash {
  uint32_t h[8];
} PictureHash;

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

/* The cache of the last views: their pixels and their vectors. A picture with tiles has many views. */
enum { VISION_KEPT = 4, VISION_KEPT_TILES = 20 };

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
  VisionKept kept[VISION_KEPT_TILES];
  int64_t uses;
  uint8_t *sheet; /* the last picture that was resized to be cut into a grid; NULL: none */
  PictureHash sheet_of;
  char text[VISION_TEXT]; /* what tg_vision_text returns */
};

/* vision_file.c. Reads the numbers and weights of the file into v; false: an error. */
bool vision_read(TgVision *v);

/* vision_tiles.c. Reads what the file and the caller say of tiles; false: an error. */
bool vision_tiles_read(TgVision *v, int64_t tiles);
VisionGrid vision_grid(const TgVision *v, int64_t height, int64_t width);
int64_t vision_views(VisionGrid g); /* the number of views */
/* Writes the bytes of a view that the tower reads, (image, image, 3). hash: of this picture. */
bool vision_view(TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, const PictureHash *hash,
                 int64_t view, uint8_t *out);

/* picture.c. Resizes rgb (height, width, 3) to (to_height, to_width, 3). */
bool picture_resized(TgContext *ctx, PictureFilter f, const uint8_t *rgb, int64_t height, int64_t width,
                     int64_t to_height, int64_t to_width, uint8_t *out);
/* Resizes rgb (height, width, 3) to the bytes that the tower reads, (image, image, 3). */
bool picture_fit(const TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, uint8_t *out);
/* Turns these bytes into f32 (3, image, image), normalised. */
void picture_normalise(const TgVision *v, const uint8_t *fit, float *out);
PictureHash picture_hash(const uint8_t *rgb, int64_t height, int64_t width, int64_t rows, int64_t cols);
/* Writes the ids that stand for the tokens first .. first + n - 1 of a picture: below 0, computed from its
 * hash. */
void picture_ids(const PictureHash *hash, int64_t first, int32_t *ids, int64_t n);

/* given.c: steps of a language model whose tokens are vectors. */
/* Makes the programs that a model needs for vectors. mutual: the number of tokens of a step in which all
 * tokens see each other; 0: there is no such step. Returns false on an error. */
bool llm_given_make(TgLlm *m, int64_t mutual);
void llm_given_free(TgLlm *m);
/* Computes n vectors (n, width) after the tokens of the sequence, which records them by these ids. */
bool llm_given_eval(TgLlm *m, const float *rows, const int32_t *ids, int64_t n, bool mutual);
#endif
