/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <signal.h>
typedef void *posix_spawn_file_actions_t;
typedef void *posix_spawnattr_t;

enum { POSIX_SPAWN_SETPGROUP = 2, POSIX_SPAWN_SETSIGDEF = 4, POSIX_SPAWN_SETSIGMASK = 8 };

int posix_spawn_file_actions_init(posix_spawn_file_actions_t *actions);
int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *actions);
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int from, int to);
int posix_spawnattr_init(posix_spawnattr_t *at);
int posix_spawnattr_destroy(posix_spawnattr_t *at);
int posix_spawnattr_setpgroup(posix_spawnattr_t *at, pid_t group);
int posix_spawnattr_setsigmask(posix_spawnattr_t *at, const sigset_t *set);
int posix_spawnattr_setsigdefault(posix_spawnattr_t *at, const sigset_t *set);
int posix_spawnattr_setflags(posix_spawnattr_t *at, short flags);
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *at, char *const argv[], char *const environment[]);
