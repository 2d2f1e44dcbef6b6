/* exported.h: a captured function as C, compiled by a compiler of this machine and loaded. In: a capture.
 * Out: a function to call. Warnings are errors, and what C99 leaves undefined ends the process. */
#ifndef EXPORTED_H
#define EXPORTED_H
#include "tg_io.h"

enum { EXPORTED_VALUES = 64 };

typedef struct Exported {
  void *library, *weights;
  void *m; /* an instance, after a reset */
  int (*run)(void *m, void *const *values);
  void (*reset)(void *m, const void *weights);
  void (*stream)(void *m, int (*bring)(void *to, int64_t offset, size_t n)); /* .streamed: a reset */
  void (*spread_by)(void *m, void (*run)(void (*share)(void *work, int i), int n, void *work)); /* .threads */
  size_t nbytes; /* of an instance */
  TgCText about; /* its texts are gone */
  bool gnu;      /* GNU C with vectors */
} Exported;

/* folder: for files, which are deleted. cc: a compiler with its own flags, "gcc -O1". False: `why` is
 * printed; e is then empty. */
bool exported_new(Exported *e, TgJit *jit, const char *folder, const char *cc, TgCOptions o);
/* values: inputs, then outputs, then the sizes as pointers to int64_t. What NAME_run returns. */
int exported_run(Exported *e, void *m, void *const *values);
void exported_free(Exported *e);
/* Both texts go to folder/model.c and folder/model.h; the command with %s for the source must succeed. */
bool exported_accepted(TgJit *jit, const char *folder, const char *const *commands, int n, TgCOptions o);
#endif
