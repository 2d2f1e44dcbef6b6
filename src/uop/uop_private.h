/* uop_private.h: what the files of src/uop share: the store, and maps over it, each with the stack of the
 * walk that uses it. */
#ifndef TG_UOP_PRIVATE_H
#define TG_UOP_PRIVATE_H
#include "uop/uop.h"

/* A node on the stack of a walk, and the number of its sources visited. next: in a rewrite, the result of the
 * rule that fired on u. */
typedef struct WalkFrame {
  UOp *u, *next;
  int i;
} WalkFrame;

struct UOpMap {
  UOpStore *values; /* the store of the values; the store of the keys owns the map */
  uint64_t *at;     /* by id of the key: epoch << 32 | id of the value, or a number */
  size_t cap;
  uint32_t epoch;
  Vec(WalkFrame) stack; /* kept with the map, so that a small walk allocates nothing */
  Vec(UOp *) order;     /* the nodes found, until their number is known */
  UOpMap *next;         /* the next map in the store's list of free maps */
};

#define SMALL_NSRC 8

/* An entry of the hash table. next_id: id + 1; 0: empty. A slot of 8 bytes causes half the cache misses of
 * one with a pointer. */
typedef struct Slot {
  uint32_t hash, next_id;
} Slot;

struct UOpStore {
  TgMem *mem;
  TgError *err; /* receives an error if a node cannot be allocated, or NULL */
  Arena arena, ints_arena;
  Slot *table;
  size_t cap, room, len, created; /* cap: slots in use, a power of two; room: slots that there are */
  UOp *free_list[SMALL_NSRC + 1]; /* freed nodes by number of sources; the first word of arg links them */
  Vec(UOp *) big;                 /* nodes with many sources, from the heap */
  Vec(UOp *) all;                 /* by id; NULL if swept */
  Vec(uint32_t) free_ids;
  UOp *recent_const[64]; /* index constants by value % 64; cleared by a sweep */
  UOpMap *free_maps;
  Map ints; /* hash of a list -> Ints* (next by probing hash + 1) */
  RewriteEnv *env;
  Vec(uint8_t) devices;  /* by uid of a memory: its device; 0 past the end */
  struct DimTable *dims; /* symbolic sizes (dims.h), or NULL: shapes are numbers */
};

/* Computes what a node derives from its sources: shape or bounds, and the other facts (node_facts.c). Returns
 * false if out of memory. */
bool facts_set(UOpStore *st, UOp *u);

/* The node that u is mapped to, or NULL. */
static inline UOp *map_node(const UOpMap *m, const UOp *u) {
  uint64_t e = u->id < m->cap ? m->at[u->id] : 0;
  return e >> 32 == m->epoch ? m->values->all.at[(uint32_t)e] : NULL;
}

static inline bool map_set(UOpStore *keys, UOpMap *m, const UOp *u, uint32_t v) {
  if (u->id >= m->cap &&
      !vec_grow(keys->mem, (void **)&m->at, &m->cap, TG_MAX((size_t)u->id + 1, keys->all.len), sizeof *m->at))
    return false;
  m->at[u->id] = (uint64_t)m->epoch << 32 | v;
  return true;
}
#endif
