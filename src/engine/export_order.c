/* export_order.c: the order of launches. In: the calls of a run, and what each one reads and stores. Out:
 * an order in which each call follows its dependences and few bytes live at once. The scheduler's own
 * order goes level by level, and makes all that can be made before any of it is used. */
#include "engine/export.h"
#include <string.h>

/* Calls that stay together: a loop over bands, or a launch with the weights brought for it. waits: number
 * of units that it waits for. after: first edge to a unit that waits for it, or -1. item: where its items
 * begin. */
typedef struct Unit {
  size_t from, to, item;
  int waits, after;
} Unit;

typedef struct Edge {
  int to, next;
} Edge;

/* A memory that calls share. writer: 1 + the unit that last stored to it, or 0. readers: units that read
 * it since. */
typedef struct Shared {
  int writer;
  Vec(int) readers;
} Shared;

typedef struct Ordering {
  const Export *x;
  TgMem *mem;
  Vec(Unit) units;
  Vec(Edge) edges;
  Vec(int) items;         /* items of the arena, grouped by unit */
  Vec(int) ready, sorted; /* units */
  Shared *shared;
  size_t nshared;
  int *uses;  /* by item: how many remaining units use it */
  bool *live; /* by item: a finished unit has used it */
} Ordering;

static bool units_found(Ordering *o) {
  const Export *x = o->x;
  int depth = 0;
  for (size_t i = 0, from = 0; i < x->calls.len; i++) {
    int kernel = x->calls.at[i].kernel;
    depth += (kernel == CALL_BANDS) - (kernel == CALL_BANDS_END);
    if (depth || kernel == CALL_BRING) continue;
    Unit u = {.from = from, .to = i + 1, .after = -1};
    if (!vec_push(o->mem, &o->units, u)) return false;
    from = i + 1;
  }
  return true;
}

/* Returns the number of the shared memory that a place is in. -1: it never changes. */
static int64_t shared_of(const Export *x, const ExportPlace *p) {
  int64_t items = (int64_t)x->items.len, memories = (int64_t)x->memories.len;
  switch (p->kind) {
  case IN_ARENA: return p->number;
  case IN_STATE: return items + p->number;
  case IN_INPUT: return items + memories + p->number;
  case IN_OUTPUT: return items + memories + x->planned->nin + p->number;
  default: return -1;
  }
}

static bool edge_add(Ordering *o, int from, int to) {
  if (from < 0 || from == to) return true;
  Unit *u = &o->units.at[from];
  if (u->after >= 0 && o->edges.at[u->after].to == to) return true;
  Edge e = {to, u->after};
  if (!vec_push(o->mem, &o->edges, e)) return false;
  u->after = (int)o->edges.len - 1;
  o->units.at[to].waits++;
  return true;
}

/* Adds the dependences of a place. A read waits for the last store; a store also waits for all reads of
 * what it replaces. */
static bool place_used(Ordering *o, int unit, const ExportPlace *p) {
  int64_t at = shared_of(o->x, p);
  if (at < 0) return true;
  Shared *m = &o->shared[at];
  bool ok = edge_add(o, m->writer - 1, unit);
  if (!p->stored) return ok && vec_push(o->mem, &m->readers, unit);
  for (size_t i = 0; ok && i < m->readers.len; i++)
    ok = edge_add(o, m->readers.at[i], unit);
  m->readers.len = 0;
  m->writer = unit + 1;
  return ok;
}

static bool item_known(const Ordering *o, const Unit *u, int item) {
  for (size_t i = u->item; i < o->items.len; i++)
    if (o->items.at[i] == item) return true;
  return false;
}

static bool unit_met(Ordering *o, int unit) {
  const Export *x = o->x;
  bool ok = true;
  o->units.at[unit].item = o->items.len;
  for (size_t i = o->units.at[unit].from; i < o->units.at[unit].to; i++) {
    const ExportCall *c = &x->calls.at[i];
    for (int a = 0; ok && a < c->narg; a++) {
      const ExportPlace *p = &x->args.at[c->arg + (size_t)a];
      ok = place_used(o, unit, p);
      if (!ok || p->kind != IN_ARENA || item_known(o, &o->units.at[unit], p->number)) continue;
      ok = vec_push(o->mem, &o->items, p->number);
      o->uses[p->number]++;
    }
  }
  return ok;
}

