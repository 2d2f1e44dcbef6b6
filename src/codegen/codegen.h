/* codegen.h: one kernel's graph -> a linear program. In: a SINK of STOREs over RANGE, INDEX and REDUCE
 * (schedule.h). Out: Linear (uop.h). The stages, in order: the graph is copied to a fresh store, gates
 * move onto loads, decompositions, choice of opts, loop nest (nest.h), opts as edits of the nest, expand,
 * linearize. */
#ifndef TG_CODEGEN_H
#define TG_CODEGEN_H
#include "plan/opt.h"
#include "plan/shape.h"
#include "renderer/renderer.h"
#include "uop/pass.h"
#include "uop/rules.h"

enum { MAX_LIST = 14 /* the most expanded ranges that a statement lists */ };

typedef struct Kernel { /* a kernel while it is being lowered */
  UOpStore *st;
  TgMem *mem;
  TgError *err;
  const Renderer *ren; /* NULL: INTERP, which computes every op itself */
  UOp *sink;
  int64_t next_range, next_local, next_reg; /* the first ids that are free */
  OptVec list;                              /* the opts that the kernel is to get */
  size_t ndone;                             /* how many opts of `list` have been applied */
  bool strict;            /* the caller gave the opts: one that cannot be applied is an error */
  char refused[160];      /* the opt that could not be applied, and why */
  char limit[LAUNCH_WHY]; /* the reason, if it is a limit of the device */
  int nopt;               /* how many opts the heuristic wanted */
  int nthread, global[3], local[3];
  uint64_t stays; /* bit i: a copy of PARAM i may be made once and kept (prepack.c) */
  Str opts;       /* the applied opts, as text */
  const struct CodegenOptions *opt;
  Arena *arena; /* holds the linear program */
  Linear *linear;
} Kernel;

enum { MOST_PREPACKED = 4 };

typedef struct PackedCopy {
  int64_t nelem;
  DType dtype;
} PackedCopy;

/* Copies that are made before the first launch and kept (prepack.c). In: which buffers stay the same, and
 * the first free slot. Out: n copies, which are the arguments from slot `first` on. One call of
 * codegen_lower makes the kernel that runs; another call, with `packs` set, makes the kernel that fills
 * the copies before it. */
typedef struct Prepack {
  uint64_t stays; /* bit i: PARAM i holds the same values at every launch */
  int first;
  bool packs;
  bool always; /* make copies even if the planner sees no gain */
  int n;
  PackedCopy copy[MOST_PREPACKED];
  uint64_t reads; /* bit i: this kernel reads PARAM i, and PARAM i is in `stays` */
  uint64_t list;  /* hash of the list of opts: both kernels must have the same list */
} Prepack;

typedef struct CodegenOptions {
  bool noopt;
  bool invariant;       /* the order of a sum depends only on the loop of that sum */
  const Target *target; /* the machine to plan for */
  int ncores;
  const char *opts;      /* a list of opts to use instead of the heuristic's, or NULL */
  uint32_t matrices_off; /* bit i: do not use the matrix unit in row i of matrix.h's table */
  int leave_out;         /* how many of the heuristic's opts to drop, the last ones first */
  PassEnv *passes;       /* watches the passes; NULL: nothing does */
  Prepack *prepack;      /* NULL: every copy is made anew at each launch */
  Str *costs;            /* NULL, or receives each list of opts that is considered, with its cost */
} CodegenOptions;

extern const Pass codegen_passes[];
extern const size_t codegen_npass;
/* For looking at one pass: the caller sets k->st, mem, err, ren, sink, opt, arena and linear. kernel_open
 * finds the free ids and names the kernel; it returns false if out of memory. kernel_passes runs n passes
 * of the table. */
bool kernel_open(Kernel *k);
bool kernel_passes(Kernel *k, const Pass *first, size_t n);
/* Begins the comment line below a kernel's graph between two passes; emu/kernel_text.c reads it back. */
#define KERNEL_TEXT "#| kernel "
bool kernel_state_print(const Kernel *k, Str *out);
/* Lowers the kernel `ast` to *out. out->at is allocated in *arena, its nodes in *st: a store that is not
 * needed any more, or NULL, for a new one. After a failure *st is NULL. The kernel's name is made from its
 * loop extents. */
TgStatus codegen_lower(TgMem *mem, UOp *ast, UOpStore *ast_store, const Renderer *ren,
                       const CodegenOptions *opt, Arena *arena, UOpStore **st, Linear *out, Str *opts_text,
                       TgError *err);

