/* dims.h: sizes that are not numbers. A size in a shape is an int64: either a number, or the handle of a
 * symbolic size, which is a sum of products of variables and numbers. Equal sums have equal handles, so sizes
 * are compared with ==. Handles are far below zero and far apart. Arithmetic that treats a handle as a number
 * therefore does not produce another handle, and a shape with such a result is refused when its node is
 * made. */
#ifndef TG_DIMS_H
#define TG_DIMS_H
#include "uop/uop.h"

typedef struct DimVar {
  const char *name;
  /* bounds of the value that the user sees, which is a multiple of `multiple`; the VAR node counts
   * multiples */
  int64_t lo, hi, multiple;
  bool bound; /* true: `value` is set */
  int64_t value;
} DimVar;
typedef struct DimTable DimTable;
#define DIM_BAD (INT64_MIN / 2) /* not a size: the sum is too long, or it overflowed */

static inline bool dim_symbolic(int64_t d) { return d < INT64_MIN / 4; }

/* Makes the table of a context, which all its stores share (store_set_dims). err: receives "out of memory";
 * may be NULL. */
DimTable *dims_new(TgMem *mem, TgError *err);
void dims_free(DimTable *t);
/* the number of a new variable; -1: out of memory */
int dims_var(DimTable *t, const char *name, int64_t lo, int64_t hi, int64_t multiple);
DimVar *dims_var_at(DimTable *t, int i); /* NULL: no such variable */
void store_set_dims(UOpStore *st, DimTable *t);
DimTable *store_dims(const UOpStore *st);
TgMem *store_mem(const UOpStore *st);

/* ---- arithmetic of sizes; the result is DIM_BAD if an argument is */
int64_t dim_of_var(UOpStore *st, int var); /* the variable as a size; a number if lo == hi */
/* the value of its VAR node: the variable divided by its multiple */
int64_t dim_unit(UOpStore *st, int var);
int64_t dim_add(UOpStore *st, int64_t a, int64_t b);
int64_t dim_sub(UOpStore *st, int64_t a, int64_t b);
int64_t dim_mul(UOpStore *st, int64_t a, int64_t b);
/* sets *q so that a = b * q exactly; false: b does not divide a */
bool dim_div(UOpStore *st, int64_t a, int64_t b, int64_t *q);
int64_t dim_product(UOpStore *st, const Ints *shape);
bool dim_known(UOpStore *st, int64_t d); /* a number, or a symbolic size of this store */
/* a number that is not negative, or a symbolic size that is never negative */
bool dim_valid(UOpStore *st, int64_t d);
/* bound over all values of the variables; may be loose, never too tight */
int64_t dim_max(UOpStore *st, int64_t d);
int64_t dim_min(UOpStore *st, int64_t d);
/* with the variables' bound values; the maximum if one is not bound */
int64_t dim_now(UOpStore *st, int64_t d);
/* a variable of the size that is not bound, or NULL */
const DimVar *dim_unbound(const UOpStore *st, int64_t d);
const Ints *dims_max(UOpStore *st, const Ints *shape);
bool dims_symbolic(const Ints *shape);
/* a <= b for all values of the variables; false: not, or not known */
bool dim_le(UOpStore *st, int64_t a, int64_t b);
void dim_print(UOpStore *st, int64_t d, char *out, size_t n);
/* The same size over variables of `to`. number(user, i) is the number there of variable i of `from`. Returns
 * DIM_BAD if it was -1, or if out of memory. */
int64_t dim_moved(UOpStore *to, UOpStore *from, int64_t d, int (*number)(void *user, int var), void *user);
/* Writes "2*v0*v1 - 3": in units of the VAR nodes, with variables by number, as parse.c reads it. st NULL:
 * writes the handle. */
void dim_put(Str *out, UOpStore *st, int64_t d);
/* Writes "variable v0[1, 64]", a line for each variable up to the last that a size in the graph uses, as
 * parse.c reads them; nothing if no size is symbolic. Returns false if out of memory. */
bool dims_put(Str *out, UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots);
/* Sets *names: whether the graph uses the variable, in a size or as a value. Returns false if out of
 * memory. */
bool dims_name(UOpStore *st, TgMem *mem, UOp *root, int var, bool *names);
/* The size as an index expression over VAR nodes, simplified: equal sizes are the same node. */
UOp *dim_uop(UOpStore *st, TgMem *mem, int64_t d);

static inline int var_number(const UOp *var) { return var->nsrc ? (int)var->src[0]->arg.v.i : -1; }
#endif
