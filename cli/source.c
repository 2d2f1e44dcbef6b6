/* source.c: `tg source`: the kernels of a program as text, for any language, on any machine. In: programs.c.
 * Out: what the renderer wrote, with a line over each kernel that says how it is launched and shaped. The
 * devices are NULL:*, which compile and run nothing. */
#include "cli.h"
#include "programs.h"
#include <stdio.h>
#include <string.h>

static void usage(FILE *to) {
  fprintf(to, "usage: tg source [--lang C|CUDA|METAL] [--size N] [--cores N] [--prelude] PROGRAM..\n"
              "Prints the kernels that one step of a program makes. --lang: C unless said otherwise. --size "
              "N: ops, layers or parts instead of the\n"
              "program's own. --cores N: the CPU to plan for (8). --prelude: the types and helpers that the "
              "kernels are written with come first and\n"
              "names differ, so that the output compiles.\n"
              "programs:");
  for (int i = 0; program_info(i); i++)
    fprintf(to, " %s", program_info(i)->name);
  fputc('\n', to);
}

/* unit: names are made to differ, so that all stand in one file */
typedef struct Printer {
  bool unit;
  int n;
} Printer;

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
  TgContext *ctx =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = 1, .cores = cores});
  ProgramState *p = ctx && !tg_error(ctx) ? program_begin(ctx, which, size) : NULL;
  int rc = p ? CLI_OK : cli_fail(ctx, "source");
  if (p && to->unit && !to->n) fputs(tg_source_prelude(ctx), stdout);
  if (p) {
    tg_watch_kernels(ctx, print_kernel, to);
    if (program_step(p)) rc = cli_fail(ctx, "source");
  }
  program_end(p);
  tg_close(ctx);
  return rc;
}

int cmd_source(int argc, char **argv) {
  const char *lang = "C";
  int64_t size = 0, cores = 0;
  bool any = false, fine = true;
  Printer to = {0};
  for (int i = 1; i < argc && fine; i++) {
    if (!strcmp(argv[i], "--help")) {
      usage(stdout);
      return CLI_OK;
    }
    if (!strcmp(argv[i], "--prelude"))
      to.unit = true;
    else if (!strcmp(argv[i], "--lang") && i + 1 < argc)
      lang = argv[++i], fine = !strcmp(lang, "C") || !strcmp(lang, "CUDA") || !strcmp(lang, "METAL");
    else if (!strcmp(argv[i], "--size") && i + 1 < argc)
      fine = cli_whole(argv[++i], 1, 100000000, &size);
    else if (!strcmp(argv[i], "--cores") && i + 1 < argc)
      fine = cli_whole(argv[++i], 1, 4096, &cores);
    else
      any = true, fine = program_find(argv[i]) >= 0;
    if (!fine) fprintf(stderr, "tg source: '%s' is no program and no option\n", argv[i]);
  }
  if (!any || !fine) {
    usage(stderr);
    return CLI_USAGE;
  }
  int rc = CLI_OK;
  for (int i = 1; i < argc && rc == CLI_OK; i++) {
    int which = program_find(argv[i]);
    if (argv[i][0] == '-')
      i += strcmp(argv[i], "--prelude") != 0;
    else
      rc = print_program(lang, which, (int)size, (int)cores, &to);
  }
  return rc;
}
