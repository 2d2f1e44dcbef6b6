/* context.h: the state behind TgContext and TgTensor. Front end and engine share it; nobody else sees it. The
 * front end knows nothing of what stands above it: it asks by EngineCalls. */
#ifndef TG_CONTEXT_H
#define TG_CONTEXT_H
#include "base/file_map.h"
#include "uop/pass.h"
#include "plan/target.h"
#include "tg.h"

/* Memory of the device. What it holds has versions: a BUFFER node names uid and version, so a node never
 * changes its value. Every store makes the next version; what an older one held is kept in another buffer if
 * something that can still be asked for needs it (engine/realize.c). */
typedef struct Buffer {
  DType dtype;
  int64_t nelem, uid;
  uint64_t made; /* memories that the context made before it: says which of two is older, as a uid does not */
  int device;    /* its number in the context */
  uint32_t version; /* of what it holds now */
  /* the STORE that waits to make the next version; NULL: none. The memory is then in ctx->waiting, at waits_at */
  UOp *store;
  size_t waits_at;
  /* the handles that are views of it: they see every store, made through whichever of them */
  TgTensor *places;
  uint64_t origin; /* bits (uid % 64) of the memories below the expressions whose value it holds .. */
  bool constant;   /* .. and whether one of them has none: who needs those expressions needs this memory */
  /* uid + 1 of the buffer that kept an older version last: used again once nothing needs that */
  int64_t copy;
  bool leaf; /* a tensor in it requires a gradient: it is never forgotten how a value is computed from it */
  bool forgotten;                /* how it was computed is not known any more */
  int generation;                /* realized values on the longest way to it that is remembered */
  bool needed;                   /* scratch of a walk */
  void *data;                    /* NULL until first needed; a kernel output is allocated by the engine */
  bool borrowed, marked, filled; /* borrowed: data is the user's (CPU, INTERP); filled: holds a value */
  void (*destroy)(void *data, void *user); /* for borrowed data */
  void *user;
  FileMap file;   /* of tg_from_file: data points into it, or is a copy on a device with memory of its own */
  bool read_only; /* no store may go here */
  bool
      partly; /* its size is symbolic: what was never stored to may be read, and must be the same each time */
  /* ctx->bound + 1 when a value of variables was computed here: it holds while they are bound so; 0: no such
   * value */
  uint64_t bound_at;
  /* words drawn with the key that it holds (random.c); 0: no key. What replays a graph calls draw_again */
  int64_t draws;
  bool given;    /* an input of the function that is captured now */
  int fixed;     /* captured functions that read an expression of before from what it holds now */
  bool renews;   /* something was made of this version: the next capture has a new one */
  int pins;      /* captured functions that use it: it stays when no tensor reaches it */
  int64_t owner; /* uid + 1 of the buffer whose memory data points into (a view of other dtype); 0: its own */
} Buffer;

struct TgTensor {
  TgContext *ctx;
  UOp *uop;                 /* has a shape */
  TgTensor *grad, *grad_of; /* set by tg_backward: the gradient, and back from it; either may end first */
  TgTensor *next, **link;   /* in its scope's list, or in the context's kept list */
  Buffer *memory; /* what uop is a view of, NULL: an expression, whose value changes with no store */
  TgTensor *next_place, **place_link; /* in memory->places; an expression's, in ctx->expressions */
  UOp *then;                          /* scratch: what uop becomes if all of a list can be made */
  /* a contiguous copy of the elements, for tg_map of a strided view; and back */
  TgTensor *mapped, *mapped_of;
  int64_t *sizes; /* what tg_shape and tg_max_shape answered, where sizes are symbolic */
  /* on several devices, where it is memory: a hidden handle for each part, which is a place; and back */
  TgTensor **part, *whole;
  int nparts;
  bool
      indirect; /* a view that is no view of each part: part are those of the memory that it is computed from */
  bool requires_grad, kept, pending; /* pending: stands in ctx->pending */
  bool captured;      /* captured functions read it: the memory that it is, or the value of its expression */
  uint32_t path;      /* the scopes of names that it was made in (origin.c); 0: none */
  const char *origin; /* the call that made it, "relu (net.c:12)"; NULL: not told */
};

typedef struct TgScope {
  TgTensor *tensors;
} TgScope;

/* Where operations come from (origin.c). Handles say it of their nodes; where somebody asks, it is kept for
 * nodes whose handles end, too. A text has a number from 1 on. */
enum { MOST_OUTER = 8 };

