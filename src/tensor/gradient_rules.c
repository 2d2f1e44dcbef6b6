/* gradient_rules.c: what the rules of rules/gradient.rules name. In: a node, and the gradient of its value.
 * Out: the gradient of one of its sources, as nodes. */
#include "tensor/front.h"
#include "tensor/gradient.h"
#include "tensor/multi.h"

UOp *gradient_number(Rewrite *rw, const UOp *like, double v) { return u_num(rw->st, v, (UOp *)like); }

/* A gradient where x is, which is on several devices; what x is split by, its readers' rules find. */
static UOp *replicated(UOpStore *st, UOp *g, uint64_t devices) {
  Layout at = {.axis = -1};
  for (; devices; devices &= devices - 1)
    at.device[at.n++] = __builtin_ctzll(devices);
  return shard_new(st, g, &at);
}

bool is_detached_zero(const UOp *u) {
  while (op_flags((Ops)u->op) & OPF_MOV)
    u = u->src[0];
  return u->op == OPS_DETACH && u_is_number(u->src[0], 0);
}

/* ---- movement */
UOp *moved_back(Rewrite *rw, const UOp *copy, UOp *g) {
  uint64_t from = copy->src[0]->devices;
  if (g && (from & (from - 1))) return g->devices == from ? g : replicated(rw->st, g, from);
  Arg to = {.i = from ? __builtin_ctzll(from) : 0};
  return from && g ? uop_new(rw->st, OPS_COPY, (DType)g->dtype, 1, 1, &g, to) : g;
}

UOp *pull(Rewrite *rw, UOp *u, UOp *g) {
  UOpStore *st = rw->st;
  const Ints *s = u->src[0]->shape, *p = u->arg.ints;
  int64_t v[2 * TG_MAX_RANK];
  switch (u->op) {
  case OPS_RESHAPE: return s ? u_reshape(st, g, s->n, s->v) : NULL;
  case OPS_PERMUTE:
    for (int i = 0; i < s->n; i++)
      v[p->v[i]] = i;
    return u_permute(st, g, v);
  case OPS_EXPAND: return u_sum_to(st, g, s);
  case OPS_PAD:
    for (int i = 0; i < s->n; i++) {
      v[2 * i] = p->v[2 * i];
      v[2 * i + 1] = dim_add(st, p->v[2 * i], s->v[i]);
    }
    return u_shrink(st, g, v);
  case OPS_SHRINK:
    for (int i = 0; i < s->n; i++) {
      v[2 * i] = p->v[2 * i];
      v[2 * i + 1] = dim_sub(st, s->v[i], p->v[2 * i + 1]);
    }
    return u_pad(st, g, v);
  case OPS_FLIP: return u_flip(st, g, p->v);
  default: return NULL;
  }
}

static UOp *zero_if_not(Rewrite *rw, UOp *c, UOp *g) {
  return uop_where(rw->st, c, g, gradient_number(rw, g, 0));
}

UOp *gradient_of_reduce(Rewrite *rw, UOp *u, UOp *g) {
  UOpStore *st = rw->st;
  UOp *x = u->src[0];
  const Ints *axes = u->arg.reduce.axes;
  bool mask[TG_MAX_RANK] = {false};
  for (int i = 0; i < axes->n; i++)
    mask[axes->v[i]] = true;
  UOp *gx = u_expand(st, g, x->shape->v);
  DType d = (DType)u->dtype, acc = sum_dtype(d);
  switch (u->arg.reduce.op) {
  case OPS_ADD: return gx;
  case OPS_MAX: { /* equal maxima share */
    UOp *hit = uop_alu2(st, OPS_CMPEQ, x, u_expand(st, u, x->shape->v));
    UOp *count = uop_cast(st, u_reduce(st, OPS_ADD, uop_cast(st, hit, acc), mask), d);
    return zero_if_not(rw, hit, u_expand(st, uop_alu2(st, OPS_FDIV, g, count), x->shape->v));
  }
  case OPS_MUL: { /* the product of the others, also where one of them is 0 */
    UOp *is0 = uop_alu2(st, OPS_CMPEQ, x, gradient_number(rw, x, 0)),
        *safe = uop_where(st, is0, gradient_number(rw, x, 1), x);
    UOp *p = u_expand(st, u_reduce(st, OPS_MUL, safe, mask), x->shape->v);
    UOp *zeros =
        u_expand(st, uop_cast(st, u_reduce(st, OPS_ADD, uop_cast(st, is0, acc), mask), d), x->shape->v);
    UOp *none = uop_alu2(st, OPS_CMPEQ, zeros, gradient_number(rw, x, 0)),
        *one = uop_alu2(st, OPS_CMPEQ, zeros, gradient_number(rw, x, 1));
    UOp *only = uop_alu2(st, OPS_AND, one, is0);
    return uop_alu2(st, OPS_MUL, gx,
                    uop_where(st, none, uop_alu2(st, OPS_FDIV, p, safe), zero_if_not(rw, only, p)));
  }
  default:
    error_set(&((TgContext *)rw->ctx)->err, TG_ERR_INTERNAL, "gradient: a reduction by %s",
              op_name((Ops)u->arg.reduce.op));
    return NULL;
  }
}

