/* tensor_cores.c: the opt TC: sums of products on matrix units. In: two loops of the grid, the rows and the
 * columns of a product a[m, k] * b[k, n] that a loop inside sums. Out: one warp per tile of the unit's size.
 * The 32 threads are a LOCAL loop of their own, the innermost loop of the grid. A register has the thread's
 * elements of the sum as lanes. Steps of the unit's depth are ACC[ADD](register, WMMA[row](a, b), ..) over
 * the elements of a and of b that the thread has.
 *
 * The table in matrix.h says which thread has which element. Here its bits become index arithmetic.
 * Everything inside the two loops is indexed by the places of the sum: its start, its uses, and the plain
 * steps that are left if the unit's depth does not divide the loop. Only inside WMMA are a and b indexed by
 * the places of their own fragments. For units of four warps (TC4), which read shared memory themselves, they
 * are instead indexed by the first element of the step in their copies, whose layout share.c makes. On a CPU
 * a core has the unit to itself, with its operands in memory (panels.c). */
#include "codegen/split.h"
#include "uop/matrix.h"

/* A loop whose iterations become steps of a unit. */
typedef struct Depth {
  UOp *loop;
  const MatrixShape *shape;
} Depth;

typedef struct Units {
  Kernel *k;
  UOp *outer, *inner; /* the loop over rows and the loop over columns */
  Vec(Depth) depths;
  bool groups; /* TC4: four warps, operands in shared memory */
  /* the row of the table for the current loop; all loops use rows with the same map of the sum */
  const MatrixShape *shape;
  UOp *thread, *row_block, *column_block; /* ranges, or constant 0 */
  /* of a fragment: which vector, which lane; 0 if there is only one */
  UOp *element[MATRIX_ROLES][2];
  const char *why;
} Units;

static bool cannot(Units *u, const char *why) {
  u->why = why;
  return false;
}

/* ---- places */
static int step_of(const MatrixPlace *p, bool column) { return column ? p->column : p->row; }

/* The sum of what each of n bits of x adds along rows or columns. Consecutive bits whose steps double are
 * handled as one number. */
static UOp *bits_along(Kernel *k, UOp *x, const MatrixPlace *bit, int n, bool column) {
  UOp *sum = num(k, 0);
  for (int b = 0; b < n;) {
    int many = 1, step = step_of(&bit[b], column);
    while (b + many < n && step && step_of(&bit[b + many], column) == step << many)
      many++;
    UOp *part =
        ix(k, OPS_FLOORMOD, ix(k, OPS_FLOORDIV, x, num(k, (int64_t)1 << b)), num(k, (int64_t)1 << many));
    if (step) sum = ix(k, OPS_ADD, sum, ix(k, OPS_MUL, part, num(k, step)));
    b += many;
  }
  return sum;
}

static int bits_of(int n) { return __builtin_ctz((unsigned)n); }

/* The row or column, inside a tile, of an element of the thread's fragment. */
static UOp *place_of(const Units *u, MatrixRole role, bool column) {
  Kernel *k = u->k;
  const MatrixOperand *o = &u->shape->operand[role];
  int lanes = bits_of(o->together), vectors = bits_of(o->elements / o->together);
  UOp *at = bits_along(k, u->thread, o->thread, MATRIX_THREAD_BITS, column);
  at = ix(k, OPS_ADD, at, bits_along(k, u->element[role][0], o->element + lanes, vectors, column));
  return ix(k, OPS_ADD, at, bits_along(k, u->element[role][1], o->element, lanes, column));
}

static UOp *in_block(Kernel *k, UOp *block, int64_t size, UOp *at) {
  return ix(k, OPS_ADD, ix(k, OPS_MUL, block, num(k, size)), at);
}

/* ---- which products */
uint32_t matrix_units(const Kernel *k) { return k->opt->target->matrices & ~k->opt->matrices_off; }

/* The first table row that TC or TC4 can use here. All rows that it can use have the same map of the sum.
 * NULL: there is none. */
static const MatrixShape *first_row(const Kernel *k, bool groups) {
  for (int i = 0; i < MATRIX_COUNT; i++)
    if ((matrix_units(k) >> i & 1) && matrix_in_shared(&matrix_shapes[i]) == groups) return &matrix_shapes[i];
  return NULL;
}

