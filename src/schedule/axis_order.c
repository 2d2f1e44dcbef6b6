/* axis_order.c: the order of a stage's axes in memory. In: stages, after cheap ones were written into
 * their readers. Out: the same, some with their axes in another order. If a view was taken before a value
 * was computed, the stage has the axes of the view. In two cases another order is better:
 *
 *   A gather along one axis of four brings that axis to the front. If the stage reads memory along one
 *   axis, and the innermost loops of its readers go along the same axis, but the stage itself would be
 *   contiguous along another, its axes get the order of the memory that it reads. Then both go through
 *   runs of memory.
 *
 *   The axes of a window of 3 x 3 are the last axes of a stage of windows. If the last axis is shorter
 *   than a vector, another axis becomes the last, provided that the stage and its readers then access
 *   fewer vectors.
 *
 * Loops keep their names, so no value changes. */
#include "plan/tile.h"
#include "schedule/stage.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int last_loop(const Stage *g) { /* -1: it has no loop */
  int d = g->nout - 1;
  while (d >= 0 && g->out[d]->op != OPS_RANGE)
    d--;
  return d;
}

/* The axis of an INDEX that moves with loop r; -1: no axis does, or several do. */
static int axis_along(Sched *s, const UOp *index, UOp *r) {
  int axis = -1;
  for (int d = 1; d < index->nsrc; d++) {
    if (!ranges_within(s, r, index->src[d])) continue;
    if (axis >= 0) return -1;
    axis = d - 1;
  }
  return axis;
}

/* The axis of stage i that the innermost loops of all its readers go along; -1: none. */
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

/* A read that is made for each element of the stage, if the memory of all such reads is contiguous along the
 * stage's axis d and not along its own last axis. Returns NULL if one of these reads is contiguous along
 * another axis. */
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

/* place[n]: the axis that is n-th, in the order in which `from` has them. Axes that `from` does not move with
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

/* Permutes the axes of a reader's reads of stage i. Returns false on failure. */
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

/* Whether no read of stage i in the reader is at a place that another read yields. */
static bool reads_apart(Sched *s, int reader, int i) {
  const Stage *q = stage_at(s, reader);
  bool apart = !q->is_store && !q->update;
  for (size_t k = 0; apart && k < q->reads.len; k++)
    for (int d = 1; apart && d < q->reads.at[k].index->nsrc; d++)
      apart = q->reads.at[k].stage != i || !uop_has(q->reads.at[k].index->src[d], INDEX);
  return apart;
}

/* Makes axis place[n] of stage i its n-th, and permutes the reads in its readers. */
static bool put_in_order(Sched *s, int i, const int *place) {
  Stage *g = stage_at(s, i);
  UOp *out[MAX_RANK];
  memcpy(out, g->out, sizeof out);
  for (int d = 0; d < g->nout; d++)
    g->out[d] = out[place[d]];
  bool ok = stage_scan(s, i);
  for (size_t j = 0; ok && j < stage_at(s, i)->readers.len; j++)
    ok = read_ordered(s, stage_at(s, i)->readers.at[j], i, place);
  return ok;
}

/* ---- an innermost axis that is too short for lanes */
enum { MOST_READ = 8 /* reads or readers of a stage */, MOST_WALKED = 2 * MAX_RANK, ODD_STEP = INT32_MAX };

/* The loops of a stage, and their strides in the memory that it writes (step[0]) and in each memory that it
 * reads. */
typedef struct Walk {
  int nloop, naccess;
  UOp *loop[MOST_WALKED];
  int64_t step[1 + MOST_READ][MOST_WALKED];
} Walk;

static int64_t axis_length(Sched *s, const UOp *index, int axis) { /* of the memory that is read */
  int q = read_stage(index);
  const UOp *memory = index->src[0];
  if (q >= 0) return range_extent(stage_at(s, q)->out[axis]);
  return memory->nsrc ? memory->src[axis]->vmax : memory->arg.param.nelem;
}

/* The flat offset of a read. place: the order of its axes; NULL: the present order. */
static UOp *offset_of(Sched *s, const UOp *index, const int *place) {
  UOp *sum = uop_index_const(s->st, 0);
  int64_t by = 1;
  for (int n = index->nsrc - 2; sum && n >= 0; n--) {
    int axis = place ? place[n] : n;
    UOp *term = uop_alu2(s->st, OPS_MUL, index->src[1 + axis], uop_index_const(s->st, by));
    sum = term ? uop_alu2(s->st, OPS_ADD, sum, term) : NULL;
    by *= axis_length(s, index, axis);
  }
  return sum;
}

static bool add_access(Sched *s, Walk *w, const UOp *index, const int *place) {
  int64_t *step = w->step[w->naccess++];
  UOp *at = offset_of(s, index, place);
  LinearIn in;
  bool linear = at && !uop_has(at, INDEX) && uop_linear_in(s->st, s->mem, at, w->nloop, w->loop, &in);
  for (int l = 0; at && l < w->nloop; l++)
    step[l] = linear ? in.by[l] : ranges_within(s, w->loop[l], at) ? ODD_STEP : 0;
  return at != NULL;
}

static void add_loops(Walk *w, UOp *const *loop, int n) {
  for (int i = 0; i < n; i++)
    if (loop[i]->op == OPS_RANGE) w->loop[w->nloop++] = loop[i];
}

/* Fills *w for stage q, if stage i has its axes in the order `place`. Returns false if q has too many reads
 * or loops, or if out of memory. */
