/* engine.h: what the files of src/engine share: a schedule that is ready to run, and the functions that
 * run it. */
#ifndef TG_ENGINE_H
#define TG_ENGINE_H
#include "codegen/codegen.h"
#include "runtime/device.h"
#include "schedule/schedule.h"
#include "tensor/context.h"

/* A program in the cache. var: the numbers of the variables that a launch takes. refs: the plans that use
 * the program, and the cache. */
typedef struct CachedProgram {
  uint8_t *key;
  size_t nkey;
  uint64_t hash;
  Device *dev;
  Program *prog;
  char name[96];
  int nvar, *var, refs;
  Prepack packed; /* its last arguments are copies that were made earlier; .n 0: it has no such arguments */
  bool cached;    /* the program is in the cache, which is one of the refs */
  struct CachedProgram *next;
} CachedProgram;

/* A schedule that is ready to run. */
typedef struct Plan {
  struct Plan *next;
  struct Plan *newer, *older; /* neighbours in the cache's list, which is sorted by last use */
  uint64_t hash, number;      /* number: no other plan of the context ever has the same */
  int refs;                   /* the captured functions that run the plan, and the cache */
  bool cyclic;                /* there is no schedule, because a value is needed on both sides of a store */
  uint8_t *key;
  size_t nkey;
  Device *dev;
  bool running; /* its slabs are taken from the pool */
  int remote;   /* number of kernels, if the device is another rank's; they are not made here */
  bool cleared; /* the slabs begin as zeros, because the plan may read what it has not written */
  Schedule sched;
  char f64[96];         /* the first operation in f64, on a device without it: "MUL of shape (3)" */
  CachedProgram **prog; /* by kernel */
  char **origin;        /* by kernel: which operations it computes; NULL: nobody asked */
  int *slab_of;         /* by temporary: the slab that holds it; -1: the temporary is a root */
  int nslab;
  /* bytes that each slab needs; bytes of the slab that was taken for it, 0: none */
  size_t *slab_bytes, *slab_room;
  void **slab; /* while the plan runs: its slabs; otherwise the slabs of its last run */
} Plan;

/* A part of a buffer. offset: bytes. */
typedef struct BufferPart {
  Buffer *buffer;
  size_t offset;
} BufferPart;

typedef struct Watch {
  void (*seen)(const TgLaunch *l, void *user);
  void *user;
  int count;
  TgTensor *const *part; /* launches report which of these parts they compute */
  int nparts;
} Watch;

/* The prepacked copies of a kernel of a captured function. stays: a set of bits, the arguments that
 * nothing in the function stores to. run: the program that takes the copies; NULL: the kernel has none,
 * and the plan's program makes them at each launch. pack: the program that makes the copies in `data`,
 * from the versions of the arguments in `version`. same: NULL, or an earlier kernel that has the same
 * copies. reads: a set of bits, the arguments of the kernel that are the first arguments of pack. */
typedef struct Prepacked {
  uint64_t stays, reads;
  CachedProgram *run, *pack;
  struct Prepacked *same;
  void *data[MOST_PREPACKED];
  uint32_t *version;
  bool made;
} Prepacked;

/* A plan with the memories that it works on. buf: the memories that the graph reads and writes, by their
 * number in the plan. temp: by temporary, where a result is stored; NULL: in a slab of the plan. */
typedef struct PlanRun {
  Plan *plan;
  const BufferPart *buf;
  Buffer *const *temp;
  Prepacked *prepacked;  /* by kernel, or NULL */
  struct Flight *flight; /* NULL, or the copies between devices that run beside its kernels */
  int step;              /* number of this plan in the flight */
} PlanRun;

/* open.c: like tg_open, but the caller gives the OS table and the allocator */
TgContext *context_open(const TgOpenOptions *options, const TgOs *os, TgMem mem);
/* profile.c: these do nothing if no profile is made */
typedef struct Profile Profile;
double profile_now(const TgContext *ctx);
void profile_begin(TgContext *ctx); /* if TG_PROFILE asks for one */
/* A span of the host, from `begin` (profile_now) to now; form: members of a JSON object. */
TG_PRINTF(4, 5) void profile_span(TgContext *ctx, const char *what, double begin, const char *form, ...);
/* A copy of an exchange, from `begin` to now: a span of the host, and of those of its devices that this
 * rank has. beside: the copy runs beside kernels. */
