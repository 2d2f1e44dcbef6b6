/* options.c: what schedule and codegen are told, made in one place: tg_realize, tg_opt and what renders
 * kernels plan alike. */
#include "engine/engine.h"
#include "uop/matrix.h"

/* The device's own machine, or, for the text of another language, the one that is written down for that. */
static const Target *target_of(const Device *dev, const Renderer *ren) {
  bool own = dev && (!ren || ren == dev->backend->renderer);
  return own ? &dev->target : ren ? ren->target : &target_planned;
}

SchedOptions sched_options(TgContext *ctx, const Device *dev, const Renderer *ren) {
  const Target *t = target_of(dev, ren);
  bool invariant = ctx->env.invariant && t->warp <= 1; /* what codegen can do for CPUs */
  bool apart = invariant && !*ctx->env.skip;
  return (SchedOptions){.most_stages = ctx->env.fuse ? 0 : 1,
                        .invariant = invariant,
                        .target = t,
                        .align = ren ? ren->vec_align : 1,
                        .passes = &ctx->passes,
                        .skip = apart ? "nest reductions,nest again,partial sums" : ctx->env.skip};
}

/* The matrix units that would take bits from f32. */
static uint32_t matrices_narrowed(void) {
  uint32_t rows = 0;
  for (int i = 0; i < MATRIX_COUNT; i++)
    rows |= matrix_shapes[i].narrowed ? UINT32_C(1) << i : 0;
  return rows;
}

CodegenOptions codegen_options(TgContext *ctx, const Device *dev, const Renderer *ren, const char *opts) {
  const char *set = *ctx->env.opts ? ctx->env.opts : NULL;
  const Target *t = target_of(dev, ren);
  return (CodegenOptions){.noopt = ctx->env.noopt,
                          .invariant = ctx->env.invariant,
                          .target = t,
                          .ncores = t->cores,
                          .matrices_off = ctx->env.tf32 ? 0 : matrices_narrowed(),
                          .opts = opts ? opts : set,
                          .passes = &ctx->passes};
}
