/* guard.c: accesses that are not proved to be inside their memory -> accesses that are made only if they
 * are inside. In: a kernel graph written by someone else. Out: the same graph with gates; an access that
 * bounds and gates prove to be inside stays as it is. A load outside gives 0; a store outside is not made. */
#include "codegen/codegen.h"

static UOp *and_gate(UOpStore *st, UOp *gate, UOp *also) {
  return gate && also ? uop_alu2(st, OPS_AND, gate, also) : also;
}

/* The index `at` must be in 0 .. n - 1: adds that condition to *gate unless bounds and *gate imply it.
 * Returns false if out of memory. */
static bool keep_inside(UOpStore *st, UOp *at, int64_t n, UOp **gate) {
  if (uop_within(at, *gate, n)) return true;
  UOp *below = uop_alu2(st, OPS_CMPLT, at, uop_index_const(st, 0)),
      *not_below = below ? uop_alu2(st, OPS_CMPNE, below, uop_const_int(st, DT_BOOL, 1)) : NULL;
  UOp *inside = uop_alu2(st, OPS_CMPLT, at, uop_index_const(st, n));
  if (!not_below || !inside) return false;
  if (at->vmin < 0) *gate = and_gate(st, *gate, not_below);
  if (at->vmax >= n) *gate = and_gate(st, *gate, inside);
  return *gate != NULL;
}

static UOp *guarded(UOpStore *st, UOp *x) {
  const UOp *memory = x->src[0]->op == OPS_AFTER ? x->src[0]->src[0] : x->src[0];
  UOp *gate = index_gate(x), *src[MAX_AXES + 2];
  int n = index_naxes(x);
  if (memory->op != OPS_PARAM && memory->op != OPS_DEFINE_LOCAL) return x;
  for (int d = 0; d < n; d++)
    if (!keep_inside(st, x->src[1 + d], memory->nsrc ? memory->src[d]->arg.v.i : memory->arg.param.nelem,
                     &gate))
      return NULL;
  if (gate == index_gate(x)) return x;
  for (int i = 0; i <= n; i++)
    src[i] = x->src[i];
  src[n + 1] = gate;
  return uop_new(st, OPS_INDEX, (DType)x->dtype, x->lanes, n + 2, src, (Arg){.i = 1});
}

UOp *guard_accesses(UOpStore *st, TgMem *mem, UOp *sink) {
  UOpVec order = {0};
  UOpMap *now = uop_map_begin(st, st);
  bool ok = now && uop_toposort(st, mem, &sink, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i], *v = node_mapped(st, mem, now, u);
    if (v && v->op == OPS_INDEX) v = guarded(st, v);
    ok = v && uop_map_put(st, now, u, v);
  }
  UOp *r = ok ? uop_map_get(now, sink) : NULL;
  uop_map_end(st, now);
  vec_free(mem, &order);
  return r;
}
