/* context.h: the state behind TgContext and TgTensor. Only the front end and the engine see it. The front
 * end does not know the engine above it and calls it only through EngineCalls. */
#ifndef TG_CONTEXT_H
#define TG_CONTEXT_H
#include "base/file_map.h"
#include "uop/pass.h"
#include "plan/target.h"
#include "tg.h"

/* Memory of a device. Its contents have versions: a BUFFER node names a uid and a version, so a node never
 * changes its value. Every store makes the next version. The contents of an older version are kept in
 * another buffer if something that can still be asked for needs them (engine/realize.c). */
typedef struct Buffer {
  DType dtype;
  int64_t nelem, uid;
  /* number of memories that the context made before; unlike uids, it tells which of two memories is older */
  uint64_t made;
  int device;       /* number of the device in the context */
  uint32_t version; /* of its current contents */
  /* The STORE that waits to make the next version; NULL: none. The memory is then in ctx->waiting, at
   * waits_at. */
  UOp *store;
  size_t waits_at;
  /* The handles that are views of the memory. They all see every store, whichever of them it is made
   * through. */
  TgTensor *places;
  /* a set of bits (uid % 64): the memories below the expressions whose value this memory holds .. */
  uint64_t origin;
  /* .. and whether one of these is a constant: whatever needs these expressions needs this memory */
  bool constant;
  /* uid + 1 of the buffer that last kept an older version; it is reused once nothing needs that version */
  int64_t copy;
  /* a tensor in it requires a gradient, so it is never forgotten how a value is computed from it */
  bool leaf;
  bool forgotten;                /* it is not known any more how it was computed */
  int generation;                /* number of realized values on the longest remembered path to it */
  bool needed;                   /* scratch of a graph walk */
  bool changes;                  /* scratch: it is about to be stored to */
  void *data;                    /* NULL until first needed; the engine allocates a kernel's output */
  bool borrowed, marked, filled; /* borrowed: data is the user's (CPU, INTERP); filled: holds a value */
  void (*destroy)(void *data, void *user); /* for borrowed data */
  void *user;
  FileMap file;   /* for tg_from_file: data points into it, or is a copy if the device has its own memory */
  bool read_only; /* no store may be made to it */
  /* Its size is symbolic: elements that were never stored may be read, and must be the same each time. */
  bool partly;
  /* ctx->bound + 1 when a value of variables was computed here. The value is valid while the variables
   * keep these values. 0: there is no such value. */
  uint64_t bound_at;
  /* Number of words drawn with the key that it holds (random.c); 0: it holds no key. A replay of a graph
   * calls draw_again. */
  int64_t draws;
  bool given;  /* it is an input of the function that is being captured */
  int fixed;   /* number of captured functions that read an older expression from its current contents */
  bool renews; /* something was computed from this version, so the next capture makes a new one */
  int pins;    /* number of captured functions that use it: it stays even if no tensor reaches it */
  /* uid + 1 of the buffer whose memory data points into (a view with another dtype); 0: its own memory */
  int64_t owner;
} Buffer;

enum { MOST_BELOW = 4 };

struct TgTensor {
  TgContext *ctx;
  UOp *uop; /* has a shape */
  /* set by tg_backward: the gradient, and the way back from it; either may be freed first */
  TgTensor *grad, *grad_of;
  TgTensor *next, **link; /* in the list of its scope or the context's list of kept tensors */
  /* the memory that uop is a view of; NULL: uop is an expression, whose value no store changes */
  Buffer *memory;
  TgTensor *next_place, **place_link; /* in memory->places, or in ctx->expressions if it is an expression */
  /* The uids of the memories in the graph of an expression, as far as they are known (versions.c). nbelow: -1:
   * not looked at; more than MOST_BELOW: there are more. */
  int64_t below[MOST_BELOW];
  int nbelow;
  /* scratch: what uop becomes if this succeeds for all handles of a list */
  UOp *then;
  /* A contiguous copy of the elements, for tg_map of a strided view; and the way back from it. */
  TgTensor *mapped, *mapped_of;
  int64_t *sizes; /* results of tg_shape and tg_max_shape if sizes are symbolic */
  /* For memory on several devices: a hidden handle for each part, which is a place; and the way back from
   * it. */
  TgTensor **part, *whole;
  int nparts;
  /* A view that is not a view of each part: `part` has the parts of the memory that it is computed from. */
  bool indirect;
  bool requires_grad, kept, pending; /* pending: it is in ctx->pending */
  bool captured;      /* captured functions read it: the memory that it is, or the value of its expression */
  uint32_t path;      /* the scopes of names in which it was made (origin.c); 0: none */
  const char *origin; /* the call that made it, "relu (net.c:12)"; NULL: not known */
};

