/* compile.c: C text -> object bytes, by a C compiler started without a shell. Source, object and messages pass through memory files, so no
 * pipe can block and nothing is left behind; a compiler that runs for more than a minute is ended. */
#define _GNU_SOURCE
#include "runtime/cpu.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
/* The object goes to /proc/self/fd/1: a name that gcc cannot delete when it fails, as it would /dev/stdout. */
static const char *const args_clang[] = {"-x", "c", "-", "-c", "-O1", "-march=native", "-fPIC", "-ffp-contract=off", "-fno-math-errno",
    "-ffreestanding",
                                         "-fno-ident", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-w", "-o", "-", NULL};
static const char *const args_gcc[] = {"-x", "c", "-", "-c", "-O2", "-march=native", "-fPIC", "-ffp-contract=off", "-fno-math-errno",
    "-ffreestanding",
                                       "-fno-ident", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-w", "-o",
                                       "/proc/self/fd/1", NULL};
const char *compiler_flags(const Compiler *c) { return c->is_clang ? "clang -O1 native fPIC nocontract v1"
    : "gcc -O2 native fPIC nocontract v1"; }

static bool executable(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}
static bool search_path(const char *name, char *out, size_t cap) {
  if (strchr(name, '/')) return snprintf(out, cap, "%s", name) < (int)cap && executable(out);
  const char *p = getenv("PATH");
  for (p = p ? p : "/usr/local/bin:/usr/bin:/bin"; *p;) {
    size_t n = strcspn(p, ":");
    if (n && snprintf(out, cap, "%.*s/%s", (int)n, p, name) < (int)cap && executable(out)) return true;
    p += n + (p[n] == ':');
  }
  return false;
}
TgStatus compiler_find(const TgEnv *env, TgError *err, Compiler *out) {
  static const char *const names[] = {"clang-19", "clang", "gcc", "cc"};
  *out = (Compiler){0};
  bool found = false;
  if (env && env->cc[0]) {
    if (!search_path(env->cc, out->path, sizeof out->path)) return error_set(err, TG_ERR_DEVICE, "compiler: TG_CC=%s: no such program",
        env->cc);
    found = true;
  }
  for (size_t i = 0; i < TG_COUNT(names) && !found; i++) found = search_path(names[i], out->path, sizeof out->path);
  if (!found) return error_set(err, TG_ERR_DEVICE, "compiler: none of clang-19, clang, gcc, cc is on PATH; install one or set TG_CC");
  const char *base = strrchr(out->path, '/');
  out->is_clang = strstr(base ? base : out->path, "clang") != NULL;
  return TG_OK;
}

/* ---- one process */
typedef struct Job { int src, obj, msg, pidfd; pid_t pid; bool running, ok; } Job;
static int memory_file(void) {                                     /* never 0, 1 or 2, which the child needs */
  int fd = memfd_create("tinygrad-c", MFD_CLOEXEC);
  if (fd < 0 || fd > 2) return fd;
  int up = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  close(fd);
  return up;
}
static bool write_all(const TgOs *os, int fd, const uint8_t *p, size_t n) {
  while (n) {
    ssize_t k = os->write(fd, p, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    p += k, n -= (size_t)k;
  }
  return true;
}
static bool read_all(TgMem *mem, const TgOs *os, int fd, size_t limit, Blob *out) {
  struct stat s;
  *out = (Blob){0};
  if (fstat(fd, &s) || s.st_size < 0 || lseek(fd, 0, SEEK_SET)) return false;
  size_t want = TG_MIN((size_t)s.st_size, limit), got = 0;
  if (!(out->at = mem_alloc(mem, want + 1))) return false;
  while (got < want) {
    ssize_t k = os->read(fd, out->at + got, want - got);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) { mem_free(mem, out->at); *out = (Blob){0}; return false; }
    got += (size_t)k;
  }
  out->nbytes = got;
  return true;
}
static bool job_start(const TgOs *os, Job *j, const char *path, const char *const *args, const Blob *src) {
  *j = (Job){-1, -1, -1, -1, -1, false, false};
  j->src = memory_file(), j->obj = memory_file(), j->msg = memory_file();
  if (j->src < 0 || j->obj < 0 || j->msg < 0) return false;
  if (!write_all(os, j->src, src->at, src->nbytes) || lseek(j->src, 0, SEEK_SET)) return false;
  const char *argv[32] = {path};
  for (size_t i = 0; args[i] && i + 2 < TG_COUNT(argv); i++) argv[i + 1] = args[i];
  posix_spawn_file_actions_t fa;
  posix_spawnattr_t at;
  if (posix_spawn_file_actions_init(&fa)) return false;
  if (posix_spawnattr_init(&at)) { posix_spawn_file_actions_destroy(&fa); return false; }
  sigset_t none, all;
  sigemptyset(&none), sigfillset(&all);
  bool ok = !posix_spawn_file_actions_adddup2(&fa, j->src, 0) && !posix_spawn_file_actions_adddup2(&fa, j->obj, 1) &&
            !posix_spawn_file_actions_adddup2(&fa, j->msg, 2) && !posix_spawnattr_setpgroup(&at, 0) && !posix_spawnattr_setsigmask(&at,
                &none) &&
            !posix_spawnattr_setsigdefault(&at, &all) &&
            !posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ok = ok && !posix_spawn(&j->pid, path, &fa, &at, (char *const *)argv, environ);
  posix_spawn_file_actions_destroy(&fa), posix_spawnattr_destroy(&at);
  j->running = ok;
#ifdef SYS_pidfd_open
  if (ok) j->pidfd = (int)syscall(SYS_pidfd_open, j->pid, 0);
#endif
  return ok;
}
/* True: ended by itself. A host that ignores SIGCHLD loses the exit status (ECHILD); the object then speaks for itself. */
static bool job_wait(Job *j, double deadline) {
  while (j->running) {
    int status = 0;
    pid_t r = waitpid(j->pid, &status, WNOHANG);
    if (r == j->pid || (r < 0 && errno == ECHILD)) {
      j->ok = r < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
      j->running = false;
      break;
    }
    double left = deadline - time_now_s();
    if (left <= 0) return false;
    if (j->pidfd >= 0) {
      struct pollfd p = {.fd = j->pidfd, .events = POLLIN};
      poll(&p, 1, (int)(left * 1000) + 1);
    } else nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
  }
  return true;
}
static void job_end(const TgOs *os, Job *j) {
  if (j->running) {
    kill(-j->pid, SIGKILL);                                        /* the group: gcc starts children of its own */
    while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR) {}
  }
  int fds[] = {j->src, j->obj, j->msg, j->pidfd};
  for (size_t i = 0; i < TG_COUNT(fds); i++) if (fds[i] >= 0) os->close(fds[i]);
}

