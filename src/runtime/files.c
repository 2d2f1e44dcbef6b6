/* files.c: the device DISK, whose memory is files. Nothing is computed on it. In: buffers whose memory is a
 * mapping of a file (base/file_map.c). Out: their bytes, copied to and from other devices. */
#include "runtime/cpu.h"
#include <string.h>

static TgStatus disk_open(Device *d) {
  d->target = target_planned;
  d->describe = "files, moved to other devices before they are computed with";
  return TG_OK;
}

static void disk_close(Device *d) { (void)d; }

static TgStatus disk_alloc(Device *d, size_t nbytes, void **out) {
  (void)nbytes;
  *out = NULL;
  return error_set(d->err, TG_ERR_DEVICE, "DISK: its memory is files alone; tg_from_file makes it");
}

static void disk_free(Device *d, void *p, size_t nbytes) { (void)d, (void)p, (void)nbytes; }

static TgStatus disk_copy(Device *d, void *dst, const void *src, size_t nbytes) {
  (void)d;
  if (nbytes) memmove(dst, src, nbytes);
  return TG_OK;
}

static TgStatus disk_compile(Device *d, const KernelSpec *k, int n, Program **out) {
  (void)k, (void)n, (void)out;
  return error_set(d->err, TG_ERR_DEVICE, "DISK: it computes nothing; move the tensor with tg_to");
}

static void disk_unload(Device *d, Program *p) { (void)d, (void)p; }

static TgStatus disk_launch(Device *d, const Launch *l) {
  (void)l;
  return error_set(d->err, TG_ERR_DEVICE, "DISK: it computes nothing");
}

const TgBackend backend_disk = {.name = "DISK",
                                .has = HAS_FILES_ONLY,
                                .open = disk_open,
                                .close = disk_close,
                                .alloc = disk_alloc,
                                .free = disk_free,
                                .copy_in = disk_copy,
                                .copy_out = disk_copy,
                                .copy = disk_copy,
                                .compile = disk_compile,
                                .unload = disk_unload,
                                .launch = disk_launch,
                                HOST_ORDER};
