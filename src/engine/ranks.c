/* ranks.c: the ranks of a program, which are processes that make the same calls. In: names such as
 * "CPU@2", the CPU of rank 2. Out: devices, of which a rank opens its own and has substitutes for those of
 * the others; copies between ranks; and values that every rank reads alike. A device without a rank exists
 * in each process, with the same values in each. */
#define _GNU_SOURCE
#include "runtime/comm.h"
#include "base/os.h"
#include "engine/engine.h"
#include "runtime/nccl.h"
#include "tensor/front.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- joining */
static const char *device_name(void *user, int device) {
  const TgContext *ctx = user;
  return device < device_count(ctx) ? device_at(ctx, device)->name : "?";
}

/* A hash of everything besides their calls that the ranks' graphs depend on. */
static uint64_t agreed(const TgContext *ctx) {
  const int of[] = {ctx->env.allreduce, ctx->env.allreduce_cast, ctx->env.comm_size, ctx->env.comm_bucket,
                    (int)sizeof(Target)};
  uint64_t hash = hash_bytes(hash_bytes(7, tg_version(), strlen(tg_version())), of, sizeof of);
  return hash_bytes(hash, ctx->env.links, sizeof ctx->env.links);
}

/* Broadcasts what rank `from` has at p to all ranks. device: the device that the bytes are of, or -1. */
static TgStatus shared(Comm *c, int device, int from, void *p, size_t nbytes) {
  comm_begin(c, device, -1, nbytes);
  return comm_broadcast(c, from, p, nbytes);
}

/* Numbers the machines: ranks on one machine report the same name. */
static TgStatus machines_told(TgContext *ctx, Comm *c) {
  enum { MOST_NAME = 256 };

  char own[MOST_NAME] = {0};
  uint64_t *name = mem_alloc(&ctx->mem, (size_t)c->size * sizeof *name);
  if (!name) return error_no_memory(&ctx->err, "comm");
  snprintf(own, sizeof own, "%s", ctx->env.comm_machine);
  if (!*own) ctx->os->gethostname(own, sizeof own - 1);
  TgStatus s = TG_OK;
  for (int r = 0; r < c->size && !s; r++) {
    name[r] = hash_bytes(5, own, strlen(own));
    s = shared(c, -1, r, &name[r], sizeof *name);
    for (c->machine[r] = 0; name[c->machine[r]] != name[r];)
      c->machine[r]++;
  }
  mem_free(&ctx->mem, name);
  return s;
}

/* Returns the group that $TG_COMM names. NULL: there is none, or an error was recorded. All ranks draw
 * random numbers with the seed of rank 0. */
static Comm *joined(TgContext *ctx) {
  if (ctx->comm || !*ctx->env.comm || ctx->err.status) return ctx->comm;
  Comm *c = comm_join(&ctx->mem, ctx->os, &ctx->env, &ctx->err, agreed(ctx));
  if (!(ctx->comm = c)) return NULL;
  c->stop = &ctx->cancelled;
  c->device_name = device_name;
  c->user = ctx;
  TgStatus s = shared(c, -1, 0, &ctx->rng_seed, sizeof ctx->rng_seed);
  return s || machines_told(ctx, c) ? NULL : c;
}

int tg_comm_size(TgContext *ctx) {
  Comm *c = ctx ? joined(ctx) : NULL;
  return c ? c->size : 1;
}

int tg_comm_rank(TgContext *ctx) {
  Comm *c = ctx ? joined(ctx) : NULL;
  return c ? c->rank : 0;
}

int tg_comm_devices(TgContext *ctx, const char *device, int most, const char **names) {
  if (!ctx) return -1;
  Comm *c = joined(ctx);
  if (ctx->err.status) return -1;
  int n = c ? c->size : 1;
  device = device && *device ? device : device_at(ctx, ctx->default_device)->name;
  TG_REQUIRE_OR(ctx, n <= most && names, -1, TG_ERR_LIMIT, "comm_devices: %d ranks, and room for %d names", n,
                most);
  TG_REQUIRE_OR(ctx, !strchr(device, '@') && !strchr(device, ','), -1, TG_ERR_VALUE,
                "comm_devices: '%.64s' is not the name of one device", device);
  for (int r = 0; r < n; r++) {
    char name[96];
    snprintf(name, sizeof name, c ? "%.64s@%d" : "%.64s", device, r);
    int d = device_find(ctx, "comm_devices", name);
    if (d < 0) return -1;
    names[r] = device_at(ctx, d)->name;
  }
  return n;
}

