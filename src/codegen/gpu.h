/* gpu.h: shared by the files that make a grid of a kernel. gpu.c distributes loops to threads; join.c joins
 * what threads have. */
#ifndef TG_GPU_H
#define TG_GPU_H
#include "codegen/nest.h"

typedef struct Grid {
  Kernel *k;
  int nlocal;
  int64_t extent[3];
  UOp *thread[3];
  UOpVec from, to; /* ranges and the indices that they become */
  int inner;       /* the axis of inner LOCAL loops, or -1 */
} Grid;

/* The number of a thread in its block, how many there are, and how far apart neighbours along the inner axis
 * are. */
UOp *grid_thread(Grid *g, int64_t *all, int64_t *step);

/* Partial values of the threads along the inner axis, in the register that acc steps, become one in all of
 * them. */
bool threads_join(Grid *g, const UOp *acc, UOpVec *out);

/* The iterations of a loop that scans, one for each thread along the inner axis: whole warps. */
bool threads_scan(Grid *g, const UOp *loop, UOpVec *out);
#endif
