/* hazards.c: what must run before what. In: stages. Out: edges from each reader of a buffer to the store that
 * overwrites it, and a topological order. The edges are made before any stages are joined, so no join can
 * forget one. */
#include "schedule/stage.h"

/* ---- hazards. A stage that reads the old version of a buffer must run before the store. If a store reads
 * its own buffer at other places than it writes, its value is first computed in a stage of its own. */
static bool split_self_hazard(Sched *s, int i) {
  Stage *g = stage_at(s, i);
  if (g->update) return true; /* rangeify has checked that it reads only the places that it writes */
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
    if (g->out[k]->op == OPS_RANGE) {
      from[n] = g->out[k];
      to[n] = v.out[k] = uop_range_of(s->st, g->out[k]->src[0], s->next_range++, AXIS_LOOP);
      n++;
    }
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

/* Makes the edges in one pass over the reads. The stores of a buffer are found by its slot. */
bool hazards(Sched *s) {
  size_t n0 = s->stages.len;
  for (size_t i = 0; i < n0; i++)
    if (stage_at(s, (int)i)->is_store && !split_self_hazard(s, (int)i)) return false;
  Map last; /* slot -> number of its last store + 1; prev links to the earlier stores of the slot */
  map_init(&last, s->mem);
  size_t n = s->stages.len;
  uint64_t v;
  int *prev = mem_alloc(s->mem, (n + 1) * sizeof *prev);
  bool ok = prev != NULL;
  for (size_t w = 0; ok && w < n; w++) {
    if (!stage_at(s, (int)w)->is_store || stage_at(s, (int)w)->buffer < 0)
      continue; /* no other stage uses a scatter's own memory */
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
          continue; /* it reads the result of an earlier store, so only a later store can overwrite that */
        ok = vec_push(s->mem, &st->war, (int)r);
      }
    }
  }
  mem_free(s->mem, prev);
  map_free(&last);
  return ok;
}

/* ---- order: depth first, over data edges, store edges and write-after-read edges */
bool order_stages(Sched *s) {
  size_t n = s->stages.len;
  uint8_t *state = mem_alloc(s->mem, n + 1);
  Vec(int64_t) stack = {0}; /* (stage << 32) + number of its next edge */
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
      } else if (!state[q] && !stage_at(s, q)->inlined) {
        state[q] = 1;
        ok = vec_push(s->mem, &stack, (int64_t)q << 32);
      }
    }
  }
  vec_free(s->mem, &stack);
  mem_free(s->mem, state);
  return ok;
}
