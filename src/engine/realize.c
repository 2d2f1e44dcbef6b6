/* realize.c: computes the values of tensors. In: handles. Out: their values in memory, and the stores that
 * wait on that memory done. A computed value becomes memory of the handle's own. A store that runs makes
 * the next version of its memory. If the version before may still be needed, it is copied first
 * (versions.c). So a tensor has the value of the moment at which it was built, as if everything were computed at once. */
#include "engine/realize.h"
#include "runtime/comm.h"
#include "tensor/front.h"
#include "tensor/multi.h"
#include <string.h>

static bool no_memory(TgContext *ctx) {
  error_no_memory(&ctx->err, "realize");
  return false;
}

static int64_t nelem_of(TgContext *ctx, const UOp *u) { return dim_product(ctx->store, u->shape); }

/* ---- roots */
/* Adds as a root the store that waits on b. */
static bool store_root(Run *r, Buffer *b) {
  UOp *now = memory_node(r->ctx, b);
  UOp *after = now ? UNEW(r->ctx->store, OPS_AFTER, b->dtype, 1, ARG0, now, b->store) : NULL;
  if (map_get_ptr(&r->g.is_stored, b)) return true;
  return after ? graph_reach(&r->g, after) : no_memory(r->ctx);
}

/* Gives t memory of its own that a store fills, because the memory with its value is, or will be, another
 * handle's. */
static bool own_copy(Run *r, TgTensor *t) {
  UOp *value = t->uop, *n = buffer_node(r->ctx, tensor_device(t), dt(t), nelem(t), value->shape);
  if (!n) return no_memory(r->ctx);
  tensor_set(t, n);
  if (!store_to(t, n, value) || !store_root(r, t->memory)) return false;
  if (!dtype_is_float(dt(t))) return true;
  UOp *next = memory_next(r->ctx, t->memory); /* gradients continue through the value that it is a copy of */
  return (next && map_put_ptr(&r->ctx->history, next, value)) || no_memory(r->ctx);
}

static bool want(Run *r, TgTensor *t, bool only) {
  TgContext *ctx = r->ctx;
  if (t->memory) return !t->memory->store || store_root(r, t->memory);
  uint64_t failed = ctx->mem.failed;
  UOp *v = value_of_node(ctx, t->uop), *bottom = view_bottom(v);
  if (failed != ctx->mem.failed) return no_memory(ctx);
  bool waits = bottom && uop_has(v, AFTER); /* the value is what another handle's memory will hold */
  Buffer *b = bottom && !waits ? buffer_of_value(ctx, bottom) : NULL;
  /* an expression of variables stays an expression, because it may be asked for again */
  bool stays = t->uop->symbolic || only;
  const Ints *most = dims_max(ctx->store, t->uop->shape);
  /* If the variables are bound anew, as in a replay, it may have elements. */
  bool later = most && dim_product(ctx->store, most) > 0;
  if (nelem_of(ctx, t->uop) == 0 && !(later && ctx->capture)) {
    if (only || later) return true;
    UOp *none = buffer_node(ctx, tensor_device(t), dt(t), 0, t->uop->shape);
    if (!none) return no_memory(ctx);
    tensor_set(t, none);
    t->memory->filled = true;
    return true;
  }
  if (waits) return stays ? store_root(r, buffer_get(ctx, bottom)) : own_copy(r, t);
  if (b) { /* its value is in memory that is not its own */
    if (stays) return true;
    if (b->places || b->store || b->borrowed || !is_place(v)) return own_copy(r, t);
    UOp *now = memory_node(ctx, b), *own = now ? view_on(ctx, v, bottom, now) : NULL;
    if (!own) return no_memory(ctx);
    tensor_set(t, own);
    return true;
  }
  for (size_t i = 0; i < r->results.len; i++)
    if (r->results.at[i].expr == t->uop) return stays || own_copy(r, t);
  return graph_reach(&r->g, t->uop) &&
         (vec_push(&ctx->mem, &r->results, ((Result){t, r->g.roots.len - 1, t->uop, NULL})) ||
          no_memory(ctx));
}

