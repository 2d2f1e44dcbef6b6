/* partition.c: stages -> kernels. In: stages, producers first. Out: kernels in order, each a SINK of STOREs that share grid ranges.
 * A kernel is a set of stages with a common grid. Invariant: an edge between kernels goes to a strictly higher level, so no cycle can
 * arise and none is searched for. A join is made when the cost model says the whole is cheaper than its parts. */
#include "schedule/stage.h"
#include <stdio.h>
#include <string.h>

typedef struct Part { Sched *s; KernVec ks; IntVec order; } Part;
typedef struct Trial { int ngrid; int64_t grid[MAX_RANK]; int old_to_new[MAX_RANK]; int gmap[MAX_RANK]; double us; } Trial;

static Stage *stage_at(Part *p, int i) { return &p->s->stages.at[i]; }
static const IntVec *edges(const Stage *g, int kind) { return kind == 0 ? &g->deps : kind == 1 ? &g->after : &g->war; }

/* ---- hazards: edges before anything joins. A reader of a buffer's old version comes before the store; a store that reads its own buffer
 * elsewhere than where it writes first computes its value into a stage of its own. */
static bool split_self_hazard(Part *p, int i) {
  Sched *s = p->s;
  Stage *g = stage_at(p, i);
  bool clash = false;
  for (size_t k = 0; k < g->reads.len; k++) {
    const UOp *x = g->reads.at[k].index;
    clash |= g->reads.at[k].stage < 0 && x->src[0]->arg.param.slot == g->buffer && x->src[1] != g->store_index;
  }
  if (!clash) return true;
  Stage v = {.node = g->node, .root = -1, .kernel = -1, .keep = true, .nout = g->nout, .value = g->value};
  UOp *src[MAX_RANK + 1], *from[MAX_RANK], *to[MAX_RANK];
  int n = 0;
  for (int k = 0; k < g->nout; k++) {
    v.out[k] = g->out[k];
    if (g->out[k]->op == OPS_RANGE) from[n] = g->out[k], to[n] = v.out[k] = uop_range(s->st, range_extent(g->out[k]), s->next_range++, AXIS_LOOP), n++;
    src[1 + k] = g->out[k];
  }
  v.value = uop_substitute(s->st, s->mem, g->value, n, from, to);
  int nv = (int)s->stages.len;
  src[0] = uop_new(s->st, OPS_PARAM, (DType)g->node->dtype, 1, 0, NULL, (Arg){.param = {1, STAGE_BASE + nv}});
  UOp *read = uop_new(s->st, OPS_INDEX, (DType)g->node->dtype, 1, 1 + g->nout, src, ARG0);
  if (!v.value || !read) return false;
  for (size_t k = 0; k < g->after.len; k++) if (!vec_push(s->mem, &v.after, g->after.at[k])) return false;
  g->value = read;
  if (!vec_push(s->mem, &s->stages, v)) return false;
  return stage_scan(s, nv) && stage_scan(s, i) && vec_push(s->mem, &stage_at(p, i)->after, nv);
}
/* One pass over the reads: the stores of a buffer are found by its slot. */
static bool hazards(Part *p) {
  Sched *s = p->s;
  size_t n0 = s->stages.len;
  for (size_t i = 0; i < n0; i++) if (stage_at(p, (int)i)->is_store && !split_self_hazard(p, (int)i)) return false;
  Map last;                                                  /* slot -> its last store + 1; prev chains the earlier ones */
  map_init(&last, s->mem);
  size_t n = s->stages.len;
  uint64_t v;
  int *prev = mem_alloc(s->mem, (n + 1) * sizeof *prev);
  bool ok = prev != NULL;
  for (size_t w = 0; ok && w < n; w++) {
    if (!stage_at(p, (int)w)->is_store) continue;
    prev[w] = map_get(&last, (uint64_t)stage_at(p, (int)w)->buffer, &v) ? (int)v : 0;
    ok = map_put(&last, (uint64_t)stage_at(p, (int)w)->buffer, w + 1);
  }
  for (size_t r = 0; ok && last.len && r < n; r++) {
    Stage *g = stage_at(p, (int)r);
    for (size_t k = 0; ok && k < g->reads.len; k++) {
      const UOp *x = g->reads.at[k].index;
      int q = g->reads.at[k].stage;
      if (q >= 0 && !stage_at(p, q)->is_store) continue;
      uint64_t slot = q >= 0 ? (uint64_t)stage_at(p, q)->buffer : (uint64_t)x->src[0]->arg.param.slot;
      for (int w = map_get(&last, slot, &v) ? (int)v : 0; ok && w; w = prev[w - 1]) {
        Stage *st = stage_at(p, w - 1);
        if (w - 1 == (int)r || ints_have(&g->after, w - 1) || ints_have(&g->deps, w - 1) || ints_have(&st->war, (int)r)) continue;
        if (q >= 0 && !ints_have(&st->after, q)) continue;   /* reads what an earlier store left: only a later store can spoil it */
        ok = vec_push(s->mem, &st->war, (int)r);
      }
    }
  }
  mem_free(s->mem, prev);
  map_free(&last);
  return ok;
}

