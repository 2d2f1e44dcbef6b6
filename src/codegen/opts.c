/* opts.c: how a kernel's loops are shaped for the machine. In: loop ranges. Out: the same kernel with ranges split and typed: VEC (vector
 * lanes), UPCAST (register tile), GROUP (vector accumulators along a reduction), THREAD. No opt knows what a matmul is: the heuristic sees
 * ranges, the strides of loads along them, and which loads do not depend on them.
 * A range that a tile does not divide is cut in two: whole tiles and the rest, each a loop of its own. */
#include "codegen/codegen.h"
#include <stdio.h>
#include <string.h>

#define MAX_R 48
#define STRIDE_ODD INT64_MAX                                 /* not a constant stride */
typedef struct RInfo { UOp *r; int64_t n; bool reduce; int nstore; } RInfo;
typedef struct Info { int nr; RInfo r[MAX_R]; UOpVec loads, reduces; } Info;

static UOp *simp(Kernel *k, UOp *u) { return uop_simplify(k->st, k->mem, u); }
static bool info_get(Kernel *k, Info *f) {
  UOpVec order = {0};
  memset(f, 0, sizeof *f);
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    if (u->op == OPS_RANGE) {
      if (f->nr == MAX_R) { ok = false; break; }
      f->r[f->nr++] = (RInfo){.r = u, .n = is_const(u->src[0]) ? u->src[0]->arg.v.i : 0};
    } else if (u->op == OPS_INDEX) ok = vec_push(k->mem, &f->loads, u);
    else if (u->op == OPS_REDUCE) ok = vec_push(k->mem, &f->reduces, u);
  }
  for (int i = 0; ok && i < f->nr; i++) {
    for (size_t j = 0; j < f->reduces.len; j++)
      for (int s = 1; s < f->reduces.at[j]->nsrc; s++) f->r[i].reduce |= f->reduces.at[j]->src[s] == f->r[i].r;
    for (int j = 0; j < k->sink->nsrc; j++)
      for (int s = 2; s < k->sink->src[j]->nsrc; s++) f->r[i].nstore += k->sink->src[j]->src[s] == f->r[i].r;
  }
  for (int j = 0; j < k->sink->nsrc && ok; j++)               /* addresses of stores are not loads */
    for (size_t i = 0; i < f->loads.len; i++)
      if (f->loads.at[i] == k->sink->src[j]->src[0]) {
        bool used = false;
        for (size_t o = 0; o < order.len; o++)
          for (int s = 0; s < order.at[o]->nsrc; s++) used |= order.at[o]->src[s] == f->loads.at[i] && !(order.at[o]->op == OPS_STORE && s == 0);
        if (!used) f->loads.at[i] = f->loads.at[--f->loads.len];
      }
  vec_free(k->mem, &order);
  return ok;
}
static void info_free(Kernel *k, Info *f) { vec_free(k->mem, &f->loads), vec_free(k->mem, &f->reduces); }
static bool depends(const UOp *u, const UOp *r) { return u->ranges >> (r->arg.range.id & 63) & 1; }
static int64_t stride_of(Kernel *k, UOp *flat, UOp *r) {
  if (!depends(flat, r)) return 0;
  UOp *plus = uop_alu2(k->st, OPS_ADD, r, uop_index_const(k->st, 1));
  UOp *d = simp(k, uop_alu2(k->st, OPS_SUB, uop_substitute(k->st, k->mem, flat, 1, &r, &plus), flat));
  return d && is_const(d) ? d->arg.v.i : STRIDE_ODD;
}

