/* cost.c: the estimate behind the choice of opts (cost.h). In: a kernel's shape and a list. Out: cycles of a
 * core.
 *
 *   compute: iterations * (max(multiply-adds / 2, loads / 2, 4 * dependent adds) + 1), more where registers
 *            do not suffice; the tail of the lanes has steps of its own
 *   traffic: for each level of memory, what each operand moves into it. That is the bytes below the
 *            outermost loop whose footprint fits the level, times the iterations outside; nothing where all
 *            fits
 *   pages:   the same, with the pages that a core knows as a level
 *   cost:    the larger of compute and traffic, and a part of all, because traffic is never hidden whole.
 *            Copies, pages and stores come on top
 *
 * It is the cost of the thread that has most, for the loop whose shares differ least; where several do, for
 * the one whose thread reads least.
 *
 * The constants were fitted to timed lists of some 30 kernels on one machine; tests/unit/test_costs.c holds
 * pairs of lists that another one timed. */
#include "plan/cost.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* LANES: of a vector as kernels are written. NEAR_ROWS: bytes from one row to the next that hardware asks for
 * ahead as it does for the next line. STREAMS: rows that go on at the same time, each of which it follows. */
enum { LANES = TILE_LANES, PAGE = 4096, NEAR_ROWS = 4 * LINE, STREAMS = 32 };

/* A run of w bytes costs as much as w and these, coming into the level. */
static const double short_run[LEVEL_MEMORY] = {0, 128, 256};
/* A line of text, of which a compiler reads 25,000 a second: 1,000 of them are worth 7 % of the time. */
static const double LINE_WORTH = 7e-5;
/* Lines for each register of a tile; for each more step of an unrolled sum. */
static const double LINES_OF_SUM = 8, LINES_OF_STEP = 5;
/* Loads that one is worth that reads a lane and puts it into its vector; .. whose place is computed, too,
 * not a step from the one before. */
static const double APART = 2.5, APART_FOUND = 5;
/* Loads that one is worth that begins anywhere in a line, as mostly does what lanes are taken out of. */
static const double ANYWHERE = 1.5;
/* .. of a row whose first and last vectors are not whole, which is known where they are written. */
static const double LOADS_OF_EDGES = 4;
/* A vector of a tile that is turned in registers, but for its stores. */
static const double TURNED = 3.5;
/* A vector of sums in local memory, read and written. */
static const double SUM_KEPT = 2.6;
/* OVERLAP_LEFT of a sum, whose results stay in registers while it reads. */
static const double LEFT_OF_SUM = 0.1;
/* Of a level, what a working set can have: the pages of its rows lie anywhere. */
static const double ROOM = 0.7;
/* Cycles until a row comes from memory, beside what is computed meanwhile. */
static const double ROW_BEGUN = 80;
/* .. until the stream of a row is found and under way. A Zen 2 reads 6 rows of 1.2 KB beside each other at
 * 10.6 GB/s, of 3 KB at 17, of 8 KB at 21, and 25 where each goes on: 60 ns a row. */
static const double STREAM_BEGUN = 200;
/* What each stream beside the first adds: one 15.5 GB/s, two 19, three 21, four 23, six 25 on a Zen 2. As
 * many cores as memory serves at once gain by the second alone. */
static const double STREAM_GAIN = 0.15, MOST_STREAMS = 5;
/* Of the time of threads that write parts of the same lines. */
static const double LINES_SPLIT = 1.05;
/* A copy waits for what it reads. */
static const double COPY_SHOWN = 1.5;
/* Of the traffic into a level, what is not hidden behind anything. */
static const double shown[LEVEL_MEMORY] = {0.1, 0.3, 0.3};

static double cycle_bytes(const Target *t, int from) { return t->bytes_us[from] / t->mhz; }

/* Bytes of a level that rows take up: those that meet in a set push each other out. */
static double taken_up(const Target *t, Footprint f, int level) {
  if (f.blocks <= 1 || f.stride <= 0) return f.bytes;
  double sets = (double)(t->cache[level] / t->ways[level] / 64);
  double apart = f.stride / 64, distinct = sets; /* sets that row beginnings fall into */
  if (apart == floor(apart)) {
    int64_t a = (int64_t)apart, b = (int64_t)sets;
    while (b) {
      int64_t rest = a % b;
      a = b;
      b = rest;
    }
    distinct = sets / (double)a;
  }
  double worst = f.blocks * f.lines / fmin(sets, distinct * f.lines);
  return worst > t->ways[level] * 0.7 ? fmax(f.bytes, (double)t->cache[level] * worst / t->ways[level])
                                      : f.bytes;
}

