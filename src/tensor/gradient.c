/* gradient.c: reverse-mode differentiation of the tensor graph; the gradient is another graph. What an op
 * passes on is its rule in rules/gradient.rules; here are the walk, and the functions that those rules name.
 * The graph is walked once, readers before sources, over a list: no recursion. Only nodes on a path from a
 * target to the root are visited by rules; gradients pass through floats alone. */
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

/* ---- a gradient that the user makes */
static bool custom_gradient(TgContext *ctx, UOp *u, UOp *g, UOp **part) {
  GradientHook *h = &ctx->hooks.at[u->arg.i];
  int n = u->nsrc - 1;
  TgTensor *y = tensor_new(ctx, u), *gy = tensor_new(ctx, g),
           **x = mem_alloc(&ctx->mem, (size_t)(2 * n + 1) * sizeof *x), **gx = x ? x + n : NULL;
  bool ok = y && gy && x;
  for (int i = 0; ok && i < n; i++)
    ok = (x[i] = tensor_new(ctx, u->src[i + 1])) != NULL;
  TgStatus s = ok ? h->fn(gy, y, x, n, gx, h->user) : TG_ERR_NOMEM;
  if (s) error_set(&ctx->err, s, "gradient: the function of a custom gradient failed");
  ok = !s && !ctx->err.status;
  for (int i = 0; ok && i < n; i++) {
    UOp *p = gx[i] ? gx[i]->uop : NULL;
    if (!p) continue;
    ok = gx[i]->ctx == ctx && p->shape == x[i]->uop->shape;
    if (!ok)
      error_set(&ctx->err, TG_ERR_SHAPE, "gradient: a custom gradient of shape %s for input %d of shape %s",
                shape_text(p->shape).s, i, SHAPE_OF(x[i]));
    else {
      part[i + 1] = uop_cast(ctx->store, p, dt(x[i]));
      ok = part[i + 1] != NULL;
    }
  }
  mem_free(&ctx->mem, x);
  return ok;
}

/* Each part of a value on several devices gets its part, where it is. */
static bool multi_gradient(TgContext *ctx, UOp *u, UOp *g, UOp **part) {
  Layout at = layout_of(u);
  UOp *split = shard_new(ctx->store, g, &at);
  bool ok = split != NULL;
  for (int i = 0; ok && i < at.n; i++)
    ok = (part[i] = exchange_part(ctx->store, split, i, at.device[i])) != NULL;
  return ok;
}

static bool same_hook(const GradientHook *h, TgGradientFn fn, const void *user, size_t own) {
  return h->fn == fn && h->own == own && (own ? !memcmp(h->user, user, own) : h->user == user);
}

/* The number of fn's hook with this user, which is copied if it has a size; -1: out of memory. */
static int64_t hook_of(TgContext *ctx, TgGradientFn fn, void *user, size_t own) {
  for (size_t at = 0; at < ctx->hooks.len; at++)
    if (same_hook(&ctx->hooks.at[at], fn, user, own)) return (int64_t)at;
  void *kept = own ? mem_alloc(&ctx->mem, own) : user;
  if (own && kept) memcpy(kept, user, own);
  if ((!own || kept) && vec_push(&ctx->mem, &ctx->hooks, ((GradientHook){fn, kept, own})))
    return (int64_t)ctx->hooks.len - 1;
  if (own) mem_free(&ctx->mem, kept);
  return -1;
}

TgTensor *with_gradient(TgTensor *y, TgTensor *const *x, int n, TgGradientFn fn, void *user, size_t own) {
  if (!y) return NULL;
  TgContext *ctx = y->ctx;
  TG_REQUIRE(ctx, fn && n >= 0 && n < 128, TG_ERR_VALUE, "custom_gradient: %d inputs%s", n,
             fn ? "" : ", no function");
  TG_LIST(ctx, "custom_gradient", x, n);
  UOp *src[128] = {y->uop};
  for (int i = 0; i < n; i++) {
    if (!ctx_two("custom_gradient", y, x[i])) return NULL;
    src[i + 1] = x[i]->uop;
  }
  int64_t at = hook_of(ctx, fn, user, own);
  TG_REQUIRE(ctx, at >= 0, TG_ERR_NOMEM, "custom_gradient: out of memory");
  return tensor_new(ctx, uop_new(ctx->store, OPS_CUSTOM_GRADIENT, dt(y), 1, n + 1, src, (Arg){.i = at}));
}

