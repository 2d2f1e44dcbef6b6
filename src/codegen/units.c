/* units.c: contractions on the matrix units of a CPU. In: a contraction (plan/shape.h). Out: the cheapest of
 * all lists with a TC (panels.c) that its loops permit, if it costs less than vectors do.
 *
 * The columns are a loop along which all outputs are contiguous. The rows are any other loop that only the
 * other operand depends on. What is read behind a gate is staged first, so that panels read it without one.
 * Columns are tiled into blocks whose panels stay in L2, rows into blocks for threads if there are threads.
 *
 *   cycles = (those of the unit (matrix.h) + the uses of the results) / threads
 *          + panels: elements * cost of an element by how it is read
 *
 * If an operand does not move with the loop that is distributed, every thread makes all of its panels. */
#include "codegen/heuristic.h"
#include "uop/matrix.h"
#include <math.h>

enum { LEAST_COLUMNS = 8, MOST_TRIED = 4, BLOCK = 32, LANES = 16 };

/* Cycles per element of a panel that is read as vectors; transposed in registers; read alone. */
static const double PANEL_NEXT = 0.2, PANEL_TURNED = 0.35, PANEL_APART = 3;
/* Cycles per vector of results: for its sum, and for each other access. */
static const double RESULT = 4, RESULT_ACCESS = 2;

typedef struct Units {
  Kernel *k;
  const KernelShape *c;
  const MatrixShape *shape;
  int ncores, row, column;
  UOp *value[2];     /* factors of a, of b */
  double element[2]; /* cycles per element of its panels */
  double panels[2];  /* cycles for all its panels */
  double depth;      /* steps of the sum, padded */
  double shared;     /* cycles that are divided among threads */
  int n, stage[MAX_ACCESS], nstage;
  int64_t stage_loop[MAX_ACCESS]; /* the range that names the staged read */
  Opt list[MAX_TAKEN], best[MAX_TAKEN];
  int nbest;
  double cycles;
} Units;

static bool is_moved(const Units *u, int role, int r) {
  return depends(u->k, u->value[role], (UOp *)u->c->range[r]);
}

/* ---- what panels cost */
/* Whether an operand is contiguous along a long loop of the sum. */
static bool next_in_sum(const Units *u, int role) {
  for (int r = 0; r < u->c->n; r++)
    if (is_summed_over(u->c, r) && u->c->size[r] >= LANES &&
        !loads_apart(u->k, u->value[role], (UOp *)u->c->range[r]))
      return true;
  return false;
}

