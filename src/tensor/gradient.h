/* gradient.h: what the rules of rules/gradient.rules call, and what they become. */
#ifndef TG_GRADIENT_H
#define TG_GRADIENT_H
#include "uop/uop.h"
/* The gradients of self's sources into out; those that get none keep what out had. 1: done, 0: out of memory
 * or an error, -1: no rule. */
int gradient_rule(Rewrite *rw, UOp *self, UOp *g, UOp **out);

UOp *gradient_number(Rewrite *rw, const UOp *like, double v);
bool is_detached_zero(const UOp *u);                   /* the number 0 of any shape */
UOp *pull(Rewrite *rw, UOp *move, UOp *g);             /* the transposed movement */
UOp *moved_back(Rewrite *rw, const UOp *copy, UOp *g); /* to the device that was copied from */
UOp *gradient_of_reduce(Rewrite *rw, UOp *reduce, UOp *g);
UOp *gradient_of_scan(Rewrite *rw, UOp *scan, UOp *g);
UOp *gradient_of_gather(Rewrite *rw, UOp *gather, UOp *g);
UOp *gradient_of_target(Rewrite *rw, UOp *scatter, UOp *g);    /* of what a SCATTER started from, */
UOp *gradient_of_scattered(Rewrite *rw, UOp *scatter, UOp *g); /* and of what it scattered */
/* after an assignment to a view: of what was stored, */
UOp *gradient_of_stored(Rewrite *rw, UOp *after, UOp *g);
UOp *gradient_of_rest(Rewrite *rw, UOp *after, UOp *g); /* and of what was there before */
/* what memory holds after a store, as a value of what it held and of what is stored */
UOp *stored_as_value(Rewrite *rw, UOp *after);
#endif