typedef struct TgScope {
  TgTensor *tensors;
} TgScope;

/* Where operations come from (origin.c). Handles know it for their nodes. If somebody asks for it, it is
 * also kept for nodes whose handles are gone. Texts are numbered from 1. */
enum { MOST_OUTER = 8 };

typedef struct Origins {
  const char *outer[MOST_OUTER]; /* the outer calls, one of whose arguments is a call that began later .. */
  int nouter;                    /* .. if err.place is such a call */
  bool asked, told;              /* told: launches are being reported (tg_schedule) */
  Vec(char *) text;              /* by number - 1 */
  Map number;                    /* hash of a text -> its number */
  Map of_node;                   /* node -> number of its path << 32 | number of its place */
  Vec(uint32_t) path;            /* the open scopes of names, outermost first: numbers of whole paths */
} Origins;

/* What is known of a node; both 0: nothing. */
typedef struct Origin {
  uint32_t path, place;
} Origin;

typedef struct GradientHook {
  TgGradientFn fn;
  void *user;
  size_t own; /* bytes of user, if it is the context's own copy; 0: it is the caller's */
} GradientHook;

/* declared in runtime/ */
struct Device;
struct Bundle;

enum { MOST_DEVICES = 16 };

/* The random draws of a device (random.c). counter: words drawn so far. order: 1 + the number of devices
 * that drew before it since the seed was set; 0: it has not drawn. */
typedef struct Draws {
  uint64_t counter;
  int order;
} Draws;

/* The names of several devices as one text, which lives as long as the context. */
typedef struct DeviceList {
  uint64_t devices;
  char *names;
} DeviceList;

/* What the front end knows of a device. A device is a number in its context. */
typedef struct DeviceFacts {
  const char *name;     /* "CPU", "CPU:1" */
  const char *describe; /* one line for people */
  bool files_only;      /* its memory is files, and it computes nothing */
  bool own_memory;      /* the host cannot read and write its memory in place */
  size_t align;         /* bytes: whatever its kernels read must begin at a multiple */
  const Target *target; /* the machine that it plans for */
  int machine;          /* devices with the same number are in one machine */
} DeviceFacts;

/* What the front end calls in the devices and the engine; engine/open.c fills it in. A failure is
 * recorded, except that of copy_in. */