TgTensor *tg_custom_gradient(TgTensor *y, TgTensor *const *x, int n, TgGradientFn fn, void *user) {
  return with_gradient(y, x, n, fn, user, 0);
}

static TgStatus keep_gradient(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out,
                              void *user) {
  (void)y, (void)x, (void)n, (void)user;
  return (out[0] = tg_contiguous(g)) ? TG_OK : tg_error(g->ctx);
}

TgTensor *tg_contiguous_backward(TgTensor *x) {
  return x ? tg_custom_gradient(x, &x, 1, keep_gradient, NULL) : NULL;
}

/* u is a view of memory, or several are its parts: the first of them; NULL: neither. */
static UOp *first_memory(UOp *u) { return view_bottom(is_multi(u) ? u->src[0] : u); }

static bool in_memory(UOp *u) { return first_memory(u) != NULL; }

/* The same view of the same memory, of whatever versions. */
static bool same_place(const UOp *a, const UOp *b) {
  if (is_multi(a) || is_multi(b)) {
    bool same = a->op == b->op && a->nsrc == b->nsrc && a->arg.ints == b->arg.ints;
    for (int i = 0; same && i < a->nsrc; i++)
      same = a->src[i] == b->src[i] ||
             (in_memory(a->src[i]) && in_memory(b->src[i]) && same_place(a->src[i], b->src[i]));
    return same;
  }
  for (;; a = a->src[0], b = b->src[0]) {
    while (a->op == OPS_AFTER || a->op == OPS_DETACH)
      a = a->src[0];
    while (b->op == OPS_AFTER || b->op == OPS_DETACH)
      b = b->src[0];
    if (a->op != b->op) return false;
    if (a->op == OPS_BUFFER) return buffer_uid(a) == buffer_uid(b);
    if (a->arg.ints != b->arg.ints) return false;
  }
}

/* Views, found by the memory that they are of. */
typedef struct Views {
  UOpVec at;
  Vec(size_t) before; /* number + 1 of the one before it that is of the same memory; 0: there is none */
  Map last;           /* by uid: number + 1 of the last */
} Views;

static bool views_add(TgContext *ctx, Views *v, UOp *u) {
  uint64_t uid = (uint64_t)buffer_uid(first_memory(u)), before = 0;
  v->last.mem = &ctx->mem;
  map_get(&v->last, uid, &before);
  return vec_push(&ctx->mem, &v->at, u) && vec_push(&ctx->mem, &v->before, (size_t)before) &&
         map_put(&v->last, uid, v->at.len);
}

/* The last one of the memory that u is a view of, then v->before.at[number - 1]; 0: there is none. */
static size_t views_last(const Views *v, UOp *u) {
  uint64_t last = 0;
  if (v->at.len) map_get(&v->last, (uint64_t)buffer_uid(first_memory(u)), &last);
  return (size_t)last;
}

static void views_free(TgContext *ctx, Views *v) {
  vec_free(&ctx->mem, &v->at), vec_free(&ctx->mem, &v->before);
  if (v->last.mem) map_free(&v->last);
}

/* What gradients are asked for. */
typedef struct Targets {
  Map nodes; /* the targets and, of one in memory, the expression that it was computed by, where the root has it */
  Views views;
} Targets;

static bool is_target(const Targets *t, UOp *u) {
  if (map_get_ptr(&t->nodes, u)) return true;
  for (size_t i = in_memory(u) ? views_last(&t->views, u) : 0; i; i = t->views.before.at[i - 1])
    if (same_place(u, t->views.at.at[i - 1])) return true;
  return false;
}

