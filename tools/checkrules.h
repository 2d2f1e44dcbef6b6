/* checkrules.h: what `rulegen --check` writes against. A build function makes one random graph of its rule's
 * pattern, or sets g->fail. */
#ifndef TG_CHECKRULES_H
#define TG_CHECKRULES_H
#include "uop/rules.h"

typedef struct Gen Gen;

enum { GEN_ANY, GEN_INT, GEN_INDEX, GEN_DATA, GEN_WRAPS, GEN_BOOL, GEN_SIGNED, GEN_FLOAT, GEN_LIST };

/* Of the root; of source i of an op of dtype d. want: the one that the rule asks for, or negative. */
DType gen_dtype(Gen *g, int want);
DType gen_child(Gen *g, Ops op, DType d, int i, bool root, int want);
UOp *gen_literal(Gen *g, DType d, int64_t v);
UOp *gen_name(Gen *g, int name, DType d, int domain, bool is_const); /* the same node for the same name */
UOp *gen_op(Gen *g, Ops op, DType d, int n, UOp **src);

/* In a statement: what the guard lets one assume. False: never true in these dtypes. */
UOp *gen_bound(Gen *g, UOp *n, int hi); /* vmin or vmax of n: some number that bounds it */
/* a NULL node: the number */
bool gen_given(Gen *g, const char *cmp, UOp *a, int64_t a_number, UOp *b, int64_t b_number);
bool gen_fits(Gen *g, UOp *n, int dtype);
bool gen_power(Gen *g, UOp *c, bool is);
bool gen_least(Gen *g, UOp *c, bool is);
bool gen_plus(Gen *g, UOp *n, bool is);

typedef struct RuleCheck {
  const char *name, *where;
  Ops root, op;          /* op: the one of its `for`; without it: root */
  const char *ctx;       /* the C type of its matcher's context, or "" */
  bool in_c;             /* the result is a C function */
  UOp *(*build)(Gen *g); /* NULL: the pattern is not arithmetic */
  UOp *(*match)(Rewrite *rw, UOp *self);
  UOp *(*state)(Gen *g, Rewrite *rw, UOp *self); /* the result over symbolic names; NULL: the rule calls C */
} RuleCheck;

#endif
