/* plan.h: the nest that a list of opts gives. In: a kernel's shape and the list. Out: its loops from the
 * outer ones to the inner ones, what is copied where, and, of a nest like that, what its steps take and
 * what it moves through memory. cost.c adds those up. */
#ifndef TG_PLAN_H
#define TG_PLAN_H
#include "plan/cost.h"

enum { MOST_LEVELS = 2 * MAX_LOOPS + MAX_TAKEN };

typedef struct Level {
  int loop;
  double trips, ext[MAX_LOOPS]; /* of every loop, below this one */
} Level;

typedef struct Plan {
  const KernelShape *c;
  int n, ntile, vec, group, first_stage; /* ntile: levels that TILE made */
  /* first_stage: levels outside the first STAGE that stands in a loop */
  double whole[MAX_LOOPS], ext[MAX_LOOPS], up[MAX_LOOPS], unroll[MAX_LOOPS];
  uint32_t top;                                /* bit r: loop r has its tile at equal distances */
  int order[MAX_LOOPS], staged_at[MAX_ACCESS]; /* -1: not staged */
  double copy[MAX_ACCESS];
  bool any_copy; /* each access has the copy that suits it best */
  double blocks; /* of the reduction, outside the outputs: each adds to local memory, or to the one output */
  Level level[MOST_LEVELS]; /* n of them; last, so that no plan begins with zeroing them */
} Plan;

/* Whether a level is one of a body's loops. */
static inline bool is_around(const Plan *p, int body, int level) {
  return p->c->body[body].loops >> p->level[level].loop & 1;
}

/* Bytes of a level of memory that a core gets in a cycle. */
static inline double cycle_bytes(const Target *t, int from) { return t->bytes_us[from] / t->mhz; }

/* Whether a copy is made once, before the kernel: not one that is larger than what it is made of. */
static inline bool is_prepacked(const Access *a) { return a->stays && a->copied <= a->bytes; }

/* False: the list cannot be applied. */
bool plan_make(Plan *p, const KernelShape *c, const Taken *t);
/* The axis of a copy that lanes alone go along, which panels make contiguous (stage.c); -1: the copy has the
 * order of the buffer. */
int panel_axis(const Plan *p, int access);
/* Whether lanes are contiguous: in memory, or in a copy, which has panels of them where they are an axis of
 * their own. */
bool lanes_contiguous(const Plan *p, int access);
/* What is touched of a copy in ext[r] iterations of each loop r. */
Footprint footprint_of_copy(const Plan *p, int access, const double *ext);

/* ---- steps.c */
/* Cycles that all steps take where whatever they read is in L1; *tile: vectors of results of a step. */
double compute_of(Plan *p, double *tile);

/* ---- traffic.c */
/* What each access touches below each loop of the plan: [0] the whole kernel. */
typedef struct Footprints {
  Footprint of[MOST_LEVELS + 1][MAX_ACCESS];
  double all[MOST_LEVELS + 1]; /* bytes of all together */
  double pages[MOST_LEVELS + 1];
} Footprints;

void footprints_of(const Plan *p, Footprints *footprints);
/* Whether an access comes from memory: it is large, or a matrix that nested sums decode, one of many of which
 * the others were read since. */
bool is_far(const KernelShape *c, const Access *a);
/* Elements of a run of a store that is written at once, where a tile of it is turned in registers; else 0. */
double turned_run(const Plan *p, const Access *x);
/* Cycles of all accesses' traffic into a level; *copied: the part of accesses that read a copy. */
double traffic_of(const Plan *p, const Footprints *footprints, int level, double *copied);
/* How much faster memory is read by several streams than by one: of each a core has lines under way. */
double streams_gain(const Plan *p, const Footprints *footprints, int ncores);
/* Cycles in which pages, rows, streams and lines of stores are waited for. */
double waits_of(const Plan *p, const Footprints *footprints);
#endif