TgStatus compiler_identify(TgMem *mem, const TgOs *os, TgError *err, Compiler *c) {
  static const char *const args[] = {"--version", NULL};
  Job j;
  Blob text = {0};
  bool ok = job_start(os, &j, c->path, args, &(Blob){0}) && job_wait(&j, time_now_s() + COMPILE_LIMIT_S) && j.ok && read_all(mem, os,
      j.obj, 255, &text);
  job_end(os, &j);
  if (!ok) return error_set(err, TG_ERR_DEVICE, "compiler: %.200s --version fails", c->path);
  memcpy(c->ident, text.at, text.nbytes);
  for (char *p = c->ident; *p; p++) if (*p == '\n') *p = ' ';
  if (strstr(c->ident, "clang")) c->is_clang = true;
  mem_free(mem, text.at);
  return TG_OK;
}
TgStatus compile_units(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, const Blob *src, int n, Blob *out) {
  for (int i = 0; i < n; i++) out[i] = (Blob){0};
  Job *jobs = mem_alloc(mem, (size_t)n * sizeof *jobs);
  if (!jobs) return error_set(err, TG_ERR_NOMEM, "compiler: out of memory");
  TgStatus st = TG_OK;
  int started = 0;
  for (; started < n && !st; started++)
    if (!job_start(os, &jobs[started], c->path, c->is_clang ? args_clang : args_gcc, &src[started]))
      st = error_set(err, TG_ERR_COMPILE, "compiler: cannot start %.200s: %s", c->path, strerror(errno));
  double deadline = time_now_s() + COMPILE_LIMIT_S;
  for (int i = 0; i < started && !st; i++) {
    if (!job_wait(&jobs[i], deadline)) { st = error_set(err, TG_ERR_COMPILE, "compiler: %.200s took more than %d s", c->path,
        COMPILE_LIMIT_S); break; }
    Blob msg = {0};
    if (!jobs[i].ok) {
      if (read_all(mem, os, jobs[i].msg, 300, &msg)) st = error_set(err, TG_ERR_COMPILE, "compiler: %.100s: %s", c->path, (char *)msg.at);
      else st = error_set(err, TG_ERR_COMPILE, "compiler: %.100s failed", c->path);
      mem_free(mem, msg.at);
    } else if (!read_all(mem, os, jobs[i].obj, (size_t)1 << 30, &out[i]) || !out[i].nbytes)
      st = error_set(err, TG_ERR_COMPILE, "compiler: %.200s wrote no object", c->path);
  }
  for (int i = 0; i < started; i++) job_end(os, &jobs[i]);
  if (st) for (int i = 0; i < n; i++) mem_free(mem, out[i].at), out[i] = (Blob){0};
  mem_free(mem, jobs);
  return st;
}
