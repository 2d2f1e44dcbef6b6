/* dot.c: writes a graph for graphviz. In: roots. Out: a box per node and an arrow from each source. Constants
 * are written inside the boxes that use them. */
#include "uop/uop.h"

static const char *colour(Ops op) {
  switch (op) {
  case OPS_BUFFER:
  case OPS_PARAM:
  case OPS_DEFINE_LOCAL:
  case OPS_DEFINE_REG: return "#ffd8b1";
  case OPS_RANGE:
  case OPS_END:
  case OPS_SPECIAL: return "#ffc0c0";
  case OPS_INDEX:
  case OPS_LOAD:
  case OPS_STORE:
  case OPS_STAGE:
  case OPS_GATHER:
  case OPS_SCATTER: return "#c8e6a0";
  case OPS_REDUCE:
  case OPS_REDUCE_AXIS:
  case OPS_SCAN:
  case OPS_SCAN_AXIS: return "#ff9090";
  default: return op_flags(op) & OPF_MOV ? "#d0d0f8" : "#f4f4f4";
  }
}

bool uop_dot(Str *out, UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots) {
  UOpVec order = {0};
  bool ok = uop_toposort(st, mem, roots, nroots, &order);
  str_put(out, "digraph uops {\n  rankdir=TB; node [shape=box, style=filled, fontname=monospace];\n");
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    if (is_const(u) && order.len > 1) continue;
    str_printf(out, "  n%u [fillcolor=\"%s\", label=\"", u->id, colour((Ops)u->op));
    uop_line(out, u);
    str_put(out, "\"];\n");
    for (int k = 0; k < u->nsrc; k++)
      if (!is_const(u->src[k])) str_printf(out, "  n%u -> n%u [label=\"%d\"];\n", u->src[k]->id, u->id, k);
  }
  str_put(out, "}\n");
  vec_free(mem, &order);
  return ok && !out->oom;
}
