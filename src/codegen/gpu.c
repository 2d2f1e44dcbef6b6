/* gpu.c: a kernel for a grid of blocks of threads. In: loops typed GLOBAL and LOCAL. Out: SPECIAL indices in
 * their place, reductions over the threads of a block, barriers where local memory is written and then read
 * by others.
 *
 * GLOBAL loops that every output has become the grid. LOCAL loops of the grid are thread axes of their own;
 * LOCAL loops inside it (rows, reductions) share the next axis, so all of them have the same length. Nothing
 * here branches: what lies past an end is gated, so every thread of a block meets every barrier. */
#include "codegen/codegen.h"

typedef struct Grid {
  Kernel *k;
  int nlocal;
  int64_t ext[3];
  UOp *tid[3];
  int inner;
  uint64_t indices;
} Grid; /* inner: the axis of inner LOCAL loops, or -1; indices: ranges that become SPECIAL */

static bool listed(const UOp *u, const UOp *r) {
  for (int i = 2; i < u->nsrc; i++)
    if (u->src[i] == r) return true;
  return false;
}

static bool in_all(const Kernel *k, const UOp *r) {
  for (int j = 0; j < k->sink->nsrc; j++)
    if (!listed(k->sink->src[j], r)) return false;
  return true;
}

static UOp *special(Kernel *k, int64_t extent, int dim, bool local) {
  UOp *n = uop_index_const(k->st, extent);
  return n ? uop_new(k->st, OPS_SPECIAL, DT_INDEX, 1, 1, &n, (Arg){.special = {dim, local}}) : NULL;
}

static UOp *ix(Kernel *k, Ops op, UOp *a, UOp *b) {
  return a && b ? uop_simplify_top(k->st, k->mem, uop_alu2(k->st, op, a, b)) : NULL;
}

/* Partial values of the threads along `axis` become one, by halves: h threads take what the next h hold, then
 * h/2. */
static UOp *block_reduce(Grid *g, Ops op, UOp *part, int axis) {
  Kernel *k = g->k;
  UOpStore *st = k->st;
  DType dt = (DType)part->dtype;
  int64_t n = g->ext[axis], all = 1, half = 1;
  UOp *at = uop_index_const(st, 0);
  for (int d = g->nlocal - 1; d >= 0; d--)
    at = ix(k, OPS_ADD, at, ix(k, OPS_MUL, g->tid[d], uop_index_const(st, all))), all *= g->ext[d];
  int64_t step = 1; /* of the axis in the scratch */
  for (int d = g->nlocal - 1; d > axis; d--)
    step *= g->ext[d];
  while (half * 2 < n)
    half *= 2;
  UOp *mem = uop_new(st, OPS_DEFINE_LOCAL, dt, 1, 0, NULL, (Arg){.param = {all, k->next_local++}});
  UOp *idle = mem;
  if (mem && (part->ranges & ~g->indices))
    idle =
        UNEW(st, OPS_AFTER, dt, 1, ARG0, mem,
             UNEW(st, OPS_BARRIER, DT_VOID, 1, ARG0, part)); /* in a loop: no one still reads the last turn */
  if (!idle || !at) return NULL;
  UOp *store = UNEW(st, OPS_STORE, DT_VOID, 1, ARG0, UNEW(st, OPS_INDEX, dt, 1, ARG0, idle, at), part);
  UOp *now = UNEW(st, OPS_AFTER, dt, 1, ARG0, mem, UNEW(st, OPS_BARRIER, DT_VOID, 1, ARG0, store));
  for (int64_t h = half; n > 1 && h >= 1; h /= 2) {
    UOp *far = ix(k, OPS_ADD, at, uop_index_const(st, h * step));
    UOp *gate = ix(k, OPS_CMPLT, g->tid[axis], uop_index_const(st, TG_MIN(h, n - h)));
    if (!far || !gate || !now) return NULL;
    Arg gated = {.i = 1};
    UOp *mine = UNEW(st, OPS_INDEX, dt, 1, gated, now, at, gate);
    UOp *sum = uop_alu2(st, op, UNEW(st, OPS_LOAD, dt, 1, ARG0, mine),
                        UNEW(st, OPS_LOAD, dt, 1, ARG0, UNEW(st, OPS_INDEX, dt, 1, gated, now, far, gate)));
    store = UNEW(st, OPS_STORE, DT_VOID, 1, ARG0, mine, sum);
    now =
        store ? UNEW(st, OPS_AFTER, dt, 1, ARG0, mem, UNEW(st, OPS_BARRIER, DT_VOID, 1, ARG0, store)) : NULL;
  }
  UOp *first = ix(k, OPS_SUB, at, ix(k, OPS_MUL, g->tid[axis], uop_index_const(st, step)));
  return now && first ? UNEW(st, OPS_LOAD, dt, 1, ARG0, UNEW(st, OPS_INDEX, dt, 1, ARG0, now, first)) : NULL;
}