/* ---- inline what is cheap, producers first */
static bool replace_reads(Part *p, int reader, int producer) {
  Sched *s = p->s;
  Stage *q = stage_at(p, reader), *g = stage_at(p, producer);
  UOpVec from = {0}, to = {0};
  bool ok = true;
  for (size_t k = 0; ok && k < q->reads.len; k++) {
    if (q->reads.at[k].stage != producer) continue;
    UOp *f[MAX_RANK], *t[MAX_RANK];
    int n = 0;
    for (int d = 0; d < g->nout; d++) if (g->out[d]->op == OPS_RANGE) f[n] = g->out[d], t[n++] = q->reads.at[k].index->src[1 + d];
    UOp *v = uop_simplify(s->st, s->mem, uop_substitute(s->st, s->mem, g->value, n, f, t));
    ok = v && vec_push(s->mem, &from, q->reads.at[k].index) && vec_push(s->mem, &to, v);
  }
  if (ok) {
    UOp *v = uop_substitute(s->st, s->mem, q->value, (int)from.len, from.at, to.at);
    ok = v && (q->value = uop_simplify(s->st, s->mem, v)) != NULL;
    for (size_t k = 0; ok && k < g->after.len; k++) ok = ints_have(&q->after, g->after.at[k]) || vec_push(s->mem, &q->after, g->after.at[k]);
    ok = ok && stage_scan(s, reader);
    for (size_t k = 0; ok && k < g->deps.len; k++) {
      IntVec *rd = &stage_at(p, g->deps.at[k])->readers;
      ok = ints_have(rd, reader) || vec_push(s->mem, rd, reader);
    }
  }
  vec_free(s->mem, &from), vec_free(s->mem, &to);
  return ok;
}
static bool readers_build(Part *p) {
  Sched *s = p->s;
  for (size_t i = 0; i < s->stages.len; i++) stage_at(p, (int)i)->readers.len = 0;
  for (size_t i = 0; i < s->stages.len; i++) {
    Stage *g = stage_at(p, (int)i);
    for (size_t k = 0; !g->inlined && k < g->deps.len; k++) if (!vec_push(s->mem, &stage_at(p, g->deps.at[k])->readers, (int)i)) return false;
  }
  return true;
}
static bool is_cheap(const Stage *g) {
  int full = 0;
  int64_t n = stage_out_size(g);
  for (size_t j = 0; j < g->reads.len; j++) {
    if (g->reads.at[j].stage >= 0) continue;
    const UOp *buf = g->reads.at[j].index->src[0];
    bool dup = false;
    for (size_t l = 0; l < j; l++) dup |= g->reads.at[l].index->src[0] == buf;
    full += !dup && buf->arg.param.nelem * 8 > n;
  }
  if (!g->reads.len && !uop_has_op(g->value, OPS_THREEFRY)) return true;                 /* a closed form of its indices */
  return !g->heavy && g->weight <= 12 && full <= 1 && !g->deps.len && !uop_has_op(g->value, OPS_REDUCE);
}
static bool inline_cheap(Part *p) {
  Sched *s = p->s;
  uint8_t *pinned = mem_alloc(s->mem, s->stages.len + 1);    /* its buffers are overwritten later: it must keep its place in time */
  bool ok = pinned && readers_build(p);
  for (size_t w = 0; ok && w < s->stages.len; w++) for (size_t k = 0; k < stage_at(p, (int)w)->war.len; k++) pinned[stage_at(p, (int)w)->war.at[k]] = 1;
  for (size_t k = 0; ok && k < p->order.len; k++) {
    int i = p->order.at[k];
    Stage *g = stage_at(p, i);
    if (g->is_reduce || g->keep || g->war.len || pinned[i] || !is_cheap(g)) continue;
    for (size_t j = 0; ok && j < g->readers.len; j++) ok = replace_reads(p, g->readers.at[j], i);
    g->inlined = true;
  }
  mem_free(s->mem, pinned);
  return ok && readers_build(p);
}

