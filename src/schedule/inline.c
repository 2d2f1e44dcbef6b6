/* inline.c: stages that are written into their readers. In: stages with hazards and an order. Out: the same,
 * without those that cost less where they are read than in memory. */
#include "schedule/stage.h"

static bool reads_of(const Stage *q, int producer) {
  for (size_t k = 0; k < q->reads.len; k++)
    if (q->reads.at[k].stage == producer) return true;
  return false;
}

/* The reader's value with the producer's in place of its reads. The index of such a read may contain another
 * one, which then remains. */
UOp *with_value(Sched *s, int reader, int producer) {
  Stage *q = stage_at(s, reader), *g = stage_at(s, producer);
  UOpVec from = {0}, to = {0};
  bool ok = true;
  for (size_t k = 0; ok && k < q->reads.len; k++) {
    if (q->reads.at[k].stage != producer) continue;
    UOp *f[MAX_RANK], *t[MAX_RANK];
    int n = 0;
    for (int d = 0; d < g->nout; d++)
      if (g->out[d]->op == OPS_RANGE) {
        f[n] = g->out[d];
        t[n++] = q->reads.at[k].index->src[1 + d];
      }
    UOp *v = uop_simplify(s->st, s->mem, uop_substitute(s->st, s->mem, g->value, n, f, t));
    ok = v && vec_push(s->mem, &from, q->reads.at[k].index) && vec_push(s->mem, &to, v);
  }
  UOp *v = ok ? uop_substitute(s->st, s->mem, q->value, (int)from.len, from.at, to.at) : NULL;
  vec_free(s->mem, &from), vec_free(s->mem, &to);
  return v ? uop_simplify(s->st, s->mem, v) : NULL;
}

bool replace_reads(Sched *s, int reader, int producer) {
  Stage *q = stage_at(s, reader), *g = stage_at(s, producer);
  bool ok = true;
  while (ok && reads_of(q, producer)) {
    UOp *v = with_value(s, reader, producer);
    ok = v && (q->value = v) && merge_reduces(s, q) && stage_scan(s, reader);
  }
  for (size_t k = 0; ok && k < g->after.len; k++)
    ok = ints_have(&q->after, g->after.at[k]) || vec_push(s->mem, &q->after, g->after.at[k]);
  for (size_t k = 0; ok && k < g->deps.len; k++) {
    IntVec *rd = &stage_at(s, g->deps.at[k])->readers;
    ok = ints_have(rd, reader) || vec_push(s->mem, rd, reader);
  }
  return ok;
}

bool readers_build(Sched *s) {
  for (size_t i = 0; i < s->stages.len; i++)
    stage_at(s, (int)i)->readers.len = 0;
  for (size_t i = 0; i < s->stages.len; i++) {
    Stage *g = stage_at(s, (int)i);
    for (size_t k = 0; !g->inlined && k < g->deps.len; k++)
      if (!vec_push(s->mem, &stage_at(s, g->deps.at[k])->readers, (int)i)) return false;
  }
  return true;
}

/* Whether a value is spread: all that it is computed from is small compared to it. */
static bool is_spread(Sched *s, const Stage *g) {
  double in = 0;
  for (size_t j = 0; j < g->reads.len; j++)
    in += g->reads.at[j].stage >= 0 ? (double)stage_out_size(stage_at(s, g->reads.at[j].stage))
                                    : (double)g->reads.at[j].index->src[0]->arg.param.nelem;
  return in * 8 <= (double)stage_out_size(g);
}

static bool is_cheap(Sched *s, const Stage *g) {
  int full = 0;
  int64_t n = stage_out_size(g);
  for (size_t j = 0; j < g->reads.len; j++) {
    if (g->reads.at[j].stage >= 0) continue;
    const UOp *x = g->reads.at[j].index;
    bool dup = false;
    for (size_t l = 0; l < j; l++)
      dup |= same_memory(g->reads.at[l].index, x);
    full += !dup && x->src[0]->arg.param.nelem * 8 > n;
  }
  if (!g->reads.len && !uop_has(g->value, THREEFRY)) return true; /* a closed form of its indices */
  if (g->heavy || g->weight > 12 || uop_has(g->value, REDUCE)) return false;
  return (full <= 1 && !g->deps.len) || is_spread(s, g);
}

/* Whether v is one element of memory, possibly behind gates whose other side is a constant, so that lanes and
 * tiles can go along it. A cast to i32 is ignored if a matrix unit takes what it widens. */
static bool is_read(Sched *s, const UOp *v) {
  while (gated_value(v))
    v = gated_value(v);
  bool widened = v->op == OPS_CAST && v->dtype == DT_I32;
  if (widened && unit_takes(s->opt->target, (DType)v->src[0]->dtype)) v = v->src[0];
  if (v->op == OPS_BITCAST) v = v->src[0];
  bool even = v->op == OPS_INDEX && !index_is_data(v);
  for (int d = 1; even && d < v->nsrc; d++)
    even = !divides_sum(v->src[d]);
  return even;
}

/* Whether the stage computes a factor of products. Inlined, it would be computed again for each product;
 * recompute_or_store decides whether that costs less than memory. */
static bool makes_factor(Sched *s, const Stage *g) {
  bool factor = false;
  for (size_t j = 0; j < g->readers.len; j++)
    factor |= stage_at(s, g->readers.at[j])->nproduct > 0;
  return factor && g->reads.len && !is_read(s, g->value);
}

bool for_lanes(Sched *s, int i) {
  const Stage *g = stage_at(s, i);
  bool in_order = false;
  for (size_t j = 0; g->node->op == OPS_CONTIGUOUS && j < g->readers.len; j++)
    in_order |= stage_at(s, g->readers.at[j])->ordered != 0;
  return in_order;
}

/* Writes stage i into all its readers. */
bool inline_stage(Sched *s, int i) {
  Stage *g = stage_at(s, i);
  bool ok = true;
  for (size_t j = 0; ok && j < g->readers.len; j++)
    ok = replace_reads(s, g->readers.at[j], i);
  for (size_t k = 0; k < g->deps.len; k++)
    ints_drop(&stage_at(s, g->deps.at[k])->readers, i);
  g->inlined = true;
  return ok;
}

bool may_move(Sched *s, int i) {
  const Stage *g = stage_at(s, i);
  return !g->keep && !g->fixed && !g->inlined && !for_lanes(s, i) && !g->war.len;
}

bool inline_cheap(Sched *s) {
  /* by stage: it reads what is overwritten later, so it must run before that */
  uint8_t *pinned = mem_alloc(s->mem, s->stages.len + 1);
  bool ok = pinned && readers_build(s);
  for (size_t w = 0; ok && w < s->stages.len; w++)
    for (size_t k = 0; k < stage_at(s, (int)w)->war.len; k++)
      pinned[stage_at(s, (int)w)->war.at[k]] = 1;
  for (size_t k = 0; ok && k < s->order.len; k++) { /* producers first */
    int i = s->order.at[k];
    Stage *g = stage_at(s, i);
    const UOp *had = g->value;
    if (g->is_reduce) ok = merge_reduces(s, g) && (g->value == had || stage_scan(s, i));
    if (ok && !g->is_reduce && !pinned[i] && may_move(s, i) && is_cheap(s, g) && !makes_factor(s, g) &&
        (!g->readers.len || fusion_taken(s, "inline", i, g->readers.at[0])))
      ok = inline_stage(s, i);
  }
  mem_free(s->mem, pinned);
  return ok && readers_build(s);
}
