/* pool.c: threads for the thread axis. After a job workers spin for a while, then sleep on a word. There is
 * one job at a time; a second caller runs all its tids itself. Thread i runs tid i if it comes in time, so
 * that the next kernel finds in a core's cache what the last one left there. If a thread is late, any other
 * thread runs its tid. The results do not depend on this, because tids share no output.
 * A thread claims a tid by changing its slot to the number of the job with a compare-and-swap. Numbers of
 * jobs only grow, so the claim of a worker that read the fields of an older job fails. */
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
  int index, core; /* core: the core that it is bound to, or -1 */
} Worker;

struct Pool {
  TgMem *mem;
  const TgOs *os;
  pthread_mutex_t busy;
  /* here: the core on which the caller was last seen; no worker is bound to it */
  int nworker, here;
  Worker *workers;
  void **scratch; /* of each thread, the caller first */
  size_t scratch_bytes;
  char pad0[64]; /* keeps what workers write off the cache lines that other fields share */
  /* number of the job * NSLOT + number of its slots - 1 */
  _Atomic uint64_t job;
  char pad1[64];
  _Atomic int left; /* slots that are not finished */
  char pad2[64];
  _Atomic uint32_t wake, parked;
  _Atomic bool stop;
  /* fields of the current job; they are atomic because a late worker may read them while they change */
  _Atomic(KernelFn) fn;
  _Atomic(void *const *) bufs;
  _Atomic(const int64_t *) vars;
  _Atomic uint32_t n;
  _Atomic bool timed;
  int ntime; /* number of slots of the last job that was timed */
  /* the thread that runs a slot writes its time, before the slot counts as finished */
  ThreadTime time[NSLOT];
  /* the last job for which each slot was claimed; slot k has tids k, k + NSLOT, .. */
  _Atomic uint64_t slot[NSLOT];
};

static void *align64(void *p) { return (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }

/* Runs a slot of the current job, preferably the thread's own. Returns false if no slot is left. */
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
    /* This precedes the last look for a job, because the caller reads `parked` after publishing a job. */
    atomic_fetch_add(&p->parked, 1);
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

/* The caller's thread belongs to the host and is never moved. If the system has moved it to a worker's core,
 * both would take turns there for as long as they are busy; so the worker moves to the core that the caller
 * left. */
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
  /* signals are for the host's threads, not for workers */
  pthread_sigmask(SIG_SETMASK, &all, &old);
  p->here = pinned ? core_here() : -1;
  for (int i = 0, k = 0; i < want; i++) {
    Worker *w = &p->workers[i];
    *w = (Worker){.pool = p, .index = i + 1, .core = -1};
    /* With fewer workers the pool is slower, but never wrong. */
    if (os->thread_start(&w->thread, work, w)) break;
    p->nworker++;
    /* The system sometimes puts the threads of an unpinned pool on one core for milliseconds. Workers beyond
     * the number of cores are not pinned. */
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

/* The caller works too, and waits by spinning, because launches take microseconds. fn, bufs, vars and n only
 * change while no job is under way. So if a claim succeeds, what was read before it belongs to that job. */
TgStatus pool_run(Pool *p, KernelFn fn, void *const *bufs, const int64_t *vars, int n, size_t scratch_bytes) {
  /* another thread of the host uses the pool now */
  if (pthread_mutex_trylock(&p->busy)) {
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
