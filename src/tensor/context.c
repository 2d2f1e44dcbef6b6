/* context.c: opening and closing, scopes, errors, buffers, and the in-place bookkeeping around engine_realize. */
#include "tensor/front.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Names that tg_open knows. Whether one works here is found out by opening it. */
static const char *const device_names[] = {"CPU", "INTERP", "INTERP:C", "INTERP:CUDA", "INTERP:METAL", "NULL:C", "NULL:CUDA", "NULL:METAL"};
const char *tg_device_name(int i) { return i >= 0 && (size_t)i < TG_COUNT(device_names) ? device_names[i] : NULL; }

static void say(void *to, const char *text) { (void)to, fputs(text, stderr); }   /* only what TG_TRACE asked for */
TgContext *tg_open(const TgOpenOptions *options) { return context_open(options, &tg_os_default, (TgMem){0}); }
TgContext *context_open(const TgOpenOptions *options, const TgOs *os, TgMem mem) {
  TG_OPTIONS(TgOpenOptions, o, options);
  TgContext *ctx = mem_alloc(&mem, sizeof *ctx);
  if (!ctx) {
    if (mem.last) *mem.last = mem;
    return NULL;
  }
  ctx->mem = mem, ctx->os = os;
  ctx->store = store_new(&ctx->mem), ctx->dims = dims_new(&ctx->mem, &ctx->err);
  map_init(&ctx->realized, &ctx->mem);
  if (ctx->store) store_set_dims(ctx->store, ctx->dims);
  if (!ctx->store || !ctx->dims || !vec_push(&ctx->mem, &ctx->scopes, (TgScope){0})) {
    tg_close(ctx);
    return NULL;
  }
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  ctx->rng_seed = o.seed ? o.seed : (uint64_t)now.tv_sec * 1000003u + (uint64_t)now.tv_nsec;
  if (env_read(&ctx->env, &ctx->err)) return ctx;
  pass_env_init(&ctx->passes, &ctx->env, ctx->os, &ctx->mem, say, NULL);
  if (o.threads) ctx->env.threads = o.threads;
  if (o.cores < 0) error_set(&ctx->err, TG_ERR_VALUE, "open: cores is %d", o.cores);
  if (o.device) {
    if (strlen(o.device) >= sizeof ctx->env.dev) error_set(&ctx->err, TG_ERR_VALUE, "open: the device name is too long");
    else memcpy(ctx->env.dev, o.device, strlen(o.device) + 1), ctx->env.dev_set = 1;
  }
  if (!ctx->err.status) {
    TgStatus s = engine_open(ctx);
    if (s) error_set(&ctx->err, s, "open: device %s does not open", ctx->env.dev[0] ? ctx->env.dev : "(default)");
    else ctx->dev_open = true;
    if (!s && o.cores > 0) ctx->dev.ncores = o.cores;
  }
  return ctx;
}
void tg_close(TgContext *ctx) {
  if (!ctx) return;
  while (ctx->jits) tg_jit_free(ctx->jits);
  while (ctx->kept) tg_release(ctx->kept);
  for (size_t i = ctx->scopes.len; i-- > 0;)
    while (ctx->scopes.at[i].tensors) tg_release(ctx->scopes.at[i].tensors);
  for (size_t i = 0; i < ctx->buffers.len; i++) buffer_free(ctx, (int64_t)i);
  engine_close(ctx);
  vec_free(&ctx->mem, &ctx->buffers);
  vec_free(&ctx->mem, &ctx->scopes);
  vec_free(&ctx->mem, &ctx->pending);
  map_free(&ctx->realized);
  vec_free(&ctx->mem, &ctx->hooks);
  pass_env_free(&ctx->passes), str_free(&ctx->text), str_free(&ctx->describe), str_free(&ctx->opt_text), str_free(&ctx->info_text);
  if (ctx->store) store_free(ctx->store);
  for (size_t i = 0; i < ctx->variables.len; i++) mem_free(&ctx->mem, ctx->variables.at[i]);
  vec_free(&ctx->mem, &ctx->variables), dims_free(ctx->dims);
  TgMem mem = ctx->mem;
  mem_free(&mem, ctx);
  if (mem.last) *mem.last = mem;
}

