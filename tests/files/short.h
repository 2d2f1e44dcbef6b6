/* short.h: a graph whose memory ends. Between short_begin and short_end the context's graph has room for so
 * many bytes of nodes, and so many of shapes, and for no more; all else has memory. */
#ifndef TG_TESTS_SHORT_H
#define TG_TESTS_SHORT_H
#include "tensor/context.h"
#include "uop/uop_private.h"
#include <string.h>

enum { SHORT_MOST = 1 << 18 }; /* the greatest room */

typedef struct Short {
  TgMem none;
  size_t size[2]; /* of the blocks */
  UOp *free_list[SMALL_NSRC + 1];
} Short;

/* False: no memory for the room itself, and nothing is changed. */
static inline bool short_begin(Short *s, TgContext *c, size_t room) {
  Arena *both[2] = {&c->store->arena, &c->store->ints_arena};
  for (int i = 0; i < 2; i++)
    if (!both[i]->block || both[i]->block->size - both[i]->block->used < SHORT_MOST)
      if (!arena_grow(both[i], 2 * SHORT_MOST)) return false;
  s->none = (TgMem){.fail_at = 1, .fail_always_after = true};
  for (int i = 0; i < 2; i++) {
    s->size[i] = both[i]->block->size;
    both[i]->block->size = both[i]->block->used + TG_MIN(room, SHORT_MOST), both[i]->mem = &s->none;
  }
  /* nodes that were swept would need no room */
  memcpy(s->free_list, c->store->free_list, sizeof s->free_list);
  memset(c->store->free_list, 0, sizeof s->free_list);
  return true;
}

static inline void short_end(Short *s, TgContext *c) {
  Arena *both[2] = {&c->store->arena, &c->store->ints_arena};
  for (int i = 0; i < 2; i++)
    both[i]->block->size = s->size[i], both[i]->mem = &c->mem;
  for (int i = 0; i <= SMALL_NSRC;
       i++) /* what was swept meanwhile is not used again: it stays in its block */
    if (s->free_list[i]) c->store->free_list[i] = s->free_list[i];
}
#endif
