/* arena.c: where values that live for a limited time are placed. In: sizes and lifetimes. Out: offsets in
 * one block of memory. Each item is placed in the lowest gap, or in the tightest one, between the items
 * that live at the same time. The result depends on the order, so several orders are tried, and then small
 * changes of the best one. The items that live at the same time as a given one are found with a tree over
 * time, so the work grows with the number of such pairs. */
#include "engine/export.h"
#include <stdlib.h>
#include <string.h>

typedef struct Span {
  int64_t from, to;
} Span;

/* A time is the rank of an item's start among all starts. Node 1 of the tree covers all time; the leaves
 * begin at node `leaves`. An item is in the lists of the few nodes that together cover its life, and in
 * the list of its first time. */
typedef struct Placing {
  ArenaItem *item;
  size_t n;
  int *order, *best;
  int64_t *offset; /* by item, in the best placement so far */
  int64_t best_bytes;
  Span *taken;
  int *first, *last, *time; /* time: the launches at which an item begins, ascending */
  int ntime, leaves, used;
  int *head, *begun, *next, *of; /* linked lists; -1 ends one */
} Placing;

static int by_from(const void *a, const void *b) {
  const Span *x = a, *y = b;
  return (x->from > y->from) - (x->from < y->from);
}

/* Returns the offset at which an item of nbytes is placed among n spans that are sorted by their start. */
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

static void listed(Placing *p, int *head, int item) {
  p->of[p->used] = item;
  p->next[p->used] = *head;
  *head = p->used++;
}

static void inserted(Placing *p, int item) {
  listed(p, &p->begun[p->first[item]], item);
  int from = p->first[item] + p->leaves, to = p->last[item] + p->leaves + 1;
  for (; from < to; from /= 2, to /= 2) {
    if (from & 1) listed(p, &p->head[from++], item);
    if (to & 1) listed(p, &p->head[--to], item);
  }
}

static size_t spans_of(Placing *p, int head, size_t n) {
  for (int at = head; at >= 0; at = p->next[at]) {
    const ArenaItem *other = &p->item[p->of[at]];
    p->taken[n++] = (Span){other->offset, other->offset + other->nbytes};
  }
  return n;
}

/* Collects the spans of the placed items that live when an item begins, or begin during its life. Returns
 * their number. */
static size_t spans_taken(Placing *p, int item) {
  size_t n = 0;
  for (int node = p->first[item] + p->leaves; node; node /= 2)
    n = spans_of(p, p->head[node], n);
  for (int t = p->first[item] + 1; t <= p->last[item]; t++)
    n = spans_of(p, p->begun[t], n);
  return n;
}

