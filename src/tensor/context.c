/* context.c: opening and closing, scopes, handles, errors. */
#include "tensor/front.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* only what TG_TRACE asked for */
static void say(void *to, const char *text) { context_say(to, "%s", text); }

void context_say(TgContext *ctx, const char *form, ...) {
  char room[512], *text = room;
  va_list ap, again;
  va_start(ap, form);
  va_copy(again, ap);
  int n = vsnprintf(room, sizeof room, form, ap);
  if (n >= (int)sizeof room && (text = mem_alloc_raw(&ctx->mem, (size_t)n + 1)))
    vsnprintf(text, (size_t)n + 1, form, again);
  va_end(again), va_end(ap);
  const char *whole = text ? text : room; /* cut, where there is no memory */
  if (ctx->log)
    ctx->log(whole, ctx->log_user);
  else
    fputs(whole, stderr);
  if (text != room) mem_free(&ctx->mem, text);
}

void tg_cancel(TgContext *ctx) {
  if (ctx) atomic_store(&ctx->cancelled, true);
}

TgStatus tg_cancelled(TgContext *ctx) { return ctx ? context_cancelled(ctx) : TG_ERR_NOMEM; }

TgStatus context_cancelled(TgContext *ctx) {
  if (!atomic_load(&ctx->cancelled)) return TG_OK;
  atomic_store(&ctx->cancelled, false);
  return error_set(&ctx->err, TG_ERR_CANCELLED, "cancelled by tg_cancel");
}

void tg_watch_progress(TgContext *ctx, void (*seen)(const TgProgress *p, void *user), void *user) {
  if (ctx) ctx->progressed = seen, ctx->progressed_user = user;
}

/* Ten times a second, and at the end of each phase. */
void context_progress(TgContext *ctx, const char *phase, int done, int all) {
  TgProgress p = {.size = sizeof p, .phase = phase, .done = TG_MIN(done, all), .all = all};
  double now = time_now_s();
  bool due = now - ctx->progress_s >= 0.1 || done >= all;
  ctx->progress = p;
  if (!ctx->progressed || !due) return;
  ctx->progress_s = now;
  ctx->progressed(&p, ctx->progressed_user);
}

/* Of a device that compiles. */
static void waits(void *user, int kernels) {
  TgContext *ctx = user;
  context_progress(ctx, "compile", ctx->progress.done + kernels, ctx->progress.all);
}

TgContext *tg_open(const TgOpenOptions *options) {
  TgOpenOptions o;
  (void)tg_options_read(NULL, "open", "TgOpenOptions", &o, sizeof o, options); /* context_open refuses it */
  TgMem mem = {0};
  const TgAllocator *a = o.allocator;
  bool whole = a && a->allocate && a->reallocate && a->release;
  if (whole)
    mem.allocate = a->allocate, mem.reallocate = a->reallocate, mem.release = a->release, mem.user = a->user;
  return context_open(options, o.unpinned ? &tg_os_unpinned : &tg_os_default, mem);
}

/* A context with an error in it is still one, which must be closed; NULL only where there is no memory for
 * one. */
TgContext *context_open(const TgOpenOptions *options, const TgOs *os, TgMem mem) {
  TgOpenOptions o;
  TgContext *ctx = mem_alloc(&mem, sizeof *ctx);
  if (!ctx) {
    if (mem.last) *mem.last = mem;
    return NULL;
  }
  (void)tg_options_read(ctx, "open", "TgOpenOptions", &o, sizeof o, options);
  ctx->mem = mem, ctx->os = os;
  ctx->compiling = (Waiting){.stop = &ctx->cancelled, .tick = waits, .user = ctx};
  ctx->log = o.log, ctx->log_user = o.log_user;
  ctx->store = store_new(&ctx->mem), ctx->dims = dims_new(&ctx->mem, &ctx->err);
  map_init(&ctx->realized, &ctx->mem), map_init(&ctx->history, &ctx->mem);
  if (ctx->store) store_set_dims(ctx->store, ctx->dims);
  if (!ctx->store || !ctx->dims || !vec_push(&ctx->mem, &ctx->scopes, (TgScope){0})) {
    tg_close(ctx);
    return NULL;
  }
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  ctx->rng_seed = TG_OPTION(o, seed, (uint64_t)now.tv_sec * 1000003u + (uint64_t)now.tv_nsec);
  if (env_read(&ctx->env, &ctx->err)) return ctx;
  pass_env_init(&ctx->passes, &ctx->env, ctx->os, &ctx->mem, say, ctx);
  if (o.threads) ctx->env.threads = o.threads;
  if (o.cores < 0) error_set(&ctx->err, TG_ERR_VALUE, "open: cores is %d", o.cores);
  const TgAllocator *a = o.allocator;
  if (a && (!a->allocate || !a->reallocate || !a->release))
    error_set(&ctx->err, TG_ERR_VALUE, "open: an allocator without allocate, reallocate or release");
  if (o.device) {
    if (strlen(o.device) >= sizeof ctx->env.dev)
      error_set(&ctx->err, TG_ERR_VALUE, "open: the device name is too long");
    else
      memcpy(ctx->env.dev, o.device, strlen(o.device) + 1), ctx->env.dev_set = 1;
  }
  if (!ctx->err.status) {
    TgStatus s = engine_open(ctx);
    if (s)
      error_set(&ctx->err, s, "open: device %s does not open", ctx->env.dev[0] ? ctx->env.dev : "(default)");
    else
      ctx->dev_open = true;
    if (!s && o.memory_limit) tg_memory_limit(ctx, NULL, o.memory_limit);
    if (!s && o.cores > 0 && (ctx->dev.backend->has & HAS_THREADS)) ctx->dev.target.cores = o.cores;
  }
  return ctx;
}