/* ---- order: depth first, over data, store and write-after-read edges */
static bool order_stages(Part *p) {
  Sched *s = p->s;
  size_t n = s->stages.len;
  uint8_t *state = mem_alloc(s->mem, n + 1);
  Vec(int64_t) stack = {0};                                /* stage << 32 | next edge */
  bool ok = state != NULL;
  p->order.len = 0;
  for (size_t r = 0; ok && r < n; r++) {
    if (state[r] || stage_at(p, (int)r)->inlined) continue;
    state[r] = 1;
    ok = vec_push(s->mem, &stack, (int64_t)r << 32);
    while (ok && stack.len) {
      int64_t *f = &stack.at[stack.len - 1];
      int i = (int)(*f >> 32), e = (int)(*f & 0xffffffff);
      Stage *g = stage_at(p, i);
      int nd = (int)g->deps.len, na = (int)g->after.len, nw = (int)g->war.len;
      if (e == nd + na + nw) { state[i] = 2; ok = vec_push(s->mem, &p->order, i); stack.len--; continue; }
      (*f)++;
      int q = e < nd ? g->deps.at[e] : e < nd + na ? g->after.at[e - nd] : g->war.at[e - nd - na];
      if (state[q] == 1) {
        error_set(s->err, TG_ERR_STATE, "schedule: an assignment needs a value that must be read before it and after it");
        ok = false;
      } else if (!state[q] && !stage_at(p, q)->inlined) state[q] = 1, ok = vec_push(s->mem, &stack, (int64_t)q << 32);
    }
  }
  vec_free(s->mem, &stack);
  mem_free(s->mem, state);
  return ok;
}

