/* device.h: what a backend is: allocate, copy, compile, load, launch. The core asks what a device has, never
 * which one it is. */
#ifndef TG_DEVICE_H
#define TG_DEVICE_H
#include "renderer/renderer.h"

typedef struct Device Device;
typedef struct Program Program; /* a loaded kernel; the backend defines it */

typedef struct KernelSpec {
  const Linear *linear;
  const char *source;
} KernelSpec; /* source: NULL for backends without renderer */

/* HAS_RUN: launch computes (NULL device: does not). HAS_CHECKS: an access outside its buffer is an error of
 * the launch. HAS_OWN_MEMORY: the host cannot read and write its buffers in place. HAS_FILES_ONLY: its memory
 * is files, and it computes nothing. */
enum { HAS_THREADS = 1, HAS_RUN = 2, HAS_CHECKS = 4, HAS_OWN_MEMORY = 8, HAS_FILES_ONLY = 16 };

typedef struct TgBackend {
  const char *name; /* "CPU", "INTERP", "NULL:CUDA" .. */
  uint32_t has;
  TgStatus (*open)(Device *d); /* TG_ERR_DEVICE with a reason when it cannot work here */
  void (*close)(Device *d);
  TgStatus (*alloc)(Device *d, size_t nbytes, void **out); /* 64-byte aligned; of any content */
  void (*free)(Device *d, void *p, size_t nbytes);
  TgStatus (*copy_in)(Device *d, void *dst, const void *src, size_t nbytes);
  TgStatus (*copy_out)(Device *d, void *dst, const void *src, size_t nbytes);
  TgStatus (*copy)(Device *d, void *dst, const void *src, size_t nbytes); /* within the device */
  /* Compiles a batch: out[i] for k[i]; all or nothing. */
  TgStatus (*compile)(Device *d, const KernelSpec *k, int n, Program **out);
  void (*unload)(Device *d, Program *p);
  TgStatus (*launch)(Device *d, Program *p, void *const *bufs,
                     const int64_t *vars); /* bufs[slot] for each PARAM */
  TgStatus (*sync)(Device *d);
  const Renderer *renderer; /* optional: NULL takes linear UOps directly */
} TgBackend;

struct Device {
  const TgBackend *backend;
  int index;     /* in its context: 0 is the one that the context was opened on */
  char name[24]; /* "CPU", "CPU:1" */
  TgMem *mem;
  const TgOs *os;
  const TgEnv *env;
  TgError *err;
  void *priv;
  Target target;                 /* the machine that it plans for */
  const char *describe;          /* one line for `tg devices` */
  struct HostBlock *kept[48][8]; /* host memory that was freed, by size (host.c) */
  uint64_t bytes_kept;
  uint64_t rng_counter; /* words drawn here */
  int rng_order; /* how many devices drew before it since the seed was set, and one; 0: it did not draw */
  uint64_t bytes_most; /* it may have in use; 0: what there is */
  uint64_t bytes_in_use, bytes_peak, kernels_compiled, cache_hits, compiles_retried; /* counters */
};

/* The cache of compiled kernels: its folder, bytes on disk and kernels. False: there is none. */
bool cache_facts(TgMem *mem, const TgOs *os, const TgEnv *env, char *dir, size_t cap, int64_t *nbytes,
                 int64_t *entries);
/* TG_OK and the bytes moved, from any device to any; neither may be in use. */
TgStatus device_copy(Device *to, void *dst, Device *from, const void *src, size_t nbytes);
extern const TgBackend backend_disk, backend_cpu, backend_interp, backend_interp_c, backend_interp_cuda,
    backend_interp_metal, backend_null_cuda, backend_null_metal, backend_null_c;
#endif
