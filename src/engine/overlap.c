/* overlap.c: exchanges of a captured list behind its kernels. In: plans, and the copies that follow them,
 * between ranks or between devices that copy beside their launches. Out: the same copies, of which each goes
 * out when the kernel that made its bytes has run, in the order of these kernels; what comes in is awaited by
 * the first kernel that takes it: by the host, or, of such devices, by the device's queue. No bit depends on
 * it. Every rank knows all plans, so all number the copies alike. */
#include "engine/inside.h"
#include "engine/jit.h"
#include "runtime/comm.h"
#include "tensor/context.h"
#include <string.h>

/* plan, kernel: after which of the steps' plans, and of its kernels, the bytes are there; -1: before all */
typedef struct Leaving {
  const Step *copy;
  int plan, kernel, nth;
  Exchange e;
} Leaving;

/* done: what b's device waits for; NULL: p is awaited by the host */
typedef struct Moving {
  const Buffer *b;
  const void *p;
  bool out;
  Event *done;
} Moving;

typedef struct Owned {
  Device *d;
  Event *e;
} Owned;

struct Flight {
  TgContext *ctx;
  Buffer *const *stored; /* what the list stores to, and was there before */
  size_t nstored;
  Vec(Leaving) leaving; /* in the order in which they go */
  size_t gone;          /* of them */
  Vec(Moving) moving;   /* what may be on its way */
  Vec(Owned) events;
  Event *begun[MOST_DEVICES]; /* before the plans at hand, of each device that copies come to */
};

static Device *device_of(const TgContext *ctx, const Buffer *b) { return device_at(ctx, b->device); }

static bool in_place(const Device *d) { return !(d->backend->has & HAS_OWN_MEMORY); }

static size_t bytes_of(const Step *s) { return (size_t)s->to->nelem * dtype_size(s->to->dtype); }

/* Between two devices of this process, each with a queue of copies. */
static bool flies_beside(TgContext *ctx, const Step *s) {
  enum { WORD = 4 };

  Device *to = device_of(ctx, s->to), *from = device_of(ctx, s->from);
  const TgBackend *b = to->backend;
  bool both = to != from && b == from->backend && b->copy_beside && !to->of_rank && !from->of_rank;
  if (!both || !(b->has & HAS_PEERS_ONLY)) return both;
  return (s->offset | bytes_of(s)) % WORD == 0 && b->reads_peer(to, from);
}

bool copy_flies(TgContext *ctx, const Step *s) {
  if (s->plan) return false;
  if (flies_beside(ctx, s)) return true;
  if (!ctx->comm || ctx->comm->transport->heads_only) return false;
  const Device *to = device_of(ctx, s->to), *from = device_of(ctx, s->from);
  return copy_crosses(to, from) && to->of_rank && in_place(to) && in_place(from);
}

/* ---- when they go */
enum { AFTER_ALL = INT32_MAX };

/* The kernel of a step that makes b; memory that was there before is ready after the last; -1: the step has
 * nothing to do with it. */
static int kernel_of(const Step *s, const Buffer *b) {
  for (size_t t = 0; t < s->ntemp; t++)
    if (s->temp[t] == b) return s->plan->sched.temp[t].first;
  for (size_t i = 0; i < s->nbuf; i++)
    if (s->buf[i].buffer == b) return AFTER_ALL;
  return -1;
}

static Leaving leaving_of(const TgContext *ctx, const Step *plans, size_t n, const Step *copy, int nth) {
  Leaving l = {.copy = copy, .plan = -1, .kernel = -1, .nth = nth};
  for (size_t i = 0; i < n; i++) {
    int k = plans[i].plan->dev == device_of(ctx, copy->from) ? kernel_of(&plans[i], copy->from) : -1;
    if (k >= 0) l.plan = (int)i, l.kernel = k;
  }
  return l;
}

static bool goes_before(const Leaving *a, const Leaving *b) {
  if (a->plan != b->plan) return a->plan < b->plan;
  return a->kernel != b->kernel ? a->kernel < b->kernel : a->nth < b->nth;
}

/* By insertion: they come nearly sorted. */
static bool leaves(Flight *f, Leaving l) {
  if (!vec_push(&f->ctx->mem, &f->leaving, l)) return false;
  size_t i = f->leaving.len - 1;
  for (; i > 0 && goes_before(&l, &f->leaving.at[i - 1]); i--)
    f->leaving.at[i] = f->leaving.at[i - 1];
  f->leaving.at[i] = l;
  return true;
}

/* ---- for tg_explain: what kernels hide of them, by estimates: a device sends one after the other */
/* The kernels of a device in the plans, up to kernel k of plan at: their time, and how many follow. */
static double kernels_us(const TgContext *ctx, const Step *plans, size_t n, const Leaving *l, Behind *b) {
  const Device *d = device_of(ctx, l->copy->from);
  double us = 0;
  for (size_t i = 0; i < n; i++) {
    const PlanFacts *p = plans[i].plan->dev == d ? facts_numbered(ctx->inside, plans[i].plan->number) : NULL;
    for (int k = 0; p && k < p->nkernel; k++) {
      if ((int)i < l->plan || ((int)i == l->plan && k <= l->kernel))
        us += p->kernel[k].est_us;
      else if (!b->kernels++)
        b->plan = p->number, b->kernel = k;
    }
  }
  return us;
}

