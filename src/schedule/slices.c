/* slices.c: a value of which each reader reads a slice of its own. In: the indices at which it is read. Out:
 * boxes such that readers of different boxes share no element. So the product of all inputs of an LSTM, of
 * which each step reads a row and each gate a part of that row, can be computed row by row, or part by
 * part. */
#include "schedule/stage.h"
#include "uop/dims.h"
#include <stdlib.h>
#include <string.h>

static int by_begin(const void *a, const void *b) {
  const Interval *x = a, *y = b;
  return (x->from > y->from) - (x->from < y->from);
}

/* Joins intervals that overlap, and neighbours while they have at most `most` elements together (0: none).
 * Returns how many are left. */
static int intervals_joined(Interval *at, int n, int64_t most) {
  int k = 0;
  for (int i = 1; i < n; i++)
    if (at[i].from < at[k].to || (at[i].from == at[k].to && at[i].to - at[k].from <= most))
      at[k].to = TG_MAX(at[k].to, at[i].to);
    else
      at[++k] = at[i];
  return k + 1;
}

/* The elements that a reader reads along an axis. */
static Interval read_of(const UOp *n, const UOp *tuple, int axis) {
  const UOp *e = tuple->src[axis];
  return (Interval){TG_MAX(e->vmin, 0), TG_MIN(e->vmax, n->shape->v[axis] - 1) + 1};
}

bool slice_has(const UOp *n, const Slice *box, const UOp *tuple) {
  bool within = true;
  for (int i = 0; i < n->shape->n && within; i++) {
    Interval e = read_of(n, tuple, i);
    within = box->axis[i].from <= e.from && e.from < box->axis[i].to;
  }
  return within;
}

/* Finds the intervals along an axis that the readers of a box read. Returns 0 if one reads nothing, behind a
 * gate. */
static int box_along(const UOp *n, UOp *const *tuple, int ntuple, const Slice *box, int along, Interval *at) {
  int k = 0;
  for (int i = 0; i < ntuple; i++) {
    if (!slice_has(n, box, tuple[i])) continue;
    at[k] = read_of(n, tuple[i], along);
    if (at[k].from >= at[k].to) return 0;
    k++;
  }
  qsort(at, (size_t)k, sizeof *at, by_begin);
  return k ? intervals_joined(at, k, 0) : 0;
}

static int64_t box_bytes(const UOp *n, const Slice *box) {
  int64_t nbytes = (int64_t)dtype_size((DType)n->dtype);
  for (int i = 0; i < n->shape->n; i++)
    nbytes *= box->axis[i].to - box->axis[i].from;
  return nbytes;
}

/* Cuts box number `box` along the axis that gives most pieces. It becomes the first piece; the rest follow
 * the `count` boxes. Returns false if it cannot be cut, or is small enough. */
static bool box_cut(const UOp *n, UOp *const *tuple, int ntuple, int64_t most, Slice *at, int box, int *count,
                    Interval *room) {
  Slice whole = at[box];
  int64_t nbytes = box_bytes(n, &whole);
  int pieces = 1, along = -1;
  if (nbytes <= most) return false;
  for (int i = 0; i < n->shape->n; i++) {
    int k = box_along(n, tuple, ntuple, &whole, i, room);
    if (k > pieces) pieces = k, along = i;
  }
  if (along < 0) return false;
  int64_t each = nbytes / (whole.axis[along].to - whole.axis[along].from);
  pieces = intervals_joined(room, box_along(n, tuple, ntuple, &whole, along, room), most / each);
  for (int i = 0; i < pieces; i++) {
    Slice *piece = i ? &at[(*count)++] : &at[box];
    *piece = whole;
    piece->axis[along] = room[i];
  }
  return pieces > 1;
}

int slices_found(const UOp *n, UOp *const *tuple, int ntuple, int64_t most, Slice *at, Interval *room) {
  int count = 1;
  if (dims_symbolic(n->shape)) return 0;
  for (int i = 0; i < n->shape->n; i++)
    at[0].axis[i] = (Interval){0, n->shape->v[i]};
  for (int i = 0; i < count; i++)
    while (box_cut(n, tuple, ntuple, most, at, i, &count, room))
      continue;
  return count > 1 ? count : 0;
}