/* What a value in memory was computed by; NULL: not known, or u is none. */
static UOp *past_of(TgContext *ctx, const UOp *u) {
  return u->op == OPS_BUFFER || is_multi(u) ? map_get_ptr(&ctx->history, u) : NULL;
}

/* All nodes that e is computed from, through whatever values in memory but those of the targets to stop at
 * (NULL: none), sources first. */
static bool way_back(TgContext *ctx, UOp *e, const Targets *stop, UOpVec *topo) {
  UOpVec roots = {0};
  bool ok = vec_push(&ctx->mem, &roots, e), grew = true;
  while (ok && grew) {
    grew = false;
    topo->len = 0;
    ok = uop_toposort(ctx->store, &ctx->mem, roots.at, roots.len, topo);
    for (size_t i = 0; ok && i < topo->len; i++) {
      UOp *before = past_of(ctx, topo->at[i]);
      if (before && stop && is_target(stop, topo->at[i])) before = NULL;
      for (size_t k = 0; before && k < roots.len; k++)
        if (roots.at[k] == before) before = NULL;
      if (before) grew = ok = vec_push(&ctx->mem, &roots, before);
    }
  }
  vec_free(&ctx->mem, &roots);
  return ok;
}

/* What the target u was computed by, where u is all of a value in memory and its computing is known. */
static UOp *target_past(TgContext *ctx, UOp *u) {
  UOp *held = is_multi(u) ? u : view_bottom(u), *e = held ? past_of(ctx, held) : NULL;
  return e && (u == held || u == u_reshape(ctx->store, held, e->shape->n, e->shape->v)) ? e : NULL;
}

/* A target that was built into the root as an expression and computed later is in memory now: the expression
 * in the root is the target as well. */
static bool targets_as_built(TgContext *ctx, Targets *t, UOp *root, int n, UOp *const *u) {
  UOpVec topo = {0};
  Map built;
  bool ok = true, any = false;
  map_init(&built, &ctx->mem);
  for (int i = 0; i < n && !any; i++)
    any = target_past(ctx, u[i]) != NULL;
  if (any) ok = way_back(ctx, root, t, &topo);
  for (size_t i = 0; ok && i < topo.len; i++)
    ok = map_put_ptr(&built, topo.at[i], topo.at[i]);
  for (int i = 0; ok && any && i < n; i++) {
    UOp *e = target_past(ctx, u[i]);
    if (e && map_get_ptr(&built, e)) ok = map_put_ptr(&t->nodes, e, e);
  }
  map_free(&built), vec_free(&ctx->mem, &topo);
  return ok;
}

static bool targets_index(TgContext *ctx, Targets *t, UOp *root, int n, UOp *const *u) {
  bool ok = true;
  map_init(&t->nodes, &ctx->mem);
  for (int i = 0; ok && i < n; i++)
    ok = map_put_ptr(&t->nodes, u[i], u[i]) && (!in_memory(u[i]) || views_add(ctx, &t->views, u[i]));
  return ok && targets_as_built(ctx, t, root, n, u);
}

static void targets_free(TgContext *ctx, Targets *t) { map_free(&t->nodes), views_free(ctx, &t->views); }

/* Whether a target stands on the way that e was computed by. */
static bool leads_to(TgContext *ctx, UOp *e, const Targets *targets) {
  UOpVec topo = {0};
  bool found = !way_back(ctx, e, NULL, &topo);
  for (size_t i = 0; i < topo.len && !found; i++)
    found = is_target(targets, topo.at[i]);
  vec_free(&ctx->mem, &topo);
  return found;
}

/* A value in memory that was computed from a target, as it was computed: in the root and in the targets. All
 * else stays memory. */
