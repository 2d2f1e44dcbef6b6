/* gradient.c: reverse-mode differentiation of the tensor graph. One rule per op, in a table; the gradient is another graph.
 * The graph is walked once, readers before sources, over a list: no recursion. Only nodes on a path from a target to the root are
 * visited by rules; gradients pass through floats alone. */
#include "tensor/front.h"

typedef struct Grad { TgContext *ctx; UOpStore *st; } Grad;
/* Writes to out[i] the gradient of source i, or leaves NULL for none. False: out of memory. */
typedef bool (*GradRule)(Grad *r, UOp *u, UOp *g, UOp **out);

static UOp *num(Grad *r, double v, UOp *like) { return u_num(r->st, v, like); }
static UOp *mul(Grad *r, UOp *a, UOp *b) { return uop_alu2(r->st, OPS_MUL, a, b); }
static UOp *scale(Grad *r, UOp *a, double v) { return mul(r, a, num(r, v, a)); }
static UOp *neg(Grad *r, UOp *a) { return uop_alu1(r->st, OPS_NEG, a); }
static UOp *quo(Grad *r, UOp *a, UOp *b) { return uop_alu2(r->st, OPS_FDIV, a, b); }

/* ---- movement: the transposed movement. `pull` serves the rules and slices of assignments. */
static UOp *pull(UOpStore *st, UOp *u, UOp *g) {
  const Ints *s = u->src[0]->shape, *p = u->arg.ints;
  int64_t v[2 * TG_MAX_RANK];
  switch (u->op) {
  case OPS_RESHAPE: return s ? u_reshape(st, g, s->n, s->v) : NULL;
  case OPS_PERMUTE: for (int i = 0; i < s->n; i++) v[p->v[i]] = i; return u_permute(st, g, v);
  case OPS_EXPAND: return u_sum_to(st, g, s);
  case OPS_PAD: for (int i = 0; i < s->n; i++) v[2 * i] = p->v[2 * i], v[2 * i + 1] = p->v[2 * i] + s->v[i]; return u_shrink(st, g, v);
  case OPS_SHRINK: for (int i = 0; i < s->n; i++) v[2 * i] = p->v[2 * i], v[2 * i + 1] = s->v[i] - p->v[2 * i + 1]; return u_pad(st, g, v);
  case OPS_FLIP: return u_flip(st, g, p->v);
  default: return NULL;
  }
}
static bool g_move(Grad *r, UOp *u, UOp *g, UOp **out) { return (out[0] = pull(r->st, u, g)) != NULL; }
static bool g_pass(Grad *r, UOp *u, UOp *g, UOp **out) { (void)r, (void)u; return (out[0] = g) != NULL; }
static bool g_cast(Grad *r, UOp *u, UOp *g, UOp **out) {
  return !dtype_is_float((DType)u->src[0]->dtype) || (out[0] = uop_cast(r->st, g, (DType)u->src[0]->dtype)) != NULL;
}

/* ---- reductions */
static UOp *zero_if_not(Grad *r, UOp *c, UOp *g) { return uop_where(r->st, c, g, num(r, 0, g)); }
static bool g_reduce(Grad *r, UOp *u, UOp *g, UOp **out) {
  UOpStore *st = r->st;
  UOp *x = u->src[0];
  const Ints *axes = u->arg.reduce.axes;
  bool mask[TG_MAX_RANK] = {false};
  for (int i = 0; i < axes->n; i++) mask[axes->v[i]] = true;
  UOp *gx = u_expand(st, g, x->shape->v);
  DType d = (DType)u->dtype, acc = sum_dtype(d);
  switch (u->arg.reduce.op) {
  case OPS_ADD: out[0] = gx; break;
  case OPS_MAX: {                                            /* equal maxima share */
    UOp *hit = uop_alu2(st, OPS_CMPEQ, x, u_expand(st, u, x->shape->v));
    UOp *count = uop_cast(st, u_reduce(st, OPS_ADD, uop_cast(st, hit, acc), mask), d);
    out[0] = zero_if_not(r, hit, u_expand(st, quo(r, g, count), x->shape->v));
    break;
  }
  case OPS_MUL: {                                            /* the product of the others, also where one of them is 0 */
    UOp *is0 = uop_alu2(st, OPS_CMPEQ, x, num(r, 0, x)), *safe = uop_where(st, is0, num(r, 1, x), x);
    UOp *p = u_expand(st, u_reduce(st, OPS_MUL, safe, mask), x->shape->v);
    UOp *zeros = u_expand(st, uop_cast(st, u_reduce(st, OPS_ADD, uop_cast(st, is0, acc), mask), d), x->shape->v);
    UOp *none = uop_alu2(st, OPS_CMPEQ, zeros, num(r, 0, x)), *one = uop_alu2(st, OPS_CMPEQ, zeros, num(r, 1, x));
    UOp *only = uop_alu2(st, OPS_AND, one, is0);
    out[0] = mul(r, gx, uop_where(st, none, quo(r, p, safe), zero_if_not(r, only, p)));
    break;
  }
  default: error_set(&r->ctx->err, TG_ERR_INTERNAL, "gradient: a reduction by %s", op_name((Ops)u->arg.reduce.op)); return false;
  }
  return out[0] != NULL;
}

