/* emulate.c: runs kernels of a GPU on this CPU: objects of kernel text, modules, launches. Each thread of a
 * block runs on a stack of its own until it must wait for other threads. Blocks run one after another. */
#define _GNU_SOURCE
#include "emu/emulate_private.h"
#include "base/os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Thread_local Emu *emu_running;

/* ---- compile. The sanitizers report accesses to emulate_calls.c; none of their libraries is used. */
#define COMMON_ARGS                                                                                          \
  "-x", "c++", "-", "-c", "-std=gnu++17", "-O1", "-fPIC", "-fvisibility=hidden", "-fsanitize=thread",        \
      "-fsanitize=alignment,shift,signed-integer-overflow,integer-divide-by-zero,float-cast-overflow",       \
      "-fno-sanitize-recover=all", "-ffp-contract=off", "-fno-math-errno", "-ffreestanding", "-nostdinc",    \
      "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fno-strict-aliasing", "-fno-ident",       \
      "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-w"

/* A read that is followed by a write of the same place must be reported too, because the place may never have
 * been written. */
static const char *const args_clang[] = {COMMON_ARGS,
                                         "-fsanitize=array-bounds",
                                         "-fno-crash-diagnostics",
                                         "-mllvm",
                                         "-tsan-instrument-read-before-write=1",
                                         "-mllvm",
                                         "-tsan-instrument-func-entry-exit=0",
                                         "-o",
                                         "-",
                                         NULL};
static const char *const args_gcc[] = {
    COMMON_ARGS, "-fsanitize=bounds", "--param", "tsan-instrument-func-entry-exit=0",
    "-o",        os_own_output,       NULL};

/* bytes; for a longer text the time to optimise grows faster than the text */
enum { HUGE_TEXT = 1 << 20 };

const char *emu_flags(void) { return "emulator 2"; }

TgStatus emu_compile(TgMem *mem, const TgOs *os, TgError *err, const Compiler *cc, const EmuDialect *dialect,
                     const char *text, int limit_s, Blob *object) {
  Str s;
  *object = (Blob){0};
  str_init(&s, mem);
  if (!emu_text(&s, dialect, text)) {
    str_free(&s);
    return error_set(err, TG_ERR_NOMEM, "emulator: out of memory");
  }
  Unit u = {.src = {(uint8_t *)s.at, s.len},
            .args = cc->is_clang ? args_clang : args_gcc,
            .huge = s.len > HUGE_TEXT};
  TgStatus st = compile_unit(mem, os, err, cc, &u, limit_s);
  if (!st && u.gave_up)
    st = error_set(err, TG_ERR_COMPILE, "emulator: a text of %zu bytes is too long", s.len);
  *object = u.out;
  str_free(&s);
  return st;
}

/* ---- the emulator */
enum { PATIENCE = 1 << 30 }; /* accesses; about half a minute */

