/* partition.c: stages -> kernels. In: stages, producers first. Out: kernels in order, each a SINK of STOREs that share grid ranges.
 * A kernel is a set of stages with a common grid. Invariant: an edge between kernels goes to a strictly higher level, so no cycle can
 * arise and none is searched for. A join is made when the cost model says the whole is cheaper than its parts. */
#include "schedule/stage.h"
#include <stdio.h>
#include <string.h>

typedef struct Kern { IntVec mem; int ngrid; int64_t grid[MAX_RANK]; int level, minout; double us; } Kern;
typedef struct Part { Sched *s; Vec(Kern) ks; IntVec order; IntVec *readers; } Part;
typedef struct Trial { int ngrid; int64_t grid[MAX_RANK]; int old_to_new[MAX_RANK]; int gmap[MAX_RANK]; double us; } Trial;

static Stage *stage_at(Part *p, int i) { return &p->s->stages.at[i]; }
static bool has(const IntVec *v, int x) {
  for (size_t i = 0; i < v->len; i++) if (v->at[i] == x) return true;
  return false;
}
typedef struct Read { UOp *index; int stage; } Read;
typedef Vec(Read) ReadVec;
static bool reads_of(Sched *s, UOp *value, ReadVec *out, bool buffers) {
  UOpVec order = {0};
  bool ok = uop_toposort(s->st, s->mem, &value, 1, &order);
  for (size_t k = 0; ok && k < order.len; k++) {
    UOp *u = order.at[k];
    if (u->op != OPS_INDEX) continue;
    int d = read_stage(u);
    if (d >= 0 ? !buffers : buffers) ok = vec_push(s->mem, out, ((Read){u, d}));
  }
  vec_free(s->mem, &order);
  return ok;
}

/* ---- hazards: edges before anything joins. A reader of a buffer's old version comes before the store; a store that reads its own buffer
 * elsewhere than where it writes first computes its value into a stage of its own. */
