/* prepacked.c: copies that a captured function keeps. In: its steps, and which memories no step stores to.
 * Out: for each kernel that copies these for itself (codegen/prepack.c) a program that has the copies as
 * arguments, one that makes them, and memory for them. They are made before the first replay, and again when
 * somebody assigned to what they are made of. */
#include "engine/jit.h"
#include <string.h>

/* State of a function: the memories that a replay reads, and those of them that it changes itself. */
typedef struct State {
  Map read, changed;
} State;

static bool all_put(Map *m, Buffer *const *b, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (b[i] && !map_put_ptr(m, b[i], b[i])) return false;
  return true;
}

static bool state_of(TgJit *j, State *s) {
  map_init(&s->read, &j->ctx->mem), map_init(&s->changed, &j->ctx->mem);
  return all_put(&s->read, j->pinned.at, j->pinned.len) && all_put(&s->changed, j->draws.at, j->draws.len) &&
         all_put(&s->changed, j->c.stored.at, j->c.stored.len);
}

/* Memory whose contents change by tg_assign alone, which makes a new version. The owner of borrowed memory, or
 * of a file that can be written, may change it at any time. */
static bool is_constant(const State *s, Buffer *b) {
  return b && b->filled && (b->read_only || (!b->borrowed && !b->file.at)) && map_get_ptr(&s->read, b) &&
         !map_get_ptr(&s->changed, b);
}

static Buffer *argument(const Step *s, const SchedKernel *sk, int a) {
  return sk->arg[a] < TEMP_BASE ? s->buf[sk->arg[a]].buffer : NULL;
}

static uint64_t constants_of(const State *state, const Step *s, int k) {
  const SchedKernel *sk = &s->plan->sched.kernel[k];
  uint64_t stays = 0;
  for (int a = 0; a < TG_MIN(sk->narg, 64); a++)
    if (is_constant(state, argument(s, sk, a))) stays |= UINT64_C(1) << a;
  return stays;
}

static void prepacked_end(TgContext *ctx, const Plan *plan, Prepacked *p) {
  Device *d = plan->dev;
  for (int i = 0; p->run && i < p->run->npacked; i++)
    if (p->data[i]) d->backend->free(d, p->data[i], (size_t)p->run->packed[i]);
  program_left(ctx, p->run), program_left(ctx, p->pack);
  mem_free(&ctx->mem, p->version);
  *p = (Prepacked){0};
}

void prepacked_free(TgContext *ctx, const Plan *plan, Prepacked *each) {
  for (int k = 0; each && k < plan->sched.nkernel; k++)
    prepacked_end(ctx, plan, &each[k]);
  mem_free(&ctx->mem, each);
}

/* Padding of a copy is never written: it begins as zeros. */
static bool memory_made(TgContext *ctx, const Step *s, int k, Prepacked *p) {
  const Plan *plan = s->plan;
  Device *d = plan->dev;
  p->version = mem_alloc(&ctx->mem, (size_t)plan->sched.kernel[k].narg * sizeof *p->version);
  bool ok = p->version != NULL;
  for (int i = 0; ok && i < p->run->npacked; i++) {
    size_t nbytes = (size_t)p->run->packed[i];
    ok = !device_alloc(ctx, d->index, nbytes, &p->data[i]) && !d->backend->clear(d, p->data[i], nbytes);
  }
  return ok;
}

/* Without memory for it a kernel makes its copies at each launch, as before. */
static TgStatus step_prepacked(TgContext *ctx, const State *state, Step *s) {
  TgError had = ctx->err;
  Plan *plan = s->plan;
  const Renderer *ren = plan->dev->backend->renderer;
  if (plan->dev->remote || !ren || ren->has_grid) return TG_OK;
  Prepacked *each = mem_alloc(&ctx->mem, ((size_t)plan->sched.nkernel + 1) * sizeof *each);
  bool any = false;
  for (int k = 0; each && k < plan->sched.nkernel; k++)
    any |= (each[k].stays = constants_of(state, s, k)) != 0;
  TgStatus st = any ? programs_prepacked(ctx, plan, each) : TG_OK;
  any = false;
  for (int k = 0; each && k < plan->sched.nkernel; k++) {
    if (each[k].run && !memory_made(ctx, s, k, &each[k])) prepacked_end(ctx, plan, &each[k]);
    any |= each[k].run != NULL;
  }
  if (any)
    s->prepacked = each;
  else
    mem_free(&ctx->mem, each);
  if (st == TG_ERR_CANCELLED) return st;
  ctx->err = had;
  return TG_OK;
}

TgStatus jit_prepack(TgJit *j) {
  TgStatus s = TG_OK;
  bool asked = j->prepacks && !j->prepacked && !j->ctx->env.noopt;
  j->prepacked = true;
  if (!asked) return TG_OK;
  State state;
  bool known = state_of(j, &state);
  for (size_t i = 0; known && !s && i < j->c.steps.len; i++)
    if (j->c.steps.at[i].plan) s = step_prepacked(j->ctx, &state, &j->c.steps.at[i]);
  map_free(&state.read), map_free(&state.changed);
  return s;
}

bool prepacked_stale(const PlanRun *run, int k) {
  const Prepacked *p = &run->prepacked[k];
  const SchedKernel *sk = &run->plan->sched.kernel[k];
  bool stale = !p->made;
  for (int a = 0; !stale && a < TG_MIN(sk->narg, 64); a++)
    if (p->stays >> a & 1) stale = run->buf[sk->arg[a]].buffer->version != p->version[a];
  return stale;
}

void prepacked_made(const PlanRun *run, int k) {
  Prepacked *p = &run->prepacked[k];
  const SchedKernel *sk = &run->plan->sched.kernel[k];
  p->made = true;
  for (int a = 0; a < TG_MIN(sk->narg, 64); a++)
    if (p->stays >> a & 1) p->version[a] = run->buf[sk->arg[a]].buffer->version;
}
