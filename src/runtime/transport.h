/* transport.h: the table of calls by which the processes of a program reach each other. local.c is part of
 * the library. Other transports are plug-ins: shared libraries that export `tg_transport` and include this
 * file alone. */
#ifndef TG_TRANSPORT_H
#define TG_TRANSPORT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PHASE_ABSENT, PHASE_RUNS, PHASE_FAILED, PHASE_LEFT };

/* The state of a rank, which it tells the other ranks. */
typedef struct RankState {
  uint32_t phase;
  uint32_t op;        /* operation whose result is copied; 0: not known */
  int32_t waits;      /* 1 + the rank that it has been waiting for; 0: none */
  int32_t from, to;   /* numbers of devices; to -1: all ranks read it */
  uint64_t exchange;  /* exchanges begun, also those between other ranks */
  uint64_t schedules; /* run so far */
  uint64_t hash;      /* hash of everything that ran so far */
  /* number of failed calls; a call that fails alike on all ranks makes no rank stop waiting */
  uint64_t errors;
  uint64_t nbytes;
  char failed[256]; /* the reason, if it failed */
} RankState;

typedef struct Group {
  /* name of the group on its machine; NULL: the transport knows */
  const char *name;
  int rank, size;   /* requested values; join sets the actual ones */
  double timeout_s; /* how long to wait for the other ranks */
  char why[256];    /* the reason, if join fails */
  /* the library's table of system calls, for transports in the library; a plug-in makes its own */
  const void *system;
} Group;

/* Between two ranks one message at a time is on its way in each direction. Messages between two ranks arrive
 * complete and in order. */
typedef struct Transport {
  uint32_t size; /* of this struct */
  const char *name;
  /* returns when all ranks have joined; NULL: failed, g->why is set */
  void *(*join)(Group *g);
  void (*leave)(void *t);
  /* Move as many of n bytes as possible now and return how many, which may be 0. The caller repeats the call
   * with the rest until all have moved. */
  size_t (*send)(void *t, int to, const void *p, size_t n);
  size_t (*receive)(void *t, int from, void *p, size_t n);
  void (*tell)(void *t, const RankState *now);
  bool (*ask)(void *t, int rank, RankState *out); /* false: not known now */
  int (*ended)(void *t, int rank); /* 1: its process has ended; 0: it has not, or that is not known */
  /* called when nothing has moved `times` times in a row: rests a little */
  void (*idle)(void *t, int times);
  /* it carries no tensors but only messages about them, because NCCL carries the tensors */
  bool heads_only;
} Transport;

/* The table of a transport whose calls are named NAME_join, NAME_leave .. */
#define TRANSPORT(of, heads)                                                                                 \
  {                                                                                                          \
    .size = sizeof(Transport), .name = #of, .join = of##_join, .leave = of##_leave, .send = of##_send,       \
    .receive = of##_receive, .tell = of##_tell, .ask = of##_ask, .ended = of##_ended, .idle = of##_idle,     \
    .heads_only = heads                                                                                      \
  }

#define TRANSPORT_SYMBOL "tg_transport" /* const Transport *tg_transport(void) */
#endif
