/* bisect.c: `tg bisect PROGRAM ARGS..`: what makes a program wrong. In: a program that links the library and says by its
 * exit code whether its result is right. Out: which of fusion, opts, device and passes the result hangs on; and, where it is
 * right without rules, the one rule firing that makes it wrong: its name, file, line and pass. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_FIRINGS = 1 << 28 };

/* A setting of the environment that a run has; the program prints to where `trace` says, NULL: nowhere. */
static int run_with(char **argument, const char *name, const char *value, const char *trace) {
  fflush(NULL);
  pid_t pid = fork();
  if (!pid) {
    int to = open(trace ? trace : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (to >= 0) dup2(to, STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    setenv("TG_CACHE", "0", 1);
    if (name) setenv(name, value, 1);
    if (trace) setenv("TG_TRACE", "rules", 1);
    execvp(argument[0], argument);
    _exit(127);
  }
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return pid < 0 ? 127 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool right_with_limit(char **argument, int64_t limit) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)limit);
  return run_with(argument, "TG_RULE_LIMIT", text, NULL) == 0;
}

/* Right with `good` firings, wrong with one more: *good + 1 is the first that is too many. False: not rules alone. */
static bool limit_found(char **argument, int64_t *good) {
  int64_t low = 0, high = 1;
  if (!right_with_limit(argument, 0)) return false;
  for (; high < MOST_FIRINGS && right_with_limit(argument, high); high *= 2)
    low = high;
  if (high >= MOST_FIRINGS) return false;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    fprintf(stderr, "bisect: between %lld and %lld firings\n", (long long)low, (long long)high);
    if (right_with_limit(argument, middle))
      low = middle;
    else
      high = middle;
  }
  *good = low;
  return true;
}

static bool is_firing(const char *line) { return strstr(line, " => ") && strstr(line, ".rules:"); }

/* The first firing that only the longer trace has, with the line above it that names the pass. Rules that lowering
 * needs are in both. */
static void firing_say(const char *shorter, const char *longer) {
  FILE *f = fopen(shorter, "r"), *g = fopen(longer, "r");
  char *was = NULL, *now = NULL, *pass = NULL;
  size_t was_cap = 0, now_cap = 0;
  while (f && g && getline(&now, &now_cap, g) > 0) {
    bool same = getline(&was, &was_cap, f) > 0 && !strcmp(was, now);
    if (!is_firing(now) && strstr(now, ": pass ")) {
      free(pass);
      pass = strdup(now);
    }
    if (same || !is_firing(now)) continue;
    printf("rule: %s", now);
    if (pass) printf("in %s", pass);
    break;
  }
  free(was), free(now), free(pass);
  if (f) fclose(f);
  if (g) fclose(g);
}

static void rule_say(char **argument, int64_t good) {
  char folder[] = "/tmp/tg-bisect-XXXXXX", path[2][60], limit[32];
  if (!mkdtemp(folder)) return;
  for (int i = 0; i < 2; i++) {
    snprintf(path[i], sizeof path[i], "%s/trace%d", folder, i);
    snprintf(limit, sizeof limit, "%lld", (long long)good + i);
    run_with(argument, "TG_RULE_LIMIT", limit, path[i]);
  }
  printf("right with TG_RULE_LIMIT=%lld, wrong with %lld\n", (long long)good, (long long)good + 1);
  firing_say(path[0], path[1]);
  unlink(path[0]), unlink(path[1]), rmdir(folder);
}

/* Each pass of the scheduler is left out in turn; those that it cannot do without end the program with an error. */
static int passes_say(char **argument) {
  const char *stage, *pass;
  int found = 0;
  for (int i = 0; (pass = tg_pass_name(i, &stage)); i++) {
    if (strcmp(stage, "schedule") || run_with(argument, "TG_SKIP", pass, NULL)) continue;
    printf("pass: it is right without '%s' (TG_SKIP=\"%s\")\n", pass, pass);
    found++;
  }
  return found;
}

static int run_bisect(const void *options, char **argument, int n) {
  static const struct {
    const char *name, *value, *says;
  } ways[] = {{"TG_FUSE", "0", "fusion: it is right with a kernel per stage (TG_FUSE=0)"},
              {"TG_NOOPT", "1", "opts: it is right with plain loops (TG_NOOPT=1)"},
              {"TG_DEV", "INTERP", "device: it is right on the reference interpreter (TG_DEV=INTERP)"}};

  int64_t good = 0;
  int found = 0, rc = run_with(argument, NULL, NULL, NULL);
  (void)options, (void)n;
  if (rc == 127) return cli_refuse(CLI_FAILED, "bisect", "%s does not start", argument[0]);
  if (!rc)
    return cli_refuse(CLI_FAILED, "bisect", "%s ends with 0, which says that all is right", argument[0]);
  printf("wrong: it ends with %d\n", rc);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (run_with(argument, ways[i].name, ways[i].value, NULL) == 0) puts(ways[i].says), found++;
  found += passes_say(argument);
  if (limit_found(argument, &good)) rule_say(argument, good), found++;
  if (!found) puts("wrong in each of these ways: the fault is in the program, or in what they share");
  return CLI_OK;
}

const CliCommand command_bisect = {
    .name = "bisect",
    .summary = "find the rule, pass, fusion or opts that make a program wrong",
    .arguments = "PROGRAM ARGS..",
    .least = 1,
    .most = -1,
    .run = run_bisect,
    .more =
        "PROGRAM links the library and ends with 0 if its result is right. It is run without fusion, without "
        "opts, on INTERP, without each pass of the scheduler in turn (TG_SKIP), and with fewer and fewer "
        "rule firings (TG_RULE_LIMIT), some twenty times; what it "
        "prints is "
        "dropped. Rules that lowering needs always fire."};
