/* os_macos.c: what macOS does in its own way. It needs version 14.4 or later, for waiting on a word. */
#define _GNU_SOURCE
#include "base/os_private.h"
#include "base/processor.h"
#include <crt_externs.h>
#include <fcntl.h>
#include <limits.h>
#include <os/os_sync_wait_on_address.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/event.h>
#include <sys/socket.h>
#include <sys/sysctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char os_own_output[] = "/dev/fd/1";

char **os_environment(void) { return *_NSGetEnviron(); } /* a dynamic library on macOS has no `environ` */

/* ---- files and memory */
/* Returns a file whose name was removed, because on macOS an object of shm_open can be mapped but not read
 * or written. */
int os_memory_file(const char *name) {
  char path[PATH_MAX];
  const char *folder = getenv("TMPDIR");
  int n = snprintf(path, sizeof path, "%s/%s-XXXXXX", folder && *folder ? folder : "/tmp", name);
  if (n < 0 || (size_t)n >= sizeof path) return errno = ENAMETOOLONG, -1;
  int fd = mkostemp(path, O_CLOEXEC);
  if (fd >= 0) unlink(path);
  return fd;
}

int64_t os_modified_ns(const struct stat *s) {
  return (int64_t)s->st_mtimespec.tv_sec * 1000000000 + s->st_mtimespec.tv_nsec;
}

/* macOS chooses the size of pages by itself. */
int os_large_pages(void *p, size_t n) { return (void)p, (void)n, 0; }

/* The pages are mapped anew, because no advice on macOS guarantees zeros. */
int os_zero_pages(void *p, size_t n) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  return mmap(p, n, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED ? -1 : 0;
}

/* Returns a number of 4 or 8 bytes that the system has under a name. -1: there is no such name. */
static int64_t fact(const char *name) {
  int64_t wide = 0;
  size_t nbytes = sizeof wide;
  if (sysctlbyname(name, &wide, &nbytes, NULL, 0)) return -1;
  return wide; /* little-endian: 4 bytes leave the upper half zero */
}

void os_memory(uint64_t *unused, uint64_t *total) {
  int64_t all = fact("hw.memsize"), pages = fact("vm.page_free_count");
  *total = (uint64_t)TG_MAX(all, 0);
  *unused = (uint64_t)TG_MAX(pages, 0) * (uint64_t)getpagesize();
}

/* ---- processes */
int os_process_watch(pid_t pid) {
  struct kevent ended;
  int queue = kqueue();
  if (queue < 0) return -1;
  EV_SET(&ended, pid, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
  if (fcntl(queue, F_SETFD, FD_CLOEXEC) == 0 && kevent(queue, &ended, 1, NULL, 0, NULL) == 0) return queue;
  int e = errno;
  close(queue);
  return errno = e, -1;
}

int os_process_limit(pid_t pid, int cpu_s) { return (void)pid, (void)cpu_s, errno = ENOSYS, -1; }

/* The queue reports the end once. The child is reaped only then, so its id cannot belong to another
 * process before. */
int os_process_wait(int watch, pid_t pid, bool at_once) {
  static const struct timespec none = {0, 0};
  struct kevent ended;
  int n = kevent(watch, NULL, 0, &ended, 1, at_once ? &none : NULL);
  if (n <= 0) return n;
  return waitpid(pid, NULL, 0) < 0 && errno != ECHILD ? -1 : 1;
}

/* macOS has no socket flags for this. If another thread starts a process between these calls, that process
 * inherits the sockets. */
int os_sockets(int fd[2]) {
  const int on = 1;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd)) return -1;
  bool ready = true;
  for (int i = 0; i < 2; i++) {
    ready = ready && fcntl(fd[i], F_SETFD, FD_CLOEXEC) == 0;
    ready = ready && setsockopt(fd[i], SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) == 0;
  }
  if (ready) return 0;
  close(fd[0]);
  close(fd[1]);
  return errno = EMFILE, -1;
}

ssize_t os_send(int fd, const void *p, size_t n) { return send(fd, p, n, MSG_DONTWAIT); }

/* ---- threads */
int os_word_wait(uint32_t *at, uint32_t value) {
  return os_sync_wait_on_address(at, value, sizeof *at, OS_SYNC_WAIT_ON_ADDRESS_NONE);
}

/* It is not a failure if nobody waits. */
int os_word_wake(uint32_t *at) {
  int rc = os_sync_wake_by_address_all(at, sizeof *at, OS_SYNC_WAKE_BY_ADDRESS_NONE);
  return rc && errno == ENOENT ? 0 : rc;
}

/* macOS cannot wait on a word shared with another process, so the caller polls it. */
int os_shared_wait(uint32_t *at, uint32_t value, long us) {
  enum { OFTEN_US = 50 };

  (void)at, (void)value;
  return nanosleep(&(struct timespec){.tv_nsec = TG_MIN(us, OFTEN_US) * 1000}, NULL);
}

int os_shared_wake(uint32_t *at) { return (void)at, 0; }

/* macOS has no call for this. */
int os_thread_pin(pthread_t t, int core) { return (void)t, (void)core, 0; }

int core_here(void) { return -1; }

int core_at(int k) { return (void)k, -1; }

int os_tiles_ask(void) { return errno = ENOSYS, -1; }

/* ---- the machine */
/* Counts only the fast cores if there are two kinds, because the threads of a kernel have equal shares. */
int cpu_count(void) {
  int64_t fast = fact("hw.perflevel0.logicalcpu");
  int64_t n = fast > 0 ? fast : fact("hw.logicalcpu");
  return n > 0 ? (int)n : 1;
}

int64_t cpu_cache_bytes(int level) {
  static const char *const names[][2] = {{"hw.perflevel0.l1dcachesize", "hw.l1dcachesize"},
                                         {"hw.perflevel0.l2cachesize", "hw.l2cachesize"},
                                         {"hw.perflevel0.l3cachesize", "hw.l3cachesize"}};
  if (level < 1 || level > 3) return 0;
  int64_t nbytes = fact(names[level - 1][0]);
  return nbytes > 0 ? nbytes : fact(names[level - 1][1]);
}

/* The system does not report it. */
int cpu_cache_ways(int level) { return (void)level, 0; }

unsigned processor_arm64_has(void) {
  static const struct {
    const char *name;
    unsigned flag;
  } known[] = {{"hw.optional.arm.FEAT_FP16", ARM64_FP16},
               {"hw.optional.arm.FEAT_DotProd", ARM64_DOTPROD},
               {"hw.optional.arm.FEAT_BF16", ARM64_BF16},
               {"hw.optional.arm.FEAT_I8MM", ARM64_I8MM}};

  unsigned has = 0;
  for (size_t i = 0; i < TG_COUNT(known); i++)
    if (fact(known[i].name) > 0) has |= known[i].flag;
  return has;
}
