/* candidates.c: the opts of a contraction. In: a kernel with one reduction. Out: of all lists that a few
 * templates give, the one that costs least (cost.c).
 *
 * Every loop is tried in every role. Lanes: a loop of the outputs, or (GROUP) one of the reduction along
 * which memory is contiguous. Tile: any other loop of the outputs, so many values that the registers are
 * used. What is read behind a gate, or strided along the lanes, is staged: once, or for each block of the
 * lanes, or for each block of a loop that only it depends on. No kernel is known by name. */
#include "codegen/cost.h"
#include <math.h>
#include <stdlib.h>

enum {
  LANES = TILE_LANES,
  MOST_TILE = 16,
  ENOUGH_TILE = 12, /* registers */
  LITTLE_WORK = 65536,
  LEAST_LANES = 4,
  MOST_TEXT = 128
}; /* MOST_TEXT: steps that are written out */

/* Lanes and a tile: what several lists have in common. */
typedef struct Shape {
  int number; /* of two lists that cost the same, the one with the lower number is taken */
  int lane, tile;
  int64_t lanes, rows;
  bool apart;   /* loops that all loads move with are loops as others are */
  bool in_sum;  /* lanes along a reduction: all lists of these */
  double least; /* cycles that no list of it stays below */
} Shape;

typedef struct Search {
  Kernel *k;
  const Contraction *c;
  int ncores;
  Vec(Shape) shapes;
  int number; /* of the shape at hand */
  bool found;
  Taken best;
  int best_number;
  Cost cost;
} Search;

static bool is_out(const Contraction *c, int r) { return !(c->reduce >> r & 1) && c->size[r] > 1; }

static bool moves(const Contraction *c, int access, int r) { return c->access[access].moves >> r & 1; }

static void take(Taken *t, OptOp op, int r, int64_t n) {
  if (t->n < MAX_TAKEN) t->opt[t->n] = (Opt){op, r, n};
  t->n++;
}

static void take_all(Taken *t, const Taken *more) {
  for (int i = 0; i < more->n; i++)
    take(t, more->opt[i].op, (int)more->opt[i].r, more->opt[i].n);
}

static Opt named(const Contraction *c, const Opt *o) { /* in the kernel's numbers */
  int64_t r = o->op == OPT_STAGE ? c->access[o->r].slot : c->range[o->r]->arg.range.id;
  return (Opt){o->op, r, o->op == OPT_SWAP ? c->range[o->n]->arg.range.id : o->n};
}

/* A line for `tg opt --emit costs`: thousands of cycles, and the parts. */
static void write_cost(const Search *s, const Taken *t, const Cost *cost) {
  Str list;
  str_init(&list, s->k->mem);
  for (int i = 0; i < t->n; i++) {
    Opt o = named(s->c, &t->opt[i]);
    opt_print(&list, &o);
  }
  if (cost->thread >= 0) {
    Opt o = {OPT_THREAD, s->c->range[cost->thread]->arg.range.id, s->ncores};
    opt_print(&list, &o);
  }
  str_printf(s->k->opt->costs,
             "%12.1f  compute %.1f, into L1 %.1f L2 %.1f L3 %.1f, copies %.1f, stores %.1f  %s\n",
             cost->cycles / 1000, cost->compute / 1000, cost->traffic[0] / 1000, cost->traffic[1] / 1000,
             cost->traffic[2] / 1000, cost->copy / 1000, cost->stores / 1000, str_text(&list));
  str_free(&list);
}

static void consider(Search *s, const Taken *t) {
  Cost cost;
  double most = s->found && !s->k->opt->costs ? s->cost.cycles : INFINITY;
  if (t->n > MAX_TAKEN || !cost_of(s->c, t, s->ncores, most, &cost)) return;
  if (s->k->opt->costs) write_cost(s, t, &cost);
  bool first = s->number < s->best_number;
  if (s->found && (first ? cost.cycles > s->cost.cycles : cost.cycles >= s->cost.cycles)) return;
  s->found = true;
  s->best = *t;
  s->cost = cost;
  s->best_number = s->number;
}

/* ---- sets of accesses */
typedef struct Set {
  int n, at[MAX_ACCESS];
} Set;

static void set_add(Set *s, int a) { s->at[s->n++] = a; }