/* Returns the kernel with a gate on each access that may leave its memory, or NULL if out of memory. */
UOp *guard_accesses(UOpStore *st, TgMem *mem, UOp *sink);
/* codegen.c: returns u with each source replaced by its entry in `now`, if it has one, or NULL if out of
 * memory. */
UOp *node_mapped(UOpStore *st, TgMem *mem, const UOpMap *now, UOp *u);

/* shared inside codegen/ */
UOp *pm_decompose(Rewrite *rw, UOp *self); /* decompose.c; rw->ctx is the Kernel */
UOp *pm_functions(Rewrite *rw, UOp *self); /* decompose.c: exp and similar functions, late */
/* rules/gates.rules. pm_gated: a WHERE that chooses 0 where its gated load is 0 anyway becomes the load.
 * pm_flatten: each INDEX gets one offset. pm_rejoin: the same for an INDEX whose loops were merged into
 * one. */
UOp *pm_gated(Rewrite *rw, UOp *self);
UOp *pm_flatten(Rewrite *rw, UOp *self);
UOp *pm_late(Rewrite *rw, UOp *self);
UOp *pm_rejoin(Rewrite *rw, UOp *self);

static inline UOp *flat_offset(Rewrite *rw, const UOp *x) { return index_flat(rw->st, rw->mem, x); }

bool any_divided(UOpList places);             /* ranges.c: whether any index has a quotient or remainder */
UOp *whole_offset(Rewrite *rw, const UOp *x); /* ranges.c: its flat offset, or NULL if that has any */
UOp *gate_loads(Kernel *k, UOp *branch,
                UOp *gate); /* codegen.c: `gate` on each load that may leave its buffer */
/* Makes a new loop. It counts as a part of the kernel's loop that `like` belongs to; if `like` is NULL, of
 * none. */
UOp *kernel_range(Kernel *k, UOp *extent, AxisType type, const UOp *like);
bool choose_opts(Kernel *k, const CodegenOptions *opt); /* opts.c */
bool apply_opts(Kernel *k, const CodegenOptions *opt);  /* opts.c */
/* Whether copies of `nbytes` in all may be kept for sources of `source` bytes in all. */
bool prepack_fits(double nbytes, double source);
bool prepack(Kernel *k); /* prepack.c: after all opts but THREAD; does nothing unless opt->prepack is set */
bool simplify_ranges(Kernel *k); /* ranges.c: merges adjacent loops that always move together */
/* axes.c: gives an INDEX with a flat offset one index per axis, if strides and its gate tell the axes
 * apart. */
UOp *index_axes(Kernel *k, UOp *index);
bool heuristic_cpu(Kernel *k, int ncores, OptVec *out);
/* Writes to k->opt->costs what k->list, which was chosen elsewhere, costs. Returns false if out of memory. */
bool list_costs(Kernel *k, int ncores);
struct GridCost;
/* codegen.c: estimates what a GPU kernel that has no opts yet costs with a list. *fits: the kernel can
 * take the list. Returns false if out of memory. */
bool kernel_grid_cost(const Kernel *k, const OptVec *list, struct GridCost *out, bool *fits);
bool heuristic_gpu(Kernel *k, OptVec *out); /* choose_grid.c */
bool grid_costs(Kernel *k);                 /* as list_costs, for a GPU */
bool scalar_opts(Kernel *k, OptVec *list);  /* scalars.c: fits a list to text without vectors */
bool bound_loops(Kernel *k); /* loop_bounds.c: skips iterations that a condition makes count for nothing */
bool cut_sums(Kernel *k);    /* sums.c: cuts long sums into blocks */
bool expand(Kernel *k);      /* expand.c: removes all UPCAST, VEC, UNROLL and GROUP ranges */
bool gpu_dims(Kernel *k);    /* gpu.c: turns GLOBAL and LOCAL loops into the indices of a grid */

/* Writes to `out`, sources first, the nodes that compute u, an index divided by a constant. u has known
 * bounds; x is its numerator as i32 or i64. Returns the number of nodes; 0: nothing is better than the
 * division. */
enum { DIVIDE_NODES = 7 };

int divide_index(UOpStore *st, const UOp *u, UOp *x, UOp *out[DIVIDE_NODES]);
bool nest_build(Kernel *k);                           /* nest.c: turns the graph into loops and statements */
bool prefetch_rows(Kernel *k);                        /* prefetch.c: prefetches lines of the next rows */
bool linearize(Kernel *k, Arena *arena, Linear *out); /* linearize.c */
void grid_blocks(Linear *lin);                        /* grid_blocks.c */
/* branches.c: moves work that few lanes need behind an IF, if it is much work */
bool branch_seldom(Kernel *k, Arena *arena, Linear *out);
typedef Vec(int) CgInts;
#endif
