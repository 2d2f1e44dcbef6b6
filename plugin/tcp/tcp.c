/* tcp.c: ranks that find each other by an address: TG_COMM_NAME=HOST:PORT, where rank 0 listens, TG_COMM_RANK
 * and TG_COMM_SIZE. In: sockets. Out: a transport (runtime/transport.h) as a shared library of its own,
 * libtg_tcp.so. It carries no tensors. It is there for what TG_COMM=nccl does not do between machines: the
 * ncclUniqueId, heads of messages, what ranks agree on, where each rank is. Between two ranks are two
 * connections, one of bytes and one of states, so that no state waits behind bytes. Whoever reaches the port
 * may join: for networks that are trusted. */
#define _GNU_SOURCE
#include "runtime/transport.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum { BYTES, STATES, KINDS };

enum { MAGIC = 0x74676331, RETRY_MS = 50, RESTS_AFTER = 200, REST_MS = 20 };

/* The first thing on a connection, from the higher rank to the lower. port: where it listens itself. */
typedef struct Hello {
  uint32_t magic, state_bytes;
  int32_t rank, size, kind, port;
} Hello;

typedef struct Link {
  int fd[KINDS]; /* -1: not there */
  struct sockaddr_storage at;
  bool ended, known;
  bool waits_in, waits_out; /* nothing moved when it was tried last */
  RankState heard, telling;
  size_t got, left; /* bytes of heard's successor; bytes of `telling` that are to go */
  bool old;         /* what it was told is not what is so now */
  RankState coming;
} Link;

typedef struct Tcp {
  int rank, size, listener;
  Link *link; /* by rank */
  RankState now;
  struct pollfd *poll;
  Group *group;
  double until_s;
} Tcp;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool says(Tcp *t, int rank, const char *why) {
  if (!*t->group->why) snprintf(t->group->why, sizeof t->group->why, "rank %d %s", rank, why);
  return false;
}

static bool not_there(Tcp *t, int rank) { return says(t, rank, "does not come, or has ended"); }

/* ---- connections that are being made: each call waits until the time is over */
static bool ready(const Tcp *t, int fd, short what) {
  struct pollfd p = {.fd = fd, .events = what};
  for (;;) {
    double left_s = t->until_s - now_s();
    int n = left_s > 0 ? poll(&p, 1, (int)(left_s * 1000) + 1) : 0;
    if (n >= 0 || errno != EINTR) return n > 0;
  }
}

