/* panels.c: TC on a CPU: sums of products on the matrix unit of a core. In: two loops of the grid, the rows
 * and the columns of a product a[m, k] * b[k, n] that loops inside them sum. Out: blocks of results. Before
 * the blocks, the operands are copied to local memory in the order in which the unit reads them (matrix.h).
 * In each block, one statement computes its sums, and the two loops run inside it with the former reduction
 * replaced by a sum that is read from local memory:
 *
 *   panels of b
 *   LOOP rows / 32:  panels of a
 *     LOOP columns / 32:
 *       STORE(c[i, j], WMMA(a[i, k], b[k, j], k), i, j, k)
 *       LOOP i, j:  the start of the sum, ACC[ADD](sum, c[i, j]), what uses the sum
 *
 * A copy holds a value, not a buffer: a cast, a gate or a scale of an operand is computed once per element,
 * in the copy. All loops of the reduction together are one axis of the copy, padded with zeros to the unit's
 * depth. So an operand may be any expression of these loops, and a convolution is a product of matrices like
 * any other. A long sum of floats is cut into pieces. Each piece has its own block of results, and the pieces
 * are added at the end.
 *
 * If a panel of a holds x + z in place of a factor x, each sum is too large by the sum of z * b[k, n]. The
 * unit therefore also multiplies one row of z by each panel of b, and the result is subtracted. */
#include "codegen/heuristic.h"
#include "codegen/split.h"
#include "uop/matrix.h"
#include <string.h>

/* MOST_PIECE: the most steps of a sum of floats that are added one after another */
enum { LANES = 16, MOST_PIECE = 1024 };

/* A sum of products inside the inner one of the two loops. */
typedef struct Product {
  UOp *loop, *acc; /* the outermost loop of the sum, a statement of the inner loop; the ACC inside it */
  const MatrixShape *shape;
  UOp *value[2]; /* the factor of a, the factor of b */
  int n;
  UOp *range[MAX_AXES];        /* the sum's loops; the last one moves fastest in panels */
  int64_t inner, depth, piece; /* steps of the last loop, padded; of the whole sum, padded; of a piece */
  int64_t pitch, panel;        /* elements between rows of a; between panels of b */
  UOp *zero;                   /* the value in panels of a that stands for a factor of 0; NULL: 0 itself */
  UOp *zero_row, *too_much;    /* memory: a row of `zero`; its product with each column of b */
  /* the statement before which all panels of an operand are copied, or NULL: they are copied block by
   * block */
  UOp *before[2];
  UOp *memory[MATRIX_ROLES]; /* panels of a, of b; the block of results */
} Product;

/* Loops of a copy that will get opts: the loop that becomes lanes, and the loop that becomes a tile around
 * them, or NULL. */
typedef struct Shaped {
  UOp *lanes, *tile;
  int64_t rows; /* iterations of the tile */
} Shaped;

/* Panels that are read soon after they are filled. The panels of the next nest may use the same memory if
 * they write exactly the same steps, because all other steps are padding that holds zeros. */
typedef struct Near {
  UOp *memory;
  MatrixRole role;
  /* depth and inner: padded; steps and last: the steps that are written, of all loops and of the last one */
  int64_t depth, inner, steps, last;
} Near;

typedef struct Panels {
  Kernel *k;
  UOp *outer, *inner;   /* the loop over rows and the loop over columns */
  int between;          /* number of loops between them */
  UOp *range[MAX_AXES]; /* ranges of the loops between them, .. */
  UOp *now[MAX_AXES];   /* .. and what replaces these in the nest being built */
  Vec(Product) products;
  Vec(Shaped) shaped;
  UOpVec padded;         /* memories that the nest fills with zeros first */
  Vec(Near) near;        /* panels of earlier nests */
  int64_t rows, columns; /* of the largest block */
  bool any;              /* true: some nest has products */
  const char *why;
} Panels;

static bool cannot(Panels *p, const char *why) {
  p->why = why;
  return false;
}

