/* contraction.c: a kernel as a contraction (cost.h). In: a kernel with one reduction, before its nest is
 * made. Out: its loops, and for each access how its place moves with them; how much memory an access touches
 * in so many iterations of each loop.
 *
 * An access is a sum of axes, each with a step in memory: an index that goes through several axes of a buffer
 * is split into one per axis, so that contiguous accesses can be told from strided ones. */
#include "codegen/cost.h"
#include "codegen/nest.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = TILE_LANES, NOT_EVEN = INT32_MIN };

static int64_t coefficient(Kernel *k, UOp *e, UOp *r) {
  int64_t by;
  if (!depends(k, e, r)) return 0;
  return moves_evenly(k, e, r, &by) ? by : NOT_EVEN;
}

int64_t access_step(const Access *a, int loop) { return a->by[loop]; }

/* An index that goes through several axes of memory, as c * 3136 + s does, is as many axes: loops that move
 * it by at least what all that move it less can reach together. Those that overlap, as in y + p, stay one. */
static void axis_split(Access *a, const Contraction *c, int d) {
  int64_t span = 1, unit = 1, left[MAX_LOOPS];
  int at = d;
  memcpy(left, a->coef[d], sizeof left);
  memset(a->coef[d], 0, sizeof left);
  for (;;) {
    int next = -1;
    for (int r = 0; r < c->n; r++)
      if (left[r] && (next < 0 || llabs(left[r]) < llabs(left[next]))) next = r;
    if (next < 0) return;
    int64_t by = llabs(left[next]);
    if (by >= span * unit && span > 1 && by % unit == 0 && a->naxis < MAX_AXES) {
      a->extent[a->naxis] = (a->extent[at] * unit + by - 1) / by;
      a->extent[at] = by / unit;
      at = a->naxis++;
      unit = by;
      span = 1;
      a->step[at] = a->step[d] * unit;
    }
    a->coef[at][next] = left[next] / unit;
    span += (c->size[next] - 1) * llabs(a->coef[at][next]);
    left[next] = 0;
  }
}

/* Axes that memory has, and a copy of it can be turned by: those that its index goes through are not. */
static void alone_on_axes(Access *a, const Contraction *c) {
  for (int r = 0; r < c->n; r++)
    a->alone[r] = -1;
  for (int d = a->naxis; d-- > 0;) {
    int moving = 0, by = -1;
    for (int r = 0; r < c->n; r++) {
      moving += a->coef[d][r] != 0;
      if (a->coef[d][r] == 1) by = r;
    }
    if (moving == 1 && by >= 0) a->alone[by] = d;
  }
}

/* ---- footprints */
double access_spans(const Access *a, const double *ext, double *span) {
  double n = 1;
  for (int d = 0; d < a->naxis; d++) {
    span[d] = 1;
    for (uint32_t moves = a->on[d]; moves; moves &= moves - 1) {
      int r = __builtin_ctz(moves);
      span[d] += fabs((double)a->coef[d][r]) * (ext[r] - 1);
    }
    if (!a->even) span[d] = fmin(span[d], (double)a->extent[d]);
    n *= span[d];
  }
  return n;
}

/* Its axes, the one with the smallest step first, are one run as long as less than a line lies between what is
 * touched: then every line is, as of rows of 34 bytes of which 32 are read. */
Footprint access_footprint(const Access *a, const double *ext) {
  double span[MAX_AXES], n = access_spans(a, ext, span), run = 1, elements = 1, stride = 0;
  int i = a->naxis - 1;
  for (; i >= 0; i--) {
    int d = a->by_step[i];
    double gap = (double)a->step[d] - run;
    if (span[d] <= 1) continue;
    if (gap < 0 || gap * a->bytes >= LINE) break;
    run += (double)a->step[d] * (span[d] - 1);
    elements *= span[d];
  }
  for (int d = 0; d < a->naxis; d++)
    if (span[d] > 1 && (double)a->step[d] >= run && (stride == 0 || (double)a->step[d] < stride))
      stride = (double)a->step[d];
  double rows = n / elements, lines = lines_of(run * a->bytes);
  return (Footprint){.bytes = rows * lines * LINE,
                     .run = run * a->bytes,
                     .rows = rows,
                     .blocks = rows,
                     .lines = lines,
                     .stride = stride * a->bytes};
}

