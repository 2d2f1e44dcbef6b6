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
  bool plainer;                /* the opts chosen first could not be lowered */
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

/* What of a copy's time (by TG_LINKS) kernels hide, and behind which: the first, and how many follow. */
typedef struct Behind {
  double us, hidden_us;
  uint64_t plan;
  int kernel, kernels;
} Behind;

/* exchanges.c: one in a graph, or copies of one size between two devices */
typedef struct ExchangeFacts {
  Ops op, sum;     /* sum 0: it adds nothing up */
  const char *way; /* "ring"; "": there is one alone */
  const char *of;  /* whose gradient it is part of; NULL: not known */
  int steps;       /* messages one after another */
  uint64_t devices;
  int64_t nbytes;                 /* of the value */
  int64_t alike;                  /* such exchanges, in a row that tells of several */
  int64_t planned, planned_bytes; /* its copies */
  int64_t copies, flown;          /* that were made; of these, beside kernels */
  double sends_us[MOST_DEVICES];  /* by device, by TG_LINKS */
  double us;                      /* of the host, as measured, for those that were not */
  double flown_us, hidden_us;     /* of copies beside kernels, by TG_LINKS */
  Behind behind;                  /* of the copy with most kernels */
} ExchangeFacts;

/* of: of an exchange's node, or a copy's, by hash: its number in at, from 1 on. named: what is added up, by the
 * hash of the first device's -> whose gradient it is. more: those without room */
typedef struct Exchanges {
  Vec(ExchangeFacts) at;
  Map of, named;
  int64_t more;
} Exchanges;

enum { MOST_LAUNCHES = 20000 };

struct Inside {
  Vec(PlanFacts *) plans;
  Map numbered; /* PlanFacts by number */
  Map written;  /* of a program the kernel that it was first written for: number << KERNEL_BITS | kernel */
  uint64_t fallbacks; /* PassEnv.fallbacks, of the kernels that were seen */
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
const char *bytes_text(int64_t n, char room[24]); /* "1.5 KiB" */
void exchanges_text(const TgContext *ctx, const Inside *in, Str *out);
void exchanges_json(const TgContext *ctx, const Inside *in, Str *out);
bool explain_text(TgContext *ctx, const Inside *in, const char *kernel, Str *out); /* false: no such kernel */
void explain_json(const TgContext *ctx, const Inside *in, Str *out);
#endif