/* ---- cost, us. Figures of one core: 58 G simple operations, 225 GF of contractions, bandwidth by working set. */
static double bytes_us(double b) { return b <= 524288 ? b / 174e3 : b <= 16777216 ? b / 95e3 : b / 30e3; }
int gmap_placed(const Gmap *g, int stage, int d) { return g->s->stages.at[stage].gmap[d]; }
static int gmap_trial(const Gmap *g, int stage, int d) {
  const Trial *t = g->trial;
  if (stage == g->stage) return t->gmap[d];
  int old = g->s->stages.at[stage].gmap[d];
  return old < 0 ? -1 : t->old_to_new[old];
}
static int64_t inner_size(Sched *s, const Gmap *g, int i) {   /* elements per grid point */
  const Stage *q = &s->stages.at[i];
  int64_t n = 1;
  for (int d = 0; d < q->nout; d++) if (q->out[d]->op == OPS_RANGE && g->of(g, i, d) < 0) n *= range_extent(q->out[d]);
  return n;
}
static bool in_list(const int *v, size_t n, int x) {
  for (size_t i = 0; i < n; i++) if (v[i] == x) return true;
  return false;
}
bool local_plan(Sched *s, const Gmap *g, const int *mem, size_t nmem, int64_t *elems, int64_t *bytes) {
  *bytes = 0;
  for (int optional = 0; optional < 2; optional++)            /* rows of reductions first: the others can be computed again */
    for (size_t k = 0; k < nmem; k++) {
      const Stage *q = &s->stages.at[mem[k]];
      bool must = q->is_reduce || uop_has_op(q->value, OPS_REDUCE);
      if (!optional) elems[k] = 0;
      if (must == (bool)optional || q->is_store || (!must && !q->heavy)) continue;
      int64_t n = inner_size(s, g, mem[k]), size = (int64_t)dtype_size((DType)q->node->dtype);
      int readers = 0;
      bool written = q->keep;
      for (size_t l = 0; n > 1 && l < q->readers.len; l++) {
        bool inside = in_list(mem, nmem, q->readers.at[l]);
        readers += inside, written |= !inside;
      }
      if (!readers || (!must && readers + written < 2)) continue;
      if (n > s->opt->local_bytes / size || *bytes + n * size > s->opt->local_bytes) {
        if (!must) continue;
        *bytes = n > INT64_MAX / size ? INT64_MAX : *bytes + n * size;
        return false;
      }
      elems[k] = n, *bytes += n * size;
    }
  return true;
}
static double kernel_us(Part *p, const int *mem, size_t nmem, int ngrid, const int64_t *grid, const Gmap *gm) {
  Sched *s = p->s;
  double ops = 0, in_us = 0, out_us = 0, reread = 0, rows = 1;
  int64_t elems[MAX_MEMBERS], bytes;
  if (!local_plan(s, gm, mem, nmem, elems, &bytes)) return 1e30;
  for (int g = 0; g < ngrid; g++) rows *= (double)grid[g];
  for (size_t k = 0; k < nmem; k++) {
    Stage *m = stage_at(p, mem[k]);
    double n = (double)stage_iterations(m), w = m->weight + 1, inner = (double)inner_size(s, gm, mem[k]), operand = 0;
    int nbuf = 0;
    for (size_t j = 0; j < m->reads.len; j++) {
      Read *rd = &m->reads.at[j];
      bool dup = false;
      for (size_t l = 0; l < j; l++) dup |= m->reads.at[l].index->src[0] == rd->index->src[0];
      if (dup) continue;
      nbuf++;
      double elem = rd->stage >= 0 ? (double)stage_out_size(stage_at(p, rd->stage)) : (double)rd->index->src[0]->arg.param.nelem;
      double b = TG_MIN(elem, n) * (double)dtype_size((DType)rd->index->dtype);
      size_t at = 0;
      while (at < nmem && mem[at] != rd->stage) at++;
      if (at < nmem) {
        Stage *q = stage_at(p, rd->stage);
        bool same_loop = m->is_reduce && inner == 1 && !q->is_reduce;
        if (elems[at]) in_us += same_loop ? 0 : bytes_us(b / TG_MAX(rows, 1)) * rows;    /* a row in local memory */
        else if (!q->is_reduce && inner_size(s, gm, rd->stage) > 1) w += q->weight;      /* computed again where it is read */
        continue;
      }
      bool seen_in = false;
      for (size_t l = 0; l < k && !seen_in && rd->stage >= 0; l++) seen_in = ints_have(&stage_at(p, mem[l])->deps, rd->stage);
      if (!seen_in) in_us += bytes_us(b);
      operand += b;
    }
    if (elems[k]) out_us += bytes_us((double)elems[k] * (double)dtype_size((DType)m->node->dtype)) * rows;
    bool contraction = m->is_reduce && m->weight >= 1 && stage_iterations(m) > stage_out_size(m) && nbuf > 1;
    if (contraction) {
      double slow = inner > 1 && rows > 1 ? 6 : 1;            /* its own axis left the grid: the tile is one row */
      ops += 2 * n / 225e3 * slow;
      if (inner > 1 && rows > 8) reread += (rows / 8 - 1) * bytes_us(operand / TG_MAX(rows, 1)) + (rows / 8 - 1) * bytes_us(inner * 4);
    } else ops += n * w / 58e3;
    bool written = m->keep;
    for (size_t l = 0; l < m->readers.len && !written; l++) written = !in_list(mem, nmem, m->readers.at[l]);
    if (written) out_us += bytes_us((double)stage_out_size(m) * (double)dtype_size((DType)m->node->dtype));
  }
  double par = TG_MIN(rows, (double)s->opt->ncores);
  double c = ops / TG_MAX(par, 1), b = (in_us + out_us) / TG_MAX(TG_MIN(par, 2), 1);
  return 0.2 + TG_MAX(c, b) + 0.3 * TG_MIN(c, b) + reread;
}

