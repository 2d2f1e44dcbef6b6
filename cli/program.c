/* program.c: runs a program about which a command then reports (`tg profile`, `explain`, `viz`), and tells
 * why a program does not start. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include "llm.h"
#include "cli.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void program_absent(const char *command, const char *name) {
  int why = errno;
  struct stat s;
  if (why == ENOENT && !strchr(name, '/') && !stat(name, &s))
    cli_refuse(0, command, "%s: no program of this name in PATH; the file that is here is ./%s", name, name);
  else if (why == EACCES && llm_is_gguf(name))
    cli_refuse(0, command, "%s is a language model, and no program: tg %s -- tg run %s --prompt TEXT", name,
               command, name);
  else
    cli_refuse(0, command, "%s cannot be run: %s", name, strerror(why));
}

int program_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/* ---- signals that ask this process to end, while a program runs */
static volatile sig_atomic_t running, asked;

static bool by_process(const siginfo_t *info) {
  return info->si_code == SI_USER || info->si_code == SI_QUEUE;
}

/* A signal from a terminal reaches the program without us. Another process, such as a supervisor, may know
 * only our process, so its signal is passed on. */
static void on_signal(int number, siginfo_t *info, void *context) {
  int was = errno;
  (void)context;
  if (by_process(info) && running) kill((pid_t)running, number);
  if (asked != ASKED_BY_PROCESS) asked = by_process(info) ? ASKED_BY_PROCESS : ASKED_BY_TERMINAL;
  errno = was;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

enum { ENDS = sizeof ends / sizeof *ends };

/* If nohup made us ignore SIGHUP, it stays ignored. A shell that starts us in the background ignores SIGINT
 * too; a SIGINT that comes then was sent on purpose, so it is handled. */
static bool is_kept(int number) {
  struct sigaction was;
  return number == SIGHUP && !sigaction(number, NULL, &was) && was.sa_handler == SIG_IGN;
}

void program_catch(void) {
  struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigemptyset(&a.sa_mask);
  for (int i = 0; i < ENDS; i++)
    if (!is_kept(ends[i])) sigaction(ends[i], &a, NULL);
}

int program_asked(void) { return asked; }

void program_outlives_reader(bool begins) {
  static void (*was)(int);
  struct pollfd out = {.fd = STDOUT_FILENO};
  if (begins) {
    was = signal(SIGPIPE, SIG_IGN);
    return;
  }
  fflush(stdout);
  signal(SIGPIPE, was);
  if (was == SIG_DFL && poll(&out, 1, 0) == 1 && (out.revents & POLLERR)) raise(SIGPIPE);
}

static void signals_held(bool hold) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < ENDS; i++)
    sigaddset(&set, ends[i]);
  sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* Signals are blocked until it is known which process they are to be passed on to. */
pid_t program_fork(void) {
  fflush(NULL);
  program_catch();
  signals_held(true);
  pid_t pid = fork();
  for (int i = 0; i < ENDS && !pid; i++)
    if (!is_kept(ends[i])) signal(ends[i], SIG_DFL);
  if (pid > 0) running = pid;
  signals_held(false);
  return pid;
}

/* The program's number is not reused until no signal can be sent to it any more, because WNOWAIT leaves it as
 * a zombie. */
int program_awaited(pid_t pid) {
  int status = 0;
  siginfo_t info;
  while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {}
  running = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return program_code(status);
}

int program_with(char **argument, const char *command, const char *variable, const char *value) {
  char *self[] = {"tg", "run", argument[0], NULL};
  char me[300];
  ssize_t n = readlink("/proc/self/exe", me, sizeof me - 1);
  size_t length = strlen(argument[0]);
  bool model = length > 5 && !strcmp(argument[0] + length - 5, ".onnx");
  if (n > 0) me[n] = 0;
  pid_t pid = program_fork(); /* a signal ends only the program; the command still reports */
  if (pid < 0) return cli_refuse(CLI_FAILED, command, "%s: %s", argument[0], strerror(errno));
  if (!pid) {
    setenv(variable, value, 1);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is for the command's report */
    execvp(model && n > 0 ? me : argument[0], model ? self : argument);
    program_absent(command, argument[0]);
    _exit(PROGRAM_ABSENT);
  }
  return program_awaited(pid);
}

void program_ended(const char *command, const char *name, int code) {
  if (code > 128 && code < 128 + 32)
    cli_refuse(0, command, "%s ended with %d (%s)", name, code, strsignal(code - 128));
  else if (code && code != PROGRAM_ABSENT)
    cli_refuse(0, command, "%s ended with %d", name, code);
}