static bool histories_put(TgContext *ctx, int n, UOp **graph) {
  UOpVec topo = {0}, from = {0}, to = {0};
  TgMem *mem = &ctx->mem;
  bool ok = true, more = ctx->history.len > 0;
  while (ok && more) {
    topo.len = from.len = to.len = 0;
    ok = uop_toposort(ctx->store, mem, graph, (size_t)n, &topo);
    Targets targets = {0};
    ok = ok && targets_index(ctx, &targets, graph[0], n - 1, graph + 1);
    for (size_t i = 0; ok && i < topo.len; i++) {
      UOp *b = topo.at[i], *e = past_of(ctx, b);
      if (!e || !leads_to(ctx, e, &targets)) continue;
      if (is_multi(b)) {
        ok = vec_push(mem, &from, b) && vec_push(mem, &to, e);
        continue;
      }
      UOp *seen = u_reshape(ctx->store, b, e->shape->n, e->shape->v),
          *flat = u_reshape(ctx->store, e, 1, b->shape->v);
      ok = seen && flat && vec_push(mem, &from, seen) && vec_push(mem, &to, e);
      if (seen != b) ok = ok && vec_push(mem, &from, b) && vec_push(mem, &to, flat);
    }
    targets_free(ctx, &targets);
    more = from.len > 0;
    for (int i = 0; ok && more && i < n; i++)
      ok = (graph[i] = uop_substitute(ctx->store, mem, graph[i], (int)from.len, from.at, to.at)) != NULL;
  }
  vec_free(mem, &topo), vec_free(mem, &from), vec_free(mem, &to);
  return ok;
}

static int64_t version_of(const UOp *place) {
  int64_t stored = 0;
  if (is_multi(place)) place = place->src[0];
  for (; place->op != OPS_BUFFER; place = place->src[0])
    stored |= place->op == OPS_AFTER;
  return buffer_version(place) + stored;
}

/* The gradient of a target: of its own node, or, of a place, of the newest version that has one: it may have
 * been assigned to since, or between. */
static UOp *of_target(UOpStore *st, UOp *t, const Views *views, UOp *const *grad, uint32_t limit) {
  UOp *g = t->id < limit ? grad[t->id] : NULL;
  if (!in_memory(t)) return g;
  int64_t newest = -1;
  g = NULL;
  for (size_t i = views_last(views, t); i; i = views->before.at[i - 1]) {
    UOp *v = views->at.at[i - 1];
    if (!grad[v->id] || v->shape != t->shape || !same_place(v, t)) continue;
    int64_t version = version_of(v);
    if (version < newest) continue;
    g = version > newest ? grad[v->id] : uop_alu2(st, OPS_ADD, g, grad[v->id]);
    newest = version;
  }
  return g;
}

static UOp *sum_of(UOpStore *st, UOp *a, UOp *b) { return a ? uop_alu2(st, OPS_ADD, a, b) : b; }

/* Windows are several movements, whose gradients one by one would be sums over indices with divisions: they
 * are one step here, unless the gradient of one of them is asked for. */
static UOp *step_of_windows(UOpStore *st, UOp *u, UOp *g, const bool *wanted, UOp **of) {
  UOp *r = u_windows_gradient(st, u, g, of);
  for (UOp *v = u->src[0]; r && v != *of; v = v->src[0])
    if (wanted[v->id]) return NULL;
  return r;
}

/* What nobody named is a part of what reads it. */
static void origin_told(TgContext *ctx, const UOp *u, Origin *from) {
  Origin own = origin_find(ctx, NULL, u);
  if (own.place | own.path) from[u->id] = own;
  for (int s = 0; s < u->nsrc; s++)
    if (!(from[u->src[s]->id].place | from[u->src[s]->id].path)) from[u->src[s]->id] = from[u->id];
}

