/* merge.c: how partial results of a reduction become one, and how a term changes with the result of another
 * reduction that it contains. In: ops, terms. Out: identities, answers to the questions of rules/rescale.rules
 * about the terms, and the correction of the result so far. The key fact is the table: each op that reduces is
 * one row. */
#include "uop/merge.h"

typedef enum None { ZERO, ONE, LEAST, ONES } None;

/* none: the identity. asks, by: if a number in all terms changes, each term changes by the answer to the mark
 * `asks`, and the result changes in the same way, by the op `by`. Without these a result cannot be rescaled. */
typedef struct Row {
  uint8_t op, none, asks, by;
} Row;

static const Row rows[] = {{OPS_ADD, ZERO, OPS_SCALE, OPS_MUL}, {OPS_MAX, LEAST, OPS_SHIFT, OPS_ADD},
                           {.op = OPS_MUL, .none = ONE},        {.op = OPS_AND, .none = ONES},
                           {.op = OPS_OR, .none = ZERO},        {.op = OPS_ADD2, .none = ZERO}};

static const Row *row_of(int64_t op) {
  for (size_t i = 0; i < TG_COUNT(rows); i++)
    if (rows[i].op == op) return rows + i;
  return NULL;
}

bool op_reduces(int64_t op) { return row_of(op) != NULL; }

Scalar op_identity(Ops op, DType d) {
  const Row *row = row_of(op);
  int none = row ? row->none : ZERO;
  if (none == LEAST) return dtype_least(d);
  if (none == ONES) return scalar_round(d, (Scalar){.i = -1});
  return dtype_is_float(d) ? (Scalar){.f = none} : (Scalar){.i = none};
}

UOp *uop_identity(UOpStore *st, Ops op, int dtype) {
  return uop_const(st, (DType)dtype, op_identity(op, (DType)dtype));
}

/* ---- terms that contain another result */
enum { MOST_SEARCHED = 512 };

/* Searches x and the nodes below it, each once. Returns true if a node is found for which `is` returns true,
 * or if there are too many nodes to search. */
static bool search(UOp *x, bool (*is)(const UOp *u, const void *what), const void *what) {
  UOp *seen[MOST_SEARCHED] = {x};
  int n = 1;
  for (int i = 0; i < n; i++) {
    if (is(seen[i], what)) return true;
    for (int s = 0; s < seen[i]->nsrc; s++) {
      int had = 0;
      while (had < n && seen[had] != seen[i]->src[s])
        had++;
      if (had == MOST_SEARCHED) return true;
      if (had == n) seen[n++] = seen[i]->src[s];
    }
  }
  return false;
}

static bool is_it(const UOp *u, const void *what) { return u == what; }

bool uses(UOp *x, const UOp *a) { return search(x, is_it, a); }

typedef struct Axis {
  const UOpVec *ranges;
  const UOp *but;
} Axis;

static bool moves(const UOp *u, const void *what) {
  const Axis *axis = what;
  bool listed = !axis->ranges;
  for (size_t i = 0; !listed && i < axis->ranges->len; i++)
    listed = axis->ranges->at[i] == u;
  if (u->op == OPS_RANGE) return listed;
  return u->op == OPS_INDEX && u->src[0]->op == OPS_DEFINE_REG && u != axis->but;
}

bool is_free(const UOpVec *axes, UOp *x, const UOp *a) { return !search(x, moves, &(Axis){axes, a}); }

UOp *with(Rewrite *rw, UOp *x, UOp *a, UOp *b) { return uop_substitute(rw->st, rw->mem, x, 1, &a, &b); }

UOp *change_of(UOpStore *st, TgMem *mem, Ops op, const UOpVec *axes, UOp *term, UOp *before, UOp *now) {
  const Row *row = row_of(op);
  bool can = row && row->asks && term;
  UOp *asked = can ? UNEW(st, (Ops)row->asks, (DType)term->dtype, 1, ARG0, term, before, now) : NULL;
  return asked ? uop_simplify(st, mem, uop_answer(st, mem, pm_rescale, (void *)axes, asked)) : NULL;
}

UOp *rescaled(UOpStore *st, Ops op, UOp *old, UOp *change, UOp *before, UOp *now) {
  UOp *first = uop_alu2(st, OPS_CMPEQ, before, uop_identity(st, OPS_MAX, now->dtype));
  UOp *moved = uop_alu2(st, (Ops)row_of(op)->by, old, change);
  moved = uop_where(st, first, uop_identity(st, op, old->dtype), moved);
  return uop_where(st, uop_alu2(st, OPS_CMPEQ, before, now), old, moved);
}
