/* gpu.h: shared by the files that turn a kernel into a grid. gpu.c distributes loops to threads; join.c
 * combines the values of threads. */
#ifndef TG_GPU_H
#define TG_GPU_H
#include "codegen/nest.h"

typedef struct Grid {
  Kernel *k;
  int nlocal;
  int64_t extent[3];
  UOp *thread[3];
  UOpVec from, to; /* ranges, and the indices that replace them */
  int inner;       /* the axis of the block for inner LOCAL loops, or -1 */
} Grid;

/* Returns the number of a thread in its block. *all: the number of threads of the block. *step: how far
 * apart the numbers of neighbours along the inner axis are. */
UOp *grid_thread(Grid *g, int64_t *all, int64_t *step);

/* Reduces the partial values of the threads along the inner axis, which are in the register that acc
 * steps, to one value in all of them. */
bool threads_join(Grid *g, const UOp *acc, UOpVec *out);

/* Gives each thread along the inner axis one iteration of a loop that scans. The threads are whole warps. */
bool threads_scan(Grid *g, const UOp *loop, UOpVec *out);
#endif
