/* heuristic_cpu.c: which opts a kernel gets on a CPU. In: its loops, and the strides of its reads and
 * writes along them (heuristic.h). Out: a list of opts. A kernel with enough work whose reductions have
 * the same loops, or are nested in each other, gets the list that costs least (plan/choose.c, units.c). A
 * kernel with rows of matrices gets a list of its own (rows.c). This file makes the list for all other
 * kernels, unless lists of their nests cost less (choose_nests.c). */
#include "codegen/heuristic.h"
#include "plan/cost.h"
#include <stdlib.h>

/* In steps. LITTLE_SUM: a shorter sum does not get its list by cost. LITTLE_WORK: a smaller kernel is not
 * distributed, because handing out shares to threads takes longer than they save. */
enum { LITTLE_SUM = 12000, LITTLE_WORK = 65536 };

typedef struct Lane {
  int r;
  int beside; /* a short contiguous loop whose elements are between two iterations of r, or -1 */
  /* bad: loads that would be gathered; in_reduce: a reduction moves with r; counted: r's length is known */
  int64_t bad, n;
  bool in_reduce, counted;
} Lane;

static bool sums_along(Kernel *k, const Info *f, const UOp *r) {
  bool sums = false;
  for (size_t j = 0; j < f->reduces.len; j++)
    sums |= depends(k, f->reduces.at[j], r);
  return sums;
}

/* The best lanes for one store, or (NULL) for all outputs: the loop that is contiguous in them and has the
 * fewest loads that would be gathered. */
static Lane lane_for(Kernel *k, const Info *f, const UOp *store, bool may_grid) {
  Lane l = {.r = -1, .beside = -1};
  for (int i = 0; i < f->nr; i++) {
    const RInfo *r = &f->r[i];
    bool ok = !r->reduce && r->n >= 4 && (may_grid || !r->grid);
    if (store)
      ok = ok && store_has(store, r->r) && contiguous(k, store, r->r);
    else {
      ok = ok && r->nout == k->sink->nsrc;
      for (int j = 0; ok && j < k->sink->nsrc; j++)
        ok = contiguous(k, k->sink->src[j], r->r);
    }
    if (!ok) continue;
    int64_t bad = bad_loads(k, f, r->r);
    if (l.r < 0 || bad < l.bad) {
      l.r = i;
      l.bad = bad;
    }
  }
  if (l.r >= 0) l.counted = is_const(f->r[l.r].r->src[0]);
  if (l.r >= 0) l.in_reduce = sums_along(k, f, f->r[l.r].r);
  return l;
}

/* For a nest whose contiguous loop is too short for lanes and that sums in each of its iterations: lanes
 * along the loop outside that one, so that a few elements of the inner loop are between two lanes. A loop
 * of the grid qualifies if all outputs have it. */
static Lane lane_beside(Kernel *k, const Info *f, const UOp *store) {
  enum { MOST_BETWEEN = 4, LEAST_TRIPS = 8 };

  Lane l = {.r = -1, .beside = -1};
  for (int i = 2; i < store->nsrc; i++) {
    int e = find_range(f, store->src[i]);
    bool between = e >= 0 && !f->r[e].grid && f->r[e].n > 1 && f->r[e].n <= MOST_BETWEEN;
    if (!between || stride_of(k, store->src[0], f->r[e].r) != 1) continue;
    for (int j = 2; j < store->nsrc; j++) {
      int r = find_range(f, store->src[j]);
      bool fits = r >= 0 && r != e && is_const(f->r[r].r->src[0]) && f->r[r].n >= LEAST_TRIPS;
      fits = fits && (!f->r[r].grid || (f->r[r].nout == k->sink->nsrc && !f->fills.len));
      if (fits && stride_of(k, store->src[0], f->r[r].r) == f->r[e].n && sums_along(k, f, f->r[r].r))
        l = (Lane){.r = r, .beside = e, .bad = 1, .in_reduce = true, .counted = true};
    }
  }
  return l;
}

static int64_t lane_count(const Lane *l, int64_t n) {
  if (!l->counted) return TG_MIN(n, 16); /* the rest of the last block runs one by one */
  if (l->bad) return TG_MIN(n, 16);
  if (!l->in_reduce) return TG_MIN(n, 32);
  if (n >= 48) return n % 64 == 0 ? 64 : n % 48 == 0 || n > 512 ? 48 : 32;
  return n >= 32 ? 32 : TG_MIN(n, 16);
}

