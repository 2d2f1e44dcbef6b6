/* local.c: the transport between ranks of one machine. In: the path of a file, which the first rank creates
 * and all ranks map. Out: a ring of bytes for each two ranks and direction, and the state of each rank. The
 * file is unlinked as soon as all ranks are there, so nothing stays behind. Each rank holds a lock on it that
 * ends with its process. */
#define _GNU_SOURCE
#include "runtime/transport.h"
#include "base/os.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 64, LEAST_RING = 4 << 10, MOST_RING = 1 << 20, ALL_RINGS = 16 << 20 };

/* What a rank shares with the other ranks. Only the rank itself writes it, except for `called`. */
typedef struct Slot {
  _Alignas(64) _Atomic uint32_t version; /* odd while `state` is being written */
  RankState state;
  /* is incremented when another rank has moved something for this rank */
  _Alignas(64) _Atomic uint32_t called;
  _Atomic uint32_t sleeps;
} Slot;

typedef struct Ring {
  _Alignas(64) _Atomic uint64_t written;
  _Alignas(64) _Atomic uint64_t read;
} Ring; /* its bytes follow */

typedef struct Shared {
  /* size: number of ranks. ready: all are there, and the file has no name any more. */
  _Atomic uint32_t size, ready;
  Slot slot[MOST_RANKS];
} Shared;

typedef struct Local {
  const TgOs *os;
  Shared *at;
  size_t nbytes, ring;
  int fd, rank, size;
  uint32_t called; /* the rank's `called` before the last look */
} Local;

/* ---- rings */
static size_t ring_bytes(int size) {
  size_t n = MOST_RING;
  while (n > LEAST_RING && n * (size_t)size * (size_t)size > ALL_RINGS)
    n /= 2;
  return n;
}

static Ring *ring_at(const Local *t, int from, int to) {
  size_t i = (size_t)from * (size_t)t->size + (size_t)to;
  return (Ring *)((char *)(t->at + 1) + i * (sizeof(Ring) + t->ring));
}

static void rank_called(const Local *t, int rank) {
  Slot *s = &t->at->slot[rank];
  atomic_fetch_add(&s->called, 1);
  if (atomic_load(&s->sleeps)) t->os->shared_wake((uint32_t *)&s->called);
}

/* Copies n bytes into (out) or out of a ring, at position `from`. The bytes may be in two pieces. */
static void ring_copy(const Local *t, Ring *r, uint64_t from, void *p, size_t n, bool out) {
  char *bytes = (char *)(r + 1);
  size_t at = (size_t)(from % t->ring), first = TG_MIN(n, t->ring - at);
  if (out) {
    memcpy(bytes + at, p, first);
    memcpy(bytes, (char *)p + first, n - first);
  } else {
    memcpy(p, bytes + at, first);
    memcpy((char *)p + first, bytes, n - first);
  }
}

static size_t local_send(void *transport, int to, const void *p, size_t n) {
  const Local *t = transport;
  Ring *r = ring_at(t, t->rank, to);
  uint64_t written = atomic_load(&r->written), room = t->ring - (written - atomic_load(&r->read));
  n = TG_MIN(n, (size_t)room);
  if (!n) return 0;
  ring_copy(t, r, written, (void *)p, n, true);
  atomic_store(&r->written, written + n);
  rank_called(t, to);
  return n;
}

static size_t local_receive(void *transport, int from, void *p, size_t n) {
  const Local *t = transport;
  Ring *r = ring_at(t, from, t->rank);
  uint64_t read = atomic_load(&r->read), there = atomic_load(&r->written) - read;
  n = TG_MIN(n, (size_t)there);
  if (!n) return 0;
  ring_copy(t, r, read, p, n, false);
  atomic_store(&r->read, read + n);
  rank_called(t, from);
  return n;
}

/* ---- states of ranks */
static void local_tell(void *transport, const RankState *now) {
  const Local *t = transport;
  Slot *s = &t->at->slot[t->rank];
  size_t n = now->phase == PHASE_FAILED ? sizeof *now : offsetof(RankState, failed);
  atomic_fetch_add(&s->version, 1);
  memcpy(&s->state, now, n);
  atomic_fetch_add(&s->version, 1);
}

static bool local_ask(void *transport, int rank, RankState *out) {
  Slot *s = &((const Local *)transport)->at->slot[rank];
  uint32_t before = atomic_load(&s->version);
  *out = s->state;
  out->failed[sizeof out->failed - 1] = 0;
  return before % 2 == 0 && atomic_load(&s->version) == before;
}

