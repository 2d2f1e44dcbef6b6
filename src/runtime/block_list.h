/* block_list.h: private to src/runtime. Freed memory of a device is kept for the next allocation. Earlier
 * work may still use a freed block, but the device works in order, so the block's next user comes after that
 * work. */
#ifndef TG_BLOCKS_H
#define TG_BLOCKS_H
#include "runtime/device.h"

/* object: the driver's handle of the block, if that is not its address. given_at, freed_at: how many things
 * the device had been given when the block was allocated and when it was freed. */
typedef struct Block {
  uintptr_t at;
  size_t room, nbytes;
  void *object;
  uint64_t given_at, freed_at;
  struct Block *older, *newer; /* neighbours in the list of free blocks */
} Block;

/* The operations that differ between devices. take: allocates a block of that room and sets at and object;
 * returns TG_ERR_NOMEM, with or without a message, if there is no memory. give: returns a block to the
 * driver. sync: waits until everything given is done, and sets `done`. */
typedef struct BlockDriver {
  TgStatus (*take)(Device *d, size_t room, Block *b);
  TgStatus (*give)(Device *d, Block *b);
  TgStatus (*sync)(Device *d);
  size_t grain; /* a power of two: sizes of small blocks are multiples of it */
} BlockDriver;

typedef struct Blocks {
  const BlockDriver *driver;
  Map at;              /* address -> Block in use */
  Block *first, *last; /* list of free blocks: the one that was freed first comes first */
  uint64_t bytes_free; /* in the list of free blocks */
  uint64_t most_free;  /* the most that bytes_free may be */
  /* given: number of things that the device was given; done: how many are known to be done */
  uint64_t given, done;
  /* blocks are exactly as large as requested, up to the grain */
  bool exact;
} Blocks;

void blocks_init(Device *d, Blocks *k, const BlockDriver *driver);
TgStatus blocks_alloc(Device *d, Blocks *k, size_t nbytes, void **out);
void blocks_free(Device *d, Blocks *k, void *at, size_t nbytes);
/* Returns the block in use that begins there, or NULL. */
Block *blocks_find(const Blocks *k, const void *at);
/* Returns all memory to the driver, also the blocks that were never freed. */
void blocks_end(Device *d, Blocks *k);
#endif
