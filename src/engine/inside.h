/* inside.h: what is known of a context's kernels at the end. inside.c collects it, causes.c looks for what
 * is slow, and explain.c writes it. */
#ifndef TG_INSIDE_H
#define TG_INSIDE_H
#include "engine/engine.h"

enum { MOST_LOOPS = 8, KERNEL_BITS = 24 };

typedef struct KernelFacts {
  char *name, *origin, *opts, *source; /* in the context's memory */
  const CachedProgram *prog;
  double est_us, us; /* us: measured, of all runs */
  int64_t flops, runs;
  int64_t read, written; /* bytes of the memories that it reads and writes, each memory counted once */
  int nloop, threads;
  int64_t loop[MOST_LOOPS];
  bool reduces, computes, f64; /* computes: it does more than move elements; f64: it computes in f64 */
  /* a memory that it reads and the memory that it writes are contiguous along different loops */
  bool crossed;
  bool plainer; /* the opts chosen first could not be lowered */
  int narg;
  int64_t *arg; /* as SchedKernel.arg */
  int record;   /* number of the file of its passes (k003.json); -1: none */
} KernelFacts;

typedef struct BufferFacts {
  int64_t bytes;
  int first, last, readers, slab; /* slab -1: memory of a result */
} BufferFacts;

typedef struct PlanFacts {
  size_t at;                   /* index in Inside.plans */
  uint64_t number, ops, sizes; /* ops: a hash of what is computed; sizes: a hash of that and the sizes */
  const char *device;
  int cores;
  int nkernel, nbuffer, record; /* record: number of the schedule's file (s000.json) */
  KernelFacts *kernel;
  BufferFacts *buffer;
  int64_t *peak; /* bytes of temporaries and results that live while kernel k runs */
  char *fusion;  /* the fusion decisions, one per line, with both costs */
  int64_t runs;
  double made_us;
} PlanFacts;

typedef struct LaunchFacts {
  uint64_t plan;
  int kernel;
  double begin_us, us;
} LaunchFacts;

/* How much of a copy's time (by TG_LINKS) is hidden by kernels that run beside it: the first such kernel,
 * and how many there are. */
typedef struct Behind {
  double us, hidden_us;
  uint64_t plan;
  int kernel, kernels;
} Behind;

/* An exchange in a graph, or all copies of one size between two devices (exchanges.c). */
typedef struct ExchangeFacts {
  Ops op, sum;     /* sum 0: nothing is added up */
  const char *way; /* algorithm, as "ring"; "": there is only one */
  const char *of;  /* the parameter whose gradient it is part of; NULL: not known */
  int steps;       /* consecutive messages */
  uint64_t devices;
  int64_t nbytes;                 /* of the value */
  int64_t alike;                  /* number of such exchanges, in a row for several */
  int64_t planned, planned_bytes; /* number and bytes of its copies */
  int64_t copies, flown;          /* copies that were made; those that ran beside kernels */
  double sends_us[MOST_DEVICES];  /* by device, by TG_LINKS */
  /* measured time of the host for the copies that did not run beside kernels */
  double us;
  double flown_us, hidden_us; /* of the copies beside kernels, by TG_LINKS */
  Behind behind;              /* of the copy beside the most kernels */
} ExchangeFacts;

/* of: hash of the node of an exchange or of a copy -> its number in `at`, counted from 1. named: hash of
 * the first device's part of what is added up -> the parameter whose gradient it is. more: exchanges for
 * which there was no room. */
typedef struct Exchanges {
  Vec(ExchangeFacts) at;
  Map of, named;
  int64_t more;
} Exchanges;

enum { MOST_LAUNCHES = 20000 };

struct Inside {
  Vec(PlanFacts *) plans;
  Map numbered; /* number -> PlanFacts */
  Map written;  /* program -> the kernel that it was first written for: number << KERNEL_BITS | kernel */
  uint64_t fallbacks; /* PassEnv.fallbacks, after the kernels that were seen */
  int64_t reads, read_bytes, copies, copied_bytes;
  double copied_us;
  Vec(LaunchFacts) launches; /* the first launches, in order */
  double begun;
};

/* A cause of slowness: the time that it may cost, and a text. */
typedef struct Cause {
  const char *kind;
  double us;
  char text[400];
} Cause;

enum { MOST_CAUSES = 16 };

PlanFacts *facts_numbered(const Inside *in, uint64_t number); /* NULL: there is none */
/* Finds at most MOST_CAUSES causes, most expensive first. Returns their number. */
int causes_find(const Inside *in, Cause *out);
const char *bytes_text(int64_t n, char room[24]); /* "1.5 KiB" */
void exchanges_text(const TgContext *ctx, const Inside *in, Str *out);
void exchanges_json(const TgContext *ctx, const Inside *in, Str *out);
/* false: there is no such kernel */
bool explain_text(TgContext *ctx, const Inside *in, const char *kernel, Str *out);
void explain_json(const TgContext *ctx, const Inside *in, Str *out);
#endif
