/* gate.h: how often a condition of loops holds. In: the condition. Out: the share of all iterations of its
 * loops, from 0 to 1. The one key fact: it is a sum of loops below 0, which of two loops is known exactly. */
#ifndef TG_GATE_H
#define TG_GATE_H
#include "uop/uop.h"

/* .. in which it holds, or does not; 1: not known, as of data or of a quotient. */
double gate_share(const UOp *condition, bool holds);
#endif
