/* exchange.c: what one device gets of an exchange between all devices. In: MSELECT of BROADCAST,
 * ALLGATHER, ALLTOALL, REDUCESCATTER or ALLREDUCE. Out: COPY nodes and operations, each on one device.
 * Every sum is made in the order of the parts, or of a ring, that the graph defines; it does not depend on
 * what arrives first. */
#include "tensor/multi.h"
#include "tensor/front.h"

/* ---- pieces */
/* Joins n pieces along an axis. */
static UOp *joined(UOpStore *st, UOp *const *piece, int n, int axis) {
  int64_t total = 0, begin, lohi[2 * TG_MAX_RANK] = {0};
  UOp *all = NULL;
  for (int i = 0; i < n; i++)
    total += piece[i] ? piece[i]->shape->v[axis] : 0;
  begin = total;
  for (int i = n; i-- > 0;) {
    UOp *p = piece[i];
    if (!p) return NULL;
    int64_t size = p->shape->v[axis];
    begin -= size;
    lohi[2 * axis] = begin;
    lohi[2 * axis + 1] = total - begin - size;
    UOp *put = u_pad(st, p, lohi);
    UOp *where = u_pad(st, u_full(st, DT_BOOL, (Scalar){.i = 1}, p->shape), lohi);
    all = i == n - 1 ? put : uop_where(st, where, put, all);
  }
  return all;
}

/* Returns, on a device, the part of a MULTI from `from` to `to` of an axis. axis -1: all of it. */
static UOp *region_of(UOpStore *st, UOp *m, int axis, int64_t from, int64_t to, int device) {
  Layout own = layout_of(m);
  UOp *piece[MOST_DEVICES];
  int n = 0;
  for (int k = 0; k < own.n; k++) {
    int64_t low = own.bound[k], high = own.bound[k + 1];
    if (axis == own.axis) {
      low = TG_MAX(low, from);
      high = TG_MIN(high, to);
    }
    if (low >= high) continue;
    UOp *p = slice_of(st, m->src[k], own.axis, low - own.bound[k], high - own.bound[k]);
    if (axis >= 0 && axis != own.axis) p = slice_of(st, p, axis, from, to);
    piece[n++] = on_device(st, p, device);
  }
  if (n) return joined(st, piece, n, own.axis);
  int64_t d[TG_MAX_RANK]; /* the part is empty */
  for (int i = 0; i < m->shape->n; i++)
    d[i] = i == axis ? to - from : m->shape->v[i];
  UOp *none =
      u_full(st, (DType)m->dtype, op_identity(OPS_ADD, (DType)m->dtype), ints_get(st, m->shape->n, d));
  return on_device(st, none, device);
}

/* Returns u, the copies and sums that self becomes, and notifies tg_explain. */
static UOp *result_by(Rewrite *rw, const UOp *self, const char *way, int steps, UOp *u) {
  TgContext *ctx = rw->ctx;
  if (!u)
    rw->failed = true;
  else if (ctx->calls)
    ctx->calls->exchanged(ctx, self->src[0], way, steps, u);
  return u;
}

static UOp *result(Rewrite *rw, const UOp *self, UOp *u) { return result_by(rw, self, "", 1, u); }

static int device_of_part(const UOp *select) { return (int)select->arg.ints->v[1]; }

UOp *broadcast_part(Rewrite *rw, UOp *self) {
  return result(rw, self, on_device(rw->st, self->src[0]->src[0], device_of_part(self)));
}

UOp *gathered_part(Rewrite *rw, UOp *self) {
  return result(rw, self, region_of(rw->st, self->src[0]->src[0], -1, 0, 0, device_of_part(self)));
}

UOp *resharded_part(Rewrite *rw, UOp *self) {
  const int64_t *cut = self->src[0]->arg.ints->v, i = self->arg.ints->v[0];
  UOp *m = self->src[0]->src[0];
  return result(rw, self, region_of(rw->st, m, (int)cut[0], cut[1 + i], cut[2 + i], device_of_part(self)));
}

/* ---- sums */
/* Combines a part of each of n sources on a device, in their order. axis -1: all of each source. */
static UOp *combined(UOpStore *st, Ops op, int n, UOp *const *src, int axis, int64_t from, int64_t to,
                     int device) {
  UOp *all = NULL;
  for (int k = 0; k < n; k++) {
    UOp *p = on_device(st, axis < 0 ? src[k] : slice_of(st, src[k], axis, from, to), device);
    all = k ? uop_alu2(st, op, all, p) : p;
  }
  return all;
}

UOp *scattered_part(Rewrite *rw, UOp *self) {
  UOp *ex = self->src[0];
  const int64_t *cut = ex->arg.reduce.axes->v, i = self->arg.ints->v[0];
  return result(rw, self,
                combined(rw->st, (Ops)ex->arg.reduce.op, ex->nsrc, ex->src, (int)cut[0], cut[1 + i],
                         cut[2 + i], device_of_part(self)));
}

