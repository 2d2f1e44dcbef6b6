/* choose.c: the opts of a kernel. In: its shape (shape.h). Out: the list that costs least (cost.c), of all
 * lists that a few templates produce.
 *
 * Every loop is tried in every role. Lanes: a loop of the outputs, or (GROUP) a loop of the reduction
 * along which memory is contiguous. Tile: any other loop of the outputs, with so many values that the
 * registers are used. Memory that is read behind a gate, or strided along the lanes, is staged: once, or
 * for each block of the lanes, or for each block of a loop that only it depends on. Otherwise it is read
 * lane by lane. No kernel is recognised by its name. */
#include "plan/cost.h"
#include <math.h>
#include <stdlib.h>

enum {
  LANES = TILE_LANES,
  MOST_TILE = 16,
  MOST_IN_SUM = 24, /* vectors of sums, if lanes go along the reduction */
  ENOUGH_TILE = 12, /* registers of a tile that keep the units busy */
  LEAST_LANES = 4,
  SHORT_SUM = 25,
  MOST_TEXT = 128 /* steps that are written out */
};

/* Lanes and a tile, which several lists have in common. */
typedef struct Tiling {
  int number; /* if two lists cost the same, the one of the tiling with the lower number is taken */
  int lane, tile;
  int64_t lanes, rows;
  bool apart;   /* loops that all loads move with are treated like other loops */
  bool in_sum;  /* stands for all lists with lanes along this loop of the reduction */
  double least; /* cycles that no list of the tiling can be below */
} Tiling;

typedef struct Search {
  const KernelShape *c;
  int ncores;
  TgMem *mem;
  Str *costs;
  Vec(Tiling) tilings;
  int number; /* of the tiling that is being tried */
  bool found;
  Taken best;
  int best_number;
  Cost cost;
} Search;

static bool is_out(const KernelShape *c, int r) {
  return !((c->reduce | c->around) >> r & 1) && c->size[r] > 1;
}

static bool moves(const KernelShape *c, int access, int r) { return c->access[access].moves >> r & 1; }

static void take(Taken *t, OptOp op, int r, int64_t n) {
  if (t->n < MAX_TAKEN) t->opt[t->n] = (Opt){op, r, n};
  t->n++;
}

static void take_all(Taken *t, const Taken *more) {
  for (int i = 0; i < more->n; i++)
    take(t, more->opt[i].op, (int)more->opt[i].r, more->opt[i].n);
}

static bool may_stage(const KernelShape *c, int access) {
  int loop;
  return can_stage(c, access, &loop);
}

