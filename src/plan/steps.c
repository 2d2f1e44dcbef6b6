/* steps.c: what the innermost steps of a nest take (plan.h). In: its levels. Out: cycles of a core that
 * finds all it reads in L1.
 *
 *   iterations * (max(multiply-adds / 2, loads / 2, 4 * dependent adds) + 1), more where registers do not
 *   suffice; the tail of the lanes has steps of its own. Where sums are nested, each body has its own steps. */
#include "plan/plan.h"
#include <math.h>
#include <stdlib.h>

enum { LANES = TILE_LANES };

/* Loads that one is worth that reads a lane and puts it into its vector; .. whose place is computed, too,
 * not a step from the one before. */
static const double APART = 2.5, APART_FOUND = 5;
/* Loads that one is worth that begins anywhere in a line, as mostly does what lanes are taken out of. */
static const double ANYWHERE = 1.5;
/* .. of a row whose first and last vectors are not whole, which is known where they are written. */
static const double LOADS_OF_EDGES = 4;
/* Vectors that lanes at known places lie in. */
static const double VECTORS_KNOWN = 2;
/* Steps that two pieces of a loop take with what stands before them: 3 taps of a window's gradient, 4 rows by
 * 16 lanes, took 5 times as long as without on a Zen 3, and with a copy 2.6 times. */
static const double STEPS_OF_PIECES = 6;
/* Cycles to add what is left of lanes along a sum to the first lanes. */
static const double ADDED_TO_FIRST = 2;
/* Cycles in which an inner loop begins and ends. */
static const double LOOP_BEGUN = 6;
/* The next two are of nested sums. Single sums of integers have the constants of floats, which their lists were
 * fitted to. Of the time of as many operations on floats, as three units of a core add and shift, not two. */
static const double INTEGERS = 2.0 / 3;
/* What a step of sums of integers takes where some wait in memory, and more for as many as registers hold: a
 * multiplication takes as long as its loads do, where one of floats takes half as long. */
static const double SPILLED_SOME = 1.12, SPILLED_INTEGERS = 0.3;

/* A sum of products reads the numbers that all lanes share again for each piece of a tail. With lanes along
 * 28 columns a dilated or strided convolution took 1.15 to 1.5 times as long on a Zen 2 as with lanes along
 * channels. */
static double vectors(const Plan *p) {
  if (p->vec < 0) return 1;
  bool whole = p->c->body[p->c->nbody - 1].fused && p->c->target != &p->c->eight;
  return whole ? tile_vectors(p->ext[p->vec]) : tile_pieces(p->c->target, p->ext[p->vec]);
}

/* Whether vectors of an access begin anywhere in a line: each is then a load of two. */
static bool crosses_lines(const Plan *p, int access) {
  return (p->c->access[access].uneven & ~(1u << p->vec)) && panel_axis(p, access) < 0;
}

/* Whether all iterations of a loop are written out, so that what depends on it alone is known; but for less
 * than a vector of lanes, which is a nest of its own. */
static bool is_written_out(const Plan *p, int r) {
  double size = (double)p->c->size[r];
  if (is_open(p->c, r)) return false;
  if (is_summed_over(p->c, r)) return p->unroll[r] >= size;
  return r == p->vec ? p->up[r] > size - LANES : p->up[r] >= size;
}

/* Loops that say which lanes of a vector the gate of an access lets through; 0: all or none. */
static uint32_t edges_of(const Plan *p, int access) {
  const Access *a = &p->c->access[access];
  return (p->staged_at[access] >= 0 ? 0 : a->edges[p->vec]) | (a->asks >> p->vec & 1 ? a->asks : 0);
}

/* Shuffles that take a vector of lanes out of those that it lies in; loads of them, which mostly begin
 * anywhere in a line. Loads 0: lane by lane, as is what has edges that are not known. */
static double shuffles_of_vector(const Plan *p, int access) {
  if (p->vec < 0 || lanes_contiguous(p, access)) return 0;
  return fmax(1, access_vectors(&p->c->access[access], p->vec) - 1);
}

static double loads_of_vector(const Plan *p, int access) {
  double n = access_vectors(&p->c->access[access], p->vec);
  for (uint32_t edges = edges_of(p, access); edges; edges &= edges - 1)
    if (!is_written_out(p, __builtin_ctz(edges))) return 0;
  if (n == 0 && is_written_out(p, p->vec) && place_known(&p->c->access[access], p->vec)) n = VECTORS_KNOWN;
  return lanes_contiguous(p, access) ? (crosses_lines(p, access) ? 2 : 1) : ANYWHERE * n;
}

