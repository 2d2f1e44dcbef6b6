/* expand.c: UPCAST, VEC, UNROLL and GROUP ranges -> vector nodes. In: a kernel whose ranges opts have typed.
 * Out: the same kernel over loop ranges alone, each value as many nodes as its expanded ranges have chunks,
 * each chunk up to 16 lanes wide.
 *
 * A scalar range of n gives n chunks of one value. A VEC or GROUP range gives chunks of 16, 8, 4, 2, 1 lanes.
 * Index arithmetic is scalar: it is made per lane, and a load whose lanes have consecutive addresses is one
 * vector load; equal addresses one scalar load. Nothing is scalarised and rejoined. A value is found by
 * (node, chunk of each expanded range below it). */
#include "codegen/codegen.h"
#include <string.h>

#define MAX_EXP MAX_RANGES
#define BIT(e)  (UINT64_C(1) << (e))

typedef struct Chunk {
  int off, lanes;
} Chunk;

typedef struct ExpRange {
  UOp *r;
  int n, nchunk;
  bool vec;
  Chunk *chunk;
} ExpRange;

typedef struct Val {
  uint64_t mask;
  bool per_lane;
  uint32_t count;
  UOp **at;
} Val; /* mask: expanded ranges below */

typedef struct Exp {
  Kernel *k;
  Arena arena;
  int n;
  ExpRange r[MAX_EXP];
  Val *val;
  UOpVec todo;
} Exp;

static bool is_expanded(const UOp *r) { return r->op == OPS_RANGE && r->arg.range.type >= AXIS_UPCAST; }

static bool scalar_domain(const Exp *x, const UOp *u) { /* index arithmetic and comparisons of it */
  if (u->dtype == DT_INDEX) return true;
  if (u->dtype != DT_BOOL || !u->nsrc || !op_is_alu((Ops)u->op)) return false;
  for (int i = 0; i < u->nsrc; i++)
    if (u->src[i]->op != OPS_CONST && !x->val[u->src[i]->id].per_lane) return false;
  return true;
}

static int count_of(const Exp *x, int i, bool per_lane) { return per_lane ? x->r[i].n : x->r[i].nchunk; }

static uint32_t total(const Exp *x, uint64_t mask, bool per_lane) {
  uint32_t n = 1;
  for (int i = 0; i < x->n; i++)
    if (mask >> i & 1) n *= (uint32_t)count_of(x, i, per_lane);
  return n;
}

static uint32_t offset_of(const Exp *x, uint64_t mask, bool per_lane, const int *at) {
  uint32_t o = 0;
  for (int i = 0; i < x->n; i++)
    if (mask >> i & 1) o = o * (uint32_t)count_of(x, i, per_lane) + (uint32_t)at[i];
  return o;
}

static UOp *simp(Exp *x, UOp *u) { return uop_simplify_top(x->k->st, x->k->mem, u); }

/* Value of a scalar-domain node where each expanded range stands at pos[] (positions 0..n-1, not chunk
 * numbers): made when first asked for, with the sources that it needs. */
static UOp *lane_value(Exp *x, UOp *u, const int *pos);

static void positions(const Exp *x, const int *chunk, int lane,
                      int *pos) { /* chunk numbers and a lane -> positions */
  for (int i = 0; i < x->n; i++)
    pos[i] = x->r[i].chunk[chunk[i]].off + (x->r[i].vec ? lane : 0);
}

static int vec_of(const Exp *x, uint64_t mask) {
  for (int i = 0; i < x->n; i++)
    if ((mask >> i & 1) && x->r[i].vec) return i;
  return -1;
}

static UOp *splat(Exp *x, UOp *u, int lanes) {
  if (!u || u->lanes == lanes) return u;
  return uop_new(x->k->st, OPS_VECTORIZE, (DType)u->dtype, lanes, 1, &u, ARG0);
}

