/* heuristic.c: which opts a kernel gets. In: a kernel's ranges, and the strides along them of what it reads
 * and writes. Out: a list of opts. No kernel is recognised by name: lanes go where memory is contiguous,
 * register tiles where a load can be used again, and the loop that streams the smaller operand stands inside.
 */
#include "codegen/heuristic.h"
#include "codegen/cost.h"
#include <string.h>

static UOp *simp(Kernel *k, UOp *u) { return u ? uop_simplify(k->st, k->mem, u) : NULL; }

static bool has_divmod(const UOp *e) { return uop_has_op(e, OPS_FLOORDIV) || uop_has_op(e, OPS_FLOORMOD); }

bool store_has(const UOp *s, const UOp *r) {
  for (int i = 2; i < s->nsrc; i++)
    if (s->src[i] == r) return true;
  return false;
}

void info_free(Kernel *k, Info *f) {
  mem_free(k->mem, f->r);
  vec_free(k->mem, &f->loads), vec_free(k->mem, &f->reduces), vec_free(k->mem, &f->fills);
}

bool info_get(Kernel *k, Info *f) {
  UOpVec order = {0};
  memset(f, 0, sizeof *f);
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
  size_t nid = store_id_limit(k->st) + 1;
  uint8_t *loaded = mem_alloc(k->mem, nid); /* an INDEX that only a store uses is an address, no load */
  f->r = mem_alloc(k->mem, (order.len + 1) * sizeof *f->r);
  ok = ok && loaded && f->r;
  for (size_t i = 0; ok && i < order.len; i++)
    for (int s = 0; s < order.at[i]->nsrc; s++)
      if (!(order.at[i]->op == OPS_STORE && s == 0)) loaded[order.at[i]->src[s]->id] = 1;
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    if (u->op == OPS_RANGE) {
      f->r[f->nr++] = (RInfo){.r = u,
                              .n = u->src[0]->ranges || (k->ren->has_local && !is_const(u->src[0])) ? 0
                                   : u->arg.range.type == AXIS_ORDERED                              ? 1
                                                                       : u->src[0]->vmax,
                              .grid = u->arg.range.type == AXIS_GLOBAL};
    } else if (u->op == OPS_SCAN)
      f->scans = true;
    else if (u->op == OPS_INDEX && loaded[u->id])
      ok = vec_push(k->mem, &f->loads, u);
    else if (u->op == OPS_REDUCE)
      ok = vec_push(k->mem, &f->reduces, u);
    else if (u->op == OPS_AFTER)
      for (int s = 1; ok && s < u->nsrc; s++)
        ok = vec_push(k->mem, &f->fills, u->src[s]);
  }
  for (int i = 0; ok && i < f->nr; i++) {
    for (size_t j = 0; j < f->reduces.len; j++)
      for (int s = 1; s < f->reduces.at[j]->nsrc; s++)
        f->r[i].reduce |= f->reduces.at[j]->src[s] == f->r[i].r;
    for (int j = 0; j < k->sink->nsrc; j++)
      f->r[i].nout += store_has(k->sink->src[j], f->r[i].r);
  }
  vec_free(k->mem, &order);
  mem_free(k->mem, loaded);
  return ok;
}

static int64_t expr_stride(Kernel *k, UOp *e, UOp *r) {
  if (!depends(k, e, r)) return 0;
  int64_t step;
  return moves_evenly(k, e, r, &step) ? step : STRIDE_ODD;
}

int64_t stride_of(Kernel *k, const UOp *index, UOp *r) {
  const UOp *memory = index->src[0];
  if (memory->op != OPS_PARAM || !memory->nsrc) return expr_stride(k, index->src[1], r);
  int64_t sum = 0, step = 1;
  for (int d = memory->nsrc - 1; d >= 0; step *= memory->src[d--]->arg.v.i) {
    int64_t s = expr_stride(k, index->src[1 + d], r);
    if (s == STRIDE_ODD) {
      UOp *flat = index_flat(k->st, k->mem, index);
      return flat ? expr_stride(k, flat, r) : STRIDE_ODD;
    }
    sum += s * step;
  }
  return sum;
}

static bool address_moves(Kernel *k, const UOp *index, const UOp *r) {
  for (int i = 1; i <= index_naxes(index); i++)
    if (depends(k, index->src[i], r)) return true;
  return false;
}