bool matrix_sides(const Kernel *k, OptOp op, int64_t *rows, int64_t *columns) {
  const MatrixShape *first = op == OPT_TC || op == OPT_TC4 ? first_row(k, op == OPT_TC4) : NULL;
  if (!first) return false;
  *rows = first->m;
  *columns = first->n;
  return true;
}

bool matrix_b_by_rows(const Kernel *k) {
  uint32_t have = matrix_units(k);
  return have && matrix_shapes[__builtin_ctz(have)].operand[MATRIX_B].element[0].column > 0;
}

/* The factor x as the unit takes it: in the unit's dtype, before it was widened for the product, or widened
 * to the unit's dtype if that loses nothing. NULL: the unit cannot take it. */
static UOp *operand_of(Kernel *k, UOp *x, const MatrixShape *s, MatrixRole role, DType sum) {
  DType want = s->operand[role].dtype;
  if (want != sum) x = x->op == OPS_CAST && x->dtype == sum ? x->src[0] : NULL;
  if (!x || uop_has(x, DEFINE_REG)) return NULL;
  if (x->dtype == want) return x;
  return matrix_widens(s, role, (DType)x->dtype) ? uop_cast(k->st, x, want) : NULL;
}

static bool sums_in(const MatrixShape *s, DType d) {
  DType want = s->operand[MATRIX_C].dtype;
  return d == want || (want == DT_I32 && d == DT_U32);
}

bool matrix_product(Kernel *k, const UOp *v, const MatrixShape *s, const UOp *row, const UOp *column, UOp **a,
                    UOp **b) {
  if (v->op != OPS_MUL || !sums_in(s, (DType)v->dtype)) return false;
  for (int first = 0; first < 2; first++) {
    *a = operand_of(k, v->src[first], s, MATRIX_A, (DType)v->dtype);
    *b = operand_of(k, v->src[!first], s, MATRIX_B, (DType)v->dtype);
    if (*a && *b && !depends(k, *a, column) && !depends(k, *b, row)) return true;
  }
  return false;
}

/* The first table row that takes the factors as they are, otherwise the first one for which they must be
 * widened. */
const MatrixShape *matrix_for(Kernel *k, const UOp *product, int64_t depth, const UOp *row,
                              const UOp *column) {
  const MatrixShape *wide = NULL;
  UOp *a, *b;
  for (int i = 0; i < MATRIX_COUNT; i++) {
    const MatrixShape *s = &matrix_shapes[i];
    bool taken = (matrix_units(k) >> i & 1) && !matrix_in_shared(s) && depth >= s->k;
    if (!taken || !matrix_product(k, product, s, row, column, &a, &b)) continue;
    bool as_is = a->op != OPS_CAST || !matrix_widens(s, MATRIX_A, (DType)a->src[0]->dtype);
    as_is &= b->op != OPS_CAST || !matrix_widens(s, MATRIX_B, (DType)b->src[0]->dtype);
    if (as_is) return s;
    if (!wide) wide = s;
  }
  return wide;
}

/* ---- operands in shared memory */
/* An element of a step: in row or column `at` of its tile, `deep` steps of k after the beginning of a
 * block. */
typedef struct Probe {
  int64_t at, deep;
} Probe;

/* Whether index e, an expression of the loops `side` and depth, is `want` elements further at begin + p than
 * at `begin`. */
static bool is_past(Kernel *k, UOp *e, const UOp *side, const UOp *depth, Probe begin, Probe p,
                    int64_t want) {
  UOp *from[2] = {(UOp *)side, (UOp *)depth}, *place[2];
  for (int i = 0; i < 2; i++) {
    UOp *to[2] = {num(k, begin.at + (i ? p.at : 0)), num(k, begin.deep + (i ? p.deep : 0))};
    place[i] = to[0] && to[1] ? kernel_with(k, e, 2, from, to) : NULL;
    if (!place[i] || !(place[i] = uop_simplify(k->st, k->mem, place[i]))) return false;
  }
  UOp *apart = ix(k, OPS_SUB, place[1], place[0]);
  return apart && is_const_int(apart, want);
}