/* The grid of kernel k with stage i added: a dim stays if every read of i carries it as the same plain output range of i. */
static bool fit(Part *p, const Kern *k, int i, Trial *t, char why[96]) {
  Sched *s = p->s;
  Stage *g = stage_at(p, i);
  int pair[MAX_RANK];                                        /* grid dim of k -> axis of i; -1 open, -2 dropped */
  for (int a = 0; a < MAX_RANK; a++) pair[a] = -1;
  for (size_t j = 0; j < g->reads.len; j++) {
    if (g->reads.at[j].stage < 0 || !ints_have(&k->mem, g->reads.at[j].stage)) continue;
    Stage *q = stage_at(p, g->reads.at[j].stage);
    for (int d = 0; d < q->nout; d++) {
      int gd = q->gmap[d];
      if (gd < 0 || q->out[d]->op != OPS_RANGE) continue;
      UOp *e = g->reads.at[j].index->src[1 + d];
      int axis = -1;
      for (int a = 0; a < g->nout; a++) if (e->op == OPS_RANGE && g->out[a] == e) axis = a;
      if (axis < 0 || (pair[gd] >= 0 && pair[gd] != axis)) pair[gd] = -2;
      else if (pair[gd] == -1) pair[gd] = axis;
    }
  }
  memset(t, 0, sizeof *t);
  for (int a = 0; a < MAX_RANK; a++) t->gmap[a] = -1, t->old_to_new[a] = -1;
  for (int gd = 0; gd < k->ngrid; gd++) {
    bool twice = false;
    for (int h = 0; h < gd; h++) twice |= pair[h] >= 0 && pair[h] == pair[gd];
    if (pair[gd] < 0 || twice) continue;
    t->old_to_new[gd] = t->ngrid;
    t->gmap[pair[gd]] = t->ngrid;
    t->grid[t->ngrid++] = k->grid[gd];
  }
  Gmap gm = {gmap_trial, s, i, t};
  for (size_t m = 0; m < k->mem.len; m++) {
    Stage *q = stage_at(p, k->mem.at[m]);
    if (q->is_store && inner_size(s, &gm, k->mem.at[m]) > 1) { snprintf(why, 96, "what s%d stores is read at another index", k->mem.at[m]); return false; }
  }
  return true;
}
static bool strict_edge(const Stage *g, const Kern *k) {
  for (size_t j = 0; j < g->after.len; j++) if (ints_have(&k->mem, g->after.at[j])) return true;
  for (size_t j = 0; j < g->war.len; j++) if (ints_have(&k->mem, g->war.at[j])) return true;
  return false;
}
static int level_need(Part *p, const Stage *g, int k) {
  int need = 0;
  for (int e = 0; e < 3; e++)
    for (size_t j = 0; j < edges(g, e)->len; j++) {
      int q = stage_at(p, edges(g, e)->at[j])->kernel;
      if (q >= 0 && q != k) need = TG_MAX(need, p->ks.at[q].level + 1);
    }
  return need;
}
static void lower_minout(Part *p, int i, int k) {
  Stage *g = stage_at(p, i);
  for (int e = 0; e < 3; e++)
    for (size_t j = 0; j < edges(g, e)->len; j++) {
      int q = stage_at(p, edges(g, e)->at[j])->kernel;
      if (q >= 0 && q != k) p->ks.at[q].minout = TG_MIN(p->ks.at[q].minout, p->ks.at[k].level);
    }
}
static bool place(Part *p, int i) {
  Sched *s = p->s;
  Stage *g = stage_at(p, i);
  Kern one = {.level = 0, .minout = 1 << 30};
  for (int d = 0; d < g->nout; d++) {
    g->gmap[d] = -1;
    if (g->out[d]->op == OPS_RANGE) g->gmap[d] = one.ngrid, one.grid[one.ngrid++] = range_extent(g->out[d]);
  }
  one.us = kernel_us(p, &i, 1, one.ngrid, one.grid, &(Gmap){.of = gmap_placed, .s = s});
  int best = -1;
  Trial bt = {0};
  double gain = 0;
  for (size_t j = 0; s->opt->fuse && j < g->deps.len; j++) {
    int k = stage_at(p, g->deps.at[j])->kernel;
    Kern *kk = &p->ks.at[k];
    bool seen = false;
    for (size_t l = 0; l < j; l++) seen |= stage_at(p, g->deps.at[l])->kernel == k;
    if (seen || strict_edge(g, kk) || kk->mem.len == MAX_MEMBERS) continue;
    int need = level_need(p, g, k);
    if (need > kk->level && kk->minout <= need) continue;
    Trial t;
    char why[96] = "";
    int mem[MAX_MEMBERS];
    int64_t elems[MAX_MEMBERS], bytes;
    Gmap gm = {gmap_trial, s, i, &t};
    size_t nmem = kk->mem.len;
    memcpy(mem, kk->mem.at, nmem * sizeof *mem);
    mem[nmem++] = i;
    bool fits = fit(p, kk, i, &t, why);
    if (fits && !local_plan(s, &gm, mem, nmem, elems, &bytes)) {
      snprintf(why, sizeof why, "rows of %.1f KB do not fit %lld KB of local memory", (double)bytes / 1024, (long long)s->opt->local_bytes >> 10);
      fits = false;
    }
    if (!fits) {
      if (s->opt->explain) str_printf(s->opt->explain, "no    s%d into k%d: %s\n", i, k, why);
      continue;
    }
    t.us = kernel_us(p, mem, nmem, t.ngrid, t.grid, &gm);
    double win = kk->us + one.us - t.us;
    if (s->opt->explain)
      str_printf(s->opt->explain, "%s s%d into k%d: apart %.1f + %.1f us, fused %.1f us, grid of %d\n", win > 0 ? "join " : "no   ", i, k, kk->us, one.us, t.us, t.ngrid);
    if (win > gain) gain = win, best = k, bt = t;
  }
  if (best < 0) {
    one.level = level_need(p, g, -1);
    if (!vec_push(s->mem, &one.mem, i) || !vec_push(s->mem, &p->ks, one)) return false;
    g->kernel = (int)p->ks.len - 1;
  } else {
    Kern *k = &p->ks.at[best];
    k->level = TG_MAX(k->level, level_need(p, g, best));
    for (size_t m = 0; m < k->mem.len; m++) {
      Stage *q = stage_at(p, k->mem.at[m]);
      for (int d = 0; d < q->nout; d++) q->gmap[d] = q->gmap[d] < 0 ? -1 : bt.old_to_new[q->gmap[d]];
    }
    memcpy(g->gmap, bt.gmap, sizeof g->gmap);
    k->ngrid = bt.ngrid, k->us = bt.us;
    memcpy(k->grid, bt.grid, sizeof k->grid);
    if (!vec_push(s->mem, &k->mem, i)) return false;
    g->kernel = best;
    for (size_t m = 0; m < k->mem.len; m++) lower_minout(p, k->mem.at[m], best);
  }
  lower_minout(p, i, g->kernel);
  return true;
}