static bool gate_moves(Kernel *k, const UOp *index, const UOp *r) {
  return index->arg.i && depends(k, index_gate(index), r);
}

int64_t bad_loads(Kernel *k, const Info *f, UOp *r) {
  int64_t bad = 0;
  for (size_t i = 0; i < f->loads.len; i++) {
    int64_t s = stride_of(k, f->loads.at[i], r);
    bad += (s != 0 && s != 1) || gate_moves(k, f->loads.at[i], r);
  }
  return bad;
}

bool contiguous(Kernel *k, const UOp *store, UOp *r) {
  return !depends(k, store->src[0], r) || stride_of(k, store->src[0], r) == 1;
}

static int find_range(const Info *f, const UOp *r) {
  for (int i = 0; i < f->nr; i++)
    if (f->r[i].r == r) return i;
  return -1;
}

/* ---- simplify ranges: (a, b) with every stride of a equal to b's times b's extent is one loop of both */
static bool adjacent(const UOp *u, const UOp *a, const UOp *b,
                     bool *listed) { /* a right before b, or neither is there */
  for (int i = 0; i < u->nsrc; i++) {
    if ((u->op != OPS_STORE || i < 2) && (u->op != OPS_REDUCE || i < 1)) continue;
    bool is_a = u->src[i] == a;
    if (is_a && (i + 1 == u->nsrc || u->src[i + 1] != b)) return false;
    if (u->src[i] == b && (!i || u->src[i - 1] != a)) return false;
    *listed |= is_a;
  }
  return true;
}

static bool mergeable(Kernel *k, const UOpVec *order, UOp *a, UOp *b) {
  bool listed = false;
  int64_t nb = b->src[0]->arg.v.i;
  for (size_t i = 0; i < order->len; i++) {
    UOp *u = order->at[i];
    if ((u->op == OPS_STORE || u->op == OPS_REDUCE) && !adjacent(u, a, b, &listed)) return false;
    if (u->op == OPS_INDEX) {
      if (gate_moves(k, u, a) || gate_moves(k, u, b)) return false;
      int64_t sa = stride_of(k, u, a), sb = stride_of(k, u, b), want;
      if (sa == STRIDE_ODD || sb == STRIDE_ODD || __builtin_mul_overflow(sb, nb, &want) || sa != want)
        return false;
    }
    if (u->op != OPS_INDEX && u->dtype != DT_INDEX && u->op != OPS_STORE &&
        u->op != OPS_REDUCE) /* an index used as a value */
      for (int s = 0; s < u->nsrc; s++)
        if (u->src[s]->dtype == DT_INDEX && (depends(k, u->src[s], a) || depends(k, u->src[s], b)))
          return false;
  }
  return listed;
}

bool any_divided(UOpList places) {
  for (int i = 0; i < places.n; i++)
    if (has_divmod(places.at[i])) return true;
  return false;
}

UOp *whole_offset(Rewrite *rw, const UOp *x) {
  UOp *flat = index_flat(rw->st, rw->mem, x);
  return !flat || has_divmod(flat) ? NULL : flat;
}

/* In the lists: the quotient and the remainder of a loop, which were two loops, are that loop. */
static UOp *pm_one_loop(Rewrite *rw, UOp *u) {
  UOp *const *pair = rw->ctx, *buf[64], *r;
  int first = u->op == OPS_STORE ? 2 : u->op == OPS_REDUCE ? 1 : u->nsrc, n = 0, at = first;
  while (at < u->nsrc && u->src[at] != pair[0])
    at++;
  if (at >= u->nsrc) return NULL;
  UOp **src = u->nsrc <= 64 ? buf : mem_alloc(rw->mem, u->nsrc * sizeof *src);
  if (!src) return rw->failed = true, NULL;
  for (int i = 0; i < u->nsrc; i++)
    if (i < first || u->src[i] != pair[1])
      src[n++] = i >= first && u->src[i] == pair[0] ? pair[2] : u->src[i];
  r = uop_new(rw->st, (Ops)u->op, (DType)u->dtype, u->lanes, n, src, u->arg);
  if (src != buf) mem_free(rw->mem, src);
  return r;
}

/* A gated load has its axes, for whoever copies what a tile reads. */
static UOp *pm_axes(Rewrite *rw, UOp *u) {
  if (u->op != OPS_INDEX || index_naxes(u) != 1) return NULL;
  UOp *r = index_axes(rw->ctx, u);
  if (!r) rw->failed = true;
  return r == u ? NULL : r;
}

