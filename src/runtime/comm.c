/* comm.c: exchanges between ranks. In: bytes, their sender and their receiver. Out: the same bytes there, or
 * an error that names the rank that failed, ended, runs another program or does not come. */
#define _GNU_SOURCE
#include "runtime/comm.h"
#include "base/os.h"
#include "runtime/nccl.h"
#include "uop/uop.h"
#include <stdio.h>
#include <string.h>

/* Sent before the bytes of each message. */
typedef struct Head {
  uint64_t number, hash, nbytes;
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

static Place exchange_place(const Comm *c, const Exchange *e) {
  RankState s = {.exchange = e->number, .schedules = e->schedules, .nbytes = e->nbytes};
  s.from = e->from;
  s.to = e->to;
  s.op = e->op;
  return place_of(c, &s);
}

/* Sets an error after which no exchange can follow, because the ranks are at different places of the
 * program. */
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

/* Why a rank moves nothing. FINE: it may still do so. */
typedef enum Verdict { FINE, FAILED, LEFT, OTHER_PROGRAM, ENDED, LATE } Verdict;

static Verdict rank_looked_at(const Comm *c, int rank, double waited_s, RankState *s) {
  bool known = c->transport->ask(c->at, rank, s);
  if (!known) *s = (RankState){0};
  if (s->phase == PHASE_FAILED && s->errors > c->now.errors) return FAILED;
  if (s->phase == PHASE_LEFT) return LEFT;
  if (known && s->exchange == c->now.exchange && s->hash != c->now.hash) return OTHER_PROGRAM;
  if (c->transport->ended(c->at, rank)) return ENDED;
  /* It waits for a third rank, whose error it will report, so it gets more time. */
  bool waits = s->waits && s->waits != c->rank + 1;
  return waited_s > c->timeout_s * (waits ? 3 : 1) ? LATE : FINE;
}

/* Sets the error of a rank that moves nothing. at: the exchange that does not move. */
static TgStatus told(Comm *c, int rank, Verdict v, const RankState *s, const Exchange *at) {
  Place here = exchange_place(c, at), there = place_of(c, s);
  switch (v) {
  case FAILED:
    /* this error already names the rank that failed first */
    if (!strncmp(s->failed, "comm: ", 6)) return broken(c, "%s", s->failed);
    return broken(c, "comm: rank %d failed: %.120s; rank %d waited for it at %s", rank, s->failed, c->rank,
                  here.text);
  case OTHER_PROGRAM:
    return broken(c, "comm: ranks %d and %d run different programs: at %s; at %s", c->rank, rank,
                  place_of(c, &c->now).text, there.text);
  case LATE:
    return broken(c, "comm: rank %d has not come for %.0f s; rank %d waits for it at %s", rank, c->timeout_s,
                  c->rank, here.text);
  default:
    return broken(c, "comm: rank %d has %s; rank %d waited for it at %s", rank, v == LEFT ? "left" : "ended",
                  c->rank, here.text);
  }
}

/* ---- messages */
typedef struct Piece {
  char *at;
  size_t n;
} Piece;

/* The copies that one rank sends to another, one behind the other. Piece 0 is the head. */
typedef struct Message {
  struct Message *next;
  Exchange of; /* the first exchange in it */
  Head head;
  Vec(Piece) piece;
  /* now: index of the piece that moves. done: bytes of it that have moved. */
  size_t now, done;
  bool closed;
} Message;

static Message **queue_of(const Comm *c, int rank, bool out) { return &c->queue[2 * rank + out]; }

static void message_free(Comm *c, Message *m) {
  vec_free(c->mem, &m->piece);
  mem_free(c->mem, m);
}

/* If a message was on its way, the ranks are at different places of the program from now on. */
void comm_drop(Comm *c) {
  bool any = false;
  for (int i = 0; i < 2 * c->size; i++)
    for (Message *m; (m = c->queue[i]) != NULL; any = true)
      c->queue[i] = m->next, message_free(c, m);
  if (!any || c->broken) return;
  c->broken = true;
  snprintf(c->now.failed, sizeof c->now.failed, "comm: rank %d gave an exchange up", c->rank);
}

static Message *message_open(Comm *c, const Exchange *e, int rank, bool out) {
  Message **at = queue_of(c, rank, out), *m;
  while (*at && ((*at)->closed || (*at)->next))
    at = &(*at)->next;
  if (*at) return *at;
  if (!(m = mem_alloc(c->mem, sizeof *m))) return NULL;
  m->of = *e;
  m->head = (Head){e->number, e->hash, 0};
  if (vec_push(c->mem, &m->piece, ((Piece){(char *)&m->head, sizeof m->head}))) return *at = m;
  message_free(c, m);
  return NULL;
}

static TgStatus is_broken(Comm *c) {
  if (!c->broken) return TG_OK;
  return error_set(c->err, TG_ERR_DEVICE, "%s", c->now.failed);
}

TgStatus comm_post(Comm *c, const Exchange *e, int rank, bool out, void *p, size_t nbytes) {
  if (is_broken(c)) return comm_drop(c), TG_ERR_DEVICE;
  Message *m = message_open(c, e, rank, out);
  if (!m || (nbytes && !vec_push(c->mem, &m->piece, ((Piece){p, nbytes})))) {
    comm_drop(c);
    return error_no_memory(c->err, "comm");
  }
  m->head.nbytes += nbytes;
  m->closed = m->head.nbytes >= c->bucket;
  return TG_OK;
}

void comm_close(Comm *c, int rank, bool out) {
  for (int i = 0; i < 2 * c->size; i++)
    for (Message *m = rank < 0 || i == 2 * rank + out ? c->queue[i] : NULL; m; m = m->next)
      m->closed = true;
}

/* Checks that what the other rank sends is what this rank waits for. */
static TgStatus head_checked(Comm *c, int rank, const Message *m, const Head *got) {
  bool same = got->number == m->of.number && got->hash == m->of.hash && got->nbytes == m->head.nbytes;
  if (same) return TG_OK;
  return broken(c,
                "comm: ranks %d and %d run different programs: at %s; rank %d sends %llu bytes at its %llu",
                c->rank, rank, exchange_place(c, &m->of).text, rank, (unsigned long long)got->nbytes,
                (unsigned long long)got->number);
}

/* Moves as much as possible of a message's next piece. Returns how many bytes moved. */
static size_t message_moved(Comm *c, int rank, bool out, Message *m, TgStatus *s) {
  Piece p = m->piece.at[m->now];
  Head *got = &c->heads[rank];
  if (!out && !m->now) p.at = (char *)got; /* the message's own head is the expected one */
  size_t k = out ? c->transport->send(c->at, rank, p.at + m->done, p.n - m->done)
                 : c->transport->receive(c->at, rank, p.at + m->done, p.n - m->done);
  m->done += k;
  if (m->done < p.n) return k;
  if (!out && !m->now) *s = head_checked(c, rank, m, got);
  m->done = 0;
  m->now++;
  return k;
}

/* Moves the first message between each two ranks, in each direction. */
static TgStatus advanced(Comm *c, bool *any) {
  TgStatus s = TG_OK;
  for (int i = 0; i < 2 * c->size && !s; i++)
    for (Message *m; (m = c->queue[i]) != NULL && m->closed && !s;) {
      size_t k = message_moved(c, i / 2, i % 2, m, &s);
      *any |= k > 0;
      if (!k) break;
      if (m->now == m->piece.len) c->queue[i] = m->next, message_free(c, m);
    }
  return s;
}

static bool message_has(const Message *m, const void *p) {
  for (size_t i = 1; i < m->piece.len; i++)
    if (m->piece.at[i].at == p) return true;
  return false;
}

/* Returns the index of a queue that contains p or, if p is NULL, a closed message. -1: none. */
static int queue_with(const Comm *c, const void *p) {
  for (int i = 0; i < 2 * c->size; i++)
    for (const Message *m = c->queue[i]; m; m = m->next)
      if (p ? message_has(m, p) : m->closed) return i;
  return -1;
}

bool comm_moves(const Comm *c, const void *p) { return queue_with(c, p) >= 0; }

TgStatus comm_advance(Comm *c) {
  bool any = false;
  TgStatus s = is_broken(c);
  if (!s) s = advanced(c, &any);
  if (s) comm_drop(c);
  return s;
}

/* A rank is looked at when nothing has moved this many times in a row. */
enum { LOOKED_AT = 256 };

static void waits_told(Comm *c, int32_t waits) {
  if (c->now.waits == waits) return;
  c->now.waits = waits;
  c->transport->tell(c->at, &c->now);
}

/* A rank is looked at before the messages are moved, so what it sent before it ended is still received. */
static TgStatus awaited(Comm *c, const void *p) {
  double since = 0;
  TgStatus s = is_broken(c);
  for (int times = 0, at; !s && (at = queue_with(c, p)) >= 0;) {
    RankState state;
    bool any = false;
    Verdict v = FINE;
    if (times >= LOOKED_AT) v = rank_looked_at(c, at / 2, time_now_s() - since, &state);
    if ((s = advanced(c, &any)) != TG_OK) break;
    if (!any && v) return told(c, at / 2, v, &state, &c->queue[at]->of);
    if (!any && *c->stop) return TG_ERR_CANCELLED;
    if (!any && !times) since = time_now_s();
    if (times == LOOKED_AT) waits_told(c, at / 2 + 1);
    if (!any) c->transport->idle(c->at, times);
    times = any ? 0 : times + (times < INT32_MAX);
  }
  waits_told(c, 0);
  return s;
}

TgStatus comm_await(Comm *c, const void *p) {
  TgStatus s = awaited(c, p);
  if (s) comm_drop(c);
  return s;
}

void comm_scheduled(Comm *c, uint64_t hash) {
  c->now.schedules++;
  c->hash = hash_mix(c->hash, hash);
}

static Exchange exchange_now(const RankState *s) {
  return (Exchange){s->exchange, s->schedules, s->hash, s->nbytes, s->from, s->to, s->op};
}

Exchange comm_begin(Comm *c, int from, int to, size_t nbytes) {
  c->now.phase = c->broken ? PHASE_FAILED : PHASE_RUNS;
  c->now.exchange++;
  c->now.from = from;
  c->now.to = to;
  c->now.nbytes = nbytes;
  c->hash = hash_mix(hash_mix(c->hash, nbytes), (uint64_t)(uint32_t)from << 32 | (uint32_t)to);
  c->now.hash = c->hash;
  c->transport->tell(c->at, &c->now);
  return exchange_now(&c->now);
}

/* Sends or receives a message of its own, and waits until it has moved. */
static TgStatus moved_alone(Comm *c, int rank, bool out, void *p, size_t nbytes) {
  Exchange e = exchange_now(&c->now);
  comm_close(c, rank, out);
  TgStatus s = comm_post(c, &e, rank, out, p, nbytes);
  if (!s) comm_close(c, rank, out);
  return s ? s : comm_await(c, NULL);
}

TgStatus comm_send(Comm *c, int rank, const void *p, size_t nbytes) {
  return moved_alone(c, rank, true, (void *)p, nbytes);
}

TgStatus comm_receive(Comm *c, int rank, void *p, size_t nbytes) {
  return moved_alone(c, rank, false, p, nbytes);
}

TgStatus comm_broadcast(Comm *c, int from, void *p, size_t nbytes) {
  if (c->rank != from) return comm_receive(c, from, p, nbytes);
  TgStatus s = TG_OK;
  for (int r = 0; !s && r < c->size; r++)
    if (r != from) s = comm_send(c, r, p, nbytes);
  return s;
}

/* ---- life */
/* NCCL only moves memory of GPUs. Returns the transport that finds the ranks and carries everything else,
 * which follows from the name of the group. */
static const char *beside_nccl(const char *group) {
  if (!group) return "mpi";
  return strchr(group, ':') && !strchr(group, '/') ? "tcp" : "local"; /* HOST:PORT, otherwise a file */
}

/* "mpi" is the transport in libtg_mpi.so; a name with a slash is the path of a library. */
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
  if (!c) return error_no_memory(err, "comm"), NULL;
  bool nccl = !strcmp(env->comm, "nccl");
  *c = (Comm){.mem = mem, .os = os, .err = err, .stop = &never, .timeout_s = env->comm_timeout};
  Group g = {.name = *env->comm_name ? env->comm_name : NULL,
             .rank = env->comm_rank,
             .size = env->comm_size,
             .timeout_s = c->timeout_s,
             .system = os};
  if (nccl && !(c->nccl = nccl_load(mem, os, env, err))) return comm_leave(c), NULL;
  c->transport = transport_named(c, nccl ? beside_nccl(g.name) : env->comm);
  if (c->transport && c->transport->heads_only && !nccl)
    error_set(err, TG_ERR_DEVICE, "comm: %s carries no tensors: TG_COMM is mpi, nccl or local",
              c->transport->name);
  else if (c->transport && !(c->at = c->transport->join(&g)))
    error_set(err, TG_ERR_DEVICE, "comm: %s: %s", c->transport->name, g.why);
  if (!c->at) return comm_leave(c), NULL;
  c->rank = g.rank;
  c->size = g.size;
  c->bucket = (size_t)env->comm_bucket;
  c->queue = mem_alloc(mem, 2 * (size_t)c->size * sizeof *c->queue);
  c->heads = mem_alloc(mem, (size_t)c->size * sizeof *c->heads);
  c->machine = mem_alloc(mem, (size_t)c->size * sizeof *c->machine);
  if (!c->queue || !c->heads || !c->machine) {
    error_no_memory(err, "comm");
    return comm_leave(c), NULL;
  }
  c->now.phase = PHASE_RUNS;
  c->hash = c->now.hash = agreed;
  return c;
}

void comm_leave(Comm *c) {
  if (!c) return;
  if (c->at) {
    if (c->now.phase == PHASE_RUNS) c->now.phase = PHASE_LEFT;
    if (c->queue) comm_drop(c);
    nccl_leave(c->nccl, !c->broken);
    c->nccl = NULL;
    c->transport->tell(c->at, &c->now);
    c->transport->leave(c->at);
  }
  mem_free(c->mem, c->queue), mem_free(c->mem, c->heads), mem_free(c->mem, c->machine);
  nccl_leave(c->nccl, true);
  if (c->library) c->os->library_close(c->library);
  mem_free(c->mem, c);
}
