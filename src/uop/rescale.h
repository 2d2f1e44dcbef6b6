/* rescale.h: what online reduction.rules asks in C (rescale.c). */
#ifndef TG_RESCALE_H
#define TG_RESCALE_H
#include "uop/rules.h"

UOp *pm_rescale(Rewrite *rw,
                UOp *self);      /* rules/rescale.rules: answers SCALE and SHIFT; ctx: ranges of the axis */
bool uses(UOp *x, const UOp *a); /* whether a is in x, as far as it is searched */
/* Whether x is the same in every iteration of the axis: it has none of its ranges (axes NULL: no range at
 * all), and reads no register but a. */
bool is_free(const UOpVec *axes, UOp *x, const UOp *a);
UOp *with(Rewrite *rw, UOp *x, UOp *a, UOp *b); /* x with b for a */
/* What `old`, a sum or maximum of terms with the maximum `before`, is with the maximum `now`; change: SCALE
 * or SHIFT of each term from one to the other. While nothing but the identity was seen, before = -inf, what
 * there is is dropped: it is what the terms make of -inf less -inf. */
UOp *rescaled(UOpStore *st, Ops op, UOp *old, UOp *change, UOp *before, UOp *now);
#endif
