/* nested.c: reductions that are written into the reductions that read them. In: stages with hazards and an
 * order. Out: the same stages, without some tensors between two reductions. The second reduction must read
 * each element once, at a shifted place. Such a tensor often has an axis for each tap of a convolution. Most
 * of this is done before loops are aligned, because a nested reduction has the loops of its reader. */
#include "schedule/stage.h"
#include "uop/rules.h"
#include <math.h>
#include <string.h>

/* One reduction may cost at most this share of what two cost apart. Estimates are no more exact than that,
 * and a contraction on its own is sure to get a tile. */
static const double LEAST_GAIN = 0.98;

/* Whether `of` moves with every loop that e moves with. The bits of `ranges` decide this, except for loops
 * past 62. */
bool ranges_within(Sched *s, UOp *e, UOp *of) {
  if (e->ranges & ~of->ranges) return false;
  if (!(e->ranges & range_bit(63))) return true;
  UOpVec order = {0}, mine = {0};
  bool within = uop_toposort(s->st, s->mem, &of, 1, &order) && uop_toposort(s->st, s->mem, &e, 1, &mine);
  for (size_t i = 0; within && i < mine.len; i++) {
    bool has = mine.at[i]->op != OPS_RANGE;
    for (size_t k = 0; !has && k < order.len; k++)
      has = order.at[k] == mine.at[i];
    within = has;
  }
  vec_free(s->mem, &order), vec_free(s->mem, &mine);
  return within;
}

bool reads_over(Sched *s, UOp *x, UOp *p) { return uop_has(x, INDEX) && ranges_within(s, p, x); }

/* Whether all places are in bounds. Only the bounds of the indices are used, not gates. */
static bool index_inside(const Sched *s, const UOp *index) {
  const UOp *memory = index->src[0];
  int q = read_stage(index);
  for (int d = 1; d < index->nsrc; d++) {
    int64_t extent = q >= 0         ? range_extent(s->stages.at[q].out[d - 1])
                     : memory->nsrc ? memory->src[d - 1]->vmax
                                    : memory->arg.param.nelem;
    if (index->src[d]->vmin < 0 || index->src[d]->vmax >= extent) return false;
  }
  return true;
}

UOp *beside_gate(Rewrite *rw, UOp *y, UOp *p) {
  UOpVec order = {0};
  bool ok = uop_toposort(rw->st, rw->mem, &y, 1, &order), inside = true;
  for (size_t i = 0; ok && inside && i < order.len; i++)
    inside = order.at[i]->op != OPS_INDEX || index_inside(rw->ctx, order.at[i]);
  vec_free(rw->mem, &order);
  if (!ok) return NULL;
  UOp *zero = uop_const(rw->st, (DType)y->dtype, (Scalar){.i = 0});
  return inside ? y
         : zero ? uop_new(rw->st, OPS_GATE, (DType)y->dtype, 1, 3, (UOp *[]){y, p, zero}, ARG0)
                : NULL;
}

bool gates_reduce(const UOp *reduce, const UOp *x, const UOp *c) {
  int loops = reduce->nsrc - 1;
  while (x->op == OPS_WHERE && x->src[2] == c)
    x = x->src[1];
  return x->op == OPS_REDUCE && x->arg.reduce.op == reduce->arg.reduce.op && x->dtype == reduce->dtype &&
         is_neutral(reduce, c) && x->nsrc - 1 + loops <= MAX_RANK;
}

/* Sets the value of a stage, and the loops that it reduces over. Returns false on failure. */
static bool reduce_set(Sched *s, Stage *q, UOp *v) {
  if (!v || !(q->value = uop_simplify(s->st, s->mem, v))) return false;
  q->is_reduce = q->value->op == OPS_REDUCE;
  q->nred = q->is_reduce ? q->value->nsrc - 1 : 0;
  memcpy(q->red, q->value->src + 1, (size_t)q->nred * sizeof *q->red);
  return true;
}

/* A reduction of a reduction with the same op becomes one over the loops of both, even if there is a gate
 * between them. */
bool merge_reduces(Sched *s, Stage *q) {
  UOp *u = q->value, *merged = u;
  if (u->op != OPS_REDUCE) return true;
  if (!q->is_reduce && !reduce_set(s, q, u)) return false; /* a view of a reduction is a reduction */
  Rewrite rw = {.st = s->st, .mem = s->mem};
  for (UOp *next = u; next; next = pm_merge_reduces(&rw, merged))
    merged = next;
  if (rw.failed) return false;
  UOp *v = merged == u ? u : uop_answer(s->st, s->mem, pm_gate, s, merged);
  bool sum = v && v->op == OPS_REDUCE && v->arg.reduce.op == OPS_ADD;
  if (sum && uop_has(v, CMPEQ)) v = one_hot_dropped(s, v);
  return v == u || reduce_set(s, q, v);
}

