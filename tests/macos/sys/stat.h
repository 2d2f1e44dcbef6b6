/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>

struct stat {
  mode_t st_mode;
  struct timespec st_mtimespec;
  off_t st_size;
};

int stat(const char *path, struct stat *s);
int lstat(const char *path, struct stat *s);
int fstat(int fd, struct stat *s);
int mkdir(const char *path, mode_t mode);
#define S_ISREG(mode) (((mode)&0170000) == 0100000)
#define S_ISDIR(mode) (((mode)&0170000) == 0040000)