/* Whether an operand is a copy that STAGE laid out as this table row requires. It is probed at each bit of a
 * place, for each step that begins in a line, in the first rows or columns. */
static bool lies_so(Kernel *k, const UOp *x, const UOp *side, const UOp *depth, const MatrixShape *s,
                    MatrixRole role) {
  const MatrixOperand *o = &s->operand[role];
  if (x->op != OPS_INDEX || x->arg.i || x->src[0]->op != OPS_DEFINE_LOCAL) return false;
  int64_t tile = role == MATRIX_A ? s->m : s->n, step = o->turned ? tile : s->k;
  for (int64_t first = 0; first < MATRIX_LINE_ELEMENTS; first += step)
    for (int64_t bit = 1; bit < tile * s->k; bit *= 2) {
      Probe begin = {o->turned ? first : 0, o->turned ? 0 : first}, p = {bit % tile, bit / tile};
      int64_t want = matrix_in_lines(o, first, (int)p.at, (int)p.deep) - first;
      if (!is_past(k, x->src[1], side, depth, begin, p, want)) return false;
    }
  return true;
}

/* The table row that multiplies copies in their layout. NULL: none. */
static const MatrixShape *row_of_copies(const Units *u, const UOp *product, const UOp *depth) {
  Kernel *k = u->k;
  UOp *a, *b, *row = u->outer->src[0], *column = u->inner->src[0];
  for (int i = 0; i < MATRIX_COUNT; i++) {
    const MatrixShape *s = &matrix_shapes[i];
    bool taken = (matrix_units(k) >> i & 1) && matrix_in_shared(s) && depth->src[0]->arg.v.i >= s->k;
    if (taken && matrix_product(k, product, s, row, column, &a, &b) &&
        lies_so(k, a, row, depth, s, MATRIX_A) && lies_so(k, b, column, depth, s, MATRIX_B))
      return s;
  }
  return NULL;
}

