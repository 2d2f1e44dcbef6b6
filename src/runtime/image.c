/* image.c: a compiled object -> functions that can be called. Our own loader (elf.c) is used if it knows the
 * relocations of this processor. Otherwise, or if TG_LOADER=library requests it, the compiler links the
 * object into a shared library, which the system loads. The library's file is removed before the library is
 * used, so nobody else can load it. */
#define _GNU_SOURCE
#include "runtime/cpu.h"
#include "base/os.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 512 };

/* A folder that only this user can access, and the two files that are in it for a short time. */
typedef struct Folder {
  char path[PATH_ROOM], object[PATH_ROOM + 8], library[PATH_ROOM + 8];
} Folder;

static bool folder_new(const TgOs *os, Folder *f) {
  const char *in = getenv("TMPDIR");
  int n = snprintf(f->path, sizeof f->path, "%s/tinygrad-c-XXXXXX", in && *in ? in : "/tmp");
  if (n < 0 || (size_t)n >= sizeof f->path) return errno = ENAMETOOLONG, false;
  if (!os->private_folder(f->path)) return false;
  snprintf(f->object, sizeof f->object, "%s/k.o", f->path);
  snprintf(f->library, sizeof f->library, "%s/k.so", f->path);
  return true;
}

static void folder_remove(const TgOs *os, const Folder *f) {
  os->unlink(f->object);
  os->unlink(f->library);
  os->rmdir(f->path);
}

static bool file_write(const TgOs *os, const char *path, const Blob *bytes) {
  int fd = os->open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  bool written = os_write_all(os, fd, bytes->at, bytes->nbytes);
  return os->close(fd) == 0 && written;
}

static TgStatus library_load(Device *d, const Compiler *c, const Blob *object, Image *out) {
  Folder f;
  if (!folder_new(d->os, &f))
    return error_set(d->err, TG_ERR_IO, "library loader: no folder for its files: %s", strerror(errno));
  TgStatus st = TG_OK;
  if (!file_write(d->os, f.object, object))
    st = error_set(d->err, TG_ERR_IO, "library loader: %.300s: %s", f.object, strerror(errno));
  if (!st) st = compiler_link(d->mem, d->os, d->err, c, f.object, f.library, d->env->cc_limit);
  if (!st && !(out->library = d->os->library_open(f.library)))
    st = error_set(d->err, TG_ERR_DEVICE, "library loader: %.300s cannot be loaded", f.library);
  folder_remove(d->os, &f);
  return st;
}

TgStatus image_load(Device *d, const Compiler *c, const Blob *object, Image *out) {
  *out = (Image){0};
  if (elf_is_known() && !(d->env && d->env->link_objects))
    return elf_load(d->mem, d->os, d->err, object->at, object->nbytes, out);
  return library_load(d, c, object, out);
}

void *image_find(Device *d, const Image *im, const Blob *object, const char *name) {
  if (im->library) return d->os->library_symbol(im->library, name);
  int64_t at = elf_symbol(object->at, object->nbytes, name);
  return at < 0 ? NULL : im->at + at;
}

void image_unload(Device *d, Image *im) {
  if (im->library) d->os->library_close(im->library);
  image_unmap(d->os, im);
}