static int64_t up_to(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

static int64_t trips_of(const UOp *range) { return range->src[0]->arg.v.i; }

/* ---- which sums */
/* Whether the loops of a reduction contain only each other and one ACC. Records them in d. */
static bool loops_of(Product *d, UOp *loop) {
  for (UOp *u = loop;; u = u->src[1]) {
    bool fits = loop_type(u) == AXIS_REDUCE && !is_block(u->src[0]) && is_const(u->src[0]->src[0]);
    if (!fits || u->nsrc != 2 || d->n == MAX_AXES) return false;
    d->range[d->n++] = u->src[0];
    if (u->src[1]->op == OPS_ACC) return d->acc = u->src[1], true;
    if (!is_loop(u->src[1])) return false;
  }
}

/* Whether statements below `root` change memory that an operand reads. */
static bool changes(Kernel *k, const UOp *root, UOp *value) {
  UOpVec order = {0};
  bool ok = kernel_nodes(k, value, &order), found = !ok;
  for (size_t i = 0; i < order.len && !found; i++)
    found = order.at[i]->op == OPS_INDEX && nest_stores_to(root, memory_of(order.at[i]));
  vec_free(k->mem, &order);
  return found;
}

/* Puts the loop that moves fastest in the panels last. It should be a long loop along which the operands are
 * contiguous, or a loop whose extent is a multiple of the steps in a word. */
static void order_loops(Kernel *k, Product *d) {
  int best = d->n - 1, most = -1, word = d->shape->operand[MATRIX_B].together;
  for (int i = 0; i < d->n; i++) {
    int64_t n = trips_of(d->range[i]);
    int score = (n % word == 0 ? 2 : 0) + (n >= LANES ? 1 : 0);
    for (int role = MATRIX_A; n >= LANES && role <= MATRIX_B; role++)
      score += loads_apart(k, d->value[role], d->range[i]) ? 0 : 4;
    if (score >= most) {
      best = i;
      most = score;
    }
  }
  UOp *last = d->range[best];
  memmove(d->range + best, d->range + best + 1, (size_t)(d->n - 1 - best) * sizeof *d->range);
  d->range[d->n - 1] = last;
}

/* Sets the padded lengths of a sum and the length of its pieces. Returns false if the sum is too long. */
static bool lengths(Panels *p, Product *d) {
  const MatrixShape *s = d->shape;
  d->inner = up_to(trips_of(d->range[d->n - 1]), s->operand[MATRIX_B].together);
  int64_t all = d->inner;
  for (int i = 0; i + 1 < d->n; i++)
    if (__builtin_mul_overflow(all, trips_of(d->range[i]), &all)) return cannot(p, "its sum is too long");
  if (all > INT32_MAX / MOST_PIECE) return cannot(p, "its sum is too long");
  int64_t steps = up_to(all, s->k) / s->k, pieces = 1;
  if (dtype_is_float(s->operand[MATRIX_C].dtype)) pieces = (steps * s->k + MOST_PIECE - 1) / MOST_PIECE;
  d->piece = (steps + pieces - 1) / pieces * s->k;
  d->depth = d->piece * pieces;
  return true;
}

/* x + 128 or x - 128 in the 8-bit dtype of the other signedness, computed by flipping the sign bit. */
static UOp *sign_flipped(Kernel *k, UOp *x) {
  DType d = (DType)x->dtype, other = d == DT_I8 ? DT_U8 : DT_I8;
  UOp *sign = uop_const_int(k->st, d, d == DT_I8 ? INT8_MIN : -INT8_MIN);
  UOp *flipped = sign ? UNEW(k->st, OPS_XOR, d, 1, ARG0, x, sign) : NULL;
  return flipped ? UNEW(k->st, OPS_BITCAST, other, 1, ARG0, flipped) : NULL;
}

static bool flip_signs(Kernel *k, Product *d) {
  d->shape = &matrix_shapes[d->shape->flipped];
  d->value[MATRIX_A] = sign_flipped(k, d->value[MATRIX_A]);
  DType other = d->shape->operand[MATRIX_A].dtype;
  d->zero = uop_const_int(k->st, other, other == DT_I8 ? INT8_MIN : -INT8_MIN);
  return d->value[MATRIX_A] && d->zero;
}

static bool product_add(Panels *p, UOp *loop) {
  Kernel *k = p->k;
  Product d = {.loop = loop};
  if (!loops_of(&d, loop) || d.acc->nsrc > 2 || (Ops)d.acc->arg.reduce.op != OPS_ADD) return true;
  for (int i = 0; i < MATRIX_COUNT && !d.shape; i++) {
    const MatrixShape *s = &matrix_shapes[i];
    bool is =
        (matrix_units(k) >> i & 1) && matrix_in_memory(s) &&
        matrix_product(k, d.acc->src[1], s, p->outer->src[0], p->inner->src[0], &d.value[0], &d.value[1]);
    if (is) d.shape = s;
  }
  if (!d.shape || changes(k, p->outer, d.value[0]) || changes(k, p->outer, d.value[1])) return true;
  order_loops(k, &d);
  if (d.shape->flipped && !flip_signs(k, &d)) return false;
  return lengths(p, &d) && vec_push(k->mem, &p->products, d);
}

static bool find_products(Panels *p) {
  bool ok = true;
  for (int i = 1; ok && i < p->inner->nsrc; i++)
    if (is_loop(p->inner->src[i]) && loop_type(p->inner->src[i]) == AXIS_REDUCE)
      ok = product_add(p, p->inner->src[i]);
  return ok;
}

/* ---- local memory */
static UOp *local_new(Panels *p, DType dtype, int64_t nelem) {
  Kernel *k = p->k;
  const Target *t = k->opt->target;
  if (nelem > target_copy_most(t) / (int64_t)dtype_size(dtype))
    return cannot(p, "local memory has no room for its panels"), NULL;
  return local_memory(k, dtype, nelem);
}

/* n, increased by a cache line if rows of n elements would all begin in the same few sets of the cache, as
 * they do if their length is a power of two. */
static int64_t apart_by(const Product *d, MatrixRole role, int64_t n) {
  enum { ROW = 64, ALIKE = 512 };

  int64_t size = (int64_t)dtype_size(d->shape->operand[role].dtype);
  return n + (n * size % ALIKE ? 0 : ROW / size);
}

static bool used_here(const Panels *p, const UOp *memory) {
  for (size_t i = 0; i < p->products.len; i++)
    for (int role = MATRIX_A; role <= MATRIX_B; role++)
      if (p->products.at[i].memory[role] == memory) return true;
  return false;
}

/* Memory for panels of an operand. Panels with the same padding share memory, so that the padding is written
 * only once. */
static UOp *panel_memory(Panels *p, const Product *d, MatrixRole role, int64_t nelem) {
  DType dtype = d->shape->operand[role].dtype;
  Near own = {NULL, role, d->depth, d->inner, 1, trips_of(d->range[d->n - 1])};
  for (int i = 0; i < d->n; i++)
    own.steps *= trips_of(d->range[i]);
  bool near = !d->before[role] || d->before[role] == p->outer;
  for (size_t i = 0; near && i < p->near.len; i++) {
    const Near *n = &p->near.at[i];
    bool same = n->role == role && n->depth == own.depth && n->inner == own.inner && n->steps == own.steps &&
                n->last == own.last;
    bool fits = n->memory->dtype == dtype && n->memory->arg.param.nelem >= nelem;
    if (same && fits && !used_here(p, n->memory)) return n->memory;
  }
  own.memory = local_new(p, dtype, nelem);
  if (own.memory && near && !vec_push(p->k->mem, &p->near, own)) return NULL;
  return own.memory;
}

static bool memory_new(Panels *p, Product *d) {
  const MatrixShape *s = d->shape;
  int64_t columns = up_to(trips_of(p->inner->src[0]), s->n);
  int64_t rows = up_to(d->before[MATRIX_A] ? trips_of(p->outer->src[0]) : p->rows, s->m);
  int64_t sums = up_to(p->rows, s->m) * up_to(p->columns, s->n) * (d->depth / d->piece);
  d->pitch = apart_by(d, MATRIX_A, d->depth);
  d->panel = columns > s->n ? apart_by(d, MATRIX_B, s->n * d->depth) : s->n * d->depth;
  d->memory[MATRIX_A] = panel_memory(p, d, MATRIX_A, rows * d->pitch);
  if (d->memory[MATRIX_A]) d->memory[MATRIX_B] = panel_memory(p, d, MATRIX_B, columns / s->n * d->panel);
  if (d->memory[MATRIX_B]) d->memory[MATRIX_C] = local_new(p, (DType)d->acc->src[1]->dtype, sums);
  if (!d->memory[MATRIX_C] || !d->zero) return d->memory[MATRIX_C] != NULL;
  d->zero_row = local_new(p, (DType)d->zero->dtype, d->depth);
  d->too_much = local_new(p, (DType)d->memory[MATRIX_C]->dtype, columns);
  return d->zero_row && d->too_much;
}

static UOp *at(Kernel *k, UOp *memory, UOp *place) {
  return memory && place ? UNEW(k->st, OPS_INDEX, (DType)memory->dtype, 1, ARG0, memory, place) : NULL;
}

static UOp *times(Kernel *k, UOp *a, int64_t n) { return ix(k, OPS_MUL, a, num(k, n)); }

/* The element of step `depth` of a row of a; below, of a column of b. */
static UOp *place_in_a(Kernel *k, const Product *d, UOp *row, UOp *depth) {
  return ix(k, OPS_ADD, times(k, row, d->pitch), depth);
}

static UOp *place_in_b(Kernel *k, const Product *d, UOp *depth, UOp *column) {
  int64_t n = d->shape->n, word = d->shape->operand[MATRIX_B].together;
  UOp *words = ix(k, OPS_FLOORDIV, depth, num(k, word)), *in_word = ix(k, OPS_FLOORMOD, depth, num(k, word));
  UOp *panel = times(k, ix(k, OPS_FLOORDIV, column, num(k, n)), d->panel);
  UOp *in_panel = times(k, ix(k, OPS_FLOORMOD, column, num(k, n)), word);
  return ix(k, OPS_ADD, ix(k, OPS_ADD, panel, times(k, words, n * word)), ix(k, OPS_ADD, in_panel, in_word));
}

/* ---- copies */
/* Puts loops around u. The last range is the innermost loop. */
static UOp *loops_around(Kernel *k, UOp *u, int n, UOp *const *ranges) {
  while (u && n-- > 0)
    u = loop_new(k, ranges[n], 1, &u);
  return u;
}

/* A loop that fills a memory with one value. */
static UOp *filled(Panels *p, UOp *memory, UOp *value) {
  Kernel *k = p->k;
  UOp *range = kernel_range(k, num(k, memory->arg.param.nelem), AXIS_LOOP, NULL);
  UOp *u = range && value ? write_new(k, at(k, memory, range), value, 0, NULL) : NULL;
  bool ok = u && vec_push(k->mem, &p->shaped, ((Shaped){range, NULL, 0}));
  return ok ? loop_new(k, range, 1, &u) : NULL;
}

static bool was_padded(const Panels *p, const UOp *memory) {
  for (size_t i = 0; i < p->padded.len; i++)
    if (p->padded.at[i] == memory) return true;
  return false;
}

static bool is_padded(const Product *d) {
  int64_t steps = 1;
  for (int i = 0; i < d->n; i++)
    steps *= trips_of(d->range[i]);
  return steps != d->depth;
}

static bool fill(Panels *p, UOp *memory, UOp *value, UOpVec *out) {
  return vec_push(p->k->mem, out, filled(p, memory, value)) && out->at[out->len - 1];
}

/* Fills the padding, before everything else. Copies write all elements except the zeros that the unit reads
 * past the end of a sum, so those are written once. */
static bool pad(Panels *p) {
  Kernel *k = p->k;
  UOpVec all = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < p->products.len; i++)
    for (int role = MATRIX_A; ok && is_padded(&p->products.at[i]) && role <= MATRIX_B; role++) {
      UOp *memory = p->products.at[i].memory[role];
      if (was_padded(p, memory)) continue;
      ok = vec_push(k->mem, &p->padded, memory) &&
           fill(p, memory, uop_const_int(k->st, (DType)memory->dtype, 0), &all);
    }
  for (size_t i = 0; ok && i < p->products.len; i++)
    if (p->products.at[i].zero) ok = fill(p, p->products.at[i].zero_row, p->products.at[i].zero, &all);
  for (int i = 0; ok && i < k->sink->nsrc; i++)
    ok = vec_push(k->mem, &all, k->sink->src[i]);
  UOp *sink = ok ? uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)all.len, all.at, k->sink->arg) : NULL;
  vec_free(k->mem, &all);
  return sink && (k->sink = sink);
}

