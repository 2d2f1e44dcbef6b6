/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
int open(const char *path, int flags, ...);
int fcntl(int fd, int command, ...);

enum { O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_CREAT = 0x200, O_TRUNC = 0x400, O_EXCL = 0x800 };

enum { F_SETFD = 2, FD_CLOEXEC = 1, F_DUPFD_CLOEXEC = 67, O_CLOEXEC = 0x1000000 };

enum { O_NONBLOCK = 4 };

struct flock {
  off_t l_start, l_len;
  int l_pid;
  short l_type, l_whence;
};

enum { F_GETLK = 7, F_SETLK = 8, F_UNLCK = 2, F_WRLCK = 3 };
