/* stage.c: the opt STAGE. What a nest reads of a buffer is copied to local memory first, and read from the
 * copy. In: a nest, the number of a PARAM, and the opts still to come. Out: the nest with a fill before each
 * statement inside the innermost blocks made so far, and with its reads of the buffer replaced by reads of
 * the copy.
 *
 * The index of axis d is base + offset: base contains the loops outside, offset the loops inside. The copy
 * holds the span of the offsets of every axis. An axis that is read through two loops (`y + p`) stays one
 * axis: the copy holds a halo, not each window separately. A gate must be an interval of each axis: the copy
 * has zeros outside it and is read without a gate. If an axis is the range of the coming lanes, the copy is
 * laid out in panels, [panel][other axes][lane], so that lanes are contiguous. If the lanes all read one
 * element, the same is done for the range of a coming tile, unless sums read whole cache lines of each of its
 * rows anyway. A conversion that every reader makes is made once, by the fill: f16 weights are f32 in their
 * copy. Shared memory of a GPU keeps the buffer's dtype, because there is little of it.
 *
 * The fill is a nest like any other. Its lanes are along the axis that is contiguous in the buffer. If
 * another axis is contiguous in the copy, a tile is transposed in registers (expand.c).
 *
 * On a GPU the copy is shared memory of a block (share.c). A block is everything inside the loops over
 * blocks: the other loops of the grid become its threads and their tiles. These loops are around the fill,
 * which does not depend on them, and count as inside. */
#include "codegen/share.h"
#include "plan/tile.h"
#include <string.h>

static bool cannot(Staged *s, const char *why) {
  s->why = why;
  return false;
}

static bool range_add(Staged *s, UOp *r) {
  UOp *padded = has_grid(s->k->ren) ? share_padded(s->k, r) : r;
  return padded && vec_push(s->k->mem, &s->inside, r) && vec_push(s->k->mem, &s->padded, padded);
}

DType stage_dtype(const Kernel *k, const UOpVec *order, const UOp *index) {
  DType own = (DType)index->dtype, to = own;
  for (size_t i = 0; i < k->list.len; i++)
    if (k->list.at[i].op == OPT_TC) return own; /* a matrix unit takes the factors in their own dtype */
  for (size_t i = 0; !has_grid(k->ren) && i < order->len; i++) {
    const UOp *u = order->at[i];
    for (int r = 0; r < u->nsrc; r++) {
      if (u->src[r] != index) continue;
      if (u->op != OPS_CAST || (to != own && to != u->dtype)) return own;
      to = (DType)u->dtype;
    }
  }
  return to;
}

/* Sets s->dtype to the dtype that all reads of all statements are converted to, or to the buffer's own. */
static bool collect_dtype(Staged *s) {
  UOpVec order = {0};
  bool ok = kernel_nodes(s->k, s->nest, &order);
  s->dtype = (DType)s->param->dtype;
  for (size_t i = 0; ok && i < s->reads.len; i++) {
    DType to = stage_dtype(s->k, &order, s->reads.at[i]);
    if (!i)
      s->dtype = to;
    else if (to != s->dtype)
      s->dtype = (DType)s->param->dtype;
  }
  vec_free(s->k->mem, &order);
  return ok;
}

/* Sets *is if u is a read that the copy replaces. Returns false if out of memory. */
static bool is_read(Staged *s, UOp *u, bool *is) {
  UOpVec order = {0};
  *is = u->op == OPS_INDEX && u->src[0] == s->param && !vec_has(&s->reads, u);
  if (!*is || s->along == EVERY_READ) return true;
  bool ok = uop_toposort(s->k->st, s->k->mem, u->src + 1, index_naxes(u), &order);
  *is = false;
  for (size_t i = 0; ok && i < order.len; i++)
    *is |= order.at[i]->op == OPS_RANGE && range_root(order.at[i]) == s->along;
  vec_free(s->k->mem, &order);
  return ok;
}

