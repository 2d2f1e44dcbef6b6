/* ranges.c: the pass "simplify ranges". In: a kernel's graph. Out: the same graph with four changes. Two
 * loops are merged if one step of the outer one moves every address as far as all steps of the inner one. A
 * loop that indices divide is split in two. Reductions that read the same memory in loops of the same extents
 * share their loops. A gated load gets an index per axis. */
#include "codegen/heuristic.h"
#include <string.h>

static bool has_divmod(const UOp *e) { return uop_has(e, FLOORDIV) || uop_has(e, FLOORMOD); }

/* Whether u lists a directly before b, or lists neither. Sets *listed if it lists them. */
static bool adjacent(const UOp *u, const UOp *a, const UOp *b, bool *listed) {
  for (int i = 0; i < u->nsrc; i++) {
    if ((u->op != OPS_STORE || i < 2) && (u->op != OPS_REDUCE || i < 1)) continue;
    bool is_a = u->src[i] == a;
    if (is_a && (i + 1 == u->nsrc || u->src[i + 1] != b)) return false;
    if (u->src[i] == b && (!i || u->src[i - 1] != a)) return false;
    *listed |= is_a;
  }
  return true;
}

/* With strides a and b of two loops: whether a step of the outer loop moves as far as nb steps of the inner
 * one. */
static bool moves_as_one(int64_t a, int64_t b, int64_t nb) {
  int64_t want;
  return a != STRIDE_ODD && b != STRIDE_ODD && !__builtin_mul_overflow(b, nb, &want) && a == want;
}

