/* compile.c: C text -> object bytes, by a C compiler that is started without a shell. Source, object and
 * messages pass through memory files, so no pipe can block and nothing is left behind. A compiler that
 * computes or waits too long is ended, and so is one that nobody waits for any more. If kernels come one
 * batch after another, the next compiler is started in advance (the spare). */
#define _GNU_SOURCE
#include "runtime/cpu.h"
#include "base/os.h"
#include "base/processor.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS(level, ...)                                                                                     \
  {                                                                                                          \
    "-x", "c", "-", "-c", level, "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-ffreestanding",          \
        "-fno-ident", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", __VA_ARGS__, NULL           \
  }
/* gcc needs a name for its output. */
static const char *const args_clang[] = ARGS("-O1", "-fno-crash-diagnostics", "-w", "-o", "-");
static const char *const args_gcc[] = ARGS("-O2", "-w", "-o", os_own_output);

const char *compiler_flags(const Compiler *c) {
  return c->is_clang ? "clang -O1 native fPIC nocontract v2" : "gcc -O2 native fPIC nocontract v2";
}

/* clang before 15 may crash, or choose wrong instructions, on masks of bytes if it uses AVX-512, because LLVM
 * reads nodes that it has freed. */
enum { FIRST_CLANG_WITH_AVX512 = 15 };

static bool avx512_is_broken(const Compiler *c) {
  const char *v = c->is_clang ? strstr(c->ident, "clang version ") : NULL;
  return v && atoi(v + strlen("clang version ")) < FIRST_CLANG_WITH_AVX512;
}

static bool executable(const TgOs *os, const char *path) {
  struct stat s;
  return os->stat(path, &s) == 0 && S_ISREG(s.st_mode) && os->access(path, X_OK) == 0;
}

static bool search_path(const TgOs *os, const char *name, char *out, size_t cap) {
  if (strchr(name, '/')) return snprintf(out, cap, "%s", name) < (int)cap && executable(os, out);
  const char *p = getenv("PATH");
  for (p = p ? p : "/usr/local/bin:/usr/bin:/bin"; *p;) {
    size_t n = strcspn(p, ":");
    if (n && snprintf(out, cap, "%.*s/%s", (int)n, p, name) < (int)cap && executable(os, out)) return true;
    p += n + (p[n] == ':');
  }
  return false;
}

TgStatus compiler_find(const TgOs *os, const TgEnv *env, TgError *err, Compiler *out) {
  static const char *const names[] = {"clang-19", "clang", "gcc", "cc"};
  *out = (Compiler){0};
  bool found = false;
  if (env && env->cc[0]) {
    if (!search_path(os, env->cc, out->path, sizeof out->path))
      return error_set(err, TG_ERR_DEVICE, "compiler: TG_CC=%s: no such program", env->cc);
    found = true;
  }
  for (size_t i = 0; i < TG_COUNT(names) && !found; i++)
    found = search_path(os, names[i], out->path, sizeof out->path);
  if (!found) *out = (Compiler){0};
  if (!found)
    return error_set(err, TG_ERR_DEVICE,
                     "compiler: none of clang-19, clang, gcc, cc is on PATH; install one or set TG_CC");
  const char *base = strrchr(out->path, '/');
  out->is_clang = strstr(base ? base : out->path, "clang") != NULL;
  return TG_OK;
}

/* ---- one process */
/* Returns a file descriptor, or -1. It is never 0, 1 or 2, because the child needs these. */
static int memory_file(const TgOs *os) {
  int fd = os->memory_file("tinygrad-c");
  if (fd < 0 || fd > 2) return fd;
  int up = os->dup_from(fd, 3);
  os->close(fd);
  return up;
}

static TgStatus read_all(TgMem *mem, const TgOs *os, int fd, size_t limit, Blob *out) {
  struct stat s;
  *out = (Blob){0};
  if (os->fstat(fd, &s) || s.st_size < 0 || os->lseek(fd, 0, SEEK_SET)) return TG_ERR_IO;
  size_t want = TG_MIN((size_t)s.st_size, limit);
  if (!(out->at = mem_alloc(mem, want + 1))) return TG_ERR_NOMEM;
  if (os_read_all(os, fd, out->at, want)) {
    out->nbytes = want;
    return TG_OK;
  }
  mem_free(mem, out->at);
  *out = (Blob){0};
  return TG_ERR_IO;
}

/* Starts a process that reads from `in`. */
static bool job_spawn(const TgOs *os, Job *j, int in, const char *path, const char *const *args,
                      const char *const *more) {
  j->obj = memory_file(os);
  j->msg = memory_file(os);
  if (j->obj < 0 || j->msg < 0) return false;
  const char *argv[48] = {path};
  size_t n = 1;
  for (; *args && n + 1 < TG_COUNT(argv); args++)
    argv[n++] = *args;
  for (; *more && n + 1 < TG_COUNT(argv); more++)
    argv[n++] = *more;
  errno = os->spawn(&j->pid, path, (int[]){in, j->obj, j->msg}, (char *const *)argv);
  j->running = errno == 0;
  if (!j->running) return false;
  j->begin = time_now_s();
  if (j->cpu_s) os->process_limit(j->pid, j->cpu_s);
  j->watch = os->process_watch(j->pid);
  return true;
}

static void job_init(Job *j, int cpu_s) {
  *j = (Job){.src = -1, .obj = -1, .msg = -1, .watch = -1, .pid = -1, .cpu_s = cpu_s};
}

/* cpu_s: seconds of processor time that it may use; 0: no limit. */
static bool job_start(const TgOs *os, Job *j, const char *path, const char *const *args,
                      const char *const *more, const Blob *src, int cpu_s) {
  job_init(j, cpu_s);
  j->src = memory_file(os);
  if (j->src < 0 || !os_write_all(os, j->src, src->at, src->nbytes) || os->lseek(j->src, 0, SEEK_SET))
    return false;
  return job_spawn(os, j, j->src, path, args, more);
}

/* Whether the compiler was ended instead of ending by itself. clang's driver then exits with 128 + the
 * signal, gcc's with 4. */
static bool died(int status) {
  return WIFSIGNALED(status) ||
         (WIFEXITED(status) && (WEXITSTATUS(status) >= 128 || WEXITSTATUS(status) == 4));
}

/* Whether the system ended the process because it used up its processor time. gcc's and clang's drivers only
 * report that their compiler died, so a compiler that died after at least that much time counts too. */
static bool computed_too_long(const Job *j, int status) {
  if (!j->cpu_s) return false;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) return true;
  return died(status) && time_now_s() - j->begin >= j->cpu_s;
}

