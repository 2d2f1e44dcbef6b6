/* comm.c: exchanges between ranks. In: bytes, and from which rank to which. Out: the same bytes there, or an
 * error that names the rank which failed, ended, runs another program or does not come. */
#define _GNU_SOURCE
#include "runtime/comm.h"
#include "base/os.h"
#include "uop/uop.h"
#include <stdio.h>
#include <string.h>

/* Before the bytes of each message. */
typedef struct Head {
  uint64_t exchange, hash, nbytes;
} Head;

/* ---- errors */
typedef struct Place {
  char text[200];
} Place;

static const char *device_of(const Comm *c, int device) {
  return device < 0 ? "all ranks" : c->device_name(c->user, device);
}

static Place place_of(const Comm *c, const RankState *s) {
  Place p = {"joining"};
  if (s->exchange)
    snprintf(p.text, sizeof p.text, "exchange %llu after schedule %llu, %llu bytes of %s from %s to %s",
             (unsigned long long)s->exchange, (unsigned long long)s->schedules, (unsigned long long)s->nbytes,
             s->op ? op_name((Ops)s->op) : "memory", device_of(c, s->from), device_of(c, s->to));
  return p;
}

/* Ranks are not at one place any more: no exchange can follow. */
TG_PRINTF(2, 3) static TgStatus broken(Comm *c, const char *form, ...) {
  char text[sizeof c->now.failed];
  va_list a;
  va_start(a, form);
  vsnprintf(text, sizeof text, form, a);
  va_end(a);
  c->broken = true;
  TgStatus s = error_set(c->err, TG_ERR_DEVICE, "%s", text);
  comm_failed(c, text);
  return s;
}

void comm_failed(Comm *c, const char *why) {
  c->now.phase = PHASE_FAILED;
  c->now.errors++;
  snprintf(c->now.failed, sizeof c->now.failed, "%s", why);
  c->transport->tell(c->at, &c->now);
}

/* Why a rank does not move anything; FINE: it may still. */
typedef enum Verdict { FINE, FAILED, LEFT, OTHER_PROGRAM, ENDED, LATE } Verdict;

static Verdict rank_looked_at(const Comm *c, int rank, double waited_s, RankState *s) {
  bool known = c->transport->ask(c->at, rank, s);
  if (!known) *s = (RankState){0};
  if (s->phase == PHASE_FAILED && s->errors > c->now.errors) return FAILED;
  if (s->phase == PHASE_LEFT) return LEFT;
  if (known && s->exchange == c->now.exchange && s->hash != c->now.hash) return OTHER_PROGRAM;
  if (c->transport->ended(c->at, rank)) return ENDED;
  bool waits = s->waits && s->waits != c->rank + 1; /* for another, of which it will tell */
  return waited_s > c->timeout_s * (waits ? 3 : 1) ? LATE : FINE;
}

static TgStatus told(Comm *c, int rank, Verdict v, const RankState *s) {
  Place here = place_of(c, &c->now), there = place_of(c, s);
  switch (v) {
  case FAILED:
    if (!strncmp(s->failed, "comm: ", 6)) return broken(c, "%s", s->failed); /* who failed first */
    return broken(c, "comm: rank %d failed: %.120s; rank %d waited for it at %s", rank, s->failed, c->rank,
                  here.text);
  case OTHER_PROGRAM:
    return broken(c, "comm: ranks %d and %d run different programs: at %s; at %s", c->rank, rank, here.text,
                  there.text);
  case LATE:
    return broken(c, "comm: rank %d has not come for %.0f s; rank %d waits for it at %s", rank, c->timeout_s,
                  c->rank, here.text);
  default:
    return broken(c, "comm: rank %d has %s; rank %d waited for it at %s", rank, v == LEFT ? "left" : "ended",
                  c->rank, here.text);
  }
}

/* ---- bytes */
enum { LOOKED_AT = 256 }; /* a rank is, when nothing moved so many times */

static void waits_told(Comm *c, int32_t waits) {
  if (c->now.waits == waits) return;
  c->now.waits = waits;
  c->transport->tell(c->at, &c->now);
}

/* All of n bytes to or from a rank. What it sent before it ended is taken all the same. */
static TgStatus moved(Comm *c, int rank, bool out, char *p, size_t n) {
  double since = 0;
  for (int times = 0; n;) {
    RankState s;
    Verdict v = times < LOOKED_AT ? FINE : rank_looked_at(c, rank, time_now_s() - since, &s);
    size_t k = out ? c->transport->send(c->at, rank, p, n) : c->transport->receive(c->at, rank, p, n);
    if (!k && v) return told(c, rank, v, &s);
    if (!k && *c->stop) return TG_ERR_CANCELLED;
    if (!k && !times) since = time_now_s();
    if (times == LOOKED_AT) waits_told(c, rank + 1);
    if (!k) c->transport->idle(c->at, times);
    times = k ? 0 : times + (times < INT32_MAX);
    p += k;
    n -= k;
  }
  waits_told(c, 0);
  return TG_OK;
}

