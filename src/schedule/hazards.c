/* hazards.c: what must come before what. In: stages. Out: edges (a reader of a buffer before the store that
 * overwrites it), cheap stages written into their readers, and an order of the rest. Edges are made before
 * anything joins, so that joining can only respect them. */
#include "schedule/stage.h"
#include <string.h>

/* ---- hazards: edges before anything joins. A reader of a buffer's old version comes before the store; a
 * store that reads its own buffer elsewhere than where it writes first computes its value into a stage of its
 * own. */
static bool split_self_hazard(Sched *s, int i) {
  Stage *g = stage_at(s, i);
  if (g->update) return true; /* rangeify saw that it reads its own places alone */
  bool clash = false;
  for (size_t k = 0; k < g->reads.len; k++) {
    const UOp *x = g->reads.at[k].index;
    clash |= g->reads.at[k].stage < 0 && same_memory(x, g->target) && x != g->target &&
             index_flat(s->st, s->mem, x) != index_flat(s->st, s->mem, g->target);
  }
  if (!clash) return true;
  Stage v = {.node = g->node, .root = -1, .kernel = -1, .keep = true, .nout = g->nout, .value = g->value};
  UOp *src[MAX_RANK + 1], *from[MAX_RANK], *to[MAX_RANK];
  int n = 0;
  for (int k = 0; k < g->nout; k++) {
    v.out[k] = g->out[k];
    if (g->out[k]->op == OPS_RANGE)
      from[n] = g->out[k],
      to[n] = v.out[k] = uop_range_of(s->st, g->out[k]->src[0], s->next_range++, AXIS_LOOP), n++;
    src[1 + k] = g->out[k];
  }
  v.value = uop_substitute(s->st, s->mem, g->value, n, from, to);
  int nv = (int)s->stages.len;
  src[0] = uop_new(s->st, OPS_PARAM, (DType)g->node->dtype, 1, 0, NULL, (Arg){.param = {1, STAGE_SLOT(nv)}});
  UOp *read = uop_new(s->st, OPS_INDEX, (DType)g->node->dtype, 1, 1 + g->nout, src, ARG0);
  if (!v.value || !read) return false;
  for (size_t k = 0; k < g->after.len; k++)
    if (!vec_push(s->mem, &v.after, g->after.at[k])) return false;
  g->value = read;
  if (!vec_push(s->mem, &s->stages, v)) return false;
  return stage_scan(s, nv) && stage_scan(s, i) && vec_push(s->mem, &stage_at(s, i)->after, nv);
}

/* One pass over the reads: the stores of a buffer are found by its slot. */
bool hazards(Sched *s) {
  size_t n0 = s->stages.len;
  for (size_t i = 0; i < n0; i++)
    if (stage_at(s, (int)i)->is_store && !split_self_hazard(s, (int)i)) return false;
  Map last; /* slot -> its last store + 1; prev chains the earlier ones */
  map_init(&last, s->mem);
  size_t n = s->stages.len;
  uint64_t v;
  int *prev = mem_alloc(s->mem, (n + 1) * sizeof *prev);
  bool ok = prev != NULL;
  for (size_t w = 0; ok && w < n; w++) {
    if (!stage_at(s, (int)w)->is_store || stage_at(s, (int)w)->buffer < 0)
      continue; /* a scatter's own memory has no other user */
    prev[w] = map_get(&last, (uint64_t)stage_at(s, (int)w)->buffer, &v) ? (int)v : 0;
    ok = map_put(&last, (uint64_t)stage_at(s, (int)w)->buffer, w + 1);
  }
  for (size_t r = 0; ok && last.len && r < n; r++) {
    Stage *g = stage_at(s, (int)r);
    for (size_t k = 0; ok && k < g->reads.len; k++) {
      const UOp *x = g->reads.at[k].index;
      int q = g->reads.at[k].stage;
      if (q >= 0 && (!stage_at(s, q)->is_store || stage_at(s, q)->buffer < 0)) continue;
      uint64_t slot = q >= 0 ? (uint64_t)stage_at(s, q)->buffer : (uint64_t)x->src[0]->arg.param.slot;
      for (int w = map_get(&last, slot, &v) ? (int)v : 0; ok && w; w = prev[w - 1]) {
        Stage *st = stage_at(s, w - 1);
        if (w - 1 == (int)r || ints_have(&g->after, w - 1) || ints_have(&g->deps, w - 1) ||
            ints_have(&st->war, (int)r))
          continue;
        if (q >= 0 && !ints_have(&st->after, q))
          continue; /* reads what an earlier store left: only a later store can spoil it */
        ok = vec_push(s->mem, &st->war, (int)r);
      }
    }
  }
  mem_free(s->mem, prev);
  map_free(&last);
  return ok;
}