/* ---- errors and facts */
TgStatus tg_error(const TgContext *ctx) { return ctx ? ctx->err.status : TG_ERR_NOMEM; }
const char *tg_errmsg(const TgContext *ctx) { return !ctx ? "out of memory" : ctx->err.status ? ctx->err.msg : ""; }
void tg_clear_error(TgContext *ctx) { if (ctx) memset(&ctx->err, 0, sizeof ctx->err); }
TgStatus tg_set_error(TgContext *ctx, TgStatus status, const char *text) {
  if (ctx && status) error_set(&ctx->err, status, "%s", text ? text : tg_status_name(status));
  return status;
}
const char *tg_status_name(TgStatus s) {
  static const char *const names[] = {"ok", "out of memory", "shape error", "dtype error", "value error", "device error",
                                      "compile error", "input or output error", "state error", "limit reached", "internal error"};
  return (unsigned)s < TG_COUNT(names) ? names[s] : "unknown";
}
const char *tg_version(void) { return "0.1.0"; }
const char *tg_device(const TgContext *ctx) { return ctx && ctx->dev_open ? ctx->dev.backend->name : ""; }
const char *tg_device_describe(const TgContext *ctx) {
  return ctx && ctx->dev_open && ctx->dev.describe ? ctx->dev.describe : tg_device(ctx);
}
void tg_watch_kernels(TgContext *ctx, void (*seen)(const TgKernelText *k, void *user), void *user) {
  if (ctx) ctx->seen = seen, ctx->seen_user = user;
}
TgCounters tg_counters(const TgContext *ctx) {
  TgCounters c = {0};
  if (!ctx) return c;
  c = ctx->counters;
  c.visits = ctx->passes.rewrites.visits, c.firings = ctx->passes.rewrites.firings, c.nested = ctx->passes.rewrites.nested;
  c.peak_bytes = ctx->dev.bytes_peak;
  c.retried = ctx->dev.compiles_retried;
  return c;
}
void tg_counters_reset(TgContext *ctx) {
  if (!ctx) return;
  RewriteEnv *r = &ctx->passes.rewrites;
  ctx->counters = (TgCounters){0};
  ctx->dev.bytes_peak = ctx->dev.bytes_in_use, ctx->dev.compiles_retried = 0;
  r->visits = r->firings = r->nested = r->created = 0;
}
void tg_set_training(TgContext *ctx, bool on) { if (ctx) ctx->training = on; }
bool tg_training(const TgContext *ctx) { return ctx && ctx->training; }
void tg_cache_clear(TgContext *ctx) { if (ctx && ctx->engine) engine_cache_clear(ctx); }
TgStatus tg_collect(TgContext *ctx) {
  if (!ctx) return TG_ERR_VALUE;
  if (!ctx->dev_open) return TG_OK;
  TgStatus s = engine_collect(ctx);
  ctx->swept_nodes = store_count(ctx->store), ctx->swept_bytes = ctx->dev.bytes_in_use;
  return s;
}

void *tg_alloc(TgContext *ctx, size_t nbytes) {
  void *p = ctx ? mem_alloc(&ctx->mem, nbytes) : NULL;
  if (!p && ctx) error_set(&ctx->err, TG_ERR_NOMEM, "out of memory");
  return p;
}
void tg_free(TgContext *ctx, void *p) { if (ctx) mem_free(&ctx->mem, p); }

