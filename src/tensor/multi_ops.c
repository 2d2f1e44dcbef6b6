/* multi_ops.c: operations on values on several devices. In: a node whose sources are MULTI nodes. Out: a
 * MULTI of the same operation on each device's parts. Parts may have any size, even 0, so cutting, padding
 * or reversing the split axis moves no data. What cannot be done on parts is done on the whole value, on
 * every device. */
#include "tensor/multi.h"
#include "tensor/front.h"

/* ---- parts */
static UOp *failed(Rewrite *rw) {
  rw->failed = true;
  return NULL;
}

/* Makes a MULTI of these parts. A NULL among them means failure. */
static UOp *made(Rewrite *rw, const Layout *at, UOp *const *part) {
  UOp *m = multi_new(rw->st, at, part);
  return m ? m : failed(rw);
}

/* Applies self, which has one source, to parts that are whole. */
static UOp *on_whole(Rewrite *rw, UOp *self) {
  UOp *part[MOST_DEVICES];
  Layout own = layout_of(self->src[0]), at = layout_whole_on(&own);
  if (!parts_gathered(rw, self, self->src[0], &at, part)) return failed(rw);
  for (int i = 0; i < at.n; i++)
    part[i] = uop_with_src(rw->st, self, &part[i]);
  return made(rw, &at, part);
}

/* ---- element by element */
UOp *multi_same(Rewrite *rw, UOp *self) {
  UOp *part[3][MOST_DEVICES], *src[3], *out[MOST_DEVICES];
  Layout at;
  if (self->nsrc > 3 || !layout_among(self->src, self->nsrc, &at)) return NULL;
  for (int s = 0; s < self->nsrc; s++)
    if (!parts_at(rw, self->src[s], &at, part[s])) return failed(rw);
  for (int i = 0; i < at.n; i++) {
    for (int s = 0; s < self->nsrc; s++)
      src[s] = part[s][i];
    out[i] = uop_with_src(rw->st, self, src);
  }
  return made(rw, &at, out);
}

UOp *multi_shard(Rewrite *rw, UOp *self) {
  const int64_t *p = self->arg.ints->v;
  UOpStore *st = rw->st;
  UOp *x = self->src[0], *part[MOST_DEVICES], *all = NULL;
  Layout at = {.n = (int)p[1], .axis = (int)p[0]};
  for (int i = 0; i < at.n; i++)
    at.device[i] = (int)p[2 + i];
  for (int i = 0; at.axis >= 0 && i <= at.n; i++)
    at.bound[i] = p[2 + at.n + i];
  if (is_multi(x) || !x->devices) return parts_at(rw, x, &at, part) ? made(rw, &at, part) : failed(rw);
  if (at.axis < 0) {
    const Ints *to = ints_get(st, at.n, p + 2);
    all = to ? uop_new(st, OPS_BROADCAST, (DType)x->dtype, 1, 1, &x, (Arg){.ints = to}) : NULL;
  }
  for (int i = 0; i < at.n; i++) {
    UOp *u = at.axis < 0 ? x : slice_of(st, x, at.axis, at.bound[i], at.bound[i + 1]);
    bool here = x->devices == 1ull << at.device[i];
    /* a device's own memory, not a view of x's, which may be assigned to */
    if (here)
      part[i] = u && (u->mark & MARK_VIEW) ? uop_alu1(st, OPS_CONTIGUOUS, u) : u;
    else
      part[i] = at.axis < 0 ? exchange_part(st, all, i, at.device[i]) : on_device(st, u, at.device[i]);
  }
  return made(rw, &at, part);
}

UOp *multi_part(Rewrite *rw, UOp *self) {
  (void)rw;
  return self->src[0]->src[self->arg.ints->v[0]];
}

UOp *multi_copy(Rewrite *rw, UOp *self) {
  UOp *x = self->src[0];
  int to = (int)self->arg.i;
  if (layout_of(x).axis < 0) return copy_for(rw->st, x, to);
  UOp *all = uop_new(rw->st, OPS_ALLGATHER, (DType)x->dtype, 1, 1, &x, ARG0);
  UOp *part = exchange_part(rw->st, all, 0, to);
  return part ? part : failed(rw);
}

/* ---- reductions */
/* Returns the dtype in which the sums of x are exchanged: the narrow floats that x was cast from, if the
 * environment asks for that, otherwise the dtype of the sums. */
static DType exchanged_as(const TgContext *ctx, const UOp *x) {
  const UOp *part = x->src[0], *from = part->op == OPS_CAST ? part->src[0] : part;
  bool narrow = ctx->env.allreduce_cast && dtype_is_narrow_float((DType)from->dtype);
  return narrow && x->dtype == DT_F32 ? (DType)from->dtype : (DType)x->dtype;
}