static bool set_has(const Set *s, int a) {
  for (int i = 0; i < s->n; i++)
    if (s->at[i] == a) return true;
  return false;
}

static void take_stages(const Contraction *c, Taken *t, const Set *s) {
  for (int i = 0; i < s->n; i++) {
    bool had = false; /* two reads of one buffer are one copy */
    for (int k = 0; k < t->n && k < MAX_TAKEN; k++)
      had |= t->opt[k].op == OPT_STAGE && c->access[t->opt[k].r].slot == c->access[s->at[i]].slot;
    if (!had) take(t, OPT_STAGE, s->at[i], 1);
  }
}

/* What a choice of lanes asks of the loads of a sum. */
typedef struct Roles {
  int lane, tile;
  bool converted; /* operands that are converted are staged, so that this is done once */
  int64_t lanes, rows;
  Set need, lane_loads, others; /* must be staged; move with the lanes; must be staged and do not */
  Taken batch, base;            /* loops that all loads move with, iteration by iteration; the inner shape */
} Roles;

bool can_stage(const Contraction *c, int a) {
  const Access *x = &c->access[a];
  for (int o = c->nstore; o < c->naccess; o++)
    if (c->access[o].slot == x->slot && c->access[o].index != x->index) return false;
  for (int o = 0; o < c->nstore; o++)
    if (c->access[o].slot == x->slot) return false;
  return x->even && x->clips;
}

static bool roles_set(const Contraction *c, Roles *r) {
  r->need.n = r->lane_loads.n = r->others.n = 0;
  for (int a = c->nstore; a < c->naccess; a++) {
    const Access *x = &c->access[a];
    if (!x->in_sum) continue;
    bool lane = moves(c, a, r->lane);
    bool must = x->gated || (lane && access_step(x, r->lane) != 1) ||
                (r->converted && x->converted && can_stage(c, a));
    if (must && !can_stage(c, a)) return false;
    if (lane) set_add(&r->lane_loads, a);
    if (must) set_add(&r->need, a);
    if (must && !lane) set_add(&r->others, a);
  }
  return r->lane_loads.n > 0;
}

/* ---- the templates */
/* Loop `in` around `out`: not where the sum stands between them. */
static bool can_swap(const Contraction *c, int out, int in) {
  return out >= 0 && in >= 0 && out < in && !((c->summed >> out ^ c->summed >> in) & 1);
}

static void with_swap(Search *s, const Taken *front, const Roles *r) {
  for (int swap = 0; swap < 2; swap++) {
    Taken t = *front;
    if (swap && !can_swap(s->c, r->tile, r->lane)) continue;
    if (swap) take(&t, OPT_SWAP, r->tile, r->lane);
    take_all(&t, &r->base);
    consider(s, &t);
  }
}

static void stage_once(Search *s, const Roles *r) {
  Taken t = r->batch;
  take_stages(s->c, &t, &r->need);
  with_swap(s, &t, r);
}

/* Blocks of the lanes outside, what moves with them copied in each. */
static void stage_lane_blocks(Search *s, const Roles *r) {
  if (s->c->size[r->lane] <= r->lanes) return;
  for (int all = 0, had = -1; all < 2; all++) {
    Taken t = r->batch;
    Set lane = {0};
    for (int i = 0; i < r->lane_loads.n; i++)
      if ((all && can_stage(s->c, r->lane_loads.at[i])) || set_has(&r->need, r->lane_loads.at[i]))
        set_add(&lane, r->lane_loads.at[i]);
    if (lane.n == had) return; /* all that can be is what must be */
    had = lane.n;
    take_stages(s->c, &t, &r->others);
    take(&t, OPT_TILE, r->lane, r->lanes);
    take_stages(s->c, &t, &lane);
    with_swap(s, &t, r);
  }
}

/* What moves with the lanes copied once, the other operand in each block of a loop that only it moves with.
 */