/* Iterations of a loop that one step has. */
static double written_out(const Plan *p, int r) {
  return is_summed_over(p->c, r) ? p->unroll[r] : p->up[r] > 1 ? p->ext[r] : 1;
}

/* Gates of one step for what a product asks of its factors: loops are bounded by it and need not ask, but
 * what is written out does, for each iteration. */
static double asked_of(const Plan *p, const Access *a) {
  double n = 1;
  for (uint32_t asks = a->asks; asks; asks &= asks - 1)
    n *= written_out(p, __builtin_ctz(asks));
  return n;
}

/* How much longer the steps of a body take where rows that are written out ask different things of a loop of
 * the sum. The loop that they bound has a piece on each side in which every row asks, beside the one in which
 * all rows count. Those pieces are short, and what does not move in them is computed before each. */
static double pieces_of(const Plan *p, int body) {
  const KernelShape *c = p->c;
  uint32_t bound = 0;
  double trips = 1;
  for (int r = 0; r < c->n; r++)
    if (r != p->vec && !is_summed_over(c, r) && written_out(p, r) > 1) bound |= c->bounds[r];
  for (int i = 0; i < p->n; i++)
    if ((bound & c->body[body].own) >> p->level[i].loop & 1) trips *= p->level[i].trips;
  return trips > 1 ? 1 + STEPS_OF_PIECES / trips : 1;
}

/* Registers that one step of the body loads: those of a vector, one for a number that all lanes have, or one
 * for each lane whose elements are not contiguous. */
static double loads_of(const Plan *p, int access) {
  const Access *a = &p->c->access[access];
  double n = access_reads(a);
  bool lanes = p->vec >= 0 && ((a->moves | a->asks) >> p->vec & 1), asked = asked_of(p, a) > 1;
  for (int d = 0; d < a->naxis; d++) {
    double span = 1;
    for (uint32_t moves = a->on[d]; moves; moves &= moves - 1) {
      int r = __builtin_ctz(moves);
      if (r == p->vec) continue;
      if (lanes)
        span += written_out(p, r) - 1;
      else
        span *= written_out(p, r);
    }
    n *= span;
  }
  for (uint32_t own = a->asks & ~a->moves; own; own &= own - 1)
    if (__builtin_ctz(own) != p->vec) n *= written_out(p, __builtin_ctz(own));
  double each = lanes ? loads_of_vector(p, access) : 1;
  bool gated = a->gated && p->staged_at[access] < 0, apart = each == 0;
  bool known = !lanes || !(a->computed >> p->vec & 1); /* how far one lane is from the next */
  if (apart)
    n *= p->ext[p->vec] * (known || is_written_out(p, p->vec) ? APART : APART_FOUND);
  else if (lanes)
    n *= vectors(p) * tile_registers(p->c->target) * each + (edges_of(p, access) ? LOADS_OF_EDGES : 0);
  if (lanes && is_far(p->c, a) && a->streamed && is_nested(p->c))
    n += n / tile_registers(p->c->target); /* prefetched */
  return asked ? 2 * n : gated && !apart ? n + 1 : n;
}

/* Steps of a body's innermost loops that a value is the same in: it stands before them. */
static double steps_alike(const Plan *p, const Work *w) {
  double steps = 1;
  for (int i = p->n - 1; i >= 0; i--) {
    if (!is_around(p, w->body, i)) continue;
    if (w->on >> p->level[i].loop & 1) break;
    steps *= p->level[i].trips;
  }
  return steps;
}

/* Cycles of one step of a body for what is computed of the factors: a vector for each 16 lanes of what
 * moves with them, one number of what does not, once for all iterations of the tile, of an unrolled sum
 * and of innermost loops that it is alike in. *kept: vectors that stay in registers through such loops. */
static double work_of(const Plan *p, int body, double *kept) {
  const KernelShape *c = p->c;
  double ops = 0;
  *kept = 0;
  for (int i = 0; i < c->nwork; i++) {
    const Work *w = &c->work[i];
    if (w->body != body) continue;
    bool held = w->converts && p->staged_at[w->converts] >= 0;
    bool known = w->decided != 0, lanes = p->vec >= 0 && (w->on >> p->vec & 1);
    double n = 1, steps = steps_alike(p, w);
    for (int r = 0; r < c->n; r++) {
      if (w->decided >> r & 1) known &= is_written_out(p, r);
      if (!(w->on >> r & 1) || r == p->vec) continue;
      n *= written_out(p, r);
    }
    if (lanes)
      n *= p->group >= 0 ? ceil(p->unroll[p->group] / LANES) : vectors(p);
    else if (p->vec >= 0 && is_nested(c))
      n /= tile_registers(c->target); /* one number, in a register of its own */
    if (!known && !held) ops += w->weight * n / steps;
    if (!known && !held && lanes && steps > 1) *kept += n;
  }
  return ops * LANES / (2 * c->target->ops);
}