static bool collect(Staged *s) {
  Kernel *k = s->k;
  PlaceVec at = {0};
  UOpVec order = {0};
  bool ok = nest_places(k, s->nest, &at);
  for (size_t i = 0; ok && i < at.len; i++) {
    UOp *u = at.at[i].u;
    if (u->op == OPS_LOOP) ok = range_add(s, u->src[0]);
    if (u->op != OPS_STORE && u->op != OPS_ACC) continue;
    for (int r = 2; ok && r < u->nsrc; r++)
      ok = range_add(s, u->src[r]);
    if (stored_in(u) == s->param) ok = cannot(s, "the kernel writes it");
    order.len = 0;
    ok = ok && kernel_nodes(k, u->src[1], &order);
    for (size_t j = 0; ok && j < order.len; j++) {
      bool is;
      ok = is_read(s, order.at[j], &is);
      Clauses left = {0};
      if (ok && is)
        ok = clauses_asked(k, u->src[1], &left) && vec_push(k->mem, &s->reads, order.at[j]) &&
             vec_push(k->mem, &s->left, left);
    }
  }
  vec_free(k->mem, &at), vec_free(k->mem, &order);
  return ok && collect_dtype(s);
}

/* ---- the places that are read: base, span and interval of each axis */
static UOp *base_of(Staged *s, UOp *e) {
  UOpVec zero = {0};
  UOp *nought = num(s->k, 0);
  bool ok = true;
  for (size_t i = 0; ok && i < s->inside.len; i++)
    ok = vec_push(s->k->mem, &zero, nought);
  UOp *r = ok ? kernel_with(s->k, e, (int)s->inside.len, s->inside.at, zero.at) : NULL;
  vec_free(s->k->mem, &zero);
  return r ? uop_simplify(s->k->st, s->k->mem, r) : NULL;
}

static bool is_inside(const Staged *s, const UOp *r) {
  for (size_t i = 0; i < s->inside.len; i++)
    if (s->inside.at[i] == r) return true;
  return false;
}

/* Whether e depends on no loop outside and on no data. The extent of a loop inside may be anything. */
static bool only_inside(Staged *s, UOp *e) {
  UOpVec todo = {0};
  bool ok = vec_push(s->k->mem, &todo, e);
  while (ok && todo.len) {
    const UOp *u = todo.at[--todo.len];
    ok = u->op != OPS_INDEX && u->op != OPS_VAR && (u->op != OPS_RANGE || is_inside(s, u));
    for (int i = 0; ok && u->op != OPS_RANGE && i < u->nsrc; i++)
      ok = vec_push(s->k->mem, &todo, u->src[i]);
  }
  vec_free(s->k->mem, &todo);
  return ok;
}

static UOp *with_padding(Staged *s, UOp *offset) {
  Kernel *k = s->k;
  UOp *u = kernel_with(k, offset, (int)s->inside.len, s->inside.at, s->padded.at);
  return u ? uop_simplify(k->st, k->mem, u) : NULL;
}

/* The largest offset if the loops inside run their actual number of iterations. A batch of 3 out of at most
 * 32 then gets a copy of 3. NULL: use the bound. */
static UOp *last_offset(Kernel *k, const UOpVec *inside, UOp *offset) {
  bool open = false;
  for (size_t i = 0; offset && i < inside->len; i++) {
    UOp *r = inside->at[i], *end = ix(k, OPS_SUB, r->src[0], num(k, 1));
    int64_t by;
    if (!depends(k, offset, r)) continue;
    if (!end || end->ranges || !moves_evenly(k, offset, r, &by) || by < 0) return NULL;
    open |= !is_const(end);
    offset = kernel_with(k, offset, 1, &r, &end);
  }
  return open ? simp(k, offset) : NULL;
}

/* Extends the axes by a read. Reads whose indices differ by a constant, such as the gates of an LSTM, share
 * one base. */
static bool read_axes(Staged *s, const UOp *x, bool first) {
  for (int d = 0; d < s->naxis; d++) {
    Axis *a = &s->axis[d];
    UOp *base = base_of(s, x->src[1 + d]), *apart = first ? NULL : ix(s->k, OPS_SUB, base, a->base);
    if (!base || (!first && !apart)) return false;
    if (apart && !is_const(apart)) return cannot(s, "it is read at two places that move apart");
    if (apart) base = a->base;
    UOp *offset = ix(s->k, OPS_SUB, x->src[1 + d], base);
    if (!offset) return false;
    if (!only_inside(s, offset)) return cannot(s, "its index is no sum of loops outside and loops inside");
    if (has_grid(s->k->ren) && !(offset = with_padding(s, offset))) return false;
    if (offset->vmin == INT64_MIN || offset->vmax == INT64_MAX) return cannot(s, "its index has no bounds");
    int64_t high = first ? offset->vmax : TG_MAX(a->low + a->span - 1, offset->vmax);
    a->base = base;
    a->low = first ? offset->vmin : TG_MIN(a->low, offset->vmin);
    a->span = high - a->low + 1;
    UOp *last = has_grid(s->k->ren) ? NULL : last_offset(s->k, &s->inside, offset);
    a->last = first || last == a->last ? last : NULL;
  }
  return true;
}