static bool split_self_hazard(Part *p, int i) {
  Sched *s = p->s;
  Stage *g = stage_at(p, i);
  ReadVec rd = {0};
  bool clash = false, ok = reads_of(s, g->value, &rd, true);
  for (size_t k = 0; ok && k < rd.len; k++) clash |= rd.at[k].index->src[0]->arg.param.slot == g->buffer && rd.at[k].index->src[1] != g->store_index;
  vec_free(s->mem, &rd);
  if (!ok || !clash) return ok;
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
static bool hazards(Part *p) {
  Sched *s = p->s;
  size_t n0 = s->stages.len;
  for (size_t i = 0; i < n0; i++) if (stage_at(p, (int)i)->is_store && !split_self_hazard(p, (int)i)) return false;
  bool ok = true, any = false;
  for (size_t i = 0; i < s->stages.len; i++) any |= stage_at(p, (int)i)->is_store;
  for (size_t r = 0; any && ok && r < s->stages.len; r++) {
    ReadVec rd = {0};
    ok = reads_of(s, stage_at(p, (int)r)->value, &rd, true);
    for (size_t w = 0; ok && w < s->stages.len; w++) {
      Stage *g = stage_at(p, (int)w);
      if (!g->is_store || w == r || has(&stage_at(p, (int)r)->after, (int)w) || has(&stage_at(p, (int)r)->deps, (int)w)) continue;
      bool reads = false;
      for (size_t k = 0; k < rd.len; k++) reads |= rd.at[k].index->src[0]->arg.param.slot == g->buffer;
      for (size_t k = 0; k < stage_at(p, (int)r)->deps.len; k++) {     /* or reads what an earlier store left there */
        Stage *q = stage_at(p, stage_at(p, (int)r)->deps.at[k]);
        reads |= q->is_store && q->buffer == g->buffer && has(&g->after, stage_at(p, (int)r)->deps.at[k]);
      }
      if (reads && !has(&g->war, (int)r)) ok = vec_push(s->mem, &g->war, (int)r);
    }
    vec_free(s->mem, &rd);
  }
  return ok;
}

/* ---- inline what is cheap, producers first */
static bool replace_reads(Part *p, int reader, int producer) {
  Sched *s = p->s;
  ReadVec rd = {0};
  bool ok = reads_of(s, stage_at(p, reader)->value, &rd, false);
  UOpVec from = {0}, to = {0};
  Stage *g = stage_at(p, producer);
  for (size_t k = 0; ok && k < rd.len; k++) {
    if (rd.at[k].stage != producer) continue;
    UOp *f[MAX_RANK], *t[MAX_RANK];
    int n = 0;
    for (int d = 0; d < g->nout; d++) if (g->out[d]->op == OPS_RANGE) f[n] = g->out[d], t[n++] = rd.at[k].index->src[1 + d];
    UOp *v = uop_simplify(s->st, s->mem, uop_substitute(s->st, s->mem, g->value, n, f, t));
    ok = v && vec_push(s->mem, &from, rd.at[k].index) && vec_push(s->mem, &to, v);
  }
  if (ok) {
    Stage *q = stage_at(p, reader);
    UOp *v = uop_substitute(s->st, s->mem, q->value, (int)from.len, from.at, to.at);
    ok = v && (q->value = uop_simplify(s->st, s->mem, v)) != NULL;
    for (size_t k = 0; ok && k < g->after.len; k++) ok = has(&q->after, g->after.at[k]) || vec_push(s->mem, &q->after, g->after.at[k]);
    ok = ok && stage_scan(s, reader);
  }
  vec_free(s->mem, &rd), vec_free(s->mem, &from), vec_free(s->mem, &to);
  return ok;
}
static bool readers_build(Part *p) {
  Sched *s = p->s;
  for (size_t i = 0; i < s->stages.len; i++) {
    if (stage_at(p, (int)i)->inlined) continue;
    Stage *g = stage_at(p, (int)i);
    for (size_t k = 0; k < g->deps.len; k++) if (!vec_push(s->mem, &p->readers[g->deps.at[k]], (int)i)) return false;
  }
  return true;
}
static bool inline_cheap(Part *p) {
  Sched *s = p->s;
  for (size_t k = 0; k < p->order.len; k++) {
    int i = p->order.at[k];
    Stage *g = stage_at(p, i);
    if (g->is_reduce || g->keep || g->war.len) continue;
    /* a stage whose buffers are overwritten later must keep its place in time */
    bool pinned = false;
    for (size_t w = 0; w < s->stages.len && !pinned; w++) pinned = has(&stage_at(p, (int)w)->war, i);
    if (pinned) continue;
    ReadVec rd = {0};
    if (!reads_of(s, g->value, &rd, true)) return false;
    int full = 0;
    int64_t n = stage_out_size(g);
    for (size_t j = 0; j < rd.len; j++) {
      bool dup = false;
      for (size_t l = 0; l < j; l++) dup |= rd.at[l].index->src[0] == rd.at[j].index->src[0];
      full += !dup && rd.at[j].index->src[0]->arg.param.nelem * 8 > n;
    }
    vec_free(s->mem, &rd);
    bool closed = !g->deps.len && !full && !g->value->is_tensor && !uop_has_op(g->value, OPS_INDEX) && !uop_has_op(g->value, OPS_THREEFRY);
    bool cheap = closed || (!g->heavy && g->weight <= 12 && full <= 1 && !g->deps.len && !uop_has_op(g->value, OPS_REDUCE));
    if (!cheap) continue;
    bool ok = true;
    for (size_t j = 0; ok && j < s->stages.len; j++)
      if (!stage_at(p, (int)j)->inlined && has(&stage_at(p, (int)j)->deps, i)) ok = replace_reads(p, (int)j, i);
    if (!ok) return false;
    stage_at(p, i)->inlined = true;
  }
  return true;
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
static double kernel_us(Part *p, const int *mem, size_t nmem, int ngrid, const int64_t *grid, int (*gmap_of)(void *, int, int), void *ctx) {
  Sched *s = p->s;
  double ops = 0, in_us = 0, out_us = 0, reread = 0, rows = 1;
  for (int g = 0; g < ngrid; g++) rows *= (double)grid[g];
  for (size_t k = 0; k < nmem; k++) {
    Stage *m = stage_at(p, mem[k]);
    double n = (double)stage_iterations(m), w = m->weight + 1, inner = 1;
    for (int d = 0; d < m->nout; d++) if (gmap_of(ctx, mem[k], d) < 0) inner *= (double)range_extent(m->out[d]);
    ReadVec rd = {0};
    if (!reads_of(s, m->value, &rd, false) || !reads_of(s, m->value, &rd, true)) { vec_free(s->mem, &rd); return 1e30; }
    double operand = 0;
    bool seen_in = false;
    for (size_t j = 0; j < rd.len; j++) {
      bool dup = false, inside = false;
      for (size_t l = 0; l < j; l++) dup |= rd.at[l].index->src[0] == rd.at[j].index->src[0];
      for (size_t l = 0; l < nmem; l++) inside |= rd.at[j].stage == mem[l];
      if (dup) continue;
      double elems = (double)rd.at[j].index->src[0]->arg.param.nelem;
      if (rd.at[j].stage >= 0) elems = (double)stage_out_size(stage_at(p, rd.at[j].stage));
      double b = TG_MIN(elems, n) * (double)dtype_size((DType)rd.at[j].index->dtype);
      if (inside) {
        Stage *q = stage_at(p, rd.at[j].stage);
        bool whole = false;
        for (int d = 0; d < q->nout; d++) whole |= q->out[d]->op == OPS_RANGE && gmap_of(ctx, rd.at[j].stage, d) < 0;
        if (whole && !q->is_reduce) w += q->weight;          /* computed again where it is read */
        continue;
      }
      for (size_t l = 0; l < k && !seen_in; l++) {
        Stage *o = stage_at(p, mem[l]);
        seen_in = rd.at[j].stage >= 0 && has(&o->deps, rd.at[j].stage);
      }
      if (!seen_in) in_us += bytes_us(b);
      operand += b;
    }
    vec_free(s->mem, &rd);
    bool contraction = m->is_reduce && m->weight >= 1 && stage_iterations(m) > stage_out_size(m) && rd.len > 1;
    if (contraction) {
      double slow = inner > 1 && rows > 1 ? 6 : 1;            /* its own axis left the grid: the tile is one row */
      ops += 2 * n / 225e3 * slow;
      if (inner > 1 && rows > 8) reread += (rows / 8 - 1) * bytes_us(operand / TG_MAX(rows, 1)) + (rows / 8 - 1) * bytes_us(inner * 4);
    } else ops += n * w / 58e3;
    bool written = m->keep;
    for (size_t l = 0; l < p->readers[mem[k]].len && !written; l++) {
      bool inside = false;
      for (size_t q = 0; q < nmem; q++) inside |= p->readers[mem[k]].at[l] == mem[q];
      written = !inside;
    }
    if (written) out_us += bytes_us((double)stage_out_size(m) * (double)dtype_size((DType)m->node->dtype));
  }
  double par = TG_MIN(rows, (double)s->opt->ncores);
  double c = ops / TG_MAX(par, 1), b = (in_us + out_us) / TG_MAX(TG_MIN(par, 2), 1);
  return 0.2 + TG_MAX(c, b) + 0.3 * TG_MIN(c, b) + reread;
}
typedef struct GmapTrial { Part *p; int stage; const Trial *t; } GmapTrial;
static int gmap_now(void *ctx, int stage, int d) { return stage_at(((GmapTrial *)ctx)->p, stage)->gmap[d]; }
static int gmap_trial(void *ctx, int stage, int d) {
  GmapTrial *c = ctx;
  if (stage == c->stage) return c->t->gmap[d];
  int g = stage_at(c->p, stage)->gmap[d];
  return g < 0 ? -1 : c->t->old_to_new[g];
}

/* The grid of kernel k with stage i added: a dim stays if every read of i carries it as the same plain output range of i. */
static bool fit(Part *p, const Kern *k, int i, Trial *t, const char **why) {
  Sched *s = p->s;
  Stage *g = stage_at(p, i);
  int pair[MAX_RANK];                                        /* grid dim of k -> axis of i; -1 open, -2 dropped */
  for (int a = 0; a < MAX_RANK; a++) pair[a] = -1;
  ReadVec rd = {0};
  if (!reads_of(s, g->value, &rd, false)) return false;
  for (size_t j = 0; j < rd.len; j++) {
    if (!has(&k->mem, rd.at[j].stage)) continue;
    Stage *q = stage_at(p, rd.at[j].stage);
    for (int d = 0; d < q->nout; d++) {
      int gd = q->gmap[d];
      if (gd < 0 || q->out[d]->op != OPS_RANGE) continue;
      UOp *e = rd.at[j].index->src[1 + d];
      int axis = -1;
      for (int a = 0; a < g->nout; a++) if (e->op == OPS_RANGE && g->out[a] == e) axis = a;
      if (axis < 0 || (pair[gd] >= 0 && pair[gd] != axis)) pair[gd] = -2;
      else if (pair[gd] == -1) pair[gd] = axis;
    }
  }
  vec_free(s->mem, &rd);
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
  /* a reduce read inside the kernel must be one value per grid point: an inner axis would need local memory */
  for (size_t m = 0; m < k->mem.len; m++) {
    Stage *q = stage_at(p, k->mem.at[m]);
    bool inner = false, reduces = q->is_reduce || uop_has_op(q->value, OPS_REDUCE);
    for (int d = 0; d < q->nout; d++) inner |= q->out[d]->op == OPS_RANGE && (q->gmap[d] < 0 || t->old_to_new[q->gmap[d]] < 0);
    if (!inner) continue;
    if (q->is_store) { *why = "a stored value is read at another index"; return false; }
    bool read = has(&g->deps, k->mem.at[m]);
    for (size_t l = 0; l < p->readers[k->mem.at[m]].len; l++) read |= has(&k->mem, p->readers[k->mem.at[m]].at[l]);
    if (read && (q->is_reduce || (reduces && stage_iterations(q) > stage_out_size(q)))) { *why = "a row of a reduction would need local memory"; return false; }
  }
  return true;
}
static bool strict_edge(const Stage *g, const Kern *k) {
  for (size_t j = 0; j < g->after.len; j++) if (has(&k->mem, g->after.at[j])) return true;
  for (size_t j = 0; j < g->war.len; j++) if (has(&k->mem, g->war.at[j])) return true;
  return false;
}
static int level_need(Part *p, const Stage *g, int k) {
  int need = 0;
  const IntVec *v[] = {&g->deps, &g->after, &g->war};
  for (int e = 0; e < 3; e++)
    for (size_t j = 0; j < v[e]->len; j++) {
      int q = stage_at(p, v[e]->at[j])->kernel;
      if (q >= 0 && q != k) need = TG_MAX(need, p->ks.at[q].level + 1);
    }
  return need;
}
static void lower_minout(Part *p, int i, int k) {
  Stage *g = stage_at(p, i);
  const IntVec *v[] = {&g->deps, &g->after, &g->war};
  for (int e = 0; e < 3; e++)
    for (size_t j = 0; j < v[e]->len; j++) {
      int q = stage_at(p, v[e]->at[j])->kernel;
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
  GmapTrial ctx = {p, i, NULL};
  one.us = kernel_us(p, &i, 1, one.ngrid, one.grid, gmap_now, &ctx);
  int best = -1;
  Trial bt = {0};
  double gain = 0;
  for (size_t j = 0; s->opt->fuse && j < g->deps.len; j++) {
    int k = stage_at(p, g->deps.at[j])->kernel;
    Kern *kk = &p->ks.at[k];
    bool seen = false;
    for (size_t l = 0; l < j; l++) seen |= stage_at(p, g->deps.at[l])->kernel == k;
    if (seen || strict_edge(g, kk)) continue;
    int need = level_need(p, g, k);
    if (need > kk->level && kk->minout <= need) continue;
    Trial t;
    const char *why = NULL;
    if (!fit(p, kk, i, &t, &why)) {
      if (s->opt->explain) str_printf(s->opt->explain, "no    s%d into k%d: %s\n", i, k, why ? why : "out of memory");
      continue;
    }
    IntVec mem = {0};
    bool ok = true;
    for (size_t l = 0; l < kk->mem.len; l++) ok = ok && vec_push(s->mem, &mem, kk->mem.at[l]);
    ok = ok && vec_push(s->mem, &mem, i);
    ctx.t = &t;
    t.us = ok ? kernel_us(p, mem.at, mem.len, t.ngrid, t.grid, gmap_trial, &ctx) : 1e30;
    vec_free(s->mem, &mem);
    if (!ok) return false;
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

/* ---- kernels to graphs */
static UOp *flat_index(Sched *s, const Stage *g, UOp *const *idx) {
  UOp *flat = uop_index_const(s->st, 0);
  int64_t stride = 1;
  for (int d = g->nout - 1; d >= 0; d--) {
    if (g->out[d]->op == OPS_RANGE) flat = uop_alu2(s->st, OPS_ADD, flat, uop_alu2(s->st, OPS_MUL, idx[d], uop_index_const(s->st, stride)));
    stride *= range_extent(g->out[d]);
  }
  return uop_simplify(s->st, s->mem, flat);
}
typedef struct Build { Part *p; Schedule *out; int *temp_of; UOp **expr; } Build;
/* Where a stage's value lives in memory, at idx: a temporary, or the buffer that a store writes. */
static UOp *memory_at(Build *b, int i, UOp *const *idx) {
  Sched *s = b->p->s;
  Stage *g = stage_at(b->p, i);
  DType dt = (DType)g->node->dtype;
  if (g->is_store) {
    UOp *f[MAX_RANK], *t[MAX_RANK];
    int n = 0;
    for (int d = 0; d < g->nout; d++) if (g->out[d]->op == OPS_RANGE) f[n] = g->out[d], t[n++] = idx[d];
    UOp *e = uop_simplify(s->st, s->mem, uop_substitute(s->st, s->mem, g->store_index, n, f, t));
    const UOp *base = g->node->src[0];
    while (base->op != OPS_BUFFER) base = base->src[0];
    return UNEW(s->st, OPS_INDEX, dt, 1, ARG0, uop_new(s->st, OPS_PARAM, dt, 1, 0, NULL, (Arg){.param = {base->arg.param.nelem, g->buffer}}), e);
  }
  if (b->temp_of[i] < 0) {
    Schedule *o = b->out;
    SchedTemp *t = &o->temp[o->ntemp];
    *t = (SchedTemp){dt, stage_out_size(g), -1, -1, g->root};
    b->temp_of[i] = o->ntemp++;
  }
  return UNEW(s->st, OPS_INDEX, dt, 1, ARG0,
              uop_new(s->st, OPS_PARAM, dt, 1, 0, NULL, (Arg){.param = {stage_out_size(g), TEMP_BASE + b->temp_of[i]}}), flat_index(s, g, idx));
}
static bool build_member(Build *b, int ki, UOp *const *grid, int i) {
  Sched *s = b->p->s;
  Stage *g = stage_at(b->p, i);
  UOpVec from = {0}, to = {0};
  ReadVec rd = {0};
  bool ok = true;
  for (int d = 0; ok && d < g->nout; d++)
    if (g->out[d]->op == OPS_RANGE && g->gmap[d] >= 0) ok = vec_push(s->mem, &from, g->out[d]) && vec_push(s->mem, &to, grid[g->gmap[d]]);
  UOp *v = ok ? uop_simplify(s->st, s->mem, uop_substitute(s->st, s->mem, g->value, (int)from.len, from.at, to.at)) : NULL;
  for (ok = v != NULL; ok; ) {                             /* an index may itself hold a read (gather), so until none is left */
    rd.len = from.len = to.len = 0;
    ok = reads_of(s, v, &rd, false);
    if (!ok || !rd.len) break;
    for (size_t j = 0; ok && j < rd.len; j++) {
      int q = rd.at[j].stage;
      Stage *pq = stage_at(b->p, q);
      UOp *r;
      if (pq->kernel == ki) {
        UOp *f[MAX_RANK], *t[MAX_RANK];
        int n = 0;
        for (int d = 0; d < pq->nout; d++)
          if (pq->out[d]->op == OPS_RANGE && pq->gmap[d] < 0) f[n] = pq->out[d], t[n++] = rd.at[j].index->src[1 + d];
        r = uop_substitute(s->st, s->mem, b->expr[q], n, f, t);
      } else r = memory_at(b, q, rd.at[j].index->src + 1);
      ok = r && vec_push(s->mem, &from, rd.at[j].index) && vec_push(s->mem, &to, r);
    }
    if (ok) v = uop_simplify(s->st, s->mem, uop_substitute(s->st, s->mem, v, (int)from.len, from.at, to.at));
    ok = ok && v;
  }
  b->expr[i] = v;
  vec_free(s->mem, &from), vec_free(s->mem, &to), vec_free(s->mem, &rd);
  return ok && v;
}
static bool renumber(Build *b, SchedKernel *sk, UOp *sink) {            /* PARAM slots and RANGE ids in depth-first order */
  Sched *s = b->p->s;
  UOpVec order = {0}, from = {0}, to = {0};
  Vec(int64_t) slots = {0};
  bool ok = uop_toposort(s->st, s->mem, &sink, 1, &order);
  int64_t nr = 0;
  for (size_t k = 0; ok && k < order.len; k++) {
    UOp *u = order.at[k], *v = NULL;
    if (u->op == OPS_PARAM) {
      size_t j = 0;
      while (j < slots.len && slots.at[j] != u->arg.param.slot) j++;
      if (j == slots.len) ok = vec_push(s->mem, &slots, u->arg.param.slot);
      v = uop_new(s->st, OPS_PARAM, (DType)u->dtype, 1, 0, NULL, (Arg){.param = {u->arg.param.nelem, (int64_t)j}});
    } else if (u->op == OPS_RANGE) v = uop_new(s->st, OPS_RANGE, DT_INDEX, 1, 1, u->src, (Arg){.range = {nr++, u->arg.range.type}});
    else continue;
    ok = ok && v && vec_push(s->mem, &from, u) && vec_push(s->mem, &to, v);
  }
  sk->ast = ok ? uop_substitute(s->st, s->mem, sink, (int)from.len, from.at, to.at) : NULL;
  sk->narg = (int)slots.len;
  sk->arg = arena_array(&b->out->arena, int64_t, slots.len + 1);
  ok = ok && sk->ast && sk->arg;
  if (ok && slots.len) memcpy(sk->arg, slots.at, slots.len * sizeof *slots.at);
  vec_free(s->mem, &order), vec_free(s->mem, &from), vec_free(s->mem, &to), vec_free(s->mem, &slots);
  return ok;
}
static bool build_kernel(Build *b, int ki, SchedKernel *sk) {
  Sched *s = b->p->s;
  Kern *k = &b->p->ks.at[ki];
  UOp *grid[MAX_RANK];
  UOpVec stores = {0};
  bool ok = true;
  for (int g = 0; g < k->ngrid; g++) grid[g] = uop_range(s->st, k->grid[g], s->next_range++, AXIS_GLOBAL);
  for (size_t m = 0; ok && m < k->mem.len; m++) ok = build_member(b, ki, grid, k->mem.at[m]);
  for (size_t m = 0; ok && m < k->mem.len; m++) {
    int i = k->mem.at[m];
    Stage *g = stage_at(b->p, i);
    bool written = g->keep;
    for (size_t l = 0; l < b->p->readers[i].len && !written; l++) written = stage_at(b->p, b->p->readers[i].at[l])->kernel != ki;
    if (!written) continue;
    UOp *idx[MAX_RANK], *src[2 + MAX_RANK];
    int n = 2;
    for (int d = 0; d < g->nout; d++) idx[d] = g->out[d]->op == OPS_RANGE && g->gmap[d] >= 0 ? grid[g->gmap[d]] : g->out[d];
    src[0] = memory_at(b, i, idx), src[1] = b->expr[i];
    for (int gd = 0; gd < k->ngrid; gd++) src[n++] = grid[gd];
    for (int d = 0; d < g->nout; d++) if (g->out[d]->op == OPS_RANGE && g->gmap[d] < 0) src[n++] = g->out[d];
    UOp *st = uop_new(s->st, OPS_STORE, DT_VOID, 1, n, src, ARG0);
    ok = st && vec_push(s->mem, &stores, st);
    sk->flops += (int64_t)((double)stage_iterations(g) * (g->weight + 1));
  }
  UOp *sink = ok ? uop_new(s->st, OPS_SINK, DT_VOID, 1, (int)stores.len, stores.at, ARG0) : NULL;
  ok = sink && renumber(b, sk, sink);
  sk->level = k->level, sk->est_us = k->us;
  vec_free(s->mem, &stores);
  return ok;
}

static bool emit_kernels(Part *p, Schedule *out) {
  Sched *s = p->s;
  size_t n = s->stages.len, nk = p->ks.len;
  Build b = {.p = p, .out = out};
  b.temp_of = arena_array(&out->arena, int, n + 1);
  b.expr = arena_array(&out->arena, UOp *, n + 1);
  out->temp = arena_array(&out->arena, SchedTemp, n + 1);
  out->kernel = arena_array(&out->arena, SchedKernel, nk + 1);
  if (!b.temp_of || !b.expr || !out->temp || !out->kernel) return false;
  for (size_t i = 0; i < n; i++) b.temp_of[i] = -1;
  int maxlevel = 0;
  for (size_t k = 0; k < nk; k++) maxlevel = TG_MAX(maxlevel, p->ks.at[k].level);
  IntVec *by = mem_alloc(s->mem, ((size_t)maxlevel + 1) * sizeof *by);
  bool ok = by != NULL;
  for (size_t k = 0; ok && k < nk; k++) ok = vec_push(s->mem, &by[p->ks.at[k].level], (int)k);
  for (int l = 0; ok && l <= maxlevel; l++)
    for (size_t j = 0; ok && j < by[l].len; j++) ok = build_kernel(&b, by[l].at[j], &out->kernel[out->nkernel++]);
  for (int l = 0; by && l <= maxlevel; l++) vec_free(s->mem, &by[l]);
  mem_free(s->mem, by);
  for (int k = 0; ok && k < out->nkernel; k++)
    for (int a = 0; a < out->kernel[k].narg; a++) {
      int64_t t = out->kernel[k].arg[a] - TEMP_BASE;
      if (t < 0) continue;
      if (out->temp[t].first < 0) out->temp[t].first = k;
      out->temp[t].last = k;
    }
  for (size_t i = 0; ok && i < n; i++) {
    Stage *g = stage_at(p, (int)i);
    if (g->root >= 0) out->root[g->root] = g->is_store ? g->buffer : TEMP_BASE + b.temp_of[i];
  }
  return ok;
}
bool partition(Sched *s, Schedule *out) {
  Part p = {.s = s};
  bool ok = hazards(&p) && order_stages(&p);
  if (ok && s->opt->fuse) ok = inline_cheap(&p) && order_stages(&p);
  size_t n = s->stages.len;
  p.readers = mem_alloc(s->mem, (n + 1) * sizeof *p.readers);
  ok = ok && p.readers && readers_build(&p);
  for (size_t k = 0; ok && k < p.order.len; k++) ok = place(&p, p.order.at[k]);
  ok = ok && emit_kernels(&p, out);
  for (size_t i = 0; p.readers && i < n; i++) vec_free(s->mem, &p.readers[i]);
  mem_free(s->mem, p.readers);
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
    vec_free(mem, &g->after), vec_free(mem, &g->war), vec_free(mem, &g->deps);
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