/* Adds what must run together with any store: the pending values that were to be computed before it, and
 * every waiting store that reads what is stored to. */
static bool wanted_too(Run *r, bool only) {
  TgContext *ctx = r->ctx;
  for (size_t i = 0; i < ctx->pending.len; i++)
    if (!has_multi(ctx->pending.at[i]->uop) && tensor_device(ctx->pending.at[i]) == r->g.device &&
        !want(r, ctx->pending.at[i], only))
      return false;
  for (bool grew = true; grew;) {
    Bits bits = bits_of(ctx, r->g.stored.at, r->g.stored.len);
    size_t n = r->g.stored.len;
    for (size_t i = 0; i < ctx->waiting.len; i++) {
      Buffer *b = ctx->buffers.at[ctx->waiting.at[i]];
      /* A store on another device gets a copy of the version that it was built on. */
      if (b->device == r->g.device && b->store && may_need(bits, b->store) && !store_root(r, b)) return false;
    }
    grew = r->g.stored.len > n;
  }
  return true;
}

/* ---- running */
/* Writes b's contents to its file, if the device's memory is a copy of the file. */
static bool file_written(TgContext *ctx, const Buffer *b) {
  void *at = file_data(&((Buffer *)b)->file);
  if (!at || at == b->data) return true;
  Device *d = device_at(ctx, b->device);
  TgStatus s = d->backend->copy_out(d, at, b->data, (size_t)b->nelem * dtype_size(b->dtype));
  return !s || (error_set(&ctx->err, s, "realize: the file of an assigned tensor cannot be written"), false);
}

bool stores_done(TgContext *ctx, Buffer *const *stored, size_t n) {
  bool ok = true;
  for (size_t i = 0; i < n; i++) {
    memory_written(ctx, stored[i]);
    ok = file_written(ctx, stored[i]) && ok;
    if (ctx->capture) capture_stored(ctx, stored[i]);
  }
  return ok;
}

static bool results_allocated(Run *r, const Plan *p, Buffer **temp) {
  TgContext *ctx = r->ctx;
  for (size_t i = 0; i < r->results.len; i++) {
    Result *res = &r->results.at[i];
    int64_t at = p->sched.root[res->root];
    if (at < TEMP_BASE) continue; /* another root computes it */
    res->made =
        buffer_node(ctx, r->g.device, (DType)res->expr->dtype, nelem_of(ctx, res->expr), res->expr->shape);
    Buffer *b = res->made ? buffer_get(ctx, view_bottom(res->made)) : NULL;
    if (!b || buffer_ready(ctx, b)) return no_memory(ctx);
    b->filled = true;
    b->bound_at = res->expr->symbolic ? ctx->bound + 1 : 0;
    temp[at - TEMP_BASE] = b;
  }
  for (int i = 0; i < p->sched.nroot; i++)
    if (NEVER(p->sched.root[i] >= TEMP_BASE && !temp[p->sched.root[i] - TEMP_BASE]))
      return error_set(&ctx->err, TG_ERR_INTERNAL, "realize: a root that nobody asked for"), false;
  return true;
}

/* How a value was computed is kept for gradients. A loop x = f(x) would keep all of its past. So if no
 * tensor requires a gradient, the past is cut after this many generations. A gradient that is later asked
 * for through the cut is an error that says so. */
enum { GENERATIONS = 64 };

static bool remembered(Run *r, const Result *res, UOp *memory) {
  const GraphNode *n = graph_node(&r->g, r->g.roots.at[res->root]);
  Buffer *b = buffer_get(r->ctx, memory);
  if (!dtype_is_float((DType)res->expr->dtype)) return true;
  b->generation = n->generation + 1;
  b->forgotten = !n->grad && b->generation > GENERATIONS;
  if (b->forgotten) b->generation = 0;
  return b->forgotten || map_put_ptr(&r->ctx->history, memory, res->expr);
}

