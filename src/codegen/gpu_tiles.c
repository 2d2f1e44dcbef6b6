/* gpu_tiles.c: the opts of a contraction on a GPU. In: a kernel whose outputs are made of reductions over
 * the same loops. Out: a block of threads for each tile of the outputs. Each thread has a small tile of it
 * in registers, and the operands of a block of the reduction are copied to shared memory first.
 *
 * Two loops of the outputs are tiled: one with which one operand moves and the other does not, and one for
 * which it is the other way round. Each element of an operand is then used as often as the other operand's
 * tile is wide. The outputs are contiguous along the first loop (`lane`), and its threads are neighbours.
 * If a window slides along `lane` (its axis is `x + q`), lanes cannot be one load; then a third loop, with
 * which the same operand moves, gives the tile its other side. All other loops run one by one, outside. No
 * kernel is recognised by name. */
#include "codegen/heuristic.h"
#include "uop/matrix.h"

enum { MOST_THREADS_SIDE = 16, MOST_LANE_THREADS = 32, LEAST_LANES = 7, LEAST_STEPS = 16, SMALL = 2 };

/* Blocks larger than the smallest may compute at most this multiple of the results that exist: the rest is
 * padding. */
static const double MOST_PADDING = 1.25;

typedef struct Tiles {
  Kernel *k;
  const Info *f;
  const RInfo *lane, *row, *third; /* third may be NULL */
  bool slides;                     /* a window slides along lane: its lanes are not one vector load */
  UOpVec staged;                   /* an INDEX of each operand to copy */
  ListVec *lists;
} Tiles;

typedef struct Side {
  int64_t tile, threads; /* values of each thread; threads */
} Side;

static int64_t id_of(const RInfo *r) { return r->r->arg.range.id; }

static bool opt_put(Kernel *k, OptVec *out, OptOp op, int64_t r, int64_t n) {
  return n == 1 && op != OPT_TILE ? true : vec_push(k->mem, out, ((Opt){op, r, n}));
}

/* ---- roles of the loops */
static bool same_loops(const Info *f) {
  const UOp *first = f->reduces.at[0];
  for (size_t j = 0; j < f->reduces.len; j++) {
    const UOp *u = f->reduces.at[j];
    if (u->nsrc != first->nsrc || uop_has(u->src[0], REDUCE)) return false;
    for (int s = 1; s < u->nsrc; s++)
      if (u->src[s] != first->src[s] || !is_const(u->src[s]->src[0])) return false;
  }
  return true;
}

static bool is_reduced(const Tiles *t, const UOp *e) { /* whether e moves with a loop of the reductions */
  const UOp *reduce = t->f->reduces.at[0];
  for (int s = 1; s < reduce->nsrc; s++)
    if (depends(t->k, (UOp *)e, reduce->src[s])) return true;
  return false;
}

/* Whether an operand moves with loop r and not with `other`. */
static bool moves_alone(const Tiles *t, const RInfo *r, const RInfo *other) {
  for (size_t i = 0; i < t->f->loads.len; i++) {
    UOp *x = t->f->loads.at[i];
    if (x->src[0]->op == OPS_PARAM && is_reduced(t, x) && depends(t->k, x, r->r) &&
        !depends(t->k, x, other->r))
      return true;
  }
  return false;
}

/* Whether r is a loop of the grid that all outputs and all reductions have. */
static bool is_side(const Tiles *t, const RInfo *r) {
  bool is = r->grid && r->n > 1 && r->nout == t->k->sink->nsrc && is_const(r->r->src[0]);
  for (size_t j = 0; is && j < t->f->reduces.len; j++)
    is = depends(t->k, t->f->reduces.at[j], r->r);
  return is;
}

static bool is_lane(const Tiles *t, const RInfo *r) {
  bool is = is_side(t, r) && r->n >= LEAST_LANES;
  for (int j = 0; is && j < t->k->sink->nsrc; j++)
    is = contiguous(t->k, t->k->sink->src[j], r->r);
  return is;
}

static bool find_sides(Tiles *t) {
  const Info *f = t->f;
  for (int i = 0; i < f->nr; i++)
    for (int j = 0; is_lane(t, &f->r[i]) && j < f->nr; j++) {
      const RInfo *lane = &f->r[i], *row = &f->r[j];
      if (i == j || row->n < LEAST_SIDE || !is_side(t, row)) continue;
      if (!moves_alone(t, lane, row) || !moves_alone(t, row, lane)) continue;
      if (!t->lane || lane->n * row->n > t->lane->n * t->row->n) {
        t->lane = lane;
        t->row = row;
      }
    }
  return t->lane != NULL;
}

