/* A stub for tools/check-macos: of this header of macOS only what src/base uses there. */
#pragma once
#include <sys/types.h>
typedef uint32_t sigset_t;
int sigemptyset(sigset_t *set);
int sigfillset(sigset_t *set);
int kill(pid_t pid, int signal);
