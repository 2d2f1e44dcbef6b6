/* comm.h: what moves between the ranks of a program, processes that all make the same calls. Each exchange
 * has a number and a hash of all before it, which go with its bytes: what does not fit is found before a byte
 * is used. A rank that failed, ended or does not come is told of by name. */
#ifndef TG_COMM_H
#define TG_COMM_H
#include "base/base.h"
#include "runtime/transport.h"

/* Bytes of one device's memory for another's, as all ranks number and hash them. */
typedef struct Exchange {
  uint64_t number, schedules, hash, nbytes;
  int32_t from, to;
  uint32_t op;
} Exchange;

struct Message;
struct Head;

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
  bool broken;            /* nothing moves any more */
  bool gathers;           /* copies are posted, and done when somebody awaits them */
  struct Head *heads;     /* by rank: what came of one */
  struct Message **queue; /* by 2 * rank, + 1 for what is sent: what is on its way */
  size_t bucket;          /* bytes from which a message takes no more copies */
  struct Nccl *nccl;      /* NULL: memory of GPUs goes through the host */
  int *machine;           /* by rank: the first rank that runs on the same one */
  uint64_t hash;          /* of all that ran; now.hash: at the exchange that was begun last */
  RankState now;
} Comm;

/* Joins the group that the environment names; `agreed`: what has to be the same everywhere. NULL: recorded. */
Comm *comm_join(TgMem *mem, const TgOs *os, const TgEnv *env, TgError *err, uint64_t agreed);
void comm_leave(Comm *c);
void comm_scheduled(Comm *c, uint64_t hash); /* a graph that the ranks share is to run */
/* The next exchange, which every rank begins. device -1: of none, or to all. */
Exchange comm_begin(Comm *c, int from, int to, size_t nbytes);
/* The bytes of an exchange go to (out) or come from a rank, in the message that is open between the two, which
 * closes when it is full. Both post the same exchanges in the same order. p stays as it is until it is awaited. */
TgStatus comm_post(Comm *c, const Exchange *e, int rank, bool out, void *p, size_t nbytes);
void comm_close(Comm *c, int rank,
                bool out);      /* what is posted from now on is another message; rank -1: of all */
TgStatus comm_advance(Comm *c); /* what is closed moves as far as it can now */
TgStatus comm_await(Comm *c, const void *p); /* until what is at p has moved; NULL: all that is closed */
void comm_drop(Comm *c); /* what is on its way is given up; if anything was, nothing moves any more */
bool comm_moves(const Comm *c, const void *p); /* p is on its way */
TgStatus comm_send(Comm *c, int rank, const void *p, size_t nbytes);
TgStatus comm_receive(Comm *c, int rank, void *p, size_t nbytes);
/* p is `from`'s, and then everybody's. */
TgStatus comm_broadcast(Comm *c, int from, void *p, size_t nbytes);
/* A call failed here, and why: who waits for this rank, and whose calls did not fail as often, hears it. */
void comm_failed(Comm *c, const char *why);

extern const Transport transport_local;
#endif