static bool access_add(Kernel *k, Contraction *c, const UOp *x, bool in_sum, const UOpVec *order) {
  const UOp *memory = x->src[0];
  if (memory->op != OPS_PARAM || c->naccess == MAX_ACCESS) return false;
  Access *a = &c->access[c->naccess++];
  DType copied = stage_dtype(k, order, x);
  *a = (Access){.index = x,
                .slot = memory->arg.param.slot,
                .bytes = (int)dtype_size((DType)x->dtype),
                .copied = (int)dtype_size(copied),
                .converted = in_sum && copied != x->dtype,
                .even = true,
                .naxis = index_naxes(x),
                .gated = x->arg.i != 0,
                .in_sum = in_sum};
  int64_t step = 1;
  for (int d = a->naxis - 1; d >= 0; d--) {
    a->extent[d] = memory->nsrc ? memory->src[d]->arg.v.i : memory->arg.param.nelem;
    a->step[d] = step;
    step *= a->extent[d];
    if (uop_has(x->src[1 + d], INDEX)) a->even = false;
    for (int r = 0; r < c->n; r++) {
      int64_t by = coefficient(k, x->src[1 + d], (UOp *)c->range[r]);
      if (by == NOT_EVEN) {
        a->even = false;
        by = a->extent[d];
      }
      a->coef[d][r] = by;
      if (by) a->moves |= 1u << r;
    }
  }
  a->clips = !a->gated || stage_takes_gate(k, x);
  alone_on_axes(a, c);
  for (int d = a->naxis; a->even && d-- > 0;)
    axis_split(a, c, d);
  for (int r = 0; r < c->n; r++) {
    for (int d = 0; d < a->naxis; d++) {
      a->by[r] += a->coef[d][r] * a->step[d];
      if (a->coef[d][r]) a->on[d] |= 1u << r;
    }
    if (a->by[r] % LANES && a->bytes * LANES >= LINE) a->uneven |= 1u << r;
  }
  double size[MAX_LOOPS];
  for (int r = 0; r < c->n; r++)
    size[r] = (double)c->size[r];
  for (int d = 0; d < a->naxis; d++) {
    int at = d;
    for (; at > 0 && a->step[a->by_step[at - 1]] < a->step[d]; at--)
      a->by_step[at] = a->by_step[at - 1];
    a->by_step[at] = d;
  }
  a->whole = access_footprint(a, size).bytes;
  return true;
}

static bool loop_add(Contraction *c, const UOp *r, bool reduce) {
  if (r->op != OPS_RANGE || !is_const(r->src[0]) || r->arg.range.type == AXIS_ORDERED) return false;
  for (int at = 0; at < c->n; at++)
    if (c->range[at] == r) return false; /* a reduction over a loop of an output */
  if (c->n == MAX_LOOPS) return false;
  c->range[c->n] = r;
  c->size[c->n] = r->src[0]->arg.v.i;
  if (reduce) c->reduce |= 1u << c->n;
  c->n++;
  return true;
}

static bool lists(const UOp *store, const UOp *r) {
  for (int i = 2; i < store->nsrc; i++)
    if (store->src[i] == r) return true;
  return false;
}

/* The loops that all outputs have. Each may have others inside, over which what was summed is only read. */
static bool outputs_add(Kernel *k, Contraction *c, const UOp *sink, UOp *reduce) {
  for (int s = 0; s < sink->nsrc; s++)
    for (int i = 2; i < sink->src[s]->nsrc; i++) {
      const UOp *r = sink->src[s]->src[i];
      bool all = true, had = false;
      for (int o = 0; o < sink->nsrc; o++)
        all = all && lists(sink->src[o], r);
      for (int at = 0; at < c->n; at++)
        had |= c->range[at] == r;
      if (all && !had && !loop_add(c, r, false)) return false;
      if (!all && (r->op != OPS_RANGE || r->arg.range.type == AXIS_ORDERED || depends(k, reduce, r)))
        return false;
    }
  return true;
}