static UOp *pack(Exp *x, UOp **lane, int n) { /* equal lanes: one scalar, left to the reader to repeat */
  bool same = true;
  for (int i = 1; i < n; i++)
    same &= lane[i] == lane[0];
  if (same) return lane[0];
  return uop_new(x->k->st, OPS_VECTORIZE, (DType)lane[0]->dtype, n, n, lane, ARG0);
}

/* Data value of u for these chunks; may come back scalar when its lanes are equal. */
static UOp *chunk_value(Exp *x, UOp *u, const int *chunk) {
  const Val *v = &x->val[u->id];
  if (!v->per_lane) return v->at[offset_of(x, v->mask, false, chunk)];
  int vec = vec_of(x, v->mask), pos[MAX_EXP];
  int lanes = vec < 0 ? 1 : x->r[vec].chunk[chunk[vec]].lanes;
  UOp *lane[64];
  for (int l = 0; l < lanes; l++) {
    positions(x, chunk, l, pos);
    if (!(lane[l] = lane_value(x, u, pos))) return NULL;
  }
  return pack(x, lane, lanes);
}

static UOp *
memory_of(const Exp *x,
          const UOp *index) { /* what an INDEX points into: a PARAM, or local memory as it is once filled */
  return index->src[0]->op == OPS_AFTER ? x->val[index->src[0]->id].at[0] : index->src[0];
}

static UOp *
data_lane(Exp *x, UOp *u,
          const int *pos) { /* one lane of a value that is made in chunks: a loaded index, a mask */
  const Val *s = &x->val[u->id];
  int chunk[MAX_EXP] = {0}, lane = 0;
  for (int e = 0; e < x->n; e++) {
    if (!(s->mask >> e & 1)) continue;
    while (chunk[e] + 1 < x->r[e].nchunk && x->r[e].chunk[chunk[e] + 1].off <= pos[e])
      chunk[e]++;
    if (x->r[e].vec) lane = pos[e] - x->r[e].chunk[chunk[e]].off;
  }
  UOp *d = chunk_value(x, u, chunk);
  return d && d->lanes > 1 ? uop_new(x->k->st, OPS_GEP, (DType)d->dtype, 1, 1, &d, (Arg){.i = lane}) : d;
}

static UOp *gate_lane(Exp *x, UOp *u, const int *pos) {
  return x->val[u->id].per_lane || is_const(u) ? lane_value(x, u, pos) : data_lane(x, u, pos);
}

static UOp *lane_make(Exp *x, UOp *u, const int *pos) { /* its scalar-domain sources are made */
  UOpStore *st = x->k->st;
  UOp *src[64];
  if (u->op == OPS_RANGE) {
    for (int e = 0; e < x->n; e++)
      if (x->r[e].r == u) return uop_index_const(st, pos[e]);
    return u;
  }
  if (u->op == OPS_CAST && !x->val[u->src[0]->id].per_lane && u->src[0]->op != OPS_CONST) {
    UOp *d = data_lane(x, u->src[0], pos);
    return d ? uop_cast(st, d, DT_INDEX) : NULL;
  }
  if (u->nsrc > 64) return NULL;
  for (int i = 0; i < u->nsrc; i++) {
    const Val *s = &x->val[u->src[i]->id];
    src[i] = u->src[i]->op == OPS_CONST ? u->src[i]
             : s->per_lane              ? s->at[offset_of(x, s->mask, true, pos)]
                                        : data_lane(x, u->src[i], pos);
  }
  return simp(x, uop_new(st, (Ops)u->op, (DType)u->dtype, 1, u->nsrc, src, u->arg));
}

static UOp *lane_value(Exp *x, UOp *u, const int *pos) {
  UOpVec *todo = &x->todo;
  size_t base = todo->len;
  if (!vec_push(x->k->mem, todo, u)) return NULL;
  while (todo->len > base) {
    UOp *t = todo->at[todo->len - 1];
    Val *v = &x->val[t->id];
    if (!v->at && !(v->at = arena_array(&x->arena, UOp *, total(x, v->mask, true)))) return NULL;
    UOp **slot = &v->at[offset_of(x, v->mask, true, pos)];
    size_t before = todo->len;
    for (int i = 0; !*slot && i < t->nsrc; i++) {
      Val *s = &x->val[t->src[i]->id];
      if (t->src[i]->op == OPS_CONST || !s->per_lane) continue;
      if ((!s->at || !s->at[offset_of(x, s->mask, true, pos)]) && !vec_push(x->k->mem, todo, t->src[i]))
        return NULL;
    }
    if (todo->len > before) continue;
    if (!*slot && !(*slot = lane_make(x, t, pos))) return NULL;
    todo->len--;
  }
  const Val *v = &x->val[u->id];
  return v->at[offset_of(x, v->mask, true, pos)];
}