static bool gradient_walk(TgContext *ctx, UOp *root, UOp *seed, int n, UOp *const *targets, UOp **out) {
  TgMem *mem = &ctx->mem;
  Rewrite rw = {.st = ctx->store, .mem = mem, .ctx = ctx};
  UOpVec topo = {0};
  Views views = {0};
  uint32_t limit = store_id_limit(ctx->store);
  bool *needs = mem_alloc(mem, limit), *wanted = mem_alloc(mem, limit);
  UOp **grad = mem_alloc(mem, limit * sizeof *grad), *part[UINT8_MAX];
  Origin *from = ctx->origins.asked ? mem_alloc(mem, limit * sizeof *from) : NULL; /* readers tell sources */
  bool ok = needs && wanted && grad && uop_toposort(ctx->store, mem, &root, 1, &topo);
  for (size_t i = 0; ok && i < topo.len; i++)
    if (in_memory(topo.at[i]) && topo.at[i]->op != OPS_DETACH) ok = views_add(ctx, &views, topo.at[i]);
  for (int i = 0; ok && i < n; i++) {
    UOp *t = targets[i];
    out[i] = NULL;
    if (t->id < limit) wanted[t->id] = true;
    for (size_t k = in_memory(t) ? views_last(&views, t) : 0; k; k = views.before.at[k - 1]) {
      const UOp *v = views.at.at[k - 1];
      if (v->shape == t->shape && same_place(v, t)) wanted[v->id] = true;
    }
  }
  for (size_t i = 0; ok && i < topo.len; i++) {
    UOp *u = topo.at[i];
    bool need = wanted[u->id];
    for (int s = 0; s < u->nsrc && !need; s++)
      need = needs[u->src[s]->id];
    needs[u->id] = need && dtype_is_float((DType)u->dtype) && u->op != OPS_DETACH;
    if (wanted[u->id] && dtype_is_float((DType)u->dtype)) needs[u->id] = true;
  }
  if (ok) grad[root->id] = seed;
  for (size_t i = topo.len; ok && i-- > 0;) {
    UOp *u = topo.at[i], *g = grad[u->id];
    bool below = false;
    for (int s = 0; s < u->nsrc; s++)
      below = below || needs[u->src[s]->id];
    if (from) origin_told(ctx, u, from);
    if (!g || !below || u->op == OPS_DETACH) continue;
    UOp *of, *windows = step_of_windows(rw.st, u, g, wanted, &of);
    if (windows) {
      if (needs[of->id]) ok = (grad[of->id] = sum_of(rw.st, grad[of->id], windows)) != NULL;
      if (from) origin_of_gradient(ctx, windows, from[u->id]);
      continue;
    }
    if (u->nsrc <= TG_COUNT(part)) memset(part, 0, u->nsrc * sizeof *part);
    int done = u->nsrc > TG_COUNT(part)       ? -1
               : u->op == OPS_CUSTOM_GRADIENT ? custom_gradient(ctx, u, g, part)
               : is_multi(u)                  ? multi_gradient(ctx, u, g, part)
                                              : gradient_rule(&rw, u, g, part);
    if (done < 0) {
      error_set(&ctx->err, TG_ERR_INTERNAL, "gradient: none is known for %s", op_name((Ops)u->op));
      ok = false;
      break;
    }
    ok = done == 1;
    for (int s = 0; ok && s < u->nsrc; s++) {
      UOp *x = u->src[s];
      if (!part[s] || !needs[x->id]) continue;
      ok = (grad[x->id] = sum_of(rw.st, grad[x->id], part[s])) != NULL;
      if (from) origin_of_gradient(ctx, part[s], from[u->id]);
    }
  }
  for (int i = 0; ok && i < n; i++)
    out[i] = of_target(rw.st, targets[i], &views, grad, limit);
  mem_free(mem, needs), mem_free(mem, wanted), mem_free(mem, grad), mem_free(mem, from);
  vec_free(mem, &topo), views_free(ctx, &views);
  if (!ok) error_set(&ctx->err, TG_ERR_NOMEM, "gradient: out of memory");
  return ok;
}

