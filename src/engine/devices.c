/* devices.c: the devices of a context. In: names, "CPU", "INTERP", "CPU:1". Out: open devices, numbered in
 * the order in which they were first asked for. Device 0 is opened with the context, and computes tensors
 * whose graphs read no memory. A name that ends in a number is another device of the same backend, with
 * its own threads, memory and counters; the number 0 may be left out. */
#include "engine/engine.h"
#include "runtime/comm.h"
#include "tensor/front.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const TgBackend *const backends[] = {
#define BACKEND(name) &backend_##name,
#include "runtime/backends.def"
#undef BACKEND
};

const Renderer *renderer_named(const char *name) {
  for (size_t i = 0; i < TG_COUNT(backends); i++)
    if (backends[i]->renderer && !strcasecmp(backends[i]->renderer->name, name)) return backends[i]->renderer;
  return NULL;
}

const char *tg_device_name(int i) {
  bool opens = i >= 0 && (size_t)i < TG_COUNT(backends) && !(backends[i]->has & HAS_FILES_ONLY);
  return opens ? backends[i]->name : NULL;
}

static void device_print(TgContext *ctx, const Device *d) { /* TG_DEBUG=1 */
  Str s;
  str_init(&s, d->mem);
  target_print(&s, &d->target);
  context_say(ctx, "device %s: %s\n  plans for %s\n", d->name, d->describe, str_text(&s));
  str_free(&s);
}

/* Called while a device compiles. kernels: how many it has compiled since the last call. */
static void waits(void *user, int kernels) {
  TgContext *ctx = user;
  context_progress(ctx, "compile", ctx->progress.done + kernels, ctx->progress.all);
}

/* Opens d of a backend. Errors are recorded in *err, because another backend may be tried next. */
static TgStatus device_open(TgContext *ctx, Device *d, const TgBackend *backend, const char *name, int index,
                            bool named, TgError *err) {
  *d = (Device){.mem = &ctx->mem, .os = ctx->os, .env = &ctx->env, .err = err};
  d->waiting = (Waiting){.stop = &ctx->cancelled, .tick = waits, .user = ctx};
  d->backend = backend;
  d->index = index;
  d->named = named;
  d->bundle = &ctx->bundle;
  snprintf(d->name, sizeof d->name, "%s", name);
  TgStatus s = backend->open(d);
  d->err = &ctx->err;
  if (!s && ctx->env.debug >= 1) device_print(ctx, d);
  return s;
}

/* Returns the backend of a name, and in `listed` the name without a number 0. NULL: there is none. */
static const TgBackend *backend_of(const char *name, char *listed, size_t cap) {
  const char *colon = strrchr(name, ':');
  size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
  bool numbered = digits > 0 && digits < 4 && !colon[1 + digits];
  size_t n = numbered ? (size_t)(colon - name) : strlen(name);
  for (size_t i = 0; i < TG_COUNT(backends); i++) {
    if (strlen(backends[i]->name) != n || strncmp(backends[i]->name, name, n)) continue;
    int number = numbered ? atoi(colon + 1) : 0;
    snprintf(listed, cap, number ? "%s:%d" : "%s", backends[i]->name, number);
    return backends[i];
  }
  return NULL;
}

Device *device_at(const TgContext *ctx, int index) { return ctx->devices.at[index]; }

int device_count(const TgContext *ctx) { return (int)ctx->devices.len; }

/* Returns memory for one more device, for which the list has room. NULL if out of memory. */
static Device *device_room(TgContext *ctx) {
  return vec_reserve(&ctx->mem, &ctx->devices, ctx->devices.len + 1) ? mem_alloc(&ctx->mem, sizeof(Device))
                                                                     : NULL;
}

/* Splits a name such as "CPU:1@2" into "CPU:1" and the rank, which it returns. -1: no rank; -2: an error
 * was recorded. */