/* ---- elementwise */
static bool g_neg(Grad *r, UOp *u, UOp *g, UOp **out) { (void)u; return (out[0] = neg(r, g)) != NULL; }
static bool g_exp(Grad *r, UOp *u, UOp *g, UOp **out) { return (out[0] = mul(r, g, u)) != NULL; }
static bool g_exp2(Grad *r, UOp *u, UOp *g, UOp **out) { return (out[0] = scale(r, mul(r, g, u), 0.69314718055994530942)) != NULL; }
static bool g_log(Grad *r, UOp *u, UOp *g, UOp **out) { return (out[0] = quo(r, g, u->src[0])) != NULL; }
static bool g_log2(Grad *r, UOp *u, UOp *g, UOp **out) {
  return (out[0] = scale(r, quo(r, g, u->src[0]), 1.44269504088896340736)) != NULL;
}
static bool g_sin(Grad *r, UOp *u, UOp *g, UOp **out) {
  UOp *x = u->src[0];
  return (out[0] = mul(r, g, uop_alu1(r->st, OPS_SIN, uop_alu2(r->st, OPS_SUB, num(r, 1.57079632679489661923, x), x)))) != NULL;
}
static bool g_sqrt(Grad *r, UOp *u, UOp *g, UOp **out) { return (out[0] = quo(r, g, scale(r, u, 2))) != NULL; }
static bool g_recip(Grad *r, UOp *u, UOp *g, UOp **out) { return (out[0] = neg(r, mul(r, g, mul(r, u, u)))) != NULL; }
static bool g_none(Grad *r, UOp *u, UOp *g, UOp **out) { (void)r, (void)u, (void)g, (void)out; return true; }
static bool g_add(Grad *r, UOp *u, UOp *g, UOp **out) { (void)r, (void)u; return (out[0] = out[1] = g) != NULL; }
static bool g_sub(Grad *r, UOp *u, UOp *g, UOp **out) { (void)u; out[0] = g; return (out[1] = neg(r, g)) != NULL; }
static bool g_mul(Grad *r, UOp *u, UOp *g, UOp **out) {
  out[0] = mul(r, g, u->src[1]), out[1] = mul(r, g, u->src[0]);
  return out[0] && out[1];
}
static bool g_fdiv(Grad *r, UOp *u, UOp *g, UOp **out) {
  out[0] = quo(r, g, u->src[1]), out[1] = neg(r, mul(r, out[0], u));      /* -(g/b) (a/b) */
  return out[0] && out[1];
}
static bool g_mulacc(Grad *r, UOp *u, UOp *g, UOp **out) { out[2] = g; return g_mul(r, u, g, out); }
static bool g_max(Grad *r, UOp *u, UOp *g, UOp **out) {
  UOp *tie = scale(r, zero_if_not(r, uop_alu2(r->st, OPS_CMPEQ, u->src[0], u->src[1]), g), 0.5);
  for (int i = 0; i < 2; i++) {
    UOp *x = u->src[i], *y = u->src[1 - i], *wins = uop_alu2(r->st, OPS_CMPLT, y, x);
    /* relu: nothing passes at 0 */
    out[i] = u_is_number(y, 0) ? zero_if_not(r, wins, g) : uop_where(r->st, wins, g, tie);
    if (!out[i]) return false;
  }
  return true;
}
static bool g_pow(Grad *r, UOp *u, UOp *g, UOp **out) {
  UOp *x = u->src[0], *y = u->src[1], *zero = num(r, 0, x), *one = num(r, 1, x);
  UOp *y0 = uop_alu2(r->st, OPS_CMPEQ, y, zero), *x0 = uop_alu2(r->st, OPS_CMPEQ, x, zero);
  UOp *less = uop_alu2(r->st, OPS_POW, x, uop_alu2(r->st, OPS_SUB, y, one));
  out[0] = mul(r, g, uop_where(r->st, y0, zero, mul(r, y, less)));
  UOp *ln = uop_alu1(r->st, OPS_LOG, uop_where(r->st, x0, one, x));      /* 0 to a positive power stays 0 */
  out[1] = mul(r, g, mul(r, u, ln));
  return out[0] && out[1];
}
static bool g_where(Grad *r, UOp *u, UOp *g, UOp **out) {
  UOp *zero = num(r, 0, g);
  out[1] = uop_where(r->st, u->src[0], g, zero), out[2] = uop_where(r->st, u->src[0], zero, g);
  return out[1] && out[2];
}

