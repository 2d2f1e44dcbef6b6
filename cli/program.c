/* program.c: a program that a command runs and then tells of (`tg profile`, `explain`, `viz`), and why one
 * does not start. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include "cli.h"
#include <errno.h>
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
  else
    cli_refuse(0, command, "%s cannot be run: %s", name, strerror(why));
}

int program_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

int program_with(char **argument, const char *command, const char *variable, const char *value) {
  char *self[] = {"tg", "run", argument[0], NULL};
  char me[300];
  ssize_t n = readlink("/proc/self/exe", me, sizeof me - 1);
  size_t length = strlen(argument[0]);
  bool model = length > 5 && !strcmp(argument[0] + length - 5, ".onnx");
  if (n > 0) me[n] = 0;
  fflush(NULL);
  signal(SIGINT, SIG_IGN); /* it ends the program; what it did is told */
  pid_t pid = fork();
  if (pid < 0) return cli_refuse(CLI_FAILED, command, "%s: %s", argument[0], strerror(errno));
  if (!pid) {
    signal(SIGINT, SIG_DFL);
    setenv(variable, value, 1);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is for what the command tells */
    execvp(model && n > 0 ? me : argument[0], model ? self : argument);
    program_absent(command, argument[0]);
    _exit(PROGRAM_ABSENT);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return program_code(status);
}

void program_ended(const char *command, const char *name, int code) {
  if (code > 128 && code < 128 + 32)
    cli_refuse(0, command, "%s ended with %d (%s)", name, code, strsignal(code - 128));
  else if (code && code != PROGRAM_ABSENT)
    cli_refuse(0, command, "%s ended with %d", name, code);
}
