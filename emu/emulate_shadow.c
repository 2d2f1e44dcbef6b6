/* emulate_shadow.c: the history of each byte of an emulated GPU's memory, and the check of a thread's access
 * against it. Two accesses of one byte, at least one of them a write, are a race if they are by different
 * threads of a block with no barrier in between, or by different blocks of a launch. */
#define _GNU_SOURCE
#include "emu/emulate_private.h"
#include <stdio.h>
#include <string.h>

/* A cell's w holds the tick of the last write, its thread (from bit W_THREAD on) and flags; 0: never written.
 * A write by the host has tick 0. SPLIT: the word's four bytes have cells of their own. */
enum {
  WRITTEN = 1,
  BY_ATOMIC = 2,
  BY_SEVERAL = 4, /* atomic, by several threads since the barrier */
  BY_BLOCKS = 8,  /* atomic, also by other blocks of the launch */
  IN_FLIGHT = 16, /* an asynchronous copy into it has not been waited for */
  THREAD_BITS = 10,
  THREAD_MASK = (1 << THREAD_BITS) - 1,
  W_THREAD = 8,
  TICK_AT = 24
};

#define SPLIT UINT64_MAX

/* A cell's r holds the tick of the last read, its thread (from bit R_LAST on), another thread that read since
 * the barrier (from bit R_OTHER on), and flags. */
enum { R_SEVERAL = 1, R_BLOCKS = 2, R_OTHER = 4, R_LAST = 14 };

/* ---- marks */
/* Gives the bytes of a word cells of their own, with the word's history, and returns them. */
static Cell *word_split(const Space *s, size_t word) {
  Cell *c = &s->words[word], *b = &s->bytes[word * WORD];
  if (c->w != SPLIT) {
    for (int i = 0; i < WORD; i++)
      b[i] = *c;
    c->w = SPLIT;
  }
  return b;
}