/* Rewrites e < c as axis < *t. This works if the axis is a multiple of e plus something smaller than one
 * step. Returns false otherwise. */
static bool widened(Staged *s, UOp *e, int64_t c, UOp *axis, int64_t *t) {
  UOpVec order = {0};
  UOp *r = NULL, *rest = NULL;
  int64_t own, all, times = 0;
  bool ok = e->ranges && kernel_nodes(s->k, e, &order);
  for (size_t i = 0; ok && i < order.len && !r; i++)
    if (order.at[i]->op == OPS_RANGE) r = order.at[i];
  vec_free(s->k->mem, &order);
  ok = r && moves_evenly(s->k, e, r, &own) && moves_evenly(s->k, axis, r, &all) && own > 0;
  if (ok && all % own == 0) times = all / own;
  if (times) rest = ix(s->k, OPS_SUB, axis, ix(s->k, OPS_MUL, e, uop_index_const(s->k->st, times)));
  if (!rest || rest->vmin == INT64_MIN || rest->vmax == INT64_MAX) return false;
  return rest->vmax - rest->vmin < times && !__builtin_mul_overflow(times, c, t) &&
         !__builtin_add_overflow(*t, rest->vmin, t);
}

/* Bounds an axis by `less`, which is a < b with one constant side and which is true if `holds`, else false.
 * The axis is one whose index differs from the other side by a constant, or grows with it in steps. */
static bool bounded_by(Staged *s, const UOp *x, const UOp *less, bool holds) {
  bool below = is_const(less->src[1]); /* e < c, otherwise c < e */
  UOp *e = less->src[!below], *c = less->src[below];
  if (!is_const(c) || e->dtype != DT_INDEX) return false;
  for (int d = 0; d < s->naxis; d++) {
    UOp *apart = ix(s->k, OPS_SUB, e, x->src[1 + d]);
    int64_t bound;
    if (apart && is_const(apart))
      bound = c->arg.v.i - apart->arg.v.i;
    else if (!below || !widened(s, e, c->arg.v.i, x->src[1 + d], &bound))
      continue;
    Axis *a = &s->axis[d];
    if (!a->clip) {
      a->clip = true;
      a->from = INT64_MIN;
      a->to = INT64_MAX;
    }
    if (below == holds)
      a->to = TG_MIN(a->to, below ? bound : bound + 1);
    else
      a->from = TG_MAX(a->from, below ? bound : bound + 1);
    return true;
  }
  return false;
}

/* Converts the gate of a read to an interval of each axis, except for clauses that remain in the statement
 * that reads the copy. */
static bool clip(Staged *s, const UOp *x, const Clauses *left) {
  UOp *clause[MOST_CLAUSES];
  int n = x->arg.i ? gate_clauses(index_gate(x), clause) : 0;
  for (int i = 0; i < n; i++) {
    bool holds;
    const UOp *less = clause_of(clause[i], &holds);
    if (clauses_have(left, clause[i])) continue;
    if (less->op != OPS_CMPLT || !bounded_by(s, x, less, holds))
      return cannot(s, "its gate is no interval of its axes");
  }
  return true;
}

/* Whether each load whose gate has this clause can express it as an interval of its axes. */
static bool is_taken_by_all(Kernel *k, const UOpVec *order, UOp *clause) {
  bool all = true, holds;
  const UOp *less = clause_of(clause, &holds);
  for (size_t i = 0; all && i < order->len; i++) {
    Clauses own = {0};
    const UOp *x = order->at[i];
    if (x->op != OPS_INDEX || !x->arg.i) continue;
    own.n = gate_clauses(index_gate(x), own.at);
    Staged s = {.k = k, .naxis = index_naxes(x)};
    if (clauses_have(&own, clause)) all = less->op == OPS_CMPLT && bounded_by(&s, x, less, holds);
  }
  return all;
}