void tg_close(TgContext *ctx) {
  if (!ctx) return;
  if (ctx->dev_open) engine_files_written(ctx);
  while (ctx->jits)
    tg_jit_free(ctx->jits);
  while (ctx->kept)
    tg_release(ctx->kept);
  for (size_t i = ctx->scopes.len; i-- > 0;)
    while (ctx->scopes.at[i].tensors)
      tg_release(ctx->scopes.at[i].tensors);
  for (size_t i = 0; i < ctx->buffers.len; i++)
    buffer_free(ctx, (int64_t)i);
  engine_close(ctx);
  vec_free(&ctx->mem, &ctx->buffers);
  vec_free(&ctx->mem, &ctx->scopes);
  vec_free(&ctx->mem, &ctx->pending);
  vec_free(&ctx->mem, &ctx->waiting);
  map_free(&ctx->realized), map_free(&ctx->history);
  for (size_t i = 0; i < ctx->hooks.len; i++)
    if (ctx->hooks.at[i].own) mem_free(&ctx->mem, ctx->hooks.at[i].user);
  vec_free(&ctx->mem, &ctx->hooks);
  pass_env_free(&ctx->passes), str_free(&ctx->text), str_free(&ctx->describe), str_free(&ctx->opt_text),
      str_free(&ctx->info_text), str_free(&ctx->bundle_text);
  if (ctx->store) store_free(ctx->store);
  for (size_t i = 0; i < ctx->variables.len; i++)
    mem_free(&ctx->mem, ctx->variables.at[i]);
  vec_free(&ctx->mem, &ctx->variables), dims_free(ctx->dims);
  TgMem mem = ctx->mem;
  mem_free(&mem, ctx);
  if (mem.last) *mem.last = mem;
}

/* ---- errors and facts */
TgStatus tg_error(const TgContext *ctx) { return ctx ? ctx->err.status : TG_ERR_NOMEM; }

const char *tg_errmsg(const TgContext *ctx) {
  return !ctx ? "out of memory" : ctx->err.status ? ctx->err.msg : "";
}

void tg_clear_error(TgContext *ctx) {
  if (ctx) memset(&ctx->err, 0, sizeof ctx->err);
}

TgStatus tg_set_error(TgContext *ctx, TgStatus status, const char *text) {
  if (ctx && status) error_set(&ctx->err, status, "%s", text ? text : tg_status_name(status));
  return status;
}

const char *tg_status_name(TgStatus s) {
  static const char *const names[] = {
      "ok",          "out of memory", "shape error",    "dtype error",
      "value error", "device error",  "compile error",  "input or output error",
      "state error", "limit reached", "internal error", "cancelled"};
  return (unsigned)s < TG_COUNT(names) ? names[s] : "unknown";
}

const char *tg_version(void) { return "0.1.0"; }

static const Device *default_device(const TgContext *ctx) {
  return ctx && ctx->dev_open ? device_at((TgContext *)ctx, ctx->default_device) : NULL;
}

const char *tg_default_device(const TgContext *ctx) {
  const Device *d = default_device(ctx);
  return d ? d->name : "";
}

