/* expand_loads.c: loads for a chunk of each range. In: an INDEX of a statement that is being expanded.
 * Out: one scalar that all lanes share, one vector, vectors from which shuffles take the lanes, or a LOAD
 * for each lane. The one key fact: a vector load reads only elements that some lane reads, or that are
 * known to be inside the memory. */
#include "codegen/expand.h"
#include <stdlib.h>

static UOp *without_const(UOp *u, int64_t *c) {
  *c = is_const(u) ? u->arg.v.i : u->op == OPS_ADD && is_const(u->src[1]) ? u->src[1]->arg.v.i : 0;
  return is_const(u) ? NULL : u->op == OPS_ADD && is_const(u->src[1]) ? u->src[0] : u;
}

/* *n: how many elements place b is past place a. Returns false if that is not known. */
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

/* A read of a table of 16 bytes at indices that are data, bytes below 16: the table is loaded as a vector,
 * and one instruction selects its lanes. NULL: it is no such read, or out of memory. */
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

static bool is_zero(const UOp *u) { return !u->arg.v.i; } /* false for -0.0 */

/* `lanes` lanes of the memory from place `at` on, or `other` where a gate is false. gate NULL: none. */
static UOp *load_at(Exp *x, UOp *memory, UOp *at, UOp *gate, UOp *other, int lanes) {
  UOpStore *st = x->k->st;
  UOp *src[3] = {memory, at, gate};
  UOp *i = uop_new(st, OPS_INDEX, (DType)memory->dtype, lanes, gate ? 3 : 2, src, (Arg){.i = gate != NULL});
  bool asks = gate && !is_zero(other);
  UOp *of[2] = {i, asks ? splat(x, other, lanes) : NULL};
  return uop_new(st, OPS_LOAD, (DType)memory->dtype, lanes, asks ? 2 : 1, of, ARG0);
}

/* The lanes from .. to of a load, which are all near each other. The other lanes are known not to be read:
 * they are `other`. */
typedef struct Near {
  int from, to;
  int64_t place[MAX_VECTOR], span; /* place[l]: elements past `first`; all are within `span` */
  UOp *first, *other;
  UOp *gate;      /* the common part of all their gates; NULL: nothing */
  bool masked;    /* some gates are stricter: after the load, lanes are chosen one by one */
  Clauses shared; /* if masked: the clauses of `gate` */
} Near;

/* A vector that begins `past` elements after r->first. */
static UOp *vector_at(Exp *x, UOp *memory, const Near *r, int64_t past, int lanes) {
  UOp *at = r->first;
  if (past) at = simple(x, uop_alu2(x->k->st, OPS_ADD, at, uop_index_const(x->k->st, past)));
  return load_at(x, memory, at, r->gate, r->other, lanes);
}

/* The clauses of a gate; none if there is no gate or it is a constant. */
static Clauses lane_clauses(UOp *gate) {
  Clauses c = {0};
  if (gate && !is_const(gate)) c.n = gate_clauses(gate, c.at);
  return c;
}

/* Removes from *shared the clauses that this gate does not have. */
static void keep_shared(Clauses *shared, UOp *gate) {
  Clauses own = lane_clauses(gate), both = {0};
  for (int i = 0; i < shared->n; i++)
    if (clauses_have(&own, shared->at[i])) both.at[both.n++] = shared->at[i];
  *shared = both;
}

/* Whether the lanes at places at[] are near each other, and how. gate[0] NULL: they have no gates. */
static bool are_near(Exp *x, UOp *const *at, UOp *const *gate, UOp *other, int lanes, Near *r) {
  bool vectors = x->k->ren && x->k->ren->vec_bytes >= 32 && lanes >= 4 && !(lanes & (lanes - 1));
  int64_t least = 0, most = 0;
  int n = 0;
  Clauses *shared = &r->shared;
  *r = (Near){.from = lanes, .to = -1, .other = other};
  for (int l = 0; l < lanes && vectors; l++) {
    if (gate[l] && is_const(gate[l]) && !gate[l]->arg.v.i) continue;
    if (n && gate[l] != gate[r->from]) {
      if (!r->masked) *shared = lane_clauses(gate[r->from]);
      keep_shared(shared, gate[l]);
      r->masked = true;
    }
    r->from = TG_MIN(r->from, l), r->to = l;
    if (n++ != r->to - r->from || !distance(x, at[l], at[r->from], &r->place[l])) return false;
    least = TG_MIN(least, r->place[l]), most = TG_MAX(most, r->place[l]);
  }
  r->span = most - least + 1;
  if (n < 2 || r->span < 2 || r->span > MOST_STRIDE * (int64_t)lanes) return false;
  r->gate = n && !r->masked && gate[r->from] && !is_const(gate[r->from]) ? gate[r->from] : NULL;
  for (int i = 0; r->masked && i < shared->n; i++)
    r->gate = r->gate ? uop_alu2(x->k->st, OPS_AND, r->gate, shared->at[i]) : shared->at[i];
  for (int l = r->from; l <= r->to; l++) {
    r->place[l] -= least;
    if (r->place[l] == 0) r->first = at[l];
  }
  return true;
}

/* Whether `lanes` elements, `past` elements after a place, are inside the memory wherever the gate holds. */
static bool is_inside(Exp *x, UOp *memory, UOp *at, int64_t past, UOp *gate, int64_t lanes) {
  UOp *from = simple(x, uop_alu2(x->k->st, OPS_ADD, at, uop_index_const(x->k->st, past)));
  return from && uop_within(from, gate, memory->arg.param.nelem - lanes + 1);
}