static UOp *only_reduce(const UOpVec *order) {
  UOp *r = NULL;
  for (size_t i = 0; i < order->len; i++) {
    UOp *u = order->at[i];
    if (u->op == OPS_SCAN || u->op == OPS_AFTER || u->op == OPS_VAR) return NULL;
    if (u->op == OPS_REDUCE && r) return NULL;
    if (u->op == OPS_REDUCE) r = u;
  }
  return r;
}

static uint32_t loops_of(const Contraction *c, const UOp *u) {
  uint32_t on = 0;
  for (int r = 0; r < c->n; r++)
    if (u->ranges & range_bit(c->range[r]->arg.range.id)) on |= 1u << r;
  return on;
}

/* Past the room there is for kinds of work, all is of the last kind. */
static void work_add(Contraction *c, Work w) {
  int at = 0;
  if (w.decided & ~c->reduce) w.decided = 0;
  c->decides |= w.decided;
  while (at < c->nwork &&
         (c->work[at].on != w.on || c->work[at].decided != w.decided || c->work[at].converts != w.converts))
    at++;
  if (at == MAX_WORK) {
    c->work[--at].on |= w.on;
    c->work[at].decided = 0;
    c->work[at].converts = 0;
  } else if (at == c->nwork)
    c->work[c->nwork++] = (Work){.on = w.on, .decided = w.decided, .converts = w.converts};
  c->work[at].weight += w.weight;
}

/* A choice is nothing where its condition is known; a shift by what is not known takes a few operations. A
 * conversion that a copy could hold is counted with the load that it follows. */
static void operation_add(Contraction *c, const UOp *u) {
  enum { SHIFT_BY_ANY = 3 };

  uint32_t on = loops_of(c, u);
  double weight = target_weight(c->target, u);
  bool shifts = u->op == OPS_SHL || u->op == OPS_SHR;
  if (!weight || u->op == OPS_CAST || u->op == OPS_BITCAST) return;
  work_add(c, (Work){.on = on, .decided = u->op == OPS_WHERE ? loops_of(c, u->src[0]) : 0, .weight = weight});
  uint32_t by = shifts ? loops_of(c, u->src[1]) : 0;
  if (by) work_add(c, (Work){.on = on, .decided = by, .weight = SHIFT_BY_ANY});
}

static bool loads_add(Kernel *k, Contraction *c, UOp *root, bool in_sum, const UOpVec *all) {
  UOpVec order = {0};
  bool ok = uop_toposort(k->st, k->mem, &root, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    bool had = false;
    bool summed = c->fused && u == c->value; /* the product is part of the addition */
    if (in_sum && !summed && op_is_alu((Ops)u->op) && u->dtype != DT_INDEX && u->dtype != DT_BOOL)
      operation_add(c, u);
    if (u->op != OPS_INDEX) continue;
    for (int a = c->nstore; a < c->naccess; a++)
      had |= c->access[a].index == u;
    if (had) continue;
    ok = access_add(k, c, u, in_sum, all);
    if (ok && c->access[c->naccess - 1].converted)
      work_add(c, (Work){.on = loops_of(c, u), .converts = c->naccess - 1, .weight = 1});
  }
  vec_free(k->mem, &order);
  return ok;
}

/* Whether two reads of a buffer are in the same lines at all times: loops that leave a line move both alike,
 * and within one iteration of these they stay nearer than the next one is. The scales of a block of packed
 * weights are beside its values, the window of a stencil beside itself. */