static void flight_told(Flight *f, const Step *plans, size_t n) {
  TgContext *ctx = f->ctx;
  double sent[MOST_DEVICES] = {0};
  for (size_t i = 0; i < f->leaving.len && ctx->inside; i++) {
    const Leaving *l = &f->leaving.at[i];
    const Buffer *from = l->copy->from, *to = l->copy->to;
    Behind b = {
        .us = link_us(ctx, from->device, to->device, (double)to->nelem * (double)dtype_size(to->dtype))};
    Leaving all = {.copy = l->copy, .plan = AFTER_ALL};
    double begin = TG_MAX(kernels_us(ctx, plans, n, l, &b), sent[from->device]);
    double end = kernels_us(ctx, plans, n, &all, &(Behind){0});
    sent[from->device] = begin + b.us;
    b.hidden_us = TG_MAX(TG_MIN(end - begin, b.us), 0);
    inside_flown(ctx, l->copy->exchange, &b);
  }
}

static TgStatus no_memory(TgContext *ctx) { return error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory"); }

/* ---- going */
static TgStatus posted(Flight *f, const Leaving *l, bool out) {
  TgContext *ctx = f->ctx;
  const Step *s = l->copy;
  const Buffer *b = out ? s->from : s->to;
  int rank = device_of(ctx, out ? s->to : s->from)->of_rank - 1;
  size_t n = bytes_of(s);
  char *p = (char *)b->data + (out ? s->offset : 0);
  if (!vec_push(&ctx->mem, &f->moving, ((Moving){b, p, out, NULL}))) return no_memory(ctx);
  double begin = profile_now(ctx);
  TgStatus st = comm_post(ctx->comm, &l->e, rank, out, p, n);
  if (out) profile_copy(ctx, begin, s->exchange, device_of(ctx, s->to), device_of(ctx, s->from), n, true);
  return st;
}

/* *e is freed with the flight. */
static TgStatus event_now(Flight *f, Device *d, Event **e) {
  TgStatus s = d->backend->event_record(d, e);
  if (!s && vec_push(&f->ctx->mem, &f->events, ((Owned){d, *e}))) return s;
  d->backend->event_free(d, *e);
  *e = NULL;
  return s ? s : no_memory(f->ctx);
}

/* When what the sender was given so far is done, and what the receiver was before these plans. made: an
 * event of each device for the former, or NULL. */
static TgStatus posted_beside(Flight *f, const Leaving *l, Event **made) {
  TgContext *ctx = f->ctx;
  const Step *c = l->copy;
  Device *from = device_of(ctx, c->from), *to = device_of(ctx, c->to);
  Event *done = NULL;
  size_t n = bytes_of(c);
  double begin = profile_now(ctx);
  TgStatus s = made[from->index] ? TG_OK : event_now(f, from, &made[from->index]);
  Event *const after[] = {made[from->index], f->begun[to->index]};
  if (!s)
    s = from->backend->copy_beside(from, (char *)c->from->data + c->offset, to, c->to->data, n, after, &done);
  if (done && !vec_push(&ctx->mem, &f->events, ((Owned){from, done}))) {
    from->backend->event_free(from, done);
    return no_memory(ctx);
  }
  profile_copy(ctx, begin, c->exchange, to, from, n, true);
  if (s) return s;
  bool noted = vec_push(&ctx->mem, &f->moving, ((Moving){c->to, NULL, false, done})) &&
               vec_push(&ctx->mem, &f->moving, ((Moving){c->from, NULL, true, done}));
  return noted ? TG_OK : no_memory(ctx);
}

/* Those whose bytes are there after this kernel. */
static TgStatus gone_after(Flight *f, int plan, int kernel) {
  TgStatus s = TG_OK;
  Event *made[MOST_DEVICES] = {NULL};
  for (; !s && f->gone < f->leaving.len; f->gone++) {
    const Leaving *l = &f->leaving.at[f->gone];
    if (l->plan > plan || (l->plan == plan && l->kernel > kernel)) break;
    if (flies_beside(f->ctx, l->copy))
      s = posted_beside(f, l, made);
    else if (!device_of(f->ctx, l->copy->from)->remote)
      s = posted(f, l, true);
  }
  return s || !f->ctx->comm ? s : comm_advance(f->ctx->comm);
}

static TgStatus awaited(Flight *f, const void *p) {
  TgContext *ctx = f->ctx;
  if (p && !comm_moves(ctx->comm, p)) return TG_OK;
  double begin = profile_now(ctx);
  TgStatus s = comm_await(ctx->comm, p);
  profile_wait(ctx, "await", begin);
  return s;
}

static TgStatus moved(Flight *f, const Moving *m) {
  Device *d = device_of(f->ctx, m->b);
  return m->done ? d->backend->event_wait(d, m->done) : awaited(f, m->p);
}

/* Memory that was there before the list ran, and that it stores to. */
static bool is_stored(const Flight *f, const Buffer *b) {
  for (size_t i = 0; i < f->nstored; i++)
    if (f->stored[i] == b) return true;
  return false;
}

typedef enum Use { READS, MAY_STORE, WRITES } Use;

/* What comes to b is there; where b is written, or may be as the list stores to it, what went of it is
 * gone. */
static TgStatus buffer_awaited(Flight *f, const Buffer *b, Use use) {
  TgStatus s = TG_OK;
  for (size_t i = 0; b && i < f->moving.len && !s;) {
    Moving m = f->moving.at[i];
    if (m.b != b || (m.out && use != WRITES && !(use == MAY_STORE && is_stored(f, b)))) {
      i++;
      continue;
    }
    f->moving.at[i] = f->moving.at[--f->moving.len];
    s = moved(f, &m);
  }
  return s;
}

Flight *flight_new(TgContext *ctx, Buffer *const *stored, size_t nstored) {
  Flight *f = mem_alloc(&ctx->mem, sizeof *f);
  if (f) *f = (Flight){.ctx = ctx, .stored = stored, .nstored = nstored};
  return f;
}

TgStatus flight_end(Flight *f) {
  TgStatus s = f->ctx->comm ? awaited(f, NULL) : TG_OK;
  for (size_t i = 0; i < f->moving.len && !s; i++)
    if (f->moving.at[i].done) s = moved(f, &f->moving.at[i]);
  f->moving.len = 0;
  return s;
}

void flight_free(Flight *f) {
  if (!f) return;
  if (f->ctx->comm) comm_drop(f->ctx->comm);
  for (size_t i = 0; i < f->events.len; i++)
    f->events.at[i].d->backend->event_free(f->events.at[i].d, f->events.at[i].e);
  vec_free(&f->ctx->mem, &f->events);
  vec_free(&f->ctx->mem, &f->leaving), vec_free(&f->ctx->mem, &f->moving);
  mem_free(&f->ctx->mem, f);
}

TgStatus flight_begin(Flight *f, const Step *plans, size_t nplan, const Step *copies, size_t n) {
  TgContext *ctx = f->ctx;
  TgStatus s = TG_OK;
  f->leaving.len = f->gone = 0;
  memset(f->begun, 0, sizeof f->begun);
  for (size_t i = 0; i < n; i++)
    if (!leaves(f, leaving_of(ctx, plans, nplan, &copies[i], (int)i))) return no_memory(ctx);
  flight_told(f, plans, nplan);
  for (size_t i = 0; i < n && !s; i++) {
    Leaving *l = &f->leaving.at[i];
    const Buffer *from = l->copy->from, *to = l->copy->to;
    bool beside = flies_beside(ctx, l->copy);
    if (beside && !f->begun[to->device]) s = event_now(f, device_of(ctx, to), &f->begun[to->device]);
    if (!s && beside) s = buffer_awaited(f, from, READS);
    if (beside) continue;
    l->e = comm_begin(ctx->comm, from->device, to->device, bytes_of(l->copy));
    s = buffer_awaited(f, from, READS); /* a copy of what has come */
    if (!s && !device_of(ctx, to)->remote) s = posted(f, l, false);
  }
  for (size_t r = 0; ctx->comm && r < (size_t)ctx->comm->size && n; r++) /* all that comes is posted */
    comm_close(ctx->comm, (int)r, false);
  return s ? s : gone_after(f, -1, -1);
}

TgStatus flight_left(Flight *f) {
  TgStatus s = gone_after(f, AFTER_ALL, AFTER_ALL);
  if (!f->ctx->comm) return s;
  comm_close(f->ctx->comm, -1, true);
  return s ? s : comm_advance(f->ctx->comm);
}

bool flight_waits(const Flight *f) { return f->moving.len || f->gone < f->leaving.len; }

/* ---- beside kernels */
TgStatus flight_before(Flight *f, const PlanRun *run, int k) {
  const SchedKernel *sk = &run->plan->sched.kernel[k];
  TgStatus s = TG_OK;
  for (int a = 0; a < sk->narg && !s && f->moving.len; a++) {
    int64_t id = sk->arg[a], t = id - TEMP_BASE;
    if (t < 0)
      s = buffer_awaited(f, run->buf[id].buffer, MAY_STORE);
    else
      s = buffer_awaited(f, run->temp[t], run->plan->sched.temp[t].first == k ? WRITES : READS);
  }
  return s;
}

TgStatus flight_after(Flight *f, const PlanRun *run, int k) { return gone_after(f, run->step, k); }