/* For an operand that moves with the lanes: whether a loop of the reductions moves the same axis. */
static bool slides(const Tiles *t, const UOp *x) {
  for (int i = 1; i <= index_naxes(x); i++)
    if (depends(t->k, x->src[i], t->lane->r) && is_reduced(t, x->src[i])) return true;
  return false;
}

/* Finds the operands that move with one side alone: they are copied, because many threads read them. */
static bool find_staged(Tiles *t) {
  bool ok = true;
  for (size_t i = 0; ok && i < t->f->loads.len; i++) {
    UOp *x = t->f->loads.at[i];
    if (x->src[0]->op != OPS_PARAM || !is_reduced(t, x)) continue;
    bool lane = depends(t->k, x, t->lane->r), row = depends(t->k, x, t->row->r), had = false;
    for (size_t j = 0; j < t->staged.len; j++)
      had |= t->staged.at[j]->src[0] == x->src[0] && depends(t->k, t->staged.at[j], t->lane->r) == lane;
    if (lane == row || had) continue;
    t->slides |= lane && slides(t, x);
    ok = vec_push(t->k->mem, &t->staged, x);
  }
  return ok;
}

/* Adds the STAGE opts. A copy names its side if the buffer is also read along the other side. */
static bool stage_all(const Tiles *t, OptVec *out) {
  bool ok = true;
  for (size_t i = 0; ok && i < t->staged.len; i++) {
    UOp *x = t->staged.at[i];
    const RInfo *side = depends(t->k, x, t->lane->r) ? t->lane : t->row;
    int64_t along = EVERY_READ;
    for (size_t j = 0; j < t->f->loads.len; j++)
      if (t->f->loads.at[j]->src[0] == x->src[0] && !depends(t->k, t->f->loads.at[j], side->r))
        along = id_of(side);
    ok = vec_push(t->k->mem, out, ((Opt){OPT_STAGE, x->src[0]->arg.param.slot, along}));
  }
  return ok;
}

static void find_third(Tiles *t) {
  for (int i = 0; t->slides && i < t->f->nr; i++) {
    const RInfo *r = &t->f->r[i];
    bool fits = r != t->lane && r != t->row && is_side(t, r);
    for (size_t j = 0; fits && j < t->staged.len; j++)
      fits = depends(t->k, t->staged.at[j], r->r) == depends(t->k, t->staged.at[j], t->lane->r);
    if (fits && (!t->third || r->n > t->third->n)) t->third = r;
  }
}

/* ---- the list */
/* Adds the TILEs of the reduction in blocks of `steps`: loops outside a block run one by one. *blocks: the
 * innermost of these loops, or NULL. */
static bool tile_reduction(const Tiles *t, int64_t steps, OptVec *out, const UOp **blocks) {
  const UOp *reduce = t->f->reduces.at[0];
  int64_t inner = 1;
  int s = reduce->nsrc - 1;
  for (; s > 1 && inner * reduce->src[s]->src[0]->arg.v.i <= steps; s--)
    inner *= reduce->src[s]->src[0]->arg.v.i;
  bool ok = true;
  for (int o = 1; ok && o < s; o++)
    ok = opt_put(t->k, out, OPT_TILE, reduce->src[o]->arg.range.id, 1);
  int64_t size = reduce->src[s]->src[0]->arg.v.i, n = TG_MAX(steps / inner, 1);
  *blocks = n < size ? reduce->src[s] : s > 1 ? reduce->src[s - 1] : NULL;
  return ok && (n >= size || opt_put(t->k, out, OPT_TILE, reduce->src[s]->arg.range.id, n));
}

static bool comes_before(const Tiles *t, const RInfo *a, const RInfo *b) { /* a is outside b */
  const UOp *s = t->k->sink->src[0];
  for (int i = 2; i < s->nsrc && s->src[i] != b->r; i++)
    if (s->src[i] == a->r) return true;
  return false;
}