/* ---- assignment: what was stored gets the gradient of its places, what was there before keeps the rest */
static UOp *push(UOpStore *st, UOp *m, UOp *x) {             /* movement m done to x */
  switch (m->op) {
  case OPS_RESHAPE: return u_reshape(st, x, m->shape->n, m->shape->v);
  case OPS_PERMUTE: return u_permute(st, x, m->arg.ints->v);
  case OPS_SHRINK: return u_shrink(st, x, m->arg.ints->v);
  case OPS_FLIP: return u_flip(st, x, m->arg.ints->v);
  default: return NULL;
  }
}
static bool g_after(Grad *r, UOp *u, UOp *g, UOp **out) {
  UOp *whole = u->src[0], *store = u->nsrc > 1 && u->src[1]->op == OPS_STORE ? u->src[1] : NULL;
  if (!store) return (out[0] = g) != NULL;
  if (store->src[0] == whole) return (out[1] = g) != NULL;
  UOpVec path = {0};
  UOp *v = store->src[0];
  bool ok = true;
  for (; ok && v != whole && (op_flags((Ops)v->op) & OPF_MOV); v = v->src[0]) ok = vec_push(&r->ctx->mem, &path, v);
  if (ok && v == whole) {
    UOp *part = g, *mask = num(r, 1, store->src[0]);
    for (size_t i = path.len; i-- > 0;) part = push(r->st, path.at[i], part);
    for (size_t i = 0; i < path.len; i++) mask = mask ? pull(r->st, path.at[i], mask) : NULL;
    out[1] = part;
    out[0] = mask ? zero_if_not(r, uop_alu2(r->st, OPS_CMPEQ, mask, num(r, 0, mask)), g) : NULL;
    ok = out[0] && out[1];
  }
  vec_free(&r->ctx->mem, &path);
  return ok;
}
static bool g_store(Grad *r, UOp *u, UOp *g, UOp **out) { (void)r, (void)u; return (out[1] = g) != NULL; }

static const GradRule rules[OPS_COUNT] = {
  [OPS_RESHAPE] = g_move, [OPS_PERMUTE] = g_move, [OPS_EXPAND] = g_move, [OPS_PAD] = g_move, [OPS_SHRINK] = g_move, [OPS_FLIP] = g_move,
  [OPS_REDUCE_AXIS] = g_reduce, [OPS_CONTIGUOUS] = g_pass, [OPS_COPY] = g_pass, [OPS_CAST] = g_cast, [OPS_BITCAST] = g_none,
  [OPS_NEG] = g_neg, [OPS_EXP] = g_exp, [OPS_EXP2] = g_exp2, [OPS_LOG] = g_log, [OPS_LOG2] = g_log2, [OPS_SIN] = g_sin,
  [OPS_SQRT] = g_sqrt, [OPS_RECIPROCAL] = g_recip, [OPS_TRUNC] = g_none, [OPS_ADD] = g_add, [OPS_SUB] = g_sub, [OPS_MUL] = g_mul,
  [OPS_FDIV] = g_fdiv, [OPS_MAX] = g_max, [OPS_POW] = g_pow, [OPS_WHERE] = g_where, [OPS_MULACC] = g_mulacc,
  [OPS_AFTER] = g_after, [OPS_STORE] = g_store,
};

