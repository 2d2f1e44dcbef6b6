/* pool.c: threads for the thread axis. Workers spin for a while after a job, then park on a word. One job at
 * a time: a second caller runs its tids itself. Thread i runs tid i where it comes in time, so that what one
 * kernel leaves in a core's cache the next finds there; a tid whose thread is late is run by any other.
 * Results cannot depend on it, since tids share no output.
 * A tid is claimed by a compare-and-swap of its slot to the job. Jobs only grow, so a worker that read the
 * fields of an older one fails. */
#define _GNU_SOURCE
#include "runtime/cpu.h"
#include "base/os.h"
#include "base/processor.h"
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

enum { SPIN_US = 50, SLOT_BITS = 10, NSLOT = 1 << SLOT_BITS };

typedef struct Worker {
  Pool *pool;
  pthread_t thread;
  int index, core; /* core: where it stays, or -1 */
} Worker;

struct Pool {
  TgMem *mem;
  const TgOs *os;
  pthread_mutex_t busy;
  int nworker, here; /* here: the caller's core when it was last seen, where no worker stays */
  Worker *workers;
  void **scratch; /* per thread, the caller first */
  size_t scratch_bytes;
  char pad0[64];        /* what workers write stays off the lines that others read */
  _Atomic uint64_t job; /* its number, and its slots less one in the low SLOT_BITS */
  char pad1[64];
  _Atomic int left; /* slots not yet finished */
  char pad2[64];
  _Atomic uint32_t wake, parked;
  _Atomic bool stop;
  _Atomic(KernelFn) fn; /* of the current job; atomics because a late worker may look while they change */
  _Atomic(void *const *) bufs;
  _Atomic(const int64_t *) vars;
  _Atomic uint32_t n;
  _Atomic bool timed;
  int ntime;                    /* slots of the last job that was timed */
  ThreadTime time[NSLOT];       /* each written by who ran the slot, before it counts as finished */
  _Atomic uint64_t slot[NSLOT]; /* the last job that each was claimed for; slot k has tids k, k + NSLOT, .. */
};

