/* comm.h: data that moves between the ranks of a program: processes that all make the same calls. The bytes
 * of an exchange carry its number and a hash of everything before it, so a mismatch is found before a byte is
 * used. Errors name the rank that failed, ended or does not come. */
#ifndef TG_COMM_H
#define TG_COMM_H
#include "base/base.h"
#include "runtime/transport.h"

/* Bytes that move from one device's memory to another's, as all ranks number and hash them. */
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
  bool broken; /* nothing can be exchanged any more */
  /* copies are only posted; they are done when somebody awaits them */
  bool gathers;
  struct Head *heads; /* by rank: the head that was received from it last */
  /* messages on their way: queue[2 * rank] from that rank, queue[2 * rank + 1] to it */
  struct Message **queue;
  /* bytes: a message with at least this many takes no more copies */
  size_t bucket;
  struct Nccl *nccl; /* NULL: GPU memory is exchanged through the host */
  int *machine;      /* by rank: the first rank that runs on the same machine */
  /* hash of everything that ran; now.hash: its value when the last exchange was begun */
  uint64_t hash;
  RankState now;
} Comm;

/* Joins the group that the environment names. `agreed`: a hash of everything that has to be the same on all
 * ranks. Returns NULL on failure, with the error recorded. */
Comm *comm_join(TgMem *mem, const TgOs *os, const TgEnv *env, TgError *err, uint64_t agreed);
void comm_leave(Comm *c);
/* Records that a graph that the ranks share is about to run. */
void comm_scheduled(Comm *c, uint64_t hash);
/* Begins the next exchange. Every rank must call this. Device -1: no device (from) or all ranks (to). */
Exchange comm_begin(Comm *c, int from, int to, size_t nbytes);
/* Posts bytes of an exchange to be sent to a rank (out) or received from it. They are added to the open
 * message between the two ranks, which closes when it is full. Both ranks must post the same exchanges in the
 * same order. The memory at p must not change until it has been awaited. */
TgStatus comm_post(Comm *c, const Exchange *e, int rank, bool out, void *p, size_t nbytes);
/* Closes the open message with a rank in that direction, so that what is posted from now on is another
 * message. Rank -1: closes all open messages. */
void comm_close(Comm *c, int rank, bool out);
/* Moves the closed messages as far as they can move now, without waiting. */
TgStatus comm_advance(Comm *c);
/* Waits until the bytes at p have moved. NULL: until all closed messages have moved. */
TgStatus comm_await(Comm *c, const void *p);
/* Gives up the messages on their way. If there were any, nothing can be exchanged any more. */
void comm_drop(Comm *c);
/* Whether the bytes at p are still on their way. */
bool comm_moves(const Comm *c, const void *p);
TgStatus comm_send(Comm *c, int rank, const void *p, size_t nbytes);
TgStatus comm_receive(Comm *c, int rank, void *p, size_t nbytes);
/* Copies the bytes at p of rank `from` to p of all other ranks. */
TgStatus comm_broadcast(Comm *c, int from, void *p, size_t nbytes);
/* Tells the other ranks that a call failed here, and why. A rank that waits for this one gets this error,
 * unless as many of its own calls have failed. */
void comm_failed(Comm *c, const char *why);

extern const Transport transport_local;
#endif