bool clauses_asked(Kernel *k, UOp *value, Clauses *out) {
  Clauses all;
  UOpVec order = {0};
  product_clauses(value, &all);
  out->n = 0;
  bool ok = !all.n || kernel_nodes(k, value, &order);
  for (int i = 0; ok && i < all.n; i++)
    if (!is_taken_by_all(k, &order, all.at[i])) out->at[out->n++] = all.at[i];
  vec_free(k->mem, &order);
  return ok;
}

bool stage_takes_gate(Kernel *k, const UOp *index, const Clauses *left) {
  Staged s = {.k = k, .naxis = index_naxes(index)};
  return clip(&s, index, left);
}

static bool same_bounds(const Axis *a, const Axis *b) {
  return a->clip == b->clip && (!a->clip || (a->from == b->from && a->to == b->to));
}

static bool measure(Staged *s) {
  s->naxis = TG_MAX(s->param->nsrc, 1);
  for (size_t i = 0; i < s->reads.len; i++) {
    const UOp *x = s->reads.at[i];
    Axis had[MAX_AXES];
    memcpy(had, s->axis, sizeof had);
    for (int d = 0; d < s->naxis; d++)
      s->axis[d].clip = false;
    if (!read_axes(s, x, i == 0) || !clip(s, x, &s->left.at[i])) return false;
    for (int d = 0; i && d < s->naxis; d++)
      if (!same_bounds(&had[d], &s->axis[d])) return cannot(s, "it is read through two gates");
  }
  int64_t step = 1;
  for (int d = s->naxis - 1; d >= 0; d--) {
    Axis *a = &s->axis[d];
    int64_t extent = s->param->nsrc ? s->param->src[d]->arg.v.i : s->param->arg.param.nelem;
    a->step = step;
    step *= extent;
    a->gate = a->clip;
    /* the last block may be shorter */
    bool past = a->base->vmin + a->low < 0 || a->base->vmax + a->low + a->span > extent;
    if (past && !a->clip) {
      a->clip = true;
      a->from = 0;
      a->to = extent;
    }
    /* otherwise data would decide how often a loop of the copy runs */
    if (a->clip && uop_has(a->base, INDEX))
      return cannot(s, "data says where it is read, and a gate whether");
    if (a->clip) {
      a->from = TG_MAX(a->from, 0);
      a->to = TG_MIN(a->to, extent);
    }
  }
  return true;
}

/* ---- the layout */
UOp *staged_range(const Staged *s, int64_t root) {
  for (size_t i = 0; i < s->inside.len; i++)
    if (range_root(s->inside.at[i]) == root) return s->inside.at[i];
  return NULL;
}

bool staged_along(Staged *s, int d, UOp *r, int64_t unit) {
  const Axis *a = &s->axis[d];
  bool is = true;
  for (size_t i = 0; is && i < s->reads.len; i++) {
    UOp *offset = ix(s->k, OPS_SUB, s->reads.at[i]->src[1 + d], a->base),
        *left = ix(s->k, OPS_SUB, offset, r);
    is = left && is_const(left) && (left->arg.v.i - a->low) % unit == 0;
  }
  return is;
}

/* Whether some read depends on a range. */
static bool moves_with(const Staged *s, const UOp *r) {
  for (size_t i = 0; i < s->reads.len; i++)
    if (depends(s->k, s->reads.at[i], r)) return true;
  return false;
}

/* The axis whose index is the range of the coming lanes in every read, alone and with stride 1. -1: none. */
static int axis_of_lanes(Staged *s, UOp *r, int64_t n) {
  s->lanes = n;
  for (int d = 0; d < s->naxis; d++) {
    bool is = staged_along(s, d, r, s->lanes);
    if (is && d != s->naxis - 1) return d; /* the last axis is contiguous already */
    if (is) return s->axis[d].span > s->lanes ? d : -1;
  }
  return -1;
}

/* Whether the elements that a sum reads one after another fill their cache lines. */
static bool sum_fills_lines(const Staged *s) {
  int64_t run = (int64_t)dtype_size(s->dtype);
  for (size_t i = 0; i < s->inside.len; i++) {
    UOp *r = s->inside.at[i];
    bool along = false;
    for (size_t k = 0; k < s->reads.len; k++)
      along |= depends(s->k, s->reads.at[k]->src[s->naxis], r);
    if (r->arg.range.type == AXIS_REDUCE && along && run < LINE) run *= TG_MAX(r->src[0]->vmax, 1);
  }
  return run >= LINE;
}

