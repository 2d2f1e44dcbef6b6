/* steps.c: what the innermost steps of a nest take (plan.h). In: its levels. Out: cycles of a core, if all
 * that it reads is in L1.
 *
 *   iterations * (max(multiply-adds / 2, loads / 2, 4 * dependent adds) + 1), more if the registers are
 *   too few; the tail of the lanes has steps of its own. If sums are nested, each body has its own steps. */
#include "plan/plan.h"
#include <math.h>
#include <stdlib.h>

enum { LANES = TILE_LANES };

/* A load of a single lane, with its insertion into a vector, counts as this many loads. APART_FOUND: the
 * place of the lane is computed too, not a step from the lane before. */
static const double APART = 2.5, APART_FOUND = 5;
/* A load that begins anywhere in a cache line counts as this many loads. Lanes are mostly extracted from such
 * loads. */
static const double ANYWHERE = 1.5;
/* Additional loads for a row whose first and last vectors are not whole, if the edges are known because loops
 * are written out. */
static const double LOADS_OF_EDGES = 4;
/* Number of vectors that contain a vector of lanes whose places are known. */
static const double VECTORS_KNOWN = 2;
/* Steps that the two additional pieces of a loop cost, with what is computed before them. With such pieces, 3
 * taps of a window's gradient, 4 rows by 16 lanes, took 5 times as long as without on a Zen 3, and 2.6 times
 * as long with a copy. */
static const double STEPS_OF_PIECES = 6;
/* Cycles to add the remaining lanes of a sum to its first lanes. */
static const double ADDED_TO_FIRST = 2;
/* Cycles for the beginning and end of an inner loop. */
static const double LOOP_BEGUN = 6;
/* INTEGERS and the next two constants are for nested sums. Single sums of integers use the constants of
 * floats, to which their lists were fitted. INTEGERS: the time of an operation relative to one on floats,
 * because three units of a core add and shift integers, not two. */
static const double INTEGERS = 2.0 / 3;
/* How much longer a step of sums of integers takes if some sums are in memory, and additionally for as many
 * sums as the registers hold. A multiplication of integers takes as long as its loads, while one of floats
 * takes half as long. */
static const double SPILLED_SOME = 1.12, SPILLED_INTEGERS = 0.3;

/* Vectors of lanes in a step. A sum of products reads broadcast numbers again for each piece of a tail. With
 * lanes along 28 columns a dilated or strided convolution took 1.15 to 1.5 times as long on a Zen 2 as with
 * lanes along channels. */
static double vectors(const Plan *p) {
  if (p->vec < 0) return 1;
  bool whole = p->c->body[p->c->nbody - 1].fused && p->c->target != &p->c->eight;
  return whole ? tile_vectors(p->ext[p->vec]) : tile_pieces(p->c->target, p->ext[p->vec]);
}

/* Whether vectors of an access begin anywhere in a cache line. Each of them is then loaded from two lines. */
static bool crosses_lines(const Plan *p, int access) {
  return (p->c->access[access].uneven & ~(1u << p->vec)) && panel_axis(p, access) < 0;
}

/* Whether all iterations of a loop are written out, so that what depends only on this loop is known. A rest
 * of less than a vector of lanes does not matter, because it is a nest of its own. */
static bool is_written_out(const Plan *p, int r) {
  double size = (double)p->c->size[r];
  if (is_open(p->c, r)) return false;
  if (is_summed_over(p->c, r)) return p->unroll[r] >= size;
  return r == p->vec ? p->up[r] > size - LANES : p->up[r] >= size;
}

/* Loops that determine which lanes of a vector the gate of an access lets through. 0: it lets all through, or
 * none. */
static uint32_t edges_of(const Plan *p, int access) {
  const Access *a = &p->c->access[access];
  return (p->staged_at[access] >= 0 ? 0 : a->edges[p->vec]) | (a->asks >> p->vec & 1 ? a->asks : 0);
}

/* The number of shuffles that extract a vector of lanes from the vectors that contain it. */
static double shuffles_of_vector(const Plan *p, int access) {
  if (p->vec < 0 || lanes_contiguous(p, access)) return 0;
  return fmax(1, access_vectors(&p->c->access[access], p->vec) - 1);
}

/* The number of loads of such vectors, which mostly begin anywhere in a cache line. 0: the lanes are loaded
 * one by one, as they are if their edges are not known. */