bool has_groups(Kernel *k, UOp *u) {
  UOpVec order = {0};
  bool has = false, ok = uop_has(u, WMMA) && kernel_nodes(k, u, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    has |= order.at[i]->op == OPS_WMMA && matrix_in_shared(&matrix_shapes[order.at[i]->arg.i]);
  vec_free(k->mem, &order);
  return has;
}

/* Whether the first of the instructions that are side by side in a step begins a line of b. */
static bool begins_line(Kernel *k, const UOp *acc) {
  const UOp *value = acc->src[1];
  bool unit = value->op == OPS_WMMA && matrix_in_shared(&matrix_shapes[value->arg.i]);
  if (!unit || !matrix_shapes[value->arg.i].operand[MATRIX_B].turned) return true;
  UOp *at = value->src[1]->src[1], *zero = num(k, 0);
  for (int i = 2; at && zero && i < acc->nsrc; i++)
    at = kernel_with(k, at, 1, (UOp **)acc->src + i, &zero);
  at = at ? uop_simplify(k->st, k->mem, at) : NULL;
  return at && uop_is_multiple(at, MATRIX_LINE_ELEMENTS);
}

bool groups_begin_lines(Kernel *k) {
  PlaceVec at = {0};
  bool ok = !uop_has(k->sink, WMMA) || nest_places(k, k->sink, &at);
  for (size_t i = 0; ok && i < at.len; i++)
    ok = at.at[i].u->op != OPS_ACC || begins_line(k, at.at[i].u);
  vec_free(k->mem, &at);
  return ok;
}

/* ---- the statements of a step */
/* Where an operand's place in the tile begins; an operand in shared memory begins at its first element. */
static UOp *operand_place(const Units *u, MatrixRole role, bool column) {
  return matrix_in_shared(u->shape) ? num(u->k, 0) : place_of(u, role, column);
}

static UOp *step(Units *u, UOp *acc, const UOp *depth, UOp *block) {
  Kernel *k = u->k;
  const MatrixShape *s = u->shape;
  UOp *row = u->outer->src[0], *column = u->inner->src[0], *ab[2], *list[MAX_LIST];
  if (acc->nsrc > 2 || (Ops)acc->arg.reduce.op != OPS_ADD ||
      !matrix_product(k, acc->src[1], s, row, column, &ab[0], &ab[1]))
    return cannot(u, "a loop sums more than products of the types that a matrix unit has"), NULL;
  int n = 0;
  for (int role = MATRIX_A; role <= MATRIX_B; role++) {
    const UOp *side = role == MATRIX_A ? row : column;
    UOp *from[2] = {(UOp *)side, (UOp *)depth};
    UOp *to[2] = {in_block(k, role == MATRIX_A ? u->row_block : u->column_block,
                           role == MATRIX_A ? s->m : s->n,
                           operand_place(u, (MatrixRole)role, role == MATRIX_B)),
                  in_block(k, block, s->k, operand_place(u, (MatrixRole)role, role == MATRIX_A))};
    if (!to[0] || !to[1]) return NULL;
    if (!(ab[role] = kernel_with(k, ab[role], 2, from, to))) return NULL;
    for (int e = 0; e < 2 && !matrix_in_shared(s); e++)
      if (u->element[role][e]->op == OPS_RANGE) list[n++] = u->element[role][e];
  }
  DType sum = (DType)acc->src[1]->dtype;
  UOp *value = UNEW(k->st, OPS_WMMA, sum, 1, ((Arg){.i = s - matrix_shapes}), ab[0], ab[1]);
  return value ? acc_new(k, OPS_ADD, acc->src[0], value, n, list) : NULL;
}

static UOp *steps_in(Units *u, UOp *tree, const UOp *depth, UOp *block) {
  if (tree->op == OPS_ACC) return step(u, tree, depth, block);
  if (tree->op != OPS_LOOP && tree->op != OPS_SINK)
    return cannot(u, "a loop does something else besides its sums"), NULL;
  UOpVec src = {0};
  bool ok = true;
  for (int i = 0; ok && i < tree->nsrc; i++) {
    bool range = tree->op == OPS_LOOP && i == 0;
    ok = vec_push(u->k->mem, &src, range ? tree->src[0] : steps_in(u, tree->src[i], depth, block)) &&
         src.at[i];
  }
  UOp *r = ok ? uop_new(u->k->st, (Ops)tree->op, DT_VOID, 1, (int)src.len, src.at, tree->arg) : NULL;
  vec_free(u->k->mem, &src);
  return r;
}

/* Appends the statements that replace loop `depth`: steps of the unit's depth, and the plain tail. */
static bool in_steps(Units *u, UOp *loop, UOpVec *out) {
  Kernel *k = u->k;
  UOp *r = loop->src[0], *size = num(k, u->shape->k);
  int64_t whole = r->src[0]->arg.v.i / u->shape->k, rest = r->src[0]->arg.v.i % u->shape->k;
  UOp *block = whole > 1 ? kernel_range(k, num(k, whole), (AxisType)r->arg.range.type, r) : num(k, 0);
  UOp *copy = rest ? nest_copy(k, loop, 0, NULL, NULL) : NULL;
  UOp *body = block && body_of(k, loop) ? steps_in(u, body_of(k, loop), r, block) : NULL;
  if (!body || !size || (rest && !copy)) return false;
  UOp *trips = whole > 1 ? loop_new(k, block, body->nsrc, body->src) : NULL;
  bool ok = whole == 1 || trips;
  for (int i = 0; ok && whole == 1 && i < body->nsrc; i++)
    ok = vec_push(k->mem, out, body->src[i]);
  if (ok && trips) ok = vec_push(k->mem, out, trips);
  Part p = {num(k, whole * u->shape->k), num(k, rest), num(k, 1), (AxisType)r->arg.range.type, NULL, false};
  UOp *plain = ok && rest ? part_of(k, copy, copy, &p, false) : NULL;
  for (int i = 0; ok && plain && i < plain->nsrc; i++)
    ok = vec_push(k->mem, out, plain->src[i]);
  return ok && (!rest || plain);
}

/* ---- the loops */
/* The longest loop around a sum, inside the two loops, that a unit can take. NULL: none. */
static UOp *longest_around(const PlaceVec *at, size_t i) {
  UOp *best = NULL;
  for (int up = at->at[i].up; up > 0; up = at->at[up].up) {
    UOp *loop = at->at[up].u;
    const UOp *r = loop->src[0];
    if (loop_type(loop) != AXIS_REDUCE || is_block(r) || !is_const(r->src[0])) continue;
    if (!best || r->src[0]->arg.v.i > best->src[0]->src[0]->arg.v.i) best = loop;
  }
  return best;
}

static bool depth_add(Units *u, UOp *loop, const UOp *product) {
  int64_t trips = loop->src[0]->src[0]->arg.v.i;
  const MatrixShape *s = u->groups ? row_of_copies(u, product, loop->src[0])
                                   : matrix_for(u->k, product, trips, u->outer->src[0], u->inner->src[0]);
  if (!s) return true; /* the loop stays plain */
  for (size_t i = 0; i < u->depths.len; i++) {
    if (u->depths.at[i].loop == loop)
      return u->depths.at[i].shape == s || cannot(u, "a loop sums products of several types");
    if (nest_replace(u->k, u->depths.at[i].loop, loop, 0, NULL) ||
        nest_replace(u->k, loop, u->depths.at[i].loop, 0, NULL))
      return cannot(u, "sums inside sums");
  }
  return vec_push(u->k->mem, &u->depths, ((Depth){loop, s}));
}

static bool depths_of(Units *u) {
  Kernel *k = u->k;
  PlaceVec at = {0};
  bool ok = nest_places(k, u->inner, &at);
  for (size_t i = 0; ok && i < at.len; i++) {
    UOp *loop = at.at[i].u->op == OPS_ACC ? longest_around(&at, i) : NULL;
    if (loop) ok = depth_add(u, loop, at.at[i].u->src[1]);
  }
  vec_free(k->mem, &at);
  if (ok && !u->depths.len)
    ok = cannot(u, u->groups ? "no loop in it sums products of copies that lie as such a unit reads them"
                             : "no loop in it sums products of types that a matrix unit here has");
  return ok;
}

/* Makes the ranges over the elements of a thread's fragment. */
static bool fragment_new(Units *u, MatrixRole role) {
  static const RangeOf whose[MATRIX_ROLES] = {FRAGMENT_OF_A, FRAGMENT_OF_B, 0};
  Kernel *k = u->k;
  const MatrixOperand *o = &u->shape->operand[role];
  if (!o->elements) return true; /* the operand is in shared memory */
  int64_t many[2] = {o->elements / o->together, o->together};
  bool ok = true;
  for (int i = 0; ok && i < 2; i++) {
    UOp *e = many[i] > 1 ? kernel_range(k, num(k, many[i]), i ? AXIS_VEC : AXIS_UPCAST, NULL) : num(k, 0);
    if (e && e->op == OPS_RANGE) e = range_marked(k, e, whose[role]);
    ok = (u->element[role][i] = e) != NULL;
  }
  return ok;
}

/* Makes the ranges of the blocks, of the threads, and of the thread's elements of the sum. */
static bool ranges_new(Units *u) {
  Kernel *k = u->k;
  const MatrixShape *s = u->shape = u->depths.at[0].shape;
  UOp *row = u->outer->src[0], *column = u->inner->src[0];
  int64_t rows = row->src[0]->arg.v.i / s->m, columns = column->src[0]->arg.v.i / s->n;
  u->row_block = rows > 1 ? kernel_range(k, num(k, rows), AXIS_GLOBAL, row) : num(k, 0);
  u->column_block = columns > 1 ? kernel_range(k, num(k, columns), AXIS_GLOBAL, column) : num(k, 0);
  u->thread = kernel_range(k, num(k, s->threads), AXIS_LOCAL, NULL);
  if (u->thread) u->thread = range_marked(k, u->thread, LOCAL_OF_GRID);
  return u->row_block && u->column_block && u->thread && fragment_new(u, MATRIX_C);
}

/* The nest from `loop` inwards, with its two loops now over blocks and the loop of threads innermost. */
static UOp *in_blocks(Units *u, UOp *loop, UOp *body) {
  Kernel *k = u->k;
  if (loop == u->inner) {
    UOp *threads = loop_new(k, u->thread, body->nsrc, body->src);
    return threads && u->column_block->op == OPS_RANGE ? loop_new(k, u->column_block, 1, &threads) : threads;
  }
  UOp *inside = in_blocks(u, loop->src[1], body), *r = loop == u->outer ? u->row_block : loop->src[0];
  return inside && r->op == OPS_RANGE ? loop_new(k, r, 1, &inside) : inside;
}

static bool on_units(Units *u) {
  Kernel *k = u->k;
  UOpVec now = {0};
  UOp *body = depths_of(u) && ranges_new(u) ? body_of(k, u->inner) : NULL;
  for (size_t i = 0; body && i < u->depths.len; i++) {
    Depth d = u->depths.at[i];
    now.len = 0;
    u->shape = d.shape;
    bool ok = fragment_new(u, MATRIX_A) && fragment_new(u, MATRIX_B) && in_steps(u, d.loop, &now);
    body = ok ? nest_replace(k, body, d.loop, (int)now.len, now.at) : NULL;
  }
  UOp *from[2] = {u->outer->src[0], u->inner->src[0]}, *to[2] = {NULL, NULL};
  if (body) {
    to[0] = in_block(k, u->row_block, u->shape->m, place_of(u, MATRIX_C, false));
    to[1] = in_block(k, u->column_block, u->shape->n, place_of(u, MATRIX_C, true));
  }
  if (body) body = to[0] && to[1] ? kernel_with(k, body, 2, from, to) : NULL;
  if (body) body = spread(k, body, u->element[MATRIX_C][1]);
  UOp *nest = body ? in_blocks(u, u->outer, body) : NULL;
  vec_free(k->mem, &now);
  return nest && nest_edit(k, u->outer, UNEW(k->st, OPS_SINK, DT_VOID, 1, ARG0, nest));
}

/* Pads a loop of the grid to a multiple of n iterations. Iterations past its end are gated. */
static bool pad_to(Kernel *k, UOp *loop, int64_t n) {
  UOp *r = loop->src[0];
  int64_t size = r->src[0]->arg.v.i, padded = (size + n - 1) / n * n;
  Part p = {num(k, 0), num(k, 1), num(k, padded), AXIS_GLOBAL, r->src[0], false};
  return size == padded || in_parts(k, loop, loop, &p, 1, true);
}

static bool find_loops(Units *u, const Opt *o) {
  Kernel *k = u->k;
  PlaceVec at = {0};
  bool ok = nest_places(k, k->sink, &at);
  u->outer = u->inner = NULL;
  for (size_t i = 0; ok && i < at.len && !u->inner; i++) {
    u->outer = at.at[i].u;
    if (!is_loop(u->outer) || range_root(u->outer->src[0]) != o->r || is_block(u->outer->src[0])) continue;
    for (UOp *l = alone(u->outer); l && !u->inner; l = alone(l))
      if (range_root(l->src[0]) == o->n) u->inner = l;
  }
  vec_free(k->mem, &at);
  if (ok && !u->inner)
    return cannot(u, "no loop nest has both, the first outside and nothing but loops between");
  for (UOp *l = u->outer; ok; l = l->src[1]) {
    if (loop_type(l) != AXIS_GLOBAL || !is_const(l->src[0]->src[0]))
      return cannot(u, "a loop of it is not of the grid, or its length is not known");
    if (l == u->inner) break;
  }
  return ok;
}

bool opt_tc(Kernel *k, const Opt *o, const char **why) {
  Units u = {.k = k, .groups = o->op == OPT_TC4};
  int64_t rows, columns;
  Facts f = {0};
  bool ok = true;
  if (!matrix_sides(k, o->op, &rows, &columns))
    ok = cannot(&u,
                u.groups ? "the device has no matrix units of four warps" : "the device has no matrix units");
  else if (uop_has(k->sink, WMMA) || (k->list.len && k->list.at[0].op == OPT_ONLINE))
    ok = cannot(&u, "once in a kernel, and not inside an ONLINE");
  ok = ok && find_loops(&u, o) && facts_of(k, u.outer, &f);
  if (ok && f.rows.len) ok = cannot(&u, "local memory is filled anew in each of its iterations");
  facts_free(k, &f);
  ok =
      ok && pad_to(k, u.outer, rows) && find_loops(&u, o) && pad_to(k, u.inner, columns) && find_loops(&u, o);
  ok = ok && on_units(&u);
  vec_free(k->mem, &u.depths);
  *why = ok ? NULL : u.why;
  return ok;
}
