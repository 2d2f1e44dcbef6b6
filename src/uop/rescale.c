/* rescale.c: how a term changes with the result of another reduction that it contains. In: terms. Out:
 * answers to the questions of rules/rescale.rules about the terms, and the correction of the sum or maximum
 * so far. */
#include "uop/rescale.h"

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

UOp *rescaled(UOpStore *st, Ops op, UOp *old, UOp *change, UOp *before, UOp *now) {
  DType d = (DType)now->dtype;
  UOp *none = uop_const(st, d, op_identity(OPS_MAX, d));
  UOp *start = uop_const(st, (DType)old->dtype, op_identity(op, (DType)old->dtype));
  UOp *moved = change ? uop_alu2(st, op == OPS_ADD ? OPS_MUL : OPS_ADD, old, change) : NULL;
  UOp *dropped = moved ? uop_where(st, uop_alu2(st, OPS_CMPEQ, before, none), start, moved) : NULL;
  return dropped ? uop_where(st, uop_alu2(st, OPS_CMPEQ, before, now), old, dropped) : NULL;
}