/* The places of the graph that stand for a target, best first: an assignment to it that was run meanwhile; itself; what it was before
 * an assignment that was made meanwhile. */
typedef struct Places { UOp *at[2]; } Places;
static Places find_target(UOp *t, UOp *const *after_of, const bool *in_graph, uint32_t limit) {
  Places p = {{NULL, NULL}};
  UOp *old = t->op == OPS_AFTER ? t->src[0] : NULL;
  if (t->id < limit && after_of[t->id]) p.at[0] = after_of[t->id];
  if (t->id < limit && in_graph[t->id]) p.at[1] = t;
  else if (old && old->id < limit && in_graph[old->id]) p.at[1] = old;
  return p;
}
bool gradient_of(TgContext *ctx, UOp *root, int n, UOp *const *targets, UOp **out) {
  TgMem *mem = &ctx->mem;
  Grad r = {ctx, ctx->store};
  UOpVec topo = {0};
  uint32_t limit = store_id_limit(ctx->store);
  bool *in_graph = mem_alloc(mem, limit), *needs = mem_alloc(mem, limit), *wanted = mem_alloc(mem, limit);
  UOp **grad = mem_alloc(mem, limit * sizeof *grad), **after_of = mem_alloc(mem, limit * sizeof *grad), *part[UINT8_MAX];
  bool ok = in_graph && needs && wanted && grad && after_of && uop_toposort(ctx->store, mem, &root, 1, &topo);
  for (size_t i = 0; ok && i < topo.len; i++) {
    UOp *u = topo.at[i];
    in_graph[u->id] = true;
    if (u->op == OPS_AFTER) after_of[u->src[0]->id] = u;
  }
  for (int i = 0; ok && i < n; i++) {
    out[i] = NULL;
    Places p = find_target(targets[i], after_of, in_graph, limit);
    for (int k = 0; k < 2; k++) if (p.at[k]) wanted[p.at[k]->id] = true;
  }
  for (size_t i = 0; ok && i < topo.len; i++) {
    UOp *u = topo.at[i];
    bool need = wanted[u->id];
    for (int s = 0; s < u->nsrc && !need; s++) need = needs[u->src[s]->id];
    needs[u->id] = need && dtype_is_float((DType)u->dtype) && u->op != OPS_DETACH;
    if (wanted[u->id] && dtype_is_float((DType)u->dtype)) needs[u->id] = true;
  }
  if (ok) ok = (grad[root->id] = u_num(r.st, 1, root)) != NULL;
  for (size_t i = topo.len; ok && i-- > 0;) {
    UOp *u = topo.at[i], *g = grad[u->id];
    bool below = false;
    for (int s = 0; s < u->nsrc; s++) below = below || needs[u->src[s]->id];
    if (!g || !below || u->op == OPS_DETACH) continue;
    if (!rules[u->op] || u->nsrc > TG_COUNT(part)) {
      error_set(&ctx->err, TG_ERR_INTERNAL, "gradient: none is known for %s", op_name((Ops)u->op));
      ok = false;
      break;
    }
    memset(part, 0, u->nsrc * sizeof *part);
    ok = rules[u->op](&r, u, g, part);
    for (int s = 0; ok && s < u->nsrc; s++) {
      UOp *x = u->src[s];
      if (!part[s] || !needs[x->id]) continue;
      grad[x->id] = grad[x->id] ? uop_alu2(r.st, OPS_ADD, grad[x->id], part[s]) : part[s];
      ok = grad[x->id] != NULL;
    }
  }
  for (int i = 0; ok && i < n; i++) {
    Places p = find_target(targets[i], after_of, in_graph, limit);
    for (int k = 0; k < 2 && !out[i]; k++) if (p.at[k]) out[i] = grad[p.at[k]->id];
  }
  mem_free(mem, in_graph), mem_free(mem, needs), mem_free(mem, wanted), mem_free(mem, grad), mem_free(mem, after_of);
  vec_free(mem, &topo);
  if (!ok) error_set(&ctx->err, TG_ERR_NOMEM, "gradient: out of memory");
  return ok;
}