static TgStatus is_broken(Comm *c) {
  if (!c->broken) return TG_OK;
  return error_set(c->err, TG_ERR_DEVICE, "%s", c->now.failed);
}

void comm_scheduled(Comm *c, uint64_t hash) {
  c->now.schedules++;
  c->now.hash = hash_mix(c->now.hash, hash);
}

void comm_begin(Comm *c, int from, int to, size_t nbytes) {
  c->now.phase = c->broken ? PHASE_FAILED : PHASE_RUNS;
  c->now.exchange++;
  c->now.from = from;
  c->now.to = to;
  c->now.nbytes = nbytes;
  c->now.hash = hash_mix(hash_mix(c->now.hash, nbytes), (uint64_t)(uint32_t)from << 32 | (uint32_t)to);
  c->transport->tell(c->at, &c->now);
}

TgStatus comm_send(Comm *c, int rank, const void *p, size_t nbytes) {
  Head h = {c->now.exchange, c->now.hash, nbytes};
  TgStatus s = is_broken(c);
  if (!s) s = moved(c, rank, true, (char *)&h, sizeof h);
  return s ? s : moved(c, rank, true, (char *)p, nbytes);
}

TgStatus comm_receive(Comm *c, int rank, void *p, size_t nbytes) {
  Head h;
  TgStatus s = is_broken(c);
  if (!s) s = moved(c, rank, false, (char *)&h, sizeof h);
  if (s) return s;
  bool same = h.exchange == c->now.exchange && h.hash == c->now.hash && h.nbytes == nbytes;
  if (!same)
    return broken(c,
                  "comm: ranks %d and %d run different programs: at %s; rank %d sends %llu bytes at its %llu",
                  c->rank, rank, place_of(c, &c->now).text, rank, (unsigned long long)h.nbytes,
                  (unsigned long long)h.exchange);
  return moved(c, rank, false, p, nbytes);
}

TgStatus comm_broadcast(Comm *c, int from, void *p, size_t nbytes) {
  if (c->rank != from) return comm_receive(c, from, p, nbytes);
  TgStatus s = TG_OK;
  for (int r = 0; !s && r < c->size; r++)
    if (r != from) s = comm_send(c, r, p, nbytes);
  return s;
}

/* ---- life */
/* "mpi" is the transport of libtg_mpi.so; a name with a slash is a path. */
static const Transport *transport_named(Comm *c, const char *name) {
  char path[300];
  if (!strcmp(name, "local")) return &transport_local;
  snprintf(path, sizeof path, strchr(name, '/') ? "%s" : "libtg_%s.so", name);
  const Transport *(*get)(void) = NULL;
  c->library = c->os->library_open(path);
  void *symbol = c->library ? c->os->library_symbol(c->library, TRANSPORT_SYMBOL) : NULL;
  memcpy(&get, &symbol, sizeof get);
  const Transport *t = get ? get() : NULL;
  if (t && t->size == sizeof *t) return t;
  error_set(c->err, TG_ERR_DEVICE, "comm: TG_COMM=%s: %s %s", name, path,
            !c->library ? "is not found, or does not load"
            : t         ? "is of another version of the library"
                        : "is no transport");
  return NULL;
}

Comm *comm_join(TgMem *mem, const TgOs *os, const TgEnv *env, TgError *err, uint64_t agreed) {
  static const _Atomic bool never;
  Comm *c = mem_alloc(mem, sizeof *c);
  if (!c) return error_set(err, TG_ERR_NOMEM, "comm: out of memory"), NULL;
  *c = (Comm){.mem = mem, .os = os, .err = err, .stop = &never, .timeout_s = env->comm_timeout};
  Group g = {.name = *env->comm_name ? env->comm_name : NULL,
             .rank = env->comm_rank,
             .size = env->comm_size,
             .timeout_s = c->timeout_s,
             .system = os};
  c->transport = transport_named(c, env->comm);
  if (c->transport && !(c->at = c->transport->join(&g)))
    error_set(err, TG_ERR_DEVICE, "comm: %s: %s", c->transport->name, g.why);
  if (!c->at) return comm_leave(c), NULL;
  c->rank = g.rank;
  c->size = g.size;
  c->now.phase = PHASE_RUNS;
  c->now.hash = agreed;
  return c;
}

void comm_leave(Comm *c) {
  if (!c) return;
  if (c->at) {
    if (c->now.phase == PHASE_RUNS) c->now.phase = PHASE_LEFT;
    c->transport->tell(c->at, &c->now);
    c->transport->leave(c->at);
  }
  if (c->library) c->os->library_close(c->library);
  mem_free(c->mem, c);
}
