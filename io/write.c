/* write.c: files that appear complete or not at all: written beside the old one, synced and renamed, so
 * that a reader of the path sees either the old file or the new one. In: a path and bytes. Out: the file.
 * A link stays, and the file that it leads to is replaced. A path that is not a regular file (a device, a
 * pipe) is written to directly. */
#define _GNU_SOURCE
#include "io_private.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_write(NewFile *f, const void *p, size_t n) {
  if (f->elsewhere) return true;
  for (const char *at = p; n;) {
    ssize_t k = write(f->fd, at, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    at += k;
    n -= (size_t)k;
  }
  return true;
}

/* Creates a new file beside path, named `name`. Returns its descriptor, -1 on error. */
static int beside(const char *path, char *name, size_t cap) {
  for (int i = 0; i < 1000; i++) {
    if (snprintf(name, cap, "%s.%ld-%d.tmp", path, (long)getpid(), i) >= (int)cap)
      return errno = ENAMETOOLONG, -1;
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

static void sync_folder(const char *path) {
  char dir[4096];
  const char *slash = strrchr(path, '/');
  snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) fsync(fd), close(fd);
}

/* Resolves links. The target of a dangling link is created first, because realpath needs it. */
static bool place_of(const char *path, char place[PATH_MAX]) {
  struct stat s;
  if (lstat(path, &s) || !S_ISLNK(s.st_mode))
    return snprintf(place, PATH_MAX, "%s", path) < PATH_MAX || (errno = ENAMETOOLONG, false);
  int fd = stat(path, &s) ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
  if (fd >= 0) close(fd);
  return realpath(path, place);
}

bool file_begin(NewFile *f, const char *path) {
  struct stat s;
  f->in_place = !stat(path, &s) && !S_ISREG(s.st_mode);
  f->fd = f->in_place                ? open(path, O_WRONLY | O_CLOEXEC) /* a folder: EISDIR */
          : place_of(path, f->place) ? beside(f->place, f->name, sizeof f->name)
                                     : -1;
  return f->fd >= 0;
}

bool file_begin_once(TgContext *ctx, NewFile *f, const char *path, int rank) {
  f->elsewhere = tg_comm_rank(ctx) != rank;
  return f->elsewhere || file_begin(f, path);
}

bool file_end_once(TgContext *ctx, NewFile *f, bool ok) {
  ok = f->elsewhere ? ok : file_end(f, ok);
  int64_t why = ok ? 0 : errno ? errno : EIO;
  if (tg_comm_max(ctx, &why) && !why) why = EIO; /* the rank that writes it may have ended */
  errno = (int)why;
  return !why;
}

bool file_end(NewFile *f, bool ok) {
  if (f->fd < 0) return false;
  struct stat old;
  if (f->in_place) {
    ok = !close(f->fd) && ok;
    f->fd = -1;
    return ok;
  }
  /* the file keeps its permissions */
  if (ok && !stat(f->place, &old)) (void)!fchmod(f->fd, old.st_mode & 07777);
  ok = ok && !fsync(f->fd);
  ok = !close(f->fd) && ok;
  ok = ok && !rename(f->name, f->place);
  int e = errno;
  if (ok)
    sync_folder(f->place);
  else
    unlink(f->name);
  errno = e;
  f->fd = -1;
  return ok;
}