static bool lines_shared(Kernel *k, const Contraction *c, const Access *a, const Access *b) {
  int64_t next = INT64_MAX;
  bool alike = a->index->src[0] == b->index->src[0] && index_naxes(a->index) == index_naxes(b->index);
  if (!alike || !a->even || !b->even) return false;
  for (int r = 0; r < c->n; r++) {
    int64_t by = llabs(a->by[r]) * a->bytes;
    if (by < LINE && llabs(b->by[r]) * b->bytes < LINE) continue;
    if (a->by[r] != b->by[r]) return false;
    if (by < next) next = by;
  }
  int64_t step = 1;
  UOp *apart = num(k, 0);
  for (int d = index_naxes(a->index) - 1; d >= 0; d--) {
    UOp *each = ix(k, OPS_SUB, a->index->src[1 + d], b->index->src[1 + d]);
    apart = ix(k, OPS_ADD, apart, ix(k, OPS_MUL, each, num(k, step)));
    step *= a->index->src[0]->nsrc ? a->index->src[0]->src[d]->arg.v.i : 1;
  }
  if (!apart || apart->vmin == INT64_MIN || apart->vmax == INT64_MAX) return false;
  int64_t most = TG_MAX(llabs(apart->vmin), llabs(apart->vmax));
  return most < next / a->bytes;
}

static void find_beside(Kernel *k, Contraction *c) {
  for (int b = 0; b < c->naccess; b++) {
    c->access[b].beside = -1;
    for (int a = c->nstore; a < b && c->access[b].beside < 0; a++)
      if (c->access[a].beside < 0 && lines_shared(k, c, &c->access[a], &c->access[b]))
        c->access[b].beside = a;
  }
}

/* Registers hold half as many numbers of 8 bytes as of f32, in which the model counts. */
static void target_of_eight(Contraction *c) {
  c->eight = *c->target;
  c->eight.vec_bytes /= 2;
  c->eight.fmas /= 2, c->eight.ops /= 2;
  c->target = &c->eight;
}

bool contraction_of(Kernel *k, Contraction *c) {
  UOpVec order = {0};
  memset(c, 0, sizeof *c);
  c->target = k->opt->target;
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
  UOp *reduce = ok ? only_reduce(&order) : NULL;
  ok = reduce && k->sink->nsrc >= 1;
  if (ok && dtype_size((DType)reduce->dtype) == 8) target_of_eight(c);
  ok = ok && outputs_add(k, c, k->sink, reduce);
  for (int i = 1; ok && i < reduce->nsrc; i++)
    ok = loop_add(c, reduce->src[i], true);
  for (int i = 0; ok && i < k->sink->nsrc; i++)
    ok = access_add(k, c, k->sink->src[i]->src[0], false, &order) && c->access[i].even && !c->access[i].gated;
  c->nstore = k->sink->nsrc;
  if (ok) c->value = reduce->src[0];
  if (ok) c->fused = reduce->arg.reduce.op == OPS_ADD && reduce->src[0]->op == OPS_MUL;
  ok = ok && loads_add(k, c, reduce->src[0], true, &order);
  for (int i = 0; ok && i < k->sink->nsrc; i++)
    ok = loads_add(k, c, k->sink->src[i]->src[1], false, &order);
  for (int r = 0; ok && r < c->n; r++)
    ok = c->size[r] > 0;
  if (ok) find_beside(k, c);
  c->plain = ok && c->nstore == 1 && k->sink->src[0]->src[1] == reduce;
  c->whole = ok;
  for (int i = 0; ok && i < k->sink->nsrc; i++)
    c->whole &= k->sink->src[i]->nsrc - 2 == c->n - (reduce->nsrc - 1) && !k->sink->src[i]->src[0]->arg.i;
  for (int r = 0; ok && r < c->n; r++) {
    if (depends(k, reduce, c->range[r])) c->summed |= 1u << r;
    c->whole &= (c->reduce | c->summed) >> r & 1; /* each output is summed in its own iteration */
  }
  c->plain &= c->whole;
  for (int a = 1; ok && a < c->naccess; a++)
    c->plain &= c->access[a].slot != c->access[0].slot;
  vec_free(k->mem, &order);
  return ok;
}
