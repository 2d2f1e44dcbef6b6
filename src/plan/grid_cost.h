/* grid_cost.h: what a kernel takes on a GPU, by its program. In: the program of one thread and its launch.
 * Out: an estimate in us, and what it is made of. */
#ifndef TG_GRID_COST_H
#define TG_GRID_COST_H
#include "plan/target.h"

/* us that each part would take alone. */
typedef struct GridCost {
  double us;      /* in all, without the launch */
  double compute; /* instructions of all threads, and products of the matrix units */
  double shared;  /* shared memory and L1: a core reads 128 bytes a cycle where no two threads ask one bank */
  double l2, memory;
  double waits;  /* the threads of one block after another: each waits for what it reads */
  int registers; /* words that a thread has at once */
  int resident;  /* blocks that a core has at once */
} GridCost;

/* us is INFINITY where there are too many loops, or instructions. False: out of memory. */
bool grid_cost(const Target *t, const Linear *lin, TgMem *mem, GridCost *out);
/* "   12.3  compute 1.2, ..  ": us. */
void grid_cost_print(Str *out, const GridCost *c);
#endif