/* ---- splitting. List entries (of STORE and REDUCE) that became expressions are opened into their ranges, outer first. */
static UOp *pm_open_lists(Rewrite *rw, UOp *u) {
  int first = u->op == OPS_STORE ? 2 : u->op == OPS_REDUCE ? 1 : -1, n = 0;
  if (first < 0) return NULL;
  bool any = false;
  for (int i = first; i < u->nsrc; i++) any |= u->src[i]->op != OPS_RANGE;
  if (!any) return NULL;
  UOp *src[64];
  for (int i = 0; i < u->nsrc; i++) {
    if (i < first || u->src[i]->op == OPS_RANGE) { if (n < 64) src[n++] = u->src[i]; continue; }
    UOpVec order = {0};
    if (!uop_toposort(rw->st, rw->mem, &u->src[i], 1, &order)) { rw->failed = true; return NULL; }
    int n0 = n;
    for (size_t j = 0; j < order.len; j++)
      if (order.at[j]->op == OPS_RANGE && n < 64) {
        int at = n++;
        while (at > n0 && src[at - 1]->arg.range.id > order.at[j]->arg.range.id) src[at] = src[at - 1], at--;
        src[at] = order.at[j];
      }
    vec_free(rw->mem, &order);
  }
  if (u->op == OPS_REDUCE && n == 1) return src[0];
  return uop_new(rw->st, (Ops)u->op, (DType)u->dtype, u->lanes, n, src, u->arg);
}
static UOp *open_lists(Kernel *k, UOp *root) {
  Rewrite rw = {.st = k->st, .mem = k->mem};
  return graph_rewrite(&rw, pm_open_lists, root);
}
static UOp *with_range(Kernel *k, UOp *root, UOp *r, UOp *expr) {
  return simp(k, open_lists(k, uop_substitute(k->st, k->mem, root, 1, &r, &expr)));
}
static UOp *split_expr(Kernel *k, UOp *r, int64_t base, int64_t blocks, int64_t n, AxisType inner) {
  UOp *o = uop_range(k->st, blocks, k->next_range++, (AxisType)r->arg.range.type);
  UOp *i = n == 1 ? uop_index_const(k->st, 0) : uop_range(k->st, n, k->next_range++, inner);
  if (blocks == 1) o = uop_index_const(k->st, 0);
  UOp *e = uop_alu2(k->st, OPS_ADD, uop_alu2(k->st, OPS_MUL, o, uop_index_const(k->st, n)), i);
  return uop_alu2(k->st, OPS_ADD, e, uop_index_const(k->st, base));
}
/* The rest of a cut range is a loop nest of its own: r becomes `tail`, and every loop below it (later in a store's list, or of a reduction
 * that depends on a renewed loop) becomes a new loop, so that no loop stands in two places. */