/* Estimates a list, and keeps it if it is the best so far. */
static void consider(Search *s, const Taken *t) {
  Cost cost;
  double most = s->found && !s->costs ? s->cost.cycles : INFINITY;
  if (!keeps_order(s->c, t)) return;
  if (t->n > MAX_TAKEN || !cost_of(s->c, t, s->ncores, most, &cost)) return;
  if (s->costs) cost_line(s->c, t, &cost, s->ncores, s->mem, s->costs);
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

static void take_stages(Taken *t, const Set *s) {
  for (int i = 0; i < s->n; i++) {
    bool had = false;
    for (int k = 0; k < t->n && k < MAX_TAKEN; k++)
      had |= t->opt[k].op == OPT_STAGE && t->opt[k].r == s->at[i];
    if (!had) take(t, OPT_STAGE, s->at[i], 1);
  }
}

/* What a choice of lanes requires of the loads of a sum. */
typedef struct Roles {
  int lane, tile;
  bool converted; /* operands that are converted are staged, so that each is converted once */
  bool as_is;     /* something that must be staged cannot be, so nothing is */
  int64_t lanes, rows;
  /* loads that must be staged; that move with the lanes; that must be staged and do not move with the
   * lanes */
  Set need, lane_loads, others;
  /* batch: loops that all loads move with, one iteration at a time; base: the inner tiling */
  Taken batch, base;
} Roles;

static bool roles_set(const KernelShape *c, Roles *r) {
  r->need.n = r->lane_loads.n = r->others.n = 0;
  r->as_is = false;
  for (int a = c->nstore; a < c->naccess; a++) {
    const Access *x = &c->access[a];
    if (!x->in_sum) continue;
    bool lane = moves(c, a, r->lane);
    bool must = x->gated || (lane && !access_vectors(x, r->lane)) ||
                (r->converted && x->converted && may_stage(c, a));
    r->as_is |= must && !may_stage(c, a);
    if (lane) set_add(&r->lane_loads, a);
    if (must) set_add(&r->need, a);
    if (must && !lane) set_add(&r->others, a);
  }
  return r->lane_loads.n > 0;
}

/* ---- the templates */
/* Whether loop `in` can be moved around `out`. It cannot if the sum is between them. */
static bool can_swap(const KernelShape *c, int out, int in) {
  return out >= 0 && in >= 0 && out < in && !((c->summed >> out ^ c->summed >> in) & 1);
}

/* Considers the list with the tile's loop in its place, and with it inside the loop of the lanes. Nested sums
 * read much for few results. If the tile's loop is the outermost, any other loop may be moved around it, so
 * that what is read inside stays in the cache. */
static void with_swap(Search *s, const Taken *front, const Roles *r) {
  for (int with = -1; with < s->c->n; with++) {
    Taken t = *front;
    bool lane = with == r->lane, may = is_nested(s->c) && with >= 0 && is_out(s->c, with);
    if (with >= 0 && (!(lane || may) || !can_swap(s->c, r->tile, with))) continue;
    if (with >= 0) take(&t, OPT_SWAP, r->tile, with);
    take_all(&t, &r->base);
    consider(s, &t);
  }
}

static void stage_once(Search *s, const Roles *r) {
  Taken t = r->batch;
  take_stages(&t, &r->need);
  with_swap(s, &t, r);
}

/* Blocks of the lanes are outside, and what moves with the lanes is copied for each block. */
static void stage_lane_blocks(Search *s, const Roles *r) {
  if (s->c->size[r->lane] <= r->lanes) return;
  for (int all = 0, had = -1; all < 2; all++) {
    Taken t = r->batch;
    Set lane = {0};
    for (int i = 0; i < r->lane_loads.n; i++)
      if ((all && may_stage(s->c, r->lane_loads.at[i])) || set_has(&r->need, r->lane_loads.at[i]))
        set_add(&lane, r->lane_loads.at[i]);
    if (lane.n == had) return; /* all that can be staged has to be staged, so the list is the same */
    had = lane.n;
    take_stages(&t, &r->others);
    take(&t, OPT_TILE, r->lane, r->lanes);
    take_stages(&t, &lane);
    with_swap(s, &t, r);
  }
}

/* What moves with the lanes is copied once. The other operand is copied for each block of a loop that moves
 * only this operand. */
static void stage_other_blocks(Search *s, const Roles *r) {
  const KernelShape *c = s->c;
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
        take_stages(&t, &lane);
        take(&t, OPT_TILE, g, sizes[i]);
        take_stages(&t, &r->others);
        if (blocks) take(&t, OPT_TILE, r->lane, r->lanes);
        with_swap(s, &t, r);
      }
    }
  }
}

/* Blocks of a loop are outside all copies, so that a copy contains only the surroundings of its rows. This is
 * for targets on which a copy must be small. */
static void stage_row_blocks(Search *s, const Roles *r) {
  const KernelShape *c = s->c;
  static const int sizes[] = {1, 2, 4, 8, 16};
  for (int g = 0; g < c->n && c->target->copy_most; g++)
    for (size_t i = 0; i < TG_COUNT(sizes); i++) {
      if (!is_out(c, g) || g == r->lane || sizes[i] >= c->size[g] || (g == r->tile && sizes[i] % r->rows))
        continue;
      Taken t = r->batch;
      take(&t, OPT_TILE, g, sizes[i]);
      take_stages(&t, &r->need);
      with_swap(s, &t, r);
    }
}

/* Number of steps of a sum. */
static double steps_of(const KernelShape *c) {
  double steps = 1;
  for (int r = 0; r < c->n; r++)
    steps *= c->reduce >> r & 1 ? (double)c->size[r] : 1;
  return steps;
}

/* A short reduction is written out, such as the window of a depthwise convolution. Returns whether it is
 * short enough. */
