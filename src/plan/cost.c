/* cost.c: the estimate behind the choice of opts (cost.h). In: a kernel's shape and a list. Out: cycles of
 * a core: the larger of what its steps take (steps.c) and what it moves through memory (traffic.c), and a
 * part of all, because traffic is never hidden whole. Copies, pages and stores come on top.
 *
 * It is the cost of the thread that has most, for the loop whose shares differ least. Where several do, it is
 * for the one whose thread reads least, or, where nothing is summed, for the outermost.
 *
 * The constants were fitted to timed lists of some 30 kernels on one machine; tests/unit/test_costs.c
 * holds pairs of lists that another one timed. */
#include "plan/plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = TILE_LANES };

/* A line of text, of which a compiler reads 25,000 a second: 1,000 of them are worth 7 % of the time. */
static const double LINE_WORTH = 7e-5;
/* Lines for each register of a tile; for each more step of an unrolled sum. */
static const double LINES_OF_SUM = 8, LINES_OF_STEP = 5;
/* A vector of a tile that is turned in registers, but for its stores. */
static const double TURNED = 3.5;
/* A vector of sums in local memory, read and written. */
static const double SUM_KEPT = 2.6;
/* OVERLAP_LEFT of a sum, whose results stay in registers while it reads. */
static const double LEFT_OF_SUM = 0.1;
/* Of the time of threads that write parts of the same lines. */
static const double LINES_SPLIT = 1.05;
/* Of the traffic into a level, what is not hidden behind anything. A copy is read from end to end, so that
 * hardware asks for all of it ahead: f32 matrices of 512, 768 and 2048 take .88, .90 and .92 of the time on a
 * Zen 3 since that is left out here. */
static const double shown[LEVEL_MEMORY] = {0.1, 0.3, 0.3};

/* Of the lanes that all blocks of them have, those that there are. */
static double lanes_whole(const Plan *p) {
  double lanes = p->vec < 0 ? 1 : p->ext[p->vec];
  for (int i = 0; i < p->n; i++)
    if (p->level[i].loop == p->vec) lanes *= p->level[i].trips;
  return p->vec < 0 ? 1 : (double)p->c->size[p->vec] / lanes;
}

static double stores_of(const Plan *p, double tile) {
  const KernelShape *c = p->c;
  double trips = 1, cost = 0;
  for (int i = 0; i < p->n; i++)
    if (i < p->ntile || !is_summed_over(c, p->level[i].loop)) trips *= p->level[i].trips;
  for (int a = 0; a < c->naccess; a++) {
    const Access *x = &c->access[a];
    if (x->in_sum) continue;
    int64_t by = p->vec < 0 ? 0 : access_step(x, p->vec);
    double turned = a < c->nstore ? turned_run(p, x) : 0;
    bool near = by == 0 || by == 1;
    cost += (p->group >= 0 ? 10 : near ? 1.3 : turned ? TURNED + LANES / turned : 20) * access_reads(x);
    if (c->plain && p->blocks > 1) cost += near ? 0.7 : 20; /* the sum so far, a lane at a time */
  }
  if (!c->reduce) return trips * tile * cost * lanes_whole(p);
  cost += c->after * (p->group >= 0 ? 1 : LANES / (2 * c->target->ops));
  if (p->group >= 0) cost += ADDED_ACROSS * (c->body[0].nsum - 1);
  if (p->c->plain || p->blocks == 1) return trips * (tile * cost + 10);
  return trips * (tile * SUM_KEPT + 10) + trips / p->blocks * (tile * cost + 10);
}

/* Lines of the kernel's text: a nest for whole tiles and one for tiles of one less, or for the rest of the
 * lanes.
 */