bool simplify_ranges(Kernel *k) {
  if (k->opt->noopt || !k->ren) return true;
  bool merged = false;
  for (bool again = true; again;) {
    UOpVec order = {0};
    UOp *a = NULL, *b = NULL;
    bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
    again = false;
    for (size_t i = 0; ok && i < order.len && !again; i++) {
      UOp *u = order.at[i];
      for (int s = u->op == OPS_STORE    ? 2
                   : u->op == OPS_REDUCE ? 1
                                         : u->nsrc;
           s + 1 < u->nsrc && !again; s++) {
        a = u->src[s], b = u->src[s + 1];
        again = is_const(a->src[0]) && is_const(b->src[0]) && a->arg.range.type == b->arg.range.type &&
                mergeable(k, &order, a, b);
      }
    }
    vec_free(k->mem, &order);
    int64_t n;
    if (!ok) return false;
    if (!again || __builtin_mul_overflow(a->src[0]->arg.v.i, b->src[0]->arg.v.i, &n)) break;
    UOp *m = uop_range(k->st, n, k->next_range++, (AxisType)b->arg.range.type), *nb = b->src[0];
    UOp *from[2] = {a, b},
        *to[3] = {uop_alu2(k->st, OPS_FLOORDIV, m, nb), uop_alu2(k->st, OPS_FLOORMOD, m, nb), m};
    Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = to};
    UOp *sink = uop_substitute(k->st, k->mem, k->sink, 2, from, to);
    k->sink = simp(k, sink ? graph_rewrite(&rw, pm_one_loop, sink) : NULL);
    if (!k->sink) return false;
    merged = true;
  }
  Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = k};
  if (merged && !(k->sink = graph_rewrite(&rw, pm_rejoin, k->sink))) return false;
  return (k->sink = graph_rewrite(&rw, pm_axes, k->sink)) != NULL;
}

/* Ranges of all loops that stand inside those of `around`, with them: a reduction stands where all that it
 * moves with is known, so one that moves with a loop of another stands inside that one. */
static uint64_t ranges_inside(const Info *f, uint64_t around) {
  for (uint64_t before = 0; before != around;) {
    before = around;
    for (size_t j = 0; j < f->reduces.len; j++) {
      const UOp *u = f->reduces.at[j];
      for (int s = 1; (u->ranges & around) && s < u->nsrc; s++)
        around |= range_bit(u->src[s]->arg.range.id);
    }
  }
  return around;
}

/* ---- CPU */
static bool add(Kernel *k, OptVec *out, OptOp op, int64_t r, int64_t n) {
  return vec_push(k->mem, out, ((Opt){op, r, n}));
}

static int64_t id_of(const RInfo *r) { return r->r->arg.range.id; }

/* Elements of a load's operand: the extents of the ranges it moves with. */
static double footprint(Kernel *k, const Info *f, const UOp *load) {
  double n = 1;
  for (int i = 0; i < f->nr; i++)
    if (address_moves(k, load, f->r[i].r)) n *= (double)f->r[i].n;
  return TG_MIN(n, (double)(load->src[0]->op == OPS_PARAM ? load->src[0]->arg.param.nelem : n));
}

typedef struct Lane {
  int r;
  int64_t bad, n;
  bool in_reduce, counted;
} Lane;

/* The best lanes for one store, or for all outputs: contiguous in it, and with the fewest loads that would be
 * gathered. */
static Lane lane_for(Kernel *k, const Info *f, const UOp *store, bool may_grid) {
  Lane l = {.r = -1};
  for (int i = 0; i < f->nr; i++) {
    const RInfo *r = &f->r[i];
    bool ok = !r->reduce && r->n >= 4 && (may_grid || !r->grid);
    if (store)
      ok = ok && store_has(store, r->r) && contiguous(k, store, r->r);
    else {
      ok = ok && r->nout == k->sink->nsrc;
      for (int j = 0; ok && j < k->sink->nsrc; j++)
        ok = contiguous(k, k->sink->src[j], r->r);
    }
    if (!ok) continue;
    int64_t bad = bad_loads(k, f, r->r);
    if (l.r < 0 || bad < l.bad) l.r = i, l.bad = bad;
  }
  if (l.r >= 0) l.counted = is_const(f->r[l.r].r->src[0]);
  if (l.r >= 0)
    for (size_t j = 0; j < f->reduces.len; j++)
      l.in_reduce |= depends(k, f->reduces.at[j], f->r[l.r].r);
  return l;
}

