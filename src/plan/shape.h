/* shape.h: a kernel as the planner sees it. In: the code that makes a kernel fills one in
 * (codegen/kernel_shape.c). Out: its loops, and how the place of each access moves with them; how much memory
 * an access touches in a given number of iterations of each loop. It consists of numbers alone, so a kernel
 * that does not exist yet can be planned. */
#ifndef TG_SHAPE_H
#define TG_SHAPE_H
#include "plan/tile.h"
#include <math.h>

/* MAX_AXES is for an access, and MAX_LOOPS, MAX_ACCESS, MAX_SUMS and MAX_BODIES are for a kernel. */
enum { MAX_AXES = 16, MAX_LOOPS = 14, MAX_ACCESS = 12, MAX_SUMS = 16, MAX_BODIES = 4 };

typedef struct Access {
  const UOp *index; /* for the code that made the shape; NULL: it belongs to no graph */
  int64_t slot;
  int bytes, naxis; /* bytes: size of an element */
  int copied;       /* size of an element of its copy */
  /* an earlier access that uses the same cache lines, so that both are loaded at once; -1: none */
  int beside;
  /* number of further reads that it stands for: each reads elements of its own, at a constant distance */
  int more;
  int64_t coef[MAX_AXES][MAX_LOOPS], extent[MAX_AXES], step[MAX_AXES];
  /* for a loop whose iterations move an index by unequal steps: total distance; 0: the steps are equal */
  int64_t reach[MAX_AXES][MAX_LOOPS];
  int64_t by[MAX_LOOPS];     /* elements that it moves by in one iteration of the loop */
  int by_step[MAX_AXES];     /* its axes, the largest step first */
  uint32_t on[MAX_AXES];     /* bit r: the index of the axis moves with loop r */
  double whole;              /* bytes that it touches in the whole kernel */
  uint32_t moves;            /* bit r: it moves with loop r */
  uint32_t computed;         /* bit r: it moves with loop r by unequal steps */
  uint32_t gate_moves;       /* bit r: its gate moves with loop r */
  uint32_t edges[MAX_LOOPS]; /* all loops that occur in a clause of its gate together with loop r */
  uint32_t asks;             /* bit r: a condition that all factors of the product share moves with loop r */
  uint32_t uneven;           /* bit r: it moves with loop r by a distance that is not whole vectors */
  int alone[MAX_LOOPS];      /* the axis that moves with loop r by one element; -1: none */
  /* the other loops that move that axis: r moves it alone if they have one iteration */
  uint32_t others[MAX_LOOPS];
  bool gated, even; /* gated: it has a gate of its own. even: every index is a sum of loops times constants */
  bool found;       /* its place is data, as in a table lookup */
  bool clips;       /* it has no gate, or its gate is an interval of each axis */
  bool in_sum;      /* it is read in every step of the reduction; if there is none, in every iteration */
  int body;         /* for a read in a sum: the body in which it is read */
  bool stays;       /* it reads the same data at every launch, so a copy can be made once, before */
  /* in_sum, larger than L1, and each element is used by one output (if it is decoded, by few) */
  bool streamed;
  bool converted; /* in_sum, and its copy holds the value that every reader converts it to */
} Access;

/* The memory that is touched. */
typedef struct Footprint {
  double bytes, run, rows; /* run: contiguous bytes of each row */
  /* consecutive rows that share cache lines form a block of `lines` lines; stride: bytes between blocks */
  double blocks, lines, stride;
} Footprint;

/* Operations, by the loops that they move with. They are those of a sum's terms without the product, or, if
 * nothing is summed, those of all outputs. */
typedef struct Work {
  uint32_t on, decided; /* decided: if these loops are written out, the operations vanish */
  int body;
  int converts; /* the access whose copy can hold their result; 0: none, since access 0 is a store */
  double weight;
} Work;

enum { MAX_WORK = 32 };

/* The body of a loop nest: what is computed in each iteration of the same loops, and summed. */
typedef struct Body {
  uint32_t loops, own; /* all loops around it; the loops that its sums go over */
  int nsum;
  bool fused;    /* products are summed by fused multiply-adds: two a cycle, of whole vectors */
  bool integers; /* it sums integers, which a compiler may add in any order */
} Body;