/* A loop nest that copies `trips` rows of a or columns of b, starting at `base`. The lanes are along the loop
 * in which loads are vectors. If the panel is strided along that loop, a tile is transposed in registers
 * (expand.c). */
static UOp *copy_of(Panels *p, Product *d, MatrixRole role, UOp *base, int64_t trips) {
  Kernel *k = p->k;
  UOp *side = role == MATRIX_A ? p->outer->src[0] : p->inner->src[0], *from[2 * MAX_AXES + 1];
  UOp *to[2 * MAX_AXES + 1], *loops[MAX_AXES + 1], *depth = num(k, 0);
  UOp *iter = kernel_range(k, num(k, trips), AXIS_LOOP, NULL);
  int n = 0;
  int64_t place = d->inner;
  for (int i = d->n; iter && i-- > 0;) {
    UOp *r = kernel_range(k, d->range[i]->src[0], AXIS_LOOP, NULL);
    if (!r) return NULL;
    from[n] = d->range[i];
    to[n++] = r;
    bool last = i == d->n - 1;
    depth = ix(k, OPS_ADD, depth, last ? r : times(k, r, place));
    if (!last) place *= trips_of(d->range[i]);
    loops[i] = r;
  }
  from[n] = side;
  to[n++] = iter ? ix(k, OPS_ADD, base, iter) : NULL;
  /* a loop that is not made yet is skipped: panels that are copied whole do not move with it */
  for (int i = 0; i < p->between; i++)
    if (p->now[i]) {
      from[n] = p->range[i];
      to[n++] = p->now[i];
    }
  if (!to[d->n]) return NULL;
  UOp *inner = loops[d->n - 1];
  bool along = loads_apart(k, d->value[role], d->range[d->n - 1]) <= loads_apart(k, d->value[role], side);
  if (role == MATRIX_B) along &= loads_apart(k, d->value[role], side) > 0;
  UOp *value = kernel_with(k, d->value[role], n, from, to);
  UOp *to_place = role == MATRIX_A ? place_in_a(k, d, iter, depth) : place_in_b(k, d, depth, iter);
  UOp *u = value ? write_new(k, at(k, d->memory[role], to_place), value, 0, NULL) : NULL;
  if (role == MATRIX_A && along) { /* rows are copied as they are */
    memmove(loops + 1, loops, (size_t)d->n * sizeof *loops);
    loops[0] = iter;
  } else if (along) { /* words of a row are transposed */
    loops[d->n - 1] = iter;
    loops[d->n] = inner;
  } else
    loops[d->n] = iter;
  Shaped shaped = {along ? inner : iter, along ? iter : inner, LANES};
  if (role == MATRIX_A && along) shaped.tile = NULL;
  if (role == MATRIX_B && !along) shaped.rows = d->shape->operand[MATRIX_B].together;
  bool ok = u && vec_push(k->mem, &p->shaped, shaped);
  return ok ? loops_around(k, u, d->n + 1, loops) : NULL;
}

