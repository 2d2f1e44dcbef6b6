/* expand_loads.c: what is read, for a chunk of each range. In: an INDEX of a statement that is being expanded.
 * Out: one scalar that all lanes share, one vector, vectors whose lanes are then taken out by shuffles, or a
 * LOAD for each lane. The one key fact: a vector reads nothing that none of its lanes reads, or what is known
 * to lie inside the memory. */
#include "codegen/expand.h"
#include <stdlib.h>

static UOp *without_const(UOp *u, int64_t *c) {
  *c = is_const(u) ? u->arg.v.i : u->op == OPS_ADD && is_const(u->src[1]) ? u->src[1]->arg.v.i : 0;
  return is_const(u) ? NULL : u->op == OPS_ADD && is_const(u->src[1]) ? u->src[0] : u;
}

/* *n: how far place b is behind place a. False: not known. */
static bool distance(Exp *x, UOp *b, UOp *a, int64_t *n) {
  int64_t ca, cb;
  bool alike = without_const(a, &ca) == without_const(b, &cb);
  UOp *d = alike ? NULL : simple(x, uop_alu2(x->k->st, OPS_SUB, b, a));
  *n = alike ? cb - ca : d && is_const(d) ? d->arg.v.i : 0;
  return alike || (d && is_const(d));
}

bool is_past(Exp *x, UOp *b, UOp *a, int n) {
  int64_t by;
  return distance(x, b, a, &by) && by == n;
}

/* A table of 16 bytes by bytes that are data and below 16: the table is a vector, and one instruction takes
 * its lanes. NULL: not such a read, or out of memory. */
static UOp *make_lookup(Exp *x, UOp *index, const int *chunk, int lanes) {
  UOpStore *st = x->k->st;
  UOp *at = index->src[1], *table = index->src[0];
  bool fits = lanes >= 16 && !(lanes & (lanes - 1)) && x->k->ren && x->k->ren->has_lookup && !index->arg.i &&
              table->op == OPS_PARAM && table->arg.param.nelem == 16 && dtype_size((DType)index->dtype) == 1;
  while (at->op == OPS_CAST && dtype_is_int((DType)at->src[0]->dtype))
    at = at->src[0];
  if (!fits || at->dtype == DT_INDEX || at->vmin < 0 || at->vmax > 15 || x->val[at->id].per_lane) return NULL;
  UOp *by = uop_cast(st, chunk_value(x, at, chunk), DT_U8), *zero = uop_index_const(st, 0);
  if (!by || by->lanes != lanes) return NULL;
  UOp *i = uop_new(st, OPS_INDEX, (DType)index->dtype, 16, 2, (UOp *[]){table, zero}, ARG0);
  UOp *v = uop_new(st, OPS_LOAD, (DType)index->dtype, 16, 1, &i, ARG0);
  return uop_new(st, OPS_LOOKUP, (DType)index->dtype, lanes, 2, (UOp *[]){v, by}, ARG0);
}

/* A vector of the memory behind an INDEX, `past` elements after a place of it. */
static UOp *vector_at(Exp *x, UOp *memory, UOp *at, int64_t past, UOp *gate, int lanes) {
  UOpStore *st = x->k->st;
  if (past) at = simple(x, uop_alu2(st, OPS_ADD, at, uop_index_const(st, past)));
  UOp *src[3] = {memory, at, gate};
  UOp *i = uop_new(st, OPS_INDEX, (DType)memory->dtype, lanes, gate ? 3 : 2, src, (Arg){.i = gate != NULL});
  return uop_new(st, OPS_LOAD, (DType)memory->dtype, lanes, 1, &i, ARG0);
}

/* Lanes from .. to of a load, all near each other and with one gate or NULL. Of the other lanes it is known that
 * they are not read. */
typedef struct Near {
  int from, to;
  int64_t place[MAX_VECTOR], span; /* place[l]: elements behind the first that is read, of `span` */
  UOp *first, *gate;
} Near;

/* Whether lanes at[] are such. gate[0] NULL: they have no gates. */
static bool are_near(Exp *x, UOp *const *at, UOp *const *gate, int lanes, Near *r) {
  bool vectors = x->k->ren && x->k->ren->vec_bytes >= 32 && lanes >= 4 && !(lanes & (lanes - 1));
  int64_t least = 0, most = 0;
  int n = 0;
  *r = (Near){.from = lanes, .to = -1};
  for (int l = 0; l < lanes && vectors; l++) {
    if (gate[l] && is_const(gate[l]) && !gate[l]->arg.v.i) continue;
    if (n && gate[l] != r->gate) return false;
    r->from = TG_MIN(r->from, l), r->to = l;
    r->gate = gate[l];
    if (n++ != r->to - r->from || !distance(x, at[l], at[r->from], &r->place[l])) return false;
    least = TG_MIN(least, r->place[l]), most = TG_MAX(most, r->place[l]);
  }
  r->span = most - least + 1;
  if (n < 2 || r->span < 2 || r->span > MOST_STRIDE * (int64_t)lanes) return false;
  if (r->gate && is_const(r->gate)) r->gate = NULL;
  for (int l = r->from; l <= r->to; l++) {
    r->place[l] -= least;
    if (r->place[l] == 0) r->first = at[l];
  }
  return true;
}