static int64_t lane_count(const Lane *l, int64_t n) {
  if (!l->counted) return TG_MIN(n, 16); /* what is left of the last block runs one by one */
  if (l->bad) return TG_MIN(n, 16);
  if (!l->in_reduce) return TG_MIN(n, 32);
  if (n >= 48) return n % 64 == 0 ? 64 : n % 48 == 0 || n > 512 ? 48 : 32;
  return n >= 32 ? 32 : TG_MIN(n, 16);
}

/* Nothing is summed, and lanes along the outputs' contiguous loop would be gathered: where the loads are
 * contiguous along another loop, lanes go along that one, and tiles are turned in registers. Blocks of both
 * loops keep lines whole. */
static bool transposed(Kernel *k, const Info *f, const Lane *lane, int ncores, OptVec *out, bool *chosen) {
  enum { TILE = 16, BLOCK = 64 };

  *chosen = false;
  if (f->reduces.len || f->fills.len || f->scans || lane->r < 0 || !lane->bad || f->r[lane->r].n < TILE)
    return true;
  int along = -1;
  for (int i = 0; i < f->nr; i++) {
    const RInfo *r = &f->r[i];
    bool fits = i != lane->r && r->grid && r->n >= TILE && r->nout == k->sink->nsrc && is_const(r->r->src[0]);
    if (fits && !bad_loads(k, f, r->r) && (along < 0 || r->n > f->r[along].n)) along = i;
  }
  if (along < 0 || !is_const(f->r[lane->r].r->src[0])) return true;
  const RInfo *rows = &f->r[lane->r], *lanes = &f->r[along];
  const RInfo *outer = lanes->n >= 2 * BLOCK ? lanes : rows;
  bool ok = true;
  *chosen = true;
  if (lanes->n >= 2 * BLOCK) ok = add(k, out, OPT_TILE, id_of(lanes), BLOCK);
  if (ok && rows->n >= 2 * BLOCK) ok = add(k, out, OPT_TILE, id_of(rows), BLOCK);
  ok = ok && add(k, out, OPT_UPCAST, id_of(rows), TILE) && add(k, out, OPT_VEC, id_of(lanes), TILE);
  double work = (double)rows->n * (double)lanes->n;
  if (ok && work >= 65536 && ncores > 1 && k->ren->has_threads && outer->n >= ncores * BLOCK)
    ok = add(k, out, OPT_THREAD, id_of(outer), ncores);
  return ok;
}

