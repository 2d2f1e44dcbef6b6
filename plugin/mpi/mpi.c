/* mpi.c: ranks of MPI's: `TG_COMM=mpi mpirun -n 4 PROGRAM`. In: what MPI knows of the processes. Out: a
 * transport (runtime/transport.h), as a shared library of its own, libtg_mpi.so, so that the library needs
 * no MPI. Messages go by MPI_Isend and MPI_Irecv, one at a time between two ranks; who fails tells all
 * others in a message. */
#include "runtime/transport.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 1, STATES = 2, LARGEST = 1 << 30 };

/* of: the bytes that are on their way; NULL: none are */
typedef struct Way {
  MPI_Request request;
  const void *of;
} Way;

typedef struct Mpi {
  MPI_Comm comm;
  int rank, size;
  Way *sent, *coming; /* by rank */
  RankState told;     /* kept until MPI has sent it */
  RankState *heard;   /* of each rank, where it said something */
} Mpi;

/* A process that failed does not wait for the others, who may hang: mpirun ends them. */
static bool failed;

/* Until MPI has done what all ranks have to do; false: some do not come. */
static bool all_came(MPI_Request *request, double most_s) {
  double begin = MPI_Wtime();
  for (int done = 0; !MPI_Test(request, &done, MPI_STATUS_IGNORE);) {
    if (done) return true;
    if (MPI_Wtime() - begin > most_s) return false;
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  }
  return false;
}

static void finalized(void) {
  int done = 0;
  MPI_Finalized(&done);
  if (!done && !failed) MPI_Finalize();
}

static void *mpi_join(Group *g) {
  int begun = 0, level;
  Mpi *t = calloc(1, sizeof *t);
  MPI_Initialized(&begun);
  if (!begun && (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) || atexit(finalized))) {
    snprintf(g->why, sizeof g->why, "MPI does not begin; mpirun starts the ranks");
    free(t);
    return NULL;
  }
  MPI_Request request;
  if (!t || MPI_Comm_idup(MPI_COMM_WORLD, &t->comm, &request) || !all_came(&request, g->timeout_s)) {
    snprintf(g->why, sizeof g->why, "MPI has no communicator, or some ranks do not come");
    failed = true;
    return NULL;
  }
  MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(t->comm, &t->rank);
  MPI_Comm_size(t->comm, &t->size);
  g->rank = t->rank;
  g->size = t->size;
  t->sent = calloc((size_t)t->size, 2 * sizeof *t->sent);
  t->coming = t->sent ? t->sent + t->size : NULL;
  if (t->sent && (t->heard = calloc((size_t)t->size, sizeof *t->heard))) return t;
  snprintf(g->why, sizeof g->why, "out of memory");
  MPI_Comm_free(&t->comm);
  free(t->sent), free(t);
  return NULL;
}

/* n when the message that began with these bytes is through. */
static size_t message_awaited(Way *w, size_t n) {
  int done = 0;
  if (MPI_Test(&w->request, &done, MPI_STATUS_IGNORE) || !done) return 0;
  w->of = NULL;
  return n;
}

static size_t mpi_send(void *transport, int to, const void *p, size_t n) {
  Mpi *t = transport;
  n = n < LARGEST ? n : LARGEST;
  Way *w = &t->sent[to];
  if (w->of != p && MPI_Isend(p, (int)n, MPI_BYTE, to, BYTES, t->comm, &w->request)) return 0;
  w->of = p;
  return message_awaited(w, n);
}

static size_t mpi_receive(void *transport, int from, void *p, size_t n) {
  Mpi *t = transport;
  n = n < LARGEST ? n : LARGEST;
  Way *w = &t->coming[from];
  if (w->of != p && MPI_Irecv(p, (int)n, MPI_BYTE, from, BYTES, t->comm, &w->request)) return 0;
  w->of = p;
  return message_awaited(w, n);
}

/* Only what others have to know without having asked. */
static void mpi_tell(void *transport, const RankState *now) {
  Mpi *t = transport;
  if (now->phase != PHASE_FAILED) return;
  t->told = *now;
  for (int r = 0; r < t->size; r++) {
    MPI_Request request;
    if (r == t->rank || MPI_Isend(&t->told, sizeof t->told, MPI_BYTE, r, STATES, t->comm, &request)) continue;
    int done = 0;
    for (int k = 0; k < 100 && !done; k++)
      if (MPI_Test(&request, &done, MPI_STATUS_IGNORE)) break;
  }
}

static bool mpi_ask(void *transport, int rank, RankState *out) {
  Mpi *t = transport;
  for (int there = 0; !MPI_Iprobe(rank, STATES, t->comm, &there, MPI_STATUS_IGNORE) && there;)
    MPI_Recv(&t->heard[rank], sizeof *t->heard, MPI_BYTE, rank, STATES, t->comm, MPI_STATUS_IGNORE);
  *out = t->heard[rank];
  return out->phase == PHASE_FAILED;
}

/* Where all went well all ranks come here; else nobody may wait for the others, and what is on its way
 * stays. */
static void mpi_leave(void *transport) {
  enum { AWAITED_S = 2 };

  Mpi *t = transport;
  MPI_Request request;
  for (int i = 0; i < 2 * t->size; i++)
    failed = failed || t->sent[i].of;
  failed = failed || MPI_Ibarrier(t->comm, &request) || !all_came(&request, AWAITED_S);
  if (failed) return;
  for (int r = 0; r < t->size; r++) /* what ranks told that nobody asked for */
    mpi_ask(t, r, &t->told);
  MPI_Comm_free(&t->comm);
  free(t->heard), free(t->sent);
  free(t);
}

static int mpi_ended(void *transport, int rank) {
  return (void)transport, (void)rank, 0;
} /* mpirun sees to it */

static void mpi_idle(void *transport, int times) {
  (void)transport;
  if (times > 1000) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

__attribute__((visibility("default"))) const Transport *tg_transport(void) {
  static const Transport transport = TRANSPORT(mpi, false);
  return &transport;
}
