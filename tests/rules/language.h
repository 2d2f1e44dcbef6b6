/* language.h: what language.rules asks in C. */
#ifndef TG_LANGUAGE_H
#define TG_LANGUAGE_H
#include "uop/rules.h"

typedef struct Limits {
  int most_loops;
  bool off, literals;
} Limits;

UOp *pm_language(Rewrite *rw, UOp *self);

static inline bool all_ranges(UOpList r) {
  for (int i = 0; i < r.n; i++)
    if (r.at[i]->op != OPS_RANGE) return false;
  return true;
}

static inline bool keeps_sign(Ops op) { return op == OPS_ADD; }

static inline UOp *first_of(Rewrite *rw, const Limits *ctx, UOpList a, UOpList b) {
  return rw->ctx != ctx ? NULL : a.n ? a.at[0] : b.at[0];
}
#endif
