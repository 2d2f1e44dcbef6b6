/* codegen.h: one kernel's graph -> a linear program. In: SINK of STOREs over RANGE, INDEX, REDUCE
 * (schedule.h). Out: Linear (uop.h). Stages, in order: copy to a fresh store, gates onto loads,
 * decompositions, choice of opts, loop nest (nest.h), opts as edits of it, expand, linearize. */
#ifndef TG_CODEGEN_H
#define TG_CODEGEN_H
#include "plan/opt.h"
#include "plan/shape.h"
#include "renderer/renderer.h"
#include "uop/pass.h"
#include "uop/rules.h"

enum { MAX_LIST = 14 /* expanded ranges that a statement lists */ };

typedef struct Kernel { /* a kernel while it is being lowered */
  UOpStore *st;
  TgMem *mem;
  TgError *err;
  const Renderer *ren; /* NULL: INTERP, which computes every op itself */
  UOp *sink;
  int64_t next_range, next_local, next_reg; /* ids still free */
  OptVec list;                              /* the opts that it is to get */
  size_t ndone;                             /* of them, that it has */
  bool strict; /* the opts were given by the caller: what cannot be done is an error, not a plainer kernel */
  char refused[160];      /* the opt that could not be applied, and why */
  char limit[LAUNCH_WHY]; /* .. what the device has at most, where that is why */
  int nopt;               /* opts that the heuristic wanted */
  int nthread, global[3], local[3];
  uint64_t stays; /* PARAM slots, as bits, of which a copy may be made once (prepack.c) */
  Str opts;       /* the opts taken, as text */
  const struct CodegenOptions *opt;
  Arena *arena; /* where the linear program lives */
  Linear *linear;
} Kernel;

enum { MOST_PREPACKED = 4 };

typedef struct PackedCopy {
  int64_t nelem;
  DType dtype;
} PackedCopy;

/* Copies that are made before the first launch and kept (prepack.c). In: what stays, the first slot that is
 * free. Out: the n arguments from `first` on. One call of codegen_lower makes the kernel that runs, one with
 * `packs` set what is to run before it. */
typedef struct Prepack {
  uint64_t stays; /* bit i: PARAM i holds the same at every launch */
  int first;
  bool packs;
  bool always; /* also where the planner sees no gain */
  int n;
  PackedCopy copy[MOST_PREPACKED];
  uint64_t reads; /* of what stays, PARAMs that this kernel reads, as bits */
  uint64_t list;  /* of the opts: both kernels must have the same ones */
} Prepack;

typedef struct CodegenOptions {
  bool noopt;
  bool invariant;       /* the order of a sum depends on its own loop alone */
  const Target *target; /* the machine to plan for */
  int ncores;
  const char *opts;      /* a list to use instead of the heuristic's, or NULL */
  uint32_t matrices_off; /* matrix units of the target that are not to be used, as bits of matrix.h's rows */
  int leave_out;         /* how many of the heuristic's opts are not taken, the last ones first */
  PassEnv *passes;       /* NULL, or what watches the passes */
  Prepack *prepack;      /* NULL: all copies are made at each launch */
  Str *costs;            /* NULL, or where each list that is considered is written with what it costs */
} CodegenOptions;

extern const Pass codegen_passes[];
extern const size_t codegen_npass;
/* For looking at one pass: k->st, mem, err, ren, sink, opt, arena, linear are set. kernel_open counts its
 * loops and names it; false: no memory. kernel_passes runs n passes of the table. */
bool kernel_open(Kernel *k);
bool kernel_passes(Kernel *k, const Pass *first, size_t n);
/* What stands below a kernel's graph between two passes, as a comment; read back by emu/kernel_text.c. */
#define KERNEL_TEXT "#| kernel "
bool kernel_state_print(const Kernel *k, Str *out);
/* out->at lives in *arena. The name is made from the loop extents. */
TgStatus codegen_lower(TgMem *mem, UOp *ast, UOpStore *ast_store, const Renderer *ren,
                       const CodegenOptions *opt, Arena *arena, UOpStore **st_out, Linear *out,
                       Str *opts_text, TgError *err);

