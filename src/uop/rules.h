/* rules.h: the vocabulary of the rule language, for generated matchers and for the C functions that rules
 * name. */
#ifndef TG_RULES_H
#define TG_RULES_H
#include "uop/uop.h"

#define SRC(u, k) ((u)->nsrc > (k) ? (u)->src[k] : NULL)
/* If the result is neither NULL nor self, counts, traces and returns it. Otherwise the next rule is tried. */
#define FIRE(name, where, result)                                                                            \
  do {                                                                                                       \
    if ((fired = rule_fired(rw, name, where, self, (result)))) return fired;                                 \
  } while (0)

/* ---- domains of names */
static inline bool in_int(const UOp *u) { return u->dtype >= DT_INDEX && u->dtype <= DT_U64; }

static inline bool in_index(const UOp *u) { return u->dtype == DT_INDEX; }

static inline bool in_data(const UOp *u) { return u->dtype >= DT_BOOL && u->dtype <= DT_U64; }

static inline bool in_wraps(const UOp *u) { return u->dtype > DT_BOOL && u->dtype <= DT_U64; }

static inline bool in_signed(const UOp *u) { return in_wraps(u) && !dtype_is_unsigned((DType)u->dtype); }

static inline bool in_bool(const UOp *u) { return u->dtype == DT_BOOL; }

static inline bool in_float(const UOp *u) { return dtype_is_float((DType)u->dtype); }

bool rule_is(const UOp *u, int64_t v); /* the constant v of any dtype; 0 is not -0.0 */

static inline int64_t rule_int(const UOp *c) { return c->arg.v.i; }

/* The constant v of dtype d. NULL if self is a vector. */
UOp *rule_const(Rewrite *rw, const UOp *self, DType d, int64_t v);
UOp *rule_real(Rewrite *rw, const UOp *self, DType d, double v);
/* Evaluates op on constants. to: the dtype of a CAST. NULL if a source is no constant, if an index overflows,
 * or if an index is divided by zero. */
UOp *rule_fold(Rewrite *rw, Ops op, DType to, UOp *a, UOp *b, UOp *c);
UOp *rule_new3(Rewrite *rw, Ops op, UOp *a, UOp *b, UOp *c);

/* ---- lists of sources: `r...` of a rule */
typedef struct UOpList {
  UOp *const *at;
  int n;
} UOpList;

/* a list of one source */
#define rule_one(u) ((UOpList){(UOp *[]){u}, 1})

/* u's sources without the first `before` and the last `behind` ones */
static inline UOpList rule_rest(UOp *u, int before, int behind) {
  return (UOpList){u->src + before, u->nsrc - before - behind};
}

static inline bool rule_same_arg(const UOp *a, const UOp *b) {
  return a->arg.raw.a == b->arg.raw.a && a->arg.raw.b == b->arg.raw.b;
}

/* A node whose sources are the n lists, one after another. d DT_COUNT: the dtype follows from the sources. */
UOp *rule_new(Rewrite *rw, Ops op, DType d, Arg arg, int n, const UOpList *lists);
/* The same with the first n of a, b, c as its sources, and a dtype that follows from them. */
UOp *rule_made(Rewrite *rw, Ops op, int n, UOp *a, UOp *b, UOp *c);

/* The matchers of a file of rules, for tests. The list ends at a NULL name. */
typedef struct MatcherName {
  const char *name;
  Matcher matcher;
} MatcherName;

/* ---- guards; checkrules knows the meaning of is_power, is_least, is_plus and fits */
bool is_power(const UOp *c);                      /* 2^k, in an integer dtype */
bool is_least(const UOp *c);                      /* the least value of its dtype */
bool is_plus(const UOp *n);                       /* no value of n is negative */
bool is_neutral(const UOp *reduce, const UOp *c); /* x op c is x, where op is the reduction's */

static inline bool is_narrow_float(const UOp *x) { return dtype_is_narrow_float((DType)x->dtype); }

bool in_loops(const UOp *u, UOpList loops); /* whether u depends on one of these loops */
bool has_one_value(const UOp *u);           /* its bounds leave only one integer */
bool fits(const UOp *n, int dtype);         /* every value of n is a value of this integer dtype */
/* Whether a float cast to this integer dtype is the number that a cast to index gives: it never saturates, or
 * saturates at the same ends, as i64 does. */
bool same_as_index(const UOp *cast);

/* ---- rules in C (linear.c). In: a node that the rule's pattern matched. Out: the simpler node; NULL or self
 * if there is nothing to do. */
UOp *simplify_linear(Rewrite *rw, UOp *self); /* + - * and negation on index */
UOp *simplify_divmod(Rewrite *rw, UOp *self); /* // and % on index */
UOp *simplify_less(Rewrite *rw, UOp *self);   /* < on index */
/* a cast to index of a sum, difference or product that never wraps */
UOp *cast_parts(Rewrite *rw, UOp *self);
/* a range of one iteration becomes a constant and leaves the list of loops */
UOp *reduce_drop_const(Rewrite *rw, UOp *self);
UOp *store_drop_const(Rewrite *rw, UOp *self);
#endif
