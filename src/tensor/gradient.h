/* gradient.h: the functions that the rules of rules/gradient.rules call, and the function that these rules
 * become. */
#ifndef TG_GRADIENT_H
#define TG_GRADIENT_H
#include "uop/uop.h"
/* Puts the gradients of self's sources into out; sources that get none keep what out had. Returns 1: done,
 * 0: out of memory or an error, -1: there is no rule. */
int gradient_rule(Rewrite *rw, UOp *self, UOp *g, UOp **out);

UOp *gradient_number(Rewrite *rw, const UOp *like, double v);
bool is_detached_zero(const UOp *u);                   /* a detached number 0 of any shape */
UOp *pull(Rewrite *rw, UOp *move, UOp *g);             /* applies the transposed movement */
UOp *moved_back(Rewrite *rw, const UOp *copy, UOp *g); /* copies it to the device that was copied from */
UOp *gradient_of_reduce(Rewrite *rw, UOp *reduce, UOp *g);
UOp *gradient_of_scan(Rewrite *rw, UOp *scan, UOp *g);
UOp *gradient_of_gather(Rewrite *rw, UOp *gather, UOp *g);
UOp *gradient_of_target(Rewrite *rw, UOp *scatter, UOp *g);    /* for the target of a SCATTER .. */
UOp *gradient_of_scattered(Rewrite *rw, UOp *scatter, UOp *g); /* .. and for what it scattered */
/* After an assignment to a view: for what was stored .. */
UOp *gradient_of_stored(Rewrite *rw, UOp *after, UOp *g);
UOp *gradient_of_rest(Rewrite *rw, UOp *after, UOp *g); /* .. and for what was there before */
/* What memory holds after a store, as a value computed from its contents before and what is stored. */
UOp *stored_as_value(Rewrite *rw, UOp *after);
#endif