static void stage_other_blocks(Search *s, const Roles *r) {
  const Contraction *c = s->c;
  static const int sizes[] = {1, 7, 8, 14, 28};
  for (int g = 0; g < c->n; g++) {
    bool all = true, used = false;
    if (!is_out(c, g) || g == r->lane || g == r->tile) continue;
    for (int a = c->nstore; a < c->naccess; a++)
      if (c->access[a].in_sum) all &= moves(c, a, g);
    for (int i = 0; i < r->others.n; i++)
      used |= moves(c, r->others.at[i], g);
    if (all || !used) continue;
    Set lane = {0};
    for (int i = 0; i < r->lane_loads.n; i++)
      if (!moves(c, r->lane_loads.at[i], g) && set_has(&r->need, r->lane_loads.at[i]))
        set_add(&lane, r->lane_loads.at[i]);
    for (size_t i = 0; i < TG_COUNT(sizes); i++) {
      if (sizes[i] >= c->size[g]) continue;
      for (int blocks = 0; blocks < 2; blocks++) {
        Taken t = r->batch;
        if (blocks && c->size[r->lane] <= r->lanes) continue;
        take_stages(c, &t, &lane);
        take(&t, OPT_TILE, g, sizes[i]);
        take_stages(c, &t, &r->others);
        if (blocks) take(&t, OPT_TILE, r->lane, r->lanes);
        with_swap(s, &t, r);
      }
    }
  }
}

/* A short reduction written out: windows of a depthwise convolution. */
static bool takes_unrolled(const Search *s, const Roles *r, Taken *t) {
  const Contraction *c = s->c;
  int64_t steps = 1;
  for (int i = 0; i < c->n; i++)
    if (c->reduce >> i & 1) steps *= c->size[i];
  if (steps > 25 || steps * r->rows * r->lanes / LANES > MOST_TEXT) return false;
  take_all(t, &r->base);
  for (int i = 0; i < c->n; i++)
    if (c->reduce >> i & 1) take(t, OPT_UNROLL, i, c->size[i]);
  return true;
}

/* The short loops of the reduction that conditions and shifts depend on, written out: these are known then. */
static bool takes_decided(const Contraction *c, int lane, Taken *t) {
  enum { MOST_DECIDED = 8 };

  int64_t steps = 1;
  for (int r = 0; r < c->n; r++) {
    if (r == lane || !(c->decides >> r & 1)) continue;
    steps *= c->size[r];
    take(t, OPT_UNROLL, r, c->size[r]);
  }
  return steps > 1 && steps <= MOST_DECIDED;
}

static bool decided(const Search *s, const Roles *r, Taken *t) {
  take_all(t, &r->base);
  return takes_decided(s->c, r->lane, t);
}

static void unrolled(Search *s, const Roles *r) {
  Taken t = r->batch;
  take_stages(s->c, &t, &r->need);
  if (takes_unrolled(s, r, &t)) consider(s, &t);
  t = r->batch;
  take_stages(s->c, &t, &r->need);
  if (decided(s, r, &t)) consider(s, &t);
}

/* Blocks of the reduction outside, the output or local memory their accumulator: what they copy is small, and
 * read while it is near. */
static void blocks_of_sum(Search *s, Roles *r) {
  const Contraction *c = s->c;
  static const int sizes[] = {1, 8, 64, 256};
  Taken before = r->batch;
  if ((!c->plain && !c->whole) || before.n) return;
  for (int k = 0; k < c->n; k++)
    for (size_t i = 0; i < TG_COUNT(sizes); i++) {
      if (!(c->reduce >> k & 1) || c->size[k] < 2 * sizes[i]) continue;
      r->batch = before;
      take(&r->batch, OPT_TILE, k, sizes[i]);
      stage_once(s, r);
      stage_lane_blocks(s, r);
    }
  r->batch = before;
}

static void take_base(Roles *r) {
  r->base.n = 0;
  if (r->tile >= 0) take(&r->base, OPT_UPCAST, r->tile, r->rows);
  take(&r->base, OPT_VEC, r->lane, r->lanes);
}

/* False: what must be copied cannot be. */
static bool roles_of(const Contraction *c, const Shape *shape, bool converted, Roles *r) {
  *r = (Roles){.lane = shape->lane, .tile = shape->tile, .lanes = shape->lanes, .rows = shape->rows};
  r->converted = converted;
  if (!roles_set(c, r)) return false;
  /* loops that every load moves with: one iteration at a time */
  for (int g = 0; g < c->n && !shape->apart; g++) {
    bool all = is_out(c, g) && g != r->lane;
    for (int a = c->nstore; all && a < c->naccess; a++)
      if (c->access[a].in_sum) all = moves(c, a, g);
    if (all && r->need.n) take(&r->batch, OPT_TILE, g, 1);
  }
  take_base(r);
  return true;
}

