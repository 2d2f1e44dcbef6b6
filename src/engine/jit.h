/* jit.h: a captured function as the files of src/engine see it: jit.c captures and replays, program.c writes
 * it as text, program_read.c makes one of text. */
#ifndef TG_JIT_H
#define TG_JIT_H
#include "engine/engine.h"
#include "tensor/multi.h"

/* plan NULL: what `from` holds from byte `offset` on is copied to `to`, all of that */
typedef struct Step {
  Plan *plan;
  BufferPart *buf;
  Buffer **temp;
  size_t nbuf, ntemp;
  Buffer *from, *to;
  size_t offset;
  int exchange;         /* that the copy is of, as inside_copied says */
  Prepacked *prepacked; /* by kernel of the plan, or NULL */
  Replay *replay;       /* of this plan and those that follow it on the same device */
} Step;

/* k: input k, or -1 - output */
typedef struct Patch {
  Buffer **at;
  int k;
} Patch;

/* stored: NULL for an input or output. held: pinned while the function runs, once for each place in a step: a
 * scope that ends inside the function collects what it made, and the steps still name it. */
typedef struct Capture {
  Vec(Step) steps;
  Vec(Buffer *) stored, held;
  struct TgJit *of; /* whose capture it is */
  bool asks;        /* what is looked up is not read */
  bool failed;
} Capture;

enum { MOST_PROGRAM_NAME = 4096 }; /* bytes of a name in a program's text */

/* An input or output as it was captured, or what one device has of it. */
typedef struct Want {
  int device;
  DType dtype;
  int n;
  int64_t dims[TG_MAX_RANK];
} Want;

/* An input or output as the function has it: on at.n devices a tensor for each of them in the list. name:
 * the context's, or NULL. device: the names of those. */
typedef struct Given {
  char *name;
  Want want;
  Layout at;
  const char *device[MOST_DEVICES];
} Given;

/* n elements of a memory that stays, from byte `offset` on, by name. t: keeps what was loaded. */
typedef struct Memory {
  char *name;
  Buffer *buffer;
  size_t offset;
  int n;
  int64_t dims[TG_MAX_RANK];
  TgTensor *t;
} Memory;

/* An expression, by its node; made: by the function, in its first call. */
typedef struct OlderNode {
  uint64_t id;
  bool made;
} OlderNode;

struct TgJit {
  TgContext *ctx;
  TgJit *next, **link;
  TgJitFn fn;
  void *user;
  int invariant;            /* the setting when it was made: both runs that plan have it */
  bool prepacks, prepacked; /* copies are kept; it is known which ones */
  bool training;            /* tg_training of its last run */
  uint64_t grad_switches;   /* the context's then */
  uint64_t trained;         /* a hash of which of `pinned` required a gradient */
  int runs;                 /* 0: the next is the first; 1: the next captures; 2: replays */
  bool running, stale;      /* stale: what was captured, or loaded, is not what fn would do now */
  Capture c;
  Vec(Patch) patches;
  Vec(Buffer *) own, pinned, draws;
  Vec(int64_t) input_stored;  /* parts of inputs that fn assigns to */
  uint64_t assigned;          /* bits (i % 64) of inputs that it was seen to assign to, in whichever call */
  Vec(OlderNode) expressions; /* that fn read and that have handles */
  Vec(TgTensor *) older;      /* what they hold, if it was drawn */
  Vec(Buffer *) fixed;        /* memories that the capture reads them from */
  int nin, nout;              /* each part of a tensor on several devices by itself */
  Want *in, *out;
  int ngiven, nmade; /* as the function has them */
  Given *given, *made;
  bool loaded;          /* of text: there is no function to call again */
  bool cleared;         /* an output may be seen before all of it was written: it begins as zeros */
  Vec(int) variables;   /* by number in the text: the context's number */
  Vec(int) devices;     /* the same */
  Vec(Memory) memories; /* what stays, in the order of the text; of a capture since its last tg_jit_to_text */
};

