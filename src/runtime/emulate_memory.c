/* emulate_memory.c: memory of an emulated GPU, and what its shadow knows of each byte.
 * Device memory is taken from one large reservation, page after page and round again, so that an address is
 * not used twice in a long time. The shadow lies at a fixed multiple of the distance from the start; what was
 * never touched of it costs nothing. */
#define _GNU_SOURCE
#include "runtime/emulate_private.h"
#include "base/os.h"
#include <stdio.h>
#include <string.h>

/* A cell's w: the tick of the write, the thread, flags; 0: never written. A host's write has tick 0.
 * SPLIT: the word's four bytes have cells of their own. */
enum {
  WRITTEN = 1,
  BY_ATOMIC = 2,
  BY_SEVERAL = 4, /* atomic, by several threads since the barrier */
  BY_BLOCKS = 8,  /* atomic, by other blocks of the launch too */
  IN_FLIGHT = 16, /* an asynchronous copy into it is not waited for */
  THREAD_BITS = 10,
  THREAD_MASK = (1 << THREAD_BITS) - 1,
  W_THREAD = 8,
  TICK_AT = 24
};

#define SPLIT UINT64_MAX

/* A cell's r: the tick of the last read, its thread, another thread that read since the barrier, flags. */
enum { R_SEVERAL = 1, R_BLOCKS = 2, R_OTHER = 4, R_LAST = 14 };

enum { WORD = 4 };

static const size_t reserve_most = (size_t)16 << 30, reserve_least = (size_t)256 << 20;