typedef struct Cpu {
  Kernel *k;
  const Info *f;
  int ncores;
  bool local; /* the kernel keeps rows in local memory */
  Lane *lane; /* loops that are lanes; [0]: those of all outputs, if there are any */
  int *group; /* numbers of reduction loops that are lanes themselves */
  int nlane, ngroup;
  const Lane *first; /* lanes of all outputs, or NULL; .. */
  int64_t lanes;     /* .. how many lanes */
  int second;        /* the loop of the register tile, or -1 */
  int64_t tile;
  double work; /* steps of all outputs */
} Cpu;

static const RInfo *lane_range(const Cpu *c, int i) { return &c->f->r[c->lane[i].r]; }

/* Finds lanes among inner loops that not all outputs share, and for rows kept in local memory. */
static void find_lanes(Cpu *c) {
  const UOp *sink = c->k->sink;
  if (c->lane[0].r >= 0) c->nlane = 1;
  for (int j = 0; j < sink->nsrc + (int)c->f->fills.len; j++) {
    const UOp *s = j < sink->nsrc ? sink->src[j] : c->f->fills.at[j - sink->nsrc];
    bool has = false;
    for (int i = 0; i < c->nlane; i++)
      has |= store_has(s, lane_range(c, i)->r);
    if (has || c->nlane == c->f->nr) continue;
    Lane l = lane_for(c->k, c->f, s, false);
    if (l.r < 0) l = lane_beside(c->k, c->f, s);
    if (l.r >= 0) c->lane[c->nlane++] = l;
  }
}

/* Whether the loop of a reduction is lanes already, because it fills a row. */
static bool is_filled_row(const Cpu *c, const UOp *reduce) {
  bool own = false;
  for (int s = 1; s < reduce->nsrc; s++)
    for (int i = 0; i < c->nlane; i++)
      own |= reduce->src[s] == lane_range(c, i)->r;
  return own;
}

/* The axis of a reduction, the last that fits, to be its lanes; -1: none fits, or a reduction inside has
 * lanes. */
static int group_axis(const Cpu *c, const UOp *reduce) {
  const Info *f = c->f;
  for (int s = reduce->nsrc - 1; s >= 1; s--) {
    int i = find_range(f, reduce->src[s]);
    if (i < 0 || f->r[i].n < 8 || bad_loads(c->k, f, f->r[i].r)) continue;
    uint64_t own = range_bit(f->r[i].r->arg.range.id), within = ranges_inside(f, own) & ~own;
    for (int g = 0; g < c->ngroup; g++)
      if (range_bit(f->r[c->group[g]].r->arg.range.id) & within) return -1;
    return i;
  }
  return -1;
}

/* The lanes in whose loop a reduction is nested because its value, or a reduction around it, moves with
 * them. -1: none. */
static int lanes_around(const Cpu *c, const UOp *reduce) {
  uint64_t own = 0;
  int around = -1;
  for (int s = 1; s < reduce->nsrc; s++)
    if (reduce->src[s]->op == OPS_RANGE) own |= range_bit(reduce->src[s]->arg.range.id);
  for (int i = 0; i < c->nlane; i++) {
    uint64_t lane = range_bit(lane_range(c, i)->r->arg.range.id);
    if (ranges_inside(c->f, lane) & ~lane & own) around = i;
  }
  return around;
}

/* Finds reductions to give lanes along their own axis, because that reads memory better than the outputs'
 * lanes do. */
static void find_groups(Cpu *c) {
  for (size_t j = 0; j < c->f->reduces.len; j++) {
    UOp *reduce = c->f->reduces.at[j];
    int inside = lanes_around(c, reduce);
    if ((inside >= 0 && !c->lane[inside].bad) || is_filled_row(c, reduce)) continue;
    int axis = group_axis(c, reduce);
    if (axis < 0) continue;
    bool seen = false;
    for (int g = 0; g < c->ngroup; g++)
      seen |= c->group[g] == axis;
    if (!seen) c->group[c->ngroup++] = axis;
    if (inside >= 0) c->lane[inside] = c->lane[--c->nlane];
  }
}

/* The loads for one result of a tile of n along r. A load that moves with the lanes is `chunks` vectors,
 * and a load that does not move with r is shared by all results. */