/* How an address moves along the lanes: +1 for each, not at all, or otherwise; a gate that moves makes it
 * otherwise. */
typedef enum Along { LANES_SAME, LANES_NEXT, LANES_OTHER } Along;

static Along along(Exp *x, UOp *index, int vec) {
  UOp *r = vec < 0 ? NULL : x->r[vec].r, *flat = index->src[1];
  uint64_t bit = r ? r->ranges : 0;
  if (!r || (!(flat->ranges & bit) && !(index->arg.i && (index->src[2]->ranges & bit)))) return LANES_SAME;
  if (index->arg.i && (index->src[2]->ranges & bit)) return LANES_OTHER;
  UOp *plus = uop_alu2(x->k->st, OPS_ADD, r, uop_index_const(x->k->st, 1));
  UOp *d = plus ? uop_substitute(x->k->st, x->k->mem, flat, 1, &r, &plus) : NULL;
  d = d ? uop_simplify(x->k->st, x->k->mem, uop_alu2(x->k->st, OPS_SUB, d, flat)) : NULL;
  return d && is_const_int(d, 1) ? LANES_NEXT : LANES_OTHER;
}

static UOp *make_load(Exp *x, UOp *index, const int *chunk, int lanes, Along way) {
  UOpStore *st = x->k->st;
  UOp *at[64] = {0}, *gate[64] = {0}, *lane[64];
  int pos[MAX_EXP];
  bool gated = index->arg.i != 0, cont = true, same = true, same_gate = true;
  for (int l = 0; l < (way == LANES_OTHER ? lanes : 1); l++) {
    positions(x, chunk, l, pos);
    at[l] = lane_value(x, index->src[1], pos);
    gate[l] = gated ? gate_lane(x, index->src[2], pos) : NULL;
    if (!at[l] || (gated && !gate[l])) return NULL;
    same &= at[l] == at[0], same_gate &= gate[l] == gate[0];
    if (l && cont) cont = simp(x, uop_alu2(st, OPS_SUB, at[l], at[0])) == uop_index_const(st, l);
  }
  if (gated && is_const(gate[0]) && same_gate && gate[0]->arg.v.i) gated = false;
  int n = way == LANES_SAME || (way == LANES_OTHER && same && same_gate) ? 1 : lanes;
  if (n == 1 || (cont && same_gate && !(lanes & (lanes - 1)))) {
    UOp *src[3] = {memory_of(x, index), at[0], gate[0]};
    UOp *i = uop_new(st, OPS_INDEX, (DType)index->dtype, n, gated ? 3 : 2, src, (Arg){.i = gated});
    return uop_new(st, OPS_LOAD, (DType)index->dtype, n, 1, &i, ARG0);
  }
  for (int l = 0; l < lanes; l++) {
    UOp *src[3] = {memory_of(x, index), at[l], gate[l]};
    bool g = gated && !(is_const(gate[l]) && gate[l]->arg.v.i);
    if (g && is_const(gate[l])) {
      lane[l] = uop_const_int(st, (DType)index->dtype, 0);
      continue;
    }
    UOp *i = uop_new(st, OPS_INDEX, (DType)index->dtype, 1, g ? 3 : 2, src, (Arg){.i = g});
    lane[l] = uop_new(st, OPS_LOAD, (DType)index->dtype, 1, 1, &i, ARG0);
  }
  for (int l = 0; l < lanes; l++)
    if (!lane[l]) return NULL;
  return uop_new(st, OPS_VECTORIZE, (DType)index->dtype, lanes, lanes, lane, ARG0);
}

