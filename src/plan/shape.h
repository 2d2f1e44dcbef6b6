/* shape.h: a kernel as the planner sees it. In: who makes a kernel fills one in (codegen/kernel_shape.c).
 * Out: its loops, and for each access how its place moves with them; how much memory an access touches in so
 * many iterations of each loop. The one key fact: it is numbers alone, so that a kernel that does not exist
 * yet can be asked about. */
#ifndef TG_SHAPE_H
#define TG_SHAPE_H
#include "plan/tile.h"
#include <math.h>

/* MAX_AXES: of an access. LINE: bytes of a cache's line. */
enum { MAX_AXES = 16, MAX_LOOPS = 14, MAX_ACCESS = 12, MAX_SUMS = 16, MAX_BODIES = 4, LINE = 64 };

typedef struct Access {
  const UOp *index; /* for who made the shape; NULL: it is of no graph */
  int64_t slot;
  int bytes, naxis; /* bytes of an element */
  int copied;       /* bytes of an element of its copy */
  int beside;       /* an earlier access that comes into a level with it, in the same lines; -1: none */
  int more;         /* other reads that it stands for: a constant further, of elements of their own */
  int64_t coef[MAX_AXES][MAX_LOOPS], extent[MAX_AXES], step[MAX_AXES];
  /* of a loop whose iterations move an index by different steps: how far in all; 0: the steps are equal */
  int64_t reach[MAX_AXES][MAX_LOOPS];
  int64_t by[MAX_LOOPS];     /* elements that it moves by when the loop does */
  int by_step[MAX_AXES];     /* axes, the largest step first */
  uint32_t on[MAX_AXES];     /* bit r: the index of the axis moves with loop r */
  double whole;              /* bytes that it touches in the whole kernel */
  uint32_t moves;            /* bit r: it moves with loop r */
  uint32_t computed;         /* bit r: .. by different steps */
  uint32_t gate_moves;       /* bit r: its gate does */
  uint32_t edges[MAX_LOOPS]; /* of the clauses of its gate that move with loop r, all loops */
  uint32_t asks;             /* bit r: what all factors of the product ask moves with loop r */
  uint32_t uneven;           /* bit r: .. by other than whole vectors */
  int alone[MAX_LOOPS];      /* the axis that moves with loop r by one; -1: none */
  /* .. and with these loops: it moves with r alone where they have one iteration */
  uint32_t others[MAX_LOOPS];
  bool gated, even; /* even: every index is a sum of loops times constants */
  bool found;       /* its place is data, as that of what is looked up in a table */
  bool clips;       /* its gate, if any, is an interval of each axis */
  bool in_sum;      /* read in every step of the reduction; of a kernel that has none, of its loops */
  int body;         /* the one that it is read in, of a sum */
  bool stays;       /* it reads the same at every launch: a copy of it can be made once, before */
  bool
      streamed; /* in_sum, each element is of one output, or, where it is decoded, of few; more than L1 has */
  bool converted; /* in_sum, and its copy holds what every reader converts it to */
} Access;

/* Memory that is touched. */
typedef struct Footprint {
  double bytes, run, rows;      /* run: contiguous bytes of each row */
  double blocks, lines, stride; /* rows that follow each other in the same lines are a block of so many lines;
                                   stride: bytes between those */
} Footprint;

/* Operations of what is summed, but for the product, or of all outputs where nothing is; by the loops that
 * they move with. */
typedef struct Work {
  uint32_t on, decided; /* decided: nothing is left of them where these loops are written out */
  int body;
  int converts; /* the access whose copy holds what they make of it; 0: none, as that is a store */
  double weight;
} Work;

enum { MAX_WORK = 32 };

/* The body of a loop nest: what is computed in each iteration of the same loops, and summed. */
typedef struct Body {
  uint32_t loops, own; /* all loops around it; those that its sums go over */
  int nsum;
  bool fused;    /* products are summed: two steps a cycle of the whole vector */
  bool integers; /* .. of numbers that a compiler may add in any order */
} Body;

