/* transport.h: what a way to the other processes of a program is: a table of calls. In the library: local.c.
 * Others are plug-ins, shared libraries that show `tg_transport`; they include this file alone. */
#ifndef TG_TRANSPORT_H
#define TG_TRANSPORT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PHASE_ABSENT, PHASE_RUNS, PHASE_FAILED, PHASE_LEFT };

/* Where a rank is: what it tells the others. */
typedef struct RankState {
  uint32_t phase;
  uint32_t op;        /* of what is copied; 0: not known */
  int32_t waits;      /* 1 + the rank that it has been waiting for; 0: it does not */
  int32_t from, to;   /* devices by number; to -1: all ranks read it */
  uint64_t exchange;  /* exchanges begun, also those of other ranks alone */
  uint64_t schedules; /* run so far */
  uint64_t hash;      /* of all of that */
  uint64_t errors;    /* calls that failed: what all ranks' calls do alike keeps nobody from going on */
  uint64_t nbytes;
  char failed[256]; /* why, where it failed */
} RankState;

typedef struct Group {
  const char *name;   /* of the group on its machine; NULL: the transport knows */
  int rank, size;     /* asked for; join says what they are */
  double timeout_s;   /* for the others to come */
  char why[256];      /* where it fails */
  const void *system; /* the library's table of calls, for what is in it; a plug-in makes its own */
} Group;

/* Between two ranks one message is on its way at a time, in each direction. Messages between two ranks arrive
 * whole and in order. */
typedef struct Transport {
  uint32_t size; /* of this struct */
  const char *name;
  void *(*join)(Group *g); /* returns when all are there; NULL: g->why */
  void (*leave)(void *t);
  /* As many of n bytes as go now; 0: none. Until all went it is called again, with the rest. */
  size_t (*send)(void *t, int to, const void *p, size_t n);
  size_t (*receive)(void *t, int from, void *p, size_t n);
  void (*tell)(void *t, const RankState *now);
  bool (*ask)(void *t, int rank, RankState *out); /* false: not known now */
  int (*ended)(void *t, int rank);                /* 1: its process has ended; 0: it has not, or who knows */
  void (*idle)(void *t, int times); /* nothing moved so many times, one after another: rests a little */
  bool heads_only;                  /* it carries no tensors: NCCL does, and it what NCCL does not know */
} Transport;

/* The table of a transport whose calls are NAME_join, NAME_leave .. */
#define TRANSPORT(of, heads)                                                                                 \
  {                                                                                                          \
    .size = sizeof(Transport), .name = #of, .join = of##_join, .leave = of##_leave, .send = of##_send,       \
    .receive = of##_receive, .tell = of##_tell, .ask = of##_ask, .ended = of##_ended, .idle = of##_idle,     \
    .heads_only = heads                                                                                      \
  }

#define TRANSPORT_SYMBOL "tg_transport" /* const Transport *tg_transport(void) */
#endif
