/* os.c: the OS calls of the library (os.def), made by the OS itself. */
#define _GNU_SOURCE
#include "base/os.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int call_open(const char *path, int flags, int mode) { return open(path, flags, mode); }

static int call_memory_file(const char *name) { return memfd_create(name, MFD_CLOEXEC); }

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
  if (!e) e = posix_spawn(pid, path, &fa, &at, argv, environ);
  posix_spawn_file_actions_destroy(&fa), posix_spawnattr_destroy(&at);
  return e;
}

static int call_pidfd_open(pid_t pid) {
#ifdef SYS_pidfd_open
  return (int)syscall(SYS_pidfd_open, pid, 0);
#else
  return (void)pid, errno = ENOSYS, -1;
#endif
}

/* By descriptor and not by number: where the host has reaped the child, its number may be another child's by
 * now. */
static int call_pidfd_wait(int fd, bool at_once) {
  enum { BY_PIDFD = 3 }; /* P_PIDFD, which older headers lack */

  siginfo_t info = {0};
  if (waitid((idtype_t)BY_PIDFD, (id_t)fd, &info, WEXITED | (at_once ? WNOHANG : 0))) return -1;
  return info.si_pid != 0;
}

static int call_socket_pair(int fd[2], int idle_s) {
  const struct timeval idle = {.tv_sec = idle_s};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) return -1;
  bool low = fd[0] < 3 || fd[1] < 3; /* the host has closed one of 0, 1, 2, which a child needs */
  if (!low && !setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle)) return 0;
  close(fd[0]);
  close(fd[1]);
  return errno = EMFILE, -1;
}

static ssize_t call_send(int fd, const void *p, size_t n) {
  return send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int call_shutdown(int fd) { return shutdown(fd, SHUT_WR); }

static int call_sleep_us(long us) {
  return nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

static long call_futex(uint32_t *at, int op, uint32_t value) {
  return syscall(SYS_futex, at, op, value, NULL, NULL, 0);
}

static int call_thread_start(pthread_t *t, void *(*run)(void *), void *arg) {
  return pthread_create(t, NULL, run, arg);
}

static int call_thread_pin(pthread_t t, const cpu_set_t *cpus) {
  return pthread_setaffinity_np(t, sizeof *cpus, cpus);
}

static void *call_library_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

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
#define call_mkdir          mkdir
#define call_mmap           mmap
#define call_munmap         munmap
#define call_mprotect       mprotect
#define call_madvise        madvise
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
    at += k, n -= (size_t)k;
  }
  return true;
}

bool os_read_all(const TgOs *os, int fd, void *p, size_t n) {
  for (char *at = p; n;) {
    ssize_t k = os->read(fd, at, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    at += k, n -= (size_t)k;
  }
  return true;
}