/* Groups the sources by machine. member: the sources, one machine after another; it can only be used if
 * every machine has the same number (even). most: the largest number on one machine. */
typedef struct Machines {
  int n, most;
  bool even;
  int member[MOST_DEVICES];
} Machines;

/* A context without an engine counts as one machine. */
static int machine_of(const TgContext *ctx, const UOp *u) {
  return ctx->calls ? ctx->calls->facts(ctx, __builtin_ctzll(u->devices)).machine : 0;
}

static Machines machines_of(const TgContext *ctx, const UOp *ex) {
  Machines m = {.even = true};
  int placed = 0;
  for (int i = 0; i < ex->nsrc; i++) {
    bool seen = false;
    int of = machine_of(ctx, ex->src[i]), here = 0;
    for (int k = 0; k < i; k++)
      seen = seen || machine_of(ctx, ex->src[k]) == of;
    if (seen) continue;
    for (int k = i; k < ex->nsrc; k++)
      if (machine_of(ctx, ex->src[k]) == of) m.member[placed++] = k, here++;
    m.even = m.even && (!m.n || here == m.most);
    m.most = TG_MAX(m.most, here);
    m.n++;
  }
  return m;
}

typedef struct AllReduce {
  UOpStore *st;
  UOp *flat[MOST_DEVICES]; /* the sources, flat */
  Layout chunks;           /* the chunks of the sum, one for each device */
  Ops op;
  Machines at;
} AllReduce;

/* Divides the sources into as many chunks as there are devices, at multiples of what a cache line holds. */
static bool all_reduce_cut(const TgContext *ctx, UOpStore *st, const UOp *ex, AllReduce *r) {
  enum { ALIGN = 16 };

  int64_t n = dim_product(st, ex->shape);
  int device[MOST_DEVICES];
  *r = (AllReduce){.st = st, .op = (Ops)ex->arg.reduce.op, .at = machines_of(ctx, ex)};
  for (int k = 0; k < ex->nsrc; k++) {
    device[k] = __builtin_ctzll(ex->src[k]->devices);
    if (!(r->flat[k] = u_reshape(st, ex->src[k], 1, &n))) return false;
  }
  r->chunks = layout_even(ex->nsrc, device, 0, (n + ALIGN - 1) / ALIGN);
  for (int k = 0; k <= ex->nsrc; k++)
    r->chunks.bound[k] = TG_MIN(r->chunks.bound[k] * ALIGN, n);
  return true;
}

static UOp *chunk_of(const AllReduce *r, int source, int c) {
  return slice_of(r->st, r->flat[source], 0, r->chunks.bound[c], r->chunks.bound[c + 1]);
}

/* Direct: device c adds up chunk c of all sources in their order, and every device copies the sums from
 * there. */
static UOp *direct_chunk(const AllReduce *r, int c, int to) {
  const Layout *at = &r->chunks;
  UOp *sum = combined(r->st, r->op, at->n, r->flat, 0, at->bound[c], at->bound[c + 1], at->device[c]);
  return on_device(r->st, sum, at->device[to]);
}

/* Ring: chunk c starts at device c and is passed around, each device adding its own part. It is then
 * passed around again so that all devices have it. */
static UOp *ring_chunk(const AllReduce *r, int c, int to) {
  const int *device = r->chunks.device, n = r->chunks.n;
  UOp *sum = chunk_of(r, c, c);
  for (int step = 1; step < n; step++) {
    int at = (c + step) % n;
    sum = uop_alu2(r->st, r->op, on_device(r->st, sum, device[at]), chunk_of(r, at, c));
  }
  for (int at = (c + n - 1) % n; at != to;) {
    at = (at + 1) % n;
    sum = on_device(r->st, sum, device[at]);
  }
  return sum;
}

/* Adds up chunks c .. c + n - 1 of the devices of a machine on one of them. */
static UOp *machine_sum(const AllReduce *r, int machine, int c, int n, int device) {
  const int64_t *bound = r->chunks.bound;
  UOp *of[MOST_DEVICES];
  for (int k = 0; k < r->at.most; k++)
    of[k] = r->flat[r->at.member[machine * r->at.most + k]];
  return combined(r->st, r->op, r->at.most, of, 0, bound[c], bound[c + n], device);
}

/* Two levels: the sum is made first within each machine, then between machines, where each device has its
 * share of the work, and then sent back. The order of the sum is that of the parts of a machine, then that
 * of the machines. */
