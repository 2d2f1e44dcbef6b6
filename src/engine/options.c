/* options.c: what schedule and codegen are told, made in one place: tg_realize, tg_opt and what renders
 * kernels plan alike. */
#include "engine/engine.h"

/* The cost model's parallelism. That of a GPU is its own, whatever processor stands beside it. */
enum { GPU_PARALLEL = 8, LOCAL_BYTES_INTERP = 512 << 10 };

SchedOptions sched_options(TgContext *ctx, const Renderer *ren) {
  bool gpu = ren && ren->has_local;
  return (SchedOptions){.fuse = ctx->env.fuse,
                        .ncores = gpu ? GPU_PARALLEL : ctx->dev.ncores,
                        .local_bytes = ren ? ren->local_bytes : LOCAL_BYTES_INTERP,
                        .passes = &ctx->passes};
}

CodegenOptions codegen_options(TgContext *ctx, const char *opts) {
  const char *set = *ctx->env.opts ? ctx->env.opts : NULL;
  return (CodegenOptions){
      .noopt = ctx->env.noopt, .ncores = ctx->dev.ncores, .opts = opts ? opts : set, .passes = &ctx->passes};
}
