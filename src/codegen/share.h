/* share.h: a STAGE while it is being made: what is read of the buffer, and where the copy holds it. Shared
 * by stage.c, which measures the reads, and share.c, which fills the memory that the threads of a GPU
 * block share. */
#ifndef TG_STAGE_H
#define TG_STAGE_H
#include "codegen/nest.h"

typedef struct Axis {
  UOp *base;         /* the part of the index that depends on outside loops only */
  int64_t low, span; /* offsets from base are low .. low + span - 1 */
  UOp *last;         /* the largest offset, if it depends on loops of unknown length; NULL: low + span - 1 */
  bool clip, gate;   /* the index is bounded (gate: by the gate, with zeros outside): .. */
  int64_t from, to;  /* .. from <= index < to */
  int64_t step;      /* elements of the buffer for one step of the axis */
  int64_t place;     /* elements of the copy for one step; for the axis of lanes: for one panel */
} Axis;

typedef struct Staged {
  Kernel *k;
  UOp *nest, *param;    /* the statement that reads, and the buffer that it reads */
  int64_t along;        /* copy the reads that move with this loop of the kernel, or EVERY_READ */
  DType dtype;          /* of the copy: the dtype to which all its readers convert */
  UOpVec reads, inside; /* INDEX nodes that read; ranges of the loops inside the nest */
  Vec(Clauses) left;    /* for each read, the clauses of its gate that stay with it */
  UOpVec padded;        /* the ranges of `inside`, with their padded extents */
  int naxis, lane_axis; /* lane_axis is -1 if there is none */
  Axis axis[MAX_AXES];
  bool lines;    /* for units of four warps: lines of 128 bytes, whose 16-byte chunks are permuted */
  int64_t nline; /* the number of lines */
  int64_t lanes, panel, nelem; /* lanes of a panel, elements of a panel, elements of the copy */
  UOp *memory;
  const char *why; /* why the buffer cannot be staged */
} Staged;

/* The range of the nest that is a part of the kernel's loop `root`, or NULL. */
UOp *staged_range(const Staged *s, int64_t root);

/* Whether the index of axis d in every read is base + low + r, plus a multiple of `unit`. */
bool staged_along(Staged *s, int d, UOp *r, int64_t unit);

/* share.c: the range r, extended by the iterations that later thread and tile opts pad it with, because
 * those read too. */
UOp *share_padded(Kernel *k, UOp *r);

/* share.c: sets the places of the axes in shared memory, and nelem. Returns false if the copy is too
 * large. */
bool share_lay_out(Staged *s);

/* share.c: for a copy in lines, the index of the element that is at at[d] along each axis d. */
UOp *share_line(Staged *s, UOp *const *at);

/* Returns the statement by which all threads of a block fill the copy, or NULL if out of memory. */
UOp *share_fill(Staged *s);
#endif
