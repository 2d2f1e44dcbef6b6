/* target.h: the machine that kernels are planned for, in numbers. A device fills one in when it opens. The
 * scheduler and codegen contain no numbers about hardware. A plan is a function of the graph and of this
 * struct alone, so two machines with equal targets make equal kernels. */
#ifndef TG_TARGET_H
#define TG_TARGET_H
#include "base/processor.h"
#include "uop/uop.h"

typedef enum MemoryLevel { LEVEL_L1, LEVEL_L2, LEVEL_L3, LEVEL_MEMORY, NLEVEL } MemoryLevel;

/* The limits of a launch on a GPU: blocks along x, y and z; threads of a block along each, and in total. */
typedef struct LaunchLimits {
  int64_t blocks[3];
  int threads[3], block;
} LaunchLimits;

/* The shared memory that arrays of a constant size may take. For more, the launch must state the size. */
enum { CUDA_STATIC_LOCAL = 48 << 10 };

/* Threads in a warp, for every GPU that has a backend. */
enum { WARP = 32 };

/* A core is what runs one part of a grid: a core of a CPU, an SM of a GPU. `cores` is never the number of
 * threads in use, because results must not depend on TG_THREADS. */
typedef struct Target {
  const char *name;
  int cores;
  int streams; /* number of cores that together use the full bandwidth of the memory behind L1 */

  /* Bytes of L1 and L2 of one core, and of the L3 that all cores share; 0: there is none. */
  int64_t cache[LEVEL_MEMORY];
  /* lines in a set: addresses that are a multiple of cache / ways apart are in one set */
  int ways[LEVEL_MEMORY];
  double bytes_us[NLEVEL]; /* bytes that one core reads in a us, by level */

  /* The number of 4 KB pages that a core translates at once, and the cycles that one more page costs besides
   * other work. 0: this is not modelled. */
  int pages;
  double page_miss;
  bool prefetches;   /* a line can be prefetched */
  bool follows_runs; /* it reads a long run ahead by itself, so that a prefetch of the run only costs time */
  double line_wait;  /* cycles until a line that a store waits for is in L1; 0: other threads run meanwhile */

  double mhz;
  /* Operations on f32 that one core does in a cycle; fmas: fused multiply-adds. */
  double fmas, ops;
  double weight[WEIGHT_COUNT]; /* cost of an operation, in additions */
  /* Size of a vector register; on a GPU of the widest load. */
  int vec_bytes;
  /* Number of vector registers; on a GPU, words of registers of a thread. */
  int registers;
  /* Threads in step (a warp); 1 on a CPU. */
  int warp;
  /* Threads of a core that are needed to keep its memory busy; 1 on a CPU. */
  int threads;
  /* Cycles of a load from memory, which a thread of a GPU waits for. 0 on a CPU, because it reads ahead. */
  int latency;
  bool copies; /* it copies to shared memory asynchronously: no thread waits for the loads */
  /* Local memory that a kernel may use: scratch in L2 of a core, or shared memory of a block. Plans use at
   * most local_bytes. A list of opts may use up to local_most. */
  int64_t local_bytes, local_most;
  /* most bytes of a copy of what a kernel reads; 0: a copy is to stay in the last level of cache */
  int64_t copy_most;
  /* A value of at most this many bytes is kept whole, even if each reader reads a slice of its own. 0: all
   * values are. */
  int64_t slice_most;
  int64_t memory; /* most bytes of all temporaries; 0: no limit */
  /* Kernels are joined as if reading and writing took this many times as long, so that less is kept in
   * memory. 0: once. */
  double memory_price;
  /* A copy of weights must replace them, or not be made, because everything that is kept is in flash. */
  bool copies_replace;
  LaunchLimits most; /* all 0 on a CPU */
  double launch_us;
  /* The time to hand the shares of a grid to the other cores and wait for the last. One core alone runs what
   * is shorter than that. */
  double distribute_us;
  /* the best instruction for products of bytes; NONE: they are computed as products of 16-bit words */
  Dots dots;
  /* Bit i: it has the unit of row i in matrix.h. */
  uint32_t matrices;
} Target;

/* How many results of DOT2X2 can be added up in 16 bits if no byte of src0 is more than `most`. */
static inline int64_t target_pairs(int64_t most) { return INT16_MAX / TG_MAX(2 * -INT8_MIN * most, 1); }

static inline double target_ops_us(const Target *t) { return t->ops * t->mhz; }

static inline double target_flops_us(const Target *t) { return 2 * t->fmas * t->mhz; }

/* The level in which a working set stays that is read again. It may use half of a level, because the rest
 * holds other data. */
static inline MemoryLevel target_level(const Target *t, double nbytes) {
  for (int l = LEVEL_L1; l < LEVEL_MEMORY; l++)
    if (t->cache[l] && nbytes <= (double)t->cache[l] / 2) return (MemoryLevel)l;
  return LEVEL_MEMORY;
}

static inline int64_t target_copy_most(const Target *t) {
  if (t->copy_most) return t->copy_most;
  return t->cache[LEVEL_L3] ? t->cache[LEVEL_L3] : t->local_bytes;
}

/* The us in which one core reads nbytes from the level in which they stay. */
static inline double target_read_us(const Target *t, double nbytes) {
  double us = nbytes / t->bytes_us[target_level(t, nbytes)];
  return t->memory_price > 0 ? us * t->memory_price : us;
}

/* The dtype in which a running reduction of values of dtype d is carried. */
DType target_running(const Target *t, Ops op, DType d);
double target_weight(const Target *t, const UOp *u); /* cost of an operation, in additions; 0: free */
extern const Target target_planned, target_amx, target_dot, target_c99, target_cuda, target_metal;
/* This processor, without matrix units, because the system must be asked for permission to use these. */
Target target_this_cpu(void);

/* Finds a processor that source text is written for. *out is one core of it. vectors: "gnu", "none", or NULL
 * for what is usual for the processor; *gnu is the choice. Returns the compiler's flags for it, or NULL if
 * there is no such processor, or it has no vectors. */
#define TARGET_NAMES                                                                                         \
  "generic, native, x86-64-v2, x86-64-v3, x86-64-v4, armv8, cortex-m4, cortex-m7, wasm32 or wasm-simd"
const char *target_named(const char *name, const char *vectors, Target *out, bool *gnu);

/* Whether a GPU can launch this grid of these blocks. If not, `why` is a sentence that names the limit. */
enum { LAUNCH_WHY = 120 };

bool target_launches(const Target *t, const int grid[3], const int block[3], char why[LAUNCH_WHY]);
void target_print(Str *out, const Target *t);
#endif