/* MOST_AGAIN: times that iterations may read one element. MOST_NESTED: loops of a stage. MOST_READS: reads of
 * a stage in which nesting is tried, because each trial walks through all of them. */
enum { MOST_AGAIN = 4, MOST_NESTED = 24, MOST_READS = 64 };

/* An index as a sum of multiples of loops. A quotient is treated as its dividend divided exactly: with a
 * stride, several iterations have the same quotient, but a gate lets only one of them read. */
typedef struct Terms {
  int n; /* -1: the index is not such a sum */
  UOp *loop[MAX_RANK];
  double times[MAX_RANK];
} Terms;

static void terms_add(Terms *t, UOp *e, double times) {
  if (t->n < 0 || is_const(e)) return;
  if (e->op == OPS_ADD || e->op == OPS_SUB) {
    terms_add(t, e->src[0], times), terms_add(t, e->src[1], e->op == OPS_SUB ? -times : times);
    return;
  }
  if (e->op == OPS_FLOORDIV && is_const(e->src[1])) {
    terms_add(t, e->src[0], times / (double)e->src[1]->arg.v.i);
    return;
  }
  if (e->op == OPS_MUL && is_const(e->src[1])) {
    terms_add(t, e->src[0], times * (double)e->src[1]->arg.v.i);
    return;
  }
  int k = 0;
  while (k < t->n && t->loop[k] != e)
    k++;
  if (e->op != OPS_RANGE || k == MAX_RANK) {
    t->n = -1;
    return;
  }
  if (k == t->n) {
    t->loop[t->n] = e;
    t->times[t->n++] = 0;
  }
  t->times[k] += times;
}