/* Whether a vector `past` elements after a place lies in the memory, wherever the gate lets it through. */
static bool is_inside(Exp *x, UOp *memory, UOp *at, int64_t past, UOp *gate, int lanes) {
  UOp *from = simple(x, uop_alu2(x->k->st, OPS_ADD, at, uop_index_const(x->k->st, past)));
  return from && uop_within(from, gate, memory->arg.param.nelem - lanes + 1);
}

/* Lanes of v that are none of these are 0. */
static UOp *only_near(Exp *x, UOp *v, int lanes, const Near *r) {
  int64_t lane[MAX_VECTOR];
  UOp *zero = v ? splat(x, uop_const_int(x->k->st, (DType)v->dtype, 0), lanes) : NULL;
  for (int l = 0; l < lanes; l++)
    lane[l] = l >= r->from && l <= r->to ? l : lanes;
  return zero ? shuffle(x, v, zero, lanes, lane) : NULL;
}

/* Lanes that span less than a vector: two shorter ones, one that begins with them and one that ends with them. */
static UOp *short_load(Exp *x, UOp *memory, int lanes, const Near *r) {
  int64_t lane[MAX_VECTOR] = {0}, n = 1;
  while (2 * n <= r->span)
    n *= 2;
  UOp *begin = vector_at(x, memory, r->first, 0, r->gate, (int)n);
  UOp *end = n == r->span ? begin : vector_at(x, memory, r->first, r->span - n, r->gate, (int)n);
  for (int l = r->from; l <= r->to; l++)
    lane[l] = r->place[l] < n ? r->place[l] : r->place[l] + 2 * n - r->span;
  return begin && end ? only_near(x, shuffle(x, begin, end, lanes, lane), lanes, r) : NULL;
}

/* Lanes near each other: the vectors that all of them lie in, of which shuffles take the lanes; others are 0. The
 * last vector ends with the last element, so that nothing else is read; where these are fewer than a vector, it
 * is one that stands inside the memory, or two shorter ones. NULL: out of memory. */
static UOp *near_load(Exp *x, UOp *memory, int lanes, const Near *r) {
  int64_t parts = (r->span + lanes - 1) / lanes, lane[MAX_VECTOR], back = 0;
  bool whole = r->from == 0 && r->to == lanes - 1;
  UOp *all = NULL;
  if (r->span < lanes && !is_inside(x, memory, r->first, 0, r->gate, lanes)) {
    back = lanes - r->span;
    if (!is_inside(x, memory, r->first, -back, r->gate, lanes)) return short_load(x, memory, lanes, r);
  }
  UOp *zero = whole ? NULL : splat(x, uop_const_int(x->k->st, (DType)memory->dtype, 0), lanes);
  for (int64_t p = 0; p < parts; p++) {
    int64_t begin = p + 1 < parts ? p * lanes : parts > 1 ? r->span - lanes : -back;
    UOp *v = vector_at(x, memory, r->first, begin, r->gate, lanes);
    for (int l = 0; l < lanes; l++) {
      bool in = l >= r->from && l <= r->to;
      int64_t e = in ? r->place[l] : 0, part = TG_MIN(e / lanes, parts - 1);
      lane[l] = part > p ? 0 : p && part == p ? lanes + e - begin : p <= 1 ? e - TG_MIN(begin, 0) : l;
      if (!in) lane[l] = parts == 1 ? lanes : 0;
    }
    if (!v || (p && !all)) return NULL;
    if (parts == 1) return shuffle(x, v, whole ? v : zero, lanes, lane);
    all = p ? shuffle(x, all, v, lanes, lane) : v;
  }
  return whole || !all ? all : only_near(x, all, lanes, r);
}

UOp *make_load(Exp *x, UOp *index, const int *chunk, int lanes, Along way) {
  UOpStore *st = x->k->st;
  UOp *found = way == LANES_OTHER ? make_lookup(x, index, chunk, lanes) : NULL;
  if (found) return found;
  UOp *at[64] = {0}, *gate[64] = {0}, *lane[64];
  int pos[MAX_EXP];
  bool gated = index->arg.i != 0, cont = true, same = true, same_gate = true;
  for (int l = 0; l < (way == LANES_OTHER ? lanes : 1); l++) {
    positions(x, chunk, l, pos);
    at[l] = lane_value(x, index->src[1], pos);
    gate[l] = gated ? gate_lane(x, index->src[2], pos) : NULL;
    if (!at[l] || (gated && !gate[l])) return NULL;
    same &= at[l] == at[0];
    same_gate &= gate[l] == gate[0];
    if (l && cont) cont = is_past(x, at[l], at[0], l);
  }
  if (gated && is_const(gate[0]) && same_gate && gate[0]->arg.v.i) gated = false;
  int n = way == LANES_SAME || (way == LANES_OTHER && same && same_gate) ? 1 : lanes;
  if (n == 1 || (cont && same_gate && !(lanes & (lanes - 1)))) {
    UOp *src[3] = {index->src[0], at[0], gate[0]};
    UOp *i = uop_new(st, OPS_INDEX, (DType)index->dtype, n, gated ? 3 : 2, src, (Arg){.i = gated});
    return uop_new(st, OPS_LOAD, (DType)index->dtype, n, 1, &i, ARG0);
  }
  Near near;
  if (are_near(x, at, gate, lanes, &near)) found = near_load(x, index->src[0], lanes, &near);
  if (found) return found;
  for (int l = 0; l < lanes; l++) {
    UOp *src[3] = {index->src[0], at[l], gate[l]};
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
