/* dims.h: sizes that are not numbers. A size in a shape is an int64: a number, or a symbolic size, which
 * stands for a sum of products of variables and numbers. Equal sums have equal handles, so sizes are compared
 * with ==. Handles lie far below zero and far apart: arithmetic that knows nothing of them does not make
 * another one, and a shape that holds such a number is refused where its node is made. */
#ifndef TG_DIMS_H
#define TG_DIMS_H
#include "uop/uop.h"

typedef struct DimVar {
  const char *name;
  /* of what the user sees: multiples of `multiple` in lo .. hi. The VAR node counts in that unit */
  int64_t lo, hi, multiple;
  bool bound;
  int64_t value;
} DimVar;
typedef struct DimTable DimTable;
#define DIM_BAD (INT64_MIN / 2) /* no size: too long a sum, or an overflow */

static inline bool dim_symbolic(int64_t d) { return d < INT64_MIN / 4; }

/* one for a context: its stores share it (store_set_dims). err: told when memory is out; NULL is fine */
DimTable *dims_new(TgMem *mem, TgError *err);
void dims_free(DimTable *t);
/* number of a new variable; -1: out of memory */
int dims_var(DimTable *t, const char *name, int64_t lo, int64_t hi, int64_t multiple);
DimVar *dims_var_at(DimTable *t, int i); /* NULL: no such variable */
void store_set_dims(UOpStore *st, DimTable *t);
DimTable *store_dims(const UOpStore *st);
TgMem *store_mem(const UOpStore *st);

/* ---- arithmetic of sizes; DIM_BAD in, DIM_BAD out */
int64_t dim_of_var(UOpStore *st, int var); /* the size that a variable is; a number where lo == hi */
int64_t dim_unit(UOpStore *st, int var);   /* what its VAR node is: the variable over its multiple */
int64_t dim_add(UOpStore *st, int64_t a, int64_t b);
int64_t dim_sub(UOpStore *st, int64_t a, int64_t b);
int64_t dim_mul(UOpStore *st, int64_t a, int64_t b);
bool dim_div(UOpStore *st, int64_t a, int64_t b, int64_t *q); /* a = b * q exactly; false: not */
int64_t dim_product(UOpStore *st, const Ints *shape);
bool dim_known(UOpStore *st, int64_t d); /* a number, or a symbolic size of this store */
/* a number that is not negative, or a symbolic size that nowhere is */
bool dim_valid(UOpStore *st, int64_t d);
int64_t dim_max(UOpStore *st, int64_t d); /* bounds over all values of the variables; never too tight */
int64_t dim_min(UOpStore *st, int64_t d);
/* with the variables as they are bound; the maximum where one is not */
int64_t dim_now(UOpStore *st, int64_t d);
/* one of its variables that has no value, or NULL */
const DimVar *dim_unbound(const UOpStore *st, int64_t d);
const Ints *dims_max(UOpStore *st, const Ints *shape);
bool dims_symbolic(const Ints *shape);
bool dim_le(UOpStore *st, int64_t a, int64_t b); /* a <= b whatever the variables are; false: not known */
void dim_print(UOpStore *st, int64_t d, char *out, size_t n);
/* The same size over variables of `to`: number(user, i) is what variable i of `from` is there. DIM_BAD: -1
 * was said, or out of memory. */
int64_t dim_moved(UOpStore *to, UOpStore *from, int64_t d, int (*number)(void *user, int var), void *user);
/* "2*v0*v1 - 3": over units, by number, as parse.c reads it; st NULL: the handle. */
void dim_put(Str *out, UOpStore *st, int64_t d);
/* "variable v0[1, 64]", a line for each variable up to the last that a size in the graph names, as parse.c reads
 * them. Nothing where no size is symbolic. False: out of memory. */
bool dims_put(Str *out, UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots);
/* Whether the variable is in the graph, in a size or as a value. False: out of memory. */
bool dims_name(UOpStore *st, TgMem *mem, UOp *root, int var, bool *names);
/* The size as an index expression over VAR nodes, simplified: equal sizes are one node. */
UOp *dim_uop(UOpStore *st, TgMem *mem, int64_t d);

static inline int var_number(const UOp *var) { return var->nsrc ? (int)var->src[0]->arg.v.i : -1; }
#endif