Emu *emu_new(TgMem *mem, const TgOs *os) {
  Emu *e = mem_alloc(mem, sizeof *e);
  if (!e) return NULL;
  e->mem = mem;
  e->os = os;
  e->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  e->stack_stride = STACK_BYTES + e->page_bytes;
  e->tick = 1;
  e->patience = PATIENCE;
  e->threads = mem_alloc(mem, MOST_THREADS * sizeof *e->threads);
  e->turn = mem_alloc(mem, MOST_THREADS * sizeof *e->turn);
  e->stack = mem_alloc(mem, MOST_THREADS * sizeof *e->stack);
  void *p = os->mmap(NULL, MOST_THREADS * e->stack_stride, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  e->stacks = p == MAP_FAILED ? NULL : p;
  if (e->threads && e->turn && e->stack && e->stacks && memory_new(e)) return e;
  emu_free(e);
  return NULL;
}

void emu_free(Emu *e) {
  if (!e) return;
  while (e->modules)
    emu_unload(e, e->modules);
  for (size_t i = 0; e->threads && i < MOST_THREADS; i++)
    vec_free(e->mem, &e->threads[i].copies), vec_free(e->mem, &e->threads[i].steps);
  if (e->stacks) e->os->munmap(e->stacks, MOST_THREADS * e->stack_stride);
  memory_end(e);
  vec_free(e->mem, &e->block_ticks);
  mem_free(e->mem, e->threads), mem_free(e->mem, e->turn), mem_free(e->mem, e->stack);
  mem_free(e->mem, e);
}

void emu_order(Emu *e, uint64_t order) { e->order = order; }

void emu_patience(Emu *e, uint64_t accesses) { e->patience = accesses ? accesses : PATIENCE; }

void emu_strict(Emu *e, bool strict) { e->strict = strict; }

/* ---- modules */
enum { APART = 256 }; /* bytes between arrays of shared memory */

static ElfWants wants(void) {
  return (ElfWants){.externs = emu_calls,
                    .nextern = emu_ncall,
                    .variables = true,
                    .apart = APART,
                    .room = MOST_DYNAMIC,
                    .room_prefix = EMU_DYNAMIC};
}

static EmuKernel *kernel_named(EmuModule *m, const char *name, size_t length) {
  for (size_t i = 0; i < m->kernels.len; i++)
    if (strlen(m->kernels.at[i]->name) == length && !memcmp(m->kernels.at[i]->name, name, length))
      return m->kernels.at[i];
  return NULL;
}

typedef struct Loading {
  Emu *emu;
  EmuModule *module;
  bool oom;
} Loading;

static bool starts_with(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

static bool find_kernels(void *user, const ElfSymbol *s) {
  Loading *l = user;
  if (!s->is_function || !starts_with(s->name, EMU_ENTRY)) return true;
  EmuKernel *k = mem_alloc(l->emu->mem, sizeof *k);
  if (!k || !vec_push(l->emu->mem, &l->module->kernels, k)) {
    mem_free(l->emu->mem, k);
    l->oom = true;
    return false;
  }
  void *at = l->module->image.at + s->at;
  memcpy(&k->entry, &at, sizeof at);
  snprintf(k->name, sizeof k->name, "%s", s->name + strlen(EMU_ENTRY));
  k->module = l->module;
  return true;
}

/* C++ encodes the array of a function with the function's name: _ZZ 6kernel .. E 2l0 (or ..E 2l0 _1). Sets
 * the array's name and owner. */
static void array_name(EmuModule *m, const char *symbol, Array *a) {
  char *end;
  const char *name = symbol;
  if (starts_with(symbol, "_ZZ")) {
    unsigned long length = strtoul(symbol + 3, &end, 10);
    if (end > symbol + 3 && length <= strlen(end)) {
      a->owner = kernel_named(m, end, length);
      name = strchr(end + length, 'E');
      name = name ? name + 1 : symbol;
    }
  } else if (starts_with(symbol, "_ZL"))
    name = symbol + 3;
  unsigned long length = strtoul(name, &end, 10);
  bool counted = end > name && length <= strlen(end);
  snprintf(a->name, sizeof a->name, "%.*s", counted ? (int)length : (int)sizeof a->name - 1,
           counted ? end : name);
}

static bool find_variables(void *user, const ElfSymbol *s) {
  Loading *l = user;
  if (starts_with(s->name, EMU_INFO)) {
    const char *name = s->name + strlen(EMU_INFO);
    EmuKernel *k = kernel_named(l->module, name, strlen(name));
    if (k && s->nbytes >= 3 * sizeof *k->info) k->info = (const int32_t *)(l->module->image.at + s->at);
    return true;
  }
  if (!s->is_variable) return true;
  Array a = {.at = s->at - l->module->image.data, .nbytes = s->nbytes};
  array_name(l->module, s->name, &a);
  if (vec_push(l->emu->mem, &l->module->arrays, a)) return true;
  l->oom = true;
  return false;
}

/* Adds up the shared memory of each kernel as the compiler would place it: one array behind another, each at
 * a multiple of 16. */
static void count_shared(EmuModule *m) {
  for (size_t i = 0; i < m->kernels.len; i++)
    for (size_t j = 0; j < m->arrays.len; j++)
      if (m->arrays.at[j].owner == m->kernels.at[i])
        m->kernels.at[i]->shared_bytes += (m->arrays.at[j].nbytes + 15) & ~(size_t)15;
}

static void module_free(Emu *e, EmuModule *m) {
  for (size_t i = 0; i < m->kernels.len; i++)
    mem_free(e->mem, m->kernels.at[i]);
  vec_free(e->mem, &m->kernels);
  vec_free(e->mem, &m->arrays);
  space_end(e, &m->shared);
  image_unmap(e->os, &m->image);
  mem_free(e->mem, m);
}

TgStatus emu_load(Emu *e, const void *object, size_t nbytes, TgError *err, EmuModule **out) {
  *out = NULL;
  ElfWants w = wants();
  EmuModule *m = mem_alloc(e->mem, sizeof *m);
  if (!m) return error_set(err, TG_ERR_NOMEM, "emulator: out of memory");
  m->emu = e;
  TgStatus st = elf_load_with(e->mem, e->os, err, object, nbytes, &w, &m->image);
  Loading l = {e, m, false};
  if (!st) {
    bool seen = elf_symbols(object, nbytes, &w, find_kernels, &l) &&
                elf_symbols(object, nbytes, &w, find_variables, &l);
    uintptr_t lo = (uintptr_t)(m->image.at + m->image.data);
    if (!seen || !space_new(e, &m->shared, lo, m->image.mapped - m->image.data, true))
      st = error_set(err, TG_ERR_NOMEM, "emulator: out of memory for a module");
  }
  for (size_t i = 0; i < m->kernels.len && !st; i++)
    if (!m->kernels.at[i]->info || m->kernels.at[i]->info[0] > MOST_PARAMS)
      st = error_set(err, TG_ERR_COMPILE,
                     "emulator: kernel %.100s is described nowhere, or has too many parameters",
                     m->kernels.at[i]->name);
  if (st) {
    module_free(e, m);
    return st;
  }
  count_shared(m);
  m->next = e->modules;
  e->modules = *out = m;
  return TG_OK;
}

void emu_unload(Emu *e, EmuModule *m) {
  EmuModule **at = &e->modules;
  while (*at && *at != m)
    at = &(*at)->next;
  if (!*at) return;
  *at = m->next;
  module_free(e, m);
}

EmuKernel *emu_kernel(EmuModule *m, const char *name) { return kernel_named(m, name, strlen(name)); }

const char *emu_name(const EmuKernel *k) { return k->name; }

size_t emu_shared_bytes(const EmuKernel *k) { return k->shared_bytes; }

int emu_nparam(const EmuKernel *k) { return k->info[0]; }

int emu_most_threads(const EmuKernel *k) { return k->info[1]; }

size_t emu_param_bytes(const EmuKernel *k, int i) {
  return i >= 0 && i < k->info[0] ? (size_t)k->info[2 + i] : 0;
}

/* ---- failures */
const char *index_text(char out[INDEX_TEXT], const uint32_t v[3]) {
  snprintf(out, INDEX_TEXT, "(%u,%u,%u)", v[0], v[1], v[2]);
  return out;
}

static void fail_text(Emu *e, const Thread *t, const char *fmt, va_list args) {
  char what[400], block[INDEX_TEXT], thread[INDEX_TEXT];
  if (e->failed) return;
  vsnprintf(what, sizeof what, fmt, args);
  index_text(block, e->block_index);
  index_text(thread, t->index);
  e->failed = true;
  error_set(e->err, e->fail_status, "kernel %.60s: %s; block %s, thread %s", e->kernel->name, what, block,
            thread);
}

void emu_fail_at(Emu *e, const Thread *t, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fail_text(e, t, fmt, args);
  va_end(args);
}

void emu_fail(Emu *e, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fail_text(e, e->current, fmt, args);
  va_end(args);
  fibre_switch(&e->current->stack->fibre, &e->scheduler); /* does not return */
}

/* ---- threads */
void thread_stop(Emu *e, WaitFor state) {
  e->current->state = state;
  fibre_switch(&e->current->stack->fibre, &e->scheduler);
}

/* A stack runs one thread after another. */
static void stack_main(void *arg) {
  Stack *s = arg;
  for (;;) {
    Emu *e = s->emu;
    e->kernel->entry(e->params);
    thread_stop(e, DONE);
  }
}

static Stack *stack_get(Emu *e) {
  Stack *s = e->idle;
  if (s) {
    e->idle = s->next;
    return s;
  }
  if (NEVER(e->nstack == MOST_THREADS)) return NULL;
  uint8_t *low = e->stacks + e->nstack * e->stack_stride + e->page_bytes;
  if (e->os->mprotect(low, STACK_BYTES, PROT_READ | PROT_WRITE)) return NULL;
  s = &e->stack[e->nstack++];
  *s = (Stack){.emu = e, .low = low};
  return s;
}

static void stack_put(Emu *e, Stack *s) {
  s->next = e->idle;
  e->idle = s;
}

static void thread_run(Emu *e, Thread *t) {
  if (t->state == FRESH) {
    if (!(t->stack = stack_get(e))) {
      e->fail_status = TG_ERR_NOMEM;
      emu_fail_at(e, t, "no memory for a stack");
      return;
    }
    if (!t->stack->begun) fibre_prepare(&t->stack->fibre, t->stack->low, STACK_BYTES, stack_main, t->stack);
    t->stack->begun = true;
  }
  t->state = READY;
  e->current = t;
  e->accesses = 0;
  fibre_switch(&e->scheduler, &t->stack->fibre);
  e->current = NULL;
  if (t->state != DONE) return;
  stack_put(e, t->stack);
  t->stack = NULL;
}

/* ---- order */
static uint64_t random_next(Emu *e) {
  e->random = hash_mix(e->random, 0x9e3779b97f4a7c15u);
  return e->random;
}

static void turns_take(Emu *e) {
  for (uint32_t i = 0; i < e->nthread; i++)
    e->turn[i] = e->order == 1 ? e->nthread - 1 - i : i;
  if (e->order < 2) return;
  for (uint32_t i = e->nthread; i > 1; i--) {
    uint32_t j = (uint32_t)(random_next(e) % i), kept = e->turn[i - 1];
    e->turn[i - 1] = e->turn[j];
    e->turn[j] = kept;
  }
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

/* A step that has no divisor in common with the number of blocks reaches each block exactly once. */
static Walk walk_new(Emu *e, uint64_t n) {
  Walk w = {n, 1, 0};
  if (e->order == 1) w.step = w.start = n - 1;
  if (e->order < 2 || n < 2) return w;
  w.start = random_next(e) % n;
  do
    w.step = random_next(e) % n;
  while (common_divisor(w.step, n) != 1);
  return w;
}

void block_index_at(const Emu *e, uint64_t i, uint32_t out[3]) {
  const Walk *w = &e->walk;
  uint64_t b = (uint64_t)(((__uint128_t)i * w->step + w->start) % w->n);
  out[0] = (uint32_t)(b % e->grid[0]);
  out[1] = (uint32_t)(b / e->grid[0] % e->grid[1]);
  out[2] = (uint32_t)(b / e->grid[0] / e->grid[1]);
}

/* ---- blocks */
/* Called when all remaining threads wait at barriers. Lets them continue if it is the same barrier and no
 * thread has ended; otherwise the launch fails. */
static bool barrier_meet(Emu *e) {
  const Thread *first = NULL, *ended = NULL;
  for (uint32_t i = 0; i < e->nthread; i++) {
    Thread *t = &e->threads[i];
    if (t->state == DONE)
      ended = t;
    else if (!first)
      first = t;
  }
  if (NEVER(!first)) return false;
  char who[INDEX_TEXT];
  if (ended) {
    index_text(who, ended->index);
    emu_fail_at(e, first, "divergence: it waits at the barrier in line %u, but thread %s has ended",
                first->line, who);
    return false;
  }
  for (uint32_t i = 0; i < e->nthread; i++) {
    const Thread *t = &e->threads[i];
    if (t->id == first->id) continue;
    index_text(who, t->index);
    emu_fail_at(e, first, "divergence: it waits at the barrier in line %u, thread %s at another in line %u",
                first->line, who, t->line);
    return false;
  }
  e->tick++;
  if (first->orders & ORDERS_DEVICE) e->barrier_tick[0] = e->tick;
  if (first->orders & ORDERS_SHARED) e->barrier_tick[1] = e->tick;
  for (uint32_t i = 0; i < e->nthread; i++)
    e->threads[i].state = READY;
  return true;
}

static void block_begin(Emu *e) {
  e->block_tick = e->barrier_tick[0] = e->barrier_tick[1] = ++e->tick;
  memset(e->warp_tick, 0, sizeof e->warp_tick);
  for (uint32_t i = 0; i < e->nthread; i++) {
    Thread *t = &e->threads[i];
    t->state = FRESH;
    t->group = 0;
    t->copies.len = t->steps.len = 0;
    t->step_group = 0;
    t->step_begun = false;
    t->seen_tick = 0;
    t->index[0] = i % e->block[0];
    t->index[1] = i / e->block[0] % e->block[1];
    t->index[2] = i / e->block[0] / e->block[1];
  }
}

static bool all_done(const Emu *e) {
  for (uint32_t i = 0; i < e->nthread; i++)
    if (e->threads[i].state != DONE) return false;
  return true;
}

static void block_run(Emu *e) {
  block_begin(e);
  while (!e->failed) {
    turns_take(e);
    for (uint32_t i = 0; i < e->nthread && !e->failed; i++) {
      Thread *t = &e->threads[e->turn[i]];
      if (t->state == FRESH || t->state == READY) thread_run(e, t);
    }
    if (e->failed || warps_meet(e)) continue;
    if (all_done(e)) groups_ended(e);
    if (all_done(e) || !barrier_meet(e)) return;
  }
}

static TgStatus launch_refused(const EmuKernel *k, const char *why, TgError *err) {
  return error_set(err, TG_ERR_DEVICE, "kernel %.60s: launch refused: %s", k->name, why);
}

static TgStatus launch_check(const EmuKernel *k, const uint32_t grid[3], const uint32_t block[3],
                             size_t dynamic_shared, void *const *params, TgError *err) {
  char why[120];
  uint64_t nthread = (uint64_t)block[0] * block[1];
  for (int i = 0; i < 3; i++)
    if (!grid[i] || !block[i]) return launch_refused(k, "a size of the grid or the block is 0", err);
  if (nthread > MOST_THREADS || nthread * block[2] > MOST_THREADS)
    return launch_refused(k, "a block has 1024 threads at most", err);
  nthread *= block[2];
  int most = emu_most_threads(k);
  if (most > 0 && nthread > (uint64_t)most) {
    snprintf(why, sizeof why, "blocks of %u threads, but its launch bounds are %d", (unsigned)nthread, most);
    return launch_refused(k, why, err);
  }
  if (dynamic_shared > MOST_DYNAMIC) return launch_refused(k, "too much dynamic shared memory", err);
  for (int i = 0; i < emu_nparam(k); i++)
    if (emu_param_bytes(k, i) && (!params || !params[i])) {
      snprintf(why, sizeof why, "argument %d of %d is missing", i + 1, emu_nparam(k));
      return launch_refused(k, why, err);
    }
  return TG_OK;
}

static void launch_run(Emu *e) {
  uint64_t n = (uint64_t)e->grid[0] * e->grid[1] * e->grid[2];
  e->walk = walk_new(e, n);
  e->launch_tick = ++e->tick;
  e->block_ticks.len = 0;
  for (uint64_t i = 0; i < n && !e->failed; i++) {
    block_index_at(e, i, e->block_index);
    if (vec_push(e->mem, &e->block_ticks, e->tick + 1)) {
      block_run(e);
      continue;
    }
    e->fail_status = TG_ERR_NOMEM;
    emu_fail_at(e, &e->threads[0], "out of memory");
  }
}

/* After a failure threads may have stopped anywhere. Makes all stacks idle; each starts over with its next
 * thread. */
static void threads_forget(Emu *e) {
  e->idle = NULL;
  for (uint32_t i = 0; i < e->nstack; i++) {
    e->stack[i].begun = false;
    stack_put(e, &e->stack[i]);
  }
}

TgStatus emu_launch(Emu *e, const EmuKernel *k, const uint32_t grid[3], const uint32_t block[3],
                    size_t dynamic_shared, void *const *params, TgError *err) {
  TgStatus st = launch_check(k, grid, block, dynamic_shared, params, err);
  if (st) return st;
  Emu *before = emu_running;
  emu_running = e;
  e->kernel = k;
  e->params = params;
  e->err = err;
  e->failed = false;
  e->fail_status = TG_ERR_DEVICE;
  e->shared_limit = dynamic_shared;
  e->recent_array = 0;
  e->random = e->order;
  memcpy(e->grid, grid, sizeof e->grid);
  memcpy(e->block, block, sizeof e->block);
  e->nthread = block[0] * block[1] * block[2];
  launch_run(e);
  if (e->failed) threads_forget(e);
  emu_running = before;
  e->err = NULL;
  e->kernel = NULL;
  return e->failed ? e->fail_status : TG_OK;
}
