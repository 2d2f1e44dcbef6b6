/* heuristic.h: what the choice of opts looks at. In: a kernel's graph. Out: its loops, reads and sums, the
 * rows of local memory that it fills, and strides along a loop. */
#ifndef TG_HEURISTIC_H
#define TG_HEURISTIC_H
#include "codegen/nest.h"
#include "plan/cost.h"

#define STRIDE_ODD INT64_MAX /* the stride is not constant */

typedef struct RInfo {
  UOp *r;
  int64_t n; /* iterations that opts may shape: 1 for an ordered loop */
  bool reduce, grid;
  int nout; /* how many stores to buffers list the loop */
} RInfo;

typedef struct Info {
  int nr;
  RInfo *r;
  UOpVec loads, reduces, fills; /* fills: stores to local memory */
  bool scans;
} Info;

bool info_get(Kernel *k, Info *f);
void info_free(Kernel *k, Info *f);
bool store_has(const UOp *s, const UOp *r);

/* Elements that an address moves when r grows by one. The strides are added up axis by axis or, if one
 * axis does not move evenly, found from the flat offset. */
int64_t stride_of(Kernel *k, const UOp *index, UOp *r);
int64_t expr_stride(Kernel *k, UOp *e, UOp *r); /* the same for an index expression */

int64_t bad_loads(Kernel *k, const Info *f, UOp *r); /* loads that are neither vector nor scalar along r */
/* The same for the loads that a value is computed from. */
int loads_apart(Kernel *k, UOp *value, UOp *r);
bool contiguous(Kernel *k, const UOp *store, UOp *r); /* along r, or the store does not move with r */

bool address_moves(Kernel *k, const UOp *index, const UOp *r);
bool gate_moves(Kernel *k, const UOp *index, const UOp *r);
int find_range(const Info *f, const UOp *r); /* the position of r in f->r, or -1 */

/* Whether some loads move with r and some do not, so that the latter are reused along r, and each sum has
 * a separate result for each iteration of r. */
bool reused_along(Kernel *k, const Info *f, const UOp *r);

/* How many results a tile has. Each result is `vectors` vectors wide. Returns `most`, which leaves
 * registers for `fits` sums at once, or, if a sum of sums needs more registers, as many results as fit:
 * possibly 0. */
int64_t tile_of_sums(Kernel *k, const Info *f, int64_t vectors, int64_t most, int fits);

/* The ranges `around` and those of all loops inside them, as bits. A reduction is placed where all that it
 * depends on is known, so a reduction that depends on a loop of another reduction is inside that loop. */
uint64_t ranges_inside(const Info *f, uint64_t around);

bool opt_add(Kernel *k, OptVec *out, OptOp op, const RInfo *r, int64_t n);

/* The largest power of two that exceeds neither n nor `most`; at least 1. */
static inline int64_t power_below(int64_t n, int64_t most) {
  int64_t p = 1;
  while (p * 2 <= n && p * 2 <= most)
    p *= 2;
  return p;
}

/* The size of tiles of n iterations: at most `most`, and as equal as possible. */
static inline int64_t balanced(int64_t n, int64_t most) {
  int64_t tiles = (n + most - 1) / most;
  return (n + tiles - 1) / tiles;
}

/* kernel_shape.c. Returns false if the kernel's reductions are over different loops, or if some loop is
 * ordered. at: the length assumed for loops of unknown length: 0 is the least, 1 the most, and values
 * between them are interpolated geometrically. */
bool kernel_shape(Kernel *k, double at, KernelShape *c);

/* heuristic_cpu.c: whether some buffer that stays is read often enough for its layout to matter: a buffer that
 * is read a few times takes as long as memory does, whatever its layout. The other buffers get no kept copy,
 * unless the copy replaces its source. */
bool stays_used(KernelShape *c);

/* choose_nests.c: replaces *out by lists of the kernel's nests if those cost less together. */
bool choose_nests(Kernel *k, const Info *f, OptVec *out);

/* units.c: a list that gives the kernel to matrix units, if it costs less than *cycles. *cycles is then
 * set to its cost. */
bool choose_units(Kernel *k, const KernelShape *c, int ncores, double *cycles, OptVec *out, bool *chosen);

/* rows.c: the list of a kernel that multiplies matrices in rows of local memory. *chosen is false for any
 * other kernel. */
bool rows_batched(Kernel *k, const Info *f, int ncores, OptVec *out, bool *chosen);

/* Lists of opts that a kernel may have on a GPU, plain lists first. */
typedef Vec(OptVec) ListVec;

/* Appends an empty list. Returns a pointer that is valid until the next call, or NULL if out of memory. */
static inline OptVec *list_new(Kernel *k, ListVec *lists) {
  return vec_push(k->mem, lists, (OptVec){0}) ? &lists->at[lists->len - 1] : NULL;
}

bool tile_lists(Kernel *k, const Info *f, ListVec *lists); /* gpu_tiles.c: the lists for a contraction */
bool grid_lists(Kernel *k, const Info *f, ListVec *lists); /* heuristic_gpu.c: all lists */
#endif
