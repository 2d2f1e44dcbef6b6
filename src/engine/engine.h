/* engine.h: what the files of src/engine share: a schedule ready to run, and running it. */
#ifndef TG_ENGINE_H
#define TG_ENGINE_H
#include "codegen/codegen.h"
#include "runtime/device.h"
#include "schedule/schedule.h"
#include "tensor/context.h"

/* var: numbers of the variables that a launch is given. refs: plans that use it, and the cache. */
typedef struct CachedProgram {
  uint8_t *key;
  size_t nkey;
  uint64_t hash;
  Device *dev;
  Program *prog;
  char name[96];
  int nvar, *var, refs;
  Prepack packed; /* its last arguments are copies that were made before; .n 0: it has none */
  bool cached;    /* the cache has it, and is one of the refs */
  struct CachedProgram *next;
} CachedProgram;

typedef struct Plan { /* a schedule ready to run */
  struct Plan *next;
  struct Plan *newer, *older; /* in the cache, by when it was asked for last */
  uint64_t hash, number;      /* number: no other plan of the context ever has it */
  int refs;                   /* captured functions that run it, and the cache */
  bool cyclic;                /* there is no schedule: a value is needed on both sides of a store */
  uint8_t *key;
  size_t nkey;
  Device *dev;
  bool running; /* its slabs are taken */
  int remote;   /* kernels, of another rank's device: they are not made */
  bool cleared; /* they are zeros at first: it may read what it has not written */
  Schedule sched;
  char f64[96];         /* "MUL of shape (3)": what is f64 first, on a device without it */
  CachedProgram **prog; /* by kernel */
  char **origin;        /* by kernel: which operations it computes; NULL: nobody asked */
  int *slab_of;         /* by temporary: slab that holds it, -1 for roots */
  int nslab;
  size_t *slab_bytes, *slab_room; /* that it needs; that those which are taken have, 0: not taken */
  void **slab;                    /* while it runs; else where they were when it ran last */
} Plan;

/* offset: bytes */
typedef struct BufferPart {
  Buffer *buffer;
  size_t offset;
} BufferPart;

typedef struct Watch {
  void (*seen)(const TgLaunch *l, void *user);
  void *user;
  int count;
  TgTensor *const *part; /* of which each launch is to say what it computes */
  int nparts;
} Watch;

/* What a kernel of a captured function keeps of its copies. stays: arguments that nothing in the function
 * stores to, as bits. run NULL: nothing, the plan's program makes them all. pack: makes those in `data` of
 * the versions of the arguments. same: NULL, or an earlier kernel's, whose copies are the same ones.
 * reads: those of the kernel's arguments, as bits, that pack has as its first ones. */
typedef struct Prepacked {
  uint64_t stays, reads;
  CachedProgram *run, *pack;
  struct Prepacked *same;
  void *data[MOST_PREPACKED];
  uint32_t *version;
  bool made;
} Prepacked;

/* A plan with what it works on. buf: the memories that the graph reads and writes, by the plan's numbers;
 * temp: where results go, by temporary, NULL: in a slab of the plan. */
typedef struct PlanRun {
  Plan *plan;
  const BufferPart *buf;
  Buffer *const *temp;
  Prepacked *prepacked;  /* by kernel, or NULL */
  struct Flight *flight; /* NULL, or what moves between devices beside its kernels .. */
  int step;              /* .. of which it is this plan */
} PlanRun;

/* open.c: tg_open with a table and counters of the caller's */
TgContext *context_open(const TgOpenOptions *options, const TgOs *os, TgMem mem);
/* profile.c: nothing where no profile is made */
typedef struct Profile Profile;
double profile_now(const TgContext *ctx);
void profile_begin(TgContext *ctx); /* where TG_PROFILE asks for one */
/* A span of the host, from `begin` (profile_now) to now; form: members of a JSON object. */
TG_PRINTF(4, 5) void profile_span(TgContext *ctx, const char *what, double begin, const char *form, ...);
/* A copy, of an exchange, from `begin` to now: a span of the host and of the devices of this rank. beside: it
 * goes beside kernels. */