/* Whether numbers that all lanes have, as the weights of a window, are the same in every iteration of the
 * innermost loop: they stay in registers. */
static bool is_held(const Plan *p, int access) {
  uint32_t moves = p->c->access[access].moves;
  int last = p->n - 1;
  while (last >= 0 && !is_around(p, p->c->access[access].body, last))
    last--;
  bool lanes = p->vec >= 0 && (moves >> p->vec & 1), step = last >= 0 && (moves >> p->level[last].loop & 1);
  return moves && !lanes && !step && last >= 0;
}

/* Results of a step, in vectors of lanes: sums of a body; where sums are nested, each for all steps that are
 * written out of the loops around its own. */
static double results_of(const Plan *p, int body) {
  const KernelShape *c = p->c;
  double n = 1;
  for (int r = 0; r < c->n; r++) {
    if (!(c->body[body].loops >> r & 1) || (c->body[body].own >> r & 1)) continue;
    if (is_summed_over(c, r))
      n *= r == p->group ? ceil(p->unroll[r] / LANES) : p->unroll[r];
    else if (p->up[r] > 1)
      n *= r == p->vec ? vectors(p) : p->ext[r];
  }
  return n;
}

static double sums_of(const Plan *p, int body) {
  return results_of(p, body) * TG_MAX(p->c->body[body].nsum, 1);
}

/* Whether a body stands in the steps of another one. */
static bool is_inside(const Plan *p, int inner, int body) {
  return inner != body && (p->c->body[inner].loops & p->c->body[body].own) &&
         (p->c->body[inner].own & ~p->c->body[body].own);
}

/* A body around others needs its registers in few of its steps. What it has too many of, and its sums
 * while an inner body needs the registers, is in memory. */
static void wait_in_memory(const Plan *p, int body, double sums, const double *registers, TileStep *step) {
  double room = tile_room(p->c->target), waits = 0;
  for (int b = body + 1; b < p->c->nbody; b++) {
    if (!is_inside(p, b, body)) continue;
    waits = fmax(waits, fmax(step->vectors - room, registers[b] + sums > room ? sums : 0));
  }
  step->vectors = fmin(step->vectors, waits > 0 ? room : step->vectors);
  step->loads += 2 * waits * tile_registers(p->c->target);
}

/* Cycles of one step of a body, for so many vectors of lanes as the plan has now. registers: vectors that it
 * needs registers for, and those of inner bodies. */
static double step_of_body(const Plan *p, int body, double registers[MAX_BODIES]) {
  enum { STEPS_AT_ONCE = 4 };

  const KernelShape *c = p->c;
  const Body *b = &c->body[body];
  double unrolled = 1, loads = 0, shuffles = 0, held = 0;
  bool group = p->group >= 0 && (b->own >> p->group & 1), integers = b->integers && is_nested(c);
  for (int r = 0; r < c->n; r++)
    if (b->own >> r & 1) unrolled *= r == p->group ? ceil(p->unroll[r] / LANES) : p->unroll[r];
  for (int a = c->nstore; a < c->naccess; a++) {
    if (!c->access[a].in_sum || c->access[a].body != body) continue;
    double n = loads_of(p, a);
    double each = p->vec >= 0 && (c->access[a].moves >> p->vec & 1) ? loads_of_vector(p, a) : 0;
    loads += n;
    shuffles += each ? n / each * shuffles_of_vector(p, a) : 0;
    held += is_held(p, a) ? n : 0;
  }
  const Target *t = c->target;
  double kept, work = work_of(p, body, &kept), sums = sums_of(p, body);
  double across = group ? ceil(p->unroll[p->group] / LANES) : 1; /* vectors of a sum with lanes of its own */
  double add = !c->reduce ? 0 : b->fused ? LANES / t->fmas : LANES / (2 * t->ops);
  double ops = (sums * unrolled * add + work) * (integers ? INTEGERS : 1);
  TileStep step = {.work = ops + shuffles * LANES / t->fmas,
                   .loads = loads,
                   .chain = !c->reduce ? 0
                            : group    ? 1
                                       : unrolled,
                   .vectors = sums * across + (group ? 1 : vectors(p)) + kept + held};
  if (unrolled > 1 && !group && !integers) step.vectors += 2;
  /* A compiler adds up what is written out of one result before the next: what they share waits. */
  if (integers && !group)
    step.vectors += (sums > 1 ? fmax(unrolled - 2, 0) * vectors(p) : 0) + 1 / tile_registers(t);
  /* of steps that are written out, each result has some at work at once */
  if (group) step.vectors += sums * (fmin(unrolled / across, STEPS_AT_ONCE) - 1);
  wait_in_memory(p, body, sums, registers, &step);
  registers[body] = step.vectors;
  double over = integers ? fmax(0, step.vectors / tile_room(t) - 1) : 0;
  if (over > 0) step.vectors = tile_room(t);
  double loaded = step.loads * LANES / t->fmas / tile_registers(t);
  if (integers) step.work += OVERLAP_LEFT * fmin(step.work, loaded); /* a core begins so many a cycle */
  return tile_step(t, &step) * pieces_of(p, body) * (over > 0 ? SPILLED_SOME + SPILLED_INTEGERS * over : 1);
}

