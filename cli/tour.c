/* tour.c: `tg viz --tour`: shows docs/tour.md next to the pictures. In: that text, which is built into tg.
 * Out: a record of its expression, relu(a @ b), and tour.json, which has a step for each dump in the text:
 * the title of its section, the text before the dump, and the pass that the dump shows. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "viz.h"
#include <stdlib.h>
#include <string.h>

extern const char tour_text[];

/* Plans the expression for a machine that is the same everywhere, and records it. Nothing runs. Returns false
 * if it failed; the reason was printed. */
static bool recorded(const char *folder) {
  static const float zeros[96];
  setenv("TG_VIZ", folder, 1);
  TgContext *ctx =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C", .log = cli_log});
  unsetenv("TG_VIZ");
  bool ok = ctx && !tg_error(ctx);
  if (ok) {
    TgTensor *a = tg_from(ctx, zeros, TG_F32, TG_SHAPE(4, 6)),
             *b = tg_from(ctx, zeros, TG_F32, TG_SHAPE(6, 16));
    TgTensor *p = tg_origin(tg_matmul(a, b), "matmul (tour.md:3)");
    ok = !tg_realize(tg_origin(tg_relu(p), "relu (tour.md:3)"));
  }
  if (!ok) cli_fail(ctx, "viz");
  tg_close(ctx);
  return ok;
}

/* Writes the text between `at` and `end`, without headings, comments and blocks of code. */
static void prose_put(FILE *f, const char *at, const char *end) {
  char *text = calloc(1, (size_t)(end - at) + 1);
  size_t n = 0;
  bool code = false;
  for (; text && at < end; at += strcspn(at, "\n") + 1) {
    size_t length = strcspn(at, "\n") + 1;
    if (!strncmp(at, "```", 3))
      code = !code;
    else if (!code && strncmp(at, "<!--", 4) && *at != '#')
      memcpy(text + n, at, length), n += length;
  }
  cli_json_text(f, text ? text : "");
  free(text);
}

/* Writes a step for a dump such as "<!-- dump k000.5-choose_opts.uop -->": kernel 0, pass 5. */
static void step_put(FILE *f, const char *title, const char *said, const char *dump, bool first) {
  char name[100];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(title, "\n"), title);
  fputs(first ? "[{\"title\":" : ",\n{\"title\":", f);
  cli_json_text(f, name);
  const char *number = strchr(dump, '.');
  fprintf(f, ",\"kernel\":%d,\"pass\":%d,\"text\":", dump[10] == 'k' ? 0 : -1, number ? atoi(number + 1) : 0);
  prose_put(f, said, dump);
  fputs("}", f);
}

bool tour_record(const char *folder) {
  char path[400];
  snprintf(path, sizeof path, "%s/c0/tour.json", folder);
  FILE *f = recorded(folder) ? fopen(path, "w") : NULL;
  const char *title = tour_text, *said = tour_text;
  bool first = true;
  for (const char *at = tour_text; f && *at; at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n')) {
    if (!strncmp(at, "## ", 3)) title = at + 3;
    if (strncmp(at, "<!-- dump ", 10)) continue;
    step_put(f, title, said, at, first);
    first = false;
    said = at;
  }
  if (f) fputs(first ? "[]\n" : "]\n", f);
  return f && fclose(f) == 0;
}
