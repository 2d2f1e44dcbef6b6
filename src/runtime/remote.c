/* remote.c: a device of another rank. In: what any device is given. Out: nothing. Its memory is addresses
 * that nobody follows, and its kernels are neither made nor run. Graphs on it are still built and scheduled
 * as on the rank that has it, so that all ranks reach the same exchanges. */
#define _GNU_SOURCE
#include "runtime/cpu.h"

static TgStatus remote_alloc(Device *d, size_t nbytes, void **out) {
  *out = d; /* any address that is not NULL */
  d->bytes_in_use += nbytes;
  d->bytes_peak = TG_MAX(d->bytes_peak, d->bytes_in_use);
  return TG_OK;
}

static void remote_free(Device *d, void *p, size_t nbytes) {
  if (p) d->bytes_in_use -= nbytes;
}

static TgStatus remote_copy(Device *d, void *dst, const void *src, size_t nbytes) {
  return (void)d, (void)dst, (void)src, (void)nbytes, TG_OK;
}

static TgStatus remote_clear(Device *d, void *dst, size_t nbytes) {
  return (void)d, (void)dst, (void)nbytes, TG_OK;
}

static TgStatus remote_compile(Device *d, const KernelSpec *k, int n, Program **out) {
  (void)k;
  for (int i = 0; i < n; i++)
    out[i] = (Program *)(void *)d;
  return TG_OK;
}

static void remote_unload(Device *d, Program *p) { (void)d, (void)p; }

static TgStatus remote_launch(Device *d, const Launch *l) { return (void)d, (void)l, TG_OK; }

static void remote_close(Device *d) { mem_free(d->mem, d->priv); }

TgStatus remote_open(Device *d, const TgBackend *of) {
  TgBackend *b = d->priv = mem_alloc(d->mem, sizeof *b);
  if (!b) return error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name);
  *b = (TgBackend){.name = of->name,
                   .has = of->has & ~(uint32_t)(HAS_QUEUE | HAS_CHECKS),
                   .close = remote_close,
                   .alloc = remote_alloc,
                   .free = remote_free,
                   .copy_in = remote_copy,
                   .copy_out = remote_copy,
                   .copy = remote_copy,
                   .compile = remote_compile,
                   .unload = remote_unload,
                   .launch = remote_launch,
                   HOST_ORDER,
                   .stream = of->stream,
                   .renderer = of->renderer};
  b->clear = remote_clear;
  d->backend = b;
  d->remote = true;
  d->describe = "of another rank";
  return TG_OK;
}
