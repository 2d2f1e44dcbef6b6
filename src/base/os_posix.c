/* os_posix.c: the OS calls of the library (os.def) that every POSIX system has, and the table of all
 * calls. The other calls are in os_linux.c and os_macos.c. */
#define _GNU_SOURCE
#include "base/os_private.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int call_open(const char *path, int flags, int mode) { return open(path, flags, mode); }

static int call_dup_from(int fd, int least) { return fcntl(fd, F_DUPFD_CLOEXEC, least); }

static int call_spawn(pid_t *pid, const char *path, const int fd[3], char *const argv[]) {
  posix_spawn_file_actions_t fa;
  posix_spawnattr_t at;
  sigset_t none, all;
  int e = posix_spawn_file_actions_init(&fa);
  if (e) return e;
  if ((e = posix_spawnattr_init(&at))) {
    posix_spawn_file_actions_destroy(&fa);
    return e;
  }
  sigemptyset(&none), sigfillset(&all);
  for (int i = 0; i < 3 && !e; i++)
    e = posix_spawn_file_actions_adddup2(&fa, fd[i], i);
  if (!e) e = posix_spawnattr_setpgroup(&at, 0);
  if (!e) e = posix_spawnattr_setsigmask(&at, &none);
  if (!e) e = posix_spawnattr_setsigdefault(&at, &all);
  if (!e)
    e = posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (!e) e = posix_spawn(pid, path, &fa, &at, argv, os_environment());
  posix_spawn_file_actions_destroy(&fa), posix_spawnattr_destroy(&at);
  return e;
}

static int call_socket_pair(int fd[2], int idle_s) {
  const struct timeval idle = {.tv_sec = idle_s};
  if (os_sockets(fd)) return -1;
  /* a child needs 0, 1 and 2, but the host program has closed one of them */
  bool low = fd[0] < 3 || fd[1] < 3;
  if (!low && !setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle)) return 0;
  close(fd[0]);
  close(fd[1]);
  return errno = EMFILE, -1;
}

static int call_shutdown(int fd) { return shutdown(fd, SHUT_WR); }

static int call_sleep_us(long us) {
  return nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

static int call_file_mark(int fd, int at, bool take) {
  struct flock mark = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
  if (fcntl(fd, take ? F_SETLK : F_GETLK, &mark)) return -1;
  return take || mark.l_type == F_UNLCK ? 0 : TG_MAX(mark.l_pid, 1);
}

static int call_thread_start(pthread_t *t, void *(*run)(void *), void *arg) {
  return pthread_create(t, NULL, run, arg);
}

static void *call_library_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

#define call_memory_file    os_memory_file
#define call_zero_pages     os_zero_pages
#define call_large_pages    os_large_pages
#define call_process_watch  os_process_watch
#define call_process_limit  os_process_limit
#define call_process_wait   os_process_wait
#define call_send           os_send
#define call_word_wait      os_word_wait
#define call_word_wake      os_word_wake
#define call_shared_wait    os_shared_wait
#define call_shared_wake    os_shared_wake
#define call_thread_pin     os_thread_pin
#define call_tiles_ask      os_tiles_ask
#define call_library_symbol dlsym
#define call_library_close  dlclose
#define call_read           read
#define call_write          write
#define call_lseek          lseek
#define call_ftruncate      ftruncate
#define call_close          close
#define call_stat           stat
#define call_lstat          lstat
#define call_fstat          fstat
#define call_access         access
#define call_gethostname    gethostname
#define call_mkdir          mkdir
#define call_unlink         unlink
#define call_rmdir          rmdir
#define call_private_folder mkdtemp
#define call_mmap           mmap
#define call_munmap         munmap
#define call_mprotect       mprotect
#define call_waitpid        waitpid
#define call_kill           kill
#define call_poll           poll
const TgOs tg_os_default = {
#define OS(result, name, params, args, failed, err) .name = call_##name,
#include "base/os.def"
#undef OS
};

bool os_write_all(const TgOs *os, int fd, const void *p, size_t n) {
  for (const char *at = p; n;) {
    ssize_t k = os->write(fd, at, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    at += k;
    n -= (size_t)k;
  }
  return true;
}

bool os_read_all(const TgOs *os, int fd, void *p, size_t n) {
  for (char *at = p; n;) {
    ssize_t k = os->read(fd, at, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    at += k;
    n -= (size_t)k;
  }
  return true;
}