static double loads_each(const Cpu *c, UOp *r, int64_t n, int64_t chunks) {
  double loads = 0;
  for (size_t i = 0; i < c->f->loads.len; i++) {
    UOp *x = c->f->loads.at[i];
    bool lanes = c->first && depends(c->k, x, lane_range(c, 0)->r);
    loads += (double)(lanes ? chunks : 1) / (depends(c->k, x, r) ? 1 : (double)n);
  }
  return loads;
}

/* Whether range i is unrolled already, beside the lanes of another loop. */
static bool is_beside(const Cpu *c, int i) {
  bool is = false;
  for (int k = 0; k < c->nlane; k++)
    is |= c->lane[k].beside == i;
  return is;
}

/* Chooses the register tile: the loop of all outputs along which most of the loaded data is reused. */
static void find_tile(Cpu *c) {
  const Info *f = c->f;
  const Lane *l = c->first;
  if (!f->reduces.len || (c->local && c->nlane) || (l && !l->in_reduce)) return;
  int64_t chunks = l ? (c->lanes + 15) / 16 : 1;
  int64_t most = !l ? 4 : l->bad ? 2 : chunks >= 4 ? 6 : chunks == 3 ? 8 : chunks == 2 ? 10 : 14;
  most = TG_MAX(tile_of_sums(c->k, f, chunks, most, 1), 2);
  double least = 0;
  for (int i = 0; i < f->nr; i++) {
    const RInfo *r = &f->r[i];
    if ((l && i == l->r) || is_beside(c, i) || r->reduce || r->nout != c->k->sink->nsrc || r->n < 2) continue;
    if (!reused_along(c->k, f, r->r)) continue;
    double each = loads_each(c, r->r, TG_MIN(r->n, most), chunks);
    if (c->second >= 0 && each >= least) continue;
    least = each;
    c->second = i;
    c->tile = balanced(r->n, most);
  }
}

/* A chain of dependent steps gets several accumulators, so that steps overlap. */
static void find_chains(Cpu *c) {
  if (c->nlane || !c->f->scans) return;
  for (int i = 0; i < c->f->nr && c->second < 0; i++)
    if (c->f->r[i].grid && c->f->r[i].nout == c->k->sink->nsrc && c->f->r[i].n >= 8) {
      c->second = i;
      c->tile = 4;
    }
}

static double work_of(const Kernel *k, const Info *f) {
  double work = 0;
  for (int j = 0; j < k->sink->nsrc; j++) {
    double w = 1;
    for (int i = 0; i < f->nr; i++)
      if (store_has(k->sink->src[j], f->r[i].r) || f->r[i].reduce)
        w *= (double)TG_MAX(f->r[i].r->src[0]->vmax, 1);
    work += w;
  }
  return work;
}

/* Makes the tile divide its loop: that gives one nest instead of two, to save compile time, not run time. */
static void make_even(Cpu *c) {
  if (c->second < 0 || c->work >= 16e6) return;
  int64_t n = c->f->r[c->second].n;
  for (int64_t t = c->tile; n % c->tile && t >= (c->tile + 1) / 2; t--)
    if (n % t == 0) c->tile = t;
}

static bool add_lanes(Cpu *c, OptVec *out) {
  const Info *f = c->f;
  bool ok = true;
  if (c->second >= 0 && c->tile > 1) ok = opt_add(c->k, out, OPT_UPCAST, &f->r[c->second], c->tile);
  for (int i = 0; ok && i < c->nlane; i++) {
    const RInfo *r = lane_range(c, i);
    int beside = c->lane[i].beside;
    ok = beside < 0 || opt_add(c->k, out, OPT_UPCAST, &f->r[beside], f->r[beside].n);
    ok = ok && opt_add(c->k, out, OPT_VEC, r, lane_count(&c->lane[i], r->n));
  }
  for (int g = 0; ok && g < c->ngroup; g++) {
    const RInfo *r = &f->r[c->group[g]];
    int64_t lanes = c->k->opt->invariant ? TILE_LANES : 64;
    while (lanes > 8 && lanes > r->n)
      lanes /= 2;
    if (lanes >= TILE_LANES || !c->k->opt->invariant) ok = opt_add(c->k, out, OPT_GROUP, r, lanes);
  }
  return ok;
}

