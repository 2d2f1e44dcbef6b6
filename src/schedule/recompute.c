/* recompute.c: a value that other kernels read is written, or computed again there from what is in memory,
 * whichever is cheaper. In: stages with their kernels. Out: the same; some stages have become part of their
 * readers in other kernels. The stages that such a value is made of go with it, unless they are in memory.
 * One with a single number for each iteration of its kernel's grid, such as the mean of a channel, is written
 * for it. A factor of products that is reused takes nothing along, because that would be computed for each
 * product. */
#include "schedule/stage.h"
#include <string.h>

enum { LITTLE = 16 }; /* a stage is little if the value has this many times its elements */

static bool is_read_by_others(Sched *s, int i) {
  const Stage *g = stage_at(s, i);
  bool others = g->keep;
  for (size_t k = 0; k < g->readers.len && !others; k++)
    others = stage_at(s, g->readers.at[k])->kernel != g->kernel;
  return others;
}

static bool kernel_reads(Sched *s, int k, const Read *rd) {
  const StageSet *kk = &s->ks.at[k];
  bool reads = false;
  for (size_t m = 0; m < kk->mem.len && !reads; m++) {
    const Stage *g = stage_at(s, kk->mem.at[m]);
    for (size_t j = 0; j < g->reads.len && !reads; j++)
      reads = same_memory(g->reads.at[j].index, rd->index);
  }
  return reads;
}

/* ---- which stages are computed again */
typedef struct Again {
  Sched *s;
  uint8_t *pinned; /* by stage: it reads a buffer that is overwritten later, so it cannot run after that */
  IntVec with;     /* what is computed again: the value, then the stages that it is made of */
  bool factor;     /* the value is a reused factor of products: it stays as simple as it is */
} Again;

static bool may_move_on(const Again *a, int i) {
  const Stage *g = stage_at(a->s, i);
  return !g->keep && !g->fixed && !g->is_reduce && !g->inlined && !a->pinned[i] && !g->after.len &&
         !g->war.len && !uop_has(g->value, REDUCE) && !for_lanes(a->s, i);
}

/* Whether the loops of its kernel's grid are enough to store it. */
static bool is_of_grid(const Stage *g) {
  bool grid = g->kernel >= 0 && !g->inlined && !g->fixed;
  for (int d = 0; d < g->nout; d++)
    grid &= g->out[d]->op != OPS_RANGE || g->gmap[d] >= 0;
  return grid;
}

/* Adds the stages that i is made of to a->with, unless they are in memory or can be. *all: all of them can go
 * along. Returns false if out of memory. */
static bool add_sources(Again *a, int i, bool *all) {
  const Stage *first = stage_at(a->s, a->with.at[0]);
  bool ok = true;
  for (size_t k = 0; ok && *all && k < stage_at(a->s, i)->deps.len; k++) {
    int d = stage_at(a->s, i)->deps.at[k];
    const Stage *q = stage_at(a->s, d);
    if (is_read_by_others(a->s, d) || ints_have(&a->with, d)) continue;
    *all = !a->factor;
    if (!*all || (is_of_grid(q) && stage_out_size(q) * LITTLE <= stage_out_size(first))) continue;
    *all = may_move_on(a, d) && !q->gathers && q->kernel == first->kernel;
    if (*all) ok = vec_push(a->s->mem, &a->with, d) && add_sources(a, d, all);
  }
  return ok;
}

/* ---- what it costs */
static double weight_of(const Again *a) {
  double weight = 0;
  for (size_t k = 0; k < a->with.len; k++)
    weight += stage_at(a->s, a->with.at[k])->weight;
  return weight;
}

/* The time of n iterations of a reader to read what its kernel does not read anyway. */
static double reads_cost(const Again *a, const Stage *reader, double n) {
  double us = 0;
  for (size_t k = 0; k < a->with.len; k++) {
    const Stage *g = stage_at(a->s, a->with.at[k]);
    for (size_t j = 0; j < g->reads.len; j++)
      if (!ints_have(&a->with, g->reads.at[j].stage) && !kernel_reads(a->s, reader->kernel, &g->reads.at[j]))
        us += target_read_us(a->s->opt->target, read_bytes(a->s, &g->reads.at[j], n));
  }
  return us;
}

/* Whether computing again costs at most what storing costs, or twice that if the value is large. Both in
 * us. */