static double loads_of_vector(const Plan *p, int access) {
  double n = access_vectors(&p->c->access[access], p->vec);
  for (uint32_t edges = edges_of(p, access); edges; edges &= edges - 1)
    if (!is_written_out(p, __builtin_ctz(edges))) return 0;
  if (n == 0 && is_written_out(p, p->vec) && place_known(&p->c->access[access], p->vec)) n = VECTORS_KNOWN;
  return lanes_contiguous(p, access) ? (crosses_lines(p, access) ? 2 : 1) : ANYWHERE * n;
}

/* The iterations of a loop that are in one step. */
static double written_out(const Plan *p, int r) {
  return is_summed_over(p->c, r) ? p->unroll[r] : p->up[r] > 1 ? p->ext[r] : 1;
}

/* The number of gates in one step for a condition that the factors of a product share. Loops are bounded by
 * it, so they need no gate, but each iteration that is written out needs one. */
static double asked_of(const Plan *p, const Access *a) {
  double n = 1;
  for (uint32_t asks = a->asks; asks; asks &= asks - 1)
    n *= written_out(p, __builtin_ctz(asks));
  return n;
}

/* How much longer the steps of a body take if rows that are written out have different conditions on a loop
 * of the sum. The loop that they bound then gets a piece on each side in which every row has a gate, besides
 * the piece in which all rows count. These pieces are short, and what does not move in them is computed
 * before each. */
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

/* The registers that one step of the body loads: those of a vector; one for a broadcast number; or one for
 * each lane whose elements are not contiguous. */
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
  bool known = !lanes || !(a->computed >> p->vec & 1); /* the distance from one lane to the next is known */
  if (apart)
    n *= p->ext[p->vec] * (known || is_written_out(p, p->vec) ? APART : APART_FOUND);
  else if (lanes)
    n *= vectors(p) * tile_registers(p->c->target) * each + (edges_of(p, access) ? LOADS_OF_EDGES : 0);
  if (lanes && is_far(p->c, a) && a->streamed && is_nested(p->c))
    n += n / tile_registers(p->c->target); /* it is prefetched too */
  return asked ? 2 * n : gated && !apart ? n + 1 : n;
}

/* The number of consecutive steps of a body's innermost loops in which a value is the same. It is computed
 * before them. */
static double steps_alike(const Plan *p, const Work *w) {
  double steps = 1;
  for (int i = p->n - 1; i >= 0; i--) {
    if (!is_around(p, w->body, i)) continue;
    if (w->on >> p->level[i].loop & 1) break;
    steps *= p->level[i].trips;
  }
  return steps;
}

/* Cycles of one step of a body for what is computed from the factors. A value that moves with the lanes is a
 * vector for each 16 lanes. A value that does not is one number. Each is computed once for all iterations of
 * the tile, of an unrolled sum and of the innermost loops in which it is the same. *kept: vectors that stay
 * in registers during such loops. */
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

/* Whether broadcast numbers, such as the weights of a window, are the same in every iteration of the
 * innermost loop. Then they stay in registers. */
static bool is_held(const Plan *p, int access) {
  uint32_t moves = p->c->access[access].moves;
  int last = p->n - 1;
  while (last >= 0 && !is_around(p, p->c->access[access].body, last))
    last--;
  bool lanes = p->vec >= 0 && (moves >> p->vec & 1), step = last >= 0 && (moves >> p->level[last].loop & 1);
  return moves && !lanes && !step && last >= 0;
}

/* The results of a step, in vectors of lanes, for one sum of a body. If sums are nested, each step that is
 * written out of the loops around the body has results of its own. */
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

/* Whether body `inner` is inside the steps of another body. */
static bool is_inside(const Plan *p, int inner, int body) {
  return inner != body && (p->c->body[inner].loops & p->c->body[body].own) &&
         (p->c->body[inner].own & ~p->c->body[body].own);
}

/* A body around other bodies needs its registers in few of its steps. Values that do not fit in the registers
 * are in memory, and so are its sums while an inner body needs the registers. */
static void wait_in_memory(const Plan *p, int body, double sums, const double *registers, TileStep *step) {
  double room = tile_room(p->c->target), waits = 0;
  for (int b = body + 1; b < p->c->nbody; b++) {
    if (!is_inside(p, b, body)) continue;
    waits = fmax(waits, fmax(step->vectors - room, registers[b] + sums > room ? sums : 0));
  }
  step->vectors = fmin(step->vectors, waits > 0 ? room : step->vectors);
  step->loads += 2 * waits * tile_registers(p->c->target);
}

