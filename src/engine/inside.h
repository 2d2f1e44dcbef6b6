/* inside.h: what is known of a context's kernels when all is done: inside.c collects it, causes.c looks for what
 * is slow, explain.c tells it. */
#ifndef TG_INSIDE_H
#define TG_INSIDE_H
#include "engine/engine.h"

enum { MOST_LOOPS = 8, KERNEL_BITS = 24 };

typedef struct KernelFacts {
  char *name, *origin, *opts, *source; /* of the context's memory */
  const CachedProgram *prog;
  double est_us, us; /* us: of all runs, as measured */
  int64_t flops, runs;
  int64_t read, written; /* bytes of the memories that it reads and writes, each once */
  int nloop, threads;
  int64_t loop[MOST_LOOPS];
  bool reduces, computes, f64; /* computes: it does more than move elements; f64: it calculates in it */
  bool crossed;                /* memory that it reads and memory that it writes lie along different axes */
  int narg;
  int64_t *arg; /* as SchedKernel.arg */
  int record;   /* number of its passes' file (k003.json); -1: none */
} KernelFacts;

typedef struct BufferFacts {
  int64_t bytes;
  int first, last, readers, slab; /* slab -1: memory of a result */
} BufferFacts;

typedef struct PlanFacts {
  size_t at;                   /* in Inside.plans */
  uint64_t number, ops, sizes; /* ops: a hash of what is computed; sizes: that and the sizes */
  const char *device;
  int cores;
  int nkernel, nbuffer, record; /* record: s000.json */
  KernelFacts *kernel;
  BufferFacts *buffer;
  int64_t *peak; /* bytes of temporaries that live while kernel k runs */
  char *fusion;  /* the decisions, with both costs, a line each */
  int64_t runs;
  double made_us;
} PlanFacts;

typedef struct LaunchFacts {
  uint64_t plan;
  int kernel;
  double begin_us, us;
} LaunchFacts;

enum { MOST_LAUNCHES = 20000 };

struct Inside {
  Vec(PlanFacts *) plans;
  Map numbered; /* PlanFacts by number */
  Map written;  /* of a program the kernel that it was first written for: number << KERNEL_BITS | kernel */
  int64_t reads, read_bytes, copies, copied_bytes;
  double copied_us;
  Vec(LaunchFacts) launches; /* the first of them, in their order */
  double begun;
};

/* A cause of slowness: time that it may cost, as a text. */
typedef struct Cause {
  const char *kind;
  double us;
  char text[400];
} Cause;

enum { MOST_CAUSES = 16 };

PlanFacts *facts_numbered(const Inside *in, uint64_t number); /* NULL: none */
/* At most MOST_CAUSES, the dearest first. */
int causes_find(const Inside *in, Cause *out);
double kernel_us(const KernelFacts *k); /* of all its runs, or of one as estimated where it never ran */
bool explain_text(TgContext *ctx, const Inside *in, const char *kernel, Str *out); /* false: no such kernel */
void explain_json(const Inside *in, Str *out);
#endif
