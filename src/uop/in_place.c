/* in_place.c: finds memories that may be the same. In: the list of a kernel. Out: for each memory that the
 * kernel only reads, the memories that it stores to and that may be in the same place, element upon element,
 * because no element is read after it may have been stored to.
 *
 * A place is c plus multiples of values, mostly of loops. If a store comes before a load, in an earlier
 * iteration of a loop or in the same one, their places must differ. Their difference is a sum of values with
 * bounds. If its largest coefficient is more than all other terms together can cancel, the difference can be
 * 0 only if that value is 0. */
#include "uop/uop.h"
#include <string.h>

enum { MOST_DEEP = 24, MOST_VALUES = 24, MOST_STEPS = 200, MOST_PAIRS = 1 << 16 };

/* The place of an access: c + by[i] * of[i], from the first to the last lane. at: its index in the list.
 * loop: the loops around it, and begun: their indices in the list. known: false if the place has no such
 * form. */
typedef struct Access {
  int at, nloop, steps, n, lanes, begun[MOST_DEEP];
  bool known;
  const UOp *index, *loop[MOST_DEEP], *of[MOST_VALUES];
  int64_t by[MOST_VALUES], c;
} Access;

static int param_of(const UOp *x) {
  const UOp *p = x->op == OPS_INDEX ? uop_base(x->src[0]) : x;
  return p->op == OPS_PARAM ? (int)p->arg.param.slot : -1;
}

static int64_t multiple_of(const Access *a, const UOp *u) {
  for (int i = 0; i < a->n; i++)
    if (a->of[i] == u) return a->by[i];
  return 0;
}

static bool place_add(Access *a, const UOp *u, int64_t by) {
  int64_t product;
  if (++a->steps > MOST_STEPS) return false;
  if (is_const(u))
    return !__builtin_mul_overflow(by, u->arg.v.i, &product) && !__builtin_add_overflow(a->c, product, &a->c);
  if (u->op == OPS_ADD) return place_add(a, u->src[0], by) && place_add(a, u->src[1], by);
  if (u->op == OPS_MUL && is_const(u->src[1]) && !__builtin_mul_overflow(by, u->src[1]->arg.v.i, &product))
    return place_add(a, u->src[0], product);
  int i = 0;
  while (i < a->n && a->of[i] != u)
    i++;
  if (i == MOST_VALUES || u->vmin < INT32_MIN || u->vmax > INT32_MAX) return false;
  a->n += i == a->n;
  a->of[i] = u;
  return !__builtin_add_overflow(a->by[i], by, &a->by[i]);
}

/* Moves to the next load or store (op) of the memory with this slot. Returns false at the end. */
static bool access_next(const Linear *lin, Access *a, Ops op, int slot) {
  while (++a->at < lin->n) {
    const UOp *u = lin->at[a->at], *x = u->nsrc ? uop_base(u->src[0]) : u;
    if (u->op == OPS_RANGE) a->begun[a->nloop] = a->at, a->loop[a->nloop++] = u;
    if (u->op == OPS_END) a->nloop--;
    if ((Ops)u->op != op || param_of(x) != slot) continue;
    memset(a->by, 0, sizeof a->by);
    a->n = a->steps = 0;
    a->c = 0;
    a->index = x->op == OPS_INDEX ? x->src[1] : NULL;
    a->lanes = op == OPS_LOAD ? u->lanes : u->src[1]->lanes;
    a->known = x->op == OPS_INDEX && place_add(a, a->index, 1);
    return true;
  }
  return false;
}

/* ---- the difference of two places: c + a sum of by[i] times a value in lo[i] .. hi[i] */
typedef struct Difference {
  int n;
  int64_t by[2 * MOST_VALUES + 2], lo[2 * MOST_VALUES + 2], hi[2 * MOST_VALUES + 2], c;
} Difference;

static void difference_add(Difference *d, int64_t by, int64_t lo, int64_t hi) {
  int i = 0;
  if (by < 0) {
    int64_t least = -hi;
    by = -by;
    hi = -lo;
    lo = least;
  }
  while (i < d->n && d->by[i] != by)
    i++;
  if (i == d->n) d->by[d->n] = by, d->lo[d->n] = d->hi[d->n] = 0, d->n++;
  d->lo[i] += lo;
  d->hi[i] += hi;
}

static bool is_never_zero(Difference *d) {
  for (;;) {
    int64_t lo = d->c, hi = d->c, part;
    int most = 0;
    for (int i = 0; i < d->n; i++) {
      if (__builtin_mul_overflow(d->by[i], d->lo[i], &part) || __builtin_add_overflow(lo, part, &lo))
        return false;
      if (__builtin_mul_overflow(d->by[i], d->hi[i], &part) || __builtin_add_overflow(hi, part, &hi))
        return false;
      if (d->by[i] > d->by[most]) most = i;
    }
    if (lo > 0 || hi < 0) return true;
    if (!d->n) return false;
    lo -= d->by[most] * d->lo[most];
    hi -= d->by[most] * d->hi[most];
    if (d->by[most] <= hi || d->by[most] <= -lo) return false;
    if (d->lo[most] > 0 || d->hi[most] < 0) return true;
    d->n--;
    d->by[most] = d->by[d->n];
    d->lo[most] = d->lo[d->n];
    d->hi[most] = d->hi[d->n];
  }
}

