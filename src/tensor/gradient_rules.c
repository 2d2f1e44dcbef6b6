/* gradient_rules.c: the functions that rules/gradient.rules names. In: a node, and the gradient of its
 * value. Out: the gradient of one of its sources, as nodes. */
#include "tensor/front.h"
#include "tensor/gradient.h"
#include "tensor/multi.h"

UOp *gradient_number(Rewrite *rw, const UOp *like, double v) { return u_num(rw->st, v, (UOp *)like); }

/* Places a gradient on the devices of x, which is on several. How x is split is found by the rules of what
 * reads the gradient. */
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

static UOp *equal(Rewrite *rw, UOp *a, UOp *b) { return uop_alu2(rw->st, OPS_CMPEQ, a, b); }

/* ---- products: the gradient of a factor has the product of the other factors */
/* zeros and rest: for each place of x, the number of zeros in its product and the product of everything
 * else. sum, if any: the sum of these zeros. It is 0, but its gradient is what a zero among the other
 * factors gets. */
static UOp *of_product(Rewrite *rw, UOp *x, UOp *zeros, UOp *rest, UOp *sum, UOp *g) {
  UOpStore *st = rw->st;
  UOp *zero = gradient_number(rw, x, 0), *one = gradient_number(rw, x, 1), *is0 = equal(rw, x, zero);
  UOp *others = uop_alu2(st, OPS_MUL, g, uop_alu2(st, OPS_FDIV, rest, uop_where(st, is0, one, x)));
  UOp *left = uop_alu2(st, OPS_SUB, zeros, uop_cast(st, is0, (DType)x->dtype));
  UOp *r = zero_if_not(rw, equal(rw, left, zero), others);
  if (!sum) return r;
  UOp *other = uop_alu2(st, OPS_SUB, sum, zero_if_not(rw, is0, x));
  return uop_where(st, equal(rw, left, one), uop_alu2(st, OPS_MUL, others, other), r);
}

static TgStatus pass_gradient(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out,
                              void *user) {
  (void)y, (void)x, (void)n, (void)user;
  out[0] = g;
  return TG_OK;
}

/* Dividing by a factor that is not 0 computes the product of the others in few steps, but its own gradient
 * is wrong where there are zeros. So the result is `fast` and is differentiated as `exact`, which equals
 * it and is computed only if it is differentiated again. */
static UOp *differentiated_as(Rewrite *rw, UOp *fast, UOp *exact) {
  TgContext *ctx = rw->ctx;
  TgTensor *y = tensor_new(ctx, fast), *x = tensor_new(ctx, exact);
  y = x ? with_gradient(y, &x, 1, pass_gradient, NULL, 0) : NULL;
  return y ? y->uop : NULL;
}

static UOp *flip_axis(Rewrite *rw, UOp *u, int axis) {
  int64_t f[TG_MAX_RANK] = {0};
  f[axis] = 1;
  return u ? u_flip(rw->st, u, f) : NULL;
}

/* Returns the product of the elements before each place along the axis. */
static UOp *product_before(Rewrite *rw, UOp *x, int axis) {
  UOpStore *st = rw->st;
  UOp *one = gradient_number(rw, x, 1),
      *first = uop_alu2(st, OPS_SUB, one, u_later(st, one, axis, 1)); /* 1, 0, 0, .. */
  return u_scan(st, OPS_MUL, uop_alu2(st, OPS_ADD, u_later(st, x, axis, 1), first), axis);
}

/* Returns g times the product of the others over the axes. It stays right however often it is
 * differentiated. */
