/* engine.h: what the files of src/engine share: a schedule ready to run, and running it. */
#ifndef TG_ENGINE_H
#define TG_ENGINE_H
#include "codegen/codegen.h"
#include "schedule/schedule.h"
#include "tensor/context.h"

typedef struct CachedProgram { uint8_t *key; size_t nkey; uint64_t hash; Program *prog; char name[96]; int nvar, *var; struct CachedProgram *next; } CachedProgram;      /* var: numbers of the variables that a launch is given */
typedef struct Plan {                        /* a schedule ready to run */
  struct Plan *next;
  uint8_t *key;
  size_t nkey;
  Schedule sched;
  CachedProgram **prog;                      /* by kernel */
  int *slab_of;                              /* by temporary: slab that holds it, -1 for roots */
  int nslab;
  size_t *slab_bytes;
  void **slab;
} Plan;
/* buf: the buffers that the graph reads and writes, by the plan's numbers; temp: where results go, by temporary, NULL: in a slab of the plan. */
TgStatus plan_run(TgContext *ctx, Plan *p, Buffer *const *buf, Buffer *const *temp);
TgStatus buffer_ready(TgContext *ctx, Buffer *b);            /* has memory */
Buffer *value_of(TgContext *ctx, TgTensor *t, size_t nbytes);   /* realizes; the buffer that holds t's value; NULL: recorded */
bool in_memory(TgContext *ctx, UOp *u);                      /* a whole buffer, perhaps in another shape */
/* options.c: for kernels that `ren` renders (NULL: that INTERP runs); opts: instead of TG_OPTS, or NULL */
SchedOptions sched_options(TgContext *ctx, const Renderer *ren);
CodegenOptions codegen_options(TgContext *ctx, const char *opts);
/* jit.c: what is captured of a run */
void capture_step(TgContext *ctx, Plan *p, Buffer *const *buf, size_t nbuf, Buffer *const *temp);
#endif
