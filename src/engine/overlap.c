/* overlap.c: runs the exchanges of a captured list beside its kernels. In: plans, and the copies that
 * follow them, between ranks or between devices that can copy beside their launches. Out: the same copies.
 * Each one begins when the kernel that made its bytes has run. What comes in is awaited by the first
 * kernel that reads it: by the host, or, on GPUs, by the device's queue. The results do not depend on it
 * in any bit.
 *
 * Every rank knows all plans, so all ranks agree on one order of the copies: by the number of kernels that
 * their sender has given before. Copies of GPUs at the same place of this order are one group of NCCL's. A
 * rank gives its share of the groups to one queue, in this order, each when it has given that many kernels
 * itself. The group is queued after those kernels, so it waits for the kernels that made its bytes and for
 * those that used its destination. No two groups can wait for each other. To see this, sort everything
 * that the ranks do: place each rank's kernels, in their order, before the group that follows them and
 * after the group that they follow. In this order everything waits only for earlier things: a group for
 * kernels given earlier, a kernel for groups given earlier, and each of them for its predecessor in its
 * queue. So the first thing that is not done can always proceed. The same holds for the hosts, which wait
 * before a group only for its heads. From the heads they learn of ranks that ended, failed or run another
 * program before a byte moves. */
#include "engine/inside.h"
#include "engine/jit.h"
#include "runtime/comm.h"
#include "tensor/context.h"

/* after: the moment, in the process that has the sender, when the bytes are ready. e: for copies by the
 * host. */
typedef struct Leaving {
  const Step *copy;
  int64_t after;
  Exchange e;
} Leaving;

/* done: the event that b's device waits for; NULL: the host waits for p. */
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
  Buffer *const *stored; /* memories from before the capture that its steps store to */
  size_t nstored;
  bool by_host;         /* the way of all current copies */
  Vec(Leaving) leaving; /* in the order in which they begin */
  size_t gone;          /* number of them that have begun */
  const Step *plans;    /* the current plans */
  int64_t given[2];     /* the last moment of devices without a rank, and of this rank's devices */
  Vec(Moving) moving;   /* what may still be moving */
  Vec(Owned) events;
  Event *begun[MOST_DEVICES]; /* for each device that receives copies: an event before the current plans */
};

static Device *device_of(const TgContext *ctx, const Buffer *b) { return device_at(ctx, b->device); }

static bool in_place(const Device *d) { return !(d->backend->has & HAS_OWN_MEMORY); }

static size_t bytes_of(const Step *s) { return (size_t)s->to->nelem * dtype_size(s->to->dtype); }

/* Whether a copy between two devices of this process can run beside launches, in the queue of copies that
 * each of them has. */
static bool flies_beside(TgContext *ctx, const Step *s) {
  enum { WORD = 4 };

  Device *to = device_of(ctx, s->to), *from = device_of(ctx, s->from);
  const TgBackend *b = to->backend;
  bool both = to != from && b == from->backend && b->copy_beside && !to->of_rank && !from->of_rank;
  if (!both || !(b->has & HAS_PEERS_ONLY)) return both;
  return (s->offset | bytes_of(s)) % WORD == 0 && b->reads_peer(to, from);
}

enum { FLIES_NOT, FLIES_BY_GPUS, FLIES_BY_HOST };

int copy_flies(TgContext *ctx, const Step *s) {
  if (s->plan) return FLIES_NOT;
  const Device *to = device_of(ctx, s->to), *from = device_of(ctx, s->from);
  if (!copy_crosses(to, from)) return flies_beside(ctx, s) ? FLIES_BY_GPUS : FLIES_NOT;
  if (copy_by_nccl(ctx, to, from)) return FLIES_BY_GPUS;
  bool reached = to->of_rank && in_place(to) && in_place(from);
  return reached && !ctx->comm->transport->heads_only ? FLIES_BY_HOST : FLIES_NOT;
}

/* ---- when copies begin */
/* Returns the moment at which d's process has given k kernels of plan i: the number of its earlier plans
 * in the upper bits, k in the lower 32. Earlier plans count only by their number, because only that
 * process knows how many kernels they have. */
static int64_t moment(const Step *plans, size_t i, const Device *d, int k) {
  int64_t before = 0;
  while (i-- > 0)
    before += plans[i].plan->dev->of_rank == d->of_rank;
  return before << 32 | k;
}

/* Returns how many of its kernels the step has given when b is ready. Memory that the plan did not make is
 * ready after the last kernel (INT32_MAX). 0: the step does not use b. */
