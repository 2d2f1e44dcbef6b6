/* cost.h: the cost of a kernel with a list of opts, before its nest is made. In: a kernel's shape, a list.
 * Out: an estimate in cycles of one core, and its parts. */
#ifndef TG_COST_H
#define TG_COST_H
#include "plan/opt.h"
#include "plan/shape.h"

enum { MAX_TAKEN = 16 };

/* A list of opts in terms of loop numbers; the r of a STAGE is the number of an access. */
typedef struct Taken {
  int n;
  Opt opt[MAX_TAKEN];
} Taken;

typedef struct Cost {
  double cycles, compute, traffic[3], copy, stores;
  /* bytes that an iteration of the outermost loop touches, most of which each iteration reads anew */
  double again;
  int thread; /* the loop that is distributed over threads, or -1 */
} Cost;

/* Estimates *out for ncores cores. Returns false if the list cannot be applied, or costs more than `most`. */
bool cost_of(const KernelShape *c, const Taken *t, int ncores, double most, Cost *out);
/* A lower bound, in cycles, for all lists that end with these opts (UPCAST, VEC, UNROLL), whatever they tile
 * and copy before them. */
double cost_least(const KernelShape *c, const Taken *last, int ncores);

/* sum_order.c: whether the list keeps the order of sums that must not depend on it: of nested sums, and of all
 * sums if the kernel is `invariant`. */
bool keeps_order(const KernelShape *c, const Taken *t);
/* choose.c: finds the list that costs least. costs: NULL, or where each list that is considered is written
 * with its cost. Returns false if out of memory. */
bool choose_list(const KernelShape *c, int ncores, TgMem *mem, Str *costs, Taken *best, Cost *cost);
/* loop_names.c: writes a line for `tg opt --emit costs`: thousands of cycles, their parts, the list. */
void cost_line(const KernelShape *c, const Taken *t, const Cost *cost, int ncores, TgMem *mem, Str *costs);
/* Writes the cost of a given list. Writes nothing if the model does not know one of its opts. */
void cost_given(const KernelShape *c, const OptVec *list, int ncores, TgMem *mem, Str *costs);
/* The cycles that a kernel takes on one core with those opts of a list that change its loops. */
double cost_of_list(const KernelShape *c, const OptVec *list);
/* Translates a list to the numbers of the kernel's graph, and adds the loop that is distributed. Returns
 * false if out of memory. */
bool list_named(const KernelShape *c, const Taken *t, const Cost *cost, int ncores, TgMem *mem, OptVec *out);
#endif
