/* cuda_load.c: finds NVIDIA's libraries when the device is opened. In: nothing but their names. Out: the
 * table of calls (cuda_api.def), or an error that says what is missing. */
#define _GNU_SOURCE
#include "runtime/cuda.h"
#include "runtime/emulators.h"
#include "base/os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRIVER = 1, NVRTC = 2 };

static const struct {
  int library;
  const char *symbol;
  size_t at;
} calls[] = {

#define CUDA(library, result, name, symbol, params, args) {library, symbol, offsetof(CudaApi, name)},
#include "runtime/cuda_api.def"
#undef CUDA
};

static TgStatus calls_found(const TgOs *os, TgError *err, int library, const char *name, void *lib,
                            CudaApi *api) {
  for (size_t i = 0; i < TG_COUNT(calls); i++) {
    if (calls[i].library != library) continue;
    void *call = os->library_symbol(lib, calls[i].symbol);
    if (!call)
      return error_set(err, TG_ERR_DEVICE, "CUDA: %s has no %s: it is too old", name, calls[i].symbol);
    memcpy((char *)api + calls[i].at, &call, sizeof call);
  }
  return TG_OK;
}

/* A library that was opened, and the version of the compiler in it. */
typedef struct Found {
  void *lib;
  int major, minor;
  /* versions that the driver does not accept, for the error if no other is found */
  char versions[120];
} Found;

/* Keeps a library whose code the driver accepts: one of the driver's own major version or older. Closes any
 * other. */
static bool is_taken(const TgOs *os, void *lib, int most_major, Found *f) {
  nvrtcResult (*version)(int *, int *);
  void *symbol = lib ? os->library_symbol(lib, "nvrtcVersion") : NULL;
  if (!lib) return false;
  memcpy(&version, &symbol, sizeof version);
  bool known = symbol && !version(&f->major, &f->minor);
  if (known && f->major <= most_major) {
    f->lib = lib;
    return true;
  }
  size_t n = strlen(f->versions);
  if (known) snprintf(f->versions + n, sizeof f->versions - n, "%s%d.%d", n ? ", " : "", f->major, f->minor);
  os->library_close(lib);
  return false;
}

/* Finds the newest libnvrtc that the driver accepts: first on the loader's own path, then in the folders of
 * the toolkit, or of the wheel that is unpacked like it. */
static void nvrtc_find(const TgOs *os, int most_major, Found *f) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
  static const char *const below[] = {"lib64", "lib"};
  const char *const set = getenv("CUDA_PATH"), *const folders[] = {set, "/usr/local/cuda", "/opt/cuda"};
  char path[1024];
  for (size_t i = 0; i < TG_COUNT(names); i++) {
    if (is_taken(os, os->library_open(names[i]), most_major, f)) return;
    for (size_t k = 0; k < 2 * TG_COUNT(folders); k++) {
      if (!folders[k / 2]) continue;
      snprintf(path, sizeof path, "%s/%s/%s", folders[k / 2], below[k % 2], names[i]);
      if (is_taken(os, os->library_open(path), most_major, f)) return;
    }
  }
  for (int version = 149; version >= 112; version--) { /* 10 times the toolkit's version */
    snprintf(path, sizeof path, "/usr/local/cuda-%d.%d/lib%s/libnvrtc.so", version / 10, version % 10,
             version < 130 ? "64" : "");
    if (is_taken(os, os->library_open(path), most_major, f)) return;
  }
}

TgStatus nvrtc_load(const TgOs *os, TgError *err, int most_major, void **lib, CudaApi *api) {
  Found f = {0};
  nvrtc_find(os, most_major, &f);
  *lib = f.lib;
  if (f.lib) return calls_found(os, err, NVRTC, "libnvrtc", *lib, api);
  if (*f.versions)
    return error_set(err, TG_ERR_DEVICE,
                     "CUDA: the driver takes code of CUDA %d and older, and of libnvrtc, the compiler of "
                     "kernels, there is only %s: install one for CUDA %d, or a newer driver",
                     most_major, f.versions, most_major);
  return error_set(
      err, TG_ERR_DEVICE,
      "CUDA: libnvrtc, the compiler of kernels, is neither on the loader's path nor in $CUDA_PATH "
      "nor in /usr/local/cuda");
}

TgStatus cuda_load(const TgOs *os, const TgEnv *env, TgError *err, CudaLibraries *lib, CudaApi *api) {
  *lib = (CudaLibraries){NULL, NULL};
  if (env->emulate && emulators()) return emulators()->cuda_open(env, err, api);
  if (env->emulate)
    return error_set(err, TG_ERR_DEVICE,
                     "CUDA: TG_EMU is set, but this library has no emulators: those of tg have");
  if (!(lib->driver = os->library_open("libcuda.so.1")))
    return error_set(err, TG_ERR_DEVICE, "CUDA: there is no libcuda.so.1, the driver of NVIDIA's GPUs%s",
                     emulators() ? "; TG_EMU=1 emulates one" : "");
  TgStatus st = calls_found(os, err, DRIVER, "libcuda.so.1", lib->driver, api);
  int version = 0;
  if (!st && api->driver_version(&version))
    st = error_set(err, TG_ERR_DEVICE, "CUDA: the driver does not say which version it is");
  if (!st) st = nvrtc_load(os, err, version / 1000, &lib->nvrtc, api);
  if (st) cuda_unload(os, lib);
  return st;
}

void cuda_unload(const TgOs *os, CudaLibraries *lib) {
  if (lib->nvrtc) os->library_close(lib->nvrtc);
  if (lib->driver) os->library_close(lib->driver);
  *lib = (CudaLibraries){NULL, NULL};
}