static bool takes_unrolled(const Search *s, const Roles *r, Taken *t) {
  const KernelShape *c = s->c;
  double steps = steps_of(c);
  if (steps > SHORT_SUM || steps * (double)(r->rows * r->lanes / LANES) > MOST_TEXT) return false;
  take_all(t, &r->base);
  for (int i = 0; i < c->n; i++)
    if (c->reduce >> i & 1) take(t, OPT_UNROLL, i, c->size[i]);
  return !(c->reduce & c->open);
}

/* The innermost of nested sums is written out if it is short, because a loop of two iterations takes longer
 * than these iterations. Returns whether it is short enough. */
static bool takes_inner(const KernelShape *c, const Roles *r, Taken *t) {
  enum { FEW_STEPS = 4 };

  int64_t steps = 1;
  if (!is_nested(c) || r->need.n) return false;
  take_all(t, &r->base);
  for (int i = 0; i < c->n && steps <= FEW_STEPS; i++) {
    if (!(c->body[c->nbody - 1].own >> i & 1)) continue;
    steps *= is_open(c, i) ? FEW_STEPS + 1 : c->size[i];
    take(t, OPT_UNROLL, i, c->size[i]);
  }
  return steps <= FEW_STEPS;
}

/* The i-th set of short reduction loops to write out, because conditions and shifts depend on them and are
 * then known. That is all such loops in one set, or, if sums are nested, one loop in each set, because
 * writing them out multiplies the sums. 0: there are no more sets. */
static uint32_t which_decided(const KernelShape *c, int i) {
  uint32_t loops = c->decides;
  bool all = !is_nested(c) || !(loops & (loops - 1));
  if (all) return i == 0 ? loops : 0;
  while (i-- > 0)
    loops &= loops - 1;
  return loops & -loops;
}

static bool takes_decided(const KernelShape *c, int lane, uint32_t loops, Taken *t) {
  enum { MOST_DECIDED = 8 };

  int64_t steps = 1;
  for (int r = 0; r < c->n; r++) {
    if (r == lane || !(loops >> r & 1)) continue;
    steps *= c->size[r];
    take(t, OPT_UNROLL, r, c->size[r]);
  }
  return steps > 1 && steps <= MOST_DECIDED && !(loops & c->open);
}

/* Loops that determine where the summed data has edges along the lanes. If they are written out completely,
 * the edges are known. */
static uint32_t edges_along(const KernelShape *c, int lane) {
  uint32_t edges = 0;
  for (int a = c->nstore; a < c->naccess; a++)
    if (c->access[a].in_sum) edges |= c->access[a].edges[lane];
  return edges;
}

/* Writes out those of these loops that are loops of the reduction. Returns whether there are any, and the
 * text is short enough. */
static bool takes_edges(const Search *s, const Roles *r, Taken *t) {
  const KernelShape *c = s->c;
  int64_t steps = r->rows * r->lanes / LANES;
  bool any = false;
  take_all(t, &r->base);
  if (edges_along(c, r->lane) & c->reduce & c->open) return false;
  for (uint32_t edges = edges_along(c, r->lane) & c->reduce; edges; edges &= edges - 1) {
    int loop = __builtin_ctz(edges);
    steps *= c->size[loop];
    take(t, OPT_UNROLL, loop, c->size[loop]);
    any = true;
  }
  return any && steps <= MOST_TEXT;
}

static bool decided(const Search *s, const Roles *r, uint32_t loops, Taken *t) {
  take_all(t, &r->base);
  return takes_decided(s->c, r->lane, loops, t);
}

/* Nothing is copied. Memory that is strided along the lanes is read lane by lane. */
static void unstaged(Search *s, const Roles *r) {
  Taken t = {0};
  if (!r->need.n) return;
  with_swap(s, &t, r);
  if (takes_unrolled(s, r, &t)) consider(s, &t);
  t.n = 0;
  if (takes_edges(s, r, &t)) consider(s, &t);
}

static void unrolled(Search *s, const Roles *r) {
  Taken t = r->batch;
  take_stages(&t, &r->need);
  if (takes_unrolled(s, r, &t)) consider(s, &t);
  uint32_t loops;
  for (int i = 0; (loops = which_decided(s->c, i)); i++) {
    t = r->batch;
    take_stages(&t, &r->need);
    if (decided(s, r, loops, &t)) consider(s, &t);
  }
  t = r->batch;
  if (takes_inner(s->c, r, &t)) consider(s, &t);
}