void profile_copy(TgContext *ctx, double begin, int exchange, const Device *to, const Device *from,
                  size_t nbytes, bool beside);
/* What the host waits for, from `begin` to now: as profile_span, and no work of the host. */
void profile_wait(TgContext *ctx, const char *what, double begin);
/* us: as its device tells; given at `begin`, and known to be done now. */
void profile_launch(TgContext *ctx, const PlanRun *run, int k, double begin, double us);
void profile_memory(TgContext *ctx, const Device *d);
/* launch.c */
TgStatus plan_run(TgContext *ctx, const PlanRun *run);
typedef struct Replay Replay; /* plans that are run again and again, as one graph of launches */
/* Runs n plans of one device, one after another; *r is made at the first call, where it is NULL. */
TgStatus replay_run(TgContext *ctx, Replay **r, const PlanRun *run, size_t n);
void replay_free(TgContext *ctx, Replay *r);
/* d has done all that it was given: how long that took is counted */
void launch_time_taken(TgContext *ctx, Device *d);
struct Graph;
/* the plan of a copied graph, made or found; NULL: recorded */
Plan *plan_get(TgContext *ctx, struct Graph *g);
void plan_release(TgContext *ctx, Plan *p);
TgStatus buffer_ready(TgContext *ctx, Buffer *b); /* has memory */
/* graph_copy.c: where what a BUFFER names lies now; NULL: nowhere */
Buffer *buffer_of_value(TgContext *ctx, UOp *bottom);
/* realizes; the view of memory that is t's value; NULL: recorded */
UOp *value_in_memory(TgContext *ctx, TgTensor *t);
Buffer *value_of(TgContext *ctx, TgTensor *t); /* realizes; the memory of that; NULL: recorded */
bool in_memory(const UOp *u);                  /* a whole buffer, perhaps in another shape */
/* .. or the leading part of one that has room for the largest sizes of it */
bool fills_memory(TgContext *ctx, const UOp *u);
/* t, realized: what is made of variables, its sizes too, is read from its memory from now on, whatever they
 * are bound to */
void in_memory_now(TgContext *ctx, TgTensor *t);
/* Around stores that no graph tells of: what the memories held is kept if anybody needs it; then they have a
 * new version. */
TgStatus engine_before_stores(TgContext *ctx, Buffer *const *stored, size_t n);
bool stores_done(TgContext *ctx, Buffer *const *stored, size_t n); /* false: recorded */
/* engine.c */
TgStatus engine_open(TgContext *ctx); /* opens the device named by env.dev, or the best present */
void engine_close(TgContext *ctx);
/* realize.c: realize, stores, read and map of EngineCalls */
TgStatus engine_realize(TgContext *ctx, TgTensor *const *t, size_t n);
TgStatus engine_stores(TgContext *ctx, Buffer *const *b, size_t n);
/* The same for tensors of one device each, and the stores of these memories. */
TgStatus realize_plain(TgContext *ctx, TgTensor *const *t, size_t n, Buffer *const *stores, size_t nstores);
TgStatus realize_alone(TgContext *ctx, TgTensor *const *t, size_t n); /* and no store that they do not need */
/* The kernels that these would take, none of which runs but those that copies between devices need. */
TgStatus realize_watched(TgContext *ctx, TgTensor *const *t, size_t n, Watch *only);
TgStatus shards_watched(TgContext *ctx, TgTensor *const *t, size_t n, Watch *only);
bool realize_copy(TgContext *ctx, UOp *copy); /* of a value on another device; false: recorded */
/* shards.c: whether one of these, or what a store brings along, is on several devices; then their values */
bool shards_asked(TgContext *ctx, TgTensor *const *t, size_t n, size_t nstores);
TgStatus shards_realize(TgContext *ctx, TgTensor *const *t, size_t n, Buffer *const *stores, size_t nstores);
TgStatus shards_read(TgContext *ctx, TgTensor *t, void *out, size_t nbytes); /* the whole, row-major */
TgStatus engine_read(TgContext *ctx, TgTensor *t, void *out, size_t nbytes);
const void *engine_map(TgContext *ctx, TgTensor *t);
/* collect.c */
void engine_files_written(TgContext *ctx);   /* runs the stores that wait on files, at the end */
TgStatus engine_scope_ended(TgContext *ctx); /* of EngineCalls */

