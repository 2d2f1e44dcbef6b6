/* prepacked.c: copies that a captured function keeps. In: its steps, and which memories no step stores to.
 * Out: for each kernel that copies such memories for itself (codegen/prepack.c), a program that takes the
 * copies as arguments, a program that makes them, and memory for them. The copies are made before the
 * first replay, and again after somebody assigned to a memory that they are made of. */
#include "engine/jit.h"
#include <string.h>

/* State of a function: the memories that a replay reads, and those that it changes itself. */
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

/* Whether only tg_assign, which makes a new version, changes the contents of b. The owner of borrowed
 * memory, or of a file that can be written, may change it at any time. */
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

static size_t packed_bytes(const PackedCopy *c) { return (size_t)c->nelem * dtype_size(c->dtype); }

Prepacked *prepacked_of(Prepacked *p) { return p->same ? p->same : p; }

static void prepacked_end(TgContext *ctx, const Plan *plan, Prepacked *p) {
  Device *d = plan->dev;
  for (int i = 0; p->run && !p->same && i < p->run->packed.n; i++) {
    const PackedCopy *c = &p->run->packed.copy[i];
    if (p->data[i]) d->backend->free(d, p->data[i], packed_bytes(c));
  }
  program_left(ctx, p->run), program_left(ctx, p->pack);
  mem_free(&ctx->mem, p->version);
  *p = (Prepacked){0};
}

void prepacked_free(TgContext *ctx, const Plan *plan, Prepacked *each) {
  for (int k = 0; each && k < plan->sched.nkernel; k++)
    prepacked_end(ctx, plan, &each[k]);
  mem_free(&ctx->mem, each);
}

/* ---- programs */
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
  for (int k = 0; each && k < plan->sched.nkernel; k++)
    any |= each[k].run != NULL;
  if (any)
    s->prepacked = each;
  else
    mem_free(&ctx->mem, each);
  if (st == TG_ERR_CANCELLED) return st;
  ctx->err = had;
  return TG_OK;
}

/* A kernel with copies to keep. */
typedef struct Packer {
  Step *s;
  int k;
  Prepacked *p;
} Packer;

typedef Vec(Packer) PackerVec;

static bool packers_listed(TgJit *j, PackerVec *out) {
  for (size_t i = 0; i < j->c.steps.len; i++) {
    Step *s = &j->c.steps.at[i];
    for (int k = 0; s->prepacked && k < s->plan->sched.nkernel; k++) {
      Packer one = {s, k, &s->prepacked[k]};
      if (one.p->run && !vec_push(&j->ctx->mem, out, one)) return false;
    }
  }
  return true;
}

static void packer_end(TgJit *j, const Packer *a) { prepacked_end(j->ctx, a->s->plan, a->p); }

/* Whether two kernels make the same copies of the same memories with the same layout. */
static bool same_copies(const Packer *a, const Packer *b) {
  const SchedKernel *x = &a->s->plan->sched.kernel[a->k], *y = &b->s->plan->sched.kernel[b->k];
  uint64_t mine = a->p->reads, other = b->p->reads;
  bool same = a->p->pack == b->p->pack;
  for (; same && mine; mine &= mine - 1, other &= other - 1) {
    int i = __builtin_ctzll(mine), j = __builtin_ctzll(other);
    const BufferPart *p = &a->s->buf[x->arg[i]], *q = &b->s->buf[y->arg[j]];
    same = p->buffer == q->buffer && p->offset + (size_t)x->offset[i] == q->offset + (size_t)y->offset[j];
  }
  return same;
}

static void same_found(const PackerVec *all) {
  for (size_t i = 0; i < all->len; i++)
    for (size_t k = 0; k < i && all->at[i].p->run && !all->at[i].p->same; k++)
      if (all->at[k].p->run && !all->at[k].p->same && same_copies(&all->at[k], &all->at[i]))
        all->at[i].p->same = all->at[k].p;
}

/* ---- copies that replace what they are made of: nobody reads the source any more, and it was not much
 * smaller */
static bool bytes_add(Map *m, const Buffer *b, uint64_t nbytes) {
  uint64_t v = 0;
  map_get(m, (uint64_t)(uintptr_t)b, &v);
  return map_put(m, (uint64_t)(uintptr_t)b, v + nbytes);
}

static size_t buffer_bytes(const Buffer *b) { return (size_t)b->nelem * dtype_size(b->dtype); }

/* Notes in `read` the memories that are still read directly. */
static bool readers_counted(const TgJit *j, Map *read) {
  bool ok = true;
  for (size_t i = 0; ok && i < j->c.steps.len; i++) {
    const Step *s = &j->c.steps.at[i];
    if (!s->plan) ok = bytes_add(read, s->from, 1);
    for (int k = 0; ok && s->plan && k < s->plan->sched.nkernel; k++) {
      const Prepacked *p = s->prepacked && s->prepacked[k].run ? &s->prepacked[k] : NULL;
      const SchedKernel *sk = &s->plan->sched.kernel[k];
      for (int a = 0; ok && a < sk->narg; a++) {
        bool packed = p && a < 64 && (p->stays & ~p->run->packed.reads) >> a & 1;
        if (!packed && argument(s, sk, a)) ok = bytes_add(read, argument(s, sk, a), 1);
      }
    }
  }
  return ok;
}

