/* null.c: devices that schedule, render and plan but do not run: C, CUDA and Metal. A program is its source. */
#include "runtime/cpu.h"
#include <string.h>

struct Program { char *source; };

static TgStatus null_open(Device *d) {
  d->describe = "renders and plans, runs nothing";
  return TG_OK;
}
static void null_close(Device *d) { (void)d; }
static void null_unload(Device *d, Program *p) {
  if (!p) return;
  mem_free(d->mem, p->source);
  mem_free(d->mem, p);
}
static TgStatus null_compile(Device *d, const KernelSpec *k, int n, Program **out) {
  for (int i = 0; i < n; i++) out[i] = NULL;
  for (int i = 0; i < n; i++) {
    out[i] = mem_alloc(d->mem, sizeof *out[i]);
    if (out[i]) out[i]->source = mem_strdup(d->mem, k[i].source ? k[i].source : "");
    if (!out[i] || !out[i]->source) {
      for (int j = 0; j <= i; j++) null_unload(d, out[j]), out[j] = NULL;
      return error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->backend->name);
    }
    d->kernels_compiled++;
  }
  return TG_OK;
}
static TgStatus null_launch(Device *d, Program *p, void *const *bufs, const int64_t *vars) {
  (void)d, (void)p, (void)bufs, (void)vars;
  return TG_OK;
}
#define NULL_BACKEND(id, text, caps, rend)                                                                                      \
  const TgBackend id = {.name = text, .has = caps, .open = null_open, .close = null_close, .alloc = host_alloc,                 \
                        .free = host_free, .copy_in = host_copy, .copy_out = host_copy, .compile = null_compile,                \
                        .unload = null_unload, .launch = null_launch, .sync = host_sync, .renderer = &rend}
NULL_BACKEND(backend_null_c, "NULL:C", HAS_THREADS, renderer_c);
NULL_BACKEND(backend_null_cuda, "NULL:CUDA", HAS_LOCAL, renderer_cuda);
NULL_BACKEND(backend_null_metal, "NULL:METAL", HAS_LOCAL, renderer_metal);
