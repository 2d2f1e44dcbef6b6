/* partition.c: stages -> kernels. In: stages, producers first. Out: sets of stages that share a grid, and
 * where each value is kept. A kernel is a set of stages with a common grid. Invariant: an edge between
 * kernels goes to a strictly higher level, so no cycle can arise and none is searched for. A join is made
 * when the cost model says the whole is cheaper than its parts. */
#include "schedule/stage.h"
#include <stdio.h>
#include <string.h>

typedef struct Trial {
  int ngrid;
  UOp *grid[MAX_RANK];
  int old_to_new[MAX_RANK];
  int gmap[MAX_RANK];
  double us;
} Trial;

static const IntVec *edges(const Stage *g, int kind) {
  return kind == 0 ? &g->deps : kind == 1 ? &g->after : &g->war;
}

/* ---- cost, us of one core; bandwidth by working set */
static double bytes_us(const Sched *s, double b) {
  const Target *t = s->opt->target;
  return b / t->bytes_us[target_level(t, b)];
}

int gmap_placed(const Gmap *g, int stage, int d) { return g->s->stages.at[stage].gmap[d]; }

static int gmap_trial(const Gmap *g, int stage, int d) {
  const Trial *t = g->trial;
  if (stage == g->stage) return t->gmap[d];
  int old = g->s->stages.at[stage].gmap[d];
  return old < 0 ? -1 : t->old_to_new[old];
}

static int64_t inner_size(Sched *s, const Gmap *g, int i) { /* elements per grid point */
  const Stage *q = &s->stages.at[i];
  int64_t n = 1;
  for (int d = 0; d < q->nout; d++)
    if (q->out[d]->op == OPS_RANGE && g->of(g, i, d) < 0) n *= range_extent(q->out[d]);
  return n;
}

