/* plan.c: the nest that a list of opts makes (plan.h). In: a kernel's shape and the list. Out: its levels. A
 * list is read twice: first for what the innermost step contains, then for the loops around it, in the order
 * in which codegen makes them. */
#include "plan/plan.h"
#include <math.h>
#include <string.h>

enum { LANES = TILE_LANES };

/* A copy takes this many times as long as its transfers, because it waits for what it reads. */
static const double COPY_SHOWN = 1.5;

/* The trip count of a loop in tiles of n. For a loop of unknown length, half a tile is left on average. It
 * runs in steps of its own, each of which takes little less time than a tile. */
static double trips_of(const Plan *p, int loop, double n) {
  static const double STEP_LEFT = 0.6;
  double size = p->ext[loop], less = loop == p->group ? 1 : (double)tile_left((int64_t)n);
  if (n == 1 || !is_open(p->c, loop)) return ceil(size / n);
  double left = size < n ? size : (n - 1) / 2, last = fmin(left, (less - 1) / 2);
  return (size - left) / n + STEP_LEFT * ((left - last) / less + last);
}

static void open_loop(Plan *p, int loop, double trips) {
  Level *l = &p->level[p->n++];
  l->loop = loop;
  l->trips = trips;
  memcpy(l->ext, p->ext, sizeof l->ext);
}

/* The iterations of each loop that a copy covers. */
static const double *copied_ext(const Plan *p, int access) {
  return p->staged_at[access] ? p->level[p->staged_at[access] - 1].ext : p->whole;
}

int panel_axis(const Plan *p, int access) {
  const Access *a = &p->c->access[access];
  int axis = p->vec < 0 || p->group >= 0 || p->staged_at[access] < 0 ? -1 : a->alone[p->vec];
  if (axis < 0 || p->any_copy) return axis;
  const double *copied = copied_ext(p, access);
  for (uint32_t others = a->others[p->vec]; others; others &= others - 1)
    if (copied[__builtin_ctz(others)] > 1) return -1;
  return axis;
}

/* The loop of a tile whose rows are next to each other in a copy; -1: none (stage.c, axis_of_tile). */
static int tile_loop(const Plan *p, int access) {
  const Access *a = &p->c->access[access];
  if (p->vec < 0 || p->group >= 0 || (a->moves >> p->vec & 1)) return -1;
  const double *copied = copied_ext(p, access);
  int last = a->by_step[a->naxis - 1];
  double run = a->copied;
  for (uint32_t sums = a->on[last] & p->c->reduce; sums; sums &= sums - 1)
    run *= copied[__builtin_ctz(sums)];
  for (int r = 0; run < LINE && r < p->c->n; r++) {
    int d = a->alone[r];
    bool tile = p->up[r] >= LEAST_BESIDE && !is_summed_over(p->c, r) && d >= 0 && d != last;
    for (uint32_t others = tile ? a->others[r] : 0; others; others &= others - 1)
      tile &= copied[__builtin_ctz(others)] <= 1;
    if (tile && copied[r] >= LEAST_BESIDE) return r;
  }
  return -1;
}

bool lanes_contiguous(const Plan *p, int access) {
  return access_step(&p->c->access[access], p->vec) == 1 || panel_axis(p, access) >= 0;
}

/* The rows that are touched are as far apart as in the whole copy. The axes of a copy are in the order of the
 * buffer, with panels outside them. A run ends at the first axis of which not all is touched. */
