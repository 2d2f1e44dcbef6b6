/* merge.h: how partial results of a reduction become one (merge.c): the table of the ops that reduce, and what
 * rules/rescale.rules calls. Partial results are merged by the op itself. If all terms contain the result of
 * another reduction, a maximum, they are rescaled first: from that of the part to that of the whole. */
#ifndef TG_MERGE_H
#define TG_MERGE_H
#include "uop/rules.h"

bool op_reduces(int64_t op);
UOp *uop_identity(UOpStore *st, Ops op, int dtype); /* op_identity as a constant */
/* How the terms of a reduction by op change when the number `before` in them becomes `now`: by a factor (ADD) or
 * by what is added (MAX). axes: the ranges of the reduction. NULL: in no way that is the same for all terms. */
UOp *change_of(UOpStore *st, TgMem *mem, Ops op, const UOpVec *axes, UOp *term, UOp *before, UOp *now);
/* Corrects `old`, a result of terms computed with the maximum `before`, to the maximum `now`. change: as change_of
 * answers. While only the identity has been seen, before = -inf and `old` is dropped, because its terms were
 * computed from -inf - -inf. */
UOp *rescaled(UOpStore *st, Ops op, UOp *old, UOp *change, UOp *before, UOp *now);

/* rules/rescale.rules: answers SCALE and SHIFT; rw->ctx: the ranges of the axis */
UOp *pm_rescale(Rewrite *rw, UOp *self);
bool uses(UOp *x, const UOp *a); /* whether a is x or below it; true if x is too large to search */
/* Whether x is the same in every iteration of the axis: it depends on none of the axis's ranges (axes NULL:
 * on no range at all), and reads no register except a. */
bool is_free(const UOpVec *axes, UOp *x, const UOp *a);
UOp *with(Rewrite *rw, UOp *x, UOp *a, UOp *b); /* x with a replaced by b */
#endif
