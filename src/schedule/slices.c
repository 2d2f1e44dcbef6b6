/* slices.c: a value of which each reader has a slice of its own. In: the indices at which it is read. Out:
 * the axis along which readers share no element, and the slices there. So the product of all inputs of an
 * LSTM, of which each step reads a row, can be made row by row. */
#include "schedule/stage.h"
#include "uop/dims.h"
#include <stdlib.h>

static int by_begin(const void *a, const void *b) {
  const Slice *x = a, *y = b;
  return (x->from > y->from) - (x->from < y->from);
}

/* Slices next to each other, or over each other, are one while that has at most so many elements; with 0 only
 * those over each other are. */
static int slices_joined(Slice *at, int n, int64_t most) {
  int k = 0;
  for (int i = 1; i < n; i++)
    if (at[i].from < at[k].to || (at[i].from == at[k].to && at[i].to - at[k].from <= most))
      at[k].to = TG_MAX(at[k].to, at[i].to);
    else
      at[++k] = at[i];
  return k + 1;
}

/* Where the tuples are along an axis. */
static int slices_along(const UOp *n, UOp *const *tuple, int ntuple, int along, Slice *at) {
  for (int i = 0; i < ntuple; i++) {
    const UOp *e = tuple[i]->src[along];
    at[i] = (Slice){TG_MAX(e->vmin, 0), TG_MIN(e->vmax, n->shape->v[along] - 1) + 1};
    if (at[i].from >= at[i].to) return 0; /* nothing, behind a gate */
  }
  qsort(at, (size_t)ntuple, sizeof *at, by_begin);
  return slices_joined(at, ntuple, 0);
}

int slices_found(const UOp *n, UOp *const *tuple, int ntuple, int64_t most, Slice *at, int *along) {
  int64_t nbytes = (int64_t)dtype_size((DType)n->dtype);
  int count = 1;
  if (dims_symbolic(n->shape)) return 0;
  for (int i = 0; i < n->shape->n; i++) {
    nbytes *= n->shape->v[i];
    int k = slices_along(n, tuple, ntuple, i, at);
    if (k > count) count = k, *along = i;
  }
  if (count < 2 || nbytes <= most) return 0;
  count = slices_along(n, tuple, ntuple, *along, at);
  count = slices_joined(at, count, most / (nbytes / n->shape->v[*along]));
  return count > 1 ? count : 0;
}
