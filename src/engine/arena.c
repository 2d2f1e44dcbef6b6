/* arena.c: where values lie that live for a while. In: sizes and lifetimes. Out: offsets in one block of
 * memory. Each item goes to the lowest gap, or to the tightest one, among those that live when it does; what
 * comes first decides how well that ends, so several orders are tried, and then small changes of the best. */
#include "engine/export.h"
#include <stdlib.h>

typedef struct Span {
  int64_t from, to;
} Span;

typedef struct Placing {
  ArenaItem *item;
  size_t n;
  int *order, *best;
  int64_t *offset; /* of the best */
  int64_t best_bytes;
  Span *taken;
} Placing;

static bool meet(const ArenaItem *a, const ArenaItem *b) {
  return a->first <= b->last && b->first <= a->last;
}

static int by_from(const void *a, const void *b) {
  const Span *x = a, *y = b;
  return (x->from > y->from) - (x->from < y->from);
}

/* Where an item of nbytes goes among n spans. */
static int64_t gap_for(const Span *taken, size_t n, int64_t nbytes, bool tightest) {
  int64_t end = 0, best = -1, room = INT64_MAX;
  for (size_t i = 0; i < n; i++) {
    int64_t gap = taken[i].from - end;
    if (gap >= nbytes && (best < 0 || (tightest && gap < room))) {
      best = end;
      room = gap;
    }
    end = TG_MAX(end, taken[i].to);
  }
  return best < 0 ? end : best;
}

/* In the order of p->order: bytes of all. */
static int64_t placed(Placing *p, bool tightest) {
  int64_t bytes = 0;
  for (size_t i = 0; i < p->n; i++) {
    ArenaItem *it = &p->item[p->order[i]];
    size_t n = 0;
    for (size_t k = 0; k < i; k++) {
      const ArenaItem *other = &p->item[p->order[k]];
      if (meet(it, other)) p->taken[n++] = (Span){other->offset, other->offset + other->nbytes};
    }
    qsort(p->taken, n, sizeof *p->taken, by_from);
    it->offset = gap_for(p->taken, n, it->nbytes, tightest);
    bytes = TG_MAX(bytes, it->offset + it->nbytes);
  }
  return bytes;
}

static bool tried(Placing *p) {
  bool better = false;
  for (int tightest = 0; tightest < 2; tightest++) {
    int64_t bytes = placed(p, tightest);
    if (bytes >= p->best_bytes) continue;
    better = true;
    p->best_bytes = bytes;
    for (size_t i = 0; i < p->n; i++) {
      p->offset[i] = p->item[i].offset;
      p->best[i] = p->order[i];
    }
  }
  return better;
}

/* Keys of an order: large items first; what lives long first; in order of time; by the memory that they take
 * over time. */
static double key_of(const ArenaItem *it, int rule) {
  double life = it->last - it->first + 1.0;
  switch (rule) {
  case 0: return (double)it->nbytes;
  case 1: return life;
  case 2: return -(double)it->first;
  default: return life * (double)it->nbytes;
  }
}

static void sorted(Placing *p, int rule) {
  for (size_t i = 0; i < p->n; i++) {
    size_t at = i;
    double key = key_of(&p->item[i], rule);
    while (at && key_of(&p->item[p->order[at - 1]], rule) < key) {
      p->order[at] = p->order[at - 1];
      at--;
    }
    p->order[at] = (int)i;
  }
}

/* Two items of the best order change places; the numbers are the same at each run. */
static void changed(Placing *p, int64_t bound) {
  enum { MOST_ITEMS = 300, ROUNDS = 400 };

  uint32_t random = 1;
  for (int round = 0; p->n > 2 && p->n <= MOST_ITEMS && round < ROUNDS && p->best_bytes > bound; round++) {
    size_t at[2];
    for (int i = 0; i < 2; i++) {
      random = random * 1664525u + 1013904223u;
      at[i] = (random >> 8) % p->n;
    }
    for (size_t i = 0; i < p->n; i++)
      p->order[i] = p->best[i];
    p->order[at[0]] = p->best[at[1]];
    p->order[at[1]] = p->best[at[0]];
    tried(p);
  }
}

/* What lives at once is most where some item begins. */
static int64_t least_bytes(const ArenaItem *item, size_t n) {
  int64_t most = 0;
  for (size_t i = 0; i < n; i++) {
    int64_t bytes = 0;
    for (size_t k = 0; k < n; k++)
      if (item[k].first <= item[i].first && item[i].first <= item[k].last) bytes += item[k].nbytes;
    most = TG_MAX(most, bytes);
  }
  return most;
}

bool arena_placed(TgMem *mem, ArenaItem *item, size_t n, int64_t align, int64_t *bytes, int64_t *bound) {
  Placing p = {.item = item, .n = n, .best_bytes = INT64_MAX};
  p.order = mem_alloc(mem, (n + 1) * sizeof *p.order);
  p.best = mem_alloc(mem, (n + 1) * sizeof *p.best);
  p.offset = mem_alloc(mem, (n + 1) * sizeof *p.offset);
  p.taken = mem_alloc(mem, (n + 1) * sizeof *p.taken);
  bool ok = p.order && p.best && p.offset && p.taken;
  for (size_t i = 0; i < n; i++)
    item[i].nbytes = (item[i].nbytes + align - 1) / align * align;
  *bound = least_bytes(item, n);
  for (int rule = 0; ok && rule < 4; rule++) {
    sorted(&p, rule);
    tried(&p);
  }
  if (ok) changed(&p, *bound);
  for (size_t i = 0; ok && i < n; i++)
    item[i].offset = p.offset[i];
  *bytes = n ? p.best_bytes : 0;
  mem_free(mem, p.order), mem_free(mem, p.best), mem_free(mem, p.offset), mem_free(mem, p.taken);
  return ok;
}