typedef struct EngineCalls {
  /* Returns the number of the device with this name, which is opened if necessary. NULL: the default
   * device. Returns -1 if an error was recorded. */
  int (*find)(TgContext *ctx, const char *op, const char *name);
  DeviceFacts (*facts)(const TgContext *ctx, int device);
  /* Allocates memory of a device, within its limit. Cached memory is freed for it if necessary. */
  TgStatus (*alloc)(TgContext *ctx, int device, size_t nbytes, void **out);
  TgStatus (*copy_in)(TgContext *ctx, int device, void *dst, const void *src, size_t nbytes);
  void (*free)(TgContext *ctx, int device, void *p, size_t nbytes);
  TgStatus (*realize)(TgContext *ctx, TgTensor *const *t, size_t n);
  /* runs the stores that wait on these memories */
  TgStatus (*stores)(TgContext *ctx, Buffer *const *b, size_t n);
  /* Realizes t and reads its elements, row-major and in its dtype. */
  TgStatus (*read)(TgContext *ctx, TgTensor *t, void *out, size_t nbytes);
  /* Realizes t and returns where its elements are in the host's memory. NULL: an error was recorded. */
  const void *(*map)(TgContext *ctx, TgTensor *t);
  void (*cache_clear)(TgContext *ctx); /* forgets every schedule and program */
  /* Called when a scope ends: sweeps nodes and buffers that no tensor reaches, if there may be many. */
  TgStatus (*scope_ended)(TgContext *ctx);
  /* The part of an exchange that one device gets was written as copies, `steps` of them consecutive. way:
   * the algorithm ("ring"). */
  void (*exchanged)(TgContext *ctx, const UOp *exchange, const char *way, int steps, UOp *part);
  /* A sum over devices, of which `first` is the first device's part, belongs to the gradient of the
   * parameter called `of`. */
  void (*summed)(TgContext *ctx, const UOp *first, const char *of);
  /* A tensor that captured functions read is about to become another expression or other memory. */
  void (*captured_changes)(TgContext *ctx, const TgTensor *t);
  /* The capture is right as long as b keeps its current contents. */
  void (*captured_reads)(TgContext *ctx, Buffer *b);
  /* A tensor that was the expression `was` is now memory that holds its value. */
  void (*captured_computed)(TgContext *ctx, const TgTensor *t, const UOp *was);
  /* A value is about to wait as a store. Returns false if out of memory. */
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
  struct Inside *inside; /* engine/inside.c; NULL: nobody asks */
  /* 1 + the rank that alone reads a tensor, negative on the other ranks; 0: every rank reads */
  int reader;
  struct Comm *comm;            /* runtime/comm.h; NULL: nobody asked for it, or there are no other ranks */
  struct Profile *profile;      /* engine/profile.c; NULL: no profile is made */
  struct Exchanges *exchanges;  /* engine/exchanges.c; NULL: nobody asks */
  Vec(struct Device *) devices; /* by number */
  Draws draws[MOST_DEVICES];
  int default_device;           /* where memory is made, and where constants are computed */
  int draw_device;              /* where keys are drawn (random.c) */
  uint64_t draw_devices;        /* the devices that draw the same numbers; 0: only draw_device */
  Vec(DeviceList) device_lists; /* lists that were asked for by name */
  Vec(Buffer *) buffers;        /* by uid; NULL: freed */
  /* The uids of freed memories that no node names any more, to be used again. */
  Vec(int64_t) free_uids;
  uint64_t buffers_made;
  Vec(TgScope) scopes; /* scopes.at[0] is the outermost, made by tg_open */
  TgTensor *kept;
  TgTensor *expressions; /* handles that are not memory, of all scopes and kept ones */
  /* expression -> view of the BUFFER that holds its value; BUFFER -> BUFFER that holds its contents now. */
  Map realized;
  Map history;          /* BUFFER -> the expression that it was computed from, for gradients */
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
  uint64_t grad_switches; /* how often a tensor began or ceased to require a gradient */
  Origins origins;
  /* Losses and running statistics, which are computed with the next in-place update, before it. */
  Vec(TgTensor *) pending;
  /* store_count after the last collection: tg_scope_end collects again when it has doubled */
  size_t swept_nodes;
  uint64_t swept_bytes;
  struct Capture *capture; /* jit.c: the capture that is being made */
  TgJit *jits;             /* all captured functions */
  Map *older;              /* older.c: what is known of nodes while a function is called for the first time */
  /* during a capture: memories made from this number on belong to the captured function */
  uint64_t capture_first;
  /* A set of bits (uid % 64): the memories that expressions are made of which got a handle or were
   * computed since the last capture. */
  uint64_t read_below;
  Vec(GradientHook) hooks; /* by arg.i of CUSTOM_GRADIENT */
  struct DimTable *dims;   /* variables, and the sizes made of them */
  Vec(struct TgVariable *) variables;
  uint64_t bound;                                  /* how often a variable was bound to another value */
  void *engine;                                    /* the engine's caches */
  void (*seen)(const TgKernelText *k, void *user); /* tg_watch_kernels */
  void *seen_user;
  void (*launched)(const TgLaunch *l, void *user); /* tg_watch_launches */
  void *launched_user;
  TgLogFn log; /* NULL: stderr */
  void *log_user;
  void (*progressed)(const TgProgress *p, void *user); /* tg_watch_progress */
  void *progressed_user;
  TgProgress progress; /* the last progress that was reported, and when */
  double progress_s;
  Str bundle_text;        /* result of the last tg_bundle */
  Str c_text[4];          /* result of the last tg_jit_to_c: header, source, weights, plans */
  struct Bundle *bundle;  /* compiled kernels that were given for its devices; or NULL */
  _Atomic bool cancelled; /* set by tg_cancel until it is reported */
};

/* the front end, for the engine and itself */
/* Returns an empty context without a device. NULL if out of memory. */
TgContext *context_new(const TgOs *os, TgMem mem);
void context_free(TgContext *ctx); /* frees what no device knows of, after handles and buffers */
/* Prints a message of the library to the log, or to stderr. */
__attribute__((format(printf, 2, 3))) void context_say(TgContext *ctx, const char *form, ...);
/* Reports to tg_watch_progress that `done` of `all` kernels of this phase are done. */
void context_progress(TgContext *ctx, const char *phase, int done, int all);
/* Returns TG_ERR_CANCELLED, which is recorded, if tg_cancel was called, otherwise TG_OK. */
TgStatus context_cancelled(TgContext *ctx);
/* has u's value; owned by the innermost scope; NULL if u is NULL */
TgTensor *tensor_new(TgContext *ctx, UOp *u);
TgTensor *tensor_view(TgTensor *x, UOp *u); /* u: movements of x. The result is a place if x is one */
/* Returns r, which a function made of x. If r is x itself, returns a new handle of x's value, because the
 * caller may release or store to one of them and keep the other. */
