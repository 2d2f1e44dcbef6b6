/* align.c: loops of readers and of what they read are split alike. In: stages after rangeify. Out: the same
 * stages, with axes split where a reader takes them apart (r // c, r % c) or puts them together (a * c + b).
 * A reshape between two stages then does not keep them from sharing a grid, and a reshape of a factor of
 * products does not keep its loops from being tiles. A split axis is row-major as before, so no value and no
 * address changes. */
#include "schedule/stage.h"
#include <string.h>

enum { MAX_SPLITS_PER_STAGE = 8, LEAST_OF_REDUCTION = 4, FEW = 8 };

/* The loops of a reduction's result become lanes and tiles. A loop of two iterations would end these, so a
 * pool after a convolution does not split the convolution's loops. A loop of few iterations becomes neither,
 * so it may be split. */
static bool may_split(const Stage *g, int d, int64_t c) {
  return !g->fixed && g->out[d]->op == OPS_RANGE && is_counted(g->out[d]) && g->nout < MAX_RANK &&
         !(g->is_reduce && c < LEAST_OF_REDUCTION && range_extent(g->out[d]) > FEW);
}

static UOp *simp(Sched *s, UOp *u) { return u ? uop_simplify(s->st, s->mem, u) : NULL; }

static UOp *divmod(Sched *s, Ops op, UOp *e, int64_t c) {
  return simp(s, uop_alu2(s->st, op, e, uop_index_const(s->st, c)));
}

/* Replaces loop r by a * c + b inside stage i; *a and *b are its new loops. Returns false on failure. */
static bool halves(Sched *s, int i, UOp *r, int64_t c, AxisType type, UOp **a, UOp **b) {
  Stage *g = &s->stages.at[i];
  *a = uop_range(s->st, range_extent(r) / c, s->next_range++, type);
  *b = uop_range(s->st, c, s->next_range++, type);
  UOp *e =
      *a && *b ? uop_alu2(s->st, OPS_ADD, uop_alu2(s->st, OPS_MUL, *a, uop_index_const(s->st, c)), *b) : NULL;
  if (!e) return false;
  UOp *v = g->value;
  if (v->op == OPS_REDUCE) { /* its sources name loops, so these are split first */
    UOp *src[2 * MAX_RANK + 2];
    int n = 0;
    for (int k = 0; k < v->nsrc && n < 2 * MAX_RANK; k++) {
      if (v->src[k] == r) {
        src[n++] = *a;
        src[n++] = *b;
      } else
        src[n++] = k ? v->src[k] : uop_substitute(s->st, s->mem, v->src[0], 1, &r, &e);
    }
    v = uop_new(s->st, OPS_REDUCE, (DType)v->dtype, 1, n, src, v->arg);
  }
  g->value = simp(s, v ? uop_substitute(s->st, s->mem, v, 1, &r, &e) : NULL);
  if (g->is_store) g->target = simp(s, uop_substitute(s->st, s->mem, g->target, 1, &r, &e));
  return g->value && (!g->is_store || g->target) && stage_scan(s, i);
}

static bool split_red(Sched *s, int i, int k, int64_t c) {
  Stage *g = &s->stages.at[i];
  UOp *a, *b;
  if (g->nred == MAX_RANK || g->value->op != OPS_REDUCE) return true;
  if (!halves(s, i, g->red[k], c, AXIS_REDUCE, &a, &b)) return false;
  memmove(g->red + k + 1, g->red + k, (size_t)(g->nred - k) * sizeof *g->red);
  g->red[k] = a;
  g->red[k + 1] = b;
  g->nred++;
  return true;
}

