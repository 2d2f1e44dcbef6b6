/* A stub for tools/check-macos: of this header of macOS only what src/base uses there. */
#pragma once
#include <sys/types.h>
pid_t waitpid(pid_t pid, int *status, int options);
