/* A stub for tools/check-macos: of this header of macOS only what src/base uses there. */
#pragma once
int open(const char *path, int flags, ...);
int fcntl(int fd, int command, ...);

enum { F_SETFD = 2, FD_CLOEXEC = 1, F_DUPFD_CLOEXEC = 67, O_CLOEXEC = 0x1000000 };
