/* metal_load.c: finds Apple's libraries when the device is opened. In: nothing but their names. Out: the
 * calls of the Objective-C runtime and a selector for each message of metal_api.def, or an error that says
 * what is missing. */
#define _GNU_SOURCE
#include "runtime/metal.h"
#include "runtime/emulators.h"
#include "base/os.h"
#include <string.h>

#define FRAMEWORK(name) "/System/Library/Frameworks/" name ".framework/" name

static const char *const selectors[] = {
#define METAL(n, result, name, selector, ...) selector,
#include "runtime/metal_api.def"
#undef METAL
};

static TgStatus call_found(const TgOs *os, TgError *err, void *lib, const char *name, void *call) {
  void *at = os->library_symbol(lib, name);
  if (!at) return error_set(err, TG_ERR_DEVICE, "METAL: this system has no %s", name);
  memcpy(call, &at, sizeof at);
  return TG_OK;
}

static TgStatus calls_found(const TgOs *os, TgError *err, const MetalLibraries *lib, MetalApi *api) {
  const struct {
    void *lib;
    const char *name;
    void *call;
  } calls[] = {{lib->objc, "objc_msgSend", &api->send},
               {lib->objc, "objc_getClass", &api->class_named},
               {lib->objc, "sel_registerName", &api->selector_named},
               {lib->objc, "objc_autoreleasePoolPush", &api->pool_push},
               {lib->objc, "objc_autoreleasePoolPop", &api->pool_pop},
               {lib->metal, "MTLCopyAllDevices", &api->devices}};

  TgStatus st = TG_OK;
  for (size_t i = 0; i < TG_COUNT(calls) && !st; i++)
    st = call_found(os, err, calls[i].lib, calls[i].name, calls[i].call);
  return st;
}

/* CoreGraphics is loaded because command-line programs only see a GPU if it is loaded. */
TgStatus metal_load(const TgOs *os, const TgEnv *env, TgError *err, MetalLibraries *lib, MetalApi *api) {
  *lib = (MetalLibraries){0};
  TgStatus st = TG_OK;
  if (env->emulate)
    st = emulators() ? emulators()->metal_open(env, err, api)
                     : error_set(err, TG_ERR_DEVICE,
                                 "METAL: TG_EMU is set, but this library has no emulators: those of tg have");
  else {
    lib->objc = os->library_open("/usr/lib/libobjc.A.dylib");
    lib->foundation = os->library_open(FRAMEWORK("Foundation"));
    lib->graphics = os->library_open(FRAMEWORK("CoreGraphics"));
    lib->metal = os->library_open(FRAMEWORK("Metal"));
    if (!lib->objc || !lib->foundation || !lib->metal)
      st = error_set(err, TG_ERR_DEVICE, "METAL: there is no %s, which macOS has%s",
                     lib->objc ? "framework Metal" : "Objective-C runtime (libobjc.A.dylib)",
                     emulators() ? "; TG_EMU=1 emulates a GPU with it" : "");
    if (!st) st = calls_found(os, err, lib, api);
    if (st) metal_unload(os, lib);
  }
  for (size_t i = 0; i < TG_COUNT(selectors) && !st; i++)
    api->selector[i] = api->selector_named(selectors[i]);
  return st;
}

void metal_unload(const TgOs *os, MetalLibraries *lib) {
  void *all[] = {lib->metal, lib->graphics, lib->foundation, lib->objc};
  for (size_t i = 0; i < TG_COUNT(all); i++)
    if (all[i]) os->library_close(all[i]);
  *lib = (MetalLibraries){0};
}
