/* opt.c: `tg opt`: runs the compiler on a graph that is written as text. In: a file or stdin. Out: the graph
 * after a pass, the program, or its source. */
#include "cli.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Options {
  const char *pass, *emit, *opts, *from;
  bool list, json;
} Options;

static void passes_list(bool json) {
  const char *stage, *name;
  for (int i = 0; (name = tg_pass_name(i, &stage)); i++)
    if (json) {
      printf("{\"stage\":"), cli_json_text(stdout, stage);
      printf(",\"pass\":"), cli_json_text(stdout, name), puts("}");
    } else
      printf("%-9s %s\n", stage, name);
}

/* Prints the resulting text as a member of an object that tells how it was made. */
static void result_json(const Options *o, const char *file, const char *text) {
  printf("{\"file\":"), cli_json_text(stdout, file);
  printf(",\"emit\":"), cli_json_text(stdout, o->emit ? o->emit : "uops");
  if (o->pass) printf(",\"pass\":"), cli_json_text(stdout, o->pass);
  if (o->opts) printf(",\"opts\":"), cli_json_text(stdout, o->opts);
  printf(",\"text\":"), cli_json_text(stdout, text), puts("}");
}

static int run_opt(const void *options, char **argument, int n) {
  const Options *given = options;
  const char *file = n ? argument[0] : NULL;
  TgOptOptions o = {
      .size = sizeof o, .pass = given->pass, .emit = given->emit, .opts = given->opts, .from = given->from};
  if (given->list) return passes_list(given->json), CLI_OK;
  bool from_stdin = !file || !strcmp(file, "-");
  char *text = from_stdin ? cli_read(stdin, NULL) : cli_read_file(file, NULL);
  if (!text) {
    fprintf(stderr, "tg opt: cannot read %s: %s\n", from_stdin ? "stdin" : file,
            errno ? strerror(errno) : "unknown error");
    return CLI_FAILED;
  }
  CliWait *wait = cli_wait_begin("compiling");
  TgContext *ctx = tg_open_with(.log = cli_log);
  const char *result = tg_opt_opt(ctx, text, &o);
  cli_wait_end(wait);
  int rc = CLI_OK;
  if (result && given->json)
    result_json(given, from_stdin ? "-" : file, result);
  else if (result)
    fputs(result, stdout);
  else
    rc = cli_fail(ctx, "opt");
  tg_close(ctx);
  free(text);
  return rc;
}

static const CliOption options[] = {
    CLI_TEXT_OF(Options, from, "from", "NAME", "an earlier pass to begin with"),
    CLI_TEXT_OF(Options, pass, "pass", "NAME", "only this pass, instead of all that is left to do"),
    CLI_TEXT_OF(Options, emit, "emit", "uops|c|cuda|metal|costs|kind", "what to print (uops)"),
    CLI_TEXT_OF(Options, opts, "opts", "LIST", "these opts instead of the heuristic's"),
    CLI_FLAG_OF(Options, list, "list", "list the passes"),
    CLI_FLAG_OF(Options, json, "json", "one object with the text in it; of --list one a pass, a line each")};

const CliCommand command_opt = {.name = "opt",
                                .summary = "run compiler passes on a graph written as text",
                                .arguments = "[FILE]",
                                .most = 1,
                                CLI_TAKES(Options, options),
                                .run = run_opt,
                                .more = "FILE holds a tensor graph, a kernel or a program as TG_DUMP writes "
                                        "it; without FILE, or as -, stdin is read."};
