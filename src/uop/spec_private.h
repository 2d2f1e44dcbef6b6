/* spec_private.h: what the laws of a node (spec.c) and those of a graph (spec_graph.c) share. */
#ifndef TG_SPEC_PRIVATE_H
#define TG_SPEC_PRIVATE_H
#include "uop/spec.h"

/* st: resolves symbolic sizes; NULL: there are none */
typedef struct Check {
  GraphKind kind;
  const Linear *lin;
  SpecError *bad;
  UOpStore *st;
} Check;

/* Reports that u breaks a law. Always returns false. */
bool spec_broken(Check *c, const UOp *u, const char *fmt, ...) TG_PRINTF(3, 4);
/* Whether u obeys the laws of its op. */
bool spec_node(Check *c, const UOp *u);
#endif