static bool is_stopped(const Waiting *w) { return w && w->stop && atomic_load(w->stop); }

enum { TURN_MS = 50 }; /* milliseconds after which it is noticed that nobody waits any more */

/* Returns true if the process ended by itself, false if it is late or nobody waits for it. If the host
 * ignores SIGCHLD the exit status is lost (ECHILD); whether there is an object then decides. */
static bool job_wait(const TgOs *os, Job *j, double deadline, const Waiting *w) {
  while (j->running) {
    int status = 0;
    pid_t r = os->waitpid(j->pid, &status, WNOHANG);
    if (r == j->pid || (r < 0 && errno == ECHILD)) {
      j->ok = r < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
      j->died = r > 0 && died(status);
      j->late = r > 0 && computed_too_long(j, status);
      j->running = false;
      break;
    }
    double left = deadline - time_now_s();
    j->late = left <= 0;
    if (j->late || is_stopped(w)) return false;
    if (w && w->tick) w->tick(w->user, 0);
    if (j->watch >= 0) {
      struct pollfd p = {.fd = j->watch, .events = POLLIN};
      os->poll(&p, 1, (int)TG_MIN(left * 1000 + 1, TURN_MS));
    } else
      os->sleep_us(300);
  }
  return true;
}

static void job_kill(const TgOs *os, const Job *j) {
  /* the whole process group, because gcc starts children of its own */
  if (os->kill(-j->pid, SIGKILL)) os->kill(j->pid, SIGKILL);
}