static void *align64(void *p) { return (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }

/* Runs a slot of the current job, its own if that is free; false: none left. */
static bool run_one(Pool *p, int index) {
  uint64_t job = atomic_load_explicit(&p->job, memory_order_acquire);
  KernelFn fn = atomic_load_explicit(&p->fn, memory_order_relaxed);
  void *const *bufs = atomic_load_explicit(&p->bufs, memory_order_relaxed);
  const int64_t *vars = atomic_load_explicit(&p->vars, memory_order_relaxed);
  uint32_t n = atomic_load_explicit(&p->n, memory_order_relaxed), nslot = job % NSLOT + 1;
  void *scratch = align64(__atomic_load_n(&p->scratch[index], __ATOMIC_RELAXED));
  for (uint32_t i = 0; i < nslot; i++) {
    uint32_t k = ((uint32_t)index + i) % nslot;
    uint64_t last = atomic_load_explicit(&p->slot[k], memory_order_relaxed);
    if (last >= job || !atomic_compare_exchange_strong_explicit(&p->slot[k], &last, job, memory_order_acq_rel,
                                                                memory_order_relaxed))
      continue;
    bool timed = atomic_load_explicit(&p->timed, memory_order_relaxed);
    double begin = timed ? time_now_s() : 0;
    for (uint32_t tid = k; tid < n; tid += NSLOT)
      fn(bufs, vars, (int)tid, scratch);
    if (timed) p->time[k] = (ThreadTime){index, begin, time_now_s()};
    atomic_fetch_sub_explicit(&p->left, 1, memory_order_release);
    return true;
  }
  return false;
}

static void *work(void *arg) {
  Worker *w = arg;
  Pool *p = w->pool;
  double until = 0;
  for (int spins = 0; !atomic_load(&p->stop);) {
    if (run_one(p, w->index)) {
      spins = 0;
      until = 0;
      continue;
    }
    processor_pause();
    if (++spins % 64) continue;
    double now = time_now_s();
    if (until == 0) until = now + SPIN_US * 1e-6;
    if (now < until) continue;
    uint32_t seen = atomic_load(&p->wake);
    atomic_fetch_add(&p->parked, 1); /* before the last look: the caller looks at it after publishing */
    if (!atomic_load(&p->stop) && !run_one(p, w->index)) p->os->word_wait((uint32_t *)&p->wake, seen);
    atomic_fetch_sub(&p->parked, 1);
    until = 0;
  }
  return NULL;
}

static void stay(Pool *p, Worker *w, int core) {
  w->core = core;
  if (core >= 0) p->os->thread_pin(w->thread, core);
}

/* The caller's own thread is the host's and is left alone: where the system has moved it to a worker's core,
 * and both would take turns there for as long as they are busy, the worker goes to the core that it left. */
static void stand_aside(Pool *p) {
  int here = core_here(), left = p->here;
  if (here < 0 || here == left) return;
  p->here = here;
  for (int i = 0; i < p->nworker; i++)
    if (p->workers[i].core == here) stay(p, &p->workers[i], left);
}

static void wake_all(Pool *p) {
  atomic_fetch_add(&p->wake, 1);
  for (int i = 0; i < 3 && p->os->word_wake((uint32_t *)&p->wake) < 0; i++) {}
}

Pool *pool_new(TgMem *mem, const TgOs *os, int nthread, bool pinned) {
  Pool *p = mem_alloc(mem, sizeof *p);
  if (!p) return NULL;
  p->mem = mem;
  p->os = os;
  int want = TG_MAX(nthread - 1, 0);
  p->workers = mem_alloc(mem, ((size_t)want + 1) * sizeof *p->workers);
  p->scratch = mem_alloc(mem, ((size_t)want + 1) * sizeof *p->scratch);
  if (!p->workers || !p->scratch || pthread_mutex_init(&p->busy, NULL)) {
    mem_free(mem, p->workers), mem_free(mem, p->scratch), mem_free(mem, p);
    return NULL;
  }
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); /* the host's signals stay with the host's threads */
  p->here = pinned ? core_here() : -1;
  for (int i = 0, k = 0; i < want; i++) {
    Worker *w = &p->workers[i];
    *w = (Worker){.pool = p, .index = i + 1, .core = -1};
    /* fewer workers: slower, never wrong */
    if (os->thread_start(&w->thread, work, w)) break;
    p->nworker++;
    /* an unpinned pool is sometimes placed on one core for milliseconds; more workers than cores are not */
    int core = p->here < 0 ? -1 : core_at(k++);
    stay(p, w, core >= 0 && core == p->here ? core_at(k++) : core);
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return p;
}

void pool_free(Pool *p) {
  if (!p) return;
  atomic_store(&p->stop, true);
  wake_all(p);
  for (int i = 0; i < p->nworker; i++)
    pthread_join(p->workers[i].thread, NULL);
  for (int i = 0; i <= p->nworker; i++)
    mem_free(p->mem, p->scratch[i]);
  pthread_mutex_destroy(&p->busy);
  mem_free(p->mem, p->workers), mem_free(p->mem, p->scratch), mem_free(p->mem, p);
}

static bool grow_scratch(Pool *p, size_t nbytes) {
  if (nbytes <= p->scratch_bytes) return true;
  for (int i = 0; i <= p->nworker; i++) {
    void *q = mem_alloc(p->mem, nbytes + 64);
    if (!q) return false;
    mem_free(p->mem, p->scratch[i]);
    __atomic_store_n(&p->scratch[i], q, __ATOMIC_RELAXED);
  }
  p->scratch_bytes = nbytes;
  return true;
}

/* The caller works too, and waits by spinning: launches take microseconds. fn, bufs, vars and n change while
 * no job is under way, so a claim that succeeds says that what was read before it is of that job. */
TgStatus pool_run(Pool *p, KernelFn fn, void *const *bufs, const int64_t *vars, int n, size_t scratch_bytes) {
  if (pthread_mutex_trylock(&p->busy)) { /* another thread of the host is at work here */
    void *own = scratch_bytes ? mem_alloc(p->mem, scratch_bytes + 64) : NULL;
    if (scratch_bytes && !own) return TG_ERR_NOMEM;
    for (int tid = 0; tid < n; tid++)
      fn(bufs, vars, tid, align64(own));
    mem_free(p->mem, own);
    return TG_OK;
  }
  if (!grow_scratch(p, scratch_bytes)) {
    pthread_mutex_unlock(&p->busy);
    return TG_ERR_NOMEM;
  }
  if (n == 1 || !p->nworker) {
    for (int tid = 0; tid < n; tid++)
      fn(bufs, vars, tid, align64(p->scratch[0]));
    pthread_mutex_unlock(&p->busy);
    return TG_OK;
  }
  stand_aside(p);
  atomic_store_explicit(&p->fn, fn, memory_order_relaxed);
  atomic_store_explicit(&p->bufs, bufs, memory_order_relaxed);
  atomic_store_explicit(&p->vars, vars, memory_order_relaxed);
  atomic_store_explicit(&p->n, (uint32_t)n, memory_order_relaxed);
  uint64_t number = atomic_load(&p->job) / NSLOT + 1;
  int nslot = TG_MIN(n, NSLOT);
  p->ntime = atomic_load_explicit(&p->timed, memory_order_relaxed) ? nslot : 0;
  atomic_store(&p->left, nslot);
  atomic_store(&p->job, number * NSLOT + (uint64_t)(nslot - 1));
  if (atomic_load(&p->parked)) wake_all(p);
  while (run_one(p, 0)) {}
  for (int spins = 1; atomic_load_explicit(&p->left, memory_order_acquire); spins++) {
    processor_pause();
    if (spins % 4096 == 0) sched_yield();
  }
  pthread_mutex_unlock(&p->busy);
  return TG_OK;
}

int pool_times(Pool *p, ThreadTime *out, int most) {
  int n = TG_MIN(p->ntime, most);
  for (int i = 0; i < n; i++)
    out[i] = p->time[i];
  p->ntime = 0;
  atomic_store_explicit(&p->timed, true, memory_order_relaxed);
  return n;
}
