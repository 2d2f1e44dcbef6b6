/* os_linux.c: what Linux does in its own way. Only this file uses calls, constants or files that exist
 * only on Linux. */
#define _GNU_SOURCE
#include "base/os_private.h"
#include "base/processor.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

const char os_own_output[] =
    "/proc/self/fd/1"; /* when gcc fails, it cannot delete this file, as it would delete /dev/stdout */

extern char **environ;

char **os_environment(void) { return environ; }

/* ---- files and memory */
int os_memory_file(const char *name) { return memfd_create(name, MFD_CLOEXEC); }

int64_t os_modified_ns(const struct stat *s) {
  return (int64_t)s->st_mtim.tv_sec * 1000000000 + s->st_mtim.tv_nsec;
}

int os_zero_pages(void *p, size_t n) { return madvise(p, n, MADV_DONTNEED); }

int os_large_pages(void *p, size_t n) { return madvise(p, n, MADV_HUGEPAGE); }

void os_memory(uint64_t *unused, uint64_t *total) {
  long pages = sysconf(_SC_PHYS_PAGES), left = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  *total = (uint64_t)TG_MAX(pages, 0) * (uint64_t)size;
  *unused = (uint64_t)TG_MAX(left, 0) * (uint64_t)size;
}

/* ---- processes */
int os_process_watch(pid_t pid) {
#ifdef SYS_pidfd_open
  return (int)syscall(SYS_pidfd_open, pid, 0);
#else
  return (void)pid, errno = ENOSYS, -1;
#endif
}

int os_process_limit(pid_t pid, int cpu_s) {
  struct rlimit limit = {(rlim_t)cpu_s, (rlim_t)cpu_s + 1};
  return prlimit(pid, RLIMIT_CPU, &limit, NULL);
}

/* Waits by descriptor and not by process id: if the host program has already reaped the child, the id may
 * belong to another child by now. */
int os_process_wait(int watch, pid_t pid, bool at_once) {
  enum { BY_PIDFD = 3 }; /* P_PIDFD, which older headers lack */

  siginfo_t info = {0};
  (void)pid;
  if (waitid((idtype_t)BY_PIDFD, (id_t)watch, &info, WEXITED | (at_once ? WNOHANG : 0))) return -1;
  return info.si_pid != 0;
}

int os_sockets(int fd[2]) { return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd); }

ssize_t os_send(int fd, const void *p, size_t n) { return send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT); }

/* ---- threads */
int os_word_wait(uint32_t *at, uint32_t value) {
  return (int)syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

int os_word_wake(uint32_t *at) {
  return (int)syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

int os_shared_wait(uint32_t *at, uint32_t value, long us) {
  struct timespec most = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
  return (int)syscall(SYS_futex, at, FUTEX_WAIT, value, &most, NULL, 0);
}

int os_shared_wake(uint32_t *at) { return (int)syscall(SYS_futex, at, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0); }

int os_thread_pin(pthread_t t, int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return pthread_setaffinity_np(t, sizeof one, &one);
}

int core_here(void) { return sched_getcpu(); }

int core_at(int k) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) return -1;
  for (int core = 0; core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &allowed) && !k--) return core;
  return -1;
}

/* Linux only keeps the state of AMX tiles, 8 KB per thread, for processes that asked for it. It refuses if
 * some thread's signal stack is too small for this state. */
int os_tiles_ask(void) {
#ifdef __x86_64__
  enum { ASK = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */

  return (int)syscall(SYS_arch_prctl, ASK, TILE_DATA);
#else
  return errno = ENOSYS, -1;
#endif
}

/* ---- the machine */
int cpu_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  return 1;
}

#ifdef _SC_LEVEL1_DCACHE_SIZE
int64_t cpu_cache_bytes(int level) {
  static const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  return level >= 1 && level <= 3 ? sysconf(names[level - 1]) : 0;
}

int cpu_cache_ways(int level) {
  static const int names[] = {_SC_LEVEL1_DCACHE_ASSOC, _SC_LEVEL2_CACHE_ASSOC, _SC_LEVEL3_CACHE_ASSOC};
  return level >= 1 && level <= 3 ? (int)sysconf(names[level - 1]) : 0;
}
#else
int64_t cpu_cache_bytes(int level) { return (void)level, 0; }

int cpu_cache_ways(int level) { return (void)level, 0; }
#endif

/* The bits are those of AT_HWCAP and AT_HWCAP2, which Linux gives an arm64 program at its start. */
unsigned processor_arm64_has(void) {
  enum {
    HALVES = 1 << 9 | 1 << 10,
    DOTS = 1 << 20,
    SVE = 1 << 22,
    SVE2 = 1 << 1,
    I8MM = 1 << 13,
    BF16 = 1 << 14
  };

  unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  unsigned has = 0;
  if ((first & HALVES) == HALVES) has |= ARM64_FP16;
  if (first & DOTS) has |= ARM64_DOTPROD;
  if (first & SVE) has |= ARM64_SVE;
  if (second & SVE2) has |= ARM64_SVE2;
  if (second & I8MM) has |= ARM64_I8MM;
  if (second & BF16) has |= ARM64_BF16;
  return has;
}
