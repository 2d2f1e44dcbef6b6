/* print.c: a graph as text. `u3 = ADD f32 (u1, u2)` per node, sources first; and a one-line infix form for messages. */
#include "uop/uop.h"
#include <math.h>

static void put_ints(Str *o, const Ints *l) {
  str_put(o, "(");
  for (int i = 0; i < l->n; i++) { if (i) str_put(o, ", "); str_int(o, l->v[i]); }
  str_put(o, ")");
}
static void put_const(Str *o, const UOp *u) {
  if (dtype_is_float((DType)u->dtype)) str_printf(o, "%.9g", u->arg.v.f);
  else str_int(o, u->arg.v.i);
}
static const char *axis_names[] = {"GLOBAL", "THREAD", "LOCAL", "LOOP", "REDUCE", "UPCAST", "VEC", "UNROLL", "GROUP"};
static void put_arg(Str *o, const UOp *u) {
  switch (u->op) {
  case OPS_CONST: str_put(o, " "), put_const(o, u); break;
  case OPS_RANGE: str_printf(o, " [%lld %s]", (long long)u->arg.range.id, axis_names[u->arg.range.type]); break;
  case OPS_PARAM: case OPS_BUFFER: case OPS_DEFINE_LOCAL: case OPS_DEFINE_REG:
    str_printf(o, " [slot %lld, %lld elements]", (long long)u->arg.param.slot, (long long)u->arg.param.nelem); break;
  case OPS_REDUCE: str_printf(o, " [%s]", op_name((Ops)u->arg.reduce.op)); break;
  case OPS_REDUCE_AXIS: str_printf(o, " [%s ", op_name((Ops)u->arg.reduce.op)), put_ints(o, u->arg.reduce.axes), str_put(o, "]"); break;
  case OPS_GEP: str_printf(o, " [%lld]", (long long)u->arg.i); break;
  case OPS_INDEX: if (u->arg.i) str_put(o, " [gated]"); break;
  default: if ((op_flags((Ops)u->op) & OPF_MOV) || u->op == OPS_ARANGE) str_put(o, " "), put_ints(o, u->arg.ints);
  }
}
bool uop_print(Str *out, UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots) {
  UOpVec order = {0};
  uint32_t *num = mem_alloc(mem, (store_id_limit(st) + 1) * sizeof *num);
  bool ok = num && uop_toposort(st, mem, roots, nroots, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    num[u->id] = (uint32_t)i;
    str_printf(out, "u%zu = %s %s", i, op_name((Ops)u->op), dtype_name((DType)u->dtype));
    if (u->lanes > 1) str_printf(out, "x%d", u->lanes);
    put_arg(out, u);
    if (u->nsrc) str_put(out, " (");
    for (int k = 0; k < u->nsrc; k++) { if (k) str_put(out, ", "); str_printf(out, "u%u", num[u->src[k]->id]); }
    if (u->nsrc) str_put(out, ")");
    if (u->is_tensor) str_put(out, "  shape "), put_ints(out, u->shape);
    str_put(out, "\n");
  }
  vec_free(mem, &order);
  mem_free(mem, num);
  return ok && !out->oom;
}
void uop_line(Str *out, const UOp *u) {
  str_printf(out, "%s %s", op_name((Ops)u->op), dtype_name((DType)u->dtype));
  if (u->lanes > 1) str_printf(out, "x%d", u->lanes);
  put_arg(out, u);
}
bool uop_print_list(Str *out, const Linear *lin, TgMem *mem) {
  Map num;
  map_init(&num, mem);
  bool ok = true;
  for (int i = 0; ok && i < lin->n; i++) {
    const UOp *u = lin->at[i];
    uint64_t n;
    ok = map_put(&num, (uint64_t)(uintptr_t)u, (uint64_t)i);
    str_printf(out, "u%d = ", i), uop_line(out, u);
    for (int k = 0; k < u->nsrc; k++) {
      str_put(out, k ? ", " : " (");
      if (map_get(&num, (uint64_t)(uintptr_t)u->src[k], &n)) str_printf(out, "u%d", (int)n); else uop_line(out, u->src[k]);
    }
    str_put(out, u->nsrc ? ")\n" : "\n");
  }
  map_free(&num);
  return ok && !out->oom;
}
static int put_expr(Str *o, const UOp *u, int left) {           /* bounded by `left` nodes, hence in depth too */
  static const char *const infix[OPS_COUNT] = {[OPS_ADD] = "+", [OPS_SUB] = "-", [OPS_MUL] = "*", [OPS_FLOORDIV] = "//", [OPS_FLOORMOD] = "%",
    [OPS_CMPLT] = "<", [OPS_CMPNE] = "!=", [OPS_CMPEQ] = "==", [OPS_AND] = "&", [OPS_OR] = "|", [OPS_FDIV] = "/", [OPS_CDIV] = "cdiv", [OPS_CMOD] = "cmod"};
  if (left <= 0) { str_put(o, ".."); return 0; }
  left--;
  if (u->op == OPS_CONST) { put_const(o, u); return left; }
  if (u->op == OPS_RANGE) { str_printf(o, "r%lld", (long long)u->arg.range.id); return left; }
  if (infix[u->op] && u->nsrc == 2) {
    str_put(o, "("), left = put_expr(o, u->src[0], left), str_printf(o, " %s ", infix[u->op]), left = put_expr(o, u->src[1], left), str_put(o, ")");
    return left;
  }
  str_put(o, op_name((Ops)u->op));
  if (u->op == OPS_PARAM) { str_int(o, u->arg.param.slot); return left; }
  str_put(o, "(");
  for (int i = 0; i < u->nsrc; i++) { if (i) str_put(o, ", "); left = put_expr(o, u->src[i], left); }
  str_put(o, ")");
  return left;
}
void uop_expr(Str *out, const UOp *u, int max_nodes) { put_expr(out, u, max_nodes); }