/* ---- blocks */
typedef struct Span { /* blocks of n rows or columns, from `first` on */
  int64_t first, blocks, n;
  UOp *block; /* the range of the loop over blocks, or 0 */
  UOp *base;  /* the first row or column of a block */
} Span;

static bool span_new(Kernel *k, Span *s, const UOp *of) {
  s->block = s->blocks > 1 ? range_of_blocks(k, num(k, s->blocks), AXIS_GLOBAL, of) : num(k, 0);
  s->base = ix(k, OPS_ADD, num(k, s->first), times(k, s->block, s->n));
  return s->base != NULL;
}

/* Whole blocks, and a tail. Returns the number of spans. */
static int spans_of(int64_t size, int64_t n, Span out[2]) {
  out[0] = (Span){.first = 0, .blocks = size / n, .n = n};
  out[1] = (Span){.first = size / n * n, .blocks = 1, .n = size % n};
  if (!out[0].blocks) out[0] = out[1];
  return size < n || size % n == 0 ? 1 : 2;
}

/* A statement in which the unit sums a[row + i, depth + k] * b[depth + k, column + j] over `steps` for m rows
 * and n columns. row NULL: every row of a is the row of zeros. */
static UOp *unit_sums(Kernel *k, const Product *d, const int64_t size[3], UOp *row, UOp *column, UOp *piece,
                      UOp *to) {
  int64_t m = size[0], n = size[1], steps = size[2];
  UOp *i = kernel_range(k, num(k, m), AXIS_UPCAST, NULL), *j = kernel_range(k, num(k, n), AXIS_UPCAST, NULL);
  UOp *step = kernel_range(k, num(k, steps), AXIS_UPCAST, NULL);
  if (!i || !j || !step) return NULL;
  UOp *depth = ix(k, OPS_ADD, times(k, piece, steps), step), *list[3] = {i, j, step};
  UOp *a = row ? at(k, d->memory[MATRIX_A], place_in_a(k, d, ix(k, OPS_ADD, row, i), depth))
               : at(k, d->zero_row, depth);
  UOp *b = at(k, d->memory[MATRIX_B], place_in_b(k, d, depth, ix(k, OPS_ADD, column, j)));
  UOp *place = ix(k, OPS_ADD, row ? times(k, piece, m * n) : column, ix(k, OPS_ADD, times(k, i, n), j));
  Arg which = {.i = d->shape - matrix_shapes};
  UOp *sum = a && b ? UNEW(k->st, OPS_WMMA, (DType)to->dtype, 1, which, a, b, step) : NULL;
  return sum ? write_new(k, at(k, to, place), sum, 3, list) : NULL;
}