/* Adds to `bytes` the size of a kernel's copies, divided among their sources in proportion to the sizes of
 * these. */
static bool copies_counted(const Packer *a, Map *bytes) {
  const SchedKernel *sk = &a->s->plan->sched.kernel[a->k];
  uint64_t reads = a->p->reads;
  double sources = 0, copies = 0;
  bool ok = true;
  for (int i = 0; i < a->p->run->packed.n; i++)
    copies += (double)packed_bytes(&a->p->run->packed.copy[i]);
  for (int i = 0; i < TG_MIN(sk->narg, 64); i++)
    if (reads >> i & 1) sources += (double)buffer_bytes(argument(a->s, sk, i));
  for (int i = 0; ok && i < TG_MIN(sk->narg, 64); i++) {
    const Buffer *b = argument(a->s, sk, i);
    if (reads >> i & 1) ok = bytes_add(bytes, b, (uint64_t)(copies * (double)buffer_bytes(b) / sources));
  }
  return ok;
}

static bool replaces(const Packer *a, const Map *read, const Map *bytes) {
  const SchedKernel *sk = &a->s->plan->sched.kernel[a->k];
  bool whole = true;
  if (!a->s->plan->dev->target.copies_replace) return true;
  for (int i = 0; i < TG_MIN(sk->narg, 64); i++) {
    if (!(a->p->reads >> i & 1)) continue;
    const Buffer *b = argument(a->s, sk, i);
    uint64_t v = 0;
    whole &= !map_get(read, (uint64_t)(uintptr_t)b, &v);
    map_get(bytes, (uint64_t)(uintptr_t)b, &v);
    whole &= prepack_fits((double)v, (double)buffer_bytes(b));
  }
  return whole;
}

/* Drops the copies of kernels that do not replace their sources. This is repeated until nothing changes,
 * because a kernel without copies reads its sources directly, and the copies of other kernels can then not
 * replace these. */
static bool replacing_kept(TgJit *j, const PackerVec *all) {
  bool ok = true;
  for (bool changed = true; ok && changed;) {
    Map read, bytes;
    map_init(&read, &j->ctx->mem), map_init(&bytes, &j->ctx->mem);
    ok = readers_counted(j, &read);
    for (size_t i = 0; ok && i < all->len; i++)
      if (all->at[i].p->run && !all->at[i].p->same) ok = copies_counted(&all->at[i], &bytes);
    changed = false;
    for (size_t i = 0; ok && i < all->len; i++) {
      const Packer *a = &all->at[i];
      if (!a->p->run || replaces(a, &read, &bytes)) continue;
      packer_end(j, a);
      changed = true;
    }
    map_free(&read), map_free(&bytes);
  }
  return ok;
}

/* ---- memory */
/* Allocates the copies of a kernel. They begin as zeros, because their padding is never written. */
static bool memory_made(TgContext *ctx, const Packer *a) {
  Prepacked *p = a->p;
  const Plan *plan = a->s->plan;
  Device *d = plan->dev;
  p->version = mem_alloc(&ctx->mem, (size_t)plan->sched.kernel[a->k].narg * sizeof *p->version);
  bool ok = p->version != NULL;
  for (int i = 0; ok && i < p->run->packed.n; i++) {
    size_t nbytes = packed_bytes(&p->run->packed.copy[i]);
    ok = !device_alloc(ctx, d->index, nbytes, &p->data[i]) && !d->backend->clear(d, p->data[i], nbytes);
  }
  return ok;
}

/* Decides which copies are kept, and allocates them. A kernel without memory for them makes its copies at
 * each launch, as before. */
static void copies_kept(TgJit *j) {
  TgError had = j->ctx->err;
  PackerVec all = {0};
  bool ok = packers_listed(j, &all);
  if (ok) same_found(&all);
  if (ok && all.len) ok = replacing_kept(j, &all);
  for (size_t i = 0; i < all.len; i++) {
    const Packer *a = &all.at[i];
    bool made = ok && a->p->run && (a->p->same ? a->p->same->run != NULL : memory_made(j->ctx, a));
    if (!made) packer_end(j, a);
  }
  for (size_t i = 0; !ok && i < j->c.steps.len; i++) {
    Step *s = &j->c.steps.at[i];
    if (s->plan) prepacked_free(j->ctx, s->plan, s->prepacked);
    s->prepacked = NULL;
  }
  vec_free(&j->ctx->mem, &all);
  j->ctx->err = had;
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
  if (!s) copies_kept(j);
  return s;
}

bool prepacked_stale(const PlanRun *run, int k) {
  const Prepacked *p = prepacked_of(&run->prepacked[k]);
  const SchedKernel *sk = &run->plan->sched.kernel[k];
  bool stale = !p->made;
  for (int a = 0; !stale && a < TG_MIN(sk->narg, 64); a++)
    if (p->stays >> a & 1) stale = run->buf[sk->arg[a]].buffer->version != p->version[a];
  return stale;
}

void prepacked_made(const PlanRun *run, int k) {
  Prepacked *p = prepacked_of(&run->prepacked[k]);
  const SchedKernel *sk = &run->plan->sched.kernel[k];
  p->made = true;
  for (int a = 0; a < TG_MIN(sk->narg, 64); a++)
    if (p->stays >> a & 1) p->version[a] = run->buf[sk->arg[a]].buffer->version;
}
