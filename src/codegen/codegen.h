/* codegen.h: one kernel's graph -> a linear program. In: SINK of STOREs over RANGE, INDEX, REDUCE (schedule.h). Out: Linear (uop.h).
 * Stages, in order: copy to a fresh store, gates onto loads, decompositions, opts, expand, linearize. */
#ifndef TG_CODEGEN_H
#define TG_CODEGEN_H
#include "renderer/renderer.h"
#include "uop/pass.h"

typedef struct Kernel {                     /* a kernel while it is being lowered */
  UOpStore *st;
  TgMem *mem;
  TgError *err;
  const Renderer *ren;                      /* NULL: INTERP, which computes every op itself */
  UOp *sink;
  int64_t next_range;
  int nthread;
  Str opts;                                 /* the opts taken, as text */
  const struct CodegenOptions *opt;
  Arena *arena;                             /* where the linear program lives */
  Linear *linear;
} Kernel;
typedef struct CodegenOptions { bool noopt; int ncores; PassEnv *passes; } CodegenOptions;   /* passes: NULL, or what watches them */
extern const Pass codegen_passes[];
extern const size_t codegen_npass;
/* out->at lives in *arena. The name is made from the loop extents. */
TgStatus codegen_lower(TgMem *mem, UOp *ast, UOpStore *ast_store, const Renderer *ren, const CodegenOptions *opt, Arena *arena, UOpStore **st_out,
                       Linear *out, Str *opts_text, TgError *err);

/* shared inside codegen/ */
UOp *pm_decompose(Rewrite *rw, UOp *self);                   /* decompose.c; rw->ctx is the Kernel */
bool apply_opts(Kernel *k, const CodegenOptions *opt);       /* opts.c */
bool expand(Kernel *k);                                      /* expand.c: no UPCAST, VEC, UNROLL, GROUP range is left */
bool linearize(Kernel *k, Arena *arena, Linear *out);        /* linearize.c */
typedef Vec(int) CgInts;
#endif