/* Computes all sums of a block, piece by piece. */
static UOp *sums_of(Panels *p, const Product *d, const Span *rows, const Span *columns) {
  Kernel *k = p->k;
  int64_t m = up_to(rows->n, d->shape->m), n = up_to(columns->n, d->shape->n), pieces = d->depth / d->piece;
  UOp *piece = pieces > 1 ? kernel_range(k, num(k, pieces), AXIS_LOOP, NULL) : num(k, 0);
  UOp *row = d->before[MATRIX_A] ? rows->base : num(k, 0);
  const int64_t size[3] = {m, n, d->piece};
  UOp *u = piece && row ? unit_sums(k, d, size, row, columns->base, piece, d->memory[MATRIX_C]) : NULL;
  return u && pieces > 1 ? loop_new(k, piece, 1, &u) : u;
}

/* Appends the sums of the row of zeros. They are computed together with the panels of b that they are made
 * from. */
static bool push_too_much(Panels *p, const Product *d, UOpVec *out) {
  Kernel *k = p->k;
  int64_t columns = trips_of(p->inner->src[0]), one, n;
  Span of[2];
  bool ok = true;
  matrix_block(d->shape, 1, columns, &one, &n);
  int spans = d->zero ? spans_of(columns, n, of) : 0;
  for (int s = 0; ok && s < spans; s++) {
    UOp *block = of[s].blocks > 1 ? kernel_range(k, num(k, of[s].blocks), AXIS_LOOP, NULL) : num(k, 0);
    UOp *base = block ? ix(k, OPS_ADD, num(k, of[s].first), times(k, block, of[s].n)) : NULL;
    const int64_t size[3] = {1, up_to(of[s].n, d->shape->n), d->depth};
    UOp *u = base ? unit_sums(k, d, size, NULL, base, num(k, 0), d->too_much) : NULL;
    ok = u && vec_push(k->mem, out, loop_new(k, block, 1, &u)) && out->at[out->len - 1];
  }
  return ok;
}