/* The axis that is the range of a coming tile, or -1. One step reads one element per row of the tile. These
 * elements should be neighbours if a sum reads only a part of each row's cache lines. */
static int axis_of_tile(Staged *s) {
  int axis = -1;
  int64_t first = INT64_MAX;
  if (sum_fills_lines(s)) return -1;
  for (size_t i = 0; i < s->k->list.len; i++) {
    const Opt *o = &s->k->list.at[i];
    UOp *r = is_upcast(o->op) && o->n >= LEAST_BESIDE && o->r < first ? staged_range(s, o->r) : NULL;
    for (int d = 0; r && d < s->naxis - 1; d++) {
      if (s->axis[d].span < LEAST_BESIDE || !staged_along(s, d, r, o->n)) continue;
      axis = d;
      s->lanes = o->n;
      first = o->r;
    }
  }
  return axis;
}

static int find_lanes(Staged *s) {
  const Opt *vec = NULL;
  bool sums = false; /* true: the lanes are those of a sum */
  for (size_t i = 0; i < s->k->list.len; i++) {
    const Opt *o = &s->k->list.at[i];
    if (o->op == OPT_VEC) vec = o;
    sums |= o->op == OPT_GROUP;
  }
  UOp *r = vec ? staged_range(s, vec->r) : NULL;
  if (r && moves_with(s, r)) return axis_of_lanes(s, r, vec->n);
  return vec && !sums ? axis_of_tile(s) : -1;
}

static bool lay_out(Staged *s) {
  if (!dtype_size(s->dtype)) return cannot(s, "its elements are indices, of no size yet");
  s->lane_axis = find_lanes(s);
  int64_t place = 1;
  if (s->lane_axis >= 0) {
    s->lanes = TG_MIN(s->lanes, (s->axis[s->lane_axis].span + 15) / 16 * 16);
    place = s->lanes;
  }
  for (int d = s->naxis - 1; d >= 0; d--) {
    if (d == s->lane_axis) continue;
    s->axis[d].place = place;
    if (__builtin_mul_overflow(place, s->axis[d].span, &place)) return cannot(s, "it is too large");
  }
  s->panel = place;
  if (s->lane_axis >= 0) place *= (s->axis[s->lane_axis].span + s->lanes - 1) / s->lanes;
  s->nelem = place;
  /* a copy that does not stay in the last level of cache is no nearer than the buffer itself */
  const Target *t = s->k->opt->target;
  return place <= target_copy_most(t) / (int64_t)dtype_size(s->dtype) ||
         cannot(s, "local memory has no room for it");
}

/* Allocates the memory of the copy. On a GPU, the memory in which an earlier nest was staged is used again if
 * it is large enough. */
static bool place_copy(Staged *s) {
  if (s->memory && s->memory->arg.param.nelem >= s->nelem) return true;
  s->memory = local_memory(s->k, s->dtype, s->nelem);
  return s->memory != NULL;
}

/* The index in the copy of the element at offsets at[d] - low. */
static UOp *copy_at(Staged *s, UOp *const *at) {
  Kernel *k = s->k;
  UOp *flat = num(k, 0);
  if (s->lines) return share_line(s, at);
  for (int d = 0; d < s->naxis; d++) {
    UOp *part;
    if (d == s->lane_axis) {
      UOp *panel = ix(k, OPS_FLOORDIV, at[d], num(k, s->lanes)),
          *lane = ix(k, OPS_FLOORMOD, at[d], num(k, s->lanes));
      part = ix(k, OPS_ADD, ix(k, OPS_MUL, panel, num(k, s->panel)), lane);
    } else
      part = ix(k, OPS_MUL, at[d], num(k, s->axis[d].place));
    flat = ix(k, OPS_ADD, flat, part);
  }
  return flat;
}

static UOp *copy_index(Staged *s, UOp *flat) {
  return flat ? UNEW(s->k->st, OPS_INDEX, (DType)s->memory->dtype, 1, ARG0, s->memory, flat) : NULL;
}

/* The nest with `copies` in place of the reads. If the copy is converted, they replace the conversions of the
 * reads. */