/* ---- inline what is cheap, producers first */
static bool reads_of(const Stage *q, int producer) {
  for (size_t k = 0; k < q->reads.len; k++)
    if (q->reads.at[k].stage == producer) return true;
  return false;
}

/* The reader's value with the producer's where it was read. An index of such a read may hold another one,
 * which is then still there. */
static UOp *with_value(Sched *s, int reader, int producer) {
  Stage *q = stage_at(s, reader), *g = stage_at(s, producer);
  UOpVec from = {0}, to = {0};
  bool ok = true;
  for (size_t k = 0; ok && k < q->reads.len; k++) {
    if (q->reads.at[k].stage != producer) continue;
    UOp *f[MAX_RANK], *t[MAX_RANK];
    int n = 0;
    for (int d = 0; d < g->nout; d++)
      if (g->out[d]->op == OPS_RANGE) f[n] = g->out[d], t[n++] = q->reads.at[k].index->src[1 + d];
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
    ok = v && (q->value = v) && stage_scan(s, reader);
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

/* A value that is spread: all that it is computed from is a small part of it. */
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
  if (!g->reads.len && !uop_has_op(g->value, OPS_THREEFRY)) return true; /* a closed form of its indices */
  if (g->heavy || g->weight > 12 || uop_has_op(g->value, OPS_REDUCE)) return false;
  return (full <= 1 && !g->deps.len) || is_spread(s, g);
}

/* A reduction whose one reader takes each of its elements once, at an index that is not the reader's own grid
 * (shifted, or reduced over): it nests in the reader, and the tensor between them is never stored. The
 * reader's loops may go a little beyond it, as those of a padding do. */
static bool nests(Sched *s, int i) {
  Stage *g = stage_at(s, i);
  if (!g->is_reduce || g->readers.len != 1) return false;
  Stage *q = stage_at(s, g->readers.at[0]);
  UOp *x = NULL, *used[MAX_RANK];
  int n = 0;
  bool plain = true;
  for (size_t k = 0; k < q->reads.len; k++) {
    if (q->reads.at[k].stage != i) continue;
    if (x) return false;
    x = q->reads.at[k].index;
  }
  if (!x || q->is_store || q->fixed) return false;
  for (int d = 0; d < g->nout; d++) {
    UOp *e = x->src[1 + d], *r = NULL;
    if (is_const(e)) continue;
    for (int a = 0; a < q->nout + q->nred && !r; a++) {
      UOp *own = a < q->nout ? q->out[a] : q->red[a - q->nout];
      if (own->op != OPS_RANGE) continue;
      UOp *up = uop_simplify(s->st, s->mem, uop_alu2(s->st, OPS_SUB, e, own)),
          *down = uop_simplify(s->st, s->mem, uop_alu2(s->st, OPS_ADD, e, own));
      if ((up && is_const(up)) || (down && is_const(down))) r = own, plain &= e == own && a < q->nout;
    }
    for (int k = 0; k < n; k++)
      if (used[k] == r) return false;
    if (!r) return false;
    used[n++] = r;
  }
  int64_t turns = 1;
  for (int k = 0; k < n; k++)
    turns *= range_extent(used[k]);
  return !plain && turns == stage_iterations(q) &&
         turns <=
             stage_out_size(g) + stage_out_size(g) / 2; /* not once per element of all that is beside it */
}

/* Nested, a reduction is computed where its reader is: with the reader's loops for lanes and tiles, and the
 * reader's grid alone to share among cores. */
static bool nesting_pays(Sched *s, int i) {
  int reader = stage_at(s, i)->readers.at[0];
  Stage *q = stage_at(s, reader);
  Cost own = stage_cost(s, i, NULL), apart = stage_cost(s, reader, NULL), nested = {.us = IMPOSSIBLE_US};
  UOp *old = q->value, *v = with_value(s, reader, i);
  if (!v) return false;
  q->value = v;
  if (stage_scan(s, reader)) nested = stage_cost(s, reader, NULL);
  q->value = old;
  if (!stage_scan(s, reader)) return false;
  bool pays = nested.us < own.us + apart.us;
  if (s->opt->explain) {
    str_printf(s->opt->explain, "%s s%d in s%d: apart ", pays ? "nest " : "no   ", i, reader);
    cost_print(s->opt->explain, &own), str_put(s->opt->explain, " + "), cost_print(s->opt->explain, &apart);
    str_put(s->opt->explain, ", nested "), cost_print(s->opt->explain, &nested),
        str_put(s->opt->explain, "\n");
  }
  return pays;
}

bool for_lanes(Sched *s, int i) {
  const Stage *g = stage_at(s, i);
  bool in_order = false;
  for (size_t j = 0; g->node->op == OPS_CONTIGUOUS && j < g->readers.len; j++)
    in_order |= stage_at(s, g->readers.at[j])->ordered != 0;
  return in_order;
}

bool inline_cheap(Sched *s) {
  uint8_t *pinned = mem_alloc(
      s->mem, s->stages.len + 1); /* its buffers are overwritten later: it must keep its place in time */
  bool ok = pinned && readers_build(s);
  for (size_t w = 0; ok && w < s->stages.len; w++)
    for (size_t k = 0; k < stage_at(s, (int)w)->war.len; k++)
      pinned[stage_at(s, (int)w)->war.at[k]] = 1;
  for (size_t k = 0; ok && k < s->order.len; k++) {
    int i = s->order.at[k];
    Stage *g = stage_at(s, i);
    if (g->keep || g->fixed || for_lanes(s, i) || g->war.len || pinned[i] ||
        !(g->is_reduce ? nests(s, i) && nesting_pays(s, i) : is_cheap(s, g)))
      continue;
    for (size_t j = 0; ok && j < g->readers.len; j++)
      ok = replace_reads(s, g->readers.at[j], i);
    g->inlined = true;
  }
  mem_free(s->mem, pinned);
  return ok && readers_build(s);
}

/* ---- order: depth first, over data, store and write-after-read edges */
bool order_stages(Sched *s) {
  size_t n = s->stages.len;
  uint8_t *state = mem_alloc(s->mem, n + 1);
  Vec(int64_t) stack = {0}; /* stage << 32 | next edge */
  bool ok = state != NULL;
  s->order.len = 0;
  for (size_t r = 0; ok && r < n; r++) {
    if (state[r] || stage_at(s, (int)r)->inlined) continue;
    state[r] = 1;
    ok = vec_push(s->mem, &stack, (int64_t)r << 32);
    while (ok && stack.len) {
      int64_t *f = &stack.at[stack.len - 1];
      int i = (int)(*f >> 32), e = (int)(*f & 0xffffffff);
      Stage *g = stage_at(s, i);
      int nd = (int)g->deps.len, na = (int)g->after.len, nw = (int)g->war.len;
      if (e == nd + na + nw) {
        state[i] = 2;
        ok = vec_push(s->mem, &s->order, i);
        stack.len--;
        continue;
      }
      (*f)++;
      int q = e < nd ? g->deps.at[e] : e < nd + na ? g->after.at[e - nd] : g->war.at[e - nd - na];
      if (state[q] == 1) {
        error_set(s->err, TG_ERR_STATE,
                  "schedule: an assignment needs a value that must be read before it and after it");
        ok = false;
      } else if (!state[q] && !stage_at(s, q)->inlined)
        state[q] = 1, ok = vec_push(s->mem, &stack, (int64_t)q << 32);
    }
  }
  vec_free(s->mem, &stack);
  mem_free(s->mem, state);
  return ok;
}