TgStatus tg_set_default_device(TgContext *ctx, const char *device) {
  if (!ctx) return TG_ERR_VALUE;
  int d = device_find(ctx, "set_default_device", device && *device ? device : ctx->dev.name);
  if (d < 0) return ctx->err.status;
  TG_REQUIRE_OR(ctx, !(device_at(ctx, d)->backend->has & HAS_FILES_ONLY), TG_ERR_DEVICE, TG_ERR_DEVICE,
                "set_default_device: %s has files alone", device);
  ctx->default_device = ctx->draw_device = d;
  return TG_OK;
}

const char *tg_device(const TgTensor *t) {
  return t && t->ctx->dev_open ? device_at(t->ctx, tensor_device(t))->name : "";
}

const char *tg_device_describe(const TgContext *ctx) {
  const Device *d = default_device(ctx);
  return d && d->describe ? d->describe : tg_default_device(ctx);
}

void tg_watch_kernels(TgContext *ctx, void (*seen)(const TgKernelText *k, void *user), void *user) {
  if (ctx) ctx->seen = seen, ctx->seen_user = user;
}

void tg_watch_launches(TgContext *ctx, void (*seen)(const TgLaunch *l, void *user), void *user) {
  if (ctx) ctx->launched = seen, ctx->launched_user = user;
}

TgCounters tg_counters(const TgContext *ctx) {
  TgCounters c = {0};
  if (!ctx) return c;
  c = ctx->counters;
  c.visits = ctx->passes.rewrites.visits;
  c.firings = ctx->passes.rewrites.firings;
  c.nested = ctx->passes.rewrites.nested;
  for (int i = 0; i < device_count(ctx); i++) {
    const Device *d = device_at((TgContext *)ctx, i);
    c.peak_bytes += d->bytes_peak, c.retried += d->compiles_retried;
  }
  c.fallbacks = ctx->passes.fallbacks, c.cuts = ctx->passes.cuts;
  return c;
}

void tg_counters_reset(TgContext *ctx) {
  if (!ctx) return;
  RewriteEnv *r = &ctx->passes.rewrites;
  ctx->counters = (TgCounters){0};
  for (int i = 0; i < device_count(ctx); i++) {
    Device *d = device_at(ctx, i);
    d->bytes_peak = d->bytes_in_use, d->compiles_retried = 0;
  }
  ctx->passes.fallbacks = ctx->passes.cuts = 0;
  r->visits = r->firings = r->nested = r->created = 0;
}

void tg_set_training(TgContext *ctx, bool on) {
  if (ctx) ctx->training = on;
}

bool tg_training(const TgContext *ctx) { return ctx && ctx->training; }

void tg_cache_clear(TgContext *ctx) {
  if (ctx && ctx->engine) engine_cache_clear(ctx);
}

static TgStatus swept(TgContext *ctx) {
  TgStatus s = engine_collect(ctx);
  ctx->swept_nodes = store_count(ctx->store), ctx->swept_bytes = devices_bytes(ctx);
  return s;
}

TgStatus tg_collect(TgContext *ctx) {
  if (!ctx) return TG_ERR_VALUE;
  if (!ctx->dev_open) return TG_OK;
  engine_pool_emptied(ctx);
  return swept(ctx);
}

void *tg_alloc(TgContext *ctx, size_t nbytes) {
  void *p = ctx ? mem_alloc(&ctx->mem, nbytes) : NULL;
  if (!p && ctx) error_set(&ctx->err, TG_ERR_NOMEM, "out of memory");
  return p;
}

void tg_free(TgContext *ctx, void *p) {
  if (ctx) mem_free(&ctx->mem, p);
}

/* ---- scopes */
TgStatus tg_scope_begin(TgContext *ctx) {
  if (!ctx) return TG_ERR_VALUE;
  if (!vec_push(&ctx->mem, &ctx->scopes, (TgScope){0}))
    return error_set(&ctx->err, TG_ERR_NOMEM, "scope: out of memory");
  /* the array may have moved: first tensors point back into it */
  for (size_t i = 0; i < ctx->scopes.len; i++)
    if (ctx->scopes.at[i].tensors) ctx->scopes.at[i].tensors->link = &ctx->scopes.at[i].tensors;
  return TG_OK;
}

/* Results whose handles are gone: the memory that the next ones are written to is cold as long as these hold
 * theirs. A sweep looks at each node; it is worth that for each SWEPT_FOR_NODE bytes that it gives back. */