/* Begins a list: every loop of the grid that gives the tile no side runs one by one. */
static bool others_apart(const Tiles *t, OptVec *out) {
  bool ok = true;
  out->len = 0;
  for (int i = 0; ok && i < t->f->nr; i++) {
    const RInfo *r = &t->f->r[i];
    bool other = r->grid && r->n > 1 && r != t->lane && r != t->row && r != t->third;
    if (other) ok = opt_put(t->k, out, OPT_TILE, id_of(r), 1);
  }
  return ok;
}

static bool shape(const Tiles *t, Side row, Side lane, int64_t third, int64_t steps, bool pipe) {
  Kernel *k = t->k;
  const UOp *blocks = NULL;
  OptVec *out = list_new(k, t->lists);
  bool ok = out && others_apart(t, out);
  ok = ok && opt_put(k, out, OPT_TILE, id_of(t->row), row.tile * row.threads);
  if (ok && t->third) ok = opt_put(k, out, OPT_TILE, id_of(t->third), third);
  ok = ok && opt_put(k, out, OPT_TILE, id_of(t->lane), lane.tile * lane.threads) &&
       tile_reduction(t, steps, out, &blocks);
  ok = ok && stage_all(t, out);
  if (ok && comes_before(t, t->lane, t->row))
    ok = vec_push(k->mem, out, ((Opt){OPT_SWAP, id_of(t->lane), id_of(t->row)}));
  if (ok && pipe && blocks) ok = opt_put(k, out, OPT_DOUBLE_BUFFER, blocks->arg.range.id, 2);
  ok = ok && opt_put(k, out, OPT_UPCAST, id_of(t->row), row.tile);
  if (ok && t->third) ok = opt_put(k, out, OPT_UPCAST, id_of(t->third), third);
  return ok && opt_put(k, out, OPT_VEC, id_of(t->lane), lane.tile) &&
         opt_put(k, out, OPT_LOCAL, id_of(t->row), row.threads) &&
         opt_put(k, out, OPT_LOCAL, id_of(t->lane), lane.threads);
}

/* The results that blocks of `rows` x `columns` compute, divided by the results that exist. */
static double padding(const Tiles *t, int64_t rows, int64_t columns) {
  double down = ceil((double)t->row->n / (double)rows), across = ceil((double)t->lane->n / (double)columns);
  return down * (double)rows * across * (double)columns / ((double)t->row->n * (double)t->lane->n);
}

/* Adds lists with tiles of `side` rows a thread, with and without copies one block ahead. With more than
 * two operands, addressing copies ahead would take more registers than there are. */
static bool add_tiles(const Tiles *t, int64_t side) {
  enum { MOST_THIRD = 4, LANES = 4, STEPS = 16, STEPS_OF_WINDOW = 72 };

  Side row = {.tile = side}, lane = {.tile = t->slides ? 1 : TG_MAX(side, LANES)};
  int64_t third = t->third ? balanced(t->third->n, MOST_THIRD) : 1;
  int64_t lanes = (t->lane->n + lane.tile - 1) / lane.tile;
  lane.threads = t->slides ? balanced(lanes, MOST_LANE_THREADS) : power_below(lanes, MOST_THREADS_SIDE);
  row.threads =
      power_below((t->row->n + side - 1) / side, TG_MIN(BLOCK_THREADS / lane.threads, 2 * MOST_THREADS_SIDE));
  int64_t steps = t->slides ? STEPS_OF_WINDOW : side <= 2 ? 2 * STEPS : STEPS;
  bool ok = true;
  if (side > SMALL && padding(t, row.tile * row.threads, lane.tile * lane.threads) > MOST_PADDING)
    return true;
  for (int pipe = 0; ok && pipe <= (t->staged.len <= 2); pipe++)
    ok = shape(t, row, lane, third, steps, pipe);
  return ok;
}

/* ---- matrix units */
/* The unit that can compute all sums of products, or NULL. *depth: the longest loop of the reduction,
 * along which the unit sums. */
static const MatrixShape *unit_of(const Tiles *t, const UOp **depth) {
  const UOp *first = t->f->reduces.at[0];
  const MatrixShape *unit = NULL;
  *depth = first->src[1];
  for (int s = 2; s < first->nsrc; s++)
    if (first->src[s]->src[0]->arg.v.i > (*depth)->src[0]->arg.v.i) *depth = first->src[s];
  for (size_t j = 0; j < t->f->reduces.len; j++) {
    const UOp *sum = t->f->reduces.at[j];
    const MatrixShape *s = matrix_for(t->k, sum->src[0], (*depth)->src[0]->arg.v.i, t->row->r, t->lane->r);
    if (!s || (Ops)sum->arg.reduce.op != OPS_ADD || (j && s != unit)) return NULL;
    unit = s;
  }
  return unit;
}

