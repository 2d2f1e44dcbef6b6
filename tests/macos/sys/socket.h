/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>

enum {
  AF_UNIX = 1,
  SOCK_STREAM = 1,
  SOL_SOCKET = 0xffff,
  SO_NOSIGPIPE = 0x1022,
  SO_RCVTIMEO = 0x1006,
  MSG_DONTWAIT = 0x80,
  SHUT_WR = 1
};

int socketpair(int family, int type, int protocol, int fd[2]);
int setsockopt(int fd, int level, int option, const void *value, unsigned nbytes);
ssize_t send(int fd, const void *p, size_t n, int flags);
int shutdown(int fd, int how);