/* programs.c: the programs of a plan's kernels, made or found; where one fails the plan has none */
typedef struct ProgramCache {
  Map by_hash; /* of the key: the first CachedProgram of a list */
  Str prelude; /* what stands over every text of prelude_of */
  const Renderer *prelude_of;
} ProgramCache;

TgStatus programs_make(TgContext *ctx, Plan *plan);
/* .. of kernels with each[k].stays that have copies to keep: each[k].run and pack, else NULL both */
TgStatus programs_prepacked(TgContext *ctx, Plan *plan, Prepacked *each);
/* prepacked.c */
void prepacked_free(TgContext *ctx, const Plan *plan, Prepacked *each); /* each may be NULL */
Prepacked *prepacked_of(Prepacked *p);                                  /* the one that has the copies */
/* launch.c: the launch that makes the copies. bufs: the kernel's narg arguments, then the copies; afterwards the
 * arguments of the launch. */
const Launch *packing_of(const Prepacked *p, void **bufs, int narg, Launch *out);
bool prepacked_stale(const PlanRun *run, int k); /* its copies are of other versions, or not made yet */
void prepacked_made(const PlanRun *run, int k);  /* they are of these versions now */
void program_release(TgContext *ctx, CachedProgram *p);
/* A plan has it no more. What only the cache still has goes, or new shapes would fill that for ever. */
void program_left(TgContext *ctx, CachedProgram *p);
void programs_init(ProgramCache *c, TgMem *mem);
void programs_forget(TgContext *ctx, ProgramCache *c); /* what a captured function runs stays */
ProgramCache *engine_programs(TgContext *ctx);         /* engine.c */
/* options.c: for kernels of `dev`, or text that `ren` renders (NULL: that INTERP runs); opts: instead of
 * TG_OPTS, or NULL */
SchedOptions sched_options(TgContext *ctx, const Device *dev, const Renderer *ren);
CodegenOptions codegen_options(TgContext *ctx, const Device *dev, const Renderer *ren, const char *opts);
/* slabs.c: memory for temporaries, of all devices of a context */
typedef struct Slab Slab;

typedef struct SlabPool {
  Vec(Slab) unused;
  size_t used;       /* slabs of plans that run */
  uint64_t returned; /* slabs so far */
} SlabPool;

struct GraphNodes *engine_graph_nodes(TgContext *ctx); /* NULL: the engine is not open */
SlabPool *engine_slabs(TgContext *ctx);                /* NULL: the engine is not open */
TgStatus slabs_take(TgContext *ctx, Plan *p); /* before p runs; also where it fails, slabs_return follows */
void slabs_return(TgContext *ctx, Plan *p);
/* What no plan uses now is given back, of d, NULL: of all; whether there was any. */
bool slabs_given_back(TgContext *ctx, const Device *d);
/* beam.c: the opts that ran fastest on d, `start` among them. No error but for want of memory. */
TgStatus beam_opts(TgContext *ctx, Device *d, UOpStore *st, UOp *ast, const CodegenOptions *copt,
                   const char *start, Str *best);
/* parts.c: which launches compute what. Made of a graph's copy before its plan is, which ends the copy. */
typedef struct Parts Parts;
Parts *parts_of_tensors(struct Graph *g, TgTensor *const *part, int n); /* NULL: recorded */
Parts *parts_new(struct Graph *g, UOp *const *part,
                 int n); /* of nodes of the copy, some NULL; NULL: recorded */