static UOp *tail_copy(Kernel *k, UOp *root, UOp *r, UOp *tail) {
  UOpVec order = {0};
  UOp *from[MAX_R], *to[MAX_R];
  int n = 0;
  uint64_t renewed = r->ranges;
  from[n] = r, to[n++] = tail;
  bool ok = uop_toposort(k->st, k->mem, &root, 1, &order), below = root->op == OPS_REDUCE;
  for (int i = root->op == OPS_STORE ? 2 : 1; ok && i < root->nsrc; i++) {
    if (root->src[i] == r) { below = true; continue; }
    if (!below || n == MAX_R || root->src[i]->op != OPS_RANGE) continue;
    from[n] = root->src[i], renewed |= root->src[i]->ranges;
    to[n++] = uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1, root->src[i]->src, (Arg){.range = {k->next_range++, root->src[i]->arg.range.type}});
  }
  for (size_t i = order.len; ok && i-- > 0;) {               /* users first: outer reductions before inner ones */
    UOp *u = order.at[i];
    if (u->op != OPS_REDUCE || u == root || !(u->ranges & renewed)) continue;
    for (int s = 1; s < u->nsrc && ok; s++) {
      bool seen = false;
      for (int j = 0; j < n; j++) seen |= from[j] == u->src[s];
      if (seen || u->src[s]->op != OPS_RANGE) continue;
      if (n == MAX_R) { ok = false; break; }
      from[n] = u->src[s], renewed |= u->src[s]->ranges;
      to[n++] = uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1, u->src[s]->src, (Arg){.range = {k->next_range++, u->src[s]->arg.range.type}});
    }
  }
  vec_free(k->mem, &order);
  return ok ? uop_substitute(k->st, k->mem, root, n, from, to) : NULL;
}
typedef struct Cut { Kernel *k; UOp *r, *head, *tail; } Cut;
static UOp *pm_cut_reduce(Rewrite *rw, UOp *u) {             /* REDUCE over r: over the whole tiles, then over the rest */
  Cut *c = rw->ctx;
  if (u->op != OPS_REDUCE) return NULL;
  bool has = false;
  for (int i = 1; i < u->nsrc; i++) has |= u->src[i] == c->r;
  if (!has) return NULL;
  UOp *a = uop_substitute(rw->st, rw->mem, u, 1, &c->r, &c->head), *b = tail_copy(c->k, u, c->r, c->tail);
  return uop_alu2(rw->st, (Ops)u->arg.reduce.op, a, b);
}
/* Splits range r into blocks of n whose inside has axis type `inner`. */
static bool split(Kernel *k, RInfo *ri, int64_t n, AxisType inner, const char *name) {
  int64_t full = ri->n / n, rest = ri->n % n;
  str_printf(&k->opts, "%s%s r%lld %lld", k->opts.len ? ", " : "", name, (long long)ri->r->arg.range.id, (long long)n);
  if (!full) full = 1, n = ri->n, rest = 0;
  UOp *head = split_expr(k, ri->r, 0, full, n, inner), *sink = k->sink;
  if (!rest) return (k->sink = with_range(k, sink, ri->r, head)) != NULL;
  UOp *tail = split_expr(k, ri->r, full * n, 1, rest, inner);
  if (ri->reduce) {
    Cut c = {k, ri->r, head, tail};
    Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = &c};
    return (k->sink = simp(k, open_lists(k, graph_rewrite(&rw, pm_cut_reduce, sink)))) != NULL;
  }
  UOpVec stores = {0};
  bool ok = true;
  for (int part = 0; part < 2 && ok; part++)
    for (int i = 0; i < sink->nsrc && ok; i++) {
      UOp *s = sink->src[i];
      bool has = false;
      for (int j = 2; j < s->nsrc; j++) has |= s->src[j] == ri->r;
      if (!has && part) continue;
      if (has) s = part ? tail_copy(k, s, ri->r, tail) : uop_substitute(k->st, k->mem, s, 1, &ri->r, &head);
      ok = s && vec_push(k->mem, &stores, s);
    }
  k->sink = ok ? simp(k, open_lists(k, uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)stores.len, stores.at, ARG0))) : NULL;
  vec_free(k->mem, &stores);
  return k->sink != NULL;
}

