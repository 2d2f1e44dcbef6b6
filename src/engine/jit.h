/* jit.h: a captured function, for the files of src/engine: jit.c captures and replays it, program.c writes
 * it as text, and program_read.c makes one from text. */
#ifndef TG_JIT_H
#define TG_JIT_H
#include "engine/engine.h"
#include "tensor/multi.h"

/* A step of a capture: a plan, or, if plan is NULL, a copy of `from`, from byte `offset` on, that fills
 * `to`. */
typedef struct Step {
  Plan *plan;
  BufferPart *buf;
  Buffer **temp;
  size_t nbuf, ntemp;
  Buffer *from, *to;
  size_t offset;
  int exchange;         /* number of the exchange that the copy belongs to, as inside_copied returns it */
  Prepacked *prepacked; /* by kernel of the plan, or NULL */
  Replay *replay;       /* of this plan and the plans that follow it on the same device */
} Step;

/* A place in a step that each run fills. k: input k, or -1 - k for output k. */
typedef struct Patch {
  Buffer **at;
  int k;
} Patch;

/* stored: NULL stands for an input or output. held: pinned while the function runs, once for each place in
 * a step, because a scope that ends inside the function collects what was made in it, although the steps
 * still name it. */
typedef struct Capture {
  Vec(Step) steps;
  Vec(Buffer *) stored, held;
  struct TgJit *of; /* the function that is captured */
  bool asks;        /* nodes are looked up without being read */
  bool failed;
} Capture;

enum { MOST_PROGRAM_NAME = 4096 }; /* bytes of a name in a program's text */

/* An input or output as it was captured, or one device's part of it. */
typedef struct Want {
  int device;
  DType dtype;
  int n;
  int64_t dims[TG_MAX_RANK];
} Want;

/* An input or output as the function sees it, on at.n devices, with a Want for each of them in the list.
 * name: in the context's memory, or NULL. device: the names of the devices. */
typedef struct Given {
  char *name;
  Want want;
  Layout at;
  const char *device[MOST_DEVICES];
} Given;

/* n elements of a memory that lasts, from byte `offset` on, with a name. t: keeps the memory of a loaded
 * program alive. */
typedef struct Memory {
  char *name;
  Buffer *buffer;
  size_t offset;
  int n;
  int64_t dims[TG_MAX_RANK];
  TgTensor *t;
} Memory;

/* An expression, by its node. made: the function made it in its first call. */
typedef struct OlderNode {
  uint64_t id;
  bool made;
} OlderNode;

struct TgJit {
  TgContext *ctx;
  TgJit *next, **link;
  TgJitFn fn;
  void *user;
  int invariant;            /* the setting when the function was made; both runs that plan use it */
  bool prepacks, prepacked; /* copies are to be kept; it has been decided which ones */
  bool training;            /* tg_training of its last run */
  uint64_t grad_switches;   /* the context's counter at that time */
  uint64_t trained;         /* a hash of which of `pinned` required a gradient */
  int runs;                 /* 0: the next run is the first; 1: the next run captures; 2: runs replay */
  bool running, stale;      /* stale: the capture, or the loaded text, is not what fn would do now */
  Capture c;
  Vec(Patch) patches;
  Vec(Buffer *) own, pinned, draws;
  Vec(int64_t) input_stored;  /* parts of inputs that fn assigns to */
  uint64_t assigned;          /* bit i % 64: some call of fn assigned to input i */
  Vec(OlderNode) expressions; /* expressions that fn read and that have handles */
  Vec(TgTensor *) older;      /* values of these expressions, if they were drawn */
  Vec(Buffer *) fixed;        /* memories from which the capture reads these expressions */
  int nin, nout;              /* every part of a tensor on several devices counts as one */
  Want *in, *out;
  int ngiven, nmade; /* counts as the function sees them */
  Given *given, *made;
  bool loaded;        /* made from text: there is no function to call again */
  bool cleared;       /* an output may be read before it is completely written, so it begins as zeros */
  Vec(int) variables; /* by number in the text: number in the context */
  Vec(int) devices;   /* by number in the text: number in the context */
  /* memories that last, in the order of the text; a capture has them since its last tg_jit_to_text */
  Vec(Memory) memories;
};