static void job_close(const TgOs *os, const Job *j) {
  int fds[] = {j->src, j->obj, j->msg, j->watch};
  for (size_t i = 0; i < TG_COUNT(fds); i++)
    if (fds[i] >= 0) os->close(fds[i]);
}

static void job_end(const TgOs *os, Job *j) {
  if (j->running) {
    job_kill(os, j);
    while (os->waitpid(j->pid, NULL, 0) < 0 && errno == EINTR) {}
  }
  job_close(os, j);
}

TgStatus compiler_identify(TgMem *mem, const TgOs *os, TgError *err, Compiler *c, int limit_s) {
  static const char *const args[] = {"--version", NULL}, *const none[] = {NULL};
  Job j;
  Blob text = {0};
  bool ok =
      job_start(os, &j, c->path, args, none, &(Blob){0}, 0) && job_wait(os, &j, time_now_s() + limit_s, NULL);
  bool ended = ok && j.ok;
  TgStatus st = ended ? read_all(mem, os, j.obj, sizeof c->ident - 1, &text) : TG_ERR_DEVICE;
  job_end(os, &j);
  if (st == TG_ERR_NOMEM) return error_set(err, st, "compiler: out of memory");
  if (st) return error_set(err, TG_ERR_DEVICE, "compiler: %.200s --version fails", c->path);
  memcpy(c->ident, text.at, text.nbytes);
  c->ident[text.nbytes] = 0;
  for (char *p = c->ident; *p; p++)
    if (*p == '\n') *p = ' ';
  if (strstr(c->ident, "clang")) c->is_clang = true;
  mem_free(mem, text.at);
  return TG_OK;
}

static TgStatus unread(TgError *err, TgStatus st, const Compiler *c) {
  if (st == TG_ERR_NOMEM) return error_set(err, st, "compiler: out of memory");
  return error_set(err, st, "compiler: what %.200s wrote cannot be read", c->path);
}

/* Sets the error of a process that failed, with the beginning of its messages. */
static TgStatus job_failure(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, const Job *j) {
  enum { TOLD = 300 };

  Blob msg;
  TgStatus st = read_all(mem, os, j->msg, TOLD, &msg);
  if (st) return unread(err, st, c);
  error_set(err, TG_ERR_COMPILE, "compiler: %.100s failed%s%s", c->path, msg.nbytes ? ": " : "",
            (char *)msg.at);
  mem_free(mem, msg.at);
  return TG_ERR_COMPILE;
}

static TgStatus job_result(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, const Job *j,
                           Blob *out) {
  if (!j->ok) return job_failure(mem, os, err, c, j);
  TgStatus st = read_all(mem, os, j->obj, (size_t)1 << 30, out);
  if (st) return unread(err, st, c);
  return out->nbytes ? TG_OK : error_set(err, TG_ERR_COMPILE, "compiler: %.200s wrote no object", c->path);
}

typedef struct More {
  const char *at[4];
} More;

/* kernels: the unit is compiled for this machine's own CPU, by args_clang or args_gcc. */
static More more_args(const Compiler *c, bool kernels, bool optimise) {
  More m = {{NULL}};
  int n = 0;
  if (kernels && processor_flag()) m.at[n++] = processor_flag();
  if (avx512_is_broken(c)) m.at[n++] = "-mno-avx512f";
  if (!optimise) m.at[n++] = "-O0";
  return m;
}

/* Returns the processor time that a unit may use, in seconds. If a kernel is compiled again without
 * optimisation it has that time again. */
static int unit_seconds(const Unit *u, int limit_s) {
  return (int)TG_MIN((int64_t)limit_s * TG_MAX(u->kernels, 1), INT32_MAX / 4);
}

/* Returns the time until which a unit is waited for. It is later than the limit of its processor time,
 * because the machine may have other work to do; but a compiler that only sleeps must end too. */