enum { SWEPT_FOR_NODE = 100, SWEPT_FROM = 256 << 10 };

static bool sweep_is_due(const TgContext *ctx) {
  uint64_t used = devices_bytes(ctx), garbage = used > ctx->swept_bytes ? used - ctx->swept_bytes : 0;
  return store_count(ctx->store) > 2 * ctx->swept_nodes + 20000 ||
         garbage > SWEPT_FROM + (uint64_t)SWEPT_FOR_NODE * store_id_limit(ctx->store);
}

TgStatus tg_scope_end(TgContext *ctx) {
  if (!ctx) return TG_ERR_VALUE;
  if (ctx->scopes.len < 2) return error_set(&ctx->err, TG_ERR_STATE, "scope: end without begin");
  TgScope *s = &ctx->scopes.at[ctx->scopes.len - 1];
  while (s->tensors)
    tg_release(s->tensors);
  ctx->scopes.len--;
  return ctx->dev_open && sweep_is_due(ctx) ? swept(ctx) : TG_OK;
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

/* what no call has seen by itself: lists of tensors */
static bool on_one_device(TgContext *ctx, const UOp *u) {
  uint64_t rest = u->devices & (u->devices - 1);
  if (!rest) return true;
  error_set(&ctx->err, TG_ERR_DEVICE, "tensors on %s and on %s in one operation; tg_to moves them",
            device_at(ctx, __builtin_ctzll(u->devices))->name, device_at(ctx, __builtin_ctzll(rest))->name);
  return false;
}

TgTensor *tensor_new(TgContext *ctx, UOp *u) {
  if (u && !on_one_device(ctx, u)) return NULL;
  TgTensor *t = u ? mem_alloc(&ctx->mem, sizeof *t) : NULL;
  if (!t) {
    error_set(&ctx->err, TG_ERR_NOMEM, "out of memory");
    return NULL;
  }
  t->ctx = ctx, t->uop = u;
  link_in(t, &ctx->scopes.at[ctx->scopes.len - 1].tensors);
  return t;
}

TgTensor *tensor_memory(TgContext *ctx, UOp *u) {
  TgTensor *t = tensor_new(ctx, u);
  if (t) tensor_set(t, u);
  return t;
}

TgTensor *tensor_view(TgTensor *x, UOp *u) {
  return x->memory ? tensor_memory(x->ctx, u) : tensor_new(x->ctx, u);
}

TgTensor *tensor_result(TgTensor *r, const TgTensor *x) {
  return r && r == x ? tensor_new(r->ctx, r->uop) : r;
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
  places_unlink(t);
  tg_release(t->mapped);
  if (t->mapped_of) t->mapped_of->mapped = NULL;
  if (t->grad) t->grad->grad_of = NULL;
  if (t->grad_of) t->grad_of->grad = NULL;
  if (t->pending)
    for (size_t i = 0; i < ctx->pending.len; i++)
      if (ctx->pending.at[i] == t) {
        ctx->pending.at[i] = ctx->pending.at[--ctx->pending.len];
        break;
      }
  mem_free(&ctx->mem, t->sizes);
  mem_free(&ctx->mem, t);
}

void pending_add(TgTensor *t) {
  if (t->pending) return;
  if (vec_push(&t->ctx->mem, &t->ctx->pending, t))
    t->pending = true;
  else
    error_set(&t->ctx->err, TG_ERR_NOMEM, "out of memory");
}

/* ---- realizing */
TgStatus tg_realize_many(TgTensor *const *t, size_t n) {
  if (n == 0) return TG_OK;
  TgContext *ctx = NULL;
  bool whole = true;
  for (size_t i = 0; i < n; i++) {
    if (!t || !t[i]) {
      whole = false;
      continue;
    }
    if (ctx && t[i]->ctx != ctx)
      return error_set(&ctx->err, TG_ERR_VALUE, "realize: the tensors belong to different contexts");
    ctx = t[i]->ctx;
  }
  if (!ctx) return TG_ERR_VALUE;
  if (!whole) return error_set(&ctx->err, TG_ERR_VALUE, "realize: a tensor is NULL");
  if (!ctx->dev_open) return error_set(&ctx->err, TG_ERR_DEVICE, "realize: no device is open");
  return engine_realize(ctx, t, n);
}

TgStatus tg_realize(TgTensor *t) { return t ? tg_realize_many(&t, 1) : TG_ERR_VALUE; }
