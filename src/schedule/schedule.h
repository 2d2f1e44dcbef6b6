/* schedule.h: tensor graph -> kernels. In: the roots of a tensor graph whose BUFFER nodes are numbered 0.. by
 * arg.param.slot. Out: kernels in the order they run; each is a graph SINK(STORE..) of RANGE, INDEX and
 * REDUCE over PARAM slots, with the list of the buffers those slots stand for. Pure: no device, no context;
 * the same graph gives the same schedule, so the engine may cache it. */
#ifndef TG_SCHEDULE_H
#define TG_SCHEDULE_H
#include "plan/target.h"
#include "uop/pass.h"

struct Sched;

/* Kernels first .. last, launched one after the other for each of `count` bands of rows (bands.c). at: by band
 * and kernel, the first of the kernel's rows. var: the variables that tell kernels of first rows, by number. */
enum { SCHED_ROWS = 8 };

typedef struct SchedBand {
  int first, last, count;
  int64_t *at;
  int var[SCHED_ROWS];
} SchedBand;

typedef struct SchedKernel {
  UOp *ast; /* SINK of STOREs, in Schedule.store */
  int narg;
  int64_t *arg;    /* by PARAM slot: BUFFER number, or TEMP_BASE + temporary number */
  int64_t *offset; /* by PARAM slot: bytes of that which lie before the argument */
  int nnode;
  uint32_t *node; /* ids of the nodes of the tensor graph that its loop nests end in */
  bool carries;   /* a running reduction of f32 in parts: if that is in f64, nobody asked for it */
  int level;
  double est_us; /* the cost model's estimate */
  int64_t flops;
  int band;                  /* number of its SchedBand, from 1 on; 0: it has none */
  int nrow, row[SCHED_ROWS]; /* by variable of the band: the kernel whose first row it is */
} SchedKernel;

#define TEMP_BASE (INT64_C(1) << 40)

/* Kernels that first write, last write and last use it. */
typedef struct SchedTemp {
  DType dtype;
  int64_t nelem;
  int first, made, last;
  int root;
  bool band;  /* it is as high as a band */
  bool whole; /* others are parts of it. While the schedule is made: .. */
  int in;     /* .. the one that it is a part of, from 1 on; 0: none */
  int64_t at; /* .. from which of its elements on */
} SchedTemp;

typedef struct Schedule {
  UOpStore *store;
  Arena arena;
  int nkernel, ntemp, nroot;
  uint64_t
      walked; /* edges and reads that were gone through to place stages: as the graph grows, so do they */
  SchedKernel *kernel;
  SchedTemp *temp;
  int nband;
  SchedBand *band;
  int64_t *
      root; /* by root: TEMP_BASE + number of the temporary that holds it, or a BUFFER number (assignments) */
} Schedule;

typedef struct SchedOptions {
  int most_stages; /* of a kernel. 1: every stage is one of its own, the oracle of every join; 0: no bound */
  const Target *target; /* the machine to plan for: the plan depends on it, on `align` and on the graph */
  bool invariant;       /* a kernel has one sum: beside others its order would depend on them */
  int64_t align;        /* bytes that the address of an argument is to be a multiple of; 0: any address */
  Str *explain;         /* NULL, or where both sides of each join are printed */
  const char *skip;     /* NULL, or optional passes that do not run */
  PassEnv *passes;      /* NULL, or what watches the passes */
  const char *last;     /* NULL, or the pass to stop after; the schedule is then not complete .. */
  Str *graph;           /* .. but its graph is printed here */
  /* NULL, or the pass to begin with, on the stages of a text, which `read` reads */
  const char *first, *text; /* then there are MOST_ROOTS roots at most, of which none is given */
  bool (*read)(struct Sched *s, const char *text, const char *before);
} SchedOptions;

enum { MOST_ROOTS = 1 << 12 };

extern const Pass schedule_passes[];
extern const size_t schedule_npass;
/* roots: tensor nodes of `st`, which also receives what scheduling makes. On failure err says why and out is
 * empty. */
TgStatus schedule_make(UOpStore *st, TgMem *mem, UOp *const *roots, int nroots, const SchedOptions *opt,
                       Schedule *out, TgError *err);
void schedule_free(Schedule *s, TgMem *mem); /* frees its store too */
#endif
