/* gradient.c: reverse-mode differentiation of the tensor graph. In: a root, targets. Out: for each target
 * its gradient, which is another graph. The gradient that an op passes on is defined by its rule in
 * rules/gradient.rules (gradient_rules.c). The graph is walked once over a list, readers before sources,
 * without recursion. Rules only visit nodes on a path from a target to the root. Gradients pass only
 * through floats. */
#include "tensor/front.h"
#include "tensor/gradient.h"
#include "tensor/multi.h"

/* ---- a gradient that the user defines */
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
                shape_text(ctx->store, p->shape).s, i, SHAPE_OF(x[i]));
    else {
      part[i + 1] = uop_cast(ctx->store, p, dt(x[i]));
      ok = part[i + 1] != NULL;
    }
  }
  mem_free(&ctx->mem, x);
  return ok;
}

/* Each part of a value on several devices gets its part of the gradient, on its device. */
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

/* Returns the number of fn's hook with this user data, which is copied if it has a size. -1: out of
 * memory. */
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

/* If u is a view of memory, or a MULTI of views, returns the memory of the first one. NULL: it is neither. */
static UOp *first_memory(UOp *u) { return view_bottom(is_multi(u) ? u->src[0] : u); }

static bool in_memory(UOp *u) { return first_memory(u) != NULL; }

/* Whether a and b are the same view of the same memory, in any versions. */
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
  Vec(size_t) before; /* number + 1 of the previous view of the same memory; 0: there is none */
  Map last;           /* by uid: number + 1 of the last view */
} Views;

static bool views_add(TgContext *ctx, Views *v, UOp *u) {
  uint64_t uid = (uint64_t)buffer_uid(first_memory(u)), before = 0;
  v->last.mem = &ctx->mem;
  map_get(&v->last, uid, &before);
  return vec_push(&ctx->mem, &v->at, u) && vec_push(&ctx->mem, &v->before, (size_t)before) &&
         map_put(&v->last, uid, v->at.len);
}

/* Returns the number + 1 of the last view of u's memory; the ones before it follow by v->before. 0: there
 * is none. */
static size_t views_last(const Views *v, UOp *u) {
  uint64_t last = 0;
  if (v->at.len) map_get(&v->last, (uint64_t)buffer_uid(first_memory(u)), &last);
  return (size_t)last;
}

static void views_free(TgContext *ctx, Views *v) {
  vec_free(&ctx->mem, &v->at), vec_free(&ctx->mem, &v->before);
  if (v->last.mem) map_free(&v->last);
}

/* The targets of a gradient. */
typedef struct Targets {
  /* the targets, and for a target in memory the expression that it was computed by, if the root contains
   * it */
  Map nodes;
  Views views;
} Targets;

static bool is_target(const Targets *t, UOp *u) {
  if (map_get_ptr(&t->nodes, u)) return true;
  for (size_t i = in_memory(u) ? views_last(&t->views, u) : 0; i; i = t->views.before.at[i - 1])
    if (same_place(u, t->views.at.at[i - 1])) return true;
  return false;
}

/* Returns the expression that a value in memory was computed by. NULL: it is not known, or u is not in
 * memory. */
static UOp *past_of(TgContext *ctx, const UOp *u) {
  return u->op == OPS_BUFFER || is_multi(u) ? map_get_ptr(&ctx->history, u) : NULL;
}

/* Lists all nodes that e is computed from, sources first. The walk passes through values in memory, except
 * those of the targets in `stop` (which may be NULL). */
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

/* Returns the expression that target u was computed by, if u is the whole of a value in memory and this is
 * known. */
static UOp *target_past(TgContext *ctx, UOp *u) {
  UOp *held = is_multi(u) ? u : view_bottom(u), *e = held ? past_of(ctx, held) : NULL;
  return e && (u == held || u == u_reshape(ctx->store, held, e->shape->n, e->shape->v)) ? e : NULL;
}

/* If a target was built into the root as an expression and computed later, it is in memory now. The
 * expression in the root then counts as the target too. */
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

