/* source.c: `tg source`: prints the kernels of a program as text, in any language, on any machine. In:
 * programs.c. Out: the renderer's text, with a line above each kernel that tells its launch and its loops.
 * The devices are NULL:*, which compile and run nothing. */
#include "cli.h"
#include "programs.h"
#include <stdio.h>
#include <unistd.h>

/* unit: names are made different, so that all kernels can be in one file. */
typedef struct Printer {
  bool unit, json;
  int n;
  const char *program;
} Printer;

static void print_sizes(const char *name, const int v[3]) {
  printf(",\"%s\":[%d,%d,%d]", name, v[0], v[1], v[2]);
}

static void json_kernel(const TgKernelText *k, void *user) {
  const Printer *p = user;
  printf("{\"program\":"), cli_json_text(stdout, p->program);
  printf(",\"kernel\":"), cli_json_text(stdout, k->name);
  printf(",\"language\":"), cli_json_text(stdout, k->language);
  printf(",\"opts\":"), cli_json_text(stdout, k->opts);
  printf(",\"threads\":%d", k->threads);
  print_sizes("grid", k->grid), print_sizes("block", k->block);
  printf(",\"source\":"), cli_json_text(stdout, k->source), puts("}");
}

static void print_kernel(const TgKernelText *k, void *user) {
  Printer *p = user;
  if (p->n++) putchar('\n');
  if (p->unit) printf("#define %s %s_%d\n", k->name, k->name, p->n);
  fputs(k->source, stdout);
  if (p->unit) printf("#undef %s\n", k->name);
}

static int print_program(const char *lang, int which, int size, int cores, Printer *to) {
  char device[32];
  snprintf(device, sizeof device, "NULL:%s", lang);
  TgContext *ctx = tg_open(&(TgOpenOptions){
      .size = sizeof(TgOpenOptions), .device = device, .log = cli_log, .seed = 1, .cores = cores});
  ProgramState *p = ctx && !tg_error(ctx) ? program_begin(ctx, which, size) : NULL;
  int rc = p ? CLI_OK : cli_fail(ctx, "source");
  to->program = program_name(which);
  if (p && to->unit && !to->json && !to->n) fputs(tg_source_prelude(ctx), stdout);
  if (p) {
    tg_watch_kernels(ctx, to->json ? json_kernel : print_kernel, to);
    if (program_step(p)) rc = cli_fail(ctx, "source");
  }
  program_end(p);
  tg_close(ctx);
  return rc;
}

typedef struct Options {
  const char *lang;
  int64_t size, cores;
  bool prelude, json;
} Options;

static int run_source(const void *options, char **argument, int n) {
  const Options *o = options;
  Printer to = {.unit = o->prelude, .json = o->json};
  int rc = CLI_OK;
  /* On a terminal, the kernels themselves show the progress. */
  CliWait *wait = isatty(STDOUT_FILENO) ? NULL : cli_wait_begin("lowering");
  for (int i = 0; i < n && rc == CLI_OK; i++)
    rc = print_program(o->lang, program_find(argument[i]), (int)o->size, (int)o->cores, &to);
  cli_wait_end(wait);
  return rc;
}

static const Options defaults = {.lang = "C"};

static const CliOption options[] = {
    CLI_TEXT_OF(Options, lang, "lang", "C|C99|CUDA|METAL", "the language (C)"),
    CLI_WHOLE_OF(Options, size, "size", 1, 100000000, "ops, layers or parts, instead of the program's own"),
    CLI_WHOLE_OF(Options, cores, "cores", 1, 4096, "the CPU to plan for (8)"),
    CLI_FLAG_OF(
        Options, prelude, "prelude",
        "the types and helpers that the kernels are written with come first and names differ, so that the "
        "output compiles"),
    CLI_FLAG_OF(Options, json, "json", "an object per kernel, one a line, with its launch and its text")};

const CliCommand command_source = {.name = "source",
                                   .summary = "print the kernels that one step of a program makes",
                                   .arguments = "PROGRAM..",
                                   .least = 1,
                                   .most = -1,
                                   CLI_TAKES(Options, options),
                                   .defaults = &defaults,
                                   .run = run_source,
                                   .listed = program_name};
