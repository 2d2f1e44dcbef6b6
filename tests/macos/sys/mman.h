/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>

enum {
  PROT_NONE = 0,
  PROT_READ = 1,
  PROT_WRITE = 2,
  PROT_EXEC = 4,
  MAP_SHARED = 1,
  MAP_PRIVATE = 2,
  MAP_FIXED = 0x10,
  MAP_NORESERVE = 0x40,
  MAP_ANONYMOUS = 0x1000
};

#define MAP_FAILED ((void *)-1)
void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
int munmap(void *p, size_t n);
int mprotect(void *p, size_t n, int prot);
