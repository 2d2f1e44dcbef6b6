/* launch.c: `tg launch -n 4 PROGRAM ARGS..`: runs n processes of one program, which are the ranks of a group.
 * In: the program. Out: its exit code, the first that is not 0. What the group shares is in a folder that is
 * removed at the end. If a rank fails, the others have until the group's time limit to notice it; then they
 * are killed. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "program.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_LAUNCHED = 15, GRACE_S = 5 };

typedef struct Options {
  int64_t ranks, timeout, threads;
} Options;

typedef struct Launched {
  const Options *o;
  char folder[300];
  pid_t pid[MOST_LAUNCHED];
  int left, code;
  double until; /* when the ranks that still run are killed; 0: no rank has failed */
} Launched;

static void variable_set(const char *name, int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  setenv(name, text, 1);
}

/* In $TMPDIR if it is set, otherwise in memory (/dev/shm) if the system has that, otherwise in /tmp. */
static bool folder_made(Launched *l) {
  const char *in[] = {getenv("TMPDIR"), "/dev/shm", "/tmp"};
  for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
    snprintf(l->folder, sizeof l->folder, "%.250s/tg-launch-XXXXXX", in[i] ? in[i] : "");
    if (in[i] && *in[i] && mkdtemp(l->folder)) return true;
  }
  return false;
}

static bool rank_started(Launched *l, int rank, char **argument) {
  char path[340];
  pid_t pid = l->pid[rank] = fork();
  if (pid) return pid > 0;
  snprintf(path, sizeof path, "%s/group", l->folder);
  const char *comm = getenv("TG_COMM"); /* ranks of NCCL find each other in the same way */
  if (!comm || strcmp(comm, "nccl")) setenv("TG_COMM", "local", 1);
  setenv("TG_COMM_NAME", path, 1);
  variable_set("TG_COMM_RANK", rank);
  variable_set("TG_COMM_SIZE", l->o->ranks);
  if (l->o->timeout) variable_set("TG_COMM_TIMEOUT", l->o->timeout);
  if (l->o->threads) variable_set("TG_THREADS", l->o->threads);
  execvp(argument[0], argument);
  program_absent("launch", argument[0]);
  _exit(PROGRAM_ABSENT);
}

static void all_signalled(const Launched *l, int signal_number) {
  for (int r = 0; r < l->o->ranks; r++)
    if (l->pid[r] > 0) kill(l->pid[r], signal_number);
}

static int64_t limit_s(const Launched *l) {
  const char *set = getenv("TG_COMM_TIMEOUT");
  return l->o->timeout ? l->o->timeout : set && atoll(set) > 0 ? atoll(set) : 300;
}

static void rank_ended(Launched *l, pid_t pid, int status) {
  int code = program_code(status);
  for (int r = 0; r < l->o->ranks; r++) {
    if (l->pid[r] != pid) continue;
    l->pid[r] = 0;
    l->left--;
    if (!code) return;
    if (WIFSIGNALED(status))
      fprintf(stderr, "tg launch: rank %d was ended by signal %d\n", r, WTERMSIG(status));
    if (!l->code) l->code = code;
    if (!l->until) l->until = cli_now() + (double)limit_s(l) + GRACE_S;
  }
}

/* Waits until all ranks have ended. */
static void ranks_awaited(Launched *l) {
  bool passed_on = false;
  while (l->left) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid > 0) {
      rank_ended(l, pid, status);
      continue;
    }
    if (program_asked() && !passed_on) {
      passed_on = true;
      all_signalled(l, SIGTERM);
      l->until = l->until ? l->until : cli_now() + GRACE_S;
    }
    if (l->until && cli_now() > l->until) {
      fprintf(stderr, "tg launch: %d of %d ranks do not end, and are ended\n", l->left, (int)l->o->ranks);
      all_signalled(l, SIGKILL);
      l->until = cli_now() + GRACE_S;
    }
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
}

static int run_launch(const void *options, char **argument, int n) {
  Launched l = {.o = options};
  Options o = *l.o;
  (void)n;
  if (!o.threads && !getenv("TG_THREADS")) o.threads = sysconf(_SC_NPROCESSORS_ONLN) / o.ranks;
  if (!o.threads && !getenv("TG_THREADS")) o.threads = 1;
  l.o = &o;
  if (!folder_made(&l)) return cli_refuse(CLI_FAILED, "launch", "%s: %s", l.folder, strerror(errno));
  fflush(NULL);
  program_catch();
  for (int r = 0; r < o.ranks && !l.code; r++) {
    if (rank_started(&l, r, argument))
      l.left++;
    else
      l.code = cli_refuse(CLI_FAILED, "launch", "rank %d does not start: %s", r, strerror(errno));
  }
  if (l.code) all_signalled(&l, SIGTERM);
  ranks_awaited(&l);
  char path[340];
  snprintf(path, sizeof path, "%s/group", l.folder);
  unlink(path), rmdir(l.folder);
  return program_asked() ? CLI_INTERRUPTED : l.code;
}

static const Options launch_defaults = {.ranks = 2};
static const CliOption launch_options[] = {
    CLI_WHOLE_OF(Options, ranks, "ranks", 1, MOST_LAUNCHED, "how many processes; -n N is the same"),
    CLI_WHOLE_OF(Options, threads, "threads", 1, 1024,
                 "of each (default: the cores of the machine shared out)"),
    CLI_WHOLE_OF(Options, timeout, "timeout", 1, 1000000,
                 "seconds after which a rank that does not come is given up"),
};
const CliCommand command_launch = {
    .name = "launch",
    .summary = "run a program as several processes that compute together",
    .arguments = "PROGRAM ARGS..",
    .least = 1,
    .most = -1,
    CLI_TAKES(Options, launch_options),
    .defaults = &launch_defaults,
    .run = run_launch,
    .program = true,
    .more =
        "The ranks are on this machine and reach each other by shared memory (TG_COMM=local; with "
        "TG_COMM=nccl "
        "memory of GPUs goes by NCCL). Across "
        "machines "
        "mpirun starts them: TG_COMM=mpi mpirun -n 4 PROGRAM. For example: tg launch -n 2 tg train mnist"};