/* Adds a list for a block of warps, each with a tile of row.tile x lane.tile results of the unit. Operands
 * are copied to shared memory in steps of twice the unit's depth. ahead: -1: they are read in place
 * instead; 0: they are copied; 1: they are copied one step ahead. */
static bool units_shape(const Tiles *t, const MatrixShape *unit, const UOp *depth, Side row, Side lane,
                        int64_t third, int ahead) {
  enum { STEPS = 2 };

  Kernel *k = t->k;
  const UOp *first = t->f->reduces.at[0], *blocks = NULL; /* innermost loop over blocks of the sum */
  OptVec *out = list_new(k, t->lists);
  bool ok = out && others_apart(t, out);
  ok = ok && opt_put(k, out, OPT_TILE, id_of(t->row), row.tile * row.threads * unit->m);
  if (ok && t->third) ok = opt_put(k, out, OPT_TILE, id_of(t->third), third);
  ok = ok && opt_put(k, out, OPT_TILE, id_of(t->lane), lane.tile * lane.threads * unit->n);
  for (int s = 1; ok && s < first->nsrc; s++) {
    const UOp *r = first->src[s];
    int64_t n = r == depth ? STEPS * unit->k : 1;
    if (r->src[0]->arg.v.i <= n) continue;
    blocks = r;
    ok = opt_put(k, out, OPT_TILE, r->arg.range.id, n);
  }
  if (ok && ahead >= 0) ok = stage_all(t, out);
  if (ok && comes_before(t, t->lane, t->row))
    ok = vec_push(k->mem, out, ((Opt){OPT_SWAP, id_of(t->lane), id_of(t->row)}));
  ok = ok && vec_push(k->mem, out, ((Opt){OPT_TC, id_of(t->row), id_of(t->lane)}));
  if (ok && ahead > 0 && blocks) ok = opt_put(k, out, OPT_DOUBLE_BUFFER, blocks->arg.range.id, 2);
  ok = ok && opt_put(k, out, OPT_UPCAST, id_of(t->row), row.tile);
  if (ok && t->third) ok = opt_put(k, out, OPT_UPCAST, id_of(t->third), third);
  return ok && opt_put(k, out, OPT_UPCAST, id_of(t->lane), lane.tile) &&
         opt_put(k, out, OPT_LOCAL, id_of(t->row), row.threads) &&
         opt_put(k, out, OPT_LOCAL, id_of(t->lane), lane.threads);
}

/* ---- units of four warps */
/* Adds a list for a block of such groups of warps, each with a tile of row.tile x lane.tile results.
 * memories: how many memories its copies use in turn. */
static bool groups_shape(const Tiles *t, const UOp *depth, Side row, Side lane, int64_t memories) {
  enum { ROWS = 64, COLUMNS = 8 };

  Kernel *k = t->k;
  const UOp *first = t->f->reduces.at[0];
  OptVec *out = list_new(k, t->lists);
  bool ok = out && others_apart(t, out);
  ok = ok && opt_put(k, out, OPT_TILE, id_of(t->row), row.tile * row.threads * ROWS) &&
       opt_put(k, out, OPT_TILE, id_of(t->lane), lane.tile * lane.threads * COLUMNS);
  for (int s = 1; ok && s < first->nsrc; s++)
    ok = opt_put(k, out, OPT_TILE, first->src[s]->arg.range.id,
                 first->src[s] == depth ? MATRIX_LINE_ELEMENTS : 1);
  ok = ok && stage_all(t, out);
  if (ok && comes_before(t, t->lane, t->row))
    ok = vec_push(k->mem, out, ((Opt){OPT_SWAP, id_of(t->lane), id_of(t->row)}));
  ok = ok && vec_push(k->mem, out, ((Opt){OPT_TC4, id_of(t->row), id_of(t->lane)}));
  if (ok && memories > 1) ok = opt_put(k, out, OPT_DOUBLE_BUFFER, depth->arg.range.id, memories);
  return ok && opt_put(k, out, OPT_UPCAST, id_of(t->row), row.tile) &&
         opt_put(k, out, OPT_UPCAST, id_of(t->lane), lane.tile) &&
         opt_put(k, out, OPT_LOCAL, id_of(t->row), row.threads) &&
         opt_put(k, out, OPT_LOCAL, id_of(t->lane), lane.threads);
}