UOp *multi_reduce(Rewrite *rw, UOp *self) {
  UOpStore *st = rw->st;
  UOp *x = self->src[0], *part[MOST_DEVICES];
  Layout at = layout_of(x);
  bool mask[TG_MAX_RANK] = {false};
  const Ints *axes = self->arg.reduce.axes;
  Ops op = (Ops)self->arg.reduce.op;
  for (int i = 0; i < axes->n; i++)
    mask[axes->v[i]] = true;
  for (int i = 0; i < at.n; i++)
    if (!(part[i] = on_device(st, u_reduce(st, op, x->src[i], mask), at.device[i]))) return failed(rw);
  if (at.axis < 0 || !mask[at.axis]) return made(rw, &at, part);
  DType as = exchanged_as(rw->ctx, x);
  for (int i = 0; i < at.n; i++)
    part[i] = uop_cast(st, part[i], as);
  UOp *sum = uop_new(st, OPS_ALLREDUCE, as, 1, at.n, part, (Arg){.reduce = {NULL, op}});
  for (int i = 0; i < at.n; i++)
    part[i] = uop_cast(st, exchange_part(st, sum, i, at.device[i]), (DType)self->dtype);
  at = layout_whole_on(&at);
  return made(rw, &at, part);
}

UOp *multi_scan(Rewrite *rw, UOp *self) {
  UOp *x = self->src[0], *part[MOST_DEVICES];
  Layout at = layout_of(x);
  if (at.axis >= 0 && self->arg.reduce.axes->v[0] == at.axis) return on_whole(rw, self);
  for (int i = 0; i < at.n; i++)
    part[i] = uop_with_src(rw->st, self, &x->src[i]);
  return made(rw, &at, part);
}

/* ---- movement */
UOp *multi_reshape(Rewrite *rw, UOp *self) {
  UOp *x = self->src[0], *part[MOST_DEVICES];
  Layout at = layout_of(x);
  int64_t d[TG_MAX_RANK];
  const Ints *to = self->shape;
  if (at.axis >= 0 && !layout_reshaped(rw->st, x->shape, to, &at)) return on_whole(rw, self);
  for (int i = 0; i < at.n; i++) {
    for (int k = 0; k < to->n; k++)
      d[k] = k == at.axis ? at.bound[i + 1] - at.bound[i] : to->v[k];
    part[i] = u_reshape(rw->st, x->src[i], to->n, d);
  }
  return made(rw, &at, part);
}

UOp *multi_permute(Rewrite *rw, UOp *self) {
  UOp *x = self->src[0], *part[MOST_DEVICES];
  Layout at = layout_of(x);
  const int64_t *order = self->arg.ints->v;
  for (int i = 0; i < at.n; i++)
    part[i] = u_permute(rw->st, x->src[i], order);
  int was = at.axis;
  for (int k = 0; was >= 0 && k < self->shape->n; k++)
    if (order[k] == was) at.axis = k;
  return made(rw, &at, part);
}

UOp *multi_expand(Rewrite *rw, UOp *self) {
  UOp *x = self->src[0], *part[MOST_DEVICES];
  Layout at = layout_of(x);
  int64_t d[TG_MAX_RANK];
  if (at.axis >= 0 && x->shape->v[at.axis] != self->shape->v[at.axis]) return on_whole(rw, self);
  for (int i = 0; i < at.n; i++) {
    for (int k = 0; k < self->shape->n; k++)
      d[k] = k == at.axis ? at.bound[i + 1] - at.bound[i] : self->shape->v[k];
    part[i] = u_expand(rw->st, x->src[i], d);
  }
  return made(rw, &at, part);
}

static UOp *padded(UOpStore *st, UOp *u, const int64_t *lohi) {
  int64_t d[TG_MAX_RANK];
  bool none = false;
  if (!u) return NULL;
  for (int i = 0; i < u->shape->n; i++) {
    none = none || u->shape->v[i] == 0;
    d[i] = dim_add(st, dim_add(st, u->shape->v[i], lohi[2 * i]), lohi[2 * i + 1]);
  }
  return none ? empty_of(st, u, d) : u_pad(st, u, lohi);
}

/* Pads the split axis with zeros. A few zeros are added to the first and the last part. If there are more
 * zeros than the largest part has elements, the whole axis is divided evenly anew. */