/* The kernel with a gate on each access that may leave its memory; NULL: out of memory. */
UOp *guard_accesses(UOpStore *st, TgMem *mem, UOp *sink);
/* codegen.c: u with what its sources have become, where `now` has them. NULL: out of memory. */
UOp *node_mapped(UOpStore *st, TgMem *mem, const UOpMap *now, UOp *u);

/* shared inside codegen/ */
UOp *pm_decompose(Rewrite *rw, UOp *self); /* decompose.c; rw->ctx is the Kernel */
UOp *pm_functions(Rewrite *rw, UOp *self); /* decompose.c: exp and its kin, once no pass asks for them */
/* rules/gates.rules: a load that its gate chooses; one offset for each INDEX; the same where loops joined */
UOp *pm_gated(Rewrite *rw, UOp *self);
UOp *pm_flatten(Rewrite *rw, UOp *self);
UOp *pm_late(Rewrite *rw, UOp *self);
UOp *pm_rejoin(Rewrite *rw, UOp *self);

static inline UOp *flat_offset(Rewrite *rw, const UOp *x) { return index_flat(rw->st, rw->mem, x); }

bool any_divided(UOpList places);             /* ranges.c: one of them has a quotient or a remainder */
UOp *whole_offset(Rewrite *rw, const UOp *x); /* ranges.c: the offset of an INDEX, if it has none */
UOp *gate_loads(Kernel *k, UOp *branch,
                UOp *gate); /* codegen.c: loads that may leave their buffer are made only where gate holds */
/* A new loop: a part of the kernel's loop that `like` is, or (NULL) of none. */
UOp *kernel_range(Kernel *k, UOp *extent, AxisType type, const UOp *like);
bool choose_opts(Kernel *k, const CodegenOptions *opt); /* opts.c */
bool apply_opts(Kernel *k, const CodegenOptions *opt);  /* opts.c */
/* Whether copies of so many bytes in all may be kept of a source of so many. */
bool prepack_fits(double nbytes, double source);
bool prepack(Kernel *k); /* prepack.c: of a nest with its opts but THREAD; nothing where nobody asks */
bool simplify_ranges(Kernel *k); /* ranges.c: adjacent loops that always move together are one */
/* axes.c: an INDEX at a flat offset, with an index per axis where strides and its gate tell them apart. */
UOp *index_axes(Kernel *k, UOp *index);
bool heuristic_cpu(Kernel *k, int ncores, OptVec *out);
/* .. and writes to k->opt->costs what k->list costs, which somebody else chose. False: out of memory. */
bool list_costs(Kernel *k, int ncores);
struct GridCost;
/* codegen.c: what a kernel for a GPU, not shaped yet, costs with a list. *fits: it can be had so. False: out
 * of memory. */
bool kernel_grid_cost(const Kernel *k, const OptVec *list, struct GridCost *out, bool *fits);
bool heuristic_gpu(Kernel *k, OptVec *out); /* choose_grid.c */
bool grid_costs(Kernel *k);                 /* as list_costs */
bool scalar_opts(Kernel *k, OptVec *list);  /* scalars.c: of a list, what text without vectors is to have */
bool bound_loops(Kernel *k); /* loop_bounds.c: no step where a condition keeps it from counting */
bool cut_sums(Kernel *k);    /* sums.c: long sums in blocks */
bool expand(Kernel *k);      /* expand.c: no UPCAST, VEC, UNROLL, GROUP range is left */
bool gpu_dims(Kernel *k);    /* gpu.c: GLOBAL and LOCAL loops become the indices of a grid */

/* An index division by a constant: u with its bounds, x its numerator as i32 or i64. -> how many nodes,
 * sources first; 0: none is better. */
enum { DIVIDE_NODES = 7 };

int divide_index(UOpStore *st, const UOp *u, UOp *x, UOp *out[DIVIDE_NODES]);
bool nest_build(Kernel *k);                           /* nest.c: loops and statements */
bool prefetch_rows(Kernel *k);                        /* prefetch.c: lines of the next rows asked for */
bool linearize(Kernel *k, Arena *arena, Linear *out); /* linearize.c */
void grid_blocks(Linear *lin);                        /* grid_blocks.c */
/* branches.c: what few lanes need, if it is much, behind an IF */
bool branch_seldom(Kernel *k, Arena *arena, Linear *out);
typedef Vec(int) CgInts;
#endif