bool partition(Sched *s, Schedule *out) {
  Part p = {.s = s};
  bool ok = hazards(&p) && order_stages(&p) && (s->opt->fuse ? inline_cheap(&p) && order_stages(&p) : readers_build(&p));
  for (size_t k = 0; ok && k < p.order.len; k++) ok = place(&p, p.order.at[k]);
  ok = ok && build_kernels(s, &p.ks, out);
  for (size_t k = 0; k < p.ks.len; k++) vec_free(s->mem, &p.ks.at[k].mem);
  vec_free(s->mem, &p.ks), vec_free(s->mem, &p.order);
  return ok;
}

TgStatus schedule_make(UOpStore *st, TgMem *mem, UOp *const *roots, int nroots, const SchedOptions *opt, Schedule *out, TgError *err) {
  Sched s = {.st = st, .mem = mem, .err = err, .opt = opt};
  memset(out, 0, sizeof *out);
  arena_init(&out->arena, mem);
  out->nroot = nroots;
  out->root = arena_array(&out->arena, int64_t, nroots + 1);
  bool ok = out->root != NULL;
  for (int i = 0; ok && i < nroots; i++) out->root[i] = -1;
  ok = ok && schedule_run(&s, roots, nroots, out);
  for (size_t i = 0; i < s.stages.len; i++) {
    Stage *g = &s.stages.at[i];
    vec_free(mem, &g->after), vec_free(mem, &g->war), vec_free(mem, &g->deps), vec_free(mem, &g->reads), vec_free(mem, &g->readers);
  }
  vec_free(mem, &s.stages);
  if (ok) { out->store = st; return TG_OK; }
  arena_free(&out->arena);
  memset(out, 0, sizeof *out);
  return error_set(err, TG_ERR_NOMEM, "schedule: out of memory, or a graph it cannot lower"), err->status;
}
void schedule_free(Schedule *s, TgMem *mem) {
  (void)mem;
  arena_free(&s->arena);
  store_free(s->store);
  memset(s, 0, sizeof *s);
}
