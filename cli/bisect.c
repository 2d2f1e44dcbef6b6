/* bisect.c: `tg bisect PROGRAM ARGS..`: finds what makes a program wrong. In: a program that links the
 * library and says by its exit code whether its result is right. Out: which of fusion, opts, device and
 * passes make the difference, and the one fusion, opt or rule firing that makes the result wrong. A fusion is
 * named with its stages, an opt with its kernel, a rule with its file, line and pass. The library numbers
 * fusions, opts and firings, and applies no more of them than a limit allows. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "program.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CHOICES = 1 << 28 };

/* Runs the program with some environment variables, given as name, value, .., NULL. Its stderr is written to
 * the file `trace`; NULL: discarded. Returns its exit code. Once somebody has asked this process to end, no
 * further run is started. */
static int run_with(char **argument, const char *const *setting, const char *trace) {
  if (program_asked()) return CLI_INTERRUPTED;
  pid_t pid = program_fork();
  if (!pid) {
    int to = open(trace ? trace : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (to >= 0) dup2(to, STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    setenv("TG_CACHE", "0", 1);
    for (; setting && *setting; setting += 2)
      setenv(setting[0], setting[1], 1);
    execvp(argument[0], argument);
    _exit(PROGRAM_ABSENT);
  }
  return pid < 0 ? PROGRAM_ABSENT : program_awaited(pid);
}

static bool right_with(char **argument, const char *name, const char *value) {
  return run_with(argument, (const char *const[]){name, value, NULL}, NULL) == 0;
}

static bool right_with_limit(char **argument, const char *name, int64_t limit) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)limit);
  return right_with(argument, name, text);
}

/* Finds a limit *good with which the program is right, while it is wrong with *good + 1. Returns false if
 * this limit alone does not decide, or if the search was interrupted. */
static bool limit_found(char **argument, const char *name, int64_t *good) {
  int64_t low = 0, high = 1;
  if (!right_with_limit(argument, name, 0)) return false;
  for (; high < MOST_CHOICES && right_with_limit(argument, name, high); high *= 2)
    low = high;
  if (high >= MOST_CHOICES) return false;
  while (high - low > 1 && !program_asked()) {
    int64_t middle = low + (high - low) / 2;
    fprintf(stderr, "bisect: %s between %lld and %lld\n", name, (long long)low, (long long)high);
    if (right_with_limit(argument, name, middle))
      low = middle;
    else
      high = middle;
  }
  *good = low;
  return !program_asked();
}

/* Runs the program with this limit and with TG_TRACE=trace. Its stderr is written to the file `path`. */
static void traced(char **argument, const char *name, int64_t limit, const char *trace, const char *path) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)limit);
  run_with(argument, (const char *const[]){name, text, "TG_TRACE", trace, NULL}, path);
}

/* ---- rules */
static bool is_firing(const char *line) { return strstr(line, " => ") && strstr(line, ".rules:"); }

/* Prints the first firing that only the longer trace has, and the line above it that names the pass. Firings
 * that lowering needs are in both traces. */
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

static void rule_say(char **argument, const char *folder, int64_t good) {
  char path[2][80];
  for (int i = 0; i < 2; i++) {
    snprintf(path[i], sizeof path[i], "%.60s/trace%d", folder, i);
    traced(argument, "TG_RULE_LIMIT", good + i, "rules", path[i]);
  }
  firing_say(path[0], path[1]);
  unlink(path[0]), unlink(path[1]);
}

/* ---- opts and fusions */
/* Prints the trace's line for this choice: its number, what it is, and what it is made from. */
static void choice_say(FILE *f, const char *kind, int64_t number) {
  char begins[60], *line = NULL;
  size_t cap = 0;
  snprintf(begins, sizeof begins, "%s %lld: ", kind, (long long)number);
  while (getline(&line, &cap, f) > 0)
    if (!strncmp(line, begins, strlen(begins))) {
      fputs(line, stdout);
      break;
    }
  free(line);
}

static void one_choice_say(char **argument, const char *folder, const char *name, const char *kind,
                           int64_t number) {
  char path[80];
  snprintf(path, sizeof path, "%.60s/trace", folder);
  traced(argument, name, number, "choices", path);
  FILE *f = fopen(path, "r");
  if (f) choice_say(f, kind, number), fclose(f);
  unlink(path);
}

/* For each of fusions, opts and rules, prints the first one with which the result becomes wrong. Returns how
 * many were found. */
static int limits_say(char **argument) {
  static const struct {
    const char *name, *kind;
  } limits[] = {{"TG_FUSE_LIMIT", "fusion"}, {"TG_OPT_LIMIT", "opt"}, {"TG_RULE_LIMIT", "rule"}};

  char folder[] = "/tmp/tg-bisect-XXXXXX";
  int found = 0;
  if (!mkdtemp(folder)) return 0;
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    const char *name = limits[i].name;
    int64_t good = 0;
    if (!limit_found(argument, name, &good)) continue;
    printf("right with %s=%lld, wrong with %lld\n", name, (long long)good, (long long)good + 1);
    if (strcmp(limits[i].kind, "rule"))
      one_choice_say(argument, folder, name, limits[i].kind, good + 1);
    else
      rule_say(argument, folder, good);
    found++;
  }
  rmdir(folder);
  return found;
}

/* Leaves out each pass of the scheduler in turn, and prints those without which the result is right. A
 * program that cannot do without a pass ends with an error. Returns how many were found. */
static int passes_say(char **argument) {
  const char *stage, *pass;
  int found = 0;
  for (int i = 0; (pass = tg_pass_name(i, &stage)); i++) {
    if (strcmp(stage, "schedule") || !right_with(argument, "TG_SKIP", pass)) continue;
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

  int found = 0, rc = run_with(argument, NULL, NULL);
  (void)options, (void)n;
  if (program_asked()) return CLI_INTERRUPTED;
  if (rc == PROGRAM_ABSENT) return cli_refuse(CLI_FAILED, "bisect", "%s does not start", argument[0]);
  if (!rc)
    return cli_refuse(CLI_FAILED, "bisect", "%s ends with 0, which says that all is right", argument[0]);
  printf("wrong: it ends with %d\n", rc);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (right_with(argument, ways[i].name, ways[i].value)) puts(ways[i].says), found++;
  found += passes_say(argument);
  found += limits_say(argument);
  if (program_asked()) return CLI_INTERRUPTED;
  if (!found) puts("wrong in each of these ways: the fault is in the program, or in what they share");
  return CLI_OK;
}

const CliCommand command_bisect = {.name = "bisect",
                                   .summary = "find the rule, pass, fusion or opts that make a program wrong",
                                   .arguments = "PROGRAM ARGS..",
                                   .least = 1,
                                   .most = -1,
                                   .run = run_bisect,
                                   .more = "PROGRAM links the library and ends with 0 if its result is "
                                           "right. It is run without fusion, without opts, on "
                                           "INTERP, without each pass of the scheduler in turn (TG_SKIP), "
                                           "and with fewer and fewer fusions (TG_FUSE_LIMIT), "
                                           "opts (TG_OPT_LIMIT) and rule firings (TG_RULE_LIMIT), some "
                                           "twenty times each; what it prints is dropped. Rules "
                                           "that lowering needs always fire."};