static UOp *tree(Exp *x, Ops op, UOp **v, int n) { /* pairwise, the order fixed by the shape alone */
  for (; n > 1; n = (n + 1) / 2)
    for (int i = 0; i < n / 2; i++) {
      int j = i + (n + 1) / 2;
      v[i] = uop_alu2(x->k->st, op, v[i], v[j]);
    }
  return v[0];
}

static UOp *horizontal(Exp *x, Ops op, UOp *v) {
  for (int l = v ? v->lanes : 1; v && l > 1; l /= 2) {
    UOp *lo = uop_new(x->k->st, OPS_GEP, (DType)v->dtype, l / 2, 1, &v, (Arg){.i = 0});
    UOp *hi = uop_new(x->k->st, OPS_GEP, (DType)v->dtype, l / 2, 1, &v, (Arg){.i = l / 2});
    v = uop_alu2(x->k->st, op, lo, hi);
  }
  return v;
}

static bool next(const Exp *x, uint64_t mask, bool per_lane, int *at) { /* odometer, last range fastest */
  for (int i = x->n - 1; i >= 0; i--) {
    if (!(mask >> i & 1)) continue;
    if (++at[i] < count_of(x, i, per_lane)) return true;
    at[i] = 0;
  }
  return false;
}

/* One REDUCE for given chunks of its outer ranges: values over its own unrolled chunks feed one accumulator
 * in order; over grouped chunks one accumulator each, joined by a tree, lanes last. */
static UOp *make_reduce(Exp *x, UOp *u, const int *outer) {
  UOpStore *st = x->k->st;
  uint64_t own = 0, group = 0;
  UOp *ranges[32];
  int nr = 0, at[MAX_EXP];
  for (int i = 1; i < u->nsrc; i++) {
    bool exp = false;
    for (int e = 0; e < x->n; e++)
      if (x->r[e].r == u->src[i]) {
        exp = true;
        own |= BIT(e);
        if (x->r[e].vec) group |= BIT(e);
      }
    if (!exp && u->src[i]->op == OPS_RANGE && nr < 32) ranges[nr++] = u->src[i];
  }
  own &= x->val[u->src[0]->id].mask | group;
  uint64_t unroll = own & ~group;
  memcpy(at, outer, sizeof at);
  UOp *accs[64];
  int na = 0;
  for (int e = 0; e < x->n; e++)
    if (own >> e & 1) at[e] = 0;
  do {
    UOp *src[256];
    int nv = 0, lanes = 1;
    do {
      UOp *v = chunk_value(x, u->src[0], at);
      if (!v || nv >= 200) return NULL;
      lanes = TG_MAX(lanes, v->lanes);
      src[nv++] = v;
    } while (next(x, unroll, false, at));
    int gv = vec_of(x, group);
    if (gv >= 0) lanes = x->r[gv].chunk[at[gv]].lanes;
    for (int i = 0; i < nv; i++)
      src[i] = splat(x, src[i], lanes);
    for (int i = 0; i < nr; i++)
      src[nv + i] = ranges[i];
    UOp *acc;
    if (!nr) { /* every range is unrolled: no loop is left, the chain stands as it is */
      UOp *id = uop_const(st, (DType)u->dtype, op_identity((Ops)u->arg.reduce.op, (DType)u->dtype));
      acc = u->arg.reduce.op == OPS_ADD ? uop_alu2(st, OPS_ADD, splat(x, id, lanes), src[0])
                                        : src[0]; /* 0 + -0 is +0 */
      for (int i = 1; i < nv; i++)
        acc = uop_alu2(st, (Ops)u->arg.reduce.op, acc, src[i]);
    } else
      acc = uop_new(st, OPS_REDUCE, (DType)u->dtype, lanes, nv + nr, src, u->arg);
    if (!acc || na >= 64) return NULL;
    accs[na++] = acc;
  } while (next(x, group, false, at));
  if (!group) return accs[0];
  int full = 0; /* equal widths join lane by lane first */
  while (full < na && accs[full]->lanes == accs[0]->lanes)
    full++;
  UOp *r = horizontal(x, (Ops)u->arg.reduce.op, tree(x, (Ops)u->arg.reduce.op, accs, full));
  for (int i = full; i < na; i++)
    r = uop_alu2(st, (Ops)u->arg.reduce.op, r, horizontal(x, (Ops)u->arg.reduce.op, accs[i]));
  return r;
}