static double text_of(const Plan *p) {
  const KernelShape *c = p->c;
  double tiles = 1, each = LINES_OF_SUM, steps = 1;
  for (int r = 0; r < c->n; r++) {
    int64_t n = (int64_t)(is_summed_over(c, r) ? p->unroll[r] : p->up[r]), size = c->size[r], rest = size % n;
    if (is_summed_over(c, r))
      steps *= (double)((r == p->group ? (n + LANES - 1) / LANES : n) + (rest > 0));
    else if (r == p->vec)
      tiles *=
          (double)((size >= n ? n / LANES : 0) + rest / LANES + __builtin_popcountll((uint64_t)rest % LANES));
    else if (n > 1)
      tiles *= (double)(rest ? 2 * n - 1 : n);
  }
  for (int a = 0; a < c->naccess; a++) {
    const Access *x = &c->access[a];
    bool lanes = p->vec >= 0 && (x->moves >> p->vec & 1), load = a >= c->nstore;
    double lines = !lanes || lanes_contiguous(p, a) ? 1 : load ? access_vectors(x, p->vec) : 0;
    each += 2 * (lines ? lines : LANES) * (x->in_sum ? steps : 1) * access_reads(x);
  }
  return tiles * (each + LINES_OF_STEP * (steps - 1));
}

/* Whether threads would write parts of the same lines of an output. */
static bool splits_lines(const Plan *p, int loop, int ncores) {
  for (int a = 0; a < p->c->nstore; a++) {
    double by = (double)llabs(access_step(&p->c->access[a], loop)) * p->c->access[a].bytes;
    if (by < LINE && by * p->whole[loop] / ncores < 8 * LINE) return true;
  }
  return false;
}

enum { ANY_LOOP = -2 };

/* The loops that can be distributed to threads: outer ones, such that shares differ least. Their number; the
 * share of the thread that has most. `only`: that loop alone, whether each thread has a part of it or not. */
static int deal(const Plan *p, int ncores, int only, int *at, double *share) {
  int n = 0, last = p->first_stage < 0 ? p->n : p->first_stage;
  double each[MOST_LEVELS];
  *share = ncores;
  for (int i = 0; i < last; i++) {
    const Level *l = &p->level[i];
    if (is_summed_over(p->c, l->loop) && i < p->ntile) { /* every thread has all blocks */
      last = p->n;
      continue;
    }
    if (is_summed_over(p->c, l->loop)) break;
    double whole = floor(l->trips), tile = p->up[l->loop];
    /* what is left of the last block is a nest of its own */
    if (tile > 1 && (int64_t)p->c->size[l->loop] % (int64_t)tile) whole = ceil(l->trips) - 1;
    if (only == ANY_LOOP ? whole < ncores : l->loop != only) continue;
    each[n] = ceil(whole / ncores) * ncores / fmax(whole, 1);
    at[n] = i;
    if (splits_lines(p, l->loop, ncores)) each[n] *= LINES_SPLIT;
    *share = fmin(*share, each[n++]);
  }
  int kept = 0;
  for (int i = 0; i < n; i++)
    if (each[i] * 0.97 < *share) at[kept++] = at[i];
  *share /= ncores;
  return kept;
}

/* What one thread has to do where the loop at a level is distributed. */
static void plan_deal(Plan *p, int at, double ncores) {
  int loop = p->level[at].loop;
  ncores = fmax(1, fmin(ncores, floor(p->level[at].trips)));
  p->level[at].trips /= ncores;
  p->whole[loop] /= ncores;
  for (int i = 0; i < at; i++)
    p->level[i].ext[loop] = fmax(1, p->level[i].ext[loop] / ncores);
}

/* Cycles of the thread that has most, beside its own copies; INFINITY as soon as they are more than `most`.
 */
static double traffic_and_all(const Plan *p, Cost *out, int ncores, double share, double most) {
  Footprints footprints;
  double slowest = 0, sum = 0, compute = out->compute * share;
  footprints_of(p, &footprints);
  for (int l = 0; l < LEVEL_MEMORY; l++) {
    double copied = 0;
    out->traffic[l] = p->c->target->cache[l] ? traffic_of(p, &footprints, l, &copied) : 0;
    if (l + 1 == LEVEL_MEMORY) out->traffic[l] /= streams_gain(p, &footprints, ncores);
    slowest = fmax(slowest, out->traffic[l]);
    sum += shown[l] * (out->traffic[l] - copied);
    if (fmax(compute, slowest) + sum + out->stores * share > most) return INFINITY;
  }
  sum += waits_of(p, &footprints);
  out->again = footprints.all[TG_MIN(1, p->n)];
  double left = p->c->reduce && !is_nested(p->c) ? LEFT_OF_SUM : OVERLAP_LEFT;
  return fmax(compute, slowest) + left * fmin(compute, slowest) + sum + out->stores * share;
}