/* v with `other` in the lanes outside from .. to. */
static UOp *only_near(Exp *x, UOp *v, int lanes, const Near *r) {
  int64_t lane[MAX_VECTOR];
  UOp *other = v ? splat(x, r->other, lanes) : NULL;
  for (int l = 0; l < lanes; l++)
    lane[l] = l >= r->from && l <= r->to ? l : lanes;
  return other ? shuffle(x, v, other, lanes, lane) : NULL;
}

/* Loads lanes that span less than a vector by two shorter vectors: one begins at the first element of the
 * span, and one ends at the last. */
static UOp *short_load(Exp *x, UOp *memory, int lanes, const Near *r) {
  int64_t lane[MAX_VECTOR] = {0}, n = 1;
  while (2 * n <= r->span)
    n *= 2;
  UOp *begin = vector_at(x, memory, r, 0, (int)n);
  UOp *end = n == r->span ? begin : vector_at(x, memory, r, r->span - n, (int)n);
  for (int l = r->from; l <= r->to; l++)
    lane[l] = r->place[l] < n ? r->place[l] : r->place[l] + 2 * n - r->span;
  return begin && end ? only_near(x, shuffle(x, begin, end, lanes, lane), lanes, r) : NULL;
}

/* Loads lanes near each other: loads the vectors that contain all of them, and takes the lanes by
 * shuffles. The last vector ends with the last element, so that nothing else is read. If the span is
 * shorter than a vector, one vector that is inside the memory is loaded, or two shorter ones. NULL: out of
 * memory. */
static UOp *near_load(Exp *x, UOp *memory, int lanes, const Near *r) {
  int64_t parts = (r->span + lanes - 1) / lanes, lane[MAX_VECTOR], back = 0;
  bool whole = r->from == 0 && r->to == lanes - 1;
  UOp *all = NULL;
  if (r->span < lanes && !is_inside(x, memory, r->first, 0, r->gate, lanes)) {
    back = lanes - r->span;
    if (!is_inside(x, memory, r->first, -back, r->gate, lanes)) return short_load(x, memory, lanes, r);
  }
  UOp *other = whole ? NULL : splat(x, r->other, lanes);
  for (int64_t p = 0; p < parts; p++) {
    int64_t begin = p + 1 < parts ? p * lanes : parts > 1 ? r->span - lanes : -back;
    UOp *v = vector_at(x, memory, r, begin, lanes);
    for (int l = 0; l < lanes; l++) {
      bool in = l >= r->from && l <= r->to;
      int64_t e = in ? r->place[l] : 0, part = TG_MIN(e / lanes, parts - 1);
      lane[l] = part > p ? 0 : p && part == p ? lanes + e - begin : p <= 1 ? e - TG_MIN(begin, 0) : l;
      if (!in) lane[l] = parts == 1 ? lanes : 0;
    }
    if (!v || (p && !all)) return NULL;
    if (parts == 1) return shuffle(x, v, whole ? v : other, lanes, lane);
    all = p ? shuffle(x, all, v, lanes, lane) : v;
  }
  return whole || !all ? all : only_near(x, all, lanes, r);
}

/* The lanes of v where their gates hold, and the constant where they do not. The common clauses need no
 * test, because they were the gate of the whole load. */
static UOp *chosen(Exp *x, UOp *gate, UOp *v, const Near *r, const int *chunk) {
  Clauses all = lane_clauses(gate);
  UOp *mask = NULL, *other = splat(x, r->other, v->lanes);
  for (int i = 0; i < all.n; i++) {
    UOp *asks = chunk_value(x, all.at[i], chunk);
    if (!asks) return NULL;
    if (asks->lanes == 1 && (is_const(asks) || clauses_have(&r->shared, asks))) continue;
    asks = splat(x, asks, v->lanes);
    mask = mask ? uop_alu2(x->k->st, OPS_AND, mask, asks) : asks;
  }
  if (!mask) return v;
  return other ? UNEW(x->k->st, OPS_WHERE, (DType)v->dtype, v->lanes, ARG0, mask, v, other) : NULL;
}

UOp *make_load(Exp *x, UOp *index, UOp *other, const int *chunk, int lanes, Along way) {
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
  if (n == 1 || (cont && same_gate && !(lanes & (lanes - 1))))
    return load_at(x, index->src[0], at[0], gated ? gate[0] : NULL, other, n);
  Near near;
  if (are_near(x, at, gate, other, lanes, &near) &&
      (!near.masked || is_inside(x, index->src[0], near.first, 0, near.gate, near.span)))
    found = near_load(x, index->src[0], lanes, &near);
  if (found && near.masked) found = chosen(x, index->src[2], found, &near, chunk);
  if (found) return found;
  for (int l = 0; l < lanes; l++) {
    bool known = gated && is_const(gate[l]);
    bool reads = !known || gate[l]->arg.v.i;
    lane[l] = reads ? load_at(x, index->src[0], at[l], known ? NULL : gate[l], other, 1) : other;
    if (!lane[l]) return NULL;
  }
  return uop_new(st, OPS_VECTORIZE, (DType)index->dtype, lanes, lanes, lane, ARG0);
}
