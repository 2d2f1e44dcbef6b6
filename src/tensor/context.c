/* context.c: what a context holds, scopes, handles, errors. */
#include "tensor/front.h"
#include "tensor/multi.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

void context_say(TgContext *ctx, const char *form, ...) {
  char room[512], *text = room;
  va_list ap, again;
  va_start(ap, form);
  va_copy(again, ap);
  int n = vsnprintf(room, sizeof room, form, ap);
  if (n >= (int)sizeof room && (text = mem_alloc_raw(&ctx->mem, (size_t)n + 1)))
    vsnprintf(text, (size_t)n + 1, form, again);
  va_end(again), va_end(ap);
  const char *whole = text ? text : room; /* shortened if there is no memory */
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
  if (ctx) {
    ctx->progressed = seen;
    ctx->progressed_user = user;
  }
}

/* Reports progress at most ten times a second, and at the end of each phase. */
void context_progress(TgContext *ctx, const char *phase, int done, int all) {
  TgProgress p = {.size = sizeof p, .phase = phase, .done = TG_MIN(done, all), .all = all};
  double now = time_now_s();
  bool due = now - ctx->progress_s >= 0.1 || done >= all;
  ctx->progress = p;
  if (!ctx->progressed || !due) return;
  ctx->progress_s = now;
  ctx->progressed(&p, ctx->progressed_user);
}

/* ---- creating and freeing */
TgContext *context_new(const TgOs *os, TgMem mem) {
  TgContext *ctx = mem_alloc(&mem, sizeof *ctx);
  if (!ctx) {
    if (mem.last) *mem.last = mem;
    return NULL;
  }
  ctx->mem = mem;
  ctx->os = os;
  ctx->store = store_new(&ctx->mem);
  ctx->dims = dims_new(&ctx->mem, &ctx->err);
  map_init(&ctx->realized, &ctx->mem), map_init(&ctx->history, &ctx->mem);
  map_init(&ctx->origins.number, &ctx->mem), map_init(&ctx->origins.of_node, &ctx->mem);
  if (ctx->store) store_set_dims(ctx->store, ctx->dims), store_set_error(ctx->store, &ctx->err);
  if (ctx->store && ctx->dims && vec_push(&ctx->mem, &ctx->scopes, (TgScope){0})) return ctx;
  context_free(ctx);
  return NULL;
}

void context_free(TgContext *ctx) {
  vec_free(&ctx->mem, &ctx->buffers), vec_free(&ctx->mem, &ctx->free_uids);
  vec_free(&ctx->mem, &ctx->scopes);
  vec_free(&ctx->mem, &ctx->pending);
  vec_free(&ctx->mem, &ctx->waiting);
  map_free(&ctx->realized), map_free(&ctx->history);
  for (size_t i = 0; i < ctx->hooks.len; i++)
    if (ctx->hooks.at[i].own) mem_free(&ctx->mem, ctx->hooks.at[i].user);
  vec_free(&ctx->mem, &ctx->hooks);
  for (size_t i = 0; i < ctx->device_lists.len; i++)
    mem_free(&ctx->mem, ctx->device_lists.at[i].names);
  vec_free(&ctx->mem, &ctx->device_lists);
  pass_env_free(&ctx->passes);
  origins_free(ctx);
  Str *const texts[] = {&ctx->text,         &ctx->describe,  &ctx->opt_text,    &ctx->origin_text,
                        &ctx->explain_text, &ctx->info_text, &ctx->bundle_text, &ctx->c_text[0],
                        &ctx->c_text[1],    &ctx->c_text[2], &ctx->c_text[3]};
  for (size_t i = 0; i < TG_COUNT(texts); i++)
    str_free(texts[i]);
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

void tg_watch_kernels(TgContext *ctx, void (*seen)(const TgKernelText *k, void *user), void *user) {
  if (ctx) {
    ctx->seen = seen;
    ctx->seen_user = user;
  }
}

void tg_watch_launches(TgContext *ctx, void (*seen)(const TgLaunch *l, void *user), void *user) {
  if (ctx) {
    ctx->launched = seen;
    ctx->launched_user = user;
  }
}

void tg_set_training(TgContext *ctx, bool on) {
  if (ctx) ctx->training = on;
}

bool tg_training(const TgContext *ctx) { return ctx && ctx->training; }

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
  if (!vec_push(&ctx->mem, &ctx->scopes, (TgScope){0})) return error_no_memory(&ctx->err, "scope");
  /* The array may have moved, so the first tensor of each scope must point to it anew. */
  for (size_t i = 0; i < ctx->scopes.len; i++)
    if (ctx->scopes.at[i].tensors) ctx->scopes.at[i].tensors->link = &ctx->scopes.at[i].tensors;
  return TG_OK;
}

TgStatus tg_scope_end(TgContext *ctx) {
  if (!ctx) return TG_ERR_VALUE;
  if (ctx->scopes.len < 2) return error_set(&ctx->err, TG_ERR_STATE, "scope: end without begin");
  TgScope *s = &ctx->scopes.at[ctx->scopes.len - 1];
  while (s->tensors)
    tg_release(s->tensors);
  ctx->scopes.len--;
  return ctx->calls->scope_ended(ctx);
}

static void link_in(TgTensor *t, TgTensor **head) {
  t->next = *head;
  t->link = head;
  if (t->next) t->next->link = &t->next;
  *head = t;
}

static void link_out(TgTensor *t) {
  *t->link = t->next;
  if (t->next) t->next->link = t->link;
}

/* Checks the devices of u, which functions of lists of tensors did not do. */
static bool on_one_device(TgContext *ctx, const UOp *u) {
  uint64_t rest = u->devices & (u->devices - 1);
  if (!rest || has_multi(u)) return true;
  error_set(&ctx->err, TG_ERR_DEVICE, "tensors on %s and on %s in one operation; tg_to moves them",
            ctx->calls->facts(ctx, __builtin_ctzll(u->devices)).name,
            ctx->calls->facts(ctx, __builtin_ctzll(rest)).name);
  return false;
}

TgTensor *tensor_new(TgContext *ctx, UOp *u) {
  if (u && !on_one_device(ctx, u)) return NULL;
  TgTensor *t = u ? mem_alloc(&ctx->mem, sizeof *t) : NULL;
  if (!t) {
    error_set(&ctx->err, TG_ERR_NOMEM, "out of memory");
    return NULL;
  }
  t->ctx = ctx;
  t->uop = u;
  link_in(t, &ctx->scopes.at[ctx->scopes.len - 1].tensors);
  places_link(t, NULL);
  if (ctx->origins.path.len) origin_of_handle(t);
  return t;
}

TgTensor *tensor_memory(TgContext *ctx, UOp *u) {
  TgTensor *t = tensor_new(ctx, u);
  if (t) tensor_set(t, u);
  return t;
}

TgTensor *tensor_view(TgTensor *x, UOp *u) {
  if (x->part) {
    TgTensor *t = tensor_new(x->ctx, u);
    return t && shard_place(t) ? t : NULL;
  }
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
  if (t->link) link_out(t);
  places_unlink(t);
  shard_unlink(t);
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
bool capture_refuses(TgContext *ctx, const char *op) {
  if (ctx->capture)
    error_set(&ctx->err, TG_ERR_STATE,
              "%s: not inside a function that is captured: what it sees now would hold for every replay", op);
  return ctx->capture != NULL;
}

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
  return ctx->calls->realize(ctx, t, n);
}

TgStatus tg_realize(TgTensor *t) { return t ? tg_realize_many(&t, 1) : TG_ERR_VALUE; }