static double weight_of(const Units *u, UOp *value) {
  UOpVec order = {0};
  double sum = 0;
  bool ok = kernel_nodes(u->k, value, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    sum += order.at[i]->dtype == DT_INDEX ? 0 : target_weight(u->c->target, order.at[i]);
  vec_free(u->k->mem, &order);
  return sum;
}

static bool reads(const Units *u, int role, int access) {
  return uop_contains(u->k->st, u->k->mem, &u->value[role], 1, u->c->access[access].index);
}

/* Whether an operand's panels are made before the kernel runs, because all its buffers stay the same. */
static bool prepacked(const Units *u, int role) {
  const KernelShape *c = u->c;
  bool all = true;
  int64_t size = (int64_t)dtype_size(u->shape->operand[role].dtype);
  for (int a = c->nstore; all && a < c->naccess; a++)
    if (reads(u, role, a)) all = c->access[a].stays && size <= c->access[a].bytes;
  return all;
}

static void panels_of(Units *u, int role) {
  const KernelShape *c = u->c;
  const Target *t = c->target;
  bool side = !loads_apart(u->k, u->value[role], (UOp *)c->range[role == MATRIX_A ? u->row : u->column]);
  bool sum = next_in_sum(u, role), staged = false;
  for (int a = c->nstore; a < c->naccess; a++)
    staged |= c->access[a].in_sum && c->access[a].gated && reads(u, role, a);
  bool next = role == MATRIX_A ? sum : side || staged, turned = side || sum || staged;
  double each = next ? PANEL_NEXT : turned ? PANEL_TURNED : PANEL_APART, elements = u->depth;
  each += weight_of(u, u->value[role]) / t->ops;
  for (int a = c->nstore; a < c->naccess; a++) /* cost of reading distant memory */
    if (c->access[a].in_sum && reads(u, role, a))
      each += c->access[a].bytes * t->mhz / t->bytes_us[target_level(t, c->access[a].whole)];
  for (int r = 0; r < c->n; r++)
    if (!is_summed_over(c, r) && is_moved(u, role, r)) elements *= (double)c->size[r];
  u->element[role] = each;
  u->panels[role] = prepacked(u, role) ? 0 : each * elements;
}

static double shared_cycles(const Units *u) {
  const KernelShape *c = u->c;
  double around = 1, results = 1, accesses = 0;
  for (int r = 0; r < c->n; r++) {
    if (is_summed_over(c, r)) continue;
    double n = (double)c->size[r];
    results *= n;
    if (r != u->row && r != u->column) around *= n;
  }
  for (int a = 0; a < c->naccess; a++)
    accesses += !c->access[a].in_sum;
  double sums = matrix_cycles(u->shape, (double)c->size[u->row], (double)c->size[u->column], u->depth);
  return around * sums + results / LANES * (RESULT + RESULT_ACCESS * accesses);
}

/* ---- lists */
static void take(Units *u, OptOp op, int64_t r, int64_t n) {
  if (u->n < MAX_TAKEN) u->list[u->n] = (Opt){op, r, n};
  u->n++;
}

static int64_t root_of(const Units *u, int r) { return u->c->range[r]->arg.range.id; }

/* Takes the SWAPs that bring the rows and columns inside all other loops of the outputs. */
static void take_swaps(Units *u) {
  const KernelShape *c = u->c;
  int order[MAX_LOOPS], n = 0, want[2] = {u->column, u->row};
  for (int r = 0; r < c->n; r++)
    if (!is_summed_over(c, r)) order[n++] = r;
  for (int i = 0; i < 2; i++) {
    int to = n - 1 - i, from = to;
    while (from > 0 && order[from] != want[i])
      from--;
    if (from == to) continue;
    take(u, OPT_SWAP, root_of(u, order[from]), root_of(u, order[to]));
    order[from] = order[to];
    order[to] = want[i];
  }
}

/* The outermost loop, if everything staged depends on it: it is then tiled by single iterations. -1: it is
 * not. */
static int staged_iter(const Units *u) {
  const KernelShape *c = u->c;
  for (int r = 0; r < c->n; r++) {
    if (is_summed_over(c, r)) continue;
    bool moves = u->nstage > 0 && r != u->row && r != u->column;
    for (int i = 0; i < u->nstage; i++)
      moves &= c->access[u->stage[i]].moves >> r & 1;
    return moves ? r : -1;
  }
  return -1;
}

/* Costs one list and keeps it if it is the cheapest so far. deal: the loop that is distributed, or -1. rows,
 * columns: sizes of a block, 0: not tiled. share: the part of the work that the busiest thread gets. */
static void try_list(Units *u, int deal, int64_t rows, int64_t columns, double share) {
  const KernelShape *c = u->c;
  int iter = staged_iter(u);
  double cycles = u->shared * share;
  for (int role = MATRIX_A; role <= MATRIX_B; role++)
    cycles += u->panels[role] * (deal < 0 || !is_moved(u, role, deal) ? 1 : share);
  for (int i = 0; i < u->nstage; i++)
    cycles += PANEL_TURNED * c->access[u->stage[i]].whole / c->access[u->stage[i]].bytes *
              (iter >= 0 && iter == deal ? share : 1);
  if (cycles >= u->cycles) return;
  u->n = 0;
  if (iter >= 0 && c->size[iter] > 1) take(u, OPT_TILE, root_of(u, iter), 1);
  for (int i = 0; i < u->nstage; i++)
    take(u, OPT_STAGE, c->access[u->stage[i]].slot, u->stage_loop[i]);
  if (rows) take(u, OPT_TILE, root_of(u, u->row), rows);
  if (columns) take(u, OPT_TILE, root_of(u, u->column), columns);
  take_swaps(u);
  take(u, OPT_TC, root_of(u, u->row), root_of(u, u->column));
  take(u, OPT_VEC, root_of(u, u->column), BLOCK);
  if (deal >= 0) take(u, OPT_THREAD, root_of(u, deal), u->ncores);
  if (u->n > MAX_TAKEN) return;
  u->cycles = cycles;
  u->nbest = u->n;
  for (int i = 0; i < u->n; i++)
    u->best[i] = u->list[i];
}

/* The iterations of a block. Blocks of about this length that divide the loop are preferred, so that there is
 * no tail nest; otherwise a block is a multiple of whole tiles. */
static int64_t blocks_of(int64_t size, int64_t most) {
  int64_t least = (size + most - 1) / most;
  for (int64_t n = least; n <= 2 * least && size / n >= BLOCK; n++)
    if (size % n == 0 && size / n % (BLOCK / 2) == 0) return size / n;
  for (int64_t n = least; n <= least + 1 && size / n >= 4 * BLOCK; n++)
    if (size % n == 0) return size / n;
  int64_t each = (size + least - 1) / least;
  return (each + BLOCK - 1) / BLOCK * BLOCK;
}

static double share_of(const Units *u, double trips) {
  return trips < u->ncores ? 1 : ceil(trips / u->ncores) / trips;
}

/* Tries each loop that can be distributed, with blocks of columns whose panels stay in L2. */
static void try_lists(Units *u) {
  const KernelShape *c = u->c;
  int64_t size = (int64_t)dtype_size(u->shape->operand[MATRIX_B].dtype);
  double most = (double)c->target->cache[LEVEL_L2] / 2 / (u->depth * (double)size);
  int64_t all = c->size[u->column], columns = blocks_of(all, TG_MAX((int64_t)most / BLOCK, 4) * BLOCK);
  int64_t rows = blocks_of(c->size[u->row], (c->size[u->row] + u->ncores - 1) / u->ncores);
  int64_t near = columns < all ? columns : 0;
  try_list(u, -1, 0, near, 1);
  if (u->ncores < 2) return;
  for (int r = 0; r < c->n; r++)
    if (!is_summed_over(c, r) && r != u->row && r != u->column && c->size[r] >= u->ncores)
      try_list(u, r, 0, near, share_of(u, (double)c->size[r]));
  double row_blocks = (double)c->size[u->row] / BLOCK;
  if (!near) try_list(u, u->row, 0, 0, share_of(u, row_blocks));
  if (near) try_list(u, u->row, rows, near, (double)rows / (double)c->size[u->row]);
  int64_t part = blocks_of(all, TG_MIN(columns, (all + u->ncores - 1) / u->ncores));
  if (part < all) try_list(u, u->column, 0, part, share_of(u, (double)all / (double)part));
}

/* ---- which loops */
static bool contiguous_along(const KernelShape *c, int r) {
  bool all = !is_summed_over(c, r) && c->size[r] >= LEAST_COLUMNS;
  for (int a = 0; all && a < c->nstore; a++)
    all = access_step(&c->access[a], r) == 1;
  return all;
}

/* Finds what must be staged. Returns false if something cannot be. */
static bool find_staged(Units *u) {
  const KernelShape *c = u->c;
  u->nstage = 0;
  for (int a = c->nstore; a < c->naccess; a++) {
    int loop;
    if (c->access[a].asks) return false; /* panels have no gate */
    if (!c->access[a].in_sum || !c->access[a].gated) continue;
    if (!can_stage(c, a, &loop)) return false;
    u->stage_loop[u->nstage] = loop < 0 ? EVERY_READ : root_of(u, loop);
    u->stage[u->nstage++] = a;
  }
  return true;
}

static bool takes_pair(Units *u, int row, int column) {
  const KernelShape *c = u->c;
  u->row = row;
  u->column = column;
  u->shape = NULL;
  for (int i = 0; i < MATRIX_COUNT && !u->shape; i++) {
    const MatrixShape *s = &matrix_shapes[i];
    if ((matrix_units(u->k) >> i & 1) && matrix_in_memory(s) &&
        matrix_product(u->k, c->value[0], s, c->range[row], c->range[column], &u->value[0], &u->value[1]))
      u->shape = s;
  }
  return u->shape && is_moved(u, MATRIX_A, row) && is_moved(u, MATRIX_B, column);
}

static void try_pair(Units *u) {
  const KernelShape *c = u->c;
  u->depth = 1;
  for (int r = 0; r < c->n; r++)
    if (is_summed_over(c, r)) u->depth *= (double)c->size[r];
  u->depth = ceil(u->depth / u->shape->k) * u->shape->k;
  for (int role = MATRIX_A; role <= MATRIX_B; role++)
    panels_of(u, role);
  u->shared = shared_cycles(u);
  try_lists(u);
}

bool choose_units(Kernel *k, const KernelShape *c, int ncores, double *cycles, OptVec *out, bool *chosen) {
  Units u = {.k = k, .c = c, .ncores = ncores, .cycles = *cycles};
  *chosen = false;
  if (!matrix_units(k) || c->open || c->nsum != 1 || !c->body[0].fused || !find_staged(&u)) return true;
  for (int column = 0; column < c->n; column++)
    for (int row = 0; row < c->n && contiguous_along(c, column); row++)
      if (!is_summed_over(c, row) && row != column && takes_pair(&u, row, column)) try_pair(&u);
  if (!u.nbest) return true;
  bool ok = true;
  out->len = 0;
  for (int i = 0; ok && i < u.nbest; i++)
    ok = vec_push(k->mem, out, u.best[i]);
  *chosen = ok && opts_fit(k, out);
  if (*chosen) *cycles = u.cycles;
  if (!*chosen) out->len = 0;
  return ok;
}
