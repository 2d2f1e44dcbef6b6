/* block_list.h: private to src/runtime. Memory of a device that is kept, when it is freed, for the next who
 * asks. A block that is freed may still be in use by what the device was given: that is given in order, so
 * who gets the block next comes after. */
#ifndef TG_BLOCKS_H
#define TG_BLOCKS_H
#include "runtime/device.h"

/* object: what the driver calls it, where that is not its address. given_at, freed_at: what had been given to
 * the device when it was allocated, when it was freed. */
typedef struct Block {
  uintptr_t at;
  size_t room, nbytes;
  void *object;
  uint64_t given_at, freed_at;
  struct Block *older, *newer; /* among the free ones */
} Block;

/* What differs between devices. take: a block of that room, at and object; TG_ERR_NOMEM, with or without a
 * message, where there is no memory. sync: until all that the device was given is done; it sets done. */
typedef struct BlockDriver {
  TgStatus (*take)(Device *d, size_t room, Block *b);
  TgStatus (*give)(Device *d, Block *b);
  TgStatus (*sync)(Device *d);
  size_t grain; /* a power of two: sizes of small blocks are multiples of it */
} BlockDriver;

typedef struct Blocks {
  const BlockDriver *driver;
  Map at;               /* address -> Block in use */
  Block *first, *last;  /* free ones: the longest free first */
  uint64_t bytes_free;  /* in those */
  uint64_t most_free;   /* .. at most */
  uint64_t given, done; /* numbers of what the device was given, and of it is known done */
  bool exact;           /* no block is larger than what was asked for, up to the grain */
} Blocks;

void blocks_init(Device *d, Blocks *k, const BlockDriver *driver);
TgStatus blocks_alloc(Device *d, Blocks *k, size_t nbytes, void **out);
void blocks_free(Device *d, Blocks *k, void *at, size_t nbytes);
Block *blocks_find(const Blocks *k, const void *at); /* that begins there; NULL: none does */
void blocks_end(Device *d, Blocks *k);               /* gives all back, also what nobody freed */
#endif
