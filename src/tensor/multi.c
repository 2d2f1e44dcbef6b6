/* multi.c: operations on values that lie on several devices. In: a node whose sources are MULTI nodes. Out: a
 * MULTI of the same operation on each device's parts. Parts may have any sizes, 0 too: so what cuts, pads or
 * reverses the split axis moves nothing. Sources that lie otherwise than the result needs are moved by an
 * exchange (exchange.c); of what the graph does not show to be whole within its part, all is gathered, which
 * TG_DEBUG=3 tells. */
#include "tensor/multi.h"
#include "tensor/front.h"

bool over_multi(const UOp *u) {
  for (int i = 0; i < u->nsrc; i++)
    if (is_multi(u->src[i])) return true;
  return false;
}

/* ---- layouts */
Layout layout_of(const UOp *m) {
  const Ints *p = m->arg.ints;
  Layout at = {.n = m->nsrc, .axis = (int)p->v[0]};
  for (int i = 0; i < at.n; i++)
    at.device[i] = __builtin_ctzll(m->src[i]->devices);
  if (at.axis >= 0) memcpy(at.bound, p->v + 1, (size_t)(at.n + 1) * sizeof *at.bound);
  return at;
}

Layout layout_even(int n, const int *device, int axis, int64_t size) {
  Layout at = {.n = n, .axis = axis};
  memcpy(at.device, device, (size_t)n * sizeof *device);
  for (int i = 0; axis >= 0 && i <= n; i++)
    at.bound[i] = i * (size / n) + TG_MIN(i, size % n);
  return at;
}

static bool same_devices(const Layout *a, const Layout *b) {
  return a->n == b->n && !memcmp(a->device, b->device, (size_t)a->n * sizeof *a->device);
}

static bool same_layout(const Layout *a, const Layout *b) {
  return same_devices(a, b) && a->axis == b->axis &&
         (a->axis < 0 || !memcmp(a->bound, b->bound, (size_t)(a->n + 1) * sizeof *a->bound));
}

static Layout whole_on(const Layout *at) {
  Layout all = *at;
  all.axis = -1;
  return all;
}

static int64_t largest_part(const Layout *at) {
  int64_t most = 0;
  for (int i = 0; i < at->n; i++)
    most = TG_MAX(most, at->bound[i + 1] - at->bound[i]);
  return most;
}

/* Where an operation on these is computed: as the one that is split lies, of several the most even one. */
static bool layout_among(UOp *const *src, int n, Layout *at) {
  bool found = false;
  for (int i = 0; i < n; i++) {
    if (!is_multi(src[i])) continue;
    Layout l = layout_of(src[i]);
    bool better = !found || (l.axis >= 0 && (at->axis < 0 || largest_part(&l) < largest_part(at)));
    if (better) *at = l;
    found = true;
  }
  return found;
}

static int64_t product_of(UOpStore *st, const int64_t *d, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; i++)
    n = dim_mul(st, n, d[i]);
  return n;
}

/* The split axis of `from` in another shape: an axis with as many elements before it, whose steps begin where
 * parts do. */
static bool layout_reshaped(UOpStore *st, const Ints *from, const Ints *to, Layout *at) {
  int64_t before = product_of(st, from->v, 0, at->axis);
  int64_t run = product_of(st, from->v, at->axis + 1, from->n);
  for (int c = to->n; c-- > 0;) {
    int64_t step = product_of(st, to->v, c + 1, to->n);
    if (product_of(st, to->v, 0, c) != before || dim_symbolic(to->v[c])) continue;
    if (step == 0 || run == 0 || step == DIM_BAD || run == DIM_BAD) continue;
    bool fits = step == run || (!dim_symbolic(step) && !dim_symbolic(run));
    for (int i = 0; fits && step != run && i <= at->n; i++)
      fits = at->bound[i] * run % step == 0;
    if (!fits) continue;
    for (int i = 0; step != run && i <= at->n; i++)
      at->bound[i] = at->bound[i] * run / step;
    at->axis = c;
    return true;
  }
  return false;
}

/* ---- nodes */
UOp *on_device(UOpStore *st, UOp *u, int device) {
  if (!u || u->devices == 1ull << device) return u;
  return uop_new(st, OPS_COPY, (DType)u->dtype, 1, 1, &u, (Arg){.i = device});
}

