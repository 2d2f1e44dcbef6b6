/* plan.h: the nest that a list of opts makes. In: a kernel's shape and the list. Out: its loops from the
 * outer ones to the inner ones, and what is copied where. Also, for such a nest: what its steps take, and
 * what it moves through memory. cost.c adds these up. */
#ifndef TG_PLAN_H
#define TG_PLAN_H
#include "plan/cost.h"

enum { MOST_LEVELS = 2 * MAX_LOOPS + MAX_TAKEN };

typedef struct Level {
  int loop;
  /* trips: iterations of this level; ext: iterations of every loop that are left below this level */
  double trips, ext[MAX_LOOPS];
} Level;

typedef struct Plan {
  const KernelShape *c;
  /* n: number of levels; ntile: levels that TILE made; vec, group: loop of the VEC or GROUP, or -1;
   * first_stage: number of levels outside the first STAGE that is inside a loop, or -1 */
  int n, ntile, vec, group, first_stage;
  double whole[MAX_LOOPS], ext[MAX_LOOPS], up[MAX_LOOPS], unroll[MAX_LOOPS];
  /* bit r: the tile of loop r consists of iterations at equal distances (UPCASTTOP) */
  uint32_t top;
  /* staged_at: number of levels outside the copy; -1: not staged */
  int order[MAX_LOOPS], staged_at[MAX_ACCESS];
  double copy[MAX_ACCESS];
  bool any_copy; /* each access is assumed to have the copy that is best for it */
  /* blocks of the reduction outside the outputs: each adds to local memory, or to the only output */
  double blocks;
  Level level[MOST_LEVELS]; /* n of them; the last field, so that a new plan need not set them to zero */
} Plan;

/* Whether a level belongs to one of a body's loops. */
static inline bool is_around(const Plan *p, int body, int level) {
  return p->c->body[body].loops >> p->level[level].loop & 1;
}

/* The bytes that a core reads from a level of memory in a cycle. */
static inline double cycle_bytes(const Target *t, int from) { return t->bytes_us[from] / t->mhz; }

/* Whether a copy is made only once, before the kernel runs. That is not done for a copy larger than its
 * source. */
static inline bool is_prepacked(const Access *a) { return a->stays && a->copied <= a->bytes; }

/* Returns false if the list cannot be applied. */
bool plan_make(Plan *p, const KernelShape *c, const Taken *t);
/* The axis of a copy that only the lanes move along; panels make the lanes contiguous (stage.c). -1: the copy
 * has the order of the buffer. */
int panel_axis(const Plan *p, int access);
/* Whether lanes are contiguous, either in memory or in a copy. A copy has panels of them if they are an axis
 * of their own. */
bool lanes_contiguous(const Plan *p, int access);
/* The footprint of a copy in ext[r] iterations of each loop r. */
Footprint footprint_of_copy(const Plan *p, int access, const double *ext);

/* ---- steps.c */
/* The cycles of all steps if everything that they read is in L1. *tile: vectors of results that one step
 * has. */
double compute_of(Plan *p, double *tile);

/* ---- traffic.c */
/* What each access touches below each level of the plan; [0] is the whole kernel. */
typedef struct Footprints {
  Footprint of[MOST_LEVELS + 1][MAX_ACCESS];
  double all[MOST_LEVELS + 1]; /* bytes of all accesses together */
  double pages[MOST_LEVELS + 1];
} Footprints;

void footprints_of(const Plan *p, Footprints *footprints);
/* Whether an access is read from memory, not from a cache: it is large, or it is a matrix that nested sums
 * decode. Such a matrix is one of many, and all the rest are read before it is read again. */
bool is_far(const KernelShape *c, const Access *a);
/* The number of contiguous elements that a store writes at once if a tile is transposed in registers;
 * otherwise 0. */
double turned_run(const Plan *p, const Access *x);
/* The cycles that all accesses take to move data into a level. *copied: the part of accesses that read a
 * copy. */
double traffic_of(const Plan *p, const Footprints *footprints, int level, double *copied);
/* How much faster memory is read by several streams than by one. A core has lines of each stream in
 * flight. */
double streams_gain(const Plan *p, const Footprints *footprints, int ncores);
/* The cycles spent waiting for pages, rows, streams and lines of stores. */
double waits_of(const Plan *p, const Footprints *footprints);
#endif