/* ---- the nest that a list gives */
typedef struct Level {
  int loop;
  double trips, ext[MAX_LOOPS]; /* of every loop, below this one */
} Level;

typedef struct Plan {
  const KernelShape *c;
  int n, ntile, vec, group, first_stage; /* ntile: levels that TILE made */
  /* first_stage: levels outside the first STAGE that stands in a loop */
  double whole[MAX_LOOPS], ext[MAX_LOOPS], up[MAX_LOOPS], unroll[MAX_LOOPS];
  uint32_t top;                                /* bit r: loop r has its tile at equal distances */
  int order[MAX_LOOPS], staged_at[MAX_ACCESS]; /* -1: not staged */
  double copy[MAX_ACCESS];
  bool any_copy; /* each access has the copy that suits it best */
  double blocks; /* of the reduction, outside the outputs: each adds to local memory, or to the one output */
  Level level[2 * MAX_LOOPS + MAX_TAKEN]; /* n of them; last, so that no plan begins with zeroing them */
} Plan;

static void open_loop(Plan *p, int loop, double trips) {
  Level *l = &p->level[p->n++];
  l->loop = loop;
  l->trips = trips;
  memcpy(l->ext, p->ext, sizeof l->ext);
}

/* Iterations of each loop that a copy is made of. */
static const double *copied_ext(const Plan *p, int access) {
  return p->staged_at[access] ? p->level[p->staged_at[access] - 1].ext : p->whole;
}

/* The axis of a copy that lanes alone go along, which panels make contiguous (stage.c); -1: the copy has the
 * order of the buffer. */
static int panel_axis(const Plan *p, int access) {
  const Access *a = &p->c->access[access];
  int axis = p->vec < 0 || p->group >= 0 || p->staged_at[access] < 0 ? -1 : a->alone[p->vec];
  if (axis < 0 || p->any_copy) return axis;
  const double *copied = copied_ext(p, access);
  for (uint32_t others = a->others[p->vec]; others; others &= others - 1)
    if (copied[__builtin_ctz(others)] > 1) return -1;
  return axis;
}

/* What is touched of a copy. Its rows are as far apart as the whole of it has them: of its axes in the order
 * of the buffer, with panels outside them, what is touched of one ends the run unless it is all of it. */
static Footprint footprint_of_copy(const Plan *p, int access, const double *ext) {
  const Access *a = &p->c->access[access];
  const double *copied = copied_ext(p, access);
  double span[MAX_AXES], full[MAX_AXES], n = access_spans(a, ext, span), run = 1, place = 1, stride = 0,
                                         near = 1;
  int panel = panel_axis(p, access);
  access_spans(a, copied, full);
  if (panel >= 0) {
    place = fmin(p->up[p->vec], ceil(full[panel] / LANES) * LANES);
    run = span[panel] >= full[panel] ? place : fmin(span[panel], place);
  }
  for (int i = a->naxis - 1; i >= 0 && stride == 0; i--) {
    int d = a->by_step[i];
    if (d == panel) continue;
    if (place == run)
      run *= span[d];
    else if (span[d] > 1) {
      stride = place;
      near = span[d];
    }
    place *= full[d];
  }
  if (stride == 0) stride = place;
  double rows = fmax(1, n / run) * access_reads(a);
  if (stride * a->copied < LINE) {
    rows = fmax(1, rows / near);
    run += stride * (near - 1);
  }
  double lines = lines_of(run * a->copied);
  return (Footprint){.bytes = rows * lines * LINE,
                     .run = run * a->copied,
                     .rows = rows,
                     .blocks = rows,
                     .lines = lines,
                     .stride = stride * a->copied};
}

/* Whether a copy is made once, before the kernel: not one that is larger than what it is made of. */
static bool is_prepacked(const Access *a) { return a->stays && a->copied <= a->bytes; }

