/* A stub for tools/check-macos: of this header of macOS only what src/base uses there. */
#pragma once
#include <sys/types.h>
ssize_t read(int fd, void *p, size_t n);
ssize_t write(int fd, const void *p, size_t n);
off_t lseek(int fd, off_t at, int from);
int ftruncate(int fd, off_t nbytes);
int close(int fd);
int access(const char *path, int mode);
int unlink(const char *path);
int rmdir(const char *path);
char *mkdtemp(char *path);
int getpagesize(void);