UOp *multi_new(UOpStore *st, const Layout *at, UOp *const *part) {
  int64_t list[MOST_DEVICES + 2] = {at->axis};
  UOp *own[MOST_DEVICES];
  for (int i = 0; i <= at->n; i++)
    list[1 + i] = at->bound[i];
  for (int i = 0; i < at->n; i++)
    if (!(own[i] = part[i] && part[i]->devices ? part[i] : on_device(st, part[i], at->device[i]))) return NULL;
  const Ints *p = ints_get(st, at->axis < 0 ? 1 : at->n + 2, list);
  return p ? uop_new(st, OPS_MULTI, (DType)own[0]->dtype, 1, at->n, own, (Arg){.ints = p}) : NULL;
}

UOp *shard_new(UOpStore *st, UOp *x, const Layout *at) {
  int64_t list[2 * MOST_DEVICES + 3] = {at->axis, at->n};
  int n = 2;
  for (int i = 0; i < at->n; i++)
    list[n++] = at->device[i];
  for (int i = 0; at->axis >= 0 && i <= at->n; i++)
    list[n++] = at->bound[i];
  const Ints *p = x ? ints_get(st, n, list) : NULL;
  return p ? uop_new(st, OPS_SHARD, (DType)x->dtype, 1, 1, &x, (Arg){.ints = p}) : NULL;
}

static UOp *empty_like(UOpStore *st, const UOp *u, const int64_t *d) {
  return u_full(st, (DType)u->dtype, op_identity(OPS_ADD, (DType)u->dtype), ints_get(st, u->shape->n, d));
}

UOp *slice_of(UOpStore *st, UOp *u, int axis, int64_t from, int64_t to) {
  int64_t be[2 * TG_MAX_RANK], d[TG_MAX_RANK];
  if (!u) return NULL;
  for (int i = 0; i < u->shape->n; i++) {
    d[i] = i == axis ? to - from : u->shape->v[i];
    be[2 * i] = i == axis ? from : 0;
    be[2 * i + 1] = i == axis ? to : u->shape->v[i];
  }
  if (from == to) return empty_like(st, u, d);
  if (u->op == OPS_EXPAND && u->src[0]->shape->v[axis] == 1 && u->shape->v[axis] != 1)
    return u_expand(st, u->src[0], d);
  if (u->op == OPS_COPY) /* what is not seen is not moved */
    return on_device(st, slice_of(st, u->src[0], axis, from, to), (int)u->arg.i);
  return u_shrink(st, u, be);
}

UOp *exchange_part(UOpStore *st, UOp *exchange, int64_t i, int device) {
  const Ints *p = exchange ? ints_get(st, 2, (int64_t[]){i, device}) : NULL;
  return p ? uop_new(st, OPS_MSELECT, (DType)exchange->dtype, 1, 1, &exchange, (Arg){.ints = p}) : NULL;
}

/* What device has of a value that is whole on some. */
static UOp *copy_for(UOpStore *st, const UOp *multi, int device) {
  for (int i = 0; i < multi->nsrc; i++)
    if (multi->src[i]->devices == 1ull << device) return multi->src[i];
  return on_device(st, multi->src[0], device);
}

static const Ints *bounds_list(UOpStore *st, const Layout *at) {
  int64_t list[MOST_DEVICES + 2] = {at->axis};
  for (int i = 0; i <= at->n; i++)
    list[1 + i] = at->bound[i];
  return ints_get(st, at->n + 2, list);
}

/* The same operation of parts that are whole; sources[i]: what it is of. */
static bool alike(UOp *const *part, int n, UOp **sources) {
  for (int i = 0; i < n; i++) {
    const UOp *a = part[0], *b = part[i];
    if (a->op != b->op || a->dtype != b->dtype || a->nsrc < 1 || a->shape != b->shape) return false;
    sources[i] = b->src[0];
  }
  return true;
}

/* What each device is to have of a sum of all. */
static bool sums_scattered(UOpStore *st, UOp *const *part, UOp *const *exchange, const Layout *at, UOp **out) {
  UOp *sum = exchange[0];
  for (int i = 0; i < at->n; i++)
    if (exchange[i] != sum || part[i]->devices != 1ull << at->device[i]) return false;
  const Ints *cut = bounds_list(st, at);
  Arg arg = {.reduce = {cut, sum->arg.reduce.op}};
  UOp *all = cut ? uop_new(st, OPS_REDUCESCATTER, (DType)sum->dtype, 1, sum->nsrc, sum->src, arg) : NULL;
  for (int i = 0; i < at->n; i++)
    out[i] = exchange_part(st, all, i, at->device[i]);
  return true;
}

/* A sum of all devices of which each needs a part is added up there and nowhere else, seen in other shapes and
 * dtypes too. False: these are no such sum. */