static bool split_out(Sched *s, int i, int d, int64_t c, const IntVec *readers) {
  Stage *g = &s->stages.at[i];
  UOp *a, *b;
  if (g->nout == MAX_RANK) return true;
  if (!halves(s, i, g->out[d], c, AXIS_LOOP, &a, &b)) return false;
  memmove(g->out + d + 1, g->out + d, (size_t)(g->nout - d) * sizeof *g->out);
  g->out[d] = a;
  g->out[d + 1] = b;
  g->nout++;
  for (size_t j = 0; j < readers->len; j++) {
    Stage *q = &s->stages.at[readers->at[j]];
    UOpVec from = {0}, to = {0};
    bool ok = true;
    for (size_t k = 0; ok && k < q->reads.len; k++) {
      UOp *x = q->reads.at[k].index, *src[MAX_RANK + 2];
      if (q->reads.at[k].stage != i) continue;
      int n = 0;
      for (int l = 0; l < x->nsrc; l++) {
        if (l != 1 + d) {
          src[n++] = x->src[l];
          continue;
        }
        src[n++] = divmod(s, OPS_FLOORDIV, x->src[l], c);
        src[n++] = divmod(s, OPS_FLOORMOD, x->src[l], c);
      }
      UOp *y = uop_new(s->st, OPS_INDEX, (DType)x->dtype, 1, n, src, x->arg);
      ok = y && vec_push(s->mem, &from, x) && vec_push(s->mem, &to, y);
    }
    /* reads nest (a gather's index is read too), so the innermost INDEX is replaced first, one at a time */
    for (size_t k = 0; ok && k < from.len; k++) {
      q->value = uop_substitute(s->st, s->mem, q->value, 1, &from.at[k], &to.at[k]);
      ok = q->value != NULL;
      for (size_t l = k + 1; ok && l < from.len; l++) {
        from.at[l] = uop_substitute(s->st, s->mem, from.at[l], 1, &from.at[k], &to.at[k]);
        to.at[l] = uop_substitute(s->st, s->mem, to.at[l], 1, &from.at[k], &to.at[k]);
        ok = from.at[l] && to.at[l];
      }
    }
    vec_free(s->mem, &from), vec_free(s->mem, &to);
    if (!ok || !stage_scan(s, readers->at[j])) return false;
  }
  return true;
}

/* Finds a part r // c or r % c of e, where r is a loop of extent n that c divides. Returns r, or NULL. */
static UOp *taken_apart(const UOp *e, int64_t *c) {
  const UOp *stack[64];
  int n = 0;
  stack[n++] = e;
  while (n) {
    const UOp *u = stack[--n];
    if (!has_divmod(u)) continue;
    if ((u->op == OPS_FLOORDIV || u->op == OPS_FLOORMOD) && u->src[0]->op == OPS_RANGE &&
        is_const(u->src[1])) {
      *c = u->src[1]->arg.v.i;
      if (*c > 1 && is_counted(u->src[0]) && *c < range_extent(u->src[0]) &&
          range_extent(u->src[0]) % *c == 0)
        return u->src[0];
    }
    for (int k = 0; k < u->nsrc && n < 64; k++)
      if (u->src[k]->dtype == DT_INDEX) stack[n++] = u->src[k];
  }
  return NULL;
}

/* If e = .. * c + b, where b is a loop of extent c: returns c, otherwise 0. */
static int64_t put_together(Sched *s, UOp *e, int64_t extent) {
  const UOp *stack[64];
  int n = 0;
  if (e->op != OPS_ADD) return 0;
  stack[n++] = e;
  while (n) {
    const UOp *u = stack[--n];
    if (u->op == OPS_ADD && n + 2 <= 64) {
      stack[n++] = u->src[0];
      stack[n++] = u->src[1];
      continue;
    }
    if (u->op != OPS_RANGE || !is_counted(u)) continue;
    int64_t c = range_extent(u);
    if (c <= 1 || c >= extent || extent % c) continue;
    UOp *hi = divmod(s, OPS_FLOORDIV, e, c), *lo = divmod(s, OPS_FLOORMOD, e, c);
    if (hi && lo && lo == u && !has_divmod(hi)) return c;
  }
  return 0;
}

/* Used if c itself may not split the loop of a reduction's result. Returns a multiple of c, at most FEW, by
 * which the loop can be split: some loops of e are its short part, which is split by c later. Returns 0 if
 * there is none. */
static int64_t short_part(Sched *s, UOp *e, const Stage *g, int d, int64_t c) {
  for (int64_t part = FEW; c && part > c; part--)
    if (part % c == 0 && range_extent(g->out[d]) % part == 0 && may_split(g, d, part)) {
      UOp *hi = divmod(s, OPS_FLOORDIV, e, part), *lo = divmod(s, OPS_FLOORMOD, e, part);
      if (hi && lo && !has_divmod(hi) && !has_divmod(lo)) return part;
    }
  return 0;
}

/* Marks the stages that sum products, and all stages that they are computed from, because some of these
 * become part of their kernels. Returns false if out of memory. */