/* By how many bytes more live after a unit than before it. */
static int64_t growth(const Ordering *o, int unit) {
  bool last = (size_t)unit + 1 == o->units.len;
  size_t end = last ? o->items.len : o->units.at[unit + 1].item;
  int64_t sum = 0;
  for (size_t i = o->units.at[unit].item; i < end; i++) {
    int item = o->items.at[i];
    int64_t nbytes = o->x->items.at[item].nbytes;
    if (!o->live[item]) sum += nbytes;
    if (o->uses[item] == 1) sum -= nbytes;
  }
  return sum;
}

static bool unit_done(Ordering *o, int unit) {
  bool last = (size_t)unit + 1 == o->units.len, ok = vec_push(o->mem, &o->sorted, unit);
  size_t end = last ? o->items.len : o->units.at[unit + 1].item;
  for (size_t i = o->units.at[unit].item; i < end; i++) {
    o->live[o->items.at[i]] = true;
    o->uses[o->items.at[i]]--;
  }
  for (int e = o->units.at[unit].after; ok && e >= 0; e = o->edges.at[e].next) {
    int next = o->edges.at[e].to;
    if (!--o->units.at[next].waits) ok = vec_push(o->mem, &o->ready, next);
  }
  return ok;
}

/* Takes, among the units that can run, the one after which the fewest bytes live; among equals the first. */
static bool units_sorted(Ordering *o) {
  bool ok = true;
  for (size_t i = 0; ok && i < o->units.len; i++)
    if (!o->units.at[i].waits) ok = vec_push(o->mem, &o->ready, (int)i);
  while (ok && o->ready.len) {
    size_t best = 0;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < o->ready.len; i++) {
      int64_t more = growth(o, o->ready.at[i]);
      if (more > least || (more == least && o->ready.at[i] > o->ready.at[best])) continue;
      best = i;
      least = more;
    }
    int unit = o->ready.at[best];
    o->ready.at[best] = o->ready.at[--o->ready.len];
    ok = unit_done(o, unit);
  }
  return ok;
}

static bool calls_moved(const Ordering *o, ExportCall *out) {
  size_t n = 0;
  for (size_t i = 0; i < o->sorted.len; i++) {
    const Unit *u = &o->units.at[o->sorted.at[i]];
    memcpy(out + n, o->x->calls.at + u->from, (u->to - u->from) * sizeof *out);
    n += u->to - u->from;
  }
  return n == o->x->calls.len;
}

bool export_order(const Export *x, ExportCall *out) {
  TgMem *mem = &x->ctx->mem;
  Ordering o = {.x = x, .mem = mem};
  o.nshared = x->items.len + x->memories.len + (size_t)(x->planned->nin + x->planned->nout);
  o.shared = mem_alloc(mem, (o.nshared + 1) * sizeof *o.shared);
  o.uses = mem_alloc(mem, (x->items.len + 1) * sizeof *o.uses);
  o.live = mem_alloc(mem, (x->items.len + 1) * sizeof *o.live);
  bool ok = o.shared && o.uses && o.live && units_found(&o);
  for (size_t i = 0; ok && i < o.units.len; i++)
    ok = unit_met(&o, (int)i);
  ok = ok && units_sorted(&o) && !NEVER(!calls_moved(&o, out));
  for (size_t i = 0; o.shared && i < o.nshared; i++)
    vec_free(mem, &o.shared[i].readers);
  vec_free(mem, &o.units), vec_free(mem, &o.edges), vec_free(mem, &o.items), vec_free(mem, &o.ready),
      vec_free(mem, &o.sorted);
  mem_free(mem, o.shared), mem_free(mem, o.uses), mem_free(mem, o.live);
  return ok;
}