/* ---- the API */
static TgStatus loss_check(const char *op, TgTensor *loss) {
  TgContext *ctx = loss->ctx;
  TG_REQUIRE_OR(ctx, tg_numel(loss) == 1, TG_ERR_SHAPE, TG_ERR_SHAPE, "%s: the loss has shape %s, not one element", op, SHAPE_OF(loss));
  TG_REQUIRE_OR(ctx, dtype_is_float(dt(loss)), TG_ERR_DTYPE, TG_ERR_DTYPE, "%s: the loss is %s, not a float", op, dtype_name(dt(loss)));
  return TG_OK;
}
TgStatus tg_gradient(TgTensor *loss, TgTensor *const *targets, int n, TgTensor **out) {
  if (!loss) return TG_ERR_VALUE;
  TgContext *ctx = loss->ctx;
  TgStatus s = loss_check("gradient", loss);
  if (s) return s;
  UOp **t = mem_alloc(&ctx->mem, (size_t)n * 2 * sizeof *t), **g = t + n;
  if (!t) return error_set(&ctx->err, TG_ERR_NOMEM, "gradient: out of memory");
  for (int i = 0; !s && i < n; i++) {
    out[i] = NULL;
    if (!targets[i] || targets[i]->ctx != ctx) s = error_set(&ctx->err, TG_ERR_VALUE, "gradient: target %d is NULL or of another context", i);
    else t[i] = targets[i]->uop;
  }
  if (!s && !gradient_of(ctx, loss->uop, n, t, g)) s = ctx->err.status;
  for (int i = 0; !s && i < n; i++) {
    out[i] = g[i] ? tensor_new(ctx, g[i]) : tg_zeros_like(targets[i]);
    if (!out[i]) s = ctx->err.status;
  }
  mem_free(&ctx->mem, t);
  return s;
}
TgStatus tg_backward(TgTensor *loss) {
  if (!loss) return TG_ERR_VALUE;
  TgContext *ctx = loss->ctx;
  TgStatus s = loss_check("backward", loss);
  if (s) return s;
  Vec(TgTensor *) params = {0};
  bool ok = true;
  for (size_t i = 0; i <= ctx->scopes.len; i++)
    for (TgTensor *t = i < ctx->scopes.len ? ctx->scopes.at[i].tensors : ctx->kept; ok && t; t = t->next)
      if (t->requires_grad) ok = vec_push(&ctx->mem, &params, t);
  UOp **u = ok ? mem_alloc(&ctx->mem, (params.len ? params.len : 1) * 2 * sizeof *u) : NULL, **g = u ? u + params.len : NULL;
  if (!u) s = error_set(&ctx->err, TG_ERR_NOMEM, "backward: out of memory");
  for (size_t i = 0; !s && i < params.len; i++) u[i] = params.at[i]->uop;
  if (!s && !gradient_of(ctx, loss->uop, (int)params.len, u, g)) s = ctx->err.status;
  bool any = false;
  for (size_t i = 0; !s && i < params.len; i++) {
    if (!g[i]) continue;
    any = true;
    TgTensor *t = params.at[i], *old = t->grad, *now = tensor_new(ctx, g[i]);
    if (old && now) {
      now->uop = uop_alu2(ctx->store, OPS_ADD, old->uop, g[i]);
      old->grad_of = NULL;
    }
    if (!now || !now->uop) { s = error_set(&ctx->err, TG_ERR_NOMEM, "backward: out of memory"); break; }
    t->grad = now, now->grad_of = t;
  }
  if (!s && !any) s = error_set(&ctx->err, TG_ERR_STATE, "backward: the loss depends on no tensor that requires a gradient");
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