static bool walk_of(Sched *s, int q, int i, const int *place, Walk *w) {
  const Stage *g = stage_at(s, q);
  if (g->reads.len > MOST_READ || g->nout + g->nred > MOST_WALKED) return false;
  memset(w, 0, sizeof *w);
  add_loops(w, g->out, g->nout), add_loops(w, g->red, g->nred);
  if (w->nloop > MAX_LINEAR) return false;
  bool ok = true;
  if (g->is_store)
    ok = add_access(s, w, g->target, NULL);
  else {
    int64_t by = 1;
    w->naccess = 1;
    for (int n = g->nout - 1; n >= 0; n--) {
      UOp *r = g->out[q == i && place ? place[n] : n];
      for (int l = 0; l < w->nloop; l++)
        if (w->loop[l] == r) w->step[0][l] = by;
      by *= range_extent(r);
    }
  }
  for (size_t k = 0; ok && k < g->reads.len; k++)
    ok = add_access(s, w, g->reads.at[k].index, g->reads.at[k].stage == i ? place : NULL);
  return ok;
}

/* The number of iterations that can be consecutive lanes along loop l. Other loops that continue its run in
 * all memories are included. */
static int64_t lanes_along(const Walk *w, int l) {
  int64_t n = range_extent(w->loop[l]);
  for (bool more = true; more;) {
    more = false;
    for (int m = 0; m < w->nloop && !more && n > 1; m++) {
      bool goes_on = m != l && range_extent(w->loop[m]) > 1;
      for (int a = 0; goes_on && a < w->naccess; a++)
        goes_on = w->step[a][l] != ODD_STEP && w->step[a][m] == w->step[a][l] * n;
      if (goes_on) n *= range_extent(w->loop[m]);
      more = goes_on && n < TILE_LANES;
    }
  }
  return n;
}

/* What one iteration moves, counted in loads of a vector, with lanes along the loop that is best for it. */
static double moved_each(const Walk *w) {
  double least = INFINITY;
  for (int l = 0; l < w->nloop; l++) {
    double each = 0, lanes = (double)TG_MIN(lanes_along(w, l), TILE_LANES);
    for (int a = 0; a < w->naccess; a++) {
      int64_t by = llabs(w->step[a][l]);
      each += by <= 1 ? 1 : a && by <= MOST_STRIDE ? (double)by : TILE_LANES;
    }
    least = TG_MIN(least, each / lanes);
  }
  return w->nloop ? least : 0;
}

/* The same for all iterations of stage i and its readers, with the axes of i in the given order. INFINITY:
 * not known. */
static double moved_in_order(Sched *s, int i, const int *place) {
  const Stage *g = stage_at(s, i);
  Walk w;
  if (!walk_of(s, i, i, place, &w)) return INFINITY;
  double all = moved_each(&w) * (double)stage_iterations(g);
  for (size_t j = 0; j < g->readers.len; j++) {
    if (!walk_of(s, g->readers.at[j], i, place, &w)) return INFINITY;
    all += moved_each(&w) * (double)stage_iterations(stage_at(s, g->readers.at[j]));
  }
  return all;
}

/* Puts axis d last. The axes behind d move to before the first axis that is in one index with one of them, so
 * that each element of a window becomes a whole picture. */
static void last_is(Sched *s, const Stage *g, int d, int *place) {
  int first = d, n = 0;
  for (size_t k = 0; k < g->reads.len; k++)
    for (int x = 1; x < g->reads.at[k].index->nsrc; x++)
      for (int i = 0; i < first; i++)
        for (int b = d + 1; b < g->nout; b++) {
          UOp *e = g->reads.at[k].index->src[x];
          bool both = g->out[i]->op == OPS_RANGE && g->out[b]->op == OPS_RANGE &&
                      ranges_within(s, g->out[i], e) && ranges_within(s, g->out[b], e);
          if (both) first = i;
        }
  for (int i = 0; i < first; i++)
    place[n++] = i;
  for (int i = d + 1; i < g->nout; i++)
    place[n++] = i;
  for (int i = first; i <= d; i++)
    place[n++] = i;
}

/* Whether there is an order that is much better. *best is then that order. */
static bool find_longer(Sched *s, int i, int *best) {
  static const double WORTH = 0.75;
  const Stage *g = stage_at(s, i);
  int last = last_loop(g), place[MAX_RANK];
  bool found = false;
  if (range_extent(g->out[last]) >= TILE_LANES || s->opt->target->warp > 1) return false;
  if (g->readers.len > MOST_READ) return false;
  for (size_t j = 0; j < g->readers.len; j++)
    if (stage_at(s, g->readers.at[j])->nproduct) return false;
  double least = WORTH * moved_in_order(s, i, NULL);
  for (int d = 0; d < last && least < INFINITY; d++) {
    if (g->out[d]->op != OPS_RANGE) continue;
    last_is(s, g, d, place);
    double moved = moved_in_order(s, i, place);
    if (moved >= least) continue;
    least = moved;
    found = true;
    memcpy(best, place, sizeof place);
  }
  return found;
}

static bool order_stage(Sched *s, int i) {
  const Stage *g = stage_at(s, i);
  int along = read_along(s, i), place[MAX_RANK];
  const UOp *from = along >= 0 && along != last_loop(g) ? made_along(s, g, along) : NULL;
  bool apart = true;
  for (size_t j = 0; apart && j < g->readers.len; j++)
    apart = reads_apart(s, g->readers.at[j], i);
  if (apart && from)
    order_of(s, g, from, place);
  else if (!apart || !find_longer(s, i, place))
    return true;
  return put_in_order(s, i, place);
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
