/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>
ssize_t read(int fd, void *p, size_t n);
ssize_t write(int fd, const void *p, size_t n);
off_t lseek(int fd, off_t at, int from);
int ftruncate(int fd, off_t nbytes);
int close(int fd);
#define F_OK 0
int access(const char *path, int mode);
int unlink(const char *path);
int rmdir(const char *path);
char *mkdtemp(char *path);
int getpagesize(void);

enum { _SC_PAGESIZE = 29 };

long sysconf(int name);
unsigned geteuid(void);
unsigned getuid(void);
int getpid(void);
int gethostname(char *name, size_t n);

enum { X_OK = 1, R_OK = 4, SEEK_SET = 0, SEEK_END = 2 };