/* Whether a gradient can pass from e to a target, also through values in memory. */
static bool leads_to(TgContext *ctx, UOp *e, const Targets *targets) {
  UOpVec todo = {0};
  Map seen;
  map_init(&seen, &ctx->mem);
  bool found = false, ok = vec_push(&ctx->mem, &todo, e);
  while (ok && !found && todo.len) {
    UOp *u = todo.at[--todo.len], *before = past_of(ctx, u);
    uint64_t was;
    if (u->op == OPS_DETACH || map_get(&seen, u->id, &was)) continue;
    found = is_target(targets, u);
    ok = map_put(&seen, u->id, 1) && (!before || vec_push(&ctx->mem, &todo, before));
    for (int i = 0; ok && i < u->nsrc; i++)
      ok = vec_push(&ctx->mem, &todo, u->src[i]);
  }
  map_free(&seen), vec_free(&ctx->mem, &todo);
  return found || !ok;
}

/* Nodes of a graph, and what replaces each of them. */
typedef struct Exchange {
  UOpVec from, to;
} Exchange;

static bool exchange(TgContext *ctx, Exchange *x, UOp *from, UOp *to) {
  return from && to && vec_push(&ctx->mem, &x->from, from) && vec_push(&ctx->mem, &x->to, to);
}

/* Treats a waiting store to memory that was computed from a target as a value. As it was computed, it is
 * not memory, and nobody can store to it. */
static bool stores_put(TgContext *ctx, const Targets *targets, UOp *u, Exchange *x) {
  UOp *b = u->op == OPS_AFTER && u->is_tensor && u->src[1]->op == OPS_STORE ? view_bottom(u) : NULL,
      *e = b ? past_of(ctx, b) : NULL;
  Rewrite rw = {.st = ctx->store, .mem = &ctx->mem, .ctx = ctx};
  return !e || is_target(targets, u) || !leads_to(ctx, e, targets) ||
         exchange(ctx, x, u, stored_as_value(&rw, u));
}

/* A captured function has this gradient as long as the memory keeps its current contents. */
static void history_read(TgContext *ctx, UOp *u) {
  for (int i = 0; i < u->nsrc; i++)
    history_read(ctx, u->src[i]);
  if (u->op == OPS_BUFFER && ctx->capture) ctx->calls->captured_reads(ctx, buffer_get(ctx, u));
}

static bool history_put(TgContext *ctx, const Targets *targets, UOp *b, Exchange *x) {
  UOp *e = past_of(ctx, b);
  if (!e || !leads_to(ctx, e, targets)) return true;
  history_read(ctx, b);
  if (is_multi(b)) return exchange(ctx, x, b, e);
  UOp *seen = u_reshape(ctx->store, b, e->shape->n, e->shape->v),
      *flat = u_reshape(ctx->store, e, 1, b->shape->v);
  return exchange(ctx, x, seen, e) && (seen == b || exchange(ctx, x, b, flat));
}

/* Replaces values in memory that were computed from a target by their expressions, in the root and the
 * targets. All other values stay memory. */
static bool histories_put(TgContext *ctx, int n, UOp **graph) {
  UOpVec topo = {0};
  Exchange x = {{0}, {0}};
  bool ok = true, more = ctx->history.len > 0;
  while (ok && more) {
    topo.len = x.from.len = x.to.len = 0;
    ok = uop_toposort(ctx->store, &ctx->mem, graph, (size_t)n, &topo);
    Targets targets = {0};
    ok = ok && targets_index(ctx, &targets, graph[0], n - 1, graph + 1);
    for (size_t i = 0; ok && i < topo.len; i++)
      ok = stores_put(ctx, &targets, topo.at[i], &x);
    bool stores = x.from.len > 0; /* their memories are replaced in the next round */
    for (size_t i = 0; ok && i < topo.len && !stores; i++)
      ok = history_put(ctx, &targets, topo.at[i], &x);
    targets_free(ctx, &targets);
    more = x.from.len > 0;
    for (int i = 0; ok && more && i < n; i++)
      ok = (graph[i] =
                uop_substitute(ctx->store, &ctx->mem, graph[i], (int)x.from.len, x.from.at, x.to.at)) != NULL;
  }
  vec_free(&ctx->mem, &topo), vec_free(&ctx->mem, &x.from), vec_free(&ctx->mem, &x.to);
  return ok;
}