static int kernels_until(const Step *s, const Buffer *b) {
  for (size_t t = 0; t < s->ntemp; t++)
    if (s->temp[t] == b) return s->plan->sched.temp[t].made + 1;
  for (size_t i = 0; i < s->nbuf; i++)
    if (s->buf[i].buffer == b) return INT32_MAX;
  return 0;
}

static Leaving leaving_of(const TgContext *ctx, const Step *plans, size_t n, const Step *copy) {
  const Device *from = device_of(ctx, copy->from);
  Leaving l = {.copy = copy};
  for (size_t i = 0; i < n; i++) {
    int k = plans[i].plan->dev == from ? kernels_until(&plans[i], copy->from) : 0;
    if (k) l.after = moment(plans, i, from, k);
  }
  return l;
}

/* Adds a copy in order. Insertion is fast because the copies come nearly sorted. */
static bool leaves(Flight *f, Leaving l) {
  if (!vec_push(&f->ctx->mem, &f->leaving, l)) return false;
  size_t i = f->leaving.len - 1;
  for (; i > 0 && l.after < f->leaving.at[i - 1].after; i--)
    f->leaving.at[i] = f->leaving.at[i - 1];
  f->leaving.at[i] = l;
  return true;
}

/* ---- for tg_explain: how much of the copies kernels hide, by estimates. A device sends one copy after
 * another. */
/* Returns the time of the sender's kernels that are given before the copy begins. *all: the time of all
 * its kernels. *b: the first kernel after the copy begins, and how many there are. */
