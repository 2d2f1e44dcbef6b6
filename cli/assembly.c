/* assembly.c: what a C compiler makes of kernels. In: their sources, as the library wrote them for a CPU. Out: the
 * assembly of each, without the directives of the assembler. All are compiled in one file, each under a name of its
 * own. The compiler is $TG_CC or cc; the library's own may have other flags. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "viz.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool sources_put(const char *path, const char *const *source, const char *const *name, int n) {
  FILE *f = fopen(path, "w");
  TgContext *ctx = f ? tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU"}) : NULL;
  const char *prelude = ctx && !tg_error(ctx) ? tg_source_prelude(ctx) : NULL;
  if (prelude) fputs(prelude, f);
  for (int i = 0; prelude && i < n; i++)
    fprintf(f, "#define %s kernel_%d_\n%s\n#undef %s\n", name[i], i, source[i], name[i]);
  tg_close(ctx);
  return f && fclose(f) == 0 && prelude;
}

/* The lines from the function's label to its end, those that begin with a directive left out. */
static char *function_of(const char *all, int i) {
  char label[40], end[60];
  snprintf(label, sizeof label, "\nkernel_%d_:", i);
  snprintf(end, sizeof end, "\t.size\tkernel_%d_,", i);
  const char *at = strstr(all, label), *stop = at ? strstr(at, end) : NULL;
  char *to = stop ? malloc((size_t)(stop - at) + 1) : NULL;
  size_t n = 0;
  for (; to && at < stop; at += strcspn(at, "\n") + 1) {
    size_t length = strcspn(at, "\n") + 1;
    bool directive = at[0] == '\t' && at[1] == '.';
    if (directive || *at == '\n' || *at == '#' || at + length > stop) continue;
    memcpy(to + n, at, length);
    n += length;
  }
  if (to) to[n] = 0;
  return to;
}

bool assembly_of(const char *const *source, const char *const *name, int n, char **out) {
  char folder[] = "/tmp/tg-assembly-XXXXXX", path[80], command[700];
  const char *cc = getenv("TG_CC");
  memset(out, 0, (size_t)n * sizeof *out);
  if (!n || !mkdtemp(folder)) return false;
  snprintf(path, sizeof path, "%s/kernels.c", folder);
  bool ok = sources_put(path, source, name, n);
  snprintf(command, sizeof command, "%.300s %s -S -o - %s 2>/dev/null", cc && *cc ? cc : "cc", ASSEMBLY_FLAGS,
           path);
  FILE *f = ok ? popen(command, "r") : NULL;
  char *all = f ? cli_read(f) : NULL;
  if (f) ok = pclose(f) == 0 && all;
  for (int i = 0; ok && f && i < n; i++)
    out[i] = function_of(all, i);
  free(all);
  unlink(path), rmdir(folder);
  return ok && f;
}