/* Lanes along a reduction of unknown length: what is left is added up across its lanes, in each iteration of the
 * loops around; of a known one, it is added to the first lanes. Where sums are nested, an inner one is added up
 * across, which is a number to the next. */
static double across_of(const Plan *p) {
  double cycles = 0;
  for (int b = 0; p->group >= 0 && b < p->c->nbody; b++) {
    const Body *body = &p->c->body[b];
    double trips = 1;
    if (!(body->own >> p->group & 1)) continue;
    bool counted = b == 0 && !is_open(p->c, p->group);
    if (counted && p->c->size[p->group] % (int64_t)p->unroll[p->group] == 0) continue;
    for (int i = 0; i < p->n; i++)
      if (p->level[i].loop != p->group && is_around(p, b, i)) trips *= p->level[i].trips;
    cycles += trips * sums_of(p, b) * (counted ? ADDED_TO_FIRST : ADDED_ACROSS);
  }
  return cycles;
}

/* Whether nothing is left of a body's own loops. */
static bool is_all_written_out(const Plan *p, int body) {
  bool all = true;
  for (int i = 0; i < p->n; i++)
    all &= !(p->c->body[body].own >> p->level[i].loop & 1);
  return all;
}

/* Cycles of one step of the innermost loop, with its share of a step of each loop around where sums are
 * nested. */
static double step_of(const Plan *p) {
  double registers[MAX_BODIES], cycles = 0;
  for (int b = p->c->nbody; b-- > 0;) {
    double step = step_of_body(p, b, registers);
    for (int i = b + 1; i < p->c->nbody; i++)
      step += is_inside(p, i, b) && !is_all_written_out(p, i) ? LOOP_BEGUN : 0;
    for (int i = 0; i < p->n; i++)
      if (!is_around(p, b, i)) step /= p->level[i].trips;
    cycles += step;
  }
  return cycles;
}

/* Blocks of lanes that are not whole: what a block of the tiles around leaves, and what the last one does. A
 * step of them costs what its loads do, however few its lanes are. */
static double lanes_left(Plan *p, double trips, double whole_step) {
  int v = p->vec;
  int64_t size = p->c->size[v], n = (int64_t)p->ext[v], block = size;
  double had = 1;
  for (int i = 0; i < p->n; i++)
    if (p->level[i].loop == v) {
      had *= p->level[i].trips;
      if (i < p->ntile) block = (int64_t)p->level[i].ext[v];
    }
  int64_t blocks = size / block, last = size % block;
  int64_t left[2] = {block % n, last % n}, times[2] = {blocks, 1};
  double cycles = (double)(blocks * (block / n) + last / n) * whole_step;
  for (int i = 0; i < 2; i++) {
    if (!left[i]) continue;
    p->ext[v] = (double)left[i];
    cycles += (double)times[i] * step_of(p);
  }
  p->ext[v] = (double)n;
  return trips / had * cycles;
}

double compute_of(Plan *p, double *tile) {
  double trips = 1, step = step_of(p);
  *tile = results_of(p, 0);
  for (int i = 0; i < p->n; i++)
    trips *= p->level[i].trips;
  bool counted = p->vec >= 0 && p->group < 0 && !is_open(p->c, p->vec);
  if (counted && p->c->size[p->vec] % (int64_t)p->ext[p->vec]) return lanes_left(p, trips, step);
  return trips * step + across_of(p);
}