/* overlap.c: copies between devices beside the kernels of plans. After an error only flight_free. */
typedef struct Flight Flight;
int copy_flies(TgContext *ctx, const Step *copy); /* 0: s is no such copy; else the way that it goes */
/* stored: what the list stores to, of what was there before; stays as it is. NULL: out of memory */
Flight *flight_new(TgContext *ctx, Buffer *const *stored, size_t nstored);
/* n copies, none of what another one brings, all of one way, that follow nplan plans. */
TgStatus flight_begin(Flight *f, const Step *plans, size_t nplan, const Step *copies, size_t n);
bool flight_waits(const Flight *f);                           /* something is to go, or on its way */
TgStatus flight_before(Flight *f, const PlanRun *run, int k); /* kernel k runs */
TgStatus flight_after(Flight *f, const PlanRun *run, int k);
TgStatus flight_left(Flight *f); /* all plans ran: all that is to go goes */
TgStatus flight_end(Flight *f);  /* all is there */
void flight_free(Flight *f);

/* prepacked.c: before the first replay; what cannot be kept is not */
TgStatus jit_prepack(TgJit *j);

/* jit_values.c: inputs and outputs, a memory for each part */
bool buffers_have(Buffer *const *v, size_t n, const Buffer *b);
int64_t dims_nelem(UOpStore *st, int n, const int64_t *dims); /* of the largest sizes */
TgStatus inputs_realized(TgContext *ctx, TgTensor *const *in, int nin);
/* Realizes them, too. whole[i]: in[i], or, where that is a part of a memory, a copy. */
TgStatus inputs_ready(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **whole);
void inputs_done(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **whole); /* frees `whole` */
/* their memories, none of them two inputs'; want: what they are, or NULL */
TgStatus inputs_memories(TgContext *ctx, TgTensor *const *whole, int nin, Buffer **b, Want *want);
TgStatus inputs_checked(TgJit *j, TgTensor *const *in); /* against what was captured */
/* Of a capture: its inputs are these, in memories b; in copies, but for those that it assigns to. */
TgStatus inputs_taken(TgJit *j, TgTensor *const *whole, int nin, Buffer **b);
TgStatus inputs_copied(TgJit *j, TgTensor *const *in, TgTensor **whole, Buffer **b);
/* Which inputs a call assigns to: those of which the counts of stores are others than before. False: out of
 * memory. */
bool inputs_counted(const TgJit *j, TgTensor *const *in, int nin, uint64_t **counts);
void inputs_assigned(TgJit *j, TgTensor *const *in, int nin, const uint64_t *counts);
/* Of what was captured as stored to, what is an input: another memory at every replay. What else does not stay
 * is memory of the list's own, which nobody outside has a version of. */
TgStatus inputs_stored(TgJit *j, TgTensor *const *in, TgTensor *const *whole, Buffer *const *b);
/* an error, where input k is a part of a memory: what is stored to would be a copy of it */
TgStatus input_whole(const TgJit *j, int k, TgTensor *const *in, TgTensor *const *whole);
/* Whether input k is given in memory that is state of the capture, and one of the two is stored to: fn would
 * see that in both, and the capture has two memories. */
bool input_is_state(const TgJit *j, int k, const Buffer *b);
TgStatus outputs_taken(TgJit *j, TgTensor **out, int nout, Buffer **b); /* of a capture */
TgStatus outputs_new(TgJit *j, TgTensor **out, Buffer **b);             /* of a replay */

/* jit.c */
TgJit *jit_new(TgContext *ctx, TgJitFn fn, void *user); /* NULL: recorded */
void jit_memories_free(TgJit *j);
void older_memories(
    TgJit *j); /* older.c: it reads the memories that are pinned, until one of their handles changes */
TgStatus jit_stores_flushed(TgContext *ctx); /* runs all stores that wait */
Given *given_new(TgContext *ctx, int n);     /* a list of n; NULL: out of memory */
void given_placed(TgContext *ctx, Given *g, const Layout *at);
#endif