/* Reductions over the loops `reduce`, or none; one or more stores over all others. Reductions of the same
 * loops, of which none needs another, are one body. Where a reduction needs another one in each of its
 * iterations, that one is of an inner body: sums are nested. Body 0 is the outermost. */
enum {
  LENGTHS = 3
}; /* that a kernel with loops of unknown length is planned for: the middle, least and most */

typedef struct KernelShape {
  const Target *target;
  Target eight;           /* .. where sums are of 8 bytes */
  double at;              /* loops of unknown length have the least iterations, 0, to the most, 1 */
  int n, naccess, nstore; /* stores come first in `access` */
  const UOp *range[MAX_LOOPS];
  int64_t size[MAX_LOOPS]; /* iterations that the loop is planned for */
  int64_t most[MAX_LOOPS]; /* .. that it has at the most: memory is for so many */
  uint32_t reduce;
  uint32_t around;          /* bit r: loop r is other nests' as well: it stays as it is */
  int nests;                /* of the kernel: each line of text is paid for in the time of all of them */
  uint32_t open;            /* bit r: how many iterations loop r has is known when it runs */
  struct KernelShape *also; /* the same kernel, planned for other lengths of those; NULL: no more */
  uint32_t summed;          /* bit r: each iteration of loop r sums for itself */
  bool own;                 /* an output has a loop that others lack: it is none of these */
  Access access[MAX_ACCESS];
  int nwork;
  Work work[MAX_WORK];
  /* Bit r: written out, loop r (of the reduction, where there is one) decides a condition or a shift. */
  uint32_t decides;
  uint32_t
      bounds[MAX_LOOPS]; /* loops whose sums count where a condition holds that moves with loop r as well */
  bool invariant;        /* the order of a sum depends on its own loop alone */
  bool plain;            /* one output, which is what was summed */
  bool whole; /* all outputs are over all loops but those summed over: blocks of a sum can add up */
  int nbody;  /* 1, or more where sums are nested */
  Body body[MAX_BODIES];
  int nsum;             /* reductions, those of body 0 first */
  UOp *value[MAX_SUMS]; /* what is summed, by each of them */
  double after;         /* operations that an output takes beside its sums */
} KernelShape;

static inline double access_reads(const Access *a) { return 1 + a->more; }

static inline double lines_of(double nbytes) { return fmax(1, ceil(nbytes / LINE)); }

static inline bool is_nested(const KernelShape *c) { return c->nbody > 1; }

static inline bool is_summed_over(const KernelShape *c, int r) { return c->reduce >> r & 1; }

static inline bool is_open(const KernelShape *c, int r) { return c->open >> r & 1; }

/* The innermost body of what moves with these loops: it stands where all of them are known. */
int body_around(const KernelShape *c, uint32_t loops);
/* The most sums of a body. */
int most_sums(const KernelShape *c);

/* An access whose index, extent, step and coef of each axis are known: the rest of it follows. */
void access_settle(Access *a, const KernelShape *c);

/* What an access touches in ext[r] iterations of each loop r; elements of each axis, and of all. */
Footprint access_footprint(const Access *a, const double *ext);
double access_spans(const Access *a, const double *ext, double *span);
int64_t access_step(const Access *a, int loop); /* elements that it moves by when the loop does */
/* Vectors that lanes along a loop lie in: 1 where they are contiguous, else their stride, up to MOST_STRIDE;
 * 0: they are read lane by lane. */
int access_vectors(const Access *a, int loop);
/* Whether its place along a loop is computed of that one alone, not a step from the one before. */
bool place_known(const Access *a, int loop);

/* Whether one copy of what an access reads can serve: its index is a sum of loops, its gate an interval of
 * them, and if something else reads its buffer, there is a loop that the access alone moves with. *loop: that
 * one, or -1: it is the only read. */
bool can_stage(const KernelShape *c, int access, int *loop);

/* Adds operations. Past the room there is for kinds of work, all is of the last kind. */
void work_add(KernelShape *c, Work w);
#endif
