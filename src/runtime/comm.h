/* comm.h: what moves between the ranks of a program, processes that all make the same calls. Each exchange
 * has a number and a hash of all before it, which go with its bytes: what does not fit is found before a byte
 * is used. A rank that failed, ended or does not come is told of by name. */
#ifndef TG_COMM_H
#define TG_COMM_H
#include "base/base.h"
#include "runtime/transport.h"

typedef struct Comm {
  const Transport *transport;
  void *at, *library;
  TgMem *mem;
  const TgOs *os;
  TgError *err;
  const _Atomic bool *stop; /* tg_cancel was called */
  const char *(*device_name)(void *user, int device);
  void *user;
  int rank, size;
  double timeout_s;
  bool broken; /* nothing moves any more */
  RankState now;
} Comm;

/* Joins the group that the environment names; `agreed`: what has to be the same everywhere. NULL: recorded. */
Comm *comm_join(TgMem *mem, const TgOs *os, const TgEnv *env, TgError *err, uint64_t agreed);
void comm_leave(Comm *c);
void comm_scheduled(Comm *c, uint64_t hash); /* a graph that the ranks share is to run */
/* The next exchange, which every rank begins. device -1: of none, or to all. */
void comm_begin(Comm *c, int from, int to, size_t nbytes);
TgStatus comm_send(Comm *c, int rank, const void *p, size_t nbytes);
TgStatus comm_receive(Comm *c, int rank, void *p, size_t nbytes);
/* p is `from`'s, and then everybody's. */
TgStatus comm_broadcast(Comm *c, int from, void *p, size_t nbytes);
/* A call failed here, and why: who waits for this rank, and whose calls did not fail as often, hears it. */
void comm_failed(Comm *c, const char *why);

extern const Transport transport_local;
#endif
