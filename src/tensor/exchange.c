/* exchange.c: what one device gets of an exchange between all. In: MSELECT of BROADCAST, ALLGATHER, ALLTOALL,
 * REDUCESCATTER or ALLREDUCE. Out: COPY nodes and operations, each on one device. Every sum is made in the
 * order of the parts, or of a ring, that the graph says: it does not depend on what arrives first. */
#include "tensor/multi.h"
#include "tensor/front.h"

/* ---- pieces */
/* n pieces side by side along an axis. */
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

UOp *region_of(UOpStore *st, UOp *m, int axis, int64_t from, int64_t to, int device) {
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
  int64_t d[TG_MAX_RANK]; /* nothing is in it */
  for (int i = 0; i < m->shape->n; i++)
    d[i] = i == axis ? to - from : m->shape->v[i];
  UOp *none =
      u_full(st, (DType)m->dtype, op_identity(OPS_ADD, (DType)m->dtype), ints_get(st, m->shape->n, d));
  return on_device(st, none, device);
}

static UOp *result(Rewrite *rw, UOp *u) {
  if (!u) rw->failed = true;
  return u;
}

static int device_of_part(const UOp *select) { return (int)select->arg.ints->v[1]; }

UOp *broadcast_part(Rewrite *rw, UOp *self) {
  return result(rw, on_device(rw->st, self->src[0]->src[0], device_of_part(self)));
}

UOp *gathered_part(Rewrite *rw, UOp *self) {
  return result(rw, region_of(rw->st, self->src[0]->src[0], -1, 0, 0, device_of_part(self)));
}

UOp *resharded_part(Rewrite *rw, UOp *self) {
  const int64_t *cut = self->src[0]->arg.ints->v, i = self->arg.ints->v[0];
  UOp *m = self->src[0]->src[0];
  return result(rw, region_of(rw->st, m, (int)cut[0], cut[1 + i], cut[2 + i], device_of_part(self)));
}

/* ---- sums */
/* What each source has there, combined on a device in the order of the sources. axis -1: all. */
static UOp *combined(UOpStore *st, const UOp *exchange, int axis, int64_t from, int64_t to, int device) {
  UOp *all = NULL;
  for (int k = 0; k < exchange->nsrc; k++) {
    UOp *p = axis < 0 ? exchange->src[k] : slice_of(st, exchange->src[k], axis, from, to);
    p = on_device(st, p, device);
    all = k ? uop_alu2(st, (Ops)exchange->arg.reduce.op, all, p) : p;
  }
  return on_device(st, all, device);
}

UOp *scattered_part(Rewrite *rw, UOp *self) {
  UOp *ex = self->src[0];
  const int64_t *cut = ex->arg.reduce.axes->v, i = self->arg.ints->v[0];
  return result(rw, combined(rw->st, ex, (int)cut[0], cut[1 + i], cut[2 + i], device_of_part(self)));
}

typedef struct AllReduce {
  UOpStore *st;
  UOp *flat[MOST_DEVICES]; /* the sources, flat */
  Layout chunks;           /* chunk c of the sum is made for all */
  Ops op;
} AllReduce;

/* Cut in as many chunks as devices, at multiples of what a line of a cache holds. */
static bool all_reduce_cut(UOpStore *st, const UOp *ex, AllReduce *r) {
  enum { ALIGN = 16 };

  int64_t n = dim_product(st, ex->shape);
  int device[MOST_DEVICES];
  *r = (AllReduce){.st = st, .op = (Ops)ex->arg.reduce.op};
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

/* Device c adds up chunk c of all, in their order; each takes the sums from there. */
static UOp *direct_chunk(const AllReduce *r, int c, int to) {
  const int *device = r->chunks.device;
  UOp *sum = NULL;
  for (int k = 0; k < r->chunks.n; k++) {
    UOp *p = on_device(r->st, chunk_of(r, k, c), device[c]);
    sum = k ? uop_alu2(r->st, r->op, sum, p) : p;
  }
  return on_device(r->st, sum, device[to]);
}

/* Chunk c goes round from device c on, each adding its own, and round again for all to have it. */
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

/* Bytes from which the chunks of an all-reduce are worth their kernels: less moves as a whole. */
enum { CHUNKED_FROM = 64 << 10 };

enum { REDUCE_BY_SIZE, REDUCE_NAIVE, REDUCE_RING, REDUCE_DIRECT }; /* TG_ALLREDUCE */

static int way_of(const TgContext *ctx, const UOp *ex) {
  int way = ctx->env.allreduce;
  int64_t n = dim_product(ctx->store, ex->shape);
  if (dim_symbolic(n) || n < ex->nsrc) return REDUCE_NAIVE;
  if (way) return way;
  bool large = ex->nsrc > 2 && n * (int64_t)dtype_size((DType)ex->dtype) >= CHUNKED_FROM;
  return large ? REDUCE_DIRECT : REDUCE_NAIVE;
}

UOp *reduced_part(Rewrite *rw, UOp *self) {
  UOp *ex = self->src[0], *piece[MOST_DEVICES];
  int to = (int)self->arg.ints->v[0], way = way_of(rw->ctx, ex), n = 0;
  if (way == REDUCE_NAIVE) return result(rw, combined(rw->st, ex, -1, 0, 0, device_of_part(self)));
  AllReduce r;
  if (!all_reduce_cut(rw->st, ex, &r)) return result(rw, NULL);
  for (int c = 0; c < ex->nsrc; c++)
    if (r.chunks.bound[c] < r.chunks.bound[c + 1])
      piece[n++] = way == REDUCE_RING ? ring_chunk(&r, c, to) : direct_chunk(&r, c, to);
  return result(rw, u_reshape(rw->st, joined(rw->st, piece, n, 0), ex->shape->n, ex->shape->v));
}