static int rank_of(TgContext *ctx, const char *op, const char *name, char *base, size_t cap) {
  size_t n = strcspn(name, "@");
  int rank = name[n] ? device_rank(ctx, op, name, n) : -1;
  if (name[n] && rank < 0) return -2;
  snprintf(base, cap, "%.*s", (int)TG_MIN(n, cap - 1), name);
  return rank;
}

/* Opens a device of a rank on all ranks: its own rank opens it, and every other rank opens a substitute. */
static TgStatus rank_device_open(TgContext *ctx, Device *d, const TgBackend *backend, const char *name,
                                 int index, int rank, TgError *err) {
  TgStatus s;
  bool own = tg_comm_rank(ctx) == rank;
  if (own)
    s = device_open(ctx, d, backend, name, index, true, err);
  else {
    *d = (Device){.mem = &ctx->mem, .os = ctx->os, .env = &ctx->env, .err = &ctx->err, .index = index};
    snprintf(d->name, sizeof d->name, "%s", name);
    s = remote_open(d, backend);
  }
  d->of_rank = rank + 1;
  TgStatus told = device_told(ctx, d, rank, s, err);
  if (told && !s) d->backend->close(d);
  return told;
}

int device_find(TgContext *ctx, const char *op, const char *name) {
  char listed[24], base[64];
  TG_REQUIRE_OR(ctx, ctx->dev_open, -1, TG_ERR_DEVICE, "%s: no device is open", op);
  if (!name || !*name) return ctx->default_device;
  int rank = rank_of(ctx, op, name, base, sizeof base);
  if (rank < -1) return -1;
  const TgBackend *backend = backend_of(base, listed, sizeof listed);
  size_t n = strlen(listed);
  if (backend && rank >= 0) snprintf(listed + n, sizeof listed - n, "@%d", rank);
  TG_REQUIRE_OR(ctx, backend, -1, TG_ERR_VALUE, "%s: no device is called '%.64s'", op, name);
  for (int i = 0; i < device_count(ctx); i++)
    if (!strcmp(device_at(ctx, i)->name, listed)) return i;
  int index = device_count(ctx);
  TG_REQUIRE_OR(ctx, index < MOST_DEVICES, -1, TG_ERR_LIMIT, "%s: a context has %d devices at most", op,
                MOST_DEVICES);
  TgError err = {0};
  Device *d = device_room(ctx);
  TgStatus s = !d          ? TG_ERR_NOMEM
               : rank >= 0 ? rank_device_open(ctx, d, backend, listed, index, rank, &err)
                           : device_open(ctx, d, backend, listed, index, true, &err);
  if (!s) {
    ctx->devices.at[ctx->devices.len++] = d;
    return index;
  }
  mem_free(&ctx->mem, d);
  error_set(&ctx->err, s, "%s: device %s does not open: %s", op, listed, d ? err.msg : "out of memory");
  return -1;
}

/* Opens device 0: the one that $TG_DEV or the options name, otherwise the first backend that runs and
 * works here. */
static TgStatus first_open(TgContext *ctx, Device *d) {
  const char *want = ctx->env.dev;
  char listed[24];
  TgError err = {0}, cpu = {0}; /* cpu: why the CPU backend does not open */
  TgStatus s = TG_ERR_VALUE;
  if (*want) {
    const TgBackend *backend = backend_of(want, listed, sizeof listed);
    if (!backend || (backend->has & HAS_FILES_ONLY))
      return error_set(&ctx->err, TG_ERR_VALUE, "open: no device to compute on is called '%s'", want);
    s = device_open(ctx, d, backend, listed, 0, true, &err);
  }
  for (size_t i = 0; !*want && s && i < TG_COUNT(backends); i++)
    if (backends[i]->has & HAS_RUN) {
      err = (TgError){0};
      s = device_open(ctx, d, backends[i], backends[i]->name, 0, false, &err);
      if (s && !i && *ctx->env.cc) break; /* if a compiler was named, its failure is an error */
      if (s && !i) cpu = err;
    }
  if (!s && cpu.status && !strcmp(d->backend->name, "INTERP") && (ctx->log || ctx->env.debug >= 1))
    context_say(ctx, "%s: tensors are computed by the interpreter (INTERP), slowly\n", cpu.msg);
  return s ? error_set(&ctx->err, s, "%s", err.msg) : TG_OK;
}