TgStatus tg_comm_max(TgContext *ctx, int64_t *value) {
  if (!ctx) return TG_ERR_VALUE;
  Comm *c = joined(ctx);
  if (!c || !value) return ctx->err.status;
  TgStatus s = TG_OK;
  comm_begin(c, -1, -1, sizeof *value);
  for (int r = 1; !s && r < c->size; r++) {
    int64_t other = *value;
    if (c->rank == r) s = comm_send(c, 0, value, sizeof *value);
    if (!c->rank) s = comm_receive(c, r, &other, sizeof other);
    *value = TG_MAX(*value, other);
  }
  return s ? s : shared(c, -1, 0, value, sizeof *value);
}

/* ---- devices of ranks */
/* What a rank reports of its device. The other ranks plan for the device as the owner does. */
typedef struct Opened {
  TgStatus status;
  Target target;
  char why[500];
} Opened;

/* name: its first n bytes precede the '@'. Returns -1 if an error was recorded. */
int device_rank(TgContext *ctx, const char *op, const char *name, size_t n) {
  Comm *c = joined(ctx);
  char *end;
  TG_REQUIRE_OR(ctx, c || ctx->err.status, -1, TG_ERR_VALUE,
                "%s: '%.64s': there are no ranks, TG_COMM is not set", op, name);
  long rank = strtol(name + n + 1, &end, 10);
  TG_REQUIRE_OR(ctx, c && name[n + 1] && !*end && rank >= 0 && rank < c->size, -1, TG_ERR_VALUE,
                "%s: '%.64s': there is no such rank", op, name);
  return (int)rank;
}

/* All ranks call this. Afterwards each of them knows what the owner's device is and whether it opened. */
TgStatus device_told(TgContext *ctx, Device *d, int rank, TgStatus s, TgError *err) {
  Comm *c = ctx->comm;
  Opened o = {.status = s};
  if (c->rank == rank && !s) o.target = d->target;
  if (c->rank == rank) snprintf(o.why, sizeof o.why, "%.499s", err->msg);
  TgStatus moved = shared(c, d->index, rank, &o, sizeof o);
  if (moved || c->rank == rank) return moved ? moved : s;
  d->target = o.target;
  d->target.name = d->backend->name;
  return o.status ? error_set(err, o.status, "%s", o.why) : s;
}

/* ---- copies and reads */
/* bytes per piece of a copy through the host, if it cannot reach a device's memory */
enum { PIECE = 4 << 20 };

static bool in_place(const Device *d) { return !(d->backend->has & HAS_OWN_MEMORY); }

bool copy_crosses(const Device *to, const Device *from) {
  return from->of_rank && from->of_rank != to->of_rank;
}

/* Returns the device of a rank whose memory NCCL moves: the rank's first device with a stream. NULL: it
 * has none. */
static Device *streaming(const TgContext *ctx, int rank) {
  for (int i = 0; i < device_count(ctx); i++)
    if (device_at(ctx, i)->of_rank == rank + 1 && device_at(ctx, i)->backend->stream)
      return device_at(ctx, i);
  return NULL;
}

/* Returns the lowest rank without such a device, or the number of ranks if all have one. */
static int streamless(const TgContext *ctx) {
  int r = 0;
  while (r < ctx->comm->size && streaming(ctx, r))
    r++;
  return r;
}

/* NCCL copies only from GPU to GPU, and only if every rank has one. */
bool copy_by_nccl(const TgContext *ctx, const Device *to, const Device *from) {
  return ctx->comm->nccl && to->of_rank && streaming(ctx, to->of_rank - 1) == to &&
         streaming(ctx, from->of_rank - 1) == from && streamless(ctx) == ctx->comm->size;
}