/* ---- the shapes */
static bool shape_add(Search *s, Roles *r, bool apart) {
  Shape shape = {.number = (int)s->shapes.len, .apart = apart};
  shape.lane = r->lane;
  shape.tile = r->tile;
  shape.lanes = r->lanes;
  shape.rows = r->rows;
  take_base(r);
  shape.least = cost_least(s->c, &r->base, s->ncores);
  Taken written_out = {0};
  if (takes_unrolled(s, r, &written_out))
    shape.least = fmin(shape.least, cost_least(s->c, &written_out, s->ncores));
  Taken known = {0};
  if (decided(s, r, &known)) shape.least = fmin(shape.least, cost_least(s->c, &known, s->ncores));
  return vec_push(s->k->mem, &s->shapes, shape);
}

/* Whether factors are computed, not only converted: what they are made of has registers too, and steps overlap
 * without a large tile. */
static bool computes(const Contraction *c) {
  bool any = false;
  for (int i = 0; i < c->nwork; i++)
    any |= !c->work[i].converts;
  return any;
}

static bool tiles_of(Search *s, Roles *r, bool apart) {
  const Contraction *c = s->c;
  int64_t v = (r->lanes + LANES - 1) / LANES;
  double enough = computes(c) ? 0 : ENOUGH_TILE / tile_registers(c->target);
  r->tile = -1;
  r->rows = 1;
  bool ok = shape_add(s, r, apart);
  for (int u = 0; ok && u < c->n; u++) {
    int64_t had = 0;
    if (!is_out(c, u) || u == r->lane) continue;
    for (int64_t most = 2; ok && most <= MOST_TILE; most++) {
      int64_t blocks = (c->size[u] + most - 1) / most, rows = (c->size[u] + blocks - 1) / blocks;
      if (rows == had || rows < 2 || (double)(rows * v + v) > tile_room(c->target)) continue;
      if ((double)(most * v) < enough && (double)(c->size[u] * v) > enough) continue;
      had = r->rows = rows;
      r->tile = u;
      ok = shape_add(s, r, apart);
    }
  }
  return ok;
}

static bool lanes_along(Search *s, int lane) {
  const Contraction *c = s->c;
  Roles r;
  bool ok = true;
  if (c->size[lane] < LEAST_LANES || !roles_of(c, &(Shape){.lane = lane, .tile = -1}, false, &r)) return true;
  for (int apart = 0; apart < (r.batch.n ? 2 : 1); apart++)
    for (int64_t v = 1; ok && v <= 4; v++) {
      if (v > 1 && LANES * v > (c->size[lane] + LANES - 1) / LANES * LANES) break;
      r.lanes = LANES * v;
      ok = tiles_of(s, &r, apart);
    }
  return ok;
}

static void consider_in_sum(Search *s, const Taken *before, int k, int64_t lanes) {
  for (int decided = 0; decided < 2; decided++) {
    Taken t = *before;
    if (decided && !takes_decided(s->c, k, &t)) return;
    take(&t, OPT_GROUP, k, lanes);
    consider(s, &t);
  }
}

/* Lanes along the reduction: accumulators that are joined at the end, for one or two tiles of the outputs. */
static void lanes_in_sum(Search *s, int k) {
  const Contraction *c = s->c;
  for (int a = c->nstore; a < c->naccess; a++) {
    const Access *x = &c->access[a];
    int64_t by = access_step(x, k);
    bool found = index_is_data(x->index); /* in a table, lane by lane */
    if (x->in_sum && (x->gated || (!found && (!x->even || (by != 0 && by != 1))))) return;
  }
  static const int rows[][2] = {{1, 1}, {2, 1}, {4, 1}, {6, 1}, {2, 2},
                                {4, 2}, {2, 4}, {4, 4}, {4, 6}, {6, 4}};
  for (int64_t g = LANES; g <= 8 * LANES && g <= c->size[k]; g *= 2)
    for (size_t i = 0; i < TG_COUNT(rows); i++)
      for (int u = -1; u < c->n; u++)
        for (int w = -1; w < c->n; w++) {
          bool ok = (u >= 0) == (rows[i][0] > 1) && (w >= 0) == (rows[i][1] > 1) && (u < 0 || u != w);
          ok = ok && (u < 0 || (is_out(c, u) && c->size[u] >= rows[i][0])) &&
               (w < 0 || (is_out(c, w) && c->size[w] >= rows[i][1]));
          if (!ok || rows[i][0] * rows[i][1] * g / LANES > 24) continue;
          for (int swap = 0; swap < (can_swap(c, u, w) ? 2 : 1); swap++) {
            Taken t = {0};
            if (swap) take(&t, OPT_SWAP, u, w);
            if (u >= 0) take(&t, OPT_UPCAST, u, rows[i][0]);
            if (w >= 0) take(&t, OPT_UPCAST, w, rows[i][1]);
            consider_in_sum(s, &t, k, g);
          }
        }
}