bool heuristic_cpu(Kernel *k, int ncores, OptVec *out) {
  bool chosen;
  if (!choose_contraction(k, k->ren->has_threads ? ncores : 1, out, &chosen)) return false;
  if (chosen) return true;
  Info f;
  bool ok = info_get(k, &f), local = ok && f.fills.len;
  if (ok && local) ok = rows_side_by_side(k, &f, k->ren->has_threads ? ncores : 1, out, &chosen);
  if (chosen) return info_free(k, &f), ok;
  Lane *lane = ok ? mem_alloc(k->mem, (size_t)(f.nr + 1) * sizeof *lane) : NULL;
  int *group = ok ? mem_alloc(k->mem, (size_t)(f.nr + 1) * sizeof *group) : NULL;
  int nlane = 0, ngroup = 0, second = -1;
  ok = lane && group;
  if (!ok) {
    info_free(k, &f), mem_free(k->mem, lane), mem_free(k->mem, group);
    return false;
  }
  lane[0] = lane_for(k, &f, NULL, !local);
  if (!transposed(k, &f, &lane[0], ncores, out, &chosen) || chosen) {
    info_free(k, &f), mem_free(k->mem, lane), mem_free(k->mem, group);
    return chosen;
  }
  if (lane[0].r >= 0) nlane = 1;
  for (int j = 0; j < k->sink->nsrc + (int)f.fills.len;
       j++) { /* inner loops that not all outputs share, and rows kept in local memory */
    const UOp *s = j < k->sink->nsrc ? k->sink->src[j] : f.fills.at[j - k->sink->nsrc];
    bool has = false;
    for (int i = 0; i < nlane; i++)
      has |= store_has(s, f.r[lane[i].r].r);
    if (has || nlane == f.nr) continue;
    Lane l = lane_for(k, &f, s, false);
    if (l.r >= 0) lane[nlane++] = l;
  }
  /* reductions that could run their lanes along their own axis */
  for (size_t j = 0; j < f.reduces.len; j++) {
    UOp *red = f.reduces.at[j];
    int inside = -1;
    for (int i = 0; i < nlane; i++)
      if (depends(k, red, f.r[lane[i].r].r)) inside = i;
    if (inside >= 0 && !lane[inside].bad) continue;
    bool own = false; /* the loop that fills a row is its lanes already */
    for (int s = 1; s < red->nsrc; s++)
      for (int i = 0; i < nlane; i++)
        own |= red->src[s] == f.r[lane[i].r].r;
    for (int s = red->nsrc - 1; s >= 1 && !own; s--) {
      int i = find_range(&f, red->src[s]);
      if (i < 0 || f.r[i].n < 8 || bad_loads(k, &f, f.r[i].r)) continue;
      bool seen = false, holds = false; /* a reduction inside has its lanes */
      uint64_t own = range_bit(f.r[i].r->arg.range.id), within = ranges_inside(&f, own) & ~own;
      for (int g = 0; g < ngroup; g++)
        seen |= group[g] == i, holds |= (range_bit(f.r[group[g]].r->arg.range.id) & within) != 0;
      if (holds) break;
      if (!seen) group[ngroup++] = i;
      if (inside >= 0) lane[inside--] = lane[--nlane]; /* the reduction's axis reads memory better */
      break;
    }
  }
  const Lane *l0 = nlane && f.r[lane[0].r].nout == k->sink->nsrc ? &lane[0] : NULL;
  int64_t lanes = l0 ? lane_count(l0, f.r[l0->r].n) : 0, tile = 1;
  if (f.reduces.len && !local &&
      (!l0 || l0->in_reduce)) { /* register tile: a range along which some load can be used again */
    int64_t chunks = l0 ? (lanes + 15) / 16 : 1;
    int64_t most = !l0 ? 4 : l0->bad ? 2 : chunks >= 4 ? 6 : chunks == 3 ? 8 : chunks == 2 ? 10 : 14;
    for (int i = 0; i < f.nr; i++) {
      if ((l0 && i == l0->r) || f.r[i].reduce || f.r[i].nout != k->sink->nsrc || f.r[i].n < 2) continue;
      bool fixed = false, moves = false, all = true;
      for (size_t j = 0; j < f.loads.len; j++)
        if (depends(k, f.loads.at[j], f.r[i].r))
          moves = true;
        else
          fixed = true;
      for (size_t j = 0; j < f.reduces.len; j++)
        all &= depends(k, f.reduces.at[j], f.r[i].r);
      if (!fixed || !moves || !all) continue;
      if (second < 0 || TG_MIN(f.r[i].n, most) > TG_MIN(f.r[second].n, most))
        second = i, tile = balanced(f.r[i].n, most);
    }
  }
  for (int i = 0; i < f.nr && !nlane && second < 0 && f.scans;
       i++) /* a chain of dependent steps: some of them side by side */
    if (f.r[i].grid && f.r[i].nout == k->sink->nsrc && f.r[i].n >= 8) second = i, tile = 4;
  double work = 0;
  for (int j = 0; j < k->sink->nsrc; j++) {
    double w = 1;
    for (int i = 0; i < f.nr; i++)
      if (store_has(k->sink->src[j], f.r[i].r) || f.r[i].reduce)
        w *= (double)TG_MAX(f.r[i].r->src[0]->vmax, 1);
    work += w;
  }
  if (second >= 0 && work < 16e6) /* a tile that divides is one nest instead of two: for the compiler's time,
                                     not the kernel's */
    for (int64_t t = tile; f.r[second].n % tile && t >= (tile + 1) / 2; t--)
      if (f.r[second].n % t == 0) tile = t;
  if (second >= 0 && tile > 1 &&
      l0) { /* what the inner of the two loops streams is read once per turn of the outer */
    double by_lane = 0, by_tile = 0;
    for (size_t j = 0; j < f.loads.len; j++) {
      bool a = depends(k, f.loads.at[j], f.r[second].r), b = depends(k, f.loads.at[j], f.r[l0->r].r);
      if (a && !b) by_tile += footprint(k, &f, f.loads.at[j]) * (double)f.r[l0->r].n / (double)lanes;
      if (b && !a) by_lane += footprint(k, &f, f.loads.at[j]) * (double)f.r[second].n / (double)tile;
    }
    UOp *s = k->sink->src[0];
    bool before = false;
    for (int i = 2; i < s->nsrc && s->src[i] != f.r[l0->r].r; i++)
      before |= s->src[i] == f.r[second].r;
    if (before && by_tile < by_lane) ok = add(k, out, OPT_SWAP, id_of(&f.r[second]), id_of(&f.r[l0->r]));
  }
  if (ok && second >= 0 && tile > 1) ok = add(k, out, OPT_UPCAST, id_of(&f.r[second]), tile);
  for (int i = 0; ok && i < nlane; i++)
    ok = add(k, out, OPT_VEC, id_of(&f.r[lane[i].r]), lane_count(&lane[i], f.r[lane[i].r].n));
  for (int g = 0; ok && g < ngroup; g++) {
    int64_t n = f.r[group[g]].n;
    ok = add(k, out, OPT_GROUP, id_of(&f.r[group[g]]), n >= 64 ? 64 : n >= 32 ? 32 : n >= 16 ? 16 : 8);
  }
  if (ok && work >= 65536 && ncores > 1 &&
      k->ren->has_threads) { /* the first loop, unless a later one of the grid is much longer */
    int best = -1;
    double most = 0;
    for (int i = 0; i < f.nr; i++) {
      if (!f.r[i].grid) continue;
      double n = (double)f.r[i].n / (i == second ? (double)tile : l0 && i == l0->r ? (double)lanes : 1);
      if (n >= ncores && (best < 0 || n > 4 * most)) best = i, most = n;
    }
    if (best >= 0) ok = add(k, out, OPT_THREAD, id_of(&f.r[best]), ncores);
  }
  info_free(k, &f), mem_free(k->mem, lane), mem_free(k->mem, group);
  return ok;
}