static bool results_known(Run *r) {
  TgContext *ctx = r->ctx;
  for (size_t i = 0; i < r->results.len; i++) {
    Result *res = &r->results.at[i];
    UOp *made = res->made;
    /* two expressions of one value: only one of the roots was computed */
    for (size_t k = 0; !made && k < r->results.len; k++)
      if (graph_root(&r->g, r->results.at[k].root) == graph_root(&r->g, res->root))
        made = r->results.at[k].made;
    if (res->made && !res->expr->symbolic && res->t->uop == res->expr) tensor_set(res->t, made);
    if (!made || !value_known(ctx, res->expr, made) || !remembered(r, res, view_bottom(made)))
      return no_memory(ctx);
  }
  return true;
}

static void watched(const Plan *p, Parts *parts, Watch *only) {
  for (int k = 0; k < p->sched.nkernel; k++, only->count++) {
    const SchedKernel *sk = &p->sched.kernel[k];
    TgLaunch l = {sizeof l, p->prog[k]->name, sk->narg, sk->flops, sk->est_us, NULL, 0, kernel_origin(p, k)};
    if (parts) l.part = parts_of(parts, p, k, &l.nparts);
    if (only->seen) only->seen(&l, only->user);
  }
}

static bool run_planned(Run *r, Plan *p) {
  TgContext *ctx = r->ctx;
  Buffer **temp = mem_alloc(&ctx->mem, ((size_t)p->sched.ntemp + 1) * sizeof *temp);
  bool ok = temp ? results_allocated(r, p, temp) : no_memory(ctx);
  ok = ok && old_versions_kept(ctx, r->g.stored.at, r->g.stored.len, r);
  ok = ok && !plan_run(ctx, &(PlanRun){.plan = p, .buf = r->g.buffers.at, .temp = temp});
  if (ok && ctx->capture) capture_step(ctx, p, r->g.buffers.at, r->g.buffers.len, temp);
  mem_free(&ctx->mem, temp);
  if (ok) {
    ok = stores_done(ctx, r->g.stored.at, r->g.stored.len);
    ok = results_known(r) && ok;
  }
  if (ok && r->g.stored.len) {
    size_t left = 0;
    for (size_t i = 0; i < ctx->pending.len; i++) {
      TgTensor *t = ctx->pending.at[i];
      if (tensor_device(t) == r->g.device && !has_multi(t->uop))
        t->pending = false;
      else
        ctx->pending.at[left++] = t;
    }
    ctx->pending.len = left;
  }
  return ok;
}

/* Runs a graph that cannot be scheduled because a value is read on both sides of a store to its memory.
 * The contents of the stored memories are first copied, by programs that a capture sees too, and read from
 * the copies. */
static bool run_apart(Run *r, Watch *only);

static bool run(Run *r, Watch *only) {
  TgContext *ctx = r->ctx;
  if (!r->g.roots.len) return true;
  if (!graph_copy(&r->g)) return false;
  Parts *parts = NULL;
  if (only && only->nparts && !(parts = parts_of_tensors(&r->g, only->part, only->nparts))) return false;
  Plan *p = plan_get(ctx, &r->g);
  bool found = p && !p->cyclic;
  if (found && only) watched(p, parts, only);
  parts_free(parts);
  if (!p || (found && only)) return p != NULL;
  if (found) return run_planned(r, p);
  if (!r->g.apart) return run_apart(r, only);
  error_set(&ctx->err, TG_ERR_INTERNAL,
            "realize: an assignment needs a value that must be read before it and after it");
  return false;
}

static TgStatus realize(TgContext *ctx, TgTensor *const *t, size_t n, Buffer *const *stores, size_t nstores,
                        Watch *only, bool alone);
static TgTensor *made_contiguous(TgContext *ctx, UOp *u);
static bool copy_made(TgContext *ctx, UOp *copy);

