/* info.c: `tg info`: what is needed to understand a fault: the build, the device, the cache, the environment. `tg info FILE`: what a file is. */
#include "cli.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int file_info(TgContext *ctx, const char *path) {
  FILE *f = fopen(path, "rb");
  char *text = f ? cli_read(f) : NULL;
  int e = errno;
  if (f) fclose(f);
  if (!text) {
    fprintf(stderr, "tg info: cannot read %s: %s\n", path, e ? strerror(e) : "unknown error");
    return CLI_FAILED;
  }
  const char *kind = tg_opt(ctx, text, .emit = "kind");
  if (kind) printf("%s: %s, as TG_DUMP and tg opt write it\n", path, kind);
  else fprintf(stderr, "tg info: %s is not known: as a graph in text form: %s\n", path, tg_errmsg(ctx));
  free(text);
  return kind ? CLI_OK : CLI_FAILED;
}
int cmd_info(int argc, char **argv) {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    fprintf(stderr, "usage: tg info [FILE]\n");
    return CLI_USAGE;
  }
  TgContext *ctx = tg_open(NULL);
  const char *name, *text;
  int rc = ctx ? CLI_OK : CLI_FAILED;
  if (argc == 2 && ctx) rc = tg_error(ctx) ? cli_fail(ctx, "info") : file_info(ctx, argv[1]);
  else for (int i = 0; (text = tg_info(ctx, i, &name)); i++) printf("%-14s  %s\n", name, *text ? text : "-");
  tg_close(ctx);
  return rc;
}