static double kernels_us(const TgContext *ctx, const Step *plans, size_t n, const Leaving *l, Behind *b,
                         double *all) {
  const Device *d = device_of(ctx, l->copy->from);
  double us = 0;
  for (size_t i = 0; i < n; i++) {
    const PlanFacts *p = plans[i].plan->dev == d ? facts_numbered(ctx->inside, plans[i].plan->number) : NULL;
    for (int k = 0; p && k < p->nkernel; k++) {
      *all += p->kernel[k].est_us;
      if (moment(plans, i, d, k + 1) <= l->after)
        us += p->kernel[k].est_us;
      else if (!b->kernels++) {
        b->plan = p->number;
        b->kernel = k;
      }
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
    double end = 0, us = kernels_us(ctx, plans, n, l, &b, &end), begin = TG_MAX(us, sent[from->device]);
    sent[from->device] = begin + b.us;
    b.hidden_us = TG_MAX(TG_MIN(end - begin, b.us), 0);
    inside_flown(ctx, l->copy->exchange, &b);
  }
}

static TgStatus no_memory(TgContext *ctx) { return error_no_memory(&ctx->err, "jit"); }

/* ---- beginning copies */
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

/* Notes that n copies are done when `done` is, which is freed with the flight. s: the status of making the
 * event. */
static TgStatus moves(Flight *f, Device *d, Event *done, TgStatus s, const Leaving *l, size_t n) {
  bool room = vec_push(&f->ctx->mem, &f->events, ((Owned){d, done}));
  if (!room) d->backend->event_free(d, done);
  for (size_t i = 0; i < 2 * n && room && !s; i++) {
    const Step *c = l[i / 2].copy;
    Moving m = {i % 2 ? c->from : c->to, NULL, i % 2, done};
    room = device_of(f->ctx, m.b)->remote || vec_push(&f->ctx->mem, &f->moving, m);
  }
  return s || room ? s : no_memory(f->ctx);
}

/* Begins a copy between GPUs: by NCCL, in the group that is given next; or, in one process, in the
 * sender's queue of copies. It then waits for what the sender was given so far and for what the receiver
 * was given before these plans. */
static TgStatus posted_beside(Flight *f, const Leaving *l) {
  TgContext *ctx = f->ctx;
  const Step *c = l->copy;
  Device *from = device_of(ctx, c->from), *to = device_of(ctx, c->to);
  size_t n = bytes_of(c);
  const char *p = (const char *)c->from->data + c->offset;
  double begin = profile_now(ctx);
  TgStatus s = TG_OK;
  if (from->of_rank)
    s = comm_copy(ctx, to, c->to->data, from, p, n);
  else if (!(s = from->backend->event_record(from, &from->fence))) {
    Event *const after[] = {from->fence, f->begun[to->index]};
    Event *done = NULL;
    s = from->backend->copy_beside(from, p, to, c->to->data, n, after, &done);
    s = moves(f, from, done, s, l, 1);
  }
  if (!from->remote || !to->remote) profile_copy(ctx, begin, c->exchange, to, from, n, true);
  return s;
}

/* Begins n copies at one place of the order. */
static TgStatus gone_together(Flight *f, const Leaving *l, size_t n) {
  TgContext *ctx = f->ctx;
  TgStatus s = TG_OK;
  copies_gathered(ctx, true);
  for (size_t i = 0; i < n && !s; i++) {
    if (!f->by_host)
      s = posted_beside(f, &l[i]);
    else if (!device_of(ctx, l[i].copy->from)->remote)
      s = posted(f, &l[i], true);
  }
  copies_gathered(ctx, false);
  if (s || !ctx->comm) return s;
  if (f->by_host) return comm_advance(ctx->comm);
  Event *done = NULL;
  Device *own = copies_grouped(ctx, &s, &done);
  return own ? moves(f, own, done, s, l, n) : s;
}

/* Begins the copies whose bytes are ready. */
static TgStatus gone_now(Flight *f) {
  TgStatus s = TG_OK;
  while (!s && f->gone < f->leaving.len) {
    const Leaving *l = &f->leaving.at[f->gone];
    size_t n = 0;
    for (; f->gone + n < f->leaving.len && l[n].after == l->after; n++)
      if (l->after > f->given[device_of(f->ctx, l[n].copy->from)->of_rank > 0]) return TG_OK;
    f->gone += n;
    s = gone_together(f, l, n);
  }
  return s;
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

/* Whether b is memory from before the list ran that the list stores to. */
static bool is_stored(const Flight *f, const Buffer *b) {
  for (size_t i = 0; i < f->nstored; i++)
    if (f->stored[i] == b) return true;
  return false;
}

typedef enum Use { READS, MAY_STORE, WRITES } Use;

/* Waits for copies into b. If b is written, or may be because the list stores to it, also waits for copies
 * out of b. */
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
  for (int i = 0; i < MOST_DEVICES; i++)
    if (f->begun[i]) device_at(f->ctx, i)->backend->event_free(device_at(f->ctx, i), f->begun[i]);
  for (size_t i = 0; i < f->events.len; i++)
    f->events.at[i].d->backend->event_free(f->events.at[i].d, f->events.at[i].e);
  vec_free(&f->ctx->mem, &f->events);
  vec_free(&f->ctx->mem, &f->leaving), vec_free(&f->ctx->mem, &f->moving);
  mem_free(&f->ctx->mem, f);
}

TgStatus flight_begin(Flight *f, const Step *plans, size_t nplan, const Step *copies, size_t n) {
  TgContext *ctx = f->ctx;
  TgStatus s = TG_OK;
  uint64_t begun = 0; /* bits of the devices */
  f->leaving.len = f->gone = 0;
  f->plans = plans;
  f->given[0] = f->given[1] = 0;
  f->by_host = copy_flies(ctx, copies) == FLIES_BY_HOST;
  for (size_t i = 0; i < n; i++)
    if (!leaves(f, leaving_of(ctx, plans, nplan, &copies[i]))) return no_memory(ctx);
  flight_told(f, plans, nplan);
  for (size_t i = 0; i < n && !s; i++) {
    Leaving *l = &f->leaving.at[i];
    const Buffer *from = l->copy->from, *to = l->copy->to;
    Device *d = device_of(ctx, to);
    if (!f->by_host && !d->of_rank && !(begun >> d->index & 1))
      s = d->backend->event_record(d, &f->begun[d->index]);
    begun |= 1ull << d->index;
    if (f->by_host) l->e = comm_begin(ctx->comm, from->device, to->device, bytes_of(l->copy));
    if (!s) s = buffer_awaited(f, from, READS); /* the copy may forward what another copy brought */
    if (!s && f->by_host && !d->remote) s = posted(f, l, false);
  }
  for (size_t r = 0; ctx->comm && r < (size_t)ctx->comm->size && f->by_host;
       r++) /* all that comes is posted */
    comm_close(ctx->comm, (int)r, false);
  return s ? s : gone_now(f);
}

TgStatus flight_left(Flight *f) {
  f->given[0] = f->given[1] = INT64_MAX;
  TgStatus s = gone_now(f);
  if (!f->ctx->comm) return s;
  comm_close(f->ctx->comm, -1, true);
  return s ? s : comm_advance(f->ctx->comm);
}

bool flight_waits(const Flight *f) { return f->moving.len || f->gone < f->leaving.len; }

/* ---- called around kernels */
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

TgStatus flight_after(Flight *f, const PlanRun *run, int k) {
  const Device *d = run->plan->dev;
  if (f->gone < f->leaving.len) f->given[d->of_rank > 0] = moment(f->plans, run->step, d, k + 1);
  return gone_now(f);
}