void profile_copy(TgContext *ctx, double begin, int exchange, const Device *to, const Device *from,
                  size_t nbytes, bool beside);
/* The host's wait for something, from `begin` to now. Like profile_span, but it does not count as work of
 * the host. */
void profile_wait(TgContext *ctx, const char *what, double begin);
/* us: the time that the device measured. The launch was given to the device at `begin`, and is known to be
 * done now. */
void profile_launch(TgContext *ctx, const PlanRun *run, int k, double begin, double us);
void profile_memory(TgContext *ctx, const Device *d);
/* launch.c */
TgStatus plan_run(TgContext *ctx, const PlanRun *run);
/* Plans that are run repeatedly, as one graph of launches. */
typedef struct Replay Replay;
/* Runs n plans of one device, one after another. The first call, where *r is NULL, makes *r. */
TgStatus replay_run(TgContext *ctx, Replay **r, const PlanRun *run, size_t n);
void replay_free(TgContext *ctx, Replay *r);
/* called when d has done all that it was given: counts the time that this took */
void launch_time_taken(TgContext *ctx, Device *d);
struct Graph;
/* Finds or makes the plan of a copied graph. NULL: an error was recorded. */
Plan *plan_get(TgContext *ctx, struct Graph *g);
void plan_release(TgContext *ctx, Plan *p);
TgStatus buffer_ready(TgContext *ctx, Buffer *b); /* allocates its memory if it has none */
/* graph_copy.c: returns the buffer that now has the contents of a BUFFER's version; NULL: there is none */
Buffer *buffer_of_value(TgContext *ctx, UOp *bottom);
/* Realizes t. Returns the view of memory that is its value. NULL: an error was recorded. */
UOp *value_in_memory(TgContext *ctx, TgTensor *t);
/* realizes; the memory of that view; NULL: an error was recorded */
Buffer *value_of(TgContext *ctx, TgTensor *t);
bool in_memory(const UOp *u); /* u is a whole buffer, perhaps in another shape */
/* .. or the leading part of a buffer that has room for the largest sizes of u */
bool fills_memory(TgContext *ctx, const UOp *u);
/* For a realized t. If t or its sizes are computed from variables, t is read from its memory from now on,
 * whatever values the variables have later. */
void in_memory_now(TgContext *ctx, TgTensor *t);
/* Called before and after stores that are not part of a graph. The first keeps the old contents of the
 * memories if they may still be needed; the second gives the memories a new version. */
TgStatus engine_before_stores(TgContext *ctx, Buffer *const *stored, size_t n);
bool stores_done(TgContext *ctx, Buffer *const *stored, size_t n); /* false: an error was recorded */
/* engine.c */
TgStatus engine_open(TgContext *ctx); /* opens the device that env.dev names, or the best one present */
void engine_close(TgContext *ctx);
/* realize.c: the functions realize, stores, read and map of EngineCalls */
TgStatus engine_realize(TgContext *ctx, TgTensor *const *t, size_t n);
TgStatus engine_stores(TgContext *ctx, Buffer *const *b, size_t n);
/* The same for tensors of one device each, and for the stores that wait on these memories. */
TgStatus realize_plain(TgContext *ctx, TgTensor *const *t, size_t n, Buffer *const *stores, size_t nstores);
TgStatus realize_alone(TgContext *ctx, TgTensor *const *t,
                       size_t n); /* runs no stores that they do not need */
/* Reports the kernels that these would run. No kernel runs, except those that copies between devices need. */
TgStatus realize_watched(TgContext *ctx, TgTensor *const *t, size_t n, Watch *only);
TgStatus shards_watched(TgContext *ctx, TgTensor *const *t, size_t n, Watch *only);
bool realize_copy(TgContext *ctx, UOp *copy); /* of a value on another device; false: an error was recorded */
/* shards.c: whether one of these tensors, or something that a store makes run, is on several devices. The
 * following functions compute and read such tensors. */
