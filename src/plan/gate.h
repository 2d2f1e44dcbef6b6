/* gate.h: how often a condition on loops holds. In: the condition. Out: the share of all iterations of its
 * loops, from 0 to 1. A condition compares a sum of loops with 0. The sum of its two longest loops is treated
 * exactly. */
#ifndef TG_GATE_H
#define TG_GATE_H
#include "uop/uop.h"

/* The share of iterations in which the condition holds (or does not, if `holds` is false). 1 if that is not
 * known, as for conditions on data or quotients. */
double gate_share(const UOp *condition, bool holds);
#endif
