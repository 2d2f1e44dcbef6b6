/* cost.c: the cost model behind the choice of opts (cost.h). In: a kernel's shape and a list. Out: cycles
 * of a core. That is the larger of two times, what the steps take (steps.c) and what is moved through
 * memory (traffic.c), and a part of the rest, because traffic is never hidden completely. Copies, pages
 * and stores are added.
 *
 * It is the cost of the thread with the most work, if the loop whose shares differ least is distributed.
 * If there are several such loops, the loop whose thread reads least is distributed, or, if nothing is
 * summed, the outermost loop.
 *
 * The constants were fitted to timed lists of some 30 kernels on one machine. tests/unit/test_costs.c
 * contains pairs of lists that were timed on another machine. */
#include "plan/plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = TILE_LANES };

/* What a line of text costs, as a share of the time. A compiler reads 25,000 lines a second, and 1,000 lines
 * are worth 7 % of the time. */
static const double LINE_WORTH = 7e-5;
/* Lines of text for each register of a tile, and for each additional step of an unrolled sum. */
static const double LINES_OF_SUM = 8, LINES_OF_STEP = 5;
/* Cycles to transpose a vector of a tile in registers, without its stores. */
static const double TURNED = 3.5;
/* Cycles to read and write a vector of sums in local memory. */
static const double SUM_KEPT = 2.6;
/* Takes the place of OVERLAP_LEFT for a sum, because its results stay in registers while it reads. */
static const double LEFT_OF_SUM = 0.1;
/* Factor on the time of threads that write parts of the same cache lines. */
static const double LINES_SPLIT = 1.05;
/* The part of the traffic into each level that nothing hides. The traffic of copies is left out, because a
 * copy is read from end to end, and hardware prefetches all of it. With that, f32 matrices of 512, 768 and
 * 2048 take .88, .90 and .92 of the time on a Zen 3. */
static const double shown[LEVEL_MEMORY] = {0.1, 0.3, 0.3};

/* The share of the lanes of all blocks that has an iteration. */
static double lanes_whole(const Plan *p) {
  double lanes = p->vec < 0 ? 1 : p->ext[p->vec];
  for (int i = 0; i < p->n; i++)
    if (p->level[i].loop == p->vec) lanes *= p->level[i].trips;
  return p->vec < 0 ? 1 : (double)p->c->size[p->vec] / lanes;
}

/* Cycles of everything outside the sums: stores, merging of lanes, and sums that are kept in memory between
 * blocks. */
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
    /* reads the sum so far, one lane at a time unless lanes are contiguous */
    if (c->plain && p->blocks > 1) cost += near ? 0.7 : 20;
  }
  if (!c->reduce) return trips * tile * cost * lanes_whole(p);
  cost += c->after * (p->group >= 0 ? 1 : LANES / (2 * c->target->ops));
  if (p->group >= 0) cost += ADDED_ACROSS * (c->body[0].nsum - 1);
  if (p->c->plain || p->blocks == 1) return trips * (tile * cost + 10);
  return trips * (tile * SUM_KEPT + 10) + trips / p->blocks * (tile * cost + 10);
}

/* Lines of the kernel's text. There is a nest for whole tiles, and one for the rest: for tiles of one less,
 * or for the remaining lanes. */
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

/* Whether threads would write parts of the same cache lines of an output. */
static bool splits_lines(const Plan *p, int loop, int ncores) {
  for (int a = 0; a < p->c->nstore; a++) {
    double by = (double)llabs(access_step(&p->c->access[a], loop)) * p->c->access[a].bytes;
    if (by < LINE && by * p->whole[loop] / ncores < 8 * LINE) return true;
  }
  return false;
}

enum { ANY_LOOP = -2 };

/* Finds the outer loops that can be distributed over threads such that shares differ least. Returns their
 * number. *share: the share of the thread with the most work. only: considers that loop alone, even if not
 * each thread gets a part of it. */
static int deal(const Plan *p, int ncores, int only, int *at, double *share) {
  int n = 0, last = p->first_stage < 0 ? p->n : p->first_stage;
  double each[MOST_LEVELS];
  *share = ncores;
  for (int i = 0; i < last; i++) {
    const Level *l = &p->level[i];
    if (is_summed_over(p->c, l->loop) && i < p->ntile) { /* every thread runs all blocks */
      last = p->n;
      continue;
    }
    if (is_summed_over(p->c, l->loop)) break;
    double whole = floor(l->trips), tile = p->up[l->loop];
    /* the rest after the last whole block is a nest of its own */
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

/* Reduces the plan to what one thread does if the loop at level `at` is distributed. */
static void plan_deal(Plan *p, int at, double ncores) {
  int loop = p->level[at].loop;
  ncores = fmax(1, fmin(ncores, floor(p->level[at].trips)));
  p->level[at].trips /= ncores;
  p->whole[loop] /= ncores;
  for (int i = 0; i < at; i++)
    p->level[i].ext[loop] = fmax(1, p->level[i].ext[loop] / ncores);
}

/* Cycles of the thread with the most work, without its own copies. Returns INFINITY as soon as they exceed
 * `most`. */
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

/* The cycles of copies. A thread makes the copies of its own iterations, and its own part of the copies that
 * move with the distributed loop. */
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
  double lines = 1 + LINE_WORTH * c->nests * text_of(&p); /* a factor that does not depend on what is read */
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

/* The cost for loops of unknown length: the geometric mean over several lengths. With this mean, a list that
 * takes twice as long as another for one length, and half as long for another length, is just as good. *loop:
 * the loop distributed for each length. */
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

/* One loop is distributed whatever the length is. It is the best for all lengths of the loops that are best
 * for some length. */
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

/* All that can be copied is assumed to be copied at no cost, and each core to have an equal part of the
 * rest. */
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