static UOp *reading(Staged *s, const UOpVec *copies) {
  Kernel *k = s->k;
  UOpVec from = {0};
  bool ok = true, converts = s->dtype != s->param->dtype;
  for (size_t i = 0; ok && i < s->reads.len; i++) {
    UOp *x = s->reads.at[i];
    UOp *was = converts ? UNEW(k->st, OPS_CAST, s->dtype, 1, ARG0, x) : x;
    ok = was && vec_push(k->mem, &from, was);
  }
  UOp *r = ok ? kernel_with(k, s->nest, (int)from.len, from.at, copies->at) : NULL;
  vec_free(k->mem, &from);
  return r;
}

static UOp *redirected(Staged *s) { /* the nest, with its reads redirected to the copy */
  Kernel *k = s->k;
  UOpVec to = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < s->reads.len; i++) {
    UOp *at[MAX_AXES];
    for (int d = 0; d < s->naxis; d++) {
      UOp *offset = ix(k, OPS_SUB, s->reads.at[i]->src[1 + d], s->axis[d].base);
      at[d] = ix(k, OPS_SUB, offset, num(k, s->axis[d].low));
    }
    UOp *x = copy_index(s, copy_at(s, at));
    for (int c = 0; x && c < s->left.at[i].n; c++)
      x = index_gated(k, x, s->left.at[i].at[c]);
    ok = x && vec_push(k->mem, &to, x);
  }
  UOp *r = ok ? reading(s, &to) : NULL;
  vec_free(k->mem, &to);
  return r;
}

/* ---- the fill */
typedef struct Fill {
  int n;
  UOp *range[MAX_AXES]; /* NULL: an axis of one element */
  UOp *begin[MAX_AXES]; /* the first iteration's offset from low */
  int64_t step[MAX_AXES], place[MAX_AXES];
  int axis[MAX_AXES]; /* the axis of the buffer; if several axes are one loop, the last of them */
  int64_t span[MAX_AXES];
} Fill;

/* The interval in which index base + low + t satisfies the axis's bounds: t from *begin on, *trips
 * iterations. */
static bool clipped(Staged *s, const Axis *a, UOp **begin, UOp **trips) {
  Kernel *k = s->k;
  *begin = num(k, 0);
  *trips = num(k, a->span);
  if (a->last) *trips = ix(k, OPS_MAX, num(k, 0), ix(k, OPS_SUB, a->last, num(k, a->low - 1)));
  if (!a->clip) return *trips != NULL;
  UOp *start = ix(k, OPS_ADD, a->base, num(k, a->low));
  *begin = ix(k, OPS_MAX, num(k, 0), ix(k, OPS_SUB, num(k, a->from), start));
  UOp *end = ix_min(k, *trips, ix(k, OPS_SUB, num(k, a->to), start));
  *trips = ix(k, OPS_MAX, num(k, 0), ix(k, OPS_SUB, end, *begin));
  return *begin && *trips;
}

/* Makes the loops of the copy, outer first. Axes that are adjacent in the buffer and in the copy share a
 * loop. */
static bool fill_loops(Staged *s, Fill *f) {
  Kernel *k = s->k;
  f->n = 0;
  for (int d = 0; d < s->naxis; d++) {
    const Axis *a = &s->axis[d];
    UOp *trips;
    int at = f->n;
    if (!clipped(s, a, &f->begin[at], &trips)) return false;
    bool one = at && !a->clip && !a->last && d != s->lane_axis && f->axis[at - 1] == d - 1 &&
               d - 1 != s->lane_axis && !s->axis[d - 1].clip && !s->axis[d - 1].last &&
               f->step[at - 1] == a->span * a->step && f->place[at - 1] == a->span * a->place;
    if (one) {
      at--;
      f->span[at] *= a->span;
      f->begin[at] = num(k, 0);
      trips = num(k, f->span[at]);
    } else {
      f->n++;
      f->span[at] = a->span;
    }
    f->axis[at] = d;
    f->step[at] = a->step;
    f->place[at] = a->place;
    f->range[at] = is_const_int(trips, 1) ? NULL : kernel_range(k, trips, AXIS_LOOP, NULL);
    if (!is_const_int(trips, 1) && !f->range[at]) return false;
  }
  return true;
}

static UOp *fill_iter(Kernel *k, const Fill *f, int i) { /* the offset of loop i from low */
  return f->range[i] ? ix(k, OPS_ADD, f->begin[i], f->range[i]) : f->begin[i];
}

