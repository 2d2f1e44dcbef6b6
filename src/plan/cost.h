/* cost.h: what a list of opts costs a kernel, before its nest is made. In: a kernel's shape, a list. Out: an
 * estimate in cycles of one core, and its parts. */
#ifndef TG_COST_H
#define TG_COST_H
#include "plan/opt.h"
#include "plan/shape.h"

enum { MAX_TAKEN = 16 };

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

/* False: it cannot be done so, or costs more than `most`. */
bool cost_of(const KernelShape *c, const Taken *t, int ncores, double most, Cost *out);
/* Cycles that no list with these last opts (UPCAST, VEC, UNROLL) stays below, whatever it tiles and copies
 * before them. */
double cost_least(const KernelShape *c, const Taken *last, int ncores);

/* choose.c: the list that costs least. False: out of memory. costs: NULL, or where each list that is
 * considered is written with what it costs. */
bool choose_list(const KernelShape *c, int ncores, TgMem *mem, Str *costs, Taken *best, Cost *cost);
/* loop_names.c: a line for `tg opt --emit costs`: thousands of cycles, their parts, the list. */
void cost_line(const KernelShape *c, const Taken *t, const Cost *cost, int ncores, TgMem *mem, Str *costs);
/* Writes what a list costs that somebody else made; nothing where the model does not know one of its opts. */
void cost_given(const KernelShape *c, const OptVec *list, int ncores, TgMem *mem, Str *costs);
/* Cycles that a kernel takes on one core with those opts of a list that are about its loops. */
double cost_of_list(const KernelShape *c, const OptVec *list);
/* A list in the numbers of the kernel's graph, with the loop that is distributed. */
bool list_named(const KernelShape *c, const Taken *t, const Cost *cost, int ncores, TgMem *mem, OptVec *out);
#endif
