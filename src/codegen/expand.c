/* expand.c: UPCAST, VEC, UNROLL and GROUP ranges -> vector nodes. In: a nest whose statements list
 * expanded ranges. Out: the same nest over loops alone. Each statement is written once for every chunk of
 * the ranges it lists, each value is up to 16 lanes wide, a register with axes becomes one register per
 * chunk, and a read becomes a LOAD.
 *
 * A scalar range of n gives n chunks of one value. A VEC or GROUP range gives chunks of 16, 8, 4, 2 and 1
 * lanes. Index arithmetic is scalar and made per lane. A load whose lanes have consecutive addresses is
 * one vector load; if the addresses are equal, it is one scalar load. Nothing is split into scalars and
 * joined again. Within a statement, a value is found by its node and the chunk of each range below it. */
#include "codegen/expand.h"
#include "uop/matrix.h"
#include <stdlib.h>
#include <string.h>

static bool scalar_domain(const Exp *x, const UOp *u) { /* whether u is index arithmetic or compares it */
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

UOp *simple(Exp *x, UOp *u) { return uop_simplify_top(x->k->st, x->k->mem, u); }

void positions(const Exp *x, const int *chunk, int lane, int *pos) {
  for (int i = 0; i < x->n; i++)
    pos[i] = x->r[i].chunk[chunk[i]].off + (x->r[i].vec ? lane : 0);
}

static int vec_of(const Exp *x, uint64_t mask) {
  for (int i = 0; i < x->n; i++)
    if ((mask >> i & 1) && x->r[i].vec) return i;
  return -1;
}

UOp *splat(Exp *x, UOp *u, int lanes) {
  if (!u || u->lanes == lanes) return u;
  return uop_new(x->k->st, OPS_VECTORIZE, (DType)u->dtype, lanes, 1, &u, ARG0);
}

static UOp *pack(Exp *x, UOp **lane, int n) { /* equal lanes: one scalar, which its reader repeats */
  bool same = true;
  for (int i = 1; i < n; i++)
    same &= lane[i] == lane[0];
  if (same) return lane[0];
  return uop_new(x->k->st, OPS_VECTORIZE, (DType)lane[0]->dtype, n, n, lane, ARG0);
}

enum { WORD = 4 }; /* bytes */

UOp *shuffle(Exp *x, UOp *a, UOp *b, int n, const int64_t *lane) {
  const Ints *from = ints_get(x->k->st, n, lane);
  return from ? UNEW(x->k->st, OPS_SHUFFLEVECTOR, (DType)a->dtype, n, (Arg){.ints = from}, a, b) : NULL;
}

/* ---- conditions on loops that are lanes become one comparison of vectors */
/* a < b, where a - b is d at the first lane and grows by `by` from lane to lane: by * lane < -d, in i32.
 * NULL: it is not of that form, or its value is known. */
static UOp *mask_less(Exp *x, UOp *u, const int *chunk, int vec, int lanes) {
  UOpStore *st = x->k->st;
  UOp *lane[64];
  int64_t by[2] = {0, 0};
  int pos[MAX_EXP];
  positions(x, chunk, 0, pos);
  for (int i = 0; i < 2; i++)
    if ((x->val[u->src[i]->id].mask >> vec & 1) && !moves_evenly(x->k, u->src[i], x->r[vec].r, &by[i]))
      return NULL;
  UOp *a = gate_lane(x, u->src[0], pos), *b = gate_lane(x, u->src[1], pos);
  UOp *bound = a && b ? simple(x, uop_alu2(st, OPS_SUB, b, a)) : NULL;
  int64_t step = by[0] - by[1], most = INT32_MAX / 2;
  bool narrow =
      bound && bound->vmin > -most && bound->vmax < most && step > -most / lanes && step < most / lanes;
  if (!narrow || is_const(bound)) return NULL;
  for (int l = 0; l < lanes; l++)
    lane[l] = uop_const_int(st, DT_I32, step * l);
  UOp *along = uop_new(st, OPS_VECTORIZE, DT_I32, lanes, lanes, lane, ARG0);
  UOp *all = splat(x, uop_cast(st, bound, DT_I32), lanes);
  return along && all ? UNEW(st, OPS_CMPLT, DT_BOOL, lanes, ARG0, along, all) : NULL;
}

static UOp *mask_value(Exp *x, UOp *u, const int *chunk, int vec, int lanes) {
  enum { LEAST_LANES = 8 };

  if (u->dtype != DT_BOOL || lanes < LEAST_LANES || u->nsrc != 2) return NULL;
  if (u->op == OPS_CMPLT && u->src[0]->dtype == DT_INDEX) return mask_less(x, u, chunk, vec, lanes);
  bool joins = u->op == OPS_AND || u->op == OPS_OR || (u->op == OPS_CMPNE && is_const(u->src[1]));
  if (!joins || u->src[0]->dtype != DT_BOOL) return NULL;
  UOp *src[2];
  for (int i = 0; i < 2; i++) {
    UOp *s = u->src[i];
    src[i] = is_const(s) ? s : chunk_value(x, s, chunk);
    if (!src[i] || (is_const(src[i]) && !is_const(s))) return NULL; /* known: folded lane by lane */
    if (!(src[i] = splat(x, src[i], lanes))) return NULL;
  }
  return UNEW(x->k->st, (Ops)u->op, DT_BOOL, lanes, ARG0, src[0], src[1]);
}

/* A loop's number as integers: that of the first lane, plus the distance of each lane from it. NULL: it is
 * not of that form, or its value is known. */
static UOp *number_value(Exp *x, UOp *u, const int *chunk, int vec, int lanes) {
  UOpStore *st = x->k->st;
  DType d = (DType)u->dtype;
  UOp *e = u->src[0], *lane[64];
  int64_t by;
  int pos[MAX_EXP];
  bool number = dtype_is_int(d) && d != DT_INDEX && e->dtype == DT_INDEX;
  if (!number || lanes < 2 || !moves_evenly(x->k, e, x->r[vec].r, &by) || llabs(by) > INT32_MAX / lanes)
    return NULL;
  positions(x, chunk, 0, pos);
  UOp *first = lane_value(x, e, pos);
  if (!first || is_const(first) || by == 0) return NULL;
  for (int l = 0; l < lanes; l++)
    lane[l] = uop_const_int(st, d, by * l);
  UOp *along = uop_new(st, OPS_VECTORIZE, d, lanes, lanes, lane, ARG0);
  return uop_alu2(st, OPS_ADD, splat(x, uop_cast(st, first, d), lanes), along);
}

/* The value of u as data for these chunks. It may be a scalar if its lanes are equal. */
UOp *chunk_value(Exp *x, UOp *u, const int *chunk) {
  const Val *v = &x->val[u->id];
  if (!v->per_lane) return v->at[offset_of(x, v->mask, false, chunk)];
  int vec = vec_of(x, v->mask), pos[MAX_EXP];
  int lanes = vec < 0 ? 1 : x->r[vec].chunk[chunk[vec]].lanes;
  UOp *lane[64], *mask = lanes > 1 ? mask_value(x, u, chunk, vec, lanes) : NULL;
  if (mask) return mask;
  for (int l = 0; l < lanes; l++) {
    positions(x, chunk, l, pos);
    if (!(lane[l] = lane_value(x, u, pos))) return NULL;
  }
  return pack(x, lane, lanes);
}

/* One lane of a value that is made in chunks, such as a loaded index or a mask. */
static UOp *data_lane(Exp *x, UOp *u, const int *pos) {
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

UOp *gate_lane(Exp *x, UOp *u, const int *pos) {
  return x->val[u->id].per_lane || is_const(u) ? lane_value(x, u, pos) : data_lane(x, u, pos);
}

static UOp *lane_make(Exp *x, UOp *u, const int *pos) { /* needs the lanes of its index arithmetic sources */
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
  return simple(x, uop_new(st, (Ops)u->op, (DType)u->dtype, 1, u->nsrc, src, u->arg));
}

/* Most index arithmetic is a linear sum over the expanded ranges: a part that all lanes share plus a
 * constant. */
static const LinearIn *sum_of(Exp *x, UOp *u) {
  Val *v = &x->val[u->id];
  if (v->asked) return v->sum;
  v->asked = true;
  if (u->dtype != DT_INDEX || uop_has(u, INDEX)) return NULL;
  UOp *r[MAX_EXP];
  for (int e = 0; e < x->n; e++)
    r[e] = x->r[e].r;
  LinearIn *sum = arena_alloc(&x->arena, sizeof *sum);
  if (sum && uop_linear_in(x->k->st, x->k->mem, u, x->n, r, sum)) v->sum = sum;
  return v->sum;
}

static UOp *sum_at(Exp *x, const LinearIn *sum, const int *pos) {
  int64_t c = sum->c;
  for (int e = 0; e < x->n; e++)
    c += sum->by[e] * pos[e];
  UOp *past = sum->rest && !c ? NULL : uop_index_const(x->k->st, c);
  return !sum->rest ? past : !c ? sum->rest : simple(x, uop_alu2(x->k->st, OPS_ADD, sum->rest, past));
}

UOp *lane_value(Exp *x, UOp *u, const int *pos) {
  const LinearIn *sum = sum_of(x, u);
  if (sum) return sum_at(x, sum, pos);
  UOpVec *todo = &x->todo;
  size_t base = todo->len;
  if (!vec_push(x->k->mem, todo, u)) return NULL;
  while (todo->len > base) {
    UOp *t = todo->at[todo->len - 1];
    Val *v = &x->val[t->id];
    if (!v->at && !(v->at = arena_array(&x->arena, UOp *, total(x, v->mask, true)))) return NULL;
    UOp **slot = &v->at[offset_of(x, v->mask, true, pos)];
    size_t before = todo->len;
    if (!*slot && (sum = sum_of(x, t))) *slot = sum_at(x, sum, pos);
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

static Along along(Exp *x, UOp *index, int vec) {
  UOp *r = vec < 0 ? NULL : x->r[vec].r, *flat = index->src[1];
  uint64_t bit = r ? r->ranges : 0;
  if (!r || (!(flat->ranges & bit) && !(index->arg.i && (index->src[2]->ranges & bit)))) return LANES_SAME;
  if (index->arg.i && (index->src[2]->ranges & bit)) return LANES_OTHER;
  int64_t by;
  return moves_evenly(x->k, flat, r, &by) && by == 1 ? LANES_NEXT : LANES_OTHER;
}

static UOp *tree(Exp *x, Ops op, UOp **v, int n) { /* pairwise, in an order that only depends on n */
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

static bool next(const Exp *x, uint64_t mask, bool per_lane,
                 /* Counts like an odometer: the last range is the fastest. */
                 int *at) {
  for (int i = x->n - 1; i >= 0; i--) {
    if (!(mask >> i & 1)) continue;
    if (++at[i] < count_of(x, i, per_lane)) return true;
    at[i] = 0;
  }
  return false;
}

/* ---- registers: one for each chunk of the ranges along which an INDEX moves */
static bool reg_place(Exp *x, UOp *index, const int *chunk, int lane, int64_t *flat) {
  UOp *reg = index->src[0];
  int pos[MAX_EXP];
  positions(x, chunk, lane, pos);
  *flat = 0;
  for (int d = 0; d < reg->nsrc; d++) {
    UOp *at = lane_value(x, index->src[1 + d], pos);
    if (!at || !is_const(at)) return false;
    *flat = *flat * reg->src[d]->arg.v.i + at->arg.v.i;
  }
  return true;
}

static bool index_moves(const Exp *x, const UOp *index, int range) {
  for (int i = 1; i < index->nsrc; i++)
    if (x->val[index->src[i]->id].mask >> range & 1) return true;
  return false;
}

/* The register of an INDEX for these chunks. The first statement that writes it decides its width. NULL:
 * failed, for example because the width differs. */
UOp *reg_piece(Exp *x, UOp *index, const int *chunk) {
  UOp *reg = index->src[0];
  int64_t flat;
  uint64_t had;
  int lanes = 1;
  for (int e = 0; e < x->n; e++)
    if (x->r[e].vec && index_moves(x, index, e)) lanes = x->r[e].chunk[chunk[e]].lanes;
  if (!reg_place(x, index, chunk, 0, &flat)) return NULL;
  uint64_t key = (uint64_t)reg->arg.param.slot << 32 | (uint64_t)flat;
  if (map_get(&x->pieces, key, &had)) {
    UOp *piece = (UOp *)(uintptr_t)had;
    return piece->lanes == lanes ? piece : NULL;
  }
  UOp *piece = uop_new(x->k->st, OPS_DEFINE_REG, (DType)reg->dtype, lanes, 0, NULL,
                       (Arg){.param = {1, x->k->next_reg++}});
  return piece && map_put_ptr(&x->pieces, (uintptr_t)key, piece) ? piece : NULL;
}

/* ---- values */
/* If u is a WHERE that chooses a constant, *other, wherever the gate of an INDEX is false, returns that
 * INDEX: the load then gives the constant, and no choice is needed after it. Otherwise returns NULL. */
static UOp *gated_load(const UOp *u, UOp **other) {
  UOp *index = u->op == OPS_WHERE ? u->src[1] : NULL;
  bool fits = index && index->op == OPS_INDEX && index->arg.i && index->src[0]->op != OPS_DEFINE_REG &&
              index->src[2] == u->src[0] && is_const(u->src[2]);
  *other = fits ? u->src[2] : NULL;
  return fits ? index : NULL;
}

static bool expand_node(Exp *x, UOp *u) {
  UOpStore *st = x->k->st;
  Val *v = &x->val[u->id];
  *v = (Val){0};
  for (int e = 0; e < x->n; e++)
    if (x->r[e].r == u) v->mask = BIT(e);
  for (int i = 0; i < u->nsrc; i++)
    v->mask |= x->val[u->src[i]->id].mask;
  v->per_lane = scalar_domain(x, u);
  if (v->per_lane || u->op == OPS_DEFINE_REG) return true; /* made lane by lane, when needed */
  if (u->op == OPS_WMMA) return true;                      /* made together with its accumulator */
  v->count = total(x, v->mask, false);
  v->at = arena_array(&x->arena, UOp *, v->count);
  if (!v->at) return false;
  int at[MAX_EXP] = {0}, vec = vec_of(x, v->mask);
  uint32_t o = 0;
  bool of_reg = u->op == OPS_INDEX && u->src[0]->op == OPS_DEFINE_REG;
  UOp *other = NULL, *index = of_reg ? NULL : u->op == OPS_INDEX ? u : gated_load(u, &other);
  Along way = index ? along(x, index, vec) : LANES_OTHER;
  if (index && !other && !(other = uop_const_int(st, (DType)index->dtype, 0))) return false;
  do {
    UOp *src[64], *r = NULL;
    int lanes = 1;
    if (of_reg) {
      UOp *piece = reg_piece(x, u, at);
      r = piece ? uop_new(st, OPS_LOAD, (DType)u->dtype, piece->lanes, 1, &piece, ARG0) : NULL;
    } else if (index)
      r = make_load(x, index, other, at, vec < 0 ? 1 : x->r[vec].chunk[at[vec]].lanes, way);
    else if (u->op == OPS_CAST && vec >= 0)
      r = number_value(x, u, at, vec, x->r[vec].chunk[at[vec]].lanes);
    if (!r && u->op != OPS_INDEX) {
      if (u->nsrc > 64) return false;
      for (int i = 0; i < u->nsrc; i++) {
        src[i] = u->src[i]->op == OPS_CONST ? u->src[i] : chunk_value(x, u->src[i], at);
        if (!src[i]) return false;
        lanes = TG_MAX(lanes, src[i]->lanes);
      }
      for (int i = 0; lanes > 1 && i < u->nsrc; i++)
        src[i] = splat(x, src[i], lanes);
      r = uop_new(st, (Ops)u->op, (DType)u->dtype, lanes, u->nsrc, src, u->arg);
    }
    if (!r) return false;
    v->at[o++] = r;
  } while (next(x, v->mask, false, at));
  return true;
}

/* ---- statements */
/* The number of lanes that one store can write: each group of that many lanes is contiguous and has one
 * gate. */

static int neighbours(Exp *x, UOp *const *addr, UOp *const *gate, int lanes) {
  int n = lanes;
  for (int l = 1; l < lanes; l++)
    while (l % n && (gate[l] != gate[l - l % n] || !is_past(x, addr[l], addr[l - l % n], l % n)))
      n /= 2;
  return n;
}

static bool write_memory(Exp *x, UOp *u, const int *at, int vec, Along way, UOpVec *out) {
  UOpStore *st = x->k->st;
  UOp *index = u->src[0], *addr[64], *gate[64] = {0};
  int lanes = vec < 0 ? 1 : x->r[vec].chunk[at[vec]].lanes, pos[MAX_EXP];
  UOp *v = splat(x, chunk_value(x, u->src[1], at), lanes);
  bool gated = index->arg.i != 0;
  if (!v) return false;
  for (int l = 0; l < (way == LANES_NEXT ? 1 : lanes); l++) {
    positions(x, at, l, pos);
    if (!(addr[l] = lane_value(x, index->src[1], pos))) return false;
    if (gated && !(gate[l] = gate_lane(x, index->src[2], pos))) return false;
  }
  int step = way == LANES_NEXT ? lanes : neighbours(x, addr, gate, lanes);
  for (int l = 0; l < lanes; l += step) {
    bool known = gated && is_const(gate[l]);
    if (known && !gate[l]->arg.v.i) continue;
    bool g = gated && !known;
    UOp *isrc[3] = {index->src[0], addr[l], gate[l]};
    UOp *to = uop_new(st, OPS_INDEX, (DType)index->dtype, step, g ? 3 : 2, isrc, (Arg){.i = g});
    UOp *part = step == lanes ? v : uop_new(st, OPS_GEP, (DType)v->dtype, step, 1, &v, (Arg){.i = l});
    UOp *s = UNEW(st, OPS_STORE, DT_VOID, 1, ARG0, to, part);
    if (!s || !vec_push(x->k->mem, out, s)) return false;
  }
  return true;
}

/* ---- relane: stores of a tile whose lanes are apart in memory while one of its scalar ranges is
 * contiguous. n vectors of n lanes are transposed in registers. If lanes are contiguous in words, words
 * are transposed. If the values of the scalar range fill the gap between two lanes, the vectors are
 * interleaved. */
typedef enum Relane { RELANE_NONE, RELANE_WORDS, RELANE_ALTERNATE } Relane;

typedef struct Relaned {
  Relane how;
  int scalar, word; /* the scalar range; contiguous lanes (ALTERNATE: its values): 1, 2 or 4 */
} Relaned;

/* The odd blocks of a change places with the even blocks of b. Returns the new a, or with `second` the new
 * b. */
static UOp *exchanged(Exp *x, UOp *a, UOp *b, int block, int second) {
  int64_t lane[MAX_VECTOR];
  for (int l = 0; l < a->lanes; l++) {
    int odd = (l & block) != 0, move = second == odd ? 0 : odd ? -block : block;
    lane[l] = l + move + (odd ? a->lanes : 0);
  }
  return shuffle(x, a, b, a->lanes, lane);
}

/* Transposes n rows v[i] of n words each. */
static bool transpose(Exp *x, UOp **v, int n, int word) {
  for (int block = 1; block < n; block *= 2)
    for (int i = 0; i < n; i++) {
      if (i & block) continue;
      UOp *pair[2] = {v[i], v[i + block]};
      for (int second = 0; second < 2; second++)
        v[i + second * block] = exchanged(x, pair[0], pair[1], block * word, second);
      if (!v[i] || !v[i + block]) return false;
    }
  return true;
}

/* The number of lanes in a word of 32 bits if all lanes of a vector are contiguous within words; 0: they
 * are not. */
static int words_of(Exp *x, UOp *index, int vec) {
  int64_t first[MAX_VECTOR];
  int lanes = x->r[vec].chunk[0].lanes, pos[MAX_EXP], word = 1, chunk[MAX_EXP] = {0};
  UOp *at = NULL;
  for (int l = 0; l < lanes; l++) {
    positions(x, chunk, l, pos);
    UOp *place = lane_value(x, index->src[1], pos), *by;
    if (!place || (l && !(by = simple(x, uop_alu2(x->k->st, OPS_SUB, place, at))))) return 0;
    if (!l) at = place;
    if (l && !is_const(by)) return 0;
    first[l] = l ? by->arg.v.i : 0;
  }
  while (word < lanes && first[word] == word)
    word++;
  for (int l = 0; l < lanes; l++)
    if (first[l] - first[l - l % word] != l % word) return 0;
  return word * dtype_size((DType)index->dtype) == WORD ? word : 0;
}

/* Whether the values of scalar range e fill a word of 32 bits for each lane. */
static bool alternates(Exp *x, UOp *index, int vec, int e) {
  int64_t by;
  return x->r[e].n * dtype_size((DType)index->dtype) == WORD && x->r[e].n > 1 &&
         moves_evenly(x->k, index->src[1], x->r[vec].r, &by) && by == x->r[e].n;
}

/* Finds the scalar range along which the address moves by a word, and how to use it. */
static Relaned relaned_by(Exp *x, UOp *index, int vec) {
  Relaned none = {RELANE_NONE, -1, 1};
  int64_t by;
  if (!x->k->ren || x->k->ren->vec_bytes < 32 || index->arg.i) return none;
  for (int e = x->n; e-- > 0;)
    if (!x->r[e].vec && x->r[e].n >= 4 && along(x, index, e) == LANES_NEXT) {
      bool fills = alternates(x, index, vec, e);
      return (Relaned){fills ? RELANE_ALTERNATE : RELANE_WORDS, e, fills ? x->r[e].n : 1};
    }
  for (int e = x->n; e-- > 0;)
    if (!x->r[e].vec && x->r[e].n == 2 && along(x, index, e) == LANES_NEXT && alternates(x, index, vec, e))
      return (Relaned){RELANE_ALTERNATE, e, 2};
  int word = words_of(x, index, vec);
  for (int e = x->n; word && e-- > 0;)
    if (!x->r[e].vec && x->r[e].n >= 4 && moves_evenly(x->k, index->src[1], x->r[e].r, &by) && by == word)
      return (Relaned){RELANE_WORDS, e, word};
  return none;
}

/* Stores the first n lanes of v at place `at`. */
static bool write_pieces(Exp *x, UOp *memory, UOp *at, UOp *v, int n, UOpVec *out) {
  UOpStore *st = x->k->st;
  for (int done = 0, piece = v->lanes; done < n; piece /= 2) {
    if (piece > n - done) continue;
    UOp *src[2] = {memory, simple(x, uop_alu2(st, OPS_ADD, at, uop_index_const(st, done)))};
    UOp *to = uop_new(st, OPS_INDEX, (DType)v->dtype, piece, 2, src, ARG0);
    UOp *part = piece == v->lanes ? v : uop_new(st, OPS_GEP, (DType)v->dtype, piece, 1, &v, (Arg){.i = done});
    UOp *s = UNEW(st, OPS_STORE, DT_VOID, 1, ARG0, to, part);
    if (!s || !vec_push(x->k->mem, out, s)) return false;
    done += piece;
    piece *= 2;
  }
  return true;
}

/* Writes one chunk of lanes for the whole scalar range, in groups of as many iterations as the chunk has
 * words. */
static bool write_relaned(Exp *x, UOp *u, const int *chunk, int vec, const Relaned *how, UOpVec *out) {
  UOp *index = u->src[0], *v[64];
  int lanes = x->r[vec].chunk[chunk[vec]].lanes, words = lanes / how->word, scalar = how->scalar;
  int n = x->r[scalar].n, at[MAX_EXP], pos[MAX_EXP];
  memcpy(at, chunk, sizeof at);
  for (int first = 0; first < n; first += words) {
    int many = TG_MIN(words, n - first);
    for (int i = 0; i < words; i++) {
      at[scalar] = first + TG_MIN(i, many - 1);
      if (!(v[i] = splat(x, chunk_value(x, u->src[1], at), lanes))) return false;
    }
    if (!transpose(x, v, words, how->word)) return false;
    at[scalar] = first;
    for (int l = 0; l < words; l++) {
      positions(x, at, l * how->word, pos);
      UOp *place = lane_value(x, index->src[1], pos);
      if (!place || !write_pieces(x, index->src[0], place, v[l], many * how->word, out)) return false;
    }
  }
  return true;
}

/* Interleaves the lanes of two vectors, `run` lanes of each in turn. */
static UOp *alternate(Exp *x, UOp *a, UOp *b, int run) {
  int64_t lane[MAX_VECTOR];
  if (a->lanes == 1) return UNEW(x->k->st, OPS_VECTORIZE, (DType)a->dtype, 2, ARG0, a, b);
  for (int l = 0; l < 2 * a->lanes; l++)
    lane[l] = l / (2 * run) * run + l % run + (l / run % 2 ? a->lanes : 0);
  return shuffle(x, a, b, 2 * a->lanes, lane);
}

/* Writes one chunk of lanes: for each lane, the values of the scalar range one after another. */
static bool write_alternating(Exp *x, UOp *u, const int *chunk, int vec, const Relaned *how, UOpVec *out) {
  UOp *v[4];
  int lanes = x->r[vec].chunk[chunk[vec]].lanes, n = how->word, at[MAX_EXP], pos[MAX_EXP];
  memcpy(at, chunk, sizeof at);
  for (int i = 0; i < n; i++) {
    at[how->scalar] = i;
    if (!(v[i] = splat(x, chunk_value(x, u->src[1], at), lanes))) return false;
  }
  for (int i = 0; i < n; i += 2)
    if (!(v[i] = alternate(x, v[i], v[i + 1], 1))) return false;
  if (n == 4 && !(v[0] = alternate(x, v[0], v[2], 2))) return false;
  at[how->scalar] = 0;
  positions(x, at, 0, pos);
  UOp *place = lane_value(x, u->src[0]->src[1], pos);
  return place && write_pieces(x, u->src[0]->src[0], place, v[0], n * lanes, out);
}

/* The value that a register adds up over the ranges `group`, along which it does not move. Chunks of equal
 * width are combined lane by lane in a tree, then the lanes of the result are combined, then what is left. */
static UOp *joined(Exp *x, Ops op, UOp *value, uint64_t group, int *at) {
  UOp *part[80], *r = NULL; /* at most 1024 lanes (opts.c); the last vectors are narrower */
  int n = 0, whole = 0;
  do {
    int vec = vec_of(x, group), lanes = vec < 0 ? 1 : x->r[vec].chunk[at[vec]].lanes;
    UOp *v = n < (int)TG_COUNT(part) ? splat(x, chunk_value(x, value, at), lanes) : NULL;
    if (!v) return NULL;
    part[n++] = v;
  } while (next(x, group, false, at));
  while (whole < n && part[whole]->lanes == part[0]->lanes)
    whole++;
  int rest = whole;
  r = horizontal(x, op, tree(x, op, part, whole));
  for (; rest < n; rest++)
    r = uop_alu2(x->k->st, op, r, horizontal(x, op, part[rest]));
  return r;
}

static bool write_register(Exp *x, UOp *u, const int *at, uint64_t group, UOpVec *out) {
  UOp *piece = reg_piece(x, u->src[0], at), *v;
  int over[MAX_EXP];
  if (!piece) return false;
  memcpy(over, at, sizeof over);
  if (u->op == OPS_ACC && group)
    v = joined(x, (Ops)u->arg.reduce.op, u->src[1], group, over);
  else
    v = splat(x, chunk_value(x, u->src[1], at), piece->lanes);
  UOp *s = v && v->lanes == piece->lanes ? UNEW(x->k->st, (Ops)u->op, DT_VOID, 1, u->arg, piece, v) : NULL;
  return s && vec_push(x->k->mem, out, s);
}

static bool expand_statement(Exp *x, UOp *u, UOpVec *out) {
  int at[MAX_EXP] = {0};
  uint64_t mask = 0, group = 0;
  bool reg = u->src[0]->src[0]->op == OPS_DEFINE_REG, matrix = u->src[1]->op == OPS_WMMA;
  for (int e = 0; e < x->n; e++) {
    if (matrix && is_fragment(&x->r[e])) continue;
    mask |= BIT(e);
    if (u->op == OPS_ACC && x->r[e].vec && !index_moves(x, u->src[0], e)) group |= BIT(e);
  }
  int vec = vec_of(x, mask);
  Along way = reg ? LANES_OTHER : along(x, u->src[0], vec);
  Relaned how = {RELANE_NONE, -1, 1};
  if (!reg && vec >= 0 && way == LANES_OTHER) how = relaned_by(x, u->src[0], vec);
  int scalar = how.scalar;
  if (scalar >= 0) mask &= ~BIT(scalar);
  do {
    int lanes = vec < 0 ? 1 : x->r[vec].chunk[at[vec]].lanes;
    if (matrix) {
      if (!write_matrix(x, u, at, out)) return false;
      continue;
    }
    if (how.how == RELANE_ALTERNATE) {
      if (!write_alternating(x, u, at, vec, &how, out)) return false;
      continue;
    }
    if (scalar >= 0 && lanes > how.word) {
      if (!write_relaned(x, u, at, vec, &how, out)) return false;
      continue;
    }
    if (scalar >= 0) { /* only one word: its rows are stored as they are */
      for (at[scalar] = 0; at[scalar] < x->r[scalar].n; at[scalar]++)
        if (!write_memory(x, u, at, vec, way, out)) return false;
      at[scalar] = 0;
      continue;
    }
    if (reg ? !write_register(x, u, at, group, out) : !write_memory(x, u, at, vec, way, out)) return false;
  } while (next(x, mask & ~group, false, at));
  return true;
}

static bool list_range(Exp *x, UOp *range) {
  if (x->n == MAX_EXP || !is_const(range->src[0])) return false;
  ExpRange *r = &x->r[x->n++];
  AxisType type = (AxisType)range->arg.range.type;
  *r =
      (ExpRange){.r = range, .n = (int)range->src[0]->arg.v.i, .vec = type == AXIS_VEC || type == AXIS_GROUP};
  r->chunk = arena_array(&x->arena, Chunk, r->n + 1);
  if (!r->chunk) return false;
  /* 1: no vectors; 4: float4; 16: a width that a compiler splits well */
  int widest = !x->k->ren || x->k->ren->vec_bytes >= 32 ? 16 : x->k->ren->vec_bytes > 1 ? 4 : 1;
  for (int at = 0; at < r->n;) {
    int lanes = !r->vec ? 1 : range->arg.range.of == LANES_OF_COPY ? r->n : widest;
    while (at + lanes > r->n)
      lanes /= 2;
    r->chunk[r->nchunk++] = (Chunk){at, lanes};
    at += lanes;
  }
  return true;
}

/* Lists UNROLL ranges outermost, so that the steps of one register are far apart, and lanes innermost, so
 * that a scalar that they share is dead after its row. */
static bool list_ranges(Exp *x, const UOp *u) {
  static const AxisType order[] = {AXIS_UNROLL, AXIS_UPCAST, AXIS_VEC, AXIS_GROUP};
  x->n = 0;
  for (size_t t = 0; t < TG_COUNT(order); t++)
    for (int i = 2; i < u->nsrc; i++)
      if (u->src[i]->op == OPS_RANGE && (AxisType)u->src[i]->arg.range.type == order[t] &&
          !list_range(x, u->src[i]))
        return false;
  return true;
}

static bool statement_expanded(Exp *x, UOp *u, UOpVec *out) {
  bool unit = u->src[1]->op == OPS_WMMA;
  if (unit && matrix_in_memory(&matrix_shapes[u->src[1]->arg.i])) return write_block(x, u, out);
  UOp *index = u->src[0], *root[MAX_AXES + 3];
  int n = index->nsrc;
  if (NEVER(n + 1 > (int)TG_COUNT(root))) return false;
  /* of the place written to, only the address is expanded: the place is a load only if the value reads it */
  memcpy(root, index->src, (size_t)n * sizeof *root);
  root[n] = u->src[1];
  x->order.len = 0;
  bool ok = list_ranges(x, u) && uop_toposort(x->k->st, x->k->mem, root, (size_t)n + 1, &x->order);
  for (size_t i = 0; ok && i < x->order.len; i++)
    ok = expand_node(x, x->order.at[i]);
  ok = ok && expand_statement(x, u, out);
  x->todo.len = 0;
  return ok;
}

static UOp *tree_expanded(Exp *x, UOp *u) { /* u is a LOOP or SINK */
  UOpVec body = {0};
  bool ok = u->op == OPS_SINK || vec_push(x->k->mem, &body, u->src[0]);
  for (int i = u->op == OPS_LOOP; ok && i < u->nsrc; i++) {
    UOp *s = u->src[i];
    if (s->op == OPS_STORE || s->op == OPS_ACC)
      ok = statement_expanded(x, s, &body);
    else if (s->op == OPS_LOOP)
      ok = (s = tree_expanded(x, s)) != NULL && vec_push(x->k->mem, &body, s);
    else
      ok = vec_push(x->k->mem, &body, s);
  }
  UOp *r = ok ? uop_new(x->k->st, (Ops)u->op, DT_VOID, 1, (int)body.len, body.at, u->arg) : NULL;
  vec_free(x->k->mem, &body);
  return r;
}

bool expand(Kernel *k) {
  Exp x = {.k = k};
  arena_init(&x.arena, k->mem);
  map_init(&x.pieces, k->mem);
  x.val = arena_array(&x.arena, Val, store_id_limit(k->st) + 1);
  UOp *sink = x.val ? tree_expanded(&x, k->sink) : NULL;
  vec_free(k->mem, &x.todo), vec_free(k->mem, &x.order);
  map_free(&x.pieces);
  arena_free(&x.arena);
  return sink && (k->sink = sink);
}