static UOp *pad_split(Rewrite *rw, UOp *self, Layout at) {
  UOpStore *st = rw->st;
  UOp *x = self->src[0], *part[MOST_DEVICES];
  int a = at.axis;
  int64_t lohi[2 * TG_MAX_RANK], lo = self->arg.ints->v[2 * a], hi = self->arg.ints->v[2 * a + 1];
  memcpy(lohi, self->arg.ints->v, (size_t)(2 * self->shape->n) * sizeof *lohi);
  bool shared = lo + hi > layout_largest(&at);
  Layout to = shared ? layout_even(at.n, at.device, a, self->shape->v[a]) : at;
  Layout need = at; /* what each part of the result takes from x */
  for (int i = 0; i <= at.n; i++) {
    if (!shared) to.bound[i] += i == 0 ? 0 : i == at.n ? lo + hi : lo;
    int64_t end = x->shape->v[a];
    need.bound[i] = TG_MIN(TG_MAX(to.bound[i] - lo, 0), end);
  }
  if (!parts_at(rw, x, &need, part)) return failed(rw);
  for (int i = 0; i < at.n; i++) {
    int64_t begin = to.bound[i] - lo, end = to.bound[i + 1] - lo, has = need.bound[i + 1] - need.bound[i];
    lohi[2 * a] = has ? need.bound[i] - begin : end - begin;
    lohi[2 * a + 1] = has ? end - need.bound[i + 1] : 0;
    part[i] = padded(st, part[i], lohi);
  }
  return made(rw, &to, part);
}

UOp *multi_pad(Rewrite *rw, UOp *self) {
  UOp *x = self->src[0], *part[MOST_DEVICES];
  Layout at = layout_of(x);
  const int64_t *lohi = self->arg.ints->v;
  if (at.axis >= 0 && (lohi[2 * at.axis] || lohi[2 * at.axis + 1])) {
    if (dim_symbolic(lohi[2 * at.axis]) || dim_symbolic(lohi[2 * at.axis + 1])) return on_whole(rw, self);
    return pad_split(rw, self, at);
  }
  for (int i = 0; i < at.n; i++)
    part[i] = padded(rw->st, x->src[i], lohi);
  return made(rw, &at, part);
}

UOp *multi_shrink(Rewrite *rw, UOp *self) {
  UOp *x = self->src[0], *part[MOST_DEVICES];
  Layout own = layout_of(x), at = own;
  int a = own.axis;
  int64_t be[2 * TG_MAX_RANK];
  memcpy(be, self->arg.ints->v, (size_t)(2 * self->shape->n) * sizeof *be);
  int64_t from = a < 0 ? 0 : be[2 * a], to = a < 0 ? 0 : be[2 * a + 1];
  if (dim_symbolic(from) || dim_symbolic(to)) return on_whole(rw, self);
  for (int i = 0; a >= 0 && i <= at.n; i++)
    at.bound[i] = TG_MIN(TG_MAX(own.bound[i], from), to) - from;
  for (int i = 0; i < at.n; i++) {
    if (a < 0) {
      part[i] = u_shrink(rw->st, x->src[i], be);
      continue;
    }
    be[2 * a] = at.bound[i] + from - own.bound[i];
    be[2 * a + 1] = at.bound[i + 1] + from - own.bound[i];
    if (at.bound[i] < at.bound[i + 1]) {
      part[i] = u_shrink(rw->st, x->src[i], be);
      continue;
    }
    int64_t d[TG_MAX_RANK];
    for (int k = 0; k < self->shape->n; k++)
      d[k] = k == a ? 0 : self->shape->v[k];
    part[i] = empty_of(rw->st, x, d);
  }
  return made(rw, &at, part);
}

/* Reverses each part, and the order of the parts. */
UOp *multi_flip(Rewrite *rw, UOp *self) {
  UOp *x = self->src[0], *part[MOST_DEVICES];
  Layout own = layout_of(x), at = own;
  bool turns = own.axis >= 0 && self->arg.ints->v[own.axis];
  for (int i = 0; i < at.n; i++) {
    int from = turns ? at.n - 1 - i : i;
    at.device[i] = own.device[from];
    part[i] = u_flip(rw->st, x->src[from], self->arg.ints->v);
  }
  for (int i = 0; turns && i <= at.n; i++)
    at.bound[i] = self->shape->v[at.axis] - own.bound[at.n - i];
  return made(rw, &at, part);
}

/* ---- places named by data */
/* Whether the places along x's split axis are the element's own, so that each part has all that it needs. */
static bool own_places(const UOp *x, const UOp *index, const Layout *at) {
  return at->axis >= 0 && index->shape->n == x->shape->n &&
         index->shape->v[at->axis] == x->shape->v[at->axis] && u_is_arange(index, at->axis);
}

/* Returns the places for parts of this layout. Along the axis `own`, where each part reads its own places,
 * they begin at 0. */