static bool contents_copied(TgContext *ctx, Buffer *b) {
  UOp *was = memory_node(ctx, b), *n = was ? buffer_node(ctx, b->device, b->dtype, b->nelem, NULL) : NULL;
  TgTensor *t = tensor_memory(ctx, n);
  UOp *store = b->store;
  if (!t) return no_memory(ctx);
  b->store = NULL; /* what b holds now is read, not what it will hold */
  bool ok = store_to(t, n, was) && !realize(ctx, NULL, 0, &t->memory, 1, NULL, true);
  b->store = store;
  ok = ok && value_known(ctx, was, t->uop);
  tg_release(t);
  return ok;
}

static bool run_apart(Run *r, Watch *only) {
  TgContext *ctx = r->ctx;
  Run again = {.ctx = ctx, .results = r->results};
  bool ok = true;
  for (size_t i = 0; ok && i < r->g.stored.len; i++)
    ok = contents_copied(ctx, r->g.stored.at[i]);
  ok = ok && (graph_init(&again.g, ctx, r->g.device) || no_memory(ctx));
  if (ok) again.g.apart = true;
  for (size_t i = 0; ok && i < r->g.roots.len; i++)
    ok = graph_reach(&again.g, r->g.roots.at[i]);
  ok = ok && run(&again, only);
  graph_free(&again.g);
  return ok;
}

/* ---- copies between devices */
/* Returns movements of a value that is in memory, as a view of that memory. NULL: u does not move such a
 * value. */
static UOp *moved_in_memory(TgContext *ctx, UOp *u) {
  for (UOp *m = u; (op_flags((Ops)m->op) & OPF_MOV || m->op == OPS_DETACH) && m->src[0]->is_tensor;
       m = m->src[0]) {
    UOp *v = value_of_node(ctx, m->src[0]);
    UOp *now = v && v != m->src[0] && view_bottom(v) ? view_on(ctx, u, m->src[0], v) : NULL;
    if (now) return view_bottom(now) ? now : NULL;
  }
  return NULL;
}

/* Returns where a source is copied from. A source that is contiguous in memory already is copied from
 * there. Any other source is computed first, on its own device. */
static UOp *piece_for_copy(TgContext *ctx, UOp *source, TgTensor **computed) {
  int64_t start;
  UOp *v = value_of_node(ctx, source);
  if (!v || !view_bottom(v)) v = moved_in_memory(ctx, source);
  Buffer *b = v && view_bottom(v) ? buffer_of_value(ctx, view_bottom(v)) : NULL;
  if (b && b->data && piece_of(v, &start)) return v;
  /* It is computed alone, because stores that would run with it may need other copies, and these may need
   * this one. */
  UOp *whole = uop_alu1(ctx->store, OPS_CONTIGUOUS, source);
  TgTensor *t = whole ? tensor_new(ctx, whole) : NULL;
  if (t && realize_alone(ctx, &t, 1)) tg_release(t), t = NULL;
  *computed = t;
  return *computed ? value_of_node(ctx, (*computed)->uop) : NULL;
}

/* Copies the whole of a file that a view sees, and applies the same view to the copy, because nothing is
 * computed on the device of files. */
static bool copy_of_file(TgContext *ctx, UOp *copy, UOp *view) {
  UOp *bottom = view_bottom(view), *whole = bottom;
  Buffer *b = buffer_get(ctx, bottom);
  whole = whole ? uop_new(ctx->store, OPS_COPY, b->dtype, 1, 1, &whole, copy->arg) : NULL;
  bool ok = whole && (map_get_ptr(&ctx->realized, whole) || copy_made(ctx, whole));
  UOp *there = ok ? view_on(ctx, view, bottom, map_get_ptr(&ctx->realized, whole)) : NULL;
  return there && value_known(ctx, copy, there);
}

