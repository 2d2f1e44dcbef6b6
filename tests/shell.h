/* shell.h: lines of a shell that a test runs, and what they print. */
#ifndef TG_TESTS_SHELL_H
#define TG_TESTS_SHELL_H
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static char text[1 << 18]; /* what the last line printed */

/* Runs a line; its exit code, or -1. */
static int shell_run(const char *line) {
  FILE *p = popen(line, "r");
  assert_non_null(p);
  size_t n = fread(text, 1, sizeof text - 1, p);
  text[n] = 0;
  int status = pclose(p);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void says(const char *what) {
  if (!strstr(text, what)) fail_msg("no '%s' in: %s", what, text);
}
#endif