static bool mergeable(Kernel *k, const UOpVec *order, UOp *a, UOp *b) {
  bool listed = false;
  int64_t nb = b->src[0]->arg.v.i;
  for (size_t i = 0; i < order->len; i++) {
    UOp *u = order->at[i];
    if ((u->op == OPS_STORE || u->op == OPS_REDUCE) && !adjacent(u, a, b, &listed)) return false;
    if (u->op == OPS_INDEX && (gate_moves(k, u, a) || gate_moves(k, u, b) ||
                               !moves_as_one(stride_of(k, u, a), stride_of(k, u, b), nb)))
      return false;
    /* an index used as a value */
    if (u->op != OPS_INDEX && u->dtype != DT_INDEX && u->op != OPS_STORE && u->op != OPS_REDUCE)
      for (int s = 0; s < u->nsrc; s++)
        if (u->src[s]->dtype == DT_INDEX &&
            !moves_as_one(expr_stride(k, u->src[s], a), expr_stride(k, u->src[s], b), nb))
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

/* Replaces two loops in the list of a STORE or REDUCE by the merged loop, of which they are the quotient and
 * the remainder. */
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

/* Whether axis d of a memory and the next axis are indexed by the quotient and the remainder of one number,
 * divided by the extent of the next axis. */
static bool one_number(const UOp *index, int d) {
  const UOp *hi = index->src[1 + d], *lo = index->src[2 + d], *extent = index->src[0]->src[d + 1];
  return hi->op == OPS_FLOORDIV && lo->op == OPS_FLOORMOD && hi->src[0] == lo->src[0] &&
         hi->src[1] == lo->src[1] && is_const(extent) && is_const(lo->src[1]) &&
         lo->src[1]->arg.v.i == extent->arg.v.i;
}

/* Merges two such axes into one, along which the merged loop moves evenly. */
static UOp *pm_one_axis(Rewrite *rw, UOp *u) {
  UOp *memory = u->op == OPS_INDEX ? u->src[0] : NULL, *extent[MAX_AXES], *at[MAX_AXES + 2];
  int n = memory ? memory->nsrc : 0, d = 0;
  if (!memory || memory->op != OPS_PARAM || n < 2 || n > MAX_AXES || index_naxes(u) != n) return NULL;
  while (d + 1 < n && !one_number(u, d))
    d++;
  if (d + 1 == n || !is_const(memory->src[d])) return NULL;
  memcpy(extent, memory->src, (size_t)n * sizeof *extent);
  memmove(extent + d + 1, extent + d + 2, (size_t)(n - d - 2) * sizeof *extent);
  extent[d] = uop_index_const(rw->st, memory->src[d]->arg.v.i * memory->src[d + 1]->arg.v.i);
  memcpy(at, u->src, (size_t)u->nsrc * sizeof *at);
  memmove(at + 2 + d, at + 3 + d, (size_t)(u->nsrc - d - 3) * sizeof *at);
  at[1 + d] = u->src[1 + d]->src[0];
  at[0] = extent[d] ? uop_new(rw->st, OPS_PARAM, (DType)memory->dtype, 1, n - 1, extent, memory->arg) : NULL;
  UOp *r = at[0] ? uop_new(rw->st, OPS_INDEX, (DType)u->dtype, u->lanes, u->nsrc - 1, at, u->arg) : NULL;
  if (!r) rw->failed = true;
  return r;
}

/* Gives a gated load an index per axis, for passes that copy what a tile reads. */
static UOp *pm_axes(Rewrite *rw, UOp *u) {
  if (u->op != OPS_INDEX || index_naxes(u) != 1) return NULL;
  UOp *r = index_axes(rw->ctx, u);
  if (!r) rw->failed = true;
  return r == u ? NULL : r;
}

/* ---- reductions in one loop: values that both read are loaded and computed once */
/* Whether u and v have different loops with the same extents and types, inside the same outer loops. */
static bool alike(const UOp *u, const UOp *v) {
  if (u->nsrc != v->nsrc || u->ranges != v->ranges || u->src[1] == v->src[1]) return false;
  for (int i = 1; i < u->nsrc; i++)
    if (u->src[i]->op != OPS_RANGE || v->src[i]->op != OPS_RANGE || u->src[i]->src[0] != v->src[i]->src[0] ||
        u->src[i]->arg.range.type != v->src[i]->arg.range.type)
      return false;
  return true;
}

/* Whether a reduction over the loops of u needs one over the loops of v. Also true if a nest over either
 * fills local memory. */
static bool needs(Kernel *k, const UOpVec *order, const UOp *u, const UOp *v) {
  for (size_t i = 0; i < order->len; i++) {
    UOp *a = order->at[i];
    if (a->op == OPS_STORE && a->nsrc > 2 && (a->src[2] == u->src[1] || a->src[2] == v->src[1])) return true;
    if (a->op != OPS_REDUCE || a->nsrc < 2 || a->src[1] != u->src[1]) continue;
    for (size_t j = 0; j < order->len; j++) {
      const UOp *b = order->at[j];
      bool other = b->op == OPS_REDUCE && b->nsrc > 1 && b->src[1] == v->src[1];
      if (other && uop_contains(k->st, k->mem, a->src, 1, b)) return true;
    }
  }
  return false;
}

/* Whether u and v read the same address in each iteration once v has the loops of u. Also false if out of
 * memory. */
static bool reads_same(Kernel *k, const UOp *u, const UOp *v) {
  UOpVec of_u = {0}, of_v = {0};
  UOp *with = kernel_with(k, v->src[0], v->nsrc - 1, v->src + 1, u->src + 1);
  UOpMap *seen = uop_map_begin(k->st, k->st);
  bool same = false,
       ok = with && seen && uop_toposort(k->st, k->mem, u->src, 1, &of_u) && kernel_nodes(k, with, &of_v);
  for (size_t i = 0; ok && i < of_u.len; i++)
    if (of_u.at[i]->op == OPS_INDEX && (of_u.at[i]->ranges & u->src[u->nsrc - 1]->ranges))
      ok = uop_map_put(k->st, seen, of_u.at[i], of_u.at[i]);
  for (size_t i = 0; ok && i < of_v.len && !same; i++)
    same = of_v.at[i]->op == OPS_INDEX && uop_map_get(seen, of_v.at[i]);
  uop_map_end(k->st, seen);
  vec_free(k->mem, &of_u), vec_free(k->mem, &of_v);
  return same;
}

/* Finds the first two reductions of which the second can use the loops of the first. */
static bool pair_in_one(Kernel *k, const UOpVec *order, UOp **u, UOp **v) {
  for (size_t i = 0; i < order->len; i++)
    for (size_t j = 0; j < i && order->at[i]->op == OPS_REDUCE && order->at[i]->nsrc > 1; j++) {
      *u = order->at[j], *v = order->at[i];
      if ((*u)->op == OPS_REDUCE && (*u)->nsrc > 1 && alike(*u, *v) && !needs(k, order, *u, *v) &&
          !needs(k, order, *v, *u) && reads_same(k, *u, *v))
        return true;
    }
  return false;
}

static bool share_loops(Kernel *k) {
  for (bool again = true; again;) {
    UOpVec order = {0};
    UOp *u, *v;
    if (!kernel_nodes(k, k->sink, &order)) return vec_free(k->mem, &order), false;
    again = pair_in_one(k, &order, &u, &v);
    vec_free(k->mem, &order);
    if (again) k->sink = kernel_with(k, k->sink, v->nsrc - 1, v->src + 1, u->src + 1);
    if (!k->sink) return false;
  }
  return true;
}

/* ---- a loop that indices divide */
/* Whether a loop may be split: a loop of a reduction, or a loop of the only output. On a GPU an output loop
 * is not split, because each thread has one iteration and threads share nothing. */
static bool may_split(const Kernel *k, const UOp *r) {
  if (r->op != OPS_RANGE) return false;
  AxisType type = (AxisType)r->arg.range.type;
  return type == AXIS_REDUCE || (type == AXIS_GLOBAL && k->sink->nsrc == 1 && !has_grid(k->ren));
}

/* The number that all indices divide a loop by, if it divides the trip count; otherwise 0. A reduction loop
 * whose parts would be too short for lanes is not split unless the loop itself is short. An output loop is
 * split only into few parts: random numbers have two, one for each half of a word. */
static int64_t divisor_of(const UOpVec *order, const UOp *r) {
  enum { LEAST_LANES = 4, FEW = 8 };

  int64_t by = 0, n = is_const(r->src[0]) ? r->src[0]->arg.v.i : 0;
  bool output = r->arg.range.type == AXIS_GLOBAL;
  for (size_t i = 0; n && i < order->len; i++) {
    const UOp *u = order->at[i];
    if ((u->op != OPS_FLOORDIV && u->op != OPS_FLOORMOD) || u->src[0] != r || !is_const(u->src[1])) continue;
    if (by && u->src[1]->arg.v.i != by) return 0;
    by = u->src[1]->arg.v.i;
  }
  bool fits = output ? by >= LEAST_LANES && n / by <= FEW : by >= LEAST_LANES || n <= FEW;
  return fits && by > 1 && by < n && n % by == 0 ? by : 0;
}

/* Replaces the loop in the lists of reductions and stores by its two parts, the remainder behind the
 * quotient. */
static UOp *pm_two_loops(Rewrite *rw, UOp *u) {
  UOp *const *pair = rw->ctx, *src[MAX_LIST + 3];
  int n = 0, at = -1, list = u->op == OPS_STORE ? 2 : 1;
  if ((u->op != OPS_REDUCE && u->op != OPS_STORE) || u->nsrc > MAX_LIST + list - 1) return NULL;
  for (int i = 0; i < u->nsrc; i++) {
    src[n++] = u->src[i];
    if (i < list || u->src[i] != pair[2]) continue;
    src[n - 1] = pair[0];
    src[n++] = pair[1];
    at = i;
  }
  UOp *r = at < 0 ? NULL : uop_new(rw->st, (Ops)u->op, (DType)u->dtype, u->lanes, n, src, u->arg);
  if (at >= 0 && !r) rw->failed = true;
  return r;
}

static bool split_loop(Kernel *k, UOp *r, int64_t by) {
  AxisType type = (AxisType)r->arg.range.type;
  UOp *outer = uop_range(k->st, r->src[0]->arg.v.i / by, k->next_range++, type);
  UOp *inner = uop_range(k->st, by, k->next_range++, type), *pair[3] = {outer, inner, r};
  UOp *whole = outer && inner ? ix(k, OPS_ADD, ix(k, OPS_MUL, outer, num(k, by)), inner) : NULL;
  Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = pair};
  UOp *sink = whole ? graph_rewrite(&rw, pm_two_loops, k->sink) : NULL;
  return (k->sink = sink ? simp(k, kernel_with(k, sink, 1, &r, &whole)) : NULL) != NULL;
}

/* Splits loops so that each index becomes a sum of loops times constants, whose stride is known. */
static bool split_loops(Kernel *k) {
  for (bool again = true; again;) {
    UOpVec order = {0};
    UOp *r = NULL;
    int64_t by = 0;
    bool ok = kernel_nodes(k, k->sink, &order);
    for (size_t i = 0; ok && !by && i < order.len; i++) {
      r = order.at[i];
      if (may_split(k, r)) by = divisor_of(&order, r);
    }
    vec_free(k->mem, &order);
    again = ok && by;
    if (!ok || (again && !split_loop(k, r, by))) return false;
  }
  return true;
}

/* Renumbers ranges 0, 1, .. in order if merges have used up the numbers that have a bit of their own in
 * `ranges`, because the planner tells loops apart by these bits. given: next_range before the merges. A
 * kernel that already had higher numbers keeps them, because lists of opts name its loops. */
static bool number_ranges(Kernel *k, int64_t given) {
  enum { OWN_BITS = 63 };

  if (k->next_range <= OWN_BITS || given > OWN_BITS) return true;
  UOpVec order = {0}, from = {0}, to = {0};
  int64_t *number = mem_alloc(k->mem, (size_t)k->next_range * sizeof *number),
          n = 0; /* number[id] is 1 if there is a range with this id */
  bool ok = number && kernel_nodes(k, k->sink, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    if (order.at[i]->op == OPS_RANGE) number[order.at[i]->arg.range.id] = 1;
  for (int64_t id = 0; ok && id < k->next_range; id++)
    if (number[id]) number[id] = n++;
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *r = order.at[i];
    if (r->op != OPS_RANGE) continue;
    UOp *extent = kernel_with(k, r->src[0], (int)from.len, from.at, to.at);
    Arg arg = r->arg;
    arg.range.id = number[arg.range.id];
    UOp *now = extent ? uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1, &extent, arg) : NULL;
    ok = now && vec_push(k->mem, &from, r) && vec_push(k->mem, &to, now);
  }
  UOp *sink = ok ? kernel_with(k, k->sink, (int)from.len, from.at, to.at) : NULL;
  if (sink) k->next_range = n;
  mem_free(k->mem, number);
  vec_free(k->mem, &order), vec_free(k->mem, &from), vec_free(k->mem, &to);
  return sink && (k->sink = simp(k, sink)) != NULL;
}