static bool plan_stage(Plan *p, int access) {
  const KernelShape *c = p->c;
  const Access *a = &c->access[access];
  double trips = 1;
  if (!a->even) return false;
  for (int i = 0; i < p->n; i++)
    trips *= p->level[i].trips;
  double span[MAX_AXES], bytes = access_spans(a, p->ext, span) * access_reads(a) * a->copied,
                         whole = a->whole;
  bool lanes = p->vec >= 0 && (a->moves >> p->vec & 1);
  const Target *t = c->target;
  double rate =
      cycle_bytes(t, LEVEL_L2) * (!lanes || access_vectors(a, p->vec) ? (a->gated ? 1.0 / 6 : 1.0 / 4)
                                                                      : (a->gated ? 1.0 / 16 : 1.0 / 8));
  bool third = t->cache[LEVEL_L3] > 0;
  if (bytes > (double)target_copy_most(t)) return false;
  if (third && whole > (double)t->cache[LEVEL_L2]) rate = fmin(rate, cycle_bytes(t, LEVEL_L3) / 3.5);
  if (bytes > (double)t->cache[LEVEL_L2]) rate /= 2; /* what is written goes there, too */
  if (whole > (double)t->cache[third ? LEVEL_L3 : LEVEL_L2])
    rate = fmin(rate, cycle_bytes(t, LEVEL_MEMORY) / 2);
  p->copy[access] = is_prepacked(a) ? 0 : COPY_SHOWN * bytes * trips / rate;
  if (p->n && p->first_stage < 0 && !is_prepacked(a)) p->first_stage = p->n;
  p->staged_at[access] = p->n;
  return true;
}

/* Blocks of the reduction outside from here on: whether there is room for a sum of each output. */
static bool plan_blocks(Plan *p, double trips) {
  double sums = (p->c->target == &p->c->eight ? 8 : 4) * p->c->nsum; /* bytes */
  p->blocks *= trips;
  for (int r = 0; r < p->c->n; r++)
    sums *= is_summed_over(p->c, r) ? 1 : p->ext[r];
  return p->c->plain ||
         (p->c->whole && sums <= (double)TG_MIN(p->c->target->local_bytes, target_copy_most(p->c->target)));
}

static bool plan_make(Plan *p, const KernelShape *c, const Taken *t) {
  memset(p, 0, offsetof(Plan, level));
  p->blocks = 1;
  p->c = c;
  p->vec = p->group = p->first_stage = -1;
  for (int r = 0; r < c->n; r++) {
    p->whole[r] = p->ext[r] = (double)c->size[r];
    p->up[r] = p->unroll[r] = 1;
    p->order[r] = r;
  }
  for (int a = 0; a < c->naccess; a++)
    p->staged_at[a] = -1;
  for (int i = 0; i < t->n; i++) {
    const Opt *o = &t->opt[i];
    if (is_upcast(o->op) || o->op == OPT_VEC) p->up[o->r] = (double)o->n;
    if (o->op == OPT_UPCASTTOP) p->top |= 1u << o->r;
    if (o->op == OPT_VEC) p->vec = (int)o->r;
    if (o->op == OPT_UNROLL || o->op == OPT_GROUP) p->unroll[o->r] = (double)TG_MIN(o->n, c->size[o->r]);
    if (o->op == OPT_GROUP) p->group = p->vec = (int)o->r;
    if (o->op == OPT_SWAP)
      for (int r = 0; r < c->n; r++)
        p->order[r] = p->order[r] == o->r ? (int)o->n : p->order[r] == o->n ? (int)o->r : p->order[r];
  }
  for (int i = 0; i < t->n; i++) {
    const Opt *o = &t->opt[i];
    if (o->op == OPT_STAGE && !plan_stage(p, (int)o->r)) return false;
    if (o->op != OPT_TILE || p->ext[o->r] <= (double)o->n) continue;
    double trips = p->ext[o->r] / (double)o->n;
    if (is_summed_over(c, (int)o->r) && !plan_blocks(p, trips)) return false;
    p->ext[o->r] = (double)o->n;
    open_loop(p, (int)o->r, trips);
  }
  p->ntile = p->n;
  for (int i = 0; i < c->n; i++) {
    int r = p->order[i];
    if (is_summed_over(c, r)) continue;
    double n = p->up[r], trips = ceil(p->ext[r] / n);
    if (r != p->vec && n > 1) n = p->ext[r] / trips;
    if (p->ext[r] > n) {
      p->ext[r] = n;
      open_loop(p, r, trips);
    }
  }
  for (int r = 0; r < c->n; r++) {
    if (!is_summed_over(c, r)) continue;
    double n = p->unroll[r], trips = r == p->group ? p->ext[r] / n : ceil(p->ext[r] / n);
    if (p->ext[r] > n) {
      p->ext[r] = n;
      open_loop(p, r, trips);
    }
  }
  return true;
}