TgTensor *tensor_result(TgTensor *r, const TgTensor *x);
TgTensor *tensor_cast(TgTensor *x, TgDType to);  /* x itself if it has this dtype */
TgTensor *tensor_memory(TgContext *ctx, UOp *u); /* u: memory made for it. The result is a place */
int tensor_device(const TgTensor *t); /* place.c: number of its device; for constants: the default device */
/* memory.c */
/* Notify captured functions: tensor_changes before t gets another value, tensor_computed when t has become
 * memory that holds the value of `was`. */
void tensor_changes(TgTensor *t);
void tensor_computed(TgTensor *t, const UOp *was);
void tensor_set(TgTensor *t, UOp *u); /* sets t->uop; t becomes a place if u is a view of memory */
void places_unlink(TgTensor *t);
/* Puts t, which is in no list of places, into the list of b, or into the expressions if b is NULL. */
void places_link(TgTensor *t, Buffer *b);
/* Makes a Buffer, and returns its BUFFER reshaped to shape. For a symbolic shape the memory has the
 * largest size, and the result is a part of it. */
UOp *buffer_node(TgContext *ctx, int device, DType dtype, int64_t nelem, const Ints *shape);
Buffer *buffer_get(TgContext *ctx, const UOp *buffer); /* of a BUFFER node; NULL: it was freed */
void buffer_free(TgContext *ctx,
                 int64_t uid); /* memory, destructor and record; its uid stays taken until a sweep */
UOp *memory_node(TgContext *ctx, const Buffer *b); /* the BUFFER of its current contents */
UOp *memory_next(TgContext *ctx, Buffer *b);       /* .. and of its contents after one more store */
/* the BUFFER that u is a view of; NULL: u is an expression */
UOp *view_bottom(UOp *u);
/* Applies u's movements above `at`, a node of its chain, to base. An AFTER among them is dropped. */
UOp *view_on(TgContext *ctx, UOp *u, const UOp *at, UOp *base);
/* Returns the BUFFER of which u is one contiguous piece, from element *start on. NULL: there is none. */
UOp *piece_of(UOp *u, int64_t *start);
/* Whether each element of u, a view of memory, is a place of its own. */
bool is_place(const UOp *u);
/* Makes t a place that can be stored to, with its value if keep_value is set. Returns false if an error
 * was recorded. */
bool place_ready(const char *op, TgTensor *t, bool keep_value);
/* Stores value to view, a view of place t's memory. The store waits. All places of the memory see it. */
bool store_to(TgTensor *t, UOp *view, UOp *value);
bool memory_is_trained(const Buffer *b); /* a tensor in it requires a gradient */
/* For t on several devices: makes its node name the current contents of its memories, without stores that
 * have run. Returns false if an error was recorded. */
bool whole_renewed(TgTensor *t);
/* runs the store that waits, if any; false: an error was recorded */
bool memory_flush(TgContext *ctx, Buffer *b);
/* Called before a store runs: makes what the places of the memory become. Returns false if an error was
 * recorded. */
bool memory_prepare(TgContext *ctx, Buffer *b);
/* Called after the store has run, if no handle was made meanwhile: starts the next version. */
void memory_waits_no_more(TgContext *ctx, Buffer *b); /* drops its store */
void memory_written(TgContext *ctx, Buffer *b);
/* Notes that the value of u, an expression or a BUFFER, is at place. Returns false if out of memory. */
bool value_known(TgContext *ctx, UOp *u, UOp *place);
/* Gives all memories with places a new version with the same contents, so that nothing is known as
 * computed from the new versions. */
bool memories_renewed(TgContext *ctx);
/* Returns the device's place in the order of the devices that draw: the place that it has, or would get
 * now. */
int draw_order(const TgContext *ctx, int device);
uint32_t draw_number(int order); /* number in the keys of the device with this place, counted from 1 */
/* Draws the key of the context's next draw, as if the call that made the buffer were made again. */
TgStatus draw_again(TgContext *ctx, Buffer *key);
/* Whether a function is being captured, in which case asking for a value is recorded as an error. */
bool capture_refuses(TgContext *ctx, const char *op);

/* origin.c */
void origins_free(TgContext *ctx);
void origin_of_handle(TgTensor *t); /* t was just made: notes the scopes of names that it is in */
/* Returns what is known of node u. t: a handle of u, or NULL. */
Origin origin_find(TgContext *ctx, const TgTensor *t, const UOp *u);
/* Notes that u is part of the gradient of the operation in `of`, if somebody asks for origins. */
void origin_of_gradient(TgContext *ctx, const UOp *u, Origin of);
void origin_put(TgContext *ctx, Str *to, Origin o); /* writes "conv1/relu (net.c:12)" */
/* the same text, which lives as long as the context; NULL: none */
const char *origin_kept(TgContext *ctx, const TgTensor *t);
int variable_number(const struct TgVariable *v);
struct TgVariable *variable_at(TgContext *ctx, int number); /* NULL: there is no such variable */
#endif