static bool expand_store(Exp *x, UOp *u, UOpVec *out) {
  UOpStore *st = x->k->st;
  UOp *index = u->src[0], *loops[40];
  int nl = 0, at[MAX_EXP] = {0}, pos[MAX_EXP];
  uint64_t mask = 0;
  for (int i = 2; i < u->nsrc; i++) {
    bool exp = false;
    for (int e = 0; e < x->n; e++)
      if (x->r[e].r == u->src[i]) exp = true, mask |= BIT(e);
    if (!exp && u->src[i]->op == OPS_RANGE && nl < 36)
      loops[nl++] = u->src[i]; /* a loop of one step has become 0 */
  }
  int vec = vec_of(x, mask);
  Along way = along(x, index, vec);
  do {
    int lanes = vec < 0 ? 1 : x->r[vec].chunk[at[vec]].lanes;
    UOp *v = splat(x, chunk_value(x, u->src[1], at), lanes), *addr[64], *gate[64] = {0}, *src[40];
    bool cont = true, gated = index->arg.i != 0;
    if (!v) return false;
    for (int l = 0; l < (way == LANES_NEXT ? 1 : lanes); l++) {
      positions(x, at, l, pos);
      if (!(addr[l] = lane_value(x, index->src[1], pos))) return false;
      if (gated) gate[l] = gate_lane(x, index->src[2], pos), cont = cont && gate[l] == gate[0];
      if (l && cont) cont = simp(x, uop_alu2(st, OPS_SUB, addr[l], addr[0])) == uop_index_const(st, l);
    }
    int step = cont ? lanes : 1;
    for (int l = 0; l < lanes; l += step) {
      UOp *isrc[3] = {index->src[0], addr[l], gate[l]};
      bool g = gated && !(is_const(gate[l]) && gate[l]->arg.v.i);
      if (g && is_const(gate[l])) continue;
      src[0] = uop_new(st, OPS_INDEX, (DType)index->dtype, step, g ? 3 : 2, isrc, (Arg){.i = g});
      src[1] = step == lanes ? v : uop_new(st, OPS_GEP, (DType)v->dtype, 1, 1, &v, (Arg){.i = l});
      for (int i = 0; i < nl; i++)
        src[2 + i] = loops[i];
      UOp *s = uop_new(st, OPS_STORE, DT_VOID, 1, 2 + nl, src, ARG0);
      if (!s || !vec_push(x->k->mem, out, s)) return false;
    }
  } while (next(x, mask, false, at));
  return true;
}