/* ---- the parts of the cost */
/* A sum of products reads the numbers that all lanes share again for each piece of a tail. With lanes along
 * 28 columns a dilated or strided convolution took 1.15 to 1.5 times as long on a Zen 2 as with lanes along
 * channels. */
static double vectors(const Plan *p) {
  if (p->vec < 0) return 1;
  return p->c->fused ? tile_vectors(p->ext[p->vec]) : tile_pieces(p->c->target, p->ext[p->vec]);
}

/* Whether lanes are contiguous: in memory, or in a copy, which has panels of them where they are an axis of
 * their own. */
static bool lanes_contiguous(const Plan *p, int access) {
  return access_step(&p->c->access[access], p->vec) == 1 || panel_axis(p, access) >= 0;
}

/* Whether vectors of an access begin anywhere in a line: each is then a load of two. */
static bool crosses_lines(const Plan *p, int access) {
  return (p->c->access[access].uneven & ~(1u << p->vec)) && panel_axis(p, access) < 0;
}

/* Whether all iterations of a loop are written out, so that what depends on it alone is known; but for less
 * than a vector of lanes, which is a nest of its own. */
static bool is_written_out(const Plan *p, int r) {
  double size = (double)p->c->size[r];
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
  if (apart)
    n *= p->ext[p->vec] * (a->even || is_written_out(p, p->vec) ? APART : APART_FOUND);
  else if (lanes)
    n *= vectors(p) * tile_registers(p->c->target) * each + (edges_of(p, access) ? LOADS_OF_EDGES : 0);
  return asked ? 2 * n : gated && !apart ? n + 1 : n;
}

/* Lanes along a reduction that does not divide: what is left is added up across its lanes, in each iteration
 * of the loops around. */
static double rests_of(const Plan *p, double tile) {
  double trips = 1;
  if (p->group < 0 || p->c->size[p->group] % (int64_t)p->unroll[p->group] == 0) return 0;
  for (int i = 0; i < p->n; i++)
    if (p->level[i].loop != p->group) trips *= p->level[i].trips;
  return trips * tile * p->c->nsum * ADDED_ACROSS;
}

/* Steps of the innermost loops that a value is the same in: it stands before them. */
static double steps_alike(const Plan *p, const Work *w) {
  double steps = 1;
  for (int i = p->n - 1; i >= 0 && !(w->on >> p->level[i].loop & 1); i--)
    steps *= p->level[i].trips;
  return steps;
}

/* Cycles of one step for what is computed of the factors: a vector for each 16 lanes of what moves with
 * them, one number of what does not, once for all iterations of the tile, of an unrolled sum and of
 * innermost loops that it is alike in. *kept: vectors that stay in registers through such loops. */
static double work_of(const Plan *p, double *kept) {
  const KernelShape *c = p->c;
  double ops = 0;
  *kept = 0;
  for (int i = 0; i < c->nwork; i++) {
    const Work *w = &c->work[i];
    bool held = w->converts && p->staged_at[w->converts] >= 0;
    bool known = w->decided != 0, lanes = p->vec >= 0 && (w->on >> p->vec & 1);
    double n = 1, steps = steps_alike(p, w);
    for (int r = 0; r < c->n; r++) {
      if (w->decided >> r & 1) known &= is_written_out(p, r);
      if (!(w->on >> r & 1) || r == p->vec) continue;
      n *= written_out(p, r);
    }
    if (lanes) n *= p->group >= 0 ? ceil(p->unroll[p->group] / LANES) : vectors(p);
    if (!known && !held) ops += w->weight * n / steps;
    if (!known && !held && lanes && steps > 1) *kept += n;
  }
  return ops * LANES / (2 * c->target->ops);
}