static int64_t version_of(TgContext *ctx, UOp *place) {
  int64_t stored = 0;
  if (is_multi(place)) place = place->src[0];
  for (; place->op != OPS_BUFFER; place = place->src[0])
    stored |= place->op == OPS_AFTER;
  /* A capture makes new versions with the same contents (memories_renewed), which count as one version. */
  for (UOp *next; (next = map_get_ptr(&ctx->realized, place)) && buffer_uid(next) == buffer_uid(place);)
    place = next;
  return buffer_version(place) + stored;
}

/* Returns the gradient of a target: that of its own node, or, for a place, that of the newest version that
 * has one, because the place may have been assigned to. */
static UOp *of_target(TgContext *ctx, UOp *t, const Views *views, UOp *const *grad, uint32_t limit) {
  UOp *g = t->id < limit ? grad[t->id] : NULL;
  if (!in_memory(t)) return g;
  int64_t newest = -1;
  g = NULL;
  for (size_t i = views_last(views, t); i; i = views->before.at[i - 1]) {
    UOp *v = views->at.at[i - 1];
    if (!grad[v->id] || v->shape != t->shape || !same_place(v, t)) continue;
    int64_t version = version_of(ctx, v);
    if (version < newest) continue;
    g = version > newest ? grad[v->id] : uop_alu2(ctx->store, OPS_ADD, g, grad[v->id]);
    newest = version;
  }
  return g;
}

static UOp *sum_of(UOpStore *st, UOp *a, UOp *b) { return a ? uop_alu2(st, OPS_ADD, a, b) : b; }

/* Windows are several movements, whose separate gradients would be sums over indices with divisions. So
 * they are differentiated in one step, unless the gradient of one of these movements is asked for. */
static UOp *step_of_windows(UOpStore *st, UOp *u, UOp *g, const bool *wanted, UOp **of) {
  UOp *r = u_windows_gradient(st, u, g, of);
  for (UOp *v = u->src[0]; r && v != *of; v = v->src[0])
    if (wanted[v->id]) return NULL;
  return r;
}

/* A node without a name belongs to the operation that reads it. */
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
  /* readers pass it on to their sources */
  Origin *from = ctx->origins.asked ? mem_alloc(mem, limit * sizeof *from) : NULL;
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
    out[i] = of_target(ctx, targets[i], &views, grad, limit);
  mem_free(mem, needs), mem_free(mem, wanted), mem_free(mem, grad), mem_free(mem, from);
  vec_free(mem, &topo), views_free(ctx, &views);
  if (!ok) error_no_memory(&ctx->err, "gradient");
  return ok;
}

/* Whether it is not known any more how something in the graph was computed. If so, a missing gradient does
 * not mean that there is no dependence. */
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

/* Computes for each target the gradient of root, which is a float, given its own gradient `seed`. A target
 * without one gets NULL. strict: it is an error if it is not known whether there is one. Returns false if
 * an error was recorded. */
static bool gradient_of(TgContext *ctx, UOp *root, UOp *seed, int n, UOp *const *targets, UOp **out,
                        bool strict) {
  UOp **graph = mem_alloc(&ctx->mem, ((size_t)n + 1) * sizeof *graph);
  bool ok = graph != NULL;
  if (ok) {
    graph[0] = root;
    memcpy(graph + 1, targets, (size_t)n * sizeof *graph);
  }
  ok = ok && histories_put(ctx, n + 1, graph);
  if (!ok) error_no_memory(&ctx->err, "gradient");
  ok = ok && gradient_walk(ctx, graph[0], seed, n, graph + 1, out);
  for (int i = 0; ok && strict && i < n; i++)
    ok = out[i] || !past_forgotten(ctx, graph[0], i);
  mem_free(&ctx->mem, graph);
  return ok;
}

/* ---- the API */
/* Finds what the walk starts with: the seed, or 1 for a loss with one element. */
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
  if (!t) return error_no_memory(&ctx->err, "gradient");
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
  if (!u) s = error_no_memory(&ctx->err, "backward");
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
      s = error_no_memory(&ctx->err, "backward");
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
