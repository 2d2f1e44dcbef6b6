/* heuristic.h: what the choice of opts looks at. In: a kernel's graph. Out: its loops, what it reads, what it
 * sums, and which rows of local memory it fills; strides along a loop. */
#ifndef TG_HEURISTIC_H
#define TG_HEURISTIC_H
#include "codegen/nest.h"
#include "plan/cost.h"

#define STRIDE_ODD INT64_MAX /* not a constant stride */

typedef struct RInfo {
  UOp *r;
  int64_t n; /* iterations that may be shaped: an ordered loop has one */
  bool reduce, grid;
  int nout; /* stores to buffers that have it */
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

/* Elements that an address moves when r does by one: axis by axis, or, where one of them does not move
 * evenly, by the flat offset. */
int64_t stride_of(Kernel *k, const UOp *index, UOp *r);
int64_t expr_stride(Kernel *k, UOp *e, UOp *r); /* of an index expression */

int64_t bad_loads(Kernel *k, const Info *f, UOp *r); /* that are neither a vector nor a scalar along r */
/* The same of the loads that a value is made of. */
int loads_apart(Kernel *k, UOp *value, UOp *r);
bool contiguous(Kernel *k, const UOp *store, UOp *r); /* along r; or it does not move with r */

bool address_moves(Kernel *k, const UOp *index, const UOp *r);
bool gate_moves(Kernel *k, const UOp *index, const UOp *r);
int find_range(const Info *f, const UOp *r); /* its place in f->r, or -1 */

/* Some loads move with r and some do not, so that each of those can be used again along it, and all that is
 * summed is apart for it. */
bool reused_along(Kernel *k, const Info *f, const UOp *r);

/* The results of a tile, each so many vectors: `most`, which leaves room for `fits` sums under way at once,
 * or as many as registers hold, where a sum of sums has more: maybe none. */
int64_t tile_of_sums(Kernel *k, const Info *f, int64_t vectors, int64_t most, int fits);

/* Ranges of all loops that stand inside those of `around`, with them: a reduction stands where all that it
 * moves with is known, so one that moves with a loop of another stands inside that one. */
uint64_t ranges_inside(const Info *f, uint64_t around);

bool opt_add(Kernel *k, OptVec *out, OptOp op, const RInfo *r, int64_t n);

/* The largest power of two that is neither past n nor past `most`; 1 at least. */
static inline int64_t power_below(int64_t n, int64_t most) {
  int64_t p = 1;
  while (p * 2 <= n && p * 2 <= most)
    p *= 2;
  return p;
}

/* Tiles of at most `most`, as equal as can be. */
static inline int64_t balanced(int64_t n, int64_t most) {
  int64_t tiles = (n + most - 1) / most;
  return (n + tiles - 1) / tiles;
}

/* kernel_shape.c. False: its reductions are in different loops, or something goes in order. at: of loops of
 * unknown length, 0 for the least, 1 for the most, between them by ratio. */
bool kernel_shape(Kernel *k, double at, KernelShape *c);

/* choose_nests.c: puts lists of its nests in the place of *out, where those together cost less. */
bool choose_nests(Kernel *k, const Info *f, OptVec *out);

/* units.c: a list that gives the kernel to matrix units, if it costs less than *cycles, which are then its
 * own. */
bool choose_units(Kernel *k, const KernelShape *c, int ncores, double *cycles, OptVec *out, bool *chosen);

/* rows.c: the list of a kernel with rows of local memory in which matrices are multiplied. Not chosen:
 * another kernel. */
bool rows_batched(Kernel *k, const Info *f, int ncores, OptVec *out, bool *chosen);

/* Lists of opts that a kernel may have on a GPU, plain ones first. */
typedef Vec(OptVec) ListVec;

/* An empty one more, until the next; NULL: out of memory. */
static inline OptVec *list_new(Kernel *k, ListVec *lists) {
  return vec_push(k->mem, lists, (OptVec){0}) ? &lists->at[lists->len - 1] : NULL;
}

bool tile_lists(Kernel *k, const Info *f, ListVec *lists); /* gpu_tiles.c: those of a contraction */
bool grid_lists(Kernel *k, const Info *f, ListVec *lists); /* heuristic_gpu.c: all */
#endif