/* Whether numbers that all lanes have, as the weights of a window, are the same in every iteration of the
 * innermost loop: they stay in registers. */
static bool is_held(const Plan *p, int access) {
  uint32_t moves = p->c->access[access].moves;
  bool lanes = p->vec >= 0 && (moves >> p->vec & 1), step = p->n && (moves >> p->level[p->n - 1].loop & 1);
  return moves && !lanes && !step && p->n;
}

/* Cycles of one step of the innermost loop, for so many vectors of lanes as the plan has now. */
static double step_of(const Plan *p, double *tile) {
  enum { STEPS_AT_ONCE = 4 };

  const KernelShape *c = p->c;
  double unrolled = 1, loads = 0, shuffles = 0, held = 0;
  *tile = 1;
  for (int r = 0; r < c->n; r++) {
    if (is_summed_over(c, r))
      unrolled *= r == p->group ? ceil(p->unroll[r] / LANES) : p->unroll[r];
    else if (p->up[r] > 1)
      *tile *= r == p->vec ? vectors(p) : p->ext[r];
  }
  for (int a = c->nstore; a < c->naccess; a++) {
    if (!c->access[a].in_sum) continue;
    double n = loads_of(p, a);
    double each = p->vec >= 0 && (c->access[a].moves >> p->vec & 1) ? loads_of_vector(p, a) : 0;
    loads += n;
    shuffles += each ? n / each * shuffles_of_vector(p, a) : 0;
    held += is_held(p, a) ? n : 0;
  }
  const Target *t = c->target;
  double kept, work = work_of(p, &kept);
  double sums = *tile * TG_MAX(c->nsum, 1), steps = sums * unrolled,
         add = !c->reduce ? 0
               : c->fused ? LANES / t->fmas
                          : LANES / (2 * t->ops);
  TileStep step = {.work = steps * add + work + shuffles * LANES / t->fmas,
                   .loads = loads,
                   .chain = !c->reduce     ? 0
                            : p->group < 0 ? unrolled
                                           : 1,
                   .vectors = sums * (p->group < 0 ? 1 : ceil(p->unroll[p->group] / LANES)) +
                              (p->group < 0 ? vectors(p) : 1) + kept + held};
  if (unrolled > 1 && p->group < 0) step.vectors += 2;
  /* of steps that are written out, each result has some at work at once */
  if (p->group >= 0) {
    double each = unrolled / ceil(p->unroll[p->group] / LANES);
    step.vectors += sums * (fmin(each, STEPS_AT_ONCE) - 1);
  }
  return tile_step(t, &step);
}

/* Blocks of lanes that are not whole: what a block of the tiles around leaves, and what the last one does. A
 * step of them costs what its loads do, however few its lanes are. */
static double lanes_left(Plan *p, double trips, double whole_step) {
  int v = p->vec;
  int64_t size = p->c->size[v], n = (int64_t)p->ext[v], block = size;
  double had = 1, tile;
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
    cycles += (double)times[i] * step_of(p, &tile);
  }
  p->ext[v] = (double)n;
  return trips / had * cycles;
}

static double compute_of(Plan *p, double *tile) {
  double trips = 1, step = step_of(p, tile);
  for (int i = 0; i < p->n; i++)
    trips *= p->level[i].trips;
  if (p->vec >= 0 && p->group < 0 && p->c->size[p->vec] % (int64_t)p->ext[p->vec])
    return lanes_left(p, trips, step);
  return trips * step + rests_of(p, *tile);
}

/* What each access touches below each loop of the plan: [0] the whole kernel. */
typedef struct Footprints {
  Footprint of[2 * MAX_LOOPS + MAX_TAKEN + 1][MAX_ACCESS];
  double all[2 * MAX_LOOPS + MAX_TAKEN + 1]; /* bytes of all together */
  double pages[2 * MAX_LOOPS + MAX_TAKEN + 1];
} Footprints;

static double pages_in(Footprint f) {
  double block = f.lines * LINE;
  return f.stride >= PAGE ? f.blocks * ceil(block / PAGE) : fmax(1, f.blocks * fmax(f.stride, block) / PAGE);
}