TgStatus devices_open(TgContext *ctx) {
  Device *d = device_room(ctx);
  TgStatus s = d ? first_open(ctx, d) : error_no_memory(&ctx->err, "open");
  if (s)
    mem_free(&ctx->mem, d);
  else
    ctx->devices.at[ctx->devices.len++] = d;
  ctx->dev_open = !s;
  return s;
}

void devices_close(TgContext *ctx) {
  for (int i = device_count(ctx); i-- > 0;) {
    Device *d = device_at(ctx, i);
    Event *events[] = {d->fence, d->begun, d->ended};
    for (size_t k = 0; k < TG_COUNT(events); k++)
      d->backend->event_free(d, events[k]);
    d->backend->close(d);
    mem_free(&ctx->mem, d);
  }
  vec_free(&ctx->mem, &ctx->devices);
  ctx->dev_open = false;
}

uint64_t devices_bytes(const TgContext *ctx) {
  uint64_t all = 0;
  for (int i = 0; i < device_count(ctx); i++)
    all += device_at(ctx, i)->bytes_in_use - device_at(ctx, i)->slabs_unused;
  return all;
}

/* ---- queries */
TgStatus tg_sync(TgContext *ctx) {
  if (!ctx) return TG_ERR_VALUE;
  TG_REQUIRE_OR(ctx, ctx->dev_open, TG_ERR_DEVICE, TG_ERR_DEVICE, "sync: no device is open");
  TgStatus s = TG_OK;
  for (int i = 0; !s && i < device_count(ctx); i++)
    s = device_sync(ctx, device_at(ctx, i));
  return s;
}

DeviceFacts device_facts(const TgContext *ctx, int device) {
  const Device *d = device_at(ctx, device);
  const Renderer *r = d->backend->renderer; /* its kernels may load vectors, which need alignment */
  return (DeviceFacts){.name = d->name,
                       .describe = d->describe ? d->describe : d->name,
                       .files_only = d->backend->has & HAS_FILES_ONLY,
                       .own_memory = d->backend->has & HAS_OWN_MEMORY,
                       .align = r ? (size_t)r->vec_align : 1,
                       .target = &d->target,
                       .machine = d->of_rank ? ctx->comm->machine[d->of_rank - 1] : 0};
}

/* ---- memory */
/* Allocates within the device's limit. On failure, `why` holds the backend's message. */
static TgStatus alloc_within(Device *d, size_t nbytes, void **out, TgError *why) {
  uint64_t most = d->bytes_most ? d->bytes_most : UINT64_MAX;
  *out = NULL;
  *why = (TgError){0};
  if (nbytes > most || d->bytes_in_use > most - nbytes)
    return error_set(why, TG_ERR_NOMEM, "%s: cannot allocate %zu bytes: %llu of at most %llu are in use",
                     d->name, nbytes, (unsigned long long)d->bytes_in_use, (unsigned long long)most);
  TgError *told = d->err;
  d->err = why;
  TgStatus s = d->backend->alloc(d, nbytes, out);
  d->err = told;
  return s;
}

TgStatus device_alloc(TgContext *ctx, int device, size_t nbytes, void **out) {
  Device *d = device_at(ctx, device);
  TgError why;
  TgStatus s = alloc_within(d, nbytes, out, &why);
  if (s == TG_ERR_NOMEM && slabs_given_back(ctx, d)) s = alloc_within(d, nbytes, out, &why);
  return s ? error_set(&ctx->err, s, "%s", why.msg) : TG_OK;
}

