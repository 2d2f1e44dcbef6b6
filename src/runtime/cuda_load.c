/* cuda_load.c: NVIDIA's libraries, found when the device is opened. In: nothing but their names. Out: the
 * table of calls (cuda_api.def), or what is missing. */
#define _GNU_SOURCE
#include "runtime/cuda.h"
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

/* Where the toolkit, or the wheel that is unpacked like it, puts its libraries; the loader's own path first.
 */
static void *nvrtc_opened(const TgOs *os) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
  static const char *const below[] = {"lib64", "lib"};
  const char *const set = getenv("CUDA_PATH"), *const folders[] = {set, "/usr/local/cuda", "/opt/cuda"};
  for (size_t i = 0; i < TG_COUNT(names); i++) {
    void *lib = os->library_open(names[i]);
    for (size_t k = 0; k < 2 * TG_COUNT(folders) && !lib; k++) {
      char path[1024];
      if (!folders[k / 2]) continue;
      snprintf(path, sizeof path, "%s/%s/%s", folders[k / 2], below[k % 2], names[i]);
      lib = os->library_open(path);
    }
    if (lib) return lib;
  }
  for (int version = 149; version >= 112; version--) { /* of a toolkit, in tenths */
    char path[100];
    snprintf(path, sizeof path, "/usr/local/cuda-%d.%d/lib%s/libnvrtc.so", version / 10, version % 10,
             version < 130 ? "64" : "");
    void *lib = os->library_open(path);
    if (lib) return lib;
  }
  return NULL;
}

TgStatus nvrtc_load(const TgOs *os, TgError *err, void **lib, CudaApi *api) {
  if (!(*lib = nvrtc_opened(os)))
    return error_set(
        err, TG_ERR_DEVICE,
        "CUDA: libnvrtc, the compiler of kernels, is neither on the loader's path nor in $CUDA_PATH "
        "nor in /usr/local/cuda");
  return calls_found(os, err, NVRTC, "libnvrtc", *lib, api);
}

TgStatus cuda_load(const TgOs *os, const TgEnv *env, TgError *err, CudaLibraries *lib, CudaApi *api) {
  *lib = (CudaLibraries){NULL, NULL};
  if (env->emulate) return cuda_mock_open(env, err, api);
  if (!(lib->driver = os->library_open("libcuda.so.1")))
    return error_set(err, TG_ERR_DEVICE,
                     "CUDA: there is no libcuda.so.1, the driver of NVIDIA's GPUs; TG_EMU=1 emulates one");
  TgStatus st = calls_found(os, err, DRIVER, "libcuda.so.1", lib->driver, api);
  if (!st) st = nvrtc_load(os, err, &lib->nvrtc, api);
  if (st) cuda_unload(os, lib);
  return st;
}

void cuda_unload(const TgOs *os, CudaLibraries *lib) {
  if (lib->nvrtc) os->library_close(lib->nvrtc);
  if (lib->driver) os->library_close(lib->driver);
  *lib = (CudaLibraries){NULL, NULL};
}
