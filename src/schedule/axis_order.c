/* axis_order.c: the order of a stage's axes in memory. In: stages, after what is cheap was written into
 * readers. Out: the same, some with their axes in another order. A view that was taken before a value was
 * computed (a gather along one axis of four, which that axis was brought to the front for) leaves the stage
 * with the axes of the view. Where it reads memory along one axis and its readers have their innermost loop
 * along the same, but it would lie along another, its axes go in the order of the memory that it reads: both
 * then go through runs. Loops keep their names: no value changes. */
#include "schedule/stage.h"
#include <string.h>

static int last_loop(const Stage *g) { /* -1: it has none */
  int d = g->nout - 1;
  while (d >= 0 && g->out[d]->op != OPS_RANGE)
    d--;
  return d;
}

/* The axis of an INDEX that moves with loop r; -1: none or several do. */
static int axis_along(Sched *s, const UOp *index, UOp *r) {
  int axis = -1;
  for (int d = 1; d < index->nsrc; d++) {
    if (!ranges_within(s, r, index->src[d])) continue;
    if (axis >= 0) return -1;
    axis = d - 1;
  }
  return axis;
}

/* The axis of stage i that the innermost loops of all its readers go along; -1: there is none. */
static int read_along(Sched *s, int i) {
  const Stage *g = stage_at(s, i);
  int axis = -1;
  for (size_t j = 0; j < g->readers.len; j++) {
    const Stage *q = stage_at(s, g->readers.at[j]);
    int inner = last_loop(q);
    for (size_t k = 0; k < q->reads.len; k++) {
      if (q->reads.at[k].stage != i) continue;
      int along = inner < 0 ? -1 : axis_along(s, q->reads.at[k].index, q->out[inner]);
      if (along < 0 || (axis >= 0 && along != axis)) return -1;
      axis = along;
    }
  }
  return axis;
}

/* What is read for each element of the stage, from memory that lies along axis d of it, and not along its own
 * last one; NULL: some of that lies otherwise. */
static const UOp *made_along(Sched *s, const Stage *g, int d) {
  enum { SMALL_PART = 8 };

  const UOp *from = NULL;
  UOp *own = g->out[last_loop(g)];
  for (size_t k = 0; k < g->reads.len; k++) {
    const UOp *x = g->reads.at[k].index;
    UOp *last = x->src[last_axis(x)];
    if (g->reads.at[k].trips * SMALL_PART <= (double)stage_out_size(g)) continue;
    if (!ranges_within(s, g->out[d], last) || ranges_within(s, own, last)) return NULL;
    if (!from) from = x;
  }
  return from;
}

/* place[n]: the axis that comes n-th, in the order in which `from` has them. Those that it does not move with
 * are first. */
static void order_of(Sched *s, const Stage *g, const UOp *from, int *place) {
  int n = 0;
  for (int axis = -1; axis < from->nsrc - 1; axis++)
    for (int d = 0; d < g->nout; d++) {
      int at = -1;
      for (int a = from->nsrc - 1; a >= 1 && g->out[d]->op == OPS_RANGE; a--)
        if (ranges_within(s, g->out[d], from->src[a])) at = a - 1;
      if (at == axis) place[n++] = d;
    }
}

/* The reads of stage i in a reader, their axes in another order. */
static bool read_ordered(Sched *s, int reader, int i, const int *place) {
  Stage *q = stage_at(s, reader);
  UOpVec from = {0}, to = {0};
  bool ok = true;
  for (size_t k = 0; ok && k < q->reads.len; k++) {
    UOp *x = q->reads.at[k].index, *src[MAX_RANK + 1];
    if (q->reads.at[k].stage != i) continue;
    src[0] = x->src[0];
    for (int d = 1; d < x->nsrc; d++)
      src[d] = x->src[1 + place[d - 1]];
    UOp *y = uop_new(s->st, OPS_INDEX, (DType)x->dtype, 1, x->nsrc, src, x->arg);
    ok = y && vec_push(s->mem, &from, x) && vec_push(s->mem, &to, y);
  }
  q->value = ok ? uop_substitute(s->st, s->mem, q->value, (int)from.len, from.at, to.at) : NULL;
  vec_free(s->mem, &from), vec_free(s->mem, &to);
  return q->value && stage_scan(s, reader);
}

/* Whether a reader's reads of stage i stand apart: none is read at a place that another one says. */
static bool reads_apart(Sched *s, int reader, int i) {
  const Stage *q = stage_at(s, reader);
  bool apart = !q->is_store && !q->update;
  for (size_t k = 0; apart && k < q->reads.len; k++)
    for (int d = 1; apart && d < q->reads.at[k].index->nsrc; d++)
      apart = q->reads.at[k].stage != i || !uop_has(q->reads.at[k].index->src[d], INDEX);
  return apart;
}

static bool order_stage(Sched *s, int i) {
  Stage *g = stage_at(s, i);
  int along = read_along(s, i), place[MAX_RANK];
  const UOp *from = along >= 0 && along != last_loop(g) ? made_along(s, g, along) : NULL;
  bool ok = true, apart = from;
  for (size_t j = 0; apart && j < g->readers.len; j++)
    apart = reads_apart(s, g->readers.at[j], i);
  if (!apart) return true;
  UOp *out[MAX_RANK];
  memcpy(out, g->out, sizeof out);
  order_of(s, g, from, place);
  for (int d = 0; d < g->nout; d++)
    g->out[d] = out[place[d]];
  ok = stage_scan(s, i);
  for (size_t j = 0; ok && j < g->readers.len; j++)
    ok = read_ordered(s, g->readers.at[j], i, place);
  return ok;
}

bool order_axes(Sched *s) {
  bool ok = true;
  for (size_t i = 0; ok && i < s->stages.len; i++) {
    const Stage *g = stage_at(s, (int)i);
    bool may = !g->inlined && !g->keep && !g->fixed && !g->is_reduce && !g->parts && g->readers.len;
    if (may && last_loop(g) > 0) ok = order_stage(s, (int)i);
  }
  return ok;
}