Footprint footprint_of_copy(const Plan *p, int access, const double *ext) {
  const Access *a = &p->c->access[access];
  const double *copied = copied_ext(p, access);
  double span[MAX_AXES], full[MAX_AXES], n = access_spans(a, ext, span), run = 1, place = 1, stride = 0,
                                         near = 1;
  int panel = panel_axis(p, access), tile = panel < 0 ? tile_loop(p, access) : -1;
  access_spans(a, copied, full);
  if (panel >= 0) place = fmin(p->up[p->vec], ceil(full[panel] / LANES) * LANES);
  if (tile >= 0) {
    panel = a->alone[tile];
    place = p->up[tile];
  }
  if (panel >= 0) {
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

/* The iterations of each loop for which memory must be allocated. */
static void most_of(const Plan *p, double *most) {
  for (int r = 0; r < p->c->n; r++)
    most[r] = p->ext[r] < p->whole[r] ? p->ext[r] : (double)p->c->most[r];
}

/* Stages an access at the present level. Returns false if it cannot be staged, or if the copy would be too
 * large. */
static bool plan_stage(Plan *p, int access) {
  const KernelShape *c = p->c;
  const Access *a = &c->access[access];
  double trips = 1;
  if (!a->even) return false;
  for (int i = 0; i < p->n; i++)
    trips *= p->level[i].trips;
  double span[MAX_AXES], most[MAX_LOOPS], each = access_reads(a) * a->copied, whole = a->whole,
                                          bytes = access_spans(a, p->ext, span) * each;
  bool lanes = p->vec >= 0 && (a->moves >> p->vec & 1);
  const Target *t = c->target;
  double rate =
      cycle_bytes(t, LEVEL_L2) * (!lanes || access_vectors(a, p->vec) ? (a->gated ? 1.0 / 6 : 1.0 / 4)
                                                                      : (a->gated ? 1.0 / 16 : 1.0 / 8));
  bool third = t->cache[LEVEL_L3] > 0;
  most_of(p, most);
  if (access_spans(a, most, span) * each > (double)target_copy_most(t)) return false;
  if (third && whole > (double)t->cache[LEVEL_L2]) rate = fmin(rate, cycle_bytes(t, LEVEL_L3) / 3.5);
  if (bytes > (double)t->cache[LEVEL_L2]) rate /= 2; /* the copy is written to that level too */
  if (whole > (double)t->cache[third ? LEVEL_L3 : LEVEL_L2])
    rate = fmin(rate, cycle_bytes(t, LEVEL_MEMORY) / 2);
  p->copy[access] = is_prepacked(a) ? 0 : COPY_SHOWN * bytes * trips / rate;
  if (p->n && p->first_stage < 0 && !is_prepacked(a)) p->first_stage = p->n;
  p->staged_at[access] = p->n;
  return true;
}

/* Adds blocks of the reduction from here on inwards. Returns whether there is room for a sum of each
 * output. */
static bool plan_blocks(Plan *p, double trips) {
  double sums = (p->c->target == &p->c->eight ? 8 : 4) * p->c->nsum; /* bytes for one output */
  double most[MAX_LOOPS];
  p->blocks *= trips;
  most_of(p, most);
  for (int r = 0; r < p->c->n; r++)
    sums *= is_summed_over(p->c, r) ? 1 : most[r];
  return p->c->plain ||
         (p->c->whole && sums <= (double)TG_MIN(p->c->target->local_bytes, target_copy_most(p->c->target)));
}

/* Opens the loops around all nests, because the tiles of a nest, and the copies in them, are made anew in each of
 * their iterations. */
static void open_around(Plan *p) {
  for (int r = 0; r < p->c->n; r++) {
    double trips = p->ext[r];
    if (!(p->c->around >> r & 1) || trips <= 1) continue;
    p->ext[r] = 1;
    open_loop(p, r, trips);
  }
}

bool plan_make(Plan *p, const KernelShape *c, const Taken *t) {
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
    bool unrolls = o->op == OPT_UNROLL || o->op == OPT_GROUP;
    if (unrolls) p->unroll[o->r] = (double)(is_open(c, (int)o->r) ? o->n : TG_MIN(o->n, c->size[o->r]));
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
    open_around(p);
    p->ext[o->r] = (double)o->n;
    open_loop(p, (int)o->r, trips);
  }
  p->ntile = p->n;
  for (int i = 0; i < c->n; i++) {
    int r = p->order[i];
    if (is_summed_over(c, r)) continue;
    double n = p->up[r], trips = trips_of(p, r, n);
    bool counted = !is_open(c, r);
    if (r != p->vec && n > 1 && counted) n = p->ext[r] / trips;
    if (p->ext[r] > n || (n > 1 && !counted)) {
      p->ext[r] = n;
      open_loop(p, r, trips);
    }
  }
  for (int r = 0; r < c->n; r++) {
    if (!is_summed_over(c, r)) continue;
    double n = p->unroll[r], trips = trips_of(p, r, n);
    if (p->ext[r] > n || (n > 1 && is_open(c, r))) {
      p->ext[r] = n;
      open_loop(p, r, trips);
    }
  }
  return true;
}
