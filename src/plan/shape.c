/* shape.c: what follows from the loops and accesses of a kernel (shape.h). In: for each access, how the
 * index of each axis moves with each loop. Out: its steps in memory and its footprints.
 *
 * An access is a sum of axes, each with a step in memory. An index that goes through several axes of a
 * buffer is split into one per axis, so that contiguous accesses can be told from strided ones. */
#include "plan/shape.h"
#include <stdlib.h>
#include <string.h>

enum { LANES = TILE_LANES };

int64_t access_step(const Access *a, int loop) { return a->by[loop]; }

bool place_known(const Access *a, int loop) {
  bool known = !a->even && !a->found && (a->moves >> loop & 1);
  for (int d = 0; d < a->naxis; d++)
    known &= !(a->on[d] >> loop & 1) || a->on[d] == 1u << loop;
  return known;
}

int access_vectors(const Access *a, int loop) {
  int64_t step = llabs(a->by[loop]);
  return a->by[loop] == 1 ? 1 : a->even && step <= MOST_STRIDE ? (int)step : 0;
}

/* Splits an index that goes through several axes of memory, such as c * 3136 + s, into as many axes. A loop
 * starts a new axis if it moves the index by at least as much as all loops with smaller steps reach together.
 * Loops that overlap, as in y + p, stay on one axis. */
static void axis_split(Access *a, const KernelShape *c, int d) {
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

/* Finds the axis that each loop moves by one element. Only axes of the memory itself count, not those that
 * axis_split makes, because a copy can be transposed only by the former. */
static void alone_on_axes(Access *a, const KernelShape *c) {
  for (int r = 0; r < c->n; r++)
    a->alone[r] = -1;
  for (int d = a->naxis; d-- > 0;) {
    uint32_t moving = 0;
    for (int r = 0; r < c->n; r++)
      moving |= (a->coef[d][r] != 0 ? 1u : 0) << r;
    for (int r = 0; r < c->n; r++) {
      if (a->coef[d][r] != 1) continue;
      a->alone[r] = d;
      a->others[r] = moving & ~(1u << r);
    }
  }
}

int body_around(const KernelShape *c, uint32_t loops) {
  int at = 0, least = MAX_LOOPS + 1;
  for (int b = 0; b < c->nbody; b++) {
    int n = __builtin_popcount(c->body[b].loops);
    if ((loops & ~c->body[b].loops) || n >= least) continue;
    at = b;
    least = n;
  }
  return at;
}

int most_sums(const KernelShape *c) {
  int most = 0;
  for (int b = 0; b < c->nbody; b++)
    most = TG_MAX(most, c->body[b].nsum);
  return most;
}

/* ---- footprints */
double access_spans(const Access *a, const double *ext, double *span) {
  double n = 1;
  for (int d = 0; d < a->naxis; d++) {
    span[d] = 1;
    for (uint32_t moves = a->on[d]; moves; moves &= moves - 1) {
      int r = __builtin_ctz(moves);
      double by = fabs((double)a->coef[d][r]) * (ext[r] - 1);
      span[d] += a->reach[d][r] ? fmin(by, (double)a->reach[d][r]) : by;
    }
    if (!a->even) span[d] = fmin(span[d], (double)a->extent[d]);
    n *= span[d];
  }
  return n;
}

/* Axes are merged into one run, from the smallest step outwards, while the gap between touched elements is
 * less than a cache line. Then every line of the run is touched, for example if 32 bytes of each row of 34
 * bytes are read. Rows may overlap: an index that crosses an edge, such as 2 p + q - 1, seems to reach into
 * the row before. */
Footprint access_footprint(const Access *a, const double *ext) {
  double span[MAX_AXES], n = access_spans(a, ext, span), run = 1, elements = 1, stride = 0;
  int i = a->naxis - 1;
  for (; i >= 0; i--) {
    int d = a->by_step[i];
    double gap = (double)a->step[d] - run;
    if (span[d] <= 1) continue;
    if (gap * a->bytes >= LINE) break;
    run += (double)a->step[d] * (span[d] - 1);
    elements *= span[d];
  }
  for (int d = 0; d < a->naxis; d++)
    if (span[d] > 1 && (double)a->step[d] >= run && (stride == 0 || (double)a->step[d] < stride))
      stride = (double)a->step[d];
  double rows = n / elements * access_reads(a), lines = lines_of(run * a->bytes), reads = access_reads(a);
  for (int r = 0; r < MAX_LOOPS; r++)
    if (a->moves >> r & 1) reads *= ext[r];
  if (!a->even && reads < rows * lines) /* computed places: each may be in a cache line of its own */
    return (Footprint){reads * LINE, a->bytes, reads, reads, 1, LINE};
  return (Footprint){.bytes = rows * lines * LINE,
                     .run = run * a->bytes,
                     .rows = rows,
                     .blocks = rows,
                     .lines = lines,
                     .stride = stride * a->bytes};
}

/* Weights that are decoded are read from memory, however small they are. The exception is if so many rows of
 * outputs share them that reading them is not what takes the time. */
enum { FEW_OUTPUTS = 16 };

void access_settle(Access *a, const KernelShape *c) {
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
  double size[MAX_LOOPS], summed[MAX_LOOPS], span[MAX_AXES], outputs = 1;
  for (int r = 0; r < c->n; r++) {
    size[r] = (double)c->size[r];
    summed[r] = is_summed_over(c, r) ? size[r] : 1;
    outputs *= size[r] / summed[r];
  }
  for (int d = 0; d < a->naxis; d++) {
    int at = d;
    for (; at > 0 && a->step[a->by_step[at - 1]] < a->step[d]; at--)
      a->by_step[at] = a->by_step[at - 1];
    a->by_step[at] = d;
  }
  a->whole = access_footprint(a, size).bytes;
  a->body = body_around(c, a->moves | a->gate_moves | a->asks);
  /* bytes of it that one output needs */
  double own = access_spans(a, summed, span) * access_reads(a) * a->bytes;
  double few = is_nested(c) ? FEW_OUTPUTS : 1;
  a->streamed = c->reduce && a->in_sum && a->even && a->whole * few >= outputs * own &&
                a->whole > (double)c->target->cache[LEVEL_L1];
}

bool can_stage(const KernelShape *c, int a, int *loop) {
  const Access *x = &c->access[a];
  uint32_t others = 0;
  bool only = true;
  for (int o = 0; o < c->naccess; o++) {
    if (o == a || c->access[o].slot != x->slot) continue;
    if (o < c->nstore) return false;
    only = false;
    others |= c->access[o].moves;
  }
  uint32_t own = x->moves & ~others;
  *loop = only || !own ? -1 : __builtin_ctz(own);
  return x->even && x->clips && (only || own);
}

void work_add(KernelShape *c, Work w) {
  int at = 0;
  if (c->reduce && (w.decided & ~c->reduce)) w.decided = 0;
  if (c->reduce || !(w.decided & (w.decided - 1))) c->decides |= w.decided;
  w.body = body_around(c, w.on);
  while (at < c->nwork &&
         (c->work[at].on != w.on || c->work[at].decided != w.decided || c->work[at].converts != w.converts))
    at++;
  if (at == MAX_WORK) {
    c->work[--at].on |= w.on;
    c->work[at].body = body_around(c, c->work[at].on);
    c->work[at].decided = 0;
    c->work[at].converts = 0;
  } else if (at == c->nwork)
    c->work[c->nwork++] = (Work){.on = w.on, .decided = w.decided, .body = w.body, .converts = w.converts};
  c->work[at].weight += w.weight;
}
