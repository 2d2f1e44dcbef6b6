/* schedule.h: tensor graph -> kernels. In: the roots of a tensor graph whose BUFFER nodes are numbered 0.. by
 * arg.param.slot. Out: kernels in the order they run. Each is a graph SINK(STORE..) of RANGE, INDEX and
 * REDUCE over PARAM slots, with the list of the buffers that these slots stand for. Scheduling is pure: it
 * uses no device and no context. The same graph gives the same schedule, so the engine may cache it. */
#ifndef TG_SCHEDULE_H
#define TG_SCHEDULE_H
#include "plan/target.h"
#include "uop/pass.h"

struct Sched;

/* Kernels first .. last, which are launched one after the other for each of `count` bands of rows (bands.c).
 * at: by band and kernel, the first row of the kernel. var: the variables that pass first rows to kernels. */
enum { SCHED_ROWS = 8 };

typedef struct SchedBand {
  int first, last, count;
  int64_t *at;
  int var[SCHED_ROWS];
} SchedBand;

typedef struct SchedKernel {
  UOp *ast; /* a SINK of STOREs, in Schedule.store */
  int narg;
  int64_t *arg;    /* by PARAM slot: a BUFFER number, or TEMP_BASE + the number of a temporary */
  int64_t *offset; /* by PARAM slot: bytes of that memory that are before the argument */
  int nnode;
  uint32_t *node; /* ids of the nodes of the tensor graph that its loop nests compute */
  /* it has a running reduction of f32 in parts: if that is carried in f64, the user did not ask for f64 */
  bool carries;
  int level;
  double est_us; /* estimate of the cost model */
  int64_t flops;
  int band;                  /* number of its SchedBand, from 1 on; 0: none */
  int nrow, row[SCHED_ROWS]; /* by variable of the band: the kernel whose first row the variable is */
} SchedKernel;

#define TEMP_BASE (INT64_C(1) << 40)

/* A temporary. first, made, last: the kernels that use it first, write it last and use it last. */
typedef struct SchedTemp {
  DType dtype;
  int64_t nelem;
  int first, made, last;
  int root;
  bool band;  /* it is only as high as a band */
  bool whole; /* other temporaries are parts of it. While the schedule is made: .. */
  int in;     /* .. the temporary that it is a part of, from 1 on; 0: none */
  int64_t at; /* .. and the element of that temporary at which it begins */
} SchedTemp;

typedef struct Schedule {
  UOpStore *store;
  Arena arena;
  int nkernel, ntemp, nroot;
  uint64_t walked; /* edges and reads that were walked to place stages; grows in proportion to the graph */
  SchedKernel *kernel;
  SchedTemp *temp;
  int nband;
  SchedBand *band;
  int64_t *
      root; /* by root: TEMP_BASE + number of the temporary that holds it, or a BUFFER number (assignments) */
} Schedule;

typedef struct SchedOptions {
  /* most stages of a kernel. 1: each stage is a kernel, the oracle of every join; 0: no limit */
  int most_stages;
  /* the machine to plan for; the plan depends on it, on `align` and on the graph alone */
  const Target *target;
  /* a kernel has at most one sum, because next to other sums its order could depend on them */
  bool invariant;
  int64_t align;    /* an argument's address is to be a multiple of this many bytes; 0: any address */
  Str *explain;     /* NULL, or where both sides of each join are printed */
  const char *skip; /* NULL, or the optional passes to leave out */
  PassEnv *passes;  /* NULL, or what observes the passes */
  const char *last; /* NULL, or the pass to stop after; the schedule is then not complete .. */
  Str *graph;       /* .. but its graph is printed here */
  /* NULL, or the pass to begin with. It starts from the stages in `text`, which `read` parses. */
  const char *first, *text; /* there are then at most MOST_ROOTS roots, and no root is given */
  bool (*read)(struct Sched *s, const char *text, const char *before);
} SchedOptions;

enum { MOST_ROOTS = 1 << 12 };

extern const Pass schedule_passes[];
extern const size_t schedule_npass;
/* roots: tensor nodes of `st`, which also receives the nodes that scheduling makes. On failure err says why,
 * and out is empty. */
TgStatus schedule_make(UOpStore *st, TgMem *mem, UOp *const *roots, int nroots, const SchedOptions *opt,
                       Schedule *out, TgError *err);
void schedule_free(Schedule *s, TgMem *mem); /* frees its store too */
#endif