static int local_ended(void *transport, int rank) {
  const Local *t = transport;
  return t->os->file_mark(t->fd, rank, false) == 0;
}

/* First returns at once, so that the caller looks again; later sleeps until it is called, so that another
 * rank can run if there are more ranks than cores. */
static void local_idle(void *transport, int times) {
  enum { SPINS = 200, SLEEP_US = 20000 };

  Local *t = transport;
  Slot *s = &t->at->slot[t->rank];
  if (times < SPINS)
    atomic_thread_fence(memory_order_seq_cst);
  else {
    if (times > SPINS) t->os->shared_wait((uint32_t *)&s->called, t->called, SLEEP_US);
    t->called = atomic_load(&s->called);
  }
  atomic_store(&s->sleeps, times >= SPINS);
}

/* ---- life */
static void local_leave(void *transport) {
  Local *t = transport;
  if (t->at) t->os->munmap(t->at, t->nbytes);
  if (t->fd >= 0) t->os->close(t->fd);
  free(t);
}

static bool file_mapped(Local *t, Group *g) {
  t->fd = t->os->open(g->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  bool made = t->fd >= 0 && !t->os->ftruncate(t->fd, (off_t)t->nbytes);
  void *p = made ? t->os->mmap(NULL, t->nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0) : MAP_FAILED;
  if (p != MAP_FAILED) t->at = p;
  if (!t->at)
    snprintf(g->why, sizeof g->why, "%.160s cannot be made and mapped: %s", g->name, strerror(errno));
  return t->at != NULL;
}

/* Takes the rank's place, if it is free and the file belongs to this group. */
static bool place_taken(Local *t, Group *g) {
  uint32_t none = 0;
  bool same =
      atomic_compare_exchange_strong(&t->at->size, &none, (uint32_t)t->size) || none == (uint32_t)t->size;
  if (!same)
    snprintf(g->why, sizeof g->why, "TG_COMM_SIZE is %d, and another rank's is %u", t->size, none);
  else if (t->os->file_mark(t->fd, t->rank, true))
    snprintf(g->why, sizeof g->why, "rank %d is there already, process %d", t->rank,
             t->os->file_mark(t->fd, t->rank, false));
  else if (t->at->slot[t->rank].state.phase != PHASE_ABSENT)
    snprintf(g->why, sizeof g->why, "%.160s is of an earlier program: remove it", g->name);
  else
    return true;
  return false;
}

/* Returns the lowest rank that has not come yet. -1: all have come. */
static int rank_missing(Local *t) {
  for (int r = 0; r < t->size; r++)
    if (t->at->slot[r].state.phase == PHASE_ABSENT) return r;
  return -1;
}

/* Waits until all ranks have come. The file is then unlinked, because a later group is another one. */
static bool all_came(Local *t, Group *g) {
  double begin = time_now_s();
  int r;
  while ((r = rank_missing(t)) >= 0 || (t->rank && !atomic_load(&t->at->ready))) {
    bool late = time_now_s() - begin > g->timeout_s;
    for (int k = 0; k < t->size && !late; k++)
      if (k != t->rank && t->at->slot[k].state.phase != PHASE_ABSENT && local_ended(t, k)) r = k, late = true;
    if (!late) t->os->sleep_us(500);
    if (!late) continue;
    snprintf(g->why, sizeof g->why, "rank %d does not come, or has ended", TG_MAX(r, 0));
    t->os->unlink(g->name);
    return false;
  }
  if (!t->rank) t->os->unlink(g->name), atomic_store(&t->at->ready, 1);
  return true;
}

static void *local_join(Group *g) {
  bool fits = g->size <= MOST_RANKS && g->rank < g->size && g->name;
  Local *t = fits ? calloc(1, sizeof *t) : NULL;
  if (!t) {
    snprintf(g->why, sizeof g->why, "rank %d of %d, at most %d, TG_COMM_NAME=%.100s; `tg launch` sets these",
             g->rank, g->size, MOST_RANKS, g->name ? g->name : "");
    return NULL;
  }
  *t = (Local){.os = g->system, .fd = -1, .rank = g->rank, .size = g->size, .ring = ring_bytes(g->size)};
  t->nbytes = sizeof(Shared) + (size_t)t->size * (size_t)t->size * (sizeof(Ring) + t->ring);
  bool there = file_mapped(t, g) && place_taken(t, g);
  if (there) local_tell(t, &(RankState){.phase = PHASE_RUNS});
  if (there && all_came(t, g)) return t;
  local_leave(t);
  return NULL;
}

const Transport transport_local = TRANSPORT(local, false);