/* A row filled in every turn of a loop: no one still reads the last one. */
static UOp *idle_before(Rewrite *rw, UOp *u, uint64_t indices) {
  UOpVec order = {0}, open = {0};
  bool ok = uop_toposort(rw->st, rw->mem, &u, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    if (order.at[i]->op == OPS_RANGE && (order.at[i]->ranges & u->ranges & ~indices))
      ok = vec_push(rw->mem, &open, order.at[i]);
  UOp *local = u->src[0],
      *idle = ok ? uop_new(rw->st, OPS_BARRIER, DT_VOID, 1, (int)open.len, open.at, ARG0) : NULL;
  idle = idle ? UNEW(rw->st, OPS_AFTER, (DType)local->dtype, 1, ARG0, local, idle) : NULL;
  UOp *src[MAX_RANGES + 2];
  src[0] = local;
  for (int i = 1; idle && i < u->nsrc && i < MAX_RANGES; i++) {
    UOp *s = u->src[i], *x = s->src[0], *xs[3] = {idle, x->src[1], x->nsrc > 2 ? x->src[2] : NULL},
        *ss[MAX_RANGES + 2];
    for (int k = 0; k < s->nsrc; k++)
      ss[k] = s->src[k];
    ss[0] = uop_new(rw->st, OPS_INDEX, (DType)x->dtype, x->lanes, x->nsrc, xs, x->arg);
    src[i] = uop_new(rw->st, OPS_STORE, DT_VOID, 1, s->nsrc, ss, s->arg);
  }
  vec_free(rw->mem, &order), vec_free(rw->mem, &open);
  return idle ? uop_new(rw->st, OPS_AFTER, (DType)u->dtype, 1, u->nsrc, src, u->arg) : NULL;
}

static bool is_local(const UOp *u) { return u->op == OPS_RANGE && u->arg.range.type == AXIS_LOCAL; }

static UOp *pm_block(Rewrite *rw, UOp *u) {
  Grid *g = rw->ctx;
  UOpStore *st = rw->st;
  if (u->op == OPS_AFTER && u->src[0]->op == OPS_DEFINE_LOCAL &&
      u->src[1]->op == OPS_STORE) { /* a row: filled, then read by all */
    if ((u->ranges & ~g->indices) && u->src[1]->src[0]->src[0]->op == OPS_DEFINE_LOCAL)
      return idle_before(rw, u, g->indices);
    UOp *bar = uop_new(st, OPS_BARRIER, DT_VOID, 1, u->nsrc - 1, u->src + 1, ARG0);
    return bar ? UNEW(st, OPS_AFTER, (DType)u->dtype, 1, ARG0, u->src[0], bar) : NULL;
  }
  if (u->op != OPS_REDUCE) return NULL;
  int nv = 0, n = 0, axis = -1;
  UOp *src[MAX_RANGES + 256];
  while (nv < u->nsrc && u->src[nv]->op != OPS_RANGE)
    nv++;
  if (u->nsrc > (int)TG_COUNT(src)) return NULL;
  for (int i = 0; i < u->nsrc; i++)
    if (is_local(u->src[i]))
      axis = g->inner;
    else
      src[n++] = u->src[i];
  if (axis < 0) return NULL;
  Ops op = (Ops)u->arg.reduce.op;
  UOp *part = src[0];
  if (n > nv)
    part = uop_new(st, OPS_REDUCE, (DType)u->dtype, u->lanes, n, src, u->arg);
  else
    for (int i = 1; i < nv; i++)
      part = uop_alu2(st, op, part, src[i]);
  if (!part || part->lanes == 1) return part ? block_reduce(g, op, part, axis) : NULL;
  UOp *lane[64];
  for (int l = 0; l < part->lanes; l++) {
    lane[l] = block_reduce(g, op, uop_new(st, OPS_GEP, (DType)part->dtype, 1, 1, &part, (Arg){.i = l}), axis);
    if (!lane[l]) return NULL;
  }
  return uop_new(st, OPS_VECTORIZE, (DType)part->dtype, part->lanes, part->lanes, lane, ARG0);
}

static UOp *pm_unlist(Rewrite *rw, UOp *u) { /* what is no loop any more leaves the list of its store */
  if (u->op != OPS_STORE) return NULL;
  UOp *src[MAX_RANGES + 2];
  int n = 0;
  for (int i = 0; i < u->nsrc; i++)
    if (i < 2 || u->src[i]->op == OPS_RANGE) src[n++] = u->src[i];
  return n == u->nsrc ? NULL : uop_new(rw->st, OPS_STORE, DT_VOID, 1, n, src, u->arg);
}

/* Whether a store of the kernel computes with what buffer `param` held. */
static bool is_read(Grid *g, const UOp *param) {
  UOpVec order = {0};
  bool read = false;
  for (int i = 0; i < g->k->sink->nsrc && !read; i++) {
    order.len = 0;
    read = !uop_toposort(g->k->st, g->k->mem, &g->k->sink->src[i]->src[1], 1, &order);
    for (size_t k = 0; k < order.len && !read; k++)
      read = order.at[k]->op == OPS_INDEX && order.at[k]->src[0] == param;
  }
  vec_free(g->k->mem, &order);
  return read;
}

/* An output or a row that does not loop over the inner axis: its first thread writes; where it was read in
 * the kernel, once every thread has. */
static UOp *pm_alone(Rewrite *rw, UOp *u) {
  Grid *g = rw->ctx;
  if (u->op != OPS_STORE) return NULL;
  for (int i = 2; i < u->nsrc; i++)
    if (is_local(u->src[i]) && g->k->root[u->src[i]->arg.range.id] != ROOT_GRID) return NULL;
  UOp *x = u->src[0], *first = ix(g->k, OPS_CMPLT, g->tid[g->inner], uop_index_const(rw->st, 1)),
      *gate = first, *src[MAX_RANGES + 2];
  if (x->arg.i) {
    if (x->src[2] == first ||
        (x->src[2]->op == OPS_AND && (x->src[2]->src[0] == first || x->src[2]->src[1] == first)))
      return NULL;
    gate = uop_alu2(rw->st, OPS_AND, x->src[2], first);
  }
  for (int i = 0; i < u->nsrc; i++)
    src[i] = u->src[i];
  UOp *to = x->src[0];
  if (to->op == OPS_PARAM && is_read(g, to)) {
    UOp *all = UNEW(rw->st, OPS_BARRIER, DT_VOID, 1, ARG0, u->src[1]);
    to = all ? UNEW(rw->st, OPS_AFTER, (DType)to->dtype, 1, ARG0, to, all) : NULL;
  }
  src[0] = gate && to
               ? UNEW(rw->st, OPS_INDEX, (DType)x->dtype, x->lanes, ((Arg){.i = 1}), to, x->src[1], gate)
               : NULL;
  return src[0] ? uop_new(rw->st, OPS_STORE, DT_VOID, 1, u->nsrc, src, u->arg) : NULL;
}

bool gpu_dims(Kernel *k) {
  if (!k->ren || !k->ren->has_local) return true;
  Grid g = {.k = k, .inner = -1};
  UOp *grid[MAX_RANGES], *local[3], *from[2 * MAX_RANGES], *to[2 * MAX_RANGES];
  UOpVec order = {0}, inner = {0};
  int ngrid = 0, n = 0;
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
  UOp *s0 = k->sink->nsrc ? k->sink->src[0] : NULL;
  for (int i = 2; s0 && i < s0->nsrc; i++) { /* in the order of the nest: outer first */
    UOp *r = s0->src[i];
    if (r->op != OPS_RANGE || !is_const(r->src[0]) || !in_all(k, r)) continue;
    if (r->arg.range.type == AXIS_GLOBAL)
      grid[ngrid++] = r;
    else if (is_local(r) && k->root[r->arg.range.id] == ROOT_GRID) {
      if (g.nlocal == 3) {
        ok = false;
        break;
      }
      local[g.nlocal] = r, g.ext[g.nlocal++] = r->src[0]->arg.v.i;
    }
  }
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *r = order.at[i];
    bool of_grid = false;
    for (int d = 0; d < g.nlocal; d++)
      of_grid |= d != g.inner && local[d] == r;
    if (!is_local(r) || of_grid) continue;
    if (g.inner < 0) {
      if (g.nlocal == 3) {
        ok = false;
        break;
      }
      g.inner = g.nlocal, local[g.nlocal] = r, g.ext[g.nlocal++] = r->src[0]->arg.v.i;
    }
    ok = r->src[0]->arg.v.i == g.ext[g.inner] && vec_push(k->mem, &inner, r);
  }
  if (!ok) goto done;
  for (int d = 0; d < g.nlocal; d++) { /* the last axis is x: neighbours in memory are neighbours in a warp */
    int dim = g.nlocal - 1 - d;
    g.tid[d] = special(k, g.ext[d], dim, true);
    k->local[dim] = (int)g.ext[d];
    if (d != g.inner) from[n] = local[d], to[n++] = g.tid[d];
  }
  for (size_t i = 0; i < inner.len; i++)
    from[n] = inner.at[i], to[n++] = g.tid[g.inner];
  int64_t flat = 1;
  for (int d = ngrid; d-- > 0;) {
    int dim = ngrid - 1 - d;
    int64_t e = grid[d]->src[0]->arg.v.i;
    if (dim < 2 && ngrid <= 3 ? e <= (dim ? 65535 : INT32_MAX) : false) {
      k->global[dim] = (int)e, from[n] = grid[d], to[n++] = special(k, e, dim, false);
      continue;
    }
    int nd = dim; /* the rest share one axis: z, or x where it is alone or long */
    UOp *one;
    for (int i = 0; i <= d; i++)
      if (__builtin_mul_overflow(flat, grid[i]->src[0]->arg.v.i, &flat)) flat = INT64_MAX;
    if (nd > 2) nd = 2;
    if (flat > (nd ? 65535 : INT32_MAX)) { /* too long for y or z: everything goes to x */
      n -= ngrid - 1 - d, d = ngrid - 1, nd = 0, flat = 1;
      for (int i = 0; i < ngrid; i++)
        if (__builtin_mul_overflow(flat, grid[i]->src[0]->arg.v.i, &flat)) flat = INT64_MAX;
      for (int i = 0; i < 3; i++)
        k->global[i] = 1;
      if (flat > INT32_MAX) {
        error_set(k->err, TG_ERR_LIMIT, "codegen: a grid of more than 2^31 blocks");
        ok = false;
        goto done;
      }
    }
    k->global[nd] = (int)flat;
    one = special(k, flat, nd, false);
    int64_t below = 1;
    for (int i = d; i >= 0; i--) {
      int64_t ext = grid[i]->src[0]->arg.v.i;
      UOp *q = ix(k, OPS_FLOORDIV, one, uop_index_const(k->st, below));
      from[n] = grid[i], to[n++] = i ? ix(k, OPS_FLOORMOD, q, uop_index_const(k->st, ext)) : q;
      below *= ext;
    }
    break;
  }
  if (ok) {
    Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = &g};
    for (int i = 0; i < n; i++)
      g.indices |= from[i]->ranges;
    if (g.inner >= 0) ok = (k->sink = graph_rewrite(&rw, pm_alone, k->sink)) != NULL;
    ok = ok && (k->sink = graph_rewrite(&rw, pm_block, k->sink)) != NULL &&
         (k->sink = uop_substitute(k->st, k->mem, k->sink, n, from, to)) != NULL &&
         (k->sink = graph_rewrite(&rw, pm_unlist, k->sink)) != NULL &&
         (k->sink = uop_simplify(k->st, k->mem, k->sink)) != NULL;
  }
done:
  vec_free(k->mem, &order), vec_free(k->mem, &inner);
  return ok;
}