static UOp *two_level_chunk(const AllReduce *r, int c, int to) {
  const Machines *at = &r->at;
  const int64_t *bound = r->chunks.bound;
  int slot = c / at->n, first = slot * at->n, own = 0;
  UOp *sum = NULL;
  for (int g = 0; g < at->n; g++) {
    const int *member = at->member + g * at->most;
    UOp *p = machine_sum(r, g, first, at->n, r->chunks.device[member[slot]]);
    p = slice_of(r->st, p, 0, bound[c] - bound[first], bound[c + 1] - bound[first]);
    p = on_device(r->st, p, r->chunks.device[at->member[(c % at->n) * at->most + slot]]);
    sum = g ? uop_alu2(r->st, r->op, sum, p) : p;
    for (int k = 0; k < at->most; k++)
      if (member[k] == to) own = g;
  }
  sum = on_device(r->st, sum, r->chunks.device[at->member[own * at->most + slot]]);
  return on_device(r->st, sum, r->chunks.device[to]);
}

enum { REDUCE_BY_COST, REDUCE_NAIVE, REDUCE_RING, REDUCE_DIRECT, REDUCE_TWO_LEVEL }; /* TG_ALLREDUCE */

/* Estimated time of an all-reduce over n devices, k on each machine. inside, out: bytes that a device
 * sends within its machine, and that a machine sends to others, per byte of the value. steps: consecutive
 * messages; outside: those between machines. */
static double way_us(const TgContext *ctx, int way, double n, double k, double nbytes) {
  /* within a machine and between machines: bytes per microsecond, microseconds per message */
  const double *l = ctx->env.links;
  double machines = n / k, inside = k - 1, out = k * (n - k), steps = 1, outside = 1;
  switch (way) {
  case REDUCE_RING:
    inside = out = 2 * (n - 1) / n;
    steps = outside = 2 * (n - 1);
    break;
  case REDUCE_DIRECT:
    inside *= 2 / n;
    out *= 2 / n;
    steps = outside = 2;
    break;
  case REDUCE_TWO_LEVEL:
    inside = 2 * (k - 1) / k;
    out = 2 * (machines - 1) / machines;
    steps = 4;
    outside = 2;
    break;
  default: break;
  }
  if (machines <= 1) return inside * nbytes / l[0] + steps * l[1];
  return inside * nbytes / l[0] + out * nbytes / l[2] + (steps - outside) * l[1] + outside * l[3];
}

static int way_of(const TgContext *ctx, const UOp *ex) {
  int way = ctx->env.allreduce, best = REDUCE_NAIVE;
  int64_t n = dim_product(ctx->store, ex->shape);
  if (dim_symbolic(n) || n < ex->nsrc) return REDUCE_NAIVE;
  Machines m = machines_of(ctx, ex);
  if (way == REDUCE_TWO_LEVEL && !m.even) return REDUCE_DIRECT;
  if (way) return way;
  double nbytes = (double)n * (double)dtype_size((DType)ex->dtype);
  for (way = REDUCE_RING; way <= (m.even && m.n > 1 ? REDUCE_TWO_LEVEL : REDUCE_DIRECT); way++)
    if (way_us(ctx, way, ex->nsrc, m.most, nbytes) < way_us(ctx, best, ex->nsrc, m.most, nbytes)) best = way;
  return best;
}

static UOp *chunk_summed(const AllReduce *r, int way, int c, int to) {
  switch (way) {
  case REDUCE_RING: return ring_chunk(r, c, to);
  case REDUCE_TWO_LEVEL: return two_level_chunk(r, c, to);
  default: return direct_chunk(r, c, to);
  }
}

/* Number of consecutive messages for n devices. */
static int steps_of(int way, int n) {
  const int steps[] = {
      [REDUCE_NAIVE] = 1, [REDUCE_RING] = 2 * (n - 1), [REDUCE_DIRECT] = 2, [REDUCE_TWO_LEVEL] = 4};
  return steps[way];
}

UOp *reduced_part(Rewrite *rw, UOp *self) {
  static const char *const names[] = {"by cost", "naive", "ring", "direct", "two levels"};
  UOp *ex = self->src[0], *piece[MOST_DEVICES], *u;
  int to = (int)self->arg.ints->v[0], way = way_of(rw->ctx, ex), n = 0;
  AllReduce r;
  if (way == REDUCE_NAIVE) {
    u = combined(rw->st, (Ops)ex->arg.reduce.op, ex->nsrc, ex->src, -1, 0, 0, device_of_part(self));
    return result_by(rw, self, names[way], 1, u);
  }
  if (!all_reduce_cut(rw->ctx, rw->st, ex, &r)) return result(rw, self, NULL);
  for (int c = 0; c < ex->nsrc; c++)
    if (r.chunks.bound[c] < r.chunks.bound[c + 1]) piece[n++] = chunk_summed(&r, way, c, to);
  u = u_reshape(rw->st, joined(rw->st, piece, n, 0), ex->shape->n, ex->shape->v);
  return result_by(rw, self, names[way], steps_of(way, ex->nsrc), u);
}