typedef struct Origins {
  const char *outer[MOST_OUTER]; /* places of calls one of whose arguments is a call that began later .. */
  int nouter;                    /* .. if err.place is one */
  bool asked, told;              /* told: launches are told of now (tg_schedule) */
  Vec(char *) text;              /* by number - 1 */
  Map number;                    /* hash of a text -> its number */
  Map of_node;                   /* node -> number of its path << 32 | number of its place */
  Vec(uint32_t) path; /* the scopes of names that are open, outermost first: numbers of whole paths */
} Origins;

/* What is told of a node; both 0: nothing. */
typedef struct Origin {
  uint32_t path, place;
} Origin;

typedef struct GradientHook {
  TgGradientFn fn;
  void *user;
  size_t own; /* bytes of user, which is then a copy of the context's own; 0: the caller's */
} GradientHook;

/* runtime/ */
struct Device;
struct Bundle;

enum { MOST_DEVICES = 16 };

/* What is drawn on a device (random.c): the words so far; how many devices drew before it since the seed was
 * set, and one, 0: it did not draw. */
typedef struct Draws {
  uint64_t counter;
  int order;
} Draws;

/* The names of several devices as one text, which lives as long as the context. */
typedef struct DeviceList {
  uint64_t devices;
  char *names;
} DeviceList;

/* What the front end knows of a device, which is a number in its context. */
typedef struct DeviceFacts {
  const char *name;     /* "CPU", "CPU:1" */
  const char *describe; /* one line for people */
  bool files_only;      /* its memory is files, and it computes nothing */
  bool own_memory;      /* the host cannot read and write its memory in place */
  size_t align;         /* bytes: what its kernels read begins at a multiple */
  const Target *target; /* the machine that it plans for */
  int machine;          /* devices with the same number are in one */
} DeviceFacts;

/* What the front end asks of the devices and the engine, which fills it in (engine/open.c). What fails is
 * recorded, but for copy_in. */
typedef struct EngineCalls {
  /* the number of the device called so, which is opened if it is not; NULL: the default one; -1: recorded */
  int (*find)(TgContext *ctx, const char *op, const char *name);
  DeviceFacts (*facts)(const TgContext *ctx, int device);
  /* memory of a device, within its limit; what caches hold of it is given back for that */
  TgStatus (*alloc)(TgContext *ctx, int device, size_t nbytes, void **out);
  TgStatus (*copy_in)(TgContext *ctx, int device, void *dst, const void *src, size_t nbytes);
  void (*free)(TgContext *ctx, int device, void *p, size_t nbytes);
  TgStatus (*realize)(TgContext *ctx, TgTensor *const *t, size_t n);
  TgStatus (*stores)(TgContext *ctx, Buffer *const *b, size_t n); /* runs the stores that wait on these */
  /* realizes, then row-major elements of t's dtype */
  TgStatus (*read)(TgContext *ctx, TgTensor *t, void *out, size_t nbytes);
  /* realizes; where t's elements are in the host's memory; NULL: recorded */
  const void *(*map)(TgContext *ctx, TgTensor *t);
  void (*cache_clear)(TgContext *ctx); /* forgets every schedule and program */
  /* a scope has ended: sweeps nodes and buffers that no tensor reaches, where there may be many */
  TgStatus (*scope_ended)(TgContext *ctx);
  /* what one device gets of an exchange is written as copies, so many one after another, in a way ("ring") */
  void (*exchanged)(TgContext *ctx, const UOp *exchange, const char *way, int steps, UOp *part);
  /* what devices add up, of which this is the first's, is part of the gradient of what is called so */
  void (*summed)(TgContext *ctx, const UOp *first, const char *of);
  /* a tensor that captured functions read is about to become another expression, or other memory */
  void (*captured_changes)(TgContext *ctx, const TgTensor *t);
  /* what is captured is right while b holds what it holds now */
  void (*captured_reads)(TgContext *ctx, Buffer *b);
  /* one that was an expression is memory that holds its value */
  void (*captured_computed)(TgContext *ctx, const TgTensor *t, const UOp *was);
  /* a value is about to wait as a store; false: out of memory */
  bool (*value_stored)(TgContext *ctx, UOp *value);
} EngineCalls;

