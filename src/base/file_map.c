/* file_map.c: maps a part of a file into memory. The descriptor is closed at once because the mapping
 * keeps the file open. */
#define _GNU_SOURCE
#include "base/file_map.h"
#include "base/os.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A mapping must begin at a page, so the out->lead bytes before the offset are mapped too. */
TgStatus file_map(const TgOs *os, TgError *err, const char *path, int64_t offset, size_t nbytes,
                  bool writable, bool create, FileMap *out) {
  *out = (FileMap){0};
  if (offset < 0 || nbytes > INT64_MAX / 2 || offset > INT64_MAX / 2)
    return error_set(err, TG_ERR_VALUE, "file: %.300s: offset %lld", path, (long long)offset);
  int64_t end = offset + (int64_t)nbytes, page = sysconf(_SC_PAGESIZE);
  /* O_NONBLOCK: a pipe is refused instead of being waited for. */
  int fd = os->open(
      path, (writable || create ? O_RDWR : O_RDONLY) | (create ? O_CREAT : 0) | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) return error_set(err, TG_ERR_IO, "file: %.300s: %s", path, strerror(errno));
  struct stat s;
  TgStatus st = TG_OK;
  if (os->fstat(fd, &s))
    st = error_set(err, TG_ERR_IO, "file: %.300s: %s", path, strerror(errno));
  else if (!S_ISREG(s.st_mode))
    st = error_set(err, TG_ERR_IO, "file: %.300s is not a regular file", path);
  else if (s.st_size < end && !create)
    st = error_set(err, TG_ERR_IO, "file: %.300s has %lld bytes, the tensor ends at %lld", path,
                   (long long)s.st_size, (long long)end);
  else if (s.st_size < end && os->ftruncate(fd, end))
    st = error_set(err, TG_ERR_IO, "file: %.300s cannot be made %lld bytes long: %s", path, (long long)end,
                   strerror(errno));
  if (!st && nbytes) {
    size_t lead = (size_t)(offset % page), all = nbytes + lead;
    void *p = os->mmap(NULL, all, PROT_READ | (writable || create ? PROT_WRITE : 0), MAP_SHARED, fd,
                       (off_t)(offset - (int64_t)lead));
    if (p == MAP_FAILED)
      st = error_set(err, errno == ENOMEM ? TG_ERR_NOMEM : TG_ERR_IO, "file: %.300s cannot be mapped: %s",
                     path, strerror(errno));
    else
      *out = (FileMap){p, all, lead};
  }
  os->close(fd);
  return st;
}

TgStatus file_size(const TgOs *os, TgError *err, const char *path, int64_t *nbytes) {
  struct stat s;
  if (os->stat(path, &s)) return error_set(err, TG_ERR_IO, "file: %.300s: %s", path, strerror(errno));
  *nbytes = s.st_size;
  return S_ISREG(s.st_mode) ? TG_OK : error_set(err, TG_ERR_IO, "file: %.300s is not a regular file", path);
}

void file_unmap(const TgOs *os, FileMap *m) {
  if (m->at) os->munmap(m->at, m->nbytes);
  *m = (FileMap){0};
}
