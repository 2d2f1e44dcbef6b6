/* assembly.c: the assembly that a C compiler makes of kernels. In: their sources, as the library wrote them
 * for a CPU. Out: the assembly of each kernel, without the assembler's directives. Each instruction is
 * followed by the number of the source line that it comes from, "\t# 12". All kernels are compiled in one
 * file, each under a name of its own. The compiler is $TG_CC or cc; the library may compile its kernels with
 * other flags. */
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
    fprintf(f, "#define %s kernel_%d_\n#line 1 \"kernel_%d_\"\n%s\n#line 1 \"rest\"\n#undef %s\n", name[i], i,
            i, source[i], name[i]);
  tg_close(ctx);
  return f && fclose(f) == 0 && prelude;
}

/* Returns the number that .file directives give to the file of this name; -1: there is none. */
static int file_number(const char *all, const char *name) {
  for (const char *at = all; (at = strstr(at, "\t.file")); at++) {
    const char *quote = strchr(at, '"'), *end = strchr(at, '\n');
    int number = at[7] >= '0' && at[7] <= '9' ? atoi(at + 7) : -1;
    for (; number >= 0 && quote && end && quote < end; quote = strchr(quote + 1, '"'))
      if (!strncmp(quote + 1, name, strlen(name)) && quote[1 + strlen(name)] == '"') return number;
  }
  return -1;
}

/* Returns the line that a .loc directive names in file `file`; 0: of another file; -1: it is no .loc
 * directive. */
static int line_named(const char *at, int file) {
  int of, line;
  if (strncmp(at, "\t.loc", 5) || sscanf(at, "\t.loc%*[ \t]%d %d", &of, &line) != 2) return -1;
  return of == file ? line : 0;
}

/* Returns whether the text is a label that only a debugger uses: no instruction jumps to it. */
static bool debug_label(const char *at) {
  return !strncmp(at, ".LVL", 4) || !strncmp(at, ".LBB", 4) || !strncmp(at, ".LBE", 4) ||
         !strncmp(at, ".LFB", 4) || !strncmp(at, ".LFE", 4) || !strncmp(at, ".Ltmp", 5) ||
         !strncmp(at, ".Lfunc_", 7);
}

/* Returns the lines from the function's label to its end, without directives; NULL: it is not there. */
static char *function_of(const char *all, int i) {
  char label[40], end[60], name[32];
  snprintf(label, sizeof label, "\nkernel_%d_:", i);
  snprintf(end, sizeof end, "\t.size\tkernel_%d_,", i);
  snprintf(name, sizeof name, "kernel_%d_", i);
  const char *at = strstr(all, label), *stop = at ? strstr(at, end) : NULL;
  char *text = NULL;
  size_t n = 0;
  FILE *to = stop ? open_memstream(&text, &n) : NULL;
  int file = file_number(all, name), line = 0;
  for (; to && at < stop; at += strcspn(at, "\n") + 1) {
    int length = (int)strcspn(at, "\n"), named = line_named(at, file);
    if (named >= 0) line = named ? named : line;
    bool directive = at[0] == '\t' && at[1] == '.';
    if (directive || *at == '\n' || *at == '#' || debug_label(at)) continue;
    fprintf(to, "%.*s", length, at);
    if (line && *at == '\t') fprintf(to, "\t# %d", line);
    fputc('\n', to);
  }
  if (to && fclose(to)) {
    free(text);
    text = NULL;
  }
  return text;
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
  char *all = f ? cli_read(f, NULL) : NULL;
  if (f) ok = pclose(f) == 0 && all;
  for (int i = 0; ok && f && i < n; i++)
    out[i] = function_of(all, i);
  free(all);
  unlink(path), rmdir(folder);
  return ok && f;
}