/* ---- scopes */
TgStatus tg_scope_begin(TgContext *ctx) {
  if (!ctx) return TG_ERR_VALUE;
  if (!vec_push(&ctx->mem, &ctx->scopes, (TgScope){0})) return error_set(&ctx->err, TG_ERR_NOMEM, "scope: out of memory");
  for (size_t i = 0; i < ctx->scopes.len; i++)               /* the array may have moved: first tensors point back into it */
    if (ctx->scopes.at[i].tensors) ctx->scopes.at[i].tensors->link = &ctx->scopes.at[i].tensors;
  return TG_OK;
}
TgStatus tg_scope_end(TgContext *ctx) {
  if (!ctx) return TG_ERR_VALUE;
  if (ctx->scopes.len < 2) return error_set(&ctx->err, TG_ERR_STATE, "scope: end without begin");
  TgScope *s = &ctx->scopes.at[ctx->scopes.len - 1];
  while (s->tensors) tg_release(s->tensors);
  ctx->scopes.len--;
  if (store_count(ctx->store) > 2 * ctx->swept_nodes + 20000 || ctx->dev.bytes_in_use > 2 * ctx->swept_bytes + (64u << 20))
    return tg_collect(ctx);
  return TG_OK;
}
static void link_in(TgTensor *t, TgTensor **head) {
  t->next = *head, t->link = head;
  if (t->next) t->next->link = &t->next;
  *head = t;
}
static void link_out(TgTensor *t) {
  *t->link = t->next;
  if (t->next) t->next->link = t->link;
}
TgTensor *tensor_new(TgContext *ctx, UOp *u) {
  TgTensor *t = u ? mem_alloc(&ctx->mem, sizeof *t) : NULL;
  if (!t) {
    error_set(&ctx->err, TG_ERR_NOMEM, "out of memory");
    return NULL;
  }
  t->ctx = ctx, t->uop = u;
  link_in(t, &ctx->scopes.at[ctx->scopes.len - 1].tensors);
  return t;
}
TgTensor *tg_keep(TgTensor *t) {
  if (!t || t->kept) return t;
  link_out(t);
  link_in(t, &t->ctx->kept);
  t->kept = true;
  return t;
}
void tg_release(TgTensor *t) {
  if (!t) return;
  TgContext *ctx = t->ctx;
  link_out(t);
  if (t->grad) t->grad->grad_of = NULL;
  if (t->grad_of) t->grad_of->grad = NULL;
  if (t->pending)
    for (size_t i = 0; i < ctx->pending.len; i++)
      if (ctx->pending.at[i] == t) { ctx->pending.at[i] = ctx->pending.at[--ctx->pending.len]; break; }
  mem_free(&ctx->mem, t->sizes);
  mem_free(&ctx->mem, t);
}
void pending_add(TgTensor *t) {
  if (t->pending) return;
  if (vec_push(&t->ctx->mem, &t->ctx->pending, t)) t->pending = true;
  else error_set(&t->ctx->err, TG_ERR_NOMEM, "out of memory");
}

/* ---- buffers */
UOp *buffer_node(TgContext *ctx, DType dtype, int64_t nelem, const Ints *shape) {
  const Ints *most = shape ? dims_max(ctx->store, shape) : NULL;
  if (most != shape) {                                       /* room for the largest; a place has one address whatever the sizes are */
    int64_t be[2 * TG_MAX_RANK];
    if (!most) return NULL;
    for (int i = 0; i < shape->n; i++) be[2 * i] = 0, be[2 * i + 1] = shape->v[i];
    return u_shrink(ctx->store, buffer_node(ctx, dtype, dim_product(ctx->store, most), most), be);
  }
  Buffer *b = mem_alloc(&ctx->mem, sizeof *b);
  if (!b) return NULL;
  b->dtype = dtype, b->nelem = nelem;
  int64_t uid = (int64_t)ctx->buffers.len;
  if (!vec_push(&ctx->mem, &ctx->buffers, b)) { mem_free(&ctx->mem, b); return NULL; }
  UOp *u = uop_new(ctx->store, OPS_BUFFER, dtype, 1, 0, NULL, (Arg){.param = {nelem, uid}});
  return u && shape ? u_reshape(ctx->store, u, shape->n, shape->v) : NULL;
}
Buffer *buffer_get(TgContext *ctx, const UOp *u) {
  uint64_t uid = (uint64_t)u->arg.param.slot;
  return uid < ctx->buffers.len ? ctx->buffers.at[uid] : NULL;
}
void buffer_free(TgContext *ctx, int64_t uid) {
  Buffer *b = ctx->buffers.at[uid];
  if (!b) return;
  ctx->buffers.at[uid] = NULL;
  if (b->borrowed) { if (b->destroy) b->destroy(b->data, b->user); }
  else if (b->data && b->data == file_data(&b->file)) {}
  else if (b->data && ctx->dev_open) ctx->dev.backend->free(&ctx->dev, b->data, (size_t)b->nelem * dtype_size(b->dtype));
  file_unmap(ctx->os, &b->file);
  mem_free(&ctx->mem, b);
}