/* ---- reservations */
static void *reserve(const Emu *e, size_t nbytes, int prot) {
  void *p = e->os->mmap(NULL, nbytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

bool space_new(Emu *e, Space *s, uintptr_t lo, size_t size, bool is_shared) {
  *s = (Space){.lo = lo, .size = size, .is_shared = is_shared};
  s->words = reserve(e, size / WORD * sizeof(Cell), PROT_READ | PROT_WRITE);
  s->bytes = s->words ? reserve(e, size * sizeof(Cell), PROT_READ | PROT_WRITE) : NULL;
  if (s->bytes) return true;
  space_end(e, s);
  return false;
}

void space_end(Emu *e, Space *s) {
  if (s->words) e->os->munmap(s->words, s->size / WORD * sizeof(Cell));
  if (s->bytes) e->os->munmap(s->bytes, s->size * sizeof(Cell));
  *s = (Space){0};
}

/* As much address space as can be had: less of it only makes addresses come back earlier. */
bool memory_new(Emu *e) {
  for (size_t n = reserve_most; n >= reserve_least; n /= 2) {
    void *p = reserve(e, n, PROT_NONE);
    if (!p) continue;
    if (space_new(e, &e->device, (uintptr_t)p, n, false)) {
      e->npage = n / e->page_bytes;
      e->owner = reserve(e, e->npage * sizeof *e->owner, PROT_READ | PROT_WRITE);
      if (e->owner) return true;
      space_end(e, &e->device);
    }
    e->os->munmap(p, n);
  }
  return false;
}

void memory_end(Emu *e) {
  if (e->owner) e->os->munmap(e->owner, e->npage * sizeof *e->owner);
  if (e->device.lo) e->os->munmap((void *)e->device.lo, e->device.size);
  space_end(e, &e->device);
  vec_free(e->mem, &e->allocations);
  vec_free(e->mem, &e->idle_records);
}

/* ---- allocations */
static Allocation *allocation_of_page(const Emu *e, size_t page) {
  return page < e->npage && e->owner[page] ? &e->allocations.at[e->owner[page] - 1] : NULL;
}

static size_t page_of(const Emu *e, uintptr_t at) { return (at - e->device.lo) / e->page_bytes; }

/* The live allocation that holds the range. */
static Allocation *allocation_at(Emu *e, uintptr_t at, size_t nbytes) {
  if (e->recent < e->allocations.len) {
    Allocation *a = &e->allocations.at[e->recent];
    if (a->live && at - a->at < a->nbytes && nbytes <= a->nbytes - (at - a->at)) return a;
  }
  if (at - e->device.lo >= e->device.size) return NULL;
  Allocation *a = allocation_of_page(e, page_of(e, at));
  if (!a || !a->live || at < a->at || at - a->at > a->nbytes || nbytes > a->nbytes - (at - a->at))
    return NULL;
  e->recent = (uint32_t)(a - e->allocations.at);
  return a;
}

/* Where `n` pages in a row are free, from the place behind the last allocation on and once round; SIZE_MAX:
 * nowhere. */
static size_t find_pages(const Emu *e, size_t n) {
  for (int round = 0; round < 2; round++) {
    size_t at = round ? 0 : e->next_page;
    while (at + n <= e->npage) {
      size_t i = 0;
      const Allocation *a = NULL;
      while (i < n && !((a = allocation_of_page(e, at + i)) && a->live))
        i++;
      if (i == n) return at;
      at = page_of(e, a->at) + a->npage;
    }
  }
  return SIZE_MAX;
}

/* Forgets the released allocations that began in these pages. */
static bool records_reclaim(Emu *e, size_t at, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const Allocation *a = allocation_of_page(e, at + i);
    if (!a || page_of(e, a->at) != at + i) continue;
    if (!vec_push(e->mem, &e->idle_records, (uint32_t)(a - e->allocations.at))) return false;
    memset(&e->owner[at + i], 0, a->npage * sizeof *e->owner);
  }
  return true;
}

static bool record_new(Emu *e, uint32_t *index) {
  if (e->idle_records.len) {
    *index = e->idle_records.at[--e->idle_records.len];
    return true;
  }
  *index = (uint32_t)e->allocations.len;
  return vec_push(e->mem, &e->allocations, (Allocation){0});
}

/* Memory as it was at first, which costs nothing; where that cannot be had, it is zeroed. */
static void pages_forget(const Emu *e, void *p, size_t nbytes) {
  if (e->os->madvise(p, nbytes, MADV_DONTNEED)) memset(p, 0, nbytes);
}

static void shadow_forget(const Emu *e, size_t page, size_t npage) {
  size_t words = e->page_bytes / WORD * sizeof(Cell), bytes = e->page_bytes * sizeof(Cell);
  pages_forget(e, (uint8_t *)e->device.words + page * words, npage * words);
  pages_forget(e, (uint8_t *)e->device.bytes + page * bytes, npage * bytes);
}

TgStatus emu_alloc(Emu *e, size_t nbytes, TgError *err, void **out) {
  *out = NULL;
  size_t npage = nbytes / e->page_bytes + 2; /* at least one page between neighbours */
  if (nbytes >= e->device.size)
    return error_set(err, TG_ERR_NOMEM, "emulator: %zu bytes are too many", nbytes);
  size_t page = find_pages(e, npage);
  if (page == SIZE_MAX) return error_set(err, TG_ERR_NOMEM, "emulator: no room for %zu bytes", nbytes);
  uint8_t *at = (uint8_t *)e->device.lo + page * e->page_bytes;
  uint32_t index;
  if (!records_reclaim(e, page, npage) || !record_new(e, &index))
    return error_set(err, TG_ERR_NOMEM, "emulator: out of memory");
  if (e->os->mprotect(at, (npage - 1) * e->page_bytes, PROT_READ | PROT_WRITE)) {
    e->allocations.at[index].live = false; /* the record is lost, not wrong */
    return error_set(err, TG_ERR_NOMEM, "emulator: cannot allocate %zu bytes", nbytes);
  }
  e->allocations.at[index] = (Allocation){(uintptr_t)at, nbytes, npage, true};
  for (size_t i = 0; i < npage; i++)
    e->owner[page + i] = index + 1;
  e->next_page = page + npage;
  *out = at;
  return TG_OK;
}

TgStatus emu_release(Emu *e, void *p, TgError *err) {
  if (!p) return TG_OK;
  uintptr_t at = (uintptr_t)p;
  Allocation *a = at - e->device.lo < e->device.size ? allocation_of_page(e, page_of(e, at)) : NULL;
  if (!a || a->at != at)
    return error_set(err, TG_ERR_DEVICE, "emulator: release of %p, which is no allocation's start", p);
  if (!a->live)
    return error_set(err, TG_ERR_DEVICE, "emulator: release of %zu bytes that were released before",
                     a->nbytes);
  a->live = false;
  pages_forget(e, p, (a->npage - 1) * e->page_bytes);
  shadow_forget(e, page_of(e, at), a->npage);
  (void)e->os->mprotect(p, (a->npage - 1) * e->page_bytes, PROT_NONE); /* kernels are checked all the same */
  return TG_OK;
}

bool emu_holds(const Emu *e, const void *p, size_t nbytes) {
  uintptr_t at = (uintptr_t)p;
  if (at - e->device.lo >= e->device.size) return false;
  const Allocation *a = allocation_of_page(e, page_of(e, at));
  return a && a->live && at >= a->at && at - a->at <= a->nbytes && nbytes <= a->nbytes - (at - a->at);
}

/* ---- places in words */
enum { PLACE_TEXT = 160 };

/* The argument of the launch whose pointer leads into an allocation; 0: none. */
static int argument_of(const Emu *e, const Allocation *a) {
  if (!emu_running) return 0;
  for (int i = 0; i < emu_nparam(e->kernel); i++) {
    uintptr_t v;
    if (emu_param_bytes(e->kernel, i) != sizeof v) continue;
    memcpy(&v, e->params[i], sizeof v);
    if (v >= a->at && v - a->at <= a->nbytes) return i + 1;
  }
  return 0;
}

static const Allocation *nearest_allocation(const Emu *e, uintptr_t at, size_t *distance) {
  const Allocation *best = NULL;
  *distance = SIZE_MAX;
  for (size_t i = 0; i < e->allocations.len; i++) {
    const Allocation *a = &e->allocations.at[i];
    if (!a->npage || (!a->live && at - a->at >= a->nbytes)) continue;
    size_t d = at < a->at ? a->at - at : at >= a->at + a->nbytes ? at - (a->at + a->nbytes) : 0;
    if (d < *distance) best = a, *distance = d;
  }
  return best;
}

static const char *device_place(const Emu *e, uintptr_t at, size_t nbytes, char out[PLACE_TEXT]) {
  size_t far;
  const Allocation *a = nearest_allocation(e, at, &far);
  char what[64];

  enum { NEAR = 1 << 20 };

  if (!a || far > NEAR) {
    snprintf(out, PLACE_TEXT, "at %#zx, far from any allocation", (size_t)at);
    return out;
  }
  int arg = argument_of(e, a);
  if (arg)
    snprintf(what, sizeof what, "argument %d (%zu bytes)", arg, a->nbytes);
  else
    snprintf(what, sizeof what, "an allocation of %zu bytes", a->nbytes);
  if (!a->live)
    snprintf(out, PLACE_TEXT, "at byte %zu of %s, which was released", (size_t)(at - a->at), what);
  else if (at < a->at)
    snprintf(out, PLACE_TEXT, "%zu bytes before %s", (size_t)(a->at - at), what);
  else if (at >= a->at + a->nbytes)
    snprintf(out, PLACE_TEXT, "%zu bytes past the end of %s", (size_t)(at - a->at - a->nbytes), what);
  else if (at + nbytes > a->at + a->nbytes)
    snprintf(out, PLACE_TEXT, "at byte %zu of %s, over its end", (size_t)(at - a->at), what);
  else
    snprintf(out, PLACE_TEXT, "at byte %zu of %s", (size_t)(at - a->at), what);
  return out;
}

static const char *shared_place(const Emu *e, uintptr_t at, size_t nbytes, char out[PLACE_TEXT]) {
  const EmuModule *m = e->kernel->module;
  size_t off = at - m->shared.lo, room = m->image.room - m->image.data;
  if (off >= room) {
    snprintf(out, PLACE_TEXT, "at byte %zu of dynamic shared memory (%zu bytes)", off - room,
             e->shared_limit);
    return out;
  }
  const Array *best = NULL;
  size_t far = SIZE_MAX;
  for (size_t i = 0; i < m->arrays.len; i++) {
    const Array *a = &m->arrays.at[i];
    size_t d = off < a->at ? a->at - off : off >= a->at + a->nbytes ? off - a->at - a->nbytes : 0;
    if (d < far) best = a, far = d;
  }
  if (!best)
    snprintf(out, PLACE_TEXT, "in shared memory, outside any array");
  else if (off < best->at)
    snprintf(out, PLACE_TEXT, "%zu bytes before shared %s (%zu bytes)", far, best->name, best->nbytes);
  else if (off >= best->at + best->nbytes)
    snprintf(out, PLACE_TEXT, "%zu bytes past the end of shared %s (%zu bytes)", far, best->name,
             best->nbytes);
  else
    snprintf(out, PLACE_TEXT, "at byte %zu of shared %s (%zu bytes)%s", off - best->at, best->name,
             best->nbytes, off + nbytes > best->at + best->nbytes ? ", over its end" : "");
  return out;
}

static const char *place_text(const Emu *e, const Space *s, uintptr_t at, size_t nbytes,
                              char out[PLACE_TEXT]) {
  return s->is_shared ? shared_place(e, at, nbytes, out) : device_place(e, at, nbytes, out);
}

static const char *const verb[] = {"reads", "writes", "atomically changes", "atomically reads",
                                   "atomically writes"};

/* ---- shadow */
static uint64_t stamp_tick(uint64_t stamp) { return stamp >> TICK_AT; }

static uint32_t w_thread(uint64_t w) { return (uint32_t)(w >> W_THREAD) & THREAD_MASK; }

/* Whether what `thread` did at `tick`, in this block, is before what the running thread does now. */
static bool is_ordered(const Emu *e, uint64_t tick, uint32_t thread, uint32_t me) {
  if (tick < e->barrier_tick || thread == me) return true;
  return thread / WARP == me / WARP && tick < e->warp_tick[me / WARP];
}

static void thread_index(const Emu *e, uint32_t thread, uint32_t out[3]) {
  out[0] = thread % e->block[0];
  out[1] = thread / e->block[0] % e->block[1];
  out[2] = thread / e->block[0] / e->block[1];
}

static uint32_t block_at_tick(const Emu *e,
                              uint64_t tick) { /* the number of the block, in the order of run */
  size_t lo = 0, hi = e->block_ticks.len;
  while (hi - lo > 1) {
    size_t mid = (lo + hi) / 2;
    if (e->block_ticks.at[mid] <= tick)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

static void race(Emu *e, const Space *s, uintptr_t at, Access how, const char *other_did, uint64_t tick,
                 uint32_t other) {
  char where[PLACE_TEXT], who[INDEX_TEXT];
  uint32_t index[3];
  thread_index(e, other, index);
  place_text(e, s, at, 1, where);
  index_text(who, index);
  if (tick >= e->block_tick) {
    emu_fail(e, "race in a block: %s a byte %s that thread %s %s with no barrier between", verb[how], where,
             who, other_did);
    return;
  }
  char block[INDEX_TEXT];
  block_index_at(e, block_at_tick(e, tick), index);
  index_text(block, index);
  emu_fail(e, "race between blocks: %s a byte %s that thread %s of block %s %s", verb[how], where, who, block,
           other_did);
}

/* The last write against an access of thread `me` now. */
static void against_write(Emu *e, const Space *s, uintptr_t at, uint64_t w, Access how, uint32_t me) {
  uint64_t tick = stamp_tick(w);
  bool both_atomic = (w & BY_ATOMIC) && how >= ATOMIC;
  if (tick < e->launch_tick || both_atomic) return;
  const char *did = w & BY_ATOMIC ? "changed atomically" : "wrote";
  if (tick < e->block_tick) {
    if (!s->is_shared) race(e, s, at, how, did, tick, w_thread(w));
    return;
  }
  if (w & BY_BLOCKS)
    emu_fail(e, "race between blocks: %s a byte that other blocks change atomically", verb[how]);
  else if (!is_ordered(e, tick, w_thread(w), me) || ((w & BY_SEVERAL) && tick >= e->barrier_tick))
    race(e, s, at, how, did, tick, w_thread(w));
}

/* The reads since the last write against a write of thread `me` now. */
static void against_reads(Emu *e, const Space *s, uintptr_t at, uint64_t r, Access how, uint32_t me) {
  uint64_t tick = stamp_tick(r);
  uint32_t last = (uint32_t)(r >> R_LAST) & THREAD_MASK, other = (uint32_t)(r >> R_OTHER) & THREAD_MASK;
  if (tick < e->launch_tick) return;
  if (tick < e->block_tick) {
    if (!s->is_shared) race(e, s, at, how, "read", tick, last);
    return;
  }
  if (!is_ordered(e, tick, last, me))
    race(e, s, at, how, "read", tick, last);
  else if ((r & R_SEVERAL) && !is_ordered(e, tick, other, me))
    race(e, s, at, how, "read", tick, other);
  else if ((r & R_BLOCKS) && !s->is_shared)
    emu_fail(e, "race between blocks: %s a byte that another block read", verb[how]);
}

static uint64_t read_stamp(const Emu *e, uint64_t r, uint32_t me) {
  uint64_t tick = stamp_tick(r), flags = 0;
  uint32_t last = (uint32_t)(r >> R_LAST) & THREAD_MASK, other = (uint32_t)(r >> R_OTHER) & THREAD_MASK;
  if (tick >= e->launch_tick) flags = (r & R_BLOCKS) | (tick < e->block_tick ? R_BLOCKS : 0);
  if (tick >= e->barrier_tick) {
    flags |= r & R_SEVERAL;
    if (last != me) { /* of several, one from another warp says more */
      if (!(r & R_SEVERAL) || last / WARP != me / WARP) other = last;
      flags |= R_SEVERAL;
    }
  }
  return e->tick << TICK_AT | (uint64_t)me << R_LAST | (uint64_t)other << R_OTHER | flags;
}

static uint64_t write_stamp(const Emu *e, uint32_t me) {
  return e->tick << TICK_AT | (uint64_t)me << W_THREAD | WRITTEN;
}

static uint64_t atomic_stamp(const Emu *e, uint64_t w, uint32_t me) {
  uint64_t tick = stamp_tick(w), flags = BY_ATOMIC;
  if ((w & BY_ATOMIC) && tick >= e->launch_tick) {
    flags |= (w & BY_BLOCKS) | (tick < e->block_tick ? BY_BLOCKS : 0);
    if (tick >= e->barrier_tick) flags |= (w & BY_SEVERAL) | (w_thread(w) != me ? BY_SEVERAL : 0);
  }
  return write_stamp(e, me) | flags;
}

static void unset(Emu *e, const Space *s, uintptr_t at, uint64_t w, Access how) {
  char where[PLACE_TEXT];
  bool pending = (w & IN_FLIGHT) && stamp_tick(w) >= e->block_tick;
  place_text(e, s, at, 1, where);
  emu_fail(e, "%s a byte that %s, %s", verb[how],
           pending ? "an asynchronous copy is under way to" : "nobody wrote", where);
}

static inline void cell_access(Emu *e, const Space *s, Cell *c, uintptr_t at, Access how, uint32_t me) {
  uint64_t w = c->w;
  uint64_t set_from = s->is_shared ? e->block_tick << TICK_AT : WRITTEN;
  bool reads = how != WRITES && how != ATOMIC_STORES;
  if ((reads && w < set_from) || ((w & IN_FLIGHT) && w >= set_from)) unset(e, s, at, w, how);
  if (w >= e->launch_tick << TICK_AT) against_write(e, s, at, w, how, me);
  if (how == READS) {
    c->r = read_stamp(e, c->r, me);
    return;
  }
  if (how == ATOMIC_LOADS) return;
  if (c->r) against_reads(e, s, at, c->r, how, me);
  if (how != WRITES) {
    c->w = atomic_stamp(e, w, me);
  } else {
    c->w = write_stamp(e, me);
    c->r = 0; /* whoever races with a read that came before this write races with the write */
  }
}

/* The cells of a word's bytes, with the history that the word had. */
static Cell *word_split(const Space *s, size_t word) {
  Cell *c = &s->words[word], *b = &s->bytes[word * WORD];
  if (c->w != SPLIT) {
    for (int i = 0; i < WORD; i++)
      b[i] = *c;
    c->w = SPLIT;
  }
  return b;
}

static void space_access(Emu *e, const Space *s, uintptr_t at, size_t nbytes, Access how) {
  uint32_t me = thread_number(e, e->current);
  size_t off = at - s->lo, end = off + nbytes;
  while (off < end) {
    size_t word = off / WORD;
    Cell *c = &s->words[word];
    if (off % WORD == 0 && end - off >= WORD && c->w != SPLIT) {
      cell_access(e, s, c, s->lo + off, how, me);
      off += WORD;
      continue;
    }
    size_t stop = TG_MIN(end, (word + 1) * WORD);
    bool whole = off % WORD == 0 && stop - off == WORD;
    Cell *b = word_split(s, word);
    for (; off < stop; off++)
      cell_access(e, s, &b[off % WORD], s->lo + off, how, me);
    if (whole && how == WRITES) *c = b[0]; /* one history again */
  }
}

/* ---- accesses of threads */
static void outside(Emu *e, const Space *s, uintptr_t at, size_t nbytes, Access how) {
  char where[PLACE_TEXT];
  place_text(e, s, at, nbytes, where);
  emu_fail(e, "out of bounds: %s %zu byte%s %s", verb[how], nbytes, nbytes == 1 ? "" : "s", where);
}

static bool in_array(const Emu *e, size_t off, size_t nbytes) {
  const EmuModule *m = e->kernel->module;
  size_t room = m->image.room - m->image.data;
  if (off >= room) return off - room <= e->shared_limit && nbytes <= e->shared_limit - (off - room);
  for (size_t i = 0; i < m->arrays.len; i++) {
    const Array *a = &m->arrays.at[i];
    if (off - a->at < a->nbytes) return nbytes <= a->nbytes - (off - a->at);
  }
  return false;
}

static bool in_stack(const Stack *s, uintptr_t at) { return at - (uintptr_t)s->low < STACK_BYTES; }

/* Neither device memory nor the module's variables: a thread's own stack, constants of the kernel. */
static void elsewhere(Emu *e, uintptr_t at, size_t nbytes, Access how) {
  const Image *im = &e->kernel->module->image;
  if (how == READS && at - (uintptr_t)im->at < im->data) return;
  if (at - (uintptr_t)e->stacks < MOST_THREADS * e->stack_stride)
    emu_fail(e, "%s %zu bytes of another thread's own memory, or outside its own", verb[how], nbytes);
  else
    outside(e, &e->device, at, nbytes, how);
}

static const Space *space_of(Emu *e, uintptr_t at, size_t nbytes, Access how) {
  const Space *shared = &e->kernel->module->shared;
  if (at - e->device.lo < e->device.size) {
    if (!allocation_at(e, at, nbytes)) outside(e, &e->device, at, nbytes, how);
    return &e->device;
  }
  if (at - shared->lo < shared->size) {
    if (!in_array(e, at - shared->lo, nbytes)) outside(e, shared, at, nbytes, how);
    return shared;
  }
  if (!in_stack(e->current->stack, at)) elsewhere(e, at, nbytes, how);
  return NULL;
}

void memory_access(Emu *e, uintptr_t at, size_t nbytes, Access how) {
  const Space *s = nbytes ? space_of(e, at, nbytes, how) : NULL;
  if (s) space_access(e, s, at, nbytes, how);
}

void memory_pending(Emu *e, uintptr_t at, size_t nbytes) {
  const Space *s = space_of(e, at, nbytes, WRITES);
  if (!s) return;
  space_access(e, s, at, nbytes, WRITES);
  for (size_t off = at - s->lo; off < at - s->lo + nbytes; off += WORD)
    s->words[off / WORD].w |= IN_FLIGHT; /* 4-byte steps: split never, as it was just written whole */
}

void memory_arrived(Emu *e, uintptr_t at, size_t nbytes) {
  const Space *s = &e->kernel->module->shared;
  uint64_t stamp = write_stamp(e, thread_number(e, e->current));
  for (size_t off = at - s->lo; off < at - s->lo + nbytes; off += WORD)
    s->words[off / WORD] = (Cell){stamp, 0};
}

/* ---- the host */
static TgStatus host_refused(Emu *e, uintptr_t at, size_t nbytes, const char *what, TgError *err) {
  char where[PLACE_TEXT];
  device_place(e, at, nbytes, where);
  return error_set(err, TG_ERR_DEVICE, "emulator: the host %s %zu bytes %s", what, nbytes, where);
}

/* set: written by the host; else as nobody wrote. */
static void host_mark(Emu *e, uintptr_t at, size_t nbytes, bool set) {
  const Space *s = &e->device;
  Cell mark = {set ? WRITTEN : 0, 0};
  size_t off = at - s->lo, end = off + nbytes;
  while (off < end) {
    if (off % WORD == 0 && end - off >= WORD) {
      s->words[off / WORD] = mark;
      off += WORD;
    } else {
      word_split(s, off / WORD)[off % WORD] = mark;
      off++;
    }
  }
}

static bool is_set(const Emu *e, uintptr_t at) {
  const Space *s = &e->device;
  size_t off = at - s->lo;
  uint64_t w = s->words[off / WORD].w;
  return (w == SPLIT ? s->bytes[off].w : w) != 0;
}

TgStatus emu_write(Emu *e, void *to, const void *from, size_t nbytes, TgError *err) {
  if (!nbytes) return TG_OK;
  if (!emu_holds(e, to, nbytes)) return host_refused(e, (uintptr_t)to, nbytes, "writes", err);
  memcpy(to, from, nbytes);
  host_mark(e, (uintptr_t)to, nbytes, true);
  return TG_OK;
}

TgStatus emu_fill(Emu *e, void *to, int byte, size_t nbytes, TgError *err) {
  if (!nbytes) return TG_OK;
  if (!emu_holds(e, to, nbytes)) return host_refused(e, (uintptr_t)to, nbytes, "writes", err);
  memset(to, byte, nbytes);
  host_mark(e, (uintptr_t)to, nbytes, true);
  return TG_OK;
}

TgStatus emu_read(Emu *e, void *to, const void *from, size_t nbytes, TgError *err) {
  if (!nbytes) return TG_OK;
  uintptr_t at = (uintptr_t)from;
  if (!emu_holds(e, from, nbytes)) return host_refused(e, at, nbytes, "reads", err);
  for (size_t i = 0; e->strict && i < nbytes; i++)
    if (!is_set(e, at + i)) return host_refused(e, at + i, nbytes - i, "reads what nobody wrote:", err);
  memcpy(to, from, nbytes);
  return TG_OK;
}

/* What nobody wrote stays so in the copy. */
TgStatus emu_copy(Emu *e, void *to, const void *from, size_t nbytes, TgError *err) {
  if (!nbytes) return TG_OK;
  if (!emu_holds(e, from, nbytes)) return host_refused(e, (uintptr_t)from, nbytes, "copies", err);
  if (!emu_holds(e, to, nbytes)) return host_refused(e, (uintptr_t)to, nbytes, "copies to", err);
  uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;
  size_t done = 0;
  if (a > b && a - b < nbytes) { /* onto itself: the marks too must not be overwritten before they are read */
    for (size_t i = nbytes; i-- > 0;)
      host_mark(e, a + i, 1, is_set(e, b + i));
    done = nbytes;
  }
  while (done < nbytes) {
    bool set = is_set(e, b + done);
    size_t run = 1;
    while (done + run < nbytes && is_set(e, b + done + run) == set)
      run++;
    host_mark(e, a + done, run, set);
    done += run;
  }
  memmove(to, from, nbytes);
  return TG_OK;
}