/* overlap.c: copies between devices that run beside the kernels of plans. After an error only flight_free
 * may be called. */
typedef struct Flight Flight;
/* the way that the copy takes beside kernels; 0: it cannot */
int copy_flies(TgContext *ctx, const Step *copy);
/* stored: what the steps store to of what existed before; it must outlive the flight. Returns NULL if out
 * of memory. */
Flight *flight_new(TgContext *ctx, Buffer *const *stored, size_t nstored);
/* Begins n copies that follow nplan plans, all by the same way. None of them reads what another one
 * writes. */
TgStatus flight_begin(Flight *f, const Step *plans, size_t nplan, const Step *copies, size_t n);
bool flight_waits(const Flight *f);                           /* some copy has not begun, or is not done */
TgStatus flight_before(Flight *f, const PlanRun *run, int k); /* called before kernel k runs */
TgStatus flight_after(Flight *f, const PlanRun *run, int k);
TgStatus flight_left(Flight *f); /* called when all plans have run: begins the copies that are left */
TgStatus flight_end(Flight *f);  /* waits until all copies are done */
void flight_free(Flight *f);

/* prepacked.c: called before the first replay. A copy that cannot be kept is still made at each launch. */
TgStatus jit_prepack(TgJit *j);

/* jit_values.c: inputs and outputs, with a memory for each part */
bool buffers_have(Buffer *const *v, size_t n, const Buffer *b);
int64_t dims_nelem(UOpStore *st, int n, const int64_t *dims); /* number of elements at the largest sizes */
TgStatus inputs_realized(TgContext *ctx, TgTensor *const *in, int nin);
/* Also realizes them. whole[i]: in[i], or a copy of it if it is only a part of a memory. */
TgStatus inputs_ready(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **whole);
void inputs_done(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **whole); /* frees `whole` */
/* Lists the memories, which must all be distinct. want: receives what they are, or NULL. */
TgStatus inputs_memories(TgContext *ctx, TgTensor *const *whole, int nin, Buffer **b, Want *want);
TgStatus inputs_checked(TgJit *j, TgTensor *const *in); /* checks the inputs against the capture */
/* For a capture: inputs_taken notes that its inputs are in memories b. inputs_copied replaces them by copies,
 * except those that fn assigns to. */
TgStatus inputs_taken(TgJit *j, TgTensor *const *whole, int nin, Buffer **b);
TgStatus inputs_copied(TgJit *j, TgTensor *const *in, TgTensor **whole, Buffer **b);
/* Finds the inputs that a call assigns to: those whose number of stores has changed. Returns false if out
 * of memory. */
bool inputs_counted(const TgJit *j, TgTensor *const *in, int nin, uint64_t **counts);
void inputs_assigned(TgJit *j, TgTensor *const *in, int nin, const uint64_t *counts);
/* Sorts out what the capture stores to. An input is another memory at each replay, so it is noted by
 * number. The capture's own memory is dropped, because nobody outside has a version of it. */
TgStatus inputs_stored(TgJit *j, TgTensor *const *in, TgTensor *const *whole, Buffer *const *b);
/* It is an error if input k is a part of a memory, because fn would store to a copy of it. */
TgStatus input_whole(const TgJit *j, int k, TgTensor *const *in, TgTensor *const *whole);
/* Whether input k lies in memory that is state of the capture, and one of the two is stored to: fn would
 * see that in both, but the capture has two memories. */
bool input_is_state(const TgJit *j, int k, const Buffer *b);
TgStatus outputs_taken(TgJit *j, TgTensor **out, int nout, Buffer **b); /* for a capture */
TgStatus outputs_new(TgJit *j, TgTensor **out, Buffer **b);             /* for a replay */

/* jit.c */
TgJit *jit_new(TgContext *ctx, TgJitFn fn, void *user); /* NULL: an error was recorded */
void jit_memories_free(TgJit *j);
void older_memories(
    TgJit *j); /* older.c: the function reads the pinned memories until one of their handles changes */
TgStatus jit_stores_flushed(TgContext *ctx); /* runs all stores that wait */
Given *given_new(TgContext *ctx, int n);     /* a list of n; NULL: out of memory */
void given_placed(TgContext *ctx, Given *g, const Layout *at);
#endif