static bool all_moved(const Tcp *t, int fd, void *p, size_t n, bool out) {
  for (size_t done = 0; done < n;) {
    char *at = (char *)p + done;
    if (!ready(t, fd, out ? POLLOUT : POLLIN)) return false;
    ssize_t k = out ? send(fd, at, n - done, MSG_NOSIGNAL) : recv(fd, at, n - done, 0);
    if (k < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (k <= 0) return false;
    done += (size_t)k;
  }
  return true;
}

static bool set(int fd) {
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  return !setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static socklen_t address_bytes(const struct sockaddr_storage *a) {
  return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static in_port_t *port_of(struct sockaddr_storage *a) {
  return a->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)a)->sin6_port
                                  : &((struct sockaddr_in *)a)->sin_port;
}

/* -1: nobody listens there until the time is over. A rank may be asked before it listens. */
static int connected(const Tcp *t, const struct sockaddr_storage *a) {
  while (now_s() < t->until_s) {
    int fd = socket(a->ss_family, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    if (!connect(fd, (const struct sockaddr *)a, address_bytes(a)) && set(fd)) return fd;
    close(fd);
    nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
  }
  return -1;
}

static bool listens(Tcp *t, struct sockaddr_storage *a) {
  int on = 1;
  socklen_t n = sizeof *a;
  t->listener = socket(a->ss_family, SOCK_STREAM, 0);
  if (t->listener >= 0) setsockopt(t->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (t->listener >= 0 && !bind(t->listener, (struct sockaddr *)a, address_bytes(a)) &&
      !listen(t->listener, KINDS * t->size) && !getsockname(t->listener, (struct sockaddr *)a, &n))
    return true;
  snprintf(t->group->why, sizeof t->group->why, "rank %d cannot listen: %s", t->rank, strerror(errno));
  return false;
}

static bool called(Tcp *t, int rank, int kind) {
  Link *l = &t->link[rank];
  struct sockaddr_storage own;
  socklen_t n = sizeof own;
  if ((l->fd[kind] = connected(t, &l->at)) < 0) return not_there(t, rank);
  if (t->listener < 0) { /* the first: where it is reached by it, others reach it too */
    if (getsockname(l->fd[kind], (struct sockaddr *)&own, &n)) return not_there(t, rank);
    *port_of(&own) = 0;
    if (!listens(t, &own)) return false;
  }
  n = sizeof own;
  if (getsockname(t->listener, (struct sockaddr *)&own, &n)) return not_there(t, rank);
  Hello h = {MAGIC, sizeof(RankState), t->rank, t->size, kind, ntohs(*port_of(&own))};
  return all_moved(t, l->fd[kind], &h, sizeof h, true) || not_there(t, rank);
}

/* Somebody who is no rank is sent away, and so is who comes twice. */
static bool one_taken(Tcp *t) {
  Hello h = {0};
  struct sockaddr_storage from;
  socklen_t n = sizeof from;
  int fd = accept(t->listener, (struct sockaddr *)&from, &n);
  double until_s = t->until_s, hello_s = now_s() + 2; /* who says nothing keeps nobody for long */
  if (fd < 0) return true;
  if (hello_s < until_s) t->until_s = hello_s;
  bool ok = set(fd) && all_moved(t, fd, &h, sizeof h, false) && h.magic == MAGIC;
  t->until_s = until_s;
  bool same = h.state_bytes == sizeof(RankState) && h.size == t->size;
  bool fits = same && h.rank > t->rank && h.rank < t->size && h.kind >= 0 && h.kind < KINDS;
  if (!ok || !fits || t->link[h.rank].fd[h.kind] >= 0) close(fd);
  if (ok && !same) return says(t, h.rank, "has another TG_COMM_SIZE, or another version of the library");
  if (!ok || !fits) return true;
  if (t->link[h.rank].fd[h.kind] >= 0) return says(t, h.rank, "is there twice");
  t->link[h.rank].fd[h.kind] = fd;
  t->link[h.rank].at = from;
  *port_of(&t->link[h.rank].at) = htons((uint16_t)h.port);
  return true;
}

static bool higher_came(Tcp *t, int kind) {
  for (int r = t->rank + 1; r < t->size; r++)
    while (t->link[r].fd[kind] < 0) {
      if (!ready(t, t->listener, POLLIN)) return not_there(t, r);
      if (!one_taken(t)) return false;
    }
  return true;
}

/* Where the ranks listen, from rank 0, when all are there. */
static bool addresses_told(Tcp *t) {
  for (int r = 1; r < t->size; r++)
    for (int to = t->rank ? t->rank : 1; to < (t->rank ? t->rank + 1 : t->size); to++) {
      int peer = t->rank ? 0 : to;
      if (!all_moved(t, t->link[peer].fd[BYTES], &t->link[r].at, sizeof t->link[r].at, !t->rank))
        return not_there(t, peer);
    }
  return true;
}

/* "HOST:PORT", "[ADDRESS]:PORT" */
static bool address_of(const char *name, struct sockaddr_storage *out) {
  char host[256];
  const char *colon = strrchr(name, ':');
  bool quoted = *name == '[';
  if (!colon) return false;
  snprintf(host, sizeof host, "%.*s", (int)(colon - name) - 2 * quoted, name + quoted);
  struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *all = NULL;
  if (getaddrinfo(host, colon + 1, &hint, &all) || !all) return false;
  memcpy(out, all->ai_addr, all->ai_addrlen);
  freeaddrinfo(all);
  return out->ss_family == AF_INET || out->ss_family == AF_INET6;
}

static bool joined(Tcp *t) {
  if (!t->rank && !listens(t, &t->link[0].at)) return false;
  if (t->rank && !called(t, 0, BYTES)) return false;
  if (!t->rank && !higher_came(t, BYTES)) return false;
  if (!addresses_told(t)) return false;
  for (int r = 0; r < t->rank; r++)
    for (int kind = r ? BYTES : STATES; kind < KINDS; kind++)
      if (!called(t, r, kind)) return false;
  return higher_came(t, BYTES) && higher_came(t, STATES);
}

static void dropped(Tcp *t) {
  for (int r = 0; r < t->size; r++)
    for (int kind = 0; kind < KINDS; kind++)
      if (t->link[r].fd[kind] >= 0) close(t->link[r].fd[kind]);
  if (t->listener >= 0) close(t->listener);
  free(t->link), free(t->poll);
  free(t);
}

static void *tcp_join(Group *g) {
  Tcp *t = g->name && g->rank < g->size ? calloc(1, sizeof *t) : NULL;
  if (t) *t = (Tcp){.rank = g->rank, .size = g->size, .listener = -1, .group = g};
  if (t) t->link = calloc((size_t)g->size, sizeof *t->link);
  if (t) t->poll = calloc((size_t)g->size, KINDS * sizeof *t->poll);
  if (!t || !t->link || !t->poll) {
    snprintf(g->why, sizeof g->why, "rank %d of %d, TG_COMM_NAME=%.100s", g->rank, g->size,
             g->name ? g->name : "");
    if (t) free(t->link), free(t->poll);
    free(t);
    return NULL;
  }
  for (int r = 0; r < t->size; r++)
    t->link[r].fd[BYTES] = t->link[r].fd[STATES] = -1;
  t->until_s = now_s() + g->timeout_s;
  if (!address_of(g->name, &t->link[0].at))
    snprintf(g->why, sizeof g->why, "TG_COMM_NAME=%.160s is no address HOST:PORT", g->name);
  else if (joined(t)) {
    close(t->listener);
    t->listener = -1;
    t->group = NULL;
    return t;
  }
  dropped(t);
  return NULL;
}

/* ---- bytes */
static size_t moved_now(bool *waits, ssize_t k) {
  *waits = k <= 0;
  return k > 0 ? (size_t)k : 0;
}

static size_t tcp_send(void *transport, int to, const void *p, size_t n) {
  Link *l = &((Tcp *)transport)->link[to];
  return moved_now(&l->waits_out, send(l->fd[BYTES], p, n, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static size_t tcp_receive(void *transport, int from, void *p, size_t n) {
  Link *l = &((Tcp *)transport)->link[from];
  return moved_now(&l->waits_in, recv(l->fd[BYTES], p, n, MSG_DONTWAIT));
}

/* ---- where ranks are */
/* A state goes whole: what is so meanwhile follows it. */
static void state_sent(const Tcp *t, Link *l) {
  while (l->fd[STATES] >= 0 && !l->ended && (l->left || l->old)) {
    if (!l->left) l->telling = t->now, l->left = sizeof l->telling, l->old = false;
    ssize_t k =
        send(l->fd[STATES], (char *)(&l->telling + 1) - l->left, l->left, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (k <= 0) return;
    l->left -= (size_t)k;
  }
}

static void states_heard(Link *l) {
  while (l->fd[STATES] >= 0 && !l->ended) {
    ssize_t k = recv(l->fd[STATES], (char *)&l->coming + l->got, sizeof l->coming - l->got, MSG_DONTWAIT);
    if (k < 0 && (errno == EAGAIN || errno == EINTR)) return;
    l->ended = k <= 0;
    l->got += k > 0 ? (size_t)k : 0;
    if (l->got < sizeof l->coming) continue;
    l->coming.failed[sizeof l->coming.failed - 1] = 0;
    l->heard = l->coming;
    l->known = true;
    l->got = 0;
  }
}

/* What others need not know at once waits until this rank has nothing else to do. */
static void tcp_tell(void *transport, const RankState *now) {
  Tcp *t = transport;
  t->now = *now;
  for (int r = 0; r < t->size; r++) {
    t->link[r].old = true;
    if (now->phase != PHASE_RUNS) state_sent(t, &t->link[r]);
  }
}

static bool tcp_ask(void *transport, int rank, RankState *out) {
  Link *l = &((Tcp *)transport)->link[rank];
  states_heard(l);
  *out = l->heard;
  return l->known;
}

static int tcp_ended(void *transport, int rank) {
  Link *l = &((Tcp *)transport)->link[rank];
  states_heard(l);
  return l->ended;
}

/* First it looks again at once, then sleeps until something can move that could not. */
static void tcp_idle(void *transport, int times) {
  Tcp *t = transport;
  nfds_t n = 0;
  if (times < RESTS_AFTER) return;
  for (int r = 0; r < t->size; r++) {
    Link *l = &t->link[r];
    state_sent(t, l);
    states_heard(l);
    short what = (l->waits_in ? POLLIN : 0) | (l->waits_out ? POLLOUT : 0);
    if (what && !l->ended) t->poll[n++] = (struct pollfd){.fd = l->fd[BYTES], .events = what};
    if (l->fd[STATES] >= 0 && !l->ended)
      t->poll[n++] = (struct pollfd){.fd = l->fd[STATES], .events = POLLIN};
    l->waits_in = l->waits_out = false;
  }
  poll(t->poll, n, REST_MS);
}

/* Who reads late still finds what this rank said last. */
static void tcp_leave(void *transport) {
  Tcp *t = transport;
  for (int r = 0; r < t->size; r++) {
    if (r == t->rank) continue;
    state_sent(t, &t->link[r]);
    states_heard(&t->link[r]);
    shutdown(t->link[r].fd[STATES], SHUT_WR);
  }
  dropped(t);
}

__attribute__((visibility("default"))) const Transport *tg_transport(void) {
  static const Transport transport = TRANSPORT(tcp, true);
  return &transport;
}