TgStatus device_copy_in(TgContext *ctx, int device, void *dst, const void *src, size_t nbytes) {
  Device *d = device_at(ctx, device);
  return d->backend->copy_in(d, dst, src, nbytes);
}

void device_free(TgContext *ctx, int device, void *p, size_t nbytes) {
  Device *d = device_at(ctx, device);
  d->backend->free(d, p, nbytes);
}

TgStatus device_sync(TgContext *ctx, Device *d) {
  TgStatus s = d->backend->sync(d);
  if (!s) launch_time_taken(ctx, d);
  return s;
}

TgStatus tg_memory_limit(TgContext *ctx, const char *device, uint64_t nbytes) {
  if (!ctx) return TG_ERR_VALUE;
  int index = device_find(ctx, "memory_limit", device);
  if (index < 0) return ctx->err.status;
  device_at(ctx, index)->bytes_most = nbytes;
  return TG_OK;
}

/* ---- copies between devices */
const char *tg_device_link(TgContext *ctx, const char *from, const char *to) {
  if (!ctx) return NULL;
  int a = device_find(ctx, "device_link", from), b = a < 0 ? a : device_find(ctx, "device_link", to);
  if (b < 0) return NULL;
  Device *x = device_at(ctx, a), *y = device_at(ctx, b);
  const TgBackend *has = y->backend;
  bool apart = x->backend->has & has->has & HAS_OWN_MEMORY;
  if (a == b) return "same";
  if (x->of_rank != y->of_rank) return "ranks";
  if (!apart) return x->backend->has & HAS_OWN_MEMORY || has->has & HAS_OWN_MEMORY ? "host" : "memory";
  return x->backend == has && has->reads_peer && !y->remote && has->reads_peer(y, x) ? "peer" : "host";
}

/* bytes per piece of a copy through the host, if neither device's memory is the host's */
enum { PIECE = 4 << 20 };

static TgStatus copy_through_host(Device *to, void *dst, Device *from, const void *src, size_t nbytes) {
  size_t room = TG_MIN(nbytes, (size_t)PIECE);
  void *host = NULL;
  TgStatus s = from->backend->host_alloc(from, room, &host);
  for (size_t at = 0; !s && at < nbytes; at += room) {
    size_t n = TG_MIN(room, nbytes - at);
    s = from->backend->copy_out(from, host, (const char *)src + at, n);
    if (!s) s = to->backend->copy_in(to, (char *)dst + at, host, n);
  }
  if (host) from->backend->host_free(from, host, room);
  return s;
}

/* Devices of one backend copy without the host. The copy waits for what `from` was given so far, and
 * `from` waits for the copy, because its next launch may overwrite the source. */
static TgStatus copy_between(Device *to, void *dst, Device *from, const void *src, size_t nbytes) {
  const TgBackend *b = to->backend;
  TgStatus s = b->event_record(from, &from->fence);
  if (!s) s = b->event_wait(to, from->fence);
  if (!s) s = b->copy_peer(to, dst, from, src, nbytes);
  if (!s) s = b->event_record(to, &to->fence);
  return s ? s : b->event_wait(from, to->fence);
}

TgStatus device_copy(TgContext *ctx, Device *to, void *dst, Device *from, const void *src, size_t nbytes) {
  if (copy_crosses(to, from)) return comm_copy(ctx, to, dst, from, src, nbytes);
  if (to->remote) return TG_OK;
  if (to == from) return to->backend->copy(to, dst, src, nbytes);
  if (!(from->backend->has & HAS_OWN_MEMORY)) return to->backend->copy_in(to, dst, src, nbytes);
  if (!(to->backend->has & HAS_OWN_MEMORY)) return from->backend->copy_out(from, dst, src, nbytes);
  if (to->backend == from->backend && to->backend->copy_peer) return copy_between(to, dst, from, src, nbytes);
  return copy_through_host(to, dst, from, src, nbytes);
}