bool shards_asked(TgContext *ctx, TgTensor *const *t, size_t n, size_t nstores);
TgStatus shards_realize(TgContext *ctx, TgTensor *const *t, size_t n, Buffer *const *stores, size_t nstores);
TgStatus shards_read(TgContext *ctx, TgTensor *t, void *out, size_t nbytes); /* the whole tensor, row-major */
TgStatus engine_read(TgContext *ctx, TgTensor *t, void *out, size_t nbytes);
const void *engine_map(TgContext *ctx, TgTensor *t);
/* collect.c */
void engine_files_written(TgContext *ctx);   /* at the end: runs the stores that wait on files */
TgStatus engine_scope_ended(TgContext *ctx); /* for EngineCalls */

/* programs.c: finds or makes the programs of a plan's kernels. If one of them fails, the plan has none. */
typedef struct ProgramCache {
  Map by_hash; /* hash of the key -> the first CachedProgram of a list */
  Str prelude; /* the text that precedes every source of prelude_of */
  const Renderer *prelude_of;
} ProgramCache;

TgStatus programs_make(TgContext *ctx, Plan *plan);
/* Finds or makes programs for the kernels whose each[k].stays is not 0, if they have copies to keep. Sets
 * each[k].run and each[k].pack, or both to NULL. */
TgStatus programs_prepacked(TgContext *ctx, Plan *plan, Prepacked *each);
/* prepacked.c */
void prepacked_free(TgContext *ctx, const Plan *plan, Prepacked *each); /* each may be NULL */
Prepacked *prepacked_of(Prepacked *p);                                  /* the one that owns the copies */
/* launch.c: describes the launch that makes the copies. bufs: the kernel's narg arguments, then the
 * copies; the arguments of the launch are written there. */
const Launch *packing_of(const Prepacked *p, void **bufs, int narg, Launch *out);
bool prepacked_stale(const PlanRun *run, int k); /* the copies are not made yet, or from other versions */
void prepacked_made(const PlanRun *run, int k);  /* the copies are from the current versions */
void program_release(TgContext *ctx, CachedProgram *p);
/* Called when a plan does not use p any more. A program that only the cache still uses is freed, because
 * new shapes would otherwise fill the cache without end. */
void program_left(TgContext *ctx, CachedProgram *p);
void programs_init(ProgramCache *c, TgMem *mem);
void programs_forget(TgContext *ctx, ProgramCache *c); /* keeps the programs that a captured function runs */
ProgramCache *engine_programs(TgContext *ctx);         /* engine.c */
/* options.c: the options for kernels of `dev`, or for text that `ren` renders (NULL: for INTERP). opts:
 * replaces TG_OPTS; NULL: it does not. */
SchedOptions sched_options(TgContext *ctx, const Device *dev, const Renderer *ren);
CodegenOptions codegen_options(TgContext *ctx, const Device *dev, const Renderer *ren, const char *opts);
/* slabs.c: memory for the temporaries of all devices of a context */
typedef struct Slab Slab;

typedef struct SlabPool {
  Vec(Slab) unused;
  size_t used;       /* slabs of plans that run */
  uint64_t returned; /* slabs returned so far */
} SlabPool;

struct GraphNodes *engine_graph_nodes(TgContext *ctx); /* NULL: the engine is not open */
SlabPool *engine_slabs(TgContext *ctx);                /* NULL: the engine is not open */
TgStatus slabs_take(TgContext *ctx, Plan *p); /* before p runs; slabs_return must follow even on failure */
void slabs_return(TgContext *ctx, Plan *p);
/* Frees the slabs of d, or of all devices if d is NULL, that no plan uses now. Returns whether there were
 * any. */
bool slabs_given_back(TgContext *ctx, const Device *d);
/* beam.c: finds the opts that run fastest on d, starting from `start`. Running out of memory is the only
 * error. */
TgStatus beam_opts(TgContext *ctx, Device *d, UOpStore *st, UOp *ast, const CodegenOptions *copt,
                   const char *start, Str *best);
/* parts.c: which launches compute which parts. A Parts is made from a graph's copy before the plan is
 * made, because planning ends the copy. */