/* Places all items in the order of p->order. Returns the bytes that they take. */
static int64_t placed(Placing *p, bool tightest) {
  int64_t bytes = 0;
  p->used = 0;
  memset(p->head, 0xff, (size_t)(2 * p->leaves) * sizeof *p->head);
  memset(p->begun, 0xff, (size_t)p->leaves * sizeof *p->begun);
  for (size_t i = 0; i < p->n; i++) {
    ArenaItem *it = &p->item[p->order[i]];
    size_t n = spans_taken(p, p->order[i]);
    qsort(p->taken, n, sizeof *p->taken, by_from);
    it->offset = gap_for(p->taken, n, it->nbytes, tightest);
    bytes = TG_MAX(bytes, it->offset + it->nbytes);
    inserted(p, p->order[i]);
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

/* Sort keys. 0: large items first; 1: items that live long; 2: items that begin early; 3: items with a
 * large product of size and life. */
static double key_of(const ArenaItem *it, int rule) {
  double life = it->last - it->first + 1.0;
  switch (rule) {
  case 0: return (double)it->nbytes;
  case 1: return life;
  case 2: return -(double)it->first;
  default: return life * (double)it->nbytes;
  }
}

typedef struct Key {
  double key;
  int item;
} Key;

static int by_key(const void *a, const void *b) { /* greatest key first; equal keys by item number */
  const Key *x = a, *y = b;
  return x->key != y->key ? (x->key < y->key) - (x->key > y->key) : (x->item > y->item) - (x->item < y->item);
}

static void sorted(Placing *p, Key *key, int rule) {
  for (size_t i = 0; i < p->n; i++)
    key[i] = (Key){key_of(&p->item[i], rule), (int)i};
  qsort(key, p->n, sizeof *key, by_key);
  for (size_t i = 0; i < p->n; i++)
    p->order[i] = key[i].item;
}

/* Tries orders in which two items of the best order change places. The random numbers are the same in
 * every run. */
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

static int by_time(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

/* Returns the number of times that are no later than t. */
static int times_until(const Placing *p, int t) {
  int lo = 0, hi = p->ntime;
  while (lo < hi) {
    int mid = lo + (hi - lo) / 2;
    if (p->time[mid] <= t)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

static void times_ranked(Placing *p) {
  for (size_t i = 0; i < p->n; i++)
    p->time[i] = p->item[i].first;
  qsort(p->time, p->n, sizeof *p->time, by_time);
  for (size_t i = 0; i < p->n; i++)
    if (!p->ntime || p->time[i] != p->time[p->ntime - 1]) p->time[p->ntime++] = p->time[i];
  for (p->leaves = 1; p->leaves < p->ntime;)
    p->leaves *= 2;
  for (size_t i = 0; i < p->n; i++) {
    p->first[i] = times_until(p, p->item[i].first) - 1;
    p->last[i] = times_until(p, p->item[i].last) - 1;
    if (p->last[i] < p->first[i]) p->last[i] = p->first[i];
  }
}

/* Returns the most bytes that live at once, which is reached where some item begins. change: scratch, one
 * entry more than there are times. */
static int64_t least_bytes(const Placing *p, int64_t *change) {
  int64_t most = 0, now = 0;
  memset(change, 0, (size_t)(p->ntime + 1) * sizeof *change);
  for (size_t i = 0; i < p->n; i++) {
    change[p->first[i]] += p->item[i].nbytes;
    change[p->last[i] + 1] -= p->item[i].nbytes;
  }
  for (int t = 0; t < p->ntime; t++) {
    now += change[t];
    most = TG_MAX(most, now);
  }
  return most;
}

static bool placing_new(Placing *p, TgMem *mem, Key **key) {
  size_t n = p->n + 1, bits = 1;
  while ((size_t)1 << bits < n)
    bits++;
  p->order = mem_alloc(mem, n * sizeof *p->order);
  p->best = mem_alloc(mem, n * sizeof *p->best);
  p->offset = mem_alloc(mem, n * sizeof *p->offset);
  p->taken = mem_alloc(mem, n * sizeof *p->taken);
  p->first = mem_alloc(mem, n * sizeof *p->first);
  p->last = mem_alloc(mem, n * sizeof *p->last);
  p->time = mem_alloc(mem, n * sizeof *p->time);
  p->head = mem_alloc(mem, 4 * n * sizeof *p->head);
  p->begun = mem_alloc(mem, 2 * n * sizeof *p->begun);
  p->next = mem_alloc(mem, n * (2 * bits + 2) * sizeof *p->next);
  p->of = mem_alloc(mem, n * (2 * bits + 2) * sizeof *p->of);
  *key = mem_alloc(mem, n * sizeof **key);
  return p->order && p->best && p->offset && p->taken && p->first && p->last && p->time && p->head &&
         p->begun && p->next && p->of && *key;
}

static void placing_free(Placing *p, TgMem *mem, Key *key) {
  mem_free(mem, p->order), mem_free(mem, p->best), mem_free(mem, p->offset), mem_free(mem, p->taken);
  mem_free(mem, p->first), mem_free(mem, p->last), mem_free(mem, p->time), mem_free(mem, p->head);
  mem_free(mem, p->begun), mem_free(mem, p->next), mem_free(mem, p->of), mem_free(mem, key);
}

bool arena_placed(TgMem *mem, ArenaItem *item, size_t n, int64_t align, int64_t *bytes, int64_t *bound) {
  Placing p = {.item = item, .n = n, .best_bytes = INT64_MAX};
  Key *key;
  bool ok = placing_new(&p, mem, &key);
  *bytes = *bound = 0;
  for (size_t i = 0; i < n; i++)
    item[i].nbytes = (item[i].nbytes + align - 1) / align * align;
  if (ok) times_ranked(&p);
  if (ok) *bound = least_bytes(&p, p.offset);
  for (int rule = 0; ok && rule < 4; rule++) {
    sorted(&p, key, rule);
    tried(&p);
  }
  if (ok) changed(&p, *bound);
  for (size_t i = 0; ok && i < n; i++)
    item[i].offset = p.offset[i];
  if (ok && n) *bytes = p.best_bytes;
  placing_free(&p, mem, key);
  return ok;
}