/* Blocks of the reduction are outside, and the output or local memory is their accumulator. What they copy is
 * small, and is read while it is in the cache. */
static void blocks_of_sum(Search *s, Roles *r) {
  const KernelShape *c = s->c;
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

/* Collects the loads of the sum that move with the tile. Returns false if any load cannot be copied, or does
 * not move with exactly one of tile and lanes. */
static bool loads_of_tile(const KernelShape *c, const Roles *r, Set *tile) {
  bool fits = r->tile >= 0;
  for (int a = c->nstore; fits && a < c->naccess; a++) {
    if (!c->access[a].in_sum) continue;
    bool with = moves(c, a, r->tile), lane = moves(c, a, r->lane);
    fits = may_stage(c, a) && with != lane;
    if (with) set_add(tile, a);
  }
  return fits && tile->n > 0;
}

static int longest_sum(const KernelShape *c) {
  int longest = -1;
  for (int r = 0; r < c->n; r++)
    if (is_summed_over(c, r) && (longest < 0 || c->size[r] > c->size[longest])) longest = r;
  return longest;
}

/* Both operands are copied, in blocks of the sum, of the lanes and of the tile. The copy that the lanes read
 * stays in L2 while the blocks of the tile pass. In their copy, rows of the tile are close to each other. In
 * the buffer their stride may be a power of two, so that they would all be in one set of L1. */
static void blocks_of_all(Search *s, const Roles *r) {
  static const int steps[] = {0, 128, 256, 512}, columns[] = {0, 256, 512};

  enum { ROWS = 128, LARGE = 1 << 20 };

  const KernelShape *c = s->c;
  Set tile = {0};
  double bytes = 0;
  int k = longest_sum(c);
  for (int a = c->nstore; a < c->naccess; a++)
    bytes += c->access[a].in_sum ? c->access[a].whole : 0;
  if (bytes < LARGE || r->batch.n || !loads_of_tile(c, r, &tile) || c->size[r->tile] < 2 * ROWS) return;
  for (size_t i = 0; i < TG_COUNT(steps); i++)
    for (size_t j = 0; j < TG_COUNT(columns); j++) {
      bool cut = c->plain || c->whole;
      if (steps[i] ? !cut || c->size[k] < 2 * steps[i] : c->size[k] > 1024) continue;
      if (columns[j] && c->size[r->lane] < 2 * columns[j]) continue;
      Taken t = {0};
      if (steps[i]) take(&t, OPT_TILE, k, steps[i]);
      if (columns[j]) take(&t, OPT_TILE, r->lane, columns[j]);
      take_stages(&t, &r->lane_loads);
      take(&t, OPT_TILE, r->tile, ROWS / r->rows * r->rows);
      take_stages(&t, &tile);
      take_all(&t, &r->base);
      consider(s, &t);
    }
}

/* How a tile along loop u is taken. If a matrix is read only once, its rows should be streams that each
 * continue in their own part of the matrix (UPCASTTOP), unless a row shares a cache line with the next
 * row. */
static OptOp tile_op(const KernelShape *c, int u) {
  bool streams = false, rows = true;
  for (int a = c->nstore; rows && a < c->naccess; a++) {
    const Access *x = &c->access[a];
    if (!x->in_sum || !moves(c, a, u)) continue;
    streams |= x->streamed;
    rows = (double)llabs(access_step(x, u)) * x->bytes >= LINE;
  }
  return streams && rows ? OPT_UPCASTTOP : OPT_UPCAST;
}

static void take_base(const KernelShape *c, Roles *r) {
  r->base.n = 0;
  if (r->tile >= 0) take(&r->base, tile_op(c, r->tile), r->tile, r->rows);
  take(&r->base, OPT_VEC, r->lane, r->lanes);
}

/* Sets the roles of a tiling. Returns false if no load moves with the lanes. */
static bool roles_of(const KernelShape *c, const Tiling *tiling, bool converted, Roles *r) {
  *r = (Roles){.lane = tiling->lane, .tile = tiling->tile, .lanes = tiling->lanes, .rows = tiling->rows};
  r->converted = converted;
  if (!roles_set(c, r)) return false;
  /* loops that every load moves with run one iteration at a time */
  for (int g = 0; g < c->n && !tiling->apart; g++) {
    bool all = is_out(c, g) && g != r->lane;
    for (int a = c->nstore; all && a < c->naccess; a++)
      if (c->access[a].in_sum) all = moves(c, a, g);
    if (all && r->need.n) take(&r->batch, OPT_TILE, g, 1);
  }
  take_base(c, r);
  return true;
}

/* ---- the tilings */
static bool tiling_add(Search *s, Roles *r, bool apart) {
  Tiling tiling = {.number = (int)s->tilings.len, .apart = apart};
  tiling.lane = r->lane;
  tiling.tile = r->tile;
  tiling.lanes = r->lanes;
  tiling.rows = r->rows;
  take_base(s->c, r);
  tiling.least = cost_least(s->c, &r->base, s->ncores);
  Taken written_out = {0};
  if (takes_unrolled(s, r, &written_out))
    tiling.least = fmin(tiling.least, cost_least(s->c, &written_out, s->ncores));
  Taken known = {0};
  uint32_t loops;
  for (int i = 0; (loops = which_decided(s->c, i)); i++, known.n = 0)
    if (decided(s, r, loops, &known)) tiling.least = fmin(tiling.least, cost_least(s->c, &known, s->ncores));
  if (takes_inner(s->c, r, &known)) tiling.least = fmin(tiling.least, cost_least(s->c, &known, s->ncores));
  known.n = 0;
  if (takes_edges(s, r, &known)) tiling.least = fmin(tiling.least, cost_least(s->c, &known, s->ncores));
  return vec_push(s->mem, &s->tilings, tiling);
}

/* Whether steps overlap even without a large tile. That is so if a short sum is written out, or if factors
 * are computed (not only converted), because their operands need registers too. If most lanes are unused, a
 * short sum takes longer than estimated, because it loads whole vectors, each of which is in two cache
 * lines. */
static bool overlaps(const KernelShape *c, const Roles *r) {
  bool any = steps_of(c) <= SHORT_SUM && 2 * c->size[r->lane] > r->lanes;
  for (int i = 0; i < c->nwork; i++)
    any |= !c->work[i].converts;
  return any;
}

/* Vectors that a tile along loop u may have. If the tile waits for memory anyway, it need not fit in the
 * registers completely. */
static double room_of(const KernelShape *c, int u) {
  static const double SOME_MORE = 1.2;
  bool waits = is_nested(c) && tile_op(c, u) == OPT_UPCASTTOP;
  return tile_room(c->target) * (waits ? SOME_MORE : 1);
}

/* Adds the tilings with these lanes: without a tile, and with each tile that uses the registers well. */
static bool tiles_of(Search *s, Roles *r, bool apart) {
  const KernelShape *c = s->c;
  int64_t v = (r->lanes + LANES - 1) / LANES, sums = most_sums(c);
  double used = tile_pieces(c->target, fmin((double)r->lanes, (double)c->size[r->lane]));
  double enough = overlaps(c, r) ? 0 : ENOUGH_TILE / tile_registers(c->target);
  r->tile = -1;
  r->rows = 1;
  bool ok = tiling_add(s, r, apart);
  for (int u = 0; ok && u < c->n; u++) {
    int64_t had = 0;
    if (!is_out(c, u) || u == r->lane) continue;
    double room = room_of(c, u);
    for (int64_t most = 2; ok && most <= MOST_TILE; most++) {
      int64_t blocks = (c->size[u] + most - 1) / most, rows = (c->size[u] + blocks - 1) / blocks;
      if (is_open(c, u)) rows = most;
      if (rows == had || rows < 2 || ((double)(rows * sums) + 1) * used > room) continue;
      if ((double)(most * v * sums) < enough && (double)(c->size[u] * v * sums) > enough) continue;
      had = r->rows = rows;
      r->tile = u;
      ok = tiling_add(s, r, apart);
    }
  }
  return ok;
}

static bool lanes_along(Search *s, int lane) {
  enum { MOST_WRITTEN = 8 };

  const KernelShape *c = s->c;
  int64_t whole = (c->size[lane] + LANES - 1) / LANES;
  Roles r;
  bool ok = true;
  if (c->size[lane] < LEAST_LANES || !roles_of(c, &(Tiling){.lane = lane, .tile = -1}, false, &r))
    return true;
  for (int apart = 0; apart < (r.batch.n ? 2 : 1); apart++)
    for (int64_t v = c->target == &c->eight ? 0 : 1; ok && v <= MOST_WRITTEN; v++) {
      if (v > 1 && (v > whole || is_open(c, lane))) break;
      /* otherwise all of a short loop, so that rows are read from end to end */
      if (v > 4 && v < whole) continue;
      r.lanes = v ? LANES * v : LANES / 2; /* half as many lanes of 8 bytes are as many bytes */
      ok = tiles_of(s, &r, apart);
    }
  return ok;
}

static void consider_in_sum(Search *s, const Taken *before, int k, int64_t lanes) {
  uint32_t loops = 0;
  for (int i = -1; i < 0 || (loops = which_decided(s->c, i)); i++) {
    Taken t = *before;
    if (loops && !takes_decided(s->c, k, loops, &t)) continue;
    take(&t, OPT_GROUP, k, lanes);
    consider(s, &t);
  }
}

/* Whether the outputs have a loop that is long enough for lanes. */
static bool has_lanes_out(const KernelShape *c) {
  bool has = false;
  for (int r = 0; r < c->n; r++)
    has |= is_out(c, r) && c->size[r] >= LEAST_LANES;
  return has;
}

/* Lanes go along the reduction: there are several accumulators, which are merged at the end, for one or two
 * tiles of the outputs. If no loop of the outputs can be lanes, strided memory is read in this way too. Then
 * one vector of lanes is work enough. */
static void lanes_in_sum(Search *s, int k) {
  const KernelShape *c = s->c;
  int64_t sums = most_sums(c);
  bool only = !has_lanes_out(c), strided = false;
  for (int a = c->nstore; a < c->naccess; a++) {
    const Access *x = &c->access[a];
    int64_t by = access_step(x, k);
    if (x->in_sum && (x->gated || (!x->found && (!x->even || (!only && by != 0 && by != 1))))) return;
    strided |= x->in_sum && by != 0 && by != 1;
  }
  static const int rows[][2] = {{1, 1}, {2, 1}, {4, 1}, {6, 1}, {2, 2},
                                {4, 2}, {2, 4}, {4, 4}, {4, 6}, {6, 4}};
  int64_t most = c->invariant ? TG_MIN(LANES, c->size[k]) : strided ? LANES : 8 * LANES;
  for (int64_t g = LANES; g <= most && g < 2 * c->size[k]; g *= 2) /* at last all of the loop, written out */
    for (size_t i = 0; i < TG_COUNT(rows); i++)
      for (int u = -1; u < c->n; u++)
        for (int w = -1; w < c->n; w++) {
          bool ok = (u >= 0) == (rows[i][0] > 1) && (w >= 0) == (rows[i][1] > 1) && (u < 0 || u != w);
          ok = ok && (u < 0 || (is_out(c, u) && c->size[u] >= rows[i][0])) &&
               (w < 0 || (is_out(c, w) && c->size[w] >= rows[i][1]));
          if (!ok || rows[i][0] * rows[i][1] * g / LANES * sums > TG_MAX(MOST_IN_SUM, sums)) continue;
          for (int swap = 0; swap < (can_swap(c, u, w) ? 2 : 1); swap++) {
            Taken t = {0};
            if (swap) take(&t, OPT_SWAP, u, w);
            if (u >= 0) take(&t, tile_op(c, u), u, rows[i][0]);
            if (w >= 0) take(&t, tile_op(c, w), w, rows[i][1]);
            consider_in_sum(s, &t, k, g);
          }
        }
}

/* ---- kernels without sums */
/* Whether a tile along loop u makes strided lanes of an output contiguous, because it is transposed in
 * registers. A tile that only saves loads does not pay: each of its rows is a stream, and memory serves
 * several streams slower than one. */
static bool is_run(const KernelShape *c, int lane, int u) {
  bool run = false, fits = c->size[u] >= LANES && c->size[lane] >= LANES;
  for (int a = 0; fits && a < c->nstore; a++) {
    int64_t by = access_step(&c->access[a], lane);
    run |= by != 0 && by != 1 && access_step(&c->access[a], u) == 1;
  }
  return run;
}

/* Whether a short loop should be written out: because that decides a condition, or because its iterations
 * read memory between the lanes of the first one, as the channels of a picture do. */
static bool is_interleaved(const KernelShape *c, int lane, int u) {
  bool found = c->decides >> u & 1;
  for (int a = c->nstore; a < c->naccess; a++) {
    const Access *x = &c->access[a];
    int64_t by = llabs(access_step(x, u)), apart = access_vectors(x, lane);
    found |= by > 0 && by < apart;
  }
  return found && c->size[u] <= MOST_STRIDE;
}

static bool plain_tiles(Search *s, Roles *r) {
  const KernelShape *c = s->c;
  r->tile = -1;
  r->rows = 1;
  bool ok = tiling_add(s, r, false);
  for (int u = 0; ok && u < c->n; u++) {
    if (!is_out(c, u) || u == r->lane || is_open(c, u)) continue;
    r->tile = u;
    r->rows = c->size[u];
    if (r->rows > 1 && is_interleaved(c, r->lane, u)) ok = tiling_add(s, r, false);
    if (r->lanes > LANES || !is_run(c, r->lane, u)) continue;
    for (r->rows = 2; ok && r->rows <= TG_MIN(c->size[u], MOST_TILE); r->rows *= 2)
      ok = tiling_add(s, r, false);
  }
  return ok;
}

/* Whether anything is read or written lane by lane. */
static bool lanes_apart(const KernelShape *c, int lane) {
  bool apart = false;
  for (int a = 0; a < c->naccess; a++) {
    int64_t by = access_step(&c->access[a], lane);
    apart |= by != 0 && (a < c->nstore ? by != 1 : !access_vectors(&c->access[a], lane));
    apart |= c->access[a].gate_moves >> lane & 1;
  }
  return apart;
}

/* Whether a place is computed from the lanes' loop. If that is written out, the place is known. */
static bool places_known(const KernelShape *c, int lane) {
  bool known = false;
  for (int a = c->nstore; a < c->naccess; a++)
    known |= place_known(&c->access[a], lane);
  return known;
}

/* Adds tilings with one vector (enough if lanes are strided), with two, and, if that decides a condition,
 * with all of a short loop. */
static bool plain_lanes(Search *s, int lane) {
  enum { MOST_WRITTEN = 8 };

  const KernelShape *c = s->c;
  int64_t size = c->size[lane], whole = (size + LANES - 1) / LANES, most = lanes_apart(c, lane) ? 1 : 2;
  bool ok = true;
  Roles r = {.lane = lane};
  if (size < LEAST_LANES) return true;
  for (int64_t v = 1; ok && v <= (is_open(c, lane) ? 1 : MOST_WRITTEN); v++) {
    bool decides = v == whole && ((c->decides >> lane & 1) || places_known(c, lane));
    if ((v > most && !decides) || (v > 1 && v > whole)) continue;
    r.lanes = TG_MIN(v * LANES, size);
    ok = plain_tiles(s, &r);
  }
  return ok;
}

/* Considers lists in which a loop stands innermost that some of the work does not depend on: that work is then
 * done once for all iterations of the loop. */
static void alike_innermost(Search *s, const Roles *r) {
  const KernelShape *c = s->c;
  uint32_t alike = 0;
  int last = c->n - 1;
  for (int i = 0; i < c->nwork; i++)
    alike |= ~c->work[i].on;
  while (last > 0 && !is_out(c, last))
    last--;
  for (int u = 0; u < last; u++) {
    Taken t = {0};
    if (!is_out(c, u) || u == r->lane || !(alike >> u & 1)) continue;
    take(&t, OPT_SWAP, u, last);
    take_all(&t, &r->base);
    consider(s, &t);
  }
}

/* Considers blocks of both loops of a tile that is transposed, because they use whole cache lines. */
static void plain_lists(Search *s, const Roles *r) {
  enum { BLOCK = 64 };

  const KernelShape *c = s->c;
  if (r->tile < 0) alike_innermost(s, r);
  for (int blocks = 0; blocks < (r->tile < 0 ? 1 : 4); blocks++) {
    Taken t = {0};
    bool lane = blocks & 1, tile = blocks & 2;
    if ((lane && c->size[r->lane] < 2 * BLOCK) || (tile && c->size[r->tile] < 2 * BLOCK)) continue;
    if (lane && is_open(c, r->lane)) continue;
    if (lane) take(&t, OPT_TILE, r->lane, BLOCK);
    if (tile) take(&t, OPT_TILE, r->tile, BLOCK);
    with_swap(s, &t, r);
  }
}

static bool find_tilings(Search *s) {
  const KernelShape *c = s->c;
  bool ok = true;
  for (int r = 0; ok && !c->reduce && r < c->n; r++)
    if (is_out(c, r)) ok = plain_lanes(s, r);
  if (!c->reduce) return ok;
  for (int r = 0; ok && r < c->n; r++) {
    if (is_out(c, r)) ok = lanes_along(s, r);
    if (ok && c->reduce >> r & 1 && c->size[r] >= LANES)
      ok = vec_push(s->mem, &s->tilings,
                    ((Tiling){.number = (int)s->tilings.len, .in_sum = true, .lane = r, .least = INFINITY}));
  }
  return ok;
}

static int by_least(const void *a, const void *b) {
  const Tiling *x = a, *y = b;
  return x->least != y->least ? (x->least > y->least ? 1 : -1) : x->number - y->number;
}

static void try_copies(Search *s, Roles *r) {
  if (r->as_is) {
    unstaged(s, r);
    return;
  }
  stage_once(s, r);
  stage_lane_blocks(s, r);
  stage_other_blocks(s, r);
  stage_row_blocks(s, r);
  unrolled(s, r);
  unstaged(s, r);
  blocks_of_sum(s, r);
  blocks_of_all(s, r);
}

static void try_tiling(Search *s, const Tiling *tiling) {
  bool converts = false;
  Roles r;
  s->number = tiling->number;
  if (!s->c->reduce) {
    r = (Roles){.lane = tiling->lane, .tile = tiling->tile, .lanes = tiling->lanes, .rows = tiling->rows};
    take_base(s->c, &r);
    plain_lists(s, &r);
    return;
  }
  if (tiling->in_sum) {
    lanes_in_sum(s, tiling->lane);
    return;
  }
  if (roles_of(s->c, tiling, false, &r)) try_copies(s, &r);
  for (int a = s->c->nstore; a < s->c->naccess; a++)
    converts |= s->c->access[a].converted && may_stage(s->c, a);
  if (converts && roles_of(s->c, tiling, true, &r)) try_copies(s, &r);
}

/* Tries the most promising tilings first, so that most of the rest cannot be better than the best list so
 * far. Returns false if out of memory. */
static bool search(Search *s) {
  bool ok = true, print_all = s->costs != NULL;
  for (int r = 0; s->c->invariant && !is_nested(s->c) && r < s->c->n; r++)
    if (is_summed_over(s->c, r) && s->c->size[r] >= LANES) lanes_in_sum(s, r);
  if (s->found) return true;
  ok = find_tilings(s);
  if (ok && !print_all && s->tilings.len)
    qsort(s->tilings.at, s->tilings.len, sizeof *s->tilings.at, by_least);
  for (size_t i = 0; ok && i < s->tilings.len; i++) {
    const Tiling *tiling = &s->tilings.at[i];
    if (print_all || tiling->in_sum || !s->found || tiling->least <= s->cost.cycles) try_tiling(s, tiling);
  }
  vec_free(s->mem, &s->tilings);
  return ok;
}

bool choose_list(const KernelShape *c, int ncores, TgMem *mem, Str *costs, Taken *best, Cost *cost) {
  Search s = {.c = c, .ncores = ncores, .mem = mem, .costs = costs};
  s.cost.cycles = INFINITY;
  bool ok = search(&s);
  *best = s.best;
  *cost = s.cost;
  return ok;
}