/* Computes a COPY: its value is put in memory of the device that it names. */
static bool copy_made(TgContext *ctx, UOp *copy) {
  UOp *source = copy->src[0], *n = NULL;
  TgTensor *computed = NULL;
  int64_t start = 0;
  Device *from = device_at(ctx, __builtin_ctzll(source->devices)), *to = device_at(ctx, (int)copy->arg.i);
  if ((from->backend->has & HAS_FILES_ONLY) && view_bottom(source) && !piece_of(source, &start))
    return copy_of_file(ctx, copy, source);
  UOp *v = piece_for_copy(ctx, source, &computed);
  UOp *same = v ? uop_new(ctx->store, OPS_COPY, (DType)v->dtype, 1, 1, &v, copy->arg) : NULL;
  UOp *had = same && same != copy ? value_of_node(ctx, same) : NULL;
  if (had && had != same) { /* the same memory was copied there before, under another node */
    tg_release(computed);
    return value_known(ctx, copy, had) || no_memory(ctx);
  }
  UOp *bottom = v ? view_bottom(v) : NULL;
  Buffer *b = bottom ? buffer_of_value(ctx, bottom) : NULL, *there = NULL;
  if (v) piece_of(v, &start); /* for a symbolic size: the first elements of the memory */
  if (b) n = buffer_node(ctx, to->index, b->dtype, nelem_of(ctx, source), source->shape);
  if (n) there = buffer_get(ctx, view_bottom(n));
  bool ok = same && there && !buffer_ready(ctx, there);
  size_t size = ok ? dtype_size(b->dtype) : 0;
  if (ctx->comm) ctx->comm->now.op = source->op;
  double begin = profile_now(ctx), now = ctx->inside ? time_now_s() : 0;
  ok = ok && !device_copy(ctx, to, there->data, from, (const char *)b->data + (size_t)start * size,
                          (size_t)there->nelem * size);
  int exchange = ok && ctx->exchanges
                     ? inside_copied(ctx, copy, (size_t)there->nelem * size, (time_now_s() - now) * 1e6)
                     : 0;
  if (there) profile_copy(ctx, begin, exchange, to, from, (size_t)there->nelem * size, false);
  if (ok) {
    there->filled = true;
    there->bound_at = copy->symbolic ? ctx->bound + 1 : 0;
    if (ctx->capture) capture_copied(ctx, b, (size_t)start * size, there, exchange);
    ok = value_known(ctx, copy, n) && value_known(ctx, same, n);
    ctx->counters.copies += !to->remote;
    if (!to->remote) ctx->counters.bytes_copied += (uint64_t)there->nelem * size;
  }
  if (computed && copies_awaited(ctx)) ok = false; /* the source of the copy is about to be freed */
  tg_release(computed);
  return ok || no_memory(ctx);
}

static bool copies_made(TgContext *ctx, const Graph *g) {
  for (size_t i = 0; i < g->copies.len; i++)
    if (!copy_made(ctx, g->copies.at[i])) return false;
  return true;
}

/* ---- on one device */
/* What is to be realized. */
typedef struct Asked {
  TgTensor *const *t;
  size_t n;
  Buffer *const *stores;
  size_t nstores;
  Watch *only;
  bool alone; /* nothing else is computed with it */
} Asked;

static bool reached(Run *r, const Asked *a) {
  bool ok = true;
  for (size_t i = 0; ok && i < a->n; i++)
    if (tensor_device(a->t[i]) == r->g.device) ok = want(r, a->t[i], a->only != NULL);
  for (size_t i = 0; ok && i < a->nstores; i++)
    if (a->stores[i]->device == r->g.device) ok = !a->stores[i]->store || store_root(r, a->stores[i]);
  if (ok && r->g.stored.len && !a->alone) ok = wanted_too(r, a->only != NULL);
  return ok;
}

/* Realizes what is on one device. If the graph needs copies, it is reached anew after they were made,
 * because making them may have run stores. */
