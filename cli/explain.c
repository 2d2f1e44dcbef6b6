/* explain.c: `tg explain FILE.onnx|PROGRAM ARGS..`: shows a program's kernels and what may make it slow. In:
 * any program that links the library, or a model, which runs once with zeros. Out: what the library reports
 * about each context (TG_EXPLAIN); for one kernel, its source and the assembly that a C compiler makes of
 * it. */
#define _POSIX_C_SOURCE 200809L
#include "explain.h"
#include "program.h"
#include "viz.h"
#include <dirent.h>
#include <errno.h>
#ifdef TG_HAVE_JANSSON
#include <jansson.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct ExplainOptions {
  const char *kernel;
  bool json;
} ExplainOptions;

#ifdef TG_HAVE_JANSSON
/* Returns the folder's dump of kernel `number` whose name ends with `ends`, to be freed. Returns NULL if
 * there is none. */
static char *dump_read(const char *folder, int number, const char *ends) {
  DIR *d = opendir(folder);
  char begins[16], *text = NULL;
  snprintf(begins, sizeof begins, "k%03d-", number);
  for (struct dirent *e; d && !text && (e = readdir(d));) {
    size_t n = strlen(e->d_name), m = strlen(ends);
    char path[800];
    if (strncmp(e->d_name, begins, strlen(begins)) || n < m || strcmp(e->d_name + n - m, ends)) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    text = cli_read_file(path, NULL);
  }
  if (d) closedir(d);
  return text;
}

typedef struct Asked {
  TgContext *ctx;
  const char *graph;
} Asked;

static const char *cost_of_list(const char *list, void *user) {
  Asked *a = user;
  const char *said = tg_opt(a->ctx, a->graph, .emit = "costs", .opts = list);
  if (!said) tg_clear_error(a->ctx);
  return said;
}

/* Opens a context in which the planner chooses the opts, even if the environment told the program which to
 * take. */
static TgContext *planner_open(void) {
  unsetenv("TG_OPTS"), unsetenv("TG_NOOPT");
  return tg_open(NULL);
}

/* Prints what the kernel's opts gain, and its loops, from the dumps of the run. */
static void model_put(const char *dumps, int number, const char *opts) {
  char *graph = dump_read(dumps, number, ".0-input.uop"),
       *program = dump_read(dumps, number, "-linearize.uop");
  Asked asked = {graph ? planner_open() : NULL, graph};
  const char *said = asked.ctx ? tg_opt(asked.ctx, graph, .emit = "costs") : NULL;
  char *costs = said ? strdup(said) : NULL;
  if (costs && opts) explain_opts(stdout, costs, opts, cost_of_list, &asked);
  if (program) explain_loops(stdout, program);
  tg_close(asked.ctx);
  free(graph), free(program), free(costs);
}

/* Prints the kernel `name` ("r_4_4", or "0.2": graph 0, kernel 2) from the facts about one context. Returns
 * false if it is not there. */
static bool kernel_put(const char *text, const char *name, const char *dumps) {
  json_error_t e;
  json_t *all = json_loads(text, 0, &e), *graph, *kernel;
  size_t g, k;
  bool found = false;
  json_array_foreach(json_object_get(all, "graphs"), g, graph) {
    json_array_foreach(json_object_get(graph, "kernels"), k, kernel) {
      const char *is = json_string_value(json_object_get(kernel, "name"));
      const char *source = json_string_value(json_object_get(kernel, "source"));
      const char *origin = json_string_value(json_object_get(kernel, "origin"));
      char number[60];
      snprintf(number, sizeof number, "%zu.%zu", g, k);
      if (found || !is || !source || (strcmp(is, name) && strcmp(number, name))) continue;
      printf("%s: %s\n%s", is, origin ? origin : "", source);
      if (json_is_true(json_object_get(kernel, "plainer")))
        printf("\nmore opts were refused: TG_DEBUG=1 says why\n");
      model_put(dumps, (int)json_integer_value(json_object_get(kernel, "passes")),
                json_string_value(json_object_get(kernel, "opts")));
      char *assembly = NULL;
      if (strstr(source, ", C, ")) assembly_of(&source, &is, 1, &assembly);
      if (assembly) printf("\n# assembly, by: cc %s\n%s", ASSEMBLY_FLAGS, assembly);
      free(assembly);
      found = true;
    }
  }
  json_decref(all);
  return found;
}
#else
static bool kernel_put(const char *text, const char *name, const char *dumps) {
  (void)text, (void)name, (void)dumps;
  return false;
}
#endif

static void folder_end(const char *folder) { /* removes the folder and the files in it */
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[800];
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) unlink(path);
  }
  if (d) closedir(d);
  rmdir(folder);
}

/* Prints what the contexts wrote into the folder, and removes the folder. Returns how many contexts had
 * something to report. */
static int told(const char *folder, const char *kernel, const char *dumps) {
  DIR *d = opendir(folder);
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[600];
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    char *text = cli_read_file(path, NULL);
    if (text && kernel)
      n += n == 0 && kernel_put(text, kernel, dumps);
    else if (text) {
      if (n++) putchar('\n');
      fputs(text, stdout);
    }
    free(text);
    unlink(path);
  }
  if (d) closedir(d);
  rmdir(folder);
  return n;
}

static int run_explain(const void *options, char **argument, int n) {
  const ExplainOptions *o = options;
  const char *tmp = getenv("TMPDIR");
  char folder[260], path[300], dumps[300];
  (void)n;
  snprintf(folder, sizeof folder, "%.200s/tg-explain-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) return cli_refuse(CLI_FAILED, "explain", "%s: %s", folder, strerror(errno));
  snprintf(path, sizeof path, "%s/context%s", folder, o->json || o->kernel ? ".json" : "");
  snprintf(dumps, sizeof dumps, "%s.dumps", folder);
  if (o->kernel && !mkdir(dumps, 0700)) setenv("TG_DUMP", dumps, 1);
  int rc = program_with(argument, "explain", "TG_EXPLAIN", path);
  unsetenv("TG_DUMP");
  program_outlives_reader(true);
  int contexts = told(folder, o->kernel, dumps);
  if (o->kernel) folder_end(dumps);
  program_outlives_reader(false);
  program_ended("explain", argument[0], rc);
  if (!contexts && o->kernel && !rc) cli_refuse(0, "explain", "there is no kernel %s", o->kernel);
  if (!contexts && !o->kernel && !rc)
    cli_refuse(0, "explain", "%s ran nothing in a context of this library", argument[0]);
  return program_asked() ? CLI_INTERRUPTED : contexts ? rc : CLI_FAILED;
}

static const ExplainOptions defaults = {0};
static const CliOption options[] = {
    CLI_TEXT_OF(ExplainOptions, kernel, "kernel", "K",
                "one kernel, by name or as 0.2: its source, what its opts gain, its loops, its assembly"),
    CLI_FLAG_OF(ExplainOptions, json, "json", "every fact, an object per context")};

const CliCommand command_explain = {
    .name = "explain",
    .summary = "say what a program's kernels are and what may be slow",
    .arguments = "FILE.onnx|PROGRAM ARGS..",
    .least = 1,
    .most = -1,
    CLI_TAKES(ExplainOptions, options),
    .defaults = &defaults,
    .run = run_explain,
    .more =
        "PROGRAM is any that links the library; options of its own follow --. The first five lines are the "
        "size "
        "of the work and what may make it slow, each with the time that it may cost. Then come the graphs: "
        "kernels with their origins, memories, and why stages were not fused. Launches go one by one while "
        "they "
        "are timed. TG_EXPLAIN=FILE does the same without this command; what the program prints goes to "
        "stderr."};