void shadow_mark(const Space *s, uintptr_t at, size_t nbytes, bool set) {
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

bool shadow_is_set(const Space *s, uintptr_t at) {
  size_t off = at - s->lo;
  uint64_t w = s->words[off / WORD].w;
  return (w == SPLIT ? s->bytes[off].w : w) != 0;
}

/* ---- races */
static const char *const verb[] = {
    "reads", "writes", "atomically changes", "atomically reads", "atomically writes", "a matrix unit reads"};

static uint64_t stamp_tick(uint64_t stamp) { return stamp >> TICK_AT; }

static uint32_t w_thread(uint64_t w) { return (uint32_t)(w >> W_THREAD) & THREAD_MASK; }

static uint64_t barrier_tick(const Emu *e, const Space *s) { return e->barrier_tick[s->is_shared]; }

/* Whether what `thread` did to s at `tick`, in this block, is ordered before what the running thread does
 * now. */
static bool is_ordered(const Emu *e, const Space *s, uint64_t tick, uint32_t thread, uint32_t me) {
  if (tick < barrier_tick(e, s) || thread == me) return true;
  return thread / WARP == me / WARP && tick < e->warp_tick[me / WARP];
}

static void thread_index(const Emu *e, uint32_t thread, uint32_t out[3]) {
  out[0] = thread % e->block[0];
  out[1] = thread / e->block[0] % e->block[1];
  out[2] = thread / e->block[0] / e->block[1];
}

/* Returns the position of a block in the order in which blocks run. */
static uint32_t block_at_tick(const Emu *e, uint64_t tick) {
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

/* Checks an access of thread `me` against the last write. */
static void against_write(Emu *e, const Space *s, uintptr_t at, uint64_t w, Access how, uint32_t me) {
  uint64_t tick = stamp_tick(w);
  bool both_atomic = (w & BY_ATOMIC) && how >= ATOMIC && how != UNIT_READS;
  if (tick < e->launch_tick || both_atomic) return;
  const char *did = w & BY_ATOMIC ? "changed atomically" : "wrote";
  if (tick < e->block_tick) {
    if (!s->is_shared) race(e, s, at, how, did, tick, w_thread(w));
    return;
  }
  if (w & BY_BLOCKS)
    emu_fail(e, "race between blocks: %s a byte that other blocks change atomically", verb[how]);
  else if (!is_ordered(e, s, tick, w_thread(w), me) || ((w & BY_SEVERAL) && tick >= barrier_tick(e, s)))
    race(e, s, at, how, did, tick, w_thread(w));
}

/* Checks a write of thread `me` against the reads since the last write. */
static void against_reads(Emu *e, const Space *s, uintptr_t at, uint64_t r, Access how, uint32_t me) {
  uint64_t tick = stamp_tick(r);
  uint32_t last = (uint32_t)(r >> R_LAST) & THREAD_MASK, other = (uint32_t)(r >> R_OTHER) & THREAD_MASK;
  if (tick < e->launch_tick) return;
  if (tick < e->block_tick) {
    if (!s->is_shared) race(e, s, at, how, "read", tick, last);
    return;
  }
  if (!is_ordered(e, s, tick, last, me))
    race(e, s, at, how, "read", tick, last);
  else if ((r & R_SEVERAL) && !is_ordered(e, s, tick, other, me))
    race(e, s, at, how, "read", tick, other);
  else if ((r & R_BLOCKS) && !s->is_shared)
    emu_fail(e, "race between blocks: %s a byte that another block read", verb[how]);
}

static uint64_t read_stamp(const Emu *e, const Space *s, uint64_t r, uint32_t me) {
  uint64_t tick = stamp_tick(r), flags = 0;
  uint32_t last = (uint32_t)(r >> R_LAST) & THREAD_MASK, other = (uint32_t)(r >> R_OTHER) & THREAD_MASK;
  if (tick >= e->launch_tick) flags = (r & R_BLOCKS) | (tick < e->block_tick ? R_BLOCKS : 0);
  if (tick >= barrier_tick(e, s)) {
    flags |= r & R_SEVERAL;
    if (last != me) { /* of several threads, one from another warp is more informative */
      if (!(r & R_SEVERAL) || last / WARP != me / WARP) other = last;
      flags |= R_SEVERAL;
    }
  }
  return e->tick << TICK_AT | (uint64_t)me << R_LAST | (uint64_t)other << R_OTHER | flags;
}

static uint64_t write_stamp(const Emu *e, uint32_t me) {
  return e->tick << TICK_AT | (uint64_t)me << W_THREAD | WRITTEN;
}

static uint64_t atomic_stamp(const Emu *e, const Space *s, uint64_t w, uint32_t me) {
  uint64_t tick = stamp_tick(w), flags = BY_ATOMIC;
  if ((w & BY_ATOMIC) && tick >= e->launch_tick) {
    flags |= (w & BY_BLOCKS) | (tick < e->block_tick ? BY_BLOCKS : 0);
    if (tick >= barrier_tick(e, s)) flags |= (w & BY_SEVERAL) | (w_thread(w) != me ? BY_SEVERAL : 0);
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
  bool reads = how != WRITES && how != ATOMIC_STORES, unit = how == UNIT_READS;
  if ((reads && w < set_from) || ((w & IN_FLIGHT) && w >= set_from)) unset(e, s, at, w, how);
  if (w >= e->launch_tick << TICK_AT) against_write(e, s, at, w, how, me);
  if (unit && stamp_tick(w) >= e->block_tick && stamp_tick(w) > e->threads[w_thread(w)].seen_tick)
    emu_fail(e, "a matrix unit reads a byte that thread %u wrote without a fence since", w_thread(w));
  if (how == READS || unit) {
    c->r = read_stamp(e, s, c->r, me);
    return;
  }
  if (how == ATOMIC_LOADS) return;
  if (c->r) against_reads(e, s, at, c->r, how, me);
  if (how != WRITES) {
    c->w = atomic_stamp(e, s, w, me);
  } else {
    c->w = write_stamp(e, me);
    /* an access that races with a read before this write also races with the write */
    c->r = 0;
  }
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
    if (whole && how == WRITES) *c = b[0]; /* the bytes have one history again */
  }
}

/* ---- accesses of threads */
static void outside(Emu *e, const Space *s, uintptr_t at, size_t nbytes, Access how) {
  char where[PLACE_TEXT];
  place_text(e, s, at, nbytes, where);
  emu_fail(e, "out of bounds: %s %zu byte%s %s", verb[how], nbytes, nbytes == 1 ? "" : "s", where);
}

static bool in_array(Emu *e, size_t off, size_t nbytes) {
  const EmuModule *m = e->kernel->module;
  size_t room = m->image.room - m->image.data;
  if (off >= room) return off - room <= e->shared_limit && nbytes <= e->shared_limit - (off - room);
  for (size_t i = 0; i < m->arrays.len; i++) {
    size_t index = (e->recent_array + i) % m->arrays.len;
    const Array *a = &m->arrays.at[index];
    if (off - a->at >= a->nbytes) continue;
    e->recent_array = index;
    return nbytes <= a->nbytes - (off - a->at);
  }
  return false;
}

static bool in_stack(const Stack *s, uintptr_t at) { return at - (uintptr_t)s->low < STACK_BYTES; }

/* The address is neither in device memory nor in the module's variables. Constants of the kernel may be read;
 * anything else is an error. */
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
    if (!memory_holds(e, at, nbytes)) outside(e, &e->device, at, nbytes, how);
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
  if (++e->accesses > e->patience)
    emu_fail(e, "it does not end: %llu accesses without waiting for others", (unsigned long long)e->patience);
  const Space *s = nbytes ? space_of(e, at, nbytes, how) : NULL;
  if (s) space_access(e, s, at, nbytes, how);
}

void memory_pending(Emu *e, uintptr_t at, size_t nbytes) {
  const Space *s = space_of(e, at, nbytes, WRITES);
  if (!s) return;
  space_access(e, s, at, nbytes, WRITES);
  for (size_t off = at - s->lo; off < at - s->lo + nbytes; off += WORD)
    /* Steps of 4 bytes are enough: the words are not split, because they were just written as a whole. */
    s->words[off / WORD].w |= IN_FLIGHT;
}

void memory_arrived(Emu *e, uintptr_t at, size_t nbytes) {
  const Space *s = &e->kernel->module->shared;
  uint64_t stamp = write_stamp(e, thread_number(e, e->current));
  for (size_t off = at - s->lo; off < at - s->lo + nbytes; off += WORD)
    s->words[off / WORD] = (Cell){stamp, 0};
}