static UOp *fill_statement(Staged *s, const Fill *f) {
  Kernel *k = s->k;
  UOp *from = num(k, 0), *to = num(k, 0);
  for (int d = 0; d < s->naxis; d++)
    from =
        ix(k, OPS_ADD, from,
           ix(k, OPS_MUL, ix(k, OPS_ADD, s->axis[d].base, num(k, s->axis[d].low)), num(k, s->axis[d].step)));
  for (int i = 0; i < f->n; i++) {
    UOp *t = fill_iter(k, f, i), *part;
    from = ix(k, OPS_ADD, from, ix(k, OPS_MUL, t, num(k, f->step[i])));
    if (f->axis[i] == s->lane_axis) {
      UOp *panel = ix(k, OPS_FLOORDIV, t, num(k, s->lanes)), *lane = ix(k, OPS_FLOORMOD, t, num(k, s->lanes));
      part = ix(k, OPS_ADD, ix(k, OPS_MUL, panel, num(k, s->panel)), lane);
    } else
      part = ix(k, OPS_MUL, t, num(k, f->place[i]));
    to = ix(k, OPS_ADD, to, part);
  }
  UOp *flat = uop_new(k->st, OPS_PARAM, (DType)s->param->dtype, 1, 0, NULL, s->param->arg);
  UOp *value = flat && from ? UNEW(k->st, OPS_INDEX, (DType)flat->dtype, 1, ARG0, flat, from) : NULL;
  if (value && s->dtype != value->dtype) value = UNEW(k->st, OPS_CAST, s->dtype, 1, ARG0, value);
  return write_new(k, copy_index(s, to), value, 0, NULL);
}

static UOp *fill_nest(Staged *s, const Fill *f) {
  UOp *u = fill_statement(s, f);
  for (int i = f->n; u && i-- > 0;)
    if (f->range[i]) u = loop_new(s->k, f->range[i], 1, &u);
  return u;
}

static UOp *zeros(Staged *s, UOp **range) {
  Kernel *k = s->k;
  DType d = (DType)s->memory->dtype;
  *range = kernel_range(k, num(k, s->nelem), AXIS_LOOP, NULL);
  UOp *u = *range ? write_new(k, copy_index(s, *range), uop_const_int(k->st, d, 0), 0, NULL) : NULL;
  return u ? loop_new(k, *range, 1, &u) : NULL;
}

/* ---- lanes of the fill: along the axis that is contiguous in the buffer. If another axis is contiguous in
 * the copy, it becomes the tile. */
static bool shape_loop(Kernel *k, UOp *range, OptOp op, int64_t n) {
  if (few_lanes(k->ren)) return true; /* scalars.c */
  PlaceVec at = {0};
  UOp *loop = NULL;
  bool ok = nest_places(k, k->sink, &at);
  for (size_t i = 0; ok && i < at.len && !loop; i++)
    if (at.at[i].u->op == OPS_LOOP && at.at[i].u->src[0] == range) loop = at.at[i].u;
  vec_free(k->mem, &at);
  return ok && loop && opt_split(k, op, loop, n);
}

static bool shape_fill(Staged *s, const Fill *f) {
  Kernel *k = s->k;
  int last = f->n - 1, lanes = -1;
  while (last >= 0 && (!f->range[last] || f->step[last] != 1))
    last--;
  for (int i = 0; i < f->n; i++)
    if (f->range[i] && f->axis[i] == s->lane_axis) lanes = i;
  if (last < 0) return lanes < 0 || shape_loop(k, f->range[lanes], OPT_VEC, 16);
  if (lanes >= 0 && lanes != last && f->span[lanes] >= 4)
    return shape_loop(k, f->range[lanes], OPT_UPCAST, 16) && shape_loop(k, f->range[last], OPT_VEC, 16);
  return shape_loop(k, f->range[last], OPT_VEC, lanes == last ? TG_MIN(s->lanes, 64) : 16);
}