static void footprints_of(const Plan *p, Footprints *footprints) {
  const KernelShape *c = p->c;
  for (int i = 0; i <= p->n; i++) {
    footprints->all[i] = footprints->pages[i] = 0;
    for (int a = 0; a < c->naccess; a++) {
      bool same = i && !(c->access[a].moves >> p->level[i - 1].loop & 1); /* the loop outside moves others */
      const double *ext = i ? p->level[i - 1].ext : p->whole;
      Footprint f = same                   ? footprints->of[i - 1][a]
                    : p->staged_at[a] >= 0 ? footprint_of_copy(p, a, ext)
                                           : access_footprint(&c->access[a], ext);
      footprints->of[i][a] = f;
      footprints->all[i] += f.bytes;
      footprints->pages[i] += pages_in(f);
    }
  }
}

/* Bytes that an access moves by in an iteration of a level. */
static double moved_by(const Plan *p, const Access *x, const Level *l) {
  double by = (double)llabs(access_step(x, l->loop)) * x->bytes;
  return p->top >> l->loop & 1 ? by : by * l->ext[l->loop];
}

/* Bytes that the loops below level `own` read one after another, with gaps of no more than `gap`. */
static double run_read(const Plan *p, const Footprints *footprints, int a, int own, double gap) {
  const Access *x = &p->c->access[a];
  double run = footprints->of[p->n][a].run;
  for (int i = p->n - 1; i >= own; i--) {
    const Level *l = &p->level[i];
    if (!(x->moves >> l->loop & 1)) continue;
    double by = moved_by(p, x, l);
    if (by > fmax(run, gap)) break;
    run = fmax(run, by * l->trips);
  }
  return run;
}

/* Bytes that an access moves into a level: those below the outermost loop that fit it, for each iteration
 * outside, but not again for loops just outside that it does not move with. */
static double moved(const Plan *p, const Footprints *footprints, int a, int fits, int level) {
  const Access *x = &p->c->access[a];
  bool once = !x->in_sum && !p->c->plain && p->blocks > 1; /* in the last block alone */
  const Target *t = p->c->target;
  int own = p->n;
  for (int i = p->n; i >= fits; i--) {
    if (taken_up(t, footprints->of[i][a], level) > ROOM * (double)t->cache[level]) break;
    own = i;
  }
  if (own == 0 || (p->staged_at[a] >= own && !is_prepacked(x))) return 0;
  Footprint f = footprints->of[own][a];
  bool streams = a >= p->c->nstore && p->c->reduce && p->staged_at[a] < 0;
  double bytes = f.bytes, run = f.run;
  if (streams)
    run = fmin(run, run_read(p, footprints, a, own, NEAR_ROWS)); /* a line that is near comes by itself */
  const Level *around = &p->level[own - 1];
  int64_t step = access_step(x, around->loop);
  bool whole = (double)step * x->bytes * around->ext[around->loop] == f.run;
  bool goes_on = step == 1 || (whole && is_summed_over(p->c, around->loop));
  if (goes_on && f.rows <= STREAMS) { /* the next iteration goes on where this one ends */
    bytes = f.rows * f.run;
    if (run == f.run) run *= around->trips;
  }
  int at = own - 1;
  while (at >= 0 && !(x->moves >> p->level[at].loop & 1))
    at--;
  for (; at >= 0; at--)
    bytes *= p->level[at].trips;
  if (once) bytes /= p->blocks;
  /* rows that are read so near to each other come like one run */
  bool near = a >= p->c->nstore && f.stride > 0 && f.stride <= NEAR_ROWS;
  double begun = near ? 0 : short_run[level];
  return bytes * (a < p->c->nstore ? 2 : 1) * (run + begun) / run;
}

/* Elements of a run of a store that is written at once, where a tile of it is turned in registers; else 0. */
static double turned_run(const Plan *p, const Access *x) {
  double run = 0;
  for (uint32_t at = x->moves; at; at &= at - 1) {
    int r = __builtin_ctz(at);
    if (r != p->vec && p->up[r] >= 4 && access_step(x, r) == 1) run = fmin(p->up[r], LANES);
  }
  return run;
}

/* Cycles in which stores wait for lines that were in L1 before: those of an output whose lanes lie in lines
 * of their own come one by one, and are pushed out, by each other where they meet in a set, before the next
 * element of theirs is written. */
