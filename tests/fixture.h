/* fixture.h: what many tests begin with. In: the name of a device, or of a file of the shared data ($TG_DATA, else
 * ../shared/data). Out: a context without an error; a path, or that the file is not here. */
#ifndef FIXTURE_H
#define FIXTURE_H
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static inline TgContext *opened_with_seed(const char *device, uint64_t seed) {
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = seed});
  if (!c || tg_error(c)) fail_msg("%s: %s", device ? device : "the default device", tg_errmsg(c));
  return c;
}

static inline const char *data_folder(void) {
  const char *own = getenv("TG_DATA");
  return own && *own ? own : "../shared/data";
}

/* NULL: it is not here, which is printed. */
static inline const char *data_file(const char *name, char room[600]) {
  snprintf(room, 600, "%s/%s", data_folder(), name);
  if (!access(room, R_OK)) return room;
  print_message("skipped: no %s in the shared data\n", name);
  return NULL;
}
#endif