static bool reduce_scatter(UOpStore *st, UOp *const *part, const Layout *at, int depth, UOp **out) {
  enum { DEEPEST = 8 };

  UOp *below[MOST_DEVICES];
  const UOp *u = part[0];
  Layout to = *at;
  if (depth > DEEPEST || !alike(part, at->n, below)) return false;
  if (u->op == OPS_MSELECT)
    return below[0]->op == OPS_ALLREDUCE && sums_scattered(st, part, below, at, out);
  if (u->op == OPS_RESHAPE && u->src[0]->is_tensor) {
    if (!layout_reshaped(st, u->shape, u->src[0]->shape, &to)) return false;
  } else if (u->op == OPS_PERMUTE)
    to.axis = (int)u->arg.ints->v[at->axis];
  else if (u->op != OPS_CAST)
    return false;
  if (!reduce_scatter(st, below, &to, depth + 1, out)) return false;
  int64_t d[TG_MAX_RANK];
  memcpy(d, u->shape->v, (size_t)u->shape->n * sizeof *d);
  for (int i = 0; i < at->n; i++) {
    d[at->axis] = at->bound[i + 1] - at->bound[i];
    out[i] = u->op == OPS_RESHAPE   ? u_reshape(st, out[i], u->shape->n, d)
             : u->op == OPS_PERMUTE ? u_permute(st, out[i], u->arg.ints->v)
                                    : uop_cast(st, out[i], (DType)u->dtype);
  }
  return true;
}

static UOp *moved_part(UOpStore *st, UOp *u, const Layout *own, const Layout *at, UOp *exchange, int i) {
  if (exchange) return exchange_part(st, exchange, i, at->device[i]);
  UOp *all = own->axis < 0 ? copy_for(st, u, at->device[i]) : NULL;
  return at->axis < 0 ? all : slice_of(st, all, at->axis, at->bound[i], at->bound[i + 1]);
}

/* A MULTI's parts as they are to lie. */
static bool multi_parts_at(Rewrite *rw, UOp *u, const Layout *at, UOp **part) {
  UOpStore *st = rw->st;
  Layout own = layout_of(u);
  UOp *exchange = NULL;
  if (same_layout(&own, at)) {
    memcpy(part, u->src, (size_t)at->n * sizeof *part);
    return true;
  }
  if (own.axis < 0 && at->axis >= 0 && own.n == at->n && reduce_scatter(st, u->src, at, 0, part)) {
    for (int i = 0; i < at->n; i++)
      if (!part[i]) return false;
    return true;
  }
  if (own.axis >= 0) {
    const Ints *cut = at->axis >= 0 ? bounds_list(st, at) : NULL;
    Ops op = at->axis < 0 ? OPS_ALLGATHER : OPS_ALLTOALL;
    if (at->axis >= 0 && !cut) return false;
    exchange = uop_new(st, op, (DType)u->dtype, 1, 1, &u, (Arg){.ints = cut});
    if (!exchange) return false;
  }
  for (int i = 0; i < at->n; i++)
    if (!(part[i] = moved_part(st, u, &own, at, exchange, i))) return false;
  return true;
}

bool parts_at(Rewrite *rw, UOp *u, const Layout *at, UOp **part) {
  TgContext *ctx = rw->ctx;
  if (!u) return false;
  if (is_multi(u)) return multi_parts_at(rw, u, at, part);
  if (u->devices)
    return error_set(&ctx->err, TG_ERR_DEVICE,
                     "a tensor on %s, shape %s, and one on several devices in one operation; tg_shard or "
                     "tg_replicate moves it",
                     devices_name(ctx, u->devices), shape_text(u->shape).s),
           false;
  for (int i = 0; i < at->n; i++) { /* a number is wherever it is used */
    part[i] = at->axis < 0 ? u : slice_of(rw->st, u, at->axis, at->bound[i], at->bound[i + 1]);
    if (!part[i]) return false;
  }
  return true;
}

/* All of u on every device, because op cannot be done on parts. */
static bool gathered(Rewrite *rw, const UOp *self, UOp *u, const Layout *at, UOp **part) {
  TgContext *ctx = rw->ctx;
  Layout all = whole_on(at);
  if (ctx->env.debug >= 3 && is_multi(u) && layout_of(u).axis >= 0)
    context_say(ctx, "shard: %s needs all of %s %s, which is split along axis %d: it is gathered\n",
                op_name((Ops)self->op), dtype_name((DType)u->dtype), shape_text(u->shape).s,
                layout_of(u).axis);
  return parts_at(rw, u, &all, part);
}

static UOp *failed(Rewrite *rw) {
  rw->failed = true;
  return NULL;
}