/* Replaces the reduction: adds up the pieces of its sum. */
static UOp *sum_read(Panels *p, const Product *d, UOp *i, UOp *j, const Span *rows, const Span *columns) {
  Kernel *k = p->k;
  int64_t m = up_to(rows->n, d->shape->m), n = up_to(columns->n, d->shape->n), pieces = d->depth / d->piece;
  UOp *piece = pieces > 1 ? kernel_range(k, num(k, pieces), AXIS_REDUCE, NULL) : num(k, 0);
  UOp *place = ix(k, OPS_ADD, times(k, i, n), ix(k, OPS_ADD, times(k, piece, m * n), j));
  UOp *sum = at(k, d->memory[MATRIX_C], place);
  UOp *over = sum && d->zero ? at(k, d->too_much, ix(k, OPS_ADD, columns->base, j)) : NULL;
  if (d->zero) sum = over ? UNEW(k->st, OPS_SUB, (DType)sum->dtype, 1, ARG0, sum, over) : NULL;
  UOp *u = sum ? acc_new(k, OPS_ADD, d->acc->src[0], sum, 0, NULL) : NULL;
  return u && pieces > 1 ? loop_new(k, piece, 1, &u) : u;
}

static UOp *block_of(Panels *p, const Span *rows, const Span *columns) {
  Kernel *k = p->k;
  UOp *r = p->outer->src[0], *c = p->inner->src[0];
  UOp *i = rows->n > 1 ? kernel_range(k, num(k, rows->n), AXIS_GLOBAL, r) : num(k, 0);
  UOp *j = columns->n > 1 ? kernel_range(k, num(k, columns->n), AXIS_GLOBAL, c) : num(k, 0);
  UOp *body = i && j ? body_of(k, p->inner) : NULL, *from[MAX_AXES + 2], *to[MAX_AXES + 2];
  UOpVec all = {0};
  bool ok = body != NULL;
  for (size_t d = 0; ok && d < p->products.len; d++) {
    const Product *product = &p->products.at[d];
    UOp *read = sum_read(p, product, i, j, rows, columns);
    body = read ? nest_replace(k, body, product->loop, 1, &read) : NULL;
    ok = body && vec_push(k->mem, &all, sums_of(p, product, rows, columns)) && all.at[d];
  }
  from[0] = r;
  to[0] = ok ? ix(k, OPS_ADD, rows->base, i) : NULL;
  from[1] = c;
  to[1] = ok ? ix(k, OPS_ADD, columns->base, j) : NULL;
  memcpy(from + 2, p->range, (size_t)p->between * sizeof *from);
  memcpy(to + 2, p->now, (size_t)p->between * sizeof *to);
  if (ok) body = to[0] && to[1] ? nest_copy(k, body, 2 + p->between, from, to) : NULL;
  UOp *inside = body ? loop_new(k, j, body->nsrc, body->src) : NULL;
  if (inside) inside = loop_new(k, i, 1, &inside);
  ok = ok && inside && vec_push(k->mem, &all, inside);
  UOp *loop = ok ? loop_new(k, columns->block, (int)all.len, all.at) : NULL;
  vec_free(k->mem, &all);
  return loop;
}

/* The loop between the two after which an operand is copied (its number), or -1: before all of them. */
static int level_of(Panels *p, const Product *d, MatrixRole role) {
  int level = -1;
  for (int i = 0; i < p->between; i++)
    if (depends(p->k, d->value[role], p->range[i])) level = i;
  return level;
}

static bool copies_at(Panels *p, int level, const Span *rows, UOpVec *out) {
  Kernel *k = p->k;
  int64_t columns = trips_of(p->inner->src[0]);
  bool ok = true;
  for (size_t i = 0; ok && i < p->products.len; i++) {
    Product *d = &p->products.at[i];
    if (!d->before[MATRIX_A] && level_of(p, d, MATRIX_A) == level)
      ok = vec_push(k->mem, out, copy_of(p, d, MATRIX_A, rows->base, rows->n)) && out->at[out->len - 1];
    if (ok && !d->before[MATRIX_B] && level_of(p, d, MATRIX_B) == level)
      ok = vec_push(k->mem, out, copy_of(p, d, MATRIX_B, num(k, 0), columns)) && out->at[out->len - 1] &&
           push_too_much(p, d, out);
  }
  return ok;
}

