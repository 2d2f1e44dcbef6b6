/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>
typedef uint32_t sigset_t;
int sigemptyset(sigset_t *set);
int sigfillset(sigset_t *set);
int kill(pid_t pid, int signal);

enum { SIG_SETMASK = 3 };

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old);

enum { SIGKILL = 9, SIGXCPU = 24 };