static bool places_at(Rewrite *rw, UOp *const *index, int n, int own, const Layout *at,
                      UOp *part[][MOST_DEVICES]) {
  for (int d = 0; d < n; d++) {
    if (!parts_at(rw, index[d], at, part[d])) return false;
    for (int i = 0; d == own && i < at->n; i++)
      part[d][i] = u_arange(rw->st, part[d][i]->shape, own, (DType)index[d]->dtype);
  }
  return true;
}

UOp *multi_gather(Rewrite *rw, UOp *self) {
  UOp *x = self->src[0], *const *index = self->src + 1;
  UOp *from[MOST_DEVICES], *to[TG_MAX_RANK][MOST_DEVICES], *out[MOST_DEVICES], *src[TG_MAX_RANK];
  int n = self->nsrc - 1;
  Layout at, of_x = is_multi(x) ? layout_of(x) : (Layout){.axis = -1};
  bool own = is_multi(x) && own_places(x, of_x.axis >= 0 ? index[of_x.axis] : index[0], &of_x);
  if (own)
    at = of_x;
  else if (!layout_among(index, n, &at)) /* the places are constants, or the same on every device */
    at = layout_whole_on(&of_x);
  bool ok = own ? parts_at(rw, x, &at, from) : parts_gathered(rw, self, x, &at, from);
  if (!ok || !places_at(rw, index, n, own ? at.axis : -1, &at, to)) return failed(rw);
  for (int i = 0; i < at.n; i++) {
    for (int d = 0; d < n; d++)
      src[d] = to[d][i];
    out[i] = u_gather(rw->st, from[i], src);
  }
  return made(rw, &at, out);
}

/* Each device adds up the values that it has, and the sums are then added up over the devices. */
static UOp *scatter_sums(Rewrite *rw, UOp *self, const Layout *at, UOp *const *v, UOp *places[][MOST_DEVICES],
                         int n) {
  UOpStore *st = rw->st;
  UOp *part[MOST_DEVICES], *src[TG_MAX_RANK], *to[MOST_DEVICES];
  Layout all = layout_whole_on(at);
  UOp *zero = u_num(st, 0, self->src[0]);
  for (int i = 0; zero && i < at->n; i++) {
    for (int d = 0; d < n; d++)
      src[d] = places[d][i];
    part[i] = on_device(st, u_scatter(st, OPS_ADD, 0, zero, v[i], src), at->device[i]);
    if (!part[i]) return failed(rw);
  }
  if (!zero || !parts_at(rw, self->src[0], &all, to)) return failed(rw);
  UOp *sum = uop_new(st, OPS_ALLREDUCE, (DType)self->dtype, 1, at->n, part, (Arg){.reduce = {NULL, OPS_ADD}});
  for (int i = 0; i < at->n; i++)
    part[i] = uop_alu2(st, OPS_ADD, to[i], exchange_part(st, sum, i, at->device[i]));
  return made(rw, &all, part);
}

UOp *multi_scatter(Rewrite *rw, UOp *self) {
  UOp *x = self->src[0], *const *index = self->src + 2;
  UOp *to[MOST_DEVICES], *v[MOST_DEVICES], *places[TG_MAX_RANK][MOST_DEVICES], *out[MOST_DEVICES];
  UOp *src[TG_MAX_RANK];
  int n = self->nsrc - 2;
  Layout at = {.axis = -1}, of_x = is_multi(x) ? layout_of(x) : at;
  layout_among(self->src + 1, n + 1, &at);
  bool own = of_x.axis >= 0 && own_places(x, index[of_x.axis], &of_x);
  /* narrow floats are rounded after each addition, so the order would be visible */
  bool adds = !own && at.axis >= 0 && self->arg.scatter.op == OPS_ADD && !self->arg.scatter.how &&
              !dtype_is_narrow_float((DType)self->dtype);
  if (own)
    at = of_x;
  else if (!adds && !layout_among(self->src, self->nsrc, &at))
    return NULL;
  else if (!adds)
    at = layout_whole_on(&at);
  bool ok = own || adds ? parts_at(rw, self->src[1], &at, v) : parts_gathered(rw, self, self->src[1], &at, v);
  if (!ok || !places_at(rw, index, n, own ? at.axis : -1, &at, places)) return failed(rw);
  if (adds) return scatter_sums(rw, self, &at, v, places, n);
  if (!(own ? parts_at(rw, x, &at, to) : parts_gathered(rw, self, x, &at, to))) return failed(rw);
  for (int i = 0; i < at.n; i++) {
    for (int d = 0; d < n; d++)
      src[d] = places[d][i];
    out[i] = u_scatter(rw->st, (Ops)self->arg.scatter.op, (int)self->arg.scatter.how, to[i], v[i], src);
  }
  return made(rw, &at, out);
}
