/* facts.c: facts about the library, its device, its cache and its environment, for people who look for a
 * fault. */
#include "engine/engine.h"
#include <stdio.h>
#include <stdlib.h>

static const char built[] =
#if defined(__clang__)
    "clang " __clang_version__
#elif defined(__GNUC__)
    "gcc " __VERSION__
#else
    "an unknown compiler"
#endif
#ifdef TG_DEBUG_BUILD
    ", debug"
#endif
#if defined(__SANITIZE_ADDRESS__)
    ", address sanitizer"
#endif
    ;

#ifndef TG_BUILT
#define TG_BUILT "not said"
#endif

const char *tg_info(TgContext *ctx, int i, const char **name) {
  static const char *const facts[] = {"version", "built by", "built with", "device", "cache"};
  const char *none = NULL;
  if (!name) name = &none;
  *name = NULL;
  if (!ctx || i < 0) return NULL;
  if ((size_t)i >= TG_COUNT(facts)) {
    *name = env_name(i - (int)TG_COUNT(facts));
    const char *v = *name ? getenv(*name) : NULL;
    return *name ? v ? v : "" : NULL;
  }
  *name = facts[i];
  if (i == 0) return tg_version();
  if (i == 1) return built;
  if (i == 2) return TG_BUILT;
  Str *s = &ctx->info_text;
  str_free(s), str_init(s, &ctx->mem);
  char dir[400];
  int64_t nbytes, entries;
  if (i == 3)
    str_printf(s, "%s: %s", ctx->dev_open ? tg_default_device(ctx) : "none",
               ctx->dev_open ? tg_device_describe(ctx) : ctx->err.msg);
  else if (!ctx->env.cache)
    str_put(s, "off (TG_CACHE=0)");
  else if (cache_facts(&ctx->mem, ctx->os, &ctx->env, dir, sizeof dir, &nbytes, &entries))
    str_printf(s, "%s: %lld kernels, %lld bytes", dir, (long long)entries, (long long)nbytes);
  else
    str_put(s, "none: no folder that is private to this user");
  return s->oom ? "out of memory" : str_text(s);
}