/* Whether the lanes of an access are read at places that are data. Each place is taken out of a vector and each
 * element is put into one by the units that also compute, so this work does not overlap with other work. */
static bool lanes_found(const Plan *p, int access) {
  const Access *a = &p->c->access[access];
  return a->found && p->vec >= 0 && (a->computed >> p->vec & 1) && loads_of_vector(p, access) == 0;
}

/* Cycles of one step of a body, for the vectors of lanes that the plan has now. registers: the vectors for
 * which each body needs registers; those of inner bodies are set already. */
static double step_of_body(const Plan *p, int body, double registers[MAX_BODIES]) {
  enum { STEPS_AT_ONCE = 4 };

  const KernelShape *c = p->c;
  const Body *b = &c->body[body];
  double unrolled = 1, loads = 0, found = 0, shuffles = 0, held = 0;
  bool group = p->group >= 0 && (b->own >> p->group & 1), integers = b->integers && is_nested(c);
  for (int r = 0; r < c->n; r++)
    if (b->own >> r & 1) unrolled *= r == p->group ? ceil(p->unroll[r] / LANES) : p->unroll[r];
  for (int a = c->nstore; a < c->naccess; a++) {
    if (!c->access[a].in_sum || c->access[a].body != body) continue;
    double n = loads_of(p, a);
    double each = p->vec >= 0 && (c->access[a].moves >> p->vec & 1) ? loads_of_vector(p, a) : 0;
    *(lanes_found(p, a) ? &found : &loads) += n;
    shuffles += each ? n / each * shuffles_of_vector(p, a) : 0;
    held += is_held(p, a) ? n : 0;
  }
  const Target *t = c->target;
  double kept, work = work_of(p, body, &kept), sums = sums_of(p, body);
  /* vectors of a sum that has lanes of its own */
  double across = group ? ceil(p->unroll[p->group] / LANES) : 1;
  double add = !c->reduce ? 0 : b->fused ? LANES / t->fmas : LANES / (2 * t->ops);
  double ops = (sums * unrolled * add + work) * (integers ? INTEGERS : 1);
  double each_load = LANES / t->fmas / tile_registers(t);
  TileStep step = {.work = ops + shuffles * LANES / t->fmas + found * each_load,
                   .loads = loads,
                   .chain = !c->reduce ? 0
                            : group    ? 1
                                       : unrolled,
                   .vectors = sums * across + (group ? 1 : vectors(p)) + kept + held};
  if (unrolled > 1 && !group && !integers) step.vectors += 2;
  /* A compiler adds up all unrolled steps of one result before the next result, so the values that results
   * share must be kept. */
  if (integers && !group)
    step.vectors += (sums > 1 ? fmax(unrolled - 2, 0) * vectors(p) : 0) + 1 / tile_registers(t);
  /* each result has several of the unrolled steps in progress at once */
  if (group) step.vectors += sums * (fmin(unrolled / across, STEPS_AT_ONCE) - 1);
  wait_in_memory(p, body, sums, registers, &step);
  registers[body] = step.vectors;
  double over = integers ? fmax(0, step.vectors / tile_room(t) - 1) : 0;
  if (over > 0) step.vectors = tile_room(t);
  double loaded = step.loads * each_load;
  /* the core can start only so many instructions in a cycle */
  if (integers) step.work += OVERLAP_LEFT * fmin(step.work, loaded);
  return tile_step(t, &step) * pieces_of(p, body) * (over > 0 ? SPILLED_SOME + SPILLED_INTEGERS * over : 1);
}

/* Cycles to merge lanes along a reduction. If its length is unknown, the rest is added up across its lanes,
 * in each iteration of the loops around. If it is known, the rest is added to the first lanes. A nested inner
 * sum is always added up across its lanes, because the next sum needs it as one number. */
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

/* Whether all of a body's own loops are written out completely. */
static bool is_all_written_out(const Plan *p, int body) {
  bool all = true;
  for (int i = 0; i < p->n; i++)
    all &= !(p->c->body[body].own >> p->level[i].loop & 1);
  return all;
}

/* Cycles of one step of the innermost loop. If sums are nested, it includes its share of a step of each body
 * around it. */
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

/* Cycles of all steps if some blocks of lanes are not whole: the last of each block of the outer tiles, and
 * the last of the loop. Such a step costs what its loads cost, however few lanes it has. */
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
