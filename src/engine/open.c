/* open.c: contexts. In: options, the environment. Out: a context with a device and an engine, or with an
 * error that says why it has none; and the freeing of a context. */
#define _GNU_SOURCE
#include "engine/engine.h"
#include "base/os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const EngineCalls calls = {
    .find = device_find,
    .facts = device_facts,
    .alloc = device_alloc,
    .copy_in = device_copy_in,
    .free = device_free,
    .realize = engine_realize,
    .stores = engine_stores,
    .read = engine_read,
    .map = engine_map,
    .cache_clear = tg_cache_clear,
    .scope_ended = engine_scope_ended,
    .exchanged = inside_exchange,
    .summed = inside_summed,
    .captured_changes = older_changes,
    .captured_reads = older_read_from,
    .captured_computed = older_computed,
    .value_stored = older_stored,
};

/* Prints what TG_TRACE asked for. */
static void say(void *to, const char *text) { context_say(to, "%s", text); }

TgContext *tg_open(const TgOpenOptions *options) {
  TgOpenOptions o;
  /* context_open reports errors in the options */
  (void)tg_options_read(NULL, "open", "TgOpenOptions", &o, sizeof o, options);
  TgMem mem = {0};
  const TgAllocator *a = o.allocator;
  bool whole = a && a->allocate && a->reallocate && a->release;
  if (whole) {
    mem.allocate = a->allocate;
    mem.reallocate = a->reallocate;
    mem.release = a->release;
    mem.user = a->user;
  }
  return context_open(options, &tg_os_default, mem);
}

/* Makes a folder for the context in the folder of TG_VIZ: c0, c1, .. */
static void record_folder(TgContext *ctx) {
  char path[sizeof ctx->env.viz];
  int n = -1;
  ctx->os->mkdir(ctx->env.viz, 0777); /* it may exist; any other failure shows below */
  for (int i = 0; n < 0 && i < 1000; i++) {
    int length = snprintf(path, sizeof path, "%s/c%d", ctx->env.viz, i);
    if (length < (int)sizeof path && !ctx->os->mkdir(path, 0777)) n = i;
  }
  if (n < 0)
    error_set(&ctx->err, TG_ERR_IO, "environment: TG_VIZ=%.200s: no folder can be made there", ctx->env.viz);
  snprintf(ctx->env.viz, sizeof ctx->env.viz, "%s", n < 0 ? "" : path);
  memcpy(ctx->passes.record_dir, ctx->env.viz, sizeof ctx->env.viz);
}

/* Returns a context even if it has an error; it must be closed. NULL: out of memory. */
TgContext *context_open(const TgOpenOptions *options, const TgOs *os, TgMem mem) {
  TgOpenOptions o;
  TgContext *ctx = context_new(os, mem);
  if (!ctx) return NULL;
  ctx->calls = &calls;
  (void)tg_options_read(ctx, "open", "TgOpenOptions", &o, sizeof o, options);
  ctx->log = o.log;
  ctx->log_user = o.log_user;
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  ctx->rng_seed = TG_OPTION(o, seed, (uint64_t)now.tv_sec * 1000003u + (uint64_t)now.tv_nsec);
  if (env_read(&ctx->env, &ctx->err)) return ctx;
  pass_env_init(&ctx->passes, &ctx->env, ctx->os, &ctx->mem, say, ctx);
  int length;
  const char *bad = pass_unknown(ctx->env.skip, schedule_passes, schedule_npass, &length);
  if (bad)
    error_set(&ctx->err, TG_ERR_VALUE,
              "environment: TG_SKIP: '%.*s' is no pass of the scheduler that may be left out", length, bad);
  if (o.threads) ctx->env.threads = o.threads;
  ctx->env.unpinned = o.unpinned;
  if (o.cores < 0) error_set(&ctx->err, TG_ERR_VALUE, "open: cores is %d", o.cores);
  const TgAllocator *a = o.allocator;
  if (a && (!a->allocate || !a->reallocate || !a->release))
    error_set(&ctx->err, TG_ERR_VALUE, "open: an allocator without allocate, reallocate or release");
  if (o.device) {
    if (strlen(o.device) >= sizeof ctx->env.dev)
      error_set(&ctx->err, TG_ERR_VALUE, "open: the device name is too long");
    else {
      memcpy(ctx->env.dev, o.device, strlen(o.device) + 1);
      ctx->env.dev_set = 1;
    }
  }
  if (!ctx->err.status) {
    TgStatus s = engine_open(ctx);
    if (s)
      error_set(&ctx->err, s, "open: device %s does not open", ctx->env.dev[0] ? ctx->env.dev : "(default)");
    if (!s && o.memory_limit) tg_memory_limit(ctx, NULL, o.memory_limit);
    Device *d = s ? NULL : device_at(ctx, 0);
    if (d) profile_begin(ctx);
    if (d && *ctx->env.viz) record_folder(ctx);
    bool asked = *ctx->env.explain || *ctx->env.viz;
    if (d && asked) ctx->inside = inside_new(ctx);
    if (asked || ctx->env.debug >= 1 || ctx->env.trace_choices) ctx->origins.asked = true;
    if (d && o.cores > 0 && (d->backend->has & HAS_THREADS)) d->target.cores = o.cores;
  }
  return ctx;
}

void tg_close(TgContext *ctx) {
  if (!ctx) return;
  if (ctx->dev_open) engine_files_written(ctx);
  tg_profile_stop(ctx);
  inside_told(ctx), inside_free(ctx, ctx->inside);
  ctx->inside = NULL;
  exchanges_free(ctx);
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
  context_free(ctx);
}

/* ---- counts */
TgCounters tg_counters(const TgContext *ctx) {
  TgCounters c = {0};
  if (!ctx) return c;
  c = ctx->counters;
  c.visits = ctx->passes.rewrites.visits;
  c.firings = ctx->passes.rewrites.firings;
  c.nested = ctx->passes.rewrites.nested;
  for (int i = 0; i < device_count(ctx); i++) {
    const Device *d = device_at(ctx, i);
    c.peak_bytes += d->bytes_peak;
    c.retried += d->compiles_retried;
  }
  c.fallbacks = ctx->passes.fallbacks;
  c.cuts = ctx->passes.cuts;
  return c;
}

void tg_counters_reset(TgContext *ctx) {
  if (!ctx) return;
  RewriteEnv *r = &ctx->passes.rewrites;
  ctx->counters = (TgCounters){0};
  for (int i = 0; i < device_count(ctx); i++) {
    Device *d = device_at(ctx, i);
    d->bytes_peak = d->bytes_in_use;
    d->compiles_retried = 0;
  }
  ctx->passes.fallbacks = ctx->passes.cuts = 0;
  r->visits = r->firings = r->nested = r->created = 0;
}