static double lines_awaited(const Plan *p, const Footprints *footprints) {
  const Target *t = p->c->target;
  double cycles = 0;
  for (int a = 0; a < p->c->nstore; a++) {
    const Access *x = &p->c->access[a];
    int own = p->n + 1;
    if (p->vec >= 0 && access_step(x, p->vec) == 1) continue;
    while (own > 0 && taken_up(t, footprints->of[own - 1][a], LEVEL_L1) <= (double)t->cache[LEVEL_L1])
      own--;
    Footprint f = footprints->of[TG_MIN(own, p->n)][a];
    if (own == 0 || f.run >= LINE) continue;
    double lines = own <= p->n ? f.blocks * f.lines : f.rows * (turned_run(p, x) ? 1 : f.run / x->bytes);
    for (int at = TG_MIN(own, p->n) - 1; at >= 0; at--)
      lines *= x->moves >> p->level[at].loop & 1 ? p->level[at].trips : 1;
    cycles += fmax(0, lines - x->whole / LINE) * t->line_wait;
  }
  return cycles;
}

static double traffic_of(const Plan *p, const Footprints *footprints, int level) {
  const Target *t = p->c->target;
  int fits = p->n; /* below the loop before this one, all operands together fit */
  double all = 0;
  for (int i = p->n; i >= 0 && footprints->all[i] <= ROOM * (double)t->cache[level]; i--)
    fits = i;
  double each[MAX_ACCESS];
  for (int a = 0; a < p->c->naccess; a++) {
    const Access *x = &p->c->access[a];
    bool own = x->beside < 0 || p->staged_at[a] >= 0 || p->staged_at[x->beside] >= 0;
    each[a] = moved(p, footprints, a, fits, level);
    if (own) continue;
    each[x->beside] = fmax(each[x->beside], each[a]);
    each[a] = 0;
  }
  for (int a = 0; a < p->c->naccess; a++)
    all += each[a];
  return all / cycle_bytes(t, level + 1);
}

/* Pages that the iterations of a level add for each that is below it. Where a page holds two iterations, the
 * next page is looked up behind them. A copy is read from end to end. */
static double pages_added(const Plan *p, int access, int level) {
  const Access *a = &p->c->access[access];
  const Level *l = &p->level[level];
  if (p->staged_at[access] >= 0) return a->moves >> l->loop & 1 ? l->trips : 1;
  double by = (double)llabs(access_step(a, l->loop)) * a->bytes * l->ext[l->loop];
  return fmax(1, l->trips * fmin(1, 2 * by / PAGE - 1));
}

/* Pages that are no longer known when they are read again: those below the outermost loop below which all are
 * known, for each iteration outside; but as long as an access stays in a page it is known. */
static double pages_missed(const Plan *p, const Footprints *footprints) {
  int own = p->n;
  double all = 0, known = p->c->target->pages;
  if (known == 0 || footprints->pages[0] <= known) return 0;
  while (own > 0 && footprints->pages[own - 1] <= known)
    own--;
  for (int a = 0; a < p->c->naccess; a++) {
    bool copied = p->staged_at[a] >= 0, stays = true;
    double n = copied ? footprints->of[own][a].bytes / PAGE : pages_in(footprints->of[own][a]), some = n;
    for (int at = own - 1; at >= 0; at--) {
      n *= stays ? pages_added(p, a, at) : p->level[at].trips;
      stays = n <= fmax(1, some);
    }
    all += stays ? 0 : n;
  }
  return all;
}

/* Whether an access is so large that it comes from memory. */
static bool is_far(const KernelShape *c, const Access *a) {
  return a->whole > (double)c->target->cache[LEVEL_L3] / 8;
}

/* Cycles in which rows are waited for: of what is far, where the innermost loop that moves it goes to another
 * page in each iteration, so that no prefetch foresees it. A copy asks for many rows at a time. */
static double rows_begun(const Plan *p, const Footprints *footprints) {
  double cycles = 0;
  for (int a = p->c->nstore; a < p->c->naccess; a++) {
    const Access *x = &p->c->access[a];
    int at = p->n - 1;
    if (!x->in_sum || p->staged_at[a] >= 0 || !is_far(p->c, x)) continue;
    while (at >= 0 && !(x->moves >> p->level[at].loop & 1))
      at--;
    if (at < 0) continue;
    const Level *l = &p->level[at];
    double run = fmax(footprints->of[at + 1][a].run, LINE);
    bool leaps = moved_by(p, x, l) >= PAGE;
    if (leaps) cycles += footprints->of[0][a].bytes / run * ROW_BEGUN * fmax(0, 1 - run / PAGE);
  }
  return cycles;
}