static TgStatus realize_on(TgContext *ctx, int device, const Asked *a) {
  Run r = {.ctx = ctx};
  bool ok = graph_init(&r.g, ctx, device) || no_memory(ctx);
  ok = ok && reached(&r, a);
  while (ok && r.g.copies.len) {
    Graph had = r.g;
    ok = copies_made(ctx, &had);
    graph_free(&had);
    r.results.len = 0;
    bool room = graph_init(&r.g, ctx, device) || no_memory(ctx);
    ok = ok && room && reached(&r, a);
  }
  ok = ok && run(&r, a->only);
  graph_free(&r.g);
  /* Two handles with equal values each get memory of their own. */
  for (size_t i = 0; ok && !a->only && i < r.results.len; i++) {
    TgTensor *twin = r.results.at[i].t;
    if (!twin->memory && !twin->uop->symbolic) ok = !realize(ctx, &twin, 1, NULL, 0, NULL, false);
  }
  vec_free(&ctx->mem, &r.results);
  return ok ? TG_OK : ctx->err.status ? ctx->err.status : error_no_memory(&ctx->err, "realize");
}

/* Each device computes the values that are on it. Kernels of two devices are never joined. */
static TgStatus realize(TgContext *ctx, TgTensor *const *t, size_t n, Buffer *const *stores, size_t nstores,
                        Watch *only, bool alone) {
  if (!ctx->dev_open) return error_set(&ctx->err, TG_ERR_DEVICE, "realize: no device is open");
  Asked a = {t, n, stores, nstores, only, alone};
  uint64_t on = 0;
  for (size_t i = 0; i < n; i++)
    on |= 1ull << tensor_device(t[i]);
  for (size_t i = 0; i < nstores; i++)
    on |= 1ull << stores[i]->device;
  TgStatus s = TG_OK;
  for (; !s && on; on &= on - 1)
    s = realize_on(ctx, __builtin_ctzll(on), &a);
  return s;
}

TgStatus realize_plain(TgContext *ctx, TgTensor *const *t, size_t n, Buffer *const *stores, size_t nstores) {
  return realize(ctx, t, n, stores, nstores, NULL, false);
}

TgStatus realize_alone(TgContext *ctx, TgTensor *const *t, size_t n) {
  return realize(ctx, t, n, NULL, 0, NULL, true);
}

TgStatus realize_watched(TgContext *ctx, TgTensor *const *t, size_t n, Watch *only) {
  return realize(ctx, t, n, NULL, 0, only, false);
}

bool realize_copy(TgContext *ctx, UOp *copy) { return copy_made(ctx, copy); }

static TgStatus realize_asked(TgContext *ctx, TgTensor *const *t, size_t n, Buffer *const *stores,
                              size_t nstores) {
  bool shards = ctx->dev_open && shards_asked(ctx, t, n, nstores);
  if (ctx->older && !older_read(ctx, t, n)) return error_no_memory(&ctx->err, "jit");
  return shards ? shards_realize(ctx, t, n, stores, nstores) : realize_plain(ctx, t, n, stores, nstores);
}

TgStatus engine_realize(TgContext *ctx, TgTensor *const *t, size_t n) {
  double begin = profile_now(ctx);
  TgStatus s = realize_asked(ctx, t, n, NULL, 0);
  profile_span(ctx, "realize", begin, "\"tensors\":%zu", n);
  return rank_going_on(ctx, s);
}

TgStatus engine_stores(TgContext *ctx, Buffer *const *b, size_t n) {
  double begin = profile_now(ctx);
  TgStatus s = realize_asked(ctx, NULL, 0, b, n);
  profile_span(ctx, "store", begin, "\"memories\":%zu", n);
  return rank_going_on(ctx, s);
}