/* ---- GPU */
static int64_t power_below(int64_t n, int64_t most) {
  int64_t p = 1;
  while (p * 2 <= n && p * 2 <= most)
    p *= 2;
  return p;
}

/* A kernel with rows, or with long reductions and few results: a block per result, its threads along the
 * rows. Else a block for a tile of a contraction (tiles.c); or a thread per result, or per register tile of
 * them where a load can be used again. */
bool heuristic_gpu(Kernel *k, OptVec *out) {
  Info f;
  bool ok = info_get(k, &f);
  if (!ok) {
    info_free(k, &f);
    return false;
  }
  double grid = 1;
  int64_t longest = 0;
  bool chosen;
  for (int i = 0; i < f.nr; i++) {
    if (f.r[i].grid)
      grid *= (double)f.r[i].n;
    else
      longest = TG_MAX(longest, f.r[i].n);
  }
  bool rows = longest >= 32 && (f.fills.len || grid < 4096);
  for (size_t j = 0; !rows && j < (size_t)k->sink->nsrc; j++) /* outputs with inner loops */
    for (int i = 0; i < f.nr; i++)
      rows |= longest >= 32 && store_has(k->sink->src[j], f.r[i].r) && !f.r[i].grid;
  if (!rows && (!choose_tiles(k, &f, out, &chosen) || chosen)) return info_free(k, &f), chosen;
  if (rows) {
    int64_t threads = power_below(longest, 256);
    int column = -1; /* reductions across rows of memory: neighbours in a warp take neighbouring columns */
    bool across = !f.fills.len && f.reduces.len;
    for (int i = 0; i < f.nr && across; i++)
      if (f.r[i].reduce && f.r[i].n > 1 && !bad_loads(k, &f, f.r[i].r)) across = false;
    for (int i = 0; i < f.nr && across; i++) {
      bool fits =
          f.r[i].grid && f.r[i].n >= 16 && f.r[i].nout == k->sink->nsrc && !bad_loads(k, &f, f.r[i].r);
      for (int j = 0; fits && j < k->sink->nsrc; j++)
        fits = contiguous(k, k->sink->src[j], f.r[i].r);
      if (fits) column = i;
    }
    if (column >= 0) {
      int64_t wide = power_below(f.r[column].n, 32);
      threads = TG_MIN(threads, 256 / wide);
      ok = add(k, out, OPT_LOCAL, id_of(&f.r[column]), wide);
    }
    uint64_t dealt = 0;
    UOpVec nests = {0}; /* outermost first: what lies inside a dealt loop is one thread's own */
    for (int j = 0; ok && j < k->sink->nsrc; j++)
      ok = vec_push(k->mem, &nests, k->sink->src[j]);
    for (size_t j = f.fills.len; ok && j-- > 0;)
      ok = vec_push(k->mem, &nests, f.fills.at[j]);
    for (size_t j = f.reduces.len; ok && j-- > 0;)
      ok = vec_push(k->mem, &nests, f.reduces.at[j]);
    for (size_t j = 0; ok && j < nests.len; j++) {
      UOp *u = nests.at[j];
      int first = u->op == OPS_STORE ? 2 : 1, best = -1;
      bool inside = false;
      for (int s = first; s < u->nsrc; s++) {
        int i = find_range(&f, u->src[s]);
        inside |= dealt & range_bit(u->src[s]->arg.range.id);
        if (i >= 0 && !f.r[i].grid && f.r[i].n > 1 &&
            (best < 0 || f.r[i].n >= f.r[best].n || f.r[i].n >= threads))
          best = i;
      }
      inside |= (u->ranges & dealt) != 0;
      bool here = best >= 0 && !inside, past = inside;
      for (int s = first; s < u->nsrc; s++) { /* its loop, and those inside that */
        past |= here && u->src[s] == f.r[best].r;
        if (past) dealt |= range_bit(u->src[s]->arg.range.id);
      }
      dealt = ranges_inside(&f, dealt);
      if (!here) continue;
      ok = add(k, out, f.r[best].reduce ? OPT_GROUP : OPT_LOCAL, id_of(&f.r[best]), threads);
    }
    vec_free(k->mem, &nests);
  } else {
    int lane = -1, second = -1;
    for (int i = 0; i < f.nr; i++) { /* neighbours in a warp are neighbours in memory */
      bool fits = f.r[i].grid && f.r[i].n > 1;
      for (int j = 0; fits && j < k->sink->nsrc; j++)
        fits = contiguous(k, k->sink->src[j], f.r[i].r);
      if (fits && (lane < 0 || f.r[i].n > f.r[lane].n)) lane = i;
    }
    for (int i = 0; f.reduces.len && i < f.nr; i++) { /* a range along which some load can be used again */
      bool fixed = false, moves = false, all = f.r[i].grid && i != lane && f.r[i].n > 1;
      for (size_t j = 0; j < f.loads.len; j++)
        if (depends(k, f.loads.at[j], f.r[i].r))
          moves = true;
        else
          fixed = true;
      for (size_t j = 0; all && j < f.reduces.len; j++)
        all &= depends(k, f.reduces.at[j], f.r[i].r);
      if (all && fixed && moves && (second < 0 || f.r[i].n > f.r[second].n)) second = i;
    }
    if (lane >= 0) {
      int64_t n = f.r[lane].n, vec = n % 4 == 0 && n >= 128 && !bad_loads(k, &f, f.r[lane].r) ? 4 : 1;
      if (second >= 0 && f.r[second].n >= 4)
        ok = add(k, out, OPT_UPCAST, id_of(&f.r[second]),
                 f.r[second].n % 8 == 0 && f.r[second].n >= 64 ? 8 : 4);
      if (ok && vec > 1) ok = add(k, out, OPT_VEC, id_of(&f.r[lane]), vec);
      int64_t left = n / vec, t = power_below(left, 256);
      if (second >= 0 && t > 32) t = 32;
      if (ok) ok = add(k, out, OPT_LOCAL, id_of(&f.r[lane]), t);
      int other = second;
      for (int i = 0; i < f.nr && other < 0; i++)
        if (f.r[i].grid && i != lane && f.r[i].n > 1) other = i;
      if (ok && other >= 0 && t < 128) { /* a block is at least a few warps */
        int64_t m = f.r[other].n;
        if (other == second && m >= 4) m = (m + 3) / 4;
        int64_t u = power_below(m, 128 / t);
        if (u > 1) ok = add(k, out, OPT_LOCAL, id_of(&f.r[other]), u);
      }
    } else {
      int any = -1;
      for (int i = 0; i < f.nr; i++)
        if (f.r[i].grid && (any < 0 || f.r[i].n > f.r[any].n)) any = i;
      if (any >= 0 && f.r[any].n > 1)
        ok = add(k, out, OPT_LOCAL, id_of(&f.r[any]), power_below(f.r[any].n, 128));
    }
  }
  info_free(k, &f);
  return ok;
}