static bool find_shapes(Search *s) {
  const Contraction *c = s->c;
  bool ok = true;
  for (int r = 0; ok && r < c->n; r++) {
    if (is_out(c, r)) ok = lanes_along(s, r);
    if (ok && c->reduce >> r & 1 && c->size[r] >= LANES)
      ok = vec_push(s->k->mem, &s->shapes,
                    ((Shape){.number = (int)s->shapes.len, .in_sum = true, .lane = r, .least = INFINITY}));
  }
  return ok;
}

static int by_least(const void *a, const void *b) {
  const Shape *x = a, *y = b;
  return x->least != y->least ? (x->least > y->least ? 1 : -1) : x->number - y->number;
}

static void try_copies(Search *s, Roles *r) {
  stage_once(s, r);
  stage_lane_blocks(s, r);
  stage_other_blocks(s, r);
  unrolled(s, r);
  blocks_of_sum(s, r);
}

static void try_shape(Search *s, const Shape *shape) {
  bool converts = false;
  Roles r;
  s->number = shape->number;
  if (shape->in_sum) {
    lanes_in_sum(s, shape->lane);
    return;
  }
  if (roles_of(s->c, shape, false, &r)) try_copies(s, &r);
  for (int a = s->c->nstore; a < s->c->naccess; a++)
    converts |= s->c->access[a].converted && can_stage(s->c, a);
  if (converts && roles_of(s->c, shape, true, &r)) try_copies(s, &r);
}

/* The most promising shapes first, so that most of the others cannot be better than what was found. */
static bool search(Search *s) {
  bool ok = find_shapes(s), print_all = s->k->opt->costs != NULL;
  if (ok && !print_all && s->shapes.len) qsort(s->shapes.at, s->shapes.len, sizeof *s->shapes.at, by_least);
  for (size_t i = 0; ok && i < s->shapes.len; i++) {
    const Shape *shape = &s->shapes.at[i];
    if (print_all || shape->in_sum || !s->found || shape->least <= s->cost.cycles) try_shape(s, shape);
  }
  vec_free(s->k->mem, &s->shapes);
  return ok;
}

static bool hand_over(const Search *s, OptVec *out) {
  const Contraction *c = s->c;
  TgMem *m = s->k->mem;
  bool ok = true;
  for (int i = 0; ok && i < s->best.n; i++) {
    Opt o = s->best.opt[i];
    if (o.op != OPT_TILE || o.n < c->size[o.r]) ok = vec_push(m, out, named(c, &o));
  }
  int thread = s->cost.thread;
  if (ok && thread >= 0)
    ok = vec_push(m, out, ((Opt){OPT_THREAD, c->range[thread]->arg.range.id, s->ncores}));
  return ok;
}

/* An output has a loop that the sum does not move with: a row of it is written behind each sum. */
static bool has_own_loop(const Contraction *c) {
  bool own = false;
  for (int r = 0; r < c->n; r++)
    own |= is_out(c, r) && !(c->summed >> r & 1);
  return own;
}

bool choose_contraction(Kernel *k, int ncores, OptVec *out, bool *chosen) {
  Contraction c;
  *chosen = false;
  if (!contraction_of(k, &c)) return true;
  double work = 1;
  for (int r = 0; r < c.n; r++)
    work *= (double)c.size[r];
  if (work < LITTLE_WORK || has_own_loop(&c)) return true;
  Search s = {.k = k, .c = &c, .ncores = ncores};
  if (!search(&s)) return false;
  double cycles = s.found ? s.cost.cycles : INFINITY;
  if (!choose_units(k, &c, ncores, &cycles, out, chosen)) return false;
  if (*chosen || !s.found) return true;
  *chosen = true;
  return hand_over(&s, out);
}