int tg_schedule_parts(TgTensor *const *t, size_t n, TgTensor *const *part, size_t nparts,
                      void (*seen)(const TgLaunch *, void *), void *user) {
  Watch w = {.seen = seen, .user = user, .part = part, .nparts = (int)nparts};
  TgContext *ctx = n && t && t[0] ? t[0]->ctx : NULL;
  if (ctx && nparts > INT32_MAX / 2)
    return error_set(&ctx->err, TG_ERR_LIMIT, "schedule: %zu parts", nparts), -1;
  for (size_t i = 0; ctx && i < n; i++)
    if (!t[i] || t[i]->ctx != ctx)
      return error_set(&ctx->err, TG_ERR_VALUE, "schedule: tensor %zu is NULL or of another context", i), -1;
  for (size_t i = 0; ctx && i < nparts; i++)
    if (!part || !part[i] || part[i]->ctx != ctx)
      return error_set(&ctx->err, TG_ERR_VALUE, "schedule: part %zu is NULL or of another context", i), -1;
  if (!ctx) return -1;
  ctx->origins.told = true;
  TgStatus s =
      shards_asked(ctx, t, n, 0) ? shards_watched(ctx, t, n, &w) : realize(ctx, t, n, NULL, 0, &w, false);
  ctx->origins.told = false;
  return s ? -1 : w.count;
}

int tg_schedule(TgTensor *const *t, size_t n, void (*seen)(const TgLaunch *, void *), void *user) {
  return tg_schedule_parts(t, n, NULL, 0, seen, user);
}

/* ---- reading */
UOp *value_in_memory(TgContext *ctx, TgTensor *t) {
  if (engine_realize(ctx, &t, 1)) return NULL;
  UOp *u = t->memory ? t->uop : value_of_node(ctx, t->uop), *bottom = view_bottom(u);
  Buffer *b = bottom ? buffer_of_value(ctx, bottom) : NULL;
  if (!b || (!b->data && !b->filled))
    error_set(&ctx->err, TG_ERR_STATE, "read: the tensor was never given a value");
  else
    return u;
  return NULL;
}

/* Whether u is a whole buffer, perhaps in another shape. */
bool in_memory(const UOp *u) {
  while (u->op == OPS_RESHAPE || u->op == OPS_DETACH || u->op == OPS_AFTER)
    u = u->src[0];
  return u->op == OPS_BUFFER;
}

Buffer *value_of(TgContext *ctx, TgTensor *t) {
  UOp *u = value_in_memory(ctx, t);
  return u ? buffer_of_value(ctx, view_bottom(u)) : NULL;
}

/* Whether u is the leading part, of symbolic size, of a whole buffer. Such a part holds a value of
 * symbolic shape. */
static bool is_part(const UOp *u) {
  const UOp *whole = u->op == OPS_SHRINK ? u->src[0] : u;
  bool part = u->op == OPS_SHRINK && dims_symbolic(u->shape) &&
              (whole->op == OPS_BUFFER || (whole->op == OPS_RESHAPE && whole->src[0]->op == OPS_BUFFER));
  for (int i = 0; part && i < u->shape->n; i++)
    part = u->arg.ints->v[2 * i] == 0;
  return part;
}

bool fills_memory(TgContext *ctx, const UOp *u) {
  return in_memory(u) || (is_part(u) && u->src[0]->shape == dims_max(ctx->store, u->shape));
}

void in_memory_now(TgContext *ctx, TgTensor *t) {
  UOp *value = t->uop->symbolic || dims_symbolic(t->uop->shape) ? value_of_node(ctx, t->uop) : NULL;
  if (value && view_bottom(value)) tensor_set(t, value);
}

/* Reads a part of symbolic size. Each run of its elements that is contiguous in memory is read in one
 * piece. */
static TgStatus read_part(TgContext *ctx, const Buffer *b, const UOp *part, char *out, size_t nbytes) {
  const Ints *all = part->src[0]->shape;
  int64_t now[TG_MAX_RANK], at[TG_MAX_RANK] = {0}, run = 1, row = 0;
  int n = all->n, first;
  for (int i = 0; i < n; i++) {
    now[i] = dim_now(ctx->store, part->shape->v[i]);
    if (dim_symbolic(part->shape->v[i]) && NEVER(now[i] > all->v[i]))
      return error_set(&ctx->err, TG_ERR_INTERNAL, "read: a part larger than its memory");
  }
  /* axes first .. n-1 are one run */
  for (first = n; first > 0 && (first == n || now[first] == all->v[first]); first--)
    run *= now[first - 1];
  TgStatus s = TG_OK;
  Device *d = device_at(ctx, b->device);
  size_t size = (size_t)run * dtype_size(b->dtype);
  for (size_t done = 0; !s && done < nbytes; done += size) {
    row = 0;
    for (int i = 0; i < n; i++)
      row = row * all->v[i] + (i < first ? at[i] : 0);
    s = device_read(ctx, d, out ? out + done : NULL,
                    (const char *)b->data + (size_t)row * dtype_size(b->dtype), size);
    for (int i = first; i-- > 0 && ++at[i] == now[i];)
      at[i] = 0;
  }
  return s;
}