static bool in_list(const int *v, size_t n, int x) {
  for (size_t i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

bool local_plan(Sched *s, const Gmap *g, const int *mem, size_t nmem, int64_t *elems, int64_t *bytes) {
  *bytes = 0;
  for (int optional = 0; optional < 2;
       optional++) /* rows of reductions first: the others can be computed again */
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
      if (n > s->opt->target->local_bytes / size || *bytes + n * size > s->opt->target->local_bytes) {
        if (!must) continue;
        *bytes = n > INT64_MAX / size ? INT64_MAX : *bytes + n * size;
        return false;
      }
      elems[k] = n, *bytes += n * size;
    }
  return true;
}

/* Stages that read each other at two places each would double an expression at every step of a chain, and the
 * C compiler's time with it; a gather of what gathers does so in its conditions as well. A kernel has 64
 * loops at most. Those of a nest mostly become one, which opts then cut into whole blocks and a rest, each of
 * two loops. */
enum { MOST_REPEATED = 200, MOST_LOOPS = 60, LOOPS_OF_NEST = 4 };

typedef struct Loops {
  int axes, nests;
} Loops;

static void count_nest(Loops *l, int naxes) { l->axes += naxes, l->nests += naxes > 0; }

/* The loops that member m adds to its kernel: those it reduces over, those that fill its row, and those that
 * write it to memory. */
static void count_loops(Loops *l, const Stage *m, const Gmap *gm, int i, bool row, bool written) {
  int nred = 0, inner = 0;
  for (int d = 0; d < m->nred; d++)
    nred += m->red[d]->op == OPS_RANGE;
  for (int d = 0; d < m->nout; d++)
    inner += m->out[d]->op == OPS_RANGE && gm->of(gm, i, d) < 0;
  count_nest(l, nred), count_nest(l, m->nested_loops);
  if (m->is_reduce || row) count_nest(l, inner);
  if (!m->is_reduce && written) count_nest(l, inner);
}

static bool too_many_loops(const Loops *l) {
  return l->axes > MOST_LOOPS || l->nests * LOOPS_OF_NEST > MOST_LOOPS;
}

static double kernel_us(Sched *s, const int *mem, size_t nmem, int ngrid, UOp *const *grid, const Gmap *gm) {
  double ops = 0, in_us = 0, out_us = 0, reread = 0, rows = 1;
  int64_t elems[MAX_MEMBERS], bytes;
  Loops loops = {ngrid, 0};
  double written_out[MAX_MEMBERS],
      repeated =
          0; /* operations that a member's expression has with all that it computes again; those alone */
  if (!local_plan(s, gm, mem, nmem, elems, &bytes)) return 1e30;
  for (int g = 0; g < ngrid; g++)
    rows *= (double)grid[g]->vmax;
  for (size_t k = 0; k < nmem; k++) {
    Stage *m = stage_at(s, mem[k]);
    double n = (double)stage_iterations(m), w = m->weight + 1 + m->nested,
           inner = (double)inner_size(s, gm, mem[k]), operand = 0;
    int nbuf = 0;
    written_out[k] = w;
    for (size_t j = 0; j < m->reads.len; j++) {
      const Read *rd = &m->reads.at[j];
      size_t at = 0;
      while (at < k && mem[at] != rd->stage)
        at++;
      if (at == k || elems[at] || stage_at(s, mem[at])->is_reduce) continue;
      bool again = inner_size(s, gm, mem[at]) > 1;
      if (again && stage_at(s, mem[at])->gathers && index_is_data(rd->index)) return 1e30;
      written_out[k] += again ? written_out[at] : 1;
      repeated += again ? written_out[at] : 0;
    }
    bool written = m->keep;
    for (size_t l = 0; l < m->readers.len && !written; l++)
      written = !in_list(mem, nmem, m->readers.at[l]);
    count_loops(&loops, m, gm, mem[k], elems[k] > 0, written);
    if (nmem > 1 && (repeated > MOST_REPEATED || too_many_loops(&loops))) return 1e30;
    for (size_t j = 0; j < m->reads.len; j++) {
      Read *rd = &m->reads.at[j];
      bool dup = false;
      for (size_t l = 0; l < j; l++)
        dup |= same_memory(m->reads.at[l].index, rd->index);
      if (dup) continue;
      nbuf++;
      double elem = rd->stage >= 0 ? (double)stage_out_size(stage_at(s, rd->stage))
                                   : (double)rd->index->src[0]->arg.param.nelem;
      double b = TG_MIN(elem, n) * (double)dtype_size((DType)rd->index->dtype);
      size_t at = 0;
      while (at < nmem && mem[at] != rd->stage)
        at++;
      if (at < nmem) {
        Stage *q = stage_at(s, rd->stage);
        bool same_loop = m->is_reduce && inner == 1 && !q->is_reduce;
        if (elems[at])
          in_us += same_loop ? 0 : bytes_us(s, b / TG_MAX(rows, 1)) * rows; /* a row in local memory */
        else if (!q->is_reduce && inner_size(s, gm, rd->stage) > 1)
          w += q->weight; /* computed again where it is read */
        continue;
      }
      bool seen_in = false;
      for (size_t l = 0; l < k && !seen_in && rd->stage >= 0; l++)
        seen_in = ints_have(&stage_at(s, mem[l])->deps, rd->stage);
      if (!seen_in) in_us += bytes_us(s, b);
      operand += b;
    }
    if (elems[k]) out_us += bytes_us(s, (double)elems[k] * (double)dtype_size((DType)m->node->dtype)) * rows;
    bool contraction = m->is_reduce && m->weight >= 1 && stage_iterations(m) > stage_out_size(m) && nbuf > 1;
    if (contraction) {
      double slow = inner > 1 && rows > 1 ? 6 : 1; /* its own axis left the grid: the tile is one row */
      ops += 2 * n / target_flops_us(s->opt->target) * slow;
      if (inner > 1 && rows > 8)
        reread +=
            (rows / 8 - 1) * bytes_us(s, operand / TG_MAX(rows, 1)) + (rows / 8 - 1) * bytes_us(s, inner * 4);
    } else
      ops += n * w / target_ops_us(s->opt->target);
    if (written) out_us += bytes_us(s, (double)stage_out_size(m) * (double)dtype_size((DType)m->node->dtype));
  }
  double par = TG_MIN(rows, (double)s->opt->target->cores);
  double c = ops / TG_MAX(par, 1), b = (in_us + out_us) / TG_MAX(TG_MIN(par, s->opt->target->streams), 1);
  return s->opt->target->launch_us + TG_MAX(c, b) + 0.3 * TG_MIN(c, b) + reread;
}

/* The grid of kernel k with stage i added: a dim stays if every read of i carries it as the same plain output
 * range of i. */
static bool fit(Sched *s, const Kern *k, int i, Trial *t, char why[96]) {
  Stage *g = stage_at(s, i);
  int pair[MAX_RANK]; /* grid dim of k -> axis of i; -1 open, -2 dropped */
  for (int a = 0; a < MAX_RANK; a++)
    pair[a] = -1;
  for (size_t j = 0; j < g->reads.len; j++) {
    if (g->reads.at[j].stage < 0 || !ints_have(&k->mem, g->reads.at[j].stage)) continue;
    Stage *q = stage_at(s, g->reads.at[j].stage);
    for (int d = 0; d < q->nout; d++) {
      int gd = q->gmap[d];
      if (gd < 0 || q->out[d]->op != OPS_RANGE) continue;
      UOp *e = g->reads.at[j].index->src[1 + d];
      int axis = -1;
      for (int a = 0; a < g->nout; a++)
        if (e->op == OPS_RANGE && g->out[a] == e && e->src[0] == k->grid[gd]) axis = a; /* not a part of it */
      if (axis < 0 || (pair[gd] >= 0 && pair[gd] != axis))
        pair[gd] = -2;
      else if (pair[gd] == -1)
        pair[gd] = axis;
    }
  }
  memset(t, 0, sizeof *t);
  for (int a = 0; a < MAX_RANK; a++)
    t->gmap[a] = -1, t->old_to_new[a] = -1;
  for (int gd = 0; gd < k->ngrid; gd++) {
    bool twice = false;
    for (int h = 0; h < gd; h++)
      twice |= pair[h] >= 0 && pair[h] == pair[gd];
    if (pair[gd] < 0 || twice) continue;
    t->old_to_new[gd] = t->ngrid;
    t->gmap[pair[gd]] = t->ngrid;
    t->grid[t->ngrid++] = k->grid[gd];
  }
  Gmap gm = {gmap_trial, s, i, t};
  for (size_t m = 0; m < k->mem.len; m++) {
    Stage *q = stage_at(s, k->mem.at[m]);
    if (q->is_store && inner_size(s, &gm, k->mem.at[m]) > 1) {
      snprintf(why, 96, "what s%d stores is read at another index", k->mem.at[m]);
      return false;
    }
  }
  return true;
}

/* What was asked to be memory is read from there, in a kernel after it. */
static bool strict_edge(Sched *s, const Stage *g, const Kern *k) {
  for (size_t j = 0; j < g->deps.len; j++)
    if (stage_at(s, g->deps.at[j])->node->op == OPS_CONTIGUOUS && ints_have(&k->mem, g->deps.at[j]))
      return true;
  for (size_t j = 0; j < g->after.len; j++)
    if (ints_have(&k->mem, g->after.at[j])) return true;
  for (size_t j = 0; j < g->war.len; j++)
    if (ints_have(&k->mem, g->war.at[j])) return true;
  return false;
}

static int level_need(Sched *s, const Stage *g, int k) {
  int need = 0;
  for (int e = 0; e < 3; e++)
    for (size_t j = 0; j < edges(g, e)->len; j++) {
      int q = stage_at(s, edges(g, e)->at[j])->kernel;
      if (q >= 0 && q != k) need = TG_MAX(need, s->ks.at[q].level + 1);
    }
  return need;
}

static void lower_minout(Sched *s, int i, int k) {
  Stage *g = stage_at(s, i);
  for (int e = 0; e < 3; e++)
    for (size_t j = 0; j < edges(g, e)->len; j++) {
      int q = stage_at(s, edges(g, e)->at[j])->kernel;
      if (q >= 0 && q != k) s->ks.at[q].minout = TG_MIN(s->ks.at[q].minout, s->ks.at[k].level);
    }
}

static bool place(Sched *s, int i) {
  Stage *g = stage_at(s, i);
  Kern one = {.level = 0, .minout = 1 << 30};
  for (int d = 0; d < g->nout; d++) {
    g->gmap[d] = -1;
    if (g->out[d]->op == OPS_RANGE && !(g->ordered >> d & 1))
      g->gmap[d] = one.ngrid, one.grid[one.ngrid++] = g->out[d]->src[0];
  }
  one.us = kernel_us(s, &i, 1, one.ngrid, one.grid, &(Gmap){.of = gmap_placed, .s = s});
  int best = -1;
  Trial bt = {0};
  double gain = 0;
  for (size_t j = 0; s->opt->fuse && !g->fixed && j < g->deps.len; j++) {
    int k = stage_at(s, g->deps.at[j])->kernel;
    if (k < 0 || stage_at(s, s->ks.at[k].mem.at[0])->fixed) continue; /* in order, and alone */
    Kern *kk = &s->ks.at[k];
    bool seen = false;
    for (size_t l = 0; l < j; l++)
      seen |= stage_at(s, g->deps.at[l])->kernel == k;
    if (seen || strict_edge(s, g, kk) || kk->mem.len == MAX_MEMBERS) continue;
    int need = level_need(s, g, k);
    if (need > kk->level && kk->minout <= need) continue;
    Trial t;
    char why[96] = "";
    int mem[MAX_MEMBERS];
    int64_t elems[MAX_MEMBERS], bytes;
    Gmap gm = {gmap_trial, s, i, &t};
    size_t nmem = kk->mem.len;
    memcpy(mem, kk->mem.at, nmem * sizeof *mem);
    mem[nmem++] = i;
    bool fits = fit(s, kk, i, &t, why);
    if (fits && !local_plan(s, &gm, mem, nmem, elems, &bytes)) {
      snprintf(why, sizeof why, "rows of %.1f KB do not fit %lld KB of local memory", (double)bytes / 1024,
               (long long)s->opt->target->local_bytes >> 10);
      fits = false;
    }
    if (!fits) {
      if (s->opt->explain) str_printf(s->opt->explain, "no    s%d into k%d: %s\n", i, k, why);
      continue;
    }
    t.us = kernel_us(s, mem, nmem, t.ngrid, t.grid, &gm);
    double win = kk->us + one.us - t.us;
    if (s->opt->explain)
      str_printf(s->opt->explain, "%s s%d into k%d: apart %.1f + %.1f us, fused %.1f us, grid of %d\n",
                 win > 0 ? "join " : "no   ", i, k, kk->us, one.us, t.us, t.ngrid);
    if (win > gain) gain = win, best = k, bt = t;
  }
  if (best < 0) {
    one.level = level_need(s, g, -1);
    if (!vec_push(s->mem, &one.mem, i) || !vec_push(s->mem, &s->ks, one)) {
      vec_free(s->mem, &one.mem);
      return false;
    }
    g->kernel = (int)s->ks.len - 1;
  } else {
    Kern *k = &s->ks.at[best];
    k->level = TG_MAX(k->level, level_need(s, g, best));
    for (size_t m = 0; m < k->mem.len; m++) {
      Stage *q = stage_at(s, k->mem.at[m]);
      for (int d = 0; d < q->nout; d++)
        q->gmap[d] = q->gmap[d] < 0 ? -1 : bt.old_to_new[q->gmap[d]];
    }
    memcpy(g->gmap, bt.gmap, sizeof g->gmap);
    k->ngrid = bt.ngrid, k->us = bt.us;
    memcpy(k->grid, bt.grid, sizeof k->grid);
    if (!vec_push(s->mem, &k->mem, i)) return false;
    g->kernel = best;
    for (size_t m = 0; m < k->mem.len; m++)
      lower_minout(s, k->mem.at[m], best);
  }
  lower_minout(s, i, g->kernel);
  return true;
}

bool place_stages(Sched *s) {
  for (size_t k = 0; k < s->order.len; k++)
    if (!place(s, s->order.at[k])) return false;
  return true;
}

/* ---- memory: a value that other kernels read is written, or computed again there from what is in memory,
 * whichever is cheaper */
static bool written(Sched *s, int i) {
  const Stage *g = stage_at(s, i);
  if (g->keep) return true;
  for (size_t k = 0; k < g->readers.len; k++)
    if (stage_at(s, g->readers.at[k])->kernel != g->kernel) return true;
  return false;
}

static double read_us(const Read *rd, Sched *s, double n) {
  double elem = rd->stage >= 0 ? (double)stage_out_size(stage_at(s, rd->stage))
                               : (double)rd->index->src[0]->arg.param.nelem;
  return bytes_us(s, TG_MIN(elem, n) * (double)dtype_size((DType)rd->index->dtype));
}

static bool kernel_reads(Sched *s, int k, const Read *rd) {
  const Kern *kk = &s->ks.at[k];
  for (size_t m = 0; m < kk->mem.len; m++) {
    const Stage *g = stage_at(s, kk->mem.at[m]);
    for (size_t j = 0; j < g->reads.len; j++)
      if (same_memory(g->reads.at[j].index, rd->index)) return true;
  }
  return false;
}

bool recompute_or_store(Sched *s) {
  uint8_t *pinned = mem_alloc(
      s->mem, s->stages.len + 1); /* reads a buffer that is overwritten later: it cannot move behind that */
  bool ok = pinned != NULL;
  for (size_t w = 0; ok && w < s->stages.len; w++)
    for (size_t k = 0; k < stage_at(s, (int)w)->war.len; k++)
      pinned[stage_at(s, (int)w)->war.at[k]] = 1;
  for (size_t o = 0; ok && o < s->order.len; o++) {
    int i = s->order.at[o];
    Stage *g = stage_at(s, i);
    if (g->keep || g->fixed || for_lanes(s, i) || g->is_reduce || g->inlined || pinned[i] || g->after.len ||
        g->war.len || uop_has_op(g->value, OPS_REDUCE) || !written(s, i))
      continue;
    bool available = true;
    for (size_t k = 0; k < g->deps.len; k++)
      available &= written(s, g->deps.at[k]);
    if (!available) continue;
    double size = (double)stage_out_size(g) * (double)dtype_size((DType)g->node->dtype),
           store = bytes_us(s, size), again = 0;
    double rate = target_ops_us(s->opt->target) * s->opt->target->cores,
           text = 0; /* text: operations that the readers' expressions get */
    bool inside = false, chained = false;
    for (size_t k = 0; k < g->readers.len; k++) {
      Stage *r = stage_at(s, g->readers.at[k]);
      if (r->kernel == g->kernel) {
        inside = true;
        continue;
      }
      double n = (double)stage_iterations(r);
      store += bytes_us(s, TG_MIN(size, n * (double)dtype_size((DType)g->node->dtype)));
      int places = 0;
      for (size_t j = 0; j < r->reads.len; j++)
        if (r->reads.at[j].stage == i) places++, chained |= g->gathers && index_is_data(r->reads.at[j].index);
      text += places * (g->weight + 1);
      again += n * g->weight / rate;
      for (size_t j = 0; j < g->reads.len; j++)
        if (!kernel_reads(s, r->kernel, &g->reads.at[j])) again += read_us(&g->reads.at[j], s, n);
    }
    if (!inside)
      again -=
          (double)stage_out_size(g) * (g->weight + 1) / rate; /* its own kernel need not compute it at all */
    if (!inside) text -= g->weight + 1;
    if (again > store * (size > 67108864 ? 2 : 1) || text > MOST_REPEATED || chained) continue;
    if (s->opt->explain)
      str_printf(s->opt->explain, "again s%d in %zu readers: %.1f us, stored %.1f us\n", i, g->readers.len,
                 again, store);
    for (size_t k = g->readers.len; ok && k-- > 0;) {
      int r = g->readers.at[k];
      if (stage_at(s, r)->kernel == g->kernel) continue;
      ok = replace_reads(s, r, i);
      g = stage_at(s, i);
      g->readers.at[k] = g->readers.at[--g->readers.len];
    }
    if (ok && !g->readers.len) { /* computed by nobody else: it leaves its kernel */
      Kern *kk = &s->ks.at[g->kernel];
      size_t n = 0;
      for (size_t m = 0; m < kk->mem.len; m++)
        if (kk->mem.at[m] != i) kk->mem.at[n++] = kk->mem.at[m];
      kk->mem.len = n, g->inlined = true;
      for (size_t k = 0; k < g->deps.len; k++) {
        IntVec *rd = &stage_at(s, g->deps.at[k])->readers;
        for (size_t m = 0; m < rd->len; m++)
          if (rd->at[m] == i) {
            rd->at[m] = rd->at[--rd->len];
            break;
          }
      }
    }
  }
  mem_free(s->mem, pinned);
  return ok;
}