static bool expand_node(Exp *x, UOp *u) {
  UOpStore *st = x->k->st;
  Val *v = &x->val[u->id];
  for (int e = 0; e < x->n; e++)
    if (x->r[e].r == u) v->mask = BIT(e);
  for (int i = 0; i < u->nsrc; i++)
    v->mask |= x->val[u->src[i]->id].mask;
  if (u->op == OPS_REDUCE)
    for (int i = 1; i < u->nsrc; i++)
      for (int e = 0; e < x->n; e++)
        if (x->r[e].r == u->src[i]) v->mask &= ~BIT(e);
  if (u->op == OPS_STORE || u->op == OPS_SINK) {
    for (int i = 2; i < u->nsrc; i++)
      for (int e = 0; e < x->n; e++)
        if (x->r[e].r == u->src[i]) v->mask &= ~BIT(e);
    return true;
  }
  if (u->op == OPS_AFTER) { /* local memory, filled by every expanded store */
    UOpVec src = {0};
    bool ok = !v->mask && vec_push(x->k->mem, &src, u->src[0]);
    for (int i = 1; ok && i < u->nsrc; i++)
      ok = expand_store(x, u->src[i], &src);
    v->at = arena_array(&x->arena, UOp *, 1), v->count = 1;
    ok = ok && v->at &&
         (v->at[0] = uop_new(st, OPS_AFTER, (DType)u->dtype, 1, (int)src.len, src.at, u->arg)) != NULL;
    vec_free(x->k->mem, &src);
    return ok;
  }
  v->per_lane = scalar_domain(x, u);
  if (v->per_lane) return true; /* made lane by lane, as asked for */
  v->count = total(x, v->mask, false);
  v->at = arena_array(&x->arena, UOp *, v->count);
  if (!v->at) return false;
  int at[MAX_EXP] = {0}, vec = vec_of(x, v->mask);
  uint32_t o = 0;
  Along way = u->op == OPS_INDEX ? along(x, u, vec) : LANES_OTHER;
  do {
    UOp *src[64], *r = NULL;
    int lanes = 1;
    if (u->op == OPS_INDEX) {
      r = make_load(x, u, at, vec < 0 ? 1 : x->r[vec].chunk[at[vec]].lanes, way);
    } else if (u->op == OPS_REDUCE)
      r = make_reduce(x, u, at);
    else {
      if (u->nsrc > 64) return false;
      bool scan = u->op == OPS_SCAN; /* its loop stays as it is */
      for (int i = 0; i < u->nsrc; i++) {
        src[i] = u->src[i]->op == OPS_CONST || (scan && i) ? u->src[i] : chunk_value(x, u->src[i], at);
        if (!src[i]) return false;
        lanes = TG_MAX(lanes, src[i]->lanes);
      }
      if (lanes > 1)
        for (int i = 0; i < (scan ? 1 : u->nsrc); i++)
          src[i] = splat(x, src[i], lanes);
      r = uop_new(st, (Ops)u->op, (DType)u->dtype, lanes, u->nsrc, src, u->arg);
    }
    if (!r) return false;
    v->at[o++] = r;
  } while (next(x, v->mask, false, at));
  return true;
}

bool expand(Kernel *k) {
  Exp x = {.k = k};
  UOpVec order = {0}, stores = {0};
  arena_init(&x.arena, k->mem);
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
  x.val = ok ? arena_array(&x.arena, Val, store_id_limit(k->st) + 1) : NULL;
  ok = ok && x.val;
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    if (!is_expanded(u)) continue;
    if (x.n == MAX_EXP) {
      ok = false;
      break;
    }
    ExpRange *r = &x.r[x.n++];
    r->r = u, r->n = (int)u->src[0]->arg.v.i,
    r->vec = u->arg.range.type == AXIS_VEC || u->arg.range.type == AXIS_GROUP;
    r->chunk = arena_array(&x.arena, Chunk, r->n + 1);
    ok = r->chunk != NULL;
    for (int at = 0; ok && at < r->n;) {
      int l = 1;
      if (r->vec)
        for (l = k->ren && k->ren->vec_bytes < 32 ? 4 : 16; at + l > r->n; l /= 2) {
        } /* float4, or what a compiler splits well */
      r->chunk[r->nchunk++] = (Chunk){at, l};
      at += l;
    }
  }
  uint32_t limit = store_id_limit(k->st);
  for (size_t i = 0; ok && i < order.len; i++) {
    if (NEVER(order.at[i]->id >= limit)) {
      ok = false;
      break;
    }
    ok = expand_node(&x, order.at[i]);
  }
  /* addresses of stores are made per lane by expand_store, so their INDEX is no load */
  for (int i = 0; ok && i < k->sink->nsrc; i++)
    ok = expand_store(&x, k->sink->src[i], &stores);
  if (ok) ok = (k->sink = uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)stores.len, stores.at, ARG0)) != NULL;
  vec_free(k->mem, &order), vec_free(k->mem, &stores), vec_free(k->mem, &x.todo);
  arena_free(&x.arena);
  return ok;
}
