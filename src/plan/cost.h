/* cost.h: what a list of opts costs a kernel, before its nest is made. In: the loops of a contraction, how
 * each access moves with them, a list. Out: an estimate in cycles of one core, and its parts. */
#ifndef TG_COST_H
#define TG_COST_H
#include "codegen/codegen.h"
#include "uop/tile.h"
#include <math.h>

enum { MAX_LOOPS = 14, MAX_ACCESS = 12, MAX_TAKEN = 16, LINE = 64 }; /* LINE: bytes of a cache's line */

typedef struct Access {
  const UOp *index;
  int64_t slot;
  int bytes, naxis; /* of an element */
  int copied;       /* bytes of an element of its copy */
  int beside;       /* an earlier access that comes into a level with it, in the same lines; -1: none */
  int64_t coef[MAX_AXES][MAX_LOOPS], extent[MAX_AXES], step[MAX_AXES];
  int64_t by[MAX_LOOPS]; /* elements that it moves by when the loop does */
  int by_step[MAX_AXES]; /* axes, the largest step first */
  uint32_t on[MAX_AXES]; /* bit r: the index of the axis moves with loop r */
  double whole;          /* bytes that it touches in the whole kernel */
  uint32_t moves;        /* bit r: it moves with loop r */
  uint32_t uneven;       /* bit r: .. by other than whole vectors */
  int alone[MAX_LOOPS];  /* the axis that moves with loop r alone, by one; -1: none */
  bool gated, even;      /* even: every index is a sum of loops times constants */
  bool clips;            /* its gate, if any, is an interval of each axis */
  bool in_sum;           /* read in every step of the reduction */
  bool converted;        /* in_sum, and its copy holds what every reader converts it to */
} Access;

/* Memory that is touched. */
typedef struct Footprint {
  double bytes, run, rows;      /* run: contiguous bytes of each row */
  double blocks, lines, stride; /* rows that follow each other in the same lines are a block of so many lines;
                                   stride: bytes between those */
} Footprint;

/* Operations of the reduction's value, but for the product that is summed, by the loops that they move with. */
typedef struct Work {
  uint32_t on, decided; /* decided: nothing is left of them where these loops are written out */
  int converts;         /* the access whose copy holds what they make of it; 0: none, as that is a store */
  double weight;
} Work;

enum { MAX_WORK = 32 };

/* One reduction over the loops `reduce`, one or more stores over all others. */
typedef struct Contraction {
  const Target *target;
  Target eight;           /* .. where sums are of 8 bytes */
  int n, naccess, nstore; /* stores come first in `access` */
  const UOp *range[MAX_LOOPS];
  int64_t size[MAX_LOOPS];
  uint32_t reduce;
  uint32_t summed; /* bit r: each iteration of loop r sums for itself */
  Access access[MAX_ACCESS];
  int nwork;
  Work work[MAX_WORK];
  uint32_t decides; /* bit r: written out, loop r of the reduction decides a condition or a shift */
  bool plain;       /* one output, which is what was summed */
  bool whole;       /* all outputs are over all loops but those summed over: blocks of a sum can add up */
  UOp *value;       /* what is summed */
  bool fused;       /* a product is summed: two steps a cycle of the whole vector */
} Contraction;

typedef struct Taken { /* a list of opts in terms of loop numbers; a STAGE's r is the number of an access */
  int n;
  Opt opt[MAX_TAKEN];
} Taken;

typedef struct Cost {
  double cycles, compute, traffic[3], copy, stores;
  double
      again;  /* bytes that an iteration of the outermost loop touches: most of them in each iteration anew */
  int thread; /* loop that is distributed to threads, or -1 */
} Cost;

/* contraction.c. False: the kernel is none, or has loops of a length that is not known. */
bool contraction_of(Kernel *k, Contraction *c);

static inline double lines_of(double nbytes) { return fmax(1, ceil(nbytes / LINE)); }

/* False: it cannot be done so, or costs more than `most`. */
bool cost_of(const Contraction *c, const Taken *t, int ncores, double most, Cost *out);
/* Cycles that no list with these last opts (UPCAST, VEC, UNROLL) stays below, whatever it tiles and copies
 * before them. */
double cost_least(const Contraction *c, const Taken *last, int ncores);
/* contraction.c: what an access touches in ext[r] iterations of each loop r; elements of each axis, and of
 * all. */
Footprint access_footprint(const Access *a, const double *ext);
double access_spans(const Access *a, const double *ext, double *span);
int64_t access_step(const Access *a, int loop); /* elements that it moves by when the loop does */
/* Whether one copy of what an access reads can serve: it is read at one place, its index is a sum of loops,
 * its gate an interval of them. */
bool can_stage(const Contraction *c, int access);
/* units.c: a list that gives the contraction to matrix units, if it costs less than *cycles, which are then
 * its own. */
bool choose_units(Kernel *k, const Contraction *c, int ncores, double *cycles, OptVec *out, bool *chosen);
bool choose_contraction(Kernel *k, int ncores, OptVec *out, bool *chosen); /* candidates.c */
#endif
