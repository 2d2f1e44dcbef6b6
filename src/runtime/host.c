/* host.c: buffers in host memory, shared by CPU, INTERP and NULL. 64-byte aligned, zeroed; the block's start
 * is kept just below. */
#include "runtime/cpu.h"
#include <string.h>

TgStatus host_alloc(Device *d, size_t nbytes, void **out) {
  *out = NULL;
  char *raw = nbytes > SIZE_MAX - 128 ? NULL : mem_alloc(d->mem, nbytes + 128);
  if (!raw) return error_set(d->err, TG_ERR_NOMEM, "%s: cannot allocate %zu bytes", d->backend->name, nbytes);
  char *p = (char *)(((uintptr_t)raw + sizeof raw + 63) & ~(uintptr_t)63);
  memcpy(p - sizeof raw, &raw, sizeof raw);
  d->bytes_in_use += nbytes, d->bytes_peak = TG_MAX(d->bytes_peak, d->bytes_in_use);
  *out = p;
  return TG_OK;
}

void host_free(Device *d, void *p, size_t nbytes) {
  if (!p) return;
  char *raw;
  memcpy(&raw, (char *)p - sizeof raw, sizeof raw);
  d->bytes_in_use -= nbytes;
  mem_free(d->mem, raw);
}

TgStatus host_copy(Device *d, void *dst, const void *src, size_t nbytes) {
  (void)d;
  if (nbytes) memmove(dst, src, nbytes);
  return TG_OK;
}

TgStatus host_sync(Device *d) { return (void)d, TG_OK; }
