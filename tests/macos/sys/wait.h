/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>
pid_t waitpid(pid_t pid, int *status, int options);
#define WIFEXITED(s)   (((s)&0177) == 0)
#define WEXITSTATUS(s) (((s) >> 8) & 0377)
#define WTERMSIG(s)    ((s)&0177)
#define WIFSIGNALED(s) (((s)&0177) != 0177 && ((s)&0177) != 0)

enum { WNOHANG = 1 };
