/* decompose.h: what rules/decompose.rules asks in C. */
#ifndef TG_DECOMPOSE_H
#define TG_DECOMPOSE_H
#include "codegen/codegen.h"

/* ---- what the target has */
static inline bool has(const Kernel *k, Ops op) { return op_in_set(k->ren->native, op); }

static inline bool lacks(const Kernel *k, Ops op) { return !has(k, op); }

static inline bool is_too_narrow(const Kernel *k, const UOp *f) {
  bool computes = (f->dtype == DT_F16 && k->ren->has_f16) || (f->dtype == DT_BF16 && k->ren->has_bf16);
  return is_narrow_float(f) && !computes;
}

/* ---- between which numbers a float lies, where it is a number: float_bounds.c */
typedef struct Bounds {
  double lo, hi;
} Bounds;

Bounds bounds_of(const UOp *x);
bool is_less_maximum(const UOp *x); /* SUB of a REDUCE[MAX]: of values that src0 is one of */

/* ---- division by a constant */
static inline int log2_of(const UOp *power) { return __builtin_ctzll((uint64_t)power->arg.v.i); }

UOp *sign_of(Rewrite *rw, UOp *s); /* -1 where s < 0, else 0 */
/* n / c for 0 <= n; an n that may be less by its bounds is known not to be. NULL: no product is right, or
 * none is better than the compiler's own. */
UOp *by_product(Rewrite *rw, const Kernel *k, UOp *n, const UOp *c);
UOp *of_magnitude(Rewrite *rw, const Kernel *k, UOp *s, const UOp *c); /* s / c toward zero, or NULL */

/* ---- written out */
UOp *pow_of_bits(Rewrite *rw, UOp *n, UOp *m);
UOp *dot_of_words(Rewrite *rw, UOp *dot);
UOp *lookup_of_words(Rewrite *rw, UOp *lookup);
UOp *threefry(Rewrite *rw, UOp *counter, UOp *key);
UOp *exp_of(Rewrite *rw, const Kernel *k, UOp *exp);
UOp *exp2_of(Rewrite *rw, const Kernel *k, UOp *f);
UOp *log_of(Rewrite *rw, const Kernel *k, UOp *f);
UOp *log2_of_float(Rewrite *rw, const Kernel *k, UOp *f);
UOp *sin_of(Rewrite *rw, const Kernel *k, UOp *f);
UOp *cos_of(Rewrite *rw, const Kernel *k, UOp *f);
UOp *tan_of(Rewrite *rw, const Kernel *k, UOp *f);
UOp *tanh_of(Rewrite *rw, const Kernel *k, UOp *f);
UOp *pow_of(Rewrite *rw, const Kernel *k, UOp *f, UOp *g);
#endif