static UOp *times_others(Rewrite *rw, UOp *x, const Ints *axes, UOp *g) {
  UOpStore *st = rw->st;
  bool mask[TG_MAX_RANK] = {false};
  for (int i = 0; i < axes->n; i++)
    mask[axes->v[i]] = true;
  for (int i = axes->n; g && i-- > 0;) {
    int axis = (int)axes->v[i];
    mask[axis] = false;
    UOp *p = u_reduce(st, OPS_MUL, x, mask), *back = flip_axis(rw, p, axis);
    if (!back) return NULL;
    g = uop_alu2(st, OPS_MUL, u_expand(st, g, p->shape->v), product_before(rw, p, axis));
    g = uop_alu2(st, OPS_MUL, g, flip_axis(rw, product_before(rw, back, axis), axis));
  }
  return g;
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
  case OPS_MAX: { /* equal maxima share the gradient */
    UOp *hit = equal(rw, x, u_expand(st, u, x->shape->v));
    UOp *count = uop_cast(st, u_reduce(st, OPS_ADD, uop_cast(st, hit, acc), mask), d);
    return zero_if_not(rw, hit, u_expand(st, uop_alu2(st, OPS_FDIV, g, count), x->shape->v));
  }
  case OPS_MUL: {
    UOp *is0 = equal(rw, x, gradient_number(rw, x, 0)),
        *safe = uop_where(st, is0, gradient_number(rw, x, 1), x),
        *zeros = uop_cast(st, u_reduce(st, OPS_ADD, uop_cast(st, is0, acc), mask), d);
    return differentiated_as(rw,
                             of_product(rw, x, u_expand(st, zeros, x->shape->v),
                                        u_expand(st, u_reduce(st, OPS_MUL, safe, mask), x->shape->v), NULL,
                                        gx),
                             times_others(rw, x, axes, g));
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

/* Handles a gather of one element of each row. A comparison is faster than a scatter, and fuses with the
 * rows' other gradients. */
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

/* The gradient of u, a SCATTER by MUL, with respect to x: the target, or, if `at` is given, what is
 * scattered. It can be differentiated twice: a third derivative is 0 where three zeros meet. */
static UOp *of_scattered_product(Rewrite *rw, UOp *u, UOp *x, UOp *const *at, UOp *g) {
  UOpStore *st = rw->st;
  UOp *in[3][2]; /* zeros; what is not 0; zeros as they are: for the target, and for what is scattered */
  for (int i = 0; i < 2; i++) {
    UOp *v = u->src[i], *is0 = equal(rw, v, gradient_number(rw, v, 0));
    in[0][i] = uop_cast(st, is0, (DType)v->dtype);
    in[1][i] = uop_where(st, is0, gradient_number(rw, v, 1), v);
    in[2][i] = zero_if_not(rw, is0, v);
  }
  UOp *all[3];
  for (int k = 0; k < 3; k++) {
    all[k] = u_scatter(st, k == 1 ? OPS_MUL : OPS_ADD, 0, in[k][0], in[k][1], u->src + 2);
    if (at) all[k] = u_gather(st, all[k], at);
  }
  return differentiated_as(rw, of_product(rw, x, all[0], all[1], NULL, g),
                           of_product(rw, x, all[0], all[1], all[2], g));
}

/* Divides the gradient among equal maxima. */
static UOp *share(Rewrite *rw, UOp *u, UOp *g) {
  UOpStore *st = rw->st;
  UOp *hit = equal(rw, u->src[1], u_gather(st, u, u->src + 2));
  UOp *n = u_scatter(st, OPS_ADD, 0, uop_cast(st, equal(rw, u->src[0], u), (DType)u->dtype),
                     uop_cast(st, hit, (DType)u->dtype), u->src + 2);
  return uop_alu2(st, OPS_FDIV, g, n);
}

static bool differentiable(Rewrite *rw, const UOp *u, int64_t op) {
  if (u->arg.scatter.how & SCATTER_OLD) op = OPS_SINK; /* it counts places, which are integers */
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
  if (op == OPS_MUL) return of_scattered_product(rw, u, u->src[0], NULL, g);
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
  if (op == OPS_MUL) return of_scattered_product(rw, u, v, at, u_gather(st, g, at));
  if (op == OPS_MAX)
    return zero_if_not(rw, equal(rw, v, u_gather(st, u, at)), u_gather(st, share(rw, u, g), at));
  /* Only the last element stored to a place is in the result. */
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
/* Returns the sum of the elements here and after. */
static UOp *scan_back(Rewrite *rw, UOp *u, int axis) {
  return flip_axis(rw, u_scan(rw->st, OPS_ADD, flip_axis(rw, u, axis), axis), axis);
}

/* The gradient of a running product, which stays right however often it is differentiated: the product of
 * all elements before, times s, where s = g + (the next factor) * (the next s). It is computed backwards
 * by doubling, over 1, 2, 4, .. places. */
static UOp *exact_of_products(Rewrite *rw, UOp *x, int axis, UOp *g) {
  UOpStore *st = rw->st;
  UOp *s = flip_axis(rw, g, axis), *by = u_later(st, flip_axis(rw, x, axis), axis, 1);
  for (int64_t step = 1, n = dim_max(st, x->shape->v[axis]); step < n; step *= 2) {
    s = uop_alu2(st, OPS_ADD, s, uop_alu2(st, OPS_MUL, by, u_later(st, s, axis, step)));
    by = uop_alu2(st, OPS_MUL, by, u_later(st, by, axis, step));
  }
  return uop_alu2(st, OPS_MUL, product_before(rw, x, axis), flip_axis(rw, s, axis));
}

UOp *gradient_of_scan(Rewrite *rw, UOp *u, UOp *g) {
  UOpStore *st = rw->st;
  UOp *x = u->src[0];
  int axis = (int)u->arg.reduce.axes->v[0];
  switch (u->arg.reduce.op) {
  case OPS_ADD: return scan_back(rw, g, axis);
  /* after the first zero all products are 0; at it, use the product without it, up to the next zero */
  case OPS_MUL: {
    UOp *is0 = equal(rw, x, gradient_number(rw, x, 0)),
        *n = u_scan(st, OPS_ADD, uop_cast(st, is0, DT_I32), axis);
    UOp *first = n ? uop_alu2(st, OPS_AND, is0, equal(rw, n, u_num(st, 1, n))) : NULL,
        *one = gradient_number(rw, x, 1);
    UOp *without = scan_back(
        rw, uop_alu2(st, OPS_MUL, g, u_scan(st, OPS_MUL, uop_where(st, first, one, x), axis)), axis);
    UOp *with =
        uop_alu2(st, OPS_FDIV, scan_back(rw, uop_alu2(st, OPS_MUL, g, u), axis), uop_where(st, is0, one, x));
    return differentiated_as(rw, uop_where(st, first, without, with), exact_of_products(rw, x, axis, g));
  }
  case OPS_MAX: { /* passes to the first element that holds each maximum */
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

/* ---- assignment: what was stored gets the gradient of its places, and what was there before gets the
 * rest */
/* Applies movement m to x. */
static UOp *push(UOpStore *st, UOp *m, UOp *x) {
  switch (m->op) {
  case OPS_RESHAPE: return u_reshape(st, x, m->shape->n, m->shape->v);
  case OPS_PERMUTE: return u_permute(st, x, m->arg.ints->v);
  case OPS_SHRINK: return u_shrink(st, x, m->arg.ints->v);
  case OPS_FLIP: return u_flip(st, x, m->arg.ints->v);
  case OPS_PAD: return u_pad(st, x, m->arg.ints->v);
  default: return NULL;
  }
}

/* Lists the movements from what AFTER holds to what was stored to, last first. The walk ends at the node
 * that AFTER holds, or at the whole memory if that is seen in another shape. *from is where it ends. */
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

/* Finds the same path, and returns a mask with 1 at the places of *from that were stored to and 0 at all
 * others. */
static UOp *mask_of_stored(Rewrite *rw, UOp *after, UOpVec *path, UOp **from) {
  bool ok = path_of_view(rw, after, path, from);
  UOp *mask = ok ? gradient_number(rw, after->src[1]->src[0], 1) : NULL;
  for (size_t i = 0; mask && i < path->len; i++)
    mask = pull(rw, path->at[i], mask);
  return mask;
}

/* Returns `rest` where the mask is 0, and `stored` elsewhere. */
static UOp *rest_where(Rewrite *rw, UOp *mask, UOp *rest, UOp *stored) {
  return uop_where(rw->st, equal(rw, mask, gradient_number(rw, mask, 0)), rest, stored);
}

UOp *gradient_of_rest(Rewrite *rw, UOp *after, UOp *g) {
  UOpVec path = {0};
  UOp *from, *mask = mask_of_stored(rw, after, &path, &from);
  vec_free(rw->mem, &path);
  mask = mask ? u_reshape(rw->st, mask, g->shape->n, g->shape->v) : NULL;
  return mask ? rest_where(rw, mask, g, gradient_number(rw, g, 0)) : NULL;
}

UOp *stored_as_value(Rewrite *rw, UOp *after) {
  UOpVec path = {0};
  UOp *from, *mask = mask_of_stored(rw, after, &path, &from), *value = mask ? after->src[1]->src[1] : NULL;
  for (size_t i = 0; value && i < path.len; i++)
    value = pull(rw, path.at[i], value);
  if (value && path.len)
    value = rest_where(rw, mask, u_reshape(rw->st, after->src[0], from->shape->n, from->shape->v), value);
  vec_free(rw->mem, &path);
  return value ? u_reshape(rw->st, value, after->shape->n, after->shape->v) : NULL;
}
