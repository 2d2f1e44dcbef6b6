/* share.h: a STAGE while it is made: what is read of the buffer, and where the copy has it. Shared by
 * stage.c, which measures, and share.c, which fills the memory that the threads of a GPU's block share. */
#ifndef TG_STAGE_H
#define TG_STAGE_H
#include "codegen/nest.h"

typedef struct Axis {
  UOp *base;         /* of the index, loops outside alone */
  int64_t low, span; /* offsets are low .. low + span - 1 */
  UOp *last;         /* the largest of them, where loops of unknown length say; NULL: low + span - 1 */
  bool clip, gate;   /* it is bounded (gate: by the gate, with zeros outside): .. */
  int64_t from, to;  /* .. from <= index < to */
  int64_t step;      /* elements of the buffer that it moves by */
  int64_t place;     /* elements of the copy that it moves by; of a panel for the axis of lanes */
} Axis;

typedef struct Staged {
  Kernel *k;
  UOp *nest, *param;    /* the statement that reads, and what */
  int64_t along;        /* reads that move with this loop of the kernel, or EVERY_READ */
  DType dtype;          /* of the copy: what all that read it convert it to */
  UOpVec reads, inside; /* INDEX nodes; ranges that are opened in the nest */
  Vec(Clauses) left;    /* of each read, what of its gate stays with it */
  UOpVec padded;        /* the latter, as long as they get */
  int naxis, lane_axis; /* lane_axis: -1: none */
  Axis axis[MAX_AXES];
  bool lines;    /* as units of four warps read it: lines of 128 bytes, whose 16 bytes are exchanged */
  int64_t nline; /* so many */
  int64_t lanes, panel, nelem; /* lanes of a panel, elements of one, elements of the copy */
  UOp *memory;
  const char *why; /* it cannot be staged */
} Staged;

/* A range of the nest that is a part of the kernel's loop `root`, or NULL. */
UOp *staged_range(const Staged *s, int64_t root);

/* Whether every read has axis d at base + low + r, or a multiple of `unit` further. */
bool staged_along(Staged *s, int d, UOp *r, int64_t unit);

/* share.c: a loop of the nest with the iterations that threads and tiles to come pad it with: they read too.
 */
UOp *share_padded(Kernel *k, UOp *r);

/* share.c: the places of the axes in shared memory, and nelem; false: too large. */
bool share_lay_out(Staged *s);

/* share.c: the element of the copy that is at[d] along each axis, of one in lines. */
UOp *share_line(Staged *s, UOp *const *at);

/* The statement that fills the copy, by all threads of a block. NULL: out of memory. */
UOp *share_fill(Staged *s);
#endif