/* Joins NCCL at the first exchange, which every rank begins. */
static TgStatus nccl_ready(TgContext *ctx) {
  Comm *c = ctx->comm;
  NcclId id = {{0}};
  int without = streamless(ctx);
  if (without < c->size)
    return error_set(&ctx->err, TG_ERR_DEVICE, "comm: rank %d has no GPU for NCCL: take TG_COMM=mpi",
                     without);
  if (nccl_joined(c->nccl)) return TG_OK;
  TgStatus s = c->rank ? TG_OK : nccl_id(c->nccl, &id);
  if (s) return s;
  s = shared(c, -1, 0, &id, sizeof id);
  Device *own = streaming(ctx, c->rank);
  return s || !own->backend->stream(own) ? ctx->err.status : nccl_join(c->nccl, &id, c->rank, c->size);
}

/* The heads are sent by the host, so that a mismatch is found before a byte moves. */
static TgStatus posted_by_nccl(TgContext *ctx, const Exchange *e, int rank, bool sends, void *p,
                               size_t nbytes) {
  TgStatus s = comm_post(ctx->comm, e, rank, sends, NULL, 0);
  return s ? s : nccl_post(ctx->comm->nccl, rank, sends, p, nbytes);
}

/* Like piece_moved, but through the ranks' GPUs, because NCCL reaches only their memory. */
static TgStatus piece_by_nccl(TgContext *ctx, const Exchange *e, int from, int to, void *host, size_t n) {
  const Comm *c = ctx->comm;
  Device *own = streaming(ctx, c->rank);
  bool sends = c->rank == from;
  void *at = NULL;
  TgStatus s = device_alloc(ctx, own->index, n, &at);
  if (!s && sends) s = own->backend->copy_in(own, at, host, n);
  for (int r = 0; r < c->size && !s; r++)
    if (r != from && (to < 0 || r == to) && (sends || r == c->rank))
      s = posted_by_nccl(ctx, e, sends ? r : from, sends, at, n);
  if (!s) s = copies_awaited(ctx);
  if (!s) s = own->backend->copy_out(own, host, at, n); /* on the sender too, which does not need it */
  if (at) device_free(ctx, own->index, at, n);
  return s;
}

/* Moves bytes from one rank to another (-1: to all) by the host. */
static TgStatus piece_moved(TgContext *ctx, const Exchange *e, int from, int to, void *host, size_t n) {
  Comm *c = ctx->comm;
  if (c->transport->heads_only) return piece_by_nccl(ctx, e, from, to, host, n);
  if (to < 0) return comm_broadcast(c, from, host, n);
  return c->rank == from ? comm_send(c, to, host, n) : comm_receive(c, from, host, n);
}

/* Like `moved`, if the host cannot reach one of the two memories: in pieces, on both ranks. */
static TgStatus moved_staged(TgContext *ctx, const Exchange *e, Device *to, int rank, char *dst, Device *from,
                             char *src, size_t nbytes) {
  bool sends = !from->remote, keeps = to ? !to->remote : dst != NULL;
  size_t room = TG_MIN(nbytes, (size_t)PIECE);
  char *host = mem_alloc_raw(&ctx->mem, room + 1);
  TgStatus s = host ? TG_OK : error_no_memory(&ctx->err, "copy");
  for (size_t done = 0; !s && done < nbytes; done += room) {
    size_t n = TG_MIN(room, nbytes - done);
    if (sends) s = from->backend->copy_out(from, host, src + done, n);
    if (!s) s = piece_moved(ctx, e, from->of_rank - 1, rank, host, n);
    if (s || !keeps) continue;
    if (to)
      s = to->backend->copy_in(to, dst + done, host, n);
    else
      memcpy(dst + done, host, n);
  }
  mem_free(&ctx->mem, host);
  return s;
}

/* Moves bytes from src of device `from` to dst of device `to`, or of the host if `to` is NULL. rank: the
 * rank that has dst; -1: all have one. This rank has the source, the destination or both. */
static TgStatus moved(TgContext *ctx, const Exchange *e, Device *to, int rank, char *dst, Device *from,
                      char *src, size_t nbytes) {
  Comm *c = ctx->comm;
  bool sends = !from->remote, reached = in_place(from) && (!to || in_place(to));
  if (c->transport->heads_only || !reached) return moved_staged(ctx, e, to, rank, dst, from, src, nbytes);
  if (rank < 0 && sends) memcpy(dst, src, nbytes);
  if (rank < 0) return comm_broadcast(c, from->of_rank - 1, dst, nbytes);
  int peer = sends ? rank : from->of_rank - 1;
  TgStatus s = comm_post(c, e, peer, sends, sends ? src : dst, nbytes);
  if (s || c->gathers) return s ? s : comm_advance(c);
  comm_close(c, peer, sends);
  return comm_await(c, NULL);
}