/* ---- heuristic */
static int64_t bad_loads(Kernel *k, const Info *f, UOp *r) {  /* loads that are neither a vector nor a scalar along r */
  int64_t bad = 0;
  for (size_t i = 0; i < f->loads.len; i++) {
    UOp *l = f->loads.at[i];
    int64_t s = stride_of(k, l->src[1], r);
    bad += (s != 0 && s != 1) || (l->arg.i && depends(l->src[l->nsrc - 1], r));
  }
  return bad;
}
static bool store_contiguous(Kernel *k, UOp *r) {
  for (int j = 0; j < k->sink->nsrc; j++) {
    UOp *s = k->sink->src[j];
    if (depends(s->src[0], r) && stride_of(k, s->src[0]->src[1], r) != 1) return false;
  }
  return true;
}
static int find_range(const Info *f, const UOp *r) {
  for (int i = 0; i < f->nr; i++) if (f->r[i].r == r) return i;
  return -1;
}
static int64_t balanced(int64_t n, int64_t most) {            /* tiles of at most `most`, as equal as can be */
  int64_t t = (n + most - 1) / most;
  return (n + t - 1) / t;
}
static bool choose(Kernel *k) {
  Info f;
  if (!info_get(k, &f)) return false;
  bool ok = true, in_reduce = false;
  int lane = -1;
  int64_t lane_bad = 0;
  for (int i = 0; i < f.nr; i++) {                            /* lanes: a range that all stores have, contiguous in them */
    RInfo *r = &f.r[i];
    if (r->reduce || r->nstore != k->sink->nsrc || r->n < 4 || !store_contiguous(k, r->r)) continue;
    int64_t bad = bad_loads(k, &f, r->r);
    if (lane < 0 || bad < lane_bad) lane = i, lane_bad = bad;
  }
  for (size_t j = 0; lane >= 0 && j < f.reduces.len; j++) in_reduce |= depends(f.reduces.at[j], f.r[lane].r);
  /* reductions that could run their lanes along their own axis */
  int group[MAX_R], ngroup = 0;
  for (size_t j = 0; j < f.reduces.len; j++) {
    UOp *red = f.reduces.at[j];
    bool lane_inside = lane >= 0 && depends(red, f.r[lane].r);
    if (lane_inside && lane_bad == 0) continue;
    for (int s = red->nsrc - 1; s >= 1; s--) {
      int i = find_range(&f, red->src[s]);
      if (i < 0 || f.r[i].n < 8 || bad_loads(k, &f, f.r[i].r)) continue;
      bool seen = false;
      for (int g = 0; g < ngroup; g++) seen |= group[g] == i;
      if (!seen) group[ngroup++] = i;
      break;
    }
  }
  if (in_reduce && lane_bad && ngroup) lane = -1;             /* the reduction's axis reads memory better */
  int second = -1;
  int64_t lanes = 0, tile = 1;
  if (lane >= 0) {
    int64_t n = f.r[lane].n;
    lanes = lane_bad ? TG_MIN(n, 16) : in_reduce ? (n >= 48 ? (n % 64 == 0 ? 64 : n % 48 == 0 || n > 512 ? 48 : 32) : n >= 32 ? 32 : TG_MIN(n, 16)) : TG_MIN(n, 32);
  }
  if (f.reduces.len && (lane < 0 || in_reduce)) {             /* register tile: a range along which some load can be used again */
    int64_t chunks = lane >= 0 ? (lanes + 15) / 16 : 1;
    int64_t most = lane < 0 ? 4 : lane_bad ? 2 : chunks >= 4 ? 6 : chunks == 3 ? 8 : chunks == 2 ? 10 : 14;
    for (int i = 0; i < f.nr; i++) {
      if (i == lane || f.r[i].reduce || f.r[i].nstore != k->sink->nsrc || f.r[i].n < 2) continue;
      bool fixed = false, moves = false, all = true;
      for (size_t j = 0; j < f.loads.len; j++) if (depends(f.loads.at[j], f.r[i].r)) moves = true; else fixed = true;
      for (size_t j = 0; j < f.reduces.len; j++) all &= depends(f.reduces.at[j], f.r[i].r);
      if (!fixed || !moves || !all) continue;
      if (second < 0 || TG_MIN(f.r[i].n, most) > TG_MIN(f.r[second].n, most)) second = i, tile = balanced(f.r[i].n, most);
    }
  }
  RInfo lr = lane >= 0 ? f.r[lane] : (RInfo){0}, sr = second >= 0 ? f.r[second] : (RInfo){0}, gr[MAX_R];
  for (int g = 0; g < ngroup; g++) gr[g] = f.r[group[g]];
  info_free(k, &f);
  if (second >= 0 && tile > 1) ok = split(k, &sr, tile, AXIS_UPCAST, "UPCAST");
  if (ok && lane >= 0) ok = split(k, &lr, lanes, AXIS_VEC, "VEC");
  for (int g = 0; ok && g < ngroup; g++) ok = split(k, &gr[g], gr[g].n >= 64 ? 64 : gr[g].n >= 32 ? 32 : gr[g].n >= 16 ? 16 : 8, AXIS_GROUP, "GROUP");
  return ok;
}
/* The largest remaining outer loop of each store nest is dealt to threads in chunks; what has no such loop runs on the first thread. */
static bool thread(Kernel *k, int ncores) {
  double work = 0;
  Info f;
  if (!info_get(k, &f)) return false;
  for (int j = 0; j < k->sink->nsrc; j++) {
    double w = 1;
    for (int i = 0; i < f.nr; i++) if (depends(k->sink->src[j], f.r[i].r) || f.r[i].reduce) w *= (double)TG_MAX(f.r[i].n, 1);
    work += w;
  }
  info_free(k, &f);
  if (work < 65536 || ncores < 2 || !k->ren || !k->ren->has_threads) return true;
  UOp *t = uop_range(k->st, ncores, k->next_range++, AXIS_THREAD), *zero = uop_index_const(k->st, 0);
  UOp *done[MAX_R], *with[MAX_R];
  int nd = 0;
  bool any = false;
  UOp *only_first = uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1,
    (UOp *[]){uop_where(k->st, uop_alu2(k->st, OPS_CMPLT, t, uop_index_const(k->st, 1)), uop_index_const(k->st, 1), zero)},
    (Arg){.range = {k->next_range++, AXIS_LOOP}});
  UOpVec stores = {0};
  bool ok = t && only_first;
  for (int j = 0; ok && j < k->sink->nsrc; j++) {
    UOp *s = k->sink->src[j], *best = NULL;
    for (int i = 2; i < s->nsrc; i++)
      if (s->src[i]->arg.range.type < AXIS_UPCAST && is_const(s->src[i]->src[0]) && s->src[i]->src[0]->arg.v.i >= ncores &&
          (!best || s->src[i]->src[0]->arg.v.i > 4 * best->src[0]->arg.v.i))
        best = s->src[i];
    UOp *src[64];
    int n = 2;
    if (s->nsrc > 60) { ok = false; break; }
    src[0] = s->src[0], src[1] = s->src[1], src[n++] = t;
    if (!best) {
      src[n++] = only_first;
      for (int i = 2; i < s->nsrc; i++) src[n++] = s->src[i];
      s = uop_new(k->st, OPS_STORE, DT_VOID, 1, n, src, ARG0);
    } else {
      any = true;
      int d = 0;
      while (d < nd && done[d] != best) d++;
      UOp *inner;
      if (d == nd) {
        int64_t m = best->src[0]->arg.v.i, chunk = (m + ncores - 1) / ncores;
        UOp *left = uop_alu2(k->st, OPS_SUB, uop_index_const(k->st, m), uop_alu2(k->st, OPS_MUL, t, uop_index_const(k->st, chunk)));
        UOp *c = uop_index_const(k->st, chunk);
        UOp *ext = m % ncores == 0 ? c : simp(k, uop_where(k->st, uop_alu2(k->st, OPS_CMPLT, left, c), uop_alu2(k->st, OPS_MAX, left, zero), c));
        inner = uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1, &ext, (Arg){.range = {k->next_range++, AXIS_LOOP}});
        done[nd] = best;
        with[nd++] = inner;
      } else inner = with[d];
      int64_t m = best->src[0]->arg.v.i, chunk = (m + ncores - 1) / ncores;
      UOp *e = uop_alu2(k->st, OPS_ADD, uop_alu2(k->st, OPS_MUL, t, uop_index_const(k->st, chunk)), inner);
      src[n++] = inner;
      for (int i = 2; i < s->nsrc; i++) if (s->src[i] != best) src[n++] = s->src[i];
      s = uop_new(k->st, OPS_STORE, DT_VOID, 1, n, src, ARG0);
      s = uop_substitute(k->st, k->mem, s, 1, &best, &e);
    }
    ok = s && vec_push(k->mem, &stores, s);
  }
  if (ok && any) {
    k->sink = simp(k, uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)stores.len, stores.at, ARG0));
    k->nthread = ncores;
    str_printf(&k->opts, "%sTHREAD %d", k->opts.len ? ", " : "", ncores);
    ok = k->sink != NULL;
  }
  vec_free(k->mem, &stores);
  return ok;
}
bool apply_opts(Kernel *k, const CodegenOptions *opt) {
  if (opt->noopt || !k->ren) return true;
  if (k->ren->has_threads && !choose(k)) return false;
  return thread(k, opt->ncores);
}