/* Returns a strided view as a contiguous tensor of its own. */
static TgTensor *made_contiguous(TgContext *ctx, UOp *u) {
  TgTensor *t = tensor_new(ctx, uop_alu1(ctx->store, OPS_CONTIGUOUS, u));
  if (!t || !engine_realize(ctx, &t, 1)) return t;
  tg_release(t);
  return NULL;
}

static TgStatus read_value(TgContext *ctx, TgTensor *t, void *out, size_t nbytes) {
  UOp *u = value_in_memory(ctx, t);
  if (!u) return ctx->err.status;
  Buffer *b = buffer_of_value(ctx, view_bottom(u));
  if (!nbytes) return TG_OK;
  if (is_part(u)) return read_part(ctx, b, u, out, nbytes);
  Device *d = device_at(ctx, b->device);
  int64_t start;
  if (piece_of(u, &start)) {
    const char *from = (const char *)b->data + (size_t)start * dtype_size(b->dtype);
    TgStatus s = device_read(ctx, d, out, from, nbytes);
    launch_time_taken(ctx, d);
    return s;
  }
  TgTensor *whole = made_contiguous(ctx, u);
  TgStatus s = whole ? read_value(ctx, whole, out, nbytes) : ctx->err.status;
  tg_release(whole);
  return s;
}

TgStatus engine_read(TgContext *ctx, TgTensor *t, void *out, size_t nbytes) {
  double begin = profile_now(ctx);
  TgStatus s = on_several(t->uop) ? shards_read(ctx, t, out, nbytes) : read_value(ctx, t, out, nbytes);
  profile_span(ctx, "read", begin, "\"bytes\":%zu", nbytes);
  inside_read(ctx, nbytes);
  return rank_going_on(ctx, s);
}

const void *engine_map(TgContext *ctx, TgTensor *t) {
  if (on_several(t->uop)) {
    error_set(&ctx->err, TG_ERR_DEVICE, "map: the tensor is on %s; use tg_read, or tg_shard_part",
              tg_device(t));
    return NULL;
  }
  const Device *d = device_at(ctx, tensor_device(t));
  if ((d->backend->has & HAS_OWN_MEMORY) || d->of_rank) {
    error_set(&ctx->err, TG_ERR_DEVICE, "map: %s has memory of its own, or is a rank's; use tg_read",
              d->name);
    return NULL;
  }
  UOp *u = value_in_memory(ctx, t);
  if (!u) return NULL;
  Buffer *b = buffer_of_value(ctx, view_bottom(u));
  bool part = is_part(u);
  for (int i = 1; part && i < u->shape->n; i++)
    if (dim_now(ctx->store, u->shape->v[i]) != u->src[0]->shape->v[i]) {
      error_set(&ctx->err, TG_ERR_SHAPE,
                "map: axis %d is symbolic, so that the elements are not contiguous; use tg_read", i);
      return NULL;
    }
  int64_t start = 0;
  if (part || piece_of(u, &start)) return (const char *)b->data + (size_t)start * dtype_size(b->dtype);
  TgTensor *whole = tg_keep(made_contiguous(ctx, u));
  if (!whole) return NULL;
  tg_release(t->mapped);
  t->mapped = whole;
  whole->mapped_of = t;
  return whole->memory->data;
}
