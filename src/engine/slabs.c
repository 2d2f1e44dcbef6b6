/* slabs.c: memory for what plans need between their kernels. In: a plan that is about to run. Out: its
 * slabs. They are taken from a pool of the context and returned to it after the run. So plans that do not
 * run at the same time share memory, and many shapes take no more than the largest of them. For each
 * device the pool keeps at most twice the most bytes that were in use at once, or what tg_pool_limit says.
 * The slab that was used longest ago is freed first. */
#include "engine/engine.h"

struct Slab {
  Device *dev;
  void *at;
  size_t nbytes;
  uint64_t user; /* number of the plan that used it last */
  uint64_t when; /* number of slabs returned so far; the least is freed first */
};

static SlabPool *pool_of(TgContext *ctx) { return engine_slabs(ctx); }

static Slab taken_from(SlabPool *pool, size_t i) {
  Slab s = pool->unused.at[i];
  pool->unused.at[i] = pool->unused.at[--pool->unused.len];
  s.dev->slabs_unused -= s.nbytes;
  return s;
}

static void slab_free(SlabPool *pool, size_t i) {
  Slab s = taken_from(pool, i);
  s.dev->backend->free(s.dev, s.at, s.nbytes);
}

/* Finds the slab that this plan had last, because the arguments of a replay then stay the same; otherwise
 * the smallest slab that is large enough and not much too large. -1: there is none. */
static int64_t slab_find(const SlabPool *pool, const Device *d, const void *had, size_t nbytes) {
  enum { MUCH = 4 };

  int64_t best = -1;
  for (size_t i = 0; i < pool->unused.len; i++) {
    const Slab *s = &pool->unused.at[i];
    if (s->dev != d || s->nbytes < nbytes) continue;
    if (s->at == had) return (int64_t)i;
    if (s->nbytes / MUCH <= nbytes && (best < 0 || s->nbytes < pool->unused.at[best].nbytes))
      best = (int64_t)i;
  }
  return best;
}

/* Whether slab i may be read where nothing was written. This is so for a plan that begins with zeros. It
 * is also so for the result of a kernel with variable sizes, which has memory for the largest sizes; the
 * rest is not used, but as zeros it is the same each time. */
static bool begins_as_zeros(const Plan *p, int i) {
  bool varies = false;
  for (int t = 0; t < p->sched.ntemp && !p->cleared && !varies; t++)
    varies = p->slab_of[t] == i && p->prog[p->sched.temp[t].first]->nvar > 0;
  return p->cleared || varies;
}

static TgStatus slab_take(TgContext *ctx, Plan *p, int i) {
  SlabPool *pool = pool_of(ctx);
  Device *d = p->dev;
  int64_t found = slab_find(pool, d, p->slab[i], p->slab_bytes[i]);
  Slab s = {.dev = d, .nbytes = p->slab_bytes[i]};
  p->slab[i] = NULL;
  if (found >= 0)
    s = taken_from(pool, (size_t)found);
  else {
    TgStatus st = device_alloc(ctx, d->index, s.nbytes, &s.at);
    if (st) return st;
  }
  p->slab[i] = s.at;
  p->slab_room[i] = s.nbytes;
  d->slabs_used += s.nbytes;
  d->slabs_most = TG_MAX(d->slabs_most, d->slabs_used);
  bool clears = s.user != p->number && begins_as_zeros(p, i);
  return clears ? d->backend->clear(d, s.at, s.nbytes) : TG_OK;
}

TgStatus slabs_take(TgContext *ctx, Plan *p) {
  SlabPool *pool = pool_of(ctx);
  TgStatus st = TG_OK;
  if (p->running) return TG_OK;
  p->running = true;
  /* Room to return the slabs is reserved now, because slabs_return cannot fail. */
  pool->used += (size_t)p->nslab;
  if (!vec_reserve(&ctx->mem, &pool->unused, pool->unused.len + pool->used))
    st = error_no_memory(&ctx->err, "realize");
  for (int i = 0; i < p->nslab; i++) {
    p->slab_room[i] = 0; /* not taken yet */
    if (!st && p->slab_bytes[i]) st = slab_take(ctx, p, i);
  }
  return st;
}

static void pool_trimmed(SlabPool *pool, Device *d) {
  uint64_t most = d->pool_most ? d->pool_most : 2 * d->slabs_most;
  while (d->slabs_unused > most) {
    int64_t oldest = -1;
    for (size_t i = 0; i < pool->unused.len; i++)
      if (pool->unused.at[i].dev == d &&
          (oldest < 0 || pool->unused.at[i].when < pool->unused.at[oldest].when))
        oldest = (int64_t)i;
    if (NEVER(oldest < 0)) return;
    slab_free(pool, (size_t)oldest);
  }
}

void slabs_return(TgContext *ctx, Plan *p) {
  SlabPool *pool = pool_of(ctx);
  if (!p->running) return;
  p->running = false;
  pool->used -= (size_t)p->nslab;
  for (int i = 0; i < p->nslab; i++) {
    if (!p->slab_room[i]) continue;
    Slab s = {p->dev, p->slab[i], p->slab_room[i], p->number, ++pool->returned};
    pool->unused.at[pool->unused.len++] = s;
    p->dev->slabs_used -= s.nbytes;
    p->dev->slabs_unused += s.nbytes;
  }
  pool_trimmed(pool, p->dev);
}

bool slabs_given_back(TgContext *ctx, const Device *d) {
  SlabPool *pool = pool_of(ctx);
  bool any = false;
  for (size_t i = pool ? pool->unused.len : 0; i-- > 0;)
    if (!d || pool->unused.at[i].dev == d) {
      slab_free(pool, i);
      any = true;
    }
  return any;
}

TgStatus tg_pool_limit(TgContext *ctx, const char *device, uint64_t nbytes) {
  if (!ctx) return TG_ERR_VALUE;
  int index = device_find(ctx, "pool_limit", device);
  if (index < 0) return ctx->err.status;
  device_at(ctx, index)->pool_most = nbytes;
  pool_trimmed(pool_of(ctx), device_at(ctx, index));
  return TG_OK;
}
