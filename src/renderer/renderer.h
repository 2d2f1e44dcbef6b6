/* renderer.h: turns linear UOps into source text. There is one C-style renderer, with a table per
 * language. */
#ifndef TG_RENDERER_H
#define TG_RENDERER_H
#include "plan/target.h"

typedef struct Renderer {
  const char *name; /* "C", "AMX", "DOT", "C99", "CUDA", "METAL" */
  OpMask native;    /* the ops that the target computes itself; codegen decomposes all other ops */
  /* bytes of the widest useful vector: 64 with AVX-512; 16 (float4) on GPUs; 1: only scalars */
  int vec_bytes;
  bool has_threads;     /* one kernel may be distributed to threads of the host */
  bool has_grid;        /* a kernel runs as a grid of blocks, whose threads share memory and have barriers */
  bool narrow_index;    /* index arithmetic is faster in 32 bits, if its bounds allow that */
  bool has_rows;        /* a warp reads fragments of matrix units from shared memory by rows (FRAGMENT) */
  int vec_align;        /* alignment in bytes of a vector's address; 1: any address */
  const Target *target; /* the machine to plan for if there is no device */
  /* division of 8 and 16 bits by a constant is cheaper as a product of 32 bits than as the compiler does
   * it */
  bool narrow_div;
  bool has_lookup; /* LOOKUP: takes lanes of a vector of bytes by indices that are data */
  int most_params; /* of a kernel, see params_in_one; 0: no limit */
  bool has_f64, has_f16,
      has_bf16; /* arithmetic in that dtype; without it codegen computes in f32 and converts */
  /* Appends one kernel to out. Returns false if out of memory, or if lin contains a UOp that no linear
   * program may contain (err names it). */
  bool (*render)(Str *out, const Linear *lin, TgError *err);
  void (*prelude)(Str *out); /* text before the first kernel of a translation unit */
} Renderer;

/* In a build with neither GPUs nor an interpreter that stands for one, code that is only for grids is left
 * out. */
#if defined TG_NO_CUDA && defined TG_NO_METAL && defined TG_NO_INTERP
enum { HAS_GRIDS = 0 };
#else
enum { HAS_GRIDS = 1 };
#endif

static inline bool has_grid(const Renderer *r) { return HAS_GRIDS && r && r->has_grid; }

/* Whether the compiler is expected to find the vectors. It keeps fewer of them in registers than a list for
 * vectors assumes. */
static inline bool few_lanes(const Renderer *r) { return r->vec_bytes < 32 && !r->has_grid; }

/* Whether a kernel has more buffers and variables than `most` parameters. They then become members of one
 * struct: buffers by slot, then an array of the variables. The variables count as one. */
bool params_in_one(int nparam, int nvar, int most);
/* Appends the part of the C prelude that n kernels use. Returns false if out of memory. */
bool prelude_prune(Str *out, const char *prelude, const char *const *sources, int n);
/* renderer_amx, renderer_dot: C, planned for a machine with AMX or with dot products, even if the host has
 * none. renderer_c99: C99 without extensions, for any machine (c99.c). */
extern const Renderer renderer_c, renderer_amx, renderer_dot, renderer_c99, renderer_cuda, renderer_metal;
/* The prelude of renderer_c99. own_math: it also computes square roots and the multiply-add of f64. Otherwise
 * these are sqrtf, sqrt and fma of <math.h>, which the text does not include. */
void c99_prelude(Str *out, bool own_math);
#endif
