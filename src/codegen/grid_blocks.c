/* grid_blocks.c: how many blocks of a grid have work to do, once a variable's value is known. In: a linear
 * program for a grid. Out: for each axis a bound that is linear in the variables (GridBlocks, uop.h); a
 * launch uses it to make the grid smaller.
 *
 * The key fact: a grid has room for the longest that a loop of symbolic length may be, and every store
 * inside that loop is gated. A block whose stores are all gated off does nothing. So the gates say how
 * many blocks are needed, whatever the opts made of the loop. */
#include "codegen/codegen.h"
#include <string.h>

/* A lower bound of an expression: min + block * the block's number + the sum of by[i] * variable i. */
typedef struct Least {
  int64_t min, block, by[MOST_BLOCK_VARS];
} Least;

typedef struct Axis {
  const Linear *lin;
  const UOp *block; /* the SPECIAL that is the block's number along this axis */
} Axis;

/* The number of a variable among the variables of the list; -1: it is no variable, or there are too many. */
static int number_of(const Linear *lin, const UOp *u) {
  int n = 0;
  for (int i = 0; u->op == OPS_VAR && lin->at[i] != u; i++)
    n += lin->at[i]->op == OPS_VAR;
  return u->op == OPS_VAR && n < MOST_BLOCK_VARS ? n : -1;
}

static bool added(int64_t *to, int64_t k, int64_t v) {
  int64_t part;
  return !__builtin_mul_overflow(k, v, &part) && !__builtin_add_overflow(*to, part, to);
}

/* Adds a lower bound of k * u to *out. Returns false if there is none or it is too large. */
static bool least_of(const Axis *a, const UOp *u, int64_t k, Least *out) {
  if (u->op == OPS_ADD || u->op == OPS_SUB)
    return k != INT64_MIN && least_of(a, u->src[0], k, out) &&
           least_of(a, u->src[1], u->op == OPS_SUB ? -k : k, out);
  int64_t by;
  if (u->op == OPS_MUL && is_const(u->src[1]) && !__builtin_mul_overflow(k, u->src[1]->arg.v.i, &by))
    return least_of(a, u->src[0], by, out);
  if (u == a->block) return added(&out->block, k, 1);
  int v = number_of(a->lin, u);
  if (v >= 0) return added(&out->by[v], k, 1);
  int64_t end = k < 0 ? u->vmax : u->vmin;
  return end != INT64_MIN && end != INT64_MAX && added(&out->min, k, end);
}

/* Whether a condition implies that all blocks from some number on do nothing; *out: that number. The
 * condition is left < right, which is left - right < 0. */
static bool bounds(const Axis *a, const UOp *gate, GridBlocks *out) {
  if (gate->op == OPS_AND) return bounds(a, gate->src[0], out) || bounds(a, gate->src[1], out);
  Least l = {0};
  bool is = gate->op == OPS_CMPLT && gate->src[0]->dtype == DT_INDEX && least_of(a, gate->src[0], 1, &l) &&
            least_of(a, gate->src[1], -1, &l) && l.block > 0 && l.min > INT64_MIN / 2;
  bool varies = false;
  for (int i = 0; is && i < MOST_BLOCK_VARS; i++)
    varies |= l.by[i] != 0;
  if (!is || !varies) return false;
  *out = (GridBlocks){.each = l.block,
                      /* The work is in blocks < (-min - by[] * variables) / each. */
                      .add = -l.min + l.block - 1};
  for (int i = 0; i < MOST_BLOCK_VARS; i++)
    out->by[i] = -l.by[i];
  return true;
}

/* The bound that the gates of all stores to memory imply; zeros (no bound) if they differ or a store has
 * none. */
static GridBlocks blocks_along(const Axis *a) {
  GridBlocks all = {0}, one;
  for (int i = 0; i < a->lin->n; i++) {
    const UOp *u = a->lin->at[i], *x = u->op == OPS_STORE ? uop_base(u->src[0]) : NULL;
    if (!x || x->op != OPS_INDEX || uop_base(x->src[0])->op != OPS_PARAM) continue;
    const UOp *gate = index_gate(x);
    if (!gate || !bounds(a, gate, &one)) return (GridBlocks){0};
    if (all.each && memcmp(&all, &one, sizeof all) != 0) return (GridBlocks){0};
    all = one;
  }
  return all;
}

void grid_blocks(Linear *lin) {
  bool varies = false;
  for (int i = 0; i < lin->n; i++)
    varies |= lin->at[i]->op == OPS_VAR;
  for (int i = 0; varies && i < lin->n; i++) {
    const UOp *u = lin->at[i];
    if (u->op == OPS_SPECIAL && !u->arg.special.local)
      lin->blocks[u->arg.special.dim] = blocks_along(&(Axis){lin, u});
  }
}