/* Puts a copy before the nest that is made by loops of its own. */
static bool stage_alone(Staged *s) {
  Kernel *k = s->k;
  Fill f = {0};
  UOp *zero_range = NULL, *with[3];
  int n = 0;
  bool ok = lay_out(s) && place_copy(s) && fill_loops(s, &f), clips = false;
  for (int d = 0; d < s->naxis; d++)
    clips |= s->axis[d].gate;
  if (ok && clips) with[n++] = zeros(s, &zero_range);
  if (ok) {
    with[n++] = fill_nest(s, &f);
    with[n++] = redirected(s);
  }
  for (int i = 0; i < n; i++)
    ok = ok && with[i];
  UOp *sink = ok ? nest_replace(k, k->sink, s->nest, n, with) : NULL;
  return ok && (k->sink = nest_simplify(k, sink)) != NULL && shape_fill(s, &f) &&
         (!zero_range || shape_loop(k, zero_range, OPT_VEC, 64));
}

/* Puts a copy before the nest that is made by all threads of the block. */
static bool stage_shared(Staged *s) {
  Kernel *k = s->k;
  if (!share_lay_out(s) || !place_copy(s)) return false;
  UOp *with[2] = {share_fill(s), redirected(s)};
  UOp *sink = with[0] && with[1] ? nest_replace(k, k->sink, s->nest, 2, with) : NULL;
  return (k->sink = nest_simplify(k, sink)) != NULL;
}

/* *memory: in, the memory of the previous copy, or NULL; out, the memory of this copy. */
static bool stage_one(Kernel *k, UOp *nest, UOp *param, int64_t along, const UOpVec *around, UOp **memory,
                      const char **why) {
  Staged s = {.k = k, .nest = nest, .param = param, .along = along, .memory = *memory};
  bool ok = true, gpu = has_grid(k->ren);
  for (size_t i = 0; ok && i < around->len; i++)
    ok = range_add(&s, around->at[i]);
  ok = ok && collect(&s);
  if (ok && s.reads.len) ok = measure(&s) && (gpu ? stage_shared(&s) : stage_alone(&s));
  if (gpu) *memory = s.memory;
  *why = s.why;
  vec_free(k->mem, &s.reads), vec_free(k->mem, &s.inside), vec_free(k->mem, &s.padded);
  vec_free(k->mem, &s.left);
  return ok;
}

/* Lists the statements inside the innermost blocks made so far. grid: u is inside a chain of loops of the
 * grid that contain only each other. Loops of the chain that are not blocks are passed through and added to
 * `around`. */
static bool fronts(Kernel *k, UOp *u, bool grid, UOpVec *out, UOpVec *around) {
  int first = u->op == OPS_LOOP;
  grid = grid && u->nsrc == first + 1;
  for (int i = first; i < u->nsrc; i++) {
    UOp *s = u->src[i];
    bool block = is_loop(s) && is_block(s->src[0]);
    bool passed = grid && !block && is_loop(s) && loop_type(s) == AXIS_GLOBAL;
    if (passed && !vec_push(k->mem, around, s->src[0])) return false;
    if (block || passed ? !fronts(k, s, grid, out, around) : !vec_push(k->mem, out, s)) return false;
  }
  return true;
}

bool opt_stage(Kernel *k, int64_t slot, int64_t along, const char **why) {
  UOpVec order = {0}, at = {0}, around = {0};
  UOp *param = NULL, *memory = NULL;
  bool gpu = has_grid(k->ren);
  *why = NULL;
  bool ok = kernel_nodes(k, k->sink, &order) && fronts(k, k->sink, gpu, &at, &around);
  for (size_t i = 0; i < order.len; i++)
    if (order.at[i]->op == OPS_PARAM && order.at[i]->arg.param.slot == slot) param = order.at[i];
  if (ok && !param) {
    *why = "the kernel has no such buffer";
    ok = false;
  }
  if (ok && gpu && nest_stores_to(k->sink, param)) {
    *why = "the kernel writes it";
    ok = false;
  }
  for (size_t i = 0; ok && i < at.len; i++)
    if (!gpu || (is_loop(at.at[i]) && !is_shared(at.at[i])))
      ok = stage_one(k, at.at[i], param, along, &around, &memory, why);
  /* a statement reads an element once, so statements beside loops that have a copy read the buffer */
  bool rest = gpu && !memory;
  for (size_t i = 0; ok && rest && i < at.len; i++)
    if (!is_loop(at.at[i])) ok = stage_one(k, at.at[i], param, along, &around, &memory, why);
  if (ok && gpu && !memory) {
    *why = "no loop reads it but what copies it already";
    ok = false;
  }
  vec_free(k->mem, &order), vec_free(k->mem, &at), vec_free(k->mem, &around);
  return ok;
}