/* ---- realizing. Nodes are interned, so a value computed before an in-place update and the same expression built after it are one node.
 * After an update each handle that holds a value computed from the old contents is therefore turned into that value itself (its
 * graph no longer describes it), and the map of realized nodes forgets it. The same holds for the updates: the AFTER of one training
 * step is the AFTER of the next. A handle of an update that has run becomes its target, and the map remembers an update as done only
 * while some handle's graph still contains it (tg_assign makes a different node in that case). */
typedef struct Update { Map stored, done; UOpVec after; } Update;   /* BUFFERs written; the AFTER nodes that write them, as set and list */

static bool update_find(TgContext *ctx, TgTensor *const *t, size_t n, Update *up) {
  UOpVec roots = {0}, topo = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++) ok = vec_push(&ctx->mem, &roots, t[i]->uop);
  ok = ok && uop_toposort(ctx->store, &ctx->mem, roots.at, roots.len, &topo);
  for (size_t i = 0; ok && i < topo.len; i++) {
    UOp *u = topo.at[i], *base;
    if (u->op != OPS_AFTER || map_get_ptr(&ctx->realized, u) || !(base = uop_base(u))) continue;
    if (map_get_ptr(&up->done, u)) continue;
    ok = map_put_ptr(&up->stored, base, base) && map_put_ptr(&up->done, u, u) && vec_push(&ctx->mem, &up->after, u);
  }
  vec_free(&ctx->mem, &roots);
  vec_free(&ctx->mem, &topo);
  return ok;
}
static bool each_tensor(TgContext *ctx, UOpVec *roots, bool (*f)(TgContext *, TgTensor *, void *), void *arg) {
  for (size_t s = 0; s <= ctx->scopes.len; s++)
    for (TgTensor *t = s < ctx->scopes.len ? ctx->scopes.at[s].tensors : ctx->kept; t; t = t->next) {
      if (roots && !vec_push(&ctx->mem, roots, t->uop)) return false;
      if (f && !f(ctx, t, arg)) return false;
    }
  return true;
}
static bool pin_value(TgContext *ctx, TgTensor *t, void *stale) {
  UOp *v = map_get_ptr(&ctx->realized, t->uop);
  if (v && v != t->uop && (t->uop->op == OPS_AFTER || map_get_ptr(stale, t->uop))) t->uop = v;
  return true;
}
static bool update_done(TgContext *ctx, Update *up) {
  UOpVec roots = {0}, topo = {0};
  Map stale, kept, held;
  map_init(&stale, &ctx->mem), map_init(&kept, &ctx->mem), map_init(&held, &ctx->mem);
  bool ok = each_tensor(ctx, &roots, NULL, NULL);
  for (size_t i = 0; ok && i < ctx->realized.cap; i++)
    if (ctx->realized.at[i].used && ctx->realized.at[i].val) ok = vec_push(&ctx->mem, &roots, (UOp *)(uintptr_t)ctx->realized.at[i].key);
  ok = ok && uop_toposort(ctx->store, &ctx->mem, roots.at, roots.len, &topo);
  for (size_t i = 0; ok && i < topo.len; i++) {
    UOp *u = topo.at[i];
    if (map_get_ptr(&up->done, u)) continue;                 /* what is behind a store that has just run sees the new contents */
    bool dep = u->op == OPS_BUFFER && map_get_ptr(&up->stored, u);
    for (int s = 0; s < u->nsrc; s++) dep = dep || map_get_ptr(&stale, u->src[s]);
    if (dep) ok = map_put_ptr(&stale, u, u);
  }
  ok = ok && each_tensor(ctx, NULL, pin_value, &stale);
  roots.len = topo.len = 0;
  ok = ok && each_tensor(ctx, &roots, NULL, NULL) && uop_toposort(ctx->store, &ctx->mem, roots.at, roots.len, &topo);
  for (size_t i = 0; ok && i < topo.len; i++)
    if (topo.at[i]->op == OPS_AFTER) ok = map_put_ptr(&held, topo.at[i], topo.at[i]);
  for (size_t i = 0; ok && i < ctx->realized.cap; i++) {
    MapEntry *e = &ctx->realized.at[i];
    UOp *key = (UOp *)(uintptr_t)e->key;
    if (!e->used || !e->val) continue;
    if (key->op == OPS_AFTER ? map_get_ptr(&held, key) != NULL : !map_get_ptr(&stale, key)) ok = map_put(&kept, e->key, e->val);
  }
  if (ok) { Map old = ctx->realized; ctx->realized = kept, kept = old; }
  map_free(&stale), map_free(&kept), map_free(&held);
  vec_free(&ctx->mem, &roots), vec_free(&ctx->mem, &topo);
  return ok;
}
static TgStatus files_written(TgContext *ctx, const Update *up) {      /* where the device's memory is a copy of the file */
  TgStatus s = TG_OK;
  for (size_t i = 0; !s && i < up->stored.cap; i++) {
    Buffer *b = up->stored.at[i].used ? buffer_get(ctx, (UOp *)(uintptr_t)up->stored.at[i].key) : NULL;
    void *at = b ? file_data(&b->file) : NULL;
    if (at && at != b->data) s = ctx->dev.backend->copy_out(&ctx->dev, at, b->data, (size_t)b->nelem * dtype_size(b->dtype));
  }
  return s ? error_set(&ctx->err, s, "realize: the file of an assigned tensor cannot be written") : TG_OK;
}
TgStatus memory_stored(TgContext *ctx, UOp *const *buffers, size_t n) {
  Update up = {0};
  map_init(&up.stored, &ctx->mem), map_init(&up.done, &ctx->mem);
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++) ok = buffers[i] && map_put_ptr(&up.stored, buffers[i], buffers[i]);
  TgStatus s = ok && update_done(ctx, &up) ? files_written(ctx, &up) : error_set(&ctx->err, TG_ERR_NOMEM, "out of memory");
  map_free(&up.stored), map_free(&up.done);
  return s;
}
TgStatus tg_realize_many(TgTensor *const *t, size_t n) {
  if (n == 0) return TG_OK;
  TgContext *ctx = NULL;
  bool whole = true, after = false;
  for (size_t i = 0; i < n; i++) {
    if (!t || !t[i]) { whole = false; continue; }
    if (ctx && t[i]->ctx != ctx) return error_set(&ctx->err, TG_ERR_VALUE, "realize: the tensors belong to different contexts");
    ctx = t[i]->ctx;
    after = after || uop_has_op(t[i]->uop, OPS_AFTER);
  }
  if (!ctx) return TG_ERR_VALUE;
  if (!whole) return error_set(&ctx->err, TG_ERR_VALUE, "realize: a tensor is NULL");
  if (!ctx->dev_open) return error_set(&ctx->err, TG_ERR_DEVICE, "realize: no device is open");
  if (!after) return engine_realize(ctx, t, n);

  Vec(TgTensor *) all = {0};
  TgTensor *inner = NULL;
  Update up = {0};
  map_init(&up.stored, &ctx->mem), map_init(&up.done, &ctx->mem);
  TgStatus s = TG_OK;
  bool ok = update_find(ctx, t, n, &up);
  for (size_t i = 0; ok && i < n; i++) ok = vec_push(&ctx->mem, &all, t[i]);
  if (ok && up.after.len) {
    for (size_t i = 0; ok && i < ctx->pending.len; i++) ok = vec_push(&ctx->mem, &all, ctx->pending.at[i]);
    ok = ok && update_find(ctx, all.at + n, all.len - n, &up);
    /* Every store met on the way is a root too, so that it is known as done: none may run twice. */
    ok = ok && (inner = mem_alloc(&ctx->mem, up.after.len * sizeof *inner)) != NULL;
    for (size_t i = 0; ok && i < up.after.len; i++) {
      inner[i] = (TgTensor){.ctx = ctx, .uop = up.after.at[i]};
      ok = vec_push(&ctx->mem, &all, &inner[i]);
    }
  }
  if (ok) s = engine_realize(ctx, all.at, all.len);
  if (ok && !s && up.after.len) {
    for (size_t i = 0; i < ctx->pending.len; i++) ctx->pending.at[i]->pending = false;
    ctx->pending.len = 0;
    ok = update_done(ctx, &up);
    s = files_written(ctx, &up);
    for (size_t i = 0; ctx->capture && i < up.stored.cap; i++) if (up.stored.at[i].used) capture_stored(ctx, (UOp *[]){(UOp *)(uintptr_t)up.stored.at[i].key}, 1);
  }
  vec_free(&ctx->mem, &all), vec_free(&ctx->mem, &up.after);
  mem_free(&ctx->mem, inner);
  map_free(&up.stored), map_free(&up.done);
  return ok ? s : error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
}
TgStatus tg_realize(TgTensor *t) { return t ? tg_realize_many(&t, 1) : TG_ERR_VALUE; }

