/* opt.c: `tg opt`: the compiler on a graph written as text. In: a file or stdin. Out: the graph after a pass,
 * the program, or its source. */
#include "cli.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void) {
  fprintf(
      stderr,
      "usage: tg opt [--from NAME] [--pass NAME] [--emit uops|c|cuda|metal|costs] [--opts LIST] [FILE]\n     "
      "  tg "
      "opt --list\n"
      "FILE holds a tensor graph, a kernel or a program as TG_DUMP writes it; without FILE, or as -, stdin "
      "is read.\n");
  return CLI_USAGE;
}

int cmd_opt(int argc, char **argv) {
  const char *file = NULL;
  TgOptOptions o = {.size = sizeof o};

  struct {
    const char *name;
    const char **at;
  } options[] = {{"--pass", &o.pass}, {"--emit", &o.emit}, {"--opts", &o.opts}, {"--from", &o.from}};

  if (argc == 2 && !strcmp(argv[1], "--list")) {
    const char *stage, *name;
    for (int i = 0; (name = tg_pass_name(i, &stage)); i++)
      printf("%-9s %s\n", stage, name);
    return CLI_OK;
  }
  for (int i = 1; i < argc; i++) {
    bool known = false;
    for (size_t k = 0; !known && k < sizeof options / sizeof *options; k++)
      if (!strcmp(argv[i], options[k].name) && i + 1 < argc) known = true, *options[k].at = argv[++i];
    if (known) continue;
    if (file || (argv[i][0] == '-' && argv[i][1])) return usage();
    file = argv[i];
  }
  bool from_stdin = !file || !strcmp(file, "-");
  FILE *f = from_stdin ? stdin : fopen(file, "rb");
  char *text = f ? cli_read(f) : NULL;
  if (f && f != stdin) fclose(f);
  if (!text) {
    fprintf(stderr, "tg opt: cannot read %s: %s\n", from_stdin ? "stdin" : file,
            errno ? strerror(errno) : "unknown error");
    return CLI_FAILED;
  }
  TgContext *ctx = tg_open(NULL);
  const char *result = tg_opt_opt(ctx, text, &o);
  int rc = CLI_OK;
  if (result)
    fputs(result, stdout);
  else
    rc = cli_fail(ctx, "opt");
  tg_close(ctx);
  free(text);
  return rc;
}