/* self on each of its parts; a NULL among them: failed. */
static UOp *made(Rewrite *rw, const Layout *at, UOp *const *part) {
  UOp *m = multi_new(rw->st, at, part);
  return m ? m : failed(rw);
}

/* self, of one source, on parts that are whole. */
static UOp *on_whole(Rewrite *rw, UOp *self) {
  UOp *part[MOST_DEVICES];
  Layout own = layout_of(self->src[0]), at = whole_on(&own);
  if (!gathered(rw, self, self->src[0], &at, part)) return failed(rw);
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
    /* memory of its own, not a view of x's, which may be assigned to */
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
  Arg arg = {.reduce = {NULL, op}};
  UOp *sum = uop_new(st, OPS_ALLREDUCE, (DType)self->dtype, 1, at.n, part, arg);
  for (int i = 0; i < at.n; i++)
    part[i] = exchange_part(st, sum, i, at.device[i]);
  at = whole_on(&at);
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
  return none ? empty_like(st, u, d) : u_pad(st, u, lohi);
}

/* Zeros before and after the split axis. Few are made where the first and the last part are; so many that
 * they would be most of a part are shared out, and all parts with them. */
static UOp *pad_split(Rewrite *rw, UOp *self, Layout at) {
  UOpStore *st = rw->st;
  UOp *x = self->src[0], *part[MOST_DEVICES];
  int a = at.axis;
  int64_t lohi[2 * TG_MAX_RANK], lo = self->arg.ints->v[2 * a], hi = self->arg.ints->v[2 * a + 1];
  memcpy(lohi, self->arg.ints->v, (size_t)(2 * self->shape->n) * sizeof *lohi);
  bool shared = lo + hi > largest_part(&at);
  Layout to = shared ? layout_even(at.n, at.device, a, self->shape->v[a]) : at;
  Layout need = at; /* what each part of the result has of x */
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
    part[i] = empty_like(rw->st, x, d);
  }
  return made(rw, &at, part);
}

UOp *multi_flip(Rewrite *rw, UOp *self) { /* the parts, each reversed, in reverse order */
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
/* x's places along its split axis are the result's own: each part has all that it needs. */
static bool own_places(const UOp *x, const UOp *index, const Layout *at) {
  return at->axis >= 0 && index->shape->n == x->shape->n && index->shape->v[at->axis] == x->shape->v[at->axis] &&
         u_is_arange(index, at->axis);
}

/* The places for parts that lie so; along the axis whose places are a part's own, they begin at 0. */
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
  else if (!layout_among(index, n, &at)) /* the places are numbers, or the same on every device */
    at = whole_on(&of_x);
  bool ok = own ? parts_at(rw, x, &at, from) : gathered(rw, self, x, &at, from);
  if (!ok || !places_at(rw, index, n, own ? at.axis : -1, &at, to)) return failed(rw);
  for (int i = 0; i < at.n; i++) {
    for (int d = 0; d < n; d++)
      src[d] = to[d][i];
    out[i] = u_gather(rw->st, from[i], src);
  }
  return made(rw, &at, out);
}

/* Adding is done by each device with what it has of the values; the sums are then added up. */
static UOp *scatter_sums(Rewrite *rw, UOp *self, const Layout *at, UOp *const *v,
                         UOp *places[][MOST_DEVICES], int n) {
  UOpStore *st = rw->st;
  UOp *part[MOST_DEVICES], *src[TG_MAX_RANK], *to[MOST_DEVICES];
  Layout all = whole_on(at);
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
  /* narrow floats are rounded after each, so that their order is seen */
  bool adds = !own && at.axis >= 0 && self->arg.scatter.op == OPS_ADD && !self->arg.scatter.how &&
              !dtype_is_narrow_float((DType)self->dtype);
  if (own)
    at = of_x;
  else if (!adds && !layout_among(self->src, self->nsrc, &at))
    return NULL;
  else if (!adds)
    at = whole_on(&at);
  bool ok = own || adds ? parts_at(rw, self->src[1], &at, v) : gathered(rw, self, self->src[1], &at, v);
  if (!ok || !places_at(rw, index, n, own ? at.axis : -1, &at, places)) return failed(rw);
  if (adds) return scatter_sums(rw, self, &at, v, places, n);
  if (!(own ? parts_at(rw, x, &at, to) : gathered(rw, self, x, &at, to))) return failed(rw);
  for (int i = 0; i < at.n; i++) {
    for (int d = 0; d < n; d++)
      src[d] = places[d][i];
    out[i] = u_scatter(rw->st, (Ops)self->arg.scatter.op, (int)self->arg.scatter.how, to[i], v[i], src);
  }
  return made(rw, &at, out);
}