typedef struct Parts Parts;
Parts *parts_of_tensors(struct Graph *g, TgTensor *const *part, int n); /* NULL: an error was recorded */
Parts *parts_new(struct Graph *g, UOp *const *part,
                 int n); /* nodes of the copy, some of them NULL. Returns NULL if an error was recorded. */
/* Returns the numbers of the parts that kernel k of the plan computes, in rising order. The list is in ps,
 * and lasts until the next call. */
const int *parts_of(Parts *ps, const Plan *p, int k, int *n);
int parts_owner(const Parts *ps, const UOp *u); /* the part that the node counts to; -1: none */
void parts_free(Parts *ps);
/* kernel_origins.c: which operations the kernels of a plan compute, as text. */
bool origins_wanted(const TgContext *ctx);
typedef struct KernelOrigins KernelOrigins;
/* Made from a graph's copy before the plan is made, like Parts. NULL: nothing is known, or out of memory. */
KernelOrigins *kernel_origins_new(struct Graph *g);
void kernel_origins_put(TgContext *ctx, KernelOrigins *o, Plan *p); /* frees o; NULL: does nothing */
void kernel_origins_record(
    TgContext *ctx, KernelOrigins *o); /* the record of TG_VIZ and TG_TRACE uses o until kernel_origins_put */
/* While a plan is made that is recorded: returns the text of kernel k, which the caller frees. NULL:
 * nothing is known. */
char *kernel_origin_asked(TgContext *ctx, const Plan *p, int k);
void kernel_origins_forget(TgContext *ctx, Plan *p);
const char *kernel_origin(const Plan *p, int k); /* "": nothing is known */
/* inside.c: these do nothing if nobody asks (ctx->inside) */
typedef struct Inside Inside;
Inside *inside_new(TgContext *ctx); /* NULL: out of memory */
void inside_free(TgContext *ctx, Inside *in);
/* must be called while p's graphs exist */
void inside_scheduled(TgContext *ctx, const Plan *p, const char *fusion);
/* anew: replays run this program instead of the one noted before */
void inside_kernel(TgContext *ctx, const Plan *p, int k, const Linear *lin, const char *opts,
                   const char *source, bool anew);
void inside_made(TgContext *ctx, const Plan *p, double us);
void inside_origins(TgContext *ctx, const Plan *p);
void inside_launch(TgContext *ctx, const Plan *p, int k, double us);
void inside_read(TgContext *ctx, size_t nbytes);
/* exchanges.c: exchanges are noted from this call on. The others do nothing if nobody asks
 * (ctx->exchanges). */
void exchanges_asked(TgContext *ctx);
void exchanges_free(TgContext *ctx);
/* Returns what a profile calls a copy of an exchange: "ALLREDUCE ADD, ring, 4 devices, 1.2 MiB: send". If
 * the exchange is unknown, returns `what`. */
const char *exchange_named(const TgContext *ctx, int exchange, const char *what, char room[160]);
/* Notes that `part`, the part of an exchange that one device gets, was written as copies, `steps` of them
 * consecutive. */
void inside_exchange(TgContext *ctx, const UOp *exchange, const char *way, int steps, UOp *part);
void inside_summed(TgContext *ctx, const UOp *first, const char *of);
/* Notes a copy. Returns the number of its exchange, which the next two functions take; 0: unknown. us: how
 * long the host waited for it. */
