/* overlap.c: exchanges of a captured list behind its kernels. In: plans, and the copies that follow them,
 * between ranks or between devices that copy beside their launches. Out: the same copies, of which each goes
 * out when the kernel that made its bytes has run; what comes in is awaited by the first kernel that takes
 * it: by the host, or, of GPUs, by the device's queue. No bit depends on it.
 *
 * Every rank knows all plans, so all have one order of the copies: by how many kernels their sender has
 * given by then. Copies of GPUs that stand at the same place of it are one group of NCCL's. A rank gives
 * its share of the groups in this order, each when it has given as many kernels itself, to one queue. It
 * gives it behind those kernels, so the group waits for who made its bytes and for who used where they go.
 * No two groups can wait for each other: put each rank's kernels, in its order, before the group that
 * follows them and behind the one that they follow. In this order of all that the ranks do everything
 * waits only for what stands before it: a group for kernels given earlier, a kernel for groups given
 * earlier, either for the one before it in its queue. So the first that is not done can go on. The same
 * holds for the hosts, which before a group wait for its heads alone: these find ranks that ended, failed
 * or run another program before a byte moves. */
#include "engine/inside.h"
#include "engine/jit.h"
#include "runtime/comm.h"
#include "tensor/context.h"

/* after: the moment, of the process that has the sender, when the bytes are there. e: of copies by the
 * host */
typedef struct Leaving {
  const Step *copy;
  int64_t after;
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
  bool by_host;         /* as all copies at hand go */
  Vec(Leaving) leaving; /* in the order in which they go */
  size_t gone;          /* of them */
  const Step *plans;    /* at hand */
  int64_t given[2];     /* the last moment of them: of devices without a rank, of this rank's */
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

enum { FLIES_NOT, FLIES_BY_GPUS, FLIES_BY_HOST };

int copy_flies(TgContext *ctx, const Step *s) {
  if (s->plan) return FLIES_NOT;
  const Device *to = device_of(ctx, s->to), *from = device_of(ctx, s->from);
  if (!copy_crosses(to, from)) return flies_beside(ctx, s) ? FLIES_BY_GPUS : FLIES_NOT;
  if (copy_by_nccl(ctx, to, from)) return FLIES_BY_GPUS;
  bool reached = to->of_rank && in_place(to) && in_place(from);
  return reached && !ctx->comm->transport->heads_only ? FLIES_BY_HOST : FLIES_NOT;
}

/* ---- when they go */
/* When d's process has given k kernels of plan i: of its plans before this one the number counts, as how many
 * kernels they have it alone knows. */
static int64_t moment(const Step *plans, size_t i, const Device *d, int k) {
  int64_t before = 0;
  while (i-- > 0)
    before += plans[i].plan->dev->of_rank == d->of_rank;
  return before << 32 | k;
}

/* How many of its kernels the step has given when b is there; memory that was there before is ready after the
 * last; 0: the step has nothing to do with it. */
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

/* By insertion: they come nearly sorted. */
static bool leaves(Flight *f, Leaving l) {
  if (!vec_push(&f->ctx->mem, &f->leaving, l)) return false;
  size_t i = f->leaving.len - 1;
  for (; i > 0 && l.after < f->leaving.at[i - 1].after; i--)
    f->leaving.at[i] = f->leaving.at[i - 1];
  f->leaving.at[i] = l;
  return true;
}

/* ---- for tg_explain: what kernels hide of them, by estimates: a device sends one after the other */
/* The kernels of a copy's sender that are given before it goes: their time, that of all, and how many
 * follow. */
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
    double end = 0, us = kernels_us(ctx, plans, n, l, &b, &end), begin = TG_MAX(us, sent[from->device]);
    sent[from->device] = begin + b.us;
    b.hidden_us = TG_MAX(TG_MIN(end - begin, b.us), 0);
    inside_flown(ctx, l->copy->exchange, &b);
  }
}

static TgStatus no_memory(TgContext *ctx) { return error_no_memory(&ctx->err, "jit"); }

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

/* n copies are done when `done` is, which is freed with the flight. s: what making it says. */
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

/* Of GPUs: by NCCL, into the group that goes next, or, in one process, by the sender's queue of copies:
 * when what it was given so far is done, and what the receiver was before these plans. */
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

/* n copies that stand at one place of the order. */
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

/* Those whose bytes are there. */
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
    if (!s) s = buffer_awaited(f, from, READS); /* a copy of what has come */
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

TgStatus flight_after(Flight *f, const PlanRun *run, int k) {
  const Device *d = run->plan->dev;
  if (f->gone < f->leaving.len) f->given[d->of_rank > 0] = moment(f->plans, run->step, d, k + 1);
  return gone_now(f);
}