/* ---- variables. What was computed from a variable is an expression of it: bound to another value, it is computed anew when it is asked for. A store
 * is no expression: one that waits runs with the values that it was written for. */
TgStatus values_unbind(TgContext *ctx, bool before) {
  if (!before) {
    Map kept;
    bool ok = true;
    map_init(&kept, &ctx->mem);
    for (size_t i = 0; ok && i < ctx->realized.cap; i++) {
      MapEntry *e = &ctx->realized.at[i];
      const UOp *key = (const UOp *)(uintptr_t)e->key;
      if (e->used && e->val && (!key->symbolic || key->op == OPS_AFTER)) ok = map_put(&kept, e->key, e->val);
    }
    if (ok) { Map old = ctx->realized; ctx->realized = kept, kept = old; }
    map_free(&kept);
    return ok ? TG_OK : error_set(&ctx->err, TG_ERR_NOMEM, "variable: out of memory");
  }
  UOpVec roots = {0}, topo = {0};
  Vec(TgTensor *) waits = {0};
  bool ok = each_tensor(ctx, &roots, NULL, NULL) && uop_toposort(ctx->store, &ctx->mem, roots.at, roots.len, &topo);
  for (size_t i = 0; ok && i < topo.len; i++) {
    UOp *u = topo.at[i];
    if (u->op != OPS_AFTER || !u->src[1]->symbolic || map_get_ptr(&ctx->realized, u)) continue;
    TgTensor *t = tensor_new(ctx, u);
    ok = t && vec_push(&ctx->mem, &waits, t);
  }
  TgStatus s = !ok ? error_set(&ctx->err, TG_ERR_NOMEM, "variable: out of memory") : waits.len ? tg_realize_many(waits.at, waits.len) : TG_OK;
  for (size_t i = 0; i < waits.len; i++) tg_release(waits.at[i]);
  vec_free(&ctx->mem, &waits), vec_free(&ctx->mem, &roots), vec_free(&ctx->mem, &topo);
  return s;
}
