/* decompose.h: the C functions that rules/decompose.rules calls. */
#ifndef TG_DECOMPOSE_H
#define TG_DECOMPOSE_H
#include "codegen/codegen.h"
#include "uop/float_bounds.h"

/* ---- what the target has */
static inline bool has(const Kernel *k, Ops op) { return op_in_set(k->ren->native, op); }

static inline bool lacks(const Kernel *k, Ops op) { return !has(k, op); }

static inline bool is_too_narrow(const Kernel *k, const UOp *f) {
  bool computes = (f->dtype == DT_F16 && k->ren->has_f16) || (f->dtype == DT_BF16 && k->ren->has_bf16);
  return is_narrow_float(f) && !computes;
}

/* ---- division by a constant */
static inline int log2_of(const UOp *power) { return __builtin_ctzll((uint64_t)power->arg.v.i); }

UOp *sign_of(Rewrite *rw, UOp *s); /* -1 if s < 0, else 0 */
/* n / c for n >= 0: the caller knows that n is not negative, even if the bounds of n do not show it. NULL
 * if no multiplication is right, or if none is better than the C compiler's division. */
UOp *by_product(Rewrite *rw, const Kernel *k, UOp *n, const UOp *c);
UOp *of_magnitude(Rewrite *rw, const Kernel *k, UOp *s, const UOp *c); /* s / c, toward zero, or NULL */

/* Whether c is a power of two whose inverse is exact, and no smaller than the normal numbers of f16. */
bool inverts(const UOp *c);

/* ---- functions written out as basic ops */
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