bool simplify_ranges(Kernel *k) {
  if (k->opt->noopt || !k->ren) return true;
  if (!share_loops(k) || !split_loops(k)) return false;
  int64_t given = k->next_range;
  bool merged = false;
  for (bool again = true; again;) {
    UOpVec order = {0};
    UOp *a = NULL, *b = NULL;
    bool ok = kernel_nodes(k, k->sink, &order);
    again = false;
    for (size_t i = 0; ok && i < order.len && !again; i++) {
      UOp *u = order.at[i];
      for (int s = u->op == OPS_STORE    ? 2
                   : u->op == OPS_REDUCE ? 1
                                         : u->nsrc;
           s + 1 < u->nsrc && !again; s++) {
        a = u->src[s];
        b = u->src[s + 1];
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
    UOp *sink = kernel_with(k, k->sink, 2, from, to);
    k->sink = simp(k, sink ? graph_rewrite(&rw, pm_one_loop, sink) : NULL);
    if (!k->sink) return false;
    merged = true;
  }
  Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = k};
  if (merged && !(k->sink = graph_rewrite(&rw, pm_one_axis, k->sink))) return false;
  if (merged && !(k->sink = graph_rewrite(&rw, pm_rejoin, k->sink))) return false;
  return (k->sink = graph_rewrite(&rw, pm_axes, k->sink)) != NULL && number_ranges(k, given);
}