/* Rows of an access that one step reads of, beside each other: as many streams. 0: it is none. */
static double rows_of(const Plan *p, int access) {
  const Access *x = &p->c->access[access];
  double rows = 1;
  if (!x->streamed || !is_far(p->c, x) || p->staged_at[access] >= 0) return 0;
  for (int r = 0; r < p->c->n; r++)
    if (r != p->vec && !is_summed_over(p->c, r) && (double)llabs(access_step(x, r)) * x->bytes >= LINE)
      rows *= p->up[r];
  return rows;
}

/* Cycles in which streams begin anew: where several rows are read beside each other, the next ones lie
 * behind the last of them, unless each goes on in a part of the matrix that is its own (UPCASTTOP). */
static double streams_begun(const Plan *p, const Footprints *footprints) {
  double cycles = 0;
  for (int a = p->c->nstore; a < p->c->naccess; a++)
    if (rows_of(p, a) > 1)
      cycles += footprints->of[0][a].bytes / run_read(p, footprints, a, 0, NEAR_ROWS) * STREAM_BEGUN;
  return cycles;
}

/* How much faster memory is read by several streams than by one: of each a core has lines under way. */
static double streams_gain(const Plan *p, const Footprints *footprints, int ncores) {
  double rows = 0;
  for (int a = p->c->nstore; a < p->c->naccess; a++)
    rows += run_read(p, footprints, a, 0, 0) >= PAGE ? rows_of(p, a) : 0;
  double more = fmin(fmax(rows - 1, 0), ncores >= p->c->target->streams ? 1 : MOST_STREAMS - 1);
  return 1 + STREAM_GAIN * more;
}

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
  if (p->group >= 0) cost += ADDED_ACROSS * (c->nsum - 1);
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

/* The loops that can be distributed to threads: outer ones, such that shares differ least. Their number; the
 * share of the thread that has most. */
static int deal(const Plan *p, int ncores, int *at, double *share) {
  int n = 0, last = p->first_stage < 0 ? p->n : p->first_stage;
  double each[2 * MAX_LOOPS + MAX_TAKEN];
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
    if (whole < ncores) continue;
    each[n] = ceil(whole / ncores) * ncores / whole;
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
static void plan_deal(Plan *p, int at, int ncores) {
  int loop = p->level[at].loop;
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
    out->traffic[l] = p->c->target->cache[l] ? traffic_of(p, &footprints, l) : 0;
    if (l + 1 == LEVEL_MEMORY) out->traffic[l] /= streams_gain(p, &footprints, ncores);
    slowest = fmax(slowest, out->traffic[l]);
    sum += shown[l] * out->traffic[l];
    if (fmax(compute, slowest) + sum + out->stores * share > most) return INFINITY;
  }
  sum += pages_missed(p, &footprints) * p->c->target->page_miss;
  sum += rows_begun(p, &footprints) + streams_begun(p, &footprints) + lines_awaited(p, &footprints);
  out->again = footprints.all[TG_MIN(1, p->n)];
  double left = p->c->reduce ? LEFT_OF_SUM : OVERLAP_LEFT;
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

bool cost_of(const KernelShape *c, const Taken *t, int ncores, double most, Cost *out) {
  Plan p;
  double tile, share = 1;
  int at[2 * MAX_LOOPS + MAX_TAKEN], nat = 0;
  *out = (Cost){.thread = -1, .cycles = INFINITY};
  if (!plan_make(&p, c, t)) return false;
  out->compute = compute_of(&p, &tile);
  if (out->compute / ncores > most) return false;
  out->stores = stores_of(&p, tile);
  if (ncores > 1) nat = deal(&p, ncores, at, &share);
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
    if (alike ? one.again < out->again : one.cycles < out->cycles) *out = one;
  }
  return out->cycles <= most;
}

/* All that can be copied is, for nothing, and each core has its part of the rest. */
double cost_least(const KernelShape *c, const Taken *last, int ncores) {
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