/* The nest of a span of rows, from loop `level` of the loops between inwards. */
static UOp *rows_from(Panels *p, int level, const Span *rows) {
  Kernel *k = p->k;
  UOpVec body = {0};
  bool ok = copies_at(p, level, rows, &body);
  if (ok && level + 1 < p->between)
    ok = vec_push(k->mem, &body, rows_from(p, level + 1, rows)) && body.at[body.len - 1];
  else if (ok) {
    Span columns[2];
    int n = spans_of(trips_of(p->inner->src[0]), p->columns, columns);
    for (int i = 0; ok && i < n; i++)
      ok = span_new(k, &columns[i], p->inner->src[0]) &&
           vec_push(k->mem, &body, block_of(p, rows, &columns[i])) && body.at[body.len - 1];
  }
  UOp *r = level < 0 ? rows->block : p->now[level];
  UOp *loop = ok ? loop_new(k, r, (int)body.len, body.at) : NULL;
  vec_free(k->mem, &body);
  return loop;
}

static bool all_rows(Panels *p, UOpVec *out) {
  Kernel *k = p->k;
  Span rows[2];
  int n = spans_of(trips_of(p->outer->src[0]), p->rows, rows);
  bool ok = true;
  for (int s = 0; ok && s < n; s++) {
    for (int i = 0; ok && i < p->between; i++)
      ok = (p->now[i] = kernel_range(k, p->range[i]->src[0], AXIS_GLOBAL, p->range[i])) != NULL;
    ok = ok && span_new(k, &rows[s], p->outer->src[0]) && vec_push(k->mem, out, rows_from(p, -1, &rows[s])) &&
         out->at[out->len - 1];
  }
  return ok;
}

/* ---- panels that are copied whole, before all outer loops that they do not depend on. Panels of a are
 * copied whole only if there are such loops. Otherwise each block of rows copies its own, which are then in a
 * near cache when they are read. */
static bool find_before(Panels *p, Product *d, MatrixRole role) {
  Kernel *k = p->k;
  PlaceVec places = {0};
  UOp *u = p->outer;
  size_t i = 0;
  if (level_of(p, d, role) >= 0) return true;
  bool ok = nest_places(k, k->sink, &places);
  while (ok && i < places.len && places.at[i].u != u)
    i++;
  for (int up = ok && i < places.len ? places.at[i].up : -1; up >= 0; up = places.at[up].up) {
    UOp *loop = places.at[up].u;
    if (depends(k, d->value[role], loop->src[0]) || changes(k, loop, d->value[role])) break;
    u = loop;
  }
  vec_free(k->mem, &places);
  if (role == MATRIX_B || u != p->outer) d->before[role] = u;
  return ok;
}

static bool make_whole(Panels *p, Product *d, MatrixRole role) {
  Kernel *k = p->k;
  const UOp *side = role == MATRIX_A ? p->outer->src[0] : p->inner->src[0];
  UOpVec with = {0};
  bool ok = vec_push(k->mem, &with, copy_of(p, d, role, num(k, 0), trips_of(side))) && with.at[0];
  if (ok && role == MATRIX_B) ok = push_too_much(p, d, &with);
  ok = ok && vec_push(k->mem, &with, d->before[role]);
  UOp *sink = ok ? nest_replace(k, k->sink, d->before[role], (int)with.len, with.at) : NULL;
  vec_free(k->mem, &with);
  return sink && (k->sink = sink);
}

/* Each edit rebuilds the loops around it, so the statement must be found again. */
static bool panels_whole(Panels *p) {
  bool ok = true;
  for (size_t i = 0; ok && i < p->products.len; i++)
    for (int role = MATRIX_A; ok && role <= MATRIX_B; role++) {
      Product *d = &p->products.at[i];
      ok = !d->before[role] || (find_before(p, d, (MatrixRole)role) && make_whole(p, d, (MatrixRole)role));
    }
  return ok;
}

/* ---- the shape of the copies */
static UOp *loop_over(Kernel *k, const UOp *range) {
  PlaceVec places = {0};
  UOp *loop = NULL;
  bool ok = nest_places(k, k->sink, &places);
  for (size_t i = 0; ok && i < places.len && !loop; i++)
    if (is_loop(places.at[i].u) && places.at[i].u->src[0] == range) loop = places.at[i].u;
  vec_free(k->mem, &places);
  return loop;
}