/* ---- places named by data */
static UOp *zero_beside(Rewrite *rw, UOp *c, UOp *g) {
  return uop_where(rw->st, c, gradient_number(rw, g, 0), g);
}

static UOp *equal(Rewrite *rw, UOp *a, UOp *b) { return uop_alu2(rw->st, OPS_CMPEQ, a, b); }

/* One element of each row was taken: a comparison beats a scatter, and fuses with what the rows' other
 * gradients are. */
static UOp *one_of_row(Rewrite *rw, UOp *u, UOp *g) {
  const Ints *x = u->src[0]->shape, *s = u->shape;
  int axis = -1;
  if (x->n != s->n) return NULL;
  for (int d = 0; d < s->n; d++) {
    if (s->v[d] == x->v[d] && u_is_arange(u->src[1 + d], d)) continue;
    if (s->v[d] != 1 || axis >= 0) return NULL;
    axis = d;
  }
  if (axis < 0) return g;
  UOp *e = u_expand(rw->st, u->src[1 + axis], x->v),
      *at = e ? u_arange(rw->st, x, axis, dim_max(rw->st, x->v[axis]) > INT32_MAX ? DT_I64 : DT_I32) : NULL;
  if (!at) return NULL;
  DType wide = dtype_size((DType)e->dtype) < 4 ? DT_I32 : (DType)e->dtype;
  return zero_if_not(rw, equal(rw, uop_cast(rw->st, e, wide), uop_cast(rw->st, at, wide)),
                     u_expand(rw->st, g, x->v));
}

UOp *gradient_of_gather(Rewrite *rw, UOp *u, UOp *g) {
  UOp *row = one_of_row(rw, u, g);
  return row ? row : u_scatter(rw->st, OPS_ADD, 0, gradient_number(rw, u->src[0], 0), g, u->src + 1);
}

/* What a product gets: the product of the others. zeros and rest are the number of zeros in it and the
 * product of all else. */
static UOp *of_product(Rewrite *rw, UOp *x, UOp *zeros, UOp *rest, UOp *g) {
  UOp *zero = gradient_number(rw, x, 0), *one = gradient_number(rw, x, 1), *is0 = equal(rw, x, zero);
  UOp *others = uop_alu2(rw->st, OPS_FDIV, rest, uop_where(rw->st, is0, one, x));
  UOp *left = uop_alu2(rw->st, OPS_SUB, zeros, uop_cast(rw->st, is0, (DType)x->dtype));
  return zero_if_not(rw, equal(rw, left, zero), uop_alu2(rw->st, OPS_MUL, g, others));
}

typedef struct Product {
  UOp *zeros, *rest;
} Product;

static Product product_of(Rewrite *rw, UOp *u) { /* of a SCATTER by MUL, at each place */
  UOpStore *st = rw->st;
  UOp *t = u->src[0], *v = u->src[1], *t0 = equal(rw, t, gradient_number(rw, t, 0)),
      *v0 = equal(rw, v, gradient_number(rw, v, 0));
  UOp *tz = uop_cast(st, t0, (DType)t->dtype);
  return (Product){u_scatter(st, OPS_ADD, 0, tz, uop_cast(st, v0, (DType)v->dtype), u->src + 2),
                   u_scatter(st, OPS_MUL, 0, uop_where(st, t0, gradient_number(rw, t, 1), t),
                             uop_where(st, v0, gradient_number(rw, v, 1), v), u->src + 2)};
}

