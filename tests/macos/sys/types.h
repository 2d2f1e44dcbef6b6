/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <stddef.h>
#include <stdint.h>
typedef int pid_t;
typedef long ssize_t;
typedef long long off_t;
typedef unsigned short mode_t;
typedef unsigned int nfds_t;
typedef struct OpaqueThread *pthread_t;

struct timespec {
  long tv_sec;
  long tv_nsec;
};

struct timeval {
  long tv_sec;
  int tv_usec;
};
