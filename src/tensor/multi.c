/* multi.c: where the parts of a value are. In: a value on several devices, on one or on none, and the
 * wanted layout of its parts. Out: parts with this layout: the value's own parts, slices of them, or what
 * an exchange (exchange.c) gives each device. */
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

Layout layout_whole_on(const Layout *at) {
  Layout all = *at;
  all.axis = -1;
  return all;
}

int64_t layout_largest(const Layout *at) {
  int64_t most = 0;
  for (int i = 0; i < at->n; i++)
    most = TG_MAX(most, at->bound[i + 1] - at->bound[i]);
  return most;
}

/* Finds the layout in which an operation on these sources is computed: that of the source that is split,
 * or of several the most even one. */
bool layout_among(UOp *const *src, int n, Layout *at) {
  bool found = false;
  for (int i = 0; i < n; i++) {
    if (!is_multi(src[i])) continue;
    Layout l = layout_of(src[i]);
    bool better = !found || (l.axis >= 0 && (at->axis < 0 || layout_largest(&l) < layout_largest(at)));
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

/* Finds the split axis of `from` in another shape: an axis with the same number of elements before it, and
 * with a step boundary at each bound of a part. */
bool layout_reshaped(UOpStore *st, const Ints *from, const Ints *to, Layout *at) {
  int64_t before = product_of(st, from->v, 0, at->axis);
  int64_t run = product_of(st, from->v, at->axis + 1, from->n);
  if (!before) return false; /* without elements any axis would fit, and its bounds would be arbitrary */
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
    if (!(own[i] = part[i] && part[i]->devices ? part[i] : on_device(st, part[i], at->device[i])))
      return NULL;
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

UOp *empty_of(UOpStore *st, const UOp *u, const int64_t *d) {
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
  if (from == to) return empty_of(st, u, d);
  if (u->op == OPS_EXPAND && u->src[0]->shape->v[axis] == 1 && u->shape->v[axis] != 1)
    return u_expand(st, u->src[0], d);
  if (u->op == OPS_COPY) /* what is not visible is not copied */
    return on_device(st, slice_of(st, u->src[0], axis, from, to), (int)u->arg.i);
  return u_shrink(st, u, be);
}

UOp *exchange_part(UOpStore *st, UOp *exchange, int64_t i, int device) {
  const Ints *p = exchange ? ints_get(st, 2, (int64_t[]){i, device}) : NULL;
  return p ? uop_new(st, OPS_MSELECT, (DType)exchange->dtype, 1, 1, &exchange, (Arg){.ints = p}) : NULL;
}

/* Returns a device's copy of a value that is whole on some devices. */
UOp *copy_for(UOpStore *st, const UOp *multi, int device) {
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

/* Whether the parts are the same operation of sources that are whole. sources[i]: the source of part i. */
static bool alike(UOp *const *part, int n, UOp **sources) {
  for (int i = 0; i < n; i++) {
    const UOp *a = part[0], *b = part[i];
    if (a->op != b->op || a->dtype != b->dtype || a->nsrc < 1 || a->shape != b->shape) return false;
    sources[i] = b->src[0];
  }
  return true;
}

/* Gives each device its part of a sum over all devices. */
static bool sums_scattered(UOpStore *st, UOp *const *part, UOp *const *exchange, const Layout *at,
                           UOp **out) {
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

/* If each device needs only its part of a sum over all devices, that part is added up there alone. The sum
 * may be seen in another shape or dtype. Returns false if the parts are not such a sum. */
static bool reduce_scatter(UOpStore *st, UOp *const *part, const Layout *at, int depth, UOp **out) {
  enum { DEEPEST = 8 };

  UOp *below[MOST_DEVICES];
  const UOp *u = part[0];
  Layout to = *at;
  if (depth > DEEPEST || !alike(part, at->n, below)) return false;
  if (u->op == OPS_MSELECT) return below[0]->op == OPS_ALLREDUCE && sums_scattered(st, part, below, at, out);
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

/* Returns a MULTI's parts in another layout. */
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
                     devices_name(ctx, u->devices), shape_text(ctx->store, u->shape).s),
           false;
  for (int i = 0; i < at->n; i++) { /* a constant is wherever it is used */
    part[i] = at->axis < 0 ? u : slice_of(rw->st, u, at->axis, at->bound[i], at->bound[i + 1]);
    if (!part[i]) return false;
  }
  return true;
}

bool parts_gathered(Rewrite *rw, const UOp *self, UOp *u, const Layout *at, UOp **part) {
  TgContext *ctx = rw->ctx;
  Layout all = layout_whole_on(at);
  if (ctx->env.debug >= 3 && is_multi(u) && layout_of(u).axis >= 0)
    context_say(ctx, "shard: %s needs all of %s %s, which is split along axis %d: it is gathered\n",
                op_name((Ops)self->op), dtype_name((DType)u->dtype), shape_text(ctx->store, u->shape).s,
                layout_of(u).axis);
  return parts_at(rw, u, &all, part);
}