/* Whether a value is the same in both accesses: it depends on no loops except the first n. */
static bool is_fixed(const Access *a, const UOp *u, int n) {
  uint64_t moves = u->ranges;
  for (int i = 0; i < n; i++)
    moves &= ~range_bit(a->loop[i]->arg.range.id);
  return !moves && !(u->ranges >> 63) && !uop_has(u, INDEX);
}

/* Whether the places differ if the first n loops are in the same iteration, and, unless `same`, the next loop
 * is in an earlier iteration for the store. */
static bool are_apart(const Access *store, const Access *load, int n, bool same) {
  Difference d = {.c = load->c - store->c};
  const UOp *earlier = same ? NULL : load->loop[n];
  if (!load->known || !store->known) return false;
  for (int side = 0; side < 2; side++) {
    const Access *a = side ? store : load, *b = side ? load : store;
    for (int i = 0; i < a->n; i++) {
      const UOp *u = a->of[i];
      int64_t other = multiple_of(b, u);
      bool fixed = is_fixed(load, u, n);
      if ((fixed || u == earlier) && other != a->by[i]) return false;
      if (u == earlier && !side) difference_add(&d, a->by[i], 1, u->vmax);
      if (!fixed && u != earlier) difference_add(&d, side ? -a->by[i] : a->by[i], u->vmin, u->vmax);
    }
  }
  difference_add(&d, 1, 1 - store->lanes, load->lanes - 1);
  return is_never_zero(&d);
}

/* Whether the load may read an element after the store has written it. Vectors that are read and stored in
 * the same iteration of all loops may be read and stored lane by lane. */
static bool meet(const Access *store, const Access *load) {
  int common = 0;
  while (common < store->nloop && common < load->nloop && store->begun[common] == load->begun[common])
    common++;
  for (int n = 0; n < common; n++)
    if (!are_apart(store, load, n, false)) return true;
  bool before = load->at < store->at;
  bool by_lanes = before && load->nloop == common && store->nloop == common && load->lanes > 1 &&
                  store->lanes > 1 && load->index != store->index;
  return (!before || by_lanes) && !are_apart(store, load, common, true);
}

/* Finds the memories that are only read, and those that are stored to, with no other kind of use. Returns
 * false if loops are nested too deep. */
static bool memories_seen(const Linear *lin, uint64_t *read, uint64_t *stored, size_t *size) {
  uint64_t other = 0;
  int deep = 0;
  for (int i = 0; i < lin->n; i++) {
    const UOp *u = lin->at[i];
    deep += (u->op == OPS_RANGE) - (u->op == OPS_END);
    if (deep > MOST_DEEP) return false;
    for (int k = 0; k < u->nsrc && u->op != OPS_INDEX && u->op != OPS_AFTER; k++) {
      const UOp *x = uop_base(u->src[k]);
      int slot = param_of(x);
      if (slot < 0 || u->op == OPS_PREFETCH) continue;
      bool plain = !k && x->op == OPS_INDEX && x->nsrc == 2 + (x->arg.i != 0);
      *(plain && u->op == OPS_LOAD    ? read
        : plain && u->op == OPS_STORE ? stored
                                      : &other) |= UINT64_C(1) << slot;
      size[slot] = dtype_size((DType)x->dtype);
    }
  }
  *read &= ~(other | *stored);
  *stored &= ~other;
  return true;
}

static bool may_be_one(const Linear *lin, int from, int to) {
  Access load, store = {.at = -1};
  int pairs = 0;
  while (access_next(lin, &store, OPS_STORE, to)) {
    load.at = -1;
    load.nloop = 0;
    while (access_next(lin, &load, OPS_LOAD, from))
      if (++pairs > MOST_PAIRS || meet(&store, &load)) return false;
  }
  return true;
}

void list_in_place(const Linear *lin, uint64_t of[LIST_SLOTS]) {
  uint64_t read = 0, stored = 0;
  size_t size[LIST_SLOTS] = {0};
  memset(of, 0, LIST_SLOTS * sizeof *of);
  if (lin->nparam > LIST_SLOTS || lin->nthread > 1 || !memories_seen(lin, &read, &stored, size)) return;
  for (int q = 0; q < lin->nparam; q++)
    for (int s = 0; s < lin->nparam; s++)
      if ((read >> q & 1) && (stored >> s & 1) && size[q] == size[s] && may_be_one(lin, q, s))
        of[q] |= UINT64_C(1) << s;
}
