/* options.c: the options of schedule and codegen, made in one place, so that tg_realize, tg_opt and
 * renderers plan alike. */
#include "engine/engine.h"
#include "uop/matrix.h"

/* The device's own machine, or for text in another language the machine defined for that language. */
static const Target *target_of(const Device *dev, const Renderer *ren) {
  bool own = dev && (!ren || ren == dev->backend->renderer);
  return own ? &dev->target : ren ? ren->target : &target_planned;
}

SchedOptions sched_options(TgContext *ctx, const Device *dev, const Renderer *ren) {
  const Target *t = target_of(dev, ren);
  bool invariant = ctx->env.invariant && t->warp <= 1; /* codegen can keep this order only on CPUs */
  return (SchedOptions){.most_stages = ctx->env.fuse ? 0 : 1,
                        .invariant = invariant,
                        .target = t,
                        .align = ren ? ren->vec_align : 1,
                        .passes = &ctx->passes,
                        .skip = invariant && !*ctx->env.skip ? "partial sums" : ctx->env.skip};
}

/* The matrix units that would drop bits of an f32, as a set of bits. */
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
