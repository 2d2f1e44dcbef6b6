/* grid_cost.h: the cost of a kernel on a GPU, estimated from its program. In: the program of one thread and
 * its launch. Out: an estimate in us, and its parts. */
#ifndef TG_GRID_COST_H
#define TG_GRID_COST_H
#include "plan/target.h"

/* The us that each part would take on its own. */
typedef struct GridCost {
  double us;      /* total, without the launch */
  double compute; /* instructions of all threads, and products of the matrix units */
  /* shared memory and L1: a core reads 128 bytes a cycle if no two threads access the same bank */
  double shared;
  double l2, memory;
  double waits;  /* the blocks of a core one after the other, in which each thread waits for what it reads */
  int registers; /* words that a thread needs at the same time */
  int resident;  /* blocks that are resident on a core at the same time */
} GridCost;

/* us is INFINITY if there are too many loops or instructions. Returns false if out of memory. */
bool grid_cost(const Target *t, const Linear *lin, TgMem *mem, GridCost *out);
/* Prints "   12.3  compute 1.2, ..  ", in us. */
void grid_cost_print(Str *out, const GridCost *c);
#endif
