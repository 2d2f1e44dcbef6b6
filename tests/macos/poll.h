/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>

struct pollfd {
  int fd;
  short events;
  short revents;
};

int poll(struct pollfd *fds, nfds_t n, int ms);

enum { POLLIN = 1 };