struct TgContext {
  TgMem mem;
  const TgOs *os;
  TgEnv env;
  TgError err;
  UOpStore *store;
  const EngineCalls *calls;
  bool dev_open;
  struct Inside *inside;        /* engine/inside.c; NULL: nobody asks */
  int reader;                   /* 1 + the rank that alone reads, negative on the others; 0: each does */
  struct Comm *comm;            /* runtime/comm.h; NULL: nobody asked for it, or there are no other ranks */
  struct Profile *profile;      /* engine/profile.c; NULL: none is made */
  struct Exchanges *exchanges;  /* engine/exchanges.c; NULL: nobody asks */
  Vec(struct Device *) devices; /* by number */
  Draws draws[MOST_DEVICES];
  int default_device;           /* where memory is made, and what is made of numbers alone */
  int draw_device;              /* where keys are drawn (random.c) */
  uint64_t draw_devices;        /* that draw the same, 0: that one alone */
  Vec(DeviceList) device_lists; /* that were asked for by name */
  Vec(Buffer *) buffers;        /* by uid; NULL where freed */
  /* uids of freed memories that no node names any more: those of the next ones */
  Vec(int64_t) free_uids;
  uint64_t buffers_made;
  Vec(TgScope) scopes; /* scopes.at[0] is the outermost, made by tg_open */
  TgTensor *kept;
  TgTensor *expressions; /* handles that are not memory, of all scopes and kept ones */
  /* expression -> view of the BUFFER that holds its value; BUFFER -> BUFFER that holds what it held */
  Map realized;
  Map history;          /* BUFFER -> the expression that it was computed by, for gradients */
  Vec(int64_t) waiting; /* uids of the memories with a store that waits */
  Str info_text;        /* the last answer of tg_info */
  Str text, describe;   /* the last answers of tg_to_text and tg_describe */
  Str opt_text;         /* the result of the last tg_opt */
  Str explain_text;     /* the last answer of tg_explain */
  Str origin_text;      /* the last answer of tg_origin_of */
  PassEnv passes;       /* TG_TRACE, TG_DUMP, TG_RULE_LIMIT and the counts of all passes */
  TgCounters counters;
  uint64_t rng_seed;
  bool training;
  uint64_t grad_switches; /* how often a tensor came to require a gradient, or no more */
  Origins origins;
  /* losses and running statistics: computed with the next in-place update, before it */
  Vec(TgTensor *) pending;
  size_t swept_nodes; /* store_count after the last collect: tg_scope_end collects when it has doubled */
  uint64_t swept_bytes;
  struct Capture *capture; /* jit.c: what is being captured */
  TgJit *jits;             /* all that live */
  Map *older;              /* older.c: what is known of nodes while a function is called for the first time */
  uint64_t capture_first;  /* while a function is captured: memories made from here on are its own */
  /* bits (uid % 64) of the memories that expressions are made of which got a handle, or were computed, since
   * the last capture */
  uint64_t read_below;
  Vec(GradientHook) hooks; /* by arg.i of CUSTOM_GRADIENT */
  struct DimTable *dims;   /* variables and the sizes made of them */
  Vec(struct TgVariable *) variables;
  uint64_t bound;                                  /* how often a variable was bound to another value */
  void *engine;                                    /* caches (engine) */
  void (*seen)(const TgKernelText *k, void *user); /* tg_watch_kernels */
  void *seen_user;
  void (*launched)(const TgLaunch *l, void *user); /* tg_watch_launches */
  void *launched_user;
  TgLogFn log; /* NULL: stderr */
  void *log_user;
  void (*progressed)(const TgProgress *p, void *user); /* tg_watch_progress */
  void *progressed_user;
  TgProgress progress; /* the last that was told, and when */
  double progress_s;
  Str bundle_text;        /* of the last tg_bundle */
  Str c_text[4];          /* of the last tg_jit_to_c: header, source, weights, plans */
  struct Bundle *bundle;  /* kernels that were given, for its devices; or NULL */
  _Atomic bool cancelled; /* tg_cancel, until it is reported */
};

/* front end, for the engine and itself */
/* an empty context without a device; NULL: out of memory */
TgContext *context_new(const TgOs *os, TgMem mem);
void context_free(TgContext *ctx); /* what no device knows of; handles and buffers are gone */
/* what the library prints: to the log, or stderr */
__attribute__((format(printf, 2, 3))) void context_say(TgContext *ctx, const char *form, ...);
/* So many kernels of this phase are done, for tg_watch_progress. */
void context_progress(TgContext *ctx, const char *phase, int done, int all);
/* TG_ERR_CANCELLED, recorded, where tg_cancel was called; TG_OK */
TgStatus context_cancelled(TgContext *ctx);
TgTensor *tensor_new(TgContext *ctx, UOp *u); /* u's value; owned by the innermost scope; NULL if u is NULL */
TgTensor *tensor_view(TgTensor *x, UOp *u);   /* u: movements of x. A place if x is one */
/* r, what a function made of x; where that is x itself, x's value under a handle of its own: the caller may
 * release one, or store to it, and keeps the other. */