/* The numbers of the parts that kernel k of the plan computes, rising; they stand in ps until the next call.
 */
const int *parts_of(Parts *ps, const Plan *p, int k, int *n);
int parts_owner(const Parts *ps, const UOp *u); /* the part that the node is counted to; -1: none */
void parts_free(Parts *ps);
/* kernel_origins.c: which operations the kernels of a plan compute, as text. */
bool origins_wanted(const TgContext *ctx);
typedef struct KernelOrigins KernelOrigins;
/* Made of a graph's copy before its plan is, as parts are. NULL: nothing is known, or there is no memory. */
KernelOrigins *kernel_origins_new(struct Graph *g);
void kernel_origins_put(TgContext *ctx, KernelOrigins *o, Plan *p); /* o NULL: nothing; ends o */
void kernel_origins_record(
    TgContext *ctx, KernelOrigins *o); /* the record of TG_VIZ and TG_TRACE ask o, until kernel_origins_put */
/* While a plan is made that the record asks about: the text of kernel k, to be freed; NULL: nothing is
 * known. */
char *kernel_origin_asked(TgContext *ctx, const Plan *p, int k);
void kernel_origins_forget(TgContext *ctx, Plan *p);
const char *kernel_origin(const Plan *p, int k); /* "" where nothing is known */
/* inside.c: nothing where nobody asks (ctx->inside) */
typedef struct Inside Inside;
Inside *inside_new(TgContext *ctx); /* NULL: no memory */
void inside_free(TgContext *ctx, Inside *in);
void inside_scheduled(TgContext *ctx, const Plan *p, const char *fusion); /* p's graphs are still there */
/* anew: replays run this one, instead of the one before */
void inside_kernel(TgContext *ctx, const Plan *p, int k, const Linear *lin, const char *opts,
                   const char *source, bool anew);
void inside_made(TgContext *ctx, const Plan *p, double us);
void inside_origins(TgContext *ctx, const Plan *p);
void inside_launch(TgContext *ctx, const Plan *p, int k, double us);
void inside_read(TgContext *ctx, size_t nbytes);
/* exchanges.c: from now on they are noted; nothing where nobody asks (ctx->exchanges) */
void exchanges_asked(TgContext *ctx);
void exchanges_free(TgContext *ctx);
/* What a profile calls the copy of one: "ALLREDUCE ADD, ring, 4 devices, 1.2 MiB: send"; `what` where it is
 * unknown. */
const char *exchange_named(const TgContext *ctx, int exchange, const char *what, char room[160]);
/* part, what one device gets of an exchange, is written as copies: `steps` one after another */
void inside_exchange(TgContext *ctx, const UOp *exchange, const char *way, int steps, UOp *part);
void inside_summed(TgContext *ctx, const UOp *first, const char *of);
/* The number of the exchange that the copy is of, for the next two; 0: unknown. us: it was waited for so
 * long. */