/* A kernel with loops of unknown length is planned for LENGTHS lengths: the middle, the least and the
 * most. */
enum { LENGTHS = 3 };

/* A kernel: reductions over the loops `reduce`, or none, and one or more stores over all other loops.
 * Reductions over the same loops that do not need each other share a body. If a reduction needs another one
 * in each of its iterations, the other one has an inner body, and the sums are nested. Body 0 is the
 * outermost. */
typedef struct KernelShape {
  const Target *target;
  Target eight; /* the target with half as many lanes, which is used if sums have 8 bytes */
  /* how long loops of unknown length are: 0 (the least number of iterations) to 1 (the most) */
  double at;
  int n, naccess, nstore; /* stores come first in `access` */
  const UOp *range[MAX_LOOPS];
  int64_t size[MAX_LOOPS]; /* trip count that the loop is planned for */
  int64_t most[MAX_LOOPS]; /* the largest trip count that it can have; memory must be enough for that */
  uint32_t reduce;
  uint32_t around; /* bit r: loop r is shared with other nests, so it stays as it is */
  /* number of loop nests of the kernel: a line of text is worth a share of the time of all of them */
  int nests;
  uint32_t open;            /* bit r: the trip count of loop r is known only at run time */
  struct KernelShape *also; /* the same kernel, planned for other lengths of those loops; NULL: no more */
  uint32_t summed;          /* bit r: each iteration of loop r has sums of its own */
  /* an output has a loop that not all outputs have; it is not in the list of loops */
  bool own;
  Access access[MAX_ACCESS];
  int nwork;
  Work work[MAX_WORK];
  /* Bit r: if loop r is written out, a condition or a shift becomes known. If there is a reduction, only its
   * loops count. */
  uint32_t decides;
  /* by loop r: the loops of sums that are bounded by a condition which moves with r as well */
  uint32_t bounds[MAX_LOOPS];
  bool invariant; /* the order of a sum may depend only on its own loop */
  bool plain;     /* there is one output, and it is the sum itself */
  /* each output has all loops except those summed over, so blocks of a sum can be added up in it */
  bool whole;
  int nbody; /* 1; more if sums are nested */
  Body body[MAX_BODIES];
  int nsum;             /* number of reductions; those of body 0 come first */
  UOp *value[MAX_SUMS]; /* what each of them sums */
  double after;         /* operations of an output besides its sums */
} KernelShape;

static inline double access_reads(const Access *a) { return 1 + a->more; }

static inline double lines_of(double nbytes) { return fmax(1, ceil(nbytes / LINE)); }

static inline bool is_nested(const KernelShape *c) { return c->nbody > 1; }

static inline bool is_summed_over(const KernelShape *c, int r) { return c->reduce >> r & 1; }

static inline bool is_open(const KernelShape *c, int r) { return c->open >> r & 1; }

/* The innermost body in which all these loops are known. A value that moves with them is computed there. */
int body_around(const KernelShape *c, uint32_t loops);
/* The largest number of sums in a body. */
int most_sums(const KernelShape *c);

/* Fills in the rest of an access of which index, extent, step and coef of each axis are known. */
void access_settle(Access *a, const KernelShape *c);

/* What an access touches in ext[r] iterations of each loop r. access_spans returns the number of elements,
 * and sets the number along each axis. */
Footprint access_footprint(const Access *a, const double *ext);
double access_spans(const Access *a, const double *ext, double *span);
int64_t access_step(const Access *a, int loop); /* elements that it moves by in one iteration of the loop */
/* The number of vectors that contain one vector of lanes along the loop: 1 if the lanes are contiguous,
 * otherwise their stride, up to MOST_STRIDE. 0: the lanes are read one by one. */
int access_vectors(const Access *a, int loop);
/* Whether its place along a loop is computed from that loop alone. Then it is known if the loop is written
 * out, although its steps are unequal. */
bool place_known(const Access *a, int loop);

/* Whether an access can read a copy. Its index must be a sum of loops, and its gate an interval of each. If
 * something else reads its buffer, there must be a loop that moves only this access. *loop: that loop, or -1
 * if it is the only read. */
bool can_stage(const KernelShape *c, int access, int *loop);

/* Adds operations. If there is no room for another kind of work, they are added to the last kind. */
void work_add(KernelShape *c, Work w);
#endif
