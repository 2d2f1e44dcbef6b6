/* split.h: shared by the opts that split a loop: facts about a loop, and a loop over parts of its range. */
#ifndef TG_SPLIT_H
#define TG_SPLIT_H
#include "codegen/nest.h"

typedef struct Facts {
  UOpVec started; /* registers that are started in the loop */
  UOpVec rows;    /* local memory that the loop fills anew in every iteration */
  bool carries;   /* the loop steps a register that is started outside */
  bool lanes;     /* a statement in the loop has lanes already */
} Facts;

static inline void facts_free(Kernel *k, Facts *f) {
  vec_free(k->mem, &f->started), vec_free(k->mem, &f->rows);
}

bool facts_of(Kernel *k, UOp *loop, Facts *f);

/* Returns the statements of a body, each over the expanded range r. Registers that are started in the body
 * get an axis for r. */
UOp *spread(Kernel *k, UOp *body, UOp *r);

/* Whether local memory has room for n copies of the rows that each iteration of a loop fills for itself. */
bool rows_fit(Kernel *k, const Facts *f, int64_t n);

/* The number of blocks of n iterations in `extent`, with the last one that may be shorter. */
UOp *blocks_in(Kernel *k, UOp *extent, int64_t n);
/* A range over blocks of loop `of`, marked as that. */
UOp *range_of_blocks(Kernel *k, UOp *blocks, AxisType type, const UOp *of);
/* A loop over `trips` iterations of `loop`, from `first` on. like: as in kernel_range. */
UOp *loop_between(Kernel *k, UOp *loop, UOp *first, UOp *trips, AxisType type, const UOp *like);
/* A loop over the n iterations of a block, or over those that are left. */
UOp *loop_of_block(Kernel *k, UOp *loop, UOp *block, int64_t n, const UOp *like);

typedef struct Part {
  UOp *base, *blocks, *n; /* r = base + block * n + inner; top: base + inner * blocks + block */
  AxisType inner;
  UOp *size; /* NULL, or the end of r: iterations past it do nothing */
  bool top;
} Part;

enum { MOST_PARTS = 2 * (MOST_CUTS + 1) };

/* Returns loop u, which is in `nest`, over one part of its range: the new statements, as a SINK. */
UOp *part_of(Kernel *k, UOp *nest, UOp *u, const Part *p, bool tile);

/* Replaces a loop by all its parts. */
bool in_parts(Kernel *k, UOp *nest, UOp *u, const Part *p, int n, bool tile);

/* The loop around which a TILE of u puts its loop over blocks. */
UOp *front(Kernel *k, UOp *u);

/* Divides a loop of constant (known) or symbolic (unknown) length into parts of o->n iterations. Returns
 * the number of parts; 0: out of memory. */
int parts_of_known(Kernel *k, const Opt *o, UOp *loop, AxisType inner, Part *p);
int parts_of_unknown(Kernel *k, const Opt *o, const UOp *r, AxisType inner, Part *p);
#endif