static bool products_marked(Sched *s, uint8_t *feeds) {
  IntVec work = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < s->stages.len; i++)
    if (s->stages.at[i].nproduct) {
      feeds[i] = 1;
      ok = vec_push(s->mem, &work, (int)i);
    }
  for (size_t w = 0; ok && w < work.len; w++) {
    const Stage *g = &s->stages.at[work.at[w]];
    for (size_t k = 0; ok && k < g->deps.len; k++)
      if (!feeds[g->deps.at[k]]) {
        feeds[g->deps.at[k]] = 1;
        ok = vec_push(s->mem, &work, g->deps.at[k]);
      }
  }
  vec_free(s->mem, &work);
  return ok;
}

/* Whether all readers of stage i index its axis d by a plain loop of their own, which can be split as
 * well. */
static bool read_by_loops(Sched *s, int i, int d, const IntVec *readers) {
  for (size_t j = 0; j < readers->len; j++) {
    const Stage *q = &s->stages.at[readers->at[j]];
    for (size_t k = 0; k < q->reads.len; k++)
      if (q->reads.at[k].stage == i && q->reads.at[k].index->src[1 + d]->op != OPS_RANGE) return false;
  }
  return true;
}

static bool queue_all(Sched *s, IntVec *work, uint8_t *queued, const IntVec *stages) {
  bool ok = true;
  for (size_t k = 0; ok && k < stages->len; k++) {
    int i = stages->at[k];
    if (queued[i]) continue;
    queued[i] = 1;
    ok = vec_push(s->mem, work, i);
  }
  return ok;
}

bool align(Sched *s) {
  size_t n = s->stages.len, left = MAX_SPLITS_PER_STAGE * n;
  IntVec *readers = mem_alloc(s->mem, (n + 1) * sizeof *readers), work = {0};
  uint8_t *queued = mem_alloc(s->mem, n + 1), *feeds = mem_alloc(s->mem, n + 1);
  bool ok = readers && queued && feeds && products_marked(s, feeds);
  for (size_t i = 0; ok && i < n; i++) {
    Stage *g = &s->stages.at[i];
    for (size_t k = 0; ok && !g->inlined && k < g->deps.len; k++)
      ok = vec_push(s->mem, &readers[g->deps.at[k]], (int)i);
  }
  for (size_t i = 0; ok && i < n; i++) {
    ok = vec_push(s->mem, &work, (int)i);
    queued[i] = 1;
  }
  for (size_t w = 0; ok && w < work.len && left; w++) {
    int i = work.at[w], again = -1;
    Stage *g = &s->stages.at[i];
    queued[i] = 0;
    if (g->fixed || g->inlined) continue; /* the order of its loops has a meaning */
    for (size_t k = 0; ok && again < 0 && k < g->reads.len; k++) {
      int q = g->reads.at[k].stage;
      if (q < 0 && !feeds[i]) continue; /* reads of memory matter only for tiles */
      UOp *x = g->reads.at[k].index, *r;
      for (int d = 1; ok && again < 0 && d < x->nsrc; d++) {
        int64_t c = 0;
        if ((r = taken_apart(x->src[d], &c))) {
          for (int a = 0; a < g->nout && again < 0; a++)
            if (g->out[a] == r && g->nout < MAX_RANK &&
                (q >= 0 || g->nproduct || read_by_loops(s, i, a, &readers[i]))) {
              again = i;
              ok = split_out(s, i, a, c, &readers[i]);
            }
          for (int a = 0; a < g->nred && again < 0; a++)
            if (g->red[a] == r && g->nred < MAX_RANK) {
              again = i;
              ok = split_red(s, i, a, c);
            }
        } else if (q >= 0 && (c = put_together(s, x->src[d], range_extent(s->stages.at[q].out[d - 1])))) {
          const Stage *of = &s->stages.at[q];
          if (!may_split(of, d - 1, c)) c = short_part(s, x->src[d], of, d - 1, c);
          if (!c) continue;
          again = q;
          ok = split_out(s, q, d - 1, c, &readers[q]);
        }
      }
    }
    if (again < 0) continue;
    left--;
    IntVec touched = {.at = (int[]){i, again},
                      .len = 2}; /* and the stages that read the split stage or are read by it */
    ok = ok && queue_all(s, &work, queued, &touched) && queue_all(s, &work, queued, &readers[again]) &&
         queue_all(s, &work, queued, &s->stages.at[again].deps);
  }
  for (size_t i = 0; readers && i < n; i++)
    vec_free(s->mem, &readers[i]);
  mem_free(s->mem, readers), mem_free(s->mem, queued), mem_free(s->mem, feeds);
  vec_free(s->mem, &work);
  return ok;
}