static double unit_deadline(const Unit *u, int limit_s) {
  return time_now_s() + 2.0 * limit_s + unit_seconds(u, limit_s) / 4.0;
}

static bool unit_start(const TgOs *os, Job *j, const Compiler *c, const Unit *u, int limit_s) {
  More more = more_args(c, !u->args, !u->huge && !u->retried);
  const char *const *args = u->args ? u->args : c->is_clang ? args_clang : args_gcc;
  return job_start(os, j, c->path, args, more.at, &u->src, unit_seconds(u, limit_s));
}

/* ---- the spare: it is started when a second batch shows that more may follow, and only for clang, because
 * gcc loads little. SPARE_MOST: bytes that the socket takes at once. For a longer text the time to load LLVM
 * does not matter. */
enum { SPARE_IDLE_S = 3, SPARE_MOST = 64 << 10 };

static void spare_start(const TgOs *os, Spare *s, const Compiler *c) {
  if (s->owner || !c->is_clang) return;
  int fd[2];
  Job *j = &s->job;
  job_init(j, 0);
  if (os->socket_pair(fd, SPARE_IDLE_S)) return;
  j->src = fd[0];
  bool started = job_spawn(os, j, fd[1], c->path, args_clang, more_args(c, true, true).at);
  os->close(fd[1]);
  if (started && j->watch >= 0)
    s->owner = getpid();
  else
    job_end(os, j);
}

static bool spare_runs(const TgOs *os, const Spare *s) {
  int r = os->process_wait(s->job.watch, s->job.pid, true);
  while (r < 0 && errno == EINTR)
    r = os->process_wait(s->job.watch, s->job.pid, true);
  return r == 0;
}

void spare_end(const TgOs *os, Spare *s) {
  if (!s->owner) return;
  if (s->owner == getpid() && spare_runs(os, s)) { /* in a fork the spare is the parent's */
    /* then it ends by itself, even if the signal fails */
    os->shutdown(s->job.src);
    job_kill(os, &s->job);
    while (os->process_wait(s->job.watch, s->job.pid, false) < 0 && errno == EINTR) {}
  }
  job_close(os, &s->job);
  s->owner = 0;
}

static bool spare_take(const TgOs *os, Spare *s, const Unit *u, Job *j, int limit_s) {
  if (!s || !s->owner || u->huge || u->args || u->src.nbytes > SPARE_MOST) return false;
  bool fresh = s->owner == getpid() && spare_runs(os, s);
  bool sent = fresh && os->send(s->job.src, u->src.at, u->src.nbytes) == (ssize_t)u->src.nbytes;
  if (!sent || os->shutdown(s->job.src)) {
    spare_end(os, s);
    return false;
  }
  *j = s->job;
  s->owner = 0;
  j->cpu_s = unit_seconds(u, limit_s);
  j->begin = time_now_s();
  os->process_limit(j->pid, j->cpu_s);
  return true;
}

static bool wrote_object(const TgOs *os, const Job *j) {
  struct stat st;
  return j->ok && os->fstat(j->obj, &st) == 0 && st.st_size > 0;
}

static bool unit_failed(Unit *u, TgStatus st, const char *form, const char *path, const char *why) {
  error_set(&u->why, st, form, path, why);
  return false;
}

static bool unit_restart(const TgOs *os, const Compiler *c, Job *j, Unit *u, int limit_s) {
  job_end(os, j);
  if (unit_start(os, j, c, u, limit_s)) return true;
  return unit_failed(u, TG_ERR_COMPILE, "compiler: cannot start %.200s: %s", c->path, strerror(errno));
}

/* Waits for a unit's compiler and takes its result. A compiler that dies is started once more, without
 * optimisation; a huge unit is given up, because it is compiled without optimisation already. spare: the
 * compiler was the spare, which may have ended just before the source arrived. Returns false if the unit has
 * failed, with u->why set, or if nobody waits for it. */