/* A thread makes the copies of its own iterations, and copies its own part of what moves with the loop. */
static double copies_of(const Plan *p, int distributed, double share) {
  double all = 0;
  for (int a = 0; a < p->c->naccess; a++) {
    bool part = distributed >= 0 &&
                (distributed < p->staged_at[a] || (p->c->access[a].moves >> p->level[distributed].loop & 1));
    all += p->copy[a] * (part ? share : 1);
  }
  return all;
}

static bool cost_of_length(const KernelShape *c, const Taken *t, int ncores, int only, double most,
                           Cost *out) {
  Plan p;
  double tile, share = 1;
  int at[MOST_LEVELS], nat = 0;
  *out = (Cost){.thread = -1, .cycles = INFINITY};
  if (!plan_make(&p, c, t)) return false;
  out->compute = compute_of(&p, &tile);
  if (out->compute / ncores > most) return false;
  out->stores = stores_of(&p, tile);
  if (ncores > 1) nat = deal(&p, ncores, only, at, &share);
  double lines = 1 + LINE_WORTH * c->nests * text_of(&p); /* whatever it reads, it takes this long: */
  for (int i = 0; i < TG_MAX(nat, 1); i++) {
    Cost one = *out;
    one.thread = nat ? p.level[at[i]].loop : -1;
    one.copy = copies_of(&p, nat ? at[i] : -1, share);
    double least = ((out->compute + out->stores) * share + one.copy) * lines;
    if (least > most || least > 1.01 * out->cycles) continue;
    Plan own;
    memcpy(&own, &p, offsetof(Plan, level) + (size_t)p.n * sizeof *p.level);
    if (nat) plan_deal(&own, at[i], ncores);
    one.cycles = (traffic_and_all(&own, &one, ncores, share, most / lines - one.copy) + one.copy) * lines;
    bool alike = fabs(one.cycles - out->cycles) < 0.01 * one.cycles;
    if (alike ? c->reduce && one.again < out->again : one.cycles < out->cycles) *out = one;
  }
  return out->cycles <= most;
}

/* Of loops of unknown length: the geometric mean over several lengths, because a list that takes twice as long
 * as another for one length, and half as long for another, is as good. */
static void mean_of_lengths(const KernelShape *c, const Taken *t, int ncores, int only, Cost *out,
                            int *loop) {
  double product = 1;
  for (const KernelShape *s = c; s; s = s->also) {
    Cost one;
    cost_of_length(s, t, ncores, only, INFINITY, &one);
    if (s == c) *out = one;
    *loop++ = one.thread;
    product *= one.cycles;
  }
  out->cycles = cbrt(product);
}

/* One loop is distributed whatever the length is: of those that are best for some length, the best for all. */
bool cost_of(const KernelShape *c, const Taken *t, int ncores, double most, Cost *out) {
  int best[LENGTHS], same[LENGTHS];
  if (!c->also) return cost_of_length(c, t, ncores, ANY_LOOP, most, out);
  mean_of_lengths(c, t, ncores, ANY_LOOP, out, best);
  if (best[0] != best[1] || best[0] != best[2])
    for (int i = 0; i < LENGTHS; i++) {
      Cost one;
      mean_of_lengths(c, t, ncores, best[i], &one, same);
      one.thread = best[i];
      if (!i || one.cycles < out->cycles) *out = one;
    }
  return out->cycles <= most && out->cycles < INFINITY;
}

/* All that can be copied is, for nothing, and each core has its part of the rest. */
static double least_of_length(const KernelShape *c, const Taken *last, int ncores) {
  static const double ROUNDED = 1 - 1e-9;
  Plan p;
  double tile;
  if (!plan_make(&p, c, last)) return INFINITY;
  for (int a = 0; a < c->naccess; a++)
    p.staged_at[a] = 0;
  p.any_copy = true;
  double cycles = compute_of(&p, &tile);
  cycles += stores_of(&p, tile);
  return ROUNDED * cycles / ncores * (1 + LINE_WORTH * c->nests * text_of(&p));
}

double cost_least(const KernelShape *c, const Taken *last, int ncores) {
  double product = 1;
  for (const KernelShape *s = c; s; s = s->also)
    product *= least_of_length(s, last, ncores);
  return c->also ? cbrt(product) : product;
}
