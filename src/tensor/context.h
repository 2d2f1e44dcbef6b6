/* context.h: the state behind TgContext and TgTensor. Front end and engine share it; nobody else sees it. */
#ifndef TG_CONTEXT_H
#define TG_CONTEXT_H
#include "runtime/device.h"
#include "runtime/disk.h"
#include "uop/pass.h"
#include "tg.h"

typedef struct Buffer {                    /* memory of the device; found by uid from a BUFFER node's arg.param.slot */
  DType dtype;
  int64_t nelem;
  void *data;                              /* NULL until first needed; a kernel output is allocated by the engine */
  bool borrowed, marked, filled;           /* borrowed: data is the user's (CPU, INTERP); filled: holds a value */
  void (*destroy)(void *data, void *user); /* for borrowed data */
  void *user;
  FileMap file;                            /* of tg_from_file: data points into it, or is a copy on a device with memory of its own */
  bool read_only;                          /* no store may go here */
  uint64_t bound_at;                       /* ctx->bound + 1 when a value of symbolic shape was computed here; 0: no such value */
  int64_t draws;                           /* words drawn with the key that it holds (random.c); 0: no key. What replays a graph calls draw_again */
  int pins;                                /* captured functions that use it: it stays when no tensor reaches it */
  int64_t owner;                           /* uid + 1 of the buffer whose memory data points into (a view of other dtype); 0: its own */
} Buffer;

struct TgTensor {
  TgContext *ctx;
  UOp *uop;                                /* has a shape; replaced by tg_assign */
  TgTensor *grad, *grad_of;                /* set by tg_backward: the gradient, and back from it; either may end first */
  TgTensor *next, **link;                  /* in its scope's list, or in the context's kept list */
  int64_t *sizes;                          /* what tg_shape and tg_max_shape answered, where sizes are symbolic */
  bool requires_grad, kept, pending;       /* pending: stands in ctx->pending */
};
typedef struct TgScope { TgTensor *tensors; } TgScope;

typedef struct GradientHook { TgGradientFn fn; void *user; } GradientHook;

struct TgContext {
  TgMem mem;
  const TgOs *os;
  TgEnv env;
  TgError err;
  UOpStore *store;
  Device dev;
  bool dev_open;
  Vec(Buffer *) buffers;                   /* by uid; NULL where freed */
  Vec(TgScope) scopes;                     /* scopes.at[0] is the outermost, made by tg_open */
  TgTensor *kept;
  Map realized;                            /* UOp* -> BUFFER-based UOp* that holds its value (engine) */
  Str info_text;                           /* the last answer of tg_info */
  Str text, describe;                      /* the last answers of tg_to_text and tg_describe */
  Str opt_text;                            /* the result of the last tg_opt */
  PassEnv passes;                          /* TG_TRACE, TG_DUMP, TG_RULE_LIMIT and the counts of all passes */
  TgCounters counters;
  uint64_t rng_seed, rng_counter;
  bool training;
  Vec(TgTensor *) pending;                 /* losses and running statistics: computed with the next in-place update, before it */
  size_t swept_nodes;                      /* store_count after the last collect: tg_scope_end collects when it has doubled */
  uint64_t swept_bytes;
  struct Capture *capture;                 /* jit.c: what is being captured */
  TgJit *jits;                             /* all that live */
  uint64_t plans_dropped;                  /* how often the plans were forgotten: captures made before are void */
  Vec(GradientHook) hooks;                 /* by arg.i of CUSTOM_GRADIENT */
  struct DimTable *dims;                   /* variables and the sizes made of them */
  Vec(struct TgVariable *) variables;
  uint64_t bound;                          /* how often a variable was bound to another value */
  void *engine;                            /* caches (engine) */
  void (*seen)(const TgKernelText *k, void *user);   /* tg_watch_kernels */
  void *seen_user;
};

/* front end, for the engine and itself */
TgContext *context_open(const TgOpenOptions *options, const TgOs *os, TgMem mem);   /* tg_open with a table and counters of the caller's */
TgTensor *tensor_new(TgContext *ctx, UOp *u);              /* owned by the innermost scope; NULL if u is NULL */
UOp *buffer_node(TgContext *ctx, DType dtype, int64_t nelem, const Ints *shape);   /* new Buffer; BUFFER reshaped to shape. Symbolic: the largest, cut */
Buffer *buffer_get(TgContext *ctx, const UOp *buffer);     /* of a BUFFER node; NULL if freed */
void buffer_free(TgContext *ctx, int64_t uid);             /* memory, destructor and record; the uid is not used again */
UOp *uop_base(UOp *u);                                     /* the BUFFER under movement ops and AFTER, else NULL */
TgStatus values_unbind(TgContext *ctx, bool before);        /* around a change of variables: runs stores that wait and speak of variables; then forgets values that do */
TgStatus draw_again(TgContext *ctx, Buffer *key);          /* the key of the context's next draw, as if the call that made the buffer were made again */
bool place_ready(TgTensor *t, bool keep_value);            /* t becomes a place in a buffer, of its value if that is kept; false: recorded */
/* After stores that no graph tells of: as after those of a graph. */
TgStatus memory_stored(TgContext *ctx, UOp *const *buffers, size_t n);
void capture_stored(TgContext *ctx, UOp *const *buffers, size_t n);      /* jit.c */
bool capture_refuses(TgContext *ctx, const char *op);      /* a value is asked for while a function is captured: recorded */
/* engine, for the front end */
TgStatus engine_open(TgContext *ctx);                      /* opens the device named by env.dev, or the best present */
void engine_close(TgContext *ctx);
void engine_cache_clear(TgContext *ctx);                   /* forgets every schedule and program */
TgStatus engine_realize(TgContext *ctx, TgTensor *const *t, size_t n);
TgStatus engine_read(TgContext *ctx, TgTensor *t, void *out, size_t nbytes);       /* realizes, then row-major elements of t's dtype */
const void *engine_map(TgContext *ctx, TgTensor *t);       /* realizes; where t's elements are in the host's memory; NULL: recorded */
TgStatus engine_collect(TgContext *ctx);                   /* sweeps nodes and buffers that no tensor reaches */
#endif