int inside_copied(TgContext *ctx, const UOp *copy, size_t nbytes, double us);
void inside_copied_again(TgContext *ctx, int exchange, double us);
struct Behind;
void inside_flown(TgContext *ctx, int exchange, const struct Behind *b);
double link_us(const TgContext *ctx, int from, int to, double nbytes); /* without the latency of a message */
void inside_told(TgContext *ctx);                                      /* writes the file of TG_EXPLAIN */
/* devices.c */
Device *device_at(const TgContext *ctx, int index);
int device_count(const TgContext *ctx);
/* the functions find, facts, alloc, copy_in and free of EngineCalls */
int device_find(TgContext *ctx, const char *op, const char *name);
DeviceFacts device_facts(const TgContext *ctx, int device);
TgStatus device_alloc(TgContext *ctx, int device, size_t nbytes, void **out);
TgStatus device_copy_in(TgContext *ctx, int device, void *dst, const void *src, size_t nbytes);
void device_free(TgContext *ctx, int device, void *p, size_t nbytes);
uint64_t devices_bytes(const TgContext *ctx);    /* in use, on all devices */
TgStatus device_sync(TgContext *ctx, Device *d); /* waits until it has done all that it was given */
TgStatus devices_open(TgContext *ctx);
const Renderer *renderer_named(const char *name); /* "c", "CUDA", ..; NULL: this build has no such renderer */
void devices_close(TgContext *ctx);
/* Copies bytes from any device to any other. Neither memory may be in use. */
TgStatus device_copy(TgContext *ctx, Device *to, void *dst, Device *from, const void *src, size_t nbytes);
/* ranks.c: devices of ranks */
int device_rank(TgContext *ctx, const char *op, const char *name, size_t n);
TgStatus device_told(TgContext *ctx, Device *d, int rank, TgStatus s, TgError *err);
bool copy_crosses(const Device *to, const Device *from); /* from one rank to another, or to all */

/* What this rank does in a copy, for a profile. */
static inline const char *copy_named(const Device *to, const Device *from) {
  bool one = copy_crosses(to, from) && to->remote != from->remote;
  return !one ? "copy" : to->remote ? "send" : "receive";
}

TgStatus comm_copy(TgContext *ctx, Device *to, void *dst, Device *from, const void *src, size_t nbytes);
/* From gathers = true on, copies between ranks need not be done when their call returns; false ends this. */
void copies_gathered(TgContext *ctx, bool gathers);
TgStatus copies_awaited(TgContext *ctx); /* waits for the copies that are moving */
/* Whether NCCL makes a copy between ranks. Every rank gets the same answer. */
bool copy_by_nccl(const TgContext *ctx, const Device *to, const Device *from);
/* Gives the gathered copies to this rank's GPU as one group of NCCL's. The group runs beside the launches,
 * after what the GPU was given so far. *done becomes an event at the end of the group, which is made if it
 * is NULL. Returns the GPU, or NULL if there are no copies or *s is an error. */
Device *copies_grouped(TgContext *ctx, TgStatus *s, Event **done);
void copies_given_up(TgContext *ctx);
/* Copies to the host of every rank. */
TgStatus device_read(TgContext *ctx, Device *d, void *dst, const void *src, size_t nbytes);
void plan_shared(TgContext *ctx, const Plan *p); /* notes that p is about to run, on all ranks or none */
/* returns s; if it is an error, the other ranks learn of it */
TgStatus rank_going_on(TgContext *ctx, TgStatus s);
/* jit.c: what is captured of a run. asks: from now on, nodes are looked up without being read. */
void capture_asks(TgContext *ctx, bool asks);
void capture_stored(TgContext *ctx, Buffer *b);
/* older.c: expressions that the function of a capture reads and did not make. Between older_begin and
 * older_end, everything that is realized and stored is looked at. Returns false if out of memory.
 * older_end keeps the values that were drawn for these expressions, unless s is an error. */
bool older_begin(TgContext *ctx, Map *older);
bool older_read(TgContext *ctx, TgTensor *const *t, size_t n);
bool older_stored(TgContext *ctx, UOp *value);
TgStatus older_end(TgJit *j, Map *older, TgStatus s);
/* Called when the captured function reads an older expression from b, which becomes Buffer.fixed .. */
void older_read_from(TgContext *ctx, Buffer *b);
void older_forgotten(TgJit *j);
/* .. and when b is stored to. */
void older_overwritten(TgContext *ctx, const Buffer *b);
/* Called when a handle changes: captured functions that read t begin anew. older_computed is called when t
 * has become memory that holds the value of expression `was`: they begin anew once this memory is stored
 * to. */
void older_changes(TgContext *ctx, const TgTensor *t);
void older_computed(TgContext *ctx, const TgTensor *t, const UOp *was);
/* the contents of `from`, from byte `offset` on, are copied to all of `to` */
void capture_copied(TgContext *ctx, Buffer *from, size_t offset, Buffer *to, int exchange);
void capture_step(TgContext *ctx, Plan *p, const BufferPart *buf, size_t nbuf, Buffer *const *temp);
#endif
