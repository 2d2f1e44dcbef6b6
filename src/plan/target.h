/* target.h: the machine that kernels are planned for, in numbers. A device fills one when it opens; the
 * scheduler and codegen hold no number about hardware of their own. A plan is a function of the graph and of
 * this struct alone: two machines with equal targets make equal kernels. */
#ifndef TG_TARGET_H
#define TG_TARGET_H
#include "base/processor.h"
#include "uop/uop.h"

typedef enum MemoryLevel { LEVEL_L1, LEVEL_L2, LEVEL_L3, LEVEL_MEMORY, NLEVEL } MemoryLevel;

/* The most of a launch on a GPU: blocks along x, y and z; threads of a block along each, and in all. */
typedef struct LaunchLimits {
  int64_t blocks[3];
  int threads[3], block;
} LaunchLimits;

/* What arrays of a size that the text says may have of shared memory; for more the launch says how much. */
enum { CUDA_STATIC_LOCAL = 48 << 10 };

/* Threads in step of each GPU that there is a backend for. */
enum { WARP = 32 };

/* A core is what runs a part of a grid alone: a core of a CPU, an SM of a GPU. Never the threads in use:
 * results must not depend on TG_THREADS. */
typedef struct Target {
  const char *name;
  int cores;
  int streams; /* cores that together read all that the memory behind L1 can give */

  /* Bytes of L1 and L2 as one core has them, of L3 as all share it; 0: there is none. */
  int64_t cache[LEVEL_MEMORY];
  int ways[LEVEL_MEMORY];  /* lines that a set of it holds: addresses apart by cache / ways meet in one */
  double bytes_us[NLEVEL]; /* bytes that one core reads in a us, by where they are */

  /* Pages of 4 KB that a core finds at once, and the cycles that one more costs beside other work; 0: none.
   */
  int pages;
  double page_miss;
  bool prefetches;  /* it can be asked for a line that is not read yet */
  double line_wait; /* cycles until a line is in L1 that a store has to wait for; 0: other threads run */

  double mhz;
  /* Of f32, in one cycle of a core. */
  double fmas, ops;
  double weight[WEIGHT_COUNT]; /* what an operation costs beside an addition */
  /* Of one vector register; of the widest load on a GPU. */
  int vec_bytes;
  /* Vectors; on a GPU words of a thread. */
  int registers;
  /* Threads in step; 1 on a CPU. */
  int warp;
  /* Of a core, from which on its memory is busy; 1 on a CPU. */
  int threads;
  /* Cycles that a load from memory takes, which a thread of a GPU waits for; 0 on a CPU, which reads ahead.
   */
  int latency;
  bool copies; /* to shared memory by itself: no thread waits for what it reads */
  /* Local memory that a kernel may use: scratch in L2 of a core, shared memory of a block. */
  int64_t local_bytes, local_most; /* plans fill so much; a list of opts may ask for more, up to local_most */
  int64_t copy_most; /* bytes of a copy of what a kernel reads; 0: it is to stay in the last level */
  /* Bytes of a value that is whole though each reader has a slice of its own; 0: all are. */
  int64_t slice_most;
  int64_t memory; /* bytes that temporaries may take; 0: no bound */
  /* Kernels are joined as if reading and writing took so many times as long, so that less is kept; 0: once. */
  double memory_price;
  /* A copy of weights is kept in their place, or not at all: all that is kept is in flash. */
  bool copies_replace;
  LaunchLimits most; /* zeros on a CPU */
  double launch_us;
  /* Of handing a grid's shares to the other cores and waiting for the last; what is shorter one core does. */
  double distribute_us;
  Dots dots; /* how products of bytes are made with least; NONE: as products of words of 16 bits */
  /* Rows of matrix.h that it has. */
  uint32_t matrices;
} Target;

/* How many DOT2X2s can be added up in 16 bits, if no byte of src0 is more than `most`. */
static inline int64_t target_pairs(int64_t most) { return INT16_MAX / TG_MAX(2 * -INT8_MIN * most, 1); }

static inline double target_ops_us(const Target *t) { return t->ops * t->mhz; }

static inline double target_flops_us(const Target *t) { return 2 * t->fmas * t->mhz; }

/* Where a working set stays that is read again: it has half of a level, the rest is other data. */
static inline MemoryLevel target_level(const Target *t, double nbytes) {
  for (int l = LEVEL_L1; l < LEVEL_MEMORY; l++)
    if (t->cache[l] && nbytes <= (double)t->cache[l] / 2) return (MemoryLevel)l;
  return LEVEL_MEMORY;
}

static inline int64_t target_copy_most(const Target *t) {
  if (t->copy_most) return t->copy_most;
  return t->cache[LEVEL_L3] ? t->cache[LEVEL_L3] : t->local_bytes;
}

/* us in which one core reads so many bytes from the level where they stay. */
static inline double target_read_us(const Target *t, double nbytes) {
  double us = nbytes / t->bytes_us[target_level(t, nbytes)];
  return t->memory_price > 0 ? us * t->memory_price : us;
}

/* What a running reduction of such values is carried in. */
DType target_running(const Target *t, Ops op, DType d);
double target_weight(const Target *t, const UOp *u); /* of an operation, in additions; 0: none */
extern const Target target_planned, target_amx, target_dot, target_c99, target_cuda, target_metal;
Target target_this_cpu(void); /* without matrix units: the system must be asked for these */

/* A processor that text is written for, one core of it. vectors: "gnu", "none", or NULL: as is usual for it;
 * *gnu: what it is. The compiler's flags for it; NULL: there is no such processor, or it has no vectors. */
#define TARGET_NAMES                                                                                         \
  "generic, native, x86-64-v2, x86-64-v3, x86-64-v4, armv8, cortex-m4, cortex-m7, wasm32 or wasm-simd"
const char *target_named(const char *name, const char *vectors, Target *out, bool *gnu);

/* Whether a GPU can launch such a grid of such blocks; else `why`, a sentence, names the limit. */
enum { LAUNCH_WHY = 120 };

bool target_launches(const Target *t, const int grid[3], const int block[3], char why[LAUNCH_WHY]);
void target_print(Str *out, const Target *t);
#endif
