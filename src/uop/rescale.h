/* rescale.h: the C functions that rules/rescale.rules calls (rescale.c). */
#ifndef TG_RESCALE_H
#define TG_RESCALE_H
#include "uop/rules.h"

/* rules/rescale.rules: answers SCALE and SHIFT; rw->ctx: the ranges of the axis */
UOp *pm_rescale(Rewrite *rw, UOp *self);
bool uses(UOp *x, const UOp *a); /* whether a is x or below it; true if x is too large to search */
/* Whether x is the same in every iteration of the axis: it depends on none of the axis's ranges (axes NULL:
 * on no range at all), and reads no register except a. */
bool is_free(const UOpVec *axes, UOp *x, const UOp *a);
UOp *with(Rewrite *rw, UOp *x, UOp *a, UOp *b); /* x with a replaced by b */
/* Corrects `old`, a sum or maximum of terms computed with the maximum `before`, to the maximum `now`. change:
 * the SCALE or SHIFT of each term. While only the identity has been seen, before = -inf and `old` is dropped,
 * because its terms were computed from -inf - -inf. */
UOp *rescaled(UOpStore *st, Ops op, UOp *old, UOp *change, UOp *before, UOp *now);
#endif
