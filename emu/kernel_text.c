/* kernel_text.c: reads the line below a kernel's graph in a dump, for `tg opt --from` and the tests. In: what
 * codegen.c printed. Out: a Kernel as it was then. The text is not trusted: sizes that no launch can have are
 * refused. */
#include "emu/kernel_text.h"
#include "codegen/codegen.h"
#include "runtime/device.h"
#include <stdio.h>
#include <string.h>

enum { MOST_THREADS = 1024, MOST_IDS = 1 << 24 };

static bool launch_fits(const Kernel *k) {
  int64_t block = 1;
  for (int d = 0; d < 3; d++) {
    if (k->global[d] < 0 || k->local[d] < 0 || k->local[d] > MOST_THREADS) return false;
    block *= TG_MAX(k->local[d], 1);
  }
  return k->nthread >= 1 && k->nthread <= MOST_THREADS && block <= MOST_THREADS;
}

/* Sets the next free ids. No id that the graph uses becomes free. */
static bool ids_read(Kernel *k, const int *next) {
  for (int i = 0; i < 3; i++)
    if (next[i] < 0 || next[i] > MOST_IDS) return false;
  k->next_range = TG_MAX(k->next_range, next[0]);
  k->next_local = TG_MAX(k->next_local, next[1]);
  k->next_reg = TG_MAX(k->next_reg, next[2]);
  return true;
}

static bool list_read(Kernel *k, const char *at, size_t ndone) {
  Str list;
  str_init(&list, k->mem);
  str_printf(&list, "%.*s", (int)strcspn(at, "\n"), at);
  bool ok = !list.oom && opts_parse(str_text(&list), k->mem, &k->list, k->err);
  str_free(&list);
  k->nopt = (int)k->list.len;
  k->ndone = ndone;
  if (ok && ndone > k->list.len)
    return error_set(k->err, TG_ERR_VALUE, "opt: more opts are done than the list has"), false;
  return ok;
}

bool kernel_read(Kernel *k, const char *text, bool opts) {
  const char *line = strstr(text, KERNEL_TEXT);
  size_t ndone = 0;
  int end = 0, next[3];
  char name[sizeof k->linear->name];
  if (!line) return true;
  line += strlen(KERNEL_TEXT);
  size_t n = strcspn(line, ":\n");
  bool ok = n && n < sizeof name && line[n] == ':';
  ok =
      ok && sscanf(line + n, ": %d threads, grid %d %d %d, block %d %d %d, next ids %d %d %d, %zu done of:%n",
                   &k->nthread, &k->global[0], &k->global[1], &k->global[2], &k->local[0], &k->local[1],
                   &k->local[2], &next[0], &next[1], &next[2], &ndone, &end) == 11;
  if (!ok || !end || !launch_fits(k) || !ids_read(k, next))
    return error_set(k->err, TG_ERR_VALUE, "opt: a line '" KERNEL_TEXT "..' that no pass wrote"), false;
  snprintf(k->linear->name, sizeof name, "%.*s", (int)n, line);
  return !opts || list_read(k, line + n + end, ndone);
}