static bool list_has(UOp *const *v, int n, const UOp *x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* Makes the unknown loops of t known, if their sum determines the iteration of each. That is so if the loops
 * are like the digits of a number: each step is longer than the sum of all smaller steps. Returns whether any
 * loop became known. */
static bool terms_tell(const Terms *t, UOp **known, int *nknown) {
  Terms open = {0};
  double reach = 0, last = 0;
  for (int k = 0; k < t->n; k++)
    if (!list_has(known, *nknown, t->loop[k])) {
      open.loop[open.n] = t->loop[k];
      open.times[open.n++] = t->times[k] < 0 ? -t->times[k] : t->times[k];
    }
  for (int done = 0; done < open.n; done++) {
    double least = INFINITY;
    int at = -1;
    for (int k = 0; k < open.n; k++)
      if (open.times[k] > last && open.times[k] < least) {
        least = open.times[k];
        at = k;
      }
    if (at < 0 || least <= reach || !is_counted(open.loop[at])) return false;
    last = least;
    reach += least * (double)(range_extent(open.loop[at]) - 1);
  }
  for (int k = 0; k < open.n && *nknown < MAX_RANK; k++)
    known[(*nknown)++] = open.loop[k];
  return open.n > 0;
}

/* How often an element is read again because of loops of the reductions that are nested in the reader
 * already; `known` has some of these loops. Returns 0 if a known loop belongs to no such reduction, or to
 * another stage. */
static int64_t again_nested(Sched *s, const Stage *q, UOp *const *known, int nknown) {
  UOpVec order = {0};
  UOp *value = q->value;
  int64_t again = 1;
  int own = 0;
  for (int k = 0; k < nknown; k++)
    own += list_has(q->out, q->nout, known[k]) || list_has(q->red, q->nred, known[k]);
  if (own == nknown) return 1;
  bool ok = uop_toposort(s->st, s->mem, &value, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    const UOp *u = order.at[i];
    int has = 0;
    for (int r = 1; u->op == OPS_REDUCE && u != value && r < u->nsrc; r++)
      has += list_has(known, nknown, u->src[r]);
    own += has;
    for (int r = 1; has && r < u->nsrc; r++)
      if (!list_has(known, nknown, u->src[r])) again *= TG_MIN(range_extent(u->src[r]), MOST_AGAIN + 1);
  }
  vec_free(s->mem, &order);
  return ok && own == nknown ? TG_MIN(again, MOST_AGAIN + 1) : 0;
}

/* Whether the iterations of the reader's loops read each element once, or at most MOST_AGAIN times. A few
 * times are allowed because the gate of a stride may let only one of these iterations read. */
static bool reads_once(Sched *s, const Stage *q, const UOp *index) {
  Terms at[MAX_RANK] = {{0}};
  UOp *known[MAX_RANK];
  int ndim = index->nsrc - 1, nknown = 0;
  int64_t again = 1;
  if (ndim > MAX_RANK) return false;
  for (int d = 0; d < ndim; d++) {
    terms_add(&at[d], index->src[1 + d], 1);
  }
  for (bool more = true; more;) {
    more = false;
    for (int d = 0; d < ndim; d++)
      more |= terms_tell(&at[d], known, &nknown);
  }
  for (int a = 0; a < q->nout + q->nred; a++) {
    UOp *own = a < q->nout ? q->out[a] : q->red[a - q->nout];
    if (own->op == OPS_RANGE && !list_has(known, nknown, own))
      again *= TG_MIN(range_extent(own), MOST_AGAIN + 1);
  }
  int64_t nested = again <= MOST_AGAIN ? again_nested(s, q, known, nknown) : 0;
  return nested && again * nested <= MOST_AGAIN;
}

static bool is_plain(const Stage *q, const UOp *index) { /* whether it reads only at axes of its own result */
  for (int d = 1; d < index->nsrc; d++)
    if (!is_const(index->src[d]) && !list_has(q->out, q->nout, index->src[d])) return false;
  return true;
}

/* The places at which a reader reads each stage. at: 0 for a stage that it does not read, k + 1 for a stage
 * that only its read k reads, -1 for a stage that several reads read. */
typedef struct Places {
  int reader; /* -1: none, or its reads have changed */
  int *at;
  IntVec known; /* the stages whose entry in `at` is not 0 */
} Places;

static bool places_of(Sched *s, int reader, Places *p) {
  if (p->reader == reader) return true;
  for (size_t k = 0; k < p->known.len; k++)
    p->at[p->known.at[k]] = 0;
  p->known.len = 0;
  p->reader = reader;
  const Stage *q = stage_at(s, reader);
  s->walked += q->reads.len;
  for (size_t k = 0; k < q->reads.len; k++) {
    int i = q->reads.at[k].stage;
    if (i < 0) continue;
    p->at[i] = p->at[i] ? -1 : (int)k + 1;
    if (!vec_push(s->mem, &p->known, i)) return false;
  }
  return true;
}

/* Whether reduction i can be nested in its only reader, so that the tensor between them is never stored. The
 * reader must take each element once, at an index that is not simply a place in its own result (but shifted,
 * or reduced over). To keep results invariant, only a sum of integers may be nested, because its order does
 * not matter. */
static bool nests(Sched *s, int i, bool divided, Places *p) {
  Stage *g = stage_at(s, i);
  if (s->opt->invariant && dtype_is_float(stage_dtype(g))) return false;
  if (!g->is_reduce || g->readers.len != 1 || !places_of(s, g->readers.at[0], p) || p->at[i] <= 0)
    return false;
  const Stage *q = stage_at(s, p->reader);
  UOp *x = q->reads.at[p->at[i] - 1].index;
  return q->reads.len <= MOST_READS && !q->is_store && !q->fixed && (divided || !has_divmod(x)) &&
         !is_plain(q, x) && reads_once(s, q, x);
}

/* Whether a value takes more memory than all that it is made from, and more than what is made from it. Then
 * it may be worth some time not to store it, because it would evict everything else from the caches, and a
 * larger batch would not fit in memory. */
static bool is_swollen(Sched *s, const Stage *reader, const Stage *g) {
  double most = value_bytes(reader, (double)stage_out_size(reader));
  for (size_t j = 0; j < g->reads.len; j++)
    most = TG_MAX(most, read_bytes(s, &g->reads.at[j], g->reads.at[j].trips));
  return value_bytes(g, (double)stage_out_size(g)) > most;
}

/* Compares the cost of nesting with the cost apart. A nested reduction is computed in the loops of its
 * reader: those loops are its lanes and tiles, and only the reader's grid is shared among cores. Returns
 * false if out of memory. */
static bool nesting_pays(Sched *s, int i, bool *pays) {
  int reader = stage_at(s, i)->readers.at[0];
  Stage *q = stage_at(s, reader);
  Cost own = stage_cost(s, i, NULL), apart = stage_cost(s, reader, NULL), nested = {.us = IMPOSSIBLE_US};
  Stage old = *q;
  UOp *v = with_value(s, reader, i);
  if (!v) return false;
  q->value = v;
  s->walked += q->reads.len;
  if (merge_reduces(s, q) && stage_scan(s, reader) && q->nout + q->nred + q->nested_loops <= MOST_NESTED)
    nested = stage_cost(s, reader, NULL);
  q->value = old.value;
  q->nred = old.nred;
  q->is_reduce = old.is_reduce;
  memcpy(q->red, old.red, sizeof q->red);
  if (!stage_scan(s, reader)) return false;
  double gain = is_swollen(s, &old, stage_at(s, i))       ? 2
                : q->nproduct || stage_at(s, i)->nproduct ? LEAST_GAIN
                                                          : 1;
  /* apart and nested, the reader's sum may have another order; which it has must not depend on the batch */
  *pays = s->opt->invariant ? nested.us < IMPOSSIBLE_US : nested.us < (own.us + apart.us) * gain;
  if (s->opt->explain) {
    str_printf(s->opt->explain, "%s s%d in s%d: apart ", *pays ? "nest " : "no   ", i, reader);
    cost_print(s->opt->explain, &own), str_put(s->opt->explain, " + "), cost_print(s->opt->explain, &apart);
    str_put(s->opt->explain, ", nested "), cost_print(s->opt->explain, &nested),
        str_put(s->opt->explain, "\n");
  }
  return true;
}

/* Whether stage i must run after stage w. Returns true if out of memory. */
static bool comes_after(Sched *s, int i, int w) {
  uint8_t *seen = mem_alloc(s->mem, s->stages.len + 1);
  IntVec stack = {0};
  bool ok = seen && vec_push(s->mem, &stack, i), found = false;
  while (ok && stack.len && !found) {
    const Stage *g = stage_at(s, stack.at[--stack.len]);
    const IntVec *edges[] = {&g->deps, &g->after, &g->war};
    for (int e = 0; e < 3; e++)
      for (size_t k = 0; ok && k < edges[e]->len; k++) {
        int q = edges[e]->at[k];
        found |= q == w;
        if (!seen[q]) {
          seen[q] = 1;
          ok = vec_push(s->mem, &stack, q);
        }
      }
  }
  vec_free(s->mem, &stack);
  mem_free(s->mem, seen);
  return found || !ok;
}

/* Whether the stores that wait for stage i can wait for its reader instead. They cannot if the reader needs
 * one of them. */
static bool waits_for_reader(Sched *s, int i) {
  int reader = stage_at(s, i)->readers.at[0];
  for (size_t w = 0; w < s->stages.len; w++)
    if (ints_have(&stage_at(s, (int)w)->war, i) && comes_after(s, reader, (int)w)) return false;
  return true;
}

bool war_hand_on(Sched *s, int i, int reader) {
  bool ok = true;
  for (size_t w = 0; ok && w < s->stages.len; w++) {
    IntVec *war = &stage_at(s, (int)w)->war;
    if (!ints_have(war, i)) continue;
    ints_drop(war, i);
    ok = ints_have(war, reader) || vec_push(s->mem, war, reader);
  }
  return ok;
}

/* divided: nests also where the reader divides its loops to find the place. After loops are aligned it may no
 * longer have to divide. Readers come first, so that a chain of stages nests in the loops of the last one,
 * not in loops of values that were padded or cut in between. */
bool nest_reductions(Sched *s, bool divided) {
  Places p = {.reader = -1, .at = mem_alloc(s->mem, (s->stages.len + 1) * sizeof *p.at)};
  bool ok = p.at && readers_build(s);
  for (size_t k = s->order.len; ok && k-- > 0;) {
    int i = s->order.at[k];
    if (!stage_at(s, i)->is_reduce || !may_move(s, i) || !nests(s, i, divided, &p) || !waits_for_reader(s, i))
      continue;
    p.reader = -1; /* its reads change, even if they are put back */
    bool pays = false;
    ok = nesting_pays(s, i, &pays);
    int reader = stage_at(s, i)->readers.at[0];
    if (!ok || !pays || !fusion_taken(s, "nest", i, reader)) continue;
    ok = inline_stage(s, i) && war_hand_on(s, i, reader);
  }
  vec_free(s->mem, &p.known), mem_free(s->mem, p.at);
  return ok;
}