TgTensor *tensor_result(TgTensor *r, const TgTensor *x);
TgTensor *tensor_cast(TgTensor *x, TgDType to);  /* x itself if it has that dtype */
TgTensor *tensor_memory(TgContext *ctx, UOp *u); /* u: memory made for it. A place */
int tensor_device(const TgTensor *t); /* place.c: the number of its device; of numbers: the default */
/* memory.c */
/* Captured functions are told, before t gets another value; or when it has become memory that holds its value. */
void tensor_changes(TgTensor *t);
void tensor_computed(TgTensor *t, const UOp *was);
void tensor_set(TgTensor *t, UOp *u); /* t->uop = u, and t becomes a place if u is a view of memory */
void places_unlink(TgTensor *t);
/* t, in no list of places, goes to that of b, or of expressions (b: NULL) */
void places_link(TgTensor *t, Buffer *b);
/* new Buffer; BUFFER reshaped to shape. Symbolic: the largest, cut */
UOp *buffer_node(TgContext *ctx, int device, DType dtype, int64_t nelem, const Ints *shape);
Buffer *buffer_get(TgContext *ctx, const UOp *buffer); /* of a BUFFER node; NULL if freed */
void buffer_free(TgContext *ctx,
                 int64_t uid); /* memory, destructor and record; the uid stays taken until a sweep */
UOp *memory_node(TgContext *ctx, const Buffer *b); /* the BUFFER of what it holds now */
UOp *memory_next(TgContext *ctx, Buffer *b);       /* .. and of what it will hold after one more store */
UOp *view_bottom(UOp *u);                          /* the BUFFER that u is a view of, NULL: an expression */
/* u's movements above `at` (of its chain) done to base; an AFTER among them falls away */
UOp *view_on(TgContext *ctx, UOp *u, const UOp *at, UOp *base);
/* the BUFFER of which u is one piece in order, from element `start`; NULL: there is none */
UOp *piece_of(UOp *u, int64_t *start);
/* u, a view of memory: each of its elements is one place, which no other element is */
bool is_place(const UOp *u);
/* t becomes a place that can be stored to, of its value if that is kept; false: recorded */
bool place_ready(const char *op, TgTensor *t, bool keep_value);
/* value to view, a view of place t's memory: waits. All places of the memory see it */
bool store_to(TgTensor *t, UOp *view, UOp *value);
bool memory_is_trained(const Buffer *b); /* a tensor in it requires a gradient */
/* t, on several devices: its node names what its memories hold now, by no store that has run. False: recorded */
bool whole_renewed(TgTensor *t);
bool memory_flush(TgContext *ctx, Buffer *b); /* runs the store that waits, if any; false: recorded */
/* before a store runs: what its places become is made; false: recorded */
bool memory_prepare(TgContext *ctx, Buffer *b);
/* after it has run, no handle made meanwhile: the next version */
void memory_waits_no_more(TgContext *ctx, Buffer *b); /* its store is dropped */
void memory_written(TgContext *ctx, Buffer *b);
/* u, an expression or a BUFFER, has its value at place; false: out of memory */
bool value_known(TgContext *ctx, UOp *u, UOp *place);
/* the next version of all that has places, with the same contents: nothing is found computed from it */
bool memories_renewed(TgContext *ctx);
/* d's place in the order of the devices that draw: what it has, or would get now */
int draw_order(const TgContext *ctx, int device);
uint32_t draw_number(int order); /* of the keys of the device with this place, from 1 on */
/* the key of the context's next draw, as if the call that made the buffer were made again */
TgStatus draw_again(TgContext *ctx, Buffer *key);
/* a value is asked for while a function is captured: recorded */
bool capture_refuses(TgContext *ctx, const char *op);

/* origin.c */
void origins_free(TgContext *ctx);
void origin_of_handle(TgTensor *t); /* t was made just now: the scopes of names that it is in */
/* What is known of node u, of which t is a handle or NULL. */
Origin origin_find(TgContext *ctx, const TgTensor *t, const UOp *u);
/* u is part of the gradient of what `of` says; only where somebody asks */
void origin_of_gradient(TgContext *ctx, const UOp *u, Origin of);
void origin_put(TgContext *ctx, Str *to, Origin o);         /* "conv1/relu (net.c:12)" */
const char *origin_kept(TgContext *ctx, const TgTensor *t); /* the same, as long as the context; NULL: none */
int variable_number(const struct TgVariable *v);
struct TgVariable *variable_at(TgContext *ctx, int number); /* NULL: no such variable */
#endif