/* Whether a unit of four warps takes operands of the same type as `unit`. */
static bool groups_take(const Kernel *k, const MatrixShape *unit) {
  bool has = false;
  for (int i = 0; i < MATRIX_COUNT; i++) {
    const MatrixShape *s = &matrix_shapes[i];
    has |= (matrix_units(k) >> i & 1) && matrix_in_shared(s) &&
           s->operand[MATRIX_A].dtype == unit->operand[MATRIX_A].dtype;
  }
  return has;
}

static bool add_groups(const Tiles *t, const MatrixShape *unit, const UOp *depth) {
  /* The fastest on an H100. Of the two large blocks, the second is used if b is contiguous along its
   * columns, and the third if b is contiguous along k. */
  static const struct {
    Side row, lane;
    int memories;
  } blocks[] = {{{1, 2}, {16, 1}, 3}, {{1, 4}, {16, 1}, 4}, {{1, 2}, {32, 1}, 4}};

  int64_t steps = depth->src[0]->arg.v.i / MATRIX_LINE_ELEMENTS;
  bool ok = true, turned = false,
       fits = !t->third && t->staged.len == 2 && depth->src[0]->arg.v.i % MATRIX_LINE_ELEMENTS == 0;
  if (!fits || !groups_take(t->k, unit)) return true;
  for (size_t i = 0; i < t->staged.len; i++)
    turned |= stride_of(t->k, t->staged.at[i], t->lane->r) == 1;
  for (size_t i = 0; ok && i < TG_COUNT(blocks); i++) {
    Side row = blocks[i].row, lane = blocks[i].lane;
    if (i == (turned ? 2 : 1)) continue;
    if (padding(t, row.threads * 64, lane.tile * 8) <= MOST_PADDING)
      ok = groups_shape(t, depth, row, lane, TG_MIN(blocks[i].memories, steps));
  }
  return ok;
}

static bool add_units(const Tiles *t) {
  enum { MOST_THIRD = 4 };

  static const struct {
    Side row, lane;
  } blocks[] = {{{1, 1}, {1, 1}}, {{1, 2}, {1, 2}}, {{1, 2}, {2, 2}}, {{2, 2}, {4, 2}},
                {{2, 2}, {4, 4}}, {{4, 2}, {4, 4}}, {{4, 1}, {8, 1}}};

  const UOp *depth;
  const MatrixShape *unit = unit_of(t, &depth);
  bool ok = true;
  for (size_t i = 0; unit && ok && i < TG_COUNT(blocks); i++) {
    Side row = blocks[i].row, lane = blocks[i].lane;
    int64_t third = t->third ? balanced(t->third->n, TG_MAX(MOST_THIRD / lane.tile, 1)) : 1;
    double padded = padding(t, row.tile * row.threads * unit->m, lane.tile * lane.threads * unit->n);
    if (i && padded > MOST_PADDING) continue;
    for (int ahead = -1; ok && ahead <= 1; ahead++)
      ok = units_shape(t, unit, depth, row, lane, third, ahead);
  }
  return ok && (!unit || add_groups(t, unit, depth));
}

bool tile_lists(Kernel *k, const Info *f, ListVec *lists) {
  enum { LARGE = 8, MOST_SUMS = 64 };

  Tiles t = {.k = k, .f = f, .lists = lists};
  double steps = 1;
  if (!f->reduces.len || f->fills.len || f->scans || !same_loops(f)) return true;
  for (int s = 1; s < f->reduces.at[0]->nsrc; s++)
    steps *= (double)f->reduces.at[0]->src[s]->src[0]->arg.v.i;
  if (steps < LEAST_STEPS || !find_sides(&t)) return true;
  bool ok = find_staged(&t);
  find_third(&t);
  if (ok) ok = add_units(&t);
  bool wide = t.lane->n >= LEAST_SIDE || t.third;
  for (int64_t side = SMALL; ok && wide && side <= LARGE; side *= 2)
    if (side * side * (int64_t)f->reduces.len <= MOST_SUMS) ok = add_tiles(&t, side);
  vec_free(k->mem, &t.staged);
  return ok;
}