int inside_copied(TgContext *ctx, const UOp *copy, size_t nbytes, double us);
void inside_copied_again(TgContext *ctx, int exchange, double us);
struct Behind;
void inside_flown(TgContext *ctx, int exchange, const struct Behind *b);
double link_us(const TgContext *ctx, int from, int to, double nbytes); /* without that of a message */
void inside_told(TgContext *ctx);                                      /* to the file of TG_EXPLAIN */
/* devices.c */
Device *device_at(const TgContext *ctx, int index);
int device_count(const TgContext *ctx);
/* what EngineCalls has, find, facts, alloc, copy_in, free */
int device_find(TgContext *ctx, const char *op, const char *name);
DeviceFacts device_facts(const TgContext *ctx, int device);
TgStatus device_alloc(TgContext *ctx, int device, size_t nbytes, void **out);
TgStatus device_copy_in(TgContext *ctx, int device, void *dst, const void *src, size_t nbytes);
void device_free(TgContext *ctx, int device, void *p, size_t nbytes);
uint64_t devices_bytes(const TgContext *ctx);    /* in use, on all */
TgStatus device_sync(TgContext *ctx, Device *d); /* until it has done all that it was given */
TgStatus devices_open(TgContext *ctx);
const Renderer *renderer_named(const char *name); /* "c", "CUDA", ..; NULL: this build has none */
void devices_close(TgContext *ctx);
/* TG_OK and the bytes moved, from any device to any; neither may be in use. */
TgStatus device_copy(TgContext *ctx, Device *to, void *dst, Device *from, const void *src, size_t nbytes);
/* ranks.c: devices of ranks */
int device_rank(TgContext *ctx, const char *op, const char *name, size_t n);
TgStatus device_told(TgContext *ctx, Device *d, int rank, TgStatus s, TgError *err);
bool copy_crosses(const Device *to, const Device *from); /* from one rank to another, or to all */

/* What this rank does of a copy, for a profile. */
static inline const char *copy_named(const Device *to, const Device *from) {
  bool one = copy_crosses(to, from) && to->remote != from->remote;
  return !one ? "copy" : to->remote ? "send" : "receive";
}

TgStatus comm_copy(TgContext *ctx, Device *to, void *dst, Device *from, const void *src, size_t nbytes);
/* From here on copies between ranks need not be done when the call returns, or they do again. */
void copies_gathered(TgContext *ctx, bool gathers);
TgStatus copies_awaited(TgContext *ctx); /* those that are on their way are done */
/* Whether NCCL makes a copy that crosses: every rank comes to the same answer. */
bool copy_by_nccl(const TgContext *ctx, const Device *to, const Device *from);
/* The copies that were gathered are given to this rank's GPU as a group of NCCL's, beside its launches and
 * behind what it was given so far; then *done is, which is made where it is NULL. The GPU; NULL: there are
 * none, or *s. */
Device *copies_grouped(TgContext *ctx, TgStatus *s, Event **done);
void copies_given_up(TgContext *ctx);
/* To the host, of every rank. */
TgStatus device_read(TgContext *ctx, Device *d, void *dst, const void *src, size_t nbytes);
void plan_shared(TgContext *ctx, const Plan *p);    /* p is to run, on all ranks or none */
TgStatus rank_going_on(TgContext *ctx, TgStatus s); /* s, of which, where it is none, the others hear */
/* jit.c: what is captured of a run; asks: whether what is looked up from now on is not read */
void capture_asks(TgContext *ctx, bool asks);
void capture_stored(TgContext *ctx, Buffer *b);
/* older.c: expressions that the function of a capture reads and did not make. Between the two all that is
 * realized and stored is looked at. False: out of memory. older_end keeps what was drawn for them, unless s is
 * an error. */
bool older_begin(TgContext *ctx, Map *older);
bool older_read(TgContext *ctx, TgTensor *const *t, size_t n);
bool older_stored(TgContext *ctx, UOp *value);
TgStatus older_end(TgJit *j, Map *older, TgStatus s);
/* The function that is captured reads one of them from b, which is then Buffer.fixed .. */
void older_read_from(TgContext *ctx, Buffer *b);
void older_forgotten(TgJit *j);
/* .. and b is stored to. */
void older_overwritten(TgContext *ctx, const Buffer *b);
/* Captured functions that read t begin anew; or, where t has become memory that holds what the expression was,
 * once that is stored to. */
void older_changes(TgContext *ctx, const TgTensor *t);
void older_computed(TgContext *ctx, const TgTensor *t, const UOp *was);
/* what `from` holds from byte `offset` on, to all of `to` */
void capture_copied(TgContext *ctx, Buffer *from, size_t offset, Buffer *to, int exchange);
void capture_step(TgContext *ctx, Plan *p, const BufferPart *buf, size_t nbuf, Buffer *const *temp);
#endif
