/* renderer.h: linear UOps -> source text. One C-style renderer with a table per language. */
#ifndef TG_RENDERER_H
#define TG_RENDERER_H
#include "plan/target.h"

typedef struct Renderer {
  const char *name;  /* "C", "AMX", "DOT", "C99", "CUDA", "METAL" */
  OpMask native;     /* the ops that the target computes itself; codegen decomposes the others */
  int vec_bytes;     /* widest vector worth making: 64 with AVX-512; 16 (float4) on GPUs; 1: scalars only */
  bool has_threads;  /* one kernel may be distributed to threads of the host */
  bool has_grid;     /* a kernel runs as a grid of blocks, whose threads share memory and meet */
  bool narrow_index; /* index arithmetic is faster in 32 bits, where its bounds allow them */
  bool has_rows;     /* a warp reads fragments of matrix units from shared memory by rows (FRAGMENT) */
  int vec_align;     /* bytes that a vector's address must be a multiple of; 1: any address */
  const Target *target; /* the machine to plan for where none is there */
  bool narrow_div; /* division of 8 and 16 bits by a constant is cheaper as a product of 32 bits than as the
                      compiler does it */
  bool has_lookup; /* LOOKUP: lanes of a vector of bytes that data chooses */
  int most_params; /* of a kernel, see params_in_one; 0: as many as it has */
  bool has_f64, has_f16,
      has_bf16; /* arithmetic in that dtype; without it codegen computes in f32 and converts */
  /* Appends one kernel to out. False: out of memory or a UOp that no linear program may contain (named in
   * err). */
  bool (*render)(Str *out, const Linear *lin, TgError *err);
  void (*prelude)(Str *out); /* text before the first kernel of a translation unit */
} Renderer;

/* A build with neither GPUs nor an interpreter that stands for one: what is made for grids alone is left out. */
#if defined TG_NO_CUDA && defined TG_NO_METAL && defined TG_NO_INTERP
enum { HAS_GRIDS = 0 };
#else
enum { HAS_GRIDS = 1 };
#endif

static inline bool has_grid(const Renderer *r) { return HAS_GRIDS && r && r->has_grid; }

/* Vectors are for a compiler to find, which keeps fewer of them in registers than a list for vectors assumes. */
static inline bool few_lanes(const Renderer *r) { return r->vec_bytes < 32 && !r->has_grid; }

/* Whether a kernel has more buffers and variables than the `most` parameters of its language: then all are
 * members of one struct, buffers by slot, then an array of the variables. The variables count as one. */
bool params_in_one(int nparam, int nvar, int most);
/* Appends what n kernels of C use of their prelude. False: out of memory. */
bool prelude_prune(Str *out, const char *prelude, const char *const *sources, int n);
/* renderer_amx, renderer_dot: C, planned for a machine with AMX, with dot products, where none is there.
 * renderer_c99: C99 without extensions, for any machine (c99.c). */
extern const Renderer renderer_c, renderer_amx, renderer_dot, renderer_c99, renderer_cuda, renderer_metal;
/* The prelude of renderer_c99. own_math: roots and the multiply-add of f64 are computed there too; else they
 * are sqrtf, sqrt and fma of <math.h>, which the text does not include. */
void c99_prelude(Str *out, bool own_math);
#endif