/* Whether something in the graph was computed in a way that is not known any more: then no gradient does not
 * mean that there is none. */
static bool past_forgotten(TgContext *ctx, UOp *root, int target) {
  UOpVec topo = {0};
  bool forgotten = !way_back(ctx, root, NULL, &topo);
  for (size_t i = 0; i < topo.len && !forgotten; i++) {
    Buffer *b = topo.at[i]->op == OPS_BUFFER ? buffer_get(ctx, topo.at[i]) : NULL;
    forgotten = b && b->forgotten;
  }
  vec_free(&ctx->mem, &topo);
  if (forgotten)
    error_set(&ctx->err, TG_ERR_STATE,
              "gradient: whether the loss depends on target %d is not known: it goes through many values "
              "that were computed one by one; "
              "call tg_requires_grad on the target before",
              target);
  return forgotten;
}

bool gradient_of(TgContext *ctx, UOp *root, UOp *seed, int n, UOp *const *targets, UOp **out, bool strict) {
  UOp **graph = mem_alloc(&ctx->mem, ((size_t)n + 1) * sizeof *graph);
  bool ok = graph != NULL;
  if (ok) {
    graph[0] = root;
    memcpy(graph + 1, targets, (size_t)n * sizeof *graph);
  }
  ok = ok && histories_put(ctx, n + 1, graph);
  if (!ok) error_set(&ctx->err, TG_ERR_NOMEM, "gradient: out of memory");
  ok = ok && gradient_walk(ctx, graph[0], seed, n, graph + 1, out);
  for (int i = 0; ok && strict && i < n; i++)
    ok = out[i] || !past_forgotten(ctx, graph[0], i);
  mem_free(&ctx->mem, graph);
  return ok;
}

/* ---- the API */
/* What the walk starts with: the seed, or 1 for a loss of one element. */
static TgStatus seed_check(const char *op, TgTensor *y, TgTensor *seed, UOp **out) {
  TgContext *ctx = y->ctx;
  TG_REQUIRE_OR(ctx, dtype_is_float(dt(y)), TG_ERR_DTYPE, TG_ERR_DTYPE, "%s: the loss is %s, not a float", op,
                dtype_name(dt(y)));
  if (!seed) {
    TG_REQUIRE_OR(ctx, nelem(y) == 1, TG_ERR_SHAPE, TG_ERR_SHAPE,
                  "%s: the loss has shape %s, not one element", op, SHAPE_OF(y));
    *out = u_num(ctx->store, 1, y->uop);
  } else {
    if (!ctx_two(op, y, seed)) return ctx->err.status;
    TG_REQUIRE_OR(ctx, seed->uop->shape == y->uop->shape, TG_ERR_SHAPE, TG_ERR_SHAPE,
                  "%s: a gradient of shape %s for a loss of shape %s", op, SHAPE_OF(seed), SHAPE_OF(y));
    *out = uop_cast(ctx->store, seed->uop, dt(y));
  }
  return *out ? TG_OK : error_set(&ctx->err, TG_ERR_NOMEM, "%s: out of memory", op);
}

static TgStatus gradients(TgTensor *loss, TgTensor *given, TgTensor *const *targets, int n, TgTensor **out) {
  TgContext *ctx = loss->ctx;
  UOp *seed;
  TG_REQUIRE_OR(ctx, n >= 0 && (n == 0 || (targets && out)), TG_ERR_VALUE, TG_ERR_VALUE,
                "gradient: %d targets", n);
  TgStatus s = seed_check("gradient", loss, given, &seed);
  if (s) return s;
  UOp **t = mem_alloc(&ctx->mem, ((size_t)n * 2 + 1) * sizeof *t), **g = t + n;
  if (!t) return error_set(&ctx->err, TG_ERR_NOMEM, "gradient: out of memory");
  for (int i = 0; !s && i < n; i++) {
    out[i] = NULL;
    if (!targets[i] || targets[i]->ctx != ctx)
      s = error_set(&ctx->err, TG_ERR_VALUE, "gradient: target %d is NULL or of another context", i);
    else if (!dtype_is_float(dt(targets[i])))
      s = error_set(&ctx->err, TG_ERR_DTYPE, "gradient: target %d is %s, not a float", i,
                    dtype_name(dt(targets[i])));
    else
      t[i] = targets[i]->uop;
  }
  if (!s && !gradient_of(ctx, loss->uop, seed, n, t, g, true)) s = ctx->err.status;
  for (int i = 0; !s && i < n; i++) {
    gradient_named(ctx, g[i], targets[i]);
    out[i] = g[i] ? tensor_new(ctx, g[i]) : tg_zeros_like(targets[i]);
    if (!out[i]) s = ctx->err.status;
  }
  mem_free(&ctx->mem, t);
  return s;
}