/* Whether a reduction, or a statement that fills a row, is inside loop r. */
static bool stands_inside(const Cpu *c, const UOp *r) {
  bool inside = sums_along(c->k, c->f, r);
  for (size_t j = 0; j < c->f->fills.len; j++)
    inside |= depends(c->k, c->f->fills.at[j], r);
  return inside;
}

/* Unrolls reductions of a few steps that are inside lanes and have no lanes themselves: a loop of two
 * would take longer than its iterations. */
static bool add_short_sums(Cpu *c, OptVec *out) {
  enum { FEW_STEPS = 4 };

  const Info *f = c->f;
  bool ok = true;
  for (size_t j = 0; ok && !f->scans && j < f->reduces.len; j++) {
    const UOp *u = f->reduces.at[j];
    int64_t steps = lanes_around(c, u) >= 0;
    for (int s = 1; s < u->nsrc && steps; s++) {
      int i = find_range(f, u->src[s]);
      bool own = i >= 0 && f->r[i].reduce && is_const(u->src[s]->src[0]) && !stands_inside(c, u->src[s]);
      for (int g = 0; g < c->ngroup; g++)
        own &= c->group[g] != i;
      steps = own ? TG_MIN(steps * f->r[i].n, INT32_MAX) : 0;
    }
    for (int s = 1; ok && steps > 1 && steps <= FEW_STEPS && s < u->nsrc; s++) {
      const RInfo *r = &f->r[find_range(f, u->src[s])];
      bool had = false;
      for (size_t o = 0; o < out->len; o++)
        had |= out->at[o].op == OPT_UNROLL && out->at[o].r == r->r->arg.range.id;
      ok = had || r->n < 2 || opt_add(c->k, out, OPT_UNROLL, r, r->n);
    }
  }
  return ok;
}

/* Distributes the first loop of the grid that is long enough, or a later one that is much longer. */
static bool add_threads(Cpu *c, OptVec *out) {
  const Info *f = c->f;
  int best = -1;
  double most = 0;
  if (c->work < LITTLE_WORK || c->ncores <= 1 || !c->k->ren->has_threads) return true;
  for (int i = 0; i < f->nr; i++) {
    if (!f->r[i].grid) continue;
    bool lane = c->first && i == c->first->r;
    double n = (double)f->r[i].n / (i == c->second ? (double)c->tile : lane ? (double)c->lanes : 1);
    if (n >= c->ncores && (best < 0 || n > 4 * most)) {
      best = i;
      most = n;
    }
  }
  return best < 0 || opt_add(c->k, out, OPT_THREAD, &f->r[best], c->ncores);
}

static bool lanes_and_tile(Cpu *c, OptVec *out) {
  const UOp *sink = c->k->sink;
  find_lanes(c);
  find_groups(c);
  if (c->nlane && lane_range(c, 0)->nout == sink->nsrc) c->first = &c->lane[0];
  if (c->first) c->lanes = lane_count(c->first, lane_range(c, 0)->n);
  find_tile(c);
  find_chains(c);
  c->work = work_of(c->k, c->f);
  make_even(c);
  bool ok = add_lanes(c, out) && add_short_sums(c, out);
  if (ok && c->work >= LITTLE_WORK && !c->k->opt->invariant) ok = choose_nests(c->k, c->f, out);
  return ok && add_threads(c, out);
}

static bool any_kernel(Kernel *k, const Info *f, int ncores, OptVec *out) {
  Cpu c = {.k = k, .f = f, .ncores = ncores, .local = f->fills.len, .second = -1, .tile = 1};
  c.lane = mem_alloc(k->mem, (size_t)(f->nr + 1) * sizeof *c.lane);
  c.group = mem_alloc(k->mem, (size_t)(f->nr + 1) * sizeof *c.group);
  bool ok = c.lane && c.group;
  if (ok) c.lane[0] = lane_for(k, f, NULL, !c.local);
  ok = ok && lanes_and_tile(&c, out);
  mem_free(k->mem, c.lane), mem_free(k->mem, c.group);
  return ok;
}

/* Whether an output has a loop that the sum does not move with: then a row of it is written after each
 * sum. */
static bool has_own_loop(const KernelShape *c) {
  bool own = c->own;
  for (int r = 0; r < c->n; r++)
    own |= !is_summed_over(c, r) && c->size[r] > 1 && !(c->summed >> r & 1);
  return own;
}