static UOp *share(Rewrite *rw, UOp *u, UOp *g) { /* equal maxima share */
  UOpStore *st = rw->st;
  UOp *hit = equal(rw, u->src[1], u_gather(st, u, u->src + 2));
  UOp *n = u_scatter(st, OPS_ADD, 0, uop_cast(st, equal(rw, u->src[0], u), (DType)u->dtype),
                     uop_cast(st, hit, (DType)u->dtype), u->src + 2);
  return uop_alu2(st, OPS_FDIV, g, n);
}

static bool differentiable(Rewrite *rw, const UOp *u, int64_t op) {
  if (u->arg.scatter.how & SCATTER_OLD) op = OPS_SINK; /* counts places, which are integers */
  if (op == OPS_ADD || op == OPS_MUL || op == OPS_MAX || op == OPS_STORE) return true;
  error_set(&((TgContext *)rw->ctx)->err, TG_ERR_INTERNAL, "gradient: a %s by %s", op_name((Ops)u->op),
            op_name((Ops)op));
  return false;
}

UOp *gradient_of_target(Rewrite *rw, UOp *u, UOp *g) {
  UOpStore *st = rw->st;
  UOp *const *at = u->src + 2;
  int64_t op = u->arg.scatter.op;
  if (!differentiable(rw, u, op)) return NULL;
  if (op == OPS_ADD) return g;
  if (op == OPS_MUL) {
    Product p = product_of(rw, u);
    return of_product(rw, u->src[0], p.zeros, p.rest, g);
  }
  if (op == OPS_MAX) return zero_if_not(rw, equal(rw, u->src[0], u), share(rw, u, g));
  return zero_beside(rw,
                     u_scatter(st, OPS_STORE, 0, u_full(st, DT_BOOL, (Scalar){.i = 0}, g->shape),
                               u_full(st, DT_BOOL, (Scalar){.i = 1}, u->src[1]->shape), at),
                     g);
}

UOp *gradient_of_scattered(Rewrite *rw, UOp *u, UOp *g) {
  UOpStore *st = rw->st;
  UOp *const *at = u->src + 2, *v = u->src[1];
  int64_t op = u->arg.scatter.op;
  if (!differentiable(rw, u, op)) return NULL;
  if (op == OPS_ADD || (u->arg.scatter.how & SCATTER_ONCE)) return u_gather(st, g, at);
  if (op == OPS_MUL) {
    Product p = product_of(rw, u);
    return of_product(rw, v, u_gather(st, p.zeros, at), u_gather(st, p.rest, at), u_gather(st, g, at));
  }
  if (op == OPS_MAX)
    return zero_if_not(rw, equal(rw, v, u_gather(st, u, at)), u_gather(st, share(rw, u, g), at));
  /* only the last one to a place is in the result */
  int64_t n = dim_product(st, v->shape);
  const Ints *flat = ints_get(st, 1, &n);
  UOp *id = flat ? u_reshape(st, u_arange(st, flat, 0, dim_max(st, n) > INT32_MAX ? DT_I64 : DT_I32),
                             v->shape->n, v->shape->v)
                 : NULL;
  UOp *none = id ? u_full(st, (DType)id->dtype, (Scalar){.i = -1}, g->shape) : NULL;
  return zero_if_not(rw, equal(rw, id, u_gather(st, u_scatter(st, OPS_STORE, 0, none, id, at), at)),
                     u_gather(st, g, at));
}

/* ---- running reductions */
static UOp *scan_back(Rewrite *rw, UOp *u, int axis) { /* the sum of what stands here and after */
  int64_t f[TG_MAX_RANK] = {0};
  f[axis] = 1;
  return u ? u_flip(rw->st, u_scan(rw->st, OPS_ADD, u_flip(rw->st, u, f), axis), f) : NULL;
}

