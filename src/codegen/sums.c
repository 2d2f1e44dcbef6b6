/* sums.c: turns long sums of floats into sums of sums of blocks. In: a nest whose loops are shaped. Out: the
 * same nest, but a register that accumulates more than two blocks of values in a row does so in two levels.
 * Each block is added up from zero in a register of its own, and then added to the sum. A level that is still
 * long is cut again.
 *
 * A row of n additions to one accumulator has an error of at most n * u * sum |x|, with u = 2^-24 for f32. If
 * the sum is large and the addends are small, every addition rounds the same way and the error reaches this
 * bound: the mean of 1e8 values of 255 was computed as 255.96, the mean of 2^24 values of 0.1 as 0.09975.
 * With blocks of B the bound is 3 * B * u * sum |x| for up to 2 * B^3 values per accumulator, and B * u * sum
 * |x| more for each further level. B = 128 gives less than 3e-5 of sum |x| for any tensor. A sum of products
 * has blocks of 512, because its accumulators fill the registers, so each block costs a few moves of them,
 * and because its products round in all directions. Blocks are powers of two, so that sums of equal values
 * mostly stay exact.
 *
 * The cuts depend only on the loops' extents, so the bits are the same for any number of threads. A loop that
 * also writes memory is not cut, because rows are short. */
#include "codegen/split.h"

enum { BLOCK = 128, BLOCK_OF_PRODUCTS = 512, MOST_EDITS = 4096 };

static bool is_sum(const UOp *u) {
  DType d = (DType)u->src[u->nsrc > 1]->dtype;
  return u->op == OPS_ACC && u->arg.reduce.op == OPS_ADD && dtype_is_float(d) && d != DT_F64;
}

static double block_of(const UOp *sum) { return sum->src[1]->op == OPS_MUL ? BLOCK_OF_PRODUCTS : BLOCK; }

static bool in_a_row(const UOp *r) { /* its iterations are added to one accumulator, one after another */
  AxisType t = (AxisType)r->arg.range.type;
  return t == AXIS_REDUCE || t == AXIS_LOOP;
}

static double trips(const UOp *r) { return (double)TG_MAX(r->src[0]->vmax, 1); }

static double steps_of(const UOp *acc) { /* the number of additions in one execution of the statement */
  double n = 1;
  for (int i = 2; i < acc->nsrc; i++)
    if (acc->src[i]->arg.range.type == AXIS_UNROLL) n *= trips(acc->src[i]);
  return n;
}

/* Whether u writes memory, not counting what the threads of a block copy together. */
static bool writes_memory(const UOp *u) {
  if (u->op == OPS_STORE) return stored_in(u)->op != OPS_DEFINE_REG;
  for (int i = 1; u->op == OPS_LOOP && !is_shared(u) && i < u->nsrc; i++)
    if (writes_memory(u->src[i])) return true;
  return false;
}

/* ---- the two edits */
/* Cuts a loop into blocks of n iterations. The last block is the tail. */
static bool cut(Kernel *k, UOp *loop, int64_t n) {
  const UOp *r = loop->src[0];
  UOp *block = kernel_range(k, blocks_in(k, r->src[0], n), (AxisType)r->arg.range.type, NULL);
  UOp *now = loop_of_block(k, loop, block, n, NULL);
  now = now ? loop_new(k, block, 1, &now) : NULL;
  UOp *sink = now ? nest_replace(k, k->sink, loop, 1, &now) : NULL;
  return sink && (k->sink = nest_simplify(k, sink)) != NULL;
}

/* Lets `loop` add to a register of its own first, which is then added to acc's register. */
static bool level(Kernel *k, UOp *loop, UOp *acc) {
  UOp *x = acc->src[0];
  PartReg own = reg_part(k, acc, NULL);
  UOp *with[3] = {own.start, own.at ? kernel_with(k, loop, 1, &x, &own.at) : NULL, own.merge};
  UOp *sink = with[0] && with[1] && with[2] ? nest_replace(k, k->sink, loop, 3, with) : NULL;
  return sink && (k->sink = sink);
}

/* Makes one edit for the sum at place `here` if the sum is too long. */
static bool shorten(Kernel *k, const PlaceVec *at, int here, bool *edited) {
  UOp *acc = at->at[here].u, *block = NULL;
  int start = place_of_start(at, stored_in(acc)), home = start < 0 ? -1 : at->at[start].up;
  double size = steps_of(acc), all = size;
  for (int up = at->at[here].up; up != home && up >= 0; up = at->at[up].up)
    if (in_a_row(at->at[up].u->src[0])) all *= trips(at->at[up].u->src[0]);
  if (all <= 2 * block_of(acc)) return true;
  int up = at->at[here].up;
  for (; up != home && up >= 0; up = at->at[up].up) {
    UOp *loop = at->at[up].u;
    if (!in_a_row(loop->src[0])) continue;
    if (size * trips(loop->src[0]) > block_of(acc)) break;
    size *= trips(loop->src[0]);
    block = loop;
  }
  if (up == home || up < 0) return true; /* only one block is left */
  UOp *longer = at->at[up].u;
  if (size < block_of(acc) / 4 && !writes_memory(longer)) {
    int64_t n = (int64_t)(block_of(acc) / size);
    *edited = true;
    return cut(k, longer, INT64_C(1) << (63 - __builtin_clzll((uint64_t)n)));
  }
  if (!block) return true;
  *edited = true;
  return level(k, block, acc);
}

bool cut_sums(Kernel *k) {
  PlaceVec at = {0};
  bool ok = true, edited = true;
  for (int edits = 0; ok && edited && edits < MOST_EDITS; edits++) {
    edited = false;
    ok = nest_places(k, k->sink, &at);
    for (size_t i = 0; ok && !edited && i < at.len; i++)
      if (is_sum(at.at[i].u)) ok = shorten(k, &at, (int)i, &edited);
  }
  vec_free(k->mem, &at);
  return ok;
}