TgStatus tg_gradient(TgTensor *loss, TgTensor *const *targets, int n, TgTensor **out) {
  return loss ? gradients(loss, NULL, targets, n, out) : TG_ERR_VALUE;
}

TgStatus tg_vjp(TgTensor *y, TgTensor *g, TgTensor *const *targets, int n, TgTensor **out) {
  return y && g ? gradients(y, g, targets, n, out) : TG_ERR_VALUE;
}

TgStatus tg_backward_opt(TgTensor *loss, const TgGradientOptions *opt) {
  if (!loss) return TG_ERR_VALUE;
  TG_OPTIONS_OR(tg_context(loss), "backward", TgGradientOptions, o, opt, TG_ERR_VALUE);
  TgContext *ctx = loss->ctx;
  UOp *seed;
  TgStatus s = seed_check("backward", loss, o.gradient, &seed);
  if (s) return s;
  Vec(TgTensor *) params = {0};
  bool ok = true;
  for (size_t i = 0; i <= ctx->scopes.len; i++)
    for (TgTensor *t = i < ctx->scopes.len ? ctx->scopes.at[i].tensors : ctx->kept; ok && t; t = t->next)
      if (t->requires_grad) ok = vec_push(&ctx->mem, &params, t);
  UOp **u = ok ? mem_alloc(&ctx->mem, (params.len ? params.len : 1) * 2 * sizeof *u) : NULL,
      **g = u ? u + params.len : NULL;
  if (!u) s = error_set(&ctx->err, TG_ERR_NOMEM, "backward: out of memory");
  for (size_t i = 0; !s && i < params.len; i++)
    u[i] = params.at[i]->uop;
  if (!s && !gradient_of(ctx, loss->uop, seed, (int)params.len, u, g, false)) s = ctx->err.status;
  bool any = false;
  for (size_t i = 0; !s && i < params.len; i++) {
    if (!g[i]) continue;
    any = true;
    gradient_named(ctx, g[i], params.at[i]);
    TgTensor *t = params.at[i], *old = t->grad, *now = tensor_new(ctx, g[i]);
    if (old && now) {
      UOp *sum = uop_alu2(ctx->store, OPS_ADD, old->uop, g[i]);
      if (sum)
        tensor_set(now, sum);
      else
        now = NULL;
      old->grad_of = NULL;
    }
    if (!now) {
      s = error_set(&ctx->err, TG_ERR_NOMEM, "backward: out of memory");
      break;
    }
    t->grad = now;
    now->grad_of = t;
  }
  if (!s && !any)
    s = error_set(&ctx->err, TG_ERR_STATE,
                  "backward: the loss depends on no tensor that requires a gradient");
  if (!s) pending_add(loss);
  mem_free(&ctx->mem, u);
  vec_free(&ctx->mem, &params);
  return s ? s : TG_OK;
}

TgTensor *tg_grad(const TgTensor *t) { return t ? t->grad : NULL; }

void tg_zero_grad(TgTensor *t) {
  if (!t || !t->grad) return;
  t->grad->grad_of = NULL;
  t->grad = NULL;
}