static bool unit_finish(TgMem *mem, const TgOs *os, const Compiler *c, Job *j, Unit *u, bool spare,
                        const Waiting *w, int limit_s) {
  double deadline = unit_deadline(u, limit_s);
  bool ended = job_wait(os, j, deadline, w);
  if (spare && ended && !j->late && !wrote_object(os, j)) {
    if (!unit_restart(os, c, j, u, limit_s)) return false;
    ended = job_wait(os, j, deadline, w);
  }
  /* most likely its optimiser is at fault */
  if (ended && j->died && !j->late && !u->huge) {
    u->retried = true;
    if (!unit_restart(os, c, j, u, limit_s)) return false;
    ended = job_wait(os, j, deadline, w);
  }
  if (!ended && !j->late) return false; /* nobody waits for it */
  u->gave_up = u->huge && (j->late || j->died);
  if (u->gave_up) return true;
  if (!j->late) return !job_result(mem, os, &u->why, c, j, &u->out);
  error_set(&u->why, TG_ERR_COMPILE, "compiler: %.200s took more than %d s %s (TG_CC_LIMIT)", c->path,
            unit_seconds(u, limit_s), ended ? "of a processor" : "and did not end");
  return false;
}

TgStatus compile_units(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, Spare *spare,
                       const Waiting *w, Unit *u, int n, int limit_s) {
  Job *jobs = mem_alloc(mem, (size_t)n * sizeof *jobs);
  if (!jobs) return error_no_memory(err, "compiler");
  TgStatus st = TG_OK;
  bool from_spare = spare_take(os, spare, &u[0], &jobs[0], limit_s);
  for (int i = from_spare; i < n; i++)
    if (!unit_start(os, &jobs[i], c, &u[i], limit_s))
      unit_failed(&u[i], TG_ERR_COMPILE, "compiler: cannot start %.200s: %s", c->path, strerror(errno));
  if (spare && spare->nbatch++ > 0) spare_start(os, spare, c); /* it loads while this process waits */
  for (int i = 0; i < n && !st; i++) {
    if (u[i].why.status) continue;
    bool done = unit_finish(mem, os, c, &jobs[i], &u[i], i == 0 && from_spare, w, limit_s);
    if (is_stopped(w)) st = TG_ERR_CANCELLED;
    if (u[i].why.status == TG_ERR_NOMEM) st = error_set(err, TG_ERR_NOMEM, "%s", u[i].why.msg);
    if (done && w && w->tick) w->tick(w->user, TG_MAX(u[i].kernels, 1));
  }
  for (int i = 0; i < n; i++)
    job_end(os, &jobs[i]);
  if (st)
    for (int i = 0; i < n; i++) {
      mem_free(mem, u[i].out.at);
      u[i].out = (Blob){0};
    }
  mem_free(mem, jobs);
  return st;
}

TgStatus compile_unit(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, Unit *u, int limit_s) {
  TgStatus st = compile_units(mem, os, err, c, NULL, NULL, u, 1, limit_s);
  return st || !u->why.status ? st : error_set(err, u->why.status, "%s", u->why.msg);
}

/* Links without the files that start a program, because a library that only has functions does not need
 * them. */
TgStatus compiler_link(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, const char *object,
                       const char *library, int limit_s) {
  const char *const args[] = {"-shared", "-nostartfiles", "-w", "-o", library, object, "-lm", NULL};
  const char *const none[] = {NULL};
  Job j;
  TgStatus st = TG_OK;
  if (!job_start(os, &j, c->path, args, none, &(Blob){0}, limit_s))
    st = error_set(err, TG_ERR_COMPILE, "compiler: cannot start %.200s: %s", c->path, strerror(errno));
  else if (!job_wait(os, &j, time_now_s() + 2.0 * limit_s, NULL) || j.late)
    st = error_set(err, TG_ERR_COMPILE, "compiler: %.200s took more than %d s to link (TG_CC_LIMIT)", c->path,
                   limit_s);
  else if (!j.ok)
    st = job_failure(mem, os, err, c, &j);
  job_end(os, &j);
  return st;
}