/* Splits a loop into parts of n iterations of this type, and a tail. */
static bool shape(Kernel *k, const UOp *range, AxisType type, int64_t n) {
  UOp *loop = loop_over(k, range);
  if (!loop) return true; /* a loop of one iteration is no longer there */
  int64_t size = trips_of(range), whole = size / n, rest = size % n;
  Part part[2] = {{num(k, 0), num(k, whole), num(k, n), type, NULL, false},
                  {num(k, whole * n), num(k, 1), num(k, rest), type, NULL, false}};
  if (!whole) part[0] = part[1];
  return in_parts(k, loop, loop, part, whole && rest ? 2 : 1, false);
}

static bool shape_copies(Panels *p) {
  bool ok = true;
  for (size_t i = 0; ok && i < p->shaped.len; i++) {
    const Shaped *s = &p->shaped.at[i];
    ok = shape(p->k, s->lanes, AXIS_VEC, LANES) && (!s->tile || shape(p->k, s->tile, AXIS_UPCAST, s->rows));
  }
  return ok;
}

static bool find_between(Panels *p) {
  for (UOp *l = p->outer->src[1]; l != p->inner; l = l->src[1]) {
    if (p->between == MAX_AXES) return cannot(p, "too many loops between");
    p->now[p->between] = NULL;
    p->range[p->between++] = l->src[0];
  }
  return true;
}

static bool in_panels(Panels *p) {
  Kernel *k = p->k;
  int64_t rows = trips_of(p->outer->src[0]), columns = trips_of(p->inner->src[0]);
  const MatrixShape *s = p->products.at[0].shape;
  bool ok = true;
  matrix_block(s, rows, columns, &p->rows, &p->columns);
  for (size_t i = 0; ok && i < p->products.len; i++)
    ok = find_before(p, &p->products.at[i], MATRIX_A) && find_before(p, &p->products.at[i], MATRIX_B) &&
         memory_new(p, &p->products.at[i]);
  UOpVec all = {0};
  ok = ok && panels_whole(p) && all_rows(p, &all);
  UOp *sink = ok ? nest_replace(k, k->sink, p->outer, (int)all.len, all.at) : NULL;
  vec_free(k->mem, &all);
  return sink && (k->sink = sink) && pad(p) && (k->sink = nest_simplify(k, k->sink)) && shape_copies(p);
}

/* Applies the opt to the nest that begins with the loop over `range`. A nest without products stays as it
 * is. */
static bool one_nest(Panels *p, const Opt *o, const UOp *range) {
  Kernel *k = p->k;
  Facts f = {0};
  p->outer = loop_over(k, range);
  p->inner = NULL;
  p->products.len = p->shaped.len = 0;
  p->between = 0;
  for (UOp *l = p->outer ? alone(p->outer) : NULL; l && !p->inner; l = alone(l))
    if (range_root(l->src[0]) == o->n) p->inner = l;
  if (!p->inner) return true;
  for (UOp *l = p->outer;; l = l->src[1]) {
    if (loop_type(l) != AXIS_GLOBAL || !is_const(l->src[0]->src[0]))
      return cannot(p, "a loop of it is not of the grid, or its length is not known");
    if (l == p->inner) break;
  }
  bool ok = facts_of(k, p->outer, &f);
  if (ok && f.rows.len) ok = cannot(p, "local memory is filled anew in each of its iterations");
  facts_free(k, &f);
  return ok && find_between(p) && find_products(p) && (!p->products.len || (p->any = true, in_panels(p)));
}

/* If a TILE has divided the loop into parts, there are several nests. */
bool opt_panels(Kernel *k, const Opt *o, const char **why) {
  Panels p = {.k = k};
  PlaceVec places = {0};
  UOpVec ranges = {0};
  bool ok = true;
  if (!matrix_units(k))
    ok = cannot(&p, "the device has no matrix units");
  else if (k->list.len && k->list.at[0].op == OPT_ONLINE)
    ok = cannot(&p, "not inside an ONLINE");
  ok = ok && nest_places(k, k->sink, &places);
  for (size_t i = 0; ok && i < places.len; i++) {
    UOp *u = places.at[i].u;
    bool rows = is_loop(u) && range_root(u->src[0]) == o->r && !is_block(u->src[0]);
    if (rows) ok = vec_push(k->mem, &ranges, u->src[0]);
  }
  for (size_t i = 0; ok && i < ranges.len; i++)
    ok = one_nest(&p, o, ranges.at[i]);
  if (ok && !p.any) ok = cannot(&p, "no nest of both sums products of types that a matrix unit here has");
  vec_free(k->mem, &places), vec_free(k->mem, &ranges), vec_free(k->mem, &p.products);
  vec_free(k->mem, &p.shaped), vec_free(k->mem, &p.padded), vec_free(k->mem, &p.near);
  *why = ok ? NULL : p.why;
  return ok;
}