UOp *gradient_of_scan(Rewrite *rw, UOp *u, UOp *g) {
  UOpStore *st = rw->st;
  UOp *x = u->src[0];
  int axis = (int)u->arg.reduce.axes->v[0];
  switch (u->arg.reduce.op) {
  case OPS_ADD: return scan_back(rw, g, axis);
  case OPS_MUL: { /* behind the first zero all is 0; at it, the product without it, until the next one */
    UOp *is0 = equal(rw, x, gradient_number(rw, x, 0)),
        *n = u_scan(st, OPS_ADD, uop_cast(st, is0, DT_I32), axis);
    UOp *first = n ? uop_alu2(st, OPS_AND, is0, equal(rw, n, u_num(st, 1, n))) : NULL,
        *one = gradient_number(rw, x, 1);
    UOp *without = scan_back(
        rw, uop_alu2(st, OPS_MUL, g, u_scan(st, OPS_MUL, uop_where(st, first, one, x), axis)), axis);
    UOp *with =
        uop_alu2(st, OPS_FDIV, scan_back(rw, uop_alu2(st, OPS_MUL, g, u), axis), uop_where(st, is0, one, x));
    return uop_where(st, first, without, with);
  }
  case OPS_MAX: { /* to the first that holds each maximum */
    UOp *at[TG_MAX_RANK];
    u_places(st, x->shape, axis, u_first_of_max(st, x, u, axis), at);
    return u_scatter(st, OPS_ADD, 0, gradient_number(rw, x, 0), g, at);
  }
  default:
    error_set(&((TgContext *)rw->ctx)->err, TG_ERR_INTERNAL, "gradient: a scan by %s",
              op_name((Ops)u->arg.reduce.op));
    return NULL;
  }
}

/* ---- assignment: what was stored gets the gradient of its places, what was there before keeps the rest */
static UOp *push(UOpStore *st, UOp *m, UOp *x) { /* movement m done to x */
  switch (m->op) {
  case OPS_RESHAPE: return u_reshape(st, x, m->shape->n, m->shape->v);
  case OPS_PERMUTE: return u_permute(st, x, m->arg.ints->v);
  case OPS_SHRINK: return u_shrink(st, x, m->arg.ints->v);
  case OPS_FLIP: return u_flip(st, x, m->arg.ints->v);
  case OPS_PAD: return u_pad(st, x, m->arg.ints->v);
  default: return NULL;
  }
}

/* The movements from what AFTER holds to what was stored to, last first. What it holds is on the way, or,
 * seen in another shape, all of the memory: *from is where the way begins. */
static bool path_of_view(Rewrite *rw, UOp *after, UOpVec *path, UOp **from) {
  for (UOp *v = *from = after->src[1]->src[0]; v != after->src[0] && v->op != OPS_BUFFER;
       v = *from = v->src[0])
    if (v->op != OPS_DETACH && !vec_push(rw->mem, path, v)) return false;
  return true;
}

UOp *gradient_of_stored(Rewrite *rw, UOp *after, UOp *g) {
  UOpVec path = {0};
  UOp *from, *r = path_of_view(rw, after, &path, &from) ? u_reshape(rw->st, g, from->shape->n, from->shape->v)
                                                        : NULL;
  for (size_t i = path.len; r && i-- > 0;)
    r = push(rw->st, path.at[i], r);
  vec_free(rw->mem, &path);
  return r;
}

UOp *gradient_of_rest(Rewrite *rw, UOp *after, UOp *g) {
  UOpVec path = {0};
  UOp *from,
      *mask = path_of_view(rw, after, &path, &from) ? gradient_number(rw, after->src[1]->src[0], 1) : NULL;
  for (size_t i = 0; mask && i < path.len; i++)
    mask = pull(rw, path.at[i], mask);
  vec_free(rw->mem, &path);
  mask = mask ? u_reshape(rw->st, mask, g->shape->n, g->shape->v) : NULL;
  return mask ? zero_if_not(rw, uop_alu2(rw->st, OPS_CMPEQ, mask, gradient_number(rw, mask, 0)), g) : NULL;
}
