/* split.h: shared by the opts that split a loop: what a loop does, and a loop over parts of its range. */
#ifndef TG_SPLIT_H
#define TG_SPLIT_H
#include "codegen/nest.h"

typedef struct Facts {
  UOpVec started; /* registers that begin in it */
  UOpVec rows;    /* local memory that it fills anew in every iteration */
  bool carries;   /* it steps a register that begins outside */
  bool lanes;     /* a statement in it has its lanes */
} Facts;

static inline void facts_free(Kernel *k, Facts *f) {
  vec_free(k->mem, &f->started), vec_free(k->mem, &f->rows);
}

bool facts_of(Kernel *k, UOp *loop, Facts *f);

/* The statements of a body, each over the expanded range r. Registers that begin in it get an axis for r. */
UOp *spread(Kernel *k, UOp *body, UOp *r);

/* Whether local memory has room for n times the rows that each iteration of a loop fills for itself. */
bool rows_fit(Kernel *k, const Facts *f, int64_t n);

typedef struct Part {
  UOp *base, *blocks, *n; /* r = base + block * n + inner; top: base + inner * blocks + block */
  AxisType inner;
  UOp *size; /* NULL, or where r ends: iterations past it do nothing */
  bool top;
} Part;

enum { MOST_PARTS = 2 * (MOST_CUTS + 1) };

/* Loop u, found in `nest`, over one part of its range. -> the statements, as a SINK. */
UOp *part_of(Kernel *k, UOp *nest, UOp *u, const Part *p, bool tile);

/* All parts of a loop in its place. */
bool in_parts(Kernel *k, UOp *nest, UOp *u, const Part *p, int n, bool tile);

/* The loop that a TILE of u goes around. */
UOp *front(Kernel *k, UOp *u);

/* A loop of constant, or symbolic, length in parts of o->n iterations: how many parts; 0: out of memory. */
int parts_of_known(Kernel *k, const Opt *o, UOp *loop, AxisType inner, Part *p);
int parts_of_unknown(Kernel *k, const Opt *o, const UOp *r, AxisType inner, Part *p);
#endif
