/* block_list.c: freed memory of a device, kept for the next allocation. In: sizes, and a driver's own calls.
 * Out: blocks. Freed blocks stay in a list. The ones freed first are returned to the driver if the list is
 * too large, or if the driver has no memory left. */
#include "runtime/block_list.h"

void blocks_init(Device *d, Blocks *k, const BlockDriver *driver) {
  k->driver = driver;
  map_init(&k->at, d->mem);
}

/* Rounds a size up to one of few sizes, so that a freed block is likely to fit a later request. For an
 * emulated device blocks are exact, because it detects an access past the last byte. */
static size_t room_for(const Blocks *k, size_t nbytes) {
  enum { SMALL = 1 << 20, GRAIN = 512, STEPS = 8 };

  size_t grain = k->exact ? k->driver->grain : GRAIN;
  if (nbytes >= SMALL && !k->exact) grain = ((size_t)1 << (63 - __builtin_clzll(nbytes))) / STEPS;
  return nbytes > SIZE_MAX - grain ? nbytes : (nbytes + grain - 1) / grain * grain;
}

static void free_list_leave(Blocks *k, Block *b) {
  *(b->older ? &b->older->newer : &k->first) = b->newer;
  *(b->newer ? &b->newer->older : &k->last) = b->older;
  b->older = b->newer = NULL;
  k->bytes_free -= b->room;
}

static void free_list_enter(Blocks *k, Block *b) {
  b->older = k->last;
  b->newer = NULL;
  *(k->last ? &k->last->newer : &k->first) = b;
  k->last = b;
  k->bytes_free += b->room;
}

/* Takes the block of this room that was freed last out of the list. Returns NULL if there is none. */
static Block *free_block(Blocks *k, size_t room) {
  Block *b = k->last;
  while (b && b->room != room)
    b = b->older;
  if (b) free_list_leave(k, b);
  return b;
}

/* Returns memory to the driver, in the order in which it was freed, until at most `most` bytes are kept.
 * Waits for the device if it may still use a block. */
static TgStatus trimmed(Device *d, Blocks *k, uint64_t most) {
  TgStatus st = TG_OK;
  while (k->bytes_free > most && k->first) {
    Block *b = k->first;
    if (b->freed_at > k->done && (st = k->driver->sync(d))) return st;
    free_list_leave(k, b);
    st = k->driver->give(d, b);
    mem_free(d->mem, b);
    if (st) return st;
  }
  return st;
}

static TgStatus block_new(Device *d, Blocks *k, size_t room, Block **out) {
  Block *b = *out = mem_alloc(d->mem, sizeof *b);
  if (!b) return error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name);
  TgStatus st = k->driver->take(d, room, b);
  if (st == TG_ERR_NOMEM && k->first && !trimmed(d, k, 0)) st = k->driver->take(d, room, b);
  b->room = room;
  if (!st) return TG_OK;
  mem_free(d->mem, b);
  *out = NULL;
  return error_set(d->err, st, "%s: cannot allocate %zu bytes", d->name, room);
}

TgStatus blocks_alloc(Device *d, Blocks *k, size_t nbytes, void **out) {
  TgStatus st = TG_OK;
  size_t room = room_for(k, TG_MAX(nbytes, (size_t)1));
  Block *b = free_block(k, room);
  *out = NULL;
  if (!b) st = block_new(d, k, room, &b);
  if (st) return st;
  b->nbytes = nbytes;
  b->given_at = k->given;
  if (!map_put_ptr(&k->at, b->at, b)) {
    free_list_enter(k, b);
    return error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name);
  }
  *out = (void *)b->at;
  d->bytes_in_use += nbytes;
  d->bytes_peak = TG_MAX(d->bytes_peak, d->bytes_in_use);
  return TG_OK;
}

Block *blocks_find(const Blocks *k, const void *at) { return map_get_ptr(&k->at, at); }

void blocks_free(Device *d, Blocks *k, void *at, size_t nbytes) {
  Block *b = at ? blocks_find(k, at) : NULL;
  if (!b) return;
  map_put_ptr(&k->at, b->at, NULL);
  b->freed_at = k->given;
  free_list_enter(k, b);
  d->bytes_in_use -= nbytes;
  /* The errors of a failed device are reported by later calls, which can return them. */
  TgError *told = d->err, ignored = {0};
  d->err = &ignored;
  trimmed(d, k, k->most_free);
  d->err = told;
}

void blocks_end(Device *d, Blocks *k) {
  TgError *told = d->err, ignored = {0};
  d->err = &ignored;
  for (size_t i = 0; i < k->at.cap; i++) { /* blocks that were never freed */
    Block *b = k->at.at[i].used ? (Block *)(uintptr_t)k->at.at[i].val : NULL;
    if (b) free_list_enter(k, b);
  }
  map_free(&k->at);
  while (k->first) {
    Block *b = k->first;
    free_list_leave(k, b);
    k->driver->give(d, b);
    mem_free(d->mem, b);
  }
  d->err = told;
}