/* Every rank begins the exchange. A rank that has no part in it returns at once. */
TgStatus comm_copy(TgContext *ctx, Device *to, void *dst, Device *from, const void *src, size_t nbytes) {
  Comm *c = ctx->comm;
  bool nccl = copy_by_nccl(ctx, to, from), sends = !from->remote;
  TgStatus s = nccl || c->transport->heads_only ? nccl_ready(ctx) : TG_OK;
  Exchange e = comm_begin(c, from->index, to->of_rank ? to->index : -1, nbytes);
  if (s || (from->remote && to->remote)) return s;
  if (!nccl) return moved(ctx, &e, to, to->of_rank - 1, dst, from, (char *)src, nbytes);
  s = posted_by_nccl(ctx, &e, (sends ? to : from)->of_rank - 1, sends, sends ? (void *)src : dst, nbytes);
  return s || c->gathers ? s : copies_awaited(ctx);
}

void copies_gathered(TgContext *ctx, bool gathers) {
  if (ctx->comm) ctx->comm->gathers = gathers;
}

void copies_given_up(TgContext *ctx) {
  if (ctx->comm) comm_drop(ctx->comm);
}

Device *copies_grouped(TgContext *ctx, TgStatus *s, Event **done) {
  Comm *c = ctx->comm;
  comm_close(c, -1, false);
  *s = comm_await(c, NULL);
  if (*s || !nccl_posted(c->nccl)) return NULL;
  Device *own = streaming(ctx, c->rank);
  void *stream = own->backend->stream(own);
  *s = stream ? nccl_group(c->nccl, stream) : ctx->err.status;
  if (!*s) *s = own->backend->stream_event(own, done ? done : &own->fence);
  return own;
}

TgStatus copies_awaited(TgContext *ctx) {
  TgStatus s = TG_OK;
  Device *own = ctx->comm ? copies_grouped(ctx, &s, NULL) : NULL;
  return s || !own ? s : own->backend->event_wait(own, own->fence);
}

TgStatus device_read(TgContext *ctx, Device *d, void *dst, const void *src, size_t nbytes) {
  int reader = abs(ctx->reader) - 1;
  bool here = ctx->reader >= 0;
  if (!d->of_rank || (reader >= 0 && reader == d->of_rank - 1))
    return here ? d->backend->copy_out(d, dst, src, nbytes) : TG_OK;
  TgStatus s = ctx->comm->transport->heads_only ? nccl_ready(ctx) : TG_OK;
  Exchange e = comm_begin(ctx->comm, d->index, -1, nbytes);
  if (here && d->remote) ctx->counters.bytes_read += nbytes;
  if (s || (!here && d->remote)) return s;
  return moved(ctx, &e, NULL, reader, here ? dst : NULL, d, (char *)src, nbytes);
}

TgStatus tg_comm_read(TgTensor *t, int rank, void *out, size_t nbytes) {
  if (!t) return TG_ERR_VALUE;
  TgContext *ctx = t->ctx;
  TG_REQUIRE_OR(ctx, rank >= 0 && rank < tg_comm_size(ctx), TG_ERR_VALUE, TG_ERR_VALUE,
                "comm_read: there is no rank %d", rank);
  ctx->reader = rank == tg_comm_rank(ctx) ? rank + 1 : -1 - rank;
  TgStatus s = tg_read(t, out, nbytes);
  ctx->reader = 0;
  return s;
}

/* ---- what the ranks run */
void plan_shared(TgContext *ctx, const Plan *p) {
  if (ctx->comm && p && p->dev->of_rank) comm_scheduled(ctx->comm, p->hash);
}

TgStatus rank_going_on(TgContext *ctx, TgStatus s) {
  if (s && ctx->comm) comm_failed(ctx->comm, ctx->err.msg);
  return s;
}
