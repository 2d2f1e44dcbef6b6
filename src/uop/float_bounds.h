/* float_bounds.h: bounds on the value of a float, NaN aside: float_bounds.c. */
#ifndef TG_FLOAT_BOUNDS_H
#define TG_FLOAT_BOUNDS_H
#include "uop/uop.h"

typedef struct Bounds {
  double lo, hi;
} Bounds;

Bounds bounds_of(const UOp *x);
bool is_less_maximum(const UOp *x); /* x is a value minus the REDUCE[MAX] of values among which it is */
#endif