/* The list that costs least, for vectors or for matrix units. *cycles: INFINITY if there is none. */
static bool cheapest(Kernel *k, const KernelShape *c, int ncores, OptVec *out, double *cycles) {
  Taken best;
  Cost cost;
  bool units = false;
  out->len = 0;
  *cycles = INFINITY;
  if (!choose_list(c, ncores, k->mem, k->opt->costs, &best, &cost)) return false;
  *cycles = cost.cycles;
  if (!choose_units(k, c, ncores, cycles, out, &units)) return false;
  return units || cost.cycles == INFINITY || list_named(c, &best, &cost, ncores, k->mem, out);
}

bool stays_used(KernelShape *c) {
  enum { LEAST_USES = 8 };

  bool any = false;
  for (int a = 0; a < c->naccess; a++) {
    double uses = 1;
    for (int r = 0; r < c->n; r++)
      uses *= c->access[a].moves >> r & 1 ? 1 : (double)c->size[r];
    c->access[a].stays &= uses >= LEAST_USES || c->target->copies_replace;
    any |= c->access[a].stays;
    for (KernelShape *s = c->also; s; s = s->also)
      s->access[a].stays = c->access[a].stays;
  }
  return any;
}

/* Uses copies that are made once only if the gain is clear, because they take memory and a program of
 * their own. Copies that replace their sources take no memory. */
static bool cheapest_prepacked(Kernel *k, KernelShape *c, int ncores, OptVec *out, double *cycles) {
  static const double WORTH = 0.9;
  double worth = c->target->copies_replace ? 1 : WORTH, each;
  OptVec own = {0};
  uint64_t stays = k->stays;
  bool ok = true, any = stays_used(c);
  if (any) ok = cheapest(k, c, ncores, &own, &each);
  for (KernelShape *s = c; s; s = s->also)
    for (int a = 0; a < s->naccess; a++)
      s->access[a].stays = false;
  k->stays = 0;
  ok = ok && cheapest(k, c, ncores, out, cycles);
  if (ok && any && (each <= worth * *cycles || k->opt->prepack->always)) {
    OptVec t = *out;
    *out = own;
    own = t;
    *cycles = each;
    k->stays = stays;
  }
  vec_free(k->mem, &own);
  return ok;
}

static bool by_cost_of(Kernel *k, KernelShape *c, int ncores, OptVec *out, bool *chosen) {
  double work = TG_MAX(c->nsum, 1), cycles;
  for (int r = 0; r < c->n; r++)
    work *= (double)c->most[r];
  if (c->reduce && ((work < LITTLE_SUM && !c->invariant) || has_own_loop(c))) return true;
  if (work < LITTLE_WORK) ncores = 1;
  bool ok = cheapest_prepacked(k, c, ncores, out, &cycles);
  *chosen = ok && cycles < INFINITY;
  return ok;
}

/* Plans loops of unknown length for the middle, the least and the most of their lengths. */
static bool by_cost(Kernel *k, int ncores, OptVec *out, bool *chosen) {
  static const double at[LENGTHS] = {0.5, 0, 1};
  KernelShape *c = mem_alloc(k->mem, LENGTHS * sizeof *c);
  *chosen = false;
  if (!c) return false;
  bool ok = true, known = kernel_shape(k, at[0], c);
  for (size_t i = 1; known && c->open && i < LENGTHS; i++) {
    known = kernel_shape(k, at[i], &c[i]);
    c[i - 1].also = &c[i];
  }
  if (known) ok = by_cost_of(k, c, ncores, out, chosen);
  mem_free(k->mem, c);
  return ok;
}

bool heuristic_cpu(Kernel *k, int ncores, OptVec *out) {
  int threads = k->ren->has_threads ? ncores : 1;
  bool chosen = false;
  if (!by_cost(k, threads, out, &chosen)) return false;
  if (chosen) return true;
  Info f;
  bool ok = info_get(k, &f);
  if (ok && f.fills.len) ok = rows_batched(k, &f, threads, out, &chosen);
  ok = ok && (chosen || any_kernel(k, &f, ncores, out));
  info_free(k, &f);
  return ok;
}

bool list_costs(Kernel *k, int ncores) {
  KernelShape c;
  if (kernel_shape(k, 0.5, &c)) cost_given(&c, &k->list, ncores, k->mem, k->opt->costs);
  return !k->opt->costs->oom;
}
