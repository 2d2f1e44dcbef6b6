/* memory_index.c: where memory is read. In: the extents of a PARAM, and an index for each axis. Out: the
 * INDEX, without axes of one element. Axes whose indices are the quotient and the remainder of one number are
 * merged. */
#include "schedule/stage.h"
#include <string.h>

/* Merges two axes indexed by e // c and e % c into one indexed by e; c is the extent of the second. Returns
 * the number of axes left, or 0 if out of memory. */
static int joined_axes(Sched *s, int n, int64_t *extents, UOp **idx) {
  for (int d = n - 2; d >= 0; d--) {
    UOp *low = idx[d + 1];
    if (!low || !idx[d]) return 0;
    if (low->op != OPS_FLOORMOD || !is_const_int(low->src[1], extents[d + 1])) continue;
    UOp *e = low->src[0];
    UOp *high = uop_simplify(s->st, s->mem, uop_alu2(s->st, OPS_FLOORDIV, e, low->src[1]));
    if (!high) return 0;
    if (high != idx[d]) continue;
    idx[d] = e;
    extents[d] *= extents[d + 1];
    n--;
    memmove(idx + d + 1, idx + d + 2, (size_t)(n - d - 1) * sizeof *idx);
    memmove(extents + d + 1, extents + d + 2, (size_t)(n - d - 1) * sizeof *extents);
  }
  return n;
}

UOp *memory_index(Sched *s, DType dt, int64_t nelem, int64_t slot, int n, const int64_t *extents,
                  UOp *const *idx) {
  UOp *src[MAX_RANK + 1], **at = src + 1, *ext[MAX_RANK];
  int64_t size[MAX_RANK];
  int k = 0;
  for (int d = 0; d < n; d++)
    if (extents[d] != 1) {
      at[k] = idx[d];
      size[k++] = extents[d];
    }
  if (!k) at[0] = uop_index_const(s->st, 0);
  if (k && !(k = joined_axes(s, k, size, at))) return NULL;
  for (int d = 0; d < k; d++)
    ext[d] = uop_index_const(s->st, size[d]);
  src[0] = uop_new(s->st, OPS_PARAM, dt, 1, k > 1 ? k : 0, ext, (Arg){.param = {nelem, slot}});
  UOp *x = uop_new(s->st, OPS_INDEX, dt, 1, 1 + TG_MAX(k, 1), src, ARG0);
  if (k < 2 || !x || !has_divmod(x)) return x;
  /* If the strides of the axes cancel the divisions of a loop, one flat offset is simpler. */
  UOp *flat = index_flat(s->st, s->mem, x);
  if (!flat || has_divmod(flat)) return flat ? x : NULL;
  return UNEW(s->st, OPS_INDEX, dt, 1, ARG0,
              uop_new(s->st, OPS_PARAM, dt, 1, 0, NULL, (Arg){.param = {nelem, slot}}), flat);
}