static bool pays(const Again *a, double *again, double *store) {
  Sched *s = a->s;
  const Target *t = s->opt->target;
  int i = a->with.at[0];
  const Stage *g = stage_at(s, i);
  double elements = (double)stage_out_size(g), size = elements * (double)dtype_size(stage_dtype(g));
  double weight = weight_of(a), rate = target_ops_us(t) * t->cores, text = 0;
  bool inside = false, chained = false;
  *store = target_read_us(t, size);
  *again = 0;
  for (size_t k = 0; k < g->readers.len; k++) {
    const Stage *r = stage_at(s, g->readers.at[k]);
    if (r->kernel == g->kernel) {
      inside = true;
      continue;
    }
    double n = (double)stage_iterations(r);
    bool few = n * 16 <= elements; /* it takes few numbers of the value, like rows of a table */
    int places = 0;
    for (size_t j = 0; j < r->reads.len; j++) {
      if (r->reads.at[j].stage != i) continue;
      places++;
      chained |= g->gathers && !few && index_is_data(r->reads.at[j].index);
    }
    text += places * (weight + 1); /* operations that are added to the readers' expressions */
    *store += target_read_us(t, TG_MIN(size, n * (double)dtype_size(stage_dtype(g))));
    *again += n * weight / rate + reads_cost(a, r, n);
  }
  if (!inside) { /* its own kernel does not have to compute it at all */
    *again -= elements * (g->weight + 1) / rate;
    text -= g->weight + 1;
  }
  bool large = size > 2.0 * (double)t->cache[LEVEL_L3];
  return *again <= *store * (large ? 2 : 1) && text <= MOST_REPEATED && !chained;
}

/* ---- moving the value */
/* Removes stage i, which no stage reads any more, from its kernel. */
static bool leave_kernel(Sched *s, int i) {
  Stage *g = stage_at(s, i);
  StageSet *kk = &s->ks.at[g->kernel];
  size_t n = 0;
  for (size_t m = 0; m < kk->mem.len; m++)
    if (kk->mem.at[m] != i) kk->mem.at[n++] = kk->mem.at[m];
  kk->mem.len = n;
  g->inlined = true;
  for (size_t k = 0; k < g->deps.len; k++)
    ints_drop(&stage_at(s, g->deps.at[k])->readers, i);
  return true;
}

/* Writes stage i into its readers in other kernels. */
static bool move_on(Sched *s, int i) {
  bool ok = true;
  for (size_t k = stage_at(s, i)->readers.len; ok && k-- > 0;) {
    Stage *g = stage_at(s, i);
    int r = g->readers.at[k];
    if (stage_at(s, r)->kernel == g->kernel) continue;
    ok = replace_reads(s, r, i);
    g = stage_at(s, i);
    g->readers.at[k] = g->readers.at[--g->readers.len];
  }
  return ok && (stage_at(s, i)->readers.len || leave_kernel(s, i));
}

static bool recompute(Again *a, int i) {
  Sched *s = a->s;
  double again, store;
  bool all = true;
  a->with.len = 0;
  a->factor = false;
  if (!may_move_on(a, i) || !is_read_by_others(s, i)) return true;
  for (size_t k = 0; k < stage_at(s, i)->readers.len; k++)
    a->factor |= contracts(stage_at(s, stage_at(s, i)->readers.at[k]));
  if (!vec_push(s->mem, &a->with, i) || !add_sources(a, i, &all)) return false;
  if (!all || !pays(a, &again, &store) || !fusion_taken(s, "recompute", i, stage_at(s, i)->readers.at[0]))
    return true;
  if (s->opt->explain)
    str_printf(s->opt->explain, "again s%d in %zu readers: %.1f us, stored %.1f us\n", i,
               stage_at(s, i)->readers.len, again, store);
  bool ok = true;
  for (size_t k = 0; ok && k < a->with.len; k++)
    ok = move_on(s, a->with.at[k]);
  return ok;
}

bool recompute_or_store(Sched *s) {
  Again a = {.s = s, .pinned = mem_alloc(s->mem, s->stages.len + 1)};
  bool ok = a.pinned != NULL;
  for (size_t w = 0; ok && w < s->stages.len; w++)
    for (size_t k = 0; k < stage_at(s, (int)w)->war.len; k++)
      a.pinned[stage_at(s, (int)w)->war.at[k]] = 1;
  for (size_t o = 0; ok && o < s->order.len; o++)
    ok = recompute(&a, s->order.at[o]);
  vec_free(s->mem, &a.with);
  mem_free(s->mem, a.pinned);
  return ok;
}
